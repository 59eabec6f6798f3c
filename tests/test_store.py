"""What stands behind a figure: found again only where it is the same, never lost, never taken when it was changed."""

import gzip
import json
import os
import shutil
import stat
import subprocess
import sys
import threading
import time
import warnings
from dataclasses import dataclass, field, replace
from pathlib import Path

import damage
import flips
import pytest

from fedtheory import SSF, Coordinate, DeComFL, FedAvg, FedSub, cli, compare
from fedtheory.cli import claims as cli_claims
from fedtheory.cli import figures as commands
from fedtheory.core import files
from fedtheory.core.algorithm import later
from fedtheory.papers import store
from fedtheory.papers.flss import items as flss
from fedtheory.papers.frontier import items as frontier
from fedtheory.papers.store import Builder, Runner, Spec
from fedtheory.problems import data
from fedtheory.running import configuration, records, simulate
from fedtheory.running.checkpoint import Owned
from fedtheory.theory import ledger


@pytest.fixture
def small(tmp_path, monkeypatch):
    """A folder A of six training and four test images, and B, where one pixel differs."""
    published = data.SETS["mnist"]
    forms = tuple(replace(form, counts=damage.COUNTS["mnist"]) for form in published.forms)
    monkeypatch.setitem(data.SETS, "mnist", replace(published, forms=forms))
    monkeypatch.setattr(data, "DIGESTS", {})
    damage.small_idx(tmp_path / "A")
    shutil.copytree(tmp_path / "A", tmp_path / "B")
    path = tmp_path / "B" / f"{damage.IMAGES}.gz"
    path.write_bytes(damage.regzip(damage.flip(20))(path.read_bytes()))
    monkeypatch.setenv("FEDTHEORY_DATA", str(tmp_path / "A"))
    return tmp_path


IMAGES = (("clients", 2), ("data", "mnist"), ("network", "mlp"))
ON_IMAGES = Spec(FedAvg(0.1, 1), "images", IMAGES, 1, 0, every=1, dtype="float32", metrics=("loss",))
CONVEX = flips.SPEC


# A run that is interrupted


def test_a_long_run_goes_on_where_it_stopped(tmp_path, inline, monkeypatch):
    """With the numbers of an unbroken one; what was kept of it is gone then. Short runs keep nothing."""
    play, spec = store.run, replace(CONVEX, rounds=40, every=10)
    whole = Runner(tmp_path / "unbroken", workers=1)([spec])[spec]
    monkeypatch.setitem(
        store.BUILDERS, spec.problem, replace(store.BUILDERS[spec.problem], long=lambda spec, device: True)
    )

    def broken(*given, progress, **options):
        def stop(done):
            progress(done)
            if done == 20:
                raise KeyboardInterrupt

        return play(*given, progress=stop, **options)

    runner = Runner(tmp_path, workers=1)
    monkeypatch.setattr(store, "run", broken)
    with pytest.raises(KeyboardInterrupt):
        runner([spec])
    assert [path.name for path in (tmp_path / ".runs" / "unfinished").iterdir()] == [runner.path(spec).stem]
    monkeypatch.setattr(store, "run", play)
    result = runner([spec])[spec]
    assert result["columns"] == whole["columns"]
    assert result["timed_from_round"] == 20
    assert not list((tmp_path / ".runs" / "unfinished").iterdir())
    assert "timed_from_round" not in whole
    assert not (tmp_path / "unbroken" / ".runs" / "unfinished").exists()


@pytest.fixture
def lengthy(monkeypatch):
    """A run that is long."""
    kind = CONVEX.problem
    monkeypatch.setitem(store.BUILDERS, kind, replace(store.BUILDERS[kind], long=lambda spec, device: True))
    return replace(CONVEX, rounds=40, every=10)


def test_a_long_run_that_cannot_go_on_starts_anew(tmp_path, inline, lengthy):
    """As from a checkpoint of an older version: it is kept aside, and said."""
    runner = Runner(tmp_path, workers=1)
    folder = tmp_path / ".runs" / "unfinished" / runner.path(lengthy).stem
    folder.mkdir(parents=True)
    simulate.run(replace(lengthy.algorithm, lr=0.5), lengthy.build("cpu"), 3, checkpoint=folder)
    with pytest.warns(UserWarning, match=rf"cannot go on .*kept as {folder.name}\.damaged: .*expected checkpoints of"):
        result = runner([lengthy])[lengthy]
    assert "timed_from_round" not in result
    assert [path.name for path in folder.parent.iterdir()] == [f"{folder.name}.damaged"]


