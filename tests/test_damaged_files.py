"""Whatever happened to a file, its reader returns something or refuses in words, and soon.

A refusal names the file, and where the reader knows lines, also the line or the field.
"""

import gzip
import json
import random
import re
import sys
import tempfile
import time
import warnings
from pathlib import Path

import pytest

from dlsim.cpugpu.database import HistoryDatabase
from dlsim.errors import DlsimError
from dlsim.live.calibration import FILE_VERSION, read_costs
from tests.helpers.readers import READERS, SEALED
from tests.helpers.scale import TRIES_ALL, scale_count

#: Damaged files that every reader is given.
COUNT = scale_count(400, least=40)
#: CPU seconds that a small file may take.
SECONDS = 5
TOKENS = [
    b"", b" ", b"nan", b"NaN", b"inf", b"-inf", b"1e999", b"-1", b"0", b"-0.0", b"1e-320", b"1_000",
    b"1,5", b"0x10", b"9" * 400, b"1" * 5000, b"true", b"null", b"\xff", b"\xfe\xff", b"\0",
    b"\r", b"\n", b"\r\n", b"\t", b",", b";", b'"', b'"""', b"'", b"[", b"]", b"[[", b"{", b"}",
    b"=", b"=1+1", b"#", b"..", b"../../x", b"\xc3\xa4", b"\xe2\x80\xae", b"\xf0\x9f\x98\x80",
    b"1970-01-01", b"12:00", b"\\u0000", b"\\ud800", b"\x1b[31m", b"$(ls)", b"%s", b"1/3", b"2**63",
]  # fmt: skip


def put_bytes(rng: random.Random, data: bytes) -> bytes:
    at = rng.randint(0, len(data))
    return data[:at] + rng.choice([*TOKENS, rng.randbytes(3)]) + data[at + rng.randint(0, 8) :]


def flip_bit(rng: random.Random, data: bytes) -> bytes:
    at = rng.randrange(len(data)) if data else 0
    flipped = bytes(byte ^ 1 << rng.randrange(8) for byte in data[at : at + 1])
    return data[:at] + flipped + data[at + 1 :]


def cut_off(rng: random.Random, data: bytes) -> bytes:
    return data[: rng.randint(0, len(data))]


def repeat_part(rng: random.Random, data: bytes) -> bytes:
    begin, end = sorted(rng.randint(0, len(data)) for _ in range(2))
    return data[:end] + data[begin:end] * rng.randint(1, 3) + data[end:]


def shuffle_lines(rng: random.Random, data: bytes) -> bytes:
    lines = data.splitlines(keepends=True)
    rng.shuffle(lines)
    return b"".join(lines)


def change_line(rng: random.Random, data: bytes) -> bytes:
    lines = data.splitlines(keepends=True) or [b""]
    at = rng.randrange(len(lines))
    lines[at : at + 1] = rng.choice([[], [lines[at]] * 2, [b"\n"], [rng.choice(TOKENS) + b"\n"]])
    return b"".join(lines)


def change_field(rng: random.Random, data: bytes) -> bytes:
    separator = rng.choice([b",", b" ", b"=", b":", b"\n"])
    fields = data.split(separator)
    fields[rng.randrange(len(fields))] = rng.choice(TOKENS)
    return separator.join(fields)


def change_encoding(rng: random.Random, data: bytes) -> bytes:
    text = data.decode("utf-8", "replace")
    name = rng.choice(["utf-8-sig", "utf-16", "utf-16-be", "utf-32", "latin-1", "cp1252", "cp037"])
    return text.encode(name, "replace")


def change_line_ends(rng: random.Random, data: bytes) -> bytes:
    return data.replace(b"\n", rng.choice([b"\r\n", b"\r", b"\n\n", b"\x0b", b"\xe2\x80\xa8"]))


def compress(rng: random.Random, data: bytes) -> bytes:
    packed = gzip.compress(data, mtime=0)
    return rng.choice([packed, cut_off(rng, packed), flip_bit(rng, packed), packed + data])


CHANGES = [
    put_bytes, put_bytes, flip_bit, cut_off, repeat_part, shuffle_lines, change_line, change_field,
    change_field, change_encoding, change_line_ends, compress,
]  # fmt: skip


def read_database(path):
    with HistoryDatabase(path) as database:
        database.runs()
        return database.history()


def good_database() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "good.sqlite"
        with HistoryDatabase(path) as database:
            for seconds in (1.0, 2.5, 4.0):
                database.add("sort", "cpu", seconds)
        return path.read_bytes()


