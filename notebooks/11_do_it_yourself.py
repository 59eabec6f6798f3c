# %% [markdown]
# # Do it yourself
#
# Eleven notebooks used methods, problems and claims that were there. In this one you write your own: a method, a
# problem, and a claim with its control. All three then work everywhere: in `run`, on the command line, in `compare`,
# in a ledger. The example is **FedAvg with server momentum** (Hsu, Qi and Brown call it FedAvgM): the server goes on
# with a share of its last step, as a heavy ball does. The package has it as a server optimizer,
# `ServerOptimizer(FedAvg(...), Momentum())`; here you write it yourself.
#
# **Time:** core sections (*) 1 to 5, about 25 minutes; all of it with the exercises about 135. It runs in 30 s.
# **Needs:** notebooks 00, 04.
#
# ## What you will learn
# - which five steps make a method, what each is given, and what it must return;
# - three laws that every method should pass. At an end of its range it becomes a known method; it resumes after a kill
#   with the same bits; and it sends the bytes that you count by hand;
# - what a problem has to bring, so that every method runs on it;
# - how both get on the command line without a change of the package, and how a claim gets into a ledger.
#
# ## Prerequisites
# Notebook 00 (FedAvg, client drift) and notebook 04 (claims, controls). Python's dataclasses, and functions with
# `yield`. `docs/book/do_it_yourself.md` has the contract in full, with shapes; `docs/template/` has the files to copy.
#
# ## Symbols
# | here | meaning | the paper's letter | in the code |
# |---|---|---|---|
# | $N$, $S$ | clients, clients of a round | Hsu et al.: $K$ | `problem.n`, `len(clients)` |
# | $K$, $\eta$ | local steps, their step size | $E$, $\eta$ | `local_steps`, `lr` |
# | $x$, $y_i$ | global model $(d,)$, local models $(S, d)$ | $w$, $w_k$ | `server.x`, `y` |
# | $\Delta$ | mean of the clients' changes, $\frac1S \sum_i (y_i - x)$ | $-\Delta w$ | `up.dy.mean(0)` |
# | $v$, $\beta$ | velocity of the server $(d,)$, its momentum | $-v$, $\beta$ | `server.v`, `momentum` |

# %%
import json
import os
import shutil
import subprocess
import sys
import tomllib
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import torch

import fedtheory
from fedtheory import Algorithm, Constants, Cost, FedAvg, Key, Layout, Problem, Quadratic, Seed, State, play_round, run
from fedtheory.core.message import cost
from fedtheory.course import fold, located, show, start, table, watch
from fedtheory.course.exercises import check
from fedtheory.papers import style
from fedtheory.theory import ledger, search
from fedtheory.theory.claim import Claim, Outcome, Printed

key = start()

# %% [markdown]
# ## 1. A method is three messages and five steps *
#
# In a round the server **broadcasts**, each **client** steps and answers, and the **server** takes in the answers.
# Where it sends a reply, each client **closes** with it. Before the first round comes **init**. Only the `State`
# outlives a round: the server's part, and what each client keeps. What crosses is a dataclass, so that it can be
# counted.
#
# Start with the nouns. The server holds the model and its velocity. Down goes the model, up goes a change.


# %%
@dataclass(frozen=True)
class Server:
    x: torch.Tensor  # the model, (d,)
    v: torch.Tensor  # its velocity, (d,)


@dataclass(frozen=True)
class Down:
    x: torch.Tensor  # (d,)


@dataclass(frozen=True)
class Up:
    dy: torch.Tensor  # y_i - x, (S, d)


# %% [markdown]
# Then the verbs. The server's line is
#
# $$v \leftarrow \beta v + \Delta, \qquad x \leftarrow x + v, \qquad \Delta = \tfrac1S \textstyle\sum_i (y_i - x).$$
#
# See four things in the next cell. The class is a *frozen dataclass*: its fields are the hyperparameters, and nothing
# else is remembered in it; memory is the `State`. The clients of a round are *stacked*: `y` has a row for each, and no
# line loops over clients. `client` *yields* every local iterate: that is what lets a lemma about drift look into the
# round. And whatever is random takes a *named key*: `key.fold("xi")` gives the same minibatches whoever asks.
#
# `close` is not written: nobody replies, and the base class leaves the clients as they are.