def test_checkpoints_that_nothing_goes_on_from_are_said(tmp_path, inline, lengthy):
    """Of the same words; those of other runs are none of this command's."""
    runner = Runner(tmp_path, workers=1)
    named = runner.path(lengthy).stem
    folder = tmp_path / ".runs" / "unfinished"
    for name in (f"{named.split('-')[0]}-older", "other-older"):
        (folder / name).mkdir(parents=True)
    with pytest.warns(UserWarning, match=rf"^1 folders of unfinished runs .*Fix: delete .*/{named[:20]}-older") as said:
        runner([lengthy])
    assert len(said) == 1
    with warnings.catch_warnings(action="error"):
        runner([lengthy])


@pytest.mark.parametrize("ends", ["with the run", "without it"])
def test_a_long_run_that_another_process_makes_is_waited_for(ends, tmp_path, inline, lengthy, monkeypatch):
    """Its result is taken; where it ends without one the run is made here."""
    runner = Runner(tmp_path, workers=1)
    path = runner.path(lengthy)
    whole = Runner(tmp_path / "there", workers=1)
    found = whole([lengthy])[lengthy]
    folder = tmp_path / ".runs" / "unfinished" / path.stem
    folder.mkdir(parents=True)
    other = Owned(folder)
    other.__enter__()

    def slept(seconds):
        if ends == "with the run":
            shutil.copy(whole.path(lengthy), path)
        other.__exit__()

    made, execute = [], store._execute
    monkeypatch.setattr(store, "_execute", lambda *given: made.append(given) or execute(*given))
    monkeypatch.setattr(store.time, "sleep", slept)
    with pytest.warns(UserWarning, match=r"waiting for another process, which makes the same run: .*process \d+"):
        result = runner([lengthy])[lengthy]
    assert result["columns"] == found["columns"]
    assert len(made) == (1 if ends == "with the run" else 2)


def test_a_long_run_that_is_finished_meanwhile_is_not_made_again(tmp_path, lengthy):
    folder = tmp_path / "unfinished" / "a-b"
    (tmp_path / "a-b.json").write_text("")
    assert store.execute(lengthy, "cpu", {lengthy: folder}) is None


def test_a_result_that_is_being_written_is_waited_for(tmp_path, monkeypatch):
    """All rounds are done, the lock is free, and its file is not there yet."""
    folder, slept = tmp_path / "unfinished" / "a-b", []
    folder.mkdir(parents=True)
    (folder / f"round-{40:012d}.ckpt").write_text("")
    write = lambda seconds: slept.append(seconds) or len(slept) < 3 or (tmp_path / "a-b.json").write_text("")
    monkeypatch.setattr(store.time, "sleep", write)
    store._wait_for(folder, 40)
    assert len(slept) == 3
    (tmp_path / "a-b.json").unlink()
    store._wait_for(folder, 50)
    assert len(slept) == 4


def test_which_runs_on_images_are_long():
    """At the printed length they are; what a thread does in a minute or two is not. Directions count like steps."""
    at, length = flss.SETTINGS["medium"], flss.FASHION
    assert store.BUILDERS["images"].long(flss.spec(length, flss.method("FedAvg", length, 5), 0.1, 0), "cpu")
    for name in flss.COMPARED:
        assert not store.BUILDERS["images"].long(flss.spec(at, flss.method(name, at, 10), 0.5, 0), "cpu")
    options = (("batch", 64), ("clients", 10), ("data", "mnist"), ("network", "decomfl-mnist"))
    for perturbations, long in ((1, False), (20, True)):
        spec = Spec(DeComFL(0.001, 1, perturbations), "images", options, 1000, 0, 10, dtype="float32")
        assert store.BUILDERS["validation"].long(spec, "cpu") == long
        assert not store.BUILDERS["validation"].long(spec, "cuda")
    assert store.BUILDERS["images"].long(replace(spec, rounds=10**9), "cuda")


# What names a run


def test_words_are_plain_json_without_places_of_code():
    """For every method that is compared, on every task: words, in JSON, that name no module."""
    seen = set()
    for task in compare.MEDIUM.values():
        for method in compare.METHODS.values():
            if task.offers(method.needs):
                said = json.dumps(frontier.spec(task, method.make(task, 0.1, 1 / 8), 0).words(), allow_nan=False)
                assert "fedtheory" not in said
                assert "object at" not in said
                seen.add(said)
    assert len(seen) > 100


def test_words_hold_every_hyperparameter_and_every_default():
    said = CONVEX.words()
    projection = {"Spherical": {"rank": 5, "scale": "orthonormal"}}
    assert said["algorithm"]["SSF"].items() >= {"lr": 0.01, "local_steps": 2, "projection": projection}.items()
    assert said["options"].items() >= {"het": 0.5, "n": 4, "lam": 0.1, "noise": 0.01}.items()
    assert {"rounds", "seed", "sampled", "every", "dtype", "metrics", "dropout", "metered", "problem"} <= set(said)
    on_images = ON_IMAGES.words()["options"]
    assert {"batch", "epochs", "std", "mixed", "partition", "alpha", "view"} <= set(on_images)
    assert "folder" not in on_images


