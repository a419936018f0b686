"""Requests from a job log, in the Standard or the Grid Workload Format: what it lacks is drawn."""

import os
from array import array
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from dlsim import files, joblog
from dlsim.given import Seed, generator, in_range, option, positive, seed_record, span, whole

#: Fields of a line, in order. Some archives' names differ; their order does not.
GWF_FIELDS = tuple(
    "job submit wait run_time processors cpu_time memory processors_requested time_requested "
    "memory_requested status user group executable queue partition site_submitted site_run "
    "structure structure_details network disk resources platform_requested network_requested "
    "disk_requested resources_requested organisation project".split()
)
#: Those that are numbers and are read; ``user`` is read as a name; the others are not.
GWF_NUMBERS = ("submit", "run_time", "processors", "processors_requested", "status")
_AT = {name: GWF_FIELDS.index(name) for name in (*GWF_NUMBERS, "user")}
#: How a job's work is told from its line: seconds at the reference performance.
WORK = {
    "run_time": lambda jobs, processors: jobs["run_time"],
    "processor_time": lambda jobs, processors: jobs["run_time"] * processors,
}
#: Columns that no log has; ``attrs["synthesised"]`` names them.
SYNTHESISED = ("send", "recv", "deadline")


def read_gwf(
    path: files.StrPath, limit: int = files.LOG
) -> tuple[pd.DataFrame, dict[str, str], list[str]]:
    """Read a job log in the Grid Workload Format.

    Its first sixteen fields are those of the Standard Workload Format, but users are names.
    Values out of range (-1 for "unknown") are data: whoever uses the log decides about them.
    A. Iosup et al., "The Grid Workloads Archive", Future Generation Computer Systems 24(7), 2008.
    """
    values, users, number = array("d"), dict[bytes, float]({b"-1": -1.0}), 0
    for number, line in files.numbered_lines(path, limit):
        text = line.removeprefix(b"\xef\xbb\xbf").strip()
        if not text or text.startswith((b"#", b";")):
            continue
        fields = text.split(b"\t") if text.count(b"\t") == len(GWF_FIELDS) - 1 else text.split()
        if len(fields) != len(GWF_FIELDS):
            what = f"{len(fields)} fields instead of {len(GWF_FIELDS)}"
            raise files.refusal(path, number, what)
        some = [fields[_AT[name]] for name in GWF_NUMBERS]
        values.extend(joblog.finite(path, number, GWF_NUMBERS, some))
        values.append(users.setdefault(fields[_AT["user"]].strip(), float(len(users) - 1)))
    if not values:
        raise files.refusal(path, max(1, number), "the file ends without a single job line")
    rows: Any = np.frombuffer(values).reshape(-1, len(_AT))
    jobs = pd.DataFrame(rows, columns=list(_AT))
    late = bool((jobs["submit"].diff() < 0).any())
    return jobs, {}, ["submit times are not in order"] * late


def from_swf(
    path: files.StrPath, clients: int, *, performance: float = 300.0, throughput: float = 75.0,
    work: str = "run_time", send: tuple[float, float] = (100.0, 5000.0),
    recv: tuple[float, float] = (100.0, 5000.0), deadline_factor: tuple[float, float] = (1.0, 3.0),
    time_scale: float = 1.0, max_jobs: int | None = None, seed: Seed = 0, limit: int = files.LOG,
    read: Callable[..., tuple[pd.DataFrame, Any, list[str]]] = joblog.read_swf,
) -> pd.DataFrame:  # fmt: skip
    r"""Make requests of the jobs of a log in the Standard Workload Format.

    A log knows neither data sizes nor deadlines; how a job becomes a request is this rule:

    - time = (submit time - that of the first usable job) * `time_scale`;
    - client = the job's user, users numbered in the order of their first usable jobs,
      modulo `clients`;
    - work = run time * `performance`, so that a server of that performance is busy as
      long as the job was; or processors * run time * `performance`, for one processor
      each, with the requested processors where the allocated ones are unknown;
    - send, recv: synthesised, uniform (Table 1);
    - deadline = time + DF (work / performance + (send + recv) / `throughput`):
      synthesised, DF uniform (section 4.1).

    Jobs without run time, processors (where they count) or submit time, lines for a part
    of a job (status 2, 3, 4) and numbers out of the range of `dlsim.given` are skipped, counted.
    """
    rule = {"performance": performance, "throughput": throughput, "time_scale": time_scale}
    ranges = {"send": send, "recv": recv, "deadline_factor": deadline_factor}
    performance, throughput, time_scale = positive(**rule)
    clients = whole("clients", clients)
    max_jobs = None if max_jobs is None else whole("max_jobs", max_jobs)
    ranges = {name: span(name, limits) for name, limits in ranges.items()}
    option("work", work, WORK)
    jobs, _, notes = read(path, limit)
    drawn = {  # one value per line of the log and purpose, whatever is skipped
        name: low + (high - low) * generator(seed, number).random(len(jobs))
        for number, (name, (low, high)) in enumerate(ranges.items())
    }
    processors = jobs["processors"].where(jobs["processors"] > 0, jobs["processors_requested"])
    with np.errstate(over="ignore"):
        table = pd.DataFrame({"time": jobs["submit"] * time_scale, "client": jobs["user"]})
        table["send"], table["recv"] = drawn["send"], drawn["recv"]
        table["work"] = WORK[work](jobs, processors) * performance
        away = (table["send"] + table["recv"]) / throughput
        due = drawn["deadline_factor"] * (table["work"] / performance + away)
    fits = in_range(table["work"]) & in_range(table["time"])
    order, skipped = joblog.usable_jobs(path, jobs, table["work"], fits, max_jobs, "request")
    table, due = table.loc[order], due[order]
    table["time"] -= table["time"].iloc[0]
    table["client"] = (pd.factorize(table["client"])[0] % clients).astype(np.int64)
    table["deadline"] = table["time"] + due
    table.index = pd.RangeIndex(len(table), name="request")
    table.attrs = {
        "source": os.fspath(path), "synthesised": list(SYNTHESISED), "skipped": skipped,
        "notes": notes, "seed": seed_record(seed),
        "reading": {**rule, **ranges, "work": work, "clients": clients, "max_jobs": max_jobs},
    }  # fmt: skip
    return table


def from_gwf(path: files.StrPath, clients: int, **options: Any) -> pd.DataFrame:
    """Make requests of the jobs of a log in the Grid Workload Format."""
    return from_swf(path, clients, read=read_gwf, **options)


def from_log(path: files.StrPath, clients: int, **options: Any) -> pd.DataFrame:
    """Make requests, as `from_swf`, of a log whose name tells its format: .gwf, .gwf.gz or SWF."""
    name = os.fspath(path).lower().removesuffix(".gz")
    return (from_gwf if name.endswith(".gwf") else from_swf)(path, clients, **options)
