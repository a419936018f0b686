"""The command ``dlsim``: open the notebooks, run them, and reproduce five papers."""

import argparse
import importlib
import importlib.util
import os
import re
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn
from urllib.parse import quote

from dlsim import __version__, files
from dlsim.errors import DlsimError, InputError
from dlsim.output_folder import OTHER_FOLDER_REMEDY, OutputFolder, content_digest
from dlsim.processes import interrupt_on_termination
from dlsim.progress import set_status, stderr_progress
from dlsim.validate import did_you_mean, format_value, one_of, require_extra, whole

if TYPE_CHECKING:
    import pandas as pd

    from dlsim.study.claims import Claim

#: Default folders: results of ``dlsim reproduce``, and the copy of the notebooks of ``dlsim lab``.
LATEST_RESULTS, NOTEBOOKS_COPY = "results/latest", "dlsim-notebooks"
#: The notebook that ``dlsim lab`` opens.
FIRST_NOTEBOOK = "notebooks/00-start-here.ipynb"
#: Notebooks that measure this machine and reproduce nothing of a paper.
MACHINE_NOTEBOOKS = ("25-live-cluster",)
#: The folder of the Jupyter kernel in the copy of the notebooks.
LAB_KERNELS = ".jupyter"
EXIT_CODES = """exit codes:
  0    every notebook ran to its end (a claim that is contradicted is a finding, not a failure)
  1    a notebook failed; the results page shows which, and how
  2    a name, an option or a folder cannot be used; nothing was run
  130  interrupted; the same command continues where it stopped
"""


# --------------------------------------------------------------------------------- dlsim lab


def open_lab(args: argparse.Namespace) -> int:
    """Copy the notebooks and run JupyterLab on the copy until it ends."""
    if importlib.util.find_spec("jupyterlab") is None:
        raise InputError("JupyterLab is not installed; run pip install jupyterlab")
    if args.port is not None and not 0 < args.port < 65536:
        raise InputError(f"--port must be from 1 to 65535, got {args.port}")
    folder = Path(os.path.abspath(os.path.expanduser(args.dir)))
    done = copy_notebooks(folder)
    _write_lab_kernel(folder)
    _sign_notebooks(folder / name for name in done["copied"] + done["updated"])
    counts = ", ".join(f"{len(names)} {what}" for what, names in done.items() if names)
    print(f"notebooks in {args.dir}: {counts or 'complete and unchanged'}")
    for name in done["kept"]:
        print(f"  {name}: you changed it, or ran and saved it; your copy is kept")
    sys.stdout.flush()
    command = lab_command(folder, args)
    if os.name == "posix":
        os.execve(command[0], command, lab_environment(folder))
    return subprocess.call(command, env=lab_environment(folder))


def copy_notebooks(folder: Path) -> dict[str, list[str]]:
    """Copy the notebooks, and the files that their text links to, into a folder of the user.

    A file that is unchanged since it was copied is updated. A file that the user changed is kept.
    Returns the names of the files that were "copied", "updated" and "kept".
    """
    is_ours = False
    with suppress(OSError, ValueError):  # of a path that leads nowhere
        is_ours = os.path.samefile(folder, files.shared_folder("notebooks").parent)
    if is_ours:
        raise InputError(f"{folder}: holds the notebooks of dlsim itself; choose another --dir")
    home = OutputFolder(folder, "lab", "choose another folder with --dir").acquire()
    done: dict[str, list[str]] = {"copied": [], "updated": [], "kept": []}
    recorded = home.recorded()
    for name, source in _lab_files():
        ours = files.read_bytes(source)
        try:
            there = home.file_digest(name)
        except OSError as error:
            what = f"{folder / name}: cannot be read ({error.strerror}); choose another --dir"
            raise InputError(what) from error
        if there == content_digest(ours):
            continue
        what = "copied" if there is None else "updated" if (name, there) in recorded else "kept"
        if what != "kept":
            home.write(name, ours)
        done[what].append(name)
    return done


def _lab_files() -> Iterator[tuple[str, Path]]:
    """Yield the notebooks and the files that their text links to."""
    linked: set[str] = set()
    for path in files.suite_notebooks().values():
        yield f"notebooks/{path.name}", path
        text = files.read_text(path)
        linked.update(re.findall(r"""(?:]\(|src=\\?["'])\.\./(data/[\w./-]+)""", text))
    for name in sorted(linked):
        source = files.shared_folder("notebooks").parent / name
        if source.is_file() and ".." not in source.parts:
            yield name, source