def test_names_of_stored_runs_stay():
    """Days of computing hang on these: a name that changes makes its runs stale.

    A new hyperparameter or option is declared (`configuration.later`, `Builder.later`), so that old words stay.
    Where results do change, a revision is raised, which changes other parts of the names.
    """
    names = [configuration.digest(spec.words())[:20] for spec in (CONVEX, ON_IMAGES)]
    subspace = FedSub(0.1, 5, Coordinate((3, 4), "orthonormal"), form="sums")
    names.append(configuration.digest(Spec(subspace, "fedsub", (), 10, 3, every=2).words())[:20])
    assert names == NAMES


NAMES = ["dbc8d4a2d4e029d991d7", "82f98d1f0bb1d5b958fc", "bb6078e34624a3e5a6a9"]


@dataclass(frozen=True)
class Old:
    lr: float = 0.1


def test_a_later_field_costs_nothing_and_a_changed_default_does():
    @dataclass(frozen=True)
    class Grown:
        lr: float = 0.1
        form: str = later("as before")

    @dataclass(frozen=True)
    class Turned:
        lr: float = 0.1
        form: str = field(default="another", metadata={"neutral": "as before"})

    inner = lambda value: next(iter(configuration.describe(value).values()))
    assert inner(Grown()) == inner(Old())
    assert inner(Grown(form="another")) == inner(Turned()) == {"lr": 0.1, "form": "another"}
    assert inner(Turned(form="as before")) == inner(Old())
    with pytest.raises(TypeError, match="option="):
        configuration.describe(lambda: None)


def test_a_changed_default_of_a_problem_makes_another_run(tmp_path, monkeypatch):
    def ssf(het, key, *, n=20, dtype, device="cpu", **options):
        raise AssertionError

    def later(het, key, *, n=20, extra=0, dtype, device="cpu", **options):
        raise AssertionError

    def turned(het, key, *, n=21, dtype, device="cpu", **options):
        raise AssertionError

    spec, named = Spec(FedAvg(0.1, 1), "ssf", (("het", 0.5),), 1, 0), []
    for builder in (Builder(ssf), Builder(later, later=(("extra", 0),)), Builder(turned), Builder(ssf, revision=2)):
        monkeypatch.setitem(store.BUILDERS, "ssf", builder)
        named.append(Runner(tmp_path).path(spec).name)
    assert named[0] == named[1]
    assert len({name.split("-")[0] for name in named}) == 2, "the changed default alone has other words"
    assert len(set(named)) == 3


def test_sources_versions_and_device_name_no_run(tmp_path, monkeypatch):
    before = Runner(tmp_path).path(CONVEX)
    monkeypatch.setattr(store, "source_hash", lambda: "other code")
    monkeypatch.setattr(store.torch, "__version__", "99.0")
    assert Runner(tmp_path).path(CONVEX) == Runner(tmp_path, "cuda").path(CONVEX) == before
    metered = replace(CONVEX, metered=True)
    assert Runner(tmp_path).path(metered) != Runner(tmp_path, "cuda").path(metered)


def test_what_decides_no_number_is_found_at_the_root():
    """A folder that moved would be hashed with the rest."""
    root = Path(store.__file__).resolve().parent.parent
    assert [name for name in store.APART if not (root / name).exists()] == []


# Data and revisions


def test_other_data_are_another_run(small, inline, monkeypatch):
    """--data A, then --data B with the same --out: B's own numbers, and A's run is said to be stale; A again: found."""
    runner = Runner(small / "out", workers=1)
    first = runner([ON_IMAGES])[ON_IMAGES]
    assert runner.provenance([ON_IMAGES])["data"]["mnist train"]["verified"] == "unverified"
    monkeypatch.setenv("FEDTHEORY_DATA", str(small / "B"))
    with pytest.warns(UserWarning, match="1 stored runs are stale, kept and not used: the same words, but other data"):
        second = runner([ON_IMAGES])[ON_IMAGES]
    assert second["columns"]["loss"] != first["columns"]["loss"]
    monkeypatch.setenv("FEDTHEORY_DATA", str(small / "A"))
    assert runner([ON_IMAGES])[ON_IMAGES]["columns"] == first["columns"]
    assert len(inline) == 2
    assert len(list(runner.cache.glob("*.json"))) == 2


def test_the_same_data_elsewhere_and_packed_otherwise_are_the_same_run(small, inline, monkeypatch):
    runner = Runner(small / "out", workers=1)
    runner([ON_IMAGES])
    (small / "C").mkdir()
    for path in (small / "A" / "mnist").iterdir():
        damage.write(small / "C" / "mnist" / path.stem, gzip.decompress(path.read_bytes()))
    monkeypatch.setenv("FEDTHEORY_DATA", str(small / "C"))
    runner([ON_IMAGES])
    assert len(inline) == 1


