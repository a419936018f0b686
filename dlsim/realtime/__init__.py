"""Real-time divisible loads on one cluster (papers M and I).

>>> from dlsim.realtime import Cluster, simulate, workload
>>> cluster = Cluster(nodes=10, cms=10, cps=10)
>>> tasks = workload.mcdf(cluster, load=0.5, horizon=100_000, seed=1)
>>> s = simulate(tasks, cluster, "MCDF")
>>> s.check()
"""

from dlsim.reading import require_readers
from dlsim.realtime import star, workload
from dlsim.realtime.bound import Bound, clairvoyant_bound
from dlsim.realtime.formulas import execution_time, fastest_nodes, fewest_nodes, shares, total_cost
from dlsim.realtime.model import POLICIES, SWITCHES, Cluster, Policy, Reading, StateView, TaskView
from dlsim.realtime.result import Offer, Schedule
from dlsim.realtime.simulate import simulate
from dlsim.realtime.split import LoadSplit, split_load

__all__ = [
    "POLICIES", "SWITCHES", "Bound", "Cluster", "LoadSplit", "Offer", "Policy", "Reading",
    "Schedule", "StateView", "TaskView", "clairvoyant_bound", "execution_time", "fastest_nodes",
    "fewest_nodes", "shares", "simulate", "split_load", "star", "total_cost", "workload",
]  # fmt: skip

require_readers(Reading, workload.TaskDraw, workload.RatioDraw, workload.UserDraw)
