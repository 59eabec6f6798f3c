"""FedMUD: decompositions against matrices written out, the paper's equations as laws, and what crosses."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from cases import FACTORED, TWO_LAYERS, last, quadratic, regression, relative, rounds, start
from hypothesis import given, settings
from hypothesis import strategies as st

from fedtheory import FedAvg, FedMUD, Key, Layer, Layout, Quadratic, play_round, run
from fedtheory.core.loop import sample_clients
from fedtheory.core.message import Cost, Known, cost
from fedtheory.maps.decomposition import Full, Hadamard, Kronecker, LowRank
from fedtheory.problems.data import load as read
from fedtheory.problems.images import ImageClassification
from fedtheory.problems.models.networks import network
from fedtheory.problems.partitions import dirichlet

DOUBLE = torch.float64
NET = Layout((Layer("0.conv", 6, 9), Layer("1.conv", 6, 12), Layer("2.bias", 4, 1), Layer("3.linear", 3, 5)))
KINDS = {
    "low rank": LowRank(0.5, layers="all"),
    "low rank, aad": LowRank(0.5, form="aad", layers="matrices"),
    "low rank, frozen": LowRank(0.5, form="freeze", layers="all"),
    "adapters": LowRank(0.5, form="lora", layers="all"),
    "adapters, kernel": LowRank(0.5, form="lora", layers="all", kernel=3),
    "low rank, kernel": LowRank(0.5, layers="all", kernel=3),
    "blocks": Kronecker(0.9, layers="all"),
    "blocks, aad": Kronecker(0.9, form="aad", layers="matrices"),
    "blocks, frozen": Kronecker(0.5, form="freeze", layers="all"),
    "square": Kronecker(0.9, blocks="square", layers="all"),
    "square, aad, kernel": Kronecker(0.9, blocks="square", form="aad", layers="all", kernel=3),
    "Hadamard": Hadamard(0.9, layers="all"),
    "Hadamard, tensor": Hadamard(0.9, layers="all", kernel=3, tensor=True),
    "inner": LowRank(0.5),
    "full": Full(),
}


def normal(*shape, seed=0):
    return torch.randn(*shape, generator=Key(seed).fold("normal").generator(), dtype=DOUBLE)


def draw(kind, layout=NET, seed=0):
    return kind.draw(layout, Key(seed), DOUBLE)


# Decompositions


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("lead", [(), (3,)])
def test_the_pullback_is_the_gradient(name, lead):
    """<g, update(u)> differentiated by autograd, for one client and for three stacked."""
    D = draw(KINDS[name])
    u, g = normal(*lead, D.size).requires_grad_(), normal(*lead, NET.size, seed=1)
    assert D.update(u).shape == g.shape
    (wanted,) = torch.autograd.grad((D.update(u) * g).sum(), u)
    torch.testing.assert_close(D.pullback(u.detach(), g), wanted, rtol=1e-12, atol=1e-12)


def written_out(kind, m, n, u, fixed):
    """The update of one (m x n) matrix, by loops and np.kron."""

    def by_rank(U, V):
        return U.reshape(m, -1) @ V.reshape(n, -1).T

    def by_blocks(U, V):
        *_, p, q, z = blocks_of(kind, m, n)
        U, V = U.reshape(p, q, z, z), V.reshape(p, q, z, z)
        large = np.block([[np.kron(U[i, j], V[i, j]) for j in range(q)] for i in range(p)])
        return large.flatten()[: m * n].reshape(m, n)

    def split(v, *parts):
        return np.split(v, np.cumsum(parts)[:-1])

    if isinstance(kind, Hadamard) and kind.tensor and m % 3 == n % 3 == 0:
        c_out, c_in = m // 3, n // 3
        R = next(R for R in range(1, 99) if len(u) == 2 * R * (c_out + c_in + 9 * R))
        X1, Y1, T1, X2, Y2, T2 = split(u, *(c_out * R, c_in * R, 9 * R * R) * 2)

        def tucker(X, Y, T):
            X, Y, T = X.reshape(c_out, R), Y.reshape(c_in, R), T.reshape(R, R, 3, 3)
            return sum(np.multiply.outer(np.outer(X[:, r], Y[:, s]), T[r, s]) for r in range(R) for s in range(R))

        return (tucker(X1, Y1, T1) * tucker(X2, Y2, T2)).transpose(0, 2, 1, 3).reshape(m, n)
    if isinstance(kind, Hadamard):
        r = len(u) // (2 * (m + n))
        X1, Y1, X2, Y2 = split(u, m * r, n * r, m * r, n * r)
        return by_rank(X1, Y1) * by_rank(X2, Y2)
    product = by_rank if isinstance(kind, LowRank) else by_blocks
    share = m / (m + n) if isinstance(kind, LowRank) else 0.5
    if kind.form == "freeze":
        return product(fixed, u)
    if kind.form == "lora":
        A, B = split(u, len(u) * n // (m + n), len(u) * m // (m + n))
        return B.reshape(m, -1) @ A.reshape(n, -1).T
    left = round(len(u) * share)
    U, V = split(u, left, len(u) - left)
    if kind.form == "product":
        return product(U, V)
    U_, V_ = split(fixed, left, len(u) - left)
    return product(U, V_) + product(U_, V)


def blocks_of(kind, m, n):
    """(p, q, z) by the formulas of Sec. 3.2 and the public code."""
    ratio = kind.ratio * (2 if kind.form == "freeze" else 1)
    p = q = int(np.ceil(ratio * (m * n) ** 0.5 / 2))
    if kind.blocks == "stacked":
        p, q = int(np.ceil(ratio**2 * m * n / 4)), 1
    return p, q, int(np.ceil((m * n / (p * q)) ** 0.25 - 1e-9))


@pytest.mark.parametrize("name", [name for name in KINDS if name != "full"])
def test_updates_written_out(name):
    """Every layer against matrices in NumPy; a layer that stays whole is its piece of u."""
    kind = KINDS[name]
    D = draw(kind)
    u = normal(D.size)
    at = at_fixed = 0
    for i, (layer, part, where) in enumerate(zip(NET.layers, D.parts, NET.slices)):
        mine, fixed = u[at : at + part.size].numpy(), D.fixed[at_fixed : at_fixed + part.fixed].numpy()
        at, at_fixed = at + part.size, at_fixed + part.fixed
        wanted, (m, n) = mine, (layer.cols, layer.rows)
        if i in kind.compressed(NET):
            wanted = written_out(kind, m, n, mine, fixed)
            if kind.kernel and "conv" in layer.name:  # rows (c_out, k), columns (c_in, k) -> (c_out, c_in, k, k)
                wanted = wanted.reshape(m // 3, 3, n // 3, 3).transpose(0, 2, 1, 3)
        np.testing.assert_allclose(D.update(u)[where].numpy(), np.ravel(wanted), rtol=1e-12, atol=1e-12)
    assert (at, at_fixed) == (D.size, len(D.fixed))


@pytest.mark.parametrize("name", KINDS)
def test_an_update_starts_at_zero(name):
    """Unless the start is random; random values fill (-a, a), and the same key gives the same."""
    D = draw(KINDS[name])
    assert not D.update(D.start).any()
    values = torch.cat([D.start, D.fixed])
    assert float(values.abs().max(dim=0)[0]) < 0.1
    again, other = draw(KINDS[name]), draw(KINDS[name], seed=1)
    assert torch.equal(again.start, D.start)
    assert torch.equal(again.fixed, D.fixed)
    if name != "full":
        assert not torch.equal(torch.cat([other.start, other.fixed]), values)
        moved = draw(replace(KINDS[name], random=True, a=2.0))
        assert 1.5 < float(moved.start.abs().max()) < 2
        assert moved.update(moved.start).any()


def test_the_ratio_decides_rank_and_number_of_blocks():
    """CNN of FedMUD, second convolution: 64 x 32 channels, 3 x 3, so m = 192, n = 96, m n / 32 = 576."""
    m, n = 192, 96
    low, frozen = LowRank(1 / 32).part(m, n), LowRank(1 / 32, form="freeze").part(m, n)
    assert (low.of.r, low.size) == (2, 2 * (m + n)), "r = ceil(576 / 288) = 2"
    assert (frozen.of.r, frozen.size, frozen.fixed) == (6, 6 * n, 6 * m), "r = ceil(192 / 32) = 6"
    stacked, square = Kronecker(1 / 32).part(m, n), Kronecker(1 / 32, blocks="square").part(m, n)
    assert (stacked.of.grid, stacked.of.z, stacked.size) == ((5, 1), 8, 2 * 5 * 64), "B = ceil(18432 / 4096) = 5"
    assert (square.of.grid, square.of.z, square.size) == ((3, 3), 7, 2 * 9 * 49), "k = ceil(135.8 / 64) = 3"
    assert Kronecker(1 / 32, form="freeze").part(m, n).of.grid == (18, 1), "B = ceil(18432 / 1024)"
    assert Hadamard(1 / 32).part(m, n).of.r == 1
    tensor = Hadamard(1 / 32, tensor=True, kernel=3).convolution(64, 32, 3)
    assert tensor.size == 2 * 3 * (64 + 32 + 3 * 9), "R = 3, for R = 2 trains 456 of 576"
    assert LowRank(0.25).part(10, 30).of.r == 2, "r = ceil(75 / 40)"
    assert LowRank(1e-9).part(m, n).of.r == 1, "never less than one"


@given(st.integers(1, 200), st.integers(1, 200), st.floats(0.01, 1.0), st.sampled_from(["stacked", "square"]))
def test_blocks_are_as_small_as_covers_the_matrix(m, n, ratio, blocks):
    of = Kronecker(ratio, blocks=blocks).part(m, n).of
    assert of.grid[0] * of.grid[1] * (of.z - 1) ** 4 < m * n <= of.grid[0] * of.grid[1] * of.z**4


def test_which_layers_are_decomposed():
    """The first and the last matrix stay whole, as do scales, shifts and biases."""
    layout = network("fedmud-cnn4", (3, 32, 32), 10).layout
    chosen = LowRank(1 / 32).compressed(layout)
    assert [layout.layers[i].name.split(".")[1] for i in chosen] == ["conv"] * 3
    assert len(LowRank(1 / 32, layers="matrices").compressed(layout)) == 5
    assert LowRank(1 / 32, layers="all").compressed(layout) == list(range(len(layout.layers)))


def test_the_ratio_of_the_whole_network():
    """Open point 5: lowered in steps of 0.001 until trained over all entries is at most 0.001 above the target."""
    layout = network("fedmud-cnn8", (3, 32, 32), 10).layout
    layers = LowRank(1 / 32)
    whole = layers.for_network(layout)
    real = [sum(part.size for part in how.parts(layout)) / layout.size for how in (layers, whole)]
    assert real[1] <= 1 / 32 + 0.001 < real[0]
    step = replace(whole, ratio=whole.ratio + 0.001)
    assert sum(part.size for part in step.parts(layout)) / layout.size > 1 / 32 + 0.001
    with pytest.raises(ValueError, match=r"ratio=0\.01: expected at least 0\.0"):
        LowRank(0.01).for_network(network("fedmud-cnn4", (3, 32, 32), 10).layout)


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda: LowRank(0.0), "ratio"),
        (lambda: LowRank(1.5), "ratio"),
        (lambda: LowRank(0.5, a=0.0), "a="),
        (lambda: LowRank(0.5, form="sideways"), "form"),
        (lambda: Hadamard(0.5, form="aad"), "form"),
        (lambda: Hadamard(0.5, tensor=True), "tensor=True"),
        (lambda: LowRank(0.5, random=1), "random"),
        (lambda: LowRank(0.5, layers="outer"), "layers"),
        (lambda: LowRank(0.5, kernel=0), "kernel"),
        (lambda: Kronecker(0.5, blocks="round"), "blocks"),
        (lambda: LowRank(0.5).compressed(TWO_LAYERS), "layers"),
        (lambda: FedMUD(0.1, 2, "LowRank"), "decomposition"),
        (lambda: FedMUD(0.1, 2, Full(), 0), "reset_every"),
        (lambda: FedMUD(0.1, 2, Full(), 3, base="zero"), "reset_every"),
        (lambda: FedMUD(0.1, 2, Full(), base="one"), "base"),
        (lambda: FedMUD(0.1, 2, LowRank(0.5, 1.0, random=True)), "decomposition.random"),
        (lambda: FedMUD.of_model(0.1, 2, LowRank(0.5, 1.0), base="zero"), "base"),
        (lambda: FedMUD.of_model(0.1, 2, LowRank(0.5, 1.0), reset_every=3), "reset_every"),
        (lambda: FedMUD(0.1, 2, Full(), absent="never"), "absent"),
    ],
)
def test_bad_arguments(make, name):
    with pytest.raises((ValueError, TypeError), match=name) as caught:
        make()
    assert "expected" in str(caught.value)
    assert "Fix: " in str(caught.value)


# The algorithm


def steps_of(algorithm, problem, i, key):
    return problem.draw(torch.tensor([i]), algorithm.local_steps, key.fold("xi"))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("reset_every", [1, 3, None])
@pytest.mark.parametrize("base", ["model", "zero"])
def test_without_decomposition_fedmud_is_fedavg(weighted, reset_every, base):
    if base == "zero":
        reset_every = None
    one = FedMUD(0.05, 4, Full(), reset_every, base=base, weighted=weighted)
    two = FedAvg(0.05, 4, weighted=weighted)
    for problem in (regression(), quadratic(layout=TWO_LAYERS, sigma=0.3)):
        a, b = (last(algorithm, problem, 15, sampled=3).server.x for algorithm in (one, two))
        assert relative(a, b) < 1e-12


def unequal(problem):
    """The quadratics, with client weights 1/15 to 5/15."""
    weights = torch.arange(1.0, 6.0, dtype=DOUBLE)
    return Quadratic(problem.H, problem.b, noise=problem.noise, layout=problem.layout, weights=weights)


def client_models(algorithm, problem, state, clients, key):
    """Mean over the clients of base + update(u_i), and the server's model after the round."""
    down = replace(algorithm, absent="later").broadcast(state.server, key)
    after, up, _ = play_round(algorithm, problem, state, clients, key)
    frozen = down.frozen.value
    base = frozen.base.value if isinstance(frozen.base, Known) else frozen.base
    p = problem.weights[clients] if algorithm.weighted else torch.ones(len(clients), dtype=DOUBLE)
    return (p / p.sum()) @ (base + frozen.D.value.update(up.u)), after


