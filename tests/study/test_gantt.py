"""Timing diagrams show every chunk where and when it was, and nothing else."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from hypothesis import given, settings
from hypothesis import strategies as st

from dlsim.study import plots
from tests.helpers.refusals import refuses_each

# Two tasks at once and a third on their nodes; numbers are free, sums are not.
CHUNKS = pd.DataFrame(
    [
        (0, 0, 0.6, 0.0, 2.0, 8.0),
        (0, 1, 0.4, 2.0, 3.0, 8.0),
        (1, 2, 1.0, 0.0, 1.0, 5.0),
        (2, 0, 1.0, 8.0, 9.0, 12.0),
    ],
    columns=list(plots.CHUNK_COLUMNS),
)
TASKS = pd.DataFrame({"arrival": [0.0, 0.0, 4.0], "deadline": [9.0, 6.0, 100.0]})


def boxes(ax):
    """Colour, row, start, end, hatched of every bar."""
    for drawn in ax.collections:
        for path, color in zip(drawn.get_paths(), drawn.get_facecolor(), strict=True):
            for corners in path.vertices.reshape(-1, 5, 2):
                (start, low), (end, high) = corners.min(axis=0), corners.max(axis=0)
                yield tuple(color[:3]), round((low + high) / 2, 3), start, end, drawn.get_hatch()


def bars(ax):
    """(row, start, end, hatched) of every bar."""
    return {(row, start, end, bool(hatch)) for _, row, start, end, hatch in boxes(ax)}


def rows(ax):
    return [text.get_text() for text in ax.get_yticklabels()]


def test_sends_computations_and_the_link():
    ax = plots.plot_gantt(CHUNKS)
    # two tasks send at once, so the row says whose link it is
    assert rows(ax) == ["a link per task", "node 0", "node 1", "node 2"]
    assert rows(plots.plot_gantt(CHUNKS[CHUNKS["task"] != 1]))[0] == "link"
    sends = {(1, 0, 2), (2, 2, 3), (3, 0, 1), (1, 8, 9)}
    computes = {(1, 2, 8), (2, 3, 8), (3, 1, 5), (1, 9, 12)}
    # task 1 sends while task 0 does: two lanes of half the height on the link's row
    lanes = {(-0.18, 0, 2), (-0.18, 2, 3), (0.18, 0, 1), (-0.18, 8, 9)}
    assert bars(ax) == {(*bar, True) for bar in sends | lanes} | {(*b, False) for b in computes}
    assert ax.get_ylim()[0] > ax.get_ylim()[1]  # the link is on top
    assert [text.get_text() for text in ax.texts] == ["0", "0", "1", "2"]


def test_one_colour_per_task():
    ax = plots.plot_gantt(CHUNKS, link=False)
    colors = {}
    for color, _, start, _, hatch in boxes(ax):
        # under a hatch it is mixed with white: 35 % of the task's color
        ink = 1 - (1 - np.array(color)) / 0.35 if hatch else np.array(color)
        colors.setdefault(tuple(ink.round(9)), set()).add(start)
    assert sorted(map(sorted, colors.values())) == [[0, 1], [0, 2, 3], [8, 9]]


def test_rows_are_idle_nodes_in_an_own_order_or_named_devices():
    counted = CHUNKS.assign(node=CHUNKS["node"] + 1)
    named = CHUNKS.assign(node=["gpu0", "cpu0", "cpu1", "gpu0"])
    for chunks, nodes, labels in (
        (CHUNKS, 4, ["node 0", "node 1", "node 2", "node 3"]),
        (CHUNKS, [2, 1, 0], ["node 2", "node 1", "node 0"]),
        (counted, 3, ["node 1", "node 2", "node 3"]),  # counted from one
        (named, None, ["cpu0", "cpu1", "gpu0"]),
    ):
        assert rows(plots.plot_gantt(chunks, nodes=nodes, link=False)) == labels


def test_deadlines_are_marked_where_they_are_near():
    ax = plots.plot_gantt(CHUNKS, tasks=TASKS)
    marks = {
        float(line.get_xdata()[0])
        for line in ax.get_lines()
        if line.get_marker() == "v" and len(line.get_xdata())
    }
    assert marks == {9.0, 6.0}  # that of task 2, at 104, is far beyond the last chunk
    assert "deadline" in [text.get_text() for text in ax.get_legend().get_texts()]


def test_chunks_may_have_a_compute_start_of_their_own_and_given_axes():
    _, given = plt.subplots()
    ax = plots.plot_gantt(CHUNKS.assign(compute_start=[2.5, 3, 1, 9]), link=False, ax=given)
    assert ax is given
    assert (0, 2.5, 8, False) in bars(ax)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 30), st.integers(1, 9)), min_size=1, max_size=20))
def test_lanes_never_overlap_and_are_as_few_as_possible(spans):
    start = np.array([a for a, _ in spans])
    end = start + np.array([length for _, length in spans])
    lanes = plots.lanes_of(start, end)
    for lane in set(lanes):
        order = np.argsort(start[lanes == lane], kind="stable")
        a, b = start[lanes == lane][order], end[lanes == lane][order]
        assert (b[:-1] <= a[1:]).all()
    busiest = max(((start <= t) & (t < end)).sum() for t in start)
    assert lanes.max() + 1 == busiest


def test_timing_diagram_of_one_task_and_its_set_ups():
    one = CHUNKS[CHUNKS["task"] == 0]
    ax = plots.plot_timing(one.iloc[::-1])  # in any order
    shares = [r"$P_{1}$: $\alpha_{1} = 0.6$", r"$P_{2}$: $\alpha_{2} = 0.4$"]
    assert rows(ax) == ["$P_0$ (link)", *shares]
    sends = {(0, 0, 2), (0, 2, 3), (1, 0, 2), (2, 2, 3)}
    computes = {(1, 2, 8), (2, 3, 8)}
    plain = {(*bar, True) for bar in sends} | {(*bar, False) for bar in computes}
    assert bars(ax) == plain
    ax = plots.plot_timing(one, st=0.5, sc=0.25)
    setups = {(0, 0, 0.5), (0, 2, 2.5), (1, 0, 0.5), (2, 2, 2.5), (1, 2, 2.25), (2, 3, 3.25)}
    assert bars(ax) - plain == {(*bar, False) for bar in setups}
    said = [text.get_text() for text in ax.get_legend().get_texts()]
    assert said == ["set-up", "sending", "computing", "all end at 8"]


def refused(table=CHUNKS, **options):
    return lambda: plots.plot_gantt(table, **options)


test_what_is_no_schedule_is_refused = refuses_each(
    [
        (lambda: plots.plot_timing(CHUNKS), "shows one task"),
        (refused(CHUNKS.drop(columns="alpha")), "chunks need the columns .*; alpha not found"),
        (refused(CHUNKS.iloc[:0]), "chunks must have at least one row"),
        (refused(CHUNKS.assign(send_end=[2, 3, -1, 9])), "task 1 on node 2.*negative shares"),
        (refused(CHUNKS.assign(compute_end=np.nan)), "finite"),
        (refused(nodes=2), "on node 2; the nodes drawn are 0, 1: draw more"),
        (refused(nodes=["a"]), "on node 0; the nodes drawn are a: draw more"),
        (refused(until=0), "above 0"),
        (refused(tasks=TASKS[["arrival"]]), "deadline"),
    ]
)


def test_every_task_has_a_colour_of_its_own_on_which_text_is_legible():
    colors = plots.task_colors(range(60))
    assert len({tuple(np.round(color, 3)) for color in colors.values()}) == 60
    few = plots.task_colors("ab")
    assert [few[task] for task in "ab"] == [colors[0], colors[1]]
    assert plots.legible_on("#0072B2") == "white"
    assert plots.legible_on("#56B4E9") == plots.legible_on("white") == "black"


def test_refused_tasks_have_a_row_of_their_own():
    tasks = TASKS.assign(admitted=[True, True, True])
    assert "refused" not in rows(plots.plot_gantt(CHUNKS, tasks=tasks))
    refused = {"arrival": [3.0, 3.0, 15.0, 50.0], "deadline": 1.0, "admitted": False}
    more = pd.DataFrame(refused, index=[7, 8, 5, 9])
    ax = plots.plot_gantt(CHUNKS, tasks=pd.concat([tasks, more]), until=20)
    assert rows(ax)[-1] == "refused"
    marks = [line for line in ax.get_lines() if line.get_marker() == "x"]
    assert [float(line.get_xdata()[0]) for line in marks] == [3, 15]  # 9 came later
    assert [text.get_text() for text in ax.texts][-2:] == ["7, 8", "5"]


def test_a_picture_may_begin_later_and_end_earlier():
    """Numbers are left out where bars are narrow in what is shown, not in all of time."""
    late = CHUNKS.assign(**{name: CHUNKS[name] + 1e6 for name in plots.CHUNK_COLUMNS[3:]})
    ax = plots.plot_gantt(late, since=1e6 + 4, until=1e6 + 12)
    assert ax.get_xlim() == (1e6 + 4, 1e6 + 12)
    assert [text.get_text() for text in ax.texts] == ["0", "0", "1", "2"]
    ax = plots.plot_gantt(CHUNKS, until=6, tasks=TASKS)
    assert ax.get_xlim() == (0, 6)
    assert not any(start >= 6 for _, start, _, _ in bars(ax))
    assert [text.get_text() for text in ax.texts] == ["0", "0", "1"]
