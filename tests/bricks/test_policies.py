"""Policies of paper B by name: legends, records, functions; and the summary of a run."""

from dataclasses import fields, replace
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlsim.bricks import POLICIES, REFUSE, Policy, Reading, read_legend, simulate
from dlsim.bricks.model import ALGORITHMS, MOST_FALLBACKS, find_policy
from dlsim.errors import InputError
from dlsim.papers import bricks as paper
from dlsim.record import NamedRecord
from tests.helpers.bricks_environments import grid, policies
from tests.helpers.refusals import refuses_each

#: Legends as the figures print them, with what they mean.
LEGENDS = {
    "Greedy": Policy("greedy"),
    "Greedy x/F": Policy("greedy", max_fallbacks=1),
    "Greedy x/F5": Policy("greedy", max_fallbacks=5),
    "Greedy L/F12": Policy("greedy", load_correction=True, max_fallbacks=12),
    "D-0.7": Policy("deadline", opt=0.7),
    "D-0.7 L/x": Policy("deadline", opt=0.7, load_correction=True),
    "D-0.7 L/F": Policy("deadline", opt=0.7, load_correction=True, max_fallbacks=1),
    "D-1": Policy("deadline", opt=1.0),
    "D-0.123456789": Policy("deadline", opt=0.123456789),
}
JOBS = [(0, 0, 0, 1000, 99), (0, 0, 0, 2000, 15), (1, 0, 0, 1000, 15)]


def test_a_legend_is_read_and_written():
    assert {legend: read_legend(legend) for legend in LEGENDS} == LEGENDS
    assert [policy.name for policy in LEGENDS.values()] == list(LEGENDS)
    assert read_legend("Greedy x/x") == Policy()  # both signs of nothing may be written


@given(st.floats(1e-9, 1.0), st.booleans(), st.integers(0, MOST_FALLBACKS))
def test_every_legend_is_read_as_it_is_written(opt, corrected, most):
    policy = Policy("deadline", opt, load_correction=corrected, max_fallbacks=most)
    assert read_legend(policy.name) == policy


def pick_first(view):
    return 0


class Picker:
    def __call__(self, view):
        return 0


NAMELESS = Picker()
NAMELESS.__name__ = " "
LEGEND, OPT = "policy must be a legend", "opt must be above 0 and at most 1"
REFUSED = [
    *[(lambda t=text: read_legend(t), words) for text, words in (
        ("greedy", rf"{LEGEND} such as 'Greedy', .* got 'greedy' \(did you mean Gre"),
        ("D-0.7 F", LEGEND), ("D-0.7 L/F0", LEGEND), ("D-0.7 L/F5 ", LEGEND), ("D-", LEGEND),
        ("", LEGEND), ("D-0", OPT), ("D-1.5 x/F", OPT),
        ("Greedy x/F9999", "max_fallbacks must be a whole number in 0..1000"))],
    # the notebooks' schedulers, which are legends without mechanisms
    *[(lambda x=legend: paper.find_scheduler(x), LEGEND)
      for legend in ("greedy", "D-nan", "MCDF", "", 7, None, "D-0.7 L/x", "Greedy x/F")],
    *[(lambda x=legend: paper.find_scheduler(x), OPT) for legend in ("D-0", "D-1.5")],
    # a name that is the legend of another policy
    (lambda: find_policy(Policy("deadline", 0.3, name="D-0.4")),
     r"'D-0\.4' differs from the policy of that legend"),
    (lambda: find_policy(Policy(pick_first, name="Greedy")), "'Greedy' differs"),
    (lambda: Policy(NAMELESS, max_fallbacks=1),
     "name of a Policy must be a text that is not blank"),
]  # fmt: skip

test_what_is_no_policy_is_refused = refuses_each(REFUSED)


def test_the_registry_holds_what_figures_3_to_6_compare():
    found = {
        name
        for name, policy in POLICIES.items()
        for corrected, most in paper.SCHEDULER_VERSIONS.values()
        if (policy.load_correction, policy.max_fallbacks) == (bool(corrected), most)
    }
    assert found == set(POLICIES)
    for name in paper.POLICIES:
        of_paper = POLICIES[name]
        for corrected, most in paper.SCHEDULER_VERSIONS.values():
            wanted = replace(of_paper, load_correction=bool(corrected), max_fallbacks=most)
            assert wanted in POLICIES.values()


