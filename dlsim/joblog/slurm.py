"""The accounting of Slurm: what ``sacct --parsable2`` (or ``-P``) writes.

Slurm, "sacct": https://slurm.schedmd.com/sacct.html, sections "Job Accounting Fields" and "Job
State Codes".
"""

import csv
import io
import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dlsim.files import StrPath, line_error, numbered_lines
from dlsim.joblog.log import MAX_DATE, MAX_SECONDS, Log, first_reason, make_log
from dlsim.validate import one_of

#: Names of the columns that are read; of several, the first that the export has. The first of each
#: stands in `SACCT_COMMAND`.
SACCT_COLUMNS = {
    "job": ("JobID", "JobIDRaw"),
    "user": ("User",),
    "group": ("Group",),
    "queue": ("Partition",),
    "state": ("State",),
    "submit": ("Submit",),
    "start": ("Start",),
    "end": ("End",),
    "run_time": ("ElapsedRaw", "Elapsed"),
    "estimate": ("TimelimitRaw", "Timelimit"),
    "processors": ("AllocCPUS", "NCPUS"),
    "nodes": ("NNodes", "AllocNodes"),
    "resources": ("AllocTRES",),
}
#: How the accounting is exported. Without -S, sacct knows jobs since midnight only; with -X, it
#: leaves out the steps of jobs; in UTC, no hour is missing or comes twice.
SACCT_COMMAND = "TZ=UTC sacct -a -X --parsable2 -S 2025-01-01 -E 2025-07-01 -o " + ",".join(
    names[0] for names in SACCT_COLUMNS.values()
)
#: What is counted as a processor: the columns that say it, and its name in AllocTRES.
COUNTED = {
    "processors": (("processors", "resources"), "cpu"),
    "gpus": (("resources",), "gres/gpu"),
    "nodes": (("nodes", "resources"), "node"),
}

#: States of jobs that run, for exports without the column End.
_RUNNING = frozenset("RUNNING SUSPENDED COMPLETING CONFIGURING RESIZING STOPPED SIGNALING".split())
#: States of jobs that hold processors whatever End says: sacct -T writes the end of its window.
_ALWAYS_RUNNING = frozenset(["RUNNING", "R"])
#: States of jobs that have not started, even if Start says when they are expected to.
_WAITING = frozenset(["PENDING", "PD"])
#: Days, and up to three numbers.
_NUMBER = r"(\d{1,12}(?:\.\d*)?)"
_DURATION = re.compile(rf"(?:(\d{{1,6}})-)?{_NUMBER}(?::{_NUMBER})?(?::{_NUMBER})?")
#: Earliest date, in seconds since 1970, that is taken for one (in 1973).
_FIRST_DATE = 1e8
_LINES_AT_ONCE = 2**16
#: Lines at the beginning of a file, without blank ones, of which one names the columns; others
#: before it are such as warnings of sacct.
FIRST_LINES = 20
#: Separator of fields if that of the file has several letters (``--delimiter``).
_UNIT_SEPARATOR = b"\x1f"
#: Separators of tables that a spreadsheet saved, in which fields may be quoted.
_OF_SPREADSHEETS = (b",", b";", b"\t")


def header_of(line: bytes) -> tuple[list[str], bytes]:
    """Return the names of columns and their separator if a line holds those of sacct.

    >>> header_of(b"JobID|State|End")
    (['JobID', 'State', 'End'], b'|')
    """
    text = line.removeprefix(b"\xef\xbb\xbf").strip(b" \r\n")
    separator = re.match(rb"\w+([^\w ]+)\w", text)
    if separator is None or not re.search(rb"(?i)\bJobID(Raw)?\b", text):
        return [], b""
    known = {name.casefold(): name for names in SACCT_COLUMNS.values() for name in names}
    names = [name.decode("latin-1").strip() for name in text.split(separator[1])]
    return [known.get(name.casefold(), name) for name in names], separator[1]


def _duration(text: str, unit: float) -> float:
    """Return the seconds of D-HH:MM:SS, MM:SS or a number of units; NaN for what has no limit.

    >>> [_duration(text, 60) for text in ("1-02:00:00", "30:00", "90", "UNLIMITED")]
    [93600.0, 1800.0, 5400.0, nan]
    """
    found = _DURATION.fullmatch(text.strip())
    if found is None:
        return math.nan
    days, *given = found.groups()
    parts = [float(part) for part in given if part]
    if len(parts) == 1 and not days:
        return unit * parts[0]
    before = 0 if days else 3 - len(parts)  # with days, hours come first, else seconds last
    hours, minutes, seconds = ([0.0] * before + parts + [0.0, 0.0])[:3]
    return 86400 * float(days or 0) + 3600 * hours + 60 * minutes + seconds


def _count(text: str) -> float:
    """Return a count, perhaps in thousands as 1K; NaN for what is none."""
    found = re.fullmatch(r"(\d{1,15}(?:\.\d{1,9})?)([KM]?)", text.strip())
    return float(found[1]) * {"": 1, "K": 1e3, "M": 1e6}[found[2]] if found else math.nan


