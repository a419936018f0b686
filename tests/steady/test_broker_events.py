"""What may happen to a broker, by hand, and what is refused."""

import math
from dataclasses import replace

import pandas as pd
import pytest

from dlsim.errors import InputError
from dlsim.steady import Broker, Network
from tests.helpers.refusals import refuses_each
from tests.steady.test_broker import network


def served(**words):
    """A broker whose site a serves 12 units of b over two connections of bandwidth 3, 6 a time."""
    broker = Broker(network(), "LPRG+fair", **words).register(site="a", speed=10.0)
    return broker.submit(name="y", origin="b", load=12.0)


def ends(broker):
    return broker.advance(math.inf).applications["completion"].to_dict()


# ----------------------------------------------------------------- hand cases


def test_a_broker_keeps_its_method_as_a_record():
    with pytest.raises(TypeError, match="method"):
        Broker(network())
    method = Broker(network(), "G+fair").method
    assert (method.name, method.suffixes) == ("G+fair", ("fair",))


def test_fair_schedules_leave_nothing_idle():
    """x can use its own site only; G stops at its value, fair gives y the rest of b."""
    done = {}
    for method in ("LPRR", "LPRR+fair"):
        broker = Broker(network(most=0), method).register(site="a", speed=1.0)
        broker.register(site="b", speed=9.0).submit(name="x", origin="a", load=8.0)
        done[method] = ends(broker.submit(name="y", origin="b", load=9.0))
    assert done["LPRR+fair"] == pytest.approx({"x": 8, "y": 1})
    assert done["LPRR"]["y"] >= done["LPRR+fair"]["y"]


def test_a_link_is_changed():
    for fields, end in (
        ({"connections": 1}, 3),  # 6, then 3 per time
        ({"bandwidth": 1.0}, 4),  # 6, then 2
        ({"bandwidth": 5.0, "connections": 3}, 1.6),  # 6, then the site's 10
    ):
        assert ends(served().advance(1).change_link(link=0, **fields)) == {"y": pytest.approx(end)}


def test_a_link_is_lost_and_comes_back():
    broker = served().advance(1).lose_link(link=0).advance(1.5)
    assert broker.allocation is None
    assert ends(broker.advance(3).restore_link(link=0)) == {"y": pytest.approx(4)}
    assert broker.links["max_connect"].tolist() == [0, 2]


def roundabout():
    """a and b behind a link of bandwidth 3; or over c, links of bandwidth 1."""
    rows = {"direct": ("a", "b", 3.0), "up": ("a", "c", 1.0), "down": ("c", "b", 1.0)}
    links = pd.DataFrame(rows.values(), list(rows), ["start", "end", "bandwidth"])
    return Network(["a", "b"], [20, 20], links.assign(max_connect=1))


def test_a_lost_link_is_gone_round():
    broker = Broker(roundabout(), "G+fair").register(site="a", speed=10.0)
    broker.submit(name="y", origin="b", load=6.0).advance(1).lose_link(link="direct")
    assert ends(broker) == {"y": pytest.approx(4)}  # 3, then 1 per time
    restored = broker.restore_link(link="direct").network.platform([1, 1], [(0, 1, 1, 1)])
    assert restored.routes[0, 1] == ("direct",)


def test_a_cancelled_application_leaves_its_share():
    broker = Broker(network(most=0), "G+fair").register(site="a", speed=10.0)
    broker.submit(name="x", origin="a", load=50.0)
    broker.submit(name="y", origin="a", load=35.0).advance(1).cancel(name="x")
    assert ends(broker) == {"x": pytest.approx(math.nan, nan_ok=True), "y": pytest.approx(4)}
    assert broker.applications["done"]["x"] == pytest.approx(5)
    assert broker.applications["state"].tolist() == ["cancelled", "done"]


def test_a_priority_is_changed():
    """Rates 5 and 5, then 2 and 8."""
    broker = Broker(network(most=0), "G+fair").register(site="a", speed=10.0)
    broker.submit(name="x", origin="a", load=20.0)
    broker.submit(name="y", origin="a", load=21.0)
    broker.advance(1).set_priority(name="y", priority=4)
    assert ends(broker) == pytest.approx({"x": 3 + (15 - 4) / 10, "y": 3})


def test_a_refused_event_changes_nothing():
    other = served().advance(0.5)
    ends(other)
    for do, fields, words in (
        ("lose_link", {"link": 7}, "no link is called 7"),
        ("lose_link", {"link": [0]}, r"no link is called \[0\]"),
        ("restore_link", {"link": 0}, "link 0 is not lost at 0"),
        ("restore_link", {"link": "l"}, "no link is called 'l'"),
        ("change_link", {"link": 0}, "change_link needs bandwidth or connections"),
        ("change_link", {"link": 0, "bandwidth": -1}, "bandwidth of link 0 must be"),
        ("change_link", {"link": 0, "bandwidth": 5, "connections": -1}, "max_connect of link 0"),
        ("cancel", {"name": "z"}, "no application is called 'z'"),
        ("cancel", {"name": ["y"]}, r"no application is called \['y'\]"),
        ("set_priority", {"name": "y", "priority": 0}, "priority must be a finite number above 0"),
        ("deliver", {"site": "a", "speed": "x"}, "speed must be a finite number .* got 'x'"),
    ):
        broker = served().advance(0.5)
        with pytest.raises(InputError, match=words):
            getattr(broker, do)(**fields)
        assert ends(broker) == {"y": pytest.approx(2)}
        pd.testing.assert_frame_equal(broker.schedules, other.schedules)


def test_what_is_over_cannot_be_changed():
    broker = served().advance(5).submit(name="x", origin="a", load=1.0)
    broker.cancel(name="x")
    for name, words in (("y", "'y' was done at 2"), ("x", "'x' was cancelled")):
        with pytest.raises(InputError, match=words):
            broker.cancel(name=name)


test_what_is_no_network_is_refused = refuses_each([
    (lambda: replace(roundabout(), failed_links="up"), "failed_links must be a list, got 'up'"),
    (lambda: replace(roundabout(), failed_links=["left"]), "no link is called 'left'"),
    (lambda: replace(roundabout(), router=3), "router must be a list, got 3"),
    (lambda: replace(roundabout(), routes=3, failed_links=["up"]), "routes must map pairs"),
    (lambda: Network.from_platform("a"), "platform must be a Platform, got 'a'"),
])  # fmt: skip


def test_a_network_keeps_its_own_lists():
    gateway, router, way = [20, 20], ["a", "b"], ["direct"]
    known = replace(roundabout(), gateway=gateway, router=router, routes={(0, 1): way, (1, 0): way})
    gateway[0] = -1
    router.append("c")
    way.append("nowhere")
    broker = Broker(known, "G+fair").register(site="a", speed=10.0).submit("y", "b", 3.0)
    assert ends(broker) == {"y": pytest.approx(1)}
    assert known.router == ("a", "b")


def test_links_may_be_lost_from_the_beginning():
    pairs = {(0, 1): ["direct"], (1, 0): ["down", "up"]}
    for known in (roundabout(), replace(roundabout(), routes=pairs)):
        less = replace(known, failed_links=["direct"])
        assert less.failed_links == {"direct"}
        assert "direct" not in less.platform([1, 1], [(0, 1, 1, 1)]).links.index
