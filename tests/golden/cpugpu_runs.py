"""Random runs of paper C: queues under every policy, slots, MapReduce, nodes, inside a GPU."""

import numpy as np
import pandas as pd

from dlsim.cpugpu import (
    POLICIES,
    Costs,
    Faults,
    Gpu,
    Machine,
    NodeGroup,
    NodePool,
    Policy,
    Reading,
    Storage,
    adapt_split,
    run_chunks,
    run_mapreduce,
    run_moldable,
    simulate,
    word_count,
)
from dlsim.validate import format_value
from tests.golden.blocks import cell, lines
from tests.verification.notebook_code import function_in

#: What the runs were drawn from when they were frozen: one more policy or switch moves no draw.
FROZEN_POLICIES = (
    "history", "cpu-only", "gpu-only", "preferred", "round-robin", "mct", "torque-strict", "torque",
    "rsc", "rsc-strict", "rsa", "asjf", "ideal", "ideal-mean",
)  # fmt: skip
FROZEN_MOLDABLE = ("torque-strict", "torque", "mct", "mct-any", "flexible", "area", "exhaustive")
FROZEN_SWITCHES = {
    "both_free": ("explore", "best"),
    "unknown_remaining": ("avg", "zero", "inf"),
    "deviations": (0.0, 1.0, 2.0),
    "gpu_cpu_share": (0.0, 0.05, 0.2),
}
#: Policies by name, and the options of the paper's rule that no name has.
ROWS: dict[str, Policy] = {
    **{name: POLICIES[name] for name in FROZEN_POLICIES},
    "history, three samples": Policy("history", min_samples=3),
    "history, again": Policy("history", re_explore=2),
    "history, bound": Policy("history", bound=0.3),
    "history, median": Policy("history", estimate="median"),
    "history, ewma": Policy("history", estimate="ewma"),
    "history, steal": Policy("history", steal=True),
}
MACHINES = ((1, 1), (1, 1), (2, 1), (1, 2), (2, 3), (0, 2), (3, 0))
WORDS = ("the", "quick", "brown", "fox", "jumps", "over", "a", "lazy", "dog", "again")


