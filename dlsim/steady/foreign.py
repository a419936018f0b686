"""Networks that other programs wrote, as documents of `dlsim.steady.store`.

GraphML and GML as networkx writes them. Texts with a unit, such as 10Gbps, become bytes or flop
per second, powers of 1000 or (Ki, Mi, Gi) 1024; bps are bits, Bps bytes. Numbers stay.
"""

import math
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, cast

import networkx as nx

from dlsim.errors import InputError
from dlsim.files import StrPath, placed, read_text
from dlsim.given import number

Document = dict[str, list[dict[str, Any]]]

#: What a node may carry to be a site, and to hold an application (the first is enough).
SITE, APPLICATION = ("speed", "gateway"), ("priority", "work", "data")
_NUMBERS = ("bandwidth", "max_connect", "connections", "capacity", "weight")
_RATE = re.compile(r"([\d.eE+-]+)\s*([kKMGTP]?)(i?)(bps|bit/s|b/s|Bps|B/s|flops|flop/s|f|)")
#: Bytes (flop) of a unit.
_OF = {"bps": 0.125, "bit/s": 0.125, "b/s": 0.125}


def rate(name: str, value: Any) -> float:
    """Return a number, or what a text with a unit says in bytes or flop per second.

    >>> rate("bandwidth", "10Gbps")
    1250000000.0
    """
    if isinstance(value, str) and (found := _RATE.fullmatch(value.strip())):
        scale = (1024 if found[3] else 1000) ** " KMGTP".index((found[2] or " ").upper())
        try:
            value = float(found[1]) * scale * _OF.get(found[4], 1)
        except ValueError:
            pass
    return float(number(name, value, high=math.inf))


def _merged(name: str, links: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return parallel links as one: capacities and connections add up, the slowest counts.

    What the one link carries, the several carry too.
    """
    several = list(links)
    for field in ("bandwidth", "max_connect", "connections", "capacity"):
        if 0 < sum(field in link for link in several) < len(several):
            raise InputError(f"{name}: one of its parallel links has {field}, another has none")
    whole = {"bandwidth": min, "weight": min}
    fields = {field for link in several for field in link}
    return {f: whole.get(f, sum)(link[f] for link in several if f in link) for f in fields}


def document_of(graph: nx.Graph) -> Document:
    """Return a graph as a document: nodes with a speed are sites, edges are links.

    Nodes with a priority hold an application; where none has one, every site does. Parallel
    edges are one link; those of a directed graph are used one way.
    """
    called = {node: str(data.get("label", data.get("name", node))) for node, data in
              graph.nodes(data=True)}  # fmt: skip
    if len(set(called.values())) < len(called):
        called = {node: str(node) for node in called}
    sites = {node: data for node, data in graph.nodes(data=True) if "speed" in data}
    if not sites:
        raise InputError("no node carries a speed, which makes it a site (with a gateway)")
    homes = [node for node in sites if "priority" in sites[node]] or list(sites)
    document: Document = {"site": [], "application": [], "link": []}
    for node, data in sites.items():
        where = f"node {called[node]!r}"
        if "gateway" not in data:
            raise InputError(f"{where}: gateway is missing; a site has speed and gateway")
        numbers = {field: rate(f"{where}: {field}", data[field]) for field in SITE}
        document["site"].append({"name": called[node], "router": called[node], **numbers})
        if node in homes:
            sizes = {f: rate(f"{where}: {f}", data.get(f, 1.0)) for f in APPLICATION}
            document["application"].append({"name": called[node], "origin": called[node], **sizes})
    parallel: dict[tuple[Any, Any], list[dict[str, Any]]] = {}
    for u, v, data in graph.edges(data=True):
        if u == v:
            continue  # no way leads over it
        ends = (v, u) if not graph.is_directed() and (v, u) in parallel else (u, v)
        where = f"edge {called[u]!r} - {called[v]!r}"
        numbers = {f: rate(f"{where}: {f}", data[f]) for f in _NUMBERS if f in data}
        if not {"bandwidth", "capacity"} & set(numbers):
            raise InputError(f"{where}: needs bandwidth (of a connection) or capacity; got {data}")
        parallel.setdefault(ends, []).append(numbers)
    for (u, v), several in parallel.items():
        name = f"{called[u]} - {called[v]}"
        link = {"name": name, "start": called[u], "end": called[v], **_merged(name, several)}
        document["link"].append(link | ({"one_way": True} if graph.is_directed() else {}))
    return document


def _graphml(text: str) -> nx.Graph:
    if found := _DECLARED.search(text):  # entities and defaults may grow without bound
        raise InputError(f"declares a document type of its own ({found[0]} ...>); leave that out")
    return nx.parse_graphml(text)


def _gml(text: str) -> nx.Graph:
    return nx.parse_gml(text.splitlines(), label="id")


_DECLARED = re.compile("<!(ENTITY|ATTLIST|ELEMENT|NOTATION)")
#: Readers by the ending of the file's name.
READERS = {".graphml": _graphml, ".gml": _gml}


def read_document(path: StrPath) -> Document | None:
    """Return a foreign file as a document; None for a name with another ending."""
    ending = Path(path).suffix
    if ending not in READERS:
        return None
    text = read_text(path)
    try:
        graph = READERS[ending](text)
    except Exception as error:  # of any kind: networkx trusts its files
        what = f"not {ending[1:]} as networkx writes it ({type(error).__name__}: {error})"
        what = str(error) if isinstance(error, InputError) else what
        raise InputError(f"{os.fspath(path)}: {what}") from error
    return cast(Document, placed(os.fspath(path), document_of, graph))
