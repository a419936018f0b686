"""Logs in the Grid Workload Format: good ones, hostile ones, and what becomes of them."""

import gzip

import numpy as np
import pytest

from dlsim.bricks import workload
from dlsim.errors import InputError
from dlsim.joblog import GWF_FIELDS, SWF_FIELDS, read_gwf, read_swf


def job(submit, run, user, processors=1, asked=-1, status=1, between=" "):
    """One line: all that is not given is unknown, or a name where the archive has names."""
    known = {
        "job": 1, "submit": submit, "run_time": run, "processors": processors, "user": user,
        "processors_requested": asked, "status": status, "memory": "N/A", "structure": "UNITARY",
        "site_submitted": "site a" if between == "\t" else "site", "resources": "cpu:1,disk:2",
    }  # fmt: skip
    return between.join(str(known.get(name, -1)) for name in GWF_FIELDS)


LINES = ["# JobID SubmitTime ...", "", job(100, 60, "ann"), job(130, 30, "bob", 2),
         job(160, -1, "ann"), "; a comment", job(190, 90, "-1", -1, 4, 0)]  # fmt: skip


@pytest.fixture
def log(tmp_path):
    path = tmp_path / "log.gwf"
    path.write_text("\n".join(LINES) + "\n")
    return path


def test_fields_are_those_of_the_archive():
    assert len(GWF_FIELDS) == 29
    assert [*GWF_FIELDS[:16]] == [*SWF_FIELDS[:16]]


def test_a_log_is_read(log):
    jobs, header, notes = read_gwf(log)
    assert (header, notes) == ({}, [])
    assert jobs["submit"].tolist() == [100, 130, 160, 190]
    assert jobs["run_time"].tolist() == [60, 30, -1, 90]
    assert jobs["processors"].tolist() == [1, 2, 1, -1]
    assert jobs["processors_requested"].tolist() == [-1, -1, -1, 4]
    assert jobs["status"].tolist() == [1, 1, 1, 0]
    assert jobs["user"].tolist() == [0, 1, 0, -1]


def test_tabs_gzip_and_a_byte_order_mark(tmp_path, log):
    path = tmp_path / "log.gwf.gz"
    lines = [*LINES[:2], *[job(100, 60, "ann the first", between="\t")]]
    path.write_bytes(gzip.compress(b"\xef\xbb\xbf" + "\r\n".join(lines).encode()))
    assert read_gwf(path)[0].iloc[0].to_dict() == read_gwf(log)[0].iloc[0].to_dict()


def test_requests_are_those_of_the_same_log_in_the_other_format(tmp_path, log):
    jobs = read_gwf(log)[0]
    lines = [
        " ".join(f"{row.get(name, -1):.0f}" for name in SWF_FIELDS) for _, row in jobs.iterrows()
    ]
    other, sheet = tmp_path / "log.swf", tmp_path / "LOG.CSV"
    other.write_text("\n".join(lines) + "\n")
    sheet.write_text(
        "submit;run_time;processors;user\n2026-03-29T01:59:00+01:00;60,0;1;ann\n"
        "2026-03-29T03:59:30+03:00;30;2;bob\n2026-03-29 01:00;-1;1;ann\n2026-03-29 01:00:30;90;4;\n"
    )
    assert read_swf(other)[0]["user"].tolist() == [0, 1, 0, -1]
    for work in ("run_time", "processor_time"):
        mine, usual, third = (
            workload.from_log(path, clients=2, seed=3, work=work) for path in (log, other, sheet)
        )
        assert mine.to_csv() == usual.to_csv() == third.to_csv()
        assert mine.attrs["skipped"] == {"run time not above 0": 1}
        assert mine.attrs["synthesised"] == ["send", "recv", "deadline"]
    assert mine["work"].tolist() == [60 * 300.0, 2 * 30 * 300.0, 4 * 90 * 300.0]
    assert mine["time"].tolist() == [0, 30, 90]


def test_unsorted_submissions_are_noted(tmp_path):
    path = tmp_path / "log.gwf"
    path.write_text("\n".join([job(9, 1, "a"), job(5, 1, "b")]))
    assert read_gwf(path)[2] == ["submit times are not in order"]
    assert np.diff(workload.from_log(path, clients=1)["time"]).tolist() == [4]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "line 1.*without a single job line"),
        ("# only comments\n#\n", "line 2.*without a single job line"),
        ("1 2 3", "line 1.*3 fields instead of 29"),
        (job(1, 2, "a") + " 7", "30 fields instead of 29"),
        (job(1, 2, "a") + "\n" + job("soon", 2, "a"), "line 2.*submit.*'soon'"),
        (job(1, "nan", "a"), "run_time.*must be a finite number, got 'nan'"),
        (job(1, "inf", "a"), "run_time"),
        (job(1, "1_0", "a"), "run_time.*'1_0'"),
        (job(1, 2, "a", processors="two"), "processors.*'two'"),
        (job(1, 2, "a", status="done"), "status.*'done'"),
        (job("\u0664", 2, "a"), "submit"),
        ("x" * 2**20 + "x", "longer than"),
    ],
    ids=range(12),
)
def test_hostile_logs(tmp_path, text, said):
    path = tmp_path / "log.gwf"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=said):
        read_gwf(path)


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(InputError, match=r"none\.gwf"):
        workload.from_log(tmp_path / "none.gwf", clients=1)
    path = tmp_path / "broken.gwf.gz"
    path.write_bytes(gzip.compress("\n".join(LINES).encode())[:-9])
    with pytest.raises(InputError, match="cannot be read on"):
        read_gwf(path)
    path.write_bytes(gzip.compress(b"#" * 2**20 * 8, 9))
    with pytest.raises(InputError, match=r"longer than|gzip bomb"):
        read_gwf(path)
    log = tmp_path / "log.gwf"
    log.write_text("\n".join(LINES))
    with pytest.raises(InputError, match="more than 50 bytes"):
        read_gwf(log, limit=50)
