"""What a hostile file may cost: every format refuses it in words, in bounded memory and time.

One child process imports the readers and forks for every format, and again after a case that
ended the fork or left it larger. With every case its data segment may grow by `MEMORY` at most
(RLIMIT_DATA), its peak resident memory (VmHWM) is measured anew, and alarms end it after
`SECONDS` of work or `HUNG` of waiting. The readers themselves catch no MemoryError.
"""

import gc
import gzip
import json
import os
import resource
import signal
import stat
import struct
import subprocess
import sys
import time
import traceback
import zlib
from collections import defaultdict
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dlsim import files
from dlsim.errors import DlsimError, InputError
from dlsim.study.notebooks import parameters_of
from tests.helpers.scale import LONG, scale_count

#: What reading one file may take beyond what the process has, in bytes and in seconds of a
#: processor, and how long it may wait for one, or for a pipe.
MEMORY, SECONDS, HUNG = 2**30, 60, 300
#: Where Linux takes a "5" to let the peak begin again at what is held now, and how many MiB more
#: than its first ones a fork may hold before another takes over.
PEAK, HELD = Path("/proc/self/clear_refs"), 16
#: A file of this size is larger than any limit; it takes no room on the disk.
SPARSE = 2**36

SPACES = b" " * 999 + b"\n"
HEADS = {"tasks.csv": b"arrival,sigma,deadline\n", "applications.csv": b"app,cpu_time,gpu_time\n"}


def kept(path, name, make):
    """Link to a large file that several cases share."""
    shared = path.parents[1] / name
    if not shared.exists():
        shared.write_bytes(make())
    path.symlink_to(shared)


def again_and_again(block, count):
    """Deflate so many blocks, of which one is packed; also their CRC and size."""
    press, crc = zlib.compressobj(1, wbits=-15), 0
    first, one = (press.compress(part) + press.flush(zlib.Z_FULL_FLUSH) for part in (b"", block))
    for _ in range(count):
        crc = zlib.crc32(block, crc)
    return first + one * count + b"\3\0", crc, count * len(block)


def gzip_bomb(block, count):
    stream, crc, size = again_and_again(block, count)
    return gzip.compress(b"")[:10] + stream + struct.pack("<II", crc, size)


def sparse(path):
    with open(path, "wb") as stream:
        stream.truncate(SPARSE)


#: Name of a case to what puts the file in its place; for every format.
EVERY = {
    "a link to /dev/zero": lambda path: path.symlink_to("/dev/zero"),
    "a pipe": os.mkfifo,
    "a socket": lambda path: os.mknod(path, stat.S_IFSOCK | 0o600),
    "a folder": Path.mkdir,
    "a link to itself": lambda path: path.symlink_to(path),
    "64 GiB of nothing": sparse,
    "one long line": lambda path: kept(path, "line", lambda: b"1" * 2**26),
    "a bomb of zeros": lambda path: kept(path, "zeros", lambda: gzip_bomb(bytes(2**20), 2**8)),
    "a bomb of lines": lambda path: kept(path, "lines", lambda: gzip_bomb(SPACES * 2**10, 2**8)),
    "brackets": lambda path: path.write_bytes(b"[" * 10**6),
    "bytes": lambda path: path.write_bytes(bytes(range(128, 256)) * 1000),
}
#: What is refused in other words than these is refused for its content.
SAID = {
    "a link to /dev/zero": "a device, not a regular file", "a pipe": "a pipe, not a regular",
    "a socket": "a socket, not a regular file", "a folder": "a folder, not a regular file",
    "a link to itself": "cannot be read",
}  # fmt: skip


def of_text(text):
    return lambda path: path.write_bytes(text if isinstance(text, bytes) else text.encode())


