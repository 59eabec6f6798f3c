"""Time of one round: this package, the usual style of federated code, and the arithmetic limit, in one run.

    python benchmarks/rounds.py             a table
    python benchmarks/rounds.py --json      the same as JSON
    python benchmarks/rounds.py --profile   where the time of a round goes
    python benchmarks/rounds.py --memory    resident memory over 25,000 rounds
    python benchmarks/rounds.py --check     only the check that both sides do the same mathematics (always made first)

The workload is SSF's matrix regression (Table 1 of arXiv:2604.25467v1): N=20 clients, S=10 a round, K=5 local steps on
minibatches of 20 rows, X 100 x 10, float32, het=0.5, step size 1e-2, r=20 for SSF, which runs with `factored=True`.

"ours" is `fedtheory.run` as a user calls it, with client sampling, traffic accounting and the check for non-finite
numbers. "peer" is the style of most public federated code (PFLlib, FedLab, Flower's examples): a loop over clients,
each with a module, autograd, an optimizer and a `DataLoader`; it counts no traffic and checks nothing. "lean" is that
loop without the loaders, the strict reading of "a module, autograd and an optimizer per client": minibatches are drawn
by indexing the client's tensors, the cheapest way, which favours it. `ratio` is peer/ours, `ratio_lean` lean/ours, each
the median of the blocks' own ratios.
"limit" is the floating-point operations of the printed algorithm divided by this core's measured rate of float32
matrix products.

On the CPU, times are CPU seconds of one thread; on CUDA, where the host's CPU time says little, synchronised wall time.
Variants take turns block by block, after one that warms up (`timing.turns`); the median block counts.
"""

import argparse
import copy
import os
import random
import statistics
import sys
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from pathlib import Path
from unittest import mock

import torch
from timing import Work, clock_of, environment, matmul_rate, quartiles, report, timed, turns
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, RandomSampler, TensorDataset

from fedtheory import FedAvg, Key, MatrixRegression, Scaffold, Spherical, play_round, run
from fedtheory.algorithms.readings.ssf import SSFReading
from fedtheory.core import engine, loop
from fedtheory.core.algorithm import Algorithm, State
from fedtheory.maps.subspace import DenseBasis

SAMPLED, STEPS, BATCH, RANK, LR, HET = 10, 5, 20, 20, 1e-2, 0.5
STYLES = ("ours", "peer", "lean")
PEER_SHARE = 20  # a peer's block has so many times fewer rounds than ours


def workload(device: str, dtype: torch.dtype = torch.float32) -> MatrixRegression:
    return MatrixRegression.ssf(HET, Key(0), batch=BATCH, dtype=dtype, device=device)


def ours() -> dict[str, Algorithm]:
    return {
        "fedavg": FedAvg(LR, STEPS),
        "scaffold": Scaffold(LR, STEPS),
        "ssf": SSFReading.haar(LR, STEPS, RANK, factored=True),
    }


# The peers' style.


class Data:
    """For "lean": the clients' tensors; `batches` gives a round's minibatches, drawn with replacement like ours."""

    def __init__(self, problem: MatrixRegression) -> None:
        self.A = list(problem.A)
        self.B = [Bt.T.contiguous() for Bt in problem.Bt]

    def batches(self, i: int) -> Iterable[tuple[torch.Tensor, torch.Tensor]]:
        A, B = self.A[i], self.B[i]
        for _ in range(STEPS):
            rows = torch.randint(len(A), (BATCH,), device=A.device)
            yield A[rows], B[rows]


class Loaders(Data):
    """For "peer": the same draws by a `DataLoader` per client; one pass over it is one round."""

    def __init__(self, problem: MatrixRegression) -> None:
        super().__init__(problem)
        sets = [TensorDataset(A, B) for A, B in zip(self.A, self.B)]
        samplers = [RandomSampler(rows, replacement=True, num_samples=STEPS * BATCH) for rows in sets]
        self.loaders = [DataLoader(rows, BATCH, sampler=sampler) for rows, sampler in zip(sets, samplers)]

    def batches(self, i: int) -> Iterable[tuple[torch.Tensor, torch.Tensor]]:
        return self.loaders[i]


class Peer:
    """One method in the peers' style: `round` plays one round, on the given clients if any are given."""

    def __init__(self, problem: MatrixRegression, data: Data) -> None:
        self.n, self.lam, self.data = problem.n, problem.lam, data
        self.d, self.m = problem.layout.layers[0].rows, problem.layout.layers[0].cols
        self.options = {"dtype": problem.dtype, "device": problem.device}

    def sample(self) -> list[int]:
        return random.sample(range(self.n), SAMPLED)

    def optimizer(self, model: nn.Module) -> torch.optim.Optimizer:
        return torch.optim.SGD(model.parameters(), lr=LR, weight_decay=self.lam)

    def backward(self, model: nn.Module, A: torch.Tensor, B: torch.Tensor) -> None:
        loss = functional.mse_loss(model(A), B, reduction="sum") / (2 * len(A))
        loss.backward()


