"""What may happen to a broker: hand cases, stepwise against a file, and its plans replayed."""

import functools
import json
import math
import re
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

from dlsim.cli import main
from dlsim.errors import InputError
from dlsim.steady import Broker, Limits, Network, Share, day, plan_of, read_platform, solve
from dlsim.steady.broker import EVENTS, METHOD
from dlsim.steady.organisation import run_file
from dlsim.steady.plan import text_of
from dlsim.steady.store import plain, to_document, write_platform
from tests.scale import some_of
from tests.steady_platforms import draw_platform
from tests.test_broker import network
from tests.test_solve import TWO, written


def served(**words):
    """A broker whose site a serves 12 units of b over two connections of bandwidth 3, 6 a time."""
    broker = Broker(network(), "LPRG+fair", **words).event("register", site="a", speed=10.0)
    return broker.event("submit", name="y", origin="b", load=12.0)


def ends(broker):
    return broker.at(math.inf).applications["completion"].to_dict()


# ----------------------------------------------------------------- hand cases


def test_the_default_is_fair_and_the_papers_heuristic_a_choice():
    assert Broker(network()).method == METHOD == "G+fair"
    assert Broker(network(), "G").method == "G"


def test_fair_schedules_leave_nothing_idle():
    """x can use its own site only; G stops at its value, fair gives y the rest of b."""
    done = {}
    for method in ("LPRR", "LPRR+fair"):
        broker = Broker(network(most=0), method).event("register", site="a", speed=1.0)
        broker.event("register", site="b", speed=9.0).event(
            "submit", name="x", origin="a", load=8.0
        )
        done[method] = ends(broker.event("submit", name="y", origin="b", load=9.0))
    assert done["LPRR+fair"] == pytest.approx({"x": 8, "y": 1})
    assert done["LPRR"]["y"] >= done["LPRR+fair"]["y"]


def test_a_slow_link_is_learnt():
    """Declared 3, delivers 1.5: planned 6, 3, 3, ...; 12 units take 4."""
    broker = served(trust=1.0).event("deliver_link", link=0, bandwidth=1.5)
    assert ends(broker) == {"y": pytest.approx(4)}
    assert broker.rates["planned"].tolist() == pytest.approx([6, 3])
    assert broker.rates["delivered"].tolist() == pytest.approx([3, 3])
    assert broker.links[["declared", "real", "estimate"]].to_numpy().tolist() == [
        [3, 1.5, 3], [3, 1.5, 1.5]
    ]  # fmt: skip


def test_a_fast_link_is_learnt_by_halves():
    """3, then 4.5 and 5.25 of 6: rates 6, 9 and 10 of the site's 10."""
    broker = served(trust=0.5).event("deliver_link", link=0, bandwidth=6.0)
    assert ends(broker) == {"y": pytest.approx(1 + 6 / 9)}
    assert broker.links["estimate"].tolist() == pytest.approx([3, 4.5])


def test_a_change_of_a_link_within_a_period_counts_by_its_time():
    broker = served(trust=1.0).at(0.25).event("deliver_link", link=0, bandwidth=1.0).at(1.5)
    assert broker.links["estimate"].iloc[-1] == pytest.approx(0.25 * 3 + 0.75 * 1)


def test_a_link_that_carries_nothing_is_not_observed():
    broker = Broker(network(), trust=1.0).event("register", site="a", speed=10.0)
    broker.event("submit", name="x", origin="a", load=100.0)
    broker.event("deliver_link", link=0, bandwidth=1.0).at(5.0)
    assert broker.links["estimate"].tolist() == [3]


@pytest.mark.parametrize(
    ("do", "fields", "end"),
    [
        ("change_link", {"connections": 1}, 3),  # 6, then 3 per time
        ("change_link", {"bandwidth": 1.0}, 4),  # 6, then 2
        ("change_link", {"bandwidth": 5.0, "connections": 3}, 1.6),  # 6, then the site's 10
    ],
)
def test_a_link_is_changed(do, fields, end):
    assert ends(served().at(1).event(do, link=0, **fields)) == {"y": pytest.approx(end)}


