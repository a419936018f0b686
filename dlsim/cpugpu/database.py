"""The history database of paper C (section 5): measured run times in an SQLite file.

Every run is one row, and the key (application, size, class, host, device, number of the run) is
unique. Several processes may read and write one file at the same time, and a process that is
killed loses at most the run that it was writing.
"""

import os
import secrets
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Self

import pandas as pd

from dlsim.cpugpu.history import History
from dlsim.cpugpu.model import CLASSES
from dlsim.errors import InputError, StudyError
from dlsim.files import StrPath, open_regular
from dlsim.validate import instance, mapping, number, one_of

#: Marks of a history database in the header of its file, and where SQLite keeps them.
APPLICATION_ID, VERSION = 0x646C7369, 4
VERSION_BYTES, APPLICATION_ID_BYTES = slice(60, 64), slice(68, 72)
#: How long a writer waits for another one, in seconds.
LOCK_TIMEOUT = 30.0
KEY = ("app", "size", "class", "host", "device")
COLUMNS = (*KEY, "run", "seconds")
_TEXTS = ", ".join(f"{name} TEXT NOT NULL CHECK (typeof({name}) = 'text')" for name in KEY)
TABLE = (
    f"CREATE TABLE runs ({_TEXTS}, "
    "run INTEGER NOT NULL CHECK (typeof(run) = 'integer' AND run > 0), "
    "seconds REAL NOT NULL CHECK (typeof(seconds) = 'real' AND seconds > 0 AND seconds < 9e999), "
    f"CHECK (class IN {CLASSES}), UNIQUE ({', '.join(KEY)}, run))"
)
INSERT = (
    f"INSERT INTO runs SELECT ?, ?, ?, ?, ?, 1 + coalesce(max(run), 0), ? FROM runs "
    f"WHERE {' AND '.join(f'{name} = ?' for name in KEY)}"
)


def sized_name(app: str, size: str = "") -> str:
    """Return the name under which a history knows an application with a problem size."""
    return f"{app}[{size}]" if size else app


