"""The chunks of a task on its nodes: loads by the kind of split, then sends and ends.

A row of chunks has the share, begin and end of the send, and end of the computation. Rows stand in
order of transmission, round by round.

Source: paper M, eqs. 4.5 and 4.11; paper I, eqs. 3-4.
"""

from dlsim.compiled import compiled
from dlsim.realtime.core.formulas import instalment
from dlsim.realtime.core.splits import (
    EQUAL,
    EQUAL_FINISH,
    OPR,
    OPTIMUM,
    PIECES,
    REMODEL,
    ROUNDS,
    ROUNDS_EARLY,
    USER_SHARES,
)
from dlsim.realtime.core.state import CALLS_USER, is_due
from dlsim.realtime.core.user_rules import fill_user_shares

# --- loads of the nodes ---------------------------------------------------------------------------
# `costs` has the fields cms, cps, st, sc; `release` are the releases of the nodes.


@compiled
def fill_opr_loads(n, sigma, costs, table, chunks):
    """Write the loads of the optimal partitioning rule (paper M, eqs. 4.5 and 4.11)."""
    w = costs.cms + costs.cps
    load = (table.first_share_offset[n] + sigma * table.time_per_unit[n]) / w
    beta, start_up = costs.cps / w, costs.st / w
    for i in range(n):
        chunks[i, 0] = load
        load = load * beta - start_up


@compiled
def fill_equal_loads(n, sigma, chunks):
    """Write equal loads."""
    for i in range(n):
        chunks[i, 0] = sigma / n


@compiled
def fill_equal_finish_loads(n, sigma, release, costs, chunks):
    """Write the loads of the equal-finish split (paper I, eqs. 3-4).

    Each node works from its release on, and all nodes finish together.
    """
    w, last, waits = costs.cms + costs.cps, release[n - 1], 0 * sigma
    for i in range(n):
        waits += last - release[i]
    common = (sigma * w - waits) / n
    for i in range(n):
        chunks[i, 0] = (common + (last - release[i])) / w


@compiled
def fill_remodel_loads(n, sigma, release, costs, table, chunks):
    """Write the loads of the heterogeneous remodel of [6]."""
    cms, cps, last, time = costs.cms, costs.cps, release[n - 1], sigma * table.time_per_unit[n]
    total, passed = 0 * sigma, 1 + 0 * sigma
    for i in range(n):
        chi = cps * time / (time + (last - release[i]))
        total += passed / (cms + chi)
        passed *= chi / (cms + chi)
    chi = cps * time / (time + (last - release[0]))
    load = sigma / total / (cms + chi)
    for i in range(n):
        chunks[i, 0] = load
        if i + 1 < n:
            ahead = cps * time / (time + (last - release[i + 1]))
            load, chi = load * chi / (cms + ahead), ahead


@compiled
def fill_optimum_loads(n, end, release, costs, chunks):
    """Write the loads with which every node computes until `end`."""
    w, clock, load = costs.cms + costs.cps, release[0], 0 * end
    for i in range(n):
        # behind another send: w * load = end - clock without the difference
        is_behind = i > 0 and release[i] <= clock
        clock = max(clock, release[i])
        load = load * (costs.cps / w) if is_behind else (end - clock) / w
        chunks[i, 0] = load
        clock = clock + load * costs.cms


@compiled
def fill_round_loads(n, sigma, rounds, costs, chunks):
    """Write the loads of UMR, round by round."""
    for j in range(rounds):
        load = instalment(j, sigma, n, rounds, costs)
        for i in range(n):
            chunks[j * n + i, 0] = load


@compiled
def scale_shares(n, sigma, chunks):
    """Write the loads of a user's shares, which stand in `chunks`."""
    for i in range(n):
        chunks[i, 0] = chunks[i, 0] * sigma


