"""Networks as CSV, and SimGrid's zones within zones; bounds against SciPy from the raw numbers."""

import itertools

import networkx as nx
import numpy as np
import pytest
from scipy.optimize import linprog

from dlsim.cli import main
from dlsim.errors import InputError
from dlsim.steady import bound, read_platform, solve
from dlsim.steady.organisation import run_file
from tests.scale import some_of
from tests.test_foreign import SIMGRID

SITES = "name,speed,gateway\nlyon,10,20\nnice,2,20\n"
LINKS = "start,end,bandwidth,connections\nlyon,alps,3,2\nalps,nice,100Bps,10\n"


def saved(folder, **files):
    folder.mkdir(exist_ok=True)
    for name, text in files.items():
        (folder / f"{name}.csv").write_text(text)
    return folder


#: The hand case of two sites: LP 6, G 4, LPR 5, LPRG 6.
ONE = "name;start;end;bandwidth;connections;speed;gateway\n;lyon;alps;3,0;2;;\n"
ONE += ";alps;nice;100;10;;\nlyon;;;;;10,0;20\nnice;;;;;2;20\n"


@pytest.mark.parametrize("way", ["folder", "sites", "links", "one", "synonyms"])
def test_a_network_is_read_from_csv(tmp_path, capsys, way):
    folder = saved(tmp_path / "net", sites=SITES, links=LINKS, one=ONE)
    if way == "synonyms":
        saved(folder, links=LINKS.replace("start,end", "source,target"))
        saved(folder, sites=SITES.replace("name", "site"))
    path = folder / {"sites": "sites.csv", "links": "links.csv", "one": "one.csv"}.get(way, "")
    p = read_platform(path)
    assert [solve(p, m).objective for m in ("G", "LPR", "LPRG")] == pytest.approx([4, 5, 6])
    assert dict(p.routes)[0, 1] == ("lyon - alps", "alps - nice")
    assert p.names == (["lyon", "nice"], ["lyon", "nice"])
    assert main(["solve", str(path)]) == 0
    assert "lyon - alps" in capsys.readouterr().out


def test_columns_of_csv_say_what_those_of_a_file_say(tmp_path):
    folder = saved(
        tmp_path, sites="name,speed,gateway,priority,work,data\n1,10,20,2,1,3\n2,1e0,20,,,\n",
        links="name,start,end,capacity,connections,one_way,weight\nup,1,2,10,2,yes,1\n"
        "down,2,1,8Bps,4,1,5\nround,2,3,9,3,,1\nback,3,1,9,3,no,1\n",
    )  # fmt: skip
    p = read_platform(folder)
    assert p.names == (["1", "2"], ["1"])
    assert (p.priority.tolist(), p.work.tolist(), p.data.tolist()) == ([2], [1], [3])
    assert dict(p.routes) == {(0, 1): ("up",), (1, 0): ("round", "back")}
    assert p.links["bandwidth"].tolist() == [5, 2, 3, 3]


def test_parallel_links_of_csv_hold_what_each_holds(tmp_path):
    rows = "start,end,bandwidth,capacity\nlyon,nice,3,5\nnice,lyon,3,5\n"
    links = read_platform(saved(tmp_path, sites=SITES, links=rows)).links
    # each holds one connection of 3; what is left of both is none
    assert links[["bandwidth", "max_connect"]].to_numpy().tolist() == [[3, 2]]


@pytest.mark.parametrize(
    ("name", "old", "new", "words"),
    [
        ("links", "connections", "connection", "line 1, field connection: is not read; rename it "
         r"\(did you mean connections\?\)"),
        ("links", "3,2", "3,two", "links.csv, line 2, field connections: must be a number"),
        ("links", "3,2", "-3,2", "links.csv, line 2, field bandwidth: must be a number"),
        ("links", "3,2", "3f,2", "links.csv, line 2, field bandwidth: must be .*10Gbps.* got '3f'"),
        ("links", "3,2", "3,2bps", "links.csv, line 2, field connections: must be .* got '2bps'"),
        ("sites", "10,20", "10Bps,20", "sites.csv, line 2, field speed: must be .*3Gf.* '10Bps'"),
        ("links", "3,2", ",2", "links.csv, line 2: needs bandwidth"),
        ("links", "alps,3", ",3", "links.csv, line 2: needs start and end"),
        ("links", "3,2", "3", "links.csv, line 2: 3 fields instead of 4"),
        ("sites", "10,20", "10,", "sites.csv, line 2: gateway is missing"),
        ("sites", "10,20", ",20", "sites.csv, line 2: needs start and end .a link., or name"),
        ("sites", "nice", "lyon", "sites must have different names, got 'lyon' twice"),
        ("sites", "name", "naming", "sites.csv, line 1, field naming: is not|line 2: needs"),
        ("links", "alps,nice", "lyon,alps", "links.csv, line 2: one of its parallel links has"),
    ],
)  # fmt: skip
def test_a_refusal_of_csv_names_file_and_line(tmp_path, name, old, new, words):
    texts = {"sites": SITES, "links": LINKS.replace("alps,nice,100Bps,10", "alps,nice,100Bps,")}
    texts[name] = texts[name].replace(old, new, 1)
    with pytest.raises(InputError, match=words) as refusal:
        read_platform(saved(tmp_path / "net", **texts))
    assert str(refusal.value).count("net") == 1


