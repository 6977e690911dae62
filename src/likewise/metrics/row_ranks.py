"""Ranks from full rows of similarities, a few rows at a time: for any queries, references and relation."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

import torch
from torch import Tensor

from likewise.metrics.chunks import split_rows
from likewise.metrics.inputs import Groups, MetricInputs
from likewise.metrics.merged_counts import find_first, get_lowest, make_keys, rank_merged
from likewise.metrics.positives import Chunk, CountNeeds, gather_positives, make_rank_chunk, make_relevance_chunk
from likewise.metrics.row_counts import Method, rank_positives
from likewise.metrics.similarity_rows import SimilarityRows
from likewise.progress import track


class _Members:
    """The columns of each query's group, from columns that are sorted by group or not."""

    def __init__(self, groups: Groups) -> None:
        self.groups = groups
        self.order = groups.references.argsort(stable=True)
        self.starts = groups.sizes.cumsum(0) - groups.sizes

    def list_pairs(self, queries: Tensor) -> tuple[Tensor, Tensor]:
        """Return the position of a query in ``queries`` and a column of its group, for all such pairs."""
        code = self.groups.queries[queries]
        sizes = self.groups.sizes[code]
        row = torch.arange(len(queries), device=queries.device).repeat_interleave(sizes)
        position = torch.arange(len(row), device=row.device) - (sizes.cumsum(0) - sizes)[row]
        return row, self.order[self.starts[code][row] + position]


class _ClassRows:
    """Rows of similarities to references that are sorted by class: the positives of a query are neighbors.

    Args:
        inputs: queries, references and their similarity.
        classes: the labels.
        needs: which counts are needed.
        threads: how many threads rank queries at once.
    """

    def __init__(self, inputs: MetricInputs, classes: Groups, needs: CountNeeds, threads: int) -> None:
        self.classes, self.needs = classes, needs
        self.order = classes.references.argsort(stable=True)
        self.starts = classes.sizes.cumsum(0) - classes.sizes
        self.rows = SimilarityRows(inputs, needs, self.order, threads=threads)
        self.ids = None if inputs.ids is None else replace(inputs.ids, references=inputs.ids.references[self.order])
        self.same_sample: _Members | None = None
        if self.ids is not None:
            groups = Groups.number(self.ids.queries, self.ids.references)
            # pairs of large groups would take more memory than the similarities
            if int(groups.sizes.max()) <= MAX_PAIRS:
                self.same_sample = _Members(groups)

    def rank(self, queries: Tensor, largest: int) -> Chunk:
        """Rank some queries, in the order of their classes, with at most ``largest`` references of their class."""
        merges = self.rows.choose_method(largest) is Method.MERGE
        if merges and not self.needs.references and (keys := self.rows.compute_keys(queries)) is not None:
            self._mark(queries, keys)
            return _merge(queries, keys, largest, self.needs, torch.tensor(True))
        similarities = self.rows.compute(queries)
        if merges:
            keys = make_keys(similarities[:, : len(self.order)])
            self._mark(queries, keys)
            references = self._sort_references(queries, similarities, keys, largest) if self.needs.references else None
            are_small = keys.dtype == torch.int32  # such keys exist for small numbers only
            is_finite = torch.tensor(True) if are_small else self._are_finite(queries, similarities)
            return _merge(queries, keys, largest, self.needs, is_finite, references)
        code, position = self.classes.queries[queries, None], torch.arange(largest, device=queries.device)
        sizes = self.classes.sizes[code]
        index = self.starts[code] + torch.minimum(position, sizes - 1)
        is_positive = position < sizes
        if self.ids is not None:
            is_positive &= self.ids.queries[queries, None] != self.ids.references[index]
        positives = gather_positives(similarities, index, is_positive, self.needs.references)
        similarities.scatter_(1, index, -torch.inf)
        self._exclude(queries, similarities, -torch.inf)
        ranks = rank_positives(similarities, positives, self.rows, self.needs)
        references = None if positives.positive_index is None else self.order[positives.positive_index]
        return make_rank_chunk(queries, positives.counts, references, ranks, positives.are_finite())

    def _list_runs(self, queries: Tensor) -> Iterator[tuple[slice, slice]]:
        """Yield the rows of consecutive queries of one class, and the columns of that class; few, because classes are large."""
        code, counts = torch.unique_consecutive(self.classes.queries[queries], return_counts=True)
        first = 0
        for start, size, count in torch.stack([self.starts[code], self.classes.sizes[code], counts], dim=1).tolist():
            yield slice(first, first + count), slice(start, start + size)
            first += count

    def _mark(self, queries: Tensor, keys: Tensor) -> None:
        """Mark the keys of positives and of excluded pairs."""
        for rows, columns in self._list_runs(queries):
            keys[rows, columns] -= 1
        self._exclude(queries, keys, get_lowest(keys))

    def _are_finite(self, queries: Tensor, similarities: Tensor) -> Tensor:
        """Whether all similarities of queries to their classes are finite."""
        ends = [similarities[run].aminmax() for run in self._list_runs(queries)]
        return torch.stack([end for pair in ends for end in pair]).isfinite().all()

    def _sort_references(self, queries: Tensor, similarities: Tensor, keys: Tensor, largest: int) -> Tensor:
        """The positives of each query, most similar first, from marked keys."""
        code, position = self.classes.queries[queries, None], torch.arange(largest)
        index = (self.starts[code] + position).clamp_(max=keys.shape[1] - 1)
        is_positive = (position < self.classes.sizes[code]) & ((keys.gather(1, index) & 1) == 0)
        positive_index = gather_positives(similarities, index, is_positive).positive_index
        assert positive_index is not None
        return self.order[positive_index[: int(is_positive.sum(dim=1).max())]]

    def _exclude(self, queries: Tensor, values: Tensor, value: float) -> None:
        """Overwrite the excluded pairs."""
        if self.same_sample is not None:
            values[self.same_sample.list_pairs(queries)] = value
        elif self.ids is not None:
            for rows in split_rows(len(queries), 16):
                same = self.ids.queries[queries[rows], None] == self.ids.references
                values[rows, : len(self.order)].masked_fill_(same, value)


