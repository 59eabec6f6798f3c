"""Image classification by a network, with the data of the clients given as lists of samples."""

import copy
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import torch
from torch.nn import functional

from fedtheory.core import checks
from fedtheory.core.history import History, model_of
from fedtheory.core.key import Key
from fedtheory.core.message import Cost
from fedtheory.core.problem import Constants, Outputs, Penalty, Problem, Shift, own_modes
from fedtheory.core.registry import Offer
from fedtheory.problems import data as readers
from fedtheory.problems import graphs, layers, partitions
from fedtheory.problems.augment import Augment
from fedtheory.problems.minibatches import Batch, Minibatches
from fedtheory.problems.models import modules, networks, perceptron
from fedtheory.problems.models.networks import Groups, Moments, Network, Params

EVALUATED = {"cpu": 100, "cuda": 2000}  # images of one forward pass in evaluation: more leave a core's cache
_CACHE = 3 * 2**20  # bytes
_PRECISIONS = ("full", "bf16")
_MOMENTS = ("drawn", "first")


class ImageClassification(Minibatches):
    """f_i(x) = mean cross-entropy of the network with weights x on client i's images.

    A local step sees `batch` images of a client: each epoch is a fresh permutation of its data. With `epochs=None` a
    client runs through permutation after permutation in batches that are always full (smaller only where the client has
    fewer images). With `epochs=E` it makes E passes, the last batch of each as small as it must be. `steps` is the K of
    the client with the most data; the others idle (zero gradient) once they are done. Methods that add terms of their
    own to the gradient would still move them; `run` refuses these where the numbers of batches differ.

    Args:
        images: (n, channels, height, width), float32 or float64, already normalised.
        labels: (n,), int64.
        parts: for each client the indices of its images, (n_i,) int64, n_i >= 1.
        network: see `fedtheory.problems.models.networks.network`, or a `torch.nn.Module` that maps images (b, channels,
            height, width) to logits (b, classes). It is copied, and its own weights are the start; parameters that
            require no gradient stay as they are, and never cross. Batch normalisation in a plain `nn.Sequential` is by
            the batch's moments, as in the package's networks; elsewhere it must be in `eval()` mode. See
            `fedtheory.problems.models.modules`.
        key: of the initial weights, or its seed.
        batch: minibatch size.
        epochs: see above.
        std: deviation of the initial weight matrices; None: PyTorch's default.
        augment: "flip" (random horizontal flip), "crop" (random crop with padding 4) or "crop+flip" of the images of a
            local step, see `fedtheory.problems.augment`: drawn anew for every use of an image, from the round's key and
            the client alone. Evaluation, moments and full gradients see the images as they are. A mirrored digit is
            another sign, or none: "crop" is for these.
        test: images and labels to evaluate on; default the training data.
        moments: the images from which each client takes the moments of batch normalisation for evaluation. "drawn":
            `batch` of its own, by the key. "first": the first `batch` of its part, which have few labels where the data
            are sorted.
        stacked: evaluate clients' networks together (True; on the CPU as many as stay in a core's cache) or one by one
            (False). None chooses: together where the network has no convolution (2.5 to 10 times faster) and on CUDA.
            Convolutions on the CPU go one by one: there a grouped convolution is slower than its parts and takes twice
            the memory.
        precision: "full": all in the dtype of the images. On a card that switches cuDNN's TF32 off for the process,
            since a zeroth-order difference is lost in its ten bits. (To have TF32, set torch.backends.cudnn.allow_tf32
            afterwards.) "bf16": products and convolutions in bfloat16 while weights, moments of normalisation, losses
            and everything that an algorithm adds up stay in float32, which the images must have. For convolutions on a
            card, or on a CPU with AMX or AVX512_BF16: elsewhere it works and is slower, and so it is for perceptrons.
        device: where to compute.

    Raises TypeError or ValueError for wrong shapes, dtypes, ranges, empty clients, or labels the network does not have.
    """

    closed_form = False
    _apart = (*Problem._apart, "_module", "stacked", "written_out", "_graphs", "_looked_at")  # at most rounding

    @own_modes()
    @checks.arguments
    def __init__(
        self,
        images: torch.Tensor,
        labels: torch.Tensor,
        parts: Sequence[torch.Tensor],
        network: Network | torch.nn.Module,
        key: Key | int = 0,
        *,
        batch: int = 64,
        epochs: int | None = None,
        std: float | None = None,
        augment: str = "none",
        test: tuple[torch.Tensor, torch.Tensor] | None = None,
        moments: str = "drawn",
        stacked: bool | None = None,
        precision: str = "full",
        device: str | torch.device = "cpu",
    ) -> None:
        if images.dtype not in (torch.float32, torch.float64):
            fix = "pass images.float() / 255" if images.dtype == torch.uint8 else "pass images.float()"
            checks.reject("images.dtype", images.dtype, "torch.float32 or torch.float64", fix, TypeError)
        self.dtype = images.dtype
        self.device = checks.device("device", device)
        module = network if isinstance(network, torch.nn.Module) else None
        if isinstance(network, torch.nn.Module):
            network = modules.of_module(network, self._some(images), self.device)
        self._module = copy.deepcopy(module)
        self.images, self.labels = self._check("", images, labels, network)
        self.test = (self.images, self.labels) if test is None else self._check("test ", *test, network)
        if len(self.test[1]) == 0:
            fix = "leave test out: the training images then; a held-out fifth needs five images a client"
            checks.reject("test", f"{len(self.test[1])} images", "at least one test image", fix)
        self.weights = partitions.client_shares(parts, len(images))
        self.parts, self.key = tuple(parts), Key.of(key)
        self.batch = checks.whole("batch", batch, 1)
        self.network = modules.by_size(network, self.images, self.batch)
        self.epochs = None if epochs is None else checks.count("epochs", epochs)
        self.std = None if std is None else checks.number("std", std, 0.0, open_low=True)
        if self.std is not None and isinstance(network, modules.Wrapped):
            checks.reject("std", std, "None for a module, which has its weights", "initialise the module itself")
        self.moments_of = checks.choice("moments", moments, _MOMENTS)
        self.augment = Augment.of(augment, self.images)
        self.n, self.layout = len(parts), network.layout
        self.constants = Constants()
        if stacked is None:
            stacked = self.device.type == "cuda" or not network.convolutional
        self.stacked = stacked
        self.chunk = self._near() if stacked else 1
        self.mixed = checks.choice("precision", precision, _PRECISIONS) == "bf16"
        if self.mixed and self.dtype != torch.float32:
            fix = "load the images with dtype=torch.float32"
            checks.reject("precision", precision, f"'full' for images of {self.dtype}", fix)
        self.written_out = perceptron.is_perceptron(network) and not self.mixed
        self._graphs = graphs.Graphs()
        if self.device.type == "cuda" and not self.mixed:
            graphs.without_tf32()

    def _near(self) -> int | None:
        """How many stacked clients' models, gradients and batches stay in the cache of a core; None on CUDA: all."""
        numbers = 2 * self.d + self.batch * self.images[0].numel()
        return None if self.device.type == "cuda" else max(1, _CACHE // (numbers * self.images.element_size()))

    @staticmethod
    def _axes(what: str, images: torch.Tensor) -> None:
        if isinstance(images, torch.Tensor) and images.dim() == 3:
            expected = "(n, channels, height, width)"
            checks.reject(f"{what}images.shape", tuple(images.shape), expected, "pass images.unsqueeze(1)")

    @staticmethod
    def _some(images: torch.Tensor) -> torch.Tensor:
        ImageClassification._axes("", images)
        if not len(checks.tensor("images", images, (None, None, None, None))):
            checks.reject("images.shape", tuple(images.shape), "at least one image", "pass the clients' images")
        return images

    @staticmethod
    @own_modes()
    @checks.arguments
    def load(
        data: str,
        network: str | torch.nn.Module | None = None,
        key: Key | int = 0,
        *,
        clients: int = 10,
        partition: str = "iid",
        alpha: float = 0.3,
        labels: int = 3,
        subset: int | None = None,
        tested: int | None = None,
        side: int | None = None,
        partial: bool | int = False,
        view: str = "rows",
        whole: tuple[str, ...] = (),
        folder: str | Path | None = None,
        dtype: torch.dtype = torch.float32,
        **options: Any,
    ) -> "ImageClassification":
        """A data set by name, divided among clients.

        Args:
            data, folder, partial: as in `fedtheory.problems.data.load`; "digits" needs no folder.
            network: one of `fedtheory.problems.models.networks.NETWORKS`, built for the data's images and classes; or a
                module, as in the constructor. None: "mlp", a perceptron, for small grey images.
            key: of the partition (path "partition"), the subset and the initial weights, or its seed.
            partition: "iid"; "dirichlet" with `alpha`; "labels" with `labels` per client.
            subset, tested: so many random training and test images only; default all.
            side: images are resized to side x side pixels (bilinear) first.
            view, whole: what a basis compresses, see `fedtheory.problems.models.networks.Network`.
            options: of the constructor.

        >>> from fedtheory import FedAvg, run
        >>> problem = ImageClassification.load("digits", "mlp", Key(0), clients=4)
        >>> history = run(FedAvg(lr=0.1, local_steps=5), problem, rounds=10, metrics=("accuracy",))
        >>> history["accuracy"][-1] > 0.8
        True
        """
        checks.spelled(options, ImageClassification.load, ImageClassification.__init__)
        data = checks.choice("data", checks.alike(data, readers.NAMES), readers.NAMES)
        key = Key.of(key)
        checks.whole("clients", clients, 1)
        checks.choice("partition", partition, ("iid", "dirichlet", "labels"))
        if isinstance(network, str):
            checks.choice("network", network, networks.NETWORKS)
        checks.dtype("dtype", dtype)
        checks.choice("view", view, networks.VIEWS)
        for kind in whole:
            checks.choice("whole", kind, networks.KINDS)
        checks.number("alpha", alpha, *partitions.ALPHA)
        checks.whole("labels", labels, 1)
        if side is not None:
            checks.whole("side", side, 1, 4096)
        sets, origin = [], {}
        for split, count in (("train", subset), ("test", tested)):
            some = partial if split == "train" else False
            images = readers.load(data, folder, split, partial=some)
            origin[f"{data} {split}"] = readers.origin(data, folder, split, partial=some, images=images)
            if count is not None:
                checks.whole({"train": "subset", "test": "tested"}[split], count, 1, len(images))
            chosen = torch.randperm(len(images), generator=key.fold(split).generator())[:count]
            x = images.floats(chosen if count is not None else slice(None), dtype)
            if side is not None:
                x = functional.interpolate(x, (side,) * 2, mode="bilinear", antialias=True)
            sets.append((x, images.y[chosen] if count is not None else images.y))
        (x, y), held = sets
        divide = {
            "iid": lambda: partitions.iid(y, clients, key.fold("partition")),
            "dirichlet": lambda: partitions.dirichlet(y, clients, alpha, key.fold("partition")),
            "labels": lambda: partitions.labels_per_client(y, clients, labels, key.fold("partition")),
        }
        shape = tuple(x.shape[1:])
        if network is None:
            if shape[0] > 1:
                expected = "a network: a perceptron learns little on colour images"
                checks.reject("network", None, expected, "try network='flss-cnn' or network='resnet8'")
            network = "mlp"
        if isinstance(network, str):
            built = networks.network(network, shape, len(images.classes), view, whole)
        else:
            built = modules.of_module(network, x, checks.device("device", options.get("device", "cpu")), view, whole)
        problem = ImageClassification(x, y, divide[partition](), built, key.fold("init"), test=held, **options)
        problem.origin = origin
        problem._module = copy.deepcopy(network) if isinstance(network, torch.nn.Module) else None
        return problem

    def _check(
        self, what: str, images: torch.Tensor, labels: torch.Tensor, network: Network
    ) -> tuple[torch.Tensor, torch.Tensor]:
        self._axes(what, images)
        last = (*network.shape[1:], network.shape[0])
        if isinstance(images, torch.Tensor) and tuple(images.shape[1:]) == last != network.shape:
            fix = f"pass {what}images.permute(0, 3, 1, 2).contiguous(); a reshape would scramble them"
            checks.reject(f"{what}images.shape", tuple(images.shape), "channels before height and width", fix)
        checks.tensor(f"{what}images", images, (None, *network.shape), self.dtype)
        if labels.is_meta or labels.dtype != torch.int64 or labels.shape != (len(images),):
            fix = f"pass one label for each of these {len(images)} images"
            if len(labels) == len(images) and labels.dim() < 3:
                fix = f"pass one label an image: labels.{'long()' if labels.dim() == 1 else 'argmax(1)'}"
            checks.reject(
                f"{what}labels (dtype, shape)",
                (labels.dtype, tuple(labels.shape)),
                f"int64, ({len(images)},)",
                fix,
            )
        if len(labels) and not 0 <= int(labels.min()) <= int(labels.max()) < network.classes:
            checks.reject(
                f"{what}labels (lowest, highest)",
                (int(labels.min()), int(labels.max())),
                f"from 0 to {network.classes - 1}",
                "choose a network with more classes",
            )
        return images.detach().to(self.device), labels.to(self.device)

    @property
    def metrics(self) -> tuple[str, ...]:
        return ("loss", "accuracy")

    @own_modes()
    def start(self) -> torch.Tensor:
        """The network's initial weights, (d,)."""
        return self.network.init(self.key, self.std).to(self.device, self.dtype)

    def export(self, x: torch.Tensor | History) -> dict[str, torch.Tensor]:
        """The `state_dict` of the module that was passed, with the weights x (d,), or with those of a History.

        Batch normalisation that trains has the moments that evaluation uses as its running statistics.

        Raises ValueError for a network of the package, which has no module.
        """
        if self._module is None:
            fix = "pass a torch.nn.Module as the network; problem.layout.matrices(x) gives the layers of any"
            checks.reject("network", self.network.name, "a module of yours", fix)
        x = model_of(x, self.d)
        found, parts = modules.state_dict(self._module, x), self._module.named_modules()
        norms = [name for name, part in parts if isinstance(part, torch.nn.BatchNorm2d)]
        for name, pair in zip(norms, self.moments(x.to(self.device, self.dtype))):
            of = {f"{name}.{one}".lstrip("."): own[0].cpu() for one, own in zip(layers.STATISTICS, pair)}
            found |= {one: own for one, own in of.items() if one in found}
        return found

    def draw(self, clients: torch.Tensor, steps: int, key: Key) -> list[Batch]:
        """Client i's permutations and augmented images depend on the key and on i alone."""
        rows = self._drawn(clients, steps, key)
        batches = self._batches(rows)
        if self.augment is None:
            return batches
        draws = []
        for i, of in zip(clients, rows):
            sizes = list(map(len, of))
            draws.append(self.augment.draw(sum(sizes), key.fold(int(i), "augment")).split(sizes))
        return [replace(batch, draws=self._stacked(list(step))) for batch, step in zip(batches, zip(*draws))]

    def losses(self, y: torch.Tensor, xi: Batch) -> torch.Tensor:
        if torch.is_grad_enabled() or not self._launched(y, xi):
            return self.losses_at(y, None, xi)
        of = lambda y, xi: self.losses_at(y.expand(len(xi.size), -1), None, xi)  # one model of all, or each its own
        return self._replayed("losses", of, y[:1] if y.stride(0) == 0 else y, xi)

    def losses_at(self, y: torch.Tensor, shift: Shift | None, xi: Batch) -> torch.Tensor:
        """The layers of y + shift are made one by one while the network runs: no second model is held."""
        S = len(y)
        if max(xi.size) == 0:
            return y.new_zeros(S)
        shared = S > 1 and y.stride(0) == 0 and not self.network.normalised  # all clients at one point: one model
        if S > 1 and not shared and self._one_by_one(xi):
            rows = [self.losses_at(y[i : i + 1], shift, xi.client(i)) for i in range(S)]
            return torch.cat(rows)
        layers = (y[:1] if shared else y).split(self.network.sizes, dim=-1)
        params = (layer if shift is None else shift(j, layer) for j, layer in enumerate(layers))
        return self._losses(params, xi, shared)

    def grads(self, y: torch.Tensor, xi: Batch) -> torch.Tensor:
        if len(y) > 1 and self._one_by_one(xi):
            return torch.cat([self.grads(y[i : i + 1], xi.client(i)) for i in range(len(y))])
        if max(xi.size) == 0:
            return torch.zeros_like(y)
        return self._replayed("grads", self._gradient, y, xi) if self._launched(y, xi) else self._gradient(y, xi)

    def _launched(self, y: torch.Tensor, xi: Batch) -> bool:
        """Whether this is asked of a card in one launch: of all clients, on batches that count whole."""
        return self.device.type == "cuda" and xi.full and y.device.index == torch.cuda.current_device()

    def _replayed(
        self, name: str, of: Callable[[torch.Tensor, Batch], torch.Tensor], y: torch.Tensor, xi: Batch
    ) -> torch.Tensor:
        """of(y, xi) as one launch.

        Clients with weights of their own are side by side in it, and not one grouped convolution, which is slower;
        where it is not captured, they come one after the other, so that a client's bits do not hang on that.
        """
        given = [y, xi.index] if xi.draws is None else [y, xi.index, xi.draws]
        again = lambda index, draws=None: Batch(index, xi.size, draws)
        if len(y) == 1 or not self.network.native:
            return self._graphs(name, lambda y, *given: of(y, again(*given)), *given)

        def own(y: torch.Tensor, *given: torch.Tensor) -> list[Callable[[], torch.Tensor]]:
            every = again(*given)
            return [partial(of, y[i : i + 1], every.client(i)) for i in range(len(y))]

        alone = lambda *given: torch.cat([work() for work in own(*given)])
        return self._graphs(name, alone, *given, beside=lambda *given: torch.cat(graphs.side_by_side(own(*given))))

    def _gradient(self, y: torch.Tensor, xi: Batch) -> torch.Tensor:
        if self.written_out:
            return perceptron.gradient(
                self.network, y, self._seen(xi).flatten(2), self.labels[xi.index], self._shares(xi)
            )
        leaf = y.detach().requires_grad_()
        with torch.enable_grad():
            losses = self._losses(iter(leaf.split(self.network.sizes, dim=-1)), xi, once=True)
            return torch.autograd.grad(losses.sum(), leaf)[0]

    def _seen(self, xi: Batch) -> torch.Tensor:
        """The images of a batch, (S, b, channels, height, width)."""
        images = self.images.index_select(0, xi.index.flatten())
        if self.augment is not None and xi.draws is not None:
            images = self.augment.apply(images, xi.draws.flatten(0, 1))
        return images.unflatten(0, xi.index.shape)

    @property
    def classifier(self) -> Network:
        return self.network

    def penalised(self, y: torch.Tensor, xi: Batch, penalty: Penalty, *extras: torch.Tensor) -> torch.Tensor:
        if len(y) > 1 and self._one_by_one(xi):
            rows = zip(y.split(1), *(extra.split(1) for extra in extras))
            return torch.cat([self.penalised(own, xi.client(i), penalty, *its) for i, (own, *its) in enumerate(rows)])
        if max(xi.size) == 0:
            return torch.zeros_like(y)
        leaf = y.detach().requires_grad_()
        with torch.enable_grad():
            out = self.outputs(leaf, xi)
            total = out.mean(_cross_entropy(out.logits, out.labels)) + penalty(out, *extras)
            busy = total.new_tensor(xi.size).clamp(max=1)
            return torch.autograd.grad(total, leaf, busy)[0]

    def outputs(self, x: torch.Tensor, xi: Batch) -> Outputs:
        """Of the networks with weights x (S, d), all at once."""
        images = self._seen(xi)
        labels, shares = self.labels[xi.index], self._shares(xi)

        def of(x: torch.Tensor) -> Outputs:
            with self._precision():
                features = self.network.features(iter(x.split(self.network.sizes, dim=-1)), images)
                logits = self.network.classify(x, features)
            head = lambda z: self.network.classify(x, z)
            mean = lambda each: (each * shares).sum(1)
            return Outputs(labels, features.to(self.dtype), logits.to(self.dtype), head, torch.no_grad()(of), mean)

        return of(x)

    def count_labels(self, xi: Batch) -> torch.Tensor:
        each = functional.one_hot(self.labels[xi.index], self.network.classes)
        return (each * (self._shares(xi) > 0)[..., None]).sum(1, dtype=torch.int32)

    def _one_by_one(self, xi: Batch) -> bool:
        """Padding would enter the batch's moments."""
        return not self.stacked or (self.network.normalised and not xi.full)

    def _losses(self, params: Params, xi: Batch, shared: bool = False, once: bool = False) -> torch.Tensor:
        """`shared`: one model for all; `once`: no second derivative will be asked for."""
        images = self._seen(xi)
        labels = self.labels[xi.index]
        with self._precision():
            if shared:
                logits = self._forward_near(params, images.flatten(0, 1))
            else:
                logits = self._forward(params, images, once or not torch.is_grad_enabled())
        logits = logits.to(self.dtype)
        each = _cross_entropy(logits, labels)
        if xi.full:
            return each.mean(1)
        return (each * self._shares(xi)).sum(1)

    def _forward_near(self, params: Params, images: torch.Tensor) -> torch.Tensor:
        """Logits (1, n, classes) of one model on images (n, *shape), some at a time where that is faster."""
        passes = -(-len(images) // EVALUATED[self.device.type])
        if passes == 1 or torch.is_grad_enabled():
            return self._forward(params, images[None], not torch.is_grad_enabled())
        kept = list(params)  # the model is small beside its activations on so many images
        return torch.cat([self._forward(iter(kept), some[None], True) for some in images.chunk(passes)], dim=1)

    def _forward(self, params: Params, images: torch.Tensor, once: bool) -> torch.Tensor:
        """Logits; oneDNN's layout knows no second derivative."""
        dtype = torch.bfloat16 if self.mixed else self.dtype
        if once and self.mixed and self.device.type == "cuda" and len(images) == 1 and self.network.native:
            images = images[0].contiguous(memory_format=torch.channels_last)[None]  # as its matrix units have it
            params = (layer.clone() for layer in params)  # cuDNN wants them at multiples of 16 bytes then
        return self.network.forward(params, self.network.blocked(images, dtype) if once else images)

    def _shares(self, xi: Batch) -> torch.Tensor:
        """The weight of each image in its client's mean: (S, b), or (1, 1) where all rows count whole."""
        if xi.full:
            return torch.full((1, 1), 1 / max(xi.index.shape[1], 1), dtype=self.dtype, device=self.device)
        size = torch.tensor(xi.size, dtype=self.dtype, device=self.device)[:, None]
        return (torch.arange(xi.index.shape[1], device=self.device) < size) / size.clamp(min=1)

    def _precision(self) -> torch.autocast:
        return torch.autocast(self.device.type, torch.bfloat16, enabled=self.mixed)

    def loss(self, x: torch.Tensor) -> float:
        """F(x) over all clients' images; a network with batch normalisation uses the moments of `moments`."""
        return self._evaluate(x, self.images[torch.cat(self.parts)], self.labels[torch.cat(self.parts)])[0]

    def accuracy(self, x: torch.Tensor) -> float:
        """Share of the test images that the network with weights x classifies correctly."""
        return self._evaluate(x, *self.test)[1]

    @own_modes()
    @torch.no_grad()
    def _evaluate(self, x: torch.Tensor, images: torch.Tensor, labels: torch.Tensor) -> tuple[float, float]:
        """Mean cross-entropy and accuracy."""
        moments = self.moments(x)
        loss = right = 0.0
        count = EVALUATED[self.device.type]
        for some, truth in zip(images.split(count), labels.split(count)):
            with self._precision():
                logits = self.network.logits(x[None], some[None], iter(moments))[0].to(self.dtype)
            loss += float(functional.cross_entropy(logits, truth, reduction="sum"))
            right += int((logits.argmax(1) == truth).sum())
        return loss / len(labels), right / len(labels)

    @own_modes()
    @torch.no_grad()
    def moments(self, x: torch.Tensor) -> list[Moments]:
        """Mean and variance (1, channels) of every normalised channel at the model x, as the server gathers them.

        Each client passes one batch through the network and sends the batch's moments (`moments_cost`); the server
        takes the moments of the mixture, with the client weights.
        """
        if not self.network.normalised:
            return []
        total, mixed = 0.0, []
        small = max(1, 28**2 // self.images[0].numel())  # of small images more stay in the cache
        for clients, index in layers.blocks(self._looked_at, small * EVALUATED[self.device.type]):
            found = Groups(len(clients))
            with self._precision():
                self.network.logits(x[None], self.images[index.flatten().to(self.device)][None], found)
            weights = self.weights[clients]
            total += float(weights.sum())
            share = (weights / total).to(found[0][0])  # of all clients so far
            mixed = [_mixture(share, *of) for of in zip(found, mixed or [None] * len(found))]
        return mixed

    @cached_property
    def _looked_at(self) -> list[tuple[torch.Tensor, torch.Tensor]]:
        """The images of each client's moments: up to `batch`, by one random number an image, whatever their order."""
        luck = None if self.moments_of == "first" else layers.luck(len(self.images), self.key)
        return layers.looked_at(self.parts, self.batch, luck)

    @property
    def moments_cost(self) -> Cost:
        """What one client sends for one `moments`: two scalars per normalised channel."""
        count = sum(layer.rows for layer in self.layout.layers if layer.kind in ("scale", "shift"))
        return Cost(count, count * self.dtype.itemsize)


def _mixture(share: torch.Tensor, found: Moments, before: Moments | None) -> Moments:
    """Mean and variance (1, channels) of all clients so far: these (S, channels) with `share` (S,), and those before.

    Squares are taken about the mean: their mean less the mean's square would lose a small variance to rounding.
    """
    (mean, var), share = found, share[:, None]
    if before is not None:
        mean, var = (torch.cat(pair) for pair in zip(before, found))
        share = torch.cat([1 - share.sum(0, keepdim=True), share])
    middle = (share * mean).sum(0, keepdim=True)
    return middle, (share * (var + (mean - middle) ** 2)).sum(0, keepdim=True)


def _cross_entropy(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """Of each sample: (S, b, classes), (S, b) -> (S, b)."""
    return functional.cross_entropy(logits.flatten(0, 1), labels.flatten(), reduction="none").view(labels.shape)


PROBLEMS = [
    Offer(
        "images",
        ImageClassification,
        lambda key, device, options: ImageClassification.load("digits", "mlp", key, batch=32, device=device),
        ("loss", "accuracy"),
    )
]
