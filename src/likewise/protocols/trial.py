"""Trials and their results, as plain data."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cached_property
from typing import Any, Literal

from likewise.formula import one_of, whole_number
from likewise.schema import omit_implied, schema_of, upgrade, upgrade_label

Stage = Literal["search", "final"]
Status = Literal["done", "failed", "pruned"]
Label = str | int | float | bool | None

COLUMNS = frozenset(
    {
        *("method", "seed", "fold", "stage", "status", "seconds", "openings", "tuned_on_test"),
        *("key", "run", "command", "error", "note"),
    }
)
"""The columns that every row of the table of results has."""


@dataclass(frozen=True)
class Trial:
    """The complete description of one training run.

    Args:
        method: the name of the compared method.
        config: the complete configuration, as ``likewise train`` resolves it.
        seed: the seed of the run.
        fold: the fold of the protocol.
        stage: ``"search"``: evaluate on validation classes only; ``"final"``: open the test set once, and record that.
        labels: varied or searched settings by name: trunk, size, hyper-parameters.

    Examples:
        >>> trial = Trial("contrastive", {"loss": "ContrastiveLoss"}, seed=1, labels={"dim": 64})
        >>> trial.key == Trial.from_dict(json.loads(json.dumps(trial.to_dict()))).key
        True
    """

    method: str
    config: Mapping[str, Any]
    seed: int = 0
    fold: int = 0
    stage: Stage = "final"
    labels: Mapping[str, Label] = field(default_factory=dict)

    def __post_init__(self) -> None:
        whole_number("seed", self.seed, 0)
        whole_number("fold", self.fold, 0)
        one_of("stage", self.stage, ("search", "final"))
        for name in self.labels:
            if name in COLUMNS or name.startswith(("val ", "test ")):
                raise ValueError(
                    f"labels must not have the name of a column of the table of results, but one is {name!r}"
                )

    @cached_property
    def key(self) -> str:
        """The checksum of the trial, which is the same on every machine."""
        # not `to_dict`, which copies the whole configuration
        content = {each.name: getattr(self, each.name) for each in fields(self)}
        content["config"] = omit_implied(self.config)
        text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def upgrade(self) -> Trial:
        """Return the trial in the current schema; a trial of an older schema has another key.

        Examples:
            >>> old = Trial("gml", {"loss": {"init_args": {"neighbours": 8}}}, labels={"loss.neighbours": 8})
            >>> old.upgrade().config["loss"], old.upgrade().labels
            ({'init_args': {'neighbors': 8}}, {'loss.neighbors': 8})
        """
        return replace(self, config=upgrade(self.config), labels=self.upgrade_labels())

    def upgrade_labels(self) -> dict[str, Label]:
        """Return the labels, with the names of settings in the current schema.

        Examples:
            >>> Trial("gml", {}, labels={"dim": 8, "neighbours": 4}).upgrade_labels()
            {'dim': 8, 'neighbors': 4}
        """
        schema = schema_of(self.config)
        return dict(upgrade_label(name, value, schema) for name, value in self.labels.items())

    def to_dict(self) -> dict[str, Any]:
        """Convert to types of JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, tree: Mapping[str, Any]) -> Trial:
        """Create from the result of `to_dict`."""
        return cls(**tree)


@dataclass(frozen=True)
class Result:
    """The result of a trial.

    Args:
        trial: the trial.
        status: ``"done"``, ``"failed"`` or ``"pruned"``.
        val: metrics of the selected model on validation classes, as fractions.
        test: metrics on the test set; empty unless the trial is final.
        run: the folder of the run, relative to that of the study.
        seconds: the duration of the run.
        command: the command that runs this trial.
        machine: the device of the run.
        error: the error in one sentence, if the trial failed.
        openings: the number of openings of the test set of the run.
        tuned_on_test: whether the method was tuned on test classes.
        note: a remark, such as that no epoch is better than the model before training.

    Examples:
        >>> result = Result(Trial("contrastive", {}), val={"MAP@R": 0.5})
        >>> Result.from_dict(json.loads(json.dumps(result.to_dict()))) == result
        True
    """

    trial: Trial
    status: Status = "done"
    val: Mapping[str, float] = field(default_factory=dict)
    test: Mapping[str, float] = field(default_factory=dict)
    run: str = ""
    seconds: float = 0.0
    command: str = ""
    machine: str = ""
    error: str | None = None
    openings: int = 0
    tuned_on_test: bool = False
    note: str | None = None

    def __post_init__(self) -> None:
        one_of("status", self.status, ("done", "failed", "pruned"))

    @property
    def key(self) -> str:
        """The key of the trial."""
        return self.trial.key

    def to_dict(self) -> dict[str, Any]:
        """Convert to types of JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, tree: Mapping[str, Any]) -> Result:
        """Create from the result of `to_dict`."""
        return cls(**{**tree, "trial": Trial.from_dict(tree["trial"])})

    def row(self) -> dict[str, Label]:
        """Return the row of the tidy table: method, settings, metrics and records.

        Examples:
            >>> row = Result(Trial("triplet", {}, labels={"dim": 64}), val={"R@1": 0.5}).row()
            >>> row["method"], row["dim"], row["val R@1"]
            ('triplet', 64, 0.5)
        """
        trial = self.trial
        row: dict[str, Label] = {"method": trial.method, **trial.upgrade_labels()}
        row |= {"seed": trial.seed, "fold": trial.fold, "stage": trial.stage, "status": self.status}
        row |= {f"{part} {name}": value for part in ("val", "test") for name, value in getattr(self, part).items()}
        row |= {"seconds": self.seconds, "openings": self.openings, "tuned_on_test": self.tuned_on_test}
        return row | {"key": self.key, "run": self.run, "command": self.command, "error": self.error, "note": self.note}


def table(results: Sequence[Result]) -> list[dict[str, Label]]:
    """Return the tidy table of results: one row per result, with the same columns for all.

    Examples:
        >>> rows = table([Result(Trial("a", {}, labels={"dim": 8})), Result(Trial("b", {}))])
        >>> [row["dim"] for row in rows]
        [8, None]
    """
    rows = [result.row() for result in results]
    columns = list(dict.fromkeys(name for row in rows for name in row))
    return [{name: row.get(name) for name in columns} for row in rows]