def test_data_that_change_while_a_run_reads_them_are_refused(small, inline, monkeypatch):
    execute = store.execute

    def swapped(*given):
        os.environ["FEDTHEORY_DATA"] = str(small / "B")
        return execute(*given)

    monkeypatch.setattr(store, "execute", swapped)
    with pytest.raises(ValueError, match="data='mnist train, mnist test': expected files that stay as they are"):
        Runner(small / "out", workers=1)([ON_IMAGES])
    assert not list((small / "out" / ".runs").glob("*.json"))


def test_missing_data_are_said_before_any_run(small, inline, monkeypatch):
    monkeypatch.setenv("FEDTHEORY_DATA", str(small / "nowhere"))
    with pytest.raises(FileNotFoundError, match="mnist"):
        Runner(small / "out", workers=1)([CONVEX, ON_IMAGES])
    assert not inline


@pytest.mark.parametrize("what", ["all", "algorithm", "projection", "problem"])
def test_a_raised_revision_makes_stored_runs_stale(what, tmp_path, inline, monkeypatch):
    runner = Runner(tmp_path, workers=1)
    runner([CONVEX])
    if what == "all":
        monkeypatch.setattr(store, "REVISION", 2)
    elif what == "problem":
        monkeypatch.setitem(store.BUILDERS, "ssf", replace(store.BUILDERS["ssf"], revision=2))
    else:
        raised = SSF if what == "algorithm" else type(CONVEX.algorithm.projection)
        monkeypatch.setattr(raised, "revision", 2, raising=False)
    with pytest.warns(UserWarning, match="the same words, but other revisions"):
        runner([CONVEX])
    assert len(inline) == 2


def test_rows_of_other_data_are_not_added_to_a_table(tmp_path):
    runs = lambda digest: {"count": 1, "made with": {}, "data": {"mnist train": {"sha256": digest}}}
    first, second = replace(flips.result(), runs=runs("a")), replace(flips.result(), runs=runs("b"))
    stem = store.save(tmp_path, flips.item(), first, "quick", 1, 0.0, "cpu")
    before = stem.with_suffix(".json").read_bytes()
    grown = records.load(tmp_path, "ssf/made")
    with pytest.raises(ValueError, match="data='mnist train': expected the data of the finished ssf/made"):
        store.save(tmp_path, flips.item(), second, "quick", 1, 0.0, "cpu", grown)
    assert stem.with_suffix(".json").read_bytes() == before
    store.save(tmp_path, flips.item(), first, "quick", 1, 0.0, "cpu", grown)


# What a stored run says


def test_a_run_holds_all_that_is_needed_to_make_it_again(tmp_path, inline):
    runner = Runner(tmp_path, workers=1)
    result = runner([CONVEX])[CONVEX]
    record = files.unseal(runner.path(CONVEX).read_bytes())
    assert record["words"] == CONVEX.words()
    assert {"torch", "numpy", "python", "fedtheory", "sources", "machine"} <= set(record["versions"])
    assert record["revisions"]["all"] == store.REVISION
    assert (record["device"], record["data"]) == ("cpu", {})
    assert record["result"] == result
    assert Runner(tmp_path)([CONVEX])[CONVEX] == result
    assert len(inline) == 1


def test_runs_of_other_versions_are_taken_and_said(tmp_path, inline):
    runner = Runner(tmp_path, workers=1)
    runner([CONVEX])
    path = runner.path(CONVEX)
    record = files.unseal(path.read_bytes())
    path.write_bytes(files.seal(record | {"versions": record["versions"] | {"torch": "1.0"}, "device": "cuda"}, None))
    again = Runner(tmp_path, workers=1)
    again([CONVEX])
    runs = again.provenance([CONVEX])
    assert len(inline) == 1
    assert runs["count"] == 1
    assert runs["kept"] == {", ".join(map(str, CONVEX.ran().values())): [path.stem]}
    (said,) = again.provenance_notes(runs)
    assert said.startswith("1 of 1 runs were made with torch 1.0")
    assert "cuda" in said
    assert again.provenance([])["count"] == 0


@pytest.mark.parametrize("images", [20_000, 49_923])
def test_another_number_of_images_than_described_is_said(tmp_path, images):
    part = replace(ON_IMAGES, options=(("data", "cifar10"), ("network", "mlp"), ("partial", True)))
    some = replace(part, options=(*part.options[:2], ("partial", images)))
    runner = Runner(tmp_path)
    for spec in (part, some):
        found = {"data": {"cifar10 train": {"images": images}}, "versions": store.versions(), "device": "cpu"}
        runner._origins[store._first(spec.words())] = found | {"name": "kept"}
    said = [f"CIFAR-10 had {images:,} training images in these runs, not 20,000 as described"]
    assert runner.provenance_notes(runner.provenance([part])) == said * (images != 20_000)
    assert runner.provenance_notes(runner.provenance([some])) == []


