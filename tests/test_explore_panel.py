"""The frame of the panels, and every panel through it: links, controls, errors, readings."""

import base64
import functools
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
from tests.scale import LONG, SCALE, deep, some_of

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
        Slider("y", 0.1, 1000.0, 0, 10.0, "y"),
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
            if getattr(one, "description", None) and not isinstance(one, w.Button)
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

    @property
    def pale(self):
        return "dlsim-stale" in widgets_of(self.box, w.Image)[0]._dom_classes


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
    assert [c.label for c in panel.choices.values()] == 2 * ["Where it leads, and E/L"] + ["base"]
    assert not any("<details" in one.value for one in widgets_of(panel(), w.HTML))


class Long:
    """A law that takes two sentences to explain.

    Parameters
    ----------
    link : str
        Where it leads. Beyond it is nothing.
    """


def test_a_switch_is_named_by_the_first_sentence_of_its_meaning_and_the_rest_unfolds():
    panel = replace(TOY, explained=(Long,))
    assert panel.choices["link"].label == "Where it leads"
    (text,) = [one.value for one in widgets_of(panel(), w.HTML) if "<details" in one.value]
    assert "<li><code>link</code>: Beyond it is nothing.</li>" in text
    assert "Where it leads" not in text


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
        ({"m": 3}, "parameter of toy must be one of n, x, y, law, points, reading; got 'm'"),
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
        ({"reading": {"lnk": 1}}, "switch of toy must be one of link, flag, base; got 'lnk' (did"),
        ({"reading": {"link": "wrong"}}, "link must be one of 'per_task', 'shared'; got 'wrong'"),
        ({"reading": 3}, "reading must be a mapping such as a dict, got 3"),
        ({"reading": None}, "reading must be a mapping such as a dict, got None"),
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
    names = ["n", "x", "y", "law", "points", *TOY.switches]
    assert list(shown.controls) == names
    moves = {
        "n": (5, "n=5"), "x": (0.7000000000000001, "x=0.7"), "y": (12.0, "y=12.0"),
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
    assert "The pale picture is the last one drawn." in shown.text("error")
    assert shown.pale
    shown.controls["points"].value = "1, <script>"
    assert "&lt;script&gt;" in shown.text("error")
    shown.controls["points"].value = "1, 2"
    shown.controls["n"].value = 12
    assert shown.text("error") == ""
    assert "n=12" in shown.call
    assert not shown.pale


def test_a_panel_may_open_with_an_error():
    shown = Shown(TOY, n=13)
    image = widgets_of(shown.box, w.Image)[0]
    assert "Not drawn" in shown.text("error")
    assert image.layout.display == "none"
    shown.controls["n"].value = 12
    assert image.layout.display is None


def test_a_picture_is_pale_while_the_next_one_is_computed():
    seen = []

    def slow(**given):
        seen.append(shown.pale if shown else None)
        return draw(**given)

    shown, panel = None, replace(TOY, update=slow)
    shown = Shown(panel)
    shown.controls["n"].value = 7
    assert seen == [None, True]
    assert not shown.pale


def test_a_picture_keeps_its_size_and_its_words_are_said_once():
    shown = Shown(TOY)
    image = widgets_of(shown.box, w.Image)[0]
    assert (image.width, image.height) == ("192", "96")  # 2 x 1 inches: no jump while it loads
    words = "3 0.5 a &lt;2&gt;"
    assert sum(words in one.value for one in widgets_of(shown.box, w.HTML)) == 1
    figure, png = TOY.drawn()
    figure.suptitle("")
    assert _png(figure) == png  # the picture on the screen is without them


def test_what_cannot_change_the_picture_is_pale_and_a_slider_ends_with_the_rest():
    live = {"x": lambda v: v["law"] == "b", "flag": lambda v: v["n"] > 5}
    panel = replace(TOY, live=live, ends={"n": lambda v: 5 * len(v["points"])})
    shown = Shown(panel, n=7)
    n, law, points = (shown.controls[name] for name in ("n", "law", "points"))
    assert (n.max, shown.controls["x"].disabled, shown.controls["flag"].disabled) == (
        10,
        True,
        False,
    )
    points.value = "1"
    assert (n.max, n.value, shown.controls["flag"].disabled) == (5, 5, True)
    assert "n=5" in shown.call
    points.value, law.value = "1, 2, 3", "b"
    assert (n.max, shown.controls["x"].disabled) == (15, False)


@pytest.mark.parametrize("kind", ["svg", "pdf", "png"])
def test_a_button_saves_what_is_seen_under_the_name_of_the_panel(kind, tmp_path, monkeypatch):
    monkeypatch.setattr("dlsim.files.project_root", lambda: tmp_path)
    shown = Shown(TOY, n=4, reading={"link": "shared"})
    (button,) = [one for one in widgets_of(shown.box, w.Button) if kind.upper() in one.description]
    button.click()
    path = tmp_path / "results" / "explore" / "figures" / f"explore-toy-n-4-link-shared.{kind}"
    assert f"Saved: <code style='user-select: all'>{path}</code>" in shown.text("kept")
    first = path.read_bytes()
    assert first.startswith({"svg": b"<?xml", "pdf": b"%PDF", "png": b"\x89PNG"}[kind])
    assert b"20" + b"26" not in first  # no date
    again = TOY.save(kind, tmp_path / "again", n=4, reading={"link": "shared"})
    assert again.read_bytes() == first
    shown.controls["n"].value = 13
    button.click()
    assert "<b>Not saved:</b> n must not be 13" in shown.text("kept")


def test_a_saved_picture_has_a_short_name_and_a_known_format(tmp_path):
    names = {
        TOY.save("png", tmp_path, points=(1 / 3, 2 / 7, k), x=1 / 3, y=1 / 7).name for k in (1, 2)
    }
    assert len(names) == 2
    assert all(len(name) < 110 for name in names)
    with pytest.raises(InputError, match="kind must be one of svg, pdf, png; got 'gif'"):
        TOY.save("gif", tmp_path)


def test_sliders_stop_at_round_numbers():
    y = TOY.controls[2]
    assert y.stops[:12] == [0.1, 0.12, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.8, 1, 1.2]
    assert (y.stops[-1], len(y.stops)) == (1000, 41)
    assert TOY.controls[1].stops == pytest.approx(np.linspace(0, 1, 11), abs=1e-15)
    for name in PANELS:
        panel = getattr(explore, name)
        for slider in (one for one in panel.controls if isinstance(one, Slider)):
            assert slider.default in slider.stops, (name, slider.name)
            assert slider.stops == sorted(set(slider.stops))


def test_a_viewer_without_widgets_shows_the_picture():
    box = TOY()
    bundle = box._repr_mimebundle_()
    bundle = bundle[0] if isinstance(bundle, tuple) else bundle
    assert base64.b64decode(bundle["image/png"]) == TOY.drawn()[1]
    assert "image/png" not in TOY(n=13)._repr_mimebundle_()


def test_a_figure_of_another_panel_is_not_drawn_upon():
    other = new_figure(3, 1)
    figure, png = TOY.drawn(other)
    assert figure is not other
    assert png == TOY.drawn()[1]
    assert TOY.drawn(figure)[0] is figure


def test_a_figure_of_another_theme_is_left_alone():
    import matplotlib as mpl

    with mpl.rc_context({"lines.linewidth": 7.25}):
        TOY.drawn()
        assert mpl.rcParams["lines.linewidth"] == 7.25


# ------------------------------------------------------------------ every panel


#: Values at which some fields are inert.
POINTS = {
    "schedules": ({"source": "my lists"}, {"source": "paper I", "step": 6}, {"left": "FIFO-US"}),
    "wan": (
        {"network": "chain by hand"}, {"method": "MILP"}, {"network": "random", "method": "G"},
        {"network": "one connection for two", "method": "LPRR"},
    ),
    "grid": ({"policy": "Greedy", "fallbacks": 0}, {"reading": {"predictor": "perfect"}}),
    "queue": ({"policy": "torque", "rival": "rsc"}, {}),
    "pipeline": ({}, {"reading": {"queues": "single"}}),
}  # fmt: skip


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
        assert png == opened(name).picture

    def test_each_control_at_its_ends_draws_or_says_why_not(self, name):
        panel = getattr(explore, name)
        labels = [control.label for control in panel.controls]
        assert len(set(labels)) == len(labels)
        draws = Draws(panel)
        for number, control in enumerate(panel.controls):
            *others, last = ends_of(control)
            ends = (*others, last)
            for value in ends if LONG >= 1 else ends[number % len(ends) :][:1]:
                given = {control.name: value}
                assert values_of_link(panel.link(**given), panel) == panel.values(**given)
                draws_or_says_why_not(draws, given, to_the_end=value == last)

    def test_all_switches_at_once_draw(self, name):
        panel = getattr(explore, name)
        moved = {switch: options[1] for switch, options in panel.switches.items()}
        assert panel.figure(reading=moved).get_suptitle().endswith(".")

    @deep
    def test_each_switch_draws(self, name):
        panel = getattr(explore, name)
        for switch, options in panel.switches.items():
            for option in some_of(options[1:]):
                panel.figure(reading={switch: option})

    def test_a_picture_drawn_upon_the_last_one_is_the_same(self, name):
        panel = getattr(explore, name)
        figure = panel.drawn()[0]
        moves = [{c.name: value} for c in panel.controls for value in ends_of(c)]
        for move in some_of(moves) if LONG >= 1 else moves[:: max(1, len(moves) // 2)]:
            try:
                fresh = panel.drawn(**move)[1]
            except InputError:
                with pytest.raises(InputError):
                    panel.drawn(figure, **move)
                continue
            same, png = panel.drawn(figure, **move)
            assert same is figure
            assert png == fresh, move

    def test_shows_every_control_and_switch(self, name):
        panel, shown = getattr(explore, name), opened(name)
        fields = (*panel.controls, *panel.choices.values())
        assert list(shown.controls) == [one.label for one in fields]
        assert shown.text("error") == ""
        assert shown.call == f"explore.{name}()"


@pytest.mark.parametrize(("name", "point"), [
    pytest.param(name, point, marks=[deep] if n else [], id=f"{name}-{n}")
    for name in PANELS for n, point in enumerate(POINTS.get(name, ({},)))
])  # fmt: skip
def test_what_is_inert_changes_nothing(name, point):
    panel = getattr(explore, name)
    fields = {one.name: one for one in panel.choices.values()}
    fields |= {one.name: one for one in panel.controls}
    values, drawn = panel.values(**point), Draws(panel)
    png = drawn(**point)
    for field in some_of([key for key, live in panel.live.items() if not live(values)]):
        for value in ends_of(fields[field]):
            moved = point | {field: value}
            if field in panel.switches:
                moved = point | {"reading": point.get("reading", {}) | {field: value}}
            assert drawn(**moved) == png, (point, field, value)


def ends_of(control):
    if isinstance(control, Slider):
        return (control.low, control.high)
    if isinstance(control, Choice):
        return control.options[-1:]
    high = min(control.high, 1e6)
    return ((control.low,), (high,) * control.most)


class Draws:
    """The PNG files of a panel, each drawn upon the last one, as where its controls are moved."""

    def __init__(self, panel):
        self.panel, self.figure = panel, None

    def __call__(self, **given):
        self.figure, png = self.panel.drawn(self.figure, **given)
        return png

    def outcome(self, given, to_the_end):
        """The words of a picture, or why there is none; anything else is a fault."""
        try:
            if not to_the_end:
                return self.panel.figure(**given).get_suptitle()
            self(**given)
            return self.figure.get_suptitle()
        except InputError as error:
            return str(error)


@functools.cache
def opened(name):
    """A panel as it opens; none of its controls is to be moved."""
    return Shown(getattr(explore, name))


def draws_or_says_why_not(draws, given, to_the_end=True):
    said = draws.outcome(given, to_the_end)
    assert len(said) > 20
    assert "nan" not in said


@pytest.mark.parametrize("names", [PANELS[2:4], pytest.param(PANELS, marks=deep)])
def test_pictures_of_all_panels_are_saved_under_their_names(names, tmp_path, monkeypatch):
    monkeypatch.setattr(explore, "PANELS", {name: explore.PANELS[name] for name in names})
    paths = explore.save_pictures(tmp_path / "figures")
    assert [path.name for path in paths] == [
        f"explore-{name.replace('_', '-')}.png" for name in names
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
