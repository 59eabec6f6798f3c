"""Bad arguments are refused before any work; the message says which, its value, what was expected, and one fix."""

import math
from dataclasses import fields

import numpy as np
import pytest
import torch
from cases import TWO_LAYERS, quadratic
from each import each

from fedtheory import (
    SSF,
    Coordinate,
    DeComFL,
    FedAvg,
    FedSub,
    Gaussian,
    Identity,
    Key,
    Layer,
    Layout,
    LogisticRegression,
    MatrixRegression,
    Quadratic,
    Scaffold,
    Spherical,
    play_round,
    run,
)
from fedtheory.algorithms.readings.fedsub import FedSubReading
from fedtheory.algorithms.readings.ssf import SSFReading
from fedtheory.core import checks
from fedtheory.core.schedule import Cosine, Schedule, Steps
from fedtheory.federation.admission import ids
from fedtheory.maps.decomposition import Kronecker
from fedtheory.problems.images import ImageClassification
from fedtheory.problems.text import TextClassification
from fedtheory.running.checkpoint import Checkpoint

NAN, INF = math.nan, math.inf
DOUBLE = torch.float64


def ones(*shape, dtype=DOUBLE):
    return torch.ones(*shape, dtype=dtype)


def broken(value, *shape):
    """Ones with one entry that is not a number."""
    x = ones(*shape)
    x.view(-1)[-1] = value
    return x


EYE = torch.eye(3, dtype=DOUBLE).repeat(2, 1, 1)  # H of two clients
SKEW = EYE + torch.triu(ones(3, 3), 1)
A, B, LABELS = ones(2, 4, 3), ones(2, 4, 2), ones(2, 4)
PLAIN = FedAvg(0.1, 2)
CD = Coordinate(1)


def _quadratic(H=EYE, b=None, **options):
    return Quadratic(H, ones(2, 3) if b is None else b, **options)


def _random(**options):
    return Quadratic.random(**{"n": 2, "d": 3, "key": Key(0)} | options)


def _regression(A=A, B=B, lam=0.1, **options):
    return MatrixRegression(A, B, lam, **options)


def _ssf_data(het=0.1, **options):
    return MatrixRegression.ssf(het, **{"key": Key(0), "n": 2, "rows": 3, "d": 4, "m": 1, "batch": 2} | options)


def _logistic(A=A, b=LABELS, lam=0.1, **options):
    return LogisticRegression(A, b, lam, **options)


def _fedsub_data(**options):
    return LogisticRegression.fedsub(**{"key": Key(0), "n": 2, "samples": 40, "m": 3, "lam": 0.1} | options)


class Rising(Schedule):
    """A schedule of the caller's, that says nothing of itself and has one round at rest."""

    def factor(self, t):
        return 0.0 if t == 3 else 1.0


def _run(algorithm=PLAIN, problem=None, rounds=1, **options):
    return run(algorithm, quadratic() if problem is None else problem, rounds, **options)


# Step sizes and counts of every algorithm: each bad value below is tried on each of these fields.

ALGORITHMS = {
    "FedAvg": FedAvg(0.1, 2),
    "Scaffold": Scaffold(0.1, 2),
    "FedSub": FedSub(0.1, 2, CD),
    "SSF": SSF(0.1, 2, Spherical(1, "orthonormal")),
    "SSFReading": SSFReading(0.1, 2, Spherical(1, "orthonormal")),
}
RATES = [None, 0.0, -0.1, NAN, INF, -INF, True, "0.1", 1j, [0.1], torch.tensor(0.1), np.array(0.1)]
COUNTS = [0, -1, True, 2.0, "2", None, NAN, np.array(2)]
FLAGS = [1, 0, "True", None]


