"""Uploads from outside: what is wrong with them is said, and nothing has changed; absent clients change nothing."""

from dataclasses import fields, replace

import pytest
import torch
from cases import ALGORITHMS, leaves, quadratic, start
from each import each

from fedtheory import STC, Key, TopK, play_round, run
from fedtheory.core import engine
from fedtheory.core.engine import drain, map_leaves
from fedtheory.federation.admission import Refused, Upload, admit, ids

KEY = Key(0).fold("round", 3)


def arrivals(name: str, clients=(4, 1, 2)):
    """The server's state and message, and each client's upload, computed alone."""
    algorithm, problem = ALGORITHMS[name], quadratic()
    state = algorithm.init(problem, start(problem), Key(0))
    down = algorithm.address(algorithm.broadcast(state.server, KEY), torch.tensor(clients))
    uploads = []
    for i in clients:
        one = torch.tensor([i])
        own = engine.map_leaves(lambda leaf, one=one: leaf[one], state.own)
        uploads.append(Upload(i, 3, engine.run_clients(algorithm, problem, one, own, down, KEY)[0]))
    return algorithm, problem, state, down, uploads


@each(name=ALGORITHMS)
def test_admitted_uploads_are_the_round(name):
    algorithm, problem, state, down, uploads = arrivals(name)
    up = admit(uploads, 3, uploads[0].up, 5)
    assert ids(uploads).tolist() == [1, 2, 4]
    server, _ = algorithm.server(state.server, down, up, ids(uploads), KEY)
    backwards = uploads[::-1]
    other, _ = algorithm.server(state.server, down, admit(backwards, 3, uploads[0].up, 5), ids(backwards), KEY)
    assert all(torch.equal(a, b) for a, b in zip(leaves(server), leaves(other), strict=True)), "in any order"
    played = play_round(algorithm, problem, state, torch.tensor([4, 1, 2]), KEY)[0]
    torch.testing.assert_close(server.x, played.server.x, rtol=1e-12, atol=1e-14)


def damaged(up, change):
    """The upload with its first leaf changed."""
    name = fields(up)[0].name
    return replace(up, **{name: change(getattr(up, name).clone())})


def poison(leaf, value):
    leaf.flatten()[-1] = value
    return leaf


DAMAGE = {
    "nan": (lambda one: replace(one, up=damaged(one.up, lambda v: poison(v, torch.nan))), "holds nan"),
    "inf": (lambda one: replace(one, up=damaged(one.up, lambda v: poison(v, -torch.inf))), "holds -inf"),
    "huge": (lambda one: replace(one, up=damaged(one.up, lambda v: poison(v, -1e300))), "holds 1e+300, more than"),
    "short": (lambda one: replace(one, up=damaged(one.up, lambda v: v[..., :-1])), "shape"),
    "two rows": (lambda one: replace(one, up=damaged(one.up, lambda v: torch.cat([v, v]))), "shape"),
    "flat": (lambda one: replace(one, up=damaged(one.up, torch.flatten)), "shape"),
    "dtype": (lambda one: replace(one, up=damaged(one.up, torch.Tensor.float)), "dtype"),
    "list": (lambda one: replace(one, up=damaged(one.up, torch.Tensor.tolist)), "expected a tensor"),
    "bare": (lambda one: replace(one, up=torch.ones(1, 12)), "is a Tensor"),
    "stale": (lambda one: replace(one, round=2), "answers round 2"),
    "early": (lambda one: replace(one, round=4), "answers round 4"),
    "twice": (lambda one: replace(one, client=4), "came twice"),
    "below": (lambda one: replace(one, client=-1), "clients are 0 to 4"),
    "beyond": (lambda one: replace(one, client=999), "clients are 0 to 4"),
    "no id": (lambda one: replace(one, client=True), "clients are 0 to 4"),
}


@pytest.mark.parametrize("kind", DAMAGE)
@pytest.mark.parametrize("name", ["FedAvg", "SCAFFOLD II all", "FedSub CD", "SSF"])
def test_damaged_uploads_are_refused(name, kind):
    _, _, state, _, uploads = arrivals(name)
    damage, words = DAMAGE[kind]
    before = [leaf.clone() for leaf in leaves(state)]
    broken = [uploads[0], damage(uploads[1]), uploads[2]]
    with pytest.raises(Refused, match="round 3") as caught:
        admit(broken, 3, uploads[0].up, 5)
    assert words in str(caught.value)
    assert caught.value.client == broken[1].client
    assert all(torch.equal(a, b) for a, b in zip(before, leaves(state)))
    assert len(fields(admit([uploads[0], uploads[2]], 3, uploads[0].up, 5))) == len(fields(uploads[0].up))


