"""SSF (arXiv:2604.25467v1), Sections 4.1 to 4.3: Assumptions 2 and 3, and Lemma 1."""

import math
from dataclasses import replace

import torch

from fedtheory.algorithms.ssf import SSF
from fedtheory.core.loop import play_round
from fedtheory.theory.claim import Check, Claim, Outcome, worst_of
from fedtheory.theory.instances import Smooth, coordinate_frames, exact, fixed, haar_second_moment, plane_frames
from fedtheory.theory.search import ROUNDING, worst
from fedtheory.theory.ssf.attack import BENCH, edges, identical, refuted_each, with_units
from fedtheory.theory.ssf.hypotheses import A2, A3, INDEPENDENT, claim
from fedtheory.theory.ssf.lemma3 import eq32
from fedtheory.theory.ssf.round import ROOT, Instance, Round, admissible, dump, kept, play, tiny


def memory(q: Round) -> tuple[float, float, float]:
    """How far the noises of a client are from what is said of them, over the paths of its local iterates.

    Returns the largest |E[xi^k | path up to k]|, the largest |E <xi^j, xi^l>| (j < l), and the largest change of
    E[||xi^k||^2 | path up to k] between two pasts (zero for independent noises).
    """
    means, changes = 0.0, 0.0
    for m in range(len(q.P)):
        for i in range(q.at.N):
            for k in range(q.at.K):
                path = q.delta[m, i, :, : k + 1].flatten(1)
                sizes = []
                for row in path:
                    rows = ((path - row).abs().amax(-1) < 1e-12).nonzero()[:, 0]
                    weight = q.odds[rows] / q.odds[rows].sum()
                    means = max(means, float((weight @ q.xi[m, i, rows, k]).abs().max()))
                    sizes.append(float(weight @ (q.xi[m, i, rows, k] ** 2).sum(-1)))
                changes = max(changes, max(sizes) - min(sizes))
    gram = q.each(q.xi @ q.xi.mT)
    return means, float((gram - torch.diag_embed(gram.diagonal(dim1=-2, dim2=-1))).abs().max()), changes


def gated() -> Instance:
    """Fresh samples whose size depends on the point: noise s x, so y^1 and with it |xi^1| depends on xi^0."""
    return tiny(1.0, K=2, lr=0.25, x=0.5, u=1.0, gate=1.0)


def check_A2(effort: str) -> Outcome:
    """Fresh samples of state-dependent size, and one sample kept for K steps, which the body of Assumption 2 allows."""
    at, other = gated(), kept(2)
    (fresh, _, change), (mean, product, _) = memory(play(at)), memory(play(other))
    slack = admissible(at)
    admissible(other)
    data = {
        "instance": dump(at), "change of E[|xi^1|^2 | xi^0]": exact(change), "slacks": slack,
        "literal body: one sample kept": {
            "instance": dump(other), "E[xi^1 | F_(t,i,1)]": exact(mean), "E <xi^0, xi^1>": exact(product),
        },
    }  # fmt: skip
    said = (
        f"fresh samples of state-dependent size have mean zero given the past ({fresh:g}), but are not independent: "
        f"E[|xi^1|^2 | xi^0] varies by {change:g}. On the literal body of Assumption 2, which names clients only, one "
        f"sample may be kept for K = 2 steps: then |E[xi^1 | F]| = {mean:g}"
    )
    return Outcome(max(change, mean) < 1e-12, "exact", change, said, data)


def check_fresh(effort: str) -> Outcome:
    """Fresh samples: mean zero given the past and orthogonal, for noise of any state-dependent size."""
    worst, count = 0.0, 0
    for q in BENCH.rounds("fresh", edges(noisy=True) + edges(noisy=True, gated=True)):
        mean, product, _ = memory(q)
        over = float((q.each((q.xi**2).sum(-1)) - q.at.sigma2).max())
        worst, count = max(worst, mean, product, over), count + 1
    return Outcome(worst < 1e-10, "exact", worst, f"{count} instances, all scenarios: largest violation {worst:.1e}")