def _merge(
    queries: Tensor,
    keys: Tensor,
    largest: int,
    needs: CountNeeds,
    is_finite: Tensor,
    references: Tensor | None = None,
) -> Chunk:
    """Rank some queries from keys that are marked, and sorted in place.

    Args:
        queries: the queries.
        keys: from `make_keys`.
        largest: a number that no query's number of positives exceeds.
        needs: which ranks are needed.
        is_finite: whether the similarities of all positives are finite.
        references: the reference of each positive, where it is needed.
    """
    first = needs.count_neighbors(largest)
    if first is None:
        rank, ties, counts = rank_merged(keys, largest)
        return make_rank_chunk(queries, counts, references, (rank, ties), is_finite)
    is_positive, of_ties, counts = find_first(keys, first)
    return make_relevance_chunk(queries, counts, is_positive, of_ties, is_finite)


MAX_PAIRS = 64
"""The number of references that share an id up to which the excluded pairs are listed."""


def rank_by_class(
    inputs: MetricInputs, classes: Groups, queries: Tensor, needs: CountNeeds, threads: int
) -> list[Callable[[], Chunk]]:
    """Return functions that rank some queries by label, a chunk each.

    Args:
        inputs: queries, references and their similarity.
        classes: the labels.
        queries: indices of the queries; each must have a reference of its class.
        needs: which counts are needed.
        threads: how many of the functions are called at once.
    """
    if not len(queries):
        return []
    class_rows = _ClassRows(inputs, classes, needs, threads)
    codes = classes.queries[queries]
    # queries with similar numbers of positives are neighbors, which saves padding, and so are those of a class
    sizes, order = (classes.sizes[codes] * len(classes.sizes) + codes).sort(stable=True)
    sizes, queries = sizes // len(classes.sizes), queries[order]
    chunks = class_rows.rows.split_queries(sizes.tolist())
    return [partial(class_rows.rank, queries[chunk], int(sizes[chunk.stop - 1])) for chunk in chunks]


def rank_by_mask(inputs: MetricInputs, needs: CountNeeds) -> Iterator[Chunk]:
    """Rank all queries by the masks of a relation."""
    embeddings = inputs.embeddings
    # the masks of a chunk, and those of the next one while they are made
    rows, m, n = SimilarityRows(inputs, needs, extra=8), len(embeddings.queries), len(embeddings.references)

    def rank(chunk: Tensor, positive: Tensor, negative: Tensor, counts: Tensor) -> Chunk:
        similarities, largest = rows.compute(chunk), int(counts.max())
        if rows.choose_method(largest) is Method.MERGE and not needs.references:
            keys = make_keys(similarities[:, :n])
            keys ^= positive
            keys.masked_fill_(~(positive | negative), get_lowest(keys))
            is_finite = similarities[:, :n][positive].isfinite().all()
            return _merge(chunk, keys, largest, needs, is_finite)
        row, column = positive.nonzero(as_tuple=True)
        position = torch.arange(len(row), device=row.device) - (counts.cumsum(0) - counts)[row]
        index = row.new_zeros(len(chunk), largest)
        is_positive = torch.zeros(index.shape, dtype=torch.bool, device=index.device)
        index[row, position], is_positive[row, position] = column, True
        positives = gather_positives(similarities, index, is_positive, needs.references)
        similarities[:, :n].masked_fill_(~negative, -torch.inf)
        ranks = rank_positives(similarities, positives, rows, needs)
        return make_rank_chunk(chunk, counts, positives.positive_index, ranks, positives.are_finite())

    for chunk in track(split_rows(m, rows.fit_queries(0)), "ranks"):
        queries = torch.arange(chunk.start, chunk.stop, device=embeddings.queries.device)
        positive, negative = inputs.masks(chunk, slice(0, n))
        counts = positive.sum(dim=1)
        # the masks show how many positives there are, which limits the rows that fit
        for inner in split_rows(len(queries), rows.fit_queries(int(counts.max()))):
            if bool(counts[inner].any()):
                yield rank(queries[inner], positive[inner], negative[inner], counts[inner])
