"""What the papers conclude: each sentence has evidence that exists, and its outcome is that of all of it together."""

import re
from itertools import permutations
from pathlib import Path

import numpy as np
import prose
import pytest

from fedtheory import course
from fedtheory.cli import conclusions, report
from fedtheory.core import registry
from fedtheory.core.registry import PAPERS
from fedtheory.papers import ITEMS
from fedtheory.papers.conclusions import Conclusion, decide, named
from fedtheory.papers.conclusions import number as our_number
from fedtheory.papers.evidence import decided, of_paper, states, take_home
from fedtheory.running.records import load, made, report_rows
from fedtheory.running.verdicts import AGAINST, AUTHORS, HOLDS, MATCHES, OPEN, REVERSED, UNTESTED
from fedtheory.theory.letters import letters

ROOT = Path(__file__).resolve().parent.parent
ALL = [one for paper in PAPERS for one in of_paper(paper)]


@pytest.mark.parametrize("paper", PAPERS)
def test_every_paper_has_its_conclusions_and_their_evidence_exists(paper):
    """`decided` refuses a pattern that no committed cell matches, and a claim that is not in the ledger."""
    found = decided(paper, ROOT / "figures", ROOT / "docs" / "ledger.json")
    assert len(found) >= 8
    assert all(outcome.cells or outcome.claims for _, outcome in found)


def faults(listed: list[Conclusion]) -> list[str]:
    """What is wrong with sentences."""
    found = [f"{one.says}: said twice" for one in listed if sum(one.says == other.says for other in listed) > 1]
    for one in listed:
        found += [f"{text}: ends with a full stop" for text in (one.says, one.where) if text.endswith(".")]
        found += [f"{text}: begins small" for text in (one.says, one.where) if not text[:1].isupper()]
        if one.know and not one.know.endswith("."):
            found.append(f"{one.know}: is no sentence")
    return found


def test_sentences_are_unique_and_end_as_the_page_needs_them():
    assert faults(ALL) == []
    for paper in PAPERS:
        places = [one.where for one in of_paper(paper)]
        assert sorted(set(places)) == sorted(places)


def test_a_faulty_sentence_is_seen():
    one = Conclusion("It is so.", "sec. 1", claims=("a",), know="of course")
    assert len(faults([one])) == 3
    assert len(faults([ALL[0], ALL[0]])) == 2


CELLS = [
    {"item": "mud/table1", "cell": "A < B", "verdict": MATCHES, "seeds": 3, "ours": 1.0, "low": 0.5, "high": 1.5},
    {"item": "mud/table1", "cell": "B < C", "verdict": MATCHES, "seeds": 3, "ours": 2.0, "low": 1.5, "high": 2.5},
    {"item": "mud/table2", "cell": "A < B", "verdict": UNTESTED, "seeds": 0, "ours": 0.0, "low": 0.0, "high": 0.0},
]
CELLS = [cell | {"kind": "run", "reason": "", "paper": 1.0} for cell in CELLS]
LEDGER = {
    "mud.a": {"id": "mud.a", "paper": "mud", "kind": "identity", "verdict": "holds"},
    "mud.a.b": {"id": "mud.a.b", "paper": "mud", "kind": "inequality", "verdict": "false-as-stated"},
    "mud.ran": {"id": "mud.ran", "paper": "mud", "kind": "empirical", "verdict": "holds-with-caveat"},
}


def test_a_pattern_takes_the_cells_that_it_names_and_no_others():
    for pattern, number in (
        ("mud/table1: A < B", 1),
        ("mud/table*: A < B", 2),
        ("mud/table1: * < *", 2),
        ("mud/table1: *", 2),
        ("*", 3),
    ):
        assert len(decide(Conclusion("S", "W", (pattern,)), CELLS, {}).cells) == number
    assert len(decide(Conclusion("S", "W", ("mud/table1: *", "*: A < B")), CELLS, {}).cells) == 3  # each once