class HistoryDatabase:
    """Measured runs in an SQLite file.

    Parameters
    ----------
    path : path
        The file; created if it is missing.

    Raises
    ------
    InputError
        If the file is damaged, is not a history database of this version, or cannot be created.
    StudyError
        If other processes keep the file locked for `LOCK_TIMEOUT` seconds.

    References
    ----------
    Paper C, section 5, rule 5: "update the historical database with the runtime information".

    Examples
    --------
    >>> import tempfile
    >>> with (
    ...     tempfile.TemporaryDirectory() as folder,
    ...     HistoryDatabase(f"{folder}/history.sqlite") as database,
    ... ):
    ...     database.add("matmul", "gpu", 2.5, size="4096", host="node7", device="gpu0")
    ...     print(database.history(host="node7").table()[["app", "class", "count", "mean"]])
                app class  count  mean
    0  matmul[4096]   gpu      1   2.5
    """

    def __init__(self, path: StrPath) -> None:
        self.path = Path(os.path.abspath(path))
        if not os.path.lexists(self.path):
            self._create()
        self._require_marks()
        self._connection = self._connect(self.path, "rw")
        try:
            self._require_whole()
        except BaseException:
            self._connection.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file; every run that was added is on disk already."""
        self._connection.close()

    def add(
        self,
        app: str,
        cls: str,
        seconds: float,
        *,
        size: str = "",
        host: str = "",
        device: str = "",
    ) -> None:
        """Add one measured run of an application on a device class, "cpu" or "gpu"."""
        texts = (app, size, cls, host, device)
        for name, text in zip(KEY, texts, strict=True):
            instance(name, text, str, rule="a text")
        one_of("device class", cls, CLASSES)
        taken = number(f"run time of {app!r}", seconds, above=True, rule="positive and finite")
        with self._explain_errors(), self._connection as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                connection.execute(INSERT, (*texts, float(taken), *texts))
            except UnicodeEncodeError as error:
                raise InputError(
                    f"a run cannot be kept, its text is not Unicode: {error}"
                ) from None

    def runs(self) -> pd.DataFrame:
        """Return every run in the order in which they were added, with the columns `COLUMNS`."""
        with self._explain_errors():
            query = f"SELECT {', '.join(COLUMNS)} FROM runs ORDER BY rowid"
            rows = self._connection.execute(query).fetchall()
        runs = pd.DataFrame(rows, columns=list(COLUMNS)).astype({"run": int, "seconds": float})
        missing = runs["run"] != runs.groupby(list(KEY)).cumcount() + 1
        if missing.any():
            row = runs[missing].iloc[0]
            before = f"run {row['run'] - 1} of {row['app']!r} on {row['class']} {row['device']!r}"
            raise self._refusal(f"{before} is missing or out of order")
        return runs

    def history(self, host: str | None = None, devices: Mapping[str, str] | None = None) -> History:
        """Return the history of the runs; an application is called `sized_name` in it.

        Only runs on this `host` count, and, for each class in `devices`, such as
        {"gpu": "gpu0"}, only those on that device.
        """
        wanted = mapping("devices", devices or {})
        runs = self.runs()
        if host is not None:
            runs = runs[runs["host"] == host]
        if wanted:
            runs = runs[runs["class"].map(wanted) == runs["device"]]
        history, columns = History(), runs[["app", "size", "class", "seconds"]]
        for app, size, cls, seconds in columns.itertuples(index=False):
            history.add(sized_name(app, size), cls, seconds)
        return history

    def _create(self) -> None:
        """Create an empty database that appears whole under its name, or not at all."""
        temporary = self.path.with_name(f".dlsim-{secrets.token_hex(8)}.part")
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with closing(self._connect(temporary, "rwc")) as connection:
                connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
                connection.execute(f"PRAGMA user_version = {VERSION}")
                connection.execute(TABLE)
            with suppress(FileExistsError):  # another process was faster: its file is opened
                os.link(temporary, self.path)
        except (OSError, ValueError, sqlite3.Error) as error:  # a ValueError: a NUL in the name
            raise InputError(
                f"{self.path}: not created ({error}); choose another folder"
            ) from error
        finally:
            with suppress(OSError, ValueError):
                temporary.unlink(missing_ok=True)

    @staticmethod
    def _connect(path: Path, mode: str) -> sqlite3.Connection:
        """Open a file; transactions begin where the code says so."""
        address = f"{path.as_uri()}?mode={mode}"
        return sqlite3.connect(address, uri=True, timeout=LOCK_TIMEOUT, isolation_level=None)

    def _require_marks(self) -> None:
        """Refuse the file of another program before SQLite locks, recovers or writes anything."""
        with open_regular(self.path) as file:
            header = file.read(100)
        marks = [int.from_bytes(header[at]) for at in (APPLICATION_ID_BYTES, VERSION_BYTES)]
        if not header.startswith(b"SQLite format 3\0") or marks[0] != APPLICATION_ID:
            raise self._refusal("not a history database")
        if marks[1] != VERSION:
            raise self._refusal(f"of version {marks[1]}, and this dlsim reads version {VERSION}")

    def _require_whole(self) -> None:
        """Refuse a file whose pages, values or tables are not as this class writes them."""
        with self._explain_errors():
            query = "SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL"
            found = self._connection.execute(query).fetchall()
            if found != [("table", "runs", TABLE)]:
                names = ", ".join(f"{kind} {name}" for kind, name, _ in found) or "nothing"
                raise self._refusal(f"the table of runs was changed; the file holds: {names}")
            (result,) = self._connection.execute("PRAGMA integrity_check(1)").fetchone()
            if result != "ok":
                raise self._refusal(f"damaged ({' '.join(result.split())})")

    def _refusal(self, why: str) -> InputError:
        remedy = "it was left as it is: name another file, or move this one away"
        return InputError(f"{self.path}: {why}; {remedy}")

    @contextmanager
    def _explain_errors(self) -> Iterator[None]:
        """Turn SQLite's errors into a refusal, or into a request to run again."""
        try:
            yield
        except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
            if any(word in str(error) for word in ("locked", "busy", "full")):
                raise StudyError(f"{self.path}: {error}; run again") from error
            raise self._refusal(f"damaged ({error})") from error
