"""``dlsim prove``: the status of every statement about the papers, and its derivation."""

import argparse

from dlsim import theory
from dlsim.progress import step


def main(args: argparse.Namespace) -> int:
    """Derive the statements about the papers and print their status, or every line.

    The exit status is 1 if a derivation fails; a claim that is refuted is a finding, no failure.
    """
    step("proving what was asked for")
    try:
        proofs = theory.prove(args.keys)
    except theory.ProofError as error:
        print(f"dlsim prove: a step does not hold. {error}")
        return 1
    print("\n\n".join(map(str, proofs)) if args.steps else proofs.summary())
    return 0
