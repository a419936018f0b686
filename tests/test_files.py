"""Floor 0: atomic files out, hostile files in."""

import errno
import gzip
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dlsim import files
from dlsim.errors import InputError, StudyError
from dlsim.joblog import SWF_FIELDS, read_swf

TASKS = {"arrival": "nonnegative", "sigma": "positive", "deadline": "positive"}
TABLE = b"arrival,sigma,deadline\n0,100,20.5\n3.25,7,11\n3.25,1e2,12\n"
JOB = "1 0 -1 1451 128 -1 -1 -1 -1 -1 1 1 1 -1 -1 -1 -1 -1\n"
LOG = f"; Version: 2.2\n; MaxRecords: 2\n; MaxProcs: 128\n{JOB}{JOB.replace('1 0', '2 60', 1)}"
TOML = b'# claims\n[paper]\ntitle = "M"\nrows = [1, 2.5]\n[[claim]]\nkey = 3\n'


def left_over(folder):
    return [path.name for path in folder.rglob("*") if path.name.endswith(".part")]


# --- where the suite's own material lives ---


def test_checkout_has_its_material_beside_the_package():
    root = files.project_root()
    assert root is not None
    assert root == Path(files.__file__).parent.parent
    assert files.shared_folder("notebooks") == root / "notebooks"
    assert files.shared_file("data/README.md") == root / "data" / "README.md"


def test_wheel_has_its_material_inside_the_package(tmp_path, monkeypatch):
    package = tmp_path / "site-packages" / "dlsim"
    notebook = package / "_share" / "notebooks" / "20-mcdf.ipynb"
    notebook.parent.mkdir(parents=True)
    notebook.write_text("{}")
    (package.parent / "pyproject.toml").touch()  # left there by some other package
    monkeypatch.setattr(files, "_PACKAGE", package)
    assert files.project_root() is None
    assert files.shared_file("notebooks/20-mcdf.ipynb") == notebook
    with pytest.raises(InputError, match=r"data: missing from this installation; install dlsim"):
        files.shared_folder("data")


@pytest.mark.parametrize("name", ["", "tests/x.py", "data/none.csv", "data/../README.md", "data"])
def test_nothing_else_is_shared(name):
    with pytest.raises(InputError, match=r"must be one of data, notebooks|no such file among"):
        files.shared_file(name)


# --- atomic files out ---


def test_write_makes_folders_and_replaces(tmp_path):
    path = tmp_path / "a" / "b" / "report.html"
    files.write_text(path, "Größe\r\n")
    assert path.read_bytes() == "Größe\r\n".encode()
    files.write_bytes(path, b"")
    assert path.read_bytes() == b""
    assert [p.name for p in path.parent.iterdir()] == ["report.html"]
    plain = tmp_path / "plain"
    plain.touch()
    assert path.stat().st_mode == plain.stat().st_mode  # the user's umask, not 0600


def test_write_follows_a_symbolic_link(tmp_path):
    real, link = tmp_path / "real.csv", tmp_path / "link.csv"
    real.write_text("old")
    link.symlink_to(real)
    files.write_text(link, "new")
    assert link.is_symlink()
    assert real.read_text() == "new"


@pytest.mark.parametrize("where", ["os.fsync", "os.replace"])
@pytest.mark.parametrize(
    ("code", "error", "remedy"),
    [
        (errno.ENOSPC, StudyError, "free some space"),
        (errno.EDQUOT, StudyError, "free some space"),
        (errno.EACCES, InputError, "choose a folder"),
        (errno.EROFS, InputError, "choose a folder"),
    ],
)
def test_failed_write_keeps_the_old_file(tmp_path, monkeypatch, where, code, error, remedy):
    path = tmp_path / "cell.csv"
    path.write_text("old")

    def fail(*_):
        raise OSError(code, os.strerror(code))

    with monkeypatch.context() as patch:
        patch.setattr(where, fail)
        with pytest.raises(error, match=rf"cell\.csv: not written \({os.strerror(code)}.*{remedy}"):
            files.write_text(path, "new")
    assert path.read_text() == "old"
    assert left_over(tmp_path) == []


def test_interrupt_leaves_nothing(tmp_path, monkeypatch):
    def interrupt(_):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        files.write_text(tmp_path / "cell.csv", "new")
    assert list(tmp_path.iterdir()) == []


