"""Laws that hold for every algorithm, and the laws that tie one algorithm to another."""

import itertools
from dataclasses import replace

import pytest
import torch
from cases import (
    ALGORITHMS,
    COMPRESSED,
    FULL_SPACE,
    PROBLEMS,
    ROLLED,
    SIGNED,
    SLOPES,
    SUBSPACE,
    TWO_LAYERS,
    ZEROTH,
    K,
    last,
    leaves,
    quadratic,
    regression,
    relative,
    rounds,
)
from cases import start as start_of
from each import each

from fedtheory import (
    SSF,
    Coordinate,
    FedAvg,
    FedBAT,
    FedSub,
    Gaussian,
    Identity,
    Key,
    MatrixRegression,
    Quadratic,
    Scaffold,
    SignSGD,
    Spherical,
    play_round,
    run,
)
from fedtheory.algorithms.readings.fedsub import FedSubReading
from fedtheory.algorithms.readings.ssf import SSFReading
from fedtheory.core import engine
from fedtheory.core.algorithm import State

EXACT = 1e-12  # relative, in float64: rounding and nothing else


def close(a, b, tolerance=EXACT):
    """Two states agree, tensor by tensor; `a` and `b` may also be two tensors."""
    pairs = [(mine.double(), other.double()) for mine, other in zip(leaves(a), leaves(b), strict=True)]
    assert pairs
    for mine, other in pairs:
        scale = max(float(torch.linalg.vector_norm(other)), 1.0)
        gap = float(torch.linalg.vector_norm(mine - other)) / scale
        assert gap <= tolerance, f"differ by {gap:.1e}"


# One algorithm


@pytest.mark.parametrize("name", ALGORITHMS)
@each("problem, chunk, sampled, T", zip(PROBLEMS, itertools.cycle([1, 3]), itertools.cycle([4, 5]), [4, 2, 2, 4, 2]))
def test_stacked_clients_equal_clients_one_by_one(name, problem, chunk, sampled, T):
    """How many clients are stacked is no mathematics: 1 of 4 sampled or 3 of 5 at a time walk where all do."""
    problem = PROBLEMS[problem]()
    together, apart = (last(ALGORITHMS[name], problem, T, sampled=sampled, chunk=c) for c in (None, chunk))
    close(apart, together)


@pytest.mark.parametrize("name", ALGORITHMS)
def test_recording_changes_nothing(name):
    """`every` decides what is written down, not what happens."""
    often = run(ALGORITHMS[name], regression(), 7, sampled=3, every=1)
    seldom = run(ALGORITHMS[name], regression(), 7, sampled=3, every=3, metrics=("loss", "error"))
    assert all(torch.equal(a, b) for a, b in zip(leaves(often.state), leaves(seldom.state), strict=True))
    assert often["round"] == list(range(8))
    assert seldom["round"] == [0, 3, 6, 7]
    for column in ("error", "up_bytes", "down_bytes", "up_scalars", "down_scalars", "saved_bytes"):
        assert seldom[column] == [often[column][t] for t in seldom["round"]]


@pytest.mark.parametrize("name", ALGORITHMS)
def test_a_generator_yields_every_local_iterate(name):
    """`client` yields K iterates per client, and the last one is where the upload comes from."""
    algorithm, problem = ALGORITHMS[name], quadratic()
    state = algorithm.init(problem, start_of(problem), Key(0))
    key = Key(0).fold("round", 0)
    down = algorithm.broadcast(state.server, key)
    iterates = list(algorithm.client(problem, problem.clients, state.own, down, key))
    assert len(iterates) == (getattr(down, "steps", None) or getattr(algorithm, "local_steps", 1))
    assert all(len(iterate) == problem.n for iterate in iterates)
    up, _ = engine.run_clients(algorithm, problem, problem.clients, state.own, down, key)
    if hasattr(up, "dy"):
        close(up.dy, iterates[-1] - state.server.x)
    elif name not in ZEROTH | SIGNED | SLOPES | COMPRESSED | ROLLED:  # theirs: in the tests of their own
        close(leaves(up)[0], iterates[-1])


