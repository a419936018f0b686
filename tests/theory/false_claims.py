"""Tables of false statements, and of the calls that a careless checker would prove them by.

A remark says why a row is false: a point at which it does not hold or has no value, or what is
misused. A call that may be taken, because it says so, names the false hypothesis that it rests on.
"""

from typing import NamedTuple

# ------------------------------------------------------------------ what has no value at some point

WITHOUT_VALUE = """
    1/z  # z = 0
    1/a  # a = 0
    1/(p - q)  # p = q
    1/(n - 1)  # n = 1
    n/(n - 1) - 1/(n - 1)  # n = 1
    (a**2 - b**2)/(a - b)  # a = b
    raw(Mul, z, 1/z)  # z = 0
    raw(Mul, 0, 1/z)  # z = 0
    raw(Mul, z, raw(Pow, z, -1))  # z = 0
    raw(Pow, 0, -1)
    raw(Mul, 0, raw(Pow, 0, -1))
    log(z)  # z = 0
    log(a)  # a = -1
    raw(log, 0)
    log(a**2)  # a = 0
    sqrt(-p)
    raw(Pow, -1, HALF)
    a**p  # a = -1, p = 1/2
    z**a  # z = 0, a = -1
    oo
    raw(Add, oo, a)
    zoo
    nan
    I
    anything  # it need not be real
    infinite  # it need not be finite
    Sum(1/N, (N, 0, n))  # N = 0
    Sum(1/k, (k, 0, n))  # k is positive
    Sum(1/(k - 3), (k, 1, n))  # k = 3
    Sum(log(k - 1), (k, 1, n))  # k = 1
    Sum(sqrt(2 - k), (k, 1, n))  # k = 3
    Sum(1, (k, 1, n - 5))  # -4 terms
    Sum(r(k), (k, n, 1))  # n = 3
    Sum(r(k), (k, 1, p))  # p = 1/2
    Sum(r(k), (k, HALF, 3))
    Sum(r(k), (k, 1, oo))
    Sum(r(k), (k, 1, ceiling(1/z)))  # z = 0
    Sum(Sum(r(m), (m, 1, k - 5)), (k, 1, n))  # k = 1
    Sum(1, (Symbol("e", even=True), 1, n))  # 1 is not even
    at(1/p, {p: 0})
    at(1/p, {p: z})  # z = 0
    at(log(p), {p: -1})
    at(raw(Add, 1/p, -1/p), {p: 0})
    at(1/(p - q), {p: q})
    Derivative(Abs(a), a)  # a = 0
    Derivative(Max(a, 0), a)  # a = 0
    at(Derivative(Max(a, 0), a), {a: 0})
    Derivative(Max(a, 0)**2, a)/a  # a = 0
    Derivative(floor(a), a)  # a = 1
    at(Derivative(ceiling(a), a), {a: 1})
    Derivative(f(a), a)  # f may have none
    at(Derivative(f(a), a), {a: 0})
    Derivative(sqrt(z), z)  # z = 0
    Derivative(Sum(1, (k, 1, n)), n)  # n is whole
    Derivative(n**2, n)  # n is whole
    Derivative(Max(a, 0)**2, a, 2)  # a = 0
    floor(1/z)  # z = 0
    ceiling(log(z))  # z = 0
    Max(1/z, 1)  # z = 0
    raw(Min, sqrt(a), 1)  # a = -1
    f(1/z)  # z = 0
    f(I)
    Piecewise((1, a > 0))  # a = 0
    Product(1/(k - 3), (k, 1, n))  # k = 3
    Limit(1/a, a, 0)
    tan(a)  # a = pi/2
    python(lambda value: 1/(value - 1))
    python(lambda _: I)
    python(lambda _: float("nan"))
    python(lambda _: None)
    python(lambda value: value.missing)
    exact_function("g", lambda value: 1)(n)  # Python computes with numbers only
"""
#: Calls that would show something of `u`.
OF_U = """
    identity(eq(u, u))
    positive(gt(u + 1, u))
    show(eq(u, u))
    compute(ge(u, u))
    iff(Iff(ge(u, 0), ge(2*u, 0)), 2)
    solves(eq(p*b, p*u), b, u)
    logarithm(gt(1 + raw(Pow, u, 2), HALF))
    exponential(raw(exp, raw(Pow, u, 2)))
    extreme(ge(raw(Max, u, b), u))
    round_up(n, u)
    round_up(raw(floor, u), p)
    rounding(raw(ceiling, u))
    squeeze(eq(u, u), zero, zero)
    sharpen(ge(raw(floor, u), raw(floor, u)), surely)
    absurd(ge(u, u), assume(lt(u, u)))
    discharge(assume(ge(u, u)), zero)
    substitute(positive(gt(b + 1, b)), {b: u})
    induction(eq(u, u), m, identity(eq(0, 0)), identity(eq(0, 0)))
    show_inductively(ge(u, u), m)
    generalise(surely, m, u, u)
    take(show(Every(gt(m, 0), m, 1, n)), u, [surely])
    add_up(show(Every(gt(1, 0), m, 1, n)), 1, u, [surely])
    add_up(show(Every(ge(0, 0), m, 1, n)), weight=u)
    shows(eq(1, 1), eq(u, u))
"""

# ------------------------------------------------------------------ false equations, inequalities

