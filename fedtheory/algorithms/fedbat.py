"""FedBAT: Li et al. 2024, "Communication-Efficient Federated Learning via Learnable Binarization", arXiv:2408.03215."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from fedtheory.core import checks
from fedtheory.core.algorithm import Algorithm, State, average, by_problem, later, shares
from fedtheory.core.key import Key
from fedtheory.core.layout import Layout
from fedtheory.core.message import Known, Replay
from fedtheory.core.problem import Problem
from fedtheory.core.registry import Card, Method
from fedtheory.maps.compress import groups, uniforms
from fedtheory.maps.signs import Signs, means


@dataclass(frozen=True)
class Server:
    x: torch.Tensor  # w, (d,)
    layout: Known[Layout]
    last: Signs | None  # the update that made x, where it goes down binarized; 0 before the first round
    p: torch.Tensor | None  # client weights, (N,), where they count


@dataclass(frozen=True)
class Down:
    x: Replay[torch.Tensor]  # (d,)


@dataclass(frozen=True)
class FedBAT(Algorithm):
    """Clients train an update m under a random binarization S(m, alpha), and its step size alpha; S(m, alpha) crosses.

    S(m, alpha) is alpha with probability (1 + m/alpha)/2 (clipped to [0, 1]), else -alpha: unbiased where |m| <= alpha.
    Backwards dS/dm = 1 there, else 0, and dS/dalpha = (S - m)/alpha there, else sign(m). Every layer has its alpha =
    alpha_0 exp(rho a), with a trained from 0. First comes a warm-up of plain steps, at whose end alpha_0 = mean |m|.
    Here that holds for biases and normalisation, too, which the public code sends whole.

    Fields:
        lr: of m and of a; None: `pace` times the problem's `rate`.
        local_steps: of a round.
        rho: speed of alpha; 0: alpha stays at alpha_0. The paper's choice: 6.
        warm_up: phi, share of plain steps. The paper: 0.5. At least one step is made, or alpha_0 would be 0 (in the
            public code it then is the lower clip). If all of them are, the binarization comes after training.
        clip: alpha is kept between these two; the public code: (5e-4, 5e-2). None: it is not, and
            at large rates exp(rho a) may leave the numbers there are. A layer whose alpha is 0 sends zeros.
        both: also the mean of the updates goes down binarized, as FedMUD has it "for a fair comparison". It has the
            same S, with alpha = mean |m| layer by layer, since the server trains nothing. A client that was away is
            sent the updates it missed, or the model where that is smaller. False: the paper's own FedBAT, the model
            goes down.
        weighted: False averages the participants alike; True by the problem's client weights p_i (the public code: by
            their numbers of minibatches).
    """

    lr: float = by_problem()
    local_steps: int = 5
    rho: float = 6.0
    warm_up: float = 0.5
    clip: tuple[float, float] | None = None
    both: bool = True
    weighted: bool = later(False)
    name = "FedBAT"
    pace = 0.03

    def __post_init__(self) -> None:
        checks.number("rho", self.rho, 0.0)
        checks.number("warm_up", self.warm_up, 0.0, 1.0)
        if self.clip is not None:
            low = checks.number("clip[0]", self.clip[0], 0.0, open_low=True)
            checks.number("clip[1]", self.clip[1], low)

    def init(self, problem: Problem, x: torch.Tensor, key: Key) -> State:
        zero = torch.zeros_like(x)[None]
        last = Signs.of(zero, groups(problem.layout, "layer")) if self.both else None
        return State(Server(x, Known(problem.layout), last, shares(problem, self.weighted, x)), None)

    def broadcast(self, server: Server, key: Key) -> Down:
        return Down(Replay(server.x, server.last))

    def client(self, problem: Problem, clients: torch.Tensor, own: None, down: Down, key: Key):
        w, sizes = down.x.value, groups(problem.layout, "layer")
        generators = [key.fold("S", int(i)).generator() for i in clients]
        xi = problem.draw(clients, self.local_steps, key.fold("xi"))
        warm = max(1, int(self.warm_up * self.local_steps))
        m = w.new_zeros(len(clients), problem.d)
        alpha_0 = a = m.new_zeros(len(clients), len(sizes))
        for k in range(self.local_steps):
            if k < warm:
                m = m.sub(problem.grads(w + m, xi[k]), alpha=self.lr)
            else:
                alpha = self._alpha(alpha_0, a)
                wide = _spread(alpha, sizes)
                S = _binarize(m, wide, uniforms(generators, m))
                g = problem.grads(w + S, xi[k])
                inside = m.abs() <= wide
                slope = ((S - m) / wide).where(inside & (wide > 0), m.sign())  # dS/dalpha
                moves = 1.0 if self.clip is None else (alpha > self.clip[0]) & (alpha < self.clip[1])
                a = a - self.lr * self.rho * alpha * moves * _sums(slope * g, sizes)
                m = m.sub(g.where(inside, 0.0), alpha=self.lr)
            if k + 1 == warm:
                alpha_0 = means(m, sizes)
            yield w + m
        alpha = self._alpha(alpha_0, a)
        return Signs.of(_binarize(m, _spread(alpha, sizes), uniforms(generators, m)), sizes, alpha), None

    def server(self, server: Server, down: Down, up: Signs, clients: torch.Tensor, key: Key) -> tuple[Server, None]:
        sizes = groups(server.layout.value, "layer")
        change, last = average(up.expand(sizes), server.p, clients)[None], None
        if self.both:
            alpha = means(change, sizes)
            u = uniforms([key.fold("down").generator()], change)
            last = Signs.of(_binarize(change, _spread(alpha, sizes), u), sizes, alpha)
            change = last.expand(sizes)
        return Server(server.x + change[0], server.layout, last, server.p), None

    def _alpha(self, alpha_0: torch.Tensor, a: torch.Tensor) -> torch.Tensor:
        alpha = alpha_0 * torch.exp(self.rho * a)
        return alpha if self.clip is None else alpha.clamp(*self.clip)


def _binarize(m: torch.Tensor, alpha: torch.Tensor, u: torch.Tensor) -> torch.Tensor:
    """S(m, alpha), with u uniform in [0, 1)."""
    return alpha.where(u < (1 + m / alpha) / 2, -alpha)


def _spread(alpha: torch.Tensor, sizes: Sequence[int]) -> torch.Tensor:
    """A number per layer -> its copy for every entry."""
    return alpha.repeat_interleave(torch.tensor(sizes, device=alpha.device), -1)


def _sums(p: torch.Tensor, sizes: Sequence[int]) -> torch.Tensor:
    """The sum over every layer, (S, d) -> (S, layers)."""
    return torch.stack([part.sum(-1) for part in p.split(list(sizes), -1)], -1)


_PUBLIC = (5e-4, 5e-2)  # the public code's clip: without it exp(rho a) overflows at the rates a comparison tries
METHODS = [
    Method(
        "FedBAT",
        "compressed",
        lambda o: FedBAT(o.lr, o.local_steps, clip=_PUBLIC),
        Card(
            "Clients learn their update through its own binarization.",
            "m -= eta g_i(x + S(m, alpha)), alpha trained, too; x += S(c, mean abs c), c = mean(S(m_i, alpha_i))",
            "S is unbiased where its scale covers the entry (law).",
            "S has variance up to alpha^2 per entry, which does not vanish at a solution.",
        ),
    ),
]
