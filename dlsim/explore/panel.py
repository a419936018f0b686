"""A panel: a pure function from parameters to a picture, and the widgets that move it.

The picture is made by ``update(**parameters) -> Figure`` and nothing else, so that a
panel is tested, printed and quoted without a browser. The widgets only collect the
parameters, show the picture, say in words what it shows, and print the one call that
brings it back.
"""

import functools
import gc
import html
import inspect
import io
import itertools
import math
import re
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import ipywidgets as w
import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg, RendererAgg
from matplotlib.figure import Figure

from dlsim.errors import DlsimError, InputError
from dlsim.given import MOST, column, number, whole
from dlsim.study import style

#: Dots per inch of a panel's picture: sharp enough, and drawn in a fraction of a second.
DPI = 96
#: Letters of one point in an inch, and from how many inches on a picture is wide.
LETTERS, WIDE = 130, 9.0
#: Texts that a renderer remembers.
MOST_TEXTS = 4096
_WIDE = w.Layout(width="28em")
_LABELS = {"description_width": "13.5em"}
#: An entry of the section Parameters of a docstring: names, then lines that are indented.
_ENTRY = re.compile(r"^(\w+(?:, \w+)*)(?: :.*)?\n((?:(?: {4}.*)?\n)+)", re.MULTILINE)


def _look(label: str) -> dict[str, Any]:
    return {"description": label, "tooltip": label, "layout": _WIDE, "style": _LABELS}


@dataclass(frozen=True)
class Slider:
    """A number chosen on a scale."""

    name: str
    low: float
    high: float
    step: float
    default: float
    label: str
    log: bool = False

    def check(self, value: Any) -> float:
        """Return the value if it lies on the scale; InputError otherwise."""
        kind = "whole number" if isinstance(self.default, int) else "number"
        rule = f"a {kind} between {self.low:g} and {self.high:g}"
        if isinstance(self.default, int):
            return whole(self.name, value, math.ceil(self.low), math.floor(self.high), rule)
        slack = 1e-9 * max(abs(self.low), abs(self.high))
        return float(number(self.name, value, self.low - slack, self.high + slack, rule=rule))

    def tidy(self, value: float) -> float:
        """Round what a slider was moved to: its stops are not exact, nor fit for a call."""
        if isinstance(self.default, int):
            return value
        return float(f"{value:.{4 if self.log else 12}g}")

    def widget(self, value: float) -> w.Widget:
        """Build the slider, standing at the value."""
        common = {"value": value, "continuous_update": False, **_look(self.label)}
        if self.log:
            ends = {"min": math.log10(self.low), "max": math.log10(self.high)}
            return w.FloatLogSlider(step=self.step, readout_format=".3g", **ends, **common)
        kind = w.IntSlider if isinstance(self.default, int) else w.FloatSlider
        return kind(min=self.low, max=self.high, step=self.step, **common)


@dataclass(frozen=True)
class Choice:
    """One of a few named options."""

    name: str
    options: Sequence[Any]
    label: str
    default: Any = None

    def __post_init__(self) -> None:
        if self.default is None:
            object.__setattr__(self, "default", self.options[0])

    def check(self, value: Any) -> Any:
        """Return the option that equals the value; InputError if there is none."""
        if value not in self.options:
            known = ", ".join(map(repr, self.options))
            raise InputError(f"{self.name} must be one of {known}; got {value!r}")
        return value

    def widget(self, value: Any) -> w.Widget:
        """Build the menu."""
        words = (("no", "yes")[o] if isinstance(o, bool) else str(o) for o in self.options)
        options = list(zip(words, self.options, strict=True))
        return w.Dropdown(options=options, value=value, **_look(self.label))


