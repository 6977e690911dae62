"""Weights from files, addresses and packages: what fits goes in, and what does not is named."""

from __future__ import annotations

import hashlib
import io
import pickle
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from likewise.trunks import (
    FromFile,
    FromPackage,
    FromUrl,
    Preprocessing,
    Weights,
    build,
    classifier,
    load_state,
    read_state,
)
from tests.trunks.arithmetic import arithmetic_state


def equal(trunk: torch.nn.Module, state: dict[str, torch.Tensor]) -> bool:
    return all(torch.equal(value, state[key]) for key, value in trunk.state_dict().items())


@pytest.fixture
def state() -> dict[str, torch.Tensor]:
    return arithmetic_state(build("convnet"))


def test_files_of_both_kinds(state, tmp_path: Path):
    torch.save(state, tmp_path / "state.pth")
    save_file(state, tmp_path / "state.safetensors")
    for name in ("state.pth", "state.safetensors"):
        assert equal(build("convnet", weights=tmp_path / name), state)
        assert equal(build("convnet", weights=str(tmp_path / name)), state)


def test_weights_bring_their_preprocessing(state, tmp_path: Path):
    torch.save(state, tmp_path / "state.pt")
    dark = Preprocessing(mean=(0.1,), std=(0.3,), order="L", size=48)
    assert build("convnet", weights=Weights(FromFile(tmp_path / "state.pt"), dark)).preprocessing == dark
    assert build("convnet", weights=tmp_path / "state.pt").preprocessing == build("convnet").preprocessing


@pytest.mark.parametrize(
    ("name", "more"),
    [
        ("resnet18", ["fc.weight", "fc.bias"]),
        ("googlenet", ["fc.weight", "aux1.conv.conv.weight", "aux1.fc2.bias", "aux2.fc1.weight"]),
        ("bninception", ["last_linear.weight", "last_linear.bias"]),
        ("efficientnet_lite0", ["_fc.weight", "_fc.bias"]),
    ],
)
def test_classifiers_are_left_out_by_rule(name: str, more: list[str], tmp_path: Path):
    wanted = arithmetic_state(build(name))
    torch.save(wanted | {key: torch.zeros(1) for key in more}, tmp_path / "state.pt")
    assert equal(build(name, weights=tmp_path / "state.pt"), wanted)


def test_the_classifier_on_request(tmp_path: Path):
    weight, bias = torch.randn(1000, 512), torch.randn(1000)
    torch.save({"fc.weight": weight, "fc.bias": bias}, tmp_path / "state.pt")
    found = classifier("resnet18", str(tmp_path / "state.pt"))
    features = torch.randn(3, 512)
    torch.testing.assert_close(found(features), features @ weight.T + bias)
    with pytest.raises(ValueError, match=r"weights must contain a classifier, but '_fc.weight' is missing"):
        classifier("efficientnet_lite0", str(tmp_path / "state.pt"))
    with pytest.raises(ValueError, match=r"'fc.weight' must have 2048 columns, but its shape is \(1000, 512\)"):
        classifier("resnet50", str(tmp_path / "state.pt"))


def test_old_files_without_counters_and_with_rows(tmp_path: Path):
    """As the published file of BN-Inception is."""
    wanted = arithmetic_state(build("bninception"))
    old = {key: value for key, value in wanted.items() if not key.endswith("num_batches_tracked")}
    old = {key: value[None] if "_bn." in key else value for key, value in old.items()}
    torch.save(old, tmp_path / "old.pth", _use_new_zipfile_serialization=False)
    assert equal(build("bninception", weights=tmp_path / "old.pth"), wanted)
    with pytest.raises(ValueError, match=r"has the shape \(1, 32\) and must have \(32,\)"):  # the rule is its own alone
        load_state(build("convnet"), arithmetic_state(build("convnet")) | {"norms.0.weight": torch.zeros(1, 32)})


