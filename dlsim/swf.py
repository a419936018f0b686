"""Job logs in the Standard Workload Format (SWF), version 2.2.

S. Chapin et al., "Benchmarks and standards for the evaluation of parallel job schedulers", JSSPP
1999; Parallel Workloads Archive, "The Standard Workload Format".
"""

import math
import os
import re
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd

from dlsim.errors import InputError
from dlsim.files import MAX_LOG_BYTES, StrPath, field_value, line_error, numbered_lines

#: The fields of a job line, in their order.
SWF_FIELDS = tuple(
    "job submit wait run_time processors cpu_time memory processors_requested time_requested "
    "memory_requested status user group executable queue partition preceding_job think_time".split()
)
#: Labels of a header that are used, in any case and with blanks, as in "Max Procs".
_LABELS = {
    label.casefold(): label
    for label in "MaxProcs MaxJobs MaxRecords UnixStartTime TimeZoneString Queue".split()
}
_LABEL = re.compile(r";(\s*)([A-Za-z][\w -]{0,40}?)\s*:\s*(.*)")
#: Number of blanks after the semicolon with which a comment continues the label above it.
_CONTINUATION = 3
#: Length of a label's value beyond which no more lines are joined: each join copies the value.
_LONGEST_VALUE = 2**16
#: A count, with blanks, commas or apostrophes between thousands, perhaps times another one.
_COUNT = re.compile(
    r"(\d{1,3}(?:[ ,'’]\d{3}){1,4}|\d{1,15})(?:\s*[x*×]\s*(\d{1,6}))?(?![\d.,'’\w]|\s\d)"
)
#: Seconds since 1970 of a date before 2287.
_UNIX_TIME = re.compile(r"[1-9]\d{0,9}")
#: Sentences by which a header says that its submit times are start times.
_SUBMIT_IS_START = re.compile(r"submit\w*( times?)? (are|is) (\w+ )?(the )?start")
#: Most processors of a machine; the largest machines of 2025 have 2e7.
MAX_PROCESSORS = 10**9
#: Largest whole number that a float holds exactly.
MAX_WHOLE = 2**53
#: Largest submit time in seconds; larger numbers are milliseconds, or not times.
MAX_SECONDS = 1e11
#: Last second since 1970 of dates that are shown (in 2248); those of pandas end in 2262.
MAX_DATE = 8.8e9


def _read_comment(header: dict[str, str], line: bytes, last_label: str) -> tuple[str, bool]:
    """Add a line ``; Label: value`` to the header; return its label and whether it is UTF-8."""
    try:
        comment, is_utf8 = line.decode(), True
    except UnicodeDecodeError:
        comment, is_utf8 = line.decode("latin-1"), False
    found = _LABEL.match(comment)
    name = re.sub(r"[ _-]", "", found[2]).casefold() if found else ""
    indent = len(comment) - len(comment[1:].lstrip()) - 1
    if name not in _LABELS and last_label and indent >= _CONTINUATION and comment[1:].strip():
        _append(header, last_label, comment[1:].strip(), " ")
        return last_label, is_utf8
    if found is None or (name not in _LABELS and not re.fullmatch(r"\w+", found[2])):
        return "", is_utf8
    label = _LABELS.get(name, found[2])
    _append(header, label, found[3].strip(), "\n")
    return label, is_utf8


def _append(header: dict[str, str], label: str, value: str, separator: str) -> None:
    before = header.get(label)
    if before is None:
        header[label] = value
    elif len(before) < _LONGEST_VALUE:
        header[label] = f"{before}{separator}{value}"


def finite_fields(
    path: StrPath, number: int, names: Sequence[str], fields: list[bytes]
) -> list[float]:
    """Return the fields of a line as finite numbers; the error names the first invalid field."""
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


