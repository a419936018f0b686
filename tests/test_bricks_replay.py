"""Job logs replayed in an environment: windows, and what comes when the traces have ended."""

import json

import numpy as np
import pandas as pd
import pytest

from dlsim.bricks import Environment, Scheduler, simulate
from dlsim.bricks.environment import ON_FAILURE
from dlsim.bricks.traces import Traces
from dlsim.bricks.workload import from_log
from dlsim.cli import main
from dlsim.cli.grid import scheduler_of
from dlsim.errors import InputError

#: Submit, run and requested time of jobs of users 1 and 2, one processor each.
JOBS = [(100, 30, 50, 1), (130, 60, -1, 2), (1100, 30, 90, 1)]
LOG = "".join(
    f"{k} {submit} 0 {run} 1 -1 -1 1 {asked} -1 1 {user} 1 1 1 1 -1 -1\n"
    for k, (submit, run, asked, user) in enumerate(JOBS)
)


@pytest.fixture
def log(tmp_path):
    path = tmp_path / "log.swf"
    path.write_text(LOG)
    return path


def grid(**more):
    """One server and one client; traces of 10 and 30 Mbit/s, 10 s each."""
    return Environment(**{
        "servers": pd.DataFrame({"domain": [0], "performance": 100.0}),
        "clients": pd.DataFrame({"domain": [0]}), "step": 10.0,
        "traces": np.tile([10.0, 30.0], (1, 4, 1)), "requests": sent(), **more,
    })  # fmt: skip


def sent(*times):
    """100 Mbit each, no work, due 15 s later."""
    rows = [(t, 0, 100.0, 0.0, 0.0, t + 15.0) for t in times]
    return pd.DataFrame(rows, columns=["time", "client", "send", "recv", "work", "deadline"])


def test_what_comes_after_the_traces_is_refused():
    with pytest.raises(InputError, match=r"2 of 3 requests come or are due after 20 s"):
        Environment.replay(sent(0, 6, 40), grid())
    assert Environment.replay(sent(0, 5), grid()).rates.shape == (4, 2)  # the last is due at 20


def test_wrapped_traces_begin_again():
    # at 45 s: 10 Mbit/s until 50, then 30: 50 Mbit in 5 s, the others in 5/3 s
    env = Environment.replay(sent(0, 45), grid(), beyond="wrap")
    o = simulate(env)
    assert o.requests["completion"].tolist() == [10.0, pytest.approx(50 + 50 / 30)]
    assert o.beyond_traces == 0
    o.check()
    held = simulate(grid(requests=sent(0, 45)))  # what it was without a word
    assert held.requests["completion"].tolist()[1] == pytest.approx(45 + 100 / 30)


def test_other_users_are_wrapped_too():
    env = grid(background=[[1.0, 25.0]], background_work=[[7.0, 9.0]], load_traces=[[0.0, 1.0]],
               link_background=[[2.0], [], [], [3.0, 4.0]])  # fmt: skip
    env = Environment.replay(sent(30), env, beyond="wrap")  # 1.5 * 45 s: 4 rounds of 20 s
    assert env.background.times.tolist() == [1, 21, 41, 61]  # 25 s is beyond the first round
    assert env.background.sizes.tolist() == [7, 7, 7, 7]
    assert env.load_traces.tolist() == [[0, 1] * 4]
    assert env.link_background.first.tolist() == [0, 4, 4, 4, 12]
    assert env.link_background.of(3).tolist() == [3, 4, 23, 24, 43, 44, 63, 64]


def test_a_window_begins_at_zero_and_has_no_end():
    env = Environment.replay(sent(0, 60, 63, 70), grid(), window=(60, 70))
    assert env.requests[["time", "deadline"]].values.tolist() == [[0, 15], [3, 18]]
    assert Environment.replay(sent(0, 3, 60), grid(), window=60).requests["time"].tolist() == [0, 3]
    with pytest.raises(InputError, match=r"holds no request; the last of the log comes at 70 s"):
        Environment.replay(sent(0, 70), grid(), window=(20, 30))


def test_constant_traces_without_other_users_cover_everything():
    env = Environment.replay(sent(1e6), grid(traces=np.full((1, 4, 1), 20.0)))
    assert simulate(env).requests["completion"].tolist() == [1e6 + 5]


def test_a_log_is_replayed_in_a_drawn_environment(log):
    env = Environment.replay(log, seed=3, domains=2)
    assert env.requests["time"].tolist() == [0, 30, 1000]
    assert env.requests["client"].tolist() == [0, 1, 0]
    assert env.trace_end >= env.requests["deadline"].max()
    o = simulate(env, Scheduler("deadline", 0.7))
    o.check()
    assert o.beyond_traces == 0
    again = Environment.replay(log, seed=3, domains=2)
    assert again.traces.tobytes() == env.traces.tobytes()


