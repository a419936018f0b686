"""Platforms in files: TOML and JSON.

A file lists ``[[cluster]]`` or ``[[site]]`` (name, speed, gateway, router), ``[[application]]``
(name, origin, priority, work, data), ``[[link]]`` (name, start, end, weight, one_way, and bandwidth
with max_connect or connections, infinite where missing; or capacity with one of the two) and
``[[route]]`` (from, to, links; or between, links, one_way: the way back is the same reversed). A
site is called by name, or by number from 0. Without any route the clusters' routers (or names) are
joined over the links' ends by `shortest_routes`, by weight where a link has one. ``[[share]]``
(site, origins, share) and ``[[pair]]`` (connections, between) are owners' policies; ``[limits]``
may hold them as pairs, a number, and lists ``pair`` (from, to, most) and ``share`` (cluster,
origins, share). What else ``dlsim broker`` takes may stand in the same file. ``network = "FILE"``
takes sites, links, routes and, unless the file has its own, applications from a file of another
kind beside it (`dlsim.steady.foreign`).
"""

import itertools
import json
import math
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from dlsim import given
from dlsim.errors import InputError
from dlsim.files import Fields, Row, Schema, StrPath, placed, read_tables, tables_of, write_text
from dlsim.given import anything, flag, instance, items, member, number, option, real, text, whole
from dlsim.steady.foreign import read_document
from dlsim.steady.model import Platform
from dlsim.steady.network import Network, held
from dlsim.steady.routes import Limits, Share


def label(name: str, value: Any) -> Any:
    """Return what names a link or a router: a text or a number."""
    if isinstance(value, str | int | float) and not isinstance(value, bool) and value == value:
        return value
    raise InputError(f"{name} must be a text or a number, got {value!r}")


def labels(name: str, value: Any) -> list[Any]:
    """Return a list of labels of links."""
    return [label(name, one) for one in items(name, value)]


def _amount(name: str, value: Any, above: bool = False) -> float:
    return float(number(name, real(name, value), above=above))


def _priority(name: str, value: Any) -> Any:
    """Return a priority, or a list of those on each site."""
    is_list = isinstance(value, list)
    return [_amount(name, one) for one in value] if is_list else _amount(name, value)


def _place(name: str, value: Any) -> Any:
    """Return the name or number of a site; which there are is known later."""
    return value if isinstance(value, str) else whole(name, value, 0)


def _route(row: Any) -> Fields:
    is_pair = isinstance(row, dict) and "between" in row
    ends: Fields = {"between": items, "one_way?": flag} if is_pair else dict.fromkeys(ENDS, _place)
    return {**ends, "links": labels}


ENDS = ("from", "to")
_NUMBERS = ("bandwidth", "max_connect")
_COUNT = partial(whole, low=-given.MOST_WHOLE, rule="a whole number")
_CLUSTER = partial(whole, low=0)
_SITE: Fields = {"name?": text, "speed": _amount, "gateway": _amount, "router?": label}
#: The tables of a file that say what sites there are and what joins them, with their fields;
#: ? marks those that may be missing.
NETWORK: Schema = {
    "cluster": _SITE,
    "site": _SITE,
    "link": {
        "name": label, "bandwidth?": _amount, "max_connect?": real, "connections?": real,
        "capacity?": _amount, "start?": label, "end?": label, "one_way?": flag,
        "weight?": _amount,
    },
    "route": _route,
    "share": {"site": _place, "origins": items, "share": real},
    "pair": {"connections": _COUNT, "between?": items},
}  # fmt: skip
SCHEMA: Schema = {
    **NETWORK,
    "application": {
        "name?": text, "origin": _place, "priority": _priority,
        "work": partial(_amount, above=True), "data": _amount,
    },
}  # fmt: skip
LIMITS: dict[str, Fields] = {
    "pair": {"from": _CLUSTER, "to": _CLUSTER, "most": real},
    "share": {"cluster": _CLUSTER, "origins": items, "share": real},
}


