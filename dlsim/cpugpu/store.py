"""The history of measured runs in an SQLite file: rows that are added and never changed."""

import math
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pandas as pd

from dlsim.cpugpu.history import History
from dlsim.cpugpu.model import CLASSES
from dlsim.errors import InputError
from dlsim.given import floats, mapping, option, text
from dlsim.ledger import LONGEST, TEXT, TIME, Column, Kind, Ledger, is_finite

if TYPE_CHECKING:
    from dlsim.cpugpu.outcome import Schedule

#: What can become of a run: only the first has a time that counts.
OUTCOMES = ("done", "failed", "lost")
COLUMNS: dict[str, Column] = {
    "app": TEXT, "size": TEXT,
    "class": (f"TEXT NOT NULL CHECK (class IN {CLASSES})", CLASSES.__contains__, "gpu or cpu"),
    "host": TEXT, "device": TEXT,
    "seconds": ("REAL CHECK (seconds > 0 AND seconds < 9e999)",
                lambda value: value is None or (is_finite(value) and value > 0),
                "positive and finite, or NULL"),
    "transfer": ("REAL NOT NULL CHECK (transfer >= 0 AND transfer <= ifnull(seconds, 0))",
                 lambda value: is_finite(value) and value >= 0, "finite and at least 0"),
    "outcome": (f"TEXT NOT NULL CHECK (outcome IN {OUTCOMES} AND (outcome = 'done') = "
                "(seconds IS NOT NULL))", OUTCOMES.__contains__, f"one of {', '.join(OUTCOMES)}"),
    "note": TEXT, "at": TIME,
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
        0x646C7369, 2, "a history", "run", "make one with Store(path)",
        ", whose runs carry no checksum: measure anew", COLUMNS,
    )  # fmt: skip

    def _fault(self, row: Mapping[str, Any]) -> str:
        if fault := super()._fault(row):
            return fault
        seconds, transfer, outcome = row["seconds"], row["transfer"], row["outcome"]
        if (seconds is None) == (outcome == "done"):
            return f"column seconds: {seconds} is no time of a run that is {outcome}"
        if transfer > (seconds or 0.0):
            return f"column transfer: {transfer} is more than the seconds of the run, {seconds}"
        return ""

    def add(
        self, app: str, cls: str, seconds: float, *, size: str = "", host: str = "",
        device: str = "", transfer: float = 0.0,
    ) -> None:  # fmt: skip
        """Keep one measured run; `transfer` is the part of `seconds` that moved data."""
        option("device class", cls, CLASSES)
        taken, moved = (floats([seconds, transfer]) + 0.0).tolist()  # the file knows no -0.0
        if not (0 < taken < math.inf and 0 <= moved <= taken):
            raise InputError(
                f"run time of {app!r} on {cls} must be positive and finite and hold its "
                f"transfer, got {seconds!r} and {transfer!r}"
            )
        self.append([(app, size, cls, host, device, taken, moved, "done", "", time.time())])

    def note(
        self, app: str, cls: str, outcome: str, reason: str, *, size: str = "", host: str = "",
        device: str = "",
    ) -> None:  # fmt: skip
        """Keep a run that gave no time: its kernel "failed", or what ran it died ("lost")."""
        option("device class", cls, CLASSES)
        option("outcome", outcome, OUTCOMES[1:])
        said = text("reason", reason)[: LONGEST // 8].encode(errors="backslashreplace").decode()
        self.append([(app, size, cls, host, device, None, 0.0, outcome, said, time.time())])

    def keep(self, schedule: "Schedule", host: str = "simulated") -> None:
        """Keep all runs of a simulated schedule or none; `host` tells them from measured ones."""
        now, jobs = time.time(), schedule.jobs.assign(seconds=schedule.run_times)
        columns = jobs.sort_values("end", kind="stable")[["app", "device", "seconds"]]
        self.append([
            (app, "", device[:3], host, device, seconds, 0.0, "done", "", now)
            for app, device, seconds in columns.itertuples(index=False)
        ])  # fmt: skip

    def table(self) -> pd.DataFrame:
        """Return every run, oldest first; seconds is NaN where the run gave no time."""
        return pd.DataFrame(self.rows(), columns=list(COLUMNS)).astype({"seconds": float})

    def history(self, host: str | None = None, devices: Mapping[str, str] | None = None) -> History:
        """Return what is known, as a policy reads it; applications are named by `key`.

        Only runs of this `host`, and on this device of each class, such as {"gpu": "cuda"}: what
        CUDA took says nothing of OpenCL. A failed run counts as assigned, without a time, so that
        rule 2 does not try it for ever; a lost one does not count.
        """
        history, wanted = History(), mapping("devices", devices or {})
        for app, size, cls, where, device, seconds, _, outcome, *_ in self.rows():
            if host not in (None, where) or (wanted and wanted.get(cls) != device):
                continue
            if outcome != "lost":
                history.assign(key(app, size), cls)
            if outcome == "done":
                history.measure(key(app, size), cls, seconds)
        return history
