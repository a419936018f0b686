"""Validity of a schedule from the model's definition alone, independent of the engine.

Every rule is the model of papers M (sections 3 and 4) and I (section 3) or a switch of the
recorded reading. No rule depends on how the planner came to its decisions.
"""

from collections.abc import Iterator
from itertools import chain
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dlsim.errors import ScheduleError
from dlsim.realtime.check_chunks import Chunks, ScheduleArrays, chunk_rules, rule_core
from dlsim.realtime.core import check_tasks as rules
from dlsim.realtime.core.check_chunks import (
    ALPHA,
    COMPUTE_END,
    NODE_COLUMN,
    SEND_START,
    TASK_COLUMN,
    UNBROKEN,
)
from dlsim.realtime.formulas import fastest_counts
from dlsim.realtime.model import IN_ROUNDS, STARTS_TOGETHER, Indices, describe_run
from dlsim.rounding import RELATIVE_ROUNDING, not_after, time_tolerance, times_equal
from dlsim.rules import TestedRule, require_rules
from dlsim.validate import Floats, unwrap_scalar


def _first_broken(rule: str, index: pd.Index, row: int) -> TestedRule:
    """Return a rule with the first row that breaks it, -1 for none."""
    return rule, index[row : row + 1 if row >= 0 else 0], np.zeros(int(row >= 0), dtype=bool)


def _input_rules(schedule: ScheduleArrays) -> Iterator[TestedRule]:
    submitted = schedule.submitted
    if submitted is None:
        return
    if not schedule.index.equals(submitted.labels):
        rows = submitted.labels.get_indexer(schedule.index)
        once = np.bincount(rows[rows >= 0], minlength=len(submitted.labels)) == 1
        yield "every task that arrived is in the table, once", submitted.labels, once
        in_order = rows == np.arange(len(rows))
        yield "the table keeps the tasks in their order", schedule.index, in_order
    yield "a task keeps its arrival", schedule.index, schedule.arrival == submitted.arrival
    yield "a task keeps its size", schedule.index, schedule.sigma == submitted.sigma
    asked = schedule.deadline == submitted.deadline
    if schedule.negotiate > 0:
        most = schedule.negotiate * submitted.deadline
        offered = ~schedule.refused & (schedule.deadline > 0)
        offered &= schedule.deadline <= most + time_tolerance(most, schedule.arrival + most)
        asked |= offered
    yield "a deadline is the one asked for or an offer within the factor", schedule.index, asked


def _task_rules(schedule: ScheduleArrays) -> Iterator[TestedRule]:
    broken = np.full(len(rules.TASK_RULES), UNBROKEN)
    with rule_core(len(schedule.index)) as core:
        core.check_tasks.check_tasks(schedule.columns, schedule.model, broken)
    for rule in np.flatnonzero(broken != UNBROKEN):
        yield _first_broken(rules.TASK_RULES[rule], schedule.index, broken[rule])
    yield from _count_rules(schedule)
    yield from _work_conserving_rules(schedule)
    line = np.flatnonzero(schedule.ran)
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
        at_start = schedule.reading.mn_count == "at_start"
        with rule_core(len(index)) as core:
            first = core.check_tasks.first_needless_node(schedule.columns, schedule.model, at_start)
        yield _first_broken("no fewer nodes would have met the deadline", index, first)


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


def _link_free_times(schedule: ScheduleArrays) -> Floats:
    """Return when the last send of each task ends if tasks share the link, else -inf."""
    if schedule.reading.link != "shared":
        return np.full(len(schedule.index), -np.inf)
    if schedule.policy.partition != "opr":
        return schedule.latest_send_ends
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
    most = np.empty(len(schedule.index), dtype=np.int64)
    most[:] = _most_nodes(schedule)
    # only refused tasks negotiate
    factor = max(1.0, schedule.negotiate) if schedule.policy.admission else 1.0
    # any task of one instant may be the first
    together = schedule.reading.batch_order == "policy" or not schedule.policy.admission
    link_free = _link_free_times(schedule)
    with rule_core(len(most)) as core:
        first = core.check_tasks.first_idle_wait(
            schedule.columns, most, factor, link_free, together, schedule.model
        )
    rule = "a task that finds the cluster idle and can meet its deadline is served"
    yield _first_broken(rule, schedule.index, first)


def _start_rules(schedule: ScheduleArrays, line: Indices) -> Iterator[TestedRule]:
    """Yield whether tasks start as soon as they may; `line` holds the tasks that ran, by start."""
    start, arrival = schedule.start[line], schedule.arrival[line]
    estimate, sent = schedule.estimate[line], _link_free_times(schedule)[line]
    early = schedule.policy.partition not in STARTS_TOGETHER
    if schedule.policy.nodes == "all" and not early:
        before = np.concatenate([[-np.inf], np.fmax(estimate, sent)])[: len(line)]
        starts_after = not_after(before, start, schedule.scale)
        yield _in_line("all-nodes tasks run one after another", schedule, line, starts_after)
        prompt = not_after(start, np.maximum(before, arrival), schedule.scale)
        yield _in_line("the cluster does not idle while a task waits", schedule, line, prompt)
        return
    instants = [estimate]
    if schedule.reading.link == "shared":
        instants.append(sent)
    timed = schedule.policy.order == "dc" or schedule.policy.has_user_rules
    if timed or schedule.reading.commit == "last":  # a newcomer may move starts
        instants.append(schedule.arrival)
    prompt = _starts_at_one_of(instants, start, arrival, schedule)
    if not prompt.all() and (early or schedule.reading.release == "finish"):
        instants += [chunks.times[:, COMPUTE_END] for chunks in schedule.chunk_batches()]
        prompt = _starts_at_one_of(instants, start, arrival, schedule)
    rule = "a task starts on arrival or when nodes or the link get free"
    yield _in_line(rule, schedule, line, prompt)


