"""The pages on speed show the committed records of the benchmarks, and they say what the pages say of them."""

import importlib.util
from pathlib import Path

import pytest

FILE = Path(__file__).resolve().parent.parent / "benchmarks" / "page.py"
spec = importlib.util.spec_from_file_location("benchmarks_page", FILE)
page = importlib.util.module_from_spec(spec)
spec.loader.exec_module(page)


def line(axis, method):
    return page.record("scaling")["axes"][axis]["methods"][method]


@pytest.mark.parametrize("name", page.PAGES)
def test_the_page_shows_the_records(name):
    text = (page.DOCS / name).read_text()
    assert page.filled(name, text) == text


def test_a_page_without_one_of_the_tables_is_refused():
    with pytest.raises(ValueError, match="0 tables that begin with"):
        page.filled("speed.md", "# Speed\n")


def test_the_summary_is_what_the_records_say():
    said = " ".join((page.DOCS / "speed.md").read_text().split())
    span = lambda ratios: f"{min(ratios):.1f} to {max(ratios):.1f} times as long"
    toy, networks, card = page.record("rounds"), page.record("networks"), page.record("networks", "cuda")
    loops = [toy[name]["ratio"] for name in page.METHODS]
    assert f"takes {span(loops)}" in said
    assert span([networks[name]["ratio"] for name in ("mlp/fedavg", "cnn/fedavg")]) in said
    bare = [card[name]["ratio" if "decomfl" in name else "ratio_lean"] for name in card if name != "environment"]
    assert span(bare) in said


def test_every_piece_of_the_profile_is_a_part():
    pieces = [piece for pieces in page.PARTS.values() for piece in pieces]
    assert sorted({"round", *pieces}) == sorted(page.record("profile")["ssf-toy/ssf"])


def test_the_records_are_what_the_page_says_of_them():
    rounds = page.record("rounds")["ssf-toy/fedavg"]
    assert 2.5 < page.parts()["FedAvg"]["gradients"] / rounds["limit"] < 3.5
    assert line("N", "FedAvg")["exponents"][0] < 0.15
    assert line("d", "FedAvg")["exponents"][0] < 0.3
    for method in ("FedAvg", "SSF", "DeComFL"):
        assert 0.8 < line("d", method)["exponents"][2] < 1.2
    for method in ("SSF", "FedSub"):
        assert line("r", method)["exponents"][0] < 0.25
    assert line("r", "FedSub")["exponents"][2] > line("r", "SSF")["exponents"][2]
    said = " ".join((page.DOCS / "speed-details.md").read_text().split())
    amd, intel = page.record("tried"), page.record("tried-intel")
    ratio = lambda tried, name: tried[name]["ratio"]
    old = page.record("tried-without-amx")
    gathered = [ratio(tried, "gather") for tried in (amd, intel, old)]
    assert f"take {min(gathered):.1f} to {max(gathered):.1f} times as long" in said
    assert f"They take {ratio(amd, 'out'):.2f} of the time on AMD" in said
    assert f"{ratio(intel, 'out'):.2f} on Intel" in said
    assert f"a gradient takes {ratio(amd, 'rows'):.1f} times as long on the AMD" in said
    assert f"On an Intel one it takes {ratio(intel, 'rows'):.2f} times as long" in said
    plain, mixed = (f"{ratio(intel, name):.2f} times" for name in ("norm", "norm16"))
    assert f"takes {plain} as long in PyTorch's layout, in bfloat16 {mixed}" in said
    assert f"Float32 takes {ratio(intel, 'full16'):.1f} times as long for such a gradient on an Intel" in said
    assert f"and {ratio(amd, 'full16'):.1f} times on an AMD one with AVX512_BF16" in said
    assert f"neither takes {1 / ratio(old, 'full16'):.1f} times as long in bfloat16 as in float32" in said
    assert f"bfloat16 units take {ratio(old, 'wide16'):.2f} times as long for FedMUD's eight layers" in said
    assert f"On the AMD one they take {ratio(amd, 'wide16'):.2f} of the time" in said
    idle = {
        name: of["ours"]["median"] / of["round"]["median"]
        for name, of in page.record("dispatch").items()
        if "calls" in of
    }
    assert f"Faster Python could save at most {idle['fedavg']:.0%} and {idle['ssf']:.0%}." in said
    for axis, method in (("K", "FedAvg"), ("K", "SSF"), ("P", "DeComFL")):
        assert all(0.75 < exponent < 1.15 for exponent in line(axis, method)["exponents"][1:])


def test_what_gained_and_what_did_not():
    """The sentences below the table of before and after."""
    since = page.record("since")
    for name in ("cnn/fedavg", "cnn/decomfl", "evaluation"):
        assert since[name]["ratio_quartiles"][0] > 1.1
    for name in ("toy/fedavg", "toy/scaffold", "toy/ssf", "mlp/fedavg"):
        assert 0.95 < since[name]["ratio"] < 1.05
    assert round(1 / since["reproduce"]["ratio"] - 1, 2) == 0.07
    assert 1 < since["reproduce, wall"]["ratio"] < 1.15
    assert set(page.SINCE) == set(since) - {"environment"}
