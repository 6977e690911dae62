"""Batch samplers: what a batch is, and what all of them promise."""

from __future__ import annotations

import io
import math
from collections import Counter
from collections.abc import Callable
from itertools import islice

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils.data import DataLoader, TensorDataset

from likewise.data import hard_samplers
from likewise.data.hard_samplers import HardBatchSampler, HardPairSampler, MiningSampler, SmartMiningSampler
from likewise.data.hierarchical_sampler import HierarchicalSampler
from likewise.data.magnet_sampler import MagnetSampler
from likewise.data.random_source import Deck, RandomSource
from likewise.data.samplers import (
    PairSampler,
    PerClassSampler,
    RandomBatchSampler,
    ResumableSampler,
)
from likewise.data.tag_sampler import MultiLabelSampler
from likewise.testing import loop_over

TAGS = torch.rand(120, 24, generator=torch.Generator().manual_seed(2)) < 0.15
LABELS = torch.arange(24).repeat_interleave(5)[torch.randperm(120, generator=torch.Generator().manual_seed(0))]
EMBEDDINGS = torch.randn(120, 8, generator=torch.Generator().manual_seed(1))


def hard_batches(**options: int) -> HardBatchSampler:
    sampler = HardBatchSampler(LABELS, classes=8, per_class=2, anchors=2, **options)
    sampler.update(EMBEDDINGS)
    return sampler


def hard_pairs(**options: int) -> HardPairSampler:
    sampler = HardPairSampler(LABELS, batch_size=16, pairs=4, **options)
    sampler.update(EMBEDDINGS)
    return sampler


def smart(**options: int) -> SmartMiningSampler:
    sampler = SmartMiningSampler(LABELS, batch_size=16, anchors=4, **options)
    sampler.update(EMBEDDINGS)
    return sampler


def magnet(**options: int) -> MagnetSampler:
    sampler = MagnetSampler(LABELS, per_class=1, clusters=8, per_cluster=2, **options)
    sampler.update(EMBEDDINGS)
    return sampler


