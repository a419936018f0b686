"""What 65-your-log shows: its cells, run in one namespace, against numbers worked elsewhere."""

import html
from pathlib import Path

import nbformat
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dlsim.errors import InputError
from dlsim.joblog import SACCT_COMMAND
from tests.scale import scale_count
from tests.test_joblog_swf import line
from tests.verification.executed import in_one_space

NOTEBOOK = Path(__file__).parents[2] / "notebooks" / "65-your-log.ipynb"


def run(folder, text="", name="log.swf", **given):
    """Run the notebook on a log; return the names that its cells leave, and what they show."""
    if text:
        (folder / name).write_text(text)
        given["log"] = str(folder / name)
    return in_one_space(NOTEBOOK, folder, {"out": str(folder / "results"), **given})


@pytest.fixture(scope="module")
def example(tmp_path_factory):
    """The notebook on its example."""
    return run(tmp_path_factory.mktemp("log"))


def conclusions(seen):
    return seen[1]["log-15 said"] + html.unescape(" ".join(seen[0]["lines"]))


def test_the_example_was_made_by_easy(example):
    """Its header says so: our EASY repeats every wait of the log, and FCFS does not."""
    names, _ = example
    logged = names["job_table"]["wait"]
    assert names["waits"]["EASY, rigid jobs"].tolist() == logged.tolist()
    assert (names["waits"]["FCFS, rigid jobs"] != logged).any()


def test_one_count_and_one_deadline_on_the_whole_page(example):
    names, shown = example
    promises, comparison = names["promises"], names["comparison"]
    own = promises.query("processors == 32").set_index("factor")["jobs"]
    said = comparison.query("scheduler == 'promised, divisible jobs'").set_index("factor")[
        "in_time"
    ]
    assert own.to_dict() == said.to_dict()
    answers = shown["log-11"]["jobs"]
    assert answers.sum() == len(names["job_table"]) == 230
    assert answers["promised"] == round(230 * own[2])
    assert names["by_user"]["refused"].sum() == 230 - answers["promised"]
    assert f"On 32 processors {answers['promised']} of 230 jobs" in conclusions(example)
    at_two = comparison.query("factor == 2").set_index("scheduler")["in_time"]
    for scheduler, wait in names["waits"].items():  # the deadline holds the wait in it
        done = (wait + names["job_table"]["run_time"]) / names["job_table"]["run_time"]
        assert at_two[scheduler] == (done <= 2 * (1 + 1e-12)).mean()


def test_the_load_is_the_work_of_each_step(example):
    names, _ = example
    table = pd.read_csv(names["results"].folder / "data" / "your-log-load.csv")
    assert table["step"].is_unique
    seconds = table["load"].sum() * names["step"] * 32
    assert seconds == pytest.approx(names["work"].sum())


def test_a_log_whose_submit_times_are_start_times_is_not_compared(tmp_path):
    head = "; MaxProcs: 4\n; Note: the given submit\n;       times are actually start times\n"
    seen = run(tmp_path, head + "\n".join(line(k, 10 * k, -1, 30, 1) for k in range(9)))
    assert seen[0]["comparison"] is None
    assert "No comparison" in seen[1]["log-13 said"]
    assert "no comparison with FCFS or EASY: the submit times of this log are" in conclusions(seen)
    assert not list((tmp_path / "results").rglob("*comparison*"))


def test_an_estimated_size_is_said_and_can_be_set(tmp_path):
    text = "submit,wait,run_time,processors,user\n"
    text += "".join(f"{k},0,3600,1,u{k % 5}\n" for k in range(100))
    seen = run(tmp_path, text, "log.csv")
    assert seen[0]["size"] == 100
    assert "estimate from below: 100 is the least that the log shows" in conclusions(seen)
    seen = run(tmp_path, text, "log.csv", nodes=160)
    assert seen[0]["size"] == 160
    assert "estimate" not in conclusions(seen)


def test_more_processors_in_use_than_stated_are_a_note_with_its_consequence(tmp_path):
    text = "; MaxProcs: 2\n" + "\n".join(line(k, 0, 0, 60, 1) for k in range(3))
    seen = run(tmp_path, text)
    note = "3 processors were in use at once, more than the 2 of the header, so that the header or "
    assert note + "the times are not exact; all numbers are for 2 processors" in conclusions(seen)
    assert "`-p nodes 3` computes them for 3" in conclusions(seen)
    assert ", as logged: 100.0%" in conclusions(seen)
    seen = run(tmp_path, text, nodes=1)
    assert "3 processors were in use at once, more than the 1 given; all" in conclusions(seen)
    assert "as logged, on at least 3 processors: 100.0%" in conclusions(seen)


def test_the_page_names_files_without_their_folders(tmp_path):
    seen = run(tmp_path, "submit,run_time,processors\n0,60,4\n", "log.csv")
    facts = seen[0]["facts"]
    assert facts["log"] == "log.csv"
    assert facts["load"] == "1.00 times what 4 processors can do"
    assert str(tmp_path) not in conclusions(seen) + str(facts)


