"""Docstrings for a terminal: the text, the formulas without LaTeX's commands, and what arguments mean."""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass

_SIGNS = {
    "alpha": "α", "beta": "β", "gamma": "γ", "delta": "δ", "epsilon": "ε", "varepsilon": "ε", "lambda": "λ", "mu": "μ",
    "nu": "ν", "sigma": "σ", "tau": "τ", "theta": "θ", "psi": "ψ", "phi": "φ", "pi": "π", "omega": "ω", "Delta": "Δ",
    "sum": "Σ", "cdot": "·", "in": " ∈ ", "notin": " ∉ ", "ne": " ≠ ", "neq": " ≠ ", "le": " ≤ ", "ge": " ≥ ",
    "leq": " ≤ ", "geq": " ≥ ", "pm": "±", "times": "×", "to": "→", "infty": "∞", "circ": "°", "partial": "∂",
    "lVert": "‖", "rVert": "‖", "Vert": "‖", "lvert": "|", "rvert": "|", "vert": "|", "mid": " | ", "ldots": "…",
    "dots": "…", "cup": " ∪ ", "setminus": " \\ ", "approx": " ≈ ", "lceil": "⌈", "rceil": "⌉", "lfloor": "⌊",
    "rfloor": "⌋", "prod": "Π", "langle": "⟨", "rangle": "⟩", "propto": " ∝ ", "top": "ᵀ", "star": "*", "ast": "*",
    "sqrt": "√", "quad": "  ", "qquad": "   ", "bar": "¯", "hat": "^", "tilde": "~", "ell": "ℓ", "forall": "∀",
}  # fmt: skip
_EMPTY = ("Bigl", "Bigr", "bigl", "bigr", "left", "right", "displaystyle", "limits", "Big", "big", "mathstrut")
_TEXT = ("mathrm", "text", "mathcal", "mathbf", "operatorname", "mathbb")
_LETTERS = {"¯": "\u0304", "^": "\u0302", "~": "\u0303"}


@dataclass(frozen=True)
class Described:
    """A parsed docstring.

    Args:
        paragraphs: the text before its first section; a displayed formula begins with a tab.
        arguments: what each argument means.

    Examples:
        >>> from likewise.losses import EmbeddingNorm
        >>> describe(EmbeddingNorm).paragraphs
        ('The mean length of the embeddings, mean ‖x‖: keeps raw embeddings from growing.',)
    """

    paragraphs: tuple[str, ...]
    arguments: dict[str, str]


def describe(thing: object) -> Described:
    """The docstring of a class or function, for a terminal.

    Examples:
        >>> from likewise.losses import NTXentLoss
        >>> describe(NTXentLoss).arguments["temperature"]
        'the temperature τ.'
    """
    text = inspect.getdoc(thing) or ""
    body, *sections = re.split(r"^(?:Args|Examples|Attributes|Returns|Raises):\n", text, flags=re.MULTILINE)
    given = sections[0] if re.search(r"^Args:$", text, re.MULTILINE) else ""
    paragraphs = []
    for block in re.split(r"(\$\$.*?\$\$)|\n\n|\n(?=\* )", body, flags=re.DOTALL):
        if block and block.strip():
            formula = block.startswith("$$")
            paragraphs.append("\t" + readable(block.strip("$")) if formula else plain(block))
    return Described(tuple(paragraphs), _arguments(given))


def plain(text: str) -> str:
    r"""Text without markup; with readable inline formulas.

    Examples:
        >>> plain("with $\\lambda$ as ``margin``")
        'with λ as margin'
    """
    return " ".join(
        re.sub(r"\$(.+?)\$", lambda found: readable(found[1]), text, flags=re.DOTALL).replace("`", "").split()
    )


