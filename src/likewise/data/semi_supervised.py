"""Semi-supervised sampler: labeled and unlabeled images, where views of an image or clusters of images are classes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

from likewise.data.hard_samplers import MiningSampler
from likewise.data.random_source import Array, Deck, Decks, RandomSource, whole_number
from likewise.data.samplers import Labels, check_divisible, check_enough_classes


class SemiSupervisedSampler(MiningSampler):
    """Batches of the same number of images per class, for data of which only a fraction is labeled.

    A labeled image has its class.  An unlabeled image is a separate class, and a batch contains ``per_class`` views of it:
    random crops.  Two views of an image are positives of each other, so that any pair loss is self-supervised
    (`likewise.losses.NTXentLoss` is SimCLR, as with ``relation="views"``).  With ``clusters``, unlabeled images are
    clustered by k-means on their embeddings whenever the trainer mines (``mine_every``), and each cluster is a class:
    pseudo-labels (Caron et al. 2018).

    The labels of a batch come from ``targets``: known classes first, then the generated ones.  A proxy loss needs one
    proxy for each of them; pair losses need no change.

    Args:
        labels: label of each image, ``(n,)``; those of unlabeled images are not used.
        labeled: fraction of the images whose labels are known, drawn at random: 0 for none, 1 for all.
        clusters: number of pseudo-classes of the unlabeled images; ``None``: each image is a separate class.
        classes: number of different classes in a batch.
        per_class: number of images or views per class.
        labeled_classes: number of labeled classes in a batch, if there are unlabeled images; by default half.
        steps: batches per epoch; by default, the number of images divided by the batch size, at least 1.
        seed: seed of all random choices, including that of the labeled images.
        rank: rank of this process; it gets whole classes of each batch.
        world_size: number of processes over which each batch is split.

    Examples:
        >>> sampler = SemiSupervisedSampler([0, 0, 0, 1, 1, 1], labeled=0.0, classes=3, per_class=2)
        >>> [sampler.targets[batch].tolist() == [x + 2 for x in batch] for batch in sampler]
        [True]
        >>> [sorted(batch) for batch in sampler]
        [[1, 1, 2, 2, 3, 3]]
    """

    def __init__(
        self,
        labels: Labels,
        *,
        labeled: float = 0.2,
        clusters: int | None = None,
        classes: int = 32,
        per_class: int = 4,
        labeled_classes: int | None = None,
        steps: int | None = None,
        seed: int = 0,
        rank: int = 0,
        world_size: int = 1,
    ):
        if isinstance(labeled, bool) or not 0.0 <= labeled <= 1.0:
            raise ValueError(f"labeled must be a fraction from 0 to 1, but it is {labeled!r}")
        self.classes, self.per_class = whole_number("classes", classes, 1), whole_number("per_class", per_class, 1)
        self.labeled, self.clusters = float(labeled), clusters
        wanted = classes // 2 if labeled_classes is None else whole_number("labeled_classes", labeled_classes, 0)
        if wanted > classes:
            raise ValueError(f"labeled_classes must be at most {classes}, the number of classes, but it is {wanted}")
        settings: dict[str, int | str] = {
            "classes": self.classes,
            "per_class": self.per_class,
            "labeled": repr(self.labeled),
            "clusters": repr(clusters),
            "labeled_classes": wanted,
        }
        super().__init__(
            labels,
            batch_size=classes * per_class,
            settings=settings,
            steps=steps,
            seed=seed,
            rank=rank,
            world_size=world_size,
        )
        check_divisible("classes", classes, "world_size", world_size)
        self._known = self._draw_labeled()
        unlabeled = int((~self._known).sum())
        if clusters is not None and not 1 <= whole_number("clusters", clusters, 1) <= max(unlabeled, 1):
            raise ValueError(
                f"clusters must be at most {unlabeled}, the number of unlabeled images, but it is {clusters}"
            )
        self.mines = clusters is not None and unlabeled > 0
        there = len(np.unique(self.labels[self._known]))
        self._wanted = 0 if not there else min(wanted, there) if unlabeled else classes
        check_enough_classes(self._wanted, there, "with a label")
        check_enough_classes(
            classes, there + (unlabeled if clusters is None else clusters), "including the generated ones"
        )

    def _draw_labeled(self) -> Array:
        """Draw the labeled images: the first of a random order that depends only on the seed and the fraction."""
        known = np.zeros(len(self.labels), dtype=bool)
        order = RandomSource(self.seed, 1, 1 << 20).order(len(self.labels))  # a key that no epoch uses
        known[order[: round(self.labeled * len(self.labels))]] = True
        return known

    @property
    def targets(self) -> Tensor:
        """The class of every image, ``(n,)``: its label, or a generated class."""
        return torch.from_numpy(self._targets())

    def _targets(self) -> Array:
        if self.mines:
            return self._mined_table()
        return np.where(self._known, self.labels, int(self.labels.max()) + 1 + np.arange(len(self.labels)))

    def _search(self, units: Tensor) -> Array:
        """Return the targets, with clusters of the unlabeled images."""
        from likewise.metrics import kmeans

        targets = self.labels.copy()
        rows = units[torch.from_numpy(~self._known).to(units.device)]
        assert self.clusters is not None
        found = kmeans(rows, self.clusters, seed=self.seed, iterations=20).assignments
        targets[~self._known] = int(self.labels.max()) + 1 + found.cpu().numpy()
        return targets

    def _batches(self, source: RandomSource) -> Iterator[list[int]]:
        targets = self._targets()
        images = Decks(targets, source)
        of_labeled = np.isin(images.classes, targets[self._known])
        labeled = Deck(np.flatnonzero(of_labeled), source)
        others = Deck(np.flatnonzero(~of_labeled), source)
        while True:
            # k-means may return fewer clusters than requested: labeled classes then fill the batch
            of_others = min(self.classes - self._wanted, len(others.cards))
            chosen = [*labeled.deal(min(self.classes - of_others, len(labeled.cards))), *others.deal(of_others)]
            chosen += (labeled if len(labeled.cards) else others).deal(self.classes - len(chosen))
            yield [index for number in chosen for index in images.deal(number, self.per_class)]
