"""Ranks and retrieval against plain Python, other libraries and worked examples."""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest
import torch
from tests.oracles import ranking
from torch import Tensor

from likewise.formula import Cosine, Dot, Euclidean, Labels, Masks, SquaredEuclidean
from likewise.metrics import (
    Ranks,
    candidates,
    first_ranks,
    prepared_rows,
    ranks,
    retrieval,
    similarity_rows,
    symmetric_ranks,
    threshold_counts,
    whole_ranks,
)
from likewise.metrics.inputs import Exclusion, check_inputs
from likewise.metrics.metric_names import parse_metrics
from likewise.metrics.query_scores import score_queries
from likewise.metrics.row_counts import Method

TIES = ("expected", "optimistic", "pessimistic")


def grid(n: int, dim: int, seed: int, levels: int = 3) -> Tensor:
    """Integer embeddings: their products are exact in any dtype, and many tie."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(-(levels // 2), levels // 2 + 1, (n, dim), generator=generator).float()


def uneven_labels(n: int, seed: int) -> Tensor:
    """Large classes, pairs and singletons, under ids that are negative or beyond 2^24."""
    draw = random.Random(seed)
    names = [-5, 2**24, 2**24 + 1, 2**40, 0, 7]
    weights = [5, 3, 1, 1, 1, 1]
    return torch.tensor(draw.choices(names, weights, k=n))


def by_hand(similarities: Tensor, positive: Tensor, counted: Tensor, ties: str) -> list[dict[str, float] | None]:
    rows = []
    for s, p, c in zip(similarities.tolist(), positive.tolist(), counted.tolist(), strict=True):
        keep = [j for j in range(len(s)) if c[j]]
        rows.append(ranking.of_query([s[j] for j in keep], [p[j] for j in keep], ties))
    return rows


def agree(found: dict, expected: list[dict[str, float] | None], names: tuple[str, ...] = ranking.METRICS):
    with_positive = [index for index, row in enumerate(expected) if row is not None]
    assert found["query"].tolist() == with_positive
    assert found["queries_without_positive"] == len(expected) - len(with_positive)
    for name in names:
        wanted = torch.tensor([expected[index][name] for index in with_positive], dtype=torch.float64)
        torch.testing.assert_close(found[name], wanted, rtol=1e-12, atol=1e-12, msg=lambda text, n=name: f"{n}: {text}")


CHUNKED = ("many chunks", "sorted chunks", "candidates", "two threads")
WAYS = ("chosen", *CHUNKED, *(method.name for method in Method))


@pytest.fixture
def threads() -> Iterator[None]:
    """Tests may set the number of threads."""
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, threads: None) -> str:
    """Every way to count, and chunks of a few rows, so that a case of a dozen samples has many."""
    way: str = request.param
    if way == "chosen":
        return way
    monkeypatch.setattr(symmetric_ranks, "MIN_SIZE", 2)
    monkeypatch.setattr(symmetric_ranks, "MAX_SIZE", 4)
    monkeypatch.setattr(similarity_rows.SimilarityRows, "fit_queries", lambda self, positives: 3)
    monkeypatch.setattr(prepared_rows, "CHUNK_ENTRIES", 4)
    monkeypatch.setattr(threshold_counts, "CHUNK_ENTRIES", 5)
    force(way, monkeypatch)
    return way


def force(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Count in this way, wherever it is possible."""
    torch.set_num_threads(2 if way == "two threads" else 1)
    monkeypatch.setattr(symmetric_ranks, "compares_faster", lambda thresholds: way != "sorted chunks")
    monkeypatch.setattr(symmetric_ranks, "get_selection_limit", lambda *arguments: 99 * (way == "candidates"))
    monkeypatch.setattr(candidates, "ADDED_PER_NEIGHBOR", 99)
    if way in CHUNKED:
        monkeypatch.setattr(symmetric_ranks, "get_comparison_limit", lambda *arguments: 99)
        return

    def choose(width: int, positives: int, neighbors: int | None, device: torch.device) -> Method:
        if Method[way] is Method.SELECT and (neighbors is None or neighbors > width):
            return Method.SORT
        return Method[way]

    monkeypatch.setattr(similarity_rows, "choose_method", choose)
    monkeypatch.setattr(sys.modules["likewise.metrics.ranks"], "plan_layout", lambda *arguments: None)


def check(expected: list[dict[str, float] | None], *arguments: Tensor | None, **options: object):
    """All metrics, and those of the first neighbors without the others."""
    agree(retrieval(*arguments, metrics=ranking.METRICS, reduce="none", **options), expected)
    # few enough neighbors for a selection among a dozen references
    names = ("R@1", "P@2", "mAP@2", "nDCG@2", "RP", "MAP@R")
    found = retrieval(*arguments, metrics=names, reduce="none", **options)
    agree(found, expected, names)


