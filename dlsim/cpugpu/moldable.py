"""Jobs on several nodes, each a CPU and a GPU: which type, how many nodes, and when.

Source: paper C, the "second problem" of sections 2 and 7; see `dlsim.cpugpu.nodes` for
what its sources leave open.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from dlsim.cpugpu.booking import Plan, run_jobs, search_best
from dlsim.cpugpu.given import apart, before, hold, together
from dlsim.cpugpu.model import Measures
from dlsim.cpugpu.nodes import SCHEDULERS, NodePool, Scheduler, jobs_of, lower_bound
from dlsim.given import named, usual
from dlsim.kernel import clock_origin
from dlsim.rounding import not_after

__all__ = ["SCHEDULERS", "MoldableSchedule", "NodePool", "Scheduler", "lower_bound", "run_moldable"]

Rule = tuple[str, Any]


def run_moldable(
    jobs: pd.DataFrame, pool: NodePool | None = None, scheduler: str | Scheduler = "flexible"
) -> "MoldableSchedule":
    """Schedule jobs on nodes with a CPU and a GPU each, without preemption.

    Parameters
    ----------
    jobs : DataFrame
        As in `dlsim.cpugpu.nodes.jobs_of`; jobs of one arrival instant are one batch.
    pool : NodePool, optional
        The nodes.
    scheduler : str or Scheduler
        A name of `SCHEDULERS`, or a row of one's own.

    Returns
    -------
    MoldableSchedule
        Tables; its `check` tests the model's rules.

    Raises
    ------
    InputError
        For a row that cannot be used, an unknown scheduler, or a search that is too big.

    Examples
    --------
    >>> jobs = pd.DataFrame({"cpu_time": [8.0, 8.0], "gpu_time": [4.0, 4.0]})
    >>> run_moldable(jobs, NodePool(1), "mct").jobs["type"].tolist()
    ['gpu', 'gpu']
    """
    pool = usual("pool", pool, NodePool)
    name, row = named("scheduler", scheduler, SCHEDULERS, lambda row: "own")
    given = jobs_of(jobs, pool)
    origin = clock_origin(np.sort([job.arrival for job in given]))
    given = [job._replace(arrival=job.arrival - origin) for job in given]
    plan = (search_best if row.search else run_jobs)(given, pool, row)
    return MoldableSchedule(*_tables(jobs, pool, plan, origin), pool, row, name)


def _tables(
    jobs: pd.DataFrame, pool: NodePool, plan: Plan, origin: float
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the table of jobs, in their own order, and that of devices."""
    rows, uses = [], []
    for booking, start in plan:
        job, (count, kind, _) = booking.job, booking.option
        end = start + booking.real(pool)
        label = jobs.index[job.place]
        wait, turnaround = start - job.arrival, end - job.arrival
        start, end = origin + start, origin + end
        times = (origin + job.arrival, start, end, origin + booking.predicted)
        rows.append((label, kind, count, *times, wait, turnaround))
        devices = ("gpu", "cpu") if kind == "both" else (kind,)
        uses += [(label, n, d, start, end) for n in booking.nodes for d in devices]
    columns = ["type", "nodes", "arrival", "start", "end", "predicted", "wait", "completion"]
    table = pd.DataFrame(rows, columns=["job", *columns]).set_index("job")
    given = jobs[[c for c in ("app", "cpu_time", "gpu_time") if c in jobs]]
    declared = {
        f"{c}_estimate": jobs.get(f"{c}_estimate", jobs[f"{c}_time"]) for c in ("cpu", "gpu")
    }
    given = given.assign(requested=jobs.get("nodes", 1), **declared)
    table.index.name = jobs.index.name
    return given.join(table), pd.DataFrame(uses, columns=["job", "node", "device", "start", "end"])


