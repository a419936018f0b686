"""``dlsim reproduce``: run the notebooks of the papers and write the report."""

import argparse
import math
import os
import sys
import time
from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path

from dlsim.cli.words import by_notebook, folder_of, reading_of
from dlsim.errors import InputError
from dlsim.files import suite_notebooks
from dlsim.given import whole
from dlsim.study.figures import load_figures, paper_of


def _notebooks(names: Sequence[str]) -> list[str]:
    """Find the notebooks for papers, figures or notebooks by name; all of them for none."""
    there, chosen = list(suite_notebooks()), []
    home = {row.id: row.notebook for row in load_figures()[1]}
    for name in names:
        fits = [n for n in there if name in (n, paper_of(n)) or n == home.get(name)]
        if not fits:
            known = list(map(paper_of, there))
            near = get_close_matches(name, [*known, *there, *home], n=3)
            guess = f" did you mean {' or '.join(near)}?" if near else ""
            also = f"known: {', '.join(known)}, and the figures that dlsim list prints"
            raise InputError(f"nothing to reproduce is called {name!r};{guess} {also}")
        chosen += fits
    return list(dict.fromkeys(chosen)) if names else there


def main(args: argparse.Namespace) -> int:
    """Run notebooks and write the report."""
    begun, names, reading = time.perf_counter(), _notebooks(args.names), reading_of(args.reading)
    zeros = {"runs": " (0: what the scale says)", "seed": "", "jobs": " (0: all cores)"}
    for name, zero in zeros.items():
        rule = f"a whole number of at least 0{zero}"
        whole(f"--{name}", getattr(args, name), 0, math.inf, rule)
    folder_of(args, "results")
    from dlsim.compiled import require_cache  # these take their time; a refusal should not
    from dlsim.study import workers
    from dlsim.study.notebooks import run_all
    from dlsim.study.report import read_headline, write_report

    readings = by_notebook(reading, names)
    require_cache()
    out, dask = Path(args.out), args.dask or os.environ.get(workers.DASK, "")
    if dask:
        print(f"sweeps run on {workers.check(dask)}", file=sys.stderr)
    common = {"scale": args.scale, "seed": args.seed, "runs": args.runs}
    results = run_all(
        names, out=out, common=common, readings=readings, jobs=args.jobs,
        force=args.force, cell_seconds=args.cell_seconds, figures=args.figures, dask=dask,
    )  # fmt: skip
    meta = {"scale": args.scale, "seed": args.seed, "runs": args.runs, "reading": reading,
            "figures": args.figures}  # fmt: skip
    write_report(out, results, {**meta, "seconds": time.perf_counter() - begun})
    bad = [result for result in results if result.status != "ok"]
    for result in bad:
        print(f"{result.name} {result.status}: {result.error}", file=sys.stderr)
    print(read_headline(out))
    if any(result.status == "interrupted" for result in bad):
        print("interrupted; the same command resumes", file=sys.stderr)
        return 130
    return 1 if bad else 0