def _in_line(
    rule: str, schedule: ScheduleArrays, line: Indices, holds: NDArray[np.bool_]
) -> TestedRule:
    """Return a rule of the tasks in a line, with those that break it."""
    return rule, schedule.index.take(line[~holds]), holds[~holds]


def _starts_at_one_of(
    instants: list[Floats], start: Floats, arrival: Floats, schedule: ScheduleArrays
) -> NDArray[np.bool_]:
    """Tell of each start whether it is the arrival or one of the instants, up to rounding."""
    free, holds = np.sort(np.concatenate(instants), kind="stable"), np.empty(len(start), dtype=bool)
    with rule_core(len(start)) as core:
        core.check_tasks.mark_starts(start, arrival, free, schedule.model, holds)
    return holds


def _is_served_in_order(schedule: ScheduleArrays) -> bool:
    """Tell whether no task may pass a waiting one, and ranks do not change with time."""
    policy, reading = schedule.policy, schedule.reading
    passes = policy.overtake or reading.backfill == "on"
    strict = policy.nodes == "all" or not passes or reading.mn_order == "strict"
    return strict and policy.order != "dc" and not policy.is_timed


def _order_rules(schedule: ScheduleArrays, line: Indices) -> Iterator[TestedRule]:
    """Yield whether tasks start in order; `line` holds the tasks that ran, by start."""
    passed = "no task passes a waiting task of smaller rank"
    if schedule.policy.order == "fifo":
        line = np.sort(line)
        start = schedule.start[line]
        behind = not_after(np.maximum.accumulate(start), start, schedule.scale)
        yield _in_line("tasks start in the order of arrival", schedule, line, behind)
        return
    start, arrival, scale = schedule.start[line], schedule.arrival[line], schedule.scale
    if schedule.policy.order == "edf":  # equal deadlines are told apart by nothing but rounding
        due = arrival + schedule.deadline[line]
        slack = RELATIVE_ROUNDING * schedule.deadline[line] + time_tolerance(scale, due)
        keeps = _keeps_rank_order(start, arrival, due, slack, line, scale)
        yield _in_line(passed, schedule, line, keeps)
    elif schedule.submitted is not None:
        exactly = schedule.submitted.key[line], np.zeros(len(line))
        keeps = _keeps_rank_order(start, arrival, *exactly, line, scale)
        yield _in_line(passed, schedule, line, keeps)


def _keeps_rank_order(
    start: Floats, arrival: Floats, rank: Floats, slack: Floats, line: Indices, scale: float
) -> NDArray[np.bool_]:
    """Tell of each start, in order, whether no task of smaller rank waited then, up to slack."""
    since, until = (at + time_tolerance(scale, at) for at in (arrival, start))
    by_arrival = np.argsort(since, kind="stable")
    waiting, holds = np.empty(len(line), dtype=np.int64), np.empty(len(line), dtype=bool)
    with rule_core(len(line)) as core:
        core.check_tasks.mark_ranks(
            start, until, since, by_arrival, rank, slack, line, waiting, holds
        )
    return holds


def _piece_rules(schedule: ScheduleArrays) -> Iterator[TestedRule]:
    """Yield whether the tables of a task are those of its pieces, admitted one by one."""
    assert schedule.submitted is not None
    assert schedule.result.parts is not None
    chunks, parts, owners = schedule.chunks, schedule.result.parts, schedule.submitted.owners
    requested, task = schedule.submitted.requested, chunks.task_and_node[:, TASK_COLUMN]
    alpha, count = chunks.times[:, ALPHA], len(schedule.index)
    total = np.bincount(task, alpha, count + 1)[:count]
    served = times_equal(total, schedule.nodes / requested, 1.0)
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
        found = schedule.result.tasks[name].to_numpy(float)
        wanted = by_task[name].agg(how).to_numpy(float)
        yield rule, schedule.index, (found == wanted) | (np.isnan(found) & np.isnan(wanted))
    inner = Chunks.from_table(parts.chunks, parts.tasks.index)
    same = np.zeros(len(task), dtype=bool)
    if len(inner.times) == len(same):
        same = task == np.append(owners, -1)[inner.task_and_node[:, TASK_COLUMN]]
        same &= chunks.task_and_node[:, NODE_COLUMN] == inner.task_and_node[:, NODE_COLUMN]
        same &= alpha == inner.times[:, ALPHA] / np.append(requested, 1)[task]
        same &= (chunks.times[:, SEND_START:] == inner.times[:, SEND_START:]).all(axis=1)
    assert chunks.labels is not None
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
    tested = chain.from_iterable(group(schedule) for group in (_input_rules, *rooms))
    require_rules(tested, "task", where)
