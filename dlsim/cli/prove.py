"""``dlsim prove``: the status of every statement about the papers, and the steps of a proof."""

import argparse

from dlsim import theory
from dlsim.progress import step


def main(args: argparse.Namespace) -> int:
    """Prove the statements about the papers and print their status."""
    step("proving what was asked for")
    if not args.steps:
        return theory.main(args.keys)
    for proven in theory.prove(args.keys):
        print(f"{proven.statement.key} ({proven.status}): {proven.statement.claim}")
        for part in proven.steps:
            print(f"  {part.kind:<12}{part.tex}\n{'':14}{part.why}")
    return 0
