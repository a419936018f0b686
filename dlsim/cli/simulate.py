"""What ``dlsim simulate`` does: tasks from anywhere, policies side by side."""

import argparse
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from dlsim.cli.words import folder_of, left_out, names_of, png_of, reading_of, shown, write_tables
from dlsim.errors import InputError
from dlsim.owned import Owned
from dlsim.progress import step
from dlsim.realtime import Cluster, Reading, simulate, workload
from dlsim.realtime.evidence import WINDOW
from dlsim.realtime.model import policy_named
from dlsim.realtime.outcome import Schedule
from dlsim.swf import read_swf, stated_processors

#: Chunks drawn in the Gantt picture: more cannot be told apart.
DRAWN = 400
#: Bytes of a row of a table of chunks, at least.
ROW = 20
#: Rows of the picture that are labelled and get their full height.
MOST_ROWS = 40
#: Options that not every source of tasks has.
OPTIONS: dict[str, tuple[str, ...]] = {
    "--swf": ("work_per_unit", "dc_ratio", "time_scale", "max_jobs"),
    "--csv": (),
    "--paper mcdf": ("load", "horizon"),
    "--paper inserted-idle-time": ("load", "horizon", "dc_ratio"),
}
#: Functions of `workload` whose switches a paper's tasks understand.
GENERATORS = {"mcdf": ("mcdf",), "inserted-idle-time": ("dcratio", "user_split")}
#: Columns of the summary that are shares, in the words of who reads it.
PRINTED = {
    "refused": "tasks refused", "refused work": "work refused", "missed": "tasks late",
    "agreed": "longer deadline agreed", "busy": "nodes busy",
}  # fmt: skip
#: Policy where none is named; MCDF for tasks of one's own.
DEFAULTS = {"mcdf": "MCDF", "inserted-idle-time": "EDF-DLT"}


def tasks_of(
    args: argparse.Namespace, cluster: Cluster, laws: Sequence[dict[str, Any]]
) -> pd.DataFrame:
    """Read or draw the tasks."""
    source = "--swf" if args.swf else "--csv" if args.csv else f"--paper {args.paper}"
    names = {name for row in OPTIONS.values() for name in row}
    given = {k: v for k in sorted(names) if (v := getattr(args, k)) is not None}
    for name in given:
        owners = [owner for owner, row in OPTIONS.items() if name in row]
        if source not in owners:
            option, owner = name.replace("_", "-"), " or ".join(owners)
            raise InputError(f"--{option} belongs to {owner}; the tasks come from {source}")
    drawn = {name: None for law in laws for name in law}
    if drawn and not args.paper:
        raise InputError(f"reading {', '.join(drawn)} belongs to a drawn workload: use --paper")
    if args.csv:
        return workload.from_csv(args.csv)
    if args.swf:
        return workload.from_swf(args.swf, cluster, seed=args.seed, **given)
    load = given.pop("load", 0.5)
    if args.paper == "mcdf":
        return workload.mcdf(cluster, load, seed=args.seed, **given, **laws[0])
    tasks = workload.dcratio(cluster, load, seed=args.seed, **given, **laws[0])
    return workload.user_split(tasks, cluster, args.seed, **laws[1])


def describe(tasks: pd.DataFrame, cluster: Cluster) -> str:
    """Say what the tasks are, what was skipped and how heavy the load is."""
    facts, span = tasks.attrs, float(tasks["arrival"].iloc[-1]) if len(tasks) else 0.0
    horizon = facts.get("horizon") or span
    many, source = f"{len(tasks):,} tasks", facts["source"]
    unit = "seconds" if "work_per_unit" in facts["reading"] else "time units"
    lines = [f"{many} from {source}, arriving over {horizon:,.0f} {unit}", *left_out(facts)]
    if horizon > 0 and len(tasks):
        load = workload.realised_load(tasks, cluster, horizon)
        nominal = f", nominal {facts['load']:g}" if facts.get("load") is not None else ""
        lines.append(f"realised load {load:.3f}{nominal} on {cluster}: what all nodes would need")
    return "\n".join(lines + assumed(facts["reading"], cluster))