def test_labels(way: str):
    """Queries among themselves, and queries and a gallery, in every order of ties."""
    for seed, ties in product(range(3), TIES):
        n = 6 + 2 * seed
        embeddings, labels = grid(n, 2, seed), uneven_labels(n, seed)
        same, others = labels[:, None] == labels, ~torch.eye(n, dtype=torch.bool)
        for similarity in (Dot(), SquaredEuclidean(normalize=False)):
            expected = by_hand(similarity(embeddings), same, others, ties)
            check(expected, embeddings, labels, similarity=similarity, ties=ties)
        queries, query_labels = grid(4, 2, seed + 100), uneven_labels(4, seed + 1)
        query_labels[0] = labels[0]
        same, everybody = query_labels[:, None] == labels, torch.ones(4, n, dtype=torch.bool)
        expected = by_hand(Dot()(queries, embeddings), same, everybody, ties)
        check(expected, queries, query_labels, embeddings, labels, similarity="dot", ties=ties)


def test_relevance_of_ones_own(way: str):
    """Several labels each: two samples are relevant to each other if they share one; in the relation some are junk."""
    n = 8
    generator = torch.Generator().manual_seed(3)
    tags = torch.rand(n, 3, generator=generator) < 0.4
    share = (tags.float() @ tags.float().T) > 0
    others = ~torch.eye(n, dtype=torch.bool)
    junk = torch.rand(n, n, generator=generator) < 0.2
    embeddings = grid(n, 2, 3)

    def function(rows: Tensor, columns: Tensor) -> Tensor:
        return tags[rows].float() @ tags[columns].float().T > 0

    relation = Masks(share & others, ~share & others & ~junk)
    for relevant, counted in ((share, others), (function, others), (relation, others & (share | ~junk))):
        expected = by_hand(Dot()(embeddings), share, counted, "expected")
        check(expected, embeddings, relevant=relevant, similarity="dot")


def test_expected_ranks(way: str):
    n = 9
    embeddings, labels = grid(n, 2, 1), uneven_labels(n, 1) % 2
    found = ranks(embeddings, labels, similarity="dot")
    S = Dot()(embeddings)
    for query in range(n):
        keep = [j for j in range(n) if j != query]
        same = [bool(labels[j] == labels[query]) for j in keep]
        mine = found.query == query
        assert int(found.positives[query]) == sum(same) == int(mine.sum())
        assert found.rank[mine].tolist() == pytest.approx(
            ranking.expected_ranks([float(S[query, j]) for j in keep], same), abs=1e-12
        )
        positives = found.reference[mine].tolist()
        assert sorted(positives) == [j for j, hit in zip(keep, same, strict=True) if hit]
        values = [float(S[query, j]) for j in positives]
        assert values == sorted(values, reverse=True)


@pytest.mark.parametrize("sizes", [(4, 2, 1), (60, 40), (3, 30, 50, 2), (1, 45)])
def test_ranks_of_classes_of_uneven_sizes(sizes: tuple[int, ...]):
    """Also where classes are a large part of the references, so that positives and negatives are sorted together."""
    n, labels = sum(sizes), torch.arange(len(sizes)).repeat_interleave(torch.tensor(sizes))
    order = torch.randperm(n, generator=torch.Generator().manual_seed(n))
    x, labels = torch.randn(n, 3, generator=torch.Generator().manual_seed(1)), labels[order]
    found, S = ranks(x, labels, similarity="dot"), x @ x.T
    for query, reference, rank in zip(found.query.tolist(), found.reference.tolist(), found.rank.tolist(), strict=True):
        above = (S[query] > S[query, reference]).sum() - (S[query, query] > S[query, reference]).long()
        assert (labels[query], rank) == (labels[reference], int(above) + 1)
    same = (labels[:, None] == labels) & ~torch.eye(n, dtype=torch.bool)
    pairs = torch.stack([found.query, found.reference], dim=1).tolist()
    assert sorted(pairs) == same.nonzero().tolist()


