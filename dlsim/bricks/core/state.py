"""The arrays of a run: the environment, the configuration, and the state that changes."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dlsim.bricks.core.network import FloatArray, IntArray, Stream
from dlsim.compiled import zero_recarray

#: Kinds of events, in the order in which they happen at one instant.
SERVICE_END, RESULT_ARRIVAL, INPUT_ARRIVAL, SUBMISSION, PACKET = range(5)
#: Why the event loop stops: all requests are done; a user's policy has to choose a server; a
#: user's predictor has to predict; the heap is full; a run needs too many probes; progress is due.
DONE, CHOOSE, PREDICT, HEAP_FULL, TOO_MANY_PROBES, PAUSE = range(6)
#: Events between two pauses.
EVENTS_PER_PAUSE = 2**16
#: Codes of `Config.load` and `Config.predictor`; USER is a user's function.
CLIENTS, UTILISATION, QUEUE, EXTERNAL = range(4)
LAST, MEAN, PERFECT, ADAPTIVE = range(4)
USER = -1
#: No row; and the decision of a user's policy to refuse a request.
NONE, REFUSED = -1, -2

#: Probes that the predictor "mean" averages, and that a user's predictor is shown.
WINDOW_PROBES = 10
#: Most probes of a run.
MOST_PROBES = 10**8
#: Forecasters among which the predictor "adaptive" chooses, the first one on equal errors.
FORECASTERS = ("last", "mean of 10", "mean of all", "smoothing by 0.1", "smoothing by 0.5")
#: Room for events at the start of a run.
FIRST_EVENTS = 128


def _record(**names: str) -> np.dtype:
    """Return a type of records: by the kind of number, the names of fields."""
    return np.dtype([(name, kind) for kind, some in names.items() for name in some.split()])


#: An event; of a packet, also its number in its transfer and the hop of the path, else 0.
EVENT = _record(f8="time", i8="kind row packet hop")
#: What becomes of a request; times of its latest submission. `next_client` is the request that
#: follows it on its server. Of its transfer under way: where its path lies in `path_links`, how
#: many packets it has, and the size of the last one.
REQUEST = _record(
    i8="server fallbacks attempt next_client is_returning first_hop last_hop packets",
    f8="submitted arrived start end completion last_packet",
)
#: One submission and what came of it.
ATTEMPT = _record(i8="row server accepted", f8="submitted estimate arrived promised")
#: A place in a server's queue: the next background job, the last client job, how many jobs have
#: been passed, when the last one ended, and seconds of service.
CURSOR = _record(i8="next_background last_client count", f8="free busy")
#: The cursors of a server: jobs that have arrived, jobs that have ended, service up to a probe,
#: and service up to one probe interval before.
ARRIVED, ENDED, BUSY, BUSY_BEFORE = range(4)
#: A server: when all work that has arrived is done, the next background job, the first and last
#: client jobs.
SERVER = _record(f8="free", i8="next_background first_client last_client")
#: A link: client transfers under way, the next data of other users, and when it is free.
LINK = _record(i8="transfers next_background", f8="free")
#: Counters: events and packets in the heaps, the next new request, attempts, probes taken,
#: requests returned, events carried out, the request to choose a server for and the choice, and
#: the clock.
LOOP_COUNTERS = _record(i8="events packets new attempts probes done steps row choice", f8="now")


class EnvironmentArrays(NamedTuple):
    """An environment as arrays; times count from `origin`, traces and probes from 0."""

    origin: float
    performance: FloatArray
    server_domain: IntArray
    client_domain: IntArray
    background: Stream
    server_load: float
    load_traces: FloatArray
    rates: FloatArray  # throughput of links that other users leave
    capacity: FloatArray  # throughput of links
    link_background: Stream
    step: float
    packet: float
    path_start: IntArray
    path_links: IntArray
    return_start: IntArray  # the same paths by target: those that lead to a client side by side
    return_links: IntArray
    domains: int
    arrival: FloatArray
    client: IntArray
    send: FloatArray
    recv: FloatArray
    work: FloatArray
    due: FloatArray


class Config(NamedTuple):
    """A policy under a reading, as numbers."""

    algorithm: int
    load: int
    predictor: int
    opt: float
    pload: float
    fallback_slack: float
    probe: float
    max_fallbacks: int
    load_correction: bool
    correct_links: bool
    exclude_rejecting: bool
    send_counts_twice: bool
    packets: bool
    corrected_until_served: bool


class GridState(NamedTuple):
    """What changes during a run."""

    counters: np.recarray  # LOOP_COUNTERS
    heap: np.recarray  # events to come, a binary heap by time, kind, row and packet,
    packets: np.recarray  # and those of packets, which are many, in a heap of their own
    requests: np.recarray
    attempts: np.recarray  # their submissions, in order
    returned: IntArray  # requests that are done, in order of their return
    servers: np.recarray
    scheduled: IntArray  # numjobs of eq. (5): client jobs on every server that are not completed
    cursors: np.recarray  # of every server
    links: np.recarray
    measured: FloatArray  # links and servers, probe k in row k % WINDOW_PROBES
    predicted: FloatArray  # throughput of every link and Load of every server
    errors: FloatArray  # of the predictor "adaptive": sums of absolute errors,
    forecasts: FloatArray  # and what each forecaster says now
    send_time: FloatArray  # the terms of eq. (2) of every server for the request at hand,
    recv_time: FloatArray
    estimates: FloatArray  # and their sum
    excluded: NDArray[np.bool_]  # servers excluded for the request at hand
    rejected_by: NDArray[np.int32]  # servers that each request fell back from, where that matters


def initial_state(env: EnvironmentArrays, cfg: Config) -> GridState:
    """Return the state before the first event."""
    requests, servers, links = len(env.arrival), len(env.performance), len(env.rates)
    series, cursors = links + servers, len((ARRIVED, ENDED, BUSY, BUSY_BEFORE))
    excluding = requests if cfg.exclude_rejecting else 0
    state = GridState(
        counters=zero_recarray(1, LOOP_COUNTERS),
        heap=zero_recarray(FIRST_EVENTS, EVENT),
        packets=zero_recarray(FIRST_EVENTS, EVENT),
        requests=zero_recarray(requests, REQUEST),
        attempts=zero_recarray(requests * (cfg.max_fallbacks + 1), ATTEMPT),
        returned=np.zeros(requests, dtype=np.int64),
        servers=zero_recarray(servers, SERVER),
        scheduled=np.zeros(servers, dtype=np.int64),
        cursors=zero_recarray((servers, cursors), CURSOR),
        links=zero_recarray(links, LINK),
        measured=np.zeros((WINDOW_PROBES, series)),
        predicted=np.zeros(series),
        errors=np.zeros((len(FORECASTERS), series)),
        forecasts=np.zeros((len(FORECASTERS), series)),
        send_time=np.zeros(servers),
        recv_time=np.zeros(servers),
        estimates=np.zeros(servers),
        excluded=np.zeros(servers, dtype=bool),
        rejected_by=np.full((excluding, max(1, cfg.max_fallbacks)), NONE, dtype=np.int32),
    )
    state.counters.choice = NONE
    state.requests.server = state.requests.next_client = NONE
    state.requests.completion = np.nan
    state.servers.first_client = state.servers.last_client = NONE
    state.servers.next_background = env.background.first[:-1]
    state.cursors.next_background = env.background.first[:-1, None]
    state.cursors.last_client = NONE
    state.links.next_background = env.link_background.first[:-1]
    return state


def grow_heaps(state: GridState) -> GridState:
    """Return the state with room for twice as many events and packets."""
    heap, packets = (
        np.concatenate([events, events]).view(np.recarray) for events in (state.heap, state.packets)
    )
    return state._replace(heap=heap, packets=packets)
