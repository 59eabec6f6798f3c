"""Proofs in steps: every step of a page in docs/theory has a check here that a machine carries out, and a control.

A page says `[ssf.2.3]` behind a step; the paper's file `theory/<paper>/steps.py` has the step of that name. A step is
proved where its check is a proof: an identity, an implication over the whole admissible set, a certificate, an
expectation by enumeration. One that rests on a search says so.
"""

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from operator import eq, ge, gt, le, lt
from typing import Any

from fedtheory.core import checks, registry
from fedtheory.theory.claim import Check, Outcome
from fedtheory.theory.formula import Formula
from fedtheory.theory.search import implies, same

KINDS = {
    "identity": "an identity, expanded by sympy",
    "implication": "an implication between polynomials, decided by z3 over all real numbers that are admitted",
    "certificate": "an inequality, by writing the difference as a sum of squares",
    "expectation": "an expectation, by enumeration of all outcomes with symbols for what they depend on",
    "arithmetic": "exact rational arithmetic",
    "search": "a search that failed to break it: no proof",
}
_EVIDENCE = dict(zip(KINDS, ("symbolic", "smt", "symbolic", "exact", "exact", "search"), strict=True))  # of a claim


Values = Mapping[str, Any]
Said = Formula | str
Put = Formula | str | tuple[str, Formula | str | Callable[..., Any]]


@dataclass(frozen=True)
class Step:
    """One step of a proof.

    Fields:
        id: "<paper>.<lemma>.<step>", as the page says it.
        kind: of KINDS.
        says: what is checked, in words.
        check: whether it holds.
        control: a false step near by: whether that one holds, by the same means. Or the words of the check that are
            changed, and what stands there then.
        broken: what is false there, in words; of changed words they are these.
        claims: ids of the ledger that measure the same on what the training code yields.
    """

    id: str
    kind: str
    says: str
    check: Callable[[], bool]
    control: Callable[[], bool] | Mapping[str, str]
    broken: str = ""
    claims: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        checks.choice("kind", self.kind, KINDS)
        if isinstance(self.control, Mapping):
            ((old, new),) = self.control.items()
            other = self.check.changed(old, new) if isinstance(self.check, (Implies, Equal, Every)) else None
            if other is None:
                checks.reject("control", self.control, f"words of the check of {self.id}", "quote one of its formulas")
            object.__setattr__(self, "control", other)
            object.__setattr__(self, "broken", self.broken or f"{new} instead of {old}")

    def outcome(self) -> Outcome:
        """Run the check and its control. A control that holds raises AssertionError: the check could not fail."""
        control: Any = self.control
        if control():
            raise AssertionError(f"{self.id}: the control holds, too: {self.broken}")
        return Outcome(self.check(), _EVIDENCE[self.kind], None, self.says)


PAPERS = (*registry.PAPERS, "family", "limits", "linear")  # those with a page; the last three are of no paper


WITH_FORMULAS = ("ssf", "family", "fedsub", "flss", "limits", "linear", "mud", "decomfl")  # those of <page>/formulas.py


def formulas(paper: str) -> dict[str, Formula]:
    """The formulas of a page, by their names there."""
    checks.choice("paper", paper, WITH_FORMULAS)
    return importlib.import_module(f"fedtheory.theory.{paper}.formulas").FORMULAS


def steps(paper: str) -> dict[str, Step]:
    """Return the steps of a paper's proofs by id, in their order."""
    checks.choice("paper", paper, PAPERS)
    listed = importlib.import_module(f"fedtheory.theory.{paper}.steps").STEPS
    return {step.id: step for step in listed}


def by_steps(paper: str, *ids: str) -> Check:
    """Return a claim's check: these steps of a page hold, and their controls do not."""

    def check(effort: str) -> Outcome:
        known = steps(paper)
        failed = [id for id in ids if not known[id].outcome().holds]
        said = f"proved in docs/theory/{paper}.md, of whose steps {len(ids)} were run again"
        return Outcome(not failed, "symbolic", None, f"steps that fail: {', '.join(failed)}" if failed else said)

    return check


def follows(premises: Callable[[], tuple[list, object]]) -> Callable[[], bool]:
    """Return a check that premises imply a conclusion over all reals; `premises` makes both with z3's variables."""
    return lambda: implies(*premises()).holds


