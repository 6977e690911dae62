"""Recordings: how a computation is recorded, replayed and differentiated.

The value and the gradients of a computation are recorded together, so that the backward pass only scales them.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, NamedTuple, TypeAlias

import torch
from torch import Tensor

from likewise.engines.recorder import Outputs, Pool
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


class Recording:
    """A recorded computation.

    Args:
        compute: the computation.
        request: the request that it was recorded for.
        inputs: the tensors that it reads.
        outputs: the tensors that it writes.
        replay: runs it.
    """

    def __init__(
        self,
        compute: Compute,
        request: Request,
        inputs: list[Tensor],
        outputs: Outputs,
        replay: Callable[[], None],
    ) -> None:
        self.compute, self.place, self.modes = compute, request.place, request.modes
        self.inputs, self.outputs, self.replay = inputs, outputs, replay
        self.used = 0

    def value(self, request: Request) -> Tensor:
        """The value at other inputs, differentiable by those that require a gradient."""
        if True in request.wanted:
            return _Replay.apply(self, *request.tensors)  # type: ignore[no-any-return, no-untyped-call]
        with torch.no_grad():
            return self.run(request.tensors)[0]

    def run(self, tensors: Sequence[Tensor]) -> Outputs:
        """Value and gradients at other inputs, as copies."""
        for target, tensor in zip(self.inputs, tensors, strict=True):
            target.copy_(tensor)
        self.replay()
        value, gradients = self.outputs
        return value.clone(), tuple([None if each is None else each.clone() for each in gradients])


def record(compute: Compute, request: Request, pool: Pool) -> Recording | None:
    """Record a computation; ``None`` if that is impossible.

    Args:
        compute: a function of the tensors.
        request: inputs like those of later replays.
        pool: the memory of recordings.
    """
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
    return Recording(compute, request, inputs, outputs, replay)


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
        value, gradients = recording.run(tensors)
        # the recording itself may be dropped before the backward pass
        ctx.compute, ctx.device, ctx.modes = recording.compute, recording.place[0], recording.modes
        ctx.inputs, ctx.versions = tensors, [tensor._version for tensor in tensors]
        ctx.save_for_backward(*gradients)
        return value

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        gradients = ctx.saved_tensors
        if torch.is_grad_enabled():
            return (None, *_differentiable_gradients(ctx, grad))
        # torch converts a gradient to the dtype of its input
        return (None, *[None if each is None else each * grad for each in gradients])


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
