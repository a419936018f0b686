"""Pages of executed notebooks, the results page of a batch, and the verdicts of a suite on it.

nbconvert makes pages with one template; they ask no server for anything. Another person may have
written a notebook. Its page therefore runs no script and loads nothing: a content security policy
forbids both to the browser, scripts are left out, widgets become pictures, tags that act become
text, and of the files of this machine a page holds only pictures of its own folders.

A batch of notebooks leaves beside them their pages, the results page, and run.json. The results
page is the page of the notebook 90-scorecard. Pages are written when a notebook failed, too.

90-scorecard shows all verdicts of a suite side by side. Nothing is measured here. First come the
verdicts and pictures at full scale that travel with dlsim, then the pictures of a run, then one
table of all claims with the verdict of the run beside that at full scale. Links lead from the
folder of the notebook to the files of a folder of results; the page mends them.
"""

import base64
import functools
import html
import importlib.metadata
import json
import os
import platform
import re
import subprocess
import sys
import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

import pandas as pd

import dlsim
from dlsim import files
from dlsim.cache import package_digest
from dlsim.errors import InputError
from dlsim.files import MAX_TABLE_BYTES, StrPath
from dlsim.output_folder import OutputFolder
from dlsim.study.claims import (
    VERDICTS,
    beside_reference,
    headline,
    load_claims,
    read_scorecard,
    reference_of,
    tabulate,
)
from dlsim.study.notebooks import NotebookResult
from dlsim.study.plain_text import WITHOUT_FORMULAS
from dlsim.study.results import FigureRow, load_figures, paper_letters, paper_of
from dlsim.study.scorecard import write_interval
from dlsim.study.sweeps import count_workers
from dlsim.study.verdict import with_sentences

if TYPE_CHECKING:
    from matplotlib.axes import Axes

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
PANEL = "An interactive panel: open this notebook with `dlsim lab` and run its cell."
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


def write_page(home: OutputFolder, notebook: Path, name: str, frame: PageFrame) -> Path:
    """Write the page of an executed or failed notebook under a name into a folder of results."""
    page = page_of(home.folder, notebook, home.folder / name, frame)
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


def _as_data(picture: Path) -> str:
    """Return a picture as an address that holds it."""
    code = base64.b64encode(files.read_bytes(picture, MAX_TABLE_BYTES)).decode()
    return f"data:image/{_PICTURES[picture.suffix.lower()]};base64,{code}"


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
        return f'{attribute}="{_as_data(picture)}"'
    return attribute.removesuffix("href").removesuffix("src") + 'data-absent=""'


# ------------------------------------------------------------------ pages of a batch

SCHEMA_VERSION = 1


def _page_of(notebook: str) -> str:
    return f"notebooks/{notebook}.html"


class RunPages:
    """The pages of a run's notebooks, each written as soon as its notebook has ended."""

    def __init__(self, out: StrPath, names: Collection[str]) -> None:
        self.home, self.names = OutputFolder(out), names  # names of all notebooks of the run
        self.home.require_unchanged("run.json", RESULTS_PAGE, *map(_page_of, names))
        self.done: set[str] = set()
        self.problems: list[str] = []

    def write(self, result: NotebookResult) -> None:
        """Write the page of a notebook, except for the scorecard; note what goes wrong."""
        if result.name in self.done:
            return
        self.done.add(result.name)
        page = _page_of(result.name)
        is_there = result.reused and (self.home.folder / page).is_file()
        if not result.path or result.name == SCORECARD or is_there:
            return
        frame = PageFrame([result.error] if result.error else [], notebooks=list(self.names))
        try:
            write_page(self.home, result.path, page, frame)
        except InputError:
            raise
        except Exception as error:  # whatever a notebook holds, the results page is written
            self.problems.append(f"{result.name} could not be made a page: {error}")

    def remove_old(self) -> None:
        """Remove the pages of notebooks that are gone."""
        known = {path.name for path in pages_of_run(self.home.folder).values()}
        for path in (self.home.folder / "notebooks").glob("*.html"):
            if path.name not in known:
                self.home.remove(f"notebooks/{path.name}")


