"""The kernels of `whole_ranks` in Triton's interpreter, against the functions of torch that they replace."""

from __future__ import annotations

from tests.metrics.interpreter import run_interpreted

KERNEL = """
import torch
from likewise.formula import unit
from likewise.metrics import retrieval, triton_counts, triton_products, triton_ranks, whole_ranks
from likewise.metrics.inputs import Exclusion, check_inputs
from likewise.metrics.metric_names import parse_metrics
from likewise.metrics.triton_products import multiply_in_parts, split_parts
from tests.metrics.test_ranks import grid, uneven_labels

triton_products.TILE = triton_products.TILE._replace(side=32)
triton_counts.ROW_TILE = triton_counts.ROW_TILE._replace(lines=32)
generator = torch.Generator().manual_seed(0)

for labels in (torch.tensor([4]), torch.randint(-3, 3, (150,), generator=generator) * 2**40, torch.arange(20).flip(0)):
    found = triton_ranks.sort_labels(labels)
    assert all(torch.equal(*pair) for pair in zip(found, whole_ranks._sort_labels(labels), strict=True))

rows = torch.randn(9, 70, generator=generator)
rows[1], rows[2], rows[3], rows[4] = 0.0, 1e30 * rows[0], 1e-30 * rows[0], 2.0**-140
order = torch.randperm(9, generator=generator)
for normalizes, x in ((True, rows), (True, rows.bfloat16()), (False, rows[5:])):
    places = order[order < len(x)]
    out = torch.full((48, 48), 7.0)
    sums = triton_ranks.multiply_prepared(x, places, normalizes, out)
    assert torch.allclose(sums, x.double().sum(dim=1)[places], rtol=1e-6, atol=1e-6)
    exact = (unit(x.float()) if normalizes else x)[places].double()
    scale = exact.norm(dim=1)[:, None] * exact.norm(dim=1)
    assert bool(((out[: len(places), : len(places)] - exact @ exact.T).abs() <= 5e-7 * scale + 1e-12).all())
    assert not out[len(places) :].any() and not out[:, len(places) :].any()

labels = torch.tensor([0] * 7 + [1] + [2] * 5)
order, first, stop, sizes = whole_ranks._sort_labels(labels)
for dtype in (torch.float32, torch.float64):
    similarities = torch.randint(-3, 4, (13, 13), generator=generator).to(dtype)
    found, sums = triton_ranks.sort_positives(similarities, (first, stop), 6)
    expected, total = whole_ranks._sort_positives(similarities, (first, stop), sizes, 6)
    assert found.dtype == dtype and torch.equal(found, expected) and sums.sum() == total.sum()

metrics = parse_metrics(("R@1", "P@5", "RP", "MAP@R", "MRR", "mAP", "nDCG@3"), ())
names, labels = [metric.name for metric in metrics], uneven_labels(60, 3)
labels[7] = 999
whole_ranks.get_comparison_limit = lambda *arguments: 99
whole_ranks._load_kernels = lambda device: triton_ranks
whole_ranks.count_by_comparing = lambda similarities, counts, *others: triton_counts.count_on_device(
    similarities, counts, None, others[-1]
)
start = whole_ranks.ThresholdCounts.start


def start_int32(thresholds):
    counts = start(thresholds)
    return whole_ranks.ThresholdCounts(thresholds, counts.above.int(), counts.ties.int())


whole_ranks.ThresholdCounts.start = start_int32
for x, similarity in ((torch.randn(60, 8, generator=generator), "cosine"), (grid(60, 2, 3), "dot")):
    for in_parts in (True, False):
        whole_ranks.load_part_product = lambda *arguments, in_parts=in_parts: in_parts or None
        inputs = check_inputs(x, labels, None, None, Exclusion(None, None, False), similarity, None, 2**28)
        whole = whole_ranks.rank_whole(inputs)
        for ties in ("expected", "pessimistic"):
            expected = retrieval(x, labels, metrics=names, similarity=similarity, ties=ties)
            sums, count = whole.summarize(metrics, ties)
            assert count == expected["queries"]
            assert all(abs(each / count - expected[name]) < 1e-6 for each, name in zip(sums, names, strict=True))
x[7, 0] = torch.nan
inputs = check_inputs(x, labels, None, None, Exclusion(None, None, False), "cosine", None, 2**28, checks_values=False)
assert whole_ranks.rank_whole(inputs).summarize(metrics, "expected") is None
print("ranked")
"""


def test_kernels_in_the_interpreter():
    assert run_interpreted(KERNEL) == "ranked"
