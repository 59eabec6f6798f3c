"""Parts that any method takes: at its neutral value each is the method itself, bit for bit."""

from dataclasses import dataclass, replace

import pytest
import torch
from torch import nn

from fedtheory import (
    SSF,
    Adagrad,
    Adam,
    Available,
    ClientMomentum,
    ClippedGradients,
    CompressedScaffnew,
    FedAvg,
    FedBuff,
    FedCom,
    FedDyn,
    FedProx,
    Key,
    LocalLayers,
    MaskedUploads,
    Momentum,
    NormalizedUploads,
    PrivateUploads,
    Quadratic,
    QuantizedUploads,
    Scaffold,
    ServerOptimizer,
    SparseUploads,
    Steps,
    Supervised,
    WeightDecay,
    Yogi,
    run,
)
from fedtheory.core.problem import Problem
from fedtheory.running.parts import Around
from tests.cases import ALGORITHMS, quadratic
from tests.cases import problem as network_problem
from tests.test_rounds import refused, same

FAR = 2.0**60  # sqrt(v) + tau is 2 FAR there, or FAR, whatever the changes
NEUTRAL = (Momentum(1.0, 0.0), Adagrad(2 * FAR, 0.0, 0.5, FAR), Yogi(2 * FAR, 0.0, 0.5, FAR), Adam(FAR, 0.0, 0.0, FAR))
OPTIMIZERS = (Momentum(0.7, 0.5), Adagrad(0.1), Yogi(0.05), Adam(0.05))
REFUSED = ("FedMUD", "FedLMT", "FedPara", "DeComFL", "EF21-P", "FedHM", "FlexLoRA", "ProjectedFedAvg")
REFUSED += ("Scaffnew", "CompressedScaffnew", "FedKSeed", "RoLoRA", "FFA-LoRA", "FedEx-LoRA", "FLoRA", "HiSo")
REFUSED += ("FedBuff", "FSLoRA", "Fed-SB", "TAMUNA")
REPLAYED = ("SSF", "STC", "FetchSGD", "FedBAT")  # their clients are sent the whole model then
CHANGES = ("FedAvg", "SCAFFOLD II", "SCAFFOLD weighted", "FedProx", "FedDyn", "FedZO")
ENDPOINTS = ("SSF", "FedMUD", "DeComFL")
PROBLEM = quadratic()
KEPT = round(0.4 * PROBLEM.d)
PARTS = {
    **{type(rule).__name__: lambda method, rule=rule: (ServerOptimizer(method, rule), PROBLEM) for rule in OPTIMIZERS},
    "uploads": lambda method: (PrivateUploads(method, 0.5, 0.1), PROBLEM),
    "clipped": lambda method: (method, ClippedGradients(PROBLEM, 0.3)),
    "decay": lambda method: (method, WeightDecay(PROBLEM, 0.1)),
    "momentum": lambda method: (ClientMomentum(method, 0.5), PROBLEM),
    "quantized": lambda method: (QuantizedUploads(method, 8), PROBLEM),
    "sparse": lambda method: (SparseUploads(method, 0.4), PROBLEM),
    "all": lambda method: (
        QuantizedUploads(ServerOptimizer(PrivateUploads(ClientMomentum(method), 0.5), OPTIMIZERS[3]), 16),
        WeightDecay(ClippedGradients(PROBLEM, 0.3), 0.1),
    ),
}


def played(method, problem=PROBLEM, rounds=3, **options):
    return run(method, problem, rounds, **{"sampled": 3, "seed": 1} | options)


# At the neutral value


