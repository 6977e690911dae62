"""The source of a declaration's kernels: one that folds tiles, and one that writes gradients by similarities.

Both traverse the tiles of the matrix in the same way: the product on the tensor cores, the similarity, the curves.  The
first stores the state of each fold for each row of a tile, the second the gradient by each similarity.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from likewise.engines.triton.folds import FoldTemplate
from likewise.engines.triton.pooling import CENTER_SCALE, PoolTemplate
from likewise.engines.triton.printer import Leaf, Writer, varies_by_pair
from likewise.formula import Formula, Number, Side, derivative, is_condition, s

TILE, INSIDE = " " * 8, " " * 12


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


class Pairing(NamedTuple):
    """How a kernel determines which pairs are positive and negative.

    Args:
        uses_codes: from a matrix of codes, 1 for positive and 2 for negative, instead of labels.
        same_batch: the references are the anchors, in the same order.
        own: indices tell which reference is the anchor itself.
        valid: some references do not exist.
    """

    uses_codes: bool = False
    same_batch: bool = False
    own: bool = False
    valid: bool = False


@dataclass(frozen=True, eq=False)
class KernelSpec:
    """The properties that the kernels of a batch share.

    Args:
        leaves: the arguments of the formulas.
        link: the similarity as a formula of the product.
        keep: the miner's conditions for positives and negatives.
        pairing: how positive and negative pairs are determined.
        scaled: multiply products by a factor per row and column.
        pool: how the centers of a class are pooled; ``None`` if a column is a reference.
    """

    leaves: tuple[Leaf, ...]
    link: Formula
    keep: tuple[Formula, Formula] | None
    pairing: Pairing
    scaled: bool
    pool: PoolTemplate | None = None


ARGUMENTS = (
    "A, R, row_scale, column_scale, row_label, column_label, row_id, column_id, valid, codes, out, second, third, "
    "first_row, m, first_column, n, code_stride, stride"
)
CONSTANTS = (
    "D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr, "
    "PRECISION: tl.constexpr, PROGRAMS: tl.constexpr, CHUNKS: tl.constexpr, FLAT: tl.constexpr, WIDE: tl.constexpr"
)

PLACES = (
    "rows, columns = top + tl.arange(0, BM), near + tl.arange(0, BN)",
    "here, there = rows < m, columns < n",
)
"""The rows and columns of a tile, and which of them exist."""

ZEROS = "tl.zeros([BM, BN // CHUNKS], tl.float32)"
"""Zeros of the size of a tile, or of a chunk of its columns."""

PLACE = "place = (rows - first_row)[:, None].to(tl.int64) * stride + (columns - first_column)[None, :]"
LANES = 4
"""Programs that share the mixed tiles of one row of tiles."""
RECTANGLE, TRIANGLE = "row_tiles * column_tiles", "tl.cdiv(row_tiles, 2) * (row_tiles + 1)"
"""The number of tiles of a rectangle, and of those on and above the diagonal of a square."""


class Tiles(Enum):
    """The tiles that a kernel processes.

    In a batch that is sorted by label, a tile has positives only if the label ranges of its rows and columns overlap.  All
    other tiles contain only negatives and do not need masks: a separate kernel without branches processes them, at the
    speed of a plain product.  The remaining tiles, including those that cross the edge of the matrix, are few: another
    kernel finds those of each row of tiles by bisection, because visiting all tiles takes longer than their products.
    """

    ALL = "all"
    PLAIN = "negatives only"
    MIXED = "all others"


def write_head(
    spec: KernelSpec,
    tiles: Tiles,
    name: str,
    *,
    branches: bool = False,
    upper: bool = False,
    for_gradient: bool = False,
    in_chunks: bool = False,
    triangular: bool = False,
) -> list[str]:
    """Write the loop over tiles, up to the product of each pair.

    Args:
        spec: what the kernels have in common.
        tiles: the tiles that the kernel processes.
        name: of the kernel, which profilers show; that of mixed tiles gets a suffix.
        branches: skip the other tiles in the kernel of plain tiles, whose loops are not flattened then.
        upper: with branches, skip also the tiles below the diagonal.
        for_gradient: remember of each center what its gradient needs.
        in_chunks: process the columns of a tile in ``CHUNKS`` chunks, one after the other; the lines that follow are those of
            a loop, indented by four more spaces.
        triangular: only the tiles on and above the diagonal, of a square that has square tiles.
    """
    numbers = "".join(f", leaf{k}" for k in range(len(spec.leaves)))
    suffix = "_mixed" if tiles is Tiles.MIXED else ""
    lines = [
        "@triton.jit",
        f"def {name}{suffix}({ARGUMENTS}{numbers}, {CONSTANTS}):",
        "    row_tiles, column_tiles = tl.cdiv(m - first_row, BM), tl.cdiv(n - first_column, BN)",
    ]
    if tiles is Tiles.MIXED:
        lines += _mixed_loop(triangular or upper)
    else:
        flat = "" if branches or spec.pool is not None else ", flatten=FLAT"
        lines += _loop(tiles, triangular, flat)
        if branches:
            wanted = "plain" if tiles is Tiles.PLAIN else "(near < n)"
            lines.append(f"{TILE}if {wanted} & (near + BN > top):" if upper else f"{TILE}if {wanted}:")
    product = [
        *PLACES,
        "a_rows, a_columns = tl.where(here, rows, 0), tl.where(there, columns, 0)",
        "if WIDE:",
        "    a_rows, a_columns = a_rows.to(tl.int64), a_columns.to(tl.int64)",
    ]
    if spec.scaled:
        product.append("left_scale = tl.load(row_scale + rows, mask=here, other=0.0)[:, None]")
    if spec.pool is not None:
        product += _pool_lines(spec, spec.pool, for_gradient)
    else:
        product += _product_lines(spec, in_chunks)
    indent = INSIDE if branches else choose_indent(tiles)
    return lines + [indent + line for line in product]


def _loop(tiles: Tiles, triangular: bool, flat: str) -> list[str]:
    """Write the loop over all tiles, and which of them contain only negatives."""
    body = [
        f"i, j = {'_place_above(tile, row_tiles' if triangular else '_place(tile, row_tiles, column_tiles'}, GROUP)",
        "top, near = first_row + i * BM, first_column + j * BN",
    ]
    if tiles is Tiles.PLAIN:
        body += [
            "bottom, far = tl.minimum(top + BM, m) - 1, tl.minimum(near + BN, n) - 1",
            "apart = (tl.load(column_label + far) < tl.load(row_label + top))"
            " | (tl.load(column_label + near) > tl.load(row_label + bottom))",
            "plain = apart & (top + BM <= m) & (near + BN <= n)",
        ]
    every = f"tl.range(tl.program_id(0), {TRIANGLE if triangular else RECTANGLE}, PROGRAMS{flat})"
    return [f"    for tile in {every}:", *[TILE + line for line in body]]


def _mixed_loop(upper: bool) -> list[str]:
    """Write the loops over the mixed tiles of each row of tiles; upper: without those below the diagonal."""
    # the lines that follow must not change the names of the outer loop, because a program may process several tiles
    body = [
        f"top = first_row + lane // {LANES} * BM",
        "i = (top - first_row) // BM",
        "first_mixed, end_mixed = _find_mixed(row_label, column_label, top, m, first_column, n, BM, BN)",
        *(["first_mixed = tl.maximum(first_mixed, (top - first_column) // BN)"] if upper else ()),
        "mixed_tiles = tl.maximum(end_mixed - first_mixed, 0)",
        "last_crosses = (end_mixed < column_tiles) & (first_column + column_tiles * BN > n)",
        "number_of_tiles = tl.where(last_crosses, mixed_tiles + 1, mixed_tiles)",
        f"for tile in tl.range(lane % {LANES}, number_of_tiles, {LANES}):",
        "    j = tl.where(tile < mixed_tiles, first_mixed + tile, column_tiles - 1)",
        "    near = first_column + j * BN",
    ]
    every = f"tl.range(tl.program_id(0), row_tiles * {LANES}, PROGRAMS)"
    return [f"    for lane in {every}:", *[TILE + line for line in body]]


def _product_lines(spec: KernelSpec, in_chunks: bool) -> list[str]:
    """Write the product of each pair of a tile, or the loop over the chunks of a tile up to it."""
    lines = ["s = _product(A, R, a_rows, a_columns, D, BM, BN, BK, PRECISION)"]
    scale = [
        "right_scale = tl.load(column_scale + columns, mask=there, other=0.0)[None, :]",
        "s = s * (left_scale * right_scale)",
    ]
    if not in_chunks:
        return [*lines, *(scale if spec.scaled else ())]
    chunk = [
        "s = _take_chunk(products, chunk, CHUNKS, BM, BN)",
        "columns = near + chunk * (BN // CHUNKS) + tl.arange(0, BN // CHUNKS)",
        "there = columns < n",
        *(scale if spec.scaled else ()),
    ]
    return [*lines, "products = s", "for chunk in tl.static_range(CHUNKS):", *[f"    {line}" for line in chunk]]


def _pool_lines(spec: KernelSpec, pool: PoolTemplate, for_gradient: bool) -> list[str]:
    """Write the loop over the centers of a tile's classes, which pools their similarities."""
    inside = [*_center_lines(spec), *(pool.remember if for_gradient else ()), *pool.step]
    lines = [*pool.start, f"for center in range({pool.centers}):", *[f"    {line}" for line in inside], *pool.finish]
    return _fill_numbers(spec, pool, lines)


