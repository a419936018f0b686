"""The event loop: submissions, transfers, queues, results (paper B, Figure 1 and section 3)."""

import numpy as np

from dlsim.bricks.core import state
from dlsim.bricks.core.monitor import observe, show_all, show_link, show_server
from dlsim.bricks.core.network import entry_at, finish_transfer, least_on_path
from dlsim.bricks.core.schedulers import bar, bound_moves, choose_server, estimate, seconds, unbar
from dlsim.bricks.core.servers import absorb_background, accept, touch
from dlsim.bricks.core.state import before, foresee, pop, push, sink
from dlsim.compiled import CLOCK, TOL, compiled, latest_finish, meets


@compiled(inline=True)
def ends_of(row, w, s):
    """Return the domains between which a request's data flow, in the direction they do."""
    job = s.jobs[row]
    home, there = w.client_domain[w.client[row]], w.server_domain[job.server]
    if job.returning:
        return there * w.domains + home, w.recv[row]
    return home * w.domains + there, w.send[row]


@compiled(inline=True)
def count_links(row, change, w, r, s):
    """Note that a transfer of ours begins or ends on its links."""
    pair, _ = ends_of(row, w, s)
    for h in range(w.first[pair], w.first[pair + 1]):
        one = s.links[w.hops[h]]
        one.ours += change
        if one.alone == row:
            one.alone = -1
        if r.correct_links:
            show_link(w.hops[h], w, r, s)


@compiled(inline=True)
def count_jobs(server, change, w, r, s):
    """Note that a job of ours is scheduled on a server, or no longer (eq. 5)."""
    s.servers[server].ours += change
    show_server(server, w, r, s)


@compiled(inline=True)
def has_arrived(row, end, s):
    """Say when a transfer ends."""
    foresee(end, state.RETURNED if s.jobs[row].returning else state.INPUT, row, s)


@compiled(inline=True)
def send_data(row, now, w, r, s):
    """Start the transfer of a request's input or result."""
    count_links(row, 1, w, r, s)
    pair, data = ends_of(row, w, s)
    first, last, job = w.first[pair], w.first[pair + 1], s.jobs[row]
    job.packets = 0
    if not r.packets or data <= 0 or first == last:
        end = finish_transfer(now, data, w.rates, w.origin, w.step, w.hops, first, last)
        has_arrived(row, end, s)
        return
    job.packets = max(1, int(np.ceil(data / w.packet * (1 - TOL))))
    if enter_links(row, first, last, w, s):
        end, _ = move_train(row, np.inf, False, w, s)
        has_arrived(row, end, s)
    else:
        push(now, state.PACKET, row, 0, 0, s)


@compiled(inline=True)
def finish_on_link(link, start, data, w):
    """Return when data that have one link to themselves have left it."""
    return finish_transfer(start, data, w.raw, w.origin, w.step, w.every, link, link + 1)


@compiled(inline=True)
def absorb_data(link, time, w, s):
    """Let other users' data arrive at a link up to a time."""
    one, last = s.links[link], w.data.first[link + 1]
    while one.at < last:
        size = w.data.sizes[one.at if w.data.sizes.shape[0] > 1 else 0]
        held = w.raw[link, w.raw.shape[1] - 1]
        if w.data.times[one.at] > latest_finish(time, size / held):
            break
        start = max(one.free, w.data.times[one.at])
        one.free = finish_on_link(link, start, size, w)
        one.at += 1


@compiled(inline=True)
def enter_links(row, first, last, w, s):
    """Tell whether a path is idle; a train that had one of its links to itself is broken up."""
    idle, head = w.data.times.shape[0] == 0, s.head[0]
    for h in range(first, last):
        one = s.links[w.hops[h]]
        idle = idle and one.ours == 1
        if one.alone >= 0:
            other = s.jobs[one.alone]
            other.course += 1
            other.broken, head.broken = head.broken, one.alone
            take_links(one.alone, -1, w, s)
    if idle:
        take_links(row, row, w, s)
    return idle


@compiled(inline=True)
def take_links(row, alone, w, s):
    """Write who has the links of a request's path to himself."""
    pair, _ = ends_of(row, w, s)
    for h in range(w.first[pair], w.first[pair + 1]):
        s.links[w.hops[h]].alone = alone


