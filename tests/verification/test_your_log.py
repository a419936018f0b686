"""What 65-your-log shows: its cells, run in one namespace, against numbers worked elsewhere."""

import html
import json
import subprocess
import sys
from pathlib import Path

import nbformat
import numpy as np
import pandas as pd
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from dlsim.errors import InputError
from dlsim.joblog import SACCT_COMMAND
from dlsim.realtime import Cluster, simulate
from tests.helpers import slurm_exports
from tests.helpers.scale import scale_count
from tests.joblog.test_swf import line
from tests.verification.executed import in_one_space

NOTEBOOK = Path(__file__).parents[2] / "notebooks" / "65-your-log.ipynb"


def run(folder, text="", name="log.swf", **given):
    """Run the notebook on a log; return the names that its cells leave, and what they show.

    Unless others are given, one policy is tried.
    """
    if text:
        (folder / name).write_text(text)
        given["log"] = str(folder / name)
    usual = {"out": str(folder / "results"), "jobs": 1, "policy": ["EDF-OPR-MN"]}
    return in_one_space(NOTEBOOK, folder, usual | given)


@pytest.fixture(scope="module")
def example(tmp_path_factory):
    """The notebook on its example, with the policies that it tries unless others are given."""
    policies = ["EDF-OPR-MN", "EDFMN", "MCDF", "EDF-EXACT-N"]
    return run(tmp_path_factory.mktemp("log"), policy=policies)


def conclusions(seen):
    return seen[1]["log-15 said"] + html.unescape(" ".join(seen[0]["lines"]))


def share_of_jobs(names, policy, factor, processors):
    """Return the share of jobs that the engine admits, without what the page does about it."""
    table = names["job_table"]
    tasks = pd.DataFrame(
        {
            "arrival": table["submit"],
            "sigma": 1.0 * table["processors"] * table["run_time"],
            "deadline": factor * table["run_time"],
        }
    )
    return simulate(tasks, Cluster(processors, 0.001, 1.0), policy).tasks["admitted"].mean()


def test_the_example_was_made_by_easy(example):
    """Its header says so: our EASY repeats every wait of the log, and FCFS does not."""
    names, _ = example
    logged = names["job_table"]["wait"].tolist()
    assert names["wait_rigid"](names["loads"], True).tolist() == logged
    assert names["wait_rigid"](names["loads"], False).tolist() != logged


def test_one_count_and_one_deadline_on_the_whole_page(example):
    names, shown = example
    promises, comparison = names["promises"], names["comparison"]
    own = promises.query("processors == 32 and policy == @names['best']")
    own = own.set_index("factor")["jobs"]
    said = comparison.query("scheduler == @names['promised']").set_index("factor")["in_time"]
    assert own.to_dict() == said.to_dict()
    answers = shown["log-11"]["jobs"]
    assert answers.sum() == len(names["job_table"]) == 230
    assert answers["promised"] == round(230 * own[2])
    assert names["by_user"]["refused"].sum() == 230 - answers["promised"]
    assert f"On 32 processors {answers['promised']} of 230 jobs" in conclusions(example)
    at_two = comparison.query("factor == 2").set_index("scheduler")["in_time"]
    waits = {
        "FCFS, rigid jobs": names["wait_rigid"](names["loads"], False).to_numpy(),
        "EASY, rigid jobs": names["wait_rigid"](names["loads"], True).to_numpy(),
        "as logged": names["job_table"]["wait"],
    }
    assert {*waits, names["promised"]} == {*at_two.index}
    for scheduler, wait in waits.items():  # the deadline holds the wait in it
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


def test_the_page_names_files_without_their_folders(tmp_path):
    seen = run(tmp_path, "submit,run_time,processors\n0,60,4\n", "log.csv")
    facts = seen[0]["facts"]
    assert facts["log"] == "log.csv"
    assert facts["load"] == "all jobs were submitted at once"
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


def test_the_least_that_is_enough_is_found_below_between_and_above_what_was_tried(example):
    names = example[0]
    for enough_from in (1, 3, 8, 29, 96, 97):
        least = dict.fromkeys(names["rules"], np.inf)
        least |= {"EDFMN": 2 * enough_from, "MCDF": enough_from}

        def enough_at(number, policies, least=least):
            return tuple(name for name in policies if number >= least[name])

        wanted = (enough_from, enough_from - 1, "MCDF") if enough_from < 97 else None
        assert names["least_enough"]([12, 6, 8], enough_at) == wanted


