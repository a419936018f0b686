"""What paper M leaves open: the switches of its readings."""

from dlsim.realtime.model import SWITCHES_M
from dlsim.realtime.workload import SWITCHES as WORKLOAD_SWITCHES

#: Switches of the engine, then of the workload, with their options, the default first.
SWITCHES: dict[str, tuple[str, ...]] = {**SWITCHES_M, **WORKLOAD_SWITCHES["mcdf"]}