FALSE_EQUATIONS = """
    sqrt(a**2) = a  # a = -1
    log(1 + a**2) = 2*log(1 + a)  # a = -1
    Abs(a) = a  # a = -1
    floor(a + b) = floor(a) + floor(b)  # a = b = 1/2
    ceiling(a) = floor(a) + 1  # a = 0
    floor(a) = a  # a = 1/2
    floor(n/2) = n/2  # n = 1
    Max(a, b) = a  # b = a + 1
    Integer(0)**z = 0  # z = 0
    (-1)**(n + 1) = (-1)**n
    beta**n = beta  # n = 2
    (p + q)**a = p**a + q**a  # a = 2
    log(p + q) = log(p) + log(q)  # p = q = 1
    Piecewise((1, a >= 0), (2, True)) = Piecewise((1, a > 0), (2, True))  # a = 0
    r(0) = 0  # r(0) = 1
    f(a) = f(-a)  # f(a) = a
    n = Symbol("n", real=True)
    beta = Symbol("beta", positive=True)
    p = Dummy("p", positive=True)
    total(r, n + 1) = total(r, n)  # r(n) = 1
    total(r, n, 0) = total(r, n)  # r(0) = 1
    total(r, n) = n*r(1)  # r(n) = n
    total(lambda h: h**2, n) = total(lambda h: h, n)**2  # n = 2
    total(lambda h: h*i, n) = total(lambda h: h*h, n)  # i is no index
    Sum(k*prime, (k, 1, n)) = Sum(k*k, (k, 1, n))
    total(lambda h: total(lambda e: r(h)*r(e), n), n) = n*total(lambda h: r(h)**2, n)
    Sum(Abs(whole), (whole, -n, 0)) = Sum(whole, (whole, -n, 0))
    Sum(Max(whole, 1), (whole, -n, 0)) = Sum(whole, (whole, -n, 0))
    Sum(1, (k, 1, n - 5)) = n - 5  # -4 terms
    Sum(k, (k, 1, n - 5)) = (n - 5)*(n - 4)/2  # -4 terms
    Sum(1, (k, n, 1)) = 2 - n  # n = 3
    Sum(1, (k, m, n)) = n - m + 1  # m = n + 2
    total(lambda h: h, n) = n*(n + 1)/2 + 1
    total(lambda h: h, n) = n**2  # n = 2
    Sum(k, (k, 1, N)) = N*(N + 1)/2 + 1
    Sum(r(k), (k, 1, m)) + Sum(r(k), (k, m + 1, n)) = Sum(r(k), (k, 1, n))  # m = n + 1
    Sum(1, (k, 3, 1)) = -1
    Sum(1, (k, 1, p)) = p  # p = 1/2
    Sum(1, (k, 1, n/2)) = n/2  # n = 1
    Sum(Max(k, 1), (k, 0, n)) = Sum(k, (k, 0, n))  # k cannot be 0
    Sum(Sum(1, (m, 1, k - 5)), (k, 1, n)) = Sum(k - 5, (k, 1, n))  # k = 1
    Product(r(k), (k, 1, n)) = r(1)**n  # r(n) = n
    at(Sum(k*a, (k, 1, n)), {a: k}) = Sum(k*k, (k, 1, n))  # k is bound
    at(raw(Max, p, 0), {p: -1}) = -1
    at(raw(Abs, p), {p: -1}) = -1
    at(raw(ceiling, n), {n: HALF}) = HALF
    at(raw(Pow, p**2, HALF), {p: -1}) = -1
    at(a - b, {a: b, b: a}) = a - b
    at(Derivative(a*b, a), {b: a}) = 2*a  # d/da (a b) is b
    at(Derivative(Abs(a), a), {a: 0}) = 0
    at(Derivative(Max(a, 0), a), {a: 0}) = HALF
    at(Derivative(Min(a, 0), a), {a: 0}) = 1
    Derivative(floor(a), a) = 0  # a = 1
    at(Derivative(ceiling(a), a), {a: 1}) = 0
    Derivative(n**2, n) = n**2 - (n - 1)**2
    Derivative(p**p, p) = p*p**(p - 1)
    Derivative(f(a), a) = 0  # f(a) = a
    Derivative(f(a*b), a) = b  # f(a) = 2 a
    Derivative(Max(a, b), a, b) = 0  # a = b
    1 = 2
    sqrt(2) = Rational(99, 70)
    sqrt(2) + sqrt(3) = sqrt(10)
    exp(pi*sqrt(163)) = 640320**3 + 744  # Ramanujan's, by less than 10^-12
    Integer(10)**40 + 1 = Integer(10)**40
    Float(0.1) + Float(0.2) = Float(0.3)
    True = 1
    "1" = 1
    FiniteSet(1) = 1
    order[0]*order[1] = order[1]*order[0]
    Limit(Limit(p/(p + q), p, 0), q, 0) = Limit(Limit(p/(p + q), q, 0), p, 0)
    (a**2 - b**2)/(a - b) = a + b  # a = b
    n/(n - 1) - 1/(n - 1) = 1  # n = 1
    raw(Mul, z, 1/z) = 1  # z = 0
    raw(Mul, 0, 1/z) = 0  # z = 0
    sqrt(a*b) = sqrt(a)*sqrt(b)  # a = b = -1
    raw(Pow, raw(Pow, a, 2), HALF) = a  # a = -1
    raw(Pow, raw(Pow, -1, 2), HALF) = -1
    raw(log, exp(I*p)) = I*p  # p = 2 pi
"""
OF_EQUATIONS = """
    identity(eq(left, right))
    show(eq(left, right))
    compute(eq(left, right))
    show_inductively(eq(left, right), n)
    iff(Iff(eq(left, 0), eq(right, 0)))
    shows(eq(0, 0), eq(left, right))
    is_zero(left, right)
"""
FALSE_INEQUALITIES = """
    a**2 > 0  # a = 0
    z > 0  # z = 0
    n > 1  # n = 1
    1 > beta**N  # N = 0
    2*beta > 1
    2**n > 2  # n = 1
    2**n > n**2  # n = 2
    n**2 > n  # n = 1
    n + m > 2  # n = m = 1
    2 > n  # n = 2
    n > geometric(n)  # n = 1
    n + 1 > geometric(n + 2)  # beta is nearly 1
    p > q  # p = q
    (a - b)**3 + 1 > 0  # a = b - 1
    a*b > 0  # a = 0
    a**2 - a + Rational(1, 4) > 0  # a = 1/2
    1/(1 + a**2) > 1  # a = 0
    ceiling(a) > a  # a = 0
    floor(p) > 0  # p = 1/2
    Max(a, b) > a  # a = b
    Max(a, 0) > 0  # a = 0
    Min(p, q) > 1  # p = 1
    a > Min(a, b)  # a = b
    Abs(a) > 0  # a = 0
    Piecewise((1, a > 0), (0, True)) > 0  # a = 0
    r(n) > 0  # r(n) = 0
    total(r, n) > 0  # r(n) = 0
    total(g, N) > 0  # N = 0
    total(lambda _: 1, n - 1) > 0  # n = 1
    Max(total(g, N), 0) > 0  # N = 0
    ceiling(total(g, N)) > 0  # N = 0
    2**total(g, N) > 1  # N = 0
    0 > Sum(1, (k, 1, n - 5)) + 1  # -4 terms
    1 > 1
    a > a
    sqrt(2) > Rational(99, 70)
    exp(pi*sqrt(163)) > 640320**3 + 744  # Ramanujan's is smaller
    1 + Rational(1, 10**60) > raw(Add, 1, Rational(1, 10**60))
    0 > exp(-10**4)
    oo + 1 > oo
    infinite + 1 > infinite
    anything + 1 > anything
    I + 1 > I
    nan > 0
    1/z > -1  # z = 0
    p/z > 0  # z = 0
    1/a**2 > 0  # a = 0
    Derivative(Max(a, 0), a) > -1  # a = 0
    Derivative(p**2, p) > 2*p
    at(p, {p: -1}) > 0
    at(n, {n: HALF}) > HALF
    1 > at(beta, {beta: 2})
    Float(0.3) > Float(0.1) + Float(0.2)
"""
OF_INEQUALITIES = """
    positive(gt(left, right))
    show(gt(left, right))
    compute(gt(left, right))
    extreme(gt(left, right))
    show_inductively(gt(left, right), n)
    is_above(left, right)
"""

