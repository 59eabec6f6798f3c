"""A run in halves that know each other through bytes alone: the bits and the counts of `run`, and what is refused.

Every parcel goes through JSON and a copy of its bytes, so that no object is shared on the way. The reference is
`run(..., blocks=problem.n)`: a client computes its own lines alone.
"""

import json
import pickle
import random
import re
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import torch
from cases import ALGORITHMS, ETA, K, quadratic, regression, start
from each import each
from test_networks import problem as images

import fedtheory
from fedtheory import (
    MOON,
    SSF,
    Coordinate,
    DeComFL,
    FedAvg,
    FedDC,
    FedGen,
    FedKSeed,
    FedMUD,
    FedNTD,
    FedProx,
    FedSub,
    Key,
    MatrixRegression,
    MeZO,
    PrivateUploads,
    Scaffold,
    Spherical,
    Steps,
    Supervised,
    run,
)
from fedtheory.algorithms import fedavg
from fedtheory.algorithms.readings.decomfl import DeComFLReading
from fedtheory.algorithms.readings.fedsub import FedSubReading
from fedtheory.core import registry
from fedtheory.core.loop import _drop_clients
from fedtheory.core.message import Known
from fedtheory.federation.codec import Parcel, Reader, Vocabulary, Writer
from fedtheory.federation.halves import ClientHalf, ServerHalf
from fedtheory.maps.decomposition import LowRank

NETWORKED = {
    "MOON": MOON(0.1, 2, 1.0),
    "FedNTD": FedNTD(0.1, 2),
    "FedGen": FedGen(0.1, 2, server_steps=3, generated=4, noise=4, hidden=5),
}
REFUSED = {  # and why they are not carried
    "MeZO": (MeZO(ETA), "Alone", "Known"),  # client and server are one machine: nothing crosses
    "FedMUD at once": (FedMUD(ETA, K, LowRank(0.5, 1.0, layers="all"), absent="at once"), "FedMUD", "Everyone"),
    "FedSub stepped": (FedSubReading(ETA, K, Spherical(2), absent="step"), "FedSub", "Resent"),
    "DeComFL, other P": (
        DeComFLReading(ETA, K, 3, seeds="derived", schedule=((2, ETA, 4),)),
        "DeComFL",
        "made in every round as in the first one",
    ),
}
SHORT = {  # whose steps are so small that the model seldom is smaller
    "DeComFL-short": DeComFL(ETA, 1, 1, 0.5),
    "DeComFL-momentum": DeComFL(ETA, 2, 1, 0.5, 0.5),
    "DeComFL-derived": DeComFLReading(0.5 * ETA, 3, 1, 0.5, seeds="derived", average=False),
    "DeComFL-phases": DeComFLReading(ETA, 1, 1, 0.5, 0.3, known_start=False, schedule=((3, 0.5 * ETA, 2),)),
    "DeComFL-secret": DeComFLReading(ETA, 2, 2, 0.5, secret=7),
}
CARRIED = {name: one for name, one in ALGORITHMS.items() if "stepped" not in name and name != "FedMUD kept"} | SHORT
SEVERAL = [*SHORT, "SSF", "FLSS", "STC", "FedBAT", "FedSub SS"]  # of these, several steps are sent at once


def carried(parcel):
    """As it arrives: metadata as text, data as a copy."""
    return Parcel(parcel.round, parcel.kind, json.loads(json.dumps(parcel.metadata)), bytes(parcel.data))


def steps_in(node):
    """The most steps that a part of a message brings."""
    inside = node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
    here = len(node["steps"]) if isinstance(node, dict) and "rounds" in node else 0
    return max([here, *map(steps_in, inside)])


