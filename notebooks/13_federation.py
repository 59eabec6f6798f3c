# %% [markdown]
# # From one process to a federation
#
# In the notebooks so far clients were rows of a tensor. Here the same run is played four ways: in one process, in four
# processes that share the clients, and as a server and clients that exchange bytes alone. Where
# [Flower](https://flower.ai) is installed, it also runs over a socket. The last model has **the same bits** each time.
# Now that the clients are really apart, we can test every count of bytes in this course: do we count what crosses?
#
# **Time:** core sections (*) 1 to 3, about 20 minutes; all of it with the exercises about 100. It runs in half a
# minute. **Needs:** notebooks 00, 03, 07.
#
# ## What you will learn
# - what the bits of a run depend on, and what they do not;
# - how a run is divided over processes without a change of its result;
# - what a message is made of: the payload, which we count, and the metadata and headers around it;
# - how a client that was away catches up, and what happens to a client whose upload is lost;
# - what a message costs on a socket, and for which methods that matters.
#
# ## Prerequisites
# Notebook 00 (a run), notebook 03 (SSF, a control variate in a random subspace), notebook 07 (DeComFL, which sends
# seeds and scalars). What a process is.
#
# ## Symbols
# | here | meaning | in the code |
# |---|---|---|
# | $N$, $S$, $T$, $t$ | clients, those of a round, rounds | `problem.n`, `sampled`, `rounds`, `round` |
# | $d$, $r$ | numbers of the model; of a projected vector | `problem.d`, `x_proj` |
# | $B$ | blocks into which the clients are cut | `blocks` |
# | $h$ | bytes around a message on the socket, beyond its payload | `over` |

# %%
import hashlib
import json
import logging
import os
import subprocess
import sys
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

import torch

from fedtheory import SSF, Coordinate, DeComFL, FedAvg, FedSub, Key, MatrixRegression, Scaffold, play_round, run
from fedtheory.course import committed, fold, provenance, show, start, table
from fedtheory.course.exercises import check
from fedtheory.federation.halves import ClientHalf, ServerHalf
from fedtheory.papers import style

key = start()

# %% [markdown]
# ## 1. One process *
#
# SSF on its own problem, matrix regression with $N = 12$ clients, $d = 1000$; $S = 6$ take part in each of $T = 3$
# rounds. These are the lines that will be played four times.

# %%
problem = MatrixRegression.ssf(0.5, Key(0).fold("data"), n=12)
algorithm = SSF.haar(0.01, 5, 10)
rounds, sampled = 3, 6
once = run(algorithm, problem, rounds, sampled=sampled, blocks=12)


# %%
def fingerprint(x):
    """SHA-256 of a model's bits: two models have the same one if they agree in every bit."""
    return hashlib.sha256(x.numpy().tobytes()).hexdigest()


columns = ("round", "error", "up_bytes", "down_bytes")
table(columns, list(zip(*(once[name] for name in columns))))

# %% tags=["nbval-ignore-output"]
print(fingerprint(once.x))

# %% [markdown]
# The long number names all bits of the model. On your machine it may be another: processors add in different orders,
# and a sum of floating-point numbers depends on the order. So this notebook says "the same bits" of runs on one
# machine only.
#
# **What do the bits depend on?** They depend on the key of each draw, and so not on who draws. They also depend on *how
# clients are stacked*. Twelve clients are computed as rows of one tensor, and a product of stacked matrices may be
# rounded differently from the same product alone. So `run` can cut the clients into `blocks` and stack only within a
# block. Above, each client was a block of its own.
#
# > **Predict:** with another number of blocks, which of the three change: the error in six digits, the bytes, the
# > model?

# %%
cuts = {blocks: run(algorithm, problem, rounds, sampled=sampled, blocks=blocks) for blocks in (12, 4, 1)}
rows = []
for blocks, history in cuts.items():
    gap = float((history.x - once.x).abs().max())
    bytes_are = history["up_bytes"] == once["up_bytes"] and history["down_bytes"] == once["down_bytes"]
    rows.append([blocks, float(history["error"][-1]), bytes_are, gap <= 1e-15])
