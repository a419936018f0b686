"""What the sources of dlsim may hold: imports, names, what opens files, what runs code, kernels."""

import ast
import functools
import graphlib
import importlib
import inspect
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest

import dlsim
from dlsim import compiled

ROOT = Path(__file__).parents[1]
MODULES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
    for path in sorted((ROOT / "dlsim").rglob("*.py"))
    if "_share" not in path.parts
}


@functools.cache
def nodes_of(module):
    """Return every node of a module's syntax tree."""
    return list(ast.walk(ast.parse(MODULES[module].read_text("utf-8"))))


def nodes(module, *kinds):
    return [node for node in nodes_of(module) if isinstance(node, kinds)]


def room(module):
    """Return the folder of a module, or its own name if it lies in none; "" for the package."""
    return [*module.split("."), ""][1]


# ---------------------------------------------------------------- imports

BASE = {
    "", "cache", "compiled", "errors", "files", "validate", "output_folder", "processes",
    "progress", "reading", "record", "rounding", "rules", "joblog", "user_code",
}  # fmt: skip
ENGINES = {"realtime": "simulate", "steady": "solve", "cpugpu": "simulate", "bricks": "simulate"}
FLOOR_2 = BASE | ENGINES.keys() | {"theory", "study"}
#: What each room of the package may import; "" is dlsim/__init__.py.
MAY_IMPORT = {
    "": set(),
    "errors": {""},
    "cache": {"", "errors"},
    "validate": {"", "errors", "user_code"},
    "compiled": {"", "cache", "errors", "progress", "validate", "kernel_files"},
    "kernel_files": {"", "cache"},
    "files": {"", "errors", "validate", "cache"},
    "output_folder": {"", "errors", "files"},
    "processes": {""},
    "progress": {""},
    "reading": {"", "validate", "user_code"},
    "record": {"", "errors", "validate", "user_code"},
    "rounding": {"", "compiled"},
    "rules": {"", "errors", "validate"},
    "joblog": {"", "errors", "files", "validate"},
    "user_code": {"", "errors"},
    **dict.fromkeys(ENGINES.keys() | {"theory", "study"}, BASE),
    **dict.fromkeys(("papers", "live", "explore"), FLOOR_2),
    "cli": FLOOR_2 | {"papers"},
    "__main__": {"", "cli"},
}
#: What a check may import of its engine: the words, what came in, formulas of the model.
CHECKS = {
    "realtime.check": "model formulas check_chunks core.check_chunks core.check_tasks",
    "realtime.check_chunks": "model formulas core.check_chunks",
    "realtime.core.check_chunks": "core.splits",
    "realtime.core.check_tasks": "core.check_chunks",
    "cpugpu.check": "model workload",
    "bricks.check": "model environment",
    "steady.check": "model routes",
}


def named_imports(module):
    """Yield what a module imports, at the top or inside a function."""
    package = module if MODULES[module].name == "__init__.py" else module.rpartition(".")[0]
    for node in nodes(module, ast.Import, ast.ImportFrom):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
            continue
        parts = package.split(".")[: len(package.split(".")) - node.level + 1]
        base = ".".join([*(parts if node.level else []), *filter(None, [node.module])])
        for alias in node.names:
            inner = f"{base}.{alias.name}"
            yield inner if inner in MODULES else base


@functools.cache
def imports():
    """Return which modules of the package each module imports."""
    return {
        module: {name for name in named_imports(module) if name.split(".")[0] == "dlsim"}
        for module in MODULES
    }


def test_the_package_itself_holds_its_version_only():
    """A new version then computes no cell of a sweep anew: its source counts for no part."""
    about, version = ast.parse(MODULES["dlsim"].read_text("utf-8")).body
    assert isinstance(about, ast.Expr)
    assert ast.unparse(version) == f"__version__ = {dlsim.__version__!r}"


def test_imports_exist_and_run_neither_upward_nor_across_nor_in_circles():
    wrong = []
    for module, names in imports().items():
        for name in names:
            allowed = MAY_IMPORT[room(module)] | {room(module)}
            if name not in MODULES or room(name) not in allowed:
                wrong.append(f"{module} imports {name}")
            papers = {one.split(".")[2] for one in (module, name) if one.count(".") >= 2}
            if room(module) == room(name) == "papers" and len(papers) == 2:
                wrong.append(f"{module} imports {name}, of another paper")
    assert wrong == []
    graphlib.TopologicalSorter(imports()).prepare()  # also what only a type checker imports


