"""A book of a run: Sphinx and myst-nb on the executed notebooks of the suite (extra ``docs``)."""

import re
import shutil
import subprocess
import tempfile
from collections.abc import Collection
from pathlib import Path
from typing import Any

from dlsim import files, processes
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
#: A link to a file, not one to a picture, the web or a place of the same page.
_FILE_LINK = re.compile(r"(?<!!)\[([^]]*)\]\((?!https?:|#)([^)#]+)[^)]*\)")
_TERMINAL_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def write_book(home: OutputFolder) -> Path:
    """Write the book of a run below its folder of results, and return its first page.

    Only notebooks of the suite are in it: MyST, the Markdown of the book, has directives that
    import modules and include files, which the notebook of another person must not do.
    """
    notebooks = [home.folder / "notebooks" / path.name for path in files.suite_notebooks().values()]
    notebooks = [path for path in notebooks if path.is_file()]
    if not notebooks:
        raise InputError(f"{home.folder}: no executed notebooks; run dlsim reproduce again")
    with tempfile.TemporaryDirectory() as work:
        source, made = Path(work, "source"), Path(work, "made")
        shutil.copytree(files.shared_folder("notebooks") / "book", source)
        _copy_run(home.folder, notebooks, source)
        command = processes.module_command("sphinx", "--quiet", str(source), str(made))
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
    names = [path.name for path in notebooks]
    for path in notebooks:
        book = nbformat.reads(files.read_text(path, MAX_TABLE_BYTES), as_version=4)
        text = nbformat.writes(_for_sphinx(book, names))
        files.write_text(source / "notebooks" / path.name, text)
    shutil.copytree(files.shared_folder("data") / "figures", source / "data" / "figures")
    for name, ending in (("figures", "png"), ("data", "csv")):
        folder = source / "run" / name
        folder.mkdir(parents=True)
        for path in (root / name).glob(f"*.{ending}"):
            files.write_bytes(folder / path.name, files.read_bytes(path, MAX_TABLE_BYTES))


def _for_sphinx(book: Any, names: Collection[str]) -> Any:
    """Return an executed notebook as Sphinx needs it.

    Links lead to the notebooks of these names; a link to any other file becomes text.
    """

    def without_dead_link(link: re.Match[str]) -> str:
        return link[0] if link[2] in names else link[1]

    book = harmless(book)
    book.metadata = {"language_info": {"name": "python", "pygments_lexer": "python"}}
    for cell in book.cells:
        cell.metadata = {}
        if cell.cell_type == "markdown":
            cell.source = _FILE_LINK.sub(without_dead_link, cell.source)
        for output in cell.get("outputs", ()):
            data = output.get("data", {})
            if "text" in output:
                output["text"] = _TERMINAL_COLOUR.sub("", output["text"])
            if "text/html" in data:
                linked = re.sub(r'(href="[\w-]+)\.ipynb', r"\1.html", data["text/html"])
                data["text/html"] = set_formulas(linked)
    return book
