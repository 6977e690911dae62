"""The metrics of a part with their intervals, and the distribution of similarities."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from likewise.metrics import CollapseWarning, Interval, bootstrap, clustering, geometry, retrieval, t_interval
from likewise.report.charts import Chart, histogram
from likewise.report.part import Part
from likewise.report.words import count, many, short, sort_metrics

SAMPLES = 1000
"""The number of bootstrap samples."""

PAIRS_OF = 8000
"""The maximum number of images for the histograms: 32 million pairs, a few seconds on two cores."""

CHUNK_BYTES = 2**24
"""Of a chunk of pairs: it stays in a core's cache, which halves the time."""

BINS = 1200
BARS = 60


@dataclass(frozen=True, eq=False)
class Measured:
    """Retrieval metrics of a part.

    Args:
        scores: metrics by name, with 95% intervals.
        over: the unit of the bootstrap: ``"classes"`` or ``"queries"``.
        rows: the queries that have a positive.
        quality: MAP@R of each query.
        without_positive: the number of queries without a positive, which are excluded.

    Examples:
        >>> import torch
        >>> part = Part("test", torch.eye(2)[[0, 0, 1, 1]], torch.tensor([0, 0, 1, 1]), ["a", "b"], lambda i: None)
        >>> found = measure_part(part, seed=0)
        >>> found.scores["R@1"].mean, found.over
        (1.0, 'classes')
    """

    scores: dict[str, Interval]
    over: str
    rows: Tensor
    quality: Tensor
    without_positive: int

    @property
    def group_count(self) -> int:
        """The number of classes or queries of the bootstrap."""
        return next(iter(self.scores.values())).count


def measure_part(part: Part, *, seed: int) -> Measured | None:
    """Compute all metrics with their intervals; ``None`` if no query has a positive.

    The bootstrap resamples classes, because queries of the same class share their positives and are not independent.  With a
    single class it resamples queries.

    Examples:
        >>> import torch
        >>> measure_part(Part("test", torch.eye(2), torch.tensor([0, 1]), ["a", "b"], lambda i: None), seed=0) is None
        True
    """
    queries, references, ids = part.queries, part.references, part.ids
    labels, found = part.labels[queries], part.labels[references]
    # references of the class, minus those that are excluded for a query, which have the same class
    sizes = torch.bincount(found, minlength=len(part.class_names))
    excluded = torch.bincount(ids[references], minlength=int(ids.max()) + 1)
    if not bool((sizes[labels] > excluded[ids[queries]]).any()):
        return None
    shots = None if part.cameras is None else ids
    if part.is_query is None:
        per_query = retrieval(part.embeddings, part.labels, ks=part.ks, ids=shots, reduce="none")
    else:
        per_query = retrieval(
            part.embeddings[queries],
            labels,
            part.embeddings[references],
            found,
            ks=part.ks,
            ids=None if shots is None else shots[queries],
            reference_ids=None if shots is None else shots[references],
            reduce="none",
        )
    groups = labels[per_query["query"]]
    over = "classes" if len(torch.unique(groups)) > 1 else "queries"
    drawn_groups = groups if over == "classes" else None
    scores = {
        name: bootstrap(per_query[name], samples=SAMPLES, seed=seed, groups=drawn_groups)
        for name in sort_metrics(per_query)
        if name not in ("P@1", "query", "queries", "queries_without_positive")
    }
    scores |= _cluster(part)
    return Measured(
        scores, over, queries[per_query["query"]], per_query["MAP@R"], int(per_query["queries_without_positive"])
    )


def _cluster(part: Part) -> dict[str, Interval]:
    """Compute NMI, AMI and F1 of several runs of k-means on all images, with intervals over the runs."""
    found = [clustering(part.embeddings, part.labels, seed) for seed in range(part.clusterings)]
    return {name: t_interval([each[name] for each in found]) for name in (found[0] if found else ())}