# %%
@dataclass(frozen=True)
class ServerMomentum(Algorithm):
    lr: float
    local_steps: int
    momentum: float = 0.9
    name = "ServerMomentum"

    def init(self, problem, x, key):
        return State(Server(x, torch.zeros_like(x)), None)

    def broadcast(self, server, key):
        return Down(server.x)

    def client(self, problem, clients, own, down, key):
        xi, y = problem.draw(clients, self.local_steps, key.fold("xi")), down.x.expand(len(clients), -1)
        for k in range(self.local_steps):
            y = y.sub(problem.grads(y, xi[k]), alpha=self.lr)
            yield y
        return Up(y - down.x), None

    def server(self, server, down, up, clients, key):
        v = self.momentum * server.v + up.dy.mean(0)
        return Server(server.x + v, v), None


# %% [markdown]
# ## 2. At momentum 0 it is FedAvg, bit for bit *
#
# A new method has nothing to be compared with, except at its ends. At $\beta = 0$ the velocity is $\Delta$ and the
# server does what FedAvg's does: the same operations in the same order, so the same bits. A law of this kind costs a
# line and finds most slips.
#
# The problem is that of notebook 00: two clients who want different things.
#
# > **Predict.** For how many rounds will `torch.equal` say that the two models are the same?

# %%
H = torch.tensor([[[1.0, 0.0], [0.0, 0.1]], [[0.1, 0.0], [0.0, 1.0]]])
b = torch.tensor([[-1.0, -1.0], [1.0, 2.0]])
two = Quadratic(H, b)
fedavg = FedAvg(lr=0.02, local_steps=5)
heavy = ServerMomentum(lr=0.02, local_steps=5, momentum=0.6)

rows = []
for rounds in (1, 2, 100):
    plain = run(fedavg, two, rounds, every=rounds)
    rows.append([rounds])
    for momentum in (0.0, 0.6):
        history = run(replace(heavy, momentum=momentum), two, rounds, every=rounds)
        rows[-1].append("the same bits" if torch.equal(history.x, plain.x) else "another model")
table(["rounds", "momentum 0", "momentum 0.6"], rows)

# %% tags=["hide-input"]
# Checks: equal at every length without momentum; with it only while there is no last step to go on with
assert [row[1] for row in rows] == ["the same bits"] * 3
assert [row[2] for row in rows] == ["the same bits", "another model", "another model"]

# %% [markdown]
# For all of them. The column beside it is the control: the comparison can say no. In the first round even 0.6 changes
# nothing, since there is no last step to go on with. So a test of one round would prove nothing.
#
# ## 3. What it sends, what it keeps, what a seed is worth *
#
# Count by hand. A client is sent $x$ and answers with $y_i - x$: $d$ numbers of 8 bytes each way. The velocity never
# crosses, so momentum costs no byte. The package counts the dataclasses that crossed, and the two must agree.

# %%
rounds, S, d = 40, 1, two.d
history = run(heavy, two, rounds, sampled=S, seed=3)
by_hand = rounds * S * d * 8
table(
    ["", "up", "down"], [["counted", history["up_bytes"][-1], history["down_bytes"][-1]], ["by hand", by_hand, by_hand]]
)
assert history["up_bytes"][-1] == history["down_bytes"][-1] == by_hand

# %% [markdown]
# Had `broadcast` returned the whole `Server`, every round would have worked, and only the count would have shown the
# slip: twice as much down.
#
# Where both sides need the same random vector, one integer is enough: a `Seed` carries a key and a pure function of it.
# The receiver makes the value; 8 bytes are charged, and what was spared is stated beside them.

# %%
draw = lambda named: torch.randn(1000, generator=named.generator())
direction = Seed(key.fold("direction"), draw, dense=Cost(1000, 8000))
charged = cost(direction)
print(f"{charged.bytes} bytes cross, {charged.saved_bytes} are spared; the value has {len(direction.value)} numbers")
assert torch.equal(direction.value, draw(Key(0).fold("direction")))
assert (charged.bytes, charged.saved_bytes) == (8, 7992)

# %% [markdown]
# The `State` decides whether a run can be resumed. Twenty rounds, a checkpoint, and twenty more are forty rounds, with
# the same bits: the state and the named keys are all there is. Another seed samples other clients and ends elsewhere.

