"""Functions of a user that are asked while tasks are planned: an order, a number, shares."""

import numpy as np

from dlsim.compiled import call_rule, compiled
from dlsim.realtime.core.formulas import n_min_in_rounds, n_min_of
from dlsim.realtime.core.splits import BY_USER, is_in_rounds

#: By how much the sum of a user's shares may miss 1.
SHARES_TOL = 1e-9
#: Kinds of functions: an order at an instant, a number of nodes, a partition.
ORDER_RULE, NODES_RULE, PARTITION_RULE = 1, 2, 3


@compiled
def has_failed(user):
    """Tell whether a user's function has returned what it must not."""
    return user.error_record[0] > 0


@compiled
def ask_rule(kind, task, nodes, t, idle, waiting, tasks, rules, table):
    """Return what a user's order or number of nodes says of a task at t, 0 if it fails."""
    user, one = rules.user, tasks[task]
    if not user.rules[kind - 1]:
        return 0.0
    if is_in_rounds(rules.partition):
        n_min, _ = n_min_in_rounds(
            t,
            one.due_tol,
            one.sigma,
            1,
            rules.nodes,
            rules.rounds,
            rules.cms,
            rules.cps,
            rules.st,
            rules.sc,
        )
    else:
        n_min = n_min_of(
            t, one.due_tol, one.sigma, 1, one.n_star, table.time_per_unit, table.setup_time
        )
    costs = (float(rules.nodes), rules.cms, rules.cps, rules.st, rules.sc)
    given = (
        int(task),
        int(nodes),
        float(t),
        int(n_min),
        int(idle),
        int(waiting),
        tasks,
        costs,
        table,
    )
    found = call_rule(user.rules[kind - 1], given)
    good = found == found
    if kind == NODES_RULE:
        good = 0 <= found <= rules.nodes and found == np.floor(found)
        if good and rules.partition != BY_USER and not is_in_rounds(rules.partition):
            found = min(found, one.n_star)
    if good:
        return found
    if user.error_record[0] == 0:
        user.error_record[0], user.error_record[1], user.error_record[2] = kind, task, t
        user.error_record[3], user.error_record[4] = nodes, found
    return 0.0


@compiled
def fill_user_shares(user, task, sigma, release, n, costs, table, chunks, first_row):
    """Write the shares of a user's partition; none where only a table of results says so."""
    if not user.rules[PARTITION_RULE - 1]:
        return
    total = call_rule(
        user.rules[PARTITION_RULE - 1],
        (float(sigma), release, int(n), costs, table, chunks, int(first_row)),
    )
    good = abs(total - 1) <= SHARES_TOL
    if not good and user.error_record[0] == 0:
        user.error_record[0], user.error_record[1], user.error_record[3], user.error_record[4] = (
            PARTITION_RULE,
            task,
            n,
            total,
        )
    for k in range(first_row, first_row + n):
        chunks[k, 0] = chunks[k, 0] / total if good else 1 / n
