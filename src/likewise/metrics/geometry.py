"""Geometry of an embedding: compactness and separation of classes, spectrum, and collapse."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from math import exp, log
from typing import Any

import torch
from torch import Tensor

from likewise.formula import Cosine, unit, whole_number
from likewise.metrics.arrays import Array, check_embeddings, check_labels
from likewise.metrics.chunks import MEMORY, fit_rows, split_pairs, split_rows
from likewise.metrics.precision import exact_precision
from likewise.metrics.prepared_rows import PreparedRows
from likewise.progress import track

MIN_DISTANCE = 0.02
"""Embeddings are collapsed below this mean squared distance between classes, which is a mean cosine above 0.99."""

MAX_VARIANCE_SHARE = 0.95
"""Embeddings of four or more classes are collapsed above this fraction of the variance in a single direction."""

CHUNK_ENTRIES = 2**19
"""Entries of embeddings that are summed in float64 at once."""

MIN_SINGULAR_VALUE = 2.0**-23
"""Singular values below this fraction of the largest one are rounding errors and are replaced by this fraction."""


class CollapseWarning(UserWarning):
    """The embeddings have collapsed: all are nearly equal, or all lie along one line.

    Examples:
        >>> import torch, warnings
        >>> with warnings.catch_warnings(record=True) as caught:
        ...     warnings.simplefilter("always")
        ...     result = geometry(torch.ones(4, 2), torch.tensor([0, 0, 1, 1]))
        >>> caught[0].category.__name__
        'CollapseWarning'
    """


def geometry(embeddings: Array, labels: Array, *, bins: int = 100, memory: int = MEMORY) -> dict[str, Any]:
    r"""Describe the geometry of unit-normalized embeddings x: similarities of classes, spectrum, collapse.

    A pair is an unordered pair of different samples and is counted once.

    - ``edges``, ``intra``, ``inter``: counts of the cosine similarities of pairs of one class and of two classes in
      ``bins`` equal intervals of [−1, 1], each closed below and the last one closed above; ``intra_mean``,
      ``inter_mean``: their means;
    - ``alignment``: the mean of $\lVert x - y \rVert^2$ over pairs of one class, and ``uniformity``: the logarithm of
      the mean of $e^{-2 \lVert x - y \rVert^2}$ over all pairs (Wang and Isola 2020, α = t = 2); lower is better;
    - ``spectrum``: the singular values $\sigma$ of the matrix of embeddings, not centered, the largest first.  With
      $p = \sigma / \sum \sigma$ and its length r, ``spectral_decay`` is $KL(\text{uniform} \,\|\, p) = -\frac1r
      \sum_i \log(r\, p_i)$ (ρ of Roth et al. 2020, with all singular values), zero if all directions are
      used equally, and ``effective_rank`` is $e^{-\sum_i p_i \log p_i}$ (Roy and Vetterli 2007);
    - ``density_intra``: the mean cosine distance $1 - x \cdot y$ of the pairs of a class, averaged over classes of at
      least two samples; ``density_inter``: the mean cosine distance of the class means, over pairs of classes;
      ``density_ratio``: their quotient (π of Roth et al. 2020);
    - ``variance_share``: the fraction of the variance of the centered embeddings along the first principal direction;
    - ``collapsed``: whether the mean of $\lVert x - y \rVert^2$ over pairs of two classes is below 0.02 (a mean cosine
      above 0.99), or there are four classes or more and ``variance_share`` is above 0.95.  A `CollapseWarning` is
      issued in this case.

    A mean over zero pairs is ``None``.  A row of zeros has no direction and stays zero.

    Args:
        embeddings: floats ``(n, d)``, on any device.
        labels: integers ``(n,)``: any dtype, any ids.
        bins: the number of bins of the histograms.
        memory: bytes that the pass over all pairs may take, in addition to one copy of the embeddings.

    Returns:
        The values above, by name.

    Examples:
        >>> import torch
        >>> result = geometry(torch.eye(4)[[0, 0, 1, 1]], torch.tensor([7, 7, 8, 8]), bins=2)
        >>> result["intra"], result["inter"]
        (tensor([0, 2]), tensor([0, 4]))
        >>> result["intra_mean"], result["inter_mean"], result["alignment"], result["density_ratio"]
        (1.0, 0.0, 0.0, 0.0)
        >>> result["collapsed"]
        False
    """
    whole_number("bins", bins, 1)
    whole_number("memory", memory, 1)
    checked = check_embeddings(embeddings, None, Cosine())
    classes = check_labels("labels", labels, len(checked.queries), checked.queries.device, "embeddings")
    # rows are sorted by class, so that the rows of one class are neighbors
    codes, order = torch.unique(classes, return_inverse=True)[1].sort(stable=True)
    rows = PreparedRows(checked.queries, order, Cosine(), checked.dtype)
    rows.cache()
    points = rows.take(0, len(rows))
    with exact_precision(points):
        sums = _sum_classes(points, codes)
        intra, inter, kernel_sum = _count_pairs(points, codes, bins, memory)
        singular, variances = _compute_spectra(points, sums.total)
    pairs = len(points) * (len(points) - 1) // 2
    result = {
        "edges": torch.linspace(-1.0, 1.0, bins + 1, dtype=torch.float64),
        "intra": intra,
        "inter": inter,
        "intra_mean": _mean(sums.product_intra, sums.intra),
        "inter_mean": _mean(sums.product - sums.product_intra, pairs - sums.intra),
        "alignment": _mean(sums.distance_intra, sums.intra),
        "uniformity": log(kernel_sum / pairs) if pairs else None,
        **_describe_spectrum(singular),
        **_compute_density(sums),
        "variance_share": _largest_share(variances, len(points)),
    }
    reason = _explain_collapse(result, _mean(sums.distance - sums.distance_intra, pairs - sums.intra), sums.classes)
    if reason:
        warnings.warn(f"the embeddings have collapsed: {reason}", CollapseWarning, stacklevel=2)
    return {**result, "collapsed": bool(reason)}


def _mean(total: float, count: int) -> float | None:
    return total / count if count else None


@dataclass(frozen=True, eq=False)
class _Sums:
    """Sums of products and of squared distances over pairs, computed from class sums without a pass over pairs."""

    classes: int
    classes_with_pairs: int  # classes of at least two samples
    intra: int  # pairs of one class
    total: Tensor  # the sum of all rows
    product: float  # over all pairs
    product_intra: float
    distance: float
    distance_intra: float
    density_intra: float  # the sum of the mean distances of pairs, over classes of at least two samples
    directions: Tensor  # the sum of the directions of the class means
    directions_square: float


def _sum_classes(points: Tensor, codes: Tensor) -> _Sums:
    width = points.shape[1]
    total, directions = (torch.zeros(width, dtype=torch.float64, device=points.device) for _ in range(2))
    classes = classes_with_pairs = intra = 0
    squares = product_intra = distance_intra = density_intra = directions_square = 0.0
    for table in _iterate_class_sums(points, codes):
        sums, square, size = table[:, :width], table[:, width], table[:, width + 1]
        # Σ over pairs of x·y is (‖Σ x‖² − Σ ‖x‖²) / 2, of ‖x − y‖² it is m Σ ‖x‖² − ‖Σ x‖²
        length = sums.square().sum(dim=1)
        products, pairs = (length - square) / 2.0, size * (size - 1.0) / 2.0
        means = products[size > 1.0] / pairs[size > 1.0]
        units = unit(sums)
        classes, intra = classes + len(table), intra + int(pairs.sum())
        classes_with_pairs += len(means)
        total, directions = total + sums.sum(dim=0), directions + units.sum(dim=0)
        squares += float(square.sum())
        product_intra += float(products.sum())
        distance_intra += float((size * square - length).clamp_min(0.0).sum())
        density_intra += float((1.0 - means).clamp_min(0.0).sum())
        directions_square += float(units.square().sum())
    square_of_total = float(total.square().sum())
    return _Sums(
        classes=classes,
        classes_with_pairs=classes_with_pairs,
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


def _iterate_class_sums(points: Tensor, codes: Tensor) -> Iterator[Tensor]:
    """Yield tables of a few classes in float64 with the columns sum of rows, sum of squares, and size."""
    last = None  # the last class of a chunk may continue in the next one
    for chunk in split_rows(len(points), fit_rows(CHUNK_ENTRIES, per_row=points.shape[1])):
        rows = points[chunk].double()
        sizes = torch.unique_consecutive(codes[chunk], return_counts=True)[1]
        rows = torch.cat([rows, rows.square().sum(dim=1, keepdim=True), torch.ones_like(rows[:, :1])], dim=1)
        index = torch.arange(len(rows), device=rows.device)
        table = torch.nn.functional.embedding_bag(index, rows, sizes.cumsum(0) - sizes, mode="sum")
        if last is not None:
            if codes[chunk.start] == codes[chunk.start - 1]:
                table[0] += last[0]
            else:
                table = torch.cat([last, table])
        last = table[-1:]
        if len(table) > 1:
            yield table[:-1]
    if last is not None:
        yield last


def _count_pairs(points: Tensor, codes: Tensor, bins: int, memory: int) -> tuple[Tensor, Tensor, float]:
    """Histograms of similarities within and between classes, and the sum of ``exp(−2 ‖x − y‖²)``, chunk by chunk."""
    count, device = len(points), points.device
    # similarities, distances, bin numbers, two masks, and the int64 numbers that bincount takes
    size = fit_rows(memory, per_pair=2 * points.dtype.itemsize + 16)
    # one extra bin for entries that are not pairs; pairs of two classes first, then pairs of one class
    counts = torch.zeros(2, bins + 1, dtype=torch.int64, device=device)
    kernel_sum = torch.zeros((), dtype=torch.float64, device=device)
    squares = torch.linalg.vector_norm(points, dim=1).square()
    for rows, columns in track(split_pairs(count, count, size, upper=True), "pairs"):
        similarities = points[rows] @ points[columns].T
        distances = (squares[rows, None] + squares[columns]).sub_(similarities, alpha=2.0).clamp_min_(0.0)
        numbers = similarities.add_(1.0).mul_(bins / 2.0).to(torch.int32).clamp_(0, bins - 1)
        if rows == columns:
            not_pair = torch.ones(numbers.shape, dtype=torch.bool, device=device).tril_()
            distances.masked_fill_(not_pair, torch.inf)
            numbers.masked_fill_(not_pair, bins)
        # codes are sorted, so most chunks hold no pair of one class
        if codes[rows.stop - 1] >= codes[columns.start]:
            numbers.add_(codes[rows, None] == codes[columns], alpha=bins + 1)
        kernel_sum += distances.mul_(-2.0).exp_().sum(dim=1).sum(dtype=torch.float64)
        counts += torch.bincount(numbers.flatten(), minlength=counts.numel()).view_as(counts)
    inter, intra = counts[:, :bins].cpu()
    return intra, inter, float(kernel_sum)


def _compute_spectra(points: Tensor, total: Tensor) -> tuple[Tensor, Tensor]:
    """Singular values, and variances of the centered rows along the principal directions, in descending order."""
    count, width = points.shape
    if count < width:
        gram = points.double() @ points.double().T
        shift = gram.mean(dim=0, keepdim=True)
        centered = gram - shift - shift.T + shift.mean()
    else:
        gram = torch.zeros(width, width, dtype=torch.float64, device=points.device)
        for rows in torch.split(points, fit_rows(CHUNK_ENTRIES, per_row=width)):
            wide = rows.double()
            gram.addmm_(wide.T, wide)
        centered = gram - torch.outer(total, total / count)
    squares, variances = (torch.linalg.eigvalsh(each).flip(0).clamp_min(0.0).cpu() for each in (gram, centered))
    return squares.sqrt(), variances


def _describe_spectrum(singular: Tensor) -> dict[str, Any]:
    largest = float(singular[0])
    # all rows are zero and span no direction; they are treated as if they spanned one
    relative = singular / largest if largest else torch.eye(1, len(singular), dtype=torch.float64)[0]
    shares = relative / relative.sum()
    floored = relative.clamp_min(MIN_SINGULAR_VALUE)
    floored = floored / floored.sum()
    return {
        "spectrum": singular,
        "spectral_decay": max(0.0, -float((floored * len(floored)).log().mean())),
        "effective_rank": exp(float(torch.special.entr(shares).sum())),
    }


def _compute_density(sums: _Sums) -> dict[str, float | None]:
    pairs = sums.classes * (sums.classes - 1) // 2
    products = (float(sums.directions.square().sum()) - sums.directions_square) / 2.0
    intra = _mean(sums.density_intra, sums.classes_with_pairs)
    inter = max(0.0, 1.0 - products / pairs) if pairs else None
    # class means that differ only by rounding have no distance to divide by
    ratio = intra / inter if intra is not None and inter is not None and inter > 1e-12 else None
    return {"density_intra": intra, "density_inter": inter, "density_ratio": ratio}


def _largest_share(variances: Tensor, count: int) -> float | None:
    total = float(variances.sum())
    return float(variances[0]) / total if total > 1e-12 * count else None


def _explain_collapse(result: dict[str, Any], distance: float | None, classes: int) -> str:
    """Return the reason why the embeddings are collapsed; empty if they are not."""
    if distance is not None and distance < MIN_DISTANCE:
        return f"the mean squared distance between different classes is {distance:.2g}, so that all look alike"
    share = result["variance_share"]
    # three classes may lie on a line without a collapse, and in one dimension all embeddings do
    if classes >= 4 and share is not None and share > MAX_VARIANCE_SHARE and len(result["spectrum"]) > 1:
        return f"a single direction holds {share:.1%} of the variance"
    return ""
