"""What a run leaves: figures, tables and verdicts, one page that shows them, run.json.

A notebook hands its results to `Results`; when the batch has ended, `write_report`
joins them with data/figures.toml into report.html, which needs nothing but itself. It
is written when a notebook failed, too.
"""

import importlib.metadata
import io
import json
import os
import platform
import re
import subprocess
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import dlsim
from dlsim import files
from dlsim.errors import InputError
from dlsim.files import StrPath
from dlsim.given import mapping, option, text
from dlsim.kernel import source_digest
from dlsim.owned import Owned
from dlsim.study import workers
from dlsim.study.claims import SYMBOLS, headline, read_scorecard, scorecard
from dlsim.study.notebooks import NotebookResult
from dlsim.study.page import FigureRow, Material, duration, render

__all__ = ["FigureRow", "Results", "load_figures", "read_headline", "write_report"]

STATUSES = ("reproduced", "redrawn", "beyond", "planned", "cannot be reproduced")
SCHEMA_VERSION = 1
_DPI = 150
_NEEDED = dict.fromkeys(("id", "paper", "printed", "title", "notebook"), partial(text, blank=False))
_FIELDS = files.fields_of(FigureRow, **_NEEDED, status=partial(option, options=STATUSES))


class Results:
    """Where a notebook leaves its results, under names that the report finds.

    Parameters
    ----------
    folder : path
        The folder of results; "" for results/<paper> under the project, or under the
        current folder where dlsim is installed without one.
    paper : str
        Key of the paper.
    """

    def __init__(self, folder: StrPath = "", paper: str = "") -> None:
        home = files.project_root() or Path.cwd()
        self.paper = paper
        self.home = Owned(
            folder or home / "results" / paper, remedy="choose another folder with out=..."
        )
        self.folder = self.home.folder

    def _write(self, kind: str, name: str, ending: str, data: bytes) -> Path:
        if not re.fullmatch(r"[a-z0-9]+([-_.][a-z0-9]+)*", name):
            raise InputError(
                f"the name of a result is made of a-z, 0-9 and single - _ . between; got {name!r}"
            )
        return self.home.write(f"{kind}/{name}{ending}", data)

    def table(self, name: str, frame: pd.DataFrame) -> Path:
        """Write a table as data/<name>.csv; equal tables give equal bytes.

        Parameters
        ----------
        name : str
            Id of the figure whose numbers these are, or a name of one's own.
        frame : DataFrame
            The numbers; the index is kept where it has a name.

        Returns
        -------
        Path
            The file.

        Raises
        ------
        InputError
            For a name that is no plain file name, or a folder that cannot be written to.
        """
        return self._write("data", name, ".csv", files.csv_text(frame).encode())

    def figure(self, name: str, drawn: Axes | Figure) -> Path:
        """Write a picture as figures/<name>.png, without a date or a tool in it.

        Parameters
        ----------
        name : str
            Id of the figure in data/figures.toml, or a name of one's own.
        drawn : Axes or Figure
            What to write.

        Returns
        -------
        Path
            The file.

        Raises
        ------
        InputError
            For a name that is no plain file name, or a folder that cannot be written to.
        """
        figure = drawn.get_figure(root=True) if isinstance(drawn, Axes) else drawn
        assert isinstance(figure, Figure)
        buffer, bare = io.BytesIO(), {"Software": None}
        figure.savefig(buffer, format="png", dpi=_DPI, metadata=bare, bbox_inches="tight")
        return self.picture(name, buffer.getvalue())

    def picture(self, name: str, png: bytes) -> Path:
        """Write a picture that is drawn already as figures/<name>.png, and return its path."""
        return self._write("figures", name, ".png", png)

    def verdicts(self, paper: str, frame: pd.DataFrame) -> Path:
        """Write a scorecard as data/<paper>-claims.csv, where the report looks for it.

        Parameters
        ----------
        paper : str
            Key of the paper.
        frame : DataFrame
            As `dlsim.study.claims.scorecard` returns it.

        Returns
        -------
        Path
            The file.

        Raises
        ------
        InputError
            For a table that is no scorecard.
        """
        _check_scorecard(frame, f"the scorecard of {paper}")
        return self.table(f"{paper}-claims", frame)


def _check_scorecard(frame: pd.DataFrame, what: str) -> None:
    columns = list(scorecard([]).columns)
    missing = [name for name in columns if name not in frame]
    if missing:
        raise InputError(f"{what} needs the columns {', '.join(columns)}; {missing[0]} is missing")
    unknown = [word for word in frame["verdict"] if word not in SYMBOLS]
    if unknown:
        raise InputError(f"{what}: a verdict is one of {', '.join(SYMBOLS)}; got {unknown[0]!r}")


def load_figures(
    path: StrPath | None = None,
) -> tuple[dict[str, dict[str, str]], list[FigureRow]]:
    """Read the table of all figures and tables of the papers.

    Parameters
    ----------
    path : path, optional
        Another file than the suite's own data/figures.toml.

    Returns
    -------
    papers : dict of str to dict
        Title and source by key of the paper.
    figures : list of FigureRow
        In the order of the file.

    Raises
    ------
    InputError
        For a row that breaks a rule; names file, row and field.
    """
    path = files.shared_file("data/figures.toml") if path is None else path
    found = files.read_tables(path, {"figure": _FIELDS}, {"papers?": mapping})
    papers, figures = found.get("papers", {}), []
    for row in found.get("figure", []):
        option(f"{row.where}: paper", row["paper"], papers)
        figures.append(FigureRow(**row))
    return papers, figures


