"""What paper C describes, mechanism by mechanism: where it runs here, and where it is shown."""

import importlib

import pandas as pd

from dlsim.errors import InputError

#: Mechanism, section of the paper, what runs it, and the picture or table, if there is one.
ROWS = (
    ("main queue, a sub-queue per device, rules 1 to 5", "5", "rules.five", "fig_gantt"),
    ("history: count, mean, deviation; persistent", "5, rule 5", "store.Store", "learned"),
    ("several CPUs and GPUs, history per class", "5", "model.Machine", "fig_gantt"),
    ("noise and outliers of run times", "5", "workload.draw", "fig_poison"),
    ("fairness in both readings, two exceptions", "5", "fairness.Fairness", "fig_fairness"),
    ("explorations counted, once per class", "5", "rules.rule_2", "fig_learning"),
    ("GPU only, preferred device, blind round robin", "7", "rivals.round_robin", "fig_savings"),
    ("MCT by declared times", "6, 7", "rivals.mct", "fig_learning"),
    ("TORQUE: one line, or a line per class", "6", "rivals.strict", "fig_nodes"),
    ("RSC, RSC-strict, RSA, ASJF (our reading)", "7", "rivals.speed_up", "fig_tradeoff"),
    ("exhaustive ideal, fractional bound", "7", "ideal.ideal_plan", "fig_ideal"),
    ("problem 2: nodes, moldable jobs, both devices", "2, 7", "moldable.run_moldable", "fig_nodes"),
    ("batches that arrive at random, no preemption", "5 A", "engine.simulate", ""),
    ("the CPU thread of a GPU job", "5 A", "model.Reading", "fig_assumption"),
    ("pipeline: streams and copy engines", "2", "pipeline.run_chunks", "fig_overlap"),
    ("inputs beyond GPU and host memory", "2", "outofcore.cut_input", "fig_memory"),
    ("operation scheduler: order of issue", "2", "issue.issue_order", "fig_issue"),
    ("configuration optimiser", "2", "optimiser.adapt_split", "fig_optimiser"),
    ("Amdahl's law", "3", "optimiser.amdahl_bound", "fig_amdahl"),
    ("MapReduce on nodes; Hadoop's slots", "4", "mapreduce.run_mapreduce", "fig_mapreduce"),
    ("a version per device, chosen after the device", "5", "mapdata.MapReduce", "fig_live"),
    ("throughput, makespan, wait, completion, use", "2, 7", "engine.Schedule", "tradeoff"),
)


def inventory() -> pd.DataFrame:
    """T1: list every mechanism of the paper with what runs it and what shows it.

    Examples
    --------
    >>> inventory().loc[8, "runs in"]
    'rivals.mct'
    """
    for _, _, path, _ in ROWS:
        module, name = path.split(".")
        if not hasattr(importlib.import_module(f"dlsim.cpugpu.{module}"), name):
            raise InputError(f"dlsim.cpugpu.{module} must hold {name}, which the inventory names")
    columns = ["mechanism", "section", "runs in", "shown by"]
    return pd.DataFrame(ROWS, columns=columns, index=pd.RangeIndex(1, len(ROWS) + 1, name="row"))
