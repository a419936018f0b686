"""The broker against hand cases, a search over time steps, and its own laws."""

import math
import warnings
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from dlsim.errors import InputError
from dlsim.steady import Limits, Share, solve
from dlsim.steady.broker import LEAST_ESTIMATE_PART, Broker, Network
from tests.helpers.refusals import refuses_each
from tests.helpers.scale import scale_count
from tests.helpers.steady_platforms import draw_platform


def network(limits=None, bandwidth=3, most=2):
    """Sites a and b behind one link."""
    links = pd.DataFrame({"bandwidth": [float(bandwidth)], "max_connect": [most]})
    routes = {(0, 1): [0], (1, 0): [0]}
    return Network(["a", "b"], [20, 20], links, routes, limits or Limits())


def completions(broker):
    return broker.applications["completion"].to_dict()


# ------------------------------------------------------------------ hand cases


def one_site(speed, **words):
    """A broker with the site a, without a link."""
    return Broker(network(most=0), "G+fair", **words).register("a", speed)


def test_one_application_on_one_site():
    broker = one_site(7).advance(3).submit("x", "a", load=70, work=3.5).advance()
    assert completions(broker) == {"x": pytest.approx(38)}
    assert broker.now == pytest.approx(38)
    assert list(broker.schedules["reason"]) == ["register", "arrival", "completion"]


def test_tables_without_rows_hold_columns_of_numbers():
    broker = Broker(network(), "G")
    texts = {"origin", "state", "reason", "application", "site", "link"}
    for name in ("applications", "schedules", "rates", "sites", "links"):
        table = getattr(broker, name)
        assert table.empty
        numbers = [column for column in table if column not in texts]
        assert {dtype.kind for dtype in table.dtypes[numbers]} == {"f"}


def test_two_applications_share_a_site_by_priority():
    """Priorities 1 and 4 on speed 10: rates 2 and 8, then 10 for the one left."""
    for method in ("G", "LPRG", "LPRR", "MILP"):
        broker = Broker(network(most=0), method).register("a", 10)
        broker.submit("low", "a", load=20).submit("high", "a", load=40, priority=4).advance(1)
        assert broker.allocation.platform.application_names == ["low", "high"]
        np.testing.assert_allclose(broker.allocation.work[:, 0], [2, 8], rtol=1e-7)
        assert completions(broker.advance()) == pytest.approx({"low": 6, "high": 5}), method


def test_a_priority_per_site_keeps_work_where_it_counts():
    for method in ("G", "LPRG"):
        broker = Broker(network(), method).register("a", 4).register("b", 6)
        broker.submit("here", "a", 8, {"a": 2}).submit("there", "a", 12, {"b": 1.0, "a": 0})
        # each site serves its own: 4 of a's, and 6 over two connections of bandwidth 3
        assert broker.allocation.work == pytest.approx(np.array([[4, 0], [0, 6]])), method
        assert broker.allocation.values == pytest.approx([2, 6])
        assert completions(broker.advance()) == pytest.approx({"here": 2, "there": 2})
        assert broker.applications["priority"].tolist() == [2, 1]


def test_slowdown_is_the_response_over_the_time_alone():
    """The applications of the test above take 2 and 4 alone on speed 10; they take 6 and 5."""
    broker = one_site(10)
    broker.submit("low", "a", load=20).submit("high", "a", load=40, priority=4).advance()
    broker.withdraw("a").submit("waits", "a", load=1).advance()
    assert broker.summary()["slowdown"] == pytest.approx((6 / 2 + 5 / 4) / 2)
    assert broker.summary()["response"] == pytest.approx(5.5)
    # alone over two connections of bandwidth 3: 12 units take 2
    far = Broker(network(), "LPRG").register("a", 10).submit("x", "b", 12).advance()
    assert far.summary()["slowdown"] == pytest.approx(1)
    near = Broker(network(), "LPRG").register("a", 10).register("b", 4)
    near.submit("x", "b", 12, {"b": 3})
    assert near.deliver("b", 2).advance().now == pytest.approx(6)
    assert near.summary()["slowdown"] == pytest.approx(2)
    assert math.isnan(Broker(network(), "G+fair").summary()["slowdown"])


