"""The folder of a training run: its description, its metrics, and the openings of its test set."""

from __future__ import annotations

import hashlib
import json
import math
import os
import platform
import shlex
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from enum import Enum
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch
import yaml

from likewise.files import hold_lock, name_file, refuse_link, write_text
from likewise.formula import one_of
from likewise.sanitize import hide_secrets, read_yaml
from likewise.schema import upgrade_description
from likewise.train.checkpoint import read_step
from likewise.train.commit import read_commit

Line = dict[str, Any]

FILES = ("run.yaml", "metrics.jsonl", "openings.jsonl", "evaluations.jsonl")
"""The records of a run; its models and report are in the same folder."""

PENDING = ".opening.json"
"""The file that describes an opening of the test set until its evaluation ends."""


class Run:
    """The folder of a training run.

    - ``run.yaml``: the complete description, written once at the start
    - ``metrics.jsonl``: one line per measurement during training
    - ``openings.jsonl``: one line per opening of the test set
    - ``evaluations.jsonl``: one line per evaluation after training
    - ``best.safetensors``: the best model on validation classes; ``model.safetensors``: the last one
    - ``last.safetensors``: the last checkpoint

    Args:
        folder: an existing run.

    Examples:
        >>> import tempfile
        >>> run = Run.create(tempfile.mkdtemp() + "/run", {"seed": 3})
        >>> run.log("train", step=1, epoch=0.5, loss=0.25)
        >>> Run(run.folder).metrics(), run.description["seed"], run.openings()
        ([{'kind': 'train', 'step': 1, 'epoch': 0.5, 'loss': 0.25}], 3, [])
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        if not (self.folder / "run.yaml").is_file():
            raise FileNotFoundError(f"folder must contain a run, but {self.folder} has no run.yaml")

    @classmethod
    def create(cls, folder: str | os.PathLike[str], description: Mapping[str, Any]) -> Run:
        """Create a run in a folder that has none.

        Args:
            folder: created if it does not exist.
            description: the content of ``run.yaml``.
        """
        place = Path(folder)
        if (place / "run.yaml").exists():
            raise FileExistsError(
                f"folder must not contain a run, but {place} does: resume it, or choose another folder"
            )
        for name in (*FILES, "last.safetensors"):  # files of another run would be appended to or truncated
            if (place / name).exists():
                raise FileExistsError(
                    f"folder must not contain parts of a run, but {place} has {name}: choose another folder"
                )
        place.mkdir(parents=True, exist_ok=True)
        text = yaml.safe_dump(plain(description), sort_keys=False, allow_unicode=True, width=120)
        write_text(place / "run.yaml", text)
        return cls(place)

    def __repr__(self) -> str:
        return f"Run({str(self.folder)!r})"

    @property
    def description(self) -> dict[str, Any]:
        """The content of ``run.yaml``, upgraded to the current schema."""
        file = self.folder / "run.yaml"
        try:
            text = file.read_text(encoding="utf-8")
            content = read_yaml(text)
        except (UnicodeDecodeError, yaml.YAMLError) as error:
            raise ValueError(
                f"{file} must be the description of a run, but it is not valid YAML: it is damaged"
            ) from error
        if not isinstance(content, dict):
            raise ValueError(f"{file} must be the description of a run, but it is cut or empty")
        if not text.endswith("\n"):  # an incomplete file can be valid YAML
            raise ValueError(
                f"{file} must end with a line break, but it does not: it is cut, or an editor removed it; add one if it is whole"
            )
        try:
            return upgrade_description(content)
        except ValueError as error:
            raise ValueError(f"{file}: {error}") from error

    def metrics(self, kind: str | None = None) -> list[Line]:
        """Read the lines of ``metrics.jsonl``: all, or one kind: ``"train"``, ``"val"``, ``"lens"``, ``"note"`` or ``"end"``."""
        return [line for line in self._lines("metrics.jsonl") if kind is None or line.get("kind") == kind]

    @property
    def chosen(self) -> Line | None:
        """The validation metrics of the best model; ``None`` before the first validation."""
        best = [line for line in self.metrics("val") if line["best"]]
        return best[-1] if best else None

    def openings(self) -> list[Line]:
        """Read the openings of the test set."""
        return self._lines("openings.jsonl")

    def evaluations(self) -> list[Line]:
        """Read the evaluations after training."""
        return self._lines("evaluations.jsonl")

    @property
    def finished(self) -> bool:
        """Whether training has ended."""
        return bool(self.metrics("end"))

    @property
    def checkpoint_step(self) -> int | None:
        """The step of the last checkpoint, from which the run can be resumed; ``None`` without a checkpoint."""
        return read_step(self.folder / "last.safetensors")

    def log(self, kind: str, **values: Any) -> None:
        """Append a line to ``metrics.jsonl``."""
        self._append("metrics.jsonl", {"kind": kind, **values})

    def record_opening(self, why: str, model: str, *, evaluating: bool = False) -> None:
        """Append a line to ``openings.jsonl``, and sync it to disk.

        Args:
            why: the reason, as text.
            model: the evaluated model.
            evaluating: whether the opening belongs to an evaluation that ends with `close_opening`.  If that evaluation is
                killed, repeating it for the same model continues the opening, which is counted once.
        """
        steps = self.metrics()
        file = Path(model) if model.endswith(".safetensors") else self.folder / f"{model}.safetensors"
        sha256 = hashlib.sha256(file.read_bytes()).hexdigest() if file.is_file() else None
        pending = {"why": str(why), "model": model, "sha256": sha256}
        if evaluating:
            # the same evaluation was killed after its line was written
            known, count = self._pending_opening() or {}, len(self.openings())
            if known.items() >= {**pending, "opening": count}.items():
                return
            counts = {"opening": count + 1, "evaluations": len(self.evaluations())}
            write_text(self.folder / PENDING, json.dumps(pending | counts))
        line = {
            "opened": now(),
            "why": str(why),
            "command": command_line(),
            "step": steps[-1]["step"] if steps else 0,
            "finished": self.finished,
            "model": model,
            "sha256": sha256,
        }
        self._append("openings.jsonl", line, sync=True)

    def close_opening(self) -> None:
        """Record that the evaluation of the last opening has ended, so that the next opening is counted separately."""
        (self.folder / PENDING).unlink(missing_ok=True)

    def _pending_opening(self) -> Line | None:
        try:
            pending = json.loads((self.folder / PENDING).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        return pending if isinstance(pending, dict) and "opening" in pending else None

    def record_evaluation(self, part: str, metrics: Mapping[str, float], *, model: str) -> None:
        """Append a line to ``evaluations.jsonl``; for the test part, it contains the number of the opening.

        An evaluation that is repeated after it was killed is recorded once.
        """
        one_of("part", part, ("test", "val"))
        opening = len(self.openings()) if part == "test" else None
        if opening == 0:
            raise ValueError("part must be 'val' for a run whose test set was never opened, but it is 'test'")
        line = {"part": part, "model": model, "opening": opening, "metrics": _finite(plain(metrics))}
        pending = self._pending_opening()
        if pending is not None:
            for known in self.evaluations()[pending.get("evaluations", 0) :]:
                if known.items() >= line.items():
                    return
        line = {"part": part, "time": now(), **line}
        self._append("evaluations.jsonl", line, sync=True)

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Lock the folder during training; the operating system releases the lock when the process ends."""
        refusal = RuntimeError(f"{self.folder} must be used by one training process, but another one is running")
        with hold_lock(self.folder / ".lock", refusal):
            for left in self.folder.glob("*.part"):  # files of a process that was killed
                left.unlink()
            yield

    def sync_metrics(self) -> tuple[int, str]:
        """Sync ``metrics.jsonl`` to disk, and return its length and checksum, for a checkpoint."""
        file = self.folder / "metrics.jsonl"
        if not file.exists():
            return 0, hashlib.sha256().hexdigest()
        with file.open("rb") as opened:
            os.fsync(opened.fileno())
            return os.fstat(opened.fileno()).st_size, hashlib.file_digest(opened, "sha256").hexdigest()

    def check_metrics(self, size: int, sha256: str | None, allow_changes: bool = False) -> list[str]:
        """Check that ``metrics.jsonl`` begins with the lines that it had at a checkpoint.

        Args:
            size: its length at the checkpoint.
            sha256: its checksum at the checkpoint; ``None`` if that was not stored.
            allow_changes: return the difference instead of raising an error.
        """
        file = self.folder / "metrics.jsonl"
        content = file.read_bytes()[:size] if file.exists() else b""
        if len(content) < size:
            problem = f"metrics.jsonl had {size:,} bytes at the last checkpoint and has {len(content):,}"
        elif sha256 is not None and hashlib.sha256(content).hexdigest() != sha256:
            problem = f"the first {size:,} bytes of metrics.jsonl have changed since the last checkpoint"
        else:
            return []
        if not allow_changes:
            raise ValueError(
                f"{file} must not change between checkpoint and resumption, but {problem}; restore it from a copy, "
                "or allow_changes=True (--allow-changes) continues with the existing files"
            )
        return [problem]

    def check_best(self, allow_changes: bool = False) -> list[str]:
        """Check the checksums of ``best.safetensors``, which remains in the run if no later epoch is better.

        Args:
            allow_changes: return the damage instead of raising an error.
        """
        from likewise.train.checkpoint import check_model

        file = self.folder / "best.safetensors"
        try:
            if file.exists():
                check_model(file)
        except ValueError as error:
            if not allow_changes:
                raise ValueError(
                    f"{error}; restore it from a copy, or allow_changes=True (--allow-changes) continues without it"
                ) from error
            return [f"{file.name} is damaged"]
        return []

    def truncate_metrics(self, size: int) -> None:
        """Truncate ``metrics.jsonl`` to its length at a checkpoint; later lines will be measured again."""
        file = refuse_link(self.folder / "metrics.jsonl")
        if file.exists() and file.stat().st_size > size:  # truncating to a larger size would append zeros
            os.truncate(file, size)

    def _lines(self, name: str) -> list[Line]:
        file = self.folder / name
        if not file.exists():
            return []
        lines = []
        for text in file.read_bytes().split(
            b"\n"
        ):  # str.splitlines also splits at characters that JSON allows in strings
            with suppress(ValueError):  # a killed process can leave an incomplete line
                line = json.loads(text)
                if isinstance(line, dict):
                    lines.append(line)
        return lines

    def _append(self, name: str, line: Line, *, sync: bool = False) -> None:
        # text that cannot be encoded, such as an invalid file name, becomes a JSON escape
        text = json.dumps(_finite(plain(line)), ensure_ascii=False).encode(errors="backslashreplace") + b"\n"
        with name_file(self.folder / name), refuse_link(self.folder / name).open("a+b") as file:
            if file.seek(0, os.SEEK_END) and (file.seek(-1, os.SEEK_END), file.read(1))[1] != b"\n":
                text = b"\n" + text  # after an incomplete line
            file.write(text)
            if sync:
                file.flush()
                os.fsync(file.fileno())


