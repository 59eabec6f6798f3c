"""The command line and the figures' store, as a user calls them."""

import gc
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import Executor, Future
from multiprocessing.process import BaseProcess
from pathlib import Path

import cases
import long_run
import pytest
from forked import background, ended, main

import fedtheory
from fedtheory import FedAvg, Key, cli, compare, run
from fedtheory.cli import figures, report
from fedtheory.core import registry
from fedtheory.papers import ITEMS, store
from fedtheory.papers.deep import items as deep
from fedtheory.papers.store import Result, Runner
from fedtheory.running import records, seal, simulate
from fedtheory.running.verdicts import VERDICTS
from fedtheory.theory import ledger

ROOT = Path(__file__).resolve().parent.parent
PAPER_ITEMS = {
    *(f"fedsub/{name}" for name in ("fig1a", "fig1b", "fig1c", "fig2", "table1")),
    *(f"ssf/{name}" for name in ("fig1a", "fig1b", "fig1c", "fig2a", "fig2b", "fig2c", "fig3", "fig4")),
    *(f"ssf/table{number}" for number in (1, 2, 3, 4, 5)),
    *(f"mud/{name}" for name in ("fig2", "fig3", "fig4", "fig5", "fig6", "fig7")),
    *(f"mud/table{number}" for number in (1, 2, 3, 4, 5)),
    *(f"flss/{name}" for name in ("fig1a", "fig1bcd", "fig2", "table1", "table2", "table3", "table4")),
    *(f"decomfl/{name}" for name in ("fig2a", "fig2b", "fig3a", "fig3b", "fig4", "fig5a", "fig5b", "fig6")),
    *(f"decomfl/table{number}" for number in (1, 2, 4, 5, 6)),
}
REPORT_KEYS = {
    "item",
    "cell",
    "paper",
    "ours",
    "low",
    "high",
    "seeds",
    "scale",
    "verdict",
    "reason",
    "p",
    "kind",
    "ran",
    "tuning",
    "prints",
}


