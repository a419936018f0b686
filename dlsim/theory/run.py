"""The verbs that prove statements and print the table."""

import importlib
import sys
import time
from collections import Counter
from collections.abc import Iterable

from dlsim.errors import InputError
from dlsim.theory.book import STATUSES, Listing, Statement, statements
from dlsim.theory.zero import ProofError

#: Where the statements are, in reading order; importing a room enters its proofs.
ROOMS = (
    "paper_m", "paper_m_theorems", "paper_m_rules", "closed_forms", "paper_i", "remodel",
    "multi_round", "yardsticks", "paper_s",
)  # fmt: skip
for _room in ROOMS:
    importlib.import_module(f"dlsim.theory.{_room}")


def prove(keys: str | Iterable[str] = ()) -> Listing:
    """Run the proofs of every statement that a key or prefix matches.

    Parameters
    ----------
    keys : str or iterable of str
        Keys or prefixes such as ``"5.1"``, ``"4."`` or ``"U"``; none means all.

    Returns
    -------
    Listing of Proven
        Each with its checked steps; renders line by line in a notebook.

    Raises
    ------
    InputError
        For a key that matches nothing.
    ProofError
        If a step fails, or could not be decided.

    Examples
    --------
    >>> prove("5.1").statuses
    {'5.1': 'proved'}
    """
    return Listing(statement.prove() for statement in statements(keys))


def _line(statement: Statement, width: int) -> tuple[str, str]:
    """Prove one statement: its outcome and its line of the table."""
    began = time.perf_counter()
    try:
        proven, word = statement.prove(), statement.status
        detail = f"{len(proven.steps):3d} steps"
    except ProofError as error:
        word, detail = "FAILED", str(error)
    took = f"{time.perf_counter() - began:5.2f} s"
    return word, f"{statement.key:<{width}}  {word:<9}  {took}  {detail}  {statement.source}"


def _table(keys: str | Iterable[str]) -> tuple[str, int]:
    found = statements(keys)
    width = max(len(s.key) for s in found)
    words, lines = zip(*(_line(s, width) for s in found), strict=True)
    count = Counter(words)
    words_ = {**STATUSES, "FAILED": "FAILED"}
    parts = [f"{count[word]} {said}" for word, said in words_.items() if count[word]]
    return "\n".join([*lines, f"{len(lines)} statements: {'; '.join(parts)}"]), count["FAILED"]


def report(keys: str | Iterable[str] = ()) -> str:
    """Prove statements and return a table of text: key, status, seconds, steps, source.

    Keys or prefixes as of `prove`; a proof that fails is a line, not an error.
    """
    return _table(keys)[0]


def main(keys: str | Iterable[str] = ()) -> int:
    """Print the table of `report`; the command line's ``dlsim prove [KEY]``.

    Returns the exit status: 0 if every proof stands (a refuted claim is a finding, not a
    failure), 1 if one fails, 2 for an unknown key.
    """
    try:
        text, failed = _table(keys)
    except InputError as error:
        print(f"dlsim prove: {error}", file=sys.stderr)
        return 2
    print(text)
    return int(failed > 0)
