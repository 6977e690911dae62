"""Embeddings and labels as tensors, arrays or lists, checked once."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import Tensor

from likewise.formula import Similarity, check_finite, check_values, labels_of, rows_of, same_device

Array: TypeAlias = Any
"""A tensor, or a numpy array, which is used as a CPU tensor that shares its memory."""


def as_tensor(name: str, value: object) -> object:
    """Convert an array to a tensor that shares its memory and a list to a new tensor; return anything else unchanged.

    Examples:
        >>> import numpy as np
        >>> as_tensor("embeddings", np.zeros(2))
        tensor([0., 0.], dtype=torch.float64)
        >>> as_tensor("labels", ["wren", "auk"])
        Traceback (most recent call last):
        ...
        TypeError: labels must hold numbers, but its dtype is <U4; encode_labels turns names into numbers
    """
    if isinstance(value, list | tuple):
        value = np.asarray(value)
    if not isinstance(value, np.ndarray):
        return value
    if value.dtype.kind not in "biuf":
        hint = "; encode_labels turns names into numbers" if name.endswith(("labels", "ids")) else ""
        raise TypeError(f"{name} must hold numbers, but its dtype is {value.dtype}{hint}")
    try:
        with warnings.catch_warnings():
            # a read-only array is safe: metrics never write to their inputs
            warnings.filterwarnings("ignore", message=".*not writable.*")
            return torch.from_numpy(value)
    except (TypeError, ValueError):  # a byte order or a stride that torch does not support
        return torch.from_numpy(np.ascontiguousarray(value.astype(value.dtype.newbyteorder("="))))


def check_labels(name: str, value: object, rows: int | None, device: torch.device | None, embeddings: str) -> Tensor:
    """Check labels given as a tensor, an array or a list, as `likewise.formula.labels_of` does.

    Args:
        name: the argument's name in error messages.
        value: the labels.
        rows: how many labels there must be; ``None`` for any number.
        device: where they must be; ``None`` for any device.
        embeddings: the name of the argument that the labels belong to.

    Examples:
        >>> check_labels("labels", [3, 4], 2, None, "embeddings")
        tensor([3, 4])
    """
    return labels_of(name, as_tensor(name, value), rows, device, embeddings)


@dataclass(frozen=True, eq=False)
class Embeddings:
    """Queries and references of checked shape, in their original dtype and without a copy.

    Args:
        queries: ``(m, d)``.
        references: ``(n, d)``; the queries themselves if ``same_set``.
        same_set: whether references were not passed, so that queries are compared with each other.
        similarity: how they are compared.
    """

    queries: Tensor
    references: Tensor
    same_set: bool
    similarity: Similarity

    @property
    def dtype(self) -> torch.dtype:
        """The dtype of products: at least float32."""
        widest = torch.promote_types(torch.promote_types(self.queries.dtype, self.references.dtype), torch.float32)
        return self.similarity.working_dtype(widest)

    def check_values(self) -> None:
        """Check the values on every device: an evaluation may synchronize."""
        names = (
            {"embeddings": self.queries}
            if self.same_set
            else {"embeddings": self.queries, "references": self.references}
        )
        with check_values():
            for name, rows in names.items():
                check_finite(name, rows)
                self.similarity.check(name, rows)


def check_embeddings(
    embeddings: object, references: object, similarity: Similarity, checks_values: bool = True
) -> Embeddings:
    """Check embeddings and references.

    Args:
        embeddings: the queries.
        references: the references; ``None`` for the queries.
        similarity: how they are compared.
        checks_values: whether their values are checked; otherwise the caller does it with `Embeddings.check_values`.

    Examples:
        >>> import torch
        >>> from likewise.formula import Cosine
        >>> check_embeddings(torch.eye(3), None, Cosine()).same_set
        True
    """
    queries = others = rows_of("embeddings", as_tensor("embeddings", embeddings)).detach()
    if references is not None:
        others = rows_of("references", as_tensor("references", references)).detach()
        if others.shape[1] != queries.shape[1]:
            raise ValueError(
                f"references must have the {queries.shape[1]} dimensions of embeddings, but have {others.shape[1]}"
            )
        same_device("references", others, queries.device, "embeddings")
    checked = Embeddings(queries, others, same_set=references is None, similarity=similarity)
    if checks_values:
        checked.check_values()
    return checked