def call(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    """Exit status, stdout, stderr of a command run in this process."""
    status = cli.main(words)
    out, err = capsys.readouterr()
    return status, out, err


def test_a_rank_that_a_scheduler_sets_silences_nothing(capsys, monkeypatch):
    monkeypatch.setenv("RANK", "1")
    status, out, err = call(capsys, "run", "SSF", "matrix_regression", "--rounds", "3", "--sampled", "100")
    assert (status, out) == (2, "")
    assert "sampled=100" in err


@pytest.mark.parametrize(
    "words",
    [
        ("claims", "ssf.lemma2", "--save", "FILE", "--page", "FILE"),
        ("conclusions", "ssf", "--ledger", "FILE", "--page", "FILE"),
        ("report", "--ledger", "FILE", "--page", "FILE"),
    ],
)
def test_a_page_does_not_replace_what_is_read_or_saved(words, capsys, tmp_path):
    file = tmp_path / "there.json"
    if "--save" not in words:
        file.write_text("[]")
    status, _, err = call(capsys, *(str(file) if word == "FILE" else word for word in words))
    assert status == 2
    assert "expected a file that the command does not use otherwise" in err
    assert "--save" in words or file.read_text() == "[]"


@pytest.mark.parametrize("command", ["report", "conclusions"])
def test_no_folder_of_results(command, capsys, tmp_path):
    status, out, err = call(capsys, command, "--out", str(tmp_path / "nowhere"), "--json")
    assert (status, out) == (2, "")
    assert "expected a folder of results" in err


@pytest.mark.parametrize(
    "words", [("--methods", "FedAvg", "FedAvg"), ("--methods", "FedAvg", "--tasks", "quadratics", "quadratics")]
)
def test_a_name_that_stands_twice(words, capsys, tmp_path):
    status, _, err = call(capsys, "compare", *words, "--out", str(tmp_path))
    assert status == 2
    assert "once" in err


@pytest.mark.parametrize(("command", "decided"), [("reproduce", figures.DEFAULT_SEEDS), ("compare", compare.SEEDS)])
def test_help_has_the_number_of_seeds_that_runs(command, decided):
    first, _, rest = cli.SEEDS[command].partition("; ")
    scales, _, more = rest.partition(": ")
    said = dict.fromkeys(decided, int(first)) | dict.fromkeys(scales.split(" and "), int(more))
    assert said == decided


def test_list_names_everything(capsys):
    status, out, _ = call(capsys, "list", "--json")
    names = json.loads(out)
    assert status == 0
    assert set(names["items"]) == PAPER_ITEMS
    assert {"FedAvg", "SCAFFOLD", "FedSub", "SSF"} <= set(names["algorithms"])
    assert {"quadratic", "matrix_regression", "logistic_regression"} <= set(names["problems"])
    assert isinstance(names["claims"], list)
    assert call(capsys, "list")[1].count("ssf/") >= 11


def test_the_report_lists_every_item_of_the_five_papers():
    """Those without a result, too: what is missing is a command."""
    listed = report.list_items([])
    assert len(listed) == 49
    assert all(item["verdicts"] == "not tested" and "reproduce" in item["reason"] for item in listed)
    row = {"item": "ssf/fig4", "verdict": "contradicted", "reason": "r", "scale": "medium", "seeds": 2}
    found = {item["item"]: item["verdicts"] for item in report.list_items([row, {**row, "verdict": "matches"}])}
    assert (found.pop("ssf/fig4"), set(found.values())) == ("1 matches, 1 contradicted", {"not tested"})


def test_run_prints_json_and_goes_on_from_a_checkpoint(capsys, tmp_path):
    words = ("run", "SSF", "matrix_regression", "--rank", "5", "--sampled", "10", "--json")
    folder = ("--checkpoint", str(tmp_path / "c"))
    (whole,) = json.loads(call(capsys, *words, "--rounds", "40")[1])
    call(capsys, *words, "--rounds", "40", *folder)
    (resumed,) = json.loads(call(capsys, *words, "--rounds", "40", *folder)[1])
    assert resumed["columns"] == whole["columns"]


def test_reproduce_writes_picture_table_and_provenance(capsys, tmp_path, inline):
    status, out, _ = call(capsys, "reproduce", "fedsub/table1", "--workers", "1", "--out", str(tmp_path), "--json")
    rows = json.loads(out)
    assert status == 0
    assert len(rows) == 9
    assert all(set(row) == REPORT_KEYS for row in rows)
    stem = tmp_path / "fedsub" / "table1"
    assert stem.with_suffix(".png").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    record = json.loads(stem.with_suffix(".json").read_text())
    assert record["versions"]["torch"]
    assert records.load(tmp_path, "fedsub/table1")["table"] == records.read_csv(stem.with_suffix(".csv").read_text())
    status, out, _ = call(capsys, "report", "--out", str(tmp_path), "--json")
    assert json.loads(out) == rows


def test_a_quick_run_never_overwrites_a_result_of_the_papers_scale(tmp_path):
    item = ITEMS["fedsub/table1"]
    result = Result([{"method": "FedAvg", "quantity": "q", "paper": 1.0, "ours": 1.0}])
    store.save(tmp_path, item, result, "paper", 1, 0.0, "cpu")
    before = (tmp_path / "fedsub/table1.json").read_bytes()
    assert store.save(tmp_path, item, result, "quick", 1, 0.0, "cpu") == tmp_path / "quick/fedsub/table1"
    assert (tmp_path / "fedsub/table1.json").read_bytes() == before


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (("reproduce", "ssf/table9"), "item='ssf/table9'"),
        (("reproduce", "ssf/table1", "--seeds", "0"), "seeds=0"),
        (("reproduce", "ssf/table1", "--workers", "0"), "workers=0"),
        (("reproduce", "ssf/table1", "--device", "tpu"), "device='tpu'"),
        (("reproduce", "ssf/table1", "--missing"), "items='ssf/table1'"),
        (("reproduce", "mud/tuning", "--missing", "--scale", "medium", "--seeds", "9"), "seeds=9"),
        (("reproduce", "ssf/table1", "--out", "/dev/null/x"), "out='/dev/null/x'"),
        (("run", "SSF", "quadratic", "--rank", "21"), "rank=21"),
        (("run", "FedAvg", "quadratic", "--sampled", "11"), "sampled=11"),
        (("run", "FedAvg", "quadratic", "--lr", "-1"), "lr=-1.0"),
        (("run", "FedAvg", "quadratic", "--lr", "nan"), "lr=nan"),
        (("run", "FedAvg", "text", "--lora", "4"), "lora=4"),
        (("run", "FedAvg", "text", "--task", "cb"), "task='cb'"),
        (("run", "FedAvg", "images", "--model", "x"), "model='x'"),
        (("run", "FedAvg", "images", "--lora", "4"), "lora=4"),
        (("run", "FedAvg", "text", "--data", "/no"), "data='/no'"),
        (("run", "FedAvg", "text", "--model", "x"), "data=None"),
        (("federate", "FedAvg", "quadratic", "--model", "x"), "model='x'"),
        (("federate", "FedAvg", "quadratic", "--data", "/no"), "data='/no'"),
        (("report", "--out", "/dev/null"), "out='/dev/null'"),
        (("report", "--out", "docs"), "out='docs'"),
        (("report", "--out", "figurse", "--page", "x.md"), "out='figurse'"),
        (("conclusions", "ssf", "--ledger", "figures/ssf/table3.json"), "ledger='figures/ssf/table3.json'"),
        (("conclusions", "ssf", "--ledger", "docs/none.json"), "ledger='docs/none.json'"),
        (("claims", "fedsub.a1-cd", "--paper", "ssf"), "paper='ssf'"),
        (("claims", "ssf.A2", "mud.A1", "--paper", "ssf"), "the paper of mud.A1"),
        (("claims", "ssf.lemma2", "--paper", "mud", "--list"), "the paper of ssf.lemma2"),
        (("claims", "--list", "--save", "x.json"), "save='x.json'"),
        (("claims", "ssf.lema2"), "spell it ssf.lemma2"),
        (("reproduce", "ssf/tabel3"), "spell it ssf/table3"),
        (("course", "--student", "."), "folder="),
        (("compare", "--methods", "MeZO"), "methods='MeZO'"),
        (("compare", "--methods", "MOON", "--tasks", "quadratics"), "tasks='quadratics'"),
        (("compare", "--scale", "medium", "--tasks", "quadratics", "mnist", "--data", "/no"), "/no"),
    ],
)
def test_bad_input_is_one_line_with_a_fix(capsys, words, named, monkeypatch):
    monkeypatch.delenv("FEDTHEORY_DATA", raising=False)
    monkeypatch.chdir(ROOT)
    status, out, err = call(capsys, *words)
    assert not (ROOT / "x.md").exists()
    assert status == 2
    assert out == ""
    assert named in err
    assert "expected" in err
    assert "Fix:" in err
    assert "Traceback" not in err


