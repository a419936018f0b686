"""How long a panel takes from the move of a slider to its new picture."""

import gc
import time
from contextlib import suppress

import numpy as np

from dlsim import explore
from dlsim.errors import InputError
from dlsim.explore.panel import Slider
from tests.benchmarks.parts import Part


def stops(slider, count):
    """Some of a slider's stops, from end to end."""
    places = np.linspace(0, len(slider.stops) - 1, count).round().astype(int)
    return [slider.stops[place] for place in places]


def moves(panel, count=3):
    """Every slider of a panel at some of its stops, every option of its menus."""
    for control in panel.controls:
        if isinstance(control, Slider):
            yield from ({control.name: value} for value in stops(control, count))
        else:
            options = getattr(control, "options", [control.default])
            yield from ({control.name: option} for option in options[-count:])


def pictures(seed=0, tasks=10_000, names=tuple(explore.PANELS)):
    """Milliseconds from parameters to PNG in a warm process, no move made twice."""
    for name in names:
        panel, times = getattr(explore, name), []
        for given in moves(panel, 2):  # loads what the menus need
            if not isinstance(next(iter(given.values())), int | float):
                panel.figure(**given)
        figure = panel.drawn()[0]
        gc.collect()
        gc.freeze()  # as a panel that is shown does
        for given in moves(panel):
            begin = time.process_time()
            with suppress(InputError):
                panel.drawn(figure, **given)  # upon the last one, as a panel that is shown does
                times.append(1e3 * (time.process_time() - begin))
            gc.collect()  # as a panel does once its picture is shown
        yield {
            "panel": name, "moves": len(times), "median_ms": float(np.median(times)),
            "p95_ms": float(np.percentile(times, 95)), "most_ms": max(times),
        }  # fmt: skip


PARTS = {"panels": Part("from a slider's move to the picture, every panel", pictures)}
