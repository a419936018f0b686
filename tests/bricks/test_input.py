"""What the Grid simulator refuses, each with the value, the rule and a remedy.

``tests/test_validate.py`` gives every number of every public function all kinds of values.
"""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from dlsim.bricks import Environment, Policy, Reading, simulate, topology, traces
from dlsim.bricks.model import ALGORITHMS
from dlsim.errors import InputError
from tests.helpers.refusals import refuses_each, require_refusals


def parts(**changes):
    """Arguments of a good environment, some of them changed."""
    request = {"arrival": [1.0, 2.0], "client": 0, "send": 1.0, "recv": 1.0, "work": 1.0}
    usual = {
        "servers": pd.DataFrame({"domain": [0, 1], "performance": [100.0, 200.0]}),
        "clients": pd.DataFrame({"domain": [1]}),
        "traces": np.ones((2, 4, 3)),
        "step": 10.0,
        "requests": pd.DataFrame(request | {"due": 50.0}, index=["a", "b"]),
    }
    return usual | changes


def changed(table, column, value):
    return parts(**{table: parts()[table].assign(**{column: value})})


def decided(policy, reading=None):
    return simulate(Environment(**parts()), policy, reading)


ZERO = np.ones((2, 4, 3))
ZERO[1, 2, 2] = 0
SERVERS, CLIENTS, REQUESTS = (parts()[name] for name in ("servers", "clients", "requests"))
#: Parts that make no environment.
ENVIRONMENTS = [
    (parts(servers=SERVERS.iloc[:0]), "servers must have at least one row"),
    (parts(servers=[1, 2]), "servers must be a pandas DataFrame with the columns domain, perf"),
    (parts(servers=SERVERS[["domain"]]),
     "servers need the columns domain, performance; performance not found"),
    (changed("servers", "domain", 0.5),
     "domain of row 0 must be a whole number of at least 0, got 0.5"),
    (changed("servers", "domain", 2),
     "servers: domain of row 0 must be .* below 2, the number of domains, got 2"),
    (changed("clients", "domain", 9),
     "clients: domain of row 0 must be a whole number below 2, .*, got 9"),
    (changed("requests", "work", [1, -1]),
     "work of row 'b' must be a finite number of at least 0, got -1"),
    (changed("requests", "client", 1),
     "client of row 'a' must be .* below 1, the number of clients, got 1"),
    (changed("requests", "arrival", [2.0, 1.0]), "row 'b' comes before the one above"),
    (parts(requests=REQUESTS.set_axis(["a"] * 2)), "label 'a' of requests appears twice"),
    (parts(requests=REQUESTS.rename(columns={"arrival": "time", "due": "deadline"})),
     "requests need .*; arrival, due not found"),
    *[(changed(table, "weigth", 1.0), f"{table} have a column 'weigth' that is not known")
      for table in ("servers", "clients", "requests")],
    (parts(traces=np.ones(3)), "traces must be an array of 2 dimensions or 3 dimensions"),
    (parts(traces=np.ones((2, 4, 0))), "at least one step"),
    (parts(traces=np.ones((2, 3, 5))), "must hold LAN up, LAN down, WAN up, WAN down per domain"),
    (parts(traces=ZERO), "link 6 ends with throughput zero, which is held for ever"),
    (parts(traces=[[[1, 2], [1]]]), "traces.0, 0. must .* got .1, 2"),
    (parts(traces=np.ones((8, 3))), "of shape .links, steps. need paths"),
    (parts(paths=topology.two_level(2)), "take none"),
    (parts(traces=np.ones((5, 3)), paths=topology.two_level(2)),
     "paths use link 7, but traces hold 5 links"),
    (parts(paths=5), "paths must be a Topology, got 5; see dlsim.bricks.topology.from_graph"),
    (parts(background=5), "background needs arrival times as one list per queue; got 5"),
    (parts(background=[[1.0]]),
     "background needs one list of arrival times per queue, 2; got 1"),
    (parts(background=[[], [2.0, 1.0]]),
     "arrival times of queue 1 must not decrease; sort them"),
    (parts(background_work=-50.0), "size of background must be .* at least 0, got -50"),
    (parts(background=[[1.0], [2.0]], background_work=[[1.0], [2.0, 3.0]]),
     "needs one finite size of at least 0 per arrival"),
    (parts(background=[[1.0, 2.0], [2.0]], background_work=[[1.0], [2.0, 3.0]]), "in lists alike"),
    (parts(background=[[1.0, 2.0], [2.0]], background_work=None),
     "background needs sizes as one list per queue; got None"),
    (parts(link_background=[[1.0]]), "link_background needs one list"),
    (parts(link_background=[[] for _ in range(7)] + [[1e9]]),
     r"link_background must end before 6.71e\+08 s.* longer step"),
    (parts(load_traces=np.ones((1, 3))), "load_traces needs a row per server, 2; got 1"),
    (parts(load_traces=-np.ones((2, 3))),
     "load_traces.0, 0. must be a finite number of at least 0"),
    (parts(load_traces="idle"), "load_traces must be a finite number of at least 0, got 'idle'"),
    (parts(horizon=1.0), "horizon must be at least 2, the last request"),
]  # fmt: skip

