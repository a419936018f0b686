"""Any work on any devices: functions and commands, limits, kills; laws over sizes; splits."""

import contextlib
import functools
import json
import os
import subprocess
import sys
import textwrap
import threading
from concurrent.futures import Future
from pathlib import Path

import numpy as np
import pytest

from dlsim.cli import main
from dlsim.cpugpu import History, ideal_split
from dlsim.cpugpu.live import (
    KERNELS,
    App,
    Dask,
    Kernel,
    LiveJob,
    Log,
    Processes,
    Slot,
    Threads,
    devices,
    jobs_from_csv,
    run_live,
    run_split,
    slots,
)  # fmt: skip
from dlsim.cpugpu.live.sizes import Sizes, fit
from dlsim.cpugpu.live.work import Task, perform
from dlsim.errors import InputError
from tests import live_kernels as own
from tests.children import alive, marked, spawn, until, words_of
from tests.scale import WHOLE, deep

PLAIN = (Slot("gpu0", "numpy", "NumPy as a GPU"), Slot("cpu0", "numpy", "NumPy"))
TWO = [slot.name for slot in PLAIN]
CPU = (Slot("cpu0", "numpy", "NumPy"),)

pytestmark = pytest.mark.skipif(os.name != "posix", reason="starts sh and sends signals")


# --- functions and commands -----------------------------------------------------------------------


def run(jobs, crew=Threads, machine=PLAIN, **options):
    with crew([slot.name for slot in machine]) as workers:
        return run_live(jobs, workers, machine, **options)


def test_functions_and_commands_are_jobs_like_any_other(tmp_path):
    seen = []

    def on_cpu(size, *args, device):
        seen.append((size, args, device, threading.get_ident()))
        return size

    both = App("both", cpu=on_cpu, gpu="echo {size} on {device} {index}", check=bool)
    jobs = [LiveJob(both, k, 0.0, ("a b",)) for k in range(1, 5)]
    done = run(jobs, log=tmp_path / "log.sqlite")
    assert (done.jobs["error"] == "").all()
    assert done.log.audit() == []
    assert {"R2*", "R2"} & set(done.jobs["rule"])
    on = done.jobs[done.jobs["device"] == "cpu0"].index
    assert [(k + 1, ("a b",), "cpu0") for k in on] == [one[:3] for one in seen]
    for k in done.jobs[done.jobs["device"] == "gpu0"].index:
        assert Path(done.jobs["output"][k]).read_text() == f"{k + 1} on gpu0 0 a b\n"


@pytest.mark.parametrize(
    ("version", "error"),
    [
        ("sh -c 'echo why; exit 3'", "FailedError: exit code 3: why"),
        ("sh -c 'kill -9 $$'", "FailedError: ended by SIGKILL: nothing printed"),
        ("echo no", "FailedError: its result fails the check: 'no.n'"),
        (lambda: 1 / 0, "ZeroDivisionError: division by zero"),
        (lambda: "no", "FailedError: its result fails the check: 'no'"),
    ],
)
def test_what_fails_says_why(version, error):
    app = App("app", cpu=version, check=lambda result: result.strip() == "yes")
    (said,) = run([LiveJob(app)], machine=CPU).jobs["error"]
    assert said.replace("\\n", ".n") == error


def test_a_function_without_a_name_is_a_version_too():
    done = run(
        [LiveJob(App("part", cpu=functools.partial(abs, -3), check=(3).__eq__))], machine=CPU
    )
    assert done.jobs["error"].tolist() == [""]


def test_no_shell_reads_a_command(tmp_path):
    app = App("app", cpu=["echo", "$HOME; touch no", "{size}"])
    done = run([LiveJob(app, None, 0.0, ("`id`",))], machine=CPU, log=tmp_path / "l")
    assert Path(done.jobs["output"][0]).read_text() == "$HOME; touch no  `id`\n"


