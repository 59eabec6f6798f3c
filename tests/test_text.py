"""Language models: prompts as published, logits as the library's own, one copy of the weights, whole files only."""

import json
import shutil
import subprocess
import sys
from dataclasses import replace
from functools import partial
from importlib.util import find_spec

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("transformers", reason="needs the extra: pip install 'fedtheory[llm]'")
if find_spec("peft") is None:  # imported, it costs every process that only lists the tests three seconds
    pytest.skip("needs the extra: pip install 'fedtheory[llm]'", allow_module_level=True)
import transformers
from test_halves import Federation

from fedtheory import (
    BAFFLE,
    DeComFL,
    FedAvg,
    FedFTG,
    FedKSeed,
    FedSB,
    HiSo,
    Key,
    Pooled,
    ProjectedFedAvg,
    Quadratic,
    TextClassification,
    cli,
    run,
)
from fedtheory.algorithms.decomfl import Model
from fedtheory.algorithms.fedzo import FedZO, MeZO
from fedtheory.algorithms.readings.decomfl import DeComFLReading
from fedtheory.core.engine import drain
from fedtheory.core.problem import Problem
from fedtheory.maps.directions import Direction
from fedtheory.papers import Runner
from fedtheory.papers.decomfl import text as decomfl_text
from fedtheory.papers.store import measured
from fedtheory.problems import sentiment
from fedtheory.problems.formats import DataError
from fedtheory.problems.models import language
from fedtheory.problems.models.language import LanguageModel
from fedtheory.problems.text import PROMPTS, TASKS, Texts, read, tokens, verbalizer
from fedtheory.running import meter

DOUBLE = torch.float64
TINY = {"vocab_size": 90, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 4, "pad_token_id": 1}
OPT = {**TINY, "ffn_dim": 64, "word_embed_proj_dim": 16, "max_position_embeddings": 64, "dropout": 0.0}


def opt(dtype=DOUBLE, **options):
    return _seeded(lambda: transformers.OPTForCausalLM(transformers.OPTConfig(**OPT | options)), dtype)


def llama(dtype=DOUBLE):
    options = {**TINY, "intermediate_size": 32, "max_position_embeddings": 64, "tie_word_embeddings": False}
    return _seeded(lambda: transformers.LlamaForCausalLM(transformers.LlamaConfig(**options)), dtype)


def _seeded(build, dtype):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return build().to(dtype).eval()


MODULES = {
    "opt": opt,
    "post-norm, projected, as OPT-350M": partial(opt, do_layer_norm_before=False, word_embed_proj_dim=8),
    "untied": partial(opt, tie_word_embeddings=False),
    "llama": llama,
    "opt with adapters": lambda dtype=DOUBLE: language.adapt(opt(dtype), 4, Key(1)),
}
WORDS = [50, 7, 80]


def texts(count=12, *, longest=9, labels=3, seed=0):
    g = Key(seed).fold("texts").generator()
    size = lambda: int(torch.randint(3, longest + 1, (), generator=g))
    prompts = [torch.randint(3, 90, (size(),), generator=g) for _ in range(count)]
    return Texts(prompts, torch.randint(0, labels, (count,), generator=g))


