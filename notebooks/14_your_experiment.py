# %% [markdown]
# # Your experiment
#
# Your data, your network, your method, your comparison: this notebook goes through all four. The data are 442
# diabetes patients that scikit-learn ships. Each client is a clinic that sees one age group.
#
# **Time:** core sections (*) 1 to 4, about 10 minutes; all of it with the exercises about 70. It runs in 20 s.
# **Needs:** notebooks 00, 03.
#
# ## What you will learn
# - how data, a network and a loss become a federated problem;
# - what changes when clients make unequal numbers of local steps, and how to weigh them;
# - how to write a method by changing one step of another;
# - how to compare methods fairly: one tuning budget, several seeds, an interval.
#
# ## Prerequisites
# Notebook 00 (FedAvg, client drift), notebook 03 (SSF) and PyTorch modules. The pages `docs/your-data.md` and
# `docs/your-experiment.md` list all options.
#
# ## Symbols
# | here | meaning | in the code |
# |---|---|---|
# | $N$, $S$ | clients, clients of a round | `problem.n`, `sampled` |
# | $n_i$, $p_i$ | samples of client $i$, its share of all samples | `len(problem.parts[i])`, `problem.weights` |
# | $K$, $K_i$ | local steps; those of client $i$ | `local_steps`, `problem.steps_of` |
# | $\eta$ | step size | `lr` |
# | $x$, $y_i$ | global model $(d,)$, local models $(S, d)$ | `server.x`, `y` |

# %%
from dataclasses import dataclass, replace

import torch
from sklearn.datasets import load_diabetes
from torch import nn

from fedtheory import FedAvg, NormalizedUploads, Supervised, compare_methods, run
from fedtheory.course import show, start, table
from fedtheory.course.exercises import check
from fedtheory.papers import style

key = start()

# %% [markdown]
# ## 1. Data *
#
# A client's data are a pair: inputs $(n_i, \cdot)$ and targets $(n_i, \cdot)$. We sort the patients by age and cut
# them into eight clinics of unequal size. So the clinics differ in size *and* in what they see.

# %%
inputs, target = (torch.tensor(part) for part in load_diabetes(return_X_y=True))
inputs = inputs / inputs.std(0)
target = ((target - target.mean()) / target.std())[:, None]
by_age = inputs[:, 0].argsort()
sizes = [20, 30, 40, 50, 60, 70, 80, 92]
clinics = [(inputs[rows], target[rows]) for rows in by_age.split(sizes)]
rows = [[i, len(x), float(x[:, 0].mean()), float(y.mean())] for i, (x, y) in enumerate(clinics)]
table(["clinic", "patients", "mean age", "mean target"], rows)
assert sum(sizes) == len(inputs)

# %% [markdown]
# ## 2. Network *
#
# Any module that treats the samples of a batch one by one will do. `Supervised` copies it and starts at its weights.
# Dropout draws its masks from the run's key. So the masks do not depend on who else takes part.
#
# **Predict:** the linear map has 11 numbers. How many has the network below?

