"""The accounting of Slurm: every kind of export is read, or refused with the command to use."""

from datetime import UTC, datetime

import pandas as pd
import pytest

from dlsim import joblog
from dlsim.errors import InputError
from dlsim.joblog import SACCT_COMMAND, read_log, slurm
from tests.helpers import slurm_exports
from tests.helpers.slurm_exports import LINES, clean

EXPORTS = {
    "as asked": (slurm_exports.as_asked, "processors"),
    "with steps": (slurm_exports.with_steps, "processors"),
    "put together": (slurm_exports.put_together, "gpus"),
}
HEADER = "JobID|User|Partition|State|Submit|Start|End|ElapsedRaw|AllocCPUS|NNodes|TimelimitRaw"
JOB = (
    "1|ann|cpu|COMPLETED|2025-05-01T00:30:00|2025-05-01T00:30:10|2025-05-01T01:30:10|3600|64|2|120"
)
DAY = pd.Timestamp("2025-05-01T00:30:00", tz="UTC")


def read(folder, *lines, **more):
    """Read an export of these lines."""
    path = folder / "export.txt"
    path.write_text("\n".join(lines) + "\n", "utf-8")
    return read_log(path, **more)


def changed(**fields):
    """Return the line `JOB` with other fields."""
    names = HEADER.split("|")
    return "|".join({**dict(zip(names, JOB.split("|"), strict=True)), **fields}.values())


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", EXPORTS)
def test_an_export_is_read_as_the_script_knows_its_jobs(tmp_path, name, seed):
    make, count = EXPORTS[name]
    text, used, skipped = make(seed)
    assert text.count("\n") >= LINES
    assert min(skipped.values()) > 0
    log = read(tmp_path, text.rstrip("\n"), count=count)
    expected = clean(used, count)
    pd.testing.assert_frame_equal(log.jobs.reset_index(drop=True), expected, check_dtype=False)
    assert log.skipped == skipped
    first = min(job["submit"] for job in used if job[count])
    assert log.epoch == pd.Timestamp(first, unit="s", tz="UTC")
    # the same jobs as a table are the same log
    expected.assign(estimate=expected["estimate"].fillna(-1)).to_csv(
        tmp_path / "log.csv", index=False
    )
    table = read_log(tmp_path / "log.csv")
    pd.testing.assert_frame_equal(table.jobs.reset_index(drop=True), expected, check_dtype=False)
    assert table.nodes == log.nodes == log.in_use


# --- the command ---


def test_the_command_has_every_column_that_is_read_and_what_makes_a_log_whole(tmp_path):
    words = SACCT_COMMAND.split()
    assert words[:2] == ["TZ=UTC", "sacct"]
    assert {"-a", "-X", "--parsable2", "-S", "-E"} <= set(words)
    asked = words[words.index("-o") + 1].split(",")
    assert {"State", "End", "NNodes", "AllocTRES", "TimelimitRaw", "JobID"} <= set(asked)
    assert not [names for names in slurm.SACCT_COLUMNS.values() if not set(names) & set(asked)]
    # an export with just these columns is read without a note on what it lacks
    fields = {
        "JobID": 1, "User": "ann", "Group": "g", "Partition": "cpu", "State": "COMPLETED",
        "Submit": "2025-05-01T00:30:00", "Start": "2025-05-01T00:30:10",
        "End": "2025-05-01T01:30:10", "ElapsedRaw": 3600, "TimelimitRaw": 120, "AllocCPUS": 64,
        "NNodes": 2, "AllocTRES": "cpu=64,gres/gpu=4,node=2",
    }  # fmt: skip
    line = "|".join(str(fields[name]) for name in asked)
    for count, size in (("processors", 64), ("gpus", 4), ("nodes", 2)):
        log = read(tmp_path, "|".join(asked), line, count=count)
        assert (log.nodes, log.skipped) == (size, {})
        assert log.notes == [f"{count} are counted in place of processors"] * (size < 64)
        row = [0, 10, 3600, size, 7200, "ann", "g", "cpu"]
        assert log.jobs.iloc[0].tolist() == row


