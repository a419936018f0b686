"""Three other ways to compute one schedule: plain Python, SimPy, C++.

EDF with admission control, fewest nodes, one round of the optimal partitioning rule, no
overtaking, no set-up cost, and one link that serves a task after another: a task starts
no earlier than the last send of every task before it. Each peer takes (tasks, cluster)
and returns nodes (0 = refused), start and completion, one entry per task.
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

from dlsim.kernel import TOL

COLUMNS = ["arrival", "sigma", "deadline"]


def rows(tasks):
    """(task number, (arrival, sigma, deadline)) in order of arrival."""
    return enumerate(zip(*(tasks[name].to_list() for name in COLUMNS), strict=True))


def unit_times(cluster):
    """E(1, n) for n = 0..N: the time n nodes need for one unit of data (entry 0 unused)."""
    beta = cluster.cps / (cluster.cms + cluster.cps)
    return [math.inf] + [cluster.cms / (1 - beta**n) for n in range(1, cluster.nodes + 1)]


def plan_all(queue, free, link, now, unit, cms):
    """Place the queue, (due, sigma, task) in EDF order, from scratch; None if one is late.

    `free` lists when the nodes become idle, sorted; the result lists (start, task, nodes,
    end, sigma) in order of start.
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
        plan.append((t, task, n, end, sigma))
    return plan


def occupy(free, n, end):
    """The n nodes that are idle first are busy until `end`."""
    later = bisect.bisect(free, end, lo=n)
    free[:] = free[n:later] + [end] * n + free[later:]


def plain(tasks, cluster):
    """Plain lists and floats; every arrival plans the whole queue anew."""
    unit, size = unit_times(cluster), len(tasks)
    nodes, start, end = [0] * size, [math.nan] * size, [math.nan] * size
    free, link, queue, plan = [0.0] * cluster.nodes, 0.0, [], []
    for task, (arrival, sigma, deadline) in rows(tasks):
        while plan and plan[0][0] <= arrival:
            t, _, n, finish, load = plan.pop(0)
            queue.pop(0)
            occupy(free, n, finish)
            link = t + load * cluster.cms
        longer = queue.copy()
        bisect.insort(longer, (arrival + deadline, sigma, task))
        new = plan_all(longer, free, link, arrival, unit, cluster.cms)
        if new is None:
            continue
        queue, plan = longer, new
        for t, i, n, finish, _ in plan:
            nodes[i], start[i], end[i] = n, t, finish
    return np.array(nodes), np.array(start), np.array(end)


class HeadNode:
    """The cluster as SimPy processes: arrivals, a dispatcher, one process per task."""

    def __init__(self, tasks, cluster):
        self.env, self.cluster, self.unit = simpy.Environment(), cluster, unit_times(cluster)
        self.link = simpy.Resource(self.env, capacity=1)
        self.idle = simpy.Container(self.env, capacity=cluster.nodes, init=cluster.nodes)
        self.free, self.link_free = [0.0] * cluster.nodes, 0.0
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
            new = plan_all(longer, self.free, self.link_free, arrival, self.unit, self.cluster.cms)
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
                start, task, n, end, sigma = self.plan.pop(0)
                self.queue.pop(0)
                occupy(self.free, n, end)
                self.link_free = start + sigma * self.cluster.cms
                yield self.idle.get(n)
                self.env.process(self.task(task, n, sigma))

    def task(self, task, n, sigma):
        self.nodes[task], self.start[task] = n, self.env.now
        sending = sigma * self.cluster.cms
        with self.link.request() as turn:
            yield turn
            yield self.env.timeout(sending)
        yield self.env.timeout(sigma * self.unit[n] - sending)
        yield self.idle.put(n)
        self.end[task] = self.env.now


def with_simpy(tasks, cluster):
    """Discrete-event simulation with SimPy: processes that wait, a link, a pool of nodes."""
    head = HeadNode(tasks, cluster)
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


#: Every peer that can run here, by the name it has in the tables.
PEERS = {"plain Python": plain, "SimPy": with_simpy}
if shutil.which("g++"):
    PEERS["C++ -O3"] = native
