"""The round that the Coq proofs define is the round that trains: the same numbers on exact fractions. Needs no Coq.

Each method below is a Coq definition of `proofs/`, transcribed line by line. Its docstring is that definition.
"""

import inspect
import re
import sys
import textwrap
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from pathlib import Path

import pytest
import torch

from fedtheory import SSF, Coordinate, FedAvg, FedSub, Key, Quadratic, Scaffold, play_round
from fedtheory.core.simulate import sample_clients

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "proofs"))
import tie  # noqa: E402

N, d, r, K, ROUNDS = 3, 8, 2, 3, 10
ETA, ETAG = Fraction(1, 16), Fraction(3, 4)
BOUND = Fraction(1, 10**13)  # of the largest entry


class Vec(tuple):
    """Core.v's vec on d coordinates, with its notations."""

    def __add__(self, v):
        """Definition vadd (u v : vec) : vec := fun j => u j + v j."""
        return Vec(a + b for a, b in zip(self, v, strict=True))

    def __neg__(self):
        """Definition vopp (u : vec) : vec := fun j => - u j."""
        return Vec(-a for a in self)

    def __sub__(self, v):
        """Definition vsub (u v : vec) : vec := fun j => u j - v j."""
        return Vec(a - b for a, b in zip(self, v, strict=True))

    def __rmul__(self, a):
        """Definition vscal (a : R) (u : vec) : vec := fun j => a * u j."""
        return Vec(a * u for u in self)


v0 = Vec([Fraction(0)] * d)


def rsum(n, f):
    """Fixpoint sum (n : nat) (f : nat -> R) : R := match n with O => 0 | S m => sum m f + f m end."""
    return rsum(n - 1, f) + f(n - 1) if n else Fraction(0)


def vsum(n, f):
    """Definition vsum (n : nat) (f : nat -> vec) : vec := fun j => sum n (fun i => f i j)."""
    rows = [f(i) for i in range(n)]
    return Vec(rsum(n, lambda i, j=j: rows[i][j]) for j in range(d))


def compl(P, u):
    """Definition compl (P : vec -> vec) (u : vec) : vec := (u - P u)%V."""
    return u - P(u)


def pvsum(e, h):
    """Fixpoint pvsum (e : list Z -> Z -> vec) (h : list Z) : vec :=
    match h with [] => v0 | z :: h => (pvsum e h + e h z)%V end."""
    return pvsum(e, h[1:]) + e(h[1:], h[0]) if h else v0


def pick(v, A):
    """Definition pick (A : list nat) : vec := fold_right (fun i u => v i + u)%V v0 A."""
    return reduce(lambda u, i: v(i) + u, reversed(A), v0)


def coords(A, v):
    """Definition coords (A : list nat) (v : vec) : vec := fun j => if in_dec Nat.eq_dec j A then v j else 0."""
    return Vec(v[j] if j in A else Fraction(0) for j in range(d))


@dataclass(frozen=True)
class State:
    sx: Vec
    memory: tuple  # sci of Ssf, smem of Family, su of Fedsub
    sc: Vec = v0


@dataclass(frozen=True)
class Round:
    """What the Coq files leave free: gradients, map, steps, the clients of the round."""

    g: object
    P: object
    eta: Fraction = ETA
    etag: Fraction = ETAG


class Ssf(Round):
    def meanV(self, f):
        """Definition meanV (f : nat -> vec) : vec := (/ INR N *: vsum N f)%V."""
        return Fraction(1, N) * vsum(N, f)

    def loc(self, s, w, i, h):
        """Fixpoint loc (s : state) (w : O) (i : nat) (h : list noise) : vec :=
        match h with
        | [] => sx s
        | z :: h => (loc s w i h - eta *: P w (g i (loc s w i h) + z i - sci s i + sc s))%V
        end."""
        if not h:
            return s.sx
        z, y = h[0], self.loc(s, w, i, h[1:])
        return y - self.eta * self.P(w, self.g(i, y) + z[i] - s.memory[i] + s.sc)

    def gbar(self, s, w, i, h):
        """Definition gbar s w i h : vec :=
        (/ INR K *: pvsum (fun h (z : noise) => g i (loc s w i h) + z i)%V h)%V."""
        return Fraction(1, K) * pvsum(lambda h, z: self.g(i, self.loc(s, w, i, h)) + z[i], h)

    def step(self, s, A, w, h):
        """Definition step (s : state) (p : O * list noise) : state := let (w, h) := p in {|
        sx := (sx s + (etag / INR N) *: vsum N (fun i => loc s w i h - sx s))%V;
        sci := fun i => (compl (P w) (sci s i) + P w (gbar s w i h))%V;
        sc := (compl (P w) (sc s) + meanV (fun i => P w (gbar s w i h)))%V |}."""

        def P(v):
            return self.P(w, v)

        return State(
            s.sx + (self.etag / N) * vsum(N, lambda i: self.loc(s, w, i, h) - s.sx),
            tuple(compl(P, s.memory[i]) + P(self.gbar(s, w, i, h)) for i in range(N)),
            compl(P, s.sc) + self.meanV(lambda i: P(self.gbar(s, w, i, h))),
        )


