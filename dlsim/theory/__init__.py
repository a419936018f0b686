"""SymPy statements about the papers: proved, corrected, refuted or argued."""

from dlsim.theory import paper_m