@dataclass(frozen=True)
class Numbers:
    """A list of numbers, written with commas."""

    name: str
    default: tuple[float, ...]
    label: str
    low: float = 0.0
    high: float = math.inf
    most: int = 64

    def check(self, value: Any) -> tuple[float, ...]:
        """Return the numbers, from a text or a sequence; InputError for anything else."""
        parts = value.replace(";", ",").split(",") if isinstance(value, str) else value
        try:
            numbers = tuple(float(part) for part in parts)
        except (TypeError, ValueError):
            raise InputError(
                f"{self.name} must be numbers with commas between them, got {value!r}"
            ) from None
        if not 1 <= len(numbers) <= self.most:
            raise InputError(f"{self.name} must hold 1 to {self.most} numbers, got {len(numbers)}")
        rule = f"a number between {self.low:g} and {self.high:g}"
        return tuple(column(self.name, numbers, self.low, min(self.high, MOST), rule=rule).tolist())

    def widget(self, value: tuple[float, ...]) -> w.Widget:
        """Build the text field; it is read when Enter is pressed or the field is left."""
        text = ", ".join(f"{number:.12g}" for number in value)
        return w.Text(value=text, continuous_update=False, **_look(self.label))


Control = Slider | Choice | Numbers


class _Written:
    """Takes down the images of a text that is drawn, from its lower left corner."""

    def __init__(self) -> None:
        self.images: list[tuple[Any, int, int, float]] = []

    def draw_text_image(self, image: Any, x: int, y: int, angle: float, _gc: Any) -> None:
        self.images.append((np.array(image), x, y, angle))

    def united(self) -> tuple[Any, int, int, float] | None:
        """Return one image of all letters."""
        if len(self.images) < 2:
            return next(iter(self.images), None)
        images, lefts, lows, _ = zip(*self.images, strict=True)
        tops = [low - len(image) for image, low in zip(images, lows, strict=True)]
        ends = [left + image.shape[1] for image, left in zip(images, lefts, strict=True)]
        whole = np.zeros((max(lows) - min(tops), max(ends) - min(lefts)), np.uint8)
        for image, left, top in zip(images, lefts, tops, strict=True):
            y, x = top - min(tops), left - min(lefts)
            part = whole[y : y + len(image), x : x + image.shape[1]]
            np.maximum(part, image, out=part)
        return whole, min(lefts), max(lows), 0.0


class _Renderer(RendererAgg):
    """A renderer that remembers each text it drew: most of a panel's are the same next time.

    Texts begin at whole pixels, so that one image serves wherever it stands.
    """

    def __init__(self, width: int, height: int, dpi: float) -> None:
        super().__init__(width, height, dpi)
        self.texts: dict[Any, Any] = {}

    def draw_text(
        self, gc: Any, x: float, y: float, s: str, prop: Any, angle: float, ismath: Any = False,
        mtext: Any = None,
    ) -> None:  # fmt: skip
        if ismath:
            super().draw_text(gc, x, y, s, prop, angle, ismath, mtext)
            return
        key = s, prop, angle, gc.get_antialiased()
        if key not in self.texts:
            if len(self.texts) == MOST_TEXTS:
                self.texts.clear()
            painter, self._renderer = self._renderer, _Written()
            super().draw_text(gc, 0, 0, s, prop, angle, ismath, mtext)
            painter, self._renderer = self._renderer, painter
            self.texts[s, prop.copy(), *key[2:]] = painter.united()
        if (written := self.texts[key]) is not None:
            image, left, low, turned = written
            self._renderer.draw_text_image(image, round(x) + left, round(y) + low, turned, gc)


_renderer = functools.lru_cache(maxsize=16)(_Renderer)


class _Canvas(FigureCanvasAgg):
    """A canvas whose renderer serves all figures of its size: it knows how wide a text is."""

    def get_renderer(self) -> RendererAgg:
        self.renderer = _renderer(*self.get_width_height(physical=True), self.figure.dpi)
        return self.renderer


def _png(figure: Figure) -> bytes:
    """Draw a figure once (savefig would do so twice), and pack it lightly."""
    for axis in (axis for ax in figure.axes for axis in (ax.xaxis, ax.yaxis)):
        if not axis.get_label_text():
            axis.set_label_coords(0.5, 0.5)  # or the place of no text is sought every time
    store = io.BytesIO()
    with matplotlib.rc_context():
        style.use()
        _Canvas(figure).print_png(
            store, metadata={"Software": None}, pil_kwargs={"compress_level": 1}
        )
    return store.getvalue()