def write_results_page(
    out: StrPath,
    results: Sequence[NotebookResult],
    meta: Mapping[str, Any],
    pages: RunPages | None = None,
) -> str:
    """Write the results page of a run, its other pages and run.json into its folder of results.

    The parameters of the batch (scale, seed, runs, reading, seconds) are `meta`; `pages` are those
    that were written while the notebooks ran. The line that is returned has the number of claims by
    verdict, the number of notebooks that failed, and the path of the results page.
    """
    home = OutputFolder(out)
    problems = [f"{one.name} {one.status}: {one.error}" for one in results if one.status != "ok"]
    card, unread = _collect_verdicts(home.folder, results)
    pages = pages or RunPages(out, [one.name for one in results if one.path])
    for result in results:
        pages.write(result)
    pages.remove_old()
    problems += unread + pages.problems
    page = home.folder / RESULTS_PAGE
    shown = page.relative_to(Path.cwd()) if page.is_relative_to(Path.cwd()) else page
    record = _record(home.folder, results, meta, card)
    record |= {"headline": f"{_headline(card, results)} - {shown}", "problems": problems}
    home.write("run.json", (json.dumps(record, indent=1, default=str) + "\n").encode())
    if all(one.status != "interrupted" for one in results):
        _write_results_page(home, results, problems, _facts(record))
    return str(record["headline"])


def _headline(card: pd.DataFrame, results: Sequence[NotebookResult]) -> str:
    """Return how many claims have each verdict, and how many notebooks did not end well."""
    line = headline(card["verdict"])
    for status in ("failed", "interrupted"):
        if count := sum(one.status == status for one in results):
            line += f"; {count} notebook{'s' * (count > 1)} {status}"
    return line


def _collect_verdicts(
    folder: Path, results: Sequence[NotebookResult]
) -> tuple[pd.DataFrame, list[str]]:
    """Collect the verdicts that the notebooks of this batch left, and what cannot be read."""
    tables, problems = [], []
    for result in results:
        path = folder / "data" / f"{paper_of(result.name)}-claims.csv"
        judges = path.is_file() and not result.name.endswith("-beyond")
        if result.status != "ok" or not judges:
            continue
        try:
            tables.append(read_scorecard(path))
        except InputError as error:
            problems.append(f"{path.name} could not be read: {error}")
    card = beside_reference(pd.concat(tables or [tabulate([])], ignore_index=True))
    return with_sentences(card), problems


def _write_results_page(
    home: OutputFolder,
    results: Sequence[NotebookResult],
    problems: list[str],
    facts: dict[str, str],
) -> None:
    """Write the page of the scorecard; without one, a page that says what went wrong."""
    path = next((one.path for one in results if one.name == SCORECARD and one.path), None)
    frame = PageFrame(alarms=problems, facts=facts, with_code=False)
    if path is None:
        import nbformat

        empty = nbformat.v4.new_notebook()
        empty.cells = [nbformat.v4.new_markdown_cell("# There is no scorecard of this run")]
        name = f"notebooks/{SCORECARD}.failed.ipynb"
        path = home.write(name, nbformat.writes(empty).encode())
    write_page(home, path, RESULTS_PAGE, frame)


def _record(
    folder: Path, results: Sequence[NotebookResult], meta: Mapping[str, Any], card: pd.DataFrame
) -> dict[str, Any]:
    """Return what run.json says of a batch."""
    names = {result.name for result in results}
    rows = [row for row in load_figures().figures if row.notebook in names]
    notebooks = []
    for result in results:
        path = os.path.relpath(result.path, folder) if result.path else None
        about = {"path": path, "seconds": round(result.seconds, 3)}
        notebooks.append(asdict(result) | about)
    return {
        "schema_version": SCHEMA_VERSION,
        "software": {
            "name": "dlsim",
            "version": dlsim.__version__,
            "commit": _commit(),
            "sources": package_digest(),
        },
        "parameters": dict(meta),
        "environment": _environment(),
        "notebooks": notebooks,
        "claims": json.loads(card.to_json(orient="records")),  # blank numbers are null
        "figures": [
            {
                "id": row.id,
                "status": row.status,
                "drawn": any(
                    (folder / "figures" / f"{row.id}.{kind}").is_file() for kind in ("png", "svg")
                ),
            }
            for row in rows
        ],
    }


