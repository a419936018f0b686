"""The compiled core: arrays and floats in and out, one vocabulary.

======== =====================================================================================
x, i     a newcomer, and any task: rows of the task table
n, time  how many nodes it takes, and how long it occupies them
t, now   a decision instant; the instant of the arrival that is tested
link     when the head node's link becomes free
idle     nodes that are idle; free nodes are counted, never listed
block    the next running block of `State.blocks`
size     entries of `State.heap`, the planned completions
pool     groups (time, nodes) in order of release, of which ``groups`` count
slot     the next place of the plan that is being made, ``State.plan[1]``
later    the smallest later deadline of the newcomer at which an answer could change
known    a number of nodes that need not be searched; 0 where it must
part     the partition (BY_OPR ...), but of a load Cms / (Cms + Cps); kind: what came of it
q        the tasks (TASK)
r        the policy under its reading (`dlsim.realtime.run.Rules`)
s        what the head node knows (`State`)
c        E(n) and what goes with it (`dlsim.realtime.partition.Table`)
d        what became of the tasks (RESULT)
======== =====================================================================================

Rooms: `state` (records, heap, blocks), `partition` (formulas of one load), `demand` (one task, and
its chunks), `line` and `plan` (admission tests), `events` (the loops).
"""
