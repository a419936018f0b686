"""Servers: queues of client and background jobs, first come, first served.

Background jobs are not events. A queue is computed job by job (the recursion of Lindley:
a job starts when it has arrived and the job before it has ended) up to the time asked for.
Source: paper B, sections 2.1 and 3.3.
"""

import numpy as np

from dlsim.bricks.core.network import entry_at, size_of
from dlsim.bricks.core.state import NONE
from dlsim.compiled import TOL, compiled, deadline_with_tolerance

#: Background jobs that `bound_free_time` takes at once, and that are then served in turn.
JOBS_PER_STEP = 64


@compiled(inline=True)
def finish_service(server, start, work, env):
    """Return when a server ends work that it starts at a time."""
    steps, speed = env.load_traces.shape[1], env.performance[server]
    if steps == 0 or work <= 0:
        return start + work / speed
    entry, now, work_left = entry_at(env.origin + start, env.step, steps), start, work
    while entry < steps - 1:
        entry_end = (entry + 1) * env.step - env.origin
        work_of_entry = speed / (1 + env.load_traces[server, entry]) * (entry_end - now)
        if work_left <= work_of_entry:
            break
        work_left -= work_of_entry
        now, entry = entry_end, entry + 1
    return now + work_left * (1 + env.load_traces[server, entry]) / speed


@compiled(inline=True)
def arrives_by(time, server, job, env):
    """Tell whether a background job arrives by a time, within the tolerance of its service."""
    arrival = env.background.times[job]
    if arrival <= time:
        return True
    service = size_of(job, env.background.sizes) / env.performance[server]
    return arrival <= deadline_with_tolerance(time, service)


@compiled(inline=True)
def finish_background(server, job, free, env):
    """Return when a server that is free at a time starts and ends a background job."""
    start = max(free, env.background.times[job])
    return start, finish_service(server, start, size_of(job, env.background.sizes), env)


@compiled
def serve_in_turn(times, service, free):
    """Return when a queue is free after jobs of equal service that arrive at these times."""
    waiting, jobs = 0, times.shape[0]
    while waiting < jobs and times[waiting] <= free:  # without `max` this is three times faster
        free += service
        waiting += 1
    for job in range(waiting, jobs):
        free = max(free, times[job]) + service
    return free


@compiled
def bound_free_time(times, service, free):
    """Return a time by which a queue is surely free after jobs of equal service."""
    for first in range(0, times.shape[0], JOBS_PER_STEP):
        last = min(first + JOBS_PER_STEP, times.shape[0])
        free = max(free, times[last - 1]) + (last - first) * service
        free += TOL * abs(free)  # more than the rounding of as many sums
    return free


@compiled
def serve_equal_jobs(times, service, free):
    """Return what `serve_in_turn` returns, mostly without serving all jobs.

    If the queue empties during the last jobs, the end does not depend on the jobs before them: it
    is the same whether the server was free long ago or only at the latest possible time.
    """
    begin = max(0, times.shape[0] - JOBS_PER_STEP)
    latest = bound_free_time(times[:begin], service, free)
    end = serve_in_turn(times[begin:], service, -np.inf)
    if serve_in_turn(times[begin:], service, latest) == end:
        return end
    return serve_in_turn(times, service, free)


@compiled(inline=True)
def absorb_background(server, time, env, state):
    """Queue the background jobs that arrive at a server up to a time."""
    record, last = state.servers[server], env.background.first[server + 1]
    job, free = record.next_background, record.free
    if env.load_traces.shape[1] == 0 and env.background.sizes.shape[0] == 1:
        service = env.background.sizes[0] / env.performance[server]
        latest, times = deadline_with_tolerance(time, service), env.background.times
        last = job + np.searchsorted(times[job:last], latest, side="right")
        free, job = serve_equal_jobs(times[job:last], service, free), last
    while job < last and arrives_by(time, server, job, env):
        _, free = finish_background(server, job, free, env)
        job += 1
    record.next_background, record.free = job, free


@compiled(inline=True)
def enqueue_request(row, server, time, env, state):
    """Put a request at the end of a queue; `absorb_background` has been called up to its time."""
    record, request = state.servers[server], state.requests[row]
    request.start = max(record.free, time)
    request.end = finish_service(server, request.start, env.work[row], env)
    record.free = request.end
    if record.last_client == NONE:
        record.first_client = row
    else:
        state.requests[record.last_client].next_client = row
    record.last_client = row


@compiled(inline=True)
def next_client(server, row, state):
    """Return the client job after one on its server, after NONE the first; NONE at the end."""
    return state.servers[server].first_client if row == NONE else state.requests[row].next_client


@compiled(inline=True)
def count_clients_until(server, cursor, bound, has_ended, state):
    """Return how many client jobs have arrived, or ended, by an instant; move their cursor."""
    row = next_client(server, cursor.last_client, state)
    while row != NONE:
        request = state.requests[row]
        if (request.end if has_ended else request.arrived) > bound:
            break
        cursor.last_client = row
        cursor.count += 1
        row = request.next_client
    return cursor.count


@compiled(inline=True)
def count_arrived_jobs(server, cursor, bound, env, state):
    """Return how many jobs, client and background, have arrived by an instant."""
    count_clients_until(server, cursor, bound, False, state)
    job, last = cursor.next_background, env.background.first[server + 1]
    while job < last and env.background.times[job] <= bound:
        job += 1
    cursor.count += job - cursor.next_background
    cursor.next_background = job
    return cursor.count


@compiled
def pass_ended_jobs(server, cursor, bound, time, env, state):
    """Move a cursor past all jobs that have ended by an instant; return the seconds of service.

    The service up to `time` of the job that is being served then is included.
    """
    last = env.background.first[server + 1]
    while True:
        row, job = next_client(server, cursor.last_client, state), cursor.next_background
        client_arrival = state.requests[row].arrived if row != NONE else np.inf
        is_background = job < last and arrives_by(client_arrival, server, job, env)
        if is_background:
            start, end = finish_background(server, job, cursor.free, env)
        elif row != NONE:
            start, end = state.requests[row].start, state.requests[row].end
        else:
            return cursor.busy
        if end > bound:
            return cursor.busy + max(0.0, time - start)
        cursor.busy += end - start
        cursor.free = end
        cursor.count += 1
        if is_background:
            cursor.next_background += 1
        else:
            cursor.last_client = row
