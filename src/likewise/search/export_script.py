"""The script of an ONNX export, which embeds images with onnxruntime, without torch and without likewise."""

from __future__ import annotations

import runpy
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from likewise.files import atomic_write

SCRIPT = '''\
"""Print the embeddings of images: pip install onnxruntime pillow; python embed.py a.jpg b.jpg"""

import sys
from pathlib import Path

import numpy as np
import onnxruntime
from PIL import Image, ImageOps

session = onnxruntime.InferenceSession(Path(__file__).with_name("model.onnx"), providers=["CPUExecutionProvider"])


def embed(path):
    image = ImageOps.exif_transpose(Image.open(path)).convert("RGBA")
    rgb = Image.alpha_composite(Image.new("RGBA", image.size, "white"), image).convert("RGB")
    return session.run(["embeddings"], {"images": np.asarray(rgb)[None]})[0][0]


if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1] in ("-h", "--help"):
        sys.exit(__doc__)
    for name in sys.argv[1:]:
        try:
            print(name, *embed(name))
        except OSError as error:
            sys.exit(f"{name} cannot be read as an image: {error}")
'''


def write_script(folder: Path, image: NDArray[Any], truth: NDArray[np.float32], tolerance: float) -> str:
    """Write ``embed.py`` next to ``model.onnx``, run it on an image, and compare its embedding.

    Args:
        folder: folder of ``model.onnx``.
        image: an image ``(H, W, 3)`` in uint8.
        truth: the embedding that torch computes.
        tolerance: largest allowed difference of any number.

    Returns:
        The name of the script.

    Raises:
        ArithmeticError: the script returns a different embedding; it is deleted.
    """
    with tempfile.TemporaryDirectory() as place, atomic_write(folder / "embed.py") as part:
        part.write_text(SCRIPT, encoding="utf-8")
        Image.fromarray(image).save(f"{place}/image.png")
        found = runpy.run_path(str(part))["embed"](f"{place}/image.png")
        worst = float(np.abs(found - truth).max())
        if not worst <= tolerance:
            raise ArithmeticError(f"embed.py differs from torch by {worst:.2g}, over {tolerance:.2g}; it was removed")
    return "embed.py"
