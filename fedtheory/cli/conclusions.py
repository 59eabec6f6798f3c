"""conclusions"""

import argparse
import re
from collections.abc import Callable, Mapping
from operator import itemgetter
from pathlib import Path
from typing import Any

from fedtheory.cli.output import print_json, show_ours
from fedtheory.core import checks, registry
from fedtheory.core.files import require_target, write_target
from fedtheory.core.registry import PAPERS
from fedtheory.papers.conclusions import LEDGER_WORDS, Outcome, number
from fedtheory.papers.evidence import Decided, decided, take_home
from fedtheory.running import verdicts
from fedtheory.theory import ledger
from fedtheory.theory.letters import letters


def show(options: argparse.Namespace) -> None:
    """conclusions"""
    if options.page is not None:
        require_target("page", options.page, options.ledger)
    if not Path(options.out).is_dir():
        checks.reject(
            "out", options.out, "a folder of results", "name the folder that reproduce wrote, such as figures"
        )
    chosen = [checks.choice("papers", paper, PAPERS) for paper in options.papers] or list(PAPERS)
    wanted = list(PAPERS) if options.page is not None else chosen
    found = {paper: decided(paper, Path(options.out), Path(options.ledger)) for paper in wanted}
    if options.page is not None:
        write_target(options.page, page(found).encode())
    if options.json:
        print_json([one for paper in chosen for one in plain(paper, found[paper])])
        return
    for paper in chosen:
        print(PAPERS[paper])
        print("\n".join(f"  {letters(sentence)}" for sentence in take_home(paper)))
        for at, (one, outcome) in enumerate(found[paper] if not options.short else [], 1):
            print(f"\n  {at}. {letters(one.says)} ({one.where})")
            print(f"     {outcome.word()}: {number(one, outcome)}")
            known = [letters(text) for text in (one.know, one.more) if text]
            print("\n".join(f"     {line}" for line in (*known, f"Evidence: {evidence(outcome)}.")))
        print()


def evidence(
    outcome: Outcome, item: Callable[[str], str] = str, claim: Callable[[Mapping[str, Any]], str] = itemgetter("id")
) -> str:
    """The numbers behind an outcome (many are counted) and the claims. `item`, `claim`: how each is written."""
    said = []
    ran = [row for row in outcome.cells if row["seeds"]]
    waiting = [row for row in outcome.cells if not row["seeds"]]
    if 0 < len(ran) <= 2:
        said += [f"{item(row['item'])}, {row['cell']}: {compared(row)}" for row in ran]
    elif ran:
        items = ", ".join(item(name) for name in dict.fromkeys(row["item"] for row in ran))
        kinds = [[row["verdict"] for row in ran if (row["kind"] == "run") == run] for run in (True, False)]
        runs, counts = map(verdicts.tally, kinds)
        said.append(f"{items}: {f'{runs}; of counts {counts}' if runs and counts else runs or counts}")
    if waiting:
        items = ", ".join(item(name) for name in dict.fromkeys(row["item"] for row in waiting))
        said.append(f"{len(waiting)} number{'s were' if len(waiting) > 1 else ' was'} not run: {items}")
    for one in outcome.claims:
        said.append(f"{claim(one)} ({'of runs: ' if one['kind'] == 'empirical' else ''}{LEDGER_WORDS[one['verdict']]})")
    return "; ".join(said)


def compared(row: Mapping[str, Any]) -> str:
    """Ours; of an accuracy that is judged beside another method's, the difference."""
    beside = verdicts.read_beside(row["reason"])
    return beside[0] if beside else show_ours(row)


def plain(paper: str, found: Decided) -> list[dict[str, Any]]:
    """For JSON."""
    return [
        {
            "paper": paper,
            "says": one.says,
            "where": one.where,
            "experiment": outcome.experiment,
            "theory": outcome.theory,
            "empirical claims": outcome.empirical,
            "cells": [f"{row['item']}: {row['cell']}" for row in outcome.cells],
            "claims": [claim["id"] for claim in outcome.claims],
            "number": number(one, outcome),
            "know": one.know,
            "more": one.more,
        }
        for one, outcome in found
    ]