def _write_lab_kernel(folder: Path) -> None:
    """Write a Jupyter kernel of this Python beside the notebooks, where JupyterLab looks first."""
    from dlsim.study.notebook_process import kernel_of_this_python

    home = OutputFolder(folder, "lab", "choose another folder with --dir")
    name, kernel = f"{LAB_KERNELS}/kernels/python3/kernel.json", kernel_of_this_python()
    if home.file_digest(name) != content_digest(kernel):
        home.write(name, kernel)


def _sign_notebooks(paths: Iterable[Path]) -> None:
    """Tell Jupyter that these files of ours hold no outputs of a stranger.

    It shows tables without their styles else. Where it cannot keep this, it goes on so.
    """
    import nbformat
    from nbformat.sign import NotebookNotary

    with suppress(OSError, ValueError):
        notary = NotebookNotary()
        for path in paths:
            if path.suffix == ".ipynb":
                notary.sign(nbformat.reads(files.read_text(path), as_version=4))


def lab_command(folder: Path, args: argparse.Namespace) -> list[str]:
    """Return the command that starts JupyterLab on a copy, with the user's own options last."""
    command = [sys.executable, "-P", "-m", "jupyterlab", f"--ServerApp.root_dir={folder}"]
    if (folder / FIRST_NOTEBOOK).is_file():
        command.append(f"--LabApp.default_url=/lab/tree/{quote(FIRST_NOTEBOOK)}")
    command += ["--no-browser"] if args.no_browser else []
    command += [f"--ServerApp.port={args.port}"] if args.port is not None else []
    return command + [word for word in args.extra if word != "--"]


def lab_environment(folder: Path) -> dict[str, str]:
    """Return the environment of JupyterLab.

    With it JupyterLab fetches no news, saves the state of widgets in the notebook, and runs
    notebooks with this Python. Notebooks write their results beside the copy. Variables that the
    user has set are kept.
    """
    first = {
        "JUPYTER_CONFIG_PATH": str(files.shared_folder("data") / "lab"),
        "JUPYTER_PATH": str(folder / LAB_KERNELS),
    }
    results = {files.RESULTS_VARIABLE: str(folder / "results")}
    paths = {
        name: os.pathsep.join(filter(None, [path, os.environ.get(name, "")]))
        for name, path in first.items()
    }
    return results | os.environ | paths


# --------------------------------------------------------------------------------- dlsim run


def run_one_notebook(args: argparse.Namespace) -> int:
    """Run one notebook, of dlsim or of the user, and write an HTML page of it."""
    from dlsim.study.notebooks import find_notebook, run_all
    from dlsim.study.pages import PageFrame, write_page

    source = find_notebook(args.notebook)
    parameters = _unique("-p", args.parameters)
    out = Path(_checked_folder(f"results/{source.stem}" if args.out is None else args.out))
    home, page_name = OutputFolder(out), f"{source.stem}.html"
    home.require_unchanged(page_name)
    _checked_scheduler()
    is_ours = source in files.suite_notebooks().values()
    here = Path.cwd() if is_ours else source.parent
    (result,) = run_all(
        [source],
        out=out,
        parameters=parameters,
        jobs=args.jobs,
        force=True,
        cell_seconds=args.cell_seconds,
        figures=args.figures,
        latex=args.latex,
        folder=here,
    )
    if result.status == "interrupted":
        raise KeyboardInterrupt
    if result.path:
        frame = PageFrame([result.error] if result.error else [], source=source.parent)
        page = write_page(home, result.path, page_name, frame)
        print(f"open {page}")
    if result.status == "failed":
        print(f"dlsim: {result.error}", file=sys.stderr)
    return int(result.status != "ok")


def _unique(option: str, pairs: Iterable[Sequence[str]]) -> dict[str, str]:
    """Return the names and values that an option gives; a name may be given once."""
    found: dict[str, str] = {}
    for name, value in pairs:
        if name in found:
            twice = f"to {found[name]!r} and {value!r}"
            raise InputError(f"{option} sets {name} twice, {twice}; give one")
        found[name] = value
    return found


