"""``likewise verify``: check whether two images show the same thing."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from likewise.app import verify
from likewise.cli.arguments import Arguments
from likewise.cli.image_options import MODEL_HELP, add_transform_option
from likewise.cli.screen import bold, columns, suggest


def run(words: Sequence[str]) -> int:
    """Compare two images: similarity, probability that they show the same thing, and decision.

    Examples:
        >>> run(["nowhere", "a.jpg", "b.jpg"])
        Traceback (most recent call last):
        likewise.app.errors.UserError: there is no model nowhere: give a file that ends in .safetensors, ...
    """
    parser = Arguments(
        "verify", "Check whether two images show the same thing. Needs a model calibrated with `likewise calibrate`."
    )
    parser.add_argument("model", metavar="MODEL", help=f"calibrated: {MODEL_HELP}")
    parser.add_argument("first", metavar="A", type=Path, help="an image")
    parser.add_argument("second", metavar="B", type=Path, help="another")
    parser.add_argument(
        "--far",
        metavar="RATE",
        type=float,
        help="decide at this false-accept rate, such as 0.01 (default: decide for the more likely answer)",
    )
    parser.add_argument(
        "--prior", metavar="P", type=float, default=0.5, help="prior probability that they show the same thing (0.5)"
    )
    add_transform_option(parser)
    options = parser.parse_args(words)
    answer = verify(
        options.model,
        options.first,
        options.second,
        far=options.far,
        prior=options.prior,
        transform=options.transform,
    )
    print(bold(str(answer)))
    if answer.threshold is None:
        return 0
    where = f"{answer.threshold:.4f}: above it, the same thing is more likely than not"
    if (point := answer.point) is not None:
        where = (
            f"{point.threshold:.4f}: {point.far:g} of different pairs and {point.tar:.2f} of matching pairs reach it"
        )
    rows = [
        ("similarity", f"{answer.similarity:.4f}"),
        ("threshold", where),
        (
            "probability",
            f"{answer.probability:.2f} that they show the same thing, if {options.prior:g} of all pairs do",
        ),
    ]
    print(columns(rows))
    if options.far is None:
        suggest("verify", *words, "--far", "0.01")
    else:
        folder = options.first.resolve().parent
        suggest("index", options.model, str(options.first.parent), "-o", f"{folder.name}.index")
    return 0
