"""A running median: what was measured before, sorted and split, and two heaps of later times.

The lower half is a part of `State.base` up to the split and a heap with its greatest time on
top (negative, so that heaps have the least there), the upper half the rest and the other heap;
old times change sides by moving the split alone, so none is copied or sorted again.
"""

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
    x, i, k = heap[room + size - 1], 0, 1
    while k < size - 1:
        if k + 1 < size - 1 and heap[room + k + 1] < heap[room + k]:
            k += 1
        if heap[room + k] >= x:
            break
        heap[room + i] = heap[room + k]
        i, k = k, 2 * k + 1
    heap[room + i] = x


@kernel(inline=True)
def _innermost(known, upper, c, s):
    """Return the time of a half that is next to the other half, and whether it is an old one."""
    sign, size = (1.0, known.high) if upper else (-1.0, known.low)
    at = known.split if upper else known.split - 1
    old = known.first <= at < known.last
    if size > 0:
        new = s.heaps[c, upper, known.room]
        if not old or new < sign * s.base[at]:
            return sign * new, False
    return s.base[at], old


@kernel(inline=True)
def _put_in(known, upper, x, c, s):
    """Put a time into the heap of a half."""
    if upper:
        _push(s.heaps[c, 1], known.room, known.high, x)
        known.high += 1
    else:
        _push(s.heaps[c, 0], known.room, known.low, -x)
        known.low += 1


@kernel(inline=True)
def _hand_over(known, upper, c, s):
    """Let a half lose its innermost time to the other one."""
    x, old = _innermost(known, upper, c, s)
    if old:
        known.split += 1 if upper else -1
        return
    _pop(s.heaps[c, upper], known.room, known.high if upper else known.low)
    if upper:
        known.high -= 1
    else:
        known.low -= 1
    _put_in(known, 1 - upper, x, c, s)


@kernel(inline=True)
def insert(known, x, c, s):
    """Take one more time into account; the lower half has as many as the upper, or one more."""
    upper = int(known.count > 1 and x > _innermost(known, 0, c, s)[0])
    _put_in(known, upper, x, c, s)
    known.excess += 1 - 2 * upper
    if known.excess < 0 or known.excess > 1:
        _hand_over(known, upper, c, s)
        known.excess = upper


@kernel(inline=True)
def median(known, c, s):
    """Return the middle time, or the mean of the middle two."""
    x, _ = _innermost(known, 0, c, s)
    if known.excess == 1:
        return x
    y, _ = _innermost(known, 1, c, s)
    return (x + y) / 2
