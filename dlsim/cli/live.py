"""What ``dlsim live`` does: measure kernels here, schedule them, explain each decision.

On a cluster: measure it, promise a load, replay a stream of loads.
"""

import argparse
import itertools
import math
import os
import random
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pandas as pd

from dlsim import realtime
from dlsim.cli.words import file_of, names_of, reading_of, shown
from dlsim.cpugpu import Machine, Reading, Store, live, simulate, workload
from dlsim.cpugpu.live.devices import shared_cores
from dlsim.cpugpu.live.log import LogFile
from dlsim.cpugpu.live.session import identity, kinds_of, sized
from dlsim.cpugpu.model import MOST_COUNT, policy_named
from dlsim.errors import InputError
from dlsim.files import locked, read_csv, shared_file, write_csv
from dlsim.given import duration, whole
from dlsim.live import Head, Job, loads
from dlsim.live.journal import function_named


def _devices(args: argparse.Namespace) -> tuple[live.Slot, ...]:
    devices = live.slots(args.gpu, args.cpu)
    for slot in devices:
        print(f"{slot.name}: {slot.note}")
    return devices


def _kernels(args: argparse.Namespace) -> list[live.Kernel]:
    names = args.kernels.split(",") if args.kernels else live.KERNELS
    return [live.kernel_named(name) for name in names]


def _factors(args: argparse.Namespace) -> list[float]:
    with suppress(ValueError):
        factors = [float(text) for text in args.factor.split(",")]
        if all(0 < factor <= 100 for factor in factors):
            return factors
    raise InputError(f"--factor must be above 0 and at most 100, or several such numbers with "
                     f"commas between, got {args.factor}")  # fmt: skip


def _free(path: Path, same: str) -> None:
    """Keep a log beside whose jobs are all done; say that one of the same run goes on."""
    with locked(path.parent):
        log = live.Log.read(path) if path.exists() else None
        if log is None or log.left:
            if log and log.head["identity"] == same:
                some = f"{len(log.left)} of {len(log.fates)} jobs are left"
                print(f"goes on where it stopped: {some}")
            return
        beside = next(
            one for k in itertools.count(1)
            if not os.path.lexists(one := path.with_stem(f"{path.stem}-{k}"))
        )  # fmt: skip
        with LogFile(path) as file, file.alone():
            path.rename(beside)
        Path(f"{path}-output").exists() and Path(f"{path}-output").rename(f"{beside}-output")
        print(f"the log that was there is kept as {beside}")


def _blame(table: pd.DataFrame, what: str) -> bool:
    """Say which runs failed or gave another result, and whether any did."""
    bad = table[(table["error"] != "") | ~table["agrees"]]
    for row in bad.to_dict("records"):
        print(f"{what.format_map(row)}: {row['error'] or 'another result'}", file=sys.stderr)
    return not bad.empty


def _show(table: pd.DataFrame, columns: Sequence[str]) -> None:
    print(shown(table[list(columns)], index=False))


def measure(args: argparse.Namespace) -> int:
    """Measure every kernel on every device and keep the times."""
    kernels, factors = _kernels(args), _factors(args)
    csv = file_of("--csv", args.csv) if args.csv else None
    devices = _devices(args)
    with Store(args.history) as store, live.CREWS[args.crew]([s.name for s in devices]) as crew:
        table = live.calibrate(kernels, crew, devices, args.repeats, store, factors)
        if csv:
            apps = workload.measured(store.history(crew.host, kinds_of(devices)))
            with suppress(OSError):
                csv.parent.mkdir(parents=True, exist_ok=True)
            with locked(csv.parent):
                workload.to_csv(apps, file_of("--csv", args.csv))
    _show(table, ["app", "device", "backend", "seconds", "std", "transfer", "agrees"])
    return int(_blame(table, "{app} on {device}"))


def _jobs(args: argparse.Namespace) -> list[live.LiveJob]:
    """Return the jobs of a file, or drawn ones."""
    try:
        drawn = float(args.jobs)
    except ValueError:
        sys.path.insert(0, os.getcwd())  # where module:function is looked for
        return live.jobs_from_csv(args.jobs, args.limit)
    rule = f"at least 1, at most {MOST_COUNT} and whole, or the name of a file of jobs"
    count = whole("--jobs", drawn, 1, MOST_COUNT, rule)
    kernels, factors = _kernels(args), _factors(args)
    whole("--seed", args.seed, 0)
    rng = random.Random(args.seed)
    chosen = [rng.choice(kernels) for _ in range(count)]
    return [sized(kernel, factors[0] if len(factors) == 1 else rng.choice(factors))
            for kernel in chosen]  # fmt: skip


