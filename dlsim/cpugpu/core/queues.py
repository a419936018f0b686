"""Lines of jobs, what waits in the main queue, and rule 5: what is expected of runs."""

import numpy as np

from dlsim.cpugpu.core import state, sums
from dlsim.cpugpu.core.state import CPU, GPU, NOBODY
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
    d = sums.first_from(s.free, w.gpus if c == CPU else 0)
    return d if (d >= w.gpus) == (c == CPU) else NOBODY


@kernel(inline=True)
def _link(j, line, first, s):
    """Put a job at the end of a line, or at its head if `first`."""
    end, job = s.lines[line], s.jobs[j]
    job.before, job.next = (NOBODY, end.head) if first else (end.tail, NOBODY)
    if job.before >= 0:
        s.jobs[job.before].next = j
    else:
        end.head = j
    if job.next >= 0:
        s.jobs[job.next].before = j
    else:
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
def _count_time(j, d, step, w, r, s):
    """Let what a job is expected to take count in a sub-queue (step 1), or no longer (-1)."""
    line, c = s.lines[d], int(d >= w.gpus)
    if r.rule == state.MCT:
        sums.add(line, step * w.told[j, c])
    elif r.rule == state.FIVE:
        time = s.known[w.app[j], c].time
        s.cells[s.jobs[j].cell].count += step
        if np.isnan(time):
            line.unknown += step
        else:
            sums.add_times(line, step, time)


@kernel(inline=True)
def join(j, d, w, r, s):
    """Put a job at the end of a sub-queue; it counts in the cell of its application there."""
    _link(j, d, False, s)
    sums.drop(s.free, d)
    if r.rule == state.FIVE:
        known = s.known[w.app[j], int(d >= w.gpus)]
        cell = known.cell
        while cell >= 0 and s.cells[cell].on != d:
            cell = s.cells[cell].next
        if cell < 0:
            cell = s.head[0].cells
            s.head[0].cells += 1
            s.cells[cell].on, s.cells[cell].next = d, known.cell
            known.cell = cell
        s.jobs[j].cell = cell
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
            sums.put(s.free, d)


@kernel(inline=True)
def least_known(a, bits, s):
    """Return the least known time of an application with these versions; 0: none."""
    gpu = s.known[a, GPU].time if bits & 1 else np.nan
    cpu = s.known[a, CPU].time if bits & 2 else np.nan
    if np.isnan(gpu):
        return 0.0 if np.isnan(cpu) else cpu
    return cpu if cpu < gpu else gpu


@kernel(inline=True)
def versions(j, w):
    """Return the classes of a job as bits."""
    return int(w.has[j, GPU]) + 2 * int(w.has[j, CPU])


@kernel(inline=True)
def change_main(j, step, w, r, s):
    """Put a job into the main queue (step 1; 2: at its head), or take it out (-1)."""
    if r.rule == state.SPEED_UP or r.rule == state.SHORTEST:
        c, waits = preferred(j, w), step > 0
        s.lines[w.column.shape[0]].count += 1 if waits else -1
        if r.rule == state.SPEED_UP:
            sums.change(s.sets[c], w.rank[0, j], waits)
            return
        sums.change(s.sets[c], w.rank[c, j], waits)
        sums.set_leaf(s.tree[c], w.rank[c, j], w.told[j, c] if waits else 0.0)
        if w.has[j, 1 - c]:
            sums.change(s.sets[2 + 1 - c], w.rank[1 - c, j], waits)
        return
    line = w.column.shape[0]
    if r.rule == state.SHARE:
        line += w.app[j]
    elif r.rule == state.FIFO and r.target == state.PREFERRED:
        line += preferred(j, w)
    if step > 0:
        _link(j, line, step > 1, s)
    else:
        _unlink(j, line, s)
    if r.bound > 0:
        own, more = versions(j, w), 1 if step > 0 else -1
        s.waiting[w.app[j], own] += more
        sums.add_times(s.head[0], more, least_known(w.app[j], own, s))


@kernel(inline=True)
def assign(a, c, s):
    """Note that a job was assigned to a class (rule 2)."""
    known, other = s.known[a, c], s.known[a, 1 - c]
    known.seen = 1
    known.assigned += 1
    known.elsewhere = 0
    if other.seen:
        other.elsewhere += 1


@kernel(inline=True)
def measure(a, c, seconds, w, r, s):
    """Note the time of a run: count, mean, squared deviations, moving average."""
    known = s.known[a, c]
    known.seen = 1
    known.count += 1
    delta = seconds - known.average
    known.average += delta / known.count
    known.spread += delta * (seconds - known.average)
    if known.count == 1:
        known.recent = seconds
    else:
        known.recent += state.NEWEST * (seconds - known.recent)
    if r.rule != state.FIVE:
        return
    if r.estimate == state.MEDIAN:
        sums.note(known, seconds, c, s)
    expect(a, c, w, r, s)


@kernel(inline=True)
def _weigh(a, sign, r, s):
    """Let the least known times of an application that waits count, or no longer."""
    for bits in range(1, 4 if r.bound > 0 else 1):
        sums.add_times(s.head[0], sign * s.waiting[a, bits], least_known(a, bits, s))


@kernel(inline=True)
def expect(a, c, w, r, s):
    """Bring the expected time of an application on a class, and all sums of it, up to date."""
    known, average = s.known[a, c], s.averages[c]
    if np.isnan(known.plain):
        average.count += 1
    else:
        sums.add(average, -known.plain)
    if r.estimate == state.MEDIAN:
        known.plain = sums.median(known, c, s)
    else:
        known.plain = known.recent if r.estimate == state.EWMA else known.average
    sums.add(average, known.plain)
    _weigh(a, -1, r, s)
    before = known.time
    known.time = known.plain
    if r.deviations > 0:
        known.time += r.deviations * np.sqrt(known.spread / known.count)
    _weigh(a, 1, r, s)
    cell = known.cell
    while cell >= 0:
        line, count = s.lines[s.cells[cell].on], s.cells[cell].count
        if count > 0:
            if np.isnan(before):
                line.unknown -= count
            else:
                sums.add_times(line, -count, before)
            sums.add_times(line, count, known.time)
        cell = s.cells[cell].next


@kernel(inline=True)
def guess(c, r, s):
    """Return the time assumed for a run that was never measured (`unknown_remaining`)."""
    if r.unknown == state.AVERAGE:
        average = s.averages[c]
        return (average.high + average.low) / average.count if average.count else 0.0
    return np.inf if r.unknown == state.INFINITE else 0.0


@kernel(inline=True)
def expected(j, c, w, s):
    """Return what the history expects of a job on a class; NaN without a version or a run."""
    return s.known[w.app[j], c].time if w.has[j, c] else np.nan
