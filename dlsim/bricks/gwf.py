"""Job logs in the Grid Workload Format of the Grid Workloads Archive."""

from array import array
from typing import Any

import numpy as np
import pandas as pd

from dlsim import files
from dlsim.joblog import finite

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
        values.extend(finite(path, number, GWF_NUMBERS, some))
        values.append(users.setdefault(fields[_AT["user"]].strip(), float(len(users) - 1)))
    if not values:
        raise files.refusal(path, max(1, number), "the file ends without a single job line")
    rows: Any = np.frombuffer(values).reshape(-1, len(_AT))
    jobs = pd.DataFrame(rows, columns=list(_AT))
    late = bool((jobs["submit"].diff() < 0).any())
    return jobs, {}, ["submit times are not in order"] * late
