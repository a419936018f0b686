"""``dlsim lab`` starts a server that serves the copy of the notebooks."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from dlsim.output_folder import RECORD_FILE
from tests.test_lab import NOTEBOOKS, START

#: What JupyterLab does unless its user has said otherwise.
USUAL = (
    ("@jupyterlab/apputils-extension:notification", "fetchNews", "false"),
    ("@jupyter-widgets/jupyterlab-manager:plugin", "saveState", True),
)


def served(words, folder, environment, usual=USUAL):
    """Start ``dlsim lab`` with `words`, wait for its answer, stop it; return what it served."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    token = "IdentityProvider.token=t"
    command = [*words, "lab", "--no-browser", "--port", str(port), "--allow-root", f"--{token}"]
    log = folder / "lab.log"
    with open(log, "w") as stream:
        server = subprocess.Popen(
            command, cwd=folder, env=environment, stdout=stream, stderr=stream, stdin=-3,
            start_new_session=True,
        )  # fmt: skip

    def get(path):
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/{path}?token=t", timeout=60) as got:
            return json.loads(got.read())

    try:
        deadline = time.monotonic() + 90
        while True:
            try:
                status = get("api/status")
                break
            except (urllib.error.URLError, OSError):
                assert server.poll() is None, log.read_text()
                assert time.monotonic() < deadline, log.read_text()
                time.sleep(0.2)
        names = {item["name"] for item in get("api/contents/notebooks")["content"]}
        picture = get("api/contents/data/figures/mcdf-fig5.png")
        for place, name, value in usual:
            shape = get(f"lab/api/settings/{place}")["schema"]["properties"][name]
            assert shape["default"] == value
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait(60)
    return status, names, picture


@pytest.mark.skipif(os.name != "posix", reason="sends a signal")
def test_a_checkout_serves_its_copy(tmp_path):
    for name in ("random", "email", "numbers", "dlsim"):  # what a user may have there
        (tmp_path / f"{name}.py").write_text("raise SystemExit")
    command = [sys.executable, "-P", "-m", "dlsim"]
    status, names, picture = served(command, tmp_path, os.environ.copy())
    assert status["kernels"] == 0
    assert names == {path.name for path in NOTEBOOKS.glob("*.ipynb")}
    assert picture["type"] == "file"
    assert (tmp_path / "dlsim-notebooks" / "notebooks" / START.name).read_bytes() == (
        START.read_bytes()
    )
    assert Path(tmp_path / "dlsim-notebooks" / RECORD_FILE).is_file()
