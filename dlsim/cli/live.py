"""What ``dlsim live`` does: measure kernels here, schedule them, explain each decision."""

import argparse
import itertools
import os
import random
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import pandas as pd

from dlsim.cli import divide
from dlsim.cli.words import file_of, reading_of
from dlsim.cpugpu import Machine, Reading, Store, live, simulate, workload
from dlsim.cpugpu.live.devices import shared_cores
from dlsim.cpugpu.live.log import LogFile
from dlsim.cpugpu.live.session import identity, kinds_of, sized
from dlsim.cpugpu.model import MOST_COUNT, policy_named
from dlsim.errors import InputError
from dlsim.files import locked, shared_file
from dlsim.given import whole


def _devices(args: argparse.Namespace) -> tuple[live.Slot, ...]:
    devices = live.slots(args.gpu, args.cpu)
    for slot in devices:
        print(f"{slot.name}: {slot.note}")
    return devices


def _kernels(args: argparse.Namespace) -> list[live.Kernel]:
    names = args.kernels.split(",") if args.kernels else live.KERNELS
    return [live.kernel_named(name) for name in names]


def _factors(args: argparse.Namespace) -> list[float]:
    try:
        factors = [float(text) for text in args.factor.split(",")]
        if all(0 < factor <= 100 for factor in factors):
            return factors
    except ValueError:
        pass
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
    print(table[list(columns)].to_string(index=False, float_format="{:.4g}".format))


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
    if args.policy and args.compare:
        raise InputError("--policy and --compare cannot be combined; name one of them")
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
    for name in (args.policy or args.compare or usual).split(","):
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


def main(args: argparse.Namespace) -> int:
    """Do one of ``calibrate``, ``run``, ``split``, ``simulate``, ``explain``, or on a cluster."""
    verbs = {"calibrate": measure, "run": run, "split": split, "simulate": play, "explain": explain}
    on_cluster = {"divide": divide.divide, "calibrate-cluster": divide.measure,
                  "replay": divide.replay}  # fmt: skip
    return (verbs | on_cluster)[args.live](args)
