"""What ``dlsim broker`` does: a virtual organisation from a TOML file, method by method."""

import argparse
import math
from functools import partial
from pathlib import Path
from typing import Any, cast

import pandas as pd

from dlsim.cli.words import folder_of, names_of, reading_of, write_tables
from dlsim.errors import InputError
from dlsim.files import Fields, Row, Schema, placed, read_tables
from dlsim.given import anything, number, option, real, text
from dlsim.progress import step
from dlsim.steady.broker import Broker
from dlsim.steady.model import Network, Reading
from dlsim.steady.store import SCHEMA, network_of
from dlsim.steady.store import TOP as PLATFORM_TOP

#: What each event holds beside `at` and `do`: what the broker's method takes; ? marks what
#: may be missing.
EVENTS: dict[str, Fields] = {
    "register": {"site": text, "speed": real},
    "withdraw": {"site": text},
    "deliver": {"site": text, "speed": real},
    "submit": {
        "name": text, "origin": text, "load": real,
        "priority?": anything, "work?": real, "data?": real,
    },
}  # fmt: skip


def _event(row: Any) -> Fields:
    action = option("do", row.get("do") if isinstance(row, dict) else None, EVENTS)
    time = partial(number, rule="a finite time of at least 0")
    return {"at": time, "do": text, **EVENTS[action]}


_SITE: Fields = {"name": text, "gateway": real, "speed?": real, "router?": text}
#: The tables of the file: those of a platform, whose applications are for ``dlsim solve``.
TABLES: Schema = {**SCHEMA, "cluster": _SITE, "site": _SITE, "event": _event}
#: Fields at the top of the file, with their defaults.
TOP = {"period": 1.0, "trust": 0.5, "until": math.inf}


def _network(found: Row) -> Network:
    network = network_of(found)
    names, _ = network.pop("names"), network.pop("router")
    return Network(names, **network)


def read_organisation(path: str) -> tuple[Row, Network]:
    """Read a file: its tables and top fields, and the network they describe."""
    found = read_tables(path, TABLES, {**PLATFORM_TOP, **{f"{name}?": real for name in TOP}})
    found["site"] = found.pop("cluster", []) + found.get("site", [])
    if not found["site"]:
        raise InputError(f"{path}: at least one [[site]] is needed, with name and gateway")
    return found, placed(path, _network, found)


def run_file(path: str, method: str, seed: int = 0, reading: Reading | None = None) -> Broker:
    """Let a broker go through the events of a file."""
    found, network = read_organisation(path)
    period, trust, until = (found.get(name, default) for name, default in TOP.items())
    broker = placed(path, Broker, network, method, period, trust, seed, reading)
    for row in (row for row in found["site"] if "speed" in row):
        placed(f"{path}, site {row['name']!r}", broker.register, row["name"], row["speed"])
    for row in sorted(found.get("event", ()), key=lambda row: row["at"]):
        if (when := row.pop("at")) <= until:
            broker.advance(when)
            placed(row.where, getattr(broker, row.pop("do")), **row)
    placed(path, broker.advance, until)
    return cast(Broker, broker)


def main(args: argparse.Namespace) -> int:
    """Run the broker by each method, print what came of it, and keep the tables if asked to."""
    reading = Reading.of(reading_of(args.reading))
    home = folder_of(args, "broker")
    methods = list(dict.fromkeys(names_of(args.compare, args.method or None, "G")))
    brokers = {}
    for name in methods:
        step(f"going through the events by {name}")
        brokers[name] = run_file(args.file, name, args.seed, reading)
    table = pd.DataFrame({name: broker.summary() for name, broker in brokers.items()}).T
    table.index.name = "method"
    shown = "{:.4g}".format
    first = brokers[methods[0]]
    print(f"{methods[0]}, until {first.now:g}")
    print(first.applications.to_string(float_format=shown))
    print(f"\n{table.to_string(float_format=shown)}")
    print("\nevery schedule passed its check: speeds, gateways, connections, policies")
    if home:
        record = {"file": Path(args.file).name, "reading": reading.changes(), "seed": args.seed}
        kept = ("applications", "schedules", "rates", "sites")
        each = {f"{n}-{what}": getattr(b, what) for n, b in brokers.items() for what in kept}
        write_tables(home, record, {"summary": table, **each})
    return 0
