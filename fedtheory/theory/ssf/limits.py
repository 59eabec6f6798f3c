"""What no method in a subspace can beat: docs/theory/limits.md, by the code that trains. Not in the paper."""

import itertools
from collections.abc import Callable

import torch

from fedtheory.algorithms.fedsub import FedSub
from fedtheory.algorithms.ssf import SSF
from fedtheory.core.algorithm import Algorithm
from fedtheory.core.key import Key
from fedtheory.core.loop import play_round
from fedtheory.core.problem import Problem
from fedtheory.maps.subspace import Projection
from fedtheory.problems.quadratic import Quadratic
from fedtheory.running.simulate import run
from fedtheory.theory.claim import Check, Claim, Outcome
from fedtheory.theory.instances import Smooth, coordinate_frames, fixed, orthogonal
from fedtheory.theory.limits.chain import Chain
from fedtheory.theory.ssf.hypotheses import A3, claim

DOUBLE = torch.float64
ROOT = Key(52)


def bowl(H: torch.Tensor) -> Quadratic:
    """<x, H x>/2."""
    return Quadratic(H[None], torch.zeros(1, len(H), dtype=DOUBLE))


def ends(method: Callable[[Projection], Algorithm], frames: torch.Tensor, x: torch.Tensor, problem: Problem):
    """x^+ for every frame."""
    return torch.stack([run(method(fixed(frame)), problem, 1, x0=x, metrics=()).x for frame in frames])


def check_average(follows: bool) -> Check:
    """E|x^+|^2 >= (1 - rho)|x|^2, with equality at the full step. `follows`: the subspace has x in it."""

    def check(effort: str) -> Outcome:
        x, turn = torch.tensor([3.0, -1.0, 0.2], dtype=DOUBLE), torch.tensor([0.3, -1.1, 0.7], dtype=DOUBLE)
        ratios, gap = [], 0.0
        for r, K, share in itertools.product((1, 2), (1, 3), (0.3, 1.0, 1.7)):
            frames = coordinate_frames(3, r, rotation=orthogonal(turn, 3))
            if follows:
                frames = torch.linalg.qr(torch.cat([x[:, None], frames[0]], 1))[0][None, :, :r]
            least = (1 - r / 3) * float(x @ x)
            for method in (
                lambda law, lr=share / K, K=K: SSF(lr, K, law, 1.3),
                lambda law, lr=share / K, K=K: FedSub(lr, K, law, dual=False),
            ):
                ratios.append(
                    float(ends(method, frames, x, bowl(torch.eye(3, dtype=DOUBLE))).square().sum(-1).mean()) / least
                )
            full = ends(lambda law: FedSub(1.0, 1, law, dual=False), frames, x, bowl(torch.eye(3, dtype=DOUBLE)))
            gap = max(gap, abs(float(full.square().sum(-1).mean()) / least - 1))
        tried = f"{len(ratios)} methods, steps and subspaces"
        said = f"{tried}: at least {min(ratios):.4g} of the limit; full steps off by {gap:.1e}"
        holds = min(ratios) >= 1 - 1e-12 and gap < 1e-12
        return Outcome(
            holds, "exact", gap if holds else None, said, None if holds else {"ratio": min(ratios), "gap": gap}
        )

    return check


def walked(frames: list[torch.Tensor], clients: int, seed: int) -> list[tuple[int, int, float]]:
    """The front before and after every round of SSF on the chain, K = 3, and |grad F| there."""
    M, problem, front, found = len(frames[0]), Chain(len(frames[0]), clients), 0, []
    made = [SSF(0.9, 3, fixed(frame)) for frame in frames]
    state = made[0].init(problem, torch.zeros(M, dtype=DOUBLE), ROOT)
    for t in range(len(frames) - 1):  # a server draws the next round's subspace
        state, _, _ = play_round(made[t + 1], problem, state, problem.clients, Key(seed).fold("round", t))
        x = state.server.x
        before, front = front, int(x.nonzero().max()) + 1 if x.any() else 0
        found.append((before, front, float(problem.grads(x.expand(clients, -1), problem.clients).mean(0).norm())))
    return found


