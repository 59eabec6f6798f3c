# %% [markdown]
# # A tour: drift, bytes, subspaces
#
# Many clients hold data that they do not share. They train one model together: each client computes at home, and a
# server averages what the clients send. Two things make this harder than ordinary training. The clients' data differ,
# so the clients pull the model apart (**client drift**). And the model travels to and from every client in every round
# (**communication**). FedSub and SSF answer both at once: in each round they work in a small random **subspace**.
#
# **Time:** core sections (*) 1 to 3, about 25 minutes; all of it with the exercises about 90. It runs in half a minute.
# **Needs:** nothing.
#
# ## What you will learn
# - what client drift is, where exactly FedAvg ends up because of it, and how SCAFFOLD removes it;
# - what a method sends, counted in bytes, and what a subspace saves;
# - that the saving is not free, and where the gain really comes from;
# - how to run an algorithm of this package, and how to look inside a round.
#
# ## Prerequisites
# Gradient descent, eigenvalues, a little Python. Nothing is downloaded.
#
# ## Symbols
# Every paper has its own letters. [docs/symbols.md](../docs/symbols.md) lists them all. Watch $K$: it counts local
# steps here, in SCAFFOLD and in SSF, but clients in FedAvg's paper and rounds in FedSub's.
#
# | here | meaning | the paper's letter | in the code |
# |---|---|---|---|
# | $N$, $i$ | clients, one of them | FedAvg $K$, $k$; FedSub $n$, $i$ | `problem.n` |
# | $K$ | local steps of a round | FedAvg $E n_k / B$; FedSub $\tau$ | `local_steps`, `K` |
# | $T$, $t$ | rounds, index of the round | SCAFFOLD $R$, $r$; FedSub $K$, $k$ | `rounds`, `t` |
# | $\eta$ | local step size | SCAFFOLD, SSF $\eta_\ell$ | `lr` |
# | $F_i$, $F$ | loss of client $i$, mean of all losses | FedSub $f_i$, $f$ | `two`, `problem` |
# | $x$, $y$ | model of the server, of a client during a round | FedAvg $w_t$, $w$; FedSub $x$, $z_i$ | `x`, `y` |
# | $x^\star$ | solution: the minimiser of $F$ | $x^\star$ | `x_star` |
# | $H_i$, $b_i$ | curvature and minimiser of a quadratic $F_i$ | | `H`, `b` |
# | $M_i$ | $(I - \eta H_i)^K$: what $K$ steps leave of the distance to $b_i$ | | |
# | $c_i$, $c$ | control variates: a client's gradient, their mean | SCAFFOLD, SSF $c_i$, $c$ | `own.c`, `server.c` |
# | $m$, $r$ | rows of the model's matrix; dimension of the subspace | FedSub $m$, $r$; SSF $d$, $r$ | `m`, `r` |
# | $P$ | basis of a round's subspace, $m \times r$ | FedSub $P^k$; SSF $P_t$, transposed | `P` |

# %%
import torch

from fedtheory import SSF, FedAvg, FedSub, MatrixRegression, Quadratic, Scaffold, Spherical, play_round, run
from fedtheory.course import brief, show, start, table, watch
from fedtheory.course.exercises import check
from fedtheory.course.moving import moving
from fedtheory.papers import style

key = start()

# %% [markdown]
# ## 1. Two clients who want different things *
#
# Client $i$ has a loss $F_i(x) = \tfrac12 (x - b_i)^\top H_i (x - b_i)$. Alone, it walks to its own minimiser $b_i$.
# Together the two want the minimiser $x^\star$ of the average $F = \tfrac12 (F_1 + F_2)$. In two dimensions everything
# can be drawn.
#
# Client 1 cares about the first coordinate (curvature 1) and hardly about the second (0.1). For client 2 it is the
# other way round. So $x^\star$ lies near the first coordinate of $b_1$ and the second of $b_2$.

