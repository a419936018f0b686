"""Panels to explore the papers with sliders, in a notebook.

>>> from dlsim import explore
>>> explore.timing.call(nodes=8)
'explore.timing(nodes=8)'

Calling a panel shows it; the line below its picture is the call that brings the picture back.
"""

from dlsim.explore.grid import grid
from dlsim.explore.queue import queue
from dlsim.explore.schedules import schedules
from dlsim.explore.timing import timing
from dlsim.explore.wan import wan

#: Every panel by name, in the order of the papers.
PANELS = {panel.name: panel for panel in (timing, schedules, wan, grid, queue)}

__all__ = ["PANELS", "grid", "queue", "schedules", "timing", "wan"]
