"""What crosses, and what it costs. Every count is made a second time here, by hand, from the sizes alone.

The model is one matrix with m = 6 rows and 2 columns, so d = 12; a rank-2 subspace of it has r = 2 * 2 = 4 coordinates.
A number takes b bytes (8 or 4), a seed takes 8; P itself would take 6 * 2 numbers.

FedSub's seeds. A client's first round: P^k alone, for a dual of zero is zero in any coordinates. After a round it turns
its dual to P^{k+1}, which the reply brings with the mean of B. Back after `lag` rounds it has P^{t-lag+1} and lacks
P^{t-lag+2}, ..., P^t: lag - 1 seeds, all of which its dual passes through; none where lag = 1. Where P is drawn after
every second round, those of an even index count. absent="keep" needs P^t alone, if it lacks it. rotate=False turns
nothing, so the reply brings the mean without P^{k+1}, and P^t comes down every round; FedAvg-CD has no dual, no reply.
absent="step" needs P^t alone, too, and its own dual of 4 numbers, unless the client was there in the last round.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
from cases import (
    ALGORITHMS,
    COMPRESSED,
    ETA,
    FULL_SPACE,
    ROLLED,
    SIGNED,
    SUBSPACE,
    TWO_LAYERS,
    ZEROTH,
    K,
    quadratic,
    regression,
    start,
)
from each import each
from hypothesis import given, settings
from hypothesis import strategies as st

from fedtheory import SSF, Coordinate, FedSub, Gaussian, Identity, Key, Spherical, play_round, run
from fedtheory.algorithms.fedsub import Renewed
from fedtheory.algorithms.readings.fedsub import FedSubReading
from fedtheory.algorithms.readings.ssf import SSFReading
from fedtheory.core.loop import sample_clients
from fedtheory.core.message import Cost, Known, Replay, Seed, cost

# Per client and round: scalars up, then what comes down as (numbers, seeds). Numbers of 8 bytes whatever the precision
# (a step size that is sent) are counted as seeds are: 8 bytes each.
UP = {"FedAvg": 12, "SCAFFOLD": 24, "FedSub": 4, "FedSub I": 12, "SSF": 8, "SSF I": 24}
UP |= {"FedMUD": 8, "FedMUD F": 6, "FedLMT": 8, "FedPara": 16}  # what comes down: test_fedmud.py
UP |= {name: K * algorithm.perturbations for name, algorithm in ZEROTH.items()}  # what comes down: test_decomfl.py
UP |= {"FedProx": 12, "FedDyn": 12, "FedDC": 12}  # what comes down: test_regularised.py
UP |= {"FedZO": 12, "BAFFLE": 4, "BAFFLE forward": 3}  # the model's change; P slopes
UP |= {"FedHM": 8, "FedHM decay": 16, "ProjectedFedAvg": 12, "FedFTG": 12}  # (6 + 2) r numbers; the model's change
UP |= {"Scaffnew": 12, "FedBuff": 12, "FedCM": 12, "MimeLite": 24}  # what comes down: test_newer.py
UP |= {"FedKSeed": 2 * K, "RoLoRA": 2, "FFA-LoRA": 2, "FedEx-LoRA": 8, "FLoRA": 8}  # what comes down: test_newer*.py
UP |= {"FedSLoP": 4}  # r = 2 of 6 rows, two columns
UP |= {"Fed-SB": 12}  # in the first round
UP |= {"HiSo": 12}  # K P slopes
UP |= {"FLSS": 12}  # in the warm-up; what else crosses, and the signs: test_flss.py


def up_scalars(name):
    """The model's change (12); and c's (24); B_i (4); y_proj and c_proj (4 + 4); U_i and V_i."""
    return UP[name] if name in UP else UP[name.replace("FedAvg-CD", "FedSub CD").split()[0]]


def down(name, t, lag, b):
    """(numbers of b bytes, seeds, step sizes) that one client receives in round t, `lag` rounds after its last."""
    if name.startswith("FedAvg-CD"):
        return 12, 1, 0  # x and P^k
    if name.startswith("FedAvg"):
        return 12, 0, 0  # x
    if name.startswith("SCAFFOLD"):
        return 24, 0, 0  # x and c
    if name == "FedSub I":
        return 12 + 12, 0, 0  # P = I is no news
    if name == "FedSub unrotated":
        return 12 + 4, 1, 0
    if name.startswith("FedSub"):  # x and the mean of B; seeds
        stepped = name.startswith("FedSub stepped")
        two = name in ("FedSub CD signs", "FedSub kept") or stepped  # a new projector after every second round
        drawn = [s for s in range(1, t + 2) if s % 2 == 0 or not two]  # rounds that begin with a new projector
        lacked = 1 if lag is None else sum(t - lag + 1 < s <= t for s in drawn)
        if name == "FedSub kept" or stepped:
            lacked = min(lacked, 1)
        dual = 4 * (stepped and t > 0 and lag != 1)
        # decay: the rate; and its ratio where it changes, after every second round
        return 12 + 4 + dual, lacked + (t + 1 in drawn), (1 + (t % 2 == 1)) * (name == "FedSub decay")
    if name == "SSF I":
        return 12 + 12, 0, 0  # c and x: a step is as large as the model
    if name == "SSF CD kept" or lag is None:
        return 4 + 12, 1, 0  # P c and the whole model, and the seed of P
    dense, missed = 12 * b, lag * (4 * b + 8) - 8  # the first projector that it missed a step of is the last it used
    return (4 + 4 * lag, lag, 0) if missed < dense else (4 + 12, 1, 0)


@pytest.mark.parametrize("name", FULL_SPACE | SUBSPACE)
@each(dtype=[torch.float32, torch.float64], sampled=[5, 3, 1])
def test_traffic_by_hand(name, dtype, sampled):
    """Scalars, bytes and what seeds spared, summed over the clients of each round, in both precisions."""
    algorithm, problem, T = ALGORITHMS[name], quadratic(dtype=dtype), 9
    b, last_seen = dtype.itemsize, {}
    total = dict.fromkeys(("up_scalars", "up_bytes", "down_scalars", "down_bytes", "saved_bytes"), 0)
    expected = [dict(total)]
    for t in range(T):
        for i in sample_clients(5, sampled, Key(0).fold("round", t, "clients")).tolist():
            numbers, seeds, sizes = down(name, t, t - last_seen[i] if i in last_seen else None, b)
            total["up_scalars"] += up_scalars(name)
            total["up_bytes"] += up_scalars(name) * b
            total["down_scalars"] += numbers + seeds + sizes
            total["down_bytes"] += numbers * b + 8 * seeds + 8 * sizes
            total["saved_bytes"] += seeds * (12 * b - 8)
            last_seen[i] = t
        expected.append(dict(total))
    history = run(algorithm, problem, T, sampled=sampled, x0=start(problem))
    for column in total:
        assert history[column] == [row[column] for row in expected], column


def test_layers_are_counted_one_by_one():
    """Two layers of 4x2 and 3x1 at r = 2: 2*2 + 2*1 = 6 coordinates; P would take 4*2 + 3*2 = 14 numbers."""
    problem = quadratic(layout=TWO_LAYERS)
    history = run(FedSub(ETA, K, Spherical(2)), problem, 1, sampled=2)
    assert history["up_bytes"] == [0, 2 * 6 * 8]
    assert history["down_bytes"] == [0, 2 * (11 * 8 + 6 * 8 + 2 * 8)]
    assert history["saved_bytes"] == [0, 2 * 2 * (14 * 8 - 8)]


def test_an_upload_is_exactly_the_tensors_in_it():
    """The cost of what `play_round` returns is what was charged: nothing crosses beside the message."""
    elsewhere = {*SIGNED, *COMPRESSED, *ROLLED, "FlexLoRA", "FlexLoRA ranks"}  # in the tests of their own
    for name in ALGORITHMS.keys() - elsewhere:
        algorithm, problem = ALGORITHMS[name], quadratic()
        state = algorithm.init(problem, start(problem), Key(0))
        _, up, traffic = play_round(algorithm, problem, state, problem.clients, Key(0).fold("round", 0))
        numbers = sum(getattr(up, field).numel() for field in up.__dataclass_fields__)
        assert traffic.up == Cost(numbers, 8 * numbers) == Cost(5 * up_scalars(name), 40 * up_scalars(name))
        assert all(len(getattr(up, field)) == 5 for field in up.__dataclass_fields__)


def test_sizes_of_the_parts():
    assert cost(torch.zeros(3, 4)) == Cost(12, 48)
    assert cost(torch.zeros(3, dtype=torch.float64)) == Cost(3, 24)
    assert cost(torch.zeros(2), [None] * 7) == Cost(14, 56), "each of seven receivers pays"
    assert cost(0.5) == cost(7) == Cost(1, 8)
    assert cost(None) == cost(Known(torch.zeros(9))) == Cost()
    assert cost((1.0, torch.zeros(2), None)) == Cost(3, 16)
    assert cost(Seed(Key(0), lambda key: None, Cost(10, 80)), [1, 2]) == Cost(2, 16, 18, 144)
    assert Cost(1, 2, 3, 4) + Cost(10, 20, 30, 40) == Cost(11, 22, 33, 44)
    assert Cost(1, 2, 3, 4) * 3 == Cost(3, 6, 9, 12)


@dataclass(frozen=True)
class Letter:
    x: torch.Tensor
    extra: Any


@pytest.mark.parametrize(
    "stranger", [{"x": 1}, [1.0], "text", b"bytes", {1}, object(), np.zeros(3), lambda: 0, torch.float32, Key]
)
def test_a_type_without_a_size_is_refused(stranger):
    """Nothing crosses uncounted, not even inside a message."""
    for message in (stranger, (torch.zeros(2), stranger), Letter(torch.zeros(2), stranger)):
        with pytest.raises(TypeError):
            cost(message)


# Seed: the receiver makes the value from one integer


@pytest.mark.parametrize("projection", [Coordinate(2), Coordinate(2, signs=True), Spherical(2), Gaussian(2)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_seed_is_rebuilt_from_its_key(projection, dtype):
    """A receiver that knows only (seed, path), or only the 64-bit integer made of them, has the basis bit for bit."""
    key = Key(5).fold("round", 3, "P")
    message = projection.seed(TWO_LAYERS, key, dtype)
    assert cost(message).bytes == 8
    rebuilt = message.make(Key(key.seed, key.path))
    number = key.hash()
    assert 0 <= number < 2**63

    class Received(Key):  # all that crossed: one integer
        def generator(self):
            return torch.Generator().manual_seed(number)

    for other in (rebuilt, projection.draw(TWO_LAYERS, Received(0), dtype)):
        for mine, theirs in zip(message.value.matrices(), other.matrices(), strict=True):
            assert torch.equal(mine, theirs)


def test_identity_sends_no_seed():
    message = Identity().seed(TWO_LAYERS, Key(0), torch.float64)
    assert isinstance(message, Known)
    assert cost(message) == Cost()


def test_keys_are_names_and_not_sums():
    """Different paths give different streams; 1 and "1", ("a", 1) and ("a1",) are different names."""
    paths = [(), (1,), ("1",), ("a", 1), ("a1",), (1, "a"), ("a", 1, 0), ("a,1",), ("'a', 1",)]
    numbers = {Key(0).fold(*path).hash() for path in paths} | {Key(1).fold(*path).hash() for path in paths}
    assert len(numbers) == 2 * len(paths)
    assert Key(3).fold("a", 1) == Key(3).fold("a").fold(1)
    grid = {Key(seed).fold(i).hash() for seed in range(40) for i in range(40)}
    assert len(grid) == 1600, "no shared streams, as s (i + 17) + i would have them"
    for one, two in ((Key(0).fold("a"), Key(0).fold("a")), (Key(7), Key(7))):
        assert torch.equal(torch.rand(5, generator=one.generator()), torch.rand(5, generator=two.generator()))


# Replay: a client that was away rebuilds the model from the steps it is charged for

schedules = st.lists(st.sets(st.integers(0, 4), min_size=1, max_size=5), min_size=2, max_size=12)
REPLAYED = {
    "Haar": SSF.haar(ETA, K, 2, server_lr=0.7),
    "rank 1": SSFReading.haar(ETA, K, 1, server_control="all"),
    "coordinate, kept": SSFReading(ETA, K, Coordinate(2, "orthonormal"), refresh=3),
    "identity": SSF(ETA, K, Identity()),
}


def follow(x, steps, held):
    """x^{t+1} = P^T x_proj^{t+1} + (I - P^T P) x^t, P made from its key alone: SSF, lines 3 and 15, at the client.

    The first step's projector is the one that it was sent when it last took part.
    """
    for message, step in zip([held] + [step.P for step in steps[1:]], steps):
        P = message.value if isinstance(message, Known) else message.make(Key(message.key.seed, message.key.path))
        x = P.lift(step.x_proj) + (x - P.lift(P.project(x)))
    return x


@pytest.mark.parametrize("name", REPLAYED)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@given(schedule=schedules)
@settings(max_examples=15)
def test_a_client_that_was_away_rebuilds_the_model_bit_for_bit(name, dtype, schedule):
    """Random participation. Each client keeps the model of its last round and the steps it was charged for since.

    Following them gives the server's model to the last bit: server and client make the same operations. One step
    fewer does not. The first step is charged without its projector.
    """
    algorithm, problem, root = REPLAYED[name], regression(dtype=dtype), Key(3)
    state = algorithm.init(problem, start(problem), root)
    log, copies, last_seen = [], {}, {}
    for t, ids in enumerate(schedule):
        key = root.fold("round", t)
        down = algorithm.broadcast(state.server, key)
        log.append(down.x)
        for i in ids:
            lag = t - last_seen[i] if i in last_seen else None
            charged = cost(down.x, [lag])
            if lag is None:
                x = down.x.value
                assert charged == cost(x)
            else:
                steps = [log[s].step for s in range(last_seen[i] + 1, t + 1)]
                x = follow(copies[i][0], steps, copies[i][1])
                assert torch.equal(x, down.x.value)
                priced = sum((cost(step) for step in steps[1:]), cost(steps[0].x_proj))
                assert charged == min(cost(down.x.value), priced, key=lambda c: c.bytes)
                assert not torch.equal(follow(copies[i][0], steps[:-1], copies[i][1]), x)
            copies[i], last_seen[i] = (x, down.P), t
        lags = [None] * len(ids)
        state = play_round(algorithm, problem, state, torch.tensor(sorted(ids)), key, lags=lags)[0]


@given(st.integers(1, 40), st.integers(1, 40), st.lists(st.none() | st.integers(1, 30), max_size=9))
def test_a_replay_never_costs_more_than_the_value(size, step_size, lags):
    """Receivers pay for the steps they lack or for the value, whichever is less; without a copy, for the value.

    Of the first step a part may be known.
    """
    message = Replay(torch.zeros(size), (torch.zeros(step_size), 1), held=1)
    dense, step = 4 * size, 4 * step_size + 8
    each = [dense if lag is None else min(dense, step * lag - 8) for lag in lags]
    assert cost(message, lags).bytes == sum(each) <= dense * len(lags)
    assert cost(Replay(torch.zeros(size), None), lags).bytes == dense * len(lags)


# Renewed: a FedSub client that was away rebuilds its dual from the seeds it is charged for

TURNED = {
    "every round": FedSub(ETA, K, Spherical(2)),
    "every third round": FedSubReading(ETA, K, Coordinate(4, signs=True), refresh=3),
    "sums, two rates": FedSubReading(
        ETA, K, Gaussian(2), form="sums", decay_every=2, decay_factor=0.5, rescale_dual=True
    ),
    "kept": FedSubReading(ETA, K, Spherical(2), absent="keep"),
    "kept, every second round": FedSubReading(ETA, K, Spherical(2), absent="keep", refresh=2),
    "not rotated": FedSubReading(ETA, K, Spherical(2), rotate=False, refresh=2),
}


@pytest.mark.parametrize("name", TURNED)
@given(schedule=schedules)
@settings(max_examples=15)
def test_a_client_that_was_away_rebuilds_its_dual_and_the_projector(name, schedule):
    """Random participation. A client keeps its dual as line 12 left it, and the seeds that it was charged for.

    Turning the dual through them, and by the rates that came down, gives the dual that trains; the last seed is P^k.
    It is charged for no seed that it has already.
    """
    algorithm, problem, root = TURNED[name], quadratic(), Key(3)
    state = algorithm.init(problem, start(problem), root)
    every = [state.server.P]  # the seeds the server ever made, in order
    has, duals, rates, last_seen = {}, {}, {}, {}  # of each client; `has`: how many of the seeds it knows about
    for t, ids in enumerate(schedule):
        key = root.fold("round", t)
        down = algorithm.broadcast(state.server, key)
        for i in ids:
            lag = t - last_seen[i] if i in last_seen else None
            charged = cost(down.P, [lag]).bytes // 8
            new = every[len(every) - charged :] if charged else []
            if getattr(algorithm, "absent", "") == "keep" or not getattr(algorithm, "rotate", True) or lag is None:
                assert charged == (has.get(i) != len(every)), "the latest seed, unless it is there"
                dual = duals.get(i, torch.zeros_like(state.own.dual[i]))
            else:
                assert charged == len(every) - has[i], "all that it lacks"
                dual = duals[i]
                for old, seed in zip(every[has[i] - 1 :], new):
                    dual = seed.make(seed.key).project(old.make(old.key).lift(dual))
            if getattr(down, "lr", None) is not None and lag is not None:  # the rate fell meanwhile
                dual = dual * (down.lr / rates[i])
            torch.testing.assert_close(dual, state.own.dual[i], rtol=1e-10, atol=1e-13)
            has[i], last_seen[i] = len(every), t
        state = play_round(algorithm, problem, state, torch.tensor(sorted(ids)), key)[0]
        if state.server.P is not every[-1]:
            every.append(state.server.P)
        for i in ids:
            duals[i], rates[i] = state.own.dual[i].clone(), algorithm.rate(t + 1)
            if getattr(algorithm, "rotate", True):
                has[i] = len(every)  # the reply brought it


@pytest.mark.parametrize("absent", ["step", "step turned"])
@pytest.mark.parametrize("dual_mean", ["participants", "stored"])
@given(schedule=schedules)
@settings(max_examples=15)
def test_a_server_can_make_the_dual_that_it_sends_again(absent, dual_mean, schedule):
    """The server follows line 12 for all clients, from uploads alone; what it sends to who was away is what trains.

    Who was there in the last round is sent no dual, and has it: by the reply to its own upload.
    """
    algorithm = FedSubReading(ETA, K, Spherical(2), refresh=2, absent=absent, dual_mean=dual_mean)
    problem, root = quadratic(), Key(3)
    state = algorithm.init(problem, start(problem), root)
    duals = endpoints = torch.zeros_like(state.own.dual)
    present: set[int] = set()
    for t, ids in enumerate(schedule):
        key, clients, down = root.fold("round", t), torch.tensor(sorted(ids)), algorithm.broadcast(state.server, root)
        for i in ids:
            charged = cost(down.dual, [1 if i in present else None])
            assert charged.scalars == (0 if i in present or t == 0 else 4)
            torch.testing.assert_close(state.own.dual[i], duals[i], rtol=1e-10, atol=1e-13)
        P = state.server.P.value
        state, up, _ = play_round(algorithm, problem, state, clients, key)
        endpoints = endpoints.index_copy(0, clients, up.B)
        duals = duals + endpoints - (up.B if dual_mean == "participants" else endpoints).mean(0)
        if (t + 1) % 2 == 0:
            duals = state.server.P.value.project(P.lift(duals))
            if absent == "step turned":
                endpoints = state.server.P.value.project(P.lift(endpoints))
        present = set(ids)


@given(st.integers(0, 30), st.integers(1, 5), st.integers(0, 1), st.lists(st.none() | st.integers(1, 30), max_size=9))
def test_a_renewed_value_costs_a_seed_for_each_draw_it_missed(t, period, ahead, lags):
    """Draws at the multiples of the period; a client back after `lag` rounds had those up to t - lag + ahead."""
    lags = [lag for lag in lags if lag is None or lag <= t]
    seed = Spherical(2).seed(TWO_LAYERS, Key(0), torch.float64)
    missed = [1 if lag is None else sum(s % period == 0 for s in range(t - lag + ahead + 1, t + 1)) for lag in lags]
    assert cost(Renewed(seed, t, period, ahead, every=True), lags) == cost(seed) * sum(missed)
    assert cost(Renewed(seed, t, period, ahead), lags) == cost(seed) * sum(min(count, 1) for count in missed)
