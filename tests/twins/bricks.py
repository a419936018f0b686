"""Slow, plain twin of the Grid simulator of paper B: one heap, every job and packet an event.

It reads an environment, a scheduler and a reading as plain attributes, shares no code with
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
PROBE, OTHERS, SERVED, FAILED, RETURNED, ARRIVED, SUBMITTED, OFFERED = range(8)
WINDOW = 10
DOWN = 1e9  # Load of a server that is down


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


def routes(table):
    """The links from domain to domain, of a table source, target, hop, link."""
    found = {}
    for row in table.sort_values("hop").itertuples():
        found.setdefault((row.source, row.target), []).append(int(row.link))
    return found


# --- predictors: what a series of measurements is expected to be next ---------------------------


def last(series):
    return series[-1]


def mean_of_ten(series):
    return sum(series[-WINDOW:]) / len(series[-WINDOW:])


def smoothed(share):
    return lambda series: [*accumulate(series, lambda value, x: value + share * (x - value))]


#: What each forecaster expected after the first of the measurements, after two, after all.
FORECASTERS = (
    lambda series: series,
    lambda series: [mean_of_ten(series[max(0, n - WINDOW) : n]) for n in count_of(series)],
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
    def __init__(self, who, work, due=math.inf):
        self.who, self.work, self.due = who, work, due
        self.began = self.ends = None


class Server:
    """So many slots; who waits is sorted by arrival, or by deadline."""

    def __init__(self, performance, load, step, slots=1, order="fcfs"):
        self.performance, self.load, self.step = performance, load, step
        self.slots, self.order, self.up_at = slots, order, None
        self.waiting, self.running, self.periods = [], [], []
        self.ours = 0  # client jobs in the queue or running

    def finish(self, start, work):
        if self.load is None:
            return start + work / self.performance
        speed = [self.performance / (1 + x) for x in self.load]
        return walk(start, work, speed.__getitem__, self.step, len(speed))

    def line(self, job):
        """The jobs that are to begin before one that arrives now."""
        if self.order == "edf":
            return [one for one in self.waiting if one.due <= job.due]
        return self.waiting

    def put(self, job):
        self.waiting.insert(len(self.line(job)), job)

    def begin(self, job, now):
        job.began, job.ends = now, self.finish(now, job.work)
        self.periods.append(job)

    def start_some(self, now):
        """Let jobs begin that may; return them."""
        begun = []
        while self.up_at is None and self.waiting and len(self.running) < self.slots:
            job = self.waiting.pop(0)
            self.begin(job, now)
            self.running.append(job)
            begun.append(job)
        return begun

    def free(self, now, job):
        """When a job that arrives now would begin, if nobody came and nothing failed."""
        base = now if self.up_at is None else self.up_at
        slots = [base] * (self.slots - len(self.running))
        for one in self.running:
            slots.append(self.finish(base, one.work) if one.began is None else one.ends)
        for one in self.line(job):
            slots.sort()
            slots[0] = self.finish(slots[0], one.work)
        return min(slots)

    def interrupt(self, job, now):
        """Take back what was done of a job."""
        self.periods[self.periods.index(job)] = SimpleNamespace(began=job.began, ends=now)
        job.began = None

    def busy(self, start, end):
        return sum(max(0.0, min(one.ends, end) - max(one.began, start)) for one in self.periods)


class Request:
    def __init__(self, row):
        self.time, self.deadline = float(row.time), float(row.deadline)
        self.client = int(row.client)
        self.send, self.recv, self.work = float(row.send), float(row.recv), float(row.work)
        self.server, self.submitted, self.completion, self.job = -1, None, None, None
        self.fallbacks, self.refused, self.asked = 0, set(), 0
        self.on = []  # links of the transfer under way
        self.copies, self.winner, self.fate = [self], None, None

    def copy(self):
        one = Request(self)
        one.copies, one.fallbacks, one.refused = self.copies, self.fallbacks, set(self.refused)
        self.copies.append(one)
        return one


class Refuse:
    pass


class Wait:
    def __init__(self, until):
        self.until = until


class Twin:
    def __init__(self, env, scheduler, reading):
        self.env, self.scheduler, self.reading = env, scheduler, reading
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
                getattr(row, "slots", 1),
                getattr(row, "queue", "fcfs"),
            )
            for i, row in enumerate(env.servers.itertuples())
        ]
        self.server_domain = [int(d) for d in env.servers["domain"]]
        self.client_domain = [int(d) for d in env.clients["domain"]]
        self.requests = [Request(row) for row in env.requests.itertuples()]
        self.routes = None if env.paths is None else routes(env.topology.paths)
        self.left = len(self.requests)
        self.scheduled = [0] * len(self.servers)  # numjobs of eq. 5
        self.crossing = [0] * len(self.rows)  # transfers of ours under way
        self.link_free = [0.0] * len(self.rows)
        self.decided = {}
        self.history, self.believed, self.n_probes, self.counter = [], None, 0, 0
        self.heap = []

    # --- the network -------------------------------------------------------------------------

    def path(self, a, b):
        if self.routes is not None:
            return self.routes[a, b]
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
        if server.up_at is not None:
            return DOWN
        if kind == "clients":
            return server.ours / server.slots + self.external(server, now)
        if kind == "queue":
            return (len(server.waiting) + len(server.running)) / server.slots + traced
        if kind == "util":
            period = float(self.reading.probe)
            return server.busy(now - period, now) / (period * server.slots) + traced
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
            known = self.history if kind == "adaptive" else self.history[-WINDOW:]
            columns = list(zip(*known, strict=True))
            if callable(kind):
                self.believed = [float(x) for x in kind(np.array(columns))]
            else:
                guess = {"last": last, "mean": mean_of_ten, "adaptive": adaptive}[kind]
                self.believed = [guess(column) for column in columns]
        return self.believed

    # --- the scheduler -----------------------------------------------------------------------

    def estimates(self, request, now):
        """T_Si of every server, eq. 2 and 5."""
        values = self.predicted(now)
        links, loads = values[: len(self.rows)], values[len(self.rows) :]
        if self.scheduler.correct_links:
            pload = self.scheduler.pload
            links = [x / (1 + pload * n) for x, n in zip(links, self.crossing, strict=True)]
        found = []
        for i, server in enumerate(self.servers):
            load = loads[i]
            if self.scheduler.load_correction:
                load += self.scheduled[i] * self.scheduler.pload / server.slots
            serve = request.work / (server.performance / (1 + load))
            there = over(request.send, links, self.way_there(request, i))
            back = over(request.recv, links, self.way_back(request, i))
            found.append(there + back + serve)
        return found

    def choose(self, request, now):
        T = self.estimates(request, now)
        if callable(self.scheduler.algorithm):
            return self.scheduler.algorithm(self.shown(request, now, T))
        allowed = list(range(len(T)))
        if self.scheduler.exclude_rejecting and len(request.refused) < len(T):
            allowed = [i for i in allowed if i not in request.refused]
        if self.scheduler.algorithm == "deadline":
            target = (request.deadline - now) * self.scheduler.opt
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
            now=now, row=self.requests.index(request.copies[0]), deadline=request.deadline,
            fallbacks=request.fallbacks, asked=request.asked,
            copies=len(request.copies) - 1, opt=self.scheduler.opt,
            estimates=np.array(T),
            load=np.array(loads), ours=np.array(self.scheduled),
            performance=np.array([server.performance for server in self.servers]),
        )  # fmt: skip

    def next_probe(self, now):
        k = math.floor(now / self.reading.probe) + 1
        while k * self.reading.probe <= now + slack(self.reading.probe, now):
            k += 1
        return k * self.reading.probe

    def tick(self, now):
        """The next round of a scheduler that decides on batches."""
        every = getattr(self.scheduler.algorithm, "every", 0)
        if not every:
            return now
        tick = math.ceil(now / every * (1 - TOL)) * every
        return max(now, tick) if tick > now + slack(every, now) else now

    def submitted(self, now, who):
        request = self.requests[who]
        if request.copies[0].winner is not None or request.fate == "cancelled":
            self.over(request, "cancelled")
        elif who not in self.decided and self.tick(now) > now:
            self.push(self.tick(now), SUBMITTED, who)
        else:
            if who not in self.decided:
                self.decide(request, who, now)
            choice = self.decided.pop(who)
            if type(choice).__name__ == "Wait":
                request.asked += 1
                until = self.next_probe(now) if choice.until is None else choice.until
                self.push(until, SUBMITTED, who)
            elif type(choice).__name__ == "Refuse":
                request.server = -1
                self.over(request, "refused")
            else:
                self.go(request, who, int(choice), now)

    def decide(self, request, who, now):
        """Ask for one request, or for all that are submitted now."""
        if hasattr(self.scheduler.algorithm, "every"):
            known = {x[2] for x in self.heap if x[:2] == (now, SUBMITTED)} - set(self.decided)
            still = [k for k in known if self.requests[k].copies[0].winner is None]
            rows = sorted({who, *still})
            view = SimpleNamespace(
                now=now, estimates=np.array([self.estimates(self.requests[k], now) for k in rows])
            )
            every = self.scheduler.algorithm.every
            until = now + every / 2 if every else None
            for k, choice in zip(rows, self.scheduler.algorithm.choose(view), strict=True):
                answers = {-1: Refuse(), -2: Wait(until)}
                self.decided[k] = answers.get(int(choice), int(choice))
            return
        choice = self.choose(request, now)
        several = choice if isinstance(choice, list) else [choice]
        self.decided[who] = several[0]
        for server in several[1:]:
            self.requests.append(request.copy())
            self.left += 1
            self.decided[len(self.requests) - 1] = server
            self.push(now, SUBMITTED, len(self.requests) - 1)

    def go(self, request, who, server, now):
        request.submitted, request.server = now, server
        self.scheduled[server] += 1
        self.send_data(now, who, request.send, self.way_there(request, server), ARRIVED)

    def over(self, request, fate, completion=math.inf):
        """A copy has come to its end."""
        request.fate, request.completion = fate, completion
        self.left -= 1

    # --- the servers -------------------------------------------------------------------------

    def refuses(self, request, now, job):
        """Equations 6 and 7."""
        most, n = self.scheduler.max_fallbacks, request.fallbacks
        if most == 0 or n > most or (n == most and self.reading.fallback_strict):
            return False
        server = self.servers[request.server]
        t_send = now - request.submitted
        et_exec = max(0.0, server.free(now, job) - now) + request.work / server.performance
        links = self.predicted(now)[: len(self.rows)]
        et_recv = over(request.recv, links, self.way_back(request, request.server))
        clock = now if self.reading.fallback_time == "at_arrival" else request.submitted
        due = request.deadline + self.scheduler.fallback_slack
        return not meets(clock + t_send + et_exec + et_recv, due, due - request.time)

    def arrived(self, now, who):
        request = self.requests[who]
        self.landed(request)
        server, job = self.servers[request.server], Job(who, request.work, request.deadline)
        if request.fate == "cancelled":
            self.scheduled[request.server] -= 1
            self.left -= 1
        elif server.up_at is not None and self.env.on_failure != "restart":
            self.lost(now, request, who)
        elif self.refuses(request, now, job):
            request.fallbacks += 1
            request.refused.add(request.server)
            self.scheduled[request.server] -= 1
            self.push(now, SUBMITTED, who)
        else:
            server.ours += 1
            request.job = job
            self.join(now, request.server, job)

    def lost(self, now, request, who):
        self.scheduled[request.server] -= 1
        request.job = None
        if self.env.on_failure == "resubmit":
            self.push(self.next_probe(now), SUBMITTED, who)
        else:
            self.over(request, "lost")

    def join(self, now, number, job):
        server = self.servers[number]
        if server.up_at is not None and self.env.on_failure == "lose" and job.who < 0:
            return
        server.put(job)
        self.go_on(number, now)

    def go_on(self, number, now):
        for job in self.servers[number].start_some(now):
            self.push(job.ends, SERVED, job.who, (number, job, job.ends))

    def failed(self, now, number, up_at):
        """A server fails, or is up again."""
        server = self.servers[number]
        server.up_at = up_at
        if up_at is None:
            for job in server.running:
                server.begin(job, now)
                self.push(job.ends, SERVED, job.who, (number, job, job.ends))
            self.go_on(number, now)
            return
        ending = [job for job in server.running if meets(job.ends, now, job.ends - job.began)]
        for job in server.running:
            if job not in ending:
                server.interrupt(job, now)
        how = self.env.on_failure
        if how == "restart":
            return
        there = [job for job in server.running if job not in ending] + server.waiting
        kept = [] if how == "lose" else [job for job in there if job.who < 0]
        server.running = ending + [job for job in server.running if job in kept]
        server.waiting = [job for job in server.waiting if job in kept]
        for job in sorted(there, key=lambda job: job.who):
            if job.who >= 0:
                server.ours -= 1
                self.lost(now, self.requests[job.who], job.who)

    def served(self, now, who, what):
        number, job, ends = what
        server = self.servers[number]
        if job not in server.running or job.began is None or job.ends != ends:
            return
        server.running.remove(job)
        self.go_on(number, now)
        if who >= 0:
            request = self.requests[who]
            request.job = None
            server.ours -= 1
            if self.reading.corrected_until == "served":
                self.scheduled[number] -= 1
            request.fate = "served"
            self.send_data(now, who, request.recv, self.way_back(request, number), RETURNED)

    def returned(self, now, who):
        request = self.requests[who]
        self.landed(request)
        if self.reading.corrected_until == "returned":
            self.scheduled[request.server] -= 1
        self.over(request, "returned", now)
        first = request.copies[0]
        if first.winner is None:
            first.winner = request
            if self.scheduler.copies == "cancel":
                for one in first.copies:
                    self.cancel(one, now)

    def cancel(self, request, now):
        if request.fate is not None:
            return
        request.fate, request.completion = "cancelled", math.inf
        if request.job is None:
            return  # it arrives, or is submitted, in vain
        server, job = self.servers[request.server], request.job
        if job in server.waiting:
            server.waiting.remove(job)
        else:
            if job.began is not None:
                server.interrupt(job, now)
            server.running.remove(job)
        server.ours -= 1
        self.scheduled[request.server] -= 1
        self.left -= 1
        self.go_on(request.server, now)

    # --- the run -----------------------------------------------------------------------------

    def others(self, what):
        now, size, place, number = what
        if place == "server":
            self.join(now, number, Job(-1, size))
        else:
            self.through_link(now, number, size)

    def begin(self):
        self.push_probe()
        span = self.reading.probe  # one for all: those of one instant keep their order
        for i in range(len(self.servers)):
            for t, work in arrivals(self.env.background, i):
                self.push(early(t, span), OTHERS, -1, (t, work, "server", i))
        for i in range(len(self.rows)):
            for t, data in arrivals(self.env.link_background, i):
                self.push(early(t, span), OTHERS, -1, (t, data, "link", i))
        rows = () if self.env.failures is None else self.env.failures.itertuples()
        for row in rows:
            self.push(float(row.start), FAILED, -1, (int(row.server), float(row.end)))
            self.push(float(row.end), FAILED, -1, (int(row.server), None))
        for who, request in enumerate(self.requests):
            self.push(request.time, SUBMITTED, who)

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
            elif kind == FAILED:
                self.failed(now, *what)
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


def simulate(env, scheduler, reading):
    """Return the requests with server, fallbacks and completion; of each the copy that counts."""
    return that_count(simulate_copies(env, scheduler, reading))


def that_count(done):
    """Of each request the copy that counts."""
    return [one if one.winner is None else one.winner for one in done if one is one.copies[0]]


def simulate_copies(env, scheduler, reading):
    """Return all requests and their copies, with what became of each."""
    return Twin(env, scheduler, reading).run()
