"""Any module with any loss on any data: f_i(x) is the mean loss of the module with weights x on client i's samples."""

import copy
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import nn

from fedtheory.core import checks
from fedtheory.core.history import History
from fedtheory.core.key import Key
from fedtheory.core.layout import Layer, Layout
from fedtheory.core.problem import Constants, Problem, own_modes
from fedtheory.problems import partitions, samples
from fedtheory.problems.minibatches import Batch, Minibatches
from fedtheory.problems.models import modules

Loss = Callable[[Any, Any], torch.Tensor]  # outputs (b, ...), targets (b, ...) -> their mean loss, a scalar
_AT_ONCE = 1000  # samples of one forward pass in evaluation
_TRIED = 4  # samples of a trial
_MOVED = 0.05  # deviation of the trial's weights from the module's own
_ALIKE = {torch.float32: 1e-3, torch.float64: 1e-8}  # of a vector's length: far above rounding, far below what differs
_DROPOUTS = {nn.Dropout: None, nn.Dropout1d: 1, nn.Dropout2d: 2, nn.Dropout3d: 3}  # -> trailing axes dropped together


class _Masks:
    """What the dropout layers of one copy multiply by: nothing, masks that are given, or ones that are noted down."""

    def __init__(self) -> None:
        self.given: Iterator[torch.Tensor] | None = None
        self.noted: list[tuple[torch.Size, float]] | None = None

    def applied(self, h: torch.Tensor, p: float, axes: int | None) -> torch.Tensor:
        if self.noted is not None:
            whole = 0 if axes is None else axes
            self.noted.append((torch.Size([*h.shape[: h.dim() - whole], *[1] * whole]), p))
        return h if self.given is None else h * next(self.given)


class _Dropout(nn.Module):
    """Dropout by masks that come from outside."""

    def __init__(self, masks: _Masks, p: float, axes: int | None) -> None:
        super().__init__()
        self.masks, self.p, self.axes = masks, p, axes

    def forward(self, h: torch.Tensor) -> torch.Tensor:
        return self.masks.applied(h, self.p, self.axes) if self.training and self.p else h


class _Scored(nn.Module):
    """A module and its loss as one: inputs, targets, masks -> the batch's loss; without targets the outputs."""

    def __init__(self, module: nn.Module, loss: Loss) -> None:
        super().__init__()
        self.masks = _Masks()
        self.module, self.loss = _with_own_dropout(module, self.masks), loss

    def forward(self, inputs: Any, targets: Any = None, masks: Sequence[torch.Tensor] | None = None) -> torch.Tensor:
        self.masks.given = None if masks is None else iter(masks)
        outputs = self.module(inputs)
        return outputs if targets is None else self.loss(outputs, targets)


def _with_own_dropout(module: nn.Module, masks: _Masks) -> nn.Module:
    for parent in list(module.modules()):
        for name, part in list(parent._modules.items()):
            if isinstance(part, nn.modules.dropout._DropoutNd) and type(part) in _DROPOUTS:
                parent._modules[name] = _Dropout(masks, part.p, _DROPOUTS[type(part)]).train(part.training)
    return module


