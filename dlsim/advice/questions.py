"""The questions of an operator, each a function from a job log to a table.

The log's jobs are rigid: so many processors, so long. Taken as divisible, a job is its work, in
seconds of one processor, which any number of nodes may share; data take `Terms.cms` seconds to
send per second of work. Nothing is drawn: the same log gives the same answers.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dlsim.errors import InputError
from dlsim.given import number, option, whole
from dlsim.joblog import Log
from dlsim.kernel import latest_finish
from dlsim.progress import step
from dlsim.realtime import Cluster, Reading, Schedule, simulate
from dlsim.realtime.model import policy_named
from dlsim.realtime.partition import least_times
from dlsim.realtime.rigid import RIGID, run_rigid

#: What a deadline is a multiple of, and how the page says it.
DEADLINES: dict[str, tuple[str, Callable[[pd.DataFrame], pd.Series]]] = {
    "run_time": ("its own run time", lambda jobs: jobs["run_time"]),
    "requested": (
        "the time its user requested",
        lambda jobs: jobs["estimate"].fillna(jobs["run_time"]),
    ),
    "response": (
        "the time it took in the log, waiting included",
        lambda jobs: jobs["wait"].fillna(0) + jobs["run_time"],
    ),
}
#: Columns of a log without which a deadline cannot be a multiple of that.
NEEDS = {"requested": "estimate", "response": "wait"}
#: Policies that are compared where none are named.
POLICIES = ("EDF-OPR-MN", "EDF-DLT", "EDF-EXACT-N", "EDFMN", "MCDF", "EDFAN")
#: Deadlines that are tried, as multiples of the one asked about.
LAXER = (0.5, 0.625, 0.75, 1.0, 1.5, 2.5, 5.0)
#: Most nodes that are tried, as a multiple of the machine's.
MOST_MACHINES = 64
#: Run times below this count as this many seconds in a bounded slowdown (D. Feitelson).
BOUND = 10.0


@dataclass(frozen=True)
class Terms:
    """What is asked of a log.

    Parameters
    ----------
    nodes : int, optional
        Nodes of the cluster; default: the processors of the log's machine.
    cms : float
        Seconds to send the data of one second of work on one processor.
    deadline : {"run_time", "requested", "response"}
        What a deadline is a multiple of (`DEADLINES`).
    laxity : float
        That multiple.
    policies : sequence of str
        Who is compared.
    policy : str, optional
        Whose promises are told in full; default: of those that serve in line, whoever admits
        most jobs.
    target : float
        The share of jobs that is to be admitted.
    warm_up : float
        Seconds at the begin whose jobs run, but are not counted.
    reading : Reading
        How the papers are understood.
    """

    nodes: int | None = None
    cms: float = 0.001
    deadline: str = "run_time"
    laxity: float = 2.0
    policies: Sequence[str] = POLICIES
    policy: str | None = None
    target: float = 0.95
    warm_up: float = 0.0
    reading: Reading = field(default_factory=Reading)

    def __post_init__(self) -> None:
        """Refuse what cannot be asked."""
        if self.nodes is not None:
            whole("nodes", self.nodes)
        number("cms", self.cms, 0)
        option("deadline", self.deadline, DEADLINES)
        number("laxity", self.laxity, 0, above=True)
        number("target", self.target, 0, 1, above=True)
        number("warm_up", self.warm_up, 0)
        if not self.compared:
            raise InputError("policies must name one or more, such as EDF-OPR-MN; got none")
        for name in self.compared:
            if not policy_named(name)[1].admission or policy_named(name)[1].nodes == "user":
                raise InputError(
                    f"policy {name!r} makes no promise for a whole job; use one with admission"
                    " control, such as EDF-OPR-MN"
                )

    @property
    def compared(self) -> list[str]:
        """The policies, and the one told in full, each once."""
        return list(dict.fromkeys([*self.policies, *filter(None, [self.policy])]))


@dataclass(frozen=True)
class Advice:
    """The answers; every table is one of the files that `dlsim advise` writes.

    Attributes
    ----------
    log, terms
        What was asked, of what.
    cluster : Cluster
        On which cluster.
    chosen : str
        The policy whose promises are told in full.
    jobs : DataFrame
        A row per job: when it started in the log, first come first served and under EASY; its
        deadline, what the chosen policy did with it, and what it could have been promised.
    policies, nodes, deadlines, users, queues, days : DataFrame
        Who admits what; how many nodes admit the target; stricter and laxer deadlines; shares
        per user and per queue; load, queue and refusals over time.
    told : bool
        Whether the refused are told what they could have been promised: not where others may pass
        (such as MCDF) and more than `dlsim.realtime.outcome.MOST_OFFERS` are refused.
    every : int
        Of how many refused jobs one is told: 1 but where so many wait that it would take minutes.
    """

    log: Log
    terms: Terms
    cluster: Cluster
    chosen: str
    jobs: pd.DataFrame
    policies: pd.DataFrame
    nodes: pd.DataFrame
    deadlines: pd.DataFrame
    users: pd.DataFrame
    queues: pd.DataFrame
    days: pd.DataFrame
    told: bool = True
    every: int = 1

    @property
    def counted(self) -> pd.DataFrame:
        """The jobs behind the warm-up."""
        return self.jobs[self.jobs["counted"]]

    @property
    def refused(self) -> pd.DataFrame:
        """Jobs that the chosen policy refuses."""
        return self.counted[~self.counted["admitted"]]

    def needed(self, policy: str) -> int | None:
        """Return the fewest nodes tried with which a policy admits the target; None if none do."""
        enough = self.nodes["policy"].eq(policy) & self.nodes["admitted"].ge(self.terms.target)
        return int(self.nodes.loc[enough, "nodes"].min()) if enough.any() else None


def in_window(
    log: Log, begin: float = -np.inf, end: float = np.inf, busiest: float | None = None
) -> Log:
    """Keep the jobs submitted in [begin, end), or in the `busiest` so many seconds of these."""
    jobs = log.jobs[(log.jobs["submit"] >= begin) & (log.jobs["submit"] < end)]
    if busiest is not None and len(jobs):
        number("busiest", busiest, 0, above=True)
        work = (jobs["run_time"] * jobs["processors"]).to_numpy()
        at, total = jobs["submit"].to_numpy(), np.concatenate([[0.0], np.cumsum(work)])
        until = np.searchsorted(at, at + busiest, side="left")
        first = int(np.argmax(total[until] - total[: len(at)]))
        jobs = jobs.iloc[first : until[first]]
    if jobs.empty:
        begun, ended = map(log.date, log.jobs["submit"].iloc[[0, -1]])
        raise InputError(
            f"no job of the log was submitted in that window; it has jobs from {begun} to {ended}"
        )
    return log._replace(jobs=jobs)


def tasks_of(log: Log, cluster: Cluster, terms: Terms) -> pd.DataFrame:
    """Take the jobs as divisible: work in seconds of one processor, and a deadline each.

    No deadline is shorter than all nodes together would need (column ``raised``); those of the
    warm-up are not ``counted``.
    """
    jobs = log.jobs
    work = jobs["run_time"] * jobs["processors"]
    asked = terms.laxity * DEADLINES[terms.deadline][1](jobs)
    least = least_times(work, cluster) * (1 + 1e-9)
    arrival = jobs["submit"] - jobs["submit"].iloc[0]
    return pd.DataFrame({
        "arrival": arrival, "sigma": work, "deadline": np.maximum(asked, least),
        "raised": asked < least, "counted": arrival >= terms.warm_up,
    }, index=jobs.index)  # fmt: skip


def _admitted(s: Schedule, given: pd.DataFrame) -> dict[str, float]:
    """Sum up what a policy admits, of the jobs that count."""
    tasks = s.tasks[given["counted"]]
    yes, work = tasks["admitted"].to_numpy(), tasks["sigma"].to_numpy()
    ran = tasks[yes]
    return {
        "admitted": float(yes.mean()), "admitted_work": float(work[yes].sum() / work.sum()),
        "mean_wait": float((ran["start"] - ran["arrival"]).mean()),
        "mean_nodes": float(ran["nodes"].mean()),
    }  # fmt: skip


def _waits(log: Log, start: pd.Series, counted: NDArray[np.bool_]) -> dict[str, float]:
    """Sum up how long jobs waited that started so."""
    jobs = log.jobs[counted]
    wait = (start - log.jobs["submit"])[counted]
    slow: Any = (wait + jobs["run_time"]) / np.maximum(jobs["run_time"], BOUND)
    return {
        "mean_wait": float(wait.mean()), "median_wait": float(wait.median()),
        "wait_95": float(wait.quantile(0.95)),
        "bounded_slowdown": float(np.maximum(slow, 1).mean()),
    }  # fmt: skip


def _compare(
    log: Log, tasks: pd.DataFrame, cluster: Cluster, terms: Terms, starts: dict[str, pd.Series]
) -> tuple[pd.DataFrame, dict[str, Schedule]]:
    """Tabulate the log's own way, its rigid baselines, and every policy."""
    rows: dict[str, dict[str, Any]] = {}
    schedules: dict[str, Schedule] = {}
    counted = tasks["counted"].to_numpy()
    sizes = log.jobs["processors"] * log.jobs["run_time"]
    for name, start in starts.items():
        due = log.jobs["submit"] + tasks["deadline"]
        in_time = start + log.jobs["run_time"] <= latest_finish(due, tasks["deadline"])
        known = counted & start.notna().to_numpy()
        if not known.any():
            continue
        rows[name] = {
            "in_time": float(in_time[known].mean()),
            "in_time_work": float(sizes[known & in_time].sum() / sizes[known].sum()),
            "mean_nodes": float(log.jobs["processors"][known].mean()),
            **_waits(log, start, known),
        }
    for name in terms.compared:
        step(f"{len(tasks):,} jobs under {name}")
        s = schedules[name] = simulate(tasks, cluster, name, terms.reading)
        row = _admitted(s, tasks)
        row |= {"in_time": row["admitted"], "in_time_work": row["admitted_work"]}
        waits = (s.tasks["start"] - s.tasks["arrival"])[counted].dropna()
        rows[name] = row | {"median_wait": waits.median(), "wait_95": waits.quantile(0.95)}
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("policy"), schedules


