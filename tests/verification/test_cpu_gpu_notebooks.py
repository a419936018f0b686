"""Notebooks 50-cpu-gpu and 51-cpu-gpu-beyond, executed at a small size, and a smaller sample."""

import pytest

from dlsim.files import suite_notebooks
from dlsim.study.claims import read_scorecard
from dlsim.study.session import read_scales
from dlsim.study.verdict import with_sentences
from tests.verification.executed import in_one_space, shown_beside_the_shipped
from tests.verification.test_cpu_gpu_paper import KEY


@pytest.mark.filterwarnings("ignore")  # of seaborn and matplotlib, which a notebook may show
@pytest.mark.parametrize("name", ["50-cpu-gpu", "51-cpu-gpu-beyond"])
def test_a_notebook_runs_under_another_reading(tmp_path, monkeypatch, name):
    scales = read_scales(KEY)
    scales["quick"] |= {"draws": 2, "words": 300}
    monkeypatch.setattr("dlsim.study.session.read_scales", lambda paper: scales)
    monkeypatch.setattr("dlsim.study.results.PICTURE_DPI", 40)
    given = {"mixes": ["lee", "wide"], "runs": 2, "jobs": 1, "reading": {"both_free": "best"}}
    out = tmp_path / "results"
    names, _ = in_one_space(suite_notebooks()[name], tmp_path, given | {"out": str(out)})
    if name == "50-cpu-gpu":
        card = with_sentences(read_scorecard(out / "data" / f"{KEY}-claims.csv"))
        assert (card["reason"] != "It was not measured.").all()
        assert shown_beside_the_shipped(out, KEY, "both_free=best")
    else:
        if not names["sessions"]:
            pytest.importorskip("distributed")
        # the second session begins with what the first has measured
        explored = {
            one: set(done["rule"]) & {"R2", "R2*"} for one, done in names["sessions"].items()
        }
        assert explored["first"]
        assert not explored["second"]
