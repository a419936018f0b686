"""Validity of a result from the model's definition alone, independent of the engine.

No rule asks how the scheduler came to its choice. The rules test what then happened: every
request ends exactly once, nothing happens before its cause, no transfer is faster than its
trace, queues are served in their order, and eq. (6) and (7) were obeyed.
"""

from collections.abc import Iterator
from itertools import chain, pairwise
from typing import Any, Protocol

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dlsim.bricks.environment import Environment
from dlsim.bricks.model import Policy, Reading
from dlsim.compiled import CLOCK_DIVISOR, TOL, deadline_with_tolerance
from dlsim.errors import ScheduleError
from dlsim.rounding import MAX_ULPS, RELATIVE_ROUNDING, time_tolerance, times_equal
from dlsim.rules import TestedRule, require_rules
from dlsim.validate import Floats

#: Columns of the tables of a result.
RESULT_COLUMNS = {
    "requests": "server fallbacks completion missed cost submitted arrived start end".split(),
    "attempts": "request server submitted estimate arrived promised accepted".split(),
}
#: Stands for an estimate that is infinite, over a link of throughput zero.
INFINITE_ESTIMATE = 1e300


class ResultTables(Protocol):
    """What a check may read; `dlsim.bricks.GridResult` says what the members mean."""

    @property
    def requests(self) -> pd.DataFrame: ...
    @property
    def attempts(self) -> pd.DataFrame: ...
    @property
    def environment(self) -> Environment: ...
    @property
    def policy(self) -> Policy: ...
    @property
    def reading(self) -> Reading: ...


def _at_least(values: Any, bounds: Any, span: Any) -> NDArray[np.bool_]:
    """Tell where values are at least their bounds, within the tolerance."""
    return np.asarray(np.asarray(values) >= np.asarray(bounds)) | times_equal(values, bounds, span)


def _lateness_is_right(reported: Any, finish: Any, due: Any, span: Any) -> NDArray[np.bool_]:
    """Tell where a report of "later than due" is right; within the tolerance both answers are."""
    late = np.asarray(finish, dtype=float) - due
    return np.asarray((reported == (late > 0)) | (np.abs(late) <= time_tolerance(span, due)))


def _request_rules(result: ResultTables) -> Iterator[TestedRule]:
    """Yield the rules that every request is in the table and has ended."""
    requests, expected = result.requests, result.environment.requests.index
    is_in_order: Any = np.zeros(max(1, len(expected)), dtype=bool)
    if len(requests) == len(expected):
        is_in_order = requests.index == expected
    yield "every request is in the table, once, in order", expected, is_in_order
    completion = requests["completion"]
    is_refused = requests["server"] < 0  # as only a user's function may do
    is_refused &= (completion == np.inf) & callable(result.policy.algorithm)
    yield "every request is complete", requests.index, np.isfinite(completion) | is_refused


def _price_rules(result: ResultTables) -> Iterator[TestedRule]:
    """Yield the rules of the columns cost and missed."""
    env, requests = result.environment, result.requests
    is_refused = requests["server"] < 0
    performance = env.servers["performance"].to_numpy()
    price = np.where(is_refused, np.nan, performance[requests["server"]])
    cost = requests["cost"]
    is_right = times_equal(cost, price, 0.0) | (np.isnan(cost) & np.isnan(price))
    yield "the cost is the performance of the server that ran it", requests.index, is_right
    due = env.requests["due"].to_numpy()
    span = np.abs(due - env.requests["arrival"])
    is_right = _lateness_is_right(requests["missed"], requests["completion"], due, span)
    yield "missed means completion after the deadline", requests.index, is_right


