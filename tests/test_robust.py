"""Runs can be repeated, cut, killed, resumed and damaged; what comes back is the same run or a clear refusal."""

import gc
import hashlib
import io
import json
import math
import os
import pickle
import random
import re
import signal
import struct
import sys
import threading
import zipfile
from copy import deepcopy
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
import torch
from cases import (
    ALGORITHMS,
    PROBLEMS,
    SLOPES,
    ZEROTH,
    K,
    leaves,
    logistic,
    quadratic,
    regression,
    relative,
    rounds,
    start,
)
from cases import problem as images
from each import each
from forked import fork

import fedtheory
from fedtheory import (
    SSF,
    Coordinate,
    FedAvg,
    FedSub,
    ImageClassification,
    Key,
    Layer,
    Layout,
    MatrixRegression,
    Quadratic,
    Scaffold,
    play_round,
    run,
)
from fedtheory.algorithms.fedavg import Server as FedAvgServer
from fedtheory.core import checks, files, loop
from fedtheory.core.algorithm import State
from fedtheory.core.history import Divergence, History
from fedtheory.core.loop import sample_clients
from fedtheory.core.schedule import Schedule, Steps
from fedtheory.problems.models.networks import network
from fedtheory.running import checkpoint, private_rows, records
from fedtheory.running.checkpoint import MAGIC, Checkpoint, Foreign, copy_tree


def same_bits(a, b):
    return all(torch.equal(x, y) for x, y in zip(leaves(a), leaves(b), strict=True))


# Repeating


@pytest.mark.parametrize("name", ALGORITHMS)
def test_same_seed_same_bits_whatever_the_global_generator(name):
    """A run is a function of its arguments: it neither reads nor moves torch's global generator."""
    torch.manual_seed(1)
    before = torch.get_rng_state()
    one = run(ALGORITHMS[name], regression(), 4, sampled=3, seed=4)
    assert torch.equal(torch.get_rng_state(), before)
    torch.manual_seed(2)
    two = run(ALGORITHMS[name], regression(), 4, sampled=3, seed=4)
    assert same_bits(one.state, two.state)
    assert one.columns == two.columns
    other = run(ALGORITHMS[name], regression(), 2, sampled=3, seed=5)
    assert not torch.equal(one.x, other.x)


@pytest.mark.parametrize("name", ALGORITHMS)
def test_a_round_can_be_replayed_alone(name):
    """play_round is a function of (state, key): round 6 again, from a copy of the state before it, bit for bit."""
    algorithm, problem, root = ALGORITHMS[name], regression(), Key(0)
    history = list(rounds(algorithm, problem, 5, sampled=3))
    before, clients = deepcopy(history[-1][1]), torch.tensor([0, 2, 3])
    one, two = (play_round(algorithm, problem, deepcopy(before), clients, root.fold("round", 5)) for _ in range(2))
    assert same_bits(one[0], two[0])
    assert same_bits(one[1], two[1])


@pytest.mark.parametrize("name", ALGORITHMS)
@each(problem=PROBLEMS)
def test_the_order_of_the_ids_changes_no_bit(name, problem):
    """The same clients in another order, one of them silent: the same state, bit for bit, the uploads in that order."""
    algorithm, problem, root = ALGORITHMS[name], PROBLEMS[problem](), Key(0)
    before, order = list(rounds(algorithm, problem, 2))[-1][1], torch.tensor([2, 0, 3, 1])
    ids, key, lags = torch.tensor([0, 1, 3, 4]), root.fold("round", 2), [1, 2, None, 1]
    for dropped in ((), (3,)):
        state, up, paid = play_round(algorithm, problem, deepcopy(before), ids, key, lags=lags, dropped=dropped)
        other, up_other, paid_other = play_round(
            algorithm,
            problem,
            deepcopy(before),
            ids[order],
            key,
            lags=[lags[i] for i in order.tolist()],
            dropped=dropped,
        )
        assert paid == paid_other
        assert same_bits(state, other)
        answered = [i for i in ids.tolist() if i not in dropped]
        given = [answered.index(i) for i in ids[order].tolist() if i not in dropped]
        for a, b in zip(leaves(up_other), leaves(up), strict=True):
            assert torch.equal(a, b[given])


@pytest.mark.parametrize("algorithm", [FedAvg(1e-3, 5), Scaffold(1e-3, 5), SSF.haar(1e-3, 5, 20)])
def test_threads_do_not_matter(algorithm):
    """One intra-op thread or two: the same model to 1e-12, on the problem of SSF's Table 1."""
    problem, found = MatrixRegression.ssf(2.0, Key(0)), []
    threads = torch.get_num_threads()
    try:
        for count in (1, 2):
            torch.set_num_threads(count)
            found.append(run(algorithm, problem, 2, sampled=10).x)
    finally:
        torch.set_num_threads(threads)
    assert relative(found[1], found[0]) < 1e-12


def test_sampled_clients_are_distinct_sorted_and_uniform():
    """Each of 5 clients is in a sample of 2 with probability 2/5, each pair with 1/10; |z| < 4.5."""
    draws = [tuple(sample_clients(5, 2, Key(0).fold("round", t, "clients")).tolist()) for t in range(5000)]
    assert all(a < b for a, b in draws)
    for pair in {(a, b) for b in range(5) for a in range(b)}:
        assert abs(draws.count(pair) - 500) / (5000 * 0.1 * 0.9) ** 0.5 < 4.5
    assert sample_clients(4, 4, Key(0)).tolist() == [0, 1, 2, 3]


def test_a_run_leaves_its_arguments_alone():
    problem = regression()
    x0, before = start(problem), [value.clone() for value in vars(problem).values() if isinstance(value, torch.Tensor)]
    kept = x0.clone()
    for algorithm in ALGORITHMS.values():
        run(algorithm, problem, 3, x0=x0)
        assert torch.equal(x0, kept)
    after = [value for value in vars(problem).values() if isinstance(value, torch.Tensor)]
    assert all(torch.equal(a, b) for a, b in zip(after, before, strict=True))


# Diverging

DIFFERENCES = [name for name in ZEROTH | SLOPES if "projection" not in name]  # they rest instead: test_decomfl.py


