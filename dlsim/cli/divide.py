"""What ``dlsim live`` does on a cluster: measure it, promise a load, replay a stream of loads."""

import argparse
import math
import os
import sys
from collections.abc import Callable
from typing import Any

from dlsim.cli.words import file_of, reading_of
from dlsim.files import read_csv, write_csv
from dlsim.given import duration
from dlsim.live import Head, Job, loads
from dlsim.live.journal import function_named
from dlsim.live.loads import Load
from dlsim.realtime import Reading


def _head(args: argparse.Namespace) -> Head:
    reading = Reading.of({"link": "shared"} | reading_of(args.reading))
    return Head(
        args.scheduler, workers=args.workers, policy=args.policy, reading=reading,
        quantile=args.quantile, log=args.log or None,
        tell=lambda text: print(text, file=sys.stderr),
    )  # fmt: skip


def _work(args: argparse.Namespace) -> tuple[Callable[[Any], Any], Load, Any]:
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
            print(head.calibrate(function, load).to_string(float_format="{:.4g}".format))
        same = [job for job in head.jobs if job.load == load and job.function is function]
        if same:
            print("goes on with what was promised before")
        job = same[-1] if same else head.submit(function, load, deadline, combine)
        _told(job)
        if not job.promise.admitted:
            return 1
        result = job.result()
        print(job.chunks.to_string(index=False, float_format="{:.4g}".format))
        is_new = not same  # of one that goes on, the head that was killed knew what it expected
        expected = f", expected {job.expected - job.arrival:.4g} s" * is_new
        print(f"\ndone in {job.end - job.arrival:.4g} s{expected}")
        now = [fit.unit for fit in head.measured(function, load).fits()]
        before = "; before this load {:.4g} s, {:.4g} s".format(*job.unit) * is_new
        print(
            "a unit is fitted to take {:.4g} s to send, {:.4g} s to compute".format(*now) + before
        )
        print(f"result: {result!r:.200}")
    return 0 if job.end <= job.due else 1


def measure(args: argparse.Namespace) -> int:
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
    print(found.to_string(float_format="{:.4g}".format))
    kept, promised = found["kept"].sum(), found["promised"].sum()
    print(f"\n{promised} of {len(found)} promised, {kept} of these kept; "
          f"the simulation admits {found['simulated'].sum()}")  # fmt: skip
    if csv:
        write_csv(csv, found)
    return 0 if kept == promised else 1