def test_a_registered_policy_is_that_of_its_legend_and_says_what_it_does():
    for name, policy in POLICIES.items():
        assert (policy.name, read_legend(name)) == (name, policy)
        words = {"Load Correction": policy.load_correction, "fallback": policy.max_fallbacks > 0}
        assert {word: word in policy.text for word in words} == words
        assert (str(policy.opt) in policy.text) == ("{opt}" in ALGORITHMS[policy.algorithm].legend)


@given(policies(), policies())
def test_policies_of_one_name_are_equal(first, second):
    """A name says every field, and a field that is not the default is in the name."""
    assert (first.name == second.name) == (first == second)
    words = {one.name for one in fields(NamedRecord)}
    for one in (field for field in fields(Policy) if field.name not in words):
        if getattr(first, one.name) == getattr(second, one.name):
            continue
        changed = replace(first, **{one.name: getattr(second, one.name)})
        assert changed.name != first.name


@pytest.mark.parametrize(
    ("algorithm", "name"),
    [(pick_first, "pick_first"), (Picker(), "Picker"), (partial(pick_first), "partial")],
)
def test_a_function_is_called_by_its_own_name(algorithm, name):
    assert simulate(grid([100.0], JOBS), algorithm).name == name
    assert Policy(algorithm, 0.7, max_fallbacks=2).name == f"{name} x/F2 (opt=0.7)"
    assert simulate(grid([100.0], JOBS), Policy(algorithm, name="mine")).name == "mine"


def test_a_record_or_a_function_of_a_file_is_called_by_its_name_there(tmp_path):
    (tmp_path / "mine.py").write_text(
        "from dlsim.bricks import Policy\n"
        "careful = Policy('deadline', 0.3, max_fallbacks=2)\n"
        "last = lambda view: len(view.performance) - 1\n"
        "number = 5\n"
    )
    place = f"{tmp_path / 'mine.py'}:"
    careful, last = (simulate(grid([100.0, 50.0], JOBS), place + n) for n in ("careful", "last"))
    assert (careful.name, careful.policy) == ("careful", read_legend("D-0.3 x/F2"))
    assert last.name == "last"
    assert set(last.requests["server"]) == {1}
    with pytest.raises(InputError, match=r"policy must be a legend such as .*, got 5"):
        simulate(grid([100.0], JOBS), place + "number")


def test_a_plain_legend_is_given_mechanisms():
    for legend in ("Greedy", "D-0.7", "D-1"):
        assert paper.find_scheduler(legend).name == legend
        both = paper.find_scheduler(legend, load_correction=True, max_fallbacks=1)
        assert both.name == f"{legend} L/F"
    assert find_policy(Policy("deadline", 0.4, name="D-0.4")).name == "D-0.4"


# ---------------------------------------------------------------- what is made once


def test_the_arrays_of_an_environment_are_those_of_its_tables():
    """They are made once, and a replaced environment has its own."""
    env = grid([100.0, 50.0], JOBS)
    longer = replace(env, requests=env.requests.assign(work=5000.0, due=1e6))
    assert env.arrays is env.arrays
    assert env.arrays.work.tolist() == [1000, 2000, 1000]
    assert longer.arrays.work.tolist() == [5000] * 3
    assert not any(one.flags.writeable for one in env.arrays if isinstance(one, np.ndarray))
    assert simulate(longer, "Greedy").failure_rate == 0


# ---------------------------------------------------------------- the summary of a run


def test_the_measures_of_a_run_by_hand():
    """Servers of 100 and 50 Mops/s; jobs of 10, 20 and 10 s on the first, the last refused."""
    env = grid([100.0, 50.0], JOBS, horizon=20.0)
    o = simulate(env, lambda view: REFUSE if view.row == 2 else 0, Reading("ext"))
    wanted = {
        "requests": 3,
        "failure_rate": 2 / 3,  # the second ends at 30, due at 15
        "cost": 100.0,
        "mean_cost": 100.0,
        "work_weighted_cost": 100.0,
        "lateness": 15.0,
        "fallbacks": 0.0,
        "refused": 1 / 3,
        "drain_time": 10.0,
    }
    found = o.summary()
    assert found.to_dict() == pytest.approx(wanted)
    assert found.name == o.name == "<lambda>"


def test_fallbacks_are_counted_per_request():
    """One server that never is in time: each of two requests falls back twice."""
    o = simulate(grid([100.0], [(0, 0, 0, 1000, 1), (50, 0, 0, 1000, 51)]), "Greedy x/F2")
    assert o.attempts["accepted"].tolist() == [False, False, True] * 2
    assert o.attempts is o.attempts
    assert o.summary()["fallbacks"] == 2.0
    assert o.summary()["failure_rate"] == 1.0
