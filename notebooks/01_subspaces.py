# %% [markdown]
# # Random subspaces: what a projection keeps, loses and amplifies
#
# FedSub (notebook 02) and SSF (notebook 03) are methods of federated learning. In each round their clients move only
# inside a new random subspace, so that little has to be sent. Everything that is special about them happens in two
# lines: `P.project(g)`, down from $m$ to $r$ dimensions, and `P.lift(b)`, back up. This notebook is about these two
# lines alone. Three quarters of it is geometry that you can see. The last quarter shows how rounding errors can destroy
# a correct algorithm.
#
# **Time:** core sections (*) 1 to 4 and 6, about 65 minutes; all of it with the exercises about 150. It runs in half a
# minute. **Needs:** nothing, or notebook 00.
#
# ## What you will learn
# - four ways to draw a basis $P$, and two ways to scale it;
# - what a basis keeps of a vector on average, exactly and measured with error bars;
# - which half of FedSub's Assumption 1 each construction satisfies;
# - how many rounds it takes to see all of $\mathbb{R}^m$;
# - what happens to a vector that is handed from one round's basis to the next, and how fast rounding errors grow.
#
# ## Prerequisites
# Orthogonal projections, expectation and variance. Notebook 00 says what the subspaces are for, but is not needed.
#
# ## Symbols
#
# | here | meaning | the paper's letter | in the code |
# |---|---|---|---|
# | $m$ | entries of a vector; in a network, rows of a layer | FedSub $m$, SSF $d$ (so in notebook 03) | `layer.rows` |
# | $r$ | dimension of the subspace | $r$ | `rank` |
# | $P$, $P'$ | basis of a round, of the next, $m \times r$ | FedSub $P^k$, $P^{k+1}$; SSF transposes | `P` |
# | $P^\top v$, $P b$ | down to $r$ numbers, up to $m$ | | `P.project(v)`, `P.lift(b)` |
# | $W$ | $P P^\top$: down and up again | | |
# | $s^2$ | squared length of a column of $P$ | FedSub $m/r$, SSF 1 | `scale`, `norm2` |
# | $t$, $T$ | index of the round, rounds | FedSub $k$, $K$; SSF $t$, $T$ | `t`, `T` |
# | $u$ | a vector in the coordinates of a subspace, $r$ numbers | | `u` |
# | $\Lambda_i$ | FedSub's dual variable of client $i$, an example of $u$ | FedSub $\Lambda_i$ | `own.dual` |
# | $N$ | clients | FedSub $n$, SSF $N$ | `problem.n` |
# | $\psi$ | digamma function, the derivative of $\ln \Gamma$ | | `digamma` |

# %%
import itertools
import math

import torch
from scipy.special import digamma, polygamma

from fedtheory import Coordinate, FedSub, Gaussian, Identity, Layer, Layout, Quadratic, Spherical, play_round
from fedtheory.course import show, start, table
from fedtheory.course.exercises import check
from fedtheory.course.moving import moving
from fedtheory.maps.subspace import CoordinateBasis
from fedtheory.papers import style

key = start()


def draw(projection, layout, *names):
    """One basis, from the key path of that name."""
    return projection.draw(layout, key.fold(*names), torch.float64)


# %% [markdown]
# ## 1. The shadow of an arrow *
#
# A basis $P$ is an $m \times r$ matrix. `project` computes $P^\top v$ ($r$ numbers: this is what travels), `lift`
# computes $P b$. Down and up again, a vector $v$ becomes its **shadow** $W v$ with $W = P P^\top$.
#
# | class | name in the papers | columns of $P$ |
# |---|---|---|
# | `Coordinate(r)` | CD, coordinate descent | $r$ distinct coordinate directions |
# | `Spherical(r)` | SS, spherical smoothing; Haar | $r$ orthogonal directions, uniformly at random |
# | `Gaussian(r)` | RD, random generation | independent normal entries |
# | `Identity()` | $P = I$ | all coordinates |
#
# Each comes in two scales. `"orthonormal"`: the columns have length 1 (SSF). `"isotropic"`: they are $\sqrt{m/r}$ times
# as long (FedSub). Gaussian columns have these lengths in the mean square only: entries of variance $1/m$, or $1/r$.
#
# > **Predict.** In the plane ($m = 2$, $r = 1$) we take one arrow $v$ and draw its shadow for 300 random lines. What
# > figure do the tips of the shadows make?

# %%
plane, arrow = Layout.single(2), torch.tensor([1.5, 1.0])
tips = {}
for scale in ("orthonormal", "isotropic"):
    for kind in (Gaussian, Spherical, Coordinate):
        bases = [draw(kind(1, scale), plane, "shadow", t) for t in range(300)]
        tips[kind.__name__, scale] = torch.stack([P.lift(P.project(arrow)) for P in bases])

# %% tags=["hide-input"]
# Picture: tips of the shadows of one arrow, 300 random lines each
figure, panels = style.new_figure(2, height=3.6)
for axes, scale in zip(panels, ("orthonormal", "isotropic")):
    for name, color, size in (("Gaussian", 4, 2), ("Spherical", 2, 3), ("Coordinate", 3, 6)):
        look = {"color": style.SEQUENCE[color], "markersize": size, "alpha": 0.6, "mew": 0}
        axes.plot(*tips[name, scale].T, "o", label=name, **look)
    axes.annotate("", arrow.tolist(), (0, 0), arrowprops={"arrowstyle": "-|>", "color": "k", "linewidth": 1.5})
    axes.text(1.55, 1.0, "v")
    axes.set(title=scale, aspect="equal", xlim=(-1.5, 4.2), ylim=(-1.7, 3.2), xlabel="first", ylabel="second")
style.legend_above(figure, 3)
show(figure)

