"""Networks that other programs wrote, as documents of `dlsim.steady.store`.

GraphML and GML as networkx writes them, platforms of SimGrid, and CSV: sites (name, speed,
gateway, and priority, work, data of an application) and links (start, end, bandwidth, connections
or capacity, weight, one_way, name) in two files or in one. Texts with a unit, such as 10Gbps,
become bytes or flop per second; numbers stay. Usual values of GraphML's keys count, and GML may
hold parallel edges without saying so. A refusal names the line of its element, node or edge.
"""

import os
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element, TreeBuilder
from xml.parsers import expat

import networkx as nx
import pandas as pd
from networkx.readwrite.graphml import GraphMLReader

from dlsim.errors import InputError
from dlsim.files import StrPath, placed, read_csv, read_text, refusal
from dlsim.given import number, rate
from dlsim.steady.network import held, per_connection
from dlsim.steady.simgrid import Zones

Document = dict[str, list[dict[str, Any]]]
#: Where it is told, name, and what is known of a site; where, ends, numbers, one way of a link.
Told = tuple[str, str, Mapping[str, Any]]
Edge = tuple[str, str, str, Mapping[str, Any], bool]

#: What a node may carry to be a site, and to hold an application (the first is enough).
SITE, APPLICATION = ("speed", "gateway"), ("priority", "work", "data")
#: What tells a node or an edge of networkx on which line of its file it begins.
LINE = "dlsim_line"
_NUMBERS = ("bandwidth", "max_connect", "connections", "capacity", "weight")
#: Fields with a unit, and what they are a rate of.
_RATES = {"speed": "work", **dict.fromkeys(("gateway", "bandwidth", "capacity"), "data")}


