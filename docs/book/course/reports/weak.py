"""A sample report's runs, with typical faults: one seed, one rate for all, the last round, nothing asserted."""

from fedtheory import FedAvg, Key, Quadratic, Scaffold, run


def main() -> None:
    problem = Quadratic.random(10, 20, Key(5), spectrum=(0.05, 1.0), sigma=0.3)
    print("| local steps | FedAvg | SCAFFOLD |\n|---|---|---|")
    for steps in (1, 4, 16):
        errors = [run(method(0.3, steps), problem, 50, sampled=5)["error"][-1] for method in (FedAvg, Scaffold)]
        print(f"| {steps} | {errors[0]:.5f} | {errors[1]:.5f} |")


if __name__ == "__main__":
    main()