test_parts_that_make_no_environment = refuses_each(
    [(lambda given=given: Environment(**given), words) for given, words in ENVIRONMENTS]
)


def of_user(answer):
    """Simulate with a policy that answers so."""

    def mine(view):
        return answer

    return decided(Policy(mine))


def writing(name):
    """Simulate with a policy that changes what it is shown."""

    def mine(view):
        getattr(view, name)[:] = 1
        return 0

    return decided(Policy(mine))


#: Options of a draw.
DRAWS = [
    ({"server_load": 1.0}, "server_load must be a number of at least 0 and below 1"),
    ({"link_load": -0.1}, "link_load must be a number of at least 0 and below 1"),
    ({"work_range": (2, 1)}, "work_range must be a range"),
    ({"performance": 300}, "performance must be a range"),
    ({"interval_scope": "world"}, "interval_scope must be one of client, system"),
    ({"server_background": "data"}, "server_background must be one of jobs, trace"),
    ({"background_work": 1e-6}, "background jobs .* cannot fit in memory: .* larger"),
    ({"nodes": (1.5, 3)}, "nodes must be a whole number of at least 0, got 1.5"),
    ({"nodes": (1, 1), "domains": 1}, "servers must have at least one row"),
    ({"trace_method": "wavelets"}, "trace_method must be one of"),
    ({"topology": 3}, "topology must be a Topology"),
    ({"domain": 1},
     r"option of Environment.random must be one of H, .*work_range; got 'domain' "
     r"\(did you mean domains\?\)"),
    # what would never end
    ({"interval": 1e-12}, "requests must be at most 100000000, got about .* longer interval"),
    ({"horizon": 1e30}, "requests must be at most"),
    ({"horizon": 1e9, "interval": 1e9}, "trace entries must be at most .* longer trace_step"),
    ({"trace_step": 1e-9}, "trace entries must be at most"),
    ({"domains": 10**8}, "nodes must be at most 10000000, got about 1e.09; use fewer"),
    ({"nodes": (1, 10**9)}, "nodes must be at most"),
]  # fmt: skip