# --------------------------------------------------------------------------- dlsim reproduce


def reproduce_papers(args: argparse.Namespace) -> int:
    """Run the notebooks of papers and write the results page."""
    begun, names = time.perf_counter(), notebooks_of(args.names)
    reading = switches_of_words(args.reading)
    meanings = {"runs": " (0: what the scale says)", "seed": "", "jobs": " (0: all cores)"}
    for name, meaning in meanings.items():
        rule = f"a whole number of at least 0{meaning}"
        whole(f"--{name}", getattr(args, name), 0, float("inf"), rule)
    out = Path(_checked_folder(args.out))
    if args.book:
        require_extra("--book", "docs", "sphinx", "myst_nb", "furo", "numpydoc")
    # imported late: these modules take a second, and an error should appear at once
    from dlsim.compiled import require_cache
    from dlsim.study.notebooks import run_all
    from dlsim.study.pages import SCORECARD, RunPages, write_results_page

    readings = readings_by_notebook(reading, names)
    require_cache()
    dask = _checked_scheduler(args.dask)
    wanted = [*(name for name in names if name != SCORECARD), SCORECARD]
    pages = RunPages(out, wanted)
    results = run_all(
        wanted,
        out=out,
        common={"scale": args.scale, "seed": args.seed, "runs": args.runs},
        readings=readings,
        jobs=args.jobs,
        force=args.force,
        cell_seconds=args.cell_seconds,
        figures=args.figures,
        latex=args.latex,
        dask=dask,
        on_end=pages.write,
    )
    meta = {"scale": args.scale, "seed": args.seed, "runs": args.runs, "reading": reading}
    meta |= {"figures": args.figures, "seconds": time.perf_counter() - begun}
    print(write_results_page(out, results, meta, pages))
    bad = [result for result in results if result.status != "ok"]
    for result in bad:
        print(f"{result.name} {result.status}: {result.error}", file=sys.stderr)
    if any(result.status == "interrupted" for result in bad):
        print("interrupted; the same command resumes", file=sys.stderr)
        return 130
    if args.book:
        from dlsim.study.book import write_book

        print(f"open {write_book(OutputFolder(out))}")
    return 1 if bad else 0


def _checked_scheduler(place: str = "") -> str:
    """Return the Dask scheduler of an option or the environment; refuse one that does not fit."""
    from dlsim.study import dask_cluster

    scheduler = place or os.environ.get(dask_cluster.DASK_VARIABLE, "")
    if scheduler:
        print(f"sweeps run on {dask_cluster.check_cluster(scheduler)}", file=sys.stderr)
    return scheduler


def paper_of_letter(name: str) -> str:
    """Return the paper that a letter stands for, and any other name as it is."""
    from dlsim.study.results import paper_letters

    return paper_letters().get(name.upper(), name)


def notebooks_of(names: Sequence[str]) -> list[str]:
    """Return the notebooks that reproduce papers or figures, or that are named themselves.

    Without names, return all notebooks except `MACHINE_NOTEBOOKS`.
    """
    from dlsim.study.results import load_figures, paper_of

    there, chosen = list(files.suite_notebooks()), []
    notebook_of_figure = {row.id: row.notebook for row in load_figures().figures}
    for name in names:
        asked = paper_of_letter(name)
        by_figure = notebook_of_figure.get(asked)
        fits = [one for one in there if asked in (one, paper_of(one)) or one == by_figure]
        if not fits:
            known = list(dict.fromkeys(paper_of(one) for one in there))
            near = get_close_matches(asked, [*known, *there, *notebook_of_figure], n=3)
            guess = f" did you mean {' or '.join(near)}?" if near else ""
            also = f"known: {', '.join(known)}, and the figures that dlsim list prints"
            raise InputError(f"nothing to reproduce is called {name!r};{guess} {also}")
        chosen += fits
    return list(dict.fromkeys(chosen)) or [one for one in there if one not in MACHINE_NOTEBOOKS]


def switches_of_words(words: Sequence[str]) -> dict[str, str]:
    """Return words such as ``link=shared`` or ``link=shared,late=drop`` as a mapping."""
    pairs = [pair for text in words for pair in text.split(",")]
    for pair in pairs:
        if "=" not in pair:
            raise InputError(f"--reading takes name=value, such as link=shared; got {pair!r}")
    return _unique("--reading", (pair.split("=", 1) for pair in pairs))


