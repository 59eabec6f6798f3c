# %% [markdown]
# # Control variates
#
# You want the mean of a random $X$ and know another random $C$, close to $X$, with a mean that you know. Then
# $X - C + \mathbb{E} C$ has the mean of $X$, and the variance of $X - C$: small, if $C$ follows $X$.
#
# $$\operatorname{Var}(X - C) = \operatorname{Var} X + \operatorname{Var} C - 2 \operatorname{Cov}(X, C) .$$
#
# It pays as soon as $\operatorname{Cov}(X, C) > \frac12 \operatorname{Var} C$, and it harms if $C$ has nothing to do
# with $X$.
#
# **In federated learning** the random thing is *which client asks*. Client $i$ has the gradient $\nabla F_i(x)$; what
# it should follow is the mean $\nabla F(x)$. If it keeps some $c_i$ near $\nabla F_i$ and is told the mean $c$ of
# all, it walks along
#
# $$\nabla F_i(y) - c_i + c .$$
#
# The mean over the clients is $\nabla F$, as it was. The spread between clients, which is what drives them apart,
# becomes that of $\nabla F_i - c_i$: with $c_i = \nabla F_i(x)$ nothing is left of it at $y = x$. SCAFFOLD keeps
# $c_i$ from the client's last round; FedSub and SSF keep it in or through a subspace. What can go wrong is age: a
# $c_i$ from long ago is a $C$ that no longer follows $X$.

# %%
import torch

from fedtheory import Quadratic
from fedtheory.course import start, table

key = start()
n, d = 10, 5
problem = Quadratic.random(n, d, key.fold("problem"))
x = torch.zeros(d)
at = lambda point: problem.grads(point.expand(n, d), problem.full(problem.clients))  # all clients' gradients
spread = lambda g: float((g - g.mean(0)).square().sum(1).mean())
mean = at(x).mean(0)
kinds = {"none": torch.zeros(n, d), "of this point": at(x)}
for distance in (0.1, 1.0, 10.0):
    old = x + distance * torch.nn.functional.normalize(torch.randn(d, generator=key.fold("old").generator()), dim=0)
    kinds[f"of a point {distance:g} away"] = at(old)
kinds["another client's"] = at(x).roll(1, 0)
rows = []
for name, c_i in kinds.items():
    told = at(x) - c_i + c_i.mean(0)
    rows.append([name, float((told.mean(0) - mean).norm()), spread(told)])
    assert float((told.mean(0) - mean).norm()) <= 1e-12
assert rows[1][-1] <= 1e-20
assert rows[2][-1] < rows[3][-1] < rows[0][-1] < rows[5][-1]
table(["control variates", "error of the mean", "spread between clients"], rows)

# %% [markdown]
# The mean is right whatever $c_i$ is; only the spread changes, and a wrong control variate is worse than none.
#
# **Try.** Multiply every $c_i$ by $\theta$ between 0 and 1. Which $\theta$ is best for the gradients of the point
# that is 10 away?