@compiled(inline=True)
def passed(link, start, is_full, left, w, s):
    """Return when a packet that has a link to itself from a time on has left it."""
    one, steps = s.links[link], w.raw.shape[1]
    if is_full and start < one.sure and w.packet <= one.rate * (one.edge - start):
        return start + one.span
    k = entry_at(w.origin + start, w.step, steps)
    one.rate = w.raw[link, k]
    one.span, one.edge = w.packet / one.rate, np.inf
    if k < steps - 1:
        one.edge = (k + 1) * w.step - w.origin
    one.sure = one.edge - TOL * (w.step + (w.origin + one.edge) / CLOCK)
    size = w.packet if is_full else left
    return finish_on_link(link, start, size, w)


@compiled(inline=True)
def move_over_link(link, offered, begin, count, until, packets, left, w, s):
    """Let packets of a train that are offered before a time pass a link; return how many pass.

    To the first link each packet is offered when the one before has left it: see `offered`.
    """
    is_first, k, free = offered > -np.inf, 0, s.links[link].free
    while k < count and (offered if is_first else s.course[k]) < until:
        start = max(free, offered if is_first else s.course[k])
        free = passed(link, start, begin + k < packets - 1, left, w, s)
        s.course[k] = free
        offered = free if is_first else offered
        k += 1
    s.links[link].free = free
    return k, offered


@compiled
def move_train(row, until, keep, w, s):
    """Let the packets of a transfer that has its links to itself pass them up to a time.

    Return when the transfer ends (NaN: later), and how many packets are on their way; `keep`
    puts them into the heap.
    """
    job = s.jobs[row]
    pair, data = ends_of(row, w, s)
    first, last, packets = w.first[pair], w.first[pair + 1], job.packets
    left = max(0.0, data - (packets - 1) * w.packet)
    offered = job.end if job.returning else job.submitted
    for h in range(first, last):
        s.links[w.hops[h]].free, s.links[w.hops[h]].sure = offered, -np.inf
    begin, pending, end = 0, 0, np.nan
    while begin < packets and offered < until:
        count = moved = min(state.BLOCK, packets - begin)
        for h in range(first, last):
            came, at = moved, offered if h == first else -np.inf
            moved, at = move_over_link(w.hops[h], at, begin, came, until, packets, left, w, s)
            if h == first:
                count, offered = moved, at
                continue
            pending += came - moved
            for k in range(moved, came if keep else moved):
                push(s.course[k], state.PACKET, row, begin + k, h - first, s)
        begin += count
        if begin == packets and moved == count:
            end = s.course[count - 1]
    if begin < packets:
        pending += 1
        if keep:
            push(offered, state.PACKET, row, begin, 0, s)
    return end, pending


@compiled(inline=True)
def break_up(w, s):
    """Go on packet by packet with trains that another transfer joins; False for no room."""
    head = s.head[0]
    while head.broken >= 0:
        row = head.broken
        _, pending = move_train(row, head.now, False, w, s)
        head.wanted = head.events + pending + state.ROUND + 2
        if head.wanted > s.heap.shape[0]:
            return False
        end, _ = move_train(row, head.now, True, w, s)
        if not np.isnan(end):
            has_arrived(row, end, s)
        head.broken = s.jobs[row].broken
    return True


@compiled(inline=True)
def pass_link(w, s):
    """Let the packet that comes first pass a link, and offer it to the next; one follows it."""
    one = s.heap[0]
    now, row, packet, hop = one.time, one.row, one.packet, one.hop
    pair, data = ends_of(row, w, s)
    at, last = w.first[pair] + hop, s.jobs[row].packets - 1
    link = s.links[w.hops[at]]
    absorb_data(w.hops[at], now, w, s)
    left = max(0.0, data - last * w.packet)
    link.free = passed(w.hops[at], max(link.free, now), packet < last, left, w, s)
    if at + 1 < w.first[pair + 1]:
        sink(link.free, state.PACKET, row, packet, hop + 1, s)
    else:
        pop(s)
        if packet == last:
            has_arrived(row, link.free, s)
    if hop == 0 and packet < last:
        push(link.free, state.PACKET, row, packet + 1, 0, s)