def test_killed_writer_never_shows_half_a_file(tmp_path):
    path = tmp_path / "cell.csv"
    path.write_text("old")
    code = (
        "import os, signal, sys; from dlsim import files\n"
        "os.fsync = lambda _: os.kill(os.getpid(), signal.SIGKILL)\n"
        "files.write_text(sys.argv[1], 'x' * 100000)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(path)], check=False, timeout=60)
    assert done.returncode == -signal.SIGKILL
    assert path.read_text() == "old"


def test_unwritable_places_are_named(tmp_path):
    (tmp_path / "file").touch()
    (tmp_path / "folder").mkdir()
    for path in ("file/below.csv", "folder", "x" * 300, "nul\0byte"):
        with pytest.raises(InputError, match=r"not written .*choose a folder") as caught:
            files.write_text(tmp_path / path, "x")
        assert str(tmp_path / path) in str(caught.value)
    assert left_over(tmp_path) == []


def test_read_only_folder(tmp_path, monkeypatch):
    folder = tmp_path / "locked"
    folder.mkdir(mode=0o500)
    if os.access(folder, os.W_OK):  # the superuser may write anywhere

        def refuse(*_):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

        monkeypatch.setattr("builtins.open", refuse)
    with pytest.raises(InputError, match=r"x\.csv: not written \(Permission denied\)"):
        files.write_text(folder / "x.csv", "x")
    assert list(folder.iterdir()) == []


def test_csv_bytes(tmp_path):
    frame = pd.DataFrame(
        {"x": [0.1 + 0.2, np.nan, 1e-300], "n": [1, 2, 3], "ok": [True, False, True]},
        index=pd.Index([5, 6, 7], name="task"),
    )
    files.write_text(tmp_path / "a.csv", files.csv_text(frame))
    expected = b"task,x,n,ok\n5,0.30000000000000004,1,True\n6,,2,False\n7,1e-300,3,True\n"
    assert (tmp_path / "a.csv").read_bytes() == expected
    files.write_text(tmp_path / "b.csv", files.csv_text(frame.reset_index(drop=True)[["n"]]))
    assert (tmp_path / "b.csv").read_bytes() == b"n\n1\n2\n3\n"


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=20))
@settings(max_examples=50, deadline=None)
def test_floats_survive_a_round_trip(tmp_path_factory, values):
    path = tmp_path_factory.getbasetemp() / "round.csv"
    files.write_text(path, files.csv_text(pd.DataFrame({"x": values})))
    read = files.read_csv(path, {"x": "number"})["x"].to_numpy()
    assert read.tobytes() == np.array(values).tobytes()


# --- CSV in ---


def read_tasks(path, **more):
    return files.read_csv(path, TASKS, {"task": "text"}, ascending="arrival", unique="task", **more)


@pytest.mark.parametrize(
    "data",
    [
        TABLE,
        TABLE.replace(b"\n", b"\r\n"),
        b"\xef\xbb\xbf" + TABLE,
        gzip.compress(TABLE, mtime=0),
        TABLE.replace(b"\n", b"\n\n"),
        TABLE.rstrip(),
        b" deadline, sigma ,arrival\n 20.5,100,0\n11,7,3.25\n12,100.0,3.25\n",
    ],
    ids=["plain", "crlf", "bom", "gzip", "blank lines", "no last newline", "spaces, other order"],
)
def test_read_csv(tmp_path, data):
    (tmp_path / "t.csv").write_bytes(data)
    frame = read_tasks(tmp_path / "t.csv")
    assert frame["arrival"].tolist() == [0.0, 3.25, 3.25]
    assert frame["sigma"].tolist() == [100.0, 7.0, 100.0]
    assert frame["deadline"].tolist() == [20.5, 11.0, 12.0]
    assert (frame.dtypes == np.float64).all()


