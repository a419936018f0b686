"""The warm process: what it forks is what would have been started, is found, and ends."""

import json
import os
import subprocess
import sys

import nbformat
import psutil
import pytest

from dlsim import processes
from dlsim.study import notebooks, warm
from dlsim.study.notebooks import run_all
from tests.children import none_left
from tests.scale import deep
from tests.test_watch import write

forks = pytest.mark.skipif(not processes.can_claim(), reason="no fork with a mark of its own here")

TELL = """import json, numpy, psutil, random, threading, zmq
me = psutil.Process()
told = {"argv": sys.argv[1:2], "cwd": os.getcwd(), "marks": me.environ()["DLSIM_RUN"].split(":"),
        "own": os.environ["DLSIM_RUN"].split(":"), "title": me.cmdline()[0],
        "parent": " ".join(me.parent().cmdline()), "loaded": "papermill" in sys.modules,
        "leader": os.getpgid(0) == os.getsid(0) == os.getpid(), "path": sys.path[0],
        "drawn": [numpy.random.random(), random.random()], "temporary": os.environ["TMPDIR"],
        "backend": __import__("matplotlib").get_backend(), "input": sys.__stdin__.read()}
pathlib.Path(pids, f"told-{random.random()}").write_text(json.dumps(told))"""


def told(tmp_path, *cells, count=1, **options):
    """Run notebooks that tell of their kernels."""
    (tmp_path / "pids").mkdir()
    books = [write(tmp_path / f"{name}.ipynb", TELL, *cells) for name in range(count)]
    results = run_all(books, out=tmp_path / "out", extra={"pids": f"{tmp_path}/pids"}, **options)
    assert [result.status for result in results] == ["ok"] * count, results
    return [json.loads(path.read_text()) for path in (tmp_path / "pids").glob("told-*")]


@deep
@forks
def test_a_forked_kernel_is_what_a_started_one_is(tmp_path, monkeypatch):
    forked = told(tmp_path, count=2, jobs=1)
    monkeypatch.setattr(processes, "can_claim", lambda: False)
    (tmp_path / "afresh").mkdir()
    (started,) = told(tmp_path / "afresh")
    for one in forked:
        assert one["title"] == "ipykernel_launcher"
        assert one["parent"].strip() in ("dlsim notebook 0", "dlsim notebook 1")
        assert one["loaded"]
        assert one["own"] == one["marks"]  # as the system shows it
        assert one["cwd"] == str(tmp_path / "out" / "notebooks")
        for name in ("argv", "leader", "path", "backend", "input"):
            assert one[name] == started[name], name
    assert not started["loaded"]
    assert forked[0]["drawn"][0] != forked[1]["drawn"][0]
    assert forked[0]["drawn"][1] != forked[1]["drawn"][1]
    assert forked[0]["temporary"] != forked[1]["temporary"]
    for mark in forked[0]["own"]:
        if mark not in processes.marked("x")[processes.VARIABLE].split(":"):
            assert processes.of_run(mark) == []


@deep
@forks
def test_a_kernel_with_another_command_is_started_afresh(tmp_path, monkeypatch):
    folder = tmp_path / "kernels" / "python3"
    folder.mkdir(parents=True)
    argv = [sys.executable, "-B", "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    spec = {"argv": argv, "display_name": "Python 3", "language": "python"}
    (folder / "kernel.json").write_text(json.dumps(spec))
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path))
    (one,) = told(tmp_path)
    assert one["title"] == sys.executable
    assert not one["loaded"]


@deep
@forks
@pytest.mark.parametrize("names", [["30-inserted-idle-time"], pytest.param([], marks=deep)])
def test_the_warm_process_has_no_thread_and_no_socket_of_its_own(names):
    """One that serves some notebooks, or all of them."""
    code = (
        "import sys, threading, zmq\n"
        "from dlsim.files import suite_notebooks\n"
        "from dlsim.study import warm\n"
        "known = suite_notebooks()\n"
        "warm._load(warm.modules(known[name] for name in sys.argv[1:] or known))\n"
        "names = ['matplotlib_inline.backend_inline', 'lark',\n"
        "         'dlsim.papers.inserted_idle_time.study',\n"
        "         'dlsim.study.pictures', 'dlsim.study.report', 'seaborn', 'nbformat']\n"
        "print(threading.active_count(), zmq.Context._instance, *(n in sys.modules for n in names))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *names], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["1", "None", "False", "False", *["True"] * 5]


@deep
@forks
def test_a_warm_process_that_is_killed_ends_its_notebooks_and_is_replaced(tmp_path, monkeypatch):
    (tmp_path / "pids").mkdir()
    slow = write(tmp_path / "slow.ipynb", "open(os.path.join(pids, 'on'), 'w'); time.sleep(600)")
    after = write(tmp_path / "after.ipynb", "1")
    poll, killed = notebooks._Display.poll, []

    def kill(display, job):
        poll(display, job)
        if (tmp_path / "pids" / "on").exists() and not killed:
            killed.append(job.forks.process.pid)
            job.forks.process.kill()

    monkeypatch.setattr(notebooks._Display, "poll", kill)
    monkeypatch.setenv("DLSIM_TEST_RUN", str(tmp_path))
    first, second = run_all([slow, after], out=tmp_path / "out", jobs=1,
                            extra={"pids": f"{tmp_path}/pids"})  # fmt: skip
    assert (first.status, first.error) == ("failed", "slow.ipynb was killed by signal 9")
    assert second.status == "ok"
    assert none_left(str(tmp_path)) in ([], [f"{os.getpid()}: {' '.join(me())}"])


def me():
    return psutil.Process().cmdline()


def test_only_modules_of_dlsim_are_imported_for_a_notebook(tmp_path):
    book = nbformat.v4.new_notebook()
    text = "import antigravity\nfrom dlsim.papers import mcdf, bricks\nfrom secret import thing"
    book.cells = [nbformat.v4.new_code_cell(text)]
    nbformat.write(book, tmp_path / "one.ipynb")
    names = warm.modules([tmp_path / "one.ipynb"])[len(warm._STACK + warm._DRAWING) :]
    assert names == ["dlsim.papers", "dlsim.papers.mcdf", "dlsim.papers.bricks"]
