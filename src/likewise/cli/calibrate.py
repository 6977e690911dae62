"""``likewise calibrate``: fit match probabilities to labeled images and store them in the model's file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from likewise.app import RATES, CalibratedModel, calibrate
from likewise.cli.arguments import Arguments
from likewise.cli.image_options import MODEL_HELP, add_table_options, add_transform_option
from likewise.cli.screen import bold, columns, note, print_broken


def run(words: Sequence[str]) -> int:
    """Fit thresholds and probabilities to labeled images, and write them into the model's file.

    Examples:
        >>> run(["nowhere", "photos"])
        Traceback (most recent call last):
        likewise.app.errors.UserError: there is no model nowhere: give a file that ends in .safetensors, ...
    """
    options = _parser().parse_args(words)
    calibrated = calibrate(
        options.model,
        options.images,
        far=options.far,
        out=options.out,
        transform=options.transform,
        root=options.root,
        path_column=options.path_column,
        label_column=options.label_column,
        allow=options.allow,
    )
    print_broken(calibrated.broken)
    _show(calibrated)
    print(f"stored in {calibrated.file}\nnext: likewise verify {calibrated.file} a.jpg b.jpg")
    return 0


def _parser() -> Arguments:
    parser = Arguments(
        "calibrate",
        "Fit the similarity threshold and the probability that two images show the same thing to labeled images of "
        "classes that the model was not trained on. The result is written into the model's file.",
    )
    parser.add_argument("model", metavar="MODEL", help=MODEL_HELP)
    parser.add_argument(
        "images",
        metavar="IMAGES",
        nargs="?",
        type=Path,
        help="a folder with one subfolder per class, or a table with labels (default: a run's validation classes)",
    )
    parser.add_argument(
        "--far",
        metavar="RATE",
        nargs="+",
        type=float,
        default=list(RATES),
        help="false-accept rates: the fraction of different pairs accepted as the same (0.1 0.01 0.001)",
    )
    parser.add_argument(
        "-o",
        "--out",
        metavar="FILE",
        type=Path,
        help="write a calibrated copy to FILE (default: into the model's file)",
    )
    parser.add_argument(
        "--allow", metavar="PACKAGE", action="append", default=[], help="import this package if the run's data need it"
    )
    add_transform_option(parser)
    add_table_options(parser)
    return parser


def _show(calibrated: CalibratedModel) -> None:
    learned = calibrated.calibration
    print(bold(f"fitted to {calibrated.images:,} images of {calibrated.classes:,} classes"))
    print(columns([("genuine pairs", f"{learned.genuine:,}"), ("impostors", f"{learned.impostors:,}")]))
    rows = [("false accepts", "threshold", "true accepts")]
    rows += [(f"{each.far:g}", f"{each.threshold:.4f}", f"{each.tar:.4f}") for each in learned.points]
    print(columns(rows))
    if learned.error is None:
        note("too few classes to measure how well the probabilities are calibrated")
    else:
        print(f"probabilities are off by {learned.error:.3f} on average, on classes left out of the fit")
    for rate in learned.unreliable_rates():
        note(
            f"{learned.impostors:,} different pairs are too few for a rate of {rate:g}: fewer than ten determine its threshold"
        )