def new_figure(
    width: float = 8.4, height: float = 4.6, margins: tuple[float, ...] = (), **gaps: float
) -> Figure:
    """Make an empty figure outside pyplot's memory, which would keep every one of them."""
    layout: Any = "none" if margins else "constrained"
    figure = Figure(figsize=(width, height), dpi=DPI, layout=layout)
    FigureCanvasAgg(figure)
    if margins:
        left, bottom, right, top = margins
        figure.subplots_adjust(
            left / width, bottom / height, 1 - right / width, 1 - top / height, **gaps
        )
    return figure


def wrapped(text: str, width: float, size: float) -> str:
    """Break a text into lines of one length that fit so many inches in a size in points."""
    lines = math.ceil(len(text) * size / (LETTERS * width))
    return "\n".join(textwrap.wrap(text, math.ceil(len(text) / lines) + 8))


def say(figure: Figure, text: str) -> None:
    """Write what is seen above a picture."""
    width, height = figure.get_size_inches()
    size = 10.5 if width >= WIDE else 9.5
    words = wrapped(text, width, size)
    figure.suptitle(words, fontsize=size, y=1 - 0.04 / height)
    if width >= WIDE and figure.get_layout_engine() is None:  # one that measures takes long
        figure.subplots_adjust(top=1 - (0.43 + 0.2 * words.count("\n")) / height)


def title(ax: Axes, text: str) -> None:
    """Write what one part of a picture shows at the left above it."""
    ax.set_title(text, fontsize=9.5, loc="left", pad=3, y=1.0)


@dataclass(frozen=True)
class Panel:
    """An interactive picture; calling it shows it, such as ``explore.timing(nodes=8)``."""

    name: str
    title: str
    update: Callable[..., Figure]
    controls: tuple[Control, ...]
    switches: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    explained: tuple[Any, ...] = ()

    @property
    def choices(self) -> dict[str, Choice]:
        """The switches as menus."""
        return {name: Choice(name, options, name) for name, options in self.switches.items()}

    def values(self, **given: Any) -> dict[str, Any]:
        """Complete and check parameters."""
        reading = given.pop("reading", {})
        if not isinstance(reading, Mapping):
            raise InputError(f"reading must be a dict of switches, got {reading!r}")
        known = {control.name: control for control in self.controls}
        names = {"parameter": (given, [*known, "reading"]), "switch": (reading, self.switches)}
        for what, (asked, there) in names.items():
            for name in asked:
                if name not in there:
                    has = ", ".join(there)
                    raise InputError(f"{self.name} has no {what} {name!r}; it has {has}")
        for name, value in reading.items():
            self.choices[name].check(value)
        changed = {k: v for k, v in reading.items() if v != self.switches[k][0]}
        values = {name: known[name].check(given.get(name, known[name].default)) for name in known}
        return values | {"reading": changed}

    def meanings(self) -> dict[str, str]:
        """Return what each switch decides, as the docstrings of `explained` put it."""
        found: dict[str, str] = {}
        for source in self.explained:
            for names, text in _ENTRY.findall(f"{inspect.getdoc(source) or ''}\n"):
                plain = re.sub(r":math:|`", "", " ".join(text.split()))  # without its markup
                for name in names.split(", "):
                    found.setdefault(name, re.sub(r"\\bar\{(\w+)\}", r"\1", plain))
        return {name: found[name] for name in self.switches if name in found}

    def link(self, **given: Any) -> str:
        """Write the call that shows the panel with these values, the defaults left out."""
        values = self.values(**given)
        reading = values.pop("reading")
        own = {c.name: values[c.name] for c in self.controls if values[c.name] != c.default}
        own |= {"reading": reading} if reading else {}
        words = ", ".join(f"{name}={value!r}" for name, value in own.items())
        return f"explore.{self.name}({words})"

    def figure(self, **given: Any) -> Figure:
        """Make the picture for these values, the defaults for the others."""
        values = self.values(**given)
        with matplotlib.rc_context():
            style.use()
            return self.update(**values)

    def drawn(self, **given: Any) -> tuple[Figure, bytes]:
        """Draw the picture; return it with the bytes of its PNG file."""
        figure = self.figure(**given)
        return figure, _png(figure)

    def __call__(self, **given: Any) -> w.Widget:
        """Show the panel, beginning with these values."""
        return _view(self, self.values(**given))


