"""Readings: every switch is declared alike, has a label, and is read by the function it names."""

import ast
from dataclasses import dataclass
from types import CodeType

import nbformat
import numpy as np
import pandas as pd
import pytest

from dlsim import bricks, cpugpu, realtime, steady
from dlsim.errors import InputError
from dlsim.files import suite_notebooks
from dlsim.papers import cpu_gpu, mcdf
from dlsim.papers.bricks import SCHEDULER_VERSIONS, find_scheduler
from dlsim.reading import BaseReading, _loaded_names, find_touched, require_readers, switch
from dlsim.realtime import workload
from dlsim.realtime.workload import RatioDraw, TaskDraw, UserDraw
from dlsim.steady import topology
from dlsim.steady.topology import PlatformDraw
from dlsim.study.readings import list_changes

READINGS = [
    realtime.Reading,
    steady.Reading,
    cpugpu.Reading,
    bricks.Reading,
    TaskDraw,
    RatioDraw,
    UserDraw,
    PlatformDraw,
    *bricks.LAWS,
    cpu_gpu.ExperimentReading,
]


def act_on_color(reading):
    """Read the switch `color`."""
    return [shade for shade in (reading.color,) if shade == "red"]


def act_on_rule(rules):
    """Read the rule `is_red` of the switch `color`."""
    return rules.is_red


def act_on_nothing(reading):
    """Read no switch; the text "color" is not loaded here, and the name is assigned only."""
    color = reading.shape  # noqa: F841
    return reading.size


def reading_with(reads, **more):
    @dataclass(frozen=True)
    class Painted(BaseReading):
        color: str = switch(("blue", "red"), label="what is painted", reads=reads, **more)

    Painted.__module__ = "tests.made_up"
    return Painted


def test_a_switch_is_read_by_its_name_or_its_rule():
    for name in ("act_on_color", "act_on_rule"):
        require_readers(reading_with(f"test_reading:{name}", rule="is_red"))


def test_a_switch_that_no_function_reads_is_refused():
    for reads, words in [
        ("test_reading:act_on_rule", "is not read by"),
        ("test_reading:act_on_nothing", "is not read by"),
        ("test_reading:act_on_sound", "is not there"),
        ("test_painting:act_on_color", "is not there"),
        ((), "names no function"),
        (("test_reading:act_on_color", "test_reading:act_on_nothing"), "is not read by"),
    ]:
        with pytest.raises(TypeError, match=f"switch 'color'.*{words}"):
            require_readers(reading_with(reads))


def test_a_switch_of_a_notebook_is_read_there():
    """Also each of those that a reading says a function of a notebook reads."""
    places = [
        (name, *place.split(".ipynb:"))
        for reading in READINGS
        for name, row in reading.readers().items()
        for place in row
        if ".ipynb:" in place
    ]
    assert ("poisoned", "50-cpu-gpu", "follow_wrong_sample") in places
    for name, notebook, function in places:
        assert name in set(_loaded_names(code_in(notebook, function))), (notebook, function)
    assert "poisoned" not in set(_loaded_names(code_in("50-cpu-gpu", "follow_outliers")))


def code_in(notebook, function):
    """Return the code of a function in a notebook's cells, without its default arguments."""
    for cell in nbformat.read(suite_notebooks()[notebook], as_version=4).cells:
        for statement in ast.parse(cell.source).body if cell.cell_type == "code" else []:
            if isinstance(statement, ast.FunctionDef) and statement.name == function:
                statement.args.defaults = []
                module = compile(ast.Module([statement], []), notebook, "exec")
                return next(one for one in module.co_consts if isinstance(one, CodeType))
    raise AssertionError(f"{notebook} has no function {function}")


def test_every_switch_is_read_has_a_label_and_begins_with_its_default():
    for reading in READINGS:
        require_readers(reading)
        labels, switches = reading.labels(), reading.switches()
        assert labels.keys() == switches.keys()
        assert len(set(labels.values())) == len(labels)
        assert all(10 <= len(label) <= 80 for label in labels.values()), reading  # fits a panel
        first = {name: options[0] for name, options in switches.items()}
        assert first.items() <= vars(reading()).items(), reading


def test_every_option_is_accepted_and_another_refused():
    for reading in READINGS:
        for name, options in reading.switches().items():
            for option in options[1:]:
                assert reading.from_switches({name: option}).changes() == {name: option}
            with pytest.raises(InputError, match=name):
                reading.from_switches({name: "neither of these"})
        with pytest.raises(InputError, match="reading switch must be one of"):
            reading.from_switches({"no_such_switch": 1})