@pytest.mark.parametrize(
    ("trust", "estimates", "end"),
    [(1.0, [10, 5], 4.0), (0.5, [10, 7.5, 6.25, 5.625], 4.0), (0.0, [10], 4.0)],
)
def test_a_slow_site_is_learnt(trust, estimates, end):
    """Declared 10, delivers 5: the estimate follows by halves, and 20 units take 4."""
    broker = one_site(10, trust=trust).deliver("a", 5).submit("x", "a", load=20).advance()
    assert completions(broker) == {"x": pytest.approx(end)}
    before = broker.sites["time"] < end
    seen = broker.sites["estimate"][before].drop_duplicates()
    assert list(seen) == pytest.approx(estimates)
    assert broker.rates["planned"].tolist() == pytest.approx(estimates)
    assert set(broker.rates["delivered"]) == {5.0}


def test_a_fast_site_is_learnt():
    """Declared 5, delivers 10: the plan uses 5 in the first period and 10 from then on."""
    broker = one_site(5, trust=1.0, period=2.0).deliver("a", 10).submit("x", "a", load=40)
    assert completions(broker.advance()) == {"x": pytest.approx(5)}


def test_a_change_within_a_period_counts_by_its_time():
    broker = one_site(10, trust=1.0).submit("x", "a", load=1000).advance(0.25)
    broker.deliver("a", 2).advance(1.5)
    # a quarter at 10 and three quarters at 2
    assert broker.allocation.work[0, 0] == pytest.approx(4)


def test_a_dead_site_is_noticed_when_it_recovers():
    broker = one_site(10, trust=1.0).deliver("a", 0).submit("x", "a", load=10).advance(5)
    assert broker.allocation.work[0, 0] == pytest.approx(10 * LEAST_ESTIMATE_PART)
    assert broker.applications["done"]["x"] == 0
    broker.deliver("a", 10).advance()
    assert broker.now == pytest.approx(6 + (10 - 10 * LEAST_ESTIMATE_PART) / 10)


def test_a_site_that_leaves_stops_what_it_served():
    broker = one_site(10).submit("x", "a", load=30).advance(1).withdraw("a").advance(5)
    assert broker.allocation is None
    assert broker.applications["done"]["x"] == pytest.approx(10)
    assert broker.advance().now == 5
    assert completions(broker.register("a", 20).advance()) == {"x": pytest.approx(6)}


def test_an_application_that_cannot_be_served_delays_no_other():
    broker = Broker(network(most=0), "LPRG").register("a", 10)
    broker.submit("stuck", "b", load=5).submit("x", "a", load=10).advance()
    assert completions(broker)["x"] == pytest.approx(1)
    assert math.isnan(completions(broker)["stuck"])
    assert broker.schedules["waiting"].tolist() == [1, 1]


def test_limits_are_kept():
    """At most 10 % of a for applications from b, which has no speed; one connection of 3."""
    for limits, load in ((Limits((Share(0, (1,), 0.1),)), 4), (Limits(pairs=1), 12)):
        for method in ("G", "LPRG", "MILP"):
            broker = Broker(network(limits), method).register("a", 10).submit("y", "b", load)
            assert completions(broker.advance()) == {"y": pytest.approx(4)}, method


def test_the_schedule_is_that_of_the_platform():
    p = draw_platform(4, False, clusters=5, odd=0.0)
    broker = Broker(Network.from_platform(p), "LPRR", seed=3)
    for k in range(p.clusters):
        if p.speed[k]:
            broker.register(f"site {k}", p.speed[k])
    for a in range(p.applications):
        broker.submit(f"{a}", f"site {a}", 1.0, p.priorities[a, 0], p.work[a], p.data[a])
    alike = Network.from_platform(p).platform(
        p.speed, list(zip(range(5), p.priorities[:, 0], p.work, p.data, strict=True))
    )
    first = np.random.SeedSequence(3, spawn_key=(0,))
    assert broker.allocation.objective == solve(alike, "LPRR", seed=first).objective
    assert broker.allocation.objective > 0


