"""JavaScript printed from declarations, for pages that compute losses in the browser."""

from importlib.resources import files

from likewise.engines.javascript.folds import FOLDS, FoldSpelling
from likewise.engines.javascript.printer import number_text, print_conditions, print_value
from likewise.engines.javascript.symbols import Parameter, Symbol, formula_of, value_at

RUNTIME = (files(__package__) / "runtime.js").read_text(encoding="utf-8")
"""The code that printed functions call: similarities, relations, and the backward pass from a matrix to points."""

LINKS = frozenset({"cosine", "dot", "squared_euclidean", "euclidean", "snr"})
"""The similarities that the runtime computes, by name."""

__all__ = [
    "FOLDS",
    "LINKS",
    "RUNTIME",
    "FoldSpelling",
    "Parameter",
    "Symbol",
    "formula_of",
    "number_text",
    "print_conditions",
    "print_value",
    "value_at",
]
