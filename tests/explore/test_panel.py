"""The frame of the panels, and every panel through it: calls, controls, errors, readings."""

import base64
import math
import re
from dataclasses import replace

import ipywidgets as w
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dlsim import explore
from dlsim.errors import InputError
from dlsim.explore.controls import Menu, NumberList, Slider, StopSlider
from dlsim.explore.panel import Panel
from dlsim.explore.pictures import new_figure
from dlsim.validate import MIN_MAGNITUDE
from tests.helpers.scale import scale_count

PANELS = list(explore.PANELS)


def draw(n, x, y, law, points, extra, reading):
    if n == 13:
        raise InputError("n must not be 13, got 13: take another")
    figure = new_figure(0.1, 0.1, 0.1, 0.1)
    figure.text(0.5, 0.5, f"{n} {x} {y} {law} {points} {extra} {reading}")
    return figure, f"{n} {x:g} {law} <{len(points)}>."


TOY = Panel(
    "toy",
    "A toy",
    draw,
    (
        Slider("n", "n", 1, 20, 1, 3),
        Slider("x", "x", 0.0, 1.0, 0.1, 0.5),
        StopSlider("y", "y", (0.1, 1, 10, 100, 1000), 10.0),
        Menu("law", "law", ("a", "b")),
        NumberList("points", "points", (1.0, 2.5), 0.0, 9.0, 3),
    ),
    settings=(Slider("extra", "extra", 0, 5, 1, 0),),
    switches={"link": ("per_task", "shared"), "flag": (False, True), "base": (1.0, 2.0)},
    labels={"link": "the link", "flag": "a flag", "base": "the base"},
    words={"a": "the first <letter>"},
)


def widgets_of(box, kind):
    """Return all widgets of one kind in a box, in the order shown."""
    found = [box] if isinstance(box, kind) else []
    for child in getattr(box, "children", ()):
        found += widgets_of(child, kind)
    return found


class Shown:
    """A panel without a browser."""

    def __init__(self, panel, **given):
        self.view = panel(**given)
        self.controls = self.view.controls | self.view.readings

    def text(self, kind):
        values = (one.value for one in widgets_of(self.view, w.HTML))
        return next((value for value in values if f'"dlsim-{kind}' in value), "")

    def button(self, name):
        buttons = widgets_of(self.view, w.Button) + widgets_of(self.view, w.ToggleButton)
        return next(one for one in buttons if one.description == name)

    @property
    def call(self):
        return self.text("link").split("'>")[1].split("</code>")[0].replace("&#x27;", "'")

    @property
    def picture(self):
        return bytes(self.view.image.value)

    @property
    def is_pale(self):
        return "dlsim-stale" in self.view.image._dom_classes


def values_of_call(call, panel):
    """Return the parameters with which a call opens a panel."""
    caught = {}
    stand_in = type("explore", (), {panel.name: lambda **given: caught.update(given)})
    eval(call, {"explore": stand_in})
    return panel.values(**caught)


# ------------------------------------------------------------------ parameters


def in_range(high):
    """Numbers from 0 on, but none that is out of the range of `dlsim.validate`."""
    return st.just(0.0) | st.floats(MIN_MAGNITUDE, high)


@settings(max_examples=scale_count(60, least=20), deadline=None)
@given(
    n=st.integers(1, 20), x=st.integers(0, 1000).map(lambda k: k / 1000),
    y=st.floats(0.1, 1000), law=st.sampled_from("ab"),
    points=st.lists(in_range(9), min_size=1, max_size=3),
    reading=st.fixed_dictionaries(
        {}, optional={k: st.sampled_from(v) for k, v in TOY.switches.items()}
    ),
)  # fmt: skip
def test_a_call_brings_back_the_same_values(**given):
    values = TOY.values(**given)
    assert values_of_call(TOY.call(**given), TOY) == values
    assert set(values["reading"].items()) <= set(given["reading"].items())


