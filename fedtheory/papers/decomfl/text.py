"""DeComFL: accuracies of language models (Tables 2 and 6, Fig. 5 right), where weights and tasks are at hand.

They are looked for in the folder of the data (FEDTHEORY_DATA): models in folders such as opt-125m, tasks in folders as
published, such as SST-2 and CB.
"""

import os
from dataclasses import dataclass
from pathlib import Path

from fedtheory.algorithms.decomfl import DeComFL
from fedtheory.algorithms.fedzo import FedZO, MeZO
from fedtheory.core.algorithm import Algorithm
from fedtheory.papers import judge
from fedtheory.papers.decomfl.curves import MU
from fedtheory.papers.store import Spec, Wants
from fedtheory.problems.models import language
from fedtheory.problems.text import read
from fedtheory.running import verdicts
from fedtheory.running.records import Cell, Row

SIZES = {"OPT-125M": 125.2e6, "OPT-350M": 331.2e6, "OPT-1.3B": 1315.8e6, "OPT-2.7B": 2651.6e6}
WIDTHS = {"OPT-125M": 768, "OPT-350M": 1024, "OPT-1.3B": 2048, "OPT-2.7B": 2560}
COPIES = {"DeComFL": 2, "MeZO": 2, "FedZO": 5}  # of the model in a round, measured: FedZO holds its clients' changes
READING = (
    "Accuracies: prompts and words of the public code, whose SST-2 texts have 32 tokens; forward differences, mu = "
    "1e-3, no momentum, float32, 2 of 8 clients, Dirichlet(1), batches of 32 (open points 6, 9, 14, 26, 27). FedZO and "
    "MeZO with DeComFL's rates and rounds, FedZO's directions Gaussian, MeZO's P = 1 (19, 20): not printed. Validation "
    "split, after the last round (29)."
)
FEDAVG = "its learning rate and rounds are not printed, so there is no command for it"


@dataclass(frozen=True)
class Wanted:
    """A printed accuracy in percent, and the run that would give ours (no algorithm: what it would be is not said)."""

    cell: str
    paper: float
    model: str
    task: str
    algorithm: Algorithm | None
    rounds: int
    lora: int | None = None

    def spec(self, seed: int, every: int | None = None) -> Spec:
        """One run; MeZO has the data of all clients in one place."""
        folder = Path(os.environ["FEDTHEORY_DATA"])
        alone = isinstance(self.algorithm, MeZO)
        options = {
            "model": str(folder / self.model.lower()),
            "task": self.task.lower().replace("-", ""),
            "data": str(folder),
            "prompts": "decomfl",
            "lora": self.lora,
            "clients": 1 if alone else 8,
        }
        assert self.algorithm is not None
        return Spec(
            self.algorithm,
            "text",
            tuple(options.items()),
            self.rounds,
            seed,
            1 if alone else 2,
            every or self.rounds,
            "float32",
            ("accuracy",),
        )

    def missing(self) -> str | None:
        """What is not at hand; a file that is damaged is an error."""
        folder = os.environ.get("FEDTHEORY_DATA")
        try:
            if folder is None:
                raise FileNotFoundError("no folder of data was named")
            for package in ("transformers", "peft"):
                language.extra(package)
            language.inspect_folder(Path(folder) / self.model.lower())
            for split in ("train", "validation"):
                read(folder, self.task.lower().replace("-", ""), split)
        except (FileNotFoundError, ModuleNotFoundError) as error:
            return str(error)
        return None


def needs(item: str, model: str, task: str, method: str = "DeComFL") -> str:
    """What a run needs, and its command. Memory: float32; a text's activations are 12 numbers per token and width."""
    tokens = 32 if task == "SST-2" else 512
    room = 4 * (COPIES[method] * SIZES[model] + 64 * tokens * 12 * WIDTHS[model])
    command = f"python -m fedtheory reproduce {item} --scale paper --data FOLDER --device cuda"
    where = f"{model} (in FOLDER/{model.lower()}, as safetensors) and {task} (in FOLDER/{task}, as published)"
    return f"needs {where}, the extra [llm] and a GPU with about {room / 1e9:.2g} GB: {command}"


def accuracies(item: str, wanted: list[Wanted], scale: str, seeds: int) -> Wants[list[Cell]]:
    """Cells of all that is wanted: run at the paper's scale where everything is there."""
    lacking = {one: one.missing() if scale == "paper" else None for one in wanted if one.algorithm is not None}
    there = [one for one, lacks in lacking.items() if scale == "paper" and lacks is None]
    results = yield [one.spec(seed) for one in there for seed in range(seeds)]
    cells = []
    for one in wanted:
        if one in there:
            runs = [results[one.spec(seed)] for seed in range(seeds)]
            last = [100 * run["columns"]["accuracy"][-1] for run in runs]
            why = f"{one.algorithm!r}, {one.rounds} rounds, from {100 * runs[0]['columns']['accuracy'][0]:.3g}"
            region = verdicts.points(one.paper)
            cells.append(judge.level(one.cell, one.paper, last, region, "paper's", verdicts.AUTHORS, None, why))
        else:
            why = FEDAVG if one.algorithm is None else needs(item, one.model, one.task, one.algorithm.name)
            lacks = lacking.get(one)
            cells.append(judge.absent(one.cell, one.paper, why if lacks is None else f"{lacks}; {why}"))
    return cells


def methods(lr: float) -> dict[str, Algorithm | None]:
    """The columns of Tables 2 and 6."""
    return {
        "FedAvg": None,
        "MeZO": MeZO(lr, 1, 1, MU),
        **{f"FedZO P={P}": FedZO(lr, 1, P, MU, direction="gaussian") for P in (5, 10)},
        **{f"DeComFL P={P}": DeComFL(lr, 1, P, MU) for P in (5, 10)},
    }


# Fig. 5 right: rates from the authors' logs.
RATES = {"OPT-125M": 5e-6, "OPT-350M": 3e-6, "OPT-1.3B": 2e-6, "OPT-2.7B": 2e-6}


def convergence(scale: str, seeds: int) -> Wants[tuple[list[Row], list[Cell]]]:
    """Accuracy on SST-2 by round for the four sizes, and the round from which it is within a point of the end's."""
    table: list[Row] = []
    cells = []
    for model, lr in RATES.items():
        cell = f"{model}: round of convergence (around)"
        one = Wanted(cell, 1250, model, "SST-2", DeComFL(lr, 1, 5, MU), 2000)
        if scale != "paper" or one.missing() is not None:
            cells.append(judge.absent(cell, 1250, needs("decomfl/fig5b", model, "SST-2")))
            continue
        specs = [one.spec(seed, every=50) for seed in range(seeds)]
        results = yield specs
        found = [results[one]["columns"] for one in specs]
        for at, r in enumerate(found[0]["round"]):
            mean = sum(columns["accuracy"][at] for columns in found) / seeds
            table.append({"model": f"{model}, ours", "round": r, "accuracy": mean, **specs[0].ran()})
        reached = []
        for columns in found:
            tail = columns["accuracy"][-10:]
            level = sum(tail) / len(tail) - 0.01
            reached.append(next(r for r, value in zip(columns["round"], columns["accuracy"]) if value >= level))
        why = "first record within a point of the mean of the last ten; the statement has no definition"
        region = verdicts.times(1250)
        cells.append(judge.level(cell, 1250, reached, region, "paper's", verdicts.AUTHORS, None, why))
    return table, cells
