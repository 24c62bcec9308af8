# ruff: noqa: RUF001 - Greek letters are what this is about
r"""Formulas of docstrings as a terminal shows them: TeX as Unicode, for the little of it that docstrings use.

>>> plain_math(r"p_k(t)\propto\exp(\eta\sqrt{t-1}\,r_k)")
'p_k(t) ∝ exp(η√(t-1) r_k)'
"""

from __future__ import annotations

import re

SYMBOLS = {
    "alpha": "α", "beta": "β", "gamma": "γ", "delta": "δ", "epsilon": "ε", "zeta": "ζ", "eta": "η", "theta": "θ",
    "lambda": "λ", "mu": "μ", "nu": "ν", "xi": "ξ", "pi": "π", "rho": "ρ", "sigma": "σ", "tau": "τ", "phi": "φ", "psi": "ψ",
    "omega": "ω", "Delta": "Δ", "Gamma": "Γ", "Phi": "Φ", "Psi": "Ψ", "Omega": "Ω", "ell": "ℓ",
    "sum": "Σ", "prod": "Π", "int": "∫", "infty": "∞", "lfloor": "⌊", "rfloor": "⌋",
    "lceil": "⌈", "rceil": "⌉", "cdot": "·", "ldots": "...", "dots": "...",
}  # fmt: skip
#: with a space on both sides
RELATIONS = {
    "le": "≤", "leq": "≤", "ge": "≥", "geq": "≥", "ne": "≠", "in": "∈", "notin": "∉", "sim": "~", "propto": "∝", "approx": "≈",
    "pm": "±", "times": "x", "to": "→", "bmod": "mod", "cup": "∪", "cap": "∩", "setminus": "\\",
}  # fmt: skip
ACCENTS = {"hat": "\u0302", "widehat": "\u0302", "tilde": "\u0303", "bar": "\u0304"}
NOTHING = ("big", "Big", "bigl", "bigr", "left", "right", "!")  # only how large or how near
TOKEN = re.compile(r"\\[A-Za-z]+|\\.|[{}]|[^\\{}]")
DIGITS = str.maketrans("0123456789+-n", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻ⁿ")


def plain_math(formula: str) -> str:
    r"""A formula in TeX as text.

    >>> plain_math(r"\hat\mu_k+\sqrt{\frac{1+a}{2}\ln t/N_k}"), plain_math(r"K(2^{27}-2)")
    ('μ̂_k+√(((1+a)/2) ln t/N_k)', 'K(2²⁷-2)')
    """
    text = _rendered(TOKEN.findall(formula), 0)[0]
    text = re.sub(r" +", " ", text)
    text = re.sub(r"(?<=[(\[{⌊⌈]) | (?=[)\]},;:⌋⌉])", "", text)
    text = re.sub(
        r"(?<=\S[=<>/+-]) (?=[a-z])", "", text
    )  # where the formula has no space before the sign either
    return re.sub(r"(?<=[a-z]{2}) (?=[(_^{])", "", text).strip()


def _rendered(tokens: list[str], at: int) -> tuple[str, int]:
    """The text from a token to the end of its group, and the place behind it."""
    parts: list[str] = []
    while at < len(tokens) and tokens[at] != "}":
        part, at = _one(tokens, at)
        parts.append(part)
    return "".join(parts), at + 1


def _one(tokens: list[str], at: int) -> tuple[str, int]:
    """The text of one token, with the groups that belong to it, and the place behind it."""
    token = tokens[at]
    name = token[1:]
    if token == "{":
        return _rendered(tokens, at + 1)
    if token in ("^", "_"):
        inner, at = _argument(tokens, at + 1)
        if token == "^" and re.fullmatch(r"[0-9n+-]+", inner):
            return inner.translate(DIGITS), at
        whole = len(inner) <= 1 or (inner[0], inner[-1]) == ("(", ")")
        follows = at < len(tokens) and re.match(r"\\?[A-Za-z]", tokens[at]) is not None
        return f"{token}{inner if whole else f'({inner})'}{' ' * follows}", at
    if not token.startswith("\\"):
        return token, at + 1
    if name in ACCENTS:
        inner, at = _argument(tokens, at + 1)
        return f"{inner[:1]}{ACCENTS[name]}{inner[1:]}", at
    if name == "sqrt":
        inner, at = _argument(tokens, at + 1)
        return f"√{_grouped(inner)}", at
    if name == "frac":
        top, at = _argument(tokens, at + 1)
        bottom, at = _argument(tokens, at)
        return f"({_grouped(top)}/{_grouped(bottom)})", at
    if name in ("mathrm", "text", "operatorname", "mathbb", "mathrel"):
        return _argument(tokens, at + 1)
    if name in NOTHING:
        return "", at + 1
    if name in SYMBOLS:
        return SYMBOLS[name], at + 1
    if name in RELATIONS:
        return f" {RELATIONS[name]} ", at + 1
    if not name.isalpha():  # \, is a thin space, \{ a brace
        return name if name in "{}%&#_$|" else " ", at + 1
    return f" {name} ", at + 1  # \ln, \max, \exp, ...


def _argument(tokens: list[str], at: int) -> tuple[str, int]:
    """The group, or the one token, that follows a command."""
    while at < len(tokens) and tokens[at] == " ":
        at += 1
    return _one(tokens, at) if at < len(tokens) else ("", at)


def _grouped(text: str) -> str:
    """In parentheses where it is more than a number or a name."""
    return text if re.fullmatch(r"[0-9.]+|\w", text) else f"({text.strip()})"


def plain_text(docstring: str) -> str:
    r"""A docstring without the marks of its markup.

    >>> plain_text("the rate :math:`\\eta` of ``ABE``, see `Player`, is **not** small")
    'the rate η of ABE, see Player, is not small'
    """
    text = re.sub(r":math:`([^`]*)`", lambda found: plain_math(" ".join(found[1].split())), docstring)
    text = re.sub(r":[a-z]+:`([^`]*)`", r"\1", text)
    text = re.sub(r"``([^`]*)``|`([^`]*)`_?", lambda found: found[1] or found[2] or "", text)
    return re.sub(r"\*\*([^*]+)\*\*", r"\1", text)