# --- states, steps, times, limits, counts: row by row ---


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"State": "RUNNING", "End": "Unknown"}, "still running"),
        ({"State": "RUNNING"}, "still running"),  # sacct -T writes the end of its window
        ({"State": "SUSPENDED", "End": "Unknown"}, "still running"),
        ({"State": "COMPLETING", "End": "Unknown"}, "still running"),
        ({"State": "COMPLETED", "End": "Unknown"}, "still running"),
        ({"State": "PENDING", "Start": "Unknown", "End": "Unknown"}, slurm_exports.WAITING),
        ({"State": "CANCELLED by 7", "Start": "None"}, slurm_exports.WAITING),
        ({"JobID": "1.batch"}, "step of a job"),
        ({"JobID": "1_7.0"}, "step of a job"),
        ({"JobID": "1+1.extern", "State": "RUNNING"}, "step of a job"),
        ({"Submit": "Unknown"}, "no submit time"),
        ({"Submit": "01/05/25 00:30"}, "no submit time"),
        ({"Submit": "2025-05-01T00:31:00"}, "started before it was submitted"),
        ({"ElapsedRaw": "0"}, "run time not above 0"),
        ({"ElapsedRaw": "-5"}, "run time not above 0"),
        ({"ElapsedRaw": "inf"}, "run time not above 0"),
        ({"ElapsedRaw": "9" * 400}, "run time not above 0"),
        ({"AllocCPUS": "0"}, "no processors"),
        ({"AllocCPUS": ""}, "no processors"),
        ({"AllocCPUS": "many"}, "no processors"),
        ({"AllocCPUS": "9" * 12}, "more than 1,000,000,000 processors"),
        ({"AllocCPUS": "1.5"}, "processors not a whole number"),
        ({"User": "a|b"}, "line without the 11 fields of its header"),
        ({"User": "a\nb"}, "line without the 11 fields of its header"),
        ({"User": "a\0b"}, "line without the 11 fields of its header"),
        ({"User": "a\rb"}, "line without the 11 fields of its header"),
        ({}, "line that comes again"),
    ],
)
def test_a_job_that_cannot_be_used_is_left_out_and_counted(tmp_path, fields, reason):
    fields = {"JobID": "2", **fields} if fields else {}
    log = read(tmp_path, HEADER, JOB, changed(**fields))
    assert log.skipped == {reason: 1 + ("\n" in fields.get("User", ""))}
    assert log.jobs["run_time"].tolist() == [3600]
    assert (log.nodes, log.epoch) == (64, DAY)
    if reason in ("line that comes again", "line without the 11 fields of its header"):
        return
    remedy = r"export it again: TZ=UTC sacct"
    with pytest.raises(InputError, match=rf"export\.txt: no job that could be .*: 1\); {remedy}"):
        read(tmp_path, HEADER, changed(**fields))


@pytest.mark.parametrize(
    "state",
    ["COMPLETED", "FAILED", "TIMEOUT", "CANCELLED by 1000", "NODE_FAIL", "PREEMPTED", "REQUEUED"],
)
def test_a_job_that_has_ended_counts_however_it_ended(tmp_path, state):
    log = read(tmp_path, HEADER, changed(State=state))
    assert (len(log.jobs), log.skipped) == (1, {})


def test_running_jobs_cut_at_the_export_are_not_in_the_log(tmp_path):
    """Of 64-processor jobs an hour apart the later half runs still: the rest needs 3 x 64."""
    lines = []
    for hour in range(10):
        start, end = f"2025-05-01T{hour:02d}:00:00", f"2025-05-01T{hour + 3:02d}:00:00"
        runs = {"State": "RUNNING", "End": "Unknown", "ElapsedRaw": "60"} if hour >= 5 else {}
        times = {"Submit": start, "Start": start, "End": end, "ElapsedRaw": "10800"}
        lines.append(changed(JobID=str(hour), **{**times, **runs}))
    log = read(tmp_path, HEADER, *lines)
    assert log.skipped == {"still running": 5}
    assert log.jobs["run_time"].tolist() == [10800] * 5
    assert log.nodes == 192


@pytest.mark.parametrize(
    ("submit", "start", "end"),
    [
        ("1746059400", "1746059410", "1746063010"),  # SLURM_TIME_FORMAT=%s
        ("2025-05-01T02:30:00+0200", "2025-05-01T00:30:10Z", "2025-05-01T01:30:10+00:00"),
        ("2025-05-01 00:30:00", "2025-04-30T19:30:10-0500", "2025-05-01T03:30:10+02:00"),
        ("2025-05-01T00:30:00Z", "1746059410", "2025-05-01T01:30:10"),
    ],
)
def test_every_way_to_write_a_date_is_the_same_instant(tmp_path, submit, start, end):
    assert datetime.fromtimestamp(1746059400, UTC).isoformat() == "2025-05-01T00:30:00+00:00"
    waits = changed(State="PENDING", Submit=submit, Start="Unknown", End="Unknown", JobID="2")
    log = read(tmp_path, HEADER, changed(Submit=submit, Start=start, End=end), waits)
    assert log.jobs[["submit", "wait", "run_time"]].iloc[0].tolist() == [0, 10, 3600]
    assert (log.epoch, log.notes) == (DAY, [])