def _submission_rules(result: ResultTables) -> Iterator[TestedRule]:
    """Yield the rules that tie submissions to requests."""
    requests, attempts = result.requests, result.attempts
    index, is_refused = requests.index, requests["server"] < 0
    is_known = attempts["request"].isin(index)
    yield "every submission is of a request", attempts.index, is_known
    by_request = attempts.groupby("request", sort=False)
    count = by_request.size().reindex(index, fill_value=0)
    expected = requests["fallbacks"] + ~is_refused
    yield "a request is submitted once, and once per fallback", index, count == expected
    accepted = by_request["accepted"].sum().reindex(index, fill_value=0)
    yield "a request is accepted by exactly one server", index, accepted == ~is_refused
    last_accepted = by_request["accepted"].last().reindex(index)
    is_right = last_accepted.eq(True) | is_refused
    yield "the last submission is the accepted one", index, is_right
    for name in ("server", "submitted", "arrived"):
        last = by_request[name].last().reindex(index)
        is_kept = (last == requests[name]) | is_refused
        yield f"the table holds the {name} of the last submission", index, is_kept
    is_server = attempts["server"].between(0, len(result.environment.servers) - 1)
    yield "a request goes to a server", attempts.index, is_server


def _cause_rules(result: ResultTables) -> Iterator[TestedRule]:
    """Yield the rules that nothing happens before its cause."""
    requests, attempts = result.requests, result.attempts
    attempt_requests = pd.Index(attempts["request"])
    fallback = attempts.groupby("request", sort=False)["arrived"].shift()
    request_time = result.environment.requests["arrival"].reindex(attempts["request"]).to_numpy()
    cause = np.where(fallback.isna(), request_time, fallback)
    is_prompt = attempts["submitted"] == cause
    rule = "a request is submitted when it comes and when it falls back"
    yield rule, attempt_requests, is_prompt
    is_sorted = np.diff(attempts["submitted"], prepend=-np.inf) >= 0
    yield "submissions are in order of time", attempt_requests, is_sorted
    for first, then in pairwise(("submitted", "arrived", "start", "end", "completion")):
        # a comparison with the NaN of a refused request is not a fault
        yield f"{first} comes before {then}", requests.index, ~(requests[first] > requests[then])
    is_later = attempts["submitted"] <= attempts["arrived"]
    yield "no input arrives before it is sent", attempt_requests, is_later


def _data_moved(rates: Floats, path: Any, step: float, start: float, end: float) -> float:
    """Integrate the smallest of the traces of a path between two times."""
    steps = rates.shape[1]
    first, last = (int(min(time / step, steps - 1)) for time in (start, end))
    edges = step * np.arange(first, last + 2)
    edges[0], edges[-1] = start, end
    if last > first:
        return float(rates[path, first : last + 1].min(axis=0) @ np.diff(edges))
    return float(rates[path, first].min() * (end - start))


def _transfers_are_right(
    result: ResultTables, starts: Any, ends: Any, sizes: Any, pairs: Any
) -> NDArray[np.bool_]:
    """Tell per transfer whether it took what its path allows, exactly in a fluid network."""
    env, is_fluid = result.environment, result.reading.network == "fluid"
    rates = env.available_rates if is_fluid else env.rates
    is_right, highest = np.empty(len(starts), dtype=bool), rates.max(axis=1)
    transfers = zip(starts, ends, sizes, pairs, strict=True)
    for number, (start, end, size, pair) in enumerate(transfers):
        path = env.topology.links_of(pair)
        if size <= 0 or not len(path):
            is_right[number] = end == start
            continue
        clock_error = (MAX_ULPS + (end - start) / env.step) * np.spacing(end)
        slack = RELATIVE_ROUNDING * size + clock_error * float(highest[path].max())
        # packets wait between links, so that only each link by itself is a bound
        sets = [path] if is_fluid else path[:, None]
        moved = min(_data_moved(rates, links, env.step, start, end) for links in sets)
        is_enough, is_too_much = moved >= size - slack, moved > size + slack
        is_right[number] = is_enough and not (is_fluid and is_too_much)
    return is_right


def _transfer_rules(result: ResultTables) -> Iterator[TestedRule]:
    """Yield the rules of the durations of transfers."""
    env, requests, attempts = result.environment, result.requests, result.attempts
    domains, index = env.topology.domains, env.requests.index
    speed = "no faster than its traces"
    if result.reading.network == "fluid":
        speed = "as fast as the slowest trace of its path"
    server_domain = env.servers["domain"].to_numpy()
    client_domain = env.clients["domain"].to_numpy()[env.requests["client"].to_numpy()]
    rows = index.get_indexer(pd.Index(attempts["request"]))
    pairs = client_domain[rows] * domains + server_domain[attempts["server"]]
    sizes = env.requests["send"].to_numpy()[rows]
    is_right = _transfers_are_right(
        result, attempts["submitted"], attempts["arrived"], sizes, pairs
    )
    yield f"an input is sent {speed}", pd.Index(attempts["request"]), is_right
    is_back = np.isfinite(requests["completion"]).to_numpy()
    returned = requests[is_back]
    pairs = server_domain[returned["server"]] * domains + client_domain[is_back]
    sizes = env.requests["recv"].to_numpy()[is_back]
    is_right = _transfers_are_right(result, returned["end"], returned["completion"], sizes, pairs)
    yield f"a result is sent {speed}", returned.index, is_right


