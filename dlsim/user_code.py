"""A user's functions and records: loading by ``FILE.py:name`` or ``module:name``, and calling."""

import importlib
import inspect
import os
import reprlib
import runpy
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dlsim.errors import InputError


def names_user_code(value: Any) -> bool:
    """Tell whether a value is a text with a colon; no name of dlsim has one."""
    return isinstance(value, str) and ":" in value


def load_user_code(what: str, text: str) -> Any:
    """Run a file or module and return the object that a text such as ``file.py:name`` names."""
    place, _, name = text.rpartition(":")
    rule = f"{what} {text!r} must be module:name or FILE.py:name"
    if place.endswith(".py") and not os.path.exists(place):
        where = f"there is no file {place} seen from the folder {Path.cwd()}"
        raise InputError(f"{what} {text!r}: {where}{_similar_file(place)}")
    try:
        if not (place and name):
            raise ValueError("there is no colon between two names")
        if place.endswith(".py"):
            return runpy.run_path(place, run_name=Path(place).stem)[name]
        return getattr(importlib.import_module(place), name)
    except Exception as error:  # the user's file may raise anything
        raise InputError(f"{rule}; {type(error).__name__}: {error}") from error


def _similar_file(place: str) -> str:
    """Say where a file of this name is: in a subfolder of the current folder, or in its parent."""
    name, here = Path(place).name, Path.cwd()
    folders = sorted(folder for folder in here.glob("*") if os.path.isdir(folder))
    for found in (folder / name for folder in (*folders, here.parent)):
        if os.path.isfile(found):
            return f"; did you mean {found}?"
    return "; give its path from there"


def resolve_user_code(what: str, value: Any) -> Any:
    """Return the object that a text names in a user's file, and any other value as it is."""
    return load_user_code(what, value) if names_user_code(value) else value


@contextmanager
def calling_user_code(rule: str) -> Iterator[None]:
    """Turn an exception of a user's function or class into an InputError that states `rule`.

    An InputError passes through unchanged.
    """
    try:
        yield
    except InputError:
        raise
    except Exception as error:
        raise InputError(f"{rule}; got {type(error).__name__}: {error}") from error


def count_parameters(function: Callable[..., Any]) -> int:
    """Return how many arguments a function can be called with, -1 where that is not known."""
    try:
        return len(inspect.signature(getattr(function, "py_func", function)).parameters)
    except (TypeError, ValueError):
        return -1


def count_required(function: Callable[..., Any]) -> int:
    """Return how many arguments a function must be called with, -1 where that is not known."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # a compiled function has no signature
        return -1
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return sum(one.kind in positional and one.default is one.empty for one in parameters)


class UserFunction(NamedTuple):
    """A function of a user that is called again and again, each time for a row of a table."""

    kind: str  # what the function decides
    parameters: Sequence[str]
    returns: str  # the values that it must return, in words
    function: Callable[..., Any]
    row: str  # what a row is, such as a task
    labels: Any  # of the rows

    def call(
        self, row: int, where: Callable[[], str], *given: Any
    ) -> tuple[Any, NDArray[np.float64]]:
        """Call the function; return what it gave, and that as floats.

        An InputError about what it raised or gave names the row and what `where` returns.
        """
        try:
            found = self.function(*given)
        except Exception as error:
            raise InputError(
                f"{self._signature()}, called {self._occasion(row, where)}, raised "
                f"{type(error).__name__}: {error}"
            ) from error
        try:
            return found, np.array(found, dtype=np.float64, ndmin=1).ravel()
        except Exception as error:
            raise self.refusal(row, where, reprlib.repr(found)) from error

    def refusal(self, row: int, where: Callable[[], str], got: str) -> InputError:
        """Return the error for a value that the function must not return."""
        rule = f"{self._signature()} must return {self.returns}"
        return InputError(f"{rule}; {self._occasion(row, where)} it gave {got}")

    def _signature(self) -> str:
        name = getattr(self.function, "__name__", self.kind)
        return f"{self.kind} function {name}({', '.join(self.parameters)})"

    def _occasion(self, row: int, where: Callable[[], str]) -> str:
        label = self.labels[row]
        label = label.item() if isinstance(label, np.generic) else label
        return f"for {self.row} {label!r} {where()}"
