"""What ``dlsim live`` does: measure kernels here, schedule them, explain each decision."""

import argparse
import itertools
import os
import random
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

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


def _what(path: Path) -> str:
    """Say what stands at a place; "" where nothing does."""
    kinds = {
        "a symbolic link": path.is_symlink, "a folder": path.is_dir, "a file": path.is_file,
        "a device or the like": path.exists,
    }  # fmt: skip
    return next((what for what, is_one in kinds.items() if is_one()), "")


def _in_the_way(path: Path, log: bool = False) -> str:
    """Say why a file cannot be written there, or "": a log may be, where it ousts a log."""
    what = _what(path)
    if not (log and what == "a file"):
        return f"{path}: {what} is there" if what else ""
    try:
        Log.read(path)
    except InputError as error:
        return str(error)
    return ""


def _place(option: str, name: str) -> Path:
    """Return where a file will be written, refused before anything runs if it cannot be."""
    path = Path(name)
    if why := _in_the_way(path, log=option == "--log"):
        raise InputError(f"{option} {why}; it stays as it is: name a new file, or move it away")
    near = next(folder for folder in path.parents if os.path.lexists(folder))
    if not (near.is_dir() and os.access(near, os.W_OK | os.X_OK)):
        raise InputError(f"{option} {path}: nothing can be written to {near}; name another folder")
    return path


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Keep other runs out of a folder, where folders can be locked: a kill ends the lock."""
    with ExitStack() as stack:
        with suppress(ImportError, OSError):
            import fcntl

            folder.mkdir(parents=True, exist_ok=True)
            handle = os.open(folder, os.O_RDONLY)
            stack.callback(os.close, handle)
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def _save(log: Log, path: Path) -> Path:
    """Write a log; the one that is there is kept beside it, and so is whatever else came."""
    with _alone(path.parent):
        beside = next(
            one for k in itertools.count(1)
            if not os.path.lexists(one := path.with_stem(f"{path.stem}-{k}"))
        )  # fmt: skip
        if _in_the_way(path, log=True):
            path = beside
        elif path.exists():
            path.rename(beside)
            print(f"the log that was there is kept as {beside}")
        log.save(path)
    return path


def _show(table: pd.DataFrame, columns: Sequence[str]) -> None:
    print(table[list(columns)].to_string(index=False, float_format="{:.4g}".format))


def measure(args: argparse.Namespace) -> int:
    """Measure every kernel on every device and keep the times."""
    kernels, factor = _kernels(args), _factor(args)
    csv = _place("--csv", args.csv) if args.csv else None
    devices = _devices(args)
    with Store(args.history) as store, CREWS[args.crew]([s.name for s in devices]) as crew:
        table = calibrate(kernels, crew, devices, args.repeats, store, factor)
        if csv:
            played = {slot.name[:3]: slot.backend for slot in devices}
            apps = workload.measured(store.history(crew.host, played))
            with _alone(csv.parent):
                workload.to_csv(apps, _place("--csv", args.csv))
    _show(table, ["app", "device", "backend", "seconds", "std", "transfer", "agrees"])
    bad = table[(table["error"] != "") | ~table["agrees"]]
    for app, device, error in bad[["app", "device", "error"]].to_numpy().tolist():
        print(f"{app} on {device}: {error or 'another result'}", file=sys.stderr)
    return 1 if len(bad) else 0


def run(args: argparse.Namespace) -> int:
    """Draw jobs, run each where the policy sends it, keep times and decisions."""
    kernels, reading, factor = _kernels(args), Reading.of(reading_of(args.reading)), _factor(args)
    if args.jobs < 1 or args.seed < 0:
        raise InputError(f"--jobs must be at least 1 and --seed 0, got {args.jobs}, {args.seed}")
    path, saved = _place("--log", args.log), dict[Path, Log]()
    devices, rng = _devices(args), random.Random(args.seed)
    chosen = [rng.choice(kernels) for _ in range(args.jobs)]
    jobs = [LiveJob(kernel, max(1, round(factor * kernel.size))) for kernel in chosen]

    def keep(log: Log) -> None:
        if log.rows:
            saved[_save(log, path)] = log

    try:
        with Store(args.history) as store, CREWS[args.crew]([s.name for s in devices]) as crew:
            done = run_live(jobs, crew, devices, args.policy, reading, store=store, keep=keep)
    except KeyboardInterrupt as stop:
        so_far = [f"{len(log.rows)} decisions so far in {where}" for where, log in saved.items()]
        raise KeyboardInterrupt("; ".join(filter(None, [str(stop), *so_far]))) from stop
    (where,) = saved
    table = done.jobs.reset_index()
    _show(table, ["job", "app", "device", "start", "end", "seconds", "rule", "predicted"])
    wrong = done.log.audit()
    print(
        f"\n{len(jobs)} jobs in {done.makespan:.3f} s under {args.policy}; {len(done.log.rows)} "
        f"decisions in {where}, {len(wrong)} differ when computed again"
    )
    bad = table[(table["error"] != "") | ~table["agrees"]]
    for job, app, error in bad[["job", "app", "error"]].to_numpy().tolist():
        print(f"job {job} {app}: {error or 'another result'}", file=sys.stderr)
    return 1 if len(bad) or wrong else 0


def explain(args: argparse.Namespace) -> int:
    """Say why each job went where it went, and compute every decision again."""
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


def main(args: argparse.Namespace) -> int:
    """Do one of ``calibrate``, ``run``, ``explain``."""
    return {"calibrate": measure, "run": run, "explain": explain}[args.live](args)
