"""The catalog of the lens: every loss of the library, and some losses with their miners."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from likewise import losses, miners
from likewise.losses import PairLoss, ProxyLoss


@dataclass(frozen=True)
class Entry:
    """A named loss and the arguments of its constructor.

    Args:
        name: its name in tables and on pages.
        kind: its class.
        options: the arguments of its constructor besides hyper-parameters.

    Examples:
        >>> catalog()["Triplet, batch-hard"].make(num_classes=3, embedding_dim=2).miner
        BatchHardMiner()
    """

    name: str
    kind: type[PairLoss] | type[ProxyLoss]
    options: tuple[tuple[str, Callable[[], Any]], ...] = ()

    @property
    def has_proxies(self) -> bool:
        """Whether the loss has proxies."""
        return issubclass(self.kind, ProxyLoss)

    def make(self, num_classes: int, embedding_dim: int, **given: Any) -> PairLoss | ProxyLoss:
        """Construct the loss; the numbers of classes and dimensions are used by losses with proxies."""
        made: dict[str, Any] = {name: option() for name, option in self.options}
        sizes = (num_classes, embedding_dim) if self.has_proxies else ()
        return self.kind(*sizes, **made, **given)


def catalog() -> dict[str, Entry]:
    """Return every loss of the library by its name in tables, and well-known combinations of a loss and a miner.

    The catalog includes every loss in `likewise.losses` that needs only sizes and whose weights follow from
    similarities and labels.  It excludes losses that ignore labels, have a state or draw random numbers, and those in
    `NOT_WEIGHED`.

    Examples:
        >>> len(catalog()) > 30
        True
    """
    entries = [Entry(_title(kind), kind) for kind in _kinds()]
    entries += [
        Entry("Binomial deviance + VTHM", losses.BinomialDevianceLoss, (("miner", miners.ValidTripletMiner),)),
        Entry("Multi-similarity + its miner", losses.MultiSimilarityLoss, (("miner", miners.MultiSimilarityMiner),)),
        Entry("Triplet, semi-hard", losses.TripletLoss, (("miner", miners.SemiHardMiner),)),
        Entry("Triplet, batch-hard", losses.TripletLoss, (("miner", miners.BatchHardMiner),)),
    ]
    return {entry.name: entry for entry in sorted(entries, key=lambda entry: entry.name.lower())}


def _kinds() -> list[type[PairLoss] | type[ProxyLoss]]:
    found = (getattr(losses, name) for name in losses.__all__)
    return [
        kind
        for kind in found
        if inspect.isclass(kind)
        and issubclass(kind, PairLoss | ProxyLoss)
        and kind not in (PairLoss, ProxyLoss, *NOT_WEIGHED)
        and getattr(kind, "takes_labels", True)
        and not kind.is_stateful
        and _needs_only_sizes(kind)
    ]


def _needs_only_sizes(kind: Any) -> bool:
    """Whether a loss needs only sizes; `likewise.losses.WeightedPairLoss` also needs a function."""
    required = {field.name for field in dataclasses.fields(kind) if field.default is dataclasses.MISSING}
    return required <= {"num_classes", "embedding_dim"}


def _title(kind: type) -> str:
    name = kind.__name__.removesuffix("Loss")
    return TITLES.get(name, name)


NOT_WEIGHED = (
    losses.CentroidTripletLoss,
    losses.HAPPIERLoss,
    losses.HierarchicalTripletLoss,
    losses.LargeMarginSoftmaxLoss,
    losses.MagFaceLoss,
    losses.MagnetLoss,
    losses.PDDMLoss,
)
"""Losses that weights per pair do not describe: two have centroids of all samples, two have lengths of proxies or samples, one
has a tree of classes, one a learned metric, and the two terms of HAPPIER are losses of the library."""


TITLES = {
    "BinomialDeviance": "Binomial deviance",
    "GeneralizedLiftedStructure": "Generalized lifted structure",
    "HardnessWeightedNTXent": "Hardness-weighted NT-Xent",
    "IntraPairVariance": "Intra-pair variance",
    "LiftedStructure": "Lifted structure",
    "MultiSimilarity": "Multi-similarity",
    "NPairs": "N-pairs",
    "NTXent": "NT-Xent",
    "NormalizedSoftmax": "Normalized softmax",
    "ProxyAnchor": "Proxy-Anchor",
    "ProxyNCAPP": "ProxyNCA++",
    "ProxyRepulsion": "Proxy repulsion",
    "QuadrupletWise": "Quadruplet-wise",
    "RecallAtK": "Recall@k",
    "RankedList": "Ranked list",
    "RAW": "RAW + VTHM",  # RAW includes mining; without a miner it is multi-similarity
    "SNRContrastive": "SNR contrastive",
    "SmoothAP": "Smooth-AP",
    "SubCenterArcFace": "Sub-center ArcFace",
    "ThresholdConsistentMargin": "Threshold-consistent margin",
    "TupletMargin": "Tuplet margin",
}
"""Names in tables; the default is the class's name without ``Loss``."""
