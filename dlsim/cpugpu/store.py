"""The history on disk: every measured run in one SQLite file.

A file is read only after it has been found to be a history, whole and of this version;
anything else is refused and left as it is. Each run is one transaction: other processes
may read, and write, at the same time, and a kill loses at most the run being written.
"""

import math
import os
import secrets
import sqlite3
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import pandas as pd

from dlsim.cpugpu.given import need_option
from dlsim.cpugpu.history import History
from dlsim.errors import InputError, StudyError
from dlsim.files import StrPath

if TYPE_CHECKING:
    from dlsim.cpugpu.engine import Schedule

#: Marks an SQLite file as a history of dlsim, and the version of its table.
APPLICATION, VERSION = 0x646C7369, 1
#: How long a writer waits for another, seconds.
PATIENCE = 30.0
#: What can become of a run: only the first has a time that counts.
OUTCOMES = ("done", "failed", "lost")

COLUMNS = {
    "app": "TEXT NOT NULL", "size": "TEXT NOT NULL", "class": "TEXT NOT NULL",
    "host": "TEXT NOT NULL", "device": "TEXT NOT NULL", "seconds": "REAL",
    "transfer": "REAL NOT NULL", "outcome": "TEXT NOT NULL", "note": "TEXT NOT NULL",
    "at": "REAL NOT NULL",
}  # fmt: skip
NAMES = ", ".join(f'"{name}"' for name in COLUMNS)
INSERT = f"INSERT INTO runs ({NAMES}) VALUES ({', '.join('?' * len(COLUMNS))})"


def key(app: str, size: str = "") -> str:
    """Return the name under which a history knows an application of a size.

    Parameters
    ----------
    app, size : str
        Application and problem size.

    Returns
    -------
    str
        ``app[size]``; the application alone where there is no size.
    """
    return f"{app}[{size}]" if size else app


def _refused(path: Path, why: str) -> InputError:
    return InputError(
        f"{path}: {why}; it was left as it is: name another file, or move this one away"
    )


