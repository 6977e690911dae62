"""Request and response schemas of the API, from which its OpenAPI description is generated."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

LARGEST = 2**63 - 1
MOST_CLUSTERS = 200
Number = Annotated[int, Field(ge=0, le=LARGEST, description="id of an item")]
Vector = Annotated[list[Annotated[float, Field(allow_inf_nan=False)]], Field(min_length=1, max_length=65536)]
Where = Annotated[
    str | None,
    Field(max_length=4096, description="a filter", examples=['label == "wren" and year >= 2019']),
]
RerankName = Literal["k-reciprocal", "query-expansion"]
Exact = Annotated[
    bool | None, Field(description="compare with every item; by default only if the index has no approximate structure")
]


class How(BaseModel):
    """Settings of a search."""

    model_config = ConfigDict(extra="forbid")

    k: Annotated[
        int, Field(ge=1, le=LARGEST, description="number of neighbors; GET /api/about returns the maximum")
    ] = 10
    where: Where = None
    exact: Exact = None
    rerank: RerankName | None = None
    place: Annotated[bool, Field(description="also return the position of the query on the map")] = False


class Search(How):
    """A search by one vector, by several vectors, or by an item of the index."""

    vector: Vector | None = None
    vectors: Annotated[list[Vector], Field(min_length=1)] | None = None
    id: Number | None = None

    @model_validator(mode="after")
    def _one(self) -> Search:
        given = [name for name in ("vector", "vectors", "id") if getattr(self, name) is not None]
        if len(given) != 1:
            raise ValueError(
                f"a search takes exactly one of vector, vectors and id, but it has {' and '.join(given) or 'none'}"
            )
        return self


class Pair(BaseModel):
    """Two items to verify."""

    model_config = ConfigDict(extra="forbid")
    first: Number
    second: Number


class Why(BaseModel):
    """Two items to explain."""

    model_config = ConfigDict(extra="forbid")
    query: Number
    item: Number


class ItemShape(BaseModel):
    """An item of the index."""

    id: Number
    path: str
    label: str | None
    metadata: dict[str, Any]


class Hit(ItemShape):
    """An item with its score."""

    score: Annotated[
        float, Field(description="cosine similarity; after k-reciprocal re-ranking, one minus the distance")
    ]


class Answer(BaseModel):
    """The results of one query, best first."""

    found: list[Hit]
    place: Annotated[list[float] | None, Field(description="x and y on the map, from 0 to 1")] = None


class Answers(BaseModel):
    """The results of all queries."""

    answers: list[Answer]
    milliseconds: float


class Listing(BaseModel):
    """Some items, and the total number."""

    items: list[ItemShape]
    total: int
    offset: int


class ValueShape(BaseModel):
    """A value of a column, and the number of items that have it."""

    value: str
    items: int


class ColumnShape(BaseModel):
    """A column that a filter may use, and its values."""

    name: str
    kind: Literal["text", "number", "bool"]
    values: Annotated[list[ValueShape], Field(description="values of a text column; empty if there are too many")]
    low: float | None
    high: float | None


class Columns(BaseModel):
    """The columns that have values."""

    columns: list[ColumnShape]


class Group(BaseModel):
    """A group of items: its size, its label and its first items."""

    size: int
    label: Annotated[str | None, Field(description="label of more than half of its items")]
    items: list[ItemShape]


class Groups(BaseModel):
    """Some groups, largest first, and the total number."""

    groups: list[Group]
    total: Annotated[int, Field(description="total number of groups")]
    members: Annotated[int, Field(description="total number of items in groups")]
    offset: int


class MapShape(BaseModel):
    """The positions of items on the map."""

    layout: str
    total: Annotated[int, Field(description="number of items of the index; the map may show a sample")]
    ids: list[int]
    x: list[float]
    y: list[float]
    labels: Annotated[list[int | None], Field(description="for each item the index of its label in names")]
    names: list[str]


class Rate(BaseModel):
    """Whether two images count as the same at a false-accept rate."""

    far: float
    threshold: float | None
    same: bool


class Verified(BaseModel):
    """The similarity of two images, and its meaning if the index is calibrated."""

    similarity: float
    probability: Annotated[
        float | None, Field(description="probability that they show the same thing, if half of all pairs do")
    ]
    rates: list[Rate]


class HeatShape(BaseModel):
    """The contribution of each position of an image to the similarity, row by row from the top."""

    places: list[list[float]]
    box: Annotated[
        list[float], Field(description="left, top, right and bottom of the region, as fractions of the image")
    ]


class Explained(BaseModel):
    """Two heat maps, each of which sums to the similarity."""

    similarity: float
    query: HeatShape
    item: HeatShape


class ModelShape(BaseModel):
    """The model that computed the vectors."""

    name: str
    sha256: str


class NearShape(BaseModel):
    """The approximate structure and its measured recall."""

    kind: str
    recall: Annotated[float | None, Field(description="recall of the ten nearest; null if not measured yet")]


class About(BaseModel):
    """Facts about the server and its index."""

    name: str
    items: int
    dim: int
    storage: str
    version: Annotated[str, Field(description="a string that changes with every change of the index")]
    fields: Annotated[dict[str, str], Field(description="columns that a filter may use, and their types")]
    model: Annotated[
        ModelShape | None, Field(description="null if there is none: queries must then be vectors or items")
    ]
    near: NearShape | None
    calibrated: bool
    layout: str
    limits: dict[str, float]
    likewise: str


class Fault(BaseModel):
    """An error, in one sentence."""

    error: str