def hierarchical(**options: int) -> HierarchicalSampler:
    return HierarchicalSampler(LABELS, LABELS // 6, groups=2, classes=8, per_class=2, **options)


def three_levels(**options: int) -> HierarchicalSampler:
    """24 classes, 8 genera of 3 and 4 families of 6."""
    levels = torch.stack([LABELS // 3, LABELS // 6], dim=1)
    return HierarchicalSampler(LABELS, levels, groups=(4, 2), classes=8, per_class=2, **options)


MAKERS: dict[str, Callable[..., ResumableSampler]] = {
    "random": lambda **options: RandomBatchSampler(LABELS, batch_size=16, **options),
    "per class": lambda **options: PerClassSampler(LABELS, classes=8, per_class=2, **options),
    "pairs": lambda **options: PairSampler(LABELS, classes=8, **options),
    "hierarchical": hierarchical,
    "three levels": three_levels,
    "several labels": lambda **options: MultiLabelSampler(TAGS, classes=8, per_class=2, **options),
    "hard batches": hard_batches,
    "hard pairs": hard_pairs,
    "smart": smart,
    "magnet": magnet,
}
every_sampler = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS.keys())


def epochs(sampler: ResumableSampler, count: int) -> list[list[list[int]]]:
    return [list(sampler) for _ in range(count)]


@every_sampler
def test_an_epoch_depends_on_seed_and_number_alone(make: Callable[..., ResumableSampler]):
    first, second = make(seed=3), make(seed=3)
    second.set_epoch(2)
    drawn = epochs(first, 3)
    assert list(second) == drawn[2]
    assert drawn[0] != drawn[1] != drawn[2]
    assert epochs(make(seed=4), 1)[0] != drawn[0]
    second.set_epoch(1)
    assert list(second) == drawn[1]


@every_sampler
def test_batches_are_whole_and_without_repetition(make: Callable[..., ResumableSampler]):
    sampler = make()
    assert len(sampler) == 120 // 16
    for epoch in epochs(sampler, 3):
        assert len(epoch) == len(sampler)
        for batch in epoch:
            assert len(batch) == len(set(batch)) == 16
            assert all(type(index) is int and 0 <= index < 120 for index in batch)
    assert len(list(make(steps=31))) == len(make(steps=31)) == 31


@every_sampler
@pytest.mark.parametrize("world_size", [2, 4])
def test_processes_share_every_batch(make: Callable[..., ResumableSampler], world_size: int):
    whole = epochs(make(seed=5), 2)
    shares = [epochs(make(seed=5, rank=rank, world_size=world_size), 2) for rank in range(world_size)]
    for epoch in range(2):
        for step in range(len(whole[epoch])):
            parts = [share[epoch][step] for share in shares]
            assert [len(part) for part in parts] == [16 // world_size] * world_size
            assert [index for part in parts for index in part] == whole[epoch][step]


@every_sampler
@loop_over("done", [0, 1, 4, 7])
def test_it_continues_in_the_middle_of_an_epoch(make: Callable[..., ResumableSampler], done: int):
    sampler = make(seed=6)
    list(sampler)
    running = iter(sampler)
    for _ in range(done):
        next(running)
    file = io.BytesIO()
    torch.save(sampler.state_dict(), file)
    rest, following = list(running), list(sampler)

    other = fresh(sampler) if isinstance(sampler, MiningSampler) else make(seed=6)
    file.seek(0)
    other.load_state_dict(torch.load(file, weights_only=True))
    other.set_epoch(1)  # as a training loop says at the top of every epoch
    assert list(other) == rest
    assert list(other) == following
    assert len(rest) == 7 - done


def fresh(sampler: ResumableSampler) -> ResumableSampler:
    """The same without neighbors: these come with the state."""
    if isinstance(sampler, HardBatchSampler):
        return HardBatchSampler(LABELS, classes=8, per_class=2, anchors=2, seed=sampler.seed)
    if isinstance(sampler, MagnetSampler):
        return MagnetSampler(LABELS, per_class=1, clusters=8, per_cluster=2, seed=sampler.seed)
    if isinstance(sampler, SmartMiningSampler):
        return SmartMiningSampler(LABELS, batch_size=16, anchors=4, seed=sampler.seed)
    return HardPairSampler(LABELS, batch_size=16, pairs=4, seed=sampler.seed)


@every_sampler
def test_it_continues_with_another_number_of_processes(make: Callable[..., ResumableSampler]):
    whole = list(make(seed=2))
    one = make(seed=2, rank=1, world_size=2)
    list(islice(iter(one), 3))
    other = make(seed=2, rank=3, world_size=4)
    other.load_state_dict(one.state_dict())
    assert list(other) == [batch[12:] for batch in whole[3:]]


def test_a_look_ahead_changes_nothing():
    sampler = MAKERS["per class"](seed=1)
    whole = epochs(MAKERS["per class"](seed=1), 2)
    next(iter(sampler))
    assert list(sampler) == whole[0]
    sampler.load_state_dict(sampler.state_dict(epoch=0, position=5))
    next(iter(sampler))
    assert list(sampler) == whole[0][5:]
    assert list(sampler) == whole[1]


def test_where_a_loop_stands_is_given_when_workers_fetch_ahead():
    sampler = MAKERS["random"](seed=1)
    whole = list(MAKERS["random"](seed=1))
    data = TensorDataset(torch.arange(120))
    loader = DataLoader(data, batch_sampler=sampler, num_workers=1, prefetch_factor=4)
    running = iter(loader)
    assert next(running)[0].tolist() == whole[0]
    assert sampler.position > 1  # fetched ahead
    state = sampler.state_dict(epoch=0, position=1)
    del running
    sampler.load_state_dict(state)
    assert list(sampler) == whole[1:]


def test_going_elsewhere_during_an_epoch_is_respected():
    sampler = MAKERS["random"]()
    for _ in sampler:
        sampler.set_epoch(7)
    assert sampler.epoch == 7


def test_the_same_numbers_on_every_machine():
    """Numpy's own generator, asked for whole words, and sorted by hand."""
    words = np.random.Generator(np.random.PCG64(np.random.SeedSequence(4, spawn_key=(1,)))).integers(
        0, 2**64, size=6, dtype=np.uint64
    )
    order = sorted(range(6), key=lambda place: words[place])
    sampler = RandomBatchSampler([0] * 6, batch_size=3, seed=4)
    sampler.set_epoch(1)
    assert list(sampler) == [order[:3], order[3:]] == [[5, 2, 3], [4, 0, 1]]


# --- what a batch is


def test_random_batches_show_every_image_once():
    sampler = RandomBatchSampler(np.zeros(50, dtype=np.int32), batch_size=7)
    seen = Counter(index for batch in sampler for index in batch)
    assert len(seen) == 49
    assert set(seen.values()) == {1}
    longer = RandomBatchSampler([0] * 50, batch_size=7, steps=100)
    counts = Counter(index for batch in longer for index in batch)
    assert set(counts.values()) == {14}


def test_classes_times_images_class_by_class():
    sampler = PerClassSampler(LABELS, classes=6, per_class=4, steps=20)
    counts: Counter[int] = Counter()
    for batch in sampler:
        classes = LABELS[batch].view(6, 4)
        assert bool((classes == classes[:, :1]).all())
        assert len(classes[:, 0].unique()) == 6
        counts.update(classes[:, 0].tolist())
    assert set(counts.values()) == {20 * 6 // 24}  # dealt like cards


def test_all_images_of_a_class_come_before_one_comes_again():
    sampler = PerClassSampler([0] * 10 + [1] * 3, classes=2, per_class=2, steps=10)
    zeros = [index for batch in sampler for index in batch if index < 10]
    assert sorted(zeros[:10]) == sorted(zeros[10:]) == list(range(10))


def test_only_a_small_class_repeats_its_images():
    sampler = PerClassSampler([5, 5, 5, 5, 5, 5, 9, 9], classes=2, per_class=4, steps=30)
    for batch in sampler:
        large, small = sorted((sorted(batch[:4]), sorted(batch[4:])))
        assert len(set(large)) == 4
        assert max(large) <= 5
        assert set(small) == {6, 7}
        assert len(small) == 4


def test_pairs_are_of_different_classes():
    for batch in PairSampler(LABELS, classes=10):
        classes = LABELS[batch].view(10, 2)
        assert bool((classes[:, 0] == classes[:, 1]).all())
        assert len(classes[:, 0].unique()) == 10


def test_a_class_without_a_pair_is_never_drawn():
    with pytest.warns(UserWarning, match="1 of 3 classes are never drawn: a pair needs two images of a class"):
        sampler = PairSampler([0, 0, 1, 2, 2], classes=2, steps=20)
    assert 2 not in {index for batch in sampler for index in batch}


def test_few_categories_several_classes_some_images():
    categories = LABELS // 6
    counts: Counter[int] = Counter()
    for batch in HierarchicalSampler(LABELS, categories, groups=2, classes=6, per_class=3, steps=20):
        classes = LABELS[batch].view(2, 3, 3)
        assert bool((classes == classes[..., :1]).all())
        kinds = categories[batch].view(2, 9)
        assert bool((kinds == kinds[:, :1]).all())
        assert kinds[0, 0] != kinds[1, 0]
        assert len(classes.unique()) == 6
        counts.update(kinds[:, 0].tolist())
    assert counts == {0: 10, 1: 10, 2: 10, 3: 10}


def test_a_batch_of_three_levels():
    """Two families, two genera of each, two classes of each genus, two images of each class; a process has whole classes."""
    whole = list(three_levels(steps=6))
    for batch in whole:
        labels = LABELS[batch].view(2, 2, 2, 2)
        assert [len(each.unique()) for each in (labels, labels // 3, labels // 6)] == [8, 4, 2]
        assert bool((labels // 6 == labels[:, :1, :1, :1] // 6).all())
        assert bool((labels // 3 == labels[:, :, :1, :1] // 3).all())
        assert bool((labels == labels[..., :1]).all())
    shares = [list(three_levels(steps=6, rank=rank, world_size=4)) for rank in range(4)]
    assert [[index for part in parts for index in part] for parts in zip(*shares, strict=True)] == whole


def test_a_small_category_is_never_drawn():
    labels, categories = [0, 1, 2, 3, 4], [8, 8, 9, 9, 7]
    with pytest.warns(UserWarning, match="1 of 3 categories are never drawn: only 2 are with 2 classes or more"):
        sampler = HierarchicalSampler(labels, categories, groups=1, classes=2, per_class=1, steps=9)
    assert {frozenset(batch) for batch in sampler} == {frozenset([0, 1]), frozenset([2, 3])}


def by_hand(similar: np.ndarray, same: np.ndarray) -> list[list[int]]:
    """For each row the others, most similar first."""
    return [
        sorted((other for other in range(len(row)) if not same[place, other]), key=lambda other: -row[other])
        for place, row in enumerate(similar)
    ]


@pytest.mark.parametrize("tile", [1, 700, 1 << 24])
def test_neighboring_classes(monkeypatch: pytest.MonkeyPatch, tile: int):
    """Against a loop that sorts all classes by the cosine of their means."""
    monkeypatch.setattr(hard_samplers, "_CHUNK", tile)
    sampler = hard_batches(steps=40)
    units = EMBEDDINGS.double() / EMBEDDINGS.double().norm(dim=1, keepdim=True)
    means = torch.stack([units[each == LABELS].mean(dim=0) for each in range(24)]).numpy()
    means /= np.linalg.norm(means, axis=1, keepdims=True)
    near = by_hand(means @ means.T, np.eye(24, dtype=bool))
    anchors = Counter()
    for batch in sampler:
        classes = LABELS[batch].view(8, 2)
        assert bool((classes[:, 0] == classes[:, 1]).all())
        got, expected = classes[:, 0].tolist(), []
        for start in (0, 4):
            anchors[got[start]] += 1
            expected.append(got[start])
            expected += [other for other in near[got[start]] if other not in expected][:3]
        assert got == expected
    assert len(anchors) == 24


@pytest.mark.parametrize("tile", [1, 700, 1 << 24])
def test_pairs_and_their_hard_neighbors(monkeypatch: pytest.MonkeyPatch, tile: int):
    """Against a loop that sorts all images of other classes by cosine."""
    monkeypatch.setattr(hard_samplers, "_CHUNK", tile)
    sampler = hard_pairs(steps=40)
    units = (EMBEDDINGS.double() / EMBEDDINGS.double().norm(dim=1, keepdim=True)).numpy()
    near = by_hand(units @ units.T, (LABELS[:, None] == LABELS[None, :]).numpy())
    for batch in sampler:
        groups = torch.tensor(batch).view(4, 4).tolist()
        assert len({int(LABELS[group[0]]) for group in groups}) == 4
        taken = {index for group in groups for index in group[:2]}
        for one, two, *others in groups:
            assert LABELS[one] == LABELS[two]
            assert one != two
            expected = []
            for pair in zip(near[one], near[two], strict=True):
                for index in pair:
                    if index not in taken and len(expected) < 2:
                        expected.append(index)
                        taken.add(index)
            assert others == expected


def test_smart_mining_brings_far_positives_and_near_negatives():
    units = torch.nn.functional.normalize(EMBEDDINGS, dim=1)
    only = SmartMiningSampler(LABELS, batch_size=3, anchors=1, neighbors=1, steps=20)
    only.update(EMBEDDINGS)
    for anchor, positive, negative in only:
        similar, alike = units[anchor] @ units.T, LABELS[anchor] == LABELS
        assert positive == int(similar.masked_fill(~alike, 2.0).argmin())
        assert negative == int(similar.masked_fill(alike, -2.0).argmax())


def test_classes_by_mean_distance():
    """Anchor-neighbor sampling: the next class is that of the least mean squared distance between images."""
    sampler = HardBatchSampler(LABELS, classes=2, per_class=1, anchors=1, normalize=False, steps=40)
    scaled = EMBEDDINGS + 3.0 * (LABELS[:, None] == 5) * EMBEDDINGS[0]  # a class whose mean is long
    sampler.update(scaled)
    squares = torch.cdist(*[torch.nn.functional.normalize(scaled.double(), dim=1)] * 2).square()
    own = torch.nn.functional.one_hot(LABELS, 24).double()
    between = own.T @ squares @ own / 25.0 + 9.0 * torch.eye(24)
    for anchor, neighbor in (LABELS[batch].tolist() for batch in sampler):
        assert neighbor == int(between[anchor].argmin())


def test_a_cluster_and_its_impostors():
    """Clusters of two modes per class; the first is drawn by its loss, the others are the nearest of other classes."""
    labels = torch.arange(6).repeat_interleave(8)
    generator = torch.Generator().manual_seed(4)
    modes = torch.nn.functional.normalize(torch.randn(12, 5, generator=generator), dim=1)
    modes[2] = modes[0]  # a mode of class 1 lies where one of class 0 does: these two clusters cost the most
    truth = torch.arange(12).repeat_interleave(4)
    points = torch.nn.functional.normalize(modes[truth] + 0.01 * torch.randn(48, 5, generator=generator), dim=1)
    sampler = MagnetSampler(labels, per_class=2, clusters=3, per_cluster=4, steps=60, seed=1)
    sampler.update(points)
    targets = sampler.targets
    assert torch.equal(targets[:, 1], labels)
    for cluster in range(12):
        assert len(truth[targets[:, 0] == cluster].unique()) == 1
        assert int((targets[:, 0] == cluster).sum()) == 4
    means = torch.stack([points[truth == mode].mean(dim=0) for mode in range(12)])
    apart = torch.cdist(means, means) + 9.0 * (torch.arange(12)[:, None] // 2 == torch.arange(12) // 2)
    firsts = Counter()
    for batch in sampler:
        chosen = truth[batch].view(3, 4)
        assert bool((chosen == chosen[:, :1]).all())
        first, *others = chosen[:, 0].tolist()
        assert others == apart[first].argsort()[:2].tolist()
        firsts[first] += 1
    assert set(firsts) == {0, 2}
    again = MagnetSampler(labels, per_class=2, clusters=3, per_cluster=4, steps=60, seed=1)
    again.load_state_dict(sampler.state_dict(epoch=0, position=7))
    sampler.set_epoch(0)
    assert list(again) == list(sampler)[7:]
    assert torch.equal(again.targets, targets)
    for rank in (0, 1):  # all images of a class in one place: fewer clusters than half a batch
        few = MagnetSampler(labels, per_class=8, clusters=20, per_cluster=1, alpha=1e300, rank=rank, world_size=2)
        few.update(torch.nn.functional.one_hot(labels, 6).float())
        assert {len(batch) for batch in few} == {10}


def test_mining_in_the_middle_of_an_epoch():
    """The batches before are as they were; those after follow the new table, and a state finds them again."""
    sampler, other = hard_batches(seed=6), hard_batches(seed=6)
    first = list(sampler)
    other.update(-EMBEDDINGS.flip(0), epoch=0, position=3)
    rest = list(other)
    assert len(rest) == len(first) - 3
    assert rest != first[3:]
    again = hard_batches(seed=6)
    again.update(-EMBEDDINGS.flip(0), epoch=0, position=3)
    state = again.state_dict(epoch=0, position=5)
    loaded = fresh(again)
    loaded.load_state_dict(state)
    assert list(loaded) == rest[2:]


def test_when_neighbors_run_out_others_come():
    labels = [0, 0, 1, 1, 2, 2, 3, 3]
    sampler = HardPairSampler(labels, batch_size=8, pairs=1, neighbors=1, steps=12)
    sampler.update(torch.randn(8, 4))
    assert all(sorted(batch) == list(range(8)) for batch in sampler)


def test_few_negatives_are_enough():
    sampler = HardPairSampler([0, 0, 0, 1, 1], batch_size=4, pairs=1, neighbors=32, steps=12)
    sampler.update(torch.randn(5, 2, dtype=torch.float16))
    assert all(len(set(batch)) == 4 for batch in sampler)


def test_hard_samplers_follow_the_embeddings():
    sampler = hard_batches()
    before = list(sampler)
    sampler.update(torch.randn(120, 8, generator=torch.Generator().manual_seed(9)))
    sampler.set_epoch(0)
    assert list(sampler) != before


# --- decks


@settings(max_examples=80, deadline=None)
@given(st.integers(1, 12), st.lists(st.integers(1, 12), min_size=1, max_size=20), st.integers(0, 99))
def test_a_deck_repeats_no_card_too_early(size: int, counts: list[int], seed: int):
    deck = Deck(np.arange(size), RandomSource(seed))
    dealt: list[int] = []
    for count in counts:
        hand = deck.deal(min(count, size))
        assert len(hand) == len(set(hand)) == min(count, size)
        dealt += hand
    totals = Counter(dealt)
    most, least = max(totals.values()), min(totals.get(card, 0) for card in range(size))
    assert most - least <= 1


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.integers(-3, 6), min_size=4, max_size=40),
    st.integers(1, 4),
    st.integers(1, 4),
    st.integers(0, 2**33),
    st.data(),
)
def test_per_class_whatever_the_labels(labels: list[int], classes: int, per_class: int, seed: int, data: st.DataObject):
    sizes = Counter(labels)
    if classes > len(sizes):
        with pytest.raises(ValueError, match=f"classes must be at most {len(sizes)}, the number of classes"):
            PerClassSampler(labels, classes=classes, per_class=per_class)
        return
    sampler = PerClassSampler(labels, classes=classes, per_class=per_class, seed=seed, steps=6)
    whole = list(sampler)
    for batch in whole:
        drawn = [labels[index] for index in batch]
        assert len(drawn) == classes * per_class
        assert set(Counter(drawn).values()) == {per_class}
        for each in set(drawn):
            assert len({index for index in batch if labels[index] == each}) == min(per_class, sizes[each])
    place = data.draw(st.integers(0, 6))
    sampler.load_state_dict(sampler.state_dict(epoch=0, position=place))
    assert list(sampler) == whole[place:]


# --- refusals


def refused(**change: object) -> None:
    state = MAKERS["per class"]().state_dict()
    MAKERS["per class"]().load_state_dict({**state, **change})


@loop_over(
    "call, message",
    [
        (lambda: RandomBatchSampler([0, 1], batch_size=3), "batch_size must be at most the number of images, 2"),
        (
            lambda: RandomBatchSampler([0] * 9, batch_size=3, world_size=2),
            "batch_size must be a multiple of world_size, 2",
        ),
        (lambda: RandomBatchSampler([0] * 9, batch_size=3, rank=1), "rank must be below world_size, 1, but it is 1"),
        (lambda: RandomBatchSampler([0] * 9, batch_size=0), "batch_size must be a whole number ≥ 1, but it is 0"),
        (lambda: RandomBatchSampler([0] * 9, batch_size=2, steps=0), "steps must be a whole number ≥ 1, but it is 0"),
        (lambda: RandomBatchSampler([0] * 9, batch_size=2, seed=-1), "seed must be a whole number ≥ 0, but it is -1"),
        (lambda: RandomBatchSampler([0.5], batch_size=1), r"labels must be whole numbers of shape \(n,\)"),
        (lambda: RandomBatchSampler([], batch_size=1), r"labels must be whole numbers of shape \(n,\)"),
        (lambda: RandomBatchSampler([[0]], batch_size=1), r"labels .* but they are int64 of shape \(1, 1\)"),
        (
            lambda: PerClassSampler(LABELS, classes=25),
            "classes must be at most 24, the number of classes, but it is 25",
        ),
        (lambda: PerClassSampler(LABELS, classes=9, world_size=2), "classes must be a multiple of world_size, 2"),
        (lambda: PerClassSampler(LABELS, classes=8, per_class=0), "per_class must be a whole number ≥ 1, but it is 0"),
        (
            lambda: PairSampler(LABELS, classes=25),
            "classes must be at most 24, .* with two images or more, but it is 25",
        ),
        (lambda: HierarchicalSampler([0, 0], [1, 2]), "all images of a class, but class 0 is in 1 and in 2"),
        (lambda: HierarchicalSampler([0, 0], [1]), "categories must have one entry for each of the 2 labels"),
        (lambda: HierarchicalSampler(LABELS, LABELS // 6, groups=5, classes=10), "groups must be at most 4, the cat"),
        (lambda: HierarchicalSampler(LABELS, LABELS // 6, groups=3, classes=8), "classes must be a multiple of groups"),
        (
            lambda: HierarchicalSampler(LABELS, LABELS // 6, groups=(2, 1)),
            "for each of the 1 levels of categories, but it has 2",
        ),
        (
            lambda: HardBatchSampler(LABELS, classes=8, anchors=3),
            "classes must be a multiple of anchors, 3, but it is 8",
        ),
        (lambda: next(iter(HardBatchSampler(LABELS, classes=8))), r"update\(embeddings\) must be called before"),
        (lambda: MagnetSampler([0, 1], clusters=2, alpha=math.nan), "alpha must be a finite number, but it is nan"),
        (lambda: MagnetSampler([0, 0, 1], clusters=4), "clusters must be at most 2, the number of clusters"),
        (lambda: hard_batches().update(EMBEDDINGS[1:]), "one row for each of the 120 labels, but it has 119"),
        (lambda: hard_batches().update(LABELS), "embeddings must be a float tensor .* torch.int64 of shape"),
        (lambda: hard_batches().update([1.0]), "embeddings must be a float tensor .* but it is a list"),
        (lambda: hard_pairs().update(EMBEDDINGS / 0.0), "embeddings must be finite, but row 0 contains"),
        (
            lambda: HardPairSampler(LABELS, batch_size=6, pairs=4),
            "batch_size must be between 8, the images of all pairs",
        ),
        (lambda: HardPairSampler(LABELS, batch_size=18, pairs=4), "batch_size must be a multiple of pairs, 4"),
        (
            lambda: HardPairSampler(LABELS, batch_size=16, pairs=4, world_size=8),
            "pairs must be a multiple of world_size",
        ),
        (lambda: HardPairSampler(LABELS, batch_size=60, pairs=30), "pairs must be at most 24, the classes with two"),
        (
            lambda: refused(sampler="PairSampler"),
            "state must be of the same sampler, PerClassSampler, but it is of Pair",
        ),
        (lambda: MAKERS["random"]().load_state_dict({}), "state must be of the same sampler, .*, but it is of None"),
        (lambda: refused(epoch=None), "epoch must be a whole number ≥ 0, but it is None"),
        (lambda: refused(labels="0"), "state must be of the same labels"),
        (lambda: refused(settings={"classes": 8}), "state must be of a sampler with batch_size=16, but .*=None"),
        (lambda: refused(position=99), "position must be at most 7, the steps of an epoch, but it is 99"),
        (lambda: MAKERS["random"]().set_epoch(-1), "epoch must be a whole number ≥ 0, but it is -1"),
    ],
)
def test_one_sentence(call: Callable[[], object], message: str):
    with pytest.raises((ValueError, TypeError, RuntimeError), match=message):
        call()


def test_several_labels() -> None:
    """Each group of a batch shares a label, no image comes twice, and labels are dealt like cards."""
    sampler = MultiLabelSampler(TAGS, classes=8, per_class=3)
    for batch in islice(sampler, 5):
        assert len(set(batch)) == 24
        assert all(TAGS[batch[first : first + 3]].all(dim=0).any() for first in range(0, 24, 3))
    few = torch.tensor([[True, False], [True, False], [True, True], [False, True]])
    batch = next(iter(MultiLabelSampler(few, classes=2, per_class=3)))
    assert set(batch) == {0, 1, 2, 3}  # too few images: one comes again
    with pytest.raises(ValueError, match="classes must be at most 2, the number of classes with two images or more"):
        MultiLabelSampler(few, classes=3)
    with pytest.raises(TypeError, match=r"tags must be booleans of shape \(n, C\)"):
        MultiLabelSampler(few.long(), classes=1)
