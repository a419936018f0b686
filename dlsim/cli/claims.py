"""``dlsim claims``: what the papers claim, what we measured, and the verdict."""

import argparse
import textwrap
from pathlib import Path

from dlsim.errors import InputError
from dlsim.study.claims import SYMBOLS, headline, load_claims, read_scorecard, reference_of


def main(args: argparse.Namespace) -> int:
    """Print claims with what was measured and the verdict."""
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
