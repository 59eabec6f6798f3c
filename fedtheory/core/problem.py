"""A federated problem: N clients, their losses and gradients, and the constants that theory needs."""

import copy
import hashlib
import re
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cache, cached_property, wraps
from types import MappingProxyType
from typing import Any, ClassVar, Protocol, Self, runtime_checkable

import torch

from fedtheory.core import checks, fingerprints
from fedtheory.core.basis import Basis
from fedtheory.core.key import Key
from fedtheory.core.layout import Layout

Shift = Callable[[int, torch.Tensor], torch.Tensor]  # layer j, (S, its size) -> the layer moved, a new tensor


@runtime_checkable
class Classifier(Protocol):
    """What an algorithm may ask of the network behind a classification's losses."""

    @property
    def classes(self) -> int:
        """How many there are."""
        ...

    @property
    def head(self) -> Any:
        """The last linear map, of `n_in` features."""
        ...

    def classify(self, x: torch.Tensor, features: torch.Tensor) -> torch.Tensor:
        """The head alone: x (G, d), features (G, b, head.n_in) -> logits (G, b, classes)."""
        ...


@dataclass(frozen=True)
class Outputs:
    """What the networks of S clients, stacked, make of their batches of up to b samples.

    Fields:
        labels: (S, b), int64.
        features: what the head, the network's last linear map, is given, (S, b, q).
        logits: (S, b, classes).
        head: the logits (S, any, classes) that the clients' heads make of other features (S, any, q).
        at: Outputs of other models (S, d) on the same batches, without gradient.
        mean: over the samples of each client that count, (S, b) -> (S,).
    """

    labels: torch.Tensor
    features: torch.Tensor
    logits: torch.Tensor
    head: Callable[[torch.Tensor], torch.Tensor]
    at: Callable[[torch.Tensor], "Outputs"]
    mean: Callable[[torch.Tensor], torch.Tensor]


Penalty = Callable[..., torch.Tensor]  # Outputs, and tensors that lead with S -> a term of each client's loss, (S,)


@dataclass(frozen=True)
class Constants:
    """What is known of a problem; None where it is not.

    Fields:
        L: smoothness of every client loss, max_i L_i.
        mu: strong convexity of the global loss F (negative: weak convexity of an indefinite quadratic).
        sigma2: bound on the variance of one stochastic client gradient, sup over x where it is finite.
        heterogeneity: (1/N) sum_i ||grad F_i(x*)||^2.
        gradient_bound2: B_g^2 >= (1/N) sum_i ||grad F_i(x)||^2 for all x (FedSub, Assumption 3).
        x_star: the minimiser (or the saddle point of an indefinite quadratic), shape (d,).
        f_star: F(x_star).
    """

    L: float | None = None
    mu: float | None = None
    sigma2: float | None = None
    heterogeneity: float | None = None
    gradient_bound2: float | None = None
    x_star: torch.Tensor | None = None
    f_star: float | None = None