def table():
    """(algorithm, field, bad value) over all step sizes, counts and flags."""
    for algorithm in ALGORITHMS.values():
        kinds = {field.name: getattr(algorithm, field.name) for field in fields(algorithm)}
        for field, value in kinds.items():
            if field in ("lr", "server_lr"):
                bad = RATES
            elif field in ("local_steps", "refresh"):
                bad = COUNTS
            elif field == "decay_every":
                bad = [-1, True, 2.0]
            elif field == "decay_factor":
                bad = [0.0, -0.5, 1.5, NAN, "half"]
            elif isinstance(value, bool):
                bad = FLAGS
            elif isinstance(value, str):
                bad = ["sideways", "", 1, None]
            else:
                bad = [None, 3, "Coordinate", Coordinate, TWO_LAYERS]
            left_out = type(algorithm).__dataclass_fields__[field].default is None  # None has the problem choose
            for one in bad[bad[0] is None :] if left_out else bad:
                yield algorithm, field, one


def complaint(caught, name, value=None):
    """The four parts of a message."""
    text = str(caught.value)
    for part in (name, "expected", "Fix: ") if value is None else (name, value, "expected", "Fix: "):
        assert part in text, f"{part!r} is not in: {text}"
    assert not text.endswith("Fix: "), text


@each("algorithm, field, value", table())
def test_every_field_of_every_algorithm(algorithm, field, value):
    arguments = {one.name: getattr(algorithm, one.name) for one in fields(algorithm)} | {field: value}
    with pytest.raises((ValueError, TypeError)) as caught:
        type(algorithm)(**arguments)
    complaint(caught, field, repr(value)[:40])


# Everything else: what is called, and the name and value that the message must hold.

