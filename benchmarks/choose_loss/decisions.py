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
        name = self.loss if self.metric == "MAP@R" else f"{self.loss}, {self.metric}"
        name = name if self.other == BASELINE else f"{name}, against {self.other}"
        return f"{name}: {show_interval(difference) if difference else 'not measured'}"


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
        (Evidence("SupCon", Condition(classes=32)), Evidence("Multi-similarity", Condition(classes=32))),
        "classes",
    ),
    Decision(
        "several hundred classes (719)",
        "`MultiSimilarityLoss`, `SupConLoss`, `SmoothAPLoss`",
        (Evidence("Multi-similarity", ALL_CLASSES), Evidence("SupCon", ALL_CLASSES)),
        "classes",
    ),
    Decision(
        "batches of 512, few steps",
        "`SupConLoss`; smaller batches if possible",
        (Evidence("SupCon", Condition(batch=512)), Evidence("ArcFace", Condition(batch=512))),
        "batch",
    ),
    Decision(
        "verification",
        "as for retrieval; check the error rate that you need",
        (Evidence("Multi-similarity", BASE, "TAR@0.001"), Evidence("Smooth-AP", BASE, "EER")),
        "verification",
    ),
    Decision(
        "known pairs instead of classes",
        "`SupConLoss` (here it is NT-Xent) or `ContrastiveLoss`",
        (Evidence("SupCon", Condition(pairs=True)), Evidence("Multi-similarity", Condition(pairs=True))),
        "pairs",
    ),
    Decision(
        "classes in a hierarchy, graded relations",
        "`HAPLoss`, or a loss for the finest classes",
        (
            Evidence("H-AP loss", ALL_CLASSES, "H-AP"),
            Evidence("H-AP loss", ALL_CLASSES, "H-AP", other="Multi-similarity"),
            Evidence("CoSENT", ALL_CLASSES, "H-AP"),
        ),
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
