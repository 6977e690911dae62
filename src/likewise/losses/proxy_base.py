"""The base class of losses with proxies, learned vectors that represent the classes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self, dataclass_transform

import torch
import torch.distributed as dist
from torch import Tensor, nn

from likewise.distributed import SINGLE_PROCESS, RowPartition, current_group
from likewise.engines import BACKENDS, evaluate_declaration, plan_chunks, replay
from likewise.formula import (
    NEGATIVES,
    POSITIVES,
    Declaration,
    Formula,
    NearestCenter,
    Operand,
    PerReference,
    Pooling,
    Reduction,
    RelationLike,
    RowGradients,
    Similarity,
    Term,
    are_built_in,
    as_similarity,
    check_classes,
    check_hyperparameters,
    check_labels,
    check_reduction,
    embeddings_of,
    full_precision,
    half_of_products,
    has_similarity_hook,
    hyper,
    logsumexp,
    one_of,
    option,
    per_anchor,
    same_device,
    softplus,
    sort_declaration,
    unit,
    walk,
    whole_number,
)
from likewise.losses.base import LabelKind, parameter_groups
from likewise.losses.constructors import describe, initialize_module, learn_hyperparameters, make_constructor
from likewise.losses.declaration_cache import cached_declaration, state_without_declaration
from likewise.losses.proxies import ProxyTable, Queue
from likewise.losses.proxy_batches import (
    Between,
    compare_proxies,
    compare_proxies_with_samples,
    compare_samples,
    compare_samples_with_proxies,
)
from likewise.losses.sampling import number_of_classes, reweigh_declaration

_PROXIES = frozenset({"proxies"})


def cross_entropy(positive: Operand, negative: Operand) -> Term:
    """Return a term with one unit per sample, ``−log(e^positive / (e^positive + Σ e^negative))``.

    Examples:
        >>> from likewise.formula import s
        >>> cross_entropy(2.0 * s, 2.0 * s).units
        0.0 < count[positives](1.0)
    """
    logits: Formula = logsumexp(negative, NEGATIVES) - logsumexp(positive, POSITIVES)
    return per_anchor(softplus(logits), needs=(POSITIVES,))


@dataclass_transform(eq_default=False, field_specifiers=(hyper, option))
class ProxyLoss(nn.Module):
    """A loss on the similarities between a batch and learned proxies, given by its declarations.

    A subclass declares its hyper-parameters and defines one method, `declare`, which returns the terms of each matrix
    that the loss reads (`Between`).

    Args:
        num_classes: the number of classes; labels must be 0 … num_classes − 1.
        embedding_dim: the embeddings' dimension.
        reduction: as for `PairLoss`, over the units that the loss is defined on; the anchors may be samples or proxies.
        backend: the engine; ``"auto"`` chooses by size and device.
        sampled: Partial-FC sampling in training: the batch's classes plus randomly drawn ones; a fraction up to 1, or a
            number of classes above 1.  The sampled loss is never above the full one (`likewise.losses.sampling`).  A batch
            must not have more classes than that; on a GPU, where this is not checked, samples of excess classes are
            ignored.
        corrected: weight each drawn class by the number of classes it was drawn from, so that a softmax's expected
            denominator is the full one.
        sparse: make the proxies' gradient a sparse tensor of the compared rows, for optimizers that take one (``SGD``,
            ``Adagrad``, ``SparseAdam``); needs ``sampled``.
        generator: the random number generator that draws the classes; by default the device's, whose state is part of a
            training checkpoint.

    Attributes:
        proxies: the parameter, ``(num_classes · centers, embedding_dim)``; row ``c · centers + k`` is center k of class c.

    Examples:
        >>> import torch
        >>> from likewise.formula import s
        >>> class Plain(ProxyLoss):
        ...     def declare(self):
        ...         return {Between.SAMPLES_PROXIES: cross_entropy(s, s)}
        >>> loss = Plain(num_classes=3, embedding_dim=4)
        >>> loss(torch.zeros(2, 4), torch.tensor([0, 2])).detach()
        tensor(1.0986)
    """

    num_classes: int
    embedding_dim: int
    reduction: Reduction = option(default="mean", kw_only=True, help="how units are averaged")
    backend: str = option(default="auto", kw_only=True, help="the engine")
    sampled: float | None = option(default=None, kw_only=True, help="classes to compare with: a fraction or a number")
    corrected: bool = option(
        default=False, kw_only=True, help="weight a drawn class by the number of classes it was drawn from"
    )
    sparse: bool = option(default=False, kw_only=True, help="a sparse gradient of the compared proxies")
    generator: torch.Generator | None = option(default=None, kw_only=True, help="draws the classes")

    similarity: ClassVar[str] = "cosine"
    """How samples and proxies are compared."""
    takes_references: ClassVar[bool] = False
    is_stateful: ClassVar[bool] = False
    """Whether a call in training changes buffers or draws numbers; such a call is not replayed on a GPU."""
    label_kind: ClassVar[LabelKind] = "classes"
    """What labels are: classes, or levels of a hierarchy whose finest level has the proxies."""
    compares_all: ClassVar[str | None] = None
    """The reason why the loss needs all classes; ``None`` if it does not."""
    suggested_lr: ClassVar[float | None] = None
    """The proxies' learning rate in the thesis (table 4), where it states one."""

    def __init_subclass__(cls) -> None:
        """Generate the constructor from the declared hyper-parameters and options."""
        super().__init_subclass__()
        make_constructor(cls)

    def __new__(cls, *_args: Any, **kwargs: Any) -> Self:
        """Initialize the module before the generated constructor stores anything in it."""
        return initialize_module(super().__new__(cls), kwargs)

    def __post_init__(self) -> None:
        for name in ("num_classes", "embedding_dim"):
            setattr(self, name, whole_number(f"{type(self).__name__}: {name}", getattr(self, name), 1))
        check_hyperparameters(self)
        check_reduction(self.reduction)
        one_of("backend", self.backend, BACKENDS)
        self._check_sampling()
        self.shard: RowPartition | None = None  # the classes whose proxies are here, if they are sharded
        self.proxies = nn.Parameter(torch.empty(self.num_classes * self.proxies_per_class, self.embedding_dim))
        with torch.no_grad():
            self.initialize(self.proxies)
        learn_hyperparameters(self)

    @property
    def proxies_per_class(self) -> int:
        """The number of centers of each class."""
        return int(getattr(self, "centers", 1))

    def _check_sampling(self) -> None:
        name = type(self).__name__
        if self.sampled is None:
            for option_name in ("corrected", "sparse"):
                if getattr(self, option_name):
                    raise ValueError(f"{name}: {option_name} must be False unless sampled is given, but it is True")
            return
        number_of_classes(self.sampled, self.num_classes)
        if self.compares_all is not None:
            raise ValueError(f"{name}: sampled must be None, because {self.compares_all}, but it is {self.sampled!r}")

    def initialize(self, proxies: Tensor) -> None:
        """Initialize the proxies, in place."""
        nn.init.xavier_uniform_(proxies)

    def declare(self) -> dict[Between, Declaration]:
        """Return the terms of each matrix that the loss reads.

        The result depends only on the loss's attributes; it is cached until one of them changes, unless it reads
        parameters.
        """
        raise NotImplementedError(f"{type(self).__name__} must define declare()")

    def declarations(self) -> list[Declaration]:
        """Return all declarations of the loss, one for each matrix that it reads."""
        return list(self.declare().values())

    @property
    def compares_proxies(self) -> bool:
        """Whether the loss compares proxies with proxies."""
        return Between.PROXIES_PROXIES in self.declare()

    @property
    def pools_centers(self) -> bool:
        """Whether the loss pools the centers of a class."""
        return Between.SAMPLES_CLASSES in self.declare()

    def __getstate__(self) -> dict[str, Any]:
        """The state without the cached declaration."""
        return state_without_declaration(self)

    @property
    def pooling(self) -> Pooling:
        """How the similarity of a sample to a class follows from those to its centers."""
        return NearestCenter()

    def between_proxies(self, samples: Tensor, proxies: Tensor) -> tuple[Similarity, Tensor]:
        """How proxies are compared with each other, and the vectors that represent them, ``(n, any)``."""
        return as_similarity(self.similarity), proxies

    def local_proxies(self) -> Tensor:
        """Return the proxies of this rank in a term on proxies: its shard, or its rows of all proxies."""
        if self.shard is not None:
            return self.proxies
        own, centers = current_group().split(self.num_classes).local, self.proxies_per_class
        return self.proxies[own.start * centers : own.stop * centers]

    def unit_proxies(self) -> Tensor:
        """The proxies at unit length, in float32 at least, for terms on the proxies."""
        return unit(self.proxies if self.proxies.dtype == torch.float64 else self.proxies.float())

    def only_from_embeddings(self) -> str | None:
        """Return the reason: the similarities of a batch do not contain the proxies."""
        return "it compares embeddings with its proxies"

    def from_similarity(
        self, similarities: Tensor, relation: RelationLike | Tensor, *, labels: Tensor | None = None
    ) -> Tensor:
        """Raise an error: the similarities of a batch do not contain the proxies."""
        raise TypeError(
            f"{type(self).__name__} cannot be computed from similarities only: {self.only_from_embeddings()}"
        )

    def forward(
        self,
        embeddings: Tensor,
        labels: Tensor | None = None,
        references: Tensor | None = None,
        reference_labels: Tensor | None = None,
        *,
        relation: RelationLike | None = None,
    ) -> Tensor:
        """Compute the loss of a batch; labels are class indices from 0, and the references are the proxies."""
        self.check_references(references, reference_labels, relation)
        # batches of one shape on a GPU replay the same computation
        replayed = replay(self, embeddings, labels)
        if replayed is not None:
            return replayed
        half = self.half_of_products(embeddings)
        with full_precision(embeddings, marked=are_built_in(self) and not has_similarity_hook()):
            return self.value(*self.check_batch(embeddings, labels), half=half)

    def half_of_products(self, embeddings: Tensor) -> torch.dtype | None:
        """The half-precision dtype in which embeddings are multiplied with the proxies; read it outside `full_precision`."""
        return half_of_products(embeddings, self.proxies) if isinstance(embeddings, Tensor) else None

    def check_references(self, *others: Tensor | RelationLike | None) -> None:
        """Raise an error if references or a relation are given: the references are the proxies."""
        if any(each is not None for each in others):
            raise ValueError(
                f"{type(self).__name__} compares embeddings with its proxies and takes no references or relation"
            )

    def check_batch(self, embeddings: Tensor, labels: Tensor | None) -> tuple[Tensor, Tensor]:
        """Check embeddings and class indices; half precision is widened."""
        samples = self.samples(embeddings)
        if labels is None:
            raise TypeError("labels must be given as class indices from 0, but they are None")
        levels = self.label_kind == "levels"
        labels = check_labels("labels", labels, len(samples), samples.device, "embeddings", levels=levels)
        check_classes(labels if labels.ndim == 1 else labels[:, 0], self.num_classes, "proxy")
        return samples, labels

    def ranks_itself(self) -> bool:
        """Return whether a sample counts as its own positive where samples are compared with each other."""
        return False

    def value(
        self,
        samples: Tensor,
        labels: Tensor,
        queue: Queue | None = None,
        half: torch.dtype | None = None,
        declarations: Mapping[Between, Declaration] | None = None,
    ) -> Tensor:
        """Compute the loss of checked samples and of those in a memory.

        Args:
            samples: the embeddings, in float32 or float64.
            labels: class indices, or levels of a hierarchy.
            queue: samples of earlier batches.
            half: the half-precision dtype in which samples and proxies are multiplied, if any; the proxies are rounded
                to it.
            declarations: replaces the result of `declare`; used by wrappers that change it.
        """
        values = []
        declarations = cached_declaration(self, ignored=_PROXIES) if declarations is None else declarations
        for between, declaration in declarations.items():
            if between is Between.PROXIES_PROXIES:
                batch = compare_proxies(self, samples, queue)
            elif between is Between.PROXIES_SAMPLES:
                batch = compare_proxies_with_samples(self, samples, labels, queue, half)
            elif between is Between.SAMPLES_SAMPLES:
                batch = compare_samples(self, samples, labels)
            else:
                batch, log_weights = compare_samples_with_proxies(self, between, samples, labels, half)
                declaration = declaration if log_weights is None else reweigh_declaration(declaration, log_weights)
            if batch.table is not None:
                batch = batch.replace(row_gradients=self._row_gradients(declarations))
            value = evaluate_declaration(declaration, batch, self.reduction, self.backend)
            if value.ndim and batch.shards is not SINGLE_PROCESS:
                value = value[current_group().batch_rows(samples).local]
            values.append(value)
        return values[0] if len(values) == 1 else torch.stack(values).sum(dim=0)

    def _row_gradients(self, declarations: Mapping[Between, Declaration]) -> RowGradients | None:
        """What receives the proxies' gradient in chunks, if one term is all that uses them (`OptimizerInBackward`)."""
        row_gradients: RowGradients | None = getattr(self.proxies, "row_gradients", None)
        if row_gradients is None or len(declarations) > 1 or current_group() is not SINGLE_PROCESS:
            return None
        terms, regularizers, matrix_losses = sort_declaration(next(iter(declarations.values())))
        # numbers per class may be functions of the proxies, such as their norms
        per_class = any(isinstance(node, PerReference) for term in terms for node in walk(term.total))
        return None if regularizers or matrix_losses or per_class else row_gradients

    def table(self, labels: Tensor) -> ProxyTable:
        """The proxies that a batch of these labels is compared with: all of them, a shard or a sample."""
        if self.shard is not None:
            return ProxyTable.shard(self.proxies, self.shard, labels, current_group())
        if self.sampled is None or not self.training:
            return ProxyTable.whole(self.proxies, self.num_classes, labels)
        if self.sparse and dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1:
            raise ValueError(
                f"{type(self).__name__}: sparse must be False where there are several processes, because "
                "DistributedDataParallel supports sparse gradients of torch.nn.Embedding only, but it is True"
            )
        return ProxyTable.sample(
            self.proxies,
            self.num_classes,
            labels,
            number_of_classes(self.sampled, self.num_classes),
            corrected=self.corrected,
            sparse=self.sparse,
            generator=self.generator,
        )

    def samples(self, embeddings: Tensor) -> Tensor:
        """Check embeddings against the proxies' dimension and device; half precision is widened."""
        samples = embeddings_of("embeddings", embeddings)
        if samples.shape[1] != self.embedding_dim:
            raise ValueError(
                f"embeddings must have the {self.embedding_dim} dimensions of the proxies, but have {samples.shape[1]}"
            )
        same_device("embeddings", samples, self.proxies.device, "proxies")
        as_similarity(self.similarity).check("embeddings", samples)
        return samples

    def logits(self, embeddings: Tensor) -> Tensor:
        """Return the similarity of each sample to each class, without margin, scale and temperature.

        This is ``s`` in the loss's formula: the cosine, for `SoftmaxLoss` the inner product plus the bias, for the
        ProxyNCA losses the negative squared distance; several centers are pooled as in the loss.  The logits of a
        softmax over classes are ``loss.scale`` times this or this over ``loss.temperature``.

        Args:
            embeddings: ``(m, embedding_dim)``.

        Returns:
            Similarities, ``(m, num_classes)``, float32 or float64; higher is closer.
        """
        with full_precision(embeddings):
            return self.logits_of(self.samples(embeddings), slice(0, self.num_classes))

    def logits_of(self, samples: Tensor, classes: slice) -> Tensor:
        """`logits` of checked samples, for some of the classes."""
        rows = slice(classes.start * self.proxies_per_class, classes.stop * self.proxies_per_class)
        similarities = as_similarity(self.similarity)(samples, self.proxies[rows].to(samples.dtype))
        return self.pooling(similarities.reshape(len(samples), -1, self.proxies_per_class))

    def classify(self, embeddings: Tensor) -> Tensor:
        """Return the class with the largest of a sample's `logits`, the first one in a tie.

        Margin, scale and temperature are not applied; the latter two would not change the result.  Similarities are
        computed in chunks of classes.

        Args:
            embeddings: ``(m, embedding_dim)``.

        Returns:
            Class indices, ``(m,)``.
        """
        with torch.no_grad(), full_precision(embeddings):
            samples = self.samples(embeddings)
            best = samples.new_full((len(samples),), -torch.inf)
            nearest = torch.zeros(len(samples), dtype=torch.int64, device=samples.device)
            for classes in plan_chunks(self.num_classes, len(samples) * self.proxies_per_class, samples):
                value, index = self.logits_of(samples, classes).max(dim=1)
                nearest = torch.where(value > best, index + classes.start, nearest)
                best = torch.maximum(value, best)
            return nearest

    def parameter_groups(self, lr: float | None = None) -> list[dict[str, Any]]:
        """Return the parameters as an optimizer group with a separate learning rate.

        Args:
            lr: the learning rate; by default the one that the thesis states for this loss, otherwise the optimizer's.
        """
        return parameter_groups(self, self.suggested_lr if lr is None else lr)

    def extra_repr(self) -> str:
        """Return the arguments that differ from their defaults, and all hyper-parameters."""
        return describe(self)


make_constructor(ProxyLoss)
