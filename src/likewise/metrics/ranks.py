"""The rank of every positive of every query, the basis of all retrieval metrics."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from math import ceil
from typing import TypeVar

import torch
from torch import Tensor

from likewise.formula import SimilarityLike, one_of
from likewise.metrics.arrays import Array
from likewise.metrics.chunks import MEMORY
from likewise.metrics.cores import Cores, use_cores
from likewise.metrics.first_ranks import rank_first_neighbors
from likewise.metrics.inputs import Exclusion, Groups, MetricInputs, Relevance, check_inputs
from likewise.metrics.positives import Chunk, CountNeeds, RankChunk, merge_chunks
from likewise.metrics.precision import exact_precision
from likewise.metrics.prepared_rows import ROW_MULTIPLE
from likewise.metrics.row_ranks import rank_by_class, rank_by_mask
from likewise.metrics.symmetric_ranks import plan_layout, rank_symmetrically
from likewise.metrics.threshold_counts import CHUNK_ENTRIES
from likewise.progress import track

Result = TypeVar("Result")

TIES = ("expected", "optimistic", "pessimistic")


@dataclass(frozen=True, eq=False)
class Ranks:
    """The positives of all queries, one entry each: queries in order, the most similar positive first.

    Args:
        query: the index of the query, ``(p,)``.
        reference: the index of the reference that is the positive, ``(p,)``.
        above: the number of negatives that are more similar to the query than the positive, ``(p,)``.
        tied: the number of negatives that are exactly as similar, ``(p,)``.
        positives: the number of positives of each query, ``(m,)``; queries with zero positives have no entry here.
        ties: how `rank` resolves ties.

    Examples:
        >>> import torch
        >>> same = torch.ones(3, 1)
        >>> ranks(same, torch.tensor([7, 7, 8])).rank.tolist()
        [1.5, 1.5]
        >>> ranks(same, torch.tensor([7, 7, 8]), ties="pessimistic").rank.tolist()
        [2.0, 2.0]
    """

    query: Tensor
    reference: Tensor
    above: Tensor
    tied: Tensor
    positives: Tensor
    ties: str = "expected"

    @property
    def rank(self) -> Tensor:
        """The rank of each positive among all references of its query, starting from 1, ``(p,)`` float64.

        Under ``"expected"``, if a positives and b negatives tie, the rank of the i-th of these positives is its
        expectation over all orders of the tie, which is ``i (a + b + 1) / (a + 1)`` ranks into the tie.
        """
        before = torch.arange(len(self.query), device=self.query.device) - _starts(self.positives)[self.query]
        before = before.double()
        if self.ties == "optimistic":
            return 1.0 + before + self.above
        if self.ties == "pessimistic":
            return 1.0 + before + self.above + self.tied
        first, alike = _locate_ties(self)
        return self.above + first + (before - first + 1.0) * (alike + self.tied + 1.0) / (alike + 1.0)


def _starts(positives: Tensor) -> Tensor:
    return positives.cumsum(0) - positives


def _locate_ties(entries: Ranks) -> tuple[Tensor, Tensor]:
    """For each positive, the number of positives before its tie, and the number of positives in its tie."""
    query, above, tied = entries.query, entries.above, entries.tied
    is_start = torch.ones_like(query, dtype=torch.bool)
    # where no negative ties, the order among positives does not matter, and each positive is a tie of one
    is_start[1:] = (query[1:] != query[:-1]) | (tied[1:] == 0) | (tied[1:] != tied[:-1]) | (above[1:] != above[:-1])
    group = is_start.cumsum(0) - 1
    starts = is_start.nonzero().squeeze(1)
    alike = torch.diff(starts, append=starts.new_tensor([len(is_start)]))[group]
    return (starts[group] - _starts(entries.positives)[entries.query]).double(), alike.double()


def ranks(
    embeddings: Array,
    labels: Array | None = None,
    references: Array | None = None,
    reference_labels: Array | None = None,
    *,
    similarity: SimilarityLike = "cosine",
    ties: str = "expected",
    relevant: Relevance | None = None,
    ids: Array | None = None,
    reference_ids: Array | None = None,
    exclude_self: bool = False,
    memory: int = MEMORY,
) -> Ranks:
    """Compute the rank of every positive of every query: one plus the number of references more similar to the query.

    The result equals that of sorting each query's full row of similarities, but neither sorts nor stores the matrix,
    and the rank is not limited.  It is exact in the dtype of the computation: float64 for float64 embeddings, otherwise
    float32.

    Args:
        embeddings: queries, ``(m, d)``, any float dtype.
        labels: their labels, ``(m,)``, any integers.
        references: the searched embeddings, ``(n, d)``; a query is compared with all of them.  By default, each query
            is compared with all other queries.
        reference_labels: their labels, ``(n,)``.
        similarity: ``"cosine"``, ``"dot"``, ``"euclidean"``, ``"squared_euclidean"``, ``"snr"``,
            ``"poincare"`` or an object.
        ties: ``"expected"`` (over all orders of a tie), ``"optimistic"`` or ``"pessimistic"``.
        relevant: which pairs are positive, in place of labels: a boolean matrix ``(m, n)``; a function of query indices
            and reference indices that returns a boolean matrix; or a relation, whose pairs that are neither positive
            nor negative are ignored.
        ids: the sample id of each query, ``(m,)`` integers; a query is not compared with a reference that has its id.
        reference_ids: the sample id of each reference, ``(n,)``.
        exclude_self: set this if the references begin with the queries, in their order: a query is then not compared
            with itself.
        memory: bytes that the computation may take in addition to its inputs and its result.

    Returns:
        A `Ranks` with one entry per positive.

    Examples:
        >>> import torch
        >>> result = ranks(torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 0.1]]), torch.tensor([7, 7, 8]))
        >>> result.query.tolist(), result.rank.tolist()
        ([0, 1], [2.0, 2.0])
    """
    one_of("ties", ties, TIES)
    exclusion = Exclusion(ids, reference_ids, exclude_self)
    inputs = check_inputs(embeddings, labels, references, reference_labels, exclusion, similarity, relevant, memory)
    m, device = len(inputs.embeddings.queries), inputs.embeddings.queries.device
    positives = torch.zeros(m, dtype=torch.int64, device=device)
    flat: list[list[Tensor]] = [[], [], [], []]
    for queries, counts, columns in map_rank_chunks(inputs, CountNeeds(), _flatten):
        positives[queries] = counts
        for entries, column in zip(flat, columns, strict=True):
            entries.append(column)
    order = _concatenate(flat[0], None, positives).argsort(stable=True)
    query, reference, above, tied = (_concatenate(entries, order, positives) for entries in flat)
    return Ranks(query, reference, above, tied, positives, ties)


def _concatenate(entries: list[Tensor], order: Tensor | None, empty: Tensor) -> Tensor:
    """Concatenate and reorder entries, and clear their list so that the result is not in memory twice."""
    whole = torch.cat(entries) if entries else empty[:0]
    if order is None:
        return whole
    entries.clear()
    return whole[order]


def _flatten(chunk: Chunk) -> tuple[Tensor, Tensor, list[Tensor]]:
    """The queries of a chunk, their numbers of positives, and one entry per positive."""
    assert isinstance(chunk, RankChunk)
    assert chunk.references is not None
    position = torch.arange(len(chunk.rank), device=chunk.rank.device)
    above = (chunk.rank - 1.0 - position[:, None]).long()
    tied = torch.zeros_like(above)
    if chunk.ties is not None:
        tied[chunk.ties.position, chunk.ties.query] = chunk.ties.tied
    is_positive = position < chunk.counts[:, None]
    columns = (chunk.queries[:, None].expand(is_positive.shape), chunk.references.T, above.T, tied.T)
    return chunk.queries, chunk.counts, [column[is_positive] for column in columns]


def map_rank_chunks(
    inputs: MetricInputs, needs: CountNeeds, function: Callable[[Chunk], Result], entries: int = 1
) -> list[Result]:
    """Rank all queries that have a positive, each in exactly one chunk, and apply a function to each chunk.

    Args:
        inputs: queries, references, their relation and their similarity.
        needs: which ranks are needed.
        function: is called on several threads at once on a CPU.
        entries: about how many positives a chunk should have: small chunks are merged where one thread computes.
    """
    with exact_precision(inputs.embeddings.queries):
        classes = inputs.classes()
        if classes is None:
            return _apply(rank_by_mask(inputs, needs), function, entries)
        results = []
        with use_cores(_limit_cores(inputs)) as cores:
            for chunks in _list_chunks(inputs, classes, needs, cores):
                if cores.count == 1:
                    results += _apply((make() for make in track(chunks, "ranks")), function, entries)
                else:
                    results += chain(*cores.map(lambda make: _apply([make()], function, 1), chunks, "ranks"))
                del chunks  # and the counts of its queries, before there are others
        return results


def _limit_cores(inputs: MetricInputs) -> int:
    """Return how many threads can have a few full rows of similarities each, within the memory; one for a GPU."""
    embeddings = inputs.embeddings
    if embeddings.queries.device.type != "cpu":
        return 1
    entry_bytes = embeddings.dtype.itemsize * (4 if inputs.similarity.uses_squares else 1)
    least = 4 * CHUNK_ENTRIES + ROW_MULTIPLE * len(embeddings.references) * entry_bytes
    return min(inputs.memory // least, ceil(len(embeddings.queries) / ROW_MULTIPLE))


def _apply(chunks: Iterable[Chunk], function: Callable[[Chunk], Result], entries: int) -> list[Result]:
    return [function(chunk) for chunk in merge_chunks(chunks, entries) if len(chunk.queries)]


def _list_chunks(
    inputs: MetricInputs, classes: Groups, needs: CountNeeds, cores: Cores
) -> Iterator[Sequence[Callable[[], Chunk]]]:
    """Use half of the products for symmetric similarities and small classes, and full rows for everything else."""
    sizes = classes.sizes[classes.queries]
    rest = sizes > (1 if inputs.embeddings.same_set else 0)
    if inputs.only_self and inputs.similarity.mirrors:
        layout = plan_layout(inputs, classes, needs, cores.count)
        if layout is not None:
            rank = rank_first_neighbors if layout.selects else rank_symmetrically
            if (chunks := rank(inputs, layout, needs, cores)) is not None:
                yield chunks
                del chunks
                rest[layout.order[: layout.small]] = False
    yield rank_by_class(inputs, classes, rest.nonzero().squeeze(1), needs, cores.count)