def _clock_start(env: Environment) -> float:
    """Return where the clock of the queues begins: load traces begin at 0."""
    return env.origin if env.load_traces is None else 0.0


def _work_possible(env: Environment, server: int, times: Floats) -> Floats:
    """Return the Mops that a server could have worked from 0 up to each time."""
    speeds: Floats = np.array([env.servers["performance"].iloc[server]], dtype=float)
    if env.load_traces is not None:
        speeds = speeds / (1 + env.load_traces[server])
    at_edges = np.concatenate([[0.0], np.cumsum(speeds[:-1] * env.step)])
    edges = np.asarray(env.step * np.arange(len(speeds)))
    entries = np.maximum(0, np.searchsorted(edges, times, side="right") - 1)
    return np.asarray(at_edges[entries] + (times - edges[entries]) * speeds[entries])


def _serve_queue(
    env: Environment, server: int, times: Floats, work: Floats
) -> tuple[Floats, Floats]:
    r"""Return when client jobs start and end, served with the background first come, first served.

    With arrivals :math:`a_k` and work :math:`w_k` on the scale of Mops that the server could
    have worked, job k ends at :math:`S_k + \max_{j \le k} (a_j - S_{j-1})`, S the sums of w.
    Starts and ends are on that scale, too.
    """
    background = env.background
    background_times = background.times_of(server) - _clock_start(env)
    sizes = np.broadcast_to(background.sizes_of(server), background_times.shape)
    spans = sizes / float(env.servers["performance"].iloc[server])
    # of two jobs that arrive at one instant, the background job comes first
    earliest = np.maximum.accumulate(background_times - TOL * spans)
    before = np.searchsorted(earliest, times * (1 + TOL / CLOCK_DIVISOR), side="right")
    background_times, sizes = background_times[: before[-1]], sizes[: before[-1]]
    arrived = _work_possible(env, server, np.insert(background_times, before, times))
    all_work = np.insert(sizes, before, work)
    total = np.cumsum(all_work)
    ends = total + np.maximum.accumulate(arrived - (total - all_work))
    starts = np.maximum(arrived, np.concatenate([[-np.inf], ends[:-1]]))
    client_jobs = before + np.arange(len(times))
    return starts[client_jobs], ends[client_jobs]


def _queue_rules(result: ResultTables) -> Iterator[TestedRule]:
    """Yield the rules of the servers' queues."""
    env, clock_start = result.environment, _clock_start(result.environment)
    was_run = np.isfinite(result.requests["end"]).to_numpy()
    requests, work = result.requests[was_run], env.requests["work"].to_numpy()[was_run]
    arrived, start, end = (
        requests[name].to_numpy() - clock_start for name in ("arrived", "start", "end")
    )
    in_order, starts_right, ends_right = np.ones((3, len(requests)), dtype=bool)
    for server in np.unique(requests["server"]):
        rows = np.flatnonzero(requests["server"] == server)
        rows = rows[np.lexsort((start[rows], arrived[rows]))]
        in_order[rows] = np.diff(start[rows], prepend=-np.inf) >= 0
        in_order[rows[1:]] &= _at_least(start[rows[1:]], end[rows[:-1]], 0.0)
        expected_start, expected_end = _serve_queue(env, int(server), arrived[rows], work[rows])
        # between an end and the next start the Mops that a server could work may stand still
        begun = _work_possible(env, int(server), start[rows])
        ended = _work_possible(env, int(server), end[rows])
        ulps = MAX_ULPS + len(rows) + len(env.background.times_of(int(server)))
        speed = float(env.servers["performance"].iloc[server])
        clock_error = time_tolerance(0.0, requests["end"].to_numpy()[rows]) * speed
        starts_right[rows] = times_equal(begun, expected_start, work[rows], ulps, clock_error)
        ends_right[rows] = times_equal(ended, expected_end, work[rows], ulps, clock_error)
    index = requests.index
    yield "a server runs one client job at a time, in order of arrival", index, in_order
    yield "a job starts when all that came before it is done", index, starts_right
    yield "a job ends when its work is done", index, ends_right