class Federation:
    """A server and its clients."""

    def __init__(self, algorithm, problem, *, sampled=None, fresh=False, **options):
        self.given = algorithm, problem, options
        self.server = ServerHalf(algorithm, problem, sampled=sampled, **options)
        self.clients = {i: ClientHalf(algorithm, problem, i, **options) for i in range(problem.n)}
        self.payloads, self.fresh, self.most = [(0, 0)], fresh, 0

    def reborn(self, i):
        """A client goes on in another process."""
        algorithm, problem, options = self.given
        other = ClientHalf(algorithm, problem, i, **options)
        other.restore(carried(self.clients[i].state()))
        self.clients[i] = other

    def round(self, dropped=(), change=lambda i, parcel: parcel, deaf=()):
        uploads, parcels = {}, self.server.open()
        self.most = max(self.most, *(steps_in(parcel.metadata) for parcel in parcels.values()), 0)
        dropped = dropped(list(parcels)) if callable(dropped) else dropped
        for i, parcel in parcels.items():
            if self.fresh:
                self.reborn(i)
            upload = self.clients[i].play(carried(parcel))
            if i not in dropped:
                uploads[i] = change(i, carried(upload))
        replies = self.server.close(uploads)
        for i, parcel in replies.items():
            if self.fresh:
                self.reborn(i)
            if i not in deaf:
                self.clients[i].hear(carried(parcel))
        self.payloads.append(self.server.payload)
        return replies

    @property
    def x(self):
        return self.server.state.server.x


def played(algorithm, problem, rounds, **options):
    federation = Federation(algorithm, problem, **options)
    for _ in range(rounds):
        federation.round()
    return federation


def same(federation, history):
    """The bits of the model, and the bytes of every round: of the parcels, and as they are counted."""
    assert torch.equal(federation.x, history.x)
    assert [up for up, _ in federation.payloads] == history["up_bytes"]
    assert [down for _, down in federation.payloads] == history["down_bytes"]
    traffic = federation.server.traffic
    assert (traffic.up.scalars, traffic.down.scalars) == (history["up_scalars"][-1], history["down_scalars"][-1])
    assert (traffic.up.bytes, traffic.down.bytes) == federation.server.payload


def small(name, dtype):
    return quadratic(6, dtype=dtype) if name.startswith("FlexLoRA") else regression(6, dtype=dtype)


LONG = ("FedSub", "SSF", "FedMUD", "FLSS", "DeComFL", "STC", "EF21-P", "FetchSGD", "FedBAT", "Projected", "FlexLoRA")
MATTERS = [name for name in CARRIED if name.startswith(LONG)]  # for these it matters how long a client was away


def matrix():
    """Every method once, those in SEVERAL also without absences; the others of the matrix are marked full."""
    rows = [(name, 3, dtype) for name in CARRIED for dtype in (torch.float64, torch.float32)]
    rows += [(name, 1, torch.float32) for name in MATTERS] + [(name, 6, torch.float64) for name in MATTERS]
    for name, sampled, dtype in rows:
        short = dtype == torch.float64 and (sampled == 3 or name in SEVERAL)
        word = f"{name.replace(' ', '_')}-{sampled}-{str(dtype)[6:]}"
        yield pytest.param(name, sampled, dtype, id=word, marks=() if short else pytest.mark.full)


@pytest.mark.parametrize(("name", "sampled", "dtype"), list(matrix()))
def test_the_bits_and_the_bytes_of_a_run(name, sampled, dtype):
    """With absences of many rounds, and with none."""
    problem, T = small(name, dtype), 20 if sampled == 1 else 9 if name in MATTERS else 5
    x0 = start(problem)
    federation = Federation(CARRIED[name], problem, sampled=sampled, x0=x0)
    for _ in range(T):
        federation.round()
        assert federation.server.refused == {}
    same(federation, run(CARRIED[name], problem, T, sampled=sampled, blocks=problem.n, x0=x0))
    assert not torch.equal(federation.x, x0)
    assert federation.most >= 2 or name not in SEVERAL or sampled != 3


@pytest.mark.parametrize("name", NETWORKED)
def test_the_bits_and_the_bytes_of_a_run_with_networks(name):
    problem, T = images(), 5
    federation = Federation(NETWORKED[name], problem, sampled=2)
    for _ in range(T):
        federation.round()
    same(federation, run(NETWORKED[name], problem, T, sampled=2, blocks=problem.n, metrics=("loss",)))


