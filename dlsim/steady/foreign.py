"""Networks that other programs wrote, as documents of `dlsim.steady.store`.

GraphML and GML as networkx writes them, platforms of SimGrid, and CSV: sites (name, speed,
gateway, and priority, work, data of an application) and links (start, end, bandwidth, connections
or capacity, weight, one_way, name) in two files or in one. Texts with a unit, such as 10Gbps,
become bytes or flop per second; numbers stay.
"""

import math
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import networkx as nx
import pandas as pd

from dlsim.errors import InputError
from dlsim.files import StrPath, read_csv, read_text, refusal
from dlsim.given import number, rate, whole
from dlsim.steady.check import exact
from dlsim.steady.simgrid import Zones

Document = dict[str, list[dict[str, Any]]]
#: Where it is told, name, and what is known of a site; where, ends, numbers, one way of a link.
Told = tuple[str, str, Mapping[str, Any]]
Edge = tuple[str, str, str, Mapping[str, Any], bool]

#: What a node may carry to be a site, and to hold an application (the first is enough).
SITE, APPLICATION = ("speed", "gateway"), ("priority", "work", "data")
_NUMBERS = ("bandwidth", "max_connect", "connections", "capacity", "weight")


def per_connection(
    capacity: float, bandwidth: float | None = None, connections: float | None = None
) -> tuple[float, float]:
    """Return bandwidth and number of the connections that a link's capacity holds.

    One of the two has to be given: what one connection gets (the window of TCP over the round
    trip, for instance), or how many share the link.

    >>> per_connection(1000, bandwidth=64)
    (64.0, 15)
    """
    capacity = float(number("capacity", capacity))
    if (bandwidth is None) == (connections is None):
        raise InputError("a capacity needs the bandwidth of one connection, or their number")
    if bandwidth is None:
        return capacity / (count := whole("connections", connections)), count
    one = float(number("bandwidth", bandwidth, above=True))
    return one, math.floor(exact(capacity) / exact(one))