# ------------------------------------------------------------------ factors and functions

NEGATIVE = """
    -p
    beta - 1
    log(beta)
    Integer(-1)
"""
MAY_BE_ZERO = """
    c
    z
    a - b
    n - 1
    Max(c, 0)
    floor(p)
    r(1)
    total(g, N)
    total(lambda _: 1, n - 1)
    c**2
    c**3
    1 - p
    Integer(0)
    1 - beta**N
    log(p)
    ceiling(c)
    (-1)**n  # it is never 0, but no more is known of it
    2 - 2**n
    sqrt(z)
"""
OF_FACTORS = """
    positive(gt(factor*a, factor*b), {more: factor})
    positive(gt(a/factor, b/factor), {more: 1/factor})
    show(gt(factor*a, factor*b), {more: factor})
    iff(Iff(gt(a, b), gt(factor*a, factor*b)), factor)
    iff(Iff(ge(a, b), ge(factor*a, factor*b)), factor)
    logarithm(gt(factor, HALF))
    strict(add_up(each, weight=factor))
"""
SLOPE = """
    solves(eq(factor*y, b), y, b/factor)
"""
#: Functions of a positive number that do not rise everywhere.
NOT_RISING = """
    floor(x)
    ceiling(x)
    1/x
    Max(x, 5)
    beta**x
    f(x)
    x - x**2
    Mod(x, 1)
    c*x
    z*x
    0*x
    Abs(x - 1)
    log(x)**2
"""
OF_FUNCTIONS = """
    positive(gt(function.subs(x, p), function.subs(x, q)), {larger: 1})
    positive(gt(function.subs(x, p), function.subs(x, q)), {larger: p + q})
    positive(gt(function.subs(x, p), function.subs(x, q)), {larger: 1/(p*q)})
    show(gt(function.subs(x, p), function.subs(x, q)), {larger: 1})
    show(gt(function.subs(x, p), function.subs(x, q)), {larger: p + q})
    show(gt(function.subs(x, p), function.subs(x, q)), {larger: 1/(p*q)})
    iff(Iff(gt(p, q), gt(function.subs(x, p), function.subs(x, q))), 1)
    iff(Iff(gt(p, q), gt(function.subs(x, p), function.subs(x, q))), p + q)
    iff(Iff(gt(p, q), gt(function.subs(x, p), function.subs(x, q))), 1/(p*q))
"""

# ------------------------------------------------------------------ induction