def switches_of(notebook: str) -> dict[str, tuple[Any, ...]]:
    """Return the reading switches of a notebook's paper, the default option of each first."""
    from dlsim.study.results import paper_of
    from dlsim.study.session import paper_module

    return dict(getattr(paper_module(paper_of(notebook)), "SWITCHES", {}))


def readings_by_notebook(
    reading: Mapping[str, str], notebooks: Sequence[str]
) -> dict[str, dict[str, Any]]:
    """Return the switches that each notebook's paper knows."""
    tables = {name: switches_of(name) if reading else {} for name in notebooks}
    for switch, value in reading.items():
        _require_switch(switch, value, tables)
    return {
        name: {s: v for s in reading for v in table.get(s, ()) if format_value(v) == reading[s]}
        for name, table in tables.items()
    }


def _require_switch(
    switch: str, value: str, tables: Mapping[str, Mapping[str, tuple[Any, ...]]]
) -> None:
    """Raise InputError if no notebook knows a switch, or if none knows this value of it."""
    known = [format_value(v) for table in tables.values() for v in table.get(switch, ())]
    if not known:
        each = "; ".join(f"{name}: {', '.join(one)}" for name, one in tables.items() if one)
        what = f"no paper asked for ({', '.join(tables)}) knows the switch {switch!r}"
        raise InputError(f"{what}; they know: {each or 'none'}")
    one_of(switch, value, dict.fromkeys(known))


def _checked_folder(out: str) -> str:
    """Return the folder of results; raise InputError if it cannot be used."""
    if out == "":
        raise InputError(f"--out must name a folder, got ''; {OTHER_FOLDER_REMEDY}")
    OutputFolder(out).check()
    return out


# -------------------------------------------------------------------------------- dlsim list


def print_topics(args: argparse.Namespace) -> int:
    """Print the names of figures, policies and readings."""
    topics = {"figures": _list_figures, "policies": _list_policies, "readings": _list_readings}
    chosen = list(topics) if args.topic is None else [one_of("topic", args.topic, topics)]
    for number, topic in enumerate(chosen):
        print(end="\n" if number else "")
        topics[topic]()
    return 0


def _list_figures() -> None:
    from dlsim.study.results import load_figures

    rows = load_figures().figures
    print("dlsim reproduce NAME, where NAME is a paper, a notebook or a figure:")
    for notebook in files.suite_notebooks():
        print(f"\n{notebook}")
        for row in (row for row in rows if row.notebook == notebook):
            print(f"  {row.id:<36}{row.printed:<18}{row.title} ({row.status})")


def _list_policies() -> None:
    from dlsim import bricks, cpugpu
    from dlsim.realtime import POLICIES
    from dlsim.steady import METHODS, SUFFIXES

    print("policies of papers M and I:")
    for name, policy in POLICIES.items():
        print(f"  {name:<20}{policy.text}")
    print("\npolicies of paper C:")
    for name, scheduler in cpugpu.POLICIES.items():
        print(f"  {name:<20}{scheduler.text}")
    print("\nmethods of paper S:")
    for name, method in METHODS.items():
        print(f"  {name:<20}{method.text}")
    for name, suffix in SUFFIXES.items():
        takers = ", ".join(
            taker for taker, method in METHODS.items() if name in method.allowed_suffixes
        )
        print(f"  {'+' + name:<20}{suffix.text} ({takers})")
    print("\npolicies of paper B (D- takes any Opt above 0 and up to 1, F5 is five fallbacks):")
    for name, grid_policy in bricks.POLICIES.items():
        print(f"  {name:<20}{grid_policy.text}")


def _list_readings() -> None:
    from dlsim.study.results import paper_of

    print("readings (default first), dlsim reproduce PAPER --reading NAME=VALUE:")
    for notebook in files.suite_notebooks():
        table = switches_of(notebook)
        if table and not notebook.endswith("-beyond"):
            print(f"\n{paper_of(notebook)}")
            for name, options in table.items():
                print(f"  {name:<13} {' | '.join(map(format_value, options))}")


# ------------------------------------------------------------------------------ dlsim claims


