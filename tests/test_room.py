"""Laptops, servers and rooms: the image and conda's file name what exists, wheels install alone, Colab's cell idles.

The image is built and started where docker runs; the wheels are fetched where there is a network. Both are marked full.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import time
import tomllib
import urllib.request
from pathlib import Path

import pytest
import yaml

from fedtheory import cli
from fedtheory.course import course, wheels

ROOT = Path(__file__).resolve().parent.parent
IMAGE = ROOT / "binder" / "Dockerfile"
ADDRESS = "https://example.org/someone/fedtheory"


def steps(text: str) -> list[tuple[str, str]]:
    """The instructions of a Dockerfile: (word, the rest on one line)."""
    lines = re.sub(r"\\\n\s*", "", re.sub(r"(?m)^#.*\n", "", text)).splitlines()
    return [(line.split(" ", 1)[0], line.split(" ", 1)[1]) for line in lines if line.strip()]


def image_faults(text: str) -> list[str]:
    """What hadolint would say of the image's file, and what it cannot know."""
    found, extras = [], tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    words = steps(text)
    found += [f"{rest}: no version" for word, rest in words if word == "FROM" and not re.match(r"[\w/]+:\d", rest)]
    for word, rest in words:
        if word == "COPY" and "--from=made" not in rest:
            found += [f"COPY {name}: is not there" for name in rest.split()[:-1] if not (ROOT / name).exists()]
        if word == "RUN" and "pip install" in rest:
            found += [] if "--no-cache-dir" in rest and "--constraint" in rest else [f"{rest}: a cache, or no versions"]
            found += [f"no extra {one}" for one in re.findall(r"\[(.*?)\]", rest)[0].split(",") if one not in extras]
    made, last = " ".join(rest for word, rest in words if word == "RUN"), dict(words)
    copied = [rest.split()[-2] for word, rest in words if word == "COPY" and "--from=made" in rest]
    found += [f"{name}: was not made" for name in copied if name not in made]
    found += [] if last.get("USER", "root") != "root" else ["runs as root"]
    return found + ([] if "jupyter-lab" in last.get("CMD", "") else ["starts no JupyterLab"])


def test_the_image_is_sound():
    text = IMAGE.read_text()
    assert image_faults(text) == []
    if shutil.which("hadolint"):
        assert subprocess.run(["hadolint", IMAGE], capture_output=True, text=True).stdout == ""
    for old, new, said in (
        ("COPY figures", "COPY figure", "figure: is not there"),
        (":3.12-slim AS", " AS", "no version"),
        (" --no-cache-dir", "", "a cache"),
        ("[course,", "[curse,", "no extra curse"),
        ("USER", "LABEL", "runs as root"),
        ("--student /handout", "--student /out", "/handout: was not made"),
        ("jupyter-lab", "jupyter", "no JupyterLab"),
    ):
        assert any(said in fault for fault in image_faults(text.replace(old, new))), said


def test_no_solution_goes_into_the_image():
    """The second stage takes the environment and the handout alone."""
    second = IMAGE.read_text().split("\nFROM ")[2]
    assert [rest for word, rest in steps(f"FROM {second}") if word == "COPY"] == [
        "--from=made /opt/course /opt/course",
        "--from=made --chown=$NB_UID /handout $HOME",
    ]


def test_condas_file_names_what_is_there():
    """Paths are relative to its folder, as pip reads them."""
    path = ROOT / "binder" / "environment.yml"
    whole = yaml.safe_load(path.read_text())
    (pip,) = (part["pip"] for part in whole["dependencies"] if isinstance(part, dict))
    named = [re.sub(r"\[.*\]", "", line.split()[1]) for line in pip if line.startswith(("--constraint", "--editable"))]
    assert [(path.parent / one).resolve() for one in named] == [ROOT / "constraints.txt", ROOT]