def _fallback_rules(result: ResultTables) -> Iterator[TestedRule]:
    """Yield the rules of Fallback, eq. (6) and (7)."""
    env, requests, attempts = result.environment, result.requests, result.attempts
    most = result.policy.max_fallbacks
    if most and not result.reading.fallback_strict:
        most += 1
    fallbacks, index = requests["fallbacks"], pd.Index(attempts["request"])
    rule = f"a request falls back at most {most} times (eq. 7)"
    yield rule, requests.index, fallbacks <= most

    given = env.requests.loc[attempts["request"]]
    due = given["due"].to_numpy() + result.policy.fallback_slack
    finish = attempts["promised"].to_numpy()
    if result.reading.fallback_time == "at_arrival":
        finish = finish + (attempts["arrived"] - attempts["submitted"]).to_numpy()
    earlier_attempts = attempts.groupby("request", sort=False).cumcount().to_numpy()
    span = np.abs(due - given["arrival"].to_numpy())
    is_right = _lateness_is_right(~attempts["accepted"], finish, due, span)
    is_last_try = attempts["accepted"] & (earlier_attempts >= most)
    yield "a server accepts unless eq. (6) and (7) hold", index, is_last_try | is_right

    if env.load_traces is None:
        accepted = attempts[attempts["accepted"]].set_index("request").reindex(requests.index)
        is_possible = _at_least(accepted["promised"], requests["end"], 0.0)
        is_possible |= (requests["server"] < 0).to_numpy()
        rule = "the server promises no less than its backlog and the work"
        yield rule, accepted.index, is_possible
    if result.policy.exclude_rejecting and not callable(result.policy.algorithm):
        earlier = attempts.groupby(["request", "server"], sort=False).cumcount()
        is_again = (earlier > 0) & (earlier_attempts < len(env.servers))
        yield "no server is asked twice while another is left", index, ~is_again


def _observation_times(result: ResultTables) -> Floats:
    """Return the time of the measurements behind every submission: of the last probe, or now."""
    time = result.attempts["submitted"].to_numpy(dtype=float)
    if result.reading.predictor == "perfect":
        return time
    probe = result.reading.probe
    return np.asarray(probe * np.floor(deadline_with_tolerance(time, probe) / probe))


def _observed_entries(result: ResultTables, steps: int) -> NDArray[np.int64]:
    """Return the entry of the traces that was known at every submission."""
    step = result.environment.step
    entries = deadline_with_tolerance(_observation_times(result), step) / step
    return np.asarray(np.minimum(entries, steps - 1.0).astype(np.int64))