@compiled
def fill_loads(entry, sigma, release, rules, table, chunks):
    """Write the loads of a planned task's chunks, by its kind of split."""
    kind, n = entry.kind, entry.nodes
    if kind == OPR:
        fill_opr_loads(n, sigma, rules, table, chunks)
    elif kind == EQUAL or kind == PIECES:
        fill_equal_loads(n, sigma, chunks)
    elif kind == EQUAL_FINISH:
        fill_equal_finish_loads(n, sigma, release, rules, chunks)
    elif kind == REMODEL:
        fill_remodel_loads(n, sigma, release, rules, table, chunks)
    elif kind == OPTIMUM:
        fill_optimum_loads(n, entry.end, release, rules, chunks)
    elif kind == ROUNDS or kind == ROUNDS_EARLY:
        fill_round_loads(n, sigma, entry.rounds, rules, chunks)
    else:
        scale_shares(n, sigma, chunks)


# --- sends and ends -------------------------------------------------------------------------------


@compiled
def fill_sends(entry, sigma, release, rules, chunks):
    """Turn loads into shares, and write when each chunk is sent and computed.

    Return when the task is computed and when its last send ends.
    """
    kind, n, shared = entry.kind, entry.nodes, rules.shared
    cms, cps, st, sc = rules.cms, rules.cps, rules.st, rules.sc
    together = kind == OPR or kind == EQUAL or kind == ROUNDS
    clock = release[n - 1] if together else release[0]
    completion = clock
    for j in range(entry.rounds):
        for i in range(n):
            row = j * n + i
            if kind == PIECES and not shared:
                clock = release[i]
            elif not together:
                clock = max(clock, release[i])
            load = chunks[row, 0]
            chunks[row, 0], chunks[row, 1] = load / sigma, clock
            clock = clock + (st + load * cms)
            begins = clock if j == 0 else max(clock, chunks[row - n, 3])
            chunks[row, 2], chunks[row, 3] = clock, begins + (sc + load * cps)
            completion = max(completion, chunks[row, 3])
    return completion, clock


@compiled
def compute_chunks(entry, chunks, state):
    """Compute the chunks of a planned task on the nodes of `state.release`.

    Return when the task is computed and when its last send ends.
    """
    sigma, rules, release = state.tasks[entry.task].sigma, state.rules, state.release
    if CALLS_USER and entry.kind == USER_SHARES:
        fill_user_shares(entry.task, entry.nodes, chunks, state)
    fill_loads(entry, sigma, release, rules, state.table, chunks)
    return fill_sends(entry, sigma, release, rules, chunks)


# --- chunks of a finished run ---------------------------------------------------------------------


@compiled
def choose_nodes(start, n, early, span, free, chosen, release):
    """Find n nodes for a task: the lowest idle ones, then those that are released first."""
    found = 0
    for node in range(len(free)):
        if found < n and is_due(free[node], start, span):
            chosen[found], release[found] = node, start
            found += 1
    if found == n:
        return True
    if not early or n > len(free):
        return False
    end = found  # those released later stand from `found` to `end`, in order of (free, node)
    for node in range(len(free)):
        time = free[node]
        if is_due(time, start, span) or (end == n and time >= release[n - 1]):
            continue
        at = min(end, n - 1)
        while at > found and time < release[at - 1]:
            chosen[at], release[at] = chosen[at - 1], release[at - 1]
            at -= 1
        chosen[at], release[at] = node, time
        end = min(end + 1, n)
    return True


@compiled
def fill_chunks(runs, first, node_free, chosen, task_and_node, chunks, state):
    """Fill one row per chunk, task by task in order of dispatch; return a task that lacks nodes.

    `runs` are the tasks as planned (`state.ENTRY`), `first` their first rows. Return -1 if every
    task finds its nodes.
    """
    span, finish = state.counters.span, state.rules.finish
    for task in range(len(runs)):
        entry = runs[task]
        n, kind, begin = entry.nodes, entry.kind, first[task]
        early = kind != OPR and kind != EQUAL and kind != ROUNDS
        if not choose_nodes(entry.start, n, early, span, node_free, chosen, state.release):
            return task
        rows = chunks[begin : begin + n * entry.rounds]
        compute_chunks(entry, rows, state)
        for j in range(entry.rounds):
            for k in range(n):
                row = begin + j * n + k
                task_and_node[row, 0], task_and_node[row, 1] = task, chosen[k]
        per_node = kind == PIECES or (finish and kind != OPR)
        for k in range(n):
            end = rows[len(rows) - n + k, 3] if per_node else entry.end
            node_free[chosen[k]] = end
    return -1
