"""Whether a method and a problem of one's own keep the contract, looked at once a run and not in every step.

What a step returns in the first round of a run is looked at where it returns it, so that a slip is said there, in one
line, and not some calls deeper. Later rounds are played without that.
"""

import re
import sys
from collections.abc import Generator
from dataclasses import FrozenInstanceError, fields, is_dataclass
from types import TracebackType
from typing import Any, NoReturn

import torch

from fedtheory.core import checks
from fedtheory.core.algorithm import Algorithm, State
from fedtheory.core.key import Key
from fedtheory.core.layout import Layout
from fedtheory.core.message import Known, Seed
from fedtheory.core.problem import Constants, Problem

_KEPT = "a tensor, a number, None, a Seed, or a tuple or dataclass of these"
_SLIPS = (TypeError, AttributeError)  # of a step, that are explained
_PARTS = {"server": "init", "down": "broadcast", "up": "client", "own": "init", "reply": "server"}  # where it is made


def _is_message(value: Any) -> bool:
    """Whether it is an instance of a dataclass."""
    return is_dataclass(value) and not isinstance(value, type)


def look_at_problem(problem: Problem) -> None:
    """Check that a problem has the contract's attributes. Raises TypeError or ValueError with the first misfit."""
    kind = type(problem).__name__
    wanted = {
        "n": "self.n = 10",
        "layout": "self.layout = Layout.single(d)",
        "dtype": "self.dtype = torch.float64",
        "device": 'self.device = torch.device("cpu")',
        "weights": "self.weights = torch.full((self.n,), 1 / self.n, dtype=torch.float64)",
    }
    for name, fix in wanted.items():
        if not hasattr(problem, name):
            checks.reject(f"{kind}.{name}", None, "an attribute that __init__ sets", f"write {fix}", TypeError)
    checks.whole(f"{kind}.n", problem.n, 1, fix=f"write {wanted['n']}")
    checks.instance(f"{kind}.layout", problem.layout, Layout, f"write {wanted['layout']}")
    if not isinstance(problem.dtype, torch.dtype) or not problem.dtype.is_floating_point:
        checks.reject(
            f"{kind}.dtype", problem.dtype, "a floating-point type of torch", f"write {wanted['dtype']}", TypeError
        )
    checks.instance(f"{kind}.device", problem.device, torch.device, f"write {wanted['device']}")
    if problem.chunk is not None:
        checks.whole(f"{kind}.chunk", problem.chunk, 1, fix="write chunk = 8, or leave it out")
    checks.instance(f"{kind}.closed_form", problem.closed_form, bool, "write closed_form = False, or leave it out")
    checks.tensor(f"{kind}.weights", problem.weights, (problem.n,), torch.float64)
    if float(problem.weights.min()) < 0:
        expected = "no negative ones: they are the p_i of F = sum_i p_i F_i"
        checks.reject(f"{kind}.weights.min()", float(problem.weights.min()), expected, "pass shares of 0 or more")
    total = float(problem.weights.double().sum())
    if abs(total - 1) > 1e-4:
        checks.reject(f"{kind}.weights.sum()", total, "1: they are the p_i of F = sum_i p_i F_i", "divide by their sum")
    checks.instance(f"{kind}.constants", problem.constants, Constants, "write self.constants = Constants(x_star=...)")
    if problem.constants.x_star is not None:
        checks.tensor(f"{kind}.constants.x_star", problem.constants.x_star, (problem.d,))


