"""The accounting of Slurm: every kind of export is read, or refused with the command to use."""

import pandas as pd
import pytest

from dlsim.errors import InputError
from dlsim.joblog import SACCT_COMMAND, read_log, slurm
from tests.helpers import slurm_exports
from tests.helpers.slurm_exports import LINES, RUNNING, STEP, WAITING, clean

EXPORTS = {
    "with steps": (slurm_exports.with_steps, "processors"),
    "put together": (slurm_exports.put_together, "gpus"),
}
FIELDS = {
    "JobID": "1", "User": "ann", "Partition": "cpu", "State": "COMPLETED",
    "Submit": "2025-05-01T00:30:00", "Start": "2025-05-01T00:30:10", "End": "2025-05-01T01:30:10",
    "ElapsedRaw": "3600", "AllocCPUS": "64", "NNodes": "2", "TimelimitRaw": "120",
}  # fmt: skip
HEADER = "|".join(FIELDS)
JOB = "|".join(FIELDS.values())
DAY = pd.Timestamp("2025-05-01T00:30:00", tz="UTC")


def read(folder, *lines, header=HEADER, **more):
    """Read an export of these lines below a header."""
    path = folder / "export.txt"
    path.write_text("\n".join([header, *lines]) + "\n", "utf-8")
    return read_log(path, **more)


def changed(**fields):
    """Return the line `JOB` with other fields."""
    return "|".join((FIELDS | fields).values())


def each(name, texts):
    """Return a job with each text in a field."""
    return [changed(**{"JobID": f"{number}", name: text}) for number, text in enumerate(texts)]


@pytest.mark.parametrize("name", ["auto", "slurm"])
def test_nineteen_lines_and_blank_ones_may_stand_before_the_header(tmp_path, name):
    warnings, blank = ["sacct: warning"] * 19, [""] * 30
    log = read(tmp_path, *warnings, HEADER, JOB, header="\n".join(blank), format=name)
    assert len(log.jobs) == 1
    with pytest.raises(InputError, match="names"):
        read(tmp_path, *warnings, *warnings[:1], HEADER, JOB, header="", format=name)


@pytest.mark.parametrize("name", EXPORTS)
def test_an_export_is_read_as_the_script_knows_its_jobs(tmp_path, monkeypatch, name):
    make, count = EXPORTS[name]
    for seed, lines_at_once in ((0, slurm._LINES_AT_ONCE), (1, 17)):
        monkeypatch.setattr(slurm, "_LINES_AT_ONCE", lines_at_once)
        text, used, skipped = make(seed)
        assert text.count("\n") >= LINES
        assert min(skipped.values()) > 0
        header, *lines = text.splitlines()
        log, expected = read(tmp_path, *lines, header=header, count=count), clean(used, count)
        pd.testing.assert_frame_equal(log.jobs.reset_index(drop=True), expected, check_dtype=False)
        assert log.skipped == skipped
        first = min(job["submit"] for job in used if job[count])
        assert log.epoch == pd.Timestamp(first, unit="s", tz="UTC")
    # the same jobs as a table are the same log
    path = tmp_path / "log.csv"
    expected.assign(estimate=expected["estimate"].fillna(-1)).to_csv(path, index=False)
    table = read_log(path)
    pd.testing.assert_frame_equal(table.jobs.reset_index(drop=True), expected, check_dtype=False)
    assert table.nodes == log.nodes == log.in_use


def test_the_command_has_every_column_that_is_read_and_what_makes_a_log_whole(tmp_path):
    words = SACCT_COMMAND.split()
    assert words[:2] == ["TZ=UTC", "sacct"]
    assert {"-a", "-X", "--parsable2", "-S", "-E"} <= set(words)
    asked = words[words.index("-o") + 1].split(",")
    fields = FIELDS | {"Group": "g", "AllocTRES": "cpu=64,gres/gpu=4,node=2"}
    assert set(asked) == set(fields)
    # an export with just these columns is read without a note on what it lacks
    line = "|".join(fields[name] for name in asked)
    for count, size in (("processors", 64), ("gpus", 4), ("nodes", 2)):
        log = read(tmp_path, line, header="|".join(asked), count=count)
        assert (log.nodes, log.skipped) == (size, {})
        assert log.notes == [f"{count} are counted in place of processors"] * (size < 64)
        assert log.jobs.iloc[0].tolist() == [0, 10, 3600, size, 7200, "ann", "g", "cpu"]