@pytest.mark.parametrize("text", ["", "\0", "a\n", "name,name\n1,2\n", '"', "\xff", "speed\n1"])
def test_hostile_csv_is_refused_by_name(tmp_path, text):
    for name in ("sites", "links"):
        folder = saved(tmp_path / name, **{"sites": SITES, "links": LINKS, name: text})
        for path in (folder, folder / "sites.csv", folder / "links.csv"):
            with pytest.raises(InputError, match=f"{name}.csv"):
                read_platform(path)
    with pytest.raises(InputError, match="a folder, not a regular file"):
        read_platform(tmp_path)


def test_a_broker_takes_a_network_of_another_kind(tmp_path):
    saved(tmp_path / "net", sites=SITES, links=LINKS)
    text = (
        'network = "net"\n[[event]]\nat = 0\ndo = "submit"\nname = "x"\norigin = "nice"\nload = 16'
    )
    (tmp_path / "vo.toml").write_text(text)
    assert run_file(str(tmp_path / "vo.toml"), "LPRG").now == pytest.approx(2)  # 2 + two of 3
    assert bound(read_platform(tmp_path / "vo.toml")) == pytest.approx(6)
    for name in ("vo.toml", "none.gml"):
        (tmp_path / "vo.toml").write_text(text.replace('"net"', f'"{name}"'))
        with pytest.raises(InputError, match=name):
            read_platform(tmp_path / "vo.toml")


# ------------------------------------------------- the bound, by SciPy from raw numbers


def lp_bound(speed, gateway, links, routes, homes):
    """Solve the relaxed program: alpha of app a on site l, connections of each route, t."""
    sites, apps = len(speed), len(homes)
    cells = list(itertools.product(range(apps), range(sites)))
    column = {cell: 1 + i for i, cell in enumerate(cells)}
    opened = {pair: 1 + len(cells) + i for i, pair in enumerate(routes)}
    rows, limits = [], []

    def row(limit, terms):
        rows.append(np.zeros(1 + len(cells) + len(opened)))
        for at, value in terms:
            rows[-1][at] += value
        limits.append(limit)

    for a in range(apps):  # t is at most the value of every application
        row(0, [(0, homes[a]["priority"])] + [(column[a, k], -1) for k in range(sites)])
    for k in range(sites):
        row(speed[k], [(column[a, k], homes[a]["work"]) for a in range(apps)])
        away = [(a, to) for a, to in cells if homes[a]["origin"] != to]
        row(gateway[k], [(column[a, to], homes[a]["data"]) for a, to in away
                         if k in (to, homes[a]["origin"])])  # fmt: skip
    for k, to in itertools.permutations(range(sites), 2):
        sent = [(column[a, to], app["data"]) for a, app in enumerate(homes) if app["origin"] == k]
        if (k, to) in routes:
            one = min(links[name][0] for name in routes[k, to])
            row(0, [*sent, (opened[k, to], -one)])
        else:
            row(0, [(at, 1) for at, _ in sent])
    for name, (_, most) in links.items():
        row(most, [(at, 1) for pair, at in opened.items() if name in routes[pair]])
    goal = np.zeros(len(rows[0]))
    goal[0] = -1
    return -linprog(goal, np.array(rows), limits, method="highs").fun