STILL = [
    "FedBAT",
    "FedBAT weighted",
    "FedBAT one way",
    "FedFTG",
]  # their alpha collapses to 0; Adam's steps are bounded


@pytest.mark.parametrize("name", [name for name in ALGORITHMS if name not in DIFFERENCES + STILL])
def test_divergence_stops_the_run_and_keeps_the_last_finite_state(name, request):
    """A huge step: no exception; the run says where it left the finite numbers and holds the state before that."""
    lr = 30.0 if name in ("FedMUD", "FedPara", "FLoRA") else 1000.0  # of these, uploads are finite and their sum is not
    algorithm, problem = replace(ALGORITHMS[name], lr=lr), quadratic()
    if name == "FedSub decay":
        algorithm = replace(algorithm, decay_factor=1.0)
    history = run(algorithm, problem, 2000, x0=start(problem))
    found = history.diverged
    assert found is not None
    assert found.client in range(problem.n)
    assert found.quantity.startswith("Up.")
    assert 0 < found.round < 2000
    assert history["round"] == list(range(found.round + 1))
    assert len({len(column) for column in history.columns.values()}) == 1
    assert not np.isnan(history["error"]).any()
    before = run(algorithm, problem, found.round, x0=start(problem), metrics=())
    assert same_bits(history.state.server, before.state.server)
    assert same_bits(history.state, before.state)


def test_divergence_names_the_client():
    """Client 2 alone has a curvature of 1e200; its upload is the first that is not finite."""
    H = torch.eye(3, dtype=torch.float64).repeat(4, 1, 1)
    H[2] *= 1e200
    b = torch.ones(4, 3, dtype=torch.float64)
    for algorithm, quantity in ((FedAvg(0.1, 3), "dy"), (Scaffold(0.1, 3), "dy"), (FedSub(0.1, 3, Coordinate(3)), "B")):
        history = run(algorithm, Quadratic(H, b), 5)
        assert history.diverged == Divergence(0, 2, f"Up.{quantity}")
        assert history["round"] == [0]
        sampled = run(algorithm, Quadratic(H, b), 50, sampled=1).diverged
        first = next(t for t in range(50) if sample_clients(4, 1, Key(0).fold("round", t, "clients")).tolist() == [2])
        assert sampled == Divergence(first, 2, f"Up.{quantity}"), "its id, not its place among the sampled"


def test_divergence_at_the_server():
    """Finite uploads times a huge server step: no client is to blame."""
    history = run(FedAvg(0.1, 1, server_lr=1e308), quadratic(spread=100.0), 5)
    assert history.diverged == Divergence(0, None, "Server.x")
    assert not history.x.any()


def test_large_entries_are_no_divergence():
    """Entries near the largest number whose sum overflows are still finite."""
    problem = Quadratic(torch.zeros(2, 3, 3, dtype=torch.float64), torch.zeros(2, 3, dtype=torch.float64))
    history = run(FedAvg(0.1, 1), problem, 3, x0=torch.full((3,), 1e308, dtype=torch.float64), metrics=())
    assert history.diverged is None
    assert history["round"] == [0, 1, 2, 3]


# Checkpoints


@pytest.mark.parametrize("name", ALGORITHMS)
def test_a_resumed_run_has_the_bits_of_an_unbroken_one(name, tmp_path):
    """Four rounds, then up to six from the checkpoint: the same state, the same history."""
    algorithm, problem, options = ALGORITHMS[name], regression(), {"sampled": 3, "seed": 2, "checkpoint": tmp_path}
    run(algorithm, problem, 4, **options, checkpoint_every=3)
    resumed = run(algorithm, problem, 6, **options, checkpoint_every=3)
    unbroken = run(algorithm, problem, 6, sampled=3, seed=2)
    assert same_bits(resumed.state, unbroken.state)
    assert resumed.columns == unbroken.columns
    again = run(algorithm, problem, 6, **options)
    assert same_bits(again.state, unbroken.state)
    assert again.columns == unbroken.columns


def test_resuming_off_the_recording_grid_records_no_extra_row(tmp_path, request):
    """A run cut at round 7 that records every fifth round has no row 7 when it is resumed, as if it were unbroken."""

    def cut(done):
        if done == 10:
            raise KeyboardInterrupt

    options = {"every": 5, "checkpoint": tmp_path, "checkpoint_every": 7}
    with pytest.raises(KeyboardInterrupt):
        run(FedAvg(0.05, 2), regression(), 20, **options, progress=cut)
    assert run(FedAvg(0.05, 2), regression(), 20, **options)["round"] == [0, 5, 10, 15, 20]


@pytest.fixture(scope="module")
def killed(tmp_path_factory):
    """What happened to runs that were killed, by how; in a process of its own, which forks them."""
    if not hasattr(os, "fork"):
        pytest.skip("needs fork and SIGKILL")
    folder = tmp_path_factory.mktemp("killed")
    out, err = folder / "out", folder / "err"

    def work():
        import kill_and_resume

        kill_and_resume.main(folder)

    assert fork(work, out, err) == 0, err.read_text()
    return json.loads(out.read_text())


@pytest.mark.parametrize("mode", ["loop", "write"])
def test_killed_runs_resume_with_the_same_bits(mode, killed):
    """SIGKILL, 10 times anywhere in the loop or once in the middle of a checkpoint; then the run is finished."""
    outcome = killed[mode]
    assert outcome["same"], "the resumed run is not the unbroken one"
    if mode == "loop":
        newest = outcome["newest"]
        assert len(newest) == 10
        assert newest == sorted(newest), "no kill took a run back"
        assert len(set(newest)) > 2, "the run went on between the kills"
        assert newest[-1] < outcome["rounds"], "and all of them fell into it"
    else:
        assert outcome["killed"]
        assert [name for name in outcome["after_kill"] if name.endswith(".ckpt")][-1] == "round-000000000012.ckpt"
        assert all(name.endswith(".ckpt") for name in outcome["files"])


def test_of_two_runs_on_one_folder_one_is_refused_at_once(killed):
    """12 pairs let go at once: one of each goes on to the right bits, the other has one line and does not wait.

    Where the owner is killed, its folder is free, although a child that it had forked lives on. No lock file is left.
    """
    outcome, ends = killed["pairs"], killed["pairs"]["ends"]
    assert [sorted(ends[i : i + 2]) for i in range(0, len(ends), 2)] == [[0, 3]] * 12
    assert ends[::6] == [3] * 4  # of the pairs whose owner is killed the other ended first: it did not wait
    assert outcome["left"] == []


