"""Words of the command line that several commands share."""

from collections.abc import Sequence

from dlsim.errors import InputError


def reading_of(pairs: Sequence[str]) -> dict[str, str]:
    """Turn ``name=value`` words into a mapping.

    Parameters
    ----------
    pairs : sequence of str
        As given on the command line.

    Returns
    -------
    dict of str to str
        The switches.

    Raises
    ------
    InputError
        For a word without "=".
    """
    for pair in pairs:
        if "=" not in pair:
            raise InputError(
                f"--reading takes name=value, got {pair!r}; try: --reading link=shared"
            )
    return dict(pair.split("=", 1) for pair in pairs)