def test_traces_of_ones_own_have_the_rest_drawn_around_them(log):
    mine = Traces(np.full((8, 90), 40.0), 20.0, tuple("abcdefgh"))
    requests = from_log(log, 9, deadline_factor=(1, 1))
    env = Environment.replay(requests, mine, beyond="wrap", server_load=0.0)
    assert env.topology.domains == 2
    assert set(env.rates.ravel()) == {40.0}
    assert not len(env.link_background.times)
    with pytest.raises(InputError, match="four rows per domain"):
        Environment.replay(requests, mine, domains=3)


@pytest.mark.parametrize(("options", "said"), [
    ({"beyond": "hold"}, "beyond"), ({"interval": 3.0}, "no interval"), ({"speed": 1}, "speed"),
    ({"traces": 7}, "traces"), ({"window": (5, 1)}, "window"),
    ({"traces": grid(), "domains": 3}, "domains belong to a drawn"),
])  # fmt: skip
def test_what_cannot_be_replayed_is_refused(options, said):
    with pytest.raises(InputError, match=said):
        Environment.replay(sent(0), **options)


def test_deadlines_from_the_requested_time(log):
    fixed = {"send": (0, 0), "recv": (0, 0), "deadline_factor": (2, 2)}
    requests = from_log(log, 1, deadline="requested", **fixed)
    assert (requests["deadline"] - requests["time"]).tolist() == [100, 120, 180]
    assert requests.attrs["notes"][-1].startswith("1 jobs without a requested time")
    usual = from_log(log, 1, **fixed)
    assert (usual["deadline"] - usual["time"]).tolist() == [60, 120, 60]
    env = Environment.replay(log, seed=3, domains=2, deadline="requested")
    usual = Environment.replay(log, seed=3, domains=2)
    longer = (env.requests["deadline"] - usual.requests["deadline"]).to_numpy()
    assert (longer > 0).tolist() == [True, False, True]  # 50 s, 60 and 90 for 30, 60 and 30
    with pytest.raises(InputError, match=r"a table has deadlines: see workload.from_log"):
        Environment.replay(requests, deadline="requested")


def test_what_cannot_fit_is_refused_before_it_is_drawn(monkeypatch):
    """Ninety days in steps of 10 s: 1.17 million steps of 40 links, and 0.5 GiB of other users."""
    monkeypatch.setattr("dlsim.given.memory", lambda: 2**29)
    with pytest.raises(InputError, match=r"together cannot fit in memory: at least 0.8\d+ GiB"):
        Environment.replay(sent(0, 90 * 86400))


# ---------------------------------------------------------------- dlsim grid


@pytest.mark.parametrize(("word", "wanted"), [
    ("greedy", Scheduler()), ("deadline", Scheduler("deadline")),
    ("deadline-.5+L", Scheduler("deadline", 0.5, load_correction=True)),
    ("greedy+F2+L", Scheduler(load_correction=True, max_fallbacks=2)),
])  # fmt: skip
def test_names_of_schedulers(word, wanted):
    assert scheduler_of(word) == wanted


def test_the_command_says_what_it_assumed_and_what_came_of_it(log, tmp_path, capsys):
    """Two domains of 1 Mbit/s until 600 s, 1000 from then on, over and over."""
    links, out = tmp_path / "links.csv", tmp_path / "out"
    rows = [f"{k},{t},{1000 if t else 1}" for k in range(8) for t in (0, 600, 1199)]
    links.write_text("\n".join(["link,time,throughput", *rows]))
    words = ["grid", str(log), "--links", str(links), "--trace-step", "600", "--deadline",
             "requested", "--factor", "20", "--schedulers", "greedy,deadline-0.7+L+F",
             "--window", "90min"]  # fmt: skip
    assert main([*words, "--out", str(out)]) == 2
    assert "requests come or are due after" in capsys.readouterr().err
    assert not out.exists()
    assert main([*words, "--out", str(out), "--beyond", "wrap"]) == 0
    said = capsys.readouterr().out
    for sentence in (
        "3 requests, arriving over 1,000 seconds", "20 to 20 times (drawn) the job's requested",
        "note: 1 jobs without a requested time", "in 2 domains", "then begin again",
    ):  # fmt: skip
        assert sentence in said
    table = pd.read_csv(out / "summary.csv", index_col="scheduler")
    assert table.index.tolist() == ["greedy", "deadline-0.7+L+F"]
    for name, row in table.iterrows():
        requests = pd.read_csv(out / f"{name}-requests.csv")
        late = requests["completion"] > requests["deadline"]
        assert (late.mean(), requests["cost"].mean()) == (row["failure rate"], row["cost"])
        assert late.tolist() == requests["missed"].tolist()
    assert (out / "grid.png").read_bytes().startswith(b"\x89PNG")
    assert json.loads((out / "run.json").read_text())["requests"]["deadline"] == "requested"


