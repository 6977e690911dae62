"""The source that the kernels of a declaration share: the loop over tiles, the product of each pair, and its masks."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from likewise.engines.triton.pooling import CENTER_SCALE, PoolTemplate
from likewise.engines.triton.printer import Leaf, Writer, varies_by_pair
from likewise.formula import Formula, is_condition

TILE, INSIDE = " " * 8, " " * 12


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
    inside = [*write_centers(spec), *(pool.remember if for_gradient else ()), *pool.step]
    lines = [*pool.start, f"for center in range({pool.centers}):", *[f"    {line}" for line in inside], *pool.finish]
    return fill_numbers(spec, pool, lines)


def write_centers(spec: KernelSpec) -> list[str]:
    """Write the similarities ``t`` to one center of each class."""
    lines = ["t = _product(A, R, a_rows, a_columns + center * code_stride, D, BM, BN, BK, PRECISION)"]
    return [*lines, f"t = t * (left_scale * {CENTER_SCALE})"] if spec.scaled else lines


def fill_numbers(spec: KernelSpec, pool: PoolTemplate, lines: list[str]) -> list[str]:
    """Write the numbers of a pool into lines."""
    names = {leaf.node: f"leaf{k}" for k, leaf in enumerate(spec.leaves)}
    writer = Writer(names, "", "n")
    numbers = [writer.value(number) for number in pool.numbers]
    return [line.format(*numbers) for line in lines]


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