def test_a_folder_in_use_is_said_by_threads_of_one_process_too(tmp_path):
    """The second run, in another thread or within the first, is refused; afterwards the folder is free."""
    said = []

    def second(_):
        try:
            run(FedAvg(0.05, K), regression(), 4, checkpoint=tmp_path)
        except OSError as error:
            said.append(str(error))

    def both(done):
        if done == 2:
            second(done)
            thread = threading.Thread(target=second, args=(done,))
            thread.start()
            thread.join()

    run(FedAvg(0.05, K), regression(), 4, checkpoint=tmp_path, progress=both)
    assert len(said) == 2
    for text in said:
        assert re.fullmatch(r"checkpoint='.*': expected a folder that no other run is using \(.*\)\. Fix: .*", text)
    assert run(FedAvg(0.05, K), regression(), 6, checkpoint=tmp_path)["round"] == list(range(7))
    assert all(path.suffix == ".ckpt" for path in tmp_path.iterdir())


def test_a_lock_file_that_was_left_behind_locks_nothing(tmp_path):
    (tmp_path / ".lock").write_text("process 1 on a machine that is gone")
    run(FedAvg(0.05, K), regression(), 4, checkpoint=tmp_path)
    assert [path.suffix for path in tmp_path.iterdir()] == [".ckpt"]


def test_many_may_ask_at_once_whether_a_folder_can_be_written_to(tmp_path):
    failed = []

    def ask():
        try:
            for _ in range(100):
                checks.folder("out", tmp_path)
        except OSError as error:
            failed.append(error)

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    assert not list(tmp_path.iterdir())


# When a checkpoint is due


def saved_rounds(monkeypatch):
    """The rounds of all checkpoints that are written from now on."""
    written, save = [], Checkpoint._save
    monkeypatch.setattr(
        Checkpoint, "_save", lambda self, tree, extra: written.append(extra["round"]) or save(self, tree, extra)
    )
    return written


def test_checkpoints_are_due_by_time_as_well_as_by_count(tmp_path, monkeypatch):
    written, clock = saved_rounds(monkeypatch), [0.0]
    monkeypatch.setattr("fedtheory.core.loop.time.monotonic", lambda: clock[0])

    def tick(done):
        clock[0] += 10.0

    run(FedAvg(0.05, K), regression(), 11, checkpoint=tmp_path / "a", progress=tick)
    assert written == [2, 5, 8, 11]  # 30 s, at the start 10 s have gone
    written.clear()
    run(FedAvg(0.05, K), regression(), 11, checkpoint=tmp_path / "b", checkpoint_every=4)
    assert written == [4, 8, 11]


@pytest.mark.parametrize("name", ["SCAFFOLD II all", "FedSub decay", "SSF", "DeComFL central"])
def test_an_interrupted_run_is_saved_where_it_stood_and_goes_on_with_the_same_bits(name, tmp_path, monkeypatch):
    """Ctrl-C after the n-th of the package's calls and returns in a run of 4 rounds: the resumed run is the same."""
    algorithm, problem, options = ALGORITHMS[name], regression(), {"sampled": 3, "schedule": Steps(2, 0.5)}
    unbroken = run(algorithm, problem, 4, **options)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    kept, package = set(), str(Path(fedtheory.__file__).parent)
    gc.disable()  # an exception within its callbacks (hypothesis has one) would be swallowed
    monkeypatch.setattr(sys, "unraisablehook", lambda given: None)
    try:
        for number, calls in enumerate(range(200, 100_000, 613)):
            folder, count = tmp_path / str(number), 0
            checks._Now.first_round = False  # what the hook raises where a generator yields skips its `finally`

            def hook(frame, event, argument, calls=calls):
                nonlocal count
                count += frame.f_code.co_filename.startswith(package)
                if count == calls:
                    signal.raise_signal(signal.SIGINT)

            try:
                sys.setprofile(hook)
                run(algorithm, problem, 4, **options, checkpoint=folder)
                sys.setprofile(None)
                if count < calls:
                    break
                continue  # a `__del__`, or the callback of a weak reference, swallowed it
            except KeyboardInterrupt:
                sys.setprofile(None)
            kept.add(max((int(path.stem.split("-")[1]) for path in folder.glob("*.ckpt")), default=0))
            resumed = run(algorithm, problem, 4, **options, checkpoint=folder)
            assert same_bits(resumed.state, unbroken.state)
            assert resumed.columns == unbroken.columns
    finally:
        sys.setprofile(None)
        gc.enable()
        checks._Now.first_round = False
        signal.signal(signal.SIGINT, before)
    assert kept >= set(range(4)), "it was stopped in every round, and what was done is there"


def test_a_diverged_run_is_saved_too(tmp_path):
    algorithm, problem = FedAvg(30.0, K), quadratic()
    found = run(algorithm, problem, 2000, x0=start(problem), checkpoint=tmp_path)
    (newest,) = tmp_path.glob("*.ckpt")
    assert int(newest.stem.split("-")[1]) == found.diverged.round
    again = run(algorithm, problem, 2000, x0=start(problem), checkpoint=tmp_path)
    assert again.diverged == found.diverged
    assert again.columns == found.columns


def two_checkpoints(folder):
    """Two checkpoints of a SCAFFOLD run, and what `load` needs to read them."""
    algorithm, problem = Scaffold(0.05, K), regression()
    template = (algorithm.init(problem, problem.start(), Key(0)), problem.start())
    keeper, states = Checkpoint(folder, "this run"), {}
    for t, (_, state) in enumerate(rounds(algorithm, problem, 2), 1):
        states[t] = deepcopy(state)
        keeper.save((state, problem.start()), {"round": t})
    return keeper, template, states


class Pair(NamedTuple):
    m: torch.Tensor
    n: int


@dataclass(frozen=True)
class Named:
    """A server's state with a named tuple."""

    x: torch.Tensor
    pair: Pair