def test_a_link_is_lost_and_comes_back():
    broker = served().at(1).event("lose_link", link=0).at(1.5)
    assert broker.served == []
    assert broker.plan()["work"] == broker.plan()["connect"] == []
    assert ends(broker.at(3).event("restore_link", link=0)) == {"y": pytest.approx(4)}
    assert broker.links["max_connect"].tolist() == [0, 2]


def roundabout():
    """a and b behind a link of bandwidth 3; or over c, links of bandwidth 1."""
    rows = {"direct": ("a", "b", 3.0), "up": ("a", "c", 1.0), "down": ("c", "b", 1.0)}
    links = pd.DataFrame(rows.values(), list(rows), ["start", "end", "bandwidth"])
    return Network(["a", "b"], [20, 20], links.assign(max_connect=1))


def test_a_lost_link_is_gone_round():
    broker = Broker(roundabout()).event("register", site="a", speed=10.0)
    broker.event("submit", name="y", origin="b", load=6.0).at(1).event("lose_link", link="direct")
    assert ends(broker) == {"y": pytest.approx(4)}  # 3, then 1 per time
    assert broker.event("restore_link", link="direct").network.fields["routes"][0, 1] == ("direct",)


def test_a_cancelled_application_leaves_its_share():
    broker = Broker(network(most=0)).event("register", site="a", speed=10.0)
    broker.event("submit", name="x", origin="a", load=50.0)
    broker.event("submit", name="y", origin="a", load=35.0).at(1).event("cancel", name="x")
    assert ends(broker) == {"x": pytest.approx(math.nan, nan_ok=True), "y": pytest.approx(4)}
    assert broker.applications["done"]["x"] == pytest.approx(5)
    assert broker.applications["state"].tolist() == ["cancelled", "done"]


def test_a_priority_is_changed():
    """Rates 5 and 5, then 2 and 8."""
    broker = Broker(network(most=0)).event("register", site="a", speed=10.0)
    broker.event("submit", name="x", origin="a", load=20.0)
    broker.event("submit", name="y", origin="a", load=21.0)
    broker.at(1).event("set_priority", name="y", priority=4)
    assert ends(broker) == pytest.approx({"x": 3 + (15 - 4) / 10, "y": 3})


@pytest.mark.parametrize("by_ends", [False, True])
def test_a_site_joins(by_ends):
    """c joins at 1 with speed 4 over a connection of 2: a's 12 at 1, then at 3."""
    known = Network(
        ["a"], [20], pd.DataFrame(columns=["bandwidth", "max_connect"], dtype=float), {}
    )
    broker = Broker(roundabout() if by_ends else known).event("register", site="a", speed=1.0)
    broker.event("submit", name="x", origin="a", load=12.0).at(1)
    broker.event("add_site", name="d", gateway=9.0, speed=4.0)
    one = {"name": "new", "bandwidth": 2.0, "connections": 1}
    if by_ends:
        broker.event("add_link", **one, start="d", end="a")
    else:
        broker.event("add_link", **one)
        broker.event("add_route", between=["a", "d"], links=["new"])
    assert ends(broker) == {"x": pytest.approx(1 + 11 / 3)}
    assert broker.applications["state"].tolist() == ["done"]


def test_a_new_site_is_not_among_old_priorities():
    broker = Broker(roundabout()).event("register", site="a", speed=2.0)
    broker.event("submit", name="x", origin="a", load=8.0, priority={"a": 1, "b": 1})
    broker.event("add_site", name="d", gateway=9.0, speed=4.0, router="a")
    assert ends(broker) == {"x": pytest.approx(4)}


