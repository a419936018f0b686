"""Platforms in TOML: names, routes, limits, refusals."""

import re

import pytest

from dlsim.errors import InputError
from dlsim.files import shared_file
from dlsim.steady import Limits, Share, solve
from dlsim.steady.platform_io import read_platform

#: Speed 10 and 2 behind one link of two connections of bandwidth 3: LP 6, G 4, LPR 5, LPRG 6.
TWO = """
[[cluster]]
name = "lyon"
speed = 10
gateway = 20

[[cluster]]
name = "nice"
speed = 2
gateway = 20

[[link]]
name = "rhone"
start = "lyon"
end = "nice"
bandwidth = 3
max_connect = 2

[[application]]
name = "tides"
origin = "lyon"
priority = 1
work = 1
data = 1

[[application]]
name = "winds"
origin = "nice"
priority = 1
work = 1
data = 1
"""


def written(tmp_path, text, name="p.toml"):
    path = tmp_path / name
    path.write_text(text)
    return str(path)


def test_names_numbers_and_routes_say_the_same(tmp_path):
    numbered = TWO.replace('origin = "lyon"', "origin = 0").replace('origin = "nice"', "origin = 1")
    routes = '[[route]]\nfrom = {}\nto = {}\nlinks = ["rhone"]\n'
    ways = [numbered, TWO + routes.format(0, 1) + routes.format('"nice"', '"lyon"')]
    usual = read_platform(written(tmp_path, TWO))
    for text in ways:
        p = read_platform(written(tmp_path, text))
        assert dict(p.routes) == dict(usual.routes) == {(0, 1): ("rhone",), (1, 0): ("rhone",)}
        assert p.origin.tolist() == [0, 1]
        assert solve(p, "LPR").objective == pytest.approx(5)
    wan = read_platform(shared_file("data/examples/wan.toml"))
    assert wan.names[0] == ["cluster 0", "cluster 1"]


LINK = '[[link]]\nname = "{}"\nstart = "{}"\nend = "{}"\nbandwidth = 1\n{}\n'


def test_routes_are_shortest_where_none_is_listed(tmp_path):
    """Two hops are taken only without the link between the sites."""
    hops = LINK.format("up", "lyon", "alps", "") + LINK.format("down", "alps", "nice", "")
    assert dict(read_platform(written(tmp_path, TWO + hops)).routes)[0, 1] == ("rhone",)
    moved = TWO.replace('end = "nice"', 'end = "sea"') + hops
    p = read_platform(written(tmp_path, moved))
    assert dict(p.routes) == {(0, 1): ("up", "down"), (1, 0): ("down", "up")}
    assert p.links["max_connect"].tolist() == [2, float("inf"), float("inf")]
    assert p.router == ("lyon", "nice")


def test_a_route_between_two_clusters_leads_both_ways(tmp_path):
    hops = LINK.format("up", "lyon", "alps", "") + LINK.format("down", "alps", "nice", "")
    route = '[[route]]\nbetween = ["lyon", 1]\nlinks = ["up", "down"]\n'
    pair = '[[limits.pair]]\nbetween = ["nice", "lyon"]\nmost = 1\n'
    p = read_platform(written(tmp_path, TWO + hops + route + pair))
    assert dict(p.routes) == {(0, 1): ("up", "down"), (1, 0): ("down", "up")}
    assert p.limits == Limits(pairs={(1, 0): 1})


def test_the_shared_case_of_little_data_is_read(tmp_path):
    """1e12 work and one data a unit: 1 a time at the fast site over one connection, .001 here."""
    text = """
        cluster = [
            {name = "campus σ", speed = 1e9, gateway = 1e9},
            {name = "centre", speed = 1e12, gateway = 1e9},
        ]
        application = [{name = "mc", origin = "campus σ", priority = 1, work = 1e12, data = 1}]
        link = [{name = "wan", bandwidth = 1e9, max_connect = 10}]
        route = [{between = ["campus σ", "centre"], links = ["wan"]}]
    """
    path = tmp_path / "p.toml"
    path.write_text(text, encoding="utf-8")
    best = solve(read_platform(path), "MILP", engine="python")
    assert best.objective == pytest.approx(1.001)
    assert best.connections.tolist() == [[0, 1], [0, 0]]


@pytest.mark.parametrize("link", ["", LINK.format("idle", "here", "there", "")])
def test_one_cluster_needs_no_routes(tmp_path, link):
    cluster = "[[cluster]]\nspeed = 6\ngateway = 1\n"
    application = "[[application]]\norigin = 0\npriority = 1\nwork = 2\ndata = 1\n"
    p = read_platform(written(tmp_path, cluster + application + link))
    assert dict(p.routes) == {}
    assert solve(p, "LPRG", engine="python").objective == 3