def test_a_command_ends_at_its_limit_with_all_it_started():
    name = "DLSIM_TEST_LIMIT"
    script = f"{name}={os.getpid()} sh -c 'sleep 1000 & sleep 1000'"
    app = App("app", cpu=["sh", "-c", script], limit=0.5)
    (said,) = run([LiveJob(app)], machine=CPU).jobs["error"]
    assert said == "FailedError: ran longer than its limit of 0.5 s"
    assert until(lambda: not alive(str(os.getpid()), name), within=20.0)


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: App("a"), "a has no version; give cpu, gpu, or both"),
        (lambda: App("", cpu="ls"), "name of an application must be a text that is not blank"),
        (lambda: App("a", cpu="no-such-program-x 1"), "no program 'no-such-program-x' is found"),
        (lambda: App("a", cpu="no_such_module:f"), "no module 'no_such_module' is found"),
        (lambda: run([LiveJob(own.DOUBLE, 8), LiveJob(own.DOUBLE, 2.5)]),
         "job 1: size of double must be a whole number in 1..268435456, such as the usual 64"),
        (lambda: App("a", cpu="ls 'x"), "not the words of a command .No closing quotation."),
        (lambda: App("a", cpu=3), "not the words of a command .*: 3"),
        (lambda: App("a", cpu="ls", limit=0), "limit of a must be a number above 0"),
        (lambda: run([LiveJob(App("a", cpu=abs, limit=1.0), 1)]),
         "a function in a thread cannot be ended at its limit of 1 s; use --crew processes"),
        (lambda: run([LiveJob(App("a", gpu="ls"))], machine=CPU),
         "has a version for gpu only, and this machine has no such device"),
    ],
)  # fmt: skip
def test_work_that_cannot_be_run_is_refused_by_name(make, match):
    with pytest.raises(InputError, match=match):
        make()


# --- crews of processes ---------------------------------------------------------------------------


def test_processes_keep_output_and_limits_and_come_back(tmp_path, monkeypatch):
    monkeypatch.setenv(own.MARKS, str(tmp_path))
    works = {
        "prints": App("prints", cpu=own.prints),
        "hangs": App("hangs", cpu=own.hangs, limit=1.0),
        "dies": App("dies", cpu=own.dies_once),
    }
    jobs = [LiveJob(works[name], 7) for name in ("prints", "hangs", "dies", "prints")]
    done = run(jobs, Processes, CPU, log=tmp_path / "log.sqlite")
    assert done.jobs["error"].tolist() == ["", "ran longer than its limit of 1 s", "", ""]
    assert done.jobs["losses"].tolist() == [0, 0, 1, 0]
    for k in (0, 3):
        assert Path(done.jobs["output"][k]).read_text() == "printed 7\nby a child\n"
    assert done.log.audit() == []


def test_what_an_error_says_at_length_has_room_in_the_log(tmp_path):
    def talk():
        raise ValueError("x" * 2**21)

    done = run([LiveJob(App("talk", cpu=talk, gpu=talk))], log=tmp_path / "log.sqlite")
    assert done.jobs["error"][0].startswith("ValueError: xxx")
    assert Log.read(tmp_path / "log.sqlite").table().equals(done.jobs)


def test_one_command_that_fails_is_tried_once_and_one_per_device_on_both():
    again = {"one": "sh -c 'exit 3'", "told": "sh -c 'exit 3' {device}",
             "asks": "sh -c 'exit $((3 + ${#DLSIM_DEVICE}))'"}  # fmt: skip
    works = [App(name, cpu=command, gpu=command) for name, command in again.items()]
    done = run([LiveJob(work) for work in works])
    ends = [row["job"] for kind, row in done.log.rows if kind == "end"]
    assert sorted(ends) == [0, 1, 1, 2, 2]
    assert done.jobs["error"].str.startswith("FailedError: exit code").all()


class Held(Processes):
    """A crew whose new worker is there only once the other device was given four jobs."""

    def ready(self, device):
        self.begun = super().ready(device)
        self.held = Future()
        own.first_time("ready")
        return self.held

    def submit(self, device, function, *args):
        if function is perform:
            self.given = [*getattr(self, "given", []), device]
            if device == 1 and self.given.count(1) == 4:
                self.held.set_result(self.begun.result())
        return super().submit(device, function, *args)


@deep
def test_other_devices_work_while_a_worker_that_died_starts_anew(tmp_path, monkeypatch):
    monkeypatch.setenv(own.MARKS, str(tmp_path))
    machine = (Slot("cpu0", "numpy", ""), Slot("cpu1", "numpy", ""))
    dies, waits = App("dies", cpu=own.dies_once), App("waits", cpu=own.until_a_worker_died)
    with Held(["cpu0", "cpu1"]) as crew:
        done = run_live([LiveJob(dies, 0), *[LiveJob(waits, 0)] * 4], crew, machine)
        assert crew.given == [0, 1, 1, 1, 1, 0]
    assert done.jobs["losses"].tolist() == [1, 0, 0, 0, 0]
    assert (done.jobs["error"] == "").all()
    assert done.log.audit() == []


