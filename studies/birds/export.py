"""The results of docs/reality-check.md as files to download.

    python -m studies.birds.export

writes docs/assets/reality-check.csv (metrics of every method and size, with intervals and seeds) and
docs/assets/reality-check-settings.csv (what each search found) and docs/assets/reality-check-commands.csv (the command that trains
each method once) from results/*.json.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from studies.birds.page import command_of
from studies.birds.plot_verdict import ASSETS, RESULTS
from studies.birds.verdict import DIMS, METRICS

Row = Mapping[str, Any]
SOURCES = ("verdict", "recent")


def verdict_csv(reports: Mapping[str, Row]) -> str:
    """A row for each method and embedding size: means and 95% intervals over seeds, as fractions.

    Args:
        reports: the contents of results/verdict.json and results/recent.json, by name.
    """
    made = io.StringIO()
    ends = [f"{metric} {end}" for metric in METRICS for end in ("mean", "low", "high")]
    writer = csv.writer(made, lineterminator="\n")
    writer.writerow(["method", "dim", "results", "seeds", *ends])
    for source in SOURCES:
        for row in reports[source]["table"]:
            if set(METRICS) <= row.keys():
                numbers = [f"{row[metric][end]:.6f}" for metric in METRICS for end in ("mean", "low", "high")]
                writer.writerow([row["method"], row["dim"], source, row[METRICS[0]]["count"], *numbers])
    return made.getvalue()


def settings_csv(searches: Mapping[str, Row]) -> str:
    """A row for each searched setting of a method: its value, and MAP@R of the first and the best point.

    Args:
        searches: the contents of results/search.json, and ``search`` of results/recent.json, by name.
    """
    made = io.StringIO()
    writer = csv.writer(made, lineterminator="\n")
    writer.writerow(["method", "results", "first val MAP@R", "best val MAP@R", "setting", "value"])
    for source, report in searches.items():
        for row in report["rows"]:
            if row["best"] is not None:
                first = row["points"][0]["val MAP@R"]
                for name, value in row["best"]["point"].items():
                    scores = ["" if each is None else f"{each:.6f}" for each in (first, row["best"]["val MAP@R"])]
                    writer.writerow([row["method"], source, *scores, name, value])
    return made.getvalue()


def commands_csv(searches: Mapping[str, Row]) -> str:
    """A row for each method: the command of its training with seed 0 and the settings that the search found.

    Args:
        searches: the contents of results/search.json, and ``search`` of results/recent.json, by name.
    """
    made = io.StringIO()
    writer = csv.writer(made, lineterminator="\n")
    writer.writerow(["method", "results", "command"])
    for source, report in searches.items():
        for row in report["rows"]:
            if row["best"] is not None:
                writer.writerow([row["method"], source, command_of(row["method"], row["best"]["point"], DIMS[0], 0)])
    return made.getvalue()


def files(results: Path) -> Iterator[tuple[str, str]]:
    """Names and contents."""
    reports = {name: json.loads((results / f"{name}.json").read_text()) for name in (*SOURCES, "search")}
    yield "reality-check.csv", verdict_csv(reports)
    searches = {"search": reports["search"], "recent": reports["recent"]["search"]}
    yield "reality-check-settings.csv", settings_csv(searches)
    yield "reality-check-commands.csv", commands_csv(searches)


def main() -> None:
    """Write the files."""
    for name, text in files(RESULTS):
        (ASSETS / name).write_text(text)
        print(f"wrote {name}")


if __name__ == "__main__":
    main()
