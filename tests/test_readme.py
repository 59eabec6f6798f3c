"""The README fits on a screen, its lines run as they stand, and the pages behind it say what the records say."""

import re
from itertools import pairwise
from pathlib import Path

import pytest

from fedtheory.core.registry import PAPERS
from fedtheory.papers.conclusions import named

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text()


def test_the_example_prints_what_stands_below_it(capsys):
    """At most ten lines; the last digits may differ from machine to machine."""
    block, below = re.search(r"```python\n(.*?)```\n\n```\n(.*?)```", README, re.DOTALL).groups()
    assert len([line for line in block.splitlines() if line.strip()]) <= 10
    exec(compile(block, "README.md", "exec"), {})
    same(capsys.readouterr().out, below)


def test_the_tour_of_the_book_prints_what_stands_below_its_code(capsys):
    names = {}
    text = (ROOT / "docs" / "book" / "start" / "tour.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```\n\n```\n(.*?)```", text, re.DOTALL)
    assert len(blocks) == 2
    for block, below in blocks:
        exec(compile(block, "tour.md", "exec"), names)
        same(capsys.readouterr().out, below)


def same(printed: str, below: str) -> None:
    """The same words and sizes; of the errors the last digits may differ from machine to machine."""
    number = r"\d\.\d{4}"
    assert re.sub(number, "", printed) == re.sub(number, "", below)
    errors = [list(map(float, re.findall(number, text))) for text in (printed, below)]
    assert errors[0] == pytest.approx(errors[1], rel=0.02)


def test_the_readme_is_one_screen():
    """Words, lines of cells, columns; no table cell is a story."""
    text = re.sub(r"\]\([^)]*\)", "]", README)
    assert len(text.split()) < 900
    rows = [line.strip("|").split("|") for line in text.splitlines() if line.startswith("|")]
    assert rows
    assert max(len(cell.split()) for row in rows for cell in row) <= 15
    assert max(map(len, rows)) <= 6


def test_the_readme_says_of_the_papers_what_the_results_say():
    """Every number of its table stands on the page of results."""
    found = [line.strip("|").split("|") for line in README.splitlines() if line.startswith("| [")]
    assert [row[0].split("]")[0].strip(" [") for row in found] == ["FedSub", "SSF", "FedMUD", "FLSS", "DeComFL"]
    said = " ".join((ROOT / "docs" / "results.md").read_text().split())
    for row in found:
        for number in re.findall(r"\d+\.\d+(?: \[[^\]]+\])?", row[-1].replace("](", " ")):
            assert number in said, number


def test_the_first_picture_is_drawn_from_tuned_runs_for_equal_bytes():
    from fedtheory.running import records

    record = records.load(ROOT / "figures", "ssf/bytes")
    assert "figures/ssf/bytes.png" in README[: README.index("##")]
    last = {row["method"]: row for row in record["table"]}
    assert {row["up_MB"] for row in last.values()} == {24.0}
    order = sorted(last, key=lambda name: last[name]["mean"])
    assert order == ["Full-SCAFFOLD", "SSF", "Full-FedAvg", "FedSub"]
    for below, above in pairwise(order[1:]):
        assert last[below]["high"] < last[above]["low"]
    for name, tried in record["settings"]["errors while tuning"].items():
        rates = sorted(map(float, tried))
        assert rates[0] < last[name]["lr"] < rates[-1]


def test_links_lead_somewhere():
    """Every relative link and picture of the README and docs exists."""
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]:
        for target in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
            if not target.startswith("http"):
                assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_the_counts_of_the_pages_are_the_committed_ones():
    """No number in prose that the committed results do not give."""
    from fedtheory.cli import report
    from fedtheory.papers import ITEMS
    from fedtheory.running import records

    rows = [row for name in ITEMS for row in report.report_rows(name, records.load(ROOT / "figures", name))]
    scales = (ROOT / "docs" / "scales.md").read_text()
    for line in report.summary(rows):
        assert f"- {line}\n" in scales
    for paper in PAPERS:
        assert f" | {' | '.join(report.of_paper(paper, rows))} |\n" in scales
    assert (ROOT / "docs" / "report.md").read_text() == report.report_page(
        rows, ROOT / "figures", ROOT / "docs" / "ledger.json"
    )


def test_the_short_form_has_five_sentences_a_paper(capsys):
    from fedtheory.cli import main
    from fedtheory.papers.evidence import take_home

    asked = ["conclusions", "--short", "--out", str(ROOT / "figures"), "--ledger", str(ROOT / "docs" / "ledger.json")]
    assert main(asked) == 0
    parts = capsys.readouterr().out.strip().split("\n\n")
    for (paper, name), part in zip(PAPERS.items(), parts, strict=True):
        assert part.splitlines() == [name, *(f"  {sentence}" for sentence in take_home(paper))]


def test_links_into_pages_lead_somewhere():
    """`page.md#heading`, as GitHub makes it of a heading."""
    from fedtheory.cli.conclusions import anchor

    found = [
        (page.parent / target, name)
        for page in (ROOT / "docs").glob("*.md")
        for target, name in re.findall(r"\]\(([\w/.-]+\.md)#([^)]+)\)", page.read_text())
    ]
    assert len(found) > 20
    for page, name in found:
        lines = page.read_text().splitlines()
        assert name in {anchor(line.lstrip("# ")) for line in lines if line.startswith("#")}, f"{page.name}#{name}"


def test_a_number_is_counted_once():
    """SSF's tables and figures print 41 numbers on its toy problem in 77 cells, beside the orders of its methods."""
    from fedtheory.cli import report
    from fedtheory.papers import ITEMS
    from fedtheory.papers.evidence import SAME, distinct
    from fedtheory.running import records

    toy = [name for name in ITEMS if name.startswith("ssf/") and name not in ("ssf/table1", "ssf/fig4", "ssf/table5")]
    rows = [row for name in toy for row in report.report_rows(name, records.load(ROOT / "figures", name))]
    levels = [row for row in rows if " < " not in row["cell"]]
    assert (len(levels), len(distinct(levels))) == (77, 41)
    twice = [rows[0], rows[0] | {"verdict": "contradicted"}, rows[0] | {"item": "mud/fig2"}]
    assert [row["verdict"] for row in distinct(twice)] == ["contradicted", rows[0]["verdict"]]
    orders = [row for row in rows if " < " in row["cell"]]
    assert (len(orders), len(distinct(orders))) == (32, 26)
    every = [row for name in ITEMS for row in report.report_rows(name, records.load(ROOT / "figures", name))]
    there = {named(row): row for row in every}
    for one, other in SAME.items():
        both = [there[one], there[other]]
        assert len(distinct(both)) == 1
        equal = [both[0][name] == pytest.approx(both[1][name], abs=0.02) for name in ("paper", "ours")]
        assert any(equal) or f"{both[1]['ours']:.3g} [" in both[0]["reason"], (one, other)
    assert report.summary([rows[0] | {"kind": "count"}])[2].startswith("1 are counts")
