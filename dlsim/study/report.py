"""What a run leaves: figures, tables and verdicts, one page that shows them, run.json.

A notebook hands its results to `Results`; when the batch has ended, `write_report` joins them
with data/figures.toml into report.html (after page.html), and writes a page for every executed
notebook: no script is in them and no address of another machine. They are written when a notebook
failed, too.
"""

import importlib.metadata
import json
import os
import platform
import re
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
from markupsafe import Markup

import dlsim
from dlsim import files
from dlsim.cache import source_digest
from dlsim.errors import InputError
from dlsim.files import StrPath
from dlsim.given import option
from dlsim.owned import Owned
from dlsim.study import claims, workers
from dlsim.study.figures import KIND_VARIABLE, KINDS, load_figures, paper_of
from dlsim.study.notebooks import NotebookResult
from dlsim.study.pages import markdown, pages_of, sentences, write_pages

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SCHEMA_VERSION = 1


class Results:
    """Where a notebook leaves its results; "" is results/<paper> of the project or folder here."""

    def __init__(self, folder: StrPath = "", paper: str = "") -> None:
        place = folder or (files.project_root() or Path.cwd()) / "results" / paper
        self.home = Owned(place, remedy="choose another folder with out=...").check()
        self.folder = self.home.folder

    def _write(self, kind: str, name: str, ending: str, data: bytes) -> Path:
        if not re.fullmatch(r"[a-z0-9]+([-_.][a-z0-9]+)*", name):
            rule = "made of a-z, 0-9 and single - _ . between"
            raise InputError(f"the name of a result is {rule}; got {name!r}")
        return self.home.write(f"{kind}/{name}{ending}", data)

    def table(self, name: str, frame: pd.DataFrame) -> Path:
        """Write a table as data/<name>.csv and return its path; equal tables give equal bytes."""
        text = files.csv_text(frame.drop(columns="values", errors="ignore"))
        return self._write("data", name, ".csv", text.encode())

    def latex(self, name: str, frame: pd.DataFrame) -> Path:
        """Write a table as data/<name>.tex and return its path."""
        text = frame.drop(columns="values", errors="ignore").to_latex(index=False, escape=True)
        return self._write("data", name, ".tex", text.encode())

    def figure(self, name: str, drawn: "Axes | Figure", formats: Sequence[str] = ()) -> Path:
        """Write a picture as figures/<name>.png and return its path; no date or tool is in it.

        A run that was asked for another format, too (`KIND_VARIABLE`), finds it beside that, as
        do further `formats`.
        """
        from matplotlib.axes import Axes  # not at the top: a batch draws nothing itself
        from matplotlib.figure import Figure

        from dlsim.study.pictures import picture_of

        figure = drawn.get_figure(root=True) if isinstance(drawn, Axes) else drawn
        assert isinstance(figure, Figure)
        kind = option(KIND_VARIABLE, os.environ.get(KIND_VARIABLE) or "png", KINDS)
        for one in {kind, *formats} - {"png"}:
            option("a format", one, KINDS)
            self.picture(name, picture_of(figure, one), one)
        return self.picture(name, picture_of(figure))

    def picture(self, name: str, data: bytes, kind: str = "png") -> Path:
        """Write a picture that is drawn already as figures/<name>.<kind>, and return its path."""
        return self._write("figures", name, f".{kind}", data)

    def verdicts(self, paper: str, frame: pd.DataFrame) -> Path:
        """Write a scorecard as data/<paper>-claims.csv, where the report looks for it."""
        card = claims.checked_scorecard(frame, f"the scorecard of {paper}")
        return self.table(f"{paper}-claims", card)


def _claims_of(folder: Path, notebooks: Sequence[NotebookResult]) -> tuple[pd.DataFrame, list[str]]:
    """Collect the scorecards that the notebooks of this run left, and what is wrong."""
    tables, problems = [claims.scorecard([])], []
    for result in notebooks:
        path = folder / "data" / f"{paper_of(result.name)}-claims.csv"
        if not path.is_file():  # not every notebook judges claims
            continue
        try:
            tables.append(claims.read_scorecard(path))
        except InputError as error:
            problems.append(f"{path.name} could not be read: {error}")
            continue
        if result.status != "ok":
            problems.append(f"{path.name} may be from an earlier run: {result.name} did not finish")
    return pd.concat(tables, ignore_index=True), problems


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
        "cores": workers.count(),
        "packages": {name: importlib.metadata.version(name) for name in sorted(names)},
    }


