"""Records of policies and methods: data with a name and one sentence that says what it does."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

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

    Attributes
    ----------
    remedy : str
        What to give instead of a function, where a record is asked for.
    """

    remedy: ClassVar[str] = ""

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
    """Raise TypeError for a registry whose rows have no words or other names than its keys."""
    for key, row in rows.items():
        if key != row.name or isinstance(row.text, Derived) or isinstance(row.name, Derived):
            raise TypeError(f"the record of {key!r} must be given its name and a text, got {row!r}")


def find_records(
    kind: str,
    values: Sequence[Any] | Mapping[str, Any],
    rows: Mapping[str, Any],
    compared: Collection[str] = (),
) -> dict[str, Any]:
    """Return a user's records by their labels.

    Parameters
    ----------
    kind : str
        What a record is, such as a policy.
    values : sequence or mapping
        What `find_record` takes, each text also with a label before it, as in "mine=FILE.py:name";
        or such values by label.
    rows : mapping
        The registry.
    compared : collection of str
        Labels of the records that a notebook compares anyway.

    Raises
    ------
    InputError
        For a label that cannot stand in a picture, or one that is there twice.

    Examples
    --------
    >>> from dlsim.realtime import POLICIES
    >>> list(find_records("policy", ["mine=EDF-DLT", "FIFO-DLT"], POLICIES, compared=["MCDF"]))
    ['mine', 'FIFO-DLT']
    """
    if isinstance(values, str) or not isinstance(values, Mapping | Sequence):
        raise InputError(f"{kind}: give a list or a mapping of labels, got {values!r}")
    pairs = values.items() if isinstance(values, Mapping) else ((None, one) for one in values)
    found: dict[str, Any] = {}
    for label, one in pairs:
        if label is None and isinstance(one, str) and "=" in one:
            label, _, one = one.partition("=")
        name, record = find_record(kind, one, rows)
        label = label or name
        if not isinstance(label, str) or label in found:
            raise InputError(f"{kind} {label!r} must have a label of its own; name it LABEL={kind}")
        _require_label(label, compared)
        found[label] = record
    return found


def _require_label(label: str, compared: Collection[str]) -> None:
    """Refuse a label that a picture cannot show, or that another record has."""
    if "$" in label or not label.isprintable():
        rule = "stands in pictures, in which a $ begins a formula"
        raise InputError(f"the label {label!r} {rule}: give it one of letters, mine=...")
    if label in compared:
        raise InputError(f"{label} is compared already: give yours a label, mine=...")


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
        remedy = f"; {record.remedy}" * (callable(loaded) and bool(record.remedy))
        return value.rpartition(":")[2], instance(f"{kind} {value!r}", loaded, record, remedy)
    if callable(value) and record.remedy:
        rule = f"must be a name, a {record.__name__} or FILE.py:name, got the function {value!r}"
        raise InputError(f"{kind} {rule}; {record.remedy}")
    if not isinstance(value, record):
        return one_of(kind, value, rows), rows[value]
    if isinstance(value.name, Derived):
        return next((name for name, row in rows.items() if row == value), value.name), value
    if rows.get(value.name, value) != value:
        what = f"{kind} {value.name!r} differs from the {kind} of that name"
        raise InputError(f"{what}; give it a name of its own, as in replace(..., name='mine')")
    return value.name, value
