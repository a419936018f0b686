"""What ``dlsim broker`` does: a virtual organisation from a TOML file, method by method."""

import argparse
import math
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from dlsim import __version__
from dlsim.cli.words import folder_of, reading_of, write_tables
from dlsim.errors import InputError
from dlsim.files import read_toml
from dlsim.given import number
from dlsim.owned import Owned
from dlsim.steady.broker import Broker
from dlsim.steady.limits import Limits, Share
from dlsim.steady.model import Reading
from dlsim.steady.sites import Network

#: What each table of the file must and may hold, by the type of each field.
TABLES: dict[str, tuple[dict[str, type], dict[str, type]]] = {
    "site": ({"name": str, "gateway": float}, {"speed": float}),
    "link": ({"name": str, "bandwidth": float}, {"connections": float}),
    "route": ({"between": list, "links": list}, {"one_way": bool}),
    "share": ({"site": str, "origins": list, "share": float}, {}),
    "pair": ({"connections": int}, {"between": list}),
}
#: What each event must and may hold beside `at` and `do`; its fields are the broker's.
EVENTS: dict[str, tuple[dict[str, type], dict[str, type]]] = {
    "register": ({"site": str, "speed": float}, {}),
    "withdraw": ({"site": str}, {}),
    "deliver": ({"site": str, "speed": float}, {}),
    "submit": (
        {"name": str, "origin": str, "load": float},
        {"priority": object, "work": float, "data": float},
    ),
}
#: Fields at the top of the file, with their defaults.
TOP: dict[str, Any] = {"period": 1.0, "trust": 0.5, "until": math.inf}

_WORDS = {
    str: "a text", float: "a number", int: "a whole number", bool: "true or false",
    object: "a number or a table of numbers by site",
}  # fmt: skip


def _typed(where: str, name: str, value: Any, kind: type) -> Any:
    """Return a field of its type; a whole number serves as a number."""
    fits = isinstance(value, int | float if kind is float else kind)
    if not fits or (isinstance(value, bool) and kind is not bool):
        raise InputError(f"{where}: {name} must be {_WORDS.get(kind, 'a list')}, got {value!r}")
    return float(value) if kind is float else value


def _fields(
    where: str, row: Any, required: Mapping[str, type], optional: Mapping[str, type]
) -> dict[str, Any]:
    if not isinstance(row, dict):
        raise InputError(f"{where}: must be a table of fields, got {row!r}")
    known = {**required, **optional}
    for name in required:
        if name not in row:
            raise InputError(f"{where}: {name} is missing; it needs {', '.join(required)}")
    for name in row:
        if name not in known:
            raise InputError(f"{where}: no field is called {name!r}; known: {', '.join(known)}")
    return {name: _typed(where, name, value, known[name]) for name, value in row.items()}


def _rows(path: str, document: dict[str, Any], table: str) -> list[tuple[str, dict[str, Any]]]:
    """Return (where, fields) of each row of a table of the file."""
    given = document.get(table, [])
    if not isinstance(given, list):
        raise InputError(f"{path}: {table} must be written as [[{table}]], once per {table}")
    places = [f"{path}, {table} {i}" for i in range(1, len(given) + 1)]
    return [(at, _fields(at, row, *TABLES[table])) for at, row in zip(places, given, strict=True)]


def _number(where: str, sites: list[str], name: object) -> int:
    if name not in sites:
        raise InputError(f"{where}: site must be one of {', '.join(sites)}; got {name!r}")
    return sites.index(str(name))


def _ends(where: str, sites: list[str], names: list[Any]) -> tuple[int, int]:
    if len(names) != 2:
        raise InputError(f"{where}: between must name two sites, got {names!r}")
    return _number(where, sites, names[0]), _number(where, sites, names[1])


def _placed(where: str, build: Callable[[], Any]) -> Any:
    """Build something; name the place in the file if it is refused."""
    try:
        return build()
    except InputError as error:
        raise InputError(f"{where}: {error}") from error


def _limits(path: str, document: dict[str, Any], sites: list[str]) -> Limits:
    shares = []
    for at, row in _rows(path, document, "share"):
        origins = tuple(_number(at, sites, name) for name in row["origins"])
        cluster = _number(at, sites, row["site"])
        shares.append(_placed(at, partial(Share, cluster, origins, row["share"])))
    pairs: dict[tuple[int, int], int] = {}
    for at, row in _rows(path, document, "pair"):
        _placed(at, partial(Limits, (), {(0, 1): row["connections"]}))
        if "between" in row:
            pairs[_ends(at, sites, row["between"])] = row["connections"]
        else:
            every = [(k, to) for k in range(len(sites)) for to in range(k + 1, len(sites))]
            pairs = {**dict.fromkeys(every, row["connections"]), **pairs}
    return Limits(tuple(shares), pairs or None)