def test_a_named_tuple_comes_back_as_one(tmp_path):
    keeper, state = Checkpoint(tmp_path, "this run"), State(Named(torch.ones(2), Pair(torch.zeros(2), 3)), None)
    keeper.save((state, torch.ones(2)), {"round": 1})
    (found, _), _ = keeper.load((state, torch.ones(2)))
    assert isinstance(found.server.pair, Pair)
    assert found.server.pair.n == copy_tree(state).server.pair.n == 3


@pytest.mark.parametrize(
    "other",
    [
        lambda x: FedAvgServer(x, x),
        lambda x: Named(x, (x,)),
        lambda x: Named(x, Pair((x,), 3)),
        lambda x: Named(x, Pair(x, True)),
        lambda x: Named(x, Pair(x, None)),
        lambda x: Named(x, None),
    ],
)
def test_a_state_of_another_form_is_another_runs(tmp_path, other):
    """The class of a state has changed between two starts: said, and nothing is taken for what it is not."""
    keeper, x = Checkpoint(tmp_path, "this run"), torch.ones(2)
    keeper.save((State(other(x), None), x), {"round": 1})
    with pytest.raises(Foreign, match=r"checkpoint=.*expected a state of the fields.*Fix: name another folder"):
        keeper.load((State(Named(x, Pair(x, 3)), None), x))


@pytest.mark.parametrize("header", [b"{}", b"[1]", b"{", b'{"identity": "this run", "tree": []}', None])
def test_a_header_that_is_no_checkpoints_is_damage(tmp_path, header):
    """Whole by its SHA-256, and not ours: named, and the one before is used. None: not even its length is there."""
    keeper, template, _ = two_checkpoints(tmp_path)
    body = b"" if header is None else struct.pack("<Q", len(header)) + header
    keeper.files()[0].write_bytes(MAGIC + hashlib.sha256(body).digest() + body)
    with pytest.warns(UserWarning, match="is damaged"):
        assert keeper.load(template)[1]["round"] == 1


def test_a_metric_of_numpys_type_is_kept(tmp_path):
    """A problem's own accuracy, in whatever type of number, is a plain one in the history and in a checkpoint."""

    class Rated(type(regression())):
        def accuracy(self, x):
            return np.float32(0.25)

    problem = regression()
    problem.__class__ = Rated
    history = run(FedAvg(0.05, K), problem, 3, metrics=("accuracy",), checkpoint=tmp_path)
    assert set(history["accuracy"]) == {0.25}
    assert run(FedAvg(0.05, K), problem, 4, metrics=("accuracy",), checkpoint=tmp_path)["accuracy"][-1] == 0.25


@pytest.mark.parametrize("name", ["SCAFFOLD II all", "SignSGD", "STC"])
def test_a_caller_may_be_in_inference_mode(name):
    """A network's gradients are autograd's: the run leaves the mode for as long as it takes."""
    problem = images("mlp")
    with torch.inference_mode():
        inside = run(ALGORITHMS[name], problem, 3, metrics=("loss",))
    outside = run(ALGORITHMS[name], problem, 3, metrics=("loss",))
    assert torch.equal(inside.x, outside.x)
    assert not inside.x.is_inference()


@each(name=ALGORITHMS)
def test_a_history_can_be_sent_to_another_process(name):
    """Seeds are played in a pool of processes, which pickles what comes back."""
    history = run(ALGORITHMS[name], regression(), 2)
    assert torch.equal(pickle.loads(pickle.dumps(history)).x, history.x)


def test_damaged_checkpoints_are_seen_and_the_one_before_is_used(tmp_path):
    """200 times a random bit flipped or the end cut off: always named in a warning, never loaded."""
    keeper, template, states = two_checkpoints(tmp_path)
    newest, chance = keeper.files()[0], random.Random(0)
    whole = newest.read_bytes()
    (state, _), extra = keeper.load(template)
    assert extra["round"] == 2
    assert same_bits(state, states[2])
    for trial in range(200):
        content = bytearray(whole)
        if trial % 2:
            content[chance.randrange(len(whole))] ^= 1 << chance.randrange(8)
        else:
            content = content[: chance.randrange(len(whole))]
        newest.write_bytes(bytes(content))
        with pytest.warns(UserWarning, match=f"{newest.name} is damaged"):
            (state, _), extra = keeper.load(template)
        assert extra["round"] == 1
        assert same_bits(state, states[1])


def test_a_run_goes_on_from_the_checkpoint_before_a_damaged_one(tmp_path):
    """The newest of the two files is cut short: rounds 4 to 8 are made again, not all of them."""
    algorithm, problem, seen = SSF.haar(0.05, K, 2), regression(), []
    options = {"sampled": 3, "checkpoint": tmp_path, "checkpoint_every": 4}
    run(algorithm, problem, 8, **options)
    newest = max(tmp_path.iterdir())
    newest.write_bytes(newest.read_bytes()[:-1])
    with pytest.warns(UserWarning, match="damaged"):
        resumed = run(algorithm, problem, 12, **options, progress=seen.append)
    assert seen == list(range(4, 13))
    unbroken = run(algorithm, problem, 12, sampled=3)
    assert same_bits(resumed.state, unbroken.state)
    assert resumed.columns == unbroken.columns


def test_with_all_checkpoints_damaged_a_run_starts_over(tmp_path):
    algorithm, problem = FedAvg(0.05, K), regression()
    run(algorithm, problem, 8, checkpoint=tmp_path, checkpoint_every=4)
    for path in tmp_path.iterdir():
        path.write_bytes(b"")
    with pytest.warns(UserWarning, match="damaged") as warned:
        history = run(algorithm, problem, 8, checkpoint=tmp_path, checkpoint_every=4)
    assert len(warned) == 2
    assert same_bits(history.state, run(algorithm, problem, 8).state)


