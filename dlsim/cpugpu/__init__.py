"""CPU-GPU scheduling by run-time history, its rivals, and MapReduce on top (paper C).

>>> from dlsim.cpugpu import Machine, simulate, workload
>>> jobs = workload.draw(workload.applications("lee", seed=1), jobs=24, seed=1)
>>> r = simulate(jobs, Machine(cpus=1, gpus=1), "history")
>>> r.check()
"""

from dlsim.cpugpu import workload
from dlsim.cpugpu.engine import Schedule, simulate
from dlsim.cpugpu.history import History
from dlsim.cpugpu.learning import learn, learning_study
from dlsim.cpugpu.model import POLICIES, SWITCHES, Decision, Item, Machine, Policy, Reading, State
from dlsim.cpugpu.store import Store

__all__ = [
    "POLICIES",
    "SWITCHES",
    "Decision",
    "History",
    "Item",
    "Machine",
    "Policy",
    "Reading",
    "Schedule",
    "State",
    "Store",
    "learn",
    "learning_study",
    "simulate",
    "workload",
]
