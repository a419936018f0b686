"""Every statement is proved, and no plausible error in its place is."""

import csv
import itertools
from dataclasses import replace

import networkx as nx
import pytest
import sympy as sp

from dlsim import theory
from dlsim.errors import InputError
from dlsim.files import shared_file
from dlsim.steady.independent_set import independent_set_platform
from dlsim.theory import ProofError, symbols
from dlsim.theory.relations import Iff, eq, ge, gt, le, lt
from dlsim.theory.statements import STATUSES
from dlsim.theory.steps import Line
from tests.helpers.scale import TRIES_ALL
from tests.helpers.theory_points import COMMON, WITNESSES, holds_at, point_of

#: What each statement is found to be, by the papers alone.
STATUS = {
    **dict.fromkeys(
        "4.5 4.1-4.4 E(n) 4.6g 4.11r 4.12 4.12fin 4.13->4.6 5.1 5.2a ajmono L5.1 L5.2 5.3 OPR "
        "1.3-4 1.s 1.T2 S.L1size S.LPR S.bound B.1-3 B.4 B.4late B.5 B.6".split(),
        "proved",
    ),
    **dict.fromkeys(
        "4.12G disc 5.order 1.C1n 1.DLTcex 6.second 6.rec 6.closed 6.EhatE 6.safe opt.run opt.blk "
        "opt.fill opt.order Y.price Y.sum Y.floor".split(),
        "ours",
    ),
    **dict.fromkeys(
        "n_min 4.6inf 4.7-4.10 4.13 last 5.2 5.2ST 5.2c N* M.n+1 1.pos 1.opt 1.C1C2 1.T3 1.C2 "
        "SysLoad S.L1 S.L1NP S.LPRR S.G5 S.Tp".split(),
        "corrected",
    ),
    **dict.fromkeys("1.1 B.7".split(), "notation"),
    **dict.fromkeys("5.2b 5.sum 1.T3cex 1.C1C2cex".split(), "refuted"),
}
STATEMENTS = {one.key: one for one in theory.statements()}
ERRATA = theory.errata()


@pytest.fixture(scope="module")
def derived():
    """Every statement, with the lines of its derivation found once for the whole file."""
    lines = {key: one.derive(*one.goals) for key, one in STATEMENTS.items()}
    return {
        key: replace(one, derive=lambda *_, key=key: lines[key]) for key, one in STATEMENTS.items()
    }


@pytest.fixture(scope="module")
def proofs(derived):
    return {key: one.prove() for key, one in derived.items()}


def test_statuses(proofs):
    assert {key: proof.statement.status for key, proof in proofs.items()} == STATUS
    assert set(STATUS.values()) == set(STATUSES)


def test_no_hypothesis_can_be_left_out(derived):
    for key, one in derived.items():
        for left_out in one.hypotheses:
            assert refuses(one, one.goals, set(one.hypotheses) - {left_out}), (key, left_out)


def test_hypotheses_and_goals_hold_together_at_a_point():
    """Of three nodes and with set-up costs."""
    with_hypotheses = [one for one in STATEMENTS.values() if one.hypotheses]
    assert {one.key for one in with_hypotheses} == set(WITNESSES)
    for one in with_hypotheses:
        point = {**COMMON, **WITNESSES[one.key]}
        assert (point["n"] >= 3, point["phi"] > 0) == (True, True), one.key
        for claim in (*one.hypotheses, *one.goals):
            assert holds_at(claim, point_of(one)), (one.key, claim)


# ------------------------------------------------------------------ what is not so


def refuses(one, goals, allowed=None):
    """Whether other goals, or fewer hypotheses, are refused."""
    try:
        one.prove(goals, allowed)
    except ProofError:
        return True
    return False