REFUSED = [
    # --- policies, readings, and what is simulated
    (lambda: Policy(opt=1.01), r"opt must be above 0 and at most 1 \(eq. 3\), got 1.01"),
    (lambda: Policy("edf"), f"algorithm must be one of {', '.join(ALGORITHMS)}; got 'edf'"),
    (lambda: Policy(load_correction=1), "load_correction must be one of True, False; got 1"),
    (lambda: Policy(correct_links="yes"), "correct_links must be one of"),
    *[(lambda s=switches: Reading.from_switches(s), words) for switches, words in (
        ({"load": "cpu"}, "load must be one of clients, util, queue, ext; got 'cpu'"),
        ({"predictor": "nws"}, "predictor must be one of last, mean, perfect, adaptive"),
        ({"fallback_strict": 1}, "fallback_strict must be one of True, False; got 1"),
        ({"network": None}, "network must be one of fluid, packet"),
        ({"Load": "util"}, "reading switch must be one of .*load.*; got 'Load'"),
        ("load=util", "switches must be a mapping"))],
    (lambda: simulate(1, "Greedy"), "env must be an Environment, got 1"),
    (lambda: decided(None), "policy must be a legend such as .*, got None"),
    (lambda: decided("greedy"),
     r"policy must be a legend .*; got 'greedy' \(did you mean Greedy\?\)"),
    (lambda: decided("D-1.5"), "opt must be above 0 and at most 1"),
    *[(lambda c=column: simulate(Environment(**changed("requests", c, 1e12)), "Greedy",
                                 Reading(network="packet")),
       "packets must be at most 1000000000, .* larger packets") for column in ("send", "recv")],
    (lambda: decided("Greedy", Reading(probe=1e-9)),
     "probe must be at least the time of every event over"),
    # --- functions of a user
    *[(lambda a=answer: of_user(a), r"policy mine must return .* one of 0\.\.1; got")
      for answer in (2, -1, 0.5, None, "0", "REFUSE", [], [0], [0, 0], np.array([0]))],
    *[(lambda n=name: writing(n), "read-only")
      for name in ("load", "scheduled", "excluded", "submitted", "server", "completion")],
    *[(lambda a=answer: decided("Greedy", Reading(predictor=a)),
       r"predictor must return one finite number .* shape \(10,\)")
      for answer in (lambda w: w, lambda w: 1.0, lambda w: -w[:, -1], lambda w: w[:, -1] * np.nan,
                     lambda w: w[:, -1] + np.inf, lambda w: {}[0])],
    # --- what is drawn
    *[(lambda o=options: Environment.random(1, **o), words) for options, words in DRAWS],
    *[(lambda o=options: traces.random_traces(**{"mean": [1.0], "steps": 10} | o), words)
      for options, words in (
          ({"steps": 2**29, "mean": [1.0, 1.0]}, "more than"),
          ({"H": 1.0}, "H must"),
          ({"method": "fft"}, "method"))],
]  # fmt: skip

test_what_cannot_be_used_is_refused = refuses_each(REFUSED)


def test_a_variant_with_fewer_servers_names_the_arrivals_that_are_left():
    """Arrivals that are none fit any number of servers."""
    fewer = {"servers": SERVERS.iloc[:1]}
    simulate(replace(Environment(**parts()), **fewer), "Greedy").check()
    busy = Environment(**parts(background=[[1.0], [2.0]]))
    words = r"background needs one list .* per queue, 1; got 2"
    require_refusals([(lambda: replace(busy, **fewer), words)])


def test_columns_that_are_not_known_may_be_ignored():
    for table in ("servers", "clients", "requests"):
        env = Environment(**changed(table, "weigth", 1.0), ignore=["weigth"])
        assert "weigth" in getattr(replace(env), table)
        simulate(env, "Greedy").check()


def test_a_reading_tells_its_changes():
    assert Reading.from_switches({}).changes() == {}
    assert Reading.from_switches({"load": "util", "probe": 60.0}).changes() == {"load": "util"}


# ---------------------------------------------------------------- finite, and absurd


def test_times_beyond_whole_numbers_are_still_in_the_last_step():
    for loads, seconds in ((None, 1e28), (np.ones((2, 2)), 2e28)):
        work = changed("requests", "work", [0.0, 2e30])
        one = simulate(Environment(**work, load_traces=loads), "Greedy").requests.loc["b"]
        assert one["completion"] == pytest.approx(seconds)


@pytest.mark.parametrize("column", ["arrival", "send", "recv", "work", "due"])
def test_absurd_requests_end_or_are_refused(column):
    for value in (1e99, 1e100):
        env = Environment(**changed("requests", column, [1.0, value]))
        if column in ("arrival", "send"):
            with pytest.raises(InputError, match=r"probe must be .* use a longer probe interval"):
                simulate(env, "Greedy")
            env_sees_now = Reading(predictor="perfect")
            assert np.isfinite(simulate(env, "Greedy", env_sees_now).requests["completion"]).all()
        else:
            simulate(env, "Greedy").check()


def test_tiny_probe_intervals():
    env = Environment(**changed("requests", "arrival", [1.0, 2.25]))  # no input arrives just then
    often = simulate(env, "Greedy", Reading(probe=1e-5)).requests
    now = simulate(env, "Greedy", Reading(predictor="perfect")).requests
    pd.testing.assert_frame_equal(often, now)


def test_data_of_other_users_that_are_not_too_far():
    env = Environment(**parts(link_background=[[] for _ in range(7)] + [[1e6]]))
    assert env.available_rates.shape == (8, 100_002)
