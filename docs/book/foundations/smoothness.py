# %% [markdown]
# # Smoothness and PL
#
# A function $F$ is *$L$-smooth* if its gradient changes by at most $L$ times the distance:
# $\lVert \nabla F(x) - \nabla F(y) \rVert \le L \lVert x - y \rVert$. Then it lies below a parabola:
#
# $$F(y) \le F(x) + \langle \nabla F(x), y - x \rangle + \tfrac{L}{2} \lVert y - x \rVert^2 .$$
#
# **The descent lemma.** Put $y = x - \eta \nabla F(x)$: $F(y) \le F(x) - \eta \bigl(1 - \tfrac{L \eta}{2}\bigr)
# \lVert \nabla F(x) \rVert^2$. For $\eta \le 1/L$ a step gains at least $\frac{\eta}{2} \lVert \nabla F(x) \rVert^2$.
# Summed over $T$ steps, some gradient is small: $\min_t \lVert \nabla F(x_t) \rVert^2 \le \frac{2 (F(x_0) -
# F^\star)}{\eta\, T}$. Every nonconvex rate in the papers has its $1/T$ from here.
#
# **PL** (Polyak, Łojasiewicz): $\lVert \nabla F(x) \rVert^2 \ge 2 \mu\, (F(x) - F^\star)$. Where the gradient is
# small, the loss is near its minimum $F^\star$. PL needs no convexity; strong convexity implies it. With the descent
# lemma the gap shrinks by a factor in each step: $F(x_{t+1}) - F^\star \le (1 - \eta \mu) (F(x_t) - F^\star)$.
#
# **In a subspace** a step makes on average the share $r/d$ of the progress. Let the step be
# $-\eta\, \mathcal{P} \nabla F$, with a new random projector whose mean is $\mathbb{E}[\mathcal{P}] = \frac{r}{d} I$.
# The lemma then holds with $\lVert \mathcal{P} \nabla F \rVert^2$, whose mean is
# $\frac{r}{d} \lVert \nabla F \rVert^2$.

# %%
import torch

from fedtheory import Layout, Quadratic, Spherical
from fedtheory.course import start, table

key = start()
d, steps = 20, 30
problem = Quadratic.random(1, d, key.fold("problem"), spectrum=(0.2, 1.0))
L, mu, f_star = problem.constants.L, problem.constants.mu, problem.constants.f_star
eta, layout = 1 / L, Layout.single(d)
rows = []
for r in (20, 10, 2):
    x = torch.zeros(d)
    gap, bound = problem.loss(x) - f_star, problem.loss(x) - f_star
    for t in range(steps):
        P = Spherical(r, "orthonormal").seed(layout, key.fold("P", r, t), x.dtype, x.device).value
        step = P.lift(P.project(problem.grad(x)))
        before, x = problem.loss(x), x - eta * step
        assert problem.loss(x) <= before - eta / 2 * float(step.square().sum()) + 1e-12  # the descent lemma
        bound *= 1 - eta * mu * r / d
    rows.append([r, gap, problem.loss(x) - f_star, bound])
    assert r < d or problem.loss(x) - f_star <= bound
table(["r", "gap at the start", f"gap after {steps} steps", "gap that PL allows (on average)"], rows)

# %% [markdown]
# **Try.** Give the problem a zero eigenvalue, `spectrum=(0.0, 1.0)`. The solution is not unique then, so the package
# gives no $F^\star$, and $\mu = 0$ up to rounding: set `f_star = 0.0` and your own `mu`. $F$ is not strongly convex.
# Is it still PL, and with which $\mu$?
