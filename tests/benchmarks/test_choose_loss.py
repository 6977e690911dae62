"""The benchmark behind docs/choose-a-loss.md: its data, its tables, and a smoke test."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from benchmarks import choose_loss
from benchmarks.choose_loss import Condition

ROOT = Path(__file__).parents[2]


def test_wrong_labels_are_other_classes():
    pixels = torch.arange(20 * 5).reshape(20, 5, 1, 1, 1)
    condition = Condition(noise=0.4, images=4, classes=10)
    images, labels = choose_loss.training_data(pixels, condition, seed=0)
    chosen = images.flatten() // 5
    assert (len(labels), len(chosen.unique())) == (40, 10)
    true = chosen.reshape(10, 4)[:, :1].expand(10, 4).flatten()
    assert torch.equal(true, chosen)  # images stay with their class; only labels change
    wrong = labels != torch.arange(10).repeat_interleave(4)
    assert 0.2 < wrong.double().mean() < 0.6
    assert labels.max() < 10
    _, clean = choose_loss.training_data(pixels, Condition(images=4, classes=10), seed=0)
    assert torch.equal(clean, torch.arange(10).repeat_interleave(4))


def test_the_page_has_the_tables_of_the_results():
    report = json.loads((ROOT / "benchmarks" / "results" / "choose-loss-cpu.json").read_text())
    page = (ROOT / "docs" / "choose-a-loss.md").read_text()
    for block in choose_loss.blocks(report).values():
        assert f"\n{block}\n" in page


def test_every_loss_trains(capsys: pytest.CaptureFixture[str]):
    choose_loss.smoke()
    assert capsys.readouterr().out.count("MAP@R") == len(choose_loss.LOSSES)