def check_biased(effort: str) -> Outcome:
    """Noise with a mean: Assumption 2 broken."""
    at = tiny(1.0, K=2, u=1.0)
    one = torch.ones(1, 2, dtype=torch.float64)
    at = replace(at, problem=at.problem.replace(scenarios=one, probability=torch.ones(1, dtype=torch.float64)))
    mean = memory(play(at))[0]
    return Outcome(mean < 1e-12, "exact", mean, f"E[xi | y] = {mean:g}")


def check_A3(skip: int = 0) -> Check:
    """P P^T = I and E[P^T P] = rho I: all coordinate subsets but `skip`, Haar by its moments, the plane."""

    def check(effort: str) -> Outcome:
        gap = 0.0
        for d in range(1, 6):
            for r in range(1, d + 1):
                frames = coordinate_frames(d, r)
                frames = frames[skip:] if len(frames) > skip else frames
                eye = torch.eye(d, dtype=torch.float64)
                gap = max(gap, float(((frames @ frames.mT).mean(0) - r / d * eye).abs().max()))
                gap = max(gap, float((frames.mT @ frames - eye[:r, :r]).abs().max()))
                gap = max(gap, abs(float(torch.einsum("ii->", haar_second_moment(eye, r))) - r))  # E[Pi I Pi] = E Pi
        plane = plane_frames(5)
        gap = max(gap, float(((plane @ plane.mT).mean(0) - torch.eye(2, dtype=torch.float64) / 2).abs().max()))
        subsets = f"all C(d, r) coordinate subsets{f' but {skip}' if skip else ''}"
        return Outcome(
            gap < 1e-12, "exact", gap, f"{subsets} for d <= 5, Haar moments, the plane by quadrature: gap {gap:.1e}"
        )

    return check


def check_kept_projector(effort: str) -> Outcome:
    """P_0 uniform over two axes and P_1 = P_0: Assumption 3 holds in each round, yet x^1 depends on P_1."""
    problem = Smooth(torch.ones(1, 2, dtype=torch.float64), torch.zeros(1, 2, dtype=torch.float64))
    x = torch.ones(2, dtype=torch.float64)
    inner, norm = [], []
    for frame in coordinate_frames(2, 1):
        algorithm = SSF(0.5, 1, fixed(frame))
        state = algorithm.init(problem, x, ROOT)
        G = problem.grad(play_round(algorithm, problem, state, problem.clients, ROOT)[0].server.x)
        inner.append(float((frame.T @ G).pow(2).sum()))
        norm.append(float(G @ G))
    left, right = sum(inner) / 2, 0.5 * sum(norm) / 2
    data = {"F": "|x|^2/2", "x^0": ["1", "1"], "eta_l": "1/2", "K": 1, "P_1": "P_0, uniform over the two axes",
            "E <G, P G> at t = 1": exact(left), "rho E |G|^2 at t = 1": exact(right)}  # fmt: skip
    said = f"P kept for two rounds: E <G_1, P G_1> = {left:g}, rho E |G_1|^2 = {right:g}"
    return Outcome(abs(left - right) < 1e-12, "exact", left / right, said, data)


def lemma1(q: Round) -> tuple[torch.Tensor, torch.Tensor]:
    """Parts 3 and 2 at y^0 = x^t: E|g|^2 and E|P xi|^2."""
    g, xi = (q.grad + q.xi)[..., 0, :], q.down(q.xi)[..., 0, :]
    right = (q.start**2).sum(-1) + q.at.sigma2
    return worst((q.each((g**2).sum(-1)), right), (q.each((xi**2).sum(-1)), q.at.sigma2.expand(q.at.N)))


