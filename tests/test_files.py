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
from tests.helpers.refusals import require_refusals

TASKS = {"arrival": "nonnegative", "sigma": "positive", "deadline": "positive"}
HEAD = "arrival,sigma,deadline\n"
TABLE = b"arrival,sigma,deadline\n0,100,20.5\n3.25,7,11\n3.25,1e2,12\n"
JOB = "1 0 -1 1451 128 -1 -1 -1 -1 -1 1 1 1 -1 -1 -1 -1 -1\n"
LOG = f"; Version: 2.2\n; MaxRecords: 2\n; MaxProcs: 128\n{JOB}{JOB.replace('1 0', '2 60', 1)}"


def read_tasks(path):
    return files.read_csv(path, TASKS, {"task": "text"}, ascending="arrival", unique="task")


def require_refused_files(path, read, table):
    """Fail unless each file of a table of contents and words is refused by its name in words."""

    def call(data):
        path.write_bytes(data if isinstance(data, bytes) else data.encode())
        read(path)

    require_refusals(
        [(lambda data=data: call(data), f"{path.name}(, |: ){words}") for data, words in table]
    )


# --- where the suite's own material lives ---


def test_checkout_has_its_material_beside_the_package():
    root = files.project_root()
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


def test_nothing_else_is_shared():
    words = r"must be one of data, notebooks|no such file among"
    names = ("", "tests/x.py", "data/none.csv", "data/../README.md", "data")
    require_refusals([(lambda name=name: files.shared_file(name), words) for name in names])


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


@pytest.mark.parametrize("where", ["builtins.open", "os.fsync", "os.replace"])
@pytest.mark.parametrize(
    ("cause", "error", "remedy"),
    [
        (errno.ENOSPC, StudyError, "free some space"),
        (errno.EDQUOT, StudyError, "free some space"),
        (errno.EACCES, InputError, "choose a folder"),
        (errno.EROFS, InputError, "choose a folder"),
        (None, KeyboardInterrupt, ""),
    ],
)
def test_failed_write_keeps_the_old_file(tmp_path, monkeypatch, where, cause, error, remedy):
    path = tmp_path / "cell.csv"
    path.write_text("old")

    def fail(*_):
        raise OSError(cause, os.strerror(cause)) if cause else KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(where, fail)
        with pytest.raises(error) as told:
            files.write_text(path, "new")
    said = f"{path}: not written ({os.strerror(cause)}); {remedy}" if cause else ""
    assert str(told.value).startswith(said)
    assert path.read_text() == "old"
    assert [one.name for one in tmp_path.iterdir()] == ["cell.csv"]


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
    assert {one.name for one in tmp_path.rglob("*")} == {"file", "folder"}


def test_csv_bytes():
    frame = pd.DataFrame(
        {"x": [0.1 + 0.2, np.nan, 1e-300], "n": [1, 2, 3], "ok": [True, False, True]},
        index=pd.Index([5, 6, 7], name="task"),
    )
    expected = "task,x,n,ok\n5,0.30000000000000004,1,True\n6,,2,False\n7,1e-300,3,True\n"
    assert files.csv_text(frame) == expected
    assert files.csv_text(frame.reset_index(drop=True)[["n"]]) == "n\n1\n2\n3\n"


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=20))
@settings(max_examples=30)
def test_floats_survive_a_round_trip(tmp_path_factory, values):
    path = tmp_path_factory.getbasetemp() / "round.csv"
    files.write_text(path, files.csv_text(pd.DataFrame({"x": values})))
    read = files.read_csv(path, {"x": "number"})["x"].to_numpy()
    assert read.tobytes() == np.array(values).tobytes()


# --- CSV in ---


def test_a_table_is_read_however_it_is_written(tmp_path):
    path = tmp_path / "t.csv"
    for data in (
        TABLE,
        TABLE.replace(b"\n", b"\r\n"),
        b"\xef\xbb\xbf" + TABLE,
        gzip.compress(TABLE, mtime=0),
        TABLE.replace(b"\n", b"\n\n"),
        TABLE.rstrip(),
        b" deadline, sigma ,arrival\n 20.5,100,0\n11,7,3.25\n12,100.0,3.25\n",
        b"arrival;sigma;deadline\n0;100,0;20,5\n3,25;7.0;11\n3.25;100;12\n",
    ):
        path.write_bytes(data)
        tasks = read_tasks(path)
        assert tasks["arrival"].tolist() == [0.0, 3.25, 3.25], data
        assert tasks["sigma"].tolist() == [100.0, 7.0, 100.0], data
        assert tasks["deadline"].tolist() == [20.5, 11.0, 12.0], data
        assert (tasks.dtypes == np.float64).all()
    path.write_text("arrival,sigma,deadline,task\n")
    assert read_tasks(path).empty


