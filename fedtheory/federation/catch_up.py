"""How a client catches up in a federation after rounds that it missed: six functions, each by the method's class.

In `run` one state serves server and clients. Where they share no memory (`halves`), a method says here what a client
makes of what it is sent, if its messages have a replayed part (a `Replay`, or a class with `missed`) or its `close`
changes the rows of absent clients. Other methods need nothing. A subclass has its parent's. A method of another
distribution registers its own beside its class:

    from fedtheory.federation import catch_up

    @catch_up.apply_step.register
    def _(algorithm: Mine, problem, copy, step, t):
        return copy + step
"""

from functools import singledispatch
from typing import Any

import torch

from fedtheory.algorithms.decomfl import DeComFL
from fedtheory.algorithms.ef21p import EF21P
from fedtheory.algorithms.fedbat import FedBAT
from fedtheory.algorithms.fedmud import FedMUD, Frozen, _model
from fedtheory.algorithms.fedsub import FedSub, Own
from fedtheory.algorithms.fetchsgd import FetchSGD
from fedtheory.algorithms.flss import FLSS, Down, Streamed
from fedtheory.algorithms.projected import ProjectedFedAvg
from fedtheory.algorithms.readings.fedsub import FedSubReading
from fedtheory.algorithms.scaffnew import Scaffnew
from fedtheory.algorithms.ssf import SSF
from fedtheory.algorithms.stc import STC
from fedtheory.core import checks
from fedtheory.core.message import Known
from fedtheory.core.problem import Problem
from fedtheory.maps.compress import groups
from fedtheory.maps.signs import Signs


@singledispatch
def apply_step(algorithm: Any, problem: Problem, copy: Any, step: Any, t: int) -> Any:
    """Return a client's copy of a replayed part with one missed step made.

    Args:
        copy: of the part, as it stood before round t; it stays as it is.
        step: the missed step.
        t: the round from which on the result holds; it has the bits of the server's own.
    """
    what = f"a step of {type(algorithm).__name__}(problem, copy, step, t), which turns one value into the next"
    checks.reject("method", algorithm.name, what, "register it: @catch_up.apply_step.register", TypeError)


@singledispatch
def steps_of_round(algorithm: Any, server: Any, down: Any, up: Any, clients: torch.Tensor, new: Any) -> dict[str, Any]:
    """Return the steps of a round that no broadcast holds, by the path of the part.

    Args:
        server, new: the server's state before and after its line.
        down, up, clients: as the server's line has them.
    """
    return {}


@singledispatch
def complete_message(algorithm: Any, problem: Problem, down: Any) -> Any:
    """Return a message with the parts that its receiver makes of the others."""
    return down


@singledispatch
def copies_of_message(
    algorithm: Any, problem: Problem, copies: dict[str, Any], down: Any, last: int | None, t: int
) -> dict[str, Any]:
    """Return copies that a client makes of a message of round t that came whole, by the path of the part.

    Args:
        copies: those that it has, of round `last`, in which it was last counted (None: never).
    """
    return {}


@singledispatch
def copies_of_reply(algorithm: Any, copies: dict[str, Any], reply: Any) -> dict[str, Any]:
    """Return the copies that a server's reply replaces, by the path of the part."""
    return {}


@singledispatch
def own_after_absence(algorithm: Any, own: Any, at: dict[str, Any], after: dict[str, Any], t: int) -> Any:
    """Return a client's private row (1, .) after a round t that it missed: what `close` does to the rows of others.

    Args:
        at, after: the replayed parts by their path, as they stood in this round and in the next one.
    """
    return own


@apply_step.register
def _(algorithm: EF21P | FetchSGD | STC, problem: Problem, copy: torch.Tensor, step: Any, t: int) -> torch.Tensor:
    return copy + step.expand(len(copy))[0]


@apply_step.register
def _(algorithm: FedBAT, problem: Problem, copy: torch.Tensor, step: Signs, t: int) -> torch.Tensor:
    return copy + step.expand(groups(problem.layout, "layer"))[0]


@apply_step.register
def _(algorithm: SSF, problem: Problem, copy: torch.Tensor, step: Any, t: int) -> torch.Tensor:
    P = step.P.value
    return P.lift(step.x_proj) + (copy - P.lift(P.project(copy)))  # 3, 15


