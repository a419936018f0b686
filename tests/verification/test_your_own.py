"""What 80-your-own shows: its cells, run in one namespace, against numbers worked elsewhere."""

import io
import itertools
import json
import math
from datetime import UTC, datetime
from pathlib import Path

import networkx as nx
import pandas as pd
import pytest
from gmpy2 import mpq as Fraction

from dlsim.errors import InputError
from dlsim.joblog import read_log
from tests.twins import inserted, own, realtime
from tests.verification.executed import in_one_space

NOTEBOOK = Path(__file__).parents[2] / "notebooks" / "80-your-own.ipynb"


@pytest.fixture(scope="module")
def seen(tmp_path_factory):
    """Everything that the notebook's cells leave, and what each shows, by its id."""
    return in_one_space(NOTEBOOK, tmp_path_factory.mktemp("elsewhere"))


def same(table, rows):
    """Compare with rows in which None stands for no value."""
    flat = list(itertools.chain.from_iterable(table.astype(float).to_numpy().tolist()))
    flat = [None if math.isnan(value) else value for value in flat]
    assert flat == [value for row in rows for value in row]


def test_three_tasks_worked_by_hand(seen):
    _, shown = seen
    same(shown["own-04"], [[1, 0, 2, 8], [1, 8, 1, 44], [0, None, 0, None]])
    assert shown["own-05"].deadline == 20
    assert shown["own-07"].tolist() == [0, 0, pytest.approx(1 / 3)]
    same(shown["own-09"], [[0, 0], [0, 6], [0, None]])
    same(shown["own-11"], [[21, 21, 21], [53, 48.09, 38.5], [None, None, 54.5]])


def test_rules_of_ones_own_refuse_as_the_plain_twin(seen):
    names, _ = seen
    busy = names["busy"]
    costs = realtime.Costs(10, Fraction(10), Fraction(10), Fraction(0), Fraction(0))
    rules = {
        "MCDF reversed": ("fifo", "opr", "dearest_last", None),
        "least laxity": ("fifo", "opr", "laxity", None),
        "n_min + 1": ("edf", "opr", None, "one_more"),
        "halving": ("edf", "halves", None, None),
    }
    rows = inserted.table(busy[["arrival", "sigma", "deadline"]].to_numpy().tolist())
    for name, (order, partition, key, count) in rules.items():
        records = own.Twin(costs, order, "min", partition, True, {}, key, count).run(rows)
        refused = sum(not row.admitted for row in records) / len(busy)
        assert names["ratios"][name] == refused


def test_a_trace_has_every_span_of_every_node_once(seen):
    names, _ = seen
    schedule, trace = names["first_run"], json.loads(json.dumps(names["trace"]))
    busy = {"send": [], "compute": []}
    for node in range(10):
        events = [one for one in trace["traceEvents"] if one["tid"] == node]
        clock = 0.0
        for event in events:  # one span after the other, from time 0 on
            assert event["ts"] == pytest.approx(clock, abs=1e-6)
            clock = event["ts"] + event["dur"]
            if event["name"] != "idle":
                busy[event["name"]].append((event["args"]["task"], event["dur"]))
    for name, begin, end in (
        ("send", "send_start", "send_end"),
        ("compute", "send_end", "compute_end"),
    ):
        chunks = schedule.chunks.assign(dur=schedule.chunks[end] - schedule.chunks[begin])
        wanted = sorted(zip(chunks["task"], chunks["dur"], strict=True))
        assert sorted(busy[name]) == [(task, pytest.approx(dur)) for task, dur in wanted]


def test_a_heuristic_of_ones_own_stands_beside_the_papers(seen):
    """At home speeds 1 and 100 serve one unit at least; the best is 21 over two connections."""
    assert seen[0]["best"].connections.tolist() == [[0, 2], [0, 0]]
    table = seen[1]["own-13c"]
    assert table.index.tolist() == ["G", "LPRG", "at_home", "best_of_ten"]
    assert table["objective"].tolist() == [21, 21, 1, 21]
    assert table.loc["at_home", ["ratio", "connections", "speed_used"]].tolist() == [0.048, 0, 1]