@pytest.mark.parametrize(
    ("words", "fix"),
    [
        (("run", "FedAvg", "quadratic", "--se", "3"), "Fix: spell it --seeds or --seed"),  # one run, or three
        (("run", "FedAvg", "quadratic", "--round", "3"), "Fix: spell it --rounds"),
        (("run", "FedAvg", "quadratic", "--samp", "3"), "Fix: spell it --sampled"),
        (("run", "FedAvg", "quadratic", "--xyz", "3"), "Fix: leave it out"),
        (("claims", "ssf.A2", "--paper", "ssf", "ssf.lemma2"), "or put it before the options"),
        (("run", "SFF", "quadratic"), "Fix: spell it 'SSF'"),
        (("run", "SSF", "quadratic", "--rounds", "2.5"), "expected an integer. Fix: pass a whole number"),
        (("run", "SSF", "quadratic", "--rounds", "2000000000"), "at most 1000000000"),
        (("compare", "--scale", "large"), "one of 'quick', 'medium'"),
    ],
)
def test_what_cannot_be_parsed_has_a_fix(words, fix, capsys):
    with pytest.raises(SystemExit) as stopped:
        cli.main(words)
    assert stopped.value.code == 2
    assert fix in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("run", "FedAvg", "quadratic"), "interrupted; nothing was kept"),
        (("run", "FedAvg", "quadratic", "--checkpoint", "{}"), "interrupted; finished runs are kept"),
        (("reproduce", "ssf/table1", "--workers", "1", "--out", "{}"), "interrupted; finished runs are kept"),
        (("claims", "fedsub.a1-cd"), "interrupted; nothing was kept"),
    ],
)
def test_an_interruption_says_what_is_kept(words, said, capsys, monkeypatch, tmp_path):
    from fedtheory.theory import ledger

    def stop(*given, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(simulate, "run", stop)
    monkeypatch.setattr(figures, "together", stop)
    monkeypatch.setattr(ledger, "check", stop)
    status, _, err = call(capsys, *[word.format(tmp_path) for word in words])
    assert status == 130
    assert err.splitlines()[-1].startswith(said)


def test_what_the_system_refuses_names_the_place_and_a_fix(capsys, monkeypatch):
    def full(*given, **options):
        raise OSError(28, "No space left on device", "/somewhere/file")

    monkeypatch.setattr(simulate, "run", full)
    status, _, err = call(capsys, "run", "FedAvg", "quadratic")
    assert (status, err) == (
        2,
        "fedtheory: /somewhere/file: no space left on device. Fix: name another place, or make room there\n",
    )


def test_a_full_disk_names_the_file(capsys, monkeypatch, tmp_path):
    """The system does not, where a file that is open cannot be flushed."""

    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    status, _, err = call(capsys, "claims", "ssf.cost.comm", "--save", str(tmp_path / "ledger.json"))
    assert (status, err.splitlines()) == (
        2,
        [f"fedtheory: {tmp_path}/ledger.json: no space left on device. Fix: name another place, or make room there"],
    )
    assert list(tmp_path.iterdir()) == []


def test_who_reads_may_stop():
    """As `| head -1` does."""
    done = subprocess.run(
        f"{sys.executable} -m fedtheory list | head -n 1", shell=True, capture_output=True, text=True, cwd=ROOT
    )
    assert len(done.stdout.splitlines()) == 1
    assert done.stderr == ""


def test_a_locale_without_umlauts_reads_our_sources():
    """They are UTF-8, whatever the system's encoding is."""
    environment = os.environ | {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}
    words = [sys.executable, "-m", "fedtheory", "list"]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, cwd=ROOT)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_terminal_of_ascii_ends_no_command():
    environment = os.environ | {"PYTHONIOENCODING": "ascii"}
    words = [sys.executable, "-m", "fedtheory", "claims", "ssf.A2"]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, cwd=ROOT)
    assert (done.returncode, done.stderr) == (0, "")