# %% tags=["hide-input"]
# Checks: spherical tips lie on the circle, coordinate tips are two of its points
center = {"orthonormal": arrow / 2, "isotropic": arrow}
for scale, middle in center.items():
    distance = (tips["Spherical", scale] - middle).norm(dim=1)
    assert torch.allclose(distance, middle.norm().expand(300))
    assert len({(round(x, 9), round(y, 9)) for x, y in tips["Coordinate", scale].tolist()}) == 2

# %% [markdown]
# A circle: the shadow on a line meets the line at a right angle, and by Thales all right angles over $v$ lie on the
# circle with diameter $v$. The orthonormal shadow is the nearest point of the line, always shorter than $v$, and on
# average it is $\tfrac12 v$, the centre of the circle. The isotropic shadow is twice as long: on average it **is**
# $v$, the centre of the larger circle, but a single one can be far off. Coordinate bases hit two points of the same
# circle. Gaussian shadows point the same ways and have no fixed length.

# %% [markdown]
# ## 2. Moments *
#
# That is the whole trade: *too short and close*, or *right on average and far off*. Two facts decide everything that
# follows. Write $s^2$ for the squared length of the columns, 1 or $m/r$.
#
# **Fact 1.** If $P^\top P = s^2 I$, then $W^2 = P (P^\top P) P^\top = s^2 W$, so $(I - W)^2 = I - 2W + s^2 W$ and
# $\lVert (I - W) v \rVert^2 = \lVert v \rVert^2 + (s^2 - 2)\, v^\top W v$.
#
# **Fact 2.** $\mathbb{E}\, W = s^2 \tfrac{r}{m} I$ (shown below, for each construction).
#
# Together they give what a shadow loses, its **price**:
#
# $$\mathbb{E}\, \lVert (I - W) v \rVert^2 = \Bigl(1 + (s^2 - 2)\, s^2\, \tfrac{r}{m}\Bigr) \lVert v \rVert^2
# = \begin{cases} 1 - \tfrac{r}{m} & \text{orthonormal},\\ \tfrac{m}{r} - 1 & \text{isotropic} \end{cases} \;\times\;
# \lVert v \rVert^2 .$$
#
# **Coordinates, exactly.** There are only $\binom{m}{r}$ subsets of coordinates. We visit them all.

# %%
m, r = 8, 3
layout = Layout.single(m)


def every_coordinate_basis(m, r, scale):
    """The basis of each subset of r coordinates."""
    layout, low = Layout.single(m), Layout.single(r)
    weight = torch.full((r,), math.sqrt(m / r) if scale == "isotropic" else 1.0)
    for subset in itertools.combinations(range(m), r):
        rows = torch.tensor(subset)
        yield CoordinateBasis(layout, low, rows, weight, (rows,), (weight,))


v = torch.randn(m, generator=key.fold("v").generator())
exact = {}
for scale in ("orthonormal", "isotropic"):
    bases = list(every_coordinate_basis(m, r, scale))
    frames = [P.matrices()[0] for P in bases]
    mean_W = torch.stack([frame @ frame.T for frame in frames]).mean(0)
    lost = torch.stack([(v - P.lift(P.project(v))).square().sum() for P in bases]).mean() / v.square().sum()
    exact[scale] = frames, mean_W, float(lost)
    print(f"{scale}: {len(bases)} subsets, E W = {mean_W[0, 0]:.4f} I, E|(I - W)v|² / |v|² = {lost:.4f}")

# %% tags=["hide-input"]
# Checks: both facts and the price, over all subsets of coordinates
for scale, s2, expected in (("orthonormal", 1, 1 - r / m), ("isotropic", m / r, m / r - 1)):
    frames, mean_W, lost = exact[scale]
    assert len(frames) == math.comb(m, r)
    assert all(torch.allclose(frame.T @ frame, s2 * torch.eye(r)) for frame in frames)
    assert torch.allclose(mean_W, s2 * r / m * torch.eye(m))
    assert abs(lost - expected) < 1e-12

# %% [markdown]
# **Spherical, exactly.** There are infinitely many of these, but they have no preferred direction: $P$ and $QP$ are
# equally likely for every rotation or reflection $Q$. So $\mathbb{E}\,W = \mathbb{E}\,Q W Q^\top$ for each $Q$, and
# also for an average over many $Q$. Take the $2^m\, m!$ matrices that permute coordinates and flip signs: averaged
# over these, **every** symmetric $W$ becomes $\tfrac{\operatorname{tr} W}{m} I$. And the trace is never random:
# $\operatorname{tr} P P^\top = \operatorname{tr} P^\top P = s^2 r$.
#
# For $m = 4$ the average is over 384 such matrices, and one draw of $W$ is enough.

# %%
small = Layout.single(4)
flips = [torch.diag(torch.tensor(signs)) for signs in itertools.product((1.0, -1.0), repeat=4)]
orders = [torch.eye(4)[list(order)] for order in itertools.permutations(range(4))]
group = torch.stack([flip @ order for flip in flips for order in orders])
averages = {}
for scale in ("orthonormal", "isotropic"):
    frame = draw(Spherical(2, scale), small, "symmetry").matrices()[0]
    W = frame @ frame.T
    averages[scale] = frame, (group @ W @ group.mT).mean(0)
    print(f"{scale}: trace {W.trace():.4f}, average over {len(group)} symmetries = {averages[scale][1][0, 0]:.4f} I")

# %% tags=["hide-input"]
# Checks: both facts for a spherical basis
for scale, s2 in (("orthonormal", 1.0), ("isotropic", 4 / 2)):
    frame, averaged = averages[scale]
    assert torch.allclose(frame.T @ frame, s2 * torch.eye(2))
    assert torch.allclose(averaged, s2 * 2 / 4 * torch.eye(4))