def print_claims(args: argparse.Namespace) -> int:
    """Print claims of the papers with the measured value and the verdict."""
    from dlsim.study.claims import headline

    wanted = _claims_of_name(args.name or "")
    card = _verdicts_on(wanted, args.results)
    if args.json:
        print(card.to_json(orient="records", indent=1, force_ascii=False))
        return 0
    _print_verdicts(card)
    for claim in wanted:
        if claim.id not in set(card["id"]):
            print(f"  {claim.id} ({claim.where}) is not in these results")
    where = args.results if args.results is not None else "the reference results at full scale"
    print(f"\n{headline(card['verdict'])} - from {where}, default reading unless stated there")
    return 0


def _claims_of_name(name: str) -> "list[Claim]":
    """Return the claims of a paper, or the one of an id; all claims if the name is empty."""
    from dlsim.study.claims import load_claims

    asked, known = paper_of_letter(name).casefold(), load_claims()
    wanted = [claim for claim in known if asked in ("", claim.paper, claim.id)]
    if not wanted:
        papers = list(dict.fromkeys(claim.paper for claim in known))
        ids = [claim.id for claim in known if asked.startswith(f"{claim.paper}-")] or papers
        near = did_you_mean(name, [*ids, *papers])
        what = f"no paper and no claim is called {name!r}{near}"
        raise InputError(f"{what}; known: {', '.join(ids)}")
    return wanted


def _verdicts_on(wanted: "Sequence[Claim]", results: str | None) -> "pd.DataFrame":
    """Read the verdicts on claims in a folder of results; None: those that dlsim ships."""
    import pandas as pd

    from dlsim.study.claims import beside_reference, read_scorecard, reference_of
    from dlsim.study.verdict import with_sentences

    cards = []
    for paper in dict.fromkeys(claim.paper for claim in wanted):
        path = reference_of(paper)
        if results is not None:
            path = Path(results) / "data" / path.name
        if not os.path.exists(path):
            raise InputError(f"{path} is not there; first: dlsim reproduce {paper}")
        cards.append(read_scorecard(path))
    card = pd.concat(cards, ignore_index=True)
    card = card[card["id"].isin([claim.id for claim in wanted])]
    return with_sentences(beside_reference(card))


def _print_verdicts(card: "pd.DataFrame") -> None:
    """Print each claim with what was printed, what was measured and why it is judged so."""
    from dlsim.study.claims import VERDICTS

    for row in card.to_dict("records"):
        symbol = VERDICTS[row["verdict"]].symbol
        words = (row["whose_experiment"], row["verdict"], row["counted"])
        word = " ".join(filter(None, words))
        firmly = f"; {row['readings']}" if row["readings"] else ""
        print(f"{symbol} {row['id']} ({row['where']}) {word}{firmly}")
        printed = f"Printed: {row['printed']}. " if row["printed"] else ""
        quote = f'The paper: "{row["quote"]}"' if row["quote"] else ""
        texts = row["claim"], quote, f"{printed}{row['measured']}".strip(), row["reason"]
        for text in filter(None, texts):
            print(textwrap.fill(text, 96, initial_indent="    ", subsequent_indent="    "))


# ------------------------------------------------------------------- dlsim prove, dlsim bench


def print_proofs(args: argparse.Namespace) -> int:
    """Prove statements of the papers; print the status of each, or with --steps every step."""
    from dlsim import theory

    set_status("proving")
    try:
        proofs = theory.prove(args.keys)
    except theory.ProofError as error:
        print(f"dlsim prove: a step does not hold. {error}")
        return 1
    print("\n\n".join(map(str, proofs)) if args.steps else proofs.summary())
    return 0


def print_benchmarks(args: argparse.Namespace) -> int:
    """Print each measurement as it is made.

    The exit code is 2 if a program that it compares with is not installed.
    """
    whole("--tasks", args.tasks)
    whole("--seed", args.seed, 0)
    root = files.project_root()
    try:
        if root is None:
            raise ImportError("no checkout")
        sys.path.insert(0, str(root))
        parts = importlib.import_module("tests.verification.benchmarks.parts")
        parts.parts()
    except ImportError as error:
        need = f"dlsim bench needs a checkout of dlsim and its extra test ({error})"
        print(f"{need}: pip install -e '.[test]'", file=sys.stderr)
        return 2
    lines = parts.listing() if args.list else parts.report(args.parts, args.seed, args.tasks)
    for line in lines:
        print(line, flush=True)
    return 0


