"""One contract for four engines: whoever knows one engine knows the others.

Each engine is described by one row: how it is called on a small input. The tests go over the rows.
"""

import inspect
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dlsim import bricks, cpugpu, realtime, steady
from dlsim.errors import InputError
from dlsim.reading import BaseReading
from dlsim.record import Derived, NamedRecord, find_record, require_names
from tests.helpers.refusals import require_refusals


def tasks() -> pd.DataFrame:
    return pd.DataFrame({"arrival": [0, 0, 0], "sigma": [6, 18, 6], "deadline": [10, 64, 16]})


def jobs() -> pd.DataFrame:
    return pd.DataFrame(
        {"app": "A", "arrival": [0.0, 0.0, 1.0], "cpu_time": 40.0, "gpu_time": 10.0}
    )


def grid() -> Any:
    table = {"arrival": [0.0, 1.0], "client": 0, "send": 10, "recv": 10, "work": 2000, "due": 250.0}
    return bricks.Environment(
        servers=pd.DataFrame({"domain": 0, "performance": [200, 100]}),
        clients=pd.DataFrame({"domain": [0]}),
        traces=[[[100.0]] * 4],
        step=10,
        requests=pd.DataFrame(table),
    )


def platform() -> Any:
    return steady.topology.random(clusters=4, connectivity=0.7, seed=1)


@dataclass(frozen=True)
class Engine:
    """How one engine is called."""

    module: Any
    registry: dict[str, Any]  # its policies or methods by name
    record: type  # their class
    verb: Callable[..., Any]
    run: Callable[..., Any]  # runs a policy on the small input: run(policy, reading, **more)
    own: Callable[..., Any] | None = None  # what a user may give as a policy, if anything
    table: str = ""  # the result's table, and its columns of instants
    times: tuple[str, ...] = ()


def send_to_the_first_server(view: Any) -> int:
    return 0


def place_on_the_gpu(state: Any, policy: Any, reading: Any) -> Any:
    device = state.first_free("gpu")
    if device is None or not state.main:
        return None
    return cpugpu.Decision(state.main.head.job, device, "mine")


def work_at_home(given: Any) -> tuple[Any, Any]:
    work = np.zeros((given.applications, given.clusters))
    for row, cluster in enumerate(given.origin):
        work[row, cluster] = 0.5 * given.speed[cluster] / given.work[row]
    return work, np.zeros((given.clusters, given.clusters), dtype=int)


CLUSTER, MACHINE = realtime.Cluster(nodes=2, cms=1, cps=1), cpugpu.Machine(1, 1)
ENGINES = {
    "realtime": Engine(
        realtime, realtime.POLICIES, realtime.Policy, realtime.simulate,
        lambda policy, *more, **how: realtime.simulate(tasks(), CLUSTER, policy, *more, **how),
        table="tasks", times=("arrival", "start", "completion"),
    ),
    "cpugpu": Engine(
        cpugpu, cpugpu.POLICIES, cpugpu.Policy, cpugpu.simulate,
        lambda policy, *more, **how: cpugpu.simulate(jobs(), MACHINE, policy, *more, **how),
        own=place_on_the_gpu, table="jobs", times=("arrival", "start", "completion"),
    ),
    "steady": Engine(
        steady, steady.METHODS, steady.Method, steady.solve,
        lambda method, *more, **how: steady.solve(platform(), method, *more, **how),
        own=work_at_home,
    ),
    "bricks": Engine(
        bricks, bricks.POLICIES, bricks.Policy, bricks.simulate,
        lambda policy, *more, **how: bricks.simulate(grid(), policy, *more, **how),
        own=send_to_the_first_server,
        table="requests", times=("start", "completion"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ENGINES)
class TestContract:
    def test_the_verb_names_what_it_runs_and_how(self, name):
        parameters = list(inspect.signature(ENGINES[name].verb).parameters.values())
        positional = [one for one in parameters if one.kind is one.POSITIONAL_OR_KEYWORD]
        word = "method" if name == "steady" else "policy"
        assert [one.name for one in positional][-3:] == [word, "reading", "engine"]
        assert [one.default for one in positional][-2:] == [None, "auto"]
        assert all(one.default is one.empty for one in positional[:-2])  # no policy by default
        assert all(one.kind is one.KEYWORD_ONLY for one in parameters[len(positional) :])

    def test_every_row_of_the_registry_has_a_name_and_a_text(self, name):
        rows = ENGINES[name].registry
        assert len(rows) >= 6
        require_names(rows)
        for row in rows.values():
            assert isinstance(row, ENGINES[name].record)
            assert isinstance(row, NamedRecord)
            assert 10 <= len(row.text) <= 200

    def test_a_record_is_never_without_words(self, name):
        row = next(iter(ENGINES[name].registry.values()))
        unnamed = replace(row, name=Derived(), text=Derived())
        assert unnamed.name.strip()
        assert unnamed.text.strip()
        for word in ("name", "text"):
            with pytest.raises(InputError, match=f"{word} of a"):
                replace(row, **{word: " "})

    def test_results_say_what_decided_and_can_be_compared(self, name):
        engine = ENGINES[name]
        names = list(engine.registry)[:3]
        results = [engine.run(one) for one in names]
        assert [one.name for one in results] == names
        for one in results:
            assert isinstance(one.reading, BaseReading)
            assert getattr(one, "method" if name == "steady" else "policy").name == one.name
            one.check()
        table = pd.DataFrame([one.summary() for one in results])
        assert list(table.index) == names
        assert table.shape[1] >= 4
        assert table.dtypes.map(lambda kind: kind.kind in "fiu").all()
        documented = engine.run(names[0]).summary.__doc__
        assert all(column in documented for column in table.columns)

    def test_a_record_runs_as_its_name_does(self, name):
        engine = ENGINES[name]
        key, row = next(iter(engine.registry.items()))
        assert engine.run(row).summary().equals(engine.run(key).summary())
        assert find_record("policy", row, engine.registry) == (key, row)

    def test_a_function_of_a_user_runs_or_is_refused_with_the_remedy(self, name):
        engine = ENGINES[name]
        if engine.own is None:
            with pytest.raises(InputError, match="Policy"):
                engine.run(send_to_the_first_server)
            return
        result = engine.run(engine.own)
        result.check()
        assert engine.own.__name__ in result.name

    def test_the_default_reading_is_that_of_the_engine(self, name):
        engine = ENGINES[name]
        assert engine.run(next(iter(engine.registry))).reading == engine.module.Reading()

    def test_unknown_names_readings_and_speeds_are_refused_with_the_known_ones(self, name):
        engine = ENGINES[name]
        key = next(iter(engine.registry))
        require_refusals([
            (lambda: engine.run("no such policy"), key),
            (lambda: engine.run(key, {"link": "shared"}), "reading must be a Reading"),
            (lambda: engine.run(key, engine="fast"), "engine must be one of"),
        ])  # fmt: skip

    def test_columns_of_instants_have_one_name(self, name):
        engine = ENGINES[name]
        if engine.table:
            table = getattr(engine.run(next(iter(engine.registry))), engine.table)
            assert set(engine.times) <= set(table.columns)
            assert "end" not in table.columns or name == "bricks"  # of service, there


def test_a_column_that_nothing_reads_is_refused_by_name_unless_it_is_ignored():
    misspelt = jobs().assign(weigth=1.0)
    with pytest.raises(InputError, match="'weigth' that is not known"):
        cpugpu.simulate(misspelt, MACHINE, "mct")
    cpugpu.simulate(misspelt, MACHINE, "mct", ignore=("weigth",))
