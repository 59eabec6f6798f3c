"""Parts that change what the clients of any method send: clipped, noisy, normalised, quantised, sparse or masked."""

from abc import abstractmethod
from collections.abc import Generator
from dataclasses import dataclass, fields, make_dataclass, replace
from functools import cache
from typing import Any, ClassVar

import torch

from fedtheory.core import checks
from fedtheory.core.algorithm import Algorithm, State
from fedtheory.core.key import Key
from fedtheory.core.message import field_names
from fedtheory.core.problem import Problem
from fedtheory.maps.compress import LEVELS, Quantized, Sampled, count_kept, uniforms
from fedtheory.problems.parts import LocalMomentum
from fedtheory.running.parts import Around


@dataclass(frozen=True)
class PrivateUploads(Around):
    """A method whose clients clip what they send, and add Gaussian noise to it.

    All tensors of an upload are clipped together, to the norm `norm`; each entry then gets noise of deviation
    `noise * norm`. Over S participants a plain average has noise of `noise * norm / sqrt(S)`: a central Gaussian
    mechanism of multiplier z has `noise = z / sqrt(S)`. Neutral: norm None, noise 0. `epsilon` says what is private.

    Fields:
        method: one that uploads a change `dy` of the model in plain floating-point tensors; others are refused.
        norm: of an upload, at most; None: any.
        noise: deviation of each entry, in units of `norm`.
    """

    revision = 2
    norm: float | None = None
    noise: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.number("noise", self.noise, 0.0)
        if self.norm is not None:
            checks.number("norm", self.norm, 0.0, open_low=True)
        elif self.noise:
            checks.reject("norm", None, "a number: noise is in units of it", "pass norm=1.0, or noise=0")
        object.__setattr__(self, "name", f"{self.method.name} + noise")

    def client(
        self, problem: Problem, clients: torch.Tensor, own: Any, down: Any, key: Key
    ) -> Generator[torch.Tensor, None, tuple[Any, Any]]:
        up, own = yield from self.method.client(problem, clients, own, down, key)
        parts = _plain(self.method, up, "dy")
        if self.norm is None:
            return up, own
        norms = torch.cat([part.flatten(1) for part in parts.values()], dim=1).norm(dim=1)
        factor = (self.norm / norms).clamp(max=1)
        for name, part in parts.items():
            parts[name] = part * factor.view(-1, *[1] * (part.dim() - 1))
            if self.noise:
                parts[name] = parts[name] + self.noise * self.norm * _normal(part, clients, key.fold("noise", name))
        sent = replace(up, **parts)
        return sent, self.method.as_sent(own, down, up, sent)

    def epsilon(self, rounds: int, delta: float, n: int, sampled: int | None = None, *, local: bool = False) -> float:
        """The epsilon of (epsilon, delta)-differential privacy, where one client's data are replaced by others.

        By Renyi divergences, in the accountant of dp-accounting: `pip install 'fedtheory[privacy]'`. Not for runs with
        `dropout`: fewer clients then share the noise.

        Args:
            rounds: of the run.
            delta: a probability, well below 1/n.
            n, sampled: clients, and those of a round, drawn uniformly; None: all.
            local: towards a server that sees each upload; False: towards those who see averages alone, as behind
                `MaskedUploads`. Refused where a client may weigh more than another.
        """
        checks.whole("rounds", rounds, 1)
        checks.number("delta", delta, 0.0, 1.0, open_low=True)
        checks.whole("n", n, 1)
        S = n if sampled is None else checks.whole("sampled", sampled, 1, n)
        if not local and (self.weighted or not self.averaged):
            expected = "a method that averages its uploads alike: one of more weight has less noise"
            checks.reject("method", self.name, expected, "pass local=True, or wrap for example FedAvg(weighted=False)")
        if not self.noise:
            checks.reject("noise", self.noise, "noise, without which nothing is private", "pass noise=1.0")
        try:
            import dp_accounting  # type: ignore[import-not-found]  # an extra
        except ImportError:
            expected = "dp-accounting, which is not installed"
            checks.reject("epsilon", None, expected, "pip install 'fedtheory[privacy]'", ModuleNotFoundError)
        multiplier = self.noise / 2 * (1 if local else S**0.5)  # another client moves a sum by up to 2 norm
        event = dp_accounting.GaussianDpEvent(multiplier)
        if n > S and not local:
            event = dp_accounting.SampledWithoutReplacementDpEvent(n, S, event)
        accountant = dp_accounting.rdp.RdpAccountant(neighboring_relation=dp_accounting.NeighboringRelation.REPLACE_ONE)
        return float(accountant.compose(event, rounds).get_epsilon(delta))