@apply_step.register
def _(algorithm: FedMUD, problem: Problem, copy: Frozen, step: Any, t: int) -> Frozen:
    return Frozen(_model(copy, step.u), step.D)  # 5, 16


@apply_step.register
def _(algorithm: ProjectedFedAvg, problem: Problem, copy: tuple[Any, Any], step: torch.Tensor, t: int) -> Any:
    x, frames = copy
    return x + algorithm.basis(problem.layout, frames, x).lift(step), frames


@complete_message.register
def _(algorithm: ProjectedFedAvg, problem: Problem, down: Any) -> Any:
    x, frames = down.model.value
    if down.P is None or frames is None:
        return down
    return type(down)(down.model, Known(algorithm.basis(problem.layout, frames, x)))


@steps_of_round.register
def _(algorithm: DeComFL, server: Any, down: Any, up: Any, clients: torch.Tensor, new: Any) -> dict[str, Any]:
    return {"model": algorithm.step(down, up.g.mean(0))}  # 10-11


@apply_step.register
def _(algorithm: DeComFL, problem: Problem, copy: Any, step: Any, t: int) -> Any:
    model = copy.map(torch.clone)
    algorithm.rebuild(problem.layout, model, step)
    return model


@copies_of_reply.register
def _(algorithm: Scaffnew, copies: dict[str, Any], reply: Any) -> dict[str, Any]:
    return {"x": reply.x}


# FedSub: a seed is drawn anew, and the dual of a client that was away stays, and turns (12).


@apply_step.register
def _(algorithm: FedSub, problem: Problem, copy: Any, step: Any, t: int) -> Any:
    return step


@copies_of_reply.register
def _(algorithm: FedSub, copies: dict[str, Any], reply: Any) -> dict[str, Any]:
    return {"P": reply.P_next} if reply.P_next else {}


@own_after_absence.register
def _turned(algorithm: FedSub, own: Own, at: dict[str, Any], after: dict[str, Any], t: int) -> Own:
    if not algorithm.dual or at.get("P") is after.get("P"):
        return own
    return Own(algorithm.turn(own.dual, at["P"].value, after["P"].value), own.sent)


@own_after_absence.register
def _(algorithm: FedSubReading, own: Own, at: dict[str, Any], after: dict[str, Any], t: int) -> Own:
    turned = _turned(algorithm, own, at, after, t) if algorithm.rotate and algorithm.absent == "rotate" else own
    ratio = algorithm.rate(t + 1) / algorithm.rate(t)
    return Own(ratio * turned.dual, own.sent) if algorithm.dual and algorithm.rescale_dual and ratio != 1 else turned


# FLSS: who was there in every round of the warm-up, where models come whole, makes the SVD of their changes itself.


@apply_step.register
def _streamed(algorithm: FLSS, problem: Problem, copy: Any, step: torch.Tensor, t: int) -> Any:
    x, G = copy
    if algorithm.projects(t - 1):
        change = G.basis(algorithm.rank).lift(step)
        x = x + change
    else:
        x, change = step, step - x
    return x, algorithm.grown(G, change) if algorithm.samples(t - 1) else G


@steps_of_round.register
def _(algorithm: FLSS, server: Any, down: Down, up: Any, clients: torch.Tensor, new: Any) -> dict[str, Any]:
    if down.P is None:
        return {"model": new.x} if new.t >= algorithm.warm_up else {}
    sent = up.expand(algorithm.groups(down.P.value.low)) if isinstance(up, Signs) else up.dy
    mean = algorithm.mean(server, sent, clients)
    return {"model": algorithm.scaled_up(down.P.value.project(mean) if algorithm.project == "gradient" else mean)}


@complete_message.register
def _(algorithm: FLSS, problem: Problem, down: Down) -> Down:
    if down.P is None or not isinstance(down.model, Streamed):
        return down
    return Down(down.model, Known(down.model.value[1].basis(algorithm.rank)))


@copies_of_message.register
def _(algorithm: FLSS, problem: Problem, copies: dict, down: Down, last: int | None, t: int) -> dict[str, Any]:
    if isinstance(down.model, Streamed):
        return {}
    if t == 0:
        return {"model": (down.model, algorithm.empty(problem, down.model))}
    follows = "model" in copies and last == t - 1
    return {"model": _streamed(algorithm, problem, copies["model"], down.model, t)} if follows else {}
