"""CPU-GPU scheduling by run-time history, its rivals, and MapReduce on top (paper C).

>>> from dlsim.cpugpu import Machine, simulate, workload
>>> jobs = workload.random_jobs(workload.applications("lee", seed=1), jobs=24, seed=1)
>>> r = simulate(jobs, Machine(cpus=1, gpus=1), "history")
>>> r.check()

Several nodes: `run_moldable`; the inside of a GPU: `run_chunks`, `chunk_input`, `adapt_split`;
MapReduce: `run_mapreduce`; Hadoop's slots: `run_slots`.
"""

from dlsim.cpugpu import workload
from dlsim.cpugpu.database import HistoryDatabase
from dlsim.cpugpu.engine import learn, simulate
from dlsim.cpugpu.gpu import Rates, chunk_input
from dlsim.cpugpu.history import History
from dlsim.cpugpu.jobs import JobView
from dlsim.cpugpu.mapreduce import run_mapreduce
from dlsim.cpugpu.mapreduce_job import Costs, MapReduce, NodeGroup, split_text, word_count
from dlsim.cpugpu.model import POLICIES, SWITCHES, Machine, Policy, Reading
from dlsim.cpugpu.moldable import SCHEDULERS, MoldableScheduler, NodePool, run_moldable
from dlsim.cpugpu.outcome import ScheduleResult
from dlsim.cpugpu.pipeline import Gpu, equal_chunks, run_chunks
from dlsim.cpugpu.rules import Decision, SchedulerState
from dlsim.cpugpu.slots import run_slots
from dlsim.cpugpu.split import adapt_split, amdahl_bound, ideal_split
from dlsim.reading import require_readers

__all__ = [
    "POLICIES",
    "SCHEDULERS",
    "SWITCHES",
    "Costs",
    "Decision",
    "Gpu",
    "History",
    "HistoryDatabase",
    "JobView",
    "Machine",
    "MapReduce",
    "MoldableScheduler",
    "NodeGroup",
    "NodePool",
    "Policy",
    "Rates",
    "Reading",
    "ScheduleResult",
    "SchedulerState",
    "adapt_split",
    "amdahl_bound",
    "chunk_input",
    "equal_chunks",
    "ideal_split",
    "learn",
    "run_chunks",
    "run_mapreduce",
    "run_moldable",
    "run_slots",
    "simulate",
    "split_text",
    "word_count",
    "workload",
]

require_readers(Reading)
