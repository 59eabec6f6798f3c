"""Small problems and one instance of every algorithm, shared by the tests."""

import torch

from fedtheory import (
    BAFFLE,
    DGC,
    EF21P,
    FLSS,
    LBGM,
    SSF,
    STC,
    TAMUNA,
    CompressedScaffnew,
    Coordinate,
    DeComFL,
    FedAvg,
    FedBAT,
    FedBuff,
    FedCM,
    FedCom,
    FedDC,
    FedDyn,
    FedExLoRA,
    FedFTG,
    FedHM,
    FedKRSO,
    FedKSeed,
    FedMUD,
    FedProx,
    FedSB,
    FedSLoP,
    FedSub,
    FedZO,
    Ferret,
    FetchSGD,
    FlexLoRA,
    FSLoRA,
    Gaussian,
    HiSo,
    Identity,
    ImageClassification,
    Key,
    Layer,
    Layout,
    LogisticRegression,
    MatrixRegression,
    MimeLite,
    ProjectedFedAvg,
    Quadratic,
    RoLoRA,
    Scaffnew,
    Scaffold,
    Scallion,
    SignSGD,
    Spherical,
    TopK,
    play_round,
)
from fedtheory.algorithms.readings.decomfl import DeComFLReading
from fedtheory.algorithms.readings.fedsub import FedSubReading
from fedtheory.algorithms.readings.flss import FLSSReading
from fedtheory.algorithms.readings.ssf import SSFReading
from fedtheory.core.loop import sample_clients
from fedtheory.maps.decomposition import Hadamard, Kronecker, LowRank
from fedtheory.problems.models.networks import network

ONE_MATRIX = Layout.single(6, 2)
TWO_LAYERS = Layout((Layer("first", 4, 2), Layer("second", 3, 1)))  # with r = 2 the ratios m/r are 2 and 3/2


def quadratic(n: int = 5, *, layout: Layout = ONE_MATRIX, sigma: float = 0.0, seed: int = 1, **options) -> Quadratic:
    """Heterogeneous quadratics on one matrix (default) or several layers."""
    return Quadratic.random(n, layout.size, Key(seed), layout=layout, sigma=sigma, **options)


def regression(n: int = 5, *, batch: int | None = 4, seed: int = 2, **options) -> MatrixRegression:
    """SSF's matrix regression, small: six features, two outputs, eight rows per client, minibatches of four."""
    return MatrixRegression.ssf(0.5, Key(seed), n=n, rows=8, d=6, m=2, batch=batch, **options)


def logistic(n: int = 5, *, lam: float = 0.1, seed: int = 3, **options) -> LogisticRegression:
    """FedSub's logistic regression, small: six features, forty samples per client."""
    return LogisticRegression.fedsub(Key(seed), n=n, samples=40 * n, m=6, lam=lam, **options)


DOUBLE = torch.float64
SMALL = {"mlp": (1, 6, 6), "decomfl-mnist": (1, 8, 8), "fedmud-cnn4": (2, 8, 8), "resnet8": (3, 8, 8)}


def images(count: int = 40, shape=(1, 6, 6), classes: int = 3, seed: int = 0):
    """Noise with labels at random."""
    g = Key(seed).generator()
    return torch.randn(count, *shape, generator=g, dtype=DOUBLE), torch.randint(classes, (count,), generator=g)


def problem(name: str = "mlp", sizes=(12, 9, 7, 12), classes: int = 3, **options) -> ImageClassification:
    """A network on such images; clients hold as many as `sizes` say."""
    shape = SMALL[name]
    x, y = images(sum(sizes), shape, classes)
    parts = list(torch.arange(sum(sizes)).split(list(sizes)))
    return ImageClassification(x, y, parts, network(name, shape, classes), Key(1), **{"batch": 4, **options})


PROBLEMS = {
    "quadratic": quadratic,
    "two layers": lambda n=5, **options: quadratic(n, layout=TWO_LAYERS, **options),
    "noisy quadratic": lambda n=5, **options: quadratic(n, sigma=0.3, **options),
    "regression": regression,
    "logistic": logistic,
}

