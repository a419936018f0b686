"""Notebooks whose experiments stand in their cells: what a reader finds in each of them."""

import ast
import re
from pathlib import Path

import nbformat
import pytest

from dlsim.files import suite_notebooks
from dlsim.study.results import paper_letters, paper_of

FOLDER = Path(__file__).parents[2] / "notebooks"
#: The notebooks of papers M and I.
NAMES = [name for name in suite_notebooks() if paper_of(name) in ("mcdf", "inserted-idle-time")]
#: Those, and one that has pictures of formulas, but no sweep and no reading.
WITH_PICTURES = [*NAMES, "10-theory"]
#: The notebooks of the other papers.
OTHERS = [
    name
    for name in suite_notebooks()
    if paper_of(name) in paper_letters().values() and name not in NAMES
]
#: Most parameters, and most names of `dlsim.study` and `dlsim.papers` that are used.
MOST_PARAMETERS, MOST_HELPERS = 10, 15
#: Most lines of a cell of code that are not blank: a cell is one idea.
MOST_LINES = 45
CLAIM = re.compile(r"\*\*(The paper says|We ask):\*\* \S")


def cells_of(name):
    return nbformat.read(FOLDER / f"{name}.ipynb", as_version=4).cells


def code_of(name):
    return [ast.parse(cell.source) for cell in cells_of(name) if cell.cell_type == "code"]


def calls(tree):
    return [one for one in ast.walk(tree) if isinstance(one, ast.Call)]


def name_of(call):
    function = call.func
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


@pytest.mark.parametrize("name", WITH_PICTURES)
def test_parameters_are_few_typed_and_explained(name):
    [cell] = [cell for cell in cells_of(name) if "parameters" in cell.metadata.get("tags", ())]
    lines = cell.source.splitlines()
    assert len(lines) <= MOST_PARAMETERS
    for line in lines:
        assert re.fullmatch(r"\w+: (str|int|float|list|dict|bool) = .*  # \S.*", line), line
        assert "=" not in line.partition("  # ")[2]  # papermill could not read the line
    examples = [line for line in lines if re.match("(reading|policies):", line)]
    assert examples
    assert name not in NAMES or all(", e.g. " in line for line in examples)


@pytest.mark.parametrize("name", [*NAMES, *OTHERS])
def test_cells_of_code_are_short(name):
    lines = {
        cell.id: sum(bool(line.strip()) for line in cell.source.splitlines())
        for cell in cells_of(name)
        if cell.cell_type == "code"
    }
    assert {cell: count for cell, count in lines.items() if count > MOST_LINES} == {}


@pytest.mark.parametrize("name", WITH_PICTURES)
def test_a_section_with_a_picture_says_what_is_asked(name):
    sections, text, saves = [], "", False
    for cell in [*cells_of(name), nbformat.v4.new_markdown_cell("## end")]:
        if cell.cell_type == "markdown" and cell.source.startswith("#"):
            sections.append((text, saves))
            text, saves = "", False
        if cell.cell_type == "markdown":
            text += cell.source + "\n"
        else:
            tree = ast.parse(cell.source)
            saves |= any(name_of(call) in ("save", "judge") for call in calls(tree))
    silent = [said.splitlines()[0] for said, saves in sections if saves and not CLAIM.search(said)]
    assert silent == []


@pytest.mark.parametrize("name", NAMES)
def test_every_experiment_stands_in_the_notebook(name):
    """What is swept is a function of a cell, with a sentence that says what it does."""
    trees = code_of(name)
    functions = {
        one.name: one
        for tree in trees
        for one in ast.walk(tree)
        if isinstance(one, ast.FunctionDef)
    }
    swept = [call.args[0].id for tree in trees for call in calls(tree) if name_of(call) == "sweep"]
    assert swept
    assert set(swept) <= set(functions)
    assert all(ast.get_docstring(one) for one in functions.values())


OF_SUITE = ("dlsim.study", "dlsim.papers.")


@pytest.mark.parametrize("name", [*WITH_PICTURES, *OTHERS])
def test_few_helpers_of_ours_are_used(name):
    helpers = set()  # functions: a constant such as POLICIES needs no reading
    for tree in code_of(name):
        for one in ast.walk(tree):
            if isinstance(one, ast.ImportFrom) and str(one.module).startswith(OF_SUITE):
                helpers |= {alias.name for alias in one.names}
            elif isinstance(one, ast.Attribute) and isinstance(one.value, ast.Name):
                if one.value.id == paper_of(name).replace("-", "_"):  # the module of the paper
                    helpers.add(one.attr)
    # shown_table and its like stand where pandas' own would: they show texts of files as text
    helpers = sorted(one for one in helpers if not (one.isupper() or one.startswith("shown_")))
    assert len(helpers) <= MOST_HELPERS, helpers
