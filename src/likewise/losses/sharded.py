"""Proxies that are split over processes: ten million classes, a share of them on each device."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call

from likewise.distributed import SINGLE_PROCESS, ProcessGroup, RowPartition, TorchProcessGroup, current_group
from likewise.formula import full_precision, sort_declaration
from likewise.losses.base import groups_of
from likewise.losses.gathered import together
from likewise.losses.proxy_base import ProxyLoss


class ShardedProxies(nn.Module):
    """A proxy loss whose proxies live in shares, one on each process.

    Every process gives its own samples.  They are gathered; every process folds all of them against its proxies; and what
    the folds leave, a few numbers for each sample, meets in one collective for each pass.  So neither proxies nor logits
    travel.  Value and gradients are those of one process with all samples and all proxies.

    The gradient of the embeddings follows the convention of `torch.nn.parallel.DistributedDataParallel` (`Gathered`): its
    mean over processes counts.  The gradient of a share of proxies is **exact as it is** and must not be averaged: other
    processes have other proxies.  The module tells a DistributedDataParallel around it to leave them alone; around something
    that contains it, name the parameters (those with ``is_shard``) to
    ``DistributedDataParallel._set_params_and_buffers_to_ignore_for_model``.  Optimizers need no care, as every process has
    parameters of its own; a state dict has this process's share alone.

    Args:
        loss: a loss with proxies, on all classes; kept as ``.loss`` with this process's share.  Make it under
            ``torch.device("meta")`` where all proxies would not fit: then every share is initialized by itself, from a
            generator that differs by rank; what is drawn in proportion to the number of classes (Kaiming, Xavier) then
            follows the number of a share.
        group: the processes, a group of torch.distributed; ``None``: all.

    Examples:
        >>> import torch
        >>> from likewise.losses import ArcFaceLoss
        >>> loss = ShardedProxies(ArcFaceLoss(num_classes=10, embedding_dim=4))
        >>> loss.loss.proxies.shape  # there is one process
        torch.Size([10, 4])
        >>> loss(torch.randn(6, 4), torch.arange(6)).shape
        torch.Size([])
    """

    def __init__(self, loss: ProxyLoss, *, group: Any = None) -> None:
        super().__init__()
        if not isinstance(loss, ProxyLoss):
            raise TypeError(f"loss must be a loss with proxies, but it is a {type(loss).__name__}")
        if any(sort_declaration(declaration)[2] for declaration in loss.declarations()):
            raise TypeError(
                f"loss must be a formula, which can be folded over shares of the proxies, but a {type(loss).__name__} "
                "looks at all proxies of a sample at once"
            )
        if loss.sampled is not None:
            raise ValueError(f"loss must compare with all of its proxies, but sampled is {loss.sampled!r}")
        self.loss, self.group = loss, group
        processes: ProcessGroup = TorchProcessGroup(group) if TorchProcessGroup.several(group) else SINGLE_PROCESS
        if loss.num_classes < processes.size:
            raise ValueError(
                f"loss must have a class for each of the {processes.size} processes, but it has {loss.num_classes}"
            )
        loss.shard = processes.split(loss.num_classes)
        loss.proxies = _own_share(loss, loss.shard)
        # read by DistributedDataParallel when it wraps this module
        self._ddp_params_and_buffers_to_ignore = ["loss.proxies"]

    def forward(self, embeddings: Tensor, labels: Tensor | None = None) -> Tensor:
        """The loss of all processes' samples against all proxies; labels are class indices among all classes."""
        with together(self.group), full_precision(embeddings):
            if current_group().size != len(self._shard.sizes):
                raise RuntimeError(
                    f"proxies were split over {len(self._shard.sizes)} processes, but there are {current_group().size}"
                )
            proxies = _exact(self.loss.proxies, current_group().size)
            value: Tensor = functional_call(self.loss, {"proxies": proxies}, (embeddings, labels))
            return value

    @property
    def _shard(self) -> RowPartition:
        assert self.loss.shard is not None
        return self.loss.shard

    def all_proxies(self) -> Tensor:
        """The proxies of all classes, on every process, without gradient: for a checkpoint, or another number of them."""
        with torch.no_grad(), together(self.group):
            centers = self.loss.proxies_per_class
            rows = RowPartition(tuple(size * centers for size in self._shard.sizes), self._shard.rank)
            return current_group().gather(self.loss.proxies.detach(), rows)

    def parameter_groups(self, lr: float | None = None) -> list[dict[str, Any]]:
        """Those of the loss."""
        return groups_of([self.loss], lr)


def _own_share(loss: ProxyLoss, shard: RowPartition) -> nn.Parameter:
    """This process's proxies: some of those that there are, or new ones where they exist in name only."""
    centers, own = loss.proxies_per_class, shard.own
    whole = loss.proxies.detach()
    if whole.is_meta:
        share = torch.empty(shard.sizes[shard.rank] * centers, whole.shape[1], dtype=whole.dtype, device="cpu")
        with torch.no_grad(), torch.random.fork_rng(devices=[]):
            torch.manual_seed(torch.initial_seed() + shard.rank)
            loss.initialize(share)
    else:
        share = whole[own.start * centers : own.stop * centers].clone()
    parameter = nn.Parameter(share)
    parameter.is_shard = True  # type: ignore[attr-defined]
    return parameter


class _Exact(torch.autograd.Function):
    """A tensor whose gradient is divided by a number: it is the sum over so many copies of the loss."""

    @staticmethod
    def forward(ctx: Any, tensor: Tensor, copies: int) -> Tensor:
        ctx.copies = copies
        return tensor.view_as(tensor)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        return grad / ctx.copies, None


def _exact(tensor: Tensor, copies: int) -> Tensor:
    if copies == 1:
        return tensor
    scaled: Tensor = _Exact.apply(tensor, copies)  # type: ignore[no-untyped-call]
    return scaled
