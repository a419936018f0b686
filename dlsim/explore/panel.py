"""A panel: a function from parameters to a figure and a sentence, with controls for them.

A panel can be called, tested and saved without a browser; its widgets (`PanelView`) only collect
the parameters and show the result.
"""

import re
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from dlsim.explore.controls import Control, Menu
from dlsim.explore.panel_view import PanelView
from dlsim.explore.pictures import draw_for_screen, theme, write_sentence
from dlsim.study.results import PICTURE_FORMATS, Results, draw_picture
from dlsim.validate import mapping, one_of

#: Letters of a saved file's name before it is shortened.
LONGEST_NAME = 80


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
        The controls in view (at most six), and those behind "more settings".
    switches : mapping of str to sequence
        Switches of the paper's readings, the default option first; behind "readings".
    labels : mapping of str to str
        What each switch decides, in a few plain words: the label of its menu.
    words : mapping of str to str
        Definitions of the words in the picture; behind "words".
    """

    name: str
    title: str
    draw: Callable[..., tuple[Figure, str]]
    controls: tuple[Control, ...]
    settings: tuple[Control, ...] = ()
    switches: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    words: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def all_controls(self) -> dict[str, Control]:
        """Return the controls in view and those of the settings by name."""
        return {control.name: control for control in (*self.controls, *self.settings)}

    @cached_property
    def reading_menus(self) -> dict[str, Menu]:
        """Return a menu per switch."""
        return {
            name: Menu(name, self.labels[name], options) for name, options in self.switches.items()
        }

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
        with theme():
            return self.draw(**values)

    def sentence(self, **given: Any) -> str:
        """Return the sentence of the picture for some parameters."""
        return self.picture(**given)[1]

    def screen_picture(self, kind: str = "svg", **given: Any) -> tuple[bytes, str]:
        """Return the file that the panel shows, sharp at any size, and the sentence above it.

        A viewer without widgets shows the file of the kind png.
        """
        figure, sentence = self.picture(**given)
        with theme():
            return draw_for_screen(figure, kind), sentence

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
        with theme():
            write_sentence(figure, sentence)
            data = draw_picture(figure, one_of("kind", kind, PICTURE_FORMATS))
        return results.picture(self._file_name(**given), data, kind)

    def _file_name(self, **given: Any) -> str:
        """Return a file name made of the panel's name and the parameters that were changed."""
        changes = self.changes(**given)
        changes |= changes.pop("reading", {})
        words = " ".join([self.name, *(str(part) for pair in changes.items() for part in pair)])
        words = re.sub(r"(\d)\.0\b", r"\1", words)  # 10.0 as 10
        name = "-".join(re.findall(r"[a-z0-9]+(?:\.[0-9]+)?", words.lower()))
        if len(name) > LONGEST_NAME:
            name = f"{name[:LONGEST_NAME].rstrip('-.')}-{zlib.crc32(name.encode()):08x}"
        return f"explore-{name}"

    def __call__(self, **given: Any) -> PanelView:
        """Show the panel, beginning with these parameters."""
        return PanelView(self, self.values(**given))


def panel(
    title: str, *controls: Control, **more: Any
) -> Callable[[Callable[..., tuple[Figure, str]]], Panel]:
    """Return a decorator that makes a panel of the function that draws it."""
    return lambda draw: Panel(draw.__name__, title, draw, controls, **more)