n, k, j, beta, phi, sigma, w, Delta, x = (
    getattr(symbols, name) for name in "n k j beta phi sigma w Delta x".split()
)
G, B, share, E = symbols.geometric, symbols.first_share, symbols.share, symbols.time_formula
_LEAST = sp.log(1 - sigma * symbols.Cms / Delta) / sp.log(beta)
_NEXT = eq(symbols.alpha(n + 1), beta * symbols.alpha(n) - phi)
#: Plausible errors: off by one, a sign, a missing factor, real for whole, an empty case.
PLAUSIBLE = [
    ("4.12", 0, eq(symbols.alpha(1), B(n) + phi / (1 - beta**n))),
    ("4.12", 0, eq(symbols.alpha(1), B(n + 1))),
    ("4.12fin", 0, eq(STATEMENTS["4.12fin"].goals[0].left, E(n) - symbols.ST)),
    ("4.7-4.10", 1, Iff(STATEMENTS["4.7-4.10"].goals[1].first, _NEXT)),
    ("n_min", 0, Iff(le(E(n, 0, 0), Delta), ge(n, _LEAST))),
    ("n_min", 0, Iff(le(E(n, 0, 0), Delta), ge(n, sp.floor(_LEAST)))),
    ("n_min", 0, Iff(lt(E(n, 0, 0), Delta), ge(n, sp.ceiling(_LEAST)))),
    ("n_min", 1, ge(sp.ceiling(_LEAST), 2)),
    ("4.6inf", 0, gt(E(n, 0, 0), sigma * w)),
    ("5.1", 2, gt(E(n, 0), E(n + 1))),
    ("5.1", 2, gt(E(n), E(n + 1))),
    ("5.1", 2, gt(E(n, 0, 0), E(n + 1, 0, 0) + phi)),
    ("5.2", 0, gt(E(n + 1), E(n))),
    ("5.2a", 0, eq(sp.diff(E(x), x), sigma * w * phi / (1 - beta**x) ** 2)),
    ("disc", 1, Iff(gt(B(n), B(n + 1)), gt(share(n, B(n)), 0))),
    ("disc", 1, Iff(ge(B(n), B(n + 1)), gt(share(n + 1, B(n + 1)), 0))),
    ("last", 2, ge(STATEMENTS["last"].goals[2].left, n * (1 - beta) ** 2 / beta)),
    ("L5.1", 0, gt(G(k), (k + 1) * beta**k)),
    ("L5.1", 0, gt(G(k), k * beta ** (k - 1))),
    ("5.3", 0, gt(E(k + 1), E(k))),
    ("OPR", 0, ge(STATEMENTS["OPR"].goals[0].left, E(n) + symbols.SC)),
    ("1.opt", 0, ge(STATEMENTS["1.opt"].goals[0].left, symbols.r(n))),
    ("1.1", 1, eq(STATEMENTS["1.1"].goals[1].left, E(n, 0, 0))),
    ("S.L1size", 2, le(STATEMENTS["S.L1size"].goals[2].left, n**2)),
    ("S.L1NP", 2, le(STATEMENTS["S.L1NP"].goals[2].left, STATEMENTS["S.L1NP"].goals[2].right - 1)),
    ("B.7", 0, ge(STATEMENTS["B.7"].goals[0].left - 1, STATEMENTS["B.7"].goals[0].right)),
    ("Y.floor", 0, eq(STATEMENTS["Y.floor"].goals[0].left, sigma * w + symbols.ST + symbols.SC)),
]


def test_plausible_errors_are_refused():
    for key, place, wrong in PLAUSIBLE:
        one = STATEMENTS[key]
        goals = [*one.goals[:place], wrong, *one.goals[place + 1 :]]
        assert refuses(one, goals), f"{key}: {wrong} was proved"


# ------------------------------------------------------------------ points, also at the boundary

VALUES = {
    symbols.n: (1, 2, 5), symbols.j: (1, 3), symbols.k: (1, 4), symbols.m: (1, 2),
    symbols.beta: ("1/9", "1/2", "8/9"), symbols.phi: (0, "1/100", 3), symbols.SC: (0, 2),
    symbols.sigma: (1,), symbols.w: (2,), symbols.Delta: ("1/2", 2, 9), symbols.x: (1, "7/2"),
    symbols.alpha_1: ("1/10", 1),
}  # fmt: skip


def is_plain(claim):
    """Whether a claim is about symbols of `VALUES` alone, so that it can be put in anywhere."""
    functions = set().union(*(side.atoms(sp.core.function.AppliedUndef) for side in claim.sides))
    return claim.free_symbols <= set(VALUES) and not functions


def test_goals_hold_at_points_of_the_boundary():
    for one in STATEMENTS.values():
        for goal in one.goals:
            if goal.free_symbols and all(map(is_plain, (goal, *one.hypotheses))):
                holding = list(points_of(one, goal))
                assert holding, one.key
                for point in holding:
                    assert holds_at(goal, point), (one.key, goal, point)