def cells_of(cell):
    return of_text(json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": cell}))


DIGITS = {400: "9" * 400, 5000: "9" * 5000, 10**6: "9" * 10**6}
NUMBERS = {
    "tasks.csv": "arrival,sigma,deadline\n0,{},1\n",
    "tasks.swf": "1 0 -1 {} 128 -1 -1 -1 -1 -1 1 1 1 -1 -1 -1 -1 -1\n",
    "applications.csv": "app,cpu_time,gpu_time\nA,{},1\n",
    "claims.toml": "[[claim]]\nmargin = {}\n",
    "figures.toml": "[[figure]]\nid = {}\n",
    "platform.toml": "[[cluster]]\nspeed = {}\n",
    "book.ipynb": '{{"nbformat": {}, "cells": []}}',
    "scheduler.json": '{{"address": {}}}',
}
JSON = [name for name in NUMBERS if name.endswith(("json", "ipynb", "jsonl"))]
TOML = [name for name in NUMBERS if name.endswith("toml")]
CSV = list(HEADS)
NESTED = {
    "nested lists": '{"a": ' + "[" * 500 + "]" * 500 + "}",
    "nested tables": '{"a": ' * 500 + "1" + "}" * 500,
    "a million small tables": '{"a": [' + "{}," * (31 * 2**20 // 3) + "{}]}",
}


#: Cases of some formats only: format, what it is, how it is made.
SPECIAL = [
    *((name, f"{n} digits", of_text(text.format(DIGITS[n])))
      for name, text in NUMBERS.items() for n in DIGITS),
    *((name, what, of_text(text)) for name in JSON for what, text in NESTED.items()
      if len(text) < 2**20 or name == "scheduler.json"),
    *((name, "a key of 32,000 parts", of_text(".".join("a" * 32000) + " = 1\n")) for name in TOML),
    *((name, "quoted parts", of_text("[" + " . ".join(['"a\\"b"', "'c'"] * 9000) + "]\n"))
      for name in TOML),
    *((name, "nested arrays", of_text("a = " + "[" * 10**5)) for name in TOML),
    *((name, "nested a little", of_text("a = " + "[" * 150 + "]" * 150)) for name in TOML),
    *((name, "30,000 tables", of_text("".join(f"[t{i}]\n" for i in range(30_000))))
      for name in TOML),
    *((name, "200,000 columns", of_text(",".join(f"c{i}" for i in range(100_000)) + "\n"))
      for name in CSV),
    *((name, "one long field", of_text(HEADS[name] + b'"' + b"x\n" * 10**6)) for name in CSV),
    ("tasks.swf", "a label again and again", of_text("; N: x\n" * 300_000)),
    ("book.ipynb", "a default of signs", cells_of([
        {"cell_type": "code", "id": "a", "metadata": {"tags": ["parameters"]}, "outputs": [],
         "execution_count": None, "source": "a: int = " + "-" * 10**5 + "1"}])),
    ("book.ipynb", "a default of brackets", cells_of([
        {"cell_type": "code", "id": "a", "metadata": {"tags": ["parameters"]}, "outputs": [],
         "execution_count": None, "source": "a: int = " + "(" * 10**5}])),
]  # fmt: skip
#: What is odd but no harm: it is read, in the same bounds.
READ = {("text.txt", "brackets")}


def cases():
    from tests.helpers.readers import READERS

    every = [(name, what, make) for name in READERS for what, make in EVERY.items()]
    return [(f"{name}: {what}", name, make) for name, what, make in every + SPECIAL]


def memory(name):
    """What this process holds, in MiB, by its name in /proc."""
    status = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in status if line.startswith(name)) / 1024


def attempt(read, path):
    """Read in a fork; say how it ended and what it took."""
    if PEAK.exists():
        PEAK.write_text("5")
    before, start = memory("VmHWM"), time.process_time()
    most, usual = int(memory("VmData") * 2**20) + MEMORY, resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (most, usual[1]))
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    signal.alarm(HUNG)
    try:
        read(path)
        ended, said = "read", ""
    except DlsimError as error:
        ended, said = "refused", str(error)
    except BaseException:
        ended, said = "crashed", traceback.format_exc(-3)
    signal.alarm(0)
    signal.setitimer(signal.ITIMER_PROF, 0)
    resource.setrlimit(resource.RLIMIT_DATA, usual)  # the next file may be made at any size
    return ended, said[-2000:], memory("VmHWM") - before, time.process_time() - start


