"""``dlsim book``: a book of an executed run, which needs no server and asks nobody for anything.

Its pages are the run's notebooks and the sources beside the suite's (notebooks/book), filled in
from the run; Sphinx sets them. This module is also the one extension of Sphinx that it needs:
formulas are written as MathML.
"""

import argparse
import importlib
import inspect
import io
import pkgutil
import re
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import jinja2
import nbformat

import dlsim
from dlsim import files
from dlsim.cli.words import folder_of, switches_of
from dlsim.errors import DlsimError, InputError
from dlsim.given import word
from dlsim.progress import step
from dlsim.study.claims import SYMBOLS
from dlsim.study.figures import load_figures
from dlsim.study.pages import mathml, pages_of, present, sentences, typeset
from dlsim.study.report import judged
from dlsim.study.scorecard import read

#: What Sphinx is told; every warning is an error.
SETTINGS: dict[str, Any] = {
    "project": "dlsim", "html_title": "dlsim", "author": "The dlsim authors", "language": "en",
    "extensions": ["myst_nb", "sphinx.ext.autodoc", "numpydoc", __name__],
    "html_theme": "furo", "html_math_renderer": "mathml", "html_css_files": ["dlsim.css"],
    "html_static_path": ["_static"], "html_extra_path": ["_shown"], "html_copy_source": False,
    "html_show_search_summary": False,  # a page of a folder may not read another
    "html_show_sphinx": False, "html_show_copyright": False,
    "nb_execution_mode": "off", "nb_ipywidgets_js": {}, "nb_merge_streams": True,
    "myst_enable_extensions": ["dollarmath", "html_image", "colon_fence"],
    "myst_heading_anchors": 3, "myst_heading_slug_func": "dlsim.study.pages.slug",
    "numpydoc_show_class_members": False, "nitpicky": False,
    "autodoc_typehints": "none", "autodoc_member_order": "groupwise",
    "exclude_patterns": ["_shown"],
    "suppress_warnings": ["mystnb.unknown_mime_type"],
}  # fmt: skip
#: What the theme leaves out for those who use a keyboard or have a page read to them.
ACCESS = {
    b'role="heading"': b'role="heading" aria-level="2"', b"<pre>": b'<pre tabindex="0">',
    b'<math display="block">': b'<math display="block" tabindex="0">',
    b'<div class="table-wrapper': b'<div tabindex="0" class="table-wrapper',
}  # fmt: skip


def setup(app: Any) -> dict[str, Any]:
    """Let Sphinx write formulas as MathML."""

    def inline(writer: Any, node: Any) -> None:
        writer.body.append(mathml(node.astext()))
        raise skip

    def block(writer: Any, node: Any) -> None:
        writer.body.append(f'<div class="math">{mathml(node.astext(), block=True)}</div>')
        raise skip

    skip = importlib.import_module("docutils.nodes").SkipNode
    app.add_html_math_renderer("mathml", (inline, None), (block, None))
    return {"version": dlsim.__version__, "parallel_read_safe": True}


def _modules() -> Iterator[tuple[str, str]]:
    """Yield the modules with an ``__all__``, and what of it another one has shown before."""
    shown: set[int] = set()
    for found in pkgutil.walk_packages(dlsim.__path__, "dlsim."):
        if ".core" not in found.name and not found.name.endswith("__main__"):
            module = importlib.import_module(found.name)
            public = {name: id(getattr(module, name)) for name in getattr(module, "__all__", ())}
            if public:
                yield found.name, ", ".join(name for name in public if public[name] in shown)
            shown |= set(public.values())


def _commands() -> Iterator[tuple[str, str]]:
    """Yield the words and the help of every command."""
    from dlsim.cli import parser

    def below(one: argparse.ArgumentParser) -> Iterator[tuple[str, str]]:
        shape: Any = one.formatter_class
        one.formatter_class = partial(shape, width=90)
        yield one.prog, one.format_help()
        several = (a for a in one._actions if isinstance(a, argparse._SubParsersAction))
        for action in several:
            for deeper in action.choices.values():
                yield from below(deeper)

    yield from below(parser())


def executed(run: Path) -> list[Path]:
    """Return the executed notebooks of a run; refuse a folder with none, or a damaged one."""
    ended = sorted((run / "notebooks").glob("[0-9][0-9]-*.ipynb"))
    found = [path for path in ended if ".failed" not in path.name]
    if not (run / "run.json").is_file() or not found:
        remedy = "run dlsim reproduce first, or name the folder of a run with --from"
        raise InputError(f"{run}: no executed notebooks; {remedy}")
    for path in found:
        try:
            nbformat.validate(nbformat.read(path, 4))
        except Exception as error:  # whatever a damaged one holds
            why = str(error).partition("\n")[0]
            what = f"{path}: not a notebook ({why})"
            raise InputError(f"{what}; run dlsim reproduce again") from error
    return found


