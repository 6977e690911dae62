"""mAP and CMC as re-identification reports them, against the loop that its toolboxes have."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.nn.functional import normalize

from likewise.metrics import reidentification


def loop(distances, query_ids, gallery_ids, query_cameras, gallery_cameras, ranks):
    """Rank the gallery, remove what shares identity and camera, and average: the usual published evaluation."""
    precisions, curves = [], []
    for query, order in enumerate(np.argsort(distances, axis=1, kind="stable")):
        same = gallery_ids[order] == query_ids[query]
        kept = ~(same & (gallery_cameras[order] == query_cameras[query]))
        hits = same[kept].astype(float)
        if not hits.any():
            continue
        curves.append((hits.cumsum() > 0)[: max(ranks)])
        precisions.append((hits * hits.cumsum() / np.arange(1, len(hits) + 1)).sum() / hits.sum())
    curve = np.stack(curves).mean(axis=0)
    return np.mean(precisions), [curve[rank - 1] for rank in ranks], len(curves)


def test_a_gallery_of_other_cameras():
    generator = torch.Generator().manual_seed(0)
    people = torch.randint(0, 12, (140,), generator=generator)
    cameras = torch.randint(1, 4, (140,), generator=generator)
    people[0], people[1:3] = 99, 77  # one without a match, two by one camera
    cameras[1:3] = 1
    points = normalize(torch.randn(140, 16, generator=generator) + 1.5 * torch.eye(100, 16)[people % 16], dim=1)
    queries, gallery = slice(0, 40), slice(40, 140)
    people[40], cameras[40] = 77, 1
    both = [(points[part], people[part], cameras[part]) for part in (queries, gallery)]
    expected = loop(
        1 - (points[queries] @ points[gallery].T).numpy(),
        *(people[part].numpy() for part in (queries, gallery)),
        *(cameras[part].numpy() for part in (queries, gallery)),
        (1, 5, 10),
    )
    found = reidentification(*both[0], *both[1], ks=(1, 5, 10))
    assert found["mAP"] == pytest.approx(expected[0])
    assert [found[f"Rank-{k}"] for k in (1, 5, 10)] == pytest.approx(expected[1])
    assert (found["queries"], found["queries_without_positive"]) == (expected[2], 40 - expected[2])
    assert 40 - expected[2] >= 3
    alone = reidentification(*both[1])
    similarities = points[gallery] @ points[gallery].T
    own = loop(1 - similarities.numpy(), *[people[gallery].numpy()] * 2, *[cameras[gallery].numpy()] * 2, (1,))
    assert alone["mAP"] == pytest.approx(own[0])
    with pytest.raises(ValueError, match="reference_cameras must be given together with references"):
        reidentification(*both[0], *both[1][:2])
