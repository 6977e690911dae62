"""The recorder: statistics of a loss's pair weights and gradients during training, every few steps.

A record costs a forward and a backward pass of the loss, without the network.  It has no side effects: it runs on copies
of the losses, in their state before the step, and restores the state of torch's random number generators.
"""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from likewise.analysis.weights import Weighed, Weighing, are_same, weigh
from likewise.formula import Labels, unit, whole_number
from likewise.losses import Between, CrossBatchMemory, Gathered, PairLoss, ProxyLoss, ShardedProxies

ENTRIES = 2**20
"""The largest number of entries of similarity matrices; a larger batch is represented by some of its anchors."""

NEGLIGIBLE = 1e-6
"""A weight below this fraction of the largest one counts as zero, because rounding is as large."""

HEAVIEST = {"heaviest_1": 1, "heaviest_10": 10}
"""The percentages of pairs with the largest weights, whose fraction of the weight is recorded."""

QUANTILES = (0.0, 0.25, 0.5, 0.75, 1.0)
"""The quantiles of the norms of all classes."""

LARGEST = 5
"""The number of classes with the largest norm that are listed."""

Module = TypeVar("Module", bound=nn.Module)


class Recorder:
    """Records a loss during training: its weights, its gradient, and its agreement with another loss.

    `likewise.train.train` takes one as ``lens`` and writes its results into the run's record, as lines of the kind
    ``"lens"``.  In another training loop, call `ready` before a step that is due, and the recorder after it.

    The record of a batch, in plain numbers (absolute values of weights; ``None``: not defined):

    - ``samples``, ``anchors``: the size of the batch, and the number of its anchors that were used.  Beyond 2²⁰ entries of
      the matrix these are, for a pair loss, evenly chosen anchors against all samples, else samples of the first classes.
    - ``positives``, ``negatives``: the number of pairs of each kind, in both directions
    - ``zero_positives``, ``zero_negatives``: the fraction with a weight below a millionth of the largest
    - ``below_zero``: the fraction of pairs with negative weight: positives pushed apart, negatives pulled together
    - ``weight_positives``, ``weight_negatives``: the sum of the weights of each kind
    - ``heaviest_1``, ``heaviest_10``: the fraction of all weight on the 1 % and 10 % of pairs with the largest weights
    - ``half``, ``half_share``: the smallest number of pairs with half of the weight; and as a fraction of all pairs
    - ``mined``: for a pair loss with a miner, how many ``positives``, ``negatives`` and ``triplets`` the miner keeps of the
      batch (`likewise.miners.MinedCounts`); a random miner draws them again
    - ``gradient``: the norm of the tangential component of the embeddings' gradient, which rotates them
    - ``classes``: the same for each class of the batch: their number, the quantiles 0, ¼, ½, ¾ and 1 of their norms, and
      the labels and norms of the largest
    - ``compare_with``, ``agreement``, ``ratio``: the second loss, the cosine between both gradients, and the norm of its
      gradient over that of the first

    Args:
        loss: the trained loss, a module.
        every: the number of steps between two records, beginning with the first step.
        compare_with: a second loss on the same batches; it is not trained.

    Examples:
        >>> import torch
        >>> from likewise.losses import ContrastiveLoss, NTXentLoss
        >>> recorder = Recorder(ContrastiveLoss(), compare_with=NTXentLoss())
        >>> embeddings = torch.tensor([[1.0, 0.0], [0.8, 0.6], [0.0, 1.0], [-0.6, 0.8]])
        >>> seen = recorder(embeddings, torch.tensor([0, 0, 1, 1]))
        >>> seen["positives"], seen["negatives"], seen["zero_negatives"], seen["half"]
        (4, 8, 0.75, 2)
        >>> seen["compare_with"], round(seen["ratio"], 2)
        ('NTXentLoss', 0.39)
    """

    def __init__(self, loss: nn.Module, every: int = 50, compare_with: nn.Module | None = None) -> None:
        self.loss = _check_single("loss", loss)
        self.every = whole_number("every", every, 1)
        self.compare_with = None if compare_with is None else _check_single("compare_with", compare_with)
        self._before: nn.Module | None = None

    def __repr__(self) -> str:
        compare_with = "" if self.compare_with is None else f", compare_with={self.compare_with!r}"
        return f"Recorder(every={self.every}{compare_with})"

    def ready(self) -> None:
        """Store the state of the loss before a step, which changes its proxies and its memory."""
        self._before = copy.deepcopy(self.loss)

    def __call__(self, embeddings: Tensor, labels: Tensor) -> dict[str, Any]:
        """Record a batch, with the loss as it was when `ready` was called, or in its current state.

        Args:
            embeddings: ``(m, d)``, of the step.
            labels: ``(m,)``.
        """
        loss, self._before = self.loss if self._before is None else self._before, None
        embeddings = embeddings.detach()
        embeddings = embeddings if embeddings.dtype == torch.float64 else embeddings.float()
        with torch.random.fork_rng([embeddings.device] if embeddings.is_cuda else []), torch.enable_grad():
            weighing, anchors = _weigh_batch(loss, embeddings, labels)
            whole = anchors == len(embeddings)
            gradient = weighing.gradient if whole else _gradient(loss, embeddings, labels)
            other = (
                None
                if self.compare_with is None
                else _gradient(self.compare_with.to(embeddings.device), embeddings, labels)
            )
            mined = mined_record(loss, embeddings, labels)
        turning = tangential(gradient, embeddings)
        seen: dict[str, Any] = {"samples": len(embeddings), "anchors": anchors}
        seen |= weight_record(weighing) | mined | gradient_record(turning, labels)
        if self.compare_with is not None and other is not None:
            seen |= {
                "compare_with": type(self.compare_with).__name__,
                **agreement(turning, tangential(other, embeddings)),
            }
        return seen