@pytest.mark.parametrize("name", ["FedAvg", "SSF", "FedSub SS", "DGC", "EF21-P DIANA", "FedFTG"])
def test_large_private_state_is_saved_piece_by_piece(name, tmp_path, monkeypatch):
    """Its rows go into a file beside; the run goes on from the two with the same bits. Small state has no such file."""
    algorithm, problem, options = ALGORITHMS[name], regression(), {"sampled": 3, "seed": 2, "checkpoint": tmp_path}
    run(algorithm, problem, 4, **options)
    assert [path.suffix for path in tmp_path.iterdir()] == [".ckpt"]
    monkeypatch.setattr(private_rows, "_PIECE", 10)
    run(algorithm, problem, 8, **options)
    unbroken = run(algorithm, problem, 12, sampled=3, seed=2)
    assert len(list(tmp_path.glob("*.part"))) == (name != "FedAvg")
    resumed = run(algorithm, problem, 12, **options)
    assert same_bits(resumed.state, unbroken.state)
    assert resumed.columns == unbroken.columns


OTHER_RUNS = {
    "rate": lambda a, p, o: (replace(a, lr=0.06), p, o),
    "another algorithm": lambda a, p, o: (FedAvg(a.lr, a.local_steps), p, o),
    "projection": lambda a, p, o: (replace(a, projection=Coordinate(2, "orthonormal", signs=True)), p, o),
    "data": lambda a, p, o: (a, quadratic(seed=9), o),
    "clients per round": lambda a, p, o: (a, p, o | {"sampled": 2}),
    "seed": lambda a, p, o: (a, p, o | {"seed": 1}),
    "revision": lambda a, p, o: (type("Revised", (SSF,), {"revision": 2, "__qualname__": "SSF"})(**vars(a)), p, o),
    "metrics": lambda a, p, o: (a, p, o | {"metrics": ("loss",)}),
    "start": lambda a, p, o: (a, p, o | {"x0": start(p)}),
    "layers": lambda a, p, o: (a, quadratic(layout=Layout((Layer("a", 6, 1), Layer("b", 6, 1)))), o),
}


@pytest.mark.parametrize("other", OTHER_RUNS)
def test_a_checkpoint_of_another_run_is_refused(other, tmp_path, request):
    algorithm, problem = SSF(0.05, K, Coordinate(2, "orthonormal")), quadratic()
    options = {"sampled": 3, "checkpoint": tmp_path}
    run(algorithm, problem, 4, **options)
    algorithm, problem, options = OTHER_RUNS[other](algorithm, problem, options)
    with pytest.raises(ValueError, match=r"checkpoint=.*expected checkpoints of this run.*Fix:"):
        run(algorithm, problem, 4, **options)


def test_a_run_goes_on_with_fewer_records_as_if_it_had_always_had_them(tmp_path):
    """At multiples of `every`; others would lack records that were not made, which is said."""
    algorithm, problem, made = Scaffold(0.05, K), regression(), {"sampled": 3, "checkpoint": tmp_path}
    run(algorithm, problem, 7, **made, every=2)
    again = run(algorithm, problem, 13, **made, every=4)
    assert again.columns == run(algorithm, problem, 13, sampled=3, every=4).columns
    assert again["round"] == [0, 4, 8, 12, 13]
    with pytest.raises(ValueError, match=r"every=6: expected a multiple of 4, .*Fix: pass every=4"):
        run(algorithm, problem, 20, **made, every=6)
    assert run(algorithm, problem, 20, **made, every=8)["round"] == [0, 8, 16, 20]


def test_a_checkpoint_outlives_damaged_ones_of_later_rounds(tmp_path):
    """They are not taken for newer ones that may push it out; nor is a folder with such a name."""
    algorithm, problem = FedAvg(0.05, K), regression()
    run(algorithm, problem, 20, checkpoint=tmp_path, checkpoint_every=10)
    for file in tmp_path.glob("*.ckpt"):
        file.write_bytes(file.read_bytes()[:-1])
    (tmp_path / "round-000000000050.ckpt").mkdir()
    with pytest.warns(UserWarning, match="is damaged"):
        run(algorithm, problem, 8, checkpoint=tmp_path, checkpoint_every=4)
    assert {f"round-{t:012d}.ckpt" for t in (4, 8)} <= {file.name for file in tmp_path.iterdir()}
    with pytest.warns(UserWarning, match="is damaged"):
        assert run(algorithm, problem, 9, checkpoint=tmp_path)["round"][-1] == 9
    assert (tmp_path / "round-000000000009.ckpt").exists()


