"""Triton kernels generated from declarations.  The package needs Triton, so the dispatcher imports it on first use."""

from likewise.engines.triton.engine import TritonEngine
from likewise.engines.triton.histograms import compute_histograms
from likewise.engines.triton.limits import compute_excess

__all__ = ["TritonEngine", "compute_excess", "compute_histograms"]