def test_engines_share_the_names_of_their_rooms():
    """The verb and its result each have a module of that name in every engine."""
    for name, verb in ENGINES.items():
        engine, home = importlib.import_module(f"dlsim.{name}"), f"dlsim.{name}"
        run = getattr(engine, verb)
        assert run.__module__ == f"{home}.{verb}"
        result = inspect.signature(run, eval_str=True).return_annotation
        assert result is getattr(engine, result.__name__)
        assert result.__module__ == f"{home}.result"
        assert {f"{home}.model", f"{home}.check"} <= MODULES.keys()


def test_a_check_imports_no_engine():
    checks = {name for name in MODULES if name.rpartition(".")[2].startswith("check")}
    assert checks == {f"dlsim.{name}" for name in CHECKS}
    for name, allowed in CHECKS.items():
        home = f"dlsim.{name.split('.')[0]}."
        inside = {one for one in imports()[f"dlsim.{name}"] if one.startswith(home)}
        assert inside <= {home + one for one in allowed.split()}, name


def test_a_core_knows_arrays_and_floats_only():
    for module in MODULES:
        if ".core." not in f"{module}.":
            continue
        core = module[: f"{module}.".index(".core.") + len(".core")]
        names = set(named_imports(module))
        strange = {n for n in names if not (n + ".").startswith((core + ".", "dlsim.compiled."))}
        assert strange <= {"math", "numpy", "numpy.typing", "typing", "numba.extending"}, module


def test_imports_are_light():
    code = "import dlsim, sys; print(*sys.modules)\nimport dlsim.cli, dlsim.study.pages\n"
    command = [sys.executable, "-c", f"{code}print(*sys.modules)"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, check=True, text=True)
    first, second = (set(line.split()) for line in done.stdout.splitlines())
    drawing = {"matplotlib", "seaborn", "sympy", "nbformat", "papermill"}
    assert not first & (drawing | {"numba", "pandas"})
    assert not second & drawing


# ---------------------------------------------------------------- names

#: One-letter arguments that may stay in a room: symbols of its paper (n nodes of a task, k a
#: cluster) and of the field (t time, x a point or an array of any kind, n how many, H the Hurst
#: exponent).
SYMBOLS = {"bricks": "Hn", "realtime": "nt", "steady": "k", "study": "ntx", "validate": "x"}
#: Names that several engines or papers share by design: they are used alike.
SHARED = {"simulate", "Reading", "POLICIES", "Policy", "SWITCHES", "find_policy", "KEYS", "touched"}
#: Public names that two modules still define. The set may shrink, and never grow.
DEFINED_TWICE = {"main"}


def public_names(module):
    """Yield the public names that a module defines at its top."""
    for node in nodes_of(module)[0].body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name
        targets = node.targets if isinstance(node, ast.Assign) else []
        targets = [node.target] if isinstance(node, ast.AnnAssign) else targets
        for target in targets:
            yield from (one.id for one in ast.walk(target) if isinstance(one, ast.Name))


def test_no_public_name_is_defined_in_two_modules():
    places = defaultdict(set)
    for module, path in MODULES.items():
        if path.name not in ("__init__.py", "__main__.py"):
            for name in public_names(module):
                places[name].add(module)
    twice = {name: found for name, found in places.items() if len(found) > 1}
    assert {name for name in twice if name[0] != "_"} - SHARED == DEFINED_TWICE, twice


def test_arguments_are_spelled_out():
    short = [
        f"{module}, line {argument.lineno}: {argument.arg}"
        for module in MODULES
        for function in nodes(module, ast.FunctionDef)
        for argument in ast.iter_child_nodes(function.args)
        if isinstance(argument, ast.arg) and len(argument.arg) == 1
        if argument.arg not in {*SYMBOLS.get(room(module), ""), "_"}
    ]
    assert short == []


def test_only_tables_of_constants_are_left_unformatted():
    found = []
    for module, path in MODULES.items():
        text = path.read_text("utf-8")
        if "fmt: " not in text:
            continue
        tables = [n for n in nodes_of(module)[0].body if isinstance(n, ast.Assign | ast.AnnAssign)]
        in_tables = {line for one in tables for line in range(one.lineno, one.end_lineno + 1)}
        for number, line in enumerate(text.split("\n"), 1):
            if any(mark in line for mark in ("fmt: skip", "fmt: off")) and number not in in_tables:
                found.append(f"{module}, line {number}")
    assert found == []


# ---------------------------------------------------------------- files are data