def panel(title: str, *controls: Control, **more: Any) -> Callable[[Callable[..., Figure]], Panel]:
    """Make a function that draws a panel of its name."""
    return lambda update: Panel(update.__name__, title, update, controls, **more)


#: Widths of the columns: controls, then picture.
_LEFT = w.Layout(flex="0 0 auto")
_RIGHT = w.Layout(flex="1 1 34em", min_width="24em", max_width="62em")
_ROW = w.Layout(flex_flow="row wrap")


def _message(kind: str, text: str) -> str:
    """Format a line under a picture; screen readers announce it when it changes."""
    return f'<div class="dlsim-{kind}" role="status" aria-live="polite">{text}</div>'


def _view(panel: Panel, values: dict[str, Any]) -> w.Widget:
    """Build the widgets of a panel: controls at the left, picture and words at the right."""
    controls = {control.name: control.widget(values[control.name]) for control in panel.controls}
    read_as, choices = values["reading"], panel.choices
    switches = {name: one.widget(read_as.get(name, one.default)) for name, one in choices.items()}
    picture = w.Image(format="png", layout=w.Layout(max_width="100%", display="none"))
    words, link = w.HTML(), w.HTML()
    counter, shown = itertools.count(1), {name: one.value for name, one in controls.items()}

    def read() -> dict[str, Any]:
        """Read the widgets: a control that was not moved keeps the value given."""
        given: dict[str, Any] = {}
        for control in panel.controls:
            now = controls[control.name].value
            moved = control.tidy(now) if isinstance(control, Slider) else now
            given[control.name] = values[control.name] if now == shown[control.name] else moved
        return given | {"reading": {name: one.value for name, one in switches.items()}}

    def redraw() -> None:
        given = read()
        try:
            figure, picture.value = panel.drawn(**given)
        except DlsimError as error:
            words.value = _message("error", f"<b>Not drawn:</b> {html.escape(str(error))}")
            return
        picture.layout.display = None
        words.value = _message("words", html.escape(figure.get_suptitle()))
        call = html.escape(panel.link(**given))
        link.value = _message(
            f"link dlsim-drawn-{next(counter)}",
            f"This picture: <code style='user-select: all'>{call}</code>",
        )

    def move(_: Any) -> None:
        redraw()
        gc.collect()  # the last figure, while its picture is looked at: not amid the next one

    for one in (*controls.values(), *switches.values()):
        one.observe(move, names="value")
    redraw()
    gc.collect()
    gc.freeze()  # or a collection of all that is imported delays a picture by some 0.3 s
    left = w.VBox([*controls.values()], layout=_LEFT)
    right = w.VBox([picture, words, link], layout=_RIGHT)
    rows = [w.HTML(f"<h3>{html.escape(panel.title)}</h3>"), w.HBox([left, right], layout=_ROW)]
    if switches:
        rows += [w.HTML("<b>How the paper is read</b>"), w.HBox([*switches.values()], layout=_ROW)]
    if meanings := panel.meanings().items():
        items = "".join(f"<li><code>{k}</code>: {html.escape(text)}</li>" for k, text in meanings)
        rows.append(w.HTML(  # unfolded by mouse or by Enter
            "<details class='dlsim-meanings' style='line-height: 1.4; max-width: 75em'>"
            f"<summary>What these switches mean</summary><ul>{items}</ul></details>"
        ))  # fmt: skip
    return w.VBox(rows)
