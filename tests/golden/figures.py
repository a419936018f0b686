"""The numbers behind the figures, tables and verdicts of all papers at quick scale, seed 0."""

import zipfile
from pathlib import Path

from dlsim.study.results import paper_letters
from tests.golden.blocks import FOLDER

#: The papers, as their result files are named.
PAPERS = (*paper_letters().values(), "theory")
#: Files of measured durations, which no two runs share.
MEASURED = ("steady-state-fig5.csv", "bricks-seconds.csv")
#: Every file gets this date, so that equal results are equal archives.
DATE = (2000, 1, 1, 0, 0, 0)


def archive_of(paper: str) -> Path:
    """Return the archive of a paper's frozen results."""
    return FOLDER / f"{paper}.zip"


def results_of(folder: Path, paper: str) -> dict[str, bytes]:
    """Read the tables of a paper from a results folder, those of durations left out."""
    paths = sorted((folder / "data").glob(f"{paper}-*.csv"))
    left_out = (*MEASURED, f"{paper}-experiments.csv")  # every change of a notebook changes these
    return {path.name: path.read_bytes() for path in paths if path.name not in left_out}


def freeze(folder: Path) -> None:
    """Keep the tables of all papers from a results folder."""
    for paper in PAPERS:
        with zipfile.ZipFile(archive_of(paper), "w", zipfile.ZIP_LZMA) as archive:
            for name, text in results_of(folder, paper).items():
                archive.writestr(zipfile.ZipInfo(name, DATE), text, zipfile.ZIP_LZMA)


def frozen(paper: str) -> dict[str, bytes]:
    """Read a paper's frozen tables."""
    with zipfile.ZipFile(archive_of(paper)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}
