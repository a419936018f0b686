"""What the Grid simulator refuses, each with the value, the rule and a remedy.

``tests/test_validate.py`` gives every number of every public function all kinds of values.
"""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from dlsim.bricks import Environment, Policy, Reading, simulate, topology
from dlsim.bricks.model import ALGORITHMS
from dlsim.errors import InputError


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
    frame = parts()[table]
    return parts(**{table: frame.assign(**{column: value})})


def without(table, column):
    return parts(**{table: parts()[table].drop(columns=column)})


def test_the_usual_parts_are_good():
    simulate(Environment(**parts()), "Greedy").check()


def test_a_variant_with_fewer_servers_names_the_arrivals_that_are_left():
    """Arrivals that are none fit any number of servers."""
    fewer = {"servers": parts()["servers"].iloc[:1]}
    simulate(replace(Environment(**parts()), **fewer), "Greedy").check()
    busy = Environment(**parts(background=[[1.0], [2.0]]))
    with pytest.raises(InputError, match=r"background needs one list .* per queue, 1; got 2"):
        replace(busy, **fewer)


ZERO = np.ones((2, 4, 3))
ZERO[1, 2, 2] = 0
BAD = {
    "servers must have at least one row": parts(servers=parts()["servers"].iloc[:0]),
    "servers must be a pandas DataFrame with the columns domain, perf": parts(servers=[1, 2]),
    "servers need the columns domain, performance; performance not found": without(
        "servers", "performance"
    ),
    "domain of row 0 must be a whole number of at least 0, got 0.5": changed(
        "servers", "domain", 0.5
    ),
    "servers: domain of row 0 must be .* below 2, the number of domains, got 2": changed(
        "servers", "domain", 2
    ),
    "clients: domain of row 0 must be a whole number below 2, .*, got 9": changed(
        "clients", "domain", 9
    ),
    "work of row 'b' must be a finite number of at least 0, got -1": changed(
        "requests", "work", [1, -1]
    ),
    "client of row 'a' must be .* below 1, the number of clients, got 1": changed(
        "requests", "client", 1
    ),
    "row 'b' comes before the one above": changed("requests", "arrival", [2.0, 1.0]),
    "label 'a' of requests appears twice": parts(requests=parts()["requests"].set_axis(["a"] * 2)),
    "traces must be an array of 2 dimensions or 3 dimensions": parts(traces=np.ones(3)),
    "at least one step": parts(traces=np.ones((2, 4, 0))),
    "must hold LAN up, LAN down, WAN up, WAN down per domain": parts(traces=np.ones((2, 3, 5))),
    "link 6 ends with throughput zero, which is held for ever": parts(traces=ZERO),
    "of shape .links, steps. need paths": parts(traces=np.ones((8, 3))),
    "take none": parts(paths=topology.two_level(2)),
    "paths use link 7, but traces hold 5 links": parts(
        traces=np.ones((5, 3)), paths=topology.two_level(2)
    ),
    "background needs one list of arrival times per queue, 2; got 1": parts(background=[[1.0]]),
    "arrival times of queue 1 must not decrease; sort them": parts(background=[[], [2.0, 1.0]]),
    "size of background must be .* at least 0, got -50": parts(background_work=-50.0),
    "needs one finite size of at least 0 per arrival": parts(
        background=[[1.0], [2.0]], background_work=[[1.0], [2.0, 3.0]]
    ),
    "link_background needs one list": parts(link_background=[[1.0]]),
    "load_traces needs a row per server, 2; got 1": parts(load_traces=np.ones((1, 3))),
    "load_traces.0, 0. must be a finite number of at least 0": parts(load_traces=-np.ones((2, 3))),
    "in lists alike": parts(background=[[1.0, 2.0], [2.0]], background_work=[[1.0], [2.0, 3.0]]),
    "background needs sizes as one list per queue; got None": parts(
        background=[[1.0], [2.0]], background_work=None
    ),
    "background needs arrival times as one list per queue; got 5": parts(background=5),
    "traces.0, 0. must .* got .1, 2": parts(traces=[[[1, 2], [1]]]),
    "load_traces must be a finite number of at least 0, got 'idle'": parts(load_traces="idle"),
    "paths must be a Topology, got 5; see dlsim.bricks.topology.from_graph": parts(paths=5),
    "horizon must be at least 2, the last request": parts(horizon=1.0),
}


