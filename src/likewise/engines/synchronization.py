"""Synchronization of the host with a device: where it is allowed, and the detection of operations that need it.

Operations that synchronize cannot be captured.

Before torch 2.12 a failed capture leaves the allocator in a state in which it frees less memory
(https://github.com/pytorch/pytorch/pull/180395), so such operations are detected in a run without capture.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from likewise._compat import is_mapped
from likewise.formula import PairBatch, Triplets, can_read_values

_READS = frozenset(
    {
        *("item", "tolist", "numpy", "__bool__", "__int__", "__float__", "__complex__", "__index__", "__contains__"),
        *("is_nonzero", "equal", "allclose", "nonzero", "argwhere", "masked_select", "bincount", "histc"),
        *("unique", "unique_consecutive", "unique_dim"),
    }
)
"""Functions whose result, or its shape, the host needs before it continues."""

_COPIES = frozenset(
    {"to", "cpu", "cuda", "copy_", "type", "tensor", "as_tensor", "asarray", "new_tensor", "from_numpy"}
)
"""Functions that may copy between host and device."""


FEW = 16
"""Triplets of an anchor, used or not, that are not reduced to the used ones on a device."""


def can_synchronize(tensor: Tensor, *, large: bool) -> bool:
    """Return whether the host may read from the tensor's device: always on the CPU, elsewhere only for large batches.

    Examples:
        >>> import torch
        >>> can_synchronize(torch.zeros(1), large=False), can_synchronize(torch.zeros(1, device="meta"), large=True)
        (True, False)
    """
    if can_read_values(tensor):
        return True
    if not large or tensor.is_meta or torch.compiler.is_compiling() or is_mapped(tensor):
        return False
    return not (tensor.is_cuda and torch.cuda.is_current_stream_capturing())


def compact(triplets: Triplets, *, large: bool) -> Triplets:
    """Return triplets without unused entries if the host may read their number, otherwise unchanged.

    A few triplets per anchor on a device stay as they are: unused ones take less time than reading their number.

    Examples:
        >>> import torch
        >>> zero, valid = torch.zeros(2, dtype=torch.int64), torch.tensor([True, False])
        >>> len(compact(Triplets(zero, zero, zero, valid), large=False).anchors)
        1
    """
    if triplets.valid is None:
        return triplets
    is_few = triplets.per_anchor is not None and triplets.per_anchor <= FEW
    return triplets.compact() if can_synchronize(triplets.valid, large=large and not is_few) else triplets


def cut_batch(batch: PairBatch, rows: slice) -> PairBatch:
    """Return some anchors of a batch; triplets of other anchors are dropped if the host may read their number.

    Examples:
        >>> import torch
        >>> from likewise.formula import Labels
        >>> cut_batch(PairBatch(Labels(torch.tensor([0, 1])), matrix=torch.eye(2)), slice(0, 1)).shape
        (1, 2)
    """
    chunk = batch.rows(rows)
    relation = chunk.relation
    return chunk.under(compact(relation, large=False)) if isinstance(relation, Triplets) else chunk


class SynchronizationError(RuntimeError):
    """An operation would synchronize the host with the device."""


class ForbidSynchronization(TorchFunctionMode):
    """Raise `SynchronizationError` on operations of this thread that would synchronize if the tensors were on a GPU.

    Examples:
        >>> import torch
        >>> with ForbidSynchronization():
        ...     torch.ones(2).sum().item()
        Traceback (most recent call last):
        ...
        likewise.engines.synchronization.SynchronizationError: item synchronizes the host with the device
    """

    def __torch_function__(
        self,
        function: Callable[..., Any],
        types: Any,
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        """Call a function of torch, unless it synchronizes."""
        options = kwargs or {}
        name = getattr(function, "__name__", "")
        if name in _READS or _reads_shape(name, args, options):
            raise SynchronizationError(f"{name} synchronizes the host with the device")
        result = function(*args, **options)
        if name in _COPIES and _changes_device(result, args):
            raise SynchronizationError(f"{name} copies between host and device")
        return result


def _reads_shape(name: str, args: Sequence[Any], options: Mapping[str, Any]) -> bool:
    """Whether the shape of a result depends on values."""
    if name == "repeat_interleave":
        return options.get("output_size") is None and any(isinstance(each, Tensor) for each in args[1:])
    if name == "where":
        return len(args) + len(options) == 1
    if name == "__getitem__":
        return _is_mask(args[1])
    # writing one number where a mask is true does not read the mask
    return name == "__setitem__" and _is_mask(args[1]) and isinstance(args[2], Tensor) and args[2].ndim > 0


def _is_mask(index: Any) -> bool:
    indices = index if isinstance(index, tuple) else (index,)
    return any(isinstance(each, Tensor) and each.dtype in (torch.bool, torch.uint8) for each in indices)


def _changes_device(result: Any, args: Sequence[Any]) -> bool:
    if not isinstance(result, Tensor):
        return False
    devices = [each.device for each in args if isinstance(each, Tensor)]
    return any(device != result.device for device in devices) or (not devices and result.device.type != "cpu")