@dataclass(frozen=True, eq=False)
class Similarities:
    """Similarities of pairs within and between classes, and the geometry of the embedding.

    Args:
        chart: the histograms.
        facts: name, value and meaning.
        note: a sentence on the pairs.
        collapse: a warning if the embedding has collapsed.

    Examples:
        >>> import torch
        >>> part = Part("test", torch.eye(2)[[0, 0, 1, 1]], torch.tensor([0, 0, 1, 1]), ["a", "b"], lambda i: None)
        >>> found = similarities(part, seed=0)
        >>> found.facts[0][:2], found.collapse
        (('within a class', '1'), '')
    """

    chart: Chart
    facts: list[tuple[str, str, str]]
    note: str
    collapse: str


def similarities(part: Part, *, seed: int) -> Similarities:
    """Compute the histograms and the geometry of a part, from at most 8,000 of its images.

    Examples:
        >>> import torch
        >>> part = Part("test", torch.eye(2)[[0, 0, 1, 1]], torch.tensor([0, 0, 1, 1]), ["a", "b"], lambda i: None)
        >>> similarities(part, seed=0).note
        'All 6 pairs of the 4 images.'
    """
    total = len(part.labels)
    rows = torch.arange(total)
    if total > PAIRS_OF:
        rows = torch.randperm(total, generator=torch.Generator("cpu").manual_seed(seed))[:PAIRS_OF].sort().values
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", CollapseWarning)
        shape = geometry(part.embeddings[rows], part.labels[rows], bins=BINS, memory=CHUNK_BYTES)
    pairs = len(rows) * (len(rows) - 1) // 2
    note = f"All {count(pairs)} pairs of the {many(total, 'image')}."
    if len(rows) < total:
        note = f"All {count(pairs)} pairs of {count(len(rows))} images, chosen at random from the {count(total)}."
    collapse = next((str(each.message) for each in caught if issubclass(each.category, CollapseWarning)), "")
    facts = _facts(shape)
    return Similarities(_histogram(shape, facts), facts, note, collapse)


def _histogram(shape: dict[str, Any], facts: list[tuple[str, str, str]]) -> Chart:
    """Merge neighboring bins, so that about 60 remain."""
    filled = (shape["intra"] + shape["inter"]).nonzero()[:, 0]
    first, last = (int(filled[0]), int(filled[-1])) if len(filled) else (0, BINS - 1)
    size = -(-(last + 1 - first) // BARS)
    first -= first % size
    stop = min(BINS, first + -(-(last + 1 - first) // size) * size)
    edges = shape["edges"][first : stop + 1 : size].tolist()
    if len(edges) < -(-(stop - first) // size) + 1:
        edges.append(float(shape["edges"][stop]))
    counts = [
        (name, color, [int(part.sum()) for part in torch.split(shape[side][first:stop], size)])
        for name, color, side in (("two classes", 7, "inter"), ("one class", 0, "intra"))
    ]
    means = f"pairs of one class have the mean {facts[0][1]}, pairs of two classes {facts[1][1]}."
    return histogram(
        "Cosine similarity of pairs",
        edges,
        counts,
        x_name="similarity",
        note="each histogram has area one",
        summary=f"Histograms of similarities: {means}",
    )


def _facts(shape: dict[str, Any]) -> list[tuple[str, str, str]]:
    facts = (
        ("within a class", "intra_mean", "mean cosine similarity of pairs of one class"),
        ("between classes", "inter_mean", "mean cosine similarity of pairs of two classes"),
        ("alignment", "alignment", "mean squared distance of pairs of one class; lower is better"),
        ("uniformity", "uniformity", "log of the mean heat of all pairs; lower is more evenly spread"),
        ("density ratio", "density_ratio", "distance within classes over distance between their means"),
        ("effective rank", "effective_rank", "how many directions the embedding uses"),
    )
    return [(name, "–" if shape[key] is None else short(round(shape[key], 3)), meaning) for name, key, meaning in facts]
