"""What an operator reads out of a job log: numbers by hand, by brute force, or by an oracle."""

import gzip
import json
import random

import numpy as np
import pandas as pd
import pytest

from dlsim.advice import Terms, advise
from dlsim.advice.page import assumptions, draw, duration, findings, percent, times
from dlsim.advice.questions import in_window, jain, tasks_of
from dlsim.cli import main
from dlsim.cli.advise import seconds_of
from dlsim.errors import InputError
from dlsim.joblog import read_log
from dlsim.realtime import Cluster, Reading, simulate, workload
from tests.scale import SCALE
from tests.strategies import ROWS_I, seeded_for

HEADER = """; Version: 2.2
; Computer: Abacus
; MaxProcs: 4
; UnixStartTime: 1000000000
; TimeZoneString: Europe/Paris
; Queue: 0 interactive
; Queue: 1 night shift
"""


def line(job, submit, wait, run, processors, asked=-1, requested=-1, status=1, user=1, queue=1):
    tail = (requested, -1, status, user, -1, -1, queue, -1, -1, -1)
    return " ".join(map(str, (job, submit, wait, run, processors, -1, -1, asked, *tail)))


JOBS = [
    line(1, 0, 0, 10, 3, user=7), line(2, 1, 9, 5, 4, user=7), line(3, 2, 0, 8, 1, queue=0),
    line(4, 3, 12, 8, -1, asked=1), line(5, 4, -1, 0, 1), line(6, 5, -1, 9, 1, status=3),
    line(7, 6, -1, 9, 5), line(8, -1, -1, 9, 1),
]  # fmt: skip


@pytest.fixture
def log(tmp_path):
    path = tmp_path / "abacus.swf.gz"
    path.write_bytes(gzip.compress((HEADER + "\n".join(JOBS) + "\n").encode()))
    return path


def test_a_log_with_its_header(log):
    read = read_log(log)
    assert read.nodes == 4
    assert read.epoch == pd.Timestamp("2001-09-09 03:46:40", tz="Europe/Paris")
    assert read.jobs.index.tolist() == [1, 2, 3, 4]
    assert read.jobs["processors"].tolist() == [3, 4, 1, 1]
    assert read.jobs["queue"].tolist() == ["night shift"] * 2 + ["interactive", "night shift"]
    assert read.jobs["user"].tolist() == ["7", "7", "1", "1"]
    assert read.skipped == {
        "run time not above 0": 1, "part of a job (status 2, 3 or 4)": 1, "no submit time": 1,
        "wider than the machine (4), or out of range": 1,
    }  # fmt: skip


@pytest.mark.parametrize(("header", "nodes", "zone"), [
    ("; MaxNodes: 6\n; UnixStartTime: 86400\n; TimeZone: -3600\n", 6, "-01:00"),
    ("; MaxProcs: unknown\n; UnixStartTime: 86400\n; TimeZoneString: Atlantis/Main\n", 4, "+00:00"),
    ("; MaxProcs: 8 (2 x 4)\n; UnixStartTime: 0\n", 8, None),
    ("; MaxProcs: 99999999999999999999\n; UnixStartTime: never\n", 4, None),
    (";maxprocs : 6\n; UNIXSTARTTIME: 86400\n; timezone:3600\n", 6, "+01:00"),
    ("", 4, None), ("; MaxProcs: 1,024\n; UnixStartTime: 1e9\n", 4, None),
    ("; UnixStartTime: 8589934592000\n", 4, None),
])  # fmt: skip
def test_headers_of_every_kind(tmp_path, header, nodes, zone):
    (tmp_path / "odd.swf").write_text(header + "\n".join(JOBS[:3]) + "\n")
    read = read_log(tmp_path / "odd.swf")
    assert read.nodes == nodes
    assert (read.epoch.isoformat()[-6:] if read.epoch else None) == zone


