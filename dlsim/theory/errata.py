"""Where the papers and the derivations differ: the rows of data/errata.toml."""

from dataclasses import dataclass

from dlsim.files import read_toml, shared_file
from dlsim.theory.statements import RecordList, markdown_table, statements


@dataclass(frozen=True)
class Erratum:
    """One misprint, gap or error, in texts with LaTeX.

    Attributes
    ----------
    number : int
        From 1 on.
    severity : {"A", "B", "C", "-"}
        A changes a result or a proof; B is a wrong formula whose meaning is clear; C is cosmetic;
        "-" adds what is not printed.
    where, printed, correct, proof, consequence : str
        Paper (M, I, S, B) and place; what is printed; what is right; why; what the engine does.
    keys : tuple of str
        The statements that decide it.
    """

    number: int
    severity: str
    where: str
    printed: str
    correct: str
    proof: str
    consequence: str
    keys: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.number:2d} {self.severity}  {self.where:<34} {', '.join(self.keys)}"


class Errata(RecordList[Erratum]):
    """Errata; in a notebook a table."""

    def _repr_markdown_(self) -> str:
        texts = ("where", "printed", "correct", "proof", "consequence")
        rows = []
        for one in self:
            cells = [getattr(one, name).replace("|", r"\vert ") for name in texts]
            rows.append([f"{one.number} {one.severity}", *cells, ", ".join(one.keys)])
        return markdown_table(["#", *texts, "statements"], rows)


def errata() -> Errata:
    """Return all errata, each with the keys of the statements that decide it."""
    found = statements()
    return Errata(
        Erratum(**row, keys=tuple(one.key for one in found if row["number"] in one.errata))
        for row in read_toml(shared_file("data/errata.toml"))["erratum"]
    )