@pytest.mark.parametrize("name", ALGORITHMS)
def test_neutral_parts_are_the_method_itself(name):
    method = ALGORITHMS[name]
    plain = played(method)
    part = played(method, ClippedGradients(WeightDecay(PROBLEM, 0.0), None))
    assert same(part, plain)
    around = LocalLayers(SparseUploads(QuantizedUploads(ClientMomentum(method, 0.0), None), 1.0))
    assert same(played(around), plain)
    if method.averaged:
        assert same(played(MaskedUploads(method, None)), plain)
    if name.startswith(REFUSED):
        first = {} if name.startswith("FLSS") else {"rounds": 1}
        refused(lambda: played(ServerOptimizer(method, NEUTRAL[0]), **first), "method=", "the server's model x itself")
        return
    for rule in NEUTRAL if name in ("FedAvg", "SSF") else NEUTRAL[:1]:
        part = played(ServerOptimizer(method, rule))
        assert torch.equal(part.x, plain.x)
        assert part["up_bytes"] == plain["up_bytes"]
        assert part["down_bytes"] == plain["down_bytes"] or (
            name.startswith(REPLAYED) and part["down_bytes"] > plain["down_bytes"]
        )


@pytest.mark.parametrize("name", [name for name in ALGORITHMS if name.startswith(CHANGES + ENDPOINTS)])
def test_uploads_that_are_neither_clipped_nor_noisy(name):
    """A method is itself, or refused."""
    method = ALGORITHMS[name]
    if name.startswith(CHANGES) and name != "FedAvg-CD":
        assert same(played(PrivateUploads(method)), played(method))
    else:
        refused(lambda: played(PrivateUploads(method)), "method=", "uploads a change dy")


# What they do


