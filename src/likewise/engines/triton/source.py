"""The kernels of a declaration, as source: one that folds tiles, one that writes the slopes of tiles.

Both walk over the tiles of the matrix in the same way: the product on the tensor cores, the similarity, the curves.  The
first leaves the state of each fold for each row of a tile, the second the gradient by each similarity.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from likewise.engines.triton.text import Leaf, Writer, holds, varies
from likewise.engines.triton.tiles import Tiled
from likewise.formula import Formula, Number, Side, derivative, s

TILE, INSIDE = " " * 8, " " * 12


@dataclass(frozen=True, eq=False)
class TileFold:
    """One fold of a kernel.

    Args:
        fold: the fold.
        over: which pairs.
        curve: of what.
        by: the leaves of the curve that a gradient goes through.
    """

    fold: Tiled
    over: Side
    curve: Formula
    by: tuple[Formula, ...] = ()

    @property
    def width(self) -> int:
        """How many numbers are left of each row of a tile."""
        return self.fold.width + len(self.by)


class Pairing(NamedTuple):
    """How a kernel knows who is positive to whom.

    Args:
        coded: from a matrix of codes, 1 for positive and 2 for negative, in place of labels.
        itself: the references are the anchors, in the same order.
        own: an anchor has a reference that is itself, and it is said which.
        valid: some references do not exist.
    """

    coded: bool = False
    itself: bool = False
    own: bool = False
    valid: bool = False


@dataclass(frozen=True, eq=False)
class Recipe:
    """What kernels are generated from.

    Args:
        leaves: what the formulas are given.
        bend: the similarity as a formula of the product.
        keep: the miner's conditions for positives and negatives.
        pairing: how pairs are known.
        scaled: products are to be multiplied by a number per row and column.
    """

    leaves: tuple[Leaf, ...]
    bend: Formula
    keep: tuple[Formula, Formula] | None
    pairing: Pairing
    scaled: bool


ARGUMENTS = (
    "A, R, row_scale, column_scale, row_label, column_label, row_id, column_id, valid, codes, out, rest, "
    "first_row, m, first_column, n, code_stride, stride"
)
CONSTANTS = (
    "D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr, "
    "PRECISION: tl.constexpr, PROGRAMS: tl.constexpr, WIDE: tl.constexpr"
)


class Tiles(Enum):
    """Which tiles a kernel takes.

    In a batch in the order of its labels a tile has positives only where the labels of its rows and columns meet.  All
    others have negatives alone and need no masks: a kernel of their own, without a branch, takes them, at the speed of a
    bare product.  What is left, and what reaches over the edge, is little.
    """

    ALL = "all"
    PLAIN = "negatives alone"
    MIXED = "all others"


def _head(recipe: Recipe, tiles: Tiles) -> list[str]:
    """The walk over tiles, up to the similarity of each pair."""
    numbers = "".join(f", leaf{k}" for k in range(len(recipe.leaves)))
    flat = "" if tiles is Tiles.MIXED else ", flatten=True"
    lines = [
        "@triton.jit",
        f"def kernel({ARGUMENTS}{numbers}, {CONSTANTS}):",
        "    row_tiles, column_tiles = tl.cdiv(m - first_row, BM), tl.cdiv(n - first_column, BN)",
        f"    for tile in tl.range(tl.program_id(0), row_tiles * column_tiles, PROGRAMS{flat}):",
    ]
    body = [
        "i, j = _place(tile, row_tiles, column_tiles, GROUP)",
        "top, near = first_row + i * BM, first_column + j * BN",
        "rows, columns = top + tl.arange(0, BM), near + tl.arange(0, BN)",
        "here, there = rows < m, columns < n",
    ]
    if tiles is not Tiles.ALL:
        body += [
            "bottom, far = tl.minimum(top + BM, m) - 1, tl.minimum(near + BN, n) - 1",
            "apart = (tl.load(column_label + far) < tl.load(row_label + top))"
            " | (tl.load(column_label + near) > tl.load(row_label + bottom))",
            "plain = apart & (top + BM <= m) & (near + BN <= n)",
        ]
    product = [
        "a_rows, a_columns = tl.where(here, rows, 0), tl.where(there, columns, 0)",
        "if WIDE:",
        "    a_rows, a_columns = a_rows.to(tl.int64), a_columns.to(tl.int64)",
        "s = _product(A, R, a_rows, a_columns, D, BM, BN, BK, PRECISION)",
    ]
    if recipe.scaled:
        product += [
            "right_scale = tl.load(column_scale + columns, mask=there, other=0.0)[None, :]",
            "left_scale = tl.load(row_scale + rows, mask=here, other=0.0)[:, None]",
            "s = s * (left_scale * right_scale)",
        ]
    lines += [TILE + line for line in body]
    if tiles is Tiles.MIXED:
        lines.append(TILE + "if not plain:")
    return lines + [_indent(tiles) + line for line in product]


def _indent(tiles: Tiles) -> str:
    return INSIDE if tiles is Tiles.MIXED else TILE


def _leaf_lines(recipe: Recipe, indent: str, mirrored: bool) -> tuple[list[str], dict[Formula, str]]:
    """Load what formulas are given; mirrored: the numbers of the column's own sample, as if it were the anchor."""
    lines, names = [], {}
    for k, leaf in enumerate(recipe.leaves):
        name = f"{'mirror' if mirrored else 'given'}{k}"
        if leaf.kind == "number":
            names[leaf.node] = f"leaf{k}"
            continue
        if leaf.kind == "scalar":
            load = f"tl.load(leaf{k})"
        elif (leaf.kind == "column") != mirrored:
            load = f"tl.load(leaf{k} + columns, mask=there, other=0.0)[None, :]"
        else:
            load = f"tl.load(leaf{k} + rows, mask=here, other=0.0)[:, None]"
        lines.append(f"{indent}{name} = {load}")
        names[leaf.node] = name
    return lines, names


