"""Job logs in the Standard Workload Format, as hostile as any file that is read.

S. Chapin et al., "Benchmarks and standards for the evaluation of parallel job schedulers", JSSPP
1999; Parallel Workloads Archive, "The Standard Workload Format".
"""

import datetime
import math
import os
import re
from array import array
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd

from dlsim.errors import InputError
from dlsim.files import LOG, StrPath, field_value, numbered_lines, refusal

#: The fields of a job line, in the order of the Standard Workload Format 2.2.
SWF_FIELDS = tuple(
    "job submit wait run_time processors cpu_time memory processors_requested time_requested "
    "memory_requested status user group executable queue partition preceding_job think_time".split()
)

#: Labels of a header that are read.
_READ = "MaxProcs MaxNodes MaxJobs MaxRecords UnixStartTime TimeZone TimeZoneString Queue"
_LABELS = {label.casefold(): label for label in _READ.split()}
_EMPTY = "the file ends without a single job line; give a line per job"
_UNKNOWN = "a job is a line of numbers with blanks between, -1 for what is unknown"
#: Where joining the values of one label ends: each costs a copy of those before it.
_LONGEST_NOTE = 2**16


def _swf_comment(header: dict[str, str], text: bytes) -> bool:
    """Take a `; Label: value` line, in any case, into the header; tell whether it was UTF-8."""
    try:
        comment, clean = text.decode(), True
    except UnicodeDecodeError:
        comment, clean = text.decode("latin-1"), False
    found = re.match(r";\s*([A-Za-z]\w*)\s*:\s*(.*)", comment)
    if found:
        label, value = _LABELS.get(found[1].casefold(), found[1]), found[2].strip()
        before = header.get(label)
        if before is None:
            header[label] = value
        elif len(before) < _LONGEST_NOTE:
            header[label] = f"{before}\n{value}"
    return clean


def finite(path: StrPath, number: int, names: Sequence[str], fields: list[bytes]) -> list[float]:
    """Return the fields of a line as finite numbers; the first that is none is named."""
    try:
        row = [float(field) for field in fields]
        if math.isfinite(sum(row)) and b"_" not in b"".join(fields):
            return row
    except ValueError:
        pass
    return [
        field_value(path, number, name, field.decode("ascii", "backslashreplace"), "known or -1")
        for name, field in zip(names, fields, strict=True)
    ]


def _swf_lies(header: Mapping[str, str], jobs: pd.DataFrame) -> list[str]:
    """Say where the header and the jobs disagree; the jobs are believed."""
    seen = {"MaxRecords": len(jobs), "MaxJobs": jobs["job"].nunique()}
    seen["MaxProcs"] = int(max(0, jobs["processors"].max()))
    notes = []
    for label, value in seen.items():
        said = header.get(label, str(value))[:15]
        count = int(said) if said.isdecimal() else -1
        if count < value or (count > value and label != "MaxProcs"):
            notes.append(f"header says {label} {said!r}, the jobs say {value}")
    whole = jobs["job"][(jobs["job"] >= 0) & ~jobs["status"].isin((2, 3, 4))]
    if again := int(whole.duplicated().sum()):
        notes.append(f"{again} lines have the number of a job before them, and count as jobs too")
    if (jobs["submit"].diff() < 0).any():
        notes.append("submit times are not in order")
    return notes


def read_swf(path: StrPath, limit: int = LOG) -> tuple[pd.DataFrame, dict[str, str], list[str]]:
    """Read jobs, header and notes; a value out of range (-1, run time 0) is data for its user."""
    header: dict[str, str] = {}
    notes: list[str] = []
    values, number = array("d"), 0
    for number, line in numbered_lines(path, limit):
        text = line.removeprefix(b"\xef\xbb\xbf").strip()
        if text.startswith(b";"):
            if not values and not _swf_comment(header, text) and not notes:
                notes.append(f"line {number}: a comment is not UTF-8, read as Latin-1")
        elif text:
            fields = text.split()
            if len(fields) != len(SWF_FIELDS):
                what = f"{len(fields)} fields instead of {len(SWF_FIELDS)}; {_UNKNOWN}"
                raise refusal(path, number, what)
            values.extend(finite(path, number, SWF_FIELDS, fields))
    if not values:
        raise refusal(path, max(1, number), _EMPTY)
    rows = np.frombuffer(values).reshape(-1, len(SWF_FIELDS))
    jobs = pd.DataFrame(rows, columns=list(SWF_FIELDS))
    return jobs, header, notes + _swf_lies(header, jobs)


def widths(jobs: pd.DataFrame) -> pd.Series:
    """Return how many processors each job had, or asked for where that is unknown."""
    return jobs["processors"].where(jobs["processors"] > 0, jobs["processors_requested"])


def usable_jobs(
    path: StrPath, jobs: pd.DataFrame, size: Any, fits: Any, most: int | None, what: str,
    unfit: str = "value out of range",
) -> tuple[pd.Index, dict[str, int]]:  # fmt: skip
    """Return the jobs that can be what a reader makes of them, by submit time, and the rest.

    A job needs a `size` above 0 and values in range (`fits`); at most so many are taken. Of
    those that are skipped the reasons are counted.
    """
    bad = {  # the first one counts
        "part of a job (status 2, 3 or 4)": jobs["status"].isin((2, 3, 4)),
        "no submit time": ~(jobs["submit"] >= 0),
        "run time not above 0": ~(jobs["run_time"] > 0),
        "no processors": size <= 0,
        unfit: ~fits,
    }
    why = pd.Series(np.select(list(bad.values()), list(bad), ""), jobs.index, dtype=object)
    order = jobs["submit"][why == ""].sort_values(kind="stable").index
    if order.empty:
        counts = ", ".join(f"{reason}: {n}" for reason, n in why.value_counts().items())
        remedy = "correct these fields, or MaxProcs of its header"
        raise InputError(f"{os.fspath(path)}: no job that could be a {what} ({counts}); {remedy}")
    why[order[len(order[:most]) :]] = "beyond max_jobs"
    return order[:most], {str(k): int(n) for k, n in why[why != ""].value_counts().items()}


