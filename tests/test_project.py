"""The project keeps its own rules: dependencies, import floors, top level, notebooks, figures."""

import ast
import doctest
import functools
import graphlib
import hashlib
import importlib
import inspect
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import nbformat
import pytest
import yaml
from PIL import Image

import dlsim
from dlsim.study.claims import VERDICTS
from dlsim.study.findings import load_findings
from dlsim.study.results import load_figures, paper_letters

ROOT = Path(__file__).parents[1]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
CHANGELOG = (ROOT / "CHANGELOG.md").read_text("utf-8")
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
MODULES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
    for path in sorted((ROOT / "dlsim").rglob("*.py"))
}

# ---------------------------------------------------------------- dependencies

CONDA_NAMES = {"matplotlib": "matplotlib-base"}


def requirement(text, names=None):
    """('NumPy', '>= 2.1,<3') as a normalised name and a set of clauses."""
    name, clauses = re.fullmatch(r"([\w.-]+)\s*(.*)", text).groups()
    name = re.sub(r"[-_.]+", "-", name).lower()
    parts = frozenset(part.replace(" ", "") for part in clauses.split(",") if part)
    return (names or {}).get(name, name), parts


def test_environment_yml_equals_pyproject():
    project = PYPROJECT["project"]
    wanted = {
        requirement(text, CONDA_NAMES)
        for text in project["dependencies"] + project["optional-dependencies"]["test"]
    }
    wanted |= {requirement("python" + project["requires-python"]), requirement("pip")}
    environment = yaml.safe_load((ROOT / "environment.yml").read_text("utf-8"))
    *conda, last = environment["dependencies"]
    assert {requirement(text) for text in conda} == wanted
    assert len(conda) == len(wanted)
    assert last == {"pip": ["-e ."]}
    assert environment["name"] == project["name"]
    assert environment["channels"] == ["conda-forge"]


def test_constraints_are_plain_pins():
    lines = (ROOT / ".ci" / "constraints.txt").read_text("utf-8").splitlines()
    assert [line for line in lines if not re.fullmatch(r"[\w.-]+==[\w.!+-]+", line)] == []
    pinned = {requirement(line.split("==")[0])[0] for line in lines}
    project = PYPROJECT["project"]
    texts = [*project["dependencies"]]
    for extra in project["optional-dependencies"].values():
        texts += extra
    named = {requirement(text)[0] for text in texts if not text.startswith(project["name"] + "[")}
    assert named <= pinned


# --------------------------------------------------------------- import floors

BASE = {
    "",
    "cache",
    "compiled",
    "errors",
    "files",
    "validate",
    "output_folder",
    "processes",
    "progress",
    "reading",
    "record",
    "rounding",
    "rules",
    "joblog",
    "user_code",
}
ENGINES = {"realtime", "steady", "cpugpu", "bricks"}
FLOOR_2 = BASE | ENGINES | {"theory", "study"}
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
    **dict.fromkeys(ENGINES | {"theory", "study"}, BASE),
    "papers": FLOOR_2,
    "live": FLOOR_2,
    "explore": FLOOR_2,
    "cli": FLOOR_2 | {"papers"},
    "__main__": {"", "cli"},
}


def room(module):
    return [*module.split("."), ""][1]


def named_imports(module, path):
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            parts = package.split(".")[: len(package.split(".")) - node.level + 1]
            base = ".".join([*(parts if node.level else []), *filter(None, [node.module])])
            for alias in node.names:
                inner = f"{base}.{alias.name}"
                yield inner if inner in MODULES else base


@functools.cache
def imports():
    """Which modules of the package each module imports, at the top or inside a function."""
    return {
        module: {name for name in named_imports(module, path) if name.split(".")[0] == "dlsim"}
        for module, path in MODULES.items()
    }


def test_the_package_itself_holds_its_version_only():
    """A new version then computes no cell of a sweep anew: its source counts for no part."""
    about, version = ast.parse(MODULES["dlsim"].read_text("utf-8")).body
    assert isinstance(about, ast.Expr)
    assert ast.unparse(version) == f"__version__ = {dlsim.__version__!r}"


