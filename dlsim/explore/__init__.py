"""Panels to explore the papers with sliders, in a notebook.

>>> from dlsim import explore
>>> explore.timing.call(nodes=8)
'explore.timing(nodes=8)'

Calling a panel shows it; the line below its picture is the call that brings the picture back.
"""

from dlsim.explore.grid import grid
from dlsim.explore.idle_time import idle_time
from dlsim.explore.overlap import overlap
from dlsim.explore.queue import queue
from dlsim.explore.schedules import schedules
from dlsim.explore.timing import timing
from dlsim.explore.wan import wan

#: Every panel by name, in the order of the papers.
PANELS = {panel.name: panel for panel in (timing, schedules, idle_time, wan, grid, queue, overlap)}

__all__ = ["PANELS", "grid", "idle_time", "overlap", "queue", "schedules", "timing", "wan"]