COSTS = {"version": FILE_VERSION, "functions": {"f": {"pieces": [[1, 2, 0.5]], "ratios": [1.5]}}}
CASES = READERS | {
    "costs.json": (read_costs, json.dumps(COSTS).encode(), False),
    "history.sqlite": (read_database, good_database(), False),
}
#: Refusals of a file as a whole, which name no line.
OF_A_WHOLE_FILE = ("no job that could be", "holds no ", "gzip", "bytes", "used twice")
#: Texts are nearly all read.
SELDOM_REFUSED = {"text.txt"}
#: Files with checksums.
NEARLY_ALWAYS_REFUSED = {*SEALED, "history.sqlite"}


def damaged(name: str, good: bytes, number: int) -> bytes:
    """Return the damaged file of a number, the same in every run."""
    rng = random.Random(f"{name} {number}")
    data = good
    for _ in range(rng.randint(1, 4)):
        data = rng.choice(CHANGES)(rng, data)
    return data


@pytest.mark.parametrize("name", CASES)
def test_a_damaged_file_is_read_or_refused_in_words(tmp_path, name):
    read, good, names_lines = CASES[name]
    path, faults, refused = tmp_path / name, [], 0
    for number in range(COUNT):
        path.write_bytes(damaged(name, good, number))
        begin = time.process_time()
        try:
            read(path)
        except DlsimError as error:
            refused += 1
            said = str(error)
            is_placed = re.search("line |field ", said) or any(x in said for x in OF_A_WHOLE_FILE)
            if name not in said or (names_lines and not is_placed):
                faults.append((number, said))
        except Exception as error:  # this is what is looked for
            faults.append((number, repr(error)))
        if time.process_time() - begin > SECONDS:
            faults.append((number, "too long"))
    assert faults == []
    assert refused > COUNT / 10 or name in SELDOM_REFUSED
    assert refused < COUNT or name in NEARLY_ALWAYS_REFUSED


#: Numbers of absurd size: whole ones beyond 64 bits, beyond floats and beyond what Python converts,
#: groups of thousands, and fractions.
ABSURD = [
    *("9" * digits for digits in (19, 309, 5000)), "9223372036854775808", f"-{'9' * 5000}",
    *(f"1{' 000' * groups}" for groups in (5, 100)),
    *(f"1{',000' * groups}" for groups in (120, 2000)),
    "1e18", "1e308", "-1e308", "1e309", "1e-320", f"0.{'3' * 5000}", "1e99999999999",
    f"{'9' * 15} x 999999", f"0x{'f' * 5000}",
]  # fmt: skip
#: The limit of digits that Python has unless it is set.
LIMIT = 4300
BEYOND_THE_LIMIT = [text for text in ABSURD if len(text) > LIMIT]


def answer_of(read, path):
    """Return what a reader returns, or else what it says when it refuses the file."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # a count is rounded down
            return read(path), ""
    except DlsimError as error:
        return None, str(error)


@pytest.mark.parametrize("most_digits", [0, LIMIT])
@pytest.mark.parametrize("name", [name for name in READERS if name not in SEALED])
def test_a_number_of_absurd_size_is_read_or_refused_in_words(tmp_path, name, most_digits):
    """Numbers of a good file become each of them; Python's limit of digits changes nothing.

    Without the limit only texts beyond it can be read differently. What a header of a log says is
    noted, and gives no machine that cannot be. Unless all is tried, a place has every fourth text.
    """
    read, good, _ = READERS[name]
    before, path = sys.get_int_max_str_digits(), tmp_path / name
    places = list(re.finditer(rb"(?<![\w.])-?\d+(\.\d+)?(?![\w.])", good))
    try:
        sys.set_int_max_str_digits(most_digits)
        texts, step = ABSURD if most_digits else BEYOND_THE_LIMIT, 1 if TRIES_ALL else 4
        for place, number in enumerate(places[:: max(1, len(places) // scale_count(300, least=6))]):
            for text in texts[place % step :: step]:
                path.write_bytes(good[: number.start()] + text.encode() + good[number.end() :])
                with warnings.catch_warnings():
                    warnings.simplefilter("error", RuntimeWarning)
                    found, said = answer_of(read, path)
                assert found is None or getattr(found, "nodes", 1) <= 10**9
                assert path.name in said or not said
                assert "sys.set_int" not in said
    finally:
        sys.set_int_max_str_digits(before)
