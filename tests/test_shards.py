"""Clients divided over processes: the same bits as one process, checkpoints in parts, and processes that die.

python tests/test_shards.py FOLDER 50 [RECORD]    kill a process fifty times; what it took, as JSON, into RECORD
"""

import importlib.util
import json
import os
import pickle
import platform
import random
import re
import signal
import sys
import time
from contextlib import suppress
from dataclasses import fields
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest
import shards_worker
import torch
import torch.distributed as dist
from cases import ALGORITHMS, quadratic, regression, start
from each import each
from forked import background, ended, forks, torchrun
from shards_worker import BLOCKS, ROUNDS, content, jobs, normalised, resumed, specs

from fedtheory import (
    SSF,
    Coordinate,
    FedAvg,
    FedCom,
    FedSub,
    Key,
    LocalLayers,
    Scaffold,
    Spherical,
    cli,
    play_round,
    run,
)
from fedtheory.algorithms.ssf import Own
from fedtheory.core import engine
from fedtheory.core.files import write_atomic
from fedtheory.core.schedule import Steps
from fedtheory.papers.store import Runner, source_hash
from fedtheory.running import private_rows, shards
from fedtheory.running.shards import edges

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results"
WORKER = Path(__file__).with_name("shards_worker.py")
MATRIX = ["few", pytest.param("all", marks=pytest.mark.full)]  # of the runs in `shards_worker.jobs`
DIVISIONS = [  # processes, blocks of each
    (2, [4, 1], "few"),
    (3, None, "few"),
    *(pytest.param(P, cut, "all", marks=pytest.mark.full) for P, cut in ((1, None), (2, [4, 1]), (3, None))),
]


def launch(processes, said, *program):
    """torchrun in a fork of a process that has PyTorch; the processes that it starts are new ones."""
    return background(torchrun, said, processes, os.pathsep.join([str(WORKER.parent), *sys.path]), *program)


def written(folder, processes):
    return [json.loads((folder / f"rank-{k}.json").read_text()) for k in range(processes)]


def fork(processes, folder, *arguments):
    """What each rank of the worker wrote, in forks of a process that has PyTorch: torchrun's import it each."""
    store = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    given = (processes, store.port, folder, *map(str, arguments))
    context = forks()
    started = [context.Process(target=shards_worker.forked, args=(rank, *given)) for rank in range(processes)]
    for process in started:
        process.start()
    try:
        for process in started:
            process.join(timeout=300)
        said = [path.read_text() for path in sorted(folder.glob("error-*"))]
        assert [process.exitcode for process in started] == [0] * processes, said
    finally:
        for process in started:
            process.kill()
    return written(folder, processes)


def joined(parts):
    """The ranks' private rows in the order of the clients; all else is the same in all of them."""
    first, own = parts[0], [part["own"] for part in parts]
    for part in parts[1:]:
        assert {k: v for k, v in part.items() if k != "own"} == {k: v for k, v in first.items() if k != "own"}
    return first | {"own": own[0] and {name: [row for one in own for row in one[name]] for name in own[0]}}


def same(a, b):
    """Equality of JSON in which NaN equals NaN."""
    return json.dumps(a) == json.dumps(b)


@cache
def alone(which):
    """Every run in one process, cut into the same blocks."""
    return {
        name: json.loads(json.dumps(content(run(algorithm, p, ROUNDS, blocks=BLOCKS, **options))))
        for name, algorithm, p, options in jobs(which)
    }


@pytest.mark.parametrize(("processes", "division", "which"), DIVISIONS)
def test_any_number_of_processes_makes_the_same_bits(processes, division, which, tmp_path):
    parts = fork(processes, tmp_path, "every", which, json.dumps(division))
    assert set(parts[0]) == set(alone(which))
    kept = edges(7, BLOCKS)
    for name, expected in alone(which).items():
        assert same(joined([part[name] for part in parts]), expected), name
        own = parts[0][name]["own"]
        if own and "network" not in name:  # private state lies where its client does, and nowhere else
            blocks = (division or [b - a for a, b in pairwise(edges(BLOCKS, processes))])[0]
            assert {len(leaf) for leaf in own.values()} == {kept[blocks]}


