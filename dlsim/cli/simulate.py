"""What ``dlsim simulate`` does: tasks from anywhere, policies side by side."""

import argparse
import sys
import time
from pathlib import Path
from typing import Any

import pandas as pd

from dlsim.cli.words import reading_of
from dlsim.errors import InputError
from dlsim.kernel import is_compiled
from dlsim.realtime import Cluster, Reading, simulate, workload
from dlsim.realtime.engine import Schedule

#: Chunks drawn in the Gantt picture: more cannot be told apart.
DRAWN = 400
#: Rows of the picture that are labelled and get their full height.
MOST_ROWS = 40


def cluster_of(args: argparse.Namespace) -> Cluster:
    """Build the cluster, with the paper's defaults or paper I's.

    Parameters
    ----------
    args : Namespace
        paper, nodes, cms, cps, st, sc.

    Returns
    -------
    Cluster
        N = 10, Cms = Cps = 10 for --paper mcdf; else N = 16, Cms = 1, Cps = 100.
    """
    default = (10, 10.0, 10.0) if args.paper == "mcdf" else (16, 1.0, 100.0)
    given = (args.nodes, args.cms, args.cps)
    values = [d if g is None else g for g, d in zip(given, default, strict=True)]
    return Cluster(int(values[0]), float(values[1]), float(values[2]), args.st, args.sc)


def tasks_of(args: argparse.Namespace, cluster: Cluster, law: dict[str, Any]) -> pd.DataFrame:
    """Read or draw the tasks.

    Parameters
    ----------
    args : Namespace
        swf, csv or paper, and their options.
    cluster : Cluster
        Sets minimum execution times.
    law : dict of str to str
        Switches of a drawn workload.

    Returns
    -------
    DataFrame
        arrival, sigma, deadline, with attrs.

    Raises
    ------
    InputError
        For a broken file, or switches of a workload that is not drawn.
    """
    if law and not args.paper:
        raise InputError(f"reading {', '.join(law)} belongs to a drawn workload: use --paper mcdf")
    if args.csv:
        return workload.from_csv(args.csv)
    if args.paper:
        return workload.mcdf(cluster, args.load, args.horizon, args.seed, **law)
    return workload.from_swf(
        args.swf, cluster, work_per_unit=args.work_per_unit, dc_ratio=args.dc_ratio,
        time_scale=args.time_scale, max_jobs=args.max_jobs, seed=args.seed,
    )  # fmt: skip


def describe(tasks: pd.DataFrame, cluster: Cluster) -> str:
    """Say what the tasks are, what was skipped and how heavy the load is.

    Parameters
    ----------
    tasks : DataFrame
        As from `dlsim.realtime.workload`.
    cluster : Cluster
        Where they are to run.

    Returns
    -------
    str
        A few lines.
    """
    facts, span = tasks.attrs, float(tasks["arrival"].iloc[-1]) if len(tasks) else 0.0
    horizon = facts.get("horizon") or span
    lines = [
        f"{len(tasks):,} tasks from {facts['source']}, arriving over {horizon:,.0f} time units"
    ]
    if facts.get("skipped"):
        why = ", ".join(f"{reason} ({n:,})" for reason, n in facts["skipped"].items())
        lines.append(f"skipped {sum(facts['skipped'].values()):,} jobs: {why}")
    lines += [f"note: {note}" for note in facts.get("notes", ())]
    if horizon > 0 and len(tasks):
        load = workload.realised_load(tasks, cluster, horizon)
        nominal = f", nominal {facts['load']:g}" if facts.get("load") is not None else ""
        lines.append(f"realised load {load:.3f}{nominal} on {cluster}")
    return "\n".join(lines)


