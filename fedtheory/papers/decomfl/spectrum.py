"""DeComFL, Figure 5 left: the density of a Hessian's eigenvalues by stochastic Lanczos quadrature.

Ghorbani, Krishnan, Xiao 2019, arXiv:1901.10159, Sec. 2; Golub and Welsch 1969.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from matplotlib.figure import Figure
from torch.nn import functional

from fedtheory.algorithms.fedavg import FedAvg
from fedtheory.core.key import Key
from fedtheory.papers import style
from fedtheory.papers.decomfl.curves import ALL, RAN, order
from fedtheory.papers.store import Item, Result, Spec, interval, itself
from fedtheory.problems.images import ImageClassification
from fedtheory.running.records import Row, Table
from fedtheory.running.simulate import run

Product = Callable[[torch.Tensor], torch.Tensor]


BATCH, KEPT = 256, 2048  # images that are normalised together, and whose graphs are kept


def hessian(problem: ImageClassification, x: torch.Tensor, index: torch.Tensor) -> Product:
    """v -> H v for the mean loss over the images `index` at the weights x: the gradient, differentiated once more.

    In batches of 256: batch normalisation uses each batch's own moments, so that this is the Hessian of the mean of the
    batches' losses. Up to 2,048 images keep their graphs; of more, one batch at a time is in memory.
    """
    parts = index.split(BATCH)

    def gradient(some: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        leaf = x.detach().clone().requires_grad_()
        logits = problem.network.logits(leaf[None], problem.images[some][None])[0]
        loss = functional.cross_entropy(logits, problem.labels[some], reduction="sum") / len(index)
        return torch.autograd.grad(loss, leaf, create_graph=True)[0], leaf

    kept = [gradient(some) for some in parts] if len(index) <= KEPT else None

    def product(v: torch.Tensor) -> torch.Tensor:
        sum_ = torch.zeros_like(x)
        for g, leaf in kept or map(gradient, parts):
            sum_ += torch.autograd.grad(g, leaf, v, retain_graph=kept is not None)[0]
        return sum_

    return product


def lanczos(product: Product, start: torch.Tensor, steps: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Nodes and weights of Gauss quadrature for the measure sum_i (u_i^T start)^2 delta(lambda_i) / ||start||^2.

    `steps` products give at most as many nodes, fewer where the Krylov space is exhausted. Every new vector is made
    orthogonal to all former ones, twice, in float64: else rounding brings found eigenvalues back as copies.
    """
    basis = (start.double() / start.double().norm())[None]
    diagonal, side = [], []
    for _ in range(steps):
        w = product(basis[-1].to(start)).double()
        diagonal.append(basis[-1] @ w)
        scale = w.norm()
        for _ in range(2):
            w = w - (basis @ w) @ basis
        if w.norm() <= 1e-10 * scale:
            break
        side.append(w.norm())
        basis = torch.cat([basis, w[None] / side[-1]])
    side = side[: len(diagonal) - 1]
    T = torch.diag(torch.stack(diagonal))
    if side:
        T = T + torch.diag(torch.stack(side), 1) + torch.diag(torch.stack(side), -1)
    nodes, vectors = torch.linalg.eigh(T)
    return nodes, vectors[0] ** 2


# Data, network, options; training steps; images of the Hessian; Lanczos steps; probes per network.
SCALES: dict[str, tuple[dict[str, Any], int, int, int, int]] = {
    "quick": ({"data": "digits", "network": "mlp", "side": 4}, 200, 512, 40, 2),
    "medium": ({"data": "cifar10", "network": "resnet8", "partial": True, "side": 16, "tested": 100}, 200, 5120, 32, 1),
    "paper": ({"data": "cifar10", "network": "resnet20"}, 5000, 10_240, 90, 10),
}
EXACT = 2000  # parameters up to which all eigenvalues are computed as well
NEAR = 0.01  # of the largest eigenvalue: this counts as zero


