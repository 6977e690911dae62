"""The shell around the declaration of a loss with proxies: learned vectors that stand for the classes."""

from __future__ import annotations

from enum import Enum
from typing import Any, ClassVar, Self, dataclass_transform

import torch
from torch import Tensor, nn

from likewise import backends
from likewise.core.checks import embeddings_of, full_precision, labels_of, one_of, same_device, whole_number
from likewise.core.folds import NEGATIVES, POSITIVES, logsumexp
from likewise.core.formula import Formula, Operand, softplus
from likewise.core.hyper import check_hyperparameters, hyper, option
from likewise.core.problem import Problem, check_classes
from likewise.core.relation import Labels, Relation
from likewise.core.similarity import as_similarity, unit
from likewise.core.spec import REDUCTIONS, Declaration, Part, Reduction, per_anchor
from likewise.losses.module import describe, make_constructor, parameter_groups, value_of, whole_module


class Between(Enum):
    """Whom a part of a proxy loss compares: anchors first, references second.

    Examples:
        >>> Between.PROXIES_SAMPLES.value
        'proxies against samples'
    """

    SAMPLES_PROXIES = "samples against proxies"
    SAMPLES_CLASSES = "samples against classes, whose proxies are pooled"
    PROXIES_SAMPLES = "proxies against samples"
    PROXIES_PROXIES = "proxies against proxies"


def cross_entropy(positive: Operand, negative: Operand) -> Part:
    """One unit per sample: ``−log(e^positive / (e^positive + Σ e^negative))``, which is ``softplus(LSE_N − LSE_P)``.

    Examples:
        >>> from likewise.core import s
        >>> cross_entropy(2.0 * s, 2.0 * s).units
        0.0 < count[positives](1.0)
    """
    logits: Formula = logsumexp(negative, NEGATIVES) - logsumexp(positive, POSITIVES)
    return per_anchor(softplus(logits), needs=(POSITIVES,))