def test_students_need_no_solver_and_no_teacher():
    """The small extra has no package of the others."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    names = {extra: {re.split(r"[>\[<=]", one)[0] for one in packages} for extra, packages in extras.items()}
    assert names["course"] == {"jupyterlab", "ipykernel"}
    assert set(course.EXTRAS.values()) <= set(names)


def targets(text: str) -> set[str]:
    """The targets of make that a page names."""
    return set(re.findall(r"(?:^|`)make ([a-z-]+)", text, re.MULTILINE))


def test_each_target_has_a_command_without_make():
    """Of the README and of the pages for teachers; scripts and files that a command names are there."""
    install = (ROOT / "docs" / "book" / "start" / "install.md").read_text()
    without = dict(re.findall(r"^\| `make ([a-z-]+)` \| `([^`]+)`", install, re.MULTILINE))
    pages = [
        ROOT / "README.md",
        *(page for name in ("course", "start") for page in (ROOT / "docs/book" / name).glob("*.md")),
    ]
    assert set().union(*(targets(page.read_text()) for page in pages)) == set(without)
    for words in map(str.split, without.values()):
        assert words[0] in ("python", "jupyter")
        assert [
            word for word in words if re.search(r"[a-z]/|\.py$|^notebooks$", word) and not (ROOT / word).exists()
        ] == []
    assert targets("Type `make lab`:\n\nmake test   # lint") == {"lab", "test"}


WINDOWS = """
import warnings
warnings.filterwarnings("ignore", category=EncodingWarning)
warnings.filterwarnings("error", category=EncodingWarning, module="fedtheory")
import os, signal, sys
import torch, matplotlib.pyplot
for name in ("fcntl", "resource", "pwd", "grp", "termios"):
    sys.modules[name] = None
for name in {"fork", "killpg", "getuid", "geteuid", "sched_getaffinity", "O_DIRECTORY", "O_NOFOLLOW"} & set(dir(os)):
    delattr(os, name)
for name in {"SIGKILL", "SIGHUP", "SIGUSR1", "SIGALRM"} & set(dir(signal)):
    delattr(signal, name)
from fedtheory.cli import main
assert main(["run", "FedAvg", "quadratic", "--rounds", "3"]) == 0
assert main(["course", "--student", sys.argv[1], "00"]) == 0
"""


def test_windows(tmp_path):
    """A run and a handout without what Windows lacks, and with each file's encoding named."""
    words = [sys.executable, "-X", "warn_default_encoding", "-c", WINDOWS, str(tmp_path / "handout")]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


class TestColab:
    def test_each_version_begins_with_the_same_cell(self, tmp_path):
        sources = []
        for kind, place in (("student", "{0}/{0}.ipynb"), ("instructor", "source/{0}/{0}.ipynb")):
            course.course(kind, tmp_path / kind, ["09"], ADDRESS)
            path = tmp_path / kind / place.format("09_language_models")
            sources.append(json.loads(path.read_text())["cells"][0]["source"])
        assert sources[0] == sources[1]
        assert f"git clone --quiet --depth 1 {ADDRESS} /content/fedtheory" in sources[0]
        assert '"/content/fedtheory[llm]"' in sources[0]

    def test_it_does_nothing_elsewhere(self, monkeypatch):
        """Not a file, not a process, not a variable; on Colab three steps."""
        from IPython.core.inputtransformer2 import TransformerManager

        (cell,) = course._installing(ADDRESS, "00")
        code = compile(TransformerManager().transform_cell(cell["source"]), "colab", "exec")
        calls, before = [], dict(os.environ)

        class Shell:
            def system(self, words):
                calls.append(words)

            def run_line_magic(self, name, words):
                calls.append(f"{name} {words}")

        space = {"get_ipython": Shell}
        exec(code, space)
        assert (calls, dict(os.environ)) == ([], before)
        monkeypatch.setenv("FEDTHEORY_ROOT", "before")
        monkeypatch.setitem(sys.modules, "google.colab", object())
        exec(code, space)
        assert len(calls) == 2
        assert calls[1] == 'pip install --quiet "/content/fedtheory"'
        assert os.environ["FEDTHEORY_ROOT"] == "/content/fedtheory"

    @pytest.mark.parametrize("address", ["", "git@host:a/b", "https://host/a b", "https://host/a;rm", "file:///x"])
    def test_an_address_that_is_none(self, address, tmp_path, capsys):
        assert cli.main(["course", "--student", str(tmp_path / "x"), "00", "--colab", address]) == 2
        said = capsys.readouterr().err
        assert said.startswith("fedtheory: colab=")
        assert len(said.splitlines()) == 1
        assert list(tmp_path.iterdir()) == []


