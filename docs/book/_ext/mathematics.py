"""ASCII mathematics of the ledger's sentences, such as `E||g_i||^2 <= sigma^2`, as LaTeX between dollars.

Words stay words: what is set is a run of neighbouring words that all read as mathematics and of which one can be
nothing else (an index, a power, a Greek letter, a relation). What is no such run, or one whose brackets do not match,
is written in the letters of mathematics, as an output of a notebook is.
"""

import ast
import itertools
import re
from functools import cache

from stage import plain

from fedtheory.theory.letters import GREEK as IN_LETTERS
from fedtheory.theory.letters import letters as in_letters

GREEK = {*IN_LETTERS, "pi", "Pi"} - {"eps"}
FUNCTIONS = {
    "sum": r"\sum ",
    "min": r"\min ",
    "max": r"\max ",
    "exp": r"\exp ",
    "log": r"\log ",
    "tr": r"\operatorname{tr}",
}
FUNCTIONS |= {"Tr": r"\operatorname{Tr}", "det": r"\det ", "rank": r"\operatorname{rank}", "var": r"\operatorname{var}"}
FUNCTIONS |= {
    "grad": r"\nabla ",
    "Hess": r"\nabla^2 ",
    "prod": r"\prod ",
    "Cov": r"\operatorname{Cov}",
    "inf": r"\inf ",
}
FUNCTIONS |= {"proj": r"\mathrm{proj}", "Var": r"\operatorname{Var}", "diag": r"\operatorname{diag}", "cos": r"\cos "}
FUNCTIONS |= {"sin": r"\sin ", "Proj": r"\operatorname{Proj}", "ln": r"\ln "}
ACCENTED = {
    "xbar": r"\bar x",
    "wbar": r"\bar w",
    "gbar": r"\bar g",
    "ghat": r"\hat g",
    "Ubar": r"\bar U",
    "Vbar": r"\bar V",
}
ACCENTED |= {"ybar": r"\bar y", "fbar": r"\bar f", "cbar": r"\bar c", "dbar": r"\bar d", "Bbar": r"\bar B"}
ACCENTED |= {"Ybar": r"\bar Y"}
ACCENTED |= {"Gu": r"\Gamma_u", "Gv": r"\Gamma_v", "etilde": r"\tilde e"}
SIGNS = {
    "<=": r"\le ", ">=": r"\ge ", "!=": r"\ne ", "->": r"\to ", "...": r"\dots ", "..": r"\dots ", "||": r"\Vert ",
    "+-": r"\pm ", "<<": r"\ll ", ">>": r"\gg ", "**": "^", ":=": ":=", "*": r"\cdot ", "|": r"\vert ", "~": r"\sim ",
    "<": r"\lt ", ">": r"\gt ", "%": r"\%", "#": r"\#", "{": r"\{", "}": r"\}", "⊗": r"\otimes ",
}  # fmt: skip
TOKEN = re.compile(
    r"[A-Za-z]+|\d+(?:,\d{3})+|\d+(?:\.\d+)?(?:e[+-]?\d+)?|<=|>=|!=|<-|->|\.\.\.|\.\.|\|\||\+-|<<|>>|\*\*|:=|\S|\s+"
)
LETTERS = re.compile(r"[A-Za-z]+")
PRODUCT = r"m[A-Z]{1,3}|md[A-Z]{1,2}|mn|w[KL]|d[UV]"  # of letters without a sign between them
NAME = re.compile(rf"[A-Z]{{1,3}}|[a-z]|[A-Za-z]'|{PRODUCT}")
STRONG = re.compile(r"[A-Za-z0-9\])|}~'>](_|\^|\*\*)[\w({*+-]|<=|>=|\|\||^[A-Za-z]\*$|\bsqrt\(")
ALLOWED = re.compile(r"[\w\s^{}()\[\]|<>=+\-*/.,:;~'!%&#⊗]+")
OPEN, CLOSE = "([{", ")]}"


def is_word(name: str) -> bool:
    """Whether letters are a word of English, and no symbol."""
    return not (NAME.fullmatch(name) or name in GREEK or name in FUNCTIONS or name in ACCENTED or name == "sqrt")


