"""What paper C runs on one machine: one function per experiment, each a cell of a sweep.

Every function draws one workload and runs all policies on it, so that policies are compared
on the same jobs with the same noise. Source: cpu-gpu.txt, sections 2, 5 and 7; the mixes of
applications are those of `dlsim.cpugpu.workload`, since the paper prints none.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from dlsim.cpugpu import (
    POLICIES,
    History,
    Machine,
    Policy,
    Reading,
    Schedule,
    learn,
    simulate,
    workload,
)

#: Policies that decide job by job, in the order of the legends.
ONLINE = (
    "history", "cpu-only", "gpu-only", "preferred", "round-robin", "mct", "torque-strict", "rsc",
    "rsc-strict", "rsa", "asjf",
)  # fmt: skip
#: Beside the literal rules, each off by default.
VARIANTS: dict[str, Policy] = {
    "history, 3 samples": Policy(min_samples=3),
    "history, re-explore": Policy(re_explore=8),
    "history, bounded": Policy(bound=0.1),
    "history, median": Policy(estimate="median"),
    "history, ewma": Policy(estimate="ewma"),
    "history, steal": Policy(steal=True),
}
#: Compared with the exhaustive schedule.
WITH_IDEAL = ("history", "mct", "rsc", "asjf", "round-robin", "preferred", "gpu-only")
FAIR = ("local", "global")
#: First batches whose fairness is judged.
FAIR_BATCHES = 4
#: Lateness, in run times on the preferred device, whose excess is counted.
ABOVE = (0.0, *np.geomspace(0.01, 30, 24).round(4).tolist())

Row = dict[str, Any]


class Setting(NamedTuple):
    """What all workloads of a study have in common."""

    cpus: int
    gpus: int
    apps: int
    jobs: int
    batches: int
    cv: float
    outliers: float
    factor: float

    @property
    def machine(self) -> Machine:
        """The machine."""
        return Machine(self.cpus, self.gpus)

    @property
    def noise(self) -> dict[str, Any]:
        """The noise as arguments of `learn` and `draw`."""
        return {"cv": self.cv, "outliers": self.outliers, "factor": self.factor}


def policy_of(name: str) -> Policy:
    """Return a policy by the name in the legends."""
    return VARIANTS[name] if name in VARIANTS else POLICIES[name]


def _is_first(seed: np.random.SeedSequence) -> bool:
    return seed.spawn_key[-1:] == (0,)


def batches_of(
    table: pd.DataFrame, setting: Setting, seed: Any, **options: Any
) -> list[pd.DataFrame]:
    """Draw the batches of a replicate, each to start on an idle machine."""
    given = {**setting.noise, "batches": setting.batches, **options}
    drawn = workload.draw(table, setting.jobs, seed, **given)
    return [part for _, part in drawn.groupby("batch", sort=False)]


def follow(
    parts: Sequence[pd.DataFrame], setting: Setting, policy: str, reading: Reading,
    history: History | None = None,
) -> Iterator[Schedule]:  # fmt: skip
    """Run batches one after another, the history handed on."""
    for part in parts:
        schedule = simulate(part, setting.machine, policy_of(policy), history, reading)
        history = schedule.history
        yield schedule


def compare(
    mix: str, error: float, *, policies: Sequence[str], setting: Sequence[Any],
    switches: Mapping[str, Any], seed: Any,
) -> pd.DataFrame:  # fmt: skip
    """Run all policies on the same batches, the history of each handed on."""
    here, reading = Setting(*setting), Reading.of(switches)
    frame = learn(
        mix, [policy_of(name) for name in policies], batches=here.batches, jobs=here.jobs,
        apps=here.apps, machine=here.machine, reading=reading, error=error, seed=seed,
        **here.noise,
    )  # fmt: skip
    if _is_first(seed):
        parts = batches_of(workload.applications(mix, here.apps, seed), here, seed)[:1]
        for name in policies:
            for schedule in follow(parts, here, name, reading):
                schedule.check()
    return frame.assign(policy=np.repeat(list(policies), here.batches))


def thread(
    mix: str, share: float, *, setting: Sequence[Any], switches: Mapping[str, Any], seed: Any
) -> pd.DataFrame:
    """Let the CPU thread of a GPU job cost a part of one CPU (claim 13)."""
    changed = {**switches, "gpu_cpu_share": share}
    given: dict[str, Any] = {"policies": ("history",), "setting": setting, "switches": changed}
    return compare(mix, 0.0, seed=seed, **given)


def ideal(
    mix: str, *, jobs: int, policies: Sequence[str], setting: Sequence[Any],
    switches: Mapping[str, Any], seed: Any,
) -> list[Row]:  # fmt: skip
    """Compare short queues with the best of all schedules; histories are exact."""
    here, reading = Setting(*setting)._replace(jobs=jobs, batches=1), Reading.of(switches)
    table = workload.applications(mix, here.apps, seed)
    (queue,) = batches_of(table, here, seed)
    least = simulate(queue, here.machine, "ideal").makespan
    mean = simulate(queue, here.machine, "ideal-mean").mean_completion
    known = History.exact(table)
    runs = (simulate(queue, here.machine, policy_of(p), known, reading) for p in policies)
    return [
        {
            "policy": name,
            "makespan": s.makespan / least - 1,
            "completion": s.mean_completion / mean - 1,
        }
        for name, s in zip(policies, runs, strict=True)
    ]


def explore(
    mix: str, *, setting: Sequence[Any], switches: Mapping[str, Any], seed: Any
) -> list[Row]:
    """Count what exploring costs, and who is served out of turn (claims 5 and 17)."""
    here, reading = Setting(*setting), Reading.of(switches)
    table = workload.applications(mix, here.apps, seed)
    slower = (table["cpu_time"] > table["gpu_time"]).map({True: "cpu", False: "gpu"})
    count = pd.Series(0, index=table.index)
    worst, late = 0.0, 0
    for s in follow(batches_of(table, here, seed), here, "history", reading):
        jobs = s.jobs
        cls = jobs["device"].str[:3]
        paid = s.explored & (cls == jobs["app"].map(slower))
        count = count.add(jobs.loc[paid, "app"].value_counts(), fill_value=0)
        times = pd.DataFrame(s.given.times, index=jobs.index, columns=s.machine.devices)
        more = s.run_times - times.min(axis=1)
        worst = max(worst, float((more[paid] / s.makespan).max()) if paid.any() else 0.0)
        last = jobs.groupby("device")["start"].cummax()
        late += int((jobs["start"] < last).sum())
    return [{"times": int(count.max()), "penalty": worst, "late": late,
             "jobs": here.jobs * here.batches}]  # fmt: skip


def fairness(
    mix: str, cv: float, *, setting: Sequence[Any], switches: Mapping[str, Any], seed: Any
) -> list[Row]:
    """Say how late jobs end against their preferred device (claim 6)."""
    here, reading = Setting(*setting)._replace(cv=cv), Reading.of(switches)
    table = workload.applications(mix, here.apps, seed)
    parts = batches_of(table, here, seed)[:FAIR_BATCHES]
    rows = []
    schedules = list(follow(parts, here, "history", reading))
    for fair in FAIR:
        jobs = pd.concat([_judged(s, part, fair) for s, part in zip(schedules, parts, strict=True)])
        unexcused = float((jobs["late"] & (jobs["excuse"] == "")).mean())
        rows += [
            {"fair": fair, "above": above, "share": float((jobs["relative"] > above).mean()),
             "late": float(jobs["late"].mean()), "unexcused": unexcused}
            for above in ABOVE
        ]  # fmt: skip
    return rows


def _judged(s: Schedule, part: pd.DataFrame, fair: str) -> pd.DataFrame:
    jobs = s.fairness(fair).jobs
    own = np.where(jobs["preferred"] == "gpu", part["gpu_time"], part["cpu_time"])
    return jobs.assign(relative=jobs["lateness"].where(jobs["late"], 0.0) / own)


def poison(
    mix: str, wrong: float, *, setting: Sequence[Any], switches: Mapping[str, Any], seed: Any
) -> list[Row]:
    """Start from one run per application and class, wrong on the preferred class (claim 7)."""
    here, reading = Setting(*setting)._replace(outliers=0.0), Reading.of(switches)
    table = workload.applications(mix, here.apps, seed)
    known = History()
    for app, times in table.iterrows():
        best = "gpu" if times["gpu_time"] <= times["cpu_time"] else "cpu"
        for cls in ("gpu", "cpu"):
            known.add(str(app), cls, float(times[f"{cls}_time"]) * (wrong if cls == best else 1.0))
    rows = []
    for k, s in enumerate(follow(batches_of(table, here, seed), here, "history", reading, known)):
        there = [item.preferred for item in s.given.items]
        share = float((s.jobs["device"].str[:3].to_numpy() == np.array(there)).mean())
        rows.append({"batch": k, "makespan": s.makespan, "preferred": share})
    return rows


def break_even(
    spread: float, repeats: int, *, policies: Sequence[str], setting: Sequence[Any],
    switches: Mapping[str, Any], seed: Any,
) -> list[Row]:  # fmt: skip
    """Run one cold batch where applications differ more or less, and return more or less often."""
    here, reading = Setting(*setting), Reading.of(switches)
    table = workload.applications("balanced", here.apps, seed)
    source = np.random.default_rng(
        np.random.SeedSequence(seed.entropy, spawn_key=(*seed.spawn_key, 99))
    )
    gain = 2.0 * np.exp(spread * source.standard_normal(here.apps))
    table = table.assign(gpu_time=table["cpu_time"] / gain)
    here = here._replace(jobs=here.apps * repeats, batches=1)
    (queue,) = batches_of(table, here, seed)
    runs = (simulate(queue, here.machine, policy_of(p), None, reading) for p in policies)
    return [{"policy": p, "makespan": s.makespan} for p, s in zip(policies, runs, strict=True)]