def test_every_switch_has_a_menu_with_its_label():
    menus = TOY.reading_menus
    assert [menu.label for menu in menus.values()] == ["the link", "a flag", "the base"]
    assert [menu.default for menu in menus.values()] == ["per_task", False, 1.0]


def test_a_call_leaves_defaults_out():
    assert TOY.call() == "explore.toy()"
    assert TOY.call(n=3, reading={"link": "per_task"}) == "explore.toy()"
    assert TOY.call(n=4, points="1, 2; 3", reading={"flag": True}) == (
        "explore.toy(n=4, points=(1.0, 2.0, 3.0), reading={'flag': True})"
    )


def test_hostile_values_are_refused_by_name():
    whole = "n must be a whole number between 1 and 20, got"
    for values, message in (
        ({"m": 3}, "parameter of toy must be one of n, x, y, law, points, extra, reading; got 'm'"),
        *(({"n": value}, f"{whole} {value}") for value in (0, 2.5, True, None)),
        ({"x": math.nan}, "x must be a number between 0 and 1, got nan"),
        ({"x": "0.5"}, "x must be a number between 0 and 1, got '0.5'"),
        ({"x": 10**400}, "x must be a number between"),
        ({"y": 0.0}, "y must be a number between 0.1 and 1000, got 0.0"),
        ({"law": "c"}, "law must be one of a, b; got 'c'"),
        ({"law": []}, "law must be one of"),
        ({"points": "1, x"}, "points must be numbers with commas between them, got '1, x'"),
        *(({"points": value}, "points must be numbers") for value in ("", 3, None)),
        *(
            ({"points": (1,) * count}, f"points must hold 1 to 3 numbers, got {count}")
            for count in (0, 4)
        ),
        ({"points": "nan"}, "points[0] must be a number between 0 and 9, got nan"),
        ({"points": (10,)}, "points[0] must be a number between 0 and 9, got 10.0"),
        ({"reading": {"lnk": 1}}, "switch of toy must be one of link, flag, base; got 'lnk' (did"),
        ({"reading": {"link": "wrong"}}, "link must be one of per_task, shared; got 'wrong'"),
        ({"reading": 3}, "reading must be a mapping such as a dict, got 3"),
    ):
        with pytest.raises(InputError, match=re.escape(message)):
            TOY.values(**values)


# --------------------------------------------------------------------- widgets


def test_every_control_and_switch_is_there_and_moves_the_picture():
    shown = Shown(TOY, n=4)
    assert list(shown.controls) == ["n", "x", "y", "law", "points", "extra", *TOY.switches]
    moves = {
        "n": (5, "n=5"),
        "x": (0.7000000000000001, "x=0.7"),
        "y": (100.0, "y=100.0"),
        "law": ("b", "law='b'"),
        "points": ("3,4", "points=(3.0, 4.0)"),
        "extra": (2, "extra=2"),
        "link": ("shared", "'link': 'shared'"),
        "flag": (True, "'flag': True"),
        "base": (2.0, "'base': 2.0"),
    }
    seen = {shown.picture}
    for name, (value, word) in moves.items():
        shown.controls[name].value = value
        assert word in shown.call
        seen.add(shown.picture)
    assert len(seen) == len(moves) + 1
    assert shown.picture == TOY.screen_picture(**values_of_call(shown.call, TOY))[0]
    assert "5 0.7 b &lt;2&gt;" in shown.text("words")


def test_typed_numbers_keep_every_bit():
    points = (1 / 3, 1 / 7)
    shown = Shown(TOY, points=points)
    shown.controls["n"].value = 7
    assert values_of_call(shown.call, TOY)["points"] == points


