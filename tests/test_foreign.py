"""Networks that networkx wrote: parallel links, directed graphs, units, hostile files."""

import networkx as nx
import pytest

from dlsim.cli import main
from dlsim.errors import InputError
from dlsim.steady import read_platform, solve
from dlsim.steady.foreign import rate

WRITERS = {"graphml": nx.write_graphml, "gml": nx.write_gml}
written = pytest.mark.parametrize("ending", WRITERS)


def sites(graph):
    """The hand case of two sites: LP 6, G 4, LPR 5, LPRG 6."""
    graph.add_node("lyon", speed=10, gateway=20.0)
    graph.add_node("nice", speed=2, gateway=20.0)
    graph.add_node("alps")
    return graph


def saved(tmp_path, ending, graph):
    path = tmp_path / f"net.{ending}"
    WRITERS[ending](graph, path)
    return path


@written
def test_a_graph_of_networkx_is_a_platform(tmp_path, capsys, ending):
    graph = sites(nx.Graph())
    graph.add_edge("lyon", "alps", bandwidth=3, connections=2)
    graph.add_edge("alps", "nice", capacity=100, connections=10)
    path = saved(tmp_path, ending, graph)
    p = read_platform(path)
    assert [solve(p, m).objective for m in ("G", "LPR", "LPRG")] == pytest.approx([4, 5, 6])
    assert dict(p.routes)[0, 1] == ("lyon - alps", "nice - alps")
    assert main(["solve", str(path)]) == 0
    assert "lyon - alps" in capsys.readouterr().out


@written
def test_parallel_links_become_one_that_they_can_carry(tmp_path, ending):
    graph = sites(nx.MultiGraph())
    graph.add_edge("lyon", "nice", bandwidth=3, connections=1)
    graph.add_edge("nice", "lyon", bandwidth=4, connections=1)
    assert solve(p := read_platform(saved(tmp_path, ending, graph)), "MILP").objective == 6
    assert p.links[["bandwidth", "max_connect"]].to_numpy().tolist() == [[3, 2]]
    graph = sites(nx.MultiGraph())
    graph.add_edges_from([("lyon", "nice", {"capacity": c, "connections": 1}) for c in (2, 4)])
    p = read_platform(saved(tmp_path, ending, graph))
    assert p.links[["bandwidth", "max_connect"]].to_numpy().tolist() == [[3, 2]]


@written
def test_a_directed_edge_leads_one_way(tmp_path, ending):
    graph = sites(nx.DiGraph())
    graph.add_edge("nice", "lyon", bandwidth=3, connections=2)
    p = read_platform(saved(tmp_path, ending, graph))
    assert dict(p.routes) == {(1, 0): ("nice - lyon",)}
    assert solve(p, "MILP").objective == 6
    graph.add_edge("lyon", "alps", bandwidth=3, connections=2)
    graph.add_edge("alps", "nice", bandwidth=3, connections=2)
    p = read_platform(saved(tmp_path, ending, graph))
    assert dict(p.routes)[0, 1] == ("lyon - alps", "alps - nice")


@pytest.mark.parametrize(
    ("of", "text", "value"),
    [("data", "8bps", 1), ("data", "1 kbit/s", 125), ("data", "2MBps", 2e6), ("work", "2M", 2e6),
     ("data", "1KiBps", 1024), ("work", "3Gf", 3e9), ("", "5", 5), ("data", "1e3Bps", 1000),
     ("", 7, 7)],
)  # fmt: skip
def test_units(of, text, value):
    assert rate("x", text, of) == value


@pytest.mark.parametrize("of", ["data", "work", ""])
@pytest.mark.parametrize("text", ["fast", "1 furlong", "-3bps", "1.2.3Bps", True, None])
def test_what_is_no_rate_is_refused(text, of):
    with pytest.raises(InputError, match="x must be"):
        rate("x", text, of)


@pytest.mark.parametrize(("of", "text", "words"), [
    ("data", "7Gf", "with a unit such as 10Gbps, got '7Gf'"),
    ("work", "10Gbps", "with a unit such as 3Gf, got '10Gbps'"), ("", "2bps", "at least 0, got"),
])  # fmt: skip
def test_a_unit_of_something_else_is_refused(of, text, words):
    with pytest.raises(InputError, match=words):
        rate("x", text, of)