@cache
def kind(word: str) -> str:
    """ "strong", "weak" or "" for a word between spaces, without the punctuation behind it."""
    if not word or not ALLOWED.fullmatch(word) or re.search(r"::|__|\.\w*[a-z]{2}|^[-.]+$|\w-[a-z]{2}", word):
        return "" if word not in ("-", "...") else "weak"
    bare = re.sub(r"[_^]\{[^}]*\}|\^\([^()]*\)|[_^][A-Za-z]+", "", word)  # an index may be a word, a power of words
    if any(is_word(name) for name in LETTERS.findall(re.sub(r"\d+(\.\d+)?e[+-]?\d+", "1", bare))):
        return ""
    if STRONG.search(word) or any(name in GREEK for name in LETTERS.findall(bare)):
        return "strong"
    if re.fullmatch(r"[A-Za-z]", word) and word in "aAI":
        return "article"
    return "weak"


def balanced(text: str) -> bool:
    stack = []
    for sign in text:
        if sign in OPEN:
            stack.append(sign)
        elif sign in CLOSE and (not stack or OPEN.index(stack.pop()) != CLOSE.index(sign)):
            return False
    return not stack and len(BAR.findall(text)) % 2 == 0


BAR = re.compile(r"(?<!\s)\||\|(?!\s)")  # " | " with spaces is "given"


def unclosed(text: str) -> bool:
    opened = sum(text.count(sign) for sign in OPEN) + len(re.findall(r"<(?=[^\s=<-])", text))
    return opened > sum(text.count(sign) for sign in CLOSE) + len(re.findall(r"(?<=[^\s-])>(?![=>])", text))


def runs(text: str) -> list[tuple[bool, str]]:
    """The text in pieces, (whether it is mathematics, piece), with the spaces between them in the pieces."""
    words = [part for word in WORD.findall(text) for part in re.split(r"(?<=\w)(?=-[a-z]{4,})", word)]
    found: list[tuple[bool, str]] = []
    at = 0
    while at < len(words):
        end = _reach(words, at)
        while end > at:
            lead, core, behind = _trim("".join(words[at:end]))
            if _is_mathematics(core):
                found += [(False, lead), (True, core), (False, behind)]
                break
            end -= 1
        else:
            found.append((False, words[at]))
            end = at + 1
        at = end
    return [piece for piece in found if piece[1]]


WORD = re.compile(r"(?:\^\([^()]*\)|\S)+\s*")  # `S^(1 - s)` is one


def _reach(words: list[str], at: int) -> int:
    """Where the run that begins at a word ends at the latest."""
    end = at
    while end < len(words):
        word = words[end].rstrip()
        core = word if word.endswith("...") else word.rstrip(",;:.?")
        bare = core.strip("()") if core.count("(") != core.count(")") else core
        if not (kind(core) or kind(bare)):
            break
        end += 1
        if core != word and not unclosed("".join(words[at:end])):
            break
    return end


def _trim(run: str) -> tuple[str, str, str]:
    """A run without the brackets and marks of the sentence around it: (before, run, behind)."""
    core = run.rstrip()
    while core and (
        (core[-1] in ",;:.?" and not core.endswith("...")) or (core[-1] == ")" and core.count(")") > core.count("("))
    ):
        core = core[:-1]
    lead = 0
    while core[lead : lead + 1] == "(" and core[lead:].count("(") > core.count(")"):
        lead += 1
    inner = core[lead + 1 : -1]
    if core[lead:].startswith("(") and core.endswith(")") and balanced(inner) and RELATION.search(inner):
        return core[: lead + 1], inner, run[len(core) - 1 :]
    return core[:lead], core[lead:], run[len(core) :]


RELATION = re.compile(r" (=|<=|>=|<|>) ")


def _is_mathematics(core: str) -> bool:
    words = core.split()
    if not words or not balanced(core) or words[0] in EDGES or words[-1] in EDGES or unclosed(core):
        return False
    if re.match(r"[\d.,-]+ \(", core):
        return False
    if words[-1] in ("a", "A") or (words[0] in ("a", "A", "I") and len(words) > 1 and words[1] not in RELATIONS):
        return False
    return any(kind(word) == "strong" for word in words) or (
        RELATION.search(core) is not None or re.fullmatch(r"\w=[\w./]+", core) is not None
    )


