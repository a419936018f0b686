"""The numbered notebooks read like papers: the model, a claim, a picture, what came out."""

import ast
import re
from pathlib import Path

import nbformat
import pytest

FOLDER = Path(__file__).parents[1] / "notebooks"
EVERY = sorted(path.stem for path in FOLDER.glob("[0-9]*.ipynb"))
#: Those that do; the list only grows.
READ = [
    "00-start-here", "10-theory", "20-mcdf", "25-live-cluster", "30-inserted-idle-time",
    "40-steady-state", "50-cpu-gpu", "60-bricks",
]  # fmt: skip
CLAIM = re.compile(r"\*\*(The paper says|We ask):\*\* \S")


def name_of(call):
    """The name that is called, whatever it belongs to."""
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def calls(*nodes):
    return [one for node in nodes for one in ast.walk(node) if isinstance(one, ast.Call)]


def draws(call, drawers):
    name = name_of(call)
    return name in drawers or name in ("keep", "show") or re.match(r"fig\d|fig_", name)


def problems_of(name, cells):
    """What a reader would miss in the cells of a notebook."""
    code = {cell.id: ast.parse(cell.source) for cell in cells if cell.cell_type == "code"}
    functions = [one for tree in code.values() for one in tree.body
                 if isinstance(one, ast.FunctionDef)]  # fmt: skip
    # plot_gantt: of a notebook that keeps no picture
    drawers = {one.name for one in functions if any(draws(c, ()) for c in calls(one))}
    drawers |= {"plot_gantt"} if name == "00-start-here" else set()
    first = next(k for k, cell in enumerate(cells) if cell.cell_type == "code")
    text = "\n".join(cell.source for cell in cells[:first])
    if sum(line.startswith("|") and line.count("$") >= 2 for line in text.splitlines()) < 5:
        yield "does not begin with the model in five lines"
    if "](10-theory.ipynb)" not in text and name != "10-theory":
        yield "does not say where its model is proved"
    claimed, open_since = False, ""
    for cell in cells:
        if cell.cell_type != "code":
            if open_since:
                yield f"nothing is computed after {open_since}"
            claimed, open_since = claimed or bool(CLAIM.search(cell.source)), ""
            continue
        body = [one for one in code[cell.id].body if not isinstance(one, ast.FunctionDef)]
        if any(draws(call, drawers) for call in calls(*body)):
            if not claimed:
                yield f"{cell.id} draws without a claim before it"
            claimed, open_since = False, cell.id
        last = body[-1] if body else None
        if isinstance(last, ast.Expr) and isinstance(last.value, ast.Call):
            said, shown = name_of(last.value) in ("Said", "say"), name_of(last.value) == "show"
            if said or (shown and len(last.value.args) > 3 and cell.source[-1] != ";"):
                open_since = ""
    place = EVERY.index(name)
    onward = {"00-start-here", *EVERY[place + 1 : place + 2]} - {name}
    missing = [one for one in sorted(onward) if f"]({one}.ipynb)" not in cells[-1].source]
    if cells[-1].cell_type == "code" or missing:
        yield f"does not lead on to {', '.join(missing)}"


def cells_of(name):
    return nbformat.read(FOLDER / f"{name}.ipynb", as_version=4).cells


@pytest.mark.parametrize("name", READ)
def test_a_notebook_reads_like_a_paper(name):
    assert list(problems_of(name, cells_of(name))) == []


@pytest.mark.parametrize(
    ("name", "spoil", "said"),
    [
        ("10-theory", lambda cells: cells.pop(0), "five lines"),
        ("10-theory", lambda cells: cells.pop(), "lead on to 00-start-here, 20-mcdf"),
        (
            "25-live-cluster",
            lambda cells: change(cells, "**We ask:**", "See:"),
            "draws without a claim",
        ),
        (
            "00-start-here",
            lambda cells: change(cells, "Said(", "print("),
            "nothing is computed after",
        ),
    ],
)
def test_what_is_missing_is_seen(name, spoil, said):
    cells = cells_of(name)
    spoil(cells)
    assert any(said in problem for problem in problems_of(name, cells))


def change(cells, old, new):
    """Change a text in the last cell that has it."""
    cell = next(cell for cell in reversed(cells) if old in cell.source)
    cell.source = cell.source.replace(old, new)