@pytest.mark.parametrize(
    ("do", "fields", "words"),
    [
        ("lose_link", {"link": 7}, "no link is called 7"),
        ("restore_link", {"link": 0}, "link 0 is not lost at 0"),
        ("lose_link", {"link": [0]}, r"lose_link: link must be a text or a number, got \[0\]"),
        ("change_link", {"link": 0}, "change_link needs bandwidth or connections"),
        ("change_link", {"link": 0, "bandwidth": -1}, "bandwidth of link 0 must be"),
        ("change_link", {"link": 0, "connections": -1}, "max_connect of link 0 must be"),
        ("deliver_link", {"link": "l", "bandwidth": 1}, "no link is called 'l'"),
        ("cancel", {"name": "z"}, "no application is called 'z'"),
        ("set_priority", {"name": "y", "priority": 0}, "priority must be a finite number above 0"),
        ("add_site", {"name": "a", "gateway": 1}, "sites must have different names, got 'a' twice"),
        ("add_site", {"name": "c", "gateway": -1}, "gateway.* must be .* got -1"),
        ("add_site", {"name": "c", "gateway": 1, "speed": 0}, "speed must be .* above 0, got 0"),
        ("change_link", {"link": 0, "bandwidth": 5, "connections": -1}, "max_connect of link 0"),
        ("add_link", {"name": 0, "bandwidth": 1}, "link 0 is there already"),
        ("add_link", {"name": 1, "bandwidth": -1}, "bandwidth of link 1 must be"),
        ("add_route", {"between": ["a"], "links": []}, "between must name two sites"),
        ("add_route", {"between": ["a", "c"], "links": []}, "site must be one of a, b; got 'c'"),
        ("add_route", {"between": ["a", "b"], "links": [9]}, "no link is called 9"),
        ("add_route", {"between": ["a", "a"], "links": [0]}, "route a -> a must join two"),
        ("subm", {}, "do must be one of register.*did you mean submit"),
        ("cancel", {}, "cancel: name is missing"),
        ("cancel", {"name": "y", "why": 1}, "cancel: no field is called 'why'"),
        ("deliver", {"site": "a", "speed": "x"}, "deliver: speed must be a number, got 'x'"),
    ],
)
def test_a_refused_event_changes_nothing(do, fields, words):
    broker, other = served().at(0.5), served().at(0.5)
    with pytest.raises(InputError, match=words):
        broker.event(do, **fields)
    assert ends(broker) == ends(other)
    pd.testing.assert_frame_equal(broker.schedules, other.schedules)


def test_what_is_over_cannot_be_changed():
    broker = served().at(5).event("submit", name="x", origin="a", load=1.0)
    broker.event("cancel", name="x")
    for name, words in (("y", "'y' was done at 2"), ("x", "'x' was cancelled")):
        with pytest.raises(InputError, match=words):
            broker.event("cancel", name=name)
    with pytest.raises(InputError, match="no route can be given where routes are the shortest"):
        Broker(roundabout()).event("add_route", between=["a", "b"], links=["up"])
    with pytest.raises(InputError, match="link 'x' joins two routers that a link joins already"):
        Broker(roundabout()).event("add_link", name="x", bandwidth=1.0, start="b", end="a")


@pytest.mark.parametrize(
    ("act", "words"),
    [
        (lambda b: b.lose_link(["up"]), r"no link is called \['up'\]"),
        (lambda b: b.cancel(["x"]), r"no application is called \['x'\]"),
        (lambda b: b.add_route(["a", "b"], "up"), "links must be a list, got 'up'"),
        (lambda b: b.add_link("x", 1.0, start="a", end="d", weight=-1.0),
         "weight of link 'x' must be a finite number of at least 0, got -1.0"),
        (lambda b: replace(b.network, lost="up"), "lost must be a list, got 'up'"),
        (lambda b: replace(b.network, lost=["left"]), "no link is called 'left'"),
        (lambda b: replace(b.network, router=3), "router must be a list, got 3"),
        (lambda b: replace(b.network, routes=3, lost=["up"]), "routes must map pairs"),
        (lambda b: day("wan.toml"), "platform must be a Platform, got 'wan.toml'"),
    ],
)  # fmt: skip
def test_what_is_no_network_is_refused(act, words):
    with pytest.raises(InputError, match=words):
        act(Broker(roundabout()))


def test_links_may_be_lost_from_the_beginning():
    pairs = {(0, 1): ["direct"], (1, 0): ["down", "up"]}
    for known in (roundabout(), replace(roundabout(), routes=pairs)):
        less = replace(known, lost=["direct"])
        assert less.lost == {"direct"}
        assert "direct" not in less.fields["links"].index


