"""Classification of texts by a causal language model: a prompt, and which of a few words the model puts behind it.

Prompts and words are those of MeZO (Malladi et al. 2023, arXiv:2305.17333, "large models": its public code), whose
protocol DeComFL cites. `prompts="decomfl"`: those of DeComFL's public code, with other words for SST-2, whose texts it
cuts to 32 tokens, and another prompt for BoolQ. That code takes CB's third label for its first; here it has three.
"""

import hashlib
import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch.nn import functional

from fedtheory.core import checks
from fedtheory.core.history import History, model_of
from fedtheory.core.key import Key
from fedtheory.core.problem import Constants, Problem, Shift, own_modes
from fedtheory.core.registry import Offer
from fedtheory.problems import data as readers
from fedtheory.problems import formats, partitions
from fedtheory.problems.formats import DataError
from fedtheory.problems.models import language
from fedtheory.problems.models.language import LanguageModel, Layers

_Record = dict[str, Any]
Rows = tuple[torch.Tensor, ...]  # for each client the indices of its texts


@dataclass(frozen=True)
class Task:
    """A task.

    Fields:
        prompt: of the fields of a record.
        words: the verbalizer, one per label, as it follows the prompt.
        labels: names of the labels where they are published as words.
        folders: under which names it is published.
        longest: tokens of a text that are kept, the last ones; None: as many as the model takes.
    """

    prompt: Callable[[_Record], str]
    words: tuple[str, ...]
    labels: tuple[str, ...]
    folders: tuple[str, ...]
    longest: int | None = None


def _boolq(r: _Record) -> str:
    question = r["question"] if r["question"].endswith("?") else f"{r['question']}?"
    return f"{r['passage']} {question[:1].upper()}{question[1:]}"


def _cb(r: _Record) -> str:
    return f'Suppose {r["premise"]} Can we infer that "{r["hypothesis"]}"? Yes, No, or Maybe?\n'


def _rte(r: _Record) -> str:
    return f'{r["premise"]}\nDoes this mean that "{r["hypothesis"]}" is true? Yes or No?\n'


def _wic(r: _Record) -> str:
    ask = f'Does the word "{r["word"]}" have the same meaning in these two sentences? Yes, No?'
    return f"{ask}\n{r['sentence1']}\n{r['sentence2']}\n"


def _wsc(r: _Record) -> str:
    one, two = (r.get("target", r)[f"span{i}_text"] for i in (1, 2))
    return f'{r["text"]}\nIn the previous sentence, does the pronoun "{two.lower()}" refer to {one}? Yes or No?\n'


def _sst2(r: _Record) -> str:
    return f"{r['sentence'].strip()} It was"


def _boolq_decomfl(r: _Record) -> str:
    return f"{r['passage']}\nQuestion: {r['question']}\nIs that correct? Yes or No?\n"


_AGAIN = "correct the line, or fetch the file again from its publisher"
_NO_YES = ("false", "true")
TASKS = {
    "sst2": Task(_sst2, (" terrible", " great"), ("negative", "positive"), ("sst2", "SST-2")),
    "cb": Task(_cb, ("Yes", "No", "Maybe"), ("entailment", "contradiction", "neutral"), ("cb", "CB")),
    "wsc": Task(_wsc, ("No", "Yes"), _NO_YES, ("wsc", "WSC", "wsc.fixed")),
    "wic": Task(_wic, ("No", "Yes"), _NO_YES, ("wic", "WiC")),
    "rte": Task(_rte, ("Yes", "No"), ("entailment", "not_entailment"), ("rte", "RTE")),
    "boolq": Task(_boolq, (" No", " Yes"), _NO_YES, ("boolq", "BoolQ")),
}
_DECOMFL = {
    "sst2": replace(TASKS["sst2"], words=(" bad", " good"), longest=31),  # of the 32 tokens the last is the answer
    "boolq": replace(TASKS["boolq"], prompt=_boolq_decomfl, words=("No", "Yes")),
}
PROMPTS = {"mezo": TASKS, "decomfl": TASKS | _DECOMFL}
_SPLITS = {"train": ("train",), "validation": ("validation", "val", "dev")}


def read(folder: str | Path, task: str, split: str) -> tuple[list[_Record], list[int]]:
    """Read records and labels of a task: from its folder, or from the folder of that name in it.

    Read are the published files, SuperGLUE's JSON lines (train.jsonl, val.jsonl) and GLUE's tables (train.tsv,
    dev.tsv), and what the package `datasets` saves to disk.

    Raises FileNotFoundError for what is missing, DataError with file and line for what cannot be read.
    """
    path, records = _place(folder, task, split)
    return _labelled(path, records(path), TASKS[task])


