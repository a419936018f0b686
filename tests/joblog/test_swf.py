"""Job logs in the Standard Workload Format: headers, jobs, and what is left out."""

import gzip

import pandas as pd
import pytest

from dlsim.errors import InputError
from dlsim.joblog import read_log

HEADER = """; Version: 2.2
; Computer: Abacus
; MaxProcs: 4
; UnixStartTime: 1000000000
; TimeZoneString: Europe/Paris
; Queue: 0 interactive
; Queue: 1 night shift
"""


def line(job, submit, wait, run, processors, asked=-1, status=1, user=1, queue=1):
    tail = (-1, -1, status, user, -1, -1, queue, -1, -1, -1)
    return " ".join(map(str, (job, submit, wait, run, processors, -1, -1, asked, *tail)))


JOBS = [
    line(1, 0, 0, 10, 3, user=7), line(2, 1, 9, 5, 4, user=7), line(3, 2, 0, 8, 1, queue=0),
    line(4, 3, 12, 8, -1, asked=1), line(5, 4, -1, 0, 1), line(6, 5, -1, 9, 1, status=3),
    line(7, 6, -1, 9, 5), line(8, -1, -1, 9, 1),
]  # fmt: skip


def read(folder, *lines, **more):
    """Read a log of these lines."""
    path = folder / "odd.swf"
    path.write_text("\n".join(lines) + "\n")
    return read_log(path, **more)


def test_a_log_with_its_header(tmp_path):
    path = tmp_path / "abacus.swf.gz"
    path.write_bytes(gzip.compress((HEADER + "\n".join(JOBS) + "\n").encode()))
    log = read_log(path)
    assert (log.nodes, log.nodes_from) == (4, "header")
    assert not log.submit_is_start
    assert log.epoch == pd.Timestamp("2001-09-09 03:46:40", tz="Europe/Paris")
    assert log.jobs.index.tolist() == [1, 2, 3, 4]
    assert log.jobs["processors"].tolist() == [3, 4, 1, 1]
    assert log.jobs["queue"].tolist() == ["night shift"] * 2 + ["interactive", "night shift"]
    assert log.jobs["user"].tolist() == ["7", "7", "1", "1"]
    assert log.skipped == {
        "run time not above 0": 1,
        "part of a job (status 2, 3 or 4)": 1,
        "no submit time": 1,
        "wider than the machine (4)": 1,
    }


def test_spellings_of_the_size_are_read(tmp_path):
    numbers = ("1024", "1,024", "1 024", "1'024", "1024 (64 nodes of 16)", "1024 processors")
    labels = ("Max Procs: 1024", "max_procs : 1024", "MAXPROCS:1024")
    products = {"MaxProcs: 10x16": 160, "MaxProcs: 10 * 16": 160}
    for label in (*(f"MaxProcs: {number}" for number in numbers), *labels, *products):
        log = read(tmp_path, f"; {label}", JOBS[0])
        said = (log.nodes, log.nodes_from, log.notes)
        assert said == (products.get(label, 1024), "header", []), label


SIZES = [
    "1e9", "1.024", "128 2", "unknown", "0x400", "9" * 5000, "-1", "1,000,000,001",
    "10000 x 100001", *("1" + ",000" * groups for groups in (4, 5, 120, 2000)),
    f"{'9' * 15} x 999999",
]  # fmt: skip
DATES = ["9" * 5000, "8589934592000", "1e9", "never", "-5"]


@pytest.mark.parametrize(
    ("label", "texts", "what"),
    [
        ("MaxProcs", SIZES, "is not a number of processors; not used"),
        ("UnixStartTime", DATES, "is not a number of seconds since 1970; not used"),
    ],
    ids=["size", "date"],
)
def test_what_is_not_understood_is_quoted_and_not_used(tmp_path, label, texts, what):
    for text in texts:
        log = read(tmp_path, f"; {label}: {text}", JOBS[0])
        assert (log.nodes, log.nodes_from, log.epoch) == (3, "estimate", None), text
        assert log.notes == [f"header line {label}: {text[:40]!r} {what}"]