# --------------------------------------------------------------------- its laws


class Organisation(RuleBasedStateMachine):
    """Anything may happen at any time; the laws of the broker hold."""

    @initialize(seed=st.integers(0, 200), method=st.sampled_from(["G", "LPRG", "LPRR"]))
    def build(self, seed, method):
        p = draw_platform(seed, False, clusters=3)
        self.broker = Broker(Network.from_platform(p), method, period=0.5)
        self.registered, self.speeds, self.count = set(), {}, 0

    @rule(k=st.integers(0, 2), speed=st.sampled_from([0.5, 3.0, 20.0]))
    def register(self, k, speed):
        self.broker.register(f"site {k}", speed)
        self.registered.add(k)

    @precondition(lambda self: self.registered)
    @rule(speed=st.sampled_from([0.0, 1.0, 30.0]), data=st.data())
    def deliver(self, speed, data):
        k = data.draw(st.sampled_from(sorted(self.registered)))
        self.broker.deliver(f"site {k}", speed)

    @precondition(lambda self: self.registered)
    @rule(data=st.data())
    def withdraw(self, data):
        k = data.draw(st.sampled_from(sorted(self.registered)))
        self.broker.withdraw(f"site {k}")
        self.registered.remove(k)

    @rule(k=st.integers(0, 2), load=st.sampled_from([0.1, 5.0, 80.0]), priority=st.integers(1, 3))
    def submit(self, k, load, priority):
        self.broker.submit(f"{self.count}", f"site {k}", load, float(priority))
        self.count += 1

    @precondition(lambda self: self.count)
    @rule(what=st.sampled_from(["cancel", "set_priority"]), data=st.data())
    def change_application(self, what, data):
        name = f"{data.draw(st.integers(0, self.count - 1))}"
        is_over = self.broker.applications["state"][name] in ("cancelled", "done")
        more = {"priority": 2.0} if what == "set_priority" else {}
        with pytest.raises(InputError, match="name one that") if is_over else nullcontext():
            getattr(self.broker, what)(name, **more)

    @precondition(lambda self: len(self.broker.network.links))
    @rule(what=st.sampled_from(["change_link", "lose_link"]), data=st.data())
    def change_link(self, what, data):
        link = data.draw(st.sampled_from(self.broker.network.links.index.tolist()))
        if what == "lose_link":
            is_lost = link in self.broker.network.failed_links
            (self.broker.restore_link if is_lost else self.broker.lose_link)(link)
        else:
            bandwidth = data.draw(st.sampled_from([0.0, 0.5, 9.0]))
            self.broker.change_link(link, bandwidth=bandwidth)

    @rule(step=st.sampled_from([0.0, 0.2, 1.0, 4.0]))
    def advance(self, step):
        begun = self.broker.now
        self.broker.advance(begun + step)
        assert self.broker.now == begun + step

    @invariant()
    def laws(self):
        apps, rates = self.broker.applications, self.broker.rates
        assert (apps["done"] <= apps["load"] * (1 + 1e-9)).all()
        finished = apps["completion"].notna()
        assert (apps["done"][finished] == apps["load"][finished]).all()
        assert (apps["completion"][finished] > apps["arrival"][finished]).all()
        assert (rates["delivered"] <= rates["planned"] * (1 + 1e-12)).all()
        assert (rates["end"] >= rates["start"]).all()
        lasted = (rates["end"] - rates["start"]) * rates["delivered"]
        done = lasted.groupby(rates["application"]).sum().reindex(apps.index).fillna(0)
        summed = done.to_numpy(dtype=float)
        np.testing.assert_allclose(summed, apps["done"].astype(float), rtol=1e-8, atol=1e-8)
        estimates = self.broker.sites
        present = estimates["declared"] > 0
        low = estimates["estimate"][present] >= LEAST_ESTIMATE_PART * estimates["declared"][present]
        assert low.all()
        assert self.broker.schedules["time"].is_monotonic_increasing

    def teardown(self):
        if hasattr(self, "broker"):
            self.broker.advance()
            plan, left = self.broker.allocation, self.broker.applications["completion"].isna()
            if plan is not None:
                rates = self.broker._delivered_rates().sum(axis=1)
                assert (rates == 0).all()
                assert set(plan.platform.application_names) <= set(left.index[left])


