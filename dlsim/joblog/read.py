"""Reading of a job log of any format that is known, recognised by its content."""

import re
from collections.abc import Collection
from itertools import islice

from dlsim.errors import InputError
from dlsim.files import MAX_LOG_BYTES, StrPath, line_error, numbered_lines
from dlsim.joblog.log import Log, cut_log, no_job_line
from dlsim.joblog.slurm import COUNTED, FIRST_LINES, SACCT_COMMAND, header_of, read_slurm_log
from dlsim.joblog.swf import read_swf_log
from dlsim.joblog.table import REQUIRED_COLUMNS, read_table_log
from dlsim.validate import one_of, text, whole

#: Formats of job logs, with what each is.
FORMATS = {
    "swf": "the Standard Workload Format",
    "csv": f"a table with the columns {', '.join(REQUIRED_COLUMNS)}",
    "slurm": "the accounting of Slurm, as sacct --parsable2 writes it",
}
_NUMBERS = re.compile(rb"[-+.\deE\s]+")


def recognise(path: StrPath, limit: int = MAX_LOG_BYTES) -> str:
    """Return the format of a job log by its first lines, whatever the file is called."""
    stripped = (
        (number, line.removeprefix(b"\xef\xbb\xbf").strip())
        for number, line in numbered_lines(path, limit)
    )
    lines = dict(islice(((number, line) for number, line in stripped if line), FIRST_LINES))
    if not lines:
        raise no_job_line(path)
    number, first = next(iter(lines.items()))
    names = {name.strip(b' "').lower() for name in re.split(rb"[,;\t|]", first)}
    if first.startswith(b";") or _NUMBERS.fullmatch(first):
        return "swf"
    of_table = {name.encode() for name in REQUIRED_COLUMNS}
    if any(header_of(line)[0] for line in lines.values()) and not of_table <= names:
        return "slurm"
    if names & of_table:
        return "csv"
    export = f"export it again: {SACCT_COMMAND}"
    if first.startswith((b"{", b"[")):
        raise line_error(path, number, f"JSON; of Slurm's accounting, {export}")
    if re.match(rb"(?i)JobID(Raw)? ", first):
        raise line_error(path, number, f"sacct without --parsable2, whose fields are cut; {export}")
    if first.count(b"|") > 2:
        raise line_error(path, number, f"sacct without names of columns; {export}")
    known = ", ".join(f"{name} ({what})" for name, what in FORMATS.items())
    what = "neither a job nor names of columns that are known; a log is one of"
    raise line_error(path, number, f"{what} {known}; say format= if it is one of them")


def read_log(
    path: StrPath,
    format: str = "auto",  # noqa: A002
    nodes: int | None = None,
    ignore: Collection[str] = (),
    *,
    queue: str = "",
    count: str = "processors",
    since: str = "",
    until: str = "",
    limit: int = MAX_LOG_BYTES,
) -> Log:
    """Read a job log: the Standard Workload Format, CSV, or the accounting of Slurm.

    Jobs that cannot be used, and jobs wider than the machine, are left out and counted by reason.
    Compressed files (gzip, bz2, xz, zip with one file; zst where Python has it) and UTF-16 are
    read.

    Parameters
    ----------
    path : path
        The file.
    format : str
        One of `FORMATS`; "auto" recognises it by the content of the file.
    nodes : int, optional
        Processors of the machine; None or 0: MaxProcs of an SWF header, or else the most in use at
        once.
    ignore : collection of str
        Columns of a CSV table that are not read; other unknown columns are refused. Of Slurm's
        accounting, only known columns are read.
    queue : str
        The only queue (Slurm: partition) whose jobs are used; "": all.
    count : str
        What counts as a processor: one of `COUNTED`; "gpus" and "nodes" are known for Slurm only.
    since, until : str
        Only jobs submitted from `since` on and before `until` are used: dates in the time zone of
        the log, or seconds as in the column submit of its jobs; "": no limit.
    limit : int
        Largest number of bytes, after decompression.

    Returns
    -------
    Log

    Raises
    ------
    InputError
        For a file of no known format, a line of an SWF or CSV file that is no job, an unknown
        column, and a log without a usable job.

    References
    ----------
    S. Chapin et al., "Benchmarks and standards for the evaluation of parallel job schedulers",
    JSSPP 1999; Slurm, "sacct".
    """
    one_of("format", format, ("auto", *FORMATS))
    one_of("count", count, COUNTED)
    nodes = None if nodes is None else whole("nodes", nodes, 0)
    text("queue", queue)
    if format == "auto":
        format = recognise(path, limit)  # noqa: A001
    if format == "slurm":
        log = read_slurm_log(path, nodes, queue, count, limit)
    elif count != "processors":
        what = f"count={count!r} needs the accounting of Slurm, and this is {FORMATS[format]}"
        raise InputError(f"{path}: {what}; leave count out")
    elif format == "csv":
        log = read_table_log(path, nodes, queue, ignore, limit)
    else:
        log = read_swf_log(path, nodes, queue, limit)
    return cut_log(path, log, since, until)