def problem(name="opt", dtype=DOUBLE, *, block=100, **options):
    model = LanguageModel(MODULES[name](dtype), WORDS, block=block)
    return TextClassification(model, texts(), [torch.arange(i, 12, 3) for i in range(3)], batch=3, **options)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A pretrained model with tokenizer and data."""
    return sentiment.make(tmp_path_factory.mktemp("model"), Key(0))


@pytest.fixture(scope="module")
def pretrained(folder):
    return TextClassification.load(folder, "sst2", folder, Key(0), batch=16, dtype=DOUBLE)


# Handing over


@pytest.mark.parametrize("name", MODULES)
def test_an_exported_model_is_the_module_with_these_weights(name):
    """Tied weights, layers that are cut, and adapters included: the same logits in plain transformers."""
    P = problem(name)
    x = P.start() + 0.1 * torch.randn(P.d, generator=Key(2).generator(), dtype=DOUBLE)
    module = MODULES[name]()
    module.load_state_dict(P.export(x))
    prompt = P.train.prompts[0]
    with torch.no_grad():
        wanted = module(prompt[None]).logits[0, -1, WORDS]
    found = P.model.logits(x.split(P.model.sizes).__getitem__, [prompt])[0]
    torch.testing.assert_close(found, wanted)


def test_a_history_is_exported_as_its_model():
    P = problem(dtype=torch.float32)
    history = run(FedAvg(1e-2, 1), P, 1, metrics=())
    found = P.export(history)
    assert all(torch.equal(found[name], value) for name, value in P.export(history.x).items())


# Prompts


RECORDS = {
    "sst2": ({"sentence": " a fine film . ", "label": "1"}, "a fine film . It was", " great"),
    "cb": (
        {"premise": "It rains.", "hypothesis": "it is wet", "label": "neutral"},
        'Suppose It rains. Can we infer that "it is wet"? Yes, No, or Maybe?\n',
        "Maybe",
    ),
    "wsc": (
        {"text": "Ann met Bo. She left.", "target": {"span1_text": "Ann", "span2_text": "She"}, "label": True},
        'Ann met Bo. She left.\nIn the previous sentence, does the pronoun "she" refer to Ann? Yes or No?\n',
        "Yes",
    ),
    "wic": (
        {"word": "bank", "sentence1": "A bank.", "sentence2": "The bank.", "label": False},
        'Does the word "bank" have the same meaning in these two sentences? Yes, No?\nA bank.\nThe bank.\n',
        "No",
    ),
    "rte": (
        {"premise": "It rains.", "hypothesis": "It is wet.", "label": "not_entailment"},
        'It rains.\nDoes this mean that "It is wet." is true? Yes or No?\n',
        "No",
    ),
    "boolq": ({"passage": "Rain.", "question": "is it wet", "label": True}, "Rain. Is it wet?", " Yes"),
}


@pytest.mark.parametrize("name", TASKS)
def test_prompts_as_published(name, tmp_path):
    """Prompt and word of a record in its published form, as MeZO has them, read from a file as published."""
    record, prompt, word = RECORDS[name]
    (tmp_path / TASKS[name].folders[1]).mkdir()
    (tmp_path / TASKS[name].folders[1] / "val.jsonl").write_text(json.dumps(record) + "\n")
    (found,), (label,) = read(tmp_path, name, "validation")
    assert (TASKS[name].prompt(found), TASKS[name].words[label]) == (prompt, word)


def test_where_the_two_protocols_differ():
    """Words of SST-2 and prompt of BoolQ; all else is the same."""
    mezo, decomfl = PROMPTS["mezo"], PROMPTS["decomfl"]
    assert [name for name in TASKS if mezo[name] != decomfl[name]] == ["sst2", "boolq"]
    assert decomfl["sst2"].words == (" bad", " good")
    asked = decomfl["boolq"].prompt({"passage": "Rain.", "question": "is it wet"})
    assert asked == "Rain.\nQuestion: is it wet\nIs that correct? Yes or No?\n"


def test_other_forms_of_the_same_records(tmp_path):
    """GLUE's table, the flat fields and numbered labels of the package datasets, and a folder that it saved."""
    datasets = pytest.importorskip("datasets")
    (tmp_path / "SST-2").mkdir()
    (tmp_path / "SST-2" / "dev.tsv").write_text("sentence\tlabel\na fine film .\t1\na dud\t0\n")
    assert read(tmp_path, "sst2", "validation")[1] == [1, 0]
    flat = {"text": "Ann met Bo. She left.", "span1_text": "Ann", "span2_text": "She", "label": 1}
    splits = {split: datasets.Dataset.from_list([flat]) for split in ("train", "validation")}
    datasets.DatasetDict(splits).save_to_disk(str(tmp_path / "wsc.fixed"))
    (record,), labels = read(tmp_path, "wsc", "train")
    assert (TASKS["wsc"].prompt(record), labels) == (RECORDS["wsc"][1], [1])


def test_an_empty_table_is_named(tmp_path):
    (tmp_path / "SST-2").mkdir()
    (tmp_path / "SST-2" / "train.tsv").write_bytes(b"")
    with pytest.raises(DataError, match=r"SST-2/train\.tsv"):
        read(tmp_path, "sst2", "train")


def test_the_beginning_of_a_long_text_is_left_out(pretrained, folder):
    """What the tokenizer puts in front stays."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    whole = tokens(tokenizer, "dull plot and stale cast. It was", 64)
    assert whole.tolist() == tokenizer.encode("dull plot and stale cast. It was")
    kept = tokens(tokenizer, "dull plot and stale cast. It was", 4)
    assert kept.tolist() == [whole[0].item(), *whole[-3:].tolist()]
    assert len(whole) > 4
    assert max(len(p) for p in pretrained.train.prompts) <= 64


# The model


@pytest.mark.parametrize("name", MODULES)
@pytest.mark.parametrize("block", [40, 100, 10**6])
def test_logits_are_those_of_the_library(name, block):
    """Each prompt alone through the unchanged module: padding on the left changes nothing, nor do blocks."""
    module, prompts = MODULES[name](), texts().prompts
    with torch.no_grad():
        wanted = torch.stack([module(prompt[None]).logits[0, -1, WORDS] for prompt in prompts])
        model = LanguageModel(MODULES[name](), WORDS, block=block)
        found = model.logits(model.start.split(model.sizes).__getitem__, prompts)
    torch.testing.assert_close(found, wanted, rtol=1e-12, atol=1e-12)
    assert sum(p.numel() for p in module.parameters() if p.requires_grad) == model.layout.size
    held = [p for p in model._module.parameters() if not p.is_meta]
    assert sum(p.numel() for p in held) == (0 if "adapters" not in name else sum(p.numel() for p in opt().parameters()))


@pytest.mark.parametrize("name", MODULES)
def test_gradients_are_those_of_the_library(name):
    """grads is what backward leaves in the unchanged module's parameters."""
    P, module = problem(name), MODULES[name]()
    (rows,) = P.full(torch.tensor([1]))
    logits = torch.stack([module(P.train.prompts[i][None]).logits[0, -1, WORDS] for i in rows.tolist()])
    torch.nn.functional.cross_entropy(logits, P.train.labels[rows]).backward()
    wanted = torch.cat([p.grad.flatten() for p in module.parameters() if p.requires_grad])
    found = P.grads(P.start()[None], (rows,))
    torch.testing.assert_close(found, wanted[None], rtol=1e-10, atol=1e-12)


