"""Programs that run in Triton's interpreter, which must be enabled before Triton is imported."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest


def run_interpreted(program: str) -> str:
    """Run a program in a process with the interpreter and return what it prints; fail with its errors."""
    pytest.importorskip("triton")
    # NumPy, which multiplies tiles, rounds by the place in a tile with fused operations
    environment = {**os.environ, "TRITON_INTERPRET": "1", "OPENBLAS_CORETYPE": "Prescott", "OMP_NUM_THREADS": "1"}
    result = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
    return result.stdout.strip()
