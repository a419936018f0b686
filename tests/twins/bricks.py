"""Slow, plain twin of the Grid simulator of paper B: one heap, every job and packet an event.

It reads an environment, a policy and a reading as plain attributes, shares no code with
dlsim, and computes with Python floats in lists. A heap entry is (when, kind, who, n, what): at
one instant kinds go in the order of their numbers, requests in the order of their table.
Probes and other users' arrivals come a tolerance early, so that they precede what they
coincide with; a probe precedes an arrival.
"""

import heapq
import math
from itertools import accumulate
from types import SimpleNamespace

import numpy as np

TOL = 1e-12
PROBE, OTHERS, SERVED, RETURNED, ARRIVED, SUBMITTED, OFFERED = range(7)
WINDOW_PROBES = 10


def slack(span, *clock):
    """What tells two instants apart, for a duration at hand."""
    return TOL * (abs(span) + max(map(abs, clock)) / 1024)


def meets(finish, due, span):
    return finish <= due + slack(span, due)


def one_instant(a, b, span):
    return a == b or abs(a - b) <= slack(span, a, b) < math.inf


def early(t, span):
    return t - slack(span, t)


# --- a resource over time --------------------------------------------------------------------


def entry(values, step, t):
    """The value of a trace at t; the last one is held."""
    return values[min(math.floor((t + slack(step, t)) / step), len(values) - 1)]


def walk(start, size, rate_in_step, step, steps):
    """When `size` units that begin at `start` are through, step by step of the trace."""
    t, k = start, math.floor(start / step)
    while size > 0:
        if k >= steps - 1:
            return t + size / rate_in_step(steps - 1)
        rate, end = rate_in_step(k), (k + 1) * step
        if rate > 0 and size <= rate * (end - t):
            return t + size / rate
        size -= rate * (end - t)
        t, k = end, k + 1
    return t


def fluid(start, size, rows, step):
    """One transfer at the smallest throughput of its links."""
    return walk(start, size, lambda k: min(row[k] for row in rows), step, len(rows[0]))


def arrivals(stream, queue):
    """The (time, size) of other users' jobs or data at one queue."""
    times = list(map(float, stream.times[stream.first[queue] : stream.first[queue + 1]]))
    if len(stream.sizes) == 1:
        return [(t, float(stream.sizes[0])) for t in times]
    sizes = stream.sizes[stream.first[queue] : stream.first[queue + 1]]
    return list(zip(times, map(float, sizes), strict=True))


def what_others_leave(rows, step, stream):
    """Throughput times idle fraction, step by step, at least 1 % (the monitor sees no more).

    Up to the end of the trace or of the last arrival's step; then the last throughput, whole.
    """
    last = max((float(t) for t in stream.times), default=0.0)
    n = max(len(rows[0]), math.floor(last / step) + 1)
    return [left_of(row, step, arrivals(stream, link), n) for link, row in enumerate(rows)]


def left_of(row, step, others, n):
    busy, free = [0.0] * n, 0.0
    for t, size in others:
        start = max(t, free)
        free = walk(start, size, row.__getitem__, step, len(row))
        for k in range(math.floor(start / step), n):
            busy[k] += max(0.0, min(free, (k + 1) * step) - max(start, k * step))
            if free <= (k + 1) * step:
                break
    held = row + [row[-1]] * (n + 1 - len(row))
    return [r * max(0.01, 1 - b / step) for r, b in zip(held, [*busy, 0.0], strict=True)]


# --- predictors: what a series of measurements is expected to be next ---------------------------


def last(series):
    return series[-1]


def mean_of_ten(series):
    return sum(series[-WINDOW_PROBES:]) / len(series[-WINDOW_PROBES:])


def smoothed(share):
    return lambda series: [*accumulate(series, lambda value, x: value + share * (x - value))]


#: What each forecaster expected after the first of the measurements, after two, after all.
FORECASTERS = (
    lambda series: series,
    lambda series: [mean_of_ten(series[max(0, n - WINDOW_PROBES) : n]) for n in count_of(series)],
    lambda series: [x / n for x, n in zip(accumulate(series), count_of(series), strict=True)],
    smoothed(0.1),
    smoothed(0.5),
)


def count_of(series):
    return range(1, len(series) + 1)


