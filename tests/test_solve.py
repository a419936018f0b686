"""``dlsim solve`` and the file language of platforms: hand cases, names, routes, refusals."""

import re

import pandas as pd
import pytest

from dlsim.cli import main
from dlsim.errors import InputError
from dlsim.files import shared_file
from dlsim.steady import solve
from dlsim.steady.network import per_connection
from dlsim.steady.store import read_platform

#: Speed 10 and 2 behind one link of two connections of bandwidth 3: LP 6, G 4, LPR 5, LPRG 6.
TWO = """
[[site]]
name = "lyon"
speed = 10
gateway = 20

[[site]]
name = "nice"
speed = 2
gateway = 20

[[link]]
name = "rhone"
start = "lyon"
end = "nice"
bandwidth = 3
connections = 2

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


def test_what_to_send_where_is_told_by_name(tmp_path, capsys):
    out = tmp_path / "out"
    path = written(tmp_path, TWO)
    assert main(["solve", path, "--compare", "G,LPR,MILP,LP", "--out", str(out), "--method",
                 "LPRG"]) == 0  # fmt: skip
    said = capsys.readouterr().out
    assert "p.toml: 2 sites, 2 applications; no schedule is better than 6 (LP)" in said
    assert "repeats every T_p = 1 units of time" in said
    work = pd.read_csv(out / "LPRG-work.csv").set_index(["application", "to"])
    assert list(work["units_per_time"]) == [6, 4, 2]
    assert work.loc[("winds", "lyon"), "data_sent_per_time"] == 4
    assert work.loc[("winds", "lyon"), "units_per_period"] == 4
    opened = pd.read_csv(out / "LPRG-connections.csv")
    assert opened.iloc[0].tolist() == ["nice", "lyon", 2, 3.0, "rhone"]
    table = pd.read_csv(out / "summary.csv").set_index("method")
    assert table["objective"].round(9).to_dict() == {
        "LPRG": 6,
        "G": 4,
        "LPR": 5,
        "MILP": 6,
        "LP": 6,
    }
    assert table["gap"].round(9).to_dict() == {"LPRG": 0, "G": 0.5, "LPR": 0.2, "MILP": 0, "LP": 0}
    assert table["ratio_to_lp"].round(3).to_dict()["G"] == 0.667
    assert table["period"].isna().to_dict()["LP"]  # broken connections have no period
    assert (out / "flows.png").read_bytes().startswith(b"\x89PNG")


def test_a_given_period_and_a_time_limit_are_taken(capsys, tmp_path):
    path = written(tmp_path, TWO)
    assert main(["solve", path, "--method", "MILP", "--period", "5", "--seconds", "0"]) == 0
    assert "T_p = 5" in capsys.readouterr().out
    assert main(["solve", path, "--period", "0"]) == 2
    assert main(["solve", path, "--seconds", "-1", "--method", "MILP"]) == 2
    assert "most_seconds must be" in capsys.readouterr().err


def test_names_numbers_and_routes_say_the_same(tmp_path):
    numbered = TWO.replace('origin = "lyon"', "origin = 0").replace('origin = "nice"', "origin = 1")
    routes = '[[route]]\nfrom = {}\nto = {}\nlinks = ["rhone"]\n'
    both = '[[route]]\nbetween = ["nice", "lyon"]\nlinks = ["rhone"]\n'
    ways = [numbered, TWO + both, TWO + routes.format(0, 1) + routes.format('"nice"', '"lyon"')]
    usual = read_platform(written(tmp_path, TWO))
    for text in ways:
        p = read_platform(written(tmp_path, text))
        assert dict(p.routes) == dict(usual.routes) == {(0, 1): ("rhone",), (1, 0): ("rhone",)}
        assert p.origin.tolist() == [0, 1]
        assert solve(p, "LPR").objective == pytest.approx(5)
    wan = read_platform(shared_file("data/examples/wan.toml"))
    assert wan.names[0] == ["cluster 0", "cluster 1"]


LINK = '[[link]]\nname = "{}"\nstart = "{}"\nend = "{}"\nbandwidth = 1\n{}\n'


def test_routes_are_lightest_where_links_have_weights(tmp_path):
    """Two light hops beat the heavy link; without weights the link alone is shortest."""
    hops = LINK.format("up", "lyon", "alps", "") + LINK.format("down", "alps", "nice", "")
    assert dict(read_platform(written(tmp_path, TWO + hops)).routes)[0, 1] == ("rhone",)
    heavy = TWO.replace("connections = 2", "connections = 2\nweight = 3") + hops
    assert dict(read_platform(written(tmp_path, heavy)).routes) == {
        (0, 1): ("up", "down"), (1, 0): ("down", "up"),
    }  # fmt: skip


def test_a_one_way_link_is_used_one_way(tmp_path):
    one = TWO.replace("connections = 2", "one_way = true")
    assert dict(read_platform(written(tmp_path, one)).routes) == {(0, 1): ("rhone",)}
    back = one + LINK.format("back", "nice", "lyon", "one_way = true")
    p = read_platform(written(tmp_path, back))
    assert dict(p.routes) == {(0, 1): ("rhone",), (1, 0): ("back",)}
    assert p.links["max_connect"].tolist() == [float("inf")] * 2


def test_one_file_serves_solve_and_broker(tmp_path, capsys):
    text = "period = 2.0\n" + TWO + (
        '[[share]]\nsite = "lyon"\norigins = ["nice"]\nshare = 0.1\n'
        '[[pair]]\nconnections = 1\nbetween = ["lyon", "nice"]\n'
        '[[event]]\nat = 0\ndo = "submit"\nname = "x"\norigin = "nice"\nload = 30\n'
    )  # fmt: skip
    path = written(tmp_path, text)
    p = read_platform(path)
    assert p.limits.pairs == {(0, 1): 1}
    assert (p.limits.shares[0].cluster, p.limits.shares[0].origins) == (0, (1,))
    # winds: 2 at home, and of lyon a tenth of its speed
    assert solve(p, "MILP").objective == pytest.approx(3)
    assert main(["solve", path]) == 0
    assert main(["broker", path]) == 0
    assert re.search(r"x +nice .* 10\b", capsys.readouterr().out)  # 30 at 2 + 1


def test_a_capacity_becomes_connections(tmp_path):
    assert per_connection(1000, bandwidth=64) == (64, 15)
    assert per_connection(0.3, bandwidth=0.1) == (0.1, 3)  # as decimals; 0.3 / 0.1 is below 3
    assert per_connection(9, connections=4) == (2.25, 4)
    with pytest.raises(InputError, match="bandwidth of one connection, or their number"):
        per_connection(9)
    text = TWO.replace("bandwidth = 3", "capacity = 7").replace("connections = 2", "bandwidth = 3")
    held = read_platform(written(tmp_path, text)).links[["bandwidth", "max_connect"]]
    assert held.to_numpy().tolist() == [[3, 2]]


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("speed = 2", "speed = -2", "line 7, site 1: speed must be a finite number of at least 0"),
        ('origin = "nice"', 'origin = "Nic"', r"line 26, application 1: origin must be one of "
         r"lyon, nice; got 'Nic' \(did you mean nice\?\)"),
        ('name = "nice"', 'name = "lyon"', "sites must have different names, got 'lyon' twice"),
        ('end = "nice"', "", "every link its start and end"),
        ("connections = 2", "connections = 2\nmax_connect = 2",
         "link 0: max_connect and connections are the same, got 2.0 and 2.0"),
        ("bandwidth = 3", "", "link 0: bandwidth is missing"),
        ("bandwidth = 3", "bandwidth = 3\ncapacity = 2",
         "line 12, link 0: a capacity needs .*got bandwidth 3.0, connections 2.0"),
        ("[[link]]", LINK.format("rhone", "nice", "alps", "") + "[[link]]", "'rhone' of links app"),
        ("[[link]]", LINK.format("two", "nice", "lyon", "") + "[[link]]", "link 1: joins two"),
        ("[[link]]", "[limits]\npairs = 1\n[[share]]\nsite = 0\norigins = [1]\nshare = 1\n[[link]]",
         "limits and lists share or pair"),
    ],
)  # fmt: skip
def test_a_refusal_names_line_and_name(tmp_path, capsys, old, new, words):
    path = written(tmp_path, TWO.replace(old, new, 1))
    assert main(["solve", path]) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"dlsim: {path}")
    assert re.search(words, said)
    assert said.count(path) == 1
