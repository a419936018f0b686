"""A test that does not end fails after a while, and ends the run."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
#: A loop inside the interpreter, which no signal and no other thread interrupts.
ENDLESS = """import collections, itertools

def test_without_end():
    collections.deque(itertools.repeat(0), maxlen=0)
"""


def test_a_test_without_end_fails_once_and_is_named(tmp_path):
    (tmp_path / "test_endless.py").write_text(ENDLESS, "utf-8")
    settings = [f"--config-file={ROOT / 'pyproject.toml'}", f"--rootdir={tmp_path}"]
    limits = ["-n", "1", "-o", "faulthandler_timeout=1"]
    command = [sys.executable, "-m", "pytest", *settings, *limits, "test_endless.py"]
    ours = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST_")}
    done = subprocess.run(
        command, cwd=tmp_path, env=ours, capture_output=True, text=True, timeout=200
    )
    assert done.returncode == 1
    assert "= 1 failed in" in done.stdout
    assert "crashed while running 'test_endless.py::test_without_end'" in done.stdout
    assert 'test_endless.py", line 4 in test_without_end' in done.stdout + done.stderr


def test_every_test_has_a_limit(pytestconfig):
    assert 0 < float(pytestconfig.getini("faulthandler_timeout"))
    assert pytestconfig.getini("faulthandler_exit_on_timeout")