# The others draw by their ids, or have ranks by them.
NAMED = ("FedBuff", "FedZO", "FedKSeed", "FLoRA", "FlexLoRA ranks")
NAMELESS = [name for name in ALGORITHMS if not name.startswith(NAMED) and name not in ROLLED]


@pytest.mark.parametrize("name", NAMELESS)
@each(problem=["quadratic", "logistic"])
def test_names_of_clients_do_not_matter(name, problem):
    """Relabel the clients (data, weights, private state, who is sampled): the same run, with exact gradients."""
    algorithm, one = ALGORITHMS[name], PROBLEMS[problem]()
    order = torch.tensor([3, 0, 4, 1, 2])  # client j of the second problem is client order[j] of the first
    two = relabelled(one, order)
    x, root = start_of(one), Key(0)
    state, other = algorithm.init(one, x, root), algorithm.init(two, x, root)
    for t, ids in enumerate([[0, 1, 3], [1, 2, 4], [0, 1, 2, 3, 4], [2, 3]]):
        key, clients = root.fold("round", t), torch.tensor(ids)
        state = play_round(algorithm, one, state, clients, key)[0]
        other = play_round(algorithm, two, other, torch.argsort(order)[clients].sort()[0], key)[0]
    close(other.server.x, state.server.x)
    for mine, theirs in zip(leaves(other.own), leaves(state.own), strict=True):
        close(mine, theirs[order])


def relabelled(problem, order):
    """The problem whose client j is client order[j] of the given one."""
    if isinstance(problem, Quadratic):
        return Quadratic(problem.H[order], problem.b[order], layout=problem.layout, weights=problem.weights[order])
    labels = torch.ones_like(problem.Z[:, 0])
    return type(problem)(problem.Z[order].mT, labels[order], problem.lam)


@pytest.mark.parametrize("name", NAMELESS)
def test_a_second_copy_of_every_client_changes_nothing(name):
    """All N clients twice, everyone takes part, exact gradients: the same model, and the copies stay copies."""
    one = quadratic()
    two = Quadratic(one.H.repeat(2, 1, 1), one.b.repeat(2, 1), layout=one.layout)
    single, double = (last(ALGORITHMS[name], problem, 5, x0=start_of(one)) for problem in (one, two))
    close(double.server.x, single.server.x)
    for mine, theirs in zip(leaves(double.own), leaves(single.own), strict=True):
        close(mine, theirs.repeat(2, *[1] * (theirs.dim() - 1)))


def projector(algorithm, problem, t):
    """P_t as one (d, r) matrix that acts on the flat vector; the full space has P = I."""
    if not hasattr(algorithm, "projection"):
        return torch.eye(problem.d, dtype=torch.float64)
    latest = t - t % getattr(algorithm, "refresh", 1)
    key = Key(0).fold("P") if latest == 0 else Key(0).fold("round", latest - 1, "P")
    basis = algorithm.projection.draw(problem.layout, key, torch.float64)
    return basis.lift(torch.eye(basis.low.size, dtype=torch.float64)).T


@pytest.mark.parametrize("name", [name for name in FULL_SPACE | SUBSPACE if name != "FedSub decay"])
@each(problem=["regression", "noisy quadratic"])
def test_one_client_is_sgd(name, problem):
    """N = 1: no drift to correct, so every method is K steps of SGD, in the drawn subspace where it has one.

    SSF steps by -eta P P^T g and FedSub by -eta (r/m) P P^T g; duals and differences of controls stay zero.
    """
    algorithm, problem = ALGORITHMS[name], PROBLEMS[problem](n=1)
    x = start_of(problem)
    scale = 1.0
    factor = isinstance(algorithm, FedSub) and getattr(algorithm, "gradient_factor", True)
    if factor and algorithm.projection.scale == "isotropic":
        scale = 2 / 6  # r/m
    for t, (_, state) in enumerate(rounds(algorithm, problem, 8)):
        P, y = projector(algorithm, problem, t), x
        for sample in problem.draw(torch.tensor([0]), K, Key(0).fold("round", t, "xi")):
            y = y - algorithm.lr * scale * P @ (P.T @ problem.grads(y[None], sample)[0])
        x = x + getattr(algorithm, "server_lr", 1.0) * (y - x)
        close(state.server.x, x)


