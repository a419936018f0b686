"""The command ``dlsim``: reproduce the papers, or simulate your own tasks."""

import argparse
import importlib
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from dlsim import __version__
from dlsim.cli.live_options import add_live
from dlsim.errors import DlsimError, InputError
from dlsim.processes import termination_interrupts

#: Where the main job leaves its results, and a rerun finds them; where notebooks are copied.
LATEST, NOTEBOOKS = "results/latest", "dlsim-notebooks"
#: Engines with peers to race: modules of tests/benchmarks, and what each is asked to report.
BENCHES: dict[str, Callable[[Any, argparse.Namespace], str]] = {
    "realtime": lambda peers, args: str(peers.report(args.tasks, args.seed)),
    "steady": lambda peers, args: str(peers.report(seed=args.seed)),
    "bricks": lambda peers, args: str(peers.report(args.tasks, args.seed)),
    "cpugpu": lambda peers, args: str(peers.report(max(20, args.tasks // 5), args.seed)),
}

EPILOG = """examples:
  dlsim reproduce                          every paper, in minutes
  dlsim reproduce mcdf --scale paper       one paper at the size it states
  dlsim lab                                the notebooks in JupyterLab, on a copy of yours
  dlsim claims mcdf                        what it claims, and what we measured
  dlsim prove 5.2 --steps                  what of Theorem 5.2 stands, and why
  dlsim simulate --swf LOG.swf.gz --policy EDFMN --nodes 64
  dlsim live run --policy history          real kernels, scheduled on this machine
"""

REPRODUCE = """exit codes:
  0    every notebook ran to its end; a claim that differs is a finding, not a failure
  1    a notebook failed; the report shows which, and how
  2    something asked for cannot be used; nothing was run
  130  interrupted; the same command goes on where it stopped

a Dask cluster (extra cluster: pip install 'dlsim[cluster]'):
  dask scheduler & dask worker tcp://127.0.0.1:8786 --nworkers 4 --nthreads 1 &
  dlsim reproduce --scale paper --dask tcp://127.0.0.1:8786
Its workers must run this very dlsim; they keep nothing, so that any of them may die.
"""


def list_everything(_: argparse.Namespace) -> int:
    """Print what can be reproduced and which policies and switches there are."""
    from dlsim.cli.readings import switches_of, word
    from dlsim.cpugpu import model as cpugpu
    from dlsim.files import read_toml, shared_file, shared_folder
    from dlsim.realtime.model import POLICIES

    there = sorted(path.stem for path in shared_folder("notebooks").glob("*.ipynb"))
    rows = read_toml(shared_file("data/figures.toml"))["figure"]
    print("dlsim reproduce NAME, where NAME is a paper, a notebook or a figure:")
    for notebook in there:
        print(f"\n{notebook}")
        for row in (row for row in rows if row["notebook"] == notebook):
            print(f"  {row['id']:<36}{row['printed']:<18}{row['title']} ({row['status']})")
    waiting = [row["id"] for row in rows if row["notebook"] not in there]
    if waiting:
        print(f"\nwithout their notebook: {', '.join(waiting)}")
    print(f"\npolicies: {', '.join(POLICIES)}")
    print(f"\npolicies of dlsim.cpugpu and dlsim live: {', '.join(cpugpu.POLICIES)}")
    print("\nreadings (default first), dlsim reproduce PAPER --reading NAME=VALUE:")
    for notebook in there:
        if table := switches_of(notebook):
            print(f"\n{notebook[3:]}")
            for name, options in table.items():
                print(f"  {name:<13} {' | '.join(map(word, options))}")
    return 0


def show_claims(args: argparse.Namespace) -> int:
    """Print claims with what was measured and the verdict."""
    import textwrap

    from dlsim.study.claims import SYMBOLS, headline, load_claims, read_scorecard, reference_of

    papers = dict.fromkeys(claim.paper for claim in load_claims(args.paper))
    words = []
    for paper in papers:
        path = reference_of(paper)
        if args.results:
            path = Path(args.results) / "data" / path.name
        if not path.exists():
            raise InputError(f"{path} is not there; first: dlsim reproduce {paper}")
        for _, row in read_scorecard(path).iterrows():
            words.append(row["verdict"])
            print(f"{SYMBOLS[words[-1]]} {row['id']} ({row['where']}) {words[-1]}")
            printed = f"Printed: {row['printed']}. " if row["printed"] else ""
            for text in (
                row["claim"],
                f"{printed}Measured: {row['measured'] or '-'}",
                row["reason"],
            ):
                print(textwrap.fill(text, 96, initial_indent="    ", subsequent_indent="    "))
    where = args.results or "the reference results at paper scale"
    print(f"\n{headline(words)} - from {where}, default reading unless stated there")
    return 0


def prove(args: argparse.Namespace) -> int:
    """Prove the statements about the papers and print their status.

    Parameters
    ----------
    args : Namespace
        keys, steps.

    Returns
    -------
    int
        0; 1 if a proof fails; 2 for an unknown key.
    """
    from dlsim import theory

    if not args.steps:
        return theory.main(args.keys)
    for proven in theory.prove(args.keys):
        print(f"{proven.statement.key} ({proven.status}): {proven.statement.claim}")
        for step in proven.steps:
            print(f"  {step.kind:<12}{step.tex}\n{'':14}{step.why}")
    return 0


def bench(args: argparse.Namespace) -> int:
    """Print speed ratios against other engines on the same work.

    Parameters
    ----------
    args : Namespace
        engines, tasks, seed.

    Returns
    -------
    int
        0; 2 where the peers are not installed.
    """
    from dlsim.files import project_root

    root, names = project_root(), args.engines or list(BENCHES)
    for name in names:
        if name not in BENCHES:
            raise InputError(f"engine must be one of {', '.join(BENCHES)}; got {name!r}")
    try:
        if root is None:
            raise ImportError("no checkout")
        sys.path.insert(0, str(root))
        engines = [importlib.import_module(f"tests.benchmarks.{name}") for name in names]
    except ImportError as error:
        print(
            f"dlsim bench needs a checkout of dlsim and its extra test ({error}): "
            "pip install -e '.[test]'",
            file=sys.stderr,
        )
        return 2
    for name, engine in zip(names, engines, strict=True):
        print(f"{BENCHES[name](engine, args)}\n", flush=True)
    return 0


def _reproduce(args: argparse.Namespace) -> int:
    from dlsim.cli.reproduce import main

    return main(args)


def _lab(args: argparse.Namespace) -> int:
    from dlsim.cli.lab import main

    return main(args)


def _broker(args: argparse.Namespace) -> int:
    from dlsim.cli.broker import main

    return main(args)


def _simulate(args: argparse.Namespace) -> int:
    from dlsim.cli.simulate import main

    return main(args)


def _live(args: argparse.Namespace) -> int:
    from dlsim.cli.live import COMMANDS

    return COMMANDS[args.live](args)


def parser() -> argparse.ArgumentParser:
    """Build the command line."""
    top = argparse.ArgumentParser(
        prog="dlsim", description=__doc__, epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    top.add_argument("--version", action="version", version=f"dlsim {__version__}")
    verbs = top.add_subparsers(dest="verb", metavar="command")

    def verb(name: str, run: Any, text: str) -> argparse.ArgumentParser:
        one = verbs.add_parser(name, help=text, description=text)
        one.set_defaults(run=run)
        return one

    verb("list", list_everything, "what can be reproduced; policies and readings by name")

    _add_reproduce(verb("reproduce", _reproduce, "run the notebooks and write a report"))

    _add_lab(verb("lab", _lab, "open the notebooks in JupyterLab, on a copy that is yours"))

    one = verb("claims", show_claims, "what the papers claim, what we measured, and the verdict")
    one.add_argument("paper", nargs="?", help="only this paper")
    one.add_argument("--results", metavar="DIR", help="results of your own instead of ours")

    one = verb("prove", prove, "prove the papers' formulas and theorems, symbolically")
    one.add_argument(
        "keys", nargs="*", metavar="KEY", help="keys or their beginnings (default: all)"
    )

    one.add_argument("--steps", action="store_true", help="print every checked step, in LaTeX")

    one = verb("simulate", _simulate, "schedule your own tasks, a job log, or a paper's workload")
    _add_simulate(one)

    add_live(verb("live", _live, "schedule real kernels on the devices of this machine"))

    one = verb("broker", _broker, "serve a virtual organisation described in a TOML file")
    _add_broker(one)

    one = verb("bench", bench, "speed against SimPy, SciPy and plain Python on the same work")
    one.add_argument("engines", nargs="*", metavar="ENGINE",
                     help=f"{', '.join(BENCHES)} (default: all)")  # fmt: skip
    one.add_argument("--tasks", type=int, default=10_000,
                     help="tasks per run (default 10000, the full size)")  # fmt: skip
    one.add_argument("--seed", type=int, default=0, help="seed of what is drawn (default 0)")
    return top


def _add_reproduce(one: argparse.ArgumentParser) -> None:
    add = one.add_argument
    add(
        "names",
        nargs="*",
        help="papers, notebooks or figures, which run their notebook (default: all)",
    )
    add("--scale", default="quick", choices=("quick", "paper"),
        help="quick: figures in shape within minutes; paper: the papers' own sizes")  # fmt: skip
    add("--out", default=LATEST, metavar="DIR", help=f"folder of results (default {LATEST})")
    add("--jobs", type=int, default=0, help="processes at once (default: all cores)")
    add("--dask", default="", metavar="ADDRESS",
        help="run the sweeps of all notebooks on this Dask cluster: the address of its scheduler, "
        "such as tcp://127.0.0.1:8786, or its scheduler file FILE.json")  # fmt: skip
    add("--seed", type=int, default=0, help="root of all randomness (default 0)")
    add("--runs", type=int, default=0, help="runs per point (default: what the scale says)")
    add("--reading", action="append", default=[], metavar="NAME=VALUE",
        help="read the papers differently, for instance link=shared; may be repeated")  # fmt: skip
    add("--force", action="store_true", help="run notebooks again even if nothing changed")
    add("--cell-limit", type=float, metavar="S",
        help="seconds a cell may run before its notebook is ended (default 1800, at --scale paper "
        "21600; 0: no limit)")  # fmt: skip
    add(
        "--limit",
        type=float,
        metavar="S",
        help="seconds a notebook may run (default 7200, at --scale paper 172800; 0: no limit)",
    )
    one.formatter_class = argparse.RawDescriptionHelpFormatter
    one.epilog = REPRODUCE


def _add_lab(one: argparse.ArgumentParser) -> None:
    one.allow_abbrev = False
    add = one.add_argument
    add("--dir", default=NOTEBOOKS, metavar="DIR",
        help=f"folder of your copy (default {NOTEBOOKS}); your changes stay")  # fmt: skip
    add("--no-browser", action="store_true", help="serve only, and print the address")
    add("--port", type=int, help="port of the server (default 8888 or the next free one)")
    one.epilog = "Further options go to jupyter lab, for instance --ip=0.0.0.0."


def _add_broker(one: argparse.ArgumentParser) -> None:
    one.add_argument("file", metavar="FILE.toml",
                     help="sites, links, routes, policies, events; see data/examples")  # fmt: skip
    one.add_argument("--method", help="how schedules are found, such as LPRG+polish (default G)")
    one.add_argument("--compare", metavar="A,B,...", help="several methods on the same events")
    one.add_argument("--reading", action="append", default=[], metavar="NAME=VALUE",
                     help="a switch, for instance stuck=rest; may be repeated")  # fmt: skip
    one.add_argument("--out", metavar="DIR", help="write the tables there")
    one.add_argument("--seed", type=int, default=0, help="seed of LPRR (default 0)")


def _add_simulate(one: argparse.ArgumentParser) -> None:
    source = one.add_argument_group("tasks (one of)").add_mutually_exclusive_group(required=True)
    source.add_argument(
        "--swf", metavar="FILE", help="a job log (Standard Workload Format, gzip too)"
    )
    source.add_argument("--csv", metavar="FILE", help="columns arrival, sigma, deadline")
    source.add_argument("--paper", choices=("mcdf", "inserted-idle-time"),
                        help="the random workload of a paper")  # fmt: skip
    group = one.add_argument_group("what to do with them")
    group.add_argument(
        "--policy",
        default=None,
        help="one policy (default MCDF; for paper inserted-idle-time EDF-DLT)",
    )
    group.add_argument("--compare", metavar="A,B,...", help="several policies on the same tasks")
    group.add_argument("--negotiate", type=float, default=0.0, metavar="X",
                       help="refused tasks accept up to X times their deadline")  # fmt: skip
    group.add_argument("--reading", action="append", default=[], metavar="NAME=VALUE",
                       help="a switch, for instance link=shared; may be repeated")  # fmt: skip
    group.add_argument("--out", metavar="DIR", help="write tables and a Gantt picture there")
    group.add_argument("--chunks", action="store_true",
                       help="write every chunk of every task too (may be large)")  # fmt: skip
    group = one.add_argument_group("the cluster (defaults: mcdf 10 10 10, else 16 1 100)")
    group.add_argument("--nodes", type=int, help="number of processing nodes")
    group.add_argument("--cms", type=float, help="time to transmit one unit of data")
    group.add_argument("--cps", type=float, help="time to compute one unit of data")
    group.add_argument("--st", type=float, default=0.0, help="set-up time of a transmission")
    group.add_argument("--sc", type=float, default=0.0, help="set-up time of a computation")
    group = one.add_argument_group("deadlines (--swf, --paper inserted-idle-time)")
    group.add_argument("--dc-ratio", type=float, metavar="R",
                       help="mean deadline over minimum execution time (default 2)")  # fmt: skip
    group = one.add_argument_group("how a job becomes a task (--swf)")
    group.add_argument("--work-per-unit", type=float, metavar="W",
                       help="processor-seconds per unit of data (default: cps)")  # fmt: skip
    group.add_argument("--time-scale", type=float, metavar="F",
                       help="factor on the times between arrivals (default 1)")  # fmt: skip
    group.add_argument("--max-jobs", type=int, metavar="K", help="only the first K usable jobs")
    group = one.add_argument_group("a paper's workload (--paper)")
    group.add_argument("--load", type=float, help="nominal system load (default 0.5)")
    group.add_argument("--horizon", type=float,
                       help="simulated time (default: mcdf 1e6, else 1e7)")  # fmt: skip
    one.add_argument("--seed", type=int, default=0, help="seed of what is drawn (default 0)")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line."""
    whole = parser()
    args, extra = whole.parse_known_args(argv)
    args.extra = extra
    if args.verb is None and not extra:
        whole.print_help(sys.stderr)
        return 2
    if args.extra and args.verb != "lab":
        whole.error(f"unrecognized arguments: {' '.join(args.extra)}")
    try:
        with termination_interrupts():
            return int(args.run(args))
    except InputError as error:
        print(f"dlsim: {error}", file=sys.stderr)
        return 2
    except DlsimError as error:
        print(f"dlsim: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt as stop:
        print(f"\ndlsim: interrupted{f'; {stop}' if str(stop) else ''}", file=sys.stderr)
        return 130
    except BrokenPipeError:
        return 0
