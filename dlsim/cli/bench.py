"""``dlsim bench``: speed ratios against other engines on the same work."""

import argparse
import importlib
import sys

from dlsim.cli.options import ENGINES
from dlsim.files import project_root
from dlsim.given import option

#: Tasks of a run are this part of those asked for, and no fewer than the second.
FEWER = {"cpugpu": (5, 20)}


def main(args: argparse.Namespace) -> int:
    """Print speed ratios; 2 where the peers are not installed."""
    root, names = project_root(), args.engines or ENGINES
    for name in names:
        option("engine", name, ENGINES)
    try:
        if root is None:
            raise ImportError("no checkout")
        sys.path.insert(0, str(root))
        engines = [importlib.import_module(f"tests.benchmarks.{name}") for name in names]
    except ImportError as error:
        need = f"dlsim bench needs a checkout of dlsim and its extra test ({error})"
        print(f"{need}: pip install -e '.[test]'", file=sys.stderr)
        return 2
    for name, engine in zip(names, engines, strict=True):
        part, least = FEWER.get(name, (1, args.tasks))
        sizes = () if name == "steady" else (max(least, args.tasks // part),)
        print(f"{engine.report(*sizes, seed=args.seed)}\n", flush=True)
    return 0
