"""data/README.md says what every column of every table holds."""

import csv
import fnmatch
import io
import re
import zipfile
from pathlib import Path

from dlsim.study import fingerprint
from dlsim.study.results import paper_letters
from dlsim.study.verdict import POINT_COLUMNS

ROOT = Path(__file__).parents[1]
#: A row of the dictionary: patterns of tables, columns, meaning.
ROW = re.compile(r"\| `([^`]+)` \| ((?:`[^`]+`(?:, )?)+) \| (.+) \|")
#: The name of a column that holds the verdicts under one reading.
READING = re.compile(r"\w+=[^=]+(, \w+=[^=]+)*")


def read_dictionary():
    """Return the patterns and the columns of each row."""
    text = (ROOT / "data" / "README.md").read_text("utf-8").partition("\n## Columns\n")[2]
    rows = [ROW.fullmatch(line) for line in text.splitlines() if line.startswith("| `")]
    assert all(rows)
    return [(row[1].split(), re.findall("`([^`]+)`", row[2])) for row in rows]


def first_row(text):
    return next(csv.reader(io.StringIO(text)))


def columns_of_tables():
    """Return the columns of every table that dlsim ships or that a frozen run left."""
    tables = {}
    for path in sorted((ROOT / "data").rglob("*.csv")):
        tables.setdefault(path.stem, set()).update(first_row(path.read_text("utf-8")))
    for path in sorted((ROOT / "tests" / "golden").glob("*.zip")):
        with zipfile.ZipFile(path) as archive:
            for name in archive.namelist():
                columns = first_row(archive.read(name).decode())
                tables.setdefault(name.removesuffix(".csv"), set()).update(columns)
    for paper in paper_letters().values():
        tables[f"{paper}-points"] = set(POINT_COLUMNS)
        tables[f"{paper}-experiments"] = set(fingerprint.EXPERIMENT_COLUMNS)
    return tables


DICTIONARY, TABLES = read_dictionary(), columns_of_tables()


def matching(patterns):
    """Return the tables that match a row of the dictionary."""
    return {name for one in patterns for name in fnmatch.filter(TABLES, one)}


def test_every_column_is_explained():
    explained = {name: set() for name in TABLES}
    for patterns, columns in DICTIONARY:
        for name in matching(patterns):
            explained[name].update(columns)
    unknown = [(name, one) for name in TABLES for one in TABLES[name] - explained[name]]
    switched = {name for name in TABLES if "<switch>=<value>" in explained[name]}
    assert [x for x in unknown if not (x[0] in switched and READING.fullmatch(x[1]))] == []


def test_every_explained_column_exists_in_a_table_of_each_pattern():
    for patterns, columns in DICTIONARY:
        for pattern in patterns:
            assert any(set(columns) & TABLES[name] for name in matching([pattern])), pattern
        found = set().union(*(TABLES[name] for name in matching(patterns)))
        assert set(columns) - {"<switch>=<value>"} <= found, patterns