# --------------------------------------------------------------------------- the command line


class Parser(argparse.ArgumentParser):
    """A parser whose errors suggest the word that was probably meant."""

    def error(self, message: str) -> NoReturn:
        """Exit with the message and the nearest valid word."""
        if found := re.search(r"invalid choice: '(.*)' \(choose from (.*)\)", message):
            message += did_you_mean(found[1], re.findall(r"[^', ]+", found[2]))
        super().error(message)


def parser() -> argparse.ArgumentParser:
    """Build the command line."""
    shape = argparse.RawDescriptionHelpFormatter
    epilog = "examples:\n  dlsim lab\n  dlsim reproduce mcdf\n"
    text = "Open the notebooks, run them, and reproduce five papers."
    top = Parser("dlsim", description=text, epilog=epilog, formatter_class=shape)
    top.add_argument("--version", action="version", version=f"dlsim {__version__}")
    commands = top.add_subparsers(dest="verb", metavar="command")

    def command(
        name: str,
        function: Callable[[argparse.Namespace], int],
        text: str,
        examples: Sequence[str],
        note: str = "",
    ) -> Callable[..., argparse.Action]:
        """Add a command whose help ends with examples; return the function that adds arguments."""
        lines = "".join(f"  dlsim {name} {words}".rstrip() + "\n" for words in examples)
        epilog = f"{note}examples:\n{lines}"
        one = commands.add_parser(
            name, help=text, description=text, epilog=epilog, formatter_class=shape
        )
        one.set_defaults(function=function)
        one.allow_abbrev = name != "lab"  # options that it does not know go to JupyterLab
        return one.add_argument

    _describe_lab(command)
    _describe_run(command)
    _describe_reproduce(command)

    text = "list what can be reproduced, and policies and readings by name"
    add = command("list", print_topics, text, ["", "policies"])
    add("topic", nargs="?", help="figures, policies or readings (default: all three)")

    text = "print the claims of the papers, what was measured, and the verdicts"
    add = command("claims", print_claims, text, ["mcdf", "mcdf-1 --results results/latest"])
    text = "a paper (mcdf, or its letter M) or a claim (mcdf-1); default: all"
    add("name", nargs="?", help=text)
    add("--results", metavar="DIR", help="your own results, instead of those of dlsim")
    add("--json", action="store_true", help="print the scorecard as JSON")

    text = "prove the formulas and theorems of the papers, symbolically"
    add = command("prove", print_proofs, text, ["", "5.1 --steps"])
    text = "keys of statements, or how they begin (default: all)"
    add("keys", nargs="*", metavar="KEY", help=text)
    add("--steps", action="store_true", help="print every checked step")

    text = "measure speed against SimPy, SciPy and plain Python on the same work"
    add = command("bench", print_benchmarks, text, ["--list", "realtime --tasks 1000"])
    text = "an engine such as steady, or a part of it (default: all but the long ones)"
    add("parts", nargs="*", metavar="PART", help=text)
    add("--list", action="store_true", help="list the parts")
    add("--tasks", type=int, default=10_000, help="tasks per run (default 10000)")
    add("--seed", type=int, default=0, help="seed of the random work (default 0)")
    return top


def _describe_lab(command: Callable[..., Callable[..., argparse.Action]]) -> None:
    """Add the command ``dlsim lab`` and its arguments."""
    text = "open a copy of the notebooks in JupyterLab"
    examples = ["", "--dir my-notebooks --no-browser --port 8901"]
    note = "Further options go to jupyter lab, for instance --ip=0.0.0.0.\n\n"
    add = command("lab", open_lab, text, examples, note)
    text = f"folder of your copy (default {NOTEBOOKS_COPY}); your changes stay, "
    text += "results go beside it"
    add("--dir", default=NOTEBOOKS_COPY, metavar="DIR", help=text)
    add("--no-browser", action="store_true", help="print the address and open no browser")
    add("--port", type=int, help="port of the server (default 8888 or the next)")


