"""The compiled core: arrays and floats in and out, one vocabulary.

================ =============================================================================
row              a request; server, link: a server and a link; all rows of their tables
pair             source domain x domains + target domain: its path is
                 ``hops[first[pair] : first[pair + 1]]``
now, time        the clock
bound            what has happened by then counts for the monitor
k                an entry of the traces, or a probe
job, one         a request's record (JOB); any record at hand
packet, hop      of a request's data, counted from 0
train            all packets of a transfer, moved at once while its links are its own
heap, head       the events to come, and the counters (EVENT, HEAD)
ours             jobs or transfers of this scheduler's own that are under way
unit             0 where all sizes of a `Stream` are one, else 1
w                the environment (`World`)
r                the scheduler under its reading (`Rules`)
s                what changes (`State`)
================ =============================================================================

What every event goes through is inlined into `events.run`: to hand on the sixty arrays of `w` and
`s` from one kernel to another took half of the time. What few runs need is called.

Rooms: `state` (records), `network` (transfers), `servers` (queues), `monitor` (probes and
predictions), `schedulers` (Greedy and Deadline), `events` (the loop).
"""