def test_an_earlier_deadline_costs_more_and_fails_less(seen):
    table = seen[1]["own-15"]
    same(table.round({"mean cost": 0}), [[0.24, 263], [0.042, 372], [0.104, 241]])


def test_a_predictor_is_given_the_past(seen):
    assert seen[1]["own-15d"].index.tolist() == ["last", "trend"]
    same(seen[1]["own-15d"], [[0.094], [0.208]])
    assert seen[1]["own-17"].round().tolist() == [216, 177, 133]  # history is done first


#: By the id of its cell, what a recipe must make of the jobs in it: worked by hand.
LOGS = {
    "own-13f3c": [  # five places on two hosts, though ncpus says 1; twice eight places
        "submit,wait,run_time,processors,estimate,user,group,queue",
        "0,60,600,5,3600.0,ann,g,batch",
        "100,0,60,16,-1.0,bob,g,batch",
    ],
    "own-13f3e": [  # without the slave task; the second job's times are milliseconds
        "submit,wait,run_time,processors,estimate,user,group,queue",
        "0.0,60.0,600.0,8,3600.0,ann,g,all",
        "100.0,0.0,60.0,1,-1.0,bob,g,long",
    ],
    "own-13f5": [
        "submit,wait,run_time,processors,estimate,user,queue",
        "0,12.0,300,2,600,U1,Q0",
        "20,-1.0,45,1,-1,U2,Q0",
    ],
    "own-13f7": ["submit,wait,run_time,processors,user,queue", "0.0,60.0,600,8,u1,vcA"],
    "own-13f9": [  # 4 instances of 25 % are ten tenths; the second task waited from 1100 to 1150
        "submit,wait,run_time,processors,user",
        "0,10,600,10,u1",
        "110,50,100,10,u2",
    ],
    "own-13f11": [  # ten minutes and five, with three GPUs each
        "submit,wait,run_time,processors,user,queue",
        "0.0,120.0,900.0,3,u1,v1",
    ],
    "own-13f13": [  # 460 thousandths are five tenths, rounded up
        "submit,wait,run_time,processors,queue",
        "0,10.0,590.0,5,LS",
        "20,0.0,480.0,80,BE",
    ],
    "own-13f15": [
        "submit,wait,run_time,processors,estimate",
        "0.0,2.5,80.0,4,100.0",
        "5.0,0.0,5.0,1,-1.0",
    ],
}


@pytest.mark.parametrize("cell", LOGS)
def test_a_log_of_another_format_becomes_the_table_of_65(seen, cell, tmp_path):
    lines = LOGS[cell]
    table = seen[1][cell]
    assert table.to_csv(index=False).splitlines() == lines
    table.to_csv(tmp_path / "my.csv", index=False)
    jobs = read_log(tmp_path / "my.csv").jobs
    assert len(jobs) == len(lines) - 1
    work = (table["run_time"] * table["processors"]).sum()
    assert (jobs["run_time"] * jobs["processors"]).sum() == work


def test_what_real_files_lack_is_unknown_or_left_out(seen):
    """Missing values as the archives have them: blanks, None, -1, null."""
    names = seen[0]
    gwf = "0 10 -1 60 2 -1 -1 2 -1 -1 1 -1 G X -1 -1\n1 20 5 60 -1 -1 -1 2 60 -1 1 U1 G X Q -1\n"
    table = names["from_gwf"](io.StringIO(gwf))
    assert table.to_csv(index=False).splitlines()[1:] == ["0,-1.0,60,2,-1,,"]
    head = names["helios"].splitlines()[0]
    row = "7,,vcA,8,32,1,COMPLETED,2020-04-01 00:00:05,,2020-04-01 00:11:05,600,60"
    table = names["from_helios"](io.StringIO(f"{head}\n{row}\n{row.replace('600,60', ',')}\n"))
    assert table.to_csv(index=False).splitlines()[1:] == ["0.0,-1.0,600.0,8,,vcA"]
    attempt = {"start_time": "2017-10-03 01:02:00", "end_time": None, "detail": [{"gpus": ["g"]}]}
    ended = attempt | {"end_time": "2017-10-03 01:03:00"}
    job = {"jobid": "a", "user": None, "vc": None, "submitted_time": "2017-10-03 01:00:00"}
    jobs = [job | {"attempts": [ended, attempt]}, job | {"jobid": "b", "attempts": []}]
    table = names["from_philly"](io.StringIO(json.dumps(jobs)))
    assert table.to_csv(index=False).splitlines()[1:] == ["0.0,120.0,60.0,1,,"]
    pods = names["alibaba"].splitlines()
    running = pods[1].replace("400,1000,410", "400,,410").replace("LS", "")
    table = names["from_alibaba_2023"](io.StringIO("\n".join([pods[0], pods[2], running])))
    assert len(table) == 1
    older = names["batsim"].replace("number_of_resources", "number_of_processors")
    assert len(names["from_batsim"](io.StringIO(older))) == 2


