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


@pytest.fixture
def log(tmp_path):
    path = tmp_path / "abacus.swf.gz"
    path.write_bytes(gzip.compress((HEADER + "\n".join(JOBS) + "\n").encode()))
    return path


def test_a_log_with_its_header(log):
    read = read_log(log)
    assert (read.nodes, read.nodes_from) == (4, "header")
    assert not read.submit_is_start
    assert read.epoch == pd.Timestamp("2001-09-09 03:46:40", tz="Europe/Paris")
    assert read.jobs.index.tolist() == [1, 2, 3, 4]
    assert read.jobs["processors"].tolist() == [3, 4, 1, 1]
    assert read.jobs["queue"].tolist() == ["night shift"] * 2 + ["interactive", "night shift"]
    assert read.jobs["user"].tolist() == ["7", "7", "1", "1"]
    assert read.skipped == {
        "run time not above 0": 1,
        "part of a job (status 2, 3 or 4)": 1,
        "no submit time": 1,
        "wider than the machine (4)": 1,
    }


@pytest.mark.parametrize(
    ("label", "processors"),
    [
        ("MaxProcs: 1024", 1024),
        ("MaxProcs: 1,024", 1024),
        ("MaxProcs: 1 024", 1024),
        ("MaxProcs: 1'024", 1024),
        ("MaxProcs: 1024 (64 nodes of 16)", 1024),
        ("MaxProcs: 1024 processors", 1024),
        ("MaxProcs: 10x16", 160),
        ("MaxProcs: 10 * 16", 160),
        ("Max Procs: 1024", 1024),
        ("max_procs : 1024", 1024),
        ("MAXPROCS:1024", 1024),
    ],
)
def test_spellings_of_the_size_are_read(tmp_path, label, processors):
    (tmp_path / "odd.swf").write_text(f"; {label}\n{JOBS[0]}\n")
    read = read_log(tmp_path / "odd.swf")
    assert (read.nodes, read.nodes_from) == (processors, "header")
    assert read.notes == []


@pytest.mark.parametrize("text", [
    "1e9", "1.024", "128 2", "unknown", "0x400", "9" * 5000, "-1", "1,000,000,001",
    "10000 x 100001",
    *("1" + ",000" * groups for groups in (4, 5, 100, 120, 2000)), f"{'9' * 15} x 999999",
])  # fmt: skip
def test_a_size_that_is_not_understood_is_quoted_and_not_used(tmp_path, text):
    (tmp_path / "odd.swf").write_text(f"; MaxProcs: {text}\n{JOBS[0]}\n")
    read = read_log(tmp_path / "odd.swf")
    assert (read.nodes, read.nodes_from) == (3, "estimate")
    assert read.notes == [
        f"header line MaxProcs: {text[:40]!r} is not a number of processors; not used"
    ]


@pytest.mark.parametrize(("text", "noted"), [
    ("9" * 5000, True), ("8589934592000", True), ("1e9", True), ("never", True), ("-5", True),
    ("0", False), ("-1", False), ("", False), ("1000000000", False),
])  # fmt: skip
def test_a_date_that_is_not_understood_is_quoted_and_not_used(tmp_path, text, noted):
    (tmp_path / "odd.swf").write_text(f"; UnixStartTime: {text}\n{JOBS[0]}\n")
    what = "is not a number of seconds since 1970; not used"
    note = f"header line UnixStartTime: {text[:40]!r} {what}"
    assert read_log(tmp_path / "odd.swf").notes == [note] * noted


def test_a_number_of_a_job_beyond_what_floats_hold_is_no_label(tmp_path):
    path = tmp_path / "odd.swf"
    for number, label in (("7", 7), (str(2**53), 2**53), ("9" * 19, 1), ("1e300", 1)):
        path.write_text(line(number, 0, 0, 10, 3))
        assert list(read_log(path).jobs.index) == [label]


def test_a_job_that_is_far_too_wide_is_said_in_few_letters(tmp_path):
    (tmp_path / "odd.swf").write_text(f"; MaxProcs: 8\n{JOBS[0]}\n{line(9, 0, 0, 10, '9' * 300)}")
    assert read_log(tmp_path / "odd.swf").notes == ["header says MaxProcs '8', the jobs say 1e+300"]


def test_nodes_are_no_processors(tmp_path):
    (tmp_path / "odd.swf").write_text(
        "; MaxNodes: 10\n" + "\n".join(line(k, k, 0, 3600, 16) for k in range(8))
    )
    read = read_log(tmp_path / "odd.swf")
    assert len(read.jobs) == 8
    assert (read.nodes, read.nodes_from) == (128, "estimate")
    assert read_log(tmp_path / "odd.swf", nodes=160).nodes == 160


