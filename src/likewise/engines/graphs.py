"""CUDA graphs: value and gradients of a loss, computed by one launch.

The time of a small batch on a GPU is the time of its kernel launches, and a large one waits for the host between kernels.
`call` captures the plain computation once for each key and shape as a CUDA graph that computes the value *and* the gradients
of every input that requires one.  A call copies its inputs, replays the graph and copies the value; the backward pass only
scales the gradients.  Gradients that another call would overwrite are copied first, so any number of calls may precede a
backward pass.  A second derivative is computed without a graph, from the inputs.

`call` returns ``None`` for work that is not captured, and the caller computes it without a graph: the first calls of each
key; work that is already captured, compiled, traced or transformed by ``torch.func``; forward-mode differentiation and
anomaly detection; gradients in float16, which are too small without the scale of a `GradScaler`; vectors of values with
a gradient; work that draws random numbers, changes its inputs or synchronizes; and calls from a second thread during a
call or a backward pass of the first.

Memory: graphs of one stream share a memory pool, which grows to the intermediate memory of the largest one; each graph
adds its inputs and outputs.  Together they hold at most `BUDGET` bytes per stream, in addition to the workspaces of
cuBLAS; the `MOST` most recently used graphs are kept.  A graph is dropped with its owner; `clear` drops all graphs.
"""

from __future__ import annotations

import itertools
import threading
import weakref
from collections.abc import Callable, Hashable, Sequence
from typing import Any, TypeAlias

import torch
from torch import Tensor

from likewise._compat import is_transformed
from likewise.engines.recorder import CudaRecorder, Recorder
from likewise.engines.recording import Compute, LendingPool, Place, Recording, Request, current_modes, record

Prepare: TypeAlias = Callable[[], Compute | None]
Known: TypeAlias = dict[Hashable, Recording | int | None]
"""By key: a recording, ``None`` if recording is impossible, or the number of calls so far."""

UP_TO = 2**24
"""The number of pairs below which a batch uses a graph with the whole matrix; larger ones keep the GPU busy."""

POOLED_UP_TO = 2**25
"""The same for heads with several centers per class, counting centers: their matrix takes at most 128 MiB."""

INPUT_BYTES = 2**27
"""Bytes of inputs up to which a graph pays: each call copies its inputs."""

BUDGET = 2**30
"""Bytes that the graphs of one stream may hold."""

MOST = 64
"""Graphs that are kept for one stream."""

STREAMS = 4
"""The number of streams with graphs; work on other streams is computed without graphs."""

KEYS = 256
"""The number of keys that are stored for one owner."""

AFTER = 4
"""Calls before a capture: a capture does not pay off for a rare shape, such as the last batch of an epoch."""

FREE, WORTH = 32, 32
"""Captures that are allowed in advance, and replays that allow one more: shapes that never repeat are not captured."""


_PLAIN = frozenset({Tensor, torch.nn.Parameter})
"""Types of tensors that a graph can read; another subclass may compute something else."""


def _is_eager() -> bool:
    """Whether torch runs operations as they are called: it does not compile, trace, transform or examine them."""
    if torch.compiler.is_compiling() or torch.is_anomaly_enabled() or is_transformed():
        return False
    return not torch.jit.is_tracing()  # type: ignore[attr-defined, no-untyped-call]


def _can_record(tensors: Sequence[Tensor], learns: bool) -> bool:
    """Whether a graph can read these tensors and, if it learns, compute the gradients that they require."""
    device = tensors[0].device
    for tensor in tensors:
        if type(tensor) not in _PLAIN or tensor.device != device or tensor.layout is not torch.strided:
            return False
        if learns and tensor.requires_grad and tensor.dtype == torch.float16:
            return False
    return sum([tensor.nbytes for tensor in tensors]) <= INPUT_BYTES


