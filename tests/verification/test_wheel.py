"""The wheel by itself: installed outside the checkout it reproduces a paper and opens the lab.

The environment is a venv of its own that holds nothing but the wheel; a line in it points to
the packages of this one, so that neither network nor minutes are needed.
"""

import csv
import importlib.util
import json
import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from dlsim.compiled import core_digest
from tests.verification.test_served_lab import served

ROOT = Path(__file__).parents[2]
#: Variables by which this session's processes find the checkout and its cache.
KNOWN = ("PYTHON", "DLSIM_", "NUMBA_")
pytestmark = [pytest.mark.skipif(os.name != "posix", reason="scripts lie in bin")]


def said(words, **options):
    done = subprocess.run(words, capture_output=True, text=True, check=False, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def build(folder):
    """Build the wheel here where the build backend is installed, else where pip puts it."""
    words = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", str(folder)]
    here = importlib.util.find_spec("hatchling") is not None
    words += ["--no-build-isolation"] * here
    done = subprocess.run([*words, str(ROOT)], capture_output=True, text=True, check=False)
    if done.returncode and not here:
        pytest.skip(f"no wheel without network or hatchling: {done.stderr[-200:]}")
    assert done.returncode == 0, done.stderr
    (wheel,) = folder.glob("dlsim-*.whl")
    return wheel


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """The command of the installed wheel, and an environment that knows no checkout."""
    folder = tmp_path_factory.mktemp("wheel")
    home = folder / "venv"
    said([sys.executable, "-m", "venv", "--without-pip", str(home)])
    wheel = build(folder)
    python = home / "bin" / "python"
    said([sys.executable, "-m", "pip", "--python", str(python), "install", "-q", "--no-deps",
          "--no-index", str(wheel)])  # fmt: skip
    packages = said([python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"])
    lines = {sysconfig.get_path(name) for name in ("purelib", "platlib")}
    (Path(packages.strip()) / "others.pth").write_text("\n".join(sorted(lines)) + "\n")
    environment = {k: v for k, v in os.environ.items() if not k.startswith(KNOWN)}
    environment |= {"DLSIM_CACHE": str(folder / "cache"), "VIRTUAL_ENV": str(home)}
    # what packages lay down beside their modules
    environment["JUPYTER_PATH"] = os.path.join(sys.prefix, "share", "jupyter")
    environment["JUPYTERLAB_DIR"] = os.path.join(sys.prefix, "share", "jupyter", "lab")
    return home / "bin" / "dlsim", environment


def test_the_wheel_carries_what_it_needs_and_no_more(installed, tmp_path):
    command, environment = installed
    code = "import dlsim, dlsim.files as f; print(dlsim.__file__, f.project_root())"
    where = said([command.parent / "python", "-c", code], env=environment, cwd=tmp_path)
    assert str(command.parents[1]) in where
    assert where.strip().endswith("None")
    share = Path(where.split()[0]).parent / "_share"
    for folder in ("notebooks", "data"):
        tracked = {p.relative_to(ROOT / folder) for p in (ROOT / folder).rglob("*.*")}
        carried = {p.relative_to(share / folder) for p in (share / folder).rglob("*.*")}
        hidden = {p for p in tracked if any(part.startswith(".") for part in p.parts)}
        assert tracked - hidden <= carried


def test_the_wheel_reproduces_a_paper(installed, tmp_path):
    command, environment = installed
    words = [command, "reproduce", "theory", "--out", "results", "--jobs", "1"]
    # uncompiled, which is faster once; the next test compiles
    out = said(words, env=environment | {"NUMBA_DISABLE_JIT": "1"}, cwd=tmp_path)
    assert out.strip().endswith("- results/report.html")
    record = json.loads((tmp_path / "results" / "run.json").read_text())
    assert [row["status"] for row in record["notebooks"]] == ["ok", "ok"]
    assert [row["id"] for row in record["figures"] if not row["drawn"]] == []
    with open(tmp_path / "results" / "data" / "theory-reduction.csv") as stream:
        assert len(list(csv.DictReader(stream))) > 3


def test_the_wheel_compiles_into_the_users_cache(installed, tmp_path):
    command, environment = installed
    python = command.parent / "python"
    code = (
        "import pandas as pd; from dlsim.realtime import Cluster, simulate\n"
        "tasks = pd.DataFrame({'arrival': [0.0], 'sigma': [2.0], 'deadline': [3.7]})\n"
        "s = simulate(tasks, Cluster(2, 1, 2), 'EDF-OPR-MN', engine='compiled')\n"
        "print(s.tasks['completion'][0])"
    )
    assert float(said([python, "-c", code], env=environment, cwd=tmp_path)) == pytest.approx(3.6)
    cache = Path(environment["DLSIM_CACHE"])
    found = {path.relative_to(cache).parts[0] for path in cache.rglob("*.kernel")}
    assert found == {f"kernels-{core_digest('dlsim.realtime.core')}"}
    for pattern in ("*.nbi", "*.kernel"):
        assert list(command.parents[1].rglob(pattern)) == []


def test_the_wheel_opens_the_lab(installed, tmp_path):
    command, environment = installed
    # its environment borrows packages, and does not see the extensions of JupyterLab
    status, names, picture = served([str(command)], tmp_path, environment, usual=())
    assert status["kernels"] == 0
    assert names == {path.name for path in (ROOT / "notebooks").glob("*.ipynb")}
    assert picture["type"] == "file"