# %%
H = torch.tensor([[[1.0, 0.0], [0.0, 0.1]], [[0.1, 0.0], [0.0, 1.0]]])
b = torch.tensor([[-1.0, -1.0], [1.0, 2.0]])
two = Quadratic(H, b)
x_star = two.constants.x_star
table(["point", "first", "second"], [["b_1", *b[0].tolist()], ["b_2", *b[1].tolist()], ["x*", *x_star.tolist()]])

# %% tags=["hide-input"]
# Checks: the gradient of F vanishes at x*
assert float(two.grad(x_star).norm()) <= 1e-14

# %% [markdown]
# **FedAvg** is the plain idea. Every client starts at the server's model $x$ and takes $K$ gradient steps on its own
# loss. The server moves to the average of the endpoints.
#
# > **Predict.** We put the server exactly at the solution $x^\star$, where $\nabla F = 0$, and play one round with
# > $K = 20$ steps. Does the server stay there?

# %%
fedavg = FedAvg(lr=0.2, local_steps=20)
state = fedavg.init(two, x_star.clone(), key)
steps = watch(fedavg, two, state, key.fold("round", 0))  # what the clients do: (steps, clients, dimension)
state, _, _ = play_round(fedavg, two, state, two.clients, key.fold("round", 0))
moved = float((state.server.x - x_star).norm())

print(f"one round moved the server by {moved:.4f}, away from x*")

# %% tags=["hide-input"]
# Checks: the server stands at the average of the endpoints, away from x*
assert torch.allclose(state.server.x, steps[-1].mean(0))
assert moved > 0.3

# %% [markdown]
# No. At $x^\star$ the two gradients cancel, but neither is zero, so each client walks. If both walked at the same pace,
# the walks would cancel too. They do not. The picture shows every local step over the level lines of both losses.


# %% tags=["hide-input"]
# Picture: one round of FedAvg from the solution, every local step
def draw_landscape(axes):
    """Level lines of both losses, and the three points."""
    u, v = torch.linspace(-1.6, 1.6, 161), torch.linspace(-1.6, 2.6, 161)
    grid = torch.stack(torch.meshgrid(u, v, indexing="xy"), -1)
    for client, color in enumerate(style.SEQUENCE[4:6]):
        gap = grid - b[client]
        loss = 0.5 * torch.einsum("...i,ij,...j", gap, H[client], gap)
        axes.contour(u, v, loss, levels=[0.05, 0.2, 0.45, 0.8, 1.25, 1.8], colors=color, alpha=0.25, linewidths=0.8)
        axes.plot(*b[client], "s", color=color, markersize=5, label=f"minimiser of client {client + 1}")
    axes.plot(*x_star, "*", color="k", markersize=9, zorder=5, label="solution x*")
    axes.set(xlabel="first coordinate", ylabel="second coordinate", aspect="equal")
    axes.grid(visible=False)


def draw_steps(axes, begin, steps, label=True):
    """The local iterates of one round."""
    for client, color in enumerate(style.SEQUENCE[4:6]):
        walk = torch.vstack([begin, steps[:, client]])
        name = f"local steps of client {client + 1}" if label else "_"
        axes.plot(walk[:, 0], walk[:, 1], ".-", color=color, markersize=3.5, linewidth=0.8, label=name)


figure, (axes,) = style.new_figure(height=4.3, columns=1.1)
draw_landscape(axes)
draw_steps(axes, x_star, steps)
axes.plot(*steps[-1].T, ":", color="0.4", linewidth=1, label="average of the endpoints")
axes.plot(*state.server.x, "o", color="k", markersize=5, markerfacecolor="w", label="server after the round")
style.legend_above(figure, 2)
show(figure)

# %% [markdown]
# Each client soon arrives in the coordinate that it cares about, where its loss is steep. Then it goes on in its flat
# direction, where the other client should decide. That is **client drift**.
#
# For quadratics we can say where it ends. After $K$ steps with rate $\eta$, client $i$ stands at $b_i + M_i (x - b_i)$
# with $M_i = (I - \eta H_i)^K$. The server rests where the average of these endpoints is $x$ again:
#
# $$\sum_i (I - M_i)\,(x - b_i) = 0 \qquad\text{instead of}\qquad \sum_i H_i\,(x - b_i) = 0 .$$
#
# So FedAvg solves a problem with $I - M_i$ instead of $H_i$. With $K = 1$ the two are the same up to the factor
# $\eta$. With large $K$, every $I - M_i$ tends to $I$, and FedAvg to the plain average of the clients' minimisers.
#
# > **Predict.** We run 400 rounds with $K = 1, 2, 5, 20, 100$. Which $K$ ends closest to $x^\star$?


