"""Other ways to run the Grid of paper B: SimPy processes, and the plain twin.

Each peer takes (environment, policy) under the default reading (fluid network, Load as
client jobs at the last probe, last value) and returns server, fallbacks and completion of
every request.
"""

import math

import numpy as np
import simpy

from dlsim.compiled import TOL
from tests.twins import bricks as twin

PROBE = 60.0


def plain(env, policy):
    """The twin: one heap, every background job an event."""
    from dlsim.bricks import Reading

    return columns(twin.simulate(env, policy, Reading()))


def columns(requests):
    names = ("server", "fallbacks", "completion")
    return tuple(np.array([getattr(one, name) for one in requests]) for name in names)


class Server:
    """One unit of capacity, first come, first served, and how long its line is."""

    def __init__(self, world, performance):
        self.line = simpy.Resource(world, capacity=1)
        self.performance, self.clients, self.scheduled, self.free = performance, 0, 0, 0.0


class Request:
    def __init__(self, row):
        self.arrival, self.client, self.send, self.recv, self.work, self.due = row
        self.server, self.fallbacks, self.completion = -1, 0, math.nan


class Grid:
    """The Grid as SimPy processes: clients, background, a monitor."""

    def __init__(self, env, policy):
        self.world, self.policy, self.step = simpy.Environment(), policy, env.step
        self.rates, self.domains = env.rates.tolist(), env.topology.domains
        self.paths = [
            [env.topology.path(a, b) for b in range(self.domains)] for a in range(self.domains)
        ]
        self.home, self.there = env.clients["domain"].tolist(), env.servers["domain"].tolist()
        self.servers = [Server(self.world, p) for p in env.servers["performance"]]
        self.extra, self.load, self.link = env.server_load, [], []
        names = ["arrival", "client", "send", "recv", "work", "due"]
        self.requests = [Request(row) for row in env.requests[names].itertuples(index=False)]
        self.left, self.done = len(self.requests), self.world.event()
        self.world.process(self.monitor())
        jobs = env.background
        for k, server in enumerate(self.servers):
            times = jobs.times[jobs.first[k] : jobs.first[k + 1]].tolist()
            self.world.process(self.background(server, times, float(jobs.sizes[0])))
        for request in self.requests:
            self.world.process(self.client(request))

    def monitor(self):
        while True:
            k = min(int(self.world.now / self.step), len(self.rates[0]) - 1)
            self.link = [row[k] for row in self.rates]
            self.load = [server.clients + self.extra for server in self.servers]
            yield self.world.timeout(PROBE)

    def background(self, server, times, work):
        for time in times:
            yield self.world.timeout(max(0.0, time - self.world.now))
            self.world.process(self.job(server, work))

    def job(self, server, work):
        span = work / server.performance
        server.free = max(server.free, self.world.now) + span
        with server.line.request() as turn:
            yield turn
            yield self.world.timeout(span)

    def transfer(self, data, path):
        """Until when the data flow, at the slowest link of the path."""
        now, last = self.world.now, len(self.rates[0]) - 1
        k = min(int(now / self.step), last)
        while True:
            rate = min(self.rates[link][k] for link in path)
            until = (k + 1) * self.step
            if k == last or data <= rate * (until - now):
                return now + data / rate
            data, now, k = data - rate * (until - now), until, k + 1

    def estimate(self, request, k):
        home, there, server = self.home[request.client], self.there[k], self.servers[k]
        load = self.load[k]
        if self.policy.load_correction:
            load += server.scheduled * self.policy.pload
        send = request.send / min(self.link[one] for one in self.paths[home][there])
        recv = request.recv / min(self.link[one] for one in self.paths[there][home])
        return send + recv + request.work * (1 + load) / server.performance

    def choose(self, request):
        now = self.world.now
        times = [self.estimate(request, k) for k in range(len(self.servers))]
        best = min(times)
        if self.policy.algorithm == "deadline":
            due = now + (request.due - now) * self.policy.opt
            fits = [t for t in times if now + t <= due + TOL * max(1.0, abs(due))]
            best = max(fits, default=best)
        return times.index(best)

    def client(self, request):
        yield self.world.timeout(request.arrival)
        while True:
            now, request.server = self.world.now, self.choose(request)
            server = self.servers[request.server]
            server.scheduled += 1
            home, there = self.home[request.client], self.there[request.server]
            yield self.world.timeout(self.transfer(request.send, self.paths[home][there]) - now)
            now = self.world.now
            back = request.recv / min(self.link[one] for one in self.paths[there][home])
            ahead = max(0.0, server.free - now) + request.work / server.performance
            late = now + ahead + back > request.due + TOL * max(1.0, request.due)
            if not late or request.fallbacks >= self.policy.max_fallbacks:
                break
            request.fallbacks += 1
            server.scheduled -= 1
        server.clients += 1
        yield self.world.process(self.job(server, request.work))
        server.clients -= 1
        now = self.world.now
        yield self.world.timeout(self.transfer(request.recv, self.paths[there][home]) - now)
        server.scheduled -= 1
        request.completion = self.world.now
        self.left -= 1
        if not self.left:
            self.done.succeed()


def with_simpy(env, policy):
    """Discrete-event simulation with SimPy, until the last result is in."""
    grid = Grid(env, policy)
    if grid.left:
        grid.world.run(until=grid.done)
    return columns(grid.requests)


PEERS = {"plain Python": plain, "SimPy": with_simpy}