def equal(sides: Callable[[], tuple[object, object]]) -> Callable[[], bool]:
    """Return a check that two sides, made of sympy's symbols, are the same expression."""
    return lambda: same(*sides())


# Checks as data


@dataclass(frozen=True)
class Implies:
    """Hypotheses that imply conclusions, over all real numbers; z3 decides.

    Fields:
        given, then: relations.
        where: what is put in, in this order: `name == expression`, or a name and the formula whose last side it is.
        line: whether vectors are numbers. Else `sq` and `dot` are numbers of their own, squares at least 0.
        cleared: whether sympy cancels fractions first; all names are then positive.
    """

    given: Sequence[Said]
    then: Sequence[Said]
    where: Sequence[Put] = ()
    line: bool = False
    cleared: bool = False

    def __call__(self) -> bool:
        decide = _implied_cleared if self.cleared else partial(_implied, self.line)
        return decide(_texts(self.given), _texts(self.then), _texts(self.where))

    def changed(self, old: str, new: str) -> "Implies | None":
        """Return it with other words in the first conclusion, definition or hypothesis that says `old`."""
        return _changed(self, ("then", "where", "given"), old, new)


@dataclass(frozen=True)
class Equal:
    """Two expressions that are the same; sympy decides. Vectors are numbers: all terms are inner products.

    Fields:
        left: a formula stands for its last side.
        right: as left. None: both sides of every equation in `left`.
        where: as in `Implies`.
        gap: whether left is an inequality whose right side has more by `right`.
    """

    left: Said
    right: Said | None = None
    where: Sequence[Put] = ()
    gap: bool = False

    def __call__(self) -> bool:
        sides = (self.left,) if self.right is None else (self.left, self.right)
        return _equal(_texts(sides), _texts(self.where), self.gap)

    def changed(self, old: str, new: str) -> "Equal | None":
        """Return it with other words in the first side or definition that says `old`."""
        return _changed(self, ("left", "right", "where"), old, new)


@dataclass(frozen=True)
class Every:
    """Several checks that hold together."""

    parts: Sequence[Callable[[], bool]]

    def __call__(self) -> bool:
        return all(part() for part in self.parts)

    def changed(self, old: str, new: str) -> "Every | None":
        """Return the checks with other words in all parts that say `old`."""
        data = (Implies, Equal, Every)
        changes = [part.changed(old, new) if isinstance(part, data) else None for part in self.parts]
        return Every([other or part for other, part in zip(changes, self.parts)]) if any(changes) else None


def every(*checks: Callable[[], bool]) -> Every:
    """Whether all parts of a check hold."""
    return Every(checks)


def either(*checks: Callable[[], bool]) -> Callable[[], bool]:
    """Return a control that holds where any of these controls holds."""
    return lambda: any(check() for check in checks)


# What data say is decided once: pages share steps, and a control most of its check


def _texts(said: Sequence[Any]) -> tuple[Any, ...]:
    """Formulas as their texts, within pairs, too."""
    text = lambda one: one.text if isinstance(one, Formula) else one
    return tuple(tuple(map(text, one)) if isinstance(one, tuple) else text(one) for one in said)


@cache
def _implied(line: bool, given: tuple[str, ...], then: tuple[str, ...], where: tuple[Any, ...]) -> bool:
    import z3

    names = _Reals(line)
    number: Callable[[str], Any] = z3.RealVal
    _put(names, where, number)
    relations = lambda said: [_relation(*link) for one in said for link in Formula(one).links(names, number)]
    hypotheses, conclusions = relations(given), relations(then)
    premises = hypotheses + names.premises
    _admitted(premises, given)
    return implies(premises, z3.And(*conclusions)).holds


@cache
def _implied_cleared(given: tuple[str, ...], then: tuple[str, ...], where: tuple[Any, ...]) -> bool:
    import z3

    variables, zero = _Reals(line=True), z3.RealVal(0)

    def relations(said: tuple[str, ...]) -> list[Any]:
        found = []
        for sign, *parts in (link for one in said for link in _fractions(one, where)):
            more, below = (_polynomial(part, variables) for part in parts)
            up, down = _relation(more, sign, zero), _relation(zero, sign, more)
            found.append(z3.Or(z3.And(below > 0, up), z3.And(below < 0, down)))
        return found

    hypotheses, conclusions = relations(given), relations(then)
    positive = [one > 0 for one in variables.values() if z3.is_expr(one)]
    premises = hypotheses + variables.premises + positive
    _admitted(premises, given)
    return implies(premises, z3.And(*conclusions), timeout_ms=20000).holds


