"""Networks that other programs wrote, as documents of `dlsim.steady.store`.

GraphML and GML as networkx writes them, and flat SimGrid platforms. Texts with a unit, such
as 10Gbps, become bytes or flop per second, powers of 1000 or (Ki, Mi, Gi) 1024; bps are
bits, Bps bytes. Numbers stay.
"""

import math
import os
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import networkx as nx

from dlsim.errors import InputError
from dlsim.files import StrPath, read_text
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


def _with_sites(what: str, sites: Mapping[str, Mapping[str, Any]]) -> Document:
    """Return a document of sites and their applications, from what each carries by name.

    Those with a priority hold an application; where none has one, every site does.
    """
    if not sites:
        raise InputError(f"no {what} carries a speed, which makes it a site (with a gateway)")
    document: Document = {"site": [], "application": [], "link": []}
    homes = [name for name in sites if "priority" in sites[name]] or list(sites)
    for name, data in sites.items():
        where = f"{what} {name!r}"
        if "gateway" not in data:
            raise InputError(f"{where}: gateway is missing; a site has speed and gateway")
        numbers = {field: rate(f"{where}: {field}", data[field]) for field in SITE}
        document["site"].append({"name": name, "router": name, **numbers})
        if name in homes:
            sizes = {f: rate(f"{where}: {f}", data.get(f, 1.0)) for f in APPLICATION}
            document["application"].append({"name": name, "origin": name, **sizes})
    return document


def _simgrid(text: str) -> Document:
    """Read one flat zone of hosts, links and routes; a <prop> says what SimGrid has no word for."""
    root = ElementTree.fromstring(_declaring_nothing(text))
    zones = [zone for zone in root if zone.tag in ("zone", "AS")]
    if root.tag != "platform" or len(zones) != 1:
        raise InputError(f"must be a platform of one zone, got <{root.tag}> of {len(zones)}")
    held: dict[str, list[ElementTree.Element]] = {"host": [], "link": [], "route": [], "prop": []}
    for one in zones[0]:
        if one.tag not in held:
            raise InputError(f"<{one.tag}> is not read; write hosts, links and routes")
        held[one.tag].append(one)

    def known(one: ElementTree.Element) -> dict[str, Any]:
        return dict(one.attrib) | {p.get("id", ""): p.get("value") for p in one.findall("prop")}

    hosts = [known(one) for one in held["host"]]
    document = _with_sites("host", {str(one.get("id")): one for one in hosts if "speed" in one})
    for link in map(known, held["link"]):
        # SimGrid's bandwidth is that of all connections: a <prop> tells what one gets, or how many
        where, name = f"link {link.get('id')!r}", {"name": str(link.get("id"))}
        shares = {"connections": "connections", "connection_bandwidth": "bandwidth"}
        told = {new: rate(f"{where}: {old}", link[old]) for old, new in shares.items()
                if old in link}  # fmt: skip
        if len(told) != 1:
            raise InputError(f'{where}: needs <prop id="connections" value="..."/>, or '
                             "connection_bandwidth, what one connection gets")  # fmt: skip
        capacity = rate(f"{where}: bandwidth", link.get("bandwidth"))
        document["link"].append({**name, "capacity": capacity, **told})
    document["route"] = []
    for route in held["route"]:
        ends = {"between": [route.get("src"), route.get("dst")]}
        links = [one.get("id") for one in route.findall("link_ctn")]
        is_one_way = route.get("symmetrical", "YES").upper() == "NO"
        document["route"].append({**ends, "links": links, "one_way": is_one_way})
    return document


def document_of(graph: nx.Graph) -> Document:
    """Return a graph as a document: nodes with a speed are sites, edges are links.

    Parallel edges are one link; those of a directed graph are used one way.
    """
    called = {node: str(data.get("label", data.get("name", node))) for node, data in
              graph.nodes(data=True)}  # fmt: skip
    if len(set(called.values())) < len(called):
        called = {node: str(node) for node in called}
    nodes = {called[node]: data for node, data in graph.nodes(data=True) if "speed" in data}
    document = _with_sites("node", nodes)
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
