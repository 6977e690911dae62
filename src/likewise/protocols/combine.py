"""Concatenate the test embeddings of the models of all folds, and evaluate them as one model."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from likewise.metrics import concatenate
from likewise.protocols.trial import Result
from likewise.train import RECALLS, Embedded, evaluate

TEST_SET_FILE = "test.npz"
"""The file of a run with its embeddings of the test set: ``embeddings``, ``labels``, ``is_query`` and ``cameras``."""


def concatenated(results: Iterable[Result], folder: Path, folds: int) -> list[Result]:
    """Evaluate the concatenated embeddings of all folds, for each method, setting and seed whose folds are all done.

    The reality check reports this result and the mean over folds ("separated"), which
    `likewise.protocols.summarize` computes.

    Args:
        results: results of final trials.
        folder: the folder of the study, which contains the runs.
        folds: the number of folds.

    Returns:
        Results whose label ``combination`` is ``"concatenated"``.  They have no validation metrics, because the validation
        classes differ between folds.

    Examples:
        >>> concatenated([], Path("."), 4)
        []
    """
    groups: dict[tuple[object, ...], list[Result]] = {}
    for result in results:
        if result.status == "done" and result.trial.stage == "final":
            labels = tuple(sorted((name, str(value)) for name, value in result.trial.labels.items()))
            groups.setdefault((result.trial.method, result.trial.seed, labels), []).append(result)
    return [_concatenate_folds(group, folder) for group in groups.values() if len(group) == folds]


def _concatenate_folds(group: Sequence[Result], folder: Path) -> Result:
    ordered = sorted(group, key=lambda result: result.trial.fold)
    stored = [np.load(folder / result.run / TEST_SET_FILE) for result in ordered]
    labels = torch.from_numpy(stored[0]["labels"])
    for result, each in zip(ordered, stored, strict=True):
        if not np.array_equal(each["labels"], stored[0]["labels"]):
            raise ValueError(f"all folds must have the same test set, but {result.run} has another one")
    joined = concatenate([torch.from_numpy(each["embeddings"]) for each in stored])
    is_query = torch.from_numpy(stored[0]["is_query"]) if len(stored[0]["is_query"]) else None
    first = ordered[0]
    ks = [int(name.removeprefix("R@")) for name in first.test if name.startswith("R@")]
    cameras = torch.from_numpy(stored[0]["cameras"]) if "cameras" in stored[0] else None
    metrics = evaluate(Embedded(joined, labels), is_query, ks=ks or RECALLS, cameras=cameras)
    trial = replace(first.trial, fold=0, labels={**first.trial.labels, "combination": "concatenated"})
    return replace(
        first,
        trial=trial,
        val={},
        test={name: metrics[name] for name in first.test},
        run=" ".join(result.run for result in ordered),
        seconds=sum(result.seconds for result in ordered),
        openings=sum(result.openings for result in ordered),
    )
