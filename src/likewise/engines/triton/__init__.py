"""Triton kernels generated from declarations.  The package needs Triton, so the dispatcher imports it on first use."""

from likewise.engines.triton.engine import TritonEngine

__all__ = ["TritonEngine"]
