"""list, claims --list"""

import argparse

from fedtheory.cli.output import print_json
from fedtheory.core import checks, registry


def show(options: argparse.Namespace) -> None:
    """list"""
    items = registry.items()
    names = {
        "algorithms": registry.method_names(),
        "problems": registry.problem_names(),
        "items": [name for name, item in items.items() if not item.ours],
        "extras": [name for name, item in items.items() if item.ours],
        "claims": registry.claim_names(),
    }
    if options.json:
        print_json(names)
        return
    for kind, entries in names.items():
        print(f"{kind}:")
        for entry in entries:
            title = items[entry].title if entry in items else ""
            print(f"  {entry:<24}{title}".rstrip())


def show_claims(options: argparse.Namespace) -> None:
    """claims --list"""
    for name in ("save", "page"):
        if getattr(options, name) is not None:
            checks.reject(name, getattr(options, name), "nothing of it with --list", f"leave out --{name}, or --list")
    chosen = registry.chosen_claims(options.ids, options.paper)
    if options.json:
        print_json(chosen)
        return
    print("\n".join(chosen))
