"""What is refused, from tables of calls and the words of their refusals."""

import re

from dlsim.errors import InputError


def require_refusals(rows):
    """Fail, naming each row, unless every call is refused in words that match."""
    faults = []
    for call, words in rows:
        try:
            call()
            faults.append(f"nothing is refused: {words}")
        except InputError as error:
            if not re.search(words, str(error)):
                faults.append(f"{words} is not in: {error}")
    assert not faults, "\n".join(faults)


def refuses_each(table):
    """Return a test of a table: every call is refused, in words that match."""
    return lambda: require_refusals(table)
