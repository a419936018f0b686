"""The compiled core: arrays and floats in and out.

Where the terms of the papers are decided:

======================================== =========================================================
execution time E(sigma, n)               `formulas.time_on_nodes`
n_min of a size and a deadline           `formulas.n_min_of`
N*, the most nodes with positive shares  `formulas.n_star_of`
n_min of a task at an instant            `splits.n_min_from` (and `nodes.nodes_wanted`)
MCDF's order, the cost derivative        `orders.mcdf_rank`, `formulas.cost_derivative`
FIFO and EDF order                       `orders.set_rank`
order of tasks of equal rank             `orders.tie_places`, `orders.precedes`
schedulability test (admission)          `admission.schedulability_test`
admission of tasks served in line        `line.admit_in_line`
optimal partitioning rule (OPR)          `splits.split_at_last_release`, `chunks.fill_opr_loads`
equal finish, eqs. (2)-(4) of paper I    `splits.split_by_equal_finish`,
                                         `chunks.fill_equal_finish_loads`
Constraints 1 and 2 of paper I           `formulas.constraint_one`, `formulas.constraint_two`
heterogeneous remodel (DLT) of [6]       `splits.split_by_remodel`, `formulas.remodelled_time`
true optimum (EXACT)                     `splits.split_by_optimum`, `formulas.optimal_completion`
several rounds (UMR)                     `splits.split_in_rounds`, `formulas.instalment`
inserted idle times of Table 1           `idle_times.find_iit_flags`
dispatch, arrivals, offers               `loop.dispatch`, `loop.run_admission`,
                                         `loop.admit_newcomer`
no admission control (FIFOANNA, EDFANNA) `loop.run_all_admitted`
======================================== =========================================================

Arguments that every kernel shares, as far as it needs them:

======== =========================================================================================
task     a task: its row of the task table; `newcomer` is the one that is tested
pool     nodes by their releases (`state.Pool`): groups (time, nodes) in order of release
results  what became of the tasks (`state.RESULT`)
state    what the head node knows (`state.HeadNodeState`), the last argument: the tasks
         (`state.TASK`), the policy under its reading (`rules`, a `state.RULE_RECORD`), the
         coefficients of E(n) (`table`), running tasks, the plan in force
======== =========================================================================================

`now` is the arrival that is tested, `t` an instant of the plan. `state.planning` says how far a
plan in the making has come. Its `later` is the smallest later deadline of the newcomer at which an
answer could change.

Modules, each of which uses only those above it: `formulas` of one load, `splits` of a load over
nodes, `state`, `user_rules`, `orders` (ranks and ties), `chunks` (loads, sends and ends), `nodes`
(how many), `placement` of one task, `idle_times` (Table 1), `admission` and `line`, the two
admission tests, `loop`, and `opr_loop`, a faster loop for two policies. Kernels that every task
needs are inlined where they take the state: a call passes all of it, some two hundred words.
"""
