"""One row for each way to call a function: the class that it must equal, and the tensors that the class learns."""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from likewise import functional, losses
from likewise.formula import POSITIVES, hyperparameters, logsumexp, s

CLASSES, DIM = 10, 5

CONSTRUCTION = {"num_classes", "embedding_dim", "learn_temperature", "learn_beta", "learn"}
"""Arguments of a class that follow from a function's tensors."""

SAMPLING = {"sampled", "corrected", "sparse", "generator"}
"""Arguments of a class that draws proxies; a function is given the proxies that were drawn."""


HIERARCHY = torch.stack([torch.arange(CLASSES), torch.arange(CLASSES) // 3, torch.arange(CLASSES) // 6], dim=1)
"""The levels of the classes."""

PULL = {"pull": logsumexp(-2.0 * s, POSITIVES)}


def pull_softly(similarities: Tensor, rows: Mapping[str, Tensor], is_positive: Tensor) -> Tensor:
    """Weights that need a statistic of the row."""
    return torch.where(is_positive, torch.exp(-2.0 * similarities - rows["pull"]), similarities.square())


WITH_OTHER_TENSORS = (
    losses.AdaFaceLoss,
    losses.AnglELoss,
    losses.AntiCollapseLoss,
    losses.CoSENTLoss,
    losses.DynamicSoftMarginLoss,
    losses.ElasticArcFaceLoss,
    losses.ElasticCosFaceLoss,
    losses.HierarchicalTripletLoss,
    losses.PDDMLoss,
    losses.VICRegLoss,
)
"""Losses whose functions take a state, a tree, layers, margins, scores or a second view; `test_other_tensors` is about them."""


def kinds() -> list[type[nn.Module]]:
    """Every other loss of `likewise.losses` that is neither an interface, a wrapper nor a memory."""
    exported = [getattr(losses, name) for name in losses.__all__]
    bases = (losses.PairLoss, losses.ProxyLoss)
    derived = [each for each in exported if inspect.isclass(each) and issubclass(each, bases) and each not in bases]
    return [*(each for each in derived if each not in WITH_OTHER_TENSORS), losses.EmbeddingNorm, losses.ZeroMean]


def name_of(kind: type[nn.Module]) -> str:
    """The rule: the class's name without ``Loss``, in snake case; an acronym is one word, and PP stands for ++."""
    name = re.sub("PP$", "Pp", kind.__name__.removesuffix("Loss"))
    return re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()


def function_of(kind: type[nn.Module]) -> Callable[..., Tensor]:
    function: Callable[..., Tensor] = getattr(functional, name_of(kind))
    return function


def changed(kind: type[nn.Module]) -> dict[str, float]:
    """A value for each hyper-parameter that is not its default, from the range in which a search looks."""
    if not dataclasses.is_dataclass(kind):
        return {}
    defaults = {field.name: field.default for field in dataclasses.fields(kind)}
    values: dict[str, float] = {}
    for name, declared in hyperparameters(kind).items():
        assert declared.search is not None
        low, high = declared.search
        value = low + 0.375 * (high - low)
        values[name] = max(2, round(low)) if isinstance(defaults[name], int) else value
        if values[name] == defaults[name]:
            values[name] = values[name] + 1
    return values


@dataclasses.dataclass(frozen=True)
class Case:
    """A class with some options, and how a function is told what the class learns.

    Args:
        kind: the class.
        options: of the class and of the function.
        construction: of the class alone.
        learned: for each argument of the function that is a parameter of the class, the parameter's name.
    """

    kind: type[nn.Module]
    options: dict[str, Any] = dataclasses.field(default_factory=dict)
    construction: dict[str, Any] = dataclasses.field(default_factory=dict)
    learned: dict[str, str] = dataclasses.field(default_factory=dict)
    name: str = ""

    @property
    def has_proxies(self) -> bool:
        return issubclass(self.kind, losses.ProxyLoss)

    def make(self, **more: Any) -> nn.Module:
        """The module, in float64, with parameters that are the same every time."""
        size = (CLASSES, DIM) if self.has_proxies else ()
        module = self.kind(*size, **self.options, **self.construction, **more).double()
        generator = torch.Generator().manual_seed(1)
        with torch.no_grad():
            for parameter in module.parameters():
                noise = torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
                parameter.copy_(noise if parameter.ndim == 2 else parameter + 0.1 * noise)
        return module

    def tensors(self, module: nn.Module) -> dict[str, Tensor]:
        """What the module learns as arguments of the function: leaves with the same values."""
        names = {"proxies": "proxies", **self.learned} if self.has_proxies else self.learned
        found = {argument: module.get_parameter(name).detach() for argument, name in names.items()}
        for argument in found:
            if names[argument] == f"log_{argument}":
                found[argument] = found[argument].exp()
        return {argument: value.clone().requires_grad_() for argument, value in found.items()}

    def call(self, embeddings: Tensor, labels: Tensor | None, tensors: dict[str, Tensor], **more: Any) -> Tensor:
        """The function on a batch."""
        batch = (embeddings,) if self.kind in (losses.EmbeddingNorm, losses.ZeroMean) else (embeddings, labels)
        return function_of(self.kind)(*batch, **tensors, **self.options, **more)


def _case(kind: type[nn.Module], **options: Any) -> Case:
    if kind is losses.WeightedPairLoss:
        options = {"weight_fn": pull_softly, "statistics": PULL, **options}
    construction = {losses.MarginLoss: {"learn_beta": False}, losses.SigmoidLoss: {"learn": False}}.get(kind, {})
    if kind is losses.CSLLoss:
        options = {"hierarchy": HIERARCHY, **options}
    return Case(kind, options, construction)


def _learned(kind: type[nn.Module], argument: str, parameter: str, **construction: Any) -> Case:
    return Case(kind, {}, construction, {argument: parameter}, name=f"{kind.__name__}-learned-{argument}")


DEFAULT = [_case(kind) for kind in kinds()]
CHANGED = [
    dataclasses.replace(_case(kind, **changed(kind)), name=f"{kind.__name__}-changed")
    for kind in kinds()
    if changed(kind)
]
OTHERS = [
    dataclasses.replace(_case(losses.TripletLoss, soft=True), name="TripletLoss-soft"),
    dataclasses.replace(_case(losses.SphereFaceLoss, normalize=True), name="SphereFaceLoss-normalized"),
    dataclasses.replace(
        _case(losses.ProxyRepulsionLoss, through_samples=True), name="ProxyRepulsionLoss-through-samples"
    ),
]
LEARNED = [
    _learned(losses.NTXentLoss, "temperature", "log_temperature", learn_temperature=True),
    _learned(losses.SupConLoss, "temperature", "log_temperature", learn_temperature=True),
    _learned(losses.NormalizedSoftmaxLoss, "temperature", "log_temperature", learn_temperature=True),
    _learned(losses.SoftmaxLoss, "bias", "bias", bias=True),
    Case(losses.SigmoidLoss, {}, {}, {"scale": "log_scale", "bias": "bias"}, name="SigmoidLoss-learned"),
    _learned(losses.MarginLoss, "beta", "beta"),
    dataclasses.replace(
        _learned(losses.MarginLoss, "beta", "beta", num_classes=CLASSES),
        options={"nu": 0.1},
        name="MarginLoss-learned-beta-per-class",
    ),
]
CASES = DEFAULT + CHANGED + OTHERS + LEARNED


def label(case: Case) -> str:
    return case.name or case.kind.__name__
