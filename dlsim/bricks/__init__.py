"""Deadline scheduling for client-server systems on the Grid (paper B)."""

from dlsim.bricks.environment import Environment
from dlsim.bricks.model import DRAWN, SWITCHES, Reading, Scheduler

__all__ = ["DRAWN", "SWITCHES", "Environment", "Reading", "Scheduler"]