def check_masks(masks: bool) -> Check:
    """The front moves through kept coordinates only, and |grad F| >= 1 before the end. `masks`: else Haar frames."""

    def check(effort: str) -> Outcome:
        M, r, broken, rounds = 12, 8, 0, 0
        for clients, seed in itertools.product((1, 2), range(2 if effort == "quick" else 6)):
            g = ROOT.fold("masks", clients, seed).generator()
            kept = [torch.randperm(M, generator=g)[:r] for _ in range(13)]
            free, eye = torch.randn(13, M, r, generator=g, dtype=DOUBLE), torch.eye(M, dtype=DOUBLE)
            frames = [eye[:, rows] if masks else torch.linalg.qr(any_)[0] for rows, any_ in zip(kept, free)]
            for rows, (before, front, slope) in zip(kept, walked(frames, clients, seed)):
                run_of = next((j for j in range(before, M) if j not in rows.tolist()), M) - before
                rounds, most = rounds + 1, before + min(run_of, 3 if clients == 1 else 2)
                broken += front > most or (front < M and slope < 1 - 1e-12)
        said = f"{broken} of {rounds} rounds of SSF go further, or have a smaller slope"
        return Outcome(broken == 0, "run", None, said, None if broken == 0 else {"rounds": broken})

    return check


def check_ramp(longer: float) -> Check:
    """The slope is g = 1 at all iterates of a ramp that is long enough for steps h. `longer`: steps made, over h."""

    def check(effort: str) -> Outcome:
        h, T, e = 0.25, 4, torch.tensor([1.0, 0.0], dtype=DOUBLE)
        problem, least = Smooth(e[None], 0 * e[None], shape="huber"), 1.0  # slope 1 from 1 on
        for lr, K in ((longer * h, 1), (longer * h / 3, 3)):
            for frames in itertools.product(coordinate_frames(2, 1), repeat=T - 1):
                x = (1 + h * (T - 1)) * e
                for frame in frames:
                    x = run(FedSub(lr, K, fixed(frame), dual=False), problem, 1, x0=x, metrics=()).x
                least = min(least, float(problem.gradients(x)[0, 0]))
        said = f"all sequences of {T - 1} subspaces: the slope stays at least {least:g}"
        return Outcome(least >= 1, "exact", None, said, None if least >= 1 else {"slope": least})

    return check


def check_curvature(share: float) -> Check:
    """E F(x^+) <= F(x) - rho/(2 L omega)|grad F|^2 at the step 1/(L omega), omega = `share` omega_H."""

    def check(effort: str) -> Outcome:
        worst, tried = 0.0, 0
        for seed in range(3 if effort == "quick" else 20):
            g = ROOT.fold("curvature", seed).generator()
            turn, top = torch.randn(2, 3, generator=g, dtype=DOUBLE), torch.rand(3, generator=g, dtype=DOUBLE)
            for r, values in itertools.product((1, 2), (top, top.sign() * torch.tensor([1.0, 0.0, 0.0], dtype=DOUBLE))):
                Q = orthogonal(turn[0], 3)
                H, frames = Q @ torch.diag(values) @ Q.mT, coordinate_frames(3, r, rotation=orthogonal(turn[1], 3))
                H, L, rho = (H + H.mT) / 2, float(values.max()), r / 3
                P = frames @ frames.mT
                omega = share * float(torch.linalg.eigvalsh((P @ H @ P).mean(0))[-1]) / (rho * L)
                x = torch.linalg.eigh((P @ H @ P).mean(0))[1][:, -1]
                problem = bowl(H)
                after = ends(lambda law, lr=1 / (L * omega): FedSub(lr, 1, law, dual=False), frames, x, problem)
                fall = rho / (2 * L * omega) * float(problem.grad(x).square().sum())
                left = sum(float(problem.loss(y)) for y in after) / len(after) + fall
                worst, tried = max(worst, left / float(problem.loss(x))), tried + 1
        said = f"{tried} quadratics and laws of subspaces: left side at most {worst:.4g} of the right"
        return Outcome(worst <= 1 + 1e-12, "exact", worst, said, None if worst <= 1 + 1e-12 else {"ratio": worst})

    return check


CLAIMS: list[Claim] = [
    claim(
        "limits_average", "inequality", assumes=(A3,), check=check_average(False), control=check_average(True),
        broken="the subspace follows the model",
        implies="No memory, local steps or knowledge of F make up for a random subspace in the average gradient.",
    ),
    claim(
        "limits_masks", "inequality", check=check_masks(True), control=check_masks(False),
        broken="Haar projectors for masks",
        implies="For random coordinates the best iterate pays d/r, too; for rotated subspaces that is open.",
    ),
    claim(
        "limits_steps", "inequality", assumes=(A3,), check=check_ramp(1.0), control=check_ramp(2.0),
        broken="steps twice as long",
        implies="A better bound for the best iterate needs steps that change.",
    ),
    claim(
        "limits_curvature", "inequality", check=check_curvature(1.0), control=check_curvature(0.8),
        broken="8/10 of omega_H",
        implies="Rotate the subspace and set the step by the curvature seen in it.",
    ),
]  # fmt: skip
