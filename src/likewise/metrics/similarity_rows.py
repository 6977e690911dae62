"""Full rows of similarities, a few queries at a time, within a memory budget."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from math import ceil

import torch
from torch import Tensor

from likewise.formula import Cosine
from likewise.metrics.chunks import fit_rows, split_rows
from likewise.metrics.cores import Buffers
from likewise.metrics.inputs import MetricInputs
from likewise.metrics.merged_counts import MERGED_BYTES, MERGED_BYTES_PER_POSITIVE, have_small_keys, write_small_keys
from likewise.metrics.positives import BYTES_PER_POSITIVE, CountNeeds
from likewise.metrics.prepared_rows import (
    NEW_COLUMNS,
    PreparedRows,
    compute_center,
    fit_part_bytes,
    fit_prepared_rows,
    get_row_multiple,
    is_in_new_memory,
    multiply,
    round_up,
)
from likewise.metrics.row_counts import Method, choose_method
from likewise.metrics.threshold_counts import CHUNK_ENTRIES, make_scratch

CHUNK_ROWS, CHUNKS_PER_CORE = 480, 4
"""Rows of a chunk on a CPU: fewer make products slower, and more do not make them faster.  With fewer chunks per core
than the second number, a core that is done would wait for the others."""


class SimilarityRows:
    """Full rows of similarities to all references.

    Args:
        inputs: queries, references and their similarity.
        needs: which counts the rows are for.
        order: the reference in each column, ``(n,)``; without it, the order of the references.
        extra: bytes per entry of a row that the caller needs in addition to the similarity.
        threads: how many threads compute rows at once; they share the memory.
    """

    def __init__(
        self, inputs: MetricInputs, needs: CountNeeds, order: Tensor | None = None, extra: int = 0, threads: int = 1
    ) -> None:
        embeddings, similarity = inputs.embeddings, inputs.similarity
        dtype, device, width = embeddings.dtype, embeddings.queries.device, embeddings.queries.shape[1]
        center = compute_center(embeddings.references, similarity, dtype)
        self.queries = PreparedRows(embeddings.queries, None, similarity, dtype, center)
        self.references = PreparedRows(embeddings.references, order, similarity, dtype, center)
        self.needs, self.memory, self.device, self.dtype = needs, inputs.memory, device, dtype
        self.row_multiple = get_row_multiple(device)
        # the references are prepared once if half of the memory holds them
        if 2 * self.references.nbytes <= self.memory:
            self.references.cache()
            self.memory -= self.references.nbytes
        self.memory -= fit_part_bytes(embeddings.references, dtype, self.memory)
        self.threads = threads
        self.memory //= threads
        # a similarity and the temporaries of its link; a query and the temporaries of its preparation
        entry_bytes = dtype.itemsize * (4 if similarity.uses_squares else 1) + extra
        self.row_bytes = len(self.references) * entry_bytes + width * 4 * dtype.itemsize
        self.is_new = is_in_new_memory(embeddings.queries, dtype)
        if self.is_new:  # a product in new memory, and what the caller makes of it
            self.row_bytes += 2 * min(NEW_COLUMNS, len(self.references)) * entry_bytes
        # numpy sorts in place; torch sorts into a copy, with indices
        self.sort_bytes = len(self.references) * 2 * (dtype.itemsize + 8) if device.type != "cpu" else 0
        # references that are not cached are prepared a few at a time
        self.reference_chunk = min(
            4 * fit_prepared_rows(embeddings.references),
            max(self.row_multiple, fit_rows(self.memory, per_row=64 * dtype.itemsize * width)),
        )
        self._buffers = Buffers()

    @property
    def scratch(self) -> Tensor:
        """The buffer for `count_by_comparing` of this thread."""
        if self._buffers.scratch is None:
            self._buffers.scratch = make_scratch(self.device, 4 * round_up(len(self.references), self.device))
        return self._buffers.scratch

    def choose_method(self, positives: int) -> Method:
        """Choose how to count for queries with at most this many positives."""
        return choose_method(len(self.references), positives, self.needs.count_neighbors(positives), self.device)

    def fit_queries(self, positives: int) -> int:
        """Return how many queries with this many positives fit the memory; a row multiple if there are enough."""
        method = self.choose_method(positives)
        row_bytes = self.row_bytes + BYTES_PER_POSITIVE * positives
        if method is Method.SORT:
            row_bytes += self.sort_bytes
        elif method is Method.SELECT:  # at most half of the entries are gathered and joined
            row_bytes += len(self.references) * self.dtype.itemsize
        elif method is Method.MERGE:
            row_bytes += MERGED_BYTES * len(self.references)
            if not self.needs.references:
                row_bytes -= (BYTES_PER_POSITIVE - MERGED_BYTES_PER_POSITIVE) * positives
        rows = fit_rows(int(0.8 * self.memory), per_row=row_bytes)
        if self.device.type == "cpu":
            share = len(self.queries) // (CHUNKS_PER_CORE * self.threads)
            rows = min(rows, max(self.row_multiple, min(CHUNK_ROWS, share)))
        return rows - rows % self.row_multiple if rows > self.row_multiple else rows

    def split_queries(self, positives: list[int]) -> list[slice]:
        """Split queries, in ascending order of their numbers of positives, into chunks that fit the memory."""
        most = len(positives)
        height = self.fit_queries(positives[0]) if most else 0
        in_chunk, units = height // self.row_multiple, ceil(most / self.row_multiple)
        if self.threads > 1 and in_chunk and height == self.fit_queries(positives[-1]):
            # the same number of chunks for each thread
            count = self.threads * ceil(units / (self.threads * in_chunk))
            ends = [min(most, units * i // count * self.row_multiple) for i in range(count + 1)]
            return [slice(start, stop) for start, stop in pairwise(ends) if start < stop]
        chunks, start = [], 0
        while start < most:
            stop = min(start + self.fit_queries(positives[start]), most)
            stop = min(stop, start + self.fit_queries(positives[stop - 1]))
            chunks.append(slice(start, stop))
            start = stop
        return chunks

    def compute(self, queries: Tensor) -> Tensor:
        """Compute the similarities of some queries, ``(q, n)``, followed by a few columns of −∞.

        The next call of the same thread overwrites them, because allocating a new matrix for each chunk would be slow.
        """
        similarities = self._use_buffer(len(queries))
        for columns, values in self._multiply(queries, similarities):
            part = similarities[:, columns]
            if values is not part:
                part.copy_(values)
            del values  # before the next product is computed
        similarities[:, len(self.references) :] = -torch.inf
        return similarities

    def compute_keys(self, queries: Tensor) -> Tensor | None:
        """Compute the int32 keys of the similarities of some queries, ``(q, n)``, without storing these.

        ``None`` if there may be similarities without such keys; see `make_keys`.
        """
        if self.dtype != torch.float32 or not isinstance(self.queries.similarity, Cosine):
            return None
        keys = torch.empty(len(queries), len(self.references), dtype=torch.int32)
        for columns, values in self._multiply(queries, None if self.is_new else self._use_buffer(len(queries))):
            out = keys[:, columns]
            numbers = values[:, : out.shape[1]].numpy()
            if not (
                self.queries.similarity.bounded or have_small_keys(numbers)
            ):  # cosines of unit vectors are at most 1
                return None
            write_small_keys(numbers, out.numpy())
            del values
        return keys

    def _use_buffer(self, rows: int) -> Tensor:
        """Return the buffer of this thread, for so many rows."""
        shape, whole = (rows, round_up(len(self.references), self.device)), self._buffers.similarities
        if whole is None or whole.numel() < shape[0] * shape[1]:
            self._buffers.similarities = whole = self.queries.embeddings.new_empty(
                shape[0] * shape[1], dtype=self.dtype
            )
        return whole[: shape[0] * shape[1]].view(shape)

    def _multiply(self, queries: Tensor, similarities: Tensor | None) -> Iterator[tuple[slice, Tensor]]:
        """Yield ranges of columns and the similarities in them, which may be a part of ``similarities`` or other memory.

        Without ``similarities``, products must be in new memory.
        """
        rows = len(queries)
        left = torch.nn.functional.pad(self.queries.select(queries), (0, 0, 0, -rows % self.row_multiple))
        step = width = round_up(len(self.references), left.device)
        if not self.references.is_cached:
            step = min(step, round_up(self.reference_chunk, left.device))
        buffer = None
        if self.is_new:
            step = min(step, NEW_COLUMNS)
        elif rows % self.row_multiple:  # a product with padded rows does not fit the result
            step = min(step, round_up(CHUNK_ENTRIES // self.row_multiple, left.device))
            buffer = left.new_empty(len(left), step)
        for columns in split_rows(width, step):
            part = None if self.is_new or similarities is None else similarities[:, columns]
            out = part if buffer is None else buffer[:, : columns.stop - columns.start]
            values = multiply(left, self.references.take(columns.start, columns.stop), self.queries.similarity, out)
            yield columns, values if values is part else values[:rows]
            del values