def test_every_room_has_a_floor():
    assert {room(module) for module in MODULES} <= set(MAY_IMPORT)


def test_imports_exist():
    assert set().union(*imports().values()) <= set(MODULES)


def test_no_import_runs_upward():
    upward = [
        f"{module} imports {name}"
        for module, names in imports().items()
        for name in sorted(names)
        if room(name) not in MAY_IMPORT[room(module)] | {room(module)}
    ]
    assert upward == []


def test_no_paper_imports_another():
    package = "dlsim.papers."
    across = [
        f"{module} imports {name}"
        for module, names in imports().items()
        if module.startswith(package)
        for name in sorted(names)
        if name.startswith(package) and name.split(".")[2] != module.split(".")[2]
    ]
    assert across == []


def test_no_import_cycles():
    """Not even where only a type checker imports."""
    graphlib.TopologicalSorter(imports()).prepare()


#: What a check may import of its engine: the words, what came in, formulas of the model.
CHECKS = {
    "dlsim.realtime.check": {
        "model",
        "formulas",
        "check_chunks",
        "core.check_chunks",
        "core.check_tasks",
    },
    "dlsim.realtime.check_chunks": {"model", "formulas", "core.check_chunks"},
    "dlsim.realtime.core.check_chunks": {"splits"},
    "dlsim.realtime.core.check_tasks": {"check_chunks"},
    "dlsim.cpugpu.check": {"model", "workload"},
    "dlsim.bricks.check": {"model", "environment"},
    "dlsim.steady.check": {"model", "routes"},
}


def test_engines_share_the_names_of_their_rooms():
    """The verb and its result each have a module of that name in every engine."""
    verbs = {"bricks": "simulate", "cpugpu": "simulate", "realtime": "simulate", "steady": "solve"}
    homes = {
        "realtime": ("simulate", "result"),
        "steady": ("solve", "result"),
        "cpugpu": ("simulate", "result"),
        "bricks": ("simulate", "result"),
    }
    assert set(verbs) == ENGINES
    for name, verb in verbs.items():
        engine = importlib.import_module(f"dlsim.{name}")
        run, room = getattr(engine, verb), f"dlsim.{name}"
        assert run.__module__ == f"{room}.{homes[name][0]}"
        result = inspect.signature(run, eval_str=True).return_annotation
        assert result is getattr(engine, result.__name__)
        assert result.__module__ == f"{room}.{homes[name][1]}"
        assert {f"{room}.{name}" for name in ("model", "check")} <= set(MODULES)


def test_a_check_imports_no_engine():
    checks = {module for module in MODULES if module.split(".")[-1].startswith("check")}
    assert checks <= set(CHECKS)
    for module, allowed in CHECKS.items():
        package = module.rpartition(".")[0]
        inside = {name for name in imports()[module] if name.startswith(package + ".")}
        assert inside <= {f"{package}.{name}" for name in allowed}, module


def test_a_core_knows_arrays_and_floats_only():
    for module, path in MODULES.items():
        if ".core." not in f"{module}.":
            continue
        core = module[: f"{module}.".index(".core.") + len(".core")]
        names = set(named_imports(module, path))
        strange = {n for n in names if not (n + ".").startswith((core + ".", "dlsim.compiled."))}
        assert strange <= {"math", "numpy", "numpy.typing", "typing", "numba.extending"}, module


def brought_in(code):
    """The packages that a fresh interpreter holds after it ran this code."""
    code += "\nimport sys; print(*{name.partition('.')[0] for name in sys.modules})"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, check=True)
    return set(done.stdout.decode().split())


def test_imports_are_light():
    drawing = {"matplotlib", "seaborn", "sympy", "nbformat", "papermill"}
    assert not brought_in("import dlsim") & (drawing | {"numba", "pandas"})
    assert not brought_in("import dlsim.cli, dlsim.study.pages") & drawing


# -------------------------------------------------------- top level and README

TOP_LEVEL = {
    "notebooks",
    "dlsim",
    "data",
    "environment.yml",
    "pyproject.toml",
    "tests",
    "README.md",
    "LICENSE",
    "CITATION.cff",
    "CHANGELOG.md",
}
COMMANDS = ["pip install -e . && dlsim reproduce", "pip install -e '.[test]' && pytest"]
ABSOLUTE_PATH = re.compile(r"(?:^|[\s\"'`(=])(?:/[A-Za-z]|~/|file://|[A-Z]:\\)", re.M)


