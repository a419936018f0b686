"""The frame of the panels, and every panel through it: links, controls, errors, readings."""

import io
import math
from dataclasses import replace

import ipywidgets as w
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.image import imread

from dlsim import explore
from dlsim.errors import InputError
from dlsim.explore.panel import Choice, Numbers, Panel, Slider, _png, new_figure
from dlsim.given import LEAST
from tests.scale import LONG, SCALE, some_of

PANELS = list(explore.PANELS)


def draw(n, x, y, law, points, reading):
    if n == 13:
        raise InputError("n must not be 13, got 13: take another")
    figure = new_figure(2, 1)
    figure.suptitle(f"{n} {x:g} {law} <{len(points)}>")
    return figure


TOY = Panel(
    "toy",
    "A toy",
    draw,
    (
        Slider("n", 1, 20, 1, 3, "n"),
        Slider("x", 0.0, 1.0, 0.1, 0.5, "x"),
        Slider("y", 0.1, 1000.0, 0.05, 10.0, "y", log=True),
        Choice("law", ("a", "b"), "law"),
        Numbers("points", (1.0, 2.5), "points", 0.0, 9.0, 3),
    ),
    {"link": ("per_task", "shared"), "flag": (False, True), "base": (1.0, 2.0)},
)


def widgets_of(box, kind=None):
    """Every widget of a panel, or those of one kind, in the order shown."""
    found = [box] if kind is None or isinstance(box, kind) else []
    for child in getattr(box, "children", ()):
        found += widgets_of(child, kind)
    return found


class Shown:
    """A panel without a browser."""

    def __init__(self, panel, **given):
        self.box = panel(**given)
        self.controls = {
            one.description: one
            for one in widgets_of(self.box)
            if isinstance(getattr(one, "description", None), str) and one.description
        }

    def text(self, kind):
        return next(
            (one.value for one in widgets_of(self.box, w.HTML) if f'"dlsim-{kind}' in one.value), ""
        )

    @property
    def call(self):
        return self.text("link").split("'>")[1].split("</code>")[0]

    @property
    def picture(self):
        return bytes(widgets_of(self.box, w.Image)[0].value)


def values_of_link(link, panel):
    """What the call in a link would open with."""
    caught = {}
    stand_in = type("explore", (), {panel.name: lambda **given: caught.update(given)})
    eval(link.replace("&#x27;", "'"), {"explore": stand_in})
    return panel.values(**caught)


# ------------------------------------------------------------------ parameters


def in_range(high):
    """Numbers from 0 on, but none that is out of the range of `dlsim.given`."""
    return st.just(0.0) | st.floats(LEAST, high)


@settings(max_examples=max(20, int(60 * SCALE)), deadline=None)
@given(
    n=st.integers(1, 20), x=in_range(1), y=st.floats(0.1, 1000), law=st.sampled_from("ab"),
    points=st.lists(in_range(9), min_size=1, max_size=3),
    reading=st.fixed_dictionaries(
        {}, optional={k: st.sampled_from(v) for k, v in TOY.switches.items()}
    ),
)  # fmt: skip
def test_a_link_brings_back_the_same_values(**given):
    values = TOY.values(**given)
    assert values_of_link(TOY.link(**given), TOY) == values
    assert set(values["reading"].items()) <= set(given["reading"].items())


class Law:
    """A law.

    Parameters
    ----------
    link, flag : str
        Where ``it`` leads,
        and :math:`\\bar{E}/L`.

    nodes : int
        No switch of the panel.
    """


def test_docstrings_say_what_switches_mean():
    panel = replace(TOY, explained=(Law,))
    assert panel.meanings() == dict.fromkeys(("link", "flag"), "Where it leads, and E/L.")
    (text,) = [one.value for one in widgets_of(panel(), w.HTML) if "<details" in one.value]
    assert "<code>link</code>: Where it leads" in text
    assert not any("<details" in one.value for one in widgets_of(TOY(), w.HTML))


@pytest.mark.parametrize("name", PANELS)
def test_every_switch_of_a_panel_is_explained(name):
    panel = getattr(explore, name)
    assert set(panel.meanings()) == set(panel.switches)