def draw_network(seed):
    """Return a network of networkx with unique shortest ways, and its raw numbers."""
    rng = np.random.default_rng(seed)
    is_directed, is_multi = seed % 2 == 1, seed % 3 == 0
    kinds = {(0, 0): nx.Graph, (0, 1): nx.MultiGraph, (1, 0): nx.DiGraph, (1, 1): nx.MultiDiGraph}
    graph = kinds[is_directed, is_multi]()
    names = [f"n{i}" for i in range(6)]
    speed, gateway, homes = [], [], []
    for i, name in enumerate(names):
        graph.add_node(name)
        if i < 4:
            numbers = rng.uniform(1, 20, 5).round(3).tolist()
            fields = ("speed", "gateway", "priority", "work", "data")
            graph.nodes[name].update(zip(fields, numbers, strict=True))
            graph.nodes[name]["gateway"] = f"{8 * numbers[1]:.3f}bps"
            speed.append(numbers[0])
            gateway.append(round(8 * numbers[1], 3) / 8)
            homes.append({"origin": i, **dict(zip(fields[2:], numbers[2:], strict=True))})
    links, lightest = {}, nx.DiGraph()
    for u, v in itertools.permutations(names, 2):
        if (not is_directed and u > v) or rng.random() < 0.5:
            continue
        numbers = []
        for _ in range(int(rng.integers(1, 4)) if is_multi else 1):
            bandwidth, most = round(float(rng.uniform(0.5, 6)), 3), int(rng.integers(0, 5))
            weight = float(rng.uniform(1, 2))
            numbers.append((bandwidth, most, weight))
            text = f"{bandwidth / 1000:.6f}kBps"
            graph.add_edge(u, v, bandwidth=text, connections=most, weight=weight)
        links[u, v] = min(n[0] for n in numbers), sum(n[1] for n in numbers)
        for way in ((u, v), (v, u))[: 1 if is_directed else 2]:
            lightest.add_edge(*way, name=(u, v), weight=min(n[2] for n in numbers))
    lightest.add_nodes_from(names)
    routes = {}
    for k, to in itertools.permutations(range(4), 2):
        if nx.has_path(lightest, names[k], names[to]):
            path = nx.dijkstra_path(lightest, names[k], names[to])
            routes[k, to] = [lightest.edges[edge]["name"] for edge in itertools.pairwise(path)]
    return graph, lp_bound(speed, gateway, links, routes, homes)


def write_csv(graph, folder, comma):
    """Write a graph as sites.csv and links.csv."""

    def row(*cells):
        return comma.join(str(c).replace(".", ",") if comma == ";" else str(c) for c in cells)

    fields = ["speed", "gateway", "priority", "work", "data"]
    sites = [row("name", *fields)] + [
        row(n, *(data[f] for f in fields)) for n, data in graph.nodes(data=True) if data
    ]
    ends = ["bandwidth", "connections", "weight"]
    links = [row("from", "to", "one_way", *ends)] + [
        row(u, v, "yes" if graph.is_directed() else "", *(data[f] for f in ends))
        for u, v, data in graph.edges(data=True)
    ]
    saved(folder, sites="\n".join(sites), links="\n".join(links))


@pytest.mark.parametrize("seed", some_of(range(24)))
def test_the_bound_of_a_drawn_network_is_scipys(tmp_path, seed):
    graph, expected = draw_network(seed)
    nx.write_graphml(graph, tmp_path / "g.graphml")
    nx.write_gml(graph, tmp_path / "g.gml")
    for comma, name in ((",", "c"), (";", "s")):
        write_csv(graph, tmp_path / name, comma)
    for name in ("g.graphml", "g.gml", "c", "s/links.csv"):
        p = read_platform(tmp_path / name)
        assert bound(p) == pytest.approx(expected, rel=1e-7)
        for method in ("G+fair", "LPRG"):
            assert solve(p, method).objective <= expected * (1 + 1e-7)


# --------------------------------------------------------------------- SimGrid


def zone(name, routing, *inside):
    return f'<zone id="{name}" routing="{routing}">{"".join(inside)}</zone>'


def host(name, speed="1f"):
    return f'<host id="{name}" speed="{speed}"><prop id="gateway" value="9Bps"/></host>'


def link(name, more=""):
    return f'<link id="{name}" bandwidth="4Bps" {more}><prop id="connections" value="2"/></link>'


def route(src, dst, *links, tag="route", more=""):
    inside = "".join(f'<link_ctn id="{one}"/>' for one in links)
    return f'<{tag} src="{src}" dst="{dst}" {more}>{inside}</{tag}>'


def platform(tmp_path, *inside):
    text = "".join(inside)
    (tmp_path / "p.xml").write_text(f'<platform version="4.1">{text}</platform>')
    return read_platform(tmp_path / "p.xml")


def ways(p):
    return {(p.site_names[k], p.site_names[to]): list(way) for (k, to), way in p.routes.items()}


def between(src, dst, gw_src, gw_dst, *links, more=""):
    gates = f'gw_src="{gw_src}" gw_dst="{gw_dst}" {more}'
    return route(src, dst, *links, tag="zoneRoute", more=gates)


