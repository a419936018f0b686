"""The usable jobs of a log, whatever its format; what is left out is counted by reason."""

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from dlsim.errors import InputError
from dlsim.files import StrPath, line_error
from dlsim.validate import one_of, text

#: Largest submit time in seconds; larger numbers are milliseconds, or not times.
MAX_SECONDS = 1e11
#: Last second since 1970 of dates that are shown (in 2248); those of pandas end in 2262.
MAX_DATE = 8.8e9
#: Most processors of a machine; the largest machines of 2025 have 2e7.
MAX_PROCESSORS = 10**9
#: Largest whole number that a float holds exactly.
MAX_WHOLE = 2**53
#: Columns of the jobs of a log.
_LOG_COLUMNS = "submit wait run_time processors estimate user group queue".split()


@dataclass(frozen=True)
class Log:
    """The usable jobs of a log, and its header.

    Attributes
    ----------
    jobs : DataFrame
        Usable jobs by submission: submit, wait (NaN where unknown), run_time and estimate (what
        was requested; NaN) in seconds; processors; user, group, queue as texts, "" where unknown.
        The index has the job numbers of the log if they differ, or else the rows from 1 on.
    nodes : int
        Processors of the machine (or GPUs, or nodes, if these are counted).
    nodes_from : str
        Source of `nodes`: "argument", "header" (MaxProcs) or "estimate" (`in_use`).
    in_use : int
        The most processors in use at once, where starts are known, and at least those of the
        widest job.
    skipped : mapping of str to int
        Number of jobs left out, by reason.
    epoch : Timestamp or None
        The date of second 0, with its time zone.
    header : mapping of str to str
        Value of each label of the header.
    notes : sequence of str
        Contradictions within the file.
    submit_is_start : bool
        Whether a Note of the header says that submit times are start times.
    """

    jobs: pd.DataFrame
    nodes: int
    nodes_from: str
    in_use: int
    skipped: Mapping[str, int]
    epoch: pd.Timestamp | None = None
    header: Mapping[str, str] = field(default_factory=dict)
    notes: Sequence[str] = ()
    submit_is_start: bool = False


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


def first_reason(reasons: Mapping[str, Any], index: pd.Index) -> pd.Series:
    """Return for each job the first reason that applies to it, "" for a usable job."""
    masks = [np.asarray(mask, dtype=bool) for mask in reasons.values()]
    return pd.Series(np.select(masks, [*reasons], ""), index, dtype=object)


def count_reasons(why: pd.Series) -> dict[str, int]:
    """Return the number of jobs that are left out, by reason."""
    return {str(reason): int(n) for reason, n in why[why != ""].value_counts().items()}


def no_job_line(path: StrPath, line: int = 1) -> InputError:
    """Return the error of a file without a job."""
    return line_error(path, line, "the file ends without a single job line; give a line per job")


def order_usable(
    path: StrPath,
    submit: "pd.Series[float]",
    why: pd.Series,
    what: str = "job of this machine",
    remedy: str = "correct these fields",
) -> pd.Index:
    """Return the labels of the usable jobs by submit time.

    Raises
    ------
    InputError
        For a log without a usable job; `what` names such a job, and `remedy` says what to do.
    """
    if why.empty:
        raise no_job_line(path)
    order = submit[why == ""].sort_values(kind="stable").index
    if order.empty:
        counts = ", ".join(f"{reason}: {n}" for reason, n in count_reasons(why).items())
        raise InputError(f"{os.fspath(path)}: no job that could be a {what} ({counts}); {remedy}")
    return order


