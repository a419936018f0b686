"""FILE.py:name means the same wherever a policy, scheduler, rule or predictor is named."""

import numpy as np
import pandas as pd
import pytest

from dlsim import bricks, cpugpu, realtime
from dlsim.errors import InputError
from dlsim.user_code import resolve_user_code
from tests.helpers.refusals import require_refusals

SOURCE = """
from dlsim import cpugpu
from dlsim.realtime import Policy

shortest_first = Policy(lambda tasks: tasks["sigma"], "min")
strict = cpugpu.Policy("strict")
number = 3

def latest_deadline(task, n, t, state):
    return -task.due

def all_nodes(task, t, state):
    return state.nodes

def equal_shares(sigma, release, state):
    return [1 / len(release)] * len(release)

def last_server(view):
    return len(view.estimates) - 1

def always_one(values):
    return 1 + 0 * values[:, -1]

def first_device(state, policy, reading):
    return None

def head_first(state, policy, reading):
    return cpugpu.Decision(state.main.head.job, 0, "mine") if state.main else None
"""
TASKS = pd.DataFrame({"arrival": [0, 0, 0], "sigma": [9, 6, 3], "deadline": [60.0, 60.0, 60.0]})
CLUSTER = realtime.Cluster(nodes=2, cms=1, cps=1)
QUEUE = pd.DataFrame({"app": ["a"], "arrival": [0.0], "cpu_time": 2.0, "gpu_time": 1.0})


@pytest.fixture
def named(tmp_path):
    """Return how a name of the user's file is written."""
    (tmp_path / "mine.py").write_text(SOURCE)
    return lambda name: f"{tmp_path / 'mine.py'}:{name}"


def environment():
    return bricks.Environment(
        servers=pd.DataFrame({"domain": 0, "performance": [200, 100]}),
        clients=pd.DataFrame({"domain": [0]}),
        traces=np.full((1, 4, 1), 100.0),
        step=10,
        requests=pd.DataFrame(
            {"arrival": [0.0], "client": 0, "send": 0, "recv": 0, "work": 100, "due": 9}
        ),
    )


def test_a_policy_of_papers_m_and_i(named):
    schedule = realtime.simulate(TASKS, CLUSTER, named("shortest_first"))
    assert schedule.name == "shortest_first"
    # deadlines are far, so each task takes one node: the longest waits, though it came first
    assert schedule.tasks["nodes"].tolist() == [1, 1, 1]
    assert (schedule.tasks["start"] > 0).tolist() == [True, False, False]


def test_the_functions_of_a_policy_of_papers_m_and_i(named):
    policy = realtime.Policy(named("latest_deadline"), named("all_nodes"), named("equal_shares"))
    names = [rule.__name__ for rule in (policy.order, policy.nodes, policy.partition)]
    assert names == ["latest_deadline", "all_nodes", "equal_shares"]
    assert realtime.simulate(TASKS, CLUSTER, policy).tasks["nodes"].tolist() == [2, 2, 2]


def test_a_scheduler_and_a_predictor_of_paper_b(named):
    policy = bricks.Policy(named("last_server"))
    reading = bricks.Reading(predictor=named("always_one"))
    assert policy.name == "last_server"
    for one in (policy, named("last_server")):
        found = bricks.simulate(environment(), one, reading)
        assert found.name == "last_server"
        assert found.requests["server"].tolist() == [1]
    assert reading.predictor.__name__ == "always_one"


def test_a_policy_and_a_rule_of_paper_c(named):
    assert cpugpu.Policy(named("first_device")).rule.__name__ == "first_device"
    jobs = QUEUE.assign(cpu_estimate=2.0, gpu_estimate=1.0)
    by_file = cpugpu.simulate(jobs, cpugpu.Machine(1, 1), named("strict"))
    by_name = cpugpu.simulate(jobs, cpugpu.Machine(1, 1), "torque-strict")
    pd.testing.assert_frame_equal(by_file.jobs, by_name.jobs)
    assert by_file.name == "strict"
    eager = cpugpu.simulate(jobs, cpugpu.Machine(1, 1), named("head_first"))
    assert (eager.name, eager.jobs["rule"].tolist()) == ("head_first", ["mine"])


def test_a_module_is_named_as_a_file_is():
    assert resolve_user_code("policy", "dlsim.realtime:simulate") is realtime.simulate
    assert resolve_user_code("policy", "EDF-DLT") == "EDF-DLT"


#: Everything that takes a function of a user, by its name.
USES = {
    "realtime.simulate": lambda place: realtime.simulate(TASKS, CLUSTER, place),
    "realtime.Policy": lambda place: realtime.Policy(place, "min"),
    "bricks.Policy": lambda place: bricks.Policy(place),
    "bricks.Reading": lambda place: bricks.Reading(predictor=place),
    "cpugpu.simulate": lambda place: cpugpu.simulate(QUEUE, cpugpu.Machine(1, 1), place),
    "cpugpu.Policy": lambda place: cpugpu.Policy(place),
}


def test_what_cannot_be_loaded_is_refused_everywhere_alike(named):
    for use in USES.values():
        require_refusals([
            (lambda use=use, place=place: use(place), words)
            for place, words in [
                ("nowhere.py:mine", "'nowhere.py:mine': there is no file nowhere.py seen from the"),
                (":mine", "no colon between two names"),
                ("dlsim.realtime:", "no colon between two names"),
                ("no_such_module:mine", "ModuleNotFoundError"),
                (named("number"), "got 3"),  # no function and no policy
            ]
        ])  # fmt: skip


def test_a_file_that_lies_elsewhere_is_pointed_to(tmp_path, monkeypatch):
    (tmp_path / "here" / "rules").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "here")
    with pytest.raises(InputError, match=r"no file mine\.py seen from the folder .*here; give its"):
        resolve_user_code("policy", "mine.py:strict")
    (tmp_path / "mine.py").write_text(SOURCE)
    with pytest.raises(InputError) as found:
        resolve_user_code("policy", "mine.py:strict")
    assert str(found.value).endswith(f"did you mean {tmp_path / 'mine.py'}?")
    (tmp_path / "here" / "rules" / "mine.py").write_text(SOURCE)
    with pytest.raises(InputError) as found:
        resolve_user_code("policy", "elsewhere/mine.py:strict")
    assert str(found.value).endswith(f"did you mean {tmp_path / 'here' / 'rules' / 'mine.py'}?")
