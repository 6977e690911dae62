"""Similarities tile by tile: any rectangle of queries x references, within a budget of memory."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor

from likewise.formula import Similarity, check_values, embeddings_as_given, full_precision, labels_of, same_device

Step = TypeVar("Step")

MEMORY = 2**28
"""Bytes that an evaluation may take on top of its inputs and its result, unless told otherwise: 256 MiB."""

CHUNK, CHUNK_ON_DEVICE = 2**19, 2**22
"""Entries of embeddings that are prepared at once: about what a core's own cache holds; enough to hide launches."""

GRAIN, GRAIN_ON_DEVICE = 48, 192
"""Sides of products are multiples of this.  Matrix libraries finish the rest of other sides by other instructions, which
round differently: equal vectors would not tie.  MKL's kernels are 8, 16, 24 or 48 wide; cuBLAS was seen to have several
ways in products of fewer than 144 rows."""


def grain(device: torch.device) -> int:
    """Of what the sides of products must be multiples, so that every pair is rounded alike.

    Examples:
        >>> grain(torch.device("cpu"))
        48
    """
    return GRAIN if device.type == "cpu" else GRAIN_ON_DEVICE


def whole_grains(size: int, device: torch.device) -> int:
    """The next multiple of the grain.

    Examples:
        >>> whole_grains(1, torch.device("cpu")), whole_grains(96, torch.device("cpu"))
        (48, 96)
    """
    return -(-size // grain(device)) * grain(device)


def chunk(embeddings: Tensor) -> int:
    """How many rows are prepared at once.

    Examples:
        >>> import torch
        >>> chunk(torch.zeros(1, 512))
        1024
    """
    return max(1, (CHUNK if embeddings.device.type == "cpu" else CHUNK_ON_DEVICE) // embeddings.shape[1])


def tensor_of(name: str, value: object) -> object:
    """An array as a tensor that shares its memory, a list as one that does not; the checks speak about anything else.

    Examples:
        >>> import numpy as np
        >>> tensor_of("embeddings", np.zeros(2))
        tensor([0., 0.], dtype=torch.float64)
        >>> tensor_of("labels", ["wren", "auk"])
        Traceback (most recent call last):
        ...
        TypeError: labels must hold numbers, but its dtype is <U4; encode_labels turns names into numbers
    """
    if isinstance(value, list | tuple):
        value = np.asarray(value)
    if not isinstance(value, np.ndarray):
        return value
    if value.dtype.kind not in "biuf":
        hint = "; encode_labels turns names into numbers" if "labels" in name else ""
        raise TypeError(f"{name} must hold numbers, but its dtype is {value.dtype}{hint}")
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".*not writable.*")  # nobody here writes
            return torch.from_numpy(value)
    except (TypeError, ValueError):  # a byte order or a stride that torch does not know
        return torch.from_numpy(np.ascontiguousarray(value.astype(value.dtype.newbyteorder("="))))


def labels_from(name: str, value: object, rows: int | None, device: torch.device | None, beside: str) -> Tensor:
    """Labels that a caller gave as a tensor, an array or a list, checked as `likewise.formula.checks.labels_of` does.

    Examples:
        >>> labels_from("labels", [3, 4], 2, None, "embeddings")
        tensor([3, 4])
    """
    return labels_of(name, tensor_of(name, value), rows, device, beside)


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


def sides(embeddings: object, references: object, similarity: Similarity) -> Sides:
    """Check embeddings and references; values too, on every device: nothing here is too fast to look.

    Examples:
        >>> import torch
        >>> from likewise.formula import Cosine
        >>> sides(torch.eye(3), None, Cosine()).alone
        True
    """
    queries = _checked("embeddings", embeddings, similarity)
    if references is None or references is embeddings:
        return Sides(queries, queries, alone=True)
    others = _checked("references", references, similarity)
    if others.shape[1] != queries.shape[1]:
        raise ValueError(
            f"references must have the {queries.shape[1]} dimensions of embeddings, but have {others.shape[1]}"
        )
    same_device("references", others, queries.device, "embeddings")
    # handing the same numbers in twice is asking for the queries among themselves; who else would find a sample itself?
    kinds = [(each.data_ptr(), each.shape, each.stride(), each.dtype) for each in (queries, others)]
    return Sides(queries, others, alone=kinds[0] == kinds[1])


def _checked(name: str, value: object, similarity: Similarity) -> Tensor:
    with check_values():
        checked = embeddings_as_given(name, tensor_of(name, value)).detach()
    if similarity.normalize:
        return checked
    most = torch.finfo(torch.promote_types(checked.dtype, torch.float32)).max
    largest = float(checked.abs().amax())
    if largest * largest * 4.0 * checked.shape[1] > most:
        raise ValueError(
            f"{name} must have finite similarities, but with entries of {largest:.1e} some would overflow; scale the "
            "embeddings down, or use float64"
        )
    return checked


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

    def keep(self, beyond: int = 0) -> None:
        """Prepare all rows now and keep them, with at least so many zeros behind."""
        rows, columns = self.embeddings.shape
        kept = self.embeddings.new_zeros(whole_grains(rows + beyond, self.embeddings.device), columns, dtype=self.dtype)
        step = chunk(kept)
        for start in range(0, rows, step):
            stop = min(start + step, rows)
            kept[start:stop] = self._prepared(start, stop)
        self._kept = kept

    @property
    def kept(self) -> bool:
        """Whether all rows are at hand."""
        return self._kept is not None

    def take(self, start: int, stop: int) -> Tensor:
        """Prepared rows of a range, and zeros beyond the last."""
        if self._kept is not None and stop <= len(self._kept):
            return self._kept[start:stop]
        rows = self._prepared(start, min(stop, len(self)))
        return torch.nn.functional.pad(rows, (0, 0, 0, stop - start - len(rows)))

    def _prepared(self, start: int, stop: int) -> Tensor:
        if self._kept is not None:
            return self._kept[start:stop]
        part = slice(start, stop)
        return self._prepare(self.embeddings[part] if self.order is None else self.embeddings[self.order[part]])

    def at(self, index: Tensor) -> Tensor:
        """Prepared rows by index, where they stand as they were given."""
        return self._prepare(self.embeddings[index])

    def _prepare(self, rows: Tensor) -> Tensor:
        rows = self.similarity.prepare(rows.to(self.dtype))
        return rows if self.middle is None else rows - self.middle


def center(embeddings: Tensor, similarity: Similarity, dtype: torch.dtype) -> Tensor | None:
    """The shift that a similarity takes off references first, ``(1, d)``; ``None`` where it takes none.

    Examples:
        >>> import torch
        >>> from likewise.formula import Euclidean
        >>> center(torch.tensor([[1.0], [3.0]]), Euclidean(normalize=False), torch.float32)
        tensor([[2.]])
    """
    if not similarity.subtracts_mean:
        return None
    rows = Rows(embeddings, None, similarity, dtype)
    step = chunk(embeddings)
    total = torch.zeros(1, embeddings.shape[1], dtype=torch.float64, device=embeddings.device)
    for start in range(0, len(rows), step):
        total += rows.take(start, min(start + step, len(rows))).sum(dim=0, keepdim=True)
    return (total / len(rows)).to(dtype)


def multiply(left: Tensor, right: Tensor, similarity: Similarity, out: Tensor) -> Tensor:
    """Similarities of prepared rows, ``(m, n)``, written into ``out``; both sides must be whole grains.

    Examples:
        >>> import torch
        >>> from likewise.formula import Dot
        >>> multiply(torch.ones(48, 2), torch.ones(48, 2), Dot(), torch.empty(48, 48))[:1, :3]
        tensor([[2., 2., 2.]])
    """
    products = torch.mm(left, right.T, out=out)
    if similarity.uses_squares:
        linked = similarity.link(products, similarity.squares(left)[:, None], similarity.squares(right)[None, :])
    else:
        linked = similarity.link(products, products.new_empty(0), products.new_empty(0))
    return out if linked is products else out.copy_(linked)


_precision_lock = threading.Lock()
_precision_users = 0
_precision_undo: list[Callable[[], object]] = []


@contextmanager
def exactly(device_of: Tensor) -> Iterator[None]:
    """No gradients, no autocast, and no shortcuts (TF32, bfloat16) in products, whatever surrounds the block.

    Examples:
        >>> import torch
        >>> with exactly(torch.zeros(1)):
        ...     torch.is_grad_enabled()
        False
    """
    _enter_precision()
    try:
        with torch.no_grad(), full_precision(device_of):
            yield
    finally:
        _leave_precision()


def _enter_precision() -> None:
    """The first to come switches shortcuts off for the whole process, as torch has it."""
    global _precision_users
    with _precision_lock:
        _precision_users += 1
        if _precision_users > 1:
            return
        backends: list[Any] = [torch.backends.cuda.matmul, getattr(torch.backends.mkldnn, "matmul", None)]
        if hasattr(backends[0], "fp32_precision"):  # torch 2.9 and later
            for backend in backends:
                _precision_undo.append(partial(setattr, backend, "fp32_precision", backend.fp32_precision))
                backend.fp32_precision = "ieee"
        else:
            _precision_undo.append(partial(torch.set_float32_matmul_precision, torch.get_float32_matmul_precision()))
            torch.set_float32_matmul_precision("highest")


def _leave_precision() -> None:
    """The last to go puts everything back."""
    global _precision_users
    with _precision_lock:
        _precision_users -= 1
        while not _precision_users and _precision_undo:
            _precision_undo.pop()()


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
