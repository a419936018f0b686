"""Other ways to compute one schedule: plain Python, SimPy, C++.

Two policies, both EDF with admission control, fewest nodes, no overtaking, no set-up cost:

- EDF-OPR-MN: one round of the optimal partitioning rule, and one link that serves a task
  after another: a task starts no earlier than the last send of every task before it.
- EDF-DLT of paper I: a task starts on its first node and is split as if nodes that are
  free early were faster; its nodes are booked until the estimate; every task sends over a
  link of its own.

Each peer takes (tasks, cluster) and returns nodes (0 = refused), start and completion, one
entry per task.
"""

import bisect
import ctypes
import functools
import math
import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np
import simpy

from dlsim.compiled import TOL

COLUMNS = ["arrival", "sigma", "deadline"]


def rows(tasks):
    """(task number, (arrival, sigma, deadline)) in order of arrival."""
    return enumerate(zip(*(tasks[name].to_list() for name in COLUMNS), strict=True))


def unit_times(cluster):
    """E(1, n) for n = 0..N: the time n nodes need for one unit of data (entry 0 unused)."""
    beta = cluster.cps / (cluster.cms + cluster.cps)
    return [math.inf] + [cluster.cms / (1 - beta**n) for n in range(1, cluster.nodes + 1)]


def plan_opr(queue, free, link, now, unit, cms):
    """Place the queue, (due, sigma, task) in EDF order, from scratch; None if one is late.

    `free` lists when the nodes become idle, sorted; the result lists (start, task, nodes,
    until when they are booked, until when the link is, sigma, releases) in order of start.
    """
    plan, free, last = [], free.copy(), len(free)
    for due, sigma, task in queue:
        limit = due + TOL * max(1.0, abs(due))
        t, idle, n = max(now, link), 0, 1
        while True:
            while idle < last and free[idle] <= t:
                idle += 1
            while n <= last and t + sigma * unit[n] > limit:
                n += 1
            if n > last:
                return None
            if n <= idle:
                break
            t = free[idle]
        end, link = t + sigma * unit[n], t + sigma * cms
        occupy(free, n, end)
        plan.append((t, task, n, end, link, sigma, None))
    return plan


def plan_dlt(queue, free, link, now, unit, cms):
    """Place the queue as `plan_opr` does, each task from its first node's release on.

    The fewest nodes are those that would do if all of them started when the last of them
    is released; the estimate of the end is r_n + sigma tau / (1 - P), P the product of
    chi_i / (tau + chi_i).
    """
    plan, free = [], free.copy()
    for due, sigma, task in queue:
        limit = due + TOL * max(1.0, abs(due))
        for n, release in enumerate(free, start=1):
            last = max(release, now)
            if last + sigma * unit[n] <= limit:
                break
        else:
            return None
        releases = [max(release, now) for release in free[:n]]
        product = 1.0
        for speed in remodel(releases, sigma, unit, cms):
            product *= speed / (cms + speed)
        end = last + sigma * cms / (1 - product)
        occupy(free, n, end)
        plan.append((releases[0], task, n, end, link, sigma, releases))
    return plan


def remodel(releases, sigma, unit, cms):
    """Time per unit of each node, chi_i = chi E / (E + r_n - r_i): early nodes seem faster."""
    n = len(releases)
    chi = unit[1] - cms
    span = sigma * unit[n]
    return [chi * span / (span + releases[-1] - release) for release in releases]


def shares(releases, sigma, unit, cms):
    """Parts of the load: alpha_i (tau + chi_i) = alpha_{i-1} chi_{i-1}, and they sum to 1."""
    before, *rest = remodel(releases, sigma, unit, cms)
    alpha = [1.0]
    for speed in rest:
        alpha.append(alpha[-1] * before / (cms + speed))
        before = speed
    whole = math.fsum(alpha)
    return [part / whole for part in alpha]


def finish(releases, sigma, unit, cms):
    """When the last node is done: one send after another, each node once it is free."""
    end, sent = 0.0, releases[0]
    for release, part in zip(releases, shares(releases, sigma, unit, cms), strict=True):
        begun = max(release, sent)
        sent = begun + part * sigma * cms
        end = max(end, begun + part * sigma * unit[1])
    return end


def occupy(free, n, end):
    """The n nodes that are idle first are busy until `end`."""
    later = bisect.bisect(free, end, lo=n)
    free[:] = free[n:later] + [end] * n + free[later:]


def plain(tasks, cluster, plan_all=plan_opr):
    """Plain lists and floats; every arrival plans the whole queue anew."""
    unit, size = unit_times(cluster), len(tasks)
    nodes, start, end = [0] * size, [math.nan] * size, [math.nan] * size
    free, link, queue, plan = [0.0] * cluster.nodes, 0.0, [], []

    def dispatch(until):
        nonlocal link
        while plan and plan[0][0] <= until:
            t, task, n, booked, link, sigma, releases = plan.pop(0)
            queue.pop(0)
            occupy(free, n, booked)
            nodes[task], start[task] = n, t
            end[task] = finish(releases, sigma, unit, cluster.cms) if releases else booked

    for task, (arrival, sigma, deadline) in rows(tasks):
        dispatch(arrival)
        longer = queue.copy()
        bisect.insort(longer, (arrival + deadline, sigma, task))
        new = plan_all(longer, free, link, arrival, unit, cluster.cms)
        if new is not None:
            queue, plan = longer, new
    dispatch(math.inf)
    return np.array(nodes), np.array(start), np.array(end)


