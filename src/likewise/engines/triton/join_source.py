"""The source of the kernel that joins the states of tiles."""

from __future__ import annotations

from likewise.engines.triton.kernel_source import TileFold, as_text

TILES_AT_A_TIME = 8
"""Tiles of a row whose states are loaded at a time."""


def _name_states(terms: list[TileFold], prefix: str) -> list[list[str]]:
    """Return names for the values that are stored of each term."""
    return [[f"{prefix}{k}_{i}" for i in range(term.width)] for k, term in enumerate(terms)]


def write_join_kernel(terms: list[TileFold]) -> str:
    """Write the kernel that joins tiles of each row: states, sums of derivatives, and the values of the folds.

    A program joins ``each`` of the ``count`` tiles; ``stride`` is the number of values that are stored for a tile.
    """
    width = sum(term.width for term in terms)
    lines = [
        "@triton.jit",
        "def likewise_join(tiles, joined, m, count, each, stride, ROWS: tl.constexpr):",
        "    groups = (m + ROWS - 1) // ROWS",
        "    rows, part = tl.program_id(0) % groups * ROWS + tl.arange(0, ROWS), tl.program_id(0) // groups",
        "    end = tl.minimum((part + 1) * each, count)",
    ]
    old, new = _name_states(terms, "old"), _name_states(terms, "new")
    for term, names in zip(terms, old, strict=True):
        lines += [
            f"    {name} = tl.full([ROWS], {as_text(value)}, tl.float32)"
            for name, value in zip(names, term.identity, strict=True)
        ]
    # loads of several tiles are on their way at a time
    lines += [
        f"    for first in range(part * each, end, {TILES_AT_A_TIME}):",
        f"        for step in tl.static_range({TILES_AT_A_TIME}):",
        "            tile = first + step",
        "            exists = rows < tl.where(tile < end, m, 0)",
    ]
    place = 0
    for term, before, now in zip(terms, old, new, strict=True):
        for name, missing in zip(now, term.identity, strict=True):
            at = f"tiles + (tile * stride + {place}) * m + rows"
            lines.append(f"            {name} = tl.load({at}, mask=exists, other={as_text(missing)})")
            place += 1
        split = term.fold.width
        body, times_old, times_new = term.fold.join(before[:split], now[:split])
        lines += [f"            {line}" for line in body]
        pairs = zip(before[split:], now[split:], strict=True)
        lines += [f"            {a} = {a} * {times_old} + {b} * {times_new}" for a, b in pairs]
    stored = [name for names in old for name in names]
    stored += [term.fold.finish(names[: term.fold.width]) for term, names in zip(terms, old, strict=True)]
    target = f"joined + (part * {width + len(terms)} + {{}}) * m + rows"
    lines += [f"    tl.store({target.format(k)}, {name}, mask=rows < m)" for k, name in enumerate(stored)]
    return "\n".join(lines) + "\n"
