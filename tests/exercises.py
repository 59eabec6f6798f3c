"""Answers to every exercise of the notebooks: right ones in two forms, typical wrong ones, and what is said of each.

EXERCISES[notebook][exercise]: "right" (code that is put after `answer = `; the folded solution is the first form and
stands in the notebook), "wrong" (code, and words that the refusal must contain), "tells": patterns that must not stand
above the solution, beside the answer itself; "open": not searched for above, since more than one number is right, or
since it is a small count.
"""

from typing import Any

Exercise = dict[str, Any]

EXERCISES: dict[str, dict[int, Exercise]] = {
}
