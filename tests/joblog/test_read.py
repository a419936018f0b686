"""Job logs of any format: how a file is recognised and opened, and what a table says."""

import bz2
import contextlib
import gzip
import importlib
import io
import lzma
import sys
import zipfile

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dlsim import files
from dlsim.errors import InputError
from dlsim.joblog import SWF_FIELDS, read_log, read_swf
from dlsim.joblog import swf as swf_module
from tests.helpers.scale import scale_count

SWF_ROW = "{} {} 0 100 {} -1 -1 2 200 -1 1 1 1 -1 1 -1 -1 -1\n"
SWF = """; MaxProcs: 8
1 0 0 100 2 -1 -1 2 200 -1 1 1 1 -1 1 -1 -1 -1
2 10 0 50 1 -1 -1 1 60 -1 1 2 1 -1 1 -1 -1 -1
"""
TABLE = "submit,run_time,processors\n0,100,2.0\n10,50,1e0\n"
SACCT = """JobID|Submit|Start|End|ElapsedRaw|AllocCPUS|State
1|2025-05-01T00:00:00|2025-05-01T00:00:00|2025-05-01T00:01:40|100|2|COMPLETED
2|2025-05-01T00:00:10|2025-05-01T00:00:10|2025-05-01T00:01:00|50|1|COMPLETED
"""
BLANKS = "submit,run_time,processors,wait,estimate\n"
LOGS = {"swf": SWF, "csv": TABLE, "slurm": SACCT}
JOBS = [[0, 100, 2], [10, 50, 1]]


def of(log):
    return log.jobs[["submit", "run_time", "processors"]].to_numpy().tolist()


def zipped(data, names=("log",)):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in names:
            archive.writestr(name, data)
    return stream.getvalue()


PACKED = {"gzip": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress, "zip": zipped}
ENCODINGS = ["utf-8-sig", "utf-16", "utf-16-le with a mark", "utf-16-be with a mark"]


def encoded(text, encoding):
    name, _, mark = encoding.partition(" ")
    return ("\ufeff" * bool(mark) + text).encode(name)


@pytest.mark.parametrize("kind", LOGS)
def test_a_log_is_recognised_by_its_content(tmp_path, kind):
    for name in ("log", "log.txt", "log.swf", "log.csv"):
        (tmp_path / name).write_text(LOGS[kind])
        assert of(read_log(tmp_path / name)) == JOBS
    assert of(read_log(tmp_path / name, kind)) == JOBS
    packed = {name: pack(LOGS[kind].encode()) for name, pack in PACKED.items()}
    texts = {encoding: encoded(LOGS[kind], encoding) for encoding in ENCODINGS}
    both = {"utf-16 in gzip": gzip.compress(encoded(LOGS[kind], "utf-16"))}
    for name, data in (packed | texts | both).items():
        (tmp_path / "log").write_bytes(data)
        assert of(read_log(tmp_path / "log")) == JOBS, name


def test_a_compression_that_is_not_read_is_named(tmp_path):
    compressed = {
        "7z": b"7z\xbc\xaf\x27\x1c123", "Z": b"\x1f\x9d\x90123", "lz4": b"\4\x22\x4d\x18123",
        "zip": zipped(SWF, ("a", "b")),
    }  # fmt: skip
    for name, data in compressed.items():
        (tmp_path / "log.swf").write_bytes(data)
        with pytest.raises(InputError, match=rf"log\.swf: compressed \({name}\); unpack it"):
            read_log(tmp_path / "log.swf")


#: A frame of Zstandard (RFC 8878): magic, header, one last raw block of five bytes.
ZST = bytes.fromhex("28b52ffd 2005 290000") + b"hello"


def can_import(name):
    with contextlib.suppress(ImportError):
        return importlib.import_module(name) is not None
    return False


def test_zst_is_read_where_python_can_and_else_to_be_unpacked(tmp_path, monkeypatch):
    (tmp_path / "log.zst").write_bytes(ZST)
    monkeypatch.setitem(sys.modules, "compression.zstd", None)
    monkeypatch.setitem(sys.modules, "backports.zstd", None)
    with pytest.raises(InputError, match=r"log\.zst: compressed \(zst\); unpack it"):
        read_log(tmp_path / "log.zst")
    monkeypatch.undo()
    if any(map(can_import, ("compression.zstd", "backports.zstd"))):
        assert list(files.numbered_lines(tmp_path / "log.zst")) == [(1, b"hello")]
        (tmp_path / "log.zst").write_bytes(ZST[:-2])
        with pytest.raises(InputError, match=r"log\.zst, line 1: cannot be read on"):
            read_log(tmp_path / "log.zst")


