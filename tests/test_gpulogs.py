"""Published logs of GPU clusters: small files in their layouts, written by hand, with quirks."""

import gzip
import json

import pandas as pd
import pytest

from dlsim.cli import main
from dlsim.cpugpu import Machine, simulate, workload
from dlsim.errors import InputError
from dlsim.joblog import read_log

HELIOS = """job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,\
duration,queue
11,uA,vcX,1,4,1,COMPLETED,2020-06-09 18:41:00,2020-06-09 18:41:30,2020-06-09 18:43:10,100,30
12,uB,vcX,16,64,2,FAILED,2020-06-09 18:42:00,2020-06-09 18:42:00,2020-06-09 18:42:50,50,0
13,uB,vcY,0,8,1,COMPLETED,2020-06-09 18:42:10,2020-06-09 18:42:10,2020-06-09 18:43:10,60,0
14,uC,vcY,1,1,1,CANCELLED,2020-06-09 18:40:00,,,,
15,uA,vcY,1,1,1,TIMEOUT,2020-06-09T20:43:00+02:00,,,7.5,
"""
PAI = """j1,tensorflow,1.0,Terminated,1000.0,1600.0,600.0,29.3,50.0,MISC
j2,worker,3.0,Failed,900.0,950.0,400.0,29.3,200.0,V100
j3,ps,2.0,Terminated,1000.0,1100.0,400.0,29.3,,
j4,worker,1.0,Running,1200.0,,400.0,29.3,100.0,T4
j5,worker,1.0,Waiting,,,400.0,29.3,100.0,T4
j6,worker,,Terminated,0.0,50.0,400.0,29.3,100.0,T4
"""


def attempt(start, end, *hosts):
    detail = [{"ip": f"m{i}", "gpus": [f"gpu{g}" for g in range(n)]} for i, n in enumerate(hosts)]
    return {"start_time": start, "end_time": end, "detail": detail}


def job(number, submit, *attempts, status="Pass", user="u1"):
    return {"status": status, "vc": "v", "jobid": f"application_{number}",
            "attempts": list(attempts), "submitted_time": submit, "user": user}  # fmt: skip


PHILLY = [
    job(1, "2017-10-07 01:00:00", attempt("2017-10-07 01:01:00", "2017-10-07 01:02:00", 8),
        attempt("2017-10-07 01:05:00", "2017-10-07 01:11:00", 8, 8)),
    job(2, "2017-10-07 00:59:00", attempt("2017-10-07 00:59:10", "2017-10-07 00:59:40", 1),
        status="Killed", user="u2"),
    job(3, "2017-10-07 02:00:00"),  # never scheduled
    job(4, "2017-10-07 02:00:00", attempt("2017-10-07 02:00:00", None, 1)),  # still runs
    job(5, "2017-10-06T17:00:30-08:00", attempt("None", "2017-10-07 01:00:40", 2),
        attempt("2017-10-07 01:00:50", "2017-10-07 01:01:00", 1), status="Failed"),
]  # fmt: skip


def test_helios(tmp_path):
    path = tmp_path / "cluster_log.csv.gz"
    path.write_bytes(gzip.compress(HELIOS.encode()))
    log = read_log(path)
    assert log.epoch == pd.Timestamp("2020-06-09 18:40", tz="UTC")
    assert log.jobs.index.tolist() == [2, 3, 6]  # lines of the file
    assert log.jobs["submit"].tolist() == [60, 120, 180]  # the last one has a zone
    assert log.jobs["run_time"].tolist() == [100, 50, 7.5]
    assert log.jobs["processors"].tolist() == [1, 16, 1]
    assert log.jobs["wait"].fillna(-1).tolist() == [30, 0, -1]
    assert log.jobs["user"].tolist() == ["uA", "uB", "uA"]
    assert log.jobs["queue"].tolist() == ["vcX", "vcX", "vcY"]
    assert log.nodes == 16
    assert log.skipped == {"run time not above 0": 1, "no processors": 1}
    assert log.notes[0].startswith("3 of 5 jobs failed, were cancelled or did not end")


@pytest.mark.parametrize("head", ["", "job_name,task_name,inst_num,status,start_time,end_time,"
                                  "plan_cpu,plan_mem,plan_gpu,gpu_type\n"])  # fmt: skip
def test_pai_with_and_without_names(tmp_path, head):
    path = tmp_path / "pai_task_table.csv"
    path.write_text(head + PAI)
    log = read_log(path)
    assert log.jobs["submit"].tolist() == [900, 1000]
    assert log.jobs["run_time"].tolist() == [50, 600]
    assert log.jobs["processors"].tolist() == [6, 1]  # 3 instances of 2, and half a GPU
    assert log.jobs["wait"].isna().all()
    assert log.jobs[["group", "queue", "user"]].to_numpy().tolist() == [
        ["worker", "V100", ""], ["tensorflow", "MISC", ""],
    ]  # fmt: skip
    assert log.jobs.index.tolist() == [2 + bool(head), 1 + bool(head)]
    assert log.epoch is None  # its dates are made up
    assert log.skipped == {"no submit time": 2, "run time not above 0": 1, "no processors": 1}
    assert log.notes[0].startswith("3 of 6 jobs")


