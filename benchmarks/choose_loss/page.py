"""Fill the tables of docs/choose-a-loss.md from the results.

python -m benchmarks.choose_loss.page
"""

from __future__ import annotations

from typing import Any

from benchmarks.choose_loss.decisions import make_decision_table
from benchmarks.choose_loss.design import QUESTIONS
from benchmarks.choose_loss.measure import RESULT, all_rows
from benchmarks.choose_loss.tables import (
    compare_machines,
    describe_check,
    make_birds_table,
    make_birds_verification_table,
    make_question_table,
    make_rates_table,
)
from benchmarks.harness import DOCS, fill, make_parser, read

PAGE = DOCS / "choose-a-loss.md"


def make_blocks(report: dict[str, Any]) -> dict[str, str]:
    """Return the tables of the page, by the name of their markers."""
    rows = all_rows(report)
    return {
        "choose-decisions": make_decision_table(rows),
        **{f"choose-{name}": make_question_table(rows, question) for name, question in QUESTIONS.items()},
        "choose-check": describe_check(rows),
        "choose-machines": compare_machines(report),
        "choose-rates": make_rates_table(rows),
        "choose-birds": make_birds_table(),
        "choose-birds-verification": make_birds_verification_table(),
    }


def main() -> None:
    """Fill the page."""
    make_parser(__doc__).parse_args()
    report = read(RESULT)
    assert report is not None
    fill(PAGE, make_blocks(report))


if __name__ == "__main__":
    main()
