"""The gallery of the notebooks: notebooks/README.md, and thumbnails in data/figures/gallery.

A section of a notebook that draws is a group of figures. The gallery shows the first picture that
is stored there, with one sentence: of its caption in data/figures.toml, or of the section's text.
"""

import base64
import hashlib
import io
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from PIL import Image
from PIL.PngImagePlugin import PngInfo

from dlsim.study.results import load_figures

THUMBNAILS, PAGE = "data/figures/gallery", "notebooks/README.md"
#: The most pixels of a thumbnail, its colours, and thumbnails side by side.
SIZE, COLORS, COLUMNS = (300, 240), 64, 3
HEAD = """# The notebooks, and what they show

A notebook opens with the outputs of the release's run at full scale, where it has stored ones:
tables, verdicts and pictures. Click a picture to open its notebook. `dlsim lab` opens a copy in
which you can change and run every cell. Begin with [00-start-here](00-start-here.ipynb)
or [70-explore](70-explore.ipynb).
"""


class Group(NamedTuple):
    """A group of figures."""

    name: str  # of the thumbnail, without its ending
    title: str
    sentence: str
    png: bytes


def read_notebooks(root: Path) -> dict[str, dict[str, Any]]:
    """Return the notebooks of a project by name, in reading order."""
    paths = sorted((root / "notebooks").glob("[0-9]*.ipynb"))
    return {path.stem: json.loads(path.read_text("utf-8")) for path in paths}


def groups_of(book: dict[str, Any]) -> Iterator[Group]:
    """Yield the groups of figures of a notebook, in its order."""
    figures = {row.id: row for row in load_figures().figures}
    heading = text = ""
    shown = set()
    for cell in book["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] != "code":
            for section in re.split(r"^(?=## )", source, flags=re.M):
                if section.startswith("## "):
                    heading, _, text = section.removeprefix("## ").partition("\n")
                else:
                    text += "\n\n" + section
            continue
        pictures = [one["data"] for one in cell["outputs"] if "image/png" in one.get("data", {})]
        if not pictures or heading in shown:
            continue
        shown.add(heading)
        png = base64.b64decode(pictures[0]["image/png"])
        saved = [name for name in re.findall(r'"([\w-]+)"', source) if name in figures]
        if saved:
            row = figures[saved[0]]
            yield Group(row.id, row.title, first_sentence(row.caption), png)
        else:
            yield Group(cell["id"], heading, first_sentence(text) or heading, png)


def first_sentence(text: str) -> str:
    """Return the first sentence of a text's first paragraph, without its links."""
    paragraphs = [one.strip() for one in re.split(r"\n\n|\n(?=- )", text)]
    prose = next((one for one in paragraphs if re.match(r"(?!```)[^#|!<$-]", one)), "")
    line = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", " ".join(prose.split()))
    return re.split(r"(?<=[.?!])\**\s+(?=[A-Z*`])", line)[0]


def about(name: str, book: dict[str, Any]) -> tuple[str, str]:
    """Return the title of a notebook, and one sentence: what was found, or what it is about."""
    texts = ["".join(cell["source"]) for cell in book["cells"] if cell["cell_type"] == "markdown"]
    title = texts[0].removeprefix("# ").partition("\n")[0]
    paper = load_figures().papers.get(name.partition("-")[2], {})
    story = re.search(r"at full scale\b[^:\n]*:\W*(.+)", texts[0], re.S)
    text = paper.get("found") or (story[1] if story else "\n\n".join(texts))
    return title, first_sentence(text)


def thumbnail(png: bytes) -> bytes:
    """Return a small picture with few colours, which names the digest of its original."""
    with Image.open(io.BytesIO(png)) as image:
        picture = Image.new("RGB", image.size, "white")
        picture.paste(image.convert("RGBA"), mask=image.convert("RGBA").getchannel("A"))
    picture.thumbnail(SIZE, Image.Resampling.LANCZOS)
    source, stream = PngInfo(), io.BytesIO()
    source.add_text("Source", hashlib.sha256(png).hexdigest())
    small = picture.quantize(COLORS, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
    small.save(stream, format="png", optimize=True, pnginfo=source)
    return stream.getvalue()


def page_of(books: dict[str, dict[str, Any]]) -> str:
    """Return the page of the gallery; its tables are HTML, so that all columns are equally wide."""
    parts = [HEAD]
    for name, book in books.items():
        title, sentence = about(name, book)
        parts.append(f"## [{title}]({name}.ipynb)\n\n{sentence}\n")
        cells = [
            f'<td width="{100 // COLUMNS}%" valign="top">\n\n'
            f"[![{one.title}](../{THUMBNAILS}/{one.name}.png)]({name}.ipynb)\n\n"
            f"{one.sentence}\n\n</td>\n"
            for one in groups_of(book)
        ]
        rows = ["".join(cells[i : i + COLUMNS]) for i in range(0, len(cells), COLUMNS)]
        if rows:
            parts.append("<table>\n<tr>\n" + "</tr>\n<tr>\n".join(rows) + "</tr>\n</table>\n")
    return "\n".join(parts)


def write_gallery(root: Path, books: dict[str, dict[str, Any]]) -> None:
    """Write the page and the thumbnails of a project, and remove old thumbnails."""
    pictures = {f"{one.name}.png": one.png for book in books.values() for one in groups_of(book)}
    folder = root / THUMBNAILS
    folder.mkdir(parents=True, exist_ok=True)
    for path in folder.iterdir():
        if path.name not in pictures:
            path.unlink()
    for name, png in pictures.items():
        (folder / name).write_bytes(thumbnail(png))
    (root / PAGE).write_text(page_of(books), "utf-8")