def test_ctrl_c_while_the_package_is_imported_is_one_line():
    """In the first module that the command line imports."""
    lines = ("import runpy, sys", "class Breaks:", "    def find_spec(name, path=None, target=None):")
    lines += ("        if name == 'fedtheory.cli': raise KeyboardInterrupt", "sys.meta_path.insert(0, Breaks)")
    lines += ("runpy.run_module('fedtheory', run_name='__main__')",)
    done = subprocess.run([sys.executable, "-c", "\n".join(lines)], capture_output=True, text=True, cwd=ROOT)
    assert (done.returncode, done.stderr) == (130, "interrupted; nothing was kept\n")


def test_a_ledger_that_is_not_there_is_refused(capsys, tmp_path):
    page = tmp_path / "page.md"
    assert cli.main(["report", "--page", str(page), "--ledger", str(tmp_path / "no.json")]) == 2
    assert "ledger=" in capsys.readouterr().err
    assert not page.exists()


def test_claims_that_this_version_does_not_have_are_named(capsys, tmp_path):
    """Their records leave the file, but not without a word."""
    file = tmp_path / "ledger.json"
    (record,) = (one for one in ledger.load(ROOT / "docs" / "ledger.json") if one["id"] == "ssf.cost.comm")
    ledger.save(file, [record, record | {"id": "ssf.newer"}])
    assert cli.main(["claims", record["id"], "--save", str(file)]) == 0
    assert "left out" in (said := capsys.readouterr().err)
    assert "ssf.newer" in said
    assert [one["id"] for one in ledger.load(file)] == [record["id"]]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"[1,2", "expected a JSON file"),
        (b"3", "expected a JSON object"),
        (b"{}", "expected a JSON object"),
        (b'{"a": NaN}', "expected finite numbers"),
        (None, "can be read"),
    ],
)
def test_what_cannot_be_sealed_is_one_line(content, said, tmp_path, capsys):
    file = tmp_path / "x.json"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(SystemExit) as stopped:
        seal.main([str(file)])
    assert said in str(stopped.value)
    assert "Fix:" in str(stopped.value)
    assert content is None or file.read_bytes() == content


