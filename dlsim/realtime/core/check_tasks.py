"""The rules for the tasks of a schedule, each in a function; a part of `Schedule.check`.

`check_tasks` notes for every rule the first task that breaks it. A rule says what holds by the
model of papers M (sections 3 and 4) and I (section 3); no rule calls the kernels that decide.
"""

import math

import numpy as np

from dlsim.compiled import TOL, compiled
from dlsim.realtime.core.check_chunks import EPS, is_equal, is_not_after

#: The rules in words, in the order in which a broken one is reported.
TASK_RULES = (
    "a task that does not run has no start, nodes, estimate or completion",
    "a task's times are finite",
    "a refused task does not run",
    "a refused task does not miss",
    "an admitted task runs",
    "without admission control no task is refused",
    "a task runs on 1..N nodes",
    "no task starts before it arrives",
    "missed means completion after the deadline",
    "a guaranteed task meets its deadline",
    "completion is start + E(sigma, n)",
    "no task is complete after its estimate",
    "estimate is the completion",
    "a guaranteed task's estimate meets its deadline",
)
#: Places of the rules.
(BLANK, FINITE_TIMES, REFUSED_RUNS, REFUSED_MISSES, ADMITTED_RUNS, ALL_ADMITTED) = range(6)
(NODE_COUNT, AFTER_ARRIVAL, MISSED, IN_TIME, EXECUTION_TIME, NOT_AFTER_ESTIMATE) = range(6, 12)
(ESTIMATE_HOLDS, PROMISE) = range(12, 14)


# --- tolerances, as in `dlsim.rounding` -----------------------------------------------------------


@compiled(inline=True)
def late_by(end, begin, allowed):
    """Return ``end - (begin + allowed)`` without the rounding of the sum (Knuth's TwoSum)."""
    due = begin + allowed
    back = due - begin
    lost = (begin - (due - back)) + (allowed - back)
    return (end - due) - lost


@compiled(inline=True)
def clock_tolerance(span, at, model):
    """Return the largest difference of two times that count as equal."""
    return TOL * span + model.table_ulps * EPS * abs(at)


@compiled(inline=True)
def clock_resolution(at, model):
    """Return the rounding error of an instant in the table; the engine's own clock is finer."""
    return np.nextafter(abs(at), np.inf) - abs(at) if model.origin > 0 else 0.0


# --- the rules of one task ------------------------------------------------------------------------


@compiled(inline=True)
def note_task(holds, rule, row, broken):
    """Note the task of a rule that does not hold, if it stands before the one noted so far."""
    if not holds:
        broken[rule] = min(broken[rule], row)


@compiled(inline=True)
def check_words(row, tasks, model, broken):
    """Check that the entries of a task agree on whether it ran, was refused and was late."""
    ran, refused = tasks.ran[row], tasks.refused[row]
    missed, n = tasks.missed[row], tasks.nodes[row]
    estimate, completion = tasks.estimate[row], tasks.completion[row]
    is_blank = not ran and n == 0 and math.isnan(estimate) and math.isnan(completion)
    note_task(ran or is_blank, BLANK, row, broken)
    endless = math.isinf(tasks.start[row]) or math.isinf(estimate) or math.isinf(completion)
    note_task(not endless, FINITE_TIMES, row, broken)
    note_task(not refused or is_blank, REFUSED_RUNS, row, broken)
    note_task(not refused or not missed, REFUSED_MISSES, row, broken)
    note_task(refused or ran or (missed and model.drops), ADMITTED_RUNS, row, broken)
    note_task(not refused or model.admission, ALL_ADMITTED, row, broken)
    note_task(not ran or 1 <= n <= model.nodes, NODE_COUNT, row, broken)


@compiled(inline=True)
def check_deadline(row, tasks, model, broken):
    """Check that a guaranteed task meets its deadline, and that any other says whether it does."""
    arrival, deadline, completion = tasks.arrival[row], tasks.deadline[row], tasks.completion[row]
    late, missed = late_by(completion, arrival, deadline), tasks.missed[row]
    # paper M's rule gives the completion at once, all others add up the chunks
    roundings = 0 if model.together else tasks.nodes[row] * max(tasks.rounds[row], 1)
    doubt = clock_tolerance(deadline, completion, model) + roundings * EPS * abs(completion)
    told_so = missed == (late > 0) or abs(late) <= doubt or (math.isnan(late) and missed)
    note_task(tasks.refused[row] or told_so, MISSED, row, broken)
    is_guaranteed = tasks.ran[row] and (model.admission or model.drops)
    note_task(not is_guaranteed or late <= doubt, IN_TIME, row, broken)
    if is_guaranteed and not model.together and not model.even:
        later = late_by(tasks.estimate[row], arrival, deadline)
        keeps = later <= clock_tolerance(deadline, tasks.estimate[row], model)
        note_task(keeps, PROMISE, row, broken)


@compiled(inline=True)
def check_execution_time(row, tasks, model, broken):
    """Check that a task takes E(sigma, n), and that its estimate says so."""
    n, completion, estimate = tasks.nodes[row], tasks.completion[row], tasks.estimate[row]
    span = model.setup_time[n] + tasks.sigma[row] * model.time_per_unit[n]
    # n sends in turn, after releases that count as one
    ulps = model.ulps + model.even * (n * max(tasks.rounds[row], 1))
    slack = model.even * clock_tolerance(model.scale, estimate, model)
    takes = is_equal(tasks.start[row] + span, completion, span, ulps, slack, model)
    note_task(takes, EXECUTION_TIME, row, broken)
    note_task(is_equal(estimate, completion, span, ulps, slack, model), ESTIMATE_HOLDS, row, broken)