def test_the_command_line_under_torchrun(capsys, tmp_path):
    """One of the processes prints, and its numbers are those of one process with twelve blocks."""
    words = ("run", "SSF", "matrix_regression", "--rounds", "3", "--sampled", "6", "--json")
    said = tmp_path / "said"
    assert ended(launch(2, said, "-m", "fedtheory", *words), 300) == 0, said.read_text()
    assert cli.main([*words, "--blocks", "12"]) == 0
    assert json.loads(Path(f"{said}.out").read_text()) == json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("which", MATRIX)
def test_blocks_are_what_decides_the_bits_and_they_change_rounding_only(which):
    """A run in one block is the run without any; another number of blocks rounds differently for some methods."""
    changed = 0
    for name, algorithm, p, options in jobs(which):
        one, none = (run(algorithm, p, ROUNDS, blocks=b, **options) for b in (1, None))
        assert same(content(one), content(none)), name
        changed += content(one)["server"] != alone(which)[name]["server"]
    assert changed > 0


@pytest.mark.parametrize("name", ALGORITHMS)
def test_every_method_plays_alike_in_blocks(name):
    """A client's lines know it by its id, wherever it is stacked: models agree but for rounding."""
    p = quadratic(6) if name.startswith("FlexLoRA") else regression(6)
    models = [run(ALGORITHMS[name], p, 5, sampled=4, blocks=b, x0=start(p)).x for b in (None, 6)]
    torch.testing.assert_close(models[0], models[1], rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("n", [1, 5, 12, 13, 100])
@pytest.mark.parametrize("blocks", [1, 2, 5])
def test_blocks_hold_every_client_once_and_are_alike_in_size(n, blocks):
    blocks = min(n, blocks)
    at = edges(n, blocks)
    sizes = [b - a for a, b in pairwise(at)]
    assert (at[0], at[-1]) == (0, n)
    assert max(sizes) - min(sizes) <= 1
    clients = torch.arange(n)[:: 2 if n > 3 else 1]
    cuts = engine.chunk_slices(clients, 3, at)
    assert torch.equal(torch.cat([clients[cut] for cut in cuts]), clients)
    for cut in cuts:
        ids = clients[cut].tolist()
        assert 1 <= len(ids) <= 3
        assert len({next(b for b in range(blocks) if at[b] <= i < at[b + 1]) for i in ids}) == 1


@pytest.mark.parametrize("which", MATRIX)
def test_averages_may_be_reduced_and_differ_by_rounding_only(which, tmp_path):
    found = fork(2, tmp_path, "reduce", which)
    reduced, refused = 0, 0
    for name, algorithm, _, _ in jobs(which):
        first, other = found[0][name], found[1][name]
        if not algorithm.averaged or isinstance(first, str):
            assert "reduce" in first, name
            assert first == other, name
            refused += 1
            continue
        reduced += 1
        assert same(first["columns"], other["columns"]), name
        expected = alone(which)[name]["columns"]
        traffic = [column for column in expected if "bytes" in column or "scalars" in column]
        assert all(first["columns"][column] == expected[column] for column in traffic), name
        close = 1e-3 if "float32" in name else 1e-9
        for metric in {"loss", "error"} & expected.keys():
            assert first["columns"][metric] == pytest.approx(expected[metric], rel=close), name
    assert reduced > (60 if which == "all" else 6)
    assert refused > (40 if which == "all" else 6)


def tensors(server):
    return [part for f in fields(server) if isinstance(part := getattr(server, f.name), torch.Tensor)]


READ_ONE_BY_ONE = [  # `FedSubReading.averaged` speaks for its stored mean, and so for fields of a class that has none
    name for name, one in ALGORITHMS.items() if not one.averaged and getattr(one, "dual_mean", "stored") == "stored"
]


@each(name=READ_ONE_BY_ONE)
def test_no_method_could_be_reduced_that_says_it_cannot(name):
    """Its server line makes something else of the average than of the uploads, or cannot read it."""
    algorithm, p = ALGORITHMS[name], regression(5)
    state, changed = algorithm.init(p, start(p), Key(0)), False
    for t in range(4):
        key = Key(0).fold("round", t)
        down = algorithm.broadcast(state.server, key)
        up, _ = engine.run_clients(algorithm, p, p.clients, state.own, down, key)
        try:
            mean = engine.map_leaves(lambda leaf: leaf.mean(0).expand_as(leaf), up)
            one, other = (algorithm.server(state.server, down, sent, p.clients, key)[0] for sent in (up, mean))
            changed |= any(not torch.allclose(a, b, rtol=1e-9) for a, b in zip(tensors(one), tensors(other)))
        except RuntimeError:  # whole numbers, or marks: they have no average
            changed = True
        state = play_round(algorithm, p, state, p.clients, key)[0]
    assert changed


def test_a_run_goes_on_in_another_number_of_processes(tmp_path):
    """Three, then two, then one, then none: the bits of an unbroken run."""
    for processes, done in ((3, 7), (2, 13), (1, 16)):
        parts = fork(processes, tmp_path, "resume", done)
        assert parts[0]["columns"]["round"][-1] == done
    parts = sorted(path.name for path in (tmp_path / "kept").glob("*.part"))
    assert parts == [f"round-{t:012d}.rank-0-of-1.part" for t in (15, 16)]  # those of the last two checkpoints
    last = content(resumed(tmp_path, 21))
    assert same(last, content(resumed(tmp_path / "unbroken", 21)))
    (tmp_path / "other").mkdir()
    resumed(tmp_path / "other", 4)  # and from one to several
    again = joined(fork(2, tmp_path / "other", "resume", 21))
    assert same(again, last)


def test_a_damaged_part_is_passed_over(tmp_path):
    fork(2, tmp_path, "resume", 9)
    newest = max((tmp_path / "kept").glob("*.rank-1-of-2.part"))
    content_of = bytearray(newest.read_bytes())
    content_of[-3] ^= 1
    newest.write_bytes(content_of)
    with pytest.warns(UserWarning, match="rank-1-of-2.part is not the file that was written"):
        assert same(content(resumed(tmp_path, 21)), content(resumed(tmp_path / "unbroken", 21)))


def killed(folder, moment, victim, rounds):
    """Start the slow run and kill one process after `moment` seconds. Returns what was said, and the seconds it took.

    None where the run had ended by then.
    """
    for old in folder.glob("process-*"):
        old.unlink()
    told = folder / "said"
    told.unlink(missing_ok=True)
    process = launch(3, told, str(WORKER), str(folder), "slow", str(rounds))
    place = folder / f"process-{victim}"
    while not (place.exists() and place.read_text()):
        time.sleep(0.01)
    time.sleep(moment)
    with suppress(ProcessLookupError):
        os.kill(int(place.read_text()), signal.SIGKILL)
    at = time.monotonic()
    status = ended(process, 120)
    assert status is not None, told.read_text()
    return (told.read_text() if status else None), time.monotonic() - at


def kills(folder, count, rounds, seed=0):
    """Kill a random rank at a random moment, so many times, and let the run go on each time; its end is unbroken.

    Returns for each the rank, the seconds that it had lived since it was there, those until all processes had ended,
    and whether all had met before.
    """
    chance, found = random.Random(seed), []
    while len(found) < count:
        victim, moment = chance.randrange(3), chance.uniform(0.0, 4.0)
        said, took = killed(folder, moment, victim, rounds)
        if said is None:
            raise AssertionError(f"the run ended after {len(found)} kills: make it longer")
        lines = [line for line in said.splitlines() if line.startswith("fedtheory: ")]
        assert len(lines) == 1, said
        assert f"rank {victim} (" in lines[0] or "before all had met" in lines[0], lines
        assert "Fix: start the same command again" in lines[0]
        assert took < 30
        found.append({"rank": victim, "after": moment, "seconds": took, "met": "before all had met" not in lines[0]})
    parts = joined(fork(3, folder, "resume", rounds))
    assert same(parts, content(resumed(folder / "unbroken", rounds)))
    return found


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.full), pytest.param(2, marks=pytest.mark.full)])
def test_a_process_that_dies_ends_the_others_and_the_run_goes_on(seed, tmp_path):
    kills(tmp_path, 1, 200, seed)


