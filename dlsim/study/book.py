"""A book of a run: Sphinx and myst-nb on the executed notebooks (extra ``docs``).

Another person may have written the notebooks. MyST, the Markdown of the book, has directives that
import modules and include files: in notebooks they become text, and so does every link to a file
that is not a notebook of the run or one of its pictures.
"""

import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Collection
from pathlib import Path
from typing import Any

from dlsim import files
from dlsim.errors import DlsimError, InputError
from dlsim.files import MAX_TABLE_BYTES
from dlsim.output_folder import OutputFolder
from dlsim.study.pages import harmless, set_formulas

#: The folder of the book in a folder of results.
BOOK = "book"
#: What the theme leaves out for readers who use a keyboard or a screen reader.
_ACCESSIBLE = {
    b'role="heading"': b'role="heading" aria-level="2"',
    b"<pre>": b'<pre tabindex="0">',
    b'<div class="table-wrapper': b'<div tabindex="0" class="table-wrapper',
    b'<div class="scroll">': b'<div class="scroll" tabindex="0">',
}
_DIRECTIVE = re.compile(r"^([ \t>*+-]*(?:`{3,}|~{3,}|:{3,}))[ \t]*\{([^}\n]*)\}", re.M)
_ROLE = re.compile(r"\{[\w:.+-]+\}(?=`)")
_LINK = re.compile(r"(!?)\[([^]]*)\]\(\s*<?([^)>\s]*)[^)]*\)")
_DEFINITION = re.compile(r"^[ \t]{0,3}\[([^]]+)\]:", re.M)
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_FRONT_MATTER = re.compile(r"\A\s*---")


def write_book(home: OutputFolder) -> Path:
    """Write the book of a run below its folder of results, and return its first page.

    Raises
    ------
    InputError
        If the folder has no executed notebooks.
    DlsimError
        If Sphinx fails, with its last words.
    """
    notebooks = sorted((home.folder / "notebooks").glob("[0-9][0-9]-*.ipynb"))
    notebooks = [path for path in notebooks if ".failed" not in path.name]
    if not notebooks:
        raise InputError(f"{home.folder}: no executed notebooks; run dlsim reproduce again")
    with tempfile.TemporaryDirectory() as work:
        source, made = Path(work, "source"), Path(work, "made")
        shutil.copytree(files.shared_folder("notebooks") / "book", source)
        _copy_run(home.folder, notebooks, source)
        command = [sys.executable, "-P", "-m", "sphinx", "--quiet", str(source), str(made)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise DlsimError(f"Sphinx could not make the book:\n{done.stderr.strip()[-2000:]}")
        for path in sorted(path for path in made.rglob("*") if path.is_file()):
            place, data = path.relative_to(made).as_posix(), files.read_bytes(path, MAX_TABLE_BYTES)
            for found, replacement in _ACCESSIBLE.items() if path.suffix == ".html" else ():
                data = data.replace(found, replacement)
            if not path.name.startswith("."):
                home.write(f"{BOOK}/{place}", data)
    return home.folder / BOOK / "index.html"


def _copy_run(root: Path, notebooks: Collection[Path], source: Path) -> None:
    """Copy what the book shows of a run: its notebooks, pictures and tables."""
    import nbformat

    (source / "notebooks").mkdir()
    for path in notebooks:
        book = nbformat.reads(files.read_text(path, MAX_TABLE_BYTES), as_version=4)
        inert = as_text(book, [one.name for one in notebooks])
        files.write_text(source / "notebooks" / path.name, nbformat.writes(inert))
    shutil.copytree(files.shared_folder("data") / "figures", source / "data" / "figures")
    for name, ending in (("figures", "png"), ("data", "csv")):
        folder = source / "run" / name
        folder.mkdir(parents=True)
        for path in (root / name).glob(f"*.{ending}"):
            files.write_bytes(folder / path.name, files.read_bytes(path, MAX_TABLE_BYTES))


def as_text(book: Any, notebooks: Collection[str]) -> Any:
    """Return a notebook in which nothing acts when Sphinx reads it.

    Parameters
    ----------
    book : nbformat.NotebookNode
        An executed notebook; it is changed.
    notebooks : collection of str
        The file names of the notebooks of the book, to which links are kept.

    Returns
    -------
    nbformat.NotebookNode
    """
    book = harmless(book)
    book.metadata.clear()
    book.metadata["language_info"] = {"name": "python", "pygments_lexer": "python"}
    book.cells = [cell for cell in book.cells if cell.cell_type in ("code", "markdown")]
    for cell in book.cells:
        cell.metadata.clear()
        if cell.cell_type == "markdown":
            cell.source = markdown_as_text(cell.source, notebooks)
        for output in cell.get("outputs", ()):
            data = output.get("data", {})
            if "text" in output:
                output["text"] = _COLOUR.sub("", output["text"])
            if "text/html" in data:
                linked = re.sub(r'(href="[\w-]+)\.ipynb', r"\1.html", data["text/html"])
                data["text/html"] = set_formulas(linked)
            if "text/markdown" in data:
                data["text/markdown"] = markdown_as_text(data["text/markdown"], notebooks)
    return book


def markdown_as_text(source: str, notebooks: Collection[str]) -> str:
    """Return Markdown in which directives, roles, and links to other files are text.

    >>> markdown_as_text("{py:obj}`os` and [this](/etc/hosts) of [20](20-mcdf.ipynb)",
    ...                  ["20-mcdf.ipynb"])
    '`os` and this of [20](20-mcdf.ipynb)'
    """

    def link(found: re.Match[str]) -> str:
        is_picture, text, place = found.groups()
        path = place.partition("#")[0]
        is_ours = re.fullmatch(r"\.\./data/figures/[\w-]+\.(png|svg)", path)
        is_kept = is_ours if is_picture else path in notebooks or not path
        is_kept = is_kept or (not is_picture and re.match(r"https?://", place))
        return found[0] if is_kept else text

    source = _FRONT_MATTER.sub("***", source)
    source = _DIRECTIVE.sub(r"\1 \2", source)
    source = _ROLE.sub("", source)
    source = _DEFINITION.sub(r"\\[\1]:", source)
    return _LINK.sub(link, source)