def judged(card: pd.DataFrame) -> dict[str, Any]:
    """Return what a page shows of verdicts: papers, claims, rows by paper, and findings.

    A finding says of a paper what it claims, what holds and what nobody knew. Which claims these
    are stands in data/figures.toml; a paper that names none tells of its first. Beside the
    verdicts of a run stand those at the paper's own size, `known` by the claim's id.
    """
    papers, found, by_paper = load_figures()[0], [], card.groupby("paper", sort=False)
    scorecard = {str(paper): rows.to_dict("records") for paper, rows in by_paper}
    for paper, rows in scorecard.items():
        about, each = papers.get(paper, {}), {row["id"]: row for row in rows}
        scaled = any(row["reference"] for row in rows)
        place = claims.reference_of(paper)
        known = claims.read_scorecard(place).to_dict("records") if scaled else []
        found.append({
            "paper": paper, "title": about.get("title", paper), "rows": rows, "scaled": scaled,
            "lead": each.get(about.get("claim", ""), rows[0]),
            "news": each.get(about.get("news", "")),
            "known": {row["id"]: row for row in known},
        })  # fmt: skip
    known_claims = {one.id: one for one in claims.load_claims()}
    return {"papers": papers, "claims": known_claims, "scorecard": scorecard, "findings": found}


def write_report(
    folder: StrPath, notebooks: Sequence[NotebookResult], meta: Mapping[str, Any]
) -> Path:
    """Write report.html and run.json into a folder of results, and return the page's path.

    Only figures and claims of the notebooks given are shown. `meta` has the parameters of the run:
    scale, seed, runs, reading, jobs, seconds (duration), command; all are optional.
    """
    folder = Path(folder).absolute()
    path = folder / "report.html"
    card, problems = _claims_of(folder, notebooks)
    home, there = Owned(folder), {one.path: one.reused for one in notebooks if one.path}
    problems += write_pages(home, there)
    figures = load_figures()[1]
    ran = {result.name: result for result in notebooks}
    drawn = [row for row in figures if row.notebook in ran]
    line, here = claims.headline(card["verdict"]), Path.cwd()
    for status in ("failed", "interrupted"):
        if count := sum(result.status == status for result in notebooks):
            line += f"; {count} notebook{'s' * (count > 1)} {status}"
    cards = {row.paper: [one for one in drawn if one.paper == row.paper] for row in drawn}
    record = {
        "schema_version": SCHEMA_VERSION,
        "headline": f"{line} - {path.relative_to(here) if path.is_relative_to(here) else path}",
        "software": {
            "name": "dlsim", "version": dlsim.__version__, "commit": _commit(),
            "sources": source_digest(),
        },
        "parameters": dict(meta),
        "environment": _environment(),
        "notebooks": [
            asdict(result) | {
                "path": os.path.relpath(result.path, folder) if result.path else None,
                "seconds": round(result.seconds, 3),
            }
            for result in notebooks
        ],
        "claims": card.to_dict("records"),
        "figures": [
            {"id": row.id, "status": row.status,
             "drawn": (folder / "figures" / f"{row.id}.png").is_file()} for row in drawn
        ],
        "problems": problems,
    }  # fmt: skip
    home.write("run.json", (json.dumps(record, indent=1, default=str) + "\n").encode())
    pngs = {files.read_bytes(path): path.stem for path in (folder / "figures").glob("*.png")}
    said, text_of = dict[str, Markup](), markdown(escape=True)
    for book in there:
        with suppress(Exception):  # of what is no notebook `write_pages` has told
            found = sentences([book], pngs)
            said |= {name: Markup(text_of(text)) for name, text in found.items()}
    page = pages_of(folder).get_template("page.html").render(
        headline=record["headline"], record=record, now=time.strftime("%Y-%m-%d %H:%M %Z"),
        scale=str(meta.get("scale", "quick")), notebooks=notebooks, problems=problems, cards=cards,
        ran=ran, others=[row for row in figures if row.notebook not in ran],
        shown={row.id for row in drawn}, sentences=said, **judged(card),
    )  # fmt: skip
    return home.write(path.name, page.encode("utf-8", "backslashreplace"))


def read_headline(folder: StrPath) -> str:
    """Return the first line of a report, which is also the last line of the terminal."""
    path = Path(folder) / "run.json"
    try:
        return str(files.read_json(path)["headline"])
    except (InputError, KeyError, TypeError) as error:
        raise InputError(f"{path}: no record of a run ({error}); run dlsim reproduce") from error
