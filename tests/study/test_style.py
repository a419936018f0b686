"""One style per policy for life, told apart without colour; pictures of claims and verdicts."""

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


def test_the_papers_policies_keep_their_style():
    """Readers who are colour blind tell these colours apart."""
    assert {name: tuple(plots.style_of(name)) for name in FOR_LIFE} == FOR_LIFE
    assert list(plots.STYLES)[: len(FOR_LIFE)] == list(FOR_LIFE)


def test_no_two_policies_look_alike():
    looks = list(plots.STYLES.values())
    assert len(set(looks)) == len(looks)  # in colour, marker and dash
    assert {len(look) for look in looks} == {3}


def test_an_unknown_policy_gets_the_same_style_in_every_process_and_not_that_of_a_known_one():
    # pinned: a change would recolour the figures of all users that named a policy so
    assert tuple(plots.style_of("my own")) == ("#009E73", "X", (0, (5, 2)))
    markers = {look.marker for look in plots.STYLES.values()}
    assert all(plots.style_of(f"policy {i}").marker not in markers for i in range(200))


def contrast(one, other):
    """Return the contrast of two colours by WCAG 2, from 1 to 21."""
    rgb = np.array([to_rgb(one), to_rgb(other)])
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    dark, light = sorted(linear @ [0.2126, 0.7152, 0.0722])
    return (light + 0.05) / (dark + 0.05)


def test_verdicts_carry_colour_and_symbol():
    words = list(VERDICTS)
    assert min(contrast(one.color, "#222222") for one in VERDICTS.values()) > 7
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