@dataclass(frozen=True, eq=False)
class MoldableSchedule(Measures):
    """Who ran where and when.

    `jobs` has app (where given), cpu_time, gpu_time, requested, cpu_estimate, gpu_estimate,
    type, nodes, arrival, start, end, predicted (finish expected at booking), wait, completion
    (since arrival); `uses` a row per job and device: job, node, device, start, end.
    """

    jobs: pd.DataFrame
    uses: pd.DataFrame
    pool: NodePool
    scheduler: Scheduler
    name: str

    @property
    def mean_wait(self) -> float:
        """Return the mean time from arrival to start."""
        return float(self.jobs["wait"].mean())

    @property
    def mean_completion(self) -> float:
        """Return the mean time from arrival to end."""
        return float(self.jobs["completion"].mean())

    @property
    def busy(self) -> pd.Series:
        """Return the busy time of all CPUs and of all GPUs, as a share of the makespan."""
        spans = self.uses["end"] - self.uses["start"]
        total = spans.groupby(self.uses["device"]).sum().reindex(["gpu", "cpu"], fill_value=0.0)
        return (total / (self.pool.nodes * self.makespan)).rename("busy")

    def check(self) -> None:
        """Check the schedule against the model, independently of the scheduler."""
        for rule, good in self._job_rules():
            hold(rule, good, list(self.jobs.index))
        for rule, good, labels in self._use_rules():
            hold(rule, good, labels)
        for rule, good in self._line_rules():
            hold(rule, good)

    @property
    def _span(self) -> float:
        """The scale at which two instants are one: the shortest run."""
        return float((self.jobs["completion"] - self.jobs["wait"]).min())

    def _job_rules(self) -> Iterator[Rule]:
        jobs, pool, row = self.jobs, self.pool, self.scheduler
        ways = jobs[["cpu_time", "gpu_time", "type", "nodes"]].to_numpy().tolist()
        times = np.array([pool.time(*way) for way in ways])
        yield "a job runs where it has a version", ~np.isnan(times)
        yield "a job takes its time", together(jobs["start"] + times, jobs["end"], times)
        yield "no job starts before it arrives", not_after(jobs["arrival"], jobs["start"], times)
        if row.counts == "requested":
            yield "a job gets the nodes asked for", jobs["nodes"] == jobs["requested"]
        yield "a job runs on a number of nodes of the pool", jobs["nodes"].isin(pool.counts)
        if row.types != "any":
            yield "a job runs on one type", jobs["type"].isin(("cpu", "gpu"))
        if row.types == "preferred":
            cpu, gpu = jobs["cpu_estimate"], jobs["gpu_estimate"]
            faster = np.where((cpu < gpu) | gpu.isna(), "cpu", "gpu")
            yield "a job runs on the type that its user names", jobs["type"] == faster

    def _use_rules(self) -> Iterator[tuple[str, Any, list[Any]]]:
        uses, jobs, everywhere = self.uses, self.jobs, set(range(self.pool.nodes))
        found: dict[Any, list[tuple[int, str]]] = {label: [] for label in jobs.index}
        for label, *place in uses[["job", "node", "device"]].itertuples(index=False, name=None):
            found.setdefault(label, []).append(tuple(place))
        wanted = dict(zip(jobs.index, zip(jobs["type"], jobs["nodes"], strict=True), strict=True))
        full = []
        for label, held in found.items():
            kind, count = wanted.get(label, ("", 0))
            nodes = {node for node, _ in held}
            whole = product(nodes, ("cpu", "gpu") if kind == "both" else (kind,))
            full.append(
                len(nodes) == count and nodes <= everywhere and sorted(held) == sorted(whole)
            )
        yield "a job holds its devices on distinct nodes of the pool", full, list(found)
        spans = jobs.loc[uses["job"], ["start", "end"]].to_numpy() == uses[["start", "end"]]
        yield "a job holds its devices while it runs", spans.all(axis=1), uses["job"].tolist()
        lanes = uses.groupby(["node", "device"]).ngroup()
        alone = apart(lanes, uses["start"], uses["end"], self._span)
        yield "a device serves one job at a time", alone, uses["job"].tolist()

    def _line_rules(self) -> Iterator[Rule]:
        """Nobody waits for nothing; in a line nobody passes the one before."""
        jobs, row = self.jobs, self.scheduler
        line = jobs.sort_values("arrival", kind="stable")
        if row.line != "none":
            lanes = (line["type"] == "gpu") & (row.line == "class")
            ahead = before(lanes, line["start"], -np.inf)
            yield "a line is served in order", not_after(ahead, line["start"], self._span)
        instants = np.sort(np.concatenate([jobs["end"], jobs["arrival"]]))
        start = jobs["start"].to_numpy()
        after = np.searchsorted(instants, start).clip(1, len(instants) - 1)
        prompt = [together(start, instants[at], self._span) for at in (after - 1, after)]
        yield "a job starts when it arrives or another ends", np.any(prompt, axis=0)