def _notebook(path: Path, there: Iterable[str]) -> tuple[str, str]:
    """Return the title of an executed notebook, and its text for Sphinx: no widget, no LaTeX."""
    book: Any = nbformat.read(path, 4)
    book.metadata = {"language_info": {"name": "python", "pygments_lexer": "python"}}
    for cell in book.cells:
        if cell.cell_type == "markdown":
            cell.source = present(cell.source, there)
        for output in cell.get("outputs", []):
            data = output.get("data", {})
            if data.pop("application/vnd.jupyter.widget-view+json", None):
                data["text/plain"] = "An interactive panel: `dlsim lab` opens it."
            if "text/html" in data:
                data["text/html"] = (
                    f'<div class="scroll">{typeset("".join(data["text/html"]))}</div>'
                )
    first = next((cell.source for cell in book.cells if cell.cell_type == "markdown"), path.stem)
    return first.splitlines()[0].lstrip("# "), nbformat.writes(book)


def _sources(run: Path, source: Path) -> None:
    """Write all that Sphinx reads into a folder."""
    suite = files.shared_folder("notebooks")
    titles, paths = {}, executed(run)
    (source / "notebooks").mkdir()
    for path in paths:
        titles[path.stem], text = _notebook(path, [one.stem for one in paths])
        files.write_text(source / "notebooks" / path.name, text)
    for name in ("figures", "examples"):
        shutil.copytree(files.shared_folder("data") / name, source / "data" / name)
    pngs = {path.stem: files.read_bytes(path) for path in (run / "figures").glob("*.png")}
    for place in (source / "_shown", source / "data"):
        for name, png in pngs.items():
            files.write_bytes(place / "figures" / f"{name}.png", png)
    card = read(run)
    verdicts = judged(card)
    told = {word: [one for one in card.to_dict("records") if one["verdict"] == word]
            for word in SYMBOLS}  # fmt: skip
    parts = pages_of(source / "_shown")
    (source / "_static").mkdir()
    style = parts.get_template("book.css").render(scorecard=verdicts["scorecard"])
    files.write_text(source / "_static" / "dlsim.css", style)
    pages = jinja2.Environment(
        loader=jinja2.FileSystemLoader(suite / "book"), undefined=jinja2.StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    macros: Any = parts.get_template("parts.html").make_module
    shown = verdicts | {
        "titles": titles, "told": told, "symbols": SYMBOLS,
        "figures": [row for row in load_figures()[1] if row.id in pngs],
        "sentences": sentences(paths, {png: name for name, png in pngs.items()}),
        "parts": macros({"claims": verdicts["claims"]}), "modules": list(_modules()), "word": word,
        "commands": list(_commands()), "version": dlsim.__version__, "inspect": inspect,
        "switches": {name: table for name in titles if (table := switches_of(name))},
    }  # fmt: skip
    for path in sorted((suite / "book").glob("*.md")):
        files.write_text(source / path.name, pages.get_template(path.name).render(**shown))


def main(args: argparse.Namespace) -> int:
    """Make the book of a run."""
    run, home = Path(args.run), folder_of(args, "book")
    assert home is not None
    missing = [name for name in ("sphinx", "myst_nb", "furo", "numpydoc") if not find_spec(name)]
    if missing:
        raise InputError(f"{missing[0]} is not installed; pip install 'dlsim[docs]', then again")
    executed(run)
    from sphinx.application import Sphinx

    sys.setrecursionlimit(10_000)  # a long page is pickled from node to node
    with tempfile.TemporaryDirectory() as work:
        source, made, warnings = Path(work) / "source", Path(work) / "book", io.StringIO()
        source.mkdir()
        step("collecting the pages")
        _sources(run, source)
        step("setting the book")
        settings = SETTINGS | {"release": dlsim.__version__, "version": dlsim.__version__}
        app = Sphinx(
            source, None, made, Path(work) / "trees", "html", settings, None, warnings,
            warningiserror=True,
        )  # fmt: skip
        app.build()
        if app.statuscode or warnings.getvalue():
            lines = re.sub(rf"\x1b\[[0-9;]*m|{re.escape(str(source))}/", "", warnings.getvalue())
            raise DlsimError(f"the book has faults, and was not written:\n{lines.strip()}")
        for path in sorted(path for path in made.rglob("*") if path.is_file()):
            place = path.relative_to(made).as_posix()
            data = files.read_bytes(path)
            for less, more in ACCESS.items() if path.suffix == ".html" else ():
                data = data.replace(less, more)
            if not path.name.startswith("."):
                home.write(place, data)
    print(f"open {home.folder / 'index.html'}")
    return 0
