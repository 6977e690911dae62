"""Re-identification: queries find their identity in a gallery of other cameras."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from likewise.formula import SimilarityLike
from likewise.metrics.arrays import Array, check_labels
from likewise.metrics.chunks import MEMORY
from likewise.metrics.retrieval import retrieval


def reidentification(
    embeddings: Array,
    labels: Array,
    cameras: Array,
    references: Array | None = None,
    reference_labels: Array | None = None,
    reference_cameras: Array | None = None,
    *,
    ks: Sequence[int] = (1, 5, 10, 20),
    similarity: SimilarityLike = "cosine",
    ties: str = "expected",
    memory: int = MEMORY,
) -> dict[str, Any]:
    r"""Compute the mAP and the cumulative matching characteristic as reported in papers on re-identification.

    References with the identity *and* the camera of a query are excluded (Zheng et al. 2015, Market-1501): an image
    that the same camera took a moment later is neither a match nor a mistake.  References of other identities from the
    query's camera are kept.  ``Rank-k`` is whether a match is among the first k, $[r_1 \le k]$; mAP is the mean over
    queries of $\frac1R \sum_i i / r_i$ over all ranks.  Queries without a match from another camera are excluded from
    all means.

    Images that count neither as a match nor as a mistake, such as those with the label −1 in Market-1501, must be
    removed from the references; distractors, whose identity no query has, must be kept.

    Args:
        embeddings: queries, ``(m, d)``, any float dtype.
        labels: their identities, ``(m,)``, any integers.
        cameras: their cameras, ``(m,)``, any integers.
        references: the gallery, ``(n, d)``; by default, each query is searched among the other queries.
        reference_labels: its identities, ``(n,)``.
        reference_cameras: its cameras, ``(n,)``.
        ks: the ranks of the cumulative matching characteristic.
        similarity: how embeddings are compared, as in `retrieval`.
        ties: as in `retrieval`.
        memory: bytes that the computation may take in addition to its inputs and its result.

    Returns:
        ``"mAP"`` and ``"Rank-k"`` as fractions, and the counts ``"queries"`` and ``"queries_without_positive"``.

    Examples:
        >>> import torch
        >>> gallery = torch.tensor([[1.0, 0.1], [1.0, 0.5], [0.9, 0.6]])
        >>> scores = reidentification(
        ...     torch.tensor([[1.0, 0.0]]),
        ...     torch.tensor([7]),
        ...     torch.tensor([1]),
        ...     gallery,
        ...     torch.tensor([7, 8, 7]),
        ...     torch.tensor([1, 1, 2]),
        ...     ks=(1, 2),
        ... )
        >>> scores
        {'mAP': 0.5, 'Rank-1': 0.0, 'Rank-2': 1.0, 'queries': 1, 'queries_without_positive': 0}
    """
    if references is None and reference_cameras is not None:
        raise ValueError("reference_cameras must be given together with references only, but references is None")
    if references is not None and reference_cameras is None:
        raise ValueError("reference_cameras must be given together with references, but it is None")
    ids, reference_ids = shot_ids(labels, cameras, reference_labels, reference_cameras)
    scores = retrieval(
        embeddings,
        labels,
        references,
        reference_labels,
        metrics=("mAP", *(f"R@{k}" for k in ks)),
        similarity=similarity,
        ties=ties,
        ids=ids,
        reference_ids=reference_ids,
        memory=memory,
    )
    return {name.replace("R@", "Rank-"): value for name, value in scores.items()}


def shot_ids(
    labels: Array, cameras: Array, reference_labels: Array | None = None, reference_cameras: Array | None = None
) -> tuple[Tensor, Tensor | None]:
    """Return one id for each identity in each camera, as ``ids`` and ``reference_ids`` of `retrieval`.

    Args:
        labels: identities of the queries, ``(m,)``.
        cameras: their cameras, ``(m,)``.
        reference_labels: identities of the gallery, ``(n,)``, if there is one.
        reference_cameras: its cameras, ``(n,)``.

    Examples:
        >>> import torch
        >>> shot_ids(torch.tensor([7, 7, 8]), torch.tensor([0, 1, 1]))[0].tolist()
        [0, 1, 2]
    """
    queries = _pairs("labels", labels, "cameras", cameras)
    if reference_labels is None or reference_cameras is None:
        return torch.unique(queries, dim=0, return_inverse=True)[1], None
    gallery = _pairs("reference_labels", reference_labels, "reference_cameras", reference_cameras)
    codes = torch.unique(torch.cat([queries, gallery.to(queries.device)]), dim=0, return_inverse=True)[1]
    return codes[: len(queries)], codes[len(queries) :]


def _pairs(name: str, labels: Array, camera_name: str, cameras: Array) -> Tensor:
    """Return identities and cameras as two columns, ``(n, 2)``."""
    checked = check_labels(name, labels, None, None, "embeddings")
    return torch.stack([checked, check_labels(camera_name, cameras, len(checked), checked.device, name)], dim=1)
