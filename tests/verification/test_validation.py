"""85-validation: other simulators give the times of the engine, and would show a difference."""

import math
from pathlib import Path

import nbformat
import numpy as np
import pandas as pd
import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def shown():
    book = nbformat.read(ROOT / "notebooks" / "85-validation.ipynb", 4)
    names = {}
    for cell in book.cells:
        if cell.cell_type == "code":
            exec(compile(cell.source, cell.id, "exec"), names)
    return names


def times_by(shown, name, **changed):
    """Return the times of a case by SimPy, perhaps with other arguments, and by the engine."""
    execution, arguments, ours = shown["cases"][name]
    return execution(shown["SimPy"], *changed.get("arguments", arguments)), ours


def hops_of(run):
    """How many packets cross how many links."""
    env, sent_to = run.environment, run.requests["server"].to_numpy(int)
    home, place = env.clients["domain"].to_numpy(), env.servers["domain"].to_numpy()
    count = 0
    for one, server in zip(env.requests.itertuples(), sent_to, strict=True):
        a, b = int(home[one.client]), int(place[server])
        ways = (one.send, env.topology.path(a, b)), (one.recv, env.topology.path(b, a))
        count += sum(math.ceil(data / env.packet) * len(way) for data, way in ways)
    return count


@pytest.mark.parametrize("simulator", ["SimPy", "SimGrid"])
def test_their_times_are_those_of_the_engine(shown, simulator):
    """Live, or as shipped; SimGrid counts whole bytes, each send's to half a one in 1e10."""
    table = shown["table"][shown["table"]["simulator"].str.startswith(simulator)]
    table = table.set_index("case").loc[list(shown["cases"])]
    for name, (_, _, ours) in shown["cases"].items():
        assert table.at[name, "sends"] == len(ours)
        assert table.at[name, "last"] == pytest.approx(np.nanmax(ours), rel=1e-12)
    hops = pd.Series({name: hops_of(run) for name, run in shown["runs"].items()})
    sends = hops.reindex(table.index).fillna(table["sends"])
    assert (table["apart"] < 1e-12 * table["last"] + 0.5e-10 * sends).all()


def test_requests_by_hand(shown):
    """In the notebook's words: there at 2.2 and 2.3, done at 5.2 and 8.2, back at 6 and 9."""
    for times in times_by(shown, "B: by hand"):
        assert times == pytest.approx(np.array([[2.2, 5.2, 6.0], [2.3, 8.2, 9.0]]), rel=1e-12)


@pytest.mark.parametrize("name", ["M: FIFOAN", "C: mct"])
def test_a_node_that_is_not_free_is_noticed(shown, name):
    rows = shown["cases"][name][1][0]
    line, node, after, waits, send, work = rows[0]
    slow = [(line, node, after, waits, send, work * 1.01), *rows[1:]]
    theirs, ours = times_by(shown, name, arguments=[slow])
    assert np.nanmax(np.abs(theirs - ours)) > 0.009 * work


def test_a_wrong_server_is_noticed(shown):
    env, sent_to = shown["cases"]["B: greedy"][1]
    other = sent_to.copy()
    other[0] = (other[0] + 1) % len(env.servers)
    theirs, ours = times_by(shown, "B: greedy", arguments=[env, other])
    assert np.abs(theirs - ours).max() > 1


def test_flows_end_with_the_period_at_its_rates_only(shown):
    """At the schedule's rates no link is asked for more than it has; shared fairly, some wait."""
    flowed = shown["flowed"].set_index("case")
    rated, fair = (flowed.loc[f"S: one period as flows, {how}"]
                   for how in ("at the schedule's rates", "shared fairly"))  # fmt: skip
    assert rated["apart"] < 1e-6
    assert fair["last"] > 1.01
    assert rated["sends"] == fair["sends"] > 50


def test_ends_are_those_that_dlt_studio_asserts(shown):
    table = shown["asserted"].set_index("case")
    given = table.index.str.startswith("five")  # their test asserts it to 0.1 %
    apart = (table["dlsim"] / table["DLT Studio"] - 1).abs()
    assert (apart[~given] < 1e-12).all()
    assert (apart[given] < 1e-3).all()