def assumed(rule: Mapping[str, Any], cluster: Cluster) -> list[str]:
    """Say in words what was made of a log's jobs, and where their deadlines come from."""
    if "work_per_unit" not in rule:
        return []
    return [
        f"assumed: a unit of data is {rule['work_per_unit']:g} processor seconds of a job; it takes"
        f" {cluster.cms:g} s to send and {cluster.cps:g} s to compute on each of"
        f" {cluster.nodes:,} nodes",
        f"assumed: a deadline is {0.5 * rule['dc_ratio']:g} to {1.5 * rule['dc_ratio']:g} times the"
        " least time that the task needs on all nodes together, and never below that (--dc-ratio)",
    ]


def row_of(s: Schedule) -> dict[str, object]:
    """Sum a schedule up."""
    ran = s.tasks[s.tasks["start"].notna()]
    span = (ran["completion"].max() - s.tasks["arrival"].min()) if len(ran) else float("nan")
    return {
        "policy": s.name, "refused": s.reject_ratio, "refused work": s.work_reject_ratio,
        "missed": s.miss_ratio, "agreed": float((s.stretch != 1).mean()),
        "mean nodes": ran["nodes"].mean(), "mean wait": (ran["start"] - ran["arrival"]).mean(),
        "busy": _node_time(s) / (span * s.cluster.nodes),
    }  # fmt: skip


def with_offers(s: Schedule) -> pd.DataFrame:
    """Add what each refused task could have been promised, where it is found in time."""
    away = ~s.tasks["admitted"]
    slow = s.policy.is_own or s.offers_take_long
    if s.parts is not None or not s.policy.admission or slow or not away.any():
        return s.tasks
    return s.tasks.assign(offer=s.offers()["deadline"].reindex(s.tasks.index))


def _node_time(s: Schedule) -> float:
    """Node time of all tasks: from their start or, released one by one, each from its send."""
    if s.policy.partition == "opr":
        return s.total_cost
    total = 0.0
    for chunks in s.windows(WINDOW):
        visits = chunks.groupby(["task", "node"], sort=False)
        total += float((visits["compute_end"].max() - visits["send_start"].min()).sum())
    return total


def _least_chunks(tasks: pd.DataFrame, cluster: Cluster, name: str, negotiate: float) -> float:
    """Return the fewest chunks of all tasks: on so few nodes each computes in all its time."""
    nodes = policy_named(name)[1].nodes
    if nodes == "all" and cluster.st == 0:
        return len(tasks) * cluster.nodes
    if nodes == "user" and "user_nodes" in tasks:
        return float(tasks["user_nodes"].sum())
    work, given = (tasks[name].to_numpy(dtype=float) for name in ("sigma", "deadline"))
    least = np.maximum(np.ceil(work * cluster.cps / (given * max(1.0, negotiate))), 1)
    return float(least[least <= cluster.nodes].sum())


def _need_disk(home: Owned | None, rows: float, whose: str) -> None:
    """Refuse to write more chunks than the disk has room for."""
    if home is None:
        return
    place = next(p for p in (home.folder, *home.folder.parents) if p.exists())
    if rows * ROW > (free := shutil.disk_usage(place).free):
        raise InputError(
            f"--chunks would write {rows:,.0f} rows {whose}, {rows * ROW / 2**30:.3g} GiB or more,"
            f" and {place} has room for {free / 2**30:.3g} GiB; leave it out, take fewer tasks, or"
            " read Schedule.windows from Python"
        )


