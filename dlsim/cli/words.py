"""Words of the command line that several commands share."""

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pandas as pd

from dlsim import __version__
from dlsim.errors import InputError
from dlsim.files import csv_text
from dlsim.owned import Owned


def folder_of(args: argparse.Namespace, kind: str) -> Owned | None:
    """Return the folder that ``--out`` names, refused before anything runs; None without."""
    home = Owned(args.out, kind, "choose a new or empty folder with --out") if args.out else None
    return home.check() if home else None


def names_of(several: str | None, one: str | None, default: str) -> list[str]:
    """Return the names in ``--compare`` after the one named besides, or that one, or a default."""
    names = [name.strip() for name in (several or (default if one is None else one)).split(",")]
    return [one, *names] if several and one and one not in names else names


def write_tables(
    home: Owned, facts: Mapping[str, Any],
    tables: Mapping[str, pd.DataFrame | Iterator[pd.DataFrame]],
) -> None:  # fmt: skip
    """Write what a command ran with as run.json, and its tables by name; say where.

    A table that may be long comes in parts, each made when it is written.
    """
    record = {"software": {"name": "dlsim", "version": __version__}, **facts}
    home.write("run.json", (json.dumps(record, indent=1, default=str) + "\n").encode())
    for name, table in tables.items():
        parts = enumerate([table] if isinstance(table, pd.DataFrame) else table)
        home.write(f"{name}.csv", (csv_text(part, header=k == 0).encode() for k, part in parts))
    print(f"in {home.folder}: {', '.join(sorted(home.written))}")
    older = {name for name, _ in home.known() if home.content(name)} - set(home.written)
    if older:
        print(f"of an earlier run, and not renewed: {', '.join(sorted(older))}")


def reading_of(words: Sequence[str]) -> dict[str, str]:
    """Turn words like ``link=shared`` or ``link=shared,late=drop`` into a mapping."""
    found: dict[str, str] = {}
    for pair in (pair for word in words for pair in word.split(",")):
        name, sign, value = pair.partition("=")
        if not sign:
            raise InputError(f"--reading takes name=value, such as link=shared; got {pair!r}")
        if name in found:
            raise InputError(f"--reading sets {name} twice, to {found[name]!r} and {value!r}")
        found[name] = value
    return found