#: Calls that open a file for reading, and the modules that make them: their own material or record.
OPENING = {
    "open", "os.open", "read_text", "read_bytes", "np.load", "np.fromfile", "np.loadtxt",
    "pd.read_csv", "pd.read_json", "json.load", "tomllib.load", "nbformat.read", "gzip.open",
}  # fmt: skip
OWN = {
    "cache", "compiled", "files", "kernel_files", "output_folder", "processes",
    "validate",  # what the system says of its memory
    "study.notebooks", "study.results", "study.pages",  # results of a run, the processor
    "study.fingerprint",  # sources of dlsim
    "study.notebook_process",  # what its parent asks for
    "joblog.slurm", "joblog.swf",  # lines that files.py has read
}  # fmt: skip
#: What turns bytes of a file into code or objects: modules, and functions by their last name.
UNPACKERS = {"dill", "cloudpickle", "joblib", "marshal", "shelve", "yaml", "runpy"}
RUNNERS = {"eval", "exec", "compile", "read_pickle", "read_hdf", "execfile"}


def dotted(function):
    """Return the dotted name of what is called; it begins with a dot behind another expression."""
    parts = []
    while isinstance(function, ast.Attribute):
        parts.append(function.attr)
        function = function.value
    return ".".join([getattr(function, "id", ""), *reversed(parts)])


def opening(call):
    """Tell whether a call opens a file by other means than dlsim.files."""
    whole = dotted(call.func)
    last = whole.rpartition(".")[2] if whole.endswith(("read_text", "read_bytes")) else ""
    ours = whole in ("read_bytes", "read_text", "files.read_bytes", "files.read_text")
    return not ours and bool({whole, last} & OPENING)


def unsafe(code):
    """Yield what in nodes of code would read code or objects from a file."""
    for node in code:
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = [getattr(node, "module", None) or "", *(alias.name for alias in node.names)]
            yield from UNPACKERS & {name.partition(".")[0] for name in names}
        if not isinstance(node, ast.Call):
            continue
        function = dotted(node.func)
        last = function.rpartition(".")[2]
        if function in RUNNERS or (last in RUNNERS and last.startswith("read")):
            yield ast.unparse(node)
        if function.startswith("pickle.") and last != "dumps":
            # an error that travels between our own processes, tried before it is sent
            if not ast.unparse(node).startswith("pickle.loads(pickle.dumps("):
                yield ast.unparse(node)
        if function in ("np.load", "numpy.load") and "allow_pickle=False" not in ast.unparse(node):
            yield ast.unparse(node)


def test_no_other_module_opens_a_file():
    found = {name[6:] for name in MODULES if any(map(opening, nodes(name, ast.Call)))}
    assert found <= OWN
    assert "files" in found


@pytest.mark.parametrize(
    "code",
    ["np.load(f)", "np.load(f, allow_pickle=True)", "pickle.load(f)", "pickle.loads(f.read())",
     "pickle.Unpickler(f)", "import shelve", "from joblib import load", "pd.read_pickle(f)",
     "exec(f.read())", "eval(f.read())"],
)  # fmt: skip
def test_the_search_finds_what_it_looks_for(code):
    assert list(unsafe(ast.walk(ast.parse(code))))


def test_no_file_is_ever_unpickled_or_run():
    kinds = (ast.Import, ast.ImportFrom, ast.Call)
    found = {name[6:]: list(unsafe(nodes(name, *kinds))) for name in MODULES}
    assert {name: calls for name, calls in found.items() if calls} == {
        # kernels in a folder that is the user's alone
        "kernel_files": ["pickle.loads(content[CHECKSUM_BYTES:])"],
        # policies named as FILE.py:name
        "user_code": ["runpy"],
        # functions that travel between processes of one sweep, never through a file
        "study.fingerprint": ["cloudpickle"],
        "study.sweeps": ["cloudpickle"],
    }


# ---------------------------------------------------------------- kernels

#: Functions of numpy that a kernel may call: they round nothing, so that both speeds agree.
EXACT_IN_NUMPY = {"ceil", "floor", "nextafter", "searchsorted", "inf", "nan"}


def test_kernels_call_no_function_of_numpy_that_rounds():
    """Those of `math` are the C library's at both speeds; `np.exp` is not."""
    paths = {path: module for module, path in MODULES.items()}
    for engine in compiled.CORES:
        kernels = [
            function
            for path in compiled.core_sources(f"dlsim.{engine}.core.any")
            for function in nodes(paths[path], ast.FunctionDef)
            if any("compiled" in ast.unparse(one) for one in function.decorator_list)
        ]
        assert len(kernels) > 5
        for kernel in kernels:
            used = {
                node.attr
                for node in ast.walk(kernel)
                if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "np"
            }
            assert used <= EXACT_IN_NUMPY, kernel.name
