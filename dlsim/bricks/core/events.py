"""The event loop: submissions, transfers, queues, results (paper B, Figure 1 and section 3)."""

import numpy as np

from dlsim.bricks.core.monitor import observe, show_all, show_link, show_server
from dlsim.bricks.core.network import finish_on_link, finish_transfer, least_on_path
from dlsim.bricks.core.schedulers import (
    bar,
    bound_moves,
    choose_server,
    estimate,
    seconds,
    unbar,
)
from dlsim.bricks.core.servers import absorb_background, accept, touch
from dlsim.bricks.core.state import (
    CHOOSE,
    DONE,
    GROW,
    INPUT,
    PACKET,
    RETURNED,
    SERVED,
    SUBMIT,
    USER,
)
from dlsim.kernel import TOL, kernel, latest_finish, meets


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
    heap, i = s.heap, s.head[0].size
    s.head[0].size += 1
    while i > 0 and not before(heap[(i - 1) // 2], time, kind, row, packet):
        heap[i] = heap[(i - 1) // 2]
        i = (i - 1) // 2
    one = heap[i]
    one.time, one.kind, one.row, one.packet, one.hop = time, kind, row, packet, hop


@kernel(inline=True)
def pop(s):
    """Remove the first event from the heap."""
    heap, size = s.heap, s.head[0].size - 1
    s.head[0].size = size
    last, i = heap[size], 0
    while 2 * i + 1 < size:
        k = 2 * i + 1
        if k + 1 < size:
            right = heap[k + 1]
            k += before(right, heap[k].time, heap[k].kind, heap[k].row, heap[k].packet)
        if not before(heap[k], last.time, last.kind, last.row, last.packet):
            break
        heap[i] = heap[k]
        i = k
    heap[i] = last


@kernel(inline=True)
def ends_of(row, w, s):
    """Return the domains between which a request's data flow, in the direction they do."""
    job = s.jobs[row]
    home, there = w.client_domain[w.client[row]], w.server_domain[job.server]
    if job.returning:
        return there * w.domains + home, w.recv[row]
    return home * w.domains + there, w.send[row]


@kernel(inline=True)
def count_links(row, change, w, r, s):
    """Note that a transfer of ours begins or ends on its links."""
    if r.correct_links:
        pair, _ = ends_of(row, w, s)
        for h in range(w.first[pair], w.first[pair + 1]):
            s.links[w.hops[h]].ours += change
            show_link(w.hops[h], w, r, s)


@kernel(inline=True)
def count_jobs(server, change, w, r, s):
    """Note that a job of ours is scheduled on a server, or no longer (eq. 5)."""
    s.servers[server].ours += change
    show_server(server, w, r, s)


@kernel(inline=True)
def send_data(row, now, w, r, s):
    """Start the transfer of a request's input or result."""
    count_links(row, 1, w, r, s)
    pair, data = ends_of(row, w, s)
    first, last = w.first[pair], w.first[pair + 1]
    if r.packets and data > 0 and first < last:
        push(now, PACKET, row, 0, 0, s)
    else:
        end = finish_transfer(now, data, w.rates, w.origin, w.step, w.hops, first, last)
        push(end, RETURNED if s.jobs[row].returning else INPUT, row, 0, 0, s)


@kernel(inline=True)
def absorb_data(link, time, w, s):
    """Let other users' data arrive at a link up to a time."""
    one, last = s.links[link], w.data.first[link + 1]
    while one.at < last:
        size = w.data.sizes[one.at if w.data.sizes.shape[0] > 1 else 0]
        held = w.raw[link, w.raw.shape[1] - 1]
        if w.data.times[one.at] > latest_finish(time, size / held):
            break
        start = max(one.free, w.data.times[one.at])
        one.free = finish_on_link(start, size, w.raw, w.origin, w.step, link)
        one.at += 1


@kernel(inline=True)
def pass_link(row, packet, hop, now, w, s):
    """Let a packet queue at a link and leave it, towards the next one or the end."""
    pair, data = ends_of(row, w, s)
    link, hops = w.hops[w.first[pair] + hop], w.first[pair + 1] - w.first[pair]
    packets = max(1, int(np.ceil(data / w.packet * (1 - TOL))))
    size = w.packet if packet < packets - 1 else max(0.0, data - (packets - 1) * w.packet)
    absorb_data(link, now, w, s)
    one = s.links[link]
    one.free = finish_on_link(max(one.free, now), size, w.raw, w.origin, w.step, link)
    if hop == 0 and packet < packets - 1:
        push(one.free, PACKET, row, packet + 1, 0, s)
    if hop < hops - 1:
        push(one.free, PACKET, row, packet, hop + 1, s)
    elif packet == packets - 1:
        push(one.free, RETURNED if s.jobs[row].returning else INPUT, row, 0, 0, s)


@kernel(inline=True)
def submit(row, now, w, r, s):
    """Pick a server for a request and send its input there (section 3.1)."""
    head, job = s.head[0], s.jobs[row]
    if r.algorithm == USER:
        server = head.choice
        head.choice = -1
    else:
        show_all(w, r, s)
        least, most = bound_moves(row, w, s)
        if r.exclude:
            bar(row, r, s)
        server = choose_server(row, now, least, most, w, r, s)
    one = s.attempts[head.attempts]
    one.row, one.server, one.submitted = row, server, now
    one.estimate = estimate(row, server, w, s)
    if r.exclude:
        unbar(row, r, s)
    job.server, job.submitted, job.attempt, job.returning = server, now, head.attempts, 0
    head.attempts += 1
    count_jobs(server, 1, w, r, s)
    send_data(row, now, w, r, s)


@kernel(inline=True)
def receive(row, now, w, r, s):
    """Take a request whose input has arrived into the queue, or let it fall back."""
    job = s.jobs[row]
    server = job.server
    count_links(row, -1, w, r, s)
    job.arrived = now
    absorb_background(server, now, w, s)
    home = w.client_domain[w.client[row]]
    back = least_on_path(w.server_domain[server], home, s.predicted, w)
    rest = max(0.0, s.servers[server].free - now) + w.work[row] / w.performance[server]
    finish = now + rest + seconds(w.recv[row], back)  # eq. (6), on the clock
    one = s.attempts[job.attempt]
    one.arrived, one.promised = now, finish
    if r.at_arrival:
        finish += now - job.submitted
    due = w.deadline[row] + r.slack
    one.accepted = meets(finish, due, abs(due - w.time[row])) or job.fallbacks >= r.most
    if one.accepted:
        accept(server, row, now, w, s)
        touch(server, now, s)
        push(job.end, SERVED, row, 0, 0, s)
    else:
        if r.exclude:
            s.refused[row, job.fallbacks] = server
        job.fallbacks += 1
        count_jobs(server, -1, w, r, s)
        push(now, SUBMIT, row, 0, 0, s)


@kernel(inline=True)
def carry_out(kind, row, packet, hop, now, w, r, s):
    """Carry out one event."""
    job = s.jobs[row]
    if kind == SUBMIT:
        submit(row, now, w, r, s)
    elif kind == INPUT:
        receive(row, now, w, r, s)
    elif kind == PACKET:
        pass_link(row, packet, hop, now, w, s)
    elif kind == SERVED:
        touch(job.server, now, s)
        if r.until_served:
            count_jobs(job.server, -1, w, r, s)
        job.returning = 1
        send_data(row, now, w, r, s)
    else:
        count_links(row, -1, w, r, s)
        job.completion = now
        s.returned[s.head[0].done] = row
        s.head[0].done += 1
        if not r.until_served:
            count_jobs(job.server, -1, w, r, s)


@kernel
def run(w, r, s):
    """Carry out events until all is done or somebody outside has to speak; say which.

    DONE, CHOOSE (``head.row`` wants ``head.choice``), PREDICT (``head.probes`` - 1 has been
    measured), GROW or FAR.
    """
    head, requests = s.head[0], w.time.shape[0]
    while head.size > 0 or head.new < requests:
        if head.size + 2 > s.heap.shape[0]:
            return GROW
        new = head.new < requests
        if new and head.size > 0:
            new = not before(s.heap[0], w.time[head.new], SUBMIT, head.new, 0)
        one = s.heap[0]
        kind, row, packet, hop, now = one.kind, one.row, one.packet, one.hop, one.time
        if new:
            kind, row, packet, hop, now = SUBMIT, head.new, 0, 0, w.time[head.new]
        head.now = now
        if kind == SUBMIT or kind == INPUT:
            if head.choice < 0:
                why = observe(now, row, kind, w, r, s)
                if why != DONE:
                    return why
            if kind == SUBMIT and r.algorithm == USER and head.choice < 0:
                head.row = row
                show_all(w, r, s)
                bound_moves(row, w, s)
                return CHOOSE
        if new:
            head.new += 1
        else:
            pop(s)
        carry_out(kind, row, packet, hop, now, w, r, s)
    return DONE
