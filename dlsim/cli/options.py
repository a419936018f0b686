"""What each command takes, one row per option, without what the command itself needs."""

import argparse
from collections.abc import Mapping, Sequence
from typing import Any

#: Where the main job leaves its results, and a rerun finds them; where notebooks are copied.
LATEST, NOTEBOOKS = "results/latest", "dlsim-notebooks"

EPILOG = """examples:
  dlsim reproduce                          every paper, in minutes
  dlsim reproduce mcdf --scale paper       one paper at the size it states
  dlsim lab                                the notebooks in JupyterLab, on a copy of yours
  dlsim claims mcdf                        what it claims, and what we measured
  dlsim prove 5.2 --steps                  what of Theorem 5.2 stands, and why
  dlsim simulate --swf LOG.swf.gz --policy EDFMN --nodes 64
"""

REPRODUCE = """exit codes:
  0    every notebook ran to its end; a claim found contrary is a finding, not a failure
  1    a notebook failed; the report shows which, and how
  2    something asked for cannot be used; nothing was run
  130  interrupted; the same command goes on where it stopped

a Dask cluster (extra cluster: pip install 'dlsim[cluster]'):
  dask scheduler & dask worker tcp://127.0.0.1:8786 --nworkers 4 --nthreads 1 &
  dlsim reproduce --scale paper --dask tcp://127.0.0.1:8786
Its workers must run this very dlsim; they keep nothing, so that any of them may die.
"""

#: Name, kind, help, metavar, further keywords. A kind is a type, a default, bool for a switch,
#: list for what may be repeated, or a tuple of choices, the default first (None: there is none).
#: A text alone begins a group of options; of one that ends in "(one of)" exactly one has to be
#: given.
Row = str | tuple[Any, ...]


def _reading(example: str, words: str = "a switch") -> Row:
    return "--reading", list, f"{words}, for instance {example}; may be repeated", "NAME=VALUE"


