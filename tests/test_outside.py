"""What an outsider expects of a repository: examples that run, types, a lock file, workflows that fit the project."""

import doctest
import importlib
import re
import tomllib
from pathlib import Path

import pytest
import yaml

import fedtheory
from fedtheory import compare
from fedtheory.cli import parser
from fedtheory.core import checks, registry
from fedtheory.problems import data

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
CALLED_FIRST = (
    fedtheory.run,
    fedtheory.play_round,
    fedtheory.Key,
    fedtheory.Layout,
    fedtheory.Quadratic.random,
    fedtheory.MatrixRegression.ssf,
    fedtheory.LogisticRegression.fedsub,
    fedtheory.ImageClassification.load,
    fedtheory.largest_step,
    fedtheory.best_directions,
    fedtheory.subspace_price,
    fedtheory.linear_plan,
    fedtheory.controls_pay_after,
    fedtheory.estimate,
    fedtheory.reset_interval,
)
WITH_EXAMPLES = [
    ".".join(path.relative_to(ROOT).with_suffix("").parts)
    for path in sorted((ROOT / "fedtheory").rglob("*.py"))
    if re.search(r"^ *>>> ", path.read_text("utf-8"), re.M)
]
PUBLIC_0_1 = (  # names of version 0.1
    "BAFFLE DeComFL DGC EF21P FedAvg FedBAT FedCom FedDC FedDyn FedFTG FedGen FedHM FedMUD FedNTD FedProx FedSub "
    "FedZO MeZO FetchSGD FlexLoRA FLSS LBGM MOON ProjectedFedAvg DeComFLReading FedSubReading FLSSReading "
    "SSFReading Scaffold SignSGD SSF STC TopK Algorithm State Key Layer Layout Cost Known Replay Seed Constants "
    "Problem Card Method Offer Cosine Steps Group join_group Divergence History Traffic play_round run Full "
    "Hadamard Kronecker LowRank Coordinate Gaussian Identity Spherical ImageClassification LogisticRegression "
    "MatrixRegression Pooled Quadratic TextClassification best_directions largest_step "
)


@pytest.mark.parametrize("name", WITH_EXAMPLES)
def test_examples_in_docstrings_run(name):
    said: list[str] = []
    module = importlib.import_module(name)
    for found in doctest.DocTestFinder().find(module, globs=dict(vars(module))):
        doctest.DocTestRunner(verbose=False).run(found, out=said.append)
    assert "".join(said) == ""


def test_what_a_user_calls_first_has_an_example():
    assert [one.__qualname__ for one in CALLED_FIRST if ">>> " not in (one.__doc__ or "")] == []


@pytest.mark.parametrize(
    ("printed", "name"), [("SCAFFOLD", "Scaffold"), ("EF21_P", "EF21P"), ("Fedavg", "FedAvg"), ("Signsgd", "SignSGD")]
)
def test_a_method_is_found_by_the_name_that_it_prints(printed, name):
    assert getattr(fedtheory, printed) is getattr(fedtheory, name)


def test_a_name_is_found_however_it_is_spelled():
    """On the command line, in a comparison, of a data set; what is spelled otherwise is named in the error."""
    assert registry.method("scaffold") is registry.method("SCAFFOLD")
    assert registry.problem("matrix-regression").name == "matrix_regression"
    assert [one.entry.name for one in compare.methods(["top_k", "fedavg"])] == ["Top-k", "FedAvg"]
    assert parser().parse_args(["run", "ef21p", "Quadratic"]).algorithm == "EF21-P"
    assert checks.alike("fashion-mnist", data.NAMES) == "fashion_mnist"
    assert data.load("Digits").name == data.load("digits").name
    with pytest.raises(ValueError, match="Fix: spell it 'fashion_mnist'"):
        checks.choice("data", "Fashion-MNIST", data.NAMES)
    with pytest.raises(AttributeError, match="Skaffold"):
        fedtheory.Skaffold  # noqa: B018


def test_no_public_name_of_an_earlier_version_is_gone():
    """By the rule of CHANGELOG.md a name goes only after two versions that warn."""
    assert [name for name in PUBLIC_0_1.split() if not hasattr(fedtheory, name)] == []


