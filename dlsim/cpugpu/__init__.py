"""CPU-GPU scheduling by run-time history, its rivals, and MapReduce on top (paper C).

>>> from dlsim.cpugpu import Machine, simulate, workload
>>> jobs = workload.random_jobs(workload.applications("lee", seed=1), jobs=24, seed=1)
>>> r = simulate(jobs, Machine(cpus=1, gpus=1), "history")
>>> r.check()

Several nodes: `run_moldable`; the inside of a GPU: `run_chunks`, `chunk_input`, `adapt_split`;
MapReduce: `run_mapreduce`.
"""

from dlsim.cpugpu import workload
from dlsim.cpugpu.cluster.mapreduce import run_mapreduce
from dlsim.cpugpu.cluster.mapreduce_job import (
    Costs,
    Faults,
    MapReduce,
    NodeGroup,
    Storage,
    split_text,
    word_count,
)
from dlsim.cpugpu.cluster.moldable import MOLDABLE_POLICIES, MoldablePolicy, NodePool, run_moldable
from dlsim.cpugpu.database import HistoryDatabase
from dlsim.cpugpu.gpu.chunks import Gpu, Rates, chunk_input, equal_chunks
from dlsim.cpugpu.gpu.pipeline import run_chunks
from dlsim.cpugpu.gpu.split import Adjustment, adapt_split, amdahl_bound, ideal_split
from dlsim.cpugpu.history import History
from dlsim.cpugpu.model import POLICIES, SWITCHES, JobView, Machine, Policy, Reading
from dlsim.cpugpu.queues import SchedulerState
from dlsim.cpugpu.result import ScheduleResult
from dlsim.cpugpu.rules import Decision
from dlsim.cpugpu.simulate import learn, simulate
from dlsim.cpugpu.workload import Noise
from dlsim.reading import require_readers

__all__ = [
    "MOLDABLE_POLICIES",
    "POLICIES",
    "SWITCHES",
    "Adjustment",
    "Costs",
    "Decision",
    "Faults",
    "Gpu",
    "History",
    "HistoryDatabase",
    "JobView",
    "Machine",
    "MapReduce",
    "MoldablePolicy",
    "NodeGroup",
    "NodePool",
    "Noise",
    "Policy",
    "Rates",
    "Reading",
    "ScheduleResult",
    "SchedulerState",
    "Storage",
    "adapt_split",
    "amdahl_bound",
    "chunk_input",
    "equal_chunks",
    "ideal_split",
    "learn",
    "run_chunks",
    "run_mapreduce",
    "run_moldable",
    "simulate",
    "split_text",
    "word_count",
    "workload",
]

require_readers(Reading)