def _make(path: Path) -> None:
    """Create an empty history that appears whole under its name, or not at all."""
    fields = ", ".join(f'"{name}" {kind}' for name, kind in COLUMNS.items())
    temporary = path.with_name(f".dlsim-{secrets.token_hex(8)}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with closing(sqlite3.connect(temporary)) as made:
            made.execute(f"CREATE TABLE runs (id INTEGER PRIMARY KEY, {fields})")
            made.execute(f"PRAGMA application_id = {APPLICATION}")
            made.execute(f"PRAGMA user_version = {VERSION}")
            made.commit()
        with suppress(FileExistsError):  # another process was first: its file is opened
            os.link(temporary, path)
    except (OSError, sqlite3.Error) as error:
        raise InputError(f"{path}: not written ({error}); choose another folder") from error
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


class Store:
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

    def __init__(self, path: StrPath, create: bool = True) -> None:
        self.path = Path(os.path.abspath(path))
        if not self.path.exists():
            if not create:
                raise InputError(f"{self.path}: no such history; first: dlsim live calibrate")
            _make(self.path)
        self._verify()
        self._connection = self._connect()

    def __enter__(self) -> Self:
        """Return the store itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the file."""
        self.close()

    def close(self) -> None:
        """Close the file; the runs are on disk already."""
        self._connection.close()

    def _verify(self) -> None:
        """Refuse what is not a whole history of this version, before anything is written."""
        if not self.path.is_file():
            raise _refused(self.path, "not a file")
        try:
            with open(self.path, "rb") as stream:
                if stream.read(16) != b"SQLite format 3\0":
                    raise _refused(self.path, "not a history file (no SQLite header)")
        except OSError as error:
            raise _refused(self.path, f"cannot be read ({error.strerror})") from error
        with self._guard(), closing(self._connect()) as reader:
            marks = [reader.execute(f"PRAGMA {name}").fetchone()[0]
                     for name in ("application_id", "user_version")]  # fmt: skip
            if marks != [APPLICATION, VERSION]:
                raise _refused(self.path, f"not a history of version {VERSION}, found {marks}")
            found = reader.execute("PRAGMA quick_check").fetchone()[0]
            if found != "ok":
                raise _refused(self.path, f"damaged ({' '.join(found.split())[:200]})")
            names = [row[1] for row in reader.execute("PRAGMA table_info(runs)")]
            if names != ["id", *COLUMNS]:
                raise _refused(self.path, f"the table of runs has columns {names}")

    def _connect(self) -> sqlite3.Connection:
        """Open the file that is there; what a killed writer left half done is rolled back."""
        return sqlite3.connect(f"{self.path.as_uri()}?mode=rw", uri=True, timeout=PATIENCE)

    @contextmanager
    def _guard(self) -> Iterator[None]:
        """Turn SQLite's errors into those of dlsim."""
        try:
            yield
        except sqlite3.OperationalError as error:
            busy = "locked" in str(error) or "busy" in str(error)
            if busy or "full" in str(error):
                raise StudyError(f"{self.path}: {error}; run again") from error
            raise _refused(self.path, f"cannot be used ({error})") from error
        except sqlite3.DatabaseError as error:
            raise _refused(self.path, f"damaged ({error})") from error

    def add(
        self, app: str, cls: str, seconds: float, *, size: str = "", host: str = "",
        device: str = "", transfer: float = 0.0,
    ) -> None:  # fmt: skip
        """Keep one measured run.

        Parameters
        ----------
        app : str
            The application.
        cls : {"gpu", "cpu"}
            Class of the device it ran on.
        seconds : float
            Time from start to end, transfers included: what the device was busy.
        size, host, device : str
            Problem size, machine and device.
        transfer : float
            The part of `seconds` that moved data.

        Raises
        ------
        InputError
            For a time that is not positive and finite, or a file that cannot be used.
        """
        if not (0 < seconds < math.inf and 0 <= transfer <= seconds):
            raise InputError(
                f"run time of {app!r} on {cls} must be positive and finite and hold its "
                f"transfer, got {seconds!r} and {transfer!r}"
            )
        self._insert(app, size, cls, host, device, float(seconds), float(transfer), "done", "")

    def note(
        self, app: str, cls: str, outcome: str, reason: str, *, size: str = "", host: str = "",
        device: str = "",
    ) -> None:  # fmt: skip
        """Keep a run that gave no time: it failed, or its worker was lost.

        Parameters
        ----------
        app, cls, size, host, device : str
            As `add`.
        outcome : {"failed", "lost"}
            Whether the kernel itself failed, or what ran it died.
        reason : str
            What was seen.

        Raises
        ------
        InputError
            For another outcome, or a file that cannot be used.
        """
        need_option("outcome", outcome, OUTCOMES[1:])
        self._insert(app, size, cls, host, device, None, 0.0, outcome, reason)

    def keep(self, schedule: "Schedule", host: str = "simulated") -> None:
        """Keep every run of a simulated schedule, all or none.

        Parameters
        ----------
        schedule : Schedule
            Of `dlsim.cpugpu.simulate`.
        host : str
            Tells them from measured runs.

        Raises
        ------
        InputError
            For a file that cannot be used.
        """
        jobs, now = schedule.jobs, time.time()
        rows = [
            (app, "", device[:3], host, device, seconds, 0.0, "done", "", now)
            for app, device, seconds in zip(
                jobs["app"], jobs["device"], schedule.run_times.tolist(), strict=True
            )
        ]
        order = jobs["end"].argsort(kind="stable")
        with self._guard(), self._connection as connection:
            connection.executemany(INSERT, [rows[place] for place in order])

    def _insert(self, *values: Any) -> None:
        need_option("device class", values[2], ("gpu", "cpu"))
        with self._guard(), self._connection as connection:
            connection.execute(INSERT, (*values, time.time()))

    def table(self) -> pd.DataFrame:
        """Return every run, oldest first.

        Returns
        -------
        DataFrame
            Columns `COLUMNS`; seconds is NaN where the run gave no time.

        Raises
        ------
        InputError
            For a file that was damaged meanwhile, or holds impossible values.
        """
        with self._guard():
            rows = self._connection.execute(f"SELECT {NAMES} FROM runs ORDER BY id").fetchall()
        for row in rows:
            self._check_row(dict(zip(COLUMNS, row, strict=True)))
        return pd.DataFrame(rows, columns=list(COLUMNS)).astype({"seconds": float})

    def _check_row(self, row: dict[str, Any]) -> None:
        seconds = row["seconds"]
        timed = isinstance(seconds, float) and 0 < seconds < math.inf
        if (
            row["outcome"] not in OUTCOMES
            or row["class"] not in ("gpu", "cpu")
            or not all(isinstance(row[name], str) for name in ("app", "size", "host"))
            or timed != (row["outcome"] == "done")
        ):
            raise _refused(self.path, f"holds an impossible run {row}")

    def history(self, host: str | None = None, devices: Mapping[str, str] | None = None) -> History:
        """Return what is known, as a policy reads it.

        Parameters
        ----------
        host : str, optional
            Only runs of this machine; default: of all.
        devices : mapping of str to str, optional
            Only runs on this device of each class, such as {"gpu": "cuda"}: what CUDA
            took says nothing of OpenCL.

        Returns
        -------
        History
            Applications are named by `key`. A failed run counts as assigned, without a
            time, so that rule 2 does not try it for ever; a lost one does not count.

        Raises
        ------
        InputError
            As `table`.
        """
        history, table = History(), self.table()
        for row in table.to_dict("records"):
            wanted = devices.get(row["class"]) if devices else row["device"]
            if (host is not None and row["host"] != host) or row["device"] != wanted:
                continue
            name = key(row["app"], row["size"])
            if row["outcome"] != "lost":
                history.assign(name, row["class"])
            if row["outcome"] == "done":
                history.measure(name, row["class"], row["seconds"])
        return history
