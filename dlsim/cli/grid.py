"""What ``dlsim grid`` does: a job log's requests on a Grid, schedulers side by side."""

import argparse
import re
from dataclasses import replace
from pathlib import Path

import matplotlib
import numpy as np
import pandas as pd

from dlsim.bricks import Environment, Outcome, Scheduler, run_many, workload
from dlsim.bricks.environment import MOST_SLOTS
from dlsim.bricks.traces import read_traces
from dlsim.cli.words import folder_of, left_out, names_of, png_of, shown, write_tables
from dlsim.errors import InputError
from dlsim.files import placed, read_csv
from dlsim.given import nearest, whole
from dlsim.owned import Owned
from dlsim.progress import step

#: Seconds of the units of a length of time.
UNITS = {"s": 1, "min": 60, "h": 3600, "d": 86_400, "w": 604_800, "day": 86_400, "week": 604_800}
#: Schedulers that are compared where none are named.
USUAL = "greedy,deadline-0.7,deadline-0.7+L,deadline-0.7+L+F"
#: Parts of the window whose failure rates the picture shows.
PARTS = 24
#: How an order of queues, and what becomes of a failed server's jobs, is said.
QUEUES = {"fcfs": "first come, first served", "edf": "the earliest deadline first"}
FATES = {"restart": "begins again", "lose": "is lost", "resubmit": "is sent elsewhere"}


