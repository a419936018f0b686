"""The event loop: submissions, transfers, queues, results (paper B, Figure 1 and section 3)."""

import numpy as np

from dlsim.bricks.core.events import (
    comes_before,
    remove_first,
    replace_first,
    schedule_event,
    schedule_packet,
)
from dlsim.bricks.core.monitor import update_monitor
from dlsim.bricks.core.network import (
    absorb_link_background,
    finish_on_link,
    finish_transfer,
    path_between,
)
from dlsim.bricks.core.schedulers import (
    accepts_request,
    choose_server,
    exclude_rejecting,
    promise_completion,
    refresh_estimates,
)
from dlsim.bricks.core.servers import absorb_background, enqueue_request
from dlsim.bricks.core.state import (
    CHOOSE,
    DONE,
    EVENTS_PER_PAUSE,
    HEAP_FULL,
    INPUT_ARRIVAL,
    NONE,
    PACKET,
    PAUSE,
    REFUSED,
    RESULT_ARRIVAL,
    SERVICE_END,
    SUBMISSION,
    USER,
)
from dlsim.compiled import TOL, compiled


@compiled(inline=True)
def count_transfer(row, change, env, state):
    """Count a transfer that begins (change 1) or ends (-1) on the links of its path."""
    request = state.requests[row]
    for hop in range(request.first_hop, request.last_hop):
        state.links[env.path_links[hop]].transfers += change


@compiled(inline=True)
def schedule_arrival(row, time, state):
    """Schedule the end of a request's transfer under way."""
    kind = RESULT_ARRIVAL if state.requests[row].is_returning else INPUT_ARRIVAL
    schedule_event(time, kind, row, state)


@compiled(inline=True)
def start_transfer(row, now, env, cfg, state):
    """Start the transfer of a request's input or result."""
    request = state.requests[row]
    home, there = env.client_domain[env.client[row]], env.server_domain[request.server]
    if request.is_returning:
        data, (first, last) = env.recv[row], path_between(there, home, env)
    else:
        data, (first, last) = env.send[row], path_between(home, there, env)
    request.first_hop, request.last_hop = first, last
    count_transfer(row, 1, env, state)
    if cfg.packets and data > 0 and first < last:
        request.packets = max(1, int(np.ceil(data / env.packet * (1 - TOL))))
        request.last_packet = max(0.0, data - (request.packets - 1) * env.packet)
        schedule_packet(now, row, 0, first, state)
    else:
        path = env.path_links[first:last]
        end = finish_transfer(now, data, env.rates, path, env.origin, env.step)
        schedule_arrival(row, end, state)


@compiled(inline=True)
def forward_packet(env, state):
    """Move the next packet over a link, and offer it to the following link of its path.

    The next packet of the transfer is offered to the first link when this one has left it.
    """
    counters, event = state.counters[0], state.packets[0]
    now, row, packet, hop = event.time, event.row, event.packet, event.hop
    request, link = state.requests[row], env.path_links[hop]
    is_last = packet == request.packets - 1
    size = request.last_packet if is_last else env.packet
    absorb_link_background(link, now, env, state)
    start = max(state.links[link].free, now)
    left = finish_on_link(start, size, env.capacity[link], env.origin, env.step)
    state.links[link].free = left
    if hop + 1 < request.last_hop:
        replace_first(state.packets, counters.packets, left, PACKET, row, packet, hop + 1)
    else:
        remove_first(state.packets, counters.packets)
        counters.packets -= 1
        if is_last:
            schedule_arrival(row, left, state)
    if hop == request.first_hop and not is_last:
        schedule_packet(left, row, packet + 1, hop, state)


@compiled(inline=True)
def refuse_request(row, state):
    """Record that a user's scheduler refuses a request."""
    request = state.requests[row]
    request.server, request.completion = NONE, np.inf
    request.submitted = request.arrived = request.start = request.end = np.nan


@compiled(inline=True)
def submit_request(row, server, now, env, cfg, state):
    """Submit a request to the server that was chosen, and start to send its input."""
    counters, request = state.counters[0], state.requests[row]
    attempt = state.attempts[counters.attempts]
    attempt.row, attempt.server, attempt.submitted = row, server, now
    attempt.estimate = state.estimates[server]
    request.server, request.submitted, request.is_returning = server, now, 0
    request.attempt = counters.attempts
    counters.attempts += 1
    state.scheduled[server] += 1
    start_transfer(row, now, env, cfg, state)