def test_an_error_is_shown_and_cleared():
    shown = Shown(TOY)
    before, call = shown.picture, shown.call
    shown.controls["n"].value = 13
    assert "<b>Not drawn:</b> n must not be 13" in shown.text("error")
    assert (shown.picture, shown.call) == (before, call)  # both still of the last good values
    assert "The pale picture is the last one drawn." in shown.text("error")
    assert shown.is_pale
    shown.controls["points"].value = "1, <script>"
    assert "&lt;script&gt;" in shown.text("error")
    shown.controls["points"].value = "1, 2"
    shown.controls["n"].value = 12
    assert shown.text("error") == ""
    assert "n=12" in shown.call
    assert not shown.is_pale


def test_a_panel_may_open_with_an_error():
    shown = Shown(TOY, n=13)
    assert "Not drawn" in shown.text("error")
    assert shown.view.image.layout.display == "none"
    assert "image/png" not in shown.view._repr_mimebundle_()[0]
    shown.controls["n"].value = 12
    assert shown.view.image.layout.display is None


def test_a_picture_is_pale_while_the_next_one_is_computed():
    seen = []

    def slow(**given):
        seen.append(shown.is_pale if shown else None)
        return draw(**given)

    shown = None
    shown = Shown(replace(TOY, draw=slow))
    shown.controls["n"].value = 7
    assert seen == [None, True]
    assert not shown.is_pale


def test_a_button_unfolds_what_is_behind_it():
    shown = Shown(TOY)
    folds = shown.view.children[2:]
    for name, part in zip(("more settings", "readings", "words"), folds, strict=True):
        assert part.layout.display == "none"
        shown.button(name).value = True
        assert [one for one in folds if one.layout.display is None] == [part]
        shown.button(name).value = False
        assert part.layout.display == "none"


def test_words_are_text_and_not_html():
    assert "<dt>a</dt><dd>the first &lt;letter&gt;</dd>" in Shown(TOY).view.children[4].value