@pytest.mark.parametrize("name", FACTORED)
@pytest.mark.parametrize("problem", ["one", "two layers"])
def test_with_aad_the_server_model_is_the_mean_of_the_client_models(name, problem):
    """(9), in every round, weighted or not; frozen factors too. Without either it is not (7)."""
    algorithm, root = FACTORED[name], Key(0)
    problem = unequal(quadratic(layout=TWO_LAYERS) if problem == "two layers" else quadratic())
    linear = algorithm.decomposition.form != "product" or isinstance(algorithm.decomposition, Full)
    state = algorithm.init(problem, start(problem), root)
    for t in range(5):
        mean, state = client_models(algorithm, problem, state, torch.tensor([0, 2, 3]), root.fold("round", t))
        gap = relative(state.server.x, mean)
        assert gap < 1e-14 if linear else gap > 1e-7


@pytest.mark.parametrize("name", FACTORED)
def test_one_client_is_sgd_on_the_factors(name):
    """N = 1: the server's average is the client's u; a reset leaves the model alone."""
    algorithm, problem, root = replace(FACTORED[name], lr=0.02), regression(n=1), Key(0)
    s, D = algorithm.reset_every, algorithm.decomposition.draw(problem.layout, root.fold("D"), DOUBLE)
    base, u = start(problem), D.start
    if algorithm.base == "zero":
        base, u = 0 * base, D.whole(base)
    for t, (_, state) in enumerate(rounds(algorithm, problem, 7)):
        for xi in steps_of(algorithm, problem, 0, root.fold("round", t)):
            leaf = u.clone().requires_grad_()
            w = base + D.update(leaf)
            (g,) = torch.autograd.grad(w @ problem.grads(w.detach()[None], xi)[0], leaf)
            u = u - algorithm.lr * g
        x = base + D.update(u)
        assert relative(state.server.x, x) < 1e-12
        if s and (t + 1) % s == 0:
            D = algorithm.decomposition.draw(problem.layout, root.fold("round", t, "D"), DOUBLE)
            base, u = x, D.start