class Watched:
    """An algorithm whose steps are looked at: each returns what the next one needs."""

    def __init__(self, algorithm: Algorithm) -> None:
        self.algorithm, self.kind = algorithm, type(algorithm).__name__

    @property
    def gradient_only(self) -> bool:
        return self.algorithm.gradient_only

    def at_steps(self, steps: int) -> "Watched":
        return Watched(self.algorithm.at_steps(steps))

    def chunk(self, problem: Problem) -> int | None:
        return self.algorithm.chunk(problem)

    def init(self, problem: Problem, x: torch.Tensor, key: Key) -> State:
        try:
            state = self.algorithm.init(problem, x, key)
        except _SLIPS as error:
            self._explain("init", error)
            raise
        if not isinstance(state, State):
            self._refuse("init", state, "a State", "end with return State(Server(x), None)")
        if not _is_message(state.server):
            self._refuse("init", state.server, "a dataclass as State.server", "end with return State(Server(x), None)")
        self._look_at_model("init", state.server, x)
        if state.own is not None and not _is_message(state.own):
            fix = f"define a dataclass Own with tensors that lead with N = {problem.n}, or return State(..., None)"
            self._refuse("init", state.own, "a dataclass, or None, as State.own", fix)
        if problem.kept != problem.n and _rows(state.own) == problem.n:
            fix = "write problem.kept instead of problem.n where init makes Own"
            expected = f"{problem.kept} rows: this process keeps so many of the {problem.n} clients"
            checks.reject(f"{self.kind}.init", f"Own of {problem.n} rows", expected, fix)
        self._look_at_rows(state.own, problem.kept, "N", "the clients: row i is client i's")
        return state

    def broadcast(self, server: Any, key: Key) -> Any:
        try:
            down = self.algorithm.broadcast(server, key)
        except _SLIPS as error:
            self._explain("broadcast", error, server=server)
            raise
        if isinstance(down, (dict, list, str, set)):
            self._refuse("broadcast", down, "a dataclass, whose tensors are counted", "end with return Down(server.x)")
        return down

    def address(self, down: Any, clients: torch.Tensor) -> Any:
        found = self.algorithm.address(down, clients)
        if type(found) is not type(down):
            self._refuse("address", found, f"the {type(down).__name__} of broadcast", "end with return down")
        return found

    def client(
        self, problem: Problem, clients: torch.Tensor, own: Any, down: Any, key: Key
    ) -> Generator[Any, None, tuple[Any, Any]]:
        made: dict[str, Any] = {"own": own, "down": down}
        S, at, found, seen = len(clients), 0, None, _seen("down", down)
        try:
            steps = self.algorithm.client(problem, clients, own, down, key)
        except _SLIPS as error:
            self._explain("client", error, **made)
            raise
        if not isinstance(steps, Generator):
            expected = "a generator: it yields each local iterate, (S, .), and returns (Up, Own)"
            self._refuse("client", steps, expected, "write yield y after each local step")
        while True:
            try:
                y = next(steps)
            except StopIteration as stop:
                found = stop.value
                break
            except _SLIPS as error:
                self._explain("client", error, **made)
                raise
            if at == 0:
                checks.instance(f"{self.kind}.client's yield", y, torch.Tensor, "write yield y, the local iterates")
                if y.dim() < 2 or len(y) != S:
                    fix = "start with y = down.x.expand(len(clients), -1), and keep the clients' axis"
                    shape = f"({S}, .): a row for each of the {S} clients"
                    checks.reject(f"{self.kind}.client's yield.shape", tuple(y.shape), shape, fix)
            at += 1
            yield y
        if at == 0:
            self._refuse("client", "no yield", "to yield each local iterate, (S, .)", "write yield y after each step")
        if not isinstance(found, tuple) or len(found) != 2:
            self._refuse("client", found, "to return a pair (Up, Own)", "end with return Up(y - down.x), None")
        checks.unwritten(f"{self.kind}.client", seen)
        up, new = found
        if not _is_message(up):
            self._refuse("client", up, "a dataclass as Up", "define Up with its tensors, and return Up(...), own")
        self._look_at_rows(up, S, "S", "the clients of the round: the server averages, not the client")
        self._look_at_own("client", new, own)
        return up, new

    def server(self, server: Any, down: Any, up: Any, clients: torch.Tensor, key: Key) -> tuple[Any, Any]:
        seen = _seen("server", server) | _seen("down", down)
        try:
            found = self.algorithm.server(server, down, up, clients, key)
        except _SLIPS as error:
            self._explain("server", error, server=server, down=down, up=up)
            raise
        if not isinstance(found, tuple) or len(found) != 2:
            self._refuse("server", found, "a pair: the new Server, and a reply or None", "end with return new, None")
        checks.unwritten(f"{self.kind}.server", seen)
        kind = type(server).__name__
        if type(found[0]) is not type(server):
            self._refuse("server", found[0], f"the new {kind}, as init made it", f"return {kind}(...), None")
        self._look_at_model("server", found[0], server.x)
        self._look_at_form(kind, found[0], server)
        return found

    def close(self, own: Any, clients: torch.Tensor, down: Any, reply: Any) -> Any:
        try:
            found = self.algorithm.close(own, clients, down, reply)
        except _SLIPS as error:
            self._explain("close", error, own=own, down=down, reply=reply)
            raise
        self._look_at_own("close", found, own)
        return found

    # What is refused, and how it is said

    def _refuse(self, step: str, value: Any, expected: str, fix: str) -> NoReturn:
        checks.reject(f"{self.kind}.{step}", value, expected, fix, TypeError)

    def _look_at_model(self, step: str, server: Any, x: torch.Tensor) -> None:
        kind = type(server).__name__
        if not hasattr(server, "x"):
            self._refuse(step, server, "a Server with a field x, the global model (d,)", f"add x to class {kind}")
        found = server.x
        checks.instance(f"{kind}.x", found, torch.Tensor, "let x be the global model, a tensor (d,)")
        if found.shape != x.shape:
            fix = "average over the clients, as in up.dy.mean(0)" if found.dim() > 1 else "keep the model's length"
            checks.reject(f"{kind}.x.shape", tuple(found.shape), f"{tuple(x.shape)}, the model's", f"{fix} ({step})")
        if found.dtype != x.dtype:
            checks.reject(
                f"{kind}.x.dtype", found.dtype, f"{x.dtype}, the problem's", f"call .to(x) ({step})", TypeError
            )
        for name, part in _leaves(server):
            if not _can_be_kept(part):
                fix = "make it a field of the method; what both sides know of the problem: Known(problem.layout)"
                checks.reject(f"{kind}.{name}", part, f"{_KEPT} ({step})", fix, TypeError)

    def _look_at_form(self, label: str, new: Any, old: Any) -> None:
        """What init made keeps its form: a checkpoint is read into what init makes."""
        if new is old:
            return
        if not _fits(new, old):
            fix = "let init make what later rounds keep, as torch.zeros_like(x) for a momentum"
            checks.reject(label, new, f"{_form(old)}, as before this round: a state keeps its form", fix, TypeError)
        if isinstance(old, tuple):
            for at, (one, before) in enumerate(zip(new, old)):
                self._look_at_form(f"{label}[{at}]", one, before)
        elif is_dataclass(old) and not isinstance(old, (Seed, Known)):
            for f in fields(old):
                self._look_at_form(f"{label}.{f.name}", getattr(new, f.name), getattr(old, f.name))

    def _look_at_rows(self, part: Any, rows: int, letter: str, of: str) -> None:
        """A dataclass has tensors that lead with so many rows, and nothing else: stacks of clients are joined so."""
        for name, leaf in _leaves(part):
            label = f"{type(part).__name__}.{name}"
            if isinstance(leaf, torch.Tensor):
                if leaf.dim() == 0 or len(leaf) != rows:
                    expected = f"({rows}, .): {letter} = {rows} leads, {of}"
                    checks.reject(
                        f"{label}.shape", tuple(leaf.shape), expected, f"keep an axis for the {letter} clients"
                    )
            elif not isinstance(leaf, Known):  # client and server are one machine
                expected = f"a tensor that leads with {letter} = {rows}, {of}"
                fix = "make it a tensor with a row for each client; for parts of unlike shape a field each, or one row"
                checks.reject(label, leaf, expected, fix, TypeError)

    def _look_at_own(self, step: str, new: Any, own: Any) -> None:
        if own is None and new is not None:
            fix = "return None for Own, or let init make an Own of N rows: State(server, Own(...))"
            self._refuse(step, new, "None for Own, as init made none", fix)
        if type(new) is not type(own):
            fix = f"return the clients' rows: {type(own).__name__}(...)"
            self._refuse(step, new, f"an {type(own).__name__}, as init made it", fix)
        for (name, leaf), (_, old) in zip(_leaves(new), _leaves(own)):
            label = f"{type(own).__name__}.{name}"
            checks.tensor(label, leaf, tuple(old.shape), old.dtype, finite=False, kinds=None)

    def _explain(self, step: str, error: Exception, **parts: Any) -> None:
        """A slip within a step, where its cause can be told: what was asked of which part, or of a dataclass."""
        text = str(error)
        if isinstance(error, FrozenInstanceError):
            name = text.rpartition("'")[0].rpartition("'")[2]
            fix = f"make a new one: replace(server, {name}=...)"
            self._raise(error, step, f"{name} = ...", "messages and states that stay as they are", fix)
        if isinstance(error, AttributeError):
            owners = [part for part, value in parts.items() if value is error.obj]
            for part in owners if error.obj is not None else owners[-1:]:
                fix = f"let it return a dataclass with the field {error.name}"
                expected = f"{part} with a field {error.name}, which {step} reads"
                self._raise(error, _PARTS[part], error.obj, expected, fix)
        if found := re.search(r"(\w+)\.__init__\(\) got an unexpected keyword argument '(\w+)'", text):
            kind, name = found.groups()
            known = getattr(sys.modules.get(type(self.algorithm).__module__), kind, None)
            known = next((type(part) for part in parts.values() if type(part).__name__ == kind), known)
            if is_dataclass(known):
                names = ", ".join(f.name for f in fields(known))
                fix = f"add {name} to class {kind}, or spell it as one of these"
                self._raise(error, step, name, f"a field of {kind}: {names}", fix)
        if text.startswith("replace() should be called on dataclass instances"):
            given = _given_to("replace", error.__traceback__)
            fix = "replace fields of those, as in replace(server, x=...)"
            self._raise(error, step, given, "a dataclass in replace: server, own, down or up", fix)

    def _raise(self, error: Exception, step: str, value: Any, expected: str, fix: str) -> NoReturn:
        try:
            self._refuse(step, value, expected, fix)
        except TypeError as said:
            raise said from error


