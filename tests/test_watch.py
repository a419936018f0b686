"""Kernels that stop, hang, die or lose a message: ended with all they started, told by cell."""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import nbformat
import psutil
import pytest
from jupyter_core.utils import ensure_event_loop

from dlsim import processes
from dlsim.errors import InputError, StudyError
from dlsim.study import execution, notebooks
from dlsim.study.notebooks import run_all
from tests.children import spawn, until
from tests.scale import deep

pytestmark = [
    pytest.mark.skipif(os.name != "posix", reason="stops processes by signals"),
    pytest.mark.usefixtures("one_warm_process"),
]

#: Tells its kernel's process, and one that it started, then does what the test wants. A kernel
#: that ends asks for the end of its child, and goes once somebody has heard of that.
BEGIN = """import os, pathlib, subprocess, sys, threading, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
threading.Thread(target=child.wait, daemon=True).start()
pathlib.Path(pids, f"{os.getpid()}-{child.pid}").touch()"""
DEAF = """kernel, send = get_ipython().kernel, get_ipython().kernel.session.send
def lossy(stream, what, *args, **options):
    kind = what if isinstance(what, str) else what["header"]["msg_type"]
    parent = options.get("parent") or (args[1] if len(args) > 1 else None)
    lost = kind == "execute_reply" or (LOSE_ALL and parent and parent["header"] != this)
    return None if lost else send(stream, what, *args, **options)
this = kernel.get_parent("shell")["header"]
kernel.session.send = lossy"""
FATES = {
    "stopped": "import signal; os.kill(os.getpid(), signal.SIGSTOP)",
    "endless": "while True: pass",
    "waiting": "os.read(os.pipe()[0], 1)",
    "asking": "input('who is there? ')",
    "unanswered": f"LOSE_ALL = False\n{DEAF}",
    "unheard": "1",  # with everything about it lost
}
SAYS = {
    "stopped": r"code cell 4, after \d+ s: no heartbeat of the kernel for 3 s",
    "endless": r"code cell 4 ran \d+ s, longer than its limit of 2 s \(--cell-limit\)",
    "waiting": r"code cell 4 ran \d+ s, longer than its limit of 2 s \(--cell-limit\)",
    "asking": r"code cell 4: StdinNotImplementedError",
    "unanswered": r"code cell 4, after \d+ s: the kernel is idle, and never told the cell's end",
    "unheard": r"code cell 5, after \d+ s: the kernel is idle, and never told the cell's begin",
}
#: The limit of a cell, in seconds: only where it is what ends the cell.
LIMITS = dict.fromkeys(FATES, 600.0) | {"endless": 2.0, "waiting": 2.0}


def write(path, *cells):
    book = nbformat.v4.new_notebook()
    book.cells = [nbformat.v4.new_code_cell(text) for text in ('pids: str = ""', BEGIN, *cells)]
    book.cells[0].metadata["tags"] = ["parameters"]
    book.metadata["kernelspec"] = {"name": "python3", "display_name": "3", "language": "python"}
    nbformat.write(book, path)
    return path


def all_gone(names, seconds=10):
    """Whether every process named in these files is gone within some seconds.

    One whose parent has yet to ask how it ended is gone: the system's first process takes time.
    """
    left, deadline = {int(word) for name in names for word in name.split("-")}, time.monotonic()
    while left and time.monotonic() < deadline + seconds:
        left = {pid for pid in left if runs(pid)}
        time.sleep(0.01)
    return not left


def runs(pid):
    with contextlib.suppress(psutil.NoSuchProcess):
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE


