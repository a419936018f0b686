"""What a run works on, as arrays: the inputs, the rules, and what changes."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dlsim.cpugpu.core.sums import levels_of
from dlsim.kernel import records

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]
Flags = NDArray[np.bool_]

#: Codes of `Rules.rule`; SHARE is Hadoop's fair and capacity, USER a function.
FIVE, MCT, FIFO, STRICT, TURN, SPEED_UP, SHORTEST, SHARE, USER = range(9)
#: Classes, and a target that is each job's own.
GPU, CPU, PREFERRED = range(3)
#: When an idle device takes a job of the other class (`Rules.take`).
CAREFUL, NEVER, ALWAYS = range(3)
#: What a run that was never measured is expected to take (`Rules.unknown`).
AVERAGE, ZERO, INFINITE = range(3)
#: Statistics of the measured times (`Rules.estimate`).
MEAN, MEDIAN, EWMA = range(3)
#: Weight of the newest run in the moving average.
NEWEST = 0.3
#: Why a job was moved, as texts; their places are the codes.
WORDS = (
    "R2", "R2*", "R3", "R3*", "R4", "R4q", "R0", "steal", "mct", "fifo", "turn", "own", "taken",
)  # fmt: skip
R2, R2S, R3, R3S, R4, R4Q, R0, STEAL, BY_MCT, BY_FIFO, BY_TURN, OWN, TAKEN = range(len(WORDS))
#: Why the loop stops: all is done; what is left waits for ever; a user's policy has to decide.
DONE, STUCK, CHOOSE = range(3)
#: Where the loop is in an instant: before it, among its decisions, after the last one.
BEFORE, DECIDING, DECIDED = range(3)
#: What a desk says that has happened: a job was moved; a device took the next of its sub-queue,
#: ended its job, lost it to the head of the main queue.
MOVED, TAKEN_UP, ENDED, LOST = range(4)
NOBODY = -1

#: What becomes of a job: the device it is on, its place among the decisions, why; neighbours in
#: a line and its cell there; when it was decided, began and ended, and its measured time.
JOB = np.dtype(
    [(k, "i4") for k in ("on", "turn", "word", "next", "before", "cell")]
    + [(k, "f8") for k in ("decided", "start", "end", "seconds")]
)
#: What a device runs, until when.
DEVICE = np.dtype([("job", "i8"), ("end", "f8")])
#: Jobs in a line: the first, the last, how many, of how many nothing is measured there, and
#: what the others are expected to take, a sum of two floats.
LINE = np.dtype([(k, "i8") for k in ("head", "tail", "count", "unknown")]
                + [("high", "f8"), ("low", "f8")])  # fmt: skip
#: What is known of an application on a class: as in `dlsim.cpugpu.history.Record`, then the time
#: that is expected with and without deviations, the first of its cells, and for the running
#: median: its room in `State.heaps`, and how many are in the lower and in the upper half.
KNOWN = np.dtype(
    [(k, "i8") for k in ("seen", "assigned", "elsewhere", "count")]
    + [(k, "f8") for k in ("average", "spread", "recent", "time", "plain")]
    + [(k, "i8") for k in ("cell", "room", "low", "high")]
)
#: Jobs of one application in one sub-queue; the next cell of the application on the class.
CELL = np.dtype([(k, "i4") for k in ("on", "count", "next")])
#: Applications measured on a class, and the sum of their expected times.
AVERAGES = np.dtype([("count", "i8"), ("high", "f8"), ("low", "f8")])
#: The clock and the CPUs' speed; the first job to come, jobs left, decisions made, jobs
#: ended, cells used, where the loop is; what was decided: job, device, why, from which line,
#: whether finishes were predicted; least known times waiting, as of a line.
HEAD = np.dtype(
    [(k, "f8") for k in ("now", "rate", "high", "low")]
    + [(k, "i8") for k in ("coming", "left", "turns", "done", "cells", "phase")]
    + [(k, "i8") for k in ("job", "on", "word", "line", "foretold")]
)
#: One of them: which, the job, the device, the line it comes from, when, how long it ran.
EVENT = np.dtype([(k, "i8") for k in ("what", "job", "on", "line")]
                 + [("now", "f8"), ("seconds", "f8")])  # fmt: skip


class World(NamedTuple):
    """The jobs by queue order and the machine."""

    arrival: Floats
    times: Floats  # realised, a column per class or per device,
    column: Whole  # the one of each device
    app: Whole
    told: Floats  # declared, by class
    has: Flags  # whether there is a version for a class of the machine
    number: Whole  # the jobs' own numbers, which decide ties
    order: Whole  # jobs by what the policy sorts, a row per order; SPEED_UP, SHORTEST
    rank: Whole  # the place of each job there
    gpus: int
    span: float  # the shortest run: tells two instants apart
    pool: Whole  # SHARE: who an application shares its slots with,
    weight: Floats  # and what they are divided by


class Rules(NamedTuple):
    """A policy under its reading, as numbers."""

    rule: int
    target: int = PREFERRED
    take: int = CAREFUL
    samples: int = 1
    again: int = 0
    bound: float = 0.0
    estimate: int = MEAN
    steal: bool = False
    best: bool = False
    unknown: int = AVERAGE
    deviations: float = 0.0
    share: float = 0.0


class State(NamedTuple):
    """What changes during a run."""

    head: np.recarray  # the clock and counters (HEAD)
    jobs: np.recarray
    devices: np.recarray
    lines: np.recarray  # a line per device, then those of the main queue
    known: np.recarray  # by application and class
    averages: np.recarray  # by class
    cells: np.recarray
    free: Whole  # the devices that run nothing and have an empty sub-queue, as a set
    sets: Whole  # what waits, by rank; SPEED_UP, SHORTEST
    tree: Floats  # declared times of what waits, by rank; SHORTEST
    waiting: Whole  # jobs in the main queue by application and versions; a bound
    busy: Whole  # running jobs of those who share; SHARE
    heaps: Floats  # measured times about the median, by class: the lower half, the upper; MEDIAN
    due: Whole  # devices whose jobs end now
    done: Whole  # jobs in the order of their ends
    finishes: Floats  # predicted finish of each job on every device


def fresh_state(w: World, r: Rules, apps: int, predicts: bool) -> State:
    """Return the state before the first event; nothing is known."""
    n, devices = len(w.arrival), len(w.column)
    ranked = {SPEED_UP: 2, SHORTEST: 4}.get(r.rule, 0)
    leaves = 1 << max(1, (n - 1).bit_length()) if r.rule == SHORTEST else 0
    learns = r.rule == FIVE
    s = State(
        head=records(1, HEAD),
        jobs=records(n, JOB),
        devices=records(devices, DEVICE),
        lines=records(devices + (apps if r.rule == SHARE else 2), LINE),
        known=records((apps, 2), KNOWN),
        averages=records(2, AVERAGES),
        cells=records(n * (1 + bool(r.steal)) if learns else 0, CELL),  # a stolen job takes two
        free=np.zeros((levels_of(devices), devices // 32 + 1), dtype=np.int64),
        sets=np.zeros((ranked, levels_of(n), n // 32 + 1 if ranked else 0), dtype=np.int64),
        tree=np.zeros((2, 2 * leaves)),
        waiting=np.zeros((apps, 4) if r.bound > 0 else (0, 4), dtype=np.int64),
        busy=np.zeros(int(w.pool.max(initial=-1)) + 1, dtype=np.int64),
        heaps=np.zeros((2, 2, 2 * (n + apps) if learns and r.estimate == MEDIAN else 0)),
        due=np.zeros(devices, dtype=np.int64),
        done=np.zeros(n, dtype=np.int64),
        finishes=np.full((n, devices) if predicts else (0, 0), np.nan),
    )
    s.head["rate"], s.head["left"] = 1.0, n
    s.jobs["on"] = s.jobs["cell"] = NOBODY
    s.jobs["decided"] = s.jobs["start"] = s.jobs["end"] = np.nan
    s.devices["job"], s.devices["end"] = NOBODY, np.inf
    s.lines["head"] = s.lines["tail"] = s.known["cell"] = NOBODY
    s.known["time"] = s.known["plain"] = s.known["recent"] = np.nan
    return s
