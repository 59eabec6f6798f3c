"""A sample report's runs: with 50 rounds to spend, do more local steps help FedAvg, and do they help SCAFFOLD?"""

from functools import cache

from fedtheory import FedAvg, Key, Quadratic, Scaffold, run
from fedtheory.papers.store import interval

ROUNDS, STEPS, RATES = 50, (1, 4, 16), (0.003, 0.01, 0.03, 0.1, 0.3, 1.0)
TUNED, SEEDS = 0, range(1, 9)  # the rate is chosen on a problem that is not used again
METHODS = {"FedAvg": FedAvg, "SCAFFOLD": Scaffold}


@cache
def error(method: str, steps: int, rate: float, seed: int) -> float:
    """Mean relative distance to the solution over the last ten rounds; clients differ, gradients have noise."""
    key = Key(seed)
    problem = Quadratic.random(10, 20, key.fold("problem"), spectrum=(0.05, 1.0), sigma=0.3)
    history = run(METHODS[method](rate, steps), problem, ROUNDS, seed=seed, sampled=5)
    return sum(history["error"][-10:]) / 10


def rate(method: str, steps: int) -> float:
    """The best of RATES on the problem that is not used again."""
    return min(RATES, key=lambda one: error(method, steps, one, TUNED))


def paired(of: tuple[str, int], minus: tuple[str, int]) -> tuple[float, float, float]:
    """The mean difference of two settings' errors, problem by problem, with its 95% interval."""
    gaps = [error(*of, rate(*of), seed) - error(*minus, rate(*minus), seed) for seed in SEEDS]
    return interval(gaps)


def main() -> None:
    print("| local steps | FedAvg, rate | FedAvg, error | SCAFFOLD, rate | SCAFFOLD, error |\n|---|---|---|---|---|")
    for steps in STEPS:
        cells = [str(steps)]
        for method in METHODS:
            mean, low, high = interval([error(method, steps, rate(method, steps), seed) for seed in SEEDS])
            cells += [f"{rate(method, steps):g}", f"{mean:.3f} [{low:.3f}, {high:.3f}]"]
        print(f"| {' | '.join(cells)} |")
    for of, minus in (
        (("FedAvg", 16), ("FedAvg", 1)),
        (("SCAFFOLD", 16), ("SCAFFOLD", 1)),
        (("SCAFFOLD", 16), ("SCAFFOLD", 4)),
        (("SCAFFOLD", 1), ("FedAvg", 1)),
    ):
        mean, low, high = paired(of, minus)
        print(f"{of[0]}, K = {of[1]}, minus {minus[0]}, K = {minus[1]}: {mean:.3f} [{low:.3f}, {high:.3f}]")
    for method, steps in ((method, steps) for method in METHODS for steps in STEPS):
        assert min(RATES) < rate(method, steps) < max(RATES)
    _, low, high = paired(("FedAvg", 16), ("FedAvg", 1))
    assert low <= 0 <= high
    assert paired(("SCAFFOLD", 16), ("SCAFFOLD", 1))[2] < 0


if __name__ == "__main__":
    main()