WITHOUT_INDEX = """
    gt(0, 1)
    gt(a, a + 1)
    gt(0, total(r, m)**2)
    eq(m, 1)
    gt(0, log(1 + p))
"""
#: The claim is taken from what its own first case rests on.
OF_CLAIMS = """
    induction(claim, n, assume(claim), assume(claim)) rests on claim
    induction(Every(claim, k, 1, 9), k, assume(claim), assume(claim)) rests on claim
    induction(claim, n, *[substitute(assume(claim), {k: k})]*2) rests on claim
    show_inductively(claim, n, first={assume(claim): 1}) rests on claim
"""
INDUCTIONS = """
    induction(eq(r(n), r(1)), n, identity(eq(r(1), r(1))),
        substitute(assume(eq(r(n), r(1))), {n: n + 2}))  # the step takes two
    induction(eq(r(n), r(1)), n, identity(eq(r(1), r(1))), assume(eq(r(n), r(1))))  # no step
    induction(eq(r(n), r(1)), n, identity(eq(r(1), r(1))), assume(eq(r(n + 1), r(1))))  # assumed
    induction(eq(r(n), r(1)), n, identity(eq(r(1), r(1))),
        add_under(eq(r(n + 1), r(1)), eq(r(n + 2), r(1))))  # from a later case
    induction(gt(n, 2), n, positive(gt(4, 2)),
        positive(gt(n + 1, 2), {assume(gt(n, 2)): 1}))  # not the first case
    induction(ge(n*(n - 2), 0), n, positive(ge(0, 0)),
        positive(ge((n + 1)*(n - 1), 0), {assume(ge(n*(n - 2), 0)): 1}))  # of 0, not of 1
    show_inductively(gt(N, 0), N)  # N = 0
    induction(gt(N, 0), N, positive(gt(1, 0)),
        positive(gt(N + 1, 0), {assume(gt(N, 0)): 1}))  # of 1, not of 0
    induction(eq(floor(p), p), p, identity(eq(1, 1)),
        identity(eq(floor(p) + 1, p + 1), {assume(eq(floor(p), p)): 1}))  # a real number
    show_inductively(ge(whole, 0), whole)  # it may be negative
    show_inductively(eq((-1)**even, 1), even)  # one more is not even
    induction(eq(Sum(n, (n, 1, 3)), 1), n, *[identity(eq(1, 1))]*2)  # the index is bound
    show_inductively(eq(at(n, {n: 1}), n), n)  # the index is bound
    induction(lt(n, 2), n, positive(lt(1, 2)), assume(lt(n + 1, 2)))  # rests on the index
    induction(ge(r(n), 0), n, add_under(ge(r(1), 0), ge(r(n), 5)), next_case(ge(r(n), 0)))
    generalise(induction(ge(r(n), r(1)), n, positive(ge(r(1), r(1))), positive(ge(r(n + 1), r(1)),
        {take(climbs, n, [assume(ge(m, n + 1))]): 1, assume(ge(r(n), r(1))): 1})), n, 1, m + 1)
    induction(gt(geometric(n), n*beta**n), n, first_power, first_power)
    induction(gt(geometric(n), (n + 1)*beta**n), n, first_power, next_power)  # n = 1
    induction(gt(geometric(N), N*beta**N), N, first_power, next_power)  # N = 0
    induction(ge(r(n), 0), n, assume(ge(r(1), 0)), rises_once)  # for one n only
    induction(ge(r(n), 0), n, add_under(ge(r(1), 0), ge(m, n + 1)), next_case(ge(r(n), 0)))
    induction(Every(ge(r(k), r(1)), k, 1, m + 1), k, first_climb, next_climb)
    induction(Every(gt(r(k), r(1)), k, 1, m), k, first_climb, next_climb)  # k = 1
    induction(ge(r(k), r(1)), k, first_climb,
        positive(next_climb.claim, {next_climb: 1, assume(gt(m, k + 1)): 0}))  # no range
    show_inductively(gt(n + 1, geometric(n + 1)), n, times=-1)
    show_inductively(powers, k, {take(doubles, k): 1}, times=p)  # no first case
    show_inductively(powers, k, {take(doubles, k): 1}, first={start: 1})
    show_inductively(powers, k, times=p, first={start: 1})
    show_inductively(Every(powers.relation, k, 1, n + 1), k, {take(doubles, k): 1}, p, {start: 1})
    show_inductively(Every(le(r(k), r(1)), k, 1, n), k, {take(falls, k): 1/c})  # c = -1
    show_inductively(Every(eq(r(k), r(1)), k, 1, n), k,
        {assume(eq(r(k), r(k + 1))): 1})  # all horses have one colour
    induction(eq(raw(Mul, n - 2, 1/(n - 2)), 1), n, *[identity(eq(1, 1))]*2)  # n = 2
    induction(eq(n/(n - 1) - 1/(n - 1), 1), n, *[identity(eq(1, 1))]*2)  # n = 1
"""

# ------------------------------------------------------------------ what hides or lies

