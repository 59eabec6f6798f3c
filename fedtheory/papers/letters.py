"""Formulas of a line of text in the letters that mathematics has: `sigma^2 <= E||x_i||` reads `σ² ≤ E‖xᵢ‖`.

An index or a power for which Unicode has no small letters stays behind its `_` or `^`; names of code stay as they are.
"""

import re

GREEK = {
    **dict(zip(("alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta"), "αβγδεζηθ")),
    **dict(zip(("kappa", "lambda", "mu", "nu", "xi", "rho"), "κλμνξρ")),
    **dict(zip(("sigma", "tau", "phi", "chi", "psi", "omega"), "στφχψω")),
    "eps": "ε",
    **dict(zip(("Gamma", "Delta", "Theta", "Lambda", "Xi", "Sigma", "Phi", "Psi", "Omega"), "ΓΔΘΛΞΣΦΨΩ")),
}  # fmt: skip
_COMMANDS = {
    **GREEK,
    **dict(zip(("nabla", "sum", "star", "le", "ge", "ne", "cdot", "times", "ell", "infty", "to"), "∇∑⋆≤≥≠·×ℓ∞→")),
    **dict(zip(("pm", "approx", "sqrt", "Vert", "langle", "rangle", "top"), "±≈√‖⟨⟩ᵀ")),
}
_HIGH = dict(zip("0123456789+-=()abcdefghijklmnoprstuvwxyzT*", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁼⁽⁾ᵃᵇᶜᵈᵉᶠᵍʰⁱʲᵏˡᵐⁿᵒᵖʳˢᵗᵘᵛʷˣʸᶻᵀ⋆")) | {
    ",": ","
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
    """A text with its formulas in Greek letters, signs, small indices and powers."""
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
    small, inner = _HIGH if found[1] == "^" else LOW, (found[2] or found[3] or "").replace(" ", "")
    if set(inner) <= set(small):
        return "".join(small[sign] for sign in inner)
    return f"{found[1]}({found[2]})" if found[2] and len(found[2]) > 1 else f"{found[1]}{inner}"


def untex(text: str) -> str:
    """A label of a picture, its TeX between dollars in such letters."""
    return re.sub(r"\$([^$]*)\$", lambda found: _formula(found[1]), text)


_FRACTION = re.compile(r"\\t?frac\{([^{}]*)\}\{([^{}]*)\}|\\t?frac(\w)(\w)")
_ACCENTS = {"bar": "\u0304", "hat": "\u0302", "tilde": "\u0303"}
_ACCENT = re.compile(r"\\(bar|hat|tilde)(?: |\{)?(\w|\\[a-z]+)\}?")


def _formula(tex: str) -> str:
    tex = re.sub(r"\\(?:mathbb|mathrm|mathcal|operatorname)\{?(\w+)\}?", r"\1", tex)
    tex = _ACCENT.sub(lambda found: found[2] + _ACCENTS[found[1]], tex)
    tex = _FRACTION.sub(lambda found: f"({found[1] or found[3]}/{found[2] or found[4]})", tex)
    tex = re.sub(r"\\[|]", "‖", re.sub(r"\\(?:left|right|[,;!])", " ", tex))
    tex = re.sub(r"\\([A-Za-z]+)(?: (?=[A-Za-z\\]))?", lambda found: _COMMANDS.get(found[1], found[1]), tex)
    tex = re.sub(r"√\{([^{}]*)\}", r"√(\1)", tex).replace("^⋆", "^*").replace("^ᵀ", "ᵀ")
    return re.sub(r"[{}\\]", "", letters(" ".join(tex.split())))
