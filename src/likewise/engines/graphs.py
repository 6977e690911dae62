"""CUDA graphs for small batches: value and gradients of a loss, computed by one launch.

A small batch on a GPU takes as long as its kernels take to launch.  `call` captures the plain computation once for each
key and shape as a CUDA graph that holds the value *and* the gradients of every input that wants one.  A call copies its
inputs in, replays the graph, and clones value and gradients out; the backward pass only scales the gradients, so that
any number of calls may be alive before it.  A second derivative is computed plainly from the inputs.

A call that does not fit returns ``None``, and the caller takes the plain path: the first calls of each key; work that is
captured, compiled, traced or transformed by ``torch.func`` already; forward-mode differentiation; gradients in float16,
which are too small without the scale of a `GradScaler`; vectors of values with a gradient; whatever draws random
numbers, changes its inputs or waits for the device; and calls from a second thread while a first one is inside.

Memory: graphs of one stream share a memory pool, which grows to what the largest of them needs in between; each graph
adds its inputs and outputs.  Together they hold at most `BUDGET` bytes for each stream; `MOST` graphs are kept, the most
recently used ones.  A graph is dropped with its owner; `clear` drops them all.
"""

from __future__ import annotations

import itertools
import threading
import weakref
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, NamedTuple, TypeAlias

import torch
from torch import Tensor
from torch.autograd import forward_ad

from likewise.engines.recorder import CudaRecorder, Outputs, Pool, Recorder
from likewise.engines.waiting import RefuseToWait

Compute: TypeAlias = Callable[..., Tensor]
Prepare: TypeAlias = Callable[[], Compute | None]

UP_TO = 2**23
"""Pairs below which a batch is worth a graph: larger ones keep the GPU busy, and generated kernels take them."""

BUDGET = 2**30
"""Bytes that the graphs of one stream may hold."""

MOST = 64
"""Graphs that are kept for one stream."""

STREAMS = 4
"""Streams that have graphs; work on any other one is computed plainly."""

KEYS = 256
"""Keys that are remembered for one owner."""

AFTER = 4
"""Plain calls before a capture: a shape that comes rarely, such as the last batch of an epoch, is not worth one."""

FREE, WORTH = 32, 32
"""Captures that are made on credit, and replays that pay for one more: batches that all differ are not worth capturing."""


class _Modes(NamedTuple):
    """Settings of torch that a computation depends on."""

    autocast: bool
    autocast_dtype: torch.dtype
    matmul_precision: str
    deterministic: bool
    default_dtype: torch.dtype


def _modes(device: torch.device) -> _Modes:
    kind = device.type
    return _Modes(
        torch.is_autocast_enabled(kind),
        torch.get_autocast_dtype(kind),
        torch.get_float32_matmul_precision(),
        torch.are_deterministic_algorithms_enabled(),
        torch.get_default_dtype(),
    )


class _Recording:
    """A recorded computation.

    Args:
        compute: the computation.
        place: the device and the stream that it is replayed on.
        modes: settings under which it was recorded.
        inputs: where its inputs are read.
        outputs: where its results are written.
        replay: runs it.
    """

    def __init__(
        self,
        compute: Compute,
        place: tuple[torch.device, Hashable],
        modes: _Modes,
        inputs: list[Tensor],
        outputs: Outputs,
        replay: Callable[[], None],
    ) -> None:
        self.compute, self.place, self.modes = compute, place, modes
        self.inputs, self.outputs, self.replay = inputs, outputs, replay
        self.used = 0

    def run(self, tensors: Sequence[Tensor]) -> Outputs:
        """Value and gradients at other inputs, in memory of their own."""
        for own, given in zip(self.inputs, tensors, strict=True):
            own.copy_(given)
        self.replay()
        value, gradients = self.outputs
        return value.clone(), tuple([None if each is None else each.clone() for each in gradients])


