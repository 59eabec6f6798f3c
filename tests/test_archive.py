"""Runs in archives: found as loose ones are, the same bytes from the same runs, and never taken when damaged."""

import subprocess
import sys
import zipfile
from dataclasses import replace
from pathlib import Path

import flips
import pytest

from fedtheory.core import files
from fedtheory.papers import archive
from fedtheory.papers.store import Runner

FIGURES = Path(__file__).resolve().parent.parent / "figures"
SPECS = [flips.SPEC, replace(flips.SPEC, seed=1)]


@pytest.fixture
def packed(tmp_path, inline):
    """A folder of figures with two packed runs, the names of the runs, and what was run so far."""
    runner = Runner(tmp_path, workers=1)
    runner(SPECS)
    assert archive.pack(tmp_path) == (2, [])
    return tmp_path, [runner.path(spec).name for spec in SPECS], inline


def test_a_packed_run_is_found_and_not_made_again(packed):
    out, names, made = packed
    assert not list((out / ".runs").glob("*.json"))
    assert archive.names(out) == sorted(names)
    results = Runner(out, workers=1)(SPECS)
    assert len(made) == 2
    records = [files.unseal(archive.read(out, name)) for name in names]
    assert [record["result"]["columns"] for record in records] == [results[spec]["columns"] for spec in SPECS]
    assert [record["words"]["seed"] for record in archive.runs(out)] == [
        record["words"]["seed"] for record in sorted(records, key=lambda r: names[records.index(r)])
    ]


def test_the_same_runs_give_the_same_bytes(packed, tmp_path):
    """Whether they are packed at once or one by one."""
    out, names, _ = packed
    whole = (out / "runs" / "ssf.zip").read_bytes()
    for name in sorted(names, reverse=True):
        (tmp_path / "one" / ".runs").mkdir(parents=True, exist_ok=True)
        (tmp_path / "one" / ".runs" / name).write_bytes(archive.read(out, name))
        archive.pack(tmp_path / "one")
    assert (tmp_path / "one" / "runs" / "ssf.zip").read_bytes() == whole


def test_a_loose_run_comes_before_a_packed_one_and_replaces_it(packed):
    out, (name, other), _ = packed
    newer = files.seal(files.unseal(archive.read(out, name)) | {"device": "cuda"}, None)
    (out / ".runs" / name).write_bytes(newer)
    assert archive.read(out, name) == newer
    kept = archive.read(out, other)
    assert archive.pack(out) == (1, [])
    assert (archive.read(out, name), archive.read(out, other)) == (newer, kept)


def test_a_damaged_packed_run_is_said_and_made_again(packed):
    out, (name, _), made = packed
    path = out / "runs" / "ssf.zip"
    with zipfile.ZipFile(path) as whole:
        at = whole.getinfo(name).header_offset + 200
    content = bytearray(path.read_bytes())
    content[at] ^= 1
    path.write_bytes(content)
    with pytest.warns(UserWarning, match=f"{name} is damaged .*: it is made again"):
        Runner(out, workers=1)(SPECS)
    assert len(made) == 3
    assert Runner(out, workers=1)(SPECS)
    assert len(made) == 3


def test_a_run_that_was_changed_inside_a_whole_archive_is_said(packed):
    out, (name, _), made = packed
    changed = archive.read(out, name).replace(b'"device": "cpu"', b'"device": "gpu"')
    (out / "runs" / "ssf.zip").write_bytes(archive._zipped({name: changed}))
    with pytest.warns(UserWarning, match=f"{name} is damaged .*SHA-256 does not match"):
        Runner(out, workers=1)(SPECS[:1])
    assert len(made) == 3


def test_a_damaged_loose_run_gives_way_to_a_packed_one(packed):
    out, (name, _), made = packed
    (out / ".runs" / name).write_bytes(b"{")
    with pytest.warns(UserWarning, match="kept as"):
        Runner(out, workers=1)(SPECS)
    assert len(made) == 2
    (out / ".runs" / name).write_bytes(b"{")
    assert archive.pack(out) == (0, [name])


def test_a_damaged_archive_is_said_and_nothing_is_written_in_its_place(packed):
    out, _, made = packed
    path = out / "runs" / "ssf.zip"
    path.write_bytes(path.read_bytes()[:-30])
    cut = path.read_bytes()
    with pytest.warns(UserWarning, match=r"ssf.zip is damaged .*: the runs in it are not used"):
        Runner(out, workers=1)(SPECS)
    assert len(made) == 4
    with pytest.raises(files.Broken, match=r"ssf\.zip is damaged"):
        archive.pack(out)
    assert path.read_bytes() == cut
    assert len(list((out / ".runs").glob("*.json"))) == 2


def test_the_command_packs_and_says_so(packed):
    out, (name, _), _ = packed
    (out / ".runs" / name).write_bytes(archive.read(out, name))
    call = [sys.executable, "-m", "fedtheory.papers.archive"]
    done = subprocess.run([*call, str(out)], capture_output=True, text=True, check=True)
    assert done.stdout == f"1 runs packed into {out / 'runs'}\n"
    done = subprocess.run([*call, str(out / "nowhere")], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.count("\n"), "Fix: " in done.stderr) == (1, 1, True)


def test_the_committed_runs_are_whole():
    """All are read, sealed and under the names of their words."""
    found = list(archive.runs(FIGURES))
    assert len(found) >= 2555
    assert len(list((FIGURES / "runs").iterdir())) <= 12
    assert {run["format"] for run in found} == {"fedtheory run 1"}