def test_too_little_memory_is_one_line_with_a_fix(capsys, monkeypatch):
    """An allocator's error; any other stays what it is."""
    import torch

    def fail(*given, **options):
        torch.empty(2**60)

    monkeypatch.setattr(simulate, "run", fail)
    status, out, err = call(capsys, "run", "FedAvg", "quadratic", "--json")
    assert (status, out) == (2, "")
    assert "memory" in err
    assert "Fix:" in err
    monkeypatch.setattr(simulate, "run", lambda *given, **options: torch.zeros(2) @ torch.zeros(3))
    with pytest.raises(RuntimeError):
        call(capsys, "run", "FedAvg", "quadratic")


def test_a_damaged_record_is_named(tmp_path):
    (tmp_path / "ssf").mkdir()
    (tmp_path / "ssf/table1.json").write_text("{")
    with pytest.raises(ValueError, match=r"table1\.json.*readable record.*Fix: move it away"):
        records.load(tmp_path, "ssf/table1")


REPRODUCE = ["reproduce", "ssf/table1", "--seeds", "1", "--workers", "1", "--out"]


def reproducing(out: Path) -> BaseProcess:
    """The command, once its first run is on disk."""
    process = background(main, out / "said", [*REPRODUCE, str(out)])
    deadline = time.time() + 180  # a busy machine takes a minute to import PyTorch
    while time.time() < deadline and not list((out / ".runs").glob("*.json")):
        time.sleep(0.02)
    return process


def test_interrupting_reproduce_leaves_nothing_half_written_and_the_next_run_goes_on(tmp_path, inline):
    """SIGINT while runs are going on: no figure, whole runs kept, and the same command then finishes."""
    runs, process = tmp_path / ".runs", reproducing(tmp_path)
    os.kill(process.pid, signal.SIGINT)
    assert ended(process) == 130
    assert (tmp_path / "said").read_text().splitlines()[-1].startswith("interrupted; finished runs are kept")
    kept = {path.name: path.read_bytes() for path in runs.glob("*.json")}
    assert kept
    for content in kept.values():
        json.loads(content)
    assert not list(tmp_path.rglob("*.tmp"))
    assert not (tmp_path / "ssf").exists() or not list((tmp_path / "ssf").iterdir())
    assert cli.main([*REPRODUCE, str(tmp_path)]) == 0
    assert inline
    assert (tmp_path / "ssf/table1.png").exists()
    assert {name: (runs / name).read_bytes() for name in kept} == kept


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="ends processes by POSIX's signals")
def test_a_long_run_is_saved_however_its_command_ends(tmp_path):
    """By its worker, which hears of it or finds its parent gone. Three commands run side by side."""
    processes = {
        how: background(long_run.play, tmp_path / f"said {how}", tmp_path / how)
        for how in ("SIGINT", "SIGTERM", "SIGKILL")
    }
    folders = {how: tmp_path / how / ".runs" / "unfinished" for how in processes}
    try:
        wait_until(lambda: all(list(folder.glob("*/.lock")) for folder in folders.values()))
        time.sleep(0.3)  # a round takes a millisecond
        assert not list(tmp_path.rglob("*.ckpt"))  # every ten minutes otherwise
        for how, process in processes.items():
            os.kill(process.pid, getattr(signal, how))
            process.join(60)
            assert process.exitcode is not None, how
    finally:
        for process in processes.values():
            process.kill()
    for how, folder in folders.items():
        wait_until(lambda folder=folder: not list(folder.glob("*/.lock")))
        (saved,) = folder.glob("*/*.ckpt")
        assert int(saved.stem.removeprefix("round-")) > 0, how
        assert not list(folder.rglob("*.tmp")), how


