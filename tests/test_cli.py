"""The command line as a person uses it: words in, tables and exit codes out."""

import gzip
import json
import os
import re
import shutil
import signal
import sys

import numpy as np
import pandas as pd
import pytest

from dlsim.cli import main
from dlsim.cli import words as shared
from dlsim.cpugpu import POLICIES as DEVICES
from dlsim.errors import InputError
from dlsim.realtime import POLICIES, Cluster, simulate, workload
from dlsim.steady.engine import METHODS, SUFFIXES
from dlsim.study.notebooks import NotebookResult
from tests.children import alive, marked, none_left, spawn, until


def run(capsys, *words):
    code = main(list(words))
    out = capsys.readouterr()
    return code, out.out, out.err


@pytest.fixture
def tasks_csv(tmp_path):
    # hand case C3 of a batch at time 0, N = 2, Cms = Cps = 1
    path = tmp_path / "tasks.csv"
    path.write_text("arrival,sigma,deadline\n0,6,10\n0,18,64\n0,6,16\n")
    return path


def test_help_is_there_for_every_command(capsys):
    verbs = ("list", "reproduce", "book", "claims", "prove", "simulate", "bench", "lab",
             "solve")  # fmt: skip
    for words in ([], *([verb] for verb in verbs)):
        with pytest.raises(SystemExit) as stop:
            main([*words, "--help"])
        assert stop.value.code == 0
    said = capsys.readouterr().out
    for text in ("examples:", "exit codes:", "--dask ADDRESS", "further options go to jupyter"):
        assert text.lower() in said.lower()


def test_the_bare_command_shows_what_there_is(capsys):
    code, out, err = run(capsys)
    assert (code, out) == (2, "")
    assert "dlsim reproduce " in err
    assert "dlsim lab" in err


def test_list_names_figures_policies_and_readings(capsys):
    code, out, _ = run(capsys, "list")
    assert code == 0
    for word in ("mcdf-fig4", "mcdf-fig10", "EDFANNA", "batch_commit", "replan | commit"):
        assert word in out
    assert "not there" not in out
    assert "without their notebook" not in out
    readings = out.partition("readings (default first)")[2].split("\n\n")[1:]
    listed = {block.split()[0]: block for block in readings}
    assert set(listed) >= {"mcdf", "inserted-idle-time", "steady-state"}
    assert "batch_order" not in listed["steady-state"]
    for line in ("vertex        solver | least_connections", "table2        one | het"):
        assert line in listed["steady-state"]


def test_simulate_csv_gives_the_hand_cases(capsys, tasks_csv, tmp_path):
    out_dir = tmp_path / "out"
    code, out, _ = run(
        capsys, "simulate", "--csv", str(tasks_csv), "--nodes", "2", "--cms", "1", "--cps", "1",
        "--compare", "MCDF,FIFOMN,EDFMN", "--out", str(out_dir), "--chunks",
    )  # fmt: skip
    assert code == 0
    assert "every schedule passed its check" in out
    summary = pd.read_csv(out_dir / "summary.csv", index_col="policy")
    np.testing.assert_allclose(summary["refused"], [1 / 3, 1 / 3, 0])
    mcdf = pd.read_csv(out_dir / "MCDF-tasks.csv")
    assert mcdf["completion"].tolist()[::2] == [8.0, 16.0]
    assert pd.read_csv(out_dir / "EDFMN-chunks.csv").groupby("task")["alpha"].sum().tolist() == (
        pytest.approx([1, 1, 1])
    )
    assert (out_dir / "gantt.png").read_bytes().startswith(b"\x89PNG")


def test_list_names_every_method_of_paper_s(capsys):
    _, out, _ = run(capsys, "list", "policies")
    lines = [line.split() for line in out.partition("methods of")[2].splitlines()[1:]]
    assert [words[0] for words in lines] == [*METHODS, *(f"+{name}" for name in SUFFIXES)]
    assert "(LP, LPR, LPRG, LPRR)" in out


def test_list_by_topic(capsys):
    _, every, _ = run(capsys, "list")
    parts = [run(capsys, "list", topic)[1] for topic in ("figures", "policies", "readings")]
    assert every == "\n".join(parts)
    lines = [line.split(None, 1) for line in parts[1].splitlines() if line.startswith("  ")]
    assert len({name for name, _ in lines}) == len(lines)
    methods = {*METHODS, *(f"+{name}" for name in SUFFIXES)}
    assert {*POLICIES, *DEVICES, *methods} == {name for name, _ in lines}
    code, _, err = run(capsys, "list", "polices")
    assert code == 2
    assert "did you mean policies?" in err


