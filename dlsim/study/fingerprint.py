"""Digests of functions and inputs: of what determines a result, and of what experiment a run is.

The digest of all that determines the result of a function (`fingerprint`) is that of a pickle by
value, so that a function of a notebook is identified by its code, the helpers and values that it
uses, and its defaults. The pickle leaves out whatever differs from process to process without a
change of meaning (identities of texts, orders of sets, places of source files). If two pickles
differ needlessly, a sweep only computes its cells again.

Functions and classes of installed packages are written by name, with the package's version; those
of dlsim by name, with the sources of the parts of dlsim that they use. A part is a subpackage or a
module at the top of dlsim. It uses the parts that one of its sources imports.

The digest of an experiment (`digest_experiment`) tells the function of a sweep by its source text,
with all that the function uses, its points and its fixed arguments; but not the seed, the number
of runs, and policies that a user compares in addition. The shipped results have the digests of the
shipped experiments (data/reference/<paper>/<paper>-experiments.csv). A run with other code, other
loads, or another policy in the place of the paper's is another experiment, whose verdicts say
nothing about the shipped ones.
"""

import ast
import contextlib
import dis
import functools
import hashlib
import importlib
import importlib.metadata
import inspect
import io
import platform
import re
import sys
import sysconfig
import textwrap
import types
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import cloudpickle
import pandas as pd

from dlsim.cache import PACKAGE_ROOT, digest_sources
from dlsim.files import read_csv
from dlsim.study import session
from dlsim.study.claims import reference_of

#: Packages that engines compute with, whose versions always count.
COMPUTING = ("highspy", "networkx", "numba", "numpy", "pandas", "scipy")
#: The folder of Python's own modules; to look it up takes long, and every module asks for it.
STANDARD_LIBRARY = sysconfig.get_path("stdlib")
#: Flag of a class that is not part of a compiled module (Py_TPFLAGS_HEAPTYPE).
_MADE_BY_PYTHON = 1 << 9
#: A statement that imports, on lines of its own.
_IMPORT = re.compile(r"^[ \t]*((?:from[ \t]+\S+[ \t]+)?import[ \t]+(?:\([^)]*\)|.*))", re.MULTILINE)
#: A text that names a module, or begins its name.
_MADE_NAME = re.compile(r"""(?:import_module\(|\bf)["'](dlsim\.[\w.]*)""")
#: Members of every class, which say nothing of what it does; the last two are of Python 3.13.
_OF_EVERY_CLASS = {
    "__dict__", "__weakref__", "__module__", "__doc__", "_abc_impl", "__firstlineno__",
    "__static_attributes__",
}  # fmt: skip


def is_local(module: types.ModuleType | None) -> bool:
    """Tell whether a module is a file of the user: no part of Python, of dlsim, or installed."""
    place = getattr(module, "__file__", None)
    if module is None or not place or module.__name__.partition(".")[0] in ("dlsim", "__main__"):
        return False
    installed = "site-packages" in place or "dist-packages" in place
    return not installed and not place.startswith(STANDARD_LIBRARY)


def ship_by_value() -> None:
    """Make cloudpickle send the definitions of a user's files by value, like those of a notebook.

    Workers then do not need these files, and run the definitions in the memory of this process.
    """
    for module in list(sys.modules.values()):
        if isinstance(module, types.ModuleType) and is_local(module):
            if module.__name__ in sys.modules:
                cloudpickle.register_pickle_by_value(module)


def _is_importable(thing: Any) -> bool:
    """Tell whether a function or class is found by its name in a module that is not local."""
    if isinstance(thing, type) and not thing.__flags__ & _MADE_BY_PYTHON:
        return True
    module = sys.modules.get(str(getattr(thing, "__module__", None)))
    if module is None or module.__name__ == "__main__" or is_local(module):
        return False
    try:
        return functools.reduce(getattr, thing.__qualname__.split("."), module) is thing
    except AttributeError:
        return False


