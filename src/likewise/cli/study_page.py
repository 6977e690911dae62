"""The page of a study: its tables, verdicts and records, gathered for `likewise.report.write_study`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from likewise import __version__
from likewise.cli.study import FILE, StudyFile
from likewise.protocols import Comparisons, Difference, Leaderboard, Result, Tournament, table
from likewise.report import Study, write_study
from likewise.train import Run


def write_page(
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
        folder: of the study.
        study: what it is.
        results: all of them.
        boards: leaderboards by the name of their setting; none where ranking was refused.
        unfair: what makes the comparison unfair.
        ranks: the tournament.
        compared: methods pair by pair.
        planned: how many trials there are.
    """
    protocol = study.chosen_protocol()
    told = [each for board in boards.values() for each in board.differences]
    noted = {str(each): each for each in (*told, *unfair)}
    runs = [Run(folder / result.run) for result in results if (folder / result.run / "run.yaml").exists()]
    said = runs[0].description if runs else {}
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
            fairness=[_difference(each) for each in noted.values()],
            openings=_openings(runs),
            planned=planned,
            command=f"likewise tournament {folder / FILE} --out {folder}",
            versions=", ".join(
                f"{name} {number}" for name, number in {"likewise": __version__, **said.get("versions", {})}.items()
            ),
            hardware=", ".join(sorted({result.machine for result in results if result.machine})),
        ),
    )


def _pairs(compared: Comparisons) -> list[dict[str, Any]]:
    made = []
    for (a, b), each in compared.cells.items():
        difference = each.difference
        row = {"a": a, "b": b, "sentence": str(each), "pairs": each.pairs, "verdict": compared.verdict(a, b)}
        made.append(row | {"mean": difference.mean, "low": difference.low, "high": difference.high})
    return made


def _difference(each: Difference) -> dict[str, Any]:
    return {"what": each.what, "values": dict(each.values), "why": each.why, "severity": each.severity}


def _openings(runs: Sequence[Run]) -> list[dict[str, Any]]:
    keys = ("opened", "why", "finished")
    return [
        {"run": f"runs/{run.folder.name}", **{key: line[key] for key in keys}}
        for run in runs
        for line in run.openings()
    ]
