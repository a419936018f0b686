"""Heaps of events to come: by time, kind, request and packet."""

from dlsim.bricks.core.state import PACKET
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
def set_event(event, time, kind, row, packet, hop):
    """Write the fields of an event."""
    event.time, event.kind, event.row, event.packet, event.hop = time, kind, row, packet, hop


@compiled(inline=True)
def copy_event(event, place):
    """Copy an event field by field: numba copies a record byte by byte."""
    set_event(place, event.time, event.kind, event.row, event.packet, event.hop)


@compiled(inline=True)
def push_event(heap, size, time, kind, row, packet, hop):
    """Add an event to a heap of `size` events."""
    i = size
    while i > 0 and not comes_before(heap[(i - 1) // 2], time, kind, row, packet):
        copy_event(heap[(i - 1) // 2], heap[i])
        i = (i - 1) // 2
    set_event(heap[i], time, kind, row, packet, hop)


@compiled(inline=True)
def replace_first(heap, size, time, kind, row, packet, hop):
    """Put an event in the place of the first one."""
    i = 0
    while 2 * i + 1 < size:
        child = 2 * i + 1
        if child + 1 < size:
            left = heap[child]
            child += comes_before(heap[child + 1], left.time, left.kind, left.row, left.packet)
        if not comes_before(heap[child], time, kind, row, packet):
            break
        copy_event(heap[child], heap[i])
        i = child
    set_event(heap[i], time, kind, row, packet, hop)


@compiled(inline=True)
def remove_first(heap, size):
    """Remove the first event from a heap of `size` events."""
    last = heap[size - 1]
    replace_first(heap, size - 1, last.time, last.kind, last.row, last.packet, last.hop)


@compiled(inline=True)
def schedule_event(time, kind, row, state):
    """Add an event of a request to the heap of events that are not of packets."""
    counters = state.counters[0]
    push_event(state.heap, counters.events, time, kind, row, 0, 0)
    counters.events += 1


@compiled(inline=True)
def schedule_packet(time, row, packet, hop, state):
    """Schedule when a packet of a request is offered to a link of its path."""
    counters = state.counters[0]
    push_event(state.packets, counters.packets, time, PACKET, row, packet, hop)
    counters.packets += 1
