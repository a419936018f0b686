"""Platforms in TOML files.

``[[cluster]]`` (name, speed, gateway, router), ``[[application]]`` (name, origin, priority, work,
data), ``[[link]]`` (name, bandwidth, max_connect, start, end) and ``[[route]]`` (from, to, links)
list what a `Platform` holds, and ``[limits]`` its policies: pairs, one number for every pair of
clusters, or a list ``[[limits.pair]]`` (from, to, most), and a list ``[[limits.share]]`` (cluster,
origins, share). Names and routers may be left out, and so may the max_connect of a link without
a limit. A cluster is given by its name, or by its number from 0.

A route and a pair may have ``between``, a list of two clusters, in place of from and to: such a
route leads both ways, back over the same links in reverse order.

A file without any ``[[route]]`` gets `shortest_routes`: the links' start and end name the routers
that they join, and a cluster without a router stands on one that has its name. A platform of one
cluster needs no routes.
"""

import math
import os
from collections.abc import Sequence
from functools import partial
from typing import Any

import pandas as pd

from dlsim import validate
from dlsim.errors import InputError
from dlsim.files import MAX_TOML_BYTES, Row, Schema, StrPath, located, parse_tables, read_tables
from dlsim.steady.graphs import routes_from_links
from dlsim.steady.model import Platform, check_names
from dlsim.steady.routes import Limits, Share
from dlsim.validate import any_number, items, number, one_of, one_of_many, text, unchecked, whole


def _check_label(name: str, value: Any) -> Any:
    """Return a checked label of a link or a router: a text or a number."""
    if isinstance(value, str | int | float) and not isinstance(value, bool) and value == value:
        return value
    raise InputError(f"{name} must be a text or a number, got {value!r}")


def _check_labels(name: str, value: Any) -> list[Any]:
    return [_check_label(name, one) for one in items(name, value)]


def _check_amount(name: str, value: Any, above: bool = False) -> float:
    return float(number(name, any_number(name, value), above=above))


def _check_priority(name: str, value: Any) -> Any:
    """Return a priority, or a list of those on each cluster."""
    is_list = isinstance(value, list)
    return [_check_amount(name, one) for one in value] if is_list else _check_amount(name, value)


def _check_cluster(name: str, value: Any) -> Any:
    """Return a name or number of a cluster, which is looked up later."""
    return value if isinstance(value, str) else whole(name, value, 0)


def _check_clusters(name: str, value: Any) -> list[Any]:
    return [_check_cluster(name, one) for one in items(name, value)]


_ENDS = ("from", "to")
#: The tables of a file with their fields; ? marks optional fields.
PLATFORM_TABLES: Schema = {
    "cluster": {
        "name?": text,
        "speed": _check_amount,
        "gateway": _check_amount,
        "router?": _check_label,
    },
    "application": {
        "name?": text,
        "origin": _check_cluster,
        "priority": _check_priority,
        "work": partial(_check_amount, above=True),
        "data": _check_amount,
    },
    "link": {
        "name": _check_label,
        "bandwidth": _check_amount,
        "max_connect?": any_number,
        "start?": _check_label,
        "end?": _check_label,
    },
    "route": {
        "from?": _check_cluster,
        "to?": _check_cluster,
        "between?": _check_clusters,
        "links": _check_labels,
    },
}
#: The tables inside the table ``limits``.
LIMIT_TABLES: Schema = {
    "pair": {
        "from?": _check_cluster,
        "to?": _check_cluster,
        "between?": _check_clusters,
        "most": any_number,
    },
    "share": {"cluster": _check_cluster, "origins": _check_clusters, "share": any_number},
}


def _find_cluster(names: Sequence[str], name: str, value: Any) -> int:
    """Return the number of a cluster that a file names."""
    if isinstance(value, str) and any(names):
        return names.index(one_of(name, value, [one for one in names if one]))
    return whole(name, value, 0)


def _read_ends(names: Sequence[str], row: Row) -> tuple[int, int]:
    """Return the two clusters of a route or a pair, which have from and to, or between."""
    if "between" in row:
        ends = row["between"]
        if len(ends) != 2 or not row.keys().isdisjoint(_ENDS):
            rule = "between must list two clusters, without from and to"
            raise InputError(f"{row.where}: {rule}; got {dict(row)}")
        labels = ("between", "between")
    else:
        for end in _ENDS:
            if end not in row:
                raise InputError(f"{row.where}: {end} is missing; give from and to, or between")
        ends, labels = [row[end] for end in _ENDS], _ENDS
    k, to = map(partial(located, row.where, _find_cluster, names), labels, ends)
    return k, to