# %%
with TemporaryDirectory() as folder:
    run(heavy, two, 20, sampled=S, seed=3, checkpoint=folder)
    resumed = run(heavy, two, rounds, sampled=S, seed=3, checkpoint=folder)
other = run(heavy, two, rounds, sampled=S, seed=4)
print(
    "resumed after 20 rounds, the same bits:", torch.equal(resumed.x, history.x) and resumed.columns == history.columns
)
print("with another seed, the same bits:", torch.equal(other.x, history.x))
assert torch.equal(resumed.x, history.x)
assert resumed.columns == history.columns
assert not torch.equal(other.x, history.x)

# %% [markdown]
# ## 4. Its drift *
#
# FedAvg does not rest at the solution $x^\star$: with more than one local step, each client follows its own gradient
# (notebook 00). Momentum makes the server faster or slower. Does it also change where it ends?
#
# > **Predict.** FedAvg takes away 5.3% of the distance to its resting point in every round here. Which of
# > $\beta = 0, 0.6, 0.9$ is fastest? And which of the three rests nearest to $x^\star$?

# %%
rest = run(fedavg, two, 800, every=800).x
betas = (0.0, 0.6, 0.9)
away = {beta: [] for beta in betas}
for beta, distances in away.items():
    method = replace(heavy, momentum=beta)
    state = method.init(two, two.start(), key)
    for t in range(150):
        distances.append(float((state.server.x - rest).norm()))
        state, _, _ = play_round(method, two, state, two.clients, key.fold("round", t))
ends = {beta: run(replace(heavy, momentum=beta), two, 800, every=800).x for beta in betas}
gap = {beta: float((x - two.constants.x_star).norm()) for beta, x in ends.items()}
table(
    ["momentum", "to FedAvg's rest after 100 rounds", "rests this far from x*"],
    [[f"{beta:g}", f"{away[beta][100]:.0e}", gap[beta]] for beta in betas],
)

# %% tags=["hide-input"]
# Picture: the distance to FedAvg's resting point over the rounds
figure, (axes,) = style.new_figure(columns=1.5)
for place, (beta, distances) in enumerate(away.items()):
    axes.plot(distances, style.STYLES[place], color=style.SEQUENCE[place], label=f"momentum {beta:g}")
axes.set(yscale="log", ylim=(1e-10, 10), xlabel="rounds", ylabel="distance to FedAvg's rest")
style.legend_above(figure, 3)
show(figure, values=False)

# %% tags=["hide-input"]
# Checks: one resting point for all, away from x*; the middle one is fastest
assert max(float((x - rest).norm()) for x in ends.values()) < 1e-12
assert min(gap.values()) > 0.01
assert away[0.6][100] < 1e-6 * away[0.0][100]
assert abs(away[0.0][100] / away[0.0][99] - 0.947) < 1e-3

# %% [markdown]
# All three rest at the same point, 0.011 from $x^\star$. At rest the server does not move, so $v = 0$, so $\Delta(x) =
# 0$: and that equation is FedAvg's, whatever $\beta$ is. **Momentum changes how fast, not where.** Drift is made within
# a round, and momentum works between rounds. A cure has to reach the clients' steps, as SCAFFOLD's control variates do.
#
# The speed: take a direction in which FedAvg's round takes away the share $s$ of the distance $e^t$. There
# $e^{t+1} = (1 + \beta - s)\, e^t - \beta\, e^{t-1}$ ties the rounds of momentum. So the distance shrinks by the root
# of $\lambda^2 - (1 + \beta - s) \lambda + \beta$ that is larger in absolute value. With too little momentum one root
# stays near 1; with too much the roots are complex, of length $\sqrt\beta$, and the server swings. Exercise 1 finds the
# best.
#
# `watch` shows the local steps that `client` yields, without playing the round.

# %%
state = heavy.init(two, two.constants.x_star.clone(), key)
steps = watch(heavy, two, state, key.fold("round", 0))  # (local steps, clients, d)
table(
    ["local step", "client 1 from x*", "client 2 from x*", "their mean from x*"],
    [
        [k + 1, *(y - two.constants.x_star).norm(dim=-1).tolist(), float((y.mean(0) - two.constants.x_star).norm())]
        for k, y in enumerate(steps)
    ],
)
drifts = (steps.mean(1) - two.constants.x_star).norm(dim=-1)
assert float(drifts[0]) < 1e-12
assert float(drifts[-1]) > 5e-4