def _leaves(part: Any) -> list[tuple[str, Any]]:
    return [] if part is None else [(f.name, getattr(part, f.name)) for f in fields(part)]


def _seen(part: str, of: Any) -> checks.Seen:
    """The tensors of a state or message as they are now, by names such as down.x."""
    return checks.seen_tensors({f"{part}.{name}": leaf for name, leaf in _leaves(of)} if is_dataclass(of) else {})


def _rows(part: Any) -> int | None:
    """With how many its tensors lead."""
    return next((len(leaf) for _, leaf in _leaves(part) if isinstance(leaf, torch.Tensor) and leaf.dim()), None)


def _fits(new: Any, old: Any) -> bool:
    """Whether both are tensors of one shape and type, numbers, tuples of one length, or of one class."""
    if isinstance(old, torch.Tensor):
        return isinstance(new, torch.Tensor) and new.shape == old.shape and new.dtype == old.dtype
    if isinstance(old, (int, float)):
        return isinstance(new, (int, float))
    return type(new) is type(old) and (not isinstance(old, tuple) or len(new) == len(old))


def _form(part: Any) -> str:
    if isinstance(part, torch.Tensor):
        return f"a tensor {tuple(part.shape)}, {part.dtype}"
    if isinstance(part, tuple):
        return f"a tuple of {len(part)}"
    if isinstance(part, (int, float)):
        return "a number"
    return "None" if part is None else f"a {type(part).__name__}"


def _can_be_kept(part: Any) -> bool:
    """In a checkpoint."""
    if isinstance(part, tuple):
        return all(map(_can_be_kept, part))
    if isinstance(part, (torch.Tensor, Seed, Known, int, float)) or part is None:
        return True
    return _is_message(part) and all(_can_be_kept(leaf) for _, leaf in _leaves(part))


def _given_to(function: str, trace: TracebackType | None) -> Any:
    """The first argument of the call in which an error arose."""
    while trace is not None:
        frame, trace = trace.tb_frame, trace.tb_next
        if frame.f_code.co_name == function:
            return frame.f_locals[frame.f_code.co_varnames[0]]
    return function