@pytest.mark.parametrize("wrong", ["mud/table1: A < C", "mud/table1: A", "table1: A < B", "mud/table1: [AB] < B", ""])
def test_evidence_that_does_not_exist_is_refused(wrong):
    """A dot or a bracket in a cell's name is no pattern; a part of a name does not match."""
    with pytest.raises(ValueError, match="cells="):
        decide(Conclusion("S", "W", (wrong,)), CELLS, LEDGER)
    with pytest.raises(ValueError, match="claims="):
        decide(Conclusion("S", "W", (), (wrong,)), CELLS, LEDGER)
    with pytest.raises(ValueError, match="numbers or claims"):
        Conclusion("S", "W")


@pytest.mark.parametrize(
    ("verdicts", "outcome"),
    [
        ([MATCHES, MATCHES], MATCHES),
        ([MATCHES, HOLDS], HOLDS),
        ([MATCHES, HOLDS, OPEN], OPEN),
        ([HOLDS, OPEN, REVERSED], REVERSED),
        ([MATCHES, HOLDS, OPEN, REVERSED, AGAINST], AGAINST),
        ([MATCHES, UNTESTED], MATCHES),
        ([UNTESTED, UNTESTED], UNTESTED),
    ],
)
def test_one_number_against_contradicts_and_one_open_leaves_open(verdicts, outcome):
    """In whichever order they stand."""
    for order in permutations(verdicts):
        rows = [CELLS[0] | {"cell": f"cell {at}", "verdict": verdict} for at, verdict in enumerate(order)]
        assert decide(Conclusion("S", "W", ("mud/table1: cell *",)), rows, {}).experiment == outcome


def test_where_the_table_prints_the_other_side_the_sentence_is_judged():
    """A cell that is reversed against its table holds for the sentence, wherever it stands in it."""
    rows = [CELLS[0] | {"verdict": REVERSED, "ours": -1.0}, CELLS[1] | {"verdict": HOLDS}]
    one = Conclusion("S", "W", ("mud/table1: * < *",), turned=("mud/table1: A < B",))
    assert decide(one, rows, {}).experiment == HOLDS
    assert sorted(row["verdict"] for row in decide(one, rows, {}).cells) == [HOLDS, HOLDS]
    assert decide(Conclusion("S", "W", one.cells), rows, {}).experiment == REVERSED
    assert rows[0]["verdict"] == REVERSED
    with pytest.raises(ValueError, match="cells="):
        decide(Conclusion("S", "W", one.cells, turned=("mud/table1: A < C",)), rows, {})


def test_a_turned_cell_is_printed_on_the_other_side():
    """Else the sentence would be judged against its own table."""
    rows = {
        f"{name}: {cell['cell']}": cell for name in ITEMS for cell in report_rows(name, load(ROOT / "figures", name))
    }
    found = [name for one in ALL for name in one.turned]
    assert found
    for name in found:
        difference = re.search(r"printed ([+-][\d.]+)", rows[name]["reason"])
        assert (rows[name]["paper"] if difference is None else float(difference[1])) < 0, name


def test_the_outcome_is_one_word_and_theory_is_counted_apart():
    for cells, claims, word in (
        (("mud/table1: *",), (), "matches"),
        (("mud/table*: *",), (), "matches, in part"),
        (("mud/table2: *",), ("mud.a", "mud.a.b"), "not tested"),
        ((), ("mud.a.b",), "false as stated"),
        ((), ("mud.a", "mud.ran"), "holds with a caveat"),
        ((), ("mud.a", "mud.a.b", "mud.ran"), "false as stated"),
    ):
        assert decide(Conclusion("S", "W", cells, claims), CELLS, LEDGER).word() == word
    apart = decide(Conclusion("S", "W", (), ("mud.a", "mud.ran")), CELLS, LEDGER)
    assert (apart.theory, apart.empirical) == ({"holds": 1}, {"holds-with-caveat": 1})