# %% [markdown]
# After one step the two clients' moves cancel; after two they do not any more.
#
# ## 5. A problem *
#
# A problem brings `n`, `layout`, `dtype`, `device`, `weights`, what is known of it (`constants`), and four functions.
# `draw` gives the samples of all local steps. `full` gives one sample with all of a client's data, so that
# `grads(y, full(clients))` is exact. `grads` and `losses` evaluate stacked models, row $i$ for client $i$. Ours has no
# noise, so a sample says only whose loss it is: it is the client's id.
#
# $$F_i(x) = \sum_j \log\cosh(x_j - a_{ij}), \qquad \nabla F_i(x) = \tanh(x - a_i).$$
#
# A bowl at its centre $a_i$, and nearly straight far from it; $L = 1$. The solution has no formula, so the constructor
# walks there, and `run` can record the error.


# %%
class LogCosh(Problem):
    def __init__(self, a):
        self.a, self.n, self.layout = a, len(a), Layout.single(a.shape[1])
        self.dtype, self.device = a.dtype, a.device
        self.weights = torch.full((self.n,), 1 / self.n, dtype=torch.float64)
        x = a.detach().mean(0)
        for _ in range(300):
            x = x - torch.tanh(x - a.detach()).mean(0)
        self.constants = Constants(L=1.0, x_star=x)

    def draw(self, clients, steps, key):
        return [clients] * steps

    def full(self, clients):
        return clients

    def grads(self, y, xi):
        return torch.tanh(y - self.a[xi])

    def losses(self, y, xi):
        return torch.cosh(y - self.a[xi]).log().sum(-1)


# %% [markdown]
# Three checks come before anything is believed: gradients against differences of the losses, the gradient at the
# solution, and the sampling. A client must get the same row, whoever else takes part.

# %%
bowls = LogCosh(2 * torch.randn(8, 5, generator=key.fold("centres").generator()))
y = torch.randn(8, 5, generator=key.fold("y").generator())
xi, h = bowls.full(bowls.clients), 1e-6
slopes = [(bowls.losses(y + e, xi) - bowls.losses(y - e, xi)) / (2 * h) for e in h * torch.eye(5)]
print("gradients are the losses' differences:", torch.allclose(torch.stack(slopes, -1), bowls.grads(y, xi), atol=1e-8))
print("no gradient at the solution:", float(bowls.grad(bowls.constants.x_star).norm()) < 1e-12)
some = torch.tensor([2, 5])
print("a client's row is its own:", torch.equal(bowls.grads(y[some], bowls.full(some)), bowls.grads(y, xi)[some]))

rows = []
for steps_ in (1, 5):
    for beta in (0.0, 0.6):
        history = run(ServerMomentum(0.5, steps_, beta), bowls, 600, every=600)
        rows.append([steps_, f"{beta:g}", history["error"][-1]])
table(["local steps", "momentum", "error at rest"], rows)

# %% tags=["hide-input"]
# Checks: differences, solution, rows; no drift with one step, the same drift with and without momentum
assert torch.allclose(torch.stack(slopes, -1), bowls.grads(y, xi), atol=1e-8)
assert float(bowls.grad(bowls.constants.x_star).norm()) < 1e-12
assert torch.equal(bowls.grads(y[some], bowls.full(some)), bowls.grads(y, xi)[some])
assert max(error for k, _, error in rows if k == 1) < 1e-9
assert abs(rows[2][2] - rows[3][2]) < 1e-9 < 1e-2 < rows[2][2]

# %% [markdown]
# With one local step both reach the solution; with five both rest at the same distance from it. So section 4's finding
# holds on losses that are not quadratic, too.
#
# ## 6. On the command line, and in `compare`
#
# `run` takes objects. The command line takes names, and finds them in *entry points* of whatever is installed. Your own
# distribution names a `Method` and an `Offer` in its `pyproject.toml`, and no file of the package changes. The folder
# `docs/template/` is such a distribution, with the classes above. These are its last lines and its entry points:

# %%
template = located("docs/template")
source = (template / "own.py").read_text()
print(source[source.index("METHOD = ") :])
project = tomllib.loads((template / "pyproject.toml").read_text())["project"]
for group, points in project["entry-points"].items():
    print(group, points)

# %% [markdown]
# You would copy the folder and say `pip install -e .` in it. The next cell works without pip and leaves the environment
# alone: it puts the module, and the metadata that pip would write, into a temporary folder on Python's path. Then it
# calls the command line as you would. `lambda o: ServerMomentum(o.lr, o.local_steps)` is what `--lr` and
# `--local-steps` reach.

# %%
home = TemporaryDirectory()
shutil.copy(template / "own.py", home.name)
info = Path(home.name) / "fedtheory_own-1.0.dist-info"
info.mkdir()
(info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n")
groups = project["entry-points"].items()
lines = [f"[{group}]\n" + "".join(f"{name} = {to}\n" for name, to in points.items()) for group, points in groups]
(info / "entry_points.txt").write_text("".join(lines))
paths = [home.name, str(Path(fedtheory.__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths)}


def say(*words):
    """What a command prints as JSON."""
    command = [sys.executable, "-m", "fedtheory", *words, "--json"]
    done = subprocess.run(command, env=environment, cwd=home.name, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


names = say("list")
print("listed:", "ServerMomentum" in names["algorithms"], "logcosh" in names["problems"])
(played,) = say("run", "ServerMomentum", "logcosh", "--rounds", "400", "--lr", "0.3", "--local-steps", "1")
print("run: recorded", ", ".join(played["columns"]))
fold(f"error from {played['columns']['error'][0]:.3g}, below 1e-6 at the end: {played['columns']['error'][-1] < 1e-6}")
assert played["columns"]["error"][-1] < 1e-6

# %% [markdown]
# A problem whose `Offer` names learning rates is a task of `compare`, under its rules. All methods get the same
# rates, and further ones where the best lies at an end. Each rate is one full run on a seed that is not used again.
# Bytes are counted as they cross.
#
# > **Predict.** Five local steps, few rounds, the rate tuned for each. Will momentum be ahead of FedAvg, intervals
# > apart?

# %%
words = ("--methods", "ServerMomentum", "FedAvg", "SCAFFOLD", "--tasks", "logcosh", "--seeds", "3", "--workers", "1")
(compared,) = say("compare", *words, "--out", home.name)
columns = ("method", "rate", "quality", "low", "high", "first", "final", "up")
table(columns, [[row[name] for name in columns] for row in compared["table"]], digits=3)

# %% [markdown]
# `quality` is the error at the end (the lower the better) with its interval from `low` to `high`. `first` to `final`
# are the places that the intervals leave open. `up` is the megabytes that all clients sent up.

# %% tags=["hide-input"]
# Checks: the places, intervals apart; momentum sends what FedAvg sends
found = {row["method"]: row for row in compared["table"]}
assert set(found) == {"ServerMomentum", "FedAvg", "SCAFFOLD"}
order = sorted(found, key=lambda name: found[name]["first"])
assert order == ["SCAFFOLD", "FedAvg", "ServerMomentum"]
assert all(row["first"] == row["final"] for row in found.values())
assert found["ServerMomentum"]["up"] == found["FedAvg"]["up"] == found["SCAFFOLD"]["up"] / 2
home.cleanup()

# %% [markdown]
# No: it is behind, intervals apart. `compare` tunes the rate and nothing else, the class has $\beta = 0.9$, and the
# quick scale plays 20 rounds. A velocity that takes ten of them to build up takes as long to die down. That says
# something about these conditions, not about momentum. SCAFFOLD, which takes the drift out, is ahead of both for twice
# the bytes. An `Offer` with more `rounds`, or a second `Method` with another $\beta$, is a line in `own.py`.
#
# Finished runs are cached by configuration: the class's name, its hyperparameters, the problem's data. Code is not part
# of it. So when you change what your method computes, raise `revision` in the class (`revision = 2`), as the package
# does; a problem's class may have one, too.
#
# ## 7. A claim with its control
#
# A theorem about momentum would begin with a bound on how far the server moves. Here is one, of our own:
#
# > **Claim.** Let $0 \le \beta < 1$ and $v^0 = 0$. Then $\lVert x^{t+1} - x^t \rVert \le \dfrac{1}{1 - \beta}
# > \max_{s \le t} \lVert \Delta^s \rVert$ in every round $t$.
#
# The proof is a line: the velocity is $\sum_{s \le t} \beta^{t-s} \Delta^s$. A check tries to break it all the same, on
# the models that the code yields; otherwise it would check the proof's algebra alone. The check reads $\Delta$ off the
# velocity, so it would miss a slip in that line. `sides` builds a problem from two free centres $a_1, a_2$, plays the
# method and returns both sides. `maximise` climbs on their ratio from random starts, at each edge in turn.


# %%
def sides(z, edge, factor=1.0):
    """Both sides of the claim in the last round, the right one times a factor; the centres are 3 z."""
    momentum, rounds = edge
    problem, method, changes = LogCosh(3 * z.reshape(2, 1)), ServerMomentum(0.1, 2, momentum), []
    state = method.init(problem, problem.start(), Key(0))
    for t in range(rounds):
        before = state.server
        state, _, _ = play_round(method, problem, state, problem.clients, Key(0).fold("round", t))
        changes.append((state.server.v - momentum * before.v).norm())
    return (state.server.x - before.x).norm(), factor * torch.stack(changes).max() / (1 - momentum)


def bound(factor):
    """A check of the claim with its constant times a factor: a search designed to break it."""

    def check(effort):
        edges = [(0.3, 6), (0.6, 10)]
        found = search.maximise(
            lambda z, edge: sides(z, edge, factor), 2, Key(0).fold("own claim"), edges=edges, restarts=2, steps=8
        )
        at = f"momentum {found.edge[0]}, {found.edge[1]} rounds"
        where = None if found.holds else {"centres": [round(3 * a, 3) for a in found.point.tolist()], "at": at}
        return Outcome(found.holds, "search", found.ratio, f"{found.tried} points, the worst at {at}", where)

    return check


# %% [markdown]
# A search that finds nothing is worth little alone. The **control** is the nearest false statement, decided by the same
# check, which must refute it: here the constant a tenth smaller. If the search could not find an instance for that one,
# its silence on the claim would mean nothing.
#
# A `Claim` holds both, with what is assumed and where that is printed, and the ledger decides it and keeps the record.

# %%
mine = Claim(
    id="own.speed",
    paper="own",
    where="notebook 11, section 7",
    statement="||x^{t+1} - x^t|| <= max_{s <= t} ||Delta^s|| / (1 - beta) in every round t",
    kind="inequality",
    check=bound(1.0),
    control=bound(0.9),
    broken="the constant a tenth smaller, 0.9/(1 - beta)",
    assumes=(Printed("0 <= beta < 1 and v^0 = 0", "notebook 11, section 7"),),
)
(record,) = ledger.check([mine], "quick")
with TemporaryDirectory() as folder:
    path = Path(folder) / "ledger.json"
    ledger.save(path, [record | {"effort": "quick", "seed": 0}])
    kept = ledger.load(path)
    page = ledger.page(kept)
table(
    ["claim", "verdict", "evidence", "worst ratio", "control refuted"],
    [[r["id"], r["verdict"], r["evidence"], r["margin"], "yes" if r["control_refuted"] else "NO"] for r in kept],
)
fold(f"control: {record['control'].partition(':')[0]}")
print("stands on the ledger's page:", "`own.speed`" in page)

# %% tags=["hide-input"]
# Checks: it holds, nearly with equality, and its control is refuted
assert (record["verdict"], record["control_refuted"]) == ("holds", True)
assert 0.98 < record["margin"] <= 1 + search.ROUNDING

# %% [markdown]
# The worst ratio is near 1. The search found the worst case by itself: centres far away, where $\tanh$ is flat, give
# the same $\Delta$ in every round. So the constant cannot be much smaller.
#
# In the package a claim stands in `theory/<paper>/`, and `python -m fedtheory claims` decides it with the others
# (CONTRIBUTING.md says how). A ledger of one's own is a file, as above.
#
# ## 8. The tests to copy
#
# The three laws of this notebook are three tests in `docs/template/test_own.py` (two more test the problem). They know
# nothing of momentum but its end at 0: change the import and that line, and they are yours.

# %%
tests = (template / "test_own.py").read_text()
print(tests[tests.index("def test_degenerates") : tests.index("def test_gradients")].rstrip())

# %% [markdown]
# A test counts once it was seen to fail. Exercise 3 breaks the method in three ways and asks which test notices.
#
# ## 9. What a slip says
#
# In its first round a run checks what each step returns. One line says what does not fit, its value, what was expected,
# and a fix. Later rounds are not checked, so they cost nothing. Three slips of the first hour:


# %%
def slip(build):
    """The last line of what a slip ends in."""
    try:
        build()
    except (TypeError, ValueError) as error:
        fold(f"{type(error).__name__}: {error}")


@dataclass(frozen=True)
class Nameless(Algorithm):
    lr: float
    init, broadcast = ServerMomentum.init, ServerMomentum.broadcast
    client, server = ServerMomentum.client, ServerMomentum.server


@dataclass(frozen=True)
class TooEager(ServerMomentum):
    def client(self, problem, clients, own, down, key):
        yield down.x.expand(len(clients), -1)
        return Up(-self.lr * problem.grad(down.x)), None  # the mean of all clients, in the place of a row for each


slip(lambda: Nameless(0.1))
slip(lambda: run(TooEager(0.1, 1), bowls, 1))
slip(lambda: replace(heavy.init(two, two.start(), key), server=torch.zeros(2)))

# %% [markdown]
# The second is the dangerous one. Nothing crashes: the mean over a vector's entries is a number, and a number added to
# a vector is a vector.

# %% [markdown]
# ## Exercises
#
# **Exercise 1** (3 points). Along a direction of share $s$ the distance shrinks, in the long run, by the larger root in
# absolute value of $\lambda^2 - (1 + \beta - s)\lambda + \beta$ a round. Derive the momentum at which that is least, as
# a function of $s \in (0, 1)$. The check computes the roots at many shares and momenta.

# %%
answer = ...  # a function: lambda s: ...
check("11.1", answer)

# %% [markdown]
# <details>
# <summary>Solution</summary>
#
# ```python
# answer = lambda s: (1 - s**0.5) ** 2
# ```
#
# The roots are real where $(1 + \beta - s)^2 \ge 4 \beta$, that is where $1 - \sqrt\beta \ge \sqrt s$, and then the
# larger one falls with $\beta$. Beyond, they are complex and of length $\sqrt\beta$, which rises. So the best is
# where they meet: $\sqrt\beta = 1 - \sqrt s$. For the two clients of section 4, $s = 0.053$ and the best momentum is
# 0.59; the distance shrinks by 0.77 a round instead of 0.95. One momentum serves one $s$: where curvatures differ, it
# is too little for some directions and too much for others.
#
# </details>

# %% [markdown]
# **Exercise 2** (3 points). Nesterov's momentum looks ahead: $v \leftarrow \beta v + \Delta$ as before, then
# $x \leftarrow x + \beta v + \Delta$ with the *new* $v$. Write the server's line, from the model (d,), the velocity
# (d,), the clients' changes (S, d) and $\beta$ to the new model and velocity. The check asks for four laws: the end at
# $\beta = 0$, the mean over the clients, the recursion of $v$, and the model's move with the new $v$.

# %%
answer = ...  # a function: lambda x, v, dy, beta: (new x, new v)
check("11.2", answer)

# %% [markdown]
# <details>
# <summary>Solution</summary>
#
# ```python
# def answer(x, v, dy, beta):
#     change = dy.mean(0)
#     v = beta * v + change
#     return x + beta * v + change, v
# ```
#
# It is heavy ball whose clients start $\beta v$ further on. It rests where $v = 0$ and $\Delta = 0$, again FedAvg's
# point.
#
# </details>

# %% [markdown]
# **Exercise 3** (3 points). Three changes to `ServerMomentum`, each alone:
#
# - A: the velocity is not in `Server`; the step `server` keeps it in the method object, by `object.__setattr__`;
# - B: `broadcast` returns the whole `server`, and `client` reads `down.x` of it;
# - C: the velocity is $\beta v + (1 - \beta) \Delta$, a running mean.
#
# Which of the tests of section 8 goes red? Answer for A, B and C with "degenerates", "resumes", "counts" or "none". The
# method object of a test is made once and used for all of its runs.

# %%
answer = ...  # a dict: {"A": ..., "B": ..., "C": ...}
check("11.3", answer)

# %% [markdown]
# <details>
# <summary>Solution</summary>
#
# ```python
# answer = {"A": "resumes", "B": "counts", "C": "none"}
# ```
#
# A: what a checkpoint does not hold is lost, or left over from the run before. At momentum 0 nothing of it is used, and
# no byte is sent more. B: the velocity crosses, $d$ numbers more for each client. C: at $\beta = 0$ it is FedAvg, it
# resumes, it sends the same: all green. It is another method, with the same resting point, and at $\beta = 0.9$ with
# the speed of a tenth of the rate. A law at one end does not tell apart two methods that share this end. A law at
# another point does, such as $v = \Delta^0 (1 + \beta)$ after two rounds of the same change.
#
# </details>

# %% [markdown]
# **Exercise 4** (4 points). Design a control. A new claim says: *every `ServerMomentum` rests where FedAvg rests*. Its
# check plays a method for 600 rounds on the two clients of section 4 and holds where it ends within $10^{-6}$ of the
# resting point of `FedAvg(lr=0.02, local_steps=5)`. Give an algorithm that the check must refute, and that makes a good
# control. It must come to rest *near* FedAvg's point, within a tenth of the distance from there to $x^\star$.

# %%
answer = ...  # an algorithm
check("11.4", answer)

# %% [markdown]
# <details>
# <summary>Solution</summary>
#
# ```python
# answer = FedAvg(lr=0.0195, local_steps=5)
# ```
#
# To first order the drift is proportional to $\eta (K - 1)$, so a rate 2.5% smaller moves the resting point by about a
# fortieth of its distance from $x^\star$. SCAFFOLD rests at $x^\star$: it would be refuted, too, and by a check ten
# times weaker; as a control it shows less. A method that diverges is refuted by anything.
#
# </details>

# %% [markdown]
# **Exercise 5** (3 points, in words). A colleague adds momentum to the *clients'* steps instead: each keeps a velocity
# during its local steps and starts a round with none. Does the resting point stay FedAvg's? What would you look at to
# decide, and which law would you write as a test?

# %% [markdown]
# *Your answer:*

# %% [markdown]
# <details>
# <summary>Rubric and a model answer</summary>
#
# - The resting point moves: the condition there is again a mean change of zero, but it is another change. (1 point)
# - The drift within the round is looked at, from what the client yields, on clients that differ. (1 point)
# - A law with both ends: local momentum 0 is FedAvg, bit for bit, and so is one local step. (1 point)
#
# *A model answer.* It moves. The server rests where $\Delta(x) = 0$. Momentum at the server leaves $\Delta$ as it is.
# Momentum in the clients makes their paths longer and so changes $\Delta$, for unequal curvatures by unequal amounts. I
# would watch the local iterates at FedAvg's resting point: their mean leaves it. As tests: local momentum 0 gives the
# same bits as FedAvg. With one local step the velocity is the gradient, so the bits are the same as well. Two steps
# give another model, as a control.
#
# </details>

# %% [markdown]
# ## Summary
# - A method is a frozen dataclass with five steps; memory is the `State`, what crosses is a dataclass, every draw has a
#   named key.
# - Three laws find most slips: it becomes a known method at an end, bit for bit; it resumes; it sends what you count.
# - Server momentum changes how fast, not where: it rests where FedAvg rests, away from $x^\star$.
# - A problem is four functions on stacked models, and what is known of it.
# - Entry points put both on the command line and into `compare`; a claim needs a check designed to break it, and a
#   control that the check refutes.
#
# ## References
# - T.-M. H. Hsu, H. Qi, M. Brown, *Measuring the Effects of Non-Identical Data Distribution for Federated Visual
#   Classification*, arXiv:1909.06335: server momentum, FedAvgM.
# - S. J. Reddi et al., *Adaptive Federated Optimization*, arXiv:2003.00295: other servers.
# - B. T. Polyak, *Some methods of speeding up the convergence of iteration methods*, 1964: the heavy ball.
# - S. P. Karimireddy et al., *SCAFFOLD*, arXiv:1910.06378: what takes the drift out.
#
# ---
# Previous: [10 Deep](10_deep.ipynb) · Next: [12 One proof](12_one_proof.ipynb)