def test_adapters_are_a_low_rank_change_of_queries_and_values():
    """Logits with random A and B are those of a model with W + B A (alpha = r); B starts at zero, A by the key."""
    model, module = LanguageModel(language.adapt(opt(), 4, Key(1)), WORDS), opt()
    x = torch.randn(model.layout.size, generator=Key(0).generator(), dtype=DOUBLE)
    parts = dict(zip((layer.name for layer in model.layout.layers), x.split(model.sizes)))
    assert len(parts) == 2 * 2 * 2
    for i, block in enumerate(module.model.decoder.layers):
        for which in ("q_proj", "v_proj"):
            A, B = (parts[f"model.decoder.layers.{i}.self_attn.{which}.lora_{one}.default.weight"] for one in "AB")
            getattr(block.self_attn, which).weight.data += B.view(16, 4) @ A.view(4, 16)
    with torch.no_grad():
        wanted = torch.stack([module(prompt[None]).logits[0, -1, WORDS] for prompt in texts().prompts])
        found = model.logits(x.split(model.sizes).__getitem__, texts().prompts)
    torch.testing.assert_close(found, wanted, rtol=1e-10, atol=1e-12)
    first, again = (LanguageModel(language.adapt(opt(), 4, Key(k)), WORDS).start for k in (1, 2))
    assert torch.equal(first, model.start)
    assert not torch.equal(first, again)
    of = dict(zip(parts, model.start.split(model.sizes)))
    assert all((float(value.abs().max()) == 0) == ("lora_B" in name) for name, value in of.items())


def sliding(dtype=DOUBLE):
    """Tokens see the last three: no architecture for whose rows a mask of ours would do."""
    options = {**TINY, "intermediate_size": 32, "num_key_value_heads": 2, "sliding_window": 3}
    return _seeded(lambda: transformers.MistralForCausalLM(transformers.MistralConfig(**options)), dtype)


@pytest.mark.parametrize("name", [*MODULES, "sliding"])
def test_prompts_in_one_row_do_not_see_each_other(name, monkeypatch):
    """Whatever stands beside a prompt, its logits and gradients are those that it has alone."""
    monkeypatch.setattr(language, "ROW", 20)
    model = LanguageModel((MODULES | {"sliding": sliding})[name](), WORDS)
    of, passed = texts(), []
    whole = model._module.forward
    monkeypatch.setattr(
        model._module, "forward", lambda **given: passed.append(given["input_ids"].shape) or whole(**given)
    )
    x = model.start.clone().requires_grad_()
    layer = x.split(model.sizes).__getitem__
    found = model.logits(layer, of.prompts)
    rows, width = passed.pop()
    wanted = torch.cat([model.logits(layer, [prompt]) for prompt in of.prompts])
    torch.testing.assert_close(found, wanted, rtol=1e-10, atol=1e-12)
    slopes = (torch.autograd.grad(one.square().sum(), x, retain_graph=True)[0] for one in (found, wanted))
    torch.testing.assert_close(*slopes, rtol=1e-9, atol=1e-12)
    if name == "sliding":
        assert (rows, width) == (12, max(map(len, of.prompts)))
    else:
        assert 1 < rows < 6
        assert rows * width < 1.2 * sum(map(len, of.prompts))


def test_what_another_thread_asks_for_meanwhile_changes_no_answer(monkeypatch):
    """Of an embedding that may do more than look up rows, whose logits are picked when the model is another's again."""

    class Scaled(torch.nn.Embedding):
        def forward(self, ids):
            return 2 * super().forward(ids)

    module = llama()
    module.set_input_embeddings(Scaled(90, 16, dtype=DOUBLE, _weight=module.get_input_embeddings().weight.data))
    model, of = LanguageModel(module, WORDS), texts()
    layer = model.start.split(model.sizes).__getitem__
    whole, wanted = module.forward, torch.cat([model.logits(layer, [prompt]) for prompt in of.prompts])

    def then_another(**given):
        out = whole(**given)
        model._last = (torch.zeros(12, dtype=torch.int64), torch.arange(12) % 3)
        return out

    monkeypatch.setattr(module, "forward", then_another)
    torch.testing.assert_close(model.logits(layer, of.prompts), wanted, rtol=1e-10, atol=1e-12)


