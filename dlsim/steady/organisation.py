"""Virtual organisations in files: those of platforms, with events."""

import math
import os
from collections.abc import Callable
from functools import partial
from typing import Any

from dlsim.errors import InputError
from dlsim.files import Fields, Row, Schema, StrPath, placed
from dlsim.given import Seed, number, option, real, text
from dlsim.steady.broker import EVENTS, METHOD, Broker
from dlsim.steady.model import Reading
from dlsim.steady.network import Network
from dlsim.steady.store import SCHEMA, network_of, read
from dlsim.steady.store import TOP as PLATFORM_TOP


def _event(row: Any) -> Fields:
    action = option("do", row.get("do") if isinstance(row, dict) else None, EVENTS)
    time = partial(number, rule="a finite time of at least 0")
    return {"at": time, "do": text, **EVENTS[action]}


_SITE = EVENTS["add_site"]
#: The tables of the file: those of a platform, whose applications are for ``dlsim solve``.
TABLES: Schema = {**SCHEMA, "cluster": _SITE, "site": _SITE, "event": _event}
#: Fields at the top of the file, with their defaults.
TOP = {"period": 1.0, "trust": 0.5, "until": math.inf}


def read_organisation(path: str) -> tuple[Row, Network]:
    """Read a file: its tables and top fields, and the network they describe."""
    found = read(path, TABLES, {**PLATFORM_TOP, **{f"{name}?": real for name in TOP}}, 1)
    if not found["site"]:
        raise InputError(f"{path}: at least one [[site]] is needed, with name and gateway")
    return found, placed(path, network_of, found)


def run_file(
    path: StrPath, method: str = METHOD, seed: Seed = 0, reading: Reading | None = None,
    most_seconds: float = math.inf, on_schedule: Callable[[Broker], object] | None = None,
    until: float | None = None,
) -> Broker:  # fmt: skip
    """Let a broker go through the events of a file, as ``dlsim broker`` does.

    Parameters
    ----------
    path : path
        TOML or JSON: the tables of `read_platform`, a site's speed optional (with one it is
        registered from the beginning), and [[event]]: at (a time), do (one of
        `dlsim.steady.broker.EVENTS`) and its fields; beside them period, trust and until.
    method, seed, reading, most_seconds, on_schedule
        As in `Broker`.
    until : float, optional
        Where to stop, for what happens then to be told by `Broker.event`; by default that of
        the file, or when nothing more can happen.

    Returns
    -------
    Broker
        At that time.

    Raises
    ------
    InputError
        Naming the file and, of an event, the line.
    """
    path = os.fspath(path)
    found, network = read_organisation(path)
    period, trust, end = (found.get(name, default) for name, default in TOP.items())
    until = end if until is None else until
    broker = placed(path, Broker, network, method, period, trust, seed, reading, most_seconds)
    broker.on_schedule = on_schedule
    for row in (row for row in found["site"] if "speed" in row):
        placed(f"{path}, site {row['name']!r}", broker.register, row["name"], row["speed"])
    for row in sorted(found.get("event", ()), key=lambda row: row["at"]):
        if (when := row.pop("at")) <= until:
            placed(row.where, broker.at(when).event, row.pop("do"), **row)
    placed(path, broker.at, until)
    return broker