CASES = [
    (lambda: SSF(0.1, 2, Spherical(2)), "projection.scale", "isotropic"),
    (lambda: SSF.haar(0.1, 2, 0), "rank", "0"),
    (lambda: SSF.haar(-1, 2, 1), "lr", "-1"),
    # bases
    (lambda: Coordinate(0), "rank", "0"),
    (lambda: Spherical(-2), "rank", "-2"),
    (lambda: Gaussian(2.0), "rank", "2.0"),
    (lambda: Coordinate(True), "rank", "True"),
    (lambda: Coordinate([2, 1]), "rank", "[2, 1]"),
    (lambda: Coordinate((2, 0)), "rank", "0"),
    (lambda: Coordinate((2, 1.0)), "rank", "1.0"),
    (lambda: Identity(rank=0), "rank", "0"),
    (lambda: Spherical(2, "haar"), "scale", "'haar'"),
    (lambda: Gaussian(2, None), "scale", "None"),
    (lambda: Coordinate(5).ranks(TWO_LAYERS), "rank", "5"),
    (lambda: Spherical(5).draw(TWO_LAYERS, Key(0), DOUBLE), "rank", "5"),
    (lambda: Gaussian((2,)).ranks(TWO_LAYERS), "rank", "(2,)"),
    (lambda: Gaussian((2, 4)).ranks(TWO_LAYERS), "rank of layer 'second'", "4"),
    (lambda: _run(FedSub(0.1, 2, Coordinate(7))), "rank", "7"),
    (lambda: _run(SSF.haar(0.1, 2, 7)), "rank", "7"),
    # layouts
    (lambda: Layout(()), "layers", "()"),
    (lambda: Layout((Layer("a", 0, 1),)), "layers['a'].rows", "0"),
    (lambda: Layout((Layer("a", 2, -1),)), "layers['a'].cols", "-1"),
    (lambda: Layout((Layer("a", 2.0, 1),)), "layers['a'].rows", "2.0"),
    (lambda: Layout((Layer("a", 2, 1), Layer("a", 1, 1))), "layers", "['a', 'a']"),
    (lambda: Layout.single(0), "rows", "0"),
    (lambda: ids(range(3)), "uploads[0]", "0"),
    (lambda: TWO_LAYERS.flatten([ones(4, 2)]), "matrices", "1"),
    (lambda: TWO_LAYERS.flatten([ones(2, 4), ones(3, 1)]), "matrices['first'].shape", "(2, 4)"),
    # keys
    (lambda: Key(-1), "seed", "-1"),
    (lambda: Key(2**63), "seed", str(2**63)),
    (lambda: Key(0.0), "seed", "0.0"),
    (lambda: Key(True), "seed", "True"),
    (lambda: Key("0"), "seed", "'0'"),
    (lambda: Key(0).fold(1.5), "name", "1.5"),
    (lambda: Key(0).fold("a", False), "name", "False"),
    (lambda: Key(0).fold(("a",)), "name", "('a',)"),
    (lambda: Key(0).fold(np.int64(3)), "name", "3"),
    # quadratics
    (lambda: _quadratic([[1.0]]), "H", "list"),
    (lambda: _quadratic(EYE[0]), "H.shape", "(3, 3)"),
    (lambda: _quadratic(EYE[:, :2]), "H.shape", "(2, 2, 3)"),
    (lambda: _quadratic(EYE.long()), "H.dtype", "torch.int64"),
    (lambda: _quadratic(EYE.half()), "H.dtype", "torch.float16"),
    (lambda: _quadratic(SKEW), "H", "asymmetric by 1"),
    (lambda: _quadratic(broken(NAN, 2, 3, 3)), "H[1, 2, 2]", "nan"),
    (lambda: _quadratic(b=ones(2, 4)), "b.shape", "(2, 4)"),
    (lambda: _quadratic(b=ones(3, 3)), "b.shape", "(3, 3)"),
    (lambda: _quadratic(b=ones(2, 3).float()), "b.dtype", "torch.float32"),
    (lambda: _quadratic(b=broken(INF, 2, 3)), "b[1, 2]", "inf"),
    (lambda: _quadratic(b=np.ones((2, 3))), "b", "ndarray"),
    (lambda: _quadratic(noise=ones(3)), "noise.shape", "(3,)"),
    (lambda: _quadratic(noise=broken(-INF, 2, 3)), "noise[1, 2]", "-inf"),
    (lambda: _quadratic(layout=Layout.single(4)), "layout.size", "4"),
    (lambda: _quadratic(weights=torch.tensor([-1.0, 2.0])), "weights", "[-1.0, 2.0]"),
    (lambda: _quadratic(weights=torch.zeros(2)), "weights", "[0.0, 0.0]"),
    (lambda: _quadratic(weights=torch.ones(3)), "weights.shape", "(3,)"),
    (lambda: _quadratic(weights=torch.tensor([1, 2])), "weights.dtype", "torch.int64"),
    (lambda: _quadratic(weights=torch.tensor([NAN, 1.0])), "weights[0]", "nan"),
    (lambda: _quadratic(weights=[1.0, 1.0]), "weights", "list"),
    (lambda: _quadratic(device="tpu"), "device", "'tpu'"),
    (lambda: _quadratic(device="meta"), "device", "'meta'"),
    (lambda: _quadratic(device=3.5), "device", "3.5"),
    (lambda: _random(n=0), "n", "0"),
    (lambda: _random(d=2.0), "d", "2.0"),
    (lambda: _random(spread=-1.0), "spread", "-1.0"),
    (lambda: _random(sigma=NAN), "sigma", "nan"),
    (lambda: _random(spectrum=(1.0, 0.1)), "spectrum", "(1.0, 0.1)"),
    (lambda: _random(spectrum=(0.1, INF)), "spectrum", "inf"),
    (lambda: _random(dtype=torch.int32), "dtype", "torch.int32"),
    # matrix regression
    (lambda: _regression(A=ones(4, 3)), "A.shape", "(4, 3)"),
    (lambda: _regression(A=broken(NAN, 2, 4, 3)), "A[1, 3, 2]", "nan"),
    (lambda: _regression(A=A.long()), "A.dtype", "torch.int64"),
    (lambda: _regression(A=A.bfloat16()), "A.dtype", "torch.bfloat16"),
    (lambda: _regression(A=A.tolist()), "A", "list"),
    (lambda: _regression(B=ones(2, 5, 2)), "B.shape", "(2, 5, 2)"),
    (lambda: _regression(B=B.float()), "B.dtype", "torch.float32"),
    (lambda: _regression(B=broken(INF, 2, 4, 2)), "B[1, 3, 1]", "inf"),
    (lambda: _regression(lam=-0.1), "lam", "-0.1"),
    (lambda: _regression(lam=NAN), "lam", "nan"),
    (lambda: _regression(lam="0.1"), "lam", "'0.1'"),
    (lambda: _regression(lam=True), "lam", "True"),
    (lambda: _regression(batch=0), "batch", "0"),
    (lambda: _regression(batch=2.0), "batch", "2.0"),
    (lambda: _regression(batch=5, replacement=False), "batch", "5"),
    (lambda: _ssf_data(-0.1), "het", "-0.1"),
    (lambda: _ssf_data(NAN), "het", "nan"),
    (lambda: _ssf_data(noise=-1.0), "noise", "-1.0"),
    (lambda: _ssf_data(n=0), "n", "0"),
    (lambda: _ssf_data(rows=0), "rows", "0"),
    (lambda: _ssf_data(d=-3), "d", "-3"),
    (lambda: _ssf_data(m=1.0), "m", "1.0"),
    (lambda: _ssf_data(dtype=torch.complex128), "dtype", "torch.complex128"),
    # logistic regression
    (lambda: _logistic(A=ones(4, 3)), "A.shape", "(4, 3)"),
    (lambda: _logistic(A=broken(INF, 2, 4, 3)), "A[1, 3, 2]", "inf"),
    (lambda: _logistic(b=ones(2, 3)), "b.shape", "(2, 3)"),
    (lambda: _logistic(b=LABELS.float()), "b.dtype", "torch.float32"),
    (lambda: _logistic(b=(LABELS + 1) / 2 * 0), "b", "0.0"),
    (lambda: _logistic(b=2 * LABELS), "b", "2.0"),
    (lambda: _logistic(lam=-1.0), "lam", "-1.0"),
    (lambda: _fedsub_data(geometry="circle"), "geometry", "'circle'"),
    (lambda: _fedsub_data(n=0), "n", "0"),
    (lambda: _fedsub_data(samples=1), "samples", "1"),
    (lambda: _fedsub_data(m=0), "m", "0"),
    (lambda: _fedsub_data(noise=-0.1), "noise", "-0.1"),
    (lambda: _fedsub_data(offset=INF), "offset", "inf"),
    (lambda: _fedsub_data(lam=NAN), "lam", "nan"),
    # run
    (lambda: _run(FedAvg), "algorithm", "FedAvg"),
    (lambda: _run("FedAvg"), "algorithm", "'FedAvg'"),
    (lambda: _run(problem=Quadratic), "problem", "Quadratic"),
    (lambda: _run(rounds=-1), "rounds", "-1"),
    (lambda: _run(rounds=1.0), "rounds", "1.0"),
    (lambda: _run(rounds=True), "rounds", "True"),
    (lambda: _run(sampled=0), "sampled", "0"),
    (lambda: _run(sampled=6), "sampled", "6"),
    (lambda: _run(sampled=2.0), "sampled", "2.0"),
    (lambda: _run(seed=-1), "seed", "-1"),
    (lambda: _run(seed=0.5), "seed", "0.5"),
    (lambda: _run(seed=None), "seed", "None"),
    (lambda: _run(x0=[0.0] * 12), "x0", "list"),
    (lambda: _run(x0=ones(11)), "x0.shape", "(11,)"),
    (lambda: _run(x0=ones(12).float()), "x0.dtype", "torch.float32"),
    (lambda: _run(x0=torch.zeros(12, dtype=torch.int64)), "x0.dtype", "torch.int64"),
    (lambda: _run(x0=broken(NAN, 12)), "x0[11]", "nan"),
    (lambda: _run(every=0), "every", "0"),
    (lambda: _run(every=2.5), "every", "2.5"),
    (lambda: _run(metrics=("errors",)), "metrics", "'errors'"),
    (lambda: _run(metrics=("loss", 3)), "metrics", "3"),
    (lambda: _run(metrics="accuracy"), "metrics", ""),
    (lambda: _run(problem=_quadratic(0 * EYE), metrics=("error",)), "x_star", "None"),
    (lambda: _run(chunk=0), "chunk", "0"),
    (lambda: _run(chunk=1.0), "chunk", "1.0"),
    (lambda: _run(checkpoint=5), "checkpoint", "5"),
    (lambda: _run(checkpoint=""), "checkpoint", "''"),
    (lambda: _run(checkpoint_every=0), "checkpoint_every", "0"),
    (lambda: _run(checkpoint_seconds=NAN), "checkpoint_seconds", "nan"),
    (lambda: _run(checkpoint_seconds=-1.0), "checkpoint_seconds", "-1.0"),
    (lambda: _run(metrics=("loss", "loss")), "metrics", "('loss', 'loss')"),
    (lambda: _run(threads=10**30), "threads", "1" + 30 * "0"),
    (lambda: _run(rounds=10**9), "rounds", "1000000000"),
    (lambda: _run(FedAvg(0.1, 10**12)), "local_steps", "1000000000000"),
    (lambda: FedAvg(0.1, 10**5000), "local_steps", "10**5000"),
    (lambda: FedAvg(0.1, -(10**5000)), "local_steps", "-10**5000"),
    (lambda: _run(DeComFL(0.1, 1, 10**12)), "perturbations", "1000000000000"),
    (lambda: _random(n=10**6, d=10**6), "(n, d)", "(1000000, 1000000)"),
    # rates that vanish in the middle of a run: said with the round
    (lambda: _run(rounds=400, schedule=Steps(1)), "schedule", "in round t=307"),
    (lambda: _run(rounds=5, schedule=Cosine(2)), "schedule", "in round t=2"),
    (lambda: _run(rounds=5, schedule=Rising()), "schedule", "in round t=3"),
    (lambda: FedSubReading(0.1, 2, CD, absent="steps"), "absent", "steps"),
    (lambda: FedSubReading(0.1, 2, CD, absent="Step Turned"), "absent", "Step Turned"),
    (lambda: FedSubReading(0.1, 2, CD, absent=None), "absent", "None"),
    (lambda: _run(FedSubReading(0.1, 2, CD, decay_every=1), rounds=400), "lr", "in round t=307"),
    (lambda: _run(FedSubReading(0.1, 2, CD, decay_every=3, decay_factor=1e-200), rounds=400), "lr", "in round t=6"),
    (lambda: _run(FedAvg(1e-50, 2), quadratic(dtype=torch.float32)), "lr", "in round t=0"),
    (lambda: _run(checkpoint_every=1.5), "checkpoint_every", "1.5"),
]


