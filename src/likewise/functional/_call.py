"""Calls of the classes of `likewise.losses`, with the caller's tensors as parameters."""

from __future__ import annotations

import operator
import threading
from collections.abc import Callable
from functools import lru_cache
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn
from torch.func import functional_call

from likewise._compat import assume_constant_result, outside_func
from likewise.formula import RelationLike, embeddings_as_given
from likewise.losses import PairLoss, ProxyLoss

PairInputs: TypeAlias = tuple[Tensor, Tensor | None, Tensor | None, Tensor | None, RelationLike | None]
"""The caller's embeddings, labels, references, reference labels and relation."""


def call_pair_loss(
    kind: type[nn.Module],
    inputs: PairInputs,
    tensors: dict[str, Tensor] | None = None,
    **options: Any,
) -> Tensor:
    """Compute a loss on pairs, or on embeddings only.

    Args:
        kind: the class.
        inputs: the batch.
        tensors: values of the parameters, by their names.
        options: arguments of the class.

    Examples:
        >>> from likewise.losses import NTXentLoss
        >>> embeddings, labels = torch.tensor([[1.0, 0.0], [0.8, 0.6], [0.6, 0.8]]), torch.tensor([0, 0, 1])
        >>> call_pair_loss(NTXentLoss, (embeddings, labels, None, None, None), temperature=0.07)
        tensor(1.2192)
    """
    *batch, relation = inputs
    module = _find(kind, options)
    value: Tensor = (
        functional_call(module, tensors, tuple(batch), {"relation": relation})
        if tensors
        else module(*batch, relation=relation)
    )
    return value


def call_proxy_loss(
    kind: type[ProxyLoss],
    inputs: tuple[Tensor, Tensor, Tensor],
    tensors: dict[str, Tensor] | None = None,
    **options: Any,
) -> Tensor:
    """Compute a loss with proxies; the numbers of classes and dimensions follow from ``proxies`` and ``centers``.

    Args:
        kind: the class.
        inputs: embeddings, labels and proxies.
        tensors: values of the other parameters, by their names.
        options: arguments of the class.

    Examples:
        >>> from likewise.losses import CosFaceLoss
        >>> call_proxy_loss(CosFaceLoss, (torch.eye(2), torch.tensor([0, 1]), torch.eye(2)), margin=0.0, scale=1.0)
        tensor(0.3133)
    """
    embeddings, labels, proxies = inputs
    module = find_proxy_loss(kind, proxies, **options)
    value: Tensor = functional_call(module, {"proxies": proxies, **(tensors or {})}, (embeddings, labels))
    return value


def find_proxy_loss(kind: type[ProxyLoss], proxies: Tensor, **options: Any) -> ProxyLoss:
    """Construct a proxy loss without parameters; the number of classes follows from the proxies.

    Args:
        kind: the class.
        proxies: the proxies, which the module does not hold.
        options: arguments of the class.

    Examples:
        >>> from likewise.losses import CosFaceLoss
        >>> find_proxy_loss(CosFaceLoss, torch.eye(2), margin=0.0).num_classes
        2
    """
    rows, dim = embeddings_as_given("proxies", proxies).shape
    centers = options.get("centers", 1)
    # the class raises an error for an invalid number of centers
    classes = max(rows // centers, 1) if isinstance(centers, int) and centers > 0 else rows
    module: ProxyLoss = _find(kind, {"num_classes": classes, "embedding_dim": dim, **options})
    if rows != classes * centers:
        raise ValueError(f"proxies must have {centers} rows for each class, but there are {rows} rows")
    return module


def find_pair_loss(kind: type[nn.Module], **options: Any) -> Any:
    """Construct a loss without parameters.

    Examples:
        >>> from likewise.losses import DynamicSoftMarginLoss
        >>> find_pair_loss(DynamicSoftMarginLoss, num_bins=4).num_bins
        4
    """
    return _find(kind, options)


def call_with_hierarchy(kind: type[ProxyLoss], inputs: tuple[Tensor, Tensor, Tensor, Tensor], **options: Any) -> Tensor:
    """Compute a loss with proxies and a table of the classes' labels on every level.

    Args:
        kind: the class.
        inputs: embeddings, labels, proxies and the table.
        options: arguments of the class.

    Examples:
        >>> from likewise.losses import CSLLoss
        >>> hierarchy = torch.tensor([[0, 0], [1, 0]])
        >>> inputs = torch.eye(2), hierarchy, torch.eye(2), hierarchy
        >>> call_with_hierarchy(CSLLoss, inputs, margins=(0.5, 0.5), scale=2.0)
        tensor(0.3133)
    """
    embeddings, labels, proxies, hierarchy = inputs
    rows, dim = embeddings_as_given("proxies", proxies).shape
    module = _make(kind, num_classes=rows, embedding_dim=dim, hierarchy=hierarchy, **options)
    value: Tensor = functional_call(module, {"proxies": proxies}, (embeddings, labels))
    return value


def call_with_function(kind: type[PairLoss], inputs: PairInputs, **options: Any) -> Tensor:
    """Compute a loss with a function as an option; the function is not kept after the call.

    Examples:
        >>> from likewise.losses import WeightedPairLoss
        >>> inputs = torch.eye(2), torch.tensor([0, 1]), None, None, None
        >>> call_with_function(
        ...     WeightedPairLoss, inputs, weight_fn=lambda similarities, rows, is_positive: similarities + 1.0
        ... )
        tensor(0.)
    """
    if torch.compiler.is_compiling():
        # torch.compile breaks its graph here and runs the call outside; with fullgraph=True it shows this error
        raise NotImplementedError(
            f"{kind.__name__} must be constructed before torch.compile to be part of a graph, but it is called as a function"
        )
    *batch, relation = inputs
    value: Tensor = _make(kind, **options)(*batch, relation=relation)
    return value


def _find(kind: Callable[..., nn.Module], options: dict[str, Any]) -> Any:
    if torch.compiler.is_compiling():
        return getattr(_TRACED, _trace(kind, **{name: _specialize(value) for name, value in options.items()}))
    try:
        hash(tuple(options.values()))
    except TypeError:  # a miner or a similarity that is not hashable
        return _make(kind, **options)
    return _cached_module(kind, threading.get_ident(), **options)


def _make(kind: Callable[..., nn.Module], **options: Any) -> Any:
    """Construct a module on the meta device, which draws no random numbers and takes no memory."""
    # vmap cannot see that nothing is drawn, and the module may outlive the transform
    with outside_func(), torch.device("meta"):
        return kind(**options)


@lru_cache(maxsize=256, typed=True)
def _cached_module(kind: Callable[..., nn.Module], thread: int, **options: Any) -> Any:
    """Cache modules by class, options and thread, because ``functional_call`` temporarily changes a module."""
    return _make(kind, **options)


class _Traced:
    """Modules that ``torch.compile`` traces, as attributes: it guards attributes, but not function results."""


_TRACED = _Traced()


def _specialize(value: Any) -> Any:
    """Turn a symbolic number of ``torch.compile`` into a constant of the graph, for which a module is constructed."""
    if isinstance(value, int) and not isinstance(value, bool):
        return operator.index(value)
    return float.fromhex(value.hex()) if isinstance(value, float) else value


@assume_constant_result
def _trace(kind: Callable[..., nn.Module], **options: Any) -> str:
    name = f"module_{len(vars(_TRACED))}"
    setattr(_TRACED, name, _make(kind, **options))
    return name