def wait_until(there: Callable[[], object]) -> None:
    deadline = time.time() + 300
    while not there():
        assert time.time() < deadline
        time.sleep(0.1)


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="ends processes by POSIX's signals")
def test_a_scheduler_that_ends_a_command_interrupts_it(tmp_path):
    """SIGTERM: a run with a checkpoint is saved."""
    words = ["run", "FedAvg", "quadratic", "--rounds", "10000000", "--checkpoint", str(tmp_path / "kept")]
    running = background(main, tmp_path / "said", words)
    try:
        wait_until(lambda: list(tmp_path.glob("kept/*/.lock")))
        time.sleep(0.3)  # a round takes a millisecond
        os.kill(running.pid, signal.SIGTERM)
    finally:
        status = ended(running, 60)
    assert status == 130
    assert list(tmp_path.glob("kept/*/*.ckpt"))


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="finds the worker in /proc")
def test_a_killed_worker_is_said_in_one_line_with_a_fix(tmp_path):
    """As the system kills when memory runs out."""
    process = reproducing(tmp_path)
    for child in Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split():
        if b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes():
            os.kill(int(child), signal.SIGKILL)
    assert ended(process) == 2
    error = (tmp_path / "said").read_text()
    assert "Traceback" not in error
    assert "workers" in error.splitlines()[-1]
    assert "Fix: " in error.splitlines()[-1]
    assert list((tmp_path / ".runs").glob("*.json"))
    assert not list(tmp_path.rglob("*.tmp"))