# fmt: off
_SEED: Row = ("--seed", 0, "seed of what is drawn (default 0)")
#: Every command: a module of this package, its help, and its options.
VERBS: dict[str, tuple[str, Sequence[Row]]] = {
    "list": ("what can be reproduced; policies and readings by name", [
        ("topic", str, "only this: figures, policies or readings", None, {"nargs": "?"}),
    ]),
    "reproduce": ("run the notebooks and write a report", [
        ("names", str, "papers, notebooks or figures, which run their notebook (default: all)",
         None, {"nargs": "*"}),
        ("--scale", ("quick", "paper"), "quick: figures in shape within minutes; paper: the "
         "papers' own sizes"),
        ("--out", LATEST, f"folder of results (default {LATEST})", "DIR"),
        ("--jobs", 0, "processes at once (default: all cores)"),
        ("--dask", "", "run the sweeps of all notebooks on this Dask cluster: the address of its "
         "scheduler, such as tcp://127.0.0.1:8786, or its scheduler file FILE.json", "ADDRESS"),
        ("--seed", 0, "root of all randomness (default 0)"),
        ("--runs", 0, "runs per point (default: what the scale says)"),
        _reading("link=shared", "read the papers differently"),
        ("--figures", ("png", "svg", "pdf"), "write every picture in this format, too, beside the "
         "PNG that the report shows"),
        ("--force", bool, "run notebooks again even if nothing changed"),
        ("--cell-limit", float, "seconds a cell may run before its notebook is ended (default "
         "1800, at --scale paper 21600; 0: no limit)", "S"),
        ("--limit", float, "seconds a notebook may run (default 7200, at --scale paper 172800; "
         "0: no limit)", "S"),
    ]),
    "book": ("make a book of a run: chapters, theory, how-to, gallery, reference", [
        ("--from", LATEST, f"folder of the run (default {LATEST})", "DIR", {"dest": "run"}),
        ("--out", "results/book", "folder of the book (default results/book)", "DIR"),
    ]),
    "lab": ("open the notebooks in JupyterLab, on a copy that is yours", [
        ("--dir", NOTEBOOKS, f"folder of your copy (default {NOTEBOOKS}); your changes stay",
         "DIR"),
        ("--no-browser", bool, "serve only, and print the address"),
        ("--port", int, "port of the server (default 8888 or the next free one)"),
    ]),
    "claims": ("what the papers claim, what we measured, and the verdict", [
        ("paper", str, "only this paper", None, {"nargs": "?"}),
        ("--results", str, "results of your own instead of ours", "DIR"),
        ("--json", bool, "print the whole scorecard as JSON"),
    ]),
    "prove": ("prove the papers' formulas and theorems, symbolically", [
        ("keys", str, "keys or their beginnings (default: all)", "KEY", {"nargs": "*"}),
        ("--steps", bool, "print every checked step"),
    ]),
    "simulate": ("schedule your own tasks, a job log, or a paper's workload", [
        _SEED,
        "tasks (one of)",
        ("--swf", str, "a job log (Standard Workload Format, gzip too)", "FILE"),
        ("--csv", str, "columns arrival, sigma, deadline", "FILE"),
        ("--paper", (None, "mcdf", "inserted-idle-time"), "the random workload of a paper"),
        "what to do with them",
        ("--policy", str, "one policy (default MCDF; for paper inserted-idle-time EDF-DLT)"),
        ("--compare", str, "several policies on the same tasks", "A,B,..."),
        ("--negotiate", 0.0, "refused tasks accept up to X times their deadline", "X"),
        _reading("link=shared"),
        ("--out", str, "write tables and a Gantt picture there", "DIR"),
        ("--chunks", bool, "write every chunk of every task too (may be large)"),
        "the cluster (defaults: mcdf 10 10 10, else 16 1 100)",
        ("--nodes", int, "number of processing nodes (--swf: those of the log's machine)"),
        ("--cms", float, "time to transmit one unit of data"),
        ("--cps", float, "time to compute one unit of data"),
        ("--st", 0.0, "set-up time of a transmission"),
        ("--sc", 0.0, "set-up time of a computation"),
        "deadlines (--swf, --paper inserted-idle-time)",
        ("--dc-ratio", float, "mean deadline over minimum execution time (default 2)", "R"),
        "how a job becomes a task (--swf)",
        ("--work-per-unit", float, "processor-seconds per unit of data (default: cps)", "W"),
        ("--time-scale", float, "factor on the times between arrivals (default 1)", "F"),
        ("--max-jobs", int, "only the first K usable jobs", "K"),
        "a paper's workload (--paper)",
        ("--load", float, "nominal system load (default 0.5)"),
        ("--horizon", float, "simulated time (default: mcdf 1e6, else 1e7)"),
    ]),
    "solve": ("what to send where on a wide-area platform described in a file", [
        ("file", str, "sites, links, routes, applications; see data/examples/wan.toml", "FILE"),
        ("--method", str, "LP, MILP, G, LPR, LPRG or LPRR, and suffixes such as LPRG+polish "
         "(default LPRG)"),
        ("--compare", str, "several methods on the same platform", "A,B,..."),
        ("--period", int, "length of the period (default: the shortest that loses nothing, or "
         "nearly nothing)", "T"),
        ("--seconds", 60.0, "how long MILP may search (default 60); its gap says what it proved",
         "S"),
        _reading("stuck=rest"),
        ("--out", str, "write the tables and a picture there", "DIR"),
        ("--seed", 0, "seed of LPRR (default 0)"),
    ]),
    "bench": ("speed against SimPy, SciPy and plain Python on the same work", [
        ("parts", str, "an engine such as steady, or a part of it such as steady.lprr (default: "
         "all but the long ones, within 5 minutes)", "PART", {"nargs": "*"}),
        ("--list", bool, "say which parts there are, and measure nothing"),
        ("--tasks", 10_000, "tasks per run (default 10000, the full size)"),
        _SEED,
    ]),
}
# fmt: on


def _add(
    to: Any, name: str, kind: Any, text: str, metavar: str | None = None,
    more: Mapping[str, Any] | None = None,
) -> None:  # fmt: skip
    words: dict[str, Any] = {"help": text, **({"metavar": metavar} if metavar else {})}
    if kind is bool:
        words["action"] = "store_true"
    elif kind is list:
        words |= {"action": "append", "default": []}
    elif isinstance(kind, tuple):
        words |= {"choices": tuple(filter(None, kind)), "default": kind[0]}
    elif isinstance(kind, type):
        words["type"] = kind
    else:
        words |= {"type": type(kind), "default": kind}
    to.add_argument(name, **words | dict(more or {}))


def add_commands(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """Add every command and its options to a parser."""
    several, made = parser.add_subparsers(dest="verb", metavar="command"), {}
    for verb, (text, rows) in VERBS.items():
        made[verb] = one = several.add_parser(verb, help=text, description=text)
        group: Any = one
        for row in rows:
            if isinstance(row, str):
                group = one.add_argument_group(row)
                if row.endswith("(one of)"):
                    group = group.add_mutually_exclusive_group(required=True)
            else:
                _add(group, *row)
    return made