FULL_RANK = {
    "FedAvg": FedAvg(0.1, 1),
    "SCAFFOLD II": Scaffold(0.1, 1),
    "SCAFFOLD I": Scaffold(0.1, 1, option="I", server_control="participants"),
    "FedSub P=I": FedSub(0.1, 1, Identity()),
    "FedSub P=I, sums": FedSub(0.1, 1, Identity(), form="sums"),
    "FedSub CD r=m": FedSub(0.1, 1, Coordinate(6)),
    "FedSub SS r=m": FedSub(0.1, 1, Spherical(6)),
    "SSF r=d": SSF.haar(0.1, 1, 6),
    "SSF r=d all": SSFReading.haar(0.1, 1, 6, server_control="all"),
    "SSF P=I": SSF(0.1, 1, Identity()),
}


@each(name=FULL_RANK)
def test_one_local_step_is_gradient_descent(name):
    """K = 1 and everyone takes part: the corrections cancel in the mean, x <- x - eta grad F(x)."""
    problem = quadratic()
    x = start_of(problem)
    for _, state in rounds(FULL_RANK[name], problem, 20):
        x = x - 0.1 * problem.grad(x)
        close(state.server.x, x)


@each(problem=["quadratic", "logistic", "two layers"])
@pytest.mark.parametrize("name", ["SCAFFOLD II", "SCAFFOLD I", "SSF r=d", "SSF r=2", "SSF CD", "FedSub P=I"])
def test_the_solution_is_a_fixed_point(name, problem):
    """At x* with c_i = grad F_i(x*) (FedSub: Lambda_i = -eta tau grad F_i(x*)) nothing moves, in any subspace.

    FedAvg has no such rest: from x* one round of it drifts away.
    """
    algorithm = {
        "SCAFFOLD II": Scaffold(0.1, 4),
        "SCAFFOLD I": Scaffold(0.1, 4, option="I"),
        "SSF r=d": SSF.haar(0.1, 4, 6),
        "SSF r=2": SSF.haar(0.1, 4, 2),
        "SSF CD": SSFReading(0.1, 4, Coordinate(3, "orthonormal"), server_control="all"),
        "FedSub P=I": FedSub(0.1, 4, Identity()),
    }[name]
    if name == "SSF r=d" and problem == "two layers":
        algorithm = SSF.haar(0.1, 4, 4)
    problem = PROBLEMS[problem]()
    x_star = problem.constants.x_star
    state = algorithm.init(problem, x_star, Key(0))
    grads = problem.grads(x_star.expand(problem.n, -1), problem.full(problem.clients))
    own = state.own.dual if name == "FedSub P=I" else state.own.c
    own.copy_(-0.1 * 4 * grads if name == "FedSub P=I" else grads)
    before = own.clone()
    for t in range(3):
        state = play_round(algorithm, problem, state, problem.clients, Key(0).fold("round", t))[0]
    close(state.server.x, x_star, 1e-14)
    close(state.own.dual if name == "FedSub P=I" else state.own.c, before, 1e-14)
    drifted = last(FedAvg(0.1, 4), problem, 1, x0=x_star)
    assert relative(drifted.server.x, x_star) > 1e-4


# One algorithm is another


@each(
    problem=["regression", "noisy quadratic", "two layers", "logistic"],
    server_control=["all", "participants"],
    sampled=[5, 3],
)
@pytest.mark.parametrize("kind", ["Haar", "coordinate", "identity"])
def test_ssf_at_full_rank_is_scaffold(problem, server_control, sampled, kind):
    """r = d: P^T P = I, so SSF is SCAFFOLD with option II; same clients, same minibatches, same controls."""
    problem = PROBLEMS[problem]()
    most = max(layer.rows for layer in problem.layout.layers)
    projection = {
        "Haar": Spherical(most, "orthonormal"),
        "coordinate": Coordinate(most, "orthonormal", signs=True),
        "identity": Identity(),
    }[kind]
    ssf = SSFReading(0.05, 4, projection, server_lr=0.8, server_control=server_control)
    scaffold = Scaffold(0.05, 4, server_lr=0.8, server_control=server_control)
    for (_, a), (_, b) in zip(
        rounds(ssf, problem, 8, sampled=sampled), rounds(scaffold, problem, 8, sampled=sampled), strict=True
    ):
        close(a.server.x, b.server.x)
        close(a.server.c, b.server.c)
        close(a.own.c, b.own.c)


