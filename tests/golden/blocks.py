"""Text blocks of random runs: written once by `freeze`, compared byte for byte by the test.

A block has a headline (number, what ran) and lines of numbers. A float is written as its shortest
text that reads back to the same float, so equal blocks are equal bytes.
"""

import hashlib
import lzma
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
import pandas as pd

FOLDER = Path(__file__).parent
#: Random runs of every engine.
RUNS = 2_000


def cell(value: object) -> str:
    """Write one value."""
    if isinstance(value, float | np.floating):
        return repr(float(value)).removesuffix(".0")
    if isinstance(value, bool | np.bool_):
        return str(int(value))
    return str(value)


def lines(table: pd.DataFrame, columns: Iterable[str] = ()) -> str:
    """Write the columns of a table, a line a row."""
    chosen = [table[name].tolist() for name in columns or table.columns]
    return "\n".join(",".join(map(cell, row)) for row in zip(*chosen, strict=True))


def digest(*arrays: np.ndarray | pd.Series) -> str:
    """Write long arrays as sixteen digits."""
    found = hashlib.sha256()
    for array in arrays:
        found.update(np.ascontiguousarray(array, dtype=float).tobytes())
    return found.hexdigest()[:16]


def write_blocks(run: Callable[[int], str]) -> str:
    """Run all numbers and join their blocks."""
    return "\n\n".join(f"# {number} {run(number)}" for number in range(RUNS)) + "\n"


def path_of(engine: str) -> Path:
    """Return the file of an engine's frozen runs."""
    return FOLDER / f"{engine}.txt.xz"


def freeze(engine: str, text: str) -> None:
    """Keep an engine's blocks."""
    path_of(engine).write_bytes(lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME))


def frozen(engine: str) -> list[str]:
    """Read an engine's blocks."""
    return lzma.decompress(path_of(engine).read_bytes()).decode().rstrip("\n").split("\n\n")
