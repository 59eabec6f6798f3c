"""Rounds as people run them: who takes part, and when a run ends."""

from collections import Counter

import pytest
import torch

from fedtheory import SSF, Available, Budget, Cyclic, EarlyStopping, FedAvg, Key, Quadratic, Scaffold, Weighted, run
from fedtheory.core.sampling import Sampler

N = 6
PROBLEM = Quadratic.random(n=N, d=4, key=Key(1))
METHODS = (FedAvg(0.2, 3), Scaffold(0.2, 3), SSF.haar(0.2, 3, 2))
TRACE = ((0, 1, 2), (2, 3), (1, 4, 5))
SAMPLERS = (Weighted(3, (1.0, 2.0, 3.0, 0.0, 1.0, 1.0)), Cyclic(4), Available(TRACE), Available(TRACE, 2))


class Seen(Sampler):
    """What another sampler picks, noted."""

    def __init__(self, inner):
        self.inner, self.rounds = inner, []

    def __repr__(self):
        return repr(self.inner)

    def pick(self, problem, t, key):
        self.rounds.append(self.inner.pick(problem, t, key))
        return self.rounds[-1]


def same(one, other):
    return torch.equal(one.x, other.x) and one.columns == other.columns


def refused(call, *parts):
    with pytest.raises((TypeError, ValueError)) as found:
        call()
    assert "\n" not in str(found.value)
    assert all(part in str(found.value) for part in ("Fix: ", *parts)), found.value


# Who takes part


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
@pytest.mark.parametrize("sampler", [Cyclic(N), Available((tuple(range(N)),)), Available(TRACE[:1] * 2, 9)])
def test_a_sampler_that_picks_all_is_the_run_without_one(method, sampler):
    """Or, of a trace with three clients, the run of a problem whose round is given to them."""
    everyone = len(sampler.pick(PROBLEM, 0, Key(0))) == N
    one, other = run(method, PROBLEM, 5, sampler=sampler), run(method, PROBLEM, 5)
    assert same(one, other) == everyone
    assert one["up_bytes"][-1] * N == other["up_bytes"][-1] * (N if everyone else 3)


@pytest.mark.parametrize("sampler", SAMPLERS, ids=repr)
def test_same_bits_for_the_same_seed_after_a_resume_and_one_by_one(sampler, tmp_path):
    options = {"sampler": sampler, "seed": 3, "dropout": 0.3}
    for method in METHODS:
        whole, folder = run(method, PROBLEM, 9, **options), tmp_path / method.name
        run(method, PROBLEM, 4, checkpoint=folder, **options)
        assert same(run(method, PROBLEM, 9, checkpoint=folder, **options), whole)
        alone = run(method, PROBLEM, 9, chunk=1, **options)
        torch.testing.assert_close(alone.x, whole.x, rtol=1e-12, atol=1e-12)
        assert not torch.equal(run(method, PROBLEM, 9, **options | {"seed": 4}).x, whole.x)


def test_a_checkpoint_of_another_sampler_is_refused(tmp_path):
    run(METHODS[0], PROBLEM, 2, sampler=Cyclic(3), checkpoint=tmp_path)
    refused(lambda: run(METHODS[0], PROBLEM, 3, sampler=Cyclic(2), checkpoint=tmp_path), "Cyclic")


def test_who_takes_part():
    seen = Seen(Cyclic(4))
    run(METHODS[0], PROBLEM, 3, sampler=seen)
    assert [ids.tolist() for ids in seen.rounds] == [[0, 1, 2, 3], [4, 5, 0, 1], [2, 3, 4, 5]]
    seen = Seen(Available(TRACE, 2))
    run(METHODS[0], PROBLEM, 30, sampler=seen)
    assert all(len(ids) == 2 and set(ids.tolist()) <= set(TRACE[t % 3]) for t, ids in enumerate(seen.rounds))
    assert {tuple(sorted(ids.tolist())) for ids in seen.rounds[::3]} == {(0, 1), (0, 2), (1, 2)}


def test_weights_are_the_probabilities_of_a_single_draw():
    """Within five deviations of the binomial law; a client that weighs nothing is never drawn."""
    weights, rounds = (4.0, 3.0, 2.0, 0.0, 1.0, 0.0), 4000
    drawn = Counter(int(Weighted(1, weights).pick(PROBLEM, t, Key(0).fold("round", t))) for t in range(rounds))
    for i, weight in enumerate(weights):
        p = weight / sum(weights)
        assert abs(drawn[i] - rounds * p) <= 5 * (rounds * p * (1 - p)) ** 0.5
    assert torch.equal(Weighted(2).pick(PROBLEM, 0, Key(0)), Weighted(2, (1.0,) * N).pick(PROBLEM, 0, Key(0)))


class Twice(Sampler):
    def pick(self, problem, t, key):
        return torch.tensor([1, 1])