def _check_single(name: str, loss: nn.Module) -> nn.Module:
    """Check that a single process can compute a loss on the whole batch."""
    if not isinstance(loss, nn.Module):
        raise TypeError(f"{name} must be a torch module, which can be copied, but it is a {type(loss).__name__}")
    inside = loss.loss if isinstance(loss, Gathered) else loss
    sharded = [each for each in inside.modules() if isinstance(each, Gathered | ShardedProxies)]
    if sharded:
        raise ValueError(f"{name} must be complete on one process, but it contains a {type(sharded[0]).__name__}")
    return inside


def _weigh_batch(loss: nn.Module, embeddings: Tensor, labels: Tensor) -> tuple[Weighing, int]:
    """The weights of a batch, or of some of its anchors if it is large; and the number of these anchors."""
    most = max(1, ENTRIES // _columns(loss, len(embeddings)))
    if len(embeddings) <= most:
        return weigh(_copy_for_call(loss), embeddings, labels), len(embeddings)
    if isinstance(loss, PairLoss) and loss.takes_references:
        some = torch.arange(most, device=labels.device) * len(embeddings) // most
        relation = Labels(labels[some], labels, own=some)
        return weigh(_copy_for_call(loss), embeddings[some], references=embeddings, relation=relation), most
    some = _first_classes(labels, most)
    return weigh(_copy_for_call(loss), embeddings[some], labels[some]), most


def _columns(loss: nn.Module, samples: int) -> int:
    """The largest number of references of a sample."""
    counts = [samples]
    for module in loss.modules():
        if isinstance(module, CrossBatchMemory):
            counts.append(samples + len(module.references))
        elif isinstance(module, ProxyLoss):
            counts.append(len(module.proxies))
    return max(counts)


def _first_classes(labels: Tensor, count: int) -> Tensor:
    """Samples of the first classes of the batch, of as few classes as possible, so that they have positives."""
    _, classes = torch.unique(labels, return_inverse=True)
    places = torch.arange(len(labels), device=labels.device)
    first = torch.full_like(places, len(labels)).scatter_reduce_(0, classes, places, "amin")
    return torch.argsort(first[classes], stable=True)[:count]


def _copy_for_call(loss: Module) -> Module:
    """A copy that may be called: it shares parameters, which it reads, but not memories or generators, which it changes."""
    return copy.deepcopy(loss, {id(each): each for each in loss.parameters()})


def _gradient(loss: nn.Module, embeddings: Tensor, labels: Tensor) -> Tensor:
    """The gradient of a loss, on the engine of its options."""
    leaf = embeddings.clone().requires_grad_()
    value: Tensor = _copy_for_call(loss)(leaf, labels).sum()
    if not value.requires_grad:
        return torch.zeros_like(leaf)
    (found,) = torch.autograd.grad(value, leaf, allow_unused=True)
    return torch.zeros_like(leaf) if found is None else found


def tangential(gradient: Tensor, embeddings: Tensor) -> Tensor:
    """The tangential component of a gradient, which rotates embeddings; the rest changes their length.

    Examples:
        >>> tangential(torch.tensor([[3.0, 4.0]]), torch.tensor([[2.0, 0.0]]))
        tensor([[0., 4.]])
    """
    directions = unit(embeddings)
    return gradient - directions * (directions * gradient).sum(dim=1, keepdim=True)


def weight_record(weighing: Weighing) -> dict[str, Any]:
    """Statistics of the weights of pairs; empty if the loss has no matrix of samples.

    Args:
        weighing: the result of `weigh`.

    Examples:
        >>> yes = torch.tensor([[True, False, False]])
        >>> matrix = Weighed("samples against samples", torch.zeros(1, 3), torch.tensor([[-3.0, 1.0, 0.0]]), yes, ~yes)
        >>> found = weight_record(Weighing(torch.tensor(0.0), (matrix,), torch.zeros(1, 2), torch.zeros(1, 2)))
        >>> found["zero_positives"], found["zero_negatives"], found["heaviest_10"], found["half"]
        (0.0, 0.5, 0.75, 1)
    """
    matrices = _pairs(weighing)
    if not matrices:
        return {}
    positives = torch.cat([matrix.weights[matrix.positive] for matrix in matrices])
    negatives = torch.cat([matrix.weights[matrix.negative] for matrix in matrices])
    signed = torch.cat([positives, negatives])
    pairs = len(signed)
    if not pairs:
        return {"positives": 0, "negatives": 0}
    sizes = _heaviest_first(signed)
    carried = sizes.cumsum(0, dtype=torch.float64)
    total, least = carried[-1], NEGLIGIBLE * sizes[0]
    shares = {name: carried[-(-pairs * percent // 100) - 1] / total for name, percent in HEAVIEST.items()}
    half = (carried < total / 2).sum().double() + 1.0
    found = {
        "zero_positives": (positives.abs() <= least).double().mean(),
        "zero_negatives": (negatives.abs() <= least).double().mean(),
        "below_zero": (signed < -least).double().mean(),
        "weight_positives": positives.abs().sum(dtype=torch.float64),
        "weight_negatives": negatives.abs().sum(dtype=torch.float64),
        **shares,
        "half": torch.where(total > 0, half, torch.nan),
        "half_share": torch.where(total > 0, half / pairs, torch.nan),
    }
    numbers = _numbers(found)
    whole = None if numbers["half"] is None else int(numbers["half"])
    return {"positives": len(positives), "negatives": len(negatives), **numbers, "half": whole}


def mined_record(loss: nn.Module, embeddings: Tensor, labels: Tensor) -> dict[str, Any]:
    """Count the pairs and triplets that the miner of a pair loss keeps; empty for a loss without a miner.

    Examples:
        >>> from likewise.losses import TripletLoss
        >>> from likewise.miners import BatchHardMiner
        >>> mined_record(TripletLoss(miner=BatchHardMiner()), torch.eye(3), torch.tensor([0, 0, 1]))
        {'mined': {'positives': 2, 'negatives': 2, 'triplets': 2}}
    """
    if not isinstance(loss, PairLoss) or loss.miner is None:
        return {}
    miner = _copy_for_call(loss).miner  # with a copy of the generator, so that counting does not change the next draw
    assert miner is not None
    return {"mined": miner.count(embeddings, labels, similarity=loss.similarity)._asdict()}


def _heaviest_first(weights: Tensor) -> Tensor:
    """The absolute weights, sorted as integers: the bits of nonnegative floats sort seven times as fast."""
    bits = torch.int64 if weights.dtype == torch.float64 else torch.int32
    return weights.abs().view(bits).sort().values.flip(0).view(weights.dtype)


def _pairs(weighing: Weighing) -> list[Weighed]:
    """The matrices that contain samples; the derivatives of a matrix that was computed twice are added."""
    found: list[Weighed] = []
    for matrix in weighing.matrices:
        if matrix.between == Between.PROXIES_PROXIES.value:
            continue
        for place, other in enumerate(found):
            if matrix.between == other.between and are_same(matrix.similarities, other.similarities):
                found[place] = replace(other, derivatives=other.derivatives + matrix.derivatives)
                break
        else:
            found.append(matrix)
    return found


def gradient_record(gradient: Tensor, labels: Tensor) -> dict[str, Any]:
    """The norm of a gradient of embeddings, in total and by class.

    Args:
        gradient: ``(m, d)``.
        labels: ``(m,)``.

    Examples:
        >>> found = gradient_record(torch.tensor([[3.0], [4.0], [12.0]]), torch.tensor([7, 7, 2]))
        >>> found["gradient"], found["classes"]["largest"]
        (13.0, [[2, 12.0], [7, 5.0]])
    """
    squares = gradient.double().square().sum(dim=1)
    present, classes = torch.unique(labels, return_inverse=True)
    norms = squares.new_zeros(len(present)).index_add_(0, classes, squares).sqrt()
    values, order = norms.sort(descending=True)
    quantiles = torch.quantile(norms, norms.new_tensor(QUANTILES))
    largest = zip(present[order][:LARGEST].tolist(), values[:LARGEST].tolist(), strict=True)
    return {
        "gradient": float(squares.sum().sqrt()),
        "classes": {
            "count": len(present),
            "quantiles": quantiles.tolist(),
            "largest": [[label, norm] for label, norm in largest],
        },
    }


def agreement(one: Tensor, other: Tensor) -> dict[str, float | None]:
    """The cosine between two gradients, and the norm of the second over that of the first.

    Args:
        one: ``(m, d)``.
        other: ``(m, d)``.

    Examples:
        >>> agreement(torch.tensor([[1.0, 0.0]]), torch.tensor([[3.0, 4.0]]))
        {'agreement': 0.6, 'ratio': 5.0}
    """
    one, other = one.double(), other.double()
    first, second = one.norm(), other.norm()
    return _numbers({"agreement": (one * other).sum() / (first * second), "ratio": second / first})


def _numbers(found: dict[str, Tensor]) -> dict[str, float | None]:
    """Tensors as numbers, with one synchronization; NaN becomes ``None``."""
    values = torch.stack([each.double() for each in found.values()])
    known = values.isfinite().tolist()
    return {name: value if there else None for name, value, there in zip(found, values.tolist(), known, strict=True)}
