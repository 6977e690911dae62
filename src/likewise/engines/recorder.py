"""Recorders of computations that are replayed in one launch: CUDA graphs, through torch's public API."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Hashable
from typing import Protocol, TypeAlias

import torch
from torch import Tensor

from likewise._compat import current_cuda_stream

Gradients: TypeAlias = tuple[Tensor | None, ...]
"""One for each input; ``None`` for those that do not require one."""

Outputs: TypeAlias = tuple[Tensor, Gradients]
"""A value and the gradients of the inputs that require one."""

Run: TypeAlias = Callable[[], Outputs]


class Pool(Protocol):
    """Memory that the recordings of one stream share.

    Recordings reuse each other's intermediate memory, so recordings of one pool must not run at the same time, and the
    outputs of one are lost when any of them runs.

    Attributes:
        reserved: the bytes that recordings reserve on the device.
    """

    reserved: int

    def rehearse(self, run: Run) -> Outputs:
        """Run once under the conditions of a recording, so that libraries initialize before they are recorded."""

    def record(self, run: Run) -> tuple[Outputs, Callable[[], None]]:
        """Record a run: tensors that hold its results after each replay, and the replay."""

    def renew(self, *, empty: bool = False) -> None:
        """Switch to new memory: an interrupted recording, or the end of the last one, leaves the pool unusable.

        Args:
            empty: whether no recording holds memory of the pool.
        """


class Recorder(Protocol):
    """Records on a kind of device."""

    def accepts(self, device: torch.device) -> bool:
        """Whether work on a device can currently be recorded."""

    def stream(self, device: torch.device) -> Hashable:
        """The caller's current stream on a device."""

    def open_pool(self, device: torch.device) -> Pool:
        """Memory for recordings."""


class CudaRecorder:
    """Records CUDA graphs.

    Examples:
        >>> CudaRecorder().accepts(torch.device("cpu"))
        False
    """

    def accepts(self, device: torch.device) -> bool:
        """Whether the device is a GPU and the caller is not capturing."""
        return device.type == "cuda" and not torch.cuda.is_current_stream_capturing()

    def stream(self, device: torch.device) -> Hashable:
        """The address of the current stream."""
        return current_cuda_stream(device)

    def open_pool(self, device: torch.device) -> Pool:
        """A memory pool of CUDA graphs."""
        return CudaPool(device)


class CudaPool:
    """A memory pool of CUDA graphs, and the stream on which they are captured.

    Args:
        device: a GPU.
    """

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self.stream = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
        self.renew(empty=True)

    def renew(self, *, empty: bool = False) -> None:
        """Open another pool for the same stream; existing graphs keep the old one."""
        self.handle = torch.cuda.graph_pool_handle()
        self._graphs: weakref.WeakSet[torch.cuda.CUDAGraph] = weakref.WeakSet()
        self._is_fresh = True
        if empty:
            self.reserved = 0

    def rehearse(self, run: Run) -> Outputs:
        """Run on the capture stream, because workspaces of cuBLAS belong to a stream."""
        with torch.cuda.device(self.device):
            caller = torch.cuda.current_stream()
            self.stream.wait_stream(caller)
            with torch.cuda.stream(self.stream):
                found = run()
            caller.wait_stream(self.stream)
        return found

    def record(self, run: Run) -> tuple[Outputs, Callable[[], None]]:
        """Capture a graph.

        `torch.cuda.graph` would also empty the caller's memory cache, and would leave the caller on the wrong stream if a
        capture fails.  The mode is ``"thread_local"`` so that other threads, such as those that pin memory, can continue.
        """
        if not self._is_fresh and not self._graphs:
            self.renew()  # torch closes a pool with its last graph
        graph = torch.cuda.CUDAGraph()
        self._is_fresh = False
        with torch.cuda.device(self.device), torch.cuda.stream(self.stream):
            before = torch.cuda.memory_reserved()
            graph.capture_begin(pool=self.handle, capture_error_mode="thread_local")
            try:
                found = run()
            finally:
                graph.capture_end()
            self.reserved += max(0, torch.cuda.memory_reserved() - before)
        self._graphs.add(graph)
        return found, graph.replay