EVENT = '[[event]]\nat = {at}\ndo = "{do}"\n{fields}\n'


def toml(fields):
    return "\n".join(f"{name} = {json.dumps(value)}" for name, value in fields.items())


@pytest.mark.parametrize(
    ("do", "fields", "words"),
    [
        ("lose_link", {"link": "rhine"}, "no link is called 'rhine' .did you mean rhone"),
        ("cancel", {"name": "tides"}, "no application is called 'tides'"),
        ("deliver_link", {"link": "rhone", "bandwidth": -1}, "bandwidth must be .* got -1"),
        ("change_link", {"link": "rhone", "speed": 1}, "no field is called 'speed'"),
        ("add_site", {"name": "lyon", "gateway": 1}, "got 'lyon' twice"),
        ("add_route", {"between": ["lyon", "nice"], "links": []}, "routes are the shortest"),
    ],
)
def test_a_file_names_the_line_of_an_event(tmp_path, capsys, do, fields, words):
    path = written(tmp_path, TWO + EVENT.format(at=1, do=do, fields=toml(fields)))
    assert main(["broker", path]) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"dlsim: {path}, line 32, event 1: ")
    assert re.search(words, said)


# ------------------------------------------------------- stepwise, and as a file


def draw_event(rng, p, count):
    """Return something that may happen to sites and links of a platform, or be refused."""

    def pick(some):
        return some[int(rng.integers(len(some)))]

    sites, links = [f"s{k}" for k in range(p.clusters)], p.links.index.tolist()
    app, value = f"a{int(rng.integers(max(count, 1)))}", float(rng.choice([0.25, 1, 3, 20]))
    kinds = {
        "register": {"site": pick(sites), "speed": value},
        "withdraw": {"site": pick(sites)},
        "deliver": {"site": pick(sites), "speed": value},
        "submit": {"name": f"a{count}", "origin": pick(sites), "load": 20 * value,
                   "priority": pick([1.0, {sites[0]: 1.0, sites[-1]: 2.0}]), "data": value / 2},
        "cancel": {"name": app}, "set_priority": {"name": app, "priority": value},
        "add_site": {"name": f"new{count}", "gateway": value, "speed": value},
    }  # fmt: skip
    if links:
        kinds |= {
            "deliver_link": {"link": pick(links), "bandwidth": value},
            "change_link": {"link": pick(links), "connections": int(rng.integers(4))},
            "lose_link": {"link": pick(links)}, "restore_link": {"link": pick(links)},
            "add_link": {"name": f"extra{count}", "bandwidth": value, "connections": 2},
            "add_route": {"between": [sites[0], sites[-1]], "links": [pick(links)]},
        }  # fmt: skip
    assert kinds.keys() <= EVENTS.keys()
    do = pick(["submit"] * 6 + ["register"] * 4 + list(kinds))
    return do, kinds[do]


@functools.cache
def drawn(seed):
    """Return a platform with named sites, and a day of events on it that a broker took."""
    rng = np.random.default_rng(seed)
    p = draw_platform(seed, False, clusters=4)
    sites = [f"s{k}" for k in range(p.clusters)]
    known = Network(sites, p.gateway, p.links, p.routes, p.limits)
    method = ("G+fair", "LPRG", "LPRR+fair")[seed % 3]
    tried, broker = (Broker(known, method, 0.5, seed=seed) for _ in range(2))
    plans, taken = [], []
    for count in range(30):
        time = round(tried.now + float(rng.choice([0, 0.3, 1.7])), 3)
        do, fields = draw_event(rng, p, count)
        try:
            tried.at(time).event(do, **fields)
        except InputError:
            continue
        taken.append((time, do, fields))
    broker.on_schedule = lambda broker: plans.append(text_of(broker.plan()))
    for time, do, fields in taken:
        broker.at(time).event(do, **fields)
    return p, sites, method, broker.at(60.0), taken, plans


