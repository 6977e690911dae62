"""Precision: autocast, products in half precision, and blocks that compute in full precision."""

from __future__ import annotations

import threading
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Self

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from likewise._compat import is_transformed

HALVES = (torch.bfloat16, torch.float16)
"""The dtypes of half precision."""


def same_half(*given: Tensor) -> torch.dtype | None:
    """Return the half-precision dtype that all tensors share, or ``None``; their products do not need more digits.

    Examples:
        >>> import torch
        >>> same_half(torch.zeros(1).half(), torch.zeros(2).half()), same_half(torch.zeros(1), torch.zeros(2).half())
        (torch.float16, None)
    """
    dtype = given[0].dtype
    return dtype if dtype in HALVES and all(each.dtype == dtype for each in given) else None


def half_of_products(embeddings: Tensor, table: Tensor) -> torch.dtype | None:
    """Return the half-precision dtype in which embeddings are multiplied with a table of parameters, or ``None``.

    It is the dtype that both have.  Under autocast, bfloat16 embeddings are multiplied with a float32 table in bfloat16, as
    `torch.nn.Linear` does it; `PairBatch.from_table` then rounds the table.

    Examples:
        >>> import torch
        >>> half_of_products(torch.zeros(1).bfloat16(), torch.zeros(1)) is None
        True
        >>> with torch.autocast("cpu", dtype=torch.bfloat16):
        ...     half_of_products(torch.zeros(1).bfloat16(), torch.zeros(1))
        torch.bfloat16
    """
    # the range of float16 is too small for a table that is not scaled
    mixed = embeddings.dtype == torch.bfloat16 and table.dtype == torch.float32
    return torch.bfloat16 if mixed and autocast_is_on(embeddings) else same_half(embeddings, table)


def round_to(rows: Tensor, half: torch.dtype | None) -> Tensor:
    """Rows of a float32 table with the values that they have in half precision, and the gradient of the rows themselves.

    Args:
        rows: parameters.
        half: the dtype of the products, from `half_of_products`; rows that have it, and ``None``, are not rounded.

    Examples:
        >>> import torch
        >>> round_to(torch.tensor([1.001]), torch.bfloat16), round_to(torch.tensor([1.001]), None)
        (tensor([1.]), tensor([1.0010]))
    """
    if half is None or rows.dtype == half:
        return rows
    if is_transformed():
        # the difference of a number and its nearest neighbor is exact, so the sum is the neighbor
        return rows + (rows.detach().to(half).to(rows.dtype) - rows.detach())
    rounded: Tensor = _Round.apply(rows, half)  # type: ignore[no-untyped-call]
    return rounded