@pytest.mark.parametrize(
    ("name", "text", "seconds"),
    [
        ("TimelimitRaw", "120", 7200), ("TimelimitRaw", "UNLIMITED", None),
        ("TimelimitRaw", "Partition_Limit", None), ("TimelimitRaw", "", None),
        ("TimelimitRaw", "0", None), ("Timelimit", "1-02:00:00", 93600),
        ("Timelimit", "02:30:00", 9000), ("Timelimit", "30:00", 1800),
        ("Timelimit", "2-12", 216000),
        ("Timelimit", "UNLIMITED", None), ("Timelimit", "Partition_Limit", None),
        ("Timelimit", "INVALID", None), ("Timelimit", "365-00:00:00", 31536000),
    ],
)  # fmt: skip
def test_a_time_limit_is_the_estimate(tmp_path, name, text, seconds):
    log = read(tmp_path, HEADER.replace("TimelimitRaw", name), changed(TimelimitRaw=text))
    estimate = log.jobs["estimate"].iloc[0]
    assert estimate == seconds or (seconds is None and pd.isna(estimate))


@pytest.mark.parametrize(
    ("text", "seconds"), [("1-01:00:00", 90000), ("00:00:05", 5), ("01:02.500", 62.5)]
)
def test_elapsed_is_read_where_elapsed_raw_is_missing(tmp_path, text, seconds):
    log = read(tmp_path, HEADER.replace("ElapsedRaw", "Elapsed"), changed(ElapsedRaw=text))
    assert log.jobs["run_time"].tolist() == [seconds]
    log = read(tmp_path, HEADER.replace("ElapsedRaw", "Other"), changed(ElapsedRaw=text))
    assert log.jobs["run_time"].tolist() == [3600]  # from Start to End


@pytest.mark.parametrize(
    ("resources", "gpus"),
    [
        ("billing=8,cpu=8,gres/gpu:a100=4,gres/gpu=4,mem=64G,node=1", 4),
        ("cpu=8,gres/gpu:a100=1,gres/gpu:h100=2,node=1", 3),
        ("gres/gpu=1,gres/gpumem=40G,gres/gpuutil=99", 1),
        ("cpu=8,gres/shard=4,node=1", None), ("", None), ("cpu=8", None), ("gres/gpu", None),
    ],
)  # fmt: skip
def test_gpus_are_counted_by_their_resource(tmp_path, resources, gpus):
    lines = [f"{HEADER}|AllocTRES", f"{JOB}|cpu=1,gres/gpu=1", f"{changed(JobID='2')}|{resources}"]
    log = read(tmp_path, *lines, count="gpus")
    assert log.jobs["processors"].tolist() == [1] + [gpus] * bool(gpus)
    assert log.skipped == ({} if gpus else {"no gpus": 1})
    assert "gpus are counted in place of processors" in log.notes


def test_nodes_and_processors_are_counted_by_their_columns_or_by_allocated_resources(tmp_path):
    assert read(tmp_path, HEADER, JOB, count="nodes").nodes == 2
    assert read(tmp_path, HEADER, changed(AllocCPUS="1.5K")).nodes == 1500
    assert read(tmp_path, HEADER.replace("AllocCPUS", "NCPUS"), JOB).nodes == 64
    bare = HEADER.replace("AllocCPUS", "AllocTRES").replace("NNodes", "Other")
    for count, size in (("processors", 8), ("nodes", 3)):
        assert read(tmp_path, bare, changed(AllocCPUS="cpu=8,node=3"), count=count).nodes == size


def test_one_partition_can_be_read_alone(tmp_path):
    lines = [HEADER, JOB, changed(JobID="2", Partition="gpu", AllocCPUS="8")]
    log = read(tmp_path, *lines, queue="gpu")
    assert (log.nodes, log.skipped) == (8, {"not in the queue gpu": 1})
    assert log.jobs["queue"].tolist() == ["gpu"]
    with pytest.raises(InputError, match=r"queue must be one of cpu, gpu; got 'gpus' .*mean gpu"):
        read(tmp_path, *lines, queue="gpus")