# ------------------------------------------------------------------ what a switch touches


def draw_batches():
    """Draw tasks in batches, with set-up costs and without."""
    for number, setup in enumerate((0.0, 5.0, 20.0)):
        cluster = realtime.Cluster(10, 10.0, 10.0, setup, setup)
        yield workload.mcdf(cluster, 0.5, 1e4, np.random.SeedSequence(number)), cluster


def draw_tasks():
    """Draw single tasks with the nodes that their users choose."""
    for number, cms in enumerate((1.0, 8.0)):
        seed, cluster = np.random.SeedSequence(number), realtime.Cluster(16, cms, 100.0)
        tasks = workload.dcratio(cluster, 0.9, 5e4, seed, mean=200.0, dc_ratio=2.0)
        yield workload.user_split(tasks, cluster, seed), cluster


def draw_days():
    """Draw days of the Grid with few and with many requests."""
    for number, (interval, hours) in enumerate([(60, 6), (10, 3)]):
        seed = np.random.SeedSequence(number)
        yield (bricks.Environment.random(seed, interval, horizon=3600.0 * hours, domains=4),)


def draw_jobs():
    """Draw the jobs of five mixes."""
    for number, mix in enumerate(cpugpu.workload.MIXES):
        seed = np.random.SeedSequence(number, spawn_key=(0,))
        applications = cpugpu.workload.applications(mix, 6, seed)
        noise = cpugpu.workload.Noise(cv=0.3)
        yield cpugpu.workload.random_jobs(applications, 24, seed, noise), cpugpu.Machine(1, 2)


def draw_platforms():
    """Draw platforms of two kinds."""
    for number in range(3):
        yield (topology.tiers(7, number),)
        yield (topology.random(7, 0.4, number),)


GRID_POLICIES = {
    (name, *version): find_scheduler(
        name, load_correction=bool(version[0]), max_fallbacks=version[1]
    )
    for name in ("Greedy", "D-0.6")
    for version in [*SCHEDULER_VERSIONS.values(), (0, 5)]
}
#: Of each engine: its reading, its policies or methods, what runs them, what is drawn, and what
#: is compared of a result.
ENGINES = {
    "realtime, paper M": (
        realtime.Reading,
        {name: realtime.POLICIES[name] for name in mcdf.POLICIES},
        *(realtime.simulate, draw_batches),
        lambda run: (run.tasks, run.chunks),
    ),
    "realtime, paper I": (
        *(realtime.Reading, realtime.POLICIES, realtime.simulate, draw_tasks),
        lambda run: (run.tasks, run.chunks),
    ),
    "steady": (
        *(steady.Reading, steady.METHODS, steady.solve, draw_platforms),
        lambda run: (pd.DataFrame(run.work), pd.DataFrame(run.connections)),
    ),
    "cpugpu": (
        cpugpu.Reading,
        {name: one for name, one in cpugpu.POLICIES.items() if one.rule != "ideal"},
        *(cpugpu.simulate, draw_jobs),
        lambda run: (run.jobs,),
    ),
    "bricks": (
        *(bricks.Reading, GRID_POLICIES, bricks.simulate, draw_days),
        lambda run: (run.requests, run.attempts),
    ),
}


@pytest.mark.parametrize("engine", ENGINES)
def test_a_switch_changes_no_result_that_it_does_not_touch(engine):
    reading, records, run, draw, parts = ENGINES[engine]
    wanted = {}
    for place, given in enumerate(draw()):
        for changed, value in list_changes(reading.switches()):
            for name in records.keys() - set(find_touched(changed, records, reading)):
                if (place, name) not in wanted:
                    wanted[place, name] = parts(run(*given, records[name]))
                found = parts(run(*given, records[name], reading.from_switches({changed: value})))
                for one, other in zip(found, wanted[place, name], strict=True):
                    what = f"{name}, {changed}={value}"
                    pd.testing.assert_frame_equal(one, other, check_exact=True, obj=what)


def test_a_switch_that_says_nothing_of_it_touches_every_result():
    names = find_touched("same_time", realtime.POLICIES, realtime.Reading)
    assert names == list(realtime.POLICIES)
    assert find_touched("size", realtime.POLICIES, realtime.Reading) == names  # of the inputs
    assert find_touched("dc_at_N", realtime.POLICIES, realtime.Reading) == ["MCDF"]
