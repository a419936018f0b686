"""Logs of GPU clusters in the layouts in which they are published; processors are GPUs.

- Helios (SenseTime; Q. Hu et al., SC 2021), ``cluster_log.csv``: a line of names, of which user,
  vc, gpu_num, state, submit_time, duration and queue (where it is there: the wait) are read.
- PAI (Alibaba; Q. Weng et al., NSDI 2022), ``pai_task_table.csv``, as a rule without names:
  job_name, task_name, inst_num, status, start_time, end_time, plan_cpu, plan_mem, plan_gpu,
  gpu_type. A task is a job that is submitted when it starts, as the wait stands elsewhere; each
  of its instances has plan_gpu / 100 GPUs, rounded up. Neither dates nor users are told.
- Philly (Microsoft; M. Jeon et al., ATC 2019), ``cluster_job_log``, JSON: a list of jobs with
  status, vc, jobid, attempts, submitted_time, user; an attempt has start_time, end_time, detail,
  a list of ip and gpus; fields beside these are of those who write such logs of their own. A job
  ran from its first start to its last end, on as many GPUs as the attempt with most of them.

Dates without a zone are read as UTC. Jobs that failed count with the time that they ran; without
an end they have none.
"""

import os
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from dlsim.errors import InputError
from dlsim.files import DOCUMENT, Fields, StrPath, numbered_lines, read_csv, read_json, row_of
from dlsim.given import anything, items, text

PAI = (
    "job_name", "task_name", "inst_num", "status", "start_time", "end_time", "plan_cpu",
    "plan_mem", "plan_gpu", "gpu_type",
)  # fmt: skip
#: Words for a job that came to its end.
DONE = ("COMPLETED", "Terminated", "Pass")


def read_gpu_log(path: StrPath, limit: int) -> pd.DataFrame | None:
    """Read a published log: submit, run_time, processors, ..; None: it has no such layout."""
    if is_philly(path):
        return _philly(path, read_json(path, min(limit, 8 * DOCUMENT)))
    first = next((line for _, line in numbered_lines(path, limit)), b"").decode(errors="replace")
    names = {name.strip() for name in first.lstrip("\ufeff").split(",")}
    if {"gpu_num", "submit_time"} & names:
        return _helios(path, limit)
    is_bare = Path(path).name.startswith("pai_task_table") and "task_name" not in names
    return _pai(path, limit, PAI if is_bare else ()) if is_bare or "plan_gpu" in names else None


def is_philly(path: StrPath) -> bool:
    """Tell by its name whether a file is Philly's."""
    return Path(path).name == "cluster_job_log" or Path(path).suffix == ".json"


def _noted(table: pd.DataFrame, states: Iterable[Any]) -> pd.DataFrame:
    """Say how many jobs did not come to their end."""
    if cut := sum(state not in DONE for state in states):
        table.attrs["notes"] = [
            f"{cut} of {len(table)} jobs failed, were cancelled or did not end; they count with "
            "the time that they ran"
        ]
    return table


def _helios(path: StrPath, limit: int) -> pd.DataFrame:
    wanted = dict.fromkeys(("user", "vc", "state", "submit_time"), "any")
    rules = wanted | {"gpu_num": "nonnegative", "duration": "nonnegative or blank"}
    rows = read_csv(path, rules, {"queue": "nonnegative or blank"}, limit=limit, numbered=True)
    table = rows.rename(columns={"queue": "wait", "vc": "queue", "submit_time": "submit",
                                 "duration": "run_time", "gpu_num": "processors"})  # fmt: skip
    known = ["submit", "run_time", "processors", "wait", "user", "queue"]
    return _noted(table[table.columns.intersection(known)], rows["state"])


def _pai(path: StrPath, limit: int, names: tuple[str, ...]) -> pd.DataFrame:
    numbers = ("inst_num", "start_time", "end_time", "plan_gpu")
    rules = dict.fromkeys(PAI, "any") | dict.fromkeys(numbers, "nonnegative or blank")
    rows = read_csv(path, rules, limit=limit, numbered=True, names=names)
    start, end = (rows[name].where(rows[name] > 0) for name in ("start_time", "end_time"))
    table = pd.DataFrame({
        "submit": start.astype(str).where(start.notna(), ""), "run_time": end - start,
        "processors": (rows["inst_num"] * np.ceil(rows["plan_gpu"] / 100)).fillna(0.0),
        "group": rows["task_name"], "queue": rows["gpu_type"],
    })  # fmt: skip
    return _noted(table, rows["status"])


def _date(name: str, value: Any) -> datetime | None:
    """Return a date; None where none was recorded."""
    if value in (None, "", "None"):
        return None
    try:
        date = datetime.fromisoformat(value)
    except (ValueError, TypeError):
        rule = "must be a date such as 2017-10-07 01:12:09, or null"
        raise InputError(f"{name} {rule}, got {value!r}") from None
    return date if date.tzinfo else date.replace(tzinfo=UTC)


_JOB: Fields = {"status": text, "vc": anything, "jobid": anything, "attempts": items,
               "submitted_time": _date, "user": anything}  # fmt: skip
_ATTEMPT: Fields = {"start_time": _date, "end_time": _date, "detail": items}
_HOST: Fields = {"ip": anything, "gpus": items}


def _row(where: str, given: Any, wanted: Fields) -> Any:
    """Read the fields that are wanted, whatever stands beside them."""
    if isinstance(given, dict):
        given = {name: value for name, value in given.items() if name in wanted}
    return row_of(where, given, wanted)


def _philly(path: StrPath, document: Any) -> pd.DataFrame:
    rows, states, where = [], [], os.fspath(path)
    for k, given in enumerate(items(f"{where}: the document", document), 1):
        job, most = _row(f"{where}, job {k}", given, _JOB), 0
        attempts = [_row(f"{job.where}, attempt {n}", one, _ATTEMPT)
                    for n, one in enumerate(job["attempts"], 1)]  # fmt: skip
        for one in attempts:
            hosts = [_row(f"{one.where}, detail", host, _HOST) for host in one["detail"]]
            most = max(most, sum(len(host["gpus"]) for host in hosts))
        submit, end = job["submitted_time"], attempts[-1]["end_time"] if attempts else None
        start = next((one["start_time"] for one in attempts if one["start_time"]), None)
        rows.append((
            submit.isoformat() if submit else "", float(most),
            (end - start).total_seconds() if start and end else np.nan,
            (start - submit).total_seconds() if start and submit else np.nan,
            str(job["user"] or ""), str(job["vc"] or ""),
        ))  # fmt: skip
        states.append(job["status"])
    names = ["submit", "processors", "run_time", "wait", "user", "queue"]
    return _noted(pd.DataFrame(rows, columns=names, index=range(1, len(rows) + 1)), states)