def test_numbers_that_are_not_finite_come_back(tmp_path, inline):
    spec = replace(CONVEX, algorithm=FedAvg(30.0, 5), rounds=4000, every=1)
    first = Runner(tmp_path, workers=1)([spec])[spec]
    assert first["diverged"]
    inside = {"columns": {"error": [1.0, float("nan"), float("inf")]}, "diverged": None, "seconds": 1.0}
    runner = Runner(tmp_path)
    head = runner._head(CONVEX)
    runner.keep(head, inside | {"data": {}})
    assert repr(runner._read(head)["columns"]["error"]) == "[1.0, nan, inf]"
    json.loads(runner.path(CONVEX).read_bytes(), parse_constant=pytest.fail)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"{}\n", files.seal({}), files.seal({"words": {}, "result": 1})])
def test_a_damaged_run_is_said_kept_aside_and_made_again(content, tmp_path, inline):
    runner = Runner(tmp_path, workers=1)
    first = runner([CONVEX])[CONVEX]
    path = runner.path(CONVEX)
    for number in ("", "-2"):
        path.write_bytes(content)
        with pytest.warns(UserWarning, match=rf"{path.name} is damaged .*: kept as {path.name}.damaged{number}$"):
            again = runner([CONVEX])[CONVEX]
        assert again["columns"] == first["columns"]
        assert (tmp_path / ".runs" / f"{path.name}.damaged{number}").read_bytes() == content


# Records


def tampered(path, change):
    """The sealed file with another, valid content."""
    value = files.unseal(path.read_bytes())
    change(value)
    path.write_bytes(files.seal(value))