table(["blocks", "error", "bytes are the same", "model differs by 1e-15 at most"], rows, digits=6)

# %% tags=["nbval-ignore-output"]
for blocks, history in cuts.items():
    print(f"{blocks:2} blocks: {fingerprint(history.x)}")

# %% tags=["hide-input"]
# Checks: the same run again has the same bits; other blocks change rounding and nothing else
assert torch.equal(cuts[12].x, once.x)
assert all(row[2] and row[3] for row in rows)

# %% [markdown]
# Six digits stay, and all bytes. The last bits of the model may change: compare the fingerprints. Where they agree on
# one machine they may differ on another. So the number of blocks belongs to a run, as its seed does.
#
# ## 2. Four processes *
#
# `torchrun` starts the same program four times; `join_group` brings the four together. Every process makes the same
# call of `run`, with `group=`. It draws the same participants as the others, as a draw depends on its key. It computes
# its own clients. All uploads are gathered in the order of the clients' ids, and all make the same server step.
#
# > **Predict:** what does a process keep of the clients' control variates? Whose bits has its model?

# %%
FOUR = """
import hashlib, json, sys
from fedtheory import SSF, Group, Key, MatrixRegression, join_group, run

join_group("cpu")
group = Group()
problem = MatrixRegression.ssf(0.5, Key(0).fold("data"), n=12)
algorithm = SSF.haar(0.01, 5, 10)
history = run(algorithm, problem, 3, sampled=6, blocks=12, group=group)
sha = hashlib.sha256(history.x.numpy().tobytes()).hexdigest()
sys.stdout.write(json.dumps([group.rank, len(history.state.own.c), sha]) + "\\n")
"""


def spoken(*command):
    """What a program prints; its errors are raised here."""
    done = subprocess.run(command, env=os.environ | {"OMP_NUM_THREADS": "1"}, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr[-2000:])
    return done.stdout


with TemporaryDirectory() as folder:
    program = Path(folder) / "four.py"
    program.write_text(FOUR)
    torchrun = (sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "4")
    told = sorted(json.loads(line) for line in spoken(*torchrun, str(program)).splitlines())
rows = [[rank, kept, sha == fingerprint(once.x)] for rank, kept, sha in told]
table(["process", "clients whose control it keeps", "bits of one process"], rows)

# %% tags=["nbval-ignore-output"]
for rank, _, sha in told:
    print(f"process {rank}: {sha}")

# %% tags=["hide-input"]
# Checks: four processes, three clients each, the bits of one process
assert [row[:2] for row in rows] == [[rank, 3] for rank in range(4)]
assert all(row[2] for row in rows)

# %% [markdown]
# Each process has the private state of its own clients and nobody else's; the model is in all of them. Twelve blocks
# in four processes are three blocks each; five processes would take them unevenly, with the same bits. On the command
# line: `torchrun --standalone --nproc-per-node 4 -m fedtheory run SSF matrix_regression --sampled 6`
# ([docs/processes.md](../docs/processes.md) has the rest: cards, several machines, checkpoints, processes that die).
#
# This saves no bytes: the processes trust each other and gather whole uploads. They are one computer cut into pieces,
# not a server and its clients.

# %% [markdown]
# ## 3. Two halves and bytes between them *
#
# Now we cut where the papers do, between server and clients. A `ServerHalf` has the server's state and reads no data. A
# `ClientHalf` has one client's data and private row. Both know the method, the sizes, the start and the run's seed.
# Nothing else is shared: what passes is a `Parcel`, bytes and plain metadata.


# %%
def federated(algorithm, rounds, sampled, look=lambda t, down, up: None):
    """A run in halves: the server afterwards. `look` is shown each round's parcels, by client."""
    server = ServerHalf(algorithm, problem, seed=0, sampled=sampled)
    clients = {i: ClientHalf(algorithm, problem, i, seed=0) for i in range(problem.n)}
    for t in range(rounds):
        down = server.open()
        up = {i: clients[i].play(parcel) for i, parcel in down.items()}
        look(t, down, up)
        for i, parcel in server.close(up).items():
            clients[i].hear(parcel)
    return server