def test_dates_are_seconds_whatever_their_offset_and_numbers_stay(seen):
    given = ["2025-05-01 02:00:00+02:00", "2025-05-01 00:00:00", "1746057600", 1746057600, None]
    assert datetime.fromtimestamp(1746057600, UTC).isoformat() == "2025-05-01T00:00:00+00:00"
    seconds = seen[0]["to_seconds"](pd.Series([*given, "soon"], dtype=object))
    assert seconds[:4].tolist() == [1746057600] * 4
    assert seconds[4:].isna().all()


@pytest.mark.parametrize(
    ("text", "count"),
    [("", 0), ("n/0", 1), ("n1/0+n1/1+n2/0", 3), ("h023/0-47", 48), ("a/0*8+b/0*4", 12),
     ("n1/0-3,6+n2/5", 6)],
)  # fmt: skip
def test_places_of_pbs_are_counted(seen, text, count):
    assert seen[0]["count_places"](text) == count


def test_networks_of_the_topology_zoo_become_platforms(seen):
    """Equal labels, a parallel edge without a speed, a loop; 8,000 bit/s are one unit."""
    text = """graph [
      node [ id 0 label "Paris" ] node [ id 1 label "Paris" ] node [ id 2 label "Rome" ]
      edge [ source 0 target 1 LinkSpeedRaw 8000 ] edge [ source 1 target 2 ]
      edge [ source 1 target 2 LinkSpeedRaw 32000 ] edge [ source 2 target 2 ]
    ]"""
    names = seen[0]
    network = names["read_gml_text"](text)
    platform = names["to_platform"](network)
    assert platform.site_names == ["Paris (0)", "Paris (1)", "Rome"]
    assert platform.links["bandwidth"].tolist() == [1.0, 2.5]  # the median of 1 and 4
    assert platform.links["max_connect"].tolist() == [10, 20]
    assert names["to_platform"](network, 16000).links["bandwidth"].tolist() == [1, 2]
    with pytest.raises(InputError, match="no edge has LinkSpeedRaw; give the usual speed"):
        names["to_platform"](nx.path_graph(3))


def test_a_network_of_any_format_becomes_the_same_platform(seen):
    """By hand: 125 and 250 units a second for one connection, ten of them."""
    platforms = seen[0]["platforms"]
    assert list(platforms) == ["GraphML", "GML", "node-link JSON"]
    for platform in platforms.values():
        assert platform.site_names == ["Athens", "Bern", "Cork"]
        assert platform.links["bandwidth"].tolist() == [125, 250]
        assert platform.links["max_connect"].tolist() == [10, 10]
        assert platform.routes[0, 2] == (0, 1)
    assert seen[1]["own-13h3"].tolist() == [100, 100, 100]  # every site computes its own load


def test_a_lost_link_leaves_a_site_alone(seen):
    """By hand: north's link takes three connections, of which search has two of bandwidth 1.

    Search gets 3 a unit of time until 5, then the 1 of its own site: 5 + 5 / 1. Render has one
    connection of bandwidth 2 beside its own 4, and after the loss two: 5 + (60 - 5 * 6) / 8.
    """
    table = seen[1]["own-13j"]
    assert table["state"].tolist() == ["done", "done"]
    assert table["completion"].tolist() == [8.75, 10]
