"""The compiled core: arrays and floats in and out, one vocabulary.

======== =====================================================================================
j        a job, by its place in the queue order
d        a device; GPUs first, so its class is ``d >= w.gpus``
c, o     a class, and the other one: GPU 0, CPU 1
a        an application, by its number
line     jobs in a line: the sub-queue of device d is line d, the main queue those behind
word     why a job was moved: a place in `state.WORDS`
known    what the history holds of an application on a class (KNOWN)
time     what is expected of a run; NaN where nothing is known
ready    when a device will have done what it runs and all of its sub-queue
w        jobs and machine (`World`)
r        the policy under its reading (`Rules`)
s        what changes (`State`)
======== =====================================================================================

Rooms: `state` (records), `sums` (exact running sums, ordered sets, running medians), `queues`
(lines, what waits in them, rule 5), `rules` (the five and their rivals), `events` (the loop).
"""
