"""Pages that ask nobody for anything: templates, mathematics as MathML, notebooks to read.

No page holds a script. A filter or a switch of the theme is a menu and a rule of style.css.
"""

import base64
import html
import os
import re
import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

import jinja2
from markupsafe import Markup

from dlsim import files
from dlsim.owned import Owned
from dlsim.study.claims import SYMBOLS
from dlsim.study.style import VERDICT_INK

#: A notebook's folder below a folder of results; lines of a cell that is shown folded.
_FOLDER, _LONG = "notebooks", 14
#: What makes the MathML of a formula, and the HTML of a program, half as long.
_SHORTER: tuple[tuple[str, Any], ...] = (
    (' xmlns="[^"]*"| display="inline"', ""), ("<mrow>(<(m[ion])>[^<]*</\\2>)</mrow>", r"\1"),
    ("&#x0*(?!3C;|3E;|26;)([0-9A-F]+);", lambda one: chr(int(one[1], 16))),
)  # fmt: skip
_PLAIN = re.compile(r'<span class="[^ksmc][^"]*">([^<]*)</span>')
_MATH = re.compile(r"\$\$(.+?)\$\$|\$([^$\n]+?)\$", re.S)
_BOOK = re.compile(r"\[([^]]*)\]\(([\w-]+)\.ipynb(?:#[^)]*)?\)")
_PLACE = re.compile(r'(?<=\s)(src|href)="(?!#|\w+:)([^"]+)"')


def duration(seconds: float) -> str:
    """Say how long a run took."""
    if seconds < 120:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s"


def mathml(tex: str, block: bool = False) -> str:
    """Write a formula of LaTeX as MathML, which a browser sets by itself."""
    from latex2mathml.converter import convert

    tex = re.sub(r"\\operatorname\*?\{", r"\\mathrm{", tex.strip())
    try:
        found = str(convert(tex, display="block" if block else "inline"))
    except Exception:  # whatever it cannot read, a reader may
        return f"<code>{html.escape(tex)}</code>"
    for more, less in _SHORTER:
        found = re.sub(more, less, found)
    return found


def typeset(text: str) -> str:
    """Set the formulas between dollar signs in the HTML that a notebook shows."""

    def formula(found: re.Match[str]) -> str:
        return mathml(html.unescape(found[1] or found[2]), bool(found[1]))

    return _MATH.sub(formula, text)


def slug(title: str) -> str:
    """Name a heading as Jupyter does, whose notebooks link to it."""
    return title.replace(" ", "-")


def present(text: str, there: Iterable[str]) -> str:
    """Leave only the words of a link to a notebook of the suite that a run does not have."""
    absent = set(files.suite_notebooks()) - set(there)
    return _BOOK.sub(lambda one: one[1] if one[2] in absent else one[0], text)


def pages_of(folder: Path) -> jinja2.Environment:
    """Return the templates of the suite for a page in a folder.

    What comes from outside is escaped. `there` finds a file of the folder; the filters
    `address` and `read` write the way to a file and to a notebook's page, `extent` a picture's
    size.
    """

    def there(place: str) -> Path | None:
        return path if (path := folder / place).is_file() else None

    def address(path: Path) -> str:
        return quote(Path(os.path.relpath(path, folder)).as_posix(), safe="/#.-")

    def extent(path: Path) -> str:
        with files.opened(path) as stream:
            head = stream.read(24)
        if head[:4] != b"\x89PNG" or len(head) < 24:
            return ""
        width, height = struct.unpack(">ii", head[16:])
        return Markup(f' width="{width}" height="{height}"')

    def read(path: Path) -> str:
        page = path.with_suffix(".html")
        return address(page if page.is_file() else path)

    pages = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent), autoescape=True, trim_blocks=True,
        lstrip_blocks=True, undefined=jinja2.StrictUndefined,
    )  # fmt: skip
    pages.filters |= {"duration": duration, "address": address}
    pages.filters |= {"extent": extent, "read": read}
    pages.globals |= {"there": there, "symbols": SYMBOLS, "ink": VERDICT_INK}
    return pages


def markdown(escape: bool = False) -> Callable[[str], Any]:
    """Return what turns a notebook's Markdown into HTML; what is HTML already may be escaped."""
    import mistune

    class Renderer(mistune.HTMLRenderer):
        def heading(self, text: str, level: int, **_: Any) -> str:
            name = html.escape(slug(html.unescape(re.sub("<[^>]+>", "", text))))
            return f'<h{level} id="{name}">{text}</h{level}>\n'

        def table(self, text: str) -> str:
            return f'<div class="scroll" tabindex="0"><table>\n{text}</table></div>\n'

        def block_math(self, text: str) -> str:
            return mathml(text, block=True)

        def inline_math(self, text: str) -> str:
            return mathml(text)

    return mistune.create_markdown(renderer=Renderer(escape=escape), plugins=["math", "table"])