#: Hypotheses that are read once, in every argument that takes several lines.
HIDDEN = """
    identity(eq(c/c + 1/c, 1 + 1/c), {}, hide([assume(gt(c, 0))])) rests on gt(c, 0)
    positive(gt(c, 0), {}, hide([assume(gt(c, 0))])) rests on gt(c, 0)
    show(gt(c, 0), {}, hide([assume(gt(c, 0))])) rests on gt(c, 0)
    iff(Iff(gt(a, 0), gt(a*c, 0)), c, hide([assume(gt(c, 0))])) rests on gt(c, 0)
    logarithm(gt(c, p), hide([assume(gt(c, 0))])) rests on gt(c, 0)
    round_up(n, 1/c, hide([assume(gt(c, 0))])) rests on gt(c, 0)
    rounding(ceiling(1/c), hide([assume(gt(c, 0))])) rests on gt(c, 0)
    substitute(positive(gt(p, 0)), {p: c}, hide([assume(gt(c, 0))])) rests on gt(c, 0)
    extreme(gt(Max(a, c), b), hide([more])) rests on gt(a, b)
    take(counted, k + 5, hide([assume(ge(n, k + 5))])) rests on ge(n, k + 5)
    add_up(counted, 1, k + 5, hide([assume(ge(n, k + 5))])) rests on ge(n, k + 5)
    show_inductively(gt(c*n, 0), n, signs=hide([assume(gt(c, 0))])) rests on gt(c, 0)
"""
HIDDEN_MAPPINGS = """
    positive(gt(a, b), OnceMapping({more: 1})) rests on gt(a, b)
    identity(eq(a, b), OnceMapping({same: 1})) rests on eq(a, b)
    show(gt(a, b), OnceMapping({more: 1})) rests on gt(a, b)
"""
LIES = """
    PositiveSymbol("y")
    PositiveFunction(n)
    PositiveNumber(-1)
    -Function("lie", positive=True)(1)
    Function("lie", real=True, doit=lambda self, **_: Integer(5))(1)
    Function("lie", real=True, is_Rational=True, is_number=True)(1)
"""
OF_LIES = """
    positive(gt(lie, 0))
    compute(eq(lie, 5))
    logarithm(gt(lie, 1))
    substitute(positive(gt(p, 0)), {p: lie})
"""
WRONG_SIGNS = """
    Relation(1, LyingSign(">"), 2)
    Relation(2, "!=", 1)
    Relation(2, "=>", 1)
"""
OF_RELATIONS = """
    identity(relation)
    positive(relation)
"""
LYING_CLASSES = """
    identity(LyingRelation(0, "=", 1))
    positive(lying)
    Line(lying, "")
    shows(lying, gt(0, 1))
    iff(Iff(lying, gt(5, 0)))
    positive(gt(0, 1), {false: 1})
    absurd(gt(0, 1), false)
    sharpen(ge(0, 2), false)
    extreme(gt(Max(0, b), 1), [false])
    logarithm(gt(-p, 1), [false])
    take(assume(Every(gt(k, 5), k, 6, 9)), 5, [false])
    compute(eq(PositiveSum(k, (k, 1, 2)), 5))
    positive(gt(told("is_positive", True), 0))
    positive(gt(told("is_number", True), -1))
    compute(eq(told("doit", lambda self, **_: Integer(5)), 5))
    identity(eq(*[raw(log, PositiveNumber(-1))]*2))
    shows(eq(1, 1), Relation(LyingExpression(), "=", 1))
    shows(LyingClaim(), gt(0, 1))
    prove(gt(0, 1), surely, [lying])
"""
PYTHON = """
    compute(gt(changing(1, 2), changing(2, 1)))
    compute(eq(changing(1, 2, 2), 2))
    compute(eq(square(3), 8))
    compute(eq(at(exact_function("h", lambda value: int(value == n))(n), {n: 3}), 1))
    compute(eq(Sum(exact_function("h", lambda value: int(value == n))(n), (n, 1, 3)), 3))
    identity(eq(*[exact_function("h", lambda value: int(value == n))(n)]*2))
    compute(eq(3*python(lambda _: Float(1)/3), 1))
    compute(eq(pi, exact_function("pi", lambda _: 3)(1)))
    compute(eq(python(lambda _: 1), python(lambda _: 2)))
    identity(eq(python(lambda _: 1), python(lambda _: 2)))
    round_up(n, python(lambda _: I))
    rounding(raw(ceiling, python(lambda _: oo)))
    positive(ge(python(lambda _: I)**2, 0))
    compute(eq(python(lambda _: I)**2, -1))
    compute(eq(python(lambda _: p), p))
    compute(eq(python(lambda _: "1 + 1"), 2))
    compute(eq(python(lambda _: True), 1))
    compute(eq(python(endless), 1))
    compute(gt(python(lambda _: PositiveNumber(-1)), 0))
    sharpen(ge(python(lambda _: HALF), 1), compute(gt(python(lambda _: HALF), 0)))
    identity(eq(p/python(lambda _: 0), p/python(lambda _: 0)))
    exact_function("h", 5)(1)
    exact_function(5, lambda _: 1)(1)
"""

# ------------------------------------------------------------------ each step, misused