def test_every_registered_method_is_carried_or_named():
    """A method that is new stands in `cases.ALGORITHMS`, or above with the reason why it is refused."""
    known = {type(one) for one in (*CARRIED.values(), *NETWORKED.values())} | {MeZO}
    modules = {type.__module__ for type in known}
    assert {method.make.__module__ for method in registry.methods().values()} <= modules


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_carried_is_refused_in_one_line(name):
    algorithm, *words = REFUSED[name]
    problem = quadratic(1 if name == "MeZO" else 6)
    with pytest.raises((TypeError, ValueError)) as told:
        played(algorithm, problem, 4)
    assert "\n" not in str(told.value)
    assert words[-1] in str(told.value)


@dataclass(frozen=True)
class Whispered:
    x: Known


class Whispers(FedAvg):
    """It says of its model that both sides know it, and sends nothing."""

    def broadcast(self, server, key):
        return Whispered(Known(server.x))

    def client(self, problem, clients, own, down, key):
        return (yield from super().client(problem, clients, own, fedavg.Down(down.x.value), key))


def test_what_is_said_to_be_known_must_have_been_known():
    """Round 0 begins at x0, which both sides know; a model that moved is none of that."""
    problem = quadratic(6)
    assert run(Whispers(ETA, K), problem, 2)["down_bytes"] == [0, 0, 0]
    federation = Federation(Whispers(ETA, K), problem)
    federation.round()
    with pytest.raises(ValueError, match="knew before the first round"):
        federation.round()


@pytest.mark.parametrize("form", ["printed", "sums"])
def test_a_dual_that_is_turned_alone(form):
    """All duals turned by one product may have other last bits than a row alone; here the products are large."""
    problem, algorithm = MatrixRegression.ssf(het=0.5, key=Key(0)), FedSub(0.01, 5, Spherical(20), form=form)
    federation = played(algorithm, problem, 8, sampled=10)
    assert torch.equal(federation.x, run(algorithm, problem, 8, sampled=10, blocks=problem.n).x)


@pytest.mark.parametrize(
    "name", ["FedSub SS", "FedSub decay", "SSF", "DeComFL-short", "FLSS", "FedMUD", "STC", "FedCOMGATE"]
)
def test_a_schedule_is_known_to_both(name):
    problem, plan = regression(6), Steps(2, 0.7)
    federation = Federation(CARRIED[name], problem, sampled=3, schedule=plan)
    for _ in range(10):
        federation.round()
    same(federation, run(CARRIED[name], problem, 10, sampled=3, blocks=problem.n, schedule=plan))


FALLEN = ["SCAFFOLD II all", "FedSub SS", "SSF", "FedMUD", "FLSS", "DeComFL-short", "LBGM", "STC", "FedCOMGATE"]


def fallen(ids, key):
    return _drop_clients(ids, 0.4, key)


@pytest.mark.parametrize("name", FALLEN)
def test_uploads_that_are_lost_leave_no_trace(name):
    """The run's own dropout: who falls silent has played, and forgets it when it is told."""
    problem, T = regression(6), 16
    federation, root = Federation(CARRIED[name], problem, sampled=4), Key(0)
    for t in range(T):
        federation.round(dropped=lambda ids, t=t: fallen(ids, root.fold("round", t).fold("dropout")))
    same(federation, run(CARRIED[name], problem, T, sampled=4, blocks=problem.n, dropout=0.4))


@pytest.mark.parametrize(
    "name", [*FALLEN, "FedSub decay", "DeComFL central", "FLSS layers", "ProjectedFedAvg", "SSF I"]
)
def test_a_client_goes_on_in_another_process(name):
    """All that it holds is in its state: every client is made anew before each thing that it does."""
    problem = regression(6)
    federation = Federation(CARRIED[name], problem, sampled=3, fresh=True)
    for _ in range(9):
        federation.round()
    same(federation, run(CARRIED[name], problem, 9, sampled=3, blocks=problem.n))


# What is refused


class Bomb:
    """Unpickled, it would say so."""

    went_off = False

    def __reduce__(self):
        return (setattr, (Bomb, "went_off", True))