def test_further_columns_are_kept(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("x,rank,owner,count\n1,3,ann,1\n2,,bob,9007199254740992\n")
    frame = files.read_csv(path, {"x": "number"}, {"count": "whole"})
    assert frame["rank"].tolist()[0] == 3.0
    assert np.isnan(frame["rank"].tolist()[1])
    assert frame["owner"].tolist() == ["ann", "bob"]
    assert frame["count"].tolist() == [1, 2**53]
    assert frame["count"].dtype == np.int64


def test_header_alone_is_an_empty_table(tmp_path):
    (tmp_path / "t.csv").write_bytes(b"arrival,sigma,deadline,task\n")
    assert read_tasks(tmp_path / "t.csv").empty


HEAD = b"arrival,sigma,deadline\n"


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", r"line 1, field arrival: no such column; the first line names none"),
        (b"arrival\tsigma\tdeadline\n0\t1\t2\n", r"line 1, .* separated by tabs: save .* commas"),
        (b"arrival|sigma|deadline\n0|1|2\n", r"line 1, .* separated by bars: save the file with"),
        (b"# exported\narrival,sigma,deadline\n", r"line 1, .* it is a comment: remove it"),
        (b"arrival;sigma;deadline\n0;1,5;1.234,5\n", r"line 2, field deadline: .*'1.234.5'"),
        (b"arrival;sigma;deadline\n0;1,5\n", r"line 2: 2 fields instead of 3"),
        (b"arrival,sigma\n0,1\n", r"line 1, field deadline: no such column.*names arrival, sigma"),
        (b"arrival,sigma,deadline,sigma\n", r"line 1, field sigma: two columns of this name"),
        (b"arrival,sigma,deadline,\n", r"line 1: a column without a name"),
        (
            HEAD + b"0,1,2\n1,x,2\n",
            r"line 3, field sigma: must be a finite number above 0, got 'x'",
        ),
        (HEAD + b"0,nan,2\n", r"line 2, field sigma: .* got 'nan'"),
        (HEAD + b"0,inf,2\n", r"line 2, field sigma: .* got 'inf'"),
        (HEAD + b"0,1_0,2\n", r"line 2, field sigma: .* got '1_0'"),
        (HEAD + b"0,0,2\n", r"line 2, field sigma: must be a finite number above 0, got '0'"),
        (HEAD + b"0,1,-2\n", r"line 2, field deadline: .* above 0, got '-2'"),
        (HEAD + b"-1,1,2\n", r"line 2, field arrival: .* of at least 0, got '-1'"),
        (HEAD + b"0,,2\n", r"line 2, field sigma: .* got ''"),
        (HEAD + b"0,1\n", r"line 2: 2 fields instead of 3 \(arrival, sigma, deadline\)"),
        (HEAD + b"0,1,2,3\n", r"line 2: 4 fields instead of 3"),
        (HEAD + b"5,1,2\n\n4.5,1,2\n", r"line 4, field arrival: 4.5 comes after 5.0; sort the"),
        (HEAD + b"0,1,2\n0,\xff,2\n", r"line 3: not UTF-8 text \(byte 3\); save the file as UTF-8"),
        (HEAD + b'0,"1"x,2\n', r"line 2: not a CSV line"),
        (HEAD + b'0,"1,2\n', r"line 2: not a CSV line"),
        (HEAD + b"0,1,2\r3,4,5\r", r"line 2: not a CSV line"),
        (
            b"arrival,sigma,deadline,task\n0,1,2,a\n0,1,2,a\n",
            r"line 3, field task: 'a' is used twi",
        ),
        (b"arrival,sigma,deadline,task\n0,1,2, \n", r"line 2, field task: .*not blank, got ' '"),
        (gzip.compress(TABLE, mtime=0)[:-9], r"line \d+: cannot be read on .*fetch the file again"),
        (gzip.compress(TABLE, mtime=0)[:30] + b"\0" * 30, r"line 1: cannot be read on .*fetch"),
    ],
)
def test_broken_csv_is_refused_by_file_line_and_field(tmp_path, data, message):
    (tmp_path / "t.csv").write_bytes(data)
    with pytest.raises(InputError, match=rf"t\.csv, {message}"):
        read_tasks(tmp_path / "t.csv")


@pytest.mark.parametrize("text", [
    "1.5", "1.0_0", "1_0", "nan", "inf", "x", str(2**53 + 1), "9" * 30, "9" * 5000, "",
])  # fmt: skip
def test_broken_whole_number(tmp_path, text):
    (tmp_path / "t.csv").write_text(f"n\n{text or '  '}\n")
    with pytest.raises(InputError, match=r"t\.csv, line 2, field n: must be a whole number"):
        files.read_csv(tmp_path / "t.csv", {"n": "whole"})


