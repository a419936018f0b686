"""Jobs, devices and the machine of paper C, section 5 A, as schedulers see them."""

import math
from typing import NamedTuple

from dlsim.errors import InputError

#: Device classes, in the order that decides the last tie: GPUs first.
CLASSES = ("gpu", "cpu")
#: The class that a class is not.
OTHER_CLASS = {"gpu": "cpu", "cpu": "gpu"}


def device_class(device: str) -> str:
    """Return the class of a device by its name."""
    cls = device[:3]
    if cls not in CLASSES or not device[3:].isdecimal():
        raise InputError(
            f"a device is called gpu0, gpu1, .. or cpu0, cpu1, ..; got {device!r}; use a name of "
            "Machine.devices"
        )
    return cls


class JobView(NamedTuple):
    """A job as a scheduler sees it: its declared times, not its real ones.

    Attributes
    ----------
    job : int
        Its place in the queue order.
    app : str
        Its application.
    declared : dict
        Its declared run time by class, for the classes it has a version for, GPUs first.
        Policies that learn ask only which classes there are.
    """

    job: int
    app: str
    declared: dict[str, float]

    @property
    def preferred(self) -> str:
        """The class with the smaller declared time, GPUs on a tie."""
        declared = self.declared
        if len(declared) == 1:
            return next(iter(declared))
        return "gpu" if declared["gpu"] <= declared["cpu"] else "cpu"

    @property
    def speed_up(self) -> float:
        """How much faster the preferred class is; infinite if there is no other version."""
        times = self.declared.values()
        return max(times) / min(times) if len(times) > 1 else math.inf
