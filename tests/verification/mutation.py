"""Mutation testing of the formulas and schedulers: what do the tests really hold?

``pip install cosmic-ray``, then from a checkout, in the environment of the tests::

    python tests/verification/mutation.py                        # every module, 20 mutants each
    python tests/verification/mutation.py cpugpu/rules cpugpu/queues --mutants 5 --seed 7
    python tests/verification/mutation.py --minutes 30           # stop after half an hour

A mutant is one small change to a module: ``<`` for ``<=``, ``+`` for ``-``, ``0`` for ``1``. It is
killed where a test fails or hangs, and survives where all pass. Each module of `MODULES` is changed
in a copy of the checkout, never in place, and tried on the tests named there (a subset that is fast
without compilation: kernels run as plain Python, so that no mutant waits for a compiler). The
mutants are a random sample by the seed. Not drawn are changes in annotations and of decorators,
which no run could tell apart, ``is`` for ``==``, the same on small whole numbers, and shifts and
bit operators, which on floats only crash.

The kernels of dlsim.bricks are not among the modules: without compilation they take too long.

Every mutant is tried in a fork of a process that has the heavy libraries in memory already, and
has four times the processor time of a run without a change; then it counts as hanging.

Printed are the diff of each survivor and, at the end, a table of the scores. A survivor is either
a change that computes the same, or a gap in the tests; that is for the reader to judge.
"""

import argparse
import ast
import os
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[2]
PARTITION = ["tests/realtime/test_partition.py", "tests/realtime/test_partition_inserted.py"]
LINE = ["tests/realtime/test_engine.py", "tests/realtime/test_inserted_idle.py",
        "tests/verification/test_inserted_offers.py", "-k",
        "hand or pieces or in_line or line] or nothing_below and not FIDO or every_decision and"
        " (FIFO- or EDF- or II or EXACT) and not EDF-UMR-IIT and not best"]  # fmt: skip
