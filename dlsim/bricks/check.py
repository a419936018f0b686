"""Validity of an outcome from the model's definition alone, independent of the engine.

Nothing here asks how the scheduler came to its choice; what is tested is what then happened:
every request ends exactly once, nothing happens before its cause, no transfer is faster than
its trace, queues are served first come, first served, and eq. (6) and (7) were obeyed.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dlsim.bricks.environment import Environment
from dlsim.errors import ScheduleError
from dlsim.kernel import TOL

if TYPE_CHECKING:
    from dlsim.bricks.outcome import Outcome

Floats = NDArray[np.float64]
Rule = tuple[str, pd.Index, Any]

#: What a time may differ by that is computed by another route, relative to the clock.
ROUNDING = 1e-9


def _close(a: Any, b: Any) -> NDArray[np.bool_]:
    a, b = np.asarray(a, dtype=float), np.asarray(b, dtype=float)
    return np.asarray(np.abs(a - b) <= ROUNDING * np.maximum(1.0, np.maximum(abs(a), abs(b))))


def _not_before(a: Any, b: Any) -> NDArray[np.bool_]:
    return np.asarray(np.asarray(a) >= np.asarray(b)) | _close(a, b)


def _moved(rates: Floats, step: float, start: float, end: float) -> float:
    """Integrate the smallest of some traces, shape (hops, steps), between two times."""
    steps = rates.shape[1]
    first, last = (int(min(time / step, steps - 1)) for time in (start, end))
    edges = step * np.arange(first, last + 2)
    edges[0], edges[-1] = start, end
    if last > first:
        return float(rates[:, first : last + 1].min(axis=0) @ np.diff(edges))
    return float(rates[:, first].min() * (end - start))


def _transfers(o: "Outcome", starts: Any, ends: Any, data: Any, pairs: Any) -> NDArray[np.bool_]:
    """Tell per transfer whether it took what its path allows, exactly in a fluid network."""
    env, fluid = o.environment, o.reading.network == "fluid"
    rates = env.open_rates if fluid else env.rates
    good = np.empty(len(starts), dtype=bool)
    for k, (start, end, size, pair) in enumerate(zip(starts, ends, data, pairs, strict=True)):
        path = env.topology.hops[env.topology.first[pair] : env.topology.first[pair + 1]]
        if size <= 0 or not len(path):
            good[k] = end == start
            continue
        slack = ROUNDING * (size + max(1.0, end) * float(rates[path].max()))
        # packets wait between links, so that only each link by itself is a bound
        sets = [rates[path]] if fluid else [rates[link : link + 1] for link in path]
        moved = min(_moved(traces, env.step, start, end) for traces in sets)
        good[k] = moved >= size - slack and (not fluid or moved <= size + slack)
    return good


def _request_rules(o: "Outcome") -> Iterator[Rule]:
    env, done, tries = o.environment, o.requests, o.attempts
    given, index = env.requests, o.requests.index
    yield "every request is in the table, once, in order", given.index, _same(index, given.index)
    yield "every request is complete", index, np.isfinite(done["completion"])
    known = tries["request"].isin(index)
    yield "every submission is of a request", tries.index, known
    by = tries.groupby("request", sort=False)
    count = by.size().reindex(index, fill_value=0)
    yield (
        "a request is submitted once, and once per fallback",
        index,
        count == done["fallbacks"] + 1,
    )
    accepted = by["accepted"].sum().reindex(index, fill_value=0)
    yield "a request is accepted by exactly one server", index, accepted == 1
    yield "the last submission is the accepted one", index, by["accepted"].last().reindex(index)
    for name in ("server", "submitted", "arrived"):
        last = by[name].last().reindex(index)
        yield f"the table holds the {name} of the last submission", index, last == done[name]
    performance = env.servers["performance"].to_numpy()
    inside = (tries["server"] >= 0) & (tries["server"] < len(performance))
    yield "a request goes to a server", tries.index, inside
    yield (
        "the cost is the performance of the server",
        index,
        done["cost"] == performance[done["server"]],
    )
    due = given["deadline"].to_numpy()
    late = done["completion"].to_numpy() > due + TOL * np.maximum(1.0, np.abs(due))
    yield "missed means completion after the deadline", index, done["missed"] == late


def _same(a: pd.Index, b: pd.Index) -> NDArray[np.bool_]:
    if len(a) != len(b):
        return np.zeros(max(1, len(b)), dtype=bool)
    return np.asarray(a == b)


def _cause_rules(o: "Outcome") -> Iterator[Rule]:
    given, done, tries = o.environment.requests, o.requests, o.attempts
    before = tries.groupby("request", sort=False)["arrived"].shift()
    asked = given["time"].reindex(tries["request"]).to_numpy()
    due = np.where(before.isna(), asked, before)
    yield (
        "a request is submitted when it comes and when it falls back",
        pd.Index(tries["request"]),
        tries["submitted"] == due,
    )
    order = np.diff(tries["submitted"], prepend=-np.inf) >= 0
    yield "submissions are in order of time", pd.Index(tries["request"]), order
    for first, then in (
        ("submitted", "arrived"),
        ("arrived", "start"),
        ("start", "end"),
        ("end", "completion"),
    ):
        yield f"{first} comes before {then}", done.index, done[first] <= done[then]
    early = tries["submitted"] <= tries["arrived"]
    yield "no input arrives before it is sent", pd.Index(tries["request"]), early


def _transfer_rules(o: "Outcome") -> Iterator[Rule]:
    env, done, tries = o.environment, o.requests, o.attempts
    given, domains = env.requests, env.topology.domains
    what = "no faster than its traces"
    if o.reading.network == "fluid":
        what = "as fast as the slowest trace of its path"
    server, client = env.servers["domain"].to_numpy(), env.clients["domain"].to_numpy()
    rows = given.index.get_indexer(pd.Index(tries["request"]))
    home, there = client[given["client"].to_numpy()[rows]], server[tries["server"]]
    size = given["send"].to_numpy()[rows]
    sent = _transfers(o, tries["submitted"], tries["arrived"], size, home * domains + there)
    yield f"an input is sent {what}", pd.Index(tries["request"]), sent
    home, there = client[given["client"].to_numpy()], server[done["server"]]
    back = _transfers(o, done["end"], done["completion"], given["recv"], there * domains + home)
    yield f"a result is sent {what}", done.index, back


def _capacity(env: Environment, server: int, times: Floats) -> Floats:
    """Return the Mops that a server could have worked from 0 up to each time."""
    speed = float(env.servers["performance"].iloc[server])
    if env.load_traces is None:
        return times * speed
    speeds = speed / (1 + env.load_traces[server])
    edges = env.step * np.arange(len(speeds))
    worked = np.concatenate([[0.0], np.cumsum(speeds[:-1] * env.step)])
    k = np.minimum(times / env.step, len(speeds) - 1).astype(int)
    return np.asarray(worked[k] + (times - edges[k]) * speeds[k])


def _queue(env: Environment, server: int, times: Floats, work: Floats) -> tuple[Floats, Floats]:
    r"""Serve a queue first come, first served, in closed form.

    With arrivals :math:`a_k` and work :math:`w_k` on the scale of Mops that the server could
    have worked, job k ends at :math:`S_k + \max_{j \le k} (a_j - S_{j-1})`, S the sums of w.

    Returns
    -------
    starts, ends : ndarray of float, shape (jobs,)
        On that scale, of the client jobs; background jobs of one instant go first.
    """
    jobs = env.background
    part = slice(jobs.first[server], jobs.first[server + 1])
    theirs = jobs.times[part]
    sizes = np.broadcast_to(jobs.sizes[part] if len(jobs.sizes) > 1 else jobs.sizes, theirs.shape)
    at = np.searchsorted(theirs, times + TOL * np.maximum(1.0, times), side="right")
    arrived = _capacity(env, server, np.insert(theirs, at, times))
    work = np.insert(sizes, at, work)
    total = np.cumsum(work)
    ends = total + np.maximum.accumulate(arrived - (total - work))
    mine = at + np.arange(len(times))
    return (ends - work)[mine], ends[mine]


def _queue_rules(o: "Outcome") -> Iterator[Rule]:
    env, done = o.environment, o.requests
    work = env.requests["work"].to_numpy()
    arrived, start, end = (done[name].to_numpy() for name in ("arrived", "start", "end"))
    good = np.ones((3, len(done)), dtype=bool)
    for server in np.unique(done["server"]):
        rows = np.flatnonzero(done["server"] == server)
        rows = rows[np.lexsort((start[rows], arrived[rows]))]
        good[0, rows] = np.diff(start[rows], prepend=-np.inf) >= 0
        good[0, rows[1:]] &= _not_before(start[rows[1:]], end[rows[:-1]])
        starts, ends = _queue(env, int(server), arrived[rows], work[rows])
        begun = _capacity(env, int(server), start[rows])
        # a server may stand still between an end and the next start, on its scale of Mops
        good[1, rows] = _close(begun, starts)
        good[2, rows] = _close(_capacity(env, int(server), end[rows]), ends)
    yield "a server runs one client job at a time, in order of arrival", done.index, good[0]
    yield "a job starts when all that came before it is done", done.index, good[1]
    yield "a job ends when its work is done", done.index, good[2]


def _fallback_rules(o: "Outcome") -> Iterator[Rule]:
    env, tries, most = o.environment, o.attempts, o.scheduler.max_fallbacks
    if most and not o.reading.fallback_strict:
        most += 1
    fallbacks = o.requests["fallbacks"]
    yield f"a request falls back at most {most} times (eq. 7)", fallbacks.index, fallbacks <= most
    index = pd.Index(tries["request"])
    due = env.requests["deadline"].reindex(tries["request"]).to_numpy() + o.scheduler.fallback_slack
    finish = tries["promised"].to_numpy()
    if o.reading.fallback_time == "at_arrival":
        finish = finish + (tries["arrived"] - tries["submitted"]).to_numpy()
    meets = finish <= due + TOL * np.maximum(1.0, np.abs(due))
    turn = tries.groupby("request", sort=False).cumcount().to_numpy()
    yield (
        "a server accepts unless eq. (6) and (7) hold",
        index,
        tries["accepted"] == (meets | (turn >= most)),
    )
    ran = tries[tries["accepted"]].set_index("request").reindex(o.requests.index)
    if env.load_traces is None:
        backlog = _not_before(ran["promised"], o.requests["end"])
        yield "the server promises no less than its backlog and the work", ran.index, backlog
    if o.scheduler.exclude_rejecting:
        again = tries.duplicated(["request", "server"]) & (turn < len(env.servers))
        yield "no server is asked twice while another is left", index, ~again


def check_outcome(o: "Outcome") -> None:
    """Raise at the first rule that an outcome breaks.

    Parameters
    ----------
    o : Outcome
        The outcome with its environment, scheduler and reading.

    Raises
    ------
    ScheduleError
        Naming the rule, the scheduler, the reading and the first request that breaks it.
    """
    parts = (_request_rules, _cause_rules, _transfer_rules, _queue_rules, _fallback_rules)
    for rules in parts:
        for rule, index, holds in rules(o):
            good = np.asarray(holds, dtype=bool)
            if not good.all():
                where = index[int(np.argmin(good))] if len(index) else "none"
                changes = o.reading.changes() or "default reading"
                raise ScheduleError(
                    f"{rule}: broken by request {where!r} ({o.scheduler.name}, {changes})"
                )
