"""What a batch of notebooks leaves beside them: their pages, the results page, and run.json.

The results page is the page of the notebook 90-scorecard. Pages are written when a notebook
failed, too.
"""

import importlib.metadata
import json
import os
import platform
import re
import subprocess
import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pandas as pd

import dlsim
from dlsim import files
from dlsim.cache import package_digest
from dlsim.errors import InputError
from dlsim.files import StrPath
from dlsim.output_folder import OutputFolder
from dlsim.study import claims, sweeps
from dlsim.study.figures import load_figures, paper_of
from dlsim.study.notebooks import NotebookResult
from dlsim.study.pages import RESULTS_PAGE, SCORECARD, PageFrame, pages_of_run, write_page
from dlsim.study.verdict import with_sentences

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
    line = claims.headline(card["verdict"])
    for status in ("failed", "interrupted"):
        if count := sum(one.status == status for one in results):
            line += f"; {count} notebook{'s' * (count > 1)} {status}"
    return line


def _collect_verdicts(
    folder: Path, results: Sequence[NotebookResult]
) -> tuple[pd.DataFrame, list[str]]:
    """Collect the verdicts that the notebooks of this batch left, and what cannot be read."""
    tables, problems = [claims.tabulate([])], []
    for result in results:
        path = folder / "data" / f"{paper_of(result.name)}-claims.csv"
        judges = path.is_file() and not result.name.endswith("-beyond")
        if result.status != "ok" or not judges:
            continue
        try:
            tables.append(claims.read_scorecard(path))
        except InputError as error:
            problems.append(f"{path.name} could not be read: {error}")
    card = claims.beside_reference(pd.concat(tables, ignore_index=True))
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
    rows = [row for row in load_figures()[1] if row.notebook in names]
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
        "cores": sweeps.count_workers(),
        "packages": {name: importlib.metadata.version(name) for name in sorted(names)},
    }
