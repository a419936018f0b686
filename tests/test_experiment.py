"""What the studies of all papers share: the parameters they refuse."""

import importlib

import pytest

from dlsim.errors import InputError

PAPERS = ("inserted_idle_time",)


@pytest.mark.parametrize("paper", PAPERS)
@pytest.mark.parametrize(
    ("name", "value"),
    [("scale", "huge"), ("runs", -1), ("runs", 1.5), ("runs", True), ("jobs", -3), ("seed", -1)],
)
def test_studies_refuse_values_that_none_can_run_with(paper, name, value):
    study = importlib.import_module(f"dlsim.papers.{paper}.study").Study
    with pytest.raises(InputError, match=f"{name} must be .*{value!r}"):
        study(**{name: value})


@pytest.mark.parametrize("paper", PAPERS)
def test_studies_refuse_a_reading_that_is_no_mapping(paper):
    study = importlib.import_module(f"dlsim.papers.{paper}.study").Study
    with pytest.raises(InputError, match=r"reading must be a mapping .*'link=shared'"):
        study(reading="link=shared")
