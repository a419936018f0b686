"""One style per policy for life, told apart under colour blindness and without colour."""

import itertools
import subprocess
import sys

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_hex, to_rgb

from dlsim.errors import InputError
from dlsim.study import plot, style
from dlsim.study.claims import SYMBOLS

#: Okabe and Ito, "Color Universal Design", 2008; fixed once, readers rely on them.
FOR_LIFE = {
    "MCDF": ("#000000", "D", "-"),
    "FIFOMN": ("#0072B2", "o", "-"),
    "EDFMN": ("#D55E00", "o", "-"),
    "FIFOAN": ("#56B4E9", "s", (0, (5, 2))),
    "EDFAN": ("#E69F00", "s", (0, (5, 2))),
    "FIFOANNA": ("#009E73", "^", (0, (1, 1.4))),
    "EDFANNA": ("#CC79A7", "^", (0, (1, 1.4))),
}
#: Machado, Oliveira, Fernandes, "A physiologically-based model for simulation of color
#: vision deficiency", IEEE TVCG 15(6), 2009, severity 1.0; on linear RGB.
BLINDNESS = {
    "none": np.eye(3),
    "protanopia": np.array(
        [
            [0.152286, 1.052583, -0.204868],
            [0.114503, 0.786281, 0.099216],
            [-0.003882, -0.048116, 1.051998],
        ]
    ),
    "deuteranopia": np.array(
        [
            [0.367322, 0.860646, -0.227968],
            [0.280085, 0.672501, 0.047413],
            [-0.011820, 0.042940, 0.968881],
        ]
    ),
}
#: A difference of 2.3 in CIELAB is just noticeable; lines need several times that.
APART = 15.0


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


def lab(color, kind):
    """CIELAB (D65) of a colour as seen with one kind of colour blindness."""
    rgb = np.array(to_rgb(color))
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    linear = np.clip(BLINDNESS[kind] @ linear, 0, 1)
    xyz = np.array(
        [
            [0.4124564, 0.3575761, 0.1804375],
            [0.2126729, 0.7151522, 0.0721750],
            [0.0193339, 0.1191920, 0.9503041],
        ]
    ) @ linear / np.array([0.95047, 1.0, 1.08883])  # fmt: skip
    f = np.where(xyz > 216 / 24389, np.cbrt(xyz), (24389 / 27 * xyz + 16) / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def test_the_papers_policies_keep_their_style():
    assert {name: tuple(style.style_of(name)) for name in FOR_LIFE} == FOR_LIFE
    assert list(style.STYLES)[: len(FOR_LIFE)] == list(FOR_LIFE)
    assert style.style_of("EDFMN").color == "#D55E00"


@pytest.mark.parametrize("kind", BLINDNESS)
def test_colours_stay_apart(kind):
    seen = {name: lab(color, kind) for name, (color, _, _) in FOR_LIFE.items()}
    for one, other in itertools.combinations(seen, 2):
        assert np.linalg.norm(seen[one] - seen[other]) > APART, (one, other)


def test_colours_alone_would_not_do_for_pure_hue_pairs():
    # red against green of equal lightness: what the test above must be able to refuse
    one, other = lab("#d02020", "deuteranopia"), lab("#7a7a10", "deuteranopia")
    assert np.linalg.norm(one - other) < APART


def test_no_two_policies_look_alike():
    looks = list(style.STYLES.values())
    assert len(set(looks)) == len(looks)


def test_policies_of_one_colour_differ_without_colour():
    for one, other in itertools.combinations(style.STYLES, 2):
        a, b = style.STYLES[one], style.STYLES[other]
        if a.color == b.color:
            assert (a.marker, a.dash) != (b.marker, b.dash), (one, other)


def test_an_unknown_policy_gets_the_same_style_in_every_process():
    code = "from dlsim.study.style import style_of; print(repr(style_of('my own')))"
    other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert other.stdout.strip() == repr(style.style_of("my own"))
    # pinned: a change would recolour the figures of everybody who named a policy so
    assert tuple(style.style_of("my own")) == ("#009E73", "X", (0, (5, 2)))


def test_an_unknown_policy_never_looks_like_a_known_one():
    markers = {look.marker for look in style.STYLES.values()}
    assert all(style.style_of(f"policy {i}").marker not in markers for i in range(200))


def summary(policies, loads=(0.1, 0.5, 1.0)):
    rows = [
        (policy, load, i + load, i + load - 0.1, i + load + 0.2)
        for i, policy in enumerate(policies)
        for load in loads
    ]
    return pd.DataFrame(rows, columns=["policy", "load", "estimate", "low", "high"])


def test_lines_come_in_the_fixed_order_whatever_the_table_says():
    ax = plot.policy_lines(
        summary(["zeta", "EDFAN", "MCDF"]).sample(frac=1, random_state=0), "load"
    )
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["MCDF", "EDFAN", "zeta"]
    line = ax.get_lines()[0]
    assert to_hex(line.get_color()) == "#000000"
    assert list(line.get_xdata()) == [0.1, 0.5, 1.0]
    assert list(line.get_ydata()) == [2.1, 2.5, 3.0]
    assert len(ax.collections) == 3  # one band each


def test_bands_span_the_interval():
    ax = plot.policy_lines(summary(["MCDF"]), "load")
    ys = ax.collections[0].get_paths()[0].vertices[:, 1]
    assert (ys.min(), ys.max()) == pytest.approx((0.0, 1.2))


def test_bars_beside_each_other_stay_in_view():
    """A transform of their own hides them from matplotlib when it looks for limits."""
    frame = summary(["MCDF", "EDFMN"]).assign(high=50.0, low=-40.0)
    for ax in (
        plot.policy_lines(frame, "load", interval="bar"),
        plot.bands(frame, "load", "policy", label="{}", interval="bar"),
    ):
        (left, right), (low, high) = ax.get_xlim(), ax.get_ylim()
        assert (left < 0.1, right > 1.0, low < -40, high > 50) == (True,) * 4


def test_an_arrow_goes_from_the_frame_of_a_text_to_that_of_another():
    fig, ax = plt.subplots()
    box = {"boxstyle": "square", "pad": 1.0}
    one, other = (ax.text(x, 0.5, "text", ha="center", va="center", bbox=box) for x in (0.2, 0.8))
    plot.arrow(ax, one, other)
    fig.canvas.draw()
    path, _ = ax.texts[-1].arrow_patch._get_path_in_displaycoord()
    tail, head = path[0].vertices[[0, -1], 0]
    frames = [text.get_bbox_patch().get_window_extent() for text in (one, other)]
    assert (tail, head) == pytest.approx((frames[0].x1, frames[1].x0), abs=4.0)


def test_bars_missing_intervals_and_a_given_axes():
    fig, ax = plt.subplots()
    frame = summary(["MCDF", "EDFMN"])
    frame.loc[0, ["low", "high"]] = np.nan
    assert plot.policy_lines(frame, "load", interval="bar", ax=ax, legend=False) is ax
    assert ax.get_legend() is None
    plot.policy_lines(frame.drop(columns=["low", "high"]), "load", ax=ax)
    fig.canvas.draw()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda f: f.drop(columns="policy"), "policy, load, estimate; policy not found"),
        (lambda f: f.iloc[:0], "must have at least one row"),
    ],
)
def test_lines_refuse_what_they_cannot_draw(change, message):
    with pytest.raises(InputError, match=message):
        plot.policy_lines(change(summary(["MCDF"])), "load")
    with pytest.raises(InputError, match="band, bar, none"):
        plot.policy_lines(summary(["MCDF"]), "load", interval="box")


