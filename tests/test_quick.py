"""The quick scale: what is said of every item, what stands beside no printed number, committed runs, and the page."""

import math
import re
from dataclasses import replace
from pathlib import Path

import flips
import pytest
from each import each
from matplotlib.text import Text

from fedtheory import cli
from fedtheory.papers import ITEMS, quick, store
from fedtheory.papers.fedsub import items as fedsub
from fedtheory.papers.ssf import items as ssf
from fedtheory.papers.store import measured
from fedtheory.running import records

FIGURES = Path(__file__).resolve().parent.parent / "figures"
NUMBER = re.compile(r"(?<![\w.+-])\d+(?:\.\d+)?(?![\w.]*\d)")


def record_of(name):
    """Numbers of an item's committed record, also in percent, and its words."""
    record = records.load(FIGURES, name, pictured=False)
    values = [records.number(cell[part]) for cell in record["cells"] for part in ("paper", "ours", "low", "high")]
    words = [record["title"], *record["notes"], *(cell["cell"] + cell["reason"] for cell in record["cells"])]
    return [abs(value) for value in values] + [abs(100 * value) for value in values], " ".join(words)


@each(name=quick.TEXTS)
def test_what_we_found_has_the_numbers_of_the_committed_record(name):
    values, words = record_of(name)
    for said in NUMBER.findall(quick.TEXTS[name].found):
        digits = len(said.replace(".", "").lstrip("0"))
        near = any(float(f"{value:.{digits}g}") == float(said) for value in values if math.isfinite(value))
        assert near or re.search(rf"(?<![\d.]){re.escape(said)}(?!\d|\.\d)", words), f"{said} is not in its record"


def test_every_item_of_the_papers_has_its_sentences():
    assert list(quick.TEXTS) == list(ITEMS)
    for name, text in quick.TEXTS.items():
        assert ("quick" in ITEMS[name].scales) != text.committed
        assert all(said.endswith(".") for said in (text.claim, text.see, text.found))


class Level:
    """Runs of one level: an accuracy and an error of a half."""

    def __call__(self, specs):
        return {one: self.result(one) for one in specs}

    def result(self, one):
        rounds = [*range(0, one.rounds, one.every), one.rounds]
        level = {metric: [0.5] * len(rounds) for metric in ("error", "accuracy", "loss")}
        sent = {f"{way}_{unit}": [100.0 * t for t in rounds] for way in ("up", "down") for unit in ("bytes", "scalars")}
        return {"diverged": None, "columns": {"round": rounds, **level, **sent}}


TRAINED = [  # one for every measure and drawing
    *("fedsub/fig1a", "ssf/fig2c", "ssf/table1", "ssf/table3", "mud/table1", "mud/fig2", "mud/fig3", "mud/fig6"),
    *("flss/table1", "flss/table4", "flss/fig1a", "decomfl/fig2a", "decomfl/fig3a", "decomfl/fig3b", "decomfl/fig4"),
]


@pytest.mark.parametrize("name", TRAINED)
def test_no_printed_value_stands_beside_a_stand_in(name):
    """Not in the table, not in the picture, not among the numbers; and no stand-in has the paper's name."""
    item = ITEMS[name]
    result = quick.unjudged(measured(Level(), item.measure("quick", 2)))
    figure = quick.captioned(item).draw(records.read_csv(store.to_csv(result.table)))
    assert f"See: {quick.TEXTS[name].see}" in figure.get_supxlabel().replace("\n", " ")
    if name == "ssf/table1":  # the paper's own problem and length
        return
    assert not any(row[part] == row[part] for row in result.table for part in row if part in ("paper", "printed gap"))
    assert {cell.kind for cell in result.cells if cell.seeds} <= {"count"}
    said = [text.get_text() for text in figure.findobj(Text)]
    assert not [text for text in said if re.search(r"\bpaper|printed|CIFAR|CNN|ResNet", text)]
    lines = [line for axes in figure.axes for line in axes.get_lines()]
    assert not [line for line in lines if line.get_marker() == "D" and line.get_markerfacecolor() == "none"]


def test_printed_values_stand_on_the_papers_own_problem_alone():
    row = {"het": 2.0, "r": 10, "ran data": "matrix regression, het = 2.0"}
    assert ssf.printed_for(row) == ssf.TABLE3[2.0, 10]
    assert ssf.printed_for(row | {"ran data": "matrix regression, d = 20, het = 2.0, m = 5"}) is None
    for options, lines in (({}, 1), (fedsub.QUICK, 0)):
        of = fedsub.spec(fedsub.methods()["our-CD"], 0, 400, **options).ran()
        table = [
            {"method": "our-CD", "round": t, "mean": 1.0, "low": 1.0, "high": 1.0, "seeds": 1} | of for t in (0, 400)
        ]
        assert len(fedsub.draw(table).axes[0].get_lines()) == 1 + lines


def reproduce(capsys, out, *names):
    assert cli.main(["reproduce", *names, "--out", str(out)]) == 0
    return capsys.readouterr().out


def test_a_committed_run_is_drawn_and_said_to_be(tmp_path, capsys):
    """No record: nothing was run. Where the committed run is not at hand, the rest is made all the same."""
    said = reproduce(capsys, tmp_path, "decomfl/fig5b")
    folder = tmp_path / "quick" / "decomfl"
    assert [path.name for path in folder.iterdir()] == ["fig5b.png"]
    assert "index.html" in said


def test_the_page_has_both_pictures_and_links_that_lead_somewhere(tmp_path, capsys, inline):
    said = reproduce(capsys, tmp_path, "fedsub/table1", "decomfl/fig5b")
    page = tmp_path / "quick" / "index.html"
    assert str(page) in said
    html = page.read_text()
    assert re.findall(r"<h2[^>]*>([^<]+)</h2>", html) == ["FedSub", "DeComFL"]
    links = re.findall(r'(?:src|href)="([^"#]+)"', html)
    assert len(links) == 2 * (4 + 3)
    assert all((page.parent / link).exists() for link in links)
    assert not any(link.startswith(("/", "http")) for link in links)
    for name in ("fedsub/table1", "decomfl/fig5b"):
        text = quick.TEXTS[name]
        assert text.claim.split("'")[0] in html
        assert text.found.split("'")[0] in html
    assert html.count("<section") == 2
    assert "Seeds" not in html.split("<body>")[0]


def test_without_committed_runs_the_page_says_so(tmp_path, capsys, monkeypatch, inline):
    monkeypatch.setenv("FEDTHEORY_ROOT", str(tmp_path / "none"))
    reproduce(capsys, tmp_path, "fedsub/table1", "decomfl/fig5b")
    html = (tmp_path / "quick" / "index.html").read_text()
    assert html.count("<section") == 1
    assert "The committed runs lie in the repository" in html


def test_a_quick_run_is_not_judged(tmp_path):
    cells = [replace(cell, ran=ran) for cell, ran in zip(flips.result().cells, ("smoke", ""))]
    kept = quick.unjudged(store.Result(flips.result().table, cells)).cells
    assert [cell.ran for cell in kept] == [""]
