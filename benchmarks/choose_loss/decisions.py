"""The decision table of docs/choose-a-loss.md: what to start with, and the numbers behind it."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.choose_loss.design import ALL_CLASSES, BASE, BASELINE, WRONG, Condition
from benchmarks.choose_loss.tables import read_birds, read_scores, show_interval, subtract
from benchmarks.choose_loss.training import Row
from benchmarks.harness import table


@dataclass(frozen=True)
class Evidence:
    """A difference between two losses.

    Args:
        loss: the one.
        condition: where both were trained on glyphs; None: birds.
        metric: what is compared.
        other: the other loss.
    """

    loss: str
    condition: Condition | None
    metric: str = "MAP@R"
    other: str = BASELINE

    def show(self, rows: list[Row]) -> str:
        """Return the name of the loss, the mean difference over seeds and its 95% interval."""
        if self.condition is None:
            birds = read_birds()
            ours, theirs = birds[self.loss], birds[self.other]
        else:
            ours, theirs = (read_scores(rows, name, self.condition, self.metric) for name in (self.loss, self.other))
        difference = subtract(ours, theirs)
        against = "" if self.other == BASELINE else f" against {self.other}"
        return f"{self.loss}{against}: {show_interval(difference) if difference else 'not measured'}"


@dataclass(frozen=True)
class Decision:
    """A row of the table: a situation, what to start with, the evidence, and the section that has the details."""

    situation: str
    choice: str
    evidence: tuple[Evidence, ...]
    section: str


DECISIONS = (
    Decision(
        "pretrained network, tens of images per class",
        "`SoftTripleLoss`, `CosFaceLoss`, `ArcFaceLoss`",
        (Evidence("SoftTriple", None), Evidence("Multi-similarity", None)),
        "pretrained",
    ),
    Decision(
        "network from scratch, short training",
        "`MultiSimilarityLoss`, `TripletLoss` with `SemiHardMiner`",
        (Evidence("Multi-similarity", BASE), Evidence("ArcFace", BASE)),
        "scratch",
    ),
    Decision(
        "noisy labels",
        "`SmoothAPLoss`, then `ContrastiveLoss`",
        (Evidence("Smooth-AP", WRONG), Evidence("Multi-similarity", WRONG)),
        "noise",
    ),
    Decision(
        "two images per class",
        "`TripletLoss` with `SemiHardMiner`",
        (Evidence("Triplet, semi-hard", Condition(images=2)), Evidence("Smooth-AP", Condition(images=2))),
        "images",
    ),
    Decision(
        "few classes (32)",
        "`ContrastiveLoss`",
        (Evidence("Smooth-AP", Condition(classes=32)), Evidence("Multi-similarity", Condition(classes=32))),
        "classes",
    ),
    Decision(
        "more classes (719)",
        "`MultiSimilarityLoss`, `SupConLoss`",
        (Evidence("Multi-similarity", ALL_CLASSES), Evidence("SupCon", ALL_CLASSES)),
        "classes",
    ),
    Decision(
        "large batches (512)",
        "the loss of the other rows",
        (Evidence("SupCon", Condition(batch=512)), Evidence("ArcFace", Condition(batch=512))),
        "batch",
    ),
    Decision(
        "verification, few false accepts (TAR at FAR 0.1%)",
        "as for retrieval: `MultiSimilarityLoss`",
        (Evidence("Multi-similarity", BASE, "TAR@0.001"), Evidence("SupCon", BASE, "TAR@0.001")),
        "verification",
    ),
    Decision(
        "known pairs instead of classes",
        "`SupConLoss`, which is NT-Xent here, or `ContrastiveLoss`",
        (Evidence("SupCon", Condition(pairs=True)), Evidence("Multi-similarity", Condition(pairs=True))),
        "pairs",
    ),
    Decision(
        "classes in a hierarchy (H-AP)",
        "`HAPLoss`",
        (Evidence("H-AP loss", ALL_CLASSES, "H-AP"), Evidence("CoSENT", ALL_CLASSES, "H-AP")),
        "hierarchy",
    ),
)


def make_decision_table(rows: list[Row]) -> str:
    """Return the table."""
    lines = [
        [each.situation, each.choice, "; ".join(one.show(rows) for one in each.evidence), f"[details](#{each.section})"]
        for each in DECISIONS
    ]
    return table(["your situation", "start with", "points against contrastive (95%)", ""], lines, words=(0, 1, 2, 3))