@pytest.fixture(scope="module")
def of_dask():
    """A crew of one device that Dask starts anew."""
    pytest.importorskip("distributed")
    with Dask(["cpu0"]) as crew:
        yield crew


@pytest.mark.filterwarnings("ignore")  # what Dask itself warns of is not ours to mend
def test_a_function_ends_at_its_limit_under_dask_and_its_device_goes_on(of_dask):
    works = App("hangs", cpu=own.hangs, limit=1.0), App("where", cpu=own.cores_here)
    done = run_live([LiveJob(works[0], 7), LiveJob(works[1])], of_dask, CPU)
    assert done.jobs["error"].tolist() == ["ran longer than its limit of 1 s", ""]


def misses(_):
    return devices._loop.cache_info().misses


@pytest.mark.filterwarnings("ignore")  # what Dask itself warns of is not ours to mend
@pytest.mark.parametrize("crew", [Processes, Dask])
def test_a_kernel_is_compiled_once_per_worker(crew, request):
    """Also one that is sent by value, as a function of a notebook is."""
    pytest.importorskip("cloudpickle")
    space = {}
    exec("def element(i, a, b, x, y):\n    return x * a[i]", space)
    space["element"].__module__ = "__main__"
    kernel = Kernel("mine", 64, 4, own.make, space["element"], "return x * a[i];", own.double)
    machine = (Slot("cpu0", "numba", ""),)
    with contextlib.ExitStack() as stack:
        if crew is Dask:
            workers = request.getfixturevalue("of_dask")
        else:
            workers = stack.enter_context(crew(["cpu0"]))
        done = run_live([LiveJob(kernel, 64)] * 4, workers, machine)
        assert (done.jobs["error"] == "").all()
        again = [
            workers.submit(0, perform, Task(workers.pack(kernel), machine[0], 64)).result()
            for _ in range(3)
        ]
    assert all(outcome.compiled == 0 for outcome in again)
    assert done.jobs["compiled"].max() == 0  # the warm-up was of the size of the job


# --- clean samples --------------------------------------------------------------------------------


def test_a_time_with_a_compilation_in_it_is_marked_and_not_learned():
    import numba

    def compiles(size):
        if not cache:
            cache.append(numba.njit(lambda x: x + size))
        return cache[0](1)

    cache = []
    done = run([LiveJob(App("jit", cpu=compiles), 1)] * 3, machine=CPU)
    assert (done.jobs["compiled"] > 0).tolist() == [True, False, False]
    record = done.history.record("jit[1]", "cpu")
    assert record.count == 2
    assert sorted(record.times) == sorted(done.jobs["seconds"][1:])
    assert done.jobs["rule"][1].startswith("R2")  # tried again
    assert done.log.audit() == []


def test_a_kernel_that_compiled_is_run_once_more_and_its_clean_time_counts():
    def element(i, a, b, x, y):
        return x * a[i]

    kernel = Kernel("fresh", 64, 4, own.make, element, "return x * a[i];", own.double)
    first, second = (
        perform(Task(kernel, Slot("gpu0", backend, ""), 64)) for backend in ("threads", "threads")
    )
    assert first.is_clean
    assert second.compiled == 0
    assert 0 < first.seconds < first.compiled  # no ratio: a busy machine has its own


def test_opencl_compiles_are_seen_and_not_counted(tmp_path):
    """In a process with an empty cache: PoCL compiles when a kernel first runs."""
    code = """
        from dlsim.cpugpu.live import KERNELS, Slot, slots
        from dlsim.cpugpu.live.work import Task, perform
        (slot,) = slots(gpu="opencl", cpu="none")[:1]
        for size in (300, 300, 700):
            o = perform(Task(KERNELS["n-body"], slot, size))
            print(o.compiled, o.seconds)
    """
    try:
        note = slots(gpu="opencl")[0].note
    except InputError as error:
        pytest.skip(str(error))
    if "pthread" not in note:
        pytest.skip("not PoCL")
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", textwrap.dedent(code)],
        env=os.environ | {"POCL_CACHE_DIR": str(tmp_path)}, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (first, seconds), (second, _), _ = (
        map(float, line.split()) for line in done.stdout.splitlines()
    )
    assert first > seconds
    assert second == 0


