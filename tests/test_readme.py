"""The README's lines run as they stand."""

import json
import re
from pathlib import Path

import pytest

from fedtheory.core.conclusions import named

ROOT = Path(__file__).resolve().parent.parent


def test_the_library_example_is_short_and_runs(capsys):
    """Under ten lines, and every method ends below the error it started with."""
    (block,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.S)
    assert len([line for line in block.splitlines() if line.strip()]) < 10
    exec(compile(block, "README.md", "exec"), {})
    errors = [float(number) for number in re.findall(r"error (\S+)", capsys.readouterr().out)]
    assert len(errors) == 3
    assert max(errors) < 0.2


def test_links_lead_somewhere():
    """Every relative link and picture of the README and docs exists."""
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]:
        for target in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
            if not target.startswith("http"):
                assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_the_counts_of_the_readme_and_the_report_page_are_the_committed_ones():
    """No number in prose that the committed results do not give."""
    from fedtheory.cli import report
    from fedtheory.core import records
    from fedtheory.figures import ITEMS

    rows = [row for name in ITEMS for row in report.report_rows(name, records.load(ROOT / "figures", name))]
    readme = (ROOT / "README.md").read_text()
    for line in report.summary(rows):
        assert f"- {line}\n" in readme
    for paper in ("fedsub", "ssf", "mud", "flss", "decomfl"):
        assert f" | {' | '.join(report.of_paper(paper, rows))} |\n" in readme
    assert (ROOT / "docs" / "report.md").read_text() == report.report_page(
        rows, ROOT / "figures", ROOT / "docs" / "ledger.json"
    )


def test_the_readme_opens_with_what_the_papers_conclude(capsys):
    from fedtheory.cli import conclusions, main
    from fedtheory.core.conclusions import PAPERS
    from fedtheory.theory.conclusions import decided

    found = {paper: decided(paper, ROOT / "figures", ROOT / "docs" / "ledger.json") for paper in PAPERS}
    readme = (ROOT / "README.md").read_text()
    table = "\n".join(conclusions.short(found))
    assert f"\n\n{table}\n\n" in readme[: readme.index("![")]
    assert f"[all {sum(map(len, found.values()))}](docs/conclusions.md)" in readme
    asked = ["conclusions", "--short", "--out", str(ROOT / "figures"), "--ledger", str(ROOT / "docs" / "ledger.json")]
    assert main(asked) == 0
    assert capsys.readouterr().out == f"{table}\n"


def test_links_into_pages_lead_somewhere():
    """`page.md#heading`, as GitHub makes it of a heading."""
    from fedtheory.cli.conclusions import anchor

    found = re.findall(r"\]\((docs/\w+\.md)#([^)]+)\)", (ROOT / "README.md").read_text())
    assert len(found) > 20
    for target, name in found:
        lines = (ROOT / target).read_text().splitlines()
        assert name in {anchor(line.lstrip("# ")) for line in lines if line.startswith("#")}, f"{target}#{name}"


def test_the_readme_is_as_fast_as_the_committed_records():
    """The times in its table are those of `benchmarks/results`."""
    records = (ROOT / "benchmarks" / "results" / f"{name}-cpu.json" for name in ("rounds", "networks"))
    rounds, networks = (json.loads(path.read_text()) for path in records)
    fedavg, scaffold, ssf = (rounds[f"ssf-toy/{name}"]["ratio"] for name in ("fedavg", "scaffold", "ssf"))
    style = f"the usual style takes {fedavg:.0f} (FedAvg), {scaffold:.0f} (SCAFFOLD), {ssf:.0f} (SSF) times as long"
    bare = f"for 28 x 28 images a bare loop {networks['mlp/fedavg']['ratio_lean']:.1f} times"
    readme = (ROOT / "README.md").read_text()
    assert style in readme
    assert bare in readme
    records = (ROOT / "benchmarks" / "results" / f"{name}-cuda.json" for name in ("rounds", "networks"))
    rounds, networks = (json.loads(path.read_text()) for path in records)
    usual = [f"{rounds[f'ssf-toy/{name}']['ratio']:.0f}" for name in ("fedavg", "scaffold", "ssf")]
    first, second = (networks[name]["ratio_lean"] for name in ("mlp/fedavg", "cnn/fedavg"))
    assert f"takes {usual[0]}, {usual[1]} and {usual[2]} times as long; on an H200" in readme
    assert (
        f"a bare loop takes {first:.0f} times as long with the perceptron and {second:.0f} with DeComFL's CNN" in readme
    )
    assert [rounds["environment"]["gpu"].split()[1], networks["environment"]["gpu"].split()[1]] == ["H100", "H200"]


def test_a_number_is_counted_once():
    """SSF's tables and figures print 41 numbers on its toy problem in 77 cells, beside the orders of its methods."""
    from fedtheory.cli import report
    from fedtheory.core import records
    from fedtheory.figures import ITEMS
    from fedtheory.theory.conclusions import SAME, distinct

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