def _count_present(
    server: Any, time: Floats, jobs_server: Any, begin: Any, end: Any, span: float
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Count the jobs that have begun and not ended at a server, at every time.

    Two counts are returned, the fewest and the most: a job that begins or ends at the very
    instant may count or not.
    """
    fewest, most = np.zeros((2, len(time)), dtype=np.int64)
    late = deadline_with_tolerance(time, span)
    early = 2 * time - late
    for one in np.unique(server):
        rows, jobs = server == one, jobs_server == one
        begun, ended = np.sort(np.asarray(begin)[jobs]), np.sort(np.asarray(end)[jobs])

        def count_until(times: Floats, limit: Floats, side: Any, rows: Any = rows) -> Any:
            return np.searchsorted(times, limit[rows], side=side)

        fewest[rows] = count_until(begun, early, "left") - count_until(ended, late, "right")
        most[rows] = count_until(begun, late, "right") - count_until(ended, early, "left")
    return np.maximum(fewest, 0), most


def _load_bounds(result: ResultTables) -> tuple[Floats, Floats] | None:
    """Return bounds of the Load behind every estimate (5), or None if no table tells it."""
    env, reading, attempts = result.environment, result.reading, result.attempts
    if reading.load not in ("clients", "ext"):
        return None
    server = attempts["server"].to_numpy()
    external = np.full(len(attempts), float(env.server_load))
    if env.load_traces is not None:
        external = env.load_traces[server, _observed_entries(result, env.load_traces.shape[1])]
    low, high = external.copy(), external.copy()
    requests = result.requests
    if reading.load == "clients":
        jobs = (requests["server"], requests["arrived"], requests["end"])
        fewest, most = _count_present(server, _observation_times(result), *jobs, reading.probe)
        low, high = low + fewest, high + most
    if result.policy.load_correction:
        last = "end" if reading.corrected_until == "served" else "completion"
        completed = requests[last].reindex(attempts["request"]).to_numpy()
        until = np.where(attempts["accepted"], completed, attempts["arrived"])
        now = attempts["submitted"].to_numpy(dtype=float)
        fewest, most = _count_present(server, now, server, now, until, 0.0)
        pload = result.policy.pload
        low, high = low + pload * fewest, high + pload * (most - 1)  # a job does not count itself
    return low, high


def _estimate_rules(result: ResultTables) -> Iterator[TestedRule]:
    """Yield what eq. (2) says of the estimates, as far as the tables tell it.

    If links are predicted by the last probe, or perfectly, and not corrected, both transfers
    are known exactly; so is the work, up to ties, with Load read as client jobs or external.
    """
    env, attempts = result.environment, result.attempts
    index, estimate = pd.Index(attempts["request"]), attempts["estimate"].to_numpy(dtype=float)
    rows = env.requests.index.get_indexer(index)
    given = {name: env.requests[name].to_numpy()[rows] for name in ("send", "recv", "work")}
    server = attempts["server"].to_numpy()
    work_alone = given["work"] / env.servers["performance"].to_numpy()[server]
    is_right = _at_least(estimate, work_alone, work_alone)
    yield "no estimate is below the work alone (eq. 2)", index, is_right
    if result.reading.predictor not in ("last", "perfect") or result.policy.correct_links:
        return
    client = env.requests["client"].to_numpy()[rows]
    client_domain = env.clients["domain"].to_numpy()[client]
    server_domain = env.servers["domain"].to_numpy()[server]
    rates, topology = env.available_rates, env.topology
    entries, transfers = _observed_entries(result, rates.shape[1]), np.zeros(len(attempts))
    for name, pairs in (
        ("send", client_domain * topology.domains + server_domain),
        ("recv", server_domain * topology.domains + client_domain),
    ):
        paths = zip(map(topology.links_of, pairs), entries, strict=True)
        rate = np.array([rates[path, k].min(initial=np.inf) for path, k in paths], dtype=float)
        with np.errstate(divide="ignore", invalid="ignore"):
            transfers += np.where(given[name] > 0, given[name] / rate, 0.0)
    bounds = _load_bounds(result)
    with np.errstate(invalid="ignore"):
        least, most = (
            np.nan_to_num(transfers + work_alone * (1 + load), posinf=INFINITE_ESTIMATE)
            for load in bounds or (0.0, np.inf)
        )
    finite = np.nan_to_num(estimate, posinf=INFINITE_ESTIMATE)
    what = "the transfers and the work under what was known"
    yield f"no estimate is below {what} (eq. 2)", index, _at_least(finite, least, least)
    if bounds is not None:
        yield f"no estimate is above {what} (eq. 2)", index, _at_least(most, finite, finite)


def check_result(result: ResultTables) -> None:
    """Raise a ScheduleError at the first rule that a result breaks."""
    for name, columns in RESULT_COLUMNS.items():
        for column in columns:
            if column not in getattr(result, name):
                missing = f"table {name} needs the column {column}"
                raise ScheduleError(f"{missing} ({result.policy.name})")
    groups = (
        _request_rules,
        _submission_rules,
        _price_rules,
        _cause_rules,
        _transfer_rules,
        _queue_rules,
        _fallback_rules,
        _estimate_rules,
    )
    rules = chain.from_iterable(group(result) for group in groups)
    run = f"{result.policy.name}, {result.reading.changes() or 'default reading'}"
    require_rules(rules, "request", run)
