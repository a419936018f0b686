"""Every notebook refuses a parameter of a wrong type in its first cells, in one sentence."""

import ast
import functools
from pathlib import Path

import nbformat

from dlsim.errors import InputError
from dlsim.study.notebooks import parameters_of

FOLDER = Path(__file__).parents[2] / "notebooks"
NAMES = sorted(path.stem for path in FOLDER.glob("*.ipynb"))
#: Code cells behind the parameters in which a wrong value is refused: imports, then the checks.
MOST_CELLS = 3
#: A value that no parameter of a type takes.
WRONG = {"str": 7, "int": "64", "bool": "yes", "float": "x", "list": "0.5", "dict": "link=shared"}
#: Lists of one wrong value, and of the same value twice.
ODD_LISTS = ([None], [[1]], [{}], ["?", "?"])


@functools.cache
def cells_of(name):
    """Return the code cells of a notebook from that of its parameters on."""
    cells = [
        cell
        for cell in nbformat.read(FOLDER / f"{name}.ipynb", as_version=4).cells
        if cell.cell_type == "code"
    ]
    tagged = ["parameters" in cell.metadata.get("tags", ()) for cell in cells]
    return cells[tagged.index(True) :]


@functools.cache
def compiled_cells(name):
    """Return the code of the cells of a notebook in which a wrong parameter is refused."""
    return [
        compile(ast.parse(one.source), one.id, "exec") for one in cells_of(name)[: MOST_CELLS + 1]
    ]


def declared(name):
    """Return the parameters of a notebook that have an effect: type and default by name."""
    source = cells_of(name)[0].source
    lines = {line.partition(":")[0]: line for line in source.splitlines()}
    without_effect = [
        name for name, line in lines.items() if "no effect" in line or "not used" in line
    ]
    kinds = parameters_of(FOLDER / f"{name}.ipynb")
    values = {}
    exec(source, values)
    return {key: (kind, values[key]) for key, kind in kinds.items() if key not in without_effect}


def refusal(name, folder, monkeypatch, **given):
    """Return what the first cells of a notebook say about parameters; "" if they take them."""
    monkeypatch.chdir(folder)
    first, *others = compiled_cells(name)
    space = {}
    exec(first, space)
    space |= {"out": str(folder / "results"), **given}
    for cell in others:
        try:
            exec(cell, space)
        except InputError as error:
            return str(error)
    return ""


def wrong_values(kind, default):
    """Return values that no parameter of a type takes; an empty list may be a default."""
    odd = [*ODD_LISTS, *([[]] if default else [])] if kind == "list" else []
    return [WRONG[kind], *odd]


def test_a_wrong_value_is_refused_in_the_first_cells_in_one_sentence(tmp_path, monkeypatch):
    faults = []
    for name in NAMES:
        for key, (kind, default) in declared(name).items():
            for value in wrong_values(kind, default):
                said = refusal(name, tmp_path, monkeypatch, **{key: value})
                named = any(word in said for word in (key, "polic", repr(value)))
                if "\n" in said or not said or not named:
                    faults.append(f"{name}, {key}={value!r}: {said}")
    assert not faults, "\n".join(faults)
