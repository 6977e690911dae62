"""The pages for users of other libraries: complete, and equal where they say so."""

from __future__ import annotations

import importlib
import inspect
import re
from pathlib import Path
from typing import Any

import pytest
import torch

DOCS = Path(__file__).parents[2] / "docs"
PAGE = DOCS / "from-pytorch-metric-learning.md"


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


def named(page: Path) -> set[str]:
    """All words in code between single backticks on a page."""
    prose = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    return set(re.findall(r"\w+", " ".join(re.findall(r"`[^`]+`", prose))))


def public_classes(module: Any) -> set[str]:
    return {name for name, value in vars(module).items() if inspect.isclass(value) and not name.startswith("_")}


ROOMS = ("losses", "miners", "distances", "reducers", "regularizers", "samplers", "testers", "trainers", "datasets")
TOOLS = ("accuracy_calculator", "inference", "distributed", "logging_presets")


@pytest.mark.parametrize("room", [*ROOMS, *(f"utils.{tool}" for tool in TOOLS)])
def test_every_class_of_pytorch_metric_learning_is_on_the_page(room: str):
    pytest.importorskip("pytorch_metric_learning")
    try:
        module = importlib.import_module(f"pytorch_metric_learning.{room}")
    except ImportError as error:  # a package that it needs there
        pytest.skip(str(error))
    classes = public_classes(module)
    if room.startswith("utils."):
        classes = {name for name in classes if getattr(module, name).__module__ == module.__name__} - {"EmptyContainer"}
    assert classes - named(PAGE) == set()


def test_the_two_scripts_of_the_page_give_the_same_numbers():
    pytest.importorskip("pytorch_metric_learning")
    pytest.importorskip("faiss")  # its accuracy calculator needs it
    data, ours = blocks(PAGE, "python")
    (theirs,) = blocks(PAGE, "py")
    results = []
    for script in (theirs, ours):
        namespace: dict[str, Any] = {}
        exec(compile(data, PAGE.name, "exec"), namespace)
        exec(compile(script, PAGE.name, "exec"), namespace)
        results.append((namespace["values"], namespace["scores"]))
    assert results[0][0] == pytest.approx(results[1][0], rel=1e-4)
    assert results[0][1] == pytest.approx(results[1][1], abs=1e-3)
    assert results[1][0][-1] < results[1][0][0]


def test_names_of_likewise_on_the_page_exist():
    """Classes in the second column: those that are capitalized and called."""
    import likewise

    rooms = [getattr(likewise, name) for name in ("losses", "miners", "formula", "data", "metrics", "search", "train")]
    rows = re.findall(r"^\| `[^|]*\| ([^|]*) \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    names = {
        name for row in rows for code in re.findall(r"`([^`]+)`", row) for name in re.findall(r"([A-Z]\w+)\(", code)
    }
    assert len(names) > 40
    for name in names - {"DataLoader"}:
        assert any(hasattr(room, name) for room in rooms), name


@pytest.mark.slow  # to import them
@pytest.mark.parametrize(
    ("package", "module", "page"),
    [
        ("metric_learn", "metric_learn", "from-metric-learn.md"),
        ("sentence_transformers", "sentence_transformers.sentence_transformer.losses", "from-sentence-transformers.md"),
        ("oml", "oml.losses", "from-open-metric-learning.md"),
        ("oml", "oml.miners", "from-open-metric-learning.md"),
        ("oml", "oml.samplers", "from-open-metric-learning.md"),
    ],
)
def test_every_class_of_other_libraries_is_on_the_page(package: str, module: str, page: str):
    pytest.importorskip(package)
    try:
        names = public_classes(importlib.import_module(module))
    except ImportError as error:
        pytest.skip(str(error))
    assert names - named(DOCS / page) == set()


@pytest.mark.slow  # to import it
def test_losses_of_sentence_transformers():
    """Those that the page says are equal."""
    pytest.importorskip("sentence_transformers")
    from sentence_transformers.sentence_transformer import losses as theirs

    from likewise.formula import Euclidean
    from likewise.losses import AnglELoss, CoSENTLoss, NTXentLoss, TripletLoss
    from likewise.miners import BatchHardMiner, SemiHardMiner

    labels = torch.arange(64) // 4
    x = torch.randn(64, 8) + 2 * torch.randn(16, 8)[labels]
    raw: dict[str, Any] = {"similarity": Euclidean(normalize=False)}
    hard: dict[str, Any] = {**raw, "miner": BatchHardMiner(), "reduction": "mean"}
    semi: dict[str, Any] = {**raw, "miner": SemiHardMiner(), "reduction": "mean"}
    labeled = [
        (theirs.BatchAllTripletLoss(None, margin=3.0).batch_all_triplet_loss, TripletLoss(3.0, **raw)),
        (theirs.BatchHardTripletLoss(None, margin=3.0).batch_hard_triplet_loss, TripletLoss(3.0, **hard)),
        (
            theirs.BatchHardSoftMarginTripletLoss(None).batch_hard_triplet_soft_margin_loss,
            TripletLoss(0.0, soft=True, **hard),
        ),
        (theirs.BatchSemiHardTripletLoss(None, margin=3.0).batch_semi_hard_triplet_loss, TripletLoss(3.0, **semi)),
    ]
    for their_loss, our_loss in labeled:
        assert float(their_loss(labels, x)) == pytest.approx(float(our_loss(x, labels)), rel=1e-4)

    y, scores = torch.randn(64, 8), torch.rand(64)
    paired = [
        (theirs.MultipleNegativesRankingLoss(None), NTXentLoss(1 / 20)(x, references=y, relation="paired")),
        (theirs.CoSENTLoss(None), CoSENTLoss()(x, scores, y)),
        (theirs.AnglELoss(None), AnglELoss()(x, scores, y)),
    ]
    for their_module, value in paired:
        assert float(their_module.compute_loss_from_embeddings([x, y], scores)) == pytest.approx(float(value), rel=1e-4)
