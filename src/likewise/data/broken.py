"""Search of a data set for images that cannot be read."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from itertools import islice

from likewise.data.dataset import ImageDataset
from likewise.data.decode import Broken, BrokenImage
from likewise.progress import progress


def find_broken(dataset: ImageDataset, *, workers: int | None = None) -> list[Broken]:
    """Decode every image once, and return those that cannot be read.

    ``dataset.without(find_broken(dataset))`` excludes them.

    Args:
        dataset: the images.
        workers: number of decoding threads; by default one per core.

    Examples:
        >>> import tempfile
        >>> from pathlib import Path
        >>> from PIL import Image
        >>> from likewise.data import ImageFolder
        >>> folder = Path(tempfile.mkdtemp(), "cats")
        >>> folder.mkdir()
        >>> Image.new("RGB", (4, 4)).save(folder / "good.png")
        >>> _ = (folder / "empty.png").write_bytes(b"")
        >>> cats = ImageFolder(folder.parent)
        >>> broken = find_broken(cats)
        >>> [(each.index, each.reason) for each in broken], len(cats.without(broken))
        ([(0, 'the file is empty')], 1)
    """
    if workers is not None and workers < 1:
        raise ValueError(f"workers must be a whole number ≥ 1, but it is {workers!r}")

    def look(index: int) -> Broken | None:
        try:
            dataset.image(index)
        except BrokenImage as error:
            return Broken(index, dataset.source(index), error.reason or str(error))
        return None

    found: list[Broken] = []
    indices = iter(range(len(dataset)))
    with ThreadPoolExecutor(workers or os.cpu_count()) as pool, progress("checking", len(dataset), "img") as advance:
        while some := list(islice(indices, 1024)):  # a million waiting futures would need a gigabyte
            for result in pool.map(look, some):
                found += [] if result is None else [result]
                advance(1)
    return found