@pytest.mark.parametrize("rule", OPTIMIZERS, ids=repr)
def test_an_optimizer_is_algorithm_2(rule):
    """One client, one step: Delta = -lr grad F, and the printed lines, one number after the other."""
    problem, lr = Quadratic.random(n=1, d=3, key=Key(2)), 0.2
    x, m = problem.start(), [0.0] * 3
    v = [rule.tau**2 if rule is not OPTIMIZERS[0] else 0.0] * 3
    for _ in range(4):
        x, delta = x.clone(), (-lr * problem.grad(x)).tolist()
        for j, change in enumerate(delta):
            if isinstance(rule, Momentum):
                m[j] = rule.beta * m[j] + change
                x[j] += rule.lr * m[j]
                continue
            m[j] = rule.beta1 * m[j] + (1 - rule.beta1) * change
            sign = (v[j] > change**2) - (v[j] < change**2)
            v[j] = {
                Adagrad: v[j] + change**2,
                Yogi: v[j] - (1 - rule.beta2) * change**2 * sign,
                Adam: rule.beta2 * v[j] + (1 - rule.beta2) * change**2,
            }[type(rule)]
            x[j] += rule.lr * m[j] / (v[j] ** 0.5 + rule.tau)
    found = run(ServerOptimizer(FedAvg(lr, 1), rule), problem, 4)
    torch.testing.assert_close(found.x, x, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("method", [FedAvg(0.1, 3), Scaffold(0.1, 3)], ids=lambda one: one.name)
def test_same_bits_for_the_same_seed_and_after_a_resume(part, method, tmp_path):
    around, problem = PARTS[part](method)
    schedule = Steps(2, 0.5)
    whole = played(around, problem, 6, schedule=schedule)
    assert not torch.equal(whole.x, played(method, rounds=6, schedule=schedule).x)
    played(around, problem, 3, schedule=schedule, checkpoint=tmp_path)
    assert same(played(around, problem, 6, schedule=schedule, checkpoint=tmp_path), whole)
    alone = played(around, problem, 6, schedule=schedule, chunk=1)
    assert alone.columns.keys() == whole.columns.keys()
    torch.testing.assert_close(alone.x, whole.x, rtol=1e-12, atol=1e-12)
    other = PARTS["all" if part != "all" else "decay"](method)
    refused(lambda: played(*other, 6, schedule=schedule, checkpoint=tmp_path), "checkpoint")


def test_ssf_takes_a_server_adam_and_pays_for_the_whole_model():
    part = played(ServerOptimizer(SSF.haar(0.1, 3, 2), Adam(0.05)), rounds=40)
    plain = played(SSF.haar(0.1, 3, 2), rounds=40)
    assert part["error"][-1] < 0.7 * part["error"][0]
    assert part["up_bytes"] == plain["up_bytes"]
    d, r = PROBLEM.d, 4
    assert part["down_scalars"][-1] == 40 * 3 * (1 + d + r)


def test_uploads_are_clipped_together_and_noise_has_its_deviation():
    method, x = PrivateUploads(Scaffold(0.3, 3), 0.01), PROBLEM.start()
    up = lambda method: next_up(method, x)
    dy, c = up(method).dy, up(method).c
    torch.testing.assert_close((dy.norm(dim=1) ** 2 + c.norm(dim=1) ** 2).sqrt(), torch.full((5,), 0.01).double())
    plain = up(method.method)
    torch.testing.assert_close(dy / dy.norm(dim=1, keepdim=True), plain.dy / plain.dy.norm(dim=1, keepdim=True))
    assert torch.equal(up(PrivateUploads(method.method, 1e6)).dy, plain.dy), "a short upload stays"
    big = Quadratic.random(n=40, d=200, key=Key(0))
    noise = next_up(PrivateUploads(FedAvg(0.1, 1), 0.5, 0.2), big.start(), big).dy
    noise = noise - next_up(PrivateUploads(FedAvg(0.1, 1), 0.5), big.start(), big).dy
    assert abs(float(noise.std()) / 0.1 - 1) < 5 / (2 * noise.numel()) ** 0.5
    assert abs(float(torch.corrcoef(noise)[0, 1])) < 5 / 200**0.5


def test_client_momentum_is_pytorchs():
    """SGD with momentum on each client, from 0 in each round, then the mean."""
    lr, beta, steps = 0.1, 0.7, 4
    x = PROBLEM.start()
    for _ in range(2):
        ends = []
        for i in range(PROBLEM.n):
            y = x.clone().requires_grad_()
            optimizer = torch.optim.SGD([y], lr, beta)
            for _ in range(steps):
                y.grad = PROBLEM.grads(y.detach()[None], PROBLEM.full(torch.tensor([i])))[0]
                optimizer.step()
            ends.append(y.detach())
        x = torch.stack(ends).mean(0)
    method = ClientMomentum(FedAvg(lr, steps), beta)
    torch.testing.assert_close(run(method, PROBLEM, 2).x, x, rtol=1e-12, atol=1e-12)
    uneven = Unequal(PROBLEM)
    whole = run(ClientMomentum(FedAvg(0.02, uneven.n), beta), uneven, 1)
    (own,) = next_up(ClientMomentum(FedAvg(0.02, 2), beta), uneven.start(), Only(uneven, 1)).dy
    dy = next_up(ClientMomentum(FedAvg(0.02, uneven.n), beta), uneven.start(), uneven).dy
    torch.testing.assert_close(dy[1], own)
    assert whole.diverged is None
    option = Scaffold(0.1, 2, option="I")
    control = next_up(ClientMomentum(option, beta), PROBLEM.start()).c
    torch.testing.assert_close(control, next_up(option, PROBLEM.start()).c)  # the gradient on all data
    refused(lambda: played(ClientMomentum(ALGORITHMS["DeComFL"])), "method=", "steps by gradients")


def test_compressed_uploads_have_the_right_mean_and_fewer_bytes():
    method = Scaffold(0.1, 3)
    plain = next_up(method, PROBLEM.start())
    bytes_of = {QuantizedUploads(method, 8): 2 * (PROBLEM.d + 8), SparseUploads(method, 0.4): 2 * (8 * KEPT + 8)}
    for part, sent in bytes_of.items():
        ups = [part.unpacked(up_at(part, t), PROBLEM.d, PROBLEM.start()) for t in range(200)]
        for name in ("dy", "c"):
            whole, rows = getattr(plain, name), torch.stack([getattr(up, name) for up in ups])
            wide = whole.abs().amax(1, keepdim=True) / 127 if "8 bits" in part.name else whole.abs() * PROBLEM.d / KEPT
            assert bool(((rows.mean(0) - whole).abs() <= 0.22 * wide).all()), "Hoeffding, one in a million"
            assert not bool((rows == whole).all())
        history = played(part, rounds=4)
        assert history["up_bytes"][-1] == 4 * 3 * sent
        assert history["down_bytes"] == played(method, rounds=4)["down_bytes"]
    refused(lambda: played(SparseUploads(SSF.haar(0.1, 3, 2))), "method='SSF'", "changes of all")
    refused(lambda: played(QuantizedUploads(ALGORITHMS["DeComFL"])), "method=", "vectors")
    refused(lambda: played(QuantizedUploads(ALGORITHMS["STC"])), "method=", "sent as they are")


SUMS = {  # participants; of the state, what clients keep and what the server keeps of all of them
    "SCAFFOLD II all": (3, lambda own, server: (own.c, server.c)),
    "FedSub RD": (5, lambda own, server: (own.dual, 0)),
    "FedSub sums": (5, lambda own, server: (own.dual, 0)),
    "SSF": (5, lambda own, server: (own.c, server.c)),
    "SSF all": (3, lambda own, server: (own.c, server.c)),
    "FedDyn": (3, lambda own, server: (own.dual, server.h)),
    "FedDC": (3, lambda own, server: (own.c, server.c)),
    "FedDC drift": (3, lambda own, server: (own.h, server.h)),
    "Scaffnew": (3, lambda own, server: (own.h, 0)),
    "FedGATE": (5, lambda own, server: (own.delta, 0)),
}


@pytest.mark.parametrize("name", SUMS)
def test_clients_and_the_server_add_up_the_same_uploads(name):
    """The mean of what clients keep stays what the server, or nobody, keeps."""
    gate, (sampled, kept) = FedCom(0.1, 3, bits=None, gate=True), SUMS[name]
    method = gate if name == "FedGATE" else ALGORITHMS[name.removesuffix(" drift")]
    parts = [lambda one: QuantizedUploads(ClientMomentum(one, 0.5), 8)]
    if not name.startswith(("SSF", "FedSub")):
        parts += [lambda one: PrivateUploads(one, 0.5, 0.1), lambda one: SparseUploads(one, 0.4)]
    if method.own_steps and not name.startswith("SSF"):
        parts += [lambda one: NormalizedUploads(one.at_steps(5))]
    for part in map(lambda part: part(method), parts):
        problem = Unequal(PROBLEM) if isinstance(part, NormalizedUploads) else PROBLEM
        state = run(part, problem, 6, sampled=sampled, seed=1, metrics=()).state
        own, server = kept(state.own, state.server)
        assert bool(own.any())
        torch.testing.assert_close(own.mean(0), torch.zeros_like(own[0]) + server, rtol=0, atol=1e-12)


@dataclass(frozen=True)
class Halved(Around):
    """A part that sends half of each entry."""

    def client(self, problem, clients, own, down, key):
        up, own = yield from self.method.client(problem, clients, own, down, key)
        sent = replace(up, rows=up.rows / 2)
        return sent, self.method.as_sent(own, down, up, sent)


def test_entries_of_compressed_scaffnew_are_kept_as_sent():
    state = run(Halved(CompressedScaffnew(0.1, 3, ratio=0.5)), PROBLEM, 3, seed=1).state
    assert bool(state.own.h.any())
    torch.testing.assert_close(state.own.h.sum(0), torch.zeros(PROBLEM.d).double(), rtol=0, atol=1e-12)


def test_controls_beside_local_layers_are_of_what_was_sent():
    data = [(x, x.sum(1, keepdim=True)) for x in torch.randn(30, 3, dtype=torch.float64).split(10)]
    net = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 1)).double()
    problem = Supervised(net, nn.MSELoss(), data, batch=4, norm="local")
    state = run(QuantizedUploads(LocalLayers(Scaffold(0.05, 2)), 8), problem, 3, metrics=()).state
    torch.testing.assert_close(state.own.c.mean(0), state.server.c, rtol=0, atol=1e-12)