@pytest.mark.parametrize("pack", PACKED)
def test_a_damaged_or_exploding_file_is_refused(tmp_path, monkeypatch, pack):
    path, data = tmp_path / "log", PACKED[pack](SWF.encode() * 50)
    for cut in (len(data) // 2, len(data) - 5):
        path.write_bytes(data[:cut])
        with pytest.raises(InputError, match=r"log, line \d+: cannot be read on .*fetch the file"):
            read_log(path)
    monkeypatch.setattr(files, "FREE_GROWTH_BYTES", 2**16)
    path.write_bytes(PACKED[pack](b"\n" * 2**19))
    with pytest.raises(InputError, match=rf"log, line \d+: grows over 200-fold like a {pack} bomb"):
        read_log(path)
    path.write_bytes(PACKED[pack](SWF.encode() * 50))
    with pytest.raises(InputError, match=r"log, line \d+: more than 1000 bytes"):
        read_log(path, limit=1000)


def test_a_locked_archive_is_refused(tmp_path):
    data = bytearray(zipped(SWF))
    for at in (data.index(b"PK\3\4") + 6, data.index(b"PK\1\2") + 8):
        data[at] |= 1  # the flag of encryption
    (tmp_path / "log").write_bytes(data)
    with pytest.raises(InputError, match=r"log, line 1: cannot be read on \(.*encrypted"):
        read_log(tmp_path / "log")


def test_half_a_character_of_utf16_is_refused(tmp_path):
    (tmp_path / "log").write_bytes(SWF.encode("utf-16") + b"\0\xd8")
    with pytest.raises(InputError, match=r"log, line 4: not UTF-16 text.*save the file as UTF-8"):
        read_log(tmp_path / "log")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1: the file ends without a single job line; give a line per job"),
        ("\n \n", "line 1: the file ends without a single job line; give a line per job"),
        ("log: a.csv\n", r"line 1: neither a job nor names of columns .*; say format= if"),
        ("submit\trun_time\tprocessors\n0\t60\t1\n", "line 1, .* separated by tabs: save"),
        ("submit,run_time\n0,60\n", "line 1, field processors: no such column"),
        ("submit,run_time,processors\n", "line 1: the file ends without a single job line"),
        ("1 2 3\n", "line 1: 3 fields instead of 18"),
        ("submit,run_time,processors\n0,60,1.5\n", "line 2, field processors: must be a whole"),
        ("submit,run_time,processors\n0,one hour,1\n", "line 2, field run_time"),
        (BLANKS + "0,60,1,soon,\n", "line 2, field wait: must be a finite number, got 'soon'"),
        ("submit,run_time,processors\n0,0,1\n", r"no job that .* \(run time not above 0: 1\)"),
    ],
)
def test_what_is_no_log_is_refused_by_line_rule_and_remedy(tmp_path, text, message):
    (tmp_path / "log.txt").write_text(text)
    with pytest.raises(InputError, match=rf"log\.txt[,:] {message}"):
        read_log(tmp_path / "log.txt")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"format": "gwf"}, "format must be one of auto, swf, csv, slurm; got 'gwf'"),
        ({"nodes": "64"}, "nodes must be a whole number .*'64'"),
        ({"nodes": -5}, "nodes must be a whole number of at least 0, got -5"),
        ({"count": "gpu"}, "count must be one of processors, gpus, nodes; .*mean gpus"),
        ({"count": "gpus"}, "count='gpus' needs the accounting of Slurm, and this is a table"),
        ({"queue": 3}, "queue must be a text, got 3"),
        ({"queue": "x"}, r"log\.csv: queue must be one of a; got 'x'"),
        ({"since": "soon"}, "since must be a date such as 2025-03-01 or .*, got 'soon'"),
        ({"since": "NaT"}, "since must be a date"),
        ({"since": "2025-03-01"}, "log has no dates; give since in seconds, as in its column subm"),
        ({"until": 3}, "until must be a text, got 3"),
        ({"since": "99"}, r"no job is left \(submitted before 99: 1\); change since or until"),
    ],
)
def test_arguments_that_cannot_be_used_are_refused(tmp_path, arguments, message):
    (tmp_path / "log.csv").write_text("submit,run_time,processors,queue\n0,60,1,a\n")
    with pytest.raises(InputError, match=message):
        read_log(tmp_path / "log.csv", **arguments)