def seconds_of(option: str, text: str) -> float:
    """Read a length of time such as 36h; a number alone is seconds."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)? ?([a-z]*)", text.strip().lower())
    number, unit = found.groups() if found else (None, "?")
    unit = unit.removesuffix("s") or unit  # days
    if not found or (unit or "s") not in UNITS or not (number or unit):
        raise InputError(f"{option} takes a length such as 90min, 12d or week; got {text!r}")
    return float(number or 1) * UNITS[unit or "s"]


def scheduler_of(name: str) -> Scheduler:
    """Make a scheduler of a name such as deadline-0.7+L+F."""
    found = re.fullmatch(r"(greedy|deadline)(?:-(\d*\.?\d+))?((?:\+L|\+F\d*)*)", name)
    if not found or (found[1] == "greedy" and found[2]):
        raise InputError(
            "a scheduler is greedy or deadline, or deadline-0.7 (its Opt), and behind that +L for "
            f"Load Correction, +F or +F2 for one or two fallbacks; got {name!r}"
            + nearest(name, USUAL.split(","))
        )
    more = re.search(r"\+F(\d*)", found[3])
    return Scheduler(
        found[1], float(found[2] or 1), load_correction="+L" in found[3],
        max_fallbacks=int(more[1] or 1) if more else 0,
    )  # fmt: skip


def window_of(text: str | None) -> tuple[float, float] | None:
    """Read a window such as 7d, the first week, or 7d:14d, the second."""
    if text is None:
        return None
    begin, sign, end = text.rpartition(":")
    return seconds_of("--window", begin) if sign else 0.0, seconds_of("--window", end)


def service_of(args: argparse.Namespace) -> tuple[int, pd.DataFrame | None]:
    """Read how many slots servers have and when they fail, before a long log is read."""
    slots = whole("--slots", args.slots, high=MOST_SLOTS)
    if args.on_failure and not args.failures:
        rule = "--on-failure says what becomes of the jobs of servers that fail"
        raise InputError(f"{rule}; got no --failures FILE.csv: give one, or leave it out")
    rules = {"server": "whole", "start": "nonnegative", "end": "nonnegative"}
    return slots, read_csv(args.failures, rules, numbered=True) if args.failures else None


def assumed(requests: pd.DataFrame, env: Environment, args: argparse.Namespace) -> list[str]:
    """Say in words what was made of the log, and what no log knows."""
    facts, last = requests.attrs, float(env.requests["time"].max())
    rule, speed = facts["reading"], env.servers["performance"]
    whole = f" of {len(requests):,} in the log" if len(requests) > len(env.requests) else ""
    many = f"{len(env.requests):,} requests{whole}"
    lines = [f"{many}, arriving over {last:,.0f} seconds", *left_out(facts)]
    spent = {"run_time": "run time", "processor_time": "processor time"}[rule["work"]]
    usual = "requested time" if args.deadline == "requested" else spent
    low, high = rule["deadline_factor"]
    lines += [
        f"assumed: a request keeps one server of {rule['performance']:g} Mops/s busy for the job's "
        f"{spent} (--work), and sends and receives {rule['send'][0]:g} to {rule['send'][1]:g} Mbit "
        "each (drawn: no log has them)",
        f"assumed: a deadline is {low:g} to {high:g} times (drawn) the job's {usual} and both "
        f"transfers at {rule['throughput']:g} Mbit/s (--deadline, --factor)",
        f"assumed: {len(env.servers)} servers of {speed.min():.0f} to {speed.max():.0f} Mops/s in "
        f"{env.topology.domains} domains, {100 * args.server_load:g} % taken by other users "
        f"(drawn, --seed); users are dealt to {len(env.clients)} clients",
    ]  # fmt: skip
    if args.links:
        fate = "then begin again" if args.beyond == "wrap" else "and cover every deadline"
        lines.append(f"links: traces of {Path(args.links).name}, {env.step:g} s a step, {fate}")
    else:
        lines.append(
            f"assumed: links as in Table 1 of the paper, traces drawn in steps of {env.step:g} s, "
            f"{env.known_until:,.0f} s long (--links: your own)"
        )
    if args.slots > 1 or args.queue != "fcfs":
        lines.append(f"servers: {args.slots} jobs at once each, {QUEUES[args.queue]}")
    if env.failures is not None:
        lines.append(
            f"failures: {len(env.failures):,} of {env.failures['server'].nunique()} servers "
            f"({Path(args.failures).name}); what they had {FATES[env.on_failure]}"
        )
    offered = env.requests["work"].sum() / (speed * env.slots).sum() / max(last, 1.0)
    return [*lines, f"offered load {offered:.3f}: work of the requests per work of all servers"]


def row_of(name: str, o: Outcome) -> dict[str, object]:
    """Sum an outcome up."""
    done, env = o.column("completion"), o.environment
    lost = {"lost": (o.fate == "lost").mean()} if env.failures is not None else {}
    return {
        "scheduler": name, "failure rate": o.failure_rate, "cost": o.cost,
        "mean lateness": o.lateness, "fallbacks": o.column("fallbacks").mean(),
        "beyond traces": float((np.isfinite(done) & (done > env.known_until)).mean()), **lost,
    }  # fmt: skip


def draw(outcomes: dict[str, Outcome], home: Owned) -> None:
    """Write failure rate against cost, and over the window, as grid.png."""
    import matplotlib.pyplot as plt

    from dlsim.study import style

    matplotlib.use("agg")
    style.use()
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
    time = next(iter(outcomes.values())).environment.requests["time"].to_numpy() / 3600
    edges = np.linspace(0, max(time.max(), 1e-9), PARTS + 1)
    count, _ = np.histogram(time, edges)
    middle = (edges[1:] + edges[:-1])[count > 0] / 2
    for name, o in outcomes.items():
        left.plot(o.cost, 100 * o.failure_rate, "o", label=name)
        missed, _ = np.histogram(time[o.column("missed")], edges)
        share = 100 * missed[count > 0] / count[count > 0]
        right.plot(middle, share, ".-", label=name)
    left.set(xlabel="mean cost (Mops/s of the server)", ylabel="requests that failed (%)")
    right.set(xlabel="hours of the window", ylabel="requests that failed (%)")
    left.set_ylim(bottom=0)
    left.legend()
    home.write("grid.png", png_of(figure))


def main(args: argparse.Namespace) -> int:
    """Replay the log, print what was assumed and the summary, keep the tables if asked to."""
    home, window = folder_of(args, "grid"), window_of(args.window)
    slots, down = service_of(args)
    names = names_of(args.schedulers, None, USUAL)
    schedulers = {name: scheduler_of(name) for name in names}
    low, sign, high = args.factor.partition(":")
    try:
        factor = float(low), float(high if sign else low)
    except ValueError:
        rule = "--factor takes a number such as 2, or a range such as 1:3"
        raise InputError(f"{rule}; got {args.factor!r}") from None
    step("reading the log")
    requests = workload.from_log(
        args.log, 2**31, deadline=args.deadline, deadline_factor=factor, work=args.work,
        seed=args.seed,
    )  # fmt: skip
    options = {} if args.links else {"domains": args.domains, "trace_step": args.trace_step}
    links = read_traces(args.links, args.trace_step, resample=args.resample) if args.links else None
    step("drawing the Grid")
    env = Environment.replay(
        requests, links, window, args.beyond, args.seed, server_load=args.server_load, **options
    )
    servers = env.servers.assign(slots=slots, queue=args.queue)
    env = placed(
        args.failures or "--slots", replace, env, servers=servers, failures=down,
        on_failure=args.on_failure or "restart",
    )  # fmt: skip
    print("\n".join(assumed(requests, env, args)))
    found = run_many(env, schedulers.values())
    outcomes = dict(zip(schedulers, found, strict=True))
    for name, o in outcomes.items():
        step(f"checking {name}")
        o.check()
    table = pd.DataFrame([row_of(*item) for item in outcomes.items()]).set_index("scheduler")
    texts = table.rename(columns={"failure rate": "requests failed"})
    shares = ("requests failed", "beyond traces", "lost")
    print(f"\n{shown(texts, shares, na_rep='-')}")
    print("\ncost: mean Mops/s of the server that ran a request; lateness in seconds")
    print("every outcome passed its check: transfers, queues, deadlines, choices")
    if home:
        step("drawing and writing the tables")
        draw(outcomes, home)
        words = {k: v for k, v in vars(args).items() if k not in ("verb", "extra", "out", "log")}
        record = {"log": Path(args.log).name, **words, "requests": requests.attrs["reading"],
                  "skipped": requests.attrs["skipped"]}  # fmt: skip
        record["links"] = Path(args.links).name if args.links else None
        frames = {"summary": table, "servers": env.servers}
        for name, o in outcomes.items():
            frames[f"{name}-requests"] = env.requests.join(o.requests)
        write_tables(home, record, frames)
    return 0