def make_log(
    path: StrPath,
    jobs: pd.DataFrame,
    reasons: Mapping[str, Any],
    nodes: int | None,
    queue: str,
    *,
    stated: int | None = None,
    remedy: str = "correct these fields",
) -> Log:
    """Return the log of the jobs against which there is no reason.

    Parameters
    ----------
    path : path
        The file, named in errors.
    jobs : DataFrame
        The columns of `Log`, and job (a number, or a text) and start (NaN where unknown).
    reasons : mapping of str to Series of bool
        Reasons against jobs, with the jobs to which each applies; the first counts.
    nodes, stated : int, optional
        Processors of the machine as the user says, and as the header does.
    queue : str
        The only queue whose jobs are used, or "" for all.
    remedy : str
        What to do about a log without a usable job.
    """
    reasons = {**reasons, "processors not a whole number": jobs["processors"] % 1 != 0}
    reasons[f"more than {MAX_PROCESSORS:,} processors"] = jobs["processors"] > MAX_PROCESSORS
    reasons["submit time beyond 1e11 s; milliseconds?"] = jobs["submit"] > MAX_SECONDS
    if queue:
        queues = sorted({str(name) for name in jobs["queue"].unique()} - {""})
        one_of(f"{os.fspath(path)}: queue", queue, queues)
        reasons[f"not in the queue {queue}"] = jobs["queue"] != queue
    why = first_reason(reasons, jobs.index)
    used = jobs[why == ""]
    ran = used[used["start"].notna()]
    in_use = most_in_use(ran["start"], ran["run_time"], ran["processors"])
    in_use = max(in_use, int(used["processors"].max())) if len(used) else 1
    size, source = in_use, "estimate"
    if nodes:
        size, source = nodes, "argument"
    elif stated and not queue:  # the header tells of the whole machine
        size, source = stated, "header"
    why[(why == "") & (jobs["processors"] > size)] = f"wider than the machine ({size})"
    used = jobs.loc[order_usable(path, jobs["submit"], why, remedy=remedy)]
    table = used[_LOG_COLUMNS].astype({"processors": np.int64})
    table.index = _job_labels(used)
    return Log(table, size, source, in_use, count_reasons(why))


def cut_log(path: StrPath, log: Log, since: str = "", until: str = "") -> Log:
    """Return the log of the jobs that were submitted from `since` on and before `until`.

    Each is a date of the log's time zone, a number of seconds on the clock of `log.jobs`, or "".
    The others are counted as left out.
    """
    submit, reasons = log.jobs["submit"], dict[str, Any]()
    if text("since", since):
        reasons[f"submitted before {since}"] = submit < _instant(path, "since", since, log.epoch)
    if text("until", until):
        name = f"submitted at {until} or later"
        reasons[name] = submit >= _instant(path, "until", until, log.epoch)
    if not reasons:
        return log
    why = first_reason(reasons, log.jobs.index)
    jobs, skipped = log.jobs[why == ""], {**log.skipped, **count_reasons(why)}
    if jobs.empty:
        counts = ", ".join(f"{reason}: {n}" for reason, n in count_reasons(why).items())
        raise InputError(f"{os.fspath(path)}: no job is left ({counts}); change since or until")
    start = jobs["submit"] + (jobs["wait"].fillna(0) if log.submit_is_start else jobs["wait"])
    ran = jobs[start.notna()]
    in_use = most_in_use(start[start.notna()], ran["run_time"], ran["processors"])
    in_use = max(in_use, int(jobs["processors"].max()))
    nodes = in_use if log.nodes_from == "estimate" else log.nodes
    return replace(log, jobs=jobs, skipped=skipped, in_use=in_use, nodes=nodes)


def _instant(path: StrPath, name: str, given: str, epoch: pd.Timestamp | None) -> float:
    """Return a date, or a number of seconds, on the clock of a log whose second 0 is `epoch`."""
    if re.fullmatch(r"\s*-?\d{1,15}(\.\d*)?\s*", given):
        return float(given)
    rule = "a date such as 2025-03-01 or 2025-03-01T12:00, or a number of seconds"
    try:
        date = pd.Timestamp(given)
        date = date if date.tz or epoch is None else date.tz_localize(epoch.tz)
    except ValueError as error:  # also OutOfBoundsDatetime, and an hour that the clock left out
        raise InputError(f"{name} must be {rule}, got {given!r}") from error
    if date is pd.NaT:
        raise InputError(f"{name} must be {rule}, got {given!r}")
    if epoch is None:
        what = f"{os.fspath(path)}: the log has no dates"
        raise InputError(f"{what}; give {name} in seconds, as in its column submit")
    return (date - epoch).total_seconds()


def _job_labels(used: pd.DataFrame) -> pd.Index:
    """Return the job numbers if they differ, as whole numbers where they are, or else the rows."""
    job = used["job"]
    rows = pd.Index(used.index + 1, name="row")
    if not job.is_unique:
        return rows
    if pd.api.types.is_numeric_dtype(job):
        is_whole = ((job % 1 == 0) & (job.abs() <= MAX_WHOLE)).all()
        return pd.Index(job.astype(np.int64), name="job") if is_whole else rows
    if job.str.fullmatch("[1-9][0-9]{0,14}").all():
        return pd.Index(job.astype(np.int64), name="job")
    return pd.Index(job, name="job")
