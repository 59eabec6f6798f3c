"""The comparison of all methods: same conditions for all, and no order claimed that the intervals do not show."""

import copy
import json
import math
from contextlib import nullcontext
from dataclasses import replace
from functools import cache

import pytest
import torch

from fedtheory import FedAvg, ImageClassification, Quadratic, Scaffold, Supervised, cli, compare
from fedtheory.cli import figures as commands
from fedtheory.compare import ABSENT, FAMILIES, MEDIUM, METHODS, QUICK, RATIO, TUNING_SEED, methods
from fedtheory.core import registry
from fedtheory.core.key import Key
from fedtheory.core.problem import Problem
from fedtheory.papers import store
from fedtheory.papers.frontier import items as frontier
from fedtheory.problems.models import perceptron
from fedtheory.problems.models.networks import network
from fedtheory.problems.validation import validation
from fedtheory.running import meter, records
from fedtheory.running.simulate import run

ENTRIES = registry.methods().values()
PLAIN = [task for task in MEDIUM.values() if not task.files]
TINY = replace(QUICK["digits"], rounds=20, rates=(0.3, 0.01), options={**QUICK["digits"].options, "clients": 5})


class Here:
    """Runs specs in this process, or answers what it is told to."""

    def __init__(self, answer=lambda spec: store.execute(spec, "cpu")):
        self.answer, self.specs, self.leads = answer, [], True

    def __call__(self, specs):
        self.specs += specs
        return {spec: self.answer(spec) for spec in specs}

    def close(self):
        pass

    def provenance(self):
        return {"count": len(self.specs), "made with": {}, "data": {}}

    def said(self, runs):
        return []


def told(metric, value, diverged=None):
    """A result whose metric ends at a value."""
    return {"columns": {"round": [0, 1, 2, 3], metric: [0.1, value, value, value]}, "diverged": diverged}


def row(name, low, high, *, metric="accuracy", **costs):
    ends = {"quality": (low + high) / 2, "low": low, "high": high, "seeds": 5}
    return {"method": name, "metric": metric, **ends, **costs}


class TestMethods:
    def test_every_algorithm_is_compared_or_said_to_be_absent(self):
        built = {type(method.make(MEDIUM["digits"], 0.1, RATIO)) for method in METHODS.values()}
        known = {entry.name: type(entry.make(compare.Asked(MEDIUM["digits"], 0.1, RATIO))) for entry in ENTRIES}
        assert built == {kind for name, kind in known.items() if name not in ABSENT}

    @pytest.mark.parametrize("name", METHODS)
    def test_a_method_is_built_wherever_it_is_said_to_run(self, name):
        """Same rate and local steps for all; on its tasks it starts, and elsewhere it is not offered."""
        method = METHODS[name]
        assert method.family in FAMILIES
        for task in PLAIN:
            if task.offers(method.needs):
                algorithm = method.make(task, 0.1, RATIO)
                assert algorithm.lr == 0.1
                assert getattr(algorithm, "local_steps", task.local_steps) == task.local_steps
                problem = frontier.spec(task, algorithm, 0).build("cpu")
                algorithm.init(problem, problem.start(), Key(0))
                assert problem.layout == task.layout

    def test_needs(self):
        count = {task.name: sum(task.offers(method.needs) for method in METHODS.values()) for task in PLAIN}
        lacking = {name: len(METHODS) - n for name, n in count.items()}
        network, matrices = (sum(m.needs == need for m in METHODS.values()) for need in ("networks", "matrices"))
        assert lacking == {"quadratics": network + matrices, "regression": network, "digits": 0}

    @pytest.mark.parametrize("task", PLAIN, ids=lambda task: task.name)
    def test_the_budget_is_the_same(self, task):
        """As many learning rates, as far apart, for every method."""
        for method in METHODS.values():
            rates = method.rates(task)
            assert len(set(rates)) == len(task.rates)
            assert [r / s for r, s in zip(rates, task.rates)] == pytest.approx([method.rate] * len(rates), rel=0.05)

    def test_compression_is_noticed(self):
        compressing = {name for name, method in METHODS.items() if method.compresses(MEDIUM["digits"])}
        assert {"Top-k", "FedMUD", "SSF", "FedSub"} <= compressing
        assert compressing.isdisjoint({"FedAvg", "SCAFFOLD", "SignSGD", "DeComFL"})

    def test_names(self):
        assert [method.name for method in methods(["SSF", "FedAvg"])] == ["SSF", "FedAvg"]
        assert methods() == list(METHODS.values())
        with pytest.raises(ValueError, match=r"methods='FedFoo': expected one of 'FedAvg', .*Fix: "):
            methods(["FedFoo"])


