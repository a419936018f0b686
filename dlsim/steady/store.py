"""Platforms in files: TOML and JSON.

A file lists ``[[cluster]]`` (speed, gateway, router), ``[[application]]`` (origin,
priority, work, data), ``[[link]]`` (name, bandwidth, max_connect, start, end) and
``[[route]]`` (from, to, links). Without any route the clusters' routers are joined by
`shortest_routes` over the links' ends. ``[limits]`` may hold pairs, a number, and lists
``pair`` (from, to, most) and ``share`` (cluster, origins, share).
"""

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd

from dlsim.errors import InputError
from dlsim.files import DOCUMENT, TOML, StrPath, read_json, read_toml, write_text
from dlsim.steady.graphs import from_graph
from dlsim.steady.limits import Limits, Share
from dlsim.steady.model import Platform

#: The lists of a file, with the fields that each of their tables needs and may have.
FIELDS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "cluster": (("speed", "gateway"), ("router",)),
    "application": (("origin", "priority", "work", "data"), ()),
    "link": (("name", "bandwidth", "max_connect"), ("start", "end")),
    "route": (("from", "to", "links"), ()),
    "share": (("cluster", "origins", "share"), ()),
    "pair": (("from", "to", "most"), ()),
}


def _plain(value: Any) -> Any:
    """Return a value as what JSON and TOML know; an infinite number stays a float."""
    if isinstance(value, np.generic):
        return _plain(value.item())
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
    document: dict[str, Any] = {
        "cluster": _tables(speed=p.speed, gateway=p.gateway, **routers),
        "application": _tables(origin=p.origin, priority=p.priority, work=p.work, data=p.data),
        "link": _tables(
            name=links.index,
            bandwidth=links["bandwidth"],
            max_connect=links["max_connect"],
            **({"start": links["start"], "end": links["end"]} if ends else {}),
        ),
        "route": [
            {"from": _plain(k), "to": _plain(to), "links": _plain(route)}
            for (k, to), route in sorted(p.routes.items())
        ],
    }
    return document | ({"limits": limits} if (limits := _limits(p.limits)) else {})


def _tables(**columns: Any) -> list[dict[str, Any]]:
    """Return columns of one length as one table per row."""
    lists = {name: list(values) for name, values in columns.items()}
    rows = zip(*lists.values(), strict=True)
    return [dict(zip(lists, map(_plain, row), strict=True)) for row in rows]


def _limits(limits: Limits) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if isinstance(limits.pairs, Mapping):
        found["pair"] = [
            {"from": k, "to": to, "most": _plain(most)}
            for (k, to), most in sorted(limits.pairs.items())
        ]
    elif limits.pairs is not None:
        found["pairs"] = _plain(limits.pairs)
    if limits.shares:
        found["share"] = [
            {"cluster": s.cluster, "origins": list(s.origins), "share": _plain(s.share)}
            for s in limits.shares
        ]
    return found