@pytest.mark.parametrize("kind", ["svg", "pdf", "png"])
def test_a_button_saves_what_is_seen_under_the_name_of_the_panel(kind, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shown = Shown(TOY, n=4, reading={"link": "shared"})
    shown.button(kind.upper()).click()
    path = tmp_path / "results" / "explore" / "figures" / f"explore-toy-n-4-link-shared.{kind}"
    assert f"Saved: <code style='user-select: all'>{path}</code>" in shown.text("kept")
    first = path.read_bytes()
    assert first.startswith({"svg": b"<?xml", "pdf": b"%PDF", "png": b"\x89PNG"}[kind])
    assert b"20" + b"26" not in first  # no date
    again = TOY.save(kind, tmp_path / "again", n=4, reading={"link": "shared"})
    assert again.read_bytes() == first
    shown.controls["n"].value = 13
    shown.button(kind.upper()).click()
    assert "<b>Not saved:</b> n must not be 13" in shown.text("kept")


def test_a_double_click_saves_once(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    saved = []
    original = Panel.save
    monkeypatch.setattr(
        Panel, "save", lambda *args, **given: saved.append(1) or original(*args, **given)
    )
    shown = Shown(TOY)
    for _ in range(2):
        shown.button("PNG").click()
    assert len(saved) == 1
    shown.view.last_path.unlink()  # a file that was removed is saved again
    shown.button("PNG").click()
    shown.button("SVG").click()
    shown.controls["n"].value = 5
    shown.button("SVG").click()
    assert len(saved) == 4


def test_a_saved_picture_has_a_short_name_and_a_known_format(tmp_path):
    names = {
        TOY.save("png", tmp_path, points=(1 / 3, 2 / 7, k), x=1 / 3, law="b").name for k in (1, 2)
    }
    assert len(names) == 2
    assert all(len(name) < 110 for name in names)
    assert TOY.save("png", tmp_path, y=100.0).name == "explore-toy-y-100.png"
    with pytest.raises(InputError, match="kind must be one of svg, pdf, png; got 'gif'"):
        TOY.save("gif", tmp_path)


def test_a_viewer_without_widgets_shows_the_picture():
    picture, sentence = TOY.screen_picture("png", n=4)
    bundle, metadata = TOY(n=4)._repr_mimebundle_()
    assert picture.startswith(b"\x89PNG")
    assert base64.b64decode(bundle["image/png"]) == picture
    assert metadata["image/png"]["alt"] == sentence


def test_the_theme_of_other_figures_is_left_alone():
    import matplotlib as mpl

    with mpl.rc_context({"lines.linewidth": 7.25}):
        TOY.screen_picture()
        assert mpl.rcParams["lines.linewidth"] == 7.25


# ------------------------------------------------------------------ every panel


@pytest.mark.parametrize("name", PANELS)
class TestPanel:
    def test_opens_with_a_sentence_and_a_call(self, name):
        panel, shown = explore.PANELS[name], Shown(explore.PANELS[name])
        assert (panel.name, panel.call()) == (name, f"explore.{name}()")
        sentence = re.sub("<[^>]*>", "", shown.text("words")).strip()
        assert any(letter.isdigit() for letter in sentence)
        assert sentence.endswith(".")
        assert shown.picture.startswith(b"<?xml")
        assert shown.text("error") == ""
        # an SVG file makes hatch and face pale together
        hatched = re.findall(r'style="(fill: url[^"]*)"', shown.picture.decode())
        assert not [look for look in hatched if "opacity" in look]

    def test_has_few_controls_and_explains_its_switches(self, name):
        panel = explore.PANELS[name]
        assert 4 <= len(panel.controls) <= 6  # the others are behind "more settings"
        labels = [control.label for control in panel.all_controls.values()]
        assert len(set(labels)) == len(labels)
        assert set(panel.switches) <= set(panel.labels)
        assert max(map(len, panel.labels.values()), default=0) <= 80
        assert len(panel.words) >= 5
        for control in panel.all_controls.values():
            if isinstance(control, StopSlider):
                assert control.default in control.stops
                assert list(control.stops) == sorted(set(control.stops))
            elif isinstance(control, Slider):
                steps = (control.default - control.low) / control.step
                assert steps == pytest.approx(round(steps))

    def test_no_legend_meets_the_sentence_of_a_saved_picture(self, name):
        """A legend of the whole figure moves to the edge of the larger picture."""
        figure, _ = explore.PANELS[name].picture()
        figure.draw_without_rendering()
        at_the_top = [
            one for one in figure.legends if one.get_window_extent().y0 > figure.bbox.y1 / 2
        ]
        assert at_the_top == []

    def test_all_switches_at_once_draw(self, name):
        panel = explore.PANELS[name]
        moved = {switch: options[1] for switch, options in panel.switches.items()}
        assert panel.sentence(reading=moved).endswith(".")

    def test_any_values_draw_or_are_refused(self, name):
        panel = explore.PANELS[name]

        @settings(max_examples=scale_count(6), deadline=None)
        @given(any_values(panel))
        def check(chosen):
            draws_or_says_why_not(panel, chosen)

        check()


def values_of(control):
    """Values that a control takes."""
    if isinstance(control, Menu):
        return st.sampled_from(tuple(control.options))
    if isinstance(control, Slider):
        is_whole = isinstance(control.default, int)
        return (st.integers if is_whole else st.floats)(control.low, control.high)
    if isinstance(control, StopSlider):
        return st.floats(control.stops[0], control.stops[-1])
    return st.lists(st.floats(control.low, min(control.high, 1e4)), min_size=1, max_size=4)


def any_values(panel):
    switches = {name: st.sampled_from(options) for name, options in panel.switches.items()}
    controls = {name: values_of(control) for name, control in panel.all_controls.items()}
    return st.fixed_dictionaries(
        {}, optional=controls | {"reading": st.fixed_dictionaries({}, optional=switches)}
    )


def draws_or_says_why_not(panel, given):
    """Draw a picture or be refused; anything else is a fault."""
    try:
        said = panel.screen_picture(**given)[1]
    except InputError as error:
        said = str(error)
    assert len(said) > 20
    assert "nan" not in said