@pytest.mark.parametrize("name", ["Topk", "STC"])
@pytest.mark.parametrize("wrong", [2**30, 12, -13, -(2**31)])
def test_positions_that_there_are_not_are_refused(name, wrong):
    """An index beyond the model would end the server's line, and the round of all others with it."""
    problem, algorithm = quadratic(5), {"Topk": TopK(0.05, 2, 0.3), "STC": STC(0.05, 2, 0.3, 0.3)}[name]
    state, key = algorithm.init(problem, problem.start(), Key(0)), Key(1)
    down = algorithm.broadcast(state.server, key)
    up, _ = drain(algorithm.client(problem, problem.clients, state.own, down, key))
    where = "index" if name == "Topk" else "code"
    at = getattr(up, where).clone()
    at[0, -1] = wrong if name == "Topk" or wrong != 12 else 13
    row = lambda u, i: map_leaves(lambda leaf: leaf[i : i + 1], u)
    good, bad = Upload(1, 3, row(up, 1)), Upload(0, 3, row(replace(up, **{where: at}), 0))
    assert len(getattr(admit([good], 3, good.up, 5, problem.d), where)) == 1
    with pytest.raises(Refused, match=rf"client 0 in round 3 refused: {where} holds .* expected -?\d+ to \d+"):
        admit([bad, good], 3, good.up, 5, problem.d)


@pytest.mark.parametrize(("size", "most"), [(1.0, torch.finfo(torch.float64).max ** 0.25), (1e75, 1e81)])
def test_an_entry_is_bounded_by_the_model(size, most):
    """By a million times the model's largest entry, where that is more than the fixed bound."""
    uploads = arrivals("FedAvg")[-1]
    filled = lambda value: replace(uploads[0], up=damaged(uploads[0].up, lambda leaf: leaf.fill_(value)))
    admit([filled(0.99 * most)], 3, uploads[0].up, 5, size=size)
    with pytest.raises(Refused, match="more than"):
        admit([filled(1.01 * most)], 3, uploads[0].up, 5, size=size)


def test_no_upload_at_all():
    with pytest.raises(ValueError, match="uploads"):
        admit([], 0, None, 5)


@pytest.mark.parametrize("name", [name for name in ALGORITHMS if name != "TAMUNA"])
def test_a_client_that_drops_out_is_a_client_not_sampled(name):
    """The state after a round in which clients received the model but did not answer is that of the others' round;
    only the download differs. TAMUNA's clients were told of those others (`test_newer.py`)."""
    algorithm, problem = ALGORITHMS[name], quadratic(6)
    for seed in range(2):
        states, costs = [], []
        for dropped in ((), (0, 3)):
            state = algorithm.init(problem, start(problem), Key(seed))
            for t in range(3):
                key = Key(seed).fold("round", t)
                clients = torch.tensor([0, 2, 3, 5]) if dropped else torch.tensor([2, 5])
                state, _, traffic = play_round(algorithm, problem, state, clients, key, dropped=dropped)
                costs.append((traffic.up, traffic.down.bytes))
            states.append(state)
        assert all(torch.equal(a, b) for a, b in zip(leaves(states[0]), leaves(states[1])))
        assert costs[3][0] == costs[0][0]
        paid_anyway = getattr(algorithm, "absent", "") == "at once"  # there every client downloads every round
        assert costs[3][1] == costs[0][1] if paid_anyway else costs[3][1] > costs[0][1]


def test_dropout_in_runs():
    algorithm, problem = ALGORITHMS["SSF"], quadratic(6)
    plain, some = (run(algorithm, problem, 30, sampled=4, dropout=p) for p in (0.0, 0.5))
    assert some["up_scalars"][-1] < 0.75 * plain["up_scalars"][-1]
    again = run(algorithm, problem, 30, sampled=4, dropout=0.5)
    assert torch.equal(some.x, again.x)
    assert run(algorithm, problem, 5, sampled=2, dropout=1.0)["up_scalars"][-1] > 0  # one client always answers
    for bad in (-0.1, 1.5, "x"):
        with pytest.raises((ValueError, TypeError), match="dropout"):
            run(algorithm, problem, 1, dropout=bad)
    with pytest.raises(ValueError, match="dropped"):
        play_round(
            algorithm, problem, algorithm.init(problem, start(problem), KEY), torch.tensor([1]), KEY, dropped=[1]
        )
