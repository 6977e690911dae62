"""Metrics that collect samples batch by batch and compute once: ``update``, ``compute``, ``reset``.

A metric of an embedding is not a mean over batches, because every sample is compared with all others.  These modules
keep the embeddings and call the function of the same name on all of them, so that both give the same numbers.  In a
group of processes `compute` gathers the samples of all ranks first; ranks may hold different numbers of samples, or
none.  All ranks must call it, and all get the same result.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import torch
from torch import nn

from likewise.formula import SimilarityLike, as_similarity, whole_number
from likewise.metrics.arrays import Array
from likewise.metrics.chunks import MEMORY
from likewise.metrics.clustering import clustering
from likewise.metrics.retrieval import check_options, retrieval
from likewise.metrics.samples import Samples, check_samples, concatenate_samples, gather_samples
from likewise.metrics.verification import check_rates, verification


class SampleMetric(nn.Module, ABC):
    """A metric of all samples that were added since the last `reset`.

    The samples are not part of ``state_dict``; they are pickled with the module.

    Args:
        memory: bytes that `compute` may take in addition to the samples.
        on_cpu: keep the samples in main memory and compute there; otherwise they stay on the device of the embeddings.
        group: the group of torch.distributed whose samples are gathered; ``None`` for all processes.
    """

    def __init__(self, *, memory: int, on_cpu: bool, group: Any) -> None:
        super().__init__()
        # every option is checked here, not at the end of the first epoch
        self.memory, self.on_cpu, self.group = whole_number("memory", memory, 1), on_cpu, group
        self._batches: list[Samples] = []

    @abstractmethod
    def compute(self) -> dict[str, Any]:
        """Compute the metric of all samples of all ranks."""

    def reset(self) -> None:
        """Remove all samples."""
        self._batches.clear()

    def _add(self, batch: Samples) -> None:
        """Store a copy of a batch."""
        if self._batches and batch.kind != self._batches[0].kind:
            raise ValueError(
                f"each batch must be of one kind, but this one has {batch.kind} and the first one had "
                f"{self._batches[0].kind}"
            )
        device = torch.device("cpu") if self.on_cpu else batch.embeddings.device
        self._batches.append(batch.map(lambda column: column.to(device, copy=True)))

    def _collect(self) -> Samples:
        """Return the samples of all batches of all ranks, in the order of ranks."""
        if len(self._batches) > 1:  # so that samples are not in memory twice
            self._batches[:] = [concatenate_samples(self._batches)]
        samples = gather_samples(self._batches[0] if self._batches else None, self.group)
        if samples is None:
            raise ValueError("update must be called before compute, but no sample was added")
        return samples


def _as_arguments(samples: Samples) -> dict[str, Any]:
    """Samples as arguments of `retrieval` and `verification`."""
    queries, gallery = samples.split()
    return {
        "embeddings": queries.embeddings,
        "labels": queries.labels,
        "references": None if gallery is None else gallery.embeddings,
        "reference_labels": None if gallery is None else gallery.labels,
        "ids": queries.ids,
        "reference_ids": None if gallery is None else gallery.ids,
    }


class Retrieval(SampleMetric):
    """`retrieval` of samples that come batch by batch: exact, and synchronized over ranks.

    `compute` equals ``retrieval`` of all added samples.  Calling the module calls `update` and returns ``None``: the
    value of one batch would be that of an easier task, with fewer samples to confuse.

    Args:
        ks: as in `retrieval`.
        metrics: the names to compute, as in `retrieval`.
        similarity: how embeddings are compared.
        ties: as in `retrieval`.
        without_positives: as in `retrieval`.
        reduce: as in `retrieval`.
        memory: bytes that `compute` may take in addition to the samples.
        on_cpu: keep the samples in main memory and compute there; otherwise they stay on the device of the embeddings.
        group: the group of torch.distributed whose samples are gathered; ``None`` for all processes.

    Examples:
        >>> import torch
        >>> metric = Retrieval(metrics=("R@1", "mAP@10"))
        >>> for batch in torch.tensor([[[1.0, 0.0], [0.0, 1.0]], [[0.9, 0.1], [0.1, 0.9]]]):
        ...     metric.update(batch, torch.tensor([0, 1]))
        >>> metric.compute()
        {'R@1': 1.0, 'mAP@10': 1.0, 'queries': 4, 'queries_without_positive': 0}
        >>> metric.reset()
    """

    def __init__(
        self,
        *,
        ks: Sequence[int] = (1, 2, 4, 8),
        metrics: Sequence[str] | None = None,
        similarity: SimilarityLike = "cosine",
        ties: str = "expected",
        without_positives: str = "leave_out",
        reduce: str = "mean",
        memory: int = MEMORY,
        on_cpu: bool = False,
        group: Any = None,
    ) -> None:
        super().__init__(memory=memory, on_cpu=on_cpu, group=group)
        wanted = check_options(metrics, ks, ties, without_positives, reduce)
        self.metrics, self.similarity = tuple(metric.name for metric in wanted), as_similarity(similarity)
        self.ties, self.without_positives, self.reduce = ties, without_positives, reduce

    def update(
        self, embeddings: Array, labels: Array, *, ids: Array | None = None, is_query: Array | bool | None = None
    ) -> None:
        """Add a batch.

        Args:
            embeddings: ``(b, d)``.
            labels: ``(b,)``, on any device.
            ids: the sample id of each row, ``(b,)``; a query is not compared with a sample that has its id.
            is_query: whether the samples are queries, ``(b,)`` booleans or one for all; the others are the gallery.  By
                default every sample is a query and is ranked against all others.
        """
        self._add(check_samples(embeddings, labels, ids, is_query))

    forward = update  # a module is called

    def compute(self) -> dict[str, Any]:
        """Compute `retrieval` of all samples of all ranks."""
        return retrieval(
            **_as_arguments(self._collect()),
            metrics=self.metrics,
            similarity=self.similarity,
            ties=self.ties,
            without_positives=self.without_positives,
            reduce=self.reduce,
            memory=self.memory,
        )


class Verification(SampleMetric):
    """`verification` of samples that come batch by batch: synchronized over ranks.

    Args:
        far: false-accept rates, each in (0, 1].
        similarity: how two embeddings are compared.
        memory: bytes that `compute` may take in addition to the samples.
        on_cpu: keep the samples in main memory and compute there; otherwise they stay on the device of the embeddings.
        group: the group of torch.distributed whose samples are gathered; ``None`` for all processes.

    Examples:
        >>> import torch
        >>> metric = Verification(far=(0.1,))
        >>> metric.update(torch.eye(4)[[0, 0, 1, 1]], torch.tensor([7, 7, 8, 8]))
        >>> metric.compute()["AUC"]
        1.0
    """

    def __init__(
        self,
        *,
        far: Sequence[float] = (1e-1, 1e-2, 1e-3),
        similarity: SimilarityLike = "cosine",
        memory: int = MEMORY,
        on_cpu: bool = False,
        group: Any = None,
    ) -> None:
        super().__init__(memory=memory, on_cpu=on_cpu, group=group)
        self.far, self.similarity = check_rates(far), as_similarity(similarity)

    def update(
        self, embeddings: Array, labels: Array, *, ids: Array | None = None, is_query: Array | bool | None = None
    ) -> None:
        """Add a batch, as `Retrieval.update` does; with ``is_query``, pairs are those of a query and the gallery."""
        self._add(check_samples(embeddings, labels, ids, is_query))

    forward = update  # a module is called

    def compute(self) -> dict[str, Any]:
        """Compute `verification` of all samples of all ranks."""
        return verification(
            **_as_arguments(self._collect()),
            far=self.far,
            similarity=self.similarity,
            memory=self.memory,
        )


class Clustering(SampleMetric):
    """`clustering` of samples that come batch by batch: synchronized over ranks.

    Args:
        seed: the seed of the k-means++ draws.
        normalize: scale the embeddings to unit length first.
        iterations: the maximum number of k-means iterations.
        memory: bytes that the distances may take at once.
        on_cpu: keep the samples in main memory and compute there; otherwise they stay on the device of the embeddings.
        group: the group of torch.distributed whose samples are gathered; ``None`` for all processes.

    Examples:
        >>> import torch
        >>> metric = Clustering()
        >>> metric.update(torch.eye(4)[[0, 0, 1, 1]], torch.tensor([7, 7, 8, 8]))
        >>> metric.compute()
        {'NMI': 1.0, 'AMI': 1.0, 'F1': 1.0}
    """

    def __init__(
        self,
        *,
        seed: int = 0,
        normalize: bool = True,
        iterations: int = 100,
        memory: int = MEMORY,
        on_cpu: bool = False,
        group: Any = None,
    ) -> None:
        super().__init__(memory=memory, on_cpu=on_cpu, group=group)
        self.seed, self.normalize = whole_number("seed", seed, 0), normalize
        self.iterations = whole_number("iterations", iterations, 1)

    def update(self, embeddings: Array, labels: Array) -> None:
        """Add a batch of embeddings ``(b, d)`` and labels ``(b,)``."""
        self._add(check_samples(embeddings, labels, None, None))

    forward = update  # a module is called

    def compute(self) -> dict[str, Any]:
        """Compute `clustering` of all samples of all ranks."""
        samples = self._collect()
        return dict(
            clustering(
                samples.embeddings,
                samples.labels,
                self.seed,
                normalize=self.normalize,
                iterations=self.iterations,
                memory=self.memory,
            )
        )