# %%
def resting_point(rate, local_steps):
    """Where FedAvg ends, from the formula."""
    moved = torch.eye(2) - torch.linalg.matrix_power(torch.eye(2) - rate * H, local_steps)
    return torch.linalg.solve(moved.sum(0), torch.einsum("nij,nj->i", moved, b))


ends = {K: run(FedAvg(0.2, K), two, 400, every=400).x for K in (1, 2, 5, 20, 100)}
rows = [[K, *end.tolist(), *resting_point(0.2, K).tolist(), two.error(end)] for K, end in ends.items()]
table(["K", "run: first", "second", "formula: first", "second", "error"], rows)

# %% tags=["hide-input"]
# Checks: every run ends at the formula's point; more steps end farther away, in the limit at the mean of b₁ and b₂
assert all(torch.allclose(end, resting_point(0.2, K), atol=1e-10) for K, end in ends.items())
assert [row[-1] for row in rows] == sorted(row[-1] for row in rows)
assert torch.allclose(resting_point(0.2, 1000), b.mean(0), atol=1e-6)

# %% [markdown]
# The runs end where the formula says, and more local work ends farther away. Here and below, the error is $\lVert x -
# x^\star\rVert / \lVert x^\star\rVert$.
#
# **Pictures that move.** You see the first frame. The book has sliders in its place, and `moving("drift", live=True)`
# shows them in JupyterLab.

# %%
moving("drift")

# %%
moving("rest")

# %% [markdown]
# ## 2. SCAFFOLD: tell each client where the others are going *
#
# If client $i$ knew its own gradient $c_i$ and the average $c$ of all of them, its **control variates**, it could walk
# along
#
# $$y \leftarrow y - \eta\,\bigl(\nabla F_i(y) - c_i + c\bigr),$$
#
# and it would stay at $x^\star$, where $\nabla F_i - c_i = 0$ and $c = 0$. It does not know them before the round.
# **SCAFFOLD** takes for $c_i$ the average of the client's gradients in its last round. The server sends $c$, the mean
# of all $c_i$. These are the lines of both algorithms in the package:
#
# | FedAvg, client | SCAFFOLD, client |
# |---|---|
# | `y = y - lr * grads(y)` | `y = y - lr * (grads(y) + c - c_i)` |
# | | `c_i = (x - y) / (K * lr) - (c - c_i)`, the average of the $K$ gradients |
#
# > **Predict.** Both start at the origin with $K = 20$. Which clients' walks shrink to a point?

# %%
rounds = 12
curves, walks, paths = {}, {}, {}
for algorithm in (FedAvg(0.2, 20), Scaffold(0.2, 20)):
    state, servers, spread, walks[algorithm.name] = algorithm.init(two, two.start(), key), [two.start()], [], []
    for t in range(rounds):
        begin, round_key = state.server.x, key.fold("round", t)
        steps = watch(algorithm, two, state, round_key)
        walks[algorithm.name].append((begin, steps))
        state, _, _ = play_round(algorithm, two, state, two.clients, round_key)
        servers.append(state.server.x)
        spread.append(float((steps[-1] - begin).norm(dim=1).mean()))
    paths[algorithm.name] = torch.stack(servers)
    curves[algorithm.name] = ([two.error(x) for x in servers], spread)
    error = brief(curves[algorithm.name][0][-1])
    print(f"{algorithm.name}: in round {rounds} the clients walk {brief(spread[-1])}; error {error}")

