"""``dlsim prove``: the status of every statement about the papers, and the steps of a proof."""

import argparse
import textwrap

from dlsim import theory
from dlsim.progress import step
from dlsim.theory.claim import plain
from dlsim.theory.second import second


def main(args: argparse.Namespace) -> int:
    """Prove the statements about the papers and print their status."""
    step("proving what was asked for")
    for proven in theory.prove(args.keys) if args.steps else ():
        print(f"{proven.key} ({proven.status}): {plain(proven.statement.source)}")
        for number, part in enumerate(proven.steps, start=1):
            print(f"\n  {number}. {part.kind}: {plain(part.why)}")
            print(textwrap.indent(part.claim.text(), "       "))
        print()
    if args.second:
        text, failed = second(args.keys)
        print(text)
        return int(failed > 0)
    return 0 if args.steps else theory.main(args.keys)
