"""Validity of an outcome from the model's definition alone, independent of the engine.

Nothing here asks how the scheduler came to its choice; what is tested is what then happened:
every request ends exactly once, nothing happens before its cause, no transfer is faster than
its trace, queues are served in their order, and eq. (6) and (7) were obeyed.
"""

from collections.abc import Iterator
from itertools import chain, pairwise
from typing import Any, Protocol

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dlsim.bricks.environment import Environment
from dlsim.bricks.model import Reading, Scheduler
from dlsim.compiled import CLOCK, TOL, latest_finish
from dlsim.errors import ScheduleError
from dlsim.rounding import MAX_ULPS, RELATIVE_ROUNDING, time_tolerance, times_equal
from dlsim.validate import Floats, unwrap_scalar

Rule = tuple[str, pd.Index, Any]

#: Columns of the tables of an outcome.
COLUMNS = {
    "requests": "server fallbacks completion missed cost submitted arrived start end".split(),
    "attempts": "request server submitted estimate arrived promised accepted".split(),
}
#: Stands for an estimate that is infinite, over a link of throughput zero.
FAR = 1e300


class Result(Protocol):
    """What a check may read; the meanings stand in `dlsim.bricks.Outcome`."""

    @property
    def requests(self) -> pd.DataFrame: ...
    @property
    def attempts(self) -> pd.DataFrame: ...
    @property
    def environment(self) -> Environment: ...
    @property
    def scheduler(self) -> Scheduler: ...
    @property
    def reading(self) -> Reading: ...


def _not_before(a: Any, b: Any, span: Any) -> NDArray[np.bool_]:
    return np.asarray(np.asarray(a) >= np.asarray(b)) | times_equal(a, b, span)


def _agrees(told: Any, finish: Any, due: Any, span: Any) -> NDArray[np.bool_]:
    """Tell where a word about "later than due" is right, either where nothing tells."""
    late = np.asarray(finish, dtype=float) - due
    return np.asarray((told == (late > 0)) | (np.abs(late) <= time_tolerance(span, due)))


def _moved(rates: Floats, path: Any, step: float, start: float, end: float) -> float:
    """Integrate the smallest of the traces of a path between two times."""
    steps = rates.shape[1]
    first, last = (int(min(time / step, steps - 1)) for time in (start, end))
    edges = step * np.arange(first, last + 2)
    edges[0], edges[-1] = start, end
    if last > first:
        return float(rates[path, first : last + 1].min(axis=0) @ np.diff(edges))
    return float(rates[path, first].min() * (end - start))


def _transfers(o: Result, starts: Any, ends: Any, data: Any, pairs: Any) -> NDArray[np.bool_]:
    """Tell per transfer whether it took what its path allows, exactly in a fluid network."""
    env, fluid = o.environment, o.reading.network == "fluid"
    rates = env.open_rates if fluid else env.rates
    good, most = np.empty(len(starts), dtype=bool), rates.max(axis=1)
    for k, (start, end, size, pair) in enumerate(zip(starts, ends, data, pairs, strict=True)):
        path = env.topology.of(pair)
        if size <= 0 or not len(path):
            good[k] = end == start
            continue
        grain = (MAX_ULPS + (end - start) / env.step) * np.spacing(end)
        slack = RELATIVE_ROUNDING * size + grain * float(most[path].max())
        # packets wait between links, so that only each link by itself is a bound
        sets = [path] if fluid else path[:, None]
        moved = min(_moved(rates, links, env.step, start, end) for links in sets)
        good[k] = moved >= size - slack and (not fluid or moved <= size + slack)
    return good


def _is_own(o: Result) -> bool:
    """Tell whether the scheduler is a function, which may refuse requests."""
    return callable(o.scheduler.algorithm)


def _request_rules(o: Result) -> Iterator[Rule]:
    env, done = o.environment, o.requests
    given, index = env.requests, o.requests.index
    is_whole = len(index) == len(given)
    same = index == given.index if is_whole else np.zeros(max(1, len(given)), dtype=bool)
    yield "every request is in the table, once, in order", given.index, same
    back, refused = np.isfinite(done["completion"]), done["server"] < 0
    refused &= (done["completion"] == np.inf) & _is_own(o)
    yield "every request is complete", index, back | refused


def _price_rules(o: Result) -> Iterator[Rule]:
    env, done = o.environment, o.requests
    given, index, refused = env.requests, o.requests.index, done["server"] < 0
    performance = env.servers["performance"].to_numpy()
    own = np.where(refused, np.nan, performance[done["server"]])
    priced = times_equal(done["cost"], own, 0.0) | (np.isnan(done["cost"]) & np.isnan(own))
    yield "the cost is the performance of the server that ran it", index, priced
    due = given["deadline"].to_numpy()
    told = _agrees(done["missed"], done["completion"], due, np.abs(due - given["time"]))
    yield "missed means completion after the deadline", index, told