def _facts(record: Mapping[str, Any]) -> dict[str, str]:
    """Return where results come from, in words."""
    given, machine = record["parameters"], record["environment"]
    reading = given.get("reading") or {}
    statuses = [notebook["status"] for notebook in record["notebooks"]]
    counts = [f"{statuses.count(word)} {word}" for word in dict.fromkeys(statuses)]
    facts = {
        "Scale": given.get("scale", ""),
        "Seed": str(given.get("seed", "")),
        "Runs per point": str(given.get("runs") or "as the scale says"),
        "Reading": ", ".join(f"{name}={value}" for name, value in reading.items()) or "default",
        "Notebooks": ", ".join(counts),
        "Duration": f"{given['seconds']:.0f} s" if "seconds" in given else "",
        "dlsim": f"{record['software']['version']} {record['software']['commit']}",
        "Machine": f"{machine['processor']}, {machine['cores']} cores, {machine['system']}",
        "Python": machine["python"],
        "Written": time.strftime("%Y-%m-%d %H:%M %Z"),
    }
    return {name: text for name, text in facts.items() if text}


def _commit() -> str:
    """Return the commit of the checkout, marked where files were changed since."""
    root = files.project_root()
    if root is None or not (root / ".git").exists():
        return ""

    def git(*words: str) -> str:  # describe --dirty would lock the index: killed, it leaves that
        command = ["git", "--no-optional-locks", "-C", str(root), *words]
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True)
        return done.stdout.strip()

    try:
        dirty = git("status", "--porcelain", "--untracked-files=no")
        return git("describe", "--always", "--abbrev=12") + ("-dirty" if dirty else "")
    except (OSError, subprocess.SubprocessError):
        return ""


def _environment() -> dict[str, Any]:
    """Return the machine, Python, and the version of everything dlsim depends on."""
    found, needed = None, importlib.metadata.requires("dlsim") or []
    names = [re.split(r"[^\w.-]", one, maxsplit=1)[0] for one in needed if "extra ==" not in one]
    with suppress(OSError):
        found = re.search(r"model name\s*:\s*(.+)", Path("/proc/cpuinfo").read_text())
    return {
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.release()}",
        "processor": found[1].strip() if found else platform.processor() or platform.machine(),
        "cores": count_workers(),
        "packages": {name: importlib.metadata.version(name) for name in sorted(names)},
    }


# ------------------------------------------------------------------ verdicts of a suite

REFERENCE = "reference, at full scale"


def read_scorecards(out: StrPath) -> pd.DataFrame:
    """Collect all scorecards, each from a folder of results or else from data/reference."""
    parts = [tabulate([]).assign(origin="")]
    for paper in dict.fromkeys(claim.paper for claim in load_claims()):
        own, shipped = Path(out) / "data" / f"{paper}-claims.csv", reference_of(paper)
        try:
            if own.exists():
                card = read_scorecard(own)
                parts.append(card.assign(origin="this run: " + card["sample"]))
            elif shipped.exists():
                parts.append(read_scorecard(shipped).assign(origin=REFERENCE))
        except InputError as error:
            raise InputError(f"{error}; run dlsim reproduce again") from error
    return beside_reference(pd.concat(parts[1:] or parts, ignore_index=True))


def count_verdicts(frame: pd.DataFrame) -> pd.DataFrame:
    """Count the verdicts of every paper."""
    table = pd.crosstab(frame["paper"], frame["verdict"])
    papers = list(dict.fromkeys(frame["paper"]))
    return table.reindex(index=papers, columns=list(VERDICTS), fill_value=0)


def plot_counts(frame: pd.DataFrame) -> "Axes":
    """Draw how many claims of every paper hold: one bar per paper, a part per verdict."""
    from dlsim.study.plots import axes_of  # not at the top: a batch draws nothing itself

    if frame.empty:
        raise InputError("a picture of verdicts needs claims, got none: run dlsim reproduce")
    table, letters = count_verdicts(frame), {name: key for key, name in paper_letters().items()}
    table.index = [f"Paper {letters[name]}: {name}" for name in table.index]
    ax = axes_of(None, (9, 1.2 + 0.42 * len(table)))
    left = table.cumsum(axis=1) - table
    for word, (symbol, color, _) in VERDICTS.items():
        bars = ax.barh(
            list(table.index),
            table[word],
            left=left[word],
            color=color,
            height=0.68,
            edgecolor="white",
            linewidth=1.5,
            label=f"{symbol} {word}",
        )
        labels = [f"{symbol} {number}" if number else "" for number in table[word]]
        ax.bar_label(bars, labels, label_type="center", color="#222222", fontsize=9)
    ax.invert_yaxis()
    ax.grid(False)
    ax.tick_params(axis="y", length=0)
    ax.set(xlabel="claims", xlim=(0, table.sum(axis=1).max()))
    ax.legend(loc="lower center", bbox_to_anchor=(0.45, 1.0), ncols=4, columnspacing=1.4)
    return ax