@each("call, name, value", CASES)
def test_bad_argument(call, name, value):
    with pytest.raises((ValueError, TypeError, MemoryError)) as caught:
        call()
    complaint(caught, name, value)


def test_a_device_that_is_not_there():
    if torch.cuda.is_available():
        pytest.skip("this machine has a CUDA device")
    with pytest.raises(ValueError, match=r"device='cuda'.*expected a device of this machine.*Fix: "):
        _quadratic(device="cuda")


@pytest.mark.parametrize("where", ["file", "below a file", "no folder"])
def test_a_folder_that_cannot_be_written_to(where, tmp_path):
    """A regular file in the way stops even an administrator."""
    (tmp_path / "file").write_text("in the way")
    folder = {"file": "file", "below a file": "file/run", "no folder": "file/a/b"}[where]
    with pytest.raises(OSError, match=r"checkpoint=.*expected a folder that can be written to.*Fix: ") as caught:
        _run(checkpoint=tmp_path / folder)
    complaint(caught, "checkpoint", str(tmp_path / folder))
    with pytest.raises(OSError, match="checkpoint="):
        Checkpoint(tmp_path / folder, "a run")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_rates_are_refused_only_where_a_round_has_none():
    """The last round before the first bad one is fine; a rate that stays above the dtype's least number is no fault."""
    assert _run(rounds=307, schedule=Steps(1), every=400)["round"] == [0, 307]
    assert _run(rounds=2, schedule=Cosine(2))["round"] == [0, 1, 2]
    assert _run(rounds=3, schedule=Rising())["round"] == [0, 1, 2, 3]
    assert _run(FedSubReading(0.1, 2, CD, decay_every=1), rounds=100, every=100)["round"] == [0, 100]


