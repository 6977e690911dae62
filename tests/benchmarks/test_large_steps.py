"""Steps of many classes and large batches: each row can be measured on a CPU, and the tables of the pages are made of rows."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from benchmarks import class_steps, large_batches

MACHINE = {"device": "NVIDIA H200", "torch": "2.11.0", "triton": "3.6.0"}


def options(**changes: Any) -> Any:
    return SimpleNamespace(**{"quick": False, "batch": 1024, **changes})


def test_both_updates_train_the_same_proxies():
    key = {"classes": 50, "proxies": "float32", "trunk": None, "pixels": None, "batch": 8}
    trainings = [class_steps.Training({**key, "update": update}, 4, "cpu") for update in ("step", "backward")]
    for training in trainings:
        assert training.value_error(chunk=7) < 1e-2  # the products here are not rounded to bfloat16
        for _ in range(3):
            training.step()
    assert torch.equal(*(training.loss.proxies for training in trainings))
    ordinary, fused = (training.held() for training in trainings)
    assert ordinary["gradients"] == ordinary["parameters"] == ordinary["optimizer"] == 50 * 4 * 4
    assert fused == {**ordinary, "gradients": 0}


def test_values_are_those_of_all_classes():
    key = {"classes": 50, "proxies": "bfloat16", "update": "step", "trunk": None, "pixels": None, "batch": 8}
    training = class_steps.Training(key, 4, "cpu")
    assert training.value_error(chunk=7) < 1e-5
    training.loss.scale = 2.0 * training.loss.scale
    training.loss.margin = 0.0
    assert training.value_error(chunk=7) < 1e-5


def test_the_table_of_classes():
    keys = class_steps.list_rows(options())
    memory = {"parameters": 9.5, "gradients": 0.0, "optimizer": 9.5, "peak": 20.0, "beyond": 1.0}
    rows: list[dict[str, Any]] = [
        {"key": key, "seconds": 0.2, "samples_per_s": 5120.0, "gib": memory, "value_error": 1e-6} for key in keys
    ]
    rows[-1] = {"key": keys[-1], "skipped": "memory", "why": "needs more than the limit of 139 GiB"}
    report = {"machine": MACHINE, "arguments": {"dim": 512, "optimizer": "SGD"}, "rows": rows}
    text = class_steps.describe(report)
    assert text.count("\n| ") == len(keys) + 1  # the header and the line below it, less the row that was skipped
    assert "Not measured: 1 M classes at 224 px (needs more than the limit of 139 GiB)." in text
    assert "| 10 M | ResNet-50, 112 px | bfloat16 | in the backward pass | 200 | 5,120 | 19.0 | 1.00 |" in text


@pytest.mark.parametrize("chunk", [None, 2])
def test_a_large_batch(chunk: int | None):
    key = {"trunk": "convnet", "loss": "ProxyAnchorLoss", "batch": 8, "chunk": chunk}
    step, images, labels = large_batches.make(key, 16, 4, "cpu")
    step([(images, labels)])
    assert step.meter.count == 1
    assert step.meter.first_bad() is None


def test_the_table_of_large_batches():
    keys = large_batches.list_rows(options())
    assert {"trunk": "resnet50", "loss": "MultiSimilarityLoss", "batch": 65_536, "chunk": 512} in keys
    assert len({str(key) for key in keys}) == len(keys)
    rows = [
        {"key": key, "seconds": 0.5, "images_per_s": 9000.0 if key["chunk"] else 12000.0, "peak_gib": 20.0}
        for key in keys
    ]
    arguments = {"size": 112, "dim": 512, "per_class": 4, "optimizer": "SGD"}
    text = large_batches.describe({"machine": MACHINE, "arguments": arguments, "precision": "bf16", "rows": rows})
    assert text.count("\n| ") == len(keys) + 2
    assert "| ResNet-50 | MultiSimilarityLoss | 65,536 | 512 | 0.5 | 9,000 | 0.75 | 20.0 |" in text