@each(problem=["regression", "noisy quadratic", "two layers", "logistic"], form=["printed", "sums"])
@pytest.mark.parametrize("projection", [Identity(), Coordinate(6), Spherical(6), Spherical(6, "orthonormal")])
def test_fedsub_at_full_rank_is_scaffold(problem, form, projection):
    """P = I or r = m, everyone takes part: Lambda_i / (eta tau) is SCAFFOLD's c - c_i."""
    problem = PROBLEMS[problem]()
    if problem.layout == TWO_LAYERS and not isinstance(projection, Identity):
        projection = type(projection)(4, projection.scale)  # the tallest layer has four rows
    fedsub, scaffold = FedSub(0.05, 4, projection, form=form), Scaffold(0.05, 4)
    for (_, a), (_, b) in zip(rounds(fedsub, problem, 8), rounds(scaffold, problem, 8), strict=True):
        close(a.server.x, b.server.x)
        dual = a.server.P.value.lift(a.own.dual) / (fedsub.lr * fedsub.local_steps)
        close(dual, b.server.c - b.own.c)


@each(problem=["regression", "two layers"], sampled=[5, 3])
def test_fedsub_without_dual_at_full_rank_is_fedavg(problem, sampled):
    problem = PROBLEMS[problem]()
    one = last(FedSub(0.05, 4, Identity(), dual=False), problem, 15, sampled=sampled)
    two = last(FedAvg(0.05, 4), problem, 15, sampled=sampled)
    close(one.server.x, two.server.x)


@pytest.mark.parametrize("control", ["all", "participants"])
def test_the_two_readings_of_the_server_control_agree_when_all_take_part(control):
    for family in (
        lambda c: Scaffold(0.05, 4, server_control=c),
        lambda c: SSFReading.haar(0.05, 4, 2, server_control=c),
    ):
        one, two = last(family(control), regression(), 15), last(family("all"), regression(), 15)
        close(one.server.x, two.server.x)
        close(one.server.c, two.server.c)


@pytest.mark.parametrize("algorithm", [Scaffold(0.05, 4), SSFReading.haar(0.05, 4, 2, server_control="all")])
def test_server_control_all_is_the_mean_of_the_stored_controls(algorithm):
    """c = (1/N) sum_i c_i after every round, whoever took part."""
    for _, state in rounds(algorithm, regression(), 15, sampled=2):
        close(state.server.c, state.own.c.mean(0))


def test_weighted_fedavg_with_equal_weights_is_fedavg():
    for sampled in (5, 2):
        one = last(FedAvg(0.05, 4, weighted=True), regression(), 15, sampled=sampled)
        two = last(FedAvg(0.05, 4), regression(), 15, sampled=sampled)
        close(one.server.x, two.server.x)


def test_a_zero_weight_client_has_no_say_in_weighted_fedavg():
    one = quadratic()
    weights = torch.tensor([1.0, 2.0, 0.0, 3.0, 4.0], dtype=torch.float64)
    two = Quadratic(one.H, one.b, layout=one.layout, weights=weights)
    rest = torch.tensor([0, 1, 3, 4])
    three = Quadratic(one.H[rest], one.b[rest], layout=one.layout, weights=weights[rest])
    algorithm = FedAvg(0.05, 4, weighted=True)
    close(last(algorithm, two, 10).server.x, last(algorithm, three, 10).server.x)


@pytest.mark.parametrize("algorithm", [Scaffold(0.05, 4), SignSGD(0.05, 4), FedBAT(0.05, 4, 0.5)], ids=repr)
def test_clients_of_one_size_give_the_same_bits_weighted_or_not(algorithm):
    for sampled in (5, 3):
        one, two = (last(replace(algorithm, weighted=w), regression(), 15, sampled=sampled) for w in (False, True))
        assert torch.equal(one.server.x, two.server.x)