#: Jobs by the reason for which they are left out. The names of threads are those of other tools
#: that stumbled over such a line.
LEFT_OUT = {
    RUNNING: [
        {"State": "RUNNING", "End": "Unknown"},
        {"State": "RUNNING"},  # sacct -T writes the end of its window; gc3pie#524
        {"State": "SUSPENDED", "End": "Unknown"},
        {"State": "COMPLETING", "End": "Unknown"},
        {"State": "COMPLETED", "End": "Unknown"},
    ],
    WAITING: [
        {"State": "PENDING", "Start": "Unknown", "End": "Unknown"},
        {"State": "PENDING", "Start": "2025-05-02T00:00:00", "End": "Unknown"},  # as expected
        {"State": "CANCELLED by 7", "Start": "None", "ElapsedRaw": "0"},  # hpc-cost-simulator#61
        {"JobID": "2_[1-10]", "State": "PENDING", "Start": "Unknown"},  # slurm-exporter#16
    ],
    STEP: [
        {"JobID": "1.batch"},
        {"JobID": "1_7.0", "User": "", "Partition": "", "TimelimitRaw": ""},  # ...-simulator#59
        {"JobID": "1+1.extern", "State": "RUNNING"},
    ],
    "no submit time": [{"Submit": "Unknown"}, {"Submit": "01/05/25 00:30"}],
    "started before it was submitted": [{"Submit": "2025-05-01T00:31:00"}],
    "run time not above 0": [{"ElapsedRaw": text} for text in ("0", "-5", "inf", "9" * 400)],
    "no processors": [{"AllocCPUS": text} for text in ("0", "", "many")],
    "more than 1,000,000,000 processors": [{"AllocCPUS": "9" * 12}],
    "processors not a whole number": [{"AllocCPUS": "1.5"}],
    "line without the 11 fields of its header": [
        *({"User": text} for text in ("a\nb", "a\0b", "a\rb", "x | grep hot"))  # reportseff#30
    ],
    "line that comes again": [{"JobID": "1"}],
}  # fmt: skip


@pytest.mark.parametrize("reason", LEFT_OUT)
def test_a_job_that_cannot_be_used_is_left_out_and_counted(tmp_path, reason):
    lines = [changed(**{"JobID": f"{n}"} | row) for n, row in enumerate(LEFT_OUT[reason], 2)]
    log = read(tmp_path, JOB, *lines)
    assert log.skipped == {reason: "\n".join(lines).count("\n") + 1}
    assert log.jobs["run_time"].tolist() == [3600]
    assert (log.nodes, log.epoch) == (64, DAY)


def test_a_log_without_a_usable_job_is_refused_with_the_command(tmp_path):
    said = r"export\.txt: no job that could be .*still running: 1\); export it again: TZ=UTC sacct"
    with pytest.raises(InputError, match=said):
        read(tmp_path, changed(State="RUNNING"))


def test_a_job_that_has_ended_counts_however_it_ended(tmp_path):
    states = "COMPLETED FAILED TIMEOUT CANCELLED NODE_FAIL PREEMPTED REQUEUED".split()
    log = read(tmp_path, *each("State", [*states, "CANCELLED by 1000"]))
    assert (len(log.jobs), log.skipped) == (8, {})


@pytest.mark.parametrize(
    ("submit", "start", "end"),
    [
        ("1746059400", "1746059410", "1746063010"),  # SLURM_TIME_FORMAT=%s; date -u -d @1746059400
        ("2025-05-01T02:30:00+0200", "2025-05-01T00:30:10Z", "2025-05-01T01:30:10+00:00"),
        ("2025-05-01 00:30:00", "2025-04-30T19:30:10-0500", "2025-05-01T03:30:10+02:00"),
        ("2025-05-01T00:30:00Z", "1746059410", "2025-05-01T01:30:10"),
    ],
)
def test_every_way_to_write_a_date_is_the_same_instant(tmp_path, submit, start, end):
    waits = changed(State="PENDING", Submit=submit, Start="Unknown", End="Unknown", JobID="2")
    log = read(tmp_path, changed(Submit=submit, Start=start, End=end), waits)
    assert log.jobs[["submit", "wait", "run_time"]].iloc[0].tolist() == [0, 10, 3600]
    assert (log.epoch, log.notes) == (DAY, [])


