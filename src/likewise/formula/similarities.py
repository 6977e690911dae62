"""Similarities: one number per pair, and **higher is always closer**.

A distance enters as its negative.  This is defined only here; no flag inverts it.

Every similarity is a function of one matrix product and one number per row and per column, ``link(a·b, ‖a‖², ‖b‖²)``
after `Similarity.prepare`, so an engine can compute the product tile by tile.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeAlias

import torch
from torch import Tensor

from likewise._compat import is_transformed
from likewise.formula.checks import autocast_is_on, check_squared_norms, one_of
from likewise.formula.operations import safe_sqrt


def unit(vectors: Tensor) -> Tensor:
    """Scale each row to length one.

    A row of zeros has no direction: it stays zero and gets no gradient.  Rows are first divided by their largest entry,
    so that the norm of a finite row neither overflows nor underflows.

    Examples:
        >>> import torch
        >>> unit(torch.tensor([[3.0, 4.0], [0.0, 0.0], [3e30, 4e30]]))
        tensor([[0.6000, 0.8000],
                [0.0000, 0.0000],
                [0.6000, 0.8000]])
    """
    if is_transformed():
        return _unit_and_norm(vectors, _largest_entry(vectors.detach()))[0]
    result: Tensor = _Unit.apply(vectors)  # type: ignore[no-untyped-call]
    return result


class _Unit(torch.autograd.Function):
    """``u = x / ‖x‖`` and its gradient ``(g − u (u·g)) / ‖x‖``, in two divisions so that ``‖x‖`` itself is never formed."""

    @staticmethod
    def forward(ctx: Any, vectors: Tensor) -> Tensor:
        largest = _largest_entry(vectors)
        units, norm = _unit_and_norm(vectors, largest)
        ctx.save_for_backward(vectors, largest, units, norm)
        return units

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        vectors, largest, units, norm = ctx.saved_tensors
        again = torch.is_grad_enabled()
        if again:  # second derivative: recompute them from the inputs
            units, norm = _unit_and_norm(vectors, largest)
        along = (units * grad).sum(dim=1, keepdim=True)
        tangent: Tensor = torch.addcmul(grad, units, along, value=-1.0)
        # memory does not suffice for three copies of a large batch
        return tangent / norm / largest if again else tangent.div_(norm).div_(largest)


def _largest_entry(vectors: Tensor) -> Tensor:
    largest = vectors.abs().amax(dim=1, keepdim=True)  # as a norm it would take ten times as long
    # division by infinity makes the value and the gradient of a row of zeros zero
    return largest.masked_fill(largest < torch.finfo(vectors.dtype).tiny, torch.inf)


def _unit_and_norm(vectors: Tensor, largest: Tensor) -> tuple[Tensor, Tensor]:
    scaled = vectors / largest
    # at least one for a row that is not zero, so the floor changes only rows of zeros
    norm = torch.linalg.vector_norm(scaled, dim=1, keepdim=True).clamp_min(1.0)
    return scaled / norm, norm


@dataclass(frozen=True)
class Similarity(ABC):
    """How close two embeddings are; higher is closer.

    A subclass defines `link`, and `prepare` if it transforms embeddings in another way than to unit length.  Both are
    differentiated by autograd; nothing about norms is assumed unless the class declares `unit_norm`.

    Args:
        normalize: scale embeddings to unit length first.

    Examples:
        >>> import torch
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
    """Whether the references' mean is subtracted first: a common shift changes no distance, but rounds small ones."""

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

    @property
    def pooled(self) -> int:
        """How many consecutive references make one column of the matrix."""
        return 1

    mirrors: ClassVar[bool] = False
    """Whether ``s(a, b)`` is ``s(b, a)`` to the last bit, so that half of a square matrix determines the other half."""

    def __init_subclass__(cls) -> None:
        """Withdraw the promise of unit norm from a class that changes what enters the product."""
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
        """A user's number as a value of ``s``: a margin of a distance is a distance, so it enters as its negative.

        Examples:
            >>> Cosine().threshold(0.5), Euclidean().threshold(0.5)
            (0.5, -0.5)
        """
        return -value if self.is_distance else value

    @abstractmethod
    def link(self, products: Tensor, anchor_squares: Tensor, reference_squares: Tensor) -> Tensor:
        """Similarities from inner products ``(m, n)`` and squared norms ``(m, 1)`` and ``(1, n)``."""

    def distances(self, similarities: Tensor) -> Tensor:
        """Euclidean distances between unit vectors that give these similarities."""
        raise TypeError(f"{self!r} similarities do not determine Euclidean distances of unit vectors")

    def factors(self, anchors: Tensor, references: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Anchors and references as they enter the product, ``(m, d)`` and ``(n, d)``; one tensor for both if they are one."""
        left = self.prepare(anchors)
        right = left if references is None else self.prepare(references)
        if self.subtracts_mean:
            middle = right.detach().mean(dim=0, keepdim=True)
            left = left - middle
            right = left if references is None else right - middle
        return left, right

    def of_factors(self, left: Tensor, right: Tensor) -> Tensor:
        """The matrix of similarities, ``(m, n)``, of the result of `factors`; rows of either give the corresponding chunk."""
        products = left @ right.T
        if not self.uses_squares:
            return self.link(products, products.new_empty(0), products.new_empty(0))
        return self.link(products, *self._both_squares(left, right))

    def _both_squares(self, left: Tensor, right: Tensor) -> tuple[Tensor, Tensor]:
        """Squared norms as `link` takes them, ``(m, 1)`` and ``(1, n)``."""
        of_left = self.squares(left)
        of_right = of_left if right is left else self.squares(right)
        return of_left[:, None], of_right[None, :]

    def __call__(self, anchors: Tensor, references: Tensor | None = None) -> Tensor:
        """The matrix of similarities, ``(m, n)``; without references, of the anchors among themselves."""
        return self.of_factors(*self.factors(anchors, references))


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
    """The inner product ``a·b`` of the embeddings as they are.

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
        return torch.addmm(-of_right, 2.0 * left, right.T).sub_(of_left)

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
        squared = -_minus_squared_distance(products, anchor_squares, reference_squares)
        # a value below the rounding of the subtraction is zero, so that equal embeddings have distance zero
        rounding = 4.0 * torch.finfo(products.dtype).eps * (anchor_squares + reference_squares)
        return -safe_sqrt(squared.masked_fill(squared <= rounding, 0.0))

    def distances(self, similarities: Tensor) -> Tensor:
        """``−s``."""
        if not self.normalize:
            return super().distances(similarities)
        return -similarities


@dataclass(frozen=True)
class SNR(Similarity):
    """Minus the noise-to-signal ratio ``var(b − a) / var(a)`` of Yuan et al. 2019; not symmetric.

    An anchor whose entries are all equal has no signal; its similarities are zero and it gets no gradient.

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


@dataclass(frozen=True)
class Poincare(Similarity):
    r"""Minus the distance in the Poincaré ball of curvature −c, into which embeddings are mapped from its origin.

    $$u=x\,\min(1,\tfrac{r}{\lVert x\rVert}),\quad z=\tanh(\sqrt c\lVert u\rVert)\frac{u}{\sqrt c\lVert u\rVert},\quad
      s_{ij}=-\tfrac1{\sqrt c}\,\mathrm{arcosh}\Bigl(1+\frac{2c\lVert z_i-z_j\rVert^2}{(1-c\lVert z_i\rVert^2)(1-c\lVert z_j\rVert^2)}\Bigr)$$

    Ermolov et al. 2022 (Hyp), whose loss is ``NTXentLoss(0.2, similarity=Poincare())``.  It is computed on the hyperboloid,
    where the ball's rim is not near: ``w = sinh(2√c‖u‖) u/‖u‖`` and ``cosh(√c d) = √(1 + ‖w_i‖²) √(1 + ‖w_j‖²) − w_i·w_j``.
    Equal embeddings have distance zero and gradient zero; so have those whose distance is below the rounding of the product.

    Args:
        curvature: c, the ball's curvature without its sign.
        clip: r, the norm at which embeddings are cut off.
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
        most = 10.0 / math.sqrt(self.curvature)  # float32 represents sinh(2 · 10)⁴
        if self.clip > most:
            raise ValueError(
                f"Poincare: clip must be at most {most:g} with curvature {self.curvature:g}, but it is {self.clip!r}"
            )

    @property
    def bounded(self) -> bool:
        """True: norms are clipped."""
        return True

    def prepare(self, embeddings: Tensor) -> Tensor:
        """Map each embedding to the hyperboloid; these are the coordinates besides the first."""
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
    return torch.where(small, 1.0 + squares / 6.0 * (1.0 + squares / 20.0), v.sinh() / v)


class Pooled(Similarity):
    """The similarity of an anchor to a class that has several references, pooled from those to its references.

    The references of a class are consecutive; a column of the matrix is a class.

    Args:
        base: how an anchor and a reference are compared.
        centers: the number of references of each class.
        pool: maps similarities ``(m, classes, centers)`` to ``(m, classes)``.

    Examples:
        >>> import torch
        >>> nearest = Pooled(Cosine(), 2, lambda similarities: similarities.amax(dim=2))
        >>> nearest(torch.eye(2)[:1], torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.0, 1.0], [0.0, 1.0]]))
        tensor([[1., 0.]])
    """

    base: Similarity
    centers: int
    pool: Callable[[Tensor], Tensor]

    def __init__(self, base: Similarity, centers: int, pool: Callable[[Tensor], Tensor]) -> None:
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
    """A similarity from its name; objects pass through.

    Examples:
        >>> as_similarity("cosine")
        Cosine(normalize=True)
    """
    if isinstance(similarity, Similarity):
        return similarity
    return SIMILARITIES[one_of("similarity", similarity, SIMILARITIES, "or a Similarity object")]
