"""What paper S leaves open: the switches of its readings."""

from dlsim.steady import model, topology

#: Switches of the engine, then of the platforms, with their options, the default first.
SWITCHES: dict[str, tuple[str, ...]] = {**model.SWITCHES, **topology.SWITCHES}
