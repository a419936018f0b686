"""Platforms of SimGrid in XML: zones within zones, and the routes between their hosts.

Read are hosts, routers, links, clusters (each one site) and zones whose routing is Full, Floyd,
Dijkstra, Star, Cluster or None. As in SimGrid, a route between zones leads from gateway to gateway,
and on inside each; the shortest passes the fewest links. A <prop> says what SimGrid has no word
for: the gateway of a site, and connections or connection_bandwidth of a link.
"""

import itertools
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import networkx as nx

from dlsim.errors import InputError
from dlsim.files import placed, refusal
from dlsim.given import member, number, option, rate, whole
from dlsim.steady.network import held
from dlsim.steady.routes import need_pairs

_SHORTEST = ("Floyd", "Dijkstra", "DijkstraCache")
_ROUTING = ("Full", *_SHORTEST, "Star", "Cluster", "None")
_POLICIES = ("SHARED", "FATPIPE", "SPLITDUPLEX", "FULLDUPLEX")
_SUFFIX = {"NONE": "", "UP": "_UP", "DOWN": "_DOWN"}
_ZONES, _ROUTES = ("zone", "AS"), ("route", "zoneRoute", "ASroute")
_NESTED = (*_ZONES, "cluster")
_READ = (*_NESTED, "host", "router", "link", "backbone", "host_link", *_ROUTES, "prop")


class _Hop(NamedTuple):
    """What joins two points of a zone: links, and gateways into those points that are zones."""

    gw_src: str | None
    links: Sequence[str]
    gw_dst: str | None


def _known(one: Any) -> dict[str, Any]:
    """Return the attributes and properties of an element; what changes with time is refused."""
    if told := [name for name in one.attrib if name.endswith("_file")]:
        what = "is not read: in steady state nothing changes with time; leave it out"
        raise InputError(f"<{one.tag}> {_id(one)!r}: {told[0]} {what}")
    return dict(one.attrib) | {p.get("id", ""): p.get("value") for p in one.findall("prop")}


def _id(one: Any, name: str = "id") -> str:
    if not (found := one.get(name)):
        raise InputError(f"<{one.tag}> needs {name}, got {dict(one.attrib)}")
    return found