def _claims_of(folder: Path, notebooks: Sequence[NotebookResult]) -> tuple[pd.DataFrame, list[str]]:
    """Collect the scorecards that the notebooks of this run left, and what is wrong."""
    tables, problems = [scorecard([])], []
    for result in notebooks:
        path = folder / "data" / f"{re.sub(r'^[0-9]+-', '', result.name)}-claims.csv"
        if not path.is_file():
            continue
        try:
            frame = read_scorecard(path)
        except InputError as error:
            problems.append(f"{path.name} could not be read: {error}")
            continue
        tables.append(frame)
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


def _processor() -> str:
    """Return the name of the processor, where the system tells."""
    try:
        found = re.search(r"model name\s*:\s*(.+)", Path("/proc/cpuinfo").read_text())
    except OSError:
        found = None
    return found[1].strip() if found else platform.processor() or platform.machine()


def _environment() -> dict[str, Any]:
    """Return the machine, Python, and the version of everything dlsim depends on."""
    packages = {}
    for requirement in importlib.metadata.requires("dlsim") or []:
        name = re.split(r"[^\w.-]", requirement, maxsplit=1)[0]
        if "extra ==" not in requirement:
            packages[name] = importlib.metadata.version(name)
    return {
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.release()}",
        "processor": _processor(),
        "cores": workers.count(),
        "packages": dict(sorted(packages.items())),
    }


def _headline(words: Sequence[str], notebooks: Sequence[NotebookResult], path: Path) -> str:
    inside = path.is_relative_to(Path.cwd())
    shown = path.relative_to(Path.cwd()) if inside else path
    line = headline(words)
    for status in ("failed", "interrupted"):
        count = sum(result.status == status for result in notebooks)
        if count:
            line += f"; {count} notebook{'s' * (count > 1)} {status}"
    return f"{line} - {shown}"


def _facts(meta: Mapping[str, Any], software: Mapping[str, str], machine: Mapping[str, Any]) -> Any:
    """Return the header of the page as label and text."""
    runs, seconds = meta.get("runs", 0), meta.get("seconds")
    reading = ", ".join(f"{k}={v}" for k, v in (meta.get("reading") or {}).items())
    return {
        "dlsim": software["version"],
        "Commit": software["commit"],
        "Scale": str(meta.get("scale", "")),
        "Seed": str(meta.get("seed", "")),
        "Runs": str(runs) if runs else "as the scale says",
        "Reading": reading or "default",
        "Machine": f"{machine['processor']}, {machine['cores']} cores, {machine['system']}, "
        f"Python {machine['python']}",
        "Duration": "" if seconds is None else duration(float(seconds)),
        "Command": str(meta.get("command", "")),
    }


def write_report(
    folder: StrPath, notebooks: Sequence[NotebookResult], meta: Mapping[str, Any]
) -> Path:
    """Write report.html and run.json into a folder of results.

    Parameters
    ----------
    folder : path
        Where `Results` left figures and data, and the executed notebooks lie.
    notebooks : sequence of NotebookResult
        What became of each notebook; only their figures and claims are shown.
    meta : mapping
        Parameters of the run: scale, seed, runs, reading, jobs, seconds (duration),
        command; all optional.

    Returns
    -------
    Path
        The page. Its first line is `read_headline` of the folder.

    Raises
    ------
    InputError
        For a folder that cannot be written to.
    """
    folder = Path(folder).absolute()
    path = folder / "report.html"
    claims, problems = _claims_of(folder, notebooks)
    papers, figures = load_figures()
    software = {"name": "dlsim", "version": dlsim.__version__, "commit": _commit()}
    machine = _environment()
    line = _headline(list(claims["verdict"]), notebooks, path)
    facts, scale = _facts(meta, software, machine), str(meta.get("scale", "quick"))
    material = Material(folder, line, facts, scale, claims, figures, papers, notebooks, problems)
    record = {
        "schema_version": SCHEMA_VERSION,
        "headline": line,
        "software": software | {"sources": source_digest()},
        "parameters": dict(meta),
        "environment": machine,
        "notebooks": [_notebook_record(result, folder) for result in notebooks],
        "claims": claims.to_dict("records"),
        "figures": [_figure_record(row, folder) for row in figures if material.result_of(row)],
        "problems": problems,
    }
    home = Owned(folder)
    home.write("run.json", (json.dumps(record, indent=1, default=str) + "\n").encode())
    return home.write(path.name, render(material).encode("utf-8", "backslashreplace"))


def _notebook_record(result: NotebookResult, folder: Path) -> dict[str, Any]:
    path = os.path.relpath(result.path, folder) if result.path else None
    return {
        "name": result.name,
        "path": path,
        "status": result.status,
        "seconds": round(result.seconds, 3),
        "error": result.error,
        "reused": result.reused,
    }


def _figure_record(row: FigureRow, folder: Path) -> dict[str, Any]:
    drawn = (folder / "figures" / f"{row.id}.png").is_file()
    return {"id": row.id, "status": row.status, "drawn": drawn}


def read_headline(folder: StrPath) -> str:
    """Return the first line of a report, which is also the last line of the terminal.

    Parameters
    ----------
    folder : path
        A folder that `write_report` wrote to.

    Returns
    -------
    str
        One line.

    Raises
    ------
    InputError
        Where there is no run.json.
    """
    path = Path(folder) / "run.json"
    try:
        return str(files.read_json(path)["headline"])
    except (InputError, KeyError, TypeError) as error:
        raise InputError(f"{path}: no record of a run ({error}); run dlsim reproduce") from error