def test_one_number_speaks_for_a_conclusion():
    for cells, claims, chosen, said in (
        (("mud/table1: *",), (), ("mud/table1: A < B", "A: {} points"), "A: 1 [0.5, 1.5] points, n=3"),
        (("mud/table1: *",), (), ("mud/table1: B < C", "{100}% of B"), "200 [150, 250]% of B, n=3"),
        (("mud/table1: *",), (), None, "2 of 2 numbers agree"),
        (("mud/table2: *",), (), None, "not run"),
        ((), ("mud.a", "mud.a.b"), None, "1 of 2 claims false"),
        ((), ("mud.a", "mud.ran"), None, "none of 2 claims false"),
        ((), ("mud.a",), None, "theory alone"),
    ):
        one = Conclusion("S", "W", cells, claims, number=chosen)
        assert our_number(one, decide(one, CELLS, LEDGER)) == said
    beside = [CELLS[0] | {"reason": "said; minus FedAvg -3 [-3.6, +2.3], printed +2.4: the other way here"}]
    one = Conclusion("S", "W", ("mud/table1: A < B",), number=("mud/table1: A < B", "{} points"))
    assert our_number(one, decide(one, beside, {})) == "-3 [-3.6, 2.3] points, n=3"
    wrong = Conclusion("S", "W", ("mud/table1: A < B",), number=("mud/table1: B < C", "{}"))
    with pytest.raises(ValueError, match="number='mud/table1: B < C'"):
        our_number(wrong, decide(wrong, CELLS, LEDGER))


@pytest.mark.parametrize("paper", PAPERS)
def test_the_number_decides_the_outcome(paper):
    for one, outcome in decided(paper, ROOT / "figures", ROOT / "docs" / "ledger.json"):
        if one.number is not None:
            row = next(row for row in outcome.cells if named(row) == one.number[0])
            assert row["verdict"] == outcome.experiment, one.says


@pytest.mark.parametrize("paper", PAPERS)
def test_sentences_are_short(paper):
    texts = [*take_home(paper), *(text for one in of_paper(paper) for text in (one.know, one.more))]
    assert [s for text in texts for s in prose.sentences(text) if len(s.split()) > 25] == []
    assert [one.says for one in of_paper(paper) if len(one.says.split()) > 14] == []
    assert len(take_home(paper)) == 5


QUOTED = re.compile(r"(-?\d[\d.]*)(?:%| points)? \[(-?[\d.]+), (-?[\d.]+)\]")


MEANS = (("ours", ""), ("mean", ""), ("gap", "gap "))


def committed_intervals() -> np.ndarray:
    """Mean and ends of every interval in the records: of cells, tables and notes."""
    found = []
    for record in (
        load(ROOT / "figures", name, pictured=False) for name in registry.items() if made(ROOT / "figures", name)
    ):
        for row in (*record["cells"], *record["table"]):
            found += [(row.get(mean), row.get(f"{own}low"), row.get(f"{own}high")) for mean, own in MEANS]
        for text in (*(cell.get("reason", "") for cell in record["cells"]), *record["notes"]):
            found += [tuple(map(float, part)) for part in QUOTED.findall(text.replace("+", ""))]
    return np.array([part for part in found if all(isinstance(x, float) for x in part)])


def unknown(texts: list[str], intervals: np.ndarray) -> list[str]:
    """Quoted intervals that no record has: as it stands, a hundred times it, with the other sign, rounded."""
    missing = []
    for text in texts:
        for part in QUOTED.finditer(text):
            said = np.array(list(map(float, part.groups())))
            digits = [len(x.partition(".")[2]) for x in part.groups()]
            half = 0.5001 * 10.0 ** -np.array(digits)
            signs = ((1, intervals), (-1, intervals[:, [0, 2, 1]]))
            fits = [
                (np.abs(sign * times * own - said) <= half).all(1).any() for sign, own in signs for times in (1, 100)
            ]
            missing += [] if any(fits) else [part[0]]
    return missing


def test_quoted_intervals_are_committed():
    intervals = committed_intervals()
    texts = [text for paper in PAPERS for text in take_home(paper)]
    texts += [text for one in ALL for text in (one.know, one.more)]
    assert sum(len(QUOTED.findall(text)) for text in texts) > 20
    assert unknown(texts, intervals) == []
    assert unknown(["it ends 3.01 points [2.28, 3.63] lower"], intervals) == ["3.01 points [2.28, 3.63]"]


