"""One page about a job log: findings first, then pictures, tables and what was assumed."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from dlsim import __version__
from dlsim.advice.questions import DEADLINES, NEEDS, Advice, jain
from dlsim.joblog import Log
from dlsim.realtime.model import policy_named
from dlsim.realtime.outcome import MOST_OFFERS
from dlsim.study.pages import pages_of

#: Users and queues that are named on the page; the tables have all.
SHOWN = 12
#: Names of the log's own way and of its rigid baselines.
BASELINES = {"log": "as in the log", "fcfs": "first come first served", "easy": "EASY backfilling"}


class Picture(NamedTuple):
    """A picture with what to notice."""

    name: str
    title: str
    caption: str
    place: Path


def percent(share: float) -> str:
    """Say a share; what is not quite all or nothing never looks like it."""
    digits = 5 if 0 < share < 0.001 or 0.999 < share < 1 else 3
    text = f"{100 * share:.{digits}g} %"
    return "over 99.999 %" if text == "100 %" and share < 1 else text


def duration(seconds: float) -> str:
    """Say how long something takes, in a unit that a person would use."""
    for size, unit in ((86_400, "days"), (3600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds:.3g} s"


def times(factor: float) -> str:
    """Say a factor; what is a little above 1 never looks like no change."""
    return "hardly more than 1" if 1 < factor < 1.005 else f"{factor:.3g}"


def _value(table: pd.DataFrame, row: Any, column: str) -> float:
    return float(table[column][row])


def _of_nodes(a: Advice) -> str:
    """Say how many nodes admit the target."""
    share, needed, there = percent(a.terms.target), a.needed(a.chosen), a.cluster.nodes
    if needed is None:
        most = int(a.nodes.loc[a.nodes["policy"] == a.chosen, "nodes"].max())
        return (
            f"No number of nodes up to {most:,} lets {a.chosen} admit {share} of the jobs: what is "
            "refused does not wait for nodes. Longer deadlines would help, or a faster network."
        )
    others = {name: a.needed(name) for name in a.policies.index if name in set(a.nodes["policy"])}
    least = min((n, name) for name, n in others.items() if n is not None)
    by = "" if least[1] == a.chosen or least[0] == needed else f" ({least[0]:,} under {least[1]})"
    change = f"{100 * abs(needed / there - 1):.0f} % {'more' if needed > there else 'fewer'}"
    says = "as many as there are" if needed == there else f"{change} than the {there:,} there are"
    if needed > 2 * there:
        says = f"{needed / there:.3g} times the {there:,} there are"
    return f"{share} of the jobs could be promised their deadline on {needed:,} nodes{by}: {says}."


def _of_waits(a: Advice) -> str:
    table, jobs = a.policies, a.counted
    work = float((jobs["processors"] * jobs["run_time"]).sum())

    def busy(start: str) -> str:
        span = float((jobs[start] + jobs["run_time"]).max() - jobs["submit"].min())
        much = work / (span * a.log.nodes)
        more = ", more than the machine has" if much > 1 + 1e-9 else ""
        return f"at a utilisation of {percent(much)}{more}"

    log = "The log records no waiting times. "
    if "log" in table.index:
        mean, high = (_value(table, "log", name) for name in ("mean_wait", "wait_95"))
        log = f"In the log a job waited {duration(mean)} on average (95 %: {duration(high)})"
        unknown = int(jobs["log"].isna().sum())
        log += f"; of {unknown:,} jobs it says no wait. " if unknown else f", {busy('log')}. "
    return (
        f"{log}Its jobs as they are, on {a.log.nodes:,} processors, wait "
        f"{duration(_value(table, 'fcfs', 'mean_wait'))} first come first served and "
        f"{duration(_value(table, 'easy', 'mean_wait'))} with EASY backfilling, {busy('easy')}."
    )


def _of_promises(a: Advice) -> str:
    refused, jobs = a.refused, len(a.counted)
    if refused.empty:
        return f"{a.chosen} refuses nobody."
    asked = refused[refused["asked"]]
    ratio = (asked["promise"] / asked["deadline"]).dropna()
    never = len(asked) - len(ratio)
    text = f"Of {jobs:,} jobs {len(refused):,} are refused"
    if not a.told:
        return (
            f"{text}; what they could have been promised is not looked for: under {a.chosen}, where"
            f" others may pass, it is for up to {MOST_OFFERS:,} (choose a policy that serves in"
            " line, such as EDF-OPR-MN, or a window)."
        )
    if a.every > 1:
        text += f"; so many wait that one in {a.every:,} of them is asked, {len(asked):,} in all"
    if len(ratio):
        half, most = (float(ratio.quantile(q)) for q in (0.5, 0.9))
        whom = f"of {len(ratio):,} of them half" if never else "half of them"
        text += (
            f"; {whom} could have been promised a deadline {times(half)} times as long as the "
            f"one asked for, nine in ten {times(most)} times"
        )
    return text + (f"; {never:,} none at all." if never else ".")


def _of_deadlines(a: Advice) -> str:
    rows = a.deadlines[a.deadlines["policy"] == a.chosen].set_index("laxity")["admitted"]
    low, high = rows.index.min(), rows.index.max()
    text = (
        f"Deadlines of {low:g} instead of {a.terms.laxity:g} times would admit "
        f"{percent(rows[low])}, of {high:g} times {percent(rows[high])}"
    )
    steps = rows.diff().dropna()
    if (steps < -0.001).any():
        worst = steps.index[int(np.argmin(steps))]
        text += (
            f"; laxer is not always better: at {worst:g} times fewer are admitted than one step "
            "before"
        )
        if policy_named(a.chosen)[1].nodes == "min":
            text += ", as whoever takes the fewest nodes that do holds them longer"
    return text + "."


def _of_users(a: Advice) -> str:
    users = a.users.drop("", errors="ignore")
    if len(users) < 2:
        return ""
    big = users.head(max(1, len(users) // 2))
    worst = big["admitted"].idxmin()
    away = 1 - _value(users, worst, "admitted")
    most = (
        f"; of the half with most work, user {worst} is refused most: {percent(away)} of "
        f"{int(_value(users, worst, 'jobs')):,} jobs"
    )
    return (
        f"Of {len(users):,} users the shares admitted have a Jain index of "
        f"{jain(users['admitted']):.3f} (1 is equal){most if away else ''}."
    )


def findings(a: Advice) -> list[str]:
    """Say in sentences what came out, each computed from the tables."""
    jobs, what = len(a.counted), DEADLINES[a.terms.deadline][0]
    share, work = (percent(_value(a.policies, a.chosen, c)) for c in ("in_time", "in_time_work"))
    easy = percent(_value(a.policies, "easy", "in_time"))
    where = f" on the log's {a.log.nodes:,} processors" if a.log.nodes != a.cluster.nodes else ""
    return list(filter(None, [
        f"Were every job divisible and due within {a.terms.laxity:g} times {what}, {a.chosen} "
        f"would promise {share} of {jobs:,} jobs ({work} of their work) that deadline, and keep "
        f"every promise. EASY, which promises nothing, ends {easy} of the rigid jobs by then"
        f"{where}.",
        _of_nodes(a), _of_promises(a), _of_deadlines(a), _of_waits(a), _of_users(a),
    ]))  # fmt: skip


def doubts(log: Log) -> list[str]:
    """Say which jobs were left out, and where the file contradicts itself."""
    skipped = ", ".join(f"{reason}: {n:,}" for reason, n in log.skipped.items())
    left = [f"Jobs left out: {skipped}."] if skipped else []
    return left + [f"The log: {note}." for note in log.notes]


def assumptions(a: Advice) -> list[str]:
    """Say what was assumed where the log is silent."""
    raised = int(a.counted["raised"].sum())
    silent = int(a.counted[NEEDS.get(a.terms.deadline, "submit")].isna().sum())
    warm = int((~a.jobs["counted"]).sum())
    return list(filter(None, [
        f"Cluster: {a.cluster.nodes:,} equal nodes"
        + ("" if a.terms.nodes else ", the processors that the log's machine has")
        + f"; the data of one second of work take {a.cluster.cms:g} s to send, one node after "
        "another. A log says nothing of data: --cms changes it.",
        "Work of a job: processors times run time, which any number of nodes may share.",
        f"Deadline of a job: {a.terms.laxity:g} times {DEADLINES[a.terms.deadline][0]}, from its "
        "submission on."
        + (f" {raised:,} jobs need longer even on all nodes, and got the time they need."
           if raised else "")
        + (f" Of {silent:,} jobs the log does not say it: their run time is taken."
           if silent else ""),
        "Estimates of EASY: the times that users requested, where the log has them."
        if a.jobs["estimate"].notna().any() else
        "The log has no requested times: EASY knows the run times.",
        f"{warm:,} jobs of the warm-up run and are not counted." if warm else "",
        "A number of nodes is found by bisection to 0.2 %, on the same jobs: with more nodes now "
        "and then fewer jobs are admitted.",
        *doubts(a.log),
    ]))  # fmt: skip


def draw(a: Advice) -> dict[str, tuple[Any, str, str]]:
    """Draw the pictures: a figure, its title, and what to notice, by name."""
    from matplotlib.figure import Figure  # not at the top: tables need no pictures

    from dlsim.study import style
    from dlsim.study.plot import dotted, log_ticks, policy_lines

    style.use()
    made: dict[str, tuple[Any, str, str]] = {}

    def figure(rows: int = 1, height: float = 3.8) -> Any:
        new = Figure((9, height), layout="constrained")
        return new, new.subplots(rows, 1, sharex=True)

    fig, ax = figure()
    policy_lines(a.deadlines, "laxity", "admitted", ax=ax)
    log_ticks(ax, sorted(a.deadlines["laxity"].unique()))
    ax.set(xlabel=f"deadline, in times {DEADLINES[a.terms.deadline][0]}", ylabel="jobs admitted")
    dotted(ax, a.terms.laxity)
    note = (
        "The dotted line marks the deadlines asked about. A policy that takes the fewest nodes "
        "that do holds them longer where deadlines are laxer: its line may fall."
    )
    made["deadlines"] = fig, "What a stricter or a laxer deadline costs", note

    fig, ax = figure()
    policy_lines(a.nodes, "nodes", "admitted", ax=ax)
    ax.set(xlabel="nodes", ylabel="jobs admitted")
    least, most = np.log2(a.nodes["nodes"].agg(["min", "max"])).round()
    log_ticks(ax, [2.0**k for k in range(int(least), int(most) + 1)], 2)
    ax.axhline(a.terms.target, color="#777777", linewidth=1, zorder=1)
    dotted(ax, a.cluster.nodes)
    note = f"Every point is the whole log simulated; {a.cluster.nodes:,} nodes are dotted."
    made["nodes"] = fig, f"How many nodes for {percent(a.terms.target)} of the jobs", note

    days = a.days
    unit = duration(float(np.diff(days["begins"], append=days["begins"].iloc[0] + 3600)[0]))
    fig, axes = figure(3, 7)
    at: Any = days["begins"].to_numpy() / 86_400
    if a.log.epoch is not None:
        begins = pd.to_timedelta(days["begins"].to_numpy(), unit="s")
        at = (a.log.epoch + begins).tz_localize(None)
    looks: dict[str, Any] = {"drawstyle": "steps-post", "linewidth": 1.4}
    axes[0].plot(at, days["load"], color="#000000", **looks)
    axes[0].set(ylabel="load", title=f"work submitted over what {a.cluster.nodes:,} nodes can do")
    for name, label, color in (
        ("waiting_log", BASELINES["log"], "#777777"),
        ("waiting_easy", BASELINES["easy"], "#E69F00"), ("waiting", a.chosen, "#0072B2"),
    ):  # fmt: skip
        if days[name].notna().any():
            axes[1].plot(at, days[name], label=label, color=color, **looks)
    axes[1].set(ylabel="jobs", title="jobs that wait")
    axes[1].set_ylim(0, None)
    axes[1].legend()
    axes[2].plot(at, days["refused"], color="#D55E00", **looks)
    axes[2].set(ylabel="share of jobs", title=f"refused by {a.chosen}", ylim=(0, None))
    axes[2].set_xlabel("" if a.log.epoch is not None else "days")
    busiest: Any = days.iloc[int(np.argmax(days["load"]))]
    note = (
        f"Steps of {unit}; who waits is counted when one begins. Most work was submitted in the "
        f"step that begins {busiest['date']}: {busiest['load']:.2f} of what the nodes can do."
    )
    made["time"] = fig, "Load, queue and refusals over time", note

    asked = a.refused[a.refused["asked"]]
    ratio = np.sort((asked["promise"] / asked["deadline"]).dropna())
    if len(ratio):
        fig, ax = figure()
        ax.step(ratio, np.arange(1, len(ratio) + 1) / len(asked), where="post", color="#0072B2")
        ax.set(ylim=(0, 1), ylabel="refused jobs that accept",
               xlabel="deadline that could have been promised, over the one asked for")  # fmt: skip
        tens = range(int(np.floor(np.log10(ratio[0]))), int(np.ceil(np.log10(ratio[-1]))) + 1)
        every = (1, 1.2, 1.5, 2, 3, 5) if len(tens) < 3 else (1, 2, 5) if len(tens) < 5 else (1,)
        ticks = np.outer(10.0 ** np.array(tens), every).ravel()
        log_ticks(ax, ticks[(ticks > 0.7 * ratio[0]) & (ticks < 1.5 * ratio[-1])].tolist())
        note = (
            "The smallest deadline that would have been admitted when the job was refused, all "
            "else equal; below 1 a stricter one would have put it first in line."
        )
        made["promises"] = fig, "What the refused could have been promised", note
    return made


def _cells(table: pd.DataFrame, shares: tuple[str, ...], times: tuple[str, ...]) -> list[list[str]]:
    def cell(name: str, value: Any) -> str:
        if pd.isna(value):
            return ""
        if name in shares:
            return percent(float(value))
        whole = name == "jobs" or value >= 100
        return duration(float(value)) if name in times else f"{value:,.{0 if whole else 1}f}"

    return [
        [str(BASELINES.get(str(key), key)), *(cell(str(k), v) for k, v in row.items())]
        for key, row in table.iterrows()
    ]  # fmt: skip


def tables(a: Advice) -> list[dict[str, Any]]:
    """Return the tables of the page, as texts."""
    columns = {
        "in_time": "jobs in time", "in_time_work": "work in time", "mean_nodes": "nodes a job",
        "mean_wait": "mean wait", "median_wait": "median", "wait_95": "95 %",
        "bounded_slowdown": "bounded slowdown",
    }  # fmt: skip
    made = [{
        "title": "Who keeps how many deadlines", "names": ["", *columns.values()],
        "rows": _cells(a.policies.reindex(columns=list(columns)), ("in_time", "in_time_work"),
                       ("mean_wait", "median_wait", "wait_95")),
        "caption": "The first rows are the jobs as they are, rigid: nobody is refused, and "
        "nobody is promised anything. The policies promise, and refuse whom they cannot serve.",
    }]  # fmt: skip
    for what, table in (("user", a.users), ("queue", a.queues)):
        if len(table) > 1:
            shown = table.head(SHOWN).rename(index=lambda name: name or "unknown")
            work = shown.assign(work=shown["work"] / 3600)
            made.append({
                "title": f"Per {what}",
                "names": [what, "jobs", "admitted", "node hours", "work admitted"],
                "rows": _cells(work, ("admitted", "admitted_work"), ()),
                "caption": f"The {len(shown)} with most work of {len(table):,}; Jain index of the "
                f"shares admitted {jain(table['admitted'].drop('', errors='ignore')):.3f}.",
            })  # fmt: skip
    return made


def headline(log: Log, name: str) -> str:
    """Say in a line what log this is."""
    first, last = map(log.date, log.jobs["submit"].iloc[[0, -1]])
    machine = log.header.get("Computer", "").splitlines()[:1]
    whose = f" on {machine[0]}" if machine else ""
    users = len(set(log.jobs["user"]) - {""})
    of = f" of {users:,} users" if users else ""
    return f"{name}{whose}: {len(log.jobs):,} jobs{of}, {first} to {last}, {log.nodes:,} processors"


def page(a: Advice, name: str, command: str, pictures: Sequence[Picture], folder: Path) -> str:
    """Return the page as HTML; the pictures are read from the folder."""
    return pages_of(folder, __file__).get_template("advice.html").render(
        headline=headline(a.log, name), title="What deadlines could have been promised?",
        findings=findings(a), pictures=pictures, tables=tables(a), assumptions=assumptions(a),
        facts={
            "dlsim": __version__, "Log": name, "Reading": a.terms.reading.changes() or "default",
            "Command": command,
        },
    )  # fmt: skip
