"""Detection of operations that make the host wait for a GPU, on machines without a GPU."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from likewise._compat import TorchDispatchMode
from likewise.formula import check_values

SYNCHRONIZING = frozenset(
    {
        "_local_scalar_dense",
        "is_nonzero",
        "equal",
        "nonzero",
        "nonzero_numpy",
        "masked_select",
        "argwhere",
        "bincount",
        "histc",
        "unique_dim",
        "unique_consecutive",
        "_unique",
        "_unique2",
        "repeat_interleave",
    }
)
"""Operations whose result, or its shape, the host must read before it continues."""


class _ForbidSynchronization(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Raise an error for operations that synchronize."""

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        name = func.overloadpacket.__name__
        synchronizes = name in SYNCHRONIZING and (
            name != "repeat_interleave" or (kwargs or {}).get("output_size") is None
        )
        indexes_by_mask = name in ("index", "index_put", "index_put_") and any(
            isinstance(index, Tensor) and index.dtype in (torch.bool, torch.uint8)
            for index in args[1]
            if index is not None
        )
        if synchronizes or indexes_by_mask:
            raise AssertionError(f"{func} would make the host wait for the device")
        return func(*args, **(kwargs or {}))


@contextmanager
def forbid_synchronization() -> Iterator[None]:
    """Raise ``AssertionError`` inside this block for operations that would wait for a GPU if the tensors were on one.

    Values of tensors are not checked inside the block, as on a GPU.

    Examples:
        >>> import torch
        >>> with forbid_synchronization():
        ...     torch.ones(2).sum().item()
        Traceback (most recent call last):
        ...
        AssertionError: aten._local_scalar_dense.default would make the host wait for the device
    """
    with check_values(False), _ForbidSynchronization():  # type: ignore[no-untyped-call]
        yield


def evaluate_without_synchronization(loss: Callable[..., Tensor], embeddings: Tensor, *args: Any) -> Tensor:
    """Run a loss forward and backward inside `forbid_synchronization` and return its value.

    Args:
        loss: a loss, or any function of embeddings.
        embeddings: the embeddings.
        args: further arguments of the loss, such as labels.

    Examples:
        >>> import torch
        >>> from likewise.losses import ContrastiveLoss
        >>> evaluate_without_synchronization(ContrastiveLoss(), torch.eye(2), torch.tensor([0, 1]))
        tensor(0.)
    """
    leaf = embeddings.detach().clone().requires_grad_()
    with forbid_synchronization():
        value = loss(leaf, *args)
        value.sum().backward()  # type: ignore[no-untyped-call]
    return value.detach()
