"""One process of a sharded run. Started by test_shards.py, with torchrun or as a fork.

shards_worker.py FOLDER every WHICH DIVISION    every algorithm, a few rounds, in float64 and float32; or those in FEW
shards_worker.py FOLDER reduce WHICH      those whose server reads the average only, reduced
shards_worker.py FOLDER resume ROUNDS     one run with a checkpoint
shards_worker.py FOLDER slow ROUNDS       the same, with a pause in each round, until it is killed
shards_worker.py FOLDER spread            nine runs of a figure, shared by the processes
"""

from fedtheory.running import watchdog

if __name__ == "__main__":
    watchdog.watch()  # before anything else is imported

import json
import os
import sys
import time
import traceback
from dataclasses import fields
from pathlib import Path

import torch
import torch.distributed as dist
from cases import ALGORITHMS, problem, regression, start

from fedtheory import (
    MOON,
    SSF,
    ClientMomentum,
    FedAvg,
    FedGen,
    FedNTD,
    Key,
    LocalLayers,
    Quadratic,
    QuantizedUploads,
    Scaffold,
    SparseUploads,
    Supervised,
    run,
)
from fedtheory.running import shards

BLOCKS, ROUNDS = 5, 6
NETWORKS = {
    "FedNTD": FedNTD(0.05, 2),
    "MOON": MOON(0.05, 2, 1.0),
    "FedGen": FedGen(0.05, 2, server_steps=20),
    "FedAvg": FedAvg(0.05, 2),
}
PARTS = {
    "momentum": ClientMomentum(Scaffold(0.05, 2), 0.5),
    "8 bits": QuantizedUploads(SSF.haar(0.05, 2, 2)),
    "sparse": SparseUploads(FedAvg(0.05, 2), 0.4),
}
FEW = (  # one of each kind of message, of private state and of average
    "FedAvg weighted", "SCAFFOLD II participants", "FedSub SS", "FedSub stored", "SSF all", "FedMUD AAD", "FedMUD kept",
    "DeComFL central", "FLSS layers", "SignSGD", "FedDyn", "FedZO", "Top-k kept", "FetchSGD", "LBGM", "FedCOMGATE",
    "EF21-P DIANA", "FedBAT", "FlexLoRA ranks", "FedFTG", "ProjectedFedAvg",
)  # fmt: skip


def jobs(which="all"):
    """Name, algorithm, problem and options of every run; of those in FEW, in float64, where `which` is "few"."""
    for dtype in (torch.float64, torch.float32) if which == "all" else (torch.float64,):
        p = regression(7, dtype=dtype)
        for name in ALGORITHMS if which == "all" else FEW:
            yield f"{name}, {dtype}", ALGORITHMS[name], p, {"sampled": 3, "x0": start(p), "dropout": 0.2}
    for r in (2, 6, 11):  # rows of odd length begin at any alignment, at which products sum in another order
        yield f"SSF, r = {r} of 11", SSF.haar(0.05, 2, r), Quadratic.random(7, 11, Key(1)), {"sampled": 3}
    for name, algorithm in PARTS.items():
        yield name, algorithm, regression(7), {"sampled": 3, "dropout": 0.2}
    yield "FedBN, network", LocalLayers(Scaffold(0.05, 2)), normalised(), {"sampled": 3, "metrics": ()}
    for name, algorithm in NETWORKS.items():
        yield (
            f"{name}, network",
            algorithm,
            problem(sizes=(12, 9, 7, 12, 5)),
            {"sampled": 3, "metrics": ("loss",)},
        )


def normalised():
    """A perceptron whose batch normalisation clients keep."""
    g = torch.Generator().manual_seed(0)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 1)).double()
    data = [(x, x.sum(1, keepdim=True)) for x in torch.randn(70, 3, generator=g, dtype=torch.float64).split(10)]
    return Supervised(net, torch.nn.MSELoss(), data, batch=4, norm="local")


def resumed(folder, rounds, **options):
    """SSF on 24 clients, with a checkpoint every three rounds."""
    kept = {"checkpoint": folder / "kept", "checkpoint_every": 3, "checkpoint_seconds": 60.0}
    return run(SSF.haar(0.05, 2, 2), regression(24), rounds, sampled=5, blocks=8, every=5, **kept, **options)


def specs():
    """Runs of a figure."""
    from fedtheory.papers.store import Spec  # the other processes of these tests start without it

    options = (("d", 6), ("n", 4))
    return [Spec(FedAvg(0.05, K), "quadratic", options, 20, seed, every=10) for K in (1, 2, 3) for seed in range(3)]


def spread(folder):
    """What this process ran of them, and all results."""
    from fedtheory.papers import store

    ran = []
    store.execute, execute = lambda spec, *more: ran.append(repr(spec)) or execute(spec, *more), store.execute
    found = store.Runner(folder / "out", spread=shards.Spread())(specs())
    return {"ran": ran, "errors": {repr(spec): result["columns"]["error"] for spec, result in found.items()}}


def numbers(value):
    """All tensors of a state's part as plain lists, which JSON keeps exactly."""
    if isinstance(value, torch.Tensor):
        return value.tolist()
    if isinstance(value, tuple):
        return [numbers(part) for part in value]
    if hasattr(value, "__dataclass_fields__") and not hasattr(type(value), "cost"):
        return {f.name: numbers(getattr(value, f.name)) for f in fields(value)}
    return None


def content(history):
    server, own = history.state
    return {"columns": history.columns, "server": numbers(server), "own": numbers(own), "end": str(history.diverged)}


def main(folder, what, *rest):
    torch.set_num_threads(1)
    if what == "spread":
        (folder / f"rank-{os.environ['RANK']}.json").write_text(json.dumps(spread(folder)))
        return
    (folder / f"process-{os.environ['RANK']}").write_text(str(os.getpid()))
    shards.join_group()
    group, found = shards.Group(), {}
    if what == "every":
        division = json.loads(rest[1])
        group = shards.Group(division=division and tuple(division))
        for name, algorithm, p, options in jobs(rest[0]):
            found[name] = content(run(algorithm, p, ROUNDS, blocks=BLOCKS, group=group, **options))
    elif what == "reduce":
        group = shards.Group(reduce=True)
        for name, algorithm, p, options in jobs(rest[0]):
            try:
                found[name] = content(run(algorithm, p, ROUNDS, blocks=BLOCKS, group=group, **options))
            except ValueError as error:
                found[name] = str(error)
    elif what == "resume":
        found = content(resumed(folder, int(rest[0]), group=group))
    else:
        found = content(resumed(folder, int(rest[0]), group=group, progress=lambda done: time.sleep(0.05)))
    (folder / f"rank-{group.rank}.json").write_text(json.dumps(found))


def forked(rank, processes, port, folder, *given):
    """`main` in a fork that knows what torchrun tells its processes."""
    os.environ |= {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(processes)}
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    os.environ |= {"TORCHELASTIC_RUN_ID": "forks", "TORCHELASTIC_USE_AGENT_STORE": "True"}
    try:
        main(folder, *given)
        if dist.is_initialized():
            dist.destroy_process_group()  # `shards` does so when Python ends, which a fork does not come to
    except BaseException:
        (folder / f"error-{rank}").write_text(traceback.format_exc())
        raise


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
