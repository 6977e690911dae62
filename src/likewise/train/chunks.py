"""Gradient caching: embed a large batch in chunks, twice, and compute the loss of the whole batch."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from accelerate import Accelerator
from torch import Tensor, nn

from likewise.formula import can_read_values
from likewise.train.checkpoint import load_rng_state, rng_tensors

NORMS = (
    *(nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.SyncBatchNorm),
    *(nn.InstanceNorm1d, nn.InstanceNorm2d, nn.InstanceNorm3d),
)
"""Layers with running statistics, which are updated in training but not read."""

REPEATED = 0.05
"""The largest relative difference between the embeddings of both passes; rounding in half precision causes about 0.01."""


@dataclass(frozen=True)
class _ModelState:
    """The state on which embeddings depend in addition to images and parameters."""

    rng_state: dict[str, Tensor]
    generators: list[Tensor]
    buffers: list[Tensor]
    versions: list[int]


class Chunks:
    """A batch that passes through a model in chunks (gradient caching, Gao et al. 2021).

    1. `embed` computes all embeddings without a graph.
    2. The backward pass of the loss computes the gradient of the embeddings.
    3. `backward` embeds every chunk again, with a graph, and back-propagates its rows of that gradient.

    By the chain rule, the result is the gradient of the whole batch.  Only the activations of one chunk exist at a time, for
    the price of a second forward pass.

    The second pass uses the same random numbers and the same buffers as the first.  A batch norm in training mode normalizes
    each chunk separately; its running statistics are updated in the first pass only.

    Args:
        accelerator: device, precision and processes.
        model: the network that maps images to embeddings.
        images: the batch; each chunk is moved to the device when it is embedded.
        size: the largest number of images in a chunk; chunks have nearly equal sizes.

    Examples:
        >>> accelerator, model = Accelerator(cpu=True), nn.Linear(2, 1, bias=False)
        >>> chunks = Chunks(accelerator, model, torch.ones(5, 2), size=2)
        >>> embeddings = chunks.embed()
        >>> embeddings.sum().backward()
        >>> chunks.backward(embeddings)
        >>> chunks.sizes, model.weight.grad.tolist()
        ([2, 2, 1], [[5.0, 5.0]])
    """

    def __init__(self, accelerator: Accelerator, model: nn.Module, images: Tensor, size: int) -> None:
        self.accelerator, self.model = accelerator, model
        self.parts = images.tensor_split(-(-len(images) // size))
        self.learns = any(each.requires_grad for each in model.parameters())
        self.states: list[_ModelState] = []
        modules = list(model.modules())
        norms = [each for each in modules if isinstance(each, NORMS)]
        statistics = {id(each) for norm in norms for each in norm.buffers(recurse=False)}
        self._all = list(model.buffers())
        self._read = [each for each in self._all if id(each) not in statistics]  # statistics are not read in training
        held = [each for module in modules for each in vars(module).values()]
        self._generators = list({id(each): each for each in held if isinstance(each, torch.Generator)}.values())

    @property
    def sizes(self) -> list[int]:
        """The number of images of each chunk."""
        return [len(part) for part in self.parts]

    def embed(self) -> Tensor:
        """Embed all images; the embeddings require a gradient if the model has trained parameters."""
        found = []
        with torch.no_grad():
            for part in self.parts:
                self.states.append(self._get_state())
                found.append(self._call(part))
        return torch.cat(found).requires_grad_(self.learns)

    def backward(self, embeddings: Tensor) -> None:
        """Back-propagate the gradient of the embeddings to the parameters.

        Args:
            embeddings: the result of `embed`, after the backward pass of the loss.
        """
        if embeddings.grad is None:  # only the loss has trained parameters
            return
        after, buffers = self._get_state(), [each.clone() for each in self._all]
        firsts, gradients = torch.split(embeddings.detach(), self.sizes), torch.split(embeddings.grad, self.sizes)
        last = len(self.parts) - 1
        for place, (part, state) in enumerate(zip(self.parts, self.states, strict=True)):
            self._set_state(state)
            # processes synchronize once, at the last chunk
            with nullcontext() if place == last else self.accelerator.no_sync(self.model):
                again = self._call(part)
                _check_repeated(firsts[place], again)
                again.backward(gradients[place])  # type: ignore[no-untyped-call]
        self._set_state(after)
        for mine, kept in zip(self._all, buffers, strict=True):
            mine.copy_(kept)

    def _call(self, part: Tensor) -> Tensor:
        with self.accelerator.autocast():
            embeddings: Any = self.model(part.to(self.accelerator.device))
        if not isinstance(embeddings, Tensor) or embeddings.ndim == 0 or len(embeddings) != len(part):
            what = f"shape {tuple(embeddings.shape)}" if isinstance(embeddings, Tensor) else type(embeddings).__name__
            raise ValueError(f"model must return one embedding for each of {len(part)} images, but it returns {what}")
        return embeddings

    def _get_state(self) -> _ModelState:
        """Copy the current state, except buffers that have not changed since the last copy."""
        before = self.states[-1] if self.states else None
        versions = [each._version for each in self._read]
        kept = [
            before.buffers[place] if before is not None and before.versions[place] == versions[place] else each.clone()
            for place, each in enumerate(self._read)
        ]
        return _ModelState(rng_tensors(), [each.get_state() for each in self._generators], kept, versions)

    @torch.no_grad()
    def _set_state(self, state: _ModelState) -> None:
        load_rng_state(state.rng_state)
        for generator, rng_state in zip(self._generators, state.generators, strict=True):
            generator.set_state(rng_state)
        for buffer, kept, version in zip(self._read, state.buffers, state.versions, strict=True):
            if buffer._version != version:
                buffer.copy_(kept)


def _check_repeated(first: Tensor, again: Tensor) -> None:
    """Check that the second pass of a chunk returns the embeddings of the first; otherwise gradients would be wrong."""
    if not can_read_values(again):
        return
    apart, length = float((again.detach() - first).float().norm()), float(first.float().norm())
    if apart > REPEATED * length:
        raise ValueError(
            "chunk must be None for a model that does not return the same embeddings twice, but these are "
            f"{apart / max(length, 1e-30):.0%} of their length apart: it draws from another random number generator"
        )
