"""What paper C runs (sections 2, 4, 5 and 7), one function per experiment, each a cell of a sweep.

The mixes of applications are those of `dlsim.cpugpu.workload`, since the paper prints none.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from dlsim.cpugpu import POLICIES, History, Machine, Policy, Reading, Schedule, simulate, workload
from dlsim.cpugpu import SWITCHES as OF_ENGINE
from dlsim.cpugpu.engine import learn
from dlsim.cpugpu.gpu import Cut, Rates, cut_input
from dlsim.cpugpu.ideal import lb_fractional
from dlsim.cpugpu.mapreduce import Costs, NodeGroup, run_mapreduce, split_text, word_count
from dlsim.cpugpu.moldable import NodePool, run_moldable
from dlsim.cpugpu.pipeline import Gpu, Timeline, run_chunks
from dlsim.cpugpu.split import adapt_split
from dlsim.given import generator
from dlsim.study.cells import verified

#: What the paper leaves open: to the engine; the class whose times the mixes draw; what a wrong
#: first sample befalls; from which relative error on a prediction is significantly wrong; how
#: jobs speed up with nodes, what both devices of one give together, and how many nodes there are.
SWITCHES: dict[str, tuple[Any, ...]] = {
    **OF_ENGINE,
    "base": workload.BASES,
    "poisoned": ("one", "all"),
    "significant": (0.1, 0.05, 0.2),
    "exponent": (0.9, 0.7, 1.0),
    "both": (0.95, 0.8, 1.0),
    "nodes": (4, 2, 8),
}
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
#: Every policy by its name in the legends.
NAMED: dict[str, Policy] = {**POLICIES, **VARIANTS}
#: Compared with the exhaustive schedule.
WITH_IDEAL = ("history", "mct", "rsc", "asjf", "round-robin", "preferred", "gpu-only")
FAIR = ("local", "global")
#: First batches whose fairness is judged.
FAIR_BATCHES = 4
#: Lateness, in run times on the preferred device, whose excess is counted.
ABOVE = (0.0, *np.geomspace(0.01, 30, 24).round(4).tolist())
Row = dict[str, Any]
Switches = Mapping[str, Any]
Names = Sequence[str]
Tables = list[pd.DataFrame]


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
    base: str = "cpu"

    @property
    def machine(self) -> Machine:
        """The machine."""
        return Machine(self.cpus, self.gpus)

    @property
    def noise(self) -> dict[str, Any]:
        """The noise as arguments of `learn` and `draw`."""
        return {"cv": self.cv, "outliers": self.outliers, "factor": self.factor}

    def applications(self, mix: str, seed: Any) -> pd.DataFrame:
        """Draw the applications of a mix."""
        return workload.applications(mix, self.apps, seed, base=self.base)


def batches_of(table: pd.DataFrame, setting: Setting, seed: Any) -> Tables:
    """Draw the batches of a replicate, each to start on an idle machine."""
    drawn = workload.draw(table, setting.jobs, seed, batches=setting.batches, **setting.noise)
    return [part for _, part in drawn.groupby("batch", sort=False)]


def world(
    mix: str, setting: Setting, seed: Any, **changed: Any
) -> tuple[Setting, pd.DataFrame, Tables]:
    """Draw what a replicate meets: its setting, the applications, the batches."""
    here = setting._replace(**changed)
    table = here.applications(mix, seed)
    return here, table, batches_of(table, here, seed)


def follow(
    parts: Sequence[pd.DataFrame], setting: Setting, policy: str, reading: Reading,
    history: History | None = None,
) -> Iterator[Schedule]:  # fmt: skip
    """Run batches one after another, the history handed on."""
    for part in parts:
        schedule = simulate(part, setting.machine, NAMED[policy], history, reading)
        history = schedule.history
        yield schedule


def compare(
    mix: str, error: float, *, policies: Names, setting: Setting, switches: Switches, seed: Any
) -> pd.DataFrame:
    """Run all policies on the same batches, the history of each handed on."""
    reading, table = Reading.of(switches), setting.applications(mix, seed)
    frame = learn(
        mix, [NAMED[name] for name in policies], batches=setting.batches, jobs=setting.jobs,
        machine=setting.machine, reading=reading, error=error, table=table, seed=seed,
        **setting.noise,
    )  # fmt: skip
    if seed.spawn_key[-1:] == (0,):
        first = batches_of(table, setting, seed)[0]
        for name in policies:
            simulate(first, setting.machine, NAMED[name], None, reading).check()
    return frame.assign(policy=np.repeat(list(policies), setting.batches))


def thread(
    mix: str, share: float, *, setting: Setting, switches: Switches, seed: Any
) -> pd.DataFrame:
    """Let the CPU thread of a GPU job cost a part of one CPU (claim 13)."""
    changed = {**switches, "gpu_cpu_share": share}
    return compare(mix, 0.0, policies=("history",), setting=setting, switches=changed, seed=seed)


def ideal(
    mix: str, *, length: int, policies: Names, setting: Setting, switches: Switches, seed: Any
) -> list[Row]:
    """Compare short queues with the best of all schedules; histories are exact."""
    here, table, (queue,) = world(mix, setting, seed, jobs=length, batches=1)
    least = simulate(queue, here.machine, "ideal").makespan
    mean = simulate(queue, here.machine, "ideal-mean").mean_completion
    known, reading, rows = History.exact(table), Reading.of(switches), []
    for name in policies:
        s = simulate(queue, here.machine, NAMED[name], known, reading)
        excess = {"makespan": s.makespan / least - 1, "completion": s.mean_completion / mean - 1}
        rows.append({"policy": name, **excess})
    return rows


#: Jobs of a queue that is compared with the lower bound, and how much of the machine's best
#: throughput jobs ask for where they arrive one by one.
LONG, ASKED_FOR = 200, 0.8


def gap(
    mix: str, arrivals: str, length: int, *, short: int, policies: Names,
    setting: Setting, switches: Switches, seed: Any,
) -> list[Row]:  # fmt: skip
    """Compare makespans with the least of all schedules, or of a queue too long with a bound."""
    table = setting.applications(mix, seed)
    one = float(table[["cpu_time", "gpu_time"]].min(axis=1).mean())
    spread = one / (ASKED_FOR * (setting.cpus + setting.gpus))
    how: dict[str, Any] = (
        {"jobs": length} if arrivals == "batch" else {"batches": length, "interval": spread}
    )
    queue = workload.draw(table, seed=seed, **{"jobs": 1, **how}, **setting.noise)
    times = queue[["gpu_time"] * setting.gpus + ["cpu_time"] * setting.cpus].to_numpy()
    first = float(queue["arrival"].min())
    least = lb_fractional(queue["arrival"].to_numpy(), times, setting.gpus) - first
    if length <= short:
        least = simulate(queue, setting.machine, "ideal").makespan
    known, reading = History.exact(table), Reading.of(switches)
    runs = (
        (name, simulate(queue, setting.machine, NAMED[name], known, reading)) for name in policies
    )
    return [{"policy": name, "over": s.makespan / least - 1} for name, s in runs]


def regret(
    mix: str, *, batches: int, policies: Names, setting: Setting, switches: Switches, seed: Any
) -> list[Row]:
    r"""Follow what learning costs, in time, against the same rules with exact histories.

    Beside it the bound of exploring each of two devices once and then keeping to the better mean:
    with a gap of :math:`\Delta` and noise of variance :math:`\sigma^2` on either, n runs cost at
    most :math:`\Delta + (n - 2)^+ \Delta e^{-\Delta^2 / (2 (\sigma_1^2 + \sigma_2^2))}` more than
    always the better one (Lattimore and Szepesvari, "Bandit Algorithms", 2020, chapter 6, for noise
    with Gaussian tails), summed over the applications.
    """
    here, table, parts = world(mix, setting, seed, batches=batches)
    reading, exact = Reading.of(switches), History.exact(table)
    told = (simulate(part, here.machine, "history", exact, reading).makespan for part in parts)
    best, jobs = np.cumsum([*told]), here.jobs * np.arange(1, batches + 1)
    times = table[["cpu_time", "gpu_time"]].to_numpy()
    apart = np.abs(np.diff(times, axis=1)).ravel()
    outlying = here.outliers * (1 - here.outliers) * (here.factor - 1) ** 2
    noise = (times**2).sum(axis=1) * (here.cv**2 + outlying)
    sure = np.full(len(noise), np.inf)
    wrong = np.exp(-np.divide(apart**2, 2 * noise, out=sure, where=noise > 0))
    runs = np.maximum(jobs / here.apps - 2, 0)
    bound = (apart.sum() + runs * (apart @ wrong)) / best[0]
    rows = []
    for name in policies:
        lost = np.cumsum([s.makespan for s in follow(parts, here, name, reading)]) - best
        rows += [
            {"policy": name, "jobs": int(n), "regret": x / best[0], "bound": b, "share": x / of}
            for n, x, b, of in zip(jobs, lost, bound, best, strict=True)
        ]
    return rows


def fairness(
    mix: str, cv: float, *, significant: float, setting: Setting, switches: Switches, seed: Any
) -> list[Row]:
    """Say how late jobs end against their preferred device (claim 6)."""
    here, _, parts = world(mix, setting, seed, cv=cv)
    parts, rows = parts[:FAIR_BATCHES], []
    schedules = list(follow(parts, here, "history", Reading.of(switches)))
    times = pd.concat(parts, ignore_index=True)
    for fair in FAIR:
        jobs = pd.concat([s.fairness(fair, significant).jobs for s in schedules], ignore_index=True)
        own = times["gpu_time"].where(jobs["preferred"] == "gpu", times["cpu_time"])
        relative = jobs["lateness"].where(jobs["late"], 0.0) / own
        unexcused = float((jobs["late"] & (jobs["excuse"] == "")).mean())
        rows += [
            {"fair": fair, "above": above, "share": float((relative > above).mean()),
             "late": float(jobs["late"].mean()), "unexcused": unexcused, "jobs": len(jobs)}
            for above in ABOVE
        ]  # fmt: skip
    return rows


def outlying(mix: str, *, setting: Setting, switches: Switches, seed: Any) -> list[Row]:
    """Run each batch, itself without outliers, after batches with and without (claim 7)."""
    here, _, parts = world(mix, setting, seed, outliers=0.0)
    reading, drawn = Reading.of(switches), world(mix, setting, seed)[2]
    right, taught = (list(follow(some, here, "history", reading)) for some in (parts, drawn))
    return [
        {"batch": k, "excess": simulate(
            parts[k], here.machine, "history", taught[k - 1].history, reading
        ).makespan / right[k].makespan - 1}
        for k in range(1, here.batches)
    ]  # fmt: skip


def poison(
    mix: str, wrong: float, *, poisoned: str, setting: Setting, switches: Switches, seed: Any
) -> list[Row]:
    """Start from one run per application and class, one or all wrong where preferred (claim 7)."""
    here, table, parts = world(mix, setting, seed, outliers=0.0)
    known, first = History(), table.index[0]
    for app, times in table.iterrows():
        best = "gpu" if times["gpu_time"] <= times["cpu_time"] else "cpu"
        factor = wrong if poisoned == "all" or app == first else 1.0
        for cls in ("gpu", "cpu"):
            known.add(str(app), cls, float(times[f"{cls}_time"]) * (factor if cls == best else 1.0))
    runs = follow(parts, here, "history", Reading.of(switches), known)
    return [{"batch": k, "makespan": s.makespan} for k, s in enumerate(runs)]


def break_even(
    spread: float, repeats: int, *, policies: Names, setting: Setting, switches: Switches, seed: Any
) -> list[Row]:
    """Run one cold batch where applications differ more or less, and return more or less often."""
    here = setting._replace(jobs=setting.apps * repeats, batches=1)
    table = workload.applications("balanced", here.apps, seed)
    gain = 2.0 * np.exp(spread * generator(seed, 99).standard_normal(here.apps))
    (queue,) = batches_of(table.assign(gpu_time=table["cpu_time"] / gain), here, seed)
    machine, reading = here.machine, Reading.of(switches)
    runs = ((name, simulate(queue, machine, NAMED[name], None, reading)) for name in policies)
    return [{"policy": name, "makespan": s.makespan} for name, s in runs]


#: Schedulers of problem 2 that can take a queue of any length.
MOULDERS = ("torque-strict", "torque", "mct", "mct-any", "flexible", "area")
#: Numbers of nodes that users ask for, drawn uniformly.
ASKED = (1, 2, 4)
#: Mean times of copy in, map, copy out of a chunk.
PROFILES: dict[str, tuple[float, float, float]] = {
    "balanced": (2.0, 2.0, 2.0),
    "map-heavy": (1.0, 6.0, 1.0),
    "copy-heavy": (4.0, 2.0, 3.0),
    "small output": (4.0, 4.0, 0.4),
}
#: Sizes of an input in units of the GPU's memory; the host has `HOST` times as much.
SIZES = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 64.0)
HOST = 8.0
#: Map and reduce tasks of the word count.
BLOCKS, PARTITIONS = 24, 8
#: What differs among the devices between which the optimiser splits.
CASES: dict[str, dict[str, float]] = {
    "no start-up": {"start_up": 0.0},
    "start-ups": {},
    "start-ups, noise 10 %": {"noise": 0.1},
    "start-ups, noise 10 %, damped": {"noise": 0.1, "damping": 0.5},
    "an outsider": {"outsider": 3.0},
    "an outsider, small shares dropped": {"outsider": 3.0, "least": 0.05},
}


def mould(
    mix: str, error: float, *, nodes: int, exponent: float, both: float, setting: Setting, seed: Any
) -> list[Row]:
    """Schedule moldable jobs on several nodes by every scheduler (problem 2)."""
    jobs = moldable_jobs(mix, error, nodes, setting, seed)
    pool, rows = NodePool(nodes, exponent=exponent, both=both), []
    for name in MOULDERS:
        s = verified(run_moldable(jobs, pool, name), seed)
        rows.append({"scheduler": name, "makespan": s.makespan, "mean_wait": s.mean_wait,
                     "mean_completion": s.mean_completion})  # fmt: skip
    return rows


def moldable_jobs(mix: str, error: float, nodes: int, setting: Setting, seed: Any) -> pd.DataFrame:
    """Draw one batch of jobs that ask for 1, 2 or 4 nodes, as far as there are."""
    table = setting.applications(mix, seed)
    jobs = workload.draw(table, setting.jobs, seed, error=error, **setting.noise)
    asked = generator(seed, 98).choice([n for n in ASKED if n <= nodes], len(jobs))
    return jobs.assign(nodes=asked)


def chunks_of(profile: str, count: int, cv: float, seed: Any) -> pd.DataFrame:
    """Draw the times of chunks: log-normal around a profile."""
    variance = np.log1p(cv * cv)
    normal = np.random.default_rng(seed).standard_normal((count, 3))
    factor = np.exp(np.sqrt(variance) * normal - variance / 2)
    return pd.DataFrame(factor * PROFILES[profile], columns=["h2d", "map", "d2h"])


def pipeline(profile: str, *, chunks: int, cv: float, seed: Any) -> list[Row]:
    """Run chunks through a GPU with 1 to 4 streams and one or two copy engines (claim 10)."""
    table = chunks_of(profile, chunks, cv, seed)
    rows = []
    for engines in (1, 2):
        for streams in (1, 2, 3, 4):
            t = run_chunks(table, Gpu(streams, engines))
            t.check()
            end, mapped = float(t.makespan), float(table["map"].sum())
            rows.append({"streams": streams, "engines": engines, "makespan": end,
                         "use": mapped / end, "hidden": t.hidden})  # fmt: skip
    return rows


def issue(
    queues: str, engines: int, *, profile: str, chunks: int, cv: float, draws: int, seed: Any
) -> list[Row]:
    """Issue the same operations from several threads, again and again (claim 11)."""
    table, gpu = chunks_of(profile, chunks, cv, seed), Gpu(4, engines, queues)
    free = float(run_chunks(table, Gpu(4, engines)).makespan)
    first = int(seed.generate_state(1)[0])
    # the order in which a GPU with many queues would start chunks of mean times
    planned = run_chunks(chunks_of(profile, chunks, 0.0, seed), Gpu(4, engines)).ops
    scheduled: Any = list(zip(planned["chunk"], planned["stage"], strict=True))
    orders = [("threads", "threads", k) for k in range(draws)]
    orders += [("depth", "depth", 0), ("breadth", "breadth", 0), ("scheduled", scheduled, 0)]
    return [
        {"order": name, "number": k,
         "slowdown": float(run_chunks(table, gpu, order, seed=first + k).makespan) / free}
        for name, order, k in orders
    ]  # fmt: skip


def adapt(case: str, *, devices: int, rounds: int, seed: Any) -> list[Row]:
    """Split a work round after round by measured rates (claim 12)."""
    usual = {"start_up": 0.3, "outsider": 0.0, "noise": 0.0, "damping": 0.0, "least": 0.0}
    row, source = {**usual, **CASES[case]}, np.random.default_rng(seed)
    work, unit = 100.0, np.exp(source.uniform(np.log(0.5), np.log(5), devices))
    ideal = work / (1 / unit).sum()
    fixed = row["start_up"] * ideal * source.random(devices)
    if row["outsider"]:
        fixed[-1] = row["outsider"] * ideal
    split = adapt_split(
        work, fixed.tolist(), unit.tolist(), rounds, damping=row["damping"], noise=row["noise"],
        least=row["least"] * work / devices, seed=int(seed.generate_state(1)[0]),
    )  # fmt: skip
    split.check()
    spans = split.makespans / float(split.ideal.time) - 1
    return [{"round": int(str(k)), "excess": float(x)} for k, x in spans.items()]


def zipf_text(words: int, seed: Any, vocabulary: int = 500) -> str:
    """Draw a text whose words are as frequent as those of a language."""
    weight = 1 / np.arange(1, vocabulary + 1)
    ranks = np.random.default_rng(seed).choice(vocabulary, words, p=weight / weight.sum())
    return " ".join(f"word{rank:03d}" for rank in ranks)


def count_words(
    devices: str, gpus: int, streams: int, *, words: int, text: str, policy: str, seed: Any
) -> list[Row]:
    """Count words on the CPUs, GPUs or both of four nodes (claims 14 and 15)."""
    group = NodeGroup(4, 0 if devices == "gpu" else 4, 0 if devices == "cpu" else gpus)
    blocks = split_text(text or zipf_text(words, seed), BLOCKS)
    run = run_mapreduce(
        word_count(PARTITIONS), blocks, group, policy, replicas=2, costs=Costs(gpu=Gpu(streams)),
        seed=int(seed.generate_state(1)[0]),
    )  # fmt: skip
    verified(run, seed)
    return [{"makespan": run.makespan, "throughput": run.throughput}]


def peaks(cut: Cut, timeline: Timeline, output: float) -> dict[str, float]:
    """Return the most memory that chunks take at once, on a GPU and on the host."""
    ops, whole = timeline.ops, cut.chunk * (1 + output)
    on_gpu = _overlap(ops[ops["stage"].isin(("h2d", "map", "d2h"))])
    on_host = _overlap(ops) if cut.mode == "disk" else len(cut.chunks)
    return {"gpu": on_gpu * whole, "host": on_host * whole}


def _overlap(ops: pd.DataFrame) -> int:
    """Return how many chunks are there at once; one that ends makes room for the next."""
    spans = ops.groupby("chunk").agg(start=("start", "min"), end=("end", "max")).astype(float)
    steps = [(t, 1) for t in spans["start"]] + [(t, -1) for t in spans["end"]]
    here = np.cumsum([step for _, step in sorted((round(t, 9), step) for t, step in steps)])
    return int(here.max())


def memory(gpu: float = 1000.0, output: float = 0.25) -> pd.DataFrame:
    """Push inputs of growing size through one GPU (claim 16)."""
    rates = Rates(h2d=0.5, map=1.0, d2h=0.5, read=2.0, write=2.0, setup=5.0)
    given: dict[str, Any] = {"gpu_memory": gpu, "host_memory": HOST * gpu, "output": output}
    rows = []
    for size in SIZES:
        units = size * gpu
        cut = cut_input(units, rates, chunk=100.0, **given)
        t = run_chunks(cut.chunks, Gpu(3), buffers=cut.buffers)
        t.check()
        most, mapped = peaks(cut, t, output), cut.chunk * int((t.ops["stage"] == "map").sum())
        rows.append((size, cut.mode, len(cut.chunks), float(t.makespan) / units, mapped / units,
                     most["gpu"] / gpu, most["host"] / (HOST * gpu)))  # fmt: skip
    columns = ["size", "mode", "chunks", "per_unit", "mapped", "gpu", "host"]
    return pd.DataFrame(rows, columns=columns)
