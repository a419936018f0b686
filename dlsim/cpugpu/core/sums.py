"""Running sums without drift, ordered sets, a tree of sums, and running medians."""

from dlsim.kernel import kernel

#: Elements of a word of a set, as a power of two.
BITS = 5


def levels_of(size: int) -> int:
    """Return how many levels a set of numbers below `size` has."""
    levels = 1
    while size > 1 << (BITS * levels):
        levels += 1
    return levels


@kernel
def add(total, x):
    """Add to a sum of two floats (Knuth's TwoSum): hardly anything is lost, so nothing drifts."""
    high = total.high + x
    part = high - total.high
    total.low += (total.high - (high - part)) + (x - part)
    total.high = high


@kernel
def add_times(total, count, x):
    """Add a number so many times: its halves (Veltkamp) have exact products with the count."""
    big = 134217729.0 * x
    half = big - (big - x)
    add(total, count * half)
    add(total, count * (x - half))


@kernel
def _place(word):
    """Return the place of the highest bit."""
    place = 0
    for half in (16, 8, 4, 2, 1):
        if word >> half:
            word >>= half
            place += half
    return place


@kernel
def put(bits, i):
    """Put a number into a set."""
    for level in range(bits.shape[0]):
        bits[level, i >> BITS] |= 1 << (i & 31)
        i >>= BITS


@kernel
def drop(bits, i):
    """Take a number out of a set."""
    for level in range(bits.shape[0]):
        bits[level, i >> BITS] &= ~(1 << (i & 31))
        if bits[level, i >> BITS] != 0:
            return
        i >>= BITS


@kernel
def change(bits, i, there):
    """Let a number be in a set, or not."""
    if there:
        put(bits, i)
    else:
        drop(bits, i)


@kernel
def first_from(bits, i):
    """Return the least number of a set from i on, or -1."""
    level, top = 0, bits.shape[0]
    while level < top:
        word = i >> BITS
        left = bits[level, word] >> (i & 31) if word < bits.shape[1] else 0
        if left != 0:
            i += _place(left & -left)
            while level > 0:
                level -= 1
                left = bits[level, i]
                i = (i << BITS) + _place(left & -left)
            return i
        i = word + 1
        level += 1
    return -1


@kernel
def last(bits):
    """Return the greatest number of a set, or -1."""
    top, i = bits.shape[0] - 1, 0
    if bits[top, 0] == 0:
        return -1
    for k in range(top + 1):
        i = (i << BITS) + _place(bits[top - k, i])
    return i


@kernel
def set_leaf(tree, i, x):
    """Set one of the numbers below a tree of sums, which are added anew on its way up."""
    i += tree.shape[0] // 2
    tree[i] = x
    while i > 1:
        i >>= 1
        tree[i] = tree[2 * i] + tree[2 * i + 1]


@kernel
def sum_before(tree, i):
    """Return the sum of the numbers before the i-th."""
    i += tree.shape[0] // 2
    total = 0.0
    while i > 1:
        if i & 1:
            total += tree[i - 1]
        i >>= 1
    return total


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
def note(known, x, c, s):
    """Take one more time into account, the last of `known.count`.

    The lower half, a heap of negative times, has as many as the upper one, or one more.
    """
    lower, upper, room = s.heaps[c, 0], s.heaps[c, 1], known.room
    if known.count > 1 and x > -lower[room]:
        _push(upper, room, known.high, x)
        known.high += 1
        if known.count % 2 == 1:
            _push(lower, room, known.low, -upper[room])
            _pop(upper, room, known.high)
            known.low, known.high = known.low + 1, known.high - 1
    else:
        _push(lower, room, known.low, -x)
        known.low += 1
        if known.count % 2 == 0:
            _push(upper, room, known.high, -lower[room])
            _pop(lower, room, known.low)
            known.low, known.high = known.low - 1, known.high + 1


@kernel(inline=True)
def median(known, c, s):
    """Return the middle time, or the mean of the middle two."""
    x = -s.heaps[c, 0, known.room]
    return x if known.count % 2 == 1 else (x + s.heaps[c, 1, known.room]) / 2