# --- sizes ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("law", "power"), [(lambda s: 0.5 + 0.01 * s, 1.0), (lambda s: 1e-6 * s**1.7, 1.7)]
)
def test_a_line_or_a_power_whichever_fits(law, power):
    sizes = [10.0, 40.0, 100.0, 400.0]
    found = fit(sizes, [law(s) for s in sizes], [1] * 4)
    assert found.power == pytest.approx(power)
    assert found.residual < 1e-9
    for size in (20.0, 200.0):
        assert found.time(size) == pytest.approx(law(size))
        low, high = found.interval(size)
        assert low < law(size) < high
    near, far = (found.interval(size) for size in (60.0, 1e6))
    assert far[1] / far[0] > near[1] / near[0]


def known(cpu, gpu, sizes):
    history = History()
    for size in sizes:
        history.add(f"k[{size}]", "cpu", cpu(size))
        history.add(f"k[{size}]", "gpu", gpu(size))
    return Sizes(history)


def test_a_size_is_tried_only_where_intervals_meet():
    far = known(lambda s: 0.01 * s, lambda s: 0.001 * s, (10, 50, 100))
    for cls, time in (("cpu", 0.7), ("gpu", 0.07)):
        record = far.record("k[70]", cls)
        assert (record.assigned, record.expected()) == (1, pytest.approx(time))
    near = known(lambda s: 0.01 * s, lambda s: 0.0101 * s, (10, 50, 100))
    assert [near.record("k[70]", cls).assigned for cls in ("cpu", "gpu")] == [0, 0]
    few = known(lambda s: 0.01 * s, lambda s: 0.001 * s, (10, 50))
    assert few.record("k[70]", "gpu").count == 0
    assert far.record("other[70]", "gpu").count == 0
    assert far.record("k", "gpu").count == 0


def test_sizes_of_a_bad_fit_are_known_by_their_class():
    times = {10: 1.0, 20: 90.0, 33: 2.0, 60: 3.0, 130: 0.01}
    odd = known(lambda s: 1000.0 + times[s], times.__getitem__, times)
    assert odd.law("k", "gpu") is None
    assert odd.interval("k[40]", "gpu") == (2.5, 2.0, 3.0)
    assert odd.interval("k[5000]", "gpu") is None
    assert odd.law("k", "cpu") is not None


def test_a_law_that_is_wrong_too_often_is_forgotten():
    sizes = known(lambda s: 0.01 * s, lambda s: 0.001 * s, (10, 50, 100))
    for size in (20, 30, 40):
        assert sizes.law("k", "gpu").time(70) == pytest.approx(0.07)
        sizes.history.add(f"k[{size}]", "gpu", 0.05 * size)
        sizes.measured(f"k[{size}]", "gpu", 0.05 * size)
    assert sizes.law("k", "gpu").time(70) == pytest.approx(3.5)


def test_many_sizes_are_not_many_trials():
    """24 sizes on two devices far apart: three are tried on both, the rest is known."""

    def taking(factor):
        return lambda size: until_passed(factor * size)

    def until_passed(seconds):
        threading.Event().wait(seconds)

    app = App("k", cpu=taking(4e-3), gpu=taking(1e-3))
    jobs = [LiveJob(app, size) for size in range(10, 34)]
    done = run(jobs)
    assert done.log.audit() == []
    tried = done.jobs["rule"].isin(["R2", "R2*"]).sum()
    assert 2 <= tried < 24


# --- devices --------------------------------------------------------------------------------------

CORES = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []


@pytest.mark.skipif(len(CORES) < 2, reason="needs two cores")
def test_cpus_are_sets_of_cores():
    one, two = slots(gpu="none", cpu="numba/2")
    assert (one.name, two.name) == ("cpu0", "cpu1")
    assert sorted(one.cores + two.cores) == CORES
    assert one.kind == two.kind == f"numba/{len(one.cores)} cores" or len(CORES) % 2
    (only,) = slots(gpu="none", cpu=f"numpy:{CORES[1]}")
    assert only.cores == (CORES[1],)
    for crew in (Threads, Processes):
        app = App("where", cpu=own.cores_here, check=[CORES[1]].__eq__)
        done = run([LiveJob(app)], crew, (only,)) if crew is Threads else None
        assert done is None or done.jobs["error"].tolist() == [""]
    with Processes(["cpu0"]) as crew:
        work = App("where", cpu=own.cores_here)
        crew.submit(0, perform, Task(crew.pack(work), only, None)).result()
        assert crew.submit(0, own.cores_here).result() == [CORES[1]]


