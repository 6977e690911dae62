"""``likewise verify``: do two images show the same?"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from likewise.app import UserError, chosen_model, making
from likewise.cli.arguments import Arguments
from likewise.cli.screen import bold, columns
from likewise.data import RECIPES, BrokenImage
from likewise.search import Calibration, Encoder
from likewise.trunks import read_card


def run(words: Sequence[str]) -> int:
    """Compare two images: their similarity, how likely they show the same, and whether that is enough.

    Examples:
        >>> run(["nowhere", "a.jpg", "b.jpg"])
        Traceback (most recent call last):
        likewise.app.errors.UserError: there is no model nowhere: give a file that ends in .safetensors, or ...
    """
    options = Arguments(
        "verify", "Do two images show the same? Needs a model that `likewise calibrate` has calibrated."
    )
    options.add_argument("model", metavar="MODEL", type=Path, help="a calibrated model, or a run's folder: its best")
    options.add_argument("first", metavar="A", type=Path, help="an image")
    options.add_argument("second", metavar="B", type=Path, help="another")
    options.add_argument(
        "--far", metavar="RATE", type=float, default=0.01, help="how often different things may pass as the same (0.01)"
    )
    options.add_argument(
        "--prior", metavar="P", type=float, default=0.5, help="how likely they are the same before looking (0.5)"
    )
    options.add_argument("--images", metavar="NAME", choices=sorted(RECIPES), help="how images are shown, as for embed")
    given = options.parse_args(words)
    chosen = chosen_model(given.model, given.images)
    with making(f"the model {chosen.file}"):
        encoder, card = Encoder.load(chosen.file, images=chosen.images), read_card(chosen.file)
    if card.calibration is None:
        raise UserError(f"{chosen.file} is not calibrated: likewise calibrate {given.model} IMAGES does that")
    with making("the calibration"):
        learned = Calibration.from_dict(card.calibration)
        point = learned.point(given.far)
    try:
        first, second = encoder.embed([given.first, given.second]).astype(float)
    except BrokenImage as broken:
        raise UserError(str(broken)) from broken
    similarity = float(first @ second / max((first @ first) ** 0.5 * (second @ second) ** 0.5, 1e-12))
    with making("the probability"):
        likely = learned.probability(similarity, prior=given.prior)
    same = similarity >= point.threshold
    print(bold("the same" if same else "not the same"))
    rows = [
        ("similarity", f"{similarity:.4f}"),
        (
            "threshold",
            f"{point.threshold:.4f}, which {point.far:g} of different pairs reach, and {point.tar:.2f} of equal",
        ),
        ("probability", f"{likely:.4f} that they are, if {given.prior:g} of such pairs were"),
    ]
    print(columns(rows))
    return 0
