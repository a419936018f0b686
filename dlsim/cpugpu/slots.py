"""Hadoop's own schedulers: FIFO, fair, capacity, on slots that are all alike.

Source: paper C, the abstract and section 4: "By default, Hadoop supports some fairly simple
scheduling policies e.g. FIFO, fair scheduling, or capacity scheduling"; how these share is
Hadoop's documentation.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from dlsim.cpugpu.history import History
from dlsim.cpugpu.job_table import (
    JobTable,
    do_not_overlap,
    find_earliest,
    require,
    require_single_labels,
    table_times_equal,
    time_column,
)
from dlsim.cpugpu.loop import simulate_jobs
from dlsim.cpugpu.model import JobMetrics, Machine, Policy, Reading
from dlsim.cpugpu.queues import ByApplication
from dlsim.cpugpu.rules import Decide, Decision, SchedulerState
from dlsim.errors import InputError
from dlsim.rounding import not_after
from dlsim.user_code import calling_user_code
from dlsim.validate import number, one_of, require_table, whole

#: A free slot takes a task of the job with the least key; of jobs with equal keys (up to rounding)
#: the first to arrive is served. The key is a function of the job's running tasks, the running
#: tasks of its queue, and its row. FIFO: all keys are equal. Fair: the job with the fewest running
#: tasks per weight. Capacity: the queue with the fewest running tasks per share; slots that a queue
#: does not use serve the others.
SLOT_SCHEDULERS: dict[str, Callable[[int, int, Any], float]] = {
    "fifo": lambda own, beside, row: 0.0,
    "fair": lambda own, beside, row: own / row["weight"],
    "capacity": lambda own, beside, row: beside / row["share"],
}


@dataclass(frozen=True, eq=False)
class SlotResult(JobMetrics):
    """The slot, start and end of every task, and the start and end of every job."""

    jobs: pd.DataFrame
    tasks: pd.DataFrame
    slots: int
    scheduler: str

    def check(self) -> None:
        """Check the schedule against the model."""
        jobs, tasks = self.jobs, self.tasks
        labels = tasks["job"].tolist()
        count = tasks.groupby("job").size().reindex(jobs.index, fill_value=0)
        require("every task of a job runs once", count == jobs["tasks"], list(jobs.index))
        require("no task runs twice", ~tasks.duplicated(["job", "task"]), labels)
        require(
            "a slot is one of those there are", tasks["slot"].between(0, self.slots - 1), labels
        )
        job_of_task = jobs.loc[tasks["job"]]
        time, span = job_of_task["task_time"].to_numpy(), float(jobs["task_time"].min())
        took = table_times_equal(tasks["start"].to_numpy() + time, tasks["end"], time)
        require("a task takes its time", took, labels)
        early = not_after(job_of_task["arrival"].to_numpy(), tasks["start"], span)
        require("no task starts before its job arrives", early, labels)
        alone = do_not_overlap(tasks["slot"], tasks["start"], tasks["end"], span)
        require("a slot runs one task at a time", alone, labels)

        # Replayed: no slot idles while a task waits, and each start is the scheduler's choice.
        rows: list[Any] = list(tasks.itertuples(index=False))
        line = jobs.sort_values("arrival", kind="stable").to_dict("index")
        key, waits = SLOT_SCHEDULERS[self.scheduler], []
        for i, row in enumerate(rows):
            earlier, turns = rows[:i], dict[Any, float]()
            running = [one.job for one in earlier if not not_after(one.end, row.start, span)]
            started = Counter(one.job for one in earlier)
            for label, job in line.items():
                if job["tasks"] > started[label] and not_after(job["arrival"], row.start, span):
                    beside = sum(line[other]["queue"] == job["queue"] for other in running)
                    turns[label] = key(running.count(label), beside, job)
            least = min(turns.values(), default=0.0)
            equal = [label for label, at in turns.items() if not_after(at, least, least)]
            first = next(iter(equal), None)
            require(
                f"{self.scheduler}: a slot serves whose turn it is", first == row.job, [row.job]
            )
            since = [line[row.job]["arrival"], *(one.end for one in earlier)]
            waits.append(any(table_times_equal(row.start, instant, span) for instant in since))
        require("a task starts when its job arrives or a slot is free", waits)
        require("tasks are listed by their starts", tasks["start"].is_monotonic_increasing)
        last = tasks.groupby("job")["end"].max().reindex(jobs.index)
        require("a job ends with its last task", last == jobs["end"], list(jobs.index))


def share_slots(pools: Sequence[int], weights: Sequence[float]) -> Decide:
    """Return Hadoop's rule: the pool with the fewest running tasks per weight is served.

    Parameters
    ----------
    pools : sequence of int
        The pool of each job, jobs in order of arrival; of equals the first job is served.
    weights : sequence of float
        What the running tasks of each job's pool are divided by.
    """

    def rule(state: SchedulerState, policy: Policy, reading: Reading) -> Decision | None:
        slot = state.first_free("cpu")
        waiting = state.main.view(ByApplication).queues
        places = [place for place in range(len(pools)) if waiting.get(str(place))]
        if slot is None or not places:
            return None
        running = Counter(pools[int(job.app)] for job in state.running if job is not None)
        found = places[find_earliest([running[pools[p]] / weights[p] for p in places], 0.0)]
        return Decision(waiting[str(found)].head.job, slot, "shared")

    return rule


def run_slots(jobs: pd.DataFrame, slots: int, scheduler: str = "fifo") -> SlotResult:
    """Run the tasks of several jobs on slots, without preemption.

    Parameters
    ----------
    jobs : DataFrame
        Column tasks (how many); optionally arrival (0), task_time (1), queue ("default"),
        share (the queue's part of the slots; 1) and weight (of the job; 1).
    slots : int
        Tasks that run at once.
    scheduler : {"fifo", "fair", "capacity"}
        The job of which a free slot takes a task; on a tie the job that arrived first.

    Returns
    -------
    SlotResult
        Tables; its `check` replays every choice.

    Raises
    ------
    InputError
        For a row that cannot be used, or a queue with two shares.

    Examples
    --------
    >>> jobs = pd.DataFrame({"tasks": [8, 4, 4]}, index=["A", "B", "C"])
    >>> run_slots(jobs, 4, "fair").jobs["end"].tolist()
    [4.0, 4.0, 4.0]
    """
    one_of("scheduler", scheduler, SLOT_SCHEDULERS)
    slots = whole("slots", slots, 1, 10_000)
    require_single_labels("jobs", require_table("jobs", jobs, ("tasks",), empty=False))
    defaults: dict[str, Any] = {
        "arrival": 0.0,
        "task_time": 1.0,
        "queue": "default",
        "share": 1.0,
        "weight": 1.0,
    }
    table = jobs.assign(**{k: v for k, v in defaults.items() if k not in jobs})
    for label, count in table["tasks"].items():
        whole(f"tasks of job {label!r}", count, 1, 10**6)
    for name in ("arrival", "task_time", "share", "weight"):
        table[name] = time_column("jobs", table, name, positive=name != "arrival")
    for label, queue in table["queue"][table["queue"].isna()].items():
        raise InputError(
            f"queue of job {label!r} must be a name, got {queue!r}; give one, or no such column "
            "for one queue of all"
        )
    with calling_user_code("queue must be a name that can be hashed"):
        shares = list(table.groupby("queue", sort=False)["share"])
    for queue, own in shares:
        least = float(own.min())
        number(f"share of queue {queue!r}", float(own.max()), least, least)
    table = table[["tasks", *defaults]]

    # On a machine of one class; every job is an application of its own.
    line = table.sort_values("arrival", kind="stable")
    places = np.arange(len(line))
    job = np.repeat(places, line["tasks"].to_numpy(np.int64))
    times = np.column_stack([np.full(len(line), np.nan), line["task_time"]])[job]
    names = pd.Index([str(place) for place in places])
    task_table = JobTable(
        pd.RangeIndex(len(job)),
        line["arrival"].to_numpy()[job],
        names,
        job,
        times,
        ~np.isnan(times),
        times,
        0,
        slots,
    )
    policy = Policy("fifo", target="cpu")
    if scheduler == "fair":
        policy = Policy(share_slots(places.tolist(), line["weight"].tolist()))
    elif scheduler == "capacity":
        pools = pd.factorize(line["queue"])[0].tolist()
        policy = Policy(share_slots(pools, line["share"].tolist()))
    trace = simulate_jobs(task_table, Machine(cpus=slots, gpus=0), policy, Reading(), History())
    order = np.argsort(trace.decision_no)
    tasks = pd.DataFrame(
        {
            "job": line.index[job[order]],
            "task": order - np.searchsorted(job, job[order]),
            "slot": trace.device[order],
            "start": trace.time_offset + trace.start[order],
            "end": trace.time_offset + trace.end[order],
        }
    )
    spans = tasks.groupby("job").agg({"start": "min", "end": "max"})
    return SlotResult(table.join(spans), tasks, slots, scheduler)
