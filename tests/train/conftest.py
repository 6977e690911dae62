"""What several files of these tests use."""

from __future__ import annotations

import pytest

from likewise.data import ImageCache
from tests.train.small import draw


@pytest.fixture(scope="session")
def photos(tmp_path_factory: pytest.TempPathFactory) -> ImageCache:
    """36 small images of six classes."""
    return draw(tmp_path_factory.mktemp("photos"))