def _submission_rules(o: Result) -> Iterator[Rule]:
    env, done, tries = o.environment, o.requests, o.attempts
    index = done.index
    known = tries["request"].isin(index)
    yield "every submission is of a request", tries.index, known
    by = tries.groupby("request", sort=False)
    count = by.size().reindex(index, fill_value=0)
    refused = done["server"] < 0
    once = count == done["fallbacks"] + ~refused
    yield "a request is submitted once, and once per fallback", index, once
    accepted = by["accepted"].sum().reindex(index, fill_value=0)
    yield "a request is accepted by exactly one server", index, accepted == ~refused
    last = by["accepted"].last().reindex(index)
    yield "the last submission is the accepted one", index, last.eq(True) | refused
    for name in ("server", "submitted", "arrived"):
        last = by[name].last().reindex(index)
        kept = (last == done[name]) | refused
        yield f"the table holds the {name} of the last submission", index, kept
    servers = len(env.servers)
    inside = (tries["server"] >= 0) & (tries["server"] < servers)
    yield "a request goes to a server", tries.index, inside


def _cause_rules(o: Result) -> Iterator[Rule]:
    given, done, tries = o.environment.requests, o.requests, o.attempts
    before = tries.groupby("request", sort=False)["arrived"].shift()
    asked = given["time"].reindex(tries["request"]).to_numpy()
    due = np.where(before.isna(), asked, before)
    index, prompt = pd.Index(tries["request"]), tries["submitted"] == due
    yield "a request is submitted when it comes and when it falls back", index, prompt
    order = np.diff(tries["submitted"], prepend=-np.inf) >= 0
    yield "submissions are in order of time", index, order
    for first, then in pairwise(("submitted", "arrived", "start", "end", "completion")):
        yield f"{first} comes before {then}", done.index, ~(done[first] > done[then])
    early = tries["submitted"] <= tries["arrived"]
    yield "no input arrives before it is sent", index, early


def _transfer_rules(o: Result) -> Iterator[Rule]:
    env, done, tries = o.environment, o.requests, o.attempts
    given, domains = env.requests, env.topology.domains
    what = "no faster than its traces"
    if o.reading.network == "fluid":
        what = "as fast as the slowest trace of its path"
    server = env.servers["domain"].to_numpy()
    client = env.clients["domain"].to_numpy()[given["client"].to_numpy()]
    rows = given.index.get_indexer(pd.Index(tries["request"]))
    home, there, size = client[rows], server[tries["server"]], given["send"].to_numpy()[rows]
    sent = _transfers(o, tries["submitted"], tries["arrived"], size, home * domains + there)
    yield f"an input is sent {what}", pd.Index(tries["request"]), sent
    came = np.isfinite(done["completion"]).to_numpy()
    pairs = (server[done["server"]] * domains + client)[came]
    ran = done[came]
    back = _transfers(o, ran["end"], ran["completion"], given["recv"].to_numpy()[came], pairs)
    yield f"a result is sent {what}", ran.index, back


def _clock_of(env: Environment) -> float:
    """Return where the clock of the queues begins: load traces begin at 0."""
    return env.origin if env.load_traces is None else 0.0


def _capacity(env: Environment, server: int, times: Floats) -> Floats:
    """Return the Mops that a server could have worked from 0 up to each time."""
    speeds: Floats = np.array([env.servers["performance"].iloc[server]], dtype=float)
    if env.load_traces is not None:
        speeds = speeds / (1 + env.load_traces[server])
    worked = np.concatenate([[0.0], np.cumsum(speeds[:-1] * env.step)])
    edges = np.asarray(env.step * np.arange(len(speeds)))
    at = np.maximum(0, np.searchsorted(edges, times, side="right") - 1)
    return np.asarray(worked[at] + (times - edges[at]) * speeds[at])


def _queue(env: Environment, server: int, times: Floats, work: Floats) -> tuple[Floats, Floats]:
    r"""Serve a queue first come, first served, in closed form.

    With arrivals :math:`a_k` and work :math:`w_k` on the scale of Mops that the server could
    have worked, job k ends at :math:`S_k + \max_{j \le k} (a_j - S_{j-1})`, S the sums of w.
    """
    jobs = env.background
    theirs = jobs.of(server) - _clock_of(env)
    sizes = np.broadcast_to(jobs.sizes_of(server), theirs.shape)
    spans = sizes / float(env.servers["performance"].iloc[server])
    first = np.maximum.accumulate(theirs - TOL * spans)  # a job of one instant comes before ours
    at = np.searchsorted(first, times * (1 + TOL / CLOCK), side="right")
    theirs, sizes = theirs[: at[-1]], sizes[: at[-1]]
    arrived = _capacity(env, server, np.insert(theirs, at, times))
    work = np.insert(sizes, at, work)
    total = np.cumsum(work)
    ends = total + np.maximum.accumulate(arrived - (total - work))
    starts = np.maximum(arrived, np.concatenate([[-np.inf], ends[:-1]]))
    mine = at + np.arange(len(times))
    return starts[mine], ends[mine]


