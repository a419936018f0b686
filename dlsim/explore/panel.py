"""A panel: a pure function from parameters to a picture, and the widgets that move it.

The picture is made by ``update(**parameters) -> Figure`` and nothing else, so that a
panel is tested, printed and quoted without a browser. The widgets only collect the
parameters, show the picture, say in words what it shows, and print the one call that
brings it back.
"""

import base64
import functools
import gc
import html
import inspect
import itertools
import math
import re
import struct
import textwrap
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import ipywidgets as w
import matplotlib
import numpy as np
from IPython.core.getipython import get_ipython
from IPython.display import Javascript, display
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg, RendererAgg
from matplotlib.figure import Figure
from matplotlib.font_manager import fontManager, get_font
from matplotlib.ticker import AutoLocator, ScalarFormatter

from dlsim.errors import DlsimError, InputError
from dlsim.given import MOST, column, mapping, number, option, whole, word
from dlsim.study import style
from dlsim.study.figures import KINDS
from dlsim.study.pictures import picture_of
from dlsim.study.report import Results

#: Dots per inch of a panel's picture: sharp enough, and drawn in a fraction of a second.
DPI = 96
#: Letters of one point in an inch, and size of the sentence above a picture.
LETTERS, SENTENCE = 130, 12
#: Texts that a renderer remembers.
MOST_TEXTS = 4096
#: Letters of a file's name, before it is cut.
LONGEST = 80
#: Sizes of text, in points: a picture is to be read from the back of a room.
SIZES: Any = {"font.size": 11.5, "axes.titlesize": 11.5, "axes.labelsize": 11.5,
         "xtick.labelsize": 10.5, "ytick.labelsize": 10.5, "legend.fontsize": 10}  # fmt: skip
#: Round numbers within a power of ten.
ROUND = (1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8)
#: An entry of the section Parameters of a docstring: names, then lines that are indented.
_ENTRY = re.compile(r"^(\w+(?:, \w+)*)(?: :.*)?\n((?:(?: {4}.*)?\n)+)", re.MULTILINE)


def _look(label: str) -> dict[str, Any]:
    return {"description": label, "tooltip": label, "layout": w.Layout(width="auto")}


@dataclass(frozen=True)
class Slider:
    """A number chosen on a scale: a step apart, or, with the step 0, round by logarithms."""

    name: str
    low: float
    high: float
    step: float
    default: float
    label: str

    def check(self, value: Any) -> float:
        """Return the value if it lies on the scale; InputError otherwise."""
        kind = "whole number" if isinstance(self.default, int) else "number"
        rule = f"a {kind} between {self.low:g} and {self.high:g}"
        if isinstance(self.default, int):
            return whole(self.name, value, math.ceil(self.low), math.floor(self.high), rule)
        slack = 1e-9 * max(abs(self.low), abs(self.high))
        return float(number(self.name, value, self.low - slack, self.high + slack, rule=rule))

    @property
    def stops(self) -> list[float]:
        """Where the slider stops."""
        if self.step:
            count = math.floor((self.high - self.low) / self.step + 1e-9)
            return [self.tidy(self.low + k * self.step) for k in range(count + 1)]
        powers = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)))
        inner = (self.tidy(part * 10.0**power) for power in powers for part in ROUND)
        return [self.low, *(stop for stop in inner if self.low < stop < self.high), self.high]

    def tidy(self, value: float) -> float:
        """Round what a slider was moved to: sums of steps are not exact, nor fit for a call."""
        return value if isinstance(self.default, int) else float(f"{value:.12g}")

    def widget(self, value: float) -> w.Widget:
        """Build the slider, standing at the value."""
        common = {"value": value, "continuous_update": False, **_look(self.label)}
        if not self.step:
            stops = sorted({*self.stops, value})
            return w.SelectionSlider(options=[(f"{stop:.4g}", stop) for stop in stops], **common)
        if isinstance(self.default, int):
            kind: Any = w.IntSlider
        else:
            digits = len(f"{self.step:g}".partition(".")[2])
            kind = functools.partial(w.FloatSlider, readout_format=f".{digits}f")
        return kind(min=self.low, max=self.high, step=self.step, **common)