def summary(found: Mapping[str, Decided]) -> list[str]:
    """A table: how many conclusions of each paper have which outcome."""
    lines = [
        "| paper | as printed | inconclusive | the other way | not tested | theory alone |",
        "|---|---|---|---|---|---|",
    ]
    columns = (
        (verdicts.MATCHES, verdicts.HOLDS, verdicts.SAME_ORDER),
        (verdicts.OPEN,),
        (verdicts.REVERSED, verdicts.AGAINST),
        (verdicts.UNTESTED,),
        (None,),
    )
    for paper, own in found.items():
        ran = [outcome.experiment for _, outcome in own]
        lines.append(f"| {PAPERS[paper]} | {' | '.join(str(sum(map(ran.count, column))) for column in columns)} |")
    return lines


def page(found: Mapping[str, Decided]) -> str:
    """docs/conclusions.md."""
    lines = [
        "# What the papers conclude, and what to believe",
        "",
        "Generated by `python -m fedtheory conclusions --page docs/conclusions.md`; not edited by hand.",
        "",
        "We reran what five papers conclude. This page says for each conclusion whether it held.",
        "Brackets are 95% intervals over n seeds. [Words](#words) explains the outcomes.",
        "",
        *summary(found),
    ]
    for paper, own in found.items():
        lines += ["", f"## {PAPERS[paper]}", "", *(f"- {letters(sentence)}" for sentence in take_home(paper)), ""]
        lines += [*NAMES[paper], ""]
        lines += [f"| {PAPERS[paper]} says | outcome | our number | where |", "|---|---|---|---|"]
        for at, (one, outcome) in enumerate(own, 1):
            cells = (f"{at}. {letters(one.says)}", outcome.word(), number(one, outcome), one.where)
            lines.append("| " + " | ".join(cell.replace("|", r"\|") for cell in cells) + " |")
        lines += ["", "**What to know**", ""]
        lines += [f"- {text}" for text in GENERAL.get(paper, ())]
        lines += [f"- *{at}.* {named(letters(one.know))}" for at, (one, _) in enumerate(own, 1) if one.know]
        lines += ["", "<details><summary>Evidence of each conclusion</summary>", ""]
        for at, (one, outcome) in enumerate(own, 1):
            found_in = linked(outcome)
            parts = (f"{at}.", named(letters(one.more)), f"{found_in}." if found_in else "")
            lines.append(" ".join(part for part in parts if part))
        lines += ["", "</details>"]
    return "\n".join([*lines, "", *WORDS]) + "\n"


WORDS = [  # what the words for outcomes and evidence mean
    "## Words",
    "",
    "A conclusion has the worst outcome of its numbers. One open number makes it inconclusive, and among many numbers",
    "one is more often wrong by chance. A conclusion without runs has the worst verdict of its claims. *In part*: some",
    "of its numbers are not tested. The worst outcome stands first:",
    "",
    "- *contradicted*: the other side, with the paper's data, network and length in the reading that ran. Counts: off",
    "  by a factor of more than 1.5, or not the printed digits where those are judged. If another reading gives the",
    "  printed side, *What to know* names it.",
    "- *direction reversed*: the other side, with other data, a smaller network, or a length that is not printed.",
    "- *inconclusive*: the interval lies on both sides. [The report](report.md) says how many seeds would decide.",
    "- *direction holds*: the printed side, with other data, a smaller network, or a length that is not printed.",
    "- *same order*: counts differ by a factor of at most 1.5.",
    "- *matches*: the printed side or level, with the paper's data, network and length, or an equal count.",
    "- *not tested*: no run, a run that could not have failed, or a level with other data, network or length.",
    "",
    "Claims have the verdicts of [the ledger](ledger.md):",
    "",
    "- *false as stated*: a counterexample exists. A repair stands beside it where we have one.",
    "- *not checked*: neither proved nor searched.",
    "- *holds with a caveat*: a condition that the paper does not print is needed, or a vague word is read in one way.",
    "- *holds but for a slip*: an index, a misprint or a unit is wrong.",
    "- *holds*: proved, or a search for a counterexample failed.",
    "- *of runs*: the paper says it of runs and proves it nowhere. The ledger checks it by runs.",
    "",
    "Numbers in the evidence:",
    "",
    "- *A below B: 2.5*: B's error is 2.5 times A's. The claim needs more than 1.",
    "- *A < B: 3*: B's accuracy is 3 points above A's. The claim needs more than 0. For errors it is their ratio.",
    "- *(above)*, *(below)*: the side of a bound on which the claim lies. *(about)*, *(nearly)*: the paper's words.",
    "- Differences are taken between runs with the same seed.",
    "- *Surely*: the interval decides the order. *A reading*: a choice among a paper's [open points](open-points.md).",
    "- Two methods that a paper prints level must be level: within two points, or a factor of 1.5.",
    "- Where a paper's table and sentence differ, we judge the sentence.",
]