def adaptive(series):
    """The forecaster with the smallest sum of absolute errors so far, the first of equal ones."""
    guesses = [forecaster(series) for forecaster in FORECASTERS]
    errors = [
        sum(abs(guess - x) for guess, x in zip(some[:-1], series[1:], strict=True))
        for some in guesses
    ]
    best = min(errors)
    pairs = zip(guesses, errors, strict=True)
    return next(some[-1] for some, error in pairs if one_instant(error, best, series[-1]))


# --- the simulated world ---------------------------------------------------------------------


class Job:
    def __init__(self, who, work):
        self.who, self.work = who, work
        self.began = self.ends = None


class Server:
    """One job at a time, first come, first served."""

    def __init__(self, performance, load, step):
        self.performance, self.load, self.step = performance, load, step
        self.waiting, self.running, self.served = [], None, []
        self.ours = 0  # client jobs in the queue or running

    def finish(self, start, work):
        if self.load is None:
            return start + work / self.performance
        speed = [self.performance / (1 + x) for x in self.load]
        return walk(start, work, speed.__getitem__, self.step, len(speed))

    def begin_next(self, now):
        """Let the next job begin if the server is idle; return it."""
        if self.running is not None or not self.waiting:
            return None
        job = self.running = self.waiting.pop(0)
        job.began, job.ends = now, self.finish(now, job.work)
        self.served.append(job)
        return job

    def free(self, now):
        """When a job that arrives now would begin."""
        end = now if self.running is None else self.running.ends
        for job in self.waiting:
            end = self.finish(end, job.work)
        return end

    def busy(self, start, end):
        return sum(max(0.0, min(one.ends, end) - max(one.began, start)) for one in self.served)


class Request:
    def __init__(self, row):
        self.arrival, self.due = float(row.arrival), float(row.due)
        self.client = int(row.client)
        self.send, self.recv, self.work = float(row.send), float(row.recv), float(row.work)
        self.server, self.submitted, self.completion, self.status = -1, None, None, None
        self.fallbacks, self.refused = 0, set()
        self.on = []  # links of the transfer under way


