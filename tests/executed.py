"""Notebooks that tests execute, and what an executed one shows."""

import ast
import contextlib
import functools
import io
import re
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import nbformat
import pandas as pd
import pytest

from dlsim import files
from dlsim.study import notebooks
from dlsim.study.claims import SYMBOLS, reference_of

_VERDICT = re.compile(rf"\*\*claim (\w+) ({'|'.join(sorted(SYMBOLS, key=len, reverse=True))})\*\*")


#: A policy and a workload of one's own.
FILE = files.shared_file("data/examples/policies.py")
#: What a notebook computes here at the quick scale, as far as parameters do not say it.
SMALL = {
    "inserted_idle_time": {"horizon": 3e5, "map_horizon": 1e5, "pools": 8},
}  # fmt: skip
#: What a kernel does before the first cell of a paper's notebook.
_START = """from importlib import import_module
import_module("dlsim.study.pictures")._DPI = 40
scales = import_module("dlsim.papers.{paper}.study").SCALES
scales["quick"] = scales["quick"]._replace(**{sizes})
del import_module, scales
"""


@contextlib.contextmanager
def lighter_kernels(name):
    """Let the kernels of a notebook compute and draw less at the quick scale."""
    paper = re.sub(r"^\d+-", "", Path(name).stem).replace("-", "_")
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        if paper in SMALL:
            startup = Path(folder, "profile_default", "startup")
            startup.mkdir(parents=True)
            text = _START.format(paper=paper, sizes=SMALL[paper])
            (startup / "00-lighter.py").write_text(text)
            patch.setenv("IPYTHONDIR", folder)
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
            plt.close("all")  # as a kernel does at the end of a cell
            if "parameters" in cell.metadata.get("tags", ()):
                names.update(given)
    return names, shown


def execute(name, out, **values):
    """Run one notebook as a batch of ``dlsim reproduce`` does; return where it appeared."""
    with lighter_kernels(name):
        (result,) = notebooks.run_all([name], out=out, jobs=1, parameters=values)
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


def brought(like):
    """Parameters of a notebook that bring a policy like one of the paper's, and a workload."""
    return {"policies": [f"mine={like}"], "workload": f"{FILE}:bursts", "gantt": [like]}


def shows_what_is_brought(out, paper, like, pictures):
    """Whether each of the pictures has the same numbers for both policies."""
    for picture in pictures.split():
        name, _, column = picture.partition(":")
        ours, theirs = (
            _rows_of(out, f"{paper}-{name}", who, column or "policy") for who in ("mine", like)
        )
        assert len(ours) > 0, name
        pd.testing.assert_frame_equal(ours, theirs)
    return True


def _rows_of(out, name, who, column):
    """The rows of a picture's table that are about a policy, without its name."""
    table = pd.read_csv(out / "data" / f"{name}.csv")
    table = table[table["order"] == "EDF"] if "order" in table else table  # its own
    about = table[column].str.split(" ").map(lambda words: who in words)
    rows = table[about].replace(re.escape(who), "it", regex=True)
    return rows.drop(columns="row", errors="ignore").reset_index(drop=True)


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