class Digester(cloudpickle.Pickler):
    """Write a pickle that is only digested, and note the packages that it refers to by name."""

    def __init__(self, packages: set[str]) -> None:
        self.stream = io.BytesIO()
        self.packages = packages
        self.classes: dict[int, type] = {}
        super().__init__(self.stream, protocol=5)

    def persistent_id(self, thing: Any) -> Any:
        """Return what is written instead of an object; None to pickle the object itself."""
        if isinstance(thing, str):
            return thing.encode(errors="surrogatepass")
        if isinstance(thing, set | frozenset):
            return "set", sorted(self.copy().digest(member) for member in thing)
        if isinstance(thing, types.CodeType):
            return self._code(thing)
        if hasattr(thing, "py_func"):  # compiled by numba
            return "compiled", thing.py_func, str(getattr(thing, "targetoptions", ""))
        if isinstance(thing, type | types.FunctionType | types.BuiltinFunctionType):
            if isinstance(thing, type) and not _is_importable(thing):
                return self._class(thing)
            self.packages.add(str(getattr(thing, "__module__", None)))
        elif isinstance(thing, types.ModuleType):
            self.packages.add(thing.__name__)
        return None

    def copy(self) -> "Digester":
        """Return a digester that has written nothing yet, and notes the same packages."""
        return Digester(self.packages)

    def digest(self, thing: Any) -> str:
        """Return the digest of an object; a digester writes only one."""
        self.dump(thing)
        return hashlib.sha256(self.stream.getvalue()).hexdigest()

    def _code(self, code: types.CodeType) -> Any:
        """Return the instructions and names of a code object, without its place in a file."""
        self.packages.update(_imports_of_code(code))
        names = code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars
        counts = code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags
        table = getattr(code, "co_exceptiontable", b"")
        return "code", bytes(code.co_code), code.co_consts, names, counts, bytes(table)

    def _class(self, thing: type) -> Any:
        """Return a class by its members, then by a number; cloudpickle would draw a random one."""
        if id(thing) in self.classes:
            return "class", list(self.classes).index(id(thing))
        self.classes[id(thing)] = thing
        members = [(k, v) for k, v in sorted(vars(thing).items()) if k not in _OF_EVERY_CLASS]
        return "class", thing.__qualname__, thing.__bases__, members


def _imports_of_code(code: types.CodeType) -> Iterator[str]:
    """Yield the names of the modules that a code object imports when it runs."""
    module = ""
    for step, after in pairwise(dis.get_instructions(code)):
        if step.opname == "IMPORT_NAME":
            module = str(step.argval)
            if module != "dlsim" or after.opname != "IMPORT_FROM":
                yield module
        elif step.opname == "IMPORT_FROM":  # of "from dlsim import realtime" only realtime counts
            yield f"{module}.{step.argval}"


def parts() -> dict[str, list[Path]]:
    """Return the sources of every part of dlsim, by the name of the module or subpackage."""
    found: dict[str, list[Path]] = {}
    for path in sorted(PACKAGE_ROOT.rglob("*.py")):
        name = path.relative_to(PACKAGE_ROOT).parts[0].removesuffix(".py")
        if name != "_share":  # notebooks and data of an installed package
            found.setdefault(name, []).append(path)
    return found


def _names_imported(source: Path) -> Iterator[str]:
    """Yield the names of modules that a source of dlsim imports, and of what it imports of them.

    To parse whole sources would take as long as many a sweep. A name that is made when it is
    needed begins with a text such as "dlsim.papers.".
    """
    text = source.read_text("utf-8")
    for statement in _IMPORT.findall(text):
        with contextlib.suppress(SyntaxError):  # a sentence of a docstring
            for node in ast.parse(statement).body:
                if isinstance(node, ast.Import):
                    yield from (alias.name for alias in node.names)
                elif isinstance(node, ast.ImportFrom):
                    yield from (f"{node.module}.{alias.name}" for alias in node.names)
    yield from _MADE_NAME.findall(text)