@given(st.lists(st.integers(1, 400), min_size=1, max_size=40), st.integers(1, 400))
def test_rows_are_few_and_evenly_filled(sizes, capacity):
    """Each prompt stands in one row, none above the capacity; never more tokens than with a row for each."""
    rows = language.pack(sizes, capacity)
    assert sorted(i for row in rows for i in row) == list(range(len(sizes)))
    assert all(rows)
    width = max(sum(sizes[i] for i in row) for row in rows)
    assert width <= max(capacity, *sizes)
    assert width <= sum(sizes) / len(rows) + max(sizes)
    assert len(rows) * width <= len(sizes) * max(sizes)
    assert len(rows) == len(sizes) or len(rows) * width < len(sizes) * max(sizes)


@pytest.mark.parametrize("sizes", [[200] * 16, [310] * 32 + [300] * 32, [2048] + [2000] * 63, [5]])
def test_prompts_that_no_row_could_share_have_one_each(sizes):
    assert language.pack(sizes, 256) == [[i] for i in range(len(sizes))]
    assert max(map(len, language.pack(sizes + [20] * 20, 256))) > 1


@pytest.mark.parametrize("name", MODULES)
def test_layers_moved_one_by_one(name):
    """losses_at is losses at the moved point; of the embedding only the blocks that a batch uses are asked for."""
    P = problem(name)
    z = Direction(Key(3), P.layout, "gaussian", DOUBLE, P.device)
    xi, asked = P.draw(P.clients, 1, Key(4))[0], []

    def shift(j, layer):
        asked.append(j)
        return z.add(j, layer, 0.1)

    y = P.start().expand(3, -1)
    moved = y + 0.1 * torch.cat([part for _, part in z])
    found = P.losses_at(y, shift, xi)
    torch.testing.assert_close(found, P.losses(moved, xi), rtol=1e-12, atol=1e-12)
    used = torch.cat([P.train.prompts[i] for i in torch.cat(xi).tolist()] + [torch.tensor(WORDS)])
    for j, layer in enumerate(P.layout.layers):
        if "embed_tokens" in layer.name and name != "llama" and "untied" not in name:
            a = int(layer.name.partition("[")[2].partition(":")[0])
            assert (j in asked) == bool(((used >= a) & (used < a + layer.cols)).any())
        elif "embed_tokens" not in layer.name and "lm_head" not in layer.name:
            assert asked.count(j) == 1


def test_clients_at_one_point_or_each_at_its_own():
    P = problem()
    xi, x = P.draw(P.clients, 1, Key(0))[0], P.start()
    torch.testing.assert_close(P.losses(x.expand(3, -1), xi), P.losses(x.repeat(3, 1), xi), rtol=1e-12, atol=1e-12)
    alone = [P.losses(x[None], xi[i : i + 1]) for i in range(3)]
    torch.testing.assert_close(P.losses(x.expand(3, -1), xi), torch.cat(alone), rtol=1e-12, atol=1e-12)


def test_samples_do_not_depend_on_who_else_takes_part():
    P = problem()
    whole = P.draw(P.clients, 2, Key(9))
    for ids in ([2], [2, 0]):
        some = P.draw(torch.tensor(ids), 2, Key(9))
        assert all(torch.equal(a, whole[k][i]) for k in (0, 1) for a, i in zip(some[k], ids))
    assert all(len(rows) == 3 == len(set(rows.tolist())) for xi in whole for rows in xi)


def test_evaluation_in_parts_is_evaluation():
    P, small = problem(), problem(at_once=2)
    x = P.start()
    assert P.loss(x) == pytest.approx(small.loss(x), rel=1e-12)
    assert P.loss(x) == pytest.approx(Problem.loss(P, x), rel=1e-12)
    assert P.accuracy(x) == small.accuracy(x)


def test_texts_of_like_length_pass_together(monkeypatch):
    """Every text gets its own answer back."""
    P, rows, passed = problem(at_once=3), torch.arange(12), []
    layers, logits = P.start().split(P.model.sizes), P.model.logits
    monkeypatch.setattr(P.model, "logits", lambda layer, some: passed.extend(map(len, some)) or logits(layer, some))
    with torch.no_grad():
        found = P._logits(layers.__getitem__, P.train, rows)
        alone = torch.cat([logits(layers.__getitem__, [prompt]) for prompt in P.train.prompts])
    torch.testing.assert_close(found, alone, rtol=1e-10, atol=1e-12)
    assert passed == sorted(map(len, P.train.prompts))


# Fine-tuning


METHODS = {
    "FedAvg": FedAvg(0.05, 1),
    "FedZO": FedZO(1e-2, 1, 4),
    "DeComFL": DeComFL(1e-2, 1, 4),
    "DeComFL, two steps": DeComFL(1e-2, 2, 4),
    "MeZO": MeZO(1e-2, 1, 4),
}


@pytest.mark.parametrize("name", METHODS)
def test_methods_lower_the_loss(name, pretrained):
    """From a model that calls nearly everything great."""
    P = Pooled(pretrained) if name == "MeZO" else pretrained
    history = run(METHODS[name], P, 8, sampled=min(2, P.n), every=8, metrics=("loss",))
    assert history["loss"][-1] < 0.8 * history["loss"][0]


def test_pretraining_leaves_something_to_do(pretrained):
    assert pretrained.accuracy(pretrained.start()) < 0.6
    history = run(DeComFL(1e-2, 1, 10), pretrained, 15, sampled=2, every=15, metrics=("accuracy",))
    assert history["accuracy"][-1] > 0.9


