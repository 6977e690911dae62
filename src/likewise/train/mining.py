"""Offline mining: the sampler gets the embeddings of the whole training set every so many steps."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

import torch
from accelerate import Accelerator
from accelerate.utils import gather_object
from torch import Tensor, nn

from likewise.data import MiningSampler
from likewise.train.checkpoint import load_rng_state, rng_tensors
from likewise.train.description import Batches, Data, length
from likewise.train.embedding import embed
from likewise.train.settings import Precision, TrainConfig


def mining_sampler(batches: Batches) -> MiningSampler | None:
    """The sampler of a loader, if it mines.

    Examples:
        >>> print(mining_sampler([]))
        None
    """
    names = ("batches", "batch_sampler", "sampler")
    for each in (getattr(batches, name, None) for name in names):
        if isinstance(each, MiningSampler) and each.mines:
            return each
    return None


class Mining:
    """When a sampler mines, and how it gets its embeddings.

    Args:
        data: the batches, and all images in order.
        settings: how often; the precision of the model.
        accelerator: knows the other processes, which share the work.

    Examples:
        >>> Mining(Data([]), TrainConfig(), Accelerator(cpu=True)).is_due(0)
        False
    """

    def __init__(self, data: Data, settings: TrainConfig, accelerator: Accelerator) -> None:
        self.sampler, self.images = mining_sampler(data.train), data.in_order
        self.precision: Precision = settings.precision
        self.accumulate, self.accelerator = settings.accumulate, accelerator
        self.every = 0
        if self.sampler is None:
            for name in ("mine_every", "mine_steps"):
                if getattr(settings, name) is not None:
                    raise ValueError(
                        f"{name} must be None for a sampler that does not mine, but it is {getattr(settings, name)}"
                    )
            return
        if self.images is None:
            raise ValueError(
                f"data.in_order must be given for a {type(self.sampler).__name__}, which mines, but it is None"
            )
        if settings.mine_steps is not None and not hasattr(data.train, "load_state_dict"):
            raise ValueError(
                "mine_steps must be None for a loader that cannot continue in the middle of an epoch, "
                f"such as a {type(data.train).__name__}, but it is {settings.mine_steps}"
            )
        epoch = -(-length(data.train) // settings.accumulate)
        self.every = settings.mine_steps or epoch * (settings.mine_every or 1)

    def is_due(self, step: int) -> bool:
        """Whether the sampler mines before the step that follows so many."""
        return self.every > 0 and step % self.every == 0

    def mine(self, model: nn.Module, epoch: int, steps: int) -> float:
        """Embed all images and tell the sampler; the seconds that it took.

        Args:
            model: from images to embeddings.
            epoch: where the training is.
            steps: how many steps of that epoch were made.
        """
        begin, rng_state = time.monotonic(), rng_tensors()
        assert self.sampler is not None
        assert self.images is not None
        if hasattr(self.images, "set_epoch"):
            self.images.set_epoch(0)  # the same images each time
        embeddings = embed_together(model, self.images, self.accelerator, self.precision)
        self.sampler.update(embeddings, epoch=epoch, position=steps * self.accumulate)
        load_rng_state(rng_state)
        return time.monotonic() - begin


def embed_together(
    model: nn.Module, batches: Iterable[Sequence[Any]], accelerator: Accelerator, precision: Precision = "no"
) -> Tensor:
    """The embeddings of all images on every process, of which each computes its share: the same as of one process.

    Args:
        model: from images to embeddings; its buffers are those of the first process afterwards.
        batches: the same on every process.
        accelerator: knows the other processes.
        precision: mixed precision of the model.

    Examples:
        >>> embed_together(nn.Flatten(), [(torch.zeros(3, 1, 2, 2), torch.arange(3))], Accelerator(cpu=True)).shape
        torch.Size([3, 4])
    """
    count, rank = accelerator.num_processes, accelerator.process_index
    if count == 1:
        return embed(model, batches, precision=precision).embeddings
    for buffer in model.buffers():  # running averages are each process's own between two steps
        torch.distributed.broadcast(buffer, 0)
    mine = [
        embed(model, [batch], precision=precision)[0] for place, batch in enumerate(batches) if place % count == rank
    ]
    shares = gather_object([mine])
    return torch.cat([shares[place % count][place // count] for place in range(sum(map(len, shares)))])


def step_batches(batches: Batches, epoch: int, count: int) -> Iterator[list[Sequence[Any]]]:
    """The batches of an epoch, so many at a time; the last few may be fewer.

    Examples:
        >>> list(step_batches([[1], [2], [3]], 0, 2))
        [[[1], [2]], [[3]]]
    """
    if not hasattr(batches, "load_state_dict"):
        for each in (batches, getattr(batches, "batch_sampler", None), getattr(batches, "sampler", None)):
            if each is not None and hasattr(each, "set_epoch"):
                each.set_epoch(epoch)  # a sampler counts epochs by itself, and not those of an earlier process
    source = iter(batches)
    while several := list(islice(source, count)):
        yield several