def test_a_word_that_is_nearly_right_is_asked_for(capsys, tasks_csv):
    with pytest.raises(SystemExit):
        main(["simulte"])
    assert "did you mean simulate?" in capsys.readouterr().err
    _, _, err = run(capsys, "simulate", "--csv", str(tasks_csv), "--policy", "edf-exactn")
    assert "did you mean EDF-EXACT-N?" in err
    for words, meant in (
        (["claims", "mcfd"], "mcdf"), (["reproduce", "mdcf"], "mcdf"),
        (["reproduce", "mcdf", "--reading", "link=sharde"], "shared"),
    ):  # fmt: skip
        _, _, err = run(capsys, *words)
        assert f"did you mean {meant}?" in err, words


def test_simulate_negotiates(capsys, tasks_csv):
    words = ["simulate", "--csv", str(tasks_csv), "--nodes", "2", "--cms", "1", "--cps", "1"]
    _, alone, _ = run(capsys, *words, "--policy", "FIFOMN")
    _, both, _ = run(capsys, *words, "--policy", "FIFOMN", "--negotiate", "3.5")
    assert [line.split()[1] for line in alone.splitlines() if "FIFOMN" in line] == ["33.33"]
    # refused, refused work, missed, agreed: one of three tasks took the offer
    assert [line.split()[1:9:2] for line in both.splitlines() if line.startswith("FIFOMN")] == [
        ["0", "0", "0", "33.33"]
    ]


def test_simulate_a_log_says_what_it_skipped(capsys, tmp_path):
    jobs = ["; MaxNodes: 8"]
    for number in range(1, 21):
        seconds = 0 if number == 7 else 50 * number
        jobs.append(f"{number} {60 * number} -1 {seconds} 4 -1 -1 4 -1 -1 1 1 1 1 1 -1 -1 -1")
    path = tmp_path / "log.swf.gz"
    path.write_bytes(gzip.compress("\n".join(jobs).encode()))
    code, out, _ = run(capsys, "simulate", "--swf", str(path), "--nodes", "8", "--policy", "EDFMN")
    assert code == 0
    assert "19 tasks" in out
    assert "skipped 1 jobs" in out
    assert "realised load" in out
    tasks = workload.from_swf(path, Cluster(nodes=8))
    assert f"{100 * simulate(tasks, Cluster(nodes=8), 'EDFMN').reject_ratio:.4g} %" in out
    assert "assumed: a deadline is 1 to 3 times the least time" in out
    _, other, _ = run(capsys, "simulate", "--swf", str(path), "--policy", "EDFMN")
    assert other == out  # the header says how many nodes


def test_simulate_a_paper_is_reproducible(capsys):
    words = ["simulate", "--paper", "mcdf", "--horizon", "50000", "--seed", "3", "--load", "0.3"]
    _, first, _ = run(capsys, *words)
    _, second, _ = run(capsys, *words)
    assert first == second
    assert "nominal 0.3" in first


def test_simulate_paper_i(capsys, tmp_path):
    words = ["simulate", "--paper", "inserted-idle-time", "--load", "0.8", "--horizon", "300000"]
    words += ["--dc-ratio", "4", "--seed", "3", "--policy", "EDFMN", "--out", str(tmp_path)]
    code, out, _ = run(capsys, *words, "--reading", "size=uniform", "--reading", "n_min=code")
    assert code == 0
    cluster = Cluster(nodes=16, cms=1.0, cps=100.0)
    tasks = workload.dcratio(cluster, 0.8, 3e5, 3, dc_ratio=4.0, size="uniform")
    assert f"{len(tasks):,} tasks from paper I" in out
    s = simulate(tasks, cluster, "EDFMN")
    assert f"{100 * s.reject_ratio:.4g} %" in out
    written = pd.read_csv(tmp_path / "EDFMN-tasks.csv", index_col="task")["offer"]
    assert written.dropna().to_dict() == {k: s.offer(k).deadline for k in written.dropna().index}
    never = written.index[written.isna() & ~s.tasks["admitted"]]
    assert [s.offer(task) for task in never] == [None] * len(never)
    record = json.loads((tmp_path / "run.json").read_text())["tasks"]
    assert record["reading"] == {"size": "uniform", "deadline": "clamp", "n_min": "code"}
    assert record["dc_ratio"] == 4.0
    code, _, err = run(capsys, *words, "--reading", "batch=single")
    assert code == 2
    assert "batch" in err