class Graphs:
    """Recordings by owner and key.

    Args:
        recorder: records and replays.
        budget: bytes that the recordings of one stream may hold.
        most: recordings that are kept for one stream.
        after: plain calls before a recording.

    Examples:
        >>> import torch
        >>> graphs = Graphs(CudaRecorder())
        >>> graphs.call(graphs, "key", lambda: torch.sin, [torch.zeros(1)]) is None  # the tensor is on the CPU
        True
    """

    def __init__(self, recorder: Recorder, *, budget: int = BUDGET, most: int = MOST, after: int = AFTER) -> None:
        self.recorder, self.budget, self.most, self.after = recorder, budget, most, after
        # by owner and key: a recording, None where there can be none, or how often the key was seen
        self._known: weakref.WeakKeyDictionary[Any, dict[Hashable, _Recording | int | None]] = (
            weakref.WeakKeyDictionary()
        )
        self._pools: dict[tuple[torch.device, Hashable], Pool] = {}
        self._lock = threading.Lock()
        self._clock = itertools.count(1)
        self.captured = self.replayed = 0

    # ------------------------------------------------------------------------------------------------ calls

    def call(self, owner: object, key: Hashable, prepare: Prepare, tensors: Sequence[Tensor]) -> Tensor | None:
        """Compute by a graph, or return ``None`` where the caller is to compute plainly; see the module's `call`."""
        if not self._fits(tensors):
            return None
        device = tensors[0].device
        learns = torch.is_grad_enabled()
        wanted = tuple([learns and tensor.requires_grad for tensor in tensors])
        place, modes = (device, self.recorder.stream(device)), _modes(device)
        key = (key, place, modes, wanted, *[(tensor.shape, tensor.dtype) for tensor in tensors])
        # a thread that waited here, inside the backward pass, could be the one that a capture waits for
        if not self._lock.acquire(blocking=False):
            return None
        try:
            recording = self._find(owner, key, prepare, tensors, wanted, place, modes)
            if recording is None:
                return None
            self.replayed += 1
            recording.used = next(self._clock)
            if True in wanted:
                return _Replay.apply(recording, *tensors)  # type: ignore[no-any-return, no-untyped-call]
            with torch.no_grad():
                return recording.run(tensors)[0]
        finally:
            self._lock.release()

    def _fits(self, tensors: Sequence[Tensor]) -> bool:
        device = tensors[0].device
        if not self.recorder.accepts(device) or torch.compiler.is_compiling() or torch.jit.is_tracing():  # type: ignore[attr-defined, no-untyped-call]
            return False
        for tensor in tensors:
            plain = type(tensor) is Tensor or type(tensor) is torch.nn.Parameter
            if not plain or tensor.device != device or tensor.layout is not torch.strided:
                return False
            try:
                tensor.data_ptr()
            except RuntimeError:  # inside a transform of torch.func a tensor has no memory
                return False
            if not tensor.is_floating_point():
                continue
            if tensor.requires_grad and tensor.dtype == torch.float16:
                return False
            if forward_ad.unpack_dual(tensor).tangent is not None:  # type: ignore[no-untyped-call]
                return False
        return True

    def _find(
        self,
        owner: object,
        key: Hashable,
        prepare: Prepare,
        tensors: Sequence[Tensor],
        wanted: tuple[bool, ...],
        place: tuple[torch.device, Hashable],
        modes: _Modes,
    ) -> _Recording | None:
        known = self._known.setdefault(owner, {})
        state = known.get(key, 0)
        if state is None or isinstance(state, _Recording):
            return state
        if state < self.after:
            if state == 0 and len(known) >= KEYS:
                for other in [each for each, found in known.items() if not isinstance(found, _Recording)]:
                    del known[other]
            known[key] = state + 1
            return None
        if self.captured >= FREE + self.replayed // WORTH or not self._make_room(place):
            return None
        self.captured += 1
        compute = prepare()
        recording = None if compute is None else self._record(compute, tensors, wanted, place, modes)
        known[key] = recording
        if recording is not None and self.held(place) > self.budget:
            alone = len(self._at(place)) == 1
            self._drop(place)
            known[key] = None if alone else self.after
            return None
        return recording

    # ------------------------------------------------------------------------------------------------ recording

    def _record(
        self,
        compute: Compute,
        tensors: Sequence[Tensor],
        wanted: tuple[bool, ...],
        place: tuple[torch.device, Hashable],
        modes: _Modes,
    ) -> _Recording | None:
        device = place[0]
        if place not in self._pools:
            self._pools[place] = self.recorder.open_pool(device)
        pool = self._pools[place]
        with torch.inference_mode(False), _as_recorded(device, modes):
            inputs = [tensor.detach().clone(memory_format=torch.contiguous_format) for tensor in tensors]
            leaves = [own.detach().requires_grad_(want) for own, want in zip(inputs, wanted, strict=True)]

            def run() -> Outputs:
                return _value_and_gradients(compute, leaves)

            try:
                if not _is_repeatable(pool, run, inputs, device):
                    return None
            except Exception:  # the plain path says what is wrong, if anything is
                return None
            try:
                outputs, replay = pool.record(run)
            except Exception:  # something waits for the device, in the backward pass
                pool.renew()
                return None
        return _Recording(compute, place, modes, inputs, outputs, replay)

    def _make_room(self, place: tuple[torch.device, Hashable]) -> bool:
        """Drop what is too much for one more recording; whether the stream may have one."""
        if place not in self._pools and len(self._pools) >= STREAMS:
            return False
        if self.held(place) >= self.budget:
            self._drop(place)
        recordings = sorted(self._at(place), key=lambda entry: entry[2].used)
        for known, key, _ in recordings[: max(0, len(recordings) + 1 - self.most)]:
            del known[key]  # its memory is free for the next one
        return True

    def _at(
        self, place: tuple[torch.device, Hashable]
    ) -> list[tuple[dict[Hashable, _Recording | int | None], Hashable, _Recording]]:
        return [
            (known, key, found)
            for known in list(self._known.values())
            for key, found in known.items()
            if isinstance(found, _Recording) and found.place == place
        ]

    def _drop(self, place: tuple[torch.device, Hashable]) -> None:
        """Drop the recordings of a stream and their pool: memory goes back only when the last of them is gone."""
        for known, key, _ in self._at(place):
            del known[key]
        self._pools.pop(place, None)

    # ------------------------------------------------------------------------------------------------ memory

    def held(self, place: tuple[torch.device, Hashable]) -> int:
        """Bytes that the recordings of one stream of a device hold."""
        pool = self._pools.get(place)
        own = sum(each.nbytes for _, _, recording in self._at(place) for each in recording.inputs)
        return own + (0 if pool is None else pool.reserved)

    def held_bytes(self) -> int:
        """Bytes that all recordings hold."""
        return sum(self.held(place) for place in list(self._pools))

    def clear(self) -> None:
        """Drop every recording."""
        with self._lock:
            self._known.clear()
            self._pools.clear()
            self.captured = self.replayed = 0


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
    """Run once: whether no random number was drawn and no input was changed; an error where something waits."""
    devices = [device.index] if device.type == "cuda" else []

    def states() -> list[Tensor]:
        return [torch.get_rng_state(), *[torch.cuda.get_rng_state(index) for index in devices]]

    with torch.random.fork_rng(devices):
        before, versions = states(), [own._version for own in inputs]
        with RefuseToWait():
            pool.rehearse(run)
        drawn = not all(torch.equal(old, new) for old, new in zip(before, states(), strict=True))
        return not drawn and versions == [own._version for own in inputs]


