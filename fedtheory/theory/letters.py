"""Formulas of a line of text in the letters that mathematics has: `sigma^2 <= E||x_i||` reads `σ² ≤ E‖xᵢ‖`.

`letters` reads formulas in ASCII, `untex` those in LaTeX between dollars. An index or a power for which Unicode has no
small letters stays behind its `_` or `^`; names of code stay as they are.
"""

import re

GREEK = {
    **dict(zip(("alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta"), "αβγδεζηθ")),
    **dict(zip(("kappa", "lambda", "mu", "nu", "xi", "rho"), "κλμνξρ")),
    **dict(zip(("sigma", "tau", "phi", "chi", "psi", "omega"), "στφχψω")),
    "eps": "ε",
    **dict(zip(("Gamma", "Delta", "Theta", "Lambda", "Xi", "Sigma", "Phi", "Psi", "Omega"), "ΓΔΘΛΞΣΦΨΩ")),
}  # fmt: skip
HIGH = dict(zip("0123456789+-=()abcdefghijklmnoprstuvwxyzT*", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁼⁽⁾ᵃᵇᶜᵈᵉᶠᵍʰⁱʲᵏˡᵐⁿᵒᵖʳˢᵗᵘᵛʷˣʸᶻᵀ⋆")) | {
    ",": ",",
    "⋆": "⋆",
}
LOW = dict(zip("0123456789+-=()aehijklmnoprstuvx", "₀₁₂₃₄₅₆₇₈₉₊₋₌₍₎ₐₑₕᵢⱼₖₗₘₙₒₚᵣₛₜᵤᵥₓ")) | {",": ","}
_NAMES = re.compile(rf"(?<![\w./'\"-])({'|'.join(GREEK)})(?![A-Za-z(]|_[A-Za-z]{{3}}|_\w+\(|\.[a-z]|[-/][a-z]{{2}})")
_SIGNS = {"<=": "≤", ">=": "≥", "!=": "≠", "+-": "±", "||": "‖"}
_ARROW = re.compile(r"(?<!\S)->(?=\s|$)")
_ROOT = re.compile(r"\bsqrt(?=\()|\bsqrt (?=[A-Za-z0-9]\b)")
_SUM, _GRADIENT = re.compile(r"\bsum_"), re.compile(r"\bgrad(_\w)? (?=[A-Za-z](?:\b|_))")
_INDEX = r"\{([^{}]*)\}|(-?\d+|(?:\*|T|in|[A-Za-z]\d?)(?![A-Za-z]))"
_SCRIPT = re.compile(rf"(?<=[\w)\]|‖∑'\u0300-\u036f⁰-ₜ])([_^])(?:{_INDEX})")
_NAME = re.compile(r"\b(?:[a-z]{2,}|[A-Z][a-z]+)_\w+|\b\w_[A-Za-z]{3,}|\b\w{2,}_\w+\(|\S*(?:::|\.py)\S*")
_TILDE, _TENSOR = re.compile(r"\b([A-Z])~"), re.compile(r"(?<=[\w\u0303] )\(x\)(?= [A-Z])")  # V~; U (x) V
_BAR, _HAT = re.compile(r"\b([xwgyfcdBUV]|(?:xi|[gx])_)bar(?![a-z])"), re.compile(r"\b([gxy])hat(?![a-z])")


def letters(text: str) -> str:
    """Write the ASCII formulas of a text in Greek letters, signs, small indices and powers."""
    kept: list[str] = []

    def keep(found: re.Match[str]) -> str:
        if found[0].split("_")[0] in (*GREEK, "grad", "sum"):
            return found[0]
        kept.append(found[0])
        return f"\0{chr(0xE000 + len(kept) - 1)}"  # so long in one private letter

    text = _BAR.sub(lambda found: f"{found[1].rstrip('_')}\u0304", text.replace("eta~", "eta\u0303"))
    text = _TENSOR.sub("⊗", _TILDE.sub("\\1\u0303", text))
    text = _HAT.sub("\\1\u0302", text)
    text = _NAME.sub(keep, text)
    for sign, shown in _SIGNS.items():
        text = text.replace(sign, shown)
    text = _ARROW.sub("→", text).replace("O(.)", "O(·)")
    text = _NAMES.sub(lambda found: GREEK[found[1]], _ROOT.sub("√", _SUM.sub("∑_", text)))
    text = _GRADIENT.sub(r"∇\1", text)
    before = ""
    while before != text:  # a power behind an index, an index of an index
        before, text = text, _SCRIPT.sub(_script, text)
    return re.sub("\0(.)", lambda found: kept[ord(found[1]) - 0xE000], text)


def _script(found: re.Match[str]) -> str:
    """An index or a power in small letters; in brackets, where there are none for it."""
    small, inner = HIGH if found[1] == "^" else LOW, (found[2] or found[3] or "").replace(" ", "")
    if set(inner) <= set(small):
        return "".join(small[sign] for sign in inner)
    return f"{found[1]}({found[2]})" if found[2] and len(found[2]) > 1 else f"{found[1]}{inner}"


def untex(text: str) -> str:
    """Write the LaTeX between dollars of a text in such letters, as a terminal shows them."""
    return re.sub(r"\$([^$]*)\$", lambda found: _joined(_Reader(found[1]).items()), text)


_SIGNS_OF = {
    "rel": dict(zip(
        ("le", "ge", "ne", "neq", "approx", "sim", "to", "in", "preceq", "ll", "gg", "triangleq", "ni", "equiv"),
        "≤≥≠≠≈∼→∈⪯≪≫≜∋≡",
    )),
    "bin": {"pm": "±", "times": "×", "otimes": "⊗", "bmod": "mod", "mid": "|", "cdot": "·"},
    "open": {"langle": "⟨", "lvert": "|", "lceil": "⌈", "begin": "[", "{": "{"},
    "close": {"rangle": "⟩", "rvert": "|", "rceil": "⌉", "end": "]", "}": "}"},
    "op": {"sum": "∑", "int": "∫", "prod": "∏"},
    "bar": {"Vert": "‖", "|": "‖", "vert": "|"},
    "mark": {"\\": ";"},
    "gap": {" ": " ", ",": " ", "quad": " "},
    "letter": {
        **GREEK, **dict(zip(("nabla", "star", "ell", "infty", "top", "perp", "forall", "pi"), "∇⋆ℓ∞T⊥∀π")),
        "dots": "…", "cdots": "…", "ldots": "…", "varepsilon": "ε",
    },
}  # fmt: skip
_NAMED = {name: (sign, kind) for kind, signs in _SIGNS_OF.items() for name, sign in signs.items()}
_PLAIN = dict.fromkeys("=<>", "rel") | dict.fromkeys("+-", "bin") | dict.fromkeys("([{", "open")
_PLAIN |= dict.fromkeys(")]}", "close") | dict.fromkeys(",;&", "mark") | {"|": "bar"}
_UNSEEN = {"left", "right", "big", "Big", "bigl", "bigr", *";!:"}
_ACCENTS = {"bar": "\u0304", "overline": "\u0304", "hat": "\u0302", "tilde": "\u0303", "widetilde": "\u0303"}
_FONTS = {"R": "ℝ", "D": "𝔻", "V": "𝕍"}
_SCRIPTS = dict(zip("ABCDEFHILMNOPRST", "𝒜ℬ𝒞𝒟ℰℱℋℐℒℳ𝒩𝒪𝒫ℛ𝒮𝒯"))
_HIGHER = HIGH | dict(zip("ABDEGHIJKLMNOPRUW", "ᴬᴮᴰᴱᴳᴴᴵᴶᴷᴸᴹᴺᴼᴾᴿᵁᵂ"))
_Item = tuple[str, str]  # shown, its kind


class _Reader:
    """Reads a formula in LaTeX as signs of a line, with what each is: a letter, a relation, a bracket, a fraction."""

    def __init__(self, tex: str) -> None:
        self.tokens, self.at, self.bars = re.findall(r"\\(?:[A-Za-z]+|.)|\S|\s+", tex), 0, set[str]()

    def items(self, last: str = "") -> list[_Item]:
        found: list[_Item] = []
        while self.at < len(self.tokens) and self.tokens[self.at] != last:
            if self.tokens[self.at] in "_^":
                sign = self._next()
                base, kind = found.pop() if found else ("", "letter")
                found.append((base + _small(sign, _joined(self._argument())), kind))
            else:
                found += self._one()
        self.at += 1
        return found

    def _next(self) -> str:
        self.at += 1
        return self.tokens[self.at - 1]

    def _argument(self) -> list[_Item]:
        while self.tokens[self.at].isspace():
            self.at += 1
        return self._one()

    def _raw(self) -> str:
        """The letters of an argument: of a name, of an environment."""
        while (first := self._next()).isspace():
            pass
        if first != "{":
            return first
        end = self.tokens.index("}", self.at)
        word, self.at = "".join(self.tokens[self.at : end]).replace("\\", ""), end + 1
        return word

    def _one(self) -> list[_Item]:
        """What the next token begins; a group is its items."""
        token = self._next()
        if token == "{":
            inner = self.items("}")
            return [(",", "letter")] if inner == [(",", "mark")] else inner  # of 25{,}000
        if not token.startswith("\\"):
            return [] if token.isspace() else self._sign(token, _PLAIN.get(token, "letter"))
        name = token[1:]
        if name in _UNSEEN:
            return []
        if name in ("frac", "tfrac"):
            above, below = self._argument(), self._argument()
            return [(f"{_factor(above, ('frac', 'bin', 'rel'))}/{_factor(below)}", "frac")]
        if name == "sqrt":
            root = _joined(self.items("]")[1:]) if self.tokens[self.at] == "[" else ""
            return [(f"{_small('^', root) if root else ''}√{_factor(self._argument())}", "letter")]
        if name == "binom":
            return [(f"C({_joined(self._argument())}, {_joined(self._argument())})", "letter")]
        if name in _ACCENTS:
            shown = _joined(self._argument())
            return [(shown[:1] + _ACCENTS[name] + shown[1:], "letter")]
        if name in ("mathbf", "boldsymbol"):
            return self._argument()
        if name in ("mathbb", "mathcal"):
            letter = self._raw()
            shown = (_FONTS if name == "mathbb" else _SCRIPTS).get(letter, letter)
            return [(shown, "op" if letter == "E" and name == "mathbb" else "letter")]
        if name in ("mathrm", "operatorname", "text"):
            name = self._raw()
        elif name in ("begin", "end"):
            self._raw()
        return self._sign(*_NAMED.get(name, (name, "op" if len(name) > 1 and name.isalpha() else "letter")))

    def _sign(self, shown: str, kind: str) -> list[_Item]:
        if kind == "bar":
            kind = "close" if shown in self.bars else "open"
            self.bars ^= {shown}
        return [(shown, kind)]


def _small(sign: str, inner: str) -> str:
    """An index or a power: in small letters, where there are such for all of it."""
    small, inner = _HIGHER if sign == "^" else LOW, re.sub(r" ?([-+=,<>≤≥≠∈]) ?", r"\1", inner)
    word = re.fullmatch("[A-Za-z]{3,}", inner)
    if set(inner) <= set(small) - {","} and not word:
        return "".join(small[letter] for letter in inner)
    alone = len(inner) == 1 or word
    return sign + (inner if alone else f"({inner})" if sign == "^" else f"{{{inner}}}")


def _factor(items: list[_Item], apart: tuple[str, ...] = ()) -> str:
    """A part of a fraction, in brackets where it is no single sign, or with `apart`, where it has one of those."""
    kinds, depth = [], 0
    for _, kind in items:
        depth -= kind == "close"
        kinds += [kind] * (depth == 0 and kind != "open")
        depth += kind == "open"
    bare = (
        not set(kinds[1:]) & {*apart, "op"} and kinds[0] not in ("frac", "op")
        if apart
        else kinds in (["letter"], ["close"])
    )
    number = "".join(shown for shown, _ in items).isdigit()
    return _joined(items) if bare or number else f"({_joined(items)})"


def _joined(items: list[_Item]) -> str:
    """Signs as one line, with spaces around relations and sums and brackets around fractions that are factors."""
    line = ""
    before = "open"
    for (shown, kind), after in zip(items, [*(kind for _, kind in items[1:]), "close"], strict=True):
        ends = before in ("letter", "close", "frac")  # a factor ends here
        if kind == "frac" and (ends or before == "op" or after in ("letter", "open", "op", "frac")):
            shown, kind = f"({shown})", "close"
        if kind == "rel" and not (shown == "=" and line.endswith(":")):
            line = f"{line.rstrip()} {shown} "
        elif kind == "rel":
            line = f"{line[:-1].rstrip()} := "
        elif kind == "bin":
            line += f" {shown} " if ends else shown
        elif kind == "mark":
            line += shown if after == "close" else f"{shown} "
        elif kind == "gap":
            line = f"{line.rstrip()} "
        else:
            apart = (kind == "op" and ends) or (before == "op" and kind not in ("open", "close") and shown != "(")
            glued = re.search(r"[_^][A-Za-z]+$", line) and shown[:1].isalnum()
            line += f" {shown}" if (apart or glued) and not line.endswith(" ") else shown
        before = kind if kind != "gap" else before
    return line.strip()
