"""Batches come in order, the same however many threads make them, and go on where they stopped."""

from __future__ import annotations

import pickle
import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor

from likewise.data import ImageDataset
from likewise.data.augment import Augment, Normalize
from likewise.data.cache import ImageCache, cached
from likewise.data.color import ColorJitter
from likewise.data.crops import RandomResizedCrop
from likewise.data.loader import BatchLoader
from likewise.data.samplers import PerClassSampler
from tests.data.test_resample import picture

AUGMENT = Augment(16, RandomResizedCrop(), flip=0.5, normalize=Normalize())
BATCHES = [[0, 5, 3], [1, 2, 11], [7], [4, 6, 8, 9], [10, 0, 1]]


class Pictures(ImageDataset):
    """Twelve small pictures of four classes."""

    def __init__(self) -> None:
        super().__init__("pictures", torch.arange(12) // 3, ["a", "b", "c", "d"])

    def image(self, index: int) -> Image.Image:
        return Image.fromarray(picture(30 + index, 50 - index, seed=index))

    def source(self, index: int) -> str:
        return f"picture {index}"


@pytest.fixture
def cache(tmp_path: Path) -> ImageCache:
    return cached(Pictures(), tmp_path, size=24)


def collect(loader: BatchLoader) -> list[tuple[Tensor, list[int], list[int]]]:
    return [(images.clone(), labels.tolist(), indices.tolist()) for images, labels, indices in loader]


def same(first: list, second: list) -> bool:
    return len(first) == len(second) and all(
        torch.equal(a[0], b[0]) and a[1:] == b[1:] for a, b in zip(first, second, strict=True)
    )


def test_batches_are_the_samplers_in_order(cache: ImageCache):
    found = collect(BatchLoader(cache, BATCHES, AUGMENT))
    assert [indices for _, _, indices in found] == BATCHES
    assert [labels for _, labels, _ in found] == [[index // 3 for index in batch] for batch in BATCHES]
    assert [images.shape[0] for images, _, _ in found] == [3, 3, 1, 4, 3]


@pytest.mark.parametrize(("workers", "prefetch"), [(1, 0), (1, 3), (4, 0), (3, 9)])
@pytest.mark.parametrize("jitter", [None, ColorJitter(0.4, 0.4, 0.4, 0.1)])
def test_threads_change_nothing(cache: ImageCache, workers: int, prefetch: int, jitter: ColorJitter | None):
    augment = replace(AUGMENT, jitter=jitter)
    expected = collect(BatchLoader(cache, BATCHES, augment, workers=2))
    assert same(collect(BatchLoader(cache, BATCHES, augment, workers=workers, prefetch=prefetch)), expected)
    held = cache.to("cpu")
    assert same(collect(BatchLoader(held, BATCHES, augment, workers=workers, prefetch=prefetch)), expected)


@pytest.mark.parametrize("jitter", [None, ColorJitter(0.4, 0.4, 0.4, 0.1)])
def test_batches_that_are_drawn_together_are_the_same(cache: ImageCache, jitter: ColorJitter | None):
    """What happens for a cache on a device, made to happen here; more batches than are drawn together."""
    held, augment = cache.to("cpu"), replace(AUGMENT, jitter=jitter)
    expected = collect(BatchLoader(cache, BATCHES * 4, augment))
    work = iter(enumerate(torch.tensor(batch) for batch in BATCHES * 4))
    together = BatchLoader(held, BATCHES * 4, augment)._on_device(work)
    assert same([(images, labels.tolist(), indices.tolist()) for images, labels, indices in together], expected)


def test_images_are_those_of_the_cache(cache: ImageCache):
    """With a generator of the loader's, the augmentation of single images gives the batch."""
    loader = BatchLoader(cache, BATCHES, AUGMENT, seed=5)
    for step, (images, _, indices) in enumerate(loader):
        chosen = [np.asarray(cache.image(index)) for index in indices.tolist()]
        mixed = np.random.SeedSequence((5, 0, step, 0)).generate_state(1, np.uint64)
        expected = AUGMENT(chosen, torch.Generator().manual_seed(int(mixed[0])))
        assert torch.equal(images, expected)


def test_epochs_seeds_and_ranks_differ(cache: ImageCache):
    loader = BatchLoader(cache, BATCHES, AUGMENT)
    first, second = collect(loader), collect(loader)
    assert loader.epoch == 2
    assert [batch[2] for batch in first] == [batch[2] for batch in second]
    assert not torch.equal(first[0][0], second[0][0])
    assert not torch.equal(first[0][0], collect(BatchLoader(cache, BATCHES, AUGMENT, seed=1))[0][0])
    assert not torch.equal(first[0][0], collect(BatchLoader(cache, BATCHES, AUGMENT, rank=1))[0][0])
    loader.set_epoch(0)
    assert same(collect(loader), first)


def test_a_resumed_run_sees_what_it_would_have_seen(cache: ImageCache):
    whole = BatchLoader(cache, BATCHES, AUGMENT)
    expected = collect(whole) + collect(whole)
    stopped = BatchLoader(cache, BATCHES, AUGMENT, workers=3, prefetch=4)
    iterator = iter(stopped)
    seen = [next(iterator) for _ in range(2)]
    state = stopped.state_dict()  # three more batches are made already
    assert state == {"epoch": 0, "step": 2}
    iterator.close()
    resumed = BatchLoader(cache, BATCHES, AUGMENT)
    resumed.load_state_dict(state)
    rest = collect(resumed) + collect(resumed)
    assert same([(b.images, b.labels.tolist(), b.indices.tolist()) for b in seen] + rest, expected)


@pytest.mark.parametrize("taken", [1, 4, 5, 7])
def test_a_sampler_that_can_resume_is_sent_to_where_the_loader_is(cache: ImageCache, taken: int):
    def loader() -> BatchLoader:
        return BatchLoader(cache, PerClassSampler(cache.labels, classes=2, per_class=2, steps=5), AUGMENT, workers=2)

    whole = loader()
    expected = collect(whole) + collect(whole) + collect(whole)
    stopped, seen = loader(), []
    while len(seen) < taken:
        for batch in stopped:
            seen.append((batch.images.clone(), batch.labels.tolist(), batch.indices.tolist()))
            if len(seen) == taken:
                break
    state = pickle.loads(pickle.dumps(stopped.state_dict()))
    for resumed in (loader(), stopped):  # in another process, and where more was made than was handed out
        if resumed is not stopped:
            resumed.load_state_dict(state)
        rest = collect(resumed)
        while len(seen) + len(rest) < 15:
            rest += collect(resumed)
        assert same(seen + rest, expected)
    with pytest.raises(ValueError, match="state must be of"):
        BatchLoader(cache, PerClassSampler(cache.labels, classes=3, per_class=2), AUGMENT).load_state_dict(state)


def test_the_sampler_is_told_the_epoch(cache: ImageCache):
    class Sampler:
        told: list[int] = []  # noqa: RUF012

        def set_epoch(self, epoch: int) -> None:
            self.told.append(epoch)

        def __iter__(self):
            return iter([[self.told[-1]]])

        def __len__(self) -> int:
            return 1

    loader = BatchLoader(cache, Sampler(), AUGMENT)
    assert len(loader) == 1
    assert [batch[2] for batch in collect(loader) + collect(loader)] == [[0], [1]]


def test_a_batch_stays_what_it_was(cache: ImageCache):
    """Memory is used again, but never while somebody holds a tensor of it, or a view of one."""
    batches = [[index % 12, (index + 1) % 12] for index in range(60)]
    expected = collect(BatchLoader(cache, batches, AUGMENT))
    kept = list(BatchLoader(cache, batches, AUGMENT, workers=2))
    views = [batch.images[1] for batch in BatchLoader(cache, batches, AUGMENT, workers=2)]
    for (images, _, _), batch, view in zip(expected, kept, views, strict=True):
        assert torch.equal(images, batch.images)
        assert torch.equal(images[1], view)
    places = [batch.images.data_ptr() for batch in BatchLoader(cache, batches, AUGMENT, workers=2)]
    assert len(set(places)) < 12


def test_stopping_early_stops_the_threads(cache: ImageCache):
    for _ in BatchLoader(cache, BATCHES * 20, AUGMENT):
        break
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("likewise-batches")]


def test_an_error_in_a_thread_is_raised_where_batches_are_used(cache: ImageCache):
    with pytest.raises(IndexError):
        collect(BatchLoader(cache, [[0], [99]], AUGMENT))


def test_the_global_generator_is_left_alone(cache: ImageCache):
    torch.manual_seed(0)
    before = torch.get_rng_state()
    collect(BatchLoader(cache, BATCHES, AUGMENT))
    assert torch.equal(before, torch.get_rng_state())


def test_parts_of_a_cache_are_loaded_with_their_own_labels(cache: ImageCache):
    part = cache.of_classes([1, 3])
    found = collect(BatchLoader(part, [[0, 5]], AUGMENT))
    assert found[0][1:] == ([0, 1], [0, 5])
    chosen = [np.asarray(cache.image(3)), np.asarray(cache.image(11))]
    mixed = np.random.SeedSequence((0, 0, 0, 0)).generate_state(1, np.uint64)
    assert torch.equal(found[0][0], AUGMENT(chosen, torch.Generator().manual_seed(int(mixed[0]))))


def test_refusals_say_what_is_wrong(cache: ImageCache):
    with pytest.raises(
        TypeError, match=r"images must be an ImageCache, which cached\(\) returns, but it is a Pictures"
    ):
        BatchLoader(Pictures(), BATCHES, AUGMENT)
    with pytest.raises(ValueError, match="workers must be a whole number ≥ 1, but it is 0"):
        BatchLoader(cache, BATCHES, AUGMENT, workers=0)
    with pytest.raises(TypeError, match=r"batches must have a length for len\(loader\)"):
        len(BatchLoader(cache, iter(BATCHES), AUGMENT))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("held", ["on disk", "in memory", "on the device"])
def test_a_gpu_gives_the_same_batches(cache: ImageCache, held: str):
    stored = {"on disk": cache, "in memory": cache.to("cpu"), "on the device": cache.to("cuda")}[held]
    for ours, theirs in zip(
        BatchLoader(cache, BATCHES, AUGMENT), BatchLoader(stored, BATCHES, AUGMENT, device="cuda"), strict=True
    ):
        assert (ours.images - theirs.images.cpu()).abs().max() < 1.1 / 255 / 0.224
        assert torch.equal(ours.labels, theirs.labels.cpu())
        assert torch.equal(ours.indices, theirs.indices.cpu())
