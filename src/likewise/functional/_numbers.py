"""Numbers that a loss can learn: a plain number, or a tensor that gets a gradient."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from likewise.formula import can_read_values, same_device


def split_temperature(
    name: str, temperature: float | Tensor, embeddings: Tensor
) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Return the options and tensors of a class that takes its temperature as a number or learns its logarithm.

    Examples:
        >>> split_temperature("NTXentLoss", 0.5, torch.eye(2))
        ({'temperature': 0.5}, {})
        >>> split_temperature("NTXentLoss", torch.tensor(1.0), torch.eye(2))
        ({'learn_temperature': True}, {'log_temperature': tensor(0.)})
    """
    if not isinstance(temperature, Tensor):
        return {"temperature": temperature}, {}
    learned = check_tensor(f"{name}: temperature", temperature, 1, embeddings).reshape(())
    if can_read_values(learned) and not 0.0 < learned.item() < math.inf:
        raise ValueError(f"{name}: temperature must be a number > 0, but it is {learned.item():g}")
    return {"learn_temperature": True}, {"log_temperature": learned.log()}


def split_beta(beta: float | Tensor, embeddings: Tensor) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Return the options and tensors of `MarginLoss`: one boundary, or one for each class.

    Examples:
        >>> split_beta(torch.tensor([1.0, 1.5]), torch.eye(2))
        ({'num_classes': 2}, {'beta': tensor([1.0000, 1.5000])})
    """
    if isinstance(beta, Tensor):
        boundary = check_tensor("MarginLoss: beta", beta, None, embeddings).reshape(-1)
        return {"num_classes": None if len(boundary) == 1 else len(boundary)}, {"beta": boundary}
    options = {"beta": beta, "learn_beta": False}
    if not isinstance(beta, int | float) or not isinstance(embeddings, Tensor):
        return options, {}  # the class raises the error
    # on the device and in the dtype of the embeddings
    dtype = torch.float64 if embeddings.dtype == torch.float64 else torch.float32
    return options, {"beta": torch.full((1,), float(beta), dtype=dtype, device=embeddings.device)}


def split_scale_and_bias(
    scale: float | Tensor, bias: float | Tensor, embeddings: Tensor
) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Return the options and tensors of `SigmoidLoss`, which takes numbers or learns both.

    Examples:
        >>> split_scale_and_bias(10.0, -10.0, torch.eye(2))
        ({'scale': 10.0, 'bias': -10.0, 'learn': False}, {})
        >>> split_scale_and_bias(torch.tensor(1.0), 0.0, torch.eye(2))
        ({}, {'log_scale': tensor(0.), 'bias': tensor(0.)})
    """
    if not isinstance(scale, Tensor) and not isinstance(bias, Tensor):
        return {"scale": scale, "bias": bias, "learn": False}, {}
    tensors = []
    for name, value in (("scale", scale), ("bias", bias)):
        if isinstance(value, Tensor):
            tensors.append(check_tensor(f"SigmoidLoss: {name}", value, 1, embeddings).reshape(()))
        elif not isinstance(value, int | float) or isinstance(value, bool):
            raise ValueError(f"SigmoidLoss: {name} must be a number, but it is {value!r}")
        else:
            dtype = torch.float64 if embeddings.dtype == torch.float64 else torch.float32
            tensors.append(torch.full((), float(value), dtype=dtype, device=embeddings.device))
    if can_read_values(tensors[0]) and not 0.0 < tensors[0].item() < math.inf:
        raise ValueError(f"SigmoidLoss: scale must be a number > 0, but it is {tensors[0].item():g}")
    return {}, {"log_scale": tensors[0].log(), "bias": tensors[1]}


def split_bias(bias: Tensor | None, proxies: Tensor) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Return the options and tensors of `SoftmaxLoss`, with or without a bias for each class.

    Examples:
        >>> split_bias(None, torch.eye(2))
        ({'bias': False}, {})
    """
    if bias is None or not isinstance(proxies, Tensor):
        return {"bias": False}, {}
    if not isinstance(bias, Tensor):
        raise TypeError(f"SoftmaxLoss: bias must be a tensor or None, but it is a {type(bias).__name__}")
    return {"bias": True}, {"bias": check_tensor("SoftmaxLoss: bias", bias, len(proxies), proxies)}


def check_tensor(name: str, value: Tensor, length: int | None, like: Tensor) -> Tensor:
    """Check a tensor of numbers, ``(n,)`` or, where n may be 1, ``()``; half precision is widened.

    Args:
        name: the argument's name in an error.
        value: the tensor.
        length: n; ``None`` allows any except 0.
        like: the tensor must be on the device of this one.

    Examples:
        >>> check_tensor("bias", torch.zeros(3, dtype=torch.float16), 3, torch.eye(2)).dtype
        torch.float32
    """
    if not value.is_floating_point():
        raise TypeError(f"{name} must be of a floating-point dtype, but the dtype is {value.dtype}")
    if value.ndim > 1 or value.numel() == 0 or (length is not None and value.numel() != length):
        wanted = "one number" if length == 1 else "shape (n,)" if length is None else f"shape ({length},)"
        raise ValueError(f"{name} must have {wanted}, but the shape is {tuple(value.shape)}")
    if isinstance(like, Tensor):
        same_device(name, value, like.device, "embeddings")
    return value if value.dtype in (torch.float32, torch.float64) else value.float()