def test_a_csv_log_with_dates(tmp_path):
    path = tmp_path / "jobs.csv"
    path.write_text(
        "submit,run_time,processors,wait,user\n2026-03-01 10:00,60,2,0,ann\n"
        "2026-03-01T10:05:00,30,1,,bob\n2026-03-02,30,1,5,ann\n"
    )
    read = read_log(path)
    assert read.jobs["submit"].tolist() == [0, 300, 50_400]
    assert read.epoch == pd.Timestamp("2026-03-01 10:00", tz="UTC")
    assert read.jobs["user"].tolist() == ["ann", "bob", "ann"]
    assert read.jobs["wait"].isna().tolist() == [False, True, False]
    assert read.jobs.index.name == "line"
    assert read.jobs.index.tolist() == [2, 3, 4]
    path.write_text("submit,run_time,processors\n2026-03-01,60,2\n\nsoon,60,2\n")
    with pytest.raises(InputError, match=r"line 4, field submit: .*ISO date.*'soon'"):
        read_log(path)
    with pytest.raises(InputError, match=r"ends in .swf, .gwf or .csv"):
        read_log(tmp_path / "jobs.txt")


def test_a_csv_log_of_a_spreadsheet(tmp_path):
    path = tmp_path / "jobs.csv"
    path.write_text("submit;run_time;processors\n0,5;60,25;2\n;5;1\n1;;1\n2;5;\n3;5;1e9\n")
    read = read_log(path)
    assert read.jobs[["submit", "run_time"]].to_numpy().tolist() == [[0.5, 60.25]]
    assert read.nodes == 2
    assert read.skipped == {
        "no submit time": 1, "run time not above 0": 1, "no processors": 1,
        "wider than the machine (2), or out of range": 1,
    }  # fmt: skip


def test_seconds_of_1970_are_dates_and_dates_beyond_a_calendar_are_none(tmp_path):
    path = tmp_path / "odd.swf"
    path.write_text("\n".join(line(7, at, -1, 9, 1) for at in (1_000_000_060, 1e9)) + "\n")
    read = read_log(path)
    assert read.date(read.jobs["submit"].iloc[0]) == "2001-09-09 01:46 UTC"
    assert read.jobs.index.tolist() == [2, 1]  # of the file, where job numbers tell nothing
    path.write_text(f"; UnixStartTime: 86400\n{line(1, 0, -1, 9, 1)}\n{line(2, 1e10, 0, 9, 1)}\n")
    read = read_log(path)
    assert read.epoch is None
    assert "not shown" in read.notes[-1]
    assert all(findings(advise(read, Terms(policies=["FIFOMN"]))))


def test_a_machine_smaller_than_every_job_is_named(tmp_path):
    path = tmp_path / "odd.swf"
    path.write_text(f"; MaxProcs: 3\n{line(1, 0, -1, 9, 4)}\n")
    with pytest.raises(InputError, match=r"wider than the machine \(3\), or out of range: 1"):
        read_log(path)


def test_deadlines_of_what_the_log_does_not_say(log, tmp_path):
    with pytest.raises(InputError, match="does not say the time its user requested"):
        advise(read_log(log), Terms(deadline="requested"))
    path = tmp_path / "part.swf"
    path.write_text(
        HEADER + "\n".join([line(1, 0, 0.1, 10.3, 3), line(2, 61.37, -1, 7.7, 1)]) + "\n"
    )
    a = advise(read_log(path), Terms(deadline="response", laxity=1, policies=["EDFAN"]))
    assert a.policies.loc["log", "in_time"] == 1  # whatever floats make of the sums
    assert any("Of 1 jobs the log does not say it" in text for text in assumptions(a))


def test_the_rigid_baselines_are_those_of_the_hand_case(log):
    """As in test_rigid: EASY lets job 3 pass, which ends before job 2 could start."""
    jobs = advise(read_log(log), Terms(cms=0, policies=["FIFOMN"])).jobs
    assert jobs["fcfs"].tolist() == [0, 10, 15, 15]
    assert jobs["easy"].tolist() == [0, 10, 2, 15]
    assert jobs["log"].tolist() == [0, 10, 2, 15]


