"""The counts of paper I's Table 1: inserted idle times, and those where a constraint holds."""

from dlsim.compiled import compiled, times_tie
from dlsim.realtime.core.formulas import constraint_one, constraint_two, idle_sum
from dlsim.realtime.core.state import RTGRID, is_due

#: Bits of an entry's `iit_flags`: nodes released at different instants; Constraints 1 and 2 of
#: paper I under them; a constraint that holds with a share <= 0; one node before r_n.
IDLE, FIRST, SECOND, NEGATIVE, SINGLE = 1, 2, 4, 8, 16


@compiled
def has_later_release(time, state):
    """Tell whether a node that is not taken is released after `time`."""
    planning, span = state.planning, state.counters.span
    end = planning.end_block
    if planning.next_block < end and not is_due(
        state.running[planning.row, end - 1].time, time, span
    ):
        return True
    for k in range(planning.planned_count):
        if not is_due(state.planned_ends[k].time, time, span):
            return True
    return False


@compiled
def find_iit_flags(task, n, state):
    """Return what Table 1 counts of a task on the chosen nodes, as bits.

    It has an inserted idle time if two of its releases (under ``scope="all"``, of all nodes) are
    different instants. Releases that lie within the tolerance of `dlsim.compiled.times_tie` are
    one instant and form one group. Its scale is the time of the least load on one node
    (`dlsim.realtime.formulas.span_of`): 1e-12 of that, and 1e-12 / 1024 of the instant. A
    gap that exceeds this is counted, however short it is: the instants themselves are no scale.
    """
    rules, sigma = state.rules, state.tasks[task].sigma
    pool, groups = state.chosen.releases, state.chosen.size.groups
    if n == 1 and not rules.single:
        return 0
    if groups == 1 and not (rules.every and has_later_release(pool[0].time, state)):
        return 0
    work, last = sigma * (rules.cms + rules.cps), pool[groups - 1].time
    end = last + (work - idle_sum(pool, groups)) / n
    positive = end > last and not times_tie(end, last, work / n)
    first = constraint_one(pool, groups, sigma * rules.cms, rules.skip_ties)
    second = constraint_two(pool, groups, end, rules.send_part, rules.skip_ties)
    flags = IDLE | SINGLE * (groups == 2 and pool[0].nodes == 1)
    if not positive:
        return flags | NEGATIVE * (first or second)
    return flags | FIRST * first | SECOND * second


@compiled(inline=True)
def count_iits(rule, flags, times, state):
    """Count flags by one counting rule (a row of `IIT_COUNT_RULES`)."""
    if flags > 0:
        constraint_one_holds = (flags & (SINGLE if rule == RTGRID else FIRST)) > 0
        state.counts[rule, 0] += times
        state.counts[rule, 1] += times * constraint_one_holds
        state.counts[rule, 2] += times * ((flags & SECOND) > 0)
        state.counts[rule, 3] += times * ((flags & NEGATIVE) > 0)
