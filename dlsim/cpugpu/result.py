"""The result of a run: the tables of its jobs and the figures over them (paper C)."""

import functools
from dataclasses import dataclass, field

import pandas as pd

from dlsim.cpugpu.check import check_job_schedule, judge_fairness, local_bounds
from dlsim.cpugpu.history import History
from dlsim.cpugpu.ideal import lb_fractional
from dlsim.cpugpu.model import EXPLORING, POLICIES, JobMetrics, Machine, Policy, Reading
from dlsim.cpugpu.scheduler import Trace, shift_clock, simulate_jobs
from dlsim.cpugpu.workload import JobTable
from dlsim.validate import number, one_of


@dataclass(frozen=True)
class ScheduleResult(JobMetrics):
    """The schedule of every job under a policy, as plain tables.

    Attributes
    ----------
    jobs : DataFrame
        Columns app, arrival, decided (when it left the main queue), turn (its place among all
        decisions), device, start, completion, rule, predicted (finish there, NaN where nothing
        was predicted); index as the jobs'.
    machine, policy, name, reading, job_table
        The inputs of the run.
    history : History
        The history after the run; the history that was given is not changed.
    trace
        The arrays of the engine.
    """

    jobs: pd.DataFrame
    machine: Machine
    policy: Policy
    name: str
    reading: Reading
    history: History
    job_table: JobTable = field(repr=False)
    trace: Trace = field(repr=False)

    @functools.cached_property
    def predictions(self) -> pd.DataFrame:
        """Predicted finish of each job on every device when it was decided."""
        predicted_finish = self.trace.predicted_finish + self.trace.time_offset
        return pd.DataFrame(
            predicted_finish, index=self.job_table.labels, columns=list(self.machine.devices)
        )

    @property
    def utilisation(self) -> pd.Series:
        """Part of the makespan that each device was busy."""
        busy = (self.jobs["completion"] - self.jobs["start"]).groupby(self.jobs["device"]).sum()
        return busy.reindex(list(self.machine.devices), fill_value=0.0) / self.makespan

    @property
    def explored(self) -> pd.Series:
        """Which jobs were placed to fill the history (rule 2)."""
        return self.jobs["rule"].isin(EXPLORING)

    @functools.cached_property
    def bound(self) -> float:
        """Lower bound of the makespan, jobs being divisible (`lb_fractional`)."""
        job_table = shift_clock(self.job_table)[1]
        bound = lb_fractional(job_table.arrival, job_table.times, self.machine.gpus)
        return bound - float(job_table.arrival[0])

    def fairness(self, against: str = "assigned", significant: float = 0.1) -> pd.DataFrame:
        """Return how late each job was against its preferred device (section 5).

        Parameters
        ----------
        against : {"assigned", "preferred"}
            Compare with the completion behind the work that was assigned to the preferred device
            when the job was decided (F1), or with that in the schedule in which every job goes to
            its preferred device (F2).
        significant : float
            A prediction with a larger relative error is wrong.

        Returns
        -------
        DataFrame
            Columns preferred (class), fair_completion (the completion compared with), lateness
            (completion minus fair_completion), late, and excuse: the paper's exception that the
            job falls under, "explored", "mispredicted" or "".
        """
        one_of("against", against, ("assigned", "preferred"))
        significant = number("significant", significant)
        if against == "assigned":
            return judge_fairness(self, local_bounds(self), significant)
        preferred = POLICIES["preferred"]
        fifo = simulate_jobs(self.job_table, self.machine, preferred, self.reading, History())
        return judge_fairness(self, fifo.time_offset + fifo.completion, significant)

    def summary(self) -> pd.Series:
        """Return the measures that paper C names, under the name of the policy.

        Returns
        -------
        Series
            makespan (units of time, from the first arrival to the last completion; less is
            better), throughput (jobs per unit of time; more is better), mean_wait and
            mean_completion (units of time from the arrival; less is better), utilisation (part of
            the makespan that a device is busy, mean over the devices; more is better), explored
            (jobs placed to learn their run times) and late (jobs that are completed later than on
            their preferred device, behind the work assigned there; less is better).
        """
        own = {
            "utilisation": float(self.utilisation.mean()),
            "explored": int(self.explored.sum()),
            "late": int(self.fairness()["late"].sum()),
        }
        return pd.concat([super().summary(), pd.Series(own)]).rename(self.name)

    def check(self) -> None:
        """Verify the schedule against the model alone (`dlsim.cpugpu.check`)."""
        check_job_schedule(self)