def plain(value: Any) -> Any:
    """Return a value as what JSON and TOML know; an infinite number stays a float."""
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, dict):
        return {name: plain(item) for name, item in value.items()}
    if isinstance(value, np.ndarray | list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return int(value)
    if isinstance(value, Fraction):
        return plain(float(value))
    if value is None or isinstance(value, int | float | str):
        return value
    raise InputError(f"{value!r} has no place in a file; name links and routers by text or number")


def to_document(platform: Platform) -> dict[str, Any]:
    """Return a platform as plain tables."""
    p = instance("platform", platform, Platform)
    links = p.links
    ends = ["start", "end"] if {"start", "end"} <= set(links.columns) else []
    sizes = {"priority": p.priority, "work": p.work, "data": p.data}
    document: dict[str, Any] = {
        "cluster": rows_of(name=p.site_names, speed=p.speed, gateway=p.gateway, router=p.router),
        "application": rows_of(name=p.application_names, origin=p.origin, **sizes),
        "link": rows_of(name=links.index, **links[[*_NUMBERS, *ends]]),
        "route": [{"from": k, "to": to, "links": way} for (k, to), way in sorted(p.routes.items())],
    }
    limits: dict[str, Any] = {}
    if isinstance(p.limits.pairs, Mapping):
        named = sorted(p.limits.pairs.items())
        limits["pair"] = [{"from": k, "to": to, "most": n} for (k, to), n in named]
    elif p.limits.pairs is not None:
        limits["pairs"] = p.limits.pairs
    if p.limits.shares:
        limits["share"] = [vars(cap) for cap in p.limits.shares]
    return plain(document | ({"limits": limits} if limits else {}))


def rows_of(**columns: Any) -> list[dict[str, Any]]:
    """Return columns as rows; one that is None is left out."""
    known = {name: column for name, column in columns.items() if column is not None}
    return [dict(zip(known, row, strict=True)) for row in zip(*known.values(), strict=True)]


def _site(names: Sequence[str], value: Any, name: str = "site") -> int:
    """Return the number of a site that a file names."""
    if isinstance(value, str) and any(names):
        return names.index(option(name, value, [one for one in names if one]))
    return whole(name, value, 0)


def _ends(names: Sequence[str], between: Sequence[Any]) -> tuple[int, int]:
    if len(between) != 2:
        raise InputError(f"between must name two sites, got {between!r}")
    first, last = (_site(names, one) for one in between)
    return first, last


def _share(names: Sequence[str], row: Row) -> Share:
    cluster, *origins = (_site(names, one) for one in (row["site"], *row["origins"]))
    return Share(cluster, tuple(origins), row["share"])


def _limits(found: Row, names: Sequence[str]) -> Limits:
    if "limits" in found and {"share", "pair"} & set(found):
        raise InputError("limits and lists share or pair say the same; give one")
    shares = [placed(row.where, _share, names, row) for row in found.get("share", ())]
    pairs: dict[tuple[int, int], int] = {}
    for row in found.get("pair", ()):
        placed(row.where, Limits, (), {(0, 1): row["connections"]})
        if "between" in row:
            pairs[placed(row.where, _ends, names, row["between"])] = row["connections"]
        else:
            every = itertools.combinations(range(len(names)), 2)
            pairs = {**dict.fromkeys(every, row["connections"]), **pairs}
    return found.get("limits", Limits(tuple(shares), pairs or None))


def _named_routes(
    rows: Sequence[Row], names: Sequence[str], links: set[Any]
) -> dict[tuple[int, int], list[Any]]:
    routes: dict[tuple[int, int], list[Any]] = {}
    for row in rows:
        for link in row["links"]:
            placed(row.where, member, "link", link, links)
        if "between" in row:
            k, to = placed(row.where, _ends, names, row["between"])
        else:
            k, to = (placed(row.where, _site, names, row[end], end) for end in ENDS)
        ways = {(k, to): row["links"]}
        if "between" in row and not row.get("one_way", False):
            ways[to, k] = row["links"][::-1]
        for way in (way for way in ways if way in routes):
            there = " to ".join(names[n] if n < len(names) and names[n] else str(n) for n in way)
            raise InputError(f"{row.where}: {there} has a route already; leave one out")
        routes |= ways
    return routes


def _with_sites(found: Row) -> Row:
    """Return tables with what they call clusters among the sites."""
    found["site"] = found.pop("cluster", []) + found.get("site", [])
    return found


def _names(found: Row) -> list[str]:
    return [row.get("name", "") for row in found["site"]]


def network_of(found: Row) -> Network:
    """Return the network that tables describe; clusters without a name are told by number."""
    sites, rows, names = found["site"], found.get("link", []), _names(found)
    if twice := [name for name, count in Counter(filter(None, names)).items() if count > 1]:
        raise InputError(f"sites must have different names, got {twice[0]!r} twice")
    told = [(row["name"], *placed(row.where, held, row)) for row in rows]
    links = pd.DataFrame(told, columns=["name", *_NUMBERS]).set_index("name")
    links = given.table("links", links, _NUMBERS)  # each label once
    for column in ("start", "end", "one_way", "weight"):
        if any(column in row for row in rows):
            links[column] = [row.get(column) for row in rows]
    routers, routes = [row.get("router") for row in sites], None
    if "route" in found or not rows:
        routes = _named_routes(found.get("route", []), names, set(links.index))
    else:
        routers = [row.get("router", row.get("name")) for row in sites]
        if None in routers or not all({"start", "end"} <= set(row) for row in rows):
            what = "every cluster must name its router (or itself), every link its start and end"
            raise InputError(f"without routes {what}")
        there = set[tuple[Any, Any]]()
        for row in rows:
            way = row["start"], row["end"]
            ways = {way} if row.get("one_way") else {way, way[::-1]}
            if ways & there:
                what = "joins two routers that a link joins already; merge them"
                raise InputError(f"{row.where}: {what}")
            there |= ways
    return Network(
        [name or f"cluster {k}" for k, name in enumerate(names)],
        [row["gateway"] for row in sites], links, routes, _limits(found, names),
        None if None in routers else tuple(routers),
    )  # fmt: skip


def _platform(found: Row) -> Platform:
    network, apps = network_of(found), found.get("application", [])
    names = _names(found)
    origin = [placed(row.where, _site, names, row["origin"], "origin") for row in apps]
    columns: Any = {name: [row[name] for row in apps] for name in ("priority", "work", "data")}
    if any("name" in row for row in apps):
        called = [row.get("name", f"application {number}") for number, row in enumerate(apps)]
        columns["application_names"] = called
    known = network.fields | ({} if any(names) else {"site_names": None})
    return Platform([row["speed"] for row in found["site"]], origin=origin, **known, **columns)


def _read_limits(name: str, document: Any) -> Limits:
    found = tables_of(name, document, LIMITS, {"pairs?": anything}, 0)
    if "pairs" in found and "pair" in found:
        rule = "must hold pairs, one number for all, or a list pair; not both"
        raise InputError(f"{name} {rule}")
    shares = tuple(placed(row.where, Share, **row) for row in found.get("share", ()))
    named = {(row["from"], row["to"]): row["most"] for row in found.get("pair", ())}
    return placed(name, Limits, shares, named or found.get("pairs"))


#: Beside the tables; what only the broker takes is left to it.
TOP: Fields = {
    "limits?": _read_limits,
    **dict.fromkeys(("event?", "period?", "trust?", "until?"), anything),
}


def read_platform(path: StrPath, limit: int | None = None) -> Platform:
    """Read a platform from a TOML or JSON file, or one of networkx or SimGrid.

    Parameters
    ----------
    path : path
        JSON where the name ends in ``.json``, a graph of networkx with ``.graphml`` or
        ``.gml``, a platform of SimGrid with ``.xml``, otherwise TOML.
    limit : int, optional
        Most bytes: of a JSON file 32 MiB, of a TOML file 8 MiB.

    Returns
    -------
    Platform
        See the module for the fields.

    Raises
    ------
    InputError
        For a file that cannot be read or holds no platform; names the file.
    """
    return placed(os.fspath(path), _platform, read(path, SCHEMA, TOP, 0, limit))


def read(
    path: StrPath, schema: Schema, top: Fields, first: int = 0, limit: int | None = None
) -> Row:
    """Return the tables of a file of any kind, with those of the network that it names."""
    if (document := read_document(path)) is not None:
        return _with_sites(tables_of(path, document, schema, top, first))
    found = read_tables(path, schema, {**top, "network?": text}, first, limit)
    if name := found.pop("network", None):
        other = Path(path).parent / name
        if (document := read_document(other)) is None:
            kinds = ".csv, .graphml, .gml or .xml, or a folder with sites.csv and links.csv"
            raise InputError(f"{os.fspath(path)}: network must name a file {kinds}; got {name!r}")
        there = tables_of(other, document, schema, top, first)
        for kind in there.keys() - ({"application"} & found.keys()):
            found[kind] = there[kind] + found.get(kind, [])
    return _with_sites(found)


def write_platform(path: StrPath, platform: Platform) -> None:
    """Write a platform to a TOML or JSON file.

    Parameters
    ----------
    path : path
        As in `read_platform`.
    platform : Platform
        Reads back the same.

    Raises
    ------
    InputError
        For names of links or routers that are neither text nor number, or a place that
        cannot be written to.
    """
    document = to_document(platform)
    if Path(path).suffix == ".json":
        write_text(path, json.dumps(document, indent=1) + "\n")
        return
    lists = [(name, rows) for name, rows in document.items() if isinstance(rows, list)]
    limits = document.get("limits", {})
    lines = [f"{name} = []\n" for name, rows in lists if not rows]
    lines += [line for name, rows in lists for line in _toml(name, rows)]
    if limits:
        lines.append("[limits]")
        lines += [f"pairs = {_value(limits['pairs'])}\n"] if "pairs" in limits else [""]
        for name in ("pair", "share"):
            lines += _toml(f"limits.{name}", limits.get(name, []))
    write_text(path, "\n".join(lines))


def _toml(name: str, rows: list[dict[str, Any]]) -> list[str]:
    tables = [[f"[[{name}]]", *(f"{key} = {_value(v)}" for key, v in row.items())] for row in rows]
    return [line for lines in tables for line in (*lines, "")]


def _value(value: Any) -> str:
    """Return a number, text or list as TOML, which is JSON but for infinity."""
    if isinstance(value, list):
        return "[" + ", ".join(map(_value, value)) + "]"
    if isinstance(value, float):
        return "inf" if math.isinf(value) else repr(value)
    return json.dumps(value, ensure_ascii=True).replace("\x7f", "\\u007f")