def _masks(pairing: Pairing) -> list[str]:
    """Who is positive and negative, for tiles that have both or that reach over the edge."""
    if pairing.coded:
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
    if pairing.itself:
        lines.append("positive = positive & (rows[:, None] != columns[None, :])")
    if pairing.own:
        lines += [
            "own = tl.load(row_id + rows, mask=here, other=-1)",
            "identity = tl.load(column_id + columns, mask=there, other=-2)",
            "positive = positive & (own[:, None] != identity[None, :])",
        ]
    return lines


def _whole(writer: Writer, formula: Formula) -> str:
    """The value of a formula as a whole tile."""
    name = writer.value(formula)
    if varies(formula):
        return name
    tile = "tl.zeros([BM, BN], tl.float32)"
    return writer.write(f"{name} & ({tile} == 0.0)" if holds(formula) else f"{name} + {tile}")


def _side(over: Side) -> str:
    return {Side.POSITIVES: "positive", Side.NEGATIVES: "negative", Side.BOTH: "(positive | negative)"}[over]


def _sides(pairing: Pairing) -> list[str]:
    """Pairs by side; from codes a pair may be on both (triplets that contradict each other), and counts once for both."""
    return [
        _side(over)
        for over in ((Side.POSITIVES, Side.NEGATIVES, Side.BOTH) if pairing.coded else (Side.POSITIVES, Side.NEGATIVES))
    ]


def forward_source(recipe: Recipe, terms: list[TileFold], tiles: Tiles, *, alone: bool = False) -> str:
    """The kernel that folds: for each tile and row the state of every fold.

    Args:
        recipe: what is given.
        terms: the folds.
        tiles: which tiles it takes.
        alone: no other kernel takes the plain tiles: they have nothing to fold, and that is to be written down.
    """
    plain, indent = tiles is Tiles.PLAIN, _indent(tiles)
    lines = _head(recipe, tiles)
    loads, names = _leaf_lines(recipe, indent, mirrored=False)
    lines += loads
    writer = Writer({**names, s: "s"}, indent, "v")
    writer.names[s] = writer.value(recipe.bend)
    if not plain:
        for line in _masks(recipe.pairing):
            writer.line(line)
    for over, condition in zip(("positive", "negative"), recipe.keep or (), strict=False):
        if not (plain and over == "positive"):
            kept = _whole(writer, condition) if plain else writer.value(condition)
            writer.line(f"{over} = {kept}" if plain else f"{over} = {over} & {kept}")
    numbers = [number for term in terms for number in _fold(writer, term, plain, recipe.keep is not None)]
    lines += writer.lines
    width = len(numbers)
    place = f"place = out + (j * {width}).to(tl.int64) * m + rows"
    mask = "rows < tl.where(plain, m, 0)" if plain else "here"
    lines += [indent + place]
    lines += [f"{indent}tl.store(place + {k} * m, {number}, mask={mask})" for k, number in enumerate(numbers)]
    if alone:
        nothing = [number for term in terms for number in _empty(term)]
        lines += [f"{TILE}else:", indent + place]
        lines += [f"{indent}tl.store(place + {k} * m, {number}, mask=here)" for k, number in enumerate(nothing)]
    return "\n".join(lines) + "\n"


