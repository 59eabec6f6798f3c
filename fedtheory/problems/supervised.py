"""Any module with any loss on any data: f_i(x) is the mean loss of the module with weights x on client i's samples."""

import copy
import warnings
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, Self

import torch
from torch import nn

from fedtheory.core import checks
from fedtheory.core.history import History, model_of
from fedtheory.core.key import Key
from fedtheory.core.layout import Layer, Layout
from fedtheory.core.problem import Constants, Problem, own_modes
from fedtheory.problems import layers, partitions, samples
from fedtheory.problems.layers import Loss, Scored
from fedtheory.problems.minibatches import Batch, Minibatches
from fedtheory.problems.models import modules, perceptron
from fedtheory.problems.models.networks import Flatten, Network, Op, Pool, ReLU

_STACKED = 2**21  # bytes of all stacked clients together
_AT_ONCE = 1000  # samples of one forward pass in evaluation
_TRIED = 4  # samples of a trial


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
        test: inputs and targets, or a Dataset, for `accuracy`; or one for each client; default the clients' data.
        norm: of batch normalisation in training mode. In a local step it takes the batch's moments, always.
            "moments": it keeps nothing; for evaluation each client sends the moments of a batch that `key` draws.
            "shared": running statistics are a part of the model that clients train and the server averages. The local
            loss has half their squared distance from the batch's moments more, so their momentum is the step size.
            "local": a client keeps its own layers of batch normalisation, running statistics included (FedBN: Li et al.
            2021, arXiv:2102.07623). They never cross, and the method goes into `LocalLayers`.
        together: whether clients are stacked, by `torch.func.vmap`. None: where a trial finds the same numbers, and, on
            a CPU, where the tensors that autograd keeps of a client's step have less than 192 KiB on average. The
            choice depends on the module and on shapes alone.
        device: where to compute.

    Dropout layers (`nn.Dropout`, `Dropout1d` to `3d`, in `nn.MultiheadAttention`) in training mode drop by the round's
    key and the client alone. So a run is the same however its clients are stacked. A loss or gradient on all data, and
    `accuracy`, drop nothing. Other layers that mix the samples of a batch are refused.

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
    revision = 2  # perceptrons, convolutions, attention and GRUs are other operations than before, with other rounding
    _apart = (
        *Problem._apart,
        "together",
        "_op",
        "_eval",
        "_note",
        "_masks",
        "_network",
        "_written_out",
        "_local",
        "_looked_at",
        "slope",
    )
    _network: Network | None = None  # the package's operations, where they are the module's
    _written_out = False  # whether their gradient is
    _local: torch.Tensor | None = None  # what clients keep, (S, its size), in their view of the problem
    slope: torch.Tensor | None = None  # the last gradient in it

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
        norm: str = "moments",
        together: bool | None = None,
        device: str | torch.device = "cpu",
    ) -> None:
        checks.instance("module", module, nn.Module, "pass for example nn.Linear(8, 1)")
        if isinstance(loss, type) or not callable(loss):
            made = f"{'nn.' * hasattr(nn, getattr(loss, '__name__', ''))}{getattr(loss, '__name__', '')}()"
            fix = f"pass {made}" if isinstance(loss, type) else "pass for example nn.MSELoss()"
            checks.reject("loss", loss, "a function of (outputs, targets)", fix, TypeError)
        if isinstance(loss, nn.Module) and not list(module.parameters()) and list(loss.parameters()):
            expected = "a module with parameters"
            checks.reject("module", type(module).__name__, expected, "swap module and loss")
        modules.require_readable(module, type(module).__name__, "module")
        if isinstance(loss, nn.Module) and any(own.requires_grad for own in loss.parameters()):
            fix = "make it a part of the module, or call loss.requires_grad_(False)"
            checks.reject("loss", type(loss).__name__, "a loss without parameters that train", fix)
        self.device, self.key = checks.device("device", device), Key.of(key)
        self.batch, self.norm = checks.whole("batch", batch, 1), checks.choice("norm", norm, layers.NORMS)
        self.epochs = None if epochs is None else checks.count("epochs", epochs)
        checks.instance("together", together, (bool, type(None)), "pass True, or leave it out")
        self.dtype = next(own.dtype for own in module.parameters() if own.requires_grad)
        checks.dtype("module.dtype", self.dtype)
        for name, own in module.named_parameters():
            if own.requires_grad and own.dtype != self.dtype:
                fix = f"call module.to({self.dtype})"
                checks.reject("module.dtype", f"{own.dtype} of {name}", f"{self.dtype}, as the other parameters", fix)
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
        tested, self.tested = (self.inputs, self.targets), self.parts
        if test is not None:
            tested, sizes = samples.test(test, len(data), self.dtype)
            self.tested = torch.arange(len(tested[0])).split(sizes) if len(sizes) > 1 else ()
        for name, one, first in zip(("inputs", "targets"), tested, data[0]):
            if one.shape[1:] != first.shape[1:]:
                like = f"{tuple(first.shape[1:])} a sample, as the clients have"
                checks.reject(f"test {name}", tuple(one.shape[1:]), like, "prepare both in the same way")
        if tested[0].dtype != self.inputs.dtype:
            expected = f"{self.inputs.dtype}, as the clients have"
            checks.reject("test inputs", tested[0].dtype, expected, "prepare both in the same way")
        self.test = tuple(part.to(self.device) for part in tested)
        self.n = len(data)
        self.weights = torch.tensor([len(x) for x, _ in data], dtype=torch.float64) / len(self.inputs)
        self.constants = Constants()
        scored = Scored(modules.copied(module, "module", self.device), loss, norm)
        trained = [(name, own) for name, own in scored.module.named_parameters() if own.requires_grad]
        kept = tuple(f"{name}.".lstrip(".") for name, _ in scored.norms if norm == "local")
        local = [name.startswith(kept) for name, _ in trained] if kept else [False] * len(trained)
        crossing, self.local = (
            tuple(_layer(*own) for own, at_home in zip(trained, local) if at_home == which) for which in (False, True)
        )
        if not crossing:
            checks.reject("norm", norm, "'shared' where all layers are batch normalisation", "pass norm='shared'")
        self.layout = Layout(crossing)
        # the model vector, and behind it what a client keeps, in the order in which the module has them
        at = sorted(range(len(trained)), key=local.__getitem__)
        self.shapes, self._places = tuple(trained[j][1].shape for j in at), tuple(map(at.index, range(len(at))))
        evaluating = copy.deepcopy(scored, {id(own): own for own in (*scored.parameters(), *scored.buffers())})
        for _, part in evaluating.norms:
            part.eval()
        self._op, self._eval = (modules.Module(one, together=False) for one in (scored, evaluating))
        self.scored, self._masks, self._named = scored, {}, frozenset(module.state_dict())
        self._local = self.local_start()[None] if self.local else None
        self._require_sound()
        self._require_classes_of_test()
        self._require_spread()
        self._note = modules.Module(layers.Noting(scored, self._notes_together()), together=False)
        self.together = False
        alone, kept = self._alone()
        self._network = self._translated(alone)
        self._written_out, cuda = self._is_perceptron(), self.device.type == "cuda"
        if together is None:
            together = self._written_out or ((cuda or kept < modules.KEPT) and self._stacks(alone))
            self.chunk = None if cuda else max(1, _STACKED // max(kept, 1)) if together else 1
        elif together and not self._written_out and not self._stacks(alone, slow=True):
            expected = "None for a module and a loss whose stacked clients have not each their own gradient"
            checks.reject("together", True, expected, "leave it out")
        self.together = bool(together)
        self._op = modules.Module(scored, together=self.together)
        self._local = None

    @staticmethod
    def from_frame(
        module: nn.Module,
        loss: Loss,
        frame: Any,
        target: str | int | list[Any],
        by: str | int | Sequence[torch.Tensor] | None = None,
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
            target: the column to predict, (n, 1); a list of several: (n, columns).
            by: the column whose values name the client of a row, or the rows of each client, as
                `fedtheory.problems.partitions` gives them.
            classes: whether the target is a class, (n,) whole numbers from 0.
            test: another frame or path, with the same columns, for `accuracy`.

        Raises ValueError for columns that are not there, that have gaps or that hold no numbers.
        """
        checks.spelled(options, Supervised.from_frame, Supervised.__init__)
        frame, by = samples.frame("frame", frame), checks.plain(by)  # names may be numbers of NumPy's
        if by is None or "clients" in options:
            fix = "spell it by" if "clients" in options else samples.hint_of_clients(frame)
            expected = "the column that names each row's client as by, or the rows of each client"
            checks.reject("clients" if "clients" in options else "by", options.get("clients", by), expected, fix)
        if (name := getattr(by, "name", None)) is not None:
            checks.reject("by", "a column", "its name, or the rows of each client", f"pass by={name!r}")
        names = list(target) if isinstance(target, (list, tuple)) else [target]
        named = isinstance(by, (str, int))
        apart = [*names, by] if named else names
        for name in apart:
            checks.choice("column", name, list(frame.columns))
        rest = [name for name in frame.columns if name not in apart]
        if not rest:
            checks.reject("frame", list(frame.columns), "columns besides the target's and the client's", "add inputs")

        def pair(table: Any) -> tuple[torch.Tensor, torch.Tensor]:
            x, y = (samples.numbers(table, some) for some in (rest, names))
            return x, samples.as_classes(y, names) if classes else y

        x, y = pair(frame)
        if named:
            if frame[by].isna().any():
                checks.reject("column", by, "a client's name in each row", f"frame = frame.dropna(subset=[{by!r}])")
            parts = partitions.by_value(frame[by].to_list())
        else:
            try:
                parts = [torch.as_tensor(part) for part in by]
            except (TypeError, ValueError):
                fix = "pass by=partitions.by_value(names), from fedtheory.problems"
                checks.reject("by", type(by).__name__, "a column's name, or the rows of each client", fix)
            for i, part in enumerate(parts):
                partitions.require_indices(f"by[{i}]", part, len(x))
        tested = None if test is None else pair(samples.frame("test", test))
        return Supervised(module, loss, [(x[part], y[part]) for part in parts], key, test=tested, **options)

    # What a trial finds.

    def _require_sound(self) -> None:
        """The module sees each sample by itself, draws nothing, and the loss is a mean. Raises ValueError."""
        said, at = type(self.scored.module).__name__, self._tried()
        some, targets = self.inputs[at], self.targets[at]
        x, moments = modules.moved(self.start()), self._plain_moments()
        held, given = modules.buffers(self.scored.module), (x._version, some._version)
        try:
            outputs = self._outputs(x, some, moments)
        except Exception as error:
            self._require_tensor(some)
            expected = f"a module that takes inputs {tuple(some.shape)} of {some.dtype}"
            checks.reject("module", said, expected, samples.hint_of_inputs(some, error))
        if changed := modules.changed(self.scored.module, held):
            fix = f"call eval() on the part with {changed[0]}, or leave that buffer alone in forward"
            checks.reject("module", said, "a module whose buffers stay as they are", fix)
        if some._version != given[1]:
            fix = "take inplace=True out of its beginning, and write x = x - 1 for x -= 1"
            checks.reject("module", said, "a module that leaves its inputs alone", fix)
        if x._version != given[0]:
            fix = "bound or normalise the weights where they are used, not in their place as max_norm does"
            checks.reject("module", said, "a module whose forward leaves its weights alone", fix)
        shape = tuple(outputs.shape)
        self._require_pairs(outputs)
        loss_of = lambda index: self._evaluated(x, self.inputs[index], self.targets[index], moments)
        try:
            with modules.chance(self.device) as drawn, warnings.catch_warnings():
                warnings.simplefilter("ignore")
                loss = loss_of(at)
                random = drawn()
        except Exception as error:
            expected = f"a loss that takes outputs {shape} and targets {tuple(targets.shape)} of {targets.dtype}"
            crossed = isinstance(self.scored.loss, nn.CrossEntropyLoss)
            checks.reject(
                "loss", self._loss_name, expected, samples.hint_of_targets(shape, self.targets, error, crossed)
            )
        if tuple(loss.shape) != (1,):
            checks.reject("loss", f"a result of shape {tuple(loss.shape[1:])}", "a scalar", "end it with .mean()")
        if random:
            fix = "use nn.Dropout layers, whose masks are kept"
            checks.reject("module", said, "a module that draws nothing itself", fix)
        if not bool(loss.isfinite().all()):
            checks.reject("loss", float(loss), "a finite number on a few samples", "scale the data, or the start")
        try:
            each = torch.cat([loss_of(at[j : j + 1]) for j in range(len(some))])
        except Exception:  # such as that of batch normalisation, of one value
            each = torch.full_like(loss, torch.inf)
        if not modules.alike(each.mean(), loss[0]):
            if not modules.alike(loss_of(at.repeat(2)), loss):
                fix = "pass reduction='mean', or divide by the number of samples"
                checks.reject("loss", self._loss_name, "the mean over the batch", fix)
            try:
                alone = torch.cat([self._outputs(x, one[None], moments) for one in some])
            except Exception:  # as above
                alone = torch.full_like(outputs, torch.inf)
            if modules.alike(alone, outputs):
                fix = "divide by the batch: cross_entropy(outputs, targets, ..., reduction='none').mean()"
                checks.reject("loss", self._loss_name, "the mean of one number a sample", fix)
            fix = (
                "pass batch_first=True to recurrent layers and transformers; normalise by nn.BatchNorm or nn.GroupNorm"
            )
            checks.reject("module", said, "a module that sees each sample of a batch by itself", fix)

    def _require_classes_of_test(self) -> None:
        """Test targets are classes where the clients' are. Raises ValueError."""
        if self.test[1] is self.targets or not self._classes():
            return
        y, count = self.test[1], self._one_output().shape[1]
        strange = y[(y < 0) | (y >= count)]  # but for what the loss ignores in training, too
        if y.is_floating_point() or not bool(torch.isin(strange, self.targets).all()):
            found = f"{y.dtype} from {float(y.min()):g} to {float(y.max()):g}"
            checks.reject("test targets", found, f"classes from 0 to {count - 1}", "encode them as the clients'")

    @torch.no_grad()
    def _require_spread(self) -> None:
        """A layer with moments runs once, and a batch has more than one value to normalise. Raises ValueError."""
        if not self.scored.norms:
            return
        seen = self.scored.apart().noted(self.inputs[:1])
        for place, (name, part) in enumerate(self.scored.norms):
            count = [at for at, _ in seen].count(place)
            if not part.running and count != 1:
                fix = "make a layer for each place, or pass norm='shared'" if count else "take it out of the module"
                checks.reject(
                    "module", f"{name} runs {count} times", "layers of batch normalisation that run once", fix
                )
        if self.batch == 1 and any(not bool(pair[1].any()) for _, pair in seen):
            expected = "at least 2, as batch normalisation makes one value a channel to 0"
            checks.reject("batch", 1, expected, "pass batch=2 or more, or take nn.LayerNorm")

    @torch.no_grad()
    def _notes_together(self) -> bool:
        """Whether two clients' moments are the same in one pass and in one pass each."""
        at = self._tried()
        size = len(at) // 2
        if not self.scored.norms or not size:
            return True
        own, some = self.scored.apart(), self.inputs[at[: 2 * size]]
        alone = [own.noted(one) for one in some.split(size)]
        try:
            both = enumerate(own.noted(some, 2))
            return all(modules.alike(pair[:, [j]], alone[j][k][1]) for k, (_, pair) in both for j in range(2))
        except Exception:  # rows that do not divide among the clients
            return False

    def _tried(self) -> torch.Tensor:
        """Indices of the samples of a trial: the first ones, and those of the largest and smallest target and input."""
        tried = list(range(min(_TRIED, len(self.inputs))))
        for values in (self.targets, self.inputs):
            if values.numel():
                each = values.reshape(len(values), -1)
                tried += [int(each.amax(1).double().argmax()), int(each.amin(1).double().argmin())]
        return torch.tensor(list(dict.fromkeys(tried)), device=self.device)

    def _require_tensor(self, some: torch.Tensor) -> None:
        """The module returns one tensor. Raises TypeError for more than that, and passes where it returns nothing."""
        try:
            with torch.no_grad():
                found = self._eval.module(some, (), (), self._plain_moments())
        except Exception:
            return
        if not isinstance(found, torch.Tensor):
            part = ".logits" if hasattr(found, "logits") else "[0]"
            fix = f"write a module around it whose forward returns self.of(x){part}"
            checks.reject(f"the output of {type(self.scored.module).__name__}", type(found).__name__, "a tensor", fix)

    def _require_pairs(self, outputs: torch.Tensor) -> None:
        """The loss compares each output with its own target. Raises ValueError where it compares each with all.

        Such a loss does not change when the targets alone are put in another order.
        """
        targets = self.targets[: len(outputs)]
        squeezed = targets.shape == (*outputs.shape, 1)
        if outputs.shape == targets.shape or not (squeezed or outputs.shape[-1] == 1):
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
        if modules.alike(back, there):
            fix = f"pass y.unsqueeze(-1){'' if targets.is_floating_point() else '.float()'}"
            fix = "leave out the module's squeeze, or pass y.squeeze(-1)" if squeezed else fix
            checks.reject("targets", tuple(targets.shape), f"the shape of the outputs, {tuple(outputs.shape)}", fix)

    @property
    def _loss_name(self) -> str:
        return getattr(self.scored.loss, "__name__", type(self.scored.loss).__name__)

    @property
    def _trial(self) -> tuple[torch.Tensor, Batch]:
        """Models of two clients (2, d), and a batch of each."""
        size = min(_TRIED, len(self.inputs))
        index = torch.arange(size)
        batch = Batch(torch.stack([index, index.flip(0)]).to(self.device), (size, size), keys=(Key(0), Key(1)))
        return torch.stack([modules.moved(self.start()), self.start()]), batch

    def _alone(self) -> tuple[torch.Tensor, int]:
        """The gradients of two clients, one by one, and what a client's step keeps: see `modules.kept`."""
        (rows, batch), found = self._trial, []
        step = lambda: found.append(self.grads(rows[:1], batch.client(0)))
        said = type(self.scored.module).__name__
        try:
            kept = modules.kept(step, rows) * min(self.batch, max(map(len, self.parts))) // batch.size[0]
            wanted = self._autograds(rows[:1], batch.client(0))
        except Exception as error:
            fix = "take activation checkpointing, torch.no_grad and sparse=True out of it"
            checks.reject("module", said, f"a module with a gradient ({type(error).__name__}: {error})", fix)
        if bool(wanted.isfinite().all()) and not modules.alike(found[0][0], wanted):
            fix = "compute it anew, without activation checkpointing and with weights read in forward alone"
            checks.reject("module", said, "a module whose gradient is autograd's when it is called with weights", fix)
        return torch.cat([*found, self.grads(rows[1:], batch.client(1))]), kept

    def _autograds(self, y: torch.Tensor, xi: Batch) -> torch.Tensor:
        """The gradient (d,) of a copy that has the weights y (1, d) as its own, as plain PyTorch finds it."""
        plain = modules.carrying(self.scored, torch.cat(self._weights(self._whole(y)), 1)[0])
        trained = [own for own in plain.parameters() if own.requires_grad]
        at = xi.index[0].to(self.device)
        masks = [one[0] for one in self._drawn_masks(self.inputs[at], xi.keys or ())]
        with torch.enable_grad():
            loss = plain(self.inputs[at], self.targets[at], masks)
            slopes = torch.autograd.grad(loss, trained, allow_unused=True, materialize_grads=True)
        placed = sorted(zip(self._places, slopes), key=lambda pair: pair[0])
        return torch.cat([slope.flatten() for _, slope in placed])[: self.d]

    def _translated(self, alone: torch.Tensor) -> Network | None:
        """The module as the package's operations; None where it is not a chain of them, or has other gradients."""
        ops = modules.plain(self.scored.module)
        if not ops or self.local or self.inputs.dim() not in (2, 4):
            return None
        chain: list[Op] = [] if self.inputs.dim() == 4 else [Flatten()]
        for op in ops:  # ReLU of a pooled image is the same and takes a quarter of the time
            behind = isinstance(op, (Pool, Flatten)) and chain and isinstance(chain[-1], ReLU)
            chain.insert(len(chain) - bool(behind), op)
        self._network = Network("", (1, 1, 1), 1, tuple(chain))
        rows, batch = self._trial
        try:
            found = torch.cat([self.grads(rows[j : j + 1], batch.client(j)) for j in range(2)])
            return self._network if modules.alike(found, alone) else None
        except Exception:  # such as that of a linear map on images
            return None
        finally:
            self._network = None

    def _is_perceptron(self) -> bool:
        """Whether it is a perceptron under cross-entropy, whose gradient is written out."""
        loss, y = self.scored.loss, self.targets
        plain = type(loss) is nn.CrossEntropyLoss and repr(vars(loss)) == repr(vars(nn.CrossEntropyLoss()))
        plain = plain and y.dtype == torch.int64 and y.dim() == 1 and int(y.min()) >= 0
        return plain and self._network is not None and perceptron.is_perceptron(self._network)

    def _stacks(self, alone: torch.Tensor, slow: bool = False) -> bool:
        """Whether two stacked clients get the gradients of each alone, masks included; `slow`: also by a loop."""
        if not modules.stackable(self.scored.module):
            return False
        rows, batch = self._trial
        self._op, op = modules.Module(self.scored, together=True), self._op
        before = torch.is_warn_always_enabled()
        torch.set_warn_always(True)
        try:
            self.together = True
            with warnings.catch_warnings():
                warnings.simplefilter("ignore" if slow else "error")  # PyTorch warns where it stacks by a loop
                return modules.alike(self.grads(rows, batch), alone)
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
        return self._own_weights(self.layout.layers)

    def local_start(self) -> torch.Tensor:
        """What each client keeps, as the module has it."""
        return self._own_weights(self.local)

    def _own_weights(self, some: Sequence[Layer]) -> torch.Tensor:
        of = dict(self.scored.module.named_parameters())
        return torch.cat([of[layer.name].detach().flatten() for layer in some])

    def with_local(self, kept: torch.Tensor) -> Self:
        """The problem as clients see it that keep so much, (S, its size). Methods leave what they did in `slope`."""
        other = copy.copy(self)
        other._local, other.slope = kept, None
        return other

    def keep(self, kept: torch.Tensor) -> torch.Tensor:
        """In a client's view: what it keeps from now on."""
        self._local = kept
        return kept

    def _whole(self, y: torch.Tensor) -> torch.Tensor:
        """Models y (S, d), and behind them what clients keep."""
        return torch.cat([y, self._kept_layers().expand(len(y), -1)], 1) if self.local else y

    def _kept_layers(self) -> torch.Tensor:
        if self._local is None:
            expected = "a method in LocalLayers, where clients keep their own batch normalisation"
            fix = "write LocalLayers(method), around all other parts and with none around the problem, or norm='shared'"
            checks.reject("norm", self.norm, expected, fix)
        return self._local

    def _weights(self, whole: torch.Tensor) -> list[torch.Tensor]:
        """(S, .) -> a flat tensor a parameter, in the module's order."""
        return self._ordered(whole.split(self._sizes, dim=-1))

    @property
    def _sizes(self) -> list[int]:
        return [shape.numel() for shape in self.shapes]

    def _ordered(self, parts: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        return [parts[at] for at in self._places]

    def draw(self, clients: torch.Tensor, steps: int, key: Key) -> list[Batch]:
        """Client i's batches and masks depend on the keys and on i alone."""
        batches = super().draw(clients, steps, key)
        if not self.scored.dropped:
            return batches
        keys = [[key.fold(int(i), "dropout", k).fold(self.key.hash()) for i in clients] for k in range(steps)]
        return [Batch(b.index, b.size, keys=tuple(of)) for b, of in zip(batches, keys)]

    def losses(self, y: torch.Tensor, xi: Batch) -> torch.Tensor:
        return self._losses(self._whole(y), xi)

    def _losses(self, whole: torch.Tensor, xi: Batch) -> torch.Tensor:
        if len(whole) > 1 and not (xi.full and self.together and xi.index.shape[1] <= _AT_ONCE):
            return torch.cat([self._losses(whole[i : i + 1], xi.client(i)) for i in range(len(whole))])
        index = xi.index
        if index.shape[1] == 0:
            return whole.new_zeros(len(whole))
        weights = self._weights(whole)
        in_parts = index.shape[1] > _AT_ONCE and not torch.is_grad_enabled() and xi.keys is None
        if in_parts and not self.scored.norms:
            parts = index.split(_AT_ONCE, dim=1)
            each = [self._scores(weights, part, None) * part.shape[1] for part in parts]
            return torch.stack(each).sum(0) / index.shape[1]
        return self._scores(weights, index, xi.keys)

    def grads(self, y: torch.Tensor, xi: Batch) -> torch.Tensor:
        slope = self._grads(self._whole(y), xi)
        if not self.local:
            return slope
        self.slope = slope[:, self.d :]
        return slope[:, : self.d]

    def _grads(self, whole: torch.Tensor, xi: Batch) -> torch.Tensor:
        if len(whole) > 1 and not (xi.full and self.together):
            return torch.cat([self._grads(whole[i : i + 1], xi.client(i)) for i in range(len(whole))])
        if max(xi.size) == 0:
            return torch.zeros_like(whole)
        if self._network is not None and self._written_out:
            at = xi.index.to(self.device)
            share = torch.full((1, 1), 1 / at.shape[1], dtype=self.dtype, device=self.device)
            return perceptron.gradient(self._network, whole, self.inputs[at].flatten(2), self.targets[at], share)
        leaves = [part.detach().requires_grad_() for part in whole.split(self._sizes, dim=-1)]
        with torch.enable_grad():
            losses = self._scores(self._ordered(leaves), xi.index, xi.keys)
            return torch.cat(torch.autograd.grad(losses.sum(), leaves, materialize_grads=True), dim=1)

    def _scores(self, weights: Sequence[torch.Tensor], index: torch.Tensor, keys: Sequence[Key] | None) -> torch.Tensor:
        """Losses (S,) in training of models on the samples `index` (S, b)."""
        at = index.to(self.device)
        given = [self.inputs[at], self.targets[at]]
        if self._network is not None and (len(at) == 1 or not self._network.convolutional):
            outputs = self._network.forward(iter(weights), self._network.blocked(given[0], self.dtype))
            if len(at) == 1:
                return self.scored.loss(outputs[0], given[1][0])[None]
            return torch.func.vmap(self.scored.loss)(outputs, given[1])
        if keys is not None:
            given.append(self._drawn_masks(given[0][0], keys))  # type: ignore[arg-type]
        return self._op.called(weights, *given)

    def _drawn_masks(self, inputs: torch.Tensor, keys: Sequence[Key]) -> list[torch.Tensor]:
        """What each dropout layer multiplies by, (S, ...): 0, or 1 / (1 - p)."""
        count = len(inputs)
        if count not in self._masks:
            self._masks[count] = self.scored.shapes_of_masks(inputs)
        rows = []
        for key in keys:
            g = key.generator()
            rows.append([layers.mask(shape, p, g, self.dtype) for shape, p in self._masks[count]])
        join = torch.stack if len(rows) > 1 else lambda layer: layer[0][None]
        return [join(layer).to(self.device) for layer in zip(*rows)]

    # Evaluation.

    @torch.no_grad()
    def loss(self, x: torch.Tensor) -> float:
        """F(x) over all clients' samples."""
        moments = self.moments(x)
        if not self.local:
            return float(self._evaluated(x, self.inputs, self.targets, moments))
        each = [
            self._at(i)._evaluated(x, self.inputs[at], self.targets[at], moments) for i, at in enumerate(self.parts)
        ]
        return float(torch.cat(each).double().cpu() @ self.weights)

    @torch.no_grad()
    def accuracy(self, x: torch.Tensor) -> float:
        """Share of the test targets that are the class with the largest output.

        Targets below 0 and the loss's `ignore_index` do not count. Raises ValueError where targets are no classes.
        """
        if not self.local:
            self._require_classes()
            inputs, targets = self.test
            return self._right(x, inputs, targets, self.moments(x)) / self._count(targets)
        counts = [int(self._counted(self.test[1][at]).sum()) for at in self.tested]
        sizes = torch.tensor(counts or [1] * self.n).double()
        return float(self.accuracies(x) @ (sizes / sizes.sum().clamp(min=1)))

    @torch.no_grad()
    def accuracies(self, x: torch.Tensor) -> torch.Tensor:
        """`accuracy` of each client's model, (N,), on its own test data where it has some, else on all of them."""
        self._require_classes()
        moments, found = self.moments(x), []
        if not self.local:
            inputs, targets = self.test
            right = torch.cat(list(self._correct(x, inputs, targets, moments))).cpu()
            if not self.tested:
                return (right.sum().double() / self._count(targets)).expand(self.n)
            counts = [(int(right[at].sum()), self._count(targets[at])) for at in self.tested]
            return torch.tensor([hits / count for hits, count in counts], dtype=torch.float64)
        for i in range(self.n):
            x_i, y_i = (part[self.tested[i]] for part in self.test) if self.tested else self.test
            found.append(self._at(i)._right(x, x_i, y_i, moments) / self._count(y_i))
        return torch.tensor(found, dtype=torch.float64)

    def _at(self, i: int) -> Self:
        """The problem as client i sees it."""
        return self.with_local(self._kept_layers()[i : i + 1]) if self.local else self

    def _require_classes(self) -> None:
        if not self._classes():
            fix = "record 'loss', or pass a function (problem, x) -> number as a metric"
            checks.reject(
                "metrics", "accuracy", "whole-number targets, one a row of outputs (b, classes > 1, ...)", fix
            )

    def _right(self, x: torch.Tensor, inputs: torch.Tensor, targets: torch.Tensor, moments: list[torch.Tensor]) -> int:
        return sum(int(some.sum()) for some in self._correct(x, inputs, targets, moments))

    def _correct(
        self, x: torch.Tensor, inputs: torch.Tensor, targets: torch.Tensor, moments: list[torch.Tensor]
    ) -> Iterator[torch.Tensor]:
        for some, of in zip(inputs.split(_AT_ONCE), targets.split(_AT_ONCE)):
            yield (self._outputs(x, some, moments).argmax(1) == of) & self._counted(of)

    def _counted(self, targets: torch.Tensor) -> torch.Tensor:
        """Whether a target is a class, and not one that the loss ignores."""
        return (targets >= 0) & (targets != getattr(self.scored.loss, "ignore_index", -1))

    def _count(self, targets: torch.Tensor) -> int:
        """The targets that count, at least 1."""
        return max(1, int(self._counted(targets).sum()))

    @torch.no_grad()
    def outputs(self, x: torch.Tensor, inputs: torch.Tensor) -> torch.Tensor:
        """What the module with weights x (d,) makes of inputs (b, ...), in evaluation."""
        return self._outputs(x, inputs, self.moments(x))

    def _outputs(self, x: torch.Tensor, inputs: torch.Tensor, moments: list[torch.Tensor]) -> torch.Tensor:
        return self._evaluate(x, inputs, [], moments)[0]

    def _evaluated(
        self, x: torch.Tensor, inputs: torch.Tensor, targets: torch.Tensor, moments: list[torch.Tensor]
    ) -> torch.Tensor:
        """The mean loss, (1,)."""
        parts = zip(inputs.split(_AT_ONCE), targets.split(_AT_ONCE))
        each = [self._evaluate(x, some, of[None], moments) * len(some) for some, of in parts]
        return torch.stack(each).sum(0) / len(inputs)

    @torch.no_grad()
    def _evaluate(
        self, x: torch.Tensor, inputs: torch.Tensor, targets: Any, moments: list[torch.Tensor]
    ) -> torch.Tensor:
        given = (inputs.to(self.device)[None], targets, [], [pair[None] for pair in moments])
        return self._eval.called(self._weights(self._whole(x[None])), *given)

    @torch.no_grad()
    def moments(self, x: torch.Tensor) -> list[torch.Tensor]:
        """Mean and variance (2, channels) of each batch normalisation that keeps nothing, as the server gathers them.

        Each client passes one batch of up to `batch` samples and sends its moments: two numbers a channel, which no
        count of a run holds. The server takes the moments of the mixture, with the client weights.
        """
        if not self._plain_moments():
            return []
        weights, sizes = self._weights(x[None]), [2 * part.channels for _, part in self.scored.norms]
        shares, found = [], []
        for clients, index in layers.blocks(self._looked_at, _AT_ONCE):
            own = self._note.called(weights, self.inputs[index.to(self.device)][None])[0].split(sizes, dim=1)
            p = self.weights[clients]
            shares.append(p.sum())
            p = (p / p.sum()).to(own[0])
            found.append([layers.mixture(p, of.unflatten(1, (2, -1))) for of in own])
        p = torch.stack(shares).to(found[0][0])
        return [layers.mixture(p, torch.stack(of)) for of in zip(*found)]

    @cached_property
    def _looked_at(self) -> list[tuple[torch.Tensor, torch.Tensor]]:
        return layers.looked_at(self.parts, self.batch, layers.luck(len(self.inputs), self.key))

    def _plain_moments(self) -> list[torch.Tensor]:
        """Mean 0 and variance 1 where `moments` has something to gather."""
        pair = torch.tensor([[0.0], [1.0]], dtype=self.dtype, device=self.device)
        return [pair.expand(2, part.channels) for _, part in self.scored.norms if not part.running]

    def _classes(self) -> bool:
        """Whether the targets are classes of outputs (b, classes, ...), two or more."""
        y = self.targets
        if y.is_floating_point():
            return False
        out = self._one_output()
        return out.dim() == y.dim() + 1 and out.shape[1] > 1 and out.shape[2:] == y.shape[1:]

    def _one_output(self) -> torch.Tensor:
        """Of the first sample, (1, ...)."""
        view = self.with_local(self.local_start()[None]) if self.local else self
        return view._outputs(self.start(), self.inputs[:1], self._plain_moments())

    @torch.no_grad()
    def export(self, x: torch.Tensor | History, client: int | None = None) -> dict[str, torch.Tensor]:
        """The module's `state_dict` with the weights x (d,), or with those of a History, by name and on the CPU.

        Args:
            client: whose own layers, where clients keep some: those of the History's method.
        """
        view = self
        if self.local:
            fix = "pass the History of a run in this process: clients keep a part"
            checks.instance("x", x, History, fix)
            if getattr(x.state, "own", None) is None:  # type: ignore[union-attr]
                checks.reject("x", "a History from a file", "one with its clients' layers", fix)
            checks.whole("client", client, 0, self.n - 1, f"pass client=0, or another of the {self.n}")
            view = self.with_local(x.state.own.local[client : client + 1])  # type: ignore[union-attr, operator]
        x = model_of(x, self.d)
        found = modules.state_dict(self.scored.module, torch.cat(view._weights(view._whole(x[None])), 1)[0])
        for (name, _), pair in zip(self.scored.norms, view.moments(x)):
            found |= zip((f"{name}.{one}" for one in layers.STATISTICS), pair.cpu())
        return {name: own for name, own in found.items() if name in self._named}


def _layer(name: str, own: torch.Tensor) -> Layer:
    rows = own[0].numel() if own.dim() > 1 else own.numel()
    return Layer(name, rows, own.numel() // rows)