RELATIONS = ("=", "<=", ">=", "<", ">", "!=", "->", "~", "+", "/")
EDGES = (*RELATIONS, "⊗", "-", "...", "min", "max", "sum", "|", "*")


@cache
def latex(text: str) -> str:
    """One run as LaTeX."""
    tokens = TOKEN.findall(text)
    out: list[str] = []
    at = 0
    powers = 0  # how many of _ and ^ in a row were set on the same base, by sign
    seen: set[str] = set()

    def group(start: int) -> tuple[str, int]:
        """What stands behind _ or ^: one token, or a bracket."""
        if start >= len(tokens):
            return "", start
        one = tokens[start]
        if one in "({":
            depth, end = 0, start
            while end < len(tokens):
                depth += (tokens[end] in "({") - (tokens[end] in ")}")
                end += 1
                if depth == 0:
                    break
            inner = "".join(tokens[start + 1 : end - 1])
            return latex(inner), end
        if one in "+-" and "".join(tokens[start + 1 : start + 2]).isalnum():
            inner, end = group(start + 1)
            return one + inner, end
        if one in MARKS:
            return MARKS[one], start + 1
        return (letters(one, True) if one[0].isalpha() else one), start + 1

    def letters(one: str, index: bool = False) -> str:
        if one in GREEK:
            return f"\\{one} "
        if one in ACCENTED:
            return ACCENTED[one]
        if one in FUNCTIONS and not index:
            return FUNCTIONS[one]
        whole = len(one) == 1 or one.isupper() or (index and len(one) == 2) or re.fullmatch(PRODUCT, one)
        return one if whole else rf"\mathrm{{{one}}}"

    while at < len(tokens):
        one = tokens[at]
        if one in ("_", "^", "**"):
            sign = "_" if one == "_" else "^"
            if sign in seen:
                out.insert(powers, "{")
                out.append("}")
                seen.clear()
            inner, at = group(at + 1)
            out.append(f"{sign}{{{inner}}}")
            seen.add(sign)
            continue
        seen.clear()
        powers = len(out)
        if one == "sqrt" and (spaced := [*tokens, ""][at + 1].isspace()) + at + 1 < len(tokens):
            inner, at = group(at + 1 + spaced)
            inner = "T" if inner == r"\top" else inner  # no transpose under a root
            out.append(rf"\sqrt{{{inner}}}")
            continue
        if one[0].isalpha():
            behind = "".join(tokens[at + 1 : at + 3]).strip()[:1]
            index = re.match(
                r"_(?:\{[^}]*\}|\w+)\s*(<=|.?)", "".join(tokens[at + 1 :])
            )  # E_22, E_{i,t}: no expectation
            named = index is not None and index[1] not in ("[", "|", "<", "(")
            piece = r"\mathbb E" if one == "E" and not named and behind and behind in "[|<_" else letters(one)
            if one == "x" and SIDES.fullmatch("".join(tokens[max(at - 2, 0) : at + 3])):
                piece = r"\times "
            if at + 1 < len(tokens) and tokens[at + 1] == "~":
                piece, at = rf"\tilde{{{piece.strip()}}}", at + 1
            out.append(piece)
        elif one == "*" and at and tokens[at - 1][-1].isalpha() and [*tokens, ""][at + 1] in ("", ")", "]", ","):
            out.append(r"^{\star}")
        elif one == "<" and at + 1 < len(tokens) and not tokens[at + 1].isspace() and ">" in tokens[at:]:
            out.append(r"\langle ")
        elif one == ">" and at and not tokens[at - 1].isspace() and r"\langle " in out:
            out.append(r"\rangle ")
        elif one == "|" and 0 < at < len(tokens) - 1 and tokens[at - 1].isspace() and tokens[at + 1].isspace():
            out.append(r"\mid ")
        elif one.isspace():
            out.append(r"\," if out and at + 1 < len(tokens) and _beside(tokens[at - 1], tokens[at + 1]) else " ")
        elif re.fullmatch(r"\d+(\.\d+)?e[+-]?\d+", one):
            number, power = one.split("e")
            out.append(rf"{number}\cdot 10^{{{int(power)}}}")
        elif one[0].isdigit():
            out.append(one.replace(",", "{,}"))
        else:
            out.append(SIGNS.get(one, one))
        at += 1
    return "".join(out).strip()


