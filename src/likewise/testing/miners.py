"""The contract of a miner as a test class."""

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
from likewise.testing.loops import loop_over
from likewise.testing.synchronization import evaluate_without_synchronization

Matrix = list[list[float]]
Mask = list[list[bool]]


@dataclass(frozen=True)
class MinerCase:
    """One miner under test.

    Args:
        make: creates the miner.
        oracle: an independent implementation on plain lists, ``oracle(S, positive, negative)``; it returns the sets of
            positive and of negative pairs for a pair miner, the set of triplets for a triplet miner.  ``None`` for a
            random miner, whose triplets must only be valid.
        name: the name in test reports; by default the name of the class.

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
    """Tests for miners: subclass it in a test file with ``cases = [MinerCase(...), …]``, and pytest collects the tests.

    Examples:
        >>> class TestMyMiners(MinerContract):
        ...     cases = []
    """

    cases: ClassVar[Sequence[MinerCase]] = ()

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Run every test once per case."""
        if "case" in metafunc.fixturenames:
            metafunc.parametrize("case", self.cases, ids=[case.label for case in self.cases])

    @loop_over("batch", LABELS)
    def test_equals_the_oracle(self, case: MinerCase, batch: str) -> None:
        """The miner selects the same pairs or triplets as the oracle."""

        @settings(max_examples=10, deadline=None)
        @given(seed=st.integers(0, 2**31 - 1))
        def check(seed: int) -> None:
            embeddings, labels = make_batch(batch, seed=seed)
            self._check(case, embeddings, labels, None, None)

        check()

    def test_equals_the_oracle_with_references(self, case: MinerCase) -> None:
        """The miner also selects among separate references, such as a memory."""
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
            selection: Any = (_tuples(anchors, positives), _tuples(negative_anchors, negatives))
        else:
            assert isinstance(miner, TripletMiner)
            selection = _tuples(*miner.triplets(embeddings, labels, references, reference_labels))
        if case.oracle is not None:
            assert selection == case.oracle(S.tolist(), positive.tolist(), negative.tolist())
            return
        for anchor, positive_index, negative_index in selection:
            assert positive[anchor, positive_index]
            assert negative[anchor, negative_index]

    def test_same_from_similarities(self, case: MinerCase) -> None:
        """``miner(S, relation)`` selects the same pairs or triplets as ``miner.pairs`` or ``miner.triplets``."""
        miner = case.make()
        embeddings, labels = make_batch("ragged")
        if isinstance(miner, PairMiner):
            anchors, positives, negative_anchors, negatives = miner.pairs(embeddings, labels)
            masks = miner(Cosine()(embeddings), Labels(labels))
            assert isinstance(masks, Masks)
            assert _tuples(*masks.positive.nonzero(as_tuple=True)) == _tuples(anchors, positives)
            assert _tuples(*masks.negative.nonzero(as_tuple=True)) == _tuples(negative_anchors, negatives)
        elif case.oracle is not None:
            assert isinstance(miner, TripletMiner)
            triplets = miner(Cosine()(embeddings), Labels(labels))
            assert _tuples(triplets.anchors, triplets.positives, triplets.negatives) == _tuples(
                *miner.triplets(embeddings, labels)
            )

    @loop_over("batch", LABELS)
    def test_counts_what_it_keeps(self, case: MinerCase, batch: str) -> None:
        """``miner.count`` is the number of distinct pairs, and of triplets: those chosen, or those that the pairs form."""
        embeddings, labels = make_batch(batch)
        torch.manual_seed(0)
        counts, miner = case.make().count(embeddings, labels), case.make()
        torch.manual_seed(0)
        if isinstance(miner, PairMiner):
            anchors, positives, negative_anchors, negatives = miner.pairs(embeddings, labels)
            triplets = int((anchors[:, None] == negative_anchors).sum())
        else:
            assert isinstance(miner, TripletMiner)
            anchors, positives, negatives = miner.triplets(embeddings, labels)
            negative_anchors, triplets = anchors, len(anchors)
        pairs = len(_tuples(anchors, positives)), len(_tuples(negative_anchors, negatives))
        assert counts == (*pairs, triplets)

    @loop_over("batch", LABELS)
    @loop_over("loss", [TripletLoss, MultiSimilarityLoss])
    def test_composes_with_losses(self, case: MinerCase, batch: str, loss: Callable[..., Any]) -> None:
        """A triplet loss uses the triplets, any other loss the pairs; the gradient is finite."""
        embeddings, labels = make_batch(batch)
        leaf = embeddings.float().requires_grad_()
        torch.manual_seed(0)
        value = loss(miner=case.make())(leaf, labels)
        value.backward()
        assert torch.isfinite(value)
        assert leaf.grad is not None
        assert torch.isfinite(leaf.grad).all()

    @loop_over("batch", LABELS)
    @loop_over("loss", [TripletLoss, MarginLoss])
    def test_choice_equals_the_triplets(self, case: MinerCase, batch: str, loss: Callable[..., Any]) -> None:
        """A triplet loss is the same, value and gradient, on the miner's formulas and on the triplets that it names."""
        miner = case.make()
        if not isinstance(miner, TripletMiner) or miner.choice(Cosine()) is None:
            return
        embeddings, labels = make_batch(batch, seed=1)
        named = Triplets(*miner.triplets(embeddings, labels, similarity=loss().similarity))
        for backend in ("dense", "chunked"):
            results = []
            for options in ({"miner": miner}, {}):
                leaf = embeddings.clone().requires_grad_()
                call = {"labels": labels} if options else {"relation": named}
                value = loss(backend=backend, **options)(leaf, **call)
                results.append((value.detach(), *torch.autograd.grad(value, leaf)))
            torch.testing.assert_close(*results, rtol=1e-9, atol=1e-9)

    @loop_over("loss", [TripletLoss, MarginLoss, MultiSimilarityLoss])
    def test_does_not_synchronize(self, case: MinerCase, loss: Callable[..., Any]) -> None:
        """Inside a loss the miner reads no value of a tensor and no shape that depends on values."""
        embeddings, labels = make_batch("ragged")
        mining_loss = loss(miner=case.make())
        value = evaluate_without_synchronization(mining_loss, embeddings, labels)
        if case.oracle is not None:
            torch.testing.assert_close(value, mining_loss(embeddings, labels).detach())
        assert loss(miner=case.make()).to("meta")(embeddings.to("meta"), labels.to("meta")).shape == ()

    def test_copies_are_equal(self, case: MinerCase) -> None:
        """``deepcopy`` and pickle give the same miner."""
        miner = case.make()
        for duplicate in (copy.deepcopy(miner), pickle.loads(pickle.dumps(miner))):
            assert repr(duplicate) == repr(miner)
            assert type(duplicate) is type(miner)

    def test_indices_have_no_gradient(self, case: MinerCase) -> None:
        """The selection is not differentiable."""
        embeddings, labels = make_batch("balanced")
        miner = case.make()
        leaf = embeddings.requires_grad_()
        indices = miner.pairs(leaf, labels) if isinstance(miner, PairMiner) else None
        if indices is None:
            assert isinstance(miner, TripletMiner)
            relation = miner.choose(map_rows(PairBatch(Labels(labels), Cosine(), anchors=leaf)))
            assert isinstance(relation, Triplets)
            indices = (relation.anchors, relation.positives, relation.negatives)  # type: ignore[assignment]
        assert indices is not None
        assert not any(index.requires_grad for index in indices)
