"""Notebooks that tests execute, and what an executed one shows."""

import ast
import atexit
import contextlib
import functools
import io
import re
import shutil
import tempfile
from pathlib import Path

import nbformat
import pandas as pd
import pytest

from dlsim import files
from dlsim.study import notebooks, warm
from dlsim.study.claims import SYMBOLS, reference_of

_VERDICT = re.compile(rf"\*\*claim (\w+) ({'|'.join(sorted(SYMBOLS, key=len, reverse=True))})\*\*")


class _Shared(warm.Warm):
    """A warm process that outlives its batches."""

    end = warm.Warm.close

    def close(self):
        """Stay for the next batch."""


@functools.cache
def _shared():
    """All that the notebooks of one process of tests need is imported once, not by each."""
    folder = Path(tempfile.mkdtemp(prefix="dlsim-tests-"))
    shared = _Shared(files.suite_notebooks().values(), folder)
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    atexit.register(shared.end)
    return shared


@contextlib.contextmanager
def one_warm_process():
    """Let batches fork their notebooks from one process; `tests.test_warm` looks at their own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(warm, "Warm", lambda *_: _shared())
        yield


def in_one_space(path, folder, given=()):
    """Run a notebook's cells in a folder; return what they leave, and what each shows, by its id.

    Parameters `given` stand for those of the notebook.
    """
    names, shown = {}, {}
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for cell in nbformat.read(path, as_version=4).cells:
            body = ast.parse(cell.source).body if cell.cell_type == "code" else []
            last = [body.pop().value] if body and isinstance(body[-1], ast.Expr) else []
            with contextlib.redirect_stdout(io.StringIO()) as printed:
                exec(compile(ast.Module(body, []), cell.id, "exec"), names)
            shown[f"{cell.id} said"] = printed.getvalue()
            for value in last:
                shown[cell.id] = eval(compile(ast.Expression(value), cell.id, "eval"), names)
            if "parameters" in cell.metadata.get("tags", ()):
                names.update(given)
    return names, shown


def execute(name, out, **values):
    """Run one notebook as a batch of ``dlsim reproduce`` does; return where it appeared."""
    with one_warm_process():
        (result,) = notebooks.run_all([name], out=out, jobs=1, extra=values)
    assert result.status == "ok", result.error
    return result.path


def said(path):
    """All sentences that a notebook computed, in one text."""
    cells = nbformat.read(path, as_version=4).cells
    outputs = [output for cell in cells for output in cell.get("outputs", ())]
    return "\n".join(output.get("data", {}).get("text/markdown", "") for output in outputs)


def unsaid(path, card, elsewhere=()):
    """Verdicts of a scorecard that a notebook does not say by their pictures, or contradicts.

    What another notebook says is named in `elsewhere`.
    """
    table = pd.read_csv(card, keep_default_na=False)
    table["id"] = table["id"].str.replace(r".*-", "", regex=True)  # the number of a claim
    pairs = pd.Series(zip(table["id"], table["verdict"], strict=True))
    due = pairs[(table["figure"] != "") & ~table["id"].isin(elsewhere)]
    found = set(_VERDICT.findall(said(path)))
    prose = [cell for cell in nbformat.read(path, as_version=4).cells if cell.cell_type != "code"]
    fixed = [pair for cell in prose for pair in _VERDICT.findall(cell.source)]
    assert fixed == []  # what is written down cannot know the reading
    return sorted((set(due) - found) | (found - set(pairs)))


def shown_beside_the_shipped(out, paper, reading):
    """Whether the map has this run's own verdicts before the shipped ones, and they differ."""
    read = functools.partial(pd.read_csv, index_col="claim")
    table = read(out / "data" / f"{paper}-readings.csv")
    shipped = read(reference_of(paper).parent / f"{paper}-readings.csv")
    card = pd.read_csv(out / "data" / f"{paper}-claims.csv", index_col="id")["verdict"]
    own, *others = table
    assert own == f"this run: {reading}"
    assert (
        table[own].str.replace(r" \d+/\d+$", "", regex=True).to_dict()
        == card[table.index].to_dict()
    )
    assert table[others].to_dict() == shipped.to_dict()
    return bool((table[own] != table["default"]).any())