@pytest.mark.parametrize("server_control", ["all", "participants"])
def test_weighted_scaffold_minimises_the_weighted_loss(server_control):
    """x* of F = sum_i p_i F_i, which SCAFFOLD as printed does not reach where clients differ in size."""
    one = quadratic(spectrum=(0.3, 1.0))
    weights = torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0], dtype=torch.float64)
    problem = Quadratic(one.H, one.b, layout=one.layout, weights=weights)
    printed = Scaffold(0.1, 10, server_control=server_control)
    assert problem.error(last(replace(printed, weighted=True), problem, 200).server.x) < 1e-13
    assert problem.error(last(printed, problem, 200).server.x) > 1e-2


# What the papers are about


def test_fedavg_stalls_where_scaffold_arrives():
    """Heterogeneous quadratics, K = 10: FedAvg rests away from x*, SCAFFOLD (and SSF, FedSub at P = I) reach it."""
    problem = quadratic(spectrum=(0.3, 1.0))
    path = [state.server.x for _, state in rounds(FedAvg(0.1, 10), problem, 240)]
    half, stalled = path[119], path[239]
    assert relative(half, stalled) < 1e-13, "FedAvg has come to rest"
    assert problem.error(stalled) > 1e-2, "and not at the solution"
    for algorithm in (Scaffold(0.1, 10), Scaffold(0.1, 10, option="I"), FedSub(0.1, 10, Identity())):
        assert problem.error(last(algorithm, problem, 200).server.x) < 1e-13
    assert problem.error(last(SSF.haar(0.1, 10, 3), problem, 300).server.x) < 1e-13


def test_homogeneous_clients_need_no_correction():
    """One b and one H for all: then FedAvg reaches x* too."""
    one = quadratic(1, spectrum=(0.3, 1.0))
    problem = Quadratic(one.H.repeat(4, 1, 1), one.b.repeat(4, 1), layout=one.layout)
    assert problem.constants.heterogeneity < 1e-25
    assert problem.error(last(FedAvg(0.1, 10), problem, 400).server.x) < 1e-13


@pytest.mark.parametrize("projection", [Coordinate(2), Spherical(2), Gaussian(2)])
def test_fedsub_sums_is_fedsub_printed_over_a_few_rounds(projection):
    """(13)-(19) rewrite Algorithm 1 for S = n: Lambda_i + B_i = -eta sum_t g_i and sum_i Lambda_i = 0."""
    for problem in (regression(), quadratic(sigma=0.3)):
        printed, sums = (last(FedSub(0.05, 4, projection, form=form), problem, 8) for form in ("printed", "sums"))
        close(printed.server.x, sums.server.x)
        close(printed.own.dual, sums.own.dual)


def test_rounding_grows_in_the_printed_dual_and_not_in_the_sums():
    """sum_i Lambda_i = 0 exactly (15). The printed line carries its rounding error on, times (P^{k+1})^T P^k.

    For Haar frames with P^T P = (m/r) I that factor is about sqrt(m/r) per round; "sums" makes the dual anew.
    """
    problem = quadratic(spectrum=(0.3, 1.0))

    def mean_duals(form):
        states = (state for _, state in rounds(FedSub(0.05, 2, Spherical(3), form=form), problem, 200))
        return [float(torch.linalg.vector_norm(state.own.dual.mean(0))) for state in states]

    printed, sums = mean_duals("printed"), mean_duals("sums")
    assert printed[0] < 1e-15
    assert printed[-1] > 1
    growth = (printed[150] / printed[50]) ** 0.01
    assert 0.9 * 2**0.5 < growth < 2**0.5, "the root mean square grows by sqrt(m/r) = sqrt(2), the typical value less"
    assert max(sums) < 1e-15
    single = quadratic(spectrum=(0.3, 1.0), dtype=torch.float32)  # whose numbers end at 1e38
    assert run(FedSub(0.05, 2, Spherical(3)), single, 600, every=600).diverged is not None
    assert run(FedSub(0.05, 2, Spherical(3), form="sums"), single, 600, every=600).diverged is None


