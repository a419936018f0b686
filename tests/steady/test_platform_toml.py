"""Platforms in TOML: names, routes, limits, refusals."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings

from dlsim.errors import InputError
from dlsim.files import shared_file
from dlsim.steady import Limits, Share, bound, solve, topology
from dlsim.steady.platform_io import read_platform
from tests.helpers.scale import scale_count
from tests.helpers.steady_platforms import document_of, mutated, pair, platforms, write_toml

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
    path.write_text(text, "utf-8")
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
    assert usual.names == (["lyon", "nice"], ["tides", "winds"])
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


def test_one_cluster_needs_no_routes(tmp_path):
    """The tables may stand in lines, and names be of any letters."""
    cluster = 'cluster = [{name = "campus σ", speed = 6, gateway = 1}]\n'
    application = 'application = [{origin = "campus σ", priority = 1, work = 2, data = 1}]\n'
    for link in ("", LINK.format("idle", "here", "there", "")):
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


def test_some_clusters_may_have_a_name_and_others_a_number(tmp_path):
    text = TWO.replace('name = "nice"\n', "").replace('origin = "nice"', "origin = 1")
    text = text.replace('start = "lyon"\nend = "nice"\n', "")
    route = '[[route]]\nbetween = ["lyon", 1]\nlinks = ["rhone"]\n'
    p = read_platform(written(tmp_path, text + route))
    assert p.origin.tolist() == [0, 1]
    assert dict(p.routes) == {(0, 1): ("rhone",), (1, 0): ("rhone",)}


def test_a_refusal_names_line_and_name(tmp_path):
    for old, new, words in (
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
    ):  # fmt: skip
        path = written(tmp_path, TWO.replace(old, new, 1))
        with pytest.raises(InputError, match=words) as refusal:
            read_platform(path)
        assert str(refusal.value).startswith(path)
        assert str(refusal.value).count(path) == 1


# ------------------------------------------------------- written and read again


@settings(max_examples=scale_count(40), deadline=None)
@given(platforms(3))
def test_a_platform_comes_back_from_a_file(tmp_path_factory, p):
    path = tmp_path_factory.mktemp("platform") / "p.toml"
    write_toml(path, document_of(p))
    q = read_platform(path)
    assert document_of(q) == document_of(p)
    assert bound(q) == bound(p)


def test_names_routers_priorities_and_limits_come_back(tmp_path):
    cable = {"start": "a", "end": 'b "é"', "bandwidth": 0.1, "max_connect": np.inf}
    p = replace(
        pair(),
        links=pd.DataFrame(cable, index=["sea\ncable"]),
        routes={(0, 1): ["sea\ncable"]},
        priority=[[1, 2.5], [0, 1]],
        origin=[1, 1],
        router=["a", 'b "é"'],
        limits=Limits((Share(0, (0, 1), 0.1),), {(0, 1): 3}),
    )
    write_toml(tmp_path / "p.toml", document_of(p))
    q = read_platform(tmp_path / "p.toml")
    assert document_of(q) == document_of(p)
    assert q.limits == p.limits
    assert q.origin.tolist() == [1, 1]
    assert set(q.to_graph().edges) == {("a", 'b "é"')}


def test_a_file_without_routes_gets_the_shortest(tmp_path):
    p = topology.random(5, 0.6, seed=3)
    document, path = document_of(p), tmp_path / "p.toml"
    del document["route"]
    write_toml(path, document)
    assert read_platform(path).routes == p.routes
    for cluster in document["cluster"]:
        del cluster["router"]
    write_toml(path, document)
    with pytest.raises(InputError, match="every cluster must name its router"):
        read_platform(path)


def test_a_file_that_is_no_platform_is_refused_by_name(tmp_path):
    path, infinite = tmp_path / "p.toml", float("inf")
    for change, message in (
        ({"cluster": 3}, "cluster must be written as .*, a list of tables; got 3"),
        ({"cluster": [{"speed": "x", "gateway": 1}]}, "cluster 0: speed must be a number, got 'x'"),
        ({"planet": []}, "no field is called 'planet'; known: cluster"),
        ({"route": [{"from": 0, "to": 1, "links": 5}]}, "route 0: links must be a list, got 5"),
        ({"route": [{"from": infinite, "to": 1, "links": []}]}, "0: from must be .* inf"),
        ({"limits": {"pears": 2}}, "limits: no field is called 'pears'"),
        ({"limits": 5}, "limits: must be a table of fields, got 5"),
        ({"limits": {"pairs": 1, "pair": []}}, "not both"),
        ({"limits": {"pairs": "few"}}, "limits.pairs must be a number"),
        ({"limits": {"share": [{"cluster": 0, "origins": 3, "share": 0.1}]}},
         "limits, share 0: origins must be a list, got 3"),
        ({"limits": {"pair": [{"from": 0, "to": infinite, "most": 1}]}}, "0: to must be"),
        ({"link": [{"name": [1], "bandwidth": 1, "max_connect": 1}]}, "must be a text or a number"),
        ({"application": []}, "priority must be above 0|shape|entries"),
    ):  # fmt: skip
        write_toml(path, document_of(pair()) | change)
        with pytest.raises(InputError, match=message) as refusal:
            read_platform(path)
        assert str(refusal.value).startswith(str(path))


DOCUMENT = document_of(
    replace(topology.random(3, 0.8, seed=2), limits=Limits((Share(0, (1,), 0.5),), {(0, 1): 2}))
)


@pytest.mark.filterwarnings("ignore:max_connect|limits.pairs:UserWarning")
def test_mutated_documents_are_read_or_refused(tmp_path):
    @settings(max_examples=scale_count(150), deadline=None)
    @given(mutated(DOCUMENT))
    def attempt(document):
        write_toml(tmp_path / "p.toml", document)
        try:
            p = read_platform(tmp_path / "p.toml")
        except InputError:
            return
        assert p.clusters == len(document["cluster"])

    attempt()