def _center_lines(spec: KernelSpec) -> list[str]:
    """Write the similarities ``t`` to one center of each class."""
    lines = ["t = _product(A, R, a_rows, a_columns + center * code_stride, D, BM, BN, BK, PRECISION)"]
    return [*lines, f"t = t * (left_scale * {CENTER_SCALE})"] if spec.scaled else lines


def _fill_numbers(spec: KernelSpec, pool: PoolTemplate, lines: list[str]) -> list[str]:
    names = {leaf.node: f"leaf{k}" for k, leaf in enumerate(spec.leaves)}
    writer = Writer(names, "", "n")
    numbers = [writer.value(number) for number in pool.numbers]
    return [line.format(*numbers) for line in lines]


def _write_center_gradients(spec: KernelSpec, pool: PoolTemplate, inside: str, summands: int) -> list[str]:
    """Write the gradients by the similarities to each center: a row has those of the first centers, then the second."""
    lines = list(pool.before_gradient)
    steps = _center_lines(spec) if pool.repeats else []
    steps.append(f"value = {pool.share}")
    place, scale = "place + center * (n - first_column)", CENTER_SCALE if spec.scaled else ""
    steps += _store_gradient("value", place, inside, scale, summands)
    return _fill_numbers(spec, pool, [*lines, f"for center in range({pool.centers}):", *[f"    {x}" for x in steps]])


