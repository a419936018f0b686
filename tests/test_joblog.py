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
    assert read.nodes == 4
    assert read.epoch == pd.Timestamp("2001-09-09 03:46:40", tz="Europe/Paris")
    assert read.jobs.index.tolist() == [1, 2, 3, 4]
    assert read.jobs["processors"].tolist() == [3, 4, 1, 1]
    assert read.jobs["queue"].tolist() == ["night shift"] * 2 + ["interactive", "night shift"]
    assert read.jobs["user"].tolist() == ["7", "7", "1", "1"]
    assert read.skipped == {
        "run time not above 0": 1, "part of a job (status 2, 3 or 4)": 1, "no submit time": 1,
        "wider than the machine (4), or out of range": 1,
    }  # fmt: skip


@pytest.mark.parametrize(("header", "nodes", "zone"), [
    ("; MaxNodes: 6\n; UnixStartTime: 86400\n; TimeZone: -3600\n", 6, "-01:00"),
    ("; MaxProcs: unknown\n; UnixStartTime: 86400\n; TimeZoneString: Atlantis/Main\n", 4, "+00:00"),
    ("; MaxProcs: 8 (2 x 4)\n; UnixStartTime: 0\n", 8, None),
    ("; MaxProcs: 99999999999999999999\n; UnixStartTime: never\n", 4, None),
    (";maxprocs : 6\n; UNIXSTARTTIME: 86400\n; timezone:3600\n", 6, "+01:00"),
    ("", 4, None), ("; MaxProcs: 1,024\n; UnixStartTime: 1e9\n", 4, None),
    ("; UnixStartTime: 8589934592000\n", 4, None),
])  # fmt: skip
def test_headers_of_every_kind(tmp_path, header, nodes, zone):
    (tmp_path / "odd.swf").write_text(header + "\n".join(JOBS[:3]) + "\n")
    read = read_log(tmp_path / "odd.swf")
    assert read.nodes == nodes
    assert (read.epoch.isoformat()[-6:] if read.epoch else None) == zone


def test_seconds_of_1970_are_dates_and_dates_beyond_a_calendar_are_none(tmp_path):
    path = tmp_path / "odd.swf"
    path.write_text("\n".join(line(7, at, -1, 9, 1) for at in (1_000_000_060, 1e9)) + "\n")
    read = read_log(path)
    assert read.date(read.jobs["submit"].iloc[0]) == "2001-09-09 01:46 UTC"
    assert read.jobs.index.tolist() == [2, 1]  # of the file, where job numbers tell nothing
    path.write_text(f"; UnixStartTime: 86400\n{line(1, 0, -1, 9, 1)}\n{line(2, 1e10, 0, 9, 1)}\n")
    read = read_log(path)
    assert read.epoch is None
    assert "not shown" in read.notes[-1]


def test_a_machine_smaller_than_every_job_is_named(tmp_path):
    path = tmp_path / "odd.swf"
    path.write_text(f"; MaxProcs: 3\n{line(1, 0, -1, 9, 4)}\n")
    with pytest.raises(InputError, match=r"wider than the machine \(3\), or out of range: 1"):
        read_log(path)
