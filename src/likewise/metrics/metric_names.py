"""The names of retrieval metrics, and what each of them needs and is divided by."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Literal

import torch
from torch import Tensor

from likewise.formula import whole_number
from likewise.metrics.positives import CountNeeds

Cutoff = int | Literal["R"] | None


class Kind(Enum):
    """The value that a metric averages over queries."""

    RECALL = auto()
    PRECISION = auto()
    AVERAGE_PRECISION = auto()
    DISCOUNTED_GAIN = auto()
    RECIPROCAL_RANK = auto()


DEFAULT = ("R@k", "P@1", "RP", "MAP@R", "MRR", "mAP")
AT_K = {"R": Kind.RECALL, "P": Kind.PRECISION, "mAP": Kind.AVERAGE_PRECISION, "nDCG": Kind.DISCOUNTED_GAIN}
OTHERS: dict[str, tuple[Kind, Cutoff]] = {
    "RP": (Kind.PRECISION, "R"),
    "MAP@R": (Kind.AVERAGE_PRECISION, "R"),
    "MRR": (Kind.RECIPROCAL_RANK, None),
    "mAP": (Kind.AVERAGE_PRECISION, None),
}


@dataclass(frozen=True)
class QueryMetric:
    """One metric of a query.

    Args:
        name: its key in results.
        kind: what is averaged.
        k: how many references count: a number, the query's number of positives (``"R"``), or all (``None``).
    """

    name: str
    kind: Kind
    k: Cutoff


def parse_metrics(metrics: Sequence[str] | None, ks: Sequence[int]) -> tuple[QueryMetric, ...]:
    """Parse the names of metrics; a name that ends in ``@k`` stands for one metric per k.

    Args:
        metrics: the names; ``None`` for the default ones.
        ks: the numbers that a ``k`` stands for.

    Examples:
        >>> [metric.name for metric in parse_metrics(None, (1, 10))]
        ['R@1', 'R@10', 'P@1', 'RP', 'MAP@R', 'MRR', 'mAP']
        >>> [metric.name for metric in parse_metrics(("P@k", "nDCG@5"), (1, 10))]
        ['P@1', 'P@10', 'nDCG@5']
    """
    if isinstance(ks, str) or not isinstance(ks, Iterable):
        raise TypeError(f"ks must be a sequence of whole numbers, but it is {ks!r}")
    sizes = [_check_cutoff("each of ks", k) for k in ks]
    if metrics is None:
        metrics = DEFAULT
    if isinstance(metrics, str) or not isinstance(metrics, Iterable):
        raise TypeError(f"metrics must be a sequence of names, but it is {metrics!r}")
    parsed = tuple(dict.fromkeys(metric for name in metrics for metric in _parse(name, sizes)))
    if not parsed:
        raise ValueError("metrics must name at least one metric, but it is empty")
    return parsed


def _parse(name: object, ks: list[int]) -> list[QueryMetric]:
    if isinstance(name, str) and name in OTHERS:
        return [QueryMetric(name, *OTHERS[name])]
    match = re.fullmatch(r"(R|P|mAP|nDCG)@(k|[1-9][0-9]*)", name) if isinstance(name, str) else None
    if match is None:
        raise ValueError(
            "each of metrics must be 'R@k', 'P@k', 'mAP@k' or 'nDCG@k', with k or a number ≥ 1, or 'RP', 'MAP@R', "
            f"'MRR' or 'mAP', but it is {name!r}"
        )
    cutoffs = ks if match[2] == "k" else [_check_cutoff(f"the number of {name}", int(match[2]))]
    # one definition for two names: recall at 1 is precision at 1
    kinds = [AT_K["R"] if match[1] == "P" and k == 1 else AT_K[match[1]] for k in cutoffs]
    return [QueryMetric(f"{match[1]}@{k}", kind, k) for k, kind in zip(cutoffs, kinds, strict=True)]


MAX_CUTOFF = 2**53
"""The largest k, which float64 represents."""


def _check_cutoff(name: str, value: object) -> int:
    k = whole_number(name, value, 1)
    if k > MAX_CUTOFF:
        raise ValueError(f"{name} must be at most 2^53, but it is {k}")
    return k


def find_needs(metrics: Sequence[QueryMetric]) -> CountNeeds:
    """Find what must be counted for these metrics: every rank, or those of the first neighbors.

    Examples:
        >>> find_needs(parse_metrics(("R@8", "MAP@R"), ()))
        CountNeeds(references=False, all_ranks=False, first=8, first_positives=True)
        >>> find_needs(parse_metrics(("R@8", "mAP"), ())).all_ranks
        True
    """
    cutoffs = [metric.k for metric in metrics]
    return CountNeeds(
        references=False,
        all_ranks=None in cutoffs,
        first=max((k for k in cutoffs if isinstance(k, int)), default=0),
        first_positives="R" in cutoffs,
    )


def _count_possible(counts: Tensor, k: Cutoff) -> Tensor:
    """The number of positives among the first k in the best order."""
    return counts.clamp(max=k) if isinstance(k, int) else counts


def divide_gains(gains: Tensor, counts: Tensor, metric: QueryMetric) -> Tensor:
    """Divide the gains of queries, or their changes, by k or by the largest possible sum."""
    k = metric.k
    if metric.kind is Kind.PRECISION and isinstance(k, int):
        return gains / k
    possible = _count_possible(counts, k)
    if metric.kind is Kind.DISCOUNTED_GAIN:
        possible = sum_discounts(int(possible.max()), counts)[possible.long()]
    return gains / possible


def sum_discounts(ranks: int, like: Tensor) -> Tensor:
    """The sums of ``1 / log2(1 + rank)`` over the first 0, 1, … ranks, ``(ranks + 1,)``."""
    rank = torch.arange(1.0, ranks + 1.0, dtype=like.dtype, device=like.device)
    return torch.cat([rank.new_zeros(1), (1.0 + rank).log2().reciprocal().cumsum(0)])


def discount(rank: Tensor) -> Tensor:
    """What a positive of each rank adds to a discounted gain."""
    return (1.0 + rank).log2().reciprocal()