@contextmanager
def _as_recorded(device: torch.device, modes: _Modes) -> Iterator[None]:
    """The caller's autocast, without its cache: what is cast while a graph is captured exists in that graph only."""
    autocast: AbstractContextManager[object] = torch.autocast(
        device.type, dtype=modes.autocast_dtype, enabled=modes.autocast, cache_enabled=False
    )
    with autocast:
        yield


class _Replay(torch.autograd.Function):
    """A recorded value, whose gradients are known as soon as it is."""

    @staticmethod
    def forward(ctx: Any, recording: _Recording, *tensors: Tensor) -> Tensor:
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
        # torch itself takes a gradient back to the dtype of its input
        return (None, *[None if each is None else each * grad for each in gradients])


def _differentiable_gradients(ctx: Any, grad: Tensor) -> list[Tensor | None]:
    """The gradients as functions of the inputs, computed plainly."""
    if ctx.versions != [tensor._version for tensor in ctx.inputs]:
        raise RuntimeError(
            "one of the inputs of the loss has been modified by an inplace operation since the loss was computed, and its "
            "gradient cannot be differentiated again"
        )
    wanted = [tensor for tensor, needed in zip(ctx.inputs, ctx.needs_input_grad[1:], strict=True) if needed]
    with _as_recorded(ctx.device, ctx.modes):
        value = ctx.compute(*ctx.inputs)
        found = iter(torch.autograd.grad(value, wanted, grad, create_graph=True, allow_unused=True))
    return [next(found) if needed else None for needed in ctx.needs_input_grad[1:]]


_GRAPHS = Graphs(CudaRecorder())


def accepts(device: torch.device) -> bool:
    """Whether graphs can be used on a device here and now.

    Examples:
        >>> accepts(torch.device("cpu"))
        False
    """
    return _GRAPHS.recorder.accepts(device)


def call(owner: object, key: Hashable, prepare: Prepare, tensors: Sequence[Tensor]) -> Tensor | None:
    """Compute a function of tensors by a CUDA graph; ``None`` where the caller is to compute it plainly.

    Args:
        owner: whose computation it is; its graphs are dropped with it.
        key: everything but tensors that the result depends on.  Shapes, dtypes, the device, the stream, whether gradients
            are wanted, and torch's own settings are added to it.
        prepare: returns the computation as a function of the tensors, or ``None`` where it is not to be captured.  It is
            called once per key; the function is kept, so it must not hold the owner, nor change when the owner changes.
        tensors: what is computed from; all on one device.

    Returns:
        The value, which can be differentiated by the tensors that require a gradient, any number of times.

    Examples:
        >>> call(Graphs(CudaRecorder()), "double", lambda: lambda x: 2.0 * x.sum(), [torch.ones(2)]) is None
        True
    """
    return _GRAPHS.call(owner, key, prepare, tensors)


def held_bytes() -> int:
    """Bytes of GPU memory that graphs hold.

    Examples:
        >>> held_bytes()
        0
    """
    return _GRAPHS.held_bytes()


def clear() -> None:
    """Drop every graph, and give its memory back to torch.

    Examples:
        >>> clear()
    """
    _GRAPHS.clear()
