"""A small compiler: a graph of tensors in, loops in JavaScript out."""

from likewise.analysis.javascript.arrays import arrays_of
from likewise.analysis.javascript.kernels import number_text
from likewise.analysis.javascript.writer import Body, body_of, condition_text, size_text

__all__ = ["Body", "arrays_of", "body_of", "condition_text", "number_text", "size_text"]
