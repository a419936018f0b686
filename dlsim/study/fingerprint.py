"""A digest of all that determines the result of a function: its code, its globals, its inputs.

The digest is that of a pickle by value, so that a function of a notebook is identified by its code,
the helpers and values that it uses, and its defaults. The pickle leaves out whatever differs from
process to process without a change of meaning (identities of texts, orders of sets, places of
source files). If two pickles differ needlessly, a sweep only computes its cells again.

Functions and classes of installed packages are written by name, with the package's version; those
of dlsim by name, with the sources of the parts of dlsim that they use. A part is a subpackage or a
module at the top of dlsim. It uses the parts that one of its sources imports.
"""

import ast
import contextlib
import dis
import functools
import hashlib
import importlib
import importlib.metadata
import io
import platform
import re
import sys
import sysconfig
import types
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import cloudpickle

from dlsim.cache import PACKAGE_ROOT, digest_sources

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
#: Members of every class, which say nothing of what it does.
_OF_EVERY_CLASS = frozenset(("__dict__", "__weakref__", "__module__", "__doc__", "_abc_impl"))


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
    used, todo = {"__init__"}, list(names)
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
