"""CPU-GPU scheduling by run-time history, its rivals, and MapReduce on top (paper C)."""

from dlsim.cpugpu.history import History
from dlsim.cpugpu.model import POLICIES, SWITCHES, Decision, Item, Machine, Policy, Reading, State

__all__ = [
    "POLICIES",
    "SWITCHES",
    "Decision",
    "History",
    "Item",
    "Machine",
    "Policy",
    "Reading",
    "State",
]
