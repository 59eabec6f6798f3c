r"""Formulas of the theory pages. One text gives a page its LaTeX, a step its inequality and a measurement its number.

A formula is written as Python writes it: `D <= 1.041*K*lr**2*sigma**2`. The letters of its page turn names into LaTeX.
"""

import ast
import functools
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from fedtheory.core import checks

NUMBER = re.compile(r"(?<![\w.])\d+(?:\.\d+)?")
_RELATIONS = {ast.LtE: r"\le", ast.GtE: r"\ge", ast.Lt: "<", ast.Gt: ">", ast.Eq: "="}
_LETTERS = {
    "sqrt": r"\sqrt{}", "min": r"\min({})", "E": r"\mathbb E{}", "sq": r"\Vert{}\Vert^2", "dot": r"\langle{}\rangle",
}  # fmt: skip
_LAYOUT = re.compile(r"\s+|\\[,;]|\\q?quad|\\cdot|\\(?:[bB]ig+|left|right)[lr]?(?![a-zA-Z])")


@dataclass(frozen=True)
class Formula:
    r"""One formula, an expression or a chain of relations; several stand behind each other with commas.

    Fields:
        text: Python's syntax. `/` prints a fraction, `//` a slash; both divide.
        letters: the LaTeX of its names. One with {} is a function: `sq` is `\Vert{}\Vert^2`.

    >>> Formula("h == L*eta, u <= 1/8", {"eta": r"\tilde\eta"}).latex()
    'h=L\\tilde\\eta,u\\le\\frac18'
    >>> Formula("u <= 33/4*h").right({"h": 2})
    Fraction(33, 2)
    """

    text: str
    letters: Mapping[str, str] = field(default_factory=dict, repr=False)

    def latex(self) -> str:
        """Render the formula for a page."""
        return _shown(_parsed(self.text), _LETTERS | dict(self.letters))[0]

    def links(self, values: Mapping[str, Any], number: Callable[[str], Any] = Fraction) -> list[tuple[Any, str, Any]]:
        """Evaluate every relation: its left side, its sign as Python writes it, and its right side.

        Args:
            values: of all names, of functions too; of whatever kind: numbers, tensors, symbols of sympy or z3.
            number: makes a number of its text; `float` where values are floats or tensors.
        """
        tree = _parsed(self.text)
        found = []
        for part in tree.elts if isinstance(tree, ast.Tuple) else [tree]:
            if isinstance(part, ast.Compare):
                sides = [_value(side, values, number) for side in (part.left, *part.comparators)]
                found += zip(sides, [_SIGNS[type(op)] for op in part.ops], sides[1:])
        return found

    def right(self, values: Mapping[str, Any], number: Callable[[str], Any] = Fraction) -> Any:
        """Evaluate the last side, or the expression where there is no relation."""
        return _value(_last(_parsed(self.text)), values, number)

    def terms(self, values: Mapping[str, Any], number: Callable[[str], Any] = float) -> tuple[Any, ...]:
        """Evaluate the summands of the last side one by one."""
        return tuple(_value(one, values, number) for one in _summands(_last(_parsed(self.text))))

    def side(self, at: int) -> "Formula":
        """Return one side of the formula, counted from the left, or from the right by -1."""
        return replace(self, text=ast.get_source_segment(self.text, _sides(self.text)[at]))

    def term(self, at: int) -> "Formula":
        """Return one summand of the last side."""
        return replace(self, text=ast.get_source_segment(self.text, _summands(_sides(self.text)[-1])[at]))

    @property
    def name(self) -> str:
        """The name on the left, which the right side bounds or defines. Raises ValueError where there is none."""
        tree = _parsed(self.text)
        if not (isinstance(tree, ast.Compare) and isinstance(tree.left, ast.Name)):
            checks.reject("formula", self.text, "one name on its left side", "write name == expression")
        return tree.left.id

    def says(self, words: str) -> bool:
        """Whether it has these words, not inside of a name or number."""
        return re.search(_whole(words), self.text) is not None

    def changed(self, old: str, new: str) -> "Formula":
        """Return it with other words in the place of the first `old`. Raises ValueError where it does not say `old`."""
        if not self.says(old):
            checks.reject("old", old, f"words of {self.text}", "quote the formula's text")
        return replace(self, text=re.sub(_whole(old), lambda _: new, self.text, count=1))

    def neighbours(self) -> list["Formula"]:
        """Return all formulas in which one number is one more, the last digit of a decimal."""
        found = []
        for number in NUMBER.finditer(self.text):
            more = f"{int(number[0].replace('.', '')) + 1}".zfill(len(number[0].replace(".", "")))
            if "." in number[0]:
                places = len(number[0].partition(".")[2])
                more = f"{more[:-places]}.{more[-places:]}"
            found.append(replace(self, text=self.text[: number.start()] + more + self.text[number.end() :]))
        return found


