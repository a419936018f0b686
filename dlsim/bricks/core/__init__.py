"""The compiled core of the Grid simulator: arrays and floats in and out.

Modules: `state` (the records of a run), `events` (the heap of events to come), `network`
(transfers), `servers` (queues), `monitor` (probes), `predictors` (from probes to predictions),
`schedulers` (Greedy, Deadline, Load Correction, Fallback), `loop` (the effect of each event).

Every kernel takes the environment as arrays (``env``), the scheduler under a reading as numbers
(``cfg``) and what changes during the run (``state``). A request, a server and a link are rows of
their tables.
"""