def test_divisible_by_hand(log):
    """Without transmission a job takes its work over the nodes; laxity 1: on its own processors.

    Job 1 (30 on 3) runs 0-10, job 3 (8) on the fourth node 2-10. Job 2 (20, due at 6) and
    job 4 (8, due at 11) find too few nodes: 2 would end at 15, 4 at 12 on all four.
    """
    a = advise(read_log(log), Terms(cms=0, laxity=1, policies=["FIFOMN"]))
    assert a.jobs["admitted"].tolist() == [True, False, True, False]
    assert a.jobs["nodes"].tolist() == [3, 0, 1, 0]
    assert a.jobs["completion"].tolist()[::2] == [10, 10]
    assert a.jobs["promise"].tolist()[1] == pytest.approx(14)  # all four from 10 on: until 15
    assert a.policies.loc["FIFOMN", ["admitted", "admitted_work"]].tolist() == [0.5, 38 / 66]
    assert a.policies.loc["easy", "in_time"] == 0.5
    assert a.policies.loc["log", "mean_wait"] == 21 / 4
    assert a.users.loc["7", ["jobs", "admitted", "work"]].tolist() == [2, 0.5, 50]
    assert a.queues.loc["interactive", "admitted"] == 1


def drawn(count, seed, nodes=16):
    source = np.random.default_rng(seed)
    rows = [
        line(k + 1, int(at), -1, int(source.integers(1, 500)), int(source.integers(1, nodes + 1)))
        for k, at in enumerate(np.sort(source.integers(0, 60 * count, count)))
    ]
    return f"; MaxProcs: {nodes}\n" + "\n".join(rows) + "\n"


@pytest.fixture(scope="module")
def larger(tmp_path_factory):
    path = tmp_path_factory.mktemp("log") / "drawn.swf"
    path.write_text(drawn(300, 5))
    return read_log(path)


def test_fewest_nodes_against_every_number_of_nodes(larger):
    terms = Terms(policies=["EDF-OPR-MN", "FIFOAN"], target=0.8)
    a = advise(larger, terms)
    tasks = tasks_of(larger, Cluster(16, 0.001, 1.0), terms)
    for policy in terms.policies:
        needed = a.needed(policy)
        share = {
            n: simulate(tasks, Cluster(n, 0.001, 1), policy).tasks["admitted"].mean()
            for n in (needed - 1, needed)
        }
        assert share[needed] >= 0.8 > share[needed - 1], policy