class Supervised(Minibatches):
    """A problem from a module, a loss and one data set a client: f_i(x) = mean loss on client i's samples.

    Args:
        module: maps a batch of inputs (b, ...) to outputs (b, ...), each sample by itself. It is copied, and its own
            weights are the start; parameters that require no gradient stay as they are, and never cross. A layer of the
            layout is a parameter, by its name: as a matrix, a column for each output.
        loss: (outputs, targets) -> the batch's mean loss, a scalar, such as `nn.MSELoss()`, `nn.CrossEntropyLoss()` or
            a function of yours.
        clients: for each client its inputs and targets, two tensors or arrays (n_i, ...); or a `torch.utils.data`
            Dataset of such pairs. Floating-point inputs are taken in the type of the module's weights.
        key: of the dropout and of nothing else that a run draws, or its seed.
        batch, epochs: as in `ImageClassification`.
        test: inputs and targets, or a Dataset, for `accuracy`; default the clients' data.
        together: whether clients are stacked (`torch.func.vmap`), which suits small networks. None: where a trial
            finds the same numbers.
        device: where to compute.

    Dropout layers (`nn.Dropout`, `Dropout1d` to `3d`) in training mode drop by the round's key and the client alone. So
    a run is the same however its clients are stacked. A loss or gradient on all data, and `accuracy`, drop nothing.
    Other layers that act differently in training (batch normalisation) must be in `eval()` mode.

    Raises TypeError or ValueError for data that do not fit, and for a module or a loss that is not as above.

    >>> from fedtheory import FedAvg, run
    >>> g = torch.Generator().manual_seed(0)
    >>> x = torch.randn(60, 3, generator=g)
    >>> data = [(part, part.sum(1, keepdim=True)) for part in x.split([10, 20, 30])]
    >>> problem = Supervised(nn.Linear(3, 1), nn.MSELoss(), data)
    >>> run(FedAvg(lr=0.1, local_steps=5), problem, rounds=20)["loss"][-1] < 1e-3
    True
    """

    closed_form = False
    _apart = (*Problem._apart, "together", "_op", "_masks")

    @own_modes()
    def __init__(
        self,
        module: nn.Module,
        loss: Loss,
        clients: Sequence[Any],
        key: Key | int = 0,
        *,
        batch: int = 32,
        epochs: int | None = None,
        test: Any = None,
        together: bool | None = None,
        device: str | torch.device = "cpu",
    ) -> None:
        checks.instance("module", module, nn.Module, "pass for example nn.Linear(8, 1)")
        if isinstance(loss, type) or not callable(loss):
            fix = f"pass {loss.__name__}()" if isinstance(loss, type) else "pass for example nn.MSELoss()"
            checks.reject("loss", loss, "a function of (outputs, targets)", fix, TypeError)
        if isinstance(loss, nn.Module) and not list(module.parameters()) and list(loss.parameters()):
            expected = "a module with parameters"
            checks.reject("module", type(module).__name__, expected, "the module comes first, then the loss")
        modules.require_readable(module, type(module).__name__)
        self.device, self.key = checks.device("device", device), Key.of(key)
        self.batch = checks.whole("batch", batch, 1)
        self.epochs = None if epochs is None else checks.count("epochs", epochs)
        self.dtype = next(own.dtype for own in module.parameters() if own.requires_grad)
        checks.dtype("module.dtype", self.dtype)
        samples.require_clients(clients)
        data = [samples.pair(f"clients[{i}]", one, self.dtype) for i, one in enumerate(clients)]
        for i, pair in enumerate(data):
            for name, one, first in zip(("inputs", "targets"), pair, data[0]):
                if one.shape[1:] != first.shape[1:] or one.dtype != first.dtype:
                    like = f"samples as client 0's, {tuple(first.shape[1:])} of {first.dtype}"
                    fix = "make all samples alike; pad sequences to one length, and mask the padding in the loss"
                    checks.reject(f"clients[{i}] {name}", f"{tuple(one.shape[1:])} of {one.dtype}", like, fix)
        self.inputs, self.targets = (torch.cat(parts).to(self.device) for parts in zip(*data))
        self.parts = torch.arange(len(self.inputs)).split([len(x) for x, _ in data])
        tested = (self.inputs, self.targets) if test is None else samples.pair("test", test, self.dtype)
        for name, one, first in zip(("inputs", "targets"), tested, data[0]):
            if one.shape[1:] != first.shape[1:]:
                like = f"{tuple(first.shape[1:])} a sample, as the clients have"
                checks.reject(f"test {name}", tuple(one.shape[1:]), like, "prepare both in the same way")
        self.test = tuple(part.to(self.device) for part in tested)
        self.n = len(data)
        self.weights = torch.tensor([len(x) for x, _ in data], dtype=torch.float64) / len(self.inputs)
        self.constants = Constants()
        scored = _Scored(copy.deepcopy(module).to(self.device), loss)
        self._op = modules.Module(scored, together=False)
        trained = [(name, own) for name, own in scored.module.named_parameters() if own.requires_grad]
        self.layout = Layout(tuple(_layer(name, own) for name, own in trained))
        self.shapes = tuple(own.shape for _, own in trained)
        self.scored, self._masks = scored, {}
        self._require_sound()
        self.together = checks.instance("together", self._stacks(), bool, "") if together is None else bool(together)
        self._op = modules.Module(scored, together=self.together)

    @staticmethod
    def from_frame(
        module: nn.Module,
        loss: Loss,
        frame: Any,
        target: str | list[str],
        by: str | Sequence[torch.Tensor],
        key: Key | int = 0,
        *,
        classes: bool = False,
        test: Any = None,
        **options: Any,
    ) -> "Supervised":
        """A table's rows as samples: all columns but the target's and the client's are inputs, (n, columns).

        Args:
            module, loss, key, options: as in the constructor. The module's weights give the type of the numbers.
            frame: a pandas frame, or the path of a CSV file (then pandas must be installed).
            target: the column to predict, (n, 1); several: (n, columns).
            by: the column whose values name the client of a row, or the rows of each client, as
                `fedtheory.problems.partitions` gives them.
            classes: whether the target is a class, (n,) whole numbers from 0.
            test: another frame or path, with the same columns, for `accuracy`.

        Raises ValueError for columns that are not there, that have gaps or that hold no numbers.
        """
        checks.spelled(options, Supervised.from_frame, Supervised.__init__)
        frame = samples.frame("frame", frame)
        names = [target] if isinstance(target, str) else list(target)
        apart = [*names, by] if isinstance(by, str) else names
        for name in apart:
            checks.choice("column", name, list(frame.columns))
        rest = [name for name in frame.columns if name not in apart]

        def pair(table: Any) -> tuple[torch.Tensor, torch.Tensor]:
            x, y = (samples.numbers(table, some) for some in (rest, names))
            return x, y[:, 0].long() if classes else y

        x, y = pair(frame)
        if isinstance(by, str):
            if frame[by].isna().any():
                checks.reject("column", by, "a client's name in each row", f"frame = frame.dropna(subset=[{by!r}])")
            parts = partitions.by_value(frame[by].to_list())
        else:
            parts = list(by)
            for i, part in enumerate(parts):
                partitions.require_indices(f"by[{i}]", part, len(x))
        tested = None if test is None else pair(samples.frame("test", test))
        return Supervised(module, loss, [(x[part], y[part]) for part in parts], key, test=tested, **options)

    # What a trial finds.

    def _require_sound(self) -> None:
        """The module sees each sample by itself, draws nothing, and the loss is a mean. Raises ValueError."""
        said, some = type(self.scored.module).__name__, self.inputs[:_TRIED]
        targets = self.targets[: len(some)]
        x = self._moved()
        try:
            outputs = self.outputs(x, some)
        except Exception as error:
            expected = f"a module that takes inputs {tuple(some.shape)} of {some.dtype}"
            checks.reject("module", said, expected, samples.hint_of_inputs(some, error))
        if not isinstance(outputs, torch.Tensor):
            fix = "return one tensor from forward, such as an LSTM's last output"
            checks.reject(f"the output of {said}", type(outputs).__name__, "a tensor (b, ...)", fix)
        shape = tuple(outputs.shape)
        self._require_pairs(outputs)
        batch = Batch(torch.arange(len(some))[None], (len(some),))
        try:
            with modules.chance(self.device) as drawn, warnings.catch_warnings():
                warnings.simplefilter("ignore")
                loss = self.losses(x[None], batch)
                random = drawn()
        except Exception as error:
            expected = f"a loss that takes outputs {shape} and targets {tuple(targets.shape)} of {targets.dtype}"
            checks.reject("loss", self._loss_name, expected, samples.hint_of_targets(shape, self.targets, error))
        if tuple(loss.shape) != (1,):
            checks.reject("loss", f"a result of shape {tuple(loss.shape[1:])}", "a scalar", "end it with .mean()")
        if random:
            fix = "use nn.Dropout layers, whose masks are kept; in attention set layer.self_attn.dropout = 0"
            checks.reject("module", said, "a module that draws nothing itself", fix)
        if not bool(loss.isfinite().all()):
            checks.reject("loss", float(loss), "a finite number on the first samples", "scale the data, or the start")
        try:
            each = torch.cat([self.losses(x[None], Batch(torch.tensor([[j]]), (1,))) for j in range(len(some))])
        except Exception:  # such as that of batch normalisation, of one value
            each = torch.full_like(loss, torch.inf)
        if not _alike(each.mean(), loss[0]):
            twice = self.losses(x[None], Batch(torch.arange(len(some)).repeat(2)[None], (2 * len(some),)))
            if not _alike(twice, loss):
                fix = "pass reduction='mean', or divide by the number of samples"
                checks.reject("loss", self._loss_name, "the mean over the batch", fix)
            fix = "call module.eval(), or use nn.GroupNorm; recurrent layers and transformers: batch_first=True"
            checks.reject("module", said, "a module that sees each sample of a batch by itself", fix)

    def _require_pairs(self, outputs: torch.Tensor) -> None:
        """The loss compares each output with its own target. Raises ValueError where it compares each with all.

        Such a loss does not change when the targets alone are put in another order.
        """
        targets = self.targets[: len(outputs)]
        if outputs.shape == targets.shape or outputs.shape[-1] != 1:
            return
        g = Key(0).fold("pairs").generator()
        uniform = lambda shape: torch.rand(shape, generator=g, dtype=self.dtype).to(outputs)
        some = uniform((4, *outputs.shape[1:]))
        wanted = uniform((4, *targets.shape[1:]))
        if not targets.is_floating_point():
            wanted = (
                (torch.arange(4) % 2).to(targets).reshape(4, *[1] * (targets.dim() - 1)).expand(4, *targets.shape[1:])
            )
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                there, back = (self.scored.loss(some, one) for one in (wanted, wanted.flip(0)))
        except Exception:  # what the loss does not take is found later
            return
        if _alike(back, there):
            fix = f"pass y.unsqueeze(-1){'' if targets.is_floating_point() else '.float()'}"
            checks.reject("targets", tuple(targets.shape), f"the shape of the outputs, {tuple(outputs.shape)}", fix)

    @property
    def _loss_name(self) -> str:
        return getattr(self.scored.loss, "__name__", type(self.scored.loss).__name__)

    def _moved(self) -> torch.Tensor:
        start = self.start()
        g = Key(0).fold("weights").generator()
        return start + _MOVED * torch.randn(len(start), generator=g, dtype=torch.float64).to(start)

    def _stacks(self) -> bool:
        """Whether two stacked clients get the gradients of each alone, masks included."""
        x, y = self._moved(), self.start()
        size = min(_TRIED, len(self.inputs))
        rows, index = torch.stack([x, y]), torch.arange(size)
        batch = Batch(torch.stack([index, index.flip(0)]).to(self.device), (size, size), keys=(Key(0), Key(1)))
        alone = torch.cat([self.grads(rows[j : j + 1], batch.client(j)) for j in range(2)])
        self._op, op = modules.Module(self.scored, together=True), self._op
        before = torch.is_warn_always_enabled()
        torch.set_warn_always(True)
        try:
            self.together = True
            with warnings.catch_warnings():
                warnings.simplefilter("error")  # PyTorch warns where it stacks by a loop, which is slower
                return _alike(self.grads(rows, batch), alone)
        except Exception:
            return False
        finally:
            torch.set_warn_always(before)
            self._op = op

    # The problem.

    @property
    def metrics(self) -> tuple[str, ...]:
        return ("loss", "accuracy") if self._classes() else ("loss",)

    def start(self) -> torch.Tensor:
        """The module's own weights, (d,)."""
        return torch.cat([own.detach().flatten() for own in self.scored.parameters() if own.requires_grad])

    def draw(self, clients: torch.Tensor, steps: int, key: Key) -> list[Batch]:
        """Client i's batches and masks depend on the keys and on i alone."""
        batches = super().draw(clients, steps, key)
        if not any(isinstance(part, _Dropout) and part.training and part.p for part in self.scored.modules()):
            return batches
        keys = [[key.fold(int(i), "dropout", k).fold(self.key.hash()) for i in clients] for k in range(steps)]
        return [Batch(b.index, b.size, keys=tuple(of)) for b, of in zip(batches, keys)]

    def losses(self, y: torch.Tensor, xi: Batch) -> torch.Tensor:
        if len(y) > 1 and not (xi.full and self.together and xi.index.shape[1] <= _AT_ONCE):
            return torch.cat([self.losses(y[i : i + 1], xi.client(i)) for i in range(len(y))])
        index = xi.index
        if index.shape[1] == 0:
            return y.new_zeros(len(y))
        if index.shape[1] > _AT_ONCE and not torch.is_grad_enabled() and xi.keys is None:
            parts = index.split(_AT_ONCE, dim=1)
            each = [self._scores(y, part, None) * part.shape[1] for part in parts]
            return torch.stack(each).sum(0) / index.shape[1]
        return self._scores(y, index, xi.keys)

    def grads(self, y: torch.Tensor, xi: Batch) -> torch.Tensor:
        if len(y) > 1 and not (xi.full and self.together):
            return torch.cat([self.grads(y[i : i + 1], xi.client(i)) for i in range(len(y))])
        leaf = y.detach().requires_grad_()
        with torch.enable_grad():
            if max(xi.size) == 0:
                return torch.zeros_like(y)
            return torch.autograd.grad(self._scores(leaf, xi.index, xi.keys).sum(), leaf)[0]

    def _scores(self, y: torch.Tensor, index: torch.Tensor, keys: Sequence[Key] | None) -> torch.Tensor:
        """Losses (S,) of models y (S, d) on the samples `index` (S, b)."""
        at = index.to(self.device)
        given = [self.inputs[at], self.targets[at]]
        if keys is not None:
            given.append(self._drawn_masks(y[:1], given[0][0], keys))  # type: ignore[arg-type]
        return self._op.called(y.split([shape.numel() for shape in self.shapes], dim=-1), *given)

    def _drawn_masks(self, y: torch.Tensor, inputs: torch.Tensor, keys: Sequence[Key]) -> list[torch.Tensor]:
        """What each dropout layer multiplies by, (S, ...): 0, or 1 / (1 - p)."""
        count = len(inputs)
        if count not in self._masks:
            masks = self.scored.masks
            self._masks[count] = masks.noted = []
            with torch.no_grad():
                self.scored(inputs)
            masks.noted = None
        rows = []
        for key in keys:
            g = key.generator()
            rows.append([_mask(shape, p, g, self.dtype) for shape, p in self._masks[count]])
        return [torch.stack(layer).to(self.device) for layer in zip(*rows)]

    @torch.no_grad()
    def loss(self, x: torch.Tensor) -> float:
        """F(x) over all clients' samples."""
        return float(self.losses(x[None], Batch(torch.arange(len(self.inputs))[None], (len(self.inputs),))))

    @torch.no_grad()
    def accuracy(self, x: torch.Tensor) -> float:
        """Share of the test targets that are the class with the largest output.

        Raises ValueError where targets are no classes.
        """
        if not self._classes():
            fix = "record 'loss', or pass a function (problem, x) -> number as a metric"
            checks.reject("metrics", "accuracy", "whole-number targets, one a row of outputs (b, classes, ...)", fix)
        right = 0
        for inputs, targets in zip(*(part.split(_AT_ONCE) for part in self.test)):
            right += int((self.outputs(x, inputs).argmax(1) == targets).sum())
        return right / self.test[1].numel()

    @torch.no_grad()
    def outputs(self, x: torch.Tensor, inputs: torch.Tensor) -> torch.Tensor:
        """What the module with weights x (d,) makes of inputs (b, ...)."""
        weights = [part[None] for part in x.split([shape.numel() for shape in self.shapes])]
        return self._op.called(weights, inputs.to(self.device)[None])[0]

    def _classes(self) -> bool:
        """Whether the targets are classes of outputs (b, classes, ...)."""
        y = self.targets
        if y.is_floating_point():
            return False
        out = self.outputs(self.start(), self.inputs[:1])
        return out.dim() == y.dim() + 1 and out.shape[2:] == y.shape[1:]

    def export(self, x: torch.Tensor | History) -> dict[str, torch.Tensor]:
        """The module's `state_dict` with the weights x (d,), or with those of a History, by name and on the CPU."""
        x = x.x if isinstance(x, History) else x
        return modules.state_dict(self.scored.module, checks.tensor("x", x, (self.d,)))


def _layer(name: str, own: torch.Tensor) -> Layer:
    rows = own[0].numel() if own.dim() > 1 else own.numel()
    return Layer(name, rows, own.numel() // rows)


def _mask(shape: torch.Size, p: float, g: torch.Generator, dtype: torch.dtype) -> torch.Tensor:
    kept = torch.rand(shape, generator=g, dtype=torch.float64) >= p
    return kept.to(dtype) / (1 - p) if p < 1 else kept.to(dtype)


def _alike(found: torch.Tensor, wanted: torch.Tensor) -> bool:
    return bool((found - wanted).norm() <= _ALIKE[wanted.dtype] * wanted.norm())