def at(tree, *path):
    for name in path:
        tree = tree[name]
    return tree


def changed(parcel, *path, to):
    """With another value in its metadata."""
    other = carried(parcel)
    at(other.metadata, *path[:-1])[path[-1]] = to
    return other


def numbers(parcel, value, dtype=torch.float64):
    """With another first entry."""
    first = torch.tensor([value], dtype=dtype).numpy().tobytes()
    return replace(parcel, data=first + parcel.data[len(first) :])


def deep(parcel):
    node = None
    for _ in range(500):
        node = {"tuple": [node]}
    return changed(parcel, "message", to=node)


DY = ("message", "fields", "dy")
DAMAGE = {
    "a pickle": lambda p: replace(p, data=pickle.dumps(Bomb())),
    "a pickle in the metadata": lambda p: changed(p, "message", to=pickle.dumps(Bomb()).decode("latin1")),
    "nothing": lambda p: replace(p, data=b""),
    "a byte too few": lambda p: replace(p, data=p.data[:-1]),
    "a byte too many": lambda p: replace(p, data=p.data + b"0"),
    "a huge shape": lambda p: changed(p, *DY, to={"float64": [1, 2**62]}),
    "a huge shape of nothing": lambda p: changed(p, *DY, to={"float64": [0, 2**62]}),
    "axes of nothing": lambda p: changed(p, *DY, to={"float64": [0] + 7 * [10**6]}),
    "many axes": lambda p: changed(p, *DY, to={"float64": [1] * 60}),
    "a negative shape": lambda p: changed(p, *DY, to={"float64": [-1, -12]}),
    "a shape of texts": lambda p: changed(p, *DY, to={"float64": ["1", "12"]}),
    "another shape": lambda p: changed(p, *DY, to={"float64": [12, 1]}),
    "a half of it": lambda p: replace(changed(p, *DY, to={"float64": [1, 6]}), data=p.data[:48]),
    "another type of the same size": lambda p: numbers(changed(p, *DY, to={"int64": [1, 12]}), 3),
    "half the precision": lambda p: replace(changed(p, *DY, to={"float32": [1, 12]}), data=bytes(48)),
    "no type": lambda p: changed(p, *DY, to={"object": [1, 12]}),
    "an order of other axes": lambda p: changed(p, *DY, to={"float64": [1, 12], "order": [0, 2]}),
    "NaN": lambda p: numbers(p, float("nan")),
    "infinity": lambda p: numbers(p, float("-inf")),
    "another class": lambda p: changed(p, "message", "class", to="Popen"),
    "the method itself": lambda p: changed(p, "message", "class", to="FedAvg"),
    "a message down": lambda p: changed(p, "message", to={"class": "Down", "fields": {"x": {"float64": [12]}}}),
    "no class": lambda p: changed(p, "message", "class", to=7),
    "other fields": lambda p: changed(p, "message", "fields", to={"dx": {"float64": [1, 12]}}),
    "fields in a list": lambda p: changed(p, "message", "fields", to=[1]),
    "what both know": lambda p: replace(changed(p, *DY, to="known"), data=b""),
    "what it holds": lambda p: replace(changed(p, *DY, to="held"), data=b""),
    "steps": lambda p: changed(p, *DY, to={"class": "Replay", "rounds": [1], "steps": [None]}),
    "a seed": lambda p: replace(changed(p, *DY, to={"seed": ["P"]}), data=bytes(8)),
    "a number": lambda p: replace(changed(p, *DY, to={"number": "float"}), data=bytes(8)),
    "a number of no kind": lambda p: changed(p, *DY, to={"number": []}),
    "a list": lambda p: changed(p, "message", to=[1, 2]),
    "no message": lambda p: replace(p, metadata={}),
    "no metadata": lambda p: replace(p, metadata=[1]),
    "500 deep": deep,
    "another kind": lambda p: replace(p, kind="down"),
    "the last round's": lambda p: replace(p, round=p.round - 1),
    "a round to come": lambda p: replace(p, round=p.round + 1),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_bad_upload_is_refused_and_the_federation_goes_on(damage, caplog):
    """One line in the log, with client and round; the model is that of the run in which that client fell silent."""
    problem, algorithm, T = quadratic(6), FedAvg(ETA, K), 5
    federation, silent = Federation(algorithm, problem, sampled=4), Federation(algorithm, problem, sampled=4)
    for t in range(T):
        bad = list(federation.server.open())[1]
        caplog.clear()
        federation.round(change=lambda i, p, bad=bad: DAMAGE[damage](p) if i == bad else p)
        silent.round(dropped=[bad])
        assert list(federation.server.refused) == [bad]
        (line,) = (record.getMessage() for record in caplog.records)
        assert line == federation.server.refused[bad]
        assert line.startswith(f"upload of client {bad} in round {t} refused: ")
        assert "\n" not in line
        assert len(line) < 500
        assert torch.equal(federation.x, silent.x)
    assert not Bomb.went_off


def ending(parcel, value, dtype):
    """With other last entries."""
    last = torch.tensor(value, dtype=dtype).numpy().tobytes()
    return replace(parcel, data=parcel.data[: -len(last)] + last)


def test_seeds_and_labels_that_there_are_not_do_not_end_a_server():
    """A pick beyond the pool is one of it; a count of labels below 0 is refused."""
    picked = Federation(FedKSeed(ETA, K, 20), quadratic(6))
    picked.round(change=lambda i, p: ending(p, [10**6], torch.int64) if i == 1 else p)
    assert picked.server.refused == {}
    assert bool(picked.x.isfinite().all())
    for counts in ([-5], [0] * images().classifier.classes):
        counted = Federation(NETWORKED["FedGen"], images())
        counted.round(change=lambda i, p, counts=counts: ending(p, counts, torch.int32) if i == 1 else p)
        assert list(counted.server.refused) == [1]
        assert "c holds" in counted.server.refused[1]


def test_a_pickle_that_is_as_long_as_the_numbers_is_numbers():
    problem = quadratic(6)
    federation = Federation(FedAvg(ETA, K), problem, sampled=3)
    bomb = pickle.dumps(Bomb()).ljust(96, b".")[:96]
    asked = min(federation.server.open())
    federation.round(change=lambda i, p: replace(p, data=bomb) if i == asked else p)
    assert re.search("holds .*, more than 1.2e\\+77", federation.server.refused[asked]), "letters are large numbers"
    assert not Bomb.went_off
    pickle.loads(pickle.dumps(Bomb()))
    assert Bomb.went_off, "it would have"
    Bomb.went_off = False


def test_nobody_who_was_not_asked_is_heard():
    problem = quadratic(6)
    federation = Federation(FedAvg(ETA, K), problem, sampled=3)
    asked = federation.server.open()
    uploads = {i: federation.clients[i].play(parcel) for i, parcel in asked.items()}
    (stranger, *_) = set(range(6)) - set(asked)
    federation.server.close(uploads | {stranger: uploads[next(iter(asked))]})
    assert list(federation.server.refused) == [stranger]


def test_a_round_without_an_upload_is_asked_again():
    problem = regression(6)
    federation = Federation(CARRIED["SSF"], problem, sampled=3)
    for t in range(8):
        if t in (2, 5):
            before = federation.x.clone()
            with pytest.raises(ValueError, match="open the round again"):
                federation.round(dropped=range(6))
            assert torch.equal(federation.x, before)
            assert federation.server.round == t
        federation.round()
    assert torch.equal(federation.x, run(CARRIED["SSF"], problem, 8, sampled=3, blocks=problem.n).x)


def test_a_client_refuses_what_was_not_made_for_it():
    """A round that is over, another client's parcel, a shape or a precision that is not the model's."""
    problem = regression(6)
    federation = Federation(SSF.haar(ETA, K, 2), problem, sampled=6)
    old = []
    for _ in range(3):
        old.append(federation.server.open()[0])
        federation.round()
    new = federation.server.open()[0]
    stranger = ClientHalf(SSF.haar(ETA, K, 2), problem, 0)
    node = ("message", "fields", "c_proj")
    assert at(new.metadata, *node) == {"float64": [4]}
    for client, parcel, words in (
        (federation.clients[0], old[1], "round=1: expected a round from 2"),
        (federation.clients[0], replace(old[1], round=9), "parcel.last=0: expected 1"),
        (federation.clients[0], replace(new, kind="reply"), "kind"),
        (federation.clients[0], replace(new, round=1), "round=1: expected a round from 2"),
        (federation.clients[0], replace(new, round="3"), "round"),
        (federation.clients[0], changed(new, *node, to={"float64": [2, 2]}), "c_proj"),
        (federation.clients[0], changed(new, "message", "fields", "x", "steps", 0, "fields", "x_proj", to=None), "SSF"),
        (federation.clients[0], replace(new, data=new.data[:-8]), "payload"),
        (federation.clients[0], replace(new, data=new.data[:-8] + b"\xff" * 8), "entry=nan"),
        (stranger, new, "parcel.last=2: expected None"),
    ):
        with pytest.raises((ValueError, TypeError), match=words) as told:
            client.play(carried(parcel))
        assert "\n" not in str(told.value)
    federation.clients[0].play(carried(new))  # and none of it has changed anything
    assert torch.equal(federation.x, run(SSF.haar(ETA, K, 2), problem, 3, blocks=problem.n).x)


@pytest.mark.parametrize(("rounds", "last"), [(None, 99_999), (4, 3)])
@pytest.mark.parametrize("far", [10**8, 10**30])
def test_a_client_follows_no_round_that_was_not_played(rounds, last, far):
    """One by one up to a billion would take minutes: it is refused at once, and the next round is played."""
    problem, method = regression(3), FedSub(ETA, K, Coordinate(2))
    server = ServerHalf(method, problem)
    client = ClientHalf(method, problem, 0, schedule=Steps(2, 0.5), rounds=rounds)
    first = server.open()[0]
    for t in (far, last + 1):
        with pytest.raises(ValueError, match=rf"^parcel\.round={t}: .*{'' if t == 10**30 else last}"):
            client.play(replace(first, round=t))
    assert client.play(first).round == 0


@pytest.mark.parametrize("method", [FedAvg(ETA, K), Scaffold(ETA, K), SSF.haar(ETA, K, 2)])
def test_the_largest_upload_leaves_a_next_round(method):
    """A larger one is refused by `gate`, and after one of the largest size all honest uploads are taken."""
    problem, most = regression(3), torch.finfo(torch.float64).max ** 0.25
    server, clients = ServerHalf(method, problem), {i: ClientHalf(method, problem, i) for i in range(3)}
    for value in (1.01 * most, most, None):
        uploads = {i: clients[i].play(parcel) for i, parcel in server.open().items()}
        if value is not None:
            data = torch.full((uploads[0].payload // 8,), value, dtype=torch.float64).numpy().tobytes()
            uploads[0] = replace(uploads[0], data=data)
        server.close(uploads)
        assert list(server.refused) == ([0] if value == 1.01 * most else [])
        assert bool(torch.isfinite(server.state.server.x).all())


@pytest.mark.parametrize(
    ("node", "said"),
    [
        ({"int64": [12]}, "torch.int64': expected torch.float64"),
        ({"float32": [12]}, "torch.float32': expected torch.float64"),
        ({"float64": [3, 4]}, r"x\.shape=\(3, 4\)"),
        ({"number": "float"}, "float': expected torch.float64"),
        (None, "NoneType': expected torch.float64"),
    ],
)
def test_a_client_is_sent_tensors_of_the_form_that_it_knows(node, said):
    """Whatever the bytes are long enough for: FedAvg's model has 12 float64."""
    problem = regression()
    server, client = ServerHalf(FedAvg(ETA, K), problem), ClientHalf(FedAvg(ETA, K), problem, 0)
    parcel = server.open()[0]
    wrong = json.loads(json.dumps(parcel.metadata))
    wrong["message"]["fields"]["x"] = node
    size = {"int64": 96, "float32": 48, "float64": 96, "number": 8}[next(iter(node))] if node else 0
    with pytest.raises((ValueError, TypeError), match=said):
        client.play(replace(parcel, metadata=wrong, data=parcel.data[:size]))
    client.play(parcel)


def test_a_reply_has_the_form_of_the_first_one():
    """FedSub's mean of the duals would be broadcast over a client's."""
    problem, method = regression(), FedSub(ETA, K, Spherical(2))
    server = ServerHalf(method, problem)
    clients = {i: ClientHalf(method, problem, i) for i in range(problem.n)}
    for t in range(2):
        replies = server.close({i: clients[i].play(parcel) for i, parcel in server.open().items()})
        parcel = replies[0]
        if t == 1:
            wrong = json.loads(json.dumps(parcel.metadata))
            (name,) = [one for one, node in wrong["message"]["fields"].items() if node and "float64" in node]
            wrong["message"]["fields"][name] = {"float64": [1]}
            with pytest.raises(ValueError, match="expected shape"):
                clients[0].hear(replace(parcel, metadata=wrong, data=parcel.data[:8]))
        for i, reply in replies.items():
            clients[i].hear(reply)


def test_a_reply_that_was_not_heard_is_asked_for_and_sent_again():
    """FedSub's dual needs it: the client says so, and does not go on with a dual that is wrong."""
    problem, algorithm = regression(6), FedSub(ETA, K, Spherical(2))
    federation = Federation(algorithm, problem)
    federation.round()
    federation.round(deaf=[4])
    parcel = federation.server.open()[4]
    with pytest.raises(ValueError, match="let it hear"):
        federation.clients[4].play(carried(parcel))
    federation.clients[4].hear(carried(federation.server.again(4)))
    for _ in range(3):
        federation.round()
    assert torch.equal(federation.x, run(algorithm, problem, 5, blocks=problem.n).x)
    with pytest.raises(ValueError, match="reply"):
        federation.clients[4].hear(carried(federation.server.again(4)))


@pytest.mark.parametrize(
    "path", sorted((Path(fedtheory.__file__).parent / "federation").glob("*.py")), ids=lambda p: p.name
)
def test_nothing_is_unpickled_or_imported_by_name(path):
    words = ("pickle", "torch.load", "np.load", "eval(", "exec(", "import_module", "__import__", "getattr(sys")
    assert [word for word in words if word in path.read_text().replace("unpickled", "")] == []


# What is in a parcel


def test_a_parcel_is_the_entries_and_nothing_else():
    """By hand: FedAvg's model, 12 numbers; a DeComFL client that missed two rounds is sent their seeds and scalars."""
    problem = quadratic(6)
    server = ServerHalf(FedAvg(ETA, K), problem, x0=start(problem))
    parcel = server.open()[3]
    assert parcel.data == start(problem).numpy().tobytes()
    fields = {"x": {"float64": [12]}}
    assert parcel.metadata == {"message": {"class": "Down", "fields": fields}, "last": None, "replied": False}
    federation = Federation(DeComFL(ETA, 1, 2), problem, sampled=1)
    seen, lacked = {}, []
    for t in range(12):
        parcel = next(iter(federation.server.open().items()))
        model = parcel[1].metadata["message"]["fields"]["model"]
        lag = t - seen.get(parcel[0], 0)
        if lag * 2 * 16 <= 12 * 8:
            assert len(model["steps"]) == lag
            assert parcel[1].payload == 16 + lag * 2 * 16
            lacked.append(lag)
        else:
            assert parcel[1].payload == 16 + 12 * 8
            assert "value" in model
        federation.round()
        seen[parcel[0]] = t
    assert {1, 2, 3} <= set(lacked)


@pytest.mark.parametrize(
    "value",
    [
        torch.arange(6).view(2, 3),
        torch.arange(24.0).view(2, 3, 4).permute(2, 0, 1),
        torch.arange(24.0).view(4, 6)[:, ::2].T,
        torch.tensor([True, False]),
        torch.zeros(0, 3, dtype=torch.int8),
        torch.tensor(2.5, dtype=torch.float32),
        torch.tensor([1.5, -2.0], dtype=torch.bfloat16),
        torch.tensor([3.0]).expand(4),
        torch.tensor([-(2**63), 2**63 - 1]),
        7,
        -0.5,
        True,
        None,
        (1, (torch.ones(2), None)),
    ],
    ids=str,
)
def test_back_and_forth(value):
    """Bits, shapes, and which axis is dense."""
    writer = Writer(0)
    node = json.loads(json.dumps(writer.write(value)))
    reader = Reader(bytes(writer.data), Vocabulary({}, {}, {}, torch.device("cpu")))
    found = reader.read(node)
    reader.end()
    if isinstance(value, torch.Tensor):
        assert found.dtype == value.dtype
        assert torch.equal(found, value)
        sizes = [size for size in value.shape if size > 1]
        if len(sizes) > 1:
            assert [*map(found.stride().index, sorted(found.stride()))] == [
                *map(value.stride().index, sorted(value.stride()))
            ]
    else:
        assert str(found) == str(value)
        assert type(found) is type(value)


FIRST = {type(one): name for name, one in reversed(CARRIED.items())}.values()  # one of each class


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=() if n in FIRST else pytest.mark.full) for n in sorted(CARRIED.keys() - {"LBGM"})]
)
def test_nothing_in_the_metadata_hangs_on_the_data(name):
    """So it tells nothing that the count leaves out: it is the same on other data. (LBGM sends a row or none.)"""
    told = []
    for seed in (2, 7):
        federation = Federation(CARRIED[name], regression(6, seed=seed), sampled=3)
        told.append([])
        for _ in range(5):
            told[-1] += [parcel.metadata for parcel in federation.server.open().values()]
            replies = federation.round(change=lambda i, p: told[-1].append(p.metadata) or p)
            told[-1] += [parcel.metadata for parcel in replies.values()]
    assert told[0] == told[1]
    assert len(told[0]) >= 5 * 6


