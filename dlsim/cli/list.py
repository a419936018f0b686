"""``dlsim list``: what can be reproduced, and which policies and switches there are."""

import argparse

from dlsim.cli.words import switches_of
from dlsim.cpugpu import model as cpugpu
from dlsim.files import suite_notebooks
from dlsim.given import word
from dlsim.realtime.model import POLICIES
from dlsim.study.figures import load_figures


def main(_: argparse.Namespace) -> int:
    """Print what can be reproduced and which policies and switches there are."""
    there, rows = list(suite_notebooks()), load_figures()[1]
    print("dlsim reproduce NAME, where NAME is a paper, a notebook or a figure:")
    for notebook in there:
        print(f"\n{notebook}")
        for row in (row for row in rows if row.notebook == notebook):
            print(f"  {row.id:<36}{row.printed:<18}{row.title} ({row.status})")
    waiting = [row.id for row in rows if row.notebook not in there]
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