def test_the_answers_that_are_searched_for(example):
    names, _ = example
    enough, too_few, policy = names["enough_processors"]
    assert enough == too_few + 1
    shares = [share_of_jobs(names, policy, 2, value) for value in (enough, too_few)]
    assert shares[0] >= 0.95 > shares[1]
    percent, too_tight, policy_in_time = names["enough_time"]
    assert too_tight < percent <= 1.005 * too_tight + 1
    shares = [share_of_jobs(names, policy_in_time, v / 100, 32) for v in (percent, too_tight)]
    assert shares[0] >= 0.95 > shares[1]


def test_the_page_prints_the_command_that_exports_the_accounting():
    cells = nbformat.read(NOTEBOOK, as_version=4).cells
    assert any(f"```\n{SACCT_COMMAND}\n```" in cell.source for cell in cells)


def test_a_spreadsheet_shows_a_users_name_as_text(tmp_path):
    users = ["=1+1", "+a", "-a", "@a", "ann"]
    lines = [f"0,{60 * (5 - k)},1,{user}" for k, user in enumerate(users)]
    seen = run(tmp_path, "submit,run_time,processors,user\n" + "\n".join(lines), "log.csv")
    table = pd.read_csv(seen[0]["results"].folder / "data" / "your-log-users.csv")
    assert table["user"].tolist() == ["'=1+1", "'+a", "'-a", "'@a", "ann"]


def test_the_best_of_several_policies_is_named(example):
    names = example[0]
    cells = nbformat.read(NOTEBOOK, as_version=4).cells
    assert f"policy: list = {json.dumps([*names['rules']])}" in cells[2].source
    shares = {name: share_of_jobs(names, name, 2, 32) for name in names["rules"]}
    assert names["at_usual"]["jobs"].to_dict() == shares
    assert names["best"] == max(shares, key=shares.get)
    assert f"the policy is {names['best']} (the best; " in conclusions(example)
    assert len(names["promises"]) == 4 * (6 + 6 - 1)  # a machine, or a deadline, is the usual one


def test_what_promises_nothing_is_no_policy_of_the_page(tmp_path):
    with pytest.raises(InputError, match="EDFANNA refuses no job and promises nothing"):
        run(tmp_path, policy=["EDFANNA"])


# ------------------------------------------------------------------ load, far jobs, users

JOBS = "submit,run_time,processors\n" + "".join(f"{600 * k},600,2\n" for k in range(201))


@pytest.mark.parametrize("nodes", [4, 2, 1])
def test_the_load_is_that_of_the_time_in_which_jobs_were_submitted(tmp_path, nodes):
    """Of 2 processors for 600 s each 600 s; the work of the last job lies behind that time."""
    text = JOBS.replace("600,2", f"600,{min(nodes, 2)}")
    seen = run(tmp_path, text, "log.csv", nodes=nodes)
    load = min(nodes, 2) / nodes * 201 / 200
    assert seen[0]["load_of_all"] == pytest.approx(load)
    assert ("no scheduler can do all of it" in seen[0]["lines"][0]) == (load > 1)


def test_jobs_far_from_all_others_get_a_note_that_cuts_them_off(tmp_path):
    """Of 201 jobs at most 2 are fewer than a hundredth."""
    old = 2
    head, *lines = JOBS.splitlines()
    early = [f"{1000 * k},600,2" for k in range(old)]
    late = [f"{int(line.split(',')[0]) + 9_000_000}{line[line.index(',') :]}" for line in lines]
    seen = run(tmp_path, "\n".join([head, *early, *late]), "log.csv", nodes=2)
    assert f"Note: the first {old} of {201 + old} jobs take up 99% of the time" in conclusions(seen)
    assert "`-p since 9000000` leaves them out" in conclusions(seen)
    seen = run(tmp_path, "\n".join([head, *early, *late]), "log.csv", nodes=2, since="9000000")
    assert seen[0]["load_of_all"] == pytest.approx(201 / 200)
    assert f"Note: {old} jobs left out: submitted before 9000000." in conclusions(seen)
    assert "take up" not in conclusions(seen)
    ahead = [f"{9_000_000 + 1000 * k},600,2" for k in range(old)]
    seen = run(tmp_path, "\n".join([head, *lines, *ahead]), "log.csv", nodes=2)
    assert f"Note: the last {old} of {201 + old} jobs take up 99%" in conclusions(seen)
    assert "`-p until 120001` leaves them out" in conclusions(seen)
    seen = run(tmp_path, "\n".join([head, *lines, *ahead]), "log.csv", nodes=2, until="120001")
    assert (len(seen[0]["job_table"]), "take up" in conclusions(seen)) == (201, False)


