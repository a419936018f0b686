"""Pages of executed notebooks: nbconvert with one template; they ask no server for anything.

Another person may have written a notebook. Its page therefore runs no script and loads nothing: a
content security policy forbids both to the browser, scripts are left out, widgets become pictures,
tags that act become text, and of the files of this machine a page holds only pictures of its own
folders.
"""

import base64
import functools
import html
import os
import re
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

from dlsim import files
from dlsim.files import MAX_TABLE_BYTES
from dlsim.output_folder import OutputFolder
from dlsim.study.plain_text import WITHOUT_FORMULAS

TEMPLATES = Path(__file__).parent / "templates"
#: The page of the notebook 90-scorecard: the results page of a folder of results.
RESULTS_PAGE, SCORECARD = "report.html", "90-scorecard"
#: Kinds of output in the order in which one of them is shown.
SHOWN_KINDS = [
    "image/png",
    "image/jpeg",
    "image/svg+xml",
    "text/html",
    "text/markdown",
    "text/latex",
    "text/plain",
]
_WIDGET = "application/vnd.jupyter.widget-view+json"
_WIDGET_STATE = "application/vnd.jupyter.widget-state+json"
_SCRIPT = "application/javascript"
#: Tag of the cells that papermill adds to a notebook that failed.
PAPERMILL_ERROR = "papermill-error-cell-tag"
PANEL = "An interactive panel: open this notebook with `dlsim lab` to use it."
_PICTURES = {".png": "png", ".jpg": "jpeg", ".jpeg": "jpeg", ".gif": "gif", ".svg": "svg+xml"}
_PICTURES_OF_CELLS = {"image/png", "image/jpeg", "image/svg+xml"}
_HEADING = re.compile(r"^#+ +(.+)$", re.M)
_FORMULA = re.compile(r"\$\$(.+?)\$\$|\$([^$\n]+?)\$", re.S)
_CODE_OR_TAG = re.compile(
    rf"(<(script|style|pre|code|title|\w+(?=[^>]*\b{WITHOUT_FORMULAS}\b))\b.*?</\2>|<[^>]+>)", re.S
)
_ACTING_TAG = re.compile(
    r"<(?=/?(?:script|iframe|object|embed|link|meta|base|form|frame|frameset)\b)", re.I
)
_RELATIVE = re.compile(r'(<a\b[^>]*?\bhref|<img\b[^>]*?\bsrc)="(?!#|[a-z][a-z0-9+.-]*:)([^"]+)"')


@dataclass(frozen=True)
class PageFrame:
    """What a page shows around the cells of its notebook, and where their pictures come from."""

    alarms: Sequence[str] = ()  # sentences about what went wrong
    facts: Mapping[str, str] = field(default_factory=dict)  # where the results come from
    with_code: bool = True  # whether code is shown
    #: The folder of the notebook as its author wrote it; None for that of the suite.
    source: Path | None = None
    #: Names of notebooks of this run that are not executed yet, and will have pages.
    notebooks: Sequence[str] = ()


@functools.lru_cache(maxsize=1000)  # notebooks repeat their symbols
def mathml(formula: str, block: bool = False) -> str:
    r"""Return a formula of LaTeX as MathML, which a browser sets without help.

    >>> mathml(r"\alpha", block=True)[:39]
    '<math xmlns="http://www.w3.org/1998/Mat'
    """
    from latex2mathml.converter import convert

    formula = re.sub(r"\\operatorname\*?\{", r"\\mathrm{", formula.strip())
    try:
        return str(convert(formula, display="block" if block else "inline"))
    except Exception:  # the converter raises many kinds; a reader can read the LaTeX
        return f"<code>{html.escape(formula)}</code>"


def set_formulas(page: str) -> str:
    """Set the formulas in the text of a page, not those in its code, styles and tags.

    There are none in an element of the class `WITHOUT_FORMULAS`, which holds no other of its name.
    """

    def formula(found: re.Match[str]) -> str:
        return mathml(html.unescape(found[1] or found[2]), block=bool(found[1]))

    parts = _CODE_OR_TAG.split(page)
    # every third part is text, the next is a tag or code, and the third the name of that tag
    texts, tags = parts[::3], [*parts[1::3], ""]
    return "".join(_FORMULA.sub(formula, text) + tag for text, tag in zip(texts, tags, strict=True))


def write_page(
    home: OutputFolder, notebook: Path, name: str, frame: PageFrame | None = None
) -> Path:
    """Write the page of an executed or failed notebook under a name into a folder of results."""
    page = page_of(home.folder, notebook, home.folder / name, frame or PageFrame())
    return home.write(name, page.encode("utf-8", "backslashreplace"))


@functools.cache
def _exporter(with_code: bool) -> Any:
    """Return nbconvert's exporter with the template of dlsim, compiled once for all pages."""
    sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]  # slow to import
    from nbconvert import HTMLExporter
    from traitlets.config import Config

    return HTMLExporter(
        config=Config({"NbConvertBase": {"display_data_priority": SHOWN_KINDS}}),
        template_name="dlsim",
        extra_template_basedirs=[str(TEMPLATES)],
        exclude_input=not with_code,
        exclude_input_prompt=True,
        exclude_output_prompt=True,
    )