MISUSES = """
    positive(gt(c*a, c*b), {more: c})  # c < 0
    positive(gt(z*a, z*b), {more: z})  # z = 0
    positive(gt(a/z, b/z), {more: 1/z})  # z = 0
    positive(gt(a**2, b**2), {more: a + b})  # a = 1, b = -1
    positive(ge(a**2, b**2), {weak: a + b})  # a = 1, b = -2
    positive(lt(1/a, 1/b), {more: 1/(a*b)})  # b < 0 < a
    positive(gt(a, b), {weak: 1})
    positive(gt(a, c), {weak: 1, assume(ge(b, c)): 1})
    positive(gt(b, a), {more: 1})
    positive(gt(a - c, b), {more: 1, assume(gt(c, 0)): -1})
    positive(gt(0, 0), {more: 0})
    positive(gt(a, b), {same: 1})
    positive(eq(a, a))
    positive(gt(0, 0), {substitute(add_up(above_zero(g, N)), {N: 0}): 1})
    positive(gt(a*b, 0), {}, [assume(gt(a, 0))])  # b < 0
    positive(gt(a*c, b*c), {more: c}, [assume(ge(c, 0))])  # c = 0
    positive(gt(a, 0), {}, [assume(eq(a, 0))])
    positive(gt(z, 0), {}, [assume(ge(1/p + z, 0))])
    positive(lt(Sum(beta, (beta, 1, 2)), 2))  # a ratio is no index
    positive(gt(nested(a), 0))  # f = -1
    positive(gt(a, 0), {gt(a, 0): 1})  # no line
    positive(gt(a, b), [more])  # it is not said times what
    positive("1 > 0")
    positive(Gt(a, b))
    positive(gt(1, 0), why=None)
    identity(eq(a, b), {weak: 1})
    identity(eq(a, b), {assume(eq(z*a, z*b)): 1/z})  # z = 0
    identity(eq(2*a, b), {same: 1})
    identity(gt(a, a))
    identity(both.claim)
    identity(eq(r(n + 1), 0), {assume(Every(eq(r(k), 0), k, 1, n)): 1})
    identity(eq(*[Sum(1/(k - m), (k, 1, 9))]*2), {}, [assume(gt(k, m))])  # k is bound
    identity(eq(*[Sum(log(a - k), (k, 1, 9))]*2), {}, [assume(gt(a - k, 0))])  # k is bound
    assume(eq(Sum(1, (k, 1, n - 5)), 0))  # -4 terms
    identity(eq(Sum(1/k, (k, 1, 10**9)), 1))  # too long
    identity(eq(nested(a), a))
    show(ge(*[Sum(1/(k - m), (k, 1, 9))]*2), {}, [assume(gt(k - m, 0))])  # k is bound
    show(Every(gt(r(k), 0), k, 1, n + 1), {above: 1})
    show(Every(gt(r(j), 0), j, 1, n), {above: 1})  # its index is k
    show(Every(gt(r(k), r(1)), k, 1, n), {above: 1, assume(ge(0, r(1))): 1, assume(gt(0, r(k))): 1})
    iff(Iff(gt(a, b), gt(z*a, z*b)), z)  # z = 0
    iff(Iff(gt(a, b), gt(-a, -b)), -1)
    iff(Iff(eq(b, 0), eq(a**2*b, 0)), a**2)  # a = 0
    iff(Iff(eq(a, b), ge(a, b)))
    iff(Iff(gt(a, b), ge(a, b)))
    iff(Iff(eq(a, b), eq(a**2, b**2)), a + b)  # a = -b
    iff(Iff(eq((n - 1)*a, 0), eq(a, 0)), 1/(n - 1))  # n = 1
    iff(gt(a, a))
    solves(eq(z*a, b), a, b/z)  # z = 0
    solves(eq(a**2, 1), a, 1)  # a = -1
    solves(eq(0*a, 1), a, 1)
    solves(eq(p*y, a), y, a)
    solves(eq(floor(a), 1), a, 1)  # a = 3/2
    solves(eq(Max(a, 0), 0), a, 0)  # a = -1
    solves(eq(Abs(a), 1), a, 1)  # a = -1
    solves(eq(f(a), 0), a, 0)
    solves(eq(Sum(1, (k, 1, n)), 3), n, 2)
    solves(gt(2*a, 4), a, 1)
    follows(both, positive(le(0, 0)))
    follows(both, weak)
    follows(iff(Iff(le(a, b), le(2*a, 2*b)), 2), weak)
    follows(more, more)
    chain(both, iff(Iff(ge(a, b), ge(2*a, 2*b)), 2))
    chain()
    chain(more)
    chain(both, iff(Iff(gt(c, b), gt(2*c, 2*b)), 2))
    chain(iff(Iff(eq(a, a), eq(b, b))), both)
    squeeze(eq(a, b), weak, weak)
    squeeze(eq(a, c), zero, zero)
    squeeze(eq(1, 2), identity(eq(0, 0)), identity(eq(0, 0)))
    squeeze(gt(0, 0), zero, zero)
    sharpen(ge(a, b), positive(gt(a, a - 1)))
    sharpen(ge(n, 2), positive(gt(n, 0)))
    sharpen(ge(n, 2), positive(ge(n, 1)))
    sharpen(gt(n, 1), positive(gt(n, 0)))
    sharpen(ge(n/2, 1), positive(gt(n/2, 0)))
    absurd(gt(0, 1), zero)
    absurd(gt(0, 1), assume(gt(r(1), 0)))
    absurd(gt(0, 1), assume(le(z, 0)))  # z = 0
    absurd(eq(a, b), assume(gt(0, 0)))  # its negation is no relation
    absurd(gt(a, b), assume(gt(a, a))) rests on gt(a, a)
    absurd(gt(0, 1), positive(gt(0, 1), {assume(gt(0, 1)): 1})) rests on gt(0, 1)
    absurd(gt(0, 1), add_up(above_zero(g, N)))  # N = 0
    discharge(positive(gt(2*a, 2*b), {more: 2}), weak)
    discharge(positive(gt(2*a, 2*b), {more: 2}), assume(gt(a, c)))
    discharge(assume(gt(0, 1)), assume(gt(0, 1))) rests on gt(0, 1)
    discharge(above, positive(gt(p, 0)))  # r is another sequence
    discharge(assume(Every(gt(g(k), 0), k, 0, n)), above_zero(g, n))
    discharge(assume(Every(eq(f(n) - f(n), f(n) - f(1)), n, 1, m)),
        show(Every(eq(f(k) - f(k), 0), k, 1, m)))
    substitute(positive(gt(beta, 0)), {beta: 0})
    substitute(positive(lt(beta, 1)), {beta: 1})
    substitute(positive(lt(beta**n, 1)), {beta: 2})
    substitute(positive(ge(n, 1)), {n: HALF})
    substitute(positive(ge(n, 1)), {n: 0})
    substitute(positive(ge(n, 1)), {n: p})  # p = 1/2
    substitute(positive(lt(beta, 1)), {beta: p})
    substitute(positive(gt(p, 0)), {p: z})  # z = 0
    substitute(positive(ge(n, 1)), {n: Float(0.5)})
    substitute(positive(ge(a**2, 0)), {a: I})
    substitute(positive(ge(a**2, 0)), {a: sqrt(-p)})
    substitute(positive(gt(a + 1, a)), {a: oo})
    substitute(positive(ge(n, 1)), {n: m - 1})  # m = 1
    substitute(identity(eq(Sum(a, (k, 1, n)), n*a)), {a: k})  # k is bound
    substitute(assume(Every(eq(r(k), a), k, 1, n)), {a: r(k)})  # k is bound
    substitute(identity(eq(Sum(a, (k, 1, n)), n*a)), {a: b, b: k})  # k is bound
    substitute(identity(eq(Derivative(a*b, a), b)), {b: a})  # d/da (a a) = 2 a
    substitute(identity(eq(at(a + b, {a: 1}), 1 + b)), {b: a})  # a is bound
    substitute(positive(gt(g(1), 0)), {g(1): -1})
    substitute(positive(ge(a**2, 0)), {a**2: -1})
    substitute(positive(gt(g(1), 0)), {g: -1})
    substitute(compute(eq(square(3), 9)), {square: 1})
    substitute(assume(ge(Symbol("o", negative=True), a)), {Symbol("o", negative=True): b})
    substitute(identity(eq((-1)**Symbol("e", even=True), 1)), {Symbol("e", even=True): 1})
    substitute(positive(ge(a**2, 0)), {a: "I"})
    substitute(positive(gt(p, 0)), {p: a}, [assume(ge(a, 0))])  # a = 0
    substitute(assume(ge(1/z, 1/z)), {a: a})  # z = 0
    take(above_zero(f, n - 1), n + 1)
    take(above, 0)
    take(above, HALF)
    take(above, n/2 + HALF, [assume(ge(n, 1))])
    take(climbs, k, [assume(ge(m, k))])  # one too many
    take(generalise(identity(eq(at(n + k, {n: 1}), 1 + k)), k, 1, n), n)  # n is bound
    take(generalise(identity(eq(at(n + k, {n: 1}), 1 + k)), k, 1, n), n + 1)
    take(above, n + 1, [surely])
    take(above, n + 3, [positive(ge(n, 1))])
    take(show(Every(eq(Sum(k, (m, 1, 2)), 2*k), k, 1, n)), m, [assume(ge(n, m))])  # m is bound
    take(surely, 1)
    take(above, True)
    generalise(assume(gt(r(n), 0)), n, 1, 5)
    generalise(positive(gt(n, 0)), n, 0, 5)
    generalise(positive(ge(N, 0)), N, -3, 5)
    generalise(positive(gt(p, 0)), p, 1, 5)
    generalise(positive(lt(beta, 1)), beta, 1, 5)
    generalise(positive(gt(n, 0)), n, 1, n)
    generalise(identity(eq(Sum(k, (k, 1, 2)), 3)), k, 1, 5)  # k is bound
    generalise(take(above, k), k, 1, n + 1)
    generalise(positive(ge(k - 1, 1), {assume(ge(k, 2)): 1}), k, 1, n)
    generalise(positive(gt(k, 0)), k, 1, p)  # p = 1/2
    generalise(identity(eq((-1)**even, 1)), even, 1, 5)  # 1 is not even
    generalise(surely, n + 1, 1, 5)
    strict(add_up(above_zero(g, N)))  # N = 0
    strict(add_up(to_p), to_p)  # p = 1/2
    add_up(above_zero(g, n), 1, n + 1)
    add_up(above_zero(g, n), 0, n)
    add_up(above_zero(g, n), 1, k - 1)  # k = n + 2
    add_up(above_zero(f, N - 2))  # N = 0: -2 terms
    add_up(above_zero(g, n), n, 1)  # n = 3
    add_up(above_zero(g, n), HALF, 1)
    add_up(above_zero(g, n), weight=-1)
    add_up(above_zero(g, n), weight=r(k))
    add_up(above_zero(g, n), weight=z)  # z = 0
    add_up(surely)
    with_caught_index(add_up(assume(Every(eq(f(k), f(k)), k, 1, n)), 1, k + h,
        [assume(ge(n, k + h))]))
    add_up(above_zero(g, n), 1, m - 5, [assume(ge(n, m))])  # m = 1: -5 terms
    round_up(p, a)  # p = 1/2
    round_up(n/2, a)  # n = 1
    round_up(n, sqrt(a))  # a = -1
    rounding(a)
    rounding(ceiling(a) + 1)
    rounding(ceiling(sqrt(a)))  # a = -1
    rounding(frac(a))
    extreme(eq(Max(a, b), b), [weak])
    extreme(le(Max(a, b), a))
    extreme(ge(Min(a, b), a))
    extreme(gt(Max(a, b), a))
    extreme(le(Max(a, b), c), [assume(ge(c, a))])
    extreme(lt(Max(a, b), c), [assume(ge(c, a)), assume(ge(c, b))])
    extreme(eq(Max(a, b), c), [assume(ge(c, a)), assume(ge(c, b))])
    extreme(gt(Min(a, b), c), [assume(gt(a, c))])
    extreme(gt(Max(a, b), Max(b, c)), [assume(gt(a, c))])
    extreme(eq(a + b, b), [assume(le(a, 0))])  # no maximum
    extreme(gt(Min(p, -p), -p))
    logarithm(gt(p, -q))
    logarithm(ge(z, p))  # z = 0
    logarithm(gt(a, p), [assume(ge(a, 0))])  # a = 0
    logarithm(gt(n/(n - 1) - 1/(n - 1), HALF))  # n = 1
    logarithm(both.claim)
    exponential(exp(-p))
    exponential(2**a)  # a = -1
    exponential(beta**p)
    exponential(p**p)  # p = 1/2
    exponential((-2)**n)
    exponential(z**n)  # z = 0
    exponential(THIRD**n)
    isolate_zero(q - p*x, x, x0, [assume(lt(-p, 0)), assume(eq(q - p*x0, 0))])
    isolate_zero(floor(x) - 1, x, x0, rising(floor(x) - 1, x0))
    isolate_zero(1 - 1/(x - 2), x, x0, rising(1 - 1/(x - 2), x0))
    isolate_zero(f(x), x, x0, rising(f(x), x0))
    isolate_zero(n - m, n, m, [surely, identity(eq(m - m, 0))])
    isolate_zero(z - x0, z, x0, [surely, identity(eq(x0 - x0, 0))])
    isolate_zero(p*x - q, x, z, [positive(gt(p, 0)), assume(eq(p*z - q, 0))])  # z = 0
    isolate_zero(p*x - q, x, x0, [positive(ge(p, 0)), assume(eq(p*x0 - q, 0))])
    isolate_zero(p*x - q, x, x0,
        [positive(gt(p, 0), {assume(ge(5, x)): 0}), assume(eq(p*x0 - q, 0))])
    isolate_zero(p*x - q, x, x0, [positive(gt(p, 0)), assume(eq(p*x0, 0))])
    isolate_zero(x**2 - 2*x, x, Integer(2),
        [positive(gt(2*x - 2, 0), {assume(gt(x, 1)): 2}), identity(eq(0, 0))])  # x = 1/2
    isolate_zero(p*x - q, x, x0, [])
    isolate_zero(p*x - q, x, x0, [positive(gt(p, 0))])
    isolate_zero(x - 1 + 1/z - p/z, x, x0, [surely, assume(eq(x0 - 1 + 1/z - p/z, 0))])  # z = 0
    shows(ge(a, b), gt(a, b))
    shows(gt(a, b), lt(a, b))
    shows(gt(a, b), both.claim)
    shows(above.claim, gt(r(k), 0))
    shows(gt(r(k), 0), above.claim)
    shows(above.claim, Every(gt(r(k), 0), k, 1, n + 1))
    shows(Every(gt(r(k), 0), k, 2, n), above.claim)
    shows(Every(eq(r(k), r(n)), k, 1, m), Every(eq(r(n), r(n)), n, 1, m))
    shows(Every(eq(at(n + k, {n: 1}), 1 + k), k, 1, m), Every(eq(at(2*n, {n: 1}), 1 + n), n, 1, m))
    shows(Every(ge(r(n) - r(n), 0), k, 1, m), Every(ge(r(n) - r(k), 0), k, 1, m))
    shows(Every(eq(f(whole), Max(whole, 0)), whole, -5, 5), Every(eq(f(k), k), k, -5, 5))
    shows(Iff(gt(a, 0), gt(b, 0)), Iff(gt(a, 0), ge(b, 0)))
    shows(Iff(gt(a, 0), gt(b, 0)), Iff(ge(a, 0), gt(b, 0)))
    shows(Iff(ge(a, 0), gt(b, 0)), Iff(gt(a, 0), gt(b, 0)))
    shows(Iff(gt(z + 1, 0), gt(a, 0)), Iff(gt((z**2 + z)/z, 0), gt(a, 0)))  # z = 0
    shows(Iff(gt(a, 0), gt(b, 0)), gt(b, 0))
    shows(Every(gt(1/a, 0), k, 1, n - 1), Every(gt(raw(Add, 1/a, 1 - 1), 0), k, 1, n))
    compute(both.claim)
    compute(above.claim)
    compute(gt(p, 0))
    compute(gt(0, raw(Pow, 10, 10**9)))  # too large
    compute(gt(0, Sum(1/k, (k, 1, 10**9))))  # too long
    compute(gt(nested(1), 0))
    prove(eq(n/(n - 1) - 1/(n - 1), 1), identity(eq(1, 1)))  # n = 1
    prove(gt(0, 1), assume(gt(0, 1)))
    prove(gt(0, 1), induction(gt(0, 1), n, assume(gt(0, 1)), assume(gt(0, 1))))
    prove(gt(total(g, N), 0), add_up(above_zero(g, N)))  # N = 0
    assume("0 > 1")
    assume(gt(sin(a), 2))
"""


