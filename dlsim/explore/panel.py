"""The frame of the panels: controls beside a picture that is drawn again when one of them moves.

A panel is a function from parameters to a figure and a sentence. It can be called, tested and
saved without a browser; the widgets only collect the parameters and show the result.
"""

import base64
import gc
import html
import inspect
import io
import itertools
import math
import re
import textwrap
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import ipywidgets as w
import matplotlib
from IPython.core.getipython import get_ipython
from IPython.display import Javascript, display
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from dlsim.errors import DlsimError, InputError
from dlsim.study import style
from dlsim.study.figures import KINDS
from dlsim.study.report import Results
from dlsim.validate import MAX_MAGNITUDE, column, mapping, number, one_of, whole

#: Size of every picture in inches, and its dots per inch on the screen and in a saved PNG file.
WIDTH, HEIGHT = 6.9, 3.9
SCREEN_DPI, FILE_DPI = 96, 150
#: Most controls in view; a panel keeps the others behind "more settings".
MOST_CONTROLS = 6
#: Sizes of text in points.
TEXT_SIZES: Any = {
    "font.size": 9,
    "axes.titlesize": 9.5,
    "axes.labelsize": 9,
    "xtick.labelsize": 8.5,
    "ytick.labelsize": 8.5,
    "legend.fontsize": 8.5,
}
#: Letters of the sentence above a saved picture that fit into one line.
LETTERS_PER_LINE = 100
#: Letters of a saved file's name before it is shortened.
LONGEST_NAME = 80
#: One entry of the section Parameters of a docstring: names, then indented lines.
_PARAMETER = re.compile(r"^(\w+(?:, \w+)*)(?: :.*)?\n((?:(?: {4}.*)?\n)+)", re.MULTILINE)


def _labelled(label: str, tooltip: str = "") -> dict[str, Any]:
    """Return the keywords that every widget of a control has."""
    layout = w.Layout(width="auto")
    return {"description": label, "tooltip": tooltip or label, "layout": layout}


@dataclass(frozen=True)
class Slider:
    """A number on a scale with equal steps; a whole number if its default is one."""

    name: str
    label: str
    low: float
    high: float
    step: float
    default: float

    def check(self, value: Any) -> float:
        """Return the value if it lies on the scale; raise InputError otherwise."""
        if isinstance(self.default, int):
            rule = f"a whole number between {self.low:g} and {self.high:g}"
            return whole(self.name, value, math.ceil(self.low), math.floor(self.high), rule)
        rule = f"a number between {self.low:g} and {self.high:g}"
        slack = 1e-9 * max(abs(self.low), abs(self.high))
        found = number(self.name, value, self.low - slack, self.high + slack, rule=rule)
        return float(f"{float(found):.12g}")  # a browser adds steps up, with rounding errors

    def widget(self, value: float) -> w.Widget:
        """Build the slider, standing at the value."""
        common = {"value": value, "min": self.low, "max": self.high, "step": self.step}
        common |= {"continuous_update": False, **_labelled(self.label)}
        if isinstance(self.default, int):
            return w.IntSlider(**common)
        digits = len(f"{self.step:g}".partition(".")[2])
        return w.FloatSlider(readout_format=f".{digits}f", **common)


@dataclass(frozen=True)
class Stops:
    """A number on a scale of chosen stops, such as 1, 2, 5, 10, 20, 50; others may be typed."""

    name: str
    label: str
    stops: Sequence[float]
    default: float

    def check(self, value: Any) -> float:
        """Return the value if it lies between the ends; raise InputError otherwise."""
        low, high = self.stops[0], self.stops[-1]
        rule = f"a number between {low:g} and {high:g}"
        return float(number(self.name, value, low, high, rule=rule))

    def widget(self, value: float) -> w.Widget:
        """Build the slider, standing at the value."""
        options = [(f"{stop:.4g}", float(stop)) for stop in sorted({*self.stops, value})]
        common = {"value": value, "continuous_update": False, **_labelled(self.label)}
        return w.SelectionSlider(options=options, **common)


@dataclass(frozen=True)
class Choice:
    """One of a few options; the first is the default unless another is named."""

    name: str
    label: str
    options: Sequence[Any]
    default: Any = None
    tooltip: str = ""

    def __post_init__(self) -> None:
        if self.default is None:
            object.__setattr__(self, "default", self.options[0])

    def check(self, value: Any) -> Any:
        """Return the option that equals the value; raise InputError if there is none."""
        return one_of(self.name, value, self.options)

    def widget(self, value: Any) -> w.Widget:
        """Build the menu."""
        options = [(_option_text(one), one) for one in self.options]
        return w.Dropdown(options=options, value=value, **_labelled(self.label, self.tooltip))