def _empty(term: TileFold) -> list[str]:
    empty = [f"tl.full([BM], {number}, tl.float32)" for number in term.fold.identity]
    return empty + ["tl.zeros([BM], tl.float32)"] * len(term.by)


def _fold(writer: Writer, term: TileFold, plain: bool, mined: bool) -> list[str]:
    if plain and term.over is Side.POSITIVES:
        return _empty(term)
    keep = _side(term.over)
    if plain:
        keep = "negative" if mined else ""
    counted = isinstance(term.curve, Number)
    value = "1.0" if counted and term.fold.weight_count == 0 else _whole(writer, term.curve)
    if term.fold.weight_count == 0 and not (counted or holds(term.curve)):
        value = writer.write(f"{value} != 0.0")  # a number where a condition stands
    keep = writer.write(keep) if keep else ""
    numbers, weight = term.fold.tile(writer, value, keep or None)
    for leaf in term.by:
        change = _whole(writer, derivative(term.curve, leaf))
        change = change if weight == "1.0" else f"{weight} * {change}"
        # a weight is zero already where a pair is not kept, but for a sum's, which is one everywhere
        masked = f"tl.where({keep}, {change}, 0.0)" if keep else change
        numbers.append(writer.write(f"tl.sum({masked}, axis=1)"))
    return numbers


def slope_source(
    recipe: Recipe, terms: list[TileFold], by: Formula, tiles: Tiles, *, symmetric: bool, split: bool
) -> str:
    """The kernel that writes the gradient by each similarity (or by a number per reference) of a rectangle.

    Args:
        recipe: what is given; the weights of each term are the last leaves.
        terms: the folds.
        by: `s`, or a number per reference.
        tiles: which tiles it takes.
        symmetric: references are the anchors: add what each pair means to its reference as an anchor.
        split: write what 16 bits lose into a second matrix.
    """
    plain, indent = tiles is Tiles.PLAIN, _indent(tiles)
    lines = _head(recipe, tiles)
    writer = Writer({}, indent, "v")
    weights = _weight_names(recipe, terms)
    similarity, pieces = "s", []
    for mirrored in [False, True] if symmetric else [False]:
        loads, names = _leaf_lines(recipe, indent, mirrored)
        writer.lines += loads
        writer.names = {**names, s: similarity}
        if not mirrored:
            similarity = writer.names[s] = writer.value(recipe.bend)
            bent = _bent(writer, recipe.bend, names) if by is s else "1.0"
            if not plain:
                for line in _masks(recipe.pairing):
                    writer.line(line)
        for over in ("negative",) if plain else _sides(recipe.pairing):
            pieces += _gradient(writer, recipe, terms, by, over, plain, weights[mirrored])
    lines += writer.lines
    here = "(rows < tl.where(plain, m, 0))" if plain else "here"
    inside = f"{here}[:, None] & there[None, :]"
    tail = [f"g = {' + '.join(pieces) or 'tl.zeros([BM, BN], tl.float32)'}"]
    tail += [] if bent == "1.0" else [f"g = g * {bent}"]
    # with both scales a matrix serves the gradients of both sides, each of which then takes its own off its sum
    tail += ["g = g * (left_scale * right_scale)"] if recipe.scaled and by is s else []
    tail += [
        "place = (rows - first_row)[:, None].to(tl.int64) * stride + (columns - first_column)[None, :]",
        "rounded = g.to(out.dtype.element_ty)",
        f"tl.store(out + place, rounded, mask={inside})",
    ]
    if split:
        tail.append(f"tl.store(rest + place, (g - rounded.to(tl.float32)).to(rest.dtype.element_ty), mask={inside})")
    return "\n".join(lines + [indent + line for line in tail]) + "\n"


