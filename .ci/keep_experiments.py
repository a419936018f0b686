"""Keep the digests of the experiments of runs as those of the shipped ones.

``python .ci/keep_experiments.py RUN ...``, with folders of ``dlsim reproduce`` at quick and at full
scale, writes data/reference/<paper>/<paper>-experiments.csv. It is run after the last change of a
notebook, or of what its sweeps use of it.
"""

import sys
from collections.abc import Iterable
from pathlib import Path

import pandas as pd

REFERENCE = Path(__file__).resolve().parents[1] / "data" / "reference"


def keep(runs: Iterable[Path], reference: Path = REFERENCE) -> None:
    """Write the experiments of runs into the folder of reference results, paper by paper."""
    folders = list(runs)
    for paper in sorted(path.name for path in reference.iterdir()):
        paths = (folder / "data" / f"{paper}-experiments.csv" for folder in folders)
        tables = [pd.read_csv(path, dtype=str) for path in paths if path.is_file()]
        if tables:
            table = pd.concat(tables).drop_duplicates().sort_values(["scale", "sweep", "digest"])
            place = reference / paper / f"{paper}-experiments.csv"
            table.to_csv(place, index=False, lineterminator="\n")


if __name__ == "__main__":
    keep(map(Path, sys.argv[1:]))