EAST = (host("e1"), '<router id="er"/>', link("e"), route("e1", "er", "e"))
WEST = (host("w1"), host("w2"), '<router id="wr"/>', link("w"), link("x"), route("w1", "wr", "w"),
        route("w2", "wr", "x"), route("w1", "w2", "w", "x"))  # fmt: skip


@pytest.mark.parametrize("routing", ["Full", "Floyd", "Dijkstra", "DijkstraCache"])
def test_a_route_between_zones_leads_from_gateway_to_gateway(tmp_path, routing):
    p = platform(tmp_path, zone(
        "world", routing, zone("east", "Full", *EAST), zone("west", "Full", *WEST), link("sea"),
        between("east", "west", "er", "wr", "sea"),
    ))  # fmt: skip
    there = {
        ("e1", "w1"): ["e", "sea", "w"], ("e1", "w2"): ["e", "sea", "x"], ("w1", "w2"): ["w", "x"],
    }  # fmt: skip
    assert ways(p) == there | {(b, a): way[::-1] for (a, b), way in there.items()}


@pytest.mark.parametrize("routing", ["Floyd", "Dijkstra"])
def test_a_short_way_leads_through_the_gateways_of_a_zone_between(tmp_path, routing):
    middle = zone("mid", "Full", '<router id="m1"/>', '<router id="m2"/>', link("m"),
                  route("m1", "m2", "m"))  # fmt: skip
    p = platform(tmp_path, zone(
        "world", routing, zone("east", "Full", *EAST), middle, zone("west", "Full", *WEST),
        link("a"), link("b"), link("c1"), link("c2"), link("c3"),
        between("east", "mid", "er", "m1", "a"), between("mid", "west", "m2", "wr", "b"),
        between("east", "west", "er", "wr", "c1", "c2", "c3"),
    ))  # fmt: skip
    # two links and one inside mid count as two: SimGrid weighs the routes between the zones only
    assert ways(p)["e1", "w1"] == ["e", "a", "m", "b", "w"]
    assert ways(p)["w2", "e1"] == ["x", "b", "m", "a", "e"]


def test_zones_nest_as_deep_as_they_like(tmp_path):
    inner = zone("inner", "Full", *EAST)
    for depth in range(5):
        inner = zone(f"z{depth}", "Full", inner)
    p = platform(tmp_path, zone(
        "world", "Full", inner, zone("west", "Full", *WEST), link("sea"),
        between("z4", "west", "er", "wr", "sea", more='symmetrical="NO"'),
    ))  # fmt: skip
    assert ways(p)["e1", "w2"] == ["e", "sea", "x"]
    assert ("w2", "e1") not in ways(p)


def test_star_and_cluster_zones(tmp_path):
    star = zone("s", "Star", host("h1"), host("h2"), link("l1"), link("l2"), link("bb"),
                route("h1", "*", "l1", "bb"), route("h2", "*", "l2", "bb"))  # fmt: skip
    assert ways(platform(tmp_path, star)) == {
        ("h1", "h2"): ["l1", "bb", "l2"], ("h2", "h1"): ["l2", "bb", "l1"],
    }  # fmt: skip
    bb = '<backbone id="bb" bandwidth="9Bps"><prop id="connections" value="3"/></backbone>'
    cluster = zone(
        "c", "Cluster", '<router id="r"/>', host("h1"), host("h2"), link("l1"),
        link("l2", 'sharing_policy="SPLITDUPLEX"'), bb, '<host_link id="h1" up="l1" down="l1"/>',
        '<host_link id="h2" up="l2_UP" down="l2_DOWN"/>',
    )  # fmt: skip
    p = platform(tmp_path, zone(
        "world", "Full", cluster, zone("east", "Full", *EAST), link("sea"),
        between("c", "east", "r", "er", "sea"),
    ))  # fmt: skip
    assert ways(p)["h1", "h2"] == ["l1", "bb", "l2_DOWN"]
    assert ways(p)["h2", "h1"] == ["l2_UP", "bb", "l1"]
    assert ways(p)["h2", "e1"] == ["l2_UP", "bb", "sea", "e"]
    assert ways(p)["e1", "h2"] == ["e", "sea", "bb", "l2_DOWN"]


