"""Similarities tile by tile: any rectangle of queries x references, within a budget of memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor

from likewise.core.checks import check_values, embeddings_as_given, full_precision, same_device
from likewise.core.similarity import Similarity

Step = TypeVar("Step")

MEMORY = 2**28
"""Bytes that an evaluation may take on top of its inputs and its result, unless told otherwise: 256 MiB."""

CHUNK, CHUNK_ON_DEVICE = 2**19, 2**22
"""Entries of embeddings that are prepared at once: about what a core's own cache holds; enough to hide launches."""


NARROW = 16
"""Rows and columns below which a matrix product takes other paths from one column to the next."""


def chunk(embeddings: Tensor) -> int:
    """How many rows are prepared at once.

    Examples:
        >>> import torch
        >>> chunk(torch.zeros(1, 512))
        1024
    """
    return max(1, (CHUNK if embeddings.device.type == "cpu" else CHUNK_ON_DEVICE) // embeddings.shape[1])


def tensor_of(value: object) -> object:
    """An array as a tensor that shares its memory; anything else as it is, for the checks to speak about.

    Examples:
        >>> import numpy as np
        >>> tensor_of(np.zeros(2))
        tensor([0., 0.], dtype=torch.float64)
    """
    if not isinstance(value, np.ndarray):
        return value
    if value.dtype.kind not in "biuf":
        raise TypeError(
            f"an array must hold numbers, but one of dtype {value.dtype} was given; encode_labels turns names into numbers"
        )
    return torch.from_numpy(np.ascontiguousarray(value))


@dataclass(frozen=True, eq=False)
class Sides:
    """Queries and references as they were given, checked; not copied, whatever their dtype.

    Args:
        queries: ``(m, d)``.
        references: ``(n, d)``, the queries themselves where ``alone``.
        alone: whether the queries are searched among themselves.
    """

    queries: Tensor
    references: Tensor
    alone: bool

    @property
    def dtype(self) -> torch.dtype:
        """The dtype that products are made in: at least float32."""
        return torch.promote_types(torch.promote_types(self.queries.dtype, self.references.dtype), torch.float32)


def sides(embeddings: object, references: object = None) -> Sides:
    """Check embeddings and references; values too, on every device: nothing here is too fast to look.

    Examples:
        >>> import torch
        >>> sides(torch.eye(3)).alone
        True
    """
    queries = _checked("embeddings", tensor_of(embeddings))
    if references is None:
        return Sides(queries, queries, alone=True)
    others = _checked("references", tensor_of(references))
    if others.shape[1] != queries.shape[1]:
        raise ValueError(
            f"references must have the {queries.shape[1]} dimensions of embeddings, but have {others.shape[1]}"
        )
    same_device("references", others, queries.device, "embeddings")
    # handing the same tensor in twice is asking for the queries among themselves; who else would find a sample itself?
    same = others.data_ptr() == queries.data_ptr() and others.shape == queries.shape
    return Sides(queries, queries if same else others, alone=same and others.stride() == queries.stride())


def _checked(name: str, value: object) -> Tensor:
    with check_values():
        return embeddings_as_given(name, value).detach()


class Rows:
    """Embeddings in some order, prepared for products: once where memory allows, else again whenever asked.

    Args:
        embeddings: ``(n, d)``.
        order: which row stands where, ``(n,)``; as given without it.
        similarity: what prepares them.
        dtype: what products are made in.
        middle: a shift that is taken off, ``(1, d)``.
    """

    def __init__(
        self,
        embeddings: Tensor,
        order: Tensor | None,
        similarity: Similarity,
        dtype: torch.dtype,
        middle: Tensor | None = None,
    ) -> None:
        self.embeddings, self.order, self.similarity = embeddings, order, similarity
        self.dtype, self.middle = dtype, middle
        self._kept: Tensor | None = None

    def __len__(self) -> int:
        return len(self.embeddings)

    @property
    def nbytes(self) -> int:
        """What keeping all rows prepared takes."""
        return self.embeddings.numel() * self.dtype.itemsize

    def keep(self) -> None:
        """Prepare all rows now and keep them."""
        kept = self.embeddings.new_empty(self.embeddings.shape, dtype=self.dtype)
        step = chunk(kept)
        for start in range(0, len(kept), step):
            kept[start : start + step] = self.take(start, min(start + step, len(kept)))
        self._kept = kept

    @property
    def kept(self) -> bool:
        """Whether all rows are at hand."""
        return self._kept is not None

    def take(self, start: int, stop: int) -> Tensor:
        """Prepared rows of a range."""
        if self._kept is not None:
            return self._kept[start:stop]
        return self._prepare(
            self.embeddings[start:stop] if self.order is None else self.embeddings[self.order[start:stop]]
        )

    def at(self, index: Tensor) -> Tensor:
        """Prepared rows by index, where they stand as they were given."""
        return self._prepare(self.embeddings[index])

    def _prepare(self, rows: Tensor) -> Tensor:
        rows = self.similarity.prepare(rows.to(self.dtype))
        return rows if self.middle is None else rows - self.middle


def centre(embeddings: Tensor, similarity: Similarity, dtype: torch.dtype) -> Tensor | None:
    """The shift that a similarity takes off references first, ``(1, d)``; ``None`` where it takes none.

    Examples:
        >>> import torch
        >>> from likewise.core import Euclidean
        >>> centre(torch.tensor([[1.0], [3.0]]), Euclidean(normalize=False), torch.float32)
        tensor([[2.]])
    """
    if not similarity.centres:
        return None
    rows = Rows(embeddings, None, similarity, dtype)
    step = chunk(embeddings)
    total = torch.zeros(1, embeddings.shape[1], dtype=torch.float64, device=embeddings.device)
    for start in range(0, len(rows), step):
        total += rows.take(start, min(start + step, len(rows))).sum(dim=0, keepdim=True)
    return (total / len(rows)).to(dtype)


def multiply(left: Tensor, right: Tensor, similarity: Similarity, out: Tensor) -> Tensor:
    """Similarities of prepared rows, ``(m, n)``; written into ``out`` where the similarity is the product itself.

    Examples:
        >>> import torch
        >>> from likewise.core import Dot
        >>> multiply(torch.ones(1, 2), torch.ones(3, 2), Dot(), torch.empty(1, 3))
        tensor([[2., 2., 2.]])
    """
    rows, columns = out.shape
    if min(rows, columns) < NARROW:
        # products of few rows are rounded differently from column to column: equal vectors would not tie
        left = torch.nn.functional.pad(left, (0, 0, 0, max(0, NARROW - rows)))
        right = torch.nn.functional.pad(right, (0, 0, 0, max(0, NARROW - columns)))
        wide = left.new_empty(len(left), len(right))
        return out.copy_(multiply(left, right, similarity, wide)[:rows, :columns])
    products = torch.mm(left, right.T, out=out)
    if not similarity.uses_squares:
        empty = products.new_empty(0)
        return similarity.link(products, empty, empty)
    linked = similarity.link(products, similarity.squares(left)[:, None], similarity.squares(right)[None, :])
    return out.copy_(linked)


@contextmanager
def exactly(device_of: Tensor) -> Iterator[None]:
    """No gradients, no autocast, and no shortcuts (TF32, bfloat16) in products, whatever surrounds the block.

    Examples:
        >>> import torch
        >>> with exactly(torch.zeros(1)):
        ...     torch.is_grad_enabled()
        False
    """
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")
    try:
        with torch.no_grad(), full_precision(device_of):
            yield
    finally:
        torch.set_float32_matmul_precision(before)


def track(steps: Sequence[Step], what: str) -> Iterable[Step]:
    """Show progress on a terminal once something has taken two seconds; quiet elsewhere, and without tqdm.

    Examples:
        >>> list(track([1, 2, 3], "counting"))
        [1, 2, 3]
    """
    try:
        from tqdm import tqdm
    except ImportError:
        return steps
    bar: Callable[..., Iterable[Step]] = tqdm
    return bar(steps, desc=what, delay=2.0, disable=None, leave=False)