def test_evidence_names_a_few_numbers_and_counts_many():
    few = decide(Conclusion("S", "W", ("mud/table*: A < B",), ("mud.a", "mud.a.b")), CELLS, LEDGER)
    said = "mud/table1, A < B: 1 [0.5, 1.5] n=3; 1 number was not run: mud/table2; "
    assert conclusions.evidence(few) == f"{said}mud.a (holds); mud.a.b (false as stated)"
    for part in (
        "[mud/table1](report.md#mudtable1-",
        "[mud.a](ledger.md#mud) (holds); [mud.a.b](ledger.md#mudab-false",
    ):
        assert part in conclusions.linked(few)
    many = [CELLS[0] | {"cell": str(at), "verdict": verdict} for at, verdict in enumerate((MATCHES, HOLDS, OPEN))]
    outcome = decide(Conclusion("S", "W", ("mud/table1: *",)), many, {})
    assert conclusions.evidence(outcome) == "mud/table1: 1 matches, 1 direction holds, 1 inconclusive"
    many[0]["kind"] = "count"
    assert conclusions.evidence(outcome) == "mud/table1: 1 direction holds, 1 inconclusive; of counts 1 matches"
    beside = many[1] | {"reason": "said; minus FedAvg -3 [-3.6, -2.3], printed +2.4: the other way here"}
    assert conclusions.compared(beside) == "minus FedAvg -3 [-3.6, -2.3], printed +2.4"


def test_cells_that_state_the_same_are_shown_and_counted_once():
    """Where their results are the same; another run of the same statement is shown as well."""
    of_cells = lambda rows: decide(Conclusion("S", "W", ("mud/table*: *",)), rows, {}, lambda row: row["cell"]).cells
    twice = [CELLS[0], CELLS[1], CELLS[0] | {"item": "mud/table2"}]
    assert [row["item"] for row in of_cells(twice)] == ["mud/table1", "mud/table1"]
    assert [row["item"] for row in of_cells([*twice, twice[2] | {"ours": 1.1}])] == [*["mud/table1"] * 2, "mud/table2"]


def test_a_statement_under_two_readings_is_one():
    """Each looks at its own round; another statement stays another."""
    row = {"item": "decomfl/fig2a", "paper": 0.0}
    cells = ("accuracy, K = 4 minus K = 1 in round 60 (above)", "accuracy, K = 4 minus K = 1 in round 100 (above)")
    one, other = (states(row | {"cell": cell}) for cell in (cells[0], f"{cells[1]}, {AUTHORS}"))
    assert one == other
    assert states(row | {"cell": cells[0].replace("K = 4", "K = 10")}) != one


def test_the_page_is_made_from_the_committed_results():
    found = {paper: decided(paper, ROOT / "figures", ROOT / "docs" / "ledger.json") for paper in PAPERS}
    assert (ROOT / "docs" / "conclusions.md").read_text() == conclusions.page(found)


def test_links_of_the_page_lead_to_headings():
    pages = {name: (ROOT / "docs" / name).read_text() for name in ("report.md", "ledger.md", "conclusions.md")}
    there = {name: {conclusions.anchor(line.lstrip("# ")) for line in text.splitlines() if line.startswith("#")}
             for name, text in pages.items()}  # fmt: skip
    found = re.findall(r"\]\((\w+\.md)#([^)]+)\)", pages["conclusions.md"])
    assert {page for page, _ in found} == {"report.md", "ledger.md"}
    assert all(anchor in there[page] for page, anchor in found)
    within = re.findall(r"\]\(#([^)]+)\)", pages["report.md"])
    assert set(within) <= there["report.md"]
    assert conclusions.named("see (ssf/readings)").startswith("see ([ssf/readings](report.md#ssfreadings-")
    assert conclusions.named("one and/or, (a/b)") == "one and/or, (a/b)"