def _merged(name: str, several: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return parallel links as one: capacities and connections add up, the slowest counts.

    What the one link carries, the several carry too.
    """
    for field in ("bandwidth", "max_connect", "connections", "capacity"):
        if 0 < sum(field in link for link in several) < len(several):
            raise InputError(f"{name}: one of its parallel links has {field}, another has none")
    if len(several) > 1 and {"capacity", "bandwidth"} <= set(several[0]):
        one = min(link["bandwidth"] for link in several)  # no connection uses the rests of two
        held = [per_connection(link["capacity"], one)[1] for link in several]
        rows = zip(several, held, strict=True)
        several = [{**link, "bandwidth": one, "connections": count} for link, count in rows]
        several = [{f: link[f] for f in link if f != "capacity"} for link in several]
    kind = {"bandwidth": min, "weight": min}
    fields = dict.fromkeys(field for link in several for field in link)
    return {f: kind.get(f, sum)(link[f] for link in several if f in link) for f in fields}


def _with_sites(what: str, sites: Iterable[Told]) -> Document:
    """Return a document of sites and their applications, from what each carries.

    Those with a priority hold an application; where none has one, every site does.
    """
    sites = list(sites)
    if not sites:
        raise InputError(f"no {what} carries a speed, which makes it a site (with a gateway)")
    document: Document = {"site": [], "application": [], "link": []}
    homes = {name for _, name, data in sites if "priority" in data}
    for where, name, data in sites:
        if "gateway" not in data:
            raise InputError(f"{where}: gateway is missing; a site has speed and gateway")
        numbers = {field: rate(f"{where}: {field}", data[field]) for field in SITE}
        document["site"].append({"name": name, "router": name, **numbers})
        if name in homes or not homes:
            sizes = {f: rate(f"{where}: {f}", data.get(f, 1.0)) for f in APPLICATION}
            document["application"].append({"name": name, "origin": name, **sizes})
    return document


def _linked(document: Document, edges: Iterable[Edge]) -> Document:
    """Add links between routers to a document; parallel ones are one."""
    parallel: dict[tuple[str, str, bool], list[tuple[str, str, dict[str, Any]]]] = {}
    for where, u, v, data, is_one_way in edges:
        if u == v:
            continue  # no way leads over it
        numbers = {f: rate(f"{where}: {f}", data[f]) for f in _NUMBERS if f in data}
        if not {"bandwidth", "capacity"} & set(numbers):
            raise InputError(f"{where}: needs bandwidth (of a connection) or capacity; got {data}")
        ends = (v, u) if not is_one_way and (v, u, False) in parallel else (u, v)
        several = parallel.setdefault((*ends, is_one_way), [])
        several.append((where, str(data.get("name") or f"{ends[0]} - {ends[1]}"), numbers))
    for (u, v, is_one_way), several in parallel.items():
        name = " + ".join(dict.fromkeys(name for _, name, _ in several))
        numbers = _merged(several[0][0], [one for _, _, one in several])
        link = {"name": name, "start": u, "end": v, **numbers}
        document["link"].append(link | ({"one_way": True} if is_one_way else {}))
    return document


def _simgrid(text: str) -> Document:
    """Read a platform of SimGrid."""
    zones = Zones(ElementTree.fromstring(_declaring_nothing(text)))
    document = _with_sites("host", zones.sites)
    return document | {"link": zones.links, "route": list(zones.routes())}


def document_of(graph: nx.Graph) -> Document:
    """Return a graph as a document: nodes with a speed are sites, edges are links.

    Parallel edges are one link; those of a directed graph are used one way.
    """
    called = {node: str(data.get("label", data.get("name", node))) for node, data in
              graph.nodes(data=True)}  # fmt: skip
    if len(set(called.values())) < len(called):
        called = {node: str(node) for node in called}
    nodes = ((f"node {called[node]!r}", called[node], data) for node, data in
             graph.nodes(data=True) if "speed" in data)  # fmt: skip
    edges = (
        (f"edge {called[u]!r} - {called[v]!r}", called[u], called[v],
         {f: data[f] for f in data if f != "name"}, graph.is_directed())
        for u, v, data in graph.edges(data=True)
    )  # fmt: skip
    return _linked(_with_sites("node", nodes), edges)


_YES = {"": False, "no": False, "false": False, "0": False, "yes": True, "true": True, "1": True}
#: What other programs call a column of a CSV file, and the columns with their rules.
_ALSO = {"source": "start", "from": "start", "target": "end", "to": "end", "site": "name"}
_RULES = dict.fromkeys(("name", "start", "end", "one_way", *_ALSO), "any")
_RULES |= dict.fromkeys((*SITE, *APPLICATION, *_NUMBERS), "rate or blank")


def _sorted(path: Path) -> tuple[list[Edge], list[Told]]:
    """Read the links and the sites of a CSV file, with what is not blank."""
    frame = read_csv(path, {}, _RULES, numbered=True)
    frame = frame.rename(columns={old: new for old, new in _ALSO.items() if new not in frame})
    for column in (column for column in frame if column not in _RULES):
        if near := get_close_matches(str(column).casefold(), _RULES, 1, 0.8):
            what = f"is not read; rename it (did you mean {near[0]}?) or remove it"
            raise refusal(path, 1, what, str(column))
    if not {"speed", "start"} & set(frame):
        what = "needs the columns start and end (of links), or name, speed and gateway (of sites)"
        raise refusal(path, 1, what)
    edges, sites = list[Edge](), list[Told]()
    for line, row in zip(frame.index, frame.to_dict("records"), strict=True):
        where = f"{path}, line {line}"
        data = {f: v for f, v in row.items() if f in _RULES and v != "" and not pd.isna(v)}
        is_one_way = _YES.get(str(data.get("one_way", "")).strip().casefold())
        if is_one_way is None:
            raise InputError(f"{where}: one_way must be yes or no, got {data['one_way']!r}")
        name, start, end = (str(data.get(f, "")).strip() for f in ("name", "start", "end"))
        if start and end:
            edges.append((where, start, end, data, is_one_way))
        elif "speed" in data and (name or start):
            sites.append((where, name or start, data))
        else:
            raise InputError(f"{where}: needs start and end (a link), or name, speed and gateway")
    return edges, sites


def _csv(path: Path) -> Document:
    """Read sites.csv and links.csv of a folder, or the one file that is named.

    Rows with start and end are links, rows with a speed are sites; a file that has only the
    ones is read with the file of the others beside it.
    """
    if any((path / name).exists() for name in ("sites.csv", "links.csv")):
        path /= "sites.csv"
    edges, sites = _sorted(path)
    if not edges or not sites:
        beside = path.with_name("sites.csv" if edges else "links.csv")
        more = _sorted(beside) if beside != path else ([], [])
        edges, sites = edges + more[0], sites + more[1]
    return _linked(_with_sites(f"row of {path}", sites), edges)


_DECLARED = re.compile("<!(ENTITY|ATTLIST|ELEMENT|NOTATION)")


def _declaring_nothing(text: str) -> str:
    """Return XML without a document type of its own: entities and defaults may grow at will."""
    if found := _DECLARED.search(text):
        raise InputError(f"declares a document type of its own ({found[0]} ...>); leave that out")
    return text


#: By the ending of a file's name: what writes such files, and how they are read.
READERS: dict[str, tuple[str, Callable[[str], Document]]] = {
    ".graphml": (
        "GraphML as networkx writes it",
        lambda text: document_of(nx.parse_graphml(_declaring_nothing(text))),
    ),
    ".gml": (
        "GML as networkx writes it",
        lambda text: document_of(nx.parse_gml(text.splitlines(), label="id")),
    ),
    ".xml": ("a platform of SimGrid", _simgrid),
}


def read_document(path: StrPath) -> Document | None:
    """Return a foreign file as a document; None for a name with another ending."""
    ending = Path(path).suffix
    if ending == ".csv" or Path(path).is_dir():
        return _csv(Path(path))
    if ending not in READERS:
        return None
    what, read = READERS[ending]
    text = read_text(path)
    try:
        return read(text)
    except InputError as error:
        raise InputError(f"{os.fspath(path)}: {error}") from error
    except Exception as error:  # of any kind: networkx trusts its files
        said = f"not {what} ({type(error).__name__}: {error})"
        raise InputError(f"{os.fspath(path)}: {said}") from error
