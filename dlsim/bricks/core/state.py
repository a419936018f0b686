"""What a run works on, as arrays: the inputs, the rules, what changes, and the events to come."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dlsim.bricks.core.network import Floats, Stream, Whole
from dlsim.compiled import compiled

#: Kinds of events, in the order in which they happen at one instant.
SERVED, RETURNED, INPUT, SUBMIT, PACKET = range(5)
#: Why the event loop stops: all is done; a user's scheduler has to choose; a user's
#: predictor has to predict; the heap is full; the clock is too many probes on;
#: background jobs are not known so far; to say how far it is, every `STRIDE` steps.
DONE, CHOOSE, PREDICT, GROW, FAR, MORE, PAUSE = range(7)
STRIDE = 2**16
#: Codes of `Rules.algorithm`, `Rules.load` and `Rules.predictor`; USER is a function.
GREEDY, DEADLINE = range(2)
CLIENTS, UTIL, QUEUE, EXT = range(4)
LAST, MEAN, PERFECT, ADAPTIVE = range(4)
USER = -1
#: What a user's scheduler decides beside servers.
REFUSE = 2**31

#: Probes that the predictor "mean" averages, and that a user's predictor is shown.
WINDOW = 10
#: Most probes of a run.
MOST_PROBES = 10**8
#: Forecasters among which the predictor "adaptive" chooses, the first one on equal errors.
FORECASTERS = ("last", "mean of 10", "mean of all", "smoothing by 0.1", "smoothing by 0.5")

#: Packets that a train moves over one link before it turns to the next.
BLOCK = 512
#: Packets that pass a link before the event loop looks for anything else.
ROUND = 64


def _record(**names: str) -> np.dtype:
    """Return a type of records: by the kind of number, the names of fields."""
    return np.dtype([(name, kind) for kind, some in names.items() for name in some.split()])


#: An end of a transfer has no packet; its hop is the `course` for which it was foreseen.
EVENT = _record(f8="time", i8="kind row packet hop")
#: What becomes of a request; times of its latest submission, and `next`, the client job that
#: follows it on its server; packets of the transfer under way, how many trains of its have
#: been broken up, and the train that is broken up after it.
JOB = _record(
    i8="server fallbacks attempt next returning packets course broken",
    f8="submitted arrived start end completion",
)
#: One submission and what came of it.
ATTEMPT = _record(i8="row server accepted", f8="submitted estimate arrived promised")
#: A place in a server's queue up to which jobs have been followed: the next background job,
#: the last client job, how many of either, when the last one ended, seconds of service.
CURSOR = _record(i8="at job count", f8="free busy")
#: The cursors of a server: jobs that the monitor has seen arrive, jobs gone, service up to
#: now, and up to one period ago where that may lie before the last time it was asked for.
SEEN, GONE, BUSY, BEFORE = range(4)
#: A server: when all work that has arrived is done, the next background job, the first and
#: last client jobs, those of ours that are scheduled and not completed, when a client job
#: last joined or left, and whether it is among the `State.changed`.
SERVER = _record(f8="free touched", i8="at head tail ours listed")
#: A link: transfers of ours under way; the request whose train has it to itself, or -1; the
#: next data of other users; when it is free; and of the entry of its trace that a packet met
#: last, before `sure` for certain: its throughput, its end, and the time of a full packet.
LINK = _record(i8="ours alone at", f8="free rate edge sure span")
#: Counters: events in the heap, how many there have to have room, the first train to break up,
#: the next new request, attempts, probes taken, the entry of the traces in `State.predicted`,
#: servers in `State.changed`, whether what the scheduler is shown is out of date, the request
#: that a server is chosen for and the choice, requests returned, steps of the loop, the clock.
HEAD = _record(
    i8="events wanted broken new attempts probes entry changed stale row choice done steps",
    f8="now",
)


class World(NamedTuple):
    """An environment as arrays; times count from `origin`, traces and probes from 0."""

    origin: float
    performance: Floats
    server_domain: Whole
    client_domain: Whole
    jobs: Stream
    marks: Floats
    until: float
    server_load: float
    loads: Floats
    rates: Floats
    raw: Floats
    every: Whole  # all links, each a path of its own
    data: Stream
    step: float
    packet: float
    first: Whole
    hops: Whole
    domains: int
    two_level: bool
    places: Whole
    time: Floats
    client: Whole
    send: Floats
    recv: Floats
    work: Floats
    deadline: Floats


class Rules(NamedTuple):
    """A scheduler under a reading, as numbers."""

    algorithm: int
    load: int
    predictor: int
    in_place: bool
    opt: float
    pload: float
    slack: float
    probe: float
    most: int
    correct: bool
    correct_links: bool
    exclude: bool
    at_arrival: bool
    packets: bool
    until_served: bool


class State(NamedTuple):
    """What changes during a run."""

    head: np.recarray  # counters (HEAD)
    heap: np.recarray  # events to come, a binary heap by time, kind, row and packet
    course: Floats  # when the packets of a train leave a link, `BLOCK` at a time
    jobs: np.recarray  # the requests
    attempts: np.recarray  # their submissions, in order
    returned: Whole  # requests that are done, in order of their return
    servers: np.recarray
    cursors: np.recarray  # how far their queues have been followed
    links: np.recarray
    ring: Floats  # the resource database: links and servers, probe k in row k % 10
    predicted: Floats  # throughput of every link and Load of every server
    errors: Floats  # of the predictor "adaptive": sums of absolute errors,
    forecasts: Floats  # and what each forecaster says now
    shown: Floats  # predicted throughput after Load Correction for links
    edges: Floats  # the smaller of LAN and WAN of every domain, up and down
    reach: Floats  # bounds of the edges: up and down, the smallest and the largest
    slowness: Floats  # 1 / P_serv of every server, after Load Correction
    order: NDArray[np.int32]  # servers by slowness, equal ones by number
    changed: NDArray[np.int32]  # servers whose Load may differ from that of the last probe
    moving: Floats  # seconds of both transfers of the request at hand, per domain
    barred: NDArray[np.bool_]  # servers excluded for the request at hand
    refused: NDArray[np.int32]  # servers that each request fell back from, where that matters


def _records(shape: int | tuple[int, int], dtype: np.dtype) -> np.recarray:
    return np.zeros(shape, dtype).view(np.recarray)


def fresh_state(w: World, r: Rules) -> State:
    """Return the state before the first event."""
    requests, servers, links = len(w.time), len(w.performance), len(w.rates)
    series = links + servers
    s = State(
        head=_records(1, HEAD), heap=_records(2 * ROUND, EVENT), course=np.zeros(BLOCK),
        jobs=_records(requests, JOB), attempts=_records(requests * (r.most + 1), ATTEMPT),
        returned=np.zeros(requests, dtype=np.int64), servers=_records(servers, SERVER),
        cursors=_records((servers, len((SEEN, GONE, BUSY, BEFORE))), CURSOR),
        links=_records(links, LINK), ring=np.zeros((WINDOW, series)), predicted=np.zeros(series),
        errors=np.zeros((len(FORECASTERS), series)), forecasts=np.zeros((len(FORECASTERS), series)),
        shown=np.zeros(links), edges=np.zeros((2, w.domains)), reach=np.zeros((2, 2)),
        slowness=np.zeros(servers), order=np.arange(servers, dtype=np.int32),
        changed=np.arange(servers, dtype=np.int32), moving=np.zeros((2, w.domains)),
        barred=np.zeros(servers, dtype=bool),
        refused=np.full((requests if r.exclude else 0, max(1, r.most)), -1, dtype=np.int32),
    )  # fmt: skip
    s.head.choice = s.head.entry = s.head.broken = s.links.alone = -1
    s.links.sure = -np.inf
    s.head.changed, s.servers.listed, s.servers.touched = servers, 1, -np.inf
    s.jobs.next = s.jobs.server = -1
    s.jobs.completion = np.nan
    s.servers.at, s.links.at = w.jobs.first[:-1], w.data.first[:-1]
    s.servers.head = s.servers.tail = -1
    s.cursors.at, s.cursors.job = w.jobs.first[:-1, None], -1
    return s


@compiled(inline=True)
def before(a, time, kind, row, packet):
    """Tell whether an event of the heap comes before one, by time, kind, row and packet."""
    if a.time != time:
        return a.time < time
    if a.kind != kind:
        return a.kind < kind
    return a.row < row or (a.row == row and a.packet < packet)


@compiled(inline=True)
def push(time, kind, row, packet, hop, s):
    """Add an event to the heap."""
    heap, i = s.heap, s.head[0].events
    while i > 0 and not before(heap[(i - 1) // 2], time, kind, row, packet):
        heap[i] = heap[(i - 1) // 2]
        i = (i - 1) // 2
    one = heap[i]
    one.time, one.kind, one.row, one.packet, one.hop = time, kind, row, packet, hop
    s.head[0].events += 1


@compiled(inline=True)
def foresee(time, kind, row, s):
    """Add an event of a request that holds as long as no train of it is broken up."""
    push(time, kind, row, 0, s.jobs[row].course, s)


@compiled(inline=True)
def sink(time, kind, row, packet, hop, s):
    """Put an event in the place of the first one."""
    heap, size, i = s.heap, s.head[0].events, 0
    while 2 * i + 1 < size:
        k = 2 * i + 1
        if k + 1 < size:
            left = heap[k]
            k += before(heap[k + 1], left.time, left.kind, left.row, left.packet)
        if not before(heap[k], time, kind, row, packet):
            break
        heap[i] = heap[k]
        i = k
    one = heap[i]
    one.time, one.kind, one.row, one.packet, one.hop = time, kind, row, packet, hop


@compiled(inline=True)
def pop(s):
    """Remove the first event from the heap."""
    s.head[0].events -= 1
    last = s.heap[s.head[0].events]
    sink(last.time, last.kind, last.row, last.packet, last.hop, s)
