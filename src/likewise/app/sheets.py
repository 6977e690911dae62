"""A sheet of random images of a data set, as one picture."""

from __future__ import annotations

from pathlib import Path

from likewise.app.defaults import Config
from likewise.app.errors import UserError, making, writing
from likewise.app.parts import read_parts
from likewise.formula import whole_number


def draw_dataset(data: Config, file: str | Path, *, images: int = 48, columns: int = 8, seed: int = 0) -> Path:
    """Draw random images of the training part of a data set, each of a different class if there are enough.

    The test part stays sealed.

    Args:
        data: the class of the data set and its arguments, as a configuration has them.
        file: the picture; its extension sets the format.
        images: number of images.
        columns: images per row.
        seed: random seed.

    Examples:
        >>> import tempfile
        >>> draw_dataset({"class_path": "likewise.data.Glyphs"}, tempfile.mkdtemp() + "/glyphs.png", images=4).name
        'glyphs.png'
    """
    import torch

    from likewise.search import Shot, draw_contact_sheet

    with making("--images"):
        whole_number("images", images, 1)
    with making("--columns"):
        whole_number("columns", columns, 1)
    if Path(file).suffix.lower() not in (".png", ".jpg", ".jpeg", ".webp"):
        raise UserError(f"--sheet must be a picture such as sheet.png, but it is {file}")
    seen = read_parts(data, {"validation": 0.0, "test": 0.2}).seen  # as a training with default classes sees it
    order = torch.randperm(len(seen), generator=torch.Generator().manual_seed(seed)).tolist()
    first: dict[int, int] = {}
    for index in order:
        first.setdefault(int(seen.labels[index]), index)
    chosen = list(dict.fromkeys([*first.values(), *order]))[:images]
    shots = [Shot(seen.image(index).convert("RGB"), seen.class_names[int(seen.labels[index])]) for index in chosen]
    rows = [shots[start : start + columns] for start in range(0, len(shots), columns)]
    with making("--sheet"):
        sheet = draw_contact_sheet(rows, heading=seen.name, detail=str(seen), columns=columns)
    with writing(Path(file)):
        sheet.save(file)
    return Path(file)