def test_a_table_with_semicolons_and_decimal_commas(tmp_path):
    (tmp_path / "t.csv").write_text("arrival;sigma;deadline;who\n0;1,5;2;a,b\n1;2.5;3;c\n")
    tasks = read_tasks(tmp_path / "t.csv")
    assert tasks["sigma"].tolist() == [1.5, 2.5]
    assert tasks["who"].tolist() == ["a,b", "c"]


@pytest.mark.parametrize("name", ["none.csv", "", "nul\0byte"])
@pytest.mark.parametrize("read", [read_tasks, read_swf, files.read_toml])
def test_unreadable_files_are_named(tmp_path, name, read):
    with pytest.raises(InputError, match=r"cannot be read .*check the name"):
        read(tmp_path / name)


# --- TOML in ---


def test_read_toml(tmp_path):
    (tmp_path / "c.toml").write_bytes(TOML.replace(b"\n", b"\r\n"))
    document = files.read_toml(tmp_path / "c.toml")
    assert document == {"paper": {"title": "M", "rows": [1, 2.5]}, "claim": [{"key": 3}]}


@pytest.mark.parametrize(
    ("data", "line"),
    [
        (b"a = 1\nb = \n", 2),
        (b"a = 1\na = 2\n", 2),
        (b'a = 1\nb = "x', 2),
        (b"a = 1\nb = \xff\n", 2),
        (b"a = 2021-13-45\n", 1),
        (b"a = " + b"9" * 5000, 1),
        (b"a = " + b"[" * 100000, 1),
    ],
    ids=["no value", "twice", "open text", "bytes", "date", "digits", "nested"],
)
def test_broken_toml_is_refused_by_file_and_line(tmp_path, data, line):
    (tmp_path / "c.toml").write_bytes(data)
    with pytest.raises(InputError, match=rf"c\.toml, line {line}: not (valid TOML|UTF-8)"):
        files.read_toml(tmp_path / "c.toml")


# --- whole files in: bytes, JSON, arrays ---


def test_read_bytes_up_to_its_limit(tmp_path):
    path = tmp_path / "a.png"
    path.write_bytes(b"12345")
    (tmp_path / "link").symlink_to(path)
    assert files.read_bytes(tmp_path / "link", limit=5) == b"12345"
    with pytest.raises(InputError, match=r"a\.png: more than 4 bytes: split it or raise limit"):
        files.read_bytes(path, limit=4)


def test_a_file_that_says_it_is_empty_is_bounded_too():
    # /proc declares 0 bytes of what is endless or not known beforehand
    with pytest.raises(InputError, match="more than 10 bytes"):
        files.read_bytes("/proc/self/status", limit=10)


def test_a_text_that_is_not_utf_8_is_refused_by_line(tmp_path):
    (tmp_path / "t").write_bytes(b"a\nb\n\xff")
    with pytest.raises(InputError, match="t, line 3: not UTF-8 text; save"):
        files.read_text(tmp_path / "t")


def nested(depth):
    return "[" * depth + "]" * depth


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"line 1: not valid JSON: Expecting value"),
        ('{"a": 1,\n "b": }', r"line 2: not valid JSON: Expecting value"),
        (nested(files.MAX_DEPTH + 1), r"nested more than 100 deep"),
        (nested(10**5), r"line 1: not valid JSON: nested more than 100 deep"),
        ('{"a": [' + "9" * 400 + "]}", r"holds a whole number beyond 1\.8e308"),
        ("-" + "9" * 400, r"holds a whole number beyond 1\.8e308"),
        ("9" * 5000, r"line 1: not valid JSON: Exceeds the limit .* has 5000 digits$"),
    ],
)
def test_broken_json_is_refused(tmp_path, text, message):
    (tmp_path / "a.json").write_text(text)
    with pytest.raises(InputError, match=rf"a\.json(, |: ){message}"):
        files.read_json(tmp_path / "a.json")


def test_read_json(tmp_path):
    text = nested(files.MAX_DEPTH)
    (tmp_path / "a.json").write_text("\ufeff" + text, "utf-8")
    assert files.read_json(tmp_path / "a.json") == eval(text)
    (tmp_path / "a.json").write_text(f'{{"a": [{2**1023}, true, 1.5]}}')
    assert files.read_json(tmp_path / "a.json") == {"a": [2**1023, True, 1.5]}