ETA, K = 0.05, 3


FULL_SPACE = {
    "FedAvg": FedAvg(ETA, K),
    "FedAvg weighted": FedAvg(ETA, K, server_lr=0.7, weighted=True),
    "SCAFFOLD II all": Scaffold(ETA, K),
    "SCAFFOLD II participants": Scaffold(ETA, K, server_lr=0.7, server_control="participants"),
    "SCAFFOLD weighted": Scaffold(ETA, K, server_lr=0.7, weighted=True),
    "SCAFFOLD I all": Scaffold(ETA, K, option="I"),
    "SCAFFOLD I participants": Scaffold(ETA, K, option="I", server_control="participants"),
}
SUBSPACE = {
    "FedSub CD": FedSub(ETA, K, Coordinate(2)),
    "FedSub CD signs": FedSubReading(ETA, K, Coordinate(2, signs=True), refresh=2),
    "FedSub SS": FedSub(ETA, K, Spherical(2)),
    "FedSub SS orthonormal": FedSubReading(ETA, K, Spherical(2, "orthonormal"), gradient_factor=False),
    "FedSub RD": FedSub(ETA, K, Gaussian(2)),
    "FedSub I": FedSub(ETA, K, Identity()),
    "FedSub sums": FedSub(ETA, K, Spherical(2), form="sums"),
    "FedSub product": FedSubReading(ETA, K, Spherical(2), product_first=True),
    "FedSub kept": FedSubReading(ETA, K, Spherical(2), refresh=2, absent="keep"),
    "FedSub stepped": FedSubReading(ETA, K, Spherical(2), refresh=2, absent="step"),
    "FedSub stepped turned": FedSubReading(ETA, K, Spherical(2), refresh=2, absent="step turned", dual_mean="stored"),
    "FedSub unrotated": FedSubReading(ETA, K, Spherical(2), rotate=False),
    "FedSub decay": FedSubReading(ETA, K, Spherical(2), decay_every=2, decay_factor=0.5, rescale_dual=True),
    "FedSub stored": FedSubReading(ETA, K, Spherical(2), dual_mean="stored"),
    "FedSub factored": FedSubReading(ETA, K, Spherical(2), factored=True),
    "FedAvg-CD": FedSub(ETA, K, Coordinate(2), dual=False),
    "SSF": SSF.haar(ETA, K, 2),
    "SSF all": SSFReading.haar(ETA, K, 2, server_control="all", server_lr=0.7),
    "SSF CD kept": SSFReading(ETA, K, Coordinate(2, "orthonormal"), refresh=3, resend_model=True),
    "SSF factored": SSFReading.haar(ETA, K, 2, factored=True),
    "SSF I": SSF(ETA, K, Identity()),
}
FACTORED = {
    "FedMUD": FedMUD(ETA, K, LowRank(0.5, 1.0, layers="all")),
    "FedMUD kept": FedMUD(ETA, K, LowRank(0.5, 1.0, layers="all"), reset_every=3, absent="at once"),
    "FedMUD AAD": FedMUD(ETA, K, LowRank(0.5, 1.0, "aad", layers="all"), weighted=True),
    "FedMUD F": FedMUD(ETA, K, LowRank(0.5, 1.0, "freeze", layers="all"), reset_every=2),
    "FedMUD BKD": FedMUD(ETA, K, Kronecker(0.5, 1.0, layers="all"), reset_every=2, weighted=True),
    "FedMUD BKD AAD": FedMUD(ETA, K, Kronecker(0.5, 1.0, "aad", layers="all", blocks="square"), reset_every=None),
    "FedLMT": FedMUD.of_model(ETA, K, LowRank(0.5, 1.0, layers="all")),
    "FedPara": FedMUD.of_model(ETA, K, Hadamard(0.5, 0.5, layers="all"), weighted=True),
}
ZEROTH = {
    "DeComFL": DeComFL(ETA, K, 4, 0.5),
    "DeComFL central": DeComFLReading(ETA, K, 3, 0.5, 0.5, scalar="central", seeds="derived"),
    "DeComFL sphere": DeComFLReading(
        0.3 * ETA, K, 3, 0.5, scalar="central", direction="sphere", average=False, secret=7
    ),
    "DeComFL projection": DeComFLReading(
        ETA, K, 3, scalar="projection", momentum=0.3, dampened=False, known_start=False
    ),
}
STREAMING = {
    "FLSS": FLSS(ETA, K, 2, 3, refresh=2),
    "FLSS layers": FLSSReading(ETA, K, 2, 4, interval=2, refresh=3, layerwise=True, normalise=True, kept=3, sr=2.0),
    "FLSS weighted": FLSSReading(ETA, K, 2, 3, refresh=2, weighted=True),
    "FLSS gradient": FLSSReading(ETA, K, 2, 3, refresh=0, project="both", centre=True),
}
SIGNED = {
    "SignSGD": SignSGD(ETA, K),
    "SignSGD weighted": SignSGD(ETA, K, weighted=True),
    "FLSS signed": FLSS(ETA, K, 2, 3, refresh=2, base="signsgd"),
    "FLSS sign first": FLSSReading(
        ETA, K, 2, 3, refresh=2, base="signsgd", order="sign", residual="all", scale="layer"
    ),
}
REGULARISED = {
    "FedProx": FedProx(ETA, K, 0.4),
    "FedProx weighted": FedProx(ETA, K, 0.4, weighted=True),
    "FedDyn": FedDyn(ETA, K, 2.0),
    "FedDC": FedDC(ETA, K, 2.0),
    "FedDC update": FedDC(ETA, K, 2.0, "update"),
}
SLOPES = {
    "FedZO": FedZO(ETA, K, 4, 0.5),
    "FedZO central": FedZO(ETA, K, 3, 0.5, "central", "gaussian"),
    "FedKSeed": FedKSeed(ETA, K, 20, 0.5),
    "HiSo": HiSo(ETA, K, 4, 0.5, nu=0.1),
    "BAFFLE": BAFFLE(ETA, 4, 0.5),
    "BAFFLE forward": BAFFLE(ETA, 3, 0.5, "forward", weighted=True),
}
COMPRESSED = {
    "Top-k": TopK(ETA, K, 0.25),
    "Top-k kept": TopK(ETA, K, 0.25, error_feedback=True),
    "STC": STC(ETA, K, 0.25),
    "STC own values": STC(ETA, K, 0.25, 0.5, values="own"),
    "DGC": DGC(ETA, K, 0.25, momentum=0.5),
    "FedCom nearest": FedCom(ETA, K, rounding="nearest", scale="layer"),
    "FetchSGD": FetchSGD(ETA, K, 0.25, size=2.0, rows=3, momentum=0.5),
    "LBGM": LBGM(ETA, K),
    "SCAFCOM": Scallion(ETA, K, 0.25, "top-k", momentum=0.5),
}
CORRECTED = {
    "Scaffnew": Scaffnew(ETA, K),
    "Scaffnew fixed": Scaffnew(ETA, K, coin=False),
    "FedBuff": FedBuff(ETA, K, 2, 3),
    "FedCM": FedCM(ETA, K, 0.3),
    "MimeLite": MimeLite(ETA, K, 0.6),
}
ROLLED = {  # a client's dice are its own: what it draws hangs on its id
    "FedCom": FedCom(ETA, K),
    "FedCOMGATE": FedCom(ETA, K, gate=True),
    "EF21-P": EF21P(ETA, K, 0.5),
    "EF21-P DIANA": EF21P(ETA, K, 0.5, 0.25, beta=0.5),
    "SCALLION": Scallion(ETA, K, 0.25),
    "CompressedScaffnew": CompressedScaffnew(ETA, K, ratio=0.5),
    "TAMUNA": TAMUNA(ETA, K, ratio=0.5),
    "FedKRSO": FedKRSO(ETA, K, Gaussian(2), 3, 2),
    "Ferret": Ferret(ETA, K, 0.5),
    "FSLoRA": FSLoRA(ETA, K, LowRank(1.0, 1.0, "lora", layers="all"), (0.5, 1.0)),
    "FedBAT": FedBAT(ETA, K, rho=0.5),
    "FedBAT weighted": FedBAT(ETA, K, rho=0.5, weighted=True),
    "FedBAT one way": FedBAT(ETA, K, rho=0.5, both=False),
}
TRUNCATED = {
    "FedHM": FedHM(ETA, K, LowRank(0.5, layers="all")),
    "FedHM decay": FedHM(ETA, K, LowRank(1.0, layers="all"), 0.1, weighted=True),
    "FlexLoRA": FlexLoRA(ETA / 2, K, (LowRank(0.5, 1.0, "lora", layers="all"),)),
    "FlexLoRA ranks": FlexLoRA(
        ETA, K, (LowRank(1.0, 1.0, "lora", layers="all"), LowRank(0.3, 1.0, "lora", layers="all")), 0.5, True
    ),
    "RoLoRA": RoLoRA(ETA, K, LowRank(0.5, 1.0, "lora", layers="all")),
    "FFA-LoRA": RoLoRA(ETA, K, LowRank(0.5, 1.0, "lora", layers="all"), None),
    "FedEx-LoRA": FedExLoRA(ETA, K, LowRank(0.5, 1.0, "lora", layers="all"), weighted=True),
    "FLoRA": FedExLoRA(ETA, K, LowRank(0.5, 1.0, "lora", layers="all"), True),
    "Fed-SB": FedSB(ETA, K, 1 / 12),
    "FedSLoP": FedSLoP(ETA, K, Spherical(2, "orthonormal"), 0.5),
    "FedFTG": FedFTG(ETA, K, 1, 4),
    "FedFTG SGD": FedFTG(ETA, K, 1, 2, 1.0, "sgd", weighted=True),
    "ProjectedFedAvg": ProjectedFedAvg(ETA, K, 2, 3),
    "ProjectedFedAvg weighted": ProjectedFedAvg(ETA, K, 1, 2, weighted=True),
}
ALGORITHMS = (
    FULL_SPACE
    | SUBSPACE
    | FACTORED
    | ZEROTH
    | STREAMING
    | SIGNED
    | REGULARISED
    | SLOPES
    | COMPRESSED
    | CORRECTED
    | ROLLED
    | TRUNCATED
)