class Zones:
    """Zones of a platform and what they hold; of XML whose elements know their `line`."""

    def __init__(self, path: str, root: Any) -> None:
        self.path = path
        tops = [one for one in root if one.tag in _NESTED]
        for other in root if root.tag == "platform" else ():
            if other.tag not in (*_NESTED, "config", "prop"):
                what = f"<{other.tag}> is not read here; write what it stands for inside the zone"
                raise refusal(path, other.line, what)
        if root.tag != "platform" or len(tops) != 1:
            what = f"must be a platform of one zone, got <{root.tag}> of {len(tops)}"
            raise refusal(path, (tops[1] if len(tops) > 1 else root).line, what)
        #: Sites as (where, name, what is known), links as table rows, the point that each site is.
        self.sites, self.links = list[tuple[str, str, dict[str, Any]]](), list[dict[str, Any]]()
        self._points = list[str]()
        self._other = dict[str, str]()  # of every link that for the way back, itself unless split
        self._above, self._routing = dict[str, str](), dict[str, str]()
        self._backbones = dict[str, list[str]]()
        self._hops = dict[str, dict[tuple[str, str], _Hop]]()
        self._paths = dict[tuple[str, str], dict[str, list[str]]]()
        for one in root.iter():
            if one.tag in ("link", "backbone"):
                self._at(one, self._link)
        self._place(tops[0], "")

    def _at(self, one: Any, read: Callable[..., Any], *rest: Any) -> Any:
        """Read an element; a refusal names its line, or that of what is inside it."""
        try:
            return read(one, *rest)
        except InputError as error:
            if str(error).startswith(f"{self.path}, line "):
                raise
            raise refusal(self.path, one.line, str(error)) from error

    def _link(self, one: Any) -> None:
        link, name = _known(one), _id(one)
        where, policy = f"link {name!r}", str(link.get("sharing_policy", "SHARED")).upper()
        option(f"{where}: sharing_policy", policy, _POLICIES)
        what = f"{where}: bandwidth"
        capacity = number(what, rate(what, link.get("bandwidth"), "data"))
        names = [name] if policy in ("SHARED", "FATPIPE") else [f"{name}_UP", f"{name}_DOWN"]
        if twice := [label for label in names if label in self._other]:
            raise InputError(f"link {twice[0]!r} is there twice; give every link its own id")
        self._other |= dict(zip(names, names[::-1], strict=True))
        if policy == "FATPIPE":  # every connection gets all of it
            self.links.append({"name": name, "bandwidth": capacity})
            return
        # SimGrid's bandwidth is that of all connections: a <prop> tells what one gets, or how many
        shares = (("connections", "connections", ""), ("connection_bandwidth", "bandwidth", "data"))
        told = {new: rate(f"{where}: {old}", link[old], of) for old, new, of in shares
                if old in link}  # fmt: skip
        if len(told) != 1:
            raise InputError(f'{where}: needs <prop id="connections" value="..."/>, or '
                             "connection_bandwidth, what one connection gets")  # fmt: skip
        one, most = placed(where, held, {"capacity": capacity, **told})
        self.links += [{"name": label, "bandwidth": one, "max_connect": most} for label in names]

    def _place(self, one: Any, above: str) -> None:
        """Note a zone or a point of one."""
        name = self._at(one, self._note, above)
        if one.tag in _ZONES:
            for child in one:
                if child.tag in (*_NESTED, "host", "router"):
                    self._place(child, name)
            for child in one:
                if child.tag in (*_ROUTES, "host_link"):
                    self._at(child, self._hop, name)
            self._backbones[name] = [_id(child) for child in one if child.tag == "backbone"]

    def _note(self, one: Any, above: str) -> str:
        name = self._point(_id(one), above)
        if one.tag in _ZONES:
            routing = option(f"routing of zone {name!r}", one.get("routing", "Full"), _ROUTING)
            self._routing[name], self._hops[name] = routing, {}
            for child in one:
                if child.tag not in _READ or (routing == "Cluster" and child.tag in _NESTED):
                    rule = f"hosts, {'' if routing == 'Cluster' else 'zones, '}links and routes"
                    what = f"zone {name!r}: <{child.tag}> is not read; write {rule}"
                    raise refusal(self.path, child.line, what)
        elif one.tag == "cluster" or {"speed", "power"} & set(one.keys()):
            self._site(one, name)
        return name

    def _point(self, name: str, above: str) -> str:
        if name in self._above:
            raise InputError(f"zone {above!r}: {name!r} is there twice; give everything its own id")
        self._above[name] = above
        return name

    def _site(self, one: Any, name: str) -> None:
        """Note a host, or a cluster as one site whose gateway is its backbone."""
        data, where, hosts, point = _known(one), f"{one.tag} {name!r}", 1, name
        if one.tag == "cluster":
            radical = str(data.get("radical", "")).replace(" ", "")
            parts = re.fullmatch(r"\d+(-\d+)?(,\d+(-\d+)?)*", radical)
            each = [[int(end) for end in part.split("-")] for part in radical.split(",") if parts]
            hosts = sum(max(0, ends[-1] - ends[0] + 1) for ends in each)
            if not hosts:
                raise InputError(f"{where}: radical must be like 0-9,12, got {radical!r}")
            if not {"gateway", "bb_bw"} & set(data):
                raise InputError(f'{where}: needs bb_bw, or <prop id="gateway" value="..."/>')
            data.setdefault("gateway", data.get("bb_bw"))
            usual = f"{data.get('prefix', '')}{name}_router{data.get('suffix', '')}"
            point = self._point(data.get("router_id") or usual, name)
            self._routing[name], self._hops[name] = "None", {}
        cores = whole(f"{where}: core", rate(f"{where}: core", data.get("core", "1")))
        speed = rate(f"{where}: speed", data.get("speed", data.get("power")), "work")
        where = f"{self.path}, line {one.line}: {where}"
        self.sites.append((where, name, data | {"speed": hosts * cores * speed}))
        self._points.append(point)

    def _hop(self, one: Any, zone: str) -> None:
        """Note a <route> or, of a zone with Cluster routing, a <host_link>; "" is everybody."""
        if one.tag == "host_link":
            host = self._end(zone, _id(one))
            for name, ends in (("up", (host, "")), ("down", ("", host))):
                self._add(zone, *ends, _Hop(None, [self._passed(one, zone, name)], None))
            return
        src, dst = (self._end(zone, one.get(end, "*")) for end in ("src", "dst"))
        gates = list[str | None]()
        for name, end in (("gw_src", src), ("gw_dst", dst)):
            gate = one.get(name) if end in self._hops else None  # a zone's; a point needs none
            if end in self._hops and (gate in self._hops or end not in self._zones(str(gate))):
                rule = f"must be a point inside {end!r}, got {gate!r}"
                raise InputError(f"zone {zone!r}, <{one.tag}>: {name} {rule}")
            gates.append(gate)
        way = [self._at(link, self._passed, zone) for link in one.findall("link_ctn")]
        if len(set(way)) < len(way):
            raise InputError(f"zone {zone!r}: a route must pass each link once, got {way}")
        self._add(zone, src, dst, _Hop(gates[0], way, gates[1]))
        both = option("symmetrical", one.get("symmetrical", "YES").upper(), ("YES", "NO"))
        if both == "YES" and src != dst:
            back = [self._other[label] for label in way[::-1]]
            self._add(zone, dst, src, _Hop(gates[1], back, gates[0]))

    def _passed(self, one: Any, zone: str, name: str = "id") -> str:
        way, label = one.get("direction", "NONE").upper(), _id(one, name)
        label += _SUFFIX[option("direction", way, _SUFFIX)]
        if f"{label}_UP" in self._other:
            raise InputError(f"link {label!r} is split in two; give it direction UP or DOWN")
        return str(member(f"link of a route of zone {zone!r}", label, self._other))

    def _end(self, zone: str, end: str) -> str:
        if end == "*" and self._routing[zone] == "Star":
            return ""
        if self._above.get(end) != zone:
            inside = [name for name, above in self._above.items() if above == zone]
            member(f"point of zone {zone!r}", end, inside)
        return end

    def _add(self, zone: str, src: str, dst: str, hop: _Hop) -> None:
        if (src, dst) in self._hops[zone]:
            what = f"{src or '*'} to {dst or '*'} has a route already; leave one out"
            raise InputError(f"zone {zone!r}: {what}")
        self._hops[zone][src, dst] = hop

    def _zones(self, point: str) -> list[str]:
        """Return a point, its zone, the zone of that, ..."""
        found = [point]
        while found[-1] in self._above:
            found.append(self._above[found[-1]])
        return found

    def _within(self, zone: str, src: str, dst: str) -> list[_Hop] | None:
        """Return the hops between two points of a zone; None where no route leads."""
        hops, routing = self._hops[zone], self._routing[zone]
        if routing == "Cluster":
            ends = [hops[way].links if way in hops else [] for way in ((src, ""), ("", dst))]
            return [_Hop(None, [*ends[0], *self._backbones.get(zone, []), *ends[1]], None)]
        if routing == "Star":
            up, down = hops.get((src, "")), hops.get(("", dst))
            if not up or not down:
                return None
            return [_Hop(up.gw_src, list(dict.fromkeys([*up.links, *down.links])), down.gw_dst)]
        if routing not in _SHORTEST:
            return [hops[src, dst]] if (src, dst) in hops else None
        if (zone, src) not in self._paths:
            graph = nx.DiGraph()
            graph.add_nodes_from([src, dst])
            graph.add_weighted_edges_from((u, v, len(hop.links)) for (u, v), hop in hops.items())
            self._paths[zone, src] = nx.single_source_dijkstra_path(graph, src)
        path = self._paths[zone, src].get(dst)
        return [hops[pair] for pair in itertools.pairwise(path)] if path else None

    def way(self, src: str, dst: str) -> list[str] | None:
        """Return the links from a point to another, wherever both are; None without a route."""
        if src == dst:
            return []
        above, below = self._zones(src), self._zones(dst)
        common = next(zone for zone in above if zone in below)
        ends = [zones[zones.index(common) - 1] for zones in (above, below)]
        if (hops := self._within(common, *ends)) is None:
            return None
        links, here = list[str](), src
        for hop in [*hops, _Hop(dst, [], None)]:
            # a zone is entered at one gateway and left by another, or its end is inside it
            inside = self.way(here, hop.gw_src) if hop.gw_src else []
            if inside is None:
                return None
            links += [*inside, *hop.links]
            here = hop.gw_dst or dst
        return links

    def routes(self) -> Iterator[dict[str, Any]]:
        """Yield a table row for every route from site to site."""
        need_pairs(len(self._points))
        names = [name for _, name, _ in self.sites]
        for (k, src), (to, dst) in itertools.permutations(enumerate(self._points), 2):
            if (way := self.way(src, dst)) is not None:
                yield {"between": [names[k], names[to]], "links": way, "one_way": True}