@pytest.mark.parametrize(
    ("sampler", "parts", "fix"),
    [
        (Cyclic(7), ("sampler.sampled=7", "6 clients"), Cyclic(6)),
        (Weighted(2, (1.0, 1.0)), ("len(sampler.weights)=2",), Weighted(2, (1.0,) * 6)),
        (Weighted(3, (1.0, 1.0, 0.0, 0.0, 0.0, 0.0)), ("2 clients of positive weight",), Weighted(2)),
        (Weighted(1, (0.0,) * 6), ("sampler.weights", "a positive weight"), Weighted(1)),
        (Available(((0, 5), (0, 6))), ("sampler.trace[1]=[0, 6]", "from 0 to 5"), Available(((0, 5),))),
        (Twice(), ("Twice.pick=[1, 1]", "each once"), Cyclic(2)),
        ("cyclic", ("sampler='cyclic'", "Cyclic(S)"), Cyclic(3)),
    ],
)
def test_a_wrong_sampler_has_a_line_whose_fix_works(sampler, parts, fix):
    refused(lambda: run(METHODS[0], PROBLEM, 2, sampler=sampler), *parts)
    assert run(METHODS[0], PROBLEM, 2, sampler=fix)["round"] == [0, 1, 2]


def test_what_a_sampler_is_made_of():
    refused(lambda: Available(()), "trace=()")
    refused(lambda: Available(((0,), ())), "trace[1]=()", "leave out rounds")
    refused(lambda: Weighted(2, (1.0, -1.0)), "weights[1]=-1")
    refused(lambda: Cyclic(0), "sampled=0")
    refused(lambda: run(METHODS[0], PROBLEM, 2, sampled=3, sampler=Cyclic(3)), "sampled=3", "leave it out")
    assert Available([[0, 1], [2]]) == Available(((0, 1), (2,)))


# When a run ends


def test_early_stopping_counts_records_without_a_new_best():
    whole = run(METHODS[0], PROBLEM, 60)
    rule = EarlyStopping("error", patience=4)
    history = run(METHODS[0], PROBLEM, 60, stop=rule)
    errors, done = whole["error"], history["round"][-1]
    assert 4 < done < 60
    assert history["error"] == errors[: done + 1]
    assert history.stopped == repr(rule)
    assert min(errors[done - 3 : done + 1]) >= min(errors[: done - 3])
    assert whole.stopped is None
    assert run(METHODS[0], PROBLEM, 60, stop=EarlyStopping(patience=2, larger=True))["round"][-1] == 2
    assert run(METHODS[0], PROBLEM, 60, stop=EarlyStopping(patience=2, least=9.0))["round"][-1] == 2


def test_a_budget_ends_at_the_first_record_that_reaches_it():
    whole = run(METHODS[0], PROBLEM, 12, every=3)
    most = int(whole["up_bytes"][2] + whole["down_bytes"][2])
    for budget, done in ((most - 1, 6), (most, 6), (most + 1, 9)):
        history = run(METHODS[0], PROBLEM, 12, every=3, stop=Budget(bytes=budget))
        assert history["round"][-1] == done
    assert run(METHODS[0], PROBLEM, 12, stop=Budget(seconds=0.0))["round"] == [0, 1]
    assert run(METHODS[0], PROBLEM, 12, stop=[Budget(seconds=1e9), lambda history: len(history["round"]) == 4]).stopped


def test_a_run_that_stopped_stays_so_and_goes_on_under_another_rule(tmp_path):
    """Bit for bit as a run that never stopped."""
    whole, stop = run(METHODS[1], PROBLEM, 12, seed=2), lambda history: history["round"][-1] >= 5
    options = {"seed": 2, "checkpoint": tmp_path}
    for _ in range(2):
        stopped = run(METHODS[1], PROBLEM, 12, stop=stop, **options)
        assert stopped["round"] == [0, 1, 2, 3, 4, 5]
        assert stopped.stopped
    assert same(run(METHODS[1], PROBLEM, 12, **options), whole)


def test_what_a_rule_is_made_of():
    refused(Budget, "bytes=10**9")
    refused(lambda: EarlyStopping(patience=0), "patience=0")
    refused(lambda: run(METHODS[0], PROBLEM, 2, stop=EarlyStopping("accuracy")), "metric='accuracy'", "error")
    refused(lambda: run(METHODS[0], PROBLEM, 2, stop=3), "stop=3")


def test_a_rule_without_a_metric_is_refused_and_a_metric_may_be_named_bytes():
    def used_bytes(problem, x):
        return float(x.norm())

    refused(lambda: run(METHODS[0], PROBLEM, 9, metrics=(), stop=EarlyStopping()), "EarlyStopping.metric=None")
    history = run(METHODS[0], PROBLEM, 9, metrics=(used_bytes,), stop=EarlyStopping(patience=3, larger=True))
    assert history["round"][-1] == 9
    assert "used_bytes" in repr(history)
    assert Budget(bytes=2 * 10**9).bytes == 2 * 10**9
