"""The base class of every engine's Reading: how ambiguous sentences of a paper are understood."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields
from typing import Any, ClassVar, Self

from dlsim.user_code import resolve_user_code
from dlsim.validate import mapping, number, one_of


def switch(*options: Any, rule: str = "", papers: str = "") -> Any:
    """Return the dataclass field of a switch with these options, the default first.

    Parameters
    ----------
    *options
        Values of the switch.
    rule : str
        Name under which `BaseReading.rules` tells whether the second option is chosen.
    papers : str
        Letters of the papers whose notebooks compare claims under this switch.
    """
    return field(default=options[0], metadata={"options": options, "rule": rule, "papers": papers})


@dataclass(frozen=True)
class BaseReading:
    """Switches with options, the default first; a subclass has an engine's switches as fields."""

    #: Options of switches that are not made by `switch`; limits of numeric switches, as arguments
    #: of `dlsim.validate.number`; switches that may also be a function.
    OPTIONS: ClassVar[Mapping[str, tuple[Any, ...]]] = {}
    NUMBERS: ClassVar[Mapping[str, Mapping[str, Any]]] = {}
    OPEN: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        for one in fields(self):
            name, value = one.name, getattr(self, one.name)
            if name in self.OPEN:
                value = resolve_user_code(name, value)
                object.__setattr__(self, name, value)
            if name in self.NUMBERS:
                object.__setattr__(self, name, number(name, value, **self.NUMBERS[name]))
            elif not (name in self.OPEN and callable(value)):
                one_of(name, value, one.metadata.get("options") or self.OPTIONS[name])

    @classmethod
    def switches(cls, paper: str = "") -> dict[str, tuple[str, ...]]:
        """Return the options of every `switch`, or of those of a paper, the default first."""
        own = {one.name: one.metadata for one in fields(cls) if one.metadata}
        return {name: one["options"] for name, one in own.items() if paper in one["papers"]}

    @classmethod
    def from_switches(cls, switches: Mapping[str, Any]) -> Self:
        """Return a reading from the switches that are not default; a number may be a text."""
        known, values = [one.name for one in fields(cls)], {}
        for name, value in mapping("switches", switches).items():
            values[one_of("reading switch", name, known)] = value
            if name in cls.NUMBERS and isinstance(value, str):
                with suppress(ValueError):  # the constructor refuses a text that is no number
                    values[name] = float(value)
        return cls(**values)

    def rules(self) -> dict[str, bool]:
        """Return whether the second option is chosen, by the rule name of each switch."""
        named = {one.name: one.metadata for one in fields(self) if one.metadata.get("rule")}
        return {
            meta["rule"]: getattr(self, name) == meta["options"][1] for name, meta in named.items()
        }

    def changes(self) -> dict[str, Any]:
        """Return the switches that differ from the default."""
        default = asdict(type(self)())
        return {name: value for name, value in asdict(self).items() if value != default[name]}
