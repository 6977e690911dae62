"""Build an index of vectors, search it with filters, find near-duplicates. Needs: pip install 'likewise[search]'

Run: python examples/search_from_python.py
"""

import argparse
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from likewise.search import Index


def main(argv: Sequence[str] | None = None) -> list[str]:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=None, help="where to write the index; default: a temporary one")
    args = parser.parse_args(argv)
    folder = args.folder or Path(tempfile.mkdtemp()) / "birds.index"

    # Stand-ins for the output of a model: 20 classes with 10 images each.
    random = np.random.default_rng(0)
    classes = np.arange(20).repeat(10)
    vectors = random.normal(size=(20, 32))[classes] + 0.5 * random.normal(size=(200, 32))
    vectors[7] = vectors[3] + 0.01  # a near-duplicate

    index = Index.create(folder, dim=32)
    index.add(
        vectors,
        paths=[f"{label:02}/{number:03}.jpg" for number, label in enumerate(classes)],
        labels=[f"species {label}" for label in classes],
        metadata={"year": [2020 + number % 5 for number in range(200)]},
    )
    print(index)

    query = vectors[25] + 0.1 * random.normal(size=32)
    for id, score in index.search(query[None], k=3).of(0):
        print(f"{score:.3f}  {index.item(id).path}  {index.item(id).label}")

    # A filter is applied before the search: k results come back if k items pass it.
    recent = index.search(query[None], k=3, where='year >= 2023 and label != "species 3"')
    print("filtered:", [index.item(id).path for id, _ in recent.of(0)])

    duplicates = index.duplicates(0.999)
    print("near-duplicates:", [[index.item(id).path for id in group] for group in duplicates])

    # Every change writes a new version; readers of the old one are not disturbed.
    index.remove(where="year < 2021")
    reopened = Index.open(folder)
    print(f"{len(reopened)} items after removing those of 2020")
    return [index.item(id).path for id, _ in recent.of(0)]


if __name__ == "__main__":
    main()
