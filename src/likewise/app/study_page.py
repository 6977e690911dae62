"""Write the page of a study: its tables, verdicts and records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from likewise import __version__
from likewise.app.study_file import StudyFile
from likewise.app.study_io import STUDY_FILE
from likewise.protocols import Comparisons, Difference, Leaderboard, Result, Tournament, table
from likewise.report import Study, write_study
from likewise.train import Run


def write_study_page(
    folder: Path,
    study: StudyFile,
    results: Sequence[Result],
    boards: Mapping[str, Leaderboard],
    *,
    unfair: Sequence[Difference] = (),
    ranks: Tournament | None = None,
    compared: Comparisons | None = None,
    planned: int | None = None,
) -> Path:
    """Write ``report.html`` into the folder of a study.

    Args:
        folder: the folder of the study.
        study: the content of the study.
        results: all results.
        boards: leaderboards by the name of their setting; empty if ranking was refused.
        unfair: the differences that make the comparison unfair.
        ranks: the tournament.
        compared: comparisons of pairs of methods.
        planned: number of trials.

    Examples:
        >>> import tempfile
        >>> study = StudyFile("one", methods={"circle": {"loss": "CircleLoss"}}, base={"data": "Glyphs"})
        >>> write_study_page(Path(tempfile.mkdtemp()), study, [], {}).name
        'report.html'
    """
    protocol = study.chosen_protocol()
    noted = [each for board in boards.values() for each in board.differences]
    differences = {str(each): each for each in (*noted, *unfair)}
    runs = [Run(folder / result.run) for result in results if (folder / result.run / "run.yaml").exists()]
    description = runs[0].description if runs else {}
    return write_study(
        folder / "report.html",
        Study(
            study.name,
            what=study.what,
            metric=f"test {study.metric}",
            rows=table(list(results)),
            protocol={
                "name": protocol.name,
                "sentence": str(protocol),
                "source": protocol.source,
                "tuned_on_test": protocol.tuned_on_test,
            },
            tournament=None if ranks is None else ranks.to_dict(),
            leaderboard={name: board.rows() for name, board in boards.items()} or None,
            comparisons=[] if compared is None else _pairs(compared),
            comparison_note="" if compared is None else compared.note,
            fairness=[_difference(each) for each in differences.values()],
            openings=_openings(runs),
            planned=planned,
            command=f"likewise tournament {folder / STUDY_FILE} --out {folder}",
            versions=", ".join(
                f"{name} {number}"
                for name, number in {"likewise": __version__, **description.get("versions", {})}.items()
            ),
            hardware=", ".join(sorted({result.machine for result in results if result.machine})),
        ),
    )


def _pairs(compared: Comparisons) -> list[dict[str, Any]]:
    rows = []
    for (a, b), each in compared.cells.items():
        difference = each.difference
        row = {"a": a, "b": b, "sentence": str(each), "pairs": each.pairs, "verdict": compared.verdict(a, b)}
        rows.append(row | {"mean": difference.mean, "low": difference.low, "high": difference.high})
    return rows


def _difference(each: Difference) -> dict[str, Any]:
    return {"what": each.what, "values": dict(each.values), "why": each.why, "severity": each.severity}


def _openings(runs: Sequence[Run]) -> list[dict[str, Any]]:
    keys = ("opened", "why", "finished")
    return [
        {"run": f"runs/{run.folder.name}", **{key: line[key] for key in keys}}
        for run in runs
        for line in run.openings()
    ]