def origin(model: str | Path, task: str, folder: str | Path) -> dict[str, Any]:
    """Return what a task and a model are read from: SHA-256 of their files, computed once while they do not change.

    A model that is named on the hub has none: only its name is known.

    Raises FileNotFoundError for what is missing.
    """
    model = checks.path("model", model)
    if not model.is_dir():
        language.require_name(model)
    found = {f"{task} {split}": readers.digest_of([_place(folder, task, split)[0]]) for split in _SPLITS}
    found[f"model {model.name}"] = readers.digest_of([model]) if model.is_dir() else f"hub: {model}"
    return {name: {"sha256": digest, "verified": "unverified"} for name, digest in found.items()}


def _place(folder: str | Path, task: str, split: str) -> tuple[Path, Callable[[Path], Any]]:
    """The file or folder of a split, and what reads (line, record) from it."""
    root, of = checks.path("folder", folder), TASKS[checks.choice("task", task, TASKS)]
    checks.choice("split", split, _SPLITS)
    places = [root, *(root / name for name in of.folders)]
    for place in places:
        for name in _SPLITS[split]:
            for end, reader in ((".jsonl", _json_lines), (".tsv", _table)):
                path = place / f"{name}{end}"
                if path.is_file():
                    return path, reader
            if (place / name / "dataset_info.json").is_file():
                return place / name, _saved
    fix = "get SuperGLUE's zip of the task (SST-2: GLUE's), and pass the folder into which it was unpacked"
    expected = f"{split}.jsonl or .tsv of {task}, there or in {' or '.join(of.folders)}"
    checks.reject("data", str(folder), expected, fix, FileNotFoundError)


def _lines(path: Path) -> list[str]:
    """Lines end at newlines only: a text may hold other separators. A byte-order mark is no part of the first."""
    content = formats.content_of(path)
    try:
        text = content.decode().removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        raise DataError(path, error.start, "no UTF-8 text", "save it as UTF-8") from error
    return [line.rstrip("\r") for line in text.removesuffix("\n").split("\n")] if text else []


def _saved(path: Path):
    """(number, record) of what `datasets` saved."""
    yield from enumerate(language.extra("datasets").load_from_disk(str(path)), 1)


def _json_lines(path: Path):
    """(line, record)"""
    for number, line in enumerate(_lines(path), 1):
        try:
            yield number, json.loads(line)
        except (ValueError, RecursionError) as error:
            raise DataError(path, 0, f"line {number} is no JSON ({error})", _AGAIN) from error


def _table(path: Path):
    """(line, record); the first line names the columns."""
    head, *lines = _lines(path) or [""]
    for number, line in enumerate(lines, 2):
        yield number, dict(zip(head.split("\t"), line.split("\t")))


def _labelled(path: Path, lines: Any, task: Task) -> tuple[list[_Record], list[int]]:
    """Every record makes a prompt and has a label."""
    records, labels = [], []
    for number, record in lines:
        try:
            task.prompt(record)
            name = str(record["label"]).lower()
            label = task.labels.index(name) if name in task.labels else int(name)
            if not 0 <= label < len(task.words):
                raise ValueError(f"label {label}")
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            cause = f"line {number} is no labelled record of the task ({error!r})"
            raise DataError(path, 0, cause, _AGAIN) from error
        records.append(record)
        labels.append(label)
    if not records:
        raise DataError(path, 0, "no records")
    return records, labels


@dataclass(frozen=True)
class Texts:
    """Prompts as tokens, each (n,) int64, and their labels (len(prompts),)."""

    prompts: Sequence[torch.Tensor]
    labels: torch.Tensor


