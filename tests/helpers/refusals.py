"""A test of what is refused, from a table of calls and the words of their refusals."""

import pytest

from dlsim.errors import InputError


def refuses_each(table):
    """Return a test per row of a table: the call is refused, in words that match."""

    @pytest.mark.parametrize(
        ("call", "words"), table, ids=[f"{k}-{words[:60]}" for k, (_, words) in enumerate(table)]
    )
    def test(call, words):
        with pytest.raises(InputError, match=words):
            call()

    return test
