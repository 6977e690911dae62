"""Metrics keep their memory budget, in addition to inputs, results and some numbers per sample."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from tests.memory import GIVES_BACK, HIGH_WATER

PEAK = """
import torch
from likewise.metrics import retrieval, verification
generator = torch.Generator().manual_seed(0)
embeddings = torch.randn(6000, 64, generator=generator)
gallery = torch.randn(100_000, 64, generator=generator)
few, many, some = (torch.arange(6000) // size for size in (4, 1500, 100))
mixed = torch.cat([few[:3000], 10_000 + many[:3000]])
hub = lambda i, j: (i[:, None] // 2 == j // 2) | ((i[:, None] == 0) & (j < 2000))  # one query has 2,000 positives
# libraries are loaded once
retrieval(embeddings[:200], few[:200])
verification(embeddings[:100], torch.arange(100) // 5)
calls = [
    lambda: retrieval(embeddings, few, memory=budget),
    lambda: retrieval(embeddings, many, memory=budget),
    lambda: retrieval(embeddings, few, metrics=("R@1", "MAP@R"), memory=budget),
    lambda: retrieval(embeddings, some, metrics=("R@1", "MAP@R"), memory=budget),
    lambda: retrieval(embeddings, some, metrics=("R@1",), memory=budget),
    lambda: retrieval(embeddings, mixed, memory=budget),
    lambda: retrieval(embeddings[:1], few[:1], gallery, torch.arange(100_000) // 10, memory=budget),
    lambda: retrieval(embeddings[:3000], relevant=hub, memory=budget),
    lambda: verification(embeddings, some, memory=budget),
]
for threads in (1, 2):
    torch.set_num_threads(threads)
    for call in calls:
        before = high_water(forget=True)
        call()
        print((high_water() - before) / 2**20)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads Linux's high-water mark")
def test_the_budget_is_kept():
    """Peak memory in use; the full matrix would take 137 MiB, and one of booleans 34."""
    budget = 16 * 2**20
    program = HIGH_WATER + f"budget = {budget}\n" + PEAK
    environment = {**os.environ, **GIVES_BACK}
    command = [sys.executable, "-c", program]
    result = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    peaks = [float(line) for line in result.stdout.split()]
    assert len(peaks) == 18
    assert max(peaks) < 1.25 * budget / 2**20, peaks
