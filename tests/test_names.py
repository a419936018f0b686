"""The rules for names that a program can hold: one name one meaning, arguments spelled out.

The names in `DEFINED_TWICE` still break a rule. The set may shrink, and never grow.
"""

import ast
from collections import defaultdict
from functools import cache

import pytest

from dlsim import files

PACKAGE = files.project_root() / "dlsim"
#: One-letter arguments that may stay in a room: symbols of its paper (n nodes of a task, k a
#: cluster) and of the field (t time, x a point or an array of any kind, n how many, H the Hurst
#: exponent).
SYMBOLS = {"bricks": "Hn", "realtime": "nt", "steady": "k", "study": "ntx", "top": "x"}
#: Names that several engines or papers share by design: they are used alike.
SHARED = {"simulate", "Reading", "POLICIES", "Policy", "SWITCHES", "find_policy", "KEYS", "touched"}

#: Public names that two modules still define.
DEFINED_TWICE = {"main"}


def room_of(path):
    """Return the folder of a module below ``dlsim``; "top" for one that lies in none."""
    parts = path.relative_to(PACKAGE).parts
    return parts[0] if len(parts) > 1 else "top"


MODULES = [
    path
    for path in sorted(PACKAGE.rglob("*.py"))
    if path.name not in ("__init__.py", "__main__.py") and room_of(path) != "_share"
]
ROOMS = sorted(set(map(room_of, MODULES)))


@cache
def tree_of(path):
    """Return the syntax tree of a module."""
    return ast.parse(path.read_text("utf-8"))


def public_names(tree):
    """Yield the public names that a module defines at its top."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name
        targets = node.targets if isinstance(node, ast.Assign) else []
        targets = [node.target] if isinstance(node, ast.AnnAssign) else targets
        for target in targets:
            yield from (one.id for one in ast.walk(target) if isinstance(one, ast.Name))


def test_no_public_name_is_defined_in_two_modules():
    places = defaultdict(set)
    for path in MODULES:
        for name in public_names(tree_of(path)):
            if not name.startswith("_") and name not in SHARED:
                places[name].add(path)
    twice = {name: sorted(map(room_of, paths)) for name, paths in places.items() if len(paths) > 1}
    assert twice.keys() == DEFINED_TWICE, twice


def short_arguments(tree, symbols):
    """Yield the one-letter arguments of a module's functions that are not among the symbols."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            group = node.args
            every = [*group.posonlyargs, *group.args, *group.kwonlyargs, group.vararg, group.kwarg]
            for argument in filter(None, every):
                if len(argument.arg) == 1 and argument.arg not in {*symbols, "_"}:
                    yield f"line {argument.lineno}: {argument.arg}"


def skips_outside_tables(source, tree):
    """Yield the lines that ruff does not format, but those of constants at a module's top."""
    tables = [node for node in tree.body if isinstance(node, ast.Assign | ast.AnnAssign)]
    in_tables = {line for node in tables for line in range(node.lineno, node.end_lineno + 1)}
    for number, line in enumerate(source.split("\n"), 1):
        if any(mark in line for mark in ("fmt: skip", "fmt: off")) and number not in in_tables:
            yield f"line {number}"


def found_in(room, search):
    """Return what a search finds in the modules of a room."""
    return [
        f"{path.relative_to(PACKAGE)} {place}"
        for path in MODULES
        if room_of(path) == room
        for place in search(path.read_text("utf-8"), tree_of(path))
    ]


@pytest.mark.parametrize("room", ROOMS)
def test_arguments_are_spelled_out(room):
    symbols = SYMBOLS.get(room, "")
    assert found_in(room, lambda source, tree: short_arguments(tree, symbols)) == []


@pytest.mark.parametrize("room", ROOMS)
def test_only_tables_of_constants_are_left_unformatted(room):
    assert found_in(room, skips_outside_tables) == []