def _option_text(value: Any) -> str:
    """Return the text of an option in its menu."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, tuple):
        return " to ".join(f"{end:g}" for end in value)
    return f"{value:g}" if isinstance(value, float) else str(value)


@dataclass(frozen=True)
class Numbers:
    """A list of numbers, written with commas between them."""

    name: str
    label: str
    default: tuple[float, ...]
    low: float = 0.0
    high: float = MAX_MAGNITUDE
    most: int = 64

    def check(self, value: Any) -> tuple[float, ...]:
        """Return the numbers of a text or a sequence; raise InputError for anything else."""
        parts = value.replace(";", ",").split(",") if isinstance(value, str) else value
        try:
            numbers = tuple(float(part) for part in parts)
        except (TypeError, ValueError):
            rule = "numbers with commas between them"
            raise InputError(f"{self.name} must be {rule}, got {value!r}") from None
        if not 1 <= len(numbers) <= self.most:
            raise InputError(f"{self.name} must hold 1 to {self.most} numbers, got {len(numbers)}")
        rule = f"a number between {self.low:g} and {self.high:g}"
        return tuple(column(self.name, numbers, self.low, self.high, rule=rule).tolist())

    def widget(self, value: tuple[float, ...]) -> w.Widget:
        """Build the text field; it is read when Enter is pressed or the field is left."""
        text = ", ".join(f"{number:.17g}" for number in value)
        return w.Text(value=text, continuous_update=False, **_labelled(self.label))


Control = Slider | Stops | Choice | Numbers


@contextmanager
def _theme() -> Iterator[None]:
    """Draw in the style of all figures, with the text sizes of a panel."""
    with matplotlib.rc_context():
        style.use()
        matplotlib.rcParams.update(TEXT_SIZES)
        yield


def new_figure(left: float, bottom: float, right: float, top: float, **gaps: float) -> Figure:
    """Return an empty figure of a panel; margins in inches, `gaps` as of subplots_adjust."""
    layout: Any = "none"  # a layout engine would draw the figure twice
    figure = Figure(figsize=(WIDTH, HEIGHT), dpi=SCREEN_DPI, layout=layout)
    FigureCanvasAgg(figure)
    figure.subplots_adjust(
        left / WIDTH, bottom / HEIGHT, 1 - right / WIDTH, 1 - top / HEIGHT, **gaps
    )
    return figure


def set_title(ax: Axes, text: str) -> None:
    """Write at the left above axes what they show."""
    ax.set_title(text, loc="left", pad=3, y=1.0)


def image_bytes(figure: Figure, kind: str, sentence: str = "", dpi: int = FILE_DPI) -> bytes:
    """Return a figure as a file, without a date; a sentence stands above the picture."""
    if sentence:
        text = textwrap.fill(sentence, LETTERS_PER_LINE)
        figure.suptitle(text, fontsize=10, y=1 + 0.05 / HEIGHT, va="bottom")
    options: dict[str, Any] = {"dpi": dpi, "metadata": KINDS[kind]}
    if kind == "png":
        options["pil_kwargs"] = {"compress_level": 1}
    stream = io.BytesIO()
    figure.savefig(stream, format=kind, bbox_inches="tight" if sentence else None, **options)
    return stream.getvalue()


@dataclass(frozen=True)
class Panel:
    """A picture with controls; calling the panel shows it, such as ``explore.timing(nodes=8)``.

    Parameters
    ----------
    name, title : str
        The function in `dlsim.explore`, and what the panel shows.
    draw : callable
        Takes every parameter by name and returns the figure and a sentence about it.
    controls, settings : tuple of Control
        The controls in view (at most `MOST_CONTROLS`), and those behind "more settings".
    switches : mapping of str to sequence
        Switches of the paper's readings, the default option first; behind "readings".
    explained : tuple of class or function
        Their numpydoc sections Parameters say what the switches decide.
    words : mapping of str to str
        Definitions of the words in the picture; behind "words".
    """

    name: str
    title: str
    draw: Callable[..., tuple[Figure, str]]
    controls: tuple[Control, ...]
    settings: tuple[Control, ...] = ()
    switches: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    explained: tuple[Any, ...] = ()
    words: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def all_controls(self) -> dict[str, Control]:
        """Return the controls in view and those of the settings by name."""
        return {control.name: control for control in (*self.controls, *self.settings)}

    @cached_property
    def reading_menus(self) -> dict[str, Choice]:
        """Return a menu per switch, labelled by the first sentence of its meaning."""
        menus = {}
        for name, options in self.switches.items():
            meaning = self.meanings.get(name, name)
            label = meaning.partition(". ")[0].rstrip(".")
            menus[name] = Choice(name, label, options, tooltip=meaning)
        return menus

    @cached_property
    def meanings(self) -> dict[str, str]:
        """Return what each switch decides, from the docstrings of `explained`."""
        found: dict[str, str] = {}
        for source in self.explained:
            for names, text in _PARAMETER.findall(f"{inspect.getdoc(source) or ''}\n"):
                plain = re.sub(r":math:|`", "", " ".join(text.split()))
                for name in names.split(", "):
                    found.setdefault(name, re.sub(r"\\bar\{(\w+)\}", r"\1", plain))
        return {name: found[name] for name in self.switches if name in found}

    def values(self, **given: Any) -> dict[str, Any]:
        """Return all parameters, checked; those that are not given have their defaults.

        Raises
        ------
        InputError
            For an unknown parameter or switch, or a value out of range.
        """
        reading = mapping("reading", given.pop("reading", {}))
        controls, menus = self.all_controls, self.reading_menus
        for name in given:
            one_of(f"parameter of {self.name}", name, [*controls, "reading"])
        for name, value in reading.items():
            one_of(f"switch of {self.name}", name, self.switches)
            menus[name].check(value)
        changed = {k: v for k, v in reading.items() if v != menus[k].default}
        values = {name: one.check(given.get(name, one.default)) for name, one in controls.items()}
        return values | {"reading": changed}

    def changes(self, **given: Any) -> dict[str, Any]:
        """Return the parameters that differ from the defaults."""
        controls = self.all_controls
        return {
            name: value
            for name, value in self.values(**given).items()
            if value != ({} if name == "reading" else controls[name].default)
        }

    def call(self, **given: Any) -> str:
        """Return the Python call that shows the panel with these parameters."""
        words = ", ".join(f"{name}={value!r}" for name, value in self.changes(**given).items())
        return f"explore.{self.name}({words})"

    def picture(self, **given: Any) -> tuple[Figure, str]:
        """Return the figure for some parameters, and the sentence that says what it shows.

        Raises
        ------
        InputError
            For parameters that are refused, by the panel or by the engine.
        """
        values = self.values(**given)
        with _theme():
            return self.draw(**values)

    def sentence(self, **given: Any) -> str:
        """Return the sentence of the picture for some parameters."""
        return self.picture(**given)[1]

    def screen_picture(self, **given: Any) -> tuple[bytes, str]:
        """Return the PNG file that the panel shows, and the sentence above it."""
        figure, sentence = self.picture(**given)
        with _theme():
            return image_bytes(figure, "png", dpi=SCREEN_DPI), sentence

    def save(self, kind: str = "svg", out: str | Path = "", **given: Any) -> Path:
        """Write the picture with its sentence, as in ``explore.timing.save("pdf", used=5)``.

        Parameters
        ----------
        kind : str
            svg, pdf or png.
        out : path
            Folder of results; "" is results/explore. The file is figures/NAME.KIND in it; NAME
            holds the panel's name and the parameters that were changed.
        **given
            Parameters of the panel.

        Returns
        -------
        Path
            The file. Equal parameters give equal bytes.

        Raises
        ------
        InputError
            For another kind, refused parameters, or a folder that holds something else.
        """
        results = Results(out, "explore")
        figure, sentence = self.picture(**given)
        with _theme():
            data = image_bytes(figure, one_of("kind", kind, KINDS), sentence)
        return results.picture(self._file_name(**given), data, kind)

    def _file_name(self, **given: Any) -> str:
        """Return a file name made of the panel's name and what differs from the defaults."""
        changes = self.changes(**given)
        changes |= changes.pop("reading", {})
        words = " ".join([self.name, *(str(part) for pair in changes.items() for part in pair)])
        words = re.sub(r"(\d)\.0\b", r"\1", words)  # 10.0 as 10
        name = "-".join(re.findall(r"[a-z0-9]+(?:\.[0-9]+)?", words.lower()))
        if len(name) > LONGEST_NAME:
            name = f"{name[:LONGEST_NAME].rstrip('-.')}-{zlib.crc32(name.encode()):08x}"
        return f"explore-{name}"

    def __call__(self, **given: Any) -> "PanelView":
        """Show the panel, beginning with these parameters."""
        return PanelView(self, self.values(**given))