class Reports(dict):
    """A store in memory, to which a late process reports at a moment of a clock that sleeping moves."""

    def __init__(self, late, at):
        super().__init__({f"at/{k}": f"host {k}".encode() for k in range(3)})
        self.late, self.at, self.now = late, at, 0.0

    monotonic = lambda self: self.now
    set = dict.__setitem__
    check = lambda self, keys: all(key in self for key in keys)

    def sleep(self, seconds):
        self.now += seconds
        if self.now >= self.at:
            self[f"left/{self.late}"] = "1"

    def add(self, key, by):
        self[key] = self.get(key, 0) + by
        return self[key]


@pytest.mark.parametrize(("first", "late"), [(2, 0), (0, 2)])
@pytest.mark.parametrize("at", [0.1, 4.0, 60.0])
def test_who_lives_is_not_said_to_be_gone_and_one_line_is_said(first, late, at, monkeypatch):
    """Rank 1 has died. Who reports after seconds on busy cores is waited for; who takes a minute is given up."""
    store = Reports(late, at)
    monkeypatch.setattr(shards, "_reports", store)
    monkeypatch.setattr(shards, "time", store)
    monkeypatch.setenv("WORLD_SIZE", "3")
    lines = []
    for rank in (first, late):
        monkeypatch.setenv("RANK", str(rank))
        lines.append(shards._gone())
    (said,) = filter(None, lines)
    assert ("host 1): gone, so the other 2 of 3" in said) == (at < 60)
    assert (f"host {late})" in said) == (at == 60)


