"""One local step of models that are too large for a round: seconds, share of the limit, peak memory.

resnet110/fedavg: notebook 10's deep item, ResNet-110 with 7 x 7 kernels for 100 classes, a step of FedAvg on 32 images
of 3 x 32 x 32 (random numbers), in float32 and with precision="bf16".

smollm2/fedavg, smollm2/decomfl: SmolLM2-135M, all weights trained, 8 prompts of 32 tokens (random): a step of FedAvg,
which is one gradient; one of DeComFL with P = 5, which is six forward passes and ten directions of 135 million numbers.

A step is `fedtheory.run` with one client, one local step and one round, as a user calls it: the model's copies, the
server's line and the count of bytes included.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch

from fedtheory import DeComFL, FedAvg, ImageClassification, Key, run
from fedtheory.core.algorithm import Algorithm
from fedtheory.core.problem import Problem
from fedtheory.papers.decomfl import smollm
from fedtheory.papers.deep import items as deep
from fedtheory.problems.models import language
from fedtheory.problems.models.networks import network
from fedtheory.problems.models.packaged import PACKAGED
from fedtheory.problems.text import TextClassification, Texts
from fedtheory.running import meter

RANDOM = "random"  # in the place of a model's folder: its shape with random weights
IMAGES, PROMPTS, TOKENS = 320, 8, 32
GET = "python -m fedtheory model smollm2 FOLDER (see README), or take --model random: its shape alone"


@dataclass(frozen=True)
class Step:
    """A step of a method with K = 1 on a problem of one client.

    Fields:
        algorithm, problem: see above.
        dtype: of its products.
    """

    algorithm: Algorithm
    problem: Problem
    dtype: torch.dtype = torch.float32

    @cached_property
    def start(self) -> torch.Tensor:
        """The initial weights, drawn once: nine million take a tenth of a second."""
        return self.problem.start()

    def play(self) -> None:
        run(self.algorithm, self.problem, 1, x0=self.start, metrics=())


def resnet(device: str) -> dict[str, Step]:
    """A step of the deep item at the papers' scale, by precision."""
    at = deep.SETTINGS["paper"]
    images = torch.randn(IMAGES, 3, 32, 32, generator=Key(0).generator())
    labels = torch.randint(100, (IMAGES,), generator=Key(1).generator())
    built, parts = network(at.network, (3, 32, 32), 100, deep.VIEW, deep.WHOLE), [torch.arange(IMAGES)]
    steps = {}
    for kind, dtype in (("full", torch.float32), ("bf16", torch.bfloat16)):
        options: dict[str, Any] = {"batch": deep.BATCH, "precision": kind, "device": device}
        problem = ImageClassification(images, labels, parts, built, Key(2), **options)
        steps[kind] = Step(FedAvg(at.lr, 1), problem, dtype)
    return steps


def texts(device: str, folder: str) -> dict[str, Step]:
    """A step of each method on SmolLM2 from a folder, or on its shape with random weights."""
    if folder == RANDOM:
        module = shape()
    else:
        module, _ = language.load(folder, torch.float32, torch.device(device), None, Key(0))
    prompts = torch.randint(1000, module.config.vocab_size, (PROMPTS, TOKENS), generator=Key(1).generator())
    model = language.LanguageModel(module, [10, 20], device=device)
    data = Texts(list(prompts), torch.arange(PROMPTS) % 2)
    problem = TextClassification(model, data, [torch.arange(PROMPTS)], batch=PROMPTS, at_once=PROMPTS)
    methods = {"fedavg": FedAvg(1e-3, 1), "decomfl": DeComFL(1e-5, 1, smollm.P, smollm.MU)}
    return {name: Step(method, problem) for name, method in methods.items()}


def shape() -> Any:
    """A module of SmolLM2-135M's shape with random weights; the count of its parameters is the packaged model's."""
    transformers = language.extra("transformers")
    config = transformers.LlamaConfig(
        vocab_size=49152,
        hidden_size=576,
        intermediate_size=1536,
        num_hidden_layers=30,
        num_attention_heads=9,
        num_key_value_heads=3,
        max_position_embeddings=8192,
        tie_word_embeddings=True,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        module = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    count, known = sum(p.numel() for p in module.parameters()), PACKAGED["smollm2"].parameters
    if count != known:
        raise AssertionError(f"the shape has {count} parameters, SmolLM2-135M {known}")
    return module


def counted(step: Step, device: str) -> dict[str, int]:
    """FLOPs of its products, its peak of memory in bytes, parameters of its model.

    On the CPU memory is what the client holds in tensors, its data left out (`running.meter`); on CUDA it is what
    torch's allocator holds beyond what lay there before.
    """
    state = step.algorithm.init(step.problem, step.problem.start().to(device), Key(0))
    found = meter.client(step.algorithm, step.problem, state, Key(0).fold("round", 0))
    peak = found.memory
    if device == "cuda":
        del state
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        step.play()
        torch.cuda.synchronize()
        peak = torch.cuda.max_memory_allocated() - before
    return {"flops": 2 * found.products, "peak_bytes": peak, "parameters": step.problem.d}
