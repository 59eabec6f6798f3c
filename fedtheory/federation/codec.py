"""A message as bytes and plain metadata, and back: the bytes of every entry that `cost` charges, and nothing else.

Metadata is what JSON holds: which parts there are, shapes, types of numbers, the names of seeds. Nothing is unpickled,
no name is imported: a reader makes the dataclasses that the method's own file names, and nothing else. A `Seed` is an
integer of 8 bytes, and its name, the last of its key's path, tells which of the receiver's own functions makes the
value. A part whose price is its own says beside its `cost` what crosses: `crosses`, or `missed` where the receiver has
a copy (see `core.message`).
"""

import math
import struct
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, NoReturn

import torch

from fedtheory.core import checks
from fedtheory.core.algorithm import Algorithm
from fedtheory.core.key import Key
from fedtheory.core.message import Known, Seed, field_names
from fedtheory.core.problem import Problem

_NUMBERS = {"int": "<q", "bool": "<q", "float": "<d"}
_TYPES = ("float64", "float32", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8", "bool")
_DTYPES = {name: getattr(torch, name) for name in _TYPES}
_DEPTH, _PARTS = 32, 10**6  # of a message


@dataclass(frozen=True)
class Parcel:
    """What is carried: one message of one round, to or from one client.

    Fields:
        round: the round that it belongs to.
        kind: "down", "up", "reply"; or "state", what a client keeps.
        metadata: plain: None, numbers, texts, lists and dicts of them.
        data: the payload.
    """

    round: int
    kind: str
    metadata: dict[str, Any]
    data: bytes

    @property
    def payload(self) -> int:
        """Bytes, as the method's count has them."""
        return len(self.data)


class Writer:
    """Writes messages to one receiver, one after the other.

    Args:
        client: the id of the client that it goes to or comes from.
        steps: of a part with `missed` and its path: the steps that this receiver is sent, each with the round from
            which on it holds and the part of it that the receiver has; None where it is sent the value. Only what a
            server sends at the start of a round may leave out what both sides know: elsewhere there are no steps.
    """

    def __init__(
        self, client: int, steps: Callable[[Any, str], list[tuple[int, Any, Any]] | None] | None = None
    ) -> None:
        self.steps, self.client, self.data = steps, client, bytearray()

    def write(self, part: Any, whole: Any = None, path: str = "") -> Any:
        """The metadata of a part; its bytes are added to `data`. `whole` is the dataclass that it is a field of."""
        if part is None:
            return None
        if isinstance(part, torch.Tensor):
            return self._tensor(part)
        if isinstance(part, Seed):
            self.data += struct.pack("<q", part.key.seed)
            return {"seed": list(part.key.path)}
        if self.steps is not None and isinstance(part, Known):
            return "known"
        if self.steps is not None and hasattr(type(part), "missed"):
            return self._replayed(part, self.steps(part, path), path)
        if hasattr(type(part), "crosses"):
            return {"part": self.write(part.crosses(whole, self.client), part, path)}
        if hasattr(type(part), "cost"):
            fix = "play it in one process, with `run`, or write `crosses` or `missed` beside its `cost`"
            checks.reject("message", type(part).__name__, "parts that say what crosses of them", fix, TypeError)
        if isinstance(part, tuple):
            return {"tuple": [self.write(one, whole, f"{path}.{i}") for i, one in enumerate(part)]}
        if is_dataclass(part):
            names = field_names(type(part))
            written = {name: self.write(getattr(part, name), part, _join(path, name)) for name in names}
            return {"class": type(part).__name__, "fields": written}
        if isinstance(part, (bool, int, float)):
            kind = type(part).__name__
            self.data += struct.pack(_NUMBERS[kind], part)
            return {"number": kind}
        checks.reject("message", type(part).__name__, "tensors, numbers, and parts of them", "send tensors", TypeError)

    def _tensor(self, part: torch.Tensor) -> Any:
        """Dense in the order of its strides, which the receiver restores: products have the same bits then."""
        name = str(part.dtype).removeprefix("torch.")
        strides = part.stride()
        order = sorted(range(part.dim()), key=lambda i: (-strides[i], i))
        moved = part.detach().permute(order)
        self.data += moved.contiguous().cpu().reshape(-1).view(torch.uint8).numpy().tobytes()
        node: dict[str, Any] = {name: list(part.shape)}
        if order != list(range(part.dim())):
            node["order"] = order
        return node

    def _replayed(self, part: Any, steps: list[tuple[int, Any, Any]] | None, path: str) -> Any:
        kind = type(part).__name__
        if steps is None:
            return {"class": kind, "value": self.write(part.copy, part, path)}
        written = []
        for _, step, held in steps:
            if held is None:
                written.append(self.write(step, part, path))
                continue
            names = field_names(type(step))
            kept = [name for name in names if getattr(step, name) is held]
            node = {n: "held" if n in kept else self.write(getattr(step, n), step, _join(path, n)) for n in names}
            written.append({"class": type(step).__name__, "fields": node})
        return {"class": kind, "rounds": [r for r, _, _ in steps], "steps": written}


@dataclass(frozen=True)
class Vocabulary:
    """What a receiver knows before any message: what its method's messages are made of.

    Fields:
        kinds: the dataclasses that the method's file, and those of the methods it derives from, name.
        makers: of every seed by its name; a function of the key, and what the value would cost.
        known: the values that both sides know, by their path in a message.
        device: where tensors are put.
    """

    kinds: Mapping[str, type]
    makers: Mapping[str, Seed[Any]]
    known: Mapping[str, Known[Any]]
    device: torch.device

    @staticmethod
    def of(algorithm: Algorithm, problem: Problem, server: Any, down: Any) -> "Vocabulary":
        """Of a method, from its first state and its first message."""
        kinds: dict[str, type] = {}
        for base in reversed(type(algorithm).__mro__):
            module = vars(sys.modules[base.__module__])
            found = [one for one in module.values() if isinstance(one, type) and is_dataclass(one)]
            kinds |= {one.__name__: one for one in found if not issubclass(one, (Algorithm, Problem))}
        makers: dict[str, Seed[Any]] = {}
        known: dict[str, Known[Any]] = {}
        for root in (server, down):
            for path, part in walk(root):
                if isinstance(part, Seed):
                    makers[str(part.key.path[-1])] = part
                elif isinstance(part, Known) and root is down:
                    known[path] = part
        return Vocabulary(kinds, makers, known, problem.device)


class Reader:
    """Reads what a `Writer` wrote. Raises ValueError in one line for whatever it cannot be.

    Args:
        data: the payload.
        words: what the receiver knows.
        replay: of a part's path, the rounds and the steps that came, or no rounds and the value: what the receiver
            makes of its copy.
        held: of a field's name: what the receiver had in its last message.
        client: the id of the client that it goes to or comes from.
        strict: a tensor, or a dataclass that the method sends in its place in some rounds, must stand where `like` has
            one, a tensor with its type and, but for counts and places, its shape.
    """

    def __init__(
        self,
        data: bytes,
        words: Vocabulary,
        replay: Callable[[str, list[int] | None, Any], Any] | None = None,
        held: Mapping[str, Any] | None = None,
        client: int = 0,
        strict: bool = False,
    ) -> None:
        self.data, self.words, self.replay, self.held, self.client = data, words, replay, held or {}, client
        self.at, self.parts, self.strict = 0, 0, strict

    def read(self, node: Any, like: Any = None, path: str = "") -> Any:
        """The next message, of its metadata. `like`: the receiver's own of this kind, for parts that are made of it."""
        return self._read(node, like, None, path, 0)

    def end(self) -> None:
        """Nothing is left."""
        if self.at != len(self.data):
            _refuse("payload", f"{len(self.data)} bytes", f"the {self.at} that its metadata names")

    def _read(self, node: Any, like: Any, whole: Any, path: str, depth: int) -> Any:
        part = self._part(node, like, whole, path, depth)
        if self.strict and isinstance(like, torch.Tensor) and not is_dataclass(part):
            of = type(part).__name__ if not isinstance(part, torch.Tensor) else str(part.dtype)
            if of != str(like.dtype):
                _refuse(path, of, str(like.dtype))
            if like.is_floating_point():
                checks.tensor(f"parcel's {path}", part, tuple(like.shape), like.dtype)
        return part

    def _part(self, node: Any, like: Any, whole: Any, path: str, depth: int) -> Any:
        self.parts += 1
        if depth > _DEPTH or self.parts > _PARTS:
            _refuse("metadata", f"{self.parts} parts, {depth} deep", f"at most {_PARTS} parts, {_DEPTH} deep")
        if node is None:
            return None
        if node == "known":
            return self.words.known.get(path, Known(None))
        if not isinstance(node, dict) or not node or not all(isinstance(name, str) for name in node):
            _refuse("metadata", node, "a part as the codec writes it")
        first = next(iter(node))
        if first in _DTYPES:
            return self._tensor(node, first)
        if first == "number" and node["number"] in tuple(_NUMBERS):
            return self._number(node["number"])
        if first == "seed":
            return self._seed(node["seed"])
        if first == "tuple" and isinstance(node["tuple"], list):
            inside = enumerate(node["tuple"])
            return tuple(self._read(one, _entry(like, i), whole, f"{path}.{i}", depth + 1) for i, one in inside)
        if first == "part" and hasattr(type(like), "arrived"):
            return like.arrived(self._read(node["part"], None, None, path, depth + 1), whole, self.client)
        if first == "class":
            return self._dataclass(node, like, path, depth)
        _refuse("metadata", node, "a part as the codec writes it")

    def _dataclass(self, node: dict[str, Any], like: Any, path: str, depth: int) -> Any:
        name = node["class"]
        kind = self.words.kinds.get(name) if isinstance(name, str) else None
        if kind is None:
            _refuse("class", name, f"one of {', '.join(sorted(self.words.kinds))}")
        if "fields" in node:
            given, names = node["fields"], field_names(kind)
            if hasattr(kind, "missed") or not isinstance(given, dict) or tuple(given) != names:
                found = tuple(given) if isinstance(given, dict) else given
                _refuse(f"{name}'s fields", found, f"{', '.join(names)}")
            values = []
            for part in names:
                if given[part] == "held":
                    if part not in self.held:
                        _refuse(f"{name}.{part}", "held", "a part that came with an earlier message")
                    values.append(self.held[part])
                else:
                    inside = getattr(like, part, None)
                    values.append(self._read(given[part], inside, like, _join(path, part), depth + 1))
            try:
                return kind(*values)
            except Exception as error:
                _refuse(name, str(error), "what its class takes")
        if self.replay is None or not hasattr(kind, "missed"):
            _refuse("metadata", node, "a part as the codec writes it")
        if "value" in node:
            value = self._read(node["value"], getattr(like, "copy", None), like, path, depth + 1)
            return kind.received(self.replay(path, None, value))  # type: ignore[attr-defined]
        rounds, steps = node.get("rounds"), node.get("steps")
        if (
            not isinstance(rounds, list)
            or not _counts(rounds)
            or not isinstance(steps, list)
            or len(steps) != len(rounds)
        ):
            _refuse(f"{name}'s steps", rounds, "a round for each step")
        made = [self._read(step, None, None, path, depth + 1) for step in steps]
        return kind.received(self.replay(path, rounds, made))  # type: ignore[attr-defined]

    def _take(self, size: int) -> bytes:
        left = len(self.data) - self.at
        if size > left:
            _refuse("payload", len(self.data), f"{size} more bytes than the {left} that are left")
        self.at += size
        return self.data[self.at - size : self.at]

    def _number(self, kind: str) -> int | float | bool:
        (value,) = struct.unpack(_NUMBERS[kind], self._take(8))
        if not math.isfinite(value):
            _refuse("number", value, "a finite number")
        return bool(value) if kind == "bool" else value

    def _seed(self, path: Any) -> Seed[Any]:
        (number,) = struct.unpack("<q", self._take(8))
        if not isinstance(path, list) or not path or not all(type(one) in (int, str) for one in path):
            _refuse("seed", path, "the path of its key, texts and integers")
        own = self.words.makers.get(str(path[-1]))
        if own is None:
            _refuse("seed", path[-1], f"one of {', '.join(sorted(self.words.makers)) or 'none'}")
        return Seed(Key(number, tuple(path)), own.make, own.dense)

    def _tensor(self, node: dict[str, Any], name: str) -> torch.Tensor:
        dtype, shape = _DTYPES[name], node[name]
        if not _counts(shape) or len(shape) > 8:
            _refuse("shape", shape, "a list of counts")
        order = node.get("order", list(range(len(shape))))
        if not _counts(order) or sorted(order) != list(range(len(shape))):
            _refuse("order", order, f"an order of {len(shape)} axes")
        count = math.prod(shape)
        if count > 0 and max(shape, default=0) > len(self.data):
            _refuse("shape", shape, f"entries that lie in {len(self.data)} bytes")
        raw = self._take(count * dtype.itemsize)
        stored = [shape[i] for i in order]
        if count == 0:
            flat = torch.empty(0, dtype=dtype)
            if max(shape, default=0) > _PARTS:
                _refuse("shape", shape, f"axes of at most {_PARTS} where there are no entries")
        else:
            flat = torch.frombuffer(bytearray(raw), dtype=torch.uint8)
            if dtype == torch.bool and bool((flat > 1).any()):
                _refuse("bool", int(flat.max()), "0 or 1")
            flat = flat.view(dtype)
        if dtype.is_floating_point and not bool(torch.isfinite(flat).all()):
            bad = float(flat[~torch.isfinite(flat)][0])
            _refuse("entry", bad, "finite numbers")
        back = [order.index(i) for i in range(len(shape))]
        return flat.view(stored).permute(back).to(self.words.device)


def walk(part: Any, path: str = "") -> list[tuple[str, Any]]:
    """Every part of a message or state with its path, such as "frozen.D": the parts within a part come after it."""
    found = [(path, part)]
    if isinstance(part, (Seed, Known, torch.Tensor)):
        return found
    if hasattr(type(part), "missed"):
        return found + walk(part.copy, path)
    if isinstance(part, tuple) and not hasattr(part, "_fields"):
        return found + [leaf for i, one in enumerate(part) for leaf in walk(one, f"{path}.{i}")]
    if is_dataclass(part) and not isinstance(part, type):
        return found + [leaf for f in fields(part) for leaf in walk(getattr(part, f.name), _join(path, f.name))]
    return found


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _entry(like: Any, i: int) -> Any:
    return like[i] if isinstance(like, tuple) and i < len(like) else None


def _counts(value: Any) -> bool:
    """Whether it is a list of integers from 0 on."""
    return isinstance(value, list) and all(type(one) is int and one >= 0 for one in value)


def _refuse(name: str, value: Any, expected: str) -> NoReturn:
    checks.reject(f"parcel's {name}", value, expected, "refuse it, and leave its sender out of this round")