@dataclass(frozen=True)
class Choice:
    """One of a few named options, each perhaps with words about it."""

    name: str
    options: Sequence[Any]
    label: str
    default: Any = None
    about: Mapping[Any, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.default is None:
            object.__setattr__(self, "default", self.options[0])

    def check(self, value: Any) -> Any:
        """Return the option that equals the value; InputError if there is none."""
        if value not in self.options:
            known = ", ".join(map(repr, self.options))
            raise InputError(f"{self.name} must be one of {known}; got {value!r}")
        return value

    def words(self, choice: Any) -> str:
        """Name an option, and say what it is."""
        if isinstance(choice, bool):
            return ("no", "yes")[choice]
        if isinstance(choice, tuple):
            return " to ".join(f"{end:g}" for end in choice)
        name = word(choice).replace("_", " ")
        return f"{name}: {self.about[choice]}" if choice in self.about else name

    def widget(self, value: Any) -> w.Widget:
        """Build the menu."""
        options = [(self.words(choice), choice) for choice in self.options]
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
            rule = "numbers with commas between them"
            raise InputError(f"{self.name} must be {rule}, got {value!r}") from None
        if not 1 <= len(numbers) <= self.most:
            raise InputError(f"{self.name} must hold 1 to {self.most} numbers, got {len(numbers)}")
        rule = f"a number between {self.low:g} and {self.high:g}"
        return tuple(column(self.name, numbers, self.low, min(self.high, MOST), rule=rule).tolist())

    def widget(self, value: tuple[float, ...]) -> w.Widget:
        """Build the text field; it is read when Enter is pressed or the field is left."""
        text = ", ".join(f"{number:.12g}" for number in value)
        return w.Text(value=text, continuous_update=False, **_look(self.label))


Control = Slider | Choice | Numbers


@contextmanager
def _theme() -> Iterator[None]:
    """Draw in the one look of all figures, its text larger, and leave other figures alone."""
    with matplotlib.rc_context():
        style.use()
        matplotlib.rcParams.update(SIZES)
        yield


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
        self.heights: dict[Any, tuple[float, float, float]] = {}

    def _get_font_height_metrics(self, prop: Any) -> tuple[float, float, float]:
        """Return ascent, descent and gap of a font; a text would read them from its file."""
        if prop not in self.heights:
            font: Any = get_font(fontManager._find_fonts_by_props(prop))
            table, em = font.get_sfnt_table("OS/2"), font.get_sfnt_table("head")["unitsPerEm"]
            scale = 1 / em * prop.get_size_in_points() * self.dpi / 72
            names = "sTypoAscender", "sTypoDescender", "sTypoLineGap"
            up, down, gap = (table[name] * scale for name in names)
            self.heights[prop.copy()] = up, -down, gap
        return self.heights[prop]

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


def _packed(pixels: "np.ndarray[Any, Any]") -> bytes:
    """Pack the colours of an opaque picture as PNG: every row as its difference to the last.

    The library for pictures would try five filters for each row, which takes twice as long.
    """
    height, width, _ = pixels.shape
    rows = np.empty((height, 1 + 3 * width), np.uint8)
    rows[:, 0] = 2  # the filter "up"
    rows[:, 1:] = pixels[..., :3].reshape(height, -1)
    rows[1:, 1:] -= rows[:-1, 1:].copy()
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    parts = ((b"IHDR", head), (b"IDAT", zlib.compress(rows.tobytes(), 1)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
        for name, data in parts
    )


def _png(figure: Figure) -> bytes:
    """Draw a figure once (savefig would do so twice) without its sentence, and pack it."""
    for axis in (axis for ax in figure.axes for axis in (ax.xaxis, ax.yaxis)):
        if not axis.get_label_text():
            axis.set_label_coords(0.5, 0.5)  # or the place of no text is sought every time
    with _theme():
        canvas = _Canvas(figure)
        said = [text for text in figure.texts if text.get_text() == figure.get_suptitle()]
        for text in said:
            text.set_visible(False)
        canvas.draw()
        for text in said:
            text.set_visible(True)
        return _packed(np.asarray(canvas.buffer_rgba()))


class _Sheet(Figure):
    """A figure that can be drawn upon again: its axes and their ticks take long to make."""

    spare: Sequence[Axes] = ()

    def wipe(self) -> None:
        """Leave nothing but empty axes, which are given out again in their order."""
        for artist in (*self.texts, *self.legends):
            artist.remove()
        self._suptitle = None
        for ax in self.axes:
            for artist in (*ax.lines, *ax.collections, *ax.patches, *ax.texts):
                artist.remove()
            if legend := ax.get_legend():
                legend.remove()
            ax.containers.clear()
            for place in ("left", "center", "right"):
                ax.set_title("", loc=place)
            ax.set(prop_cycle=None, xlabel="", ylabel="")
            ax.relim()
            ax.autoscale(True)
            ax.margins(matplotlib.rcParams["axes.xmargin"], matplotlib.rcParams["axes.ymargin"])
            for axis in (ax.xaxis, ax.yaxis):
                axis.set_major_locator(AutoLocator())
                axis.set_major_formatter(ScalarFormatter())
        self.spare = tuple(self.axes)

    def add_subplot(self, *places: Any, **shared: Any) -> Any:
        """Give out axes; those that share an axis did so before."""
        if not self.spare:
            return super().add_subplot(*places, **shared)
        ax, *self.spare = self.spare
        ax.set_subplotspec(*places)
        return ax


#: The figure of the panel that draws upon its last one.
_AGAIN: ContextVar[_Sheet | None] = ContextVar("again", default=None)


def new_figure(
    width: float = 8.4, height: float = 4.6, margins: tuple[float, ...] = (), **gaps: float
) -> Figure:
    """Make an empty figure outside pyplot's memory, which would keep every one of them."""
    layout: Any = "none"  # one that measures takes long
    figure = _AGAIN.get()
    if figure and tuple(figure.get_size_inches()) == (width, height):  # it is this panel's
        figure.wipe()
    else:
        figure = _Sheet(figsize=(width, height), dpi=DPI, layout=layout)
        FigureCanvasAgg(figure)
    if margins:
        left, bottom, right, top = margins
        ends = left / width, bottom / height, 1 - right / width, 1 - top / height
        figure.subplots_adjust(*ends, **gaps)
    return figure


def wrapped(text: str, width: float, size: float) -> str:
    """Break a text into lines of one length that fit so many inches in a size in points."""
    lines = math.ceil(len(text) * size / (LETTERS * width))
    return "\n".join(textwrap.wrap(text, math.ceil(len(text) / lines) + 8))


def say(figure: Figure, text: str) -> None:
    """Put what is seen into words: beside the picture on a screen, above it in a file."""
    width, height = figure.get_size_inches()
    words = wrapped(text, width, SENTENCE)
    figure.suptitle(words, fontsize=SENTENCE, y=1 + 0.05 / height, va="bottom")


def title(ax: Axes, text: str) -> None:
    """Write what one part of a picture shows at the left above it."""
    ax.set_title(text, fontsize=11, loc="left", pad=3, y=1.0)


Values = Mapping[str, Any]


@dataclass(frozen=True)
class Panel:
    """An interactive picture; calling it shows it, such as ``explore.timing(nodes=8)``."""

    name: str
    title: str
    update: Callable[..., Figure]
    controls: tuple[Control, ...]
    switches: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    explained: tuple[Any, ...] = ()
    #: Where a control or switch can change the picture, and where a slider ends, by the values.
    live: Mapping[str, Callable[[Values], bool]] = field(default_factory=dict)
    ends: Mapping[str, Callable[[Values], int]] = field(default_factory=dict)

    @property
    def choices(self) -> dict[str, Choice]:
        """The switches as menus, each under the first sentence of what it means."""
        said = {name: text.partition(". ")[0] for name, text in self.meanings().items()}
        return {name: Choice(name, options, said.get(name, name).rstrip("."))
                for name, options in self.switches.items()}  # fmt: skip

    def values(self, **given: Any) -> dict[str, Any]:
        """Complete and check parameters."""
        reading = mapping("reading", given.pop("reading", {}))
        known = {control.name: control for control in self.controls}
        for name in given:
            option(f"parameter of {self.name}", name, [*known, "reading"])
        for name, value in reading.items():
            option(f"switch of {self.name}", name, self.switches)
            Choice(name, self.switches[name], name).check(value)
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

    def changed(self, **given: Any) -> dict[str, Any]:
        """Return the values that are not the defaults."""
        values = self.values(**given)
        reading = values.pop("reading")
        own = {c.name: values[c.name] for c in self.controls if values[c.name] != c.default}
        return own | ({"reading": reading} if reading else {})

    def link(self, **given: Any) -> str:
        """Write the call that shows the panel with these values, the defaults left out."""
        words = ", ".join(f"{name}={value!r}" for name, value in self.changed(**given).items())
        return f"explore.{self.name}({words})"

    def figure(self, **given: Any) -> Figure:
        """Make the picture for these values, the defaults for the others."""
        values = self.values(**given)
        with _theme():
            return self.update(**values)

    def drawn(self, again: Figure | None = None, **given: Any) -> tuple[Figure, bytes]:
        """Draw the picture; return it with the bytes of its PNG file, without the sentence.

        The last figure of the panel may be drawn upon `again`, in half the time.
        """
        token = _AGAIN.set(again if isinstance(again, _Sheet) else None)
        try:
            figure = self.figure(**given)
        finally:
            _AGAIN.reset(token)
        return figure, _png(figure)

    def save(self, kind: str = "svg", out: str | Path = "", **given: Any) -> Path:
        """Write the picture with its sentence, such as ``explore.timing.save("pdf", used=5)``.

        Its name, figures/NAME.KIND in `out` (results/explore), tells the panel and what was changed
        in it. The kind is svg, pdf or png; equal pictures give equal bytes.
        """
        results, own = Results(out, "explore"), self.changed(**given)
        data = self.saved(option("kind", kind, KINDS), **given)
        own |= own.pop("reading", {})
        words = " ".join([self.name, *(word(part) for pair in own.items() for part in pair)])
        name = "-".join(re.findall(r"[a-z0-9]+(?:\.[0-9]+)?", words.lower()))
        if len(name) > LONGEST:
            name = f"{name[:LONGEST].rstrip('-.')}-{zlib.crc32(name.encode()):08x}"
        return results.picture(f"explore-{name}", data, kind)

    def saved(self, kind: str, **given: Any) -> bytes:
        """Return the bytes of the picture with its sentence in a format."""
        figure = self.figure(**given)
        with _theme():
            return picture_of(figure, kind)

    def __call__(self, **given: Any) -> w.Widget:
        """Show the panel, beginning with these values."""
        return _view(self, self.values(**given))


def panel(title: str, *controls: Control, **more: Any) -> Callable[[Callable[..., Figure]], Panel]:
    """Make a function that draws a panel of its name."""
    return lambda update: Panel(update.__name__, title, update, controls, **more)


#: Widths of the columns: controls, then picture; the switches fill rows.
_LEFT = w.Layout(flex="0 1 23em", min_width="min(18em, 100%)")
_RIGHT = w.Layout(flex="1 1 34em", min_width="min(24em, 100%)", max_width="62em")
_ROW = w.Layout(flex_flow="row wrap")
_GRID = w.Layout(grid_template_columns="repeat(auto-fill, minmax(min(23em, 100%), 1fr))")
#: Labels stand above their fields; what cannot change the picture, and a picture that is not
#: of the values shown, turn pale: the latter after a moment, or every move would flicker.
_LOOK = """<style>
.dlsim-panel {--jp-widgets-font-size: 15px; font-size: 16px}
.dlsim-field.widget-inline-hbox {flex-flow: row wrap; height: auto; align-items: center}
.dlsim-field.widget-inline-hbox > .widget-label {flex: 1 0 100%; height: auto; text-align: left;
  white-space: normal; line-height: 1.35; margin-top: 5px}
.dlsim-inert {opacity: 0.4}
.dlsim-panel code {overflow-wrap: anywhere; white-space: normal}
.dlsim-picture {height: auto !important}
.dlsim-stale {opacity: 0.12; filter: grayscale(1); transition: opacity 0s 0.3s}
.dlsim-words {line-height: 1.4; min-height: 4.2em; font-weight: 600}
.dlsim-error {line-height: 1.4; min-height: 4.2em; border-left: 4px solid #d55e00;
  padding-left: 0.6em}
</style>"""
#: Sliders and pictures have no name for those who hear them unless the page gives them one.
_NAMES = """window.dlsimNames ??= new MutationObserver(() => {
  for (const field of document.querySelectorAll('.dlsim-field'))
    for (const one of field.querySelectorAll('[role=slider]'))
      one.ariaLabel = field.querySelector('.widget-label').textContent;
  for (const one of document.querySelectorAll('img.dlsim-picture'))
    one.alt = one.closest('.dlsim-panel').querySelector('.dlsim-words')?.textContent ?? '';
});
window.dlsimNames.observe(document.body, {childList: true, subtree: true});"""


def _name_all() -> None:
    """Name what panels show where a browser shows them; each brings it: any may be seen first."""
    if getattr(get_ipython(), "kernel", None):
        display(Javascript(_NAMES))


def _message(kind: str, text: str) -> str:
    """Format a line beside a picture; screen readers announce it when it changes."""
    return f'<div class="dlsim-{kind}" role="status" aria-live="polite">{text}</div>'


class _Box(w.VBox):
    """A panel; where there are no widgets, its picture as it opened."""

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, Any]:
        _name_all()
        bundle: dict[str, Any] = super()._repr_mimebundle_(**kwargs)
        if self.picture:
            bundle["image/png"] = base64.b64encode(self.picture).decode("ascii")
        return bundle

    picture = b""


def _more(panel: Panel) -> list[w.Widget]:
    """Say what a label has no room for; it is unfolded by mouse or by Enter."""
    rest = {name: text.partition(". ")[2] for name, text in panel.meanings().items()}
    items = "".join(f"<li><code>{k}</code>: {html.escape(t)}</li>" for k, t in rest.items() if t)
    return [w.HTML(
        "<details class='dlsim-meanings' style='line-height: 1.4; max-width: 75em'>"
        f"<summary>More about these switches</summary><ul>{items}</ul></details>"
    )] if items else []  # fmt: skip


def _view(panel: Panel, values: dict[str, Any]) -> w.Widget:
    """Build the widgets of a panel: controls at the left, picture and words at the right."""
    controls = {control.name: control.widget(values[control.name]) for control in panel.controls}
    read_as, choices = values["reading"], panel.choices
    switches = {name: one.widget(read_as.get(name, one.default)) for name, one in choices.items()}
    fields = (*controls.values(), *switches.values())
    picture = w.Image(format="png", layout=w.Layout(max_width="100%", display="none"))
    words, link, kept, fitting = w.HTML(), w.HTML(), w.HTML(), False
    figure: Figure | None = None
    counter, shown = itertools.count(1), {name: one.value for name, one in controls.items()}

    def read() -> dict[str, Any]:
        """Read the widgets: a control that was not moved keeps the value given."""
        given: dict[str, Any] = {}
        for control in panel.controls:
            now = controls[control.name].value
            moved = control.tidy(now) if isinstance(control, Slider) else now
            given[control.name] = values[control.name] if now == shown[control.name] else moved
        return given | {"reading": {name: one.value for name, one in switches.items()}}

    def fit() -> None:
        """End the sliders where there is no more, and make pale what changes nothing."""
        nonlocal fitting
        now, fitting = panel.values(**read()), True
        for name, end in panel.ends.items():
            controls[name].max = end(now)
        fitting, now = False, panel.values(**read())
        for name, live in panel.live.items():
            one = (switches | controls)[name]
            one.disabled = not live(now)
            (one.add_class if one.disabled else one.remove_class)("dlsim-inert")

    def redraw() -> None:
        nonlocal figure
        picture.add_class("dlsim-stale")
        try:
            fit()
            given = read()
            figure, picture.value = panel.drawn(figure, **given)
        except DlsimError as error:
            pale = " The pale picture is the last one drawn." * bool(picture.value)
            text = f"<b>Not drawn:</b> {html.escape(str(error))}.{pale}"
            words.value = _message("error", text)
            return
        width, height = figure.canvas.get_width_height()
        picture.width, picture.height, picture.layout.display = str(width), str(height), None
        picture.remove_class("dlsim-stale")
        words.value = _message("words", html.escape(" ".join(figure.get_suptitle().split())))
        call = html.escape(panel.link(**given))
        text = f"This picture: <code style='user-select: all'>{call}</code>"
        link.value = _message(f"link dlsim-drawn-{next(counter)}", text)

    def move(_: Any) -> None:
        if not fitting:
            redraw()
            gc.collect()  # the last figure, while its picture is looked at: not amid the next one

    def keep(kind: str) -> None:
        try:
            path = html.escape(str(panel.save(kind, **read())))
            text = f"Saved: <code style='user-select: all'>{path}</code>"
        except DlsimError as error:
            text = f"<b>Not saved:</b> {html.escape(str(error))}"
        kept.value = _message("kept", text)

    for one in fields:
        one.add_class("dlsim-field")
        one.observe(move, names="value")
    picture.add_class("dlsim-picture")
    buttons = [w.Button(description=f"Save as {kind.upper()}") for kind in KINDS]
    for kind, button in zip(KINDS, buttons, strict=True):
        button.on_click(lambda _, kind=kind: keep(kind))
    redraw()
    gc.collect()
    gc.freeze()  # or a collection of all that is imported delays a picture by some 0.3 s
    left = w.VBox([*controls.values()], layout=_LEFT)
    right = w.VBox([words, picture, link, w.HBox(buttons, layout=_ROW), kept], layout=_RIGHT)
    rows = [w.HTML(f"{_LOOK}<h3>{html.escape(panel.title)}</h3>")]
    rows += [w.HBox([left, right], layout=_ROW)]
    if switches:
        rows += [w.HTML("<b>How the paper is read</b>")]
        rows += [w.GridBox([*switches.values()], layout=_GRID)]
    box = _Box([*rows, *_more(panel)])
    box.add_class("dlsim-panel")
    box.picture = picture.value
    return box
