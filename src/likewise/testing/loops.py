"""Many values in one test: a parametrization that costs a function call instead of a test."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any

import pytest


def loop_over(names: str, values: Iterable[Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Run a test once per value, inside one test; a failure names the value in a note.

    Use it instead of ``pytest.mark.parametrize`` for many values with runs of milliseconds: pytest needs about ten
    milliseconds to collect, schedule and report each test.

    Args:
        names: the arguments of the test that receive the values, separated by commas.
        values: the values; tuples if there is more than one name.

    Examples:
        >>> @loop_over("number", [1, 2])
        ... def test_is_positive(number):
        ...     assert number > 0
        >>> test_is_positive()
        >>> loop_over("number", [])
        Traceback (most recent call last):
        ValueError: values of number must be at least one, or the test could not fail, but there are none
    """
    arguments = [name.strip() for name in names.split(",")]
    rows = [value if len(arguments) > 1 else (value,) for value in values]
    if not rows:
        raise ValueError(f"values of {names} must be at least one, or the test could not fail, but there are none")

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(test)
        def run(*args: Any, **fixtures: Any) -> None:
            for number, row in enumerate(rows):
                given = dict(zip(arguments, row, strict=True))
                try:
                    test(*args, **fixtures, **given)
                except (Exception, pytest.fail.Exception) as error:
                    error.add_note(f"in round {number} of {test.__name__}: {given}")
                    raise

        signature = inspect.signature(test)
        kept = [each for name, each in signature.parameters.items() if name not in arguments]
        run.__signature__ = signature.replace(parameters=kept)  # type: ignore[attr-defined]
        return run

    return decorate
