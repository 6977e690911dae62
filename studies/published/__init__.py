"""Published tables as data, the tournament that the thesis prints, and papers versus reality."""

from studies.published.ranks import Disagreement, disagreements
from studies.published.reality import (
    Improvement,
    claims,
    comparison,
    draw_improvements,
    improvements,
    papers_versus_reality,
)
from studies.published.tables import (
    DATA,
    SOURCES,
    Number,
    data_of,
    impossible,
    method_of,
    methods,
    printed,
    published,
    remarks,
)
from studies.published.trend import Score, draw_trend, trend

__all__ = [
    "DATA",
    "SOURCES",
    "Disagreement",
    "Improvement",
    "Number",
    "Score",
    "claims",
    "comparison",
    "data_of",
    "disagreements",
    "draw_improvements",
    "draw_trend",
    "impossible",
    "improvements",
    "method_of",
    "methods",
    "papers_versus_reality",
    "printed",
    "published",
    "remarks",
    "trend",
]
