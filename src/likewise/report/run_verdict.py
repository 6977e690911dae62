"""The sentences of a run's report: the title, the verdict, the end of training, and the openings of the test set."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from likewise.metrics import Interval
from likewise.report.part import Scores
from likewise.report.record import Record, Row
from likewise.report.view import View
from likewise.report.words import between, duration, many, percent, short
from likewise.text import times


def title_of(record: Record) -> str:
    """Return the title: loss, trunk and data set of the run, or the name of the folder if they are unknown.

    Examples:
        >>> from pathlib import Path
        >>> description = {"loss": "RAWLoss(alpha=2.0)", "data": {"train": {"name": "Glyphs"}}}
        >>> title_of(Record(Path("runs/one"), description, [], [], [], []))
        'RAWLoss on Glyphs'
        >>> title_of(Record(Path("runs/one"), {}, [], [], [], []))
        'one'
    """
    description = record.description
    loss = re.match(r"[\w.]+", str(description.get("loss") or ""))
    data = _inside(description, "data", "train", "name")
    if loss is None or data is None:
        return record.folder.resolve().name
    trunk = _inside(description, "config", "model", "trunk")
    return " ".join([loss[0], *([f"with {trunk}"] if isinstance(trunk, str) else []), f"on {data}"])


def _inside(value: object, *keys: str) -> object:
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def verdict_of(record: Record, lead: View | None, baselines: Mapping[str, Scores]) -> str:
    """Return the verdict in one or two sentences.

    Examples:
        >>> from pathlib import Path
        >>> verdict_of(Record(Path("one"), {}, [], [], [], []), None, {})
        'Nothing has been measured yet.'
    """
    if lead is None:
        best = record.best
        if best is None or not isinstance(best.get("R@1"), int | float):
            return "Nothing has been measured yet."
        return (
            f"On validation, R@1 is {percent(best['R@1'])}% and MAP@R is {percent(best.get('MAP@R'))}% "
            f"at the best epoch, {short(float(best['epoch']))}; no part was embedded for this report."
        )
    if lead.measured is None:
        return f"Every class of {lead.part.name} has only one image, so there is nothing to retrieve."
    score = lead.measured.scores["R@1"]
    interval = between(score)
    queries = many(len(lead.measured.rows), "query", "queries")
    text = f"On {lead.part.name}, the nearest neighbor has the right class for {percent(score)}% of {queries}"
    text += f" (95% interval {interval})" if interval else ""
    rivals = {name: _number(scores["R@1"]) for name, scores in baselines.items() if "R@1" in scores}
    if rivals:
        name = max(rivals, key=lambda each: rivals[each])
        gap = 100.0 * (score.mean - rivals[name])
        text += f", {abs(gap):.1f} points {'above' if gap >= 0.0 else 'below'} {name}"
    return text + "."


def _number(value: float | Interval) -> float:
    return value.mean if isinstance(value, Interval) else value


@dataclass(frozen=True)
class End:
    """How training ended.

    Args:
        text: a sentence.
        tone: ``"good"``, ``"plain"`` or ``"bad"``.

    Examples:
        >>> End("Training ended.", "good").tone
        'good'
    """

    text: str
    tone: str


def end_of(record: Record) -> End:
    """Describe how training ended.

    Examples:
        >>> from pathlib import Path
        >>> ended = {"kind": "end", "epoch": 3.0, "step": 90, "reason": "finished", "seconds": 75.0}
        >>> end_of(Record(Path("one"), {}, [ended], [], [], [])).text
        'Training finished after 3 epochs, 90 steps, 1 min 15 s.'
    """
    end = record.end
    if end is None:
        if not record.metrics:
            return End("No training is recorded.", "plain")
        last = record.metrics[-1]
        return End(f"Training has not ended: the last record is of epoch {_epoch(last)}.", "bad")
    reason = str(end.get("reason", ""))
    took = [_epochs(end)]
    took += [many(int(end["step"]), "step")] if isinstance(end.get("step"), int) else []
    took += [duration(float(end["seconds"]))] if isinstance(end.get("seconds"), int | float) else []
    sentence = {
        "finished": "Training finished",
        "early stopping": "Training stopped early, because validation did not improve,",
        "collapsed": "Training was stopped because the embeddings collapsed,",
        "not finite": "Training was stopped because the loss was not finite,",
    }.get(reason, f"Training ended ({reason})")
    message = str(end.get("message") or "") if reason not in ("finished", "early stopping") else ""
    tone = "good" if reason in ("finished", "early stopping") else "bad"
    return End(f"{sentence} after {', '.join(took)}.{' ' + message if message else ''}", tone)


def _epoch(row: Row) -> str:
    epoch = row.get("epoch")
    return short(float(epoch)) if isinstance(epoch, int | float) else "?"


def _epochs(row: Row) -> str:
    text = _epoch(row)
    return f"{text} epoch" if text == "1" else f"{text} epochs"


@dataclass(frozen=True)
class Seal:
    """How often the test set was opened.

    Args:
        short: a few words.
        text: a sentence.
        tone: ``"good"``, ``"plain"`` or ``"bad"``.
        warnings: warnings for the reader.

    Examples:
        >>> Seal("never opened", "The test set was never opened.", "good").warnings
        []
    """

    short: str
    text: str
    tone: str
    warnings: list[str] = field(default_factory=list)


def seal_of(record: Record, shown: Sequence[str]) -> Seal:
    """Describe how often the test set was opened, and whether that was before training had ended.

    Args:
        record: the record of the run.
        shown: the names of the parts in the report.

    Examples:
        >>> from pathlib import Path
        >>> opened = {"opened": "2026-03-01T14:05:09+00:00", "why": "to look", "finished": False}
        >>> seal = seal_of(Record(Path("one"), {}, [], [opened], [], []), [])
        >>> seal.short, seal.warnings
        ('opened once', ['The test set was opened once before training had ended: its results may have influenced training.'])
    """
    openings = record.openings
    early = sum(1 for each in openings if not each.get("finished"))
    warnings = []
    if early:
        warnings.append(
            f"The test set was opened {times(early)} before training had ended: its results may have influenced training."
        )
    if not openings:
        if any(name.lower().startswith("test") for name in shown):
            warnings.append("This report shows a test part, but no opening of the test set is recorded.")
        return Seal("never opened", "The test set was never opened.", "bad" if warnings else "good", warnings)
    if len(openings) > 1:
        text = (
            f"The test set was opened {times(len(openings))}: a result that is selected among several is biased upward."
        )
        return Seal(f"opened {times(len(openings))}", text, "bad" if early else "plain", warnings)
    text = "The test set was opened once" + ("." if early else ", after training had ended.")
    return Seal("opened once", text, "bad" if early else "good", warnings)
