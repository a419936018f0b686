"""A plain twin of the pipeline: a clock of whole ticks that looks at everything each time."""

STAGES = ("read", "h2d", "map", "d2h", "write")
GPU = ("h2d", "map", "d2h")


def engine(stage, gpu, copy_engines, pinned):
    if stage not in GPU:
        return "disk"
    if not pinned:
        return (gpu, "all")
    return (gpu, "copy" if copy_engines == 1 and stage in ("h2d", "d2h") else stage)


def run(
    chunks,
    k,
    copy_engines=2,
    queues="hyper-q",
    first="d2h",
    pinned=True,
    order=(),
    gpus=1,
    buffers=0,
):
    """Return {(chunk, stage): start}; chunks is a list of {stage: whole time > 0}."""
    stages = [s for s in STAGES if s in chunks[0]]
    todo = [(i, s) for i in range(len(chunks)) for s in stages]
    start, end = {}, {}
    out = {"d2h": ["write", "d2h", "map", "h2d", "read"], "chunk": None}
    out["h2d"] = out["d2h"][::-1]
    where = {op: engine(op[1], op[0] % gpus, copy_engines, pinned) for op in todo}

    def waits_for(op):
        i, stage = op
        at = stages.index(stage)
        found = [(i, stages[at - 1])] if at else []
        if stage == "h2d":
            found.append((i - k * gpus, "d2h"))
        if at == 0 and buffers:
            found.append((i - buffers, stages[-1]))
        return [x for x in found if x[0] >= 0]

    def blocked(op, now):
        """Tell whether an operation before it in its queue has not started yet."""
        if queues == "hyper-q" or op[1] not in GPU:
            return False
        for other in order:
            if other == op:
                return False
            same = where[other] == where[op] if queues == "per-engine" else True
            if other[0] % gpus == op[0] % gpus and same and other not in start:
                return True
        raise AssertionError("not in the order")

    now = 0
    while len(end) < len(where) or any(e > now for e in end.values()):
        moved = True
        while moved:
            moved = False
            can = [
                op
                for op in todo
                if op not in start
                and all(x in end and end[x] <= now for x in waits_for(op))
                and not any(where[x] == where[op] and end[x] > now for x in start)
                and not blocked(op, now)
            ]
            if can:
                rank, issued = out[first], [op for op in order if op in can]
                op = min(
                    can, key=lambda x: (rank.index(x[1]) if rank else 0, x[0], stages.index(x[1]))
                )
                if queues != "hyper-q" and issued and op[1] in GPU:
                    op = issued[0]  # of what a GPU could start, that which was issued first
                start[op], end[op], moved = now, now + chunks[op[0]][op[1]], True
        now += 1
        if now > 10_000:
            raise AssertionError("blocked")
    return start
