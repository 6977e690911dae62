"""The embeddings of a test set by a model that is not trained here, or not any more: kept beside a run, with its reason."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from likewise.app.build import make_model, this_machine
from likewise.app.evaluation import Opening, parts_of
from likewise.files import atomic_write
from likewise.protocols import TEST_SET_FILE
from likewise.train import Run


def keep_test_set(place: Path, config: Mapping[str, Any], why: str) -> None:
    """Embed the test set with the model of a run, and keep it in the run; the opening is on its record, with its reason."""
    *_, part = parts_of(Run(place), dict(config), this_machine(), test=Opening(why))
    is_query = np.zeros(0, bool) if part.is_query is None else part.is_query.numpy()
    with atomic_write(place / TEST_SET_FILE) as file, file.open("wb") as opened:
        np.savez(opened, embeddings=part.embeddings.numpy(), labels=part.labels.numpy(), is_query=is_query)


def embed_untrained(place: Path, config: Mapping[str, Any], why: str) -> Path:
    """The file with the test set as the trunk embeds it before training, without the head that a training would learn."""
    if not (place / TEST_SET_FILE).exists():
        model = {**config["model"], "head": "none", "dim": None}
        config = {**config, "model": model}
        if not (place / "run.yaml").exists():
            Run.create(place, {"config": config})
        make_model(model).save(place / "model.safetensors")
        keep_test_set(place, config, why)
    return place / TEST_SET_FILE