def test_the_most_in_use_at_once_is_the_size_from_below(tmp_path):
    path = tmp_path / "odd.swf"
    # job 1 has 3 processors in 0..10, job 3 one in 2..10, job 2 four from 1 + 9 on
    path.write_text("\n".join(JOBS[:3]))
    assert read_log(path).nodes == 4
    path.write_text("\n".join(line(k, k, 0, 3600, 1) for k in range(100)))
    assert read_log(path).nodes == 100
    # without waits nothing is known about when jobs ran: the widest job
    path.write_text("\n".join(line(k, k, -1, 3600, 1 + k % 3) for k in range(100)))
    assert read_log(path).nodes == 3


@pytest.mark.parametrize("note", [
    "; Note: There is no information on wait times - the given submit\n"
    ";       times are actually start times\n",
    "; Note: submit times are start times\n",
])  # fmt: skip
def test_a_note_that_submit_times_are_start_times_is_read(tmp_path, note):
    path = tmp_path / "odd.swf"
    path.write_text(note + "\n".join(line(k, k, -1, 3600, 1) for k in range(100)))
    read = read_log(path)
    assert read.submit_is_start
    assert read.nodes == 100  # all of them ran at once


@pytest.mark.parametrize(("blanks", "joined"), [("  ", False), ("   ", True), ("    ", True)])
def test_three_blanks_continue_the_label_above(tmp_path, blanks, joined):
    """Logs of the archive indent what belongs to a note; a line of its own has a blank or two."""
    path = tmp_path / "odd.swf"
    path.write_text(f"; Note: the submit times\n;{blanks}are start times\n{JOBS[0]}\n")
    assert read_log(path).submit_is_start == joined


def test_the_users_number_comes_first_and_wider_jobs_are_counted(tmp_path):
    path = tmp_path / "odd.swf"
    path.write_text("; MaxProcs: 3\n" + "\n".join(JOBS[:3]))
    read = read_log(path, nodes=3)
    assert (read.nodes, read.nodes_from) == (3, "argument")
    assert read.skipped == {"wider than the machine (3)": 1}
    assert read.in_use == 4
    assert read_log(path, nodes=6).skipped == {}
    path.write_text(f"; MaxProcs: 3\n{line(1, 0, -1, 9, 4)}\n")
    with pytest.raises(InputError, match=r"wider than the machine \(3\): 1"):
        read_log(path)


def test_milliseconds_and_parts_of_processors_are_told_apart(tmp_path):
    path = tmp_path / "odd.swf"
    lines = [JOBS[0], line(2, 1.7e12, 0, 9, 1), line(3, 0, 0, 9, 0.5), line(4, 0, 0, 9, 2.5)]
    path.write_text("; MaxProcs: 4\n" + "\n".join(lines))
    assert read_log(path).skipped == {
        "submit time beyond 1e11 s; milliseconds?": 1,
        "processors not a whole number": 2,
    }


def test_a_queue_with_an_endless_number_has_no_name(tmp_path):
    path = tmp_path / "odd.swf"
    path.write_text(f"; Queue: {'9' * 5000} night\n; Queue: 1 day\n{JOBS[0]}\n")
    assert read_log(path).jobs["queue"].tolist() == ["day"]


@pytest.mark.parametrize(("header", "date"), [
    ("; UnixStartTime: 86400\n; TimeZoneString: Europe/Paris\n", "1970-01-02T01:00:00+01:00"),
    ("; UNIXSTARTTIME: 86400\n; TimeZoneString: Atlantis/Main\n", "1970-01-02T00:00:00+00:00"),
    ("; UnixStartTime: 0\n", None), ("; UnixStartTime: never\n", None), ("", None),
    ("; UnixStartTime: 1e9\n", None), ("; UnixStartTime: 8589934592000\n", None),
    ("; UnixStartTime: 9999999999\n", None),
])  # fmt: skip
def test_dates_of_a_header(tmp_path, header, date):
    (tmp_path / "odd.swf").write_text(header + "\n".join(JOBS[:3]) + "\n")
    epoch = read_log(tmp_path / "odd.swf").epoch
    assert (epoch and epoch.isoformat()) == date


def test_seconds_since_1970_are_dates_themselves(tmp_path):
    path = tmp_path / "odd.swf"
    path.write_text("\n".join(line(7, at, -1, 9, 1) for at in (1_000_000_060, 1e9)) + "\n")
    read = read_log(path)
    assert read.epoch == pd.Timestamp("1970-01-01", tz="UTC")
    assert read.jobs.index.tolist() == [2, 1]  # of the file, where job numbers tell nothing
