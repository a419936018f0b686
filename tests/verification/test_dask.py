"""Sweeps on a Dask cluster give the same bytes as here, whatever dies (extra cluster)."""

import os
import signal
import subprocess
import sys
import threading

import nbformat
import pytest

from dlsim.cache import package_digest
from dlsim.cli import main
from dlsim.errors import InputError, StudyError
from dlsim.files import csv_text, write_text
from dlsim.study import dask_cluster, sweep
from dlsim.study.notebooks import run_all
from dlsim.study.results import round_floats
from tests.helpers import sweep_functions as functions
from tests.helpers.children import until

distributed = pytest.importorskip("distributed")
# what Dask itself warns of is not ours to mend
pytestmark = pytest.mark.filterwarnings("ignore")

QUIET = {"dashboard_address": None, "silence_logs": "CRITICAL"}


@pytest.fixture(autouse=True)
def _cache(tmp_path, monkeypatch):
    monkeypatch.setenv("DLSIM_CACHE", str(tmp_path / "cache"))
    yield
    dask_cluster._connect_once.cache_clear()


@pytest.fixture(scope="module")
def cluster():
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, **QUIET) as cluster:
        yield cluster


@pytest.fixture
def address(cluster, monkeypatch):
    monkeypatch.setenv(dask_cluster.DASK_VARIABLE, cluster.scheduler_address)
    return cluster.scheduler_address


def test_the_environment_sends_a_sweep_to_the_cluster(address, cluster):
    found = sweep(functions.whose, {"load": range(8)}, fixed={"wait": 0.05}, replicates=2)
    with distributed.Client(cluster) as client:
        theirs = set(client.run(os.getpid).values())
    assert set(found["process"]) <= theirs
    assert set(found["jobs"]) == {1}  # no worker opens workers of its own
    ours = sweep(functions.whose, {"load": [0]}, replicates=1, jobs=1)
    assert set(ours["process"]) == {os.getpid()}  # a number of processes is one of this machine
    kept = sweep(functions.whose, {"load": range(8)}, fixed={"wait": 0.05}, replicates=2)
    assert kept.to_csv() == found.to_csv()


def test_finished_cells_of_killed_workers_are_not_called_again(tmp_path, monkeypatch):
    marks = tmp_path / "marks"
    marks.mkdir()
    with distributed.LocalCluster(n_workers=4, threads_per_worker=1, **QUIET) as cluster:
        monkeypatch.setenv(dask_cluster.DASK_VARIABLE, cluster.scheduler_address)

        def kill_two():
            assert until(lambda: len(os.listdir(marks)) >= 120)
            workers = {int(name.split("-")[2]) for name in os.listdir(marks)}
            for process in sorted(workers)[:2]:
                os.kill(process, signal.SIGKILL)
            killed.append(len(os.listdir(marks)))

        killed = []
        killer = threading.Thread(target=kill_two)
        killer.start()
        fixed = {"marks": str(marks), "wait": 0.05}
        assert len(sweep(functions.marked, {"load": range(240)}, 1, fixed=fixed)) == 240
        killer.join()
    assert killed[0] < 220  # in the midst
    # some 60 had ended on the two that died; a few may not have been on their way yet
    assert 240 <= len(os.listdir(marks)) <= 250


def test_an_error_on_the_cluster_names_its_cell(address):
    with pytest.raises(StudyError, match=r"fails failed at load=3, replicate 1: .*7 and 8"):
        sweep(functions.fails, {"load": range(6)}, replicates=4)


NOTEBOOK = """from dlsim.study import sweep
from dlsim.study.results import Results
from tests.helpers import sweep_functions as functions
table = sweep(functions.deadly, {"load": range(40, 60)}, 2, seed,
              fixed={"flag": flag, "wait": 0.01})
Results(out).table("result", table)"""


def test_a_notebook_runs_its_sweeps_there_and_loses_a_worker(address, tmp_path, monkeypatch):
    book = nbformat.v4.new_notebook()
    parameters = 'seed: int = 0\njobs: int = 0\nout: str = ""\nflag: str = ""'
    book.cells = [nbformat.v4.new_code_cell(text) for text in (parameters, NOTEBOOK)]
    book.cells[0].metadata["tags"] = ["parameters"]
    book.metadata["kernelspec"] = {"name": "python3", "display_name": "3", "language": "python"}
    nbformat.write(book, tmp_path / "one.ipynb")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, sys.path)))
    flag = tmp_path / "died"
    (there,) = run_all([tmp_path / "one.ipynb"], out=tmp_path / "a", dask=address,
                       parameters={"flag": str(flag)})  # fmt: skip
    assert (there.status, flag.exists()) == ("ok", True), there.error
    monkeypatch.delenv(dask_cluster.DASK_VARIABLE)
    expected = sweep(functions.deadly, {"load": range(40, 60)}, 2, 0, jobs=1,
                     fixed={"flag": ""})  # fmt: skip
    write_text(tmp_path / "expected.csv", csv_text(round_floats(expected)))
    written = (tmp_path / "a" / "data" / "result.csv").read_bytes()
    assert written == (tmp_path / "expected.csv").read_bytes()


