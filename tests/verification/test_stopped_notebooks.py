"""A notebook that is stopped half way is never taken for one that is done."""

import os
import signal
import sys
from pathlib import Path

import pytest

from dlsim.study import notebooks
from dlsim.study.notebooks import run_all
from tests.children import alive, marked, none_left, spawn, until
from tests.small_notebooks import write_notebook
from tests.test_notebooks import ENDLESS

ROOT = Path(__file__).parents[2]


def start(source, out):
    """Run a notebook in another process."""
    code = (
        "import sys; from dlsim.study.notebooks import run_all\n"
        "for r in run_all(sys.argv[1:2], out=sys.argv[2]): print(r.name, r.status)"
    )
    with open(f"{out}.said", "w") as said, open(f"{out}.errors", "w") as errors:
        command = [sys.executable, "-c", code, str(source), str(out)]
        return spawn(command, stdout=said, stderr=errors, env=marked(str(out)))


@pytest.mark.skipif(os.name != "posix", reason="sends signals")
def test_stopped_half_way_is_not_taken_for_done(tmp_path):
    for kind in (signal.SIGKILL, signal.SIGINT):
        out = tmp_path / kind.name
        out.mkdir()
        process = start(write_notebook(tmp_path / f"{kind.name}.ipynb", ENDLESS), out)
        assert until((out / "started").exists, process), Path(f"{out}.errors").read_text()
        process.send_signal(kind)
        process.wait(60)
        assert none_left(str(out)) == []
        assert list((out / "notebooks").iterdir()) == []
    assert (tmp_path / "SIGINT.said").read_text().split() == ["SIGINT", "interrupted"]
    assert not (tmp_path / "SIGINT" / notebooks.RUNNING).exists()
    write_notebook(tmp_path / "SIGKILL.ipynb", "1")
    (result,) = run_all([tmp_path / "SIGKILL.ipynb"], out=tmp_path / "SIGKILL")
    assert (result.status, result.reused) == ("ok", False)


@pytest.mark.skipif(os.name != "posix", reason="sends signals")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_reproduce_is_interrupted_in_words(tmp_path, number):
    words = [sys.executable, "-m", "dlsim", "reproduce", "theory", "--force", "--out", "out"]
    with open(tmp_path / "log", "w") as log:
        environment = marked(str(tmp_path), PYTHONPATH=str(ROOT))
        process = spawn(words, cwd=tmp_path, env=environment, stdout=log, stderr=log)
    kernel = "ipykernel_launcher"
    until(lambda: any(kernel in " ".join(one.cmdline()) for one in alive(str(tmp_path))), process)
    process.send_signal(number)
    assert process.wait(60) == 130
    said = (tmp_path / "log").read_text()
    assert "interrupted; the same command resumes" in said
    assert "Traceback" not in said
    assert none_left(str(tmp_path)) == []