# %%
torch.manual_seed(0)
network = nn.Sequential(nn.Linear(10, 16), nn.Tanh(), nn.Dropout(0.1), nn.Linear(16, 1)).double()
problem = Supervised(network, nn.MSELoss(), clinics, batch=16)
table(["layer", "rows", "columns"], problem.layout.layers)
history = run(FedAvg(lr=0.1, local_steps=5), problem, rounds=30, sampled=4, every=10)
columns = zip(history["round"], history["loss"], history["up_bytes"])
table(["round", "loss", "kB up"], [[t, loss, up // 1000] for t, loss, up in columns])
assert problem.d == 10 * 16 + 16 + 16 + 1
assert history["loss"][-1] < history["loss"][0]

# %% [markdown]
# The loss is the mean over all patients, without dropout. Each client of a round sends 193 numbers of 8 bytes.
#
# ### One pass over the data
#
# `epochs=1` makes a round one pass over each clinic's data. The clinic with 92 patients then makes six steps where the
# one with 20 makes two. `weighted=True` averages the clinics by their data. So the large clinic counts twice: by its
# weight and by its steps. `NormalizedUploads` takes the steps out again, and a clinic counts by its data alone.
#
# **Predict:** which of the two serves the small clinics better?

# %%
passes = Supervised(network, nn.MSELoss(), clinics, batch=16, epochs=1)
steps = passes.steps_of(passes.clients)
ends = {}
by_data = FedAvg(0.02, passes.steps, weighted=True)
for method in (by_data, NormalizedUploads(by_data)):
    ends[method.name] = run(method, passes, rounds=80, every=80).x
losses = {name: passes.losses(x.expand(passes.n, -1), passes.full(passes.clients)) for name, x in ends.items()}
rows = [[i, sizes[i], steps[i], *(float(loss[i]) for loss in losses.values())] for i in range(passes.n)]
table(["clinic", "patients", "steps", *losses], rows)
small, large = losses["FedAvg"] - losses["FedAvg + normalized"], slice(5, 8)
assert steps == [2, 2, 3, 4, 4, 5, 5, 6]
assert small[:3].min() > 0 > small[large].mean()

# %% [markdown]
# FedAvg serves the large clinics better and the three smallest worse. That is no error of the network. At small steps
# FedAvg minimises with weights $p_i K_i$, and the loss of the problem has the weights $p_i$.
#
# SCAFFOLD and SSF run here, too. In their lines $K$ is then the client's own number $K_i$.

# %% [markdown]
# ## 3. Method *
#
# One clinic sends nonsense. A mean follows it; a median does not. The method below is FedAvg with another server
# line: the coordinate-wise median of the uploads (Yin et al. 2018). Everything else is inherited.


# %%
@dataclass(frozen=True)
class MedianFedAvg(FedAvg):
    """FedAvg whose server takes the coordinate-wise median of the clients' changes."""

    name = "median"
    averaged = False

    def server(self, server, down, up, clients, key):
        return replace(server, x=server.x + up.dy.quantile(0.5, dim=0)), None


wrong = [(x, y if i else y + 1000) for i, (x, y) in enumerate(clinics)]  # the first clinic has another unit
corrupt = Supervised(network, nn.MSELoss(), wrong, batch=16)
found = {}
for method in (FedAvg(0.02, 5), MedianFedAvg(0.02, 5)):
    found[method.name] = run(method, corrupt, rounds=40, every=40)
honest = {name: problem.loss(history.x) for name, history in found.items()}
table(["method", "loss on the right data"], list(map(list, honest.items())), 1)  # rounding moves the next digits
assert honest["median"] < 1 < honest["FedAvg"]

# %% [markdown]
# The mean is dragged away by one clinic of eight. `docs/book/do_it_yourself.md` has the contract of all five steps,
# and three laws that a method of yours should pass.
#
# ## 4. Experiment *
#
# A comparison is fair when every method tries the same rates, in full runs, on a seed that is not used again. Then
# all run from the same seeds. `compare_methods` does that, and gives a table and a picture.
#
# **Predict:** at equal *rounds*, and at equal *bytes*, who is ahead: SCAFFOLD or SSF?

# %%
methods = ["FedAvg", "SCAFFOLD", "SSF"]
compared = compare_methods(methods, problem, rounds=40, rates=(0.3, 0.1, 0.03), ratio=0.25, seeds=3, sampled=4, every=4)
columns = ("method", "lr", "loss", "low", "high")
rows = [[*(row[name] for name in columns), row["up_bytes"] // 1000] for row in compared.rows()]
table([*columns, "kB up"], rows)
sent = {name: runs.histories[0]["up_bytes"][-1] for name, runs in compared.runs.items()}
assert sent["SSF"] < sent["FedAvg"] < sent["SCAFFOLD"]

# %% tags=["hide-input"]
# Picture: loss against bytes, mean and interval over three seeds.
figure, (axes,) = style.new_figure(columns=1)
for name in methods:
    compared.runs[name].plot("loss", "bytes", axes, **style.look(name).line, label=name)
axes.set(xscale="log", yscale="linear")
show(figure)

# %% [markdown]
# Read the intervals before the order: with three seeds and eight clinics they are wide, and all three overlap. So at
# equal rounds nobody is surely ahead. At equal bytes the bands overlap, too.
# `compared.runs["SSF"].difference(compared.runs["FedAvg"])` is sharper, since both methods saw the same seeds.
#
# ## Exercises
#
# Replace the three dots and run the cell. The solutions are folded.
#
# **Exercise 1** (2 points). Three clients have 40, 96 and 10 samples. How many local steps does each make in a round
# with `batch=16, epochs=2`? Answer with a tuple of three numbers.

# %%
answer = ...
check("14.1", answer)

# %% [markdown]
# <details>
# <summary>Solution</summary>
#
# ```python
# answer = tuple(2 * -(-size // 16) for size in (40, 96, 10))
# ```
#
# A pass over $n_i$ samples has $\lceil n_i / 16 \rceil$ batches. The last one is as small as it must be.
#
# </details>

# %% [markdown]
# **Exercise 2** (3 points). Two clients have $f_i(x) = (x - b_i)^2 / 2$ with $b_1 = 0$ and $b_2 = 1$. Client $i$
# makes $K_i$ steps with full gradients and a step size near zero. At which $x$ does FedAvg with a plain mean rest?
# Give a function of $K_1$ and $K_2$.

# %%
answer = ...  # lambda K1, K2: ...
check("14.2", answer)

# %% [markdown]
# <details>
# <summary>Solution</summary>
#
# ```python
# answer = lambda K1, K2: K2 / (K1 + K2)
# ```
#
# With a small step client $i$ moves by $\eta K_i (b_i - x)$. The mean of both is zero where
# $K_1 (0 - x) + K_2 (1 - x) = 0$. The minimiser of the mean loss is $1/2$.
#
# </details>

# %% [markdown]
# **Exercise 3** (3 points). A hospital group cares for its worst clinic. Write a metric for `run(metrics=("loss",
# answer))`: the largest of the clients' losses at $x$, as a float. `run` wants a named function: write it with `def`.

# %%
answer = ...  # def answer(problem, x): ...
check("14.3", answer)

# %% [markdown]
# <details>
# <summary>Solution</summary>
#
# ```python
# def answer(problem, x):
#     losses = problem.losses(x.expand(problem.n, -1), problem.full(problem.clients))
#     return float(losses.max())
# ```
#
# `full` gives the sample that holds all data of a client. `losses` takes one model a client, stacked.
#
# </details>

# %% [markdown]
# **Exercise 4** (3 points, in words). A paper tunes its own method over ten rates and takes the baselines' rates from
# other papers. It reports the best of five seeds. What do you object to, and what would you ask for?

# %% [markdown]
# *Your answer:*

# %% [markdown]
# <details>
# <summary>Rubric and a model answer</summary>
#
# - The methods had unequal tuning budgets, so part of the gap is tuning. (1 point)
# - The best of five seeds is biased upwards; the mean with an interval, or all five values, are not. (1 point)
# - Ask for one grid and one budget for all methods, a tuning seed of its own, and paired differences over the same
#   seeds. (1 point)
#
# "Rates from other papers fit other problems. Tune every method with the same number of full runs, on a seed that is
# not reported. Then give the mean of all seeds with its interval, and the paired difference to the best baseline."
#
# </details>

# %% [markdown]
# ## Summary
# - `Supervised(module, loss, clients)` is a federated problem; every method runs on it.
# - With epochs, clients of unequal size make unequal numbers of steps. Without a correction these count as weights.
# - A method is a frozen dataclass with five steps; change one and inherit the others.
# - `compare_methods` gives every method the same budget and the same seeds. Overlapping intervals decide nothing.
#
# ## References
# - B. Efron, T. Hastie, I. Johnstone, R. Tibshirani: Least Angle Regression, Annals of Statistics 32, 2004: the data.
# - J. Wang et al.: Tackling the Objective Inconsistency Problem in Heterogeneous Federated Optimization (FedNova),
#   2020, arXiv:2007.07481.
# - D. Yin, Y. Chen, K. Ramchandran, P. Bartlett: Byzantine-Robust Distributed Learning, 2018, arXiv:1803.01498.
#
# ---
#
# Previous: [13 Federation](13_federation.ipynb)
