"""Functions of a user that are asked while tasks are planned: an order, a number, shares.

Only an uncompiled core calls them. The compiled core does not contain this code. The functions in
`rules.user` are those that `dlsim.realtime.split.wrap_user_rules` returns; they raise
InputError where a user's function fails.
"""

from dlsim.realtime.core.splits import BY_USER, n_min_from

#: Places of the functions in `rules.user`: an order at an instant, a number of nodes, a partition.
ORDER_RULE, NODES_RULE, PARTITION_RULE = 0, 1, 2


def ask_rule(kind, task, nodes, t, idle, waiting, state):
    """Return what a user's order or number of nodes says of a task at t."""
    tasks, rules = state.tasks, state.rules
    n_min = int(n_min_from(t, task, 1, state))
    found = rules.user[kind](task, nodes, t, n_min, idle, waiting, tasks, rules, state.table)
    if kind == NODES_RULE and rules.partition != BY_USER and not rules.in_rounds:
        found = min(found, tasks[task].n_star)
    return found


def fill_user_shares(task, n, chunks, state):
    """Write the shares of a user's partition; none where only a table of results says so."""
    share = state.rules.user[PARTITION_RULE]
    if share is not None:
        sigma, release = state.tasks[task].sigma, state.release
        chunks[:n, 0] = share(task, sigma, release, n, state.rules, state.table)