def _describe_run(command: Callable[..., Callable[..., argparse.Action]]) -> None:
    """Add the command ``dlsim run`` and its arguments."""
    text = "run one notebook, of dlsim or your own, and write a page of it"
    examples = ["20-mcdf -p seed 1", "MINE.ipynb -p file data.csv --out results/mine"]
    add = command("run", run_one_notebook, text, examples)
    add("notebook", help="a notebook of dlsim by name, or a file NAME.ipynb")
    text = "a parameter of the notebook; may be repeated. Files are looked for in the current "
    text += "folder, or, for a notebook of your own, in its folder"
    pair: dict[str, Any] = {"nargs": 2, "metavar": ("NAME", "VALUE"), "action": "append"}
    add("-p", "--parameters", help=text, default=[], **pair)
    text = "folder of results (default results/NAME in the current folder)"
    add("--out", metavar="DIR", help=text)
    _add_limits(add)


def _describe_reproduce(command: Callable[..., Callable[..., argparse.Action]]) -> None:
    """Add the command ``dlsim reproduce`` and its arguments."""
    text = "run the notebooks of the papers and write the results page"
    examples = ["", "mcdf --scale full --out results/mcdf-full"]
    add = command("reproduce", reproduce_papers, text, examples, EXIT_CODES + "\n")
    add("names", nargs="*", help="papers, notebooks or figures (default: all)")
    text = "quick: every figure in minutes; full: larger samples (data/scales.toml says which)"
    add("--scale", choices=("quick", "full"), default="quick", help=text)
    text = f"folder of results (default {LATEST_RESULTS})"
    add("--out", default=LATEST_RESULTS, metavar="DIR", help=text)
    add("--seed", type=int, default=0, help="root of all randomness (default 0)")
    add("--runs", type=int, default=0, help="runs per point (default 0: as many as the scale says)")
    text = "change how a paper is understood, for instance link=shared; may be repeated"
    add("--reading", action="append", default=[], metavar="NAME=VALUE", help=text)
    text = "run the sweeps on this Dask cluster (extra cluster): the address of its scheduler, "
    text += "such as tcp://127.0.0.1:8786, or its scheduler file FILE.json"
    add("--dask", default="", metavar="ADDRESS", help=text)
    add("--force", action="store_true", help="run notebooks again even if nothing changed")
    text = "also make a book of the results in DIR/book (extra docs)"
    add("--book", action="store_true", help=text)
    _add_limits(add)


def _add_limits(add: Callable[..., argparse.Action]) -> None:
    """Add the options of the commands that run notebooks."""
    text = "also write every picture in this format (the page shows PNG)"
    add("--figures", choices=("png", "svg", "pdf"), default="png", help=text)
    text = "also write every table as data/NAME.tex, rounded, for a column of a paper"
    add("--latex", action="store_true", help=text)
    add("--jobs", type=int, default=0, help="processes at the same time (default 0: all cores)")
    text = "seconds that a cell may run (default 1800; 21600 at full scale; 0: no limit)"
    add("--cell-seconds", type=float, metavar="S", help=text)


def _require_current_folder() -> None:
    """Raise InputError if the current folder was removed: no relative path means anything there."""
    try:
        os.getcwd()
    except OSError as error:
        what = f"the current folder cannot be used ({error.strerror})"
        raise InputError(f"{what}; change to another folder") from error


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code."""
    for stream in (sys.stdout, sys.stderr):  # the encoding may lack a character
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    whole_parser = parser()
    args, extra = whole_parser.parse_known_args(argv)
    args.extra = extra
    if args.verb is None and not args.extra:
        whole_parser.print_help(sys.stderr)
        return 2
    if args.extra and args.verb != "lab":
        whole_parser.error(f"unrecognized arguments: {' '.join(args.extra)}")
    return _run_command(args)


def _run_command(args: argparse.Namespace) -> int:
    """Run a command and return the exit code; say every error in words."""
    shows_progress = args.verb in ("run", "reproduce", "lab", "bench")
    quiet = nullcontext() if shows_progress else stderr_progress(f"dlsim {args.verb}")
    try:
        with interrupt_on_termination(), quiet:
            _require_current_folder()
            return int(args.function(args))
    except DlsimError as error:
        print(f"dlsim: {error}", file=sys.stderr)
        return 2 if isinstance(error, InputError) else 1
    except KeyboardInterrupt as stop:
        print(f"\ndlsim: interrupted{f'; {stop}' if str(stop) else ''}", file=sys.stderr)
        return 130
    except BrokenPipeError:
        return 0
