"""The history of measured runs in an SQLite file: rows that are added and never changed."""

import math
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

import pandas as pd

from dlsim.cpugpu.history import History
from dlsim.cpugpu.model import CLASSES
from dlsim.errors import InputError
from dlsim.given import floats, mapping, option
from dlsim.ledger import TEXT, TIME, Column, Kind, Ledger, is_finite

if TYPE_CHECKING:
    from dlsim.cpugpu.outcome import Schedule

COLUMNS: dict[str, Column] = {
    "app": TEXT, "size": TEXT,
    "class": (f"TEXT NOT NULL CHECK (class IN {CLASSES})", CLASSES.__contains__, "gpu or cpu"),
    "host": TEXT, "device": TEXT,
    "seconds": ("REAL NOT NULL CHECK (seconds > 0 AND seconds < 9e999)",
                lambda value: is_finite(value) and value > 0, "positive and finite"),
    "at": TIME,
}  # fmt: skip


def key(app: str, size: str = "") -> str:
    """Return the name under which a history knows an application of a size."""
    return f"{app}[{size}]" if size else app


class Store(Ledger):
    """Measured runs in an SQLite file.

    Parameters
    ----------
    path : path
        The file; made where it is missing.
    create : bool
        Whether a missing file is made, or refused.

    Raises
    ------
    InputError
        For a file that is no history, is damaged or of another version, or a place that
        cannot be written to.
    """

    KIND = Kind(
        0x646C7369, 3, "a history", "run", "make one with Store(path)",
        ", which holds what this one does not: measure anew", COLUMNS,
    )  # fmt: skip

    def add(
        self, app: str, cls: str, seconds: float, *, size: str = "", host: str = "",
        device: str = "",
    ) -> None:  # fmt: skip
        """Keep one measured run."""
        option("device class", cls, CLASSES)
        (taken,) = floats([seconds]).tolist()
        if not 0 < taken < math.inf:
            raise InputError(
                f"run time of {app!r} on {cls} must be positive and finite, got {seconds!r}"
            )
        self.append([(app, size, cls, host, device, taken, time.time())])

    def keep(self, schedule: "Schedule", host: str = "simulated") -> None:
        """Keep all runs of a simulated schedule or none; `host` tells them from measured ones."""
        now, jobs = time.time(), schedule.jobs.assign(seconds=schedule.run_times)
        columns = jobs.sort_values("end", kind="stable")[["app", "device", "seconds"]]
        self.append([
            (app, "", device[:3], host, device, seconds, now)
            for app, device, seconds in columns.itertuples(index=False)
        ])  # fmt: skip

    def table(self) -> pd.DataFrame:
        """Return every run, oldest first."""
        return pd.DataFrame(self.rows(), columns=list(COLUMNS)).astype({"seconds": float})

    def history(self, host: str | None = None, devices: Mapping[str, str] | None = None) -> History:
        """Return what is known, as a policy reads it; applications are named by `key`.

        Only runs of this `host`, and on this device of each class, such as {"gpu": "gpu0"}.
        """
        history, wanted = History(), mapping("devices", devices or {})
        for app, size, cls, where, device, seconds, _ in self.rows():
            if host in (None, where) and (not wanted or wanted.get(cls) == device):
                history.add(key(app, size), cls, seconds)
        return history