def test_further_columns_are_kept(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("x,rank,owner,count\n1,3,ann,1\n2,,bob,9007199254740992\n")
    frame = files.read_csv(path, {"x": "number"}, {"count": "whole"})
    assert frame["rank"].tolist()[0] == 3.0
    assert np.isnan(frame["rank"].tolist()[1])
    assert frame["owner"].tolist() == ["ann", "bob"]
    assert frame["count"].tolist() == [1, 2**53]
    assert frame["count"].dtype == np.int64
    path.write_text("x;who\n1;a,b\n")
    assert files.read_csv(path, {"x": "number"})["who"].tolist() == ["a,b"]


def test_broken_csv_is_refused_by_file_line_and_field(tmp_path):
    packed, named = gzip.compress(TABLE, mtime=0), HEAD.replace("\n", ",task\n")
    broken = [
        ("", "line 1, field arrival: no such column; the first line names none"),
        ("arrival\tsigma\tdeadline\n0\t1\t2\n", "line 1, .* separated by tabs: save .* commas"),
        ("arrival|sigma|deadline\n0|1|2\n", "line 1, .* separated by bars: save the file with"),
        ("# exported\n" + HEAD, "line 1, .* it is a comment: remove it"),
        ("arrival;sigma;deadline\n0;1,5;1.234,5\n", r"line 2, field deadline: .*'1.234.5'"),
        ("arrival;sigma;deadline\n0;1,5\n", "line 2: 2 fields instead of 3"),
        ("arrival,sigma\n0,1\n", "line 1, field deadline: no such column.*names arrival, sigma"),
        ("arrival,sigma,deadline,sigma\n", "line 1, field sigma: two columns of this name"),
        ("arrival,sigma,deadline,\n", "line 1: a column without a name"),
        (HEAD + "0,1,2\n1,x,2\n", "line 3, field sigma: must be a finite number above 0, got 'x'"),
        *((f"{HEAD}0,{text},2\n", f"line 2, field sigma: .* above 0, got '{text}'")
          for text in ("nan", "inf", "1_0", "0", "")),
        (HEAD + "0,1,-2\n", "line 2, field deadline: .* above 0, got '-2'"),
        (HEAD + "-1,1,2\n", "line 2, field arrival: .* of at least 0, got '-1'"),
        (HEAD + "0,1\n", r"line 2: 2 fields instead of 3 \(arrival, sigma, deadline\)"),
        (HEAD + "0,1,2,3\n", "line 2: 4 fields instead of 3"),
        (HEAD + "5,1,2\n\n4.5,1,2\n", "line 4, field arrival: 4.5 comes after 5.0; sort the"),
        (HEAD.encode() + b"0,1,2\n0,\xff,2\n", r"line 3: not UTF-8 text \(byte 3\); save the file"),
        *((HEAD + rest, "line 2: not a CSV line")
          for rest in ('0,"1"x,2\n', '0,"1,2\n', "0,1,2\r3,4,5\r")),
        (named + "0,1,2,a\n0,1,2,a\n", "line 3, field task: 'a' is used twice"),
        (named + "0,1,2, \n", "line 2, field task: .*not blank, got ' '"),
        (packed[:-9], r"line \d+: cannot be read on .*fetch the file again"),
        (packed[:30] + b"\0" * 30, "line 1: cannot be read on .*fetch"),
    ]  # fmt: skip
    require_refused_files(tmp_path / "t.csv", read_tasks, broken)


def test_broken_whole_number(tmp_path):
    texts = "1.5", "1.0_0", "1_0", "nan", "inf", "x", str(2**53 + 1), "9" * 30, "9" * 5000, "  "
    broken = [(f"n\n{text}\n", "line 2, field n: must be a whole number") for text in texts]
    read = lambda path: files.read_csv(path, {"n": "whole"})  # noqa: E731
    require_refused_files(tmp_path / "t.csv", read, broken)


def test_more_columns_than_a_table_has(tmp_path):
    read = lambda path: files.read_csv(path, {"c1": "number"})  # noqa: E731
    names = [f"c{i}" for i in range(files.MAX_COLUMNS + 1)]
    broken = [(",".join(names) + "\n", "line 1: 1001 columns, more than 1000")]
    require_refused_files(tmp_path / "t.csv", read, broken)
    (tmp_path / "t.csv").write_text(",".join(names[1:]) + "\n")
    assert len(read(tmp_path / "t.csv").columns) == 1000


def test_unreadable_files_are_named(tmp_path):
    for read in (read_tasks, read_swf, files.read_toml):
        for name in ("none.csv", "", "nul\0byte"):
            with pytest.raises(InputError, match=r"cannot be read .*check the name"):
                read(tmp_path / name)


# --- TOML in ---


LONG_KEY = ".".join("a" * 150)
PARTS = ["a", '"b.c"', "'d'"] * 40


def test_read_toml(tmp_path):
    path = tmp_path / "c.toml"
    path.write_bytes(b'# claims\r\n[paper]\r\ntitle = "M"\r\nrows = [1, 2.5]\r\n[[claim]]\r\nk = 3')
    assert files.read_toml(path) == {"paper": {"title": "M", "rows": [1, 2.5]}, "claim": [{"k": 3}]}


def test_broken_toml_is_refused_by_file_and_line(tmp_path):
    broken = [
        *((data, f"line {line}: not (valid TOML|UTF-8)") for data, line in [
            ("a = 1\nb = \n", 2), ("a = 1\na = 2\n", 2), ('a = 1\nb = "x', 2),
            (b"a = 1\nb = \xff\n", 2), ("a = 2021-13-45\n", 1), ("a = " + "9" * 5000, 1),
            ("a = " + "[" * 100000, 1),
        ]),
        *((data, f"line {line}: a key of more than 100 parts") for data, line in [
            (f"x = 1\n[{' . '.join(PARTS)}]\n", 2),
            *((f"{before}{LONG_KEY} = 1\n", line) for before, line in [
                ('# """\n', 2), ('x = {a = """\nit\'s""", ', 2), ('x = "# "\n', 2),
                ('x = "\\\\"\n', 2), ("x = [ # it's\n1, 2]\n", 3), ('"a" . ', 1),
            ]),
        ]),
    ]  # fmt: skip
    require_refused_files(tmp_path / "c.toml", files.read_toml, broken)


def test_dots_in_numbers_texts_and_comments_part_no_key(tmp_path):
    path = tmp_path / "c.toml"
    path.write_text(f"x = [{'1.5, ' * 500}]\ny = '{'... ' * 300}'\n[{'.'.join(PARTS[:90])}]\n")
    assert len(files.read_toml(path)["x"]) == 500
    for quotes in ('"', "'", '"""', "'''"):
        path.write_text(f"x = {quotes}{LONG_KEY}{quotes} # {LONG_KEY}\n")
        assert files.read_toml(path) == {"x": LONG_KEY}
    path.write_text('x = "' + '\\"' * 500_000 + '"\n')  # minutes if each was tried again
    assert len(files.read_toml(path)["x"]) == 500_000


# --- whole files in: bytes, JSON, arrays ---


def test_read_bytes_up_to_its_limit(tmp_path):
    path = tmp_path / "a.png"
    path.write_bytes(b"12345")
    (tmp_path / "link").symlink_to(path)
    assert files.read_bytes(tmp_path / "link", limit=5) == b"12345"
    with pytest.raises(InputError, match=r"a\.png: more than 4 bytes: split it or raise limit"):
        files.read_bytes(path, limit=4)
    with pytest.raises(InputError, match="more than 10 bytes"):  # it says that it holds 0 bytes
        files.read_bytes("/proc/self/status", limit=10)


def test_a_text_that_is_not_utf_8_is_refused_by_line(tmp_path):
    broken = [(b"a\nb\n\xff", "line 3: not UTF-8 text; save")]
    require_refused_files(tmp_path / "t", files.read_text, broken)


def nested(depth):
    return "[" * depth + "]" * depth


def test_read_json(tmp_path):
    path = tmp_path / "a.json"
    path.write_text("\ufeff" + nested(files.MAX_DEPTH), "utf-8")
    assert files.read_json(path) == eval(nested(files.MAX_DEPTH))
    path.write_text(f'{{"a": [{2**1023}, true, 1.5]}}')
    assert files.read_json(path) == {"a": [2**1023, True, 1.5]}


def test_broken_json_is_refused(tmp_path):
    broken = [
        ("", "line 1: not valid JSON: Expecting value"),
        ('{"a": 1,\n "b": }', "line 2: not valid JSON: Expecting value"),
        (nested(files.MAX_DEPTH + 1), "nested more than 100 deep"),
        (nested(10**5), "line 1: not valid JSON: nested more than 100 deep"),
        ('{"a": [' + "9" * 400 + "]}", r"holds a whole number beyond 1\.8e308"),
        ("-" + "9" * 400, r"holds a whole number beyond 1\.8e308"),
        ("9" * 5000, "line 1: not valid JSON: Exceeds the limit .* has 5000 digits$"),
    ]
    require_refused_files(tmp_path / "a.json", files.read_json, broken)


# --- SWF in ---


def test_read_swf(tmp_path):
    assert len(SWF_FIELDS) == 18
    for pack in (bytes, gzip.compress):
        for ends in (b"\n", b"\r\n"):
            (tmp_path / "log").write_bytes(pack(LOG.encode().replace(b"\n", ends)))
            jobs, header, notes = read_swf(tmp_path / "log")
            assert tuple(jobs.columns) == SWF_FIELDS
            some = jobs[["job", "submit", "wait", "run_time", "processors", "status"]]
            assert some.to_numpy().tolist() == [[1, 0, -1, 1451, 128, 1], [2, 60, -1, 1451, 128, 1]]
            assert header == {"Version": "2.2", "MaxRecords": "2", "MaxProcs": "128"}
            assert notes == []


def test_swf_labels_that_come_again_are_joined(tmp_path):
    text = f"; Note: one\n;\n; no label\n; Note: two\n{JOB}; Version: 9\n"
    (tmp_path / "log").write_text(text)
    assert read_swf(tmp_path / "log")[1] == {"Note": "one\ntwo"}


def test_odd_values_are_data(tmp_path):
    (tmp_path / "log").write_text("7 5 -1 0 -1 1.5 -1 -3 1e300 -1 5 -1 -1 -1 -1 -1 -1 -1\n")
    jobs, _, _ = read_swf(tmp_path / "log")
    some = ["run_time", "processors", "cpu_time", "time_requested"]
    assert jobs.loc[0, some].tolist() == [0, -1, 1.5, 1e300]


@pytest.mark.parametrize(
    ("head", "note"),
    [
        ("; MaxProcs: 256", None),  # wider than the jobs
        ("; MaxRecords: 5", "header says MaxRecords '5', the jobs say 2"),
        ("; MaxRecords: many", "header says MaxRecords 'many', the jobs say 2"),
        ("; MaxJobs: 1", "header says MaxJobs '1', the jobs say 2"),
        ("; MaxProcs: 64", "header says MaxProcs '64', the jobs say 128"),
        (
            f"; MaxProcs: -{'9' * 5000}",
            f"header line MaxProcs: '-{'9' * 39}' is not a number of processors; not used",
        ),
        ("; Installation: Universit\xe4t", "line 1: a comment is not UTF-8, read as Latin-1"),
        (JOB.replace("1 0", "3 99", 1), "submit times are not in order"),
        (JOB, "1 lines repeat the number of an earlier job, and count as jobs too"),
    ],
)
def test_lies_of_a_header_are_noted(tmp_path, head, note):
    jobs = f"{head}\n{JOB}{JOB.replace('1 0', '2 60', 1)}"
    (tmp_path / "log").write_text(jobs, "latin-1")
    _, header, notes = read_swf(tmp_path / "log")
    assert notes == ([note] if note else [])
    assert header.get("Installation", "Universität") == "Universität"


def test_broken_swf_is_refused_by_file_line_and_field(tmp_path):
    log, packed = LOG.encode(), gzip.compress(LOG.encode(), mtime=0)
    broken = [
        ("", "line 1: the file ends without a single job line"),
        ("; Version: 2.2\n;\n", "line 2: the file ends without a single job line"),
        (LOG + "1 2 3\n", "line 6: 3 fields instead of 18"),
        (LOG + "1 " + JOB, "line 6: 19 fields instead of 18"),
        *((log.replace(b"1451", text), "line 4, field run_time: must be a finite .* got")
          for text in (b"nan", b"inf", b"1_0", b"x", b"\xff\xfe", b"1\x000")),
        (log.replace(b"\n", b"\r"), "line 1: the file ends without"),
        (b"9" * 2**21, "line 1: longer than 1048576 bytes"),
        (packed[:60], r"line \d+: cannot be read on"),
        (packed + b"rubbish", "line 6: cannot be read on"),
    ]  # fmt: skip
    require_refused_files(tmp_path / "log.swf", read_swf, broken)


def test_limit_is_on_what_comes_out(tmp_path):
    data = LOG.encode()
    for name, packed in (("plain", data), ("packed", gzip.compress(data))):
        (tmp_path / name).write_bytes(packed)
        assert len(read_swf(tmp_path / name, limit=len(data))[0]) == 2
        with pytest.raises(InputError, match=rf"{name}, line 5: more than {len(data) - 1} bytes"):
            read_swf(tmp_path / name, limit=len(data) - 1)


@pytest.mark.parametrize(
    ("bomb", "free", "message"),
    [(b"\0" * 2**24, 2**20, "longer than"), (b"\n" * 2**20, 2**16, "200-fold like a gzip bomb")],
    ids=["one line", "many lines"],
)
def test_gzip_bomb_goes_off_small(tmp_path, monkeypatch, bomb, free, message):
    monkeypatch.setattr(files, "FREE_GROWTH_BYTES", free)
    for read in (read_swf, read_tasks, files.read_toml):
        head = HEAD.encode() if read is read_tasks else b""
        packed = gzip.compress(head + bomb, 9)
        assert len(packed) < 2**15
        start = time.process_time()
        require_refused_files(tmp_path / "bomb", read, [(packed, rf"line \d+: .*{message}")])
        assert time.process_time() - start < 10
