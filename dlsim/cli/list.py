"""``dlsim list``: what can be reproduced, and which policies and switches there are."""

import argparse
from collections.abc import Callable

from dlsim.cli.words import switches_of
from dlsim.cpugpu import model as cpugpu
from dlsim.files import suite_notebooks
from dlsim.given import option, word
from dlsim.realtime.model import POLICIES, about
from dlsim.steady.engine import METHODS, SUFFIXES
from dlsim.study.figures import load_figures, paper_of


def _figures() -> None:
    there, rows = list(suite_notebooks()), load_figures()[1]
    print("dlsim reproduce NAME, where NAME is a paper, a notebook or a figure:")
    for notebook in there:
        print(f"\n{notebook}")
        for row in (row for row in rows if row.notebook == notebook):
            print(f"  {row.id:<36}{row.printed:<18}{row.title} ({row.status})")
    waiting = [row.id for row in rows if row.notebook not in there]
    if waiting:
        print(f"\nwithout their notebook: {', '.join(waiting)}")


def _policies() -> None:
    print("policies of dlsim simulate and papers M and I:")
    for name, policy in POLICIES.items():
        print(f"  {name:<20}{about(policy)}")
    print("\npolicies of paper C:")
    for name in cpugpu.POLICIES:
        print(f"  {name:<20}{cpugpu.ABOUT[name]}")
    print("\nmethods of dlsim solve and paper S:")
    for name, method in METHODS.items():
        print(f"  {name:<20}{method.text}")
    for name, suffix in SUFFIXES.items():
        takers = ", ".join(method.name for method in METHODS.values() if name in method.suffixes)
        print(f"  {'+' + name:<20}{suffix.text} ({takers})")


def _readings() -> None:
    print("readings (default first), dlsim reproduce PAPER --reading NAME=VALUE:")
    for notebook in suite_notebooks():
        if table := switches_of(notebook):
            print(f"\n{paper_of(notebook)}")
            for name, options in table.items():
                print(f"  {name:<13} {' | '.join(map(word, options))}")


TOPICS: dict[str, Callable[[], None]] = {
    "figures": _figures, "policies": _policies, "readings": _readings,
}  # fmt: skip


def main(args: argparse.Namespace) -> int:
    """Print one of the topics, or all."""
    for k, topic in enumerate([option("topic", args.topic, TOPICS)] if args.topic else TOPICS):
        print(end="\n" * (k > 0))
        TOPICS[topic]()
    return 0