MARKS = {"*": r"\star", "+": "+", "-": "-", "T": r"\top", "perp": r"\perp"}
SIDES = re.compile(r"(?:[\d.]+|[mnrdkzDJ)]) x (?:[\d.]+|[mnrdkzDJ(])")  # of a matrix


def _beside(left: str, right: str) -> bool:
    """Two factors with a space between them keep a small one."""
    return left[-1].isalnum() and right[0].isalnum()


def prose(text: str) -> str:
    """A sentence of the ledger as Markdown, its mathematics set."""
    parts = COMMAND.split(worded(" ".join(text.split())))
    shown = [f"`{part}`" if at % 2 else _set(part) for at, part in enumerate(parts)]
    return "".join(shown).strip()


COMMAND = re.compile(r"(python -m fedtheory[^;:,)`]*[^;:,)` .])")


@cache
def _set(text: str) -> str:
    lead = " " if text[:1].isspace() else ""
    shown = []
    for maths, pieces in itertools.groupby(runs(text), lambda found: found[0]):
        whole = [piece for _, piece in pieces]
        shown += [f"${latex(piece)}$" for piece in whole] if maths else [_spaced("".join(whole))]
    return lead + "".join(shown)


INDEXED = re.compile(r"((?<![\w.])[A-Za-z]_[A-Za-z](?!\w))")


def _spaced(text: str) -> str:
    """Words, with the spaces at their ends; a letter whose index has no small letter is set."""
    parts = INDEXED.split(in_letters(TIMES.sub(" × ", text)))
    return "".join(f"${latex(part)}$" if at % 2 else _kept(part) for at, part in enumerate(parts))


def _kept(text: str) -> str:
    inner = plain(text)
    return (" " if text[:1].isspace() else "") + inner + (" " if text[-1:].isspace() and inner else "")


CALL = re.compile(r"\b[A-Z]\w*\((?=\w+=)")
PLAIN = re.compile(r"\[(?=\[)|\{(?=')")  # a matrix, a dictionary
TENSOR = re.compile(r"(?<=[\w~] )\(x\)(?= [A-Z])")  # U (x) V


NUMBERS = re.compile(r"\[([-\d.e]+(?:, [-\d.e]+){2,})\]")  # a pair in brackets is an interval
TIMES = re.compile(r"(?<=\d) x (?=\d)")


def worded(text: str) -> str:
    """Objects of the code and lists that a sentence quotes, as numbers with their names; the signs of products."""
    text = TENSOR.sub("⊗", text)
    for pattern in (CALL, PLAIN):
        at = 0
        while found := pattern.search(text, at):
            end, depth = found.end(), 1
            while end < len(text) and depth:
                depth += (text[end] in OPEN) - (text[end] in CLOSE)
                end += 1
            try:
                tree = ast.parse(text[found.start() : end], mode="eval").body
                said = _said(tree)
            except (SyntaxError, ValueError):
                said = text[found.start() : end]
            text = text[: found.start()] + said + text[end:]
            at = found.start() + len(said) if pattern is PLAIN else found.start() + 1
    text = NUMBERS.sub(r"(\1)", text)
    return re.sub(r": (True|False)\b", lambda m: f": {YES[m[1] == 'True']}", text)


YES = {True: "yes", False: "no"}


def _said(node: ast.expr) -> str:
    if isinstance(node, ast.Call):
        return ", ".join(f"{part.arg} = {_said(part.value)}" for part in node.keywords)
    return said(ast.literal_eval(node))


def said(value: object) -> str:
    """A plain value without Python's marks: numbers, words, rows."""
    if isinstance(value, bool):
        return YES[value]
    if value is None:
        return "none"
    if isinstance(value, float):
        return f"{value:g}" if value == float(f"{value:g}") else f"{value:.6g}"
    if isinstance(value, dict):
        return ", ".join(f"{key} = {said(part)}" for key, part in value.items())
    if isinstance(value, (list, tuple)):
        nested = any(isinstance(part, (list, tuple)) for part in value)
        return f"({('; ' if nested else ', ').join(said(part)[1:-1] if nested else said(part) for part in value)})"
    return str(value)
