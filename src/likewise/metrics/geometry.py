"""The geometry of an embedding: how tight classes are, how far apart, and how many directions are in use."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from math import exp, isqrt, log
from typing import Any

import torch
from torch import Tensor

from likewise.formula import Cosine, unit, whole_number
from likewise.metrics.ranks import Array
from likewise.metrics.tiles import MEMORY, Rows, exactly, labels_from, sides, track

ALIKE = 0.02
"""Below this mean squared distance between classes embeddings count as collapsed: a mean cosine above 0.99."""

ONE_DIRECTION = 0.95
"""Above this share of the variance in a single direction embeddings of four or more classes count as collapsed."""

CHUNK = 2**19
"""Entries of embeddings that are summed in float64 at once."""

SMALLEST = 2.0**-23
"""Singular values below this share of the largest are rounding; they count as this much."""


class CollapseWarning(UserWarning):
    """The embeddings have collapsed: all look alike, or all lie along one line.

    Examples:
        >>> import torch, warnings
        >>> with warnings.catch_warnings(record=True) as caught:
        ...     warnings.simplefilter("always")
        ...     found = geometry(torch.ones(4, 2), torch.tensor([0, 0, 1, 1]))
        >>> caught[0].category.__name__
        'CollapseWarning'
    """


def geometry(embeddings: Array, labels: Array, *, bins: int = 100, memory: int = MEMORY) -> dict[str, Any]:
    r"""Describe unit-normalized embeddings x: similarities within and between classes, spread, spectrum, collapse.

    Pairs are unordered pairs of different samples, each counted once.

    - ``edges``, ``intra``, ``inter``: counts of the cosine similarities of pairs of one class and of two classes in
      ``bins`` equal intervals of [−1, 1], each closed below and the last one closed above; ``intra_mean``,
      ``inter_mean``: their means;
    - ``alignment``: the mean of $\lVert x - y \rVert^2$ over pairs of one class, and ``uniformity``: the logarithm of
      the mean of $e^{-2 \lVert x - y \rVert^2}$ over all pairs (Wang and Isola 2020, α = t = 2); lower is better;
    - ``spectrum``: the singular values $\sigma$ of the matrix of embeddings, not centered, the largest first.  With
      $p = \sigma / \sum \sigma$ and its length r, ``spectral_decay`` is $KL(\text{uniform} \,\|\, p) = -\frac1r
      \sum_i \log(r\, p_i)$ (ρ of Roth et al. 2020; none is left out), zero if all directions are used alike, and
      ``effective_rank`` is $e^{-\sum_i p_i \log p_i}$ (Roy and Vetterli 2007);
    - ``density_intra``: the mean cosine distance $1 - x \cdot y$ of the pairs of a class, averaged over classes of at
      least two; ``density_inter``: that of the directions of the class means, over pairs of classes;
      ``density_ratio``: their quotient (π of Roth et al. 2020);
    - ``variance_share``: the share of the largest principal direction in the variance of the centered embeddings;
    - ``collapsed``: whether the mean of $\lVert x - y \rVert^2$ over pairs of two classes is below 0.02 (a mean cosine
      above 0.99), or there are four classes or more and ``variance_share`` is above 0.95.  Then a `CollapseWarning` is
      given as well.

    A mean over no pairs is ``None``.  A row of zeros has no direction and stays zero.

    Args:
        embeddings: floats ``(n, d)``, on any device.
        labels: integers ``(n,)``: any dtype, any ids.
        bins: of the histograms.
        memory: bytes that the pass over all pairs may take, beside one copy of the embeddings.

    Examples:
        >>> import torch
        >>> found = geometry(torch.eye(4)[[0, 0, 1, 1]], torch.tensor([7, 7, 8, 8]), bins=2)
        >>> found["intra"], found["inter"]
        (tensor([0, 2]), tensor([0, 4]))
        >>> found["intra_mean"], found["inter_mean"], found["alignment"], found["density_ratio"], found["collapsed"]
        (1.0, 0.0, 0.0, 0.0, False)
    """
    whole_number("bins", bins, 1)
    whole_number("memory", memory, 1)
    given = sides(embeddings, None, Cosine())
    classes = labels_from("labels", labels, len(given.queries), given.queries.device, "embeddings")
    # rows in the order of their classes: the pairs of one class stand together
    codes, order = torch.unique(classes, return_inverse=True)[1].sort(stable=True)
    rows = Rows(given.queries, order, Cosine(), given.dtype)
    rows.keep()
    points = rows.take(0, len(rows))
    with exactly(points):
        sums = _sums(points, codes)
        intra, inter, heat = _all_pairs(points, codes, bins, memory)
        singular, variances = _spectra(points, sums.total)
    pairs = len(points) * (len(points) - 1) // 2
    result = {
        "edges": torch.linspace(-1.0, 1.0, bins + 1, dtype=torch.float64),
        "intra": intra,
        "inter": inter,
        "intra_mean": _mean(sums.product_intra, sums.intra),
        "inter_mean": _mean(sums.product - sums.product_intra, pairs - sums.intra),
        "alignment": _mean(sums.distance_intra, sums.intra),
        "uniformity": log(heat / pairs) if pairs else None,
        **_spectrum(singular),
        **_density(sums),
        "variance_share": _share(variances, len(points)),
    }
    reason = _collapse(result, _mean(sums.distance - sums.distance_intra, pairs - sums.intra), sums.classes)
    if reason:
        warnings.warn(f"the embeddings have collapsed: {reason}", CollapseWarning, stacklevel=2)
    return {**result, "collapsed": bool(reason)}


def _mean(total: float, count: int) -> float | None:
    return total / count if count else None


@dataclass(frozen=True, eq=False)
class _Sums:
    """Sums over pairs that need no pairs: of products and of squared distances, from the sums of the classes."""

    classes: int
    several: int  # classes of at least two
    intra: int  # pairs of one class
    total: Tensor  # the sum of all rows
    product: float  # over all pairs
    product_intra: float
    distance: float
    distance_intra: float
    density_intra: float  # over classes of at least two, the mean distance of their pairs
    directions: Tensor  # the sum of the directions of the class means
    directions_square: float


def _sums(points: Tensor, codes: Tensor) -> _Sums:
    width = points.shape[1]
    total, directions = (torch.zeros(width, dtype=torch.float64, device=points.device) for _ in range(2))
    classes = several = intra = 0
    squares = product_intra = distance_intra = density_intra = directions_square = 0.0
    for table in _class_sums(points, codes):
        sums, square, size = table[:, :width], table[:, width], table[:, width + 1]
        # Σ over pairs of x·y is (‖Σ x‖² − Σ ‖x‖²) / 2, of ‖x − y‖² it is m Σ ‖x‖² − ‖Σ x‖²
        length = sums.square().sum(dim=1)
        products, pairs = (length - square) / 2.0, size * (size - 1.0) / 2.0
        means = products[size > 1.0] / pairs[size > 1.0]
        units = unit(sums)
        classes, several, intra = classes + len(table), several + len(means), intra + int(pairs.sum())
        total, directions = total + sums.sum(dim=0), directions + units.sum(dim=0)
        squares += float(square.sum())
        product_intra += float(products.sum())
        distance_intra += float((size * square - length).clamp_min(0.0).sum())
        density_intra += float((1.0 - means).clamp_min(0.0).sum())
        directions_square += float(units.square().sum())
    square_of_total = float(total.square().sum())
    return _Sums(
        classes=classes,
        several=several,
        intra=intra,
        total=total,
        product=(square_of_total - squares) / 2.0,
        product_intra=product_intra,
        distance=max(0.0, len(points) * squares - square_of_total),
        distance_intra=distance_intra,
        density_intra=density_intra,
        directions=directions,
        directions_square=directions_square,
    )


def _class_sums(points: Tensor, codes: Tensor) -> Iterator[Tensor]:
    """For each class its sum, the sum of its squares and its size, side by side in float64, a few classes at a time."""
    step = max(1, CHUNK // points.shape[1])
    unfinished = None
    for start in range(0, len(points), step):
        rows = points[start : start + step].double()
        sizes = torch.unique_consecutive(codes[start : start + step], return_counts=True)[1]
        rows = torch.cat([rows, rows.square().sum(dim=1, keepdim=True), torch.ones_like(rows[:, :1])], dim=1)
        index = torch.arange(len(rows), device=rows.device)
        table = torch.nn.functional.embedding_bag(index, rows, sizes.cumsum(0) - sizes, mode="sum")
        if unfinished is not None:
            if codes[start] == codes[start - 1]:
                table[0] += unfinished[0]
            else:
                table = torch.cat([unfinished, table])
        unfinished = table[-1:]
        if len(table) > 1:
            yield table[:-1]
    if unfinished is not None:
        yield unfinished


def _all_pairs(points: Tensor, codes: Tensor, bins: int, memory: int) -> tuple[Tensor, Tensor, float]:
    """Histograms of similarities within and between classes, and the sum of ``exp(−2 ‖x − y‖²)``, tile by tile."""
    count, device = len(points), points.device
    # similarities, distances, bins, two masks, and the wider numbers that are counted
    side = max(1, isqrt(memory // (2 * points.dtype.itemsize + 16)))
    # one bin more for what is no pair; pairs of two classes first, then those of one
    counts = torch.zeros(2, bins + 1, dtype=torch.int64, device=device)
    heat = torch.zeros((), dtype=torch.float64, device=device)
    squares = torch.linalg.vector_norm(points, dim=1).square()
    tiles = [(row, column) for row in range(0, count, side) for column in range(row, count, side)]
    for row, column in track(tiles, "pairs"):
        rows, columns = slice(row, min(row + side, count)), slice(column, min(column + side, count))
        similarities = points[rows] @ points[columns].T
        distances = (squares[rows, None] + squares[columns]).sub_(similarities, alpha=2.0).clamp_min_(0.0)
        numbers = similarities.add_(1.0).mul_(bins / 2.0).to(torch.int32).clamp_(0, bins - 1)
        if row == column:
            seen = torch.ones(numbers.shape, dtype=torch.bool, device=device).tril_()
            distances.masked_fill_(seen, torch.inf)
            numbers.masked_fill_(seen, bins)
        if codes[rows.stop - 1] >= codes[column]:  # codes are sorted: most tiles are of different classes throughout
            numbers.add_(codes[rows, None] == codes[columns], alpha=bins + 1)
        heat += distances.mul_(-2.0).exp_().sum(dim=1).sum(dtype=torch.float64)
        counts += torch.bincount(numbers.flatten(), minlength=counts.numel()).view_as(counts)
    inter, intra = counts[:, :bins].cpu()
    return intra, inter, float(heat)


def _spectra(points: Tensor, total: Tensor) -> tuple[Tensor, Tensor]:
    """Singular values, and variances along the principal directions of the centered rows, the largest first."""
    count, width = points.shape
    if count < width:
        gram = points.double() @ points.double().T
        shift = gram.mean(dim=0, keepdim=True)
        centered = gram - shift - shift.T + shift.mean()
    else:
        gram = torch.zeros(width, width, dtype=torch.float64, device=points.device)
        for rows in torch.split(points, max(1, CHUNK // width)):
            wide = rows.double()
            gram.addmm_(wide.T, wide)
        centered = gram - torch.outer(total, total / count)
    squares, variances = (torch.linalg.eigvalsh(each).flip(0).clamp_min(0.0).cpu() for each in (gram, centered))
    return squares.sqrt(), variances


def _spectrum(singular: Tensor) -> dict[str, Any]:
    largest = float(singular[0])
    # rows that are all zero use no direction, which is nearer to one than to many
    relative = singular / largest if largest else torch.eye(1, len(singular), dtype=torch.float64)[0]
    shares = relative / relative.sum()
    floored = relative.clamp_min(SMALLEST)
    floored = floored / floored.sum()
    return {
        "spectrum": singular,
        "spectral_decay": max(0.0, -float((floored * len(floored)).log().mean())),
        "effective_rank": exp(float(torch.special.entr(shares).sum())),
    }


def _density(sums: _Sums) -> dict[str, float | None]:
    pairs = sums.classes * (sums.classes - 1) // 2
    products = (float(sums.directions.square().sum()) - sums.directions_square) / 2.0
    intra = _mean(sums.density_intra, sums.several)
    inter = max(0.0, 1.0 - products / pairs) if pairs else None
    # class means that point the same way but for rounding have no distance to divide by
    ratio = intra / inter if intra is not None and inter is not None and inter > 1e-12 else None
    return {"density_intra": intra, "density_inter": inter, "density_ratio": ratio}


def _share(variances: Tensor, count: int) -> float | None:
    total = float(variances.sum())
    return float(variances[0]) / total if total > 1e-12 * count else None


def _collapse(result: dict[str, Any], distance: float | None, classes: int) -> str:
    """Why the embeddings count as collapsed; nothing if they do not."""
    if distance is not None and distance < ALIKE:
        return f"the mean squared distance between different classes is {distance:.2g}, so that all look alike"
    share = result["variance_share"]
    # three classes may well lie in a line, and on a line everything does
    if classes >= 4 and share is not None and share > ONE_DIRECTION and len(result["spectrum"]) > 1:
        return f"a single direction holds {share:.1%} of the variance"
    return ""