def run(args: argparse.Namespace) -> int:
    """Run jobs, each where the policy sends it; keep times, decisions and output."""
    reading = Reading.of(reading_of(args.reading))
    name, policy = policy_named(args.policy)
    path = file_of("--log", args.log, live.Log.read)
    jobs = _jobs(args)
    needs_process = any(job.kernel.has_function for job in jobs)
    crew = args.crew or ("processes" if needs_process else "threads")
    devices = _devices(args)
    try:
        with Store(args.history) as store, live.CREWS[crew]([s.name for s in devices]) as workers:
            _free(path, identity(jobs, devices, name, policy, reading))
            done = live.run_live(jobs, workers, devices, policy, reading, store=store, log=path)
    except KeyboardInterrupt as stop:
        so_far = ""
        if path.exists() and (log := live.Log.read(path)).left:
            so_far = (f"{log.decisions} decisions so far in {path}, {len(log.left)} jobs left: the "
                      "same command goes on with them")  # fmt: skip
        raise KeyboardInterrupt("; ".join(filter(None, [str(stop), so_far]))) from stop
    table = done.jobs.reset_index()
    _show(table, ["job", "app", "device", "start", "end", "seconds", "rule", "predicted"])
    wrong = done.log.audit()
    print(
        f"\n{len(jobs)} jobs in {done.makespan:.3f} s under {args.policy}; {done.log.decisions} "
        f"decisions in {path}, {len(wrong)} differ when computed again"
    )
    compiled = table[table["compiled"] > 0]
    if len(compiled):
        print(f"{len(compiled)} jobs were compiled first, {compiled['compiled'].sum():.3f} s in "
              "all, which is not learned")  # fmt: skip
    return int(_blame(table, "job {job} {app}") or bool(wrong))


def split(args: argparse.Namespace) -> int:
    """Run one divisible job on each device alone and over all, against the ideal."""
    kernel, (factor,) = live.kernel_named(args.kernel), _factors(args)[:1]
    devices = _devices(args)
    with live.CREWS[args.crew]([s.name for s in devices]) as crew:
        done = live.run_split(kernel, crew, devices, sized(kernel, factor).size, args.rounds)
    lines = zip(devices, done.fixed, done.unit, done.ideal.shares, strict=True)
    for slot, a, b, share in lines:
        print(f"{slot.name}: {a:.4g} s + {1e6 * b:.4g} s per million elements; "
              f"ideal share {share:.0f}")  # fmt: skip
    rounds = done.runs[done.runs["way"] == "split"]
    _show(rounds, ["round", "device", "share", "time"])
    print(f"\nideal {done.ideal.time:.4g} s, all devices ending together")
    if shares := shared_cores(devices):
        print(shares)
    _show(done.table(), ["way", "makespan", "over_ideal"])
    if not done.agrees:
        print(f"{kernel.name}: another result where it was split", file=sys.stderr)
    return 0 if done.agrees else 1


def play(args: argparse.Namespace) -> int:
    """Simulate policies on applications of a table of measured times."""
    if args.csv and args.log:
        raise InputError("--csv and --log cannot be combined; name one of them")
    path, reading = args.log or args.csv, Reading.of(reading_of(args.reading))
    if args.log:
        whole("--jobs", args.jobs)
        jobs = workload.from_log(path, args.mix, args.seed).head(args.jobs)
        count = jobs["app"].nunique()
    else:
        apps = workload.from_csv(path := path or shared_file("data/examples/applications.csv"))
        jobs = workload.draw(apps, args.jobs, args.seed, cv=args.cv, outliers=0.0)
        count = len(apps)
    usual = "history,preferred,mct,round-robin,rsc,asjf"
    rows = []
    for name in names_of(args.compare, args.policy, usual):
        s = simulate(jobs, Machine(args.cpus, args.gpus), name, reading=reading)
        s.check()
        waits = s.jobs["start"] - s.jobs["arrival"]
        rows.append({"policy": name, "makespan": s.makespan, "mean_wait": waits.mean(),
                     "on_gpu": s.jobs["device"].str.startswith("gpu").sum()})  # fmt: skip
    print(f"{len(jobs)} jobs of {count} applications ({path})")
    _show(pd.DataFrame(rows), ["policy", "makespan", "mean_wait", "on_gpu"])
    return 0


