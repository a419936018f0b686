"""A running median: what was measured before, sorted and split, and two heaps of later times.

The lower half is a part of `State.base` up to the split and a heap with its greatest time on
top, the upper half the rest and a heap with its least; old times change sides by moving the
split alone, so what is known at the start is neither copied nor sorted again.
"""

from dlsim.cpugpu.core.state import NOBODY
from dlsim.kernel import kernel


@kernel(inline=True)
def _push(heap, room, size, x):
    """Put a number into a heap, the least on top."""
    i = size
    while i > 0 and heap[room + (i - 1) // 2] > x:
        heap[room + i] = heap[room + (i - 1) // 2]
        i = (i - 1) // 2
    heap[room + i] = x


@kernel(inline=True)
def _pop(heap, room, size):
    """Take the least number off a heap."""
    least, x, i = heap[room], heap[room + size - 1], 0
    while True:
        k = 2 * i + 1
        if k >= size - 1:
            break
        if k + 1 < size - 1 and heap[room + k + 1] < heap[room + k]:
            k += 1
        if heap[room + k] >= x:
            break
        heap[room + i] = heap[room + k]
        i = k
    heap[room + i] = x
    return least


@kernel(inline=True)
def _lower(known, c, s):
    """Return the greatest time of the lower half, and whether it is an old one."""
    old = known.split > known.first
    if known.low > 0:
        new = -s.heaps[c, 0, known.room]
        if not old or new > s.base[known.split - 1]:
            return new, False
    return s.base[known.split - 1], old


@kernel(inline=True)
def _upper(known, c, s):
    """Return the least time of the upper half, and whether it is an old one."""
    old = known.split < known.last
    if known.high > 0:
        new = s.heaps[c, 1, known.room]
        if not old or new < s.base[known.split]:
            return new, False
    return s.base[known.split], old


@kernel(inline=True)
def _to_upper(known, x, c, s):
    _push(s.heaps[c, 1], known.room, known.high, x)
    known.high += 1


@kernel(inline=True)
def _to_lower(known, x, c, s):
    _push(s.heaps[c, 0], known.room, known.low, -x)
    known.low += 1


@kernel(inline=True)
def insert(known, x, c, s):
    """Take one more time into account; the lower half has as many as the upper, or one more."""
    if known.count == 1 or x <= _lower(known, c, s)[0]:
        _to_lower(known, x, c, s)
        known.excess += 1
    else:
        _to_upper(known, x, c, s)
        known.excess -= 1
    if known.excess == 2:
        x, old = _lower(known, c, s)
        if old:
            known.split -= 1
        else:
            _pop(s.heaps[c, 0], known.room, known.low)
            known.low -= 1
            _to_upper(known, x, c, s)
        known.excess = 0
    elif known.excess == NOBODY:
        x, old = _upper(known, c, s)
        if old:
            known.split += 1
        else:
            _pop(s.heaps[c, 1], known.room, known.high)
            known.high -= 1
            _to_lower(known, x, c, s)
        known.excess = 1


@kernel(inline=True)
def median(known, c, s):
    """Return the middle time, or the mean of the middle two."""
    x, _ = _lower(known, c, s)
    if known.excess == 1:
        return x
    y, _ = _upper(known, c, s)
    return (x + y) / 2
