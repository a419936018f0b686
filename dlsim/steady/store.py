"""Platforms in files: TOML and JSON.

A file lists ``[[cluster]]`` (speed, gateway, router), ``[[application]]`` (origin,
priority, work, data), ``[[link]]`` (name, bandwidth, max_connect, start, end) and
``[[route]]`` (from, to, links). Without any route the clusters' routers are joined by
`shortest_routes` over the links' ends. ``[limits]`` may hold pairs, a number, and lists
``pair`` (from, to, most) and ``share`` (cluster, origins, share).
"""

import json
import math
import os
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd

from dlsim.errors import InputError
from dlsim.files import Fields, StrPath, placed, read_tables, tables_of, write_text
from dlsim.given import anything, items, real, whole
from dlsim.steady.graphs import from_graph
from dlsim.steady.model import Platform
from dlsim.steady.routes import Limits, Share


def _label(name: str, value: Any) -> Any:
    if isinstance(value, str | int | float):
        return value
    raise InputError(f"{name} must be a text or a number, got {value!r}")


_LINK: Fields = {"name": _label, "bandwidth": real, "max_connect": real}
_CLUSTER = partial(whole, low=0)
#: The lists of a file, with the fields of their tables; ? marks those that may be missing.
SCHEMA: dict[str, Fields] = {
    "cluster": {"speed": real, "gateway": real, "router?": _label},
    "application": {"origin": _CLUSTER, "priority": anything, "work": real, "data": real},
    "link": {**_LINK, "start?": _label, "end?": _label},
    "route": {"from": _CLUSTER, "to": _CLUSTER, "links": items},
}
LIMITS: dict[str, Fields] = {
    "pair": {"from": _CLUSTER, "to": _CLUSTER, "most": real},
    "share": {"cluster": _CLUSTER, "origins": items, "share": real},
}


def _plain(value: Any) -> Any:
    """Return a value as what JSON and TOML know; an infinite number stays a float."""
    if isinstance(value, np.generic):
        return _plain(value.item())
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, np.ndarray | list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return int(value)
    if isinstance(value, int | float | str):
        return value
    raise InputError(f"{value!r} has no place in a file; name links and routers by text or number")


def to_document(platform: Platform) -> dict[str, Any]:
    """Return a platform as plain tables."""
    p, links = platform, platform.links
    ends = {"start", "end"} <= set(links.columns)
    routers = {} if p.router is None else {"router": p.router}
    columns = ["bandwidth", "max_connect", *(("start", "end") if ends else ())]
    ways = sorted(p.routes.items())
    document: dict[str, Any] = {
        "cluster": _tables(speed=p.speed, gateway=p.gateway, **routers),
        "application": _tables(origin=p.origin, priority=p.priority, work=p.work, data=p.data),
        "link": _tables(name=links.index, **{name: links[name] for name in columns}),
        "route": [{"from": k, "to": to, "links": way} for (k, to), way in ways],
    }
    limits: dict[str, Any] = {}
    if isinstance(p.limits.pairs, Mapping):
        named = sorted(p.limits.pairs.items())
        limits["pair"] = [{"from": k, "to": to, "most": n} for (k, to), n in named]
    elif p.limits.pairs is not None:
        limits["pairs"] = p.limits.pairs
    if p.limits.shares:
        limits["share"] = [vars(cap) for cap in p.limits.shares]
    plain: dict[str, Any] = _plain(document | ({"limits": limits} if limits else {}))
    return plain


def _tables(**columns: Any) -> list[dict[str, Any]]:
    rows = zip(*map(list, columns.values()), strict=True)
    return [dict(zip(columns, row, strict=True)) for row in rows]


def from_document(document: Mapping[str, Any]) -> Platform:
    """Build a platform from plain tables."""
    return _platform(tables_of("a platform", document, SCHEMA, TOP, 0))


def _platform(found: Mapping[str, Any]) -> Platform:
    sites, apps, links, routes = (found.get(name, []) for name in SCHEMA)
    fields: dict[str, Any] = {
        **{name: [row[name] for row in sites] for name in ("speed", "gateway")},
        **{name: [row[name] for row in apps] for name in SCHEMA["application"]},
        "limits": found.get("limits", Limits()),
    }
    routers = [row.get("router") for row in sites]
    if "route" not in found and links:
        return _routed(links, routers, fields)
    table = pd.DataFrame(links, columns=[*_LINK, "start", "end"])
    table = table.set_index("name").dropna(axis=1, how="all" if links else "any")
    pairs = {(row["from"], row["to"]): row["links"] for row in routes}
    router = None if None in routers else tuple(routers)
    return Platform(links=table, routes=pairs, router=router, **fields)


def _routed(links: list[dict[str, Any]], routers: list[Any], fields: dict[str, Any]) -> Platform:
    if None in routers or not all({"start", "end"} <= set(row) for row in links):
        what = "every cluster must name its router and every link its start and end"
        raise InputError(f"without routes {what}")
    graph = nx.Graph()
    for row in links:
        if graph.has_edge(row["start"], row["end"]):
            raise InputError(f"link {row['name']!r} joins two routers that a link joins already")
        graph.add_edge(row["start"], row["end"], **{k: row[k] for k in _LINK})
    graph.add_nodes_from(routers)
    p = from_graph(graph, routers, **fields)
    names = [edge["name"] for _, _, edge in graph.edges(data=True)]
    routes = {pair: [names[i] for i in route] for pair, route in p.routes.items()}
    table = p.links.set_index(pd.Index(names, name="name"))
    return Platform(links=table, routes=routes, router=tuple(routers), **fields)


def _read_limits(name: str, document: Any) -> Limits:
    found = tables_of(name, document, LIMITS, {"pairs?": anything}, 0)
    if "pairs" in found and "pair" in found:
        rule = "must hold pairs, one number for all, or a list pair; not both"
        raise InputError(f"{name} {rule}")
    shares = tuple(placed(row.where, Share, **row) for row in found.get("share", ()))
    named = {(row["from"], row["to"]): row["most"] for row in found.get("pair", ())}
    return placed(name, Limits, shares, named or found.get("pairs"))


TOP: Fields = {"limits?": _read_limits}


def read_platform(path: StrPath, limit: int | None = None) -> Platform:
    """Read a platform from a TOML or JSON file.

    Parameters
    ----------
    path : path
        JSON where the name ends in ``.json``, otherwise TOML.
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
    return placed(os.fspath(path), _platform, read_tables(path, SCHEMA, TOP, 0, limit))


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