@dataclass(frozen=True)
class NormalizedUploads(Around):
    """A method whose clients scale their change of the model by tau / tau_i: tau_i is how many local steps they made.

    This is FedNova's weighting (Wang et al. 2020, arXiv:2007.07481). Without it tau_i counts as a weight beside the
    method's, which are p_i with `weighted=True`, else 1/N. With client momentum or FedProx's term tau_i is how far
    unit gradients move the client, over lr: the paper's norm of a_i. tau, the mean of all tau_i by these weights, is
    a constant of the data that clients are assumed to know. For FedProx the authors' code takes the mean number of
    steps in its place. Neutral where all make equally many.

    Fields:
        method: one that uploads `dy`; others are refused.
    """

    revision = 2

    def __post_init__(self) -> None:
        super().__post_init__()
        inner: Any = self.method
        while isinstance(inner, Around):
            if isinstance(inner, PrivateUploads):
                expected = "a method without PrivateUploads inside: scaled uploads have unequal noise"
                checks.reject("method", inner.name, expected, "pass PrivateUploads(NormalizedUploads(method), ...)")
            inner = inner.method
        object.__setattr__(self, "name", f"{self.method.name} + normalized")

    def client(
        self, problem: Problem, clients: torch.Tensor, own: Any, down: Any, key: Key
    ) -> Generator[torch.Tensor, None, tuple[Any, Any]]:
        up, own = yield from self.method.client(problem, clients, own, down, key)
        if "dy" not in [f.name for f in fields(up)] or hasattr(type(up), "cost"):
            expected = "a method that uploads a change dy of the model as it is"
            checks.reject("method", self.method.name, expected, "choose for example FedAvg, SCAFFOLD or FedProx")
        if not problem.uneven:
            return up, own
        if isinstance(problem, LocalMomentum):
            expected = "NormalizedUploads around ClientMomentum, whose steps it counts"
            checks.reject("method", f"{self.name} + momentum", expected, "swap the two")
        counts = problem.steps_of(problem.clients)
        reach = {count: self.method.reach([1.0] * count) for count in {*counts}}
        tau = torch.tensor([reach[count] for count in counts], dtype=torch.float64)
        mean = tau @ problem.weights.to(tau) if self.weighted else tau.mean()
        factor = (mean / tau[clients.to(tau.device)]).to(up.dy)
        sent = replace(up, dy=up.dy * factor.view(-1, *[1] * (up.dy.dim() - 1)))
        return sent, self.method.as_sent(own, down, up, sent)


# Smaller, and hidden


@dataclass(frozen=True)
class _Packed(Around):
    """A method whose clients send its uploads in another form, which the server takes apart again."""

    exact: ClassVar[bool] = False  # whether only the form is another

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "averaged", False)

    @property
    @abstractmethod
    def neutral(self) -> bool:
        """Whether uploads stay as they are."""

    @abstractmethod
    def pack(self, problem: Problem, part: torch.Tensor, clients: torch.Tensor, key: Key) -> dict[str, torch.Tensor]:
        """What crosses of a part (S, .) of the upload. The key is the round's and the part's."""

    @abstractmethod
    def unpack(self, crossed: dict[str, torch.Tensor], d: int) -> torch.Tensor:
        """The part, (S, .), or its average in each row. The model has d entries."""

    def client(
        self, problem: Problem, clients: torch.Tensor, own: Any, down: Any, key: Key
    ) -> Generator[torch.Tensor, None, tuple[Any, Any]]:
        up, own = yield from self.method.client(problem, clients, own, down, key)
        if self.neutral:
            return up, own
        parts = _plain(self.method, up)
        packed = {name: self.pack(problem, part, clients, key.fold("packed", name)) for name, part in parts.items()}
        kind = _kind(type(up), tuple(next(iter(packed.values()))))
        sent = kind(*(part for of in packed.values() for part in of.values()))
        if self.exact or own is None:
            return sent, own
        return sent, self.method.as_sent(own, down, up, self.unpacked(sent, problem.d, next(iter(parts.values()))))

    def server(self, server: Any, down: Any, up: Any, clients: torch.Tensor, key: Key) -> tuple[Any, Any]:
        return self.method.server(server, down, self.unpacked(up, len(server.x), server.x), clients, key)

    def unpacked(self, up: Any, d: int, like: torch.Tensor) -> Any:
        """The method's own upload, in the precision of `like`."""
        if self.neutral:
            return up
        kind = type(up).of
        parts = [{part: getattr(up, f"{name}_{part}") for part in type(up).parts} for name in field_names(kind)]
        return kind(*(self.unpack(part, d).to(like) for part in parts))