class Twin:
    def __init__(self, env, policy, reading):
        self.env, self.policy, self.reading = env, policy, reading
        self.step = float(env.step)
        traces = np.asarray(env.traces, dtype=float)
        self.rows = traces.reshape(-1, traces.shape[-1]).tolist()
        self.seen_rows = self.rows
        if len(env.link_background.times):
            self.seen_rows = what_others_leave(self.rows, self.step, env.link_background)
        loads = env.load_traces
        self.servers = [
            Server(
                float(row.performance),
                None if loads is None else list(map(float, loads[i])),
                self.step,
            )
            for i, row in enumerate(env.servers.itertuples())
        ]
        self.server_domain = [int(d) for d in env.servers["domain"]]
        self.client_domain = [int(d) for d in env.clients["domain"]]
        self.requests = [Request(row) for row in env.requests.itertuples()]
        self.routes = env.paths
        self.left = len(self.requests)
        self.scheduled = [0] * len(self.servers)  # numjobs of eq. 5
        self.crossing = [0] * len(self.rows)  # transfers of ours under way
        self.link_free = [0.0] * len(self.rows)
        self.history, self.believed, self.n_probes, self.counter = [], None, 0, 0
        self.heap = []

    # --- the network -------------------------------------------------------------------------

    def path(self, a, b):
        if self.routes is not None:
            return list(self.routes.path(a, b))
        if a == b:
            return [4 * a, 4 * a + 1]  # LAN up, LAN down
        return [4 * a, 4 * a + 2, 4 * b + 3, 4 * b + 1]  # LAN up, WAN up, WAN down, LAN down

    def way_there(self, request, server):
        return self.path(self.client_domain[request.client], self.server_domain[server])

    def way_back(self, request, server):
        return self.path(self.server_domain[server], self.client_domain[request.client])

    def push(self, when, kind, who, what=None):
        self.counter += 1
        heapq.heappush(self.heap, (when, kind, who, self.counter, what))

    def send_data(self, now, who, data, links, then):
        request = self.requests[who]
        if data > 0:
            request.on = links
            for link in links:
                self.crossing[link] += 1
        if data == 0 or not links:
            self.push(now, then, who)
        elif self.reading.network == "fluid":
            rows = [self.seen_rows[link] for link in links]
            self.push(fluid(now, data, rows, self.step), then, who)
        else:
            sizes = [self.env.packet] * math.floor(data / self.env.packet)
            rest = data - sum(sizes)
            if rest > TOL * data:
                sizes.append(rest)
            self.push(now, OFFERED, who, (sizes, 0, links, 0, then))

    def offered(self, now, who, what):
        sizes, packet, links, hop, then = what
        link = links[hop]
        end = self.through_link(now, link, sizes[packet])
        if hop == 0 and packet + 1 < len(sizes):
            self.push(end, OFFERED, who, (sizes, packet + 1, links, 0, then))
        if hop + 1 < len(links):
            self.push(end, OFFERED, who, (sizes, packet, links, hop + 1, then))
        elif packet + 1 == len(sizes):
            self.push(end, then, who)

    def through_link(self, now, link, size):
        start, row = max(now, self.link_free[link]), self.rows[link]
        self.link_free[link] = walk(start, size, row.__getitem__, self.step, len(row))
        return self.link_free[link]

    def landed(self, request):
        for link in request.on:
            self.crossing[link] -= 1
        request.on = []

    # --- monitor and predictor ---------------------------------------------------------------

    def external(self, server, now):
        if server.load is None:
            return float(self.env.server_load)
        return entry(server.load, self.step, now)

    def load(self, server, now):
        traced = 0.0 if server.load is None else self.external(server, now)
        kind = self.reading.load
        if kind == "clients":
            return server.ours + self.external(server, now)
        if kind == "queue":
            return len(server.waiting) + (server.running is not None) + traced
        if kind == "util":
            period = float(self.reading.probe)
            return server.busy(now - period, now) / period + traced
        return self.external(server, now)

    def measured(self, now):
        """Every link's throughput, then every server's load."""
        links = [entry(row, self.step, now) for row in self.seen_rows]
        return links + [self.load(server, now) for server in self.servers]

    def probe(self):
        now = self.n_probes * self.reading.probe
        self.history.append(self.measured(now))
        self.believed = None
        self.n_probes += 1
        self.push_probe()

    def push_probe(self):
        self.push(early(self.n_probes * self.reading.probe, self.reading.probe), PROBE, -1)

    def predicted(self, now):
        kind = self.reading.predictor
        if kind == "perfect":
            return self.measured(now)
        if self.believed is None:
            known = self.history if kind == "adaptive" else self.history[-WINDOW_PROBES:]
            columns = list(zip(*known, strict=True))
            if callable(kind):
                self.believed = [float(x) for x in kind(np.array(columns))]
            else:
                guess = {"last": last, "mean": mean_of_ten, "adaptive": adaptive}[kind]
                self.believed = [guess(column) for column in columns]
        return self.believed

    # --- the policy -----------------------------------------------------------------------

    def estimates(self, request, now):
        """T_Si of every server, eq. 2 and 5."""
        values = self.predicted(now)
        links, loads = values[: len(self.rows)], values[len(self.rows) :]
        if self.policy.correct_links:
            pload = self.policy.pload
            links = [x / (1 + pload * n) for x, n in zip(links, self.crossing, strict=True)]
        found = []
        for i, server in enumerate(self.servers):
            load = loads[i]
            if self.policy.load_correction:
                load += self.scheduled[i] * self.policy.pload
            serve = request.work / (server.performance / (1 + load))
            there = over(request.send, links, self.way_there(request, i))
            back = over(request.recv, links, self.way_back(request, i))
            found.append(there + back + serve)
        return found

    def choose(self, request, now):
        T = self.estimates(request, now)
        if callable(self.policy.algorithm):
            return self.policy.algorithm(self.shown(request, now, T))
        allowed = list(range(len(T)))
        if self.policy.exclude_rejecting and len(request.refused) < len(T):
            allowed = [i for i in allowed if i not in request.refused]
        if self.policy.algorithm == "deadline":
            target = (request.due - now) * self.policy.opt
            fit = [i for i in allowed if meets(now + T[i], now + target, target)]
            if fit:
                best = max(T[i] for i in fit)
                return next(i for i in fit if one_instant(now + T[i], now + best, best))
        best = min(T[i] for i in allowed)
        return next(i for i in allowed if one_instant(now + T[i], now + best, best))

    def shown(self, request, now, T):
        """What a user's function needs here of a View."""
        loads = self.predicted(now)[len(self.rows) :]
        return SimpleNamespace(
            now=now,
            row=self.requests.index(request),
            due=request.due,
            fallbacks=request.fallbacks,
            opt=self.policy.opt,
            estimates=np.array(T),
            load=np.array(loads),
            scheduled=np.array(self.scheduled),
            performance=np.array([server.performance for server in self.servers]),
        )

    def submitted(self, now, who):
        """A request is submitted."""
        request = self.requests[who]
        choice = self.choose(request, now)
        if type(choice).__name__ == "Refuse":
            request.server = -1
            self.over(request, "refused")
        else:
            request.submitted, request.server = now, choice
            self.scheduled[choice] += 1
            self.send_data(now, who, request.send, self.way_there(request, choice), ARRIVED)

    def over(self, request, fate, completion=math.inf):
        """A request has come to its end."""
        request.status, request.completion = fate, completion
        self.left -= 1

    # --- the servers -------------------------------------------------------------------------

    def refuses(self, request, now):
        """Equations 6 and 7."""
        most, n = self.policy.max_fallbacks, request.fallbacks
        if most == 0 or n > most or (n == most and self.reading.fallback_strict):
            return False
        server = self.servers[request.server]
        t_send = now - request.submitted
        et_exec = max(0.0, server.free(now) - now) + request.work / server.performance
        links = self.predicted(now)[: len(self.rows)]
        et_recv = over(request.recv, links, self.way_back(request, request.server))
        clock = now if self.reading.fallback_time == "at_arrival" else request.submitted
        due = request.due + self.policy.fallback_slack
        return not meets(clock + t_send + et_exec + et_recv, due, due - request.arrival)

    def arrived(self, now, who):
        request = self.requests[who]
        self.landed(request)
        if self.refuses(request, now):
            request.fallbacks += 1
            request.refused.add(request.server)
            self.scheduled[request.server] -= 1
            self.push(now, SUBMITTED, who)
        else:
            self.servers[request.server].ours += 1
            self.join(now, request.server, Job(who, request.work))

    def join(self, now, number, job):
        self.servers[number].waiting.append(job)
        self.go_on(number, now)

    def go_on(self, number, now):
        job = self.servers[number].begin_next(now)
        if job is not None:
            self.push(job.ends, SERVED, job.who, number)

    def served(self, now, who, number):
        server = self.servers[number]
        server.running = None
        self.go_on(number, now)
        if who >= 0:
            request = self.requests[who]
            server.ours -= 1
            if self.reading.corrected_until == "served":
                self.scheduled[number] -= 1
            self.send_data(now, who, request.recv, self.way_back(request, number), RETURNED)

    def returned(self, now, who):
        request = self.requests[who]
        self.landed(request)
        if self.reading.corrected_until == "returned":
            self.scheduled[request.server] -= 1
        self.over(request, "returned", now)

    # --- the run -----------------------------------------------------------------------------

    def others(self, what):
        now, size, place, number = what
        if place == "server":
            self.join(now, number, Job(-1, size))
        else:
            self.through_link(now, number, size)

    def begin(self):
        self.push_probe()
        for i, server in enumerate(self.servers):
            self.push_others(self.env.background, "server", i, server.performance)
        for i, row in enumerate(self.rows):
            self.push_others(self.env.link_background, "link", i, row[-1])
        for who, request in enumerate(self.requests):
            self.push(request.arrival, SUBMITTED, who)

    def push_others(self, stream, place, number, speed):
        """Push arrivals at one queue, in their order, and none before a probe at its instant."""
        when = -math.inf
        for t, size in arrivals(stream, number):
            when = max(when, early(t, min(size / speed, self.reading.probe)))
            self.push(when, OTHERS, -1, (t, size, place, number))

    def run(self):
        handle = {SERVED: self.served, OFFERED: self.offered}
        alone = {RETURNED: self.returned, ARRIVED: self.arrived, SUBMITTED: self.submitted}
        self.begin()
        while self.left:
            now, kind, who, _, what = heapq.heappop(self.heap)
            if kind == PROBE:
                self.probe()
            elif kind == OTHERS:
                self.others(what)
            elif kind in alone:
                alone[kind](now, who)
            else:
                handle[kind](now, who, what)
        return self.requests


def over(data, links, way):
    """Predicted time of a transfer; no data take none."""
    if data == 0 or not way:
        return 0.0
    least = min(links[link] for link in way)
    return data / least if least > 0 else math.inf


def simulate(env, policy, reading):
    """Return the requests with server, fallbacks, completion and fate."""
    return Twin(env, policy, reading).run()
