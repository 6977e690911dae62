"""Products of float32 rows in bfloat16 parts, in Triton's interpreter: errors, ties and symmetry."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch
from tests.metrics.interpreter import run_interpreted

from likewise.formula import Cosine
from likewise.metrics import prepared_rows, symmetric_ranks
from likewise.metrics.chunks import MEMORY
from likewise.metrics.prepared_rows import count_part_bytes, fit_part_bytes, multiply

KERNEL = """
import torch
from likewise.metrics import triton_products
from likewise.metrics.triton_products import TILE, multiply_in_parts, split_parts

triton_products.TILE = TILE._replace(side=32, group=2)
generator = torch.Generator().manual_seed(0)


def make(n, d):
    rows = torch.randn(n, d, generator=generator)
    return torch.nn.functional.normalize(rows)


values = torch.cat([make(7, 70).flatten(), torch.tensor([0.0, -0.0, 3.0, 1e30, -1e-30, 1.0 + 2.0**-23])])[None]
high, middle, low = split_parts(values)[0].double()
assert torch.equal((high + middle + low)[: values.shape[1]], values[0].double())
assert not any(part[values.shape[1] :].any() for part in (high, middle, low))

for m, n, d in ((1, 1, 1), (33, 70, 64), (48, 96, 130), (40, 31, 257)):
    left, right = make(m, d), make(n, d)
    exact = left.double() @ right.double().T
    wide = torch.full((m, n + 16), 7.0)
    products = multiply_in_parts(left, right, wide[:, :n])
    assert products.data_ptr() == wide.data_ptr() and bool((wide[:, n:] == 7.0).all())
    error, dense = (products.double() - exact).abs(), ((left @ right.T).double() - exact).abs()
    assert error.max() <= 2.0 * dense.max() + 6e-8 and error.square().mean() <= 2.0 * dense.square().mean() + 2e-15, d
    assert torch.equal(multiply_in_parts(right, left), products.T)  # to the last bit
    assert torch.equal(multiply_in_parts(left, right, None, 32 * d), products)  # in chunks of 32 rows
    assert torch.equal(multiply_in_parts(left[::2], right, None), products[::2])
    scaled = multiply_in_parts(2.0**20 * left, 2.0**-30 * right)
    assert torch.equal(scaled, 2.0**-10 * products)

for n in (20, 32, 70, 97, 150):  # one tile, whole tiles, odd and even numbers of tiles
    rows = make(n, 66)
    half = n // 2
    rows[half : 2 * half] = rows[:half]  # equal rows, in other places of other tiles
    products = multiply_in_parts(rows, rows)
    assert torch.equal(products, multiply_in_parts(rows, rows.clone())), n
    assert torch.equal(products, products.T)
    assert torch.equal(products[:, half : 2 * half], products[:, :half])
    assert torch.equal(multiply_in_parts(rows, rows, None, 66 * 20), products)

rows = make(5, 64)
rows[1, 3], rows[2, 0] = torch.inf, torch.nan
products = multiply_in_parts(rows, rows)
bad = torch.tensor([False, True, True, False, False])
assert torch.equal(products.isfinite(), ~bad[:, None] & ~bad)
print("multiplied")
"""


def test_products_in_the_interpreter():
    assert run_interpreted(KERNEL) == "multiplied"


def test_parts_leave_room_for_prepared_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the cache, 250,000 samples would be prepared again for each product."""
    queries = SimpleNamespace(shape=(250_000, 128), device=torch.device("cuda"))
    inputs = SimpleNamespace(embeddings=SimpleNamespace(queries=queries, dtype=torch.float32))
    counts = 12 * 9 * 250_000
    for product in (None, torch.mm):
        monkeypatch.setattr(prepared_rows, "load_part_product", lambda *arguments, product=product: product)
        size, cache = symmetric_ranks._fit_chunks(inputs, MEMORY - counts, symmetric_ranks.GATHER_BYTES, 9, 1)
        assert cache
        assert size >= symmetric_ranks.MIN_CACHED_SIZE


def test_the_product_in_parts_is_used_for_every_size(monkeypatch: pytest.MonkeyPatch):
    """All products of a call must round in one way, so that the choice depends on the dtype and the dimensions only."""
    calls = []

    def multiply_in_parts(left, right, out, entries):
        calls.append((left.shape, entries))
        return torch.mm(left, right.T, out=out)

    monkeypatch.setattr(prepared_rows, "is_in_new_memory", lambda rows, dtype: False)
    monkeypatch.setattr(prepared_rows, "load_part_product", lambda *arguments: multiply_in_parts)
    rows = torch.eye(48, 64)
    for left in (rows, rows.repeat(2, 1)):
        assert torch.equal(multiply(left, rows, Cosine(), torch.empty(len(left), 48)), left @ rows.T)
    assert [shape for shape, _ in calls] == [(48, 64), (96, 64)]
    assert count_part_bytes(rows, torch.float32) == 6 * 64
    assert fit_part_bytes(rows, torch.float32, 2**30) == 24 * rows.numel()
    assert fit_part_bytes(rows, torch.float32, 400) == 100
