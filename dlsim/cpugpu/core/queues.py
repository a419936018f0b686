"""Lines of jobs, what their jobs are expected to take, and what waits in the main queue."""

import numpy as np

from dlsim.cpugpu.core.state import (
    CPU,
    FIFO,
    FIVE,
    GPU,
    MCT,
    NOBODY,
    PREFERRED,
    SHARE,
    SHORTEST,
    SPEED_UP,
)  # fmt: skip
from dlsim.cpugpu.core.sums import add, add_times, change, drop, first_from, put, set_leaf
from dlsim.kernel import kernel


@kernel(inline=True)
def preferred(j, w):
    """Return the class with the smaller declared time, GPUs on a tie."""
    if not w.has[j, GPU]:
        return CPU
    if not w.has[j, CPU]:
        return GPU
    return GPU if w.told[j, GPU] <= w.told[j, CPU] else CPU


@kernel(inline=True)
def first_free(c, w, s):
    """Return the first free device of a class, or -1."""
    d = first_from(s.free, w.gpus if c == CPU else 0)
    return d if (d >= w.gpus) == (c == CPU) else NOBODY


@kernel(inline=True)
def _link(j, line, s):
    """Put a job at the end of a line."""
    end, job = s.lines[line], s.jobs[j]
    job.before, job.next = end.tail, NOBODY
    if end.tail >= 0:
        s.jobs[end.tail].next = j
    else:
        end.head = j
    end.tail = j
    end.count += 1


@kernel(inline=True)
def _unlink(j, line, s):
    """Take a job out of a line."""
    end, job = s.lines[line], s.jobs[j]
    if job.before >= 0:
        s.jobs[job.before].next = job.next
    else:
        end.head = job.next
    if job.next >= 0:
        s.jobs[job.next].before = job.before
    else:
        end.tail = job.before
    end.count -= 1


@kernel(inline=True)
def _cell_of(known, d, s):
    """Return the cell of an application in the sub-queue of a device, a fresh one if need be."""
    cell = known.cell
    while cell >= 0 and s.cells[cell].on != d:
        cell = s.cells[cell].next
    if cell < 0:
        cell = s.head[0].cells
        s.head[0].cells += 1
        s.cells[cell].on, s.cells[cell].next = d, known.cell
        known.cell = cell
    return cell


@kernel(inline=True)
def _count_time(j, d, step, w, r, s):
    """Let what a job is expected to take count in a sub-queue (step 1), or no longer (-1)."""
    line, c = s.lines[d], int(d >= w.gpus)
    if r.rule == MCT:
        add(line, step * w.told[j, c])
    elif r.rule == FIVE:
        time = s.known[w.app[j], c].time
        s.cells[s.jobs[j].cell].count += step
        if np.isnan(time):
            line.unknown += step
        else:
            add_times(line, step, time)


@kernel(inline=True)
def join(j, d, w, r, s):
    """Put a job at the end of a sub-queue."""
    _link(j, d, s)
    drop(s.free, d)
    if r.rule == FIVE:
        s.jobs[j].cell = _cell_of(s.known[w.app[j], int(d >= w.gpus)], d, s)
    _count_time(j, d, 1, w, r, s)


@kernel(inline=True)
def leave(j, d, w, r, s):
    """Take a job out of a sub-queue."""
    line = s.lines[d]
    _unlink(j, d, s)
    _count_time(j, d, -1, w, r, s)
    if line.count == 0:
        line.high = line.low = 0.0
        if s.devices[d].job < 0:
            put(s.free, d)


@kernel(inline=True)
def least_known(a, versions, s):
    """Return the least known time of an application with these versions (bits); 0: none."""
    gpu = s.known[a, GPU].time if versions & 1 else np.nan
    cpu = s.known[a, CPU].time if versions & 2 else np.nan
    if np.isnan(gpu):
        return 0.0 if np.isnan(cpu) else cpu
    return cpu if cpu < gpu else gpu


@kernel(inline=True)
def versions_of(j, w):
    """Return the classes of a job as bits."""
    return int(w.has[j, GPU]) + 2 * int(w.has[j, CPU])


@kernel(inline=True)
def _main_line(j, w, r):
    """Return the line of the main queue in which a job waits."""
    if r.rule == SHARE:
        return w.column.shape[0] + w.app[j]
    if r.rule == FIFO and r.target == PREFERRED:
        return w.column.shape[0] + preferred(j, w)
    return w.column.shape[0]


@kernel(inline=True)
def change_main(j, step, w, r, s):
    """Put a job into the main queue (step 1) or take it out (-1)."""
    if r.rule == SPEED_UP or r.rule == SHORTEST:
        s.lines[w.column.shape[0]].count += step
        _change_sets(j, step > 0, w, r, s)
        return
    if step > 0:
        _link(j, _main_line(j, w, r), s)
    else:
        _unlink(j, _main_line(j, w, r), s)
    if r.bound > 0:
        versions = versions_of(j, w)
        s.waiting[w.app[j], versions] += step
        add_times(s.head[0], step, least_known(w.app[j], versions, s))


@kernel(inline=True)
def _change_sets(j, waits, w, r, s):
    """Let a job wait among those that are sorted, or no longer."""
    c = preferred(j, w)
    if r.rule == SPEED_UP:
        change(s.sets[c], w.rank[0, j], waits)
        return
    change(s.sets[c], w.rank[c, j], waits)
    set_leaf(s.tree[c], w.rank[c, j], w.told[j, c] if waits else 0.0)
    if w.has[j, 1 - c]:
        change(s.sets[2 + 1 - c], w.rank[1 - c, j], waits)