def said_of(found):
    """The page's sentence on a record of kills."""
    took = sorted(one["seconds"] for one in found["kills"])
    return (
        f"{len(took)} runs, each losing one of {found['processes']} processes at a random moment (load "
        f"{found['load'][0]:.0f} to {found['load'][1]:.0f}). All processes had ended after {took[0]:.1f} to "
        f"{took[-1]:.1f} s, and the resumed run ended with the bits of an unbroken one."
    )


def committed(name):
    return json.loads((RESULTS / f"{name}.json").read_text())


def script(name):
    """A benchmark, as a module."""
    spec = importlib.util.spec_from_file_location(f"benchmark_{name}", ROOT / "benchmarks" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_shows_the_records():
    """Both tables of docs/processes.md and its sentence on kills are those of the committed files."""
    page = (ROOT / "docs" / "processes.md").read_text()
    assert script("shards").table(committed("shards-cpu")) in page
    assert script("million").table(committed("million")) in page
    assert said_of(committed("kills")) in " ".join(page.split())


def test_the_records_are_what_the_page_says_of_them():
    runs = committed("shards-cpu")["runs"]
    bits = {}
    for name, one in runs.items():
        assert 950 < one["before"] < 1100, name
        if "reduced" not in name:
            bits.setdefault(name.split(", P")[0], set()).add(one["bits"])
    assert [len(found) for found in bits.values()] == [1, 1]
    for kind in bits:
        spent = [runs[f"{kind}, P = {processes}"]["cpu"] for processes in (1, 2, 4)]
        assert spent == sorted(spent)
    million = script("million")
    methods = committed("million")["methods"]
    for name, of in methods.items():
        arithmetic, state, uploads = million.seconds(of)
        if of["own"] == 0:
            assert (arithmetic > uploads) == (name != "FedCom"), name
        if name in ("SCAFFOLD", "SSF"):
            assert state > arithmetic
    assert 15.5 < methods["SSF"]["own"] / methods["FedSub"]["own"] < 16.5
    assert [name for name, of in methods.items() if of["each"] > 1000] == ["LBGM"]
    assert all(one["seconds"] < 30 for one in committed("kills")["kills"])


def test_processes_share_the_runs_of_a_figure(tmp_path, inline):
    """Each run is made once, by one of them; all of them have all results, which are those of one process."""
    found = fork(3, tmp_path, "spread")
    ran = [spec for part in found for spec in part["ran"]]
    assert sorted(ran) == sorted(map(repr, specs()))
    alone = Runner(tmp_path / "alone", workers=1)(specs())
    for part in found:
        assert part["errors"] == {repr(spec): result["columns"]["error"] for spec, result in alone.items()}


def test_private_state_in_a_memory_map_has_the_same_bits(tmp_path):
    """No file of it is left; a run with it goes on from a checkpoint without it, and the other way round."""
    p, folder = regression(24), tmp_path / "map"
    for algorithm in (SSF.haar(0.05, 2, 2), FedSub(0.05, 2, Spherical(2)), FedCom(0.05, 2, gate=True), FedAvg(0.05, 2)):
        for blocks in (None, 4):
            options = {"sampled": 9, "blocks": blocks}
            plain = run(algorithm, p, 6, **options)
            mapped = run(algorithm, p, 6, memory_map=folder, **options)
            assert same(content(plain), content(mapped))
            assert list(folder.iterdir()) == []
            kept = tmp_path / f"{algorithm.name}-{blocks}"
            run(algorithm, p, 3, memory_map=folder, checkpoint=kept, **options)
            assert same(
                content(run(algorithm, p, 5, checkpoint=kept, **options)), content(run(algorithm, p, 5, **options))
            )
            assert same(content(run(algorithm, p, 6, memory_map=folder, checkpoint=kept, **options)), content(plain))


@pytest.mark.parametrize("blocks", [None, 2])
@pytest.mark.parametrize("rounds", [0, 1, 3])
def test_private_state_stays_in_the_files(rounds, blocks, tmp_path):
    """Also of methods whose `close` makes all rows anew."""
    for algorithm in (FedSub(0.05, 2, Coordinate(2)), FedSub(0.05, 2, Spherical(2)), FedCom(0.05, 2, gate=True)):
        state = run(algorithm, regression(6), rounds, memory_map=tmp_path, blocks=blocks, sampled=4).state
        mapped = {f.name: getattr(state.own, f.name).untyped_storage().filename for f in fields(state.own)}
        assert all(str(tmp_path) in str(file) for file in mapped.values()), (algorithm.name, mapped)


def test_a_memory_map_holds_what_memory_need_not(tmp_path):
    """Rows that nobody has touched take no room, and what a part of a checkpoint holds comes back."""
    row = Own(torch.zeros(1, 1000, dtype=torch.float64))
    mapped = private_rows.mapped(row, tmp_path, 100_000)
    assert mapped.c.shape == (100_000, 1000)
    mapped.c[99_999] = 1.0
    part = private_rows.save(tmp_path / "round-000000000001.rank-0-of-1.part", Own(mapped.c[99_990:]), 99_990, 100_000)
    assert private_rows.whole(tmp_path, part)
    back = Own(torch.zeros(4, 1000, dtype=torch.float64))
    private_rows.load(tmp_path, [part], back, 99_996)
    assert back.c.sum(1).tolist() == [0.0, 0.0, 0.0, 1000.0]


def test_private_state_that_the_disk_cannot_hold_is_said(tmp_path):
    with pytest.warns(UserWarning, match=r"memory_map: .* GiB of private state, and .* free in .*Fix: name a folder"):
        private_rows.mapped(Own(torch.zeros(1, 2**20, dtype=torch.float64)), tmp_path, 2**20)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"blocks": 0}, "blocks=0: expected an integer from 1 to 5"),
        ({"blocks": 6}, "cut the 5 clients into so many at most"),
        ({"group": "all"}, "group=None: expected processes that torch.distributed has brought together"),
        ({"memory_map": 3}, "memory_map=3: expected"),
    ],
)
def test_bad_input_is_refused(options, said):
    with pytest.raises((ValueError, TypeError), match=re.escape(said)):
        run(FedAvg(0.05, 2), regression(5), 1, **options)