halves = federated(algorithm, rounds, sampled)
print(f"the bits of one process: {torch.equal(halves.state.server.x, once.x)}")

# %% tags=["nbval-ignore-output"]
print(fingerprint(halves.state.server.x))

# %% tags=["hide-input"]
# Check: the same bits
assert torch.equal(halves.state.server.x, once.x)

# %% [markdown]
# ### 3.1 A parcel, opened
#
# A client that comes for the first time gets this from SSF's server, and answers.

# %%
seen_first = {}
federated(algorithm, 1, sampled, lambda t, down, up: seen_first.update(down=down, up=up))
who = min(seen_first["down"])
for way in ("down", "up"):
    parcel = seen_first[way][who]
    print(f"{way}: client {who}, round {parcel.round}, payload {parcel.payload} bytes")
    for name, node in parcel.metadata["message"]["fields"].items():
        print(f"  {name:6} {json.dumps(node)}")

# %% [markdown]
# `P`, the basis of the round, is a seed: 8 bytes, and the name by which the client's own code makes the basis. `x` is
# the model, in full, since this client has none. `c_proj` is the server's control in the subspace. Back come two
# projected vectors. The metadata says shapes and types. A reader makes only the types of its own method from it. It
# unpickles nothing and imports no name.
#
# **Is the payload what we count?** The count (`cost`, behind notebook 00's `traffic.up.bytes`) walks over the message's
# tensors and charges each part its price: a seed 8 bytes, a known value nothing. It never made a byte; other code makes
# the parcels. So we ask for every method.

# %%
methods = {
    "FedAvg": FedAvg(0.01, 5),
    "SCAFFOLD": Scaffold(0.01, 5),
    "FedSub": FedSub(0.01, 5, Coordinate(10)),
    "SSF": algorithm,
    "DeComFL": DeComFL(1e-4, 5, perturbations=10),
}
rows, crossed = [], []
for name, method in methods.items():
    crossed.clear()
    server = federated(method, rounds, sampled, lambda t, down, up: crossed.extend([*down.values(), *up.values()]))
    history = run(method, problem, rounds, sampled=sampled, blocks=12)
    counted = (int(history["up_bytes"][-1]), int(history["down_bytes"][-1]))
    around = round(sum(len(json.dumps(parcel.metadata)) for parcel in crossed) / len(crossed))
    rows.append([name, *counted, *server.payload, around, torch.equal(server.state.server.x, history.x)])
table(["", "counted up", "down", "payload up", "down", "metadata of a message", "bits of run"], rows)

# %% tags=["hide-input"]
# Checks: payload is count, for each method and both ways
assert all(tuple(row[1:3]) == tuple(row[3:5]) and row[6] for row in rows)

# %% [markdown]
# Equal to the byte, over three rounds with clients that come and go. (The tests ask it of every method.) The metadata
# is not counted: both sides could have agreed on it before, and it does not grow with the model.

# %% [markdown]
# ### 3.2 A client that was away
#
# SSF's model moves in every round within the subspace of that round. For each missed round a client with an older model
# needs the seed of the round's basis and $r$ new coordinates; it then makes the steps itself. It already has the seed
# of the first step, from its last round. Where the model itself is smaller, it is sent the model. In a run of twelve
# rounds with two clients each, look at what was sent for how many missed rounds:

# %%
last, met = {}, {}


def note(t, down, up):
    """Payloads down, by the rounds since a client took part."""
    for i, parcel in down.items():
        met.setdefault(t - last[i] if i in last else 0, parcel)
        last[i] = t


federated(algorithm, 12, 2, note)
returned = {lag: met[lag] for lag in sorted(met) if 0 < lag < 4}
rows = []
for lag, parcel in returned.items():
    x = parcel.metadata["message"]["fields"]["x"]
    rows.append([lag, len(x["steps"]), json.dumps(x["steps"][0]["fields"]["P"]), parcel.payload])
table(["rounds since it was there", "steps in the parcel", "seed of the first one", "payload"], rows)