@compiled(inline=True)
def choose(row, now, w, r, s):
    """Pick a server for a request (section 3.1), or leave that to a user's scheduler."""
    show_all(w, r, s)
    least, most = bound_moves(row, w, r, s)
    if r.exclude:
        bar(row, s)
    s.head[0].row = row
    if r.algorithm != state.USER:
        s.head[0].choice = choose_server(row, now, least, most, w, r, s)


@compiled(inline=True)
def refuse(row, r, s):
    """Refuse a request, as a user's scheduler has decided."""
    job = s.jobs[row]
    s.head[0].choice = -1
    if r.exclude:
        unbar(row, s)
    job.server, job.completion = -1, np.inf
    job.submitted = job.arrived = job.start = job.end = np.nan


@compiled(inline=True)
def submit(row, now, w, r, s):
    """Submit a request to the server that was chosen."""
    head, job, server = s.head[0], s.jobs[row], s.head[0].choice
    head.choice = -1
    one = s.attempts[head.attempts]
    one.row, one.server, one.submitted = row, server, now
    one.estimate = estimate(row, server, w, s)
    if r.exclude:
        unbar(row, s)
    job.server, job.submitted, job.attempt, job.returning = server, now, head.attempts, 0
    head.attempts += 1
    count_jobs(server, 1, w, r, s)


@compiled(inline=True)
def receive(row, now, w, r, s):
    """Take a request whose input has arrived into the queue, or let it fall back."""
    job = s.jobs[row]
    server = job.server
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
        foresee(job.end, state.SERVED, row, s)
    else:
        if r.exclude:
            s.refused[row, job.fallbacks] = server
        job.fallbacks += 1
        count_jobs(server, -1, w, r, s)
        foresee(now, state.SUBMIT, row, s)


@compiled(inline=True)
def carry_out(kind, row, now, w, r, s):
    """Carry out one event."""
    head, job = s.head[0], s.jobs[row]
    if kind == state.INPUT or kind == state.RETURNED:
        count_links(row, -1, w, r, s)
    if kind == state.SUBMIT:
        if head.choice == state.REFUSE:
            refuse(row, r, s)
            return
        submit(row, now, w, r, s)
    elif kind == state.INPUT:
        receive(row, now, w, r, s)
    elif kind == state.SERVED:
        touch(job.server, now, s)
        job.returning = 1
    else:
        job.completion = now
        s.returned[head.done] = row
        head.done += 1
    if kind == (state.SERVED if r.until_served else state.RETURNED):
        count_jobs(job.server, -1, w, r, s)
    if kind == state.SERVED or kind == state.SUBMIT:
        send_data(row, now, w, r, s)


@compiled
def run(w, r, s):
    """Carry out events until all is done or somebody outside has to speak; say which.

    DONE, CHOOSE (``head.row`` wants ``head.choice``), PREDICT (``head.probes`` - 1 has been
    measured), GROW, FAR, MORE or PAUSE.
    """
    head, requests = s.head[0], w.time.shape[0]
    while head.events > 0 or head.new < requests:
        head.wanted = head.events + state.ROUND + 2
        if head.wanted > s.heap.shape[0] or not break_up(w, s):
            return state.GROW
        head.steps += 1
        if head.steps % state.STRIDE == 0:
            return state.PAUSE
        one, new = s.heap[0], head.new < requests
        if new and head.events > 0:
            new = not before(one, w.time[head.new], state.SUBMIT, head.new, 0)
        kind, row, now = one.kind, one.row, one.time
        if new:
            kind, row, now = state.SUBMIT, head.new, w.time[head.new]
        elif kind == state.PACKET:
            until = w.time[head.new] if head.new < requests else np.inf
            for _ in range(state.ROUND):
                pass_link(w, s)
                if head.events == 0 or s.heap[0].kind != state.PACKET or s.heap[0].time >= until:
                    break
            continue
        elif one.hop != s.jobs[row].course:
            pop(s)  # the end of a train that was broken up
            continue
        head.now = now
        if now >= w.until:
            return state.MORE
        if head.choice < 0 and (kind == state.SUBMIT or kind == state.INPUT):
            why = observe(now, row, kind, w, r, s)
            if why != state.DONE:
                return why
            if kind == state.SUBMIT:
                choose(row, now, w, r, s)
                if head.choice < 0:
                    return state.CHOOSE
        if new:
            head.new += 1
        else:
            pop(s)
        carry_out(kind, row, now, w, r, s)
    return state.DONE