# --- tables ---


def test_unknown_columns_are_named_and_read_only_over_if_the_user_says_so(tmp_path):
    (tmp_path / "log.csv").write_text("submit,run_time,processors,user_node,weight\n0,60,1,7,a\n")
    with pytest.raises(InputError, match=r"not known: user_node, weight; .* known are submit, "):
        read_log(tmp_path / "log.csv")
    with pytest.raises(InputError, match=r"not known: user_node; "):
        read_log(tmp_path / "log.csv", ignore=["weight"])
    log = read_log(tmp_path / "log.csv", ignore=["weight", "user_node"])
    assert of(log) == [[0, 60, 1]]


@pytest.mark.parametrize(
    ("rows", "nodes", "size", "skipped"),
    [
        ("0,0,60,2\n10,20,60,3\n", 0, 5, {}),  # the second runs from 30 on
        ("0,0,60,2\n10,50,60,3\n", 0, 3, {}),  # from 60 on, when the first has ended
        ("0,0,60,2\n0,0,60,9\n", 4, 4, {"wider than the machine (4)": 1}),
        ("0,0,60,1\n1700000000000,0,60,1\n", 0, 1, {"submit time beyond 1e11 s; milliseconds?": 1}),
        ("0,0,60,1\n0,0,0,1\n0,0,60,0\n", 0, 1, {"run time not above 0": 1, "no processors": 1}),
        ("0,0,60,1\n0,0,60,2000000000\n", 0, 1, {"more than 1,000,000,000 processors": 1}),
    ],
)
def test_the_size_of_a_table_and_what_is_left_out(tmp_path, rows, nodes, size, skipped):
    (tmp_path / "log.csv").write_text("submit,wait,run_time,processors\n" + rows)
    log = read_log(tmp_path / "log.csv", nodes=nodes)
    assert (log.nodes, log.skipped) == (size, skipped)
    assert log.nodes_from == ("argument" if nodes else "estimate")
    assert log.in_use == (11 if nodes == 4 else size)


def test_texts_of_a_table_are_kept_as_they_are(tmp_path):
    users = ["<img src=x onerror=document.title=1>", "__svc__", "", "nan", "007"]
    text = "".join(f"0,60,1,{user}\n" for user in users)
    (tmp_path / "log.csv").write_text(f"submit,run_time,processors,user\n{text}")
    jobs = read_log(tmp_path / "log.csv").jobs
    assert jobs["user"].tolist() == users
    assert jobs["group"].tolist() == [""] * 5


def test_one_queue_of_a_machine_is_not_as_large_as_the_machine(tmp_path):
    lines = SWF.replace("-1 1 -1 -1 -1\n", "-1 0 -1 -1 -1\n", 1).splitlines()
    (tmp_path / "log").write_text("; Queue: 0 night\n; Queue: 1 day\n" + "\n".join(lines))
    log = read_log(tmp_path / "log", queue="day")
    assert (log.nodes, log.nodes_from) == (1, "estimate")
    assert log.skipped == {"not in the queue day": 1}
    assert read_log(tmp_path / "log", queue="day", nodes=6).nodes == 6


def test_a_blank_wait_or_estimate_is_unknown_as_minus_one_is(tmp_path):
    """pandas writes a missing value as nothing."""
    for text in ("0,60,1,,\n1,60,1,5,90\n", "0,60,1,-1,-1\n1,60,1,5,90\n"):
        (tmp_path / "log.csv").write_text(BLANKS + text)
        jobs = read_log(tmp_path / "log.csv").jobs
        assert jobs["wait"].isna().tolist() == jobs["estimate"].isna().tolist() == [True, False]
        assert jobs[["wait", "estimate"]].iloc[1].tolist() == [5, 90]


# --- since and until ---