class PeerFedAvg(Peer):
    def __init__(self, problem: MatrixRegression, data: Data) -> None:
        super().__init__(problem, data)
        self.model = nn.Linear(self.d, self.m, bias=False, **self.options)
        nn.init.zeros_(self.model.weight)

    def round(self, clients: list[int] | None = None) -> None:
        uploads = []
        for i in clients or self.sample():
            model = copy.deepcopy(self.model)
            optimizer = self.optimizer(model)
            for A, B in self.data.batches(i):
                optimizer.zero_grad()
                self.backward(model, A, B)
                optimizer.step()
            uploads.append(model.state_dict())
        self.model.load_state_dict(average(uploads))


class PeerScaffold(PeerFedAvg):
    def __init__(self, problem: MatrixRegression, data: Data) -> None:
        super().__init__(problem, data)
        zeros = {name: torch.zeros_like(p) for name, p in self.model.state_dict().items()}
        self.c = zeros
        self.own = [copy.deepcopy(zeros) for _ in range(self.n)]

    def round(self, clients: list[int] | None = None) -> None:
        uploads, changes = [], []
        for i in clients or self.sample():
            model = copy.deepcopy(self.model)
            optimizer = self.optimizer(model)
            for A, B in self.data.batches(i):
                optimizer.zero_grad()
                self.backward(model, A, B)
                for name, p in model.named_parameters():
                    p.grad += self.c[name] - self.own[i][name]
                optimizer.step()
            x, y, old = self.model.state_dict(), model.state_dict(), self.own[i]
            new = {name: old[name] - self.c[name] + (x[name] - y[name]) / (STEPS * LR) for name in y}  # option II
            uploads.append(y)
            changes.append({name: new[name] - old[name] for name in new})
            self.own[i] = new
        self.model.load_state_dict(average(uploads))
        change = average(changes)
        self.c = {name: self.c[name] + len(changes) / self.n * change[name] for name in self.c}


class Projected(nn.Module):
    """A linear map X = P^T y + x_res whose only parameter is y = P X, (r, m)."""

    def __init__(self, X: torch.Tensor, P: torch.Tensor) -> None:
        super().__init__()
        self.register_buffer("P", P)
        self.y = nn.Parameter(P @ X)
        self.register_buffer("x_res", X - P.T @ self.y.detach())

    def forward(self, A: torch.Tensor) -> torch.Tensor:
        return A @ (self.P.T @ self.y + self.x_res)


class PeerSSF(Peer):
    def __init__(self, problem: MatrixRegression, data: Data) -> None:
        super().__init__(problem, data)
        self.x = torch.zeros(self.d, self.m, **self.options)
        self.c = torch.zeros_like(self.x)
        self.own = [torch.zeros_like(self.x) for _ in range(self.n)]

    def projector(self) -> torch.Tensor:
        return torch.linalg.qr(torch.randn(self.d, RANK, **self.options))[0].T

    def round(self, clients: list[int] | None = None, P: torch.Tensor | None = None) -> None:
        P = self.projector() if P is None else P
        start = Projected(self.x, P)
        c_proj = P @ self.c
        endpoints, means = [], []
        for i in clients or self.sample():
            model = copy.deepcopy(start)
            optimizer = self.optimizer(model)  # its weight decay: P (lam X) = lam y, as P x_res = 0
            ci_proj = P @ self.own[i]
            total = torch.zeros_like(ci_proj)
            for A, B in self.data.batches(i):
                optimizer.zero_grad()
                self.backward(model, A, B)
                total += model.y.grad + self.lam * model.y.detach()  # P g
                model.y.grad += c_proj - ci_proj
                optimizer.step()
            endpoints.append(model.y.detach())
            means.append(total / STEPS)
            self.own[i] = self.own[i] + P.T @ (total / STEPS - ci_proj)  # line 12
        self.x = P.T @ torch.stack(endpoints).mean(0) + start.x_res  # lines 14-15
        self.c = self.c + P.T @ (torch.stack(means).mean(0) - c_proj)  # line 16, over the participants


def average(states: list[dict[str, torch.Tensor]]) -> dict[str, torch.Tensor]:
    return {name: torch.stack([state[name] for state in states]).mean(0) for name in states[0]}