def explain(args: argparse.Namespace) -> int:
    """Say why each job went where it went, and compute every decision again."""
    log = live.Log.read(args.log)
    for name, note in log.devices.items():
        print(f"{name}: {note}")
    for text in log.explain():
        print(text)
    wrong = log.audit()
    for old, new in wrong:
        print(f"logged {old}, computed {new}", file=sys.stderr)
    left = f"; {len(log.left)} of {len(log.fates)} jobs are left" if log.left else ""
    print(f"{log.decisions} decisions of policy {log.name}, {len(wrong)} differ{left}")
    return 1 if wrong else 0


def _head(args: argparse.Namespace) -> Head:
    reading = realtime.Reading.of({"link": "shared"} | reading_of(args.reading))
    return Head(
        args.scheduler, workers=args.workers, policy=args.policy, reading=reading,
        quantile=args.quantile, log=args.log or None,
        tell=lambda text: print(text, file=sys.stderr),
    )  # fmt: skip


def _work(args: argparse.Namespace) -> tuple[Callable[[Any], Any], loads.Load, Any]:
    """Return the function, the load and what combines results, before a cluster is started."""
    sys.path.insert(0, os.getcwd())  # where module:function is looked for, by workers here too
    load = (loads.rows if args.rows else loads.lines)(args.input, args.where)
    return function_named(args.function), load, args.combine and function_named(args.combine)


def _told(job: Job) -> None:
    promise = job.promise
    if promise.admitted:
        print(f"promised: done in {promise.finish:.3g} s on {promise.nodes} workers "
              f"(fitted times stretched by {promise.margin:.3g})", flush=True)  # fmt: skip
    elif promise.offer < math.inf:
        print(f"refused: {job.deadline:g} s is too short; {promise.offer:.4g} s could be promised")
    else:
        print("refused: no deadline could be promised")


def divide(args: argparse.Namespace) -> int:
    """Promise one load, or make an offer; then do it, and show predicted beside real."""
    deadline = duration("--deadline", args.deadline)
    function, load, combine = _work(args)
    with _head(args) as head:
        if not head.knows(function, load):
            print("measuring", flush=True)
            print(shown(head.calibrate(function, load)))
        same = [job for job in head.jobs if job.load == load and job.function is function]
        if same:
            print("goes on with what was promised before")
        job = same[-1] if same else head.submit(function, load, deadline, combine)
        _told(job)
        if not job.promise.admitted:
            return 1
        result = job.result()
        print(shown(job.chunks, index=False))
        is_new = not same  # of one that goes on, the head that was killed knew what it expected
        expected = f", expected {job.expected - job.arrival:.4g} s" * is_new
        print(f"\ndone in {job.end - job.arrival:.4g} s{expected}")
        now = [fit.unit for fit in head.measured(function, load).fits()]
        before = "; before this load {:.4g} s, {:.4g} s".format(*job.unit) * is_new
        fitted = "a unit is fitted to take {:.4g} s to send, {:.4g} s to compute".format(*now)
        print(fitted + before)
        print(f"result: {result!r:.200}")
    return 0 if job.end <= job.due else 1


def measure_cluster(args: argparse.Namespace) -> int:
    """Measure what a function costs on a cluster."""
    function, load, _ = _work(args)
    with _head(args) as head:
        print(head.calibrate(function, load, repeats=args.repeats).to_string())
        slow, p = head.measured(function, load).slowest()
        print("the workers are equal, as far as this shows" if slow == 1 else
              f"the workers differ (p = {p:.2g}): the slowest, {slow:.3g} times as slow, is "
              "assumed of all")  # fmt: skip
    return 0


def replay(args: argparse.Namespace) -> int:
    """Submit a stream of loads, beside its simulation."""
    csv = file_of("--csv", args.csv) if args.csv else None
    tasks = read_csv(args.tasks, dict.fromkeys(("arrival", "sigma", "deadline"), "nonnegative"))
    function, load, combine = _work(args)
    with _head(args) as head:
        if not head.knows(function, load):
            head.calibrate(function, load)
        found = head.replay(function, load, tasks, combine)
    print(shown(found))
    kept, promised = found["kept"].sum(), found["promised"].sum()
    print(f"\n{promised} of {len(found)} promised, {kept} of these kept; "
          f"the simulation admits {found['simulated'].sum()}")  # fmt: skip
    if csv:
        write_csv(csv, found)
    return 0 if kept == promised else 1


def main(args: argparse.Namespace) -> int:
    """Do one of ``calibrate``, ``run``, ``split``, ``simulate``, ``explain``, or on a cluster."""
    verbs = {
        "calibrate": measure, "run": run, "split": split, "simulate": play, "explain": explain,
        "divide": divide, "calibrate-cluster": measure_cluster, "replay": replay,
    }  # fmt: skip
    return verbs[args.live](args)