def _merged(name: str, several: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return parallel links as one: capacities and connections add up, the slowest counts.

    What the one link carries, the several carry too.
    """
    for field in ("bandwidth", "max_connect", "connections", "capacity"):
        if 0 < sum(field in link for link in several) < len(several):
            what = f"one of its parallel links has {field}, another has none"
            raise InputError(f"{name}: {what}; give all")
    if len(several) > 1 and {"capacity", "bandwidth"} <= set(several[0]):
        one = min(link["bandwidth"] for link in several)  # no connection uses the rests of two
        counts = [per_connection(link["capacity"], one)[1] for link in several]
        rows = zip(several, counts, strict=True)
        several = [{**link, "bandwidth": one, "connections": count} for link, count in rows]
        several = [{f: link[f] for f in link if f != "capacity"} for link in several]
    kind = {"bandwidth": min, "weight": min}
    fields = dict.fromkeys(field for link in several for field in link)
    return {f: kind.get(f, sum)(link[f] for link in several if f in link) for f in fields}


def _misnamed(name: Any, known: Iterable[str]) -> str:
    """Return what is wrong with the name of a field that is nearly a known one, else ""."""
    near = get_close_matches(str(name).casefold(), known, 1, 0.8)
    what = "is not read; rename it (did you mean {}?) or remove it"
    return what.format(near[0]) if near and name not in known else ""


def _told(where: str, data: Mapping[str, Any], fields: Collection[str]) -> dict[str, float]:
    """Return those of the fields that a site or a link carries; only counts may be infinite."""
    for name in data:
        if what := _misnamed(name, fields):
            raise InputError(f"{where}: {name} {what}")
    found = {f: rate(f"{where}: {f}", data[f], _RATES.get(f, "")) for f in fields if f in data}
    return {f: x if "connect" in f else number(f"{where}: {f}", x) for f, x in found.items()}


def _once(what: str, name: str, seen: set[str]) -> None:
    if name in seen:
        raise InputError(f"{what} must have different names, got {name!r} twice")
    seen.add(name)


def _with_sites(what: str, sites: Iterable[Told]) -> Document:
    """Return a document of sites and their applications, from what each carries.

    Those with a priority hold an application; where none has one, every site does.
    """
    sites, seen = list(sites), set[str]()
    if not sites:
        raise InputError(f"no {what} carries a speed; give one, and a gateway, to every site")
    document: Document = {"site": [], "application": [], "link": []}
    homes = {name for _, name, data in sites if "priority" in data}
    for where, name, data in sites:
        if "gateway" not in data:
            raise InputError(f"{where}: gateway is missing; a site has speed and gateway")
        _once(f"{where}: sites", name, seen)
        numbers = _told(where, data, (*SITE, *APPLICATION))
        site = {field: numbers[field] for field in SITE}
        document["site"].append({"name": name, "router": name, **site})
        if name in homes or not homes:
            sizes = {field: numbers.get(field, 1.0) for field in APPLICATION}
            document["application"].append({"name": name, "origin": name, **sizes})
    return document


def _linked(document: Document, edges: Iterable[Edge]) -> Document:
    """Add links between routers to a document; parallel ones are one."""
    parallel: dict[tuple[str, str, bool], list[tuple[str, str, dict[str, Any]]]] = {}
    for where, u, v, data, is_one_way in edges:
        if u == v:
            continue  # no way leads over it
        numbers = _told(where, data, _NUMBERS)
        if not {"bandwidth", "capacity"} & set(numbers):
            raise InputError(f"{where}: needs bandwidth (of a connection) or capacity; got {data}")
        ends = (v, u) if not is_one_way and (v, u, False) in parallel else (u, v)
        several = parallel.setdefault((*ends, is_one_way), [])
        several.append((where, str(data.get("name") or f"{ends[0]} - {ends[1]}"), numbers))
    seen = set[str]()
    for (u, v, is_one_way), several in parallel.items():
        name = " + ".join(dict.fromkeys(name for _, name, _ in several))
        where, numbers = several[0][0], _merged(several[0][0], [one for _, _, one in several])
        _once(f"{where}: links", name, seen)
        bandwidth, most = placed(where, held, numbers)
        link = {"name": name, "start": u, "end": v, "bandwidth": bandwidth, "max_connect": most}
        rest = {"weight": numbers.get("weight"), "one_way": is_one_way or None}
        document["link"].append(link | {f: x for f, x in rest.items() if x is not None})
    return document


def _document_of(path: str, graph: nx.Graph) -> Document:
    """Return a graph as a document: nodes with a speed are sites, edges (or arcs) are links."""
    usual = graph.graph.get("node_default", {}), graph.graph.get("edge_default", {})
    nodes = {node: {**usual[0], **data} for node, data in graph.nodes(data=True)}
    called = {node: str(data.get("label", data.get("name", node))) for node, data in nodes.items()}
    if len(set(called.values())) < len(called):
        called = {node: str(node) for node in called}

    def where(what: str, data: Mapping[str, Any]) -> str:
        return f"{path}, line {data[LINE]}: {what}"

    sites = ((where(f"node {called[node]!r}", data), called[node], data)
             for node, data in nodes.items() if "speed" in data)  # fmt: skip
    edges = list[Edge]()
    for u, v, data in graph.edges(data=True):
        at = where(f"edge {called[u]!r} - {called[v]!r}", data)
        if unknown := [called[node] for node in (u, v) if LINE not in nodes[node]]:
            raise InputError(f"{at}: no node has the id {unknown[0]!r}; add it, or name another")
        known = {f: one for f, one in {**usual[1], **data}.items() if f not in ("name", LINE)}
        edges.append((at, called[u], called[v], known, graph.is_directed()))
    return _linked(_with_sites("node", sites), edges)


_YES = {"": False, "no": False, "false": False, "0": False, "yes": True, "true": True, "1": True}
#: What other programs call a column of a CSV file, and the columns with their rules.
_ALSO = {"source": "start", "from": "start", "target": "end", "to": "end", "site": "name"}
_RULES = dict.fromkeys(("name", "start", "end", "one_way", *_ALSO), "any")
_RULES |= dict.fromkeys((*SITE, *APPLICATION, *_NUMBERS), "rate or blank")
_RULES |= {name: f"{of} rate or blank" for name, of in _RATES.items()}


def _sorted(path: Path) -> tuple[list[Edge], list[Told]]:
    """Read the links and the sites of a CSV file, with what is not blank."""
    frame = read_csv(path, {}, _RULES, numbered=True)
    frame = frame.rename(columns={old: new for old, new in _ALSO.items() if new not in frame})
    for column in (column for column in frame if column not in _RULES):
        if what := _misnamed(column, _RULES):
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


class Placed(Element):
    """An element of XML that knows the line where it begins."""

    line = 0


def parsed(path: str, text: str, namespace: str = "") -> Any:
    """Return XML as `Placed` elements; of `namespace` where they name none.

    A document type of its own is refused: entities and defaults may grow at will.
    """
    if found := _DECLARED.search(text):
        what = f"declares a document type of its own ({found[0]} ...>); leave that out"
        raise refusal(path, text.count("\n", 0, found.start()) + 1, what)
    parser, builder = expat.ParserCreate(namespace_separator="}"), TreeBuilder(Placed)

    def start(tag: str, attributes: dict[str, str]) -> None:
        one: Any = builder.start("{" + tag if "}" in tag else namespace + tag, attributes)
        one.line = parser.CurrentLineNumber

    def unknown(name: str, _: bool) -> None:
        what = f"&{name}; is declared nowhere; write what it stands for"
        raise refusal(path, parser.CurrentLineNumber, what)

    parser.StartElementHandler, parser.SkippedEntityHandler = start, unknown
    parser.EndElementHandler, parser.CharacterDataHandler = builder.end, builder.data
    parser.buffer_text = True
    try:
        parser.Parse(text, True)
    except expat.ExpatError as error:
        raise refusal(path, error.lineno, _said(path, error)) from error
    return builder.close()


class _GraphML(GraphMLReader):
    """The reader of networkx, which notes the line of every node and edge, and refuses by it."""

    def __init__(self, path: str) -> None:
        super().__init__()
        self.path = path

    def decode_data_elements(self, keys: Any, one: Any) -> dict[str, Any]:
        try:
            return {**super().decode_data_elements(keys, one), LINE: one.line}
        except Exception as error:
            raise refusal(self.path, one.line, _said(self.path, error)) from error

    def add_node(self, graph: nx.Graph, one: Any, *rest: Any) -> None:
        name = one.get("id")
        if not name or LINE in graph.nodes.get(name, ()):
            raise refusal(self.path, one.line, f"a node needs an id of its own, got {name!r}")
        super().add_node(graph, one, *rest)

    def add_edge(self, graph: nx.Graph, one: Any, keys: Any) -> None:
        if one.get("directed") == ("false" if graph.is_directed() else "true"):
            raise refusal(self.path, one.line, "all edges must be directed, or none of them")
        super().add_edge(graph, one, keys)


def _graphml(path: str, text: str) -> Document:
    reader = _GraphML(path)
    root = parsed(path, text, f"{{{reader.NS_GRAPHML}}}")
    graphs = root.findall(f"{{{reader.NS_GRAPHML}}}graph")
    if len(graphs) != 1:
        what = f"must be <graphml> of one <graph>, got <{root.tag.split('}')[-1]}> of {len(graphs)}"
        raise refusal(path, graphs[1].line if graphs else root.line, what)
    return _document_of(path, reader.make_graph(graphs[0], *reader.find_graphml_keys(root)))


#: A text or comment of GML, or the beginning of the graph or of one of its parts.
_GML = re.compile(r'"[^"]*"|#.*|\b(graph|node|edge)\s*\[')


def _gml(path: str, text: str) -> Document:
    """Read GML with the line of every node and edge in it, and parallel edges."""
    lines: dict[str, list[int]] = {"node": [], "edge": []}
    line, seen = 1, 0

    def noted(found: re.Match[str]) -> str:
        nonlocal line, seen
        line, seen = line + text.count("\n", seen, found.start()), found.start()
        if found[1] in lines:
            lines[found[1]].append(line)
        more = {None: "", "graph": " multigraph 1"}
        return found[0] + more.get(found[1], f" {LINE} {line} ")

    try:
        graph = nx.parse_gml(_GML.sub(noted, text).splitlines(), label="id")
    except nx.NetworkXError as error:
        if at := re.search(r" at \((\d+), \d+\)$", str(error)):
            raise refusal(path, int(at[1]), _said(path, error)) from error
        if at := re.match(r"(node|edge) #(\d+) ", str(error)):
            raise refusal(path, lines[at[1]][int(at[2])], _said(path, error)) from error
        raise
    return _document_of(path, graph)


def _simgrid(path: str, text: str) -> Document:
    zones = Zones(path, parsed(path, text))
    document = _with_sites("host", zones.sites)
    return document | {"link": zones.links, "route": list(zones.routes())}


#: By the ending of a file's name: what writes such files, and how they are read.
READERS: dict[str, tuple[str, Callable[[str, str], Document]]] = {
    ".graphml": ("GraphML as networkx writes it", _graphml),
    ".gml": ("GML as networkx writes it", _gml),
    ".xml": ("a platform of SimGrid", _simgrid),
}


def _said(path: str, error: Exception) -> str:
    told = re.sub(rf" {LINE} \d+ | multigraph 1", "", str(error))
    return f"not {READERS[Path(path).suffix][0]} ({type(error).__name__}: {told})"


def read_document(path: StrPath) -> Document | None:
    """Return a foreign file as a document; None for a name with another ending."""
    ending = Path(path).suffix
    if ending == ".csv" or Path(path).is_dir():
        return _csv(Path(path))
    if ending not in READERS:
        return None
    text, name = read_text(path), os.fspath(path)
    try:
        return placed(name, READERS[ending][1], name, text)
    except InputError:
        raise
    except Exception as error:  # of any kind: networkx trusts its files
        raise InputError(f"{name}: {_said(name, error)}") from error
