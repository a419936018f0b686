"""Job logs of clusters: the Standard Workload Format, CSV, and the accounting of Slurm."""

from dlsim.joblog.log import Log, count_reasons, first_reason, most_in_use, order_usable
from dlsim.joblog.read import FORMATS, read_log
from dlsim.joblog.slurm import COUNTED, SACCT_COMMAND
from dlsim.joblog.swf import (
    SWF_FIELDS,
    processors_of_jobs,
    read_swf,
    reasons_against,
    stated_processors,
)

__all__ = [
    "COUNTED",
    "FORMATS",
    "SACCT_COMMAND",
    "SWF_FIELDS",
    "Log",
    "count_reasons",
    "first_reason",
    "most_in_use",
    "order_usable",
    "processors_of_jobs",
    "read_log",
    "read_swf",
    "reasons_against",
    "stated_processors",
]
