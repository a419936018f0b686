"""The result of a run: the tables of its jobs and the figures over them (paper C)."""

import functools
from dataclasses import dataclass, field

import pandas as pd

from dlsim.cpugpu.check import check_job_schedule, judge_fairness, local_bounds
from dlsim.cpugpu.history import History
from dlsim.cpugpu.ideal import lb_fractional
from dlsim.cpugpu.job_table import JobTable
from dlsim.cpugpu.loop import Trace, shift_clock, simulate_jobs
from dlsim.cpugpu.model import JobMetrics, Machine, Policy, Reading
from dlsim.validate import number, one_of


@dataclass(frozen=True)
class ScheduleResult(JobMetrics):
    """The schedule of every job under a policy, as plain tables.

    Attributes
    ----------
    jobs : DataFrame
        Columns app, arrival, decided (when it left the main queue), turn (its place among all
        decisions), device, start, end, rule, predicted (finish there, NaN where nothing
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
        busy = (self.jobs["end"] - self.jobs["start"]).groupby(self.jobs["device"]).sum()
        return busy.reindex(list(self.machine.devices), fill_value=0.0) / self.makespan

    @property
    def explored(self) -> pd.Series:
        """Which jobs were placed to fill the history (rule 2)."""
        return self.jobs["rule"].isin(("R2", "R2*"))

    @functools.cached_property
    def bound(self) -> float:
        """Lower bound of the makespan, jobs being divisible (`lb_fractional`)."""
        job_table = shift_clock(self.job_table)[1]
        bound = lb_fractional(job_table.arrival, job_table.times, self.machine.gpus)
        return bound - float(job_table.arrival[0])

    def fairness(self, reading: str = "local", significant: float = 0.1) -> pd.DataFrame:
        """Return how late each job ended against its preferred device (section 5).

        `reading` "local" compares with the end behind the work that was assigned there when the
        job was decided (F1), "global" with its end in the schedule in which every job goes to its
        preferred device (F2). A prediction with a relative error above `significant` is wrong.

        Columns preferred (class), fair_end (the end compared with), lateness (end minus fair_end),
        late, and excuse: the paper's exception that the job falls under, "explored",
        "mispredicted" or "".
        """
        one_of("reading", reading, ("local", "global"))
        significant = number("significant", significant)
        if reading == "local":
            return judge_fairness(self, local_bounds(self), significant)
        fifo = simulate_jobs(self.job_table, self.machine, Policy("fifo"), self.reading, History())
        return judge_fairness(self, fifo.time_offset + fifo.end, significant)

    def check(self) -> None:
        """Verify the schedule against the model alone (`dlsim.cpugpu.check`)."""
        check_job_schedule(self)