WRONG = {
    "no cells": lambda r: r.pop("cells"),
    "no scale": lambda r: r.pop("scale"),
    "unknown scale": lambda r: r.update(scale="huge"),
    "cells no list": lambda r: r.update(cells={}),
    "cell a number": lambda r: r.update(cells=[1]),
    "cell without seeds": lambda r: r["cells"][0].pop("seeds"),
    "ours a list": lambda r: r["cells"][0].update(ours=[1]),
    "ours a word": lambda r: r["cells"][0].update(ours="many"),
    "unknown verdict": lambda r: r["cells"][1].update(verdict="fine"),
    "seeds of words": lambda r: r.update(seeds=["0"]),
    "no files": lambda r: r.pop("files"),
    "settings null": lambda r: r.update(settings=None),
    "seconds true": lambda r: r.update(seconds=True),
    "of another item": lambda r: r.update(item="ssf/table1"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_record_of_the_wrong_shape_is_one_clear_line(name, tmp_path, capsys, alone):
    stem = store.save(tmp_path, replace(flips.item(), name="ssf/table2"), flips.result(), "quick", 3, 0.0, "cpu")
    tampered(stem.with_suffix(".json"), WRONG[name])
    assert cli.main(["report", "--out", str(tmp_path)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "table2.json" in line
    assert "expected a readable record (" in line
    assert "Fix: " in line


@pytest.mark.parametrize("end", ["csv", "png", "json"])
def test_files_that_do_not_belong_together_are_refused(end, tmp_path):
    """A table, picture or record of an earlier result among the files of a later one."""
    stem = store.save(tmp_path, flips.item(), flips.result(), "quick", 3, 0.0, "cpu")
    old = stem.with_suffix(f".{end}").read_bytes()
    wider = replace(flips.item(), draw=lambda table: flips.Figure((2, 1)))
    store.save(tmp_path, wider, flips.result(1.3), "quick", 3, 0.0, "cpu")
    stem.with_suffix(f".{end}").write_bytes(old)
    with pytest.raises(ValueError, match=r"made\.(csv|png) is not the"):
        records.load(tmp_path, "ssf/made")


def content(folder):
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def test_a_full_disk_leaves_the_old_result(tmp_path, monkeypatch):
    """Writing fails at the n-th flush, for every n: the three old files, no other, and they are whole."""
    store.save(tmp_path, flips.item(), flips.result(), "quick", 3, 0.0, "cpu")
    before, failed = content(tmp_path / "ssf"), 0
    fsync = os.fsync
    while True:
        left = [failed]

        def full(descriptor, left=left):
            if left[0] == 0:
                raise OSError(28, "No space left on device")
            left[0] -= 1
            fsync(descriptor)

        monkeypatch.setattr(os, "fsync", full)
        try:
            store.save(tmp_path, flips.item(), flips.result(2.0), "quick", 3, 0.0, "cpu")
            break
        except OSError:
            failed += 1
            monkeypatch.undo()
        got = records.load(tmp_path, "ssf/made")["cells"][0]["ours"]
        if failed < 6:  # until the record is there under its waiting name
            assert content(tmp_path / "ssf") == before
            assert got == 1.25
    assert failed >= 5
    monkeypatch.undo()
    assert records.load(tmp_path, "ssf/made")["cells"][0]["ours"] == 2.0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_kill_at_any_moment_leaves_the_old_or_the_new_result(tmp_path):
    """The process ends before and after the n-th rename or flush, for every n; then the next save works."""
    kills = []
    store.save(tmp_path / "old", flips.item(), flips.result(), "quick", 3, 0.0, "cpu")
    for name, after in (("replace", False), ("replace", True), ("fsync", False)):
        for n in range(20):
            out = shutil.copytree(tmp_path / "old", tmp_path / f"{name}-{after}-{n}")
            child = os.fork()
            if child == 0:
                call, left = getattr(os, name), [n]

                def fatal(*given, call=call, left=left, after=after):
                    left[0] -= 1
                    if left[0] == -1 and not after:
                        os._exit(9)
                    found = call(*given)
                    if left[0] == -1:
                        os._exit(9)
                    return found

                setattr(os, name, fatal)
                store.save(out, flips.item(), flips.result(2.0), "quick", 3, 0.0, "cpu")
                os._exit(0)
            ended = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            if ended == 0:
                break
            record = records.load(out, "ssf/made")
            assert record["table"] == records.read_csv(records.to_csv(flips.result(record["cells"][0]["ours"]).table))
            kills.append(record["cells"][0]["ours"])
            store.save(out, flips.item(), flips.result(3.0), "quick", 3, 0.0, "cpu")
            assert records.load(out, "ssf/made")["cells"][0]["ours"] == 3.0
            names = {path.name for path in (out / "ssf").iterdir() if not path.name.endswith(".tmp")}
            assert names == {"made.csv", "made.png", "made.json"}
    assert kills.count(1.25) > 5
    assert kills.count(2.0) > 3


def test_a_damaged_record_is_never_taken_as_absent(tmp_path):
    """A quick run goes beside it; a run of the highest scale takes its place and keeps it aside."""
    stem = store.save(tmp_path, flips.item(), flips.result(), "paper", 3, 0.0, "cpu")
    broken = stem.with_suffix(".json").read_bytes()[:-9]
    stem.with_suffix(".json").write_bytes(broken)
    before = content(stem.parent)
    with pytest.warns(UserWarning, match=r"made\.json is damaged .*may be of the scale paper"):
        there = store.save(tmp_path, flips.item(), flips.result(2.0), "quick", 3, 0.0, "cpu")
    assert there == tmp_path / "quick" / "ssf/made"
    assert content(stem.parent) == before
    with pytest.warns(UserWarning, match=r"was damaged .*: kept as made\.json\.damaged, made\.png\.damaged"):
        store.save(tmp_path, flips.item(), flips.result(2.0), "paper", 3, 0.0, "cpu")
    kept = content(stem.parent)
    assert kept["made.json.damaged"] == broken
    assert kept["made.csv.damaged"] == before["made.csv"]
    assert records.load(tmp_path, "ssf/made")["cells"][0]["ours"] == 2.0


def test_two_processes_that_save_one_item_leave_one_of_the_two(tmp_path, monkeypatch):
    """They are about it at once, and the last to write the table would be the first to write the record."""
    write, turn = records.write_atomic, {}

    def slowly(path, content):
        mine = turn.setdefault(threading.get_ident(), len(turn))
        time.sleep({".csv": 0.03 * mine, ".png": 0.0, "json": 0.12 * (3 - mine)}[path.name.removesuffix(".next")[-4:]])
        write(path, content)

    monkeypatch.setattr(records, "write_atomic", slowly)
    threads = [
        threading.Thread(target=store.save, args=(tmp_path, flips.item(), flips.result(x), "quick", 3, 0.0, "cpu"))
        for x in (1.0, 2.0, 3.0, 4.0)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert records.load(tmp_path, "ssf/made")["cells"][0]["ours"] in (1.0, 2.0, 3.0, 4.0)
    assert {path.name for path in (tmp_path / "ssf").iterdir()} == {"made.csv", "made.png", "made.json"}


def test_no_changed_byte_of_a_stored_file_is_taken(tmp_path, inline, alone):
    """80 changes of a bit or a byte in runs, tables, records, ledgers: each is one clear line."""
    found = flips.silent(flips.stored(tmp_path, Runner(tmp_path, workers=1)), 80)
    assert {end for _, end in found} == {"refused"}
    assert len(found) == 4


def test_seals():
    sealed = files.seal({"a": [1, 2.5, None], "b": {"ä": "ü"}})
    assert files.unseal(sealed) == {"a": [1, 2.5, None], "b": {"ä": "ü"}}
    assert json.loads(sealed)["sha256"]
    for at in range(len(sealed)):
        for bit in range(8):
            with pytest.raises(files.Broken):
                files.unseal(sealed[:at] + bytes([sealed[at] ^ 1 << bit]) + sealed[at + 1 :])
    with pytest.raises(ValueError, match="JSON"):
        files.seal({"a": float("nan")})


def test_sealing_by_hand_changes_no_number(tmp_path, capsys):
    from fedtheory.running import seal

    stem = store.save(tmp_path, flips.item(), flips.result(), "quick", 3, 0.0, "cpu")
    path = stem.with_suffix(".json")
    record = json.loads(path.read_bytes())
    kept = path.read_bytes()
    del record["sha256"], record["files"]
    path.write_text(json.dumps(record))
    with pytest.raises(ValueError, match=rf"never sealed.*python -m fedtheory\.running\.seal {path}"):
        records.load(tmp_path, "ssf/made")
    seal.main([str(path)])
    assert path.read_bytes() == kept
    book = tmp_path / "ledger.json"
    book.write_text("[]")
    seal.main([str(book), str(book)])
    assert ledger.load(book) == []
    with pytest.raises(FileNotFoundError, match=r"path='.*none\.json'.*claims --save"):
        ledger.load(tmp_path / "none.json")
    assert capsys.readouterr().out.splitlines()[1:] == [f"{book}: sealed", f"{book}: as it was"]


# The ledger


LEDGERS = {
    "no claims": lambda r: r.pop("claims"),
    "an object": lambda r: r.update(claims={}),
    "a number": lambda r: r.update(claims=[1]),
    "no id": lambda r: r["claims"][0].pop("id"),
    "a number as verdict": lambda r: r["claims"][0].update(verdict=1),
    "assumes of words": lambda r: r["claims"][0].update(assumes=["A1"]),
    "a margin in a list": lambda r: r["claims"][0].update(margin=[1]),
}


def test_a_ledger_of_the_wrong_shape_is_one_clear_line(tmp_path, capsys):
    book = tmp_path / "ledger.json"
    assert cli.main(["claims", "fedsub.a1-cd", "--save", str(book)]) == 0
    whole = book.read_bytes()
    for change in LEDGERS.values():
        book.write_bytes(whole)
        tampered(book, change)
        capsys.readouterr()
        assert cli.main(["claims", "fedsub.a1-cd", "--save", str(book)]) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert "ledger.json" in line
        assert "expected a JSON file of the ledger's records (" in line
        assert "Fix: " in line


# Where a user has results written


@pytest.fixture
def no_work(monkeypatch):
    """Any check of a claim, and any measuring, fails the test. Statements quote records, so they are made first."""
    ledger.claims()
    monkeypatch.setattr(ledger, "check", lambda *given, **options: pytest.fail("work was begun"))
    monkeypatch.setattr(commands.Runner, "measure", lambda *given: pytest.fail("work was begun"))
    monkeypatch.setattr(commands, "together", lambda *given: pytest.fail("work was begun"))
    monkeypatch.setattr(records, "load", lambda *given: pytest.fail("work was begun"))


@pytest.mark.parametrize("bad", ["missing/x", "folder", "loop", "file/x", ""])
@pytest.mark.parametrize("words", [("claims", "fedsub.a1-cd", "--save"), ("claims", "--page"), ("report", "--page")])
def test_a_target_that_cannot_be_written_is_said_before_any_work(words, bad, tmp_path, no_work, capsys):
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    assert cli.main([*words, str(tmp_path / bad) if bad else bad]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert f"{words[-1][2:]}='" in line
    assert "expected a file" in line
    assert "Fix: " in line
    assert not (tmp_path / "missing").exists()


@pytest.mark.parametrize("words", [("reproduce", "ssf/table1", "mud/table1"), ("compare", "--tasks", "quadratics")])
def test_a_folder_that_cannot_be_written_is_said_before_any_work(words, tmp_path, no_work, capsys):
    (tmp_path / "out").write_text("")
    assert cli.main([*words, "--out", str(tmp_path / "out")]) == 2
    assert "out=" in capsys.readouterr().err
    (tmp_path / "figures").mkdir()
    (tmp_path / "figures" / ("mud" if words[0] == "reproduce" else "frontier")).write_text("no folder")
    assert cli.main([*words, "--out", str(tmp_path / "figures")]) == 2
    assert "out=" in capsys.readouterr().err


def test_links_devices_and_pipes_stay_what_they_are(tmp_path, capsys):
    claims = ["claims", "fedsub.a1-cd", "--json", "--page"]
    (tmp_path / "real.md").write_text("old")
    (tmp_path / "real.md").chmod(0o640)
    (tmp_path / "link.md").symlink_to("real.md")
    (tmp_path / "new.md").symlink_to(tmp_path / "made.md")
    os.mkfifo(tmp_path / "pipe")
    got = []
    reader = threading.Thread(target=lambda: got.append((tmp_path / "pipe").read_text()))
    reader.start()
    for name in ("link.md", "new.md", "pipe"):
        assert cli.main([*claims, str(tmp_path / name)]) == 0
    reader.join()
    page = (tmp_path / "real.md").read_text()
    assert page.startswith("# The ledger")
    assert (tmp_path / "made.md").read_text().startswith("# The ledger")
    assert got[0].startswith("# The ledger")
    assert (tmp_path / "link.md").is_symlink()
    assert (tmp_path / "new.md").is_symlink()
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)
    assert stat.S_IMODE((tmp_path / "real.md").stat().st_mode) == 0o640
    assert cli.main([*claims, os.devnull]) == 0
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)
    assert not list(tmp_path.glob(".*.tmp"))
    capsys.readouterr()


@pytest.mark.skipif(not hasattr(os, "fork") or not os.path.exists("/dev/stdout"), reason="needs fork and /dev/stdout")
def test_standard_output_is_written_where_it_leads(tmp_path):
    """Into a pipe, and behind what is there in a file, which stays the same file."""

    def write(descriptor):
        child = os.fork()
        if child == 0:
            os.dup2(descriptor, 1)
            files.require_target("page", "/dev/stdout")
            files.write_target("/dev/stdout", b"x" * 10**6)
            os._exit(0)
        os.close(descriptor)
        return child

    read, into = os.pipe()
    child = write(into)
    with open(read, "rb") as pipe:
        assert pipe.read() == b"x" * 10**6
    assert os.waitpid(child, 0)[1] == 0
    descriptor = os.open(tmp_path / "out", os.O_WRONLY | os.O_CREAT)
    number = os.fstat(descriptor).st_ino
    os.write(descriptor, b"before")
    assert os.waitpid(write(descriptor), 0)[1] == 0
    assert (tmp_path / "out").read_bytes() == b"before" + b"x" * 10**6
    assert (tmp_path / "out").stat().st_ino == number
    assert not files.is_plain("/dev/stdout")


def test_what_was_computed_is_shown_when_the_disk_is_full(tmp_path, monkeypatch, capsys):
    def full(path, content):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(cli_claims, "write_target", full)
    assert cli.main(["claims", "fedsub.a1-cd", "--json", "--page", str(tmp_path / "page.md")]) == 2
    out, err = capsys.readouterr()
    assert json.loads(out)[0]["id"] == "fedsub.a1-cd"
    assert "no space left on device. Fix" in err


def test_a_script_that_keeps_its_processes_ends_without_a_word(tmp_path):
    script = tmp_path / "kept.py"
    script.write_text("""if __name__ == "__main__":
    import os
    from pathlib import Path
    from fedtheory.papers.store import Runner
    runner = Runner(Path(__file__).parent, workers=1)
    with runner.pool() as pool:
        pool.submit(os.getpid).result()
""")
    environment = os.environ | {"PYTHONPATH": str(Path(store.__file__).parents[2])}
    done = subprocess.run([sys.executable, script], env=environment, capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_closed_runner_has_no_processes_and_can_go_on(tmp_path, monkeypatch):
    monkeypatch.setattr(store, "_follow", abs)  # the processes need not import PyTorch
    runner = Runner(tmp_path, workers=1)
    runner.close()
    found = []
    for _ in range(2):
        with runner.pool() as pool:
            found.append(pool.submit(os.getpid).result())
            processes = list(pool._processes.values())
        runner.close()
        assert not any(process.is_alive() for process in processes)
    assert len({*found, os.getpid()}) == 3


DEEP = b"[" * 100_000


def test_deep_brackets_are_one_clear_line(tmp_path, capsys):
    """In a record, a ledger, a course's list: JSON whose brackets Python's reader cannot follow."""
    (tmp_path / "ssf").mkdir()
    sealed = DEEP + f',\n "sha256": "{files.sha256(DEEP)}"\n}}\n'.encode()
    for name in ("ssf/table1.json", "ledger.json"):
        (tmp_path / name).write_bytes(sealed)
    for load in (lambda: records.load(tmp_path, "ssf/table1"), lambda: ledger.load(tmp_path / "ledger.json")):
        with pytest.raises(ValueError, match=r"it is no JSON \([^\n]*Fix: [^\n]*$"):
            load()
    (tmp_path / "course").mkdir()
    (tmp_path / "course" / "course.json").write_bytes(DEEP)
    assert cli.main(["course", "--student", str(tmp_path / "course")]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1
