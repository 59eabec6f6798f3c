"""Project 1, a solution: sums of Kronecker products as a decomposition for FedMUD.

A matrix W (m x n) with m = m1 m2 and n = n1 n2 is approximated by sum_t U_t (x) V_t, with U_t (m1 x n1) and V_t
(m2 x n2). After Van Loan and Pitsianis this is low rank T of a rearranged W: so the class permutes entries and uses the
package's `Outer`. Nothing is cut off, and the split (m, 1), (1, n) gives back FedMUD's low rank.
"""

import math
from dataclasses import dataclass, replace

import torch

from fedtheory import FedAvg, FedMUD, ImageClassification, Key, Layer, Layout, MatrixRegression, run
from fedtheory.maps.decomposition import Decomposition, Decoupled, Frozen, Kronecker, LowRank, Outer, Product
from fedtheory.papers.store import interval

KEY, SEEDS, ROUNDS, RATIO = Key(1), 5, 40, 1 / 8
SCALES = (0.5, 1.0, 2.0, 4.0, 8.0)  # of a
torch.set_default_dtype(torch.float64)


class KroneckerSum(Outer):
    """sum_t U_t (x) V_t: entry (i m2 + k, j n2 + l) of W is entry ((i, j), (k, l)) of an outer product of rank T."""

    def __init__(self, m1: int, n1: int, m2: int, n2: int, T: int) -> None:
        super().__init__(m1 * n1, m2 * n2, T)
        self.split = (m1, n1, m2, n2)

    def product(self, U: torch.Tensor, V: torch.Tensor) -> torch.Tensor:
        return super().product(U, V).unflatten(-1, self.split).transpose(-3, -2).flatten(-4)

    def _W(self, W: torch.Tensor) -> torch.Tensor:
        m1, n1, m2, n2 = self.split
        return super()._W(W.unflatten(-1, (m1, m2, n1, n2)).transpose(-3, -2).flatten(-4))


@dataclass(frozen=True)
class KroneckerSums(Decomposition):
    """T = ceil(ratio m n / (m1 n1 + m2 n2)) terms; each side is split where its two parts are nearest to each other.

    Fields:
        thin: the split (m, 1), (1, n), which is low rank.
    """

    thin: bool = False

    def part(self, m: int, n: int) -> Product | Decoupled | Frozen:
        (m1, m2), (n1, n2) = ((m, 1), (1, n)) if self.thin else (nearest(m), nearest(n)[::-1])
        trained = m2 * n2 if self.form == "freeze" else m1 * n1 + m2 * n2
        of = KroneckerSum(m1, n1, m2, n2, max(1, math.ceil(self.ratio * m * n / trained)))
        return {"product": Product, "aad": Decoupled, "freeze": Frozen}[self.form](of, self.random)


def nearest(size: int) -> tuple[int, int]:
    """The two factors of a number that are nearest to each other, the larger first."""
    small = max(k for k in range(1, math.isqrt(size) + 1) if size % k == 0)
    return size // small, small


