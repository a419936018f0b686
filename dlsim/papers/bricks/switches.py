"""What paper B leaves open: the switches of its readings."""

from typing import Any

from dlsim.bricks.model import DRAWN
from dlsim.bricks.model import SWITCHES as OF_ENGINE

#: Seconds between probes that are tried beside the default.
PROBES = (1.0, 900.0)
#: Switches of `Scheduler`.
OF_SCHEDULER: dict[str, tuple[Any, ...]] = {"exclude_rejecting": (False, True)}
#: Of the simulator, of `Environment.random`, and of the scheduler; the default first.
SWITCHES: dict[str, tuple[Any, ...]] = {
    **OF_ENGINE, "probe": (60.0, *PROBES), **DRAWN, **OF_SCHEDULER,
}  # fmt: skip