def sentences(paths: Iterable[Path], pictures: Mapping[bytes, str]) -> dict[str, str]:
    """Return what executed notebooks computed of their pictures: Markdown by a picture's name.

    A picture is known by its bytes.
    """
    import nbformat

    found, shown = dict[str, str](), list[str]()
    for cell in (cell for path in paths for cell in nbformat.read(path, 4).cells):
        if cell.cell_type == "markdown":
            shown = []
        outputs = [one.get("data", {}) for one in cell.get("outputs", [])]
        for data in sorted(outputs, key=lambda one: "text/markdown" in one):
            if "image/png" in data:
                shown.append(pictures.get(base64.b64decode(data["image/png"]), ""))
            elif "text/markdown" in data:
                text = " ".join("".join(data["text/markdown"]).split())
                found, shown = found | dict.fromkeys(shown, text), []
    return found


class _Shown:
    """The pictures and files that a notebook's page needs, each where a run has it, or beside."""

    def __init__(self, home: Owned) -> None:
        self.home, self.figures = home, home.folder / "figures"
        self.known = {files.read_bytes(path): path.name for path in self.figures.glob("*.png")}
        self.kept: set[str] = set()

    def png(self, png: bytes, name: str) -> str:
        """Return the way to a picture that a notebook shows."""
        if png in self.known:
            return f"../figures/{quote(self.known[png])}"
        self.home.write(f"{_FOLDER}/{name}.png", png)
        return f"{quote(name)}.png"

    def linked(self, found: re.Match[str]) -> str:
        """Point a link of the suite's notebooks to a page or a file of this run."""
        kind, place = found.groups()
        name = Path(place).name
        source = files.shared_folder("data").parent / place.removeprefix("../")
        if place.endswith(".ipynb"):
            place = place.removesuffix(".ipynb") + ".html"
        elif (self.figures / name).is_file():
            place = f"../figures/{name}"
        elif place.startswith("../data/") and ".." not in place[3:] and source.is_file():
            if name not in self.kept:
                self.home.write(f"{_FOLDER}/{name}", files.read_bytes(source))
            self.kept.add(name)
            place = name
        return f'{kind}="{place}"'

    def output(self, output: Any, name: str) -> str:
        """Show one output of a cell: picture, table, sentence, formula or text."""
        data = output.get("data", {})
        if "image/png" in data:
            png = base64.b64decode(data["image/png"])
            size = output.get("metadata", {}).get("image/png", {}).get("width")
            width = f' style="width: {size:.0f}px"' if size else ""
            place = self.png(png, name)
            return f'<img src="{place}" alt="{Path(place).stem}" loading="lazy"{width}>'
        if "text/html" in data:
            return f'<div class="scroll" tabindex="0">{typeset("".join(data["text/html"]))}</div>'
        if "text/markdown" in data:  # a computed sentence
            return str(markdown(escape=True)("".join(data["text/markdown"])))
        if "text/latex" in data:
            return mathml("".join(data["text/latex"]).strip("$ \n"), block=True)
        failed = "\n".join(output.get("traceback", ()))
        text = output.get("text") or data.get("text/plain") or failed
        text = re.sub(r"\x1b\[[0-9;]*m", "", text)
        return f"<pre>{html.escape(text)}</pre>" if text else ""

    def write(self, path: Path, others: Sequence[str]) -> None:
        """Write the page of an executed notebook beside it."""
        import nbformat
        from pygments import highlight
        from pygments.formatters import HtmlFormatter
        from pygments.lexers import PythonLexer

        text_of, code, cells = markdown(), HtmlFormatter(), []
        for k, cell in enumerate(nbformat.read(path, 4).cells):
            one: dict[str, Any] = {"text": "", "outputs": []}
            if cell.cell_type == "markdown":
                one["text"] = Markup(_PLACE.sub(self.linked, text_of(present(cell.source, others))))
            elif cell.cell_type == "code" and cell.source.strip():
                coloured = highlight(cell.source, PythonLexer(), code)
                one["code"] = Markup(_PLAIN.sub(r"\1", coloured))
                one["folded"] = cell.source.count("\n") >= _LONG
                found = (self.output(o, f"{path.stem}-{k}-{n}") for n, o in enumerate(cell.outputs))
                one["outputs"] = [Markup(shown) for shown in found if shown]
            else:
                continue
            cells.append(one)
        page = pages_of(path.parent).get_template("notebook.html")
        text = page.render(title=path.stem, headline=path.stem, cells=cells, others=others)
        self.home.write(f"{_FOLDER}/{path.stem}.html", text.encode("utf-8", "backslashreplace"))


def write_pages(home: Owned, paths: Mapping[Path, bool]) -> list[str]:
    """Write a page for every executed notebook, but for an old one that has one; say what failed.

    Every page links to all others.
    """
    for page in (home.folder / _FOLDER).glob("*.html"):
        if not page.with_suffix(".ipynb").exists():  # of a notebook that had failed
            home.clear(f"{_FOLDER}/{page.name}")
    done = {path for path, old in paths.items() if old and path.with_suffix(".html").is_file()}
    new = [path for path in paths if path.is_file() and path not in done]
    problems, shown = [], _Shown(home) if new else None
    for path in new:
        assert shown
        try:
            shown.write(path, [one.stem for one in paths])
        except Exception as error:  # whatever a damaged notebook holds, the report is written
            problems.append(f"{path.name} could not be made a page: {error}")
    return problems