@pytest.fixture(scope="module")
def fates(tmp_path_factory):
    """Every fate at once, each in a thread of its own."""
    from dlsim.study import watch  # not at the top: it needs papermill

    folder = tmp_path_factory.mktemp("fates")

    def meet(name):
        pids = folder / f"{name}-pids"
        pids.mkdir()
        cells = [FATES[name]]
        if name == "unheard":  # the cell that makes it so is answered itself
            deaf = f"LOSE_ALL = True\n{DEAF}"
            cells.insert(0, deaf.replace('kind == "execute_reply" or ', ""))
        source, target = write(folder / f"{name}.ipynb", *cells), folder / name / "x.ipynb"
        with contextlib.closing(ensure_event_loop()), pytest.raises(StudyError) as caught:
            execution.run_notebook(source, target, {"pids": str(pids)}, cell_limit=LIMITS[name])
        return str(caught.value)

    with pytest.MonkeyPatch.context() as patch, ThreadPoolExecutor(len(FATES)) as threads:
        patch.setattr(watch, "HEART_SECONDS", 3.0)  # one to two, as they are
        patch.setattr(watch, "REPLY_SECONDS", 6.0)
        return folder, dict(zip(FATES, threads.map(meet, FATES), strict=True))


@deep
@pytest.mark.parametrize("name", FATES)
def test_a_kernel_that_does_not_answer_is_ended_and_told_by_cell(fates, name):
    folder, said = fates
    assert re.match(rf"{name}\.ipynb failed: {SAYS[name]}", said[name]), said[name]
    names = os.listdir(folder / f"{name}-pids")
    assert len(names) == 1  # not tried again: its cells may have done anything
    assert all_gone(names)
    assert (folder / name / "x.failed.ipynb").exists()
    assert not (folder / name / "x.ipynb").exists()


def test_a_notebook_of_the_suites_own_is_tried_once_more(tmp_path, monkeypatch, capfd):
    monkeypatch.setattr(execution.files, "shared_folder", lambda name: tmp_path)
    (tmp_path / "pids").mkdir()
    dies = "import glob\nif len(os.listdir(pids)) == 1: os._exit(1)"
    source = write(tmp_path / "one.ipynb", dies)
    done = execution.run_notebook(source, tmp_path / "a" / "b.ipynb", {"pids": f"{tmp_path}/pids"})
    assert done.exists()
    assert "one.ipynb: code cell 4, after" in capfd.readouterr().err
    assert len(os.listdir(tmp_path / "pids")) == 2
    assert all_gone(os.listdir(tmp_path / "pids"))
    with pytest.raises(Exception, match="ZeroDivision"):  # an error is no accident
        execution.run_notebook(write(tmp_path / "two.ipynb", "1 / 0"), tmp_path / "a" / "c.ipynb",
                               {"pids": f"{tmp_path}/pids"})  # fmt: skip
    assert len(os.listdir(tmp_path / "pids")) == 3


HANG = "open(os.path.join(pids, 'ready'), 'w').close()\ntime.sleep(600)"


def hanging(tmp_path, act, **options):
    """Run a batch whose kernel hangs in its last cell; `act` on it and its parent."""
    pids = tmp_path / "pids"
    pids.mkdir()

    def beside():
        until((pids / "ready").exists, within=120)
        kernel = psutil.Process(
            int(next(n for n in os.listdir(pids) if "-" in n).partition("-")[0])
        )
        try:
            act(kernel, kernel.parent())
        except BaseException:
            kernel.kill()  # the batch would wait for it
            raise

    thread = threading.Thread(target=beside)
    thread.start()
    source = write(tmp_path / "hangs.ipynb", HANG)
    extra = {"pids": str(pids)}
    (result,) = run_all([source], out=tmp_path / "out", extra=extra, **options)
    thread.join()
    assert all_gone([name for name in os.listdir(pids) if "-" in name])
    assert not (tmp_path / "out" / notebooks._WORK).exists()
    return result


def test_a_process_that_is_killed_leaves_no_kernel_not_even_a_stopped_one(tmp_path):
    def act(kernel, parent):
        kernel.suspend()
        parent.kill()

    result = hanging(tmp_path, act)
    assert (result.status, result.error) == ("failed", "hangs.ipynb was killed by signal 9")
    assert result.path.name == "hangs.failed.ipynb"


def test_a_process_that_shows_no_sign_of_life_is_ended(tmp_path, monkeypatch):
    def act(kernel, parent):
        alive = tmp_path / "out" / notebooks._WORK / "hangs" / "alive.json"
        # told by a tick of the watch, after the cell began
        until(lambda: alive.exists() and alive.read_text().startswith("[4"))
        parent.suspend()
        monkeypatch.setattr(notebooks, "SILENT_SECONDS", 2.0)

    result = hanging(tmp_path, act)
    assert re.fullmatch(
        r"hangs\.ipynb failed: its process has shown no sign of life for [2-9] s, "
        r"in code cell 4 for \d+ s", result.error
    )  # fmt: skip


