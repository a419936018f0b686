"""``dlsim claims``: what the papers claim, what we measured, and the verdict."""

import argparse
import textwrap
from pathlib import Path

import pandas as pd

from dlsim.errors import InputError
from dlsim.study.claims import SYMBOLS, headline, load_claims, read_scorecard, reference_of


def main(args: argparse.Namespace) -> int:
    """Print claims with what was measured and the verdict."""
    papers = dict.fromkeys(claim.paper for claim in load_claims(args.paper))
    cards = []
    for paper in papers:
        path = reference_of(paper)
        if args.results:
            path = Path(args.results) / "data" / path.name
        if not path.exists():
            raise InputError(f"{path} is not there; first: dlsim reproduce {paper}")
        cards.append(read_scorecard(path))
    card = pd.concat(cards, ignore_index=True)
    if args.json:
        print(card.to_json(orient="records", indent=1, force_ascii=False))
        return 0
    for _, row in card.iterrows():
        print(f"{SYMBOLS[row['verdict']]} {row['id']} ({row['where']}) {row['verdict']}")
        printed = f"Printed: {row['printed']}. " if row["printed"] else ""
        for text in (row["claim"], f"{printed}Measured: {row['measured'] or '-'}", row["reason"]):
            print(textwrap.fill(text, 96, initial_indent="    ", subsequent_indent="    "))
    where = args.results or "the reference results at paper scale"
    print(f"\n{headline(card['verdict'])} - from {where}, default reading unless stated there")
    return 0
