"""The contract of a miner, as a test class: add one row, inherit all of it."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from likewise.engines import map_rows
from likewise.formula import Cosine, Labels, Masks, PairBatch, Triplets
from likewise.losses import MarginLoss, MultiSimilarityLoss, TripletLoss
from likewise.miners import Miner, PairMiner, TripletMiner
from likewise.testing.batches import LABELS, make_batch
from likewise.testing.waiting import value_without_waiting

Matrix = list[list[float]]
Mask = list[list[bool]]


@dataclass(frozen=True)
class MinerCase:
    """One miner under test.

    Args:
        make: makes the miner.
        oracle: an independent implementation on plain lists, ``oracle(S, positive, negative)``: for a pair miner the
            sets of positive and of negative pairs, for a triplet miner the set of triplets.  ``None`` for a random
            miner, which must then only choose triplets of the batch.
        name: a name for the test report; the class's by default.

    Examples:
        >>> from likewise.miners import BatchHardMiner
        >>> MinerCase(BatchHardMiner).label
        'BatchHardMiner'
    """

    make: Callable[[], Miner]
    oracle: Callable[[Matrix, Mask, Mask], Any] | None = None
    name: str = ""

    @property
    def label(self) -> str:
        """The name in test reports."""
        return self.name or getattr(self.make, "__name__", "miner")


def _tuples(*indices: Tensor) -> set[tuple[int, ...]]:
    return set(zip(*(index.tolist() for index in indices), strict=True))


class MinerContract:
    """Subclass this in a test file with ``cases = [MinerCase(...), …]``; pytest does the rest.

    Examples:
        >>> class TestMyMiners(MinerContract):
        ...     cases = []
    """

    cases: ClassVar[Sequence[MinerCase]] = ()

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """One run of every test for each case."""
        if "case" in metafunc.fixturenames:
            metafunc.parametrize("case", self.cases, ids=[case.label for case in self.cases])

    @pytest.mark.parametrize("batch", LABELS)
    def test_equals_the_oracle(self, case: MinerCase, batch: str) -> None:
        """The same pairs or triplets as the independent implementation."""

        @settings(max_examples=10, deadline=None)
        @given(seed=st.integers(0, 2**31 - 1))
        def check(seed: int) -> None:
            embeddings, labels = make_batch(batch, seed=seed)
            self._check(case, embeddings, labels, None, None)

        check()

    def test_equals_the_oracle_with_references(self, case: MinerCase) -> None:
        """References from elsewhere, a memory say, are mined as well."""
        embeddings, labels = make_batch("balanced")
        references, reference_labels = make_batch("ragged", seed=3)
        self._check(case, embeddings, labels, references, reference_labels % 4)

    @staticmethod
    def _check(
        case: MinerCase, embeddings: Tensor, labels: Tensor, references: Tensor | None, reference_labels: Tensor | None
    ) -> None:
        miner = case.make()
        S = Cosine()(embeddings, references)
        positive, negative = Labels(labels, reference_labels).masks()
        if isinstance(miner, PairMiner):
            anchors, positives, negative_anchors, negatives = miner.pairs(
                embeddings, labels, references, reference_labels
            )
            found: Any = (_tuples(anchors, positives), _tuples(negative_anchors, negatives))
        else:
            assert isinstance(miner, TripletMiner)
            found = _tuples(*miner.triplets(embeddings, labels, references, reference_labels))
        if case.oracle is not None:
            assert found == case.oracle(S.tolist(), positive.tolist(), negative.tolist())
            return
        for anchor, positive_index, negative_index in found:
            assert positive[anchor, positive_index]
            assert negative[anchor, negative_index]

    def test_same_from_similarities(self, case: MinerCase) -> None:
        """``miner(S, relation)`` keeps what ``miner.pairs`` or ``miner.triplets`` names."""
        miner = case.make()
        embeddings, labels = make_batch("ragged")
        if isinstance(miner, PairMiner):
            anchors, positives, negative_anchors, negatives = miner.pairs(embeddings, labels)
            kept = miner(Cosine()(embeddings), Labels(labels))
            assert isinstance(kept, Masks)
            assert _tuples(*kept.positive.nonzero(as_tuple=True)) == _tuples(anchors, positives)
            assert _tuples(*kept.negative.nonzero(as_tuple=True)) == _tuples(negative_anchors, negatives)
        elif case.oracle is not None:
            assert isinstance(miner, TripletMiner)
            chosen = miner(Cosine()(embeddings), Labels(labels))
            assert _tuples(chosen.anchors, chosen.positives, chosen.negatives) == _tuples(
                *miner.triplets(embeddings, labels)
            )

    @pytest.mark.parametrize("batch", LABELS)
    @pytest.mark.parametrize("loss", [TripletLoss, MultiSimilarityLoss])
    def test_composes_with_losses(self, case: MinerCase, batch: str, loss: Callable[..., Any]) -> None:
        """A triplet loss takes the triplets, any other loss the pairs; the gradient is finite."""
        embeddings, labels = make_batch(batch)
        leaf = embeddings.float().requires_grad_()
        torch.manual_seed(0)
        value = loss(miner=case.make())(leaf, labels)
        value.backward()
        assert torch.isfinite(value)
        assert leaf.grad is not None
        assert torch.isfinite(leaf.grad).all()

    @pytest.mark.parametrize("loss", [TripletLoss, MarginLoss, MultiSimilarityLoss])
    def test_never_waits_for_the_device(self, case: MinerCase, loss: Callable[..., Any]) -> None:
        """Inside a loss it asks no tensor for a value, and none for a shape that depends on one."""
        embeddings, labels = make_batch("ragged")
        mined = loss(miner=case.make())
        value = value_without_waiting(mined, embeddings, labels)
        if case.oracle is not None:
            torch.testing.assert_close(value, mined(embeddings, labels).detach())
        assert loss(miner=case.make()).to("meta")(embeddings.to("meta"), labels.to("meta")).shape == ()

    def test_survives_copies(self, case: MinerCase) -> None:
        """``deepcopy`` and pickle give the same miner."""
        miner = case.make()
        for twin in (copy.deepcopy(miner), pickle.loads(pickle.dumps(miner))):
            assert repr(twin) == repr(miner)
            assert type(twin) is type(miner)

    def test_choices_carry_no_gradient(self, case: MinerCase) -> None:
        """Mining is a choice, not a function."""
        embeddings, labels = make_batch("balanced")
        miner = case.make()
        leaf = embeddings.requires_grad_()
        chosen = miner.pairs(leaf, labels) if isinstance(miner, PairMiner) else None
        if chosen is None:
            assert isinstance(miner, TripletMiner)
            relation = miner.choose(map_rows(PairBatch(Labels(labels), Cosine(), anchors=leaf)))
            assert isinstance(relation, Triplets)
            chosen = (relation.anchors, relation.positives, relation.negatives)  # type: ignore[assignment]
        assert chosen is not None
        assert not any(index.requires_grad for index in chosen)
