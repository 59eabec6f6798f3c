"""SSF's open points: every field puts another step instead of a named one of the box."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch

from fedtheory.algorithms import ssf
from fedtheory.algorithms.readings import OpenPoint
from fedtheory.algorithms.ssf import SSF, Down, Up
from fedtheory.core import checks
from fedtheory.core.algorithm import State
from fedtheory.core.basis import Basis
from fedtheory.core.key import Key
from fedtheory.core.problem import Problem


@dataclass(frozen=True)
class Server(ssf.Server):
    n: int  # N


@dataclass(frozen=True)
class SSFReading(SSF):
    """SSF as it could also be meant. With all defaults it is SSF, bit for bit.

    Fields, with the numbers of the paper's open points:
        refresh: rounds between projectors; 1 is the algorithm analysed, others are "tunable" (Sec. 3.6; 6).
        server_control: how c is averaged when S < N (the paper's (6) sums over all N, its experiments sample S; 1, 2).
            "participants": (6) with the S participants in place of N; for S < N it brings back FedAvg's sampling noise
            (`ssf.partial_control`). "all": the mean of all stored c_i, kept up to date as in SCAFFOLD by c + (1/N)
            sum_S (c_i^+ - c_i), which has none. Clients send P_t (c_i^{t+1} - c_i^t), the same bytes.
        resend_model: True sends the full x^t each round; False sends each client the steps that it missed (18, 19).
        factored: False forms lines 8 and 9 as printed and projects the full gradient. True has the problem evaluate P_t
            grad f_i on the subspace (`Problem.restrict`), equal in exact arithmetic. Where the problem supports it, the
            cost of a local step does not depend on d (Sec. 3.7, "Computation").
    """

    refresh: int = 1
    server_control: str = "participants"
    resend_model: bool = False
    factored: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.whole("refresh", self.refresh, 1)
        checks.choice("server_control", self.server_control, ("participants", "all"))

    def init(self, problem: Problem, x: torch.Tensor, key: Key) -> State:
        server, own = super().init(problem, x, key)
        return State(Server(**vars(server), n=problem.n), own)

    def broadcast(self, server: Any, key: Key) -> Down:
        down = super().broadcast(server, key)
        return replace(down, x=replace(down.x, step=None)) if self.resend_model else down

    def gradient(self, problem: Problem, P: Basis, x_res: torch.Tensor, xi: Any) -> Callable[..., torch.Tensor]:
        return problem.restrict(P, x_res, xi) if self.factored else super().gradient(problem, P, x_res, xi)

    def control_sent(self, mean: torch.Tensor, ci_proj: torch.Tensor) -> torch.Tensor:
        return mean - ci_proj if self.server_control == "all" else super().control_sent(mean, ci_proj)

    def change(self, server: Any, down: Down, up: Up) -> torch.Tensor:
        if self.server_control == "all":
            return (len(up.c_proj) / server.n) * up.c_proj.mean(0)
        return super().change(server, down, up)

    def server(self, server: Any, down: Down, up: Up, clients: torch.Tensor, key: Key) -> tuple[Any, None]:
        new, _ = super().server(server, down, up, clients, key)
        return new if new.t % self.refresh == 0 else replace(new, P=down.P), None


OPEN = (
    OpenPoint(
        "1, 2",
        "Line 14 averages over the S participants. Over whom does line 16?",
        ("server_control",),
        (
            "ssf/readings",
            "ssf.partial_control",
            "test_laws.py::test_server_control_all_is_the_mean_of_the_stored_controls",
        ),
    ),
    OpenPoint(
        "5",
        "Which distribution has the projector?",
        ("projection",),
        ("ssf.A3", "test_transcripts.py::test_ssf"),
    ),
    OpenPoint(
        "6",
        "How often is the projector redrawn?",
        ("refresh",),
        ("ssf.refresh_tunable",),
    ),
    OpenPoint(
        "18, 19",
        "What is sent, and how does a client that was not sampled obtain x_res?",
        ("resend_model",),
        ("notebook 03", "ssf.cost.comm"),
    ),
    OpenPoint(
        "Sec. 3.7",
        "Does the cost of a local step depend on d?",
        ("factored",),
        ("ssf.cost.compute", "test_transcripts.py::test_factored_steps"),
    ),
)