def choose_indent(tiles: Tiles) -> str:
    """Return the indentation of the lines that process a tile, without branches in the kernel of plain tiles."""
    return INSIDE if tiles is Tiles.MIXED else TILE


def write_leaves(spec: KernelSpec, indent: str, mirrored: bool) -> tuple[list[str], dict[Formula, str]]:
    """Write the loads of leaves; mirrored: with references as anchors."""
    lines, names = [], {}
    for k, leaf in enumerate(spec.leaves):
        name = f"{'mirror' if mirrored else 'value'}{k}"
        if leaf.kind == "number":
            names[leaf.node] = f"leaf{k}"
            continue
        if leaf.kind == "scalar":
            load = f"tl.load(leaf{k})"
        elif leaf.kind == "pair":
            assert not mirrored, "a number per pair has no mirror"
            place = "rows[:, None].to(tl.int64) * code_stride + columns[None, :]"
            load = f"tl.load(leaf{k} + {place}, mask=here[:, None] & there[None, :], other=0.0)"
        elif (leaf.kind == "column") != mirrored:
            load = f"tl.load(leaf{k} + columns, mask=there, other=0.0)[None, :]"
        else:
            load = f"tl.load(leaf{k} + rows, mask=here, other=0.0)[:, None]"
        lines.append(f"{indent}{name} = {load}")
        names[leaf.node] = name
    return lines, names


def write_masks(pairing: Pairing) -> list[str]:
    """Write the masks of positive and negative pairs, for tiles that have both or that cross the edge."""
    if pairing.uses_codes:
        return [
            "inside = here[:, None] & there[None, :]",
            "place = rows[:, None].to(tl.int64) * code_stride + columns[None, :]",
            "code = tl.load(codes + place, mask=inside, other=0)",
            "positive, negative = (code & 1) != 0, (code & 2) != 0",
        ]
    lines = ["inside = here[:, None] & there[None, :]"]
    if pairing.valid:
        lines.append("inside = inside & (tl.load(valid + columns, mask=there, other=0) != 0)[None, :]")
    lines += [
        "row_labels = tl.load(row_label + rows, mask=here, other=0)[:, None]",
        "column_labels = tl.load(column_label + columns, mask=there, other=0)[None, :]",
        "positive, negative = (row_labels == column_labels) & inside, (row_labels != column_labels) & inside",
    ]
    if pairing.same_batch:
        lines.append("positive = positive & (rows[:, None] != columns[None, :])")
    if pairing.own:
        lines += [
            "own = tl.load(row_id + rows, mask=here, other=-1)",
            "identity = tl.load(column_id + columns, mask=there, other=-2)",
            "positive = positive & (own[:, None] != identity[None, :])",
        ]
    return lines


def as_tile(writer: Writer, formula: Formula) -> str:
    """Write a formula, broadcast to a tile."""
    name = writer.value(formula)
    if varies_by_pair(formula):
        return name
    return writer.write(f"{name} & ({ZEROS} == 0.0)" if is_condition(formula) else f"{name} + {ZEROS}")


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