def test_bytes_do_not_depend_on_what_is_tuned(folder, pretrained):
    """DeComFL: full parameters, adapters and a quadratic in two dimensions; FedAvg sends what is tuned."""
    small = TextClassification.load(folder, "sst2", folder, Key(0), lora=4, batch=4, dtype=DOUBLE)
    assert small.d == 2 * 2 * 2 * 4 * 32
    each = {"tuned": pretrained, "adapters": small, "quadratic": Quadratic.random(8, 2, Key(0))}
    costs = {}
    for name, P in each.items():
        history = run(DeComFLReading(1e-4, 1, 3, secret=0), P, 6, sampled=2, every=6, metrics=())
        costs[name] = (history["up_bytes"][-1], history["down_bytes"][-1])
        if name != "quadratic":
            dense = run(FedAvg(1e-4, 1), P, 2, sampled=2, every=2, metrics=())
            assert dense["up_bytes"][-1] == dense["down_bytes"][-1] == 2 * 2 * 8 * P.d
    assert len(set(costs.values())) == 1


@pytest.mark.parametrize("name", METHODS)
def test_adapters_are_tuned(name, folder):
    """All methods on LoRA's parameters (rank 8, alpha 8, all Q and V); their gradients are small, so the steps long.

    Two steps of the length 1 overshoot for some seeds, and for seed 0 on some processors.
    """
    adapted = TextClassification.load(folder, "sst2", folder, Key(0), lora=8, batch=16, dtype=DOUBLE)
    P = Pooled(adapted) if name == "MeZO" else adapted
    algorithm = replace(METHODS[name], lr=0.5 if name == "DeComFL, two steps" else 1.0)
    history = run(algorithm, P, 8, sampled=min(2, P.n), every=8, metrics=("loss",))
    assert history["loss"][-1] < 0.9 * history["loss"][0]


def test_half_precision_goes_on_from_a_checkpoint(tmp_path):
    """Weights in bfloat16, which NumPy lacks: resumed from round 2, the run has the bits of an unbroken one."""
    whole = run(DeComFL(1e-3, 1, 2), problem(dtype=torch.bfloat16), 4, metrics=())
    for rounds in (2, 4):
        part = run(DeComFL(1e-3, 1, 2), problem(dtype=torch.bfloat16), rounds, metrics=(), checkpoint=tmp_path)
    assert torch.equal(part.x, whole.x)
    assert part.columns == whole.columns


def test_threads_change_no_bit():
    P = problem()
    one, two = (run(FedAvg(0.1, 2), P, 2, metrics=(), threads=threads).x for threads in (1, 2))
    assert torch.equal(one, two)


# Memory and precision


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32], ids=str)
def test_a_client_holds_one_copy_of_the_weights(dtype):
    """A round, the rebuild of a missed one included, peaks within 1.1 of inference; a moved copy would not."""
    module = opt(dtype, hidden_size=96, word_embed_proj_dim=96, ffn_dim=384, num_hidden_layers=8, vocab_size=2000)
    P = TextClassification(LanguageModel(module, WORDS, block=2**13), texts(2), [torch.arange(2)], batch=1)
    x, one, algorithm = P.start(), torch.tensor([0]), DeComFLReading(1e-3, 1, 2, scalar="central")
    down = algorithm.broadcast(algorithm.init(P, x, Key(0)).server, Key(1))
    step = algorithm.step(down, torch.full((1, 2), 0.1))
    (xi,) = P.draw(one, 1, Key(1))

    def client():
        algorithm.rebuild(P.layout, Model(x, None), step)
        drain(algorithm.client(P, one, None, down, Key(1)))

    z = Direction(Key(0), P.layout, "gaussian", dtype, P.device)
    with torch.no_grad():
        inference = meter.peak_bytes(lambda: P.losses(x[None], xi))
        assert inference >= x.numel() * x.element_size()
        assert meter.peak_bytes(client) < 1.1 * inference
        moved = lambda: Problem.losses_at(P, x[None], lambda j, layer: z.add(j, layer, 1e-3), xi)
        assert meter.peak_bytes(moved) > 1.8 * inference


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
def test_scalars_are_finer_than_the_weights(dtype):
    P = problem(dtype=dtype)
    algorithm = DeComFLReading(1e-3, 1, 2, secret=0)
    history = run(algorithm, P, 3, sampled=2, metrics=("loss", "accuracy"))
    assert history.x.dtype == dtype
    single = run(algorithm, problem(dtype=torch.float32), 3, sampled=2, metrics=())
    assert history["up_bytes"] == single["up_bytes"]
    assert history["down_bytes"] == single["down_bytes"]
    xi = P.draw(P.clients, 1, Key(0))[0]
    with torch.no_grad():
        assert P.losses(P.start().expand(3, -1), xi).dtype == torch.float32
    exact = problem(dtype=DOUBLE)
    assert history["loss"][0] == pytest.approx(exact.loss(exact.start()), rel=0.02)


