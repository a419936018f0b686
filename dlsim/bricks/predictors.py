"""A user's predictor: what it is shown, and that no run remembers another."""

import contextlib
import copy
import functools
import hashlib
import inspect
import pickle
import types
import weakref
from collections.abc import Callable, Iterator
from io import BytesIO
from typing import Any

import numpy as np

from dlsim import given
from dlsim.bricks.core.state import State, World
from dlsim.errors import InputError
from dlsim.given import Floats

#: Digests of what functions and classes referred to before their first run.
_KEPT: weakref.WeakKeyDictionary[Any, bytes | None] = weakref.WeakKeyDictionary()


class _Reached(pickle.Pickler):
    """Writes what a function or class can reach and change, as far as the code around it goes."""

    def __init__(self, stream: BytesIO, home: Any) -> None:
        super().__init__(stream, protocol=5)
        self.home, self.seen = home, dict[int, Any]()

    def persistent_id(self, value: Any) -> Any:
        """Write functions and classes from elsewhere, and those seen before, by name alone."""
        if not isinstance(value, types.FunctionType | types.ModuleType | type):
            return None
        is_here = not isinstance(value, types.ModuleType) and value.__module__ == self.home
        if is_here and id(value) not in self.seen:
            self.seen[id(value)] = value
            return None
        return getattr(value, "__qualname__", value.__name__)

    def reducer_override(self, value: Any) -> Any:
        """Write what a function or class of this module holds."""
        if isinstance(value, type):
            own = {k: getattr(v, "__func__", v) for k, v in vars(value).items()}
            dunders = {k for k in own if k.startswith("__") and not k.endswith("init__")}
            made = dunders | {k for k in own if k.startswith("_abc_")}  # by Python itself
            known = {k: v for k, v in own.items() if k not in made and not isinstance(v, property)}
            return tuple, ([value.__bases__, known],)
        if not isinstance(value, types.FunctionType):
            return NotImplemented
        used = {name: value.__globals__.get(name) for name in _names_of(value.__code__)}
        cells = [_held_by(cell) for cell in value.__closure__ or ()]
        return tuple, ([cells, value.__defaults__, value.__kwdefaults__, vars(value), used],)


def _held_by(cell: types.CellType) -> Any:
    with contextlib.suppress(ValueError):  # one that is filled later
        return cell.cell_contents
    return None


def _names_of(code: types.CodeType) -> Iterator[str]:
    """Return the names that a function, and those inside it, look up."""
    yield from code.co_names
    for inner in code.co_consts:
        if isinstance(inner, types.CodeType):
            yield from _names_of(inner)


def _digest(root: Any) -> bytes | None:
    """Return a digest of what a function or class holds; None where nothing can tell."""
    stream = BytesIO()
    try:
        _Reached(stream, root.__module__).dump(root)
    except Exception:  # generators, open files, and whatever else cannot be written
        return None
    return hashlib.blake2b(stream.getvalue()).digest()


def _refuse_memory(predictor: Any) -> None:
    """Refuse a function or class that has changed what it refers to in an earlier run."""
    while isinstance(predictor, functools.partial):
        predictor = predictor.func
    if isinstance(predictor, types.MethodType):  # its object is copied
        predictor = predictor.__func__
    root = predictor if isinstance(predictor, types.FunctionType | type) else type(predictor)
    if not isinstance(root, types.FunctionType) and root.__module__ == "builtins":
        return
    now = _digest(root)
    if root in _KEPT and (now is None or now != _KEPT[root]):
        raise InputError(
            f"predictor {root.__qualname__} has changed what it refers to (closure, default, global"
            " or class variable) since its first run, or nothing can tell, and no run may know of "
            "another; give a class that keeps this in self: every run makes an object of it"
        )
    _KEPT.setdefault(root, now)


class Predictor:
    """A user's predictor in one run, which remembers nothing of another."""

    def __init__(self, given_one: Any, probe: float) -> None:
        """Make an object of a class; copy an object; refuse a function that remembers."""
        _refuse_memory(given_one)
        self.probe, self.count = probe, 0
        rule = "predictor must be a function, a class made without arguments, or can be copied"
        with given.theirs(rule):
            own = given_one() if isinstance(given_one, type) else copy.deepcopy(given_one)
        self.function: Callable[..., Any] = own
        self.past: Floats | None = np.empty((0, 0)) if _wants_times(own) else None

    def _arguments(self, w: World, s: State) -> tuple[Floats, ...]:
        k, size = int(s.head[0].probes), len(s.ring)
        if self.past is None:
            rows = np.arange(max(0, k - size), k) % size
            return (np.ascontiguousarray(s.ring[rows].T),)
        if k > len(self.past):
            room = max(64, 2 * len(self.past))
            remedy = "use a longer probe interval, or a predictor of the last ten values alone"
            given.need_memory("the past of all series", 8.0 * room * s.ring.shape[1], remedy)
            more = np.empty((room, s.ring.shape[1]))
            if self.count:
                more[: self.count] = self.past[: self.count]
            self.past = more
        self.past[k - 1] = s.ring[(k - 1) % size]
        self.count = k
        seen = self.past[:k].T
        seen.flags.writeable = False
        return seen, np.asarray(self.probe * np.arange(k) - w.origin)

    def foretell(self, w: World, s: State) -> None:
        """Let it speak after a probe."""
        rule = "predictor must return one finite number of at least 0 per series, shape "
        rule += str(s.predicted.shape)
        with given.theirs(rule):
            values = np.asarray(self.function(*self._arguments(w, s)), dtype=np.float64)
        if values.shape != s.predicted.shape or not ((values >= 0) & (values < np.inf)).all():
            least, most = values.min(initial=0), values.max(initial=0)
            raise InputError(f"{rule}; got shape {values.shape}, from {least} to {most}")
        s.predicted[:] = values


def _wants_times(predictor: Any) -> bool:
    """Tell whether a predictor takes, beside values, the times of their measurement."""
    try:
        known = inspect.signature(predictor).parameters.values()
    except (TypeError, ValueError):  # compiled ones tell nothing
        return False
    usual = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return sum(one.kind in usual and one.default is one.empty for one in known) == 2
