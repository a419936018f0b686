# ruff: noqa: E501  (a table with one row per line)
"""What the papers misprint, what they leave out, and what follows for the engines."""

from typing import NamedTuple

from dlsim.theory.steps import html_table


class Erratum(NamedTuple):
    """One place where a paper and the proofs differ.

    Attributes
    ----------
    number : int
        1 to 36.
    severity : {"A", "B", "C"}
        A changes a result or a proof; B is a wrong formula whose meaning is clear; C is
        cosmetic.
    where : str
        Paper and place: M mcdf, I inserted-idle-time, S steady-state, B bricks.
    printed, correct, proof, consequence : str
        What is printed, what it should be, why, and what the engine does.
    keys : tuple of str
        Keys of the statements that decide it.
    """

    number: int
    severity: str
    where: str
    printed: str
    correct: str
    proof: str
    consequence: str
    keys: tuple[str, ...] = ()


class Errata(tuple[Erratum, ...]):
    """All errata, as a tuple with a table for text and notebook."""

    COLUMNS = ("#", "where", "printed", "correct", "proof", "consequence", "statements")

    def rows(self) -> list[tuple[str, ...]]:
        """Return the cells of the table."""
        return [(f"{e.number} {e.severity}", *e[2:7], ", ".join(e.keys)) for e in self]

    def __str__(self) -> str:
        """Return one line per erratum: number, place, the statements that decide it."""
        return "\n".join(f"{row[0]:<5} {row[1]:<34} {row[-1]}" for row in self.rows())

    def _repr_html_(self) -> str:
        """Render as a table; a notebook typesets the formulas."""
        return html_table(self.COLUMNS, self.rows())


