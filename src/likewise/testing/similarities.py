"""The contract of a similarity as a test class."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import pytest
import torch
from torch import Tensor

from likewise.formula import Similarity
from likewise.losses import NTXentLoss
from likewise.testing.batches import make_batch
from likewise.testing.loops import loop_over


class Curved(Similarity):
    """A similarity with its own `prepare`, whose squared norms have a gradient: ``(2a·b − a² − b²) / (1 + a² + b²)``.

    Embeddings are mapped into a ball, ``x / √(1 + x²)``.  The contract of a loss uses it.

    Examples:
        >>> Curved()(torch.tensor([[1.0, 0.0]]), torch.tensor([[0.0, 1.0]]))
        tensor([[-0.5000]])
    """

    def prepare(self, embeddings: Tensor) -> Tensor:
        """Map each embedding into the unit ball."""
        return embeddings / (1.0 + embeddings.square().sum(dim=1, keepdim=True)).sqrt()

    def link(self, products: Tensor, anchor_squares: Tensor, reference_squares: Tensor) -> Tensor:
        """A function of all three."""
        return (2.0 * products - anchor_squares - reference_squares) / (1.0 + anchor_squares + reference_squares)


@dataclass(frozen=True)
class SimilarityCase:
    """One similarity under test.

    Args:
        similarity: the similarity.
        oracle: the similarity of two vectors, lists of floats, written independently.
        name: the name in test reports; by default the representation of the similarity.

    Examples:
        >>> from likewise.formula import Dot
        >>> SimilarityCase(Dot(), lambda a, b: sum(x * y for x, y in zip(a, b))).label
        'Dot(normalize=False)'
    """

    similarity: Similarity
    oracle: Callable[[list[float], list[float]], float]
    name: str = ""

    @property
    def label(self) -> str:
        """The name in test reports."""
        return self.name or repr(self.similarity)


def _rows(number: int, seed: int = 0) -> Tensor:
    return torch.randn(number, 4, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


class SimilarityContract:
    """Tests for similarities: subclass it in a test file with ``cases = [SimilarityCase(...), …]``.

    Examples:
        >>> class TestMySimilarities(SimilarityContract):
        ...     cases = []
    """

    cases: ClassVar[Sequence[SimilarityCase]] = ()

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Run every test once per case."""
        if "case" in metafunc.fixturenames:
            metafunc.parametrize("case", self.cases, ids=[case.label for case in self.cases])

    def test_equals_the_oracle(self, case: SimilarityCase) -> None:
        """Every entry of the matrix equals the oracle."""
        a, b = _rows(3), _rows(5, seed=1)
        expected = [[case.oracle(x, y) for y in b.tolist()] for x in a.tolist()]
        torch.testing.assert_close(case.similarity(a, b), torch.tensor(expected, dtype=torch.float64))

    def test_nearer_is_higher(self, case: SimilarityCase) -> None:
        """An anchor is more similar to a vector near it than to its opposite."""
        anchor = _rows(1)
        assert case.similarity(anchor, 1.05 * anchor + 0.01) > case.similarity(anchor, -anchor)

    def test_gradients_equal_finite_differences(self, case: SimilarityCase) -> None:
        """The first and the second derivative, by anchors and references, and of one set with itself."""
        a, b = _rows(3).requires_grad_(), _rows(4, seed=1).requires_grad_()
        assert torch.autograd.gradcheck(case.similarity, (a, b))
        assert torch.autograd.gradgradcheck(case.similarity, (a, b))
        assert torch.autograd.gradcheck(lambda rows: case.similarity(rows).tril(-1), (a,))

    def test_chunks_equal_the_matrix(self, case: SimilarityCase) -> None:
        """Engines compute some rows, or chosen pairs, from the factors and squared norms of the whole batch."""
        similarity = case.similarity
        left, right = similarity.factors(_rows(3), _rows(5, seed=1))
        whole = similarity.of_factors(left, right)
        torch.testing.assert_close(similarity.of_factors(left[1:], right), whole[1:])
        products = (left * right[:3]).sum(dim=1)
        empty = products.new_empty(0)
        squares = [similarity.squares(each) for each in (left, right[:3])] if similarity.uses_squares else [empty] * 2
        torch.testing.assert_close(similarity.link(products, *squares), whole.diagonal())

    @loop_over("backend", ["dense", "chunked"])
    def test_a_loss_has_the_right_gradient_on_every_engine(self, case: SimilarityCase, backend: str) -> None:
        """The gradient of a loss along a direction equals finite differences of its value."""
        embeddings, labels = make_batch("ragged")
        make: Any = NTXentLoss  # type checkers do not see the options of the base class
        check_gradient(make(0.5, similarity=case.similarity, backend=backend), embeddings, labels)

    def test_equal_rows_are_prepared_equally(self, case: SimilarityCase) -> None:
        """A row's bits depend neither on its position nor on the number of rows, so that equal embeddings tie."""
        rows = _rows(3).float()
        index = torch.arange(37) % 3
        many = case.similarity.prepare(rows[index])
        assert torch.equal(many, many[:3][index])
        for number in (3, 7, 20):
            assert torch.equal(case.similarity.prepare(rows[index[:number]]), many[:number]), number

    def test_finite_for_finite_input(self, case: SimilarityCase) -> None:
        """Value and gradient are finite on zeros, equal and opposite rows, and at the norms that the class allows."""
        direction = torch.nn.functional.normalize(_rows(1).float())
        zero = torch.zeros_like(direction)
        norms = (1e-30, 1e-10, 1.0, 1e10, 1e18, *((1e20, 1e30) if case.similarity.bounded else ()))
        for norm in norms:
            rows = torch.cat([norm * direction, norm * direction, -norm * direction, zero]).requires_grad_()
            case.similarity.check("embeddings", rows)
            values = case.similarity(rows)
            (gradient,) = torch.autograd.grad(values.sum(), rows)
            assert torch.isfinite(values).all(), norm
            assert torch.isfinite(gradient).all(), norm


def check_gradient(loss: Callable[[Tensor, Tensor], Tensor], embeddings: Tensor, labels: Tensor) -> None:
    """Compare the gradient along one random direction with central differences.

    Examples:
        >>> check_gradient(lambda x, labels: x.square().sum(), torch.ones(2, 2, dtype=torch.float64), torch.zeros(2))
    """
    direction = torch.randn(embeddings.shape, generator=torch.Generator().manual_seed(0), dtype=embeddings.dtype)
    leaf, step = embeddings.clone().requires_grad_(), 1e-6
    (gradient,) = torch.autograd.grad(loss(leaf, labels), leaf)
    with torch.no_grad():
        ahead, behind = (loss(embeddings + sign * step * direction, labels) for sign in (1.0, -1.0))
    expected, found = (ahead - behind) / (2.0 * step), (gradient * direction).sum()
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-6)