@cache
def _kind(of: type, parts: tuple[str, ...]) -> type:
    """An upload in which each field of `of` has these parts."""
    columns = [(f"{name}_{part}", torch.Tensor) for name in field_names(of) for part in parts]
    return make_dataclass(of.__name__, columns, frozen=True, namespace={"of": of, "parts": parts})


@dataclass(frozen=True)
class QuantizedUploads(_Packed):
    """A method whose clients send each entry as one of 2^bits - 1 even levels, rounded at random: the mean is right.

    Each tensor of an upload crosses with its largest magnitude. Neutral: bits None.

    Fields:
        method: one that uploads plain floating-point vectors; others are refused.
        bits: 8 or 16.
    """

    revision = 2
    bits: int | None = 8

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.choice("bits", self.bits, (*LEVELS, None))
        object.__setattr__(self, "name", f"{self.method.name} + {self.bits} bits")

    @property
    def neutral(self) -> bool:
        return self.bits is None

    def pack(self, problem: Problem, part: torch.Tensor, clients: torch.Tensor, key: Key) -> dict[str, torch.Tensor]:
        if part.dim() != 2:
            expected = "a method that uploads vectors (S, .)"
            checks.reject("method", self.method.name, expected, "choose for example FedAvg, SCAFFOLD or SSF")
        u = uniforms([key.fold(int(i)).generator() for i in clients], part)
        return vars(Quantized.of(part, [part.shape[1]], self.bits or 0, u))

    def unpack(self, crossed: dict[str, torch.Tensor], d: int) -> torch.Tensor:
        return Quantized(**crossed).expand([crossed["levels"].shape[1]])


@dataclass(frozen=True)
class SparseUploads(_Packed):
    """A method whose clients send random entries alone, each times d/k: the mean is right (Rand-K). Neutral: ratio 1.

    The server draws the positions again from a seed. For the largest entries, with a memory of the others: `TopK`.

    Fields:
        method: one that uploads changes in plain floating-point tensors (S, d); others are refused.
        ratio: share of the entries that cross.
    """

    revision = 2
    ratio: float = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.number("ratio", self.ratio, 0.0, 1.0, open_low=True)
        object.__setattr__(self, "name", f"{self.method.name} + {100 * self.ratio:g}% of the entries")

    def epsilon(self, rounds: int, delta: float, n: int, sampled: int | None = None, *, local: bool = False) -> float:
        """The method's, of `PrivateUploads`: behind an entry of the average stands the noise of those who sent it."""
        if not local:
            checks.reject("local", local, "True, as few clients' noise may be behind an entry", "pass local=True")
        return super().epsilon(rounds, delta, n, sampled, local=True)

    @property
    def neutral(self) -> bool:
        return self.ratio == 1

    def pack(self, problem: Problem, part: torch.Tensor, clients: torch.Tensor, key: Key) -> dict[str, torch.Tensor]:
        if part.shape[1] != problem.d:
            expected = f"a method that uploads changes of all {problem.d} entries"
            checks.reject("method", self.method.name, expected, "choose for example FedAvg, SCAFFOLD or FedProx")
        return vars(Sampled.of(part, count_kept(self.ratio, part.shape[1]), [key.fold(int(i)) for i in clients]))

    def unpack(self, crossed: dict[str, torch.Tensor], d: int) -> torch.Tensor:
        return Sampled(**crossed).expand(d) * (d / crossed["values"].shape[1])


@dataclass(frozen=True)
class Masked:
    """The server's part: that of the method, and for how many clients the masks are."""

    method: Any
    n: int

    @property
    def x(self) -> torch.Tensor:
        return self.method.x