class Family(Round):
    def ci(self, mem, i):
        return mem[i]

    def meanV(self, f):
        """Definition meanV (f : nat -> vec) : vec := (/ INR N *: vsum N f)%V."""
        return Fraction(1, N) * vsum(N, f)

    def cbar(self, s):
        """Definition cbar (s : state) : vec := meanV (ci (smem s))."""
        return self.meanV(lambda i: self.ci(s.memory, i))

    def loc(self, s, w, i, h):
        """Fixpoint loc (s : state) (w : O) (i : nat) (h : list noise) : vec :=
        match h with
        | [] => sx s
        | z :: h => (loc s w i h - eta *: P w (g i (loc s w i h) + z i - ci (smem s) i + cbar s))%V
        end."""
        if not h:
            return s.sx
        z, y = h[0], self.loc(s, w, i, h[1:])
        return y - self.eta * self.P(w, self.g(i, y) + z[i] - self.ci(s.memory, i) + self.cbar(s))

    def step(self, s, A, w, h):
        """Definition step (s : state) (p : draws) : state := let '(A, (w, h)) := p in {|
        sx := (sx s + (etag / INR Sn) *: pick (fun i => loc s w i h - sx s)%V A)%V;
        smem := upd s A w h |}."""
        change = pick(lambda i: self.loc(s, w, i, h) - s.sx, A)
        return State(s.sx + (self.etag / len(A)) * change, self.upd(s, A, w, h))

    def upd(self, s, A, w, h):
        """No memory: c_i = 0."""
        return s.memory


class Kept(Family):
    def Q(self, w, v):
        return v  # in full

    def gbar(self, s, w, i, h):
        """Definition gbar s w i h : vec :=
        (/ INR K *: pvsum (fun h (z : noise) => g i (loc s w i h) + z i)%V h)%V."""
        return Fraction(1, K) * pvsum(lambda h, z: self.g(i, self.loc(s, w, i, h)) + z[i], h)

    def upd(self, s, A, w, h):
        """Hypothesis kept : forall s A w h i, (i < N)%nat -> ci (upd s A w h) i =
        if in_dec Nat.eq_dec i A then (ci (smem s) i - Q w (ci (smem s) i) + Q w (gbar s w i h))%V
        else ci (smem s) i."""
        c, Q = s.memory, lambda v: self.Q(w, v)
        return tuple(c[i] - Q(c[i]) + Q(self.gbar(s, w, i, h)) if i in A else c[i] for i in range(N))


class Fedsub(Round):
    def ratio(self, j):
        return Fraction(r, d)  # one layer

    def Ri(self, v):
        """Definition Ri (v : vec) : vec := fun j => / ratio j * v j."""
        return Vec(1 / self.ratio(j) * v[j] for j in range(d))

    def t_(self):
        """Definition t_ : R := eta * INR tau."""
        return self.eta * K

    def meanV(self, f):
        """Definition meanV (h : nat -> vec) : vec := (/ INR n *: vsum n h)%V."""
        return Fraction(1, N) * vsum(N, f)

    def z(self, s, w, i, k):
        """Fixpoint z (s : state) w i k : vec := match k with 0%nat => v0
        | S k => (z s w i k - eta *: Pi w (g i (sx s + z s w i k) + Ri (su s i)))%V end."""
        if k == 0:
            return v0
        z = self.z(s, w, i, k - 1)
        return z - self.eta * self.P(w, self.g(i, s.sx + z) + self.Ri(s.memory[i]))

    def a(self, s, w, i):
        """Definition a s w i : vec := (/ INR tau *: vsum tau (fun k => g i (sx s + z s w i k)))%V."""
        return Fraction(1, K) * vsum(K, lambda k: self.g(i, s.sx + self.z(s, w, i, k)))

    def step(self, s, A, w, h):
        """Definition step (s : state) w : state :=
        {| sx := (sx s - t_ *: Pi w (meanV (a s w)))%V; su := fun i => (- Pi w (a s w i - meanV (a s w)))%V |}."""
        mean = self.meanV(lambda i: self.a(s, w, i))
        return State(s.sx - self.t_() * self.P(w, mean), tuple(-self.P(w, self.a(s, w, i) - mean) for i in range(N)))


TRANSCRIBED = {
    "Core": (Vec, rsum, vsum, compl),
    "Noise": (pvsum,),
    "Sampling": (pick,),
    "Instance": (coords,),
    "Ssf": (Ssf,),
    "Family": (Family, Kept),
    "Fedsub": (Fedsub,),
}


def changed(proofs: Path) -> list[str]:
    """Return one line for every transcribed definition that the Coq sources do not have as it stands here."""
    said = []
    for module, parts in TRANSCRIBED.items():
        text = "".join(tie.without_comments((proofs / f"{module}.v").read_text()).split())
        for part in parts:
            for one in vars(part).values() if isinstance(part, type) else [part]:
                definition = getattr(one, "__doc__", None) or ""
                if re.match("Definition|Fixpoint|Hypothesis", definition) and "".join(definition.split()) not in text:
                    said.append(f"{module}.v: review again, this changed: {definition}")
    return said