@pytest.mark.parametrize("message", BAD)
def test_environments_that_are_none(message):
    with pytest.raises(InputError, match=message):
        Environment(**BAD[message])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"opt": 1.01}, r"opt must be above 0 and at most 1 \(eq. 3\), got 1.01"),
        ({"algorithm": "edf"}, f"algorithm must be one of {', '.join(ALGORITHMS)}; got 'edf'"),
        ({"load_correction": 1}, "load_correction must be one of True, False; got 1"),
        ({"correct_links": "yes"}, "correct_links must be one of"),
    ],
)
def test_schedulers_that_are_none(options, message):
    with pytest.raises(InputError, match=message):
        Policy(**options)


@pytest.mark.parametrize(
    ("switches", "message"),
    [
        ({"load": "cpu"}, "load must be one of clients, util, queue, ext; got 'cpu'"),
        ({"predictor": "nws"}, "predictor must be one of last, mean, perfect, adaptive"),
        ({"fallback_strict": 1}, "fallback_strict must be one of True, False; got 1"),
        ({"network": None}, "network must be one of fluid, packet"),
        ({"Load": "util"}, "reading switch must be one of .*load.*; got 'Load'"),
    ],
)
def test_readings_that_are_none(switches, message):
    with pytest.raises(InputError, match=message):
        Reading.from_switches(switches)


def test_a_reading_is_a_mapping_and_tells_its_changes():
    with pytest.raises(InputError, match="switches must be a mapping"):
        Reading.from_switches("load=util")
    assert Reading.from_switches({}).changes() == {}
    assert Reading.from_switches({"load": "util", "probe": 60.0}).changes() == {"load": "util"}


def test_simulate_wants_its_own_kinds():
    env = Environment(**parts())
    for case, message in {
        (1, "Greedy"): "env must be an Environment, got 1",
        (env, None): "policy must be a legend such as .*, got None",
        (env, "greedy"): r"policy must be a legend .*; got 'greedy' \(did you mean Greedy\?\)",
        (env, "D-1.5"): "opt must be above 0 and at most 1",
    }.items():
        with pytest.raises(InputError, match=message):
            simulate(*case)


@pytest.mark.parametrize("table", ["servers", "clients", "requests"])
def test_columns_that_no_table_has_are_refused_unless_ignored(table):
    given = changed(table, "weigth", 1.0)
    with pytest.raises(InputError, match=f"{table} have a column 'weigth' that is not known"):
        Environment(**given)
    env = Environment(**given, ignore=["weigth"])
    assert "weigth" in getattr(replace(env), table)
    simulate(env, "Greedy").check()


def test_the_columns_of_earlier_versions_are_refused():
    old = {"arrival": "time", "due": "deadline"}
    with pytest.raises(InputError, match=r"requests need .*; arrival, due not found"):
        Environment(**parts(requests=parts()["requests"].rename(columns=old)))


def test_times_beyond_whole_numbers_are_still_in_the_last_step():
    for loads, seconds in ((None, 1e28), (np.ones((2, 2)), 2e28)):
        work = changed("requests", "work", [0.0, 2e30])
        one = simulate(Environment(**work, load_traces=loads), "Greedy").requests.loc["b"]
        assert one["completion"] == pytest.approx(seconds)


@pytest.mark.parametrize(
    "answer", [2, -1, 0.5, None, "0", "REFUSE", [], [0], [0, 0], np.array([0])]
)
def test_a_users_scheduler_must_name_a_server(answer):
    def mine(view):
        return answer

    with pytest.raises(InputError, match=r"policy mine must return .* one of 0\.\.1; got"):
        simulate(Environment(**parts()), Policy(mine))


@pytest.mark.parametrize(
    "name", ["load", "scheduled", "excluded", "submitted", "server", "completion"]
)
def test_a_users_scheduler_cannot_change_the_run(name):
    def mine(view):
        getattr(view, name)[:] = 1
        return 0

    with pytest.raises(InputError, match="read-only"):
        simulate(Environment(**parts()), Policy(mine))


