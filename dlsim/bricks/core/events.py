"""The heap of events to come: by time, kind, request and packet."""

from dlsim.compiled import compiled


@compiled(inline=True)
def comes_before(event, time, kind, row, packet):
    """Tell whether an event comes before one with this time, kind, row and packet."""
    if event.time != time:
        return event.time < time
    if event.kind != kind:
        return event.kind < kind
    return event.row < row or (event.row == row and event.packet < packet)


@compiled(inline=True)
def push_event(time, kind, row, packet, hop, state):
    """Add an event to the heap."""
    heap, i = state.heap, state.counters[0].events
    while i > 0 and not comes_before(heap[(i - 1) // 2], time, kind, row, packet):
        heap[i] = heap[(i - 1) // 2]
        i = (i - 1) // 2
    event = heap[i]
    event.time, event.kind, event.row, event.packet, event.hop = time, kind, row, packet, hop
    state.counters[0].events += 1


@compiled(inline=True)
def schedule_event(time, kind, row, state):
    """Add an event of a request to the heap."""
    push_event(time, kind, row, 0, 0, state)


@compiled(inline=True)
def replace_event(time, kind, row, packet, hop, state):
    """Put an event in the place of the first one."""
    heap, size, i = state.heap, state.counters[0].events, 0
    while 2 * i + 1 < size:
        child = 2 * i + 1
        if child + 1 < size:
            left = heap[child]
            child += comes_before(heap[child + 1], left.time, left.kind, left.row, left.packet)
        if not comes_before(heap[child], time, kind, row, packet):
            break
        heap[i] = heap[child]
        i = child
    event = heap[i]
    event.time, event.kind, event.row, event.packet, event.hop = time, kind, row, packet, hop


@compiled(inline=True)
def pop_event(state):
    """Remove the first event from the heap."""
    state.counters[0].events -= 1
    last = state.heap[state.counters[0].events]
    replace_event(last.time, last.kind, last.row, last.packet, last.hop, state)
