"""The embedding map: positions of the points, and the data shown for each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from likewise.report.layout import Places
from likewise.report.neighbors import Neighbors, nearest
from likewise.report.part import Part
from likewise.report.sprites import Tile
from likewise.report.words import count, many

WIDTH, HEIGHT, EDGE = 1000.0, 700.0, 20.0
"""Size of the drawing, and the margin around the points."""


@dataclass(frozen=True)
class Group:
    """The points of one class.

    Args:
        code: the index of the class name in the data of the map.
        hue: the color, in degrees.
        name: the class name.
        points: ``(x, y, is_right)``: whether the nearest neighbor has the same class.

    Examples:
        >>> Group(0, 137.5, "wren", [(20.0, 20.0, True)]).name
        'wren'
    """

    code: int
    hue: float
    name: str
    points: list[tuple[float, float, bool]]


@dataclass(frozen=True, eq=False)
class Map:
    """An embedding map: images as points on a plane.

    Args:
        method: the layout method.
        note: a sentence on the number of images that are shown.
        groups: the points of each class.
        data: data for the script of the page: class names, and for each point its position, thumbnail, class, the class of
            its nearest neighbor, and their similarity.
        number: the number of the part on the page.

    Examples:
        >>> Map("t-SNE", "", [], {}).method
        't-SNE'
    """

    method: str
    note: str
    groups: list[Group]
    data: dict[str, Any]
    number: int = 0


def draw_map(
    part: Part,
    rows: Tensor,
    neighbors: Neighbors,
    tiles: Mapping[int, Tile],
    laid_out: Places,
    number: int = 0,
) -> Map:
    """Draw the map of some rows of a part.

    Args:
        part: the part.
        rows: the rows on the map.
        neighbors: the neighbors of the queries.
        tiles: the positions of the thumbnails of the rows.
        laid_out: the positions of the rows and the name of the layout method, from `likewise.report.layout.lay_out`.
        number: the number of the part on the page.

    Examples:
        >>> labels = torch.tensor([0, 0, 1])
        >>> part = Part("test", torch.tensor([[1.0, 0.0], [0.8, 0.6], [0.0, 1.0]]), labels, ["a", "b"], lambda i: None)
        >>> tiles = {row: Tile(0, 50.0 * row, 0.0) for row in range(3)}
        >>> from likewise.report.layout import lay_out
        >>> drawn = draw_map(part, torch.arange(3), nearest(part, 1), tiles, lay_out(part.embeddings, "pca", seed=0))
        >>> drawn.note, drawn.data["points"][2][5:]
        ('All 3 images are on the map.', [1, 0, 0.6])
    """
    places, method = laid_out
    other, score = _firsts(part, rows, neighbors)
    labels, others = part.labels[rows].tolist(), part.labels[other].tolist()
    codes = {label: code for code, label in enumerate(sorted({*labels, *others}))}
    by_class: dict[int, list[tuple[float, float, bool]]] = {label: [] for label in sorted(set(labels))}
    points = []
    for at, row in enumerate(rows.tolist()):
        x = round(EDGE + (WIDTH - 2.0 * EDGE) * float(places[at, 0]), 1)
        y = round(HEIGHT - EDGE - (HEIGHT - 2.0 * EDGE) * float(places[at, 1]), 1)
        by_class[labels[at]].append((x, y, labels[at] == others[at]))
        tile = tiles[row]
        thumb = [tile.sheet, round(tile.x, 3), round(tile.y, 3)]
        points.append([x, y, *thumb, codes[labels[at]], codes[others[at]], round(score[at].item(), 3)])
    groups = [
        Group(codes[label], _hue(at, len(by_class)), str(part.class_names[label]), places)
        for at, (label, places) in enumerate(by_class.items())
    ]
    names = [str(part.class_names[label]) for label in codes]
    note = _note(len(part.labels), len(rows), len(groups))
    return Map(method, note, groups, {"names": names, "points": points}, number)


def _firsts(part: Part, rows: Tensor, neighbors: Neighbors) -> tuple[Tensor, Tensor]:
    """Return the nearest neighbor of each row and its similarity; those of gallery rows are computed here."""
    other, score = torch.empty(len(part.labels), dtype=torch.int64), torch.zeros(len(part.labels))
    other[:] = torch.arange(len(part.labels))  # a gallery with one image has no other neighbor
    other[neighbors.rows], score[neighbors.rows] = neighbors.index[:, 0], neighbors.score[:, 0].float()
    rest = rows[~torch.isin(rows, neighbors.rows)]
    if len(rest) and len(part.references) > 1:
        more = nearest(part, 1, rest)
        other[rest], score[rest] = more.index[:, 0], more.score[:, 0].float()
    return other[rows], score[rows]


def _note(total: int, shown: int, classes: int) -> str:
    if shown == total:
        return f"All {many(total, 'image')} are on the map."
    some = f"{count(shown)} of the {count(total)} images are on the map, of {many(classes, 'class', 'classes')}"
    return f"{some}, chosen at random; {count(total - shown)} are not shown."


def _hue(number: int, classes: int) -> float:
    """Return the hue of a class: evenly spaced for few classes, by the golden angle for many."""
    return round((360.0 * number / classes if classes <= 12 else 137.50776 * number) % 360.0, 1)
