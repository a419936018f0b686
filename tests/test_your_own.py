"""What 80-your-own shows: its cells, run in one namespace, against numbers worked elsewhere."""

import itertools
import math
from pathlib import Path

import pytest
from gmpy2 import mpq as Fraction

from tests.executed import in_one_space
from tests.twins import inserted, own, realtime

NOTEBOOK = Path(__file__).parents[1] / "notebooks" / "80-your-own.ipynb"


@pytest.fixture(scope="module")
def seen(tmp_path_factory):
    """Everything that the notebook's cells leave, and what each shows, by its id."""
    return in_one_space(NOTEBOOK, tmp_path_factory.mktemp("elsewhere"))


def same(table, rows):
    """Compare with rows in which None stands for no value."""
    flat = list(itertools.chain.from_iterable(table.astype(float).to_numpy().tolist()))
    flat = [None if math.isnan(value) else value for value in flat]
    assert flat == [value for row in rows for value in row]


def test_three_tasks_worked_by_hand(seen):
    _, shown = seen
    same(shown["own-04"], [[1, 0, 2, 8], [1, 8, 1, 44], [0, None, 0, None]])
    assert shown["own-05"].deadline == 20
    assert shown["own-07"].tolist() == [0, 0, pytest.approx(1 / 3)]
    same(shown["own-09"], [[0, 0], [0, 6], [0, None]])
    same(shown["own-11"], [[21, 21, 21], [53, 48.09, 38.5], [None, None, 54.5]])


def test_rules_of_ones_own_refuse_as_the_plain_twin(seen):
    names, _ = seen
    busy = names["busy"]
    costs = realtime.Costs(10, Fraction(10), Fraction(10), Fraction(0), Fraction(0))
    rules = {
        "MCDF reversed": ("fifo", "opr", "dearest_last", None),
        "least laxity": ("fifo", "opr", "laxity", None),
        "n_min + 1": ("edf", "opr", None, "one_more"),
        "halving": ("edf", "halves", None, None),
    }
    rows = inserted.table(busy[["arrival", "sigma", "deadline"]].to_numpy().tolist())
    for name, (order, partition, key, count) in rules.items():
        records = own.Twin(costs, order, "min", partition, True, {}, key, count).run(rows)
        refused = sum(not row.admitted for row in records) / len(busy)
        assert names["ratios"][name] == refused


def test_the_policy_of_a_file_stands_beside_the_papers_on_its_figure(seen):
    names, shown = seen
    labels = [text.get_text() for text in shown["own-11f"].axes[0].get_legend().get_texts()]
    assert labels[-1] == "LLF"
    assert {"MCDF", "EDFMN"} <= set(labels)
    assert set(names["table"]["policy"]) == set(labels)


def test_two_connections_carry_twenty_of_twenty_one_units(seen):
    best = seen[0]["best"]
    assert best.objective == pytest.approx(21)
    assert best.connections.tolist() == [[0, 2], [0, 0]]


def test_an_earlier_deadline_costs_more_and_fails_less(seen):
    table = seen[1]["own-15"]
    same(table.round({"mean cost": 0}), [[0.24, 263], [0.042, 372], [0.104, 241]])
    rise, fall = (100 * (cost / table["mean cost"].iloc[0] - 1) for cost in table["mean cost"][1:])
    assert seen[1]["own-15 said"] == (
        f"Of the requests 24.0% fail with Opt 1, with Opt 0.5 4.2% (cost +{rise:.0f}%), "
        f"with mine 10.4% ({fall:.0f}%).\n"
    )
    assert fall < 0 < 40 < rise


def test_a_second_copy_is_lost_less_often_and_paid_for(seen):
    table = seen[1]["own-15b"]
    lost, cost = table["lost"].tolist(), table["cost"].tolist()
    assert lost[0] > 2 * max(lost[1:])
    assert min(cost[1:]) > 1.5 * cost[0]
    once, *both = (f"{100 * share:.1f}%" for share in lost)
    assert seen[1]["own-15b said"].startswith(
        f"Sent once, {once} of the requests are lost; twice, "
    )
    assert all(share in seen[1]["own-15b said"] for share in both)
    assert f"(cost +{100 * (cost[1] / cost[0] - 1):.0f}%)" in seen[1]["own-15b said"]


def test_a_batch_is_called_once_in_every_minute_with_requests(seen):
    names, shown = seen
    minutes = {math.ceil(time / 60) for time in names["env"].requests["time"]}
    said = f"{len(names['env'].requests)} requests were decided in {len(minutes)} calls, 0 off"
    assert shown["own-15d said"].startswith(said)
    same(shown["own-15d"], [[0.104], [0.208]])


def test_history_is_done_first(seen):
    assert seen[1]["own-17"].round().tolist() == [216, 177, 133]


def test_what_an_operator_reads_is_said_and_drawn(seen):
    advice = seen[0]["advice"]
    refused = advice.refused
    assert len(seen[1]["own-12c"].axes) == 1
    assert len(seen[1]["own-12d"].axes) == 3
    assert len(refused) > 10
    assert (refused["promise"] != refused["deadline"]).all()
    assert seen[1]["own-12e"].index.isin(refused.index).all()
    # the example's waits were made by EASY on the same machine
    assert (advice.jobs["log"] == advice.jobs["easy"]).all()
