"""How exact the engines are: every loss, every kind of batch, on sizes that divide by nothing, against float64.

The truth is the dense engine in float64 on the CPU, from exactly the numbers that the engine was given.  An engine may be
twice as far from it as the dense engine is at the same dtype and on the same device.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from benchmarks.engines.rows import DTYPES, Bench, Row, attempt, configure, distance, products
from benchmarks.harness.pairings import HEADS, PAIRINGS
from likewise import losses, miners
from likewise.formula import Labels, Masks

ANCHORS, REFERENCES, DIM, CLASSES = 257, 391, 100, 53
SLACK = 2.0
ROUNDING = 2.0**-24
"""Half a unit in the last place of float32: no error below it can be asked for."""

DTYPES_AND_PRODUCTS = (
    ("float32", "highest"),
    ("bfloat16", "highest"),
    ("float16", "highest"),
    ("float32", "high"),
)
"""Not ``medium``: torch's own products are TF32 there, as at ``high``, and ours are bfloat16, as was asked for."""
SINGLE_PROCESS, AGAINST, OWN, MASKS = "a batch", "references", "own and valid", "masks"


@dataclass(frozen=True)
class Case:
    """A loss, and what it is given.

    Args:
        make: makes the loss.
        batch: a batch alone, against references, against references of which some do not exist and some are the
            anchors themselves (as in a memory), or with masks in place of labels.
    """

    make: Callable[[], nn.Module]
    batch: str = SINGLE_PROCESS


def head(make: Callable[[int, int], nn.Module]) -> Callable[[], nn.Module]:
    """A loss with proxies, always the same ones."""

    def made() -> nn.Module:
        torch.manual_seed(0)
        return make(CLASSES, DIM)

    return made


def memory(loss: Callable[[], nn.Module]) -> Callable[[], nn.Module]:
    """A cross-batch memory that is half full."""

    def made() -> nn.Module:
        module = losses.CrossBatchMemory(loss(), size=REFERENCES)
        embeddings, labels = data()[:2]
        # the queue is part of the input: numbers that every dtype has
        module(embeddings[:200].bfloat16().float().flip(0), labels[:200].flip(0))
        return module.eval()

    return made


@cache
def cases() -> dict[str, Case]:
    """Everything that is checked, by name."""
    plain = [pairing for pairing in PAIRINGS if not pairing.random]
    found = {pairing.name: Case(pairing.ours) for pairing in plain}
    found |= {each.name: Case(head(each.ours)) for each in HEADS}
    mined = [
        miners.MultiSimilarityMiner(0.1),
        miners.PairMarginMiner(0.6, 0.2),
        miners.SemiHardMiner(),
        miners.BatchHardMiner(),
        miners.EasyPositiveMiner(),
    ]
    for miner in mined:
        for kind in (losses.TripletLoss, losses.MultiSimilarityLoss, losses.NTXentLoss, losses.ContrastiveLoss):
            found[f"{kind.__name__} + {type(miner).__name__}"] = Case(lambda kind=kind, miner=miner: kind(miner=miner))
    for batch, note in ((AGAINST, "references"), (OWN, "own, valid")):
        for pairing in plain:
            if getattr(pairing.ours(), "takes_references", True):
                found[f"{pairing.name}, {note}"] = Case(pairing.ours, batch)
    for kind in (losses.MultiSimilarityLoss, losses.NTXentLoss, losses.ContrastiveLoss, losses.TripletLoss):
        found[f"{kind.__name__}, masks"] = Case(kind, MASKS)
        found[f"{kind.__name__}, memory"] = Case(memory(kind))
    found["ProxyAnchorLoss, memory"] = Case(memory(head(losses.ProxyAnchorLoss)))
    for similarity in ("dot", "euclidean", "squared_euclidean", "snr"):
        found[f"MultiSimilarityLoss, {similarity}"] = Case(
            lambda similarity=similarity: losses.MultiSimilarityLoss(similarity=similarity)
        )
    return found


