"""The project keeps its own rules: dependencies, top level, README, citation."""

import doctest
import hashlib
import importlib
import re
import subprocess
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
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
    for path in (ROOT / "dlsim").rglob("*.py")
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


# -------------------------------------------------------- top level and README

TOP_LEVEL = {
    "notebooks", "dlsim", "data", "environment.yml", "pyproject.toml", "tests", "README.md",
    "LICENSE", "CITATION.cff", "CHANGELOG.md",
}  # fmt: skip
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
    needed = {requirement(text)[0] for text in PYPROJECT["project"]["dependencies"]}
    assert needed >= set(fingerprint.COMPUTING)
    for paper in paper_letters().values():
        assert session.paper_module(paper).__file__
    study = importlib.import_module("dlsim.study")
    assert {f"dlsim.study.{module}" for module in study._NAMES_OF} <= MODULES
    assert sorted(sum(study._NAMES_OF.values(), ())) == study.__all__


def test_top_level_holds_nothing_else():
    if not (ROOT / ".git").exists():
        pytest.skip("not a git checkout")
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    assert listed.returncode == 0, listed.stderr
    names = {line.split("/")[0] for line in listed.stdout.splitlines()}
    assert {name for name in names if not name.startswith(".")} == TOP_LEVEL


def test_readme_is_short_gives_each_command_once_and_names_no_machine_path():
    text = (ROOT / "README.md").read_text("utf-8")
    assert len(text.encode()) < 7500
    lines = "\n".join(re.findall(r"^```\w*\n(.*?)^```", text, re.M | re.S)).splitlines()
    assert [[line.strip() for line in lines].count(command) for command in COMMANDS] == [1, 1]
    assert ABSOLUTE_PATH.findall(text) == []


def test_readme_examples_do_what_they_show(monkeypatch):
    monkeypatch.chdir(ROOT)
    text = (ROOT / "README.md").read_text("utf-8")
    examples = "\n".join(re.findall(r"^```python\n(.*?)^```", text, re.M | re.S))
    parsed = doctest.DocTestParser().get_doctest(examples, {}, "README.md", "README.md", 0)
    assert len(parsed.examples) > 5  # verification/test_your_own.py has the others
    failures = []
    doctest.DocTestRunner(verbose=False).run(parsed, out=failures.append)
    assert failures == []


#: Kinds of references that the Citation File Format 1.2.0 knows.
CFF_TYPES = {"article", "conference-paper", "generic", "report"}


def names_somebody(authors):
    people = {"family-names", "given-names"}
    return bool(authors) and all(set(one) in (people, {"name"}) for one in authors)


def test_the_citation_is_complete_and_names_the_five_papers():
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    assert cited.keys() >= {"cff-version", "message", "title", "authors"}
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
    figures = load_figures().figures
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