def up_at(method, t):
    from fedtheory import play_round

    state = method.init(PROBLEM, PROBLEM.start(), Key(0))
    key = Key(0).fold("round", 0).fold("again", t)
    return play_round(method, PROBLEM, state, PROBLEM.clients, key)[1]


@pytest.mark.parametrize("method", [FedAvg(0.1, 3), Scaffold(0.1, 3, weighted=True), SSF.haar(0.1, 3, 2)], ids=repr)
def test_masks_cancel_in_the_sum(method):
    weights = torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0])
    problem = Quadratic(PROBLEM.H, PROBLEM.b, weights=weights, layout=PROBLEM.layout)
    masked, whole = (run(one, problem, 5, seed=1) for one in (MaskedUploads(method), method))
    torch.testing.assert_close(masked.x, whole.x, rtol=0, atol=5 * 2.0**-31)
    assert masked["up_scalars"][-1] == whole["up_scalars"][-1] + 5 * 5 * len(next_up(method, problem.start()).__dict__)


def test_masks_and_levels_keep_the_precision_of_the_model():
    problem = Quadratic.random(n=5, d=6, key=Key(0), dtype=torch.float32)
    for method in (FedAvg(0.1, 3), FedProx(0.1, 3), Scaffold(0.1, 3), SSF.haar(0.1, 3, 2)):
        whole = run(method, problem, 3).x
        masked, rounded = (run(part(method), problem, 3).x for part in (MaskedUploads, QuantizedUploads))
        assert masked.dtype == rounded.dtype == torch.float32
        torch.testing.assert_close(masked, whole, rtol=0, atol=1e-6)