#: Module under dlsim, scale of the random tests, arguments of pytest.
MODULES: dict[str, tuple[float, list[str]]] = {
    "realtime/formulas": (0.3, PARTITION),
    "realtime/core/formulas": (0.3, PARTITION),
    "realtime/core/splits": (0.3, PARTITION),
    "realtime/split": (0.3, ["tests/realtime/test_partition_inserted.py",
                             "tests/realtime/test_input.py"]),
    "realtime/simulate": (0.3, ["tests/realtime/test_contract.py",
                                "tests/realtime/test_online.py"]),
    "realtime/model": (0.3, ["tests/realtime/test_input.py", "tests/realtime/test_engine.py", "-k",
                             "not twin and not offer and not queue and not alike and not loop"]),
    "realtime/workload": (0.3, ["tests/realtime/test_workload.py",
                                "tests/realtime/test_dcratio.py"]),
    "realtime/core/admission": (0.5, ["tests/realtime/test_engine.py",
                               "tests/realtime/test_inserted_idle.py::"
                               "test_every_decision_is_the_twins[FIFO-EXACT-N]",
                               "tests/realtime/test_inserted_idle.py::"
                               "test_every_switch_alone_is_the_twins[backfill]",
                               "-k", "hand or planned or every_decision or offer or backfill]"]),
    "realtime/core/line": (1, LINE),
    "realtime/core/nodes": (1, LINE),
    "realtime/core/placement": (1, LINE),
    "theory/algebra": (1, ["tests/theory/test_steps.py", "tests/theory/test_false_claims.py"]),
    "theory/defined": (1, ["tests/theory/test_steps.py", "tests/theory/test_false_claims.py"]),
    "theory/steps": (1, ["tests/theory/test_steps.py", "tests/theory/test_false_claims.py"]),
    "steady/core/greedy": (1, ["tests/steady/test_heuristics.py", "-k",
                          "hand_case or lone or takes_the_steps or lprg"]),
    "steady/lp_rows": (0.5, ["tests/steady/test_program.py", "tests/steady/test_broker.py", "-k",
                            "not some_of_these and not mutated and not example"
                            " and not wide_priorities"]),
    "steady/model": (0.3, ["tests/steady/test_model.py"]),
    "steady/graphs": (0.3, ["tests/steady/test_topology.py", "tests/steady/test_model.py"]),
    "cpugpu/model": (0.3, ["tests/cpugpu/test_input.py"]),
    "cpugpu/workload": (0.3, ["tests/cpugpu/test_input.py"]),
    "cpugpu/rules": (1, ["tests/cpugpu/test_rules.py", "tests/cpugpu/test_engine.py"]),
    "cpugpu/queues": (0.3, ["tests/cpugpu/test_rules.py", "tests/cpugpu/test_engine.py",
                            "tests/cpugpu/test_mapreduce.py"]),
    "cpugpu/scheduler": (0.3, ["tests/cpugpu/test_engine.py", "tests/cpugpu/test_mapreduce.py",
                               "tests/cpugpu/test_input.py", "tests/cpugpu/test_rules.py"]),
    "cpugpu/gpu/pipeline": (1, ["tests/cpugpu/test_pipeline.py"]),
}  # fmt: skip
PYTEST = ["-x", "-q", "-n0", "-p", "no:cacheprovider", "--hypothesis-seed=0"]
#: Before any library reads them: no compiler, no threads that a fork would lose.
SETTINGS = {"NUMBA_DISABLE_JIT": "1", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
HEAVY = ["pytest", "pandas", "numba", "scipy.optimize", "sympy", "networkx", "highspy",
         "matplotlib.pyplot"]  # fmt: skip
#: Operators of cosmic-ray that are not drawn.
SENSELESS = ("Decorator", "Shift", "Bit", "_Is")


class Score(NamedTuple):
    """What became of one module's mutants."""

    module: str
    mutants: int
    tried: int
    killed: int
    hanging: int
    survived: int


def copy(folder: Path) -> Path:
    """Copy what the tests need, so that a run that is killed leaves no mutant behind."""
    unread = shutil.ignore_patterns(".*", "__pycache__")
    for name in ("dlsim", "tests", "notebooks", "data"):
        shutil.copytree(ROOT / name, folder / name, ignore=unread)
    for name in ("pyproject.toml", "README.md", "LICENSE", "environment.yml"):
        shutil.copy(ROOT / name, folder / name)
    return folder


def annotated(path: Path) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """Return the spans of annotations."""
    return [
        ((part.lineno, part.col_offset), (part.end_lineno or 0, part.end_col_offset or 0))
        for node in ast.walk(ast.parse(path.read_text()))
        for part in (getattr(node, "annotation", None), getattr(node, "returns", None))
        if isinstance(part, ast.expr)
    ]


def mutants(path: Path) -> list[Any]:
    """Return the changes that cosmic-ray knows for a module and a test could see."""
    from cosmic_ray.commands import init
    from cosmic_ray.work_db import WorkDB, use_db

    with use_db(":memory:", WorkDB.Mode.create) as base:
        init([path], base, {})
        found = [item.mutations[0] for item in base.work_items]
    spans = annotated(path)
    kept = [
        m
        for m in found
        if not any(word in m.operator_name for word in SENSELESS)
        and not any(a <= tuple(m.start_pos) < b for a, b in spans)
    ]
    return sorted(kept, key=lambda m: (m.operator_name, m.occurrence))


def run_here(folder: Path, scale: float, words: list[str]) -> int:
    """Run the tests in this process; return the status of pytest."""
    import pytest

    os.chdir(folder)
    sys.path[0] = str(folder)
    os.environ |= {"PYTHONPATH": str(folder), "DLSIM_TEST_SCALE": str(scale)}
    os.environ["DLSIM_CACHE"] = str(folder / "cache")
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nothing, stream)
    return int(pytest.main([*PYTEST, *words]))