class TextClassification(Problem):
    """f_i(x) = mean cross-entropy of the words behind client i's prompts, for the language model with weights x.

    Every local step sees `batch` texts of a client, drawn without replacement (all, where it has fewer).

    Args:
        model: see `LanguageModel`.
        train: the texts.
        parts: for each client the indices of its texts, (n_i,) int64, n_i >= 1.
        batch: minibatch size.
        test: to evaluate on; default the training texts.
        at_once: texts that pass through the model at a time.
    """

    closed_form = False
    chunk = 1
    _apart = (*Problem._apart, "model")  # see `fingerprint`

    @own_modes()
    @checks.arguments
    def __init__(
        self,
        model: LanguageModel,
        train: Texts,
        parts: Sequence[torch.Tensor],
        *,
        batch: int = 32,
        test: Texts | None = None,
        at_once: int = 64,
    ) -> None:
        self.weights = partitions.client_shares(parts, len(train.prompts))
        self.model, self.train, self.test, self.parts = model, train, test or train, tuple(parts)
        self.batch, self.at_once = checks.whole("batch", batch, 1), checks.whole("at_once", at_once, 1)
        self.n, self.layout, self.device, self.dtype = len(parts), model.layout, model.device, model.start.dtype
        self.constants = Constants()

    @staticmethod
    @own_modes()
    @checks.arguments
    def load(
        model: str | Path,
        task: str,
        data: str | Path,
        key: Key | int = 0,
        *,
        clients: int = 8,
        alpha: float | None = 1.0,
        min_size: int = 10,
        subset: int | None = None,
        tested: int | None = None,
        prompts: str = "mezo",
        lora: int | None = None,
        dtype: torch.dtype = torch.float32,
        device: str | torch.device = "cpu",
        block: int = language.BLOCK,
        **options: Any,
    ) -> "TextClassification":
        """A task for a pretrained model, its training texts divided among clients, tested on the validation split.

        Args:
            model: a folder, or a name on Hugging Face's hub such as "facebook/opt-125m".
            task: one of `TASKS`.
            data: see `read`.
            key: of the partition, the subsets and the adapters, or its seed.
            alpha: of the Dirichlet partition by labels; None: equal parts at random.
            min_size: texts that every client gets at least in the Dirichlet partition.
            subset, tested: so many random training and validation texts only; default all.
            prompts: "mezo" or "decomfl".
            lora: see `language.load`.
            dtype: of the weights: float16 and bfloat16, too. Losses, and so the scalars of zeroth-order methods, are
                float32 at least.
            options: of the constructor.
        """
        checks.spelled(options, TextClassification.load, TextClassification.__init__)
        key = Key.of(key)
        if dtype not in language.DTYPES.values():
            checks.reject("dtype", dtype, f"one of {', '.join(language.DTYPES)}", "pass torch.float32", TypeError)
        of = PROMPTS[checks.choice("prompts", prompts, PROMPTS)][checks.choice("task", task, TASKS)]
        checks.device("device", device)
        found = []
        for split, name, count in (("train", "subset", subset), ("validation", "tested", tested)):
            records, labels = read(data, task, split)
            if count is not None:
                checks.whole(name, count, 1, len(records))
            chosen = torch.randperm(len(records), generator=key.fold(split).generator())[:count].sort()[0].tolist()
            found.append(
                ([of.prompt(records[i]).strip(" ") for i in chosen], torch.tensor([labels[i] for i in chosen]))
            )
        device = checks.device("device", device)
        module, tokenizer = language.load(model, dtype, device, lora, key.fold("lora"))
        flat = LanguageModel(module, verbalizer(tokenizer, of, found[0][0][0]), block=block, device=device)
        longest = min(flat.longest, of.longest or flat.longest)
        train, test = (Texts([tokens(tokenizer, text, longest) for text in texts], y) for texts, y in found)
        y, where = train.labels, key.fold("partition")
        parts = (
            partitions.iid(y, clients, where)
            if alpha is None
            else partitions.dirichlet(y, clients, alpha, where, min_size)
        )
        problem = TextClassification(flat, train, parts, test=test, **options)
        problem.origin = origin(model, task, data)
        return problem

    @property
    def metrics(self) -> tuple[str, ...]:
        return ("loss", "accuracy")

    def start(self) -> torch.Tensor:
        """The pretrained weights, (d,), on the CPU: `run` makes the copy that it works on."""
        return self.model.start

    def export(self, x: torch.Tensor | History) -> dict[str, torch.Tensor]:
        """The language model's `state_dict` with the weights x (d,), or with those of a History.

        It is for `load_state_dict` or `save_pretrained`.
        """
        return self.model.state_dict(model_of(x, self.d))

    def fingerprint(self) -> str:
        """Also of what the model holds beside its trained weights, and of the words that it chooses from."""
        return hashlib.sha256(f"{super().fingerprint()} {self.model.fingerprint()}".encode()).hexdigest()[:16]

    def draw(self, clients: torch.Tensor, steps: int, key: Key) -> list[Rows]:
        def batch(i: int, k: int) -> torch.Tensor:
            part = self.parts[i]
            return part[torch.randperm(len(part), generator=key.fold(i, k).generator())[: self.batch]]

        return [tuple(batch(i, k) for i in clients.tolist()) for k in range(steps)]

    def full(self, clients: torch.Tensor) -> Rows:
        return tuple(self.parts[i] for i in clients.tolist())

    def losses(self, y: torch.Tensor, xi: Rows) -> torch.Tensor:
        return self.losses_at(y, lambda j, layer: layer, xi)

    def losses_at(self, y: torch.Tensor, shift: Shift, xi: Rows) -> torch.Tensor:
        """Layers of y + shift are made one by one while the model runs; clients at one point share them."""
        if len(y) > 1 and y.stride(0) != 0:
            return torch.cat([self.losses_at(y[i : i + 1], shift, xi[i : i + 1]) for i in range(len(y))])
        layers = y[:1].split(self.model.sizes, dim=-1)
        each = self._losses(lambda j: shift(j, layers[j])[0], self.train, torch.cat(xi))
        return torch.stack([one.mean() for one in each.split([len(rows) for rows in xi])])

    def grads(self, y: torch.Tensor, xi: Rows) -> torch.Tensor:
        rows = []
        for x, some in zip(y, xi):
            leaf = x.detach().requires_grad_()
            with torch.enable_grad():
                loss = self._losses(leaf.split(self.model.sizes).__getitem__, self.train, some).mean()
                rows.append(torch.autograd.grad(loss, leaf)[0])
        return torch.stack(rows)

    def _logits(self, layer: Layers, texts: Texts, rows: torch.Tensor) -> torch.Tensor:
        """Texts of like length pass together: little is padded."""
        prompts = [texts.prompts[i] for i in rows.tolist()]
        order = torch.tensor([len(prompt) for prompt in prompts]).argsort(stable=True)
        parts = [self.model.logits(layer, [prompts[i] for i in some.tolist()]) for some in order.split(self.at_once)]
        return torch.cat(parts)[order.argsort()]

    def _losses(self, layer: Layers, texts: Texts, rows: torch.Tensor) -> torch.Tensor:
        """Cross-entropy of each text."""
        labels = texts.labels[rows].to(self.device)
        return functional.cross_entropy(self._logits(layer, texts, rows), labels, reduction="none")

    @torch.no_grad()
    def loss(self, x: torch.Tensor) -> float:
        """F(x) over all clients' texts."""
        rows = torch.cat(self.parts)
        return float(self._losses(x.split(self.model.sizes).__getitem__, self.train, rows).double().mean())

    @torch.no_grad()
    def accuracy(self, x: torch.Tensor) -> float:
        """Share of the test texts behind which the right word has the largest logit."""
        rows = torch.arange(len(self.test.prompts))
        found = self._logits(x.split(self.model.sizes).__getitem__, self.test, rows).argmax(1).cpu()
        return float((found == self.test.labels).double().mean())