def test_masks_hide_each_upload():
    one, other = (MaskedUploads(FedAvg(lr, 3)) for lr in (0.1, 0.2))
    sent, others = (next_up(part, PROBLEM.start()) for part in (one, other))
    plain = next_up(one.method, PROBLEM.start()).dy
    found = (sent.dy_masked - others.dy_masked).double() * 2.0**-32
    there = plain - next_up(other.method, PROBLEM.start()).dy
    torch.testing.assert_close(found, there, rtol=0, atol=2.0**-31), "the same masks hide both"
    big = Quadratic.random(n=3, d=500, key=Key(0))
    words = next_up(MaskedUploads(FedAvg(0.1, 1)), big.start(), big).dy_masked
    bits = ((words[..., None] >> torch.arange(64)) & 1).double().mean((0, 1))
    assert float((bits - 0.5).abs().max()) < 5 * 0.5 / words.numel() ** 0.5
    assert played(MaskedUploads(FedAvg(1e6, 30)), sampled=5, rounds=30).diverged is not None


def test_masks_of_absent_clients_do_not_cancel():
    part = MaskedUploads(FedAvg(0.1, 3))
    seen, later = [], Available(((0, 1, 2, 3, 4), (0, 1, 2)))
    for options in ({"sampled": 3}, {"dropout": 1e-9}):  # before the first round
        for one in (part, ServerOptimizer(part, Momentum())):
            refused(lambda one=one, options=options: run(one, PROBLEM, 9, log=seen.append, **options), "all clients")
    assert seen == []
    refused(lambda: run(part, PROBLEM, 9, sampler=later), "sampled=3", "leave out sampled")
    assert run(replace(part, bits=None), PROBLEM, 2, sampled=3).diverged is None
    refused(lambda: MaskedUploads(ALGORITHMS["STC"]), "method=", "the participants' average alone")
    refused(lambda: MaskedUploads(FedAvg(0.1, 3), 60), "bits=60")