class TestWheels:
    @pytest.mark.parametrize("words", [["--extra", "curse"]])
    def test_bad_words(self, words, tmp_path, capsys):
        assert cli.main(["course", "--wheels", str(tmp_path / "x"), *words]) == 2
        assert "extra='curse': expected one of 'notebooks'," in capsys.readouterr().err

    def test_what_pip_says_is_told_in_one_line(self, tmp_path, monkeypatch, capsys):
        done = subprocess.CompletedProcess([], 1, "", "ERROR: first\nERROR: no matching distribution\nmore\n")
        monkeypatch.setattr(wheels.subprocess, "run", lambda *given, **named: done)
        assert cli.main(["course", "--wheels", str(tmp_path / "x")]) == 2
        said = capsys.readouterr().err
        assert "ERROR: no matching distribution" in said
        assert len(said.splitlines()) == 1

    @pytest.mark.full
    def test_the_folder_alone_installs(self, tmp_path):
        """In a new environment, without an index: the small extra runs a student's notebook."""
        asked = [sys.executable, "-m", "pip", "index", "versions", "pip"]
        if subprocess.run(asked, capture_output=True).returncode:
            pytest.skip("needs a network")
        wheels.save(tmp_path / "wheels")
        subprocess.run([sys.executable, "-m", "venv", tmp_path / "venv"], check=True)
        python = tmp_path / "venv" / ("Scripts" if os.name == "nt" else "bin") / "python"
        clean = {name: value for name, value in os.environ.items() if not name.startswith(("PIP_", "PYTHONPATH"))}
        clean |= {"PIP_CONFIG_FILE": os.devnull}
        words = wheels.command(tmp_path / "wheels").replace('"', "").split()
        subprocess.run([python, *words[1:]], check=True, env=clean)
        course.course("student", tmp_path / "handout", ["00"])
        folder = tmp_path / "handout" / "00_tour"
        code = "import nbformat, nbclient; n = nbformat.read('00_tour.ipynb', 4); nbclient.NotebookClient(n).execute()"
        subprocess.run([python, "-c", code], check=True, cwd=folder, env=clean)


def docker() -> bool:
    return bool(shutil.which("docker")) and subprocess.run(["docker", "info"], capture_output=True).returncode == 0


@pytest.mark.full
@pytest.mark.skipif(not docker(), reason="needs a running docker")
def test_the_image_starts():
    """JupyterLab answers, the students' notebooks are there, no solution is."""
    subprocess.run(["docker", "build", "--file", IMAGE, "--tag", "fedtheory-test", ROOT], check=True)
    start = ["docker", "run", "--rm", "--detach", "--publish", "127.0.0.1::8888", "fedtheory-test"]
    box = subprocess.run(start, check=True, capture_output=True, text=True).stdout.strip()
    try:
        port = subprocess.run(
            ["docker", "port", box, "8888"], check=True, capture_output=True, text=True
        ).stdout.strip()
        for _ in range(60):
            try:
                with urllib.request.urlopen(f"http://{port}/api", timeout=5) as answer:
                    assert "version" in json.load(answer)
                break
            except OSError:
                time.sleep(1)
        else:
            pytest.fail("JupyterLab does not answer")
        found = subprocess.run(["docker", "exec", box, "ls"], check=True, capture_output=True, text=True).stdout
        assert "00_tour" in found.split()
        look = ["docker", "exec", box, "sh", "-c", "grep -rl 'BEGIN SOLUTION' $HOME || true"]
        assert subprocess.run(look, check=True, capture_output=True, text=True).stdout == ""
    finally:
        subprocess.run(["docker", "kill", box], check=True, capture_output=True)