@pytest.mark.skipif(len(CORES) < 2, reason="needs two cores")
def test_devices_with_cores_of_their_own_share_none():
    one, two = CORES[:2]
    assert devices.shared_cores(slots(f"threads:{one}", f"numba:{two}")) == ""
    assert f"share the cores {two}:" in devices.shared_cores(slots("threads", f"numba:{two}"))
    assert (
        devices.shared_cores((Slot("gpu0", "cuda", "CUDA on H"), Slot("cpu0", "numba", ""))) == ""
    )


@pytest.mark.parametrize(
    ("words", "match"),
    [
        ({"cpu": "numba:900-901"}, "device 'numba:900-901': this process may use the cores"),
        ({"cpu": "numba/900"}, "write numba:FIRST-LAST, or numba/SETS"),
        ({"cpu": f"numba/{10**12}"}, "write numba:FIRST-LAST, or numba/SETS"),
        ({"cpu": f"numba:0-{10**12}"}, "this process may use the cores"),
        ({"cpu": "numba:1-0"}, "device 'numba:1-0': this process may use the cores"),
        ({"cpu": "none", "gpu": "none"}, "leaves no device; name one"),
        ({"gpu": "threads,numpy"}, "a class shares a history, and these are numpy and threads"),
        ({"cpu": "numba:x"}, "device must be one of .*got 'numba:x'"),
    ],
)
def test_devices_that_are_not_there_are_refused(words, match):
    with pytest.raises(InputError, match=match):
        slots(**{"gpu": "threads", **words})


def test_several_gpus_share_the_work():
    machine = (*(Slot(f"gpu{k}", "numpy", "") for k in range(3)), Slot("cpu0", "numpy", ""))
    app = App("wait", cpu=["sleep", "0.3"], gpu=["sleep", "0.1"])
    done = run([LiveJob(app)] * 12, machine=machine)
    assert done.log.audit() == []
    assert {"gpu0", "gpu1", "gpu2"} <= set(done.jobs["device"])


# --- jobs from a file -----------------------------------------------------------------------------


def test_jobs_come_from_a_file(tmp_path):
    path = tmp_path / "jobs.csv"
    path.write_text(
        "app,arrival,command,cpu,gpu,size,args,limit\n"
        "late,2.5,ls,,,,'a b' c,9\n"
        "saxpy,0,,,,,,\n"
        "mine,0,,tests.live_kernels:prints,ls -l,7,,\n"
        "mine,1,,tests.live_kernels:prints,ls -l,8.5,,\n"
    )
    saxpy, one, two, late = jobs_from_csv(path, limit=60.0)
    assert saxpy == LiveJob(KERNELS["saxpy"], KERNELS["saxpy"].size, 0.0, ())
    assert one.kernel is two.kernel
    assert (one.size, two.size) == (7, 8.5)
    assert one.kernel.cpu == "tests.live_kernels:prints"
    assert one.kernel.gpu == ("ls", "-l")
    assert one.kernel.limit == 60
    assert late.args == ("a b", "c")
    assert (late.kernel.limit, late.kernel.classes) == (9, ("gpu", "cpu"))


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("app\n", "holds no job"),
        ("app,command\na,no-such-program-x\n", "line 2: cpu version of a: no program"),
        (
            "app,cpu\na,math:nosuch\n",
            "line 2: cpu version of a: 'math:nosuch': it cannot be imported .*'nosuch'.*correct",
        ),
        ("app,cpu\na,math:pi\n", "line 2: cpu version of a: 'math:pi': it is no function; name"),
        (
            "app,size\n\nsaxpy,9\n\nsaxpy,2.5\n",
            "line 5, field size: size of saxpy must be a whole number in 1..268435456, such as the "
            "usual 1048576, got 2.5",
        ),
        ("app,size\nsaxpy,1e15\n", "line 2, field size: size of saxpy must be .*10000000000000"),
        ("app\nfft\n", "line 2: application must be one of mandelbrot.*; got 'fft'"),
        ("app,arrival\nsaxpy,-1\n", "line 2, field arrival: must be a finite number of at least 0"),
        ("name\nx\n", "field app: no such column"),
    ],
)
def test_a_file_without_jobs_is_refused(tmp_path, text, match):
    (tmp_path / "jobs.csv").write_text(text)
    with pytest.raises(InputError, match=match):
        jobs_from_csv(tmp_path / "jobs.csv")


