"""Records of policies and methods: data with a name and one sentence that says what it does."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from dlsim.errors import InputError
from dlsim.user_code import load_user_code, names_user_code
from dlsim.validate import instance, one_of


class Derived(str):
    """A name or text that is made from the other fields of a record.

    It is made anew where `dataclasses.replace` copies it into a changed record.
    """

    __slots__ = ()


@dataclass(frozen=True, kw_only=True)
class NamedRecord:
    """A record with a name and a text, given or derived, that do not count in comparisons.

    A subclass calls `settle_words` at the end of its ``__post_init__``.

    Parameters
    ----------
    name : str, optional
        The name in legends and tables; default: derived from the other fields.
    text : str, optional
        One sentence that says what the record does; default: derived from the other fields.
    """

    name: str = field(default=Derived(), compare=False)
    text: str = field(default=Derived(), compare=False, repr=False)

    def settle_words(self, derive_name: Callable[[], str], derive_text: Callable[[], str]) -> None:
        """Derive the words that are not given; raise InputError for one that is given but blank."""
        for word, derive in (("name", derive_name), ("text", derive_text)):
            given = getattr(self, word)
            if isinstance(given, Derived):
                given = Derived(derive())
            if not isinstance(given, str) or not given.strip():
                kind = type(self).__name__
                raise InputError(f"{word} of a {kind} must be a text that is not blank: {given!r}")
            vars(self)[word] = given


def require_names(rows: Mapping[str, NamedRecord]) -> None:
    """Refuse a registry whose rows have other names than its keys.

    Raises
    ------
    TypeError
        For such a row.
    """
    for key, row in rows.items():
        if key != row.name or isinstance(row.text, Derived) or isinstance(row.name, Derived):
            raise TypeError(f"the record of {key!r} must be given its name and a text, got {row!r}")


def find_record(kind: str, value: Any, rows: Mapping[str, Any]) -> tuple[str, Any]:
    """Return the name and the record that a value stands for.

    A name is looked up in `rows`. A record is returned as it is, under its own name; one that has
    only a derived name and equals a row is returned under the name of that row. A text
    ``FILE.py:name`` loads a record from a user's file; its name is the part behind the colon.

    Raises
    ------
    InputError
        For a value that stands for no record, or a record with the name of another one.
    """
    record = type(next(iter(rows.values())))
    if names_user_code(value):
        loaded = load_user_code(kind, value)
        return value.rpartition(":")[2], instance(f"{kind} {value!r}", loaded, record)
    if not isinstance(value, record):
        return one_of(kind, value, rows), rows[value]
    if isinstance(value.name, Derived):
        return next((name for name, row in rows.items() if row == value), value.name), value
    if rows.get(value.name, value) != value:
        what = f"{kind} {value.name!r} differs from the {kind} of that name"
        raise InputError(f"{what}; give it a name of its own, as in replace(..., name='mine')")
    return value.name, value