def test_a_heat_map_names_rows_in_their_order_and_brackets_what_is_not_shown():
    names = pd.Categorical(["wide", "narrow"], ["wide", "narrow"])
    table = pd.DataFrame({"what": names, "x": [2.0, 2.0], "estimate": [1.0, -0.5]})
    ax = plot.heat(table.assign(low=[0.5, -1.5], high=[1.5, 0.5]), "what", "x", 1.0)
    assert [text.get_text() for text in ax.get_yticklabels()] == ["wide", "narrow"]
    assert [text.get_text() for text in ax.get_xticklabels()] == ["2"]
    assert [text.get_text() for text in ax.texts] == ["1.00", "[-0.50]"]


def test_verdicts_carry_colour_and_symbol():
    words = list(SYMBOLS)
    frame = pd.DataFrame([words, words[::-1]], index=["c-1", "c-2"], columns=list("abcdef"))
    ax = plot.verdict_heat(frame)
    assert [text.get_text() for text in ax.texts] == [SYMBOLS[w] for w in words + words[::-1]]
    ax.figure.canvas.draw()
    cells = ax.collections[0].get_facecolors()
    assert [to_hex(cell).upper() for cell in cells[:6]] == list(style.VERDICT_INK.values())
    assert [text.get_text() for text in ax.get_yticklabels()] == ["c-1", "c-2"]
    counted = plot.verdict_heat(frame.replace("in part", "in part 17/20").rename({"c-1": "mcdf-2"}))
    assert [text.get_text() for text in counted.texts][1] == f"{SYMBOLS['in part']} 17/20"
    assert counted.get_yticklabels()[0].get_text().startswith("2: Without admission control")
    with pytest.raises(InputError, match="got 'maybe'"):
        plot.verdict_heat(frame.replace("holds", "maybe"))
    with pytest.raises(InputError, match="empty"):
        plot.verdict_heat(frame.iloc[:0])


@pytest.mark.parametrize("kind", BLINDNESS)
def test_verdict_text_is_legible_on_every_background(kind):
    # lightness distance of dark text on the tint; CIELAB L* runs from 0 to 100
    for ink in style.VERDICT_INK.values():
        assert lab(ink, kind)[0] - lab("#222222", kind)[0] > 55


def test_the_theme_is_one_call():
    with plt.rc_context():
        style.use()
        assert plt.rcParams["svg.hashsalt"] == "dlsim"
        assert to_hex(plt.rcParams["axes.prop_cycle"].by_key()["color"][0]) == "#000000"


def test_lines_of_several_policies_stand_side_by_side_and_leave_the_limits():
    frame = summary(["MCDF", "FIFOMN"])
    one, other = plot.axes_of(None), plot.axes_of(None)
    plot.policy_lines(frame, "load", ax=one)
    plot.policy_lines(frame, "load", ax=other, interval="none")
    assert one.get_xlim() == other.get_xlim()
    assert one.dataLim.y0 == frame["low"].min()
    spots = [line.get_transform().transform(line.get_xydata())[0, 0] for line in one.lines[:1]]
    spots += [line.get_transform().transform(line.get_xydata())[0, 0] for line in one.lines
              if line.get_label() == "FIFOMN"]  # fmt: skip
    assert spots[0] != spots[1]
    same = [line.get_transform() == other.transData for line in other.lines]
    assert all(same)