class HeadNode:
    """The cluster as SimPy processes: arrivals, a dispatcher, one process per task."""

    def __init__(self, tasks, cluster, plan_all):
        self.env, self.cluster, self.unit = simpy.Environment(), cluster, unit_times(cluster)
        self.plan_all, self.free, self.link_free = plan_all, [0.0] * cluster.nodes, 0.0
        self.link = simpy.Resource(self.env, capacity=1)
        self.idle = simpy.Container(self.env, capacity=cluster.nodes, init=cluster.nodes)
        self.queue, self.plan, self.changed = [], [], self.env.event()
        self.nodes = np.zeros(len(tasks), dtype=int)
        self.start, self.end = np.full((2, len(tasks)), np.nan)
        self.env.process(self.arrivals(tasks))
        self.env.process(self.dispatcher())

    def arrivals(self, tasks):
        for task, (arrival, sigma, deadline) in rows(tasks):
            yield self.env.timeout(max(0.0, arrival - self.env.now))
            longer = self.queue.copy()
            bisect.insort(longer, (arrival + deadline, sigma, task))
            state = self.free, self.link_free, arrival, self.unit, self.cluster.cms
            new = self.plan_all(longer, *state)
            if new is not None:
                self.queue, self.plan = longer, new
                self.changed.succeed()
                self.changed = self.env.event()

    def dispatcher(self):
        while True:
            if not self.plan:
                yield self.changed
                continue
            due_now = self.env.timeout(max(0.0, self.plan[0][0] - self.env.now))
            woken = yield due_now | self.changed
            if due_now in woken and self.plan[0][0] <= self.env.now * (1 + TOL):
                _, task, n, booked, self.link_free, sigma, releases = self.plan.pop(0)
                self.queue.pop(0)
                occupy(self.free, n, booked)
                self.nodes[task], self.start[task] = n, self.env.now
                one = self.own_link(task, releases, sigma) if releases else None
                self.env.process(one or self.one_link(task, n, sigma))

    def one_link(self, task, n, sigma):
        """All nodes are idle; the send waits for the link, and all end together."""
        sending = sigma * self.cluster.cms
        yield self.idle.get(n)
        with self.link.request() as turn:
            yield turn
            yield self.env.timeout(sending)
        yield self.env.timeout(sigma * self.unit[n] - sending)
        yield self.idle.put(n)
        self.end[task] = self.env.now

    def own_link(self, task, releases, sigma):
        """Nodes come one after another; each computes once its part has been sent."""
        cms, working = self.cluster.cms, []
        for release, part in zip(releases, shares(releases, sigma, self.unit, cms), strict=True):
            yield self.env.timeout(max(0.0, release - self.env.now))
            yield self.idle.get(1)
            yield self.env.timeout(part * sigma * cms)
            load = part * sigma * (self.unit[1] - cms)
            working.append(self.env.process(self.compute(load)))
        yield simpy.AllOf(self.env, working)
        self.end[task] = self.env.now

    def compute(self, seconds):
        yield self.env.timeout(seconds)
        yield self.idle.put(1)


def with_simpy(tasks, cluster, plan_all=plan_opr):
    """Discrete-event simulation with SimPy: processes that wait, a link, a pool of nodes."""
    head = HeadNode(tasks, cluster, plan_all)
    head.env.run()
    return head.nodes, head.start, head.end


@functools.cache
def compiled():
    """The C++ peer as a loaded library; compiled with -O3 into a temporary folder."""
    source = Path(__file__).with_name("peer.cpp")
    with tempfile.TemporaryDirectory() as folder:
        library = str(Path(folder) / "peer.so")
        command = ["g++", "-O3", "-std=c++17", "-shared", "-fPIC", "-o", library, str(source)]
        subprocess.run(command, check=True)
        return ctypes.CDLL(library)


def native(tasks, cluster):
    """A hand-written C++ loop over the same plan, for the practical limit."""
    double, integer = (np.ctypeslib.ndpointer(kind) for kind in (np.float64, np.int64))
    function = compiled().schedule
    function.argtypes = [*[double] * 3, ctypes.c_int64, double, ctypes.c_int64]
    function.argtypes += [ctypes.c_double, ctypes.c_double, integer, double, double]
    size, unit = len(tasks), np.array(unit_times(cluster))
    nodes, start, end = np.zeros(size, np.int64), np.full(size, np.nan), np.full(size, np.nan)
    table = [tasks[name].to_numpy(dtype=float, copy=True) for name in COLUMNS]
    function(*table, size, unit, cluster.nodes, cluster.cms, TOL, nodes, start, end)
    return nodes, start, end


#: Every peer that can run here, by policy and the name it has in the tables.
PEERS = {
    "EDF-OPR-MN": {"plain Python": plain, "SimPy": with_simpy},
    "EDF-DLT": {
        "plain Python": functools.partial(plain, plan_all=plan_dlt),
        "SimPy": functools.partial(with_simpy, plan_all=plan_dlt),
    },
}
if shutil.which("g++"):
    PEERS["EDF-OPR-MN"]["C++ -O3"] = native
