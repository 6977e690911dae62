"""The source of a declaration's kernels: one that folds tiles, and one that writes gradients by similarities.

Both traverse the tiles of the matrix in the same way: the product on the tensor cores, the similarity, the curves.  The
first stores the state of each fold for each row of a tile, the second the gradient by each similarity.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from likewise.engines.triton.folds import FoldTemplate
from likewise.engines.triton.pooling import CENTER_SCALE, PoolTemplate
from likewise.engines.triton.printer import Writer
from likewise.engines.triton.tile_source import (
    ZEROS,
    KernelSpec,
    Pairing,
    Tiles,
    as_tile,
    choose_indent,
    fill_numbers,
    write_centers,
    write_head,
    write_leaves,
    write_masks,
)
from likewise.formula import Formula, Number, Side, derivative, is_condition, s


@dataclass(frozen=True, eq=False)
class TileFold:
    """One fold of a kernel.

    Args:
        fold: the template of the fold.
        over: the pairs that are folded.
        curve: the formula that is folded.
        by: the leaves of the curve that need a gradient.
    """

    fold: FoldTemplate
    over: Side
    curve: Formula
    by: tuple[Formula, ...] = ()

    @property
    def width(self) -> int:
        """The number of values that a kernel stores for each row of a tile."""
        return self.fold.width + len(self.by)

    @property
    def identity(self) -> list[float]:
        """The values of a row without pairs."""
        return [*self.fold.identity, *[0.0] * len(self.by)]


def _name_side(over: Side) -> str:
    return {Side.POSITIVES: "positive", Side.NEGATIVES: "negative", Side.BOTH: "(positive | negative)"}[over]


def _name_sides(pairing: Pairing) -> list[str]:
    """Return the sides to sum over; with codes a pair may be on both (contradictory triplets) and counts once for BOTH."""
    return [
        _name_side(over)
        for over in (
            (Side.POSITIVES, Side.NEGATIVES, Side.BOTH) if pairing.uses_codes else (Side.POSITIVES, Side.NEGATIVES)
        )
    ]


def write_fold_kernel(spec: KernelSpec, terms: list[TileFold], tiles: Tiles, *, triangular: bool = False) -> str:
    """Write the kernel that folds: it stores the state of every fold for each row of a tile.

    Args:
        spec: what the kernels have in common.
        terms: the folds.
        tiles: the tiles that the kernel processes.
        triangular: the references are the anchors: process the tiles on and above the diagonal, each as it is and
            mirrored, with square tiles.
    """
    plain, indent = tiles is Tiles.PLAIN, choose_indent(tiles)
    lines = write_head(spec, tiles, "likewise_fold", triangular=triangular)
    writer, similarity = Writer({}, indent, "v"), "s"
    stores: list[str] = []
    for mirrored in (False, True) if triangular else (False,):
        loads, names = write_leaves(spec, indent, mirrored)
        writer.lines += loads
        writer.names = {**names, s: similarity}
        if not mirrored:
            similarity = writer.names[s] = writer.value(spec.link)
            if not plain:
                for line in write_masks(spec.pairing):
                    writer.line(line)
        sides = _write_sides(writer, spec, plain)
        numbers = [number for term in terms for number in _write_fold(writer, term, sides, plain, mirrored)]
        stores += [indent + line for line in _store_states(numbers, mirrored, plain)]
    lines += [*writer.lines, *stores]
    return "\n".join(lines) + "\n"


def _store_states(numbers: list[str], mirrored: bool, plain: bool) -> list[str]:
    """Write the stores of a tile's states: those of its rows, or, mirrored, those of its columns as rows."""
    rows, tile = ("columns", "i") if mirrored else ("rows", "j")
    exists = "there" if mirrored else "here"
    if plain:
        exists = f"{rows} < tl.where(plain, m, 0)"
    elif mirrored:
        exists = "columns < tl.where(i == j, 0, m)"  # a tile on the diagonal is its own mirror
    place = f"place = out + ({tile} * {len(numbers)}).to(tl.int64) * m + {rows}"
    return [place, *[f"tl.store(place + {k} * m, {number}, mask={exists})" for k, number in enumerate(numbers)]]


def _empty_state(term: TileFold, mirrored: bool) -> list[str]:
    size = "BN" if mirrored else "BM"
    return [f"tl.full([{size}], {as_text(number)}, tl.float32)" for number in term.identity]