def describe_environment(device: torch.device | None = None) -> dict[str, Any]:
    """Return the environment of a run: versions, hardware, and the commit of the current folder.

    Args:
        device: the device of the computation; ``None``: a GPU if available.

    Examples:
        >>> sorted(describe_environment())
        ['commit', 'hardware', 'versions']
    """
    packages = ("torch", "numpy", "pillow", "accelerate", "safetensors")
    versions = {"python": platform.python_version()}
    for package in packages:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            continue
    if device is None:
        device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    cuda = device.type == "cuda"
    hardware = {
        "system": platform.platform(),
        "cpu": platform.processor() or platform.machine(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "device": torch.cuda.get_device_name(device) if cuda else device.type,
        "devices": torch.cuda.device_count() if cuda else 0,
    }
    return {"commit": read_commit(), "versions": versions, "hardware": hardware}


def command_line() -> str:
    """Return the command line of this process, quoted for a shell and without secrets.

    Examples:
        >>> isinstance(command_line(), str)
        True
    """
    program = sys.argv[0] if sys.argv and sys.argv[0] else "python"
    spec = getattr(sys.modules["__main__"], "__spec__", None)
    if spec is not None and Path(program).is_absolute() and program.endswith(".py"):  # python -m package
        called = ["python", "-m", spec.name.removesuffix(".__main__")]
    else:
        called = ["python", program] if program.endswith(".py") else [Path(program).name]
    return shlex.join(hide_secrets([*called, *sys.argv[1:]]))


def now() -> str:
    """Return the current time in UTC, in ISO format.

    Examples:
        >>> now().endswith("+00:00")
        True
    """
    return datetime.now(UTC).isoformat(timespec="seconds")


def plain(value: Any) -> Any:
    """Convert a value to the types of YAML and JSON: mappings, lists, numbers and strings.

    Examples:
        >>> plain({"betas": (0.9, 0.999), "root": Path("photos")})
        {'betas': [0.9, 0.999], 'root': 'photos'}
    """
    if isinstance(value, Mapping):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(each) for each in value]
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, Enum):
        return plain(value.value)
    for kind in (int, float, str):  # NumPy scalars are instances of these, but cannot be written as YAML
        if isinstance(value, kind):
            return kind(value)
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    return str(value)


def _finite(value: Any) -> Any:
    """Replace NaN and infinities, which JSON cannot represent, by ``None``."""
    if isinstance(value, dict):
        return {key: _finite(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_finite(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