def read_swf(
    path: StrPath, limit: int = MAX_LOG_BYTES
) -> tuple[pd.DataFrame, dict[str, str], list[str]]:
    """Read all job lines of a log, plain or gzip, unchanged: unknown values are -1.

    Parameters
    ----------
    path : path
        The file.
    limit : int
        Largest number of bytes, after decompression.

    Returns
    -------
    jobs : DataFrame
        A row per job line, with the columns `SWF_FIELDS`.
    header : dict of str to str
        The value of each label; values of a repeated label are joined by line breaks.
    notes : list of str
        Contradictions of header and jobs.

    Raises
    ------
    InputError
        For a line that is neither a job nor a comment, and for a file without jobs.
    """
    header: dict[str, str] = {}
    notes: list[str] = []
    values, number, label = array("d"), 0, ""
    for number, line in numbered_lines(path, limit):
        text = line.removeprefix(b"\xef\xbb\xbf").strip()
        if text.startswith(b";"):
            if values:
                continue
            label, is_utf8 = _read_comment(header, text, label)
            if not is_utf8 and not notes:
                notes.append(f"line {number}: a comment is not UTF-8, read as Latin-1")
        elif text:
            fields = text.split()
            if len(fields) != len(SWF_FIELDS):
                what = f"{len(fields)} fields instead of {len(SWF_FIELDS)}; a job is a line of "
                what += "numbers with blanks between, -1 for what is unknown"
                raise line_error(path, number, what)
            values.extend(finite_fields(path, number, SWF_FIELDS, fields))
    if not values:
        what = "the file ends without a single job line; give a line per job"
        raise line_error(path, max(1, number), what)
    rows = np.frombuffer(values).reshape(-1, len(SWF_FIELDS))
    jobs = pd.DataFrame(rows, columns=list(SWF_FIELDS))
    return jobs, header, notes + _contradictions(header, jobs)


def _contradictions(header: Mapping[str, str], jobs: pd.DataFrame) -> list[str]:
    """Return sentences about contradictions of header and jobs; the jobs are used."""
    notes = []
    counts = {"MaxRecords": len(jobs), "MaxJobs": jobs["job"].nunique()}
    for label, count in counts.items():
        stated = header.get(label, str(count))[:15]
        if stated != str(count):
            notes.append(f"header says {label} {stated!r}, the jobs say {count}")
    widest = max(0.0, jobs["processors"].max())
    if "MaxProcs" in header:
        stated_size = stated_processors(header)
        text = header["MaxProcs"][:40]
        if stated_size is None:
            notes.append(f"header line MaxProcs: {text!r} is not a number of processors; not used")
        elif stated_size < widest:
            notes.append(f"header says MaxProcs {text!r}, the jobs say {widest:.15g}")
    start = header.get("UnixStartTime", "")
    if start.strip("0") not in ("", "-1") and not _UNIX_TIME.fullmatch(start):
        what = "is not a number of seconds since 1970; not used"
        notes.append(f"header line UnixStartTime: {start[:40]!r} {what}")
    whole = jobs["job"][(jobs["job"] >= 0) & ~jobs["status"].isin((2, 3, 4))]
    if again := int(whole.duplicated().sum()):
        notes.append(f"{again} lines repeat the number of an earlier job, and count as jobs too")
    if (jobs["submit"].diff() < 0).any():
        notes.append("submit times are not in order")
    return notes


def stated_processors(header: Mapping[str, str]) -> int | None:
    """Return how many processors the header says that the machine has (MaxProcs), or None.

    MaxNodes is not read: a node may have many processors. More than `MAX_PROCESSORS` are None.

    >>> [stated_processors({"MaxProcs": text}) for text in ("1,024", "10 x 16", "1e9", "many")]
    [1024, 160, None, None]
    """
    found = _COUNT.match(header.get("MaxProcs", ""))
    if found is None:
        return None
    count = int(re.sub(r"\D", "", found[1])) * int(found[2] or 1)
    return count if 0 < count <= MAX_PROCESSORS else None