def measure(scale: str, seeds: int, device: str) -> Result:
    """One trained network per seed; random probes share its quadrature."""
    options, length, images, steps, probes = SCALES[scale]
    table: Table = []
    shares, ranks, exact, d = [], [], [], 0
    read: dict[str, Any] = {}
    for seed in range(seeds):
        key = Key(seed)
        problem = ImageClassification.load(
            key=key.fold("data"), clients=1, batch=64, dtype=torch.float32, device=device, **options
        )
        d = problem.d
        read |= problem.origin
        x = run(FedAvg(0.1, 50), problem, length // 50, seed=seed, every=length, metrics=()).x
        index = torch.randperm(len(problem.images), generator=key.fold("hessian").generator())[:images]
        product = hessian(problem, x, index.to(problem.device))
        nodes, weights = torch.empty(0), torch.empty(0)
        for probe in range(probes):
            v = torch.randn(d, generator=key.fold("probe", probe).generator()).to(x)
            found = lanczos(product, v, steps)
            nodes, weights = torch.cat([nodes, found[0].cpu()]), torch.cat([weights, found[1].cpu() / probes])
        trained = Spec(
            FedAvg(0.1, 50), "images", tuple({"clients": 1, "batch": 64, **options}.items()), length // 50, seed
        )
        table += rows("Lanczos", seed, nodes, weights, trained.ran())
        shares.append(near_zero(nodes, weights))
        ranks.append(float((weights * nodes.abs()).sum() / nodes.abs().max()))
        if d <= EXACT:
            H = torch.stack([product(e) for e in torch.eye(d, dtype=x.dtype, device=x.device)]).double().cpu()
            values = torch.linalg.eigvalsh((H + H.T) / 2)
            even = torch.full_like(values, 1 / d)
            table += rows("all eigenvalues", seed, values, even, trained.ran())
            exact.append(near_zero(values, even))
    cell = order(
        f"share of eigenvalues below {NEAR:.0%} of the largest in size (above)",
        shares,
        "the majority is 0",
        RAN[scale],
        0.5,
        tuning="ours",
    )
    mean, low, high = interval(ranks)
    notes = [
        f"Effective rank sum |lambda| / max |lambda| over d = {d:,}: {mean:.4f} [{low:.4f}, {high:.4f}]",
        f"{length} steps of SGD at 0.1, batch 64; Hessian of the mean loss over {images:,} training images (a network "
        f"with batch normalisation: in batches of {BATCH}, each by its moments), {steps} Lanczos steps, {probes} "
        "probe(s) per network.",
        f"The Gauss-Newton part of this Hessian has a rank of {images:,} (classes - 1) at most, whatever the network. "
        f"Its other directions, {max(0.0, 1 - 9 * images / d):.0%} of all, lie near 0 by the setting alone.",
        "The share is at most 1; the interval over seeds does not know that.",
    ]
    if exact:
        notes.append(
            f"All eigenvalues computed: share {interval(exact)[0]:.3f}, by quadrature {interval(shares)[0]:.3f}"
        )
    if options.get("partial"):
        notes.append("CIFAR-10: 20,000 of the 50,000 training images. The paper's network and training are not named.")
    return Result(table, [cell], {"scale": repr(SCALES[scale]), "d": d}, notes, data=read)


def near_zero(nodes: torch.Tensor, weights: torch.Tensor) -> float:
    return float(weights[nodes.abs() <= NEAR * nodes.abs().max()].sum())


def rows(kind: str, seed: int, nodes: torch.Tensor, weights: torch.Tensor, of: Row) -> Table:
    pairs = zip(nodes.tolist(), weights.tolist())
    return [{"kind": kind, "seed": seed, "eigenvalue": node, "weight": weight, **of} for node, weight in pairs]


@style.styled
def draw(table: Table) -> Figure:
    """Density over all seeds, each eigenvalue widened to a normal of 1% of the range."""
    figure, (axes,) = style.new_figure()
    values = np.array([row["eigenvalue"] for row in table])
    width = NEAR * (values.max() - values.min())
    at = np.linspace(values.min() - 4 * width, values.max() + 4 * width, 800)
    for kind, how in style.looks(row["kind"] for row in table).items():
        some = [row for row in table if row["kind"] == kind]
        n = len({row["seed"] for row in some})
        nodes, weights = (np.array([row[part] for row in some]) for part in ("eigenvalue", "weight"))
        bell = np.exp(-((at[:, None] - nodes) ** 2) / (2 * width**2)) / (width * np.sqrt(2 * np.pi))
        axes.plot(at, bell @ weights / n, **how.line, label=f"{kind} (n={n})")
    axes.set(yscale="log", ylim=(1e-6, None), xlabel="eigenvalue of the Hessian", ylabel="density")
    style.caption(figure, table, f"each eigenvalue is widened to a normal of deviation {width:.2g}")
    style.legend_above(figure, 2)
    return figure


ITEMS = [Item("decomfl/fig5a", "Eigenvalues of the Hessian", itself(measure, on_device=True), draw, ALL, early=True)]
