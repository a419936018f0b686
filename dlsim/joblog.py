"""Job logs in the Standard Workload Format 2.2, as hostile as any file that is read.

S. Chapin et al., "Benchmarks and standards for the evaluation of parallel job schedulers", JSSPP
1999; Parallel Workloads Archive, "The Standard Workload Format".
"""

import math
import os
import re
from array import array
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from dlsim.errors import InputError
from dlsim.files import LOG, StrPath, field_value, numbered_lines, refusal

#: The fields of a job line, in the order of the Standard Workload Format 2.2.
SWF_FIELDS = tuple(
    "job submit wait run_time processors cpu_time memory processors_requested time_requested "
    "memory_requested status user group executable queue partition preceding_job think_time".split()
)

#: Where joining the values of one label ends: each costs a copy of those before it.
_LONGEST_NOTE = 2**16


def _swf_comment(header: dict[str, str], text: bytes) -> bool:
    """Take a `; Label: value` line into the header; tell whether it was UTF-8."""
    try:
        comment, clean = text.decode(), True
    except UnicodeDecodeError:
        comment, clean = text.decode("latin-1"), False
    found = re.match(r";\s*([A-Z]\w*):\s*(.*)", comment)
    if found:
        label, value = found[1], found[2].strip()
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
        field_value(path, number, name, field.decode("ascii", "backslashreplace"), "number")
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
                what = f"{len(fields)} fields instead of {len(SWF_FIELDS)}"
                raise refusal(path, number, what)
            values.extend(finite(path, number, SWF_FIELDS, fields))
    if not values:
        raise refusal(path, max(1, number), "the file ends without a single job line")
    rows = np.frombuffer(values).reshape(-1, len(SWF_FIELDS))
    jobs = pd.DataFrame(rows, columns=list(SWF_FIELDS))
    return jobs, header, notes + _swf_lies(header, jobs)


def usable_jobs(
    path: StrPath, jobs: pd.DataFrame, size: Any, fits: Any, most: int | None, what: str
) -> tuple[pd.Index, dict[str, int]]:
    """Return the jobs that can be what a reader makes of them, by submit time, and the rest.

    A job needs a `size` above 0 and values in range (`fits`); at most so many are taken. Of
    those that are skipped the reasons are counted.
    """
    why = pd.Series("", index=jobs.index, dtype=object)
    for reason, bad in (  # the first one counts
        ("part of a job (status 2, 3 or 4)", jobs["status"].isin((2, 3, 4))),
        ("no submit time", jobs["submit"] < 0),
        ("run time not above 0", jobs["run_time"] <= 0),
        ("no processors", size <= 0),
        ("value out of range", ~fits),
    ):
        why[bad & (why == "")] = reason
    order = jobs["submit"][why == ""].sort_values(kind="stable").index
    if order.empty:
        counts = ", ".join(f"{reason}: {n}" for reason, n in why.value_counts().items())
        raise InputError(f"{os.fspath(path)}: no job that could be a {what} ({counts})")
    why[order[len(order[:most]) :]] = "beyond max_jobs"
    return order[:most], {str(k): int(n) for k, n in why[why != ""].value_counts().items()}