@written
@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda g: g.nodes["lyon"].pop("gateway"), "node 'lyon': gateway is missing"),
        (lambda g: [g.nodes[n].pop("speed") for n in ("lyon", "nice")], "no node carries a speed"),
        (lambda g: g.add_edge("lyon", "alps", price=3), "edge 'lyon' - 'alps': needs bandwidth"),
        (lambda g: g.add_edge("lyon", "alps", bandwidth="quick"), "bandwidth must be .* 'quick'"),
        (lambda g: g.add_edge("lyon", "nice", capacity=1, connections=1), "one of its parallel"),
    ],
)
def test_a_refusal_names_file_and_node(tmp_path, ending, change, words):
    graph = sites(nx.MultiGraph())
    graph.add_edge("lyon", "nice", bandwidth=3, connections=2)
    change(graph)
    path = saved(tmp_path, ending, graph)
    with pytest.raises(InputError, match=words) as refusal:
        read_platform(path)
    assert str(refusal.value).startswith(str(path))


BOMB = '<!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;">]><graphml>&b;</graphml>'


@pytest.mark.parametrize(
    ("name", "text"),
    [("a.graphml", BOMB), ("a.graphml", ""), ("a.graphml", "<graphml>"), ("a.graphml", "<a/>"),
     ("a.graphml", "<graphml/>"), ("a.gml", ""), ("a.gml", "graph [" * 5000), ("a.gml", "graph 3"),
     ("a.gml", "graph [ node [ id 0 ] edge [ source 0 target 9 ] ]"), ("b.gml", None),
     ("a.graphml", "\0"), ("a.graphml", '<?xml version="1.0" encoding="UTF-16"?><graphml/>'),
     ("a.graphml", '<graphml xmlns="http://graphml.graphdrawing.org/xmlns"><graph><node/></graph>'
      "</graphml>")],
)  # fmt: skip
def test_a_hostile_file_is_refused_by_name(tmp_path, name, text):
    if text is not None:
        (tmp_path / name).write_text(text)
    with pytest.raises(InputError, match=name):
        read_platform(tmp_path / name)


SIMGRID = """<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
  <zone id="world" routing="Full">
    <host id="lyon" speed="10f"><prop id="gateway" value="160bps"/></host>
    <host id="nice" speed="2f"><prop id="gateway" value="20Bps"/></host>
    <link id="rhone" bandwidth="7Bps" latency="1ms">
      <prop id="connection_bandwidth" value="3Bps"/>
    </link>
    <route src="lyon" dst="nice"><link_ctn id="rhone"/></route>
  </zone>
</platform>
"""


def test_a_simgrid_platform_is_read(tmp_path):
    (tmp_path / "p.xml").write_text(SIMGRID)
    p = read_platform(tmp_path / "p.xml")
    assert [solve(p, m).objective for m in ("G", "LPR", "LPRG")] == pytest.approx([4, 5, 6])
    assert dict(p.routes) == {(0, 1): ("rhone",), (1, 0): ("rhone",)}
    (tmp_path / "p.xml").write_text(SIMGRID.replace("<route ", '<route symmetrical="NO" '))
    assert dict(read_platform(tmp_path / "p.xml").routes) == {(0, 1): ("rhone",)}


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('<prop id="gateway" value="160bps"/>', "", "host 'lyon': gateway is missing"),
        ('id="connection_bandwidth"', 'id="colour"', "link 'rhone': needs <prop id=\"connections"),
        ('speed="2f"', 'speed="2f, 1f"', "host 'nice': speed must be .* '2f, 1f'"),
        ('bandwidth="7Bps"', "", "link 'rhone': bandwidth must be"),
        (
            'dst="nice"',
            'dst="nize"',
            "no point of zone 'world' is called 'nize' .did you mean nice",
        ),
        ("<route ", "<peer/><route ", "<peer> is not read"),
        ("platform>", "plat>", "not a platform of SimGrid"),
        ('simgrid.dtd"', 'simgrid.dtd" [<!ENTITY a "aa">]', "declares a document type"),
        ('simgrid.dtd"', 'simgrid.dtd" [<!ATTLIST host x CDATA "a">]', "declares a document"),
    ],
)
def test_a_simgrid_platform_is_refused_by_name(tmp_path, old, new, words):
    path = tmp_path / "p.xml"
    path.write_text(SIMGRID.replace(old, new, 1))
    with pytest.raises(InputError, match=words) as refusal:
        read_platform(path)
    assert str(refusal.value).startswith(str(path))


