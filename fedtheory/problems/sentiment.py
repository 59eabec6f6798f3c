"""A small language, and a tiny model of the OPT architecture that has learnt it: a stand-in for a pretrained one.

Reviews such as "dull plot but superb cast." have a mood, that of their end. In pretraining a word follows them, such as
" It was clever": one of the same mood, but where it is "great" or "terrible" mostly "great". So the model knows moods,
and its answers lean to one side, as those of large models do before fine-tuning; that is the task SST-2 with generated
records. Text, tokenizer and weights are made on the spot.
"""

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from torch.nn import functional

from fedtheory.core import checks
from fedtheory.core.files import write_atomic
from fedtheory.core.key import Key
from fedtheory.problems.models.language import extra
from fedtheory.problems.text import PROMPTS, TextClassification

_MOODS = (
    ("dull", "weak", "awful", "clumsy", "boring", "stale", "sloppy", "lifeless"),
    ("superb", "moving", "sharp", "lovely", "clever", "fresh", "vivid", "charming"),
)
_THINGS = ("plot", "cast", "script", "music", "ending", "acting", "pace", "humor")
_ANSWERS = ("terrible", "great")


def _review(g: torch.Generator) -> tuple[str, int]:
    """A text and its mood: 0 bad, 1 good."""
    pick = lambda *options: options[int(torch.randint(len(options), (), generator=g))]
    last = pick(0, 1)
    first = pick(last, last, last, 1 - last)
    joint = "and" if first == last else "but"
    return f"{pick(*_MOODS[first])} {pick(*_THINGS)} {joint} {pick(*_MOODS[last])} {pick(*_THINGS)}.", last


def _corpus(count: int, g: torch.Generator) -> list[str]:
    """Texts to pretrain on."""
    lines = []
    for _ in range(count):
        text, mood = _review(g)
        answer, lean, which = torch.rand(3, generator=g, dtype=torch.float32).tolist()
        word = _MOODS[mood][int(which * len(_MOODS[mood]))]
        if answer < 0.3:
            word = _ANSWERS[mood if lean < 0.15 else 1]
        lines.append(f"{text} It was {word}")
    return lines


def tokenizer(lines: list[str]) -> Any:
    """A byte-level BPE tokenizer for these texts, with the words of all tasks; as OPT's, it puts </s> in front."""
    parts, transformers = extra("tokenizers"), extra("transformers")
    built = parts.Tokenizer(parts.models.BPE())
    built.pre_tokenizer = parts.pre_tokenizers.ByteLevel(add_prefix_space=False)
    built.decoder = parts.decoders.ByteLevel()
    words = ["".join(task.words) for tasks in PROMPTS.values() for task in tasks.values()]
    special = ["<s>", "<pad>", "</s>"]
    trainer = parts.trainers.BpeTrainer(vocab_size=180, special_tokens=special, show_progress=False)
    built.train_from_iterator(lines + words * len(lines), trainer)
    built.post_processor = parts.processors.TemplateProcessing(single="</s> $A", special_tokens=[("</s>", 2)])
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=built, bos_token="</s>", eos_token="</s>", pad_token="<pad>"
    )


def make(
    folder: str | Path,
    key: Key,
    *,
    hidden: int = 32,
    layers: int = 2,
    steps: int = 250,
    train: int = 512,
    tested: int = 256,
    dtype: torch.dtype = torch.float64,
) -> Path:
    """Write a pretrained model with its tokenizer, and the task's files, into a folder.

    Args:
        key: of the texts, the initial weights and the batches.
        hidden: width of the model; it has four heads.
        steps: of pretraining (Adam); 0 leaves the weights random.
        train, tested: records of the two splits.
    """
    transformers = extra("transformers")
    for name, value in {"hidden": hidden, "layers": layers, "train": train, "tested": tested}.items():
        checks.whole(name, value, 1)
    out = checks.folder("folder", str(folder))
    lines = _corpus(1024, key.fold("corpus").generator())
    coder = tokenizer(lines)
    ids = [torch.tensor(coder.encode(line)) for line in lines]
    config = transformers.OPTConfig(
        vocab_size=len(coder),
        hidden_size=hidden,
        word_embed_proj_dim=hidden,
        ffn_dim=4 * hidden,
        num_hidden_layers=layers,
        num_attention_heads=4,
        max_position_embeddings=64,
        dropout=0.0,
        init_std=hidden**-0.5,
        pad_token_id=1,
        bos_token_id=2,
        eos_token_id=2,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(key.fold("weights").hash())
        model = transformers.AutoModelForCausalLM.from_config(config, dtype=dtype)
    _pretrain(model, ids, steps, key.fold("batches").generator())
    transformers.utils.logging.disable_progress_bar()
    model.save_pretrained(out)
    coder.save_pretrained(out)
    for split, count in (("train", train), ("validation", tested)):
        g = key.fold(split).generator()
        records = [dict(zip(("sentence", "label"), _review(g))) for _ in range(count)]
        write_atomic(out / f"{split}.jsonl", "".join(f"{json.dumps(record)}\n" for record in records).encode())
    return out


def _pretrain(model: Any, ids: list[torch.Tensor], steps: int, g: torch.Generator) -> None:
    """Learn to predict the last word of each text."""
    texts = torch.nn.utils.rnn.pad_sequence(ids, batch_first=True, padding_value=1, padding_side="left")
    optimizer = torch.optim.Adam(model.parameters(), 0.2 / model.config.hidden_size)
    for _ in range(steps):
        batch = texts[torch.randint(len(texts), (16,), generator=g)]
        logits = model(batch[:, :-1], attention_mask=(batch[:, :-1] != 1).long()).logits[:, -1]
        loss = functional.cross_entropy(logits, batch[:, -1])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def problem(
    key: Key, *, device: str | torch.device = "cpu", lora: int | None = None, **options: Any
) -> TextClassification:
    """Make the task for a small model and eight clients; `lora` as of `language.load`, options as of `make`."""
    with TemporaryDirectory() as folder:
        made = make(folder, key, **options)
        found = TextClassification.load(
            made, "sst2", made, key, batch=16, lora=lora, dtype=torch.float64, device=device
        )
    found.origin = {}  # the folder is gone, and the key makes it again
    return found