def test_the_report_opens_with_their_outcomes(tmp_path):
    """How many there are of each, before the rule and the numbers; where evidence is not there, a word for it."""
    shown = report.report_page([], ROOT / "figures", ROOT / "docs" / "ledger.json").split("\n## ")
    assert [part.splitlines()[0] for part in shown[1:4]] == list(TITLES)
    for paper in PAPERS:
        line = next(line for line in shown[1].splitlines() if line.startswith(f"| {PAPERS[paper]} |"))
        assert sum(map(int, re.findall(r"\d+", line))) == len(of_paper(paper))
    for figures, ledger in ((tmp_path, ROOT / "docs" / "ledger.json"), (ROOT / "figures", tmp_path / "ledger.json")):
        assert "left out here" in report.report_page([], figures, ledger).split("\n## ")[1]


TITLES = ("What the papers conclude", "How numbers are judged", "The items")


def words(text: str) -> set[str]:
    """A line may end within a word that has a hyphen."""
    return {*re.split(r"[\s-]+", text)} - {""}


def test_a_notebook_shows_them(capsys, monkeypatch):
    """From the folder notebooks and from its parent; every sentence whole, on lines that fit."""
    for folder in (ROOT / "notebooks", ROOT):
        monkeypatch.chdir(folder)
        for paper in PAPERS:
            course.conclusions(paper)
            lines = capsys.readouterr().out.splitlines()
            assert max(map(len, lines)) <= course.WIDTH <= 120
            for one, outcome in decided(paper, ROOT / "figures", ROOT / "docs" / "ledger.json"):
                for text in (one.says, one.where, outcome.word(), our_number(one, outcome)):
                    assert words(letters(text)) <= words(" ".join(lines))


def test_a_notebook_shows_those_of_some_items(capsys, monkeypatch):
    monkeypatch.chdir(ROOT)
    course.conclusions("ssf", "ssf/fig4", "ssf/table5")
    shown = words(capsys.readouterr().out)
    found = decided("ssf", ROOT / "figures", ROOT / "docs" / "ledger.json")
    assert [one.says for one, _ in found if words(letters(one.says)) <= shown] == [
        "Deep networks on CIFAR-100 rank in the order SCAFFOLD, SSF, FedAvg, FedSub",
        "SSF loses about 7.5 points to SCAFFOLD on CIFAR-100",
    ]
    with pytest.raises(ValueError, match="items='ssf/why_nan'"):
        course.conclusions("ssf", "ssf/why_nan")


def test_a_notebook_shows_those_on_theory_alone(capsys, monkeypatch):
    monkeypatch.chdir(ROOT)
    for paper in PAPERS:
        course.conclusions(paper, theory=True)
        shown = words(capsys.readouterr().out)
        for one, _ in decided(paper, ROOT / "figures", ROOT / "docs" / "ledger.json"):
            assert (words(letters(one.says)) <= shown) == (not one.cells)


def test_a_notebook_refuses_what_is_not_there(monkeypatch, tmp_path):
    with pytest.raises(ValueError, match="paper='fedmud': expected one of 'fedsub'"):
        course.conclusions("fedmud")
    monkeypatch.setenv("FEDTHEORY_ROOT", str(tmp_path))
    with pytest.raises(FileNotFoundError, match=r"docs/ledger\.json"):
        course.conclusions("mud")


def test_notes_of_numbers_are_folded_and_sentences_are_not():
    """Ends of an interval stand behind their mean, numbers of one setting in one line; nothing else changes."""
    notes = ["share 1: rule: 2", "share 1: end: 0.5", "share 1: end, low: 0.4", "share 1: end, high: 6e-01"]
    notes += ["x: 3", "Not here: nothing crosses: MeZO.", "x, low: 2", "share 2: rule: inf"]
    assert report.folded(notes) == [
        "share 1: rule 2; end 0.5 [0.4, 6e-01]",
        "x: 3",
        "Not here: nothing crosses: MeZO.",
        "x, low: 2",
        "share 2: rule inf",
    ]
