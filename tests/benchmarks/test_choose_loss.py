"""The benchmark behind docs/choose-a-loss.md: its data, its tables, and a smoke test."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from benchmarks.choose_loss import design, measure, page, tables, training
from benchmarks.choose_loss.design import BASE, QUESTIONS, Condition
from benchmarks.choose_loss.training import Split
from likewise.data.glyphs import Glyphs

ROOT = Path(__file__).parents[2]
SPLIT = Split(torch.arange(20 * 5).reshape(20, 5, 1, 1, 1), torch.arange(20)[:, None] // torch.tensor([[2, 10]]))


def read_report() -> dict[str, Any]:
    return json.loads((ROOT / "benchmarks" / "results" / "choose-loss-cpu.json").read_text())


def test_wrong_labels_are_other_classes():
    condition = Condition(noise=0.4, images=4, classes=10)
    images, labels, _ = training.make_training_data(SPLIT, condition, seed=0)
    chosen = images.flatten() // 5
    assert (len(labels), len(chosen.unique())) == (40, 10)
    true = chosen.reshape(10, 4)[:, :1].expand(10, 4).flatten()
    assert torch.equal(true, chosen)  # images stay with their class; only labels change
    wrong = labels != torch.arange(10).repeat_interleave(4)
    assert 0.2 < wrong.double().mean() < 0.6
    assert labels.max() < 10
    _, clean, _ = training.make_training_data(SPLIT, Condition(images=4, classes=10), seed=0)
    assert torch.equal(clean, torch.arange(10).repeat_interleave(4))


def test_pairs_are_two_images_of_one_class_and_hide_the_class():
    images, labels, _ = training.make_training_data(SPLIT, Condition(images=4, classes=10, pairs=True), seed=0)
    assert torch.equal(labels, torch.arange(20).repeat_interleave(2))
    assert len(images.unique()) == 40
    classes, numbers = images.flatten().reshape(20, 2) // 5, images.flatten().reshape(20, 2) % 5
    assert torch.equal(classes[:, 0], classes[:, 1])
    assert len(numbers.sort(dim=1).values.unique(dim=0)) > 2  # not the same numbers in every class


def test_levels_are_those_of_the_chosen_classes():
    images, labels, levels = training.make_training_data(SPLIT, Condition(images=4, classes=10), seed=0)
    assert torch.equal(levels[:, 0], torch.arange(10))
    assert torch.equal(levels[labels][:, 1:], SPLIT.groups[images.flatten() // 5])


def test_a_base_letter_has_no_accents():
    groups = training.group_characters(["e", "é", "ê", "E", "α", "ά"], [0, 0, 0, 0, 1, 1])
    assert groups.tolist() == [[0, 0], [0, 0], [0, 0], [1, 0], [2, 1], [2, 1]]


def test_the_training_characters_have_as_many_base_letters_as_the_page_says():
    glyphs = Glyphs("train", images_per_class=1)
    bases = training.group_characters(list(glyphs.class_names), glyphs.categories.tolist())[:, 0].bincount()
    assert (len(bases), int(bases[bases > 1].sum())) == (522, 262)


def test_rates_are_chosen_on_validation_characters_of_the_same_batch_size():
    rows = [
        {
            "loss": "ArcFace",
            "split": split,
            **vars(Condition(batch=batch)),
            "rate": rate,
            "proxy_rate": 0.01,
            "MAP@R": score,
        }
        for split, batch, rate, score in (
            ("val", 128, 0.01, 0.5),
            ("val", 128, 0.03, 0.4),
            ("test", 128, 0.03, 0.9),
            ("val", 32, 0.003, 0.7),
        )
    ]
    assert measure.choose_rates(rows, "ArcFace", Condition(noise=0.4)) == (0.01, 0.01)
    assert measure.choose_rates(rows, "ArcFace", Condition(batch=32)) == (0.003, 0.01)
    assert measure.choose_rates(rows, "ArcFace", Condition(batch=512)) is None
    assert design.rates_to_try("ArcFace", Condition(batch=64), (0.03, 0.01)) == [(0.03, 0.01), (0.01, 0.01)]
    assert design.rates_to_try("ArcFace", Condition(batch=512), (0.03, 0.01)) == [(0.03, 0.01), (0.09, 0.01)]


def test_a_difference_needs_three_common_seeds_and_an_interval_without_zero():
    ours, theirs = {0: 3.0, 1: 4.0, 2: 5.1}, {0: 1.0, 1: 2.0, 2: 3.0, 3: 9.0}
    difference = tables.subtract(ours, theirs)
    assert difference is not None
    assert difference.count == 3
    assert (tables.judge(difference), tables.judge(difference, "EER")) == ("better", "worse")
    assert tables.subtract({0: 1.0, 1: 2.0}, theirs) is None
    unclear = tables.subtract({0: 1.0, 1: 3.0, 2: 2.0}, theirs)
    assert unclear is not None
    assert tables.show_interval(unclear).startswith("not distinguishable")
    assert tables.show_cell(ours, theirs, "MAP@R") == "**4.0** (+2.0 ± 0.1)"


def test_equal_error_rate_from_counts():
    error, rate = tables.compute_error({"positive": [0, 1, 3], "negative": [3, 1, 0]}, 0.1)
    assert (error, rate) == (0.125, 0.75)  # the line from (0, 0.75) to (0.25, 1) crosses FAR = 1 − TAR halfway


def test_every_question_is_answered_by_at_least_three_seeds():
    rows = measure.all_rows(read_report())
    for question in QUESTIONS.values():
        for name in question.losses:
            for condition in question.conditions.values():
                for metric in question.metrics:
                    assert len(tables.read_scores(rows, name, condition, metric)) >= tables.FEWEST
    assert {row["split"] for row in rows if row["seed"] == design.SEARCH_SEED} == {"val"}


def test_the_page_has_the_tables_of_the_results():
    text = (ROOT / "docs" / "choose-a-loss.md").read_text()
    for block in page.make_blocks(read_report()).values():
        assert f"\n{block}\n" in text


def test_every_loss_trains(capsys: pytest.CaptureFixture[str]):
    measure.smoke()
    assert capsys.readouterr().out.count("MAP@R") == len(design.ALL) + len(design.PAIRWISE)
    assert BASE.per_class == 4