def tokens(tokenizer: Any, text: str, longest: int) -> torch.Tensor:
    """Turn a prompt into tokens, with what the tokenizer puts in front; of a long one the beginning is left out."""
    ids = torch.tensor(tokenizer.encode(text))
    if len(ids) <= longest:
        return ids
    front = len(tokenizer.encode(""))
    return torch.cat([ids[:front], ids[len(ids) - longest + front :]])


def verbalizer(tokenizer: Any, task: Task, prompt: str) -> list[int]:
    """Return the token that stands behind a prompt for each of the task's words.

    Raises ValueError for a word that is not one token, or where two are the same.
    """
    before, found = tokenizer.encode(prompt), []
    for word in task.words:
        after = tokenizer.encode(prompt + word)
        if after[:-1] != before:
            expected = f"a tokenizer for which it is one token behind a prompt (it makes {len(after) - len(before)})"
            checks.reject("words", word, expected, "choose a model whose vocabulary has the word")
        found.append(after[-1])
    if len(set(found)) < len(found):
        checks.reject("words", task.words, "distinct tokens", "choose a model whose vocabulary has the words")
    return found


def _asked(key: Key, device: str, options: Any) -> TextClassification:
    """A task for the pretrained language model that is asked for, or for the small one that is made on the spot."""
    if options.model is None:
        from fedtheory.problems import sentiment

        for name in ("task", "lora", "data"):
            if getattr(options, name, None) is not None:
                checks.reject(name, getattr(options, name), "a pretrained model", "name its folder with --model")
        return sentiment.problem(key, device=device)
    folder = os.environ.get("FEDTHEORY_DATA")
    if folder is None:
        fix = "pass --data FOLDER, or set FEDTHEORY_DATA"
        checks.reject("data", None, "the folder of the task's texts", fix, FileNotFoundError)
    task = options.task or "sst2"
    return TextClassification.load(options.model, task, folder, key, lora=options.lora, device=device)


PROBLEMS = [Offer("text", TextClassification, _asked, ("loss", "accuracy"))]