def test_a_submission_within_a_second_counts_from_that_second_on(tmp_path):
    log = read(tmp_path, changed(Submit="2025-05-01T00:30:00.750"))
    assert log.epoch == DAY
    assert log.jobs["submit"].tolist() == pytest.approx([0.75], abs=1e-6)


NONE = float("nan")
#: Texts of a field, and what the column of the log says then.
VALUES = {
    ("TimelimitRaw", "TimelimitRaw", "estimate"): {
        "120": 7200, "UNLIMITED": NONE, "Partition_Limit": NONE, "": NONE, "0": NONE,
    },
    ("TimelimitRaw", "Timelimit", "estimate"): {
        "1-02:00:00": 93600, "02:30:00": 9000, "30:00": 1800, "2-12": 216000, "UNLIMITED": NONE,
        "INVALID": NONE, "365-00:00:00": 31536000,
    },
    ("ElapsedRaw", "Elapsed", "run_time"): {
        "1-01:00:00": 90000, "00:00:05": 5, "01:02.500": 62.5,
    },
    ("ElapsedRaw", "Other", "run_time"): {"5": 3600},  # from Start to End
    ("AllocCPUS", "AllocCPUS", "processors"): {"64": 64, "1.5K": 1500, "2M": 2_000_000},
    ("AllocCPUS", "NCPUS", "processors"): {"64": 64},
    ("AllocCPUS", "AllocTRES", "processors"): {"cpu=8,node=3": 8, "node=2,cpu=1K": 1000},
}  # fmt: skip


@pytest.mark.parametrize("place", VALUES, ids=lambda place: place[1])
def test_a_field_is_read_as_slurm_writes_it(tmp_path, place):
    replaced, name, column = place
    lines = each(replaced, VALUES[place])
    log = read(tmp_path, *lines, header=HEADER.replace(replaced, name))
    read_as = dict(zip(VALUES[place], log.jobs[column], strict=True))
    assert read_as == pytest.approx(VALUES[place], nan_ok=True)


def test_gpus_and_nodes_are_counted_by_their_resource(tmp_path):
    gpus = {
        "billing=8,cpu=8,gres/gpu:a100=4,gres/gpu=4,mem=64G,node=1": 4,
        "cpu=8,gres/gpu:a100=1,gres/gpu:h100=2,node=1": 3,
        "gres/gpu=1,gres/gpumem=40G,gres/gpuutil=99": 1,
    }
    none = ["cpu=8,gres/shard=4,node=1", "", "cpu=8", "gres/gpu"]
    header = HEADER.replace("User", "AllocTRES")
    log = read(tmp_path, *each("User", [*gpus, *none]), header=header, count="gpus")
    assert log.jobs["processors"].tolist() == list(gpus.values())
    assert log.skipped == {"no gpus": len(none)}
    assert "gpus are counted in place of processors" in log.notes
    assert read(tmp_path, JOB, count="nodes").nodes == 2
    bare = header.replace("NNodes", "Other")
    assert read(tmp_path, changed(User="cpu=8,node=3"), header=bare, count="nodes").nodes == 3


def test_one_partition_can_be_read_alone(tmp_path):
    lines = [JOB, changed(JobID="2", Partition="gpu", AllocCPUS="8")]
    log = read(tmp_path, *lines, queue="gpu")
    assert (log.nodes, log.skipped) == (8, {"not in the queue gpu": 1})
    assert log.jobs["queue"].tolist() == ["gpu"]
    with pytest.raises(InputError, match=r"queue must be one of cpu, gpu; got 'gpus' .*mean gpu"):
        read(tmp_path, *lines, queue="gpus")


def test_jobs_have_their_names_and_requeued_jobs_count_each_time(tmp_path):
    assert read(tmp_path, JOB).jobs.index.tolist() == [1]
    array = read(tmp_path, changed(JobID="9_1"), changed(JobID="10"))
    assert array.jobs.index.tolist() == ["9_1", "10"]
    # requeued (reportseff#25), and a number that came again (Slurm-web#752)
    later = changed(Start="2025-05-01T05:00:00", End="2025-05-01T06:00:00")
    log = read(tmp_path, changed(State="REQUEUED"), later)
    assert (len(log.jobs), log.jobs.index.name) == (2, "row")
    assert [note.partition(" (")[0] for note in log.notes] == [
        "1 lines have the JobID of an earlier job"
    ]