def test_optimizers_go_around_parts_with_a_state_of_their_own():
    """Twice a factor, and around masks: SGD's change halves where the optimizers halve it."""
    half = lambda method: ServerOptimizer(method, Momentum(0.5, 0.0))
    x, full = PROBLEM.start(), run(FedAvg(0.1, 3), PROBLEM, 1).x
    quarter = run(half(half(FedAvg(0.1, 3))), PROBLEM, 1).x
    torch.testing.assert_close(quarter, x + (full - x) / 4)
    torch.testing.assert_close(
        run(half(MaskedUploads(FedAvg(0.1, 3))), PROBLEM, 1).x, x + (full - x) / 2, atol=1e-9, rtol=0
    )


def test_epsilon_is_the_accountants():
    """One Gaussian release of all clients: at least the exact epsilon of Balle and Wang (2018), and not far above."""
    pytest.importorskip("dp_accounting")
    from scipy.optimize import brentq
    from scipy.stats import norm

    delta, n, noise = 1e-5, 100, 0.5
    part = PrivateUploads(FedAvg(0.1, 1), 1.0, noise)
    shift = 2 / (noise * n**0.5)  # of the sum, in deviations
    gap = lambda e: norm.cdf(shift / 2 - e / shift) - 2.718281828459045**e * norm.cdf(-shift / 2 - e / shift) - delta
    exact = brentq(gap, 0, 50)
    assert exact <= part.epsilon(1, delta, n) <= 1.3 * exact
    assert part.epsilon(1, delta, n) < part.epsilon(10, delta, n) < part.epsilon(10, delta, n, local=True)
    assert part.epsilon(10, delta, 10 * n, sampled=n) < part.epsilon(10, delta, n)
    refused(lambda: PrivateUploads(FedAvg(0.1, 1), 1.0).epsilon(1, delta, n), "noise=0.0", "pass noise=1.0")


def test_epsilon_is_of_plain_averages():
    """With weights p_i a client's noise is as of max p_i: 4.4 where the plain average of ten clients has 1.3."""
    for method in (FedAvg(0.1, 5, weighted=True), FedBuff(0.1, 5, buffer=7)):
        part = PrivateUploads(method, norm=1.0, noise=2.0)
        refused(lambda part=part: part.epsilon(1, 1e-5, 10), "expected a method that averages", "pass local=True")


def next_up(method, x, problem=PROBLEM):
    from fedtheory import play_round

    state = method.init(problem, x, Key(0))
    return play_round(method, problem, state, problem.clients, Key(0).fold("round", 0))[1]


def test_decay_and_clipping_are_what_they_say():
    y, xi = torch.randn(5, PROBLEM.d, generator=Key(0).generator(), dtype=torch.float64), PROBLEM.full(PROBLEM.clients)
    g = PROBLEM.grads(y, xi)
    decayed = WeightDecay(PROBLEM, 0.3)
    torch.testing.assert_close(decayed.grads(y, xi), g + 0.3 * y)
    leaf = y.clone().requires_grad_()
    (slope,) = torch.autograd.grad(decayed.losses(leaf, xi).sum(), leaf)
    torch.testing.assert_close(slope, g + 0.3 * y)
    assert decayed.constants.L == PROBLEM.constants.L + 0.3
    assert decayed.metrics == ("loss",)
    x = y[0]
    moved = decayed.losses_at(y, lambda j, layer: layer + 1, xi)
    torch.testing.assert_close(moved, decayed.losses(y + 1, xi))
    assert decayed.loss(x) == pytest.approx(float(decayed.losses(x.expand(5, -1), xi) @ PROBLEM.weights), rel=1e-12)
    torch.testing.assert_close(decayed.grad(x), PROBLEM.grad(x) + 0.3 * x)
    norm = float(g.norm(dim=1).median())
    clipped = ClippedGradients(PROBLEM, norm)
    expected = torch.stack([row if row.norm() <= norm else row * norm / row.norm() for row in g])
    torch.testing.assert_close(clipped.grads(y, xi), expected)
    torch.testing.assert_close(clipped.grad(x), PROBLEM.grad(x))
    assert len({one.fingerprint() for one in (PROBLEM, decayed, clipped, WeightDecay(PROBLEM, 0.2))}) == 4


