"""Words of the command line that several commands share."""

from collections.abc import Sequence

from dlsim.errors import InputError


def reading_of(words: Sequence[str]) -> dict[str, str]:
    """Turn words like ``link=shared`` or ``link=shared,late=drop`` into a mapping.

    Parameters
    ----------
    words : sequence of str
        One per ``--reading`` on the command line.

    Returns
    -------
    dict of str to str
        The switches.

    Raises
    ------
    InputError
        For a word without "=", or a switch that is set twice.
    """
    found: dict[str, str] = {}
    for pair in (pair for word in words for pair in word.split(",")):
        name, sign, value = pair.partition("=")
        if not sign:
            raise InputError(f"--reading takes name=value, such as link=shared; got {pair!r}")
        if name in found:
            raise InputError(f"--reading sets {name} twice, to {found[name]!r} and {value!r}")
        found[name] = value
    return found