# %% tags=["hide-input"]
# Picture: twelve rounds of both, every local step, and the error
figure, panels = style.new_figure(3, height=3.9)
for axes, (name, played) in zip(panels, walks.items()):
    draw_landscape(axes)
    for t, (begin, steps) in enumerate(played):
        draw_steps(axes, begin, steps, label=t == 0)
    axes.plot(*paths[name].T, "o-", color="k", markersize=4, markerfacecolor="w", label="server, round by round")
    axes.set_title(name)
for name, (errors, _) in curves.items():
    panels[2].plot(errors, **style.look(name).line, marker=".", label=f"{name}: error of the server")
panels[2].set(yscale="log", xlabel="rounds", ylabel="error", title="error")
style.legend_above(figure, 4)
show(figure)

# %% tags=["hide-input"]
# Checks: FedAvg's clients go on walking and the server rests at the formula's point; SCAFFOLD's come to rest
assert curves["FedAvg"][1][-1] > 0.5
assert curves["SCAFFOLD"][1][-1] < 1e-3
assert abs(curves["FedAvg"][0][-1] - two.error(resting_point(0.2, 20))) < 1e-3

# %% [markdown]
# FedAvg's clients keep walking in every round, and their average returns to the wrong place. SCAFFOLD's clients come to
# rest, because each knows what the others want. The price: SCAFFOLD sends the control variate with the model, so every
# message is twice as long.
#
# ## 3. What crosses the wire *
#
# Now a larger problem, the matrix regression of the SSF paper: 20 clients, a $100 \times 10$ matrix $X$, and $F_i(X) =
# \frac{1}{2 n_i}\lVert A_i X - B_i\rVert_F^2 + \frac{\lambda}{2}\lVert X\rVert_F^2$, where $A_i$ and $B_i$ are client
# $i$'s $n_i$ rows of data.
#
# A **subspace** method draws a random basis $P$ with $r$ orthonormal columns in each round (here $r = 20$ of $m =
# 100$). All clients make the same basis from one seed. They move only within it, so their messages have $r$ rows
# instead of $m$. Two methods do so. **FedSub** keeps its correction inside the subspace and sends one small matrix.
# **SSF**, which is SCAFFOLD in a subspace, keeps a full correction at home, refreshes the part that the subspace sees,
# and sends two small matrices.
#
# Every message of the package knows its size. The table shows the second round, per client.

