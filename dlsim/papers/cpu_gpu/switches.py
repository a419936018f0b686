"""The switches that a reading of paper C may name, for who has no need of the study."""

from dlsim.cpugpu.model import SWITCHES

__all__ = ["SWITCHES"]