def panel(
    title: str, *controls: Control, **more: Any
) -> Callable[[Callable[..., tuple[Figure, str]]], Panel]:
    """Return a decorator that makes a panel of the function that draws it."""
    return lambda draw: Panel(draw.__name__, title, draw, controls, **more)


#: Controls stand in a narrow column beside the picture where the window has room for both.
#: A picture that does not belong to the values shown is pale, after a moment, or it would flicker.
_STYLE = """<style>
.dlsim-panel {--jp-widgets-font-size: 13px; font-size: 14px}
.dlsim-panel .widget-html-content {line-height: 1.35}
.dlsim-field.widget-inline-hbox {flex-flow: row wrap; height: auto; align-items: center}
.dlsim-field.widget-inline-hbox > .widget-label {flex: 1 0 100%; height: auto; text-align: left;
  white-space: normal; line-height: 1.25; margin: 2px 0 0}
.dlsim-field .slider-container {flex: 1 1 6em; min-width: 0}
.dlsim-field .widget-readout {flex: 0 0 3.4em; min-width: 0}
.dlsim-panel code {overflow-wrap: anywhere; white-space: normal}
.dlsim-picture {height: auto !important}
.dlsim-stale {opacity: 0.12; filter: grayscale(1); transition: opacity 0s 0.3s}
.dlsim-words {min-height: 4.05em; font-weight: 600}
.dlsim-error {min-height: 4.05em; border-left: 4px solid #d55e00; padding-left: 0.6em}
.dlsim-panel dt {font-weight: 600} .dlsim-panel dd {margin-left: 1.5em}
</style>"""
_COLUMN = {"flex": "0 0 13.5em", "min_width": "12em"}
_PICTURE = {"flex": "1 1 24em", "min_width": "min(22em, 100%)", "max_width": "60em"}
_PICTURE |= {"overflow": "visible"}  # or a narrow window has scroll bars within the page
_WIDE_GRID = "repeat(auto-fill, minmax(min(20em, 100%), 1fr))"
#: Screen readers need names of sliders and pictures, which ipywidgets does not give them.
_NAMES = """window.dlsimNames ??= new MutationObserver(() => {
  for (const field of document.querySelectorAll('.dlsim-field'))
    for (const one of field.querySelectorAll('[role=slider]'))
      one.ariaLabel = field.querySelector('.widget-label').textContent;
  for (const one of document.querySelectorAll('img.dlsim-picture'))
    one.alt = one.closest('.dlsim-panel').querySelector('.dlsim-words')?.textContent ?? '';
});
window.dlsimNames.observe(document.body, {childList: true, subtree: true});"""


