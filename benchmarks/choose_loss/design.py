"""The design: losses, questions, conditions, learning rates.

A small convolutional network is trained on training characters and measured on test characters, which no training has
seen.  The base condition has 200 classes of 16 images, correct labels, batches of 128, and 38,400 images seen; a question
changes one of these.  The seed determines the classes, the wrong labels, the initial weights and the batches, so that
two losses with the same seed are a pair.  Losses keep their default settings (ArcFace: scale 32).

Learning rates are chosen by one training on validation characters.  In the base condition every rate of the grid is
tried.  For smaller batches the chosen rate of the network and a third of it are tried, for larger batches the chosen
rate and three times it, with the same proxy rate.  Losses for a hierarchy have two rates, tried with all classes.  All
other conditions keep the rates of the base condition.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from likewise import losses, miners

DIM = 64
RATES, PROXY_RATES = (3e-3, 1e-2, 3e-2, 1e-1), (1e-3, 1e-2)
GRADED_RATES, GRADED_PROXY_RATES = (1e-2, 3e-2), (1e-2,)
SEARCH_SEED = 100
BASELINE = "Contrastive"


class CoSENTOnAllPairs(nn.Module):
    """CoSENT on every pair of a batch; the score of a pair is the number of levels on which it agrees."""

    def __init__(self) -> None:
        super().__init__()
        self.loss = losses.CoSENTLoss()

    def forward(self, embeddings: Tensor, levels: Tensor) -> Tensor:
        """Compute the loss from levels, ``(n, L)``."""
        one, other = torch.triu_indices(len(embeddings), len(embeddings), offset=1)
        scores = (levels[one] == levels[other]).sum(dim=1)
        return self.loss(embeddings[one], scores, embeddings[other])


Make = Callable[[Tensor], nn.Module]
"""Makes a loss from the levels of each class, ``(classes, L)``."""

PAIRWISE: dict[str, Make] = {
    "Contrastive": lambda levels: losses.ContrastiveLoss(),
    "Triplet, semi-hard": lambda levels: losses.TripletLoss(miner=miners.SemiHardMiner()),
    "Multi-similarity": lambda levels: losses.MultiSimilarityLoss(),
    "SupCon": lambda levels: losses.SupConLoss(),
    "Smooth-AP": lambda levels: losses.SmoothAPLoss(),
}
WITH_PROXIES: dict[str, Make] = {
    "Proxy-Anchor": lambda levels: losses.ProxyAnchorLoss(len(levels), DIM),
    "ArcFace": lambda levels: losses.ArcFaceLoss(len(levels), DIM, scale=32.0),
}
GRADED: dict[str, Make] = {
    "H-AP loss": lambda levels: losses.HAPLoss(),
    "CoSENT": lambda levels: CoSENTOnAllPairs(),
    "CSL": lambda levels: losses.CSLLoss(len(levels), DIM, levels),
}
FOR_CLASSES = PAIRWISE | WITH_PROXIES
ALL = FOR_CLASSES | GRADED
HAVE_PROXIES = (*WITH_PROXIES, "CSL")


@dataclass(frozen=True)
class Condition:
    """The training data and the batches.

    Args:
        noise: the fraction of training images whose label is replaced by another class.
        images: images per class.
        classes: training classes.
        batch: images per batch, four per class; two if there are no more.
        seen: images per training.
        pairs: whether only pairs of images of one class are known, and not their class.
    """

    noise: float = 0.0
    images: int = 16
    classes: int = 200
    batch: int = 128
    seen: int = 300 * 128
    pairs: bool = False

    @property
    def per_class(self) -> int:
        """Images per class of a batch."""
        return 2 if self.pairs else min(4, self.images)


BASE = Condition()
ALL_CLASSES = Condition(classes=719)
WRONG = Condition(noise=0.4)


@dataclass(frozen=True)
class Question:
    """Some losses in some conditions.

    Args:
        conditions: what is varied, by the head of a column.
        losses: the names of the losses.
        metrics: the metrics that answer the question.
        seeds: runs of each loss in each condition.
    """

    conditions: dict[str, Condition]
    losses: tuple[str, ...] = tuple(FOR_CLASSES)
    metrics: tuple[str, ...] = ("MAP@R",)
    seeds: int = 5


KINDS = ("Contrastive", "Multi-similarity", "SupCon", "Smooth-AP", "ArcFace")
FEW = ("Contrastive", "Multi-similarity", "Smooth-AP", "ArcFace")
QUESTIONS: dict[str, Question] = {
    "hierarchy": Question({"719 classes": ALL_CLASSES}, (*FEW, *GRADED), ("H-AP", "NDCG@100", "MAP@R")),
    "batch": Question(
        {"64 images": Condition(batch=64), "128 images": BASE, "512 images": Condition(batch=512)},
        ("Contrastive", "SupCon", "ArcFace"),
    ),
    "base": Question({"base": BASE}, metrics=("MAP@R", "R@1", "EER", "TAR@0.001")),
    "classes": Question({"32 classes": Condition(classes=32), "200 classes": BASE, "719 classes": ALL_CLASSES}, KINDS),
    "verification": Question({"0%": BASE, "40%": WRONG}, metrics=("EER", "TAR@0.001")),
    "pairs": Question({"classes": BASE, "pairs": Condition(pairs=True)}, tuple(PAIRWISE)),
    "images": Question({"2 images": Condition(images=2), "16 images": BASE}),
    "noise": Question({"0% wrong": BASE, "20% wrong": Condition(noise=0.2), "40% wrong": WRONG}),
}


CHECKED = ("ArcFace", ALL_CLASSES)
"""Is a low result due to the rates?  All rates of the grid are tried here too; nothing is chosen by them."""


def tuned_at(name: str, condition: Condition) -> Condition:
    """Return the condition in which the learning rates of a loss are chosen."""
    return ALL_CLASSES if name in GRADED else Condition(batch=condition.batch)


def metrics_of(name: str, condition: Condition) -> set[str]:
    """Return the metrics that some question asks of a loss in a condition; MAP@R always."""
    asked = [each for each in QUESTIONS.values() if name in each.losses and condition in each.conditions.values()]
    return {"MAP@R", *(metric for each in asked for metric in each.metrics)}


def rates_to_try(name: str, condition: Condition, base: tuple[float, float] | None) -> list[tuple[float, float]]:
    """Learning rates of the network and of the proxies (zero without proxies).

    Args:
        name: the loss.
        condition: where rates are chosen.
        base: the rates that were chosen in the base condition; without them the whole grid is tried.
    """
    if name in GRADED:
        return list(itertools.product(GRADED_RATES, GRADED_PROXY_RATES if name in HAVE_PROXIES else (0.0,)))
    if condition == BASE or base is None:
        return list(itertools.product(RATES, PROXY_RATES if name in HAVE_PROXIES else (0.0,)))
    other = 1 / 3 if condition.batch < BASE.batch else 3.0
    return [(base[0], base[1]), (round(other * base[0], 6), base[1])]
