"""Batches of labeled images, of views of unlabeled ones, and of clusters."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from likewise.data import SemiSupervisedSampler
from likewise.losses import NTXentLoss

LABELS = torch.arange(12).repeat_interleave(10)
SIZES = {"classes": 8, "per_class": 2}


def test_views_are_what_the_relation_views_is():
    """Without labels a batch is every image twice, and a loss on it is the self-supervised one."""
    sampler = SemiSupervisedSampler(LABELS, labeled=0.0, **SIZES)
    assert not sampler.mines
    batch = next(iter(sampler))
    assert batch[::2] == batch[1::2]
    assert len(set(batch)) == 8
    embeddings, targets = torch.randn(16, 5), sampler.targets[batch]
    wanted = NTXentLoss()(embeddings[::2], references=embeddings[1::2], relation="views")
    torch.testing.assert_close(NTXentLoss()(embeddings, targets), wanted)


@pytest.mark.parametrize("clusters", [None, 6])
def test_a_mixture(clusters: int | None):
    """Labeled images keep their class, the others never meet it; half of a batch is labeled."""
    sampler = SemiSupervisedSampler(LABELS, labeled=0.25, clusters=clusters, seed=4, **SIZES)
    again = SemiSupervisedSampler(LABELS, labeled=0.25, clusters=clusters, seed=4, **SIZES)
    if clusters:
        with pytest.raises(RuntimeError, match=r"update\(embeddings\) must be called before"):
            next(iter(sampler))
        sampler.update(torch.nn.functional.one_hot(LABELS % 6).float() + 0.01 * torch.randn(120, 6))
        again.load_state_dict(sampler.state_dict())
    targets = sampler.targets
    known = targets == LABELS
    assert int(known.sum()) == 30
    assert int(targets[~known].min()) >= 12
    assert len(targets[~known].unique()) == (clusters or 90)
    if clusters:  # k-means finds what the embeddings say
        pairs = targets[~known][:, None] == targets[~known][None, :]
        assert torch.equal(pairs, (LABELS[~known] % 6)[:, None] == (LABELS[~known] % 6)[None, :])
    first = list(sampler)
    for batch in first:
        rows = targets[batch].reshape(8, 2)
        assert torch.equal(rows[:, 0], rows[:, 1])
        assert len(rows[:, 0].unique()) == 8
        assert int((rows[:, 0] < 12).sum()) == 4
    assert list(again) == first
    assert {len(batch) for batch in first} == {16}


def test_all_labels_are_plain_classes():
    sampler = SemiSupervisedSampler(LABELS, labeled=1.0, clusters=None, **SIZES)
    assert torch.equal(sampler.targets, LABELS)
    assert all(len(set(LABELS[batch].tolist())) == 8 for batch in sampler)


def test_more_labels_include_fewer_and_shares_fit():
    known = [SemiSupervisedSampler(LABELS, labeled=share, **SIZES).targets < 12 for share in (0.05, 0.2)]
    assert bool((known[1] | ~known[0]).all())
    whole = list(SemiSupervisedSampler(LABELS, labeled=0.2, **SIZES))
    parts = [list(SemiSupervisedSampler(LABELS, labeled=0.2, rank=rank, world_size=2, **SIZES)) for rank in (0, 1)]
    assert [one + other for one, other in zip(*parts, strict=True)] == whole


def test_what_it_refuses():
    with pytest.raises(ValueError, match=r"labeled must be a fraction from 0 to 1, but it is 5"):
        SemiSupervisedSampler(LABELS, labeled=5)
    with pytest.raises(ValueError, match=r"clusters must be at most 60, the number of unlabeled images, but it is 61"):
        SemiSupervisedSampler(LABELS, labeled=0.5, clusters=61, **SIZES)
    with pytest.raises(ValueError, match=r"labeled_classes must be at most 2, the number of classes, but it is 4"):
        SemiSupervisedSampler(LABELS, classes=2, per_class=2, labeled_classes=4)
    with pytest.raises(ValueError, match=r"classes must be"):
        SemiSupervisedSampler(LABELS, labeled=0.0, clusters=3, classes=8, per_class=2)
    assert np.array_equal(SemiSupervisedSampler(LABELS, labeled=0.5, **SIZES).labels, LABELS.numpy())
