"""What records a computation so that it can be run again in one launch: CUDA graphs, through torch's public API."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Hashable
from typing import Protocol, TypeAlias

import torch
from torch import Tensor

Outputs: TypeAlias = tuple[Tensor, tuple[Tensor | None, ...]]
"""A value and the gradients of the inputs that want one."""

Run: TypeAlias = Callable[[], Outputs]


class Pool(Protocol):
    """Memory that the recordings of one stream share.

    What a recording needs between its first and its last kernel is free for the next recording.  So recordings of one
    pool must not run at the same time, and their outputs must be copied before another one runs.

    Attributes:
        reserved: bytes that recordings took from the device.
    """

    reserved: int

    def rehearse(self, run: Run) -> Outputs:
        """Run once as a recording would, so that libraries set up what they cannot set up while they are recorded."""

    def record(self, run: Run) -> tuple[Outputs, Callable[[], None]]:
        """Record a run: tensors that hold its results after each replay, and the replay."""

    def renew(self, *, empty: bool = False) -> None:
        """Take other memory from now on: an interrupted recording, or the end of the last one, leaves the pool unusable.

        Args:
            empty: no recording has memory here any more.
        """


class Recorder(Protocol):
    """Records on a kind of device."""

    def accepts(self, device: torch.device) -> bool:
        """Whether work on a device can be recorded here and now."""

    def stream(self, device: torch.device) -> Hashable:
        """The stream on which the caller's work on a device is launched."""

    def open_pool(self, device: torch.device) -> Pool:
        """Memory for recordings."""


class CudaRecorder:
    """Records CUDA graphs.

    Examples:
        >>> CudaRecorder().accepts(torch.device("cpu"))
        False
    """

    def accepts(self, device: torch.device) -> bool:
        """On a GPU, unless the caller's own work is being captured."""
        return device.type == "cuda" and not torch.cuda.is_current_stream_capturing()

    def stream(self, device: torch.device) -> Hashable:
        """The address of the current stream."""
        return torch.cuda.current_stream(device).cuda_stream

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
        """Open another pool for the same stream; the graphs of the old one keep it."""
        self.handle = torch.cuda.graph_pool_handle()
        self._graphs: weakref.WeakSet[torch.cuda.CUDAGraph] = weakref.WeakSet()
        self._is_fresh = True
        if empty:
            self.reserved = 0

    def rehearse(self, run: Run) -> Outputs:
        """Run on the stream of captures: workspaces of cuBLAS belong to a stream."""
        with torch.cuda.device(self.device):
            caller = torch.cuda.current_stream()
            self.stream.wait_stream(caller)
            with torch.cuda.stream(self.stream):
                found = run()
            caller.wait_stream(self.stream)
        return found

    def record(self, run: Run) -> tuple[Outputs, Callable[[], None]]:
        """Capture a graph.

        `torch.cuda.graph` would also empty the caller's cache of memory, and would leave the caller on the wrong stream
        where a capture fails.  Other threads, such as those that pin memory, may go on: hence ``"thread_local"``.
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