def test_the_example_files_run(tmp_path, monkeypatch, capsys):
    from dlsim.files import shared_file

    monkeypatch.chdir(tmp_path)
    jobs = str(shared_file("data/examples/jobs.csv"))
    assert main(["live", "run", "--jobs", jobs, "--gpu", "numpy"]) == 0
    assert "6 jobs in " in capsys.readouterr().out
    assert main(["live", "simulate"]) == 0
    assert "24 jobs of 6 applications" in capsys.readouterr().out
    machine = ["--gpu", "numpy", "--kernels", "saxpy", "--factor", "0.01,0.02"]
    assert (
        main(["live", "calibrate", *machine, "--repeats", "1", "--csv", "a.csv", "--history", "b"])
        == 0
    )
    words = ["--policy", "rsc", "--compare", "history, mct,mct"]
    assert main(["live", "simulate", "--csv", "a.csv", *words]) == 0
    said = capsys.readouterr().out
    assert "24 jobs of 2 applications (a.csv)" in said
    assert [line.split()[0] for line in said.splitlines()[-3:]] == ["rsc", "history", "mct"]


# --- killed ---------------------------------------------------------------------------------------

#: Runs commands under a session that is killed at a write of its log, then goes on; says what ran.
KILLED = """
import json, os, signal, sys
from collections import Counter
from pathlib import Path
import psutil  # here, for all sessions
from dlsim.cli import main
from dlsim.cpugpu.live import Log
from dlsim.cpugpu.live.log import LogFile

append, moments, words = LogFile.append, json.loads(sys.argv[1]), sys.argv[2:]

def session(moment, side):
    pid = os.fork()
    if not pid:
        calls = [0]
        def counted(file, rows):
            calls[0] += 1
            if calls[0] == moment and side == "before":
                os.kill(os.getpid(), signal.SIGKILL)
            append(file, rows)
            if calls[0] == moment and side == "after":
                os.kill(os.getpid(), signal.SIGKILL)
        LogFile.append = counted
        code = 1
        try:
            code = main(["live", "run", *words])
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

told = []
for moment in moments:
    for side in ("before", "after"):
        folder = Path(f"{moment}-{side}")
        folder.mkdir()
        os.chdir(folder)
        ended = session(moment, side)
        first = Log.read("log.sqlite")
        ran, wrong = Path("ran").read_text().split() if Path("ran").exists() else [], first.audit()
        done = [j for j in first.fates if j not in first.left]
        explained = main(["live", "explain", "--log", "log.sqlite"])
        again = session(0, "")
        last = Log.read("log.sqlite")
        told.append({
            "ended": ended, "wrong": len(wrong), "explained": explained, "again": again,
            "decisions": first.decisions, "before": done, "left": last.left,
            "wrong_at_last": len(last.audit()), "kept": last.rows[:len(first.rows)] == first.rows,
            "successes": Counter(row["job"] for kind, row in last.rows
                                 if kind == "end" and row["outcome"] == "done"),
            "ran": Counter(int(size) for size in Path("ran").read_text().split()),
            "ran_before": Counter(int(size) for size in ran),
        })
        os.chdir("..")
print("TOLD", json.dumps(told))
"""
JOBS = 12  # even if two of them end at each instant, the session writes more often than moments
MOMENTS = [*range(2, 12, 1 if WHOLE else 3)]