# What is missing or damaged


def loaded(folder, **options):
    return TextClassification.load(folder, "sst2", options.pop("data", folder), Key(0), **options)


@pytest.fixture
def copy(folder, tmp_path):
    for path in folder.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    return tmp_path


def test_shards(folder, tmp_path):
    """Weights in several files; one that is missing is named."""
    module = transformers.AutoModelForCausalLM.from_pretrained(folder)
    module.save_pretrained(tmp_path, max_shard_size="50KB")
    transformers.AutoTokenizer.from_pretrained(folder).save_pretrained(tmp_path)
    assert torch.equal(loaded(tmp_path, data=folder).start(), loaded(folder).start())
    last = sorted(tmp_path.glob("*.safetensors"))[-1]
    last.unlink()
    with pytest.raises(FileNotFoundError, match=last.name):
        loaded(tmp_path, data=folder)


@pytest.mark.parametrize("kept", [0, 5, 100, -1])
def test_a_half_downloaded_file(copy, kept, monkeypatch):
    """Found before transformers reads anything."""
    path = copy / "model.safetensors"
    path.write_bytes(path.read_bytes()[:kept])
    monkeypatch.setattr(transformers.AutoModelForCausalLM, "from_pretrained", None)
    with pytest.raises(DataError, match=r"model.safetensors, byte .* Fix: fetch the file again"):
        loaded(copy)


def test_missing_parts(copy, monkeypatch):
    monkeypatch.setattr(transformers.AutoModelForCausalLM, "from_pretrained", None)
    with pytest.raises(FileNotFoundError, match=r"model='/no/such/model': expected a folder, or a name"):
        loaded("/no/such/model", data=copy)
    (copy / "tokenizer.json").rename(copy / "gone")
    with pytest.raises(FileNotFoundError, match=r"model=.* a tokenizer .* Fix: .*tokenizer.save_pretrained"):
        loaded(copy)
    (copy / "gone").rename(copy / "tokenizer.json")
    (copy / "model.safetensors").rename(copy / "pytorch_model.bin")
    with pytest.raises(FileNotFoundError, match=r"pickled weights"):
        loaded(copy)
    (copy / "config.json").unlink()
    with pytest.raises(FileNotFoundError, match=r"config.json"):
        loaded(copy)


def test_too_little_memory(folder, monkeypatch):
    monkeypatch.setattr(transformers.AutoModelForCausalLM, "from_pretrained", None)
    monkeypatch.setattr(language, "free_bytes", lambda device: 1000)
    with pytest.raises(
        MemoryError, match=r"model=.*expected a model for which there is room: .* Fix: choose a smaller"
    ):
        loaded(folder)


def test_a_name_that_cannot_be_fetched(folder, monkeypatch):
    def refuse(*names, **options):
        raise OSError("no network")

    monkeypatch.setattr(transformers.AutoTokenizer, "from_pretrained", refuse)
    with pytest.raises(OSError, match=r"model='facebook/opt-125m'.*no network.*pass its folder"):
        loaded("facebook/opt-125m", data=folder)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ('{"sentence": "a", "label": 1}\n{"sentence"', r"line 2 is no JSON"),
        ('{"text": "a", "label": 1}\n', r"line 1 is no labelled record"),
        ('{"sentence": "a", "label": 2}\n', r"line 1 is no labelled record.*label 2"),
        ("", r"no records"),
    ],
)
def test_damaged_records(copy, lines, message):
    """Said with the line, not with a byte."""
    (copy / "train.jsonl").write_text(lines)
    with pytest.raises(DataError, match=message):
        loaded(copy)


def test_lines_end_at_newlines_only(copy):
    """Other separators belong to the text, a byte-order mark to nothing; what is no UTF-8 is named."""
    (copy / "train.jsonl").write_bytes('\ufeff{"sentence": "a\u2028b\x85c", "label": 1}\r\n'.encode())
    assert read(copy, "sst2", "train") == ([{"sentence": "a\u2028b\x85c", "label": 1}], [1])
    first = b'{"sentence": "a", "label": 1}\n' * 1000
    (copy / "train.jsonl").write_bytes(first + b'{"sentence": "\xff", "label": 1}')
    with pytest.raises(DataError, match=rf"train.jsonl, byte {len(first) + 14}: no UTF-8 text"):
        read(copy, "sst2", "train")


@pytest.mark.parametrize(
    "change",
    [
        {"num_hidden_layers": 4},
        {"num_hidden_layers": 1},
        {"hidden_size": 64, "word_embed_proj_dim": 64},
        {"vocab_size": 90},
        {"model_type": "bert"},
    ],
    ids=str,
)
def test_weights_of_another_config(copy, change):
    """The library would make random numbers of what is missing and forget what is too much."""
    config = json.loads((copy / "config.json").read_text())
    (copy / "config.json").write_text(json.dumps(config | change))
    with pytest.raises(OSError, match=r"model='.*': expected .*Fix: .*config.json"):
        loaded(copy)