# %% [markdown]
# **Gaussian.** The same symmetry gives Fact 2. But Fact 1 fails: $P^\top P$ is $s^2 I$ only on average. Let the entries
# have variance $\sigma^2$. By symmetry $\mathbb{E}\,W^2$ is a multiple of $I$, so look at one diagonal entry,
# $\sum_j W_{1j}^2$: $W_{11}$ is $\sigma^2$ times a chi-square with $r$ degrees of freedom, $\mathbb{E} W_{11}^2 =
# \sigma^4 r (r + 2)$, and each of the $m - 1$ others is a product of two independent rows, $\mathbb{E} W_{1j}^2 =
# \sigma^4 r$. So $\mathbb{E}\,W^2 = \sigma^4 r\,(m + r + 1)\, I$, hence
#
# $$\mathbb{E}\, \lVert (I - W) v \rVert^2 = \bigl(1 - 2 \sigma^2 r + \sigma^4 r (m + r + 1)\bigr) \lVert v \rVert^2
# = \tfrac{m+1}{r}\, \lVert v \rVert^2 \quad\text{for } \sigma^2 = \tfrac1r \text{ (isotropic)}.$$
#
# That is larger than $\tfrac mr - 1$ by $1 + \tfrac1r$: the price of columns that are neither orthogonal nor of equal
# length.
#
# > **Predict.** For which $r$ is the isotropic shadow a worse guess of $v$ than $0$, whose squared error is $\lVert v
# > \rVert^2$?
#
# We measure all of it, 400 draws per point, with bars of $\pm 2$ standard errors. All 48 measurements lie within 4
# standard errors of their formula; the table shows twelve.

# %%
m = 20
v = torch.randn(m, generator=key.fold("v", m).generator())
v = v / v.norm()
price = {
    ("Coordinate", "orthonormal"): lambda m, r: 1 - r / m,
    ("Spherical", "orthonormal"): lambda m, r: 1 - r / m,
    ("Gaussian", "orthonormal"): lambda m, r: 1 - r / m + r * (r + 1) / m**2,
    ("Coordinate", "isotropic"): lambda m, r: m / r - 1,
    ("Spherical", "isotropic"): lambda m, r: m / r - 1,
    ("Gaussian", "isotropic"): lambda m, r: (m + 1) / r,
}
ranks, draws = (1, 2, 4, 7, 10, 13, 16, 19), 400
kinds = {"Coordinate": Coordinate, "Spherical": Spherical, "Gaussian": Gaussian}
many = Layout(tuple(Layer(f"draw {t}", m, 1) for t in range(draws)))  # each layer has a basis of its own
measured, rows = {}, []
for (name, scale), formula in price.items():
    for r in ranks:
        P = draw(kinds[name](r, scale), many, "price", name, r)
        lost = (v - P.lift(P.project(v.repeat(draws))).view(draws, m)).square().sum(1)
        measured[name, scale, r] = float(lost.mean()), float(2 * lost.std() / math.sqrt(draws))
        if r in (4, 10):
            rows.append([name, scale, r, formula(m, r), *measured[name, scale, r]])
table(["construction", "scale", "r", "formula", "measured", "2 std. errors"], rows)

# %% tags=["hide-input"]
# Picture: the price against r, formulas and measurements
figure, panels = style.new_figure(2)
fine = [rank / 10 for rank in range(10, 10 * m + 1)]
for (name, scale), formula in price.items():
    axes = panels[("orthonormal", "isotropic").index(scale)]
    place = list(kinds).index(name)
    color = style.SEQUENCE[(3, 2, 4)[place]]
    axes.plot(fine, [formula(m, rank) for rank in fine], (":", "-", "--")[place], color=color, label=f"{name}: formula")
    means, bars = zip(*(measured[name, scale, r] for r in ranks))
    spots = [rank + 0.2 * (place - 1) for rank in ranks]
    axes.errorbar(spots, means, bars, fmt="osD"[place], color=color, markersize=3, capsize=2)
for axes, scale in zip(panels, ("orthonormal", "isotropic")):
    axes.axhline(1, color="k", linewidth=0.8, alpha=0.5)
    axes.set(title=scale, xlabel="r  (m = 20)", xticks=range(0, 21, 5), ylabel=r"$E\|(I - W)v\|^2\,/\,\|v\|^2$")
panels[1].set(yscale="log", ylim=(0.04, 40))
style.legend_above(figure, 3)
show(figure)

# %% tags=["hide-input"]
# Checks: all 48 measurements lie within 4 standard errors of their formula
for (name, scale, r), (mean, bar) in measured.items():
    assert abs(mean - price[name, scale](m, r)) < 2 * (bar + 1e-9)

# %% [markdown]
# For $r < m/2$ the isotropic shadow is worse than no guess (the line at 1). The isotropic Gaussian shadow is worse for
# *every* $r$. (At $r = m/2$, $s^2 = 2$, and Fact 1 leaves nothing random: every draw loses exactly $\lVert v
# \rVert^2$.) Unbiased does not mean accurate. FedSub lives with that because a gradient step multiplies the shadow by a
# small step size, and over many rounds errors average out while a bias would not.

# %% [markdown]
# ## 3. Which half of Assumption 1? *
#
# FedSub's theory assumes, for every round $k$,
#
# $$\underbrace{(P^k)^\top P^k = \tfrac{m}{r} I}_{\text{first half: for every draw}} \qquad\text{and}\qquad
# \underbrace{\mathbb{E}\,[P^k (P^k)^\top] = I}_{\text{second half: on average}} .$$
#
# SSF's Assumption 3 (transposed) wants $P^\top P = I_r$ and $\mathbb{E}\,[P P^\top] = \tfrac rm I$ instead.
#
# The code checks 200 draws of each construction. For the first half it takes the largest deviation. For the second half
# it goes through all subsets of coordinates. For the other constructions the symmetry argument above leaves only the
# average trace to check (exact for `Spherical`, four standard errors for `Gaussian`).

# %%
m, r = 6, 2
layout = Layout.single(m)


def every_draw(projection, s2):
    """First half: is P^T P = s2 I for every draw?"""
    frames = [draw(projection, layout, "half", t).matrices()[0] for t in range(200)]
    return all(torch.allclose(frame.T @ frame, s2 * torch.eye(frame.shape[1])) for frame in frames)