def claims_beside(card: pd.DataFrame) -> list[dict[str, Any]]:
    """Return every claim once, with its verdict at full scale and that of a run.

    `card` is what `read_scorecards` returns. Of the claims, in the order of data/claims.toml,
    ``full`` is the shipped verdict with its sentences and ``own`` that of the run; None where there
    is none. ``word`` is the verdict at full scale, or else that of the run.
    """
    own = card[card["origin"] != REFERENCE]
    both = {"full": _by_claim(_read_shipped()), "own": _by_claim(own)}
    rows = []
    for claim in load_claims():
        row: dict[str, Any] = {name: found.get(claim.id) for name, found in both.items()}
        about = row["full"] or row["own"]
        if about:
            names = ("id", "paper", "where", "whose", "figure", "claim", "printed")
            rows.append(row | {name: about[name] for name in names} | {"word": about["verdict"]})
    return rows


def _read_shipped() -> pd.DataFrame:
    """Return the verdicts at full scale that travel with dlsim."""
    places = [reference_of(paper) for paper in dict.fromkeys(one.paper for one in load_claims())]
    parts = [read_scorecard(place) for place in places if place.exists()] or [tabulate([])]
    return beside_reference(pd.concat(parts, ignore_index=True))


def _by_claim(card: pd.DataFrame) -> dict[str, dict[str, Any]]:
    """Return verdicts with their sentences, and the number that decides, by claim."""
    rows: list[Any] = with_sentences(card).to_dict("records")
    return {row["id"]: {**row, "decides": write_interval(row)} for row in rows}


def show_findings(card: pd.DataFrame, out: StrPath) -> Any:
    """Show, for every paper, its main claim, our finding at full scale, and how many claims hold.

    The verdicts are those that `read_scorecards` returns for the folder.
    """
    papers, found = load_figures().papers, []
    every = claims_beside(card)
    notebooks = {row.paper: row.notebook for row in reversed(load_figures().figures)}
    for paper, title in _titles(every).items():
        about, rows = papers[paper], [row for row in every if row["paper"] == paper]
        leads = [row for row in rows if row["id"] in about["claims"]]
        own = [row["own"] for row in rows if row["own"]]
        found.append(
            {
                **about,  # source, found, terms, pictured
                "paper": paper,
                "title": title,
                "says": about.get("says", leads[0]["claim"]),
                "leads": leads,
                "full": [row["full"]["verdict"] for row in rows if row["full"]],
                "own": [row["verdict"] for row in own],
                "sample": own[0]["sample"] if own else "",
                "picture": _as_data(files.shared_file(f"data/figures/{about['picture']}")),
                "notebook": _link_to(Path(out) / "notebooks" / f"{notebooks[paper]}.ipynb"),
            }
        )
    return _show("findings", every, found)


def show_figures(card: pd.DataFrame, out: StrPath) -> Any:
    """Show the pictures of a run as a gallery, with menus that choose papers and verdicts.

    There is a card for every figure and table of the notebooks that the run has executed.
    """
    papers, rows = load_figures()
    folder, every = Path(out), claims_beside(card)
    there = {path.name.partition(".")[0] for path in (folder / "notebooks").glob("*.ipynb")}
    groups: dict[str, list[dict[str, Any]]] = {}
    for row in (row for row in rows if row.notebook in there):
        title = _title_of(row.paper, papers)
        groups.setdefault(title, []).append(_card_of(row, every, folder))
    absent = [row for row in rows if row.notebook not in there]
    return _show("figures", every, list(groups.items()), absent)


