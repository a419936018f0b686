"""What experiment a run is: the digests of the functions that it ran, beside the shipped ones.

The digest of a sweep tells its function by the source text, with all that the function uses, its
points and its fixed arguments; but not the seed, the number of runs, and policies that a user
compares in addition. The shipped results have the digests of the shipped experiments
(data/reference/<paper>/<paper>-experiments.csv). A run with other code, other loads, or another
policy in the place of the paper's is another experiment, whose verdicts say nothing about the
shipped ones.
"""

import ast
import inspect
import textwrap
import types
from collections.abc import Callable, Iterable, Mapping, Set
from contextlib import suppress
from functools import cache
from typing import Any

import pandas as pd

from dlsim.files import read_csv
from dlsim.study import session
from dlsim.study.claims import reference_of
from dlsim.study.fingerprint import Digester

#: The columns of the table of a run's experiments.
EXPERIMENT_COLUMNS = {"scale": "text", "sweep": "text", "digest": "text"}


class _ExperimentDigester(Digester):
    """Write a function by its source text, and collections of policies without added ones."""

    def __init__(self, packages: set[str], known: Set[str], added: Set[str]) -> None:
        super().__init__(packages)
        self.known, self.added = known, added  # labels of policies

    def copy(self) -> "_ExperimentDigester":
        """Return a digester that has written nothing yet."""
        return _ExperimentDigester(self.packages, self.known, self.added)

    def persistent_id(self, thing: Any) -> Any:
        """Return what is written instead of an object; None to pickle the object itself."""
        if isinstance(thing, types.SimpleNamespace):  # sizes of a scale
            numbers = {k: v for k, v in vars(thing).items() if k not in ("runs", "table")}
            return "sizes", sorted(numbers.items())
        if type(thing) in (list, tuple, dict) and _names_policies(thing, self.known | self.added):
            members = thing.items() if isinstance(thing, dict) else thing
            kept = [member for member in members if _label_of(member) not in self.added]
            return type(thing).__name__, [self.copy().digest(member) for member in kept]
        return super().persistent_id(thing)

    def _code(self, code: types.CodeType) -> Any:
        """Return the source of a code object as Python writes it; its instructions if it has none.

        Instructions differ between versions of Python.
        """
        with suppress(OSError, TypeError, SyntaxError, ValueError):
            return "source", ast.unparse(ast.parse(textwrap.dedent(inspect.getsource(code))))
        return super()._code(code)


def _label_of(member: Any) -> str:
    """Return the policy that a member of a collection may be about: itself, or its first entry."""
    if isinstance(member, Mapping):
        member = member.get("policy")
    elif isinstance(member, tuple | list) and member:
        member = member[0]
    return member if isinstance(member, str) else ""


def _names_policies(thing: Any, labels: Set[str]) -> bool:
    """Tell whether a collection lists policies by their labels; the globals of code do not."""
    members = thing.items() if isinstance(thing, dict) else thing
    values = thing.values() if isinstance(thing, dict) else thing
    if any(isinstance(value, types.FunctionType | types.ModuleType | type) for value in values):
        return False
    return any(_label_of(member) in labels for member in members)


def digest_experiment(
    function: Callable[..., Any],
    fixed: Mapping[str, Any],
    points: Iterable[Mapping[str, Any]],
    known: Set[str] = frozenset(),
    added: Set[str] = frozenset(),
) -> str:
    """Return the digest of a sweep's function, fixed arguments and points.

    Parameters
    ----------
    function, fixed, points
        What `dlsim.study.sweep` is given.
    known, added : set of str
        Labels of the policies of the paper, and of those that a user compares in addition. What
        the latter are does not change the digest.

    Returns
    -------
    str
        Sixteen hexadecimal digits. What has no meaning outside this process raises what pickling
        raises.
    """
    digester = _ExperimentDigester(set(), known, added)
    return digester.digest((function, sorted(fixed.items()), list(points)))[:16]


def note_experiment(
    frame: pd.DataFrame,
    function: Callable[..., Any],
    fixed: Mapping[str, Any],
    points: Iterable[Mapping[str, Any]],
) -> None:
    """Note in the current session, and in the frame of a sweep, which experiment that is."""
    known = frozenset(getattr(session.current().module, "POLICIES", ()))
    ran = frozenset(frame["policy"].unique()) if known and "policy" in frame else known
    digest = digest_experiment(function, fixed, points, known, ran - known)
    frame.attrs["experiment"] = digest
    session.current().experiments.append((str(getattr(function, "__name__", "sweep")), digest))


@cache
def _shipped(paper: str, scale: str) -> frozenset[str] | None:
    """Return the digests of the shipped experiments of a paper; None if they are not known."""
    place = reference_of(paper).with_name(f"{paper}-experiments.csv")
    if not place.exists():
        return None
    rows = read_csv(place, EXPERIMENT_COLUMNS)
    return frozenset(rows.loc[rows["scale"] == scale, "digest"])


def name_experiment(frames: Iterable[Any]) -> str:
    """Say whether frames come from the experiments that dlsim ships: "as shipped", or "changed".

    A frame that lost the note of its sweep counts as made by all sweeps of the session.
    """
    here = session.current()
    shipped = _shipped(here.paper, here.scale)
    if here.reading or shipped is None:
        return "changed" if here.reading else "as shipped"
    digests: set[str] = set()
    for frame in frames:
        noted = getattr(frame, "attrs", {}).get("experiment")
        digests |= {noted} if noted else {digest for _, digest in here.experiments}
    return "as shipped" if digests and digests <= shipped else "changed"


def tabulate_experiments() -> pd.DataFrame:
    """Return the experiments of this session, one row per sweep."""
    here = session.current()
    rows = [(here.scale, name, digest) for name, digest in sorted(set(here.experiments))]
    return pd.DataFrame(rows, columns=list(EXPERIMENT_COLUMNS))