def test_small_parts_on_request(folder):
    """The Dirichlet partition's smallest part can be named."""
    P = loaded(folder, subset=64, min_size=1)
    assert min(map(len, P.parts)) >= 1
    with pytest.raises(ValueError, match=r"clients=8: expected at most 6, so that each can have 10 of the 64"):
        loaded(folder, subset=64)


def test_weights_that_nothing_here_reads(copy):
    """Quantized ones need a package of their own: said in a line, and not by an ImportError."""
    config = json.loads((copy / "config.json").read_text())
    (copy / "config.json").write_text(json.dumps(config | {"quantization_config": {"quant_method": "gptq", "bits": 4}}))
    with pytest.raises(OSError, match=r"model=.*Fix: install what reads its weights, or choose a model"):
        loaded(copy)


@pytest.mark.parametrize("part", [torch.arange(3.0), torch.arange(3).int(), torch.arange(4).view(2, 2)])
def test_parts_that_are_no_indices(pretrained, part):
    with pytest.raises(ValueError, match=r"parts\[0\]=.*expected indices: torch.int64 \(n_i,\). Fix: pass "):
        TextClassification(pretrained.model, pretrained.train, [part])


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"data": "/no/such/data"}, FileNotFoundError, r"data='/no/such/data': .* Fix: get SuperGLUE"),
        ({"prompts": "mine"}, ValueError, r"prompts='mine': expected one of 'mezo', 'decomfl'"),
        ({"dtype": torch.int8}, TypeError, r"dtype=torch.int8: expected one of float16"),
        ({"subset": 0}, ValueError, r"subset=0"),
        ({"lora": 0}, ValueError, r"lora=0"),
        ({"block": 0}, ValueError, r"block=0"),
        ({"batch": 0}, ValueError, r"batch=0"),
        ({"clients": 10**4}, ValueError, r"clients|min_size"),
    ],
)
def test_bad_arguments(folder, options, error, message):
    with pytest.raises(error, match=message):
        loaded(folder, **options)


def test_words_of_several_tokens(folder):
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    task = TASKS["sst2"]
    assert len(verbalizer(tokenizer, task, "dull plot It was")) == 2
    with pytest.raises(ValueError, match=r"words=' unfathomable': expected .* one token"):
        verbalizer(tokenizer, TASKS["sst2"].__class__(task.prompt, (" great", " unfathomable"), (), ()), "It was")
    with pytest.raises(ValueError, match=r"distinct"):
        verbalizer(tokenizer, TASKS["sst2"].__class__(task.prompt, (" great", " great"), (), ()), "It was")


def test_adapters_need_queries_and_values():
    module = transformers.GPT2LMHeadModel(transformers.GPT2Config(n_embd=16, n_layer=1, n_head=2, vocab_size=90))
    with pytest.raises(ValueError, match=r"lora=8: expected a model with layers"):
        language.adapt(module, 8, Key(0))


def test_code_that_comes_with_a_model_is_never_run(folder, tmp_path, monkeypatch):
    """Nobody is asked, either: one line, and what the folder's code would have done is not done."""
    monkeypatch.setattr("builtins.input", lambda *_: pytest.fail("it asked"))
    here, trace = tmp_path / "model", tmp_path / "ran"
    shutil.copytree(folder, here)
    config = json.loads((here / "config.json").read_text())
    own = {"AutoConfig": "own.Config", "AutoModelForCausalLM": "own.Model"}
    (here / "config.json").write_text(json.dumps(config | {"model_type": "own", "auto_map": own}))
    (here / "own.py").write_text(f"open({str(trace)!r}, 'w')\n")
    with pytest.raises(
        OSError, match=r"ships code, which is never run.*Fix: choose a model that needs no code"
    ) as caught:
        TextClassification.load(here, "sst2", folder, Key(0))
    assert len(str(caught.value).splitlines()) == 1
    assert not trace.exists()