def test_a_dotted_key_is_bounded_and_dots_elsewhere_are_not(tmp_path):
    path, parts = tmp_path / "c.toml", ["a", '"b.c"', "'d'"] * 40
    path.write_text(f"x = 1\n[{' . '.join(parts)}]\n")
    with pytest.raises(InputError, match=r"c\.toml, line 2: a key of more than 100 parts"):
        files.read_toml(path)
    path.write_text(f"x = [{'1.5, ' * 500}]\ny = '{'... ' * 300}'\n[{'.'.join(parts[:90])}]\n")
    assert len(files.read_toml(path)["x"]) == 500


LONG_KEY = ".".join("a" * 150)


@pytest.mark.parametrize(
    ("before", "line"),
    [
        ('# """\n', 2),
        ('x = {a = """\nit\'s""", ', 2),
        ('x = "# "\n', 2),
        ('x = "\\\\"\n', 2),
        ("x = [ # it's\n1, 2]\n", 3),
        ('"a" . ', 1),
    ],
)
def test_a_long_key_is_found_behind_any_text(tmp_path, before, line):
    path = tmp_path / "c.toml"
    path.write_text(f"{before}{LONG_KEY} = 1\n")
    with pytest.raises(InputError, match=rf"c\.toml, line {line}: a key of more than 100 parts"):
        files.read_toml(path)


@pytest.mark.parametrize("quotes", ['"', "'", '"""', "'''"])
def test_dots_in_texts_and_comments_part_no_key(tmp_path, quotes):
    path = tmp_path / "c.toml"
    path.write_text(f"x = {quotes}{LONG_KEY}{quotes} # {LONG_KEY}\n")
    assert files.read_toml(path) == {"x": LONG_KEY}


def test_many_escaped_quotes_are_read_in_one_pass(tmp_path):
    path = tmp_path / "c.toml"
    path.write_text('x = "' + '\\"' * 500_000 + '"\n')  # minutes if each was tried again
    assert len(files.read_toml(path)["x"]) == 500_000


def test_more_columns_than_a_table_has(tmp_path):
    names = [f"c{i}" for i in range(files.MAX_COLUMNS + 1)]
    (tmp_path / "t.csv").write_text(",".join(names) + "\n")
    with pytest.raises(InputError, match=r"t\.csv, line 1: 1001 columns, more than 1000"):
        files.read_csv(tmp_path / "t.csv", {"c0": "number"})
    (tmp_path / "t.csv").write_text(",".join(names[1:]) + "\n")
    assert len(files.read_csv(tmp_path / "t.csv", {"c1": "number"}).columns) == 1000


# --- SWF in ---


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
@pytest.mark.parametrize("ends", [b"\n", b"\r\n"])
def test_read_swf(tmp_path, pack, ends):
    (tmp_path / "log").write_bytes(pack(LOG.encode().replace(b"\n", ends)))
    jobs, header, notes = read_swf(tmp_path / "log")
    assert len(SWF_FIELDS) == 18
    assert tuple(jobs.columns) == SWF_FIELDS
    assert jobs[
        ["job", "submit", "wait", "run_time", "processors", "status"]
    ].to_numpy().tolist() == [[1, 0, -1, 1451, 128, 1], [2, 60, -1, 1451, 128, 1]]
    assert header == {"Version": "2.2", "MaxRecords": "2", "MaxProcs": "128"}
    assert notes == []


def test_swf_labels_that_come_again_are_joined(tmp_path):
    text = f"; Note: one\n;\n; no label\n; Note: two\n{JOB}; Version: 9\n"
    (tmp_path / "log").write_text(text)
    assert read_swf(tmp_path / "log")[1] == {"Note": "one\ntwo"}


def test_odd_values_are_data(tmp_path):
    odd = "7 5 -1 0 -1 1.5 -1 -3 1e300 -1 5 -1 -1 -1 -1 -1 -1 -1\n"
    (tmp_path / "log").write_text(odd)
    jobs, _, _ = read_swf(tmp_path / "log")
    assert jobs.loc[0, ["run_time", "processors", "cpu_time", "time_requested"]].tolist() == [
        0,
        -1,
        1.5,
        1e300,
    ]