def test_ways_agree(monkeypatch: pytest.MonkeyPatch, threads: None):
    """Symmetric chunks, masks and every way to count rows give the same counts on real numbers with duplicates."""
    generator = torch.Generator().manual_seed(1)
    labels = torch.cat([torch.randint(0, 12, (240,), generator=generator), torch.full((60,), 12)])
    vectors = torch.randn(300, 16, generator=generator)
    vectors[50:60] = vectors[100:110]
    calls = {
        "labels": lambda x, **options: retrieval(x, labels, **options),
        "masks": lambda x, **options: retrieval(x, relevant=labels[:, None] == labels, **options),
        "gallery": lambda x, **options: retrieval(x, labels, x, labels, exclude_self=True, **options),
    }
    names = ("R@1", "P@5", "RP", "MAP@R")
    wanted = {}
    for way in WAYS:
        if way != "chosen":
            force(way, monkeypatch)
        for similarity, dtype in product(
            ("cosine", "euclidean", "dot", "snr"), (torch.float32, torch.float64, torch.float16)
        ):
            x = vectors.to(dtype)
            for name, call in calls.items():
                everything = call(x, similarity=similarity)
                first = call(x, similarity=similarity, metrics=names)
                base = wanted.setdefault((similarity, dtype), {**first, **everything})
                slack = 2e-4 if similarity == "euclidean" else 2e-5
                assert everything == pytest.approx({key: base[key] for key in everything}, abs=slack), (way, name)
                assert first == pytest.approx({key: base[key] for key in first}, abs=slack), (way, name)


def test_whole_matrix(monkeypatch: pytest.MonkeyPatch):
    """The short way of a GPU, forced on the CPU: sums with few ties, and a chunk of ranks with many."""
    monkeypatch.setattr(whole_ranks, "get_comparison_limit", lambda *arguments: 99)
    metrics = parse_metrics(("R@1", "P@5", "RP", "MAP@R", "MRR", "mAP", "nDCG@3", "mAP@4"), ())
    labels, names = uneven_labels(60, 3), [metric.name for metric in metrics]
    labels[7], vectors = 999, torch.randn(60, 8, generator=torch.Generator().manual_seed(1))
    for x, similarity in ((vectors, "cosine"), (vectors.double(), "dot"), (grid(60, 2, 3), "dot")):
        inputs = check_inputs(x, labels, None, None, Exclusion(None, None, False), similarity, None, 2**28)
        whole = whole_ranks.rank_whole(inputs)
        assert whole is not None
        for ties in ("expected", "optimistic", "pessimistic"):
            expected = retrieval(x, labels, metrics=names, similarity=similarity, ties=ties)
            sums, count = whole.summarize(metrics, ties)
            assert count == expected["queries"]
            assert [each / count for each in sums] == pytest.approx(
                [expected[name] for name in names], rel=0, abs=1e-12
            )
    expected = retrieval(x, labels, metrics=names, similarity=similarity)
    monkeypatch.setattr(whole_ranks, "MAX_TIED", 0)
    assert whole.summarize(metrics, "expected") is None
    scores = score_queries(whole.make_chunk(), metrics, "expected")
    assert [scores[name].mean().item() for name in names] == pytest.approx([expected[name] for name in names])
    assert whole_ranks.rank_whole(replace(inputs, memory=2**12)) is None
    vectors[7, 0] = torch.nan  # of a sample without positives
    inputs = check_inputs(
        vectors, labels, None, None, Exclusion(None, None, False), "cosine", None, 2**28, checks_values=False
    )
    assert whole_ranks.rank_whole(inputs).summarize(metrics, "expected") is None


FIRST = (("R@1",), ("RP",), ("MAP@R",), ("R@1", "RP", "MAP@R"), ("P@10", "nDCG@10"))


@pytest.mark.parametrize("spread", [1.0, 0.01])
def test_candidates(monkeypatch: pytest.MonkeyPatch, threads: None, spread: float):
    """The same from one and two threads, and where candidates become too many; classes of 1 to 40, apart or not, and ties."""
    generator = torch.Generator().manual_seed(1)
    sizes = torch.arange(41).index_fill_(0, torch.arange(9), 1)
    labels = torch.repeat_interleave(torch.arange(41), sizes)
    labels = labels[torch.randperm(len(labels), generator=generator)]
    x = torch.randn(41, 16, generator=generator)[labels] + spread * torch.randn(len(labels), 16, generator=generator)
    x[::50] = x[0]
    wanted = {metrics: retrieval(x, labels, metrics=metrics) for metrics in FIRST}
    rank, ways = first_ranks.rank_first_neighbors, []

    def record(*arguments: Any) -> Any:
        chunks = rank(*arguments)
        ways.append(chunks is not None)
        return chunks

    monkeypatch.setattr(sys.modules["likewise.metrics.ranks"], "rank_first_neighbors", record)
    monkeypatch.setattr(symmetric_ranks, "get_selection_limit", lambda *arguments: 99)
    # several chunks, and several products for each
    monkeypatch.setattr(symmetric_ranks, "MIN_SIZE", 96)
    monkeypatch.setattr(symmetric_ranks, "MAX_SIZE", 144)
    monkeypatch.setattr(symmetric_ranks, "FEW_ROWS", 48)
    for count, added in product((1, 2), (0, 99)):
        monkeypatch.setattr(candidates, "ADDED_PER_NEIGHBOR", added)
        torch.set_num_threads(count)
        for metrics, expected in wanted.items():
            assert retrieval(x, labels, metrics=metrics) == pytest.approx(expected, abs=1e-12), (metrics, count, added)
            assert ways.pop() == (added > 0)


