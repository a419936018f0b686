"""Freeze results anew: `python -m tests.golden.freeze [ENGINE ...] [--figures RESULTS]`.

Only for a change that is meant to move results: say in the commit which moved, and why.
RESULTS is the folder of `dlsim reproduce --scale quick`.
"""

import argparse
from pathlib import Path

from tests.golden import (
    blocks,
    bricks_runs,
    cpugpu_runs,
    figures,
    realtime_runs,
    steady_runs,
    versions,
)

#: The random runs of every engine, by its name.
ENGINES = {
    "realtime": realtime_runs.run,
    "steady": steady_runs.run,
    "cpugpu": cpugpu_runs.run,
    "bricks": bricks_runs.run,
}


def main() -> None:
    """Freeze the engines that are named, and figures if a folder is."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("engines", nargs="*", choices=[[], *ENGINES])
    parser.add_argument("--figures", type=Path, metavar="RESULTS")
    arguments = parser.parse_args()
    for engine in arguments.engines:
        blocks.freeze(engine, blocks.write_blocks(ENGINES[engine]))
    if arguments.figures:
        figures.freeze(arguments.figures)
    versions.freeze()


if __name__ == "__main__":
    main()