def test_a_session_killed_at_any_moment_goes_on_and_runs_nothing_twice(tmp_path):
    """Twice: a job with a logged success never runs again, and never gets a second one.

    A job that was running at the kill, whose end nobody logged, runs again, and only that.
    """
    lines = [f"job,\"sh -c 'echo {{size}} >> ran'\",{k}" for k in range(1, JOBS + 1)]
    (tmp_path / "jobs.csv").write_text("\n".join(["app,command,size", *lines]) + "\n")
    words = ["--jobs", str(tmp_path / "jobs.csv"), "--gpu", "numpy", "--log", "log.sqlite"]
    words = [json.dumps(MOMENTS), *words, "--history", "h.sqlite"]
    command = [sys.executable, "-W", "ignore", "-c", KILLED, *words]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout.split("TOLD", 1)[1])
    assert len(told) == 2 * len(MOMENTS)
    assert all(one["ended"] == -9 for one in told)
    assert max(len(one["before"]) for one in told) >= 3
    for one in told:
        assert (one["wrong"], one["wrong_at_last"], one["explained"], one["again"]) == (0,) * 4
        assert one["left"] == []
        assert one["kept"]  # nothing that was logged is ever changed
        assert one["successes"] == {str(job): 1 for job in range(JOBS)}
        for job in range(JOBS):
            runs, before = (one[k].get(str(job + 1), 0) for k in ("ran", "ran_before"))
            assert 1 <= runs <= 2
            if job in one["before"]:
                assert runs == before == 1
        assert sum(one["ran"].values()) - JOBS <= 2  # at most what ran on the two devices


@pytest.mark.parametrize("watched", [True, pytest.param(False, marks=deep)])
def test_what_a_killed_session_left_running_is_ended_before_its_job_runs_again(
    tmp_path, monkeypatch, capsys, watched
):
    """The command dies with the session on Linux, and never ends its work; its child is found.

    By the watcher of its crew; or, if that was killed too, by the run that goes on.
    """
    first = "sleep 1000 & echo $! >> pids; [ $(wc -l < pids) = 1 ] || kill $!; wait; echo >> over"
    (tmp_path / "jobs.csv").write_text(f"app,command\nonce,\"sh -c '{first}'\"\n")
    words = ["live", "run", "--jobs", "jobs.csv", "--gpu", "none", "--history", "h"]
    command, name = [sys.executable, "-W", "ignore", "-m", "dlsim", *words], f"left-{os.getpid()}"
    session = spawn(command, cwd=tmp_path, env=marked(name), stdout=subprocess.DEVNULL)
    pids = tmp_path / "pids"
    until(lambda: pids.exists() and pids.read_text().endswith("\n"), session)
    if not watched:
        (watcher,) = (p for p in alive(name) if "end_run" in " ".join(words_of(p)))
        watcher.kill()
    session.kill()
    session.wait()
    child = int(pids.read_text())
    until(lambda: [p.pid for p in alive(name)] == ([] if watched else [child]))
    monkeypatch.chdir(tmp_path)
    assert main(words) == 0
    assert "goes on where it stopped: 1 of 1 jobs are left" in capsys.readouterr().out
    assert alive(name) == []
    assert (tmp_path / "over").read_text() == "\n"


def test_a_log_with_jobs_left_is_never_put_aside(tmp_path, monkeypatch, capsys):
    """Other jobs, devices or policies are another run, whose commands would run twice."""
    monkeypatch.chdir(tmp_path)
    Path("jobs.csv").write_text("app,command\none,sh -c 'kill -9 $PPID'\ntwo,true\n")
    words = ["live", "run", "--jobs", "jobs.csv", "--gpu", "none", "--history", "h", "--log", "l"]
    command = [sys.executable, "-W", "ignore", "-m", "dlsim", *words, "--crew", "threads"]
    assert subprocess.run(command, capture_output=True, check=False).returncode == -9
    before = Path("l").read_bytes()
    for other in (["--policy", "gpu-only"], ["--cpu", "numba/1"], ["--reading", "both_free=best"]):
        assert main([*words, *other]) == 2
        assert "with 2 jobs left; the same command goes on with them" in capsys.readouterr().err
    assert Path("l").read_bytes() == before
    assert not Path("l-1").exists()


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("app,comand\nsaxpy,ls", "no column is called 'comand'; known: app, arrival, command"),
        ("app,command,args\nx,echo,a 'b", "line 2, field args: not the words of a command"),
    ],
)
def test_what_a_file_of_jobs_cannot_say_is_refused(tmp_path, line, words):
    (tmp_path / "jobs.csv").write_text(line + "\n")
    with pytest.raises(InputError, match=words):
        jobs_from_csv(tmp_path / "jobs.csv")


def test_a_name_that_looks_like_an_infinite_size_has_none():
    history = History()
    for app in ("j[1]", "j[2]", "j[3]", "j[inf]", "j[nan]", "j[-1]"):
        history.add(app, "cpu", 1.0)
    assert Sizes(history).record("j[4]", "cpu").expected() == pytest.approx(1.0)