@each(trial=range(60))
def test_random_damage_is_refused_or_harmless(trial):
    """A random byte of the text that carries the metadata is another one: refused, or the same message."""
    chance = random.Random(trial)
    federation = Federation(CARRIED["LBGM" if trial % 2 else "SignSGD"], regression(4))
    federation.round()
    i, parcel = next(iter(federation.server.open().items()))
    upload = federation.clients[i].play(carried(parcel))
    text = bytearray(json.dumps(upload.metadata).encode())
    text[chance.randrange(len(text))] = chance.randrange(32, 127)
    try:
        metadata = json.loads(text)
    except ValueError:
        return
    before = federation.server.round
    others = {j: federation.clients[j].play(carried(p)) for j, p in federation.server.open().items() if j != i}
    federation.server.close(others | {i: replace(upload, metadata=metadata)})
    assert federation.server.round == before + 1
    assert set(federation.server.refused) <= {i}
    assert bool(torch.isfinite(federation.x).all())


@pytest.mark.parametrize("name", ["SCAFFOLD", "FedProx", "SSF"])
def test_clients_of_fewer_batches_make_fewer_steps(name):
    """As in a run, each by its own K."""
    samples = torch.randn(32, 4, generator=Key(0).generator(), dtype=torch.float64)
    data = [(part[:, :3], part[:, 3:]) for part in samples.split([4, 9, 13, 6])]
    problem = Supervised(torch.nn.Linear(3, 1).double(), torch.nn.MSELoss(), data, batch=4, epochs=1)
    assert problem.uneven
    algorithm = {"SCAFFOLD": Scaffold(0.1, 4), "FedProx": FedProx(0.1, 4, 0.5), "SSF": SSF(0.1, 4)}[name]
    same(played(algorithm, problem, 3), run(algorithm, problem, 3, blocks=problem.n))
    with pytest.raises(ValueError, match=r"epochs=1: .*FedDC.*Fix: "):
        ServerHalf(FedDC(0.1, 4), problem)


def test_a_method_with_parts_around_it_is_refused():
    with pytest.raises(ValueError, match=r"without parts around it.*Fix: "):
        ServerHalf(PrivateUploads(FedAvg(0.1, 3), 1.0, 0.1), regression(4))