def points_of(one, goal):
    """Some points at which the hypotheses of a statement hold."""
    free = sorted(goal.free_symbols.union(*(h.free_symbols for h in one.hypotheses)), key=str)
    points = list(itertools.product(*(VALUES[symbol] for symbol in free)))
    for values in points[:: 3 if TRIES_ALL else 5 if len(points) < 200 else 31]:
        point = dict(zip(free, map(sp.Rational, values), strict=True))
        if all(holds_at(claim, point) for claim in one.hypotheses):
            yield point


def test_the_remodel_books_what_6_second_says_where_sending_is_cheap():
    """T by SymPy's limit of the remodel's own formula, on the three nodes of the witness."""
    load, tau, time = 12, sp.Symbol("tau", positive=True), 4
    each = [sp.Rational(time, time + wait) for wait in (2, 1, 0)]
    product = sp.prod([one / (tau + one) for one in each])
    assert sp.limit(load * tau / (1 - product), tau, 0) == WITNESSES["6.second"]["T"]


# ------------------------------------------------------------------ errata, records, messages


def test_every_erratum_is_decided_by_a_statement():
    numbers = [one.number for one in ERRATA]
    assert numbers == list(range(1, len(ERRATA) + 1))
    assert all(one.keys for one in ERRATA)
    assert {one.severity for one in ERRATA} == {"A", "B", "C", "-"}
    assert {number for one in STATEMENTS.values() for number in one.errata} == set(numbers)


#: The numbers of all numbered equations, read off the papers.
PRINTED = {
    "M": [*(f"4.{number}" for number in range(1, 14)), "5.14", "5.15", "5.16"],
    "I": list("1234"),
    "S": [*"12345", *(f"6{letter}" for letter in "abcdefg"), "7"],
    "B": list("1234567"),
}