def _read_limits(name: str, document: Any) -> Row:
    """Return the tables inside ``limits``."""
    return parse_tables(name, document, LIMIT_TABLES, {"pairs?": unchecked}, 0)


def _build_limits(found: Row, names: Sequence[str]) -> Limits:
    if "pairs" in found and "pair" in found:
        rule = "must hold pairs, one number for all, or a list pair; not both"
        raise InputError(f"{found.where} {rule}")
    shares = []
    for row in found.get("share", ()):
        cluster = located(row.where, _find_cluster, names, "cluster", row["cluster"])
        origins = [
            located(row.where, _find_cluster, names, "origins", one) for one in row["origins"]
        ]
        shares.append(located(row.where, Share, cluster, tuple(origins), row["share"]))
    pairs = {_read_ends(names, row): row["most"] for row in found.get("pair", ())}
    return located(found.where, Limits, tuple(shares), pairs or found.get("pairs"))


def _read_routes(
    rows: Sequence[Row], names: Sequence[str], links: set[Any]
) -> dict[tuple[int, int], list[Any]]:
    """Return the routes that a file lists."""
    routes: dict[tuple[int, int], list[Any]] = {}
    for row in rows:
        for link in row["links"]:
            located(row.where, one_of_many, "link", link, links)
        k, to = _read_ends(names, row)
        found = {(k, to): row["links"]}
        if "between" in row:
            found[to, k] = row["links"][::-1]
        for pair in sorted(found.keys() & routes.keys()):
            there = " to ".join(names[n] if n < len(names) and names[n] else str(n) for n in pair)
            raise InputError(f"{row.where}: {there} has a route already; leave one out")
        routes |= found
    return routes


def _build_links(rows: Sequence[Row]) -> pd.DataFrame:
    link_rows = [(row["name"], row["bandwidth"], row.get("max_connect", math.inf)) for row in rows]
    links = pd.DataFrame(link_rows, columns=["name", "bandwidth", "max_connect"]).set_index("name")
    validate.require_table("links", links, ("bandwidth", "max_connect"))  # each label once
    for column in ("start", "end"):
        if any(column in row for row in rows):
            links[column] = [row.get(column) for row in rows]
    return links


def _build_network(
    found: Row, names: Sequence[str]
) -> tuple[pd.DataFrame, Any, tuple[Any, ...] | None]:
    """Return the links, the routes, and the routers of a file, None without routers."""
    clusters, rows = found.get("cluster", []), found.get("link", [])
    links, routers = _build_links(rows), [row.get("router") for row in clusters]
    if "route" in found or not rows or len(clusters) == 1:
        routes: Any = _read_routes(found.get("route", []), names, set(links.index))
    else:
        routers = [row.get("router", row.get("name")) for row in clusters]
        if None in routers:
            raise InputError("without routes every cluster must name its router, or itself")
        links, routes = routes_from_links(links, routers)
    return links, routes, None if None in routers else tuple(routers)


def _name_rows(what: str, rows: Sequence[Row]) -> list[str] | None:
    """Return the names of clusters or applications, None if the file gives none."""
    if not any(row.get("name") for row in rows):
        return None
    return [row.get("name") or f"{what} {number}" for number, row in enumerate(rows)]


def _build_platform(found: Row) -> Platform:
    clusters, apps = found.get("cluster", []), found.get("application", [])
    names = [row.get("name", "") for row in clusters]
    check_names("clusters", [name for name in names if name])
    links, routes, router = _build_network(found, names)
    return Platform(
        [row["speed"] for row in clusters],
        [row["gateway"] for row in clusters],
        links,
        routes,
        **{name: [row[name] for row in apps] for name in ("priority", "work", "data")},
        origin=[located(row.where, _find_cluster, names, "origin", row["origin"]) for row in apps],
        limits=_build_limits(found["limits"], names) if "limits" in found else Limits(),
        router=router,
        site_names=_name_rows("cluster", clusters),
        application_names=_name_rows("application", apps),
    )


def read_platform(path: StrPath, limit: int = MAX_TOML_BYTES) -> Platform:
    """Read a platform from a TOML file.

    Parameters
    ----------
    path : path
        See the module for the tables and their fields.
    limit : int
        Most bytes.

    Returns
    -------
    Platform
        A platform that networkx can read, from whatever file, is one by `Platform.from_graph`.

    Raises
    ------
    InputError
        For a file that cannot be read or holds no platform; names the file.
    """
    found = read_tables(path, PLATFORM_TABLES, {"limits?": _read_limits}, 0, limit)
    platform: Platform = located(os.fspath(path), _build_platform, found)
    return platform
