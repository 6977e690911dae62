"""One of several processes that share a batch: python many.py FOLDER RANK SIZE.

It runs every loss on its share and leaves what it found.  The test runs the same cases on the whole batch.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.flop_counter import FlopCounterMode

from likewise import losses, miners
from likewise.distributed import RowPartition, TorchProcessGroup
from likewise.engines import recompute
from likewise.formula import Masks, Reduction
from tests.engines.test_pair_numbers import Guided
from tests.losses.cases import CASES, PROXY_CASES

SIZES = {3: (5, 2, 7)}
"""How many samples each process has: the middle one has rows on both sides."""

DIM, CLASSES = 5, 10
STEPS = 3


@dataclass(frozen=True)
class Case:
    """A loss, and what is called with it."""

    make: Callable[..., nn.Module]
    reduction: Reduction = "mean"
    call: str = "batch"
    steps: int = 1


def wrapped() -> dict[str, Case]:
    """Losses around losses."""

    def words() -> Tensor:
        return torch.randn(CLASSES, 3, generator=torch.Generator().manual_seed(5)).double()

    def several(reduction: str) -> nn.Module:
        inner = losses.LanguageGuidance(losses.NTXentLoss(learn_temperature=True, reduction=reduction), words())
        return losses.WeightedSum(
            {
                losses.MarginLoss(num_classes=CLASSES, nu=0.1, reduction=reduction): 0.5,
                losses.Matryoshka(inner.loss, [2, 5]): 0.5,
                inner: 1.0,
                losses.EmbeddingNorm(): 0.1,
                losses.ZeroMean(): 0.2,
            }
        )

    def direction(kind: type, *sizes: int, reduction: str, backend: str = "dense", **options: Any) -> nn.Module:
        return losses.DirectionRegularized(kind(*sizes, reduction=reduction, backend=backend, **options))

    def guided(reduction: str) -> nn.Module:
        loss = losses.ContrastiveLoss(reduction=reduction)
        return losses.LanguageGuidance(loss, words(), weight=0.5, mask_same_class=True)

    def synthesis(kind: type, reduction: str) -> nn.Module:
        loss = losses.ProxySynthesis(kind(CLASSES, DIM, reduction=reduction), mu=0.7)
        loss.sample_ratio = lambda: 0.3  # type: ignore[method-assign]
        return loss

    def without_options(kind: type, reduction: str) -> nn.Module:
        return kind()

    return {
        "synthesis of ArcFaceLoss": Case(partial(synthesis, losses.ArcFaceLoss)),
        "synthesis of ProxyAnchorLoss": Case(partial(synthesis, losses.ProxyAnchorLoss)),
        "statistics of AdaFaceLoss": Case(partial(losses.AdaFaceLoss, CLASSES, DIM, t_alpha=0.5), steps=STEPS),
        "histogram of DynamicSoftMarginLoss": Case(partial(losses.DynamicSoftMarginLoss, momentum=0.5), steps=STEPS),
        "AntiCollapseLoss": Case(partial(without_options, losses.AntiCollapseLoss)),
        "CoSENTLoss": Case(partial(without_options, losses.CoSENTLoss), call="rows"),
        "AnglELoss": Case(partial(without_options, losses.AnglELoss), call="rows"),
        "VICRegLoss": Case(partial(without_options, losses.VICRegLoss), call="rows"),
        "guide": Case(lambda reduction: losses.GuideMasked(losses.NTXentLoss(reduction=reduction)), call="guide"),
        "several": Case(several),
        "direction of triplets": Case(partial(direction, losses.TripletLoss)),
        "direction of mined pairs": Case(
            partial(direction, losses.MultiSimilarityLoss, miner=miners.MultiSimilarityMiner())
        ),
        "direction of proxies": Case(partial(direction, losses.ProxyNCALoss, CLASSES, DIM)),
        "direction from proxies": Case(partial(direction, losses.ProxyAnchorLoss, CLASSES, DIM)),
        "language": Case(guided),
        "numbers per pair": Case(Guided),
    }


def remembering() -> dict[str, Case]:
    """A queue over three steps."""

    def memory(kind: type, *inputs: int, reduction: str, **options: Any) -> nn.Module:
        return losses.CrossBatchMemory(kind(*inputs, reduction=reduction, **options), size=30, warmup=1)

    kinds: dict[str, Any] = {
        "contrastive": partial(memory, losses.ContrastiveLoss),
        "triplets": partial(memory, losses.TripletLoss),
        "mined": partial(memory, losses.MultiSimilarityLoss, miner=miners.MultiSimilarityMiner()),
        "angular": partial(memory, losses.AngularLoss),
        "proxy anchor": partial(memory, losses.ProxyAnchorLoss, CLASSES, DIM),
        "repulsion": partial(memory, losses.ProxyRepulsionLoss, CLASSES, DIM),
        "through samples": partial(memory, losses.ProxyRepulsionLoss, CLASSES, DIM, through_samples=True),
    }
    made = {f"memory of {name}": Case(make, steps=STEPS) for name, make in kinds.items()}
    return {**made, "memory of keys": Case(partial(memory, losses.NTXentLoss), call="keys", steps=STEPS)}


def reduced() -> dict[str, Case]:
    """Other reductions: of pairs, triplets, samples, and proxies as anchors."""
    kinds: dict[str, Callable[..., nn.Module]] = {
        kind.__name__: kind for kind in (losses.ContrastiveLoss, losses.NTXentLoss, losses.TripletLoss)
    }
    for head in (losses.ArcFaceLoss, losses.ProxyAnchorLoss, losses.ProxyRepulsionLoss):
        kinds[head.__name__] = partial(head, CLASSES, DIM)
    made = {f"reductions of {name}": Case(make, "mean_per_anchor") for name, make in kinds.items()}
    return {**made, "reductions of AngularLoss": Case(losses.AngularLoss, "mean_per_anchor")}


def sharded() -> dict[str, Case]:
    """Proxies in shares."""

    def shards(kind: type, reduction: str, backend: str = "auto", **options: Any) -> nn.Module:
        return losses.ShardedProxies(kind(CLASSES, DIM, reduction=reduction, backend=backend, **options))

    kinds: dict[str, Any] = {
        kind.__name__: partial(shards, kind)
        for kind in (
            losses.ProxyNCALoss,
            losses.ProxyNCAPPLoss,
            losses.SphereFaceLoss,
            losses.CosFaceLoss,
            losses.ArcFaceLoss,
            losses.SubCenterArcFaceLoss,
            losses.SoftTripleLoss,
            losses.ProxyAnchorLoss,
            losses.ProxyRepulsionLoss,
            losses.P2SGradLoss,
            losses.LargeMarginSoftmaxLoss,
            losses.AdaFaceLoss,
            losses.MagFaceLoss,
        )
    }
    kinds["ElasticCosFaceLoss"] = partial(shards, losses.ElasticCosFaceLoss, std=0.0, plus=True)
    kinds["SoftmaxLoss"] = partial(shards, losses.SoftmaxLoss, bias=True)
    kinds["NormalizedSoftmaxLoss"] = partial(shards, losses.NormalizedSoftmaxLoss, learn_temperature=True)
    kinds["through samples"] = partial(shards, losses.ProxyRepulsionLoss, through_samples=True)
    return {f"shards of {name}": Case(make) for name, make in kinds.items()}


def cases() -> dict[str, Case]:
    """Each loss once, under one reduction: what is left to go wrong here is who has what."""
    more = {
        "references": Case(losses.ContrastiveLoss, call="references"),
        "references of angular": Case(losses.AngularLoss, call="references"),
        "masks": Case(losses.NTXentLoss, call="masks"),
        "views": Case(losses.NTXentLoss, call="views"),
        "paired": Case(losses.TripletLoss, call="paired"),
        "similarities": Case(losses.MultiSimilarityLoss, call="similarities"),
    }
    crowded = {
        f"crowded {kind.__name__}": Case(kind, call="crowded")
        for kind in (
            losses.AngularLoss,
            losses.TripletLoss,
            losses.QuadrupletLoss,
            losses.LiftedStructureLoss,
            losses.MarginLoss,
        )
    }
    crowded["crowded directions"] = Case(wrapped()["direction of triplets"].make, call="crowded")
    few = {
        f"few classes of {kind.__name__}": Case(partial(kind, 2, DIM), call="few classes")
        for kind in (losses.ProxyAnchorLoss, losses.ProxyRepulsionLoss, losses.SoftTripleLoss, losses.ProxyGMLLoss)
    }
    made = {case.label: Case(case.make) for case in [*CASES, *PROXY_CASES]}
    # with fewer classes than processes some have no proxy to account for
    return {**made, **wrapped(), **reduced(), **remembering(), **sharded(), **crowded, **more, **few}


def batch(size: int, step: int, crowded: bool = False) -> tuple[Tensor, Tensor, RowPartition]:
    """Samples of all processes: classes that are on one of them, on several, and in one place only.

    In a crowded batch a class has more members than are kept side by side, and one process has all of another class.
    """
    sizes = tuple(4 * each for each in SIZES[size]) if crowded else SIZES[size]
    n = sum(sizes)
    generator = torch.Generator().manual_seed(10 * size + step)
    centers = torch.randn(CLASSES, DIM, generator=generator, dtype=torch.float64)
    labels = torch.tensor([0, 0, 1, 2, 1, 0, 3, 2, 2, 4, 9, 0, 4, 4])
    labels = torch.where(torch.arange(n) < 6, 1, torch.arange(n) // (n - 3) * 2) if crowded else labels[:n]
    noise = torch.randn(n, DIM, generator=generator, dtype=torch.float64)
    return centers[labels] + 0.8 * noise, labels, RowPartition(sizes, 0)


def learner(case: Case) -> nn.Module:
    """The loss in float64, the same on all processes."""
    torch.manual_seed(3)
    return case.make(reduction=case.reduction).double()


def value_of(loss: nn.Module, case: Case, leaf: Tensor, labels: Tensor, own: slice, everyone: Tensor) -> Tensor:
    """Call the loss as the case says, on some anchors."""
    inner = loss.loss if isinstance(loss, losses.Gathered) else loss
    if case.call == "references":
        references, their_labels = everyone.flip(0)[own], (labels + 1) % 3
        value: Tensor = loss(leaf, labels, references, their_labels)
    elif case.call == "rows":  # labels are scores, or ignored
        value = loss(leaf, labels, everyone.flip(1)[own])
    elif case.call == "guide":
        with losses.gathered.join_batch() if isinstance(loss, losses.Gathered) else torch.enable_grad():
            value = inner(leaf, labels, guide=everyone.flip(1)[own])
    elif case.call in ("views", "paired"):
        value = loss(leaf, references=everyone.flip(1)[own], relation=case.call)
    elif case.call == "keys":
        with losses.gathered.join_batch() if isinstance(loss, losses.Gathered) else torch.enable_grad():
            value = inner(leaf, labels, enqueue=torch.arange(len(everyone))[own] % 2 == 0)
    elif case.call == "masks":
        n = len(everyone)
        positive = torch.arange(n)[:, None] % 4 == torch.arange(n)[None, :] % 3
        negative = ~positive & (torch.arange(n)[:, None] % 2 == 0)
        value = loss(leaf, relation=Masks(positive[own], negative[own]))
    elif case.call == "similarities":
        n = len(everyone)
        positive = torch.arange(n)[:, None] % 4 == torch.arange(n)[None, :] % 3
        matrix = leaf @ everyone.T / 10.0
        group = losses.gathered.join_batch() if isinstance(loss, losses.Gathered) else torch.enable_grad()
        with group:
            value = inner.from_similarity(matrix, Masks(positive[own], ~positive[own]))
    else:
        value = loss(leaf, labels % 2 if case.call == "few classes" else labels)
    return value


def weights(value: Tensor, offset: int) -> Tensor:
    """Under reduction="none", what each anchor's value counts."""
    return 1.0 + (torch.arange(len(value)) + offset) % 5


