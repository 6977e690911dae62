"""Check runs, models and indexes against their checksums."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from likewise.app.errors import EXPECTED, UserError, sentence


@dataclass(frozen=True)
class Check:
    """A file that was compared with its checksum.

    Args:
        file: the file.
        problem: the problem; ``None`` if it is intact.

    Examples:
        >>> Check(Path("best.safetensors")).problem is None
        True
    """

    file: Path
    problem: str | None = None


def check_artifact(place: str | Path) -> list[Check]:
    """Compare a run, an index or a model with the checksums that were stored with it; nothing is executed.

    Args:
        place: the folder of a run or of an index, or a ``.safetensors`` file.

    Examples:
        >>> check_artifact("nowhere")
        Traceback (most recent call last):
        likewise.app.errors.UserError: there is no run, index or model nowhere
    """
    from likewise.search import is_index

    path = Path(place)
    if path.is_file() and path.suffix == ".safetensors":
        return [_verify_model(path)]
    if path.is_dir() and (path / "run.yaml").exists():
        return list(_verify_run(path))
    if path.is_dir() and is_index(path):
        return list(_verify_index(path))
    raise UserError(f"there is no run, index or model {place}")


def _verify_run(folder: Path) -> Iterator[Check]:
    from likewise.train import Run, load_checkpoint

    run = Run(folder)
    yield _check(folder / "run.yaml", lambda: run.description)
    for name in ("best", "model"):
        if (folder / f"{name}.safetensors").exists():
            yield _verify_model(folder / f"{name}.safetensors")
    checkpoint = folder / "last.safetensors"
    if checkpoint.exists():
        states: list[dict[str, object]] = []
        yield _check(checkpoint, lambda: states.append(load_checkpoint(checkpoint)[1]))
        for state in states:
            size, sha256 = state["metrics_size"], state.get("metrics_sha256")
            yield _check(folder / "metrics.jsonl", lambda: run.check_metrics(size, sha256))  # type: ignore[arg-type]  # noqa: B023


def _verify_model(file: Path) -> Check:
    from likewise.trunks import read_tensors

    return _check(file, lambda: read_tensors(file))


def _verify_index(folder: Path) -> Iterator[Check]:
    from likewise.search import check_version, list_versions

    try:
        versions = list_versions(folder)
    except EXPECTED as error:
        yield Check(folder, sentence(error))
        return
    for version in versions:
        damaged = check_version(version)
        for name in version.card.files:
            file = version.folder / name
            yield Check(file, "its size or checksum differs from the card" if file in damaged else None)


def _check(file: Path, read: Callable[[], object]) -> Check:
    try:
        read()
    except EXPECTED as error:
        return Check(file, sentence(error))
    return Check(file)
