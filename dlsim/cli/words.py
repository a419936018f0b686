"""Words of the command line that several commands share."""

import argparse
import importlib
import io
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from dlsim import __version__, papers
from dlsim.errors import InputError
from dlsim.files import csv_text
from dlsim.given import option, word
from dlsim.owned import Owned
from dlsim.study.figures import paper_of


def folder_of(args: argparse.Namespace, kind: str) -> Owned | None:
    """Return the folder that ``--out`` names, refused before anything runs; None without."""
    remedy = "choose a new or empty folder with --out"
    if args.out == "":
        raise InputError(f"--out must name a folder, got ''; {remedy}")
    return None if args.out is None else Owned(args.out, kind, remedy).check()


def names_of(several: str | None, one: str | None, default: str) -> list[str]:
    """Return the names in ``--compare`` after the one named besides, or that one, or a default."""
    words = (several or (default if one is None else one)).split(",")
    names = list(dict.fromkeys(name.strip() for name in words))
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
    print(f"in {home.folder}: {_several(home.written)}")
    older = {name for name, _ in home.known() if home.content(name)} - set(home.written)
    if older:
        print(f"of an earlier run, and not renewed: {_several(older)}")


def png_of(figure: Any) -> bytes:
    """Draw and close a figure, without a date or tool."""
    from matplotlib import pyplot  # not at the top: most commands draw nothing

    stream = io.BytesIO()
    figure.savefig(stream, dpi=120, metadata={"Software": None})
    pyplot.close(figure)
    return stream.getvalue()


def shown(table: pd.DataFrame, shares: Iterable[str] = (), **words: Any) -> str:
    """Return a table as text, with four digits of every number, and `shares` in per cent."""
    table = table.copy()
    for name in table.columns.intersection(list(shares)):
        table[name] = [f"{100 * share:.4g} %" for share in table[name]]
    words = {"float_format": "{:.4g}".format, **words}
    return "none" if table.empty else str(table.to_string(**words))


def left_out(facts: Mapping[Any, Any]) -> list[str]:
    """Say what was skipped of a log, and where it contradicts itself."""
    skipped = facts.get("skipped", {})
    why = ", ".join(f"{reason} ({n:,})" for reason, n in skipped.items())
    lines = [f"skipped {sum(skipped.values()):,} jobs: {why}"] * bool(skipped)
    return lines + [f"note: {note}" for note in facts.get("notes", ())]


def _several(names: Iterable[str]) -> str:
    """List names of files, of numbered ones the first and the last."""
    groups: dict[str, list[str]] = {}
    for name in sorted(names):
        groups.setdefault(re.sub(r"-\d{4,}\.", "-*.", name), []).append(name)
    return ", ".join(" ... ".join(dict.fromkeys([some[0], some[-1]])) for some in groups.values())


def reading_of(words: Sequence[str]) -> dict[str, str]:
    """Turn words like ``link=shared`` or ``link=shared,late=drop`` into a mapping."""
    found: dict[str, str] = {}
    for pair in (pair for text in words for pair in text.split(",")):
        name, sign, value = pair.partition("=")
        if not sign:
            raise InputError(f"--reading takes name=value, such as link=shared; got {pair!r}")
        if name in found:
            twice = f"to {found[name]!r} and {value!r}"
            raise InputError(f"--reading sets {name} twice, {twice}; give one")
        found[name] = value
    return found


def switches_of(notebook: str) -> dict[str, tuple[Any, ...]]:
    """Return the switches of a notebook's paper, without loading its study."""
    paper = paper_of(notebook).replace("-", "_")
    folder = Path(papers.__path__[0])
    if (folder / f"{paper}.py").is_file():
        return dict(importlib.import_module(f"dlsim.papers.{paper}").SWITCHES)
    if not (folder / paper / "cells.py").is_file():
        return {}
    return dict(importlib.import_module(f"dlsim.papers.{paper}.cells").SWITCHES)


def by_notebook(reading: Mapping[str, str], notebooks: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Give every notebook the switches that its paper knows."""
    tables = {name: switches_of(name) if reading else {} for name in notebooks}
    for switch, value in reading.items():
        known = [word(v) for table in tables.values() for v in table.get(switch, ())]
        if not known:
            each = "; ".join(f"{name}: {', '.join(one)}" for name, one in tables.items() if one)
            what = f"no paper asked for ({', '.join(tables)}) knows the switch {switch!r}"
            raise InputError(f"{what}; they know: {each or 'none'}")
        option(switch, value, dict.fromkeys(known))
    return {
        name: {s: v for s in reading for v in table.get(s, ()) if word(v) == reading[s]}
        for name, table in tables.items()
    }