@compiled(inline=True)
def receive_input(row, now, env, cfg, state):
    """Queue a request whose input has arrived, or submit it again as a fallback (eq. 6, 7)."""
    count_transfer(row, -1, env, state)
    request = state.requests[row]
    server, attempt = request.server, state.attempts[request.attempt]
    absorb_background(server, now, env, state)
    promised = promise_completion(row, now, env, state)
    request.arrived = attempt.arrived = now
    attempt.promised = promised
    attempt.accepted = accepts_request(row, now, promised, env, cfg, state)
    if attempt.accepted:
        enqueue_request(row, server, now, env, state)
        schedule_event(request.end, SERVICE_END, row, state)
        return
    if cfg.exclude_rejecting:
        state.rejected_by[row, request.fallbacks] = server
    request.fallbacks += 1
    state.scheduled[server] -= 1
    schedule_event(now, SUBMISSION, row, state)


@compiled(inline=True)
def end_service(row, now, env, cfg, state):
    """Start to send back the result of a request that its server has run."""
    request = state.requests[row]
    request.is_returning = 1
    if cfg.corrected_until_served:
        state.scheduled[request.server] -= 1
    start_transfer(row, now, env, cfg, state)


@compiled(inline=True)
def receive_result(row, now, env, cfg, state):
    """Complete a request whose result has come back to its client."""
    count_transfer(row, -1, env, state)
    counters, request = state.counters[0], state.requests[row]
    request.completion = now
    state.returned[counters.done] = row
    counters.done += 1
    if not cfg.corrected_until_served:
        state.scheduled[request.server] -= 1


@compiled(inline=True)
def has_room(state):
    """Tell whether both heaps have room for what one event adds."""
    counters = state.counters[0]
    return counters.events < state.heap.shape[0] and counters.packets < state.packets.shape[0]


@compiled(inline=True)
def is_packet_next(env, state):
    """Tell whether a packet moves before all other events; at the same time it comes last."""
    counters = state.counters[0]
    if counters.packets == 0:
        return False
    time = state.packets[0].time
    is_before_new = counters.new == env.arrival.shape[0] or time < env.arrival[counters.new]
    return is_before_new and (counters.events == 0 or time < state.heap[0].time)


@compiled(inline=True)
def is_new_request_next(env, state):
    """Tell whether the first submission of a request comes before the events of the heap."""
    counters = state.counters[0]
    if counters.new == env.arrival.shape[0]:
        return False
    time = env.arrival[counters.new]
    return counters.events == 0 or not comes_before(
        state.heap[0], time, SUBMISSION, counters.new, 0
    )


@compiled(inline=True)
def prepare_event(kind, row, now, env, cfg, state):
    """Bring the monitor up to an event, and choose the server of a submission.

    Returns DONE, or why the loop has to stop before the event.
    """
    counters = state.counters[0]
    if kind == SUBMISSION or kind == INPUT_ARRIVAL:
        reason = update_monitor(now, env, cfg, state)
        if reason != DONE:
            return reason
    if kind == SUBMISSION:
        refresh_estimates(row, env, cfg, state)
        if cfg.exclude_rejecting:
            exclude_rejecting(row, state)
        if cfg.algorithm == USER:
            counters.row = row
            return CHOOSE
        counters.choice = choose_server(row, now, env, cfg, state)
    return DONE


@compiled(inline=True)
def carry_out(kind, row, now, env, cfg, state):
    """Carry out an event of a request."""
    counters = state.counters[0]
    if kind == SUBMISSION:
        choice = counters.choice
        counters.choice = NONE
        if choice == REFUSED:
            refuse_request(row, state)
        else:
            submit_request(row, choice, now, env, cfg, state)
    elif kind == INPUT_ARRIVAL:
        receive_input(row, now, env, cfg, state)
    elif kind == SERVICE_END:
        end_service(row, now, env, cfg, state)
    else:
        receive_result(row, now, env, cfg, state)


@compiled
def run_events(env, cfg, state):
    """Carry out events until all requests are done or the caller has to act; return why.

    DONE, CHOOSE (write the server for request ``counters.row`` to ``counters.choice``), PREDICT
    (probe ``counters.probes`` - 1 has been measured), HEAP_FULL, TOO_MANY_PROBES or PAUSE.
    """
    counters = state.counters[0]
    while counters.events > 0 or counters.packets > 0 or counters.new < env.arrival.shape[0]:
        if not has_room(state):
            return HEAP_FULL
        counters.steps += 1
        if counters.steps % EVENTS_PER_PAUSE == 0:
            return PAUSE
        if is_packet_next(env, state):
            forward_packet(env, state)
            continue
        is_new = is_new_request_next(env, state)
        if is_new:
            kind, row, now = SUBMISSION, counters.new, env.arrival[counters.new]
        else:
            kind, row, now = state.heap[0].kind, state.heap[0].row, state.heap[0].time
        counters.now = now
        if counters.choice == NONE:  # else the caller has chosen for this very submission
            reason = prepare_event(kind, row, now, env, cfg, state)
            if reason != DONE:
                return reason
        if is_new:
            counters.new += 1
        else:
            remove_first(state.heap, counters.events)
            counters.events -= 1
        carry_out(kind, row, now, env, cfg, state)
    return DONE
