"""All triplets and quadruplets, exactly, without writing them down."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch

from likewise.losses import QuadrupletLoss, TripletLoss
from likewise.losses.triplet import sums_above, triplet_counts


def brute_force_counts(S, positive, negative, margin):
    m, n = S.shape
    counts = torch.zeros(m, n)
    active = torch.zeros(m, dtype=torch.long)
    for i in range(m):
        for p in range(n):
            for k in range(n):
                if positive[i, p] and negative[i, k] and S[i, k] > S[i, p] - margin:
                    counts[i, p] -= 1
                    counts[i, k] += 1
                    active[i] += 1
    return counts, active


@pytest.mark.parametrize("seed", range(10))
def test_counts_with_many_ties(seed: int):
    """Similarities of a few distinct values: a negative exactly at the threshold is not active."""
    generator = torch.Generator().manual_seed(seed)
    S = torch.randint(0, 4, (7, 9), generator=generator).float() / 4
    kind = torch.randint(0, 3, (7, 9), generator=generator)
    positive, negative = kind == 0, kind == 1
    for margin in (0.0, 0.25, 0.1):
        expected = brute_force_counts(S, positive, negative, margin)
        counts, active = triplet_counts(S, positive, negative, margin)
        assert torch.equal(counts, expected[0])
        assert torch.equal(active.long(), expected[1])


@pytest.mark.parametrize("seed", range(5))
def test_sums_above_thresholds_by_group(seed: int):
    generator = torch.Generator().manual_seed(seed)
    values, thresholds = (torch.randint(0, 5, (4, 4), generator=generator).double() for _ in range(2))
    groups, threshold_groups = (torch.randint(-1, 2, (4, 4), generator=generator) for _ in range(2))
    counted = torch.rand(4, 4, generator=generator) < 0.7
    sums, numbers = sums_above(values, counted, groups, thresholds, threshold_groups)
    for i in range(4):
        for j in range(4):
            above = counted & (groups == threshold_groups[i, j]) & (values > thresholds[i, j])
            assert numbers[i, j] == above.sum()
            assert sums[i, j] == pytest.approx(float((values[above] - thresholds[i, j]).sum()))


def test_float32_keeps_its_digits_where_sums_cancel():
    """2.6 million triplets: the float32 loss agrees with float64 to rounding."""
    torch.manual_seed(0)
    embeddings = torch.nn.functional.normalize(torch.randn(512, 16) + torch.randn(8, 16).repeat(64, 1))
    labels = torch.arange(512) % 8
    for loss in (TripletLoss(0.1), QuadrupletLoss()):
        single, double = loss(embeddings, labels), loss(embeddings.double(), labels)
        assert single.item() == pytest.approx(double.item(), rel=1e-5)


@pytest.mark.slow
def test_all_triplets_of_4096_fit_into_two_gibibytes():
    program = """
import resource, torch
from likewise.losses import TripletLoss
loss = TripletLoss(0.1)
embeddings, labels = torch.randn(4096, 128, requires_grad=True), torch.arange(4096) // 4
loss(embeddings[:64], labels[:64]).backward()
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
loss(embeddings, labels).backward()
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    unit = 1 if sys.platform == "darwin" else 1024
    assert int(result.stdout) * unit < 2 * 2**30
