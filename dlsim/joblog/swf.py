"""Job logs in the Standard Workload Format (SWF), version 2.2.

S. Chapin et al., "Benchmarks and standards for the evaluation of parallel job schedulers", JSSPP
1999; Parallel Workloads Archive, "The Standard Workload Format".
"""

import csv
import io
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd

from dlsim.files import MAX_LOG_BYTES, StrPath, field_value, line_error, numbered_lines
from dlsim.joblog.log import MAX_DATE, MAX_PROCESSORS, Log, make_log, no_job_line

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
#: pandas before 3.1 reads numbers exactly only if asked to; later versions always do.
_EXACT: dict[str, Any] = {}
if tuple(map(int, pd.__version__.split(".")[:2])) < (3, 1):
    _EXACT["float_precision"] = "round_trip"
#: Job lines that are parsed at once.
_LINES_AT_ONCE = 2**16


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


def _finite_fields(path: StrPath, number: int, fields: list[bytes]) -> list[float]:
    """Return the fields of a line as finite numbers; the error names the first invalid field."""
    return [
        field_value(path, number, name, field.decode("ascii", "backslashreplace"), "known or -1")
        for name, field in zip(SWF_FIELDS, fields, strict=True)
    ]


def _parse_lines(path: StrPath, numbers: list[int], lines: list[bytes]) -> pd.DataFrame:
    """Return the job lines of a file as finite numbers; `numbers` are those of the lines."""
    data = b"\n".join(lines)
    jobs = pd.DataFrame()
    if not re.search(rb"[\0_]", data):
        with suppress(ValueError):  # pandas' parser does not say where
            jobs = pd.read_csv(
                io.BytesIO(data),
                sep=" ",
                names=list(SWF_FIELDS),
                dtype=float,
                **_EXACT,
                quoting=csv.QUOTE_NONE,
                keep_default_na=False,
            )
    if len(jobs) == len(lines) and np.isfinite(jobs.to_numpy()).all():
        return jobs
    rows = [_finite_fields(path, at, line.split()) for at, line in zip(numbers, lines, strict=True)]
    return pd.DataFrame(rows, columns=list(SWF_FIELDS))


def read_swf(
    path: StrPath, limit: int = MAX_LOG_BYTES
) -> tuple[pd.DataFrame, dict[str, str], list[str]]:
    """Read all job lines of a log, plain or compressed, unchanged: unknown values are -1.

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
    tables: list[pd.DataFrame] = []
    numbers: list[int] = []
    lines: list[bytes] = []
    number, label = 0, ""
    for number, line in numbered_lines(path, limit):
        text = line.removeprefix(b"\xef\xbb\xbf").strip()
        if text.startswith(b";"):
            if tables or lines:
                continue
            label, is_utf8 = _read_comment(header, text, label)
            if not is_utf8 and not notes:
                notes.append(f"line {number}: a comment is not UTF-8, read as Latin-1")
        elif text:
            fields = text.split()
            if len(fields) != len(SWF_FIELDS):
                if lines:  # an earlier line is refused first
                    _parse_lines(path, numbers, lines)
                what = f"{len(fields)} fields instead of {len(SWF_FIELDS)}; a job is a line of "
                what += "numbers with blanks between, -1 for what is unknown"
                raise line_error(path, number, what)
            numbers.append(number)
            lines.append(b" ".join(fields))
            if len(lines) == _LINES_AT_ONCE:
                tables.append(_parse_lines(path, numbers, lines))
                numbers, lines = [], []
    if lines:
        tables.append(_parse_lines(path, numbers, lines))
    if not tables:
        raise no_job_line(path, max(1, number))
    jobs = pd.concat(tables, ignore_index=True)
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


def reasons_against(jobs: pd.DataFrame, size: Any) -> dict[str, Any]:
    """Return the reasons against jobs of `read_swf`, and the jobs to which each applies.

    `size` is what a usable job has more than 0 of: processors, or work.
    """
    return {
        "part of a job (status 2, 3 or 4)": jobs["status"].isin((2, 3, 4)),
        "no submit time": ~(jobs["submit"] >= 0),
        "run time not above 0": ~(jobs["run_time"] > 0),
        "no processors": size <= 0,
    }


def read_swf_log(path: StrPath, nodes: int | None, queue: str, limit: int) -> Log:
    """Read a job log in the Standard Workload Format as `dlsim.joblog.read_log` does.

    Jobs without run time, processors or submit time, lines for a part of a job (status 2, 3, 4)
    and jobs wider than the machine are left out and counted.
    """
    jobs, header, notes = read_swf(path, limit)
    note = " ".join(header.get("Note", "").casefold().split())
    submit_is_start = bool(_SUBMIT_IS_START.search(note))
    processors = processors_of_jobs(jobs)
    wait = jobs["wait"].where(jobs["wait"] >= 0)
    table = pd.DataFrame(
        {
            "job": jobs["job"],
            "submit": jobs["submit"],
            "start": jobs["submit"] + (wait.fillna(0) if submit_is_start else wait),
            "wait": wait,
            "run_time": jobs["run_time"],
            "processors": processors,
            "estimate": jobs["time_requested"].where(jobs["time_requested"] > 0),
        }
    ).join(_names(jobs, header))
    log = make_log(
        path,
        table,
        reasons_against(jobs, processors),
        nodes,
        queue,
        stated=stated_processors(header),
        remedy="correct these fields, or MaxProcs of its header",
    )
    epoch = _epoch(header, log.jobs["submit"])
    return replace(log, epoch=epoch, header=header, notes=notes, submit_is_start=submit_is_start)


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