@pytest.mark.parametrize("seed", some_of(range(12)))
@pytest.mark.filterwarnings("ignore:max_connect:UserWarning")
def test_stepwise_and_from_a_file_are_the_same(tmp_path, seed):
    p, sites, method, broker, taken, plans = drawn(seed)
    document = {name: rows for name, rows in to_document(p).items() if name != "application"}
    gateways = zip(sites, document.pop("cluster"), strict=True)
    document |= {
        "site": [{"name": name, "gateway": row["gateway"]} for name, row in gateways],
        "event": [{"at": at, "do": do, **fields} for at, do, fields in taken],
        "period": 0.5, "until": 60.0,
    }  # fmt: skip
    path = tmp_path / "vo.json"
    path.write_text(json.dumps(document))
    again = list[str]()
    other = run_file(str(path), method, seed, on_schedule=lambda b: again.append(text_of(b.plan())))
    for table in ("applications", "schedules", "rates", "sites", "links"):
        pd.testing.assert_frame_equal(
            getattr(other, table), getattr(broker, table), check_exact=True
        )
    assert again == plans


# --------------------------------------------------- a plan, executed from its file


def replay(text, periods=3):
    """Execute a plan from its text alone, exactly; return what each application completes."""
    plan = json.loads(text, parse_float=Fraction, parse_int=Fraction)
    length, done = (
        plan["period"],
        dict.fromkeys((a["name"] for a in plan.get("application", ())), 0),
    )
    site = {row["name"]: row for row in plan.get("site", ())}
    link = {row["name"]: row for row in plan.get("link", ())}
    app = {row["name"]: row for row in plan.get("application", ())}
    done = dict.fromkeys(app, 0)
    used, between = dict.fromkeys(link, 0), {}
    for way in plan["connect"]:
        assert way["connections"] > 0
        for name in way["links"]:
            used[name] += way["connections"]
        ends = frozenset((way["from"], way["to"]))
        between[ends] = between.get(ends, 0) + way["connections"]
    for name, count in used.items():
        assert link[name]["max_connect"] is None or count <= link[name]["max_connect"]
    for row in plan.get("pair", ()):
        assert between[frozenset(row["between"])] <= row["connections"]
    stock = {}
    for period in range(periods):
        sent, busy, load, arrived = {}, dict.fromkeys(site, 0), dict.fromkeys(site, 0), {}
        shares = [0] * len(plan.get("share", ()))
        for row in plan["work"]:
            name, at, home = row["application"], row["at"], app[row["application"]]["origin"]
            assert row["from"] == home
            if at != home and period < periods - 1:
                data = row["units"] * app[name]["data"]
                sent[home, at] = sent.get((home, at), 0) + data
                busy[home], busy[at] = busy[home] + data, busy[at] + data
                arrived[name, at] = row["units"]
            if at == home or stock.get((name, at), 0) >= row["units"]:
                if period:
                    done[name] += row["units"]
                    load[at] += row["units"] * app[name]["work"]
                    for i, cap in enumerate(plan.get("share", ())):
                        is_capped = at == cap["site"] and home in cap["origins"]
                        shares[i] += is_capped * row["units"] * app[name]["work"]
            else:
                assert period == 0
        for name in site:
            assert load[name] <= site[name]["speed"] * length
            assert busy[name] <= site[name]["gateway"] * length
        for used_of, cap in zip(shares, plan.get("share", ()), strict=True):
            assert used_of <= cap["share"] * site[cap["site"]]["speed"] * length
        opened = {(way["from"], way["to"]): way for way in plan["connect"]}
        routed = {pair for pair, data in sent.items() if data}
        for pair in routed & opened.keys():
            way = opened[pair]
            one = min(link[name]["bandwidth"] for name in way["links"])
            assert sent[pair] <= way["connections"] * one * length
        stock = arrived
    return plan, done, routed - opened.keys()


@pytest.mark.parametrize("seed", some_of(range(12)))
@pytest.mark.filterwarnings("ignore:max_connect:UserWarning")
def test_every_plan_of_a_day_can_be_executed(seed):
    p, sites, *_, plans = drawn(seed)
    free = {(sites[k], sites[to]) for (k, to), way in p.routes.items() if not way}
    worked = 0
    for text in plans:
        plan, done, without = replay(text)
        assert without <= free  # two sites on one router need no connection
        for row in plan.get("application", ()):
            assert float(done[row["name"]]) == pytest.approx(float(2 * row["units"]), rel=1e-12)
            worked += row["units"] > 0
    assert worked