def laws() -> None:
    """What every decomposition of FedMUD must satisfy, and what this one must become at its ends."""
    layout, g = Layout((Layer("one", 12, 10), Layer("two", 9, 4))), torch.Generator().manual_seed(0)
    draw = lambda *shape: torch.randn(*shape, generator=g)
    for form in ("product", "aad", "freeze"):
        D = KroneckerSums(0.5, form=form, layers="all").draw(layout, KEY, torch.float64)
        u, slope = draw(3, D.size).requires_grad_(), draw(3, layout.size)
        (wanted,) = torch.autograd.grad((D.update(u) * slope).sum(), u)
        assert torch.allclose(D.pullback(u.detach(), slope), wanted), "the pullback is the gradient"
        assert float(D.update(D.start).abs().max()) == 0, "a reset does not move the model"
        u = u.detach()
        linear = torch.allclose(D.update(u).mean(0), D.update(u.mean(0)))
        assert linear == (form != "product"), "averaging commutes where the update is linear"
    U, V = draw(3, 2), draw(4, 5)
    one = KroneckerSum(3, 2, 4, 5, 1).product(U.flatten(), V.flatten()).view(12, 10)
    assert torch.equal(one, torch.kron(U, V)), "one term is a Kronecker product"
    whole = KroneckerSum(3, 2, 4, 5, 6)
    W = draw(120)
    factors = whole.truncated(W, 0.5).split(whole.sizes)
    assert torch.allclose(whole.product(*factors), W), "with all terms every matrix is reached"
    problem = MatrixRegression.ssf(0.5, KEY, n=4, rows=30, d=12, m=8, batch=None)
    thin, low = KroneckerSums(0.3, 0.5, "aad", layers="all", thin=True), LowRank(0.3, 0.5, "aad", layers="all")
    ends = [run(FedMUD(0.05, 3, how), problem, 10).x for how in (thin, low)]
    assert torch.allclose(*ends, atol=1e-12), "the thin split is FedMUD's low rank"
    print("laws: pullback, reset, averaging, one term, all terms, thin split: all hold")


class First:
    """Only the first matrix is decomposed, so that three kinds send exactly as many numbers."""

    def compressed(self, layout: Layout) -> list[int]:
        return super().compressed(layout)[:1]


@dataclass(frozen=True)
class Sums(First, KroneckerSums): ...


@dataclass(frozen=True)
class Low(First, LowRank): ...


@dataclass(frozen=True)
class Blocks(First, Kronecker): ...


KINDS = {"low rank": Low, "blocks": Blocks, "sums": Sums}


def played(algorithm: FedMUD | FedAvg, seed: int) -> tuple[float, float, int]:
    """Training loss, test accuracy in %, bytes up; data, partition, start and sampling follow from the seed."""
    options = {"clients": 10, "partition": "dirichlet", "alpha": 0.3, "batch": 32, "dtype": torch.float64}
    data = ImageClassification.load("digits", "mlp", KEY.fold("data", seed), **options)
    history = run(algorithm, data, ROUNDS, sampled=5, seed=seed, every=ROUNDS, metrics=("loss", "accuracy"))
    return history["loss"][-1], 100 * history["accuracy"][-1], history["up_bytes"][-1]


def main() -> None:
    laws()
    kinds = {name: kind(RATIO, layers="matrices") for name, kind in KINDS.items()}
    chosen = {}
    for name, how in kinds.items():  # the same values of a for each, on a seed that is not used again
        tried = {a: played(FedMUD(0.1, 10, replace(how, a=a, form="aad")), 99)[0] for a in SCALES}
        chosen[name] = min(tried, key=lambda a: math.inf if math.isnan(tried[a]) else tried[a])
        losses = ", ".join(f"{a:g}: {loss:.3g}" for a, loss in tried.items())
        print(f"{name}: training loss by a: {losses}; best {chosen[name]:g}")
        assert chosen[name] not in (SCALES[0], SCALES[-1]), "the best lies inside of what was tried"
    found = {
        name: [played(FedMUD(0.1, 10, replace(how, a=chosen[name], form="aad")), seed) for seed in range(SEEDS)]
        for name, how in kinds.items()
    }
    sent = {run_[2] for runs in found.values() for run_ in runs}
    assert len(sent) == 1, "equal bytes, counted on the messages"
    print(f"every run sends {sent.pop():,} bytes up; {SEEDS} seeds")
    for name, runs in found.items():
        mean, low, high = interval([accuracy for _, accuracy, _ in runs])
        print(f"{name}: {mean:.1f}% [{low:.1f}, {high:.1f}]")
    for other in ("low rank", "blocks"):
        differences = [a[1] - b[1] for a, b in zip(found["sums"], found[other])]
        mean, low, high = interval(differences)
        said = "ahead" if low > 0 else "behind" if high < 0 else "in no order"
        print(f"sums minus {other}, paired by seed: {mean:+.1f} [{low:+.1f}, {high:+.1f}] points: {said}")


if __name__ == "__main__":
    main()