def test_why_jobs_are_refused(tmp_path):
    """Three jobs come at once; on one processor only the first can be promised."""
    text = "submit,run_time,processors,user\n0,60,1,a\n0,60,1,b\n0,60,1,b\n"
    seen = run(tmp_path, text, "log.csv", nodes=1, factors=[1.5])
    held = "2 jobs are refused, all because earlier promises hold the processors; most refusals: "
    assert held + "user b (2 of 2 jobs)." in conclusions(seen)
    seen = run(tmp_path, text, "log.csv", nodes=1, factors=[0.5])
    late = "they would be late even on the empty machine"
    assert f"3 jobs are refused, all because {late}; most" in conclusions(seen)
    text = text.replace("0,60,1,a", "0,60,4,a")  # in half a minute it needs eight processors
    seen = run(tmp_path, text, "log.csv", nodes=4, factors=[0.5])
    reasons = f"1 because earlier promises hold the processors, 1 because {late}"
    assert f"2 jobs are refused: {reasons}; most refusals: user" in conclusions(seen)
    seen = run(tmp_path, text, "log.csv", nodes=100)
    assert "No jobs are refused." in conclusions(seen)


@pytest.mark.parametrize(
    ("enough_from", "answer"),
    [(1, (1, 0)), (3, (3, 2)), (8, (8, 7)), (29, (29, 28)), (96, (96, 95)), (97, None)],
)
def test_the_least_that_is_enough_is_found_below_between_and_above_what_was_tried(
    example, enough_from, answer
):
    found = example[0]["least_enough"]([12, 6, 8], lambda number: float(number >= enough_from))
    assert found == answer


def test_the_answers_that_are_searched_for(example):
    names, _ = example
    enough, too_few = names["enough_processors"]
    assert enough == too_few + 1
    assert names["promise"](2, enough).mean() >= 0.95 > names["promise"](2, too_few).mean()
    percent, too_tight = names["enough_time"]
    assert too_tight < percent <= 1.005 * too_tight + 1
    on_32 = [names["promise"](value / 100, 32).mean() for value in (percent, too_tight)]
    assert on_32[0] >= 0.95 > on_32[1]
    assert (
        f"To promise that to 95 % of the jobs takes {enough} processors; {too_few} p"
        in conclusions(example)
    )
    assert f"to 95 % of the jobs is {percent / 100:g} times" in conclusions(example)


def test_jobs_wider_than_the_machine_are_left_out_after_the_size_is_known(tmp_path):
    text = "submit,run_time,processors\n0,60,4\n1,60,9\n2,0,1\n"
    seen = run(tmp_path, text, "log.csv")
    assert (seen[0]["size"], len(seen[0]["job_table"])) == (9, 2)
    seen = run(tmp_path, text, "log.csv", nodes=8)
    assert len(seen[0]["job_table"]) == 1
    assert "1 jobs left out: wider than the machine (8)" in conclusions(seen)
    assert "1 jobs left out: run time not above 0" in conclusions(seen)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("submit\trun_time\tprocessors\n0\t60\t1\n", "separated by tabs"),
        ("submit,run_time\n0,60\n", "field processors: no such column"),
        ("submit,run_time,processors\n0,60,1.5\n", "line 2, field processors"),
        ("submit,run_time,processors\n0,one hour,1\n", "line 2, field run_time"),
    ],
)
def test_a_table_that_is_no_log_is_refused_by_line_and_field(tmp_path, text, message):
    with pytest.raises(InputError, match=message):
        run(tmp_path, text, "log.csv")


def test_the_accounting_of_slurm_is_read_and_what_is_left_out_is_said(tmp_path):
    header = "JobID|User|Partition|State|Submit|Start|End|ElapsedRaw|TimelimitRaw|AllocTRES\n"
    day = "2025-05-01T00:"
    text = header + (
        f"1|ann|gpu|COMPLETED|{day}00:00|{day}00:00|{day}10:00|600|20|cpu=8,gres/gpu=4\n"
        f"2|bob|gpu|RUNNING|{day}05:00|{day}05:00|Unknown|900|20|cpu=8,gres/gpu=4\n"
        f"3|bob|cpu|COMPLETED|{day}06:00|{day}06:00|{day}07:00|60|20|cpu=64\n"
    )
    seen = run(tmp_path, text, "sacct.txt", count="gpus", queue="gpu")
    table = seen[0]["job_table"]
    assert table[["submit", "run_time", "processors"]].to_numpy().tolist() == [[0, 600, 4]]
    assert "1 jobs left out: still running" in conclusions(seen)
    assert "gpus are counted in place of processors" in conclusions(seen)


def test_the_page_prints_the_command_that_exports_the_accounting():
    cells = nbformat.read(NOTEBOOK, as_version=4).cells
    assert any(f"```\n{SACCT_COMMAND}\n```" in cell.source for cell in cells)