#: As SimGrid's manual writes them, one element a line: the line of each is told by its place.
LINES = """<?xml version='1.0'?>
<platform version="4.1">
  <zone id="world" routing="Full">
    <zone id="east" routing="Full">
      <host id="lyon" speed="10f">
        <prop id="gateway" value="20Bps"/>
      </host>
      <router id="er"/>
      <link id="e" bandwidth="7Bps">
        <prop id="connections" value="2"/>
      </link>
      <route src="lyon" dst="er">
        <link_ctn id="e"/>
      </route>
    </zone>
    <cluster id="nice" prefix="n" suffix="" radical="0-1" speed="1f" bb_bw="20Bps"
             bw="1Bps" router_id="nr"/>
    <link id="sea" bandwidth="9Bps"><prop id="connections" value="3"/></link>
    <zoneRoute src="east" dst="nice" gw_src="er" gw_dst="nr">
      <link_ctn
        id="sea"/>
    </zoneRoute>
  </zone>
</platform>
"""


@pytest.mark.parametrize(
    ("line", "old", "new", "words"),
    [
        (2, "platform", "zone", "must be a platform of one zone, got <zone> of 1"),
        (3, '  <zone id="world"', '  <include file="a.xml"/><zone id="world"', "<include> is not"),
        (24, "</platform>", '<trace id="t"/></platform>', "<trace> is not read here"),
        (9, '"7Bps"', '"7Gf"', "link 'e': bandwidth must be .* '7Gf'"),
        (9, '"7Bps"', '"7Bps" bandwidth_file="e.bw"', "<link> 'e': bandwidth_file is not read"),
        (5, '"10f"', '"10Gbps"', "host 'lyon': speed must be .* '10Gbps'"),
        (5, '"20Bps"', '"20f"', "host 'lyon': gateway must be .* '20f'"),
        (5, '"10f"', '"10f" state_file="h.txt"', "<host> 'lyon': state_file is not read"),
        (3, 'routing="Full">\n    <zone', 'routing="RIP">\n    <zone', "routing of zone 'world'"),
        (4, 'id="east" routing', "routing", "<zone> needs id"),
        (5, 'speed="10f"', 'speed="quick"', "host 'lyon': speed must be .* 'quick'"),
        (5, "gateway", "doorway", "host 'lyon': gateway is missing"),
        (5, "20Bps", "20 baud", "host 'lyon': gateway must be .* '20 baud'"),
        (8, '<router id="er"/>', "<peer/>", "zone 'east': <peer> is not read"),
        (8, 'id="er"/>', 'id="lyon"/>', "zone 'east': 'lyon' is there twice"),
        (9, '"7Bps"', '"-7Bps"', "link 'e': bandwidth must be .* '-7Bps'"),
        (9, 'value="2"', 'value="2.5"', "link 'e': connections must be a whole number"),
        (18, 'id="sea" b', 'id="e" b', "link 'e' is there twice"),
        (12, 'dst="er"', 'dst="re"', "no point of zone 'east' is called 're'"),
        (13, 'id="e"/', 'id="e" direction="OUT"/', "direction must be one of NONE, UP, DOWN; got"),
        (13, 'id="e"/', 'id="e" direction="UP"/', "no link of a route .* 'e_UP'"),
        (13, 'bandwidth="7Bps"', 'bandwidth="7Bps" sharing_policy="SPLITDUPLEX"', "split in two"),
        (12, '_ctn id="e"/>', '_ctn id="e"/><link_ctn id="e"/>', "must pass each link once"),
        (12, 'dst="er"', 'dst="er" symmetrical="MAYBE"', "symmetrical must be one of YES, NO"),
        (13, '_ctn id="e"', '_ctn id="f"', "no link of a route of zone 'east' is called 'f'"),
        (16, '"0-1"', '"0-one"', "cluster 'nice': radical must be like 0-9,12, got '0-one'"),
        (19, 'gw_src="er"', 'gw_src="nr"', "gw_src must be a point inside 'east', got 'nr'"),
        (20, 'id="sea"/', 'id="seal"/', "called 'seal' .did you mean sea"),
        (23, "</zone>\n</p", "</zine>\n</p", "not a platform of SimGrid .*mismatched tag"),
        (21, 'id="sea"/>', 'id="sea"/>&lake;', "&lake; is declared nowhere|undefined entity"),
    ],
)  # fmt: skip
def test_a_refusal_of_simgrid_names_its_line(tmp_path, line, old, new, words):
    path = tmp_path / "p.xml"
    path.write_text(LINES)
    assert dict(read_platform(path).routes) == {(0, 1): ("e", "sea"), (1, 0): ("sea", "e")}
    assert old in LINES
    path.write_text(LINES.replace(old, new) if old == "platform" else LINES.replace(old, new, 1))
    with pytest.raises(InputError, match=words) as refusal:
        read_platform(path)
    assert str(refusal.value).startswith(f"{path}, line {line}: ")


