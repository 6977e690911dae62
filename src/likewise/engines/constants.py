"""Attributes as constants: what a computation that is kept depends on."""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable
from typing import Any

SIMPLE = frozenset({bool, int, float, str, type(None)})
"""Immutable types; most attributes have one of these."""


def as_constant(value: Any) -> Hashable:
    """A hashable constant, or ``NotImplemented``."""
    constant: Hashable = NotImplemented
    if type(value) in SIMPLE or isinstance(value, int | float | str):
        constant = value
    elif type(value) is tuple:
        entries = tuple([as_constant(each) for each in value])
        constant = NotImplemented if NotImplemented in entries else entries
    elif _is_frozen(value):  # a similarity, a miner
        own = [(name, as_constant(each)) for name, each in vars(value).items()]
        if all(each is not NotImplemented for _, each in own):
            constant = (type(value), *own)
    return constant


def _is_frozen(value: Any) -> bool:
    """Whether a value is a frozen dataclass."""
    return dataclasses.is_dataclass(value) and not isinstance(value, type) and type(value).__dataclass_params__.frozen  # type: ignore[attr-defined]