@pytest.mark.parametrize("form", ["aad", "freeze"])
@pytest.mark.parametrize("kind", [LowRank, Kronecker])
def test_a_linear_decomposition_preconditions_the_gradient(form, kind):
    """update(u) = A u with s = 1: local steps are w <- w - eta A A^T g, and the server averages the models."""
    problem, root = quadratic(sigma=0.3), Key(0)
    algorithm = FedMUD(0.05, 3, kind(0.5, 1.0, form, layers="all"))
    x, key = start(problem), root.fold("D")
    for t, (_, state) in enumerate(rounds(algorithm, problem, 5)):
        D = algorithm.decomposition.draw(problem.layout, key, DOUBLE)
        A = D.update(torch.eye(D.size, dtype=DOUBLE)).T
        ends = []
        for i in range(problem.n):
            w = x
            for xi in steps_of(algorithm, problem, i, root.fold("round", t)):
                w = w - 0.05 * A @ A.T @ problem.grads(w[None], xi)[0]
            ends.append(w)
        x, key = torch.stack(ends).mean(0), root.fold("round", t, "D")
        assert relative(state.server.x, x) < 1e-12


def test_a_reset_interval_beyond_the_last_round_is_none():
    for form in ("product", "aad"):
        never, late = (FedMUD(0.05, 3, LowRank(0.5, 1.0, form, layers="all"), s) for s in (None, 9))
        a, b = (last(algorithm, regression(), 8, sampled=3).server.x for algorithm in (never, late))
        assert torch.equal(a, b)