# Bad input


def test_a_wrong_part_has_a_line():
    method = FedAvg(0.1, 2)
    refused(lambda: ServerOptimizer(method, 0.1), "optimizer=0.1")
    refused(lambda: ServerOptimizer(PROBLEM, Adam()), "method=")
    refused(lambda: Adam(beta1=1.0), "beta1=1.0", "pass beta1=0.9")
    refused(lambda: Momentum(beta=-0.1), "beta=-0.1")
    refused(lambda: Yogi(tau=0.0), "tau=0")
    refused(lambda: PrivateUploads(method, None, 1.0), "norm=None", "pass norm=1.0")
    refused(lambda: PrivateUploads(method, 0.0), "norm=0")
    refused(lambda: ClippedGradients(PROBLEM, -1.0), "norm=-1")
    refused(lambda: WeightDecay(PROBLEM, -1.0), "decay=-1")
    refused(lambda: WeightDecay(3, 0.1), "problem=3")
    uneven = network_problem("mlp", sizes=(2, 9), epochs=1)
    refused(lambda: WeightDecay(uneven, 0.1), "decay=0.1", "epochs=None")
    assert replace(ServerOptimizer(method, Adam()), method=Scaffold(0.1, 2)).name == "SCAFFOLD + Adam"


def test_what_is_no_method_or_no_optimizer_is_refused():
    refused(lambda: ServerOptimizer(1, Momentum()), "method=1", "pass for example FedAvg")
    refused(lambda: PrivateUploads("FedAvg"), "method='FedAvg'", "pass for example FedAvg")
    refused(lambda: ServerOptimizer(ALGORITHMS["FedAvg"], 3), "optimizer=3", "an instance of Optimizer")


class Only(Problem):
    """One client of another problem."""

    def __init__(self, of, i):
        self.of, self.n, self.layout, self.dtype, self.device = of, 1, of.layout, of.dtype, of.device
        self.weights, self.client = torch.ones(1, dtype=torch.float64), torch.tensor([i])

    def draw(self, clients, steps, key):
        return self.of.draw(self.client, steps, key)

    def full(self, clients):
        return self.of.full(self.client)

    def grads(self, y, xi):
        return self.of.grads(y, xi)

    def losses(self, y, xi):
        return self.of.losses(y, xi)


class Unequal(Problem):
    """Client i makes 1 + i local steps with full gradients on its quadratic."""

    def __init__(self, of):
        self.n, self.layout, self.dtype, self.device, self.weights = of.n, of.layout, of.dtype, of.device, of.weights
        self.constants, self.H, self.b = of.constants, of.H, of.b

    uneven = property(lambda self: True)
    steps = property(lambda self: self.n)

    def steps_of(self, clients):
        return [1 + int(i) for i in clients]

    def draw(self, clients, steps, key):
        return [(clients, (clients >= k).to(self.dtype)) for k in range(steps)]

    def full(self, clients):
        return clients, torch.ones(len(clients), dtype=self.dtype)

    def grads(self, y, xi):
        clients, busy = xi
        return busy[:, None] * torch.einsum("ijk,ik->ij", self.H[clients], y - self.b[clients])

    def losses(self, y, xi):
        return ((y - self.b[xi[0]]) * self.grads(y, xi)).sum(1) / 2


