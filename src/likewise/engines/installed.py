"""Optional packages that engines use."""

from __future__ import annotations

import functools
import importlib.util
import warnings


@functools.cache
def has_triton() -> bool:
    """Return whether Triton is installed; a warning says once that it is not."""
    there = importlib.util.find_spec("triton") is not None
    if not there:
        warnings.warn(
            "Triton is not installed, so large batches on the GPU run in chunks; pip install triton", stacklevel=2
        )
    return there
