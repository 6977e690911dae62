"""Sharded proxies: the proxies of millions of classes, distributed over ranks."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call

from likewise.distributed import SINGLE_PROCESS, ProcessGroup, RowPartition, TorchProcessGroup, current_group
from likewise.formula import full_precision, sort_declaration
from likewise.losses.base import collect_groups
from likewise.losses.gathered import join_batch
from likewise.losses.proxy_base import ProxyLoss


class ShardedProxies(nn.Module):
    """A proxy loss whose proxies are sharded over ranks.

    Each rank passes its local samples, which are gathered.  Each rank folds all samples against its shard, and the fold
    states, a few numbers per sample, are merged in one collective per pass.  Neither proxies nor logits are
    communicated.  Value and gradients are those of a single process with all samples and all proxies.

    The gradient of the embeddings follows the convention of `torch.nn.parallel.DistributedDataParallel` (`Gathered`): its
    mean over ranks is the gradient.  The gradient of a shard is **exact** and must not be averaged, because other ranks
    hold other proxies.  A DistributedDataParallel around this module ignores the shard; for one around a module that
    contains this one, pass the names of the parameters with ``is_shard`` to
    ``DistributedDataParallel._set_params_and_buffers_to_ignore_for_model``.  Optimizers work as usual on the parameters of
    each rank; a state dict contains the shard of this rank.

    Args:
        loss: a loss with proxies, on all classes; kept as ``.loss`` with the shard of this rank.  Construct it under
            ``torch.device("meta")`` if all proxies do not fit into memory: each shard is then initialized separately,
            with a seed that depends on the rank; an initialization that depends on the number of classes (Kaiming,
            Xavier) then uses that of the shard.
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
                f"loss must be a formula, which can be folded over shards of the proxies, but a {type(loss).__name__} "
                "needs all proxies of a sample at once"
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
        loss.proxies = _local_shard(loss, loss.shard)
        # read by DistributedDataParallel when it wraps this module
        self._ddp_params_and_buffers_to_ignore = ["loss.proxies"]

    def forward(self, embeddings: Tensor, labels: Tensor | None = None) -> Tensor:
        """Compute the loss of all ranks' samples against all proxies; labels are class indices among all classes."""
        with join_batch(self.group), full_precision(embeddings):
            if current_group().size != len(self._shard.sizes):
                raise RuntimeError(
                    f"proxies were split over {len(self._shard.sizes)} processes, but there are {current_group().size}"
                )
            proxies = _divide_gradient(self.loss.proxies, current_group().size)
            value: Tensor = functional_call(self.loss, {"proxies": proxies}, (embeddings, labels))
            return value

    @property
    def _shard(self) -> RowPartition:
        assert self.loss.shard is not None
        return self.loss.shard

    def all_proxies(self) -> Tensor:
        """Return all proxies on every rank, without gradient: for a checkpoint or another number of ranks."""
        with torch.no_grad(), join_batch(self.group):
            centers = self.loss.proxies_per_class
            rows = RowPartition(tuple(size * centers for size in self._shard.sizes), self._shard.rank)
            return current_group().gather(self.loss.proxies.detach(), rows)

    def parameter_groups(self, lr: float | None = None) -> list[dict[str, Any]]:
        """The parameter groups of the loss."""
        return collect_groups([self.loss], lr)


def _local_shard(loss: ProxyLoss, shard: RowPartition) -> nn.Parameter:
    """The proxies of this rank: rows of the existing ones, or newly initialized ones if those are on the meta device."""
    centers, classes = loss.proxies_per_class, shard.local
    whole = loss.proxies.detach()
    if whole.is_meta:
        local = torch.empty(shard.sizes[shard.rank] * centers, whole.shape[1], dtype=whole.dtype, device="cpu")
        with torch.no_grad(), torch.random.fork_rng(devices=[]):
            torch.manual_seed(torch.initial_seed() + shard.rank)
            loss.initialize(local)
    else:
        local = whole[classes.start * centers : classes.stop * centers].clone()
    parameter = nn.Parameter(local)
    parameter.is_shard = True  # type: ignore[attr-defined]
    return parameter


class _DivideGradient(torch.autograd.Function):
    """Divide the gradient, which is a sum over copies of the loss, by their number."""

    @staticmethod
    def forward(tensor: Tensor, copies: int) -> Tensor:
        return tensor.view_as(tensor)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, int], output: Tensor) -> None:
        ctx.copies = inputs[1]

    @staticmethod
    def jvp(ctx: Any, tangent: Tensor, _: None) -> Tensor:
        return tangent.view_as(tangent)  # a tangent is not a sum over copies

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        return grad / ctx.copies, None


def _divide_gradient(tensor: Tensor, copies: int) -> Tensor:
    if copies == 1:
        return tensor
    scaled: Tensor = _DivideGradient.apply(tensor, copies)  # type: ignore[no-untyped-call]
    return scaled
