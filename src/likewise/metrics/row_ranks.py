"""Ranks from full rows of similarities, a few rows at a time: for any queries, references and relation."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from likewise.metrics.chunks import fit_rows, split_rows
from likewise.metrics.inputs import Groups, MetricInputs
from likewise.metrics.positives import BYTES_PER_POSITIVE, Positives, RankChunk, gather_positives, make_rank_chunk
from likewise.metrics.prepared_rows import (
    PreparedRows,
    compute_center,
    fit_prepared_rows,
    get_row_multiple,
    multiply,
    round_up,
)
from likewise.metrics.threshold_counts import (
    CHUNK_ENTRIES,
    ThresholdCounts,
    count_by_comparing,
    count_by_sorting,
    get_comparison_limit,
)
from likewise.progress import track


class SimilarityRows:
    """Full rows of similarities to all references, in the order of the references.

    Args:
        inputs: queries, references and their similarity.
        extra: bytes per entry of a row that the caller needs in addition to the similarity.
    """

    def __init__(self, inputs: MetricInputs, extra: int = 0) -> None:
        embeddings, similarity = inputs.embeddings, inputs.similarity
        dtype, device, width = embeddings.dtype, embeddings.queries.device, embeddings.queries.shape[1]
        center = compute_center(embeddings.references, similarity, dtype)
        self.queries = PreparedRows(embeddings.queries, None, similarity, dtype, center)
        self.references = PreparedRows(embeddings.references, None, similarity, dtype, center)
        self.memory = inputs.memory
        self.row_multiple = get_row_multiple(device)
        # the references are prepared once if half of the memory holds them
        if 2 * self.references.nbytes <= self.memory:
            self.references.cache()
            self.memory -= self.references.nbytes
        # a similarity and the temporaries of its link; a query and the temporaries of its preparation
        entry_bytes = dtype.itemsize * (4 if similarity.uses_squares else 1) + extra
        self.row_bytes = len(self.references) * entry_bytes + width * 4 * dtype.itemsize
        self.comparison_limit = get_comparison_limit(device)
        # numpy sorts in place; torch sorts into a copy, with indices
        self.sort_bytes = len(self.references) * 2 * (dtype.itemsize + 8) if device.type != "cpu" else 0
        # references that are not cached are prepared a few at a time
        self.reference_chunk = min(
            4 * fit_prepared_rows(embeddings.references),
            max(self.row_multiple, fit_rows(self.memory, per_row=64 * dtype.itemsize * width)),
        )
        self.scratch = embeddings.queries.new_empty(
            max(CHUNK_ENTRIES, round_up(len(self.references), device)), dtype=torch.float32
        )

    def fit_queries(self, positives: int) -> int:
        """Return how many queries with this many positives fit the memory; a row multiple if there are enough."""
        sort_bytes = self.sort_bytes if positives > self.comparison_limit else 0
        row_bytes = self.row_bytes + sort_bytes + BYTES_PER_POSITIVE * positives
        rows = fit_rows(int(0.8 * self.memory), per_row=row_bytes)
        return rows - rows % self.row_multiple if rows > self.row_multiple else rows

    def split_queries(self, positives: list[int]) -> list[slice]:
        """Split queries, in ascending order of their numbers of positives, into chunks that fit the memory."""
        chunks, start = [], 0
        while start < len(positives):
            stop = min(start + self.fit_queries(positives[start]), len(positives))
            stop = min(stop, start + self.fit_queries(positives[stop - 1]))
            chunks.append(slice(start, stop))
            start = stop
        return chunks

    def compute(self, queries: Tensor) -> Tensor:
        """Compute the similarities of some queries, ``(q, n)``, followed by a few columns of −∞."""
        rows, width = len(queries), len(self.references)
        left = torch.nn.functional.pad(self.queries.select(queries), (0, 0, 0, -rows % self.row_multiple))
        similarities = left.new_empty(rows, round_up(width, left.device))
        step = similarities.shape[1]
        if not self.references.is_cached:
            step = min(step, round_up(self.reference_chunk, left.device))
        has_padding = rows % self.row_multiple != 0
        if has_padding:  # a product with padded rows does not fit the result
            step = min(step, round_up(CHUNK_ENTRIES // self.row_multiple, left.device))
        buffer = left.new_empty(len(left), step) if has_padding else None
        for chunk in split_rows(similarities.shape[1], step):
            out = similarities[:, chunk] if buffer is None else buffer[:, : chunk.stop - chunk.start]
            multiply(left, self.references.take(chunk.start, chunk.stop), self.queries.similarity, out)
            if buffer is not None:
                similarities[:, chunk] = out[:rows]
        similarities[:, width:] = -torch.inf
        return similarities

    def count_negatives(self, similarities: Tensor, positives: Positives) -> ThresholdCounts:
        """Count the negatives above each positive.

        Args:
            similarities: rows in which everything but negatives is −∞; they may be overwritten.
            positives: the positives of these rows.
        """
        counts = ThresholdCounts.start(positives.similarities)
        if len(positives.similarities) > self.comparison_limit:
            count_by_sorting(similarities, counts)
        else:
            count_by_comparing(similarities, counts, None, self.scratch)
        return counts


class _Members:
    """The references of each query's group, from references that are sorted by group."""

    def __init__(self, groups: Groups) -> None:
        self.groups = groups
        self.order = groups.references.argsort(stable=True)
        self.starts = groups.sizes.cumsum(0) - groups.sizes

    def pad(self, queries: Tensor, largest: int) -> tuple[Tensor, Tensor]:
        """Return the references as columns of a matrix ``(q, largest)``, and which entries are not padding."""
        code, positions = self.groups.queries[queries], torch.arange(largest, device=queries.device)
        sizes = self.groups.sizes[code, None]
        return self.order[self.starts[code, None] + torch.minimum(positions, sizes - 1)], positions < sizes

    def list_pairs(self, queries: Tensor) -> tuple[Tensor, Tensor]:
        """Return the position of a query in ``queries`` and a reference of its group, for all such pairs."""
        code = self.groups.queries[queries]
        sizes = self.groups.sizes[code]
        row = torch.arange(len(queries), device=queries.device).repeat_interleave(sizes)
        position = torch.arange(len(row), device=row.device) - (sizes.cumsum(0) - sizes)[row]
        return row, self.order[self.starts[code][row] + position]


