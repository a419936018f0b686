"""SymPy statements about the papers: proved, corrected or refuted.

`statements` lists them, `prove` runs the proofs of a key or a prefix and returns every
checked step, `errata` tells what the papers misprint, `report` is the same as a table of
text. The formulas are derived anew here; no engine is imported.
"""

from dlsim.theory.book import Errata, Erratum, Listing, Proven, Statement, errata, statements
from dlsim.theory.derivation import Derivation, Step
from dlsim.theory.run import main, prove, report
from dlsim.theory.zero import ProofError, UndecidedError, is_zero

__all__ = [
    "Derivation", "Errata", "Erratum", "Listing", "ProofError", "Proven", "Statement", "Step",
    "UndecidedError", "errata", "is_zero", "main", "prove", "report", "statements",
]  # fmt: skip
