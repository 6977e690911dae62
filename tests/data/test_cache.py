"""What is stored is right, is used again, is never stale, and survives a kill, damage, and two builders at once."""

from __future__ import annotations

import json
import os
import pickle
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from likewise.data import BrokenImage, ImageDataset, ImageFolder, memory, shards
from likewise.data import cache as cache_module
from likewise.data.augment import Augment
from likewise.data.cache import ImageCache, cached
from likewise.data.crops import CenterCrop
from likewise.data.loader import BatchLoader
from tests.data.test_resample import picture

ROOT = Path(__file__).parents[2]


class Counted(ImageDataset):
    """Pictures that know how often they were decoded."""

    def __init__(self, count: int = 20, seed: int = 0, name: str = "counted"):
        super().__init__(name, torch.arange(count) % 4, ["a", "b", "c", "d"])
        self.seed = seed
        self.decoded: list[int] = []

    def image(self, index: int) -> Image.Image:
        self.decoded.append(index)
        return Image.fromarray(picture(20 + index, 30 + index % 7, seed=self.seed + index))

    def source(self, index: int) -> str:
        return f"{self.seed}/{index}"


@pytest.fixture
def small_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shards, "IMAGES", 3)


def pixels(cache: ImageCache) -> list[bytes]:
    return [cache.array(index).tobytes() for index in range(len(cache))]


# ------------------------------------------------------------------------------------------------ what is stored