def test_fedlmt_and_fedpara_are_fedmud():
    """Sec. 3.1: W^0 = 0, s >= R, all factors random. The model is the factors; whole layers keep their start."""
    problem = quadratic(layout=TWO_LAYERS)
    x = start(problem)
    for kind in (LowRank(0.5, 1.0, layers="matrices"), Hadamard(0.9, 1.0, layers="matrices")):
        algorithm = FedMUD.of_model(0.05, 3, kind)
        server = algorithm.init(problem, x, Key(0)).server
        assert isinstance(server.frozen.base, Known)
        D = server.frozen.D.value
        assert torch.equal(server.x, D.update(server.u))
        assert torch.equal(server.x[8:], x[8:]), "the second layer is a vector"
        assert not torch.equal(server.x[:8], x[:8])
        after = last(algorithm, problem, 6).server
        assert relative(after.x, D.update(after.u)) < 1e-15


def unvec(x, layout):
    """(m x n) matrices, m = columns and n = rows of the layer."""
    return [x[where].reshape(layer.cols, layer.rows) for layer, where in zip(layout.layers, layout.slices)]


@pytest.mark.parametrize("form", ["product", "aad", "freeze"])
@pytest.mark.parametrize(("s", "sampled", "weighted"), [(1, 5, False), (2, 3, False), (3, 3, True)])
def test_transcript(form, s, sampled, weighted):
    """Sec. 3.1 in NumPy: two layers of 4 x 2 and 3 x 2, U and V as matrices, clients one by one, (3), (4), (5), (8)."""
    layout = Layout((Layer("first", 4, 2), Layer("second", 3, 2)))
    problem = unequal(quadratic(layout=layout, sigma=0.3))
    algorithm = FedMUD(0.05, 3, LowRank(0.9, 1.0, form, layers="all"), s, weighted=weighted)
    root, shapes = Key(0), [(2, 4), (2, 3)]

    def fresh(key):
        """U and V (and U~, V~) of each layer, drawn in the order U V [U~ V~] layer after layer."""
        g, out = key.generator(), []
        for m, n in shapes:
            r = int(np.ceil(0.9 * m)) if form == "freeze" else int(np.ceil(0.9 * m * n / (m + n)))

            def uniform(rows, r=r):
                return (2 * torch.rand(rows * r, generator=g, dtype=DOUBLE) - 1).numpy().reshape(rows, r)

            if form == "product":
                out.append([uniform(m), np.zeros((n, r))])
            elif form == "aad":
                out.append([np.zeros((m, r)), np.zeros((n, r)), uniform(m), uniform(n)])
            else:
                out.append([uniform(m), np.zeros((n, r))])
        return out

    def update(U, V, U_=None, V_=None):
        return U @ V.T if U_ is None else U @ V_.T + U_ @ V.T

    W, factors = unvec(start(problem).numpy(), layout), fresh(root.fold("D"))
    for t, (clients, state) in enumerate(rounds(algorithm, problem, 8, sampled=sampled)):
        key = root.fold("round", t)
        p = {i: float(problem.weights[i]) if weighted else 1.0 for i in clients.tolist()}
        total = [[0 * factor for factor in layer] for layer in factors]
        for i in p:
            mine = [[factor.copy() for factor in layer] for layer in factors]
            for xi in steps_of(algorithm, problem, i, key):
                w = np.concatenate([(W[j] + update(*mine[j])).ravel() for j in (0, 1)])
                g = problem.H[i].numpy() @ (w - problem.b[i].numpy()) + xi.noise[0].numpy()
                for j, G in enumerate(unvec(g, layout)):
                    U, V, *tilde = mine[j]
                    U_, V_ = tilde or (U, V)
                    dU, dV = G @ V_, G.T @ U_
                    mine[j] = [U - 0.05 * dU * (form != "freeze"), V - 0.05 * dV, *tilde]
            total = [[a + p[i] / sum(p.values()) * b for a, b in zip(*pair)] for pair in zip(total, mine)]
        factors = total
        x = np.concatenate([(W[j] + update(*factors[j])).ravel() for j in (0, 1)])
        assert np.linalg.norm(state.server.x.numpy() - x) < 1e-12 * np.linalg.norm(x)
        if (t + 1) % s == 0:
            W, factors = unvec(x, layout), fresh(key.fold("D"))