def test_tables_of_names_name_what_is_there():
    """Tables that say by name what counts, runs first or is left out."""
    from dlsim import cli, compiled
    from dlsim.study import fingerprint, notebooks, session

    there = {path.stem for path in NOTEBOOKS}
    apart = {*cli.MACHINE_NOTEBOOKS, "90-scorecard"}
    assert apart <= there
    assert sorted(notebooks.LONGEST_FIRST) == sorted(there - apart)
    assert (ROOT / cli.FIRST_NOTEBOOK).is_file()
    cores = {name for name in MODULES if name.endswith(".core")}
    assert {core.package for core in compiled.CORES.values()} == cores
    for name in cores:
        assert all(path.is_file() for path in compiled.core_sources(name))
    needed = {requirement(text)[0] for text in PYPROJECT["project"]["dependencies"]}
    assert needed >= set(fingerprint.COMPUTING)
    for paper in paper_letters().values():
        assert session.paper_module(paper).__file__
    study = importlib.import_module("dlsim.study")
    assert {f"dlsim.study.{module}" for module in study._MODULE_OF.values()} <= MODULES.keys()
    assert study._MODULE_OF.keys() == set(study.__all__)


def test_top_level_holds_nothing_else():
    if not (ROOT / ".git").exists():
        pytest.skip("not a git checkout")
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    assert listed.returncode == 0, listed.stderr
    names = {line.split("/")[0] for line in listed.stdout.splitlines()}
    assert {name for name in names if not name.startswith(".")} == TOP_LEVEL


@pytest.mark.parametrize("command", COMMANDS)
def test_readme_gives_each_command_once(command):
    text = (ROOT / "README.md").read_text("utf-8")
    lines = "\n".join(re.findall(r"^```\w*\n(.*?)^```", text, re.M | re.S)).splitlines()
    assert [line.strip() for line in lines].count(command) == 1


def test_readme_names_no_machine_path():
    assert ABSOLUTE_PATH.findall((ROOT / "README.md").read_text("utf-8")) == []


def test_readme_pictures_exist():
    text = (ROOT / "README.md").read_text("utf-8")
    pictures = re.findall(r"!\[[^\]]*\]\(([^)\s]+)", text) + re.findall(
        r'<img[^>]*src="([^"]+)', text
    )
    assert pictures
    assert [name for name in pictures if not (ROOT / name).is_file()] == []


def test_readme_examples_do_what_they_show(monkeypatch):
    monkeypatch.chdir(ROOT)
    text = (ROOT / "README.md").read_text("utf-8")
    examples = "\n".join(re.findall(r"^```python\n(.*?)^```", text, re.M | re.S))
    parsed = doctest.DocTestParser().get_doctest(examples, {}, "README.md", "README.md", 0)
    assert len(parsed.examples) > 5  # verification/test_your_own.py has the others
    failures = []
    doctest.DocTestRunner(verbose=False).run(parsed, out=failures.append)
    assert failures == []


#: What the Citation File Format 1.2.0 requires, of a file, a reference, and their authors.
CFF = {"cff-version", "message", "title", "authors"}
CFF_TYPES = {"article", "conference-paper", "generic", "report"}


def names_somebody(authors):
    people = {"family-names", "given-names"}
    return bool(authors) and all(set(one) in (people, {"name"}) for one in authors)


def test_the_citation_is_complete_and_names_the_five_papers():
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    assert cited.keys() >= CFF
    assert cited["cff-version"] == "1.2.0"
    assert cited["type"] == "software"
    assert cited["license"] == PYPROJECT["project"]["license"]
    assert cited["version"] == dlsim.__version__
    assert f"## {cited['version']} ({cited['date-released']})" in CHANGELOG
    assert names_somebody(cited["authors"])
    for one in cited["references"]:
        assert one.keys() >= {"type", "title", "authors"}
        assert one["type"] in CFF_TYPES
        assert names_somebody(one["authors"])
    papers = tomllib.loads((ROOT / "data" / "figures.toml").read_text("utf-8"))["papers"]
    printed = {papers[name]["title"] for name in paper_letters().values()}
    assert {one["title"] for one in cited["references"]} == printed


