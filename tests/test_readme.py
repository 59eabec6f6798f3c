"""The README's lines run as they stand."""

import re
from pathlib import Path

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
    counts = report.count_verdicts(rows)
    assert f"Of the {len(rows)} numbers" in (ROOT / "README.md").read_text()
    assert counts in (ROOT / "README.md").read_text()
    assert f"{len(ITEMS)} items: {report.count_verdicts(report.list_items(rows))}" in (ROOT / "README.md").read_text()
    assert (ROOT / "docs" / "report.md").read_text() == report.report_page(rows, ROOT / "figures")