def test_unknown_columns_are_named_and_read_only_over_if_the_user_says_so(tmp_path):
    text = "submit,run_time,processors,user_node,weight\n0,60,1,7,abc\n"
    with pytest.raises(InputError, match=r"not known: user_node, weight; .* known are submit, "):
        run(tmp_path, text, "log.csv")
    with pytest.raises(InputError, match=r"not known: user_node; "):
        run(tmp_path, text, "log.csv", ignore=["weight"])
    seen = run(tmp_path, text, "log.csv", ignore=["weight", "user_node"])
    assert seen[0]["job_table"]["run_time"].tolist() == [60]


def test_a_spreadsheet_shows_a_users_name_as_text(tmp_path):
    users = ["=1+1", "+a", "-a", "@a", "ann"]
    lines = [f"0,{60 * (5 - k)},1,{user}" for k, user in enumerate(users)]
    seen = run(tmp_path, "submit,run_time,processors,user\n" + "\n".join(lines), "log.csv")
    table = pd.read_csv(seen[0]["results"].folder / "data" / "your-log-users.csv")
    assert table["user"].tolist() == ["'=1+1", "'+a", "'-a", "'@a", "ann"]


def test_the_same_log_gives_the_same_answer_twice_and_in_both_formats(tmp_path):
    rng = np.random.default_rng(1)
    jobs = [(10 * k, int(rng.integers(30, 90)), int(rng.integers(1, 4))) for k in range(20)]
    swf = "; MaxProcs: 4\n" + "\n".join(
        line(k, submit, 0, run_time, width) for k, (submit, run_time, width) in enumerate(jobs)
    )
    table = "submit,wait,run_time,processors,user\n" + "\n".join(
        f"{submit},0,{run_time},{width},1" for submit, run_time, width in jobs
    )
    answers = []
    for folder, text, name in (("a", swf, "log.swf"), ("b", swf, "log.swf"), ("c", table, "l.csv")):
        (tmp_path / folder).mkdir()
        seen = run(tmp_path / folder, text, name, nodes=4)
        answers.append([one for one in seen[0]["lines"] if not one.startswith("Note")])
        answers.append(seen[0]["promises"].to_csv())
    assert answers[:2] == answers[2:4] == answers[4:]


# ----------------------------------------------------------- rigid schedulers, against a twin

RIGID = pd.DataFrame(
    {
        "submit": [0, 1, 2, 3, 4],
        "run_time": [10, 5, 8, 9, 2],
        "processors": [3, 4, 1, 1, 1],
        "estimate": np.nan,
    }
)


def test_rigid_schedulers_by_hand(example):
    """Four processors. Job 1 needs all of them: from 10 on, in which job 2 fits before, 3 not."""
    start = example[0]["start_rigid"]
    assert start(RIGID, 4, False).tolist() == [0, 10, 15, 15, 15]
    assert start(RIGID, 4, True).tolist() == [0, 10, 2, 15, 15]
    longer = RIGID.assign(estimate=[10, 5, 9, 9, 2])  # job 2 might end at 11: too late
    assert start(longer, 4, True).tolist() == [0, 10, 15, 15, 4]


def second_by_second(table, size, backfill):
    """Return the starts by deciding at every whole second: a plain twin of the notebook's."""
    rows = list(table.itertuples(index=False))
    starts = [None] * len(rows)

    def in_use(at, now):
        """Processors in use at a time, as planned at `now` with the estimates."""
        return sum(
            row.processors
            for row, start in zip(rows, starts, strict=True)
            if start is not None
            and now < start + row.run_time
            and start <= at < start + row.estimate
        )

    for now in range(int(table["submit"].max() + table["run_time"].sum()) + 1):
        blocked, promised = None, now
        for job, row in enumerate(rows):
            if starts[job] is not None or row.submit > now:
                continue
            fits = in_use(now, now) + row.processors <= size
            if blocked is None and fits:
                starts[job] = now
            elif blocked is None:
                blocked = row
                while in_use(promised, now) + blocked.processors > size:
                    promised += 1
            elif backfill and fits:
                starts[job] = now
                if in_use(promised, now) + blocked.processors > size:  # breaks the promise
                    starts[job] = None
    return starts


@st.composite
def rigid_jobs(draw):
    """Draw a small machine and jobs for it, in whole seconds."""
    size = draw(st.integers(1, 5))
    job = st.tuples(st.integers(0, 12), st.integers(1, 6), st.integers(1, size), st.integers(0, 4))
    jobs = draw(st.lists(job, min_size=1, max_size=8))
    table = pd.DataFrame(sorted(jobs), columns=["submit", "run_time", "processors", "more"])
    return size, table.assign(estimate=table["run_time"] + table["more"])


@settings(max_examples=scale_count(100, least=20), deadline=None)
@given(rigid_jobs(), st.booleans(), st.sampled_from([1, 2, 3, 4096]))
def test_rigid_schedulers_are_those_of_the_definition(example, drawn, backfill, block):
    size, table = drawn
    example[0]["BLOCK"] = block  # waiting jobs that are looked at together
    starts = example[0]["start_rigid"](table, size, backfill)
    assert starts.tolist() == second_by_second(table, size, backfill)
