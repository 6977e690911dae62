"""All triplets and quadruplets, exactly, without writing them down."""

from __future__ import annotations

import itertools
import subprocess
import sys

import numpy as np
import pytest
import torch

from likewise.engines import map_rows, run
from likewise.engines.hinges import count_active
from likewise.formula import SNR, Cosine, Labels, Masks, PairBatch
from likewise.losses import QuadrupletLoss, TripletLoss
from likewise.losses.quadruplets import sum_quadruplets
from tests.memory import HIGH_WATER


def brute_force_counts(S, positive, negative, margin, band=None):
    m, n = S.shape
    counts = torch.zeros(m, n)
    active = torch.zeros(m, dtype=torch.long)
    for i in range(m):
        for p in range(n):
            for k in range(n):
                inside = band is None or S[i, p] - band < S[i, k] < S[i, p]
                if positive[i, p] and negative[i, k] and inside and S[i, k] > S[i, p] - margin:
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
    for margin, band in ((0.0, None), (0.25, None), (0.1, None), (0.25, 0.5), (0.5, 0.25), (0.1, 0.3), (-0.1, 0.3)):
        expected = brute_force_counts(S, positive, negative, margin, band)
        counts, active = count_active(S, positive, negative, margin, band)
        assert torch.equal(counts, expected[0])
        assert torch.equal(active.long(), expected[1])


@pytest.mark.parametrize("seed", range(5))
def test_quadruplets_with_many_ties(seed: int):
    """Similarities of a few distinct values, not even mutual, against four loops."""
    generator = torch.Generator().manual_seed(seed)
    n = 9
    S = torch.randint(0, 5, (n, n), generator=generator).double() / 4
    y = torch.randint(0, 4, (n,), generator=generator)
    mutual = seed % 2 == 0
    if mutual:
        S = torch.maximum(S, S.T)
    # a similarity that is not mutual must be one that says so
    batch = PairBatch(Labels(y), Cosine() if mutual else SNR(), matrix=S)
    sums, units, active = [0.0] * n, [0] * n, [0] * n
    for a, p, i, k in itertools.product(range(n), repeat=4):
        if a != p and y[a] == y[p] and len({int(y[a]), int(y[i]), int(y[k])}) == 3:
            value = float(S[i, k] - S[a, p]) + 0.25
            sums[a], units[a], active[a] = sums[a] + max(value, 0.0), units[a] + 1, active[a] + (value > 0.0)
    masked = batch.under(Masks(*batch.relation.masks())).replace(labels=y)
    for each, backend in itertools.product((batch, masked), ("dense", "chunked")):
        [part] = sum_quadruplets(each, map_rows(each, backend), margin=0.25)
        assert part.total.tolist() == pytest.approx(sums)
        assert part.units.tolist() == units
        assert part.nonzero.tolist() == active


def test_more_active_triplets_than_32_bits_hold():
    """Two classes of 1,280: four billion triplets, counted one anchor at a time by numpy."""
    torch.manual_seed(0)
    embeddings, y = torch.nn.functional.normalize(torch.randn(2560, 8)), torch.arange(2560) % 2
    batch = PairBatch(Labels(y), Cosine(normalize=False), anchors=embeddings)
    term = TripletLoss(0.5).declare()
    [counted], [part] = (run([term], batch, reduction, "chunked") for reduction in ("mean", "nonzero"))
    S = (embeddings @ embeddings.T).numpy()
    active, total = 0, 0.0
    for i in range(2560):
        negatives = np.sort(S[i, (y != y[i]).numpy()])
        thresholds = S[i, (y == y[i]).numpy() & (np.arange(2560) != i)].astype(np.float64) - 0.5
        first = np.searchsorted(negatives, thresholds, side="right")
        above = np.append(np.cumsum(negatives[::-1].astype(np.float64))[::-1], 0.0)
        active += int((len(negatives) - first).sum())
        total += float((above[first] - (len(negatives) - first) * thresholds).sum())
    assert int(counted.units.sum()) == 2560 * 1279 * 1280
    assert active > 2**31
    assert int(part.nonzero.sum()) == pytest.approx(active, rel=1e-7)  # but for rounding at a threshold
    assert float(part.total.double().sum()) == pytest.approx(total, rel=1e-6)


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
import torch
from likewise.losses import TripletLoss
loss = TripletLoss(0.1)
embeddings, labels = torch.randn(4096, 128, requires_grad=True), torch.arange(4096) // 4
loss(embeddings[:64], labels[:64]).backward()
before = high_water(forget=True)
loss(embeddings, labels).backward()
print(high_water() - before)
"""
    result = subprocess.run([sys.executable, "-c", HIGH_WATER + program], capture_output=True, text=True, check=True)
    assert int(result.stdout) < 2 * 2**30