def draw(schedules: list[Schedule], home: Owned) -> None:
    """Write a Gantt picture of the first tasks under every policy, if any ran, as gantt.png."""
    import matplotlib
    import matplotlib.pyplot as plt

    from dlsim.study import style
    from dlsim.study.gantt import plot_gantt, task_colors

    matplotlib.use("agg")
    style.use()
    drawn = [s for s in schedules if s.tasks["start"].notna().any()]
    if not drawn:
        return
    parts = [next(s.windows(DRAWN)).head(DRAWN) for s in drawn]
    few = drawn[0].cluster.nodes <= MOST_ROWS
    nodes = [
        list(range(s.cluster.nodes)) if few else sorted(part["node"].unique())
        for s, part in zip(drawn, parts, strict=True)
    ]
    until = max(part["compute_end"].max() for part in parts)
    colors = task_colors([task for part in parts for task in part["task"]])
    heights = [1.2 + 0.22 * min(len(some), MOST_ROWS) for some in nodes]
    figure, axes = plt.subplots(
        len(parts), 1, figsize=(11, sum(heights)), squeeze=False, sharex=True,
        layout="constrained", gridspec_kw={"height_ratios": heights},
    )  # fmt: skip
    for ax, part, some, s in zip(axes[:, 0], parts, nodes, drawn, strict=True):
        plot_gantt(part, some, until=until, colors=colors, ax=ax)
        ax.set_title(s.name)
        every = -(-len(some) // MOST_ROWS)
        ax.set_yticks(ax.get_yticks()[::every], ax.get_yticklabels()[::every])
    axes[0, 0].set_xlim(left=min(part["send_start"].min() for part in parts))
    home.write("gantt.png", png_of(figure))


def main(args: argparse.Namespace) -> int:
    """Simulate, print the summary, and keep the tables if asked to."""
    generators = GENERATORS.get(args.paper, tuple(workload.SWITCHES))
    switches, *laws = workload.split_reading(reading_of(args.reading), *generators)
    usual: tuple[Any, ...] = (10, 10.0, 10.0) if args.paper == "mcdf" else (16, 1.0, 100.0)
    given = zip((args.nodes, args.cms, args.cps), usual, strict=True)
    nodes, cms, cps = (default if value is None else value for value, default in given)
    if args.swf and args.nodes is None:
        nodes = stated_processors(read_swf(args.swf)[1]) or nodes
    cluster, reading = Cluster(nodes, cms, cps, args.st, args.sc), Reading.of(switches)
    home = folder_of(args, "simulate")
    names = names_of(args.compare, args.policy, DEFAULTS.get(args.paper, "MCDF"))
    step("loading the engine")
    nothing = pd.DataFrame(1.0, [0], ["arrival", "sigma", "deadline", "user_nodes"])
    for name in names:  # compiles, and refuses a policy or a factor before anything is read
        simulate(nothing, cluster, name, reading, args.negotiate)
    step("reading or drawing the tasks")
    tasks = tasks_of(args, cluster, laws)
    print(describe(tasks, cluster))
    chunks_home = home if args.chunks else None
    least = sum(_least_chunks(tasks, cluster, name, args.negotiate) for name in names)
    _need_disk(chunks_home, least, "at least if all tasks are admitted")
    schedules = []
    for name in names:
        step(f"{len(tasks):,} tasks under {name}")
        s = simulate(tasks, cluster, name, reading, args.negotiate)
        chunks = int((s.tasks["nodes"] * s.runs["rounds"]).sum()) if s.runs is not None else 0
        _need_disk(chunks_home, chunks, f"for {s.name}")
        if chunks > WINDOW:
            print(f"{s.name}: checking {chunks:,} chunks, some at a time ...", file=sys.stderr)
        step(f"checking {s.name}")
        s.check()
        schedules.append(s)
    table = pd.DataFrame([row_of(s) for s in schedules]).set_index("policy")
    texts = table.drop(columns=["agreed"] * (not args.negotiate)).rename(columns=PRINTED)
    print(f"\n{shown(texts, PRINTED.values())}")
    formula = [s.name for s in schedules if not s.is_physical]
    print("\nevery schedule passed its check: deadlines, nodes, link, shares")
    if formula:
        negative = "follow a formula where some shares are negative (reading an_nodes=all)"
        remedy = "--reading an_nodes=best uses fewer nodes instead"
        print(f"but {', '.join(formula)} {negative}; {remedy}")
    if home:
        record = {
            "tasks": {**tasks.attrs, "source": Path(str(tasks.attrs["source"])).name},
            "cluster": asdict(cluster), "reading": asdict(reading), "negotiate": args.negotiate,
            "seed": args.seed,
        }  # fmt: skip
        tables: dict[str, Any] = {"summary": table}
        for s in schedules:
            step(f"what {s.name} could have promised")
            tables[f"{s.name}-tasks"] = with_offers(s)
            if args.chunks:
                tables[f"{s.name}-chunks"] = s.windows(WINDOW)
        step("drawing and writing the tables")
        draw(schedules, home)
        write_tables(home, record, tables)
    return 0
