"""Recordings: how a computation is recorded, replayed and differentiated.

The value and the gradients of a computation are recorded together, so that the backward pass only scales them.  Until then
they stay in the memory of the recording; see `LendingPool`.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, NamedTuple, TypeAlias

import torch
from torch import Tensor

from likewise._compat import keeps_graph
from likewise.engines.recorder import Gradients, Outputs, Pool
from likewise.engines.synchronization import ForbidSynchronization

Compute: TypeAlias = Callable[..., Tensor]
Place: TypeAlias = tuple[torch.device, Hashable]
"""A device and one of its streams."""


class Modes(NamedTuple):
    """Settings of torch that a computation depends on."""

    autocast: bool
    autocast_dtype: torch.dtype
    matmul_precision: str
    deterministic: bool
    default_dtype: torch.dtype


def current_modes(device: torch.device) -> Modes:
    """Torch's current settings.

    Examples:
        >>> current_modes(torch.device("cpu")).matmul_precision
        'highest'
    """
    kind = device.type
    return Modes(
        torch.is_autocast_enabled(kind),
        torch.get_autocast_dtype(kind),
        torch.get_float32_matmul_precision(),
        torch.are_deterministic_algorithms_enabled(),
        torch.get_default_dtype(),
    )


class Request(NamedTuple):
    """A requested computation: its inputs, its stream and torch's settings.

    Args:
        tensors: the inputs.
        wanted: which of them require a gradient.
        place: the device and the stream.
        modes: torch's settings.
    """

    tensors: Sequence[Tensor]
    wanted: tuple[bool, ...]
    place: Place
    modes: Modes


class LentGradients:
    """The gradients of one call, in the memory of its recording or copied from there.

    Args:
        tensors: the gradients; ``None`` after the last backward pass.
    """

    __slots__ = ("__weakref__", "lock", "tensors")

    def __init__(self, tensors: Gradients) -> None:
        self.tensors: Gradients | None = tensors
        self.lock = threading.Lock()

    def scale(self, factor: Tensor) -> Gradients:
        """The gradients times a number, as tensors that belong to the caller."""
        with self.lock:  # until the kernels are launched, no other thread may replay
            if self.tensors is None:
                raise RuntimeError(
                    "another backward pass has freed the gradients of this loss; call backward(retain_graph=True)"
                )
            return tuple([None if each is None else each * factor for each in self.tensors])

    def copy(self) -> bool:
        """Move the gradients out of the recording; ``False`` if another thread is scaling them."""
        if not self.lock.acquire(blocking=False):
            return False
        try:
            if self.tensors is not None:
                self.tensors = tuple([None if each is None else each.clone() for each in self.tensors])
        finally:
            self.lock.release()
        return True


class LendingPool:
    """A pool of recordings that lends the gradients of its latest replay to the autograd node of that call.

    The backward pass reads lent gradients where the replay wrote them; in a training step nothing copies them.  Before any
    recording of the pool runs again, `settle` copies them, unless the node has been differentiated for the last time or
    does not exist any more.  The recording that wrote them is not the only one that overwrites them: torch does not give
    the memory of living tensors to a later capture, but an earlier graph may hold intermediate results there.  A node whose
    recording is dropped keeps the memory: torch frees that of a tensor after its graph and its pool, with the tensor.

    A pool serves one stream.  Replays and copies are launched there, and so is the backward pass, because autograd runs a
    node on the stream of its forward pass.  The stream therefore executes them in the order in which they are launched,
    which `LentGradients.lock` guarantees between threads.

    Args:
        pool: the memory of the recordings.
    """

    def __init__(self, pool: Pool) -> None:
        self.pool = pool
        self._lent: weakref.ref[LentGradients] | None = None

    def lend(self, gradients: Gradients) -> LentGradients:
        """Lend gradients until the next `settle`."""
        lent = LentGradients(gradients)
        self._lent = weakref.ref(lent)
        return lent

    def settle(self) -> bool:
        """Copy lent gradients that may still be needed; return whether recordings may run now."""
        lent = None if self._lent is None else self._lent()
        if lent is not None and not lent.copy():
            return False
        self._lent = None
        return True


class Recording:
    """A recorded computation.

    Args:
        compute: the computation.
        request: the request that it was recorded for.
        inputs: the tensors that it reads.
        outputs: the tensors that it writes.
        replay: runs it.
        pool: its memory.
    """

    def __init__(
        self,
        compute: Compute,
        request: Request,
        inputs: list[Tensor],
        outputs: Outputs,
        replay: Callable[[], None],
        pool: LendingPool,
    ) -> None:
        self.compute, self.place, self.modes = compute, request.place, request.modes
        self.inputs, self.outputs, self.replay, self.pool = inputs, outputs, replay, pool
        self.has_gradients = True in request.wanted
        self.used = 0

    def value(self, tensors: Sequence[Tensor]) -> Tensor | None:
        """The value at other inputs, differentiable by those that require a gradient; ``None`` if it cannot run now."""
        if not self.pool.settle():
            return None
        if self.has_gradients:
            return _Replay.apply(self, *tensors)  # type: ignore[no-any-return, no-untyped-call]
        with torch.no_grad():
            return self.run(tensors)

    def run(self, tensors: Sequence[Tensor]) -> Tensor:
        """The value at other inputs, as a copy; the gradients are in `outputs`."""
        for target, tensor in zip(self.inputs, tensors, strict=True):
            target.copy_(tensor)
        self.replay()
        return self.outputs[0].clone()


def record(compute: Compute, request: Request, lending: LendingPool) -> Recording | None:
    """Record a computation; ``None`` if that is impossible.

    Args:
        compute: a function of the tensors.
        request: inputs like those of later replays.
        lending: the memory of recordings, settled.
    """
    pool = lending.pool
    device = request.place[0]
    # the caller's hooks on saved tensors (checkpoints, offloading) must not apply to the recording
    keep = torch.autograd.graph.saved_tensors_hooks(_same, _same)
    with torch.inference_mode(False), _recording_modes(device, request.modes), keep:
        inputs = [tensor.detach().clone(memory_format=torch.contiguous_format) for tensor in request.tensors]
        leaves = [own.detach().requires_grad_(want) for own, want in zip(inputs, request.wanted, strict=True)]

        def run() -> Outputs:
            return _value_and_gradients(compute, leaves)

        try:
            if not _is_repeatable(pool, run, inputs, device):
                return None
        except Exception:  # if there is an error, the path without a graph raises it
            return None
        try:
            outputs, replay = pool.record(run)
        except Exception:  # the backward pass synchronizes
            pool.renew()
            return None
    return Recording(compute, request, inputs, outputs, replay, lending)


def _same(tensor: Tensor) -> Tensor:
    return tensor


def _value_and_gradients(compute: Compute, leaves: list[Tensor]) -> Outputs:
    wanted = [leaf for leaf in leaves if leaf.requires_grad]
    with torch.set_grad_enabled(bool(wanted)):
        value = compute(*leaves)
        if not wanted:
            return value, (None,) * len(leaves)
        if value.ndim:
            raise ValueError("the gradients of several values cannot be computed together with them")
        gradients = iter(torch.autograd.grad(value, wanted, allow_unused=True))
    return value.detach(), tuple([next(gradients) if leaf.requires_grad else None for leaf in leaves])


def _is_repeatable(pool: Pool, run: Callable[[], Outputs], inputs: list[Tensor], device: torch.device) -> bool:
    """Run once; return whether it drew no random number and changed no input; raise an error if it synchronizes."""
    devices = [device.index] if device.type == "cuda" else []

    def states() -> list[Tensor]:
        return [torch.get_rng_state(), *[torch.cuda.get_rng_state(index) for index in devices]]

    with torch.random.fork_rng(devices):
        before, versions = states(), [own._version for own in inputs]
        with ForbidSynchronization():
            pool.rehearse(run)
        drawn = not all(torch.equal(old, new) for old, new in zip(before, states(), strict=True))
        return not drawn and versions == [own._version for own in inputs]


@contextmanager
def _recording_modes(device: torch.device, modes: Modes) -> Iterator[None]:
    """The caller's autocast without its cache, because a tensor cast during a capture exists only in that graph."""
    autocast: AbstractContextManager[object] = torch.autocast(
        device.type, dtype=modes.autocast_dtype, enabled=modes.autocast, cache_enabled=False
    )
    with autocast:
        yield


