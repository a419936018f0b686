"""The made-up logs of ``dlsim bench joblog`` have the load that they say."""

import pytest

from dlsim.joblog import read_log
from tests.verification.benchmarks import joblog


@pytest.mark.parametrize("load", joblog.LOADS)
def test_a_made_up_log_is_a_log_of_its_load(tmp_path, load):
    table = joblog.made_up(3000, load, seed=2)
    table.to_csv(tmp_path / "log.csv", index=False)
    log = read_log(tmp_path / "log.csv", nodes=joblog.PROCESSORS)
    assert (len(log.jobs), log.skipped) == (3000, {})
    span = log.jobs["submit"].max() - log.jobs["submit"].min()
    work = (log.jobs["run_time"] * log.jobs["processors"]).sum()
    assert work / span / joblog.PROCESSORS == pytest.approx(load, rel=0.01)


def test_easy_is_measured_as_jobs_come_and_at_once():
    rows = list(joblog.easy(jobs=200))
    assert [row["submitted"] for row in rows] == ["as submitted", "at once"] * 2
    assert all(row["cpu_seconds"] >= 0 for row in rows)
