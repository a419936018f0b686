"""The panel of the GPU pipeline: hand cases, the twin, and what its blocks and words say."""

import re

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.collections import PolyCollection
from matplotlib.colors import to_rgb

from dlsim import explore
from dlsim.cpugpu.pipeline import equal_chunks_time
from dlsim.errors import InputError
from dlsim.explore import devices
from dlsim.explore.devices import DRAWN, STREAMS
from dlsim.study import gantt
from tests.scale import SCALE
from tests.twins import cpugpu_pipeline as twin

PANEL = explore.pipeline

HAND = {"chunks": 5, "copy_in": 3.0, "kernel": 1.0, "copy_out": 2.0}


def draw(**given):
    """The figure, its words on one line, its timelines and the speed-up."""
    figure = PANEL.update(**PANEL.values(**given))
    *timelines, right = figure.axes
    return figure, " ".join(figure.get_suptitle().split()), timelines, right


def ends_said(words):
    """The ends that the sentence names for one, two, three streams."""
    told = re.search(r"end at ([\d., e+]+) with 1, 2, 3 streams", words)
    return [float(number) for number in told[1].split(", ")]


def spans(ax):
    """Start and end of every block of a timeline, with its middle row."""
    boxes = [path.get_extents() for c in ax.collections for path in c.get_paths()]
    return sorted((box.x0, box.x1, round((box.y0 + box.y1) / 2)) for box in boxes)


def by_twin(count, h, m, d, k, **gpu):
    """The end of a pipeline of whole times above 0, by the twin's clock."""
    chunks = [{"h2d": h, "map": m, "d2h": d} for _ in range(count)]
    start = twin.run(chunks, k, **gpu)
    return max(begin + chunks[i][stage] for (i, stage), begin in start.items())


# ------------------------------------------------------------------------ hand cases


@pytest.mark.parametrize(
    ("change", "ends"),
    [
        ({}, [30, 18, 18]),
        ({"engines": 1}, [30, 26, 26]),
        ({"pinned": False}, [30, 30, 30]),
        ({"chunks": 1}, [6, 6, 6]),
    ],
)
def test_ends_by_hand(change, ends):
    _, words, timelines, _ = draw(**{**HAND, **change})
    assert ends_said(words) == ends
    assert [max(end for _, end, _ in spans(ax)) for ax in timelines] == ends
    assert [re.search(r"done at (\S+)", ax.get_title(loc="left"))[1] for ax in timelines] == [
        str(end) for end in ends
    ]


@pytest.mark.parametrize(("issue", "end"), [("depth", 18), ("breadth", 15)])
def test_fermi_by_hand(issue, end):
    given = {**HAND, "chunks": 3, "engines": 1, "issue": issue, "reading": {"queues": "single"}}
    assert ends_said(draw(**given)[1])[2] == end


def test_sentence_tells_gain_and_hidden_copies():
    """Two chunks 2/4/2, two streams or more: 12 for 16, half of the copying under kernels."""
    words = draw(chunks=2, copy_in=2.0, kernel=4.0, copy_out=2.0)[1]
    assert words == (
        "2 chunks of 2 + 4 + 2 end at 16, 12, 12 with 1, 2, 3 streams: three are 1.33 times as "
        "fast as one and hide 50 % of the copying behind kernels; the closed form says "
        "16, 12, 12."
    )


def test_every_block_lies_in_its_lane():
    """One stream: chunk i copies in at 6 i, computes at 6 i + 3, copies out at 6 i + 4."""
    _, _, timelines, _ = draw(**HAND)
    lanes = [label.get_text() for label in timelines[0].get_yticklabels()]
    assert lanes == ["copy in", "kernel", "copy out"]
    wanted = [
        (6 * i + a, 6 * i + b, row)
        for i in range(5)
        for row, (a, b) in enumerate([(0, 3), (3, 4), (4, 6)])
    ]
    assert spans(timelines[0]) == sorted(wanted)
    one = draw(**HAND, engines=1)[2][0]
    assert [label.get_text() for label in one.get_yticklabels()] == ["copies", "kernel"]


# ------------------------------------------------------------------------ against the twin


