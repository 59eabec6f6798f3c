# %% [markdown]
# # A random subspace
#
# An $r$-dimensional subspace of $\mathbb{R}^d$ that prefers no direction has the *Haar* law: the only law that no
# rotation changes. To draw one, fill a $d \times r$ matrix with independent normal numbers and orthonormalise its
# columns (QR). Let $P \in \mathbb{R}^{r \times d}$ have these columns as rows. Then $P P^\top = I_r$, and
# $\mathcal{P} = P^\top P$ is the orthogonal projector.
#
# **First moment.** $\mathbb{E}[\mathcal{P}] = \frac{r}{d} I$.
#
# *Why.* The mean commutes with every rotation, so it is a multiple of $I$. Its trace is
# $\mathbb{E}\operatorname{tr} \mathcal{P} = r$. So a vector keeps on average the share $r/d$ of its squared length:
# $\mathbb{E}\lVert \mathcal{P} x \rVert^2 = \mathbb{E}\, x^\top \mathcal{P} x = \frac{r}{d} \lVert x \rVert^2$.
#
# **Spread.** For large $r$ every draw keeps nearly the same share. For a unit vector $x$, the kept share
# $\lVert \mathcal{P} x \rVert^2$ is the sum of $r$ of the $d$ squares of a uniform unit vector. It has a Beta law
# with parameters $r/2$ and $(d-r)/2$, and so the variance $\frac{2 r (d - r)}{d^2 (d + 2)}$.
#
# **Two scales.** With $P P^\top = I$ the map $P^\top P$ shortens on average; SSF uses this scale. With
# $P P^\top = \frac{d}{r} I$ it is unbiased, $\mathbb{E}[P^\top P] = I$; FedSub uses this one. As an estimate of $x$
# its squared error is $\mathbb{E}\lVert P^\top P x - x \rVert^2 = (\frac{d}{r} - 1) \lVert x \rVert^2$. For $r < d/2$
# that is more than the error of guessing $0$.

# %%
import torch

from fedtheory import Layout, Spherical
from fedtheory.course import start, table

key = start()
d, draws = 30, 2000
x = torch.ones(d) / d**0.5
layout = Layout.single(d)
rows = []
for r in (1, 3, 10, 29):
    bases = [Spherical(r, "orthonormal").seed(layout, key.fold(r, i), x.dtype, x.device).value for i in range(draws)]
    kept = torch.stack([P.project(x).square().sum() for P in bases])
    guess = torch.stack([(d / r * P.lift(P.project(x)) - x).square().sum() for P in bases])
    variance = 2 * r * (d - r) / (d**2 * (d + 2))
    rows.append([r, float(kept.mean()), r / d, float(kept.var()), variance, float(guess.mean()), d / r - 1])
    assert abs(float(kept.mean()) - r / d) < 5 * (variance / draws) ** 0.5
    assert abs(float(guess.mean()) - (d / r - 1)) < 0.1 * (d / r - 1)
table(["r", "kept", "r/d", "its variance", "formula", "error, other scale", "d/r - 1"], rows)

# %% [markdown]
# **Try.** Replace `Spherical` by `Coordinate`, which draws rows of the unit matrix. The mean kept share stays. Which
# column changes for this $x$, and for which $x$ does it change most?
