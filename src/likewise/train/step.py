"""One training step: forward, loss, backward, update; run from Python, or recorded as a CUDA graph."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from accelerate import Accelerator
from torch import Tensor, nn
from torch.optim.swa_utils import get_ema_multi_avg_fn

from likewise.distributed import distributed_batch
from likewise.formula import can_read_values
from likewise.train.chunks import Chunks
from likewise.train.guards import require_finite

Loss = Callable[[Tensor, Tensor], Tensor]

WARM = 4
"""Number of steps before one is recorded: cuDNN selects algorithms, and optimizers allocate their state."""


class Meter:
    """The sum and number of losses, and the first loss that is not finite, computed on the device without synchronization.

    Examples:
        >>> meter = Meter(torch.device("cpu"))
        >>> for value in (1.0, 3.0, float("nan")):
        ...     meter.add(torch.tensor(value))
        >>> meter.first_bad(), meter.count
        (2, 3)
    """

    def __init__(self, device: torch.device) -> None:
        self._sum = torch.zeros((), dtype=torch.float64, device=device)
        self._count = torch.zeros((), dtype=torch.int64, device=device)
        self._bad = torch.full((), -1, dtype=torch.int64, device=device)

    def add(self, value: Tensor) -> None:
        """Add a loss."""
        value = value.detach()
        self._sum.add_(value)
        self._bad.copy_(torch.where((self._bad < 0) & ~value.isfinite(), self._count, self._bad))
        self._count.add_(1)

    @property
    def count(self) -> int:
        """The number of losses; reading it synchronizes, as the next two methods do."""
        return int(self._count)

    def first_bad(self) -> int | None:
        """Return the number of losses before the first one that is not finite, or ``None``."""
        bad = int(self._bad)
        return None if bad < 0 else bad

    def mean(self) -> float:
        """Return the mean, and reset the meter."""
        mean = float(self._sum) / max(self.count, 1)
        self.load([0.0, 0.0])
        return mean

    def state(self) -> list[float]:
        """Return sum and number, for a checkpoint."""
        return [float(self._sum), float(self._count)]

    def load(self, state: Sequence[float]) -> None:
        """Restore the state."""
        self._sum.fill_(state[0])
        self._count.fill_(int(state[1]))
        self._bad.fill_(-1)


class Average:
    """An exponential moving average of a model's parameters; buffers are copied.

    Args:
        model: the trained model.
        decay: the decay of the average per step.

    Examples:
        >>> model = nn.Linear(1, 1, bias=False)
        >>> _ = nn.init.ones_(model.weight)
        >>> average = Average(model, decay=0.75)
        >>> _ = nn.init.zeros_(model.weight)
        >>> average.update()
        >>> average.model.weight.item()
        0.75
    """

    def __init__(self, model: nn.Module, decay: float) -> None:
        self.model = copy.deepcopy(model).requires_grad_(False).eval()
        self._mix = get_ema_multi_avg_fn(decay)  # type: ignore[no-untyped-call]
        self._parameters = list(self.model.parameters()), list(model.parameters())
        self._buffers = list(self.model.buffers()), list(model.buffers())

    @torch.no_grad()
    def update(self) -> None:
        """Update the average."""
        self._mix(*self._parameters, 0)
        for mine, other in zip(*self._buffers, strict=True):
            mine.copy_(other)


class Step:
    """A training step over one or several batches, whose gradients are averaged.

    Args:
        accelerator: device, precision and processes.
        model: the network that maps images to embeddings, compiled or wrapped for several processes if needed.
        loss: a function of embeddings and labels.
        optimizer: an optimizer that the accelerator has prepared.
        meter: the meter to which every loss is added.
        average: the moving average to update after every step, or ``None``.
        clip: the largest norm of the gradients of all parameters together.
        clip_value: the largest absolute value of each entry of the gradients.
        watch: check every loss before the backward pass, which synchronizes on a GPU.
        chunk: number of images in one forward pass of the model; ``None``: the whole batch.

    Examples:
        >>> from accelerate import Accelerator
        >>> accelerator, model = Accelerator(cpu=True), nn.Linear(2, 1, bias=False)
        >>> optimizer = accelerator.prepare_optimizer(torch.optim.SGD(model.parameters(), lr=1.0))
        >>> step = Step(accelerator, model, lambda e, _: e.sum(), optimizer, Meter(torch.device("cpu")))
        >>> before = model.weight.clone()
        >>> step([(torch.ones(3, 2), torch.zeros(3))]).shape
        torch.Size([3, 1])
        >>> (before - model.weight).tolist()
        [[3.0, 3.0]]
    """

    def __init__(
        self,
        accelerator: Accelerator,
        model: nn.Module,
        loss: Loss,
        optimizer: Any,
        meter: Meter,
        *,
        average: Average | None = None,
        clip: float | None = None,
        clip_value: float | None = None,
        watch: bool = True,
        chunk: int | None = None,
    ) -> None:
        self.accelerator = accelerator
        self.model = model
        self.loss = loss
        self.optimizer = optimizer
        self.meter = meter
        self.average = average
        self.clip, self.clip_value = clip, clip_value
        self.watch = watch
        self.chunk = chunk
        self.parameters = [each for group in optimizer.param_groups for each in group["params"]]

    def __call__(self, batches: Sequence[Sequence[Tensor]]) -> Tensor:
        """Run the step; return the embeddings of the last batch, without gradient."""
        self.optimizer.zero_grad(set_to_none=True)
        for batch in batches[:-1]:
            with self.accelerator.no_sync(self.model), self.accelerator.no_sync(self.loss):
                self.backward(batch[0], batch[1], len(batches))
        embeddings = self.backward(batches[-1][0], batches[-1][1], len(batches))
        self.update()
        return embeddings

    def backward(self, images: Tensor, labels: Tensor, parts: int = 1) -> Tensor:
        """Accumulate the gradients of one batch of a step."""
        # ranks may have batches of different sizes, and all must call the same collectives
        if self.chunk is None or (len(images) <= self.chunk and self.accelerator.num_processes == 1):
            with self.accelerator.autocast():
                embeddings: Tensor = self.model(images.to(self.accelerator.device))
            self.descend(embeddings, labels, parts)
        else:
            chunks = Chunks(self.accelerator, self.model, images, self.chunk)
            embeddings = chunks.embed()
            self.descend(embeddings, labels, parts)
            chunks.backward(embeddings)
        return embeddings.detach()

    def descend(self, embeddings: Tensor, labels: Tensor, parts: int) -> None:
        """Compute the loss of embeddings and back-propagate."""
        if can_read_values(embeddings):  # before the loss raises a less specific error
            finite = bool(embeddings.detach().isfinite().all())
            require_finite(0.0 if finite else math.nan, "the embeddings were not finite", self.accelerator)
        with distributed_batch():  # the loss of the whole batch, of which this process holds some rows
            value = self.loss(embeddings if embeddings.dtype == torch.float64 else embeddings.float(), labels)
        if not isinstance(value, Tensor) or value.ndim:
            what = f"shape {tuple(value.shape)}" if isinstance(value, Tensor) else f"a {type(value).__name__}"
            raise ValueError(f"loss must return one number, but it returns {what}")
        if self.watch:
            require_finite(float(value.detach()), "the loss was {value}", self.accelerator)
        self.meter.add(value)
        self.accelerator.backward(value if parts == 1 else value / parts)

    def update(self) -> None:
        """Update the parameters."""
        if self.clip_value is not None:
            self.accelerator.clip_grad_value_(self.parameters, self.clip_value)
            if self.clip is not None:
                nn.utils.clip_grad_norm_(self.parameters, self.clip)  # the line above has unscaled the gradients
        elif self.clip is not None:
            self.accelerator.clip_grad_norm_(self.parameters, self.clip)
        self.optimizer.step()
        if self.average is not None:
            self.average.update()


class Unrecordable(RuntimeError):  # noqa: N818
    """Raised if a step cannot be recorded as a CUDA graph; the message is the reason.

    Examples:
        >>> raise Unrecordable("the loss waits for the device")
        Traceback (most recent call last):
        likewise.train.step.Unrecordable: the loss waits for the device
    """


class RecordedStep:
    """A step that is recorded as a CUDA graph and replayed, which saves the overhead of Python and kernel launches.

    The first steps, and batches of other shapes, run without the graph.  Learning rates must be tensors.

    Args:
        step: the step to record.

    Examples:
        >>> RecordedStep.possible(
        ...     torch.device("cpu"), processes=1, accumulate=1, precision="no", compiled=False, chunk=None
        ... )
        'the device is cpu, not cuda'
    """

    def __init__(self, step: Step) -> None:
        self.step = step
        self._seen = 0
        self._places = _buffers(step.loss)
        self._side: Any = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        self._graph: torch.cuda.CUDAGraph | None = None
        self._images = self._labels = self._embeddings = torch.empty(0)

    @staticmethod
    def possible(
        device: torch.device, *, processes: int, accumulate: int, precision: str, compiled: bool, chunk: int | None
    ) -> str | None:
        """Return the reason why steps cannot be recorded, or ``None``."""
        reasons = {
            f"the device is {device.type}, not cuda": device.type != "cuda",
            "there are several processes": processes > 1,
            "gradients are accumulated": accumulate > 1,
            "a batch is embedded in chunks, which restores states of random number generators": chunk is not None,
            "the gradient scaling of float16 reads values": precision == "fp16",
            "the model is compiled": compiled,
        }
        return next((reason for reason, holds in reasons.items() if holds), None)

    def __call__(self, batches: Sequence[Sequence[Tensor]]) -> Tensor:
        """Run the step; return the embeddings of the batch, which the next step overwrites."""
        images, labels = batches[0][0], batches[0][1]
        if self._graph is None:
            if self._seen < WARM:
                return self._warm_up(batches)
            self._record(images, labels)
        if images.shape != self._images.shape or images.dtype != self._images.dtype:
            return self.step(batches)
        self._images.copy_(images)
        self._labels.copy_(labels)
        assert self._graph is not None
        self._graph.replay()
        return self._embeddings

    def _warm_up(self, batches: Sequence[Sequence[Tensor]]) -> Tensor:
        if self._seen == 1:  # optimizer state is created in the first step and keeps its address
            self._places = _buffers(self.step.loss)
        self._seen += 1
        current = torch.cuda.current_stream()
        self._side.wait_stream(current)
        with torch.cuda.stream(self._side):
            embeddings = self.step(batches)
        current.wait_stream(self._side)
        return embeddings

    def _record(self, images: Tensor, labels: Tensor) -> None:
        if _buffers(self.step.loss) != self._places and self._seen > 1:
            raise Unrecordable("the loss replaces tensors of its state, such as a memory")
        self._images = images.clone(memory_format=torch.preserve_format)
        self._labels = labels.clone()
        self.step.optimizer.zero_grad(set_to_none=True)
        graph, rng_state = torch.cuda.CUDAGraph(), torch.cuda.get_rng_state(images.device)
        try:
            with torch.cuda.graph(graph):
                self._embeddings = self.step.backward(self._images, self._labels)
                self.step.update()
        except RuntimeError as error:
            _renew_rng_state(images.device, rng_state)
            raise Unrecordable(f"the step cannot be recorded: {str(error).splitlines()[0]}") from error
        self._graph = graph


def _renew_rng_state(device: torch.device, state: Tensor) -> None:
    """Replace the state object of a device's generator: a failed capture leaves the old one registered with the graph."""
    index = torch.cuda.current_device() if device.index is None else device.index
    fresh = torch.Generator(device=torch.device("cuda", index))
    fresh.set_state(state)
    torch.cuda.default_generators[index].graphsafe_set_state(fresh.graphsafe_get_state())


def _buffers(loss: Loss) -> list[int]:
    """List the addresses of the buffers of a loss."""
    return [each.data_ptr() for each in loss.buffers()] if isinstance(loss, nn.Module) else []