def _queue_rules(o: Result) -> Iterator[Rule]:
    env, done = o.environment, o.requests
    ran = np.isfinite(done["end"]).to_numpy()
    done, work, clock = done[ran], env.requests["work"].to_numpy()[ran], _clock_of(env)
    arrived, start, end = (done[k].to_numpy() - clock for k in ("arrived", "start", "end"))
    good = np.ones((3, len(done)), dtype=bool)
    for server in np.unique(done["server"]):
        rows = np.flatnonzero(done["server"] == server)
        rows = rows[np.lexsort((start[rows], arrived[rows]))]
        good[0, rows] = np.diff(start[rows], prepend=-np.inf) >= 0
        good[0, rows[1:]] &= _not_before(start[rows[1:]], end[rows[:-1]], 0.0)
        starts, ends = _queue(env, int(server), arrived[rows], work[rows])
        begun = _capacity(env, int(server), start[rows])
        # a server may stand still between an end and the next start, on its scale of Mops
        ulps = MAX_ULPS + len(rows) + len(env.background.of(int(server)))
        speed = float(env.servers["performance"].iloc[server])
        grain = time_tolerance(0.0, done["end"].to_numpy()[rows]) * speed  # of the table
        good[1, rows] = times_equal(begun, starts, work[rows], ulps, grain)
        ended = _capacity(env, int(server), end[rows])
        good[2, rows] = times_equal(ended, ends, work[rows], ulps, grain)
    yield "a server runs one client job at a time, in order of arrival", done.index, good[0]
    yield "a job starts when all that came before it is done", done.index, good[1]
    yield "a job ends when its work is done", done.index, good[2]


def _fallback_rules(o: Result) -> Iterator[Rule]:
    env, tries, most = o.environment, o.attempts, o.scheduler.max_fallbacks
    if most and not o.reading.fallback_strict:
        most += 1
    fallbacks = o.requests["fallbacks"]
    yield f"a request falls back at most {most} times (eq. 7)", fallbacks.index, fallbacks <= most
    index = pd.Index(tries["request"])
    given = env.requests.loc[tries["request"]]
    due = given["deadline"].to_numpy() + o.scheduler.fallback_slack
    finish = tries["promised"].to_numpy()
    if o.reading.fallback_time == "at_arrival":
        finish = finish + (tries["arrived"] - tries["submitted"]).to_numpy()
    turn = tries.groupby("request", sort=False).cumcount().to_numpy()  # earlier submissions
    told = _agrees(~tries["accepted"], finish, due, np.abs(due - given["time"].to_numpy()))
    good = tries["accepted"] & (turn >= most) | told
    yield "a server accepts unless eq. (6) and (7) hold", index, good
    if env.load_traces is None:
        ran = tries[tries["accepted"]].set_index("request").reindex(o.requests.index)
        backlog = _not_before(ran["promised"], o.requests["end"], 0.0) | (o.requests["server"] < 0)
        yield "the server promises no less than its backlog and the work", ran.index, backlog
    if o.scheduler.exclude_rejecting and not _is_own(o):
        earlier = tries.groupby(["request", "server"], sort=False).cumcount()
        again = (earlier > 0) & (turn < len(env.servers))
        yield "no server is asked twice while another is left", index, ~again


def _known_at(o: Result) -> Floats:
    """Return the time of which the scheduler knew at every submission: probe, or now."""
    time = o.attempts["submitted"].to_numpy(dtype=float)
    if o.reading.predictor == "perfect":
        return time
    probe = o.reading.probe
    return np.asarray(probe * np.floor(latest_finish(time, probe) / probe))


def _entries(o: Result, steps: int) -> NDArray[np.int64]:
    """Return the entry of the traces that was known at every submission."""
    at = latest_finish(_known_at(o), o.environment.step) / o.environment.step
    return np.asarray(np.minimum(at, steps - 1.0).astype(np.int64))