def test_numbers_of_numpy_are_numbers():
    """They become Python's: names of runs, and with them checkpoints and cached results, do not hang on their type."""
    one = FedAvg(np.float64(0.1), np.int64(2), weighted=np.bool_(False))
    assert repr(one) == repr(PLAIN)
    assert repr(FedAvg(1, 2)) == "FedAvg(lr=1, local_steps=2, server_lr=1.0, weighted=False)"
    assert repr(Coordinate((np.int64(2), 1))) == repr(Coordinate((2, 1)))
    assert Key(np.int64(3)).hash() == Key(3).hash()
    assert repr(Layout.single(np.int64(3))) == repr(Layout.single(3))
    assert _run(one, rounds=np.int64(2), sampled=np.int8(2)).columns == _run(rounds=2, sampled=2).columns
    assert Kronecker(1e-200, layers="all").parts(TWO_LAYERS), "one block at least"


def test_a_refused_run_writes_nothing(tmp_path):
    for options in ({"every": 0}, {"sampled": 9}, {"x0": ones(1)}, {"metrics": ("none",)}):
        with pytest.raises((ValueError, TypeError)):
            _run(checkpoint=tmp_path / "run", **options)
    assert not list(tmp_path.iterdir())


# Known gaps: these reach Python's or torch's own error, or are taken without a word.


