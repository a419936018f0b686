"""Trace files in and out: throughput of named links over time, as CSV or NPZ."""

import math
import os
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from dlsim import files
from dlsim.bricks.traces import MOST_VALUES, Floats
from dlsim.errors import InputError
from dlsim.given import LEAST, MOST, in_range, number

#: Columns of a trace file; time in seconds, throughput in Mbit/s (or the unit of the user).
COLUMNS = {"link": "text", "time": "number", "throughput": "nonnegative"}
#: Arrays of an NPZ file and their types: real numbers and texts.
ARRAYS = {"values": "fiu", "step": "fiu", "names": "U"}
#: Most links of an NPZ file: a name takes far more memory than it declares.
MOST_LINKS = 2**20
#: How far from regular, in steps, time stamps may be.
_JITTER = 1e-6


@dataclass(frozen=True, eq=False)
class Traces:
    """Traces of named links, all with one step."""

    values: Floats
    step: float
    names: tuple[str, ...]

    def __post_init__(self) -> None:
        """Refuse what is no table of traces."""
        check_values(self.values, self.step)
        if self.values.ndim != 2 or len(self.names) != len(self.values):
            raise InputError(
                f"traces need one name per row: {len(self.names)} names, "
                f"values of shape {self.values.shape}"
            )
        if len(set(self.names)) != len(self.names):
            raise InputError("traces need a different name for every row")


def check_values(values: NDArray[np.float64], step: float) -> None:
    """Refuse traces that no transfer could use."""
    number("step", step, above=True, rule="a finite number of seconds above 0")
    if values.ndim < 1 or values.size == 0:
        raise InputError(f"traces need at least one step, got shape {values.shape}")
    bad = ~((values >= 0) & in_range(values))
    bad[..., -1] |= values[..., -1] == 0
    if bad.any():
        at = tuple(int(i) for i in np.argwhere(bad)[0])
        raise InputError(
            f"trace values must be 0 or between {LEAST:g} and {MOST:g}, the last "
            f"of a trace above 0 because it is held after the end; position {at} holds {values[at]}"
        )


def write_traces(path: files.StrPath, traces: Traces) -> None:
    """Write traces to a file, whole or not at all; `read_traces` reads the same back."""
    suffix, (links, steps) = Path(path).suffix.lower(), traces.values.shape
    if suffix == ".csv":
        columns = {
            "link": np.repeat(np.array(traces.names, dtype=object), steps),
            "time": np.tile(np.arange(steps) * float(traces.step), links),
            "throughput": traces.values.ravel(),
        }
        files.write_csv(path, pd.DataFrame(columns))
    elif suffix == ".npz":
        stream, step, names = BytesIO(), np.float64(traces.step), np.array(traces.names)
        np.savez_compressed(stream, values=traces.values, step=step, names=names)
        files.write_bytes(path, stream.getvalue())
    else:
        raise InputError(f"{os.fspath(path)}: a trace file ends in .csv or .npz, not {suffix!r}")


def _read_npz(path: files.StrPath, limit: int) -> Traces:
    arrays = files.read_arrays(path, ARRAYS, limit)
    values, step, names = (arrays[name] for name in ARRAYS)
    if step.size != 1 or values.ndim != 2 or names.shape != values.shape[:1] or not values.size:
        raise InputError(
            f"{os.fspath(path)}: values must be a table of links and steps, step one number and "
            f"names one text per link; got shapes {values.shape}, {step.shape}, {names.shape}"
        )
    if values.size * 8 > limit or names.size > MOST_LINKS:
        raise InputError(
            f"{os.fspath(path)}: {names.size} links of {values.shape[1]} steps, more than "
            f"{MOST_LINKS} links or {limit} bytes; split it or raise limit"
        )
    found = values.astype(float, copy=False), float(step.reshape(())), tuple(map(str, names))
    return files.placed(os.fspath(path), Traces, *found)