# %% tags=["hide-input"]
# Checks: a step for each round, and the seed of the first is not sent again
assert rows
assert all(row[0] == row[1] and row[2] == '"held"' for row in rows)

# %% [markdown]
# "held" is what the client has from the last time. What is a client sent that was away for ten rounds? That is
# exercise 1.
#
# ### 3.3 A client whose upload is lost
#
# A client has computed, its control variate has moved, its upload is on the way, and the connection breaks. The server
# goes on without it. A client corrects its steps by $c - c_i$: the control that the server counted minus the one that
# the client remembers. If it keeps a control that the server never counted, this is no longer the run of section 1.
# (With all clients in every round $c$ is even the mean of the $c_i$, notebook 12, line 1.1. Here, with a sample, it
# comes from the participants, notebook 03, section 2.5.) But the client does not know.
#
# > **Predict:** how can a client know, without one more message?

# %%
logging.getLogger("fedtheory.federation").addHandler(logging.NullHandler())  # its lines are printed below


def faulty(faults, rounds=6, sampled=3):
    """Halves with faults, round -> (client, what becomes of its upload), beside `play_round` without those clients."""
    server = ServerHalf(algorithm, problem, seed=0, sampled=sampled)
    clients = {i: ClientHalf(algorithm, problem, i, seed=0) for i in range(problem.n)}
    state = algorithm.init(problem, problem.start(), Key(0))
    for t in range(rounds):
        down = server.open()
        up = {i: clients[i].play(parcel) for i, parcel in down.items()}
        dropped = ()
        if t in faults:
            dropped, spoil = (faults[t][0],), faults[t][1]
            up[dropped[0]] = spoil(up[dropped[0]])
        server.close({i: parcel for i, parcel in up.items() if parcel is not None})
        asked, round_key = torch.tensor(sorted(down)), Key(0).fold("round", t)
        state, _, _ = play_round(algorithm, problem, state, asked, round_key, dropped=dropped, chunk=1)
        yield t, down, dropped, server, torch.equal(server.state.server.x, state.server.x)


rows = []
for t, down, dropped, _, same in faulty({2: (5, lambda parcel: None)}):
    told = json.dumps(down[5].metadata["last"]) if 5 in down else "-"
    rows.append([t, ", ".join(map(str, sorted(down))), "5" if dropped else "-", told, same])
table(["round", "asked", "upload lost", 'client 5 is told: "last"', "bits of play_round"], rows)

# %% [markdown]
# (null: never.) In round 3 client 5 is told that it was last counted in round 1. So its upload of round 2 did not
# count, and it goes on from before that round. It had kept both: what it made of a round *waits* until the next message
# says whether it counted. One integer of metadata is enough, without a receipt. The run is bit for bit the one in which
# client 5 fell silent.
#
# The server also refuses an upload that it cannot use, in the same way. Three kinds, one a round:

# %%
faults = {
    2: (5, lambda parcel: replace(parcel, data=b"\xff" * len(parcel.data))),  # not a number
    3: (5, lambda parcel: replace(parcel, round=2)),  # an answer to a round that is over
    5: (5, lambda parcel: replace(parcel, data=parcel.data[:-8])),  # too short
}
kept = []
for _, _, _, server, same in faulty(faults):
    kept.append(same)
    for line in server.refused.values():
        fold(line)
print(f"the bits of play_round without them, after each round: {kept}")

# %% tags=["hide-input"]
# Checks: a lost upload leaves no trace, nor does a refused one
assert all(row[-1] for row in rows)
assert [row[3] for row in rows if row[0] == 3] == ["1"]
assert len(kept) == 6
assert all(kept)

# %% [markdown]
# ## 4. A socket
#
# The last cut: server and clients are programs that reach each other through a socket alone. The transport is
# Flower's: a *superlink* that holds messages, *supernodes* that fetch them and start a client's program for each. A
# message carries one array, the payload, and the metadata as one text. The app is the two halves, in the same lines.
#
# Flower needs other versions of some packages, so it has an environment of its own. The cell uses it if it is there,
# and else says how to get it. It starts a superlink, two supernodes with six clients each and the app, at Unix sockets
# in a private folder of this machine, and takes half a minute.

