"""FLSS's open points: every field puts another step instead of a named one of the box."""

from dataclasses import dataclass
from typing import Any

import torch

from fedtheory.algorithms import flss
from fedtheory.algorithms.flss import FLSS, Own, Up
from fedtheory.algorithms.readings import OpenPoint
from fedtheory.core import checks
from fedtheory.core.algorithm import State, average, later, shares
from fedtheory.core.basis import Basis
from fedtheory.core.key import Key
from fedtheory.core.layout import Layout
from fedtheory.core.problem import Problem
from fedtheory.maps.subspace import Trajectory


@dataclass(frozen=True)
class Server(flss.Server):
    p: torch.Tensor | None  # client weights, (N,), where they count


@dataclass(frozen=True)
class FLSSReading(FLSS):
    """FLSS as its appendix could also be meant. With all defaults it is FLSS, bit for bit.

    Fields:
        interval: every so many rounds of the warm-up, w_{t+1} - w_t becomes a column of G.
        stream: a round whose update becomes a column of G runs "full", without projection, or "projected" like the
            others. The projected global update lies in the span of P, so with "projected" P only turns within its span.
            More happens where `kept` > `rank` or `forget` < 1 changes the order of the directions kept.
        scaled: what `sr` scales in projected rounds: the "local" step size or the "server"'s. With project="update"
            and one local step the two agree.
        layerwise: one SVD per layer in place of one for the whole vector; R is then of each layer, capped by its size.
        normalise, centre: columns of G have norm 1; their mean is subtracted. With `centre` the mean update, along
            which the model moves most, need not be in the span of P.
        forget: the singular values so far are multiplied by it whenever a column comes; 1: G keeps all it has seen.
        kept: singular vectors kept while G grows, at least R (the default). kept = J is the SVD of the whole G, d x J.
        order: "project" sends the signs of the projected update, R bits; "sign" projects the signs and sends R numbers.
            Table 3's costs, 1.11 M against 35.14 M, are 1 : 32.
        residual: the rest that SignSGD keeps for the next round. "sign": the loss of the sign (with order="project" R
            dimensions of it are not 0), "all": whatever was not sent, also the part outside the projection.
        scale: of the signs, over the whole vector that is signed ("model") or "layer" by layer.
        weighted: C.1's 1/M counts the participants alike; True by the problem's client weights p_i, as the public codes
            of FedAvg do. The appendix does not say whether clients' sizes differ.
    """

    interval: int = 1
    stream: str = "full"
    scaled: str = "local"
    layerwise: bool = False
    normalise: bool = False
    centre: bool = False
    forget: float = 1.0
    kept: int | None = None
    order: str = "project"
    residual: str = "sign"
    scale: str = "model"
    weighted: bool = later(False)
    _more = "make warm_up longer, or interval smaller"

    def __post_init__(self) -> None:
        checks.whole("interval", self.interval, 1)
        super().__post_init__()
        checks.choice("stream", self.stream, ("full", "projected"))
        checks.choice("scaled", self.scaled, ("local", "server"))
        checks.number("forget", self.forget, 0.0, 1.0, open_low=True)
        if self.centre and self.forget < 1:
            checks.reject("forget", self.forget, "1 with centre=True", "choose one of the two")
        if self.kept is not None:
            checks.whole("kept", self.kept, self.rank)
        checks.choice("order", self.order, ("project", "sign"))
        checks.choice("residual", self.residual, ("sign", "all"))
        checks.choice("scale", self.scale, ("model", "layer"))

    def init(self, problem: Problem, x: torch.Tensor, key: Key) -> State:
        server, own = super().init(problem, x, key)
        return State(Server(**vars(server), p=shares(problem, self.weighted, x)), own)

    def mean(self, server: Any, sent: torch.Tensor, clients: torch.Tensor) -> torch.Tensor:
        return average(sent, server.p, clients)

    def samples(self, t: int) -> bool:
        return self.streams(t) or (t < self.warm_up and (t + 1) % self.interval == 0)

    def projects(self, t: int) -> bool:
        return t >= self.warm_up and not (self.stream == "full" and self.streams(t))

    @property
    def columns(self) -> int:
        return self.warm_up // self.interval

    @property
    def full(self) -> int:
        return self.refresh if self.stream == "full" else 0

    @property
    def local_lr(self) -> float:
        return self.lr if self.scaled == "server" else self.sr * self.lr

    def scaled_up(self, b: torch.Tensor) -> torch.Tensor:
        return self.sr * b if self.scaled == "server" else b

    def empty(self, problem: Problem, x: torch.Tensor) -> Trajectory:
        slices = problem.layout.slices if self.layerwise else [slice(0, problem.d)]
        return Trajectory.empty([where.stop - where.start for where in slices], self.kept or self.rank, x, self.centre)

    def grown(self, G: Trajectory, change: torch.Tensor) -> Trajectory:
        if self.normalise:
            change = change / torch.linalg.vector_norm(change).clamp(min=torch.finfo(change.dtype).tiny)
        return G.add(change, self.forget)

    def signed(self, p: torch.Tensor, P: Basis | None, layout: Layout) -> tuple[Any, Own]:
        if P is None or self.order == "project":
            return super().signed(p, P, layout)
        _, sent = self.sign(p, layout)
        b = P.project(sent)
        return Up(b), Own(p - (sent if self.residual == "sign" else P.lift(b)))

    def left(self, p: torch.Tensor, b: torch.Tensor, sent: torch.Tensor, P: Basis) -> torch.Tensor:
        return super().left(p, b, sent, P) if self.residual == "sign" else p - P.lift(sent)

    def groups(self, layout: Layout) -> list[int]:
        return [layer.rows * layer.cols for layer in layout.layers] if self.scale == "layer" else super().groups(layout)


OPEN = (
    OpenPoint(
        "1",
        "How long is the first phase, without projection?",
        ("warm_up",),
        ("flss/fig1a", "flss/longer"),
    ),
    OpenPoint(
        "2",
        "Which global updates become columns of G: how often, normalised, centred, and how many are kept?",
        ("interval", "normalise", "centre", "kept"),
        ("notebook 06", "flss.eq14-centering", "test_flss.py::test_transcript"),
    ),
    OpenPoint(
        "3",
        "Which R, and one SVD for the whole vector or one per layer?",
        ("rank", "layerwise"),
        ("flss/rank_bound", "notebook 06"),
    ),
    OpenPoint(
        "5",
        "What do the scaled learning rates scale: the local step or the server's?",
        ("sr", "scaled"),
        ("flss/table1", "test_flss.py::test_scaled_rates"),
    ),
    OpenPoint(
        "6",
        "SignSGD: which comes first, sign or projection; what is kept as the residual; over what is the scale?",
        ("order", "residual", "scale"),
        ("notebook 06", "flss.table3-cost", "test_flss.py::test_what_is_sent_and_what_is_left"),
    ),
    OpenPoint(
        "8",
        "When is P updated, and by which vectors?",
        ("refresh", "stream", "forget"),
        ("notebook 06", "test_flss.py::test_the_projected_global_update_adds_no_direction"),
    ),
    OpenPoint(
        "13",
        "Do clients of different sizes count alike, as C.1 prints, or by their data?",
        ("weighted",),
        ("test_flss.py::test_clients_count_by_their_data",),
    ),
    OpenPoint(
        "Table 1",
        "Which object is projected?",
        ("project",),
        ("flss/table1", "test_flss.py::test_projecting_gradients_leaves_nothing_to_project"),
    ),
)