GENERAL = {  # what to know of all conclusions of a paper
    "flss": [
        "We also chose the participation and how the directions are sampled, and did not tune the rate.",
        "FedAvg and SignSGD, with and without FLSS, ran in full in three columns (Table 2, Fashion-MNIST).",
        "Five methods with Table 3's CNN and one epoch ran the printed 400 rounds on two fifths of the images.",
        "The rest are short runs, which can reverse a direction but not contradict the paper.",
    ]
}

NAMES = {  # of methods and settings
    "fedsub": [
        "*our-CD*, *our-SS*, *our-RD*: FedSub in subspaces of random coordinates, uniform and Gaussian directions.",
        "*our-P=I*: FedSub in the full space. *FedAvg-CD*: our-CD without dual variables.",
        "*m*, *r*: dimensions of the model and of the subspace. *P*: the projection. *K*: rounds.",
    ],
    "ssf": [
        "*Full-FedAvg*, *Full-SCAFFOLD*: in the full space. *het*: heterogeneity of the clients' data.",
        "*r*: dimension of the subspace, of 100. *N*: clients. *K*: local steps of a round. *T*: rounds.",
    ],
    "mud": [
        "*BKD*: Kronecker blocks instead of low rank. *AAD*: both factors are trained, each beside a fixed one.",
        "*F*: one factor is frozen. *s*: rounds between resets (*R*: none). *a*: initial values lie in (-a, a).",
        "*N1*: Dirichlet labels. *N2*: three labels per client. *IID*: labels at random.",
        "*FedBAT*: clients upload trained signs. *EF21-P*: random entries go up, the largest ones down.",
    ],
    "flss": [
        "*T0*: rounds of the base method before updates are projected. *T*: all rounds.",
        "*G*: the last global updates, which span the subspace. *sr*: factor of the local rate in projected rounds.",
        "*Sign+EF*: SignSGD with error feedback. *β*: Dirichlet concentration of the labels; low is heterogeneous.",
    ],
    "decomfl": [
        "*K*: local steps of a round. *P*: random directions (perturbations) of a step. *d*: parameters of the model.",
        "*m*: clients of a round. *R*: rounds. *authors' files*: run with the settings of the published result files.",
    ],
}


def linked(outcome: Outcome, folder: str = "") -> str:
    """The evidence with links to the report's sections and to the ledger, which lie in a folder."""
    item = lambda name: of_item(name, f"{folder}report.md")
    return evidence(outcome, item, lambda claim: f"[{claim['id']}]({folder}ledger.md#{anchor(ledger.heading(claim))})")


def named(text: str, page: str = "report.md") -> str:
    """A text with links where it names an item in brackets."""
    link = lambda found: of_item(found[0], page) if found[0] in registry.items() else found[0]
    return re.sub(r"(?<=[( ])[a-z]+/\w+(?=[),])", link, text)


def of_item(name: str, page: str = "report.md") -> str:
    """A link to an item's section of the report."""
    return f"[{name}]({page}#{anchor(f'{name}: {registry.items()[name].title}')})"


def anchor(heading: str) -> str:
    """Of a heading, as GitHub makes it."""
    return "".join(c for c in heading.lower().replace(" ", "-") if c.isalnum() or c in "-_")