class TestRuns:
    def test_methods_meet_the_same_conditions(self):
        """Of one seed, specs differ in the algorithm alone; the tuning seed is not used again."""
        runner, some = Here(lambda spec: told("accuracy", 0.5)), methods(["FedAvg", "SSF", "DeComFL"])
        tuned, _ = store.measured(runner, frontier.tune(TINY, some))
        assert {spec.seed for spec in runner.specs} == {TUNING_SEED}
        assert {spec.problem for spec in runner.specs} == {"validation"}
        runner.specs.clear()
        store.measured(runner, frontier.play(TINY, some, tuned, 3))
        assert [spec.seed for spec in runner.specs] == [0, 0, 0, 1, 1, 1, 2, 2, 2]
        first = FedAvg(0.1, 1)
        assert {replace(s, algorithm=first, seed=0) for s in runner.specs} == {frontier.spec(TINY, first, 0)}

    @pytest.mark.parametrize(("problem", "metric", "best"), [("images", "accuracy", 0.3), ("ssf", "loss", 0.01)])
    def test_the_best_rate_that_did_not_diverge_is_taken(self, problem, metric, best):
        task = replace(TINY, problem=problem, rates=(1.0, 0.3, 0.1, 0.01))
        values = {1.0: 0.95, 0.3: 0.9, 0.1: 0.5, 0.01: 0.2, 0.0033: 0.4}

        def answer(spec):
            return told(metric, values[spec.algorithm.lr], [0, 0, "Up.dy"] if spec.algorithm.lr == 1.0 else None)

        tuned, table = store.measured(Here(answer), frontier.tune(task, methods(["FedAvg"])))
        assert tuned == {"FedAvg": (best, False)}
        assert [line["rate"] for line in table if line["best"]] == [best]
        assert math.isnan(table[0]["value"])

    @pytest.mark.parametrize(
        ("peak", "tried"),
        [
            (0.1, [0.3, 0.1, 0.03]),
            (0.3, [1.0, 0.3, 0.1, 0.03]),
            (1.0, [3.0, 1.0, 0.3, 0.1, 0.03]),
            (3.0, [10.0, 3.0, 1.0, 0.3, 0.1, 0.03]),
            (99.0, [10.0, 3.0, 1.0, 0.3, 0.1, 0.03]),
            (0.001, [0.3, 0.1, 0.03, 0.01, 0.003, 0.001]),
        ],
    )
    def test_a_grid_goes_on_beyond_its_best_end_and_no_further(self, peak, tried):
        """Up to three further values, one at a time; the end is named only where even those do not suffice."""
        task, far = replace(TINY, rates=(0.3, 0.1, 0.03)), lambda rate: abs(math.log(rate / peak))
        runner = Here(lambda spec: told("accuracy", math.exp(-far(spec.algorithm.lr))))
        tuned, table = store.measured(runner, frontier.tune(task, methods(["FedAvg", "SCAFFOLD"])))
        for name in ("FedAvg", "SCAFFOLD"):
            assert [line["rate"] for line in table if line["method"] == name] == tried
            assert tuned[name] == (min(tried, key=far), min(tried, key=far) in (tried[0], tried[-1]))
        assert len(runner.specs) == 2 * len(tried)

    def test_a_table_has_what_history_counted(self):
        """Bytes are History's, and a method's runs are those of the seeds."""
        some = methods(["FedAvg", "FedMUD"])
        tuned, runner = {method.name: (0.1, False) for method in some}, Here()
        runs = store.measured(runner, frontier.play(TINY, some, tuned, 2))
        (line, mud) = frontier.task_rows(TINY, some, tuned, runs)
        problem = frontier.spec(TINY, FedAvg(0.1, 5), 0).build("cpu")
        history = run(FedAvg(0.1, 5), problem, 20, sampled=5, metrics=("accuracy",))
        assert line["up"] == history["up_bytes"][-1] / 1e6 == 20 * 5 * 4 * problem.d / 1e6
        assert (line["seeds"], line["diverged"]) == (2, 0)
        first = frontier.last({"columns": history.columns, "diverged": None}, "accuracy")
        assert runner.answer(runner.specs[0])["columns"]["accuracy"] == history["accuracy"]
        assert line["low"] <= 100 * first <= line["high"]
        assert mud["up"] < line["up"] / 15

    def test_dropout_reaches_the_run(self):
        easy, hard = (
            store.execute(frontier.spec(replace(TINY, dropout=p), FedAvg(0.1, 5), 0), "cpu") for p in (0, 0.9)
        )
        assert hard["columns"]["down_bytes"] == easy["columns"]["down_bytes"]
        assert hard["columns"]["up_bytes"][-1] < easy["columns"]["up_bytes"][-1] / 2

    def test_validation_images_are_not_trained_on(self):
        options = {"clients": 5, "partition": "dirichlet", "alpha": 0.3, "batch": 32}
        whole = ImageClassification.load("digits", "mlp", Key(3), **options)
        problem = validation("digits", "mlp", Key(3), **options)
        assert torch.equal(problem.start(), whole.start())
        kept = torch.cat(problem.parts)
        assert [len(part) for part in problem.parts] == [len(part) - len(part) // 5 for part in whole.parts]
        assert len(kept) + len(problem.test[1]) == len(whole.labels)
        rest = torch.tensor(sorted(set(range(len(whole.labels))) - set(kept.tolist())))
        assert sorted(problem.test[1].tolist()) == sorted(whole.labels[rest].tolist())
        assert all(set(own.tolist()) <= set(part.tolist()) for own, part in zip(problem.parts, whole.parts))

    def test_products_of_onednn_are_counted(self, monkeypatch):
        """As many as of the products that PyTorch's counter knows."""
        of = network("mlp", (1, 28, 28), 10)
        given = torch.zeros(1, of.layout.size), torch.zeros(1, 4, 784), torch.zeros(1, 4, dtype=torch.long)
        work = lambda: perceptron.gradient(of, *given, torch.full((4,), 0.25))
        whole = meter.multiplications(work)
        monkeypatch.setattr(perceptron, "LINEAR", None)
        assert meter.multiplications(work) == whole > 0

    def test_a_client_is_metered(self):
        """SCAFFOLD's client also holds c, c_i, their difference, and two sums at the worst moment; data are free."""
        d, K = 40, 3
        problem = Quadratic.random(4, d, Key(0))
        metered = {}
        for algorithm in (FedAvg(0.1, K), Scaffold(0.1, K)):
            state = run(algorithm, problem, 2, metrics=()).state
            before = state.server.x.clone()
            metered[algorithm.name] = meter.client(algorithm, problem, state, Key(1))
            assert torch.equal(state.server.x, before)
        assert {one.products for one in metered.values()} == {K * d * d}
        assert metered["SCAFFOLD"].memory - metered["FedAvg"].memory == 5 * 8 * d
        images = frontier.spec(TINY, algorithm := FedAvg(0.1, K), 0).build("cpu")
        state = algorithm.init(images, images.start(), Key(0))
        assert meter.client(algorithm, images, state, Key(1)).memory < images.images.nbytes
        assert meter.peak_bytes(lambda: problem.H[:1], [problem.H]) == 0
        assert meter.peak_bytes(lambda: problem.H[:1]) == problem.H.nbytes


class TestOrder:
    def test_overlapping_intervals_share_a_place(self):
        rows = [row("a", 90, 95), row("b", 94, 96), row("c", 80, 85), row("d", math.nan, math.nan)]
        assert frontier.ranks(rows) == [(1, 2), (1, 2), (3, 3), (4, 4)]
        errors = [row("a", 0.1, 0.2, metric="error"), row("b", 0.3, 0.4, metric="error")]
        assert frontier.ranks(errors) == [(1, 1), (2, 2)]
        assert frontier.ranks([row("a", 1, 3), row("b", 2, 4), row("c", 3.5, 5)]) == [(2, 3), (1, 3), (1, 2)]

    def test_one_seed_decides_nothing(self):
        """But that a method diverged."""
        rows = [row("a", 90, 90, seeds=1), row("b", 80, 80, seeds=1), row("c", math.nan, math.nan, seeds=1)]
        assert frontier.ranks(rows) == [(1, 2), (1, 2), (3, 3)]

    def test_dominated_is_what_a_cheaper_method_surely_beats(self):
        rows = [row("cheap", 80, 82, up=1.0), row("dear", 90, 92, up=9.0), row("beaten", 70, 72, up=2.0)]
        rows += [
            row("equal", 79, 81, up=5.0),
            row("lost", math.nan, math.nan, up=0.1),
            row("never", 99, 99, up=math.inf),
        ]
        assert frontier.undominated(rows, "up") == [True, True, False, True, False, False]

    def test_reached(self):
        task = replace(TINY, level=0.5)
        rounds = {"round": [0, 5, 10], "accuracy": [0.1, 0.5, 0.4], "error": [1.0, 0.6, 0.5]}
        assert frontier.reached(task, {"columns": rounds}) == 5
        assert frontier.reached(replace(task, problem="ssf"), {"columns": rounds}) == 10
        assert frontier.reached(replace(task, level=0.9), {"columns": rounds}) == math.inf

    def test_quality_and_loss(self):
        """Accuracies in points; errors by their logarithm."""
        assert frontier.quality(TINY, [told("accuracy", 0.5), told("accuracy", 0.7)])[0] == pytest.approx(60)
        convex = replace(TINY, problem="ssf")
        mean, low, high = frontier.quality(convex, [told("error", 0.01), told("error", 1.0)])
        assert mean == pytest.approx(0.1)
        assert low * high == pytest.approx(0.01)
        assert frontier.loss(TINY, told("accuracy", 0.9), told("accuracy", 0.6)) == pytest.approx(30)
        assert frontier.loss(convex, told("error", 0.01), told("error", 1.0)) == pytest.approx(2)
        assert math.isnan(frontier.loss(TINY, told("accuracy", 0.9), told("accuracy", 0.6, [0, 0, "Up.dy"])))

    def test_a_table_takes_a_further_method_without_running_the_others_again(self, monkeypatch):
        """A method added to a finished table gives the table of all; places and fronts are of all, too."""
        monkeypatch.setitem(frontier.TASKS["quick"], "digits", TINY)
        two, three = methods(["FedAvg", "FedMUD"]), methods(["FedAvg", "FedMUD", "SSF"])
        once = cache(lambda spec: store.execute(spec, "cpu"))
        answer = lambda spec: copy.deepcopy(once(spec))
        before = store.measured(Here(answer), frontier.measure_task("digits", two, "quick", 2))
        runner = Here(answer)
        grown = store.measured(runner, frontier.measure_task("digits", three, "quick", 2, before.table))
        assert {type(spec.algorithm).__name__ for spec in runner.specs} == {"SSF"}
        whole = store.measured(Here(answer), frontier.measure_task("digits", three, "quick", 2))
        assert grown.table == whole.table
        assert list(grown.table[0]) == list(whole.table[0])
        assert grown.notes == whole.notes


class TestItems:
    def test_a_sweep_loses_against_its_easiest_value(self):
        """Told to lose ten points at every step; the compression sweep leaves out what does not compress."""
        sizes = {}

        def answer(spec):
            step = frontier.SWEEPS["participants"].values.index(spec.sampled) if spec.problem == "images" else 0
            sizes[spec.sampled] = spec
            return told("accuracy", 0.9 - 0.1 * step + 0.001 * spec.seed)

        some = methods(["FedAvg", "SSF"])
        result = store.measured(Here(answer), frontier.measure_sweep("participants", some, "quick", 2))
        assert [line["lost"] for line in result.table if line["method"] == "SSF"] == pytest.approx([0, 10, 20])
        assert [line["lost_low"] for line in result.table if line["method"] == "SSF"] == pytest.approx([0, 10, 20])
        result = store.measured(
            Here(lambda spec: told("accuracy", 0.5)), frontier.measure_sweep("compression", some, "quick", 2)
        )
        assert {line["method"] for line in result.table} == {"SSF"}
        assert any("compress nothing: FedAvg" in note for note in result.notes)

    @pytest.mark.parametrize("name", frontier.SWEEPS)
    def test_a_sweep_passes_through_its_task(self, name):
        """One of its values is the task itself: its runs are found again."""
        sweep, base = frontier.SWEEPS[name], MEDIUM[frontier.SWEEPS[name].task]
        same = [value for value in sweep.values if value == RATIO or sweep.change(base, value) == base]
        assert len(same) == (len(sweep.values) if sweep.ratio else 1)

    def test_what_is_not_defined_is_said(self):
        here, said = frontier.divided(MEDIUM["quadratics"], methods())
        assert "need networks: FedGen, FedNTD, MOON; need matrices: Fed-SB, FedEx-LoRA, FedFTG, FedHM, " in said[0]
        assert said[0].endswith("one trainer, so nothing crosses: MeZO.")
        assert len(here) + said[0].count(", ") - 1 + 2 == len(METHODS)  # a comma between two of a group
        assert "compression" not in frontier.names("quick", methods(["FedAvg"]))
        assert "mnist" not in frontier.names("quick", methods())

    @pytest.mark.parametrize("name", ["digits", "ranks", "tuning", "lag", "compression"])
    def test_tables_are_drawn(self, name, tmp_path):
        """From the saved table alone, also where a method diverged."""

        def answer(spec):
            metric = spec.metrics[0]
            at = told(
                metric, 0.5 + 0.01 * spec.seed % 0.3, [1, 0, "Up.u"] if type(spec.algorithm).__name__ == "SSF" else None
            )
            at["columns"] |= {"up_bytes": [0, 1, 2, 3e6], "down_bytes": [0, 1, 2, 4e6]}
            return at | {"memory": 1000, "products": 5000}

        item = frontier.some(name, methods(["FedAvg", "SSF", "FedMUD"]))
        result = store.measured(Here(answer), item.measure("quick", 2))
        store.save(tmp_path, item, result, "quick", 2, 0.0, "cpu")
        table = records.load(tmp_path, item.name)["table"]
        figure = item.draw(table)
        assert all(axes.get_xlabel() or axes.texts for axes in figure.axes)
        assert len(frontier.lines(table)[1]) > 0


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (("--methods", "FedFoo"), "methods='FedFoo'"),
        (("--tasks", "poems"), "tasks='poems'"),
        (("--tasks", "mnist"), "tasks='mnist'"),
        (("--methods", "FedAvg", "--tasks", "compression"), "tasks='compression'"),
        (("--seeds", "0"), "seeds=0"),
        (("--workers", "0"), "workers=0"),
        (("--out", "/dev/null/x"), "out='/dev/null/x'"),
    ],
)
def test_bad_input_is_one_line_with_a_fix(capsys, words, named):
    assert cli.main(["compare", *words]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert named in err
    assert "expected" in err
    assert "Fix:" in err


def test_compare_on_the_command_line(capsys, monkeypatch, tmp_path, inline):
    """JSON of the whole record; a part of the methods never takes the place of a comparison of all."""
    monkeypatch.setitem(compare.QUICK, "quadratics", replace(QUICK["quadratics"], rounds=20))
    words = [
        "compare",
        "--methods",
        "FedAvg",
        "SCAFFOLD",
        "--tasks",
        "quadratics",
        "--out",
        str(tmp_path),
        "--seeds",
        "2",
        "--workers",
        "1",
    ]
    assert cli.main([*words, "--json"]) == 0
    (record,) = json.loads(capsys.readouterr().out)
    assert [line["method"] for line in record["table"]] == ["FedAvg", "SCAFFOLD"]
    assert (record["scale"], record["seeds"]) == ("quick", [0, 1])
    assert (tmp_path / "some/frontier/quadratics.png").exists()
    assert not (tmp_path / "frontier").exists()
    assert cli.main(words) == 0
    out = capsys.readouterr().out
    assert "Not on quadratics" not in out.split("MeZO")[1]
    assert "no order is claimed" in out
    assert "leaves out" not in out


@pytest.mark.parametrize(("scale", "size"), [("quick", "32 x 4"), ("medium", "100 x 10")])
def test_the_quick_scale_says_what_it_leaves_out(scale, size, capsys, monkeypatch, tmp_path):
    """One bar for all items; the sweeps and the table of rates are run at the medium scale or by name."""
    bars, made = [], []
    monkeypatch.setattr(commands, "tqdm", lambda **given: bars.append(given["desc"]) or nullcontext())
    monkeypatch.setattr(commands, "together", lambda runner, items, *rest: made.extend(items))
    assert cli.main(["compare", "--scale", scale, "--out", str(tmp_path)]) == 0
    out, titles = capsys.readouterr().out, {item.name.removeprefix("frontier/"): item.title for item in made}
    assert bars == ["compare"]
    assert titles["regression"] == f"Matrix regression, {size}"
    absent = {*frontier.SWEEPS, "tuning"}
    assert {"quadratics", "digits", "ranks"} <= set(titles)
    assert absent.isdisjoint(titles) if scale == "quick" else absent <= set(titles)
    assert all(name in out for name in (*absent, "mnist", "cifar10")) == (scale == "quick")


def test_a_task_at_the_quick_scale_has_the_layout_of_its_problem():
    for task in QUICK.values():
        assert frontier.spec(task, FedAvg(0.1, 1), 0).build("cpu").layout == task.layout


def regression(key, device, options):
    """A module whose solution is not known."""
    x = torch.randn(40, 3, generator=key.generator())
    return Supervised(torch.nn.Linear(3, 1), torch.nn.MSELoss(), list(zip(x.split(20), x[:, :1].split(20))))


def images(key, device, options):
    return ImageClassification.load("digits", "mlp", key, clients=3)


def quadratics(key, device, options):
    return Quadratic.random(4, 3, key)


@pytest.mark.parametrize(
    ("make", "judged", "networks"),
    [(regression, "loss", False), (images, "accuracy", True), (quadratics, "error", False)],
)
def test_a_problem_of_another_distribution_is_judged_by_what_is_known_of_it(
    make, judged, networks, monkeypatch, tmp_path
):
    """And a run on it is kept, with what it read from files."""
    offer = registry.Offer("theirs", Problem, make, rates=(0.1,), rounds=20)
    task = compare._further(offer)
    assert (task.metric, task.offers("networks")) == (judged, networks)
    monkeypatch.setitem(store.BUILDERS, "theirs", store._further(offer))
    run = frontier.spec(task, FedAvg(0.1, 2), 0)
    runner = store.Runner(tmp_path, workers=1)
    found, heads = runner.begin([run])
    assert found == {}
    kept = runner.keep(heads[run], store.execute(run, "cpu"))
    assert math.isfinite(kept["columns"][judged][-1])
    assert runner.begin([run])[0].keys() == {run}
