"""The compiled core: arrays and floats in and out.

Arguments that every kernel shares, in this order:

======== =========================================================================================
task     a task: its row of the task table; `newcomer` is the one that is tested
tasks    the task table (`state.TASK`)
rules    the policy under its reading (`dlsim.realtime.run.Rules`)
state    what the head node knows (`state.HeadNodeState`): running tasks, the plan in force
table    the coefficients of E(n) (`dlsim.realtime.partition.TimeTable`)
results  what became of the tasks (`state.RESULT`)
======== =========================================================================================

t, now are a decision instant and the instant of the arrival that is tested; a pool is a list of
groups (time, nodes) in order of release; `later` is the smallest later deadline of the newcomer
at which an answer could change.

Modules, each of which uses only those above it: `formulas` of one load, `splits` of a load over
nodes, `state`, `user_rules`, `orders`, `node_rules` (how many nodes), `placement` of one task,
`idle_times` (Table 1), `admission` tests, `loop`, and `opr_loop`, a faster one for two policies.
"""
