"""Validity of a schedule from the model's definition alone, independent of the engine.

Every rule is the model of papers M (sections 3 and 4) and I (section 3) or a switch of the
recorded reading. No rule depends on how the planner came to its decisions.
"""

from collections.abc import Iterator
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dlsim.compiled import TOL
from dlsim.errors import ScheduleError
from dlsim.realtime.check_chunks import Chunks, ScheduleArrays, chunk_rules
from dlsim.realtime.formulas import fastest_counts
from dlsim.realtime.model import IN_ROUNDS, SPLIT_KINDS, STARTS_TOGETHER, Indices, describe_run
from dlsim.rounding import (
    MAX_ULPS,
    RELATIVE_ROUNDING,
    not_after,
    overrun,
    time_tolerance,
    times_equal,
)
from dlsim.rules import TestedRule, require_rules
from dlsim.validate import Floats, unwrap_scalar

#: Kinds whose estimate is the completion of their chunks.
_PLANNED_BY_CHUNKS = ("pieces", "rounds from releases", "own")


def _input_rules(schedule: ScheduleArrays) -> Iterator[TestedRule]:
    submitted = schedule.submitted
    if submitted is None:
        return
    rows = submitted.labels.get_indexer(schedule.index)
    once = np.bincount(rows[rows >= 0], minlength=len(submitted.labels)) == 1
    yield "every task that arrived is in the table, once", submitted.labels, once
    yield "the table keeps the tasks in their order", schedule.index, rows == np.arange(len(rows))
    yield "a task keeps its arrival", schedule.index, schedule.arrival == submitted.arrival
    yield "a task keeps its size", schedule.index, schedule.sigma == submitted.sigma
    most = schedule.negotiate * submitted.deadline
    offered = ~schedule.refused & (schedule.deadline > 0) & (schedule.negotiate > 0)
    offered &= schedule.deadline <= most + time_tolerance(most, schedule.arrival + most)
    asked = schedule.deadline == submitted.deadline
    yield (
        "a deadline is the one asked for or an offer within the factor",
        schedule.index,
        asked | offered,
    )


def _task_rules(schedule: ScheduleArrays) -> Iterator[TestedRule]:
    index, ran, refused, n = schedule.index, schedule.ran, schedule.refused, schedule.nodes
    blank = ~ran & (n == 0) & np.isnan(schedule.estimate) & np.isnan(schedule.completion)
    none = "a task that does not run has no start, nodes, estimate or completion"
    yield none, index, ran | blank
    endless = np.isinf([schedule.start, schedule.estimate, schedule.completion]).any(axis=0)
    yield "a task's times are finite", index, ~endless
    yield "a refused task does not run", index, ~refused | blank
    yield "a refused task does not miss", index, ~refused | ~schedule.missed
    may_drop = not schedule.policy.admission and schedule.reading.late == "drop"
    yield "an admitted task runs", index, refused | ran | (schedule.missed & may_drop)
    yield (
        "without admission control no task is refused",
        index,
        ~refused | schedule.policy.admission,
    )
    yield "a task runs on 1..N nodes", index, ~ran | ((n >= 1) & (n <= schedule.cluster.nodes))
    in_time = not_after(schedule.arrival, schedule.start, schedule.scale)
    yield "no task starts before it arrives", index, ~ran | in_time
    late = overrun(schedule.completion, schedule.arrival, schedule.deadline)
    # paper M's rule gives the completion at once, all others add up the chunks
    clock = (schedule.policy.partition != "opr") * schedule.roundings * np.finfo(float).eps
    doubt = time_tolerance(schedule.deadline, schedule.completion)
    doubt += clock * np.abs(schedule.completion)
    told_so = (
        (schedule.missed == (late > 0))
        | (np.abs(late) <= doubt)
        | (np.isnan(late) & schedule.missed)
    )
    yield "missed means completion after the deadline", index, refused | told_so
    guarded = ran & (schedule.policy.admission or may_drop)
    yield "a guaranteed task meets its deadline", index, ~guarded | (late <= doubt)
    if schedule.policy.partition in ("opr", "equal"):
        span = schedule.table.setup_time[n] + schedule.sigma * schedule.table.time_per_unit[n]
        # n sends in turn, after releases that count as one
        even = schedule.policy.partition == "equal"
        loose = (
            MAX_ULPS + even * schedule.roundings,
            even * time_tolerance(schedule.scale, schedule.estimate),
        )
        ends_then = times_equal(schedule.start + span, schedule.completion, span, *loose)
        yield "completion is start + E(sigma, n)", index, ~ran | ends_then
        same = times_equal(schedule.estimate, schedule.completion, span, *loose)
        yield "estimate is the completion", index, ~ran | same
    else:
        span = RELATIVE_ROUNDING * (schedule.estimate - schedule.start)
        span += clock * np.abs(schedule.estimate)
        safe = not_after(schedule.completion - span, schedule.estimate, schedule.scale)
        yield "no task is complete after its estimate", index, ~ran | safe
        by_chunks = np.isin(schedule.kind, [SPLIT_KINDS.index(kind) for kind in _PLANNED_BY_CHUNKS])
        loose = MAX_ULPS + schedule.roundings, time_tolerance(schedule.scale, schedule.estimate)
        same = times_equal(
            schedule.estimate, schedule.completion, schedule.estimate - schedule.start, *loose
        )
        yield "estimate is the completion", index, ~ran | ~by_chunks | same
        later = overrun(schedule.estimate, schedule.arrival, schedule.deadline)
        promised = later <= time_tolerance(schedule.deadline, schedule.estimate)
        yield "a guaranteed task's estimate meets its deadline", index, ~guarded | promised
    yield from _count_rules(schedule)
    yield from _work_conserving_rules(schedule)
    line = np.flatnonzero(ran)
    line = line[np.argsort(schedule.start[line], kind="stable")]
    yield from _start_rules(schedule, line)
    if _is_served_in_order(schedule):
        yield from _order_rules(schedule, line)