def as_text(number: float) -> str:
    """Write a number."""
    return repr(number) if math.isfinite(number) else f'float("{number}")'


def _write_sides(writer: Writer, spec: KernelSpec, plain: bool) -> dict[Side, str]:
    """Write the masks of positive and negative pairs after mining; an empty mask keeps every pair of the tile."""
    if plain:
        negative = "" if spec.keep is None else as_tile(writer, spec.keep[1])
        return {Side.NEGATIVES: negative, Side.BOTH: negative}
    positive, negative = "positive", "negative"
    if spec.keep is not None:
        positive, negative = (
            writer.write(f"{side} & {writer.value(condition)}")
            for side, condition in zip((positive, negative), spec.keep, strict=True)
        )
    return {Side.POSITIVES: positive, Side.NEGATIVES: negative, Side.BOTH: f"({positive} | {negative})"}


def _write_fold(writer: Writer, term: TileFold, sides: dict[Side, str], plain: bool, mirrored: bool) -> list[str]:
    if plain and term.over is Side.POSITIVES:
        return _empty_state(term, mirrored)
    keep, axis = sides[term.over], 0 if mirrored else 1
    counted = isinstance(term.curve, Number)
    value = "1.0" if counted and term.fold.weight_count == 0 else as_tile(writer, term.curve)
    if term.fold.weight_count == 0 and not (counted or is_condition(term.curve)):
        value = writer.write(f"{value} != 0.0")  # a number used as a condition
    keep = writer.write(keep) if keep else ""
    numbers, weight = term.fold.fold_tile(writer, value, keep or None, axis)
    for leaf in term.by:
        inner = as_tile(writer, derivative(term.curve, leaf))
        inner = inner if weight == "1.0" else f"{weight} * {inner}"
        # the weight of a pair that is not kept is zero already, except for a sum, whose weight is one everywhere
        masked = f"tl.where({keep}, {inner}, 0.0)" if keep else inner
        numbers.append(writer.write(f"tl.sum({masked}, axis={axis})"))
    return numbers


def write_gradient_kernel(
    spec: KernelSpec, terms: list[TileFold], by: Formula, tiles: Tiles, *, symmetric: bool, summands: int
) -> str:
    """Write the kernel that computes the gradient by each similarity, or by another leaf, of a rectangle.

    Args:
        spec: what the kernels have in common; the weights of each term are the last leaves.
        terms: the folds.
        by: `s`, or a value per reference or pair.
        tiles: the tiles that the kernel processes.
        symmetric: the references are the anchors: add the gradient of the mirrored pair.
        summands: the number of matrices whose sum is the gradient: each has the rounding errors of those before it.
    """
    plain, indent = tiles is Tiles.PLAIN, choose_indent(tiles)
    pool, in_chunks = spec.pool if by is s else None, spec.pool is None
    lines = write_head(spec, tiles, "likewise_gradient", for_gradient=pool is not None, in_chunks=in_chunks)
    indent += "    " if in_chunks else ""
    writer = Writer({}, indent, "v")
    weights = _weight_names(spec, terms)
    similarity, sums = "s", []
    for mirrored in [False, True] if symmetric else [False]:
        loads, names = write_leaves(spec, indent, mirrored)
        writer.lines += loads
        writer.names = {**names, s: similarity}
        if not mirrored:
            similarity = writer.names[s] = writer.value(spec.link)
            link_derivative = write_link_derivative(writer, spec.link, names) if by is s else "1.0"
            if not plain:
                for line in write_masks(spec.pairing):
                    writer.line(line)
        for over in ("negative",) if plain else _name_sides(spec.pairing):
            sums += _write_gradient(writer, spec, terms, by, over, plain, weights[mirrored])
    lines += writer.lines
    here = "(rows < tl.where(plain, m, 0))" if plain else "here"
    inside = f"{here}[:, None] & there[None, :]"
    factors = [] if link_derivative == "1.0" else [link_derivative]
    tail = [f"g = {' + '.join(sums) or ZEROS}"]
    if pool is not None:
        tail += [*[f"g = g * {factor}" for factor in factors], PLACE]
        tail += _write_center_gradients(spec, pool, inside, summands)
    else:
        tail += store_gradient(factors, inside, scaled=spec.scaled and by is s, summands=summands)
    return "\n".join(lines + [indent + line for line in tail]) + "\n"