def _one_round(clients, **options):
    problem = quadratic()
    state = PLAIN.init(problem, problem.start(), Key(0))
    return play_round(PLAIN, problem, state, torch.tensor(clients), **{"key": Key(0)} | options)


MORE = [
    (lambda: FedAvg(10**400, 1), "lr"),
    (lambda: _quadratic(layout=3), "layout"),
    (lambda: _random(spectrum=0.5), "spectrum"),
    (lambda: _random(spectrum=(0.1, 0.5, 1.0)), "spectrum"),
    (lambda: _random(key="0"), "key"),
    (lambda: _random(dtype="float64"), "dtype"),
    (lambda: _ssf_data(key=-1), "key"),
    (lambda: _fedsub_data(key=True), "key"),
    (lambda: _quadratic(ones(0, 3, 3), ones(0, 3)), "H"),
    (lambda: _regression(A=ones(2, 0, 3), B=ones(2, 0, 2)), "A"),
    (lambda: _regression(A=ones(0, 4, 3), B=ones(0, 4, 2)), "A"),
    (lambda: _logistic(A=ones(2, 0, 3), b=ones(2, 0)), "A"),
    (lambda: _logistic(lam=0.0), "lam"),
    (lambda: _regression(batch=2, replacement="no"), "replacement"),
    (lambda: Coordinate(2, signs=1), "signs"),
    (lambda: Coordinate(()), "rank"),
    (lambda: Coordinate(2).draw(TWO_LAYERS, Key(0), torch.int64), "dtype"),
    (lambda: SSF(0.1, 2, Gaussian(2, "orthonormal")), "projection"),
    (lambda: Layout((("a", 1, 2),)), "layers"),
    (lambda: Layout(3), "layers"),
    (lambda: Key(0, ("a", 1.5)), "path"),
    (lambda: _run(metrics=5), "metrics"),
    (lambda: _run(progress=3), "progress"),
    (lambda: _one_round([7]), "clients"),
    (lambda: _one_round([1, 1]), "clients"),
    (lambda: _one_round([1, 2], lags=[1]), "lags"),
    (lambda: _one_round([1, 2], lags=[1, NAN]), "lags[1]"),
    (lambda: _one_round([1, 2], lags=[1, -1]), "lags[1]"),
    (lambda: _one_round([1, 2], chunk=-1), "chunk"),
    (lambda: _one_round([1, 2], chunk=0), "chunk"),
    (lambda: _one_round([1, 2], threads=0), "threads"),
    (lambda: _one_round([1, 2], key=0.0), "key"),
    (lambda: _one_round([1.0, 2.0]), "clients"),
    (lambda: _one_round([[1, 2]]), "clients"),
    (lambda: _one_round([1, 2], dropped=[1, 2]), "dropped"),
    (lambda: run(PLAIN, quadratic(), 1)["errors"], "name"),
    (lambda: quadratic().error(torch.ones(1, dtype=DOUBLE)), "x.shape"),
    (lambda: TWO_LAYERS.columns(ones(12)), "x.shape"),
]