@pytest.mark.parametrize("decomposition", [LowRank(0.3, 0.3, "aad", layers="all"), Kronecker(0.3, 0.5, layers="all")])
def test_a_perceptron_learns_the_digits(decomposition):
    """Digits on ten clients (Dirichlet 0.3): above 80% with less than half of FedAvg's upload."""
    train, test = read("digits"), read("digits", split="test")
    parts = dirichlet(train.y, 10, 0.3, Key(0))
    problem = ImageClassification(
        train.floats(), train.y, parts, network("mlp", (1, 8, 8), 10), Key(0), batch=32, test=(test.floats(), test.y)
    )
    history = run(FedMUD(0.1, 10, decomposition), problem, 40, sampled=5, every=40, metrics=("accuracy",))
    assert history["accuracy"][-1] > 0.8
    assert history["up_bytes"][-1] < 40 * 5 * problem.d * 4 / 2


# What crosses


def test_bytes_by_hand():
    """A 6 x 2 layer at r = 1: U and V are 8 numbers; the model is 12. Three of five clients in each of seven rounds.

    A client's first round: the model and the seed (12 + 1), and within a window the factors (8). Later, the factors
    of every window that ended since (8 + 1 each) and those of this window (8). Never more than the model and the seed.
    """
    problem = quadratic()
    for s, base in ((1, "model"), (3, "model"), (None, "model"), (None, "zero")):
        algorithm = FedMUD(0.05, 2, LowRank(0.5, 1.0, layers="all", random=base == "zero"), s, base=base)
        history, last_seen, down = run(algorithm, problem, 7, sampled=3), {}, [0]
        for t in range(7):
            numbers = 0
            for i in sample_clients(5, 3, Key(0).fold("round", t, "clients")).tolist():
                ended = 0 if s is None or i not in last_seen else t // s - last_seen[i] // s
                frozen = 12 * (base == "model") + 1 if i not in last_seen else min(9 * ended, 13)
                numbers += frozen + 8 * (base == "zero" or (s is None and t > 0) or bool(s and t % s))
                last_seen[i] = t
            down.append(down[-1] + numbers)
        assert history["down_scalars"] == down
        assert history["down_bytes"] == [8 * n for n in down]
        assert history["up_bytes"] == [8 * 8 * 3 * t for t in range(8)]