def processors_of_jobs(jobs: pd.DataFrame) -> pd.Series:
    """Return the processors of each job: those allocated, or those requested if unknown."""
    return jobs["processors"].where(jobs["processors"] > 0, jobs["processors_requested"])


def most_in_use(start: Any, run_time: Any, processors: Any) -> int:
    """Return the largest number of processors in use at once; the machine has at least as many.

    >>> most_in_use([0, 5, 10], [10, 10, 10], [2, 3, 4])
    7
    """
    start = np.asarray(start, dtype=float)
    times = np.concatenate([start + np.asarray(run_time, dtype=float), start])
    changes = np.concatenate([-np.asarray(processors, dtype=float), processors])
    order = np.argsort(times, kind="stable")  # of equal times the ends come first
    return int(changes[order].cumsum().max(initial=0))


def usable_jobs(
    path: StrPath,
    jobs: pd.DataFrame,
    size: Any,
    unfit: Mapping[str, Any],
    most: int | None,
    what: str,
) -> tuple[pd.Index, dict[str, int]]:
    """Return the labels of the usable jobs by submit time, and counts of the others by reason.

    Parameters
    ----------
    path : path
        Named in the error for a log without a usable job.
    jobs : DataFrame
        As of `read_swf`.
    size : Series of float
        Processors, or work, of each job; above 0 for a usable one.
    unfit : mapping of str to Series of bool
        Further reasons against jobs, with the jobs to which each applies.
    most : int or None
        Largest number of jobs that are used.
    what : str
        Name of a usable job, for the error.
    """
    reasons = {  # the first that applies counts
        "part of a job (status 2, 3 or 4)": jobs["status"].isin((2, 3, 4)),
        "no submit time": ~(jobs["submit"] >= 0),
        "run time not above 0": ~(jobs["run_time"] > 0),
        "no processors": size <= 0,
        **unfit,
    }
    why = pd.Series(np.select([*reasons.values()], [*reasons], ""), jobs.index, dtype=object)
    order = jobs["submit"][why == ""].sort_values(kind="stable").index
    if order.empty:
        counts = ", ".join(f"{reason}: {n}" for reason, n in why.value_counts().items())
        remedy = "correct these fields, or MaxProcs of its header"
        raise InputError(f"{os.fspath(path)}: no job that could be a {what} ({counts}); {remedy}")
    why[order[len(order[:most]) :]] = "beyond max_jobs"
    return order[:most], {str(k): int(n) for k, n in why[why != ""].value_counts().items()}


@dataclass(frozen=True)
class Log:
    """The usable jobs of a log, and its header.

    Attributes
    ----------
    jobs : DataFrame
        Usable jobs by submission: submit, wait (NaN where unknown), run_time and estimate (what
        was requested; NaN) in seconds; processors; user, group, queue as texts, "" where unknown.
    nodes : int
        Processors of the machine.
    nodes_from : str
        Source of `nodes`: "argument", "header" (MaxProcs) or "estimate" (`in_use`).
    in_use : int
        The most processors in use at once, where starts are known, and at least those of the
        widest job.
    epoch : Timestamp or None
        The date of second 0, with its time zone.
    header : mapping of str to str
        Value of each label of the header.
    skipped : mapping of str to int
        Number of jobs left out, by reason.
    notes : sequence of str
        Contradictions within the file.
    submit_is_start : bool
        Whether a Note of the header says that submit times are start times.
    """

    jobs: pd.DataFrame
    nodes: int
    nodes_from: str
    in_use: int
    epoch: pd.Timestamp | None
    header: Mapping[str, str]
    skipped: Mapping[str, int]
    notes: Sequence[str]
    submit_is_start: bool


