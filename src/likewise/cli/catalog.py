"""The names that can be listed, with a sentence about each: a table, so that a listing does not import torch.

``make catalog`` writes the table, ``catalog.json``, from the library's classes (`tools/write_catalog.py`).
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

FILE = Path(__file__).with_name("catalog.json")


@dataclass(frozen=True)
class Entry:
    """A class or function that is listed by name.

    Args:
        name: its name.
        family: the topic of its module.
        summary: the first paragraph of its docstring.
        defaults: its hyper-parameters and their defaults, as text.

    Examples:
        >>> entries("loss")["MultiSimilarityLoss"].defaults
        {'alpha': '2.0', 'beta': '50.0', 'base': '0.5'}
    """

    name: str
    family: str
    summary: str
    defaults: dict[str, str]


def entries(kind: str) -> dict[str, Entry]:
    """The entries of a kind by name, family by family.

    Args:
        kind: ``"loss"``, ``"miner"``, ``"data"``, ``"sampler"`` or ``"trunk"``.

    Examples:
        >>> "CircleLoss" in entries("loss"), "PairLoss" in entries("loss"), "resnet50" in entries("trunk")
        (True, False, True)
    """
    return {each["name"]: Entry(**each) for each in _table()[kind]}


@cache
def _table() -> dict[str, Any]:
    table: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
    return table