@pytest.mark.parametrize("name", ["cluster_job_log", "philly.json"])
def test_philly(tmp_path, name):
    (tmp_path / name).write_text(json.dumps(PHILLY))
    log = read_log(tmp_path / name)
    assert log.epoch == pd.Timestamp("2017-10-07 00:59", tz="UTC")
    assert log.jobs.index.tolist() == [2, 1, 5]  # places in the list
    assert log.jobs["submit"].tolist() == [0, 60, 90]
    assert log.jobs["run_time"].tolist() == [30, 600, 10]  # first start to last end
    assert log.jobs["processors"].tolist() == [1, 16, 2]
    assert log.jobs["wait"].tolist() == [10, 60, 20]
    assert log.jobs["user"].tolist() == ["u2", "u1", "u1"]
    assert log.skipped == {"run time not above 0": 2}
    assert log.notes[0].startswith("2 of 5 jobs")


def test_fields_of_others_stand_in_nobodys_way(tmp_path):
    """As in the log of image generation that others published in Philly's layout."""
    extra = {"predict_type": "TXT_2_IMG", "exec_time_seconds": 32.0}
    mine = job(1, "2024-11-15 16:57:50", attempt("2024-11-15 16:57:55", "2024-11-15 16:58:27", 4))
    (tmp_path / "cluster_job_log").write_text(json.dumps([mine | extra]))
    jobs = read_log(tmp_path / "cluster_job_log").jobs
    assert jobs[["wait", "run_time", "processors"]].values.tolist() == [[5.0, 32.0, 4.0]]


@pytest.mark.parametrize(("name", "text", "message"), [
    ("a.csv", HELIOS.replace("11,uA,vcX,1,", "11,uA,vcX,one,"),
     r"a.csv, line 2, field gpu_num: must be a finite number of at least 0, got 'one'"),
    ("a.csv", HELIOS.replace("2020-06-09 18:42:10", "June"),
     r"line 4, field submit: must be seconds or an ISO date such as .*, got 'June'"),
    ("a.csv", HELIOS.replace(",duration,", ",length,"), r"line 1, field duration: no such column"),
    ("a.csv", HELIOS.replace(",60,0\n", ",60\n"), r"line 4: 11 fields instead of 12"),
    ("pai_task_table.csv", PAI.replace("j2,worker,3.0", "j2,worker,-3"),
     r"line 2, field inst_num: must be a finite number of at least 0, or blank, got '-3'"),
    ("pai_task_table.csv", "j1,worker,1.0\n", r"line 1: 3 fields instead of 10 \(job_name"),
    ("pai_job_table.csv", "j1,i1,u1,Terminated,1.0,2.0\n", "line 1, field submit: no such column"),
    ("cluster_job_log", "[{]", "cluster_job_log, line 1: not valid JSON"),
    ("a.json", '{"jobs": []}', "the document must be a list"),
    ("a.json", "[3]", "job 1: must be a table of fields, got 3"),
    ("a.json", '[{"attempts": []}]', "job 1: status is missing; it needs status, vc, jobid"),
    ("a.json", json.dumps([PHILLY[0], job(2, "7 October")]),
     r"job 2: submitted_time must be a date such as .*, got '7 October'"),
    ("a.json", json.dumps([job(1, "2017-10-07", attempt(5, None, 1))]),
     r"job 1, attempt 1: start_time must be a date .*, got 5"),
    ("a.json", json.dumps([job(1, "2017-10-07", {"start_time": None, "end_time": None})]),
     "job 1, attempt 1: detail is missing"),
    ("a.json", "[]", "no job below the first line"),
])  # fmt: skip
def test_another_layout_is_refused_by_its_place(tmp_path, name, text, message):
    (tmp_path / name).write_text(text)
    with pytest.raises(InputError, match=message):
        read_log(tmp_path / name)


def test_jobs_of_one_gpu_are_jobs_of_paper_c(tmp_path, capsys):
    path = tmp_path / "cluster_log.csv"
    path.write_text(HELIOS)
    jobs = workload.from_log(path, "gpuheavy", seed=3)
    assert jobs["app"].tolist() == ["uA", "uA"]
    assert jobs["arrival"].tolist() == [0, 120]
    assert jobs["gpu_time"].tolist() == [100, 7.5]
    gain = jobs["cpu_time"] / jobs["gpu_time"]  # one application, one gain
    assert gain.iloc[0] == pytest.approx(gain.iloc[1])
    assert 5 <= gain.iloc[0] <= 50
    assert jobs.attrs["skipped"]["several processors"] == 1
    other = workload.from_log(path, "gpuheavy", seed=3, base="cpu")
    assert other["cpu_time"].tolist() == [100, 7.5]
    assert (other["cpu_time"] / other["gpu_time"]).tolist() == pytest.approx(gain.tolist())
    simulate(jobs, Machine(), "history").check()
    words = ["live", "simulate", "--log", str(path), "--mix", "gpuheavy", "--policy", "mct"]
    assert main([*words, "--jobs", "1"]) == 0
    assert "1 jobs of 1 applications" in capsys.readouterr().out
    assert main([*words, "--csv", "a.csv"]) == 2
    assert "--csv and --log cannot be combined" in capsys.readouterr().err
    assert main(["live", "simulate", "--log", str(path), "--mix", "lees"]) == 2
    assert "lee" in capsys.readouterr().err


def test_a_log_of_wide_jobs_alone_is_refused(tmp_path):
    path = tmp_path / "jobs.csv"
    path.write_text("submit,run_time,processors\n0,5,2\n")
    with pytest.raises(InputError, match="no job ran on one processor alone; take another log"):
        workload.from_log(path)