def test_without_the_extra(folder):
    """All else is there, and the error says what to install."""
    code = f"""
import sys
sys.modules["transformers"] = None
from fedtheory import DeComFL, Key, TextClassification
try:
    TextClassification.load({str(folder)!r}, "sst2", {str(folder)!r}, Key(0))
except ModuleNotFoundError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout == "extra='transformers': expected an installed package. Fix: pip install 'fedtheory[llm]'\n"


def test_fingerprints_tell_problems_apart():
    one = problem()
    assert one.fingerprint() == problem().fingerprint()
    assert one.fingerprint() != problem("untied").fingerprint()
    other = TextClassification(one.model, texts(seed=1), one.parts, batch=3)
    assert other.fingerprint() != one.fingerprint()
    elsewhere = TextClassification(one.model, one.train, one.parts, batch=one.batch, test=texts(seed=1))
    assert elsewhere.fingerprint() != one.fingerprint()


def test_frozen_weights_and_words_count(folder, tmp_path):
    """Beside adapters: two models, or other words, with the same adapters and the same start."""
    prints, other = [], sentiment.make(tmp_path, Key(1))
    for at, prompts in ((folder, "mezo"), (folder, "decomfl"), (other, "mezo")):
        prints.append(TextClassification.load(at, "sst2", at, Key(0), lora=2, prompts=prompts).fingerprint())
    assert len(set(prints)) == 3
    with pytest.raises(ValueError, match=r"lora=10000000: .*the smaller side of what is adapted"):
        TextClassification.load(folder, "sst2", folder, Key(0), lora=10**7)


# The command line


def test_run_on_the_command_line(folder, capsys, monkeypatch):
    words = ("run", "DeComFL", "text", "--rounds", "1", "--local-steps", "1", "--json")
    monkeypatch.setenv("FEDTHEORY_DATA", str(folder))
    assert cli.main([*words, "--model", str(folder), "--lora", "4"]) == 0
    (one,) = json.loads(capsys.readouterr().out)
    assert one["columns"]["up_bytes"][-1] == 8 * 10 * 4
    assert cli.main([*words, "--model", "/no/such/model"]) == 2
    assert "fedtheory: model='/no/such/model': expected a folder" in capsys.readouterr().err


def test_printed_accuracies_are_run_where_weights_and_tasks_are(folder, tmp_path, monkeypatch):
    """A tiny model in the place of OPT-125M: what is there is run, what is not says what it needs."""
    (tmp_path / "opt-125m").symlink_to(folder)
    (tmp_path / "SST-2").symlink_to(folder)
    monkeypatch.setenv("FEDTHEORY_DATA", str(tmp_path))
    ways = decomfl_text.methods(1e-3)
    wanted = [
        decomfl_text.Wanted(name, 50.0, "OPT-125M", "SST-2", ways[name], 2, lora)
        for name, lora in (("MeZO", None), ("FedZO P=5", None), ("DeComFL P=5", 8), ("FedAvg", None))
    ]
    wanted.append(decomfl_text.Wanted("other task", 50.0, "OPT-125M", "CB", ways["DeComFL P=5"], 2))
    wanted.append(decomfl_text.Wanted("other model", 50.0, "OPT-1.3B", "SST-2", ways["DeComFL P=5"], 2))
    runner = Runner(tmp_path / "out", workers=1)
    cells = {
        cell.cell: cell for cell in measured(runner, decomfl_text.accuracies("decomfl/table2", wanted, "paper", 1))
    }
    found = {name: cells[name].ours for name in ("MeZO", "FedZO P=5", "DeComFL P=5")}
    assert all(0 < value <= 100 for value in found.values())
    command = "python -m fedtheory reproduce decomfl/table2 --scale paper --data FOLDER --device cuda"
    for name, what, room in (("other task", "CB", "2.2 GB"), ("other model", "OPT-1.3B", "11 GB")):
        assert (cells[name].verdict, cells[name].seeds) == ("not tested", 0)
        assert cells[name].reason.endswith(f"and a GPU with about {room}: {command}")
        assert what in cells[name].reason
    assert cells["FedAvg"].reason == decomfl_text.FEDAVG
    quick = measured(runner, decomfl_text.accuracies("decomfl/table2", wanted, "quick", 1))
    assert {(cell.verdict, cell.seeds) for cell in quick} == {("not tested", 0)}
    (folder_cut := tmp_path / "opt-1.3b").mkdir()
    for path in folder.iterdir():
        (folder_cut / path.name).write_bytes(path.read_bytes()[: 10_000 if path.suffix == ".safetensors" else None])
    with pytest.raises(DataError, match=r"opt-1.3b/model.safetensors"):
        measured(runner, decomfl_text.accuracies("decomfl/table2", wanted, "paper", 1))


# Half precision


HALVES = (
    DeComFL(1e-3, 2, 2, 1e-2),
    DeComFLReading(1e-3, 2, 3, scalar="projection"),
    HiSo(1e-3, 2, 2, 1e-2),
    FedKSeed(1e-3, 2, 20, 1e-2),
    FedKSeed(1e-3, 2, 20, 1e-2, weighted=True),
    BAFFLE(1e-3, 3, 1e-2),
)


@pytest.mark.parametrize("method", HALVES, ids=repr)
def test_half_precision_alike_in_one_process_and_in_a_federation(method):
    """Slopes are float32; bits and bytes agree."""
    P = problem("opt with adapters", torch.bfloat16)
    P = TextClassification(P.model, texts(), [torch.arange(6), torch.arange(6, 9), torch.arange(9, 12)], batch=2)
    history, parted = run(method, P, 4, metrics=(), sampled=1, blocks=3), Federation(method, P, sampled=1)
    for _ in range(4):
        parted.round()
        assert not parted.server.refused
    assert torch.equal(parted.x, history.x)
    assert not torch.equal(parted.x, P.start())
    assert parted.server.payload == (history["up_bytes"][-1], history["down_bytes"][-1])


@pytest.mark.parametrize("method", [FedSB(0.1, 2), FedFTG(0.1, 2, 2), ProjectedFedAvg(0.1, 2, 2, 2)], ids=repr)
def test_what_has_no_half_precision_is_refused(method):
    with pytest.raises(TypeError, match=r"dtype=torch.bfloat16: .*Fix: "):
        run(method, problem("opt with adapters", torch.bfloat16), 2, metrics=())