@dataclass_transform(eq_default=False, field_specifiers=(hyper, option))
class ProxyLoss(nn.Module):
    """A loss on the similarities between a batch and learned proxies, given by its declarations.

    A subclass is its hyper-parameters and one method, `declare`, which says for each matrix that the loss looks at
    (`Between`) what it does there.

    Args:
        num_classes: how many classes there are; labels must be 0 … num_classes − 1.
        embedding_dim: the embeddings' dimension.
        reduction: ``"mean"``, ``"nonzero"``, ``"sum"`` or ``"none"``, over the units that the loss is defined on.
        backend: the engine; ``"auto"`` chooses by size and device.

    Attributes:
        proxies: the parameter, ``(num_classes · centres, embedding_dim)``; row ``c · centres + k`` is centre k of class c.

    Examples:
        >>> import torch
        >>> from likewise.core import s
        >>> class Plain(ProxyLoss):
        ...     def declare(self):
        ...         return {Between.SAMPLES_PROXIES: cross_entropy(s, s)}
        >>> loss = Plain(num_classes=3, embedding_dim=4)
        >>> loss(torch.zeros(2, 4), torch.tensor([0, 2])).detach()
        tensor(1.0986)
    """

    num_classes: int
    embedding_dim: int
    reduction: Reduction = option(default="mean", kw_only=True, help="mean, nonzero, sum or none")
    backend: str = option(default="auto", kw_only=True, help="the engine")

    similarity: ClassVar[str] = "cosine"
    """How samples and proxies are compared."""
    takes_references: ClassVar[bool] = False
    suggested_lr: ClassVar[float | None] = None
    """The proxies' learning rate in the thesis (table 4), where it gives one."""

    def __init_subclass__(cls) -> None:
        """Make the constructor from the declared hyper-parameters and options."""
        super().__init_subclass__()
        make_constructor(cls)

    def __new__(cls, *_args: Any, **_kwargs: Any) -> Self:
        """Make the module whole before the generated constructor stores anything in it."""
        return whole_module(super().__new__(cls))

    def __post_init__(self) -> None:
        for name in ("num_classes", "embedding_dim"):
            setattr(self, name, whole_number(f"{type(self).__name__}: {name}", getattr(self, name), 1))
        check_hyperparameters(self)
        one_of("reduction", self.reduction, REDUCTIONS)
        one_of("backend", self.backend, backends.BACKENDS)
        self.proxies = nn.Parameter(torch.empty(self.num_classes * self.proxies_per_class, self.embedding_dim))
        with torch.no_grad():
            self.initialise(self.proxies)

    @property
    def proxies_per_class(self) -> int:
        """How many centres a class has."""
        return int(getattr(self, "centers", 1))

    def initialise(self, proxies: Tensor) -> None:
        """Fill the proxies for the first time."""
        nn.init.xavier_uniform_(proxies)

    def declare(self) -> dict[Between, Declaration]:
        """What the loss does on each matrix that it looks at."""
        raise NotImplementedError(f"{type(self).__name__} must define declare()")

    def declarations(self) -> list[Declaration]:
        """Everything that the loss declares, one entry for each matrix that it looks at."""
        return list(self.declare().values())

    def pool(self, similarities: Tensor) -> Tensor:
        """The similarity of a sample to a class from those to its centres, ``(m, classes, centres) -> (m, classes)``."""
        return similarities.amax(dim=2)

    def between_proxies(self, samples: Tensor, proxies: Tensor) -> Tensor:
        """The similarities among proxies."""
        return as_similarity(self.similarity)(proxies)

    def unit_proxies(self) -> Tensor:
        """The proxies at unit length, in float32 at least, for terms on the proxies alone."""
        return unit(self.proxies if self.proxies.dtype == torch.float64 else self.proxies.float())

    def only_from_embeddings(self) -> str | None:
        """Proxies are not among the similarities."""
        return "it compares embeddings with proxies of its own"

    def from_similarity(self, similarities: Tensor, relation: Relation | Tensor) -> Tensor:
        """Refused: the similarities of a batch do not contain the proxies."""
        raise TypeError(
            f"{type(self).__name__} cannot be computed from similarities alone: {self.only_from_embeddings()}"
        )

    def forward(
        self,
        embeddings: Tensor,
        labels: Tensor | None = None,
        references: Tensor | None = None,
        reference_labels: Tensor | None = None,
        *,
        relation: Relation | None = None,
    ) -> Tensor:
        """The loss of a batch; labels are class indices from 0, and proxies take the place of references."""
        if references is not None or reference_labels is not None or relation is not None:
            raise ValueError(
                f"{type(self).__name__} compares embeddings with its proxies and takes no references or relation"
            )
        with full_precision(embeddings):
            samples = self.samples(embeddings)
            if labels is None:
                raise TypeError("labels must be given: class indices from 0")
            labels = labels_of("labels", labels, len(samples), samples.device, "embeddings")
            check_classes(labels, self.num_classes, "proxy")
            return self.value(samples, labels)

    def value(self, samples: Tensor, labels: Tensor, valid: Tensor | None = None) -> Tensor:
        """The loss of samples that were checked; ``valid`` says which of them exist, where a memory leaves gaps."""
        proxies = self.proxies.to(samples.dtype)
        terms = []
        for between, declaration in self.declare().items():
            problem = self._problem(between, samples, labels, proxies, valid)
            terms.append(value_of(declaration, problem, self.reduction, self.backend))
        return terms[0] if len(terms) == 1 else torch.stack(terms).sum(dim=0)

    def samples(self, embeddings: Tensor) -> Tensor:
        """Check embeddings against the proxies' dimension and device; half precision is widened."""
        samples = embeddings_of("embeddings", embeddings)
        if samples.shape[1] != self.embedding_dim:
            raise ValueError(
                f"embeddings must have the {self.embedding_dim} dimensions of the proxies, but have {samples.shape[1]}"
            )
        same_device("embeddings", samples, self.proxies.device, "proxies")
        return samples

    def _problem(
        self, between: Between, samples: Tensor, labels: Tensor, proxies: Tensor, valid: Tensor | None
    ) -> Problem:
        similarity = as_similarity(self.similarity)
        classes = torch.arange(self.num_classes, device=samples.device)
        owners = classes.repeat_interleave(self.proxies_per_class, output_size=len(proxies))
        if between is Between.SAMPLES_PROXIES:
            return Problem(Labels(labels, owners), similarity, anchors=samples, references=proxies)
        if between is Between.PROXIES_SAMPLES:
            return Problem(Labels(owners, labels, valid=valid), similarity, anchors=proxies, references=samples)
        if between is Between.PROXIES_PROXIES:
            everyone = torch.arange(len(proxies), device=samples.device)
            samples = samples if valid is None else samples * valid[:, None]
            return Problem(Labels(everyone), similarities=self.between_proxies(samples, proxies))
        pooled = self.pool(self._by_class(similarity(samples, proxies)))
        return Problem(Labels(labels, classes), similarities=pooled)

    def _by_class(self, of_proxies: Tensor) -> Tensor:
        """Columns of proxies as classes and centres: ``(m, classes · centres) -> (m, classes, centres)``."""
        return of_proxies.reshape(len(of_proxies), self.num_classes, self.proxies_per_class)

    def logits(self, embeddings: Tensor) -> Tensor:
        """The similarity of each sample to each class, ``(m, num_classes)``, without margins."""
        with full_precision(embeddings):
            samples = self.samples(embeddings)
            similarities = as_similarity(self.similarity)(samples, self.proxies.to(samples.dtype))
            return self.pool(self._by_class(similarities))

    def classify(self, embeddings: Tensor) -> Tensor:
        """The most similar class of each sample.

        Args:
            embeddings: ``(m, embedding_dim)``.

        Returns:
            Class indices, ``(m,)``.
        """
        with torch.no_grad():
            return self.logits(embeddings).argmax(dim=1)

    def parameter_groups(self, lr: float | None = None) -> list[dict[str, Any]]:
        """The proxies as a group for an optimiser, with a learning rate of their own.

        Args:
            lr: the learning rate; by default the thesis' for this loss, where it gives one, else the optimiser's.
        """
        return parameter_groups(self, self.suggested_lr if lr is None else lr)

    def extra_repr(self) -> str:
        """The constructor's arguments that differ from their defaults, and every hyper-parameter."""
        return describe(self)


make_constructor(ProxyLoss)
