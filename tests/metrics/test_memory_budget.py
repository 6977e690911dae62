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
torch.set_num_threads(1)
generator = torch.Generator().manual_seed(0)
labels = torch.arange(10_000) // {per_class}
embeddings = torch.randn(10_000, 64, generator=generator)
gallery = torch.randn(100_000, 64, generator=generator)
gallery_labels = torch.arange(100_000) // {per_class}
# libraries are loaded once
retrieval(embeddings[:200], labels[:200])
verification(embeddings[:100], torch.arange(100) // 5)
before = high_water(forget=True)
{call}
print((high_water() - before) / 2**20)
"""
ONE_HUB = "lambda i, j: (i[:, None] // 2 == j // 2) | ((i[:, None] == 0) & (j < 2000))"
"""Classes of two, and one query with two thousand positives."""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads Linux's high-water mark")
@pytest.mark.parametrize(
    ("call", "per_class"),
    [
        ("retrieval(embeddings, labels, memory={memory})", 4),
        ("retrieval(embeddings, labels, memory={memory})", 2500),
        ("retrieval(embeddings[:1], labels[:1], gallery, gallery_labels, memory={memory})", 10),
        (f"retrieval(embeddings[:3000], relevant={ONE_HUB}, memory={{memory}})", 4),
        ("verification(embeddings, labels, memory={memory})", 100),
    ],
)
def test_the_budget_is_kept(call: str, per_class: int):
    """Peak memory in use; the full matrix would take 381 MiB."""
    budget = 32 * 2**20
    program = HIGH_WATER + PEAK.format(per_class=per_class, call=call.format(memory=budget))
    environment = {**os.environ, **GIVES_BACK}
    command = [sys.executable, "-c", program]
    result = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    assert float(result.stdout) < 1.25 * budget / 2**20