def test_owners_policies_name_clusters(tmp_path):
    named = (
        '[[limits.share]]\ncluster = "lyon"\norigins = ["nice"]\nshare = 0.1\n'
        '[[limits.pair]]\nfrom = "lyon"\nto = "nice"\nmost = 1\n'
    )
    numbered = named.replace('"lyon"', "0").replace('"nice"', "1")
    for text in (named, numbered):
        p = read_platform(written(tmp_path, TWO + text))
        assert p.limits == Limits((Share(0, (1,), 0.1),), {(0, 1): 1})
        # winds: 2 at home, and of lyon a tenth of its speed
        assert solve(p, "MILP").objective == pytest.approx(3)
    p = read_platform(written(tmp_path, TWO + "[limits]\npairs = 1\n"))
    assert p.limits == Limits(pairs=1)


def test_names_are_read_from_a_file(tmp_path):
    p = read_platform(written(tmp_path, TWO))
    assert p.names == (["lyon", "nice"], ["tides", "winds"])


def test_some_clusters_may_have_a_name_and_others_a_number(tmp_path):
    text = TWO.replace('name = "nice"\n', "").replace('origin = "nice"', "origin = 1")
    text = text.replace('start = "lyon"\nend = "nice"\n', "")
    route = '[[route]]\nbetween = ["lyon", 1]\nlinks = ["rhone"]\n'
    p = read_platform(written(tmp_path, text + route))
    assert p.origin.tolist() == [0, 1]
    assert dict(p.routes) == {(0, 1): ("rhone",), (1, 0): ("rhone",)}


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("speed = 2", "speed = -2",
         "line 7, cluster 1: speed must be a finite number of at least 0"),
        ('origin = "nice"', 'origin = "Nic"', r"line 26, application 1: origin must be one of "
         r"lyon, nice; got 'Nic' \(did you mean nice\?\)"),
        ('name = "nice"', 'name = "lyon"', "clusters must have different names, got 'lyon' twice"),
        ('end = "nice"', "", "end not found among bandwidth, max_connect, start"),
        ("bandwidth = 3", "", "link 0: bandwidth is missing"),
        ("[[link]]", LINK.format("rhone", "nice", "alps", "") + "[[link]]", "'rhone' of links app"),
        ("max_connect = 2", "connections = 2", "link 0: no field is called 'connections'; known: "),
        (TWO, TWO + '[[limits.pair]]\nfrom = "lyon"\nto = "Nice"\nmost = 1\n',
         r"limits, pair 0: to must be one of lyon, nice; got 'Nice' \(did you mean nice\?\)"),
        (TWO, TWO + '[[limits.share]]\ncluster = 0\norigins = ["paris"]\nshare = 1\n',
         "limits, share 0: origins must be one of lyon, nice; got 'paris'"),
        (TWO, TWO + '[[limits.share]]\ncluster = 0\norigins = [1]\nshare = 2\n',
         "limits, share 0: share must be a number from 0 to 1"),
        ("[[link]]", LINK.format("two", "nice", "lyon", "") + "[[link]]", "link 'rhone' joins two"),
        (TWO, TWO + '[[route]]\nfrom = 0\nlinks = []\n',
         "route 0: to is missing; give from and to, or between"),
        (TWO, TWO + '[[route]]\nbetween = [0]\nlinks = []\n',
         "route 0: between must list two clusters, without from and to"),
        (TWO, TWO + '[[route]]\nbetween = [0, 1]\nto = 1\nlinks = []\n', "without from and to"),
        (TWO, TWO + '[[route]]\nbetween = ["lyon", "Nice"]\nlinks = []\n',
         "between must be one of lyon, nice; got 'Nice'"),
        (TWO, TWO + '[[route]]\nfrom = 1\nto = 0\nlinks = []\n'
         '[[route]]\nbetween = [0, 1]\nlinks = []\n', "route 1: nice to lyon has a route already"),
    ],
)  # fmt: skip
def test_a_refusal_names_line_and_name(tmp_path, old, new, words):
    path = written(tmp_path, TWO.replace(old, new, 1))
    with pytest.raises(InputError) as refusal:
        read_platform(path)
    said = str(refusal.value)
    assert said.startswith(path)
    assert re.search(words, said)
    assert said.count(path) == 1