def test_a_link_leaves_defaults_out():
    assert TOY.link() == "explore.toy()"
    assert TOY.link(n=3, reading={"link": "per_task"}) == "explore.toy()"
    assert TOY.link(n=4, points="1, 2; 3", reading={"flag": True}) == (
        "explore.toy(n=4, points=(1.0, 2.0, 3.0), reading={'flag': True})"
    )


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"m": 3}, "toy has no parameter 'm'; it has n, x, y, law, points, reading"),
        ({"n": 0}, "n must be a whole number between 1 and 20, got 0"),
        ({"n": 2.5}, "n must be a whole number between 1 and 20, got 2.5"),
        ({"n": True}, "n must be a whole number between 1 and 20, got True"),
        ({"n": None}, "n must be a whole number between 1 and 20, got None"),
        ({"x": math.nan}, "x must be a number between 0 and 1, got nan"),
        ({"x": math.inf}, "x must be a number between"),
        ({"x": "0.5"}, "x must be a number between 0 and 1, got '0.5'"),
        ({"x": 10**400}, "x must be a number between"),
        ({"y": 0.0}, "y must be a number between 0.1 and 1000, got 0.0"),
        ({"law": "c"}, "law must be one of 'a', 'b'; got 'c'"),
        ({"law": []}, "law must be one of"),
        ({"points": "1, x"}, "points must be numbers with commas between them, got '1, x'"),
        ({"points": ""}, "points must be numbers"),
        ({"points": ()}, "points must hold 1 to 3 numbers, got 0"),
        ({"points": (1, 2, 3, 4)}, "points must hold 1 to 3 numbers, got 4"),
        ({"points": "nan"}, "points[0] must be a number between 0 and 9, got nan"),
        ({"points": (10,)}, "points[0] must be a number between 0 and 9, got 10.0"),
        ({"points": 3}, "points must be numbers"),
        ({"points": None}, "points must be numbers"),
        ({"reading": {"lnk": "shared"}}, "toy has no switch 'lnk'; it has link, flag, base"),
        ({"reading": {"link": "wrong"}}, "link must be one of 'per_task', 'shared'; got 'wrong'"),
        ({"reading": 3}, "reading must be a dict of switches, got 3"),
        ({"reading": None}, "reading must be a dict of switches, got None"),
    ],
)
def test_hostile_values_are_refused_by_name(given, message):
    with pytest.raises(InputError) as caught:
        TOY.values(**given)
    assert message in str(caught.value)


def test_unknown_panels_are_named():
    with pytest.raises(AttributeError, match="has no panel 'timming'; it has timing, schedules"):
        explore.timming  # noqa: B018


# --------------------------------------------------------------------- widgets


def test_every_control_and_switch_is_there_and_moves_the_picture():
    shown = Shown(TOY, n=4)
    assert list(shown.controls) == ["n", "x", "y", "law", "points", "link", "flag", "base"]
    moves = {
        "n": (5, "n=5"), "x": (0.7000000000000001, "x=0.7"), "y": (10**1.05, "y=11.22"),
        "law": ("b", "law='b'"), "points": ("3,4", "points=(3.0, 4.0)"),
        "link": ("shared", "'link': 'shared'"), "flag": (True, "'flag': True"),
        "base": (2.0, "'base': 2.0"),
    }  # fmt: skip
    seen = {shown.text("link")}
    for name, (value, word) in moves.items():
        shown.controls[name].value = value
        call = shown.call.replace("&#x27;", "'")
        assert word in call
        seen.add(shown.text("link"))
        assert values_of_link(call, TOY) == TOY.values(**values_of_link(call, TOY))
    assert len(seen) == len(moves) + 1
    assert shown.picture.startswith(b"\x89PNG")
    assert "5 0.7 b &lt;2&gt;" in shown.text("words")


def test_a_control_that_was_not_moved_keeps_its_value_to_the_last_bit():
    given = {"x": 1 / 3, "y": 2 / 3, "points": (1 / 7,)}
    shown = Shown(TOY, **given)
    shown.controls["n"].value = 7
    assert values_of_link(shown.call, TOY) == TOY.values(n=7, **given)


def test_an_error_is_shown_and_cleared():
    shown = Shown(TOY)
    before, call = shown.picture, shown.call
    shown.controls["n"].value = 13
    assert "<b>Not drawn:</b> n must not be 13" in shown.text("error")
    assert (shown.picture, shown.call) == (before, call)  # both still of the last good values
    shown.controls["points"].value = "1, <script>"
    assert "&lt;script&gt;" in shown.text("error")
    shown.controls["points"].value = "1, 2"
    shown.controls["n"].value = 12
    assert shown.text("error") == ""
    assert "n=12" in shown.call


