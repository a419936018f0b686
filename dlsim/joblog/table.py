"""Job logs as a CSV table with the columns submit, run_time and processors."""

import math
import os
from collections.abc import Collection

from dlsim.errors import InputError
from dlsim.files import StrPath, read_csv
from dlsim.joblog.log import Log, make_log

#: Rule of each column that a table must have, and may have.
REQUIRED_COLUMNS = {"submit": "nonnegative", "run_time": "nonnegative", "processors": "whole"}
OPTIONAL_COLUMNS = {
    **dict.fromkeys(("wait", "estimate"), "known, -1 or blank"),
    **dict.fromkeys(("user", "group", "queue"), "any"),
}


def read_table_log(
    path: StrPath, nodes: int | None, queue: str, ignore: Collection[str], limit: int
) -> Log:
    """Read a job log from a CSV table as `dlsim.joblog.read_log` does."""
    table = read_csv(path, REQUIRED_COLUMNS, OPTIONAL_COLUMNS, limit=limit)
    known = [*REQUIRED_COLUMNS, *OPTIONAL_COLUMNS]
    unknown = [name for name in map(str, table) if name not in known and name not in ignore]
    if unknown:
        remedy = f"correct their names, or leave them out with ignore={unknown}"
        raise InputError(
            f"{os.fspath(path)}: line 1: columns that are not known: {', '.join(unknown)}; "
            f"{remedy}; known are {', '.join(known)}"
        )
    jobs = table.reindex(columns=known)
    for name in ("user", "group", "queue"):
        jobs[name] = jobs[name].astype(object).fillna("")
    for name in ("wait", "estimate"):
        jobs[name] = jobs[name].where(jobs[name] >= 0)
    jobs["start"] = jobs["submit"] + jobs["wait"]
    jobs["job"] = math.nan  # a table does not number its jobs
    reasons = {
        "run time not above 0": ~(jobs["run_time"] > 0),
        "no processors": jobs["processors"] <= 0,
    }
    return make_log(path, jobs, reasons, nodes, queue)
