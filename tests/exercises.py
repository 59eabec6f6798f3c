"""Answers to every exercise of the notebooks: right ones in two forms, typical wrong ones, and what is said of each.

EXERCISES[notebook][exercise]: "right" (code that is put after `answer = `; the folded solution is the first form and
stands in the notebook), "wrong" (code, and words that the refusal must contain), "tells": patterns that must not stand
above the solution, beside the answer itself; "open": not searched for above, since more than one number is right, or
since it is a small count.
"""

from typing import Any

Exercise = dict[str, Any]

EXERCISES: dict[str, dict[int, Exercise]] = {
    "03_ssf": {
        1: {
            "right": ["1 + int(math.log(1e-4) / math.log(1 - 2 / 64))", "291.0"],
            "wrong": {"290": "One round earlier", "32": "of the start", "295": "approximated", "146": "1%"},
        },
        2: {
            "right": ["lambda c, P, g: c - P.lift(P.project(c - g))"],
            "wrong": {
                "lambda c, P, g: P.lift(P.project(g))": "Outside the subspace",
                "lambda c, P, g: c + P.lift(P.project(g))": "is not g",
                "lambda c, P, g: P.project(g)": "lift what you projected",
                "lambda c, P, g: g": "Outside the subspace",
            },
        },
        3: {
            "right": ["int(74 / 2) + 1"],
            "wrong": {"37": "exactly as far", "10": "Too small", "60": "Too large", "37.5": "whole number"},
        },
    },
    "04_theory_ledger": {
        1: {
            "right": ["min(K for K in range(2, 60) if kept_ratio(K) > 1)"],
            "wrong": {"15": "still holds", "60": "One local step less", "31.5": "is whole", "2": "still holds"},
        },
        2: {
            "right": ["lambda L, rho: 0.0625 * rho / L", "lambda L, rho: rho / (19 * L)"],
            "tells": [r"rho\s*/\s*\(?\s*16", r"1\s*/\s*16\b"],
            "wrong": {
                "lambda L, rho: rho / (20 * L)": "Too small",
                "lambda L, rho: rho / 16": "Units",
                "lambda L, rho: 1 / (32 * L)": "as large as needed",
                "lambda L, rho: 1": "Units",
                "lambda L, rho: 1 / L": "as large as needed",
            },
        },
        3: {
            "right": ["0.102"],
            "open": True,
            "wrong": {"0.2": "still stands", "0.05": "breaks the lemma", "1.0": "still stands"},
        },
    },
    "06_flss": {
        1: {
            "right": ["lambda P, g: P.lift(P.project(2 * g)) / 2"],
            "wrong": {
                "lambda P, g: P.project(g)": "coordinates",
                "lambda P, g: g": "Nothing was projected",
                "lambda P, g: g - P.lift(P.project(g))": "what is lost",
                "lambda P, g: 2 * P.lift(P.project(g))": "not the projection",
            },
        },
        2: {
            "right": ["held_by(1 / torch.arange(1.0, 201))", "float(held_by(slow**2))"],
            "wrong": {
                "held_by(slow**2) - 1": "Too small",
                "held_by(slow**2) + 1": "Too large",
                "held_by(slow)": "not of their squares",
                "160": "share of their number",
                "4": "Too small",
            },
        },
        3: {
            "right": ["67"],
            "wrong": {"66": "One more", "133": "more than a third", "68": "more than a third", "66.7": "is whole"},
        },
    },
}