@cache
def _fractions(said: str, where: tuple[Any, ...]) -> list[tuple[str, Any, Any]]:
    """The sign of every relation, and left minus right as numerator and denominator."""
    import sympy

    links = Formula(said).links(_symbols(where), sympy.Rational)
    return [(sign, *_cancelled(left - right)) for left, sign, right in links]


def _cancelled(expression: Any) -> tuple[Any, Any]:
    """Numerator and denominator as `sympy.cancel` has them, faster."""
    import sympy
    from sympy.polys.fields import sfield

    if not expression.free_symbols:
        return sympy.fraction(sympy.cancel(expression))
    fraction = sfield(expression)[1]
    more, below = fraction.numer, fraction.denom
    if below.is_ground:
        rationals = more.ring.clone(domain=more.ring.domain.get_field())
        return sympy.fraction(more.set_ring(rationals).quo_ground(below.LC).as_expr())
    return more.as_expr(), below.as_expr()


@cache
def _equal(sides: tuple[str, ...], where: tuple[Any, ...], gap: bool) -> bool:
    import sympy

    names, number, (left, *others) = _symbols(where), sympy.Rational, map(Formula, sides)
    if others:
        more = left.side(0).right(names, number) if gap else 0
        pairs = [(left.right(names, number) - more, others[0].right(names, number))]
    else:
        pairs = [(a, b) for a, sign, b in left.links(names, number) if sign == "=="]
    gaps = (sympy.expand(a - b) for a, b in pairs)
    return bool(pairs) and all(gap == 0 or sympy.cancel(gap) == 0 for gap in gaps)


@cache
def _symbols(where: tuple[Any, ...]) -> "_Symbols":
    import sympy

    names = _Symbols()
    _put(names, where, sympy.Rational)
    return names


def _admitted(premises: list[Any], said: Sequence[str]) -> None:
    """Raise ValueError where no numbers meet the hypotheses: they would imply anything."""
    import z3

    solver = z3.Solver()
    solver.set("timeout", 2000)
    solver.add(*premises)
    if solver.check() == z3.unsat:
        checks.reject("given", list(said), "hypotheses that some numbers meet", "mend one")


def _formula(said: Said) -> Formula:
    return said if isinstance(said, Formula) else Formula(said)


def _put(names: dict[str, Any], where: Sequence[Put], number: Callable[[str], Any]) -> None:
    for one in where:
        name, said = (_formula(one).name, one) if isinstance(one, str | Formula) else one
        names[name] = said if callable(said) else _formula(said).right(names, number)


def _changed(check: Any, fields: Sequence[str], old: str, new: str) -> Any:
    def other(one: Any) -> Any:
        if isinstance(one, tuple) and isinstance(one[0], str) and len(one) == 2 and not callable(one[1]):
            return (one[0], said) if (said := other(one[1])) is not None else None
        if isinstance(one, str | Formula) and (said := _formula(one)).says(old):
            return said.changed(old, new)
        return None

    for field in fields:
        value: Any = getattr(check, field)
        if isinstance(value, str | Formula) and (said := other(value)) is not None:
            return replace(check, **{field: said})
        listed = list(value) if isinstance(value, list | tuple) else []
        for at, one in enumerate(listed):
            if (said := other(one)) is not None:
                return replace(check, **{field: [*listed[:at], said, *listed[at + 1 :]]})
    return None


def _relation(left: Any, sign: str, right: Any) -> Any:
    return {"<=": le, ">=": ge, "<": lt, ">": gt, "==": eq}[sign](left, right)


def _polynomial(expression: Any, variables: "_Reals") -> Any:
    """A polynomial of sympy in z3's variables; a square root is a variable, too."""
    import sympy
    import z3

    def root(power: Any) -> Any:
        variables["sqrt"](_polynomial(power.base, variables), f"sqrt({power.base})")
        return sympy.Symbol(f"sqrt({power.base})") ** (2 * power.exp)

    plain = expression.replace(lambda one: one.is_Pow and one.exp.is_Rational and one.exp.q == 2, root)
    names = sorted(plain.free_symbols, key=str)
    if not names:
        return z3.RealVal(str(plain))
    total = z3.RealVal(0)
    for powers, factor in sympy.Poly(plain, *names).terms():
        term = z3.RealVal(str(factor))
        for name, power in zip(names, powers):
            for _ in range(power):
                term = term * variables[str(name)]
        total = total + term
    return total