@cache
def data() -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Anchors, their labels, references and theirs: ragged classes, lengths that are not one."""
    generator = torch.Generator().manual_seed(1)
    labels = torch.randint(CLASSES, (ANCHORS + REFERENCES,), generator=generator)
    centers = torch.randn(CLASSES, DIM, generator=generator)
    x = 0.6 * torch.randn(1, DIM, generator=generator) + centers[labels]
    x = F.normalize(x + 1.2 * torch.randn(len(labels), DIM, generator=generator))
    x = x * (0.5 + torch.rand(len(labels), 1, generator=generator))
    return x[:ANCHORS], labels[:ANCHORS], x[ANCHORS:], labels[ANCHORS:]


def relation_of(case: Case) -> Labels | Masks | None:
    """Who is positive to whom, where labels alone do not say it."""
    _, labels, _, others = data()
    if case.batch == OWN:
        own = torch.full((ANCHORS,), -1)
        own[::3] = torch.arange(len(own[::3]))
        joined = torch.cat([labels[::3], others[: REFERENCES - len(labels[::3])]])
        return Labels(labels, joined, own=own, valid=torch.arange(REFERENCES) % 5 != 0)
    if case.batch == MASKS:
        same = labels[:, None] == others[None, :]
        odd = torch.rand(same.shape, generator=torch.Generator().manual_seed(2)) < 0.2
        return Masks(positive=same & ~odd, negative=~same & ~odd)
    return None


def evaluate(case: Case, device: str, given: torch.dtype, work: torch.dtype, backend: str) -> list[Tensor]:
    """The value per anchor (or of the batch, where there is no such thing), and the gradients of everything."""
    anchors, labels, references, others = data()
    anchors, references = (x.to(given).to(work).to(device) for x in (anchors, references))
    leaves = [anchors.requires_grad_()]
    if case.batch != SINGLE_PROCESS:
        leaves.append(references.requires_grad_())
    relation = relation_of(case)
    arguments: list[Tensor | None] = [leaves[0], labels.to(device) if relation is None else None, *leaves[1:]]
    if case.batch == AGAINST:
        arguments.append(others.to(device))
    keywords = {} if relation is None else {"relation": moved(relation, device)}
    loss = configure(case.make().to(device), backend=backend)
    if work == torch.float64:
        loss = loss.double()
    total = loss(*arguments, **keywords)
    learned = [parameter for parameter in loss.parameters() if parameter.requires_grad]
    slopes = torch.autograd.grad(total, leaves + learned, allow_unused=True)
    return [each_anchor(loss, arguments, keywords, total), *(x for x in slopes if x is not None)]


def each_anchor(loss: nn.Module, arguments: list[Tensor | None], keywords: dict[str, object], total: Tensor) -> Tensor:
    """One value per anchor; the total, where a loss has no such thing."""
    try:
        with torch.no_grad():
            values: Tensor = configure(loss, reduction="none")(*arguments, **keywords)
    except (TypeError, ValueError):
        return total.detach()
    return values


def moved(relation: Labels | Masks, device: str) -> Labels | Masks:
    """A relation on another device."""
    if isinstance(relation, Masks):
        return Masks(relation.positive.to(device), relation.negative.to(device))
    fields = (relation.labels, relation.reference_labels, relation.own, relation.valid)
    return Labels(*(None if x is None else x.to(device) for x in fields))


def measure_precision(bench: Bench, key: Row) -> Row:
    """Errors of an engine at every dtype, and of the dense one beside it."""
    found = {}
    for given, setting in DTYPES_AND_PRODUCTS:
        found[f"{given}, {setting}"] = attempt(partial(compare, bench, key, given, setting))
    refusals = {part["why"] for part in found.values() if "why" in part}
    if len(refusals) == 1 and all("why" in part for part in found.values()):
        return {"why": refusals.pop()}
    return {"by": found, "within": all(part.get("within", False) for part in found.values())}


def compare(bench: Bench, key: Row, given: str, setting: str) -> Row:
    """The errors at one dtype."""
    case, dtype = cases()[key["loss"]], DTYPES[given]
    with products(setting):
        true = bench.remembered((key["loss"], given), lambda: evaluate(case, "cpu", dtype, torch.float64, "dense"))
        # the engine is asked before the dense one: where it refuses, nothing else need be computed
        found = errors(case, bench.device, dtype, key["contender"], true)
        same = (key["loss"], given, setting)
        beside = bench.remembered(same, lambda: errors(case, bench.device, dtype, "dense", true))
    row: Row = {"value_error": found[0], "gradient_error": max(found[1:])}
    row |= {"dense_value_error": beside[0], "dense_gradient_error": max(beside[1:])}
    return row | {"within": all(x <= SLACK * max(y, ROUNDING) for x, y in zip(found, beside, strict=True))}


def errors(case: Case, device: str, dtype: torch.dtype, backend: str, true: list[Tensor]) -> list[float]:
    """Relative distances of the values and of each gradient, measured where the truth is."""
    found = evaluate(case, device, dtype, dtype, backend)
    return [distance(x.detach().double().cpu(), t) for x, t in zip(found, true, strict=True)]