def _refuse(path: files.StrPath, link: object, what: str, field: str = "time") -> InputError:
    return InputError(f"{os.fspath(path)}, link {link}, field {field}: {what}")


def _stamps(path: files.StrPath, table: pd.DataFrame) -> dict[str, tuple[Floats, Floats]]:
    """Return rising stamps from 0 on, and values, of every link."""
    if table.empty:
        raise InputError(f"{os.fspath(path)}: holds no value; give a line per link and time")
    start = table["time"].min()
    found = {}
    for link, rows in table.groupby("link", sort=False):
        time = rows["time"].to_numpy() - start
        if not (np.diff(time) > 0).all():
            raise _refuse(path, link, "must rise from line to line; sort the lines by link, time")
        if time[0] != 0:
            raise _refuse(path, link, f"starts {time[0]} s after the first link; cut or fill it")
        if rows["throughput"].iloc[-1] == 0:
            what = "the last value is held after the end, so it must be above 0"
            raise _refuse(path, link, what, "throughput")
        found[str(link)] = time, rows["throughput"].to_numpy()
    return found


def _common_step(path: files.StrPath, stamps: dict[str, tuple[Floats, Floats]]) -> float:
    """Return the step of stamps that are regular and the same for every link."""
    steps = {len(time) for time, _ in stamps.values()}
    if max(steps) == 1:
        raise InputError(f"{os.fspath(path)}: one time stamp tells no step; give read_traces one")
    first = next(iter(stamps.values()))[0]
    step = float(first[1]) if len(first) > 1 else math.nan
    for link, (time, _) in stamps.items():
        regular = np.abs(time - step * np.arange(len(time))) <= _JITTER * step
        if len(steps) > 1 or not regular.all():
            what = "stamps are not the same regular ones for every link"
            raise _refuse(path, link, f"{what}; give read_traces a step to average over")
    return step


def _averaged(time: Floats, values: Floats, step: float, steps: int) -> Floats:
    """Average a piecewise constant curve over each step, so that no Mbit is lost."""
    edges = step * np.arange(steps + 1)
    reach = np.append(time, max(edges[-1], time[-1]))
    moved = np.concatenate([[0.0], np.cumsum(values * np.diff(reach))])
    averages = np.diff(np.interp(edges, reach, moved)) / step
    averages[edges[:-1] >= time[-1]] = values[-1]
    return np.asarray(averages)


def read_traces(path: files.StrPath, step: float | None = None, limit: int | None = None) -> Traces:
    """Read traces from a file, links in the order of their first lines.

    NPZ as `write_traces` leaves it, or CSV (plain or gzip) with the columns link, time in
    seconds and throughput; a value holds until the next time stamp of its link, the last one
    for ever. Rows of one link are in the order of time; all links begin at the same time,
    which becomes 0. With a `step` a CSV file is averaged over steps of so many seconds, so that
    no data volume is lost; else its stamps must be regular and the same for every link. `limit`
    is the most bytes, after decompression and as floats: 256 MiB by default.
    """
    with files.opened(path) as stream:
        packed = stream.read(2) == b"PK"
    if packed:
        return _read_npz(path, limit or files.LIMIT)
    stamps = _stamps(path, files.read_csv(path, COLUMNS, limit=limit or files.LIMIT))
    if step is None:
        step = _common_step(path, stamps)
        values = np.array([row for _, row in stamps.values()])
        return files.placed(os.fspath(path), Traces, values, step, tuple(stamps))
    check_values(np.ones(1), step)
    steps = math.ceil(max(time[-1] for time, _ in stamps.values()) / step) + 1
    if steps * len(stamps) > MOST_VALUES:
        raise InputError(f"step {step} s makes {steps} steps a link; choose a longer one")
    rows = [_averaged(time, row, float(step), steps) for time, row in stamps.values()]
    return files.placed(os.fspath(path), Traces, np.array(rows), float(step), tuple(stamps))