@dataclass(frozen=True)
class Fails:
    """A statement near by that does not hold: a bound is not much larger than it must be."""

    part: Callable[[], bool]

    def __call__(self) -> bool:
        return not self.part()


class _Reals(dict[str, Any]):
    """z3's variables by name, made where they are first read; `premises`: what roots and squares are."""

    def __init__(self, line: bool) -> None:
        import z3

        self.premises: list[Any] = []
        super().__init__(
            min=lambda a, b: z3.If(a <= b, a, b),
            E=lambda v: v,
            sqrt=self._root,
            sq=(lambda v: v * v) if line else lambda v: self._square(f"|{v}|^2"),
            dot=(lambda a, b: a * b) if line else lambda a, b: self[f"<{a}, {b}>"],
        )

    def __missing__(self, name: str) -> Any:
        import z3

        self[name] = z3.Real(name)
        return self[name]

    def _root(self, v: Any, name: str = "") -> Any:
        root = self[name or f"sqrt({v})"]
        self.premises += [root >= 0, root * root == v]
        return root

    def _square(self, name: str) -> Any:
        self.premises.append(self[name] >= 0)
        return self[name]


class _Symbols(dict[str, Any]):
    """sympy's positive symbols by name, made where they are first read."""

    def __init__(self) -> None:
        import sympy

        product = lambda a, b: a * b
        super().__init__(min=sympy.Min, sqrt=sympy.sqrt, E=lambda v: v, sq=lambda v: v**2, dot=product)

    def __missing__(self, name: str) -> Any:
        import sympy

        self[name] = sympy.Symbol(name, positive=True)
        return self[name]


def squared(v: Any) -> Any:
    """Return the squared length of a matrix or of a number."""
    return sum(one**2 for one in v) if hasattr(v, "shape") else v**2


def inner(A: Any, B: Any) -> Any:
    """Return the inner product of two matrices or numbers."""
    return sum(A.multiply_elementwise(B)) if hasattr(A, "shape") else A * B


def exact(formula: Formula, values: Callable[[], Values]) -> Callable[[], bool]:
    """Return a check that every equation of a formula holds, entry by entry, at values made of sympy's symbols."""

    def check() -> bool:
        import sympy

        links = formula.links({"sq": squared, "dot": inner, **values()}, sympy.Rational)
        gaps = [left - right for left, sign, right in links if sign == "=="]
        entries = [one for gap in gaps for one in (gap if hasattr(gap, "shape") else [gap])]
        return bool(entries) and all(sympy.expand(one) == 0 for one in entries)

    return check


def arithmetic(formula: Formula, values: Callable[[], Values] = dict) -> Callable[[], bool]:
    """Return a check that a chain of relations holds between fractions."""

    def check() -> bool:
        return all(a <= b if sign == "<=" else a == b for a, sign, b in formula.links(values()))

    return check


def mean_of(expression: Any, entries: tuple[Any, ...], kurtosis: Any = 3) -> Any:
    """Return the expectation of a polynomial in independent entries of mean 0 and variance 1.

    Args:
        expression: of sympy.
        entries: its symbols that are random.
        kurtosis: their fourth moment. At 3 they are standard normal, E z^k = (k - 1)!! for even k. Otherwise no power
            above the fourth may occur, and a third one only beside a first one, whose mean is 0.

    Raises ValueError where a higher power occurs.
    """
    import sympy

    def moment(k: int) -> Any:
        if kurtosis == 3:
            return 0 if k % 2 else sympy.factorial2(k - 1)
        if k > 4:
            expected = "no power above the fourth beside a kurtosis that is not 3"
            checks.reject("expression", expression, expected, "leave out kurtosis for normal entries")
        return {0: 1, 1: 0, 2: 1, 3: sympy.Symbol("third"), 4: kurtosis}[k]

    terms = sympy.Poly(sympy.expand(expression), *entries).terms()
    return sympy.expand(sum(factor * sympy.prod([moment(k) for k in powers]) for powers, factor in terms))
