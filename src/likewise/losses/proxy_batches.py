"""The batches of a loss with proxies, one for each matrix that it reads."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from likewise.distributed import SINGLE_PROCESS, RowPartition, current_group
from likewise.formula import Labels, PairBatch, Pooled, as_similarity, batch_from_embeddings
from likewise.losses.proxies import Queue

if TYPE_CHECKING:
    from likewise.losses.proxy_base import ProxyLoss


class Between(Enum):
    """What a term of a proxy loss compares: anchors first, references second.

    Examples:
        >>> Between.PROXIES_SAMPLES.value
        'proxies against samples'
    """

    SAMPLES_PROXIES = "samples against proxies"
    SAMPLES_CLASSES = "samples against classes, whose proxies are pooled"
    PROXIES_SAMPLES = "proxies against samples"
    PROXIES_PROXIES = "proxies against proxies"
    SAMPLES_SAMPLES = "samples against samples"


def compare_samples(loss: ProxyLoss, samples: Tensor, labels: Tensor) -> PairBatch:
    """This rank's samples against the samples of all ranks."""
    similarity, levels = as_similarity(loss.similarity), loss.label_kind == "levels"
    batch = batch_from_embeddings(samples, labels, None, None, None, similarity, current_group(), levels=levels)
    return batch.under(batch.relation.including_itself()) if loss.ranks_itself() else batch


def compare_samples_with_proxies(
    loss: ProxyLoss, between: Between, samples: Tensor, labels: Tensor, half: torch.dtype | None
) -> tuple[PairBatch, Tensor | None]:
    """This rank's samples against all proxies, or all samples against its shard.

    Returns:
        The batch, and the logarithm of the number of classes that each column represents; ``None`` if it is one.
    """
    group = current_group()
    if loss.shard is not None:
        rows = group.batch_rows(samples)
        samples, labels = group.gather(samples, rows), group.gather(labels, rows)
    classes = labels if labels.ndim == 1 else labels[:, 0].contiguous()
    table, pooled = loss.table(classes), between is Between.SAMPLES_CLASSES
    similarity = as_similarity(loss.similarity)
    relation = Labels(
        classes,
        table.classes if pooled else table.owners(),
        ordered=loss.sampled is None,
        positives=table.positives(pooled=pooled),
    )
    batch = PairBatch(
        relation,
        Pooled(similarity, table.centers, loss.pooling) if pooled else similarity,
        anchors=samples,
        references=table.rows,
        group=group if loss.shard is None else SINGLE_PROCESS,
        shards=table.shards or SINGLE_PROCESS,
        half=half,
        labels=labels,
        between=between.value,
        table="references",
    )
    return batch, table.weights(pooled=pooled)


def compare_proxies_with_samples(
    loss: ProxyLoss, samples: Tensor, labels: Tensor, queue: Queue | None, half: torch.dtype | None
) -> PairBatch:
    """This rank's proxies against the samples of all ranks, and the memory's."""
    _refuse_sampling(loss)
    group = current_group()
    rows = group.batch_rows(samples)
    samples, labels, valid = group.gather(samples, rows), group.gather(labels, rows), None
    if queue is not None:
        samples, labels, valid = queue.after(samples, labels)
    table = loss.table(labels)
    if loss.shard is None:
        table = table.cut(group.split(len(table.classes)).local)
    return PairBatch(
        Labels(table.owners(), labels, valid=valid),
        as_similarity(loss.similarity),
        anchors=table.rows,
        references=samples,
        group=group,
        half=half,
        between=Between.PROXIES_SAMPLES.value,
        table="anchors",
    )


def compare_proxies(loss: ProxyLoss, samples: Tensor, queue: Queue | None) -> PairBatch:
    """Return the batch of each proxy against all others; the anchors are this rank's proxies."""
    _refuse_sampling(loss)
    group, centers = current_group(), loss.proxies_per_class
    if queue is not None:
        local_queue = group.split(len(queue.labels)).local
        samples = torch.cat([samples, queue.samples[local_queue] * queue.valid[local_queue, None]])
    local = group.split(loss.num_classes) if loss.shard is None else loss.shard
    local = RowPartition(tuple(size * centers for size in local.sizes), local.rank)
    rows = loss.proxies.to(samples.dtype)
    similarity, proxies = loss.between_proxies(samples, rows if loss.shard is None else group.gather(rows, local))
    everything, between = torch.arange(len(proxies), device=proxies.device), Between.PROXIES_PROXIES.value
    classes = everything // centers  # the only positive of a proxy is itself, but it has a class
    if group is SINGLE_PROCESS:
        return PairBatch(Labels(everything), similarity, anchors=proxies, labels=classes, between=between)
    own = everything[local.local]
    return PairBatch(
        Labels(own, everything, own=own),
        similarity,
        anchors=proxies[local.local],
        references=proxies,
        group=group,
        local_rows=local,
        labels=classes[local.local],
        between=between,
    )


def _refuse_sampling(loss: ProxyLoss) -> None:
    if loss.sampled is not None:
        raise ValueError(
            f"{type(loss).__name__}: sampled must be None where proxies are anchors, but it is {loss.sampled!r}"
        )
