"""Direction regularization: subtracts a cosine of directions from the similarity of every negative of a declaration."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from likewise.distributed import SINGLE_PROCESS, current_group
from likewise.engines import map_rows, similarities_at
from likewise.formula import (
    NEGATIVES,
    Apply,
    Cosine,
    Declaration,
    Dot,
    Euclidean,
    Folded,
    Formula,
    Labels,
    MatrixLoss,
    PairBatch,
    PerPair,
    PerTriplet,
    RelationLike,
    RowChunk,
    Side,
    Similarity,
    SquaredEuclidean,
    Term,
    Total,
    TripletTerm,
    as_similarity,
    full_precision,
    ingredients,
    inner_products,
    label_views,
    mentions_positive,
    pair_entries,
    per_triplet,
    s,
    sort_declaration,
    substitute,
)
from likewise.losses.base import PairLoss, collect_groups, finite_number
from likewise.losses.proxy_base import ProxyLoss
from likewise.losses.proxy_batches import Between

SIMILARITIES = (Cosine, Dot, SquaredEuclidean, Euclidean)
"""The similarities that determine the angle at an anchor."""


class DirectionRegularized(nn.Module):
    r"""Direction regularization: prefers negatives away from the direction of the positive.

    In every negative of the loss, $s_{an}$ becomes

    $$s_{an}-\gamma\cos(n-a,\,p-a)$$

    with the cosine of the angle at the anchor between the negative and a positive. In a triplet loss, p is the
    triplet's positive; in any other loss, it is the anchor's least similar positive, or its proxy, chosen without a
    gradient. Anchors without positives keep their similarities, and miners use the original $s$.  The cosine is zero if
    two of the points are equal.

    * `TripletLoss`, over all or mined triplets: $[s_{an}-s_{ap}+\lambda-\gamma\cos(n-a,\,p-a)]_+$; with
      ``similarity="squared_euclidean"`` the paper's $[d^2_{ap}-d^2_{an}+\lambda-\gamma\cos(n-a,\,p-a)]_+$;
    * `MultiSimilarityLoss`, `ContrastiveLoss`, `NPairsLoss`: $e^{\beta(s_{an}-\lambda-\gamma\cos(n-a,\,p^*-a))}$ for
      negatives, and so on;
    * `ProxyNCALoss`, `ProxyNCAPPLoss`: $e^{-\lVert x-p_c\rVert^2-\gamma\cos(p_c-x,\,p_y-x)}$ for the proxies of other
      classes;
    * `ProxyAnchorLoss`: the anchor is a proxy, and $p^*$ its least similar positive sample.

    Mohan et al. 2020; Eq. 31 to 35 of the overview, with the cosine itself (its Eq. 32 holds in a special case only).

    Args:
        loss: a pair or proxy loss that is declared in formulas, with or without a miner, on cosines, inner products or
            Euclidean distances; kept as ``.loss``.
        gamma: the weight γ.

    Examples:
        >>> import torch
        >>> from likewise.losses import TripletLoss
        >>> embeddings = torch.tensor([[1.0, 0.0], [0.8, 0.6], [0.6, 0.8]])
        >>> DirectionRegularized(TripletLoss(), gamma=0.0)(embeddings, torch.tensor([0, 0, 1]))
        tensor(0.2600)
    """

    def __init__(self, loss: PairLoss | ProxyLoss, gamma: float = 0.3) -> None:
        super().__init__()
        if not isinstance(loss, PairLoss | ProxyLoss):
            raise TypeError(f"loss must be a pair loss or a loss with proxies, but it is a {type(loss).__name__}")
        similarity = as_similarity(loss.similarity)
        if not isinstance(similarity, SIMILARITIES):
            names = ", ".join(kind.__name__ for kind in SIMILARITIES)
            raise ValueError(f"loss must use one of the similarities {names}, but it uses {loss.similarity!r}")
        self.loss = loss
        self.gamma = finite_number("gamma", gamma)
        self._declarations()  # raises an error if the loss has no negatives

    def _declarations(self) -> dict[Any, Declaration]:
        """Return the declarations of the loss with the direction term, by what they compare; a pair loss has one."""
        declared: Any = self.loss.declare()
        if isinstance(self.loss, ProxyLoss) and Between.SAMPLES_CLASSES in declared:
            raise TypeError(f"loss must compare points, but the centers are pooled in {type(self.loss).__name__}")
        by_matrix = declared if isinstance(self.loss, ProxyLoss) else {None: declared}
        term = _DirectionTerm(self.gamma, type(self.loss).__name__)
        declarations = {
            # a proxy has no positive among other proxies
            between: declaration if between is Between.PROXIES_PROXIES else term.add_to(declaration)
            for between, declaration in by_matrix.items()
        }
        if not term.was_added:
            raise TypeError(
                f"loss must compare anchors with their negatives in formulas, but {type(self.loss).__name__} does not"
            )
        return declarations

    def forward(
        self,
        embeddings: Tensor,
        labels: Tensor | None = None,
        references: Tensor | None = None,
        reference_labels: Tensor | None = None,
        *,
        relation: RelationLike | None = None,
    ) -> Tensor:
        """Compute the loss of a batch with the direction term; the arguments are those of the wrapped loss."""
        loss = self.loss
        half = loss.half_of_products(embeddings) if isinstance(loss, ProxyLoss) else None
        with full_precision(embeddings):
            if isinstance(loss, PairLoss):
                if isinstance(relation, str):
                    views = label_views(relation, embeddings, labels, references, reference_labels, current_group())
                    embeddings, labels, references, reference_labels = views
                    relation = None
                loss.check_references(references)
                batch = loss.make_batch(embeddings, labels, references, reference_labels, relation)
                return loss.value(batch, declaration=self._declarations()[None])
            loss.check_references(references, reference_labels, relation)
            return loss.value(*loss.check_batch(embeddings, labels), half=half, declarations=self._declarations())

    def parameter_groups(self, lr: float | None = None) -> list[dict[str, Any]]:
        """The parameter groups of the loss."""
        return collect_groups([self.loss], lr)

    def extra_repr(self) -> str:
        """The arguments."""
        return f"gamma={self.gamma}"


# ------------------------------------------------------------------------------------------------ formulas


class _DirectionTerm:
    """Adds ``−γ cos(n − a, p − a)`` to `s` in the folds over negatives of declarations.

    Args:
        gamma: the weight γ.
        name: the loss, for messages.
    """

    def __init__(self, gamma: float, name: str) -> None:
        self.name, self.was_added = name, False
        of_triplet = PerTriplet("cos(n − a, p − a)", _Points.cosines, _Points.of)
        of_pair = PerPair("cos(n − a, p* − a)", _HardestPositives.cosines, _HardestPositives.of)
        self._in_triplet, self._in_pair = s - gamma * of_triplet, s - gamma * of_pair

    def add_to(self, declaration: Declaration) -> Declaration:
        """Return the declaration with the term."""
        terms, regularizers, matrix_losses = sort_declaration(declaration)
        if matrix_losses:
            raise TypeError(f"loss must be declared in formulas, but {self.name} has a {MatrixLoss.__name__}")
        return (*(self._add_to_term(term) for term in terms), *regularizers)

    def _add_to_term(self, term: Term) -> Term:
        if isinstance(term, TripletTerm):
            self.was_added |= any(s in ingredients(value) for value in term.values)
            values = (substitute(value, {s: self._in_triplet}) for value in term.values)
            return per_triplet(*values, choice=term.choice, thresholds=term.thresholds)
        made: dict[Formula, Formula] = {}
        value = None if term.value is None else self._add(term.value, made)
        if value is not None and term.over is NEGATIVES:  # the value of one pair
            value = substitute(value, {s: self._in_pair})
        formulas = [self._add(formula, made) for formula in (term.total, term.units, term.nonzero)]
        return Term(*formulas, value=value, over=term.over)

    def _add(self, node: Formula, made: dict[Formula, Formula]) -> Formula:
        if node not in made:
            made[node] = self._rebuild(node, made)  # nodes that formulas share stay shared
        return made[node]

    def _rebuild(self, node: Formula, made: dict[Formula, Formula]) -> Formula:
        if not isinstance(node, Apply | Folded | Total):
            return node
        parts = tuple([self._add(part, made) for part in node.parts])
        same = all(new is old for new, old in zip(parts, node.parts, strict=True))
        if isinstance(node, Folded) and node.over in (Side.NEGATIVES, Side.BOTH) and s in ingredients(node.curve):
            if node.over is not NEGATIVES:
                raise TypeError(f"loss must fold negatives separately, but {self.name} has {node!r}")
            self.was_added = True
            shifted = self._in_triplet if mentions_positive(node.curve) else self._in_pair
            return Folded(node.fold, node.over, substitute(parts[0], {s: shifted}))
        if same:
            return node
        if isinstance(node, Apply):
            return Apply(node.operation, parts)
        return Folded(node.fold, node.over, parts[0]) if isinstance(node, Folded) else Total(parts[0])


# ------------------------------------------------------------------------------------------------ numbers


class _Distances(NamedTuple):
    """Squared distances between two sets of points.

    Args:
        similarity: how the points are compared.
        factors: both sets as they enter the product.
        squares: their squared norms; those of a cosine are one.
        matrix: their similarities, where these are known: distances are then functions of them.
    """

    similarity: Similarity
    factors: tuple[Tensor, Tensor]
    squares: tuple[Tensor, Tensor]
    matrix: Tensor | None

    def at(self, rows: Tensor, columns: Tensor) -> Tensor:
        """The squared distances of chosen pairs; the indices broadcast."""
        if self.matrix is None:
            products = inner_products(*self.factors, rows, columns)
        else:
            products = pair_entries(self.matrix, rows, columns)
            if isinstance(self.similarity, SquaredEuclidean | Euclidean):
                return products.square() if isinstance(self.similarity, Euclidean) else -products
        return self.squares[0][rows] + self.squares[1][columns] - 2.0 * products


class _Points(NamedTuple):
    """The points of a batch.

    Args:
        from_anchors: distances of anchors to references.
        among_references: distances of references to references.
    """

    from_anchors: _Distances
    among_references: _Distances

    @classmethod
    def of(cls, batch: PairBatch) -> _Points:
        """Return the points of a batch; if the matrix is known, all distances are computed from it."""
        similarity = batch.similarity
        assert similarity is not None
        if batch.shards is not SINGLE_PROCESS:
            raise TypeError(
                "a direction needs the positives of all anchors, but the references are sharded over processes"
            )
        left, right = batch.both_factors()
        of_left, of_right = (
            each.new_ones(len(each)) if isinstance(similarity, Cosine) else each.square().sum(dim=1)
            for each in (left, right)
        )
        among = None
        if batch.matrix is not None and (batch.references is None or batch.local_rows is not None):
            among = batch.similarities_among_references()
        return cls(
            _Distances(similarity, (left, right), (of_left, of_right), batch.matrix),
            _Distances(similarity, (right, right), (of_right, of_right), among),
        )

    def cosines(self, rows: Tensor, positives: Tensor, columns: Tensor) -> Tensor:
        """``cos(n − a, p − a)`` by the law of cosines; zero where two points are closer than rounding."""
        near, far = self.from_anchors.at(rows, columns), self.from_anchors.at(rows, positives)
        opposite = self.among_references.at(positives, columns)
        rounding = 16.0 * torch.finfo(near.dtype).eps * self.from_anchors.squares[0][rows]
        apart = (near > rounding) & (far > rounding)
        lengths = torch.where(apart, near, 1.0).sqrt() * torch.where(apart, far, 1.0).sqrt()
        return torch.where(apart, (near + far - opposite) / (2.0 * lengths), 0.0)


class _HardestPositives(NamedTuple):
    """The least similar positive of each anchor of a batch.

    Args:
        points: the points of the batch.
        chosen: the positive, ``(m,)``.
        exists: whether there is one, ``(m,)``.
    """

    points: _Points
    chosen: Tensor
    exists: Tensor

    @classmethod
    def of(cls, batch: PairBatch) -> _HardestPositives:
        """Choose the positives, without a gradient; the first of equals."""
        points, relation = _Points.of(batch), batch.relation
        with torch.no_grad():
            if isinstance(relation, Labels) and relation.positives is not None:
                index = relation.positives.index
                exists, index = relation.positives.mask & (index >= 0), index.clamp_min(0)
                hardest = _least(similarities_at(batch, None, index), exists)
                return cls(points, index.gather(1, hardest[:, None])[:, 0], exists.any(dim=1))
            return cls(points, *map_rows(batch).map(_least_similar_positive))

    def cosines(self, rows: Tensor, columns: Tensor) -> Tensor:
        """``cos(n − a, p* − a)``; zero for an anchor without positives."""
        return torch.where(self.exists[rows], self.points.cosines(rows, self.chosen[rows], columns), 0.0)


def _least_similar_positive(chunk: RowChunk) -> tuple[Tensor, ...]:
    positive, _ = chunk.masks()
    return _least(chunk.similarities, positive), positive.any(dim=1)


def _least(similarities: Tensor, among: Tensor) -> Tensor:
    return similarities.masked_fill(~among, torch.inf).argmin(dim=1)