# %%
APP = """import os

from fedtheory import SSF, Key, MatrixRegression
from fedtheory.federation import flower

problem = MatrixRegression.ssf(0.5, Key(0).fold("data"), n=12)
algorithm = SSF.haar(0.01, 5, 10)
server = flower.server_app(algorithm, problem, 3, sampled=6, save=os.environ["FEDTHEORY_SAVE"])
client = flower.client_app(algorithm, problem)
"""
SOCKET = """
import hashlib, json, sys, tempfile
from pathlib import Path
from fedtheory.federation import local, wire

with tempfile.TemporaryDirectory() as folder, local.federation([range(6), range(6, 12)], Path(folder)) as here:
    record = here.play(sys.argv[1], 100.0)
    sha = hashlib.sha256(local.models(here.folder)[-1].numpy().tobytes()).hexdigest()
    sys.stdout.write(json.dumps([sha, wire.by_round(record, here.counters)]))
"""

# %% tags=["nbval-ignore-output"]
places = [folder / ".venv-flower" / "bin" / "python" for folder in (Path.cwd(), *Path.cwd().parents)]
python = sys.executable if find_spec("flwr") else next((str(place) for place in places if place.exists()), None)
if python:
    sha, passed = json.loads(spoken(python, "-c", SOCKET, APP))
    assert sha == fingerprint(once.x)
    assert all(row[f"{way}_payload"] == row[f"{way}_count"] for row in passed for way in ("up", "down"))
    print(sha)
    names = ("round", "messages", "down_count", "down_payload", "down_wire", "up_count", "up_payload", "up_wire")
    table(names, [[row[name] for name in names] for row in passed])
else:
    print("Flower is not here. In the repository's folder say: make flower. Then run this cell again.")

# %% [markdown]
# On the command line the same is `.venv-flower/bin/python -m fedtheory federate SSF matrix_regression --rounds 3
# --sampled 6`; [docs/federation.md](../docs/federation.md) has supernodes on other machines, faults, and what TLS and
# authentication protect.
#
# ### What was on the socket
#
# For seven methods this was measured once, with a relay between supernode and superlink that counts all bytes that
# pass. Beside those above: **FedMUD+BKD+AAD** sends small Kronecker factors with half of each fixed (notebook 05),
# **FLSS** coordinates in the span of the last updates (notebook 06).
#
# > **Predict:** a message of DeComFL has 400 bytes, one of FedAvg 8,000. How much more is on the socket for FedAvg?

# %%
record = committed("frontier/wire")
provenance(record)
rows = [[row["method"], row["way"], *(round(row[name]) for name in ("count", "payload", "wire", "over"))]
        for row in record["table"]]  # fmt: skip
table(["", "way", "counted", "payload", "on the socket", "more, a message"], rows)

# %% tags=["hide-input"]
# Checks: payload is count, models have the bits of `run`, and what a message costs more hardly depends on the method
assert all(row["payload"] == row["count"] == row["counted by run"] for row in record["table"])
assert all(row["same bits"] == 1 for row in record["table"])
assert all(7_000 < row["over"] < 11_000 for row in record["table"])

# %% tags=["hide-input"]
# Picture: bytes of a message on the socket over the bytes counted
figure, (axes,) = style.new_figure(height=2.8)
shown = [row for row in record["table"] if row["messages"] == 1]
h = sum(row["over"] for row in shown) / len(shown)
for way, marker, color in (("up", "o", style.SEQUENCE[0]), ("down", "s", style.SEQUENCE[3])):
    points = sorted((row["count"], row["wire"]) for row in shown if row["way"] == way)
    axes.plot(*zip(*points), marker, color=color, markersize=4, label=f"measured, {way}")
for row in shown:
    if row["way"] == "up":
        place = {"textcoords": "offset points", "rotation": -55, "ha": "left", "va": "top", "fontsize": 6}
        axes.annotate(row["method"], (row["count"], row["wire"]), xytext=(-2, -4), **place)
