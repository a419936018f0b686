"""The base of every engine's Reading: how the ambiguous sentences of a paper are understood."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields
from typing import Any, ClassVar, Self

from dlsim.user_code import resolve_user_code
from dlsim.validate import mapping, number, one_of


def switch(*options: Any, rule: str = "", papers: str = "") -> Any:
    """Return the field of a switch with these options, the default first.

    An engine asks by the name `rule` whether the second one is chosen; the notebooks of the
    `papers`, a letter each, map their claims against it.
    """
    return field(default=options[0], metadata={"options": options, "rule": rule, "papers": papers})


@dataclass(frozen=True)
class BaseReading:
    """Switches with options, the default first; an engine's own are the fields of a subclass."""

    #: Options by switch that is none of `switch`; limits of `dlsim.validate.number` by switch that
    #: is a number; switches that take a function, too.
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
        """Return every `switch`, or those of a paper, with its options, the default first."""
        own = {one.name: one.metadata for one in fields(cls) if one.metadata}
        return {name: one["options"] for name, one in own.items() if paper in one["papers"]}

    @classmethod
    def of(cls, switches: Mapping[str, Any]) -> Self:
        """Build a reading from the switches that differ; a number may be a text."""
        known, values = [one.name for one in fields(cls)], {}
        for name, value in mapping("switches", switches).items():
            values[one_of("reading switch", name, known)] = value
            if name in cls.NUMBERS and isinstance(value, str):
                with suppress(ValueError):  # what is no number is refused by name
                    values[name] = float(value)
        return cls(**values)

    def rules(self) -> dict[str, bool]:
        """Return by its rule whether the second option of a switch is chosen."""
        named = {one.name: one.metadata for one in fields(self) if one.metadata.get("rule")}
        return {
            meta["rule"]: getattr(self, name) == meta["options"][1] for name, meta in named.items()
        }

    def changes(self) -> dict[str, Any]:
        """Return the switches that differ from the default."""
        usual = asdict(type(self)())
        return {name: value for name, value in asdict(self).items() if value != usual[name]}