def _write_center_gradients(spec: KernelSpec, pool: PoolTemplate, inside: str, summands: int) -> list[str]:
    """Write the gradients by the similarities to each center: a row has those of the first centers, then the second."""
    lines = list(pool.before_gradient)
    steps = write_centers(spec) if pool.repeats else []
    steps.append(f"value = {pool.share}")
    place, scale = "place + center * (n - first_column)", CENTER_SCALE if spec.scaled else ""
    steps += _store_gradient("value", place, inside, scale, summands)
    return fill_numbers(spec, pool, [*lines, f"for center in range({pool.centers}):", *[f"    {x}" for x in steps]])


PLACE = "place = (rows - first_row)[:, None].to(tl.int64) * stride + (columns - first_column)[None, :]"


def store_gradient(factors: list[str], inside: str, *, scaled: bool, summands: int) -> list[str]:
    """Write the lines that multiply the gradient ``g`` of a tile by factors and store it.

    Args:
        factors: names of factors.
        inside: the expression of the mask of pairs that are stored.
        scaled: multiply by the scales of both operands.
        summands: the number of matrices whose sum is the gradient: each has the rounding errors of those before it.
    """
    lines = [f"g = g * {factor}" for factor in factors]
    return [*lines, PLACE, *_store_gradient("g", "place", inside, "right_scale" if scaled else "", summands)]


def _store_gradient(value: str, place: str, inside: str, scale: str, summands: int) -> list[str]:
    """Write the stores of a gradient, rounded, and of what rounding leaves.

    With the scales of both operands, one matrix serves the gradients of both factors; each then divides by its own scale.
    """
    lines = [f"{value} = {value} * (left_scale * {scale})"] if scale else []
    for k, target in enumerate(("out", "second", "third")[:summands]):
        lines += [f"{value} = {value} - rounded.to(tl.float32)"] if k else []
        lines += [
            f"rounded = {value}.to(out.dtype.element_ty)",
            f"tl.store({target} + {place}, rounded, mask={inside})",
        ]
    return lines


def write_link_derivative(writer: Writer, link: Formula, names: dict[Formula, str]) -> str:
    """Write the derivative of the similarity by the product."""
    product_writer = Writer({**names, s: "s"}, writer.indent, "b")
    name = product_writer.value(derivative(link, s))
    writer.lines += product_writer.lines
    return name


def _weight_names(spec: KernelSpec, terms: list[TileFold]) -> dict[bool, list[list[str]]]:
    """Return the names of each term's weights, which are the last leaves, for both orientations."""
    result: dict[bool, list[list[str]]] = {}
    for mirrored in (False, True):
        prefix = "mirror" if mirrored else "value"
        k = len(spec.leaves) - sum(term.fold.weight_count for term in terms)
        result[mirrored] = []
        for term in terms:
            number = term.fold.weight_count
            result[mirrored].append([f"{prefix}{k + each}" for each in range(number)])
            k += number
    return result


def _write_gradient(
    writer: Writer,
    spec: KernelSpec,
    terms: list[TileFold],
    by: Formula,
    over: str,
    plain: bool,
    weights: list[list[str]],
) -> list[str]:
    """Write the gradient of the pairs of one side, as at most one masked sum."""
    sums = []
    for term, names in zip(terms, weights, strict=True):
        separate = spec.pairing.uses_codes or term.over is not Side.BOTH
        if not names or (separate and _name_side(term.over) != over):
            continue
        inner = derivative(term.curve, by)
        if isinstance(inner, Number) and inner.value == 0.0:
            continue
        value = writer.value(term.curve)
        factor = writer.write(term.fold.derivative(value, names))
        inner_name = writer.value(inner)
        sums.append(writer.write(f"{factor} * {inner_name}" if inner_name != "1.0" else factor))
    if not sums:
        return []
    total = writer.write(" + ".join(sums))
    mask = "" if plain else over
    if spec.keep is not None and over == _name_side(Side.BOTH):
        positives, negatives = (writer.value(condition) for condition in spec.keep)
        mask = f"(positive & {positives}) | (negative & {negatives})"
    elif spec.keep is not None:
        condition = spec.keep[over == "negative"]
        mask = as_tile(writer, condition) if plain else f"{over} & {writer.value(condition)}"
    return [writer.write(f"tl.where({mask}, {total}, 0.0)" if mask else f"{total} + {ZEROS}")]
