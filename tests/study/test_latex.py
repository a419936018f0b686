"""Tables as LaTeX, by cases worked by hand."""

import pandas as pd

from dlsim.study.results import MAX_COLUMNS_ACROSS, latex_table, write_estimate


def lines(frame):
    """Return the cells of the LaTeX table of a frame, line by line."""
    text = latex_table(frame)
    assert text.startswith(r"\begin{tabular}")
    body = [line for line in text.splitlines() if line.endswith(r"\\")]
    return [[cell.strip() for cell in line.removesuffix(r"\\").split(" & ")] for line in body]


def estimates(**columns):
    size = len(next(iter(columns.values())))
    numbers = {"estimate": [0.25] * size, "low": [0.2] * size, "high": [0.3] * size}
    return pd.DataFrame(columns | numbers | {"n": [10] * size})


def test_an_estimate_has_two_digits_of_its_half_width():
    for numbers, written in (
        ((0.25, 0.2, 0.3), r"$0.250 \pm 0.050$"),
        ((1234.5, 1200.0, 1269.0), r"$1234 \pm 34$"),  # 34.5 on both sides, to even
        ((-0.07319, -0.0843, -0.05574), "$-0.073$ [$-0.084$, $-0.056$]"),
        ((0.5, 0.5, 0.5), "$0.5$"),  # an interval of no width
        ((float("nan"), 0.1, 0.2), "--"),
    ):
        assert write_estimate(*numbers) == written


def test_the_policies_become_columns():
    frame = estimates(load=[0.1, 0.1, 1.0, 1.0, 2.0, 2.0], policy=["MCDF", "EDFMN"] * 3)
    cell = r"$0.250 \pm 0.050$"
    wanted = [["load", "MCDF", "EDFMN"], *([load, cell, cell] for load in ("0.1", "1", "2"))]
    assert lines(frame) == wanted


def test_a_place_without_a_row_is_a_dash_and_a_constant_column_is_left_out():
    frame = estimates(mix=["a", "a", "b"], policy=["history"] * 3, rival=["x", "y", "x"])
    assert lines(frame)[0] == ["rival", "a", "b"]
    assert lines(frame)[2] == ["y", r"$0.250 \pm 0.050$", "--"]


def test_many_values_stay_rows():
    many = MAX_COLUMNS_ACROSS + 1
    frame = estimates(policy=[f"p{k}" for k in range(many)] * 2, load=range(2 * many))
    assert lines(frame)[0] == ["policy", "load", "estimate"]
    assert len(lines(frame)) == 1 + 2 * many


def test_a_column_behind_the_estimates_is_used_where_rows_need_it():
    frame = estimates(policy=["a", "a"]).assign(load=[0.1, 0.2], realised=[0.5, 1.1])
    assert lines(frame)[0] == ["load", "estimate"]


def test_other_tables_keep_their_shape_with_rounded_numbers():
    frame = pd.DataFrame({"task": [3], "start": [8489.7834], "share": [0.66667], "values": [None]})
    assert lines(frame) == [["task", "start", "share"], ["3", "$8490$", "$0.667$"]]


def test_texts_are_escaped():
    frame = pd.DataFrame({"a_b": ["50% & $x$ ~ ^ \\ #1 {y}"]})
    _, _, head, _, row, *_ = latex_table(frame).splitlines()
    assert head == r"a\_b \\"
    wanted = r"50\% \& \$x\$ \textasciitilde{} \textasciicircum{} \textbackslash{} \#1 \{y\} \\"
    assert row == wanted
