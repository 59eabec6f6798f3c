# %% [markdown]
# # The singular value decomposition
#
# Every matrix $A \in \mathbb{R}^{m \times n}$ is a sum of rank-one pieces,
#
# $$A = \sum_{k} \sigma_k\, u_k v_k^\top, \qquad \sigma_1 \ge \sigma_2 \ge \dots \ge 0,$$
#
# with orthonormal $u_k$ and orthonormal $v_k$. $A$ takes the direction $v_k$ to $u_k$ and stretches it by the
# *singular value* $\sigma_k$. The squared Frobenius norm is $\lVert A \rVert_F^2 = \sum_k \sigma_k^2$: each piece
# contributes $\sigma_k^2$.
#
# **Eckart and Young.** Among all matrices of rank at most $r$, the sum of the first $r$ pieces is closest to $A$. Its
# squared error is the sum of the other $\sigma_k^2$:
#
# $$\min_{\operatorname{rank} B \le r} \lVert A - B \rVert_F^2 = \sum_{k > r} \sigma_k^2 .$$
#
# *Why.* Let $B$ have rank $r$, and let $\Pi$ project on the span of its columns. Then
# $\lVert A - B\rVert_F^2 \ge \lVert A\rVert_F^2 - \lVert \Pi A\rVert_F^2$, and
# $\lVert \Pi A\rVert_F^2 = \sum_k \sigma_k^2 \lVert \Pi u_k \rVert^2$. The numbers $\lVert \Pi u_k \rVert^2$ lie
# between 0 and 1 and sum to at most $r$. The sum is largest when the first $r$ of them are 1.
#
# **Where the book uses it.** FLSS's basis is the first $R$ left singular vectors of a trajectory, and its bound
# contains the share that they miss. FedHM and FlexLoRA truncate to low rank; FedMUD avoids truncating.
#
# The cell compares the truncation with the best of many random attempts of the same rank, and with the formula.

# %%
import torch

from fedtheory.course import start, table

key = start()
g = key.generator()
A = torch.randn(12, 8, generator=g)
U, s, Vt = torch.linalg.svd(A, full_matrices=False)
rows = []
for r in (1, 2, 4, 7):
    truncated = (U[:, :r] * s[:r]) @ Vt[:r]
    missed = float((A - truncated).square().sum())
    frames = torch.linalg.qr(torch.randn(500, 12, r, generator=g))[0]  # the best B with given columns is the projection
    others = float((A - frames @ (frames.mT @ A)).square().sum((1, 2)).min())
    rows.append([r, missed, float(s[r:].square().sum()), others])
    assert torch.isclose(torch.tensor(missed), s[r:].square().sum())
    assert others > missed
table(["rank", "missed by the first pieces", "formula", "missed by the best of 500 random frames"], rows)

# %% [markdown]
# **Try.** Give $A$ singular values that fall fast, `A = U @ torch.diag(0.5 ** torch.arange(8.0)) @ Vt`. Which rank
# now misses less than 1% of the squared norm?
