"""Causal language models whose trained parameters lie in one flat vector, and how they get there from a folder.

The transformer itself is Hugging Face's (the extra "llm"), which is imported only when a model is loaded. Weights are
read from safetensors files, never from a pickle.
"""

import hashlib
import importlib
import json
import math
import re
import struct
import threading
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from fedtheory.core import checks
from fedtheory.core.checks import free_bytes
from fedtheory.core.key import Key
from fedtheory.core.layout import Layer, Layout
from fedtheory.problems.formats import DataError

DTYPES = {"float16": torch.float16, "bfloat16": torch.bfloat16, "float32": torch.float32, "float64": torch.float64}
BLOCK = 2**20  # entries of an embedding that are one layer
ROW = 256  # tokens that a row of packed prompts has: attention within it costs little beside the layers' products
_PACKED = ("llama", "opt")  # architectures in which a token sees others only through attention that a mask may narrow
Layers = Callable[[int], torch.Tensor]  # j -> layer j of the vector, flat


@dataclass(frozen=True)
class Place:
    """Where a parameter lies in the vector: one layer, or several of `step` rows each."""

    layers: range
    step: int
    shape: torch.Size


class LanguageModel:
    """A causal language model that answers a prompt with one of a few words, as a function of a flat vector.

    The module holds none of its trained parameters. Each submodule is lent its own while it runs, so a caller may hand
    out views of the vector, or make each layer only when it is needed: beyond the vector no more is held at a time than
    the largest weight matrix. Embeddings are cut into layers of at most `block` entries, and only those layers are
    asked for that a batch uses: for the rows of its tokens at the input, for the rows of the words at the output.

    Args:
        module: a model as `transformers` loads it; parameters that require no gradient stay in it.
        words: the tokens to choose from, one per label.
        block: see above.
        device: where to compute.

    Attributes:
        layout, sizes: the layers of the vector, in the order of the module's parameters, and their sizes.
        start: the module's parameters, (d,), on the CPU.
        longest: tokens that a prompt may have.
    """

    def __init__(self, module: Any, words: Sequence[int], *, block: int = BLOCK, device: Any = "cpu") -> None:
        self.device = checks.device("device", device)
        checks.whole("block", block, 1)
        self.longest: int = module.config.max_position_embeddings
        self._words, self._order = torch.tensor(words, device=self.device).unique(return_inverse=True)
        reader, head = module.get_input_embeddings(), module.get_output_embeddings()
        plain = type(reader) is nn.Embedding and type(head) is nn.Linear  # others may do more than look up rows
        lend = {id(reader): self._lend_rows, id(head): self._lend_head} if plain else {}
        cut = {id(reader.weight), id(head.weight)} if plain else set()
        layers: list[Layer] = []
        trained: dict[int, Place] = {}
        values = {name: p for name, p in module.named_parameters() if p.requires_grad}  # shared ones once
        for name, p in values.items():
            n, width = len(p), p[0].numel()
            step = max(1, block // width) if id(p) in cut else n
            first = len(layers)
            for a in range(0, n, step):
                part, rows = (name if step >= n else f"{name}[{a}:]"), min(step, n - a)
                layers.append(Layer(part, width, rows) if p.dim() > 1 else Layer(part, rows, 1))
            trained[id(p)] = Place(range(first, len(layers)), step, p.shape)
        self.layout = Layout(tuple(layers))
        self.sizes = [layer.rows * layer.cols for layer in layers]
        self.start = torch.cat([p.detach().flatten() for p in values.values()])
        named = module.named_parameters(remove_duplicate=False)
        self._places = {name: trained[id(p)] for name, p in named if id(p) in trained}
        for m in module.modules():
            own = {name: trained[id(p)] for name, p in m._parameters.items() if id(p) in trained}
            for name, place in own.items():  # a stand-in that holds nothing
                empty = torch.empty(place.shape, dtype=self.start.dtype, device="meta")
                m._parameters[name] = nn.Parameter(empty, requires_grad=False)
            if own or id(m) in lend:
                self._hook(m, own, lend.get(id(m), self._lend))
        module._apply(lambda part: part if part.is_meta else part.to(self.device))
        masks = getattr(module.config, "_attn_implementation", None) in ("eager", "sdpa")  # others know no such mask
        self._packs = module.config.model_type in _PACKED and masks
        self._module, self._plain, self._lock = module.eval(), plain, threading.Lock()
        self._layer: Layers = lambda j: self.start[:0]
        self._last = torch.zeros(0, dtype=torch.int64), torch.zeros(0, dtype=torch.int64)

    def state_dict(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
        """The module's parameters and buffers by name, on the CPU, with the vector x (d,) as its trained ones."""
        found = {name: value for name, value in self._module.state_dict().items() if not value.is_meta}
        for name, place in self._places.items():
            where = self.layout.slices[place.layers[0]].start, self.layout.slices[place.layers[-1]].stop
            found[name] = x[slice(*where)].reshape(place.shape)
        return {name: value.detach().cpu().clone() for name, value in found.items()}

    def fingerprint(self) -> str:
        """SHA-256 over the weights that are not trained, and the words."""
        digest = hashlib.sha256(f"{self._words.tolist()} {self._order.tolist()} {self._module.config}".encode())
        for name, value in self._module.state_dict().items():
            if not value.is_meta:  # a stand-in for one that is trained
                digest.update(name.encode() + value.cpu().contiguous().view(-1).view(torch.uint8).numpy().tobytes())
        return digest.hexdigest()

    def logits(self, layer: Layers, prompts: Sequence[torch.Tensor]) -> torch.Tensor:
        """(len(prompts), words): of the token that follows each prompt, in float32 or better.

        Args:
            layer: asked for a layer whenever a submodule needs it.
            prompts: tokens (n,) int64 each, n >= 1. Several stand in one row, unseen by each other, where the
                architecture lets them and fewer tokens are computed so.
        """
        rows = [[i] for i in range(len(prompts))]
        if self._packs:
            rows = pack([len(prompt) for prompt in prompts], ROW)
        ids, owner, position = lay(prompts, rows)
        if all(len(row) == 1 for row in rows):
            mask = (owner >= 0).long()
        else:
            mask = torch.zeros(len(rows), 1, *ids.shape[1:] * 2, dtype=self.start.dtype)
            apart = (owner[:, :, None] != owner[:, None, :]) | torch.ones_like(mask[0, 0], dtype=torch.bool).triu(1)
            mask.masked_fill_(apart[:, None], torch.finfo(mask.dtype).min)
        ends = torch.stack([(owner == i).nonzero()[-1] for i in range(len(prompts))], 1).to(self.device)
        last = (ends[0], ends[1])
        given = {"input_ids": ids, "attention_mask": mask, "position_ids": position}
        with self._lock:  # what is lent belongs to one call at a time
            self._layer, self._last = layer, last
            out = self._module(**{name: part.to(self.device) for name, part in given.items()}, use_cache=False)
        logits = out.logits[0] if self._plain else out.logits[last][:, self._words[self._order]]
        return logits.to(torch.promote_types(logits.dtype, torch.float32))

    def _hook(self, m: nn.Module, own: dict[str, Place], lend: Callable[..., Any]) -> None:
        """Lend m its `own` before it runs, and take it back."""
        before = dict(m._parameters)
        m.register_forward_pre_hook(lambda m, given: lend(m, own, *given))
        m.register_forward_hook(lambda m, given, out: m._parameters.update(before), always_call=True)

    def _lend(self, m: Any, own: dict[str, Place], *given: Any) -> None:
        for name, place in own.items():
            m._parameters[name] = self._layer(place.layers[0]).view(place.shape)

    def _lend_rows(self, m: Any, own: dict[str, Place], ids: torch.Tensor) -> torch.Tensor:
        """An embedding of the tokens that are there, and their numbers in it."""
        some, numbers = ids.unique(return_inverse=True)
        m.padding_idx = None  # its row would have to be the one of that number
        m._parameters["weight"] = self._rows(own["weight"] if own else m.weight, some)
        return numbers

    def _lend_head(self, m: Any, own: dict[str, Place], h: torch.Tensor) -> torch.Tensor:
        """The rows of the words, and the last position of each prompt, (1, prompts, width)."""
        for name, p in m._parameters.items():
            if p is not None:
                m._parameters[name] = self._rows(own[name] if own else p, self._words)[self._order]
        return h[self._last][None]

    def _rows(self, place: Place | torch.Tensor, some: torch.Tensor) -> torch.Tensor:
        """Rows `some`, in increasing order, of a parameter, from those of its layers that hold one."""
        if isinstance(place, torch.Tensor):
            return place[some]
        counts = torch.bincount(some // place.step, minlength=len(place.layers)).tolist()
        found = [
            self._layer(j).view(-1, *place.shape[1:])[rows % place.step]
            for j, rows in zip(place.layers, some.split(counts))
            if len(rows)
        ]
        return torch.cat(found)


def pack(sizes: Sequence[int], capacity: int) -> list[list[int]]:
    """Rows of at most `capacity`, or the largest size, as few as do; each, longest first, goes into the emptiest.

    One row for each where rows that are filled up to the longest would not be smaller together.
    """
    order, most = sorted(range(len(sizes)), key=lambda i: -sizes[i]), max(capacity, *sizes)
    for count in range(math.ceil(sum(sizes) / most), len(sizes)):
        rows, filled = [[] for _ in range(count)], [0] * count
        for i in order:
            at = filled.index(min(filled))
            rows[at].append(i)
            filled[at] += sizes[i]
        if max(filled) <= most:
            if count * max(filled) < len(sizes) * max(sizes):
                return rows
            break
    return [[i] for i in range(len(sizes))]


def lay(prompts: Sequence[torch.Tensor], rows: Sequence[Sequence[int]]) -> tuple[torch.Tensor, ...]:
    """Prompts side by side in rows: (tokens, their prompt or -1, positions in it), each (rows, the longest row)."""
    lines = [[prompts[i] for i in row] for row in rows]
    width = max(sum(map(len, line)) for line in lines)
    fill = lambda parts, value: nn.functional.pad(torch.cat(parts), (0, width - sum(map(len, parts))), value=value)
    return (
        torch.stack([fill(line, 0) for line in lines]),
        torch.stack([fill([torch.full_like(prompts[i], i) for i in row], -1) for row in rows]),
        torch.stack([fill([torch.arange(len(prompt)) for prompt in line], 0) for line in lines]),
    )


# From a folder, or by name.

_TOKENIZERS = ("tokenizer.json", "tokenizer.model", "vocab.json", "vocab.txt")


def extra(name: str) -> Any:
    """Import a package of the extra "llm".

    Raises ModuleNotFoundError with the command that installs it.
    """
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "IProgress not found")  # in a notebook without widgets bars are text
            return importlib.import_module(name)
    except ModuleNotFoundError as error:
        checks.reject("extra", error.name, "an installed package", "pip install 'fedtheory[llm]'", ModuleNotFoundError)


def _safetensors_shapes(path: Path) -> dict[str, list[int]]:
    """Name and shape of every tensor in a safetensors file.

    Raises DataError for a file that is damaged or shorter than its header says.
    """
    fetch = "fetch the file again"
    with open(path, "rb") as file:
        start, whole = file.read(8), path.stat().st_size
        (length,) = struct.unpack("<Q", start) if len(start) == 8 else (0,)
        if not 2 <= length <= whole - 8:
            raise DataError(
                path, 0, f"no safetensors file, or one that breaks off in its header ({whole} bytes)", fetch
            )
        try:
            header = json.loads(file.read(length))
            header.pop("__metadata__", None)
            end = 8 + length + max((entry["data_offsets"][1] for entry in header.values()), default=0)
            shapes = {name: list(entry["shape"]) for name, entry in header.items()}
        except (ValueError, AttributeError, KeyError, TypeError, IndexError, RecursionError) as error:
            raise DataError(path, 8, f"the header is damaged ({error!r})", fetch) from error
    if whole != end:
        raise DataError(path, whole, f"the file should have {end} bytes: it was not downloaded whole", fetch)
    return shapes


def inspect_folder(folder: Path) -> int:
    """Return the number of weights in a model's folder, where all that is needed is in it and whole.

    Raises FileNotFoundError for what is missing, DataError for a file that is damaged.
    """
    missing = lambda what, fix: checks.reject("model", str(folder), f"a folder with {what}", fix, FileNotFoundError)
    if not (folder / "config.json").is_file():
        missing("config.json", "pass the folder into which the model was saved")
    if not any((folder / name).is_file() for name in _TOKENIZERS):
        missing(f"a tokenizer ({', '.join(_TOKENIZERS)})", "save it there too: tokenizer.save_pretrained(folder)")
    index, single = folder / "model.safetensors.index.json", folder / "model.safetensors"
    names = {single.name}
    if index.is_file():
        try:
            names = set(json.loads(index.read_bytes())["weight_map"].values())
            if any(Path(name).name != name for name in names):
                raise ValueError("a name leads out of the folder")
        except (ValueError, KeyError, AttributeError, TypeError, RecursionError) as error:
            raise DataError(index, 0, f"no index of weights ({error!r})", "fetch the file again") from error
    for name in sorted(names):
        if not (folder / name).is_file():
            fix = (
                "fetch it; pickled weights (.bin) are not read: model.save_pretrained(folder) makes safetensors of them"
            )
            missing(name, fix)
    return sum(math.prod(shape) for name in names for shape in _safetensors_shapes(folder / name).values())


def require_room(model: str, needed: int, device: torch.device) -> None:
    """Raise MemoryError where the device has less than `needed` bytes left."""
    free = free_bytes(device)
    if free is not None and free < needed:
        expected = (
            f"a model for which there is room: it needs {needed / 1e9:.2g} GB on {device}, {free / 1e9:.2g} are free"
        )
        checks.reject("model", model, expected, "choose a smaller one, or dtype='bfloat16'", MemoryError)


def require_name(model: str | Path) -> None:
    """Raise FileNotFoundError for a model that is no folder where it could not be a name on the hub, either."""
    if not _HUB.fullmatch(str(model)):
        fix = "correct it, or make the folder, such as of SmolLM2: python -m fedtheory model smollm2 FOLDER"
        checks.reject("model", str(model), "a folder, or a name such as facebook/opt-125m", fix, FileNotFoundError)


_LOADED = ("missing_keys", "unexpected_keys", "mismatched_keys")
_HUB = re.compile(r"[\w-][\w.-]*(/[\w-][\w.-]*)?")


def load(model: str | Path, dtype: torch.dtype, device: torch.device, lora: int | None, key: Key) -> tuple[Any, Any]:
    """Return a causal language model and its tokenizer, from a local folder or by its name on Hugging Face's hub.

    Args:
        lora: rank of adapters on all query and value matrices, which alone are trained then; alpha is the rank, or 8.
        key: of the adapters' random factors.

    Raises ModuleNotFoundError, FileNotFoundError, DataError, MemoryError before any work, each with the fix.
    """
    transformers, folder = extra("transformers"), checks.path("model", model)
    if folder.is_dir():
        model, weights = folder, inspect_folder(folder) * dtype.itemsize
        for place in dict.fromkeys((torch.device("cpu"), device)):  # a run has the start, the old and the new model
            copies = 1 if lora is not None else 3 if place == device == torch.device("cpu") else 2
            require_room(str(model), copies * weights, place)
    else:
        require_name(model)
    transformers.utils.logging.disable_progress_bar()
    try:
        safe = {"trust_remote_code": False}  # code that comes with a model is never run, nor is anybody asked
        tokenizer = transformers.AutoTokenizer.from_pretrained(model, **safe)
        of = transformers.AutoModelForCausalLM
        module, found = of.from_pretrained(model, dtype=dtype, use_safetensors=True, output_loading_info=True, **safe)
    except (OSError, ValueError, RuntimeError, ImportError) as error:
        expected = f"a causal language model that can be loaded ({str(error).splitlines()[0]})"
        fix = "fetch it where there is a network, and pass its folder"
        if folder.is_dir():
            fix = "see that config.json, tokenizer and weights belong together, or fetch the folder again"
        if "trust_remote_code" in str(error):
            expected = "an architecture of transformers' own; this one ships code, which is never run"
            fix = "choose a model that needs no code of its own"
        if isinstance(error, ImportError):
            fix = "install what reads its weights, or choose a model whose weights are not quantized"
        checks.reject("model", str(model), expected, fix, OSError)
    strangers = [f"{kind.split('_')[0]} {name}" for kind in _LOADED for name in sorted(map(str, found[kind]))]
    if strangers:  # transformers makes random numbers of what is missing
        expected = f"the weights of its config.json; {len(strangers)} differ, such as {strangers[0]}"
        checks.reject("model", str(model), expected, "fetch config.json and weights again, from one place", OSError)
    if lora is not None:
        module = adapt(module, checks.whole("lora", lora, 1), key)
    return module, tokenizer


def adapt(module: Any, rank: int, key: Key) -> Any:
    """Add W + (alpha/r) B A to all query and value matrices, alpha = r, A random and B zero; only A and B are trained.

    Raises ValueError where the model has no layers q_proj and v_proj.
    """
    peft = extra("peft")
    targets = ["q_proj", "v_proj"]
    names = {name.rpartition(".")[2] for name, _ in module.named_modules()}
    if not names.issuperset(targets):
        checks.reject("lora", rank, f"a model with layers {targets}", "choose another model, or lora=None")
    adapted = [m for name, m in module.named_modules() if name.rpartition(".")[2] in targets]
    most = min(min(m.weight.shape) for m in adapted)
    checks.whole("lora", rank, 1, most, f"choose a rank of at most {most}, the smaller side of what is adapted")
    config = peft.LoraConfig(r=rank, lora_alpha=rank, target_modules=targets, lora_dropout=0.0)
    default = torch.get_default_dtype()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(key.hash())
        torch.set_default_dtype(torch.float32)  # in which the adapters are drawn, whatever the caller's
        try:
            return peft.inject_adapter_in_model(config, module)
        finally:
            torch.set_default_dtype(default)
