"""Every loss that the lens can look at: those of the library, found by themselves, and some with their miners."""

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
    """A loss with a name, and how it is made.

    Args:
        name: what it is called in tables and on pages.
        kind: its class.
        options: what its constructor is given beside hyper-parameters.

    Examples:
        >>> catalog()["Triplet, batch-hard"].make(num_classes=3, embedding_dim=2).miner
        BatchHardMiner()
    """

    name: str
    kind: type[PairLoss] | type[ProxyLoss]
    options: tuple[tuple[str, Callable[[], Any]], ...] = ()

    @property
    def has_proxies(self) -> bool:
        """Whether the loss compares samples with proxies of its own."""
        return issubclass(self.kind, ProxyLoss)

    def make(self, num_classes: int, embedding_dim: int, **given: Any) -> PairLoss | ProxyLoss:
        """The loss, for so many classes and dimensions where it minds."""
        made: dict[str, Any] = {name: option() for name, option in self.options}
        sizes = (num_classes, embedding_dim) if self.has_proxies else ()
        return self.kind(*sizes, **made, **given)


def catalog() -> dict[str, Entry]:
    """Every loss of the library by the name that it has in tables, and the well-known pairs of a loss and a miner.

    A loss that is added to `likewise.losses` is in the next catalog.

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
        and kind not in (PairLoss, ProxyLoss)
        and _makes_itself(kind)
    ]


def _makes_itself(kind: Any) -> bool:
    """Whether a loss needs nothing but sizes; `likewise.losses.WeightedPairLoss` is nothing without somebody's function."""
    required = {field.name for field in dataclasses.fields(kind) if field.default is dataclasses.MISSING}
    return required <= {"num_classes", "embedding_dim"}


def _title(kind: type) -> str:
    name = kind.__name__.removesuffix("Loss")
    return TITLES.get(name, name)


TITLES = {
    "BinomialDeviance": "Binomial deviance",
    "GeneralizedLiftedStructure": "Generalized lifted structure",
    "IntraPairVariance": "Intra-pair variance",
    "LiftedStructure": "Lifted structure",
    "MultiSimilarity": "Multi-similarity",
    "NPairs": "N-pairs",
    "NTXent": "NT-Xent",
    "NormalizedSoftmax": "Normalized softmax",
    "ProxyAnchor": "Proxy-Anchor",
    "ProxyNCAPP": "ProxyNCA++",
    "ProxyRepulsion": "Proxy repulsion",
    "RAW": "RAW + VTHM",  # it mines by itself; without, it is multi-similarity
    "SNRContrastive": "SNR contrastive",
    "SubCenterArcFace": "Sub-center ArcFace",
    "TupletMargin": "Tuplet margin",
}
"""Names as tables spell them; a class that is not here is called by its name without ``Loss``."""
