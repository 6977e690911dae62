"""Results beside what papers claim and what others measured under equal conditions.

    python -m studies.published.compare FOLDER … --data CUB200 --metric "test R@1" --figure papers-versus-reality.svg

FOLDER is a study or a run.  Improvements over the contrastive and the triplet loss are printed, and drawn with --figure; --trend
draws the scores themselves by year, according to papers and according to reality.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from likewise.app import UserError, collect_trainings
from studies.published.reality import comparison, draw_improvements, papers_versus_reality
from studies.published.tables import DATA
from studies.published.trend import draw_trend


def main(words: Sequence[str] | None = None) -> None:
    """Print the comparison, and draw it if asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", metavar="FOLDER", nargs="*", type=Path, help="studies, or runs; none: papers only")
    parser.add_argument("--data", default="CUB200", choices=DATA, help="the data set of the published numbers")
    parser.add_argument("--metric", default="test R@1", help="a column of the results")
    parser.add_argument("--figure", type=Path, help="an SVG file to write")
    parser.add_argument("--trend", metavar="FIGURE", type=Path, help="an SVG file with the scores by year")
    options = parser.parse_args(words)
    try:
        rows = collect_trainings(options.folders).rows if options.folders else ()
        series = papers_versus_reality(rows, data=options.data, metric=options.metric)
    except (UserError, ValueError) as error:
        raise SystemExit(str(error)) from error
    print(comparison(series))
    if options.figure is not None:
        options.figure.write_bytes(draw_improvements(series))
        print(f"wrote {options.figure}")
    if options.trend is not None:
        options.trend.write_bytes(draw_trend(rows, data=options.data, metric=options.metric))
        print(f"wrote {options.trend}")


if __name__ == "__main__":
    main()
