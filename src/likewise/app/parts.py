"""Which images are for training, for validation and for the sealed test, as a configuration defines it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from inspect import signature
from pathlib import Path

from likewise.app.defaults import Config
from likewise.app.errors import UserError, making
from likewise.app.objects import KINDS, import_class, make
from likewise.data import (
    ImageDataset,
    ImageTable,
    PairTable,
    contiguous_folds,
    fixed_validation,
    random_folds,
    read_cells,
)
from likewise.data import Split as ClassSplit
from likewise.formula import whole_number


@dataclass(frozen=True)
class Parts:
    """The parts of a data set; the test part is created only on request.

    Args:
        seen: the images for training and validation.
        classes: the classes for training and for validation; ``None``: all are for training.
        val: the data set's validation part, if used.
        test: function that creates the test part; ``None`` if there is none.
        sealed: a description of the test part.

    Examples:
        >>> read_parts({"class_path": "likewise.data.Glyphs"}, {"validation": 0.0}).classes is None
        True
    """

    seen: ImageDataset
    classes: ClassSplit | None
    val: ImageDataset | None
    test: Callable[[], ImageDataset] | None
    sealed: str


def read_parts(data: Config, split: Config) -> Parts:
    """Read the training part and define the others.

    A data set whose class takes ``split`` defines its parts: ``"train"`` is read, ``"val"`` if it exists and is used, and
    ``"test"`` is sealed.  It raises a ``ValueError`` about ``split`` for a part that it does not have.  For any other data
    set, test and validation classes are drawn at random.

    Args:
        data: the class of the data set and its arguments.
        split: shares and seed of the held-out classes.

    Examples:
        >>> parts = read_parts({"class_path": "likewise.data.Glyphs", "init_args": {"images_per_class": 1}}, {})
        >>> parts.seen, parts.val, parts.sealed
        (Glyphs, train: 719 images of 719 classes, Glyphs, val: 143 images of 143 classes, 'the test part of Glyphs')
    """
    with making("--split"):
        _check(split)
    if not _has_parts(data):
        return _draw_parts(data, split)
    seen = _read(data, "train")
    val = _own(data, "val") if split.get("validation") is None and not split.get("folds") else None
    classes = None if val is not None else _hold_out(len(seen.class_names), split)
    has_test = "test" in _column(data) if _is_table(data) else True
    test = (lambda: _read(data, "test")) if has_test else None
    return Parts(seen, classes, val, test, f"the test part of {seen.name}")


def _read(data: Config, part: str | None) -> ImageDataset:
    """Make a data set, or one part of it."""
    with making("the data set"):
        made: ImageDataset = make(KINDS["data"], data, {} if part is None else {"split": part})
    return made


def _own(data: Config, part: str) -> ImageDataset | None:
    """A part of the data set, if it has one of this name."""
    with making("the data set"):
        try:
            return make(KINDS["data"], data, {"split": part})  # type: ignore[no-any-return]
        except ValueError as refusal:
            if str(refusal).startswith("split "):
                return None
            raise


def _draw_parts(data: Config, split: Config) -> Parts:
    """Classes drawn at random, first for the test, then of the rest for validation."""
    whole = _read(data, None)
    count, sealed, seed = len(whole.class_names), split.get("test"), split.get("seed", 0)
    if count < 2:
        raise UserError(f"{whole.name} must have images of at least two classes, but it has {count}")
    if not sealed:
        return Parts(whole, _hold_out(count, split), None, None, "none")
    with making("--split.test"):
        drawn = fixed_validation(count, share=sealed, seed=seed)
    seen = whole.of_classes(drawn.train)
    named = f"{len(drawn.val)} of the {count} classes of {whole.name}, drawn with seed {seed}"
    test = lambda: _called(_read(data, None).of_classes(drawn.val), "test")  # noqa: E731
    return Parts(_called(seen, "train"), _hold_out(len(drawn.train), split), None, test, named)


def _called(dataset: ImageDataset, split: str) -> ImageDataset:
    """Name a data set after its part."""
    dataset.split = split
    return dataset


def _check(split: Config) -> None:
    """Refuse options that would have no effect."""
    folds, fold = split.get("folds"), split.get("fold") or 0
    if folds is None:
        for name in ("fold", "contiguous"):
            if split.get(name):
                raise ValueError(f"{name} must be given together with folds, but folds is not given")
        return
    whole_number("folds", folds, 2)
    if whole_number("fold", fold, 0) >= folds:
        raise ValueError(f"fold must be below folds, {folds}, but it is {fold}")
    if split.get("validation") is not None:
        raise ValueError(f"validation cannot be combined with folds, but it is {split['validation']}")


def _hold_out(count: int, split: Config) -> ClassSplit | None:
    """Training classes for validation: one of several folds, or a share; by default a tenth, at least two."""
    share, seed, folds, fold = (split.get(name) for name in ("validation", "seed", "folds", "fold"))
    if folds:
        with making("--split.folds"):
            return _folds(count, folds, seed or 0, bool(split.get("contiguous")))[fold or 0]
    share = max(0.1, min(0.5, 2 / count)) if share is None else share
    if not share:
        return None
    with making("--split.validation"):
        return fixed_validation(count, share=share, seed=seed or 0)


def _folds(count: int, folds: int, seed: int, contiguous: bool) -> tuple[ClassSplit, ...]:
    return contiguous_folds(count, folds=folds) if contiguous else random_folds(count, folds=folds, seed=seed)


def _has_parts(data: Config) -> bool:
    if _is_table(data):
        return bool(_column(data))
    return "split" in signature(import_class(data["class_path"])).parameters


def _is_table(data: Config) -> bool:
    return issubclass(import_class(data["class_path"]), ImageTable | PairTable)


def _column(data: Config) -> set[str]:
    """What the column ``split`` of a table contains; an empty set if there is no such column or file."""
    said = data.get("init_args") or {}
    path = Path(said.get("path", ""))
    name = (said.get("columns") or {}).get("split", "split")
    if not path.is_file():
        return set()  # reading the table raises a clearer error
    try:
        return set(map(str, read_cells(path, [name])[0].get(name, ())))
    except ValueError:
        return set()  # reading the table raises a clearer error