@deep
def test_an_interrupt_ends_the_commands_and_leaves_a_log_that_goes_on(tmp_path, monkeypatch):
    script = "echo here >> ran; if [ ! -f go ]; then exec sleep 1000; fi"
    (tmp_path / "jobs.csv").write_text(f"app,command\none,\"sh -c '{script}'\"\n")
    words = ["live", "run", "--jobs", "jobs.csv", "--gpu", "none", "--history", "h"]
    command, name = [sys.executable, "-W", "ignore", "-m", "dlsim", *words], f"int-{os.getpid()}"
    for signal_name in ("SIGINT", "SIGTERM"):
        lines = len((tmp_path / "ran").read_text().split()) if (tmp_path / "ran").exists() else 0
        session = spawn(command, cwd=tmp_path, env=marked(name), stderr=subprocess.PIPE,
                        stdout=subprocess.DEVNULL, text=True)  # fmt: skip
        until(lambda n=lines: (tmp_path / "ran").exists()
              and len((tmp_path / "ran").read_text().split()) > n, session)  # fmt: skip
        session.send_signal(getattr(__import__("signal"), signal_name))
        said = session.communicate(timeout=120)[1]
        assert session.returncode == 130, said
        assert "1 jobs left: the same command goes on with them" in said
        assert alive(name) == []
    (tmp_path / "go").touch()
    monkeypatch.chdir(tmp_path)
    assert main(words) == 0
    log = Log.read(tmp_path / "results" / "live" / "log.sqlite")
    assert (log.left, log.audit(), log.decisions) == ([], [], 3)


# --- one job over all devices ---------------------------------------------------------------------


def test_a_divisible_job_is_split_and_its_result_is_that_of_one_device():
    machine = (Slot("gpu0", "threads", ""), Slot("cpu0", "numba", ""))
    with Threads(TWO) as crew:
        done = run_split(KERNELS["n-body"], crew, machine, size=600, rounds=3)
        with pytest.raises(InputError, match="NumPy computes whole results only; use --cpu numba"):
            run_split(KERNELS["n-body"], crew, PLAIN)
        with pytest.raises(InputError, match="only 20 elements"):
            run_split(KERNELS["n-body"], crew, machine, size=20)
        with pytest.raises(InputError, match="two devices or more"):
            run_split(KERNELS["n-body"], crew, machine[:1])
    assert done.agrees
    assert done.ideal == ideal_split(600, done.fixed, done.unit)
    assert (done.runs.groupby(["way", "round"])["share"].sum() == 600).all()
    table = done.table()
    assert table["way"].tolist() == ["all on gpu0", "all on cpu0", "history's choice", "split"]
    np.testing.assert_allclose(table["over_ideal"], table["makespan"] / done.ideal.time)


def test_the_command_splits_a_job(capsys):
    words = ["live", "split", "n-body", "--gpu", "threads", "--factor", "0.1", "--rounds", "2"]
    assert main(words) == 0
    said = capsys.readouterr().out
    assert "gpu0: numba on " in said
    assert " s per million elements; ideal share " in said
    assert "history's choice" in said
    assert "gpu0 and cpu0 share the cores " in said
    assert "so that the ideal cannot be reached; keep each to its own" in said
    assert main(["live", "split", "n-body", "--gpu", "threads", "--cpu", "numpy"]) == 2
    assert "NumPy computes whole results only; use --cpu numba" in capsys.readouterr().err


def test_the_next_shares_follow_the_measured_rates():
    from dlsim.cpugpu.live.split import _next

    assert _next(100, [50, 50], [1.0, 3.0]) == [75, 25]
    assert _next(100, [100, 0], [1.0, 0.0]) == [100, 0]


@pytest.mark.parametrize("name", KERNELS)
def test_parts_are_the_whole(name):
    kernel = KERNELS[name]
    p = kernel.problem(kernel.tiny, seed=3)
    cut = p.n // 3 or 1
    for backend in ["threads", "opencl"]:
        try:
            slot = slots(gpu=backend)[0]
        except InputError:
            continue
        parts = [
            devices.execute(kernel, p, slot, devices.Part(*ends)).result
            for ends in ((0, cut), (cut, p.n)) if ends[0] < ends[1]
        ]  # fmt: skip
        whole = devices.execute(kernel, p, slot).result
        np.testing.assert_allclose(np.concatenate(parts), whole, rtol=1e-5)