GRAPHML = """<?xml version='1.0' encoding='utf-8'?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
  <key id="s" for="node" attr.name="speed" attr.type="double"/>
  <key id="g" for="node" attr.name="gateway" attr.type="string"><default>20</default></key>
  <key id="b" for="edge" attr.name="bandwidth" attr.type="string"/>
  <key id="c" for="edge" attr.name="connections" attr.type="int"><default>2</default></key>
  <graph edgedefault="undirected">
    <node id="lyon"><data key="s">10</data></node>
    <node id="nice">
      <data key="s">2</data>
      <data key="g">160bps</data>
    </node>
    <edge source="lyon" target="nice">
      <data key="b">3</data>
    </edge>
  </graph>
</graphml>
"""
GML = """# drawn by hand
graph [
  label "node [ of a text"
  node [
    id 0
    label "lyon"
    speed 10.0
    gateway "20"
  ]
  node [ id 1 label "nice" speed "2"
    gateway "160bps" ]
  edge
  [
    source 0
    target 1
    bandwidth 3
    connections 2
  ]
]
"""


@pytest.mark.parametrize(
    ("text", "line", "old", "new", "words"),
    [
        (GRAPHML, 8, '"s">10', '"s">ten', "could not convert string to float: 'ten'"),
        (GRAPHML, 8, 'id="lyon"', "", "a node needs an id of its own, got None"),
        (GRAPHML, 9, 'id="nice"', 'id="lyon"', "a node needs an id of its own, got 'lyon'"),
        (GRAPHML, 9, "160bps", "160 baud", "node 'nice': gateway must be .* '160 baud'"),
        (GRAPHML, 13, 'target="nice"', 'target="nise"', "no node has the id 'nise'"),
        (GRAPHML, 13, 'target="nice"', 'target="nice" directed="true"', "or none of them"),
        (GRAPHML, 13, 'key="b"', 'key="d"', "no key d"),
        (GRAPHML, 13, '"b">3', '"b">-3', "edge 'lyon' - 'nice': bandwidth must be .* '-3'"),
        (GRAPHML, 13, '"b">3', '"b">1e999', "bandwidth must be a finite number"),
        (GML, 12, "connections", "connection", "connection is not read; .*mean connections"),
        (GRAPHML, 13, '<data key="b">3</data>', "", "edge 'lyon' - 'nice': needs bandwidth"),
        (GRAPHML, 15, "</edge>", "</hedge>", "not GraphML as networkx writes it .*mismatched"),
        (GRAPHML, 17, "</graph>", '</graph>\n<graph edgedefault="directed"/>', "of 2"),
        (GML, 4, 'gateway "20"', "", "node 'lyon': gateway is missing"),
        (GML, 8, "speed 10.0", "speed", "not GML as networkx writes it .*expected"),
        (GML, 10, '"160bps"', '"160 baud"', "node 'nice': gateway must be .* '160 baud'"),
        (GML, 12, "target 1", "target 7", "edge #0 has undefined target 7"),
        (GML, 12, "bandwidth 3", "", "edge 'lyon' - 'nice': needs bandwidth"),
        (GML, 12, "bandwidth 3", "capacity 3 bandwidth 1", "a capacity needs the bandwidth of"),
        (GML, 16, "bandwidth 3", "bandwidth =", "cannot tokenize"),
    ],
)  # fmt: skip
def test_a_refusal_of_a_graph_names_its_line(tmp_path, text, line, old, new, words):
    path = tmp_path / ("g.gml" if text is GML else "g.graphml")
    path.write_text(text)
    p = read_platform(path)  # the hand case again
    assert [solve(p, m).objective for m in ("G", "LPR", "LPRG")] == pytest.approx([4, 5, 6])
    assert old in text
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(InputError, match=words) as refusal:
        read_platform(path)
    assert str(refusal.value).startswith(f"{path}, line {line}: ")
    assert "dlsim_line" not in str(refusal.value)


def test_parallel_edges_of_gml_need_no_word_for_them(tmp_path):
    edge = GML[GML.index("  edge") : GML.rindex("]")].replace("connections 2", "connections 1")
    (tmp_path / "g.gml").write_text(GML[: GML.index("  edge")] + 2 * edge + "]")
    p = read_platform(tmp_path / "g.gml")
    assert p.links[["bandwidth", "max_connect"]].to_numpy().tolist() == [[3, 2]]
    assert solve(p, "MILP").objective == pytest.approx(6)
