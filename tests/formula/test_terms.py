"""Terms: what per_anchor, per_pair and per_triplet write down, under every kind of choice."""

from __future__ import annotations

import dataclasses

import pytest
import torch

from likewise.formula import (
    NEGATIVES,
    POSITIVES,
    Choice,
    Cosine,
    Folded,
    Formula,
    Labels,
    PairBatch,
    Rank,
    TripletTerm,
    largest,
    per_triplet,
    relu,
    s,
    s_p,
    smallest,
    walk,
)
from likewise.miners import BatchHardMiner, DistanceWeightedMiner, EasyPositiveMiner, RandomMiner, SemiHardMiner

HINGE = relu(s - s_p + 0.1)


def folds_each_positive(formula: Formula) -> bool:
    return any(isinstance(node, Folded) and node.over.binds_positive for node in walk(formula))


def test_all_triplets_are_two_folds_and_their_number_is_a_product():
    term = per_triplet(HINGE)
    assert repr(term.total) == "sum[each positive](sum[negatives](relu((s - s_p) + 0.1)))"
    assert repr(term.units) == "count[positives](1.0) * count[negatives](1.0)"
    assert repr(term.nonzero) == "sum[each positive](count[negatives](0.0 < relu((s - s_p) + 0.1)))"


def test_one_positive_and_one_negative_per_anchor_need_no_fold_per_positive():
    hardest = Choice(smallest(s, POSITIVES), largest(s, NEGATIVES))
    for choice in (hardest, BatchHardMiner().choice(Cosine()), EasyPositiveMiner().choice(Cosine())):
        term = per_triplet(HINGE, choice=choice)
        assert not any(folds_each_positive(formula) for formula in (term.total, term.units, term.nonzero))
    assert repr(per_triplet(HINGE, choice=hardest).total) == "relu((max[negatives](s) - min[positives](s)) + 0.1)"


def test_a_value_of_the_positive_or_of_the_negative_needs_no_fold_per_positive():
    """The pull of a margin loss is the same for all negatives, and its push for all positives."""
    term = per_triplet(relu(1.0 - s_p), relu(s - 0.5))
    assert not any(folds_each_positive(formula) for formula in (term.total, term.units, term.nonzero))


@pytest.mark.parametrize("choice", [Choice(), SemiHardMiner().choice(Cosine()), SemiHardMiner(0.2).choice(Cosine())])
def test_every_formula_of_a_term_is_one_number_per_anchor(choice: Choice):
    term = per_triplet(HINGE, relu(1.0 - s_p), relu(s - 0.5), choice=choice)
    assert isinstance(term, TripletTerm)
    assert len(term.values) == 3
    for formula in (term.total, term.units, term.nonzero):
        assert formula.rank <= Rank.ANCHOR


def test_another_choice_of_the_same_values():
    term, rule = per_triplet(HINGE), BatchHardMiner().choice(Cosine())
    assert term.chosen_by(rule).values == term.values
    assert repr(term.chosen_by(rule).total) == repr(per_triplet(HINGE, choice=rule).total) != repr(term.total)


def test_a_miner_that_draws_has_no_rule():
    assert DistanceWeightedMiner().choice(Cosine()) is None
    assert RandomMiner().choice(Cosine()) is None


def test_the_inputs_of_a_loss_do_not_change():
    batch = PairBatch(Labels(torch.tensor([0, 0, 1])), Cosine(), anchors=torch.eye(3))
    with pytest.raises(dataclasses.FrozenInstanceError):
        batch.anchors = torch.zeros(3, 3)
    other = Labels(torch.tensor([0, 1, 1]))
    assert batch.under(other).relation is other
    assert batch.under(other).labels is batch.labels  # a miner's relation has none
    assert batch.materialize().matrix is not None
    assert batch.prepare().factors is not None
    assert batch.matrix is batch.factors is None
    assert batch.materialize().materialize().matrix is not None
    replaced = batch.replace(**{field.name: getattr(batch, field.name) for field in dataclasses.fields(batch)})
    read = {"similarity": Cosine(), "anchors": torch.zeros(3, 3)}  # a new batch compares their dtypes
    for field in dataclasses.fields(batch):  # no field is forgotten
        assert getattr(replaced, field.name) is getattr(batch, field.name)
        marker = read.get(field.name, object())
        assert getattr(batch.replace(**{field.name: marker}), field.name) is marker


def test_rows_of_a_batch():
    batch = PairBatch(Labels(torch.tensor([0, 0, 1])), Cosine(), anchors=torch.randn(3, 2))
    some = batch.rows(slice(1, 3))
    assert some.shape == (2, 3)
    torch.testing.assert_close(some.similarities(), batch.similarities()[1:])
    for ours, theirs in zip(some.relation.masks(), batch.relation.masks(), strict=True):
        assert torch.equal(ours, theirs[1:])