def test_a_panel_may_open_with_an_error():
    shown = Shown(TOY, n=13)
    image = widgets_of(shown.box, w.Image)[0]
    assert "Not drawn" in shown.text("error")
    assert image.layout.display == "none"
    shown.controls["n"].value = 12
    assert image.layout.display is None


def test_a_figure_of_another_theme_is_left_alone():
    import matplotlib as mpl

    with mpl.rc_context({"lines.linewidth": 7.25}):
        TOY.drawn()
        assert mpl.rcParams["lines.linewidth"] == 7.25


# ------------------------------------------------------------------ every panel


@pytest.mark.parametrize("name", PANELS)
class TestPanel:
    def test_opens_with_words_and_a_link(self, name):
        panel = getattr(explore, name)
        assert panel.name == name
        assert panel.title
        figure, png = panel.drawn()
        words = figure.get_suptitle()
        assert any(letter.isdigit() for letter in words)
        assert words.endswith(".")
        assert panel.link() == f"explore.{name}()"
        assert png.startswith(b"\x89PNG")
        assert png == panel.drawn()[1]

    def test_each_control_at_its_ends_draws_or_says_why_not(self, name):
        panel = getattr(explore, name)
        labels = [control.label for control in panel.controls]
        assert len(set(labels)) == len(labels)
        for number, control in enumerate(panel.controls):
            *others, last = ends_of(control)
            ends = (*others, last)
            for value in ends if LONG >= 1 else ends[number % len(ends) :][:1]:
                given = {control.name: value}
                assert values_of_link(panel.link(**given), panel) == panel.values(**given)
                draws_or_says_why_not(panel, given, to_the_end=value == last)

    def test_each_switch_draws(self, name):
        panel = getattr(explore, name)
        for switch, options in panel.switches.items():
            for option in some_of(options[1:]):
                panel.figure(reading={switch: option})

    def test_shows_every_control_and_switch(self, name):
        panel = getattr(explore, name)
        shown = Shown(panel)
        expected = [control.label for control in panel.controls] + list(panel.switches)
        assert list(shown.controls) == expected
        assert shown.text("error") == ""
        assert shown.call == f"explore.{name}()"


def ends_of(control):
    if isinstance(control, Slider):
        return (control.low, control.high)
    if isinstance(control, Choice):
        return control.options[-1:]
    high = min(control.high, 1e6)
    return ((control.low,), (high,) * control.most)


def draws_or_says_why_not(panel, given, to_the_end=True):
    said = outcome(panel, given, to_the_end)
    assert len(said) > 20
    assert "nan" not in said


def outcome(panel, given, to_the_end):
    """The words of a picture, or why there is none; anything else is a fault."""
    try:
        figure = panel.drawn(**given)[0] if to_the_end else panel.figure(**given)
        return figure.get_suptitle()
    except InputError as error:
        return str(error)


def test_pictures_of_all_panels_are_saved_under_their_names(tmp_path):
    paths = explore.save_pictures(tmp_path / "figures")
    assert [path.name for path in paths] == [
        f"explore-{name.replace('_', '-')}.png" for name in PANELS
    ]
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in paths)
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="choose another folder"):
        explore.save_pictures(tmp_path / "file")


def test_a_remembered_text_is_the_text_as_matplotlib_draws_it():
    figure = new_figure(3, 2)
    for x, angle in ((0.1, 0), (0.6, 30), (0.9, 90)):
        figure.text(x, 0.4, "Áffj g", rotation=angle)
    figure.text(0.1, 0.8, r"$\alpha_1$")
    first, again = _png(figure), _png(figure)
    assert first == again
    ours, plain = io.BytesIO(first), io.BytesIO()
    figure.savefig(plain, dpi=figure.dpi)  # another test may have set the usual one
    ours, plain = (imread(io.BytesIO(one.getvalue()))[..., 0] for one in (ours, plain))
    ink = [(1 - one).sum() for one in (ours, plain)]
    assert ink[0] == pytest.approx(ink[1], rel=0.02)
    shown = [np.argwhere(one < 0.5).mean(axis=0) for one in (ours, plain)]
    np.testing.assert_allclose(*shown, atol=0.5)  # texts begin at whole pixels
