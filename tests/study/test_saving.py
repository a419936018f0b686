"""The shipped numbers stand in grey behind the picture of a smaller run, and nowhere else."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import seaborn as sns

from dlsim.files import shared_file
from dlsim.study import fingerprint, save, saving, session, start

LOADS = (0.1, 0.5, 1.0)
POLICIES = ("MCDF", "EDFMN", "FIFOAN")


@pytest.fixture
def run(monkeypatch, tmp_path):
    """Open sessions in which one sweep ran, whose digest is the shipped one or another."""
    monkeypatch.setattr(fingerprint, "_shipped", lambda paper, scale: frozenset({"shipped"}))

    def opened(paper="mcdf", digest="shipped", **more):
        start(paper, out=str(tmp_path / "results"), **more)
        session.current().experiments.append(("sweep", digest))

    return opened


def made_up(names, places):
    """Return a table of estimates that are all different, and not those that are shipped."""
    table = pd.DataFrame(places, columns=list(names))
    estimate = 0.3 + 0.01 * np.arange(len(table))
    return table.assign(estimate=estimate, low=estimate - 0.2, high=estimate + 0.2, n=3)


def table_of_figure_4():
    places = [(policy, load) for policy in POLICIES for load in LOADS]
    return made_up(("policy", "load"), places).assign(realised_load=1.0)


def draw_lines(table, times=1.0):
    """Draw one line per policy, as figures against the load are drawn."""
    figure, ax = plt.subplots()
    drawn = table.assign(estimate=times * table["estimate"])
    sns.lineplot(drawn, x="load", y="estimate", hue="policy", errorbar=None, ax=ax)
    return figure, ax


def grey_lines(ax):
    return [line for line in ax.lines if line.get_color() == saving.LINE]


def shipped_rows(paper, name, **place):
    """Read a shipped table with pandas alone."""
    table = pd.read_csv(shared_file(f"data/reference/{paper}/{name}.csv"))
    for column, value in place.items():
        table = table[table[column] == value]
    return table


def shipped_line(policy):
    """Return the shipped estimates of Figure 4 at the loads of the table that is drawn."""
    rows = shipped_rows("mcdf", "mcdf-fig4", policy=policy).set_index("load")
    return list(rows.loc[list(LOADS), "estimate"])


def test_a_quick_picture_has_the_shipped_numbers_behind_each_line(run):
    run()
    table, times = table_of_figure_4(), 100.0
    figure, ax = draw_lines(table, times)
    own = list(ax.lines)
    save("mcdf-fig4", table, figure)
    grey = grey_lines(ax)
    for policy, line in zip(POLICIES, grey, strict=True):
        assert list(line.get_xdata()) == list(LOADS)
        assert line.get_ydata() == pytest.approx(times * np.array(shipped_line(policy)))
        assert line.get_zorder() < min(one.get_zorder() for one in own)
    first = shipped_rows("mcdf", "mcdf-fig4", policy="MCDF", load=LOADS[0]).iloc[0]
    corners = ax.collections[0].get_paths()[0].vertices
    band = corners[corners[:, 0] == LOADS[0], 1]
    ends = band.min(), band.max()
    assert ends == pytest.approx((times * first["low"], times * first["high"]))
    assert [text.get_text() for text in figure.texts] == [saving.CAPTION]
    # hatched, so that it is not the band of a black line
    assert [one.get_hatch() is not None for one in ax.collections] == [True] * len(POLICIES)
    save("mcdf-fig4", table, figure)  # written again
    assert len(grey_lines(ax)) == len(POLICIES)
    assert len(figure.texts) == 1


def test_a_grey_interval_ends_where_no_number_can_be(run):
    """The shipped interval is wider than the range that is given, which is that of its mean."""
    run()
    table = table_of_figure_4()
    figure, ax = draw_lines(table, 100.0)
    ends = shipped_line("MCDF")
    save("mcdf-fig4", table, figure, within=(min(ends), max(ends)))
    corners = ax.collections[0].get_paths()[0].vertices[:, 1]
    assert (corners.min(), corners.max()) == pytest.approx((100 * min(ends), 100 * max(ends)))


def test_dots_at_categories_have_them_at_their_own_places(run):
    run("bricks")
    intervals, policies, versions = (60, 90), ["Greedy", "D-0.5"], ("x/x", "L/F")
    names = ("interval", "policy", "version")
    table = made_up(names, [(i, p, v) for i in intervals for p in policies for v in versions])
    places = {"x": "policy", "y": "percent", "hue": "version", "row": "interval"}
    look = {"kind": "point", "dodge": 0.5, "linestyle": "none", "errorbar": None}
    grid = sns.catplot(table.assign(percent=100 * table["estimate"]), **places, **look)
    dots = {
        interval: [line for line in ax.lines if len(line.get_xdata())]
        for interval, ax in grid.axes_dict.items()
    }
    save("bricks-fig3", table, grid)
    for interval, ax in grid.axes_dict.items():
        for version, own, grey in zip(versions, dots[interval], grey_lines(ax), strict=True):
            rows = shipped_rows("bricks", "bricks-fig3", interval=interval, version=version)
            wanted = 100 * rows.set_index("policy").loc[policies, "estimate"]
            assert list(grey.get_ydata()) == pytest.approx(list(wanted))
            assert list(grey.get_xdata()) == list(own.get_xdata())


def test_lines_of_equal_or_missing_numbers_have_each_its_own(run):
    run()
    equal, missing = table_of_figure_4(), table_of_figure_4()
    equal["estimate"] = np.tile(equal["estimate"].iloc[: len(LOADS)], len(POLICIES))
    missing.loc[missing["load"] == LOADS[0], "estimate"] = np.nan
    for table in (equal, missing):
        figure, ax = draw_lines(table.fillna({"estimate": 0.77}))  # seaborn leaves out blanks
        save("mcdf-fig4", table, figure)
        for policy, line in zip(POLICIES, grey_lines(ax), strict=True):
            assert line.get_ydata() == pytest.approx(shipped_line(policy))


def test_a_policy_that_is_not_shipped_has_none(run):
    run()
    table = table_of_figure_4().replace({"policy": {"FIFOAN": "mine"}})
    figure, ax = draw_lines(table)
    save("mcdf-fig4", table, figure)
    assert len(grey_lines(ax)) == len(POLICIES) - 1


NOTHING = {
    "full scale": ({"scale": "full"}, "mcdf-fig4", {}),
    "another experiment": ({"digest": "other"}, "mcdf-fig4", {}),
    "another reading": ({"reading": {"link": "shared"}}, "mcdf-fig4", {}),
    "no file": ({}, "mcdf-fig4b", {}),
    "other columns": ({}, "mcdf-fig4", {"colour": "red"}),
    "other numbers than drawn": ({}, "mcdf-fig4", {"estimate": 0.123}),
    "other places than drawn": ({}, "mcdf-fig4", {"load": 7.5}),
}


@pytest.mark.parametrize("case", NOTHING)
def test_nothing_is_drawn(run, case):
    how, name, change = NOTHING[case]
    run(**how)
    table = table_of_figure_4()
    figure, ax = draw_lines(table)
    save(name, table.assign(**change), figure)
    assert not grey_lines(ax)
    assert not ax.collections
    assert not figure.texts


def test_what_is_no_line_of_the_table_gets_nothing(run):
    run()
    table = table_of_figure_4()
    mcdf = table[table["policy"] == "MCDF"]
    figure, (left, right) = plt.subplots(1, 2)
    left.errorbar(mcdf["load"], mcdf["estimate"], 0.2, capsize=3)
    right.axhline(mcdf["estimate"].iloc[0])
    right.plot(LOADS, [0.9, 0.9, 0.9])
    save("mcdf-fig4", table, figure)
    assert len(grey_lines(left)) == 1
    assert not grey_lines(right)
