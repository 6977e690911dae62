"""The content of a report for one part: retrieval grids, the map, similarities and confused classes."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import torch
from PIL import Image

from likewise.progress import track
from likewise.report.embedding_map import Map, draw_map
from likewise.report.layout import lay_out
from likewise.report.measure import Measured, Similarities, measure_part, similarities
from likewise.report.neighbors import Confusion, Neighbors, confusions, nearest
from likewise.report.part import Part
from likewise.report.selection import choose_points, choose_queries
from likewise.report.sprites import SMALL, Sheet, Tile, fitting_sheets, sprite_sheets, thumbnail
from likewise.report.words import count, many

QUERIES, NEIGHBORS = 6, 8
"""The number of queries of a retrieval grid, and of neighbors per query."""

POINTS = 1000
"""The maximum number of points of a map: one sheet of thumbnails."""

PAIRS, EXAMPLES = 9, 2
"""The number of pairs of confused classes, and of mistakes that are shown for each."""

LARGE = 96
"""The side of a thumbnail in a grid, in pixels."""


@dataclass(frozen=True)
class ShownImage:
    """An image on the page.

    Args:
        tile: the position of its thumbnail.
        name: its class.
        score: its similarity to the query; ``None`` for the query.
        is_right: whether it has the class of the query.

    Examples:
        >>> ShownImage(Tile(0, 0.0, 0.0), "wren", 0.87, True).alt
        'wren, right, similarity 0.87'
    """

    tile: Tile
    name: str
    score: float | None = None
    is_right: bool = True

    @property
    def alt(self) -> str:
        """The alternative text."""
        if self.score is None:
            return f"{self.name}, query"
        return f"{self.name}, {'right' if self.is_right else 'wrong'}, similarity {self.score:.2f}"


@dataclass(frozen=True)
class Grid:
    """Queries of one kind with their neighbors.

    Args:
        kind: ``"best"``, ``"worst"`` or ``"random"``.
        rows: each query with its average precision at R and its neighbors.

    Examples:
        >>> Grid("best", []).kind
        'best'
    """

    kind: str
    rows: list[tuple[ShownImage, float, list[ShownImage]]]


@dataclass(frozen=True)
class Grids:
    """Grids of queries, one shown at a time.

    Args:
        number: the number of the part on the page.
        grids: the grids.

    Examples:
        >>> Grids(0, []).grids
        []
    """

    number: int
    grids: list[Grid]


@dataclass(frozen=True)
class ConfusedPairs:
    """Confused classes.

    Args:
        pairs: two class names, a sentence, and mistakes (a query and its nearest neighbor).

    Examples:
        >>> ConfusedPairs([]).pairs
        []
    """

    pairs: list[tuple[str, str, str, list[tuple[ShownImage, ShownImage]]]]


@dataclass(frozen=True, eq=False)
class View:
    """The content for one part.

    Args:
        part: the part.
        summary: the number of images, classes and queries, as text.
        measured: the metrics; ``None`` if no query has a positive.
        grids: the retrieval grids.
        map: the embedding map.
        similarities: the histograms of similarities.
        confused: the most confused classes.
        mistakes: the number of queries whose nearest neighbor has another class.
        sheets: the thumbnails.

    Examples:
        >>> labels = torch.arange(20) // 4
        >>> names = ["a", "b", "c", "d", "e"]
        >>> part = Part("test", torch.eye(5)[labels], labels, names, lambda i: Image.new("L", (8, 8), 10 * i))
        >>> shown = view(part, layout="pca", seed=0, budget=10**6)
        >>> shown.summary, len(shown.grids.grids), shown.confused.pairs, shown.map.note
        ('20 images of 5 classes', 3, [], 'All 20 images are on the map.')
    """

    part: Part
    summary: str
    measured: Measured | None
    grids: Grids
    map: Map
    similarities: Similarities
    confused: ConfusedPairs
    mistakes: int
    sheets: list[Sheet]


def view(part: Part, *, layout: str, seed: int, budget: int, first: int = 0, number: int = 0) -> View:
    """Compute the content for one part.

    Args:
        part: the part.
        layout: the layout of the map.
        seed: the seed of the random queries, the map and the bootstrap.
        budget: the maximum number of bytes of the thumbnails of the map.
        first: the number of the first sheet of thumbnails.
        number: the number of the part on the page.

    Examples:
        >>> labels = torch.arange(8) // 2
        >>> part = Part("test", torch.eye(4)[labels], labels, ["a", "b", "c", "d"], lambda i: Image.new("L", (8, 8), i))
        >>> view(part, layout="pca", seed=0, budget=10**6).mistakes
        0
    """
    points = choose_points(part.labels, POINTS, seed)
    measured = measure_part(part, seed=seed)
    neighbors = nearest(part, NEIGHBORS)
    at = {int(row): place for place, row in enumerate(neighbors.rows)}
    queries: dict[str, list[int]] = {}
    if measured is not None:
        margin = neighbors.margin[torch.tensor([at[row] for row in measured.rows.tolist()])]
        queries = choose_queries(part, measured.rows, measured.quality, margin, most=QUERIES, seed=seed)
    pairs = confusions(part, neighbors, PAIRS, EXAMPLES)

    large = {row for rows in queries.values() for row in rows}
    large |= {other for row in large for other in neighbors.index[at[row]].tolist()}
    large |= {row for pair in pairs for example in pair.examples for row in example[:2]}
    large_images, small_images = _thumbnails(part, large, points.tolist())
    sheets, tiles = sprite_sheets(large_images, first=first)
    more, dots = fitting_sheets(small_images, first=first + len(sheets), budget=budget)

    quality = {} if measured is None else dict(zip(measured.rows.tolist(), measured.quality.tolist(), strict=True))
    grids = [
        Grid(
            kind,
            [
                (
                    ShownImage(tiles[row], part.class_name(row)),
                    quality[row],
                    _make_neighbors(part, neighbors, at[row], tiles),
                )
                for row in rows
            ],
        )
        for kind, rows in queries.items()
    ]
    shapes = similarities(part, seed=seed)
    mistakes = int((part.labels[neighbors.rows] != part.labels[neighbors.index[:, 0]]).sum())
    return View(
        part=part,
        summary=_summary(part),
        measured=measured,
        grids=Grids(number, grids),
        map=draw_map(part, points, neighbors, dots, lay_out(part.embeddings[points], layout, seed), number),
        similarities=shapes,
        confused=ConfusedPairs([_describe_confusion(part, pair, tiles) for pair in pairs]),
        mistakes=mistakes,
        sheets=sheets + more,
    )


def _describe_confusion(
    part: Part, pair: Confusion, tiles: dict[int, Tile]
) -> tuple[str, str, str, list[tuple[ShownImage, ShownImage]]]:
    one, other = (str(part.class_names[label]) for label in pair.classes)
    sentence = (
        f"{count(pair.mistakes)} of {many(pair.queries, 'query', 'queries')} have a nearest neighbor of the other class"
    )
    examples = [
        (ShownImage(tiles[q], part.class_name(q)), ShownImage(tiles[r], part.class_name(r), score, False))
        for q, r, score in pair.examples
    ]
    return one, other, sentence, examples


def _summary(part: Part) -> str:
    text = f"{many(len(part.labels), 'image')} of {many(len(torch.unique(part.labels)), 'class', 'classes')}"
    if part.is_query is not None:
        text += f": {many(len(part.queries), 'query', 'queries')} and a gallery of {count(len(part.references))}"
    return text


def _thumbnails(
    part: Part, large: Collection[int], small: Collection[int]
) -> tuple[dict[int, Image.Image], dict[int, Image.Image]]:
    """Large and small thumbnails, by row; each image is read once."""
    wanted = ((set(large), LARGE), (set(small), SMALL))
    made: tuple[dict[int, Image.Image], dict[int, Image.Image]] = {}, {}
    for row in track(sorted({*large, *small}), "thumbnails"):
        image = part.image(row)
        for (rows, side), thumbnails in zip(wanted, made, strict=True):
            if row in rows:
                thumbnails[row] = thumbnail(image, side)
    return made


def _make_neighbors(part: Part, neighbors: Neighbors, place: int, tiles: dict[int, Tile]) -> list[ShownImage]:
    own = int(part.labels[neighbors.rows[place]])
    return [
        ShownImage(tiles[row], part.class_name(row), score, int(part.labels[row]) == own)
        for row, score in zip(neighbors.index[place].tolist(), neighbors.score[place].tolist(), strict=True)
    ]
