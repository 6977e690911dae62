"""Offline mining: at intervals, all training images are embedded for the sampler and the loss."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

import torch
from accelerate import Accelerator
from accelerate.utils import gather_object
from torch import nn

from likewise.data import MiningSampler
from likewise.train.checkpoint import load_rng_state, rng_tensors
from likewise.train.description import Batches, Data, length
from likewise.train.embedding import Embedded, embed
from likewise.train.settings import Precision, TrainConfig


def mining_sampler(batches: Batches) -> MiningSampler | None:
    """Return the sampler of a loader if it mines, else ``None``.

    Examples:
        >>> print(mining_sampler([]))
        None
    """
    names = ("batches", "batch_sampler", "sampler")
    for each in (getattr(batches, name, None) for name in names):
        if isinstance(each, MiningSampler) and each.mines:
            return each
    return None


def mining_losses(loss: object) -> list[nn.Module]:
    """List the losses, including nested ones, that need the embeddings of all images through ``update(embeddings, labels)``.

    Examples:
        >>> from likewise.losses import HierarchicalTripletLoss
        >>> mining_losses(nn.ModuleList([HierarchicalTripletLoss(3), nn.Flatten()]))
        [HierarchicalTripletLoss(num_classes=3, margin=0.1)]
    """
    return [each for each in loss.modules() if getattr(each, "mines", False)] if isinstance(loss, nn.Module) else []


class Mining:
    """Decides when mining is due, and gives the sampler and the loss the embeddings of all training images.

    Args:
        data: the batches, and all images in order.
        settings: the interval, and the precision of the model.
        accelerator: the processes, each of which embeds a shard of the images.
        loss: the loss, which can mine too.

    Examples:
        >>> Mining(Data([]), TrainConfig(), Accelerator(cpu=True)).is_due(0)
        False
    """

    def __init__(self, data: Data, settings: TrainConfig, accelerator: Accelerator, loss: object = None) -> None:
        self.sampler, self.images, self.losses = mining_sampler(data.train), data.in_order, mining_losses(loss)
        self.precision: Precision = settings.precision
        self.accumulate, self.accelerator = settings.accumulate, accelerator
        self.every = 0
        if self.sampler is None and not self.losses:
            for name in ("mine_every", "mine_steps"):
                if getattr(settings, name) is not None:
                    raise ValueError(
                        f"{name} must be None if neither the sampler nor the loss mines, but it is {getattr(settings, name)}"
                    )
            return
        if self.images is None:
            kind = type(self.losses[0] if self.sampler is None else self.sampler).__name__
            raise ValueError(f"data.in_order must be all training images for a {kind}, which mines, but it is None")
        name = "mine_every" if settings.mine_steps is None else "mine_steps"
        every = settings.mine_steps or (settings.mine_every or 1)
        if (name == "mine_steps" or every > 1) and not hasattr(data.train, "load_state_dict"):
            raise ValueError(
                f"{name} must be None for a loader without state_dict, such as a {type(data.train).__name__}, "
                f"but it is {every}"
            )
        epoch = -(-length(data.train) // settings.accumulate)
        self.every = settings.mine_steps or epoch * (settings.mine_every or 1)

    def is_due(self, step: int) -> bool:
        """Whether mining is due after a number of steps."""
        return self.every > 0 and step % self.every == 0

    def mine(self, model: nn.Module, epoch: int, steps: int) -> float:
        """Embed all images, update the sampler and the loss, and return how many seconds that took.

        Args:
            model: the network that maps images to embeddings.
            epoch: the current epoch.
            steps: the number of finished steps of that epoch.
        """
        begin, rng_state = time.monotonic(), rng_tensors()
        assert self.images is not None
        if hasattr(self.images, "set_epoch"):
            self.images.set_epoch(0)  # the same images each time
        embeddings, labels = embed_together(model, self.images, self.accelerator, self.precision)
        if self.sampler is not None:
            self.sampler.update(embeddings, epoch=epoch, position=steps * self.accumulate)
        for loss in self.losses:
            loss.update(embeddings, labels)  # type: ignore[operator]
        load_rng_state(rng_state)
        return time.monotonic() - begin


def embed_together(
    model: nn.Module, batches: Iterable[Sequence[Any]], accelerator: Accelerator, precision: Precision = "no"
) -> Embedded:
    """Embed all images, a shard on each process, and gather the embeddings on every process.

    The result is the same as with one process.

    Args:
        model: the network that maps images to embeddings; its buffers are set to those of rank 0.
        batches: batches of images and labels, the same on every process.
        accelerator: the processes.
        precision: mixed precision of the model.

    Examples:
        >>> embed_together(nn.Flatten(), [(torch.zeros(3, 1, 2, 2), torch.arange(3))], Accelerator(cpu=True))[0].shape
        torch.Size([3, 4])
    """
    count, rank = accelerator.num_processes, accelerator.process_index
    if count == 1:
        return embed(model, batches, precision=precision)
    for buffer in model.buffers():  # running averages differ between processes
        torch.distributed.broadcast(buffer, 0)
    shard, labels = [], []
    for number, batch in enumerate(batches):  # every process has all labels
        labels.append(batch[1].cpu())
        if number % count == rank:
            shard.append(embed(model, [batch], precision=precision).embeddings)
    shards = gather_object([shard])
    embeddings = [shards[number % count][number // count] for number in range(len(labels))]
    return Embedded(torch.cat(embeddings), torch.cat(labels))


def step_batches(batches: Batches, epoch: int, count: int) -> Iterator[list[Sequence[Any]]]:
    """Iterate over the batches of an epoch in lists of ``count``; the last list may be shorter.

    Examples:
        >>> list(step_batches([[1], [2], [3]], 0, 2))
        [[[1], [2]], [[3]]]
    """
    if not hasattr(batches, "load_state_dict"):
        for each in (batches, getattr(batches, "batch_sampler", None), getattr(batches, "sampler", None)):
            if each is not None and hasattr(each, "set_epoch"):
                each.set_epoch(epoch)  # a resumed run starts in a new process
    source = iter(batches)
    while several := list(islice(source, count)):
        yield several