def _resource(text: str, name: str) -> float:
    """Return how much of a resource a job has by its AllocTRES, of all types together.

    >>> [_resource("cpu=8,gres/gpu:a100=4,gres/gpu=4", name) for name in ("cpu", "gres/gpu")]
    [8.0, 4.0]
    >>> _resource("gres/gpu:a100=1,gres/gpu:v100=2", "gres/gpu")
    3.0
    """
    amounts = dict(entry.rpartition("=")[::2] for entry in text.replace(",", " ").split())
    if name in amounts:
        return _count(amounts[name])
    return sum(_count(amount) for key, amount in amounts.items() if key.startswith(f"{name}:"))


def _each(texts: pd.Series, value_of: Callable[[str], Any], kind: type = float) -> NDArray[Any]:
    """Return a function of each text, computed once for equal ones."""
    codes, different = pd.factorize(texts)
    return np.array([value_of(text) for text in different], dtype=kind)[codes]


def _seconds(texts: pd.Series) -> NDArray[np.float64]:
    """Return dates as seconds since 1970, NaN for Unknown and None.

    A date is a number of seconds (``SLURM_TIME_FORMAT=%s``), or as in ISO 8601, in UTC if it has
    no offset.
    """
    is_number = np.array([text.isdecimal() for text in texts], dtype=bool)
    seconds = np.full(len(texts), math.nan)
    seconds[is_number] = texts[is_number].astype(float)
    dates = pd.to_datetime(texts[~is_number], format="ISO8601", utc=True, errors="coerce")
    seconds[~is_number] = (dates - pd.Timestamp(0, tz="UTC")) / pd.Timedelta(seconds=1)
    seconds[~((seconds >= _FIRST_DATE) & (seconds <= MAX_DATE))] = math.nan
    return seconds


def _unquoted(line: bytes, separator: bytes) -> bytes:
    """Return a line without quotes; blanks stand for separators within the fields.

    >>> _unquoted(b'1,"cpu=8,node=1"', b",")
    b'1,cpu=8 node=1'
    """
    one = separator.decode("latin-1")
    fields = next(csv.reader([line.decode("latin-1")], delimiter=one))
    return one.join(field.replace(one, " ") for field in fields).encode("latin-1")


def _batches(
    path: StrPath, limit: int, unlike: Counter[str]
) -> Iterator[tuple[int, list[str], bytes, list[bytes]]]:
    """Yield lines of jobs with the names and the separator of their fields and the header's line.

    Lines of another number of fields (a name with a separator or a line break in it, a line cut
    off) are counted in `unlike`. Names of columns may come again, as in files put together.
    """
    at, names, separator, before = 0, list[str](), b"", 0
    lines: list[bytes] = []
    for number, line in numbered_lines(path, limit):
        text = line.rstrip(b" \r\n")
        if not names or b"JobID" in text:
            new_names, new_separator = header_of(text)
            if new_names:
                if lines:
                    yield at, names, separator, lines
                at, names, separator, lines = number, new_names, new_separator, []
                continue
        if not text:
            continue
        if not names:
            before += 1
            if before == FIRST_LINES:
                break
            continue
        if separator in _OF_SPREADSHEETS and b'"' in text:
            text = _unquoted(text, separator)
        if text.count(separator) != len(names) - 1 or b"\0" in text or b"\r" in text:
            unlike[f"line without the {len(names)} fields of its header"] += 1
            continue
        lines.append(text)
        if len(lines) == _LINES_AT_ONCE:
            yield at, names, separator, lines
            lines = []
    if not names:
        what = "no line names columns with bars between, JobID among them; export the accounting "
        raise line_error(path, 1, f"{what}with its header: {SACCT_COMMAND}")
    yield at, names, separator, lines


def _find_columns(path: StrPath, line: int, names: Sequence[str], count: str) -> dict[str, int]:
    """Return the places of the columns to read; refuse an export without the needed ones."""
    places = {}
    for key, choice in SACCT_COLUMNS.items():
        if found := [name for name in choice if name in names]:
            places[key] = names.index(found[0])
    needed = [("job",), ("submit",), ("run_time", "end"), COUNTED[count][0]]
    if "run_time" not in places:
        needed.append(("start",))
    for keys in needed:
        if not any(key in places for key in keys):
            first, *others = [name for key in keys for name in SACCT_COLUMNS[key]]
            nor = f", nor {' or '.join(others)}" if others else ""
            what = f"no such column{nor}; export it again: {SACCT_COMMAND}"
            raise line_error(path, line, what, first)
    counted = next(key for key in COUNTED[count][0] if key in places)
    unread = {key for keys, _ in COUNTED.values() for key in keys} - {counted}
    return {key: place for key, place in places.items() if key not in unread}