grid = torch.logspace(2, 6, 60)
axes.plot(grid, grid + h, color="0.6", label="counted and h more")
axes.plot(grid, grid, ":", color="0.6", label="counted")
axes.set(xscale="log", yscale="log", xlabel="bytes counted, a message", ylabel="bytes on the socket")
style.legend_above(figure, 2)
show(figure)

# %% [markdown]
# Payload is count, and the rest is a constant: $h$, about 10,000 bytes a message, for Flower's requests with their
# headers, whatever the method. FedSub's replies are messages of their own, so it pays twice; the picture leaves it out.
# So the counted bytes are right, *and* on this socket a method of 400 bytes costs more than half as much as one of
# 8,000. Only right of the bend, where a message is longer than $h$, do a method's savings show on the bill. Clients on
# one node share a message, and so share $h$. Polls and heartbeats come on top; they grow with seconds and not with
# messages.
#
# ## Exercises
#
# Replace the three dots and run the cell. The solutions are folded.
#
# **Exercise 1** (3 points). A client took part `lag` rounds ago (1: in the last one). How many bytes does SSF's server
# send to it in float64, with $d$ numbers in the model and $r$ in a projected vector? Derive it for every lag from
# section 3.2, and use it to say what a client gets that was away for ten rounds.

# %%
answer = ...  # lambda d, r, lag: ...
check("13.1", answer)

# %% [markdown]
# <details>
# <summary>Solution</summary>
#
# ```python
# answer = lambda d, r, lag: 8 + 8 * r + min(8 * d, lag * (8 + 8 * r) - 8)
# ```
#
# A seed and the server's projected control in each case. Then `lag` steps of a seed and $r$ numbers, less the first
# seed, which the client has; or the model, where that is not larger. Here $d = 1000$, $r = 100$: nine steps still pay,
# ten do not. Away for ten rounds it is sent the model, 8,808 bytes, as on the first day, and the message does not grow
# with the absence any more.
#
# </details>

# %% [markdown]
# **Exercise 2** (3 points). The reference is this notebook's run: twelve clients, `blocks=12`, one process. Break it.
# Which of these **may** have other bits than in the reference, on some processor?
#
# - "A" the participants of each round, with `blocks=3`
# - "B" the coordinates that clients send in the first round, with `blocks=3`
# - "C" the basis of the second round, with `blocks=3`
# - "D" the model after the first round, with `blocks=3`
# - "E" the bytes up, with `blocks=3`
# - "F" the model, with `blocks=12` in five processes
# - "G" the model, with `blocks=12` in four processes and `Group(reduce=True)`: each process first sums the uploads of
#   its own clients, and the sums are added
# - "H" the model, with `blocks=12` and `chunk=5`: at most five clients are stacked at a time
# - "I" the model of the two halves, where clients answer in another order

# %%
answer = ...  # a set, such as {"A", "B"}
check("13.2", answer)

# %% [markdown]
# <details>
# <summary>Solution</summary>
#
# ```python
# answer = {"B", "D", "G"}
# ```
#
# A draw depends on its key: participants, bases and minibatches are the same for whoever draws (A, C). Sizes do not
# know values (E). A local step is a product of stacked matrices, and rounding depends on what is stacked: so B, and
# with it D. A block of one client is one client, in whatever process (F) and chunk (H). Uploads are sorted by id
# before anything is added (I). But $(a + b) + (c + d)$ is not $((a + b) + c) + d$ in floating point: G.
#
# </details>

# %% [markdown]
# **Exercise 3** (3 points). Design a federation whose bill is what passes on the socket, with $h = 10{,}000$ bytes a
# message. A model of $d = 100{,}000$ numbers, float32 (4 bytes; a seed has 8), one message down and one up a round for
# each client, nobody is ever away. *Suppose* that the target is reached
#
# - by FedAvg in 200 rounds;
# - by SSF with $r = d/32$ in 400 rounds; down go a seed and two projected vectors, up two projected vectors;
# - by DeComFL with $p$ directions and one local step in $40{,}000/p$ rounds, for $p$ up to 1000. Per direction two
#   seeds and a scalar go down, and a scalar up.
#
# (i) Which method is the cheapest for a client as counted, at $p = 1$? (ii) Which on the socket, at $p = 1$? (iii) From
# which $p$ on is DeComFL the cheapest on the socket? (iv) From which $p$ on is at least half of its bill payload?