def network_of(path: str, document: dict[str, Any]) -> tuple[Network, dict[str, float]]:
    """Read the network out of a document."""
    rows = [row for _, row in _rows(path, document, "site")]
    if not rows:
        raise InputError(f"{path}: at least one [[site]] is needed, with name and gateway")
    sites = [row["name"] for row in rows]
    wires = [row for _, row in _rows(path, document, "link")]
    links = pd.DataFrame(
        {
            "bandwidth": [row["bandwidth"] for row in wires],
            "max_connect": [row.get("connections", math.inf) for row in wires],
        },
        index=[row["name"] for row in wires],
    )
    routes: dict[tuple[int, int], list[Any]] = {}
    for at, row in _rows(path, document, "route"):
        k, to = _ends(at, sites, row["between"])
        ways = {(k, to): row["links"]}
        if not row.get("one_way", False):
            ways[to, k] = row["links"][::-1]
        for way in (way for way in ways if way in routes):
            raise InputError(f"{at}: {sites[way[0]]} to {sites[way[1]]} has a route already")
        routes |= ways
    limits = _limits(path, document, sites)
    gateway = [row["gateway"] for row in rows]
    network = _placed(path, lambda: Network(sites, gateway, links, routes, limits))
    return network, {row["name"]: row["speed"] for row in rows if "speed" in row}


def events_of(path: str, document: dict[str, Any]) -> list[tuple[float, str, str, dict[str, Any]]]:
    """Read the events out of a document, in order of time."""
    given = document.get("event", [])
    if not isinstance(given, list):
        raise InputError(f"{path}: event must be written as [[event]], once per event")
    events = []
    for i, row in enumerate(given, start=1):
        at = f"{path}, event {i}"
        action = row.get("do") if isinstance(row, dict) else None
        if not isinstance(action, str) or action not in EVENTS:
            raise InputError(f"{at}: do must be one of {', '.join(EVENTS)}; got {action!r}")
        required, optional = EVENTS[action]
        fields = _fields(at, row, {"at": float, "do": str, **required}, optional)
        when = fields.pop("at")
        when = number(f"{at}: at", when, rule="a finite time of at least 0")
        events.append((when, at, fields.pop("do"), fields))
    return sorted(events, key=lambda event: event[0])


def run_file(path: str, method: str, seed: int = 0, reading: Reading | None = None) -> Broker:
    """Let a broker go through the events of a file."""
    facts, network, speeds, events = read_organisation(path)
    make = (network, method, facts["period"], facts["trust"], seed, reading)
    broker = _placed(path, lambda: Broker(*make))
    for site, speed in speeds.items():
        _placed(f"{path}, site {site!r}", partial(broker.register, site, speed))
    for when, at, action, fields in events:
        if when <= facts["until"]:
            broker.advance(when)
            _placed(at, partial(getattr(broker, action), **fields))
    _placed(path, partial(broker.advance, facts["until"]))
    return broker


def read_organisation(path: str) -> tuple[dict[str, float], Network, dict[str, float], list[Any]]:
    """Read a file: its top fields, and what `network_of` and `events_of` find."""
    document = read_toml(path)
    top = {name: value for name, value in document.items() if name not in {*TABLES, "event"}}
    facts = {**TOP, **_fields(path, top, {}, dict.fromkeys(TOP, float))}
    return facts, *network_of(path, document), events_of(path, document)


def main(args: argparse.Namespace) -> int:
    """Run the broker by each method, print what came of it, and keep the tables if asked to."""
    reading = Reading.of(reading_of(args.reading))
    home = folder_of(args, "broker")
    chosen = args.compare or args.method or "G"
    methods = list(dict.fromkeys(name.strip() for name in chosen.split(",")))
    if args.compare and args.method and args.method not in methods:
        methods.insert(0, args.method)
    brokers = {name: run_file(args.file, name, args.seed, reading) for name in methods}
    table = pd.DataFrame({name: broker.summary() for name, broker in brokers.items()}).T
    table.index.name = "method"
    shown = "{:.4g}".format
    first = brokers[methods[0]]
    print(f"{methods[0]}, until {first.now:g}")
    print(first.applications.to_string(float_format=shown))
    print(f"\n{table.to_string(float_format=shown)}")
    print("\nevery schedule passed its check: speeds, gateways, connections, policies")
    if home:
        _keep(home, args, reading, brokers, table)
    return 0


def _keep(
    home: Owned,
    args: argparse.Namespace,
    reading: Reading,
    brokers: dict[str, Broker],
    table: pd.DataFrame,
) -> None:
    """Write the summary, the tables of each method, and what they came from."""
    record = {
        "software": {"name": "dlsim", "version": __version__},
        "file": Path(args.file).name,
        "reading": reading.changes(),
        "seed": args.seed,
    }
    tables = {"summary": table}
    for name, broker in brokers.items():
        for what in ("applications", "schedules", "rates", "sites"):
            tables[f"{name}-{what}"] = getattr(broker, what)
    write_tables(home, record, tables)
