"""The controls of a panel: each checks its values and builds its widget."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import ipywidgets as widgets

from dlsim.errors import InputError
from dlsim.validate import MAX_MAGNITUDE, column, number, one_of, whole


def _labelled(label: str) -> dict[str, Any]:
    """Return the keywords that every widget of a control has."""
    return {"description": label, "tooltip": label, "layout": widgets.Layout(width="auto")}


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

    def widget(self, value: float) -> widgets.Widget:
        """Build the slider, standing at the value."""
        common = {"value": value, "min": self.low, "max": self.high, "step": self.step}
        common |= {"continuous_update": False, **_labelled(self.label)}
        if isinstance(self.default, int):
            return widgets.IntSlider(**common)
        digits = len(f"{self.step:g}".partition(".")[2])
        return widgets.FloatSlider(readout_format=f".{digits}f", **common)


@dataclass(frozen=True)
class StopSlider:
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

    def widget(self, value: float) -> widgets.Widget:
        """Build the slider, standing at the value."""
        options = [(f"{stop:.4g}", float(stop)) for stop in sorted({*self.stops, value})]
        common = {"value": value, "continuous_update": False, **_labelled(self.label)}
        return widgets.SelectionSlider(options=options, **common)


@dataclass(frozen=True)
class Menu:
    """One of a few options; the first is the default unless another is named."""

    name: str
    label: str
    options: Sequence[Any]
    default: Any = None

    def __post_init__(self) -> None:
        if self.default is None:
            object.__setattr__(self, "default", self.options[0])

    def check(self, value: Any) -> Any:
        """Return the option that equals the value; raise InputError if there is none."""
        return one_of(self.name, value, self.options)

    def widget(self, value: Any) -> widgets.Widget:
        """Build the menu."""
        options = [(_option_text(one), one) for one in self.options]
        return widgets.Dropdown(options=options, value=value, **_labelled(self.label))


def _option_text(value: Any) -> str:
    """Return the text of an option in its menu."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, tuple):
        return " to ".join(f"{end:g}" for end in value)
    return f"{value:g}" if isinstance(value, float) else str(value)


@dataclass(frozen=True)
class NumberList:
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

    def widget(self, value: tuple[float, ...]) -> widgets.Widget:
        """Build the text field; it is read when Enter is pressed or the field is left."""
        text = ", ".join(f"{number:.17g}" for number in value)
        return widgets.Text(value=text, continuous_update=False, **_labelled(self.label))


Control = Slider | StopSlider | Menu | NumberList
