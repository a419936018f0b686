"""Readings: every switch is declared alike, has a label, and is read by the function it names."""

import ast
from dataclasses import dataclass
from types import CodeType

import nbformat
import pytest

from dlsim import bricks, cpugpu, realtime, steady
from dlsim.errors import InputError
from dlsim.files import suite_notebooks
from dlsim.papers import cpu_gpu
from dlsim.reading import BaseReading, _loaded_names, require_readers, switch
from dlsim.realtime.workload import RatioDraw, TaskDraw, UserDraw
from dlsim.steady.topology import PlatformDraw

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


@pytest.mark.parametrize("name", ["act_on_color", "act_on_rule"])
def test_a_switch_is_read_by_its_name_or_its_rule(name):
    require_readers(reading_with(f"test_reading:{name}", rule="is_red"))


@pytest.mark.parametrize(
    ("reads", "words"),
    [
        ("test_reading:act_on_rule", "is not read by"),
        ("test_reading:act_on_nothing", "is not read by"),
        ("test_reading:act_on_sound", "is not there"),
        ("test_painting:act_on_color", "is not there"),
        ((), "names no function"),
        (("test_reading:act_on_color", "test_reading:act_on_nothing"), "is not read by"),
    ],
)
def test_a_switch_that_no_function_reads_is_refused(reads, words):
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


@pytest.mark.parametrize("reading", READINGS, ids=lambda one: f"{one.__module__}.{one.__name__}")
class TestReading:
    def test_every_switch_is_read(self, reading):
        require_readers(reading)

    def test_every_switch_has_a_label_that_fits_a_panel(self, reading):
        labels = reading.labels()
        assert set(labels) == set(reading.switches())
        assert len(set(labels.values())) == len(labels)
        assert all(10 <= len(label) <= 80 for label in labels.values())

    def test_the_first_option_is_the_default(self, reading):
        default = vars(reading())
        assert {name: row[0] for name, row in reading.switches().items()}.items() <= default.items()

    def test_every_option_is_accepted_and_another_refused(self, reading):
        for name, options in reading.switches().items():
            for option in options[1:]:
                assert reading.from_switches({name: option}).changes() == {name: option}
            with pytest.raises(InputError, match=name):
                reading.from_switches({name: "neither of these"})

    def test_an_unknown_switch_is_refused(self, reading):
        with pytest.raises(InputError, match="reading switch must be one of"):
            reading.from_switches({"no_such_switch": 1})
