"""``dlsim bench``: speed ratios against other engines on the same work."""

import argparse
import importlib
import sys

from dlsim.files import project_root
from dlsim.given import whole


def main(args: argparse.Namespace) -> int:
    """Print each row as it is measured; 2 where the peers are not installed."""
    whole("--tasks", args.tasks)
    whole("--seed", args.seed, 0)
    root = project_root()
    try:
        if root is None:
            raise ImportError("no checkout")
        sys.path.insert(0, str(root))
        bench = importlib.import_module("tests.benchmarks.parts")
        bench.parts()
    except ImportError as error:
        need = f"dlsim bench needs a checkout of dlsim and its extra test ({error})"
        print(f"{need}: pip install -e '.[test]'", file=sys.stderr)
        return 2
    for line in bench.listing() if args.list else bench.report(args.parts, args.seed, args.tasks):
        print(line, flush=True)
    return 0
