"""What a subspace buys and costs: error against bytes on SSF's matrix regression, every method at its best step."""

from collections.abc import Sequence

from matplotlib.figure import Figure

from fedtheory.papers import style
from fedtheory.papers.ssf.items import READING, columns, final, method, spec
from fedtheory.papers.store import Item, Result, Spec, Wants, interval
from fedtheory.running.records import Row, Table
from fedtheory.theory.ssf.printed import METHODS, SAMPLED

HET, RANK, COLUMNS, NUMBER = 0.5, 20, 10, 8  # a row of X holds ten numbers of eight bytes
SENT = {"Full-FedAvg": 100, "Full-SCAFFOLD": 200, "FedSub": RANK, "SSF": 2 * RANK}  # rows that a client sends a round
BUDGET = {"quick": 6_000_000, "paper": 24_000_000}  # bytes up, of all clients together
RATES = (0.003, 0.01, 0.03, 0.1, 0.3)
TUNING_SEED = 100  # used for nothing else


def rounds(name: str, scale: str) -> int:
    """How many rounds the budget pays."""
    return BUDGET[scale] // (SAMPLED * SENT[name] * COLUMNS * NUMBER)


def trial(name: str, lr: float, seed: int, scale: str) -> Spec:
    """One run of a method, to the end of its budget."""
    return spec(method(name, lr, RANK), HET, seed, rounds(name, scale), 50)


def measure(scale: str, seeds: int) -> Wants[Result]:
    """Error over bytes of four methods, each at the best of five step sizes on a seed of its own."""
    tried = {(name, lr): trial(name, lr, TUNING_SEED, scale) for name in METHODS for lr in RATES}
    found = yield tried.values()
    errors = {of: final(found[one]) for of, one in tried.items()}
    best = {
        name: min((lr for lr in RATES if errors[name, lr] == errors[name, lr]), key=lambda lr: errors[name, lr])
        for name in METHODS
    }
    wanted = {(name, seed): trial(name, best[name], seed, scale) for name in METHODS for seed in range(seeds)}
    results = yield wanted.values()
    table: Table = []
    for name in METHODS:
        runs = [results[wanted[name, seed]]["columns"] for seed in range(seeds)]
        for at, done in enumerate(runs[0]["round"]):
            mean, low, high = interval([run["error"][at] for run in runs])
            row: Row = {"method": name, "round": done, "up_MB": runs[0]["up_bytes"][at] / 1e6}
            row |= {"mean": mean, "low": low, "high": high, "lr": best[name], "seeds": seeds}
            table.append(row | wanted[name, 0].ran())
    settings = {
        "bytes up": BUDGET[scale],
        "step sizes": RATES,
        "tuned on seed": TUNING_SEED,
        "errors while tuning": {name: {str(lr): errors[name, lr] for lr in RATES} for name in METHODS},
    }
    return Result(table, [], settings, [*READING[:4], "Bytes up are those of all ten participants together."])


@style.styled
def draw(table: Sequence[Row]) -> Figure:
    """Error over bytes sent to the server, with 95% intervals."""
    figure, (axes,) = style.new_figure()
    for name in METHODS:
        rows = [row for row in table if row["method"] == name]
        _, mean, low, high = columns(rows)
        style.band(axes, [row["up_MB"] for row in rows], mean, low, high, name, rows[0]["seeds"])
    axes.set(yscale="log", xlabel="megabytes sent to the server", ylabel=r"$\|X_t-X^*\|_F\,/\,\|X^*\|_F$")
    axes.set_title("What a subspace buys and costs (r = 20 of 100 rows)")
    style.caption(figure, list(table), "every method at the best of five step sizes")
    style.legend_above(figure, 2)
    return figure


EXTRAS = [Item("ssf/bytes", "Error against bytes, every method at its best step size", measure, draw)]