def check_lemma1(noise: float) -> Check:
    """All four parts, with the noise variance at its bound, and P of norm 1 that keeps the noise whole."""

    def check(effort: str) -> Outcome:
        worst, d = 0.0, 3
        g = ROOT.fold("lemma1").generator()
        for _ in range(20 if effort == "quick" else 200):
            u = torch.randn(1, d, generator=g, dtype=torch.float64)
            problem = Smooth(torch.ones(1, d, dtype=torch.float64), u, noise=u).enumerated(1)
            x = torch.randn(1, 1, d, generator=g, dtype=torch.float64)
            exact_gradient = problem.grads(x, problem.full(problem.clients))
            sample = problem.draw(problem.clients, 1, ROOT)[0]
            gradient = exact_gradient + problem.at(x.expand(1, 2, d), sample)  # both scenarios, probability 1/2
            s2 = noise * (u**2).sum()
            v = gradient - exact_gradient
            P = torch.randn(d, 2, generator=g, dtype=torch.float64)
            P = torch.cat([P, u.T], 1)
            P = P / torch.linalg.matrix_norm(P, 2)
            line = (u / torch.linalg.vector_norm(u)).T  # P = u^T / ||u||: the noise is kept whole
            worst = max(
                worst,
                float(v.mean(1).abs().max()) * 1e9,
                float((v**2).sum(-1).mean() / s2),
                float((gradient**2).sum(-1).mean() / (exact_gradient**2).sum(-1).add(s2)),
                float(((v @ P) ** 2).sum(-1).mean() / s2),
                float(((v @ line) ** 2).sum(-1).mean() / s2),
            )
        return Outcome(
            worst <= 1 + ROUNDING, "exact", worst, f"worst of the four parts {worst:.6g} (both signs of the noise)"
        )

    return check


def check_informed(effort: str) -> Outcome:
    """(4) with P that depends on the noise: 0 or +-sqrt 2 with probabilities 1/2, 1/4, 1/4; P = 1 where it is not 0."""
    problem = Smooth(torch.ones(1, 1, dtype=torch.float64), torch.zeros(1, 1, dtype=torch.float64))
    problem = problem.replace(noise=torch.ones(1, 1, dtype=torch.float64))
    root = math.sqrt(2.0)
    problem = problem.enumerated(1, atoms=[(0.0, 0.5), (root, 0.25), (-root, 0.25)])
    v = problem.at(torch.zeros(1, 3, 1, dtype=torch.float64), problem.draw(problem.clients, 1, ROOT)[0])[0, :, 0]
    assert problem.probability is not None
    seen = problem.probability * (v != 0)
    value = float(seen @ v**2 / seen.sum())
    return Outcome(value <= 1 + ROUNDING, "exact", value, f"E[|P v|^2 | P = 1] = {value:g} where sigma^2 = 1")


CLAIMS: list[Claim] = [
    claim(
        "A2", "definition", assumes=(A2,),
        check=check_A2,
        control=check_biased,
        broken="noise with a mean",
        error="wrong independence",
        implies="Where the size of the noise depends on the point, as a minibatch gradient's does, the noises of "
        "successive steps are dependent; mean zero given the past is left, and enough for the proofs. The title of "
        "Assumption 2 speaks of samples, its body of clients only: on the literal body a client may keep one minibatch "
        "for all K steps; then averaging over local steps removes no noise, and sigma^2/(NK) is sigma^2/N everywhere.",
        repair="With samples drawn afresh at each local step, independently of the past and of P_t: E[xi^k | "
        "F_{t,i,k}] = 0, E[|xi^k|^2 | F_{t,i,k}] <= sigma^2, hence E <xi^j, xi^l> = 0. Independence does not follow "
        "(the law of the noise may depend on the point) and is not needed.",
        repaired=check_fresh,
    ),
    claim(
        "A3", "expectation", assumes=(A3,),
        check=worst_of(check_A3(), identical(lambda q: eq32(q)[1:], "A3", "E <G, P G> = rho |G|^2")),
        control=check_A3(1),
        broken="one of the subsets left out: E[P^T P] = rho I dropped",
        met="Algorithm 1 makes a new P_{t+1} for every round, from the common seed",
        caveat=f"{INDEPENDENT}. Assumption 3 fixes only the law of each P_k: one P drawn once and kept satisfies it",
        as_printed=check_kept_projector,
        implies="A refresh period above 1 (Sec. 3.6) meets Assumption 3 but not the lemmas: inside a kept subspace the "
        "gradient becomes orthogonal to it and progress stops, while Lemma 3 promises rho eta |grad F|^2/4.",
    ),
    claim(
        "lemma1", "inequality", assumes=(A2,),
        check=with_units(check_lemma1(1.0), lemma1),
        control=refuted_each(check_lemma1(0.99), check_informed),
        broken="sigma^2 lowered to 99/100; P depends on the noise",
    ),
]  # fmt: skip