@pytest.mark.parametrize("halves", [True, False])
def test_chunks_on_a_gpu(monkeypatch: pytest.MonkeyPatch, halves: bool):
    """The plan of a GPU on the CPU: with the counts of all queries in memory, or of one chunk of rows at a time."""
    labels, x = torch.arange(300) // 3, torch.randn(300, 8, generator=torch.Generator().manual_seed(5))
    expected, plan = retrieval(x, labels), symmetric_ranks.plan_layout
    monkeypatch.setattr(symmetric_ranks, "MIN_SIZE", 48)
    monkeypatch.setattr(symmetric_ranks, "MAX_SIZE", 96)
    monkeypatch.setattr(
        sys.modules["likewise.metrics.ranks"], "plan_layout", lambda *a: replace(plan(*a), halves=halves)
    )
    assert retrieval(x, labels) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("similarity", ["cosine", "poincare"])
def test_the_budget_does_not_change_the_result(similarity: str):
    """Small classes, one of a third of the samples, and a hundred copies across classes."""
    generator = torch.Generator().manual_seed(2)
    labels = torch.randint(0, 40, (240,), generator=generator).clamp(max=26)
    embeddings = torch.randn(240, 24, generator=generator)
    embeddings[::9] = embeddings[0]
    first = ranks(embeddings, labels, similarity=similarity)
    scores = retrieval(embeddings, labels, similarity=similarity)
    for budget in (2**14, 2**18):
        again = ranks(embeddings, labels, similarity=similarity, memory=budget)
        for name in ("above", "tied", "query", "reference"):
            assert torch.equal(getattr(first, name), getattr(again, name)), name
        assert retrieval(embeddings, labels, similarity=similarity, memory=budget) == pytest.approx(scores, abs=1e-12)


def test_equal_vectors_tie_exactly():
    """Copies under other labels tie with the original, wherever in whatever tile they are."""
    for similarity in ("cosine", "dot", "squared_euclidean", "euclidean", "poincare"):
        for size, dim, dtype in ((3, 3, torch.float32), (100, 64, torch.float64), (350, 130, torch.float32)):
            generator = torch.Generator().manual_seed(size + dim)
            half = torch.randn(size, dim, generator=generator, dtype=dtype)
            labels = torch.arange(size) // 2 * 2
            both, both_labels = torch.cat([half, half]), torch.cat([labels, labels + 1])
            # the partner of a sample, among the originals, ties with the partner's copy of the other label
            assert (ranks(both, both_labels, similarity=similarity).tied >= 1).all()
            assert (ranks(half, labels, both, both_labels, similarity=similarity).tied >= 1).all()


def test_a_collapsed_model_scores_what_chance_scores():
    """All embeddings alike: every order is as good as another, also where the first negatives are selected."""
    for n, dim, per_class in ((50, 128, 2), (130, 512, 65), (600, 100, 2)):
        x = torch.randn(1, dim, generator=torch.Generator().manual_seed(0)).expand(n, dim)
        labels = torch.arange(n) // per_class
        chance = (per_class - 1) / (n - 1)
        for metrics in (None, ("R@1", "RP", "MAP@R")):
            found = retrieval(x, labels, metrics=metrics)
            assert found["R@1"] == pytest.approx(chance, abs=1e-12)
            assert found["RP"] == pytest.approx(chance, abs=1e-12)
            assert retrieval(x, labels, ties="optimistic", metrics=metrics)["MAP@R"] == 1.0
            if n > 2 * per_class:
                assert retrieval(x, labels, ties="pessimistic", metrics=metrics)["MAP@R"] == 0.0
    assert retrieval(x, labels, metrics=("R@599",))["R@599"] == 1.0


def test_ids_that_many_share():
    """Pairs that never meet are not listed one by one: all samples of a class may be one sample."""
    labels, ids = torch.arange(300) % 3, torch.arange(300) % 2
    x = torch.randn(300, 8, generator=torch.Generator().manual_seed(4))
    apart = Masks(
        (labels[:, None] == labels) & (ids[:, None] != ids), (labels[:, None] != labels) & (ids[:, None] != ids)
    )
    assert retrieval(x, labels, ids=ids) == pytest.approx(retrieval(x, relevant=apart))