def read_log(path: StrPath, nodes: int | None = None, limit: int = MAX_LOG_BYTES) -> Log:
    """Read a job log in the Standard Workload Format, plain or gzip.

    Jobs without run time, processors or submit time, lines for a part of a job (status 2, 3, 4)
    and jobs wider than the machine are left out and counted.

    Parameters
    ----------
    path : path
        The file.
    nodes : int, optional
        Processors of the machine; default: MaxProcs of the header, or else the most in use at
        once.
    limit : int
        Largest number of bytes, after decompression.

    Returns
    -------
    Log

    Raises
    ------
    InputError
        As of `read_swf`, and for a log without a usable job.
    """
    jobs, header, notes = read_swf(path, limit)
    note = " ".join(header.get("Note", "").casefold().split())
    submit_is_start = bool(_SUBMIT_IS_START.search(note))
    processors = processors_of_jobs(jobs)
    good = (processors > 0) & (processors <= 1e7) & (processors % 1 == 0) & (jobs["run_time"] > 0)
    start = jobs["submit"] + jobs["wait"].where(~((jobs["wait"] < 0) & submit_is_start), 0)
    known = good & ((jobs["wait"] >= 0) | submit_is_start)
    in_use = most_in_use(start[known], jobs["run_time"][known], processors[known])
    in_use = max(in_use, int(processors[good].max()) if good.any() else 1)
    stated = stated_processors(header)
    size, source = in_use, "estimate"
    if nodes:
        size, source = int(nodes), "argument"
    elif stated:
        size, source = stated, "header"
    unfit = {
        "processors not a whole number": processors % 1 != 0,
        f"wider than the machine ({size})": processors > size,
        "submit time beyond 1e11 s; milliseconds?": jobs["submit"] > MAX_SECONDS,
    }
    order, skipped = usable_jobs(path, jobs, processors, unfit, None, "job of this machine")
    used = jobs.loc[order]
    table = pd.DataFrame(
        {
            "submit": used["submit"],
            "wait": used["wait"].where(used["wait"] >= 0),
            "run_time": used["run_time"],
            "processors": processors[order].astype(np.int64),
            "estimate": used["time_requested"].where(used["time_requested"] > 0),
        }
    ).join(_names(used, header))
    table.index = (used.index + 1).rename("row")
    if used["job"].is_unique and ((used["job"] % 1 == 0) & (used["job"].abs() <= MAX_WHOLE)).all():
        table.index = pd.Index(used["job"].astype(np.int64), name="job")
    epoch = _epoch(header, table["submit"])
    return Log(table, size, source, in_use, epoch, header, skipped, notes, submit_is_start)


def _epoch(header: Mapping[str, str], submit: "pd.Series[float]") -> pd.Timestamp | None:
    """Return the date of second 0, in the time zone of the header or UTC."""
    first, last = submit.iloc[[0, -1]]
    if not _UNIX_TIME.fullmatch(header.get("UnixStartTime", "")):
        # submit times that look like seconds since 1970 are taken as dates
        return pd.Timestamp(0, unit="s", tz="UTC") if first >= 5e8 and last < 4e9 else None
    seconds = int(header["UnixStartTime"])
    if seconds + last > MAX_DATE:
        return None
    try:
        zone = ZoneInfo(header["TimeZoneString"].split()[0])
    except (KeyError, IndexError, ValueError, OSError):  # ZoneInfoNotFoundError is a KeyError
        zone = ZoneInfo("UTC")
    return pd.Timestamp(seconds, unit="s", tz=zone)


def _names(jobs: pd.DataFrame, header: Mapping[str, str]) -> pd.DataFrame:
    """Return user, group and queue as texts; a queue has its name in the header."""
    queues = (line.split(None, 1) for line in header.get("Queue", "").splitlines())
    named = {int(q[0]): q[1] for q in queues if len(q) > 1 and re.fullmatch(r"[0-9]{1,9}", q[0])}
    texts = {}
    for column, names in (("user", {}), ("group", {}), ("queue", named)):
        codes, inverse = np.unique(jobs[column].to_numpy(), return_inverse=True)
        words = [names.get(int(code), f"{code:g}") if code >= 0 else "" for code in codes]
        texts[column] = np.array(words, dtype=object)[inverse]
    return pd.DataFrame(texts, index=jobs.index)