def show_claims(card: pd.DataFrame, out: StrPath) -> Any:
    """Show all claims in one folded table, the verdict of a run beside that at full scale."""
    folder, rows = Path(out), claims_beside(card)
    figures = {row.id: row for row in load_figures().figures}
    notebooks = {row.paper: row.notebook for row in reversed(figures.values())}
    for row in rows:
        figure = figures.get(row["figure"])
        notebook = figure.notebook if figure else notebooks.get(row["paper"], "")
        files_of_claim = {
            "numbers": folder / "data" / f"{row['figure']}.csv",
            "comparisons": folder / "data" / f"{row['paper']}-points.csv",
            "notebook": folder / "notebooks" / f"{notebook}.ipynb",
        }
        links = {"figure": _picture_of(folder, row["figure"])}
        links |= {text: _link_to(path) for text, path in files_of_claim.items()}
        row["links"] = {text: address for text, address in links.items() if address}
    return _show("claims", rows, rows)


def show_contradictions(card: pd.DataFrame) -> Any:
    """Say which verdicts of a run contradict those at full scale, with links to their rows."""
    every = claims_beside(card)
    against = [row for row in every if row["own"] and row["own"]["agreement"] == "CONTRADICTS"]
    return _show("contradictions", every, against)


def show_folded(title: str, table: Any) -> Any:
    """Show a table that folds out under a title."""
    return _show("folded", [], title, table._repr_html_())


def _picture_of(folder: Path, name: str) -> str:
    """Return the address of a picture, or of a drawing that was redrawn once."""
    places = (folder / "figures" / f"{name}.{kind}" for kind in ("png", "svg"))
    return next(filter(None, map(_link_to, places)), "")


def _card_of(row: FigureRow, every: Sequence[Any], folder: Path) -> dict[str, Any]:
    """Return the card of a figure: its picture, its claims, and links to its files."""
    about = [one for one in every if one["figure"] == row.id]
    failed = folder / "notebooks" / f"{row.notebook}.failed.ipynb"
    files_of_figure = {
        "numbers (CSV)": folder / "data" / f"{row.id}.csv",
        "picture (SVG)": folder / "figures" / f"{row.id}.svg",
        "picture (PDF)": folder / "figures" / f"{row.id}.pdf",
        "notebook": failed if failed.is_file() else failed.with_name(f"{row.notebook}.ipynb"),
    }
    links = {text: _link_to(path) for text, path in files_of_figure.items()}
    return {
        "row": row,
        "claims": about,
        "words": [one["word"].replace(" ", "-") for one in about] or ["none"],
        "picture": _picture_of(folder, row.id),
        "has_failed": failed.is_file(),
        "links": {text: address for text, address in links.items() if address},
    }


def _titles(every: Sequence[Any]) -> dict[str, str]:
    """Return the title of every paper that has verdicts, by its key."""
    papers = load_figures().papers
    return {row["paper"]: _title_of(row["paper"], papers) for row in every}


def _agreements(every: Sequence[Any]) -> list[str]:
    """Return how verdicts of a run agree with those at full scale, contradictions first."""
    found = {row["own"]["agreement"] for row in every if row["own"]} - {""}
    return sorted(found, key=lambda word: (word != "CONTRADICTS", word))


def _title_of(paper: str, papers: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the title of a paper after its letter, if it has one."""
    about = papers.get(paper, {})
    title = str(about.get("title", paper))
    return f"Paper {about['letter']}: {title}" if "letter" in about else title


def _link_to(path: Path) -> str:
    """Return the way to a file from the notebook that is shown, or "" where there is none."""
    if not path.is_file():
        return ""
    return quote(Path(os.path.relpath(path)).as_posix())


def _show(part: str, every: Sequence[Any], *arguments: Any) -> Any:
    """Return a part of the template as HTML in which texts are escaped.

    The menus choose among `every` claim that `claims_beside` returns.
    """
    import jinja2
    from IPython.display import HTML

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    menus = {
        "paper": ("Paper", _titles(every)),
        "verdict": ("Verdict at full scale", {word: word for word in VERDICTS}),
        "agreement": ("This run", {one: one for one in _agreements(every)}),
    }
    names = {"words": VERDICTS, "menus": menus}
    template = environment.get_template("overview.html.j2", globals=names)
    text = str(getattr(template.module, part)(*arguments))
    return HTML(f'<article class="{WITHOUT_FORMULAS}">{text}</article>')