_ROWS = r"""
1 | B | M (4.10) | $(n-1)ST$ | $n\,ST$ | line $j$ of (4.7)-(4.9) has $j\,ST$; the printed last line gives $\alpha_n = \beta\alpha_{n-1}$, against (4.11) | derive from the recurrence; (4.12) itself is right
2 | A | M 4.1, before n_min | only $\Delta > 0$ is asked | $\gamma > 0$, that is $\Delta > \sigma C_{ms}$ | $\mathcal{E}(n) = \sigma C_{ms}/(1-\beta^n) > \sigma C_{ms}$ | n_min answers infeasible, never the logarithm of a negative number
3 | A | M 4.2, last paragraph | a smallest integer that satisfies (4.13) exists | it may not: $\mathcal{E}$ has a positive minimum, and two real roots may enclose no integer | convexity and an exact example | infeasible is a normal answer
4 | A | M 4.2, Theorem 5.2, 6.3 | OPR on all $n$ nodes, $0 < \alpha_j$ | $\alpha_n \le 0$ for $n > N^*$: the formula is then no schedule | sign of the last share | switch an_nodes: all (as printed, flagged) or best
5 | C | M 4, notation | $0 < \alpha_j < 1$ | $\alpha_1 = 1$ for $n = 1$ | $\mathcal{B}(1) = 1$ | allow 1
6 | A | M Theorem 5.2 | $(e^k-C_1)/C_2 = C_4-k$ | $= C_4+C_5k$ | substitute $C_1+C_2n = e^k$ | none
7 | A | M Theorem 5.2 | $e^k = C_6-C_7k$, $C_6=C_2C_4$ | $e^k = (C_1+C_2C_4)+\phi k$ | the same; at $\beta=1/2$, $\phi=1/100$ the printed equation has no root $n\ge1$, the minimum lies between 5 and 6 | use the closed form
8 | A | M Theorem 5.2 | $0<\phi<1$, hence $e^k < C_6 < e^{k+1}$ | false step; $e^u-u-1$ rises from 0 without bound and meets $c-1$ once | derivative signs | a finite minimum exists; up to $N^*$ nodes $\mathcal{E}$ does decrease
9 | C | M (4.9), (4.10), (4.13), Theorem 5.2 | $C_{ns}$ | $C_{ps}$ | notation: nothing to prove (perhaps a scanning slip) | none
10 | C | M Lemma 5.2 | $\ge$ | $>$ for $\phi > 0$, and Theorem 5.3 for every $n \ge 1$ | certificate | DC at $n = N^*$ uses $\mathcal{E}(N^*+1)$, a value of the formula only
11 | A | M 6.1 | interval $\bar{\mathcal{E}}/L$ with 1 to 10 tasks per arrival | the offered load is $5.5\,L$ | mean batch 5.5 | parameter batch says which convention; the realised load is printed
12 | B | M 5 | "derivative of W" | forward difference | definition of $DC_i$ | none
13 | A | I Theorem 3, Corollary 1 | Constraint 1 (or 2) suffices | and $\sum p_i < \sigma(\tau+\chi)$, that is $\alpha_n > 0$ | counterexample $\sigma=\tau=\chi=1$, $r=(0,5)$ | test $\alpha_n > 0$ too
14 | A | I 4.4 | Constraint 2 is weaker than Constraint 1 | only where all $\alpha > 0$ | counterexample $r = (0,1,9)$, $\chi=1/10$ | FIDO-I and FIDO-II are nested only with that guard
15 | A | I, reach of Constraint 1 | - | with $\alpha > 0$ it needs $n(n-1)\tau/2 < \tau+\chi$ | sum of the gaps | never holds at $n = 15, 16$ in the baseline
16 | C | I Constraint 2 | $i = 1..n$ | $i = 2..n$ | notation: nothing to prove ($r_0$, $\alpha_0$ do not exist) | none
17 | C | I (1), (2) | $\mathcal{E}(\sigma,n)$ is a completion instant | M's $\mathcal{E}$ is a duration | they differ by the start | two names in code
18 | B | I 5.1 | SystemLoad = $\mathcal{E}/\chi$ | $\lambda\mathcal{E}$ | the second printed formula; the first is 13.59 for every $\lambda$ | generate from $\lambda$
19 | B | I 5.1 | $1/\lambda$ = SystemLoad$/\mathcal{E}$ | $\mathcal{E}/$SystemLoad | the same | the same
20 | B | S 2 | link from $C_{master}$ to $C_{master}$ | to $C_{router}$ | notation: nothing to prove (g enters (2) once per cluster) | none
21 | B | S 3.2 | Equation 2 ensures $\dots \le s_k$ | Equation 1 | dimensions | none
22 | B | S 3.2 | sends $\alpha\delta T_p$ load units | $\alpha T_p$ load units, $\alpha\delta T_p$ bytes | dimensions | the period counts units
23 | C | S 3.2 | $z_{c_j}$ | $\delta_j$ | notation: nothing to prove (left from an older version) | none
24 | B | S appendix | $l^i_j = (Q^b_{k_j}, Q^a_{k_{j+1}})$, $j = 1..|Route|$ | $l^i_{j+1}$, $j = 1..|Route|-1$ | $l_1$ is defined twice, $Q_{k_{|Route|+1}}$ does not exist | corrected indices
25 | B | S appendix | a vertex of degree 0 leaves (7) undefined | one direct link $(C^0, C^i)$ | every route is then a path | the same
26 | B | S appendix, (5) | $\min_k \alpha_k/\pi_k$ with $\pi_i = 0$ | minimum over $\pi_k > 0$: $t\pi_k \le \alpha_k$ | 0/0 otherwise | the program uses $t\pi_k \le \alpha_k$
27 | C | S appendix | max-connect$(l_k)$, "less than n", $I_3$, $\{k,l\}$ | $l_k^{common}$, $\le n$, $I_2$, ordered pairs | notation: nothing to prove (read against the construction) | none
28 | B | S heuristic G, step 5 | alloc from the work of others placed elsewhere | the formula is 0, and G loops, where no remote cluster can be reached | exact example | switches local_amount and stuck
29 | B | S heuristic LPRR, steps 2 to 5 | until all $\beta$ are assigned, choose $\tilde\beta \ne 0$ | stop when the rest are 0 and set them to 0 | an empty choice | stop rule
30 | - | S heuristic LPRR | rounding up might be infeasible | always feasible for integer max-connect | $\tilde\beta \le k$ integer gives $\lceil\tilde\beta\rceil \le k$ | floor a real max-connect first
31 | B | B (7) | $N_{fallbacks} \le N_{max}$ | $<$ | with $N_{max} = 0$ the printed rule allows one | switch fallback_strict
32 | B | B 4.1, Table 1 | 1.5 to 1080 Gops take 5 to 60 minutes at 300 Mops/s | 1.5 Gops take 5 seconds; 5 minutes are 90 Gops | division | both as a parameter
33 | C | B (4) | the rule of the smallest Diff | the slowest server in time, otherwise the fastest | signs of differences and enumeration | a property to test
34 | A | M 5 | following the rules minimises the total cost | false for the order rule | exact counterexample: 32 against 30 | only rule 1 (n_min) is Theorem 5.3
35 | B | M 2 | monotonicity fails "when communication costs are considered" | it holds for $C_{ms} > 0$ and $ST = 0$ | Theorem 5.1 | none
36 | B | M Theorem 5.2 | "with setup cost" | needs $ST > 0$: with $ST = 0$, $SC > 0$ $\mathcal{E}$ strictly decreases | 25, 55/3, 115/7, 47/3 at $SC = 5$ | all nodes are fastest where $ST = 0$
"""


def _rows() -> Errata:
    cells = [[cell.strip() for cell in line.split(" | ")] for line in _ROWS.strip().splitlines()]
    return Errata(Erratum(int(c[0]), c[1], c[2], c[3], c[4], c[5], c[6]) for c in cells)


#: The 36 rows, without the keys of statements.
ERRATA = _rows()