@dataclass(frozen=True)
class MaskedUploads(_Packed):
    """A method whose clients hide their uploads by masks that cancel in the sum (Bonawitz et al. 2017), for teaching.

    An entry crosses as a whole number of 8 bytes, a multiple of `2**-bits`. Each two clients draw a mask from a common
    secret; one adds it and the other subtracts it, modulo 2^64. So an upload is uniform whatever was trained, and the
    sum is right to the last bit. All clients must take part: what lets others fail, shared secrets, is left out, and so
    is the exchange of keys. Neutral: bits None.

    Fields:
        method: one whose server reads the participants' average alone.
        bits: behind the binary point.
    """

    bits: int | None = 32
    exact = True

    def __post_init__(self) -> None:
        checks.instance("method", self.method, Algorithm, "pass for example FedAvg(0.1, 5)")
        if not self.method.averaged:
            expected = "a method whose server reads the participants' average alone"
            checks.reject("method", self.method.name, expected, "choose for example FedAvg, SCAFFOLD or SSF")
        super().__post_init__()
        if self.bits is not None:
            checks.whole("bits", self.bits, 1, 52)
        object.__setattr__(self, "everyone", not self.neutral)
        object.__setattr__(self, "name", f"{self.method.name} + masks")

    @property
    def neutral(self) -> bool:
        return self.bits is None

    def init(self, problem: Problem, x: torch.Tensor, key: Key) -> State:
        server, own = self.method.init(problem, x, key)
        return State(Masked(server, problem.n), own)

    def broadcast(self, server: Masked, key: Key) -> Any:
        return self.method.broadcast(server.method, key)

    def pack(self, problem: Problem, part: torch.Tensor, clients: torch.Tensor, key: Key) -> dict[str, torch.Tensor]:
        if self.weighted:
            part = part * (problem.n * problem.weights[clients]).to(part).view(-1, *[1] * (part.dim() - 1))
        whole = (part.double() * 2.0 ** (self.bits or 0)).round()
        lost = ~(whole.abs() < 2.0**62 / problem.n).flatten(1).all(1)  # of a run that diverges
        return {"masked": whole.nan_to_num().long() + _masks(part, clients, problem.n, key), "lost": lost}

    def unpack(self, crossed: dict[str, torch.Tensor], d: int) -> torch.Tensor:
        total = crossed["masked"].sum(0).double() * 2.0 ** -(self.bits or 0)
        mean = total / len(crossed["masked"])
        return (mean * torch.nan if bool(crossed["lost"].any()) else mean).expand(crossed["masked"].shape)

    def server(self, server: Masked, down: Any, up: Any, clients: torch.Tensor, key: Key) -> tuple[Masked, Any]:
        if not self.neutral and len(clients) < server.n:
            expected = f"all {server.n} clients: the masks of those that are absent do not cancel"
            checks.reject("sampled", len(clients), expected, "leave out sampled, sampler and dropout")
        new, reply = self.method.server(server.method, down, self.unpacked(up, len(server.x), server.x), clients, key)
        return Masked(new, server.n), reply


def _masks(like: torch.Tensor, clients: torch.Tensor, n: int, key: Key) -> torch.Tensor:
    """Of each client (S, ...): what it adds for those behind it, less what it subtracts for those before it."""
    size = like[0].numel()

    def drawn(i: int, j: int) -> torch.Tensor:
        g = key.fold(i, j).generator()
        return torch.randint(256, (8 * size,), generator=g, dtype=torch.uint8).view(torch.int64)

    rows = [
        sum((drawn(i, j) for j in range(i + 1, n)), torch.zeros(size, dtype=torch.int64))
        - sum((drawn(j, i) for j in range(i)), torch.zeros(size, dtype=torch.int64))
        for i in clients.tolist()
    ]
    return torch.stack(rows).view(like.shape).to(like.device)


def _plain(method: Algorithm, up: Any, *names: str) -> dict[str, torch.Tensor]:
    """The tensors of an upload. Raises ValueError where they are more than plain numbers, or lack these names."""
    parts = {f.name: getattr(up, f.name) for f in fields(up)}
    plain = all(isinstance(part, torch.Tensor) and part.is_floating_point() for part in parts.values())
    if not plain or hasattr(type(up), "cost") or not parts.keys() >= {*names}:
        what = "uploads a change dy, in" if names else "uploads"
        expected = f"a method that {what} floating-point tensors that are sent as they are"
        checks.reject("method", method.name, expected, "choose for example FedAvg, SCAFFOLD or FedProx")
    return parts


def _normal(like: torch.Tensor, clients: torch.Tensor, key: Key) -> torch.Tensor:
    """Standard normal numbers; a client's depend on the key and its id alone."""
    rows = [torch.randn(like.shape[1:], generator=key.fold(int(i)).generator(), dtype=like.dtype) for i in clients]
    return torch.stack(rows).to(like.device)