class _Round(torch.autograd.Function):
    """Rounding whose derivative is one; torch's would round the gradient as well."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, half: torch.dtype) -> Tensor:
        return rows.to(half).to(rows.dtype)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        return grad, None


def autocast_is_on(tensor: Tensor) -> bool:
    """Return whether autocast is on for the tensor's device; some devices do not support it.

    Examples:
        >>> import torch
        >>> autocast_is_on(torch.zeros(1)), autocast_is_on(torch.zeros(1, device="meta"))
        (False, False)
    """
    kind = tensor.device.type
    # torch.compile traces is_autocast_available only from torch 2.12 on, and only these devices are compiled for
    known = torch.compiler.is_compiling() or torch.amp.is_autocast_available(kind)
    return known and not tensor.is_meta and torch.is_autocast_enabled(kind)


def full_precision(tensor: object, *, marked: bool = False) -> AbstractContextManager[object]:
    """Switch autocast off where the device supports it: losses accumulate in float32 inside any autocast block.

    The backward pass of matrix products that are computed inside runs in full precision too, wherever ``backward`` is
    called.

    Args:
        tensor: a tensor on the device of the block.
        marked: whether every product inside is marked by `exactly`; otherwise all operations are watched, which takes
            about 0.2 ms for a loss.  Products of other kinds than `_PRODUCTS` are not found.

    Examples:
        >>> import torch
        >>> with torch.autocast("cpu", dtype=torch.bfloat16), full_precision(torch.zeros(1)):
        ...     print((torch.ones(1, 1) @ torch.ones(1, 1)).dtype)
        torch.float32
    """
    # switching autocast off takes longer than reading whether it is on
    if not isinstance(tensor, Tensor) or not autocast_is_on(tensor):
        return nullcontext()
    # torch.compile handles the backward pass itself
    if torch.compiler.is_compiling() or not torch.is_grad_enabled():
        return torch.autocast(tensor.device.type, enabled=False)
    return (_Marked if marked else _FullPrecision)(tensor.device.type)


class _Block(threading.local):
    """The block of this thread whose products are marked.

    Attributes:
        device: the kind of its device; ``None`` outside of a block.
    """

    device: str | None = None


_block = _Block()


class _Marked:
    """Autocast off, in the forward pass and in the backward pass of the matrix products that are marked."""

    def __init__(self, device: str) -> None:
        self._device = device
        self._off: AbstractContextManager[Any] = torch.autocast(device, enabled=False)
        self._before: str | None = None

    def __enter__(self) -> Self:
        self._off.__enter__()
        self._before, _block.device = _block.device, self._device
        return self

    def __exit__(self, *error: Any) -> None:
        _block.device = self._before
        self._off.__exit__(*error)


def exactly(product: Tensor) -> Tensor:
    """Mark a matrix product: in a block of `full_precision`, its backward pass runs in full precision.

    Examples:
        >>> exactly(torch.ones(1, 2) @ torch.ones(2, 1))
        tensor([[2.]])
    """
    if _block.device is not None:
        _differentiate_exactly(product, _block.device)
    return product


def are_built_in(*objects: object) -> bool:
    """Return whether objects are names, or of classes of this package that call no code of users.

    Their products with a gradient are marked by `exactly`; the contract tests of losses check it.

    Examples:
        >>> from likewise.formula import Cosine
        >>> are_built_in("cosine", Cosine()), are_built_in(torch.nn.Identity())
        (True, False)
    """
    return all(isinstance(each, str) or _is_built_in(each) for each in objects)


def _is_built_in(value: object) -> bool:
    own = type(value).__module__.startswith("likewise.")
    return own and not hasattr(value, "pool")  # a pooled similarity contains others


_PRODUCTS = frozenset(
    [
        *(torch.matmul, Tensor.matmul, torch.mm, Tensor.mm, torch.mv, Tensor.mv, torch.bmm, Tensor.bmm),
        *(torch.addmm, Tensor.addmm, torch.baddbmm, Tensor.baddbmm, torch.nn.functional.linear, torch.linalg.cholesky),
    ]
)
"""Functions whose backward pass multiplies matrices."""

_NODES = ("MmBackward", "BmmBackward", "MvBackward", "AddmmBackward", "BaddbmmBackward", "LinalgCholeskyExBackward")
"""The beginnings of the names of their nodes."""

_VIEWS = (
    "TBackward",
    "TransposeBackward",
    "UnsafeViewBackward",
    "ViewBackward",
    "ReshapeAliasBackward",
    "SqueezeBackward",
)
"""The beginnings of the names of nodes between them and their results."""


class _FullPrecision(TorchFunctionMode):
    """Autocast off, in the forward pass and in the backward pass of the matrix products computed inside."""

    def __init__(self, device: str) -> None:
        super().__init__()
        self._device = device
        self._off: AbstractContextManager[Any] = torch.autocast(device, enabled=False)

    def __enter__(self) -> Self:
        self._off.__enter__()
        super().__enter__()  # type: ignore[no-untyped-call]
        return self

    def __exit__(self, *error: Any) -> None:
        super().__exit__(*error)  # type: ignore[no-untyped-call]
        self._off.__exit__(*error)

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = function(*args, **kwargs) if kwargs else function(*args)
        if function in _PRODUCTS:
            _differentiate_exactly(result, self._device)
        return result


def _differentiate_exactly(result: Tensor | None, device: str) -> None:
    """Switch autocast off during the backward pass of the node that computed a product, found through its views."""
    node = None if result is None else result.grad_fn
    while node is not None and node.name().startswith(_VIEWS):
        node = node.next_functions[0][0]
    if node is None or not node.name().startswith(_NODES):
        return
    before: list[bool] = []

    def begin(_grads: Any) -> None:
        before.append(torch.is_autocast_enabled(device))
        torch.set_autocast_enabled(device, False)

    def end(grads: Any, _of: Any) -> None:
        torch.set_autocast_enabled(device, before.pop())
        for grad in grads:  # the gradients may be differentiated again
            _differentiate_exactly(grad, device)

    node.register_prehook(begin)
    node.register_hook(end)