@each("call, name", MORE)
def test_more_bad_input(call, name):
    with pytest.raises((ValueError, TypeError)) as caught:
        call()
    complaint(caught, name)


MISSPELT = [
    (lambda: run(PLAIN, quadratic(), 1, metrcs=()), "metrcs", "metrics"),
    (lambda: Quadratic.random(2, 3, Key(0), spectra="even"), "spectra", "spectrum"),
    (lambda: ImageClassification.load("digits", "mlp", Key(0), clinets=5), "clinets", "clients"),  # its own
    (lambda: ImageClassification.load("digits", "mlp", Key(0), bacth=5), "bacth", "batch"),  # the constructor's
    (lambda: TextClassification.load("a", "sst2", "b", Key(0), at_onec=1), "at_onec", "at_once"),
    (lambda: SSF(0.1, Coordinate(2), local_stps=1), "local_stps", "local_steps"),
]


@pytest.mark.parametrize(("call", "name", "meant"), [pytest.param(*case, id=case[1]) for case in MISSPELT])
def test_misspelt_arguments(call, name, meant):
    with pytest.raises(TypeError) as caught:
        call()
    complaint(caught, name)
    assert meant in str(caught.value)


def test_missing_arguments():
    with pytest.raises(TypeError, match="run: missing a required argument: 'rounds'"):
        run(PLAIN, quadratic())  # type: ignore[call-arg]


@pytest.mark.parametrize("version", ["second", "first"])
def test_memory_that_a_container_may_still_take(version, tmp_path, monkeypatch):
    """Its limit less what it uses, of which files' pages that lie idle can be had back."""
    monkeypatch.setattr(checks, "_CGROUPS", tmp_path)
    system = checks.free_bytes(torch.device("cpu"))
    folder = tmp_path if version == "second" else tmp_path / "memory"
    names = checks._CGROUP[0 if version == "second" else 1]
    folder.mkdir(exist_ok=True)
    (folder / "memory.stat").write_text("anon 5\ninactive_file 2000\nactive_file 7\n")
    for name, value in zip(names, ("10000\n", "9000\n")):
        (tmp_path / name).write_text(value)
    assert checks.free_bytes(torch.device("cpu")) == 3000
    (tmp_path / names[0]).write_text("max\n" if version == "second" else f"{2**63 - 4096}\n")
    assert checks.free_bytes(torch.device("cpu")) == pytest.approx(system, rel=0.5)