# ------------------------------------------------------------------ all of them


class Family(NamedTuple):
    """False values by their form, the calls that are tried with each, and true values."""

    kind: str
    form: str = ""
    values: str = ""
    calls: str = ""
    controls: str = ""


FAMILIES = (
    Family("no value", "u", WITHOUT_VALUE, OF_U, "n\n Integer(2)"),
    Family("equation", "left = right", FALSE_EQUATIONS, OF_EQUATIONS, "2 = 2"),
    Family("inequality", "left > right", FALSE_INEQUALITIES, OF_INEQUALITIES, "2 > 1"),
    Family("factor", "factor", MAY_BE_ZERO + NEGATIVE, OF_FACTORS, "p"),
    Family("slope", "factor", MAY_BE_ZERO, SLOPE, "p"),
    Family("function", "function", NOT_RISING, OF_FUNCTIONS, "x\n x**2\n -1/x"),
    Family("claim without the index", "claim", WITHOUT_INDEX, OF_CLAIMS),
    Family("hidden list", "hide", "iter\n OnceList", HIDDEN, "list"),
    Family("lying part", "lie", LIES, OF_LIES, "p\n Integer(5)"),
    Family("wrong sign", "relation", WRONG_SIGNS, OF_RELATIONS, "eq(1, 1)\n gt(2, 1)"),
    Family("hidden mapping", calls=HIDDEN_MAPPINGS),
    Family("induction", calls=INDUCTIONS),
    Family("lying class", calls=LYING_CLASSES),
    Family("function of Python", calls=PYTHON),
    Family("misuse", calls=MISUSES),
)