def test_a_notebook_has_a_limit_too(tmp_path, monkeypatch):
    def limited(job):
        look(job)
        if job.sign[0].startswith(b"[4"):  # told by a tick of the watch, after the cell began
            job.limits = (600, 0.5)

    look = notebooks._Job.look
    monkeypatch.setattr(notebooks._Job, "look", limited)
    result = hanging(tmp_path, lambda kernel, parent: None, limit=0)
    assert re.fullmatch(
        r"hangs\.ipynb failed: ran \d+ s, longer than its limit of 0.5 s \(--limit\), "
        r"in code cell 4 for \d+ s", result.error
    )  # fmt: skip


@pytest.mark.parametrize("limits", [{"cell_limit": -1}, {"limit": float("nan")}])
def test_limits_are_seconds(tmp_path, limits):
    with pytest.raises(InputError, match=r"limit must be seconds, at least 0 \(0 = no limit\)"):
        run_all(["theory"], out=tmp_path / "out", **limits)
    assert not (tmp_path / "out").exists()


KINDS = [pytest.param(signal.SIGINT, marks=deep), pytest.param(signal.SIGTERM, marks=deep),
         signal.SIGHUP]  # fmt: skip
REPRODUCE = """import sys
from dlsim import cli
from dlsim.cli import reproduce
reproduce._notebooks = lambda names: names
from dlsim.study import notebooks
notebooks.POLITE_SECONDS = 1.0  # which a stopped kernel uses up
run_all = notebooks.run_all
notebooks.run_all = lambda *a, **o: run_all(*a, **o | {'extra': {'pids': sys.argv[3]}})
sys.exit(cli.main(['reproduce', sys.argv[1], '--out', sys.argv[2]]))"""


@pytest.mark.parametrize("kind", KINDS)
def test_signals_end_everything_with_a_stopped_kernel_too(tmp_path, kind):
    pids, out = tmp_path / "pids", tmp_path / "out"
    pids.mkdir()
    command = [sys.executable, "-c", REPRODUCE, write(tmp_path / "hangs.ipynb", HANG), out, pids]
    with open(tmp_path / "said", "w") as stream:
        parent = spawn([str(word) for word in command], stdout=stream, stderr=stream)
    until((pids / "ready").exists, parent, within=120)
    assert parent.poll() is None, (tmp_path / "said").read_text()
    (name,) = (name for name in os.listdir(pids) if "-" in name)
    os.kill(int(name.partition("-")[0]), signal.SIGSTOP)
    parent.send_signal(kind)
    code, said = parent.wait(60), (tmp_path / "said").read_text()
    assert code == 130, said
    assert "interrupted; the same command resumes" in said
    assert "Traceback" not in said
    assert all_gone([name])
    assert sorted(p.name for p in out.iterdir()) == [
        ".dlsim-record.jsonl", "notebooks", "report.html", "run.json"
    ]  # fmt: skip
    assert json.loads((out / "run.json").read_text())["notebooks"][0]["status"] == "interrupted"
    assert list((out / "notebooks").iterdir()) == []


def test_a_run_is_found_by_its_mark_whoever_the_parent_is():
    mark = f"a-mark-of-{os.getpid()}"  # another run of the tests has its own
    code = (
        "import os, subprocess, sys\n"
        "words = [sys.executable, '-c', 'import time; print(flush=True); time.sleep(600)']\n"
        "one = subprocess.Popen(words, stdout=subprocess.PIPE)\n"
        "one.stdout.readline()  # until then the system may show it without an environment\n"
        "print(one.pid, flush=True)"
    )
    environment = processes.marked(mark)
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, stdout=subprocess.PIPE, text=True,
        stdin=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    orphan = int(done.stdout)
    assert orphan in {process.pid for process in processes.of_run(mark)}
    os.kill(orphan, signal.SIGSTOP)
    processes.end_run(mark)
    assert all_gone([str(orphan)])