class _Replay(torch.autograd.Function):
    """A recorded value with its gradients."""

    @staticmethod
    def forward(ctx: Any, recording: Recording, *tensors: Tensor) -> Tensor:
        value = recording.run(tensors)
        ctx.lent = recording.pool.lend(recording.outputs[1])
        # the recording itself may be dropped before the backward pass
        ctx.compute, ctx.device, ctx.modes = recording.compute, recording.place[0], recording.modes
        ctx.inputs, ctx.versions = tensors, [tensor._version for tensor in tensors]
        return value

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        _ = ctx.saved_tensors  # there are none, but torch raises its error if an earlier backward pass freed the graph
        # torch converts a gradient to the dtype of its input
        gradients = _differentiable_gradients(ctx, grad) if torch.is_grad_enabled() else ctx.lent.scale(grad)
        if not keeps_graph():
            ctx.lent.tensors = ctx.inputs = None
        return (None, *gradients)


def _differentiable_gradients(ctx: Any, grad: Tensor) -> list[Tensor | None]:
    """The gradients as differentiable functions of the inputs, computed without a graph."""
    if ctx.versions != [tensor._version for tensor in ctx.inputs]:
        raise RuntimeError(
            "one of the inputs of the loss has been modified by an inplace operation since the loss was computed, and its "
            "gradient cannot be differentiated again"
        )
    wanted = [tensor for tensor, needed in zip(ctx.inputs, ctx.needs_input_grad[1:], strict=True) if needed]
    with _recording_modes(ctx.device, ctx.modes):
        value = ctx.compute(*ctx.inputs)
        found = iter(torch.autograd.grad(value, wanted, grad, create_graph=True, allow_unused=True))
    return [next(found) if needed else None for needed in ctx.needs_input_grad[1:]]
