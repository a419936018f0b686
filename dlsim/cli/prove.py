"""``dlsim prove``: the status of every statement about the papers, and the steps of a proof."""

import argparse

from dlsim import theory


def main(args: argparse.Namespace) -> int:
    """Prove the statements about the papers and print their status."""
    if not args.steps:
        return theory.main(args.keys)
    for proven in theory.prove(args.keys):
        print(f"{proven.statement.key} ({proven.status}): {proven.statement.claim}")
        for step in proven.steps:
            print(f"  {step.kind:<12}{step.tex}\n{'':14}{step.why}")
    return 0