def page_of(root: Path, notebook: Path, page: Path, frame: PageFrame) -> str:
    """Return the page of a notebook as HTML, with its links as they are seen from there."""
    exporter = _exporter(frame.with_code)
    import nbformat  # after `_exporter`, which keeps a slow import out

    book = harmless(nbformat.reads(files.read_text(notebook, MAX_TABLE_BYTES), as_version=4))
    if frame.alarms and PAPERMILL_ERROR in book.cells[0].metadata.get("tags", ()):
        del book.cells[0]  # says again, without a reason, that the notebook failed
    stem = notebook.name.partition(".")[0]
    # links to notebooks, which become links to their pages with all others below
    pages = pages_of_run(root, frame.notebooks)
    links = {name: f"{name}.ipynb" for name in pages}
    about = {
        "name": stem,
        "title": _title(book) or stem,
        "results": links.pop(SCORECARD, ""),
        "notebooks": links,
        "alarms": frame.alarms,
        "facts": frame.facts,
    }
    text, _ = exporter.from_notebook_node(book, {"page": about})
    source = frame.source or files.shared_folder("notebooks")
    mend = functools.partial(
        _mend, root=root, notebook=notebook, page=page, source=source, pages=pages
    )
    return set_formulas(_RELATIVE.sub(mend, text))


def pages_of_run(root: Path, more: Collection[str] = ()) -> dict[str, Path]:
    """Return where the pages of a folder's notebooks are, or will be, by name in reading order.

    `more` are the names of notebooks that are not executed yet.
    """
    names = {path.name.partition(".")[0] for path in (root / "notebooks").glob("[0-9]*.ipynb")}
    names |= set(more)
    pages = {name: root / "notebooks" / f"{name}.html" for name in sorted(names)}
    if SCORECARD in pages:
        pages[SCORECARD] = root / RESULTS_PAGE
    return pages


def _title(book: Any) -> str:
    """Return the first heading of a notebook."""
    texts = (cell.source for cell in book.cells if cell.cell_type == "markdown")
    found = _HEADING.search(next(texts, ""))
    return found[1] if found else ""


def harmless(book: Any) -> Any:
    """Return a notebook without scripts, acting tags as text, and pictures in place of widgets."""
    state = book.metadata.pop("widgets", {}).get(_WIDGET_STATE, {}).get("state", {})
    heading = ""
    for cell in book.cells:
        if cell.cell_type == "markdown":
            cell.source = _ACTING_TAG.sub("&lt;", cell.source)
            heading = [heading, *_HEADING.findall(cell.source)][-1]
        if "outputs" not in cell:
            continue
        outputs = [one for output in cell.outputs for one in _without_widget(output, state)]
        cell.outputs = [one for one in outputs if _SCRIPT not in one.get("data", {})]
        for output in cell.outputs:
            data = output.get("data", {})
            for kind in data.keys() & _PICTURES_OF_CELLS:
                output.metadata.setdefault(kind, {}).setdefault("alt", f"Picture: {heading}")
            if data and not set(SHOWN_KINDS) & set(data):
                data["text/plain"] = "This output cannot be shown on a page."
            for kind in ("text/html", "text/markdown"):
                if kind in data:
                    data[kind] = _ACTING_TAG.sub("&lt;", "".join(data[kind]))
    return book


def _without_widget(output: Any, state: dict[str, Any]) -> list[Any]:
    """Return an output; of a widget its picture, or what it holds, and how to use the widget."""
    from nbformat.v4 import new_output

    data = output.get("data", {})
    view = data.pop(_WIDGET, None)
    if view is None:
        return [output]
    kept = [output] if "image/png" in data else _outputs_within(view.get("model_id"), state)
    return [*kept, new_output("display_data", {"text/markdown": PANEL})]


def _outputs_within(model_id: Any, state: dict[str, Any]) -> list[Any]:
    """Return the outputs that a widget and its children hold, such as those of `interact`."""
    model = state.pop(model_id, {}).get("state", {})  # each once, so that a cycle ends
    children = [child.removeprefix("IPY_MODEL_") for child in model.get("children", ())]
    held = [one for output in model.get("outputs", ()) for one in _without_widget(output, state)]
    return held + [one for child in children for one in _outputs_within(child, state)]


def _address(target: Path, page: Path) -> str:
    """Return the address of a file as seen from a page."""
    return quote(Path(os.path.relpath(target, page.parent)).as_posix())


def _mend(
    found: re.Match[str],
    root: Path,
    notebook: Path,
    page: Path,
    source: Path,
    pages: Mapping[str, Path],
) -> str:
    """Return a link or a picture of a notebook as it is seen from its page.

    A link to a notebook leads to its page. A picture that is not among the results is put into
    the page if it is one of the suite or lies with the notebook. Other files are left out.
    """
    attribute, place = found.groups()
    path, _, part = unquote(html.unescape(place)).partition("#")
    target = Path(os.path.normpath(notebook.parent / path))
    fragment = f"#{quote(part)}" if part else ""
    if target.suffix == ".ipynb":
        target = pages.get(target.name.partition(".")[0], target)
        if target.suffix == ".html":
            return f'{attribute}="{_address(target, page)}{fragment}"'
    elif target.is_relative_to(root) and target.is_file():
        return f'{attribute}="{_address(target, page)}{fragment}"'
    picture = (source / path).resolve()
    allowed = source.resolve(), files.shared_folder("data").resolve()
    is_allowed = any(picture.is_relative_to(folder) for folder in allowed)
    kind = _PICTURES.get(picture.suffix.lower())
    if attribute.endswith("src") and is_allowed and kind and picture.is_file():
        code = base64.b64encode(files.read_bytes(picture, MAX_TABLE_BYTES)).decode()
        return f'{attribute}="data:image/{kind};base64,{code}"'
    return attribute.removesuffix("href").removesuffix("src") + 'data-absent=""'