def try_all(some, read, folder, send):
    """Make and read files until one left something behind; tell how each ended, as JSON lines."""
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    most = memory("VmRSS") + HELD
    for number, name, make in some:
        path = folder / str(number) / name
        path.parent.mkdir()
        make(path)
        told = json.dumps(attempt(read, path)) + "\n"
        if not path.is_symlink() and path.is_file():
            path.unlink()
        os.write(send, told.encode())
        if not PEAK.exists() or memory("VmRSS") > most:
            return


def main(folder):
    """Try every case in a fork of its format and print how each ended, a line of JSON each."""
    from tests.helpers.readers import READERS

    gc.freeze()  # a collection in a fork would copy all that was imported
    left = defaultdict(list)
    for number, (case, name, make) in enumerate(cases()):
        left[name].append((case, number, name, make))
    for name, some in left.items():
        read = READERS[name][0]
        if isinstance(read, partial):  # the limits are those of dlsim
            read = partial(read.func, **{**read.keywords, "limit": files.MAX_LOG_BYTES})
        while some:
            receive, send = os.pipe()
            if (child := os.fork()) == 0:
                code = 1
                try:
                    try_all([row[1:] for row in some], read, Path(folder), send)
                    code = 0
                finally:
                    os._exit(code)
            os.close(send)
            with open(receive) as stream:
                told = list(map(json.loads, stream))
            code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            if code:
                told.append(["crashed", f"ended with {code}", 0, 0])
            for row, ended in zip(some, told, strict=False):
                print(json.dumps([row[0], *ended]), flush=True)
            some = some[len(told) :]


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hostile")
    # as tests/conftest.py does: no grammars of IRIs are built, before anything else is imported
    start = "import sys; sys.modules['rfc3987_syntax'] = None\n"
    start += "from tests.verification.test_hostile_files import main; main(sys.argv[1])"
    command = [sys.executable, "-c", start, str(folder)]
    done = subprocess.run(
        command, capture_output=True, text=True, check=True, timeout=1200,
        cwd=Path(__file__).parents[2],
    )  # fmt: skip
    found = {case: rest for case, *rest in map(json.loads, done.stdout.splitlines())}
    peak, seconds = (max(rest[at] for rest in found.values()) for at in (2, 3))
    print(f"{len(found)} hostile files: at most {peak:.0f} MiB (VmHWM) and {seconds:.1f} s each")
    return found


@pytest.mark.skipif(sys.platform != "linux", reason="RLIMIT_DATA and /proc are of Linux")
@pytest.mark.parametrize(("case", "name"), [case[:2] for case in cases()])
def test_a_hostile_file_is_refused_in_words_within_bounds(outcomes, case, name):
    ended, said, peak, _ = outcomes[case]
    what = case.removeprefix(f"{name}: ")
    assert ended == ("read" if (name, what) in READ else "refused"), said
    assert peak < MEMORY / 2**20
    if ended == "refused":
        assert name in said
        assert SAID.get(what, "") in said or len(name) > 64  # a cell is computed again, no words
        assert "allocate" not in said


# --- notebooks: whatever the JSON, parameters or a refusal in words -------------

ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=6,
)
FIELDS = {
    "cell_type": st.sampled_from(["code", "code", "markdown", "raw"]),
    "source": st.sampled_from(["seed = 1", "", "seed: = 1", ["a = 1\n", "b = 2"], []]),
    "metadata": st.sampled_from([{}, {"tags": ["parameters"]}]),
}


def odd(fields):
    """Each of the fields as it should be, as anything else, or not there at all."""
    mostly = {name: st.one_of(good, good, good, ANY) for name, good in fields.items()}
    whole, some = st.fixed_dictionaries(mostly), st.fixed_dictionaries({}, optional=mostly)
    return st.one_of(whole, whole, some)


@given(odd({"nbformat": st.just(4), "cells": st.lists(odd(FIELDS) | ANY, max_size=3)}) | ANY)
@settings(max_examples=scale_count(300, LONG), deadline=None)
def test_any_json_has_parameters_or_is_refused(tmp_path_factory, book):
    path = tmp_path_factory.getbasetemp() / "any.ipynb"
    path.write_text(json.dumps(book))
    said = ""
    try:
        assert set(parameters_of(path)) <= {"seed", "a", "b"}
    except InputError as error:
        said = str(error)
    assert not said or "any.ipynb: not a notebook that can be run" in said