def _status(kind: str, text: str) -> str:
    """Return a line of HTML that screen readers announce when it changes."""
    return f'<div class="dlsim-{kind}" role="status" aria-live="polite">{text}</div>'


class PanelView(w.VBox):
    """The widgets of a panel: controls at the left, sentence and picture at the right."""

    def __init__(self, panel: Panel, values: dict[str, Any]) -> None:
        self.panel = panel
        self.controls = {
            name: control.widget(values[name]) for name, control in panel.all_controls.items()
        }
        self.readings = {
            name: menu.widget(values["reading"].get(name, menu.default))
            for name, menu in panel.reading_menus.items()
        }
        self.image = w.Image(format="png", layout=w.Layout(max_width="100%", display="none"))
        self.sentence, self.link, self.saved = w.HTML(), w.HTML(), w.HTML()
        self.drawings = itertools.count(1)
        self.last_request, self.last_path = ("", ""), Path()
        self.image.add_class("dlsim-picture")
        for one in (*self.controls.values(), *self.readings.values()):
            one.add_class("dlsim-field")
            one.observe(lambda _: self.redraw(), names="value")
        super().__init__(self._rows())
        self.add_class("dlsim-panel")
        self.redraw()
        gc.freeze()  # or a collection of all that is imported delays a picture by 0.3 s

    def _rows(self) -> list[w.Widget]:
        """Build the two columns, and below them what the buttons unfold."""
        in_view = [self.controls[control.name] for control in self.panel.controls]
        folded = [self.controls[control.name] for control in self.panel.settings]
        definitions = "".join(
            f"<dt>{html.escape(word)}</dt><dd>{html.escape(text)}</dd>"
            for word, text in self.panel.words.items()
        )
        grid = w.Layout(grid_template_columns=_WIDE_GRID, display="none")
        parts = {
            "more settings": w.GridBox(folded, layout=grid) if folded else None,
            "readings": w.GridBox([*self.readings.values()], layout=grid),
            "words": w.HTML(f"<dl>{definitions}</dl>", layout=w.Layout(display="none")),
        }
        folds = {name: part for name, part in parts.items() if part is not None}
        toggles = [_fold_button(name, part) for name, part in folds.items()]
        buttons = [self._save_button(kind) for kind in KINDS]
        left = w.VBox(
            [*in_view, *toggles, w.HBox(buttons, layout=w.Layout(flex_flow="row wrap"))],
            layout=w.Layout(**_COLUMN),
        )
        right = w.VBox(
            [self.sentence, self.image, self.link, self.saved], layout=w.Layout(**_PICTURE)
        )
        title = w.HTML(f"{_STYLE}<b>{html.escape(self.panel.title)}</b>")
        columns = w.HBox([left, right], layout=w.Layout(flex_flow="row wrap"))
        return [title, columns, *folds.values()]

    def _save_button(self, kind: str) -> w.Button:
        label = kind.upper()
        layout = w.Layout(width="auto", flex="1 1 auto")
        button = w.Button(description=label, tooltip=f"Save the picture as {label}", layout=layout)
        button.on_click(lambda _: self.save(kind))
        return button

    def values(self) -> dict[str, Any]:
        """Return what the widgets show."""
        given = {name: one.value for name, one in self.controls.items()}
        return given | {"reading": {name: one.value for name, one in self.readings.items()}}

    def redraw(self) -> None:
        """Draw the picture of the values shown, or say why not and leave the last one pale."""
        self.image.add_class("dlsim-stale")
        values = self.values()
        try:
            self.image.value, sentence = self.panel.screen_picture(**values)
        except DlsimError as error:
            pale = " The pale picture is the last one drawn." if self.image.value else ""
            text = f"<b>Not drawn:</b> {html.escape(str(error))}.{pale}"
            self.sentence.value = _status("error", text)
            return
        self.image.width = str(round(WIDTH * SCREEN_DPI))
        self.image.height = str(round(HEIGHT * SCREEN_DPI))
        self.image.layout.display = None
        self.image.remove_class("dlsim-stale")
        self.sentence.value = _status("words", html.escape(sentence))
        call = html.escape(self.panel.call(**values))
        text = f"This picture: <code style='user-select: all'>{call}</code>"
        self.link.value = _status(f"link dlsim-drawn-{next(self.drawings)}", text)

    def save(self, kind: str) -> None:
        """Save the picture; a second click on the same picture, as in a double click, does not."""
        values = self.values()
        try:
            request = (kind, self.panel.call(**values))
            if request == self.last_request and self.last_path.is_file():
                return
            self.last_path = self.panel.save(kind, **values)
            self.last_request = request
            path = html.escape(str(self.last_path))
            text = f"Saved: <code style='user-select: all'>{path}</code>"
        except DlsimError as error:
            text = f"<b>Not saved:</b> {html.escape(str(error))}"
        self.saved.value = _status("kept", text)

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, Any]:
        """Add the picture, for viewers that show no widgets."""
        if getattr(get_ipython(), "kernel", None):
            display(Javascript(_NAMES))
        bundle: dict[str, Any] = super()._repr_mimebundle_(**kwargs)
        if self.image.value:
            bundle["image/png"] = base64.b64encode(self.image.value).decode("ascii")
        return bundle


def _fold_button(name: str, part: w.Widget) -> w.ToggleButton:
    """Return a button that shows or hides a part of a panel."""
    button = w.ToggleButton(description=name, icon="caret-down", layout=w.Layout(width="auto"))

    def unfold(change: Any) -> None:
        part.layout.display = None if change["new"] else "none"

    button.observe(unfold, names="value")
    return button