@pytest.mark.parametrize("weights", [(1, 1, 1, 1), (4, 3, 2, 1)])
def test_normalized_uploads_have_the_fixed_point_of_the_clients_weights(weights):
    """With small steps FedAvg rests where client i counts p_i (1 + i) times; normalized, where it counts by p_i."""
    of = Quadratic.random(n=4, d=5, key=Key(3))
    share = torch.tensor(weights, dtype=torch.float64)
    plain = Quadratic(of.H, of.b, weights=share)
    p = Unequal(plain)
    counted = Quadratic(of.H, of.b, weights=share * torch.arange(1, 5)).constants.x_star
    method, rounds = FedAvg(0.006, 4, weighted=True), 1200
    options = {"every": rounds, "metrics": ()}
    assert same(run(NormalizedUploads(method), plain, 5), run(method, plain, 5))
    normalized, biased = (run(one, p, rounds, **options).x for one in (NormalizedUploads(method), method))
    apart = float((counted - p.constants.x_star).norm())
    assert float((normalized - p.constants.x_star).norm()) < 0.02 * apart
    assert float((biased - counted).norm()) < 0.02 * apart


def test_normalized_uploads_count_momentum_and_the_proximal_term():
    """tau_i is ||a_i||_1, the sum of the coefficients of the client's gradients in its change: the same fixed point."""
    of, steps = Quadratic.random(n=4, d=5, key=Key(3)), range(1, 5)
    for mu, beta in ((0.0, 0.9), (20.0, 0.0), (20.0, 0.9)):
        method, a = ClientMomentum(FedProx(0.006, 4, mu), beta), {}
        for K in steps:
            way = m = 0.0
            for _ in range(K):
                m = beta * m + 1
                way = way + m - 0.006 * mu * way
            a[K] = way
        assert {K: method.reach([1.0] * K) for K in steps} == pytest.approx(a)
        term = ClientMomentum(FedDyn(0.006, 4, mu or 1e-9), beta)
        assert {K: term.reach([1.0] * K) for K in steps} == pytest.approx(a)
    p, normal, options = Unequal(of), NormalizedUploads(method), {"metrics": ()}
    counted = Quadratic(of.H, of.b, weights=torch.tensor([*a.values()], dtype=torch.float64)).constants.x_star
    apart = float((counted - p.constants.x_star).norm())
    for one, rest in ((normal, p.constants.x_star), (method, counted)):
        assert float((run(one, p, 1200, every=1200, **options).x - rest).norm()) < 0.05 * apart
    one, scaled = (run(one, p, 1, sampled=1, **options).x - p.start() for one in (method, normal))
    (factor,) = {round(float(f), 9) for f in scaled / one}
    assert factor in [round(sum(a.values()) / 4 / way, 9) for way in a.values()]


@pytest.mark.parametrize("weighted", [False, True])
def test_normalized_uploads_weigh_as_the_method_does(weighted):
    """tau is 2.5 where all clients count alike, and 2 with weights 4:3:2:1."""
    of = Quadratic.random(n=4, d=5, key=Key(3))
    p, method = Unequal(Quadratic(of.H, of.b, weights=torch.tensor([4.0, 3.0, 2.0, 1.0]))), FedAvg(0.006, 4)
    method, options = replace(method, weighted=weighted), {"sampled": 1, "metrics": ()}
    one, scaled = (run(m, p, 1, **options).x - p.start() for m in (method, NormalizedUploads(method)))
    (factor,) = {round(float(f), 9) for f in scaled / one}
    assert factor in [round((2.0 if weighted else 2.5) / steps, 9) for steps in (1, 2, 3, 4)]


def test_momentum_goes_inside_normalized_uploads():
    with pytest.raises(ValueError, match=r"method='FedAvg . normalized . momentum': expected NormalizedUploads around"):
        run(
            ClientMomentum(NormalizedUploads(FedAvg(0.002, 4)), 0.9), Unequal(Quadratic.random(n=4, d=5, key=Key(3))), 1
        )


def test_noise_behind_scaled_or_sparse_uploads_is_not_that_of_all():
    private = PrivateUploads(FedAvg(0.1, 1), 1.0, 1.0)
    refused(lambda: NormalizedUploads(private), "without PrivateUploads inside", "PrivateUploads(NormalizedUploads(")
    refused(lambda: SparseUploads(private, 0.1).epsilon(1, 1e-5, 10), "local=False", "pass local=True")