def _bent(writer: Writer, bend: Formula, names: dict[Formula, str]) -> str:
    """The slope of the similarity by the product."""
    below = Writer({**names, s: "s"}, writer.indent, "b")
    name = below.value(derivative(bend, s))
    writer.lines += below.lines
    return name


def _weight_names(recipe: Recipe, terms: list[TileFold]) -> dict[bool, list[list[str]]]:
    """The names of each term's weights, which are the last leaves, for both orientations."""
    found: dict[bool, list[list[str]]] = {}
    for mirrored in (False, True):
        word = "mirror" if mirrored else "given"
        k = len(recipe.leaves) - sum(term.fold.weight_count for term in terms)
        found[mirrored] = []
        for term in terms:
            number = term.fold.weight_count
            found[mirrored].append([f"{word}{k + each}" for each in range(number)])
            k += number
    return found


def _gradient(
    writer: Writer, recipe: Recipe, terms: list[TileFold], by: Formula, over: str, plain: bool, weights: list[list[str]]
) -> list[str]:
    """What pairs of one side contribute, as at most one masked sum."""
    sums = []
    for term, names in zip(terms, weights, strict=True):
        apart = recipe.pairing.coded or term.over is not Side.BOTH
        if not names or (apart and _side(term.over) != over):
            continue
        change = derivative(term.curve, by)
        if isinstance(change, Number) and change.value == 0.0:
            continue
        value = writer.value(term.curve)
        factor = writer.write(term.fold.derivative(value, names))
        steep = writer.value(change)
        sums.append(writer.write(f"{factor} * {steep}" if steep != "1.0" else factor))
    if not sums:
        return []
    total = writer.write(" + ".join(sums))
    mask = "" if plain else over
    if recipe.keep is not None and over == _side(Side.BOTH):
        positives, negatives = (writer.value(condition) for condition in recipe.keep)
        mask = f"(positive & {positives}) | (negative & {negatives})"
    elif recipe.keep is not None:
        condition = recipe.keep[over == "negative"]
        mask = _whole(writer, condition) if plain else f"{over} & {writer.value(condition)}"
    return [writer.write(f"tl.where({mask}, {total}, 0.0)" if mask else f"{total} + tl.zeros([BM, BN], tl.float32)")]


def state_names(terms: list[TileFold], word: str) -> list[list[str]]:
    """Names for the numbers that are left of each term."""
    return [[f"{word}{k}_{i}" for i in range(term.width)] for k, term in enumerate(terms)]


def join_source(terms: list[TileFold]) -> str:
    """The kernel that joins the tiles of each row: states, sums of slopes, and the finished folds behind them."""
    width = sum(term.width for term in terms)
    lines = [
        "@triton.jit",
        "def kernel(tiles, joined, m, count, ROWS: tl.constexpr):",
        "    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)",
        "    here = rows < m",
    ]
    old, new = state_names(terms, "old"), state_names(terms, "new")
    for term, names in zip(terms, old, strict=True):
        start = [*term.fold.identity, *["0.0"] * len(term.by)]
        lines += [
            f"    {name} = tl.full([ROWS], {value}, tl.float32)" for name, value in zip(names, start, strict=True)
        ]
    lines.append("    for tile in range(count):")
    place = 0
    for term, before, now in zip(terms, old, new, strict=True):
        for name in now:
            lines.append(
                f"        {name} = tl.load(tiles + (tile * {width} + {place}) * m + rows, mask=here, other=0.0)"
            )
            place += 1
        split = term.fold.width
        body, times_old, times_new = term.fold.joined(before[:split], now[:split])
        lines += [f"        {line}" for line in body]
        pairs = zip(before[split:], now[split:], strict=True)
        lines += [f"        {a} = {a} * {times_old} + {b} * {times_new}" for a, b in pairs]
    everything = [name for names in old for name in names]
    everything += [term.fold.finished(names[: term.fold.width]) for term, names in zip(terms, old, strict=True)]
    lines += [f"    tl.store(joined + {k} * m + rows, {name}, mask=here)" for k, name in enumerate(everything)]
    return "\n".join(lines) + "\n"