def test_the_notebook_of_a_paper_begins_with_what_was_found():
    figures = load_figures()[1]
    notebooks = {row.paper: row.notebook for row in reversed(figures)}
    for paper in paper_letters().values():
        name = f"notebooks/{notebooks[paper]}.ipynb"
        head = re.sub(r"\s+", " ", nbformat.read(ROOT / name, 4).cells[0].source)
        findings = [one for one in load_findings() if one.paper == paper and name in one.texts]
        assert any(one.rendered() in head.partition("## ")[0] for one in findings), name


def test_the_changelog_ends_at_this_version():
    heads = re.findall(r"^## (.+)$", CHANGELOG, re.M)
    assert heads[0] == "Unreleased" or heads[0].split()[0] == dlsim.__version__
    released = [head for head in heads if head != "Unreleased"]
    assert all(re.fullmatch(r"\d+\.\d+\.\d+ \(\d{4}-\d\d-\d\d\)", one) for one in released)


def test_readme_counts_every_verdict():  # study/test_findings.py compares the numbers
    text = (ROOT / "README.md").read_text("utf-8")
    counted = re.search(r"With 95 % confidence (.*?);", text)[1].replace(" are ", " ")
    assert sorted(re.findall(r"\d+ ([a-z ]+?)(?:,| and|$)", counted)) == sorted(VERDICTS)


def test_the_picture_of_readme_is_of_the_shipped_table():  # else run .ci/draw_readme_picture
    table = ROOT / "data" / "reference" / "mcdf" / "mcdf-fig4.csv"
    with Image.open(ROOT / "data" / "figures" / "mcdf-in-words.png") as picture:
        assert picture.text["Source"] == hashlib.sha256(table.read_bytes()).hexdigest()


def test_readme_is_short():
    assert len((ROOT / "README.md").read_bytes()) < 7500


# -------------------------------------------------------------------- notebooks

PARAMETERS = {
    "scale": ("str", "quick"),
    "seed": ("int", 0),
    "runs": ("int", 0),
    "jobs": ("int", 0),
    "out": ("str", ""),
    "reading": ("dict", {}),
}


def code_cells(path):
    return [cell for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"]


def cells_on_pages(path):
    """The code cells whose code stands on the page."""
    return [c for c in code_cells(path) if "remove-input" not in c.metadata.get("tags", [])]


def is_parameters(cell):
    return "parameters" in cell.metadata.get("tags", [])


def test_there_are_notebooks():
    assert NOTEBOOKS


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
class TestNotebook:
    def test_name_keeps_the_reading_order(self, path):
        assert re.fullmatch(r"\d\d-[a-z]+(-[a-z]+)*", path.stem)

    def test_is_valid_and_runs_on_python3(self, path):
        notebook = nbformat.read(path, as_version=4)
        nbformat.validate(notebook)
        assert notebook.metadata.kernelspec.name == "python3"

    def test_first_code_cell_is_the_one_parameters_cell(self, path):
        """Only the place of the conclusions, whose code no page shows, may stand before it."""
        cells = cells_on_pages(path)
        assert [is_parameters(cell) for cell in cells] == [True] + [False] * (len(cells) - 1)

    def test_parameters_are_typed_literals_with_a_comment(self, path):
        source = cells_on_pages(path)[0].source
        lines, seen = source.splitlines(), {}
        for node in ast.parse(source).body:
            assert isinstance(node, ast.AnnAssign), ast.unparse(node)
            assert re.search(r"#\s*\S", lines[node.end_lineno - 1][node.end_col_offset :]), lines[
                node.end_lineno - 1
            ]
            # papermill reads no line with two of them, and then does not know the parameter
            assert lines[node.lineno - 1].count("=") == 1, lines[node.lineno - 1]
            seen[node.target.id] = (ast.unparse(node.annotation), ast.literal_eval(node.value))
        assert {name: seen.get(name) for name in PARAMETERS} == PARAMETERS