def test_arrays_have_their_names_and_requeued_jobs_count_each_time(tmp_path):
    later = {"Start": "2025-05-01T05:00:00", "End": "2025-05-01T06:00:00"}
    log = read(tmp_path, HEADER, changed(JobID="9_1"), changed(JobID="9_2"))
    assert log.jobs.index.tolist() == ["9_1", "9_2"]
    log = read(tmp_path, HEADER, changed(State="REQUEUED"), changed(**later))
    assert (len(log.jobs), log.jobs.index.name) == (2, "row")
    assert [note.partition(" (")[0] for note in log.notes] == [
        "1 lines have the JobID of an earlier job"
    ]
    assert read(tmp_path, HEADER, JOB).jobs.index.tolist() == [1]


def test_one_array_among_the_jobs_leaves_every_name_a_text(tmp_path):
    log = read(tmp_path, HEADER, changed(JobID="9_1"), changed(JobID="10"))
    assert log.jobs.index.tolist() == ["9_1", "10"]


def test_a_submission_within_a_second_counts_from_that_second_on(tmp_path):
    log = read(tmp_path, HEADER, changed(Submit="2025-05-01T00:30:00.750"))
    assert log.epoch == DAY
    assert log.jobs["submit"].tolist() == pytest.approx([0.75], abs=1e-6)


def test_a_job_of_two_exports_counts_once_as_the_one_that_has_ended(tmp_path):
    before = changed(State="RUNNING", End="Unknown", ElapsedRaw="60")
    log = read(tmp_path, HEADER, before, HEADER, JOB, JOB)
    assert log.skipped == {"still running": 1, "line that comes again": 1}
    assert log.jobs["run_time"].tolist() == [3600]


def test_columns_may_stand_in_another_order_below_another_header(tmp_path):
    names, fields = HEADER.split("|"), changed(JobID="2").split("|")
    log = read(tmp_path, HEADER, JOB, "|".join(names[::-1]), "|".join(fields[::-1]))
    assert (len(log.jobs), log.skipped) == (2, {})


# --- exports that other tools stumbled over ---


@pytest.mark.parametrize("separator", [",", ";", "\t", "^|^", "|||", "\x1f"])
def test_any_separator_is_read(tmp_path, separator):
    log = read(tmp_path, HEADER.replace("|", separator), JOB.replace("|", separator))
    assert log.jobs["run_time"].tolist() == [3600]


def test_a_spreadsheet_may_have_put_fields_into_quotes(tmp_path):
    header = f"{HEADER},AllocTRES".replace("|", ",")
    fields = [*changed(User='a "b", c').split("|"), "cpu=64,gres/gpu=4,node=2"]
    quoted = ",".join('"{}"'.format(field.replace('"', '""')) for field in fields)
    some = ",".join([*JOB.replace("1|", "2|", 1).split("|"), '"cpu=64,gres/gpu=4,node=2"'])
    for count, size in (("processors", 64), ("gpus", 4), ("nodes", 2)):
        log = read(tmp_path, header, quoted, some, count=count)
        assert (log.jobs["processors"].tolist(), log.skipped) == ([size, size], {})
    assert log.jobs["user"].tolist() == ['a "b"  c', "ann"]


def test_a_waiting_job_may_have_the_start_that_is_expected(tmp_path):
    waits = changed(JobID="2", State="PENDING", Start="2025-05-02T00:00:00", End="Unknown")
    assert read(tmp_path, HEADER, JOB, waits).skipped == {slurm_exports.WAITING: 1}


#: What issue threads of other tools tell of; how many jobs are used, and what is left out or said.
OF_THREADS = {
    "troycomi/reportseff#30": ([changed(User="x | grep hot", JobID="2")], 1, "without the 11"),
    "aws-samples/hpc-cost-simulator#61": (
        [changed(JobID="2", State="CANCELLED by 3", Start="None", ElapsedRaw="0")], 1, "not started"
    ),
    "aws-samples/hpc-cost-simulator#59": (
        [changed(JobID="1.0", State="CANCELLED", User="", Partition="", TimelimitRaw="")],
        1,
        "step of a job",
    ),
    "troycomi/reportseff#25": (
        [changed(State="REQUEUED", Submit="2025-05-01T00:20:00", Start="2025-05-01T00:20:00")],
        2,
        "lines have the JobID of an earlier job",
    ),
    "gc3pie/gc3pie#524": ([changed(JobID="2", State="RUNNING")], 1, "still running"),
    "vpenso/prometheus-slurm-exporter#16": (
        [changed(JobID="12345_[1-10]", State="PENDING", Start="Unknown", End="Unknown")],
        1,
        "not started",
    ),
    "rackslab/Slurm-web#752": (
        [changed(Submit="2025-06-01T00:00:00", Start="2025-06-01T00:00:00",
                 End="2025-06-01T01:00:00")], 2, "number that came again"
    ),
}  # fmt: skip


