"""The parts of ``dlsim bench``: what each is called, and its rows, each told as it is measured.

Times are CPU seconds, user and system, the least of a few repetitions; a ratio is how many
times faster dlsim is than the peer that the part names, in the same run. The machine stands
above everything. What was once reached is a floor, which stands beside what is measured.
"""

import functools
import importlib
import importlib.util
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from importlib.metadata import PackageNotFoundError, version
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dlsim import processes
from dlsim.errors import InputError
from dlsim.validate import one_of

#: The modules of this package that have a table `PARTS`, in the order in which they run.
ENGINES = ("realtime", "steady", "bricks", "cpugpu", "joblog", "explore", "suite")
#: Packages whose version is told.
PACKAGES = ("numba", "numpy", "scipy", "highspy", "matplotlib", "simpy")


#: The package that an extra of dlsim installs, by the name of the extra.
EXTRAS = {"topologies": "topohub"}


#: Tasks from which on floors are told; a part may use fewer or more for its own kind of work.
FULL_SIZE = 10_000


class Floor(NamedTuple):
    """What a column should be at least, or at most, in the rows with some values."""

    column: str
    sign: str
    bound: float
    where: dict[str, Any]

    def is_of(self, row: dict[str, Any]) -> bool:
        """Whether the floor is one of this row."""
        return all(row.get(name) == value for name, value in self.where.items())

    def is_held(self, row: dict[str, Any]) -> bool:
        """Whether the row holds it."""
        return (
            row[self.column] >= self.bound if self.sign == ">=" else row[self.column] <= self.bound
        )


def at_least(column: str, bound: float, **where: Any) -> Floor:
    """A floor of the rows with these values."""
    return Floor(column, ">=", bound, where)


def at_most(column: str, bound: float, **where: Any) -> Floor:
    """A ceiling of the rows with these values."""
    return Floor(column, "<=", bound, where)


class Part(NamedTuple):
    """Rows of one kind, by seed and number of tasks.

    Long parts run only if they are named in full. A part that needs an extra of dlsim beyond
    `test` names it, and is left out where the extra is not installed. `why_slower` is told where
    plain Python is faster than dlsim.
    """

    title: str
    rows: Callable[[int, int], Iterator[dict[str, Any]]]
    long: bool = False
    extra: str = ""
    floors: tuple[Floor, ...] = ()
    why_slower: str = ""

    @property
    def missing_extra(self) -> str:
        """Say which extra is missing, and how it is installed; "" if none is."""
        if not self.extra or importlib.util.find_spec(EXTRAS[self.extra]):
            return ""
        return f"needs the extra {self.extra}: pip install -e '.[{self.extra}]'"


@functools.cache
def parts():
    """Every part by its name, such as ``steady.lprr``."""
    found = {}
    for engine in ENGINES:
        module = importlib.import_module(f"tests.verification.benchmarks.{engine}")
        found |= {f"{engine}.{name}": part for name, part in module.PARTS.items()}
    return found


def chosen(names):
    """The parts that names mean: an engine's without its long ones, a part, or all but those."""
    table = {}
    for name in names or ENGINES:
        one_of("part", name, (*ENGINES, *parts()))
        table |= {
            key: part for key, part in parts().items()
            if key == name or (key.startswith(f"{name}.") and not part.long)
        }  # fmt: skip
    return table


def listing():
    """Every part with what it measures, a line each."""
    long = {False: "", True: " (long: only by name)"}
    notes = {
        name: f" ({p.missing_extra})" if p.missing_extra else "" for name, p in parts().items()
    }
    return [
        f"{name:<20}{part.title}{long[part.long]}{notes[name]}" for name, part in parts().items()
    ]


def cells(row):
    """A row's texts; numbers in four digits."""
    return [f"{value:.4g}" if isinstance(value, float) else str(value) for value in row.values()]


def with_floor(row, floors):
    """A row with its floor, and whether this machine holds it; blank where it has none."""
    found = next((floor for floor in floors if floor.is_of(row)), None)
    if found is None:
        return {**row, "floor": "", "held": ""}
    held = "yes" if found.is_held(row) else "no"
    return {**row, "floor": f"{found.column} {found.sign} {found.bound:g}", "held": held}


