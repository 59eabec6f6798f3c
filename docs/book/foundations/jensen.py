# %% [markdown]
# # Jensen's inequality
#
# For a convex function $\varphi$ the value at the mean is at most the mean of the values: $\varphi(\mathbb{E} X) \le
# \mathbb{E}\, \varphi(X)$. Proofs about federated learning use it for the square, in three forms.
#
# **The square of a mean.** $\bigl\lVert \frac1n \sum_i a_i \bigr\rVert^2 \le \frac1n \sum_i \lVert a_i \rVert^2$, or
# $\bigl\lVert \sum_{i=1}^n a_i \bigr\rVert^2 \le n \sum_i \lVert a_i \rVert^2$. The gap is the spread of the $a_i$:
#
# $$\frac1n \sum_i \lVert a_i \rVert^2 = \Bigl\lVert \frac1n \sum_i a_i \Bigr\rVert^2
# + \frac1n \sum_i \lVert a_i - \bar a \rVert^2 .$$
#
# The bound is tight when all $a_i$ agree. It loses the factor $n$ when they are orthogonal and equally long.
#
# **Independence does better.** If the $a_i$ are independent with mean zero, the cross terms vanish:
# $\mathbb{E} \lVert \sum_i a_i \rVert^2 = \sum_i \mathbb{E} \lVert a_i \rVert^2$, without the factor $n$. In bounds
# on drift over $K$ local steps this gives $K^2$ instead of $K^3$. It needs fresh noise at each step.
#
# **Young's inequality.** For two vectors and any $\beta > 0$:
# $\lVert a + b \rVert^2 \le (1 + \beta) \lVert a \rVert^2 + (1 + \frac1\beta) \lVert b \rVert^2$. With $\beta = 1$ it
# gives the factor 2 of every drift lemma. With a small $\beta$ a contraction of $a$ remains one.

# %%
import torch

from fedtheory.course import start, table

key = start()
n, d = 16, 40
g = key.generator()
direction = torch.randn(d, generator=g)
kinds = {
    "all equal": direction.expand(n, d),
    "independent, mean zero": torch.randn(n, d, generator=g),
    "orthogonal": torch.eye(d)[:n],
    "half the opposite": torch.cat([direction.expand(n // 2, d), -direction.expand(n // 2, d)]),
}
rows = []
for name, a in kinds.items():
    left, right = float(a.sum(0).square().sum()), float(n * a.square().sum())
    spread = float((a - a.mean(0)).square().sum() * n)
    rows.append([name, left, right, left / right, 1 / n, spread])
    assert left <= right * (1 + 1e-12)
    assert abs(left + spread - right) <= 1e-9 * right
table(["vectors", "square of the sum", "n times squares", "ratio", "1/n", "gap: the spread"], rows)

# %% [markdown]
# **Try.** Which $\beta$ makes the right side of Young's inequality smallest for given $a$ and $b$? When is it an
# equality?
