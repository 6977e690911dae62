"""Kernels generated from declarations.  Needs Triton, so it is imported only where it is asked for."""

from likewise.backends.fused.engine import FusedEngine
from likewise.backends.fused.whole import whole

__all__ = ["FusedEngine", "whole"]
