"""Classification by nearest neighbors: the k most similar references vote."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from likewise.formula import SimilarityLike, embeddings_as_given, one_of, whole_number
from likewise.metrics.arrays import Array, as_tensor, check_labels
from likewise.metrics.chunks import MEMORY, split_rows
from likewise.metrics.inputs import Exclusion, MetricInputs, check_inputs
from likewise.metrics.positives import CountNeeds
from likewise.metrics.precision import exact_precision
from likewise.metrics.similarity_rows import SimilarityRows
from likewise.progress import track

WEIGHTS = ("uniform", "similarity")


@dataclass(frozen=True, eq=False)
class KNNVotes:
    """The votes of each query's nearest neighbors.

    Args:
        labels: the class with the most votes, ``(m,)``.
        share: its share of all votes, ``(m,)``.
        neighbors: the indices of the references that voted, the most similar first, ``(m, k)``.
        similarities: their similarities to the query, ``(m, k)``.

    Examples:
        >>> import torch
        >>> votes = knn_votes(torch.tensor([[1.0, 0.1]]), torch.eye(2), torch.tensor([7, 8]), k=1)
        >>> votes.labels.tolist(), votes.neighbors.tolist()
        ([7], [[0]])
    """

    labels: Tensor
    share: Tensor
    neighbors: Tensor
    similarities: Tensor


def knn_votes(
    embeddings: Array,
    references: Array,
    reference_labels: Array,
    *,
    k: int = 5,
    weights: str = "uniform",
    temperature: float = 0.07,
    similarity: SimilarityLike = "cosine",
    memory: int = MEMORY,
) -> KNNVotes:
    """Classify queries by the labels of their k nearest references.

    If two classes have the same number of votes, the one with the nearer neighbor wins; of equally near neighbors, the
    first one.

    Args:
        embeddings: queries, ``(m, d)``, any float dtype.
        references: labeled embeddings, ``(n, d)``; all of them vote where there are fewer than k.
        reference_labels: their labels, ``(n,)``, any integers.
        k: the number of neighbors that vote.
        weights: ``"uniform"``, one vote each; ``"similarity"``, ``exp(similarity / temperature)`` votes (Wu et al. 2018).
        temperature: of these weights.
        similarity: how embeddings are compared, as in `retrieval`.
        memory: bytes that the computation may take in addition to its inputs and its result.

    Returns:
        A `KNNVotes` with the winning label of each query, its share of the votes, and the neighbors.

    Examples:
        >>> import torch
        >>> references = torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.1, 1.0]])
        >>> votes = knn_votes(torch.tensor([[1.0, 0.2]]), references, torch.tensor([7, 8, 8]), k=3)
        >>> votes.labels.tolist(), round(float(votes.share[0]), 3)
        ([8], 0.667)
        >>> knn_votes(torch.tensor([[1.0, 0.2]]), references, torch.tensor([7, 8, 8]), k=3, weights="similarity").labels
        tensor([7])
    """
    k, temperature = _check(k, weights, temperature)
    queries = embeddings_as_given("embeddings", as_tensor("embeddings", embeddings))
    blank = torch.zeros(len(queries), dtype=torch.int64, device=queries.device)
    inputs = check_inputs(
        queries, blank, references, reference_labels, Exclusion(None, None, False), similarity, None, memory
    )
    labels = check_labels("reference_labels", reference_labels, None, inputs.embeddings.queries.device, "references")
    chunks = [_vote(*each, labels, k, weights, temperature) for each in _find_neighbors(inputs, k)]
    return KNNVotes(*(torch.cat(column) for column in zip(*chunks, strict=True)))


def knn_accuracy(
    embeddings: Array,
    labels: Array,
    references: Array | None = None,
    reference_labels: Array | None = None,
    *,
    ks: Sequence[int] = (1, 5, 20),
    weights: str = "uniform",
    temperature: float = 0.07,
    similarity: SimilarityLike = "cosine",
    without_positives: str = "leave_out",
    memory: int = MEMORY,
) -> dict[str, Any]:
    """Compute the fraction of queries whose k nearest neighbors vote for the correct class.

    Args:
        embeddings: queries, ``(m, d)``, any float dtype.
        labels: their labels, ``(m,)``, any integers.
        references: the embeddings that vote, ``(n, d)``; by default all other queries (leave one out).
        reference_labels: their labels, ``(n,)``.
        ks: numbers of neighbors that vote.
        weights: ``"uniform"`` or ``"similarity"``, as in `knn_votes`.
        temperature: of the weights.
        similarity: how embeddings are compared, as in `retrieval`.
        without_positives: ``"leave_out"`` excludes queries whose class no reference has; ``"zero"`` counts them as wrong.
        memory: bytes that the computation may take in addition to its inputs and its result.

    Returns:
        ``"kNN@k"`` for each of ``ks``, and the counts ``"queries"`` and ``"queries_without_positive"``.

    Examples:
        >>> import torch
        >>> embeddings = torch.tensor([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0], [0.1, 0.9]])
        >>> knn_accuracy(embeddings, torch.tensor([7, 7, 8, 8]), ks=(1, 3))
        {'kNN@1': 1.0, 'kNN@3': 0.0, 'queries': 4, 'queries_without_positive': 0}
    """
    one_of("without_positives", without_positives, ("leave_out", "zero"))
    if not (ks := [_check(k, weights, temperature)[0] for k in ks]):
        raise ValueError("ks must have at least one number, but it is empty")
    inputs = check_inputs(
        embeddings, labels, references, reference_labels, Exclusion(None, None, False), similarity, None, memory
    )
    classes = inputs.classes()
    assert classes is not None
    own = 1 if inputs.only_self else 0
    counted = classes.sizes[classes.queries] > own
    missing = int((~counted).sum())
    if missing == len(counted) and without_positives == "leave_out":
        raise ValueError(f"labels must give some query a reference of its class, but none of the {missing} has one")
    chosen = counted if without_positives == "leave_out" else torch.ones_like(counted)
    right = dict.fromkeys(ks, 0)
    for queries, similarities, neighbors in _find_neighbors(inputs, max(ks)):
        for k in right:
            vote, *_ = _vote(queries, similarities, neighbors, classes.references, k, weights, temperature)
            right[k] += int(((vote == classes.queries[queries]) & chosen[queries]).sum())
    total = int(chosen.sum())
    accuracies = {f"kNN@{k}": count / total for k, count in right.items()}
    return {**accuracies, "queries": len(counted) - missing, "queries_without_positive": missing}


def _check(k: int, weights: str, temperature: float) -> tuple[int, float]:
    one_of("weights", weights, WEIGHTS)
    if isinstance(temperature, bool) or not isinstance(temperature, int | float) or not temperature > 0:
        raise ValueError(f"temperature must be a number > 0, but it is {temperature!r}")
    return whole_number("k", k, 1), float(temperature)


def _find_neighbors(inputs: MetricInputs, k: int) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """Yield chunks of queries with the similarities and indices of their k nearest references; ties in index order."""
    m, n = len(inputs.embeddings.queries), len(inputs.embeddings.references)
    rows = SimilarityRows(inputs, CountNeeds(), extra=12)  # indices of a sort
    k = min(k, n)
    for chunk in track(split_rows(m, rows.fit_queries(0)), "neighbors"):
        queries = torch.arange(chunk.start, chunk.stop, device=inputs.embeddings.queries.device)
        with exact_precision(inputs.embeddings.queries):
            similarities = rows.compute(queries)[:, :n]
        if inputs.ids is not None:
            similarities = similarities.masked_fill(~inputs.ids.differ(chunk, slice(0, n)), -torch.inf)
        values, neighbors = similarities.topk(min(k + 1, n), dim=1)
        tied = (values[:, 1:] == values[:, :-1]).any(dim=1).nonzero().squeeze(1)
        if len(tied):  # topk does not define which of several equal values it takes
            some, order = similarities[tied].sort(dim=1, descending=True, stable=True)
            values[tied], neighbors[tied] = some[:, : values.shape[1]], order[:, : values.shape[1]]
        yield queries, values[:, :k], neighbors[:, :k]


ENTRIES = 2**24
"""Pairs of neighbors that are compared at once."""


def _vote(
    queries: Tensor,
    similarities: Tensor,
    neighbors: Tensor,
    labels: Tensor,
    k: int,
    weights: str,
    temperature: float,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The winning label of each query, its share of the votes, and the neighbors that voted."""
    similarities, neighbors = similarities[:, :k], neighbors[:, :k]
    codes = labels[neighbors]
    votes = (similarities > -torch.inf).double()  # excluded pairs have no vote
    if weights == "similarity":
        votes *= ((similarities - similarities[:, :1]).double() / temperature).exp().nan_to_num(0.0)
    winners, shares = [], []
    for chunk in split_rows(len(queries), max(1, ENTRIES // codes.shape[1] ** 2)):
        same = codes[chunk, :, None] == codes[chunk, None, :]  # (q, k, k)
        totals = torch.where(same, votes[chunk, None, :], 0.0).sum(dim=2)
        best = totals.argmax(dim=1, keepdim=True)  # the first of equal values is the nearest
        winners.append(codes[chunk].gather(1, best).squeeze(1))
        shares.append(totals.gather(1, best).squeeze(1) / votes[chunk].sum(dim=1).clamp_min(1e-300))
    return torch.cat(winners), torch.cat(shares), neighbors, similarities