# %%
answer = ...  # (name, name, p, p)
check("13.3", answer)

# %% [markdown]
# <details>
# <summary>Solution</summary>
#
# ```python
# h, d = 10_000, 100_000
# ssf = 8 + 4 * (4 * d // 32)  # of a round, both ways
# bill = lambda rounds, payload: rounds * (payload + 2 * h)
# third = next(p for p in range(1, 1001) if bill(40_000 / p, 24 * p) < min(bill(400, ssf), bill(200, 8 * d)))
# fourth = next(p for p in range(1, 1001) if 24 * p >= 2 * h)
# answer = ("DeComFL", "SSF", third, fourth)
# ```
#
# DeComFL's payload is the same for every $p$, 960 kB, the least by far. But forty thousand rounds of two messages are
# 800 MB of headers. Scalars must travel in company. From 30 directions a round on, all of DeComFL costs less than SSF's
# 28 MB. From 834 on, the two messages of a round are together as long as their headers. That is the design: few, fuller
# messages. ($p$ directions save a factor $p$ of rounds only while their noise is the limit; notebook 07.)
#
# </details>

# %% [markdown]
# **Exercise 4** (3 points, in words). A colleague has seen section 4 and says: "The socket carries 10,162 bytes where
# you count 400. So the counts in all these tables are wrong. Count on the socket from now on." What do you answer?

# %% [markdown]
# *Your answer:*

# %% [markdown]
# <details>
# <summary>Rubric and a model answer</summary>
#
# - The count is a statement on the method, and it was tested: the payload in the messages equals it byte for byte,
#   for every method. (1 point)
# - The rest belongs to the transport: a constant a message that hardly depends on the method, so it is added and not
#   multiplied. (1 point)
# - It decides where messages are short. There one counts messages, and sends fewer and longer ones or shares them on a
#   node. For models of millions of numbers it vanishes. (1 point)
#
# "The 400 bytes are in the message, exactly; we looked. The other 9,762 are Flower's requests and headers, and
# FedAvg's 8,000 bytes carry them too. With another transport they would be others, so a table of sockets would
# compare transports. Keep two numbers, payload and messages, and add $h$ for each message when you know yours. For
# short messages that decides: put more scalars in one. For a model of ten million numbers, 40 MB a message, it is a
# fortieth of a percent."
#
# </details>

# %% [markdown]
# ## Summary
# - Bits depend on the keys of the draws and on what is stacked and added in which order. Fix these, and a run has the
#   same bits in one process, in four and in halves; over a socket, too (section 4, and `frontier/wire`).
# - Processes that share a run gather whole uploads: they divide work and memory, and save no bytes.
# - A parcel is payload and metadata. The payload is the count, to the byte.
# - A client that was away is sent the steps that it missed, or the whole value where that is smaller. A client's new
#   state waits until it is told whether the round counted, so lost and refused uploads leave no trace.
# - On a socket each message costs some 10 kB more with Flower. It is a constant, not a factor: short messages are no
#   bargain until they are put together.
#
# ## References
# - D. J. Beutel et al.: Flower: A Friendly Federated Learning Framework, 2020, arXiv:2007.14390.
# - Z. Li et al.: Achieving Dimension-Free Communication in Federated Learning via Zeroth-Order Optimization (DeComFL),
#   arXiv:2405.15861: clients rebuild the model from scalars.
# - S. Zhu, Z. Huang, Y. Xu, P. Li: Subspace Optimization for Efficient Federated Learning under Heterogeneous Data
#   (SSF), arXiv:2604.25467v1: Section 3.6, projected communication only.
# - D. Goldberg: What Every Computer Scientist Should Know About Floating-Point Arithmetic, ACM Computing Surveys 23,
#   1991.
#
# ---
#
# Previous: [12 One proof](12_one_proof.ipynb) · Next: [14 Your experiment](14_your_experiment.ipynb)