def readable(formula: str) -> str:
    r"""Convert a LaTeX formula to plain characters.

    Examples:
        >>> readable(r"\frac1\alpha\log\Bigl[1+\sum_{k\in P_i}e^{-\alpha(s_{ik}-\lambda)}\Bigr]")
        '1/α log[1 + Σ_{k ∈ P_i} e^{-α(s_ik - λ)}]'
    """
    text = re.sub(rf"\\(?:{'|'.join(_EMPTY)})(?![a-zA-Z])", "", " ".join(formula.split()))
    text = re.sub(rf"\\(?:{'|'.join(_TEXT)})\s*(?:{{([^{{}}]*)}}|([a-zA-Z]))", _upright, text)
    text = re.sub(r"\\(bar|hat|tilde)\s*\{?(\\?[a-zA-Z]+)\}?", _accented, text)
    text = re.sub(r"\\[dt]?frac\s*(\d)\s*(\d|[a-zA-Z]|\\[a-zA-Z]+)", r"\1/\2 ", text)
    for _ in range(3):  # fractions inside fractions
        text = re.sub(rf"\\[dt]?frac\s*{_GROUP}\s*{_GROUP}", _fraction, text)
    text = re.sub(rf"\\sqrt\s*{_GROUP}", r"√(\1)", text)
    text = re.sub(r"\\([a-zA-Z]+)\s*", lambda f: _SIGNS.get(f[1], f" {f[1]} " if f[1] in _WORDS else f[1]), text)
    text = re.sub(r"\\[,;:!> ]", " ", text).replace("\\|", "‖").replace("\\{", "{").replace("\\}", "}")
    text = re.sub(r"([_^])\{([^{}\s]{1,2})\}", r"\1\2", text)
    for _ in range(2):
        text = re.sub(r"(?<![_^])\{([^{}]*)\}", r"\1", text)
    text = re.sub(r"(?<=[^\W_]|[\])}|])\s*([+=-])\s*(?=[\w\[({|‖Σ√])", r" \1 ", text)
    text = re.sub(r"(?<=[}\w])\s*(?=Σ)|(?<=\})(?=[a-zA-Z])|(?<=[+-])(?=log)", " ", text)
    text = re.sub(r"(log|cos|sin|exp|max|min|softplus|KL|tan) (?=[\[(_^])", r"\1", text)
    return re.sub(r"([\[(]) ", r"\1", " ".join(text.split()))


_GROUP = r"\{((?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*)\}"
_WORDS = ("log", "exp", "min", "max", "cos", "sin", "tan", "arccos")


def _upright(found: re.Match[str]) -> str:
    return "{" + (found[1] or found[2]).replace("-", "\u2011") + "}"  # a hyphen, not a minus


def _accented(found: re.Match[str]) -> str:
    letter = _SIGNS.get(found[2].lstrip("\\"), found[2].lstrip("\\"))
    return letter[0] + _LETTERS[_SIGNS[found[1]]] + letter[1:]


def _fraction(found: re.Match[str]) -> str:
    above, below = found[1].strip(), found[2].strip()
    if re.fullmatch(r"\w+", above) and re.fullmatch(r"\w+|\|[^|]+\|", below):
        return f"{above}/{below} "
    several = re.search(r"[+-]", re.sub(r"\{[^{}]*\}|\[[^\]]*\]_\+", "", re.sub(r"\{[^{}]*\}", "", above)))
    above = f"({above})" if several else above
    return f"[{above} / {below if re.fullmatch(_ONE, below) else f'({below})'}]"


_ONE = r"(?:\\[a-zA-Z]+|\w)+(?:_\{?\w+\}?)?"


def _arguments(text: str) -> dict[str, str]:
    found: dict[str, str] = {}
    name = None
    for line in text.splitlines():
        begins = re.match(r" {4}(\w+): (.*)", line)
        if begins:
            name = begins[1]
            found[name] = begins[2]
        elif name is not None and line.startswith(" " * 8):
            found[name] += " " + line.strip()
        elif line.strip():
            break
    return {name: plain(each) for name, each in found.items()}
