"""Rows of the table of results for runs that do not belong to a study."""

from __future__ import annotations

from typing import Any

from likewise.train import Run

_NO_METRICS = {"kind", "step", "epoch", "queries", "queries_without_positive", "best", "seconds"}


def read_row(run: Run, method: str | None = None) -> dict[str, Any]:
    """The row of a run in the tidy table of results.

    Test metrics are those of the model that was chosen on validation, or of the last one without validation; of several
    evaluations the latest.

    Args:
        run: a run.
        method: the name of its method; by default the class of its loss.

    Examples:
        >>> import tempfile
        >>> run = Run.create(tempfile.mkdtemp() + "/run", {"seed": 3, "loss": "CircleLoss(margin=0.4)"})
        >>> row = read_row(run)
        >>> row["method"], row["status"], row["error"]
        ('CircleLoss', 'failed', 'the training has not ended')
    """
    description = run.description
    ends = run.metrics("end")
    reason = ends[-1]["reason"] if ends else "the training has not ended"
    row: dict[str, Any] = {"method": method or _loss_name(description), **_labels(description)}
    row["stage"] = "final"
    row["status"] = "done" if reason in ("finished", "early stopping") else "failed"
    for line in [line for line in run.metrics("val") if line.get("best")][-1:]:
        row |= {f"val {name}": value for name, value in line.items() if name not in _NO_METRICS}
    tests = [line for line in run.evaluations() if line["part"] == "test"]
    for line in ([line for line in tests if line["model"] == "best"] or tests)[-1:]:
        row |= {f"test {name}": value for name, value in line["metrics"].items()}
    openings = run.openings()
    row |= {"openings": len(openings), "tuned_on_test": not all(line.get("finished", True) for line in openings)}
    row |= {"run": str(run.folder), "command": description.get("command")}
    return row | {"error": None if row["status"] == "done" else reason}


def _loss_name(description: dict[str, Any]) -> str:
    loss = (description.get("config") or {}).get("loss") or {}
    named = loss.get("class_path") if isinstance(loss, dict) else loss  # a short form: loss: CircleLoss
    text = str(named or description.get("loss", ""))
    return text.partition("(")[0].rpartition(".")[2]


def _labels(description: dict[str, Any]) -> dict[str, Any]:
    config, data = description.get("config") or {}, description.get("data") or {}
    model, split = config.get("model") or {}, config.get("split") or {}
    labels = {key: model[key] for key in ("trunk", "dim") if key in model}
    train = data.get("train") or {}
    fold = split.get("fold")
    names = {"data": train["name"]} if "name" in train else {}
    return {**names, **labels, "seed": description.get("seed"), "fold": fold if isinstance(fold, int) else 0}