def _count_rules(schedule: ScheduleArrays) -> Iterator[TestedRule]:
    index, ran, n = schedule.index, schedule.ran, schedule.nodes
    if schedule.policy.partition == "opr":
        formula = schedule.policy.nodes == "all" and schedule.reading.an_nodes == "all"
        yield "every share is positive", index, schedule.positive | formula
    if schedule.policy.nodes == "user" and schedule.submitted is not None:
        yield (
            "a user's task runs on the nodes asked for",
            index,
            ~ran | (n == schedule.submitted.requested),
        )
    elif schedule.policy.nodes == "all" and schedule.policy.partition == "exact":
        rule = "an all-nodes task runs on all nodes that are free before it ends"
        yield rule, index, _uses_all_free_nodes(schedule)
    elif schedule.policy.nodes == "all":
        wanted = (
            fastest_counts(schedule.sigma, schedule.table)
            if schedule.reading.an_nodes == "best"
            else schedule.cluster.nodes
        )
        yield "an all-nodes task runs on all nodes (or N*)", index, ~ran | (n == wanted)
    elif schedule.policy.nodes == "min" and schedule.policy.partition in ("opr", "equal"):
        fewer = np.maximum(n - 1, 1)
        since = schedule.start if schedule.reading.mn_count == "at_start" else schedule.arrival
        time = (
            schedule.table.setup_time[fewer] + schedule.sigma * schedule.table.time_per_unit[fewer]
        )
        late = overrun(since, schedule.arrival, schedule.deadline) + time
        # half of what the engine allows, so that neither's rounding matters
        enough = (n > 1) & (
            late <= TOL / 2 * schedule.deadline - _clock_resolution(schedule, since)
        )
        yield "no fewer nodes would have met the deadline", index, ~ran | ~enough


def _uses_all_free_nodes(schedule: ScheduleArrays) -> list[bool]:
    """Tell for every task whether other tasks held the nodes that it did not use until it ended."""
    assert schedule.result.runs is not None
    left = (schedule.cluster.nodes - schedule.nodes) * (schedule.cluster.cps > 0)
    good = [True] * len(schedule.index)
    by_turn = np.argsort(schedule.result.runs["turn"].to_numpy(), kind="stable")
    turn = by_turn[np.count_nonzero(~schedule.ran) :]
    for place in np.flatnonzero(left[turn] > 0).tolist():
        i, before = turn[place], turn[max(0, place - schedule.cluster.nodes) : place]
        ends_later = not_after(schedule.completion[i], schedule.estimate[before], schedule.scale)
        good[i] = int(schedule.nodes[before][ends_later].sum()) >= left[i]
    return good


def _clock_resolution(schedule: ScheduleArrays, at: Floats) -> Floats:
    """Return the rounding error of instants in the table; the engine's own clock is finer."""
    return np.spacing(np.abs(at)) * (schedule.origin > 0)


def _link_free_times(schedule: ScheduleArrays) -> Floats:
    """Return when the last send of each task ends if tasks share the link, else -inf."""
    if schedule.reading.link != "shared":
        return np.full(len(schedule.index), -np.inf)
    if schedule.policy.partition != "opr":
        return schedule.reduce_chunks("send_end")
    sending = schedule.sigma * schedule.cluster.cms + schedule.nodes * schedule.cluster.st
    return schedule.start + sending