def test_every_numbered_equation_has_a_statement_or_a_reason():
    with shared_file("data/equations.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    found = {paper: [row["equation"] for row in rows if row["paper"] == paper] for paper in PRINTED}
    assert found == PRINTED
    assert len(rows) == sum(map(len, PRINTED.values()))
    for row in rows:
        keys = row["statements"].split()
        assert bool(keys) != bool(row["reason"]), row
        assert all(STATEMENTS[key].place[0] == row["paper"] for key in keys), row


def test_what_is_weaker_than_print_says_so(proofs):
    weaker = {key for key, one in STATEMENTS.items() if one.weaker}
    assert weaker == {"S.L1NP"}
    proof, said = proofs["S.L1NP"], "weaker than print: that a rational program"
    summary = theory.prove(["S.L1"]).summary().splitlines()
    assert [line.endswith("(weaker than print)") for line in summary] == [False, False, True, False]
    for text in (str(proof), proof._repr_markdown_(), theory.statements()._repr_markdown_()):
        assert said in text


def test_what_is_not_proved_as_printed_says_what_is_wrong():
    for one in STATEMENTS.values():
        assert bool(one.gap) == (one.status in ("corrected", "notation", "refuted")), one.key
        assert one.words.endswith("."), one.key


def test_lines_say_from_which_lines_times_what(proofs):
    text = str(proofs["5.3"])
    assert "times sigma*w" in text
    for proof in proofs.values():
        assert all(isinstance(line, Line) and line.why for line in proof.lines), proof.statement.key
        markdown = proof._repr_markdown_()
        assert markdown.count("\n") >= len(proof.lines)
        assert markdown.count("$") % 2 == 0


def test_tables_print_one_line_per_record(proofs):
    assert len(str(theory.statements()).splitlines()) == len(STATUS)
    assert len(theory.statements()._repr_markdown_().splitlines()) == len(STATUS) + 2
    assert len(str(ERRATA).splitlines()) == len(ERRATA)
    assert len(ERRATA._repr_markdown_().splitlines()) == len(ERRATA) + 2
    assert theory.prove("5.1").summary().endswith("1 statement: 1 proved as printed")


def test_a_key_or_its_beginning():
    assert list(theory.prove("5.2").statuses) == ["5.2a", "5.2b", "5.2", "5.2ST", "5.2c"]
    with pytest.raises(InputError, match=r"did you mean 5\.1"):
        theory.prove("5.1a")
    for wrong in ("nope", ""):
        with pytest.raises(InputError):
            theory.statements([wrong])


def test_a_statement_refuses_what_its_derivation_does_not_need():
    one = STATEMENTS["5.1"]
    with pytest.raises(ProofError, match="not needed"):
        one.prove(allowed=[gt(Delta, 0)])


# ------------------------------------------------------------------ statements against simulations


def test_theorem_1_fails_at_the_refuting_instance():
    """Without the last hypothesis of 1.opt a schedule ends before e: work 2, r = (0, 5)."""
    one = STATEMENTS["1.opt"]
    given = {"n": 2, "j": 1, "sigma": 1, "w": 2, "beta": sp.Rational(1, 2), "e'": 2}
    node = {"r": lambda index: 5 * (index - 1), "x": lambda index: sp.Integer(index == 1)}
    point = point_of(one, given | node)
    *others, last_share = one.hypotheses
    assert all(holds_at(claim, point) for claim in others)
    assert not holds_at(last_share, point)
    assert not holds_at(one.goals[0], point)


def test_the_size_of_the_reduction_is_that_of_the_platform_that_is_built():
    """S.L1size, for every graph of up to five vertices."""
    for graph in nx.graph_atlas_g():
        vertices, edges = len(graph), graph.number_of_edges()
        if 1 <= vertices <= 5:
            platform = independent_set_platform(graph)
            assert len(platform.speed) == vertices + 1
            assert len(platform.links) == 3 * edges + vertices
            assert sum(map(len, platform.routes.values())) == 4 * edges + vertices


def agrees_at(key, given):
    """Whether the hypotheses of a statement hold at a point, and with them all goals."""
    one = STATEMENTS[key]
    point = point_of(one, given)
    holds = all(holds_at(claim, point) for claim in one.hypotheses)
    return holds and all(holds_at(goal, point) for goal in one.goals)


def smallest_difference(times, target):
    """The number of the server that paper B's rule (4) takes: in time and nearest, else nearest."""
    numbers = [place for place, time in enumerate(times, start=1) if time <= target]
    numbers = numbers or range(1, len(times) + 1)
    return min(numbers, key=lambda place: abs(target - times[place - 1]))


def test_servers_by_rule_4():
    """B.4 and B.4late, by the rule as printed, for servers in any order."""
    for times in ((3, 1, 2), (2, 2, 2), (1, 4, 4), (5, 3, 1)):
        more = (*times, max(times) + 1)
        target, wider, least = max(times), max(more), min(times)
        given = {"T": lambda place, more=more: sp.Integer(more[int(place) - 1]), "n": 3, "m": 1}
        late = given | {"T_target": least, "c": smallest_difference(times, least - 0.5)}
        chosen = {"c": smallest_difference(times, target), "c'": smallest_difference(more, wider)}
        assert agrees_at("B.4late", late), times
        assert agrees_at("B.4", given | chosen | {"T_target": target, "T_target'": wider}), times


def test_a_request_that_is_late_everywhere_falls_back_as_often_as_it_may():
    """B.7: N_max times are allowed by the strict sign, and no more."""
    for most in (1, 2, 5):
        given = {"N_fallbacks": sp.Integer, "N_max": most}
        assert agrees_at("B.7", given | {"F": most})
        assert not agrees_at("B.7", given | {"F": most + 1})


@pytest.mark.parametrize(("nodes", "release"), [(1, 0), (2, 7), (4, 3)])
def test_the_completion_of_nodes_that_are_free_together(nodes, release):
    """1.1: shares by paper M's recurrence, sent one after another; tau = 1, chi = 2, sigma = 3."""
    weights = [sp.Rational(2, 3) ** index for index in range(nodes)]
    shares = [weight / sum(weights) for weight in weights]
    starts = [sp.Integer(release) + 3 * sum(shares[:index]) for index in range(nodes)]
    end = starts[-1] + 9 * shares[-1]
    given = {
        "n": nodes, "r": lambda _: sp.Integer(release), "beta": sp.Rational(2, 3), "w": 3, "e": end,
        "alpha": lambda node: shares[int(node) - 1], "s": lambda node: starts[int(node) - 1],
    }  # fmt: skip
    assert agrees_at("1.1", given)
    assert not agrees_at("1.1", given | {"e": end + 1})