def _rows(document: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    """Return one list of a document, each table with the fields it needs and no other."""
    rows = document.get(name, [])
    needed, optional = FIELDS[name]
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise InputError(f"{name} must be a list of tables, as in [[{name}]]")
    for number, row in enumerate(rows):
        missing = [field for field in needed if field not in row]
        unknown = [field for field in row if field not in needed + optional]
        if missing or unknown:
            what = f"lacks {missing[0]}" if missing else f"has an unknown field {unknown[0]}"
            raise InputError(f"{name} {number} {what}; it knows {', '.join(needed + optional)}")
    return rows


def _known(where: str, document: Mapping[str, Any], names: tuple[str, ...]) -> None:
    unknown = [name for name in document if name not in names]
    if unknown:
        raise InputError(f"{where} knows {', '.join(names)}; got {unknown[0]!r}")


def from_document(document: Mapping[str, Any]) -> Platform:
    """Build a platform from plain tables."""
    if not isinstance(document, Mapping):
        raise InputError(f"a platform must be a table of lists, got {document!r}")
    _known("a platform", document, ("cluster", "application", "link", "route", "limits"))
    given = {name: _rows(document, name) for name in ("cluster", "application", "link", "route")}
    sites, apps, links, routes = given.values()
    fields: dict[str, Any] = {
        "speed": [row["speed"] for row in sites],
        "gateway": [row["gateway"] for row in sites],
        **{name: [row[name] for row in apps] for name in ("origin", "priority", "work", "data")},
        "limits": _read_limits(document.get("limits", {})),
    }
    routers = [row.get("router") for row in sites]
    ends = [row.get(end) for row in links for end in ("name", "start", "end")]
    for name in (name for name in routers + ends if isinstance(name, list | dict)):
        raise InputError(f"links and routers must be named by text or number, got {name!r}")
    named = all(router is not None for router in routers)
    if "route" not in document and links:
        return _routed(links, routers, fields)
    table = pd.DataFrame(links, columns=["name", "bandwidth", "max_connect", "start", "end"])
    table = table.set_index("name").dropna(axis=1, how="all" if links else "any")
    try:
        pairs = {(int(row["from"]), int(row["to"])): list(row["links"]) for row in routes}
    except (TypeError, ValueError, OverflowError):
        raise InputError("route must lead from a number to a number over a list of links") from None
    return Platform(links=table, routes=pairs, router=tuple(routers) if named else None, **fields)


def _routed(links: list[dict[str, Any]], routers: list[Any], fields: dict[str, Any]) -> Platform:
    if None in routers or not all({"start", "end"} <= set(row) for row in links):
        raise InputError(
            "without routes every cluster must name its router and every link its start and end"
        )
    graph = nx.Graph()
    for row in links:
        if graph.has_edge(row["start"], row["end"]):
            raise InputError(f"link {row['name']!r} joins two routers that a link joins already")
        graph.add_edge(row["start"], row["end"], **{k: row[k] for k in FIELDS["link"][0]})
    graph.add_nodes_from(routers)
    p = from_graph(graph, routers, **fields)
    names = [edge["name"] for _, _, edge in graph.edges(data=True)]
    routes = {pair: [names[i] for i in route] for pair, route in p.routes.items()}
    table = p.links.set_index(pd.Index(names, name="name"))
    return Platform(links=table, routes=routes, router=tuple(routers), **fields)


def _read_limits(document: Any) -> Limits:
    if not isinstance(document, dict):
        raise InputError(f"limits must be a table, got {document!r}")
    _known("limits", document, ("pairs", "pair", "share"))
    if "pairs" in document and "pair" in document:
        raise InputError("limits must hold pairs, one number for all, or a list pair; not both")
    try:
        shares = tuple(Share(**row) for row in _rows(document, "share"))
        named = {(int(r["from"]), int(r["to"])): r["most"] for r in _rows(document, "pair")}
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f"limits cannot be used: {error}") from error
    return Limits(shares, named or document.get("pairs"))


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
    try:
        if Path(path).suffix == ".json":
            document = read_json(path, limit or DOCUMENT)
        else:
            document = read_toml(path, limit or TOML)
        if not isinstance(document, dict):
            raise InputError("a platform must be an object of lists")
        return from_document(document)
    except InputError as error:
        text = str(error)
        raise InputError(text if str(path) in text else f"{path}: {text}") from error


def write_platform(path: StrPath, platform: Platform) -> None:
    """Write a platform to a TOML or JSON file.

    Parameters
    ----------
    path : path
        JSON where the name ends in ``.json``, otherwise TOML.
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
    return [
        line
        for row in rows
        for line in (f"[[{name}]]", *(f"{key} = {_value(v)}" for key, v in row.items()), "")
    ]


def _value(value: Any) -> str:
    """Return a number, text or list as TOML, which is JSON but for infinity."""
    if isinstance(value, list):
        return "[" + ", ".join(map(_value, value)) + "]"
    if isinstance(value, float):
        return "inf" if math.isinf(value) else repr(value)
    return json.dumps(value, ensure_ascii=True).replace("\x7f", "\\u007f")
