"""A notebook that is stopped half way is never taken for one that is done."""

import os
import signal
import sys
from pathlib import Path

import pytest

from dlsim.study import notebooks
from dlsim.study.notebooks import run_all
from tests.children import marked, none_left, spawn, until
from tests.small_notebooks import write_notebook
from tests.test_notebooks import ENDLESS


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
