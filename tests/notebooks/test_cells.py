"""What stands in the cells of the notebooks: parameters first, then experiments to be read."""

import ast
import functools
import re
from pathlib import Path

import nbformat

from dlsim.study.results import paper_letters, paper_of

FOLDER = Path(__file__).parents[2] / "notebooks"
NOTEBOOKS = sorted(path.stem for path in FOLDER.glob("*.ipynb"))
#: The notebooks of papers M and I, those with pictures of formulas or results, and of all papers.
NAMES = [name for name in NOTEBOOKS if paper_of(name) in ("mcdf", "inserted-idle-time")]
WITH_PICTURES = [*NAMES, "10-theory"]
OF_PAPERS = [name for name in NOTEBOOKS if paper_of(name) in paper_letters().values()]
#: Parameters of every notebook.
PARAMETERS = {
    "scale": ("str", "quick"), "seed": ("int", 0), "runs": ("int", 0), "jobs": ("int", 0),
    "out": ("str", ""), "reading": ("dict", {}),
}  # fmt: skip
#: Most parameters, and most names of `dlsim.study` and `dlsim.papers` that are used.
MOST_PARAMETERS, MOST_HELPERS = 10, 15
#: Most lines of a cell of code that are not blank: a cell is one idea.
MOST_LINES = 45
CLAIM = re.compile(r"\*\*(The paper says|We ask):\*\* \S")


@functools.cache
def notebook(name):
    return nbformat.read(FOLDER / f"{name}.ipynb", as_version=4)


def code_cells(name):
    return [cell for cell in notebook(name).cells if cell.cell_type == "code"]


@functools.cache
def code_of(name):
    return [ast.parse(cell.source) for cell in code_cells(name)]


def called(tree):
    """Yield the calls of a cell: the last name of what is called, and the call."""
    for one in ast.walk(tree):
        if isinstance(one, ast.Call):
            function = one.func
            is_method = isinstance(function, ast.Attribute)
            yield function.attr if is_method else getattr(function, "id", ""), one


def test_every_notebook_is_valid_and_begins_with_its_one_cell_of_parameters():
    """Only the place of the conclusions, whose code no page shows, may stand before that cell."""
    assert NOTEBOOKS
    for name in NOTEBOOKS:
        assert re.fullmatch(r"\d\d-[a-z]+(-[a-z]+)*", name)
        nbformat.validate(notebook(name))
        assert notebook(name).metadata.kernelspec.name == "python3"
        tags = [cell.metadata.get("tags", []) for cell in code_cells(name)]
        shown = ["parameters" in one for one in tags if "remove-input" not in one]
        assert shown == [True] + [False] * (len(shown) - 1), name


def test_parameters_are_few_typed_literals_with_a_comment():
    for name in NOTEBOOKS:
        (cell,) = (c for c in code_cells(name) if "parameters" in c.metadata.get("tags", []))
        lines, seen = cell.source.splitlines(), {}
        for node in ast.parse(cell.source).body:
            assert isinstance(node, ast.AnnAssign), ast.unparse(node)
            said = lines[node.end_lineno - 1][node.end_col_offset :]
            assert re.search(r"#\s*\S", said), (name, said)
            # papermill reads no line with two of them, and then does not know the parameter
            assert lines[node.lineno - 1].count("=") == 1, (name, said)
            seen[node.target.id] = (ast.unparse(node.annotation), ast.literal_eval(node.value))
        assert {one: seen.get(one) for one in PARAMETERS} == PARAMETERS, name
        assert len(seen) <= MOST_PARAMETERS or name not in WITH_PICTURES


def test_cells_of_code_are_short():
    for name in OF_PAPERS:
        lines = {
            c.id: sum(map(bool, map(str.strip, c.source.split("\n")))) for c in code_cells(name)
        }
        assert {cell: count for cell, count in lines.items() if count > MOST_LINES} == {}, name


def test_a_section_with_a_picture_says_what_is_asked():
    for name in WITH_PICTURES:
        sections, text, saves = [], "", False
        for cell in [*notebook(name).cells, nbformat.v4.new_markdown_cell("## end")]:
            if cell.cell_type == "markdown" and cell.source.startswith("#"):
                sections.append((text, saves))
                text, saves = "", False
            if cell.cell_type == "markdown":
                text += cell.source + "\n"
            else:
                saves |= bool(
                    {word for word, _ in called(ast.parse(cell.source))} & {"save", "judge"}
                )
        silent = [
            said.split("\n")[0] for said, saves in sections if saves and not CLAIM.search(said)
        ]
        assert silent == [], name


def test_every_experiment_stands_in_the_notebook():
    """What is swept is a function of a cell, with a sentence that says what it does."""
    for name in NAMES:
        nodes = [node for tree in code_of(name) for node in ast.walk(tree)]
        functions = {node.name: node for node in nodes if isinstance(node, ast.FunctionDef)}
        swept = {
            call.args[0].id
            for tree in code_of(name)
            for word, call in called(tree)
            if word == "sweep"
        }
        assert swept, name
        assert swept <= functions.keys(), name
        assert all(map(ast.get_docstring, functions.values())), name


def test_few_helpers_of_ours_are_used():
    for name in {*WITH_PICTURES, *OF_PAPERS}:
        helpers = set()  # functions: a constant such as POLICIES needs no reading
        for one in (node for tree in code_of(name) for node in ast.walk(tree)):
            if isinstance(one, ast.ImportFrom):
                if str(one.module).startswith(("dlsim.study", "dlsim.papers.")):
                    helpers |= {alias.name for alias in one.names}
            elif isinstance(one, ast.Attribute) and isinstance(one.value, ast.Name):
                if one.value.id == paper_of(name).replace("-", "_"):  # the module of the paper
                    helpers.add(one.attr)
        # shown_table and its like stand where pandas' own would: they show texts of files as text
        helpers = {one for one in helpers if not (one.isupper() or one.startswith("shown_"))}
        assert len(helpers) <= MOST_HELPERS, (name, helpers)