# ------------------------------------------------------------- what cannot be used


def test_a_fitting_cluster_is_told_in_one_line(address):
    line = f"2 workers with 2 threads at {address}"
    assert until(
        lambda: dask_cluster.check_cluster(address) == line
    )  # one was killed, and comes back


@pytest.mark.parametrize("place", ["tcp://127.0.0.1:9", "127.0.0.1:9", "nowhere", "x://y", "a b"])
def test_an_address_where_nothing_answers(monkeypatch, place, capsys, tmp_path):
    monkeypatch.setattr(dask_cluster, "ANSWER_SECONDS", 0.5)
    assert main(["reproduce", "theory", "--dask", place, "--out", str(tmp_path / "r")]) == 2
    said = capsys.readouterr().err
    assert f"no Dask scheduler answers at {place!r}" in said
    assert "Traceback" not in said
    assert not (tmp_path / "r").exists()


def test_a_scheduler_file_that_is_not_there(tmp_path):
    with pytest.raises(InputError, match="no such scheduler file"):
        dask_cluster.connect(str(tmp_path / "gone.json"))


def test_without_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(InputError, match=r"pip install 'dlsim\[cluster\]'"):
        dask_cluster.check_cluster("tcp://127.0.0.1:9")


@pytest.fixture(scope="module")
def empty():
    with distributed.LocalCluster(n_workers=0, **QUIET) as cluster:
        yield cluster


def test_a_scheduler_without_workers(empty, monkeypatch):
    monkeypatch.setattr(dask_cluster, "WORKER_SECONDS", 0.2)
    with pytest.raises(InputError, match=r"no worker of tcp.* within 0\.2 s; start some: dask wor"):
        dask_cluster.check_cluster(empty.scheduler_address)


OTHER = "def package_digest():\n    return '0' * 16\n"


@pytest.mark.parametrize(
    ("sources", "message"),
    [
        ({"__init__.py": "raise ImportError('no such thing')"},
         "worker tcp.* has no dlsim .*no such thing.*; install this dlsim there"),
        ({"__init__.py": "__version__ = '9.9'", "cache.py": OTHER},
         r"worker tcp.* has dlsim 9\.9 from sources 0000000000000000, .* from sources DIGEST;"),
    ],
)  # fmt: skip
def test_workers_with_another_dlsim_or_none_are_named(empty, tmp_path, sources, message):
    (tmp_path / "dlsim").mkdir()
    for name, text in sources.items():
        (tmp_path / "dlsim" / name).write_text(text)
    words = ["-m", "distributed.cli.dask_worker", empty.scheduler_address, "--nthreads", "1"]
    worker = subprocess.Popen(
        [sys.executable, *words, "--no-nanny", "--no-dashboard"], cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(tmp_path)}, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        with pytest.raises(InputError, match=message.replace("DIGEST", package_digest())):
            dask_cluster.check_cluster(empty.scheduler_address)
    finally:
        worker.kill()
        worker.wait()
        until(lambda: not empty.scheduler.workers, within=30)


def test_a_scheduler_that_dies_is_an_error_and_what_came_back_stays(tmp_path, monkeypatch):
    note = tmp_path / "scheduler.json"
    scheduler = subprocess.Popen(
        [sys.executable, "-m", "distributed.cli.dask_scheduler", "--port", "0", "--no-dashboard",
         "--scheduler-file", str(note)], cwd=tmp_path, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    worker = None
    try:
        # Dask writes it in place: there before it is whole
        until(lambda: note.exists() and note.read_text().rstrip().endswith("}"), scheduler, 60)
        words = ["-m", "distributed.cli.dask_worker", "--scheduler-file", str(note)]
        worker = subprocess.Popen(
            [sys.executable, *words, "--nthreads", "1", "--no-nanny", "--no-dashboard"],
            cwd=tmp_path, stderr=subprocess.DEVNULL,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )  # fmt: skip
        assert dask_cluster.check_cluster(str(note)).startswith("1 workers with 1 threads")
        monkeypatch.setenv(dask_cluster.DASK_VARIABLE, str(note))
        marks = tmp_path / "marks"
        marks.mkdir()
        fixed = {"marks": str(marks), "pid": scheduler.pid}
        with pytest.raises(StudyError, match=r"the executor failed .* of 40 cells are done"):
            sweep(functions.orphaned, {"load": range(40)}, fixed=fixed, replicates=1)
    finally:
        for process in (scheduler, worker):
            if process:
                process.kill()
                process.wait()