class Halving(Schedule):
    """A user's own, without a repr."""

    def __init__(self, every):
        self.every = every

    def factor(self, t):
        return 0.5 ** (t // self.every)


def test_a_schedule_of_ones_own_is_known_again(tmp_path):
    algorithm, problem = FedAvg(0.05, K), regression()
    run(algorithm, problem, 4, schedule=Halving(3), checkpoint=tmp_path)
    history = run(algorithm, problem, 8, schedule=Halving(3), checkpoint=tmp_path)
    assert history.columns == run(algorithm, problem, 8, schedule=Halving(3)).columns
    with pytest.raises(ValueError, match="expected checkpoints of this run"):
        run(algorithm, problem, 8, schedule=Halving(2), checkpoint=tmp_path)


class Weighing(Halving):
    """With numbers that a repr of it would leave out."""

    def factor(self, t):
        return float(self.every[t])


@dataclass(frozen=True)
class Masked(FedAvg):
    """With a tensor, and a number that is not shown."""

    mask: object = None
    hidden: float = field(default=1.0, repr=False)


class Mine(Quadratic):
    pass


def test_what_a_repr_leaves_out_is_part_of_a_run(tmp_path):
    """Long tensors, fields that are not shown, a problem's revision: a checkpoint of other ones is refused."""
    ones, other = torch.ones(2000), torch.ones(2000)
    other[1000] = 0
    H, b = torch.eye(2)[None].double(), torch.ones(1, 2).double()
    runs = {
        "mask": lambda way: run(Masked(0.05, K, mask=(ones, other)[way]), Mine(H, b), 3, checkpoint=tmp_path / "mask"),
        "thing": lambda way: run(
            Masked(0.05, K, mask=Halving(Halving(way))), Mine(H, b), 3, checkpoint=tmp_path / "thing"
        ),
        "hidden": lambda way: run(Masked(0.05, K, hidden=way), Mine(H, b), 3, checkpoint=tmp_path / "hidden"),
        "schedule": lambda way: run(
            FedAvg(0.05, K), Mine(H, b), 3, schedule=Weighing((ones, other)[way]), checkpoint=tmp_path / "schedule"
        ),
        "revision": lambda way: run(
            FedAvg(0.05, K),
            type("Mine", (Mine,), {"revision": 1 + way})(H, b),
            3,
            checkpoint=tmp_path / "revision",
        ),
    }
    for play in runs.values():
        play(0)
        play(0)
        with pytest.raises(ValueError, match="expected checkpoints of this run"):
            play(1)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_waits_until_a_round_is_whole(number):
    before, ends = signal.signal(number, signal.default_int_handler), []

    def settle():
        with loop._uninterrupted():
            signal.raise_signal(number)
            ends.append(True)

    try:
        with pytest.raises(KeyboardInterrupt):
            settle()
        assert ends
        assert signal.getsignal(number) is signal.default_int_handler
    finally:
        signal.signal(number, before)


def test_a_full_disk_at_the_last_checkpoint_loses_no_run(tmp_path, monkeypatch):
    """It is said. At an earlier one the run ends, with the folder's name."""
    monkeypatch.setattr(checkpoint, "write_atomic", lambda *given: (_ for _ in ()).throw(OSError(28, "No space left")))
    with pytest.warns(UserWarning, match=r"the run is done, .*checkpoint=.*No space left.*Fix: make room"):
        history = run(FedAvg(0.05, K), regression(), 5, checkpoint=tmp_path)
    assert history["round"][-1] == 5
    with pytest.raises(OSError, match=rf"checkpoint='{tmp_path}': expected .*No space left"):
        run(FedAvg(0.05, K), regression(), 5, checkpoint=tmp_path, checkpoint_every=2)
    assert not list(tmp_path.glob(".lock"))


def test_files_of_others_stay(tmp_path):
    mine = [tmp_path / "round-robin notes.part", tmp_path / "round-1.rank-0-of-1.part"]
    for file in mine:
        file.write_text("mine")
    run(Scaffold(0.05, K), regression(), 4, checkpoint=tmp_path, checkpoint_every=1)
    assert all(file.read_text() == "mine" for file in mine)


def test_a_state_of_another_problem_is_refused():
    algorithm, other = Scaffold(0.05, K), r"state\.server\.x\.shape=\(6,\): expected \(12,\)"
    for there, said in ((regression(9), r"=9: expected a row for each of 5 clients"), (logistic(), other)):
        state = algorithm.init(there, there.start(), Key(0))
        with pytest.raises(ValueError, match=said):
            play_round(algorithm, regression(5), state, torch.arange(2), Key(1))


@pytest.mark.parametrize("algorithm", [FedAvg(0.05, 2), Scaffold(0.05, 2)])
def test_a_start_that_belongs_to_autograd(algorithm):
    """As `parameters_to_vector` gives it."""
    images = torch.rand(20, 1, 4, 4, generator=Key(0).generator())
    net = network("mlp", (1, 4, 4), 3)
    problem = ImageClassification(images, torch.arange(20) % 3, [torch.arange(10), torch.arange(10, 20)], net, Key(0))
    x0 = torch.nn.Parameter(problem.start())
    found = run(algorithm, problem, 2, x0=x0, metrics=("loss",))
    assert same_bits(found.state, run(algorithm, problem, 2, x0=x0.detach(), metrics=("loss",)).state)
    assert not found.x.requires_grad


def test_the_default_dtype_decides_no_draw():
    problems = [quadratic(), MatrixRegression.ssf(0.5, Key(0), n=5, rows=6, d=4, m=2, batch=3, replacement=False)]
    plain = [run(FedAvg(0.05, 2), problem, 6, dropout=0.5).state for problem in problems]
    torch.set_default_dtype(torch.float64)
    try:
        assert all(same_bits(run(FedAvg(0.05, 2), p, 6, dropout=0.5).state, one) for p, one in zip(problems, plain))
    finally:
        torch.set_default_dtype(torch.float32)


def test_weights_that_vanish_in_the_models_precision():
    """float32 knows no 1e-50: a round of such clients would divide by zero."""
    H, b = torch.eye(2).expand(3, 2, 2).contiguous(), torch.ones(3, 2)
    problem = Quadratic(H, b, weights=torch.tensor([1.0, 1e-50, 1e-50], dtype=torch.float64))
    with pytest.raises(ValueError, match=r"problem.weights=.*Fix:"):
        run(FedAvg(0.1, 1, weighted=True), problem, 3, sampled=1)
    algorithm, clients = FedAvg(0.1, 1, weighted=True), torch.tensor([1, 2])
    state = algorithm.init(problem, problem.start(), Key(0))
    with pytest.raises(ValueError, match=r"clients=\[1, 2\]: expected clients whose weights do not sum to 0"):
        play_round(algorithm, problem, state, clients, Key(1))


def test_the_chunk_size_is_no_part_of_the_run(tmp_path):
    """It changes rounding only, so a run may go on with another one."""
    algorithm, problem = Scaffold(0.05, K), regression()
    run(algorithm, problem, 4, checkpoint=tmp_path)
    assert run(algorithm, problem, 8, checkpoint=tmp_path, chunk=2)["round"] == list(range(9))


def test_fewer_rounds_than_the_checkpoint_holds(tmp_path):
    """A run of 2 rounds does not return 5: it is refused."""
    algorithm, problem = FedAvg(0.05, K), regression()
    run(algorithm, problem, 5, checkpoint=tmp_path)
    with pytest.raises(ValueError, match=r"rounds=2: expected at least the 5 rounds.*Fix: name another folder"):
        run(algorithm, problem, 2, checkpoint=tmp_path)


def test_two_files_are_kept_and_nothing_else(tmp_path):
    run(Scaffold(0.05, K), regression(), 11, checkpoint=tmp_path / "new" / "folder", checkpoint_every=3)
    left = sorted(path.name for path in (tmp_path / "new" / "folder").iterdir())
    assert left == ["round-000000000009.ckpt", "round-000000000011.ckpt"]


def test_a_failed_write_leaves_the_old_checkpoint_and_no_temporary_file(tmp_path, monkeypatch):
    keeper, template, states = two_checkpoints(tmp_path)

    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        keeper.save((states[2], template[1]), {"round": 3})
    monkeypatch.undo()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["round-000000000001.ckpt", "round-000000000002.ckpt"]
    assert keeper.load(template)[1]["round"] == 2


def test_nothing_is_pickled(tmp_path):
    """Every array of a checkpoint is a plain .npy of numbers, which loads with pickling forbidden."""
    keeper, _, _ = two_checkpoints(tmp_path)
    body = keeper.files()[0].read_bytes()[len(MAGIC) + 32 :]
    (length,) = struct.unpack("<Q", body[:8])
    json.loads(body[8 : 8 + length])
    archive = io.BytesIO(body[8 + length :])
    assert all(name.endswith(".npy") for name in zipfile.ZipFile(archive).namelist())
    with np.load(archive, allow_pickle=False) as arrays:
        assert all(arrays[name].dtype.kind in "fi" for name in arrays.files)


def crafted(file, change):
    """Change the header of a checkpoint, or its tensors' bytes, and seal it again."""
    body = file.read_bytes()[len(MAGIC) + 32 :]
    (length,) = struct.unpack("<Q", body[:8])
    header, tensors = json.loads(body[8 : 8 + length]), body[8 + length :]
    text = change(header)
    if isinstance(text, int):
        text, tensors = None, tensors[:text]
    text = json.dumps(header).encode() if text is None else text
    body = struct.pack("<Q", len(text)) + text + tensors
    file.write_bytes(MAGIC + hashlib.sha256(body).digest() + body)


def put(value, *path):
    def change(header):
        at = header
        for name in path[:-1]:
            at = at[name]
        at[path[-1]] = value

    return change


def leave_out(*path):
    def change(header):
        at = header
        for name in path[:-1]:
            at = at[name]
        del at[path[-1]]

    return change


CRAFTED = {
    "round -1": put(-1, "extra", "round"),
    "round of another": put(7, "extra", "round"),
    "round 1.5": put(1.5, "extra", "round"),
    "every 0": put(0, "extra", "every"),
    "no every": leave_out("extra", "every"),
    "no columns": leave_out("extra", "columns"),
    "a column short": lambda header: header["extra"]["columns"]["up_bytes"].pop(),
    "a column out": leave_out("extra", "columns", "down_bytes"),
    "a word in a column": put("x", "extra", "columns", "loss", 0),
    "a record to come": put(10**6, "extra", "columns", "round", -1),
    "a record before all": put(-1, "extra", "columns", "round", 0),
    "a record twice": put(3, "extra", "columns", "round", -1),
    "a client seen to come": put(10**6, "extra", "last_seen", 0),
    "a client seen before all": put(-2, "extra", "last_seen", 0),
    "a client out": lambda header: header["extra"]["last_seen"].pop(),
    "no clients": leave_out("extra", "last_seen"),
    "less than nothing": put(-8, "extra", "up", 1),
    "a count out": lambda header: header["extra"]["down"].pop(),
    "no counts": leave_out("extra", "down"),
    "tree is a number": put(3, "tree"),
    "extra is a list": put([], "extra"),
    "identity is a number": put(3, "identity"),
    "npz cut": lambda header: -40,
    "no npz": lambda header: 0,
    "deep brackets": lambda header: b"[" * 100_000,
    "a part elsewhere": put([["../known.part", "0" * 64, 0, 5]], "extra", "parts"),
    "a part of another form": put([["round-000000000004.rank-0-of-1.part", 3, 0, 5]], "extra", "parts"),
    "a part without a name": put([[3, "0" * 64, 0, 5]], "extra", "parts"),
    "parts is a number": put(3, "extra", "parts"),
}


@pytest.mark.parametrize("name", CRAFTED)
def test_a_checkpoint_made_on_purpose_is_damaged(name, tmp_path):
    """Its digest is right and its content is not: one line says so, and the run goes on from the one before."""
    job = lambda rounds, **options: run(Scaffold(0.05, K), regression(), rounds, metrics=("loss",), **options)
    job(4, checkpoint=tmp_path, checkpoint_every=2)
    crafted(max(tmp_path.glob("*.ckpt")), CRAFTED[name])
    with pytest.warns(UserWarning, match="is damaged") as said:
        history = job(8, checkpoint=tmp_path)
    assert len(said) == 1
    assert "\n" not in str(said[0].message)
    whole = job(8)
    assert history.columns == whole.columns
    assert same_bits(history.state, whole.state)


@pytest.mark.parametrize(
    "tree",
    [
        put(-1, "tree", 0, 0, "x"),
        put(99, "tree", 0, 0, "x"),
        put("x", "tree", 0, 0, "x"),
        put(2, "tree", 0, 0, "x"),  # of another shape
        put([0, 0], "tree"),
        put([], "tree"),
        put({}, "tree", 0, 0),
    ],
)
def test_a_state_made_on_purpose_is_refused(tree, tmp_path):
    job = lambda rounds: run(Scaffold(0.05, K), regression(), rounds, checkpoint=tmp_path, checkpoint_every=2)
    job(4)
    crafted(max(tmp_path.glob("*.ckpt")), tree)
    with pytest.raises(ValueError, match=r"^checkpoint=[^\n]*Fix: name another folder[^\n]*$"):
        job(8)


@pytest.mark.parametrize("tree", [put(-1, "tree", 0, 1, "c"), put({}, "tree", 0, 1)])
def test_private_rows_made_on_purpose_are_refused(tree, tmp_path):
    """A run that keeps them in parts reads a checkpoint of one that does not."""
    job = lambda rounds, **more: run(Scaffold(0.05, K), regression(), rounds, checkpoint=tmp_path / "kept", **more)
    job(4, checkpoint_every=2)
    crafted(max((tmp_path / "kept").glob("*.ckpt")), tree)
    with pytest.raises(ValueError, match=r"^checkpoint=[^\n]*Fix: name another folder[^\n]*$"):
        job(8, memory_map=tmp_path / "map")


def test_a_part_made_on_purpose_is_damaged(tmp_path):
    """Its digest is right; its header is not, or its rows leave out clients."""

    def job(rounds):
        folders = {"checkpoint": tmp_path, "memory_map": tmp_path / "map"}
        return run(Scaffold(0.05, K), regression(), rounds, **folders, checkpoint_every=2)

    whole = run(Scaffold(0.05, K), regression(), 8)
    for change in (
        lambda header: header["leaves"].append(["c", "torch.float64", [-5, 1]]),
        lambda header: header["leaves"][0].pop(),
        lambda header: header["leaves"][0].__setitem__(2, [4, 12]),
        lambda header: header["leaves"][0].__setitem__(1, "torch.float32"),
        lambda header: header["leaves"][0].__setitem__(1, "torch.save"),
        lambda header: header.pop("leaves"),
    ):
        job(4)
        newest = max(tmp_path.glob("*.ckpt"))
        part = newest.with_suffix(".rank-0-of-1.part")
        content = part.read_bytes()
        (length,) = struct.unpack("<Q", content[17:25])
        header = json.loads(content[25 : 25 + length])
        change(header)
        text = json.dumps(header).encode()
        part.write_bytes(content[:17] + struct.pack("<Q", len(text)) + text + content[25 + length :])
        crafted(newest, put(hashlib.sha256(part.read_bytes()).hexdigest(), "extra", "parts", 0, 1))
        with pytest.warns(UserWarning, match=r"is damaged \(.*part is not the file that was written"):
            assert same_bits(job(8).state, whole.state)
        for file in tmp_path.glob("round-*"):
            file.unlink()


@pytest.mark.parametrize("change", ["elsewhere", (1, 6), (0, 4)])
def test_a_part_elsewhere_or_of_other_clients_is_damaged(change, tmp_path):
    """The file is whole; it lies outside of the folder, or is named for others than its clients 0 to 4."""

    def altered(header):
        (part,) = header["extra"]["parts"]
        part[:] = ["../known.part", *part[1:]] if change == "elsewhere" else [*part[:2], *change]

    job = lambda rounds: run(
        Scaffold(0.05, K),
        regression(),
        rounds,
        checkpoint=tmp_path / "kept",
        checkpoint_every=2,
        memory_map=tmp_path / "map",
    )
    job(4)
    newest = max((tmp_path / "kept").glob("*.ckpt"))
    (tmp_path / "known.part").write_bytes(newest.with_suffix(".rank-0-of-1.part").read_bytes())
    crafted(newest, altered)
    with pytest.warns(UserWarning, match="is damaged"):
        assert same_bits(job(8).state, run(Scaffold(0.05, K), regression(), 8).state)


class Trap:
    """An object that makes a file when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


def test_a_pickled_object_is_refused_even_with_a_valid_hash(tmp_path):
    """A file made to look right, with an object array inside: it is damaged, and none of its code is run."""
    keeper, template, _ = two_checkpoints(tmp_path / "run")
    newest, sprung = keeper.files()[0], tmp_path / "sprung"
    body = newest.read_bytes()[len(MAGIC) + 32 :]
    (length,) = struct.unpack("<Q", body[:8])
    stream = io.BytesIO()
    np.savez(stream, *[np.array([Trap(sprung)], dtype=object)] * 4)
    body = body[: 8 + length] + stream.getvalue()
    newest.write_bytes(MAGIC + hashlib.sha256(body).digest() + body)
    with pytest.warns(UserWarning, match=r"is damaged.*allow_pickle"):
        assert keeper.load(template)[1]["round"] == 1
    assert not sprung.exists()
    stream.seek(0)
    with np.load(stream, allow_pickle=True) as arrays:
        arrays["arr_0"]
    assert sprung.exists(), "the trap works where pickles are read"


@pytest.mark.parametrize("kind", ["link", "second name", "pipe"])
def test_no_file_is_opened_for_writing_through_a_link(kind, tmp_path):
    """A checkpoint's lock and the store's: the file behind stays as it was, and one line names the folder."""
    known, out = tmp_path / "known.txt", tmp_path / "out"
    known.write_text("known")
    make = {"link": Path.symlink_to, "second name": Path.hardlink_to, "pipe": lambda path, _: os.mkfifo(path)}[kind]
    (out / ".runs").mkdir(parents=True)
    make(out / ".lock", known)
    make(out / ".runs" / "lock", known)
    with pytest.raises(OSError, match=rf"^checkpoint='{out}': expected .*\(.lock is a link or no regular file\)"):
        run(FedAvg(0.05, K), regression(), 2, checkpoint=out)
    with pytest.raises(OSError, match="lock is a link or no regular file"), records.alone(out):
        pass
    assert known.read_text() == "known"


def test_an_interrupt_while_a_temporary_file_is_made_leaves_none(tmp_path, monkeypatch):
    def interrupted(descriptor):
        raise KeyboardInterrupt

    monkeypatch.setattr(files.os, "fstat", interrupted)  # what `open_own` calls once the file is there
    with pytest.raises(KeyboardInterrupt):
        files.write_atomic(tmp_path / "new", b"new")
    monkeypatch.undo()
    assert list(tmp_path.iterdir()) == []


def test_temporary_files_are_new(tmp_path, monkeypatch):
    """A link of the name that one gets is not followed, and stays."""
    monkeypatch.setattr(files.secrets, "token_hex", lambda size: "0")
    (tmp_path / "known.txt").write_text("known")
    link = tmp_path / ".new.0.tmp"
    link.symlink_to(tmp_path / "known.txt")
    with pytest.raises(FileExistsError):
        files.write_atomic(tmp_path / "new", b"new")
    assert (tmp_path / "known.txt").read_text() == "known"
    assert link.is_symlink()


def test_a_seed_that_costs_more_than_its_value_is_no_damage(tmp_path):
    """In one dimension a basis is one number, and its key two: `saved_bytes` is negative."""
    problem = Quadratic.random(5, 1, Key(0), dtype=torch.float32)
    run(SSF(0.1, 5), problem, 4, checkpoint=tmp_path)
    history = run(SSF(0.1, 5), problem, 6, checkpoint=tmp_path)
    assert history["saved_bytes"][-1] < 0
    assert math.isnan(history.seconds[0])


def test_a_resumed_runs_history_comes_back_from_its_file(tmp_path):
    problem, method = Quadratic.random(5, 3, Key(0)), FedAvg(0.1, 5)
    run(method, problem, 2, checkpoint=tmp_path)
    history = run(method, problem, 4, checkpoint=tmp_path)
    history.save(tmp_path / "history.json")
    again = History.load(tmp_path / "history.json")
    assert again == history
    assert math.isnan(again.seconds[0])
