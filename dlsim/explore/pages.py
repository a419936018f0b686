"""The panels without installation: pages whose pictures were drawn before, at a few stops.

A page needs neither a server nor anything from outside; its script, which is in it, only
chooses among the pictures beside it.
"""

import itertools
from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import Any

from markupsafe import Markup

from dlsim.errors import InputError
from dlsim.explore.panel import Numbers, Panel, Slider, small
from dlsim.files import StrPath
from dlsim.given import option
from dlsim.owned import Owned
from dlsim.study.pages import pages_of

#: What can be moved on the page of every panel, and where it stops; the default is among it.
TOURS: dict[str, dict[str, Sequence[Any]]] = {
    "timing": {"used": range(1, 9), "st": (0.0, 20.0, 40.0, 80.0)},
    "schedules": {"step": range(1, 13), "left": ("MCDF", "EDFMN", "FIFO-DLT")},
    "idle_times": {"sigma": (10.0, 20.0, 40.0, 80.0), "cps": (1.0, 4.0, 10.0), "rounds": (2, 4)},
    "wan": {"method": ("G", "LPR", "LPRG", "LPRR", "MILP"), "connections": (1, 2, 4, 6, 10)},
    "grid": {"opt": (0.4, 0.6, 0.7, 0.8, 1.0), "fallbacks": (0, 1, 3), "probe": (60.0, 3600.0)},
    "herding": {"correction": (False, True), "probe": (60.0, 200.0, 800.0, 3600.0),
                "servers": (8, 20, 40)},
    "queue": {"policy": ("history", "torque", "rsc", "gpu-only"), "speed_up": (0.5, 1.0, 2.0, 4.0),
              "known": ("nothing", "every run time")},
    "pipeline": {"chunks": (1, 2, 5, 10), "kernel": (0.5, 1.0, 3.0, 6.0), "engines": (2, 1)},
}  # fmt: skip


def fields_of(panel: Panel) -> list[dict[str, Any]]:
    """Return the fields of a page: label, the words of every stop, which of them is the default."""
    known, found = {control.name: control for control in panel.controls}, []
    for name, stops in TOURS[panel.name].items():
        control = known[name]
        assert not isinstance(control, Numbers)
        words = [f"{stop:g}" if isinstance(control, Slider) else control.words(stop)
                 for stop in stops]  # fmt: skip
        start = list(stops).index(control.default)
        found.append({"name": name, "label": control.label, "stops": words, "start": start})
    return found


def pictures_of(panel: Panel) -> Iterator[tuple[str, bytes]]:
    """Draw a panel at all stops, the last field moving fastest: sentence and picture.

    Values that cannot be drawn have no picture, and their sentence is why.
    """
    tour, figure = TOURS[panel.name], None
    for values in itertools.product(*tour.values()):
        try:
            figure, _ = panel.drawn(figure, **dict(zip(tour, values, strict=True)))
        except InputError as error:
            yield f"Not drawn: {error}.", b""
        else:
            yield " ".join(figure.get_suptitle().split()), small(figure)


def drawn(home: Owned, name: str) -> tuple[Panel, str, int]:
    """Draw the pictures of a panel; return it, what moves them on a page, and their bytes."""
    panel = getattr(import_module("dlsim.explore"), option("panel", name, TOURS))
    said, size, seen, start = [], 0, dict[bytes, str](), 0
    for number, (words, png) in enumerate(pictures_of(panel)):
        if png and png not in seen:
            seen[png] = f"{name}/{number}.png"
            size += home.write(seen[png], png).stat().st_size
        said.append([words, seen.get(png, "")])
    fields = fields_of(panel)
    for field in fields:
        start = start * len(field["stops"]) + field["start"]
    part = pages_of(home.folder, __file__).get_template("panel.part.html").render(
        fields=fields, said=said, start=start, call=panel.link()
    )  # fmt: skip
    return panel, part, size


def export(folder: StrPath, names: Sequence[str] = tuple(TOURS)) -> dict[str, int]:
    """Write panels as pages that work from a folder, and a page that leads to them.

    Parameters
    ----------
    folder : path
        Where index.html, a page per panel and its pictures go; made if need be.
    names : sequence of str
        Panels, by default all eight.

    Returns
    -------
    dict of str to int
        Bytes of every panel, its page and its pictures.

    Raises
    ------
    InputError
        For a panel that there is not, or a folder that cannot be written to or holds
        something else.
    """
    home = Owned(folder, "explore").claim()
    pages, sizes, panels = pages_of(home.folder, __file__), dict[str, int](), []
    for name in names:
        panel, part, size = drawn(home, name)
        panels.append((name, panel.title))
        page = pages.get_template("panel.html").render(title=panel.title, part=Markup(part))
        sizes[name] = size + home.write(f"{name}.html", page.encode()).stat().st_size
    index = pages.get_template("panels.html").render(panels=panels, sizes=sizes)
    home.write("index.html", index.encode())
    return sizes