# %%
problem = MatrixRegression.ssf(0.5, key.fold("data"), batch=None)
m, r, lr, K = 100, 20, 0.01, 5
P = Spherical(r, "orthonormal")
methods = {"FedAvg": FedAvg(lr, K), "SCAFFOLD": Scaffold(lr, K), "FedSub": FedSub(lr, K, P), "SSF": SSF(lr, K, P)}
rows, upload = [], {}
for name, algorithm in methods.items():
    state = algorithm.init(problem, problem.start(), key)
    for t in range(2):
        lags = [None if t == 0 else 1] * problem.n  # each client took part in the round before
        state, _, traffic = play_round(algorithm, problem, state, problem.clients, key.fold("round", t), lags=lags)
    upload[name] = traffic.up.bytes // problem.n
    rows.append([name, traffic.up.scalars // problem.n, upload[name], traffic.down.bytes // problem.n])
table(["method", "numbers up", "bytes up", "bytes down"], rows)

# %% tags=["hide-input"]
# Checks: uploads, counted on the messages
assert upload["SCAFFOLD"] == 2 * upload["FedAvg"] == (m // r) * upload["SSF"]
assert upload["SSF"] == 2 * upload["FedSub"]

# %% [markdown]
# The subspace divides an upload by $m / r = 5$. Downloads differ: FedSub's Algorithm 1 broadcasts the whole model, and
# SSF's clients rebuild it from the small steps.
#
# > **Predict.** Four methods, the same step size, 300 rounds. (1) Against *rounds*: which is fastest, which stall?
# > (2) Against *bytes*: does SSF now beat SCAFFOLD five to one?

# %%
histories = {name: run(algorithm, problem, 300, every=5) for name, algorithm in methods.items()}

# %% tags=["hide-input"]
# Picture: error against rounds and against bytes, one step size for all


def draw_errors(axes, histories, against):
    """Error against rounds, or against the megabytes that all clients sent."""
    for name, history in histories.items():
        x = history["round"] if against == "round" else [count / 1e6 for count in history[against]]
        axes.plot(x, history["error"], **style.look(name.partition(",")[0]).line, label=name)
    axes.set(yscale="log", ylabel="error", xlabel="rounds" if against == "round" else "megabytes sent by all clients")


figure, (left, right) = style.new_figure(2)
draw_errors(left, histories, "round")
draw_errors(right, histories, "up_bytes")
right.set_xlim(0, 25)
style.legend_above(figure, 4)
show(figure)

# %% [markdown]
# In numbers: what error did SCAFFOLD have after as many bytes as SSF sends in its 300 rounds?

# %%
budget = histories["SSF"]["up_bytes"][-1]
spent = histories["SCAFFOLD"]["up_bytes"]
at = max(i for i, count in enumerate(spent) if count <= budget)
rows = [["SSF", histories["SSF"]["round"][-1], budget / 1e6, histories["SSF"]["error"][-1]]]
rows.append(["SCAFFOLD", histories["SCAFFOLD"]["round"][at], spent[at] / 1e6, histories["SCAFFOLD"]["error"][at]])
table(["method", "rounds", "megabytes", "error"], rows)

# %% tags=["hide-input"]
# Checks: per byte SSF and SCAFFOLD are equal; FedAvg has stalled
assert abs(rows[0][3] / rows[1][3] - 1) < 0.2
assert histories["FedAvg"]["error"][-1] > 0.99 * histories["FedAvg"]["error"][-11] > 1e-3

# %% [markdown]
# Per round the full methods are faster, and FedAvg stalls at its resting point. FedSub and SSF lie on top of each
# other. **Per byte the curves come in pairs**: SSF goes along with SCAFFOLD, FedSub with FedAvg. With the same step
# size the subspace shows a client $r/m$ of its gradient, so five times smaller messages need five times as many rounds.
# Nothing is gained.
#
# ## 4. Where the gain comes from
#
# Inside the subspace a client sees $P^\top H_i P$ instead of the Hessian $H_i$. A random subspace hardly ever contains
# the steepest direction, so the curvature that limits the step size is smaller there.

# %%
hessians = problem.A.mT @ problem.A / problem.rows + problem.lam * torch.eye(m)  # (clients, m, m)
rows = []
for rank in (5, 10, 20, 50, 100):
    tops = []
    for draw in range(5):
        (frame,) = (
            Spherical(rank, "orthonormal").draw(problem.layout, key.fold("tour", rank, draw), torch.float64).matrices()
        )
        tops.append(float(torch.linalg.eigvalsh(frame.T @ hessians @ frame).max()))
    rows.append([rank, max(tops), 2 / max(tops)])
table(["r", "largest curvature", "2 / curvature"], rows)

# %% tags=["hide-input"]
# Checks: r = m sees the whole curvature, r = 20 less than a third
assert abs(rows[-1][1] / problem.constants.L - 1) < 1e-10
assert rows[2][1] < problem.constants.L / 3

# %% [markdown]
# A gradient step is stable up to $2 / \text{curvature}$. With $r = 20$ a client may step more than three times as far
# as in the whole space. So let every method take its own step.
#
# > **Predict.** SCAFFOLD may now use 0.05 and SSF 0.15. Who needs fewer bytes for an error of $10^{-6}$? And what
# > does the longer step do to FedSub?

# %%
own = {
    "FedAvg, 0.01": histories["FedAvg"],
    "SCAFFOLD, 0.05": run(Scaffold(0.05, K), problem, 100, every=5),
    "FedSub, 0.05": run(FedSub(0.05, K, P), problem, 300, every=5),
    "SSF, 0.15": run(SSF(0.15, K, P), problem, 300, every=5),
}
rows = []
for name, history in own.items():
    reached = [at for at, error in enumerate(history["error"]) if error <= 1e-6]
    if reached:
        rows.append([name, history["round"][reached[0]], history["up_bytes"][reached[0]] / 1e6])
    else:
        rows.append([name, "never", "never"])
table(["method and step", "rounds to 1e-6", "megabytes to 1e-6"], rows)

# %% tags=["hide-input"]
# Picture: error against rounds and against bytes, each method with its own step size
figure, (left, right) = style.new_figure(2)
draw_errors(left, own, "round")
draw_errors(right, own, "up_bytes")
for axes in (left, right):
    axes.set_ylim(1e-9, 2)
right.set_xlim(0, 25)
style.legend_above(figure, 4)
show(figure)

# %% tags=["hide-input"]
# Checks: FedAvg and FedSub never arrive; SSF needs about half of SCAFFOLD's bytes
assert rows[0][1] == rows[2][1] == "never"
assert 1.5 < rows[1][2] / rows[3][2] < 3

# %% [markdown]
# A subspace buys messages that are five times smaller, at the price of *more* rounds. On this problem SSF uploads about
# half of SCAFFOLD's bytes in total, because the smaller space allows longer steps. On a slow uplink that is worth
# having, on a fast one it is not.
#
# FedSub uploads half as much as SSF in each round, and stalls. When the subspace changes, it loses what its correction
# knew outside the new one. Notebook 02 looks at FedSub, notebook 03 at SSF.
#
# **A picture that moves.** You see the first frame. The book has sliders in its place, and `moving("curvature",
# live=True)` shows them in JupyterLab.

# %%
moving("curvature")

# %% [markdown]
# ## Exercises
#
# Replace the three dots and run the cell. The solutions are folded. An answer in words goes into the cell below its
# question; grade it by the rubric that is folded behind it.
#
# **Exercise 1** (1 point). A model is a $200 \times 30$ matrix of float64 numbers, SSF works with $r = 10$. How many
# bytes does a client upload in one round? Work it out before you run anything; the check plays the round.

# %%
answer = ...  # bytes
check("00.1", answer)

# %% [markdown]
# <details>
# <summary>Solution</summary>
#
# ```python
# answer = 2 * 10 * 30 * 8
# ```
#
# The projected endpoint and the projected control variate, $r \times 30$ each, 8 bytes per number: 4800 bytes.
#
# </details>

# %% [markdown]
# **Exercise 2** (1 point). Back to the two clients, with step size 0.003. What is the largest number of local steps $K$
# for which FedAvg ends within 1% of $x^\star$?

# %%
answer = ...  # K
check("00.2", answer)

# %% [markdown]
# <details>
# <summary>Solution</summary>
#
# ```python
# answer = max(K for K in range(1, 100) if two.error(resting_point(0.003, K)) <= 0.01)
# ```
#
# All these steps together are shorter than one step of 0.2, as section 1 took it: on this problem FedAvg cannot use its
# clients' computing power and be right.
#
# </details>

# %% [markdown]
# **Exercise 3** (2 points). Break the explanation. Do clients drift *because they have different minimisers*? Give two
# clients in two dimensions whose minimisers are at least 1 apart, and for which FedAvg with `lr=0.2, local_steps=20`
# still ends at $x^\star$.

# %%
answer = ...  # Quadratic(H, b) with H of shape (2, 2, 2) and b of shape (2, 2)
check("00.3", answer)

# %% [markdown]
# <details>
# <summary>Solution</summary>
#
# ```python
# answer = Quadratic(H[:1].expand(2, 2, 2), b)
# ```
#
# With equal Hessians, $M_1 = M_2$, and the resting point and $x^\star$ are both the plain average of the $b_i$.
# Different minimisers alone do no harm to a quadratic: it takes different *curvatures* to make the clients arrive at
# different speeds.
#
# </details>

# %% [markdown]
# **Exercise 4** (3 points). How large is the drift when steps are small? Take one dimension and two clients with
# curvatures $h_1$, $h_2$ and minimisers $b_1$, $b_2$. Derive the distance $x - x^\star$ of FedAvg's resting point, with
# its sign, to first order in $\eta$. (The check calls your function with sympy's symbols. What does it say at $K = 1$,
# and where the curvatures are equal?)

# %%
answer = ...  # lambda h1, h2, b1, b2, K, eta: ...
check("00.4", answer)

# %% [markdown]
# <details>
# <summary>Solution</summary>
#
# ```python
# answer = lambda h1, h2, b1, b2, K, eta: eta * (K - 1) / 2 * h1 * h2 * (h1 - h2) * (b2 - b1) / (h1 + h2) ** 2
# ```
#
# $1 - (1 - \eta h)^K = \eta K h \bigl(1 - \tfrac{\eta (K-1)}{2} h\bigr) + O(\eta^3)$. So the resting point is the
# average of the $b_i$ with the weights $h_i - \varepsilon h_i^2$, $\varepsilon = \tfrac{\eta (K-1)}{2}$, where
# $x^\star$ has the weights $h_i$. The answer is its first-order term in $\varepsilon$. The drift needs three things:
# $\eta (K - 1)$, the length of the walk after its first step; different curvatures; and different minimisers. It grows
# with the first and the last. It vanishes, too, where one curvature tends to 0.
#
# </details>

# %% [markdown]
# **Exercise 5** (3 points, in words). Two people report section 4's last experiment.
#
# - A: "SSF needs 195 rounds where SCAFFOLD needs 75: a subspace makes training more than twice as slow."
# - B: "SSF needs 12 megabytes where SCAFFOLD needs 24: a subspace halves the cost."
#
# Which one is right, for whom? What must be the same, and what else must be measured, before one of the two methods is
# recommended?

# %% [markdown]
# *Your answer:*

# %% [markdown]
# <details>
# <summary>Rubric and a model answer</summary>
#
# - Both numbers are right: a run takes rounds times latency and computation, plus bytes over bandwidth. Report A
#   describes a fast link, report B a slow one. (1 point)
# - The gain comes from the step size, not from the subspace: with the same step the two need the same bytes. So each
#   method must be tuned before it is compared. (1 point)
# - Neither report says what comes down, what a client computes and keeps, or where else it holds: one problem, full
#   gradients, all clients present, one target error. (1 point)
#
# **A model answer.** Let a round cost a time $a$ for latency and local steps, and a byte $1/\beta$. SCAFFOLD takes
# $75 a + 24\,\text{MB}/\beta$, SSF $195 a + 12\,\text{MB}/\beta$: SSF is faster where $12\,\text{MB}/\beta > 120 a$,
# that is on a slow uplink. Section 3 shows that at one common step size the curves per byte coincide. So both reports
# are about tuned step sizes, and a report that tunes only one of the methods can show anything. Both count the upload
# only, while SCAFFOLD's download is twice a model and SSF's is small. A client of SSF projects in every step and keeps
# a full control variate. And it is one convex problem with exact gradients and all clients in every round: notebook 08
# compares on six, with one rule for tuning and bytes.
#
# </details>

# %% [markdown]
# ## Summary
# - FedAvg with several local steps solves another problem than the one it was given. For quadratics that problem is
#   known exactly, and the runs above end at its solution.
# - Control variates remove the drift, for twice the message.
# - A random subspace of rank $r$ makes messages $m/r$ times smaller and, at the same step size, needs $m/r$ times as
#   many rounds. The gain comes from the longer steps that it allows.
# - Notebook 01 looks at the random bases themselves, 02 at FedSub, 03 at SSF.
#
# ## References
# - H. B. McMahan et al., *Communication-Efficient Learning of Deep Networks from Decentralized Data*, 2017,
#   arXiv:1602.05629 (FedAvg).
# - S. P. Karimireddy et al., *SCAFFOLD: Stochastic Controlled Averaging for Federated Learning*, 2020,
#   arXiv:1910.06378.
# - *An Efficient Subspace Algorithm for Federated Learning on Heterogeneous Data* (FedSub).
# - *SSF: Subspace Optimization for Efficient Federated Learning under Heterogeneous Data*, arXiv:2604.25467.
#
# ---
#
# Next: [01 Random subspaces](01_subspaces.ipynb)