TestOrganisation = Organisation.TestCase
TestOrganisation.settings = settings(
    max_examples=scale_count(25), stateful_step_count=15, deadline=None
)


def test_broker_refuses():
    for act, words in (
        (lambda b: b.register("c", 1), "site must be one of a, b; got 'c'"),
        (lambda b: b.register(["a"], 1), r"site must be one of a, b; got \['a'\]"),
        (lambda b: b.withdraw("a"), "site 'a' cannot withdraw: it is not registered"),
        (lambda b: b.deliver("a", 1), "site 'a' delivers nothing: it is not registered"),
        (lambda b: b.submit("x", "c", 1), "site must be one of a, b"),
        (lambda b: b.submit(["x"], "a", 1), r"must be named by text, got \['x'\]"),
        (lambda b: [b.submit("x", "a", 1) for _ in "ab"], "application 'x' was submitted before"),
        (lambda b: b.submit("x", "a", 1, [1, 2]), r"priority must be .* got \[1, 2\]"),
        (lambda b: b.submit("x", "a", 1, {"c": 1}), "site must be one of a, b; got 'c'"),
        (lambda b: b.submit("x", "a", 1, {"a": 0}), "priority must be above 0 at one site or more"),
        (lambda b: (b.advance(2), b.advance(1)), "until must be at least the present time 2"),
        (lambda b: b.advance(math.nan), "until must be at least the present time 0"),
    ):
        with pytest.raises(InputError, match=words):
            act(Broker(network(), "G+fair"))


test_what_is_no_broker_is_refused = refuses_each([
    (lambda: Broker(network(), "LP+least"), "a broker needs whole connections"),
    (lambda: Broker(network(), "best"), "method must be one of LP, MILP, G"),
    (lambda: Broker(None, "G"), "network must be a Network, got None"),
    (lambda: Broker(network(), "G", reading={"vertex": "solver"}), "reading must be a Reading"),
    (lambda: Network(["a", "a"], [1, 1], network().links, {}), "sites must have different names"),
    *((lambda bad=bad: Network(bad, [1, 1], network().links, {}), "sites must be a list of names")
      for bad in ("ab", [["a"], "b"])),
    (lambda: Network(["a", "b"], [1e-308, 20], network().links, {}),
     r"gateway.0. must be 0 or between 1e-100 and"),
])  # fmt: skip


def test_broken_connections_are_told_once_where_the_network_is_made():
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        Broker(network(most=2.5), "G+fair").register("a", 1).submit("x", "b", 1).advance()
    assert [str(one.message) for one in told] == [
        "max_connect is rounded down to whole numbers, e.g. 2.5"
    ]
    assert [Path(one.filename).name for one in told] == [Path(__file__).name]


def test_the_slowest_gateway_is_waited_for():
    wires = network()
    broker = Broker(Network(["a", "b"], [1e-100, 20], wires.links, wires.routes), "G+fair")
    broker.register("a", 10).submit("x", "b", 12).advance()
    assert completions(broker) == {"x": pytest.approx(12e100)}


def test_time_goes_on_where_floats_are_coarse():
    """At 1e12 the next float is 1e-4 later: what takes less ends at the same instant."""
    b = Broker(network(), "LPRR", period=1e-6).advance(1e12).register("a", 1e6)
    b.submit("short", "a", 1.0).submit("long", "a", 1e6).deliver("a", 5e5).advance()
    ends = b.applications["completion"] - 1e12
    assert ends["short"] == pytest.approx(0, abs=1e-3)
    assert ends["long"] == pytest.approx(2, rel=1e-3)
