"""Entries and inner products of pairs that are given by two indices, which broadcast."""

from __future__ import annotations

import torch
from torch import Tensor

from likewise.formula.products import multiply_pairs


def take_rows(matrix: Tensor, index: Tensor) -> Tensor:
    """Return rows of a matrix, with a gradient that does not depend on the order of a GPU's atomic additions.

    On a CPU `torch.index_select` is deterministic, and faster than indexing.

    Examples:
        >>> import torch
        >>> take_rows(torch.tensor([[1.0], [2.0]]), torch.tensor([1, 1, 0])).tolist()
        [[2.0], [2.0], [1.0]]
    """
    return matrix[index] if matrix.is_cuda else matrix.index_select(0, index)


def take_columns(matrix: Tensor, columns: Tensor) -> Tensor:
    """Return some columns of each row, ``(m, k)``, with a gradient that does not depend on the order of atomic additions.

    On a GPU the gradients of many float32 columns are added in float64, where sums are exact, and thus the same in any order,
    unless they differ by a factor of more than 2²⁹.  Other columns are sorted.

    Examples:
        >>> import torch
        >>> take_columns(torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.tensor([[1], [0]])).tolist()
        [[2.0], [3.0]]
    """
    if not matrix.is_cuda:
        return matrix.gather(1, columns)
    if 4 * columns.shape[1] >= matrix.shape[1] and matrix.dtype == torch.float32:
        return matrix.double().gather(1, columns).to(matrix.dtype)
    first = torch.arange(0, matrix.numel(), matrix.shape[1], device=matrix.device)[:, None]
    return take_rows(matrix.reshape(-1), first + columns)


def pair_entries(matrix: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
    """Return ``matrix[rows, columns]`` for indices that broadcast; a chunk of rows and columns is sliced.

    Examples:
        >>> import torch
        >>> matrix = torch.arange(6.0).view(2, 3)
        >>> pair_entries(matrix, torch.tensor([[1], [0]]), torch.tensor([[0, 2]]))
        tensor([[3., 5.],
                [0., 2.]])
        >>> pair_entries(matrix, torch.tensor([0, 1]), torch.tensor([1, 2]))
        tensor([1., 5.])
    """
    shape = broadcast_shape(rows, columns)
    if _is_chunk(rows, columns):
        return matrix.index_select(0, rows.reshape(-1)).index_select(1, columns.reshape(-1)).view(shape)
    places = (rows * matrix.shape[1] + columns).reshape(-1)
    return take_rows(matrix.reshape(-1), places).view(shape)


def inner_products(left: Tensor, right: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
    """Return ``left[rows] · right[columns]`` for indices that broadcast; a matrix product for a chunk.

    Examples:
        >>> import torch
        >>> vectors = torch.tensor([[1.0, 0.0], [3.0, 4.0]])
        >>> inner_products(vectors, vectors, torch.tensor([[0], [1]]), torch.tensor([[0, 1]]))
        tensor([[ 1.,  3.],
                [ 3., 25.]])
        >>> inner_products(vectors, vectors, torch.tensor([0]), torch.tensor([1]))
        tensor([3.])
    """
    shape = broadcast_shape(rows, columns)
    if _is_chunk(rows, columns):
        some, others = take_rows(left, rows.reshape(-1)), take_rows(right, columns.reshape(-1))
        return multiply_pairs(some, others, cancels=True).view(shape)  # callers subtract them from squares
    rows, columns = rows.expand(shape).reshape(-1), columns.expand(shape).reshape(-1)
    return (take_rows(left, rows) * take_rows(right, columns)).sum(dim=1).view(shape)


def broadcast_shape(*index: Tensor) -> torch.Size:
    """Return the shape to which indices broadcast.

    Examples:
        >>> import torch
        >>> broadcast_shape(torch.zeros(2, 1), torch.zeros(1, 3))
        torch.Size([2, 3])
    """
    shape: torch.Size = torch.broadcast_shapes(*(each.shape for each in index))  # type: ignore[no-untyped-call]
    return shape


def _is_chunk(rows: Tensor, columns: Tensor) -> bool:
    """Whether indices are those of some rows and, along the last axis, of the same columns for all of them."""
    return rows.shape[-1] == 1 and columns.numel() == columns.shape[-1]