def test_promises_are_kept_and_nothing_shorter_would_be(larger):
    a = advise(larger, Terms(policies=["EDF-DLT"]))
    tasks = tasks_of(larger, a.cluster, a.terms)
    some = a.refused.index[:: max(1, len(a.refused) // 6)]
    assert len(some) > 3
    for job in some:
        for factor, admitted in ((1.0, True), (0.999, False)):
            asked = tasks["deadline"].where(tasks.index != job, a.jobs.loc[job, "promise"] * factor)
            s = simulate(tasks.assign(deadline=asked), a.cluster, "EDF-DLT")
            assert s.tasks.loc[job, "admitted"] == admitted


@pytest.mark.parametrize("policy", ["MCDF", "EDFMN", "FIFOMN", "EDFAN"])
@pytest.mark.parametrize("reading", ["order_when=each_tk", "link=shared", "order_when=once"])
def test_all_offers_at_once_of_paper_m(policy, reading):
    cluster = Cluster(10, 10.0, 10.0, 1.0, 1.0)
    tasks = workload.mcdf(cluster, 2.5, seed=3, horizon=60_000)
    s = simulate(tasks, cluster, policy, Reading.of(dict([reading.split("=")])))
    offers = s.offers()
    assert len(offers) > 5
    for task, row in offers.iterrows():
        one = s.offer(task)
        assert (one is None) == np.isnan(row["deadline"])
        if one is not None:
            assert row["deadline"] == one.deadline
            assert row[["nodes", "start"]].tolist() == [one.nodes, one.start]


@pytest.mark.parametrize("policy", ROWS_I)
def test_all_offers_at_once_are_those_made_one_by_one(policy):
    found = 0
    for k in range(round(30 * SCALE)):
        _, instance, reading = seeded_for(policy, ("all offers", k))
        s = instance.simulate(policy, reading | {"split": "all"})
        offers = s.offers()
        assert offers.index.tolist() == s.tasks.index[~s.tasks["admitted"]].tolist()
        for task, row in offers.iterrows():
            one = s.offer(task)
            assert (one is None) == np.isnan(row["deadline"])
            if one is not None:
                found += 1
                assert row["deadline"] == one.deadline, (policy, reading, instance, task)
                assert row[["nodes", "start"]].tolist() == [one.nodes, one.start]
    assert SCALE < 1 or found > 5


def test_the_busiest_window_has_most_work(larger):
    jobs, long = larger.jobs, 3600.0
    best = in_window(larger, busiest=long).jobs
    work = jobs["run_time"] * jobs["processors"]
    at = jobs["submit"]
    most = max(work[(at >= t) & (at < t + long)].sum() for t in at)
    assert (best["run_time"] * best["processors"]).sum() == most
    assert best["submit"].max() - best["submit"].min() < long
    assert in_window(larger, 100, 5000).jobs["submit"].between(100, 4999.9).all()
    with pytest.raises(InputError, match="no job of the log"):
        in_window(larger, 1e9)
    with pytest.raises(InputError, match="busiest must be"):
        in_window(larger, busiest=0)


def test_a_warm_up_runs_and_does_not_count(larger):
    plain, warm = (advise(larger, Terms(policies=["EDF-DLT"], warm_up=w)) for w in (0.0, 4000.0))
    pd.testing.assert_series_equal(plain.jobs["admitted"], warm.jobs["admitted"])
    late = larger.jobs["submit"] - larger.jobs["submit"].iloc[0] >= 4000
    assert warm.policies.loc["EDF-DLT", "admitted"] == plain.jobs.loc[late, "admitted"].mean()
    assert warm.users["jobs"].sum() == late.sum()


def test_queue_and_load_over_time_by_counting(larger):
    a = advise(larger, Terms(policies=["EDF-DLT"]))
    step = 3600.0
    for row in a.days.itertuples():
        inside = larger.jobs["submit"].between(row.begins, row.begins + step, inclusive="left")
        assert row.jobs == inside.sum()
        work = (larger.jobs["run_time"] * larger.jobs["processors"])[inside].sum()
        assert row.load == pytest.approx(work / (16 * step))
        waits = (larger.jobs["submit"] <= row.begins) & (a.jobs["easy"] > row.begins)
        assert row.waiting_easy == waits.sum()


def test_one_job_and_nobody_unknown(tmp_path):
    path = tmp_path / "one.csv"
    path.write_text("submit,run_time,processors,user\n0,60,1,ann\n")
    said = draw(advise(read_log(path), Terms(policies=["EDFAN"])))["time"][2]
    assert said.startswith("Steps of 60 min")
    path.write_text("submit,run_time,processors,user\n" + "0,60,1,\n0,60,1,ann\n0,60,1,bob\n")
    said = findings(advise(read_log(path), Terms(policies=["EDFAN"])))[-1]
    assert said.startswith("Of 2 users")


def test_jain():
    assert jain([1, 1, 1]) == 1
    assert jain([1, 0, 0, 0]) == 0.25
    assert np.isnan(jain([0, 0]))


@pytest.mark.parametrize(("wrong", "message"), [
    ({"laxity": 0}, "laxity must be"), ({"deadline": "soon"}, "deadline must be one of"),
    ({"policies": ["FIFOANNA"]}, "makes no promise"), ({"target": 2}, "target must be"),
    ({"policies": ()}, "policies must name one or more"), ({"policy": "EDFXX"}, "policy"),
    ({"warm_up": 1e9}, "warm-up"),
])  # fmt: skip
def test_what_cannot_be_asked_is_refused(larger, wrong, message):
    with pytest.raises(InputError, match=message):
        advise(larger, Terms(**wrong))


def test_words():
    assert [times(x) for x in (0.997, 1.0004, 1, 2.5)] == [
        "0.997",
        "hardly more than 1",
        "1",
        "2.5",
    ]
    assert [percent(x) for x in (0, 1, 0.5, 0.99996, 0.976, 1 - 1e-8)] == [
        "0 %", "100 %", "50 %", "99.996 %", "97.6 %", "over 99.999 %",
    ]  # fmt: skip
    assert [duration(x) for x in (8, 150, 7200, 200_000)] == ["8 s", "2.5 min", "2 h", "2.31 days"]


def test_the_command_writes_the_page_and_its_tables(log, tmp_path, capsys):
    out = tmp_path / "advice"
    options = ["--compare", "EDF-DLT,FIFOAN", "--from", "2001-09-09", "--laxity", "1.5"]
    assert main(["advise", str(log), "--out", str(out), *options]) == 0
    said = capsys.readouterr().out
    assert "4 jobs of 2 users, 2001-09-09 03:46 CEST to" in said
    page = (out / "advice.html").read_text("utf-8")
    assert page.count("data:image/png") == 4
    assert "http" not in page
    terms = Terms(laxity=1.5, policies=["EDF-DLT", "FIFOAN"])
    assert all(sentence in said for sentence in findings(advise(read_log(log), terms)))
    jobs = pd.read_csv(out / "jobs.csv")
    assert "Jobs left out: run time not above 0: 1, " in said
    assert pd.read_csv(out / "days.csv")["date"].tolist() == ["2001-09-09 03:46 CEST"]
    assert jobs["promise"].notna().sum() == (~jobs["admitted"]).sum()
    record = json.loads((out / "run.json").read_text())
    assert (record["laxity"], record["begin"], record["target"]) == (1.5, "2001-09-09", 0.95)


@pytest.mark.parametrize(("text", "seconds"), [("36h", 129_600), ("2 Days", 172_800), ("s", 1)])
def test_lengths_of_time(text, seconds):
    assert seconds_of("--busiest", text) == seconds


@pytest.mark.parametrize(("options", "message"), [
    (["--busiest", "fortnight"], "--busiest takes a length"),
    (["--from", "2001-13-01"], "--from takes a date"), (["--to", "soon"], "--to takes a date"),
    (["--to", "2000-01-01"], "it has jobs from 2001-09-09 03:46 CEST to"),
    (["--compare", "edf-dlx"], "edf-dlx"),
])  # fmt: skip
def test_the_command_refuses_and_writes_nothing(log, tmp_path, capsys, options, message):
    out = tmp_path / "advice"
    assert main(["advise", str(log), "--out", str(out), *options]) == 2
    assert message in capsys.readouterr().err
    assert not out.exists()


def test_random_logs_are_advised_on(tmp_path):
    source = random.Random(11)
    for k in range(round(6 * SCALE)):
        path = tmp_path / f"log-{k}.swf"
        path.write_text(drawn(source.randint(1, 40), k, source.randint(1, 9)))
        a = advise(read_log(path), Terms(laxity=source.choice([0.7, 1, 4]), cms=0.01))
        admitted = a.jobs[a.jobs["admitted"]]
        due = admitted["submit"] + admitted["deadline"]
        assert (admitted["completion"] <= due * (1 + 1e-9)).all()
        assert (admitted["nodes"] >= 1).all()
        assert all(findings(a))


def test_where_many_wait_some_of_the_refused_are_asked(tmp_path, monkeypatch):
    """One in three is told what it would be told among all; the sentence says so."""
    path = tmp_path / "busy.swf"
    path.write_text(drawn(300, 5, nodes=4))
    terms = Terms(policies=["EDF-DLT"], laxity=8)
    every = advise(read_log(path), terms)
    assert every.every == 1
    away = every.refused
    assert len(away) > 30
    tasks = tasks_of(read_log(path), every.cluster, terms)
    waited = 0  # who was admitted, had come and had not begun, when one was refused
    for now in tasks["arrival"][away.index]:
        there = every.jobs["admitted"] & (tasks["arrival"] <= now)
        waited += (1 + (there & (every.jobs["start"] > now)).sum()) ** 2
    monkeypatch.setattr("dlsim.realtime.outcome.MOST_TESTS", waited / 2.5)
    some = advise(read_log(path), terms)
    assert some.every == 3
    assert some.refused.index.tolist() == away.index.tolist()
    told = some.refused["asked"]
    assert told.tolist() == [k % 3 == 0 for k in range(len(away))]
    assert some.refused["promise"][told].equals(away["promise"][told])
    assert some.refused["promise"][~told].isna().all()
    assert f"one in 3 of them is asked, {told.sum()} in all; " in findings(some)[2]
    assert "none at all" not in findings(some)[2]
