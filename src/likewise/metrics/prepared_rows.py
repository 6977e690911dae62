"""Prepared embeddings and their similarities, computed such that every pair of vectors is rounded the same way."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import torch
from torch import Tensor

from likewise.formula import Similarity, is_onednn_faster, multiply_with_onednn
from likewise.metrics.chunks import fit_rows, split_rows

CHUNK_ENTRIES, CHUNK_ENTRIES_ON_DEVICE = 2**19, 2**22
"""Entries of embeddings that are prepared at once: about the size of a core's cache; enough to hide kernel launches."""

NEW_COLUMNS = 1536
"""Columns of a product in new memory, if it is copied: it is in a core's cache then."""

MOST_DIMENSIONS = 16_384
"""Dimensions up to which oneDNN adds the summands of a product in one order; from 20,000 on, threads may divide them."""

ROW_MULTIPLE, ROW_MULTIPLE_ON_DEVICE = 48, 192
"""The sides of products are multiples of this.  Matrix libraries compute the remainder of other sides with other
instructions, which round differently, and equal vectors would not tie.  MKL's kernels are 8, 16, 24 or 48 wide; cuBLAS
was observed to use several kernels for products of fewer than 144 rows."""

PART_CAPABILITY, PART_DIMENSIONS, PART_ENTRIES = (9, 0), 64, 2**21
"""The compute capability of GPUs that multiply float32 rows in parts (H100 and H200, whose bfloat16 units are fifteen times
as fast as their float32 units), the dimensions from which on they do, and entries whose parts are in memory at once.

The kernel's sums do not fit the registers of an A100."""


def get_row_multiple(device: torch.device) -> int:
    """Return the number that the sides of products must be multiples of, so that every pair is rounded the same way.

    Examples:
        >>> get_row_multiple(torch.device("cpu"))
        48
    """
    return ROW_MULTIPLE if device.type == "cpu" else ROW_MULTIPLE_ON_DEVICE


