"""The map of readings: what is run again under a reading, and what is taken from the notebook.

Every frame of the map equals that of the notebook when it is run from its beginning under that
reading, byte for byte: also each row and column that the map takes over, since the switch does not
touch them.
"""

import ast
import dis
from types import CodeType, SimpleNamespace

import nbformat
import pandas as pd
import pytest

from dlsim.files import suite_notebooks
from dlsim.study import session
from dlsim.study.readings import replace_rows
from dlsim.study.session import name_reading

#: Small sizes; the map of readings needs no others.
SIZES = {
    "mcdf": {"horizon": 3e4, "ratio_horizon": 3e4, "runs": 2, "pools": 1},
    "inserted-idle-time": {"horizon": 6e4, "map_horizon": 3e4, "runs": 2, "pools": 1},
    "steady-state": {
        **{"tiers_clusters": [5, 9], "random_clusters": [5, 9], "connectivities": [0.2, 0.6]},
        **{"tiers_runs": 4, "random_runs": 4, "tiers_every": 2, "random_every": 2},
        **{"map_tiers_runs": 4, "map_runs": 2, "exact_every": 4},
        **{"vertices": 3, "vertex_clusters": [5, 9], "vertex_runs": 2},
        **{"side_clusters": [5], "runs": 2, "timed_clusters": [5], "timed_runs": 1},
    },
    "cpu-gpu": {"runs": 2, "draws": 2, "words": 100},
    "bricks": {
        **{"hours": 3.0, "runs": 3, "front_hours": 1.0, "other_hours": 2.0, "other_runs": 2},
        **{"map_runs": 2, "slow_runs": 1},
    },
}
#: Notebook, parameters of a small run, and the frames of its map by their names in the notebook.
CASES = {
    "mcdf": (
        "20-mcdf",
        {"loads": [0.3, 1.0], "setups": [0, 20], "ratios": [0.2, 3]},
        {"main": "main", "ratios": "at_costs", "doubled": "of_mcdf", "half": "half"},
    ),
    "inserted-idle-time": (
        "30-inserted-idle-time",
        {"loads": [0.6, 1.0], "taus": [8, 1]},
        {"main": "of_claims", "costs": "two_costs"},
    ),
    "steady-state": (
        "40-steady-state",
        {},
        {"tiers": "tiers", "random": "random", "vertices": "vertices", "spread": "spread"},
    ),
    "cpu-gpu": (
        "50-cpu-gpu",
        {"mixes": ["lee", "wide"]},
        {"runs": "of_judged"}
        | {n: n for n in ("lateness", "outliers", "first_samples", "moldable")},
    ),
    "bricks": (
        "60-bricks",
        {"policies": ["Greedy", "D-0.5", "D-0.9"], "intervals": [20], "domains": 3},
        {"runs": "judged", "causes": "causes", "sizes": "sizes", "background": "background"},
    ),
}

#: Columns that identify a row of a frame.
KEYS = (
    *("load", "setup", "mode", "value", "parameter", "tau"),
    *("kind", "clusters", "connectivity", "vertex", "heterogeneity"),
    *("mix", "error", "cv", "fair", "above", "wrong", "scheduler", "batch"),
    *("interval", "condition", "nodes", "model", "policy", "corrected", "fallbacks", "replicate"),
)


def codes_in(code):
    """Yield a code object and those within it."""
    yield code
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from codes_in(inner)


def names_read(code):
    """Return the names of the notebook that a statement, or a function that it makes, reads."""
    steps = [step for one in codes_in(code) for step in dis.get_instructions(one)]
    return {step.argval for step in steps if step.opname in ("LOAD_NAME", "LOAD_GLOBAL")}


def names_bound(statement, code):
    """Return the names that a statement binds, or of which it sets a part."""
    inner = () if isinstance(statement, ast.FunctionDef) else ast.walk(statement)
    stored = [one for one in inner if isinstance(getattr(one, "ctx", None), ast.Store)]
    wholes = [ast.walk(one.value) for one in stored if isinstance(one, ast.Subscript)]
    parts = {one.id for whole in wholes for one in whole if isinstance(one, ast.Name)}
    steps = dis.get_instructions(code)
    return parts | {step.argval for step in steps if step.opname == "STORE_NAME"}


def run_part(notebook, wanted, given):
    """Run those statements of a notebook on which some names depend; return the names."""
    steps = []
    for cell in nbformat.read(suite_notebooks()[notebook], as_version=4).cells:
        if cell.cell_type == "code":
            steps += [one for one in ast.parse(cell.source).body if not isinstance(one, ast.Expr)]
            if "parameters" in cell.metadata.get("tags", ()):
                steps += ast.parse("\n".join(f"{name} = {given[name]!r}" for name in given)).body
    needed, kept = {"size", *wanted}, []
    for step in reversed(steps):
        code = compile(ast.Module([step], []), notebook, "exec")
        if needed & names_bound(step, code):
            needed |= names_read(code)
            kept.insert(0, code)
    names = {"__name__": "notebook", "display": id}
    for code in kept:
        exec(code, names)
    return SimpleNamespace(**names)


def run_small(paper, reading, folder, *more):
    """Run the experiments of a paper's notebook under a reading; return the names they leave."""
    notebook, given, frames = CASES[paper]
    sizes = {"quick": SIZES[paper], "full": SIZES[paper]}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(session, "read_scales", lambda _: sizes)
        patch.setenv("DLSIM_CACHE", str(folder / "cache"))
        patch.chdir(folder)
        changed = given | {"reading": reading, "scale": "full", "jobs": 1}
        return run_part(notebook, [*frames.values(), *more], changed)


@pytest.fixture(scope="module")
def usual(tmp_path_factory):
    """Return a function from a paper to what its notebook leaves under the default reading."""
    known = {}

    def run(paper):
        if paper not in known:
            known[paper] = run_small(paper, {}, tmp_path_factory.mktemp(paper), "run_under")
        return known[paper]

    return run


def sort_like(frame, order, by):
    """Return the rows of a frame that another one has, in its order."""
    assert not frame.duplicated(by).any()
    return order[by].merge(frame, on=by)


@pytest.mark.parametrize(
    ("paper", "switch"),
    [(paper, switch) for paper in CASES for switch in session.paper_module(paper).SWITCHES],
)
def test_a_reading_changes_nothing_but_what_its_switch_touches(
    paper, switch, usual, tmp_path, monkeypatch
):
    module, named, names = session.paper_module(paper), CASES[paper][2], usual(paper)
    monkeypatch.setenv("DLSIM_CACHE", str(tmp_path / "cache"))
    frames = {name: getattr(names, here) for name, here in named.items()}
    for value in module.SWITCHES[switch][1:]:
        reading = {switch: value} | ({"scope": "all"} if switch == "count_single" else {})
        whole = run_small(paper, reading, tmp_path)
        again = names.run_under(switch, value, module.touched(switch, frames))
        for name, found in {**frames, **again}.items():
            if found is None:  # not run under this reading
                continue
            if name in again and name in module.KEYS:
                found = replace_rows(frames[name], found, module.KEYS[name])
            by = [one for one in KEYS if one in found]
            wanted = sort_like(getattr(whole, named[name]), found, by)[list(found)]
            what = f"{name_reading({switch: value})}: {name}"
            pd.testing.assert_frame_equal(
                found.reset_index(drop=True), wanted, check_exact=True, check_dtype=False, obj=what
            )
