# %% [markdown]
# # Control variates
#
# A control variate makes an estimate less noisy and keeps its mean. You want the mean of a random $X$. Take a random
# $C$ that is close to $X$ and whose mean you know. Then $X - C + \mathbb{E} C$ has the mean of $X$ and the variance
# of $X - C$:
#
# $$\operatorname{Var}(X - C) = \operatorname{Var} X + \operatorname{Var} C - 2 \operatorname{Cov}(X, C) .$$
#
# It helps if $\operatorname{Cov}(X, C) > \frac12 \operatorname{Var} C$. It harms if $C$ is independent of $X$.
#
# **In federated learning** the randomness is *which client takes part*. Client $i$ has the gradient $\nabla F_i(x)$,
# but should follow the mean gradient $\nabla F(x)$. It keeps some $c_i$ near $\nabla F_i$, receives the mean $c$ of
# all $c_i$, and steps along
#
# $$\nabla F_i(y) - c_i + c .$$
#
# The mean over the clients is still $\nabla F$. What drives clients apart is the spread between them, which is now
# the spread of $\nabla F_i - c_i$. With $c_i = \nabla F_i(x)$ it is zero at $y = x$. SCAFFOLD keeps $c_i$ from the
# client's last round; FedSub and SSF keep it in or through a subspace. The risk is age: an old $c_i$ no longer
# follows $\nabla F_i$.

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
# The mean is right whatever $c_i$ is. Only the spread changes, and a control variate that is far off is worse than
# none.
#
# **Try.** Multiply every $c_i$ by $\theta$ between 0 and 1. Which $\theta$ is best for gradients of a point 10 away?