@pytest.mark.parametrize("s", [1, 3])
def test_every_client_downloads_every_update(s):
    """absent="at once" (Sec. 2): five clients, whoever takes part: 13 each at first, 9 after a reset, else 8."""
    algorithm = FedMUD(0.05, 2, LowRank(0.5, 1.0, layers="all"), s, absent="at once")
    history = run(algorithm, quadratic(), 7, sampled=2)
    each = [13] + [9 if t % s == 0 else 8 for t in range(1, 7)]
    assert history["down_scalars"] == [5 * sum(each[:t]) for t in range(8)]
    later = run(replace(algorithm, absent="later"), quadratic(), 7, sampled=2)
    assert torch.equal(history.x, later.x)
    assert history["up_bytes"] == later["up_bytes"]


schedules = st.lists(st.sets(st.integers(0, 4), min_size=1, max_size=5), min_size=2, max_size=12)


@pytest.mark.parametrize("s", [1, 2, 3])
@pytest.mark.parametrize("dtype", [torch.float32, DOUBLE])
@given(schedule=schedules)
@settings(max_examples=15)
def test_a_client_that_was_away_rebuilds_the_frozen_part_bit_for_bit(s, dtype, schedule):
    """From its last copy, the factors of the resets it missed and their seeds: base <- base + D.update(u), D anew."""
    problem, root = quadratic(dtype=dtype), Key(3)
    algorithm = FedMUD(0.05, 2, LowRank(0.5, 1.0, layers="all"), s)
    state = algorithm.init(problem, start(problem), root)
    resets, copies, last_seen = {}, {}, {}
    for t, ids in enumerate(schedule):
        key = root.fold("round", t)
        down = algorithm.broadcast(state.server, key)
        if t and t % s == 0:
            resets[t] = down.frozen.step
        for i in ids:
            lag = t - last_seen[i] if i in last_seen else None
            charged = cost(down.frozen, [lag])
            if lag is None:
                assert charged == cost(down.frozen.value)
            else:
                base, D = copies[i]
                missed = [resets[r] for r in range(last_seen[i] + 1, t + 1) if r in resets]
                for reset in missed:
                    base = base + D.update(reset.u)
                    D = reset.D.make(Key(reset.D.key.seed, reset.D.key.path))
                assert torch.equal(base, down.frozen.value.base)
                assert torch.equal(D.start, down.frozen.value.D.value.start)
                priced = sum((cost(reset) for reset in missed), Cost())
                assert charged == min(cost(down.frozen.value), priced, key=lambda c: c.bytes)
            copies[i], last_seen[i] = (down.frozen.value.base, down.frozen.value.D.value), t
        state = play_round(algorithm, problem, state, torch.tensor(sorted(ids)), key)[0]


@pytest.mark.parametrize(("ratio", "rank"), [(0.07, 7), (0.28, 28), (0.55, 55), (0.281, 29), (1e-12, 1)])
def test_a_rank_is_rounded_up_but_not_by_the_rounding_of_a_product(ratio, rank):
    assert LowRank(ratio, form="freeze").part(100, 20).size == 20 * rank