def test_rescaled_private_state_is_not_mapped(tmp_path):
    with pytest.raises(ValueError, match="which rescales private state"):
        run(FedSub(0.05, 2, Spherical(2)), regression(5), 3, memory_map=tmp_path, schedule=Steps(1, 0.5))


def record(folder, count):
    """So many kills, with the load of the machine and the versions."""
    load = os.getloadavg()[0]
    found = {"processes": 3, "kills": kills(folder, count, 100 * count), "load": [load, os.getloadavg()[0]]}
    found |= {"machine": f"{platform.machine()}, {os.cpu_count()} cores", "torch": torch.__version__}
    return found | {"python": platform.python_version(), "sources": source_hash()}


if __name__ == "__main__":
    given = record(Path(sys.argv[1]), int(sys.argv[2]))
    if len(sys.argv) > 3:
        write_atomic(Path(sys.argv[3]), (json.dumps(given, indent=1) + "\n").encode())
    print(said_of(given))


def test_local_layers_can_be_sent_to_another_process():
    own = run(LocalLayers(Scaffold(0.05, 2)), normalised(), 1, sampled=3, metrics=()).state.own
    again = pickle.loads(pickle.dumps(own))
    assert type(again) is type(own)
    assert all(torch.equal(getattr(again, name), getattr(own, name)) for name in vars(own))
