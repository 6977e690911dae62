"""The order of all tests."""

from __future__ import annotations

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Slow tests first: at the end no worker is left with a long one while the others have nothing to do."""
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)