def run(case: Case, size: int, rank: int | None) -> dict[str, Any]:
    """Value and gradients of the last step; of all samples where there is no rank."""
    loss = learner(case)
    callee = loss if rank is None else losses.Gathered(loss)
    for step in range(case.steps):
        embeddings, labels, rows = batch(size, step, case.call == "crowded")
        own = slice(None) if rank is None else RowPartition(rows.sizes, rank).local
        leaf = embeddings[own].clone().requires_grad_()
        value = value_of(callee, case, leaf, labels[own], own, embeddings)
    loss.zero_grad()
    copies = 1 if rank is None or value.ndim else size
    objective = value
    if value.ndim:
        offset = 0 if rank is None else TorchProcessGroup().rows(value).offset
        objective = (weights(value, offset) * value).sum()
    objective.backward()
    assert leaf.grad is not None
    return {
        "value": value.detach(),
        "embeddings": leaf.grad / copies,
        "parameters": {
            key: (parameter.grad, bool(getattr(parameter, "is_shard", False)))
            for key, parameter in loss.named_parameters()
        },
        "buffers": dict(loss.named_buffers()),
    }


# ---------------------------------------------------------------------------------------------- multiply-adds

BATCH, WIDE = 36, 16


def counted() -> dict[str, Callable[[], nn.Module]]:
    """Every loss, with sizes that can be divided."""
    made: dict[str, Callable[[], nn.Module]] = {case.label: case.make for case in CASES}
    for case in PROXY_CASES:
        kind = type(case.make())
        made[kind.__name__] = partial(kind, BATCH, WIDE)
    made["PDDMLoss"] = partial(losses.PDDMLoss, WIDE)
    levels = torch.stack([torch.arange(BATCH), torch.arange(BATCH) // 4], dim=1)
    made["CSLLoss"] = partial(losses.CSLLoss, BATCH, WIDE, levels, (0.25, 0.35))
    made["through samples"] = partial(losses.ProxyRepulsionLoss, BATCH, WIDE, through_samples=True)
    for name in ("TripletLoss", "MultiSimilarityLoss"):
        made[f"direction of {name}"] = lambda name=name: losses.DirectionRegularized(getattr(losses, name)())
    made["direction of proxies"] = lambda: losses.DirectionRegularized(losses.ProxyNCALoss(BATCH, WIDE))
    made["language"] = lambda: losses.LanguageGuidance(losses.NTXentLoss(), torch.randn(BATCH, 8))
    made["memory"] = lambda: losses.CrossBatchMemory(losses.NTXentLoss(), 2 * BATCH)
    made["memory of proxies"] = lambda: losses.CrossBatchMemory(losses.ProxyAnchorLoss(BATCH, WIDE), 2 * BATCH)
    for kind in (losses.ArcFaceLoss, losses.SoftTripleLoss, losses.ProxyAnchorLoss, losses.ProxyRepulsionLoss):
        made[f"shards of {kind.__name__}"] = lambda kind=kind: losses.ShardedProxies(kind(BATCH, WIDE))
    return made


def multiply_adds(make: Callable[[], nn.Module], size: int, rank: int) -> int:
    """Of a step, forward and backward, on a process's share; a memory has something to remember."""
    torch.manual_seed(0)
    own = slice(rank * BATCH // size, (rank + 1) * BATCH // size)
    loss = losses.Gathered(make())
    steps = 2 if isinstance(loss.loss, losses.CrossBatchMemory) else 1
    with FlopCounterMode(display=False) as count:
        for _ in range(steps):
            embeddings, labels = torch.randn(BATCH, WIDE), torch.arange(BATCH) // 4
            loss(embeddings[own].requires_grad_(), labels[own]).backward()
    return int(count.get_total_flops())


# ---------------------------------------------------------------------------------------------- a trunk


def trained(size: int, rank: int | None) -> dict[str, Tensor]:
    """The gradients of a trunk and of what a loss learns, both behind DistributedDataParallel, after some steps."""
    torch.manual_seed(1)
    trunk: nn.Module = nn.Linear(DIM, DIM).double()
    loss: nn.Module = losses.WeightedSum(
        {
            losses.ProxyAnchorLoss(CLASSES, DIM): 1.0,
            losses.NTXentLoss(0.5, learn_temperature=True): 1.0,
            losses.MarginLoss(num_classes=CLASSES, nu=0.1): 1.0,
            losses.SoftTripleLoss(CLASSES, DIM, centers=2): 1.0,
        }
    ).double()
    learned = {**dict(trunk.named_parameters("trunk")), **dict(loss.named_parameters("loss"))}
    optimizer = torch.optim.SGD(learned.values(), lr=0.1, momentum=0.9)
    called = trunk
    if rank is not None:
        called = DistributedDataParallel(trunk)
        loss = DistributedDataParallel(losses.Gathered(loss))
    for step in range(STEPS):
        images, labels, rows = batch(size, step)
        own = slice(None) if rank is None else RowPartition(rows.sizes, rank).local
        optimizer.zero_grad()
        loss(called(images[own]), labels[own]).backward()
        optimizer.step()
    return {key: each.detach().clone() for key, each in learned.items()}


def curvature(size: int, rank: int | None) -> Tensor:
    """The gradient of the squared norm of a gradient: collectives can be differentiated twice."""
    embeddings, labels, rows = batch(size, 0)
    own = slice(None) if rank is None else RowPartition(rows.sizes, rank).local
    leaf = embeddings[own].clone().requires_grad_()
    loss: nn.Module = losses.MultiSimilarityLoss()
    loss = loss if rank is None else losses.Gathered(loss)
    copies = 1 if rank is None else size
    (slope,) = torch.autograd.grad(loss(leaf, labels[own]), leaf, create_graph=True)
    (bend,) = torch.autograd.grad((slope / copies).square().sum(), leaf)
    return bend


def tiny_chunks() -> None:
    """Chunks of two anchors, or of the proxies of two classes."""
    recompute.BUDGET["cpu"] = 1
    recompute.LEAST_ROWS = 2


def main(folder: Path, rank: int, size: int) -> None:
    """Run everything, and leave what this process found."""
    torch.set_num_threads(1)
    store = f"file://{folder}/meeting"
    dist.init_process_group("gloo", init_method=store, rank=rank, world_size=size, timeout=timedelta(seconds=60))
    tiny_chunks()
    found = {name: run(case, size, rank) for name, case in cases().items()}
    work = {name: multiply_adds(make, size, rank) for name, make in counted().items()}
    left = {"found": found, "work": work, "trained": trained(size, rank), "curvature": curvature(size, rank)}
    torch.save(left, folder / f"{rank}.pt")
    dist.destroy_process_group()


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
