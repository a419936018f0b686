"""00-start-here with files of an operator, a researcher and a lecturer: each ends in a picture."""

from pathlib import Path

import pytest

from tests.verification.executed import in_one_space

NOTEBOOK = Path(__file__).parents[2] / "notebooks" / "00-start-here.ipynb"
FILES = {
    "log.swf": "1 0 -1 60 2 -1 -1 -1 -1 -1 1 1 1 1 1 1 -1 -1\n"
    "2 30 -1 60 1 -1 -1 -1 -1 -1 1 1 1 1 1 1 -1 -1\n",
    "loads.csv": "\ufeffarrival,sigma,deadline\r\n0,6,10\r\n0,18,64\r\n0,6,16\r\n",
    "rule.py": """from dlsim.realtime import Policy

def as_they_come(tasks):
    return tasks["arrival"]

mine = Policy(as_they_come, "all")
""",
}


@pytest.fixture(scope="module")
def seen(tmp_path_factory):
    """What the cells leave where the parameters name files of a user, and what each shows."""
    folder = tmp_path_factory.mktemp("user")
    for name, text in FILES.items():
        (folder / name).write_bytes(text.encode())
    given = {
        "loads": str(folder / "loads.csv"), "log": str(folder / "log.swf"), "jobs": 1,
        "mine": f"{folder}/rule.py:mine", "policy": "FIFOMN", "nodes": 2, "cms": 1.0, "cps": 1.0,
    }  # fmt: skip
    return in_one_space(NOTEBOOK, folder, given)


def test_an_operators_log_ends_in_its_deadlines(seen):
    """Two jobs, work 120 and 60, on two processors; the second is submitted 30 s later.

    On both nodes the first takes 60.09 s, more than its run time. With longer deadlines it is
    admitted, and the second, which waits for it, is done 60.14 s after its submission.
    """
    names, shown = seen
    admitted = names["shares"].pivot(index="factor", columns="policy", values="admitted")
    assert set(admitted) == {"EDF-OPR-MN", "EDF-DLT"}
    assert admitted.loc[1].tolist() == [0.5, 0.5]
    assert (admitted.loc[1.25:] == 1).all(axis=None)
    assert "admits 100.0 %" in shown["start-22 said"]
    assert shown["start-21"][1].get_text() == "jobs admitted"


def test_a_researchers_policy_stands_on_the_papers_figure(seen):
    """The first task gets all nodes: that is the paper's FIFOAN under another name."""
    names, shown = seen
    assert [text.get_text() for text in names["ax"].get_legend().get_texts()][-1] == "mine"
    ratios = names["rows"].pivot(index=["load", "replicate"], columns="policy", values="ratio")
    assert set(ratios) == {"MCDF", "FIFOMN", "EDFMN", "FIFOAN", "EDFAN", "mine"}
    assert ratios["mine"].tolist() == ratios["FIFOAN"].tolist()
    said = f"mine refuses {100 * ratios['FIFOAN'].mean():.1f} % of the tasks"
    assert said in shown["start-24 said"]


def test_a_lecturers_loads_are_drawn(seen):
    """The hand case of the README; on all nodes E(6) = 8, and E(18) = 24 after it."""
    names, shown = seen
    said = "FIFOMN refuses [2] and is done at 44; FIFOAN refuses [2] and is done at 32."
    assert said in shown["start-26 said"]
    assert [ax.get_title(loc="left") for ax in names["axes"]] == ["FIFOMN", "FIFOAN"]