PEERS = {"fedavg": PeerFedAvg, "scaffold": PeerScaffold, "ssf": PeerSSF}


# Both styles do the same mathematics.


class Recorded(Data):
    """Hands out the minibatches that ours drew."""

    def __init__(self, problem: MatrixRegression) -> None:
        super().__init__(problem)
        self.drawn: dict[int, list[tuple[torch.Tensor, torch.Tensor]]] = {}

    def batches(self, i: int) -> Iterable[tuple[torch.Tensor, torch.Tensor]]:
        return self.drawn[i]


def states(name: str, state: State, peer: Peer) -> dict[str, tuple[torch.Tensor, torch.Tensor]]:
    """The quantities that outlive a round, ours and the peer's, in the shape of the package's flat vector."""
    server = state.server
    if name == "ssf":
        pairs = {"x": (server.x, peer.x.T), "c": (server.c, peer.c.T)}
        return pairs | {"c_i": (state.own.c, torch.stack([c.T for c in peer.own]))}
    pairs = {"x": (server.x, peer.model.weight.detach())}
    if name == "scaffold":
        pairs |= {"c": (server.c, peer.c["weight"])}
        pairs |= {"c_i": (state.own.c, torch.stack([c["weight"] for c in peer.own]))}
    return pairs


def check(device: str, rounds: int = 3) -> dict[str, float]:
    """Play the same rounds on the same draws on both sides; raises where they part by more than rounding.

    Returns the largest relative gap of x, c and c_i in float32, per method. Float64 rules out a small real difference.
    """
    gaps = {}
    for dtype, bound in ((torch.float64, 1e-12), (torch.float32, 1e-5)):
        problem = workload(device, dtype)
        for name, algorithm in ours().items():
            data = Recorded(problem)
            peer = PEERS[name](problem, data)
            state = algorithm.init(problem, problem.start(), Key(0))
            worst = 0.0
            for t in range(rounds):
                key = Key(0).fold("round", t)
                clients = loop.sample_clients(problem.n, SAMPLED, key.fold("clients"))
                xi = problem.draw(clients, STEPS, key.fold("xi"))
                for j, i in enumerate(clients.tolist()):
                    data.drawn[i] = [(xi[k].A[j], xi[k].Bt[j].T) for k in range(STEPS)]
                shared = {"P": state.server.P.value.matrices()[0].T} if name == "ssf" else {}
                peer.round(clients.tolist(), **shared)
                state = play_round(algorithm, problem, state, clients, key)[0]
                for quantity, (mine, theirs) in states(name, state, peer).items():
                    gap = float((mine.flatten() - theirs.flatten()).norm() / mine.norm())
                    worst = max(worst, gap)
                    if not gap <= bound:
                        raise AssertionError(f"{name}, {dtype}, round {t}: {quantity} parts by {gap:.1e} > {bound:.0e}")
            gaps[name] = worst
    return gaps


# The arithmetic limit.


def flops(name: str, problem: MatrixRegression) -> float:
    """Floating-point operations of one round's matrix products as the paper prints them; a (p, q) x (q, s) has 2pqs."""
    d, m, r = problem.layout.layers[0].rows, problem.layout.layers[0].cols, RANK
    gradient = 2 * (2 * BATCH * d * m)  # residual A X - B, then A^T residual
    local = SAMPLED * STEPS * gradient
    if name != "ssf":
        return local
    product = 2 * r * d * m  # one lift or one project of one d x m matrix
    local += SAMPLED * STEPS * 2 * product  # lines 8 and 10
    clients = SAMPLED * 2 * product  # lines 5 and 12
    server = 5 * product  # P x, P c (line 3), their residuals' two lifts, and lines 15-16 joined to them: one more
    qr = 2 * (2 * d * r**2 - 2 * r**3 / 3)  # R, then Q
    return local + clients + server + qr


# Timing.


