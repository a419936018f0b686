"""What ``dlsim broker`` does: a virtual organisation from a TOML file, method by method."""

import argparse
import itertools
import math
from functools import partial
from pathlib import Path
from typing import Any, cast

import pandas as pd

from dlsim.cli.words import folder_of, names_of, reading_of, write_tables
from dlsim.errors import InputError
from dlsim.files import Fields, Row, Schema, placed, read_tables
from dlsim.given import MOST_WHOLE, anything, flag, items, number, option, real, text, whole
from dlsim.progress import step
from dlsim.steady.broker import Broker
from dlsim.steady.model import Network, Reading
from dlsim.steady.routes import Limits, Share

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


_COUNT = partial(whole, low=-MOST_WHOLE, rule="a whole number")
#: The fields of each table of the file.
TABLES: Schema = {
    "site": {"name": text, "gateway": real, "speed?": real},
    "link": {"name": text, "bandwidth": real, "connections?": real},
    "route": {"between": items, "links": items, "one_way?": flag},
    "share": {"site": text, "origins": items, "share": real},
    "pair": {"connections": _COUNT, "between?": items},
    "event": _event,
}
#: Fields at the top of the file, with their defaults.
TOP = {"period": 1.0, "trust": 0.5, "until": math.inf}


def _ends(sites: list[str], names: list[Any]) -> tuple[int, int]:
    if len(names) != 2:
        raise InputError(f"between must name two sites, got {names!r}")
    first, last = (sites.index(option("site", name, sites)) for name in names)
    return first, last


def _share(sites: list[str], row: Row) -> Share:
    cluster, *origins = (
        sites.index(option("site", name, sites)) for name in (row["site"], *row["origins"])
    )
    return Share(cluster, tuple(origins), row["share"])


def _limits(found: Row, sites: list[str]) -> Limits:
    shares = [placed(row.where, _share, sites, row) for row in found.get("share", ())]
    pairs: dict[tuple[int, int], int] = {}
    for row in found.get("pair", ()):
        placed(row.where, Limits, (), {(0, 1): row["connections"]})
        if "between" in row:
            pairs[placed(row.where, _ends, sites, row["between"])] = row["connections"]
        else:
            every = itertools.combinations(range(len(sites)), 2)
            pairs = {**dict.fromkeys(every, row["connections"]), **pairs}
    return Limits(tuple(shares), pairs or None)


def _network(path: str, found: Row) -> Network:
    rows, wires = found.get("site"), found.get("link", ())
    if not rows:
        raise InputError(f"{path}: at least one [[site]] is needed, with name and gateway")
    sites = [row["name"] for row in rows]
    held = [(row["bandwidth"], row.get("connections", math.inf)) for row in wires]
    names = [row["name"] for row in wires]
    links = pd.DataFrame(held, names, ["bandwidth", "max_connect"])
    routes: dict[tuple[int, int], list[Any]] = {}
    for row in found.get("route", ()):
        k, to = placed(row.where, _ends, sites, row["between"])
        ways = {(k, to): row["links"]}
        if not row.get("one_way", False):
            ways[to, k] = row["links"][::-1]
        for way in (way for way in ways if way in routes):
            there = f"{sites[way[0]]} to {sites[way[1]]}"
            raise InputError(f"{row.where}: {there} has a route already")
        routes |= ways
    gateway, limits = [row["gateway"] for row in rows], _limits(found, sites)
    return cast(Network, placed(path, Network, sites, gateway, links, routes, limits))


def read_organisation(path: str) -> tuple[Row, Network]:
    """Read a file: its tables and top fields, and the network they describe."""
    found = read_tables(path, TABLES, {f"{name}?": real for name in TOP})
    return found, _network(path, found)


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
