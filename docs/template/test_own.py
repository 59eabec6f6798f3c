"""What every method must pass: it becomes a known one at an end, goes on after a kill, and counts what it sends."""

import torch
from own import LogCosh, ServerMomentum, offered

from fedtheory import FedAvg, Key, run

PROBLEM = offered(Key(0), "cpu", None)
METHOD = ServerMomentum(lr=0.1, local_steps=3, momentum=0.6)


def test_degenerates():
    """At momentum 0 it is FedAvg; at another momentum it is not."""
    fedavg = run(FedAvg(0.1, 3), PROBLEM, 20, sampled=4).x
    assert torch.equal(run(ServerMomentum(0.1, 3, 0.0), PROBLEM, 20, sampled=4).x, fedavg)
    assert not torch.equal(run(METHOD, PROBLEM, 20, sampled=4).x, fedavg)


def test_resumes(tmp_path):
    """Ten rounds, a checkpoint and ten more are twenty rounds."""
    whole = run(METHOD, PROBLEM, 20, sampled=4)
    run(METHOD, PROBLEM, 10, sampled=4, checkpoint=tmp_path)
    resumed = run(METHOD, PROBLEM, 20, sampled=4, checkpoint=tmp_path)
    assert torch.equal(resumed.x, whole.x)
    assert resumed.columns == whole.columns


def test_counts():
    """A model down and a change up for each client of each round, 8 bytes a number."""
    history = run(METHOD, PROBLEM, 20, sampled=4)
    assert history["up_bytes"][-1] == history["down_bytes"][-1] == 20 * 4 * PROBLEM.d * 8


def test_gradients():
    """The problem's gradients are its losses' differences."""
    y = torch.randn(PROBLEM.n, PROBLEM.d, generator=Key(1).generator(), dtype=torch.float64)
    xi, h = PROBLEM.full(PROBLEM.clients), 1e-6
    for j in range(PROBLEM.d):
        step = h * torch.eye(PROBLEM.d, dtype=torch.float64)[j]
        slope = (PROBLEM.losses(y + step, xi) - PROBLEM.losses(y - step, xi)) / (2 * h)
        torch.testing.assert_close(PROBLEM.grads(y, xi)[:, j], slope, rtol=1e-7, atol=1e-8)


def test_the_solution_is_one():
    """The gradient vanishes there, also where two clients lie far apart."""
    for problem in (PROBLEM, LogCosh(torch.tensor([[-1.0], [2.0]], dtype=torch.float64))):
        assert float(problem.grad(problem.constants.x_star).norm()) < 1e-10