def row_of(s: Schedule, seconds: float) -> dict[str, object]:
    """Sum a schedule up.

    Parameters
    ----------
    s : Schedule
        One policy's schedule.
    seconds : float
        Wall time of the simulation.

    Returns
    -------
    dict
        Refused and missed shares, mean nodes and waiting time, utilisation, speed.
    """
    ran = s.tasks[s.tasks["start"].notna()]
    span = (ran["completion"].max() - s.tasks["arrival"].min()) if len(ran) else float("nan")
    return {
        "policy": s.name,
        "refused": s.reject_ratio,
        "refused work": s.work_reject_ratio,
        "missed": s.miss_ratio,
        "mean nodes": ran["nodes"].mean(),
        "mean wait": (ran["start"] - ran["arrival"]).mean(),
        "busy": s.total_cost / (span * s.cluster.nodes),
        "physical": s.is_physical,
        "seconds": seconds,
    }


def draw(schedules: list[Schedule], folder: Path) -> None:
    """Write a Gantt picture of the first tasks under every policy.

    Parameters
    ----------
    schedules : list of Schedule
        On the same tasks.
    folder : Path
        Where gantt.png goes.
    """
    import matplotlib

    matplotlib.use("agg")
    import io

    import matplotlib.pyplot as plt

    from dlsim.files import write_bytes
    from dlsim.study import style
    from dlsim.study.gantt import plot_gantt, task_colors

    style.use()
    drawn = [s for s in schedules if len(s.chunks)]
    if not drawn:
        return
    parts = [s.chunks.head(DRAWN) for s in drawn]
    nodes = [sorted(part["node"].unique()) for part in parts]
    colors = task_colors([task for part in parts for task in part["task"]])
    heights = [1.2 + 0.22 * min(len(some), MOST_ROWS) for some in nodes]
    _, axes = plt.subplots(
        len(parts), 1, figsize=(11, sum(heights)), squeeze=False, sharex=True,
        layout="constrained", gridspec_kw={"height_ratios": heights},
    )  # fmt: skip
    for ax, part, some, s in zip(axes[:, 0], parts, nodes, drawn, strict=True):
        plot_gantt(part, some, colors=colors, ax=ax)
        ax.set(title=s.name, xlim=(part["send_start"].min(), None))
        every = -(-len(some) // MOST_ROWS)
        ax.set_yticks(ax.get_yticks()[::every], ax.get_yticklabels()[::every])
    picture = io.BytesIO()
    plt.savefig(picture, dpi=120, metadata={"Software": None})
    plt.close()
    write_bytes(folder / "gantt.png", picture.getvalue())


def main(args: argparse.Namespace) -> int:
    """Simulate, print the summary, and keep the tables if asked to.

    Parameters
    ----------
    args : Namespace
        Options of ``dlsim simulate``.

    Returns
    -------
    int
        0.
    """
    from dlsim.files import write_csv

    reading, law = workload.split_reading(reading_of(args.reading))
    cluster = cluster_of(args)
    names = [name.strip() for name in (args.compare or args.policy or "MCDF").split(",")]
    if args.compare and args.policy and args.policy not in names:
        names.insert(0, args.policy)
    tasks = tasks_of(args, cluster, law)
    print(describe(tasks, cluster))
    if not is_compiled():
        print("compiling the engine, once per version (some seconds) ...", file=sys.stderr)
    for name in names:  # also refuses an unknown policy before anything is simulated
        simulate(tasks.head(1), cluster, name)
    schedules, rows = [], []
    for name in names:
        begun = time.perf_counter()
        s = simulate(tasks, cluster, name, Reading.of(reading), args.negotiate)
        rows.append(row_of(s, time.perf_counter() - begun))
        s.check()
        schedules.append(s)
    table = pd.DataFrame(rows).set_index("policy")
    print(f"\n{table.to_string(float_format=lambda x: f'{x:.4g}')}")
    print("\nevery schedule passed its check (deadlines, nodes, link, shares)")
    if args.out:
        folder = Path(args.out)
        write_csv(folder / "summary.csv", table.drop(columns="seconds"))
        for s in schedules:
            write_csv(folder / f"{s.name}-tasks.csv", s.tasks)
            if args.chunks:
                write_csv(folder / f"{s.name}-chunks.csv", s.chunks)
        draw(schedules, folder)
        print(f"summary.csv, tables of tasks and gantt.png are in {folder}")
    return 0
