"""Kill a run at random moments, resume it each time, and print what happened (JSON).

`main(folder)`, for a process of its own (test_robust.py), makes one after the other:

loop     10 kills anywhere in the round loop
write    one kill between writing a checkpoint and giving it its name
pairs    12 pairs of runs started at once on one folder, every third one's owner killed
"""

import json
import os
import random
import signal
import sys
import time
import warnings
from functools import partial

import torch

from fedtheory import SSF, Key, MatrixRegression, run

ROUNDS, KILLS = 320, 10
torch.set_num_threads(1)
warnings.simplefilter("error")  # a damaged checkpoint would warn


def job(folder, rounds=ROUNDS, pause=lambda done: None):
    """One run, with a pause at every recorded round."""
    problem = MatrixRegression.ssf(0.5, Key(0), n=5, rows=8, d=6, m=2, batch=4)
    options = {"sampled": 3, "every": 4, "checkpoint": folder, "checkpoint_every": 4}
    return run(SSF.haar(0.05, 2, 2), problem, rounds, **options, progress=pause)


def content(history):
    """State and columns as plain numbers; floats survive JSON exactly."""
    server, own = history.state
    tensors = (server.x, server.c, server.last.x_proj, own.c)
    return {"columns": history.columns, "tensors": [tensor.tolist() for tensor in tensors], "t": server.t}


def forked(work):
    """Run `work` in a child process and return its id."""
    child = os.fork()
    if child == 0:
        try:
            work()
            os._exit(0)
        finally:
            os._exit(1)
    return child


def killed_in_the_loop(folder):
    moments, result = random.Random(0), folder.with_suffix(".json")
    newest = []  # the newest checkpoint at each kill

    def work(loop):
        def pause(done):  # 8 ms per 4 rounds: 10 kills within 4 pauses each cannot reach the end
            os.write(loop, b".")
            time.sleep(0.008)

        result.write_text(json.dumps(content(job(folder, pause=pause))))

    for _ in range(KILLS):
        reader, writer = os.pipe()
        child = forked(lambda writer=writer: work(writer))
        for _ in range(moments.randint(1, 4)):  # pauses, not seconds: on a busy machine it may stand still for long
            os.read(reader, 1)
        time.sleep(moments.uniform(0.0, 0.008))
        os.kill(child, signal.SIGKILL)
        if not os.WIFSIGNALED(os.waitpid(child, 0)[1]):
            sys.exit("the run ended before it was killed")
        os.close(reader)
        os.close(writer)
        newest.append(max((int(path.stem.split("-")[1]) for path in folder.glob("*.ckpt")), default=0))
    if os.waitpid(forked(lambda: work(os.open(os.devnull, os.O_WRONLY))), 0)[1] != 0:
        sys.exit("the last resumption failed")
    unbroken = json.loads(json.dumps(content(job(None))))
    return {"newest": newest, "rounds": ROUNDS, "same": json.loads(result.read_text()) == unbroken}


def killed_while_writing(folder):
    def work():
        job(folder, 12)
        os.replace = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
        job(folder, 24)

    status = os.waitpid(forked(work), 0)[1]
    after_kill = sorted(path.name for path in folder.iterdir())
    same = content(job(folder, 24)) == content(job(None, 24))
    return {"killed": os.WIFSIGNALED(status), "after_kill": after_kill, "same": same}


PAIRS, REFUSED = 12, 3


def pairs(folder):
    """Two runs at once on one folder, pair after pair; of every third the owner is killed, and its child lives on."""
    expected = content(job(None, 40))

    def work(here, gate, loop, kill):
        def pause(done):
            if kill and done == 8:
                forked(lambda: time.sleep(2))  # it has copies of all that is open
            os.write(loop, b".")
            time.sleep(0.004)

        os.read(gate, 1)
        try:
            same = content(job(here, 40, pause)) == expected
        except OSError as error:
            text = str(error)
            clear = "\n" not in text and all(part in text for part in ("checkpoint=", "expected", "Fix: "))
            os._exit(REFUSED if clear else 4)
        os._exit(0 if same else 5)

    ends = []
    for number in range(PAIRS):
        here, kill = folder / str(number), number % 3 == 0
        gates, loops = [os.pipe() for _ in range(2)], [os.pipe() for _ in range(2)]
        children = [forked(partial(work, here, reader, writer, kill)) for (reader, _), (_, writer) in zip(gates, loops)]
        for _, gate in gates:
            os.write(gate, b"..")
        if kill:
            first, status = os.wait()  # the one that was refused
            ends.append(os.waitstatus_to_exitcode(status))
            (owner,) = set(children) - {first}
            os.read(loops[children.index(owner)][0], 4)  # it is well in its loop
            time.sleep(0.03)
            os.kill(owner, signal.SIGKILL)
            os.waitpid(owner, 0)
            again = os.waitpid(forked(partial(work, here, gates[0][0], loops[0][1], False)), 0)[1]
            ends.append(os.waitstatus_to_exitcode(again))
        else:
            ends += [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
        for pipe in (*gates, *loops):
            os.close(pipe[0])
            os.close(pipe[1])
    left = sorted({path.name for path in folder.glob("*/*") if path.suffix != ".ckpt"})
    return {"ends": ends, "left": left}


def main(folder):
    outcomes = {}
    for name, mode in (("loop", killed_in_the_loop), ("write", killed_while_writing), ("pairs", pairs)):
        where = folder / name
        outcomes[name] = mode(where) | {"files": sorted(path.name for path in where.iterdir())}
    print(json.dumps(outcomes))