def _inside(
    server: Any, time: Floats, group: Any, begin: Any, end: Any, span: float
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Count what has begun and not ended at a server: fewest and most, as ties may count or not."""
    fewest, most = np.zeros((2, len(time)), dtype=np.int64)
    late = latest_finish(time, span)
    early = 2 * time - late
    for one in np.unique(server):
        rows, mine = server == one, group == one
        begun, ended = np.sort(np.asarray(begin)[mine]), np.sort(np.asarray(end)[mine])

        def up_to(times: Floats, limit: Floats, side: Any, rows: Any = rows) -> Any:
            return np.searchsorted(times, limit[rows], side=side)

        fewest[rows] = up_to(begun, early, "left") - up_to(ended, late, "right")
        most[rows] = up_to(begun, late, "right") - up_to(ended, early, "left")
    return np.maximum(fewest, 0), most


def _loads(o: Result) -> tuple[Floats, Floats] | None:
    """Return bounds of the Load behind every estimate (5); None where no table tells it."""
    env, reading, tries, done = o.environment, o.reading, o.attempts, o.requests
    if reading.load not in ("clients", "ext"):
        return None
    server, outside = tries["server"].to_numpy(), np.full(len(tries), float(env.server_load))
    if env.load_traces is not None:
        outside = env.load_traces[server, _entries(o, env.load_traces.shape[1])]
    low, high = outside.copy(), outside.copy()
    if reading.load == "clients":
        there = (done["server"], done["arrived"], done["end"])
        few, many = _inside(server, _known_at(o), *there, reading.probe)
        low, high = low + few, high + many
    if o.scheduler.load_correction:
        last = "end" if reading.corrected_until == "served" else "completion"
        back = done[last].reindex(tries["request"]).to_numpy()
        until = np.where(tries["accepted"], back, tries["arrived"])
        now = tries["submitted"].to_numpy(dtype=float)
        few, many = _inside(server, now, server, now, until, 0.0)
        pload = o.scheduler.pload
        low, high = low + pload * few, high + pload * (many - 1)  # not itself
    return low, high


def _estimate_rules(o: Result) -> Iterator[Rule]:
    """Yield what eq. (2) says of the estimates, as far as it can be told from outside.

    Where links are predicted by the last probe, or perfectly, and not corrected, both transfers
    are known exactly; so is the work, up to ties, with Load read as client jobs or external.
    """
    env, tries = o.environment, o.attempts
    index, estimate = pd.Index(tries["request"]), tries["estimate"].to_numpy(dtype=float)
    rows = env.requests.index.get_indexer(index)
    given = {name: env.requests[name].to_numpy()[rows] for name in ("send", "recv", "work")}
    server = tries["server"].to_numpy()
    alone = given["work"] / env.servers["performance"].to_numpy()[server]
    yield "no estimate is below the work alone (eq. 2)", index, _not_before(estimate, alone, alone)
    if o.reading.predictor not in ("last", "perfect") or o.scheduler.correct_links:
        return
    home = env.clients["domain"].to_numpy()[env.requests["client"].to_numpy()[rows]]
    there, topology = env.servers["domain"].to_numpy()[server], env.topology
    rates, moves = env.open_rates, np.zeros(len(tries))
    entries, domains = _entries(o, rates.shape[1]), topology.domains
    for name, pairs in (("send", home * domains + there), ("recv", there * domains + home)):
        paths = zip(map(topology.of, pairs), entries, strict=True)
        rate = np.array([rates[path, k].min(initial=np.inf) for path, k in paths], dtype=float)
        with np.errstate(divide="ignore", invalid="ignore"):
            moves += np.where(given[name] > 0, given[name] / rate, 0.0)
    loads = _loads(o)
    low, high = (0.0, np.inf) if loads is None else loads
    with np.errstate(invalid="ignore"):
        least, most = (np.nan_to_num(moves + alone * (1 + x), posinf=FAR) for x in (low, high))
    told = np.nan_to_num(estimate, posinf=FAR)
    what = "the transfers and the work under what was known"
    yield f"no estimate is below {what} (eq. 2)", index, _not_before(told, least, least)
    if loads is not None:
        yield f"no estimate is above {what} (eq. 2)", index, _not_before(most, told, told)


def check_outcome(o: Result) -> None:
    """Raise at the first rule that an outcome breaks."""
    for name, columns in COLUMNS.items():
        for column in columns:
            if column not in getattr(o, name):
                where = f"table {name} needs the column {column}"
                raise ScheduleError(f"{where} ({o.scheduler.name})")
    parts = (
        _request_rules, _submission_rules, _price_rules, _cause_rules, _transfer_rules,
        _queue_rules, _fallback_rules, _estimate_rules,
    )  # fmt: skip
    for rule, index, holds in chain.from_iterable(rules(o) for rules in parts):
        good = np.asarray(holds, dtype=bool)
        if not good.all():
            where = unwrap_scalar(index[int(np.argmin(good))]) if len(index) else "none"
            who = f"{o.scheduler.name}, {o.reading.changes() or 'default reading'}"
            raise ScheduleError(f"{rule}: broken by request {where!r} ({who})")