@pytest.fixture
def crowd(tmp_path):
    """Forty jobs of a minute that come at once; everything that is down until a day is over."""
    lines = [f"{k} 0 0 60 1 -1 -1 1 -1 -1 1 1 1 1 1 1 -1 -1\n" for k in range(40)]
    (tmp_path / "log.swf").write_text("".join(lines))
    rows = [f"{server},0,86400" for server in range(4)]
    (tmp_path / "down.csv").write_text("\n".join(["server,start,end", *rows]))
    return ["grid", str(tmp_path / "log.swf"), "--domains", "1", "--server-load", "0",
            "--schedulers", "greedy", "--out", str(tmp_path / "out")]  # fmt: skip


def test_the_commands_servers_run_many_at_once_or_the_earliest_deadline(crowd, tmp_path, capsys):
    assert main([*crowd, "--slots", "40"]) == 0
    assert "servers: 40 jobs at once each, first come, first served" in capsys.readouterr().out
    table = pd.read_csv(tmp_path / "out" / "greedy-requests.csv")
    assert (table["start"] == table["arrived"]).all()
    assert main([*crowd, "--queue", "edf"]) == 0
    assert "1 jobs at once each, the earliest deadline first" in capsys.readouterr().out
    table = pd.read_csv(tmp_path / "out" / "greedy-requests.csv")
    for one in table.itertuples():
        waiting = table[(table["server"] == one.server) & (table["start"] > one.start)]
        waiting = waiting[waiting["arrived"] < one.start]
        assert (waiting["deadline"] >= one.deadline).all()
    assert (table["start"].rank() != table["arrived"].rank()).any()


@pytest.mark.parametrize(("how", "lost", "after"), [
    ("lose", 1.0, False), ("restart", 0.0, True), ("resubmit", 0.0, True),
])  # fmt: skip
def test_the_commands_servers_fail(crowd, tmp_path, capsys, how, lost, after):
    """What comes on the one day on which all are down is lost, or begins when it is over."""
    assert set(ON_FAILURE) == {"lose", "restart", "resubmit"}
    words = ["--failures", str(tmp_path / "down.csv"), "--on-failure", how]
    assert main([*crowd, *words]) == 0
    assert "failures: 4 of 4 servers (down.csv)" in capsys.readouterr().out
    row = pd.read_csv(tmp_path / "out" / "summary.csv").iloc[0]
    assert (row["lost"], row["failure rate"], row["beyond traces"]) == (lost, 1, float(after))
    table = pd.read_csv(tmp_path / "out" / "greedy-requests.csv")
    assert ((table["start"] >= 86_400) == after).all()
    assert json.loads((tmp_path / "out" / "run.json").read_text())["on_failure"] == how


@pytest.mark.parametrize(("options", "said"), [
    (["--slots", "0"], "--slots must be a whole number in 1..1000000, got 0"),
    (["--on-failure", "lose"], "got no --failures FILE.csv: give one, or leave it out"),
    (["--failures", "FILE"], "down.csv: failures: server of row 3 must be a whole number below 4,"),
])  # fmt: skip
def test_the_commands_servers_refuse(crowd, tmp_path, capsys, options, said):
    (tmp_path / "down.csv").write_text("server,start,end\n0,1,2\n70,3,4\n")
    assert main([*crowd, *(str(tmp_path / "down.csv") if x == "FILE" else x for x in options)]) == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(("options", "said"), [
    (["--schedulers", "edf"], "a scheduler is greedy or deadline"),
    (["--schedulers", "greedy-0.7"], "a scheduler is greedy or deadline"),
    (["--window", "fortnight"], "--window takes a length"),
    (["--window", "2d:3d"], "holds no request; the last of the log comes at 1000 s"),
    (["--factor", "much"], "--factor takes a number"),
])  # fmt: skip
def test_the_command_refuses_what_it_cannot_use(log, tmp_path, capsys, options, said):
    assert main(["grid", str(log), "--out", str(tmp_path / "out"), *options]) == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
