from __future__ import annotations

import numpy as np
import pytest
import torch

from likewise.metrics.ensembles import average_scores, concatenate


def test_the_cosine_of_an_ensemble_is_the_mean_of_the_cosines():
    generator = torch.Generator().manual_seed(0)
    models = [
        torch.randn(20, d, generator=generator, dtype=torch.float64) * s for d, s in ((3, 1.0), (8, 100.0), (5, 0.01))
    ]
    joined = concatenate(models)
    assert joined.shape == (20, 16)
    cosines = [torch.nn.functional.cosine_similarity(each[:, None], each[None], dim=2) for each in models]
    torch.testing.assert_close(joined @ joined.T, sum(cosines) / 3)


def test_lengths_weigh_where_asked():
    models = [torch.tensor([[3.0, 0.0]]), torch.tensor([[4.0]])]
    torch.testing.assert_close(concatenate(models, normalize_each=False), torch.tensor([[0.6, 0.0, 0.8]]))
    torch.testing.assert_close(concatenate(models), torch.tensor([[0.5**0.5, 0.0, 0.5**0.5]]))


def test_half_precision_arrays_and_zeros():
    joined = concatenate([torch.zeros(2, 2, dtype=torch.float16), np.array([[2.0], [0.0]], dtype=np.float32)])
    assert joined.dtype == torch.float32
    assert joined.tolist() == [[0.0, 0.0, 1.0], [0.0, 0.0, 0.0]]


@pytest.mark.parametrize(
    ("embeddings", "kind", "message"),
    [
        ([], TypeError, "embeddings must be a list with one tensor per model, but it is empty"),
        (torch.zeros(2, 2), TypeError, "one tensor per model, but it is a Tensor"),
        (
            [torch.zeros(2, 2), torch.zeros(3, 2)],
            ValueError,
            r"embeddings\[1\] must have the 2 rows of embeddings\[0\], but it has 3",
        ),
        ([torch.zeros(2, 2), torch.zeros(2)], ValueError, r"embeddings\[1\] must have shape \(n, d\)"),
        ([torch.full((2, 2), torch.nan)], ValueError, r"embeddings\[0\] must be finite, but row 0 contains NaN"),
    ],
)
def test_refusals_of_concatenate(embeddings, kind, message):
    with pytest.raises(kind, match=message):
        concatenate(embeddings)


def test_scores_are_averaged_and_counts_stay():
    results = [
        {"R@1": 0.5, "MAP@R": 0.25, "queries": 10, "queries_without_positive": 1, "exact": True},
        {"R@1": np.float32(0.75), "MAP@R": 0.5, "queries": np.int64(10), "queries_without_positive": 1, "exact": True},
        {"R@1": 1.0, "MAP@R": 0.0, "queries": 10, "queries_without_positive": 1, "exact": True},
    ]
    found = average_scores(results)
    assert found == {"R@1": 0.75, "MAP@R": 0.25, "queries": 10, "queries_without_positive": 1, "exact": True}
    assert list(found) == list(results[0])


@pytest.mark.parametrize(
    ("results", "kind", "message"),
    [
        ([], TypeError, "results must be a list with one dict per model, but it is empty"),
        ([{"a": 1.0}, {"b": 1.0}], ValueError, r"results\[0\] and results\[1\] differ in \['a', 'b'\]"),
        (
            [{"queries": 8}, {"queries": 9}],
            ValueError,
            r"results must agree in the count 'queries', but it is \[8, 9\]",
        ),
        ([{"queries": 8}, {"queries": 8.0}], ValueError, "results must agree in the count 'queries'"),
        ([{"R@1": torch.zeros(3)}], TypeError, "results must hold numbers, but 'R@1' is a Tensor"),
    ],
)
def test_refusals_of_average_scores(results, kind, message):
    with pytest.raises(kind, match=message):
        average_scores(results)