def test_dates_of_a_header(tmp_path):
    for text, zone, date in (
        ("86400", "Europe/Paris", "1970-01-02T01:00:00+01:00"),
        ("86400", "Atlantis/Main", "1970-01-02T00:00:00+00:00"),
        ("1000000000", "", "2001-09-09T01:46:40+00:00"),
        ("9999999999", "UTC", None),  # of 2286
        *((unknown, "UTC", None) for unknown in ("0", "-1", "")),
    ):
        header = f"; UNIXSTARTTIME: {text}\n; TimeZoneString: {zone}"
        log = read(tmp_path, header, *JOBS[:3])
        assert (log.epoch and log.epoch.isoformat()) == date, text
        assert log.notes == []


def test_seconds_since_1970_are_dates_themselves(tmp_path):
    log = read(tmp_path, *(line(7, at, -1, 9, 1) for at in (1_000_000_060, 1e9)))
    assert log.epoch == pd.Timestamp("1970-01-01", tz="UTC")
    assert log.jobs.index.tolist() == [2, 1]  # of the file, where job numbers tell nothing


def test_a_number_of_a_job_beyond_what_floats_hold_is_no_label(tmp_path):
    for number, label in (("7", 7), (str(2**53), 2**53), ("9" * 19, 1), ("1e300", 1)):
        assert list(read(tmp_path, line(number, 0, 0, 10, 3)).jobs.index) == [label]


def test_a_job_that_is_far_too_wide_is_said_in_few_letters(tmp_path):
    log = read(tmp_path, "; MaxProcs: 8", JOBS[0], line(9, 0, 0, 10, "9" * 300))
    assert log.notes == ["header says MaxProcs '8', the jobs say 1e+300"]


def test_nodes_are_no_processors(tmp_path):
    lines = ["; MaxNodes: 10", *(line(k, k, 0, 3600, 16) for k in range(8))]
    log = read(tmp_path, *lines)
    assert len(log.jobs) == 8
    assert (log.nodes, log.nodes_from) == (128, "estimate")
    assert read(tmp_path, *lines, nodes=160).nodes == 160


def test_the_most_in_use_at_once_is_the_size_from_below(tmp_path):
    # job 1 has 3 processors in 0..10, job 3 one in 2..10, job 2 four from 1 + 9 on
    assert read(tmp_path, *JOBS[:3]).nodes == 4
    assert read(tmp_path, *(line(k, k, 0, 3600, 1) for k in range(100))).nodes == 100
    # without waits nothing is known about when jobs ran: the widest job
    assert read(tmp_path, *(line(k, k, -1, 3600, 1 + k % 3) for k in range(100))).nodes == 3


def test_a_note_that_submit_times_are_start_times_is_read(tmp_path):
    """Logs of the archive indent what belongs to a note; a line of its own has a blank or two."""
    for note, is_read in (
        ("; Note: submit times are start times", True),
        ("; Note: There is no information on wait times - the given submit\n"
         ";       times are actually start times", True),
        ("; Note: the submit times\n;   are start times", True),
        ("; Note: the submit times\n;  are start times", False),
    ):  # fmt: skip
        log = read(tmp_path, note, *(line(k, k, -1, 3600, 1) for k in range(100)))
        assert log.submit_is_start == is_read, note
        assert log.nodes == (100 if is_read else 1)  # all of them ran at once


def test_the_users_number_comes_first_and_wider_jobs_are_counted(tmp_path):
    lines = ["; MaxProcs: 3", *JOBS[:3]]
    log = read(tmp_path, *lines, nodes=3)
    assert (log.nodes, log.nodes_from) == (3, "argument")
    assert log.skipped == {"wider than the machine (3)": 1}
    assert log.in_use == 4
    assert read(tmp_path, *lines, nodes=6).skipped == {}
    with pytest.raises(InputError, match=r"wider than the machine \(3\): 1"):
        read(tmp_path, "; MaxProcs: 3", line(1, 0, -1, 9, 4))


def test_milliseconds_and_parts_of_processors_are_told_apart(tmp_path):
    odd = [line(2, 1.7e12, 0, 9, 1), line(3, 0, 0, 9, 0.5), line(4, 0, 0, 9, 2.5)]
    assert read(tmp_path, "; MaxProcs: 4", JOBS[0], *odd).skipped == {
        "submit time beyond 1e11 s; milliseconds?": 1,
        "processors not a whole number": 2,
    }


def test_a_queue_with_an_endless_number_has_no_name(tmp_path):
    log = read(tmp_path, f"; Queue: {'9' * 5000} night", "; Queue: 1 day", JOBS[0])
    assert log.jobs["queue"].tolist() == ["day"]