class Log(NamedTuple):
    """A job log as an operator knows it."""

    #: Usable jobs by submission: submit, wait (NaN where unknown), run_time and estimate (what
    #: was requested; NaN) in seconds, processors; user, group, queue as texts, "" where unknown.
    jobs: pd.DataFrame
    #: Processors of the machine: the header's MaxProcs, else MaxNodes, else the widest job's.
    nodes: int
    epoch: pd.Timestamp | None  # the date of second 0, with its time zone
    header: Mapping[str, str]  # what the file says of itself
    skipped: Mapping[str, int]  # how many jobs were left out, by reason
    notes: Sequence[str]  # where the file contradicts itself

    def date(self, second: float) -> str:
        """Say when a second of the log was; the day where it has no dates."""
        if self.epoch is None:
            return f"day {second / 86_400:.1f}"
        return f"{self.epoch + pd.Timedelta(seconds=float(second)):%Y-%m-%d %H:%M %Z}"


def _count(header: Mapping[str, str], *labels: str) -> int | None:
    """Return the first of some labels that begins with a whole number above 0."""
    for label in labels:
        found = re.match(r"\d{1,15}(?!\d|[.,]?\w)", header.get(label, ""))  # not 1e9 or 1,024
        if found and int(found[0]) > 0:
            return int(found[0])
    return None


def processors_of(header: Mapping[str, str]) -> int | None:
    """Return how many processors a log's machine has, if its header says so."""
    return _count(header, "MaxProcs", "MaxNodes")


def read_header(path: StrPath) -> dict[str, str]:
    """Read what stands above the first job of a log in the Standard Workload Format."""
    header: dict[str, str] = {}
    for _, line in numbered_lines(path, LOG):
        text = line.removeprefix(b"\xef\xbb\xbf").strip()
        if text and not text.startswith(b";"):
            break
        _swf_comment(header, text)
    return header


def _epoch(header: Mapping[str, str]) -> pd.Timestamp | None:
    """Return the date of second 0: UnixStartTime, in the zone of the machine where it is known."""
    seconds = _count(header, "UnixStartTime")
    if seconds is None or seconds > 2**33:
        return None
    shift = re.match(r"-?\d{1,5}(?!\d)", header.get("TimeZone", ""))
    try:
        zone: datetime.tzinfo = ZoneInfo(header["TimeZoneString"].split()[0])
    except (KeyError, IndexError, ValueError, OSError):  # ZoneInfoNotFoundError is a KeyError
        hours = int(shift[0]) if shift and abs(int(shift[0])) < 86_400 else 0
        zone = datetime.timezone(datetime.timedelta(seconds=hours))
    return pd.Timestamp(seconds, unit="s", tz=zone)


#: Fields that hold the numbers of names.
NAMED = ("user", "group", "queue")


def _named(jobs: pd.DataFrame, header: Mapping[str, str]) -> pd.DataFrame:
    """Return user, group and queue as texts."""
    queues = (line.split(None, 1) for line in header.get("Queue", "").splitlines())
    known = {"queue": {int(q[0]): q[1] for q in queues if len(q) > 1 and q[0].isdecimal()}}
    texts = {}
    for name in NAMED:
        codes, inverse = np.unique(jobs[name].to_numpy(), return_inverse=True)
        words = [known.get(name, {}).get(int(c), f"{c:g}") if c >= 0 else "" for c in codes]
        texts[name] = np.array(words, dtype=object)[inverse]
    return pd.DataFrame(texts, index=jobs.index)


def read_log(path: StrPath, limit: int = LOG) -> Log:
    """Read a job log in the Standard Workload Format, plain or with .gz.

    Jobs without run time, processors or submit time, lines for a part of a job (status 2, 3, 4)
    and jobs wider than the machine are left out and counted.
    """
    jobs, header, notes = read_swf(path, limit)
    processors = widths(jobs)
    nodes = processors_of(header) or int(max(1, processors[processors <= 1e7].max()))
    fits = (processors <= nodes) & (processors % 1 == 0) & (jobs["submit"] < 1e12)
    unfit = f"wider than the machine ({nodes}), or out of range"
    order, skipped = usable_jobs(path, jobs, processors, fits, None, "job of this machine", unfit)
    used = jobs.loc[order]
    table = pd.DataFrame({
        "submit": used["submit"], "wait": used["wait"].where(used["wait"] >= 0),
        "run_time": used["run_time"], "processors": processors[order].astype(np.int64),
        "estimate": used["time_requested"].where(used["time_requested"] > 0),
    }).join(_named(used, header))  # fmt: skip
    table.index = (used.index + 1).rename("row")
    if used["job"].is_unique and (used["job"] % 1 == 0).all():
        table.index = pd.Index(used["job"].astype(np.int64), name="job")
    epoch, (first, last) = _epoch(header), table["submit"].iloc[[0, -1]]
    if epoch is None and first >= 5e8 and last < 4e9:
        epoch, note = pd.Timestamp(0, unit="s", tz="UTC"), "submit times count from 1970 (UTC)"
        notes = [*notes, note]
    elif epoch and not 1700 <= epoch.year <= 2250 - last / 31_556_952:
        epoch, notes = None, [*notes, "dates before 1700 or after 2250 are not shown"]
    return Log(table, nodes, epoch, header, skipped, notes)
