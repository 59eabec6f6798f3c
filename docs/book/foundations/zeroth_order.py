# %% [markdown]
# # Zeroth-order estimates
#
# Two losses estimate a gradient. Choose a direction $z$ and a small $\mu$, and measure the slope along
# $z$:
#
# $$g = \frac{f(x + \mu z) - f(x)}{\mu} \approx \langle \nabla f(x), z \rangle, \qquad \hat\nabla f = g\, z .$$
#
# **Nearly unbiased.** If $\mathbb{E}[z z^\top] = I$, then $\mathbb{E}[\langle \nabla f, z\rangle z] =
# \nabla f$. A positive $\mu$ adds an error: for an $L$-smooth $f$ the slope is off by at most
# $\frac{\mu L}{2} \lVert z \rVert^2$.
#
# **Noisy.** For normal $z$ in $\mathbb{R}^d$,
# $\mathbb{E}\, \lVert \langle \nabla f, z \rangle z \rVert^2 = (d + 2) \lVert \nabla f \rVert^2$: a single estimate
# is about $\sqrt{d}$ times too long. Averaging over $P$ directions divides the squared error by $P$:
# $\mathbb{E} \lVert \hat\nabla f - \nabla f \rVert^2 = \frac{d + 1}{P} \lVert \nabla f \rVert^2$.
#
# **Cheap to send.** If server and clients draw $z$ from a shared seed, only the number $g$ is sent, in any
# dimension. This is DeComFL. But the dimension comes back as a smaller step or more directions, unless the Hessian
# has a low effective rank (its trace over its largest eigenvalue).

# %%
import torch

from fedtheory import Quadratic
from fedtheory.course import start, table

key = start()
draws, mu = 4000, 1e-4
rows = []
for d, P in ((10, 1), (10, 10), (100, 1), (100, 10)):
    problem = Quadratic.random(1, d, key.fold("problem", d))
    x = torch.zeros(d)
    gradient, base = problem.grad(x), problem.loss(x)
    g, z = key.fold("z", d, P).generator(), torch.empty(0)
    errors, estimates = [], []
    for _ in range(draws // P):
        z = torch.randn(P, d, generator=g)
        full = problem.full(torch.zeros(P, dtype=torch.int64))  # the same client, at P points
        slopes = (problem.losses(x + mu * z, full) - base) / mu
        estimates.append((slopes[:, None] * z).mean(0))
        errors.append(float((estimates[-1] - gradient).square().sum()))
    size = float(gradient.square().sum())
    off = float((torch.stack(estimates).mean(0) - gradient).square().sum()) / size
    rows.append([d, P, sum(errors) / len(errors) / size, (d + 1) / P, off, (d + 1) / draws])
    assert 0.7 < rows[-1][2] / rows[-1][3] < 1.3
    assert off < 3 * (d + 1) / draws
table(["d", "P", "squared error / |∇f|²", "(d+1)/P", "of the mean of all", "its size by chance"], rows)

# %% [markdown]
# **Try.** Draw $z$ uniformly from the sphere of radius $\sqrt{d}$: `z *= d**0.5 / z.norm(dim=1, keepdim=True)`. Why
# does the factor $d + 1$ become $d - 1$?