def _nodes_for(
    tasks: pd.DataFrame, cluster: Cluster, terms: Terms, policy: str, known: float
) -> list[dict[str, Any]]:
    """Bisect for the fewest nodes that admit the target; the same jobs and deadlines for all."""
    tried = {cluster.nodes: known}

    def enough(nodes: int) -> bool:
        if nodes not in tried:
            step(f"{policy} on {nodes:,} nodes")
            s = simulate(tasks, replace(cluster, nodes=nodes), policy, terms.reading)
            tried[nodes] = float(s.tasks["admitted"][tasks["counted"]].mean())
        return tried[nodes] >= terms.target

    high = cluster.nodes
    while not enough(high) and high < MOST_MACHINES * cluster.nodes:
        high *= 2
    low = high // 2
    while low and enough(low):
        high, low = low, low // 2
    while enough(high) and high - low > max(1, high // 500):  # to .2 %
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return [{"policy": policy, "nodes": n, "admitted": tried[n]} for n in sorted(tried)]


def _laxer(log: Log, cluster: Cluster, terms: Terms, policies: Sequence[str]) -> pd.DataFrame:
    """Say what stricter and laxer deadlines admit."""
    rows = []
    for factor in LAXER:
        other = replace(terms, laxity=terms.laxity * factor)
        tasks = tasks_of(log, cluster, other)
        for policy in policies:
            step(f"{policy}, deadlines {other.laxity:g} times as long")
            s = simulate(tasks, cluster, policy, terms.reading)
            rows.append({"laxity": other.laxity, "policy": policy, **_admitted(s, tasks)})
    return pd.DataFrame(rows)


def jain(shares: Any) -> float:
    """Return the Jain index of some shares: 1 where all are equal, 1/n where one has all."""
    x = np.asarray(shares, dtype=float)
    return float(x.sum() ** 2 / (len(x) * (x**2).sum())) if (x > 0).any() else np.nan


def _per(jobs: pd.DataFrame, by: str) -> pd.DataFrame:
    """Tabulate what the users or the queues get."""
    work = jobs["processors"] * jobs["run_time"]
    table = jobs.assign(work=work, got=work.where(jobs["admitted"], 0.0))
    sums = table.groupby(by).agg(
        jobs=("admitted", "size"), admitted=("admitted", "mean"), work=("work", "sum"),
        got=("got", "sum"),
    )  # fmt: skip
    sums["admitted_work"] = sums.pop("got") / sums["work"]
    return sums.sort_values(["work", "jobs"], ascending=False)


def _over_time(jobs: pd.DataFrame, cluster: Cluster, s: Schedule) -> pd.DataFrame:
    """Tabulate load, who waits and who is refused, in steps of an hour, day or week."""
    submit = jobs["submit"].to_numpy()
    span = float(submit[-1] - submit[0])
    long = next(w for w in (3600.0, 86_400.0, 604_800.0) if span / w <= 400 or w > 86_400)
    at = submit[0] + long * np.arange(int(span // long) + 1)
    of = np.minimum(((submit - submit[0]) // long).astype(int), len(at) - 1)
    total: Any = partial(np.bincount, of, minlength=len(at))

    def queue(start: Any) -> NDArray[np.float64]:  # who waits when a step begins
        start = np.asarray(start, dtype=float)
        known = ~np.isnan(start)
        come, gone = np.sort(submit[known]), np.sort(start[known])
        waits = np.searchsorted(come, at, "right") - np.searchsorted(gone, at, "right")
        return np.asarray(waits, dtype=float)

    arrived = total(np.ones(len(jobs)))
    with np.errstate(invalid="ignore"):
        refused = total(~jobs["admitted"].to_numpy()) / arrived
    return pd.DataFrame({
        "begins": at, "jobs": arrived,
        "load": total(jobs["processors"] * jobs["run_time"]) / (long * cluster.nodes),
        "waiting_log": queue(jobs["log"]) if jobs["log"].notna().any() else np.nan,
        "waiting_easy": queue(jobs["easy"]), "waiting": queue(s.tasks["start"] + submit[0]),
        "refused": refused,
    })  # fmt: skip


def advise(log: Log, terms: Terms | None = None) -> Advice:
    """Answer an operator's questions about a job log.

    Parameters
    ----------
    log : Log
        Of `dlsim.joblog.read_log`, perhaps of a window (`in_window`).
    terms : Terms, optional
        What is asked.

    Returns
    -------
    Advice
        The answers as tables.

    Raises
    ------
    InputError
        For a machine that is smaller than a job of the log, or a warm-up that leaves no job.
    """
    terms = terms or Terms()
    cluster = Cluster(terms.nodes or log.nodes, terms.cms, 1.0)
    if terms.deadline in NEEDS and log.jobs[NEEDS[terms.deadline]].isna().all():
        raise InputError(
            f"the log does not say {DEADLINES[terms.deadline][0]}; take deadlines of run_time"
        )
    tasks = tasks_of(log, cluster, terms)
    if not tasks["counted"].any():
        raise InputError(f"no job is left behind a warm-up of {terms.warm_up:g} s; shorten it")
    step("starting the jobs as the log has them, first come first served and by EASY")
    starts = {"log": log.jobs["submit"] + log.jobs["wait"]}
    starts |= {name: run_rigid(log.jobs, log.nodes, name) for name in RIGID}
    table, schedules = _compare(log, tasks, cluster, terms, starts)
    # in line, what could have been promised is found at once for all
    in_line = [name for name in terms.policies if not policy_named(name)[1].overtake]
    best = terms.policy or table.loc[in_line or list(terms.policies), "admitted"].idxmax()
    chosen = str(best)
    s = schedules[chosen]
    step(f"checking {chosen}")
    s.check()
    step(f"what {chosen} could have promised to those it refuses")
    nobody = pd.DataFrame(columns=["deadline", "nodes"], dtype=float)
    every = s.offers_within_reach
    found = nobody if s.offers_take_long else s.offers(every)
    offers = found.reindex(tasks.index)
    jobs = log.jobs.assign(
        counted=tasks["counted"], **starts, deadline=tasks["deadline"], raised=tasks["raised"],
        admitted=s.tasks["admitted"], nodes=s.tasks["nodes"],
        start=s.tasks["start"] + log.jobs["submit"].iloc[0],
        completion=s.tasks["completion"] + log.jobs["submit"].iloc[0],
        asked=tasks.index.isin(found.index), promise=offers["deadline"],
        promise_nodes=offers["nodes"].fillna(0).astype(int),
    )  # fmt: skip
    nodes = [
        row for name in schedules
        for row in _nodes_for(tasks, cluster, terms, name, float(table["admitted"][name]))
    ]  # fmt: skip
    behind = jobs[jobs["counted"]]
    return Advice(
        log, terms, cluster, chosen, jobs, table, pd.DataFrame(nodes),
        _laxer(log, cluster, terms, list(schedules)), _per(behind, "user"), _per(behind, "queue"),
        _over_time(jobs, cluster, s).assign(date=lambda days: days["begins"].map(log.date)),
        not s.offers_take_long, every,
    )  # fmt: skip
