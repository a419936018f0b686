"""Every notebook, section, file and name of dlsim that a text names is there.

The texts are README, CONTRIBUTING, data/README, the CHANGELOG of this version (but for what it says
was removed or is called otherwise now), the Markdown of the notebooks and of the book, and the
docstrings and comments of dlsim.
"""

import ast
import importlib
import io
import re
import tokenize
from functools import cache
from pathlib import Path
from urllib.parse import unquote

import nbformat

ROOT = Path(__file__).parents[1]
NOTEBOOKS = {path.stem: path for path in sorted((ROOT / "notebooks").glob("*.ipynb"))}
NUMBERS = {name[:2] for name in NOTEBOOKS}
#: A notebook by its full name, and by its number after a word that says so.
NAMED = re.compile(r"(?<![\w/.-])(\d\d-[a-z][a-z-]*[a-z])(?:\.ipynb)?(?![\w-])")
NUMBERED = re.compile(
    r"\b[Nn]otebooks? (\d\d(?:(?:, | and | or | to )\d\d)*)\b|\*\*done\*\* in (\d\d)\b"
)
LINK = re.compile(r"(?<!\\)\]\(([^)\s]+)\)")
#: Code between backticks: a path of the project, and a name of dlsim.
CODE = re.compile(r"(?<!`)`{1,2}([^`\n]+)`{1,2}(?!`)")
PATH = re.compile(
    r"(?<![\w/.-])(?:\.\./)?((?:tests|dlsim|data|notebooks|\.ci|\.github)/[\w./*-]+)(?:::\w+)?"
)
DOTTED = re.compile(r"dlsim(?:\.[A-Za-z_]\w*)+")


def sections(text):
    """Return the places that a link with # can lead to, as GitHub and Jupyter name headings."""
    heads = re.findall(r"^#{1,6} +(.+?) *$", re.sub(r"```.*?```", "", text, flags=re.DOTALL), re.M)
    github = {re.sub(r"[^\w -]", "", head.casefold()).replace(" ", "-") for head in heads}
    return github | {head.replace(" ", "-") for head in heads}


@cache
def markdown_of(path):
    """Return the text of a page, or of the Markdown cells of a notebook."""
    if path.suffix != ".ipynb":
        return path.read_text("utf-8")
    cells = nbformat.read(path, as_version=4).cells
    return "\n\n".join(cell.source for cell in cells if cell.cell_type == "markdown")


def comments_of(path):
    """Return the docstrings and comments of a module."""
    text = path.read_text("utf-8")
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    found = [ast.get_docstring(n) or "" for n in ast.walk(ast.parse(text)) if isinstance(n, kinds)]
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return "\n".join([*found, *(t.string for t in tokens if t.type == tokenize.COMMENT)])


def changelog_of_this_version():
    """Return what the CHANGELOG says of this version, without what is gone or has another name."""
    version = re.split(r"^## ", (ROOT / "CHANGELOG.md").read_text("utf-8"), flags=re.M)[1]
    parts = re.split(r"^### ", version, flags=re.M)
    without = ("Removed", "Changed", "Renamed")
    return "\n".join(part for part in parts if not part.startswith(without))


PAGES = [ROOT / name for name in ("README.md", ".github/CONTRIBUTING.md", "data/README.md")]
PAGES += [*NOTEBOOKS.values(), *sorted((ROOT / "notebooks" / "book").glob("*.md"))]
PAGES += [ROOT / "CHANGELOG.md", *sorted((ROOT / "dlsim").rglob("*.py"))]


def text_of(page):
    """Return what a page, a notebook or a module says to its reader."""
    if page.name == "CHANGELOG.md":
        return changelog_of_this_version()
    return comments_of(page) if page.suffix == ".py" else markdown_of(page)


def missing_notebooks(text):
    """Yield the names and numbers of notebooks that a text names and that are not there."""
    yield from (name for name in NAMED.findall(text) if name not in NOTEBOOKS)
    for found in NUMBERED.finditer(text):
        yield from (n for n in re.findall(r"\d\d", found[1] or found[2]) if n not in NUMBERS)


def missing_targets(text, page):
    """Yield the links of a page that lead to no file, or to no section of it."""
    for link in LINK.findall(text):
        if re.match(r"[a-z]+:", link):
            continue
        place, _, section = unquote(link).partition("#")
        target = (page.parent / place) if place else page
        if not target.exists():
            yield link
        elif section and section not in sections(markdown_of(target)):
            yield link


def missing_paths(text, page):
    """Yield the paths between backticks that lead to no file of the project."""
    for code in CODE.findall(text):
        for found in PATH.finditer(code):
            name = found[1].rstrip(".")
            if "..." not in name and not any(ROOT.glob(name)):
                if not any(page.parent.glob(code)):
                    yield code


def is_there(dotted):
    """Tell whether a dotted name is a module of dlsim, or an attribute of one."""
    parts = dotted.split(".")
    for count in range(len(parts), 0, -1):
        try:
            module = importlib.import_module(".".join(parts[:count]))
        except ImportError:
            continue
        found = module
        for name in parts[count:]:
            if name in getattr(found, "__dataclass_fields__", ()):  # a field without a default
                return True
            if not hasattr(found, name):
                return False
            found = getattr(found, name)
        return True
    return False


def test_what_a_text_names_is_there():
    missing = []
    for page in PAGES:
        text = text_of(page)
        found = [*missing_notebooks(text), *missing_paths(text, page)]
        found += missing_targets(text, page) if page.suffix != ".py" else []
        dotted = {name for code in CODE.findall(text) for name in DOTTED.findall(code)}
        found += [name for name in sorted(dotted) if not is_there(name)]
        missing += [f"{page.relative_to(ROOT)}: {name}" for name in found]
    assert not missing, "\n".join(missing)


def test_the_search_finds_what_is_missing():
    assert list(missing_notebooks("see 20-mcdf, 21-mcdf and notebooks 20 and 22")) == [
        "21-mcdf",
        "22",
    ]
    links = "[a](20-mcdf.ipynb) [b](2-mcdf.ipynb) [c](../README.md#no-such) [d](https://x.invalid)"
    page = NOTEBOOKS["10-theory"]
    assert list(missing_targets(links, page)) == ["2-mcdf.ipynb", "../README.md#no-such"]
    paths = "`tests/test_theory_attacks.py` `tests/verification/test_theory_attacks.py`"
    assert list(missing_paths(paths, page)) == ["tests/test_theory_attacks.py"]
    assert [is_there(f"dlsim.{n}") for n in ("study.sweeps.sweep", "study.swept", "gone")] == [
        1,
        0,
        0,
    ]
    assert sections("# A b, c\n```\n# no\n```\n") == {"a-b-c", "A-b,-c"}


def test_the_notebooks_that_draw_a_bound_compute_it():
    """10-theory names the notebooks in which the bound of every planner is drawn."""
    (text,) = re.findall(r"[^;]*draw this bound", markdown_of(NOTEBOOKS["10-theory"]))
    draw = {
        name for name, path in NOTEBOOKS.items() if "clairvoyant_bound(" in path.read_text("utf-8")
    }
    assert set(NAMED.findall(text)) == draw
