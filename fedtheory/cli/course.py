"""course"""

import argparse

from fedtheory.cli.output import print_json
from fedtheory.core import checks

KINDS = ("student", "instructor", "slides", "handouts", "exam", "report", "wheels")
_USED = {  # option -> the kinds that use it
    "notebooks": KINDS[:4],
    "colab": KINDS[:2],
    "seed": ("exam",),
    "questions": ("exam",),
    "extra": ("wheels",),
}


def make(options: argparse.Namespace) -> None:
    """course"""
    kinds = [kind for kind in KINDS if getattr(options, kind) is not None]
    if len(kinds) != 1:
        found = ", ".join(f"--{kind}" for kind in kinds) or "none"
        expected = f"one of {', '.join(f'--{kind}' for kind in KINDS)}, and its folder"
        checks.reject("course", found, expected, "give one of them")
    (kind,) = kinds
    for option, users in _USED.items():
        given = getattr(options, option)
        if kind not in users and given not in (None, []):
            *others, last = (f"--{user}" for user in users)
            expected = f"{', '.join(others)} or {last}" if others else last
            given = " ".join(given) if isinstance(given, list) else given
            checks.reject(option, given, f"{expected}, not --{kind}", "leave it out")
    made = {"slides": _slides, "handouts": _handouts, "exam": _exam, "report": _report, "wheels": _wheels}
    made.get(kind, _versions)(kind, getattr(options, kind), options)


def _versions(kind: str, folder: str, options: argparse.Namespace) -> None:
    from fedtheory.course import course

    made, left_out = course.course(kind, folder, options.notebooks, options.colab)
    if options.json:
        print_json({"folder": folder, "notebooks": [{"name": one.name, "points": one.points} for one in made]})
        return
    for one in made:
        print(f"{one.name}: {len(one.points)} exercises, {sum(one.points.values())} points")
    for name in left_out:
        print(f"{name}: left out, its exercises have no entry in fedtheory/course/exercises")


def _slides(_: str, folder: str, options: argparse.Namespace) -> None:
    from fedtheory.course import slides

    decks = slides.save(folder, options.notebooks)
    if options.json:
        told = ("name", "slides", "minutes")
        print_json([{n: getattr(deck, n) for n in told} | {"file": f"{folder}/{deck.name}.html"} for deck in decks])
        return
    for deck in decks:
        print(f"{folder}/{deck.name}.html: {deck.slides} slides, {deck.minutes} minutes")


def _handouts(_: str, folder: str, options: argparse.Namespace) -> None:
    from fedtheory.course import handouts

    names = [f"{folder}/{name}" for name in handouts.save(folder, options.notebooks)]
    if options.json:
        print_json(names)
        return
    print(*names, sep="\n")


def _exam(kind: str, folder: str, options: argparse.Namespace) -> None:
    from fedtheory.course import course, exam

    seed = 0 if options.seed is None else options.seed
    asked = exam.draw(seed, 10 if options.questions is None else options.questions)
    names = {"examination.md": False, "solutions.md": True}
    out = checks.path("folder", folder)
    course.save(out, kind, {name: exam.sheet(asked, seed, solved).encode() for name, solved in names.items()})
    if options.json:
        print_json([vars(one) for one in asked])
        return
    for name in names:
        print(f"{folder}/{name}: {len(asked)} questions, seed {seed}")


def _report(kind: str, folder: str, options: argparse.Namespace) -> None:
    from fedtheory.course import answers, course

    found = answers.collected(folder)
    if options.json:
        print_json([{"exercise": name, **one.ends, "slips": one.slips} for name, one in found.items()])
        return
    out = checks.path("folder", folder).resolve().parent / "report"
    course.save(out, kind, answers.files(found))
    for name, one in found.items():
        print(f"{name}: {', '.join(f'{one.ends[end]} {end}' for end in answers.ENDS if one.ends[end])}")
    print(f"{out}/README.md: what the wrong answers reveal")


def _wheels(_: str, folder: str, options: argparse.Namespace) -> None:
    from fedtheory.course import wheels

    extras = options.extra or ("course",)
    found = wheels.save(folder, extras)
    if options.json:
        print_json({"folder": folder, "wheels": [path.name for path in found]})
        return
    size = sum(path.stat().st_size for path in found) / 1e6
    print(f"{folder}: {len(found)} wheels, {size:.0f} MB. Without a network, in a new environment:")
    print(wheels.command(folder, extras))
