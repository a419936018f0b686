"""Every kind of file that dlsim reads: its reader, a good file, and what a refusal can name."""

import hashlib
import json
from functools import partial

import nbformat

from dlsim import files
from dlsim.cpugpu import workload as applications
from dlsim.errors import InputError
from dlsim.joblog import read_log
from dlsim.realtime import Cluster
from dlsim.realtime import workload as tasks
from dlsim.steady import read_platform
from dlsim.study import sweeps
from dlsim.study.claims import load_claims, read_scorecard
from dlsim.study.dask_cluster import address_of_file
from dlsim.study.notebooks import parameters_of
from dlsim.study.results import load_figures
from tests.test_files import LOG, TABLE

CLUSTER = Cluster(4, 1.0, 100.0)
PLATFORM = b"""[[cluster]]
speed = 100.0
gateway = 20
router = "a"
[[cluster]]
speed = 50.0
gateway = 30
router = "b"
[[application]]
origin = 0
priority = 1
work = 10.0
data = 2
[[link]]
name = "l"
bandwidth = 10.0
max_connect = 3
start = "a"
end = "b"
[[route]]
from = 0
to = 1
links = ["l"]
[[limits.pair]]
from = 0
to = 1
most = 2
"""
CLAIMS = files.shared_file("data/claims.toml").read_bytes()[:1200].rpartition(b"\n[[claim]]")[0]
BOOK = nbformat.v4.new_notebook(
    cells=[
        nbformat.v4.new_code_cell("seed: int = 0  # of all\n", metadata={"tags": ["parameters"]}),
        nbformat.v4.new_code_cell("seed + 1"),
    ]
)
for at, cell in enumerate(BOOK.cells):
    cell["id"] = f"cell-{at}"  # drawn at random otherwise
FIGURES = files.shared_file("data/figures.toml").read_bytes().split(b"\n[[figure]]")
FIGURES = b"\n[[figure]]".join(FIGURES[:3]) + b"\n"
SCORES = (
    files.shared_file("data/reference/mcdf/mcdf-claims.csv").read_bytes().splitlines(keepends=True)
)
RESULT = json.dumps({"x": [1, 2.5]})
CELL = f"{RESULT}\n{hashlib.sha256(RESULT.encode()).hexdigest()}\n".encode()
CELL_NAME = f"{hashlib.sha256(RESULT.encode()).hexdigest()}.txt"


def cell(path):
    """A cell of a sweep's cache is not refused but computed again: None."""
    if sweeps._read(path) is None:
        raise InputError(f"{path.name}: no such cell")


#: Reader, a good file, and whether a refusal can name a line; the key is the file's name.
READERS = {
    "tasks.csv": (tasks.from_csv, TABLE, True),
    "tasks.swf": (partial(tasks.from_swf, cluster=CLUSTER, limit=60_000), LOG.encode(), True),
    "jobs.swf": (partial(read_log, limit=60_000), LOG.encode(), True),
    "applications.csv": (
        applications.read_applications, b"app,cpu_time,gpu_time\nA,1.5,2\nB,,3\nC,4,\n", True
    ),
    "mcdf-claims.csv": (read_scorecard, b"".join(SCORES[:3]), False),
    "claims.toml": (lambda path: load_claims(path=path), CLAIMS, False),
    "figures.toml": (load_figures, FIGURES, False),
    "platform.toml": (read_platform, PLATFORM, False),
    "book.ipynb": (parameters_of, nbformat.writes(BOOK).encode(), False),
    "scheduler.json": (address_of_file, b'{"address": "tcp://127.0.0.1:8786"}', False),
    "text.txt": (files.read_text, "Größe 1\n".encode(), False),
    CELL_NAME: (cell, CELL, False),
}  # fmt: skip
#: Those with checksums, of which hardly any damage is read.
SEALED = (list(READERS)[-1],)