def rank_by_class(inputs: MetricInputs, classes: Groups, queries: Tensor) -> Iterator[RankChunk]:
    """Rank some queries by label.

    Args:
        inputs: queries, references and their similarity.
        classes: the labels.
        queries: indices of the queries; each must have a reference of its class.
    """
    if not len(queries):
        return
    ids, members = inputs.ids, _Members(classes)
    same_sample = None if ids is None else _Members(Groups.number(ids.queries, ids.references))
    rows = SimilarityRows(inputs)
    sizes, order = classes.sizes[classes.queries[queries]].sort(stable=True)
    queries = queries[order]  # queries with similar numbers of positives are neighbors, which saves padding

    def rank(chunk: Tensor, largest: int) -> RankChunk:
        index, is_positive = members.pad(chunk, largest)
        similarities = rows.compute(chunk)
        if ids is not None:
            is_positive &= ids.queries[chunk, None] != ids.references[index]
        positives = gather_positives(similarities, index, is_positive)
        similarities.scatter_(1, index, -torch.inf)
        if same_sample is not None:
            similarities[same_sample.list_pairs(chunk)] = -torch.inf
        return make_rank_chunk(rows.count_negatives(similarities, positives), positives, chunk)

    for chunk in track(rows.split_queries(sizes.tolist()), "ranks"):
        yield rank(queries[chunk], int(sizes[chunk.stop - 1]))


def rank_by_mask(inputs: MetricInputs) -> Iterator[RankChunk]:
    """Rank all queries by the masks of a relation."""
    embeddings = inputs.embeddings
    rows, m, n = SimilarityRows(inputs, extra=4), len(embeddings.queries), len(embeddings.references)

    def rank(chunk: Tensor, positive: Tensor, negative: Tensor, counts: Tensor) -> RankChunk:
        row, column = positive.nonzero(as_tuple=True)
        position = torch.arange(len(row), device=row.device) - (counts.cumsum(0) - counts)[row]
        index = row.new_zeros(len(chunk), int(counts.max()))
        is_positive = torch.zeros(index.shape, dtype=torch.bool, device=index.device)
        index[row, position], is_positive[row, position] = column, True
        similarities = rows.compute(chunk)
        positives = gather_positives(similarities, index, is_positive)
        similarities[:, :n].masked_fill_(~negative, -torch.inf)
        return make_rank_chunk(rows.count_negatives(similarities, positives), positives, chunk)

    for chunk in track(split_rows(m, rows.fit_queries(0)), "ranks"):
        queries = torch.arange(chunk.start, chunk.stop, device=embeddings.queries.device)
        positive, negative = inputs.masks(chunk, slice(0, n))
        counts = positive.sum(dim=1)
        # the masks show how many positives there are, which limits the rows that fit
        for inner in split_rows(len(queries), rows.fit_queries(int(counts.max()))):
            if bool(counts[inner].any()):
                yield rank(queries[inner], positive[inner], negative[inner], counts[inner])
