"""Uses of private names of PyTorch; no other file of the package uses private names."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, TypeVar

import torch
from torch import Tensor
from torch.autograd import forward_ad

# The base class of modes that see every operation.  The tutorials of PyTorch import it from here, because no public module
# exports it (torch 1.13 to 2.13).
from torch.utils._python_dispatch import TorchDispatchMode as TorchDispatchMode

F = TypeVar("F", bound=Callable[..., Any])


def assume_constant_result(function: F) -> F:
    """Mark a function whose result ``torch.compile`` treats as a constant of the graph.

    Examples:
        >>> @assume_constant_result
        ... def count_names() -> int:
        ...     return 3
        >>> count_names()
        3
    """
    # torch.compiler.assume_constant_result sets the same attribute, but importing the compiler for it takes seconds
    # (torch 2.1 to 2.13).
    vars(function)["_dynamo_marked_constant"] = True
    return function


def is_inside_func() -> bool:
    """Whether a transform of ``torch.func`` (``grad``, ``jvp``, ``vmap``, …) is active.

    Examples:
        >>> import torch
        >>> is_inside_func(), torch.vmap(lambda x: x * is_inside_func())(torch.ones(1))
        (False, tensor([1.]))
    """
    return torch._C._are_functorch_transforms_active()  # since torch 2.0; torch.compile evaluates it while it traces


def is_transformed() -> bool:
    """Whether a transform of ``torch.func`` or forward-mode differentiation is active.

    Both need plain operations: they do not differentiate a `torch.autograd.Function` that only has a ``backward``.

    Examples:
        >>> import torch
        >>> from torch.autograd import forward_ad
        >>> with forward_ad.dual_level():
        ...     is_transformed()
        True
    """
    return is_inside_func() or forward_ad._current_level >= 0  # since torch 1.11


def is_mapped(tensor: Tensor) -> bool:
    """Whether ``torch.vmap`` maps over a tensor, which then has many values, and none that can be read.

    Examples:
        >>> import torch
        >>> torch.vmap(lambda x: x * is_mapped(x))(torch.ones(1))
        tensor([1.])
    """
    if not is_inside_func():
        return False
    functorch = torch._C._functorch  # since torch 2.0
    while functorch.is_functorch_wrapped_tensor(tensor):  # one wrapper for each transform around it
        if functorch.is_batchedtensor(tensor):
            return True
        tensor = functorch.get_unwrapped(tensor)
    return False


def is_batch_of_gradients(grad: Tensor) -> bool:
    """Whether a gradient in a backward pass is one of several that ``is_grads_batched=True`` maps over.

    Examples:
        >>> is_batch_of_gradients(torch.ones(1))
        False
    """
    return torch._C._functorch.is_legacy_batchedtensor(grad)  # since torch 2.0


def outside_func() -> AbstractContextManager[Any]:
    """Suspend the transforms of ``torch.func``, for code whose tensors are not part of what is transformed.

    Examples:
        >>> import torch
        >>> with outside_func():
        ...     is_inside_func()
        False
    """
    suspended: AbstractContextManager[Any] = torch._C._DisableFuncTorch()  # since torch 2.0
    return suspended


def backward_pass() -> int:
    """The number of the backward pass that calls this; −1 outside of one.

    Examples:
        >>> backward_pass()
        -1
    """
    number: int = torch._C._current_graph_task_id()  # since torch 2.1
    return number


def keeps_graph() -> bool:
    """Whether the backward pass that calls this keeps its graph, so that another one may follow; true outside of one.

    Examples:
        >>> keeps_graph()
        True
    """
    kept: bool = torch._C._autograd._get_current_graph_task_keep_graph()  # since torch 2.5
    return kept


def current_cuda_stream(device: torch.device) -> int:
    """The address of the current stream of a GPU.

    Args:
        device: a GPU with its index.
    """
    # torch.cuda.current_stream builds an object first, which takes microseconds (torch 1.9 to 2.13)
    address: int = torch._C._cuda_getCurrentRawStream(device.index)
    return address


def is_built_with_onednn() -> bool:
    """Whether torch contains oneDNN, and the function that `multiply_with_onednn` calls.

    Examples:
        >>> isinstance(is_built_with_onednn(), bool)
        True
    """
    return torch._C._has_mkldnn and hasattr(torch.ops.mkldnn, "_linear_pointwise")


def multiply_with_onednn(left: Tensor, right: Tensor, added: Tensor | None = None) -> Tensor:
    """Return ``left rightᵀ + added``, of float32 on a CPU, computed by oneDNN and without a graph.

    Args:
        left: ``(m, d)``.
        right: ``(n, d)``.
        added: ``(1, n)``.

    Examples:
        >>> multiply_with_onednn(torch.ones(1, 2), torch.eye(2), torch.tensor([[0.0, 3.0]]))
        tensor([[1., 4.]])
    """
    bias = None if added is None else added.squeeze(0)
    if not (right.is_contiguous() or right.T.is_contiguous()):
        right = right.contiguous()
    # no public function leads here: torch.nn.functional.linear calls MKL (torch 2.0 to 2.13)
    product: Tensor = torch.ops.mkldnn._linear_pointwise(left, right, bias, "none", [], "")
    return product