def lines(part, seed=0, tasks=FULL_SIZE, told=None):
    """The rows of a part as they come, a head before the first and wherever the columns change.

    All rows are added to the list `told`.
    """
    head, rows = None, [] if told is None else told
    for row in part.rows(seed, tasks):
        row = with_floor(row, part.floors) if part.floors and tasks >= FULL_SIZE else row
        rows.append(row)
        texts = cells(row)
        if head != list(row):
            head = list(row)
            widths = [max(len(a), len(b), 12) for a, b in zip(head, texts, strict=True)]
            yield "  ".join(f"{a:>{w}}" for a, w in zip(head, widths, strict=True))
        yield "  ".join(f"{a:>{w}}" for a, w in zip(texts, widths, strict=True)).rstrip()
    slower = [
        row for row in rows if row.get("engine") == "plain Python" and row.get("ratio", 1) < 1
    ]
    if slower and part.why_slower:
        yield f"plain Python is faster where its ratio is below 1: {part.why_slower}"


def report(names=(), seed=0, tasks=FULL_SIZE):
    """Measure parts and yield line after line; parts without their extra are named first.

    The last line counts the floors that are held.
    """
    asked = chosen(names)
    missing = [f"{name} {part.missing_extra}" for name, part in asked.items() if part.missing_extra]
    if len(missing) == len(asked):
        raise InputError(f"nothing can be measured: {'; '.join(missing)}")
    yield machine()
    yield from (f"left out: {line}" for line in missing)
    held: dict[str, list[str]] = {"yes": [], "no": []}
    for name, part in asked.items():
        if part.missing_extra:
            continue
        begin, told = time.perf_counter(), []
        yield from chain((f"\n{name}: {part.title}",), lines(part, seed, tasks, told))
        yield f"({time.perf_counter() - begin:.0f} s)"
        for row in told:
            if row.get("floor"):
                of = [value for value in row.values() if isinstance(value, str)][:-2]
                held[row["held"]].append(f"{', '.join([name, *of])} ({row['floor']})")
    if any(held.values()):
        missed = f"; not: {', '.join(held['no'])}" if held["no"] else ""
        yield f"\nfloors: {len(held['yes'])} of {sum(map(len, held.values()))} are held{missed}"
    elif tasks < FULL_SIZE and any(part.floors for part in asked.values()):
        yield f"\nfloors are told for {FULL_SIZE:,} tasks and more"


def timed(function, repeats=1):
    """Least CPU time in seconds of some calls, and the last answer."""
    best = np.inf
    for _ in range(repeats):
        begin = time.process_time()
        answer = function()
        best = min(best, time.process_time() - begin)
    return best, answer


#: A small process between: what a process that was forked had in memory counts as its peak.
_BETWEEN = """import json, resource, subprocess, sys
done = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(json.dumps([used.ru_utime + used.ru_stime, used.ru_maxrss / 1024, done.returncode]))"""


def run_dlsim(*words, **environment):
    """Run the command line in a process of its own: time, memory, how it ended."""
    ours = processes.module_command("dlsim", *map(str, words))
    command = [sys.executable, "-c", _BETWEEN, *ours]
    begin = time.perf_counter()
    told = subprocess.run(
        command, env={**os.environ, **environment}, stdout=subprocess.PIPE, check=True
    ).stdout
    wall = time.perf_counter() - begin
    names = ("cpu_seconds", "peak_MB", "exit")
    return {"wall_seconds": wall, **dict(zip(names, json.loads(told), strict=True))}


def machine():
    """Processor, cores, and the versions that matter, on one line."""
    cpuinfo = Path("/proc/cpuinfo")
    text = cpuinfo.read_text("utf-8").splitlines() if cpuinfo.exists() else []
    models = [line.partition(":")[2].strip() for line in text if line.startswith("model name")]
    processor = [*models, platform.processor() or platform.machine()][0]
    told = [f"{processor}, {os.cpu_count()} cores, Python {platform.python_version()}"]
    for name in PACKAGES:
        try:
            told.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            continue
    return ", ".join(told)