def measure(device: str, rounds: int, blocks: int) -> dict[str, dict[str, float]]:
    """Medians over the blocks, all variants taking turns."""
    problem, rates = workload(device), []
    peer_rounds = max(rounds // PEER_SHARE, 1)
    variants: dict[tuple[str, str], Work] = {("", "rate"): (lambda: rates.append(matmul_rate(device)), 1)}
    for name, algorithm in ours().items():
        play = lambda algorithm=algorithm: run(algorithm, problem, rounds, sampled=SAMPLED, every=rounds)
        variants[name, "ours"] = play, rounds
        for style, data in (("peer", Loaders(problem)), ("lean", Data(problem))):
            peer = PEERS[name](problem, data)
            variants[name, style] = lambda peer=peer: [peer.round() for _ in range(peer_rounds)], peer_rounds
    seconds = turns(variants, device, blocks)
    rate = max(rates)
    table = {}
    for name in ours():
        a, b, c = (statistics.median(seconds[name, style]) for style in STYLES)
        paired = {style: [y / x for x, y in zip(seconds[name, "ours"], seconds[name, style])] for style in STYLES}
        limit = flops(name, problem) / rate
        table[f"ssf-toy/{name}"] = {
            "ours": a,
            "peer": b,
            "lean": c,
            "limit": limit,
            "ratio": statistics.median(paired["peer"]),
            "ratio_lean": statistics.median(paired["lean"]),
            "fraction_of_limit": limit / a,
            "quartiles": {style: quartiles(seconds[name, style]) for style in STYLES},
            "ratio_quartiles": quartiles(paired["peer"]),
            "ratio_lean_quartiles": quartiles(paired["lean"]),
            "flops": flops(name, problem),
            "flops_per_second": rate,
            "rounds": rounds,
            "blocks": blocks,
        }
    return table


# Where the time goes.


class Stopwatch:
    """Time spent in wrapped functions while a round runs, each without the wrapped functions that it calls.

    The clock's own cost is measured and taken off, per call and per call within.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self.clock = clock
        self.reset()
        self.inside = self.outside = 0.0
        inner = self.wrap("inner", lambda: None)
        outer = self.wrap("outer", lambda: [inner() for _ in range(20_000)])
        outer()
        self.inside = self.spent["inner"] / self.calls["inner"]
        self.outside = self.spent["outer"] / self.calls["inner"]
        self.reset()

    def reset(self) -> None:
        self.spent: Counter[str] = Counter()
        self.calls: Counter[str] = Counter()
        self.within = [0.0]

    def wrap(self, label: str, function: Callable) -> Callable:
        def watched(*args, **options):
            self.within.append(0.0)
            start = self.clock()
            try:
                return function(*args, **options)
            finally:
                spent = self.clock() - start
                self.spent[label] += spent - self.within.pop() - self.inside
                self.calls[label] += 1
                self.within[-1] += spent + self.outside

        return watched


def profile(device: str, rounds: int, blocks: int) -> dict[str, dict[str, float]]:
    """Seconds per round of the pieces of a round, timed while it runs; medians over the blocks."""
    problem, clock = workload(device), clock_of(device)
    watch = Stopwatch(clock)
    algorithms = ours()
    plain: dict[str, list[float]] = {name: [] for name in algorithms}
    parts: dict[str, list[Counter[str]]] = {name: [] for name in algorithms}
    for block in range(-1, blocks):
        for name, algorithm in algorithms.items():
            play = lambda algorithm=algorithm: run(algorithm, problem, rounds, sampled=SAMPLED, every=rounds)
            whole = timed(play, device)
            watch.reset()
            with ExitStack() as stack:
                for label, owner, attribute in places(algorithm):
                    watched = watch.wrap(label, getattr(owner, attribute))
                    stack.enter_context(mock.patch.object(owner, attribute, watched))
                watch.wrap("loop and the rest", play)()
            if block >= 0:
                plain[name].append(whole / rounds)
                parts[name].append(Counter({label: spent / rounds for label, spent in watch.spent.items()}))
    table = {}
    for name in algorithms:
        labels = dict.fromkeys(label for label, *_ in [*PIECES, ("loop and the rest",)])
        split = {label: statistics.median(part[label] for part in parts[name]) for label in labels}
        table[f"ssf-toy/{name}"] = {"round": statistics.median(plain[name])} | split
    return table


PIECES = (
    ("seeding generators", Key, "generator"),
    ("random numbers", torch, "randperm"),
    ("random numbers", torch, "randint"),
    ("random numbers", torch, "randn"),
    ("sampling clients", loop, "sample_clients"),
    ("gathering batches", MatrixRegression, "draw"),
    ("gradients", MatrixRegression, "grads"),
    ("gradients", MatrixRegression, "restrict"),
    ("projector: QR", torch.linalg, "qr"),
    ("projector: the rest", Spherical, "draw"),
    ("project and lift", DenseBasis, "project"),
    ("project and lift", DenseBasis, "lift"),
    ("client, other lines", engine, "run_clients"),
    ("own rows in and out", engine, "map_leaves"),
    ("server, other lines", Algorithm, "broadcast"),
    ("server, other lines", Algorithm, "server"),
    ("accounting", loop, "cost"),
)


def places(algorithm: Algorithm) -> list[tuple[str, object, str]]:
    """Where the pieces are called: methods of the abstract algorithm are this one's."""
    return [(label, type(algorithm) if owner is Algorithm else owner, name) for label, owner, name in PIECES]


# Memory.


def resident() -> float:
    """Resident memory of this process, MiB (Linux)."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGESIZE") / 2**20


def memory(device: str, early: int = 2_000, rounds: int = 25_000) -> dict[str, dict[str, float]]:
    """Resident memory after `early` and after `rounds` rounds of one run, MiB."""
    problem = workload(device)
    table = {}
    for name in ("fedavg", "ssf"):
        seen: dict[int, float] = {}
        note = lambda done, seen=seen: seen.update({done: resident()})
        run(ours()[name], problem, rounds, sampled=SAMPLED, every=500, progress=note)
        late = max(value for done, value in seen.items() if done >= early)
        table[f"ssf-toy/{name}"] = {
            f"after {early}": seen[early],
            f"after {rounds}": seen[rounds],
            "growth": seen[rounds] - seen[early],
            "peak growth": late - seen[early],
        }
    return table


# Output.


def show_rounds(table: dict[str, dict], where: dict[str, object]) -> None:
    print(f"\nmicroseconds per round ({where['time']}, median of blocks; quartiles in brackets)\n")
    us = lambda seconds: f"{seconds * 1e6:.0f}"
    print(f"{'':18}" + "".join(f"{style:>24}" for style in STYLES) + f"{'limit':>8}")
    for name, row in table.items():
        cells = []
        for style in STYLES:
            low, high = row["quartiles"][style]
            cells.append(f"{us(row[style])} [{us(low)}, {us(high)}]")
        print(f"{name:18}" + "".join(f"{cell:>24}" for cell in cells) + f"{us(row['limit']):>8}")
    print(f"\n{'':18}{'peer/ours':>24}{'lean/ours':>24}{'limit/ours':>14}   (quartiles over the blocks)")
    for name, row in table.items():
        cells = []
        for ratio in ("ratio", "ratio_lean"):
            low, high = row[f"{ratio}_quartiles"]
            cells.append(f"{row[ratio]:.1f}x [{low:.1f}, {high:.1f}]")
        print(f"{name:18}" + "".join(f"{cell:>24}" for cell in cells) + f"{row['fraction_of_limit']:>14.3f}")
    rate = next(iter(table.values()))["flops_per_second"]
    print(f"\nfloat32 matrix products: {rate / 1e9:.0f} GFLOP/s")


def show_profile(table: dict[str, dict[str, float]]) -> None:
    pieces = list(next(iter(table.values())))
    print("\nmicroseconds per round (share of the round)\n")
    print(f"{'':24}" + "".join(f"{name:>20}" for name in table))
    for piece in pieces:
        cells = [f"{row[piece] * 1e6:.1f} ({row[piece] / row['round']:4.0%})" for row in table.values()]
        print(f"{piece:24}" + "".join(f"{cell:>20}" for cell in cells))


def show_memory(table: dict[str, dict[str, float]]) -> None:
    print("\nresident memory, MiB\n")
    for name, row in table.items():
        print(f"{name:18}" + "   ".join(f"{label} {value:.1f}" for label, value in row.items()))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=200, help=f"rounds of a block (a peer's: 1/{PEER_SHARE} of them)")
    parser.add_argument("--blocks", type=int, default=25, help="blocks per variant")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--json", action="store_true", help="print JSON and nothing else")
    parser.add_argument("--check", action="store_true", help="only check that both sides agree")
    parser.add_argument("--profile", action="store_true", help="only where the time of a round goes")
    parser.add_argument("--memory", action="store_true", help="only the resident memory over 25,000 rounds")
    options = parser.parse_args()
    if options.rounds < 1 or options.blocks < 1:
        parser.error("--rounds and --blocks must be at least 1")
    if options.device == "cuda" and not torch.cuda.is_available():
        parser.error("--device cuda: no CUDA device was found")
    torch.set_num_threads(1)
    torch.manual_seed(0)
    random.seed(0)

    gaps = check(options.device)
    where = environment(options.device)
    if options.check:
        found = {f"ssf-toy/{name}": gap for name, gap in gaps.items()}
        show = lambda table: print("\n".join(f"{name:18}largest relative gap {gap:.1e}" for name, gap in table.items()))
    elif options.profile:
        found, show = profile(options.device, options.rounds, options.blocks), show_profile
    elif options.memory:
        found, show = memory(options.device), show_memory
    else:
        found, show = measure(options.device, options.rounds, options.blocks), lambda table: show_rounds(table, where)
    report(found, where, options.json, show)
    return 0


if __name__ == "__main__":
    sys.exit(main())
