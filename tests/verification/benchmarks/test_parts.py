"""``dlsim bench``: parts have names, and each row is told as it is measured."""

import sys

import pytest

from dlsim.cli import main
from tests.verification.benchmarks import explore, parts
from tests.verification.benchmarks.parts import Part


@pytest.fixture
def told(monkeypatch):
    """Three parts of our own; whatever is measured is written down in order."""
    said = []

    def rows(name):
        def measure(seed, tasks):
            for k in range(2):
                said.append(f"{name} measures {k} of {tasks} with seed {seed}")
                yield {"engine": name, "ratio": 2.0 + k}

        return measure

    table = {
        "steady.lprr": Part("rounding", rows("lprr")),
        "steady.mixed": Part("proved", rows("mixed"), long=True),
        "bricks.day": Part("a day", rows("day")),
    }
    monkeypatch.setattr(parts, "parts", lambda: table)
    return said


def test_a_row_is_told_before_the_next_is_measured(told):
    lines = parts.report(["steady.lprr"], 7, 50)
    assert "simpy" in next(lines)
    assert next(lines) == "\nsteady.lprr: rounding"
    assert told == []
    assert next(lines).split() == ["engine", "ratio"]
    assert next(lines).split() == ["lprr", "2"]
    assert told == ["lprr measures 0 of 50 with seed 7"]
    assert next(lines).split() == ["lprr", "3"]
    assert next(lines).endswith("s)")
    assert next(lines, None) is None


RACE = [
    {"engine": "dlsim", "ratio": 1.0}, {"engine": "plain Python", "ratio": 0.5},
    {"engine": "SimPy", "ratio": 2.0},
]  # fmt: skip
FLOORS = (
    parts.at_least("ratio", 1.5, engine="SimPy"),
    parts.at_most("ratio", 0.4, engine="plain Python"),
)


def test_floors_stand_beside_what_was_measured_and_are_counted(monkeypatch):
    part = Part("a race", lambda seed, tasks: iter(RACE), floors=FLOORS, why_slower="no checks")
    monkeypatch.setattr(parts, "parts", lambda: {"cpugpu.race": part})
    head, dlsim, plain, simpy, why = [line.split() for line in parts.lines(part)]
    assert head == ["engine", "ratio", "floor", "held"]
    assert dlsim == ["dlsim", "1"]
    assert plain == ["plain", "Python", "0.5", "ratio", "<=", "0.4", "no"]
    assert simpy == ["SimPy", "2", "ratio", ">=", "1.5", "yes"]
    assert why[-2:] == ["no", "checks"]
    *_, last = parts.report(["cpugpu"])
    assert last == "\nfloors: 1 of 2 are held; not: cpugpu.race, plain Python (ratio <= 0.4)"
    *_, last = parts.report(["cpugpu"], tasks=50)
    assert last == "\nfloors are told for 10,000 tasks and more"


def test_columns_that_change_get_a_head_of_their_own():
    part = Part("two tables", lambda seed, tasks: iter([{"a": 1}, {"b": "x"}, {"b": 0.5}]))
    assert [line.strip() for line in parts.lines(part)] == ["a", "1", "b", "x", "0.5"]


@pytest.mark.parametrize(("names", "ran"), [
    ([], ["steady.lprr", "bricks.day"]),
    (["bricks"], ["bricks.day"]),
    (["steady"], ["steady.lprr"]),
    (["steady.mixed", "bricks"], ["steady.mixed", "bricks.day"]),
])  # fmt: skip
def test_names_choose_parts_and_long_ones_run_only_by_their_own(told, names, ran):
    assert list(parts.chosen(names)) == ran


def test_the_command_measures_lists_and_refuses(told, capsys):
    assert main(["bench", "bricks.day", "--seed", "7", "--tasks", "5"]) == 0
    assert told == [f"day measures {k} of 5 with seed 7" for k in range(2)]
    assert "bricks.day: a day" in capsys.readouterr().out
    assert main(["bench", "--list"]) == 0
    assert capsys.readouterr().out.count("long: only by name") == 1
    assert len(told) == 2
    assert main(["bench", "quantum"]) == 2
    assert "part must be one of realtime, steady, bricks, cpugpu" in capsys.readouterr().err
    assert main(["bench", "--tasks", "0"]) == main(["bench", "--seed", "-1"]) == 2
    err = capsys.readouterr().err
    assert "--tasks must be a whole number of at least 1, got 0" in err
    assert "--seed must be a whole number of at least 0, got -1" in err
    assert len(told) == 2


def test_a_part_without_its_extra_is_left_out_before_anything_is_measured(
    told, capsys, monkeypatch
):
    table = parts.parts()
    table["steady.lprr"] = table["steady.lprr"]._replace(extra="topologies")
    monkeypatch.setitem(sys.modules, "topohub", None)
    lines = parts.report()
    next(lines)
    assert next(lines) == (
        "left out: steady.lprr needs the extra topologies: pip install -e '.[topologies]'"
    )
    assert told == []
    assert main(["bench"]) == 0
    assert {line.partition(" ")[0] for line in told} == {"day"}
    assert "needs the extra topologies" in "\n".join(parts.listing())
    assert main(["bench", "steady"]) == 2
    said = capsys.readouterr().err
    assert "nothing can be measured: steady.lprr needs the extra topologies" in said


def test_every_engine_has_parts_and_every_part_a_title():
    table = parts.parts()
    assert {name.partition(".")[0] for name in table} == set(parts.ENGINES)
    assert len({part.title for part in table.values()}) == len(table)


@pytest.mark.parametrize(("name", "row"), [
    ("realtime.race", {"policy": "EDF-OPR-MN", "engine": "SimPy", "ratio": 94.0}),
    ("realtime.queue", {"policy": "FIFO-DLT", "dc_ratio": 20_000, "ratio": 1.6}),
    ("steady.lprr", {"network": "random", "K": 90, "ratio": 249.0}),
    ("bricks.day", {"case": "default", "run_ms": 4.1}),
    ("bricks.nodes", {"domains": 1333, "nodes": 10_066, "run_s": 8.1}),
    ("cpugpu.race", {"policy": "mct", "engine": "SimPy", "ratio": 1.3}),
    ("explore.panels", {"panel": "timing", "p95_ms": 201.0}),
])  # fmt: skip
def test_the_floor_of_a_row_is_found_and_is_not_held(name, row):
    assert parts.with_floor(row, parts.parts()[name].floors)["held"] == "no"


def test_panels_are_timed_move_by_move():
    (row,) = explore.pictures(names=("timing",))
    assert row["moves"] > 15
    assert 0 < row["median_ms"] <= row["p95_ms"] <= row["most_ms"]
