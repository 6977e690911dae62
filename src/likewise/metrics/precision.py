"""Exact products: full float32 matrix multiplication, independent of the caller's precision settings."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from torch import Tensor

from likewise.formula import full_precision


@contextmanager
def exact_precision(device_of: Tensor) -> Iterator[None]:
    """Disable gradients, autocast and reduced-precision products (TF32, bfloat16) inside this block.

    Args:
        device_of: a tensor on the device where the block computes.

    Examples:
        >>> import torch
        >>> with exact_precision(torch.zeros(1)):
        ...     torch.is_grad_enabled()
        False
    """
    _matmul_precision.raise_to_full()
    try:
        with torch.no_grad(), full_precision(device_of):
            yield
    finally:
        _matmul_precision.restore()


class _MatmulPrecision:
    """The float32 matmul precision of torch, which is one setting per process: a counter of nested and parallel users.

    The first user raises the precision, and the last user restores the caller's setting.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self._undo: list[Callable[[], object]] = []

    def raise_to_full(self) -> None:
        with self._lock:
            self._users += 1
            if self._users > 1:
                return
            backends: list[Any] = [torch.backends.cuda.matmul, getattr(torch.backends.mkldnn, "matmul", None)]
            if hasattr(backends[0], "fp32_precision"):  # torch 2.9 and later
                for backend in backends:
                    self._undo.append(partial(setattr, backend, "fp32_precision", backend.fp32_precision))
                    backend.fp32_precision = "ieee"
            else:
                self._undo.append(partial(torch.set_float32_matmul_precision, torch.get_float32_matmul_precision()))
                torch.set_float32_matmul_precision("highest")

    def restore(self) -> None:
        with self._lock:
            self._users -= 1
            while not self._users and self._undo:
                self._undo.pop()()


_matmul_precision = _MatmulPrecision()
