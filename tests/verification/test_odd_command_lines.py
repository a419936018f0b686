"""Whatever is typed after `dlsim`, it answers or refuses in words, and a refusal leaves no file.

DLSIM_COMMAND_LINES is how many lines are typed (400). Where a line is right, notebooks or
JupyterLab would be started: this is noted instead. A line of `dlsim bench` holds a word that cannot
be.
"""

import os
import random
import shutil
import traceback

import pytest

from dlsim.cli import main
from tests.helpers.small_notebooks import write_notebook
from tests.test_odd_paths import ODD as ODD_PATHS

COUNT = int(os.environ.get("DLSIM_COMMAND_LINES", "400"))
ODD = [
    "", " ", "-", "--", "---", "-x", "--no-such", "=", "a=b", "=b", "a=", "../..", "\N{EURO SIGN}",
    "\ud800", "\x00", "\n", "9" * 400, "-1", "0", "nan", "inf", "1e999", "0x10", "None", "'", '"',
    "[", "{}", "$(ls)", "%s", "{0}", "*", "?", "con", "mcdf ", "MCDF", "mcdf-999", "Z", "x" * 5000,
    "file:name", "missing.py:rule", "missing.ipynb", "/", ".", "~", "http://x.invalid/", "\x1b[31m",
    "9" * 5000, "1_000", "\u0661", "\u00b2", "true", "[1, nan]", "{\"a\": 1e999}", "(" * 500,
    "a**b.py:rule", "~nobody-of-this-name", "@file", "own.ipynb", "own", "a,b=c,=",
    *ODD_PATHS.values(),
]  # fmt: skip
#: Words of each command beside the odd ones.
WORDS = {
    "list": ["policies", "figures", "readings", "policy", "--help"],
    "claims": ["M", "mcdf", "mcdf-1", "bricks", "--json", "--results", "--help"],
    "prove": ["5.1", "alpha", "n_min", "--list", "--help"],
    "run": ["20-mcdf", "own.ipynb", "-p", "seed", "1", "loads", "[1]", "reading", "--out", "x",
            "--cell-seconds", "5", "--jobs", "2"],
    "reproduce": ["mcdf", "M", "--scale", "quick", "--seed", "3", "--runs", "2", "--jobs", "1",
                  "--reading", "link=shared", "--out", "x", "--figures", "png", "--dask",
                  "--cell-seconds", "--force", "--book"],
    "lab": ["--dir", "x", "--port", "8888", "--no-browser", "--", "--ip=0.0.0.0"],
    "bench": ["realtime", "--tasks", "100", "--seed", "--list"],
    "no-such-command": ["x"], "LIST": [], "": [], "-": [], "--version": [],
}  # fmt: skip
#: Lines that are right; one word of theirs is made odd.
RIGHT = [
    "list policies", "claims mcdf --results x --json", "prove 5.1 --steps",
    "run own.ipynb -p seed 1 -p loads [1] -p width 2 --out x --jobs 2 --cell-seconds 5",
    "reproduce mcdf theory --scale quick --seed 3 --runs 2 --jobs 1 --reading link=shared --out x "
    "--figures png --cell-seconds 5",
    "lab --dir x --port 8888 --no-browser --ip=0.0.0.0",
    "bench --tasks=-3x realtime --tasks 100 --seed 1",
]  # fmt: skip
#: Words that no command takes.
IMPOSSIBLE = ["--no-such", "--tasks=-3x", "--seed=huge"]
#: Variables of the environment that commands read.
VARIABLES = ["DLSIM_JOBS", "DLSIM_CACHE", "DLSIM_RESULTS", "DLSIM_FIGURES", "COLUMNS", "HOME"]


def typed(number: int) -> tuple[list[str], dict[str, str]]:
    """Return the words of a line and variables of its environment, the same in every run."""
    rng = random.Random(number)
    if rng.random() < 0.5:
        line = rng.choice(RIGHT).split(" ")
        line[rng.randrange(1, len(line))] = rng.choice(ODD)
        verb, *words = line
    else:
        verb = rng.choice(list(WORDS))
        words = [rng.choice([*WORDS[verb], *rng.sample(ODD, 6)]) for _ in range(rng.randint(0, 4))]
    if verb == "bench":
        words.insert(rng.randint(0, len(words)), rng.choice(IMPOSSIBLE))
    names = rng.sample(VARIABLES, 1) if rng.random() < 0.2 else []
    values = [value for value in ODD if "\0" not in value and "\ud800" not in value]
    return [verb, *words], {name: rng.choice(values) for name in names}


class Started(BaseException):
    """Something was started that would run for long."""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with a notebook, in which nothing is started."""

    def start(*_, **__):
        raise Started

    monkeypatch.setattr("dlsim.study.notebooks._run_plan", start)
    monkeypatch.setattr(os, "execve", start)
    monkeypatch.chdir(tmp_path)
    write_notebook(tmp_path / "own.ipynb", "1")
    return tmp_path


@pytest.mark.parametrize("start", range(0, COUNT, 100))
def test_an_odd_line_is_answered_or_refused_in_words(folder, monkeypatch, capsys, start):
    faults = []
    for number in range(start, min(start + 100, COUNT)):
        words, variables = typed(number)
        line = (*words, variables)
        with monkeypatch.context() as patch:
            for name, value in variables.items():
                patch.setenv(name, value)
            try:
                code = main(words)
            except SystemExit as ended:  # argparse
                code = ended.code
            except Started:
                code = None
            except BaseException:
                faults.append((line, traceback.format_exc(-3)))
                continue
        said = capsys.readouterr()
        if code not in (0, 1, 2, None) or (code and not said.err.strip()):
            faults.append((line, f"exit {code}, {said.err[:200]!r}"))
        if "Traceback" in said.err + said.out:
            faults.append((line, said.err[-500:]))
        left = [path for path in folder.iterdir() if path.name != "own.ipynb"]
        if left and code and "DLSIM_CACHE" not in variables:
            faults.append((line, f"left {left}"))
        for path in left:
            shutil.rmtree(path)
    assert faults == []