def round_up(size: int, device: torch.device) -> int:
    """Round a size up to the next row multiple of a device.

    Examples:
        >>> round_up(1, torch.device("cpu")), round_up(96, torch.device("cpu"))
        (48, 96)
    """
    multiple = get_row_multiple(device)
    return -(-size // multiple) * multiple


def fit_prepared_rows(embeddings: Tensor) -> int:
    """Return how many rows of these embeddings are prepared at once.

    Examples:
        >>> import torch
        >>> fit_prepared_rows(torch.zeros(1, 512))
        1024
    """
    budget = CHUNK_ENTRIES if embeddings.device.type == "cpu" else CHUNK_ENTRIES_ON_DEVICE
    return fit_rows(budget, per_row=embeddings.shape[1])


class PreparedRows:
    """Embeddings in some order, prepared for products: cached where memory allows, otherwise prepared on each access.

    Args:
        embeddings: ``(n, d)``.
        order: the index of the embedding in each row, ``(n,)``; without it, the order of the embeddings.
        similarity: prepares the rows.
        dtype: the dtype of products.
        center: a vector that is subtracted from each prepared row, ``(1, d)``.
    """

    def __init__(
        self,
        embeddings: Tensor,
        order: Tensor | None,
        similarity: Similarity,
        dtype: torch.dtype,
        center: Tensor | None = None,
    ) -> None:
        self.embeddings, self.order, self.similarity = embeddings, order, similarity
        self.dtype, self.center = dtype, center
        self._cache: Tensor | None = None

    def __len__(self) -> int:
        return len(self.embeddings)

    @property
    def nbytes(self) -> int:
        """Bytes that a cache of all rows takes."""
        return self.embeddings.numel() * self.dtype.itemsize

    def cache(self, padding: int = 0) -> None:
        """Prepare all rows now and cache them, followed by at least ``padding`` rows of zeros."""
        rows, columns = self.embeddings.shape
        cache = self.embeddings.new_empty(round_up(rows + padding, self.embeddings.device), columns, dtype=self.dtype)
        cache[rows:] = 0.0
        for chunk in split_rows(rows, fit_prepared_rows(cache)):
            cache[chunk] = self._prepare_range(chunk.start, chunk.stop)
        self._cache = cache

    @property
    def is_cached(self) -> bool:
        """Whether all rows are prepared and cached."""
        return self._cache is not None

    def take(self, start: int, stop: int) -> Tensor:
        """Return the prepared rows of a range; rows beyond the last are zeros."""
        if self._cache is not None and stop <= len(self._cache):
            return self._cache[start:stop]
        rows = self._prepare_range(start, min(stop, len(self)))
        return torch.nn.functional.pad(rows, (0, 0, 0, stop - start - len(rows)))

    def _prepare_range(self, start: int, stop: int) -> Tensor:
        if self._cache is not None:
            return self._cache[start:stop]
        chunk = slice(start, stop)
        return self._prepare(self.embeddings[chunk] if self.order is None else self.embeddings[self.order[chunk]])

    def select(self, index: Tensor) -> Tensor:
        """Prepare the embeddings at these indices, which ignore ``order``."""
        return self._prepare(self.embeddings[index])

    def _prepare(self, rows: Tensor) -> Tensor:
        rows = self.similarity.prepare(rows.to(self.dtype))
        return rows if self.center is None else rows - self.center


def compute_center(embeddings: Tensor, similarity: Similarity, dtype: torch.dtype) -> Tensor | None:
    """Return the mean of the prepared references, ``(1, d)``; ``None`` if the similarity subtracts no mean.

    Examples:
        >>> import torch
        >>> from likewise.formula import Euclidean
        >>> compute_center(torch.tensor([[1.0], [3.0]]), Euclidean(normalize=False), torch.float32)
        tensor([[2.]])
    """
    if not similarity.subtracts_mean:
        return None
    rows = PreparedRows(embeddings, None, similarity, dtype)
    total = torch.zeros(1, embeddings.shape[1], dtype=torch.float64, device=embeddings.device)
    for chunk in split_rows(len(rows), fit_prepared_rows(embeddings)):
        total += rows.take(chunk.start, chunk.stop).sum(dim=0, keepdim=True)
    return (total / len(rows)).to(dtype)


def is_in_new_memory(rows: Tensor, dtype: torch.dtype) -> bool:
    """Return whether `multiply` allocates its result, because oneDNN does, for rows that are prepared in a dtype.

    Up to `MOST_DIMENSIONS`, its summands do not depend on the sides of a product, so that every pair is rounded the same way.

    Examples:
        >>> is_in_new_memory(torch.zeros(48, 2), torch.float64)
        False
    """
    can = rows.device.type == "cpu" and dtype == torch.float32 and rows.shape[1] <= MOST_DIMENSIONS
    return can and is_onednn_faster()


def fit_part_bytes(rows: Tensor, dtype: torch.dtype, memory: int) -> int:
    """Return the bytes of a memory budget that `multiply` takes for parts of rows that are prepared in a dtype.

    Examples:
        >>> fit_part_bytes(torch.zeros(1, 512), torch.float32, 2**30)
        0
    """
    return min(4 * count_part_bytes(rows, dtype) * min(len(rows), PART_ENTRIES // rows.shape[1] + 1), memory // 4)


def count_part_bytes(rows: Tensor, dtype: torch.dtype) -> int:
    """Return the bytes of the parts of a row that is prepared in a dtype; 0 where products are not computed in parts.

    Examples:
        >>> count_part_bytes(torch.zeros(1, 512), torch.float32)
        0
    """
    return 0 if load_part_product(rows.device, dtype, rows.shape[1]) is None else 6 * rows.shape[1]


def load_part_product(device: torch.device, dtype: torch.dtype, dim: int) -> Callable[..., Tensor] | None:
    """Import the product in parts, if a GPU computes all products of this dtype and these dimensions in this way."""
    if device.type != "cuda" or dtype != torch.float32 or dim < PART_DIMENSIONS or not _has_fast_parts(device):
        return None
    try:
        from likewise.metrics.triton_products import multiply_in_parts
    except ImportError:
        return None
    return multiply_in_parts


@cache
def _has_fast_parts(device: torch.device) -> bool:
    return torch.version.hip is None and torch.cuda.get_device_capability(device) == PART_CAPABILITY


def multiply(left: Tensor, right: Tensor, similarity: Similarity, out: Tensor | None) -> Tensor:
    """Return the similarities of prepared rows, ``(m, n)``, in ``out`` or new memory; m and n must be row multiples.

    Examples:
        >>> import torch
        >>> from likewise.formula import Dot
        >>> multiply(torch.ones(48, 2), torch.ones(48, 2), Dot(), torch.empty(48, 48))[:1, :3]
        tensor([[2., 2., 2.]])
    """
    if is_in_new_memory(left, left.dtype):
        products, out = multiply_with_onednn(left, right), None
    elif (multiply_in_parts := load_part_product(left.device, left.dtype, left.shape[1])) is not None:
        products = multiply_in_parts(left, right, out, PART_ENTRIES)
    else:
        products = torch.mm(left, right.T, out=out)
    if similarity.uses_squares:
        linked = similarity.of_products(products, similarity.squares(left)[:, None], similarity.squares(right)[None, :])
    else:
        linked = similarity.of_products(products, products.new_empty(0), products.new_empty(0))
    return linked if out is None or linked is products else out.copy_(linked)