def test_ctrl_c_at_any_call_leaves_no_lock_of_a_future_held():
    """SIGINT after the n-th call or return, for every n until all is done: afterwards every pending lock is free.

    A lock left held is waited for by the pool's own thread, and so by the interpreter at exit, for ever.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    gc.disable()  # an exception within its callbacks (hypothesis has one) would be swallowed
    try:
        interrupted = 0
        while _interrupted_after(interrupted + 1):
            interrupted += 1
    finally:
        gc.enable()
        signal.signal(signal.SIGINT, before)
    assert interrupted > 50


def _interrupted_after(calls: int) -> bool:
    """Whether SIGINT after so many calls and returns stopped the loop; asserts that no pending future is locked."""
    futures: list[Future] = []

    class Pool(Executor):
        """Hands out futures, each finished when the loop has had the one before: no thread, the same locks."""

        def submit(self, fn, /, *args, **kwargs):
            futures.append(Future())
            if len(futures) == 1:
                futures[0].set_result(fn(*args))
            return futures[-1]

    count = 0

    def hook(frame, event, argument):
        nonlocal count
        count += 1
        if count == calls:
            signal.raise_signal(signal.SIGINT)

    stopped = False
    try:
        sys.setprofile(hook)
        for job, result in store.as_finished(Pool(), abs, [-1, -2, -3]):
            sys.setprofile(None)
            assert result == -job
            if result < len(futures):
                futures[result].set_result(result + 1)
            sys.setprofile(hook)
        sys.setprofile(None)
    except KeyboardInterrupt:  # raised in the hook, which ends the profiling
        stopped = True
    locked: list[Future] = []

    def probe() -> None:  # in a thread of its own: the one that holds such a lock may take it again
        locked.extend(f for f in futures if f._state == "PENDING" and not f._condition.acquire(blocking=False))

    prober = threading.Thread(target=probe)
    prober.start()
    prober.join()
    assert not locked, f"SIGINT after {calls} calls: {len(locked)} of {len(futures)} pending futures are locked"
    return stopped


def test_committed_results_are_complete():
    """Each committed item carries settings, seeds and versions; every printed number has a verdict and a reason.

    What needs no images is of the paper's scale.
    """
    for name in ITEMS:
        path = (ROOT / "figures" / name).with_suffix(".json")
        assert path.exists(), name
        record = json.loads(path.read_text())
        images = not name.startswith(("fedsub/", "ssf/")) or ITEMS[name] in deep.ITEMS
        assert record["scale"] in (records.SCALES if images else ("paper",))
        assert record["settings"]
        assert record["seeds"]
        assert {"torch", "numpy", "python", "sources"} <= set(record["versions"])
        for cell in record["cells"]:
            assert cell["verdict"] in VERDICTS
            assert cell["reason"]
            assert cell["seeds"] or cell["verdict"] == "not tested"
            assert bool(cell["ran"]) == (cell["seeds"] > 0 and cell["kind"] == "run")
            if cell["ran"] != "paper's" and cell["kind"] == "run":
                assert cell["verdict"] not in ("matches", "contradicted")
            if record["scale"] == "quick":
                assert cell["kind"] != "run" or cell["verdict"] == "not tested"


def test_interval_is_students():
    """Three values 1, 2, 3: mean 2, half width t(0.975; 2) / sqrt(3) = 2.4841."""
    mean, low, high = store.interval([1.0, 2.0, 3.0])
    assert mean == 2.0
    assert (high - low) / 2 == pytest.approx(2.48414, abs=1e-5)
    assert store.interval([4.0]) == (4.0, 4.0, 4.0)


def test_a_run_is_found_again_only_by_the_same_words(tmp_path):
    from fedtheory.papers.ssf.items import method, spec

    runner = Runner(tmp_path)
    one = spec(method("SSF", 0.01, 20), 0.5, 0, 100)
    assert runner.path(one) == Runner(tmp_path).path(spec(method("SSF", 0.01, 20), 0.5, 0, 100))
    assert runner.path(one) != runner.path(spec(method("SSF", 0.01, 20), 0.5, 1, 100))
    assert runner.path(one) != runner.path(spec(method("SSF", 0.01, 10), 0.5, 0, 100))


def test_claims_prints_the_ledger(capsys, tmp_path):
    """One entry per claim, with the fields to build on; the page shows the same."""
    page = tmp_path / "ledger.md"
    status, out, _ = call(capsys, "claims", "fedsub.a1-cd", "ssf.lemma2.step6", "--json", "--page", str(page))
    entries = json.loads(out)
    assert status == 0
    keys = {"id", "paper", "where", "statement", "kind", "verdict", "evidence", "margin", "counterexample"}
    assert all(keys | {"repaired", "control", "seconds"} <= set(entry) for entry in entries)
    assert [entry["verdict"] for entry in entries] == ["holds", "slip"]
    assert all(entry["control_refuted"] for entry in entries)
    assert "`ssf.lemma2.step6`" in page.read_text()


def test_the_committed_ledger_has_every_claim_and_its_page_is_made_from_it():
    """docs/ledger.json holds a verdict, evidence and a refuted control for each claim; docs/ledger.md shows it."""
    from fedtheory.theory import ledger

    found = ledger.load(ROOT / "docs" / "ledger.json")
    assert [record["id"] for record in found] == list(ledger.claims())
    assert all(r["control_refuted"] and r["evidence"] for r in found if r["verdict"] != "unchecked")
    assert (ROOT / "docs" / "ledger.md").read_text() == ledger.page(found)


def test_records_are_saved_beside_others(capsys, tmp_path):
    """--save replaces a claim's record and keeps those of others; a file that is no ledger is not touched."""
    file = tmp_path / "ledger.json"
    for name in ("ssf.lemma2.step6", "fedsub.a1-cd", "ssf.lemma2.step6"):
        assert call(capsys, "claims", name, "--json", "--save", str(file), "--seed", "1")[0] == 0
    found = json.loads(file.read_text())["claims"]
    assert [record["id"] for record in found] == ["fedsub.a1-cd", "ssf.lemma2.step6"]
    assert {(record["effort"], record["seed"]) for record in found} == {("quick", 1)}
    for text in ("{}", "[1]", "[", '[{"id": 1}]'):
        file.write_text(text)
        status, _, err = call(capsys, "claims", "fedsub.a1-cd", "--save", str(file))
        assert status == 2
        assert "JSON file of the ledger's records" in err
        assert file.read_text() == text


def test_two_that_save_at_once_keep_both(capsys, tmp_path, monkeypatch):
    """What another process has saved between the first look at the file and the last is not lost."""
    from fedtheory.theory import ledger

    file, check = tmp_path / "ledger.json", ledger.check

    def slowly(chosen, *given, **options):
        found = check(chosen, *given, **options)
        if chosen[0].id == "fedsub.a1-cd":
            monkeypatch.setattr(ledger, "check", check)
            assert call(capsys, "claims", "ssf.lemma2.step6", "--json", "--save", str(file))[0] == 0
        return found

    monkeypatch.setattr(ledger, "check", slowly)
    assert call(capsys, "claims", "fedsub.a1-cd", "--json", "--save", str(file))[0] == 0
    assert [record["id"] for record in ledger.load(file)] == ["fedsub.a1-cd", "ssf.lemma2.step6"]