@compiled(inline=True)
def check_estimate(row, tasks, model, broken):
    """Check that a task ends by its estimate, and then where its chunks were planned before."""
    completion, estimate = tasks.completion[row], tasks.estimate[row]
    roundings, span = tasks.nodes[row] * max(tasks.rounds[row], 1), estimate - tasks.start[row]
    error = model.relative * span + roundings * EPS * abs(estimate)
    note_task(is_not_after(completion - error, estimate, model), NOT_AFTER_ESTIMATE, row, broken)
    if model.planned_by_chunks[tasks.kind[row]]:
        ulps, slack = model.ulps + roundings, clock_tolerance(model.scale, estimate, model)
        same = is_equal(estimate, completion, span, ulps, slack, model)
        note_task(same, ESTIMATE_HOLDS, row, broken)


@compiled
def check_tasks(tasks, model, broken):
    """Note the first task that breaks each rule."""
    for row in range(len(tasks.ran)):
        check_words(row, tasks, model, broken)
        check_deadline(row, tasks, model, broken)
        if not tasks.ran[row]:
            continue
        note_task(
            is_not_after(tasks.arrival[row], tasks.start[row], model), AFTER_ARRIVAL, row, broken
        )
        if not (model.together or model.even):
            check_estimate(row, tasks, model, broken)
        elif 1 <= tasks.nodes[row] <= model.nodes:
            check_execution_time(row, tasks, model, broken)


# --- rules of several tasks -----------------------------------------------------------------------


@compiled
def first_needless_node(tasks, model, at_start):
    """Return the first task that would have met its deadline on one node fewer, or -1."""
    for i in range(len(tasks.ran)):
        n = tasks.nodes[i]
        if not tasks.ran[i] or n <= 1:
            continue
        since = tasks.start[i] if at_start else tasks.arrival[i]
        time = model.setup_time[n - 1] + tasks.sigma[i] * model.time_per_unit[n - 1]
        late = late_by(since, tasks.arrival[i], tasks.deadline[i]) + time
        # half of what the engine allows, so that neither's rounding matters
        if late <= TOL / 2 * tasks.deadline[i] - clock_resolution(since, model):
            return i
    return -1


@compiled
def first_idle_wait(tasks, most, factor, link_free, together, model):
    """Return the first task that an idle cluster could serve in time and does not, or -1.

    `most` are the nodes that a task gets on an idle cluster, `factor` by how much a deadline may
    be extended, and `link_free` when the last send of a task ends. Any task that arrives together
    with others may be the first, if told so.
    """
    busy, behind = -np.inf, 0
    for i in range(len(tasks.ran)):
        arrival, n = tasks.arrival[i], most[i]
        last = arrival + clock_tolerance(model.scale, arrival, model)
        while behind < len(tasks.ran) and (
            tasks.arrival[behind] <= last if together else behind < i
        ):
            if tasks.ran[behind]:
                end = tasks.estimate[behind]
                sent = link_free[behind]
                busy = max(busy, sent if math.isnan(end) or sent > end else end)
            behind += 1
        if tasks.ran[i] or busy > arrival - clock_resolution(arrival, model):
            continue
        time = model.setup_time[n] + tasks.sigma[i] * model.time_per_unit[n]
        if time <= factor * tasks.deadline[i]:
            return i
    return -1


@compiled
def mark_starts(start, arrival, free, model, holds):
    """Tell of each start, in order, whether it is the arrival or an instant of `free` (sorted)."""
    k, last = 0, -np.inf
    for j in range(len(start)):
        until = start[j] + clock_tolerance(model.scale, start[j], model)
        while k < len(free) and free[k] <= until:
            last = free[k]
            k += 1
        holds[j] = is_not_after(start[j], max(last, arrival[j]), model)


# --- order of service -----------------------------------------------------------------------------


@compiled(inline=True)
def ranks_before(one, other, rank, row):
    """Tell whether a task has a smaller rank than another, or the same and stands before it."""
    return rank[one] < rank[other] or (rank[one] == rank[other] and row[one] < row[other])


@compiled
def add_waiting(one, size, waiting, rank, row):
    """Add a task to the binary heap of waiting tasks."""
    i = size
    while i > 0 and ranks_before(one, waiting[(i - 1) // 2], rank, row):
        waiting[i] = waiting[(i - 1) // 2]
        i = (i - 1) // 2
    waiting[i] = one


@compiled
def remove_first_waiting(size, waiting, rank, row):
    """Remove the task of smallest rank from a binary heap of `size` tasks."""
    last, i = waiting[size - 1], 0
    while 2 * i + 1 < size - 1:
        k = 2 * i + 1
        if k + 1 < size - 1 and ranks_before(waiting[k + 1], waiting[k], rank, row):
            k += 1
        if not ranks_before(waiting[k], last, rank, row):
            break
        waiting[i] = waiting[k]
        i = k
    waiting[i] = last


@compiled
def mark_ranks(start, until, since, by_arrival, rank, slack, row, waiting, holds):
    """Tell of each start, in order, whether no task of smaller rank waited then, up to slack.

    Equal ranks are served by row, if there is no slack. A task waits at the starts after `since`,
    its arrival; its own start and those less than a rounding before it are not after `until`.
    """
    size, newcomer, count = 0, 0, len(start)
    for j in range(count):
        while newcomer < count and since[by_arrival[newcomer]] < start[j]:
            add_waiting(by_arrival[newcomer], size, waiting, rank, row)
            size, newcomer = size + 1, newcomer + 1
        while size > 0 and start[waiting[0]] <= until[j]:
            remove_first_waiting(size, waiting, rank, row)
            size -= 1
        holds[j] = True
        if size > 0 and slack[j] == 0:
            holds[j] = not ranks_before(waiting[0], j, rank, row)
        elif size > 0:
            holds[j] = rank[waiting[0]] >= rank[j] - slack[j]
