"""Find the data set for a folder or a table."""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path

from likewise.app.configuration import configure
from likewise.app.errors import UserError, writing
from likewise.app.parts import read_parts
from likewise.data import TABLES
from likewise.files import write_text

TEMPLATE = """\
# {summary}
# likewise train --config {file}
# likewise train --config {file} --print-config prints every setting; likewise train --help explains them.

data:
  class_path: {data}  # likewise datasets lists others
  init_args:
    {argument}: {place}

split:
  test: 0.2          # share of the classes sealed for the test
  validation: null   # share of the other classes for model selection; null: a tenth, at least two classes
  seed: 0            # random seed of the choice of classes

model:
  trunk: {trunk}  # likewise trunks lists others
  weights: {weights}  # null: random initialization
  dim: {dim}           # the size of the embeddings

loss:
  class_path: MultiSimilarityLoss  # likewise losses lists others; likewise lens MultiSimilarityLoss shows it

optimizer:
  lr: {lr}  # learning rate

train:
  epochs: {epochs}
  patience: null     # stop after this number of validations without improvement

seed: 0
out: null            # the run's folder; null: runs/DATA-TRUNK-LOSS-NUMBER
"""


def guess_data(place: str | Path) -> dict[str, str]:
    """The settings of the data set for a folder of folders or a table.

    Args:
        place: a folder with one folder for each class, or a table of images.

    Examples:
        >>> guess_data("birds.csv")
        Traceback (most recent call last):
        likewise.app.errors.UserError: there is no folder or table birds.csv
    """
    path = Path(place)
    if not path.exists():
        raise UserError(f"there is no folder or table {path}")
    if path.is_dir():
        return {"data": "ImageFolder", "data.root": os.fspath(place)}
    if path.suffix.lower() in TABLES:
        return {"data": "ImageTable", "data.path": os.fspath(place)}
    raise UserError(f"{path} must be a folder with one folder per class, or a table ({', '.join(TABLES)})")


def write_starter(place: str | Path, out: str | Path | None = None, *, overwrite: bool = False) -> tuple[Path, str]:
    """Write a commented configuration for a folder or table of images, with the most important defaults.

    Args:
        place: a folder with one folder for each class, or a table of images.
        out: the file; by default the place's name with ``.yaml``.
        overwrite: replace the file if it exists.

    Returns:
        The file, and a description of the images.

    Examples:
        >>> write_starter("nowhere")
        Traceback (most recent call last):
        likewise.app.errors.UserError: there is no folder or table nowhere
    """
    guess = guess_data(place)
    config = configure(guess)
    seen = read_parts(config["data"], {"test": 0.0, "validation": 0.0}).seen
    file = Path(out or re.sub(r"[^A-Za-z0-9._-]+", "-", Path(place).resolve().stem) + ".yaml")
    if file.exists() and not overwrite:
        raise UserError(f"{file} already exists; --overwrite replaces it")
    [(key, path)] = [(key, value) for key, value in guess.items() if key != "data"]
    quoted = path.replace("'", "''")
    summary = f"{len(seen):,} images of {len(seen.class_names):,} classes in {place}"
    text = TEMPLATE.format(
        summary=summary,
        file=shlex.quote(str(file)),
        data=guess["data"],
        argument=key.removeprefix("data."),
        place=f"'{quoted}'",
        lr=config["optimizer"]["lr"],
        epochs=config["train"]["epochs"],
        **{name: config["model"][name] for name in ("trunk", "weights", "dim")},
    )
    with writing(file):
        write_text(file, text)
    return file, summary