def test_a_seed_means_what_it_means_in_python(capsys):
    problem = registry.problem("quadratic").make(Key(3).fold("data"), "cpu", None)
    lr = problem.rate
    history = run(FedAvg(lr, 5), problem, 4, seed=3, metrics=("error",))
    words = ("run", "FedAvg", "quadratic", "--lr", repr(lr), "--local-steps", "5", "--rounds", "4", "--json")
    status, out, _ = call(capsys, *words, "--seed", "3")
    (found,) = json.loads(out)
    assert (status, found["seed"], found["columns"]["error"]) == (0, 3, history["error"])
    _, out, _ = call(capsys, *words, "--seeds", "4")
    assert json.loads(out)[3] == found
    status, _, err = call(capsys, *words, "--seeds", "4", "--seed", "3")
    assert status == 2
    assert "leave out one" in err


def test_a_run_with_a_checkpoint_takes_more_rounds(capsys, tmp_path):
    """Whatever their number: what is printed of the longer one is what it would have been."""
    words = ("run", "SCAFFOLD", "quadratic", "--json")
    for rounds in ("60", "100", "300"):
        again = call(capsys, *words, "--rounds", rounds, "--checkpoint", str(tmp_path))
        assert again[:2] == call(capsys, *words, "--rounds", rounds)[:2]
    status, _, err = call(capsys, *words, "--rounds", "200", "--checkpoint", str(tmp_path))
    assert status == 2
    assert "expected at least the 300 rounds" in err


def test_unknown_claims_are_refused(capsys):
    status, _, err = call(capsys, "claims", "ssf.lemma99")
    assert status == 2
    assert "id='ssf.lemma99'" in err
    status, _, err = call(capsys, "claims", "--paper", "nobody")
    assert status == 2
    assert "paper='nobody'" in err


@pytest.mark.parametrize("words", [["--projection=--"], ["--data=--"], ["--checkpoint=--"], ["--lr=--"]])
def test_an_option_whose_value_is_two_dashes_has_none(words, capsys):
    with pytest.raises(SystemExit):
        cli.main(["run", "FedSub", "quadratic", *words])
    name = words[0].removesuffix("=--")
    assert (
        capsys.readouterr().err
        == f"fedtheory: {name}: expected a value behind it. Fix: see python -m fedtheory run --help\n"
    )


def test_a_tilde_is_the_home_folder_everywhere(tmp_path, monkeypatch, capsys):
    """In options, and in Python where a folder is passed; a home that is not there makes no folder of that name."""
    here, home = tmp_path / "here", tmp_path / "home"
    here.mkdir()
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.chdir(here)
    run = ["run", "FedAvg", "quadratic", "--rounds", "1"]
    assert cli.main([*run, "--checkpoint", "~/kept", "--memory-map", "~/map"]) == 0
    assert cli.main(["claims", "fedsub.a1-cd", "--save", "~/ledger.json", "--page=~/ledger.md"]) == 0
    assert cli.main(["course", "--student", "~/course", "05"]) == 0
    fedtheory.run(fedtheory.FedAvg(0.1, 1), cases.quadratic(2), 1, checkpoint="~/python")
    assert {path.name for path in home.iterdir()} == {"kept", "map", "ledger.json", "ledger.md", "course", "python"}
    capsys.readouterr()
    for option in ("--checkpoint", "--data", "--memory-map"):
        assert cli.main([*run, option, "~nobody-of-this-name/x"]) == 2
        assert "expected a path whose ~ names a home folder. Fix: write ./~nobody" in capsys.readouterr().err
    with pytest.raises(ValueError, match="a path whose ~ names a home folder"):
        fedtheory.run(fedtheory.FedAvg(0.1, 1), cases.quadratic(2), 1, checkpoint="~nobody-of-this-name/x")
    assert list(here.iterdir()) == []