def full(w, v):
    return v


def nothing(state, s, plays):
    return []


def controls(state, s, plays):
    return [*zip(state.own.c, s.memory), (state.server.c, s.sc if isinstance(plays, Ssf) else plays.cbar(s))]


def duals(state, s, plays):
    """Lambda_i = t P^T u_i with the next round's P: step 1.2 of FedSub's page."""
    P = state.server.P.value
    columns = [(j, Fraction(weight)) for j, weight in zip(P.index.tolist(), P.weight.tolist())]
    return [(dual, [plays.t_() * a * u[j] for j, a in columns]) for dual, u in zip(state.own.dual, s.memory)]


@dataclass(frozen=True)
class Case:
    """A method, its Coq round and map, its memories, the clients of a round, and a wrong term for the control."""

    method: object
    coq: type
    P: object
    memories: object
    sampled: int
    at: str
    right: str
    wrong: str


eta, etag = float(ETA), float(ETAG)
CASES = {
    "FedAvg": Case(FedAvg(eta, K, etag), Family, full, nothing, 2, "step", "self.etag / len(A)", "self.etag / N"),
    "SCAFFOLD": Case(Scaffold(eta, K, etag), Kept, full, controls, 2, "upd", "c[i] - Q(c[i])", "c[i] + Q(c[i])"),
    "SSF": Case(
        SSF(eta, K, Coordinate(r, "orthonormal"), etag), Ssf, coords, controls, N, "step", "compl(P, s.sc)", "s.sc"
    ),
    "FedSub": Case(FedSub(eta, K, Coordinate(r)), Fedsub, coords, duals, N, "step", "tuple(-self.P", "tuple(self.P"),
    "FedAvg-CD": Case(
        FedSub(eta, K, Coordinate(r), dual=False), Family, coords, nothing, 2, "loc", "y - self.eta", "y + self.eta"
    ),
}


def exact(rows: list) -> tuple:
    """The fractions that the floats are."""
    return tuple(map(exact, rows)) if isinstance(rows[0], list) else Vec(map(Fraction, rows))


def quadratic(noisy: bool) -> Quadratic:
    """Symmetric matrices, centres and noise, all multiples of 1/32."""
    g = Key(1).generator()
    A, b, noise = (torch.randint(-8, 9, (N, *size), generator=g).double() / 16 for size in ((d, d), (d,), (d,)))
    H = (A + A.mT) / 2 + 2 * torch.eye(d, dtype=torch.float64)
    return Quadratic(H, b, noise=noise if noisy else None)


def off(found: torch.Tensor, true) -> Fraction:
    """The largest difference over the largest entry."""
    gap = max(abs(Fraction(a) - b) for a, b in zip(found.tolist(), true, strict=True))
    return gap / max(map(abs, true)) if gap else gap


def gap(case: Case, coq: type, rounds: int = ROUNDS) -> Fraction:
    """The largest relative difference between training and the Coq round, in the model and in all memories."""
    noisy = not issubclass(coq, Fedsub)  # FedSub's page has full gradients
    problem, key, worst = quadratic(noisy), Key(2), Fraction(0)
    H, b = exact(problem.H.tolist()), exact(problem.b.tolist())

    def g(i, y):
        return Vec(sum(a * u for a, u in zip(row, y - b[i])) for row in H[i])

    x = torch.arange(d, dtype=torch.float64) / 8
    state, s = case.method.init(problem, x, key), State(exact(x.tolist()), (v0,) * N)
    plays = coq(g, case.P, etag=Fraction(getattr(case.method, "server_lr", 1)))
    for t in range(rounds):
        turn = key.fold("round", t)
        clients = sample_clients(N, case.sampled, turn.fold("clients"))
        w = None if case.P is full else state.server.P.value.index.tolist()
        drawn = problem.draw(torch.arange(N), K, turn.fold("xi")) if noisy else []
        h = [exact(xi.noise.tolist()) for xi in reversed(drawn)]  # the last step first
        state, _, _ = play_round(case.method, problem, state, clients, turn)
        s = plays.step(s, clients.tolist(), w, h)
        pairs = [(state.server.x, s.sx), *case.memories(state, s, plays)]
        worst = max(worst, *(off(found, true) for found, true in pairs))
    return worst


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_training_plays_the_round_of_the_proofs(case):
    assert gap(case, case.coq) <= BOUND


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_wrong_term_is_refused(case):
    source = textwrap.dedent(inspect.getsource(getattr(case.coq, case.at)))
    assert source.count(case.right) == 1
    exec(source.replace(case.right, case.wrong), globals(), made := {})
    assert gap(case, type("Wrong", (case.coq,), made), rounds=3) > 10**9 * BOUND


def test_the_transcription_is_of_the_coq_sources(tmp_path):
    assert changed(ROOT / "proofs") == []
    for module in TRANSCRIBED:
        text = (ROOT / "proofs" / f"{module}.v").read_text()
        (tmp_path / f"{module}.v").write_text(text.replace("+ sc s))%V", "- sc s))%V"))
    assert [line[:42] for line in changed(tmp_path)] == ["Ssf.v: review again, this changed: Fixpoin"]