class Graphs:
    """Recordings by owner and key.

    Args:
        recorder: records and replays.
        budget: bytes that the recordings of one stream may hold.
        most: recordings that are kept for one stream.
        after: calls before a recording.

    Examples:
        >>> import torch
        >>> graphs = Graphs(CudaRecorder())
        >>> graphs.call(graphs, "key", lambda: torch.sin, [torch.zeros(1)]) is None  # the tensor is on the CPU
        True
    """

    def __init__(self, recorder: Recorder, *, budget: int = BUDGET, most: int = MOST, after: int = AFTER) -> None:
        self.recorder, self.budget, self.most, self.after = recorder, budget, most, after
        self._known: weakref.WeakKeyDictionary[Any, Known] = weakref.WeakKeyDictionary()
        self._pools: dict[Place, LendingPool] = {}
        self._lock = threading.Lock()
        self._clock = itertools.count(1)
        self.captured = self.replayed = 0

    # ------------------------------------------------------------------------------------------------ calls

    def call(self, owner: object, key: Hashable, prepare: Prepare, tensors: Sequence[Tensor]) -> Tensor | None:
        """Compute with a graph, or return ``None`` if the caller must compute without one; see the module's `call`."""
        device = tensors[0].device
        if not self.recorder.accepts(device) or not _is_eager() or not _PLAIN.issuperset([type(x) for x in tensors]):
            return None
        place, modes, learns = (device, self.recorder.stream(device)), current_modes(device), torch.is_grad_enabled()
        # with everything that `_can_record` reads, which a call that has a recording therefore skips
        kinds = [(x.device, x.layout, x.dtype, x.shape, learns and x.requires_grad) for x in tensors]
        key = (key, place, modes, *kinds)
        # not blocking: a thread blocked here, inside the backward pass, could be one that a capture depends on
        if not self._lock.acquire(blocking=False):
            return None
        try:
            known = self._known.setdefault(owner, {})
            recording = known.get(key)
            if not isinstance(recording, Recording):
                if not _can_record(tensors, learns):
                    return None
                wanted = tuple([learns and each.requires_grad for each in tensors])
                recording = self._find(known, key, prepare, Request(tensors, wanted, place, modes))
            if recording is None:
                return None
            recording.used = next(self._clock)
            value = recording.value(tensors)
            self.replayed += value is not None
            return value
        finally:
            self._lock.release()

    def fits(self, tensors: Sequence[Tensor]) -> bool:
        """Whether a function of these tensors may be captured; see the module's `fits`."""
        return (
            self.recorder.accepts(tensors[0].device) and _is_eager() and _can_record(tensors, torch.is_grad_enabled())
        )

    def _find(self, known: Known, key: Hashable, prepare: Prepare, request: Request) -> Recording | None:
        state = known.get(key, 0)
        if state is None or isinstance(state, Recording):
            return state
        if state < self.after:
            if state == 0 and len(known) >= KEYS:
                for other in [each for each, found in known.items() if not isinstance(found, Recording)]:
                    del known[other]
            known[key] = state + 1
            return None
        if self.captured >= FREE + self.replayed // WORTH or not self._make_room(request.place):
            return None
        self.captured += 1
        compute = prepare()
        recording = None if compute is None else self._record(compute, request)
        known[key] = recording
        if recording is not None and self.held(request.place) > self.budget:
            is_only = len(self._at(request.place)) == 1
            self._drop(request.place)
            known[key] = None if is_only else self.after
            return None
        return recording

    # ------------------------------------------------------------------------------------------------ recording

    def _record(self, compute: Compute, request: Request) -> Recording | None:
        place = request.place
        if place not in self._pools:
            self._pools[place] = LendingPool(self.recorder.open_pool(place[0]))
        elif not self._at(place):
            self._pools[place].pool.renew(empty=True)  # the pool was freed with its last recording
        return record(compute, request, self._pools[place])

    def _make_room(self, place: Place) -> bool:
        """Settle the pool and drop recordings until one more fits; return whether the stream may have one."""
        if place in self._pools and not self._pools[place].settle():
            return False
        if place not in self._pools and len(self._pools) >= STREAMS:
            unused = next((other for other in self._pools if not self._at(other)), None)
            if unused is None:
                return False
            del self._pools[unused]
        if self.held(place) >= self.budget:
            self._drop(place)
        recordings = sorted(self._at(place), key=lambda entry: entry[2].used)
        for known, key, _ in recordings[: max(0, len(recordings) + 1 - self.most)]:
            del known[key]  # frees the memory for the next recording
        return True

    def _at(self, place: Place) -> list[tuple[Known, Hashable, Recording]]:
        return [
            (known, key, found)
            for known in list(self._known.values())
            for key, found in known.items()
            if isinstance(found, Recording) and found.place == place
        ]

    def _drop(self, place: Place) -> None:
        """Drop all recordings of a stream; their memory is freed with the last one."""
        for known, key, _ in self._at(place):
            del known[key]

    # ------------------------------------------------------------------------------------------------ memory

    def held(self, place: Place) -> int:
        """Bytes that the recordings of one stream of a device hold."""
        recordings = self._at(place)
        own = sum(each.nbytes for _, _, recording in recordings for each in recording.inputs)
        return own + (self._pools[place].pool.reserved if recordings else 0)

    def held_bytes(self) -> int:
        """Bytes that all recordings hold."""
        return sum(self.held(place) for place in list(self._pools))

    def clear(self) -> None:
        """Drop every recording.

        Lent gradients are not copied, because the current stream may be another one; no graph overwrites them any more.
        """
        with self._lock:
            self._known.clear()
            self.captured = self.replayed = 0


_GRAPHS = Graphs(CudaRecorder())


def accepts(device: torch.device) -> bool:
    """Whether graphs can currently be used on a device.

    Examples:
        >>> accepts(torch.device("cpu"))
        False
    """
    return _GRAPHS.recorder.accepts(device)


def fits(tensors: Sequence[Tensor]) -> bool:
    """Whether a function of these tensors may be captured, by their device, kind and size, and the settings of torch.

    Examples:
        >>> fits([torch.zeros(1)])
        False
    """
    return _GRAPHS.fits(tensors)


def call(owner: object, key: Hashable, prepare: Prepare, tensors: Sequence[Tensor]) -> Tensor | None:
    """Compute a function of tensors with a CUDA graph; ``None`` if the caller must compute it without one.

    Args:
        owner: the object that the graphs belong to; they are dropped with it.
        key: everything except tensors that the result depends on.  Shapes, dtypes, the device, the stream, whether
            gradients are required, and torch's settings are added to it.
        prepare: returns the computation as a function of the tensors, or ``None`` if it must not be captured.  It is
            called once per key; the function is kept, so it must not refer to the owner or depend on its changes.
        tensors: the inputs, all on one device.

    Returns:
        The value, differentiable any number of times by the tensors that require a gradient.

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
    """Drop every graph and return its memory to torch.

    Examples:
        >>> clear()
    """
    _GRAPHS.clear()