def _at_a_model(evaluate: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(evaluate)
    def evaluated(self: Any, x: torch.Tensor, *more: Any, **named: Any) -> Any:
        checks.tensor("x", x, (self.d,), finite=False)
        return evaluate(self, x, *more, **named)

    return evaluated


def _draws(self: "Problem", clients: torch.Tensor, steps: int, key: Key, found: Any) -> None:
    name = type(self).__name__
    if isinstance(found, Exception):
        return
    if not hasattr(found, "__getitem__") or not hasattr(found, "__len__"):
        fix = "end with return [sample] * steps, or one for each step"
        checks.reject(f"{name}.draw", found, f"a sequence of the samples of {steps} steps", fix, TypeError)
    if len(found) < steps:
        fix = "draw for all steps at once: one sample a step, each for the given clients"
        checks.reject(f"len({name}.draw)", len(found), f"a sample for each of the {steps} steps", fix)


def _full(self: "Problem", clients: torch.Tensor, found: Any) -> None:
    if found is None:
        fix = "return the sample whose gradient is grad F_i, as for example the clients themselves"
        checks.reject(
            f"{type(self).__name__}.full", None, "the sample that holds all of a client's data", fix, TypeError
        )


def _grads(self: "Problem", y: torch.Tensor, xi: Any, found: Any) -> None:
    name = type(self).__name__
    if isinstance(found, Exception):
        if self.closed_form and re.search("does not require grad|[Ii]nference tensor", str(found)):
            expected = "False where grads uses autograd, which is off otherwise"
            checks.reject(f"{name}.closed_form", True, expected, "write closed_form = False in the class")
        return
    _rows(f"{name}.grads", found, tuple(y.shape), "row i is grad f_i(y_i), of client i alone")
    if found.dtype != y.dtype:
        checks.reject(f"{name}.grads.dtype", found.dtype, f"{y.dtype}, as y has", "keep the problem's dtype", TypeError)


def _losses(self: "Problem", y: torch.Tensor, xi: Any, found: Any) -> None:
    if not isinstance(found, Exception):
        _rows(
            f"{type(self).__name__}.losses", found, (len(y),), "entry i is f_i(y_i), so sum over all axes but the first"
        )


def _rows(name: str, found: Any, shape: tuple[int, ...], why: str) -> None:
    checks.instance(name, found, torch.Tensor, f"return a tensor {shape}: {why}")
    if tuple(found.shape) != shape:
        checks.reject(f"{name}.shape", tuple(found.shape), f"{shape} for y of {shape[0]} clients", why)


_RETURNED = {"draw": _draws, "full": _full, "grads": _grads, "losses": _losses}
_STEPS = {
    "draw": ("clients", "steps", "key"),
    "full": ("clients",),
    "grads": ("y", "xi"),
    "losses": ("y", "xi"),
}


@cache
def _complete(kind: type) -> None:
    checks.steps(kind, _STEPS)


@cache
def _constructor(kind: type) -> Callable[..., None]:
    return checks.fitting(kind.__init__, kind.__name__, None)


@contextmanager
def own_modes() -> Iterator[None]:
    """Leave the caller's modes: no inference mode, which has no gradients, no autocast, which rounds (and which a
    run's threads would not have), and tensors that name no device on the CPU, where generators are."""
    with torch.inference_mode(False), ExitStack() as more:
        for kind in filter(torch.is_autocast_enabled, ("cpu", "cuda")):
            more.enter_context(torch.autocast(kind, enabled=False))
        if torch.get_default_device().type != "cpu":
            more.enter_context(torch.device("cpu"))
        yield


class Problem(ABC):
    """N client losses F_i of one flat parameter vector, stacked, and F = sum_i p_i F_i.

    Shapes: S clients at a time, `clients` (S,) int64; parameters (S, d). A *sample* is what one local step sees: the xi
    of the papers. Samples are drawn for all N clients in one call and then picked. So client i's sample of a round
    depends on the key and on i alone, not on who else takes part or on how the work is cut.

    Attributes:
        n: N, the number of clients.
        layout: the layers of the parameter vector.
        dtype, device: of parameters and gradients.
        weights: p, shape (N,), float64, summing to 1: the client weights of F.
        constants: what is known of the problem; nothing, where a class does not say.
        closed_form: whether `grads` is written out; False where it uses autograd, which `run` then leaves on.
        chunk: how many clients are best stacked at a time; None: all. `run` may override it.
        origin: what was read from files, if anything: name -> {"sha256": of the content, ...}.
    """

    closed_form = True
    chunk: int | None = None
    origin: Mapping[str, Any] = MappingProxyType({})

    def __init_subclass__(cls) -> None:
        """Models are looked at before they are evaluated, arguments of what runs in every step once it has failed."""
        for name, returned in _RETURNED.items():
            if name in cls.__dict__:
                setattr(cls, name, checks.explained(cls.__dict__[name], returned))
        for name in ("loss", "grad", "error", "accuracy"):
            if name in cls.__dict__:
                setattr(cls, name, _at_a_model(cls.__dict__[name]))

    def __new__(cls, *given: Any, **named: Any) -> Self:
        _complete(cls)
        if given or named:  # a copy has neither
            _constructor(cls)(*given, **named)
        return super().__new__(cls)

    n: int
    layout: Layout
    dtype: torch.dtype
    device: torch.device
    weights: torch.Tensor
    constants: Constants = Constants()
    _apart: ClassVar = ("layout", "device", "constants", "chunk", "_kept")  # attributes that `fingerprint` leaves out

    @property
    def uneven(self) -> bool:
        """Whether some clients have no samples left in the last local steps of a round."""
        return False

    @property
    def steps(self) -> int:
        """The most local steps that a client has samples for, where a round is a number of epochs."""
        checks.reject("problem", type(self).__name__, "a problem that counts epochs", "pass local_steps=5")

    def steps_of(self, clients: torch.Tensor) -> list[int]:
        """How many local steps each client (S,) has samples for. For an `uneven` problem."""
        raise NotImplementedError

    @property
    def d(self) -> int:
        """Length of the parameter vector."""
        return self.layout.size

    @property
    def rate(self) -> float:
        """A step size that suits plain gradient steps: 1/L, or 0.1 where L is not known."""
        return 1 / self.constants.L if self.constants.L else 0.1

    @property
    def metrics(self) -> tuple[str, ...]:
        """What `run` records where it is told nothing: the error where x* is known, else the loss."""
        return ("loss",) if self.constants.x_star is None else ("error",)

    @property
    def kept(self) -> int:
        """How many rows Own has here: all n, or in a sharded run those of the clients that this process keeps."""
        return vars(self).get("_kept", self.n)

    def keeping(self, kept: int) -> Self:
        """The same problem, where private state has so many rows; it shares all data with this one."""
        other = copy.copy(self)
        vars(other)["_kept"] = kept
        return other

    @abstractmethod
    def draw(self, clients: torch.Tensor, steps: int, key: Key) -> Sequence[Any]:
        """The samples xi_i^k of `steps` local steps: a sequence over k of samples for the given clients."""

    @abstractmethod
    def full(self, clients: torch.Tensor) -> Any:
        """The sample that holds all of a client's data: its gradient is grad F_i."""

    @abstractmethod
    def grads(self, y: torch.Tensor, xi: Any) -> torch.Tensor:
        """Row i: grad f_i(y_i; xi_i). y (S, d) -> (S, d)."""

    @abstractmethod
    def losses(self, y: torch.Tensor, xi: Any) -> torch.Tensor:
        """Entry i: f_i(y_i; xi_i). y (S, d) -> (S,)."""

    def losses_at(self, y: torch.Tensor, shift: Shift, xi: Any) -> torch.Tensor:
        """Entry i: f_i(y_i + v; xi_i), where shift(j, layer) adds to layer j of y the part of v in it.

        A problem that needs only one layer at a time overrides this, so that neither v nor y + v is ever held.
        """
        moved = [shift(j, y[:, where]) for j, where in enumerate(self.layout.slices)]
        return self.losses(torch.cat(moved, dim=-1), xi)

    def restrict(self, P: Basis, x: torch.Tensor, xi: Any) -> Callable[[torch.Tensor, int], torch.Tensor]:
        """The projected gradient on the affine subspace x + P b: (b, k) -> P^T grad f_i(x + P b_i; xi_i^k).

        xi is what `draw` gave; b (S, r) -> (S, r). A problem that can evaluate it within the subspace overrides this.
        """
        return lambda b, k: P.project(self.grads(x + P.lift(b), xi[k]))

    @property
    def classifier(self) -> Classifier:
        """The network behind the losses.

        Raises ValueError where there is none.
        """
        checks.reject("problem", type(self).__name__, "a problem with a network", "pass an ImageClassification")

    def penalised(self, y: torch.Tensor, xi: Any, penalty: Penalty, *extras: torch.Tensor) -> torch.Tensor:
        """Row i: grad in y_i of f_i(y_i; xi_i) + penalty(outputs, *extras)_i. For a problem with a `classifier`."""
        raise NotImplementedError

    def count_labels(self, xi: Any) -> torch.Tensor:
        """How many samples of each class xi holds, (S, classes), int32. For a problem with a `classifier`."""
        raise NotImplementedError

    @property
    def clients(self) -> torch.Tensor:
        """All clients, (N,)."""
        return torch.arange(self.n)

    def fingerprint(self) -> str:
        """SHA-256 over the problem's data, to tell one problem from another (16 hex digits).

        That is all its attributes but device, constants, cached properties and how clients are stacked. They are
        numbers, texts, tensors, arrays and networks, also within containers, dataclasses and other objects. Of a
        function its name, its instructions and the plain values that it has captured count. Of an object that does not
        say what it holds, only its type counts, with a warning.
        """
        digest, unread = hashlib.sha256(repr(self.layout).encode()), []
        for name, value in sorted(vars(self).items()):
            if name not in self._apart and not isinstance(getattr(type(self), name, None), cached_property):
                for part in fingerprints.content_bytes(name, value, unread):
                    digest.update(part)
        if unread:
            warnings.warn(
                f"{type(self).__name__}.{unread[0]}: a checkpoint or a kept run of a problem with another one would be "
                "taken for this one's. Fix: keep it as numbers, texts, tensors, arrays, or a dataclass of them",
                stacklevel=2,
            )
        return digest.hexdigest()[:16]

    def start(self) -> torch.Tensor:
        """x^0 where the user names none: zeros, (d,)."""
        return torch.zeros(self.d, dtype=self.dtype, device=self.device)

    @_at_a_model
    def loss(self, x: torch.Tensor) -> float:
        """F(x), x (d,)."""
        losses = self.losses(x.expand(self.n, -1), self.full(self.clients))
        return float(losses.double().cpu() @ self.weights)

    @_at_a_model
    def grad(self, x: torch.Tensor) -> torch.Tensor:
        """grad F(x), x (d,) -> (d,)."""
        grads = self.grads(x.expand(self.n, -1), self.full(self.clients))
        return self.weights.to(grads) @ grads

    @_at_a_model
    def error(self, x: torch.Tensor) -> float:
        """Return the relative error ||x - x*|| / ||x*||, the papers' metric (SSF eq. 132, FedSub Sec. 5.1); ||x|| where
        x* = 0.

        Raises ValueError where x* is not known.
        """
        x_star = self.constants.x_star
        if x_star is None:
            checks.reject("x_star", None, "a problem with a known solution", "record 'loss' instead of 'error'")
        norm = float(torch.linalg.vector_norm(x_star))
        return float(torch.linalg.vector_norm(x - x_star)) / (norm if norm > 0 else 1.0)

    def accuracy(self, x: torch.Tensor) -> float:
        """Share of test samples that the model x classifies correctly.

        Raises ValueError where the problem is no classification.
        """
        checks.reject("metrics", "accuracy", "a problem with classes", "record 'loss' instead of 'accuracy'")