@pytest.mark.parametrize("array", [torch.as_tensor, np.asfortranarray])
def test_the_call_says_who_meets_whom(array: Callable):
    """References that are given meet every query, whatever memory they share with it, unless ids or exclude_self say no."""
    generator = torch.Generator().manual_seed(8)
    x, y = array(torch.randn(30, 30, generator=generator).numpy()), array(np.arange(30) % 5)
    alone, copy = retrieval(x, y), retrieval(x, y, x.copy() if isinstance(x, np.ndarray) else x.clone(), y)
    assert copy["R@1"] == 1.0 > alone["R@1"]
    assert retrieval(x, y, x, y) == retrieval(x, y, x[:], y) == copy
    numbers = np.arange(30) * 7 - 50
    for options in ({"exclude_self": True}, {"ids": numbers, "reference_ids": numbers}):
        assert retrieval(x, y, x, y, **options) == pytest.approx(alone)
        assert retrieval(x[:9], y[:9], x, y, **_first(options, 9)) == pytest.approx(
            retrieval(x[:9], relevant=y[:9, None] == y[None], references=x, **_first(options, 9))
        )
    assert retrieval(x, y, exclude_self=True) == alone
    assert retrieval(x, y, ids=numbers) == pytest.approx(alone)
    views = retrieval(x[:15], y[:15], x[::2], y[::2])
    assert views == retrieval(x[:15], y[:15], array(torch.as_tensor(x)[::2].numpy().copy()), y[::2])


def _first(options: dict, count: int) -> dict:
    return {**options, "ids": options["ids"][:count]} if "ids" in options else options


def test_a_query_never_meets_its_id(way: str):
    """Several references may share an id, as crops of one image do; an id that no reference has excludes nothing."""
    m, n = 5, 9
    generator = torch.Generator().manual_seed(3)
    gallery, reference_labels = grid(n, 2, 3), torch.randint(0, 2, (n,), generator=generator)
    reference_ids = torch.randint(-2, 3, (n,), generator=generator)
    queries, labels, ids = grid(m, 2, 4), torch.randint(0, 2, (m,), generator=generator), torch.arange(m) - 2
    same, meet = labels[:, None] == reference_labels, ids[:, None] != reference_ids
    expected = by_hand(Dot()(queries, gallery), same, meet, "expected")
    options = {"similarity": "dot", "ids": ids, "reference_ids": reference_ids}
    check(expected, queries, labels, gallery, reference_labels, **options)
    check(expected, queries, None, gallery, relevant=same, **options)
    same, meet = reference_labels[:, None] == reference_labels, reference_ids[:, None] != reference_ids
    expected = by_hand(Dot()(gallery), same, meet, "expected")
    check(expected, gallery, reference_labels, similarity="dot", ids=reference_ids)


def test_arrays_of_any_layout():
    array, labels = np.random.default_rng(0).normal(size=(30, 4)), np.arange(30) % 5
    expected = retrieval(array, labels)
    array.setflags(write=False)
    assert retrieval(array, labels) == expected
    assert retrieval(array.astype(">f8"), labels.tolist()) == expected


class _Reversed(Cosine):
    """A user's own similarity, whose link is not the product itself."""

    def link(self, products: Tensor, anchor_squares: Tensor, reference_squares: Tensor) -> Tensor:
        return -products


def test_a_similarity_of_ones_own():
    generator = torch.Generator().manual_seed(9)
    embeddings, labels = torch.randn(90, 4, generator=generator), torch.arange(90) % 7
    expected = by_hand(-Cosine()(embeddings), labels[:, None] == labels, ~torch.eye(90, dtype=torch.bool), "optimistic")
    agree(
        retrieval(
            embeddings, labels, similarity=_Reversed(), metrics=ranking.METRICS, reduce="none", ties="optimistic"
        ),
        expected,
    )


def test_a_relation_of_labels_is_its_masks():
    generator = torch.Generator().manual_seed(10)
    embeddings, labels = torch.randn(40, 4, generator=generator), torch.arange(40) % 7
    own = Labels(labels, labels, own=torch.arange(40))
    assert retrieval(embeddings, references=embeddings, relevant=own) == retrieval(embeddings, labels)
    for relation in (Labels(labels, labels.roll(3)), Labels(labels, labels)):
        assert retrieval(embeddings, relevant=relation) == retrieval(embeddings, relevant=Masks(*relation.masks()))