def on_average(projection, c):
    """Second half: is E[P P^T] = c I?"""
    if isinstance(projection, Coordinate):
        frames = [P.matrices()[0] for P in every_coordinate_basis(m, r, projection.scale)]
        return torch.allclose(torch.stack([frame @ frame.T for frame in frames]).mean(0), c * torch.eye(m))
    traces = torch.stack([draw(projection, layout, "half", t).matrices()[0].square().sum() for t in range(200)])
    return abs(float(traces.mean()) - c * m) <= 4 * float(traces.std()) / math.sqrt(200) + 1e-9


rows, verdicts = [], {}
for scale in ("isotropic", "orthonormal"):
    for projection in (Coordinate(r, scale), Spherical(r, scale), Gaussian(r, scale)):
        fedsub = every_draw(projection, m / r), on_average(projection, 1)
        ssf = every_draw(projection, 1), on_average(projection, r / m)
        verdicts[type(projection).__name__, scale] = fedsub, ssf
        rows.append([type(projection).__name__, scale, *("yes" if holds else "no" for holds in (*fedsub, *ssf))])
table(["construction", "scale", "P^T P = (m/r) I", "E[P P^T] = I", "P^T P = I", "E[P P^T] = (r/m) I"], rows)

# %% tags=["hide-input"]
# Checks: who satisfies which half
both, second, neither = (True, True), (False, True), (False, False)
for name in ("Coordinate", "Spherical"):
    assert verdicts[name, "isotropic"] == (both, neither)
    assert verdicts[name, "orthonormal"] == (neither, both)
assert verdicts["Gaussian", "isotropic"] == (second, neither)
assert verdicts["Gaussian", "orthonormal"] == (neither, second)
assert every_draw(Identity(), 1)
assert on_average(Identity(), 1)

# %% [markdown]
# Scaled coordinate and spherical bases satisfy both halves of FedSub's assumption, unscaled ones both halves of SSF's.
# Gaussian bases satisfy only the second half, in either scale. ($P = I$, with $r = m$, satisfies everything.) The two
# assumptions differ by a factor only. Both halves together leave no freedom: by Facts 1 and 2 the price is exactly
# $\tfrac mr - 1$ under FedSub's and $1 - \tfrac rm$ under SSF's, however the basis is drawn.
#
# ## 4. Seeing all of $\mathbb{R}^m$ *
#
# One round sees an $r$-dimensional slice. How much is left unseen after $t$ rounds?
#
# > **Predict.** With $r/m = 1/10$: after 10 rounds, has a coordinate basis visited all coordinates? Has a spherical
# > one spanned the space?

# %%
m, r, T, repeats = 40, 4, 40, 50
layout = Layout.single(m)
v = torch.randn(m, generator=key.fold("v", m).generator())
seen = torch.zeros(T + 1, m, dtype=torch.bool)
unvisited, outside, left = (torch.ones(repeats, T + 1) for _ in range(3))
for repeat in range(repeats):
    visited, rest, span = torch.zeros(m, dtype=torch.bool), v.clone(), torch.zeros(m, 0)
    for t in range(T):
        chosen = draw(Coordinate(r, "orthonormal"), layout, "cover", repeat, t)
        visited[chosen.index] = True
        unvisited[repeat, t + 1] = (~visited).double().mean()
        if repeat == 0:
            seen[t + 1] = visited
        P = draw(Spherical(r, "orthonormal"), layout, "cover", repeat, t)
        rest = rest - P.lift(P.project(rest))
        left[repeat, t + 1] = rest.square().sum() / v.square().sum()
        span = torch.cat([span, P.matrices()[0]], 1)  # all bases so far
        outside[repeat, t + 1] = 1 - torch.linalg.matrix_rank(span) / m if outside[repeat, t] else 0.0

print(f"after 10 rounds: {1 - float(unvisited[:, 10].mean()):.3f} of the coordinates visited")

# %% tags=["hide-input"]
# Picture: which coordinates have been visited, and three shares that are unseen
figure, (picture, axes) = style.new_figure(2, height=3.0)
picture.imshow(seen.T.numpy(), aspect="auto", origin="lower", cmap="Greens", interpolation="nearest", vmin=0, vmax=1.3)
picture.set(title="coordinates visited so far (green)", xlabel="rounds", ylabel="coordinate")
picture.grid(visible=False)
rounds = torch.arange(T + 1)
axes.plot(rounds, (1 - r / m) ** rounds, color="k", linewidth=4, alpha=0.2, label=r"$(1 - r/m)^t$")
axes.plot(rounds, unvisited.mean(0), color=style.SEQUENCE[3], label="CD: coordinates not visited")
axes.plot(rounds, left.mean(0), "--", color=style.SEQUENCE[2], label="SS: what is left of a vector")
axes.plot(rounds, outside.mean(0), "-.", color=style.SEQUENCE[0], label="SS: dimensions outside the span (counted)")
axes.set(title="unseen share", xlabel="rounds", ylabel="share", ylim=(-0.02, 1.02))
style.legend_above(figure, 4)
show(figure)