def test_half_precision_files_widen(state, tmp_path: Path):
    torch.save(
        {key: value.half() if value.is_floating_point() else value for key, value in state.items()}, tmp_path / "h.pt"
    )
    trunk = build("convnet", weights=tmp_path / "h.pt")
    assert trunk.convs[0].weight.dtype == torch.float32
    torch.testing.assert_close(trunk.convs[3].weight.detach(), state["convs.3.weight"], rtol=1e-3, atol=1e-4)


def test_faults_are_named(state, tmp_path: Path):
    wrong = dict(state)
    del wrong["convs.1.weight"]
    wrong["head.weight"] = wrong["head.bias"] = torch.zeros(1)
    wrong["convs.2.weight"] = torch.zeros(128, 64, 5, 5)
    trunk = build("convnet")
    before = {key: value.clone() for key, value in trunk.state_dict().items()}
    message = (
        r"the weights must be those of convnet, but 'convs.1.weight' is missing; 'head.weight' \(and 1 more\) is unexpected;"
        r" 'convs.2.weight' has the shape \(128, 64, 5, 5\) and must have \(128, 64, 3, 3\)"
    )
    with pytest.raises(ValueError, match=message):
        load_state(trunk, wrong)
    assert equal(trunk, before)  # nothing half loaded
    torch.save(arithmetic_state(build("resnet18")), tmp_path / "color.pt")
    with pytest.raises(ValueError, match=r"resnet18, but 'conv1.weight' has the shape \(64, 3, 7, 7\)"):
        build("resnet18", weights=tmp_path / "color.pt", in_channels=1)


class Trap:
    """What a hostile file would hold: unpickling it calls a function."""

    def __reduce__(self):
        return (Path.touch, (self.path,))


@pytest.mark.parametrize("old", [False, True])
def test_nothing_in_a_file_runs(old: bool, tmp_path: Path):
    trap = Trap()
    trap.path = tmp_path / "sprung"
    torch.save({"convs.0.weight": trap}, tmp_path / "trap.pt", _use_new_zipfile_serialization=not old)
    with pytest.raises(
        ValueError, match="must be a state dict of tensors, but it is damaged, or contains other objects"
    ):
        read_state(tmp_path / "trap.pt")
    (tmp_path / "bare.pt").write_bytes(pickle.dumps(trap, protocol=2))
    with pytest.raises(ValueError, match="must be a state dict of tensors"):
        read_state(tmp_path / "bare.pt")
    assert not trap.path.exists()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"epoch": 3}, "must be a state dict of tensors, but its 'epoch' is a int"),
        ({"state_dict": {"a": torch.zeros(1)}}, "but its 'state_dict' is a dict"),
        ([torch.zeros(1)], "must be a state dict of tensors, but it is a list"),
    ],
)
def test_other_files_are_refused(content, message, tmp_path: Path):
    torch.save(content, tmp_path / "other.pt")
    with pytest.raises(ValueError, match=message):
        read_state(tmp_path / "other.pt")


