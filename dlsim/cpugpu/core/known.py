"""Rule 5: measured times enter the history, and what is expected of later runs follows."""

import numpy as np

from dlsim.cpugpu.core.median import insert, median
from dlsim.cpugpu.core.queues import least_known
from dlsim.cpugpu.core.state import AVERAGE, CPU, EWMA, FIVE, GPU, INFINITE, MEDIAN, NEWEST
from dlsim.cpugpu.core.sums import add, add_times
from dlsim.kernel import kernel


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
        known.recent += NEWEST * (seconds - known.recent)
    if r.rule != FIVE:
        return
    if r.estimate == MEDIAN:
        insert(known, seconds, c, s)
    expect(a, c, w, r, s)


@kernel(inline=True)
def expect(a, c, w, r, s):
    """Bring the expected time of an application on a class, and all sums of it, up to date."""
    known, average = s.known[a, c], s.averages[c]
    if np.isnan(known.plain):
        average.count += 1
    else:
        add(average, -known.plain)
    if r.estimate == MEDIAN:
        known.plain = median(known, c, s)
    else:
        known.plain = known.recent if r.estimate == EWMA else known.average
    add(average, known.plain)
    if r.bound > 0:
        for versions in range(1, 4):
            add_times(s.head[0], -s.waiting[a, versions], least_known(a, versions, s))
    before = known.time
    known.time = known.plain
    if r.deviations > 0:
        known.time += r.deviations * np.sqrt(known.spread / known.count)
    if r.bound > 0:
        for versions in range(1, 4):
            add_times(s.head[0], s.waiting[a, versions], least_known(a, versions, s))
    cell = known.cell
    while cell >= 0:
        line, count = s.lines[s.cells[cell].on], s.cells[cell].count
        if count > 0:
            if np.isnan(before):
                line.unknown -= count
            else:
                add_times(line, -count, before)
            add_times(line, count, known.time)
        cell = s.cells[cell].next


@kernel(inline=True)
def guess(c, r, s):
    """Return the time assumed for a run that was never measured (`unknown_remaining`)."""
    if r.unknown == AVERAGE:
        average = s.averages[c]
        return (average.high + average.low) / average.count if average.count else 0.0
    return np.inf if r.unknown == INFINITE else 0.0


@kernel(inline=True)
def expected(j, c, w, s):
    """Return what the history expects of a job on a class; NaN without a version or a run."""
    return s.known[w.app[j], c].time if w.has[j, c] else np.nan


@kernel(inline=True)
def is_measured(j, w, s):
    """Tell whether anything is known of a job."""
    return not (np.isnan(expected(j, GPU, w, s)) and np.isnan(expected(j, CPU, w, s)))