def test_nodes_released_early_are_busy_once(capsys, tmp_path):
    """Node 1 serves till 21 and is sent its share of the next task after; node 2 at 0."""
    tasks = tmp_path / "tasks.csv"
    tasks.write_text("arrival,sigma,deadline\n0,5.25,21\n0,14,54\n")
    words = ["simulate", "--csv", str(tasks), "--policy", "FIFO-EXACT", "--nodes", "2"]
    code, out, _ = run(capsys, *words, "--cms", "1", "--cps", "3")
    assert code == 0
    # 21 on node 1, then both to 38.5: all of 2 x 38.5
    assert out.split("FIFO-EXACT")[1].split("\n")[0].endswith(" 100 %")


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["--policy", "MDCF"], ["MDCF", "MCDF", "EDFANNA"]),
        (["--reading", "lnik=shared"], ["lnik", "link"]),
        (["--reading", "link=both"], ["both", "per_task", "shared"]),
        (["--reading", "shared"], ["shared", "name=value"]),
        (["--reading", "batch=single"], ["batch", "--paper"]),
        (["--reading", "n_min=code"], ["n_min", "--paper"]),
        (["--dc-ratio", "3"], ["--dc-ratio", "--swf", "inserted-idle-time", "--csv"]),
        (["--load", "1"], ["--load", "--paper mcdf", "--csv"]),
        (["--nodes", "0"], ["nodes", "at least 1"]),
        (["--cms", "-1"], ["cms", "-1"]),
        (["--cps", "nan"], ["cps", "nan"]),
        (["--negotiate", "0.5"], ["negotiate", "0.5"]),
    ],
)
def test_bad_words_are_refused_by_name(capsys, tasks_csv, tmp_path, words, named):
    code, _, err = run(
        capsys, "simulate", "--csv", str(tasks_csv), "--out", str(tmp_path / "o"), *words
    )
    assert code == 2
    for word in named:
        assert word in err
    assert not (tmp_path / "o").exists()


def test_broken_files_are_refused_with_line_and_field(capsys, tmp_path):
    path = tmp_path / "tasks.csv"
    path.write_text("arrival,sigma,deadline\n0,6,10\n1,minus,3\n")
    code, _, err = run(capsys, "simulate", "--csv", str(path))
    assert code == 2
    assert "line 3" in err
    assert "sigma" in err
    assert "minus" in err


def test_an_unwritable_output_is_refused(capsys, tasks_csv, tmp_path):
    (tmp_path / "file").touch()
    code, _, err = run(capsys, "simulate", "--csv", str(tasks_csv), "--out", str(tmp_path / "file"))
    assert code == 2
    assert "file" in err


def test_unknown_things_to_reproduce_are_refused(capsys, tmp_path):
    code, _, err = run(capsys, "reproduce", "mdcf", "--out", str(tmp_path / "r"))
    assert code == 2
    assert "did you mean mcdf" in err
    assert "figures that dlsim list prints" in err
    assert not (tmp_path / "r").exists()
    code, _, err = run(capsys, "reproduce", "mcdf-fig44", "--out", str(tmp_path / "r"))
    assert code == 2
    assert "did you mean mcdf-fig4 or " in err
    code, _, err = run(capsys, "reproduce", "mcdf", "--runs", "-1", "--out", str(tmp_path / "r"))
    assert code == 2
    assert "--runs must be a whole number of at least 0 (0: what the scale says), got -1" in err


def test_claims_show_printed_measured_verdict(capsys):
    code, out, _ = run(capsys, "claims", "mcdf")
    assert code == 0
    assert out.count("Measured: ") == 21
    assert "21 claims:" in out
    code, out, _ = run(capsys, "claims", "mcdf", "--json")
    rows = json.loads(out)
    assert (code, len(rows), rows[0]["id"]) == (0, 21, "mcdf-1")
    assert set(rows[0]) >= {"verdict", "points", "measured", "reason"}
    code, _, err = run(capsys, "claims", "mdcf")
    assert code == 2
    assert "mcdf" in err