def test_the_note_on_a_log_with_dates_says_since_as_a_date(tmp_path):
    """104 days, 4 hours and 10 minutes from New Year in UTC on, in summer time of Berlin."""
    head = "; MaxProcs: 2\n; UnixStartTime: 1735689600\n; TimeZoneString: Europe/Berlin\n"
    lines = [line(0, 0, 0, 600, 2), *(line(k, 9e6 + 600 * k, 0, 600, 2) for k in range(1, 202))]
    seen = run(tmp_path, head + "\n".join(lines))
    assert "`-p since 2025-04-15T06:10:00` leaves them out" in conclusions(seen)
    seen = run(tmp_path, head + "\n".join(lines), since="2025-04-15T06:10:00")
    assert len(seen[0]["job_table"]) == 201


def test_a_log_without_users_has_no_line_on_users_and_an_unknown_one_is_no_person(tmp_path):
    text = "submit,run_time,processors\n0,60,1\n0,60,1\n0,60,1\n"
    seen = run(tmp_path, text, "log.csv", nodes=1, factors=[1.5])
    assert "user" not in conclusions(seen)
    assert seen[0]["heaviest"] is None
    assert not list((tmp_path / "results").rglob("*users*"))
    text = "submit,run_time,processors,user\n0,60,1,\n0,60,1,\n0,60,1,ann\n"
    seen = run(tmp_path, text, "log.csv", nodes=1, factors=[1.5])
    assert "2 jobs are refused" in conclusions(seen)
    assert "most refusals: user ann (1 of 1 jobs)." in conclusions(seen)
    assert seen[0]["by_user"].index.tolist() == ["ann"]


# ------------------------------------------------------------------ what is refused at once


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("log: nothing.csv", "nothing.csv: cannot be read"),
        ("log: wrong.csv", "wrong.csv: line 1: columns that are not known: weigth; "),
        ("{log: right.csv, since: soon}", "since must be a date such as 2025-03-01 or "),
        ("sample: 2", "sample must be 0 (the whole log) or a number of days of at least 4, got 2"),
    ],
)
def test_what_cannot_be_used_is_refused_before_anything_slow_is_imported(tmp_path, given, message):
    """The cells up to the first that computes, as papermill injects the file of parameters."""
    (tmp_path / "wrong.csv").write_text("submit,run_time,processors,weigth\n0,60,1,2\n")
    (tmp_path / "right.csv").write_text("submit,run_time,processors\n0,60,1\n")
    cells = nbformat.read(NOTEBOOK, as_version=4).cells
    ids = [cell.id for cell in cells]
    code = [cell.source for cell in cells[: ids.index("log-02b") + 1] if cell.cell_type == "code"]
    names = "\n".join(f"{name} = {value!r}" for name, value in yaml.safe_load(given).items())
    slow = "[n for n in ('scipy', 'numba', 'matplotlib', 'dlsim.realtime') if n in sys.modules]"
    script = "\n".join([*code[:-1], names, "import sys", "try:"])
    script += f"\n exec({code[-1]!r})\nexcept Exception as error:\n print(error)\n print({slow})"
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    said, imported = done.stdout.splitlines()[-2:]
    assert message in said
    assert imported == "[]"


# ------------------------------------------------------------------ an export, and the truth