def _most_nodes(schedule: ScheduleArrays) -> Any:
    """Return how many nodes a task gets at best, on an idle cluster."""
    if schedule.policy.nodes == "user" and schedule.submitted is not None:
        return schedule.submitted.requested
    if schedule.policy.nodes == "all" and schedule.reading.an_nodes == "all":
        return schedule.cluster.nodes
    return fastest_counts(schedule.sigma, schedule.table)


def _work_conserving_rules(schedule: ScheduleArrays) -> Iterator[TestedRule]:
    """Yield whether every task that an idle cluster could serve in time is served."""
    serial = schedule.policy.partition == "pieces" and schedule.reading.link == "shared"
    asks = callable(schedule.policy.nodes) or callable(schedule.policy.partition)
    # here only the engine has a formula
    if schedule.policy.partition in IN_ROUNDS or serial or asks:
        return
    n = _most_nodes(schedule)
    # only refused tasks negotiate
    factor = max(1.0, schedule.negotiate) if schedule.policy.admission else 1.0
    possible = (
        schedule.table.setup_time[n] + schedule.sigma * schedule.table.time_per_unit[n]
        <= factor * schedule.deadline
    )
    ends = np.where(schedule.ran, np.fmax(schedule.estimate, _link_free_times(schedule)), -np.inf)
    busy = np.concatenate([[-np.inf], np.maximum.accumulate(ends)])
    before: Indices = np.arange(len(ends))
    # any task of one instant may be the first
    if schedule.reading.batch_order == "policy" or not schedule.policy.admission:
        last = schedule.arrival + time_tolerance(schedule.scale, schedule.arrival)
        before = np.searchsorted(schedule.arrival, last, side="right")
    taken = busy[before] > schedule.arrival - _clock_resolution(schedule, schedule.arrival)
    served = "a task that finds the cluster idle and can meet its deadline is served"
    yield served, schedule.index, schedule.ran | ~possible | taken


def _start_rules(schedule: ScheduleArrays, line: Indices) -> Iterator[TestedRule]:
    """Yield whether tasks start as soon as they may; `line` holds the tasks that ran, by start."""
    start, arrival, index = schedule.start[line], schedule.arrival[line], schedule.index[line]
    estimate, sent = schedule.estimate[line], _link_free_times(schedule)[line]
    early = schedule.policy.partition not in STARTS_TOGETHER
    if schedule.policy.nodes == "all" and not early:
        before = np.concatenate([[-np.inf], np.fmax(estimate, sent)])[: len(line)]
        starts_after = not_after(before, start, schedule.scale)
        yield "all-nodes tasks run one after another", index, starts_after
        prompt = not_after(start, np.maximum(before, arrival), schedule.scale)
        yield "the cluster does not idle while a task waits", index, prompt
        return
    instants = [estimate, sent]
    timed = schedule.policy.order == "dc" or schedule.policy.has_user_rules
    if timed or schedule.reading.commit == "last":  # a newcomer may move starts
        instants.append(schedule.arrival)
    prompt = _starts_at_one_of(instants, start, arrival, schedule.scale)
    if not prompt.all() and (early or schedule.reading.release == "finish"):
        instants += [chunks.compute_end for _, chunks in schedule.chunk_batches()]
        prompt = _starts_at_one_of(instants, start, arrival, schedule.scale)
    yield "a task starts on arrival or when nodes or the link get free", index, prompt


def _starts_at_one_of(
    instants: list[Floats], start: Floats, arrival: Floats, scale: float
) -> NDArray[np.bool_]:
    """Tell of each start whether it is the arrival or one of the instants, up to rounding."""
    free = np.sort(np.concatenate([[-np.inf], *instants]))
    until = start + time_tolerance(scale, start)
    last = free[np.searchsorted(free, until, side="right") - 1]
    return not_after(start, np.maximum(last, arrival), scale)


def _is_served_in_order(schedule: ScheduleArrays) -> bool:
    """Tell whether no task may pass a waiting one, and ranks do not change with time."""
    policy, reading = schedule.policy, schedule.reading
    passes = policy.overtake or reading.backfill == "on"
    strict = policy.nodes == "all" or not passes or reading.mn_order == "strict"
    return strict and policy.order != "dc" and not policy.is_timed


def _order_rules(schedule: ScheduleArrays, line: Indices) -> Iterator[TestedRule]:
    """Yield whether tasks start in order; `line` holds the tasks that ran, by start."""
    start, arrival, index = schedule.start[line], schedule.arrival[line], schedule.index[line]
    passed = "no task passes a waiting task of smaller rank"
    if schedule.policy.order == "fifo":
        line = np.sort(line)
        behind = not_after(
            np.maximum.accumulate(schedule.start[line]), schedule.start[line], schedule.scale
        )
        yield "tasks start in the order of arrival", schedule.index[line], behind
    elif schedule.policy.order == "edf":  # equal deadlines are told apart by nothing but rounding
        due = arrival + schedule.deadline[line]
        slack = RELATIVE_ROUNDING * schedule.deadline[line] + time_tolerance(schedule.scale, due)
        yield passed, index, _keeps_rank_order(start, arrival, due, slack, line, schedule.scale)
    elif schedule.submitted is not None:
        exactly = schedule.submitted.key[line], np.zeros(len(line))
        yield passed, index, _keeps_rank_order(start, arrival, *exactly, line, schedule.scale)