@pytest.mark.parametrize(
    ("head", "note"),
    [
        ("; MaxRecords: 5", r"header says MaxRecords '5', the jobs say 2"),
        ("; MaxRecords: many", r"header says MaxRecords 'many', the jobs say 2"),
        ("; MaxJobs: 1", r"header says MaxJobs '1', the jobs say 2"),
        ("; MaxProcs: 64", r"header says MaxProcs '64', the jobs say 128"),
        ("; MaxProcs: -" + "9" * 5000, r"header line MaxProcs: '-9+' is not a number .* not used"),
        (b"; Installation: Universit\xe4t", r"line 1: a comment is not UTF-8, read as Latin-1"),
        (JOB.replace("1 0", "3 99", 1), r"submit times are not in order"),
        (JOB, r"1 lines repeat the number of an earlier job, and count as jobs too"),
    ],
)
def test_lies_of_a_header_are_noted(tmp_path, head, note):
    head = head if isinstance(head, bytes) else head.encode()
    jobs = f"\n{JOB}{JOB.replace('1 0', '2 60', 1)}".encode()
    (tmp_path / "log").write_bytes(head + jobs)
    _, header, notes = read_swf(tmp_path / "log")
    assert len(notes) == 1
    pd.testing.assert_series_equal(
        pd.Series(notes).str.fullmatch(note), pd.Series([True]), check_dtype=False
    )
    if b"Universit" in head:
        assert header["Installation"] == "Universität"


def test_wider_header_is_no_lie(tmp_path):
    (tmp_path / "log").write_text("; MaxProcs: 256\n" + JOB)
    assert read_swf(tmp_path / "log")[2] == []


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", r"line 1: the file ends without a single job line"),
        (b"; Version: 2.2\n;\n", r"line 2: the file ends without a single job line"),
        (LOG.encode() + b"1 2 3\n", r"line 6: 3 fields instead of 18"),
        (LOG.encode() + b"1 " + JOB.encode(), r"line 6: 19 fields instead of 18"),
        (LOG.replace("1451", "nan").encode(), r"line 4, field run_time: must be a finite .* 'nan'"),
        (LOG.replace("1451", "inf").encode(), r"line 4, field run_time: .* got 'inf'"),
        (LOG.replace("1451", "1_0").encode(), r"line 4, field run_time: .* got '1_0'"),
        (LOG.replace("1451", "x").encode(), r"line 4, field run_time: .* got 'x'"),
        (LOG.encode().replace(b"1451", b"\xff\xfe"), r"line 4, field run_time: .* got"),
        (LOG.encode().replace(b"1451", b"1\x000"), r"line 4, field run_time: .* got"),
        (LOG.encode().replace(b"\n", b"\r"), r"line 1: the file ends without"),
        (b"9" * 2**21, r"line 1: longer than 1048576 bytes"),
        (gzip.compress(LOG.encode(), mtime=0)[:60], r"line \d+: cannot be read on"),
        (gzip.compress(LOG.encode(), mtime=0) + b"rubbish", r"line 6: cannot be read on"),
    ],
)
def test_broken_swf_is_refused_by_file_line_and_field(tmp_path, data, message):
    (tmp_path / "log.swf").write_bytes(data)
    with pytest.raises(InputError, match=rf"log\.swf, {message}"):
        read_swf(tmp_path / "log.swf")


def test_limit_is_on_what_comes_out(tmp_path):
    data = LOG.encode()
    for name, packed in (("plain", data), ("packed", gzip.compress(data))):
        (tmp_path / name).write_bytes(packed)
        assert len(read_swf(tmp_path / name, limit=len(data))[0]) == 2
        with pytest.raises(InputError, match=rf"{name}, line 5: more than {len(data) - 1} bytes"):
            read_swf(tmp_path / name, limit=len(data) - 1)


@pytest.mark.parametrize("read", [read_swf, read_tasks, files.read_toml])
@pytest.mark.parametrize(
    ("bomb", "free", "message"),
    [(b"\0" * 2**24, 2**20, "longer than"), (b"\n" * 2**20, 2**16, "200-fold like a gzip bomb")],
    ids=["one line", "many lines"],
)
def test_gzip_bomb_goes_off_small(tmp_path, monkeypatch, read, bomb, free, message):
    monkeypatch.setattr(files, "FREE_GROWTH_BYTES", free)
    head = HEAD if read is read_tasks else b""
    (tmp_path / "bomb").write_bytes(gzip.compress(head + bomb, 9))
    assert (tmp_path / "bomb").stat().st_size < 2**15
    start = time.process_time()
    with pytest.raises(InputError, match=rf"bomb, line \d+: .*{message}"):
        read(tmp_path / "bomb")
    assert time.process_time() - start < 10