# %% tags=["hide-input"]
# Checks: both shares follow (1 - r/m)^t within 4 standard errors; ten spherical bases span everything, nine do not
error = 4 * torch.stack([unvisited, left]).std(1) / math.sqrt(repeats) + 1e-9
gap = (torch.stack([unvisited, left]).mean(1) - (1 - r / m) ** rounds).abs()
assert bool((gap <= error).all())
assert bool((outside[:, m // r :] == 0).all())
assert bool((outside[:, m // r - 1] - r / m).abs().max() < 1e-6)

# %% [markdown]
# Keep three notions of "seen" apart:
#
# - **Dimensions.** $m / r$ spherical bases span the whole space. Whoever could *store* them would know everything.
# - **Coordinates visited.** Coordinate bases repeat themselves: after $m/r = 10$ rounds about a third is unvisited.
#   The share falls like $(1 - r/m)^t$, and the unluckiest coordinate waits, on average, for about $(\ln m + 0.58)
#   \,/\, -\!\ln(1 - r/m)$ rounds (here 41; 0.58 is Euler's constant).
# - **What is left of a vector** when each round removes the part that its subspace sees. It falls at exactly the same
#   rate for both constructions, by Fact 2. SSF's clients use this: in each round a client refreshes the part $P P^\top
#   c_i$ of its correction $c_i$ and keeps $(I - P P^\top) c_i$. So the old part fades by the factor $1 - r/m$ per
#   round.

# %% [markdown]
# **A picture that moves.** You see the first frame. The book has sliders in its place, and `moving("coverage",
# live=True)` shows them in JupyterLab.

# %%
moving("coverage")

# %% [markdown]
# ## 5. Layer by layer
#
# A network's parameters are several matrices. A `Layout` says where each lies in the flat vector, and a projection
# draws one basis per layer, which multiplies the layer's matrix from the left: $W_l \mapsto P_l^\top W_l$. One rank
# for all layers is capped at the layer's height; a tuple gives each layer its own.

# %%
net = Layout((Layer("hidden", 12, 3), Layer("out", 4, 5)))
rows, layerwise = [], []
for rank in (6, (4, 2)):
    projection = Spherical(rank)
    low = projection.low(net)
    P = draw(projection, net, "layers", str(rank))
    g = torch.randn(net.size, generator=key.fold("g").generator())
    small = low.matrices(P.project(g))
    for layer, part, frame, G, b in zip(net.layers, low.layers, P.matrices(), net.matrices(g), small):
        layerwise.append((frame, G, b, layer.rows / part.rows))
        sizes = [f"{layer.rows} x {layer.cols}", f"{part.rows} x {part.cols}"]
        rows.append([str(rank), layer.name, *sizes, layer.rows / part.rows])
    print(f"rank {rank}: {net.size} numbers become {low.size}")
table(["rank", "layer", "full", "low", "m_l / r_l"], rows)

# %% tags=["hide-input"]
# Checks: project acts on each layer from the left, with a basis that is isotropic for that layer
for frame, G, b, stretch in layerwise:
    assert torch.allclose(frame.T @ G, b)
    assert torch.allclose(frame.T @ frame, stretch * torch.eye(frame.shape[1]))
assert Spherical(6).low(net).size == 6 * 3 + 4 * 5

# %% [markdown]
# What a round loses is the sum over layers of each layer's own price. A small layer that is kept whole ("out" in the
# first case) loses nothing.

# %%
projection, draws = Spherical((4, 2), "orthonormal"), 1000
lost = torch.zeros(draws)
for t in range(draws):
    P = draw(projection, net, "layers", t)
    lost[t] = (g - P.lift(P.project(g))).square().sum()
parts = [g[where].square().sum() for where in net.slices]
predicted = float((1 - 4 / 12) * parts[0] + (1 - 2 / 4) * parts[1])
bar = float(2 * lost.std() / math.sqrt(draws))
print(f"lost: {float(lost.mean()):.4f} +- {bar:.4f} measured, {predicted:.4f} predicted")

# %% tags=["hide-input"]
# Checks: the loss is the sum of the layers' prices
assert abs(float(lost.mean()) - predicted) < 2 * bar

# %% [markdown]
# ## 6. From one round's basis to the next *
#
# FedSub gives each client a dual variable $\Lambda_i$ of $r$ numbers, a correction against client drift. When the basis
# changes from $P$ to $P'$, line 12 of Algorithm 1 carries it over with $(P')^\top P$. What does that do to its length?
#
# For a $u$ that does not know $P'$, $\mathbb{E}\,\lVert (P')^\top P u \rVert^2 = u^\top P^\top\, \mathbb{E}[P'
# P'^\top]\, P u = \lVert P u \rVert^2$
# under the second half of Assumption 1, and $\lVert P u \rVert^2 = \tfrac mr \lVert u \rVert^2$ under the first. So
# the change of basis **stretches** squared lengths by $m/r$ on average; with orthonormal bases the same computation
# gives $r/m$, and it shrinks.
#
# After $t$ changes the mean square has grown by $(m/r)^t$. But a mean can be made by rare giants, so we also ask for
# the **typical** growth, the average of the *logarithm* of the length per round. It is never larger than half the
# logarithm of the mean square's growth (Jensen), and for two constructions it has a formula:
#
# | construction | mean square per round | typical: average log length per round |
# |---|---|---|
# | Spherical, isotropic | $m/r$ | $\ln\frac mr + \frac12[\psi(\frac r2) - \psi(\frac m2)]$ |
# | Spherical, orthonormal | $r/m$ | $\frac12[\psi(\frac r2) - \psi(\frac m2)]$ |
# | Gaussian, isotropic | $(m + r + 1)/r$ | $\ln\frac 2r + \frac12[\psi(\frac r2) + \psi(\frac{m + r - 1}2)]$ |
# | Coordinate, isotropic | $m/r$ | $-\infty$ |
#
# Here $\psi$ is the digamma function. Why: look at $w = P u$ in the full space; there a change of basis multiplies by
# $W' = P' P'^\top$. For spherical bases $\lVert W' w \rVert^2 = (\frac mr)^2\, \beta\, \lVert w \rVert^2$. Here $\beta
# \sim \mathrm{Beta}(\frac r2, \frac{m-r}2)$ is the share of its square that a vector keeps in a uniform subspace; its
# mean is $\frac rm$, its mean square $\frac{r (r+2)}{m (m+2)}$. This holds for every direction of $w$, so the rounds
# are independent. And $\mathbb{E} \ln \beta = \psi(\frac r2) - \psi(\frac m2)$. For Gaussian bases a product of two
# chi-squares replaces $\beta$. (These are rates: the very first change differs by a constant factor, which the lines
# below leave out.)
#
# > **Predict.** Coordinate and spherical bases have the same mean square growth, $m/r$ per round. We follow 40
# > vectors for 60 changes of basis. Do the two pictures look alike?


# %%
def typical(name, m, r):
    """Average log length per change of basis."""
    if name == "Gaussian":
        return math.log(2 / r) + 0.5 * (digamma(r / 2) + digamma((m + r - 1) / 2))
    return math.log(m / r) + 0.5 * (digamma(r / 2) - digamma(m / 2))


m, r, T, chains = 20, 10, 60, 40
layout = Layout.single(m)
lengths = {}
for name, projection in {
    "Spherical, isotropic": Spherical(r),
    "Spherical, orthonormal": Spherical(r, "orthonormal"),
    "Gaussian, isotropic": Gaussian(r),
    "Coordinate, isotropic": Coordinate(r),
}.items():
    lengths[name] = torch.zeros(chains, T + 1)
    for chain in range(chains):
        P = draw(projection, layout, "chain", name, chain, 0)
        u = torch.ones(r) / math.sqrt(r)
        lengths[name][chain, 0] = 1.0
        for t in range(1, T + 1):
            after = draw(projection, layout, "chain", name, chain, t)
            u, P = after.project(P.lift(u)), after  # (P')^T P u
            lengths[name][chain, t] = u.norm()

# %% tags=["hide-input"]
# Picture: 40 vectors through 60 changes of basis
figure, panels = style.new_figure(4, height=2.8, columns=2.6)
growth = {"Spherical, isotropic": m / r, "Spherical, orthonormal": r / m, "Coordinate, isotropic": m / r}
growth["Gaussian, isotropic"] = (m + r + 1) / r
for axes, (name, values) in zip(panels, lengths.items()):
    for chain in range(chains):
        axes.plot(values[chain].clamp(min=1e-30), color="0.6", linewidth=0.4, label="_chain")
    rounds = torch.arange(T + 1)
    axes.plot(rounds, growth[name] ** (rounds / 2), ":", color=style.SEQUENCE[3], label="root mean square (formula)")
    if not name.startswith("Coordinate"):
        rate = typical(name.split(",")[0], m, r) - (math.log(m / r) if "orthonormal" in name else 0)
        axes.plot(rounds, torch.exp(rate * rounds), "--", color=style.SEQUENCE[0], label="typical (formula)")
    axes.set(yscale="log", ylim=(1e-13, 1e16), title=name, xlabel="changes of basis", ylabel="length")
style.legend_above(figure, 2)
show(figure, values=False)

# %%
rows = []
for name, values in lengths.items():
    alive = int((values[:, -1] > 0).sum())
    if name.startswith("Coordinate"):
        rows.append([name, alive, "-", "-", "-"])
        continue
    rates = values[:, -1].log() / T
    predicted = typical(name.split(",")[0], m, r) - (math.log(m / r) if "orthonormal" in name else 0)
    rows.append([name, alive, predicted, float(rates.mean()), float(2 * rates.std() / math.sqrt(chains))])
table(["construction", "alive of 40", "predicted", "measured", "2 std. errors"], rows)

# %% tags=["hide-input"]
# Checks: typical growth as predicted; all coordinate chains die; typical below the mean square's
assert all(abs(measured - predicted) < 2 * bar for _, _, predicted, measured, bar in rows[:-1])
assert rows[-1][1] == 0
assert 0 < rows[0][2] < 0.5 * math.log(m / r)

# %% [markdown]
# They could not look less alike. A coordinate basis multiplies what the two rounds share by $m/r$ and **drops** the
# rest. Each coordinate survives $t$ rounds with probability $(r/m)^t$ and is then $(m/r)^t$ times larger. So the mean
# square grows as promised, but through survivors that are too rare to be seen. Every chain of the picture dies. A
# spherical basis drops a little of everything and stretches the rest, every time. Its chains grow, almost as fast as
# the mean square.
#
# ### Rounding errors
#
# In exact arithmetic the duals of all clients average to zero, $\sum_i \Lambda_i = 0$ (FedSub's (15)), and
# $(P')^\top P \cdot 0 = 0$. In floating point they average to about $10^{-17}$, and that is carried through every
# change of basis. Nothing in the algorithm ever removes it.
#
# > **Predict.** FedSub as printed, exact gradients, spherical bases with $m/r = 2$. Float64 has 16 digits. For how
# > many rounds do they last? And the 7 digits of float32?

# %%
settings = {
    "Spherical, isotropic, float64": (Spherical(r), torch.float64),
    "Spherical, isotropic, float32": (Spherical(r), torch.float32),
    "Coordinate, isotropic, float64": (Coordinate(r), torch.float64),
    "Spherical, orthonormal, float64": (Spherical(r, "orthonormal"), torch.float64),
}
T, drift = 110, {}
for name, (projection, dtype) in settings.items():
    problem = Quadratic.random(10, m, key.fold("quadratic"), dtype=dtype)
    algorithm = FedSub(lr=0.1, local_steps=5, projection=projection)
    state, means = algorithm.init(problem, problem.start(), key), []
    for t in range(T):
        state, _, _ = play_round(algorithm, problem, state, problem.clients, key.fold("round", t))
        means.append(float(state.own.dual.double().mean(0).norm()))
    drift[name] = means

# the same bases, and 200 random vectors that have nothing to do with the algorithm
P = draw(Spherical(r), layout, "P")
u = torch.randn(200, r, generator=key.fold("pushed").generator())
logs = torch.zeros(T, 200)
for t in range(T):
    after = draw(Spherical(r), layout, "round", t, "P")
    u, P = after.project(P.lift(u)), after
    logs[t] = u.norm(dim=1).log()
pushed = (logs[100] - logs[20]) / 80  # growth of the logarithm per round

# %% tags=["hide-input"]
# Picture: the average dual against rounds
figure, (axes,) = style.new_figure(height=3.2, columns=1.6)
for place, (name, means) in enumerate(drift.items()):
    axes.plot(range(1, T + 1), means, style.STYLES[place], color=style.SEQUENCE[place], label=name)
rounds = torch.arange(1, T + 1)
for begin, label in ((1e-17, "typical growth (formula)"), (1e-8, "_")):
    axes.plot(
        rounds, begin * torch.exp(typical("Spherical", m, r) * rounds), color="k", linewidth=4, alpha=0.15, label=label
    )
axes.set(
    yscale="log", ylim=(1e-19, 1e3), xlabel="rounds", ylabel=r"$\|\frac{1}{N}\sum_i \Lambda_i\|$, exactly 0 in theory"
)
style.legend_above(figure, 2)
show(figure, values=False)


# %%
def slope(values):
    """Growth of the logarithm per round, rounds 20 to 100."""
    return (math.log(values[100]) - math.log(values[20])) / 80


rate, spread = typical("Spherical", m, r), 0.5 * math.sqrt(polygamma(1, r / 2) - polygamma(1, m / 2))
print(
    f"growth per round: {rate:.4f} by the formula, with a standard deviation of {spread / 80**0.5:.4f} over 80 rounds"
)
print(f"random vectors through the bases of this run: {pushed.mean():.4f}, standard deviation {pushed.std():.4f}")
same = {
    name: abs(slope(drift[f"Spherical, isotropic, {name}"]) - float(pushed.mean())) < 4 * float(pushed.std())
    for name in ("float64", "float32")
}
print(f"the average dual grows like these vectors (4 standard deviations): {all(same.values())}")
still = all(max(drift[name]) < 1e-13 for name in list(drift)[2:])
print(f"with coordinate and with orthonormal bases it stays below 1e-13: {still}")

# %% tags=["hide-input"]
# Checks: the growth is that of the formula, in both precisions, and absent for the other two
assert abs(float(pushed.mean()) - rate) < 3 * spread / 80**0.5
assert all(same.values())
assert still
assert typical("Spherical", 20, 4) > 2 * rate

# %% [markdown]
# The number of digits decides only where the line starts; the bases decide its slope. With $m/r = 2$ float64 lasts for
# about 110 rounds and float32 for about 50; with $r = 4$, $m/r = 5$, for less than half of that. The cure is not more
# digits. It is never to carry the error on. Orthonormal bases shrink it, coordinate bases drop it, and FedSub's own
# rewriting of the dual variable (`form="sums"`, notebook 02) makes it anew in each round.

# %% [markdown]
# ## Exercises
#
# Replace the three dots and run the cell. The solutions are folded. An answer in words goes into the cell below its
# question; grade it by the rubric that is folded behind it.
#
# **Exercise 1** (1 point). For $m = 46$ and *isotropic* spherical bases, what is the smallest rank for which the shadow
# $W v$ is a better guess of $v$ than $0$?

# %%
answer = ...  # r
check("01.1", answer)

# %% [markdown]
# <details>
# <summary>Solution</summary>
#
# ```python
# answer = 46 // 2 + 1
# ```
#
# $\tfrac mr - 1 < 1$ means $r > m/2$. At $r = m/2$ the two guesses are equally bad.
#
# </details>

# %% [markdown]
# **Exercise 2** (2 points). An isotropic Gaussian shadow has the price $\tfrac{m+1}{r} > 1$. Shrink it: for which
# factor $a$ is $\mathbb{E}\,\lVert v - a W v \rVert^2$ smallest? Give $a$ as a function of $m$ and $r$. (The check
# compares the error at your $a$ with that at a thousandth less and more, for three settings, by the moments of section
# 2.)

# %%
answer = ...  # lambda m, r: ...
check("01.2", answer)

# %% [markdown]
# <details>
# <summary>Solution</summary>
#
# ```python
# answer = lambda m, r: r / (m + r + 1)
# ```
#
# $1 - 2a + a^2 \tfrac{m + r + 1}{r}$ is smallest at $a = \tfrac{r}{m+r+1}$, with the value
# $1 - \tfrac{r}{m + r + 1}$: almost the orthonormal price $1 - \tfrac rm$. Most of what isotropic bases lose is
# scale.
#
# </details>

# %% [markdown]
# **Exercise 3** (1 point). SSF with coordinate bases, $m = 100$, $r = 5$: after how many rounds have 99% of the
# coordinates been visited, on average? The check draws bases until it is so.

# %%
answer = ...  # rounds
check("01.3", answer)

# %% [markdown]
# <details>
# <summary>Solution</summary>
#
# ```python
# answer = math.log(0.01) / math.log(1 - 5 / 100)
# ```
#
# About 90 rounds, where 20 would do if no coordinate were visited twice. (An *expected share* of 99% after 90 rounds
# and 90 rounds *on average* until 99% are two statements. Here they are close, and the check allows 15%.)
#
# </details>

# %% [markdown]
# **Exercise 4** (3 points). *Crosstalk.* In a subspace a client that wants to go along $v$ also goes along every $u$
# perpendicular to it: $u^\top W v$ is zero on average only. For isotropic **spherical** bases and unit vectors $u \perp
# v$, derive $\mathbb{E}\, (u^\top W v)^2$ as a function of $m$ and $r$. (The check calls your function with sympy's
# symbols.)

# %%
answer = ...  # lambda m, r: ...
check("01.4", answer)

# %% [markdown]
# <details>
# <summary>Solution</summary>
#
# ```python
# answer = lambda m, r: m * (m - r) / (r * (m - 1) * (m + 2))
# ```
#
# By Fact 1, $\lVert W v \rVert^2 = v^\top W^2 v = \tfrac mr v^\top W v$, with mean $\tfrac mr$. Along $v$ the shadow
# has $v^\top W v = \tfrac mr \beta$, whose mean square is $(\tfrac mr)^2 \tfrac{r(r+2)}{m(m+2)} =
# \tfrac{m(r+2)}{r(m+2)}$. What is left, $\tfrac mr - \tfrac{m(r+2)}{r(m+2)} = \tfrac{m(m-r)}{r(m+2)}$, is spread evenly
# over the $m - 1$ directions perpendicular to $v$. For large $m$ each of them gets about $\tfrac1r$: little, but there
# are $m - 1$ of them, and together they are nearly the whole price $\tfrac mr - 1$.
#
# </details>

# %% [markdown]
# **Exercise 5** (2 points). Break Assumption 1 and predict what fails. Three laws for $P$ and the basis $P'$ of the
# next round:
#
# - `"fixed"`: $P = P' = \sqrt{m/r}$ times the first $r$ columns of $I$, always;
# - `"Gaussian"`: isotropic Gaussian bases, independent;
# - `"once"`: one isotropic spherical basis, drawn before the first round and kept: $P' = P$.
#
# Which statements hold for which law, whatever $r < m$ is? $u$ is any vector that knows neither basis.
#
# - (a) $W^2 = \tfrac mr W$ for every draw.
# - (b) $\mathbb{E}\, W v = v$ for every $v$.
# - (c) $\mathbb{E}\, \lVert (I - W) v \rVert^2 = (\tfrac mr - 1) \lVert v \rVert^2$ for every $v$.
# - (d) $\mathbb{E}\, \lVert (P')^\top P u \rVert^2 = \tfrac mr \lVert u \rVert^2$ for every $u$.
# - (e) $\operatorname{tr} W = m$ for every draw.

# %%
answer = ...  # {"fixed": "...", "Gaussian": "...", "once": "..."}, each the letters of what holds, such as "ab"
check("01.5", answer)

# %% [markdown]
# <details>
# <summary>Solution</summary>
#
# ```python
# answer = {"fixed": "ae", "Gaussian": "bd", "once": "abce"}
# ```
#
# (a) and (e) use the first half only, (b) the second only, (c) both. (d) needs the second half for $P'$, the mean of
# $P^\top P$, and that $P'$ is independent of $P$: Gaussian bases have all three. (Section 6 has $\tfrac{m+r+1}{r}$ per
# change for them, and no contradiction: there $u$ was made with $P$. Here is the very first change.) With one basis for
# ever both halves hold in every round and $(P')^\top P = \tfrac mr I$: the square grows by $(\tfrac mr)^2$.
# "Independently over the rounds" is not a formality.
#
# </details>

# %% [markdown]
# **Exercise 6** (3 points, in words). A colleague wants bases that see the gradient. The first column of $P$ is to
# point along the average gradient, the other $r - 1$ are spherical in what is perpendicular to it, all of length
# $\sqrt{m/r}$. "It keeps Assumption 1, and what matters most is never lost." Which half does it keep? What is
# $\mathbb{E}\, W$ now, and what does that do to the other directions over many rounds? And what would a federated
# method have to send?

# %% [markdown]
# *Your answer:*

# %% [markdown]
# <details>
# <summary>Rubric and a model answer</summary>
#
# - The first half of Assumption 1 holds, the second does not: $\mathbb{E} W$ is $\frac mr$ along the chosen direction
#   and $\frac mr \cdot \frac{r-1}{m-1} < 1$ perpendicular to it. (1 point)
# - The trace of $W$ is $m$ whatever the law: what one direction gains the others lose. That loss is a bias, which no
#   number of rounds averages out. (1 point)
# - A seed makes the same basis at all clients only if all know the direction. It must come from what all have seen
#   before the round, such as the last step of the model. Or it must be sent: as many numbers as the model. (1 point)
#
# **A model answer.** The columns are orthogonal and of the right length, so $P^\top P = \tfrac mr I$. But the law has a
# preferred direction $g$: along it every draw has $W g = \tfrac mr g$; perpendicular to it $r - 1$ of $m - 1$
# dimensions are seen, so that $\mathbb{E}\, W v = \tfrac mr \tfrac{r-1}{m-1} v$. A step is $\tfrac mr$ times too long
# along $g$ and too short elsewhere. As long as $g$ stays the same this does not average out. One could divide it out,
# since both factors are known. A correction of drift is about what a client wants beyond the average gradient, and
# those directions lose. And the average gradient is not known before the round. Clients would use the last one, which
# they can read off the model's last step. Or the server would send $m$ numbers, which the subspace was to save.
#
# </details>

# %% [markdown]
# ## Summary
# - Projected orthogonally, a vector keeps $r/m$ of its squared length on average. Orthonormal bases give the nearest
#   point, too short on average; isotropic ones are right on average and lose $\tfrac mr - 1$, more than the vector
#   itself for $r < m/2$.
# - FedSub's Assumption 1 holds in both halves for scaled coordinate and spherical bases, in one half for Gaussian
#   ones.
# - What is unseen falls like $(1 - r/m)^t$, for coordinates as for directions.
# - The change of basis $(P')^\top P$ stretches by $\sqrt{m/r}$ in the mean square for spherical and coordinate bases,
#   by $\sqrt{(m + r + 1)/r}$ for Gaussian ones. For spherical and Gaussian bases the typical growth is less, and
#   rounding errors grow exponentially. With coordinate bases they always die out, and orthonormal bases shrink them.
#
# ## References
# - *An Efficient Subspace Algorithm for Federated Learning on Heterogeneous Data* (FedSub): Assumption 1, Algorithm
#   1.
# - *SSF: Subspace Optimization for Efficient Federated Learning under Heterogeneous Data*, arXiv:2604.25467:
#   Assumption 3, Section 3.6.
# - R. Vershynin, *High-Dimensional Probability*, 2018, Chapter 5: random projections.
# - H. Furstenberg and H. Kesten, *Products of Random Matrices*, 1960: why typical growth has a limit.
#
# ---
#
# Previous: [00 A tour](00_tour.ipynb) · Next: [02 FedSub](02_fedsub.ipynb)