def test_the_changelog_knows_this_version():
    versions = re.findall(r"^## (\d+\.\d+\.\d+) \(", (ROOT / "CHANGELOG.md").read_text(), re.M)
    assert versions[0] == fedtheory.__version__ == PROJECT["version"]


def pins(name):
    """Package -> version in a file of `package==version` lines."""
    return {
        re.sub(r"[-_.]+", "-", found[1]).lower(): found[2]
        for found in re.finditer(r"^([\w.-]+)==([\w.]+)", (ROOT / name).read_text(), re.M)
    }


def test_the_lock_file_agrees_with_the_constraints_and_holds_all_that_is_installed():
    lock, constraints = pins("requirements.lock"), pins("constraints.txt")
    extras = PROJECT["optional-dependencies"]
    wanted = [
        *PROJECT["dependencies"],
        *(line for extra in ("notebooks", "theory", "llm", "test") for line in extras[extra]),
    ]
    names = {re.sub(r"[-_.]+", "-", re.match(r"[\w.-]+", line)[0]).lower() for line in wanted}
    assert names <= set(lock)
    assert {name: lock[name] for name in lock if name in constraints and lock[name] != constraints[name]} == {}
    text = (ROOT / "requirements.lock").read_text()
    assert "://" not in text
    assert len(re.findall(r"^\S+==.*\\\n    --hash=sha256:", text, re.M)) == len(re.findall(r"^\S+==", text, re.M))


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_parses_and_names_what_exists(path):
    flow = yaml.safe_load(path.read_text())
    assert {"name", "jobs", True} <= set(flow), "YAML reads the word on as True"
    for job in flow["jobs"].values():
        assert job["steps"][0]["uses"].startswith("actions/checkout@v")
        for step in job["steps"]:
            assert ("uses" in step) != ("run" in step)
            for extras in re.findall(r"\.\[([\w,]+)\]", step.get("run", "")):
                assert set(extras.split(",")) <= set(PROJECT["optional-dependencies"])
            for file in re.findall(r"\b(?:tests/\S+|constraints\.txt)", step.get("run", "")):
                assert (ROOT / file).exists(), file


def test_the_workflows_run_lint_types_tests_and_notebooks():
    """On three Pythons and two systems; the notebooks weekly against the newest releases."""
    tests, newest = (
        yaml.safe_load((ROOT / f".github/workflows/{name}.yml").read_text()) for name in ("tests", "newest")
    )
    lines = lambda job: "\n".join(step.get("run", "") for step in job["steps"])
    matrix = tests["jobs"]["tests"]["strategy"]["matrix"]
    least = re.search(r"\d+\.\d+", PROJECT["requires-python"])[0]
    assert (matrix["python"][0], len(matrix["python"]), len(matrix["os"])) == (least, 3, 2)
    assert "ruff format --check" in lines(tests["jobs"]["lint"])
    assert "pyright" in lines(tests["jobs"]["types"])
    assert {"pytest", "--nbval", "tests", "notebooks"} <= set(lines(tests["jobs"]["tests"]).split())
    assert newest[True]["schedule"][0]["cron"].split()[2:4] == ["*", "*"]
    assert newest[True]["schedule"][0]["cron"].split()[4].isdigit(), "once a week"
    assert "--nbval" in lines(newest["jobs"]["notebooks"])
    assert "-c constraints.txt" not in lines(newest["jobs"]["notebooks"])


def test_hooks_use_the_linter_of_the_constraints():
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"]
    (ruff,) = (one for one in hooks if "ruff" in one["repo"])
    assert ruff["rev"] == f"v{pins('constraints.txt')['ruff']}"
    assert {hook["id"] for hook in ruff["hooks"]} == {"ruff-check", "ruff-format"}


def test_templates_have_what_the_forge_reads():
    for path in (ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.md"):
        _, head, _ = path.read_text().split("---\n", 2)
        assert {"name", "about"} <= set(yaml.safe_load(head)), path.name
    assert yaml.safe_load((ROOT / ".github" / "ISSUE_TEMPLATE" / "config.yml").read_text())
    for name in ("SECURITY.md", "CODE_OF_CONDUCT.md", ".editorconfig", ".github/pull_request_template.md"):
        assert (ROOT / name).stat().st_size > 200
