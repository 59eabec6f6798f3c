"""course"""

import argparse

from fedtheory.cli.output import print_json
from fedtheory.core import checks


def make(options: argparse.Namespace) -> None:
    """course"""
    kinds = [kind for kind in ("student", "instructor", "slides") if getattr(options, kind) is not None]
    if len(kinds) != 1:
        found = ", ".join(f"--{kind}" for kind in kinds) or "none"
        checks.reject("course", found, "one of --student, --instructor, --slides, and its folder", "give one of them")
    from fedtheory.course import course, slides

    (kind,) = kinds
    folder = getattr(options, kind)
    if kind == "slides":
        decks = slides.save(folder, options.notebooks)
        if options.json:
            print_json(
                [{"name": deck.name, "slides": deck.slides, "file": f"{folder}/{deck.name}.html"} for deck in decks]
            )
            return
        for deck in decks:
            print(f"{folder}/{deck.name}.html: {deck.slides} slides")
        return
    made, left_out = course.course(kind, folder, options.notebooks)
    if options.json:
        print_json({"folder": folder, "notebooks": [{"name": one.name, "points": one.points} for one in made]})
        return
    for one in made:
        print(f"{one.name}: {len(one.points)} exercises, {sum(one.points.values())} points")
    for name in left_out:
        print(f"{name}: left out, its exercises have no entry in fedtheory/course/exercises")
