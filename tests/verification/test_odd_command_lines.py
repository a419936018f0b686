"""Whatever is typed after `dlsim`, it answers or refuses in words, and a refusal leaves no file.

DLSIM_COMMAND_LINES is how many lines are typed (400). Lines of commands that would run something
hold at least one word that cannot be. `dlsim lab` is not tried: it hands such words to JupyterLab.
"""

import os
import random
import traceback

import pytest

from dlsim.cli import main

COUNT = int(os.environ.get("DLSIM_COMMAND_LINES", "400"))
ODD = [
    "", " ", "-", "--", "---", "-x", "--no-such", "=", "a=b", "=b", "a=", "../..", "\N{EURO SIGN}",
    "\ud800", "\x00", "\n", "9" * 400, "-1", "0", "nan", "inf", "1e999", "0x10", "None", "'", '"',
    "[", "{}", "$(ls)", "%s", "{0}", "*", "?", "con", "mcdf ", "MCDF", "mcdf-999", "Z", "x" * 5000,
    "file:name", "missing.py:rule", "missing.ipynb", "/", ".", "~", "http://x.invalid/", "\x1b[31m",
]  # fmt: skip
ANSWERS = {
    "list": ["policies", "figures", "readings", "policy", "--help"],
    "claims": ["M", "mcdf", "mcdf-1", "bricks", "--json", "--results", "--help"],
    "prove": ["5.1", "alpha", "n_min", "--list", "--help"],
}
RUNS = {
    "run": ["20-mcdf", "-p", "seed", "1", "--out", "x", "--cell-seconds", "5"],
    "reproduce": ["mcdf", "M", "--scale", "quick", "--seed", "3", "--runs", "2", "--jobs", "1",
                  "--reading", "--out", "x", "--figures", "png", "--dask", "--cell-seconds"],
    "bench": ["realtime", "--tasks", "100", "--seed"],
    "no-such-command": ["x"], "LIST": [], "": [], "-": [],
}  # fmt: skip


def typed(number: int) -> list[str]:
    """Return the words of a line, the same in every run."""
    rng = random.Random(number)
    if rng.random() < 0.3:
        verb = rng.choice(list(ANSWERS))
        return [verb, *(rng.choice(ANSWERS[verb] + ODD) for _ in range(rng.randint(0, 3)))]
    verb = rng.choice(list(RUNS))
    words = [rng.choice(RUNS[verb] + ODD) for _ in range(rng.randint(0, 4))]
    words.insert(
        rng.randint(0, len(words)), rng.choice(["--no-such", "--jobs=-3x", "--scale=huge"])
    )
    return [verb, *words]


@pytest.mark.parametrize("start", range(0, COUNT, 100))
def test_an_odd_line_is_answered_or_refused_in_words(tmp_path, monkeypatch, capsys, start):
    monkeypatch.chdir(tmp_path)
    faults = []
    for number in range(start, min(start + 100, COUNT)):
        words = typed(number)
        try:
            code = main(words)
        except SystemExit as ended:  # argparse
            code = ended.code
        except BaseException:
            faults.append((words, traceback.format_exc(-3)))
            continue
        said = capsys.readouterr()
        if code not in (0, 1, 2, None) or (code and not said.err.strip()):
            faults.append((words, f"exit {code}, {said.err[:200]!r}"))
        if "Traceback" in said.err + said.out:
            faults.append((words, said.err[-500:]))
        if left := [path.name for path in tmp_path.iterdir()]:
            faults.append((words, f"left {left}"))
            break
    assert faults == []
