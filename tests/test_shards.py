"""Clients divided over processes: the same bits as one process, checkpoints in parts, and processes that die."""

import json
import math
import os
import random
import signal
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path

import pytest
import torch
from cases import ALGORITHMS, regression, start
from shards_worker import BLOCKS, NETWORKS, ROUNDS, SLOW, content, jobs, resumed

from fedtheory import SSF, FedAvg, run
from fedtheory.core import engine, rows
from fedtheory.core.shards import edges

WORKER = Path(__file__).with_name("shards_worker.py")
DIVISIONS = {1: (None,), 2: (None, [4, 1]), 3: (None, [1, 3, 1])}


def launch(processes, folder, *arguments):
    """torchrun on this machine; its own process group, so that it can be ended as a whole."""
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(processes)]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join([str(WORKER.parent), *sys.path])}
    command += [str(WORKER), str(folder), *map(str, arguments)]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, start_new_session=True
    )


def finish(process, folder, processes):
    """What each rank wrote."""
    _, said = process.communicate(timeout=300)
    assert process.returncode == 0, said[:6000]
    return [json.loads((folder / f"rank-{k}.json").read_text()) for k in range(processes)]


def joined(parts):
    """The ranks' private rows in the order of the clients; all else is the same in all of them."""
    first, own = parts[0], [part["own"] for part in parts]
    for part in parts[1:]:
        assert {k: v for k, v in part.items() if k != "own"} == {k: v for k, v in first.items() if k != "own"}
    return first | {"own": own[0] and {name: sum((one[name] for one in own), []) for name in own[0]}}


def same(a, b):
    """Equality of JSON in which NaN equals NaN."""
    return json.dumps(a) == json.dumps(b)


@pytest.fixture(scope="module")
def alone():
    """Every run in one process, cut into the same blocks."""
    return {
        name: json.loads(json.dumps(content(run(algorithm, p, ROUNDS, blocks=BLOCKS, **options))))
        for name, algorithm, p, options in jobs()
    }


@pytest.mark.parametrize(("processes", "division"), [(P, cut) for P, cuts in DIVISIONS.items() for cut in cuts])
def test_any_number_of_processes_makes_the_same_bits(processes, division, alone, tmp_path):
    parts = finish(launch(processes, tmp_path, "every", json.dumps(division)), tmp_path, processes)
    assert set(parts[0]) == set(alone)
    kept = edges(7, BLOCKS)
    for name, expected in alone.items():
        assert same(joined([part[name] for part in parts]), expected), name
        own = parts[0][name]["own"]
        if own and "network" not in name:  # private state lies where its client does, and nowhere else
            blocks = (division or [b - a for a, b in pairwise(edges(BLOCKS, processes))])[0]
            assert {len(leaf) for leaf in own.values()} == {kept[blocks]}


def test_blocks_are_what_decides_the_bits_and_they_change_rounding_only(alone):
    """A run in one block is the run without any; another number of blocks rounds differently for some methods."""
    changed = 0
    for name, algorithm, p, options in jobs():
        one, none = (run(algorithm, p, ROUNDS, blocks=b, **options) for b in (1, None))
        assert same(content(one), content(none)), name
        changed += content(one)["server"] != alone[name]["server"]
    assert changed > 0


@pytest.mark.parametrize("n", [1, 5, 12, 13, 100])
@pytest.mark.parametrize("blocks", [1, 2, 5])
def test_blocks_hold_every_client_once_and_are_alike_in_size(n, blocks):
    blocks = min(n, blocks)
    at = edges(n, blocks)
    sizes = [b - a for a, b in pairwise(at)]
    assert (at[0], at[-1]) == (0, n)
    assert max(sizes) - min(sizes) <= 1
    clients = torch.arange(n)[:: 2 if n > 3 else 1]
    cuts = engine.pieces(clients, 3, at)
    assert torch.equal(torch.cat([clients[cut] for cut in cuts]), clients)
    for cut in cuts:
        ids = clients[cut].tolist()
        assert 1 <= len(ids) <= 3
        assert len({next(b for b in range(blocks) if at[b] <= i < at[b + 1]) for i in ids}) == 1