@each(projection=[Coordinate(2), Spherical(2), Gaussian(2)], layout=["quadratic", "two layers"])
def test_line_12_in_either_order_of_its_products(projection, layout):
    """(P^{k+1})^T (P^k Lambda) = ((P^{k+1})^T P^k) Lambda."""
    one, two = (
        last(FedSubReading(0.05, 4, projection, product_first=first), PROBLEMS[layout](), 10, sampled=4)
        for first in (False, True)
    )
    close(one, two, 1e-11)


def test_fedsub_gradient_factor_is_the_inverse_gram_matrix():
    """r/m with P^T P = (m/r) I gives the step of an orthonormal basis: eta r/m P P^T is the same projection."""
    problem = regression()
    isotropic, orthonormal = FedSub(0.05, 4, Spherical(2)), FedSub(0.05, 4, Spherical(2, "orthonormal"))
    close(last(isotropic, problem, 1).server.x, last(orthonormal, problem, 1).server.x)
    unscaled = FedSubReading(0.05 * 2 / 6, 4, Spherical(2), gradient_factor=False)
    close(last(isotropic, problem, 1).server.x, last(unscaled, problem, 1).server.x)
    network = FedSubReading(0.05, 4, Spherical(2, "orthonormal"), gradient_factor="r/m")
    shorter = FedSub(0.05 * 2 / 6, 4, Spherical(2, "orthonormal"))
    close(last(network, problem, 1).server.x, last(shorter, problem, 1).server.x)


def test_fedsub_decaying_rate():
    """The rate of round k is lr * factor^(k // decay_every), and the dual divided by it keeps its value on request."""
    algorithm = FedSubReading(0.08, 2, Identity(), decay_every=3, decay_factor=0.5, rescale_dual=False)
    assert [algorithm.rate(k) for k in range(8)] == [0.08, 0.08, 0.08, 0.04, 0.04, 0.04, 0.02, 0.02]
    problem = quadratic()
    plain = list(rounds(algorithm, problem, 3))[-1][1]
    rescaled = last(FedSubReading(0.08, 2, Identity(), decay_every=3, decay_factor=0.5), problem, 3)
    close(rescaled.own.dual, 0.5 * plain.own.dual)
    close(rescaled.server.x, plain.server.x)
    # round 3 runs at 0.04: replay it with a constant rate from the same state
    constant = FedSub(0.04, 2, Identity())
    copy = State(plain.server, type(plain.own)(plain.own.dual.clone(), plain.own.sent.clone()))
    key = Key(0).fold("round", 3)
    after = play_round(constant, problem, copy, problem.clients, key)[0]
    close(last(algorithm, problem, 4).server.x, after.server.x)


@pytest.mark.parametrize("absent", ["rotate", "keep"])
def test_an_absent_client_and_its_dual(absent):
    """Not sampled in round 0: its dual is carried to the new projector, or keeps its coordinates."""
    problem = quadratic()
    algorithm = FedSubReading(0.05, 2, Spherical(3, "orthonormal"), absent=absent)
    root = Key(0)
    state = algorithm.init(problem, start_of(problem), root)
    state = play_round(algorithm, problem, state, problem.clients, root.fold("round", 0))[0]
    before, P = state.own.dual.clone(), state.server.P.value
    state = play_round(algorithm, problem, state, torch.tensor([0, 2]), root.fold("round", 1))[0]
    P_next = state.server.P.value
    for i in (1, 3, 4):
        close(state.own.dual[i], P_next.project(P.lift(before[i])) if absent == "rotate" else before[i])


