"""Functions of a user that are asked while tasks are planned: an order, a number, shares.

Only an uncompiled core calls them. The compiled core does not contain this code.
"""

import numpy as np

from dlsim.compiled import compiled
from dlsim.realtime.core.splits import BY_USER, n_min_from
from dlsim.realtime.core.state import CALLS_USER

#: By how much the sum of a user's shares may miss 1.
SHARES_TOL = 1e-9
#: Kinds of functions: an order at an instant, a number of nodes, a partition.
ORDER_RULE, NODES_RULE, PARTITION_RULE = 1, 2, 3


@compiled
def has_failed(rules):
    """Tell whether a user's function has returned what it must not."""
    if CALLS_USER:
        return rules.user.error_record[0] > 0
    return False


def ask_rule(kind, task, nodes, t, idle, waiting, tasks, rules, table):
    """Return what a user's order or number of nodes says of a task at t, 0 if it fails."""
    user, one = rules.user, tasks[task]
    if not user.rules[kind - 1]:
        return 0.0
    n_min = n_min_from(t, task, 1, tasks, rules, table)
    found = user.rules[kind - 1](task, nodes, t, int(n_min), idle, waiting, tasks, rules, table)
    good = found == found
    if kind == NODES_RULE:
        good = 0 <= found <= rules.nodes and found == np.floor(found)
        if good and rules.partition != BY_USER and not rules.in_rounds:
            found = min(found, one.n_star)
    if good:
        return found
    if user.error_record[0] == 0:
        user.error_record[0], user.error_record[1], user.error_record[2] = kind, task, t
        user.error_record[3], user.error_record[4] = nodes, found
    return 0.0


def fill_user_shares(task, sigma, release, n, rules, table, chunks, first_row):
    """Write the shares of a user's partition; none where only a table of results says so."""
    user = rules.user
    if not user.rules[PARTITION_RULE - 1]:
        return
    share = user.rules[PARTITION_RULE - 1]
    total = share(sigma, release, n, rules, table, chunks, first_row)
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