def test_links_are_shared_split_or_for_each(tmp_path):
    fat = '<link id="fat" bandwidth="4Bps" sharing_policy="FATPIPE"/>'
    way = '<route src="e1" dst="w1"><link_ctn id="duo" direction="UP"/><link_ctn id="fat"/></route>'
    p = platform(tmp_path, zone("z", "Full", host("e1"), host("w1"), fat,
                                link("duo", 'sharing_policy="FULLDUPLEX"'), way))  # fmt: skip
    assert ways(p) == {("e1", "w1"): ["duo_UP", "fat"], ("w1", "e1"): ["fat", "duo_DOWN"]}
    numbers = p.links[["bandwidth", "max_connect"]].T.to_dict("list")
    assert numbers == {"fat": [4, np.inf], "duo_UP": [2, 2], "duo_DOWN": [2, 2]}


def test_a_cluster_is_a_site(tmp_path):
    """Ten hosts of two cores behind their backbone, as SimGrid's own example joins two."""
    one = (
        '<cluster id="{}" prefix="node-" suffix=".org" radical="{}" speed="2f" bw="1Bps" core="2" '
    )
    p = platform(
        tmp_path, '<AS id="AS0" routing="Full">', one.format("a", "0-7,9,20"), 'bb_bw="30Bps"/>',
        one.format("b", "3"), 'router_id="rb"><prop id="gateway" value="7"/></cluster>',
        link("sea"), route("a", "b", "sea", tag="ASroute",
                           more='gw_src="node-a_router.org" gw_dst="rb"'), "</AS>",
    )  # fmt: skip
    assert (p.speed.tolist(), p.gateway.tolist()) == ([40, 4], [30, 7])
    assert ways(p) == {("a", "b"): ["sea"], ("b", "a"): ["sea"]}


FULL = zone("world", "Full", zone("east", "Full", *EAST), zone("west", "Full", *WEST), link("sea"),
            between("east", "west", "er", "wr", "sea"))  # fmt: skip
CLUSTER = '<cluster id="c" radical="0-9" speed="1f" bw="1Bps" bb_bw="1Bps"/>'


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('routing="Full"', 'routing="Vivaldi"', "routing of zone 'world' must be one of Full"),
        ('gw_src="er"', "", "zone 'world', <zoneRoute>: gw_src must be a point inside 'east', got"),
        ('gw_src="er"', 'gw_src="wr"', "gw_src must be a point inside 'east', got 'wr'"),
        ('gw_src="er"', 'gw_src="none"', "gw_src must be a point inside 'east', got 'none'"),
        ('gw_src="er"', 'gw_src="east"', "gw_src must be a point inside 'east', got 'east'"),
        ('src="east"', 'src="eest"', "no point of zone 'world' is called 'eest' .did you"),
        ('<link_ctn id="sea"/>', '<link_ctn id="see"/>', "zone 'world' is called 'see' .did you"),
        ('<link_ctn id="sea"/>', "<link_ctn/>", "<link_ctn> needs id, got {}"),
        ('<router id="er"/>', '<router id="e1"/>', "zone 'east': 'e1' is there twice"),
        ('<router id="er"/>', '<peer id="er"/>', "zone 'east': <peer> is not read; write hosts"),
        ('<router id="er"/>', '<bypassRoute id="er"/>', "<bypassRoute> is not read"),
        ('<zoneRoute src="east"', '<zoneRoute src="west" dst="east" gw_src="wr" gw_dst="er"/>'
         '<zoneRoute src="east"', "zone 'world': east to west has a route already"),
        ('id="sea" ', 'id="sea" sharing_policy="WIFI" ', "'sea': sharing_policy must be one of"),
        ('<link id="sea"', CLUSTER.replace("0-9", "0-x") + '<link id="sea"', "'c': radical"),
        ('<link id="sea"', CLUSTER.replace("0-9", "9-0") + '<link id="sea"', "must be like 0-9,12"),
        ('<link id="sea"', CLUSTER.replace('bb_bw="1Bps"', "") + '<link id="sea"', "needs bb_bw"),
        ('speed="1f"', 'speed="1f" core="0.5"', "core must be a whole number"),
    ],
)  # fmt: skip
def test_zones_are_refused_by_name(tmp_path, old, new, words):
    assert old in FULL
    with pytest.raises(InputError, match=words) as refusal:
        platform(tmp_path, FULL.replace(old, new, 1))
    assert str(refusal.value).startswith(str(tmp_path / "p.xml"))


def test_deep_and_wide_files_are_refused_or_read(tmp_path):
    deep = '<zone id="z{}" routing="Full">'
    inside = "".join(deep.format(i) for i in range(3000)) + "</zone>" * 3000
    with pytest.raises(InputError, match=r"p\.xml"):
        platform(tmp_path, inside)
    # a way to itself joins nobody
    (tmp_path / "p.xml").write_text(SIMGRID.replace('dst="nice"', 'dst="lyon"'))
    assert not read_platform(tmp_path / "p.xml").routes