def test_prove_prints_statuses_and_steps(capsys):
    code, out, _ = run(capsys, "prove", "5.sum", "5.1")
    assert code == 0
    assert "1 proved as printed; 1 refuted" in out
    code, out, _ = run(capsys, "prove", "5.1", "--steps")
    assert code == 0
    assert "5.1       proved" in out
    assert "1 - beta" in out
    assert "\\" not in out  # no LaTeX
    code, _, err = run(capsys, "prove", "5.1a")
    assert "did you mean 5.1" in err
    for words in (["nope"], ["nope", "--steps"]):
        code, _, err = run(capsys, "prove", *words)
        assert code == 2
        assert "'nope'" in err


def test_claims_of_a_run_that_is_not_there(capsys, tmp_path):
    code, _, err = run(capsys, "claims", "mcdf", "--results", str(tmp_path))
    assert code == 2
    assert "dlsim reproduce mcdf" in err


@pytest.mark.parametrize(("status", "code"), [("ok", 0), ("failed", 1), ("interrupted", 130)])
def test_exit_codes_of_reproduce(capsys, tmp_path, monkeypatch, status, code):
    def pretend(names, *, out, **_):
        assert names == ["20-mcdf"]
        out.mkdir()
        return [NotebookResult("20-mcdf", None, status, 1.0, "told")]

    monkeypatch.setattr("dlsim.study.notebooks.run_all", pretend)
    got, out, err = run(capsys, "reproduce", "mcdf-fig4", "--out", str(tmp_path / "r"))
    assert got == code
    assert "report.html" in out.splitlines()[-1]
    assert ("told" in err) == (code != 0)
    assert json.loads((tmp_path / "r" / "run.json").read_text())["notebooks"][0]["status"] == status


def readings_asked(capsys, tmp_path, monkeypatch, *words):
    """Return what each notebook would run with, or what was said instead."""
    asked = {}

    def pretend(names, *, out, readings, **_):
        asked.update(readings)
        out.mkdir()
        return [NotebookResult(name, None, "ok", 1.0) for name in names]

    monkeypatch.setattr("dlsim.study.notebooks.run_all", pretend)
    code, _, err = run(capsys, "reproduce", *words, "--out", str(tmp_path / "r"))
    assert (code == 0) == bool(asked)
    return asked or err


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("steady-state --reading vertex=least_connections",
         {"40-steady-state": {"vertex": "least_connections"}}),
        ("steady-state-fig4b --reading table2=het", {"40-steady-state": {"table2": "het"}}),
        ("mcdf inserted-idle-time --reading link=shared,base=nominal,size=uniform",
         {"20-mcdf": {"link": "shared", "base": "nominal"},
          "30-inserted-idle-time": {"link": "shared", "size": "uniform"}}),
        ("mcdf", {"20-mcdf": {}}),
    ],
)  # fmt: skip
def test_a_notebook_gets_the_switches_of_its_paper(capsys, tmp_path, monkeypatch, words, expected):
    assert readings_asked(capsys, tmp_path, monkeypatch, *words.split()) == expected


def test_a_switch_without_papers_named_reaches_those_that_know_it(capsys, tmp_path, monkeypatch):
    asked = readings_asked(capsys, tmp_path, monkeypatch, "--reading", "link=shared")
    knows = {"20-mcdf", "30-inserted-idle-time"}
    assert {name for name, reading in asked.items() if reading == {"link": "shared"}} == knows
    assert {name for name, reading in asked.items() if not reading} >= {"40-steady-state"}


@pytest.mark.parametrize(
    ("words", "named"),
    [
        ("mcdf --reading vertex=least_connections", ["vertex", "20-mcdf", "batch_order"]),
        ("steady-state --reading link=shared", ["link", "40-steady-state", "vertex"]),
        ("steady-state --reading vertex=shared", ["vertex", "least_connections", "shared"]),
        ("theory --reading link=shared", ["link", "10-theory", "none"]),
        ("--reading lnik=shared", ["lnik", "20-mcdf", "40-steady-state"]),
    ],
)
def test_a_switch_that_no_paper_asked_for_knows(capsys, tmp_path, monkeypatch, words, named):
    said = readings_asked(capsys, tmp_path, monkeypatch, *words.split())
    assert all(word in said for word in named)