def test_exports_may_be_put_together(tmp_path):
    """A job that ran at the first export has ended at the second, of other columns."""
    before, after = changed(State="RUNNING", End="Unknown", ElapsedRaw="60"), JOB.split("|")
    turned = "|".join(HEADER.split("|")[::-1])
    log = read(tmp_path, before, turned, *["|".join(after[::-1])] * 2)
    assert log.skipped == {RUNNING: 1, "line that comes again": 1}
    assert log.jobs["run_time"].tolist() == [3600]


def test_any_separator_is_read(tmp_path):
    for separator in (",", ";", "\t", "^|^", "|||", "\x1f"):
        log = read(tmp_path, JOB.replace("|", separator), header=HEADER.replace("|", separator))
        assert log.jobs["run_time"].tolist() == [3600], separator


def test_a_spreadsheet_may_have_put_fields_into_quotes(tmp_path):
    header, resources = f"{HEADER},AllocTRES".replace("|", ","), "cpu=64,gres/gpu=4,node=2"
    fields = [*changed(User='a "b", c').split("|"), resources]
    quoted = ",".join('"{}"'.format(field.replace('"', '""')) for field in fields)
    some = ",".join([*changed(JobID="2").split("|"), f'"{resources}"'])
    for count, size in (("processors", 64), ("gpus", 4), ("nodes", 2)):
        log = read(tmp_path, quoted, some, header=header, count=count)
        assert (log.jobs["processors"].tolist(), log.skipped) == ([size, size], {})
    assert log.jobs["user"].tolist() == ['a "b"  c', "ann"]


def test_names_of_columns_are_known_in_any_case_after_warnings_and_line_ends(tmp_path):
    text = f"\ufeffsacct: error: slurm_persist_conn_open\r\n\r\n{HEADER.lower()}\r\n{JOB}\r\n"
    (tmp_path / "x").write_bytes(text.encode().replace(b"ann", b"J\xf6rg"))  # of Latin-1
    log = read_log(tmp_path / "x")
    assert (log.nodes, log.jobs["user"].tolist()) == (64, ["J\\xf6rg"])


def test_a_job_that_was_suspended_has_run_for_its_elapsed_time(tmp_path):
    """From Start to End it is 3600 s; a second between two clocks is rounding."""
    for elapsed, is_noted in ((600, True), (3598, True), (3599, False), (3601, False)):
        log = read(tmp_path, changed(ElapsedRaw=str(elapsed)))
        assert log.jobs["run_time"].tolist() == [elapsed]
        assert len(log.notes) == is_noted, elapsed
    assert (
        read(tmp_path, changed(ElapsedRaw="600"))
        .notes[0]
        .startswith("1 jobs ran for another time than from Start to End")
    )


def test_an_export_without_state_and_end_says_what_is_not_known(tmp_path):
    kept = [name for name in FIELDS if name not in ("State", "End")]
    log = read(tmp_path, "|".join(FIELDS[name] for name in kept), header="|".join(kept))
    assert log.notes[0].startswith("the export has neither State nor End")
    assert SACCT_COMMAND in log.notes[0]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([HEADER], "line 1: no job stands below the names of columns; export it again: TZ=UTC"),
        ([HEADER, "1|2"], r"line 1: no job stands .* \(line without the 11 fields .*: 1\); export"),
        ([JOB], "line 1: sacct without names of columns; export it again: TZ=UTC sacct"),
        (["JobID    JobName  Partition", "------ ------- ----------"],
         "line 1: sacct without --parsable2, whose fields are cut; export it again: TZ=UTC"),
        (['{"jobs": []}'], "line 1: JSON; of Slurm's accounting, export it again: TZ=UTC sacct"),
        ([HEADER.replace("Submit", "X"), JOB], "line 1, field Submit: no such column; export it"),
        ([HEADER.replace("AllocCPUS", "ReqCPUS"), JOB],
         "field AllocCPUS: .*, nor NCPUS or AllocTR"),
        ([HEADER.replace("ElapsedRaw", "X").replace("End", "Y"), JOB],
         "line 1, field ElapsedRaw: no such column, nor Elapsed or End; export it again"),
    ],
)  # fmt: skip
def test_an_export_that_cannot_be_read_is_refused_with_the_command(tmp_path, lines, message):
    with pytest.raises(InputError, match=rf"export\.txt, .*{message}"):
        read(tmp_path, *lines[1:], header=lines[0])


def test_gpus_need_the_allocated_resources(tmp_path):
    with pytest.raises(InputError, match=r"field AllocTRES: no such column; export it again"):
        read(tmp_path, JOB, count="gpus")