def test_a_plan_states_the_throughput_of_its_schedule():
    broker = served(period=0.25)
    plan, done, without = replay(text_of(broker.plan()))
    assert (done, without, plan["period"]) == ({"y": 3}, set(), Fraction(1, 4))
    assert plan["connect"] == [{"from": "b", "to": "a", "connections": 2, "links": [0]}]
    assert plan["work"] == [
        {
            "application": "y",
            "from": "b",
            "at": "a",
            "units": Fraction(3, 2),
            "data": Fraction(3, 2),
        }
    ]


@pytest.mark.parametrize("seed", some_of(range(20)))
def test_the_units_of_a_plan_are_those_of_the_schedule(seed):
    p = draw_platform(seed, False, clusters=4)
    a = solve(p, "LPRG+fair", seed)
    for digits in (9, 3):
        one = a.periodic(0.7, digits=digits)
        one.check()
        lost = np.asarray(a.work - one.work.astype(float))
        assert (lost <= a.work * (2 * 10.0 ** (1 - digits)) + 1e-12).all()
        assert (lost >= -1e-12 * a.work).all()
    _, done, _ = replay(text_of(plan_of(one)))
    assert [float(x) for x in done.values()] == pytest.approx(
        (2 * one.units.sum(axis=1)).astype(float), rel=1e-12
    )


def test_both_commands_write_plans(tmp_path, capsys):
    event = EVENT.format(at=0, do="submit", fields='name = "x"\norigin = "nice"\nload = 30')
    path, out = written(tmp_path, TWO + event), tmp_path / "out"
    assert main(["solve", path, "--out", str(out / "s"), "--method", "LPRG"]) == 0
    plan, done, _ = replay((out / "s" / "LPRG-plan.json").read_text())
    assert (done, plan["period"]) == ({"tides": 12, "winds": 12}, 1)
    assert main(["broker", path, "--out", str(out / "b"), "--method", "MILP+fair"]) == 0
    said = capsys.readouterr().out
    assert "MILP+fair-plan-0001.json" in said
    names = sorted(file.name for file in (out / "b").glob("*-plan-*.json"))
    table = pd.read_csv(out / "b" / "MILP+fair-schedules.csv")
    assert len(names) == len(table)
    for name, time in zip(names, table["time"], strict=True):
        plan, *_ = replay((out / "b" / name).read_text())
        assert float(plan["time"]) == time


def test_a_search_for_schedules_ends_by_the_clock(tmp_path, capsys):
    path = written(tmp_path, TWO)
    assert main(["broker", path, "--seconds", "-1"]) == 2
    assert "most_seconds must be" in capsys.readouterr().err
    assert served(most_seconds=0).method == "LPRG+fair"
    broker = Broker(network(), "MILP", most_seconds=0.0).event("register", site="a", speed=10.0)
    broker.event("submit", name="y", origin="b", load=12.0)
    assert broker.at(math.inf).now == pytest.approx(2)


def test_names_come_back_from_a_file(tmp_path):
    p = read_platform(written(tmp_path, TWO))
    assert p.names == (["lyon", "nice"], ["tides", "winds"])
    for name in ("again.toml", "again.json"):
        write_platform(tmp_path / name, p)
        assert read_platform(tmp_path / name).names == p.names


def test_limits_and_links_without_a_limit_are_in_the_plan():
    limits = Limits((Share(0, (1,), 0.5),), {(0, 1): 1})
    broker = Broker(network(limits, most=math.inf)).event("register", site="a", speed=9.0)
    broker.event("submit", name="x", origin="b", load=5.0, data=0.001)
    plan = json.loads(text_of(broker.plan()))
    assert plan["share"] == [{"site": "a", "origins": ["b"], "share": 0.5}]
    assert plan["pair"] == [{"between": ["b", "a"], "connections": 1}]
    assert plan["link"] == [{"name": 0, "bandwidth": 3, "max_connect": None}]
    assert plain(plan) == plan
