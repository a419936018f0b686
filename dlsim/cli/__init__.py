"""The command ``dlsim``: reproduce the papers, or simulate your own tasks."""

import argparse
import importlib
import re
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from typing import NoReturn

from dlsim import __version__
from dlsim.cli.options import EPILOG, REPRODUCE, add_commands
from dlsim.errors import DlsimError, InputError
from dlsim.given import nearest
from dlsim.processes import termination_interrupts
from dlsim.progress import told

#: Commands that show their progress themselves.
SPEAKS = ("reproduce", "lab", "bench")


class Parser(argparse.ArgumentParser):
    """A parser that asks which word was meant."""

    def error(self, message: str) -> NoReturn:
        """End with the message, and the nearest word of those it could have been."""
        if found := re.search(r"invalid choice: '(.*)' \(choose from (.*)\)", message):
            message += nearest(found[1], re.findall(r"[^', ]+", found[2]))
        super().error(message)


def parser() -> argparse.ArgumentParser:
    """Build the command line."""
    raw = argparse.RawDescriptionHelpFormatter
    top = Parser("dlsim", None, __doc__, EPILOG, formatter_class=raw)
    top.add_argument("--version", action="version", version=f"dlsim {__version__}")
    made = add_commands(top)
    made["reproduce"].formatter_class, made["reproduce"].epilog = raw, REPRODUCE
    made["lab"].allow_abbrev = False
    made["lab"].epilog = "Further options go to jupyter lab, for instance --ip=0.0.0.0."
    return top


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line."""
    whole = parser()
    args, extra = whole.parse_known_args(argv)
    args.extra = extra
    if args.verb is None and not extra:
        whole.print_help(sys.stderr)
        return 2
    if args.extra and args.verb != "lab":
        whole.error(f"unrecognized arguments: {' '.join(args.extra)}")
    try:
        quiet = nullcontext() if args.verb in SPEAKS else told(f"dlsim {args.verb}")
        with termination_interrupts(), quiet:
            return int(importlib.import_module(f"dlsim.cli.{args.verb}").main(args))
    except DlsimError as error:
        print(f"dlsim: {error}", file=sys.stderr)
        return 2 if isinstance(error, InputError) else 1
    except KeyboardInterrupt as stop:
        print(f"\ndlsim: interrupted{f'; {stop}' if str(stop) else ''}", file=sys.stderr)
        return 130
    except BrokenPipeError:
        return 0