def outcome_of(folder: Path, scale: float, words: list[str], most: float) -> tuple[int, float]:
    """Run the tests in a fork; return its status (negative: the signal) and processor seconds."""
    child = os.fork()
    if child == 0:
        status = 3
        try:
            os.setsid()
            resource.setrlimit(resource.RLIMIT_CPU, (int(most), int(most) + 5))
            status = run_here(folder, scale, words)
        finally:
            os._exit(status)
    until = time.monotonic() + 20 * most
    while True:  # a mutant may also wait for what never comes
        done, state, used = os.wait4(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(state), used.ru_utime + used.ru_stime
        if time.monotonic() > until:
            os.killpg(child, signal.SIGKILL)
        time.sleep(0.02)


def difference(path: Path, original: bytes) -> Iterator[str]:
    """Yield the changed lines."""
    pairs = zip(original.decode().splitlines(), path.read_text().splitlines(), strict=False)
    for number, (old, new) in enumerate(pairs, start=1):
        if old != new:
            yield f"  {number}: - {old.strip()}\n  {number}: + {new.strip()}"


def score(name: str, count: int, seed: int, until: float, folder: Path) -> Score:
    """Try a sample of one module's mutants until the time is up."""
    from cosmic_ray.mutating import use_mutation
    from cosmic_ray.plugins import get_operator

    scale, words = MODULES[name]
    path = folder / f"dlsim/{name}.py"
    original = path.read_bytes()
    status, seconds = outcome_of(folder, scale, words, 600)
    if status:
        print(f"{name}: the tests fail without any change; mend them first", flush=True)
        return Score(name, 0, 0, 0, 0, 0)
    for stale in path.parent.glob(f"__pycache__/{path.stem}.*"):
        stale.unlink()  # a mutant of the same length in the same second would not be read
    found = mutants(path)
    drawn = random.Random(f"{seed} {name}").sample(found, min(count, len(found)))
    outcomes = []
    sys.dont_write_bytecode = True
    for m in drawn:
        if time.monotonic() > until:
            break
        operator = get_operator(m.operator_name)(**m.operator_args)
        with use_mutation(path, operator, m.occurrence):
            status, _ = outcome_of(folder, scale, words, 10 + 4 * seconds)
            outcomes.append("survived" if status == 0 else "hanging" if status < 0 else "killed")
            if status == 0:
                print(f"{name}: survived {m.operator_name}", *difference(path, original), sep="\n",
                      flush=True)  # fmt: skip
    sys.dont_write_bytecode = False
    ends = [outcomes.count(word) for word in ("killed", "hanging", "survived")]
    found_of = Score(name, len(found), len(outcomes), *ends)
    print(f"{name}: {found_of.survived} of {found_of.tried} survived; tests: {seconds:.0f} s",
          flush=True)  # fmt: skip
    return found_of


def table(scores: list[Score]) -> str:
    """Lay out the scores, with their sums."""
    sums = [sum(column) for column in list(zip(*scores, strict=True))[1:]]
    rows = [Score._fields, *scores, ("all", *sums)]
    return "\n".join(f"{row[0]:22}" + "".join(f"{x:>10}" for x in row[1:]) for row in rows)


def main() -> None:
    """Run what the command line asks for and print the table of scores."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("modules", nargs="*", metavar="MODULE", help=", ".join(MODULES))
    parser.add_argument("--mutants", type=int, default=20, help="how many per module")
    parser.add_argument("--seed", type=int, default=2006, help="which ones")
    parser.add_argument("--minutes", type=float, default=600.0, help="stop after so long")
    options = parser.parse_args()
    if unknown := set(options.modules) - set(MODULES):
        parser.error(f"no such module: {', '.join(sorted(unknown))}")
    os.environ |= SETTINGS
    for heavy in HEAVY:
        import_module(heavy)
    until, scores = time.monotonic() + 60 * options.minutes, []
    with tempfile.TemporaryDirectory(prefix="dlsim-mutants-") as folder:
        place = copy(Path(folder))
        for name in options.modules or MODULES:
            if time.monotonic() < until:
                scores.append(score(name, options.mutants, options.seed, until, place))
    print(table(scores))


if __name__ == "__main__":
    main()