def test_an_early_stop_restores_precision_settings(monkeypatch: pytest.MonkeyPatch):
    embeddings, labels = torch.randn(200, 8), torch.arange(200) // 4
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("medium")
    try:
        monkeypatch.setattr(sys.modules["likewise.metrics.retrieval"], "score_queries", lambda *arguments: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            retrieval(embeddings, labels, memory=2**14)
        assert torch.is_grad_enabled()
        assert torch.get_float32_matmul_precision() == "medium"
    finally:
        torch.set_float32_matmul_precision(before)


@pytest.mark.skipif(not hasattr(torch.backends.cuda.matmul, "fp32_precision"), reason="torch has no such setting yet")
def test_the_newer_way_to_ask_for_shortcuts():
    """In a process of its own: torch does not go back from one way of asking to the other."""
    program = """
import torch
from likewise.metrics import retrieval
torch.backends.cuda.matmul.fp32_precision = "tf32"
torch.backends.mkldnn.matmul.fp32_precision = "bf16"
retrieval(torch.randn(20, 4), torch.arange(20) % 3)
print(torch.backends.cuda.matmul.fp32_precision, torch.backends.mkldnn.matmul.fp32_precision)
"""
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert result.stdout.split() == ["tf32", "bf16"]


def test_a_sample_never_finds_itself():
    embeddings = torch.eye(4)[[0, 0, 1, 2]]
    labels = torch.tensor([0, 1, 0, 1])
    # the first two find each other, of the wrong class; for the last two all three others tie, and one is right
    assert retrieval(embeddings, labels)["R@1"] == pytest.approx(1 / 6)
    given = retrieval(embeddings, labels, embeddings, labels)
    assert given["R@1"] == pytest.approx((0.5 + 0.5 + 1.0 + 1.0) / 4)


def test_the_toy_table_of_the_reality_check():
    """One query with ten relevant references; of the ten nearest, those at the given ranks are correct."""
    table = {(1,): (100, 10, 10), (1, 10): (100, 20, 12), (1, 2): (100, 20, 20), tuple(range(1, 11)): (100, 100, 100)}
    for correct, expected in table.items():
        nearest = [rank in correct for rank in range(1, 11)]
        labels = torch.tensor([int(hit) for hit in nearest] + [1] * (10 - sum(nearest)))
        cosine = torch.linspace(1.0, 0.1, len(labels))
        gallery = torch.stack([cosine, (1 - cosine**2).sqrt()], dim=1)
        found = retrieval(torch.tensor([[1.0, 0.0]]), torch.tensor([1]), gallery, labels, ks=(1,))
        assert [100 * found[name] for name in ("R@1", "RP", "MAP@R")] == pytest.approx(expected, abs=1e-5)


def test_reductions():
    generator = torch.Generator().manual_seed(3)
    embeddings, labels = torch.randn(60, 4, generator=generator), torch.tensor([5] * 30 + [-3] * 20 + [9] * 9 + [77])
    each = retrieval(embeddings, labels, reduce="none")
    table = retrieval(embeddings, labels, reduce="class")
    macro = retrieval(embeddings, labels, reduce="macro")
    mean = retrieval(embeddings, labels)
    assert table["class"].tolist() == [-3, 5, 9]
    assert table["queries"].tolist() == [20, 30, 9]
    assert macro["classes"] == 3
    for name in ("R@1", "RP", "MAP@R", "MRR", "mAP"):
        means = [each[name][labels[each["query"]] == label].mean().item() for label in (-3, 5, 9)]
        assert table[name].tolist() == pytest.approx(means)
        assert macro[name] == pytest.approx(sum(means) / 3)
        assert mean[name] == pytest.approx(each[name].mean().item())
    assert mean["queries"] == 59
    assert mean["queries_without_positive"] == 1
    assert list(mean)[:4] == ["R@1", "R@2", "R@4", "R@8"]


def test_queries_without_positives():
    """Left out of every mean, or zero in it; the counts are the same."""
    embeddings, labels = torch.eye(4)[[0, 0, 1, 2, 3]], torch.tensor([3, 3, 5, 5, 9])
    left, zero = retrieval(embeddings, labels), retrieval(embeddings, labels, without_positives="zero")
    assert {name: left[name] for name in left if "queries" not in name} == pytest.approx(
        {name: 5 / 4 * zero[name] for name in zero if "queries" not in name}
    )
    assert (left["queries"], left["queries_without_positive"]) == (4, 1)
    assert (zero["queries"], zero["queries_without_positive"]) == (4, 1)
    each = retrieval(embeddings, labels, without_positives="zero", reduce="none")
    assert each["query"].tolist() == [0, 1, 2, 3, 4]
    assert each["mAP"][4] == 0.0
    table = retrieval(embeddings, labels, without_positives="zero", reduce="class")
    assert (table["class"].tolist(), table["queries"].tolist()) == ([3, 5, 9], [2, 2, 0])
    assert table["R@1"].tolist() == pytest.approx([1.0, 0.25, 0.0])
    macro = retrieval(embeddings, labels, without_positives="zero", reduce="macro")
    assert (macro["R@1"], macro["classes"]) == (pytest.approx(1.25 / 3), 3)
    nothing = retrieval(embeddings[2:], torch.arange(3), without_positives="zero")
    assert (nothing["mAP"], nothing["queries"], nothing["queries_without_positive"]) == (0.0, 0, 3)


def test_metrics_are_those_asked_for():
    embeddings, labels = grid(10, 3, 0), torch.arange(10) % 3
    everything = retrieval(embeddings, labels, metrics=(*ranking.METRICS, "P@3"))
    assert list(everything)[:-2] == [*ranking.METRICS, "P@3"]
    found = retrieval(embeddings, labels, metrics=["nDCG@k", "RP", "P@3", "P@3", "RP"], ks=(4, 2, 4))
    assert list(found) == ["nDCG@4", "nDCG@2", "RP", "P@3", "queries", "queries_without_positive"]
    assert found == {name: everything[name] for name in found}


def test_labels_of_any_width():
    embeddings, labels = grid(10, 3, 0), torch.arange(10) % 3
    for dtype in (torch.uint8, torch.int8, torch.int16, torch.int32):
        assert retrieval(embeddings, labels.to(dtype)) == retrieval(embeddings, labels)


def test_labels_that_float32_would_confuse():
    embeddings = torch.eye(4)[[0, 0, 1, 1]]
    labels = torch.tensor([2**24, 2**24, 2**24 + 1, 2**24 + 1])
    assert retrieval(embeddings, labels)["MAP@R"] == 1.0
    assert retrieval(embeddings, labels + 2**53)["MAP@R"] == 1.0


def test_numpy_arrays_and_gradients_pass():
    embeddings = torch.randn(6, 3, requires_grad=True)
    labels = torch.tensor([0, 0, 1, 1, 2, 2])
    assert retrieval(embeddings, labels) == retrieval(embeddings.detach().numpy(), labels.numpy())


def test_autocast_and_tf32_change_nothing():
    generator = torch.Generator().manual_seed(6)
    embeddings, labels = torch.randn(200, 32, generator=generator), torch.arange(200) // 4
    plain = ranks(embeddings, labels)
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("medium")
    try:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            shielded = ranks(embeddings, labels)
        assert torch.get_float32_matmul_precision() == "medium"
    finally:
        torch.set_float32_matmul_precision(before)
    assert torch.equal(plain.above, shielded.above)


def test_empty_ranks():
    found = ranks(torch.eye(3), torch.arange(3))
    assert isinstance(found, Ranks)
    assert len(found.rank) == 0
    assert found.positives.tolist() == [0, 0, 0]


def test_long_embeddings_have_the_limit_of_losses():
    """Norms whose squares are representable, in every dtype: the numbers of the same embeddings scaled down."""
    x, y = torch.randn(40, 256, generator=torch.Generator().manual_seed(5)), torch.arange(40) % 7
    x = x / x.norm(dim=1, keepdim=True).amax()
    for similarity, dtype, exponent in (
        ("dot", torch.float32, 63),
        (Euclidean(normalize=False), torch.float32, 62),
        (Euclidean(normalize=False), torch.bfloat16, 62),
        (Euclidean(normalize=False), torch.float16, 15),
        ("dot", torch.float64, 500),
    ):
        scaled = x.to(dtype)
        expected = retrieval(scaled, y, similarity=similarity)
        assert retrieval(scaled * 2.0**exponent, y, similarity=similarity) == expected, (similarity, dtype)


BAD_INPUT = [
    ((torch.eye(3),), {}, "labels must be given, or relevant in their place, but both are None"),
    ((torch.eye(3), torch.arange(2)), {}, "labels must have one entry for each of the 3 embeddings, but it has 2"),
    ((torch.eye(3), torch.rand(3)), {}, "labels must be of an integer dtype, but the dtype is torch.float32"),
    ((torch.eye(3), np.array(["a", "b", "c"])), {}, "encode_labels"),
    ((torch.eye(3) / 0, torch.arange(3)), {}, "embeddings must be finite, but row 0 contains NaN or infinity"),
    ((torch.eye(3), torch.arange(3), torch.eye(2)), {}, "references must have the 3 dimensions of embeddings"),
    ((torch.eye(3), torch.arange(3), torch.rand(2, 3)), {}, "reference_labels must be given together with"),
    (
        (torch.eye(3), torch.arange(3), None, torch.arange(3)),
        {},
        "reference_labels must be given together with ref",
    ),
    ((torch.eye(3), torch.arange(3)), {"exclude_self": 1}, "exclude_self must be a boolean, but it is 1"),
    (
        (torch.eye(3), torch.arange(3)),
        {"reference_ids": [1]},
        "reference_ids must be given together with references",
    ),
    ((torch.eye(3), torch.arange(3)), {"ids": [1]}, "ids must have one entry for each of the 3 embeddings"),
    (
        (torch.eye(3), torch.arange(3)),
        {"ids": ["a", "b", "c"]},
        "ids must hold numbers, but its dtype is <U1; encode",
    ),
    (
        (torch.eye(3), [1, 2, 3], torch.eye(3), [1, 2, 3]),
        {"ids": [1, 2, 3]},
        "reference_ids must be given together",
    ),
    ((torch.eye(3), [1, 2, 3], torch.eye(3), [1, 2, 3]), {"reference_ids": [1, 2, 3]}, "together with ids only"),
    (
        (torch.eye(3), [1, 2, 3]),
        {"ids": [1, 2, 3], "exclude_self": True},
        "exclude_self must be left out where ids",
    ),
    (
        (torch.eye(3), [1, 2, 3], torch.eye(3)[:2], [1, 2]),
        {"exclude_self": True},
        "must begin with the 3 embeddings",
    ),
    ((torch.eye(3), torch.zeros(3).long()), {"ties": "lucky"}, "ties must be one of 'expected', 'optimistic'"),
    ((torch.eye(3), torch.zeros(3).long()), {"ks": (0,)}, "each of ks must be a whole number ≥ 1, but it is 0"),
    ((torch.eye(3), torch.zeros(3).long()), {"ks": (2**54,)}, r"each of ks must be at most 2\^53, but it is"),
    (
        (torch.eye(3), torch.zeros(3).long()),
        {"metrics": ("P@99999999999999999999",)},
        "the number of P@99999999999999999999",
    ),
    ((torch.eye(3), torch.zeros(3).long()), {"memory": 0}, "memory must be a whole number ≥ 1"),
    ((torch.eye(3), torch.zeros(3).long()), {"reduce": "median"}, "reduce must be one of 'mean', 'none'"),
    ((torch.eye(3), torch.arange(3)), {}, "labels must give some query a positive among the references"),
    ((torch.eye(3),), {"relevant": torch.eye(3)}, r"relevant must be a boolean matrix of shape \(3, 3\)"),
    ((torch.eye(3),), {"relevant": lambda i, j: 1}, "relevant must return a boolean tensor"),
    ((torch.eye(3),), {"relevant": "all"}, "relevant must be a boolean matrix, a function or a Relation"),
    ((torch.eye(3),), {"relevant": torch.ones(3, 3).bool(), "reduce": "macro"}, "labels must be given for reduce"),
    (
        (torch.full((3, 2), 1e30), torch.zeros(3).long()),
        {"similarity": "dot"},
        "embeddings must have norms of at most 1.3e",
    ),
    (
        (torch.eye(3) * 1e20, torch.zeros(3).long()),
        {"similarity": Euclidean(normalize=False)},
        "norms of at most 9.2e",
    ),
    ((torch.eye(3), ["a", "b", "c"]), {}, "labels must hold numbers, but its dtype is <U1; encode_labels"),
    (
        (torch.eye(3), torch.zeros(3).long()),
        {"metrics": ()},
        "metrics must name at least one metric, but it is empty",
    ),
    (
        (torch.eye(3), torch.zeros(3).long()),
        {"metrics": "mAP"},
        "metrics must be a sequence of names, but it is 'mAP'",
    ),
    ((torch.eye(3), torch.zeros(3).long()), {"metrics": ["MAP@5"]}, "each of metrics must be .* but it is 'MAP@5'"),
    ((torch.eye(3), torch.zeros(3).long()), {"metrics": ["P@0"]}, "each of metrics must be .* but it is 'P@0'"),
    (
        (torch.eye(3), torch.zeros(3).long()),
        {"without_positives": "one"},
        "without_positives must be one of 'leave",
    ),
    ((torch.eye(3), torch.zeros(3).long()), {"ks": 5}, "ks must be a sequence of whole numbers, but it is 5"),
]


def test_bad_input_is_named():
    for arguments, options, message in BAD_INPUT:
        with pytest.raises((ValueError, TypeError), match=message):
            retrieval(*arguments, **options)


def test_relation_of_labels_is_taken():
    embeddings, labels = grid(10, 3, 0), torch.arange(10) % 3
    assert retrieval(embeddings, relevant=Labels(labels)) == retrieval(embeddings, labels)


def test_euclidean_ranks_as_cosine_does():
    generator = torch.Generator().manual_seed(7)
    embeddings, labels = torch.randn(100, 8, generator=generator, dtype=torch.float64), torch.arange(100) // 5
    assert retrieval(embeddings, labels) == pytest.approx(retrieval(embeddings, labels, similarity=Euclidean()))