class Root:
    """A number whose square is given: a measurement has sigma^2, a formula says sigma**2.

    >>> Root(9) ** 2
    9
    """

    def __init__(self, square: Any) -> None:
        self.square = square

    def __pow__(self, power: int) -> Any:
        if power % 2:
            checks.reject("power", power, "an even number", "use the number itself")
        return self.square ** (power // 2)


def named(letters: Mapping[str, str], **texts: str) -> dict[str, Formula]:
    """Make the formulas of a page, by their names on it."""
    return {name: Formula(" ".join(text.split()), letters) for name, text in texts.items()}


def plain(latex: str) -> str:
    """Return LaTeX without its layout: spaces, sizes and kinds of brackets, needless braces, a last full stop."""
    text = _LAYOUT.sub("", latex.replace(r"\tfrac", r"\frac"))
    text = re.sub(r"\\?\[|\\\{", "(", re.sub(r"\\?\]|\\\}", ")", text))
    return re.sub(r"\{(\\[a-zA-Z]+|\w)\}", r"\1", text).rstrip(".,:;")


_SIGNS = {ast.LtE: "<=", ast.GtE: ">=", ast.Lt: "<", ast.Gt: ">", ast.Eq: "=="}


@functools.cache
def _parsed(text: str) -> ast.expr:
    return _Minus().visit(ast.parse(text, mode="eval").body)


class _Minus(ast.NodeTransformer):
    """Python reads -a*b as (-a)*b; a page writes -(a*b)."""

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        self.generic_visit(node)
        if isinstance(node.op, (ast.Mult, ast.Div)) and isinstance(node.left, ast.UnaryOp):
            return ast.UnaryOp(ast.USub(), ast.BinOp(node.left.operand, node.op, node.right))
        return node


def _sides(text: str) -> list[ast.expr]:
    """The sides as Python reads them, which know their place in the text."""
    tree = ast.parse(text, mode="eval").body
    return [tree.left, *tree.comparators] if isinstance(tree, ast.Compare) else [tree]


def _last(tree: ast.expr) -> ast.expr:
    tree = tree.elts[-1] if isinstance(tree, ast.Tuple) else tree
    return tree.comparators[-1] if isinstance(tree, ast.Compare) else tree


def _whole(words: str) -> str:
    before, after = (r"(?<![\w.])" if words[0].isalnum() else ""), (r"(?![\w.])" if words[-1].isalnum() else "")
    return before + re.escape(words) + after


def _summands(tree: ast.expr) -> list[ast.expr]:
    if isinstance(tree, ast.BinOp) and isinstance(tree.op, ast.Add):
        return [*_summands(tree.left), tree.right]
    return [tree]


def _value(tree: ast.expr, values: Mapping[str, Any], number: Callable[[str], Any]) -> Any:
    match tree:
        case ast.Constant(value):
            return number(repr(value))
        case ast.Name(id):
            return values[id]
        case ast.Call(ast.Name(id), args):
            return values[id](*(_value(one, values, number) for one in args))
        case ast.UnaryOp(ast.USub(), operand):
            return -_value(operand, values, number)
        case ast.BinOp(left, ast.Pow(), ast.Constant(int(power))):
            return _value(left, values, number) ** power
        case ast.BinOp(left, op, right):
            return _OPERATIONS[type(op)](_value(left, values, number), _value(right, values, number))
    raise TypeError(f"a formula cannot have {ast.unparse(tree)}")


_OPERATIONS: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.Div: lambda a, b: a / b,
    ast.FloorDiv: lambda a, b: a / b,
    ast.Pow: lambda a, b: a**b,
}


def _shown(tree: ast.expr, letters: Mapping[str, str]) -> tuple[str, int]:
    """LaTeX, and how tightly it binds: 0 relation, 1 sum, 2 product, 3 power, 4 symbol."""
    show = lambda one, least=0: _bracketed(*_shown(one, letters), least)
    match tree:
        case ast.Constant(value):
            return repr(value), 4
        case ast.Name(id):
            return letters.get(id, id), 4
        case ast.Tuple(elts):
            return ",".join(show(one) for one in elts), 0
        case ast.Compare(left, ops, comparators):
            sides = [(_RELATIONS[type(op)], show(one, 1)) for op, one in zip(ops, comparators)]
            return functools.reduce(_joined, [part for pair in sides for part in pair], show(left, 1)), 0
        case ast.UnaryOp(ast.USub(), operand):
            return "-" + show(operand, 2), 1
        case ast.BinOp(left, ast.Add(), right):
            return f"{show(left, 1)}+{show(right, 1)}", 1
        case ast.BinOp(left, ast.Sub(), right):
            return f"{show(left, 1)}-{show(right, 2)}", 1
        case ast.BinOp(left, ast.Mult(), right):
            first, second = show(left, 2), show(right, 2)
            return _joined(first, r"\cdot" + second if second[0].isdigit() else second), 2
        case ast.BinOp(left, ast.Div(), right):
            return functools.reduce(_joined, [r"\frac", _braced(show(left)), _braced(show(right))]), 2
        case ast.BinOp(left, ast.FloorDiv(), right):
            return f"{show(left, 2)}/{show(right, 3)}", 2
        case ast.BinOp(left, ast.Pow(), right):
            return f"{show(left, 4)}^{_braced(show(right))}", 3
        case ast.Call(ast.Name(id), args):
            return _called(letters[id], [_shown(one, letters) for one in args])
    raise TypeError(f"a formula cannot have {ast.unparse(tree)}")


def _called(template: str, args: list[tuple[str, int]]) -> tuple[str, int]:
    before, after = template.split("{}")
    if template == r"\sqrt{}":
        return _joined(before, _braced(args[0][0])), 4
    inner = ",".join(_bracketed(*one, 0 if after else 2) for one in args)
    return _joined(before, _joined(inner, after)), 4 if after else 2


def _bracketed(text: str, binds: int, least: int) -> str:
    return text if binds >= least else f"({text})"


def _braced(text: str) -> str:
    return text if re.fullmatch(r"\d|[a-zA-Z]|\\[a-zA-Z]+", text) else f"{{{text}}}"


def _joined(first: str, second: str) -> str:
    return f"{first} {second}" if re.search(r"\\[a-zA-Z]+$", first) and second[:1].isalpha() else first + second
