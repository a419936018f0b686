"""The orders of papers M and I: the rank of a task, and ties. The smallest rank is served first.

Ranks that are equal are told apart by one integer, a task's `place`, which `tie_places` gives and
`precedes` reads.
"""

import numpy as np
from numpy.typing import NDArray

from dlsim.compiled import compiled, times_tie, zero_recarray
from dlsim.realtime.core.formulas import cost_derivative
from dlsim.realtime.core.state import CALLS_USER, TASK, RecordArray, set_pending
from dlsim.realtime.core.user_rules import ORDER_RULE, ask_rule

#: Orders that the core ranks by: a key that is known before the run (the arrival, or what a
#: user's function makes of the table), the absolute deadline, the cost derivative, and a user's
#: function of the instant.
STATIC_ORDER, DEADLINE_ORDER, MCDF_ORDER, USER_ORDER = range(4)

Numbers = NDArray[np.float64] | NDArray[np.int64] | float

# Shell sort: faster than quadratic on long queues, an insertion sort on short ones.
_GAPS = (4193, 1577, 701, 301, 132, 57, 23, 10, 4, 1)


# --- ranks ----------------------------------------------------------------------------------------


@compiled(inline=True)
def set_rank(task, state):
    """Set the rank of a newcomer; in an order that changes with time it keeps the latest one."""
    order = state.rules.order
    if order == DEADLINE_ORDER:
        state.tasks[task].rank = state.tasks[task].due
    elif order != STATIC_ORDER and order != MCDF_ORDER and order != USER_ORDER:
        raise ValueError("no order has this code")


@compiled(inline=True)
def mcdf_rank(task, nodes, state):
    """Return the rank in MCDF's order: largest cost derivative W(n + 1) - W(n) first (paper M)."""
    rules, table, sigma = state.rules, state.table, state.tasks[task].sigma
    top = rules.infinite_top
    return -cost_derivative(sigma, nodes, rules.nodes, top, table.dc_slope, table.dc_offset)


@compiled(inline=True)
def rank_at(task, nodes, t, idle, waiting, state):
    """Return the rank at t of a task that would run on so many nodes from then on."""
    if CALLS_USER and state.rules.order == USER_ORDER:
        return ask_rule(ORDER_RULE, task, nodes, t, idle, waiting, state)
    if state.rules.order == MCDF_ORDER:
        return mcdf_rank(task, nodes, state)
    return state.tasks[task].rank


# --- ties -----------------------------------------------------------------------------------------


def tie_places(tasks: RecordArray) -> NDArray[np.int64]:
    """Return the place of each task among tasks of equal rank, from 0 up: the table order."""
    return np.arange(len(tasks))


def fresh_tasks(
    arrival: Numbers, sigma: Numbers, due: Numbers, rank: Numbers, requested: Numbers
) -> RecordArray:
    """Return tasks as the kernels take them; `rank` is that of a static order."""
    tasks = zero_recarray(np.size(sigma), TASK)
    tasks["arrival"], tasks["sigma"], tasks["due"] = arrival, sigma, due
    tasks["rank"], tasks["requested"] = rank, requested
    tasks["place"] = tie_places(tasks)
    return tasks


@compiled
def precedes(rank, task, other_rank, other, tasks, span):
    """Tell whether a task is served before another: by rank, ties by place.

    Ranks that are equal up to the one tolerance are a tie: equal deadlines and equal cost
    derivatives are often reached by different roundings.
    """
    if rank == other_rank or (
        abs(rank - other_rank) < np.inf and times_tie(rank, other_rank, span)
    ):
        return tasks[task].place < tasks[other].place
    return rank < other_rank


@compiled
def sort_pending(first, end, state):
    """Order tasks that are still to be planned by rank, ties by place (l.12)."""
    tasks, span = state.tasks, state.counters.span
    for gap in _GAPS:
        for i in range(first + gap, end):
            one = state.pending[i]
            task, nodes, rank = one.task, one.nodes, one.rank
            j = i
            while j >= first + gap:
                other = state.pending[j - gap]
                if not precedes(rank, task, other.rank, other.task, tasks, span):
                    break
                set_pending(j, other.task, other.nodes, other.rank, state)
                j -= gap
            set_pending(j, task, nodes, rank, state)