@pytest.mark.parametrize(
    "answer", [lambda w: w, lambda w: 1.0, lambda w: -w[:, -1], lambda w: w[:, -1] * np.nan,
               lambda w: w[:, -1] + np.inf, lambda w: {}[0]],
)  # fmt: skip
def test_a_users_predictor_must_return_a_value_per_series(answer):
    with pytest.raises(
        InputError, match=r"predictor must return one finite number .* shape \(10,\)"
    ):
        simulate(Environment(**parts()), "Greedy", Reading(predictor=answer))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"server_load": 1.0}, "server_load must be a number of at least 0 and below 1"),
        ({"link_load": -0.1}, "link_load must be a number of at least 0 and below 1"),
        ({"work_range": (2, 1)}, "work_range must be a range"),
        ({"data_range": (-1, 1)}, "data_range must be a range"),
        ({"performance": 300}, "performance must be a range"),
        ({"interval_scope": "world"}, "interval_scope must be one of client, system"),
        ({"server_background": "data"}, "server_background must be one of jobs, trace"),
        ({"background_work": 1e-6}, "background jobs .* cannot fit in memory: .* larger"),
        ({"H": 1.5}, "H"),
        ({"nodes": (1.5, 3)}, "nodes must be a whole number of at least 0, got 1.5"),
        ({"trace_method": "wavelets"}, "trace_method must be one of"),
        ({"topology": 3}, "topology must be a Topology"),
    ],
)
def test_workloads_that_are_none(options, message):
    with pytest.raises(InputError, match=message):
        Environment.random(1, **({"horizon": 7200.0} | options))


def test_a_draw_without_servers_is_refused():
    with pytest.raises(InputError, match="servers must have at least one row"):
        Environment.random(1, nodes=(1, 1), domains=1, horizon=100.0)


# ---------------------------------------------------------------- finite, and absurd


def test_unknown_options_are_named_with_those_that_are_known():
    known = r"option of Environment.random must be one of H, .*work_range"
    with pytest.raises(InputError, match=rf"{known}; got 'domain' \(did you mean domains\?\)"):
        Environment.random(0, domain=1)


@pytest.mark.parametrize("column", ["arrival", "send", "recv", "work", "due"])
def test_absurd_requests_end_or_are_refused(column):
    for value in (1e99, 1e100):
        times = {"arrival": [1.0, value]} if column == "arrival" else {column: value}
        requests = parts()["requests"].assign(**times)
        env = Environment(**parts(requests=requests))
        if column in ("arrival", "send"):
            with pytest.raises(InputError, match=r"probe must be .* use a longer probe interval"):
                simulate(env, "Greedy")
            env_sees_now = Reading(predictor="perfect")
            assert np.isfinite(simulate(env, "Greedy", env_sees_now).requests["completion"]).all()
        else:
            simulate(env, "Greedy").check()
    with pytest.raises(
        InputError, match=r"'b' must be 0 or between 1e-100 and 1e\+100, got 1e\+101"
    ):
        Environment(**changed("requests", column, [1.0, 1e101]))


@pytest.mark.parametrize("column", ["send", "recv"])
def test_too_many_packets(column):
    env = Environment(**changed("requests", column, 1e12))
    with pytest.raises(InputError, match=r"packets must be at most 1000000000, .* larger packets"):
        simulate(env, "Greedy", Reading(network="packet"))


def test_tiny_probe_intervals():
    env = Environment(**changed("requests", "arrival", [1.0, 2.25]))  # no input arrives just then
    with pytest.raises(InputError, match="probe must be at least the time of every event over"):
        simulate(env, "Greedy", Reading(probe=1e-9))
    often = simulate(env, "Greedy", Reading(probe=1e-5)).requests
    now = simulate(env, "Greedy", Reading(predictor="perfect")).requests
    pd.testing.assert_frame_equal(often, now)


def test_far_data_of_other_users():
    lists = [[] for _ in range(7)] + [[1e9]]
    message = r"link_background must end before 6.71e\+08 s.* longer step"
    with pytest.raises(InputError, match=message):
        Environment(**parts(link_background=lists))
    near = Environment(**parts(link_background=[*lists[:7], [1e6]]))
    assert near.available_rates.shape == (8, 100_002)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"interval": 1e-12}, "requests must be at most 100000000, got about .* longer interval"),
        ({"horizon": 1e30}, "requests must be at most"),
        ({"horizon": 1e9, "interval": 1e9}, "trace entries must be at most .* longer trace_step"),
        ({"trace_step": 1e-9}, "trace entries must be at most"),
        ({"domains": 10**8}, "nodes must be at most 10000000, got about 1e.09; use fewer"),
        ({"nodes": (1, 10**9)}, "nodes must be at most"),
        ({"foo": 1}, "got 'foo'"),
    ],
)
def test_draws_that_would_never_end(options, message):
    with pytest.raises(InputError, match=message):
        Environment.random(1, **options)


def test_an_outcome_without_requests():
    env = Environment(**parts(requests=parts()["requests"].iloc[:0]))
    o = simulate(env, "Greedy")
    o.check()
    found = (o.failure_rate, o.mean_cost, o.work_weighted_cost, o.lateness)
    assert np.isnan(found).all()
    assert o.drain_time == 0