@pytest.mark.parametrize("thread", OF_THREADS)
def test_exports_that_other_tools_stumbled_over_are_read_and_counted(tmp_path, thread):
    lines, used, said = OF_THREADS[thread]
    log = read(tmp_path, HEADER, JOB, *lines)
    assert len(log.jobs) == used
    assert said in f"{log.skipped} {log.notes}"


@pytest.mark.parametrize("name", ["export.csv", "export.swf", "export", "export.txt.gz"])
def test_the_accounting_is_recognised_by_its_content(tmp_path, name):
    (tmp_path / name).write_text(f"\ufeff{HEADER.lower()}\r\n{JOB}\r\n", "utf-8")
    (tmp_path / name).write_text(f"\ufeff{HEADER}\r\n{JOB}\r\n", "utf-8")
    assert read_log(tmp_path / name).jobs["run_time"].tolist() == [3600]


def test_names_of_columns_are_known_in_any_case_and_after_warnings(tmp_path):
    log = read(tmp_path, "sacct: error: slurm_persist_conn_open", "", HEADER.lower(), JOB)
    assert (log.nodes, log.jobs["user"].tolist()) == (64, ["ann"])


def test_names_that_are_not_utf8_are_read(tmp_path):
    (tmp_path / "x").write_bytes(f"{HEADER}\n{JOB}".encode().replace(b"ann", b"J\xf6rg"))
    assert read_log(tmp_path / "x").jobs["user"].tolist() == ["J\\xf6rg"]


def test_a_suspended_job_has_run_for_its_elapsed_time(tmp_path):
    log = read(tmp_path, HEADER, changed(ElapsedRaw="600"))
    assert log.jobs["run_time"].tolist() == [600]
    assert log.notes[0].startswith("1 jobs ran for another time than from Start to End")


@pytest.mark.parametrize(("elapsed", "noted"), [(3598, True), (3599, False), (3601, False)])
def test_a_second_between_two_clocks_is_rounding(tmp_path, elapsed, noted):
    """From Start to End it is 3600 s."""
    log = read(tmp_path, HEADER, changed(ElapsedRaw=str(elapsed)))
    assert len(log.notes) == noted


def test_an_export_without_state_and_end_says_what_is_not_known(tmp_path):
    header = HEADER.replace("State|", "").replace("End|", "")
    fields = JOB.split("|")
    log = read(tmp_path, header, "|".join(fields[:3] + fields[4:6] + fields[7:]))
    assert log.notes[0].startswith("the export has neither State nor End")
    assert SACCT_COMMAND in log.notes[0]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([HEADER], "line 1: no job stands below the names of columns; export it again: TZ=UTC"),
        ([HEADER, "1|2"], r"line 1: no job stands .* \(line without the 11 fields .*: 1\); export"),
        ([JOB], "line 1: sacct without names of columns; export it again: TZ=UTC sacct"),
        (
            ["JobID           JobName  Partition", "------------ ---------- ----------"],
            "line 1: sacct without --parsable2, whose fields are cut; export it again: TZ=UTC",
        ),
        (['{"jobs": []}'], "line 1: JSON; of Slurm's accounting, export it again: TZ=UTC sacct"),
        ([HEADER.replace("Submit", "X"), JOB], "line 1, field Submit: no such column; export it"),
        (
            [HEADER.replace("AllocCPUS", "ReqCPUS"), JOB],
            "field AllocCPUS: .*, nor NCPUS or AllocTR",
        ),
        (
            [HEADER.replace("ElapsedRaw", "X").replace("End", "Y"), JOB],
            "line 1, field ElapsedRaw: no such column, nor Elapsed or End; export it again",
        ),
    ],
)
def test_an_export_that_cannot_be_read_is_refused_with_the_command(tmp_path, lines, message):
    with pytest.raises(InputError, match=rf"export\.txt, .*{message}"):
        read(tmp_path, *lines)


def test_gpus_need_the_allocated_resources(tmp_path):
    with pytest.raises(InputError, match=r"field AllocTRES: no such column; export it again"):
        read(tmp_path, HEADER, JOB, count="gpus")


def test_many_lines_are_read_in_parts(tmp_path, monkeypatch):
    text, used, skipped = slurm_exports.as_asked(7)
    monkeypatch.setattr(joblog.slurm, "_LINES_AT_ONCE", 17)
    log = read(tmp_path, text.rstrip("\n"))
    pd.testing.assert_frame_equal(log.jobs.reset_index(drop=True), clean(used), check_dtype=False)
    assert log.skipped == skipped
