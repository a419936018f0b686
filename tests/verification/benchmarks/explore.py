"""How long a panel takes from the move of a slider to its new picture."""

import functools
import time
from contextlib import suppress

import numpy as np

from dlsim import explore
from dlsim.errors import InputError
from dlsim.explore.controls import NumberList, Slider, StopSlider
from tests.verification.benchmarks.parts import Part, at_most


def stops(control, count):
    """Return some values of a control, from end to end."""
    if isinstance(control, Slider):
        number = round((control.high - control.low) / control.step)
        values = [control.low + control.step * k for k in range(number + 1)]
    elif isinstance(control, StopSlider):
        values = control.stops
    elif isinstance(control, NumberList):
        return [control.default]
    else:
        return control.options[-count:]
    places = np.linspace(0, len(values) - 1, count).round().astype(int)
    return [values[place] for place in places]


def moves(panel, count=3):
    """Every control of a panel at some of its values."""
    for name, control in panel.all_controls.items():
        yield from ({name: value} for value in stops(control, count))


#: Panels with a menu of which an entry needs an extra of dlsim.
WITH_EXTRA = ("wan",)
#: A move should seem immediate.
FLOORS = (at_most("p95_ms", 200),)


def pictures(seed=0, tasks=10_000, names=tuple(explore.PANELS)):
    """Milliseconds from parameters to SVG in a warm process, no move made twice."""
    for name in names:
        panel, times = explore.PANELS[name], []
        for given in moves(panel, 2):  # loads what the menus need
            if isinstance(next(iter(given.values())), str):
                panel.picture(**given)
        panel()  # and leaves what is imported out of later collections, as in a notebook
        for given in moves(panel):
            begin = time.process_time()
            with suppress(InputError):
                panel.screen_picture(**given)
                times.append(1e3 * (time.process_time() - begin))
        yield {
            "panel": name, "moves": len(times), "median_ms": float(np.median(times)),
            "p95_ms": float(np.percentile(times, 95)), "most_ms": max(times),
        }  # fmt: skip


PARTS = {
    "panels": Part(
        "from a slider's move to the picture, every panel but the next",
        functools.partial(pictures, names=tuple(n for n in explore.PANELS if n not in WITH_EXTRA)),
        floors=FLOORS,
    ),
    "wan": Part(
        "the same of the wide-area platform, whose menu has a real network",
        functools.partial(pictures, names=WITH_EXTRA),
        extra="topologies",
        floors=FLOORS,
    ),
}
