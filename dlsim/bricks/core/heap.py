"""The events to come: a binary heap by time, kind, row and packet."""

from dlsim.kernel import kernel


@kernel(inline=True)
def before(a, time, kind, row, packet):
    """Tell whether an event comes before another one, by time, kind, row and packet."""
    if a.time != time:
        return a.time < time
    if a.kind != kind:
        return a.kind < kind
    return a.row < row or (a.row == row and a.packet < packet)


@kernel(inline=True)
def push(time, kind, row, packet, hop, s):
    """Add an event to the heap."""
    heap, i = s.heap, s.head[0].events
    while i > 0 and not before(heap[(i - 1) // 2], time, kind, row, packet):
        heap[i] = heap[(i - 1) // 2]
        i = (i - 1) // 2
    one = heap[i]
    one.time, one.kind, one.row, one.packet, one.hop = time, kind, row, packet, hop
    s.head[0].events += 1


@kernel(inline=True)
def foresee(time, kind, row, s):
    """Add an event of a request that holds as long as no train of it is broken up."""
    push(time, kind, row, 0, s.jobs[row].course, s)


@kernel(inline=True)
def sink(time, kind, row, packet, hop, s):
    """Put an event in the place of the first one."""
    heap, size, i = s.heap, s.head[0].events, 0
    while 2 * i + 1 < size:
        k = 2 * i + 1
        if k + 1 < size:
            left = heap[k]
            k += before(heap[k + 1], left.time, left.kind, left.row, left.packet)
        if not before(heap[k], time, kind, row, packet):
            break
        heap[i] = heap[k]
        i = k
    one = heap[i]
    one.time, one.kind, one.row, one.packet, one.hop = time, kind, row, packet, hop


@kernel(inline=True)
def pop(s):
    """Remove the first event from the heap."""
    s.head[0].events -= 1
    last = s.heap[s.head[0].events]
    sink(last.time, last.kind, last.row, last.packet, last.hop, s)
