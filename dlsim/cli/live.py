"""What ``dlsim live`` does: measure kernels here, schedule them, explain each decision."""

import argparse
import random
import sys
from collections.abc import Sequence

import pandas as pd

from dlsim.cli.words import reading_of
from dlsim.cpugpu import workload
from dlsim.cpugpu.crew import CREWS
from dlsim.cpugpu.kernels import KERNELS, Kernel, kernel_named
from dlsim.cpugpu.live import LiveJob, Slot, calibrate, run_live, slots
from dlsim.cpugpu.model import Reading
from dlsim.cpugpu.records import Log
from dlsim.cpugpu.store import Store
from dlsim.errors import InputError


def _kernels(args: argparse.Namespace) -> list[Kernel]:
    names = args.kernels.split(",") if args.kernels else list(KERNELS)
    return [kernel_named(name) for name in names]


def _devices(args: argparse.Namespace) -> tuple[Slot, ...]:
    devices = slots(args.gpu, args.cpu)
    for slot in devices:
        print(f"{slot.name}: {slot.note}")
    return devices


def _factor(args: argparse.Namespace) -> float:
    if not 0 < args.factor <= 100:
        raise InputError(f"--factor must be above 0 and at most 100, got {args.factor:g}")
    return float(args.factor)


def _show(table: pd.DataFrame, columns: Sequence[str]) -> None:
    print(table[list(columns)].to_string(index=False, float_format="{:.4g}".format))


def measure(args: argparse.Namespace) -> int:
    """Measure every kernel on every device and keep the times.

    Parameters
    ----------
    args : Namespace
        kernels, gpu, cpu, crew, factor, repeats, history, csv.

    Returns
    -------
    int
        0; 1 if a kernel failed on a device or results differ.
    """
    kernels, devices, factor = _kernels(args), _devices(args), _factor(args)
    with Store(args.history) as store, CREWS[args.crew]([s.name for s in devices]) as crew:
        table = calibrate(kernels, crew, devices, args.repeats, store, factor)
        if args.csv:
            played = {slot.name[:3]: slot.backend for slot in devices}
            workload.to_csv(workload.measured(store.history(crew.host, played)), args.csv)
    _show(table, ["app", "device", "backend", "seconds", "std", "transfer", "agrees"])
    bad = table[(table["error"] != "") | ~table["agrees"]]
    for app, device, error in bad[["app", "device", "error"]].to_numpy().tolist():
        print(f"{app} on {device}: {error or 'another result'}", file=sys.stderr)
    return 1 if len(bad) else 0


def run(args: argparse.Namespace) -> int:
    """Draw jobs, run each where the policy sends it, keep times and decisions.

    Parameters
    ----------
    args : Namespace
        kernels, gpu, cpu, crew, factor, jobs, seed, policy, reading, history, log.

    Returns
    -------
    int
        0; 1 if a job was given up or results differ.
    """
    kernels, reading, factor = _kernels(args), Reading.of(reading_of(args.reading)), _factor(args)
    if args.jobs < 1 or args.seed < 0:
        raise InputError(f"--jobs must be at least 1 and --seed 0, got {args.jobs}, {args.seed}")
    devices, rng = _devices(args), random.Random(args.seed)
    chosen = [rng.choice(kernels) for _ in range(args.jobs)]
    jobs = [LiveJob(kernel, max(1, round(factor * kernel.size))) for kernel in chosen]
    with Store(args.history) as store, CREWS[args.crew]([s.name for s in devices]) as crew:
        done = run_live(jobs, crew, devices, args.policy, reading, store=store)
    done.log.save(args.log)
    table = done.jobs.reset_index()
    _show(table, ["job", "app", "device", "start", "end", "seconds", "rule", "predicted"])
    wrong = done.log.audit()
    print(
        f"\n{len(jobs)} jobs in {done.makespan:.3f} s under {args.policy}; {len(done.log.rows)} "
        f"decisions in {args.log}, {len(wrong)} differ when computed again"
    )
    bad = table[(table["error"] != "") | ~table["agrees"]]
    for job, app, error in bad[["job", "app", "error"]].to_numpy().tolist():
        print(f"job {job} {app}: {error or 'another result'}", file=sys.stderr)
    return 1 if len(bad) or wrong else 0


def explain(args: argparse.Namespace) -> int:
    """Say why each job went where it went, and compute every decision again.

    Parameters
    ----------
    args : Namespace
        log.

    Returns
    -------
    int
        0; 1 if a decision differs when computed again.
    """
    log = Log.read(args.log)
    for name, note in log.devices.items():
        print(f"{name}: {note}")
    for text in log.explain():
        print(text)
    wrong = log.audit()
    for old, new in wrong:
        print(f"logged {old}, computed {new}", file=sys.stderr)
    print(f"{len(log.rows)} decisions of policy {log.name}, {len(wrong)} differ")
    return 1 if wrong else 0


#: What ``dlsim live`` can do.
COMMANDS = {"calibrate": measure, "run": run, "explain": explain}