@pytest.mark.parametrize(("count", "size"), [("processors", 200 * 64), ("gpus", 200 * 4)])
def test_an_export_promises_what_the_true_jobs_promise(tmp_path, count, size):
    """A cluster of 200 nodes whose jobs a script knows, and its export with all that is no job."""
    text, used, skipped = slurm_exports.whole_cluster(5)
    (tmp_path / "export").mkdir()
    (tmp_path / "clean").mkdir()
    policies = {"policy": ["EDF-OPR-MN", "MCDF"], "nodes": size, "factors": [1.5, 2, 5]}
    since = {"since": "2025-03-20", "count": count}
    export = run(tmp_path / "export", text, "sacct.txt", **policies, **since)
    true = slurm_exports.clean(used, count)
    true = true.assign(estimate=true["estimate"].fillna(-1)).to_csv(index=False)
    clean = run(tmp_path / "clean", true, "log.csv", **policies)
    for name in ("promises", "answers", "comparison", "by_user"):
        pd.testing.assert_frame_equal(export[0][name], clean[0][name])
    assert 0 < export[0]["promises"]["jobs"].min() < export[0]["promises"]["jobs"].max()
    assert export[0]["load_of_all"] == clean[0]["load_of_all"]
    told = [line for line in export[0]["lines"] if not line.startswith("Note")]
    assert told == [line for line in clean[0]["lines"] if not line.startswith("Note")]
    notes = conclusions(export)
    for reason, number in skipped.items():
        assert f"{number} jobs left out: {reason}" in notes
    assert "lines have the JobID of an earlier job" in notes
    assert count == "gpus" or "1 jobs left out: submitted before 2025-03-20" in notes


# ------------------------------------------------------------------ a sample of days


def long_log(days, seed=3):
    """Return a log of jobs of about an hour, busier in the middle of each week."""
    rng = np.random.default_rng(seed)
    lines = ["submit,run_time,processors,user"]
    for day in range(days):
        number = int(rng.poisson(40 + 30 * (day % 7 in (2, 3))))
        for at in np.sort(rng.integers(0, 86400, number)):
            width, run_time = 2 ** rng.integers(0, 5), rng.integers(60, 9000)
            lines.append(f"{86400 * day + at},{run_time},{width},u{rng.integers(5)}")
    return "\n".join(lines) + "\n"


def test_a_sample_estimates_what_the_whole_log_says(tmp_path):
    """The interval of 95 % has the share of all jobs in it (a wrong one would by luck)."""
    text = long_log(120)
    whole = run(tmp_path, text, "log.csv", nodes=16, policy=["EDF-OPR-MN"], factors=[2, 5])
    seen = run(
        tmp_path, text, "log.csv", nodes=16, policy=["EDF-OPR-MN"], factors=[2, 5], sample=40
    )
    of_all, of_sample = whole[0]["here"]["jobs"], seen[0]["here"]
    assert (of_sample["low"] < of_all).all()
    assert (of_all < of_sample["high"]).all()
    assert (of_sample["high"] - of_sample["low"]).max() < 0.1
    assert "about " in conclusions(seen)
    assert "estimates from 40 days of the log, drawn at random" in conclusions(seen)
    weights = seen[0]["loads"]["weight"]
    assert weights.sum() == pytest.approx(len(whole[0]["job_table"]), rel=0.05)


def test_a_sample_of_all_days_is_the_whole_log(tmp_path):
    seen = run(tmp_path, long_log(5), "log.csv", nodes=16, policy=["EDF-OPR-MN"], sample=9)
    assert seen[0]["sample"] == 0
    assert "estimates" not in conclusions(seen)


def test_the_interval_of_a_sample_is_cochrans(example):
    """By hand: two strata of 4 and 6 days; shares of jobs 3/4, 1/2 and 1/5, 2/5."""
    names = example[0]
    held = names["loads"], names["sample"]
    done = [1, 1, 1, 0, 1, 0, 1, 0, 0, 0, 0, 1, 1, 0, 0, 0]
    days = [1] * 4 + [2] * 2 + [3] * 5 + [4] * 5
    strata = [0] * 6 + [1] * 10
    loads = pd.DataFrame({"stratum": strata, "day": days})
    names["loads"], names["sample"] = loads.assign(weight=[2.0] * 6 + [3.0] * 10), 4
    try:
        found = names["estimate_share"](np.array(done), 1)
    finally:
        names["loads"], names["sample"] = held
    share = (2 * 4 + 3 * 3) / (2 * 6 + 3 * 10)
    first = [3 - 4 * share, 1 - 2 * share]
    second = [1 - 5 * share, 2 - 5 * share]
    variance = 0.0
    for days_of, pair in ((4, first), (6, second)):
        spread = (pair[0] - pair[1]) ** 2 / 2
        variance += days_of**2 * (1 - 2 / days_of) * spread / 2
    half = 4.302652729911275 * np.sqrt(variance) / 42  # of Student's t with 2 degrees of freedom
    assert found["share"] == pytest.approx(share)
    assert found["low"] == pytest.approx(max(0, share - half))
    assert found["high"] == pytest.approx(min(1, share + half))


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
