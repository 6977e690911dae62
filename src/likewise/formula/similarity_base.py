"""The base class of similarities: one number per pair, and **higher is always closer**.

A distance enters as its negative.  This is defined only here; no flag inverts it.

Every similarity is a function of one matrix product and one number per row and per column, ``link(a·b, ‖a‖², ‖b‖²)``
after `Similarity.prepare`, so an engine can compute the product tile by tile.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import ClassVar

import torch
from torch import Tensor

from likewise.formula.checks import check_squared_norms
from likewise.formula.products import multiply_pairs
from likewise.formula.unit import unit


@dataclass(frozen=True)
class Similarity(ABC):
    """How close two embeddings are; higher is closer.

    A subclass defines `link`, and `prepare` if it transforms embeddings other than to unit length.  Both are
    differentiated by autograd; norms are not assumed to be one unless the class declares `unit_norm`.

    Args:
        normalize: scale embeddings to unit length first.

    Examples:
        >>> import torch
        >>> from likewise.formula import SquaredEuclidean
        >>> SquaredEuclidean()(torch.tensor([[1.0, 0.0]]), torch.tensor([[0.0, 2.0]]))
        tensor([[-2.]])
    """

    normalize: bool = field(default=True, kw_only=True)

    uses_squares: ClassVar[bool] = True
    """Whether `link` uses squared norms."""

    unit_norm: ClassVar[bool] = False
    """Whether what enters the product has unit norm under ``normalize=True``, so that squared norms need no gradient.

    A class that defines `prepare`, `factors` or `subtracts_mean` does not inherit it: it must declare it itself."""

    subtracts_mean: ClassVar[bool] = False
    """Whether the references' mean is subtracted first: a common shift does not change distances but rounds them."""

    is_distance: ClassVar[bool] = False
    """Whether it is the negative of a distance, so that margins are written as distances; see `threshold`."""

    @property
    def bounded(self) -> bool:
        """Whether embeddings of any finite norm have finite similarities; others must have representable squared norms."""
        return self.normalize and type(self).prepare is Similarity.prepare

    def check(self, name: str, embeddings: Tensor) -> None:
        """Check that the similarities of embeddings, and the difference of two, do not overflow."""
        if not self.bounded:
            check_squared_norms(name, embeddings, room=4.0 if self.is_distance else 2.0)

    def working_dtype(self, dtype: torch.dtype) -> torch.dtype:
        """Return the dtype in which embeddings are compared; a wider one if rounding would hide distances."""
        return dtype

    @property
    def pooled(self) -> int:
        """The number of consecutive references that form one column of the matrix."""
        return 1

    mirrors: ClassVar[bool] = False
    """Whether ``s(a, b)`` is ``s(b, a)`` to the last bit, so that half of a square matrix determines the other half."""

    def __init_subclass__(cls) -> None:
        """Reset `unit_norm` in a class that changes what enters the product."""
        super().__init_subclass__()
        if "unit_norm" not in vars(cls) and not vars(cls).keys().isdisjoint(("prepare", "factors", "subtracts_mean")):
            cls.unit_norm = False

    def prepare(self, embeddings: Tensor) -> Tensor:
        """Transform each embedding separately, before pairs are compared."""
        return unit(embeddings) if self.normalize else embeddings

    def squares(self, prepared: Tensor) -> Tensor:
        """Squared norms of prepared embeddings, ``(n,)``."""
        return (prepared.detach() if self.normalize and self.unit_norm else prepared).square().sum(dim=1)

    def threshold(self, value: float) -> float:
        """Convert a user's number to a value of ``s``: a margin of a distance is a distance, so it is negated.

        Examples:
            >>> from likewise.formula import Cosine, Euclidean
            >>> Cosine().threshold(0.5), Euclidean().threshold(0.5)
            (0.5, -0.5)
        """
        return -value if self.is_distance else value

    @abstractmethod
    def link(self, products: Tensor, anchor_squares: Tensor, reference_squares: Tensor) -> Tensor:
        """Similarities from inner products ``(m, n)`` and squared norms ``(m, 1)`` and ``(1, n)``."""

    def distances(self, similarities: Tensor) -> Tensor:
        """Return the Euclidean distances between unit vectors with these similarities."""
        raise TypeError(f"{self!r} similarities do not determine Euclidean distances of unit vectors")

    def factors(self, anchors: Tensor, references: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Return anchors and references as they enter the product, ``(m, d)`` and ``(n, d)``; the same tensor if equal."""
        left = self._prepare(anchors)
        right = left if references is None else self._prepare(references)
        if self.subtracts_mean:
            middle = right.detach().mean(dim=0, keepdim=True)
            left = left - middle
            right = left if references is None else right - middle
        return left, right

    def _prepare(self, embeddings: Tensor) -> Tensor:
        """`prepare`, which must keep the number of rows."""
        prepared = self.prepare(embeddings)
        if prepared.ndim != 2 or prepared.shape[0] != embeddings.shape[0]:
            raise ValueError(
                f"{type(self).__name__}.prepare must map each of the {len(embeddings)} embeddings to one row, but the shape "
                f"of its result is {tuple(prepared.shape)}"
            )
        return prepared

    def of_products(self, products: Tensor, anchor_squares: Tensor, reference_squares: Tensor) -> Tensor:
        """`link`, which must keep the shape of the products; for a matrix or for chosen pairs."""
        values = self.link(products, anchor_squares, reference_squares)
        if values.shape != products.shape:
            raise ValueError(
                f"{type(self).__name__}.link must return one similarity for each product, of shape "
                f"{tuple(products.shape)}, but the shape is {tuple(values.shape)}"
            )
        return values

    def of_factors(self, left: Tensor, right: Tensor) -> Tensor:
        """The matrix of similarities, ``(m, n)``, of the result of `factors`; rows of either give the corresponding chunk."""
        products = multiply_pairs(left, right, cancels=self.uses_squares)
        if not self.uses_squares:
            unused = products.new_empty(0)
            return self.of_products(products, unused, unused)
        return self.of_products(products, *self._both_squares(left, right))

    def _both_squares(self, left: Tensor, right: Tensor) -> tuple[Tensor, Tensor]:
        """Squared norms as `link` takes them, ``(m, 1)`` and ``(1, n)``."""
        of_left = self.squares(left)
        of_right = of_left if right is left else self.squares(right)
        return of_left[:, None], of_right[None, :]

    def __call__(self, anchors: Tensor, references: Tensor | None = None) -> Tensor:
        """Return the matrix of similarities, ``(m, n)``; without references, of the anchors with each other."""
        dtype = self.working_dtype(anchors.dtype)
        if dtype == anchors.dtype:
            return self.of_factors(*self.factors(anchors, references))
        wide = self.factors(anchors.to(dtype), None if references is None else references.to(dtype))
        return self.of_factors(*wide).to(anchors.dtype)