def test_jobs_are_taken_from_since_until_before_until(tmp_path):
    """Three jobs, at 0, 10 and 20 s of a log that begins in the second 1 of 1970 in Berlin."""
    head = "; UnixStartTime: 1\n; TimeZoneString: Europe/Berlin\n; MaxProcs: 9\n"
    jobs = [SWF_ROW.format(k, 10 * k - 10, k) for k in (1, 2, 3)]
    (tmp_path / "log").write_text(head + "".join(jobs))
    for since, until, rows in (
        ("", "", [1, 2, 3]),
        ("10", "", [2, 3]),
        ("10.5", "", [3]),
        ("", "20", [1, 2]),
        ("1970-01-01T00:00:11+00:00", "1970-01-01T01:00:21+01:00", [2]),
        ("1970-01-01T01:00:11", "1970-01-01 01:00:21", [2]),  # of Berlin
    ):
        log = read_log(tmp_path / "log", since=since, until=until)
        assert log.jobs["processors"].tolist() == rows, (since, until)
        assert sum(log.skipped.values()) == 3 - len(rows)
        assert log.nodes == 9


def test_the_size_is_estimated_from_the_jobs_that_are_taken(tmp_path):
    (tmp_path / "log.csv").write_text("submit,wait,run_time,processors\n0,0,5,9\n10,0,5,2\n")
    log = read_log(tmp_path / "log.csv", since="5")
    assert (log.nodes, log.in_use, log.skipped) == (2, 2, {"submitted before 5": 1})
    assert read_log(tmp_path / "log.csv", until="10").skipped == {"submitted at 10 or later": 1}


def test_submit_times_that_are_start_times_start_where_no_wait_is_known(tmp_path):
    """Job 1 ends at 10, when job 2, whose wait of 0 is known, begins: one processor is enough."""
    row = "{} {} {} 10 1 -1 -1 1 -1 -1 1 1 1 -1 1 -1 -1 -1\n"
    rows = row.format(1, 0, -1) + row.format(2, 10, 0) + row.format(3, 90, 0)
    (tmp_path / "log").write_text(f"; Note: submit times are start times\n{rows}")
    log = read_log(tmp_path / "log", until="50")
    assert (len(log.jobs), log.in_use, log.nodes) == (2, 1, 1)


# --- SWF by pandas against Python's own numbers ---

FIELD = st.one_of(
    st.integers(-5, 10**12).map(str),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.sampled_from(
        ["-1", "1e5", "+3", ".5", "5.", "1_0", "nan", "inf", "True", "0x10", "1,5", '"1"', "1e999",
         "1e-400", "N/A", "#", "1d5", "--1", "1\0", "9" * 400, "1e", "null", "١", "Infinity"]
    ),
)  # fmt: skip


@given(
    st.lists(st.lists(FIELD, min_size=18, max_size=18), min_size=1, max_size=3), st.integers(1, 3)
)
@settings(max_examples=scale_count(300, least=60), deadline=None)
def test_numbers_of_swf_are_those_of_python_or_refused(tmp_path_factory, rows, at_once):
    path = tmp_path_factory.getbasetemp() / "numbers.swf"
    path.write_text("".join("\t ".join(row) + "\n" for row in rows), "utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(swf_module, "_LINES_AT_ONCE", at_once)
        try:
            jobs = read_swf(path)[0]
        except InputError as error:
            jobs, said = None, str(error)
    for at, row in enumerate(rows, 1):
        for name, field in zip(SWF_FIELDS, row, strict=True):
            try:
                value = float(field) if field.isascii() and "_" not in field else np.nan
            except ValueError:
                value = np.nan
            if not np.isfinite(value):
                assert jobs is None
                assert f"line {at}, field {name}: must be a finite number" in said
                return
            assert jobs is None or jobs[name][at - 1] == value
    assert jobs is not None


def test_many_lines_of_swf_are_read_in_parts(tmp_path, monkeypatch):
    path = tmp_path / "log.swf"
    path.write_text("".join(SWF_ROW.format(k, 10 * k, 2) for k in range(100)))
    whole = read_swf(path)[0]
    monkeypatch.setattr(swf_module, "_LINES_AT_ONCE", 7)
    pd.testing.assert_frame_equal(read_swf(path)[0], whole)
    assert whole["submit"].tolist() == [10 * k for k in range(100)]
    path.write_text(path.read_text() + "1 2 3\n")
    with pytest.raises(InputError, match="line 101: 3 fields instead of 18"):
        read_swf(path)