def _keeps_rank_order(
    start: Floats, arrival: Floats, rank: Floats, slack: Floats, line: Indices, scale: float
) -> NDArray[np.bool_]:
    """Tell of each start, in order, whether no task of smaller rank waited then, up to slack."""
    by_rank = np.lexsort((line, rank))
    place = np.argsort(by_rank)  # equal ranks are served by row
    # a task waits at the starts between its arrival and its own
    since = np.searchsorted(start, arrival + time_tolerance(scale, arrival), side="right")
    until = np.searchsorted(start + time_tolerance(scale, start), start, side="left")
    bound = np.where(slack == 0, place, np.searchsorted(rank[by_rank], rank - slack))
    return _least_over_ranges(place, since, until) >= bound


def _least_over_ranges(values: Indices, since: Indices, until: Indices) -> Indices:
    """Return the least value at every place of the line, where value k is from since to until - 1.

    A range is the union of two ranges whose length is a power of two; a range of such a length
    passes its least value on to its halves.
    """
    least = np.full(len(values), len(values))  # more than any place
    length = np.maximum(until - since, 0)
    power = np.frexp(length)[1] - 1  # of the largest power of two in the length; -1 of nothing
    for k in range(power.max(initial=-1), -1, -1):
        here = power == k
        np.minimum.at(least, since[here], values[here])
        np.minimum.at(least, until[here] - 2**k, values[here])
        if half := 2**k // 2:
            passed_on = np.minimum(least[half:], least[:-half])
            least[half:] = passed_on
    return least


def _piece_rules(schedule: ScheduleArrays) -> Iterator[TestedRule]:
    """Yield whether the tables of a task are those of its pieces, admitted one by one."""
    assert schedule.submitted is not None
    assert schedule.result.parts is not None
    chunks, parts, owners = schedule.chunks, schedule.result.parts, schedule.submitted.owners
    served = times_equal(
        chunks.total(chunks.alpha), schedule.nodes / schedule.submitted.requested, 1.0
    )
    yield "a task's pieces are those that were admitted", schedule.index, served
    by_task, words = parts.tasks.groupby(owners), "a task is complete when its last piece is"
    for name, how, rule in (
        ("completion", "max", words),
        ("start", "min", "a task starts with its first piece"),
        ("estimate", "max", "a task's estimate is that of its last piece"),
        ("nodes", "sum", "a task has a node for every piece that was admitted"),
        ("admitted", "any", "a task is admitted if one of its pieces is"),
        ("missed", "any", "a task misses its deadline if one of its pieces does"),
    ):
        found, wanted = (
            column.to_numpy(float)
            for column in (schedule.result.tasks[name], by_task[name].agg(how))
        )
        yield rule, schedule.index, (found == wanted) | (np.isnan(found) & np.isnan(wanted))
    inner, same = (
        Chunks.from_table(parts.chunks, parts.tasks.index),
        np.zeros(len(chunks.task), dtype=bool),
    )
    if len(inner.task) == len(same):
        same = chunks.task == np.append(owners, -1)[inner.task]
        same &= (
            chunks.alpha == inner.alpha / np.append(schedule.submitted.requested, 1)[chunks.task]
        )
        for name in ("node", "send_start", "send_end", "compute_end"):
            same &= getattr(chunks, name) == getattr(inner, name)
    yield "a task's chunks are those of its pieces", chunks.labels, same


def check_schedule(result: Any, strict: bool = False) -> None:
    """Raise at the first rule that a `dlsim.realtime.Schedule` breaks."""
    if result.parts is not None:
        check_schedule(result.parts)
    schedule = ScheduleArrays(result)
    where = describe_run(result.name, schedule.reading)
    if strict and schedule.policy.partition == "opr" and not schedule.positive.all():
        task = unwrap_scalar(schedule.index[~schedule.positive][0])
        raise ScheduleError(
            f"every share is positive: broken by task {task!r} ({where}),"
            " whose n exceeds N*; E(N) is then a formula, not a schedule (reading an_nodes='best'"
            " avoids it)"
        )
    rooms = (_task_rules, chunk_rules) if result.parts is None else (_piece_rules,)
    rules = chain.from_iterable(group(schedule) for group in (_input_rules, *rooms))
    require_rules(rules, "task", where)
