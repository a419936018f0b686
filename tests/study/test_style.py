"""One style per policy for life, told apart under colour blindness and without colour."""

import itertools

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_hex, to_rgb

from dlsim.study import plots
from dlsim.study.claims import VERDICTS

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


def lab(color, kind):
    """CIELAB (D65) of a colour as seen with one kind of colour blindness."""
    rgb = np.array(to_rgb(color))
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    linear = np.clip(BLINDNESS[kind] @ linear, 0, 1)
    xyz = (
        np.array(
            [
                [0.4124564, 0.3575761, 0.1804375],
                [0.2126729, 0.7151522, 0.0721750],
                [0.0193339, 0.1191920, 0.9503041],
            ]
        )
        @ linear
        / np.array([0.95047, 1.0, 1.08883])
    )
    f = np.where(xyz > 216 / 24389, np.cbrt(xyz), (24389 / 27 * xyz + 16) / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def test_the_papers_policies_keep_their_style():
    assert {name: tuple(plots.style_of(name)) for name in FOR_LIFE} == FOR_LIFE
    assert list(plots.STYLES)[: len(FOR_LIFE)] == list(FOR_LIFE)


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
    looks = list(plots.STYLES.values())
    assert len(set(looks)) == len(looks)  # in colour, marker and dash
    assert {len(look) for look in looks} == {3}


def test_an_unknown_policy_gets_the_same_style_in_every_process_and_not_that_of_a_known_one():
    # pinned: a change would recolour the figures of all users that named a policy so
    assert tuple(plots.style_of("my own")) == ("#009E73", "X", (0, (5, 2)))
    markers = {look.marker for look in plots.STYLES.values()}
    assert all(plots.style_of(f"policy {i}").marker not in markers for i in range(200))


def test_verdicts_carry_colour_and_symbol():
    words = list(VERDICTS)
    frame = pd.DataFrame([words, words[::-1]], index=["c-1", "c-2"], columns=list("abcdefg"))
    none = frame.map(lambda _: "")
    ax = plots.plot_verdict_map(frame, none)
    symbols = [VERDICTS[word].symbol for word in words + words[::-1]]
    assert [text.get_text() for text in ax.texts] == symbols
    ax.figure.canvas.draw()
    cells = ax.collections[0].get_facecolors()
    colors = [one.color for one in VERDICTS.values()]
    assert [to_hex(cell).upper() for cell in cells[:7]] == colors
    assert [text.get_text() for text in ax.get_yticklabels()] == ["c-1", "c-2"]
    counts = none.mask(frame == "partly supported", "17/20")
    counted = plots.plot_verdict_map(*(one.rename({"c-1": "mcdf-2"}) for one in (frame, counts)))
    assert counted.texts[1].get_text() == f"{VERDICTS['partly supported'].symbol} 17/20"
    assert counted.get_yticklabels()[0].get_text().startswith("2: The two algorithms")


@pytest.mark.parametrize("kind", BLINDNESS)
def test_verdict_text_is_legible_on_every_background(kind):
    # lightness distance of dark text on the tint; CIELAB L* runs from 0 to 100
    for ink in (one.color for one in VERDICTS.values()):
        assert lab(ink, kind)[0] - lab("#222222", kind)[0] > 55


def test_points_of_a_claim_are_drawn_in_percent_with_the_intervals_of_all():
    points = pd.DataFrame(
        [
            (0.1, "a", 0.1, 0.0, 0.3),
            (0.5, "a", 0.2, 0.1, 0.4),
            (0.1, "b", 0.3, 0.2, 0.5),
            (0.5, "b", 0.4, 0.3, 0.6),
        ],
        columns=["load", "what", "estimate", "least", "most"],
    )
    ax = plots.plot_points(points, "load", "points", 0.02)
    lines = {line.get_label(): line for line in ax.containers}
    assert list(lines) == ["a", "b"]
    assert list(lines["b"].lines[0].get_ydata()) == pytest.approx([30, 40])
    ends = [segment[:, 1].tolist() for segment in lines["a"].lines[2][0].get_segments()]
    assert np.array(ends) == pytest.approx(np.array([[0, 30], [10, 40]]))
    edge = [line for line in ax.lines if line.get_linestyle() == "--"]
    assert edge[0].get_ydata() == pytest.approx([2, 2])