@each(absent=["step", "step turned"], dual_mean=["participants", "stored"], form=["printed", "sums"])
def test_where_all_take_part_nobody_is_absent(absent, dual_mean, form):
    """FedSub bit for bit with S = n; with S < n another run."""
    for projection in (Coordinate(2), Spherical(2), Identity()):
        plain = FedSub(0.05, 4, projection, form=form)
        stepped = FedSubReading(0.05, 4, projection, form=form, absent=absent, dual_mean=dual_mean)
        for problem in (regression(), quadratic(sigma=0.3)):
            for (_, a), (_, b) in zip(rounds(plain, problem, 3), rounds(stepped, problem, 3), strict=True):
                assert torch.equal(a.server.x, b.server.x)
                assert torch.equal(a.own.dual, b.own.dual)
        one, two = (last(algorithm, regression(), 4, sampled=3) for algorithm in (plain, stepped))
        assert relative(one.server.x, two.server.x) > 1e-6


@each(absent=["step", "step turned"], problem=["regression", "two layers"])
def test_a_stepped_dual_with_all_taking_part_and_p_the_identity_is_scaffold(absent, problem):
    """Lambda_i / (eta tau) is SCAFFOLD's c - c_i."""
    problem, fedsub = PROBLEMS[problem](), FedSubReading(0.05, 4, Identity(), absent=absent)
    for (_, a), (_, b) in zip(rounds(fedsub, problem, 15), rounds(Scaffold(0.05, 4), problem, 15), strict=True):
        close(a.server.x, b.server.x)
        close(a.own.dual / (0.05 * 4), b.server.c - b.own.c)


@each(absent=["step", "step turned"], dual_mean=["participants", "stored"])
def test_the_mean_of_stepped_duals(absent, dual_mean):
    """Line 12 changes the duals' sum by sum_i B_i - n mean B: nothing where the mean is over all stored B_i.

    P = I, so that neither projections nor coordinates hide it.
    """
    algorithm = FedSubReading(0.05, 4, Identity(), absent=absent, dual_mean=dual_mean)
    means = [state.own.dual.mean(0) for _, state in rounds(algorithm, regression(), 10, sampled=2)]
    if dual_mean == "stored":
        assert max(float(mean.abs().max()) for mean in means) < 1e-13
    else:
        assert min(float(mean.abs().max()) for mean in means) > 1e-3


@each(name=FULL_SPACE)
def test_only_participants_change_their_private_state(name):
    for problem in (quadratic(), regression()):
        algorithm, root = ALGORITHMS[name], Key(0)
        state = algorithm.init(problem, start_of(problem), root)
        state = play_round(algorithm, problem, state, problem.clients, root.fold("round", 0))[0]
        before = [leaf.clone() for leaf in leaves(state.own)]
        state = play_round(algorithm, problem, state, torch.tensor([1, 4]), root.fold("round", 1))[0]
        for old, new in zip(before, leaves(state.own), strict=True):
            assert torch.equal(old[[0, 2, 3]], new[[0, 2, 3]])
            assert not torch.equal(old[[1, 4]], new[[1, 4]])


def test_ssf_moves_model_and_controls_inside_the_subspace_only():
    """(I - P^T P) x and (I - P^T P) c_i pass a round unchanged: that is the backfill."""
    problem, algorithm, root = regression(), SSF.haar(0.05, 4, 2), Key(0)
    state = algorithm.init(problem, start_of(problem), root)
    for t in range(4):
        P, x, c_i, c = state.server.P.value, state.server.x, state.own.c.clone(), state.server.c
        state = play_round(algorithm, problem, state, problem.clients, root.fold("round", t))[0]
        for old, new in ((x, state.server.x), (c_i, state.own.c), (c, state.server.c)):
            change = new - old
            close(P.lift(P.project(change)), change)
            assert float(change.norm()) > 1e-3


def test_matrix_regression_columns_are_independent_problems():
    """The columns of X never meet in (130): solving two outputs at once is solving each alone."""
    both = regression(batch=None)
    A, B = both.full(both.clients).A, both.full(both.clients).Bt.mT
    x = start_of(both)
    for algorithm in (Scaffold(0.05, 4), SSF.haar(0.05, 4, 2)):
        together = last(algorithm, both, 10, x0=x).server.x.view(2, 6)
        for j in range(2):
            alone = MatrixRegression(A, B[:, :, j : j + 1], both.lam)
            close(last(algorithm, alone, 10, x0=x.view(2, 6)[j]).server.x, together[j])