def _parse_batch(
    places: Mapping[str, int], separator: bytes, lines: list[bytes], count: str
) -> pd.DataFrame:
    """Return the jobs of lines: times in seconds since 1970, NaN for what is unknown."""
    data = b"\n".join(lines)
    if len(separator) > 1:
        data = data.replace(separator, _UNIT_SEPARATOR)
        separator = _UNIT_SEPARATOR
    fields = pd.read_csv(
        io.BytesIO(data),
        sep=separator.decode("latin-1"),
        header=None,
        usecols=sorted(places.values()),
        dtype=object,
        na_filter=False,
        quoting=csv.QUOTE_NONE,
        lineterminator="\n",
        encoding_errors="backslashreplace",
    )
    texts = {key: fields[place] for key, place in places.items()}
    jobs = pd.DataFrame({"job": texts["job"]})
    for key in ("user", "group", "queue"):
        jobs[key] = _each(texts[key], str.strip, object) if key in texts else ""
    for key in ("submit", "start", "end"):
        jobs[key] = _seconds(texts[key]) if key in texts else math.nan
    jobs["run_time"] = jobs["end"] - jobs["start"]
    jobs["estimate"] = math.nan
    for key, unit in (("run_time", 1), ("estimate", 60)):
        if key in texts:
            jobs[key] = _each(texts[key], partial(_duration, unit=unit))
        jobs[key] = jobs[key].where((jobs[key] > 0) & (jobs[key] <= MAX_SECONDS))
    if "resources" in texts:
        amount_of = partial(_resource, name=COUNTED[count][1])
        jobs["processors"] = _each(texts["resources"], amount_of)
    else:
        jobs["processors"] = _each(texts[COUNTED[count][0][0]], _count)
    state = pd.Series("", jobs.index)
    if "state" in texts:  # the first word of CANCELLED by 1000
        state = pd.Series(_each(texts["state"], lambda text: text.split(" ")[0], object))
    has_started = jobs["start"].notna()
    has_no_end = jobs["end"].isna() if "end" in texts else state.isin(_RUNNING)
    jobs["is_waiting"] = state.isin(_WAITING) | (~has_started if "start" in texts else False)
    runs = state.isin(_ALWAYS_RUNNING) | (has_started & has_no_end)
    jobs["is_running"] = runs & ~state.isin(_WAITING)
    jobs["is_step"] = ["." in job for job in jobs["job"]]
    return jobs


def read_slurm_log(path: StrPath, nodes: int | None, queue: str, count: str, limit: int) -> Log:
    """Read the accounting of Slurm as `dlsim.joblog.read_log` does.

    Steps of jobs, jobs that run or wait still, lines that come again and jobs that cannot be used
    are left out and counted.
    """
    one_of("count", count, COUNTED)
    unlike: Counter[str] = Counter()
    found: set[str] = set()
    parts = []
    for at, names, separator, lines in _batches(path, limit, unlike):
        places = _find_columns(path, at, names, count)
        found.update(places)
        if lines:
            parts.append(_parse_batch(places, separator, lines, count))
    remedy = f"export it again: {SACCT_COMMAND}"
    if not parts:
        counts = "".join(f" ({reason}: {n})" for reason, n in unlike.items())
        raise line_error(path, at, f"no job stands below the names of columns{counts}; {remedy}")
    jobs = pd.concat(parts, ignore_index=True)
    jobs["wait"] = jobs["start"] - jobs["submit"]
    has_ended = ~(jobs["is_step"] | jobs["is_running"] | jobs["is_waiting"])
    again = jobs[has_ended].duplicated(["job", "submit", "start", "end"])
    reasons = {
        "step of a job": jobs["is_step"],
        "still running": jobs["is_running"],
        "not started (waiting, or cancelled before)": jobs["is_waiting"],
        "line that comes again": again.reindex(jobs.index, fill_value=False),
        "no submit time": jobs["submit"].isna(),
        "started before it was submitted": jobs["wait"] < 0,
        "run time not above 0": ~(jobs["run_time"] > 0),
        f"no {count}": ~(jobs["processors"] > 0),
    }
    notes = _notes(jobs[first_reason(reasons, jobs.index) == ""], found, count)
    log = make_log(path, jobs, reasons, nodes, queue, remedy=remedy)
    first = math.floor(log.jobs["submit"].iloc[0])
    table = log.jobs.assign(submit=log.jobs["submit"] - first)
    epoch, skipped = pd.Timestamp(first, unit="s", tz="UTC"), {**unlike, **log.skipped}
    return replace(log, jobs=table, epoch=epoch, skipped=skipped, notes=notes)


def _notes(jobs: pd.DataFrame, found: Collection[str], count: str) -> list[str]:
    """Return what a reader of the results should know of the usable jobs of an export."""
    notes = []
    if not {"state", "end"} & set(found):
        what = "the export has neither State nor End: jobs that ran when it was made count as ended"
        notes.append(f"{what}; export it again: {SACCT_COMMAND}")
    if count != "processors":
        notes.append(f"{count} are counted in place of processors")
    if again := int(jobs["job"].duplicated().sum()):
        what = "lines have the JobID of an earlier job (which was requeued or resized, or has a"
        notes.append(f"{again} {what} number that came again), and count as jobs too")
    stood = int((jobs["end"] - jobs["start"] - jobs["run_time"]).abs().gt(1).sum())
    if stood:
        what = "jobs ran for another time than from Start to End (they were suspended, or clocks"
        notes.append(f"{stood} {what} were changed: export with TZ=UTC); the former counts")
    return notes
