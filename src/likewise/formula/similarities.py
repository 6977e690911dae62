"""Similarities: cosine, inner product, distances, and the pooled similarity to a class with several references."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import ClassVar, TypeAlias

import torch
from torch import Tensor

from likewise.formula.checks import one_of
from likewise.formula.operations import safe_sqrt
from likewise.formula.pooling import Pooling
from likewise.formula.precision import autocast_is_on
from likewise.formula.products import multiply_pairs
from likewise.formula.similarity_base import Similarity
from likewise.formula.unit import unit


@dataclass(frozen=True)
class Cosine(Similarity):
    """The cosine of the angle, ``a·b / (‖a‖ ‖b‖)``; with ``normalize=False``, for vectors that are of unit length.

    Examples:
        >>> import torch
        >>> Cosine()(torch.tensor([[3.0, 4.0]]), torch.tensor([[4.0, 3.0]]))
        tensor([[0.9600]])
    """

    uses_squares: ClassVar[bool] = False
    mirrors: ClassVar[bool] = True

    def link(self, products: Tensor, anchor_squares: Tensor, reference_squares: Tensor) -> Tensor:
        """The product itself; rounding may take it past ±1, which formulas must tolerate."""
        return products

    def distances(self, similarities: Tensor) -> Tensor:
        """``√(2 − 2s)``."""
        return (2.0 - 2.0 * similarities).clamp_min(0.0).sqrt()


@dataclass(frozen=True)
class Dot(Similarity):
    """The inner product ``a·b`` of embeddings, without normalization.

    Examples:
        >>> import torch
        >>> Dot()(torch.tensor([[3.0, 4.0]]), torch.tensor([[4.0, 3.0]]))
        tensor([[24.]])
    """

    normalize: bool = field(default=False, kw_only=True)
    uses_squares: ClassVar[bool] = False
    mirrors: ClassVar[bool] = True

    def link(self, products: Tensor, anchor_squares: Tensor, reference_squares: Tensor) -> Tensor:
        """The product itself."""
        return products


def _minus_squared_distance(products: Tensor, anchor_squares: Tensor, reference_squares: Tensor) -> Tensor:
    return torch.add(-anchor_squares, products, alpha=2.0) - reference_squares


@dataclass(frozen=True)
class SquaredEuclidean(Similarity):
    """Minus the squared Euclidean distance, ``−‖a − b‖²``.

    Examples:
        >>> import torch
        >>> SquaredEuclidean(normalize=False)(torch.tensor([[3.0, 4.0]]), torch.tensor([[0.0, 0.0]]))
        tensor([[-25.]])
    """

    is_distance: ClassVar[bool] = True
    unit_norm: ClassVar[bool] = True

    def link(self, products: Tensor, anchor_squares: Tensor, reference_squares: Tensor) -> Tensor:
        """``2 a·b − ‖a‖² − ‖b‖²``; rounding may take it past zero, which formulas must tolerate."""
        return _minus_squared_distance(products, anchor_squares, reference_squares)

    def of_factors(self, left: Tensor, right: Tensor) -> Tensor:
        """The matrix of similarities; the product accumulates onto ``−‖b‖²``, so that one matrix is allocated instead of three."""
        if type(self).link is not SquaredEuclidean.link or autocast_is_on(left):
            return super().of_factors(left, right)
        of_left, of_right = self._both_squares(left, right)
        return multiply_pairs(left, right, -of_right, 2.0).sub_(of_left)

    def distances(self, similarities: Tensor) -> Tensor:
        """``√(−s)``."""
        if not self.normalize:
            return super().distances(similarities)
        return (-similarities).clamp_min(0.0).sqrt()


@dataclass(frozen=True)
class Euclidean(Similarity):
    """Minus the Euclidean distance, ``−‖a − b‖``; equal embeddings have distance zero and gradient zero.

    Examples:
        >>> import torch
        >>> Euclidean(normalize=False)(torch.tensor([[3.0, 4.0]]), torch.tensor([[0.0, 0.0]]))
        tensor([[-5.]])
    """

    subtracts_mean: ClassVar[bool] = True
    is_distance: ClassVar[bool] = True

    def link(self, products: Tensor, anchor_squares: Tensor, reference_squares: Tensor) -> Tensor:
        """``−√(‖a‖² + ‖b‖² − 2 a·b)``."""
        squares = anchor_squares + reference_squares
        squared = torch.add(squares, products, alpha=-2.0)
        # a value below the rounding of the subtraction is zero, so that equal embeddings have distance zero
        is_zero = (squared > 4.0 * torch.finfo(products.dtype).eps * squares).logical_not_()
        # the inner mask keeps autograd from computing 1/0
        return squared.masked_fill_(is_zero, 1.0).sqrt().neg().masked_fill_(is_zero, 0.0)

    def distances(self, similarities: Tensor) -> Tensor:
        """``−s``."""
        if not self.normalize:
            return super().distances(similarities)
        return -similarities


@dataclass(frozen=True)
class SNR(Similarity):
    """Minus the noise-to-signal ratio ``var(b − a) / var(a)`` of Yuan et al. 2019; not symmetric.

    An anchor whose entries are all equal has no signal: its similarities are zero, and it does not get a gradient.

    Examples:
        >>> import torch
        >>> SNR(normalize=False)(torch.tensor([[1.0, -1.0]]), torch.tensor([[2.0, -2.0]]))
        tensor([[-1.]])
    """

    is_distance: ClassVar[bool] = True

    @property
    def bounded(self) -> bool:
        """Whether embeddings are scaled to unit length."""
        return self.normalize

    def prepare(self, embeddings: Tensor) -> Tensor:
        """Unit length, then zero mean over the dimensions: a variance is a squared norm after that."""
        embeddings = super().prepare(embeddings)
        centered = embeddings - embeddings.mean(dim=1, keepdim=True)
        # entries that differ only by rounding are not a signal
        rounding = torch.finfo(centered.dtype).eps * embeddings.square().sum(dim=1, keepdim=True)
        return centered.masked_fill(centered.square().sum(dim=1, keepdim=True) <= rounding, 0.0)

    def link(self, products: Tensor, anchor_squares: Tensor, reference_squares: Tensor) -> Tensor:
        """``−‖b − a‖² / ‖a‖²``."""
        silent = anchor_squares == 0.0
        minus_noise = _minus_squared_distance(products, anchor_squares, reference_squares)
        return torch.where(silent, 0.0, minus_noise / anchor_squares.masked_fill(silent, 1.0))


_MOST_IN_FLOAT32, _MOST_IN_FLOAT64 = 2.0, 7.0
"""The largest ``ρ = √c r`` of `Poincare` in a dtype: the product of two points at the rim is rounded by up to ``4 ε sinh²(2ρ)``,
which is below 4e-4 in both, or a distance of 0.03/√c."""


@dataclass(frozen=True)
class Poincare(Similarity):
    r"""Minus the distance in the Poincaré ball of curvature −c, into which embeddings are mapped from its origin.

    $$u=x\,\min(1,\tfrac{r}{\lVert x\rVert}),\quad z=\tanh(\sqrt c\lVert u\rVert)\frac{u}{\sqrt c\lVert u\rVert},\quad
      s_{ij}=-\tfrac1{\sqrt c}\,\mathrm{arcosh}\Bigl(1+\frac{2c\lVert z_i-z_j\rVert^2}{(1-c\lVert z_i\rVert^2)(1-c\lVert z_j\rVert^2)}\Bigr)$$

    Ermolov et al. 2022 (Hyp), whose loss is ``NTXentLoss(0.2, similarity=Poincare())``.  It is computed on the hyperboloid,
    which avoids the rounding near the ball's boundary: ``w = sinh(2√c‖u‖) u/‖u‖`` and
    ``cosh(√c d) = √(1 + ‖w_i‖²) √(1 + ‖w_j‖²) − w_i·w_j``. Distance and gradient are zero for equal embeddings, and for
    those whose distance is below the rounding of the product, at most 0.03/√c.  If ``√c r > 2``, embeddings are
    compared in float64; ``√c r > 7`` is an error.

    Args:
        curvature: c, the ball's curvature without its sign.
        clip: r, the norm to which longer embeddings are clipped.
        normalize: scale embeddings to unit length first.

    Examples:
        >>> import torch
        >>> Poincare()(torch.tensor([[1.0, 0.0]]), torch.tensor([[0.0, 0.0], [0.0, 1.0], [0.0, 9.0]]))
        tensor([[-2.0000, -2.9163, -5.2499]])
    """

    normalize: bool = field(default=False, kw_only=True)
    curvature: float = 0.1
    clip: float = 2.3
    is_distance: ClassVar[bool] = True

    def __post_init__(self) -> None:
        for name in ("curvature", "clip"):
            value = getattr(self, name)
            if not isinstance(value, int | float) or isinstance(value, bool) or not 0.0 < value < math.inf:
                raise ValueError(f"Poincare: {name} must be a number > 0, but it is {value!r}")
        if self._radius > _MOST_IN_FLOAT64:
            raise ValueError(
                f"Poincare: clip must be at most {_MOST_IN_FLOAT64 / math.sqrt(self.curvature):g} with curvature "
                f"{self.curvature:g}, because float64 does not resolve distances farther out, but it is {self.clip!r}"
            )

    @property
    def _radius(self) -> float:
        """``√c`` times the largest norm."""
        return math.sqrt(self.curvature) * (min(self.clip, 1.0) if self.normalize else self.clip)

    def working_dtype(self, dtype: torch.dtype) -> torch.dtype:
        """float64 for a ball that float32 does not resolve."""
        return torch.float64 if self._radius > _MOST_IN_FLOAT32 else dtype

    @property
    def bounded(self) -> bool:
        """True: norms are clipped."""
        return True

    def prepare(self, embeddings: Tensor) -> Tensor:
        """Map each embedding to the hyperboloid and return all coordinates except the first."""
        rows = super().prepare(embeddings)
        # a norm that overflows is infinite, which is beyond the clip as well
        beyond = torch.linalg.vector_norm(rows.detach(), dim=1, keepdim=True) > self.clip
        rows = torch.where(beyond, self.clip * unit(rows), rows)
        root = 2.0 * math.sqrt(self.curvature)
        return root * rows * _sinhc((root * rows).square().sum(dim=1, keepdim=True))

    def link(self, products: Tensor, anchor_squares: Tensor, reference_squares: Tensor) -> Tensor:
        """``−(1/√c) arcosh(1 + t) = −(2/√c) arsinh √(t/2)`` with ``t = √(1 + ‖w_i‖²) √(1 + ‖w_j‖²) − 1 − w_i·w_j``."""
        height = (1.0 + anchor_squares).sqrt() * (1.0 + reference_squares).sqrt()
        # height − 1 without the loss of digits at small norms
        excess = (anchor_squares + reference_squares + anchor_squares * reference_squares) / (height + 1.0)
        gap = excess - products
        rounding = 4.0 * torch.finfo(products.dtype).eps * excess
        distance = safe_sqrt(0.5 * gap.masked_fill(gap <= rounding, 0.0)).asinh()
        return (-2.0 / math.sqrt(self.curvature)) * distance


def _sinhc(squares: Tensor) -> Tensor:
    """``sinh(v)/v`` of ``v²``, with finite derivatives at zero."""
    small = squares < 1e-4  # where three terms of the series are exact in float64
    v = torch.where(small, 1.0, squares).sqrt()
    grown = (
        v.expm1()
    )  # torch rounds sinh differently in different positions of a tensor, and equal rows must stay equal
    return torch.where(small, 1.0 + squares / 6.0 * (1.0 + squares / 20.0), 0.5 * (grown + grown / (grown + 1.0)) / v)


class Pooled(Similarity):
    """The similarity of an anchor to a class with several references, pooled over these references.

    The references of a class are consecutive; a column of the matrix is a class.

    Args:
        base: how an anchor and a reference are compared.
        centers: the number of references of each class.
        pool: maps similarities ``(m, classes, centers)`` to ``(m, classes)``; kernels run those of
            `likewise.formula.pooling`.

    Examples:
        >>> import torch
        >>> from likewise.formula import NearestCenter
        >>> nearest = Pooled(Cosine(), 2, NearestCenter())
        >>> nearest(torch.eye(2)[:1], torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.0, 1.0], [0.0, 1.0]]))
        tensor([[1., 0.]])
    """

    base: Similarity
    centers: int
    pool: Pooling

    def __init__(self, base: Similarity, centers: int, pool: Pooling) -> None:
        for name, value in (("normalize", base.normalize), ("base", base), ("centers", centers), ("pool", pool)):
            object.__setattr__(self, name, value)

    @property
    def bounded(self) -> bool:
        """The same as for the base similarity."""
        return self.base.bounded

    @property
    def pooled(self) -> int:
        """The number of references of each class."""
        return self.centers

    def working_dtype(self, dtype: torch.dtype) -> torch.dtype:
        """The same as for the base similarity."""
        return self.base.working_dtype(dtype)

    def prepare(self, embeddings: Tensor) -> Tensor:
        """The same as for the base similarity."""
        return self.base.prepare(embeddings)

    def factors(self, anchors: Tensor, references: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """The same as for the base similarity."""
        return self.base.factors(anchors, references)

    def link(self, products: Tensor, anchor_squares: Tensor, reference_squares: Tensor) -> Tensor:
        """The base similarity, before pooling."""
        return self.base.link(products, anchor_squares, reference_squares)

    def of_factors(self, left: Tensor, right: Tensor) -> Tensor:
        """The pooled matrix, ``(m, classes)``."""
        # the first centers of all classes, then the second: torch reduces a short last dimension slowly
        by_center = right.reshape(-1, self.pooled, right.shape[1]).transpose(0, 1).flatten(0, 1)
        similarities = self.base.of_factors(left, by_center)
        return self.pool(similarities.reshape(len(left), self.pooled, -1).transpose(1, 2))

    def pool_columns(self, similarities: Tensor) -> Tensor:
        """Pool a matrix of references, ``(m, classes · centers)``, to one of classes."""
        return self.pool(similarities.reshape(len(similarities), -1, self.pooled))


SIMILARITIES: dict[str, Similarity] = {
    "cosine": Cosine(),
    "dot": Dot(),
    "euclidean": Euclidean(),
    "squared_euclidean": SquaredEuclidean(),
    "snr": SNR(),
    "poincare": Poincare(),
}

SimilarityLike: TypeAlias = str | Similarity


def as_similarity(similarity: SimilarityLike) -> Similarity:
    """Return a similarity by name; objects are returned unchanged.

    Examples:
        >>> as_similarity("cosine")
        Cosine(normalize=True)
    """
    if isinstance(similarity, Similarity):
        return similarity
    return SIMILARITIES[one_of("similarity", similarity, SIMILARITIES, "or a Similarity object")]
