"""What the page shows of one part: what queries find, the map, similarities, and confused classes."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from PIL import Image

from likewise.metrics import track
from likewise.report.chosen import shown_points, shown_queries
from likewise.report.embedding_map import Map, draw_map
from likewise.report.measure import Measured, Similarities, measure_part, similarities
from likewise.report.neighbors import Neighbors, confusions, nearest
from likewise.report.part import Part
from likewise.report.sprites import Sheet, Tile, fitting_sheets, sprite_sheets, thumbnail
from likewise.report.words import count, many

QUERIES, NEIGHBORS = 6, 8
"""Rows of a retrieval grid, and neighbors in a row."""

POINTS = 2000
"""Points of a map.  scikit-learn's t-SNE lays out this many in 4 to 10 s on one core."""

PAIRS, EXAMPLES = 9, 2
"""Pairs of confused classes, and mistakes that are shown of each."""

LARGE = 96
"""The side of a thumbnail in a grid."""


@dataclass(frozen=True)
class Shown:
    """An image on the page.

    Args:
        tile: where its thumbnail is.
        name: its class.
        score: its similarity to the query; none for the query itself.
        right: whether it is of the query's class.

    Examples:
        >>> Shown(Tile(0, 0.0, 0.0), "wren", 0.87, True).alt
        'wren, right, similarity 0.87'
    """

    tile: Tile
    name: str
    score: float | None = None
    right: bool = True

    @property
    def alt(self) -> str:
        """The image in words."""
        if self.score is None:
            return f"{self.name}, query"
        return f"{self.name}, {'right' if self.right else 'wrong'}, similarity {self.score:.2f}"


@dataclass(frozen=True)
class Grid:
    """Queries of one kind with their neighbors.

    Args:
        kind: ``"best"``, ``"worst"`` or ``"random"``.
        rows: a query, its average precision at R, and its neighbors.

    Examples:
        >>> Grid("best", []).kind
        'best'
    """

    kind: str
    rows: list[tuple[Shown, float, list[Shown]]]


@dataclass(frozen=True, eq=False)
class View:
    """Everything that is shown of one part.

    Args:
        part: the part.
        summary: how many images, classes and queries there are.
        measured: its numbers, unless there is nothing to find.
        grids: what queries find.
        map: the embedding map.
        similarities: histograms.
        confused: pairs of classes: two names, mistakes, queries, and examples.
        mistakes: how many queries have a nearest neighbor of another class.
        sheets: the thumbnails.

    Examples:
        >>> labels = torch.arange(20) // 4
        >>> names = ["a", "b", "c", "d", "e"]
        >>> part = Part("test", torch.eye(5)[labels], labels, names, lambda i: Image.new("L", (8, 8), 10 * i))
        >>> found = view(part, layout="pca", seed=0, first=0, budget=10**6)
        >>> found.summary, len(found.grids), found.confused, found.map.note
        ('20 images of 5 classes', 3, [], 'All 20 images are on the map.')
    """

    part: Part
    summary: str
    measured: Measured | None
    grids: list[Grid]
    map: Map
    similarities: Similarities
    confused: list[tuple[str, str, int, int, list[tuple[Shown, Shown]]]]
    mistakes: int
    sheets: list[Sheet]


def view(part: Part, *, layout: str, seed: int, first: int, budget: int) -> View:
    """Measure a part and gather what is shown of it.

    Args:
        part: the part.
        layout: of the map.
        seed: of the random queries, the map, and the bootstrap.
        first: the number of its first sheet of thumbnails.
        budget: bytes that the map's thumbnails may take.

    Examples:
        >>> labels = torch.arange(8) // 2
        >>> part = Part("test", torch.eye(4)[labels], labels, ["a", "b", "c", "d"], lambda i: Image.new("L", (8, 8), i))
        >>> view(part, layout="pca", seed=0, first=0, budget=10**6).mistakes
        0
    """
    measured = measure_part(part, seed=seed)
    found = nearest(part, NEIGHBORS)
    at = {int(row): place for place, row in enumerate(found.rows)}
    queries: dict[str, list[int]] = {}
    if measured is not None:
        margin = found.margin[torch.tensor([at[row] for row in measured.rows.tolist()])]
        queries = shown_queries(part, measured.rows, measured.quality, margin, most=QUERIES, seed=seed)
    pairs = confusions(part, found, PAIRS, EXAMPLES)
    points = shown_points(part.labels, POINTS, seed)

    large = {row for rows in queries.values() for row in rows}
    large |= {other for row in large for other in found.index[at[row]].tolist()}
    large |= {row for pair in pairs for example in pair.examples for row in example[:2]}
    images = _images(part, sorted(large | set(points.tolist())))
    sheets, tiles = sprite_sheets({row: thumbnail(images[row], LARGE) for row in sorted(large)}, first=first)
    small = {row: thumbnail(images[row], LARGE) for row in points.tolist()}
    more, dots = fitting_sheets(small, first=first + len(sheets), budget=budget)

    quality = {} if measured is None else dict(zip(measured.rows.tolist(), measured.quality.tolist(), strict=True))
    grids = []
    for kind, rows in queries.items():
        lines = [
            (Shown(tiles[row], part.class_name(row)), quality[row], _found(part, found, at[row], tiles)) for row in rows
        ]
        grids.append(Grid(kind, lines))
    confused = [
        (
            str(part.class_names[pair.classes[0]]),
            str(part.class_names[pair.classes[1]]),
            pair.mistakes,
            pair.queries,
            [
                (Shown(tiles[q], part.class_name(q)), Shown(tiles[r], part.class_name(r), s, False))
                for q, r, s in pair.examples
            ],
        )
        for pair in pairs
    ]
    mistakes = int((part.labels[found.rows] != part.labels[found.index[:, 0]]).sum())
    return View(
        part=part,
        summary=_summary(part),
        measured=measured,
        grids=grids,
        map=draw_map(part, points, found, dots, layout=layout, seed=seed),
        similarities=similarities(part, seed=seed),
        confused=confused,
        mistakes=mistakes,
        sheets=sheets + more,
    )


def _summary(part: Part) -> str:
    text = f"{many(len(part.labels), 'image')} of {many(len(torch.unique(part.labels)), 'class', 'classes')}"
    if part.is_query is not None:
        text += f": {many(len(part.queries), 'query', 'queries')} and a gallery of {count(len(part.references))}"
    return text


def _images(part: Part, rows: list[int]) -> dict[int, Image.Image]:
    """The images that are shown, each asked for once and kept no larger than a thumbnail."""
    return {row: thumbnail(part.image(row), LARGE) for row in track(rows, "thumbnails")}


def _found(part: Part, found: Neighbors, place: int, tiles: dict[int, Tile]) -> list[Shown]:
    own = int(part.labels[found.rows[place]])
    return [
        Shown(tiles[row], part.class_name(row), score, int(part.labels[row]) == own)
        for row, score in zip(found.index[place].tolist(), found.score[place].tolist(), strict=True)
    ]
