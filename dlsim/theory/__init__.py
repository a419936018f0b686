"""The papers' formulas and theorems, derived anew with SymPy: proved, corrected or refuted.

`statements` lists them, `prove` runs the derivations of a key or of the beginning of one and
returns their lines, `errata` lists what the papers misprint. No engine is imported.

``data/statements.csv`` lists where each statement is printed and what was found. The steps of a
derivation are in `dlsim.theory.steps`: each is a function over SymPy expressions that returns the
line to print, or raises `ProofError`.
"""

from dlsim.theory.algebra import is_zero, sign
from dlsim.theory.errata import Errata, Erratum, errata
from dlsim.theory.relations import ProofError
from dlsim.theory.statements import (
    Derivation,
    Proof,
    Proofs,
    Statement,
    Statements,
    prove,
    statements,
)

__all__ = [
    "Derivation",
    "Errata",
    "Erratum",
    "Proof",
    "ProofError",
    "Proofs",
    "Statement",
    "Statements",
    "errata",
    "is_zero",
    "prove",
    "sign",
    "statements",
]
