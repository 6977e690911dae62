"""Kernels generated from declarations.  Needs Triton, so it is imported only where it is asked for."""

from likewise.engines.triton.engine import TritonEngine

__all__ = ["TritonEngine"]