@given(
    st.integers(1, 10), *[st.integers(1, 10)] * 3, st.sampled_from([1, 2]), st.booleans(),
    st.sampled_from(["d2h", "h2d"]),
)  # fmt: skip
@settings(max_examples=int(10 * SCALE), deadline=None)
def test_picture_is_the_twins(count, h, m, d, engines, pinned, first):
    _, words, timelines, right = draw(
        chunks=count, copy_in=float(h), kernel=float(m), copy_out=float(d), engines=engines,
        pinned=pinned, reading={"first": first},
    )  # fmt: skip
    told = {"pinned": pinned, "first": first}
    ends = {
        (n, k): by_twin(count, h, m, d, k, copy_engines=n, **told) for n in (1, 2) for k in STREAMS
    }
    assert ends_said(words) == [ends[engines, k] for k in DRAWN]
    assert all(len(spans(ax)) == 3 * count for ax in timelines)
    chosen, other, *formula = (list(line.get_ydata()) for line in right.lines)
    assert chosen == pytest.approx([ends[engines, 1] / ends[engines, k] for k in STREAMS])
    assert other == pytest.approx([ends[3 - engines, 1] / ends[3 - engines, k] for k in STREAMS])
    assert bool(formula) is pinned
    for line in formula:
        assert line == pytest.approx([ends[2, 1] / ends[2, k] for k in STREAMS])


@given(st.integers(1, 10), *[st.integers(1, 10)] * 3, st.integers(1, 5))
@settings(max_examples=int(60 * SCALE), deadline=None)
def test_closed_form_is_the_twins(count, h, m, d, k):
    assert equal_chunks_time(count, h, m, d, k) == by_twin(count, h, m, d, k)


# ------------------------------------------------------------------------ labels, readings


def test_blocks_name_their_chunks_from_one():
    _, _, timelines, _ = draw(**HAND)
    for ax in timelines:
        texts = sorted(text.get_text() for text in ax.texts)
        assert texts == sorted(3 * ["1", "2", "3", "4", "5"])
        polygons = [c for c in ax.collections if isinstance(c, PolyCollection)]
        assert polygons


def test_text_on_a_block_stands_out():
    """White on the dark ones, black on the light ones: at least 4.5 to 1 (WCAG 2.1, AA)."""

    def luminance(rgb):
        parts = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in rgb]
        return sum(w * c for w, c in zip((0.2126, 0.7152, 0.0722), parts, strict=True))

    inks = [*devices.STAGE_INK.values(), *devices.INK.values()]
    figure = devices.new_figure(9, 3)
    ax = figure.add_subplot()
    starts = pd.Series(range(len(inks)))
    table = pd.DataFrame({"start": starts, "end": starts + 1, "ink": starts})
    texts = ["A"] * len(inks)
    gantt.plot_blocks(
        ax, table, {0: ""}, 0 * starts, "ink", dict(enumerate(inks)), texts, len(inks)
    )
    assert len(ax.texts) == len(inks)
    for ink, text in zip(inks, ax.texts, strict=True):
        pair = sorted(luminance(to_rgb(color)) for color in (ink, text.get_color()))
        assert (pair[1] + 0.05) / (pair[0] + 0.05) >= 4.5, ink


@pytest.mark.parametrize(
    ("name", "value", "given"),
    [
        ("queues", "single", {"kernel": 9.0}),
        ("queues", "per-engine", {"engines": 1}),
        ("first", "h2d", {"engines": 1}),
    ],
)
def test_switch_changes_a_picture(name, value, given):
    plain, other = draw(**given), draw(**given, reading={name: value})
    assert [spans(ax) for ax in plain[2]] != [spans(ax) for ax in other[2]]


@given(*[st.integers(1, 9)] * 4, st.sampled_from([1, 2]), st.integers(1, 4))
@settings(max_examples=int(40 * SCALE), deadline=None)
def test_option_left_out_changes_nothing(count, h, m, d, engines, k):
    """Of equal chunks the copy out that waits is the earliest chunk's."""
    table = devices.equal_chunks(count, h, m, d)
    ops = [
        devices.run_chunks(table, devices.Gpu(k, engines, first=first)).ops
        for first in ("d2h", "chunk")
    ]
    rows = [sorted(map(tuple, one[["chunk", "stage", "start"]].values)) for one in ops]
    assert rows[0] == rows[1]
    tried = {name: {*options} for name, options in PANEL.switches.items()}
    assert {*devices.devices.SWITCHES["queues"]} == tried["queues"]
    assert {*devices.devices.SWITCHES["first"]} - tried["first"] == {"chunk"}


def test_chunks_must_take_time():
    with pytest.raises(InputError, match="must be above 0"):
        PANEL.figure(copy_in=0.0, kernel=0.0, copy_out=0.0)


def test_picture_is_the_same_twice_and_its_words_lie_inside():
    figure, first = PANEL.drawn(**HAND)
    assert PANEL.drawn(**HAND)[1] == first
    renderer = figure.canvas.get_renderer()
    width, height = figure.canvas.get_width_height()
    for text in (figure._suptitle, *[ax.title for ax in figure.axes]):
        box = text.get_window_extent(renderer)
        assert box.x0 >= 0
        assert box.x1 <= width
        assert (box.y1 <= height) == (text is not figure._suptitle)  # which stands above it
