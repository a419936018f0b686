"""The orders of papers M and I: the rank of a task, the smallest of which is served first."""

from dlsim.compiled import compiled
from dlsim.realtime.core.formulas import cost_derivative
from dlsim.realtime.core.state import CALLS_USER
from dlsim.realtime.core.user_rules import ORDER_RULE, ask_rule

#: Orders that the core ranks by: a key that is known before the run (the arrival, or what a
#: user's function makes of the table), the absolute deadline, the cost derivative, and a user's
#: function of the instant.
STATIC_ORDER, DEADLINE_ORDER, MCDF_ORDER, USER_ORDER = range(4)


@compiled(inline=True)
def set_rank(task, tasks, rules):
    """Set the rank of a newcomer; in an order that changes with time it keeps the latest one."""
    if rules.order == DEADLINE_ORDER:
        tasks[task].rank = tasks[task].due
    elif rules.order != STATIC_ORDER and rules.order != MCDF_ORDER and rules.order != USER_ORDER:
        raise ValueError("no order has this code")


@compiled(inline=True)
def mcdf_rank(task, nodes, tasks, rules, table):
    """Return the rank in MCDF's order: largest cost derivative W(n + 1) - W(n) first (paper M)."""
    sigma, top = tasks[task].sigma, rules.infinite_top
    return -cost_derivative(sigma, nodes, rules.nodes, top, table.dc_slope, table.dc_offset)


@compiled(inline=True)
def rank_at(task, nodes, t, idle, waiting, tasks, rules, table):
    """Return the rank at t of a task that would run on so many nodes from then on."""
    if CALLS_USER and rules.order == USER_ORDER:
        return ask_rule(ORDER_RULE, task, nodes, t, idle, waiting, tasks, rules, table)
    if rules.order == MCDF_ORDER:
        return mcdf_rank(task, nodes, tasks, rules, table)
    return tasks[task].rank