@functools.cache
def _parts_imported(part: str) -> frozenset[str]:
    """Return the parts of dlsim that the sources of a part import."""
    names = (name for source in parts()[part] for name in _names_imported(source))
    imported = {name.split(".")[1] for name in names if name.startswith("dlsim.")}
    return frozenset(imported & parts().keys())


def parts_used(names: Iterable[str]) -> set[str]:
    """Return the parts of dlsim with these names, and all that they use in turn."""
    used, todo = set[str](), list(names)  # dlsim/__init__.py has the version only
    while todo:
        if (part := todo.pop()) not in used:
            used.add(part)
            todo += _parts_imported(part)
    return used


@functools.cache
def _versions() -> list[str]:
    """Return the versions of Python and of what engines compute with."""
    installed = [f"{name} {importlib.metadata.version(name)}" for name in COMPUTING]
    return [platform.python_version(), *installed]


class Used(NamedTuple):
    """What functions run on: names of parts of dlsim, and of other packages that have versions."""

    parts: frozenset[str]
    packages: frozenset[str]


def find_used(modules: Iterable[str]) -> Used:
    """Return what functions of these modules run on."""
    known, used, packages = parts().keys(), set[str](), set[str]()
    for name in modules:
        top, _, rest = name.partition(".")
        part, module = rest.partition(".")[0], sys.modules.get(top)
        if top == "dlsim":  # the package itself leads to each of its parts
            used |= {part} if part in known else known
        elif getattr(module, "__version__", "") and top != "__main__" and not is_local(module):
            packages.add(top)
    return Used(frozenset(parts_used(used)), frozenset(packages))


@functools.cache
def digest_used(used: Used) -> str:
    """Digest the sources and the versions of what functions run on; the packages are imported."""
    known = parts()
    sources = digest_sources(path for part in used.parts for path in known[part])
    versions = {f"{name} {importlib.import_module(name).__version__}" for name in used.packages}
    return hashlib.sha256(repr([sources, *sorted({*_versions(), *versions})]).encode()).hexdigest()


def fingerprint(thing: Any) -> tuple[str, frozenset[str]]:
    """Return a digest of a function or of values by what they are, and the modules they use.

    What has no meaning outside this process raises what pickling raises.
    """
    digester = Digester(set())
    return digester.digest(thing), frozenset(digester.packages)


# ------------------------------------------------------------------ the experiment of a run

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

    def reducer_override(self, thing: Any) -> Any:
        """Return what cloudpickle writes of a function, without what depends on Python's version.

        That is the order in which its code names things, and the indentation of its docstring.
        """
        reduced = super().reducer_override(thing)
        if isinstance(thing, types.FunctionType) and isinstance(reduced, tuple):
            _, about = reduced[2]
            about["__globals__"] = dict(sorted(about["__globals__"].items()))
            about["__doc__"] = about["_cloudpickle_submodules"] = None
        return reduced

    def _code(self, code: types.CodeType) -> Any:
        """Return the source of a code object as Python writes it; its instructions if it has none.

        Instructions differ between versions of Python.
        """
        with contextlib.suppress(OSError, TypeError, SyntaxError, ValueError):
            tree = ast.parse(textwrap.dedent(inspect.getsource(code)))
            return "source", ast.unparse(_FormattedTexts().visit(tree))
        return super()._code(code)


class _FormattedTexts(ast.NodeTransformer):
    """Write f-strings as tuples: which quotes Python writes them in depends on its version."""

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.AST:
        self.generic_visit(node)
        empty = ast.dump(ast.Constant(""))  # Python 3.12 ends a nested format with one
        return ast.Tuple([value for value in node.values if ast.dump(value) != empty])

    def visit_FormattedValue(self, node: ast.FormattedValue) -> ast.AST:
        self.generic_visit(node)
        shown = ast.Constant(node.conversion), node.format_spec or ast.Constant("")
        return ast.Tuple([node.value, *shown])


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


@functools.cache
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