def test_damaged_files_are_one_sentence(state, tmp_path: Path):
    torch.save(state, tmp_path / "whole.pth")
    save_file(state, tmp_path / "whole.safetensors")
    for suffix in (".pth", ".safetensors"):
        whole = (tmp_path / f"whole{suffix}").read_bytes()
        for content in (b"", b"not at all", whole[: len(whole) // 2]):
            (tmp_path / f"cut{suffix}").write_bytes(content)
            with pytest.raises(ValueError, match=rf"cut{suffix} must be a .*, but it is damaged"):
                read_state(tmp_path / f"cut{suffix}")


# ----------------------------------------------------------------------------------------------------------------------
# Addresses


@pytest.fixture
def server() -> Iterator[tuple[str, dict[str, bytes], list[str]]]:
    """A server on this machine: its address, its files, and what was asked for."""
    files: dict[str, bytes] = {}
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            body = files.get(self.path)
            self.send_response(200 if body is not None else 404)
            self.send_header("Content-Length", str(len(body or b"")))
            self.end_headers()
            self.wfile.write(body or b"")

        def log_message(self, *arguments: object) -> None:
            pass

    serving = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=serving.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"http://127.0.0.1:{serving.server_port}", files, asked
    serving.shutdown()
    thread.join()
    serving.server_close()


def test_downloaded_once_and_checked(state, server, tmp_path: Path):
    pytest.importorskip("pooch")
    address, files, asked = server
    buffer = io.BytesIO()
    torch.save(state, buffer)
    files["/small.pth"] = buffer.getvalue()
    digest = hashlib.sha256(buffer.getvalue()).hexdigest()
    weights = Weights(FromUrl(f"{address}/small.pth", digest, tmp_path), build("convnet").preprocessing)
    for _ in range(2):
        assert equal(build("convnet", weights=weights), state)
    assert asked == ["/small.pth"]
    (tmp_path / "small.pth").write_bytes(b"spoiled on the disk")  # found out, and fetched again
    assert equal(build("convnet", weights=weights), state)
    assert len(asked) == 2


def test_other_bytes_are_refused(server, tmp_path: Path):
    pytest.importorskip("pooch")
    address, files, _ = server
    files["/small.pth"] = b"something else"
    with pytest.raises(ValueError, match=r"small.pth must have the sha256 0{64}, but the download has"):
        FromUrl(f"{address}/small.pth", "0" * 64, tmp_path).locate()
    assert list(tmp_path.iterdir()) == []


def test_a_server_that_has_it_not(server, tmp_path: Path):
    pytest.importorskip("pooch")
    address, _, _ = server
    with pytest.raises(OSError, match=r"nothing\.pth could not be downloaded: .*404"):
        FromUrl(f"{address}/nothing.pth", "0" * 64, tmp_path).locate()
    assert list(tmp_path.iterdir()) == []


def test_a_missing_downloader_is_one_sentence(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pooch", None)
    with pytest.raises(ImportError, match=r"downloading weights needs pooch: pip install 'likewise\[train\]'"):
        FromUrl("https://example.org/a.pth", "0" * 64).locate()


# ----------------------------------------------------------------------------------------------------------------------
# Packages


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package of weights whose code must not run."""
    folder = tmp_path / "some_weights"
    folder.mkdir()
    (folder / "__init__.py").write_text("raise RuntimeError('imported')\n")
    torch.save(arithmetic_state(build("convnet")), folder / "convnet.pth")
    monkeypatch.syspath_prepend(tmp_path)
    return folder


def test_from_a_package(package: Path, state):
    digest = hashlib.sha256((package / "convnet.pth").read_bytes()).hexdigest()
    weights = Weights(FromPackage("some-weights", "convnet.pth", digest), build("convnet").preprocessing)
    assert equal(build("convnet", weights=weights), state)


def test_a_package_with_other_bytes(package: Path):
    with pytest.raises(ValueError, match=r"convnet.pth must have the sha256 0{64}, but it has"):
        FromPackage("some-weights", "convnet.pth", "0" * 64).locate()
    with pytest.raises(FileNotFoundError, match=r"some-weights has no file other.pth"):
        FromPackage("some-weights", "other.pth", "0" * 64).locate()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: build("resnet18", weights="imagenet21k"),
            r"weights must be a published name \(resnet18 has 'imagenet'\)",
        ),
        (lambda: build("resnet18", weights="https://example.org/a"), "but it is 'https://example.org/a'"),
        (lambda: build("resnet18", weights="nowhere.pth"), "there is no weights file nowhere.pth"),
        (lambda: FromUrl("file:///etc/passwd", "0" * 64), "url must be the http or https URL of a file"),
        (lambda: FromUrl("https://example.org/", "0" * 64), "url must be the http or https URL of a file"),
        (lambda: FromUrl("https://example.org/a.pth", "abc"), "sha256 must be 64 hexadecimal digits, but it is 'abc'"),
    ],
)
def test_one_sentence(call, message):
    with pytest.raises((ValueError, FileNotFoundError), match=message):
        call()
