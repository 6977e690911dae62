"""Promises of the whole room: memory, many labels, large galleries."""

from __future__ import annotations

import subprocess
import sys

import pytest

PEAK = """
import resource, torch
from likewise.metrics import retrieval, verification, geometry
torch.set_num_threads(1)
generator = torch.Generator().manual_seed(0)
n, dim = {n}, 64
labels = torch.arange(n) // {per_class}
embeddings = torch.randn(n, dim, generator=generator)
retrieval(embeddings[:2000], labels[:2000])  # what is loaded once
{warm}
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
{call}
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads Linux's high-water mark")
@pytest.mark.parametrize("per_class", [4, 100, 5000])
@pytest.mark.parametrize("call", ["retrieval(embeddings, labels, memory={memory})"])
def test_the_budget_is_kept(call: str, per_class: int):
    """The whole matrix would take 381 MiB; so much may nobody take."""
    budget = 32 * 2**20
    program = PEAK.format(n=10_000, per_class=per_class, warm="", call=call.format(memory=budget))
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert float(result.stdout) < 1.25 * budget / 2**20