def draw_times(rng: np.random.Generator, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw times of applications on both classes, quarters or any number."""
    times = [rng.integers(1, 49, count) / 2 for _ in "cg"]
    if rng.random() < 0.5:
        times = [t * rng.uniform(0.8, 1.2, count) for t in times]
    return times[0], times[1]


def draw_jobs(rng: np.random.Generator, machine: Machine, most: int) -> pd.DataFrame:
    """Draw a queue of jobs of some applications; some have a version for one class alone."""
    cpu, gpu = draw_times(rng, apps := int(rng.integers(1, 6)))
    if machine.cpus and machine.gpus and rng.random() < 0.3:
        (cpu if rng.random() < 0.5 else gpu)[0] = np.nan
    app = rng.integers(0, apps, count := int(rng.integers(1, most + 1)))
    noise = rng.choice([0.5, 0.75, 1, 1, 1.25, 3], (2, count))
    return pd.DataFrame(
        {
            "app": [f"app{a}" for a in app],
            "arrival": np.cumsum(rng.choice([0, 0, 0, 2, 7.5], count)),
            "cpu_time": cpu[app] * noise[0],
            "gpu_time": gpu[app] * noise[1],
            "cpu_estimate": cpu[app],
            "gpu_estimate": gpu[app],
        }
    )


def queue(rng: np.random.Generator, number: int) -> str:
    """Run a queue of jobs under one policy."""
    name = list(ROWS)[number % len(ROWS)]
    policy = ROWS[name]
    machine = Machine(*MACHINES[int(rng.integers(len(MACHINES)))])
    if policy.target != "preferred":
        machine = Machine(2, 1)
    jobs = draw_jobs(rng, machine, 5 if policy.rule == "ideal" else 25)
    if policy.target != "preferred" or policy.rule == "round-robin":
        jobs = jobs.dropna()
    changes = {
        name: format_value(rng.choice(options))
        for name, options in FROZEN_SWITCHES.items()
        if rng.random() < 0.3
    }
    if policy.rule == "ideal":
        changes = {}
    if jobs.empty:
        return f"{name}: no job"
    s = simulate(jobs, machine, policy, reading=Reading.from_switches(changes))
    columns = ["device", "start", "completion", "decided", "turn", "predicted"]
    return f"{name} {machine.cpus}+{machine.gpus} {changes}\n{lines(s.jobs, columns)}"


def slots(rng: np.random.Generator, number: int) -> str:
    """Run tasks of jobs on Hadoop's slots."""
    scheduler, count = ("fifo", "fair", "capacity")[number % 3], int(rng.integers(1, 6))
    queues = rng.choice(["a", "b"], count)
    jobs = pd.DataFrame(
        {
            "tasks": rng.integers(1, 9, count),
            "arrival": rng.integers(0, 9, count) / 2,
            "task_time": rng.integers(1, 9, count) / 2,
            "queue": queues,
            "share": np.where(queues == "a", 0.75, 0.25),
            "weight": rng.choice([1.0, 2.0], count),
        }
    )
    tasks = function_in("50-cpu-gpu", "run_slots")(jobs, int(rng.integers(1, 6)), scheduler)
    return f"slots {scheduler}\n{lines(tasks)}"


def mapreduce(rng: np.random.Generator, number: int) -> str:
    """Count words with losses, a death and locality."""
    names = [name for name in ROWS if not name.startswith(("ideal", "cpu-only", "gpu-only"))]
    name, group = names[number % len(names)], NodeGroup(int(rng.integers(1, 4)), 2, 1)
    blocks = [" ".join(rng.choice(WORDS, 8)) for _ in range(int(rng.integers(1, 13)))]
    dies = group.nodes > 1 and rng.random() < 0.3
    dead = {0: float(rng.choice([0.01, 0.02, 0.05]))} if dies else {}
    costs = Costs(copy=float(rng.choice([0.0, 0.05])), remote=float(rng.choice([0.0, 0.3])))
    r = run_mapreduce(
        word_count(int(rng.integers(1, 4))),
        blocks,
        group,
        ROWS[name],
        costs=costs,
        storage=Storage(group.nodes, prefer_local=bool(rng.random() < 0.5), seed=number),
        faults=Faults(dead=dead, loss_rate=float(rng.choice([0.0, 0.0, 0.2])), seed=number),
    )
    columns = ["kind", "number", "attempt", "device", "start", "end", "outcome", "predicted"]
    return f"mapreduce {name}\n{lines(r.attempts, columns)}\n{sorted(r.output.items())}"


def moldable(rng: np.random.Generator, number: int) -> str:
    """Schedule jobs on several nodes."""
    name = FROZEN_MOLDABLE[number % len(FROZEN_MOLDABLE)]
    cpu, gpu = draw_times(rng, count := int(rng.integers(1, 4 if name == "exhaustive" else 9)))
    arrival = np.cumsum(rng.choice([0, 0, 3], count)) * (name != "exhaustive")
    noise = 1.0 if name == "exhaustive" else rng.choice([0.5, 1, 1, 2], count)
    pool = NodePool(int(rng.integers(2, 5)), both=float(rng.choice([0.8, 0.95])))
    jobs = pd.DataFrame(
        {
            "cpu_time": cpu * noise,
            "gpu_time": gpu * noise,
            "arrival": arrival,
            "nodes": rng.integers(1, 3, count),
            "cpu_estimate": cpu,
            "gpu_estimate": gpu,
        }
    )
    s = run_moldable(jobs, pool, name)
    columns = ["type", "nodes", "start", "completion", "predicted"]
    return f"moldable {name}\n{lines(s.jobs, columns)}\n{lines(s.uses)}"


def chunks(rng: np.random.Generator, number: int) -> str:
    """Pass chunks through the copy and kernel engines of GPUs, and divide a load over devices."""
    queues = ("hyper-q", "per-engine", "single")[number % 3]
    gpu = Gpu(
        int(rng.integers(1, 5)),
        int(rng.integers(1, 3)),
        queues,
        str(rng.choice(["d2h", "h2d", "chunk"])),
        bool(rng.random() < 0.8),
    )
    count, names = int(rng.integers(1, 9)), ["h2d", "map", "d2h"]
    disk, issue = rng.random() < 0.3, str(rng.choice(["depth", "breadth", "threads", "scheduled"]))
    names = ["read", *names, "write"] if disk else names
    table = pd.DataFrame({name: rng.integers(1, 17, count) / 4 for name in names})
    gpus = int(rng.integers(1, 3))
    rng.integers(1, gpus + 1)  # what was drawn here is gone; the draws behind it stay
    t = run_chunks(table, gpu, issue, gpus=gpus, seed=number)
    fixed, unit = rng.integers(0, 9, 3) / 4, rng.integers(1, 17, 3) / 4
    a = adapt_split(100.0, fixed.tolist(), unit.tolist(), rounds=5, start=[20.0, 30.0, 50.0])
    return f"chunks {queues} {issue}\n{lines(t.ops)}\n{cell(t.makespan)}\n{lines(a.rounds)}"


#: Of twenty runs, how many are of each kind.
KINDS = [queue] * 12 + [slots] + [mapreduce] * 4 + [moldable] * 2 + [chunks]


def run(number: int) -> str:
    """Return the block of a run."""
    rng = np.random.default_rng([4, number])
    return KINDS[number % len(KINDS)](rng, number // len(KINDS) + number)
