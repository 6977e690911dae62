"""A watch for what would make a host wait for its GPU, on a machine that needs none."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from likewise.formula import check_values

WAITS = frozenset(
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
"""Operations whose result, or the shape of it, the host must know before it goes on."""


class _Watch(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Refuse what waits."""

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        name = func.overloadpacket.__name__
        waits = name in WAITS and (name != "repeat_interleave" or (kwargs or {}).get("output_size") is None)
        masks = name in ("index", "index_put", "index_put_") and any(
            isinstance(index, Tensor) and index.dtype in (torch.bool, torch.uint8)
            for index in args[1]
            if index is not None
        )
        if waits or masks:
            raise AssertionError(f"{func} would make the host wait for the device")
        return func(*args, **(kwargs or {}))


@contextmanager
def nobody_waits() -> Iterator[None]:
    """Fail inside this block on anything that would wait for a GPU, were the tensors on one; no value is looked at.

    Examples:
        >>> import torch
        >>> with nobody_waits():
        ...     torch.ones(2).sum().item()
        Traceback (most recent call last):
        ...
        AssertionError: aten._local_scalar_dense.default would make the host wait for the device
    """
    with check_values(False), _Watch():  # type: ignore[no-untyped-call]
        yield


def value_without_waiting(loss: Callable[..., Tensor], embeddings: Tensor, *args: Any, **options: Any) -> Tensor:
    """A loss, forward and backward, where nothing may wait; then its value.

    Examples:
        >>> import torch
        >>> from likewise.losses import ContrastiveLoss
        >>> value_without_waiting(ContrastiveLoss(), torch.eye(2), torch.tensor([0, 1]))
        tensor(0.)
    """
    leaf = embeddings.detach().clone().requires_grad_()
    with nobody_waits():
        value = loss(leaf, *args, **options)
        value.sum().backward()  # type: ignore[no-untyped-call]
    return value.detach()