@pytest.mark.parametrize("workers", [0, 2])
def test_images_are_stored_as_pillow_resizes_them(tmp_path: Path, small_shards: None, workers: int):
    data = Counted()
    cache = cached(data, tmp_path, size=16, workers=workers)
    assert len(cache) == 20
    assert cache.labels.tolist() == data.labels.tolist()
    assert cache.class_names == data.class_names
    assert cache.source(7) == "0/7"
    for index in range(20):
        photo = data.image(index)
        shorter = min(photo.size)
        expected = photo.resize((photo.width * 16 // shorter, photo.height * 16 // shorter), Image.Resampling.BILINEAR)
        assert cache.image(index).tobytes() == expected.tobytes()
        assert cache.sizes[index].tolist() == [expected.height, expected.width]
    assert cache.nbytes == sum(len(each) for each in pixels(cache))


def test_small_images_are_not_enlarged_and_long_ones_are_cut(tmp_path: Path):
    folder = tmp_path / "photos" / "a"
    folder.mkdir(parents=True)
    small, long = picture(10, 14), picture(20, 140)
    Image.fromarray(small).save(folder / "0.png")
    Image.fromarray(long).save(folder / "1.png")
    Image.fromarray(long.transpose(1, 0, 2)).save(folder / "2.png")
    cache = cached(ImageFolder(tmp_path / "photos"), tmp_path / "cache", size=20, max_ratio=3.0)
    assert (cache.array(0) == small).all()
    assert (cache.array(1) == long[:, 40:100]).all()
    assert (cache.array(2) == long[:, 40:100].transpose(1, 0, 2)).all()


# ------------------------------------------------------------------------------------------------ reuse


def test_images_are_decoded_once(tmp_path: Path, small_shards: None):
    first, second = Counted(), Counted()
    stored = pixels(cached(first, tmp_path, size=16, workers=0))
    assert sorted(first.decoded) == list(range(20))
    assert pixels(cached(second, tmp_path, size=16, workers=0)) == stored
    assert second.decoded == []


def test_anything_else_is_stored_anew(tmp_path: Path):
    """Another data set, another name, other labels, another size or ratio: none of them may get the old pixels."""
    relabeled = Counted()
    relabeled.labels = relabeled.labels.flip(0)
    others = [(Counted(seed=1), {}), (Counted(name="x"), {}), (relabeled, {}), (Counted(count=19), {})]
    others += [(Counted(), {"size": 17}), (Counted(), {"max_ratio": 1.25})]
    folders = {cached(Counted(), tmp_path, size=16).folder}
    for data, settings in others:
        cache = cached(data, tmp_path, **{"size": 16, **settings})
        assert len(data.decoded) == len(data)
        assert cache.folder not in folders
        folders.add(cache.folder)


def test_a_changed_file_is_stored_anew(tmp_path: Path):
    photo = tmp_path / "photos" / "a" / "0.png"
    photo.parent.mkdir(parents=True)
    for shade in (10, 200):
        Image.fromarray(picture(30, 30, seed=shade)).save(photo)
        cache = cached(ImageFolder(tmp_path / "photos"), tmp_path / "cache", size=16)
        expected = Image.open(photo).resize((16, 16), Image.Resampling.BILINEAR)
        assert cache.image(0).tobytes() == expected.tobytes()


def test_a_folder_that_has_moved_is_not_decoded_again(with_broken: Path):
    with pytest.warns(UserWarning, match="cannot be read"):
        first = cached(ImageFolder(with_broken / "photos"), with_broken / "cache", size=16, skip_broken=True)
    (with_broken / "elsewhere").mkdir()
    (with_broken / "photos").rename(with_broken / "elsewhere" / "photos")
    with pytest.warns(UserWarning, match="the first is .*elsewhere"):
        second = cached(
            ImageFolder(with_broken / "elsewhere" / "photos"), with_broken / "cache", size=16, skip_broken=True
        )
    assert second.folder == first.folder
    assert second.source(0) == str(with_broken / "elsewhere" / "photos" / "a" / "0.png")
    assert second.broken[1].source.endswith("elsewhere/photos/b/5.png")


def test_a_store_opens_without_its_data_set(tmp_path: Path):
    made = cached(Counted(), tmp_path, size=16)
    opened = ImageCache.open(made.folder)
    assert pixels(opened) == pixels(made)
    assert opened.labels.tolist() == made.labels.tolist()
    assert opened.fingerprint == made.fingerprint != Counted().fingerprint
    with pytest.raises(FileNotFoundError, match=r"folder must contain a finished cache, but .* has no index\.json"):
        ImageCache.open(tmp_path)


# ------------------------------------------------------------------------------------------------ accidents

SLOW = """
import sys, time
from likewise.data import shards
from tests.data.test_cache import Counted, cached

class Slow(Counted):
    def image(self, index):
        time.sleep(float(sys.argv[2]))
        return super().image(index)

shards.IMAGES = 3
cached(Slow(), sys.argv[1], size=16, workers=int(sys.argv[3]))
print("done")
"""


def start(folder: Path, seconds: float, workers: int = 0) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", SLOW, str(folder), str(seconds), str(workers)],
        stdout=subprocess.PIPE,
        cwd=ROOT,
        text=True,
        start_new_session=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )


@pytest.mark.slow
@pytest.mark.parametrize("workers", [0, 2])
def test_a_killed_build_goes_on(tmp_path: Path, small_shards: None, workers: int):
    expected = pixels(cached(Counted(), tmp_path / "whole", size=16, workers=0))
    with start(tmp_path / "killed", 0.05, workers) as builder:
        deadline = time.monotonic() + 60
        while not list(tmp_path.glob("killed/*/*.json")) and time.monotonic() < deadline:
            time.sleep(0.01)
        os.killpg(builder.pid, signal.SIGKILL)
    finished = list(tmp_path.glob("killed/*/*.json"))
    assert finished
    assert not list(tmp_path.glob("killed/*/index.json"))
    [folder] = (tmp_path / "killed").iterdir()
    with pytest.raises(FileNotFoundError):
        ImageCache.open(folder)
    rest = Counted()
    cache = cached(rest, tmp_path / "killed", size=16, workers=0)
    assert cache.folder == folder
    assert pixels(cache) == expected
    assert len(rest.decoded) <= 20 - 2 * len(finished)
    assert not list(folder.glob("*.part"))
    cache.verify()


@pytest.mark.slow
def test_two_builders_at_once_make_one_store(tmp_path: Path, small_shards: None):
    with start(tmp_path / "both", 0.02) as one, start(tmp_path / "both", 0.02) as other:
        assert [builder.communicate(timeout=100)[0] for builder in (one, other)] == ["done\n", "done\n"]
    nothing = Counted()
    cache = cached(nothing, tmp_path / "both", size=16)
    assert nothing.decoded == []
    cache.verify()
    assert pixels(cache) == pixels(cached(Counted(), tmp_path / "alone", size=16, workers=0))


def test_damage_is_found_and_mended(tmp_path: Path, small_shards: None):
    made = cached(Counted(), tmp_path, size=16, workers=0)
    expected, shard = pixels(made), made.folder / "00002.u8"

    os.truncate(shard, shard.stat().st_size - 1)
    with pytest.raises(ValueError, match=r"00002\.u8 must have \d+ bytes, but it has \d+"):
        ImageCache.open(made.folder)
    again = Counted()
    assert pixels(cached(again, tmp_path, size=16, workers=0)) == expected
    assert sorted(again.decoded) == [6, 7, 8]

    shard.unlink()
    assert pixels(cached(Counted(), tmp_path, size=16, workers=0)) == expected

    (made.folder / "index.json").write_text("{half of an ind")
    with pytest.raises(ValueError, match=r"index\.json is damaged"):
        ImageCache.open(made.folder)
    again = Counted()
    assert pixels(cached(again, tmp_path, size=16, workers=0)) == expected
    assert again.decoded == []


def test_a_changed_byte_is_found_on_request(tmp_path: Path):
    cache = cached(Counted(), tmp_path, size=16)
    cache.verify()
    with (cache.folder / "00000.u8").open("r+b") as file:
        file.seek(100)
        value = file.read(1)[0]
        file.seek(100)
        file.write(bytes([value ^ 1]))
    with pytest.raises(ValueError, match=r"00000\.u8 is damaged"):
        ImageCache.open(cache.folder).verify()


def test_another_version_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    folder = cached(Counted(), tmp_path, size=16).folder
    monkeypatch.setattr(cache_module, "FORMAT", 2)
    with pytest.raises(ValueError, match="another version"):
        ImageCache.open(folder)
    fresh = Counted()
    assert cached(fresh, tmp_path, size=16).folder != folder
    assert fresh.decoded


# ------------------------------------------------------------------------------------------------ broken images


@pytest.fixture
def with_broken(tmp_path: Path) -> Path:
    for index in range(8):
        path = tmp_path / "photos" / "ab"[index % 2] / f"{index}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(picture(20, 25, seed=index)).save(path)
    for index in (2, 5):
        (tmp_path / "photos" / "ab"[index % 2] / f"{index}.png").write_bytes(b"no image")
    return tmp_path


@pytest.mark.parametrize("workers", [0, 2])
def test_a_broken_image_is_named(with_broken: Path, small_shards: None, workers: int):
    data = ImageFolder(with_broken / "photos")
    with pytest.raises(BrokenImage, match=r"cannot read the image .*[25]\.png: .* \(skip_broken=True excludes such"):
        cached(data, with_broken / "cache", size=16, workers=workers)
    assert not list(with_broken.glob("cache/*/index.json"))


def test_broken_images_can_be_skipped_and_are_listed(with_broken: Path, small_shards: None):
    data = ImageFolder(with_broken / "photos")
    with pytest.warns(UserWarning, match="2 of the 8 images of .* cannot be read, the first is .*2.png"):
        cache = cached(data, with_broken / "cache", size=16, skip_broken=True)
    assert [Path(each.source).name for each in cache.broken] == ["2.png", "5.png"]
    assert [cache.source(each.index) for each in cache.broken] == [each.source for each in cache.broken]
    bad = cache.broken[0].index
    with pytest.raises(BrokenImage, match=r"2\.png"):
        cache.image(bad)
    with pytest.raises(BrokenImage, match=r"2\.png"):
        list(BatchLoader(cache, [[bad]], Augment(8, CenterCrop())))
    with pytest.raises(BrokenImage, match=r"2\.png"):
        cache.to("cpu").packed(torch.tensor([bad]))
    good = cache.without(cache.broken)
    assert (len(good), good.broken) == (6, ())
    assert all(Path(good.source(index)).name not in ("2.png", "5.png") for index in range(6))
    assert good.image(0).size == (20, 16)
    # whoever does not ask for it is not given a store with holes
    with pytest.raises(BrokenImage):
        cached(data, with_broken / "cache", size=16)


# ------------------------------------------------------------------------------------------------ parts and places


def test_parts_share_pixels(tmp_path: Path):
    cache = cached(Counted(), tmp_path, size=16)
    part = cache.of_classes([1, 3]).subset([5, 0])
    assert isinstance(part, ImageCache)
    assert [part.source(0), part.source(1)] == ["0/11", "0/1"]
    assert part.class_names == ("b", "d")
    assert np.shares_memory(part.array(1), cache.array(1))
    assert part.fingerprint != cache.fingerprint
    assert len(cache.subset([])) == 0
    with pytest.raises(IndexError):
        cache.subset([20])


def test_queries_and_gallery_stay_apart(tmp_path: Path):
    data = Counted(8)
    data.is_query = torch.tensor([True, False] * 4)
    cache = cached(data, tmp_path, size=16)
    assert isinstance(cache.query, ImageCache)
    assert [cache.query.source(index) for index in range(4)] == ["0/0", "0/2", "0/4", "0/6"]
    assert cache.gallery.labels.tolist() == data.gallery.labels.tolist()
    assert ImageCache.open(cache.folder).is_query.tolist() == data.is_query.tolist()


def test_held_in_memory_it_is_the_same(tmp_path: Path, small_shards: None):
    cache = cached(Counted(), tmp_path, size=16, workers=0).of_classes([0, 2])
    held = cache.to("cpu")
    assert pixels(held) == pixels(cache)
    assert held.labels.tolist() == cache.labels.tolist()
    assert [held.source(index) for index in range(10)] == [cache.source(index) for index in range(10)]
    packed = held.packed(torch.tensor([3, 1]))
    assert packed.pixels.numel() == held.nbytes  # of the part, not of the whole
    start, (height, width) = int(packed.starts[1]), packed.sizes[1].tolist()
    assert packed.pixels[start : start + height * width].numpy().tobytes() == cache.array(1).tobytes()
    with pytest.raises(ValueError, match="in memory or on a device"):
        cache.packed(torch.tensor([0]))


def test_what_does_not_fit_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    cache = cached(Counted(), tmp_path, size=16)
    monkeypatch.setattr(cache_module, "free_memory", lambda device: 2 * cache.nbytes)
    assert cache.to("cpu", share=0.5).nbytes == cache.nbytes
    with pytest.raises(MemoryError, match=r"must fit into 40% of the free memory of cpu, .* GiB, but they take .* GiB"):
        cache.to("cpu", share=0.4)


def test_a_containers_limit_counts(tmp_path: Path):
    assert memory._container_memory(tmp_path) is None
    (tmp_path / "memory.max").write_text("1000\n")
    (tmp_path / "memory.current").write_text("700\n")
    (tmp_path / "memory.stat").write_text("anon 500\ninactive_file 150\n")
    assert memory._container_memory(tmp_path) == 450
    (tmp_path / "memory.max").write_text("max\n")
    assert memory._container_memory(tmp_path) is None


def test_another_process_gets_the_place_not_the_pixels(tmp_path: Path):
    cache = cached(Counted(200), tmp_path, size=64)
    traveling = pickle.dumps(cache)
    assert len(traveling) < cache.nbytes / 20
    assert pixels(pickle.loads(traveling)) == pixels(cache)


def test_building_draws_nothing_from_the_global_generator(tmp_path: Path, small_shards: None):
    torch.manual_seed(0)
    before = torch.get_rng_state()
    cached(Counted(), tmp_path, size=16, workers=2)
    assert torch.equal(before, torch.get_rng_state())


def test_the_index_says_what_made_it(tmp_path: Path):
    cache = cached(Counted(), tmp_path, size=16, max_ratio=2.0)
    index = json.loads((cache.folder / "index.json").read_text())
    assert index["made"]["fingerprint"] == Counted().fingerprint
    assert (index["made"]["size"], index["made"]["max_ratio"]) == (16, 2.0)
    assert index["pillow"]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"size": 0}, "size must be a whole number ≥ 1, but it is 0"),
        ({"max_ratio": 0.5}, r"max_ratio must be ≥ 1\.0, but it is 0\.5"),
        ({"workers": -1}, "workers must be a whole number ≥ 0, but it is -1"),
    ],
)
def test_refusals_say_what_is_wrong(tmp_path: Path, settings: dict, message: str):
    with pytest.raises(ValueError, match=message):
        cached(Counted(), tmp_path, **settings)


def test_nothing_cannot_be_stored(tmp_path: Path):
    with pytest.raises(ValueError, match="dataset must have at least one image, but counted is empty"):
        cached(Counted(0), tmp_path)