def test_options_that_are_no_words(monkeypatch):
    known = {"every": (60.0, 0.5), "drop": (False, True)}
    monkeypatch.setattr(shared, "switches_of", lambda notebook: known)
    got = shared.by_notebook({"every": "60", "drop": "True"}, ["99-other"])
    assert got == {"99-other": {"every": 60.0, "drop": True}}
    with pytest.raises(InputError, match=r"every must be one of 60, 0.5; got '61'"):
        shared.by_notebook({"every": "61"}, ["99-other"])


@pytest.mark.skipif(os.name != "posix", reason="sends a signal")
def test_an_interrupt_ends_quickly_and_leaves_no_process(tmp_path):
    log, run = tmp_path / "log", str(tmp_path)
    command = [sys.executable, "-m", "dlsim", "reproduce", "mcdf", "--out", str(tmp_path / "r")]
    with open(log, "w") as stream:
        process = spawn(command, stdout=stream, stderr=stream, env=marked(run))
    # the command, the notebook's process and its kernel
    assert until(lambda: len(alive(run)) > 2, process), log.read_text()
    process.send_signal(signal.SIGINT)
    process.wait(60)
    assert none_left(run) == []
    out = log.read_text()
    assert process.returncode == 130, out
    assert "resumes" in out
    assert (tmp_path / "r" / "report.html").exists()
    assert not (tmp_path / "r" / "notebooks" / "20-mcdf.ipynb").exists()


def test_long_tables_of_chunks_are_checked_and_written_in_parts(tmp_path, monkeypatch, capsys):
    from dlsim.cli import simulate as command

    words = ["simulate", "--paper", "mcdf", "--nodes", "16", "--policy", "FIFO-DLT", "--chunks"]
    assert main([*words, "--out", str(tmp_path / "whole")]) == 0
    assert "checking" not in capsys.readouterr().err
    monkeypatch.setattr(command, "WINDOW", 10)
    assert main([*words, "--out", str(tmp_path / "parts")]) == 0
    told = capsys.readouterr().err
    assert re.search(r"FIFO-DLT: checking [\d,]+ chunks, some at a time", told)
    one, other = (tmp_path / name / "FIFO-DLT-chunks.csv" for name in ("whole", "parts"))
    assert one.read_bytes() == other.read_bytes()


def test_chunks_that_the_disk_has_no_room_for_are_refused(tmp_path, monkeypatch, capsys):
    from dlsim.cli import simulate as command

    run, done, free = command.simulate, [], []
    monkeypatch.setattr(command, "simulate", lambda *given: done.append(given) or run(*given))
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=free.pop(0)))
    words = ["simulate", "--paper", "inserted-idle-time", "--policy", "FIFO-DLT", "--load", "0.2"]
    words += ["--horizon", "100000", "--out", str(tmp_path / "r" / "s")]
    free.append(0)
    assert main([*words, "--chunks"]) == 2
    assert re.search(r"write [\d,]+ rows at least if all tasks", capsys.readouterr().err)
    assert len(done) == 1  # what compiles: the tasks were not simulated
    free.extend([2**60, 0])
    assert main([*words, "--chunks"]) == 2
    assert re.search(r"write [\d,]+ rows for FIFO-DLT", capsys.readouterr().err)
    assert not (tmp_path / "r").exists()
    assert main(words) == 0  # without the chunks nothing is asked of the disk


@pytest.mark.parametrize("policy", ["MCDF", "FIFO-DLT", "EDF-US", "FIFOANNA", "EDF-UMR-IIT"])
def test_no_schedule_has_fewer_chunks_than_foretold(policy):
    from dlsim.cli.simulate import _least_chunks

    cluster = Cluster(16, 1.0, 100.0)
    tasks = workload.user_split(workload.dcratio(cluster, 0.5, 200_000.0, 1), cluster, 1)
    for negotiate in (0.0, 1.5):
        s = simulate(tasks, cluster, policy, negotiate=negotiate)
        ran = s.tasks["start"].notna()
        assert ran.sum() > 5
        chunks = (s.tasks["nodes"] * s.runs["rounds"])[ran].sum()
        assert 0 < _least_chunks(tasks[ran], cluster, policy, negotiate) <= chunks
