"""The baselines of every job log: rigid jobs, first come first served or EASY backfilling."""

from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dlsim.errors import InputError
from dlsim.given import Floats, column, option, table, whole
from dlsim.kernel import records
from dlsim.realtime.core.rigid import serve
from dlsim.realtime.core.state import BLOCK

#: How the processors are shared out: strictly in line, or with those who fit passing (EASY).
RIGID = ("fcfs", "easy")


class Work(NamedTuple):
    """What the kernel knows of the jobs, and its room to work in."""

    submit: Floats
    run: Floats
    estimate: Floats
    processors: NDArray[np.int64]
    start: Floats
    before: NDArray[np.int64]  # who stands before and after in line; -1 for nobody
    after: NDArray[np.int64]
    promised: Floats  # estimated ends of who runs, in order,
    who: NDArray[np.int64]  # and who that is
    heap: NDArray[np.void]  # real ends


def run_rigid(jobs: pd.DataFrame, nodes: int, policy: str = "easy") -> pd.Series:
    """Start rigid jobs on a machine of their own, and return the instants.

    `jobs` have submit, run_time, processors, in order of submission; and estimate, the run time
    that their users expect (at least the run time, and that where it is NaN). First come first
    served, or EASY backfilling (`dlsim.realtime.core.rigid`).
    """
    option("policy", policy, RIGID)
    nodes, m = whole("nodes", nodes), len(table("jobs", jobs, ("submit", "run_time", "processors")))
    of: Any = {"row": "job", "labels": jobs.index}
    submit = column("submit", jobs["submit"], **of)
    run = column("run_time", jobs["run_time"], above=True, **of)
    wide = column("processors", jobs["processors"], 1, nodes, is_whole=True, **of)
    known = jobs["run_time"]
    if "estimate" in jobs:
        known = table("jobs", jobs, ["estimate"])["estimate"].fillna(known)
    estimate = column("estimate", known, **of)
    if (submit[1:] < submit[:-1]).any():
        raise InputError(
            "jobs must come in the order of submission; use jobs.sort_values('submit',"
            " kind='stable')"
        )
    before, after, who = np.empty((3, m + 1), dtype=np.int64)
    longest = np.maximum(estimate, run)
    start, promised, heap = np.full(m, np.nan), np.empty(m + 1), records(m + 1, BLOCK)
    w = Work(submit, run, longest, wide, start, before, after, promised, who, heap)
    serve(policy == "easy", nodes, w)
    return pd.Series(w.start, index=jobs.index, name="start")
