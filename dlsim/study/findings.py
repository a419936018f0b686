"""Findings: sentences about results whose numbers come from tables, by data/findings.toml.

A finding is a sentence with places for values. It says from which rows of which table each value
comes, what must hold for its words to be true, and in which texts the sentence stands.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import Any

import pandas as pd

from dlsim import files
from dlsim.errors import InputError
from dlsim.files import StrPath
from dlsim.study.claims import load_claims
from dlsim.study.results import load_figures, paper_letters
from dlsim.study.session import read_scales, table_of_sizes
from dlsim.validate import any_number, list_of, mapping, one_of, text, whole

#: Ways to make one number of the selected rows of a column.
TAKES = ("one", "least", "most", "mean", "sum", "count", "different")
#: A place for a value in a sentence, and what a value looks like.
_PLACE, _NUMBER = re.compile(r"\{(\w+)\}"), r"-?\d[\d,]*(?:\.\d+)?"


@dataclass(frozen=True)
class Value:
    """One number: rows of a table, selected by their values, and one column of them.

    Attributes
    ----------
    table : str
        A CSV file of data/reference or of a folder of results, without its ending; several files
        as a pattern such as ``*-claims``; or one of `DATA`.
    where : dict
        What a selected row holds, by column: a value, or a list of which it holds one.
    unless : dict
        What a selected row does not hold, likewise.
    column : str
        The column; "count" needs none.
    take : str
        One of `TAKES`; "one" refuses all but one row, "different" counts the values.
    printed : str
        A claim whose printed number is the value, instead of a table; of two, "least" or "most".
    times : float
        Factor, such as 100 for points or percent.
    digits : int
        Decimals that are shown.
    above, below : float or None
        Of a condition: what the number must exceed, and what must exceed it.
    """

    table: str = ""
    where: Mapping[str, Any] | None = None
    unless: Mapping[str, Any] | None = None
    column: str = ""
    take: str = "one"
    printed: str = ""
    times: float = 1.0
    digits: int = 0
    above: float | None = None
    below: float | None = None


_VALUE = files.field_rules(
    Value,
    where=mapping,
    unless=mapping,
    take=partial(one_of, options=TAKES),
    times=any_number,
    digits=partial(whole, low=0),
    above=any_number,
    below=any_number,
)


@dataclass(frozen=True)
class Finding:
    """A sentence with places for values in braces, by name.

    Attributes
    ----------
    paper : str
        The section of data/findings.toml.
    sentence : str
        The sentence, or the part of it that holds the numbers.
    texts : list of str
        The files that hold it, as paths of the project.
    values : dict of Value
        Where the value of every place comes from.
    holds : list of Value
        Conditions, each `above` or `below` a number, that the words state.
    """

    paper: str
    sentence: str
    texts: list[str]
    values: dict[str, Value] = field(default_factory=dict)
    holds: list[Value] = field(default_factory=list)

    def rendered(self, folder: StrPath | None = None) -> str:
        """Return the sentence with its values, from data/reference or a folder of tables."""
        return self.sentence.format_map(
            {name: _shown(value, folder) for name, value in self.values.items()}
        )

    def failures(self, folder: StrPath | None = None) -> Iterator[str]:
        """Say of every condition of the words that the tables do not meet what was found."""
        for value in self.holds:
            found = look_up(value, folder)
            low = -float("inf") if value.above is None else value.above
            high = float("inf") if value.below is None else value.below
            if not low < found < high:
                yield f"{found} is not between {low} and {high}: {value}"

    def updated(self, text: str, folder: StrPath | None = None) -> str:
        """Return a text with the values of today in the place of those that it holds."""
        words = _PLACE.split(self.sentence)  # a word, the name of a place, a word, ...
        literal = [re.sub(r"(\\ )+", r"\\s+", re.escape(part)) for part in words[::2]]
        # a quotation mark in a TOML text has a backslash
        pattern = _NUMBER.join(f"({part})" for part in literal).replace('"', r'\\?"')

        def renewed(found: re.Match[str]) -> str:
            values = [_shown(self.values[name], folder) for name in words[1::2]]
            kept = found.groups()
            return kept[0] + "".join(new + part for new, part in zip(values, kept[1:], strict=True))

        return re.sub(pattern, renewed, text)


@cache
def _read(path: Path) -> pd.DataFrame:
    return files.read_csv(path, {})


def _claims() -> pd.DataFrame:
    """Return the claims of data/claims.toml; the parts of a claim have one number."""
    kept = ("id", "paper", "whose", "kind")
    frame = pd.DataFrame([{name: getattr(claim, name) for name in kept} for claim in load_claims()])
    return frame.assign(number=frame["id"].str.replace(r"[a-z]$", "", regex=True))


def _sizes() -> pd.DataFrame:
    """Return the numbers of data/scales.toml: the size of the runs of each paper and scale."""
    rows = [
        (paper, scale, name, value)
        for paper in files.read_toml(files.shared_file("data/scales.toml"))
        for scale, sizes in read_scales(paper).items()
        for name, value in sizes.items()
        if isinstance(value, int | float)
    ]
    return pd.DataFrame(rows, columns=["paper", "scale", "name", "value"])


#: Tables that are made from files of data/ other than CSV.
DATA = {"claims": cache(_claims), "sizes": cache(_sizes)}


def _table(name: str, folder: StrPath | None) -> pd.DataFrame:
    """Return a table, or several as one, of a folder or of data/reference."""
    if name in DATA:
        return DATA[name]()
    place = files.shared_folder("data") / "reference" if folder is None else Path(folder)
    found = sorted(place.glob(f"*/{name}.csv" if folder is None else f"{name}.csv"))
    if not found:
        raise InputError(f"{place}: no table is called {name}.csv")
    return pd.concat([_read(path) for path in found], ignore_index=True)


def _column(frame: pd.DataFrame, name: str, table: str) -> pd.Series:
    if name not in frame:
        raise InputError(f"{table}: no column {name!r} among {', '.join(map(str, frame))}")
    return frame[name]


def _selected(frame: pd.DataFrame, value: Value) -> pd.DataFrame:
    """Return the rows that hold what `where` says, and not what `unless` says."""
    for wanted, is_wanted in ((value.where, True), (value.unless, False)):
        for name, given in (wanted or {}).items():
            options = given if isinstance(given, list) else [given]
            frame = frame[_column(frame, name, value.table).isin(options) == is_wanted]
    return frame


def look_up(value: Value, folder: StrPath | None = None) -> float:
    """Return the number that a value stands for, from data/reference or a folder of tables."""
    if value.printed:
        claims = [claim for claim in load_claims() if claim.id == value.printed]
        numbers = pd.Series([number for claim in claims for number in claim.printed], dtype=float)
    else:
        rows = _selected(_table(value.table, folder), value)
        if value.take == "count":
            return float(len(rows))
        numbers = _column(rows, value.column, value.table)
    if numbers.empty or (value.take == "one" and len(numbers) != 1):
        raise InputError(f"{len(numbers)} rows instead of one: {value}")
    if numbers.isna().any():
        raise InputError(f"a number is missing: {value}")
    kinds = {"least": "min", "most": "max", "one": "max", "different": "nunique"}
    return float(numbers.agg(kinds.get(value.take, value.take))) * value.times


def _shown(value: Value, folder: StrPath | None) -> str:
    shown = f"{look_up(value, folder):,.{value.digits}f}"
    return shown.removeprefix("-") if not any(c in "123456789" for c in shown) else shown


def sizes_in_markdown() -> str:
    """Return the table of data/README.md: the sizes that papers state, and those of our runs."""
    letters = {paper: letter for letter, paper in paper_letters().items()}
    table = table_of_sizes(*letters).replace({"paper": letters}).astype(str)
    rows: list[list[str]] = table.to_numpy().tolist()
    head = [list(table.columns), ["---"] * len(table.columns)]
    return "".join(f"| {' | '.join(row)} |\n" for row in head + rows)


def _to_value(name: str, given: Any) -> Value:
    return Value(**files.parse_row(name, given, _VALUE))


def load_findings(path: StrPath | None = None) -> list[Finding]:
    """Read the findings; what `rows` of one gives holds for all its values and conditions."""
    path = files.shared_file("data/findings.toml") if path is None else path
    rules: dict[str, files.FieldRule] = {
        "sentence": partial(text, blank=False),
        "texts": partial(list_of, check=text),
        "rows?": mapping,
        "values?": mapping,
        "holds?": partial(list_of, check=mapping),
    }
    found = files.read_tables(path, dict.fromkeys(load_figures().papers, rules))
    findings = []
    for paper, rows in found.items():
        for row in rows:
            shared = row.get("rows", {})
            values = {
                name: _to_value(f"{row.where}: {name}", {**shared, **mapping(name, given)})
                for name, given in row.get("values", {}).items()
            }
            holds = [
                _to_value(f"{row.where}: holds", {**shared, **given})
                for given in row.get("holds", [])
            ]
            places = set(_PLACE.findall(row["sentence"]))
            if places != set(values):
                raise InputError(f"{row.where}: places {places} need values of these names")
            findings.append(Finding(paper, row["sentence"], row["texts"], values, holds))
    return findings