def start(problem, seed: int = 0) -> torch.Tensor:
    """A start away from zero, (d,)."""
    return torch.randn(problem.d, generator=Key(seed).fold("start").generator(), dtype=torch.float64).to(problem.dtype)


def rounds(algorithm, problem, T, *, sampled=None, seed=0, x0=None, **options):
    """Yield (clients, state) after each round, with the keys of `fedtheory.run`."""
    root = Key(seed)
    state = algorithm.init(problem, start(problem) if x0 is None else x0.clone(), root)
    for t in range(T):
        key = root.fold("round", t)
        clients = sample_clients(problem.n, sampled or problem.n, key.fold("clients"))
        state = play_round(algorithm, problem, state, clients, key, **options)[0]
        yield clients, state


def last(algorithm, problem, T, **options):
    """The state after T rounds."""
    return [state for _, state in rounds(algorithm, problem, T, **options)][-1]


def relative(a: torch.Tensor, b: torch.Tensor) -> float:
    """||a - b|| / ||b||; ||a|| where b = 0."""
    scale = float(torch.linalg.vector_norm(b))
    return float(torch.linalg.vector_norm(a - b)) / (scale or 1.0)


def leaves(tree) -> list[torch.Tensor]:
    """All tensors in a state, in the order of its fields."""
    if isinstance(tree, torch.Tensor):
        return [tree]
    if isinstance(tree, tuple):
        return [leaf for part in tree for leaf in leaves(part)]
    if hasattr(tree, "__dataclass_fields__"):
        return [leaf for name in tree.__dataclass_fields__ for leaf in leaves(getattr(tree, name))]
    return []
