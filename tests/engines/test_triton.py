"""The Triton engine without a GPU: its kernels in Triton's interpreter, in a process that enables it before the import."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from likewise import losses
from likewise.engines import dispatch
from tests.engines import triton_gpu

HERE = Path(__file__).parent
PARTS = ("inputs calls precision bins blending positives", "losses formulas tables graphs")
EMBEDDINGS, LABELS = torch.randn(6, 3, generator=torch.Generator().manual_seed(0)), torch.arange(6) // 2


def run_interpreted(parts: str) -> str:
    """Run some test files in Triton's interpreter and return their output if a test fails."""
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "--tb=short",
        "--no-header",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:xdist",
    ]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    # the interpreter multiplies tiles with NumPy, whose kernels with fused operations round by the place in a tile
    environment |= {"TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1", "OPENBLAS_CORETYPE": "Prescott"}
    result = subprocess.run(
        [*command, *(str(HERE / f"triton_{part}.py") for part in parts.split())],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
        cwd=HERE.parents[1],
    )
    return "" if result.returncode == 0 else f"{result.stdout}\n{result.stderr}"


@pytest.mark.slow
@pytest.mark.parametrize("parts", PARTS)
def test_kernels_in_the_interpreter(parts: str) -> None:
    pytest.importorskip("triton")
    failure = run_interpreted(parts)
    assert not failure, failure


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
@pytest.mark.parametrize("task", triton_gpu.CHECKS, ids=[task.__name__ for task in triton_gpu.CHECKS])
def test_on_a_gpu(task) -> None:
    task()


def test_without_a_gpu_it_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TRITON_INTERPRET", raising=False)
    for loss in (losses.MultiSimilarityLoss(backend="triton"), losses.ArcFaceLoss(3, 3, backend="triton")):
        with pytest.raises(ValueError, match="backend must be 'dense' or 'chunked' on this device, cpu") as caught:
            loss(EMBEDDINGS, LABELS)
        assert "\n" not in str(caught.value)


def test_without_triton_it_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    monkeypatch.setattr(dispatch, "has_triton", lambda: False)
    with pytest.raises(ImportError, match=r"needs Triton.*pip install triton") as caught:
        losses.MultiSimilarityLoss(backend="triton")(EMBEDDINGS, LABELS)
    assert "\n" not in str(caught.value)
