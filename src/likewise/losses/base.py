"""The base class of pair losses: options, checks of inputs and the reduction around a declaration."""

from __future__ import annotations

import math
from collections.abc import Iterable
from numbers import Real
from typing import Any, ClassVar, Literal, Self, TypeAlias, dataclass_transform

import torch
from torch import Tensor, nn

from likewise.distributed import current_group
from likewise.engines import BACKENDS, evaluate_declaration, replay
from likewise.formula import (
    Declaration,
    PairBatch,
    Reduction,
    RelationLike,
    Similarity,
    SimilarityLike,
    are_built_in,
    as_similarity,
    batch_from_embeddings,
    batch_from_similarities,
    check_hyperparameters,
    check_reduction,
    full_precision,
    has_similarity_hook,
    hyper,
    label_views,
    one_of,
    option,
)
from likewise.losses.constructors import describe, initialize_module, learn_hyperparameters, make_constructor
from likewise.losses.declaration_cache import cached_declaration, state_without_declaration
from likewise.miners import Miner

LabelKind: TypeAlias = Literal["classes", "levels", "scores", "none"]
"""What the labels of a loss are.

``"classes"``: one class per sample, ``(n,)``.  ``"levels"``: classes, or the levels of a hierarchy, ``(n, L)``; such a loss
also takes relations with grades.  ``"scores"``: one number per pair of rows.  ``"none"``: labels are not read.
"""


@dataclass_transform(eq_default=False, field_specifiers=(hyper, option))
class PairLoss(nn.Module):
    """A loss on the similarities of a batch, given by its declaration.

    A subclass declares its hyper-parameters as class attributes (`likewise.formula.hyperparameters`) and defines one
    method, `declare`, which returns the formula.  The constructor is generated from the attributes; a plain class
    attribute, such as ``reduction = "nonzero"``, changes the default of an inherited argument.

    Args:
        similarity: ``"cosine"``, ``"dot"``, ``"euclidean"``, ``"squared_euclidean"``, ``"snr"``,
            ``"poincare"`` or a `likewise.formula.Similarity`; higher is closer, and all but ``"dot"`` and
            ``"poincare"`` work on unit vectors.
        miner: a miner of `likewise.miners` that chooses pairs or triplets.
        reduction: how the values of the units (pairs, triplets or anchors) are combined: ``"mean"``, ``"nonzero"``, the
            mean over nonzero values, or ``"sum"`` return a scalar; ``"none"`` and ``"mean_per_anchor"`` return one
            value per anchor, the sum or the mean over its units; or a `likewise.formula.ClassWeighted` or
            `likewise.formula.Thresholded`.
        backend: the engine; ``"auto"`` chooses by size and device.

    Examples:
        >>> import torch
        >>> from likewise.formula import NEGATIVES, hyper, per_pair, relu, s
        >>> class PushApart(PairLoss):
        ...     margin: float = hyper(default=0.5, help="where negatives stop to matter", at_least=-1.0)
        ...
        ...     def declare(self):
        ...         return per_pair(NEGATIVES, relu(s - self.margin))
        >>> loss = PushApart(margin=0.2)
        >>> loss(torch.tensor([[1.0, 0.0], [1.0, 1.0]]), torch.tensor([0, 1]))
        tensor(0.5071)
    """

    similarity: SimilarityLike = option(
        default="cosine", kw_only=True, help="how two embeddings are compared; higher is closer"
    )
    miner: Miner | None = option(default=None, kw_only=True, help="chooses pairs or triplets")
    reduction: Reduction = option(default="mean", kw_only=True, help="how units are averaged")
    backend: str = option(default="auto", kw_only=True, help="the engine")

    suggested_lr: ClassVar[float | None] = None
    """The learning rate of the loss's parameters in the thesis (table 4), where it states one."""

    takes_references: ClassVar[bool] = True
    """Whether the loss takes references."""

    takes_labels: ClassVar[bool] = True
    """Whether labels change the loss; if not, they can be omitted."""

    is_stateful: ClassVar[bool] = False
    """Whether a call in training changes buffers or draws numbers; such a call is not replayed on a GPU."""

    similarities: ClassVar[tuple[type[Similarity], ...] | None] = None
    """The similarities that the loss is defined on; ``None``: all."""

    label_kind: ClassVar[LabelKind] = "classes"
    """The kind of labels; losses on classes reject relations with grades."""

    def __init_subclass__(cls) -> None:
        """Generate the constructor from the declared hyper-parameters and options."""
        super().__init_subclass__()
        make_constructor(cls)

    def __new__(cls, *_args: Any, **kwargs: Any) -> Self:
        """Initialize the module before the generated constructor stores anything in it."""
        return initialize_module(super().__new__(cls), kwargs)

    def __post_init__(self) -> None:
        check_hyperparameters(self)
        similarity = as_similarity(self.similarity)
        if self.similarities is not None and not isinstance(similarity, self.similarities):
            allowed = " or ".join(kind.__name__ for kind in self.similarities)
            raise ValueError(f"{type(self).__name__}: similarity must be {allowed}, but it is {self.similarity!r}")
        check_reduction(self.reduction)
        one_of("backend", self.backend, BACKENDS)
        if self.miner is not None and not isinstance(self.miner, Miner):
            what = f"the class {self.miner.__name__}, not an object" if isinstance(self.miner, type) else None
            raise TypeError(
                f"miner must be a miner of likewise.miners or None, but it is {what or 'a ' + type(self.miner).__name__}"
            )
        learn_hyperparameters(self)

    def declare(self) -> Declaration:
        """Return the loss as terms: formulas of `likewise.formula.s`, or a function of the matrix.

        The result depends only on the loss's attributes; it is cached until one of them changes.
        """
        raise NotImplementedError(f"{type(self).__name__} must define declare()")

    def declarations(self) -> list[Declaration]:
        """Return all declarations of the loss, one for each matrix that it reads."""
        return [self.declare()]

    def only_from_embeddings(self) -> str | None:
        """Return why the loss cannot be computed from similarities only, or ``None`` if it can."""
        return None

    def ranks_itself(self) -> bool:
        """Return whether an anchor that is among the references counts as one of its own positives."""
        return False

    def forward(
        self,
        embeddings: Tensor,
        labels: Tensor | None = None,
        references: Tensor | None = None,
        reference_labels: Tensor | None = None,
        *,
        relation: RelationLike | None = None,
    ) -> Tensor:
        """Compute the loss of a batch.

        Args:
            embeddings: the anchors, ``(m, d)``, any float dtype; they need not be normalized.
            labels: their labels, ``(m,)``, any integer dtype; ``(m, L)`` for a loss on hierarchies.
            references: what the anchors are compared with, ``(n, d)``; by default the embeddings themselves, without
                the pairs of a sample with itself.
            reference_labels: the references' labels, ``(n,)``.
            relation: the positive and negative pairs, instead of those defined by labels: a relation of
                `likewise.formula`, or the index tensors of a miner (3 for triplets, 4 for pairs), which index
                embeddings and references. Labels passed together with a relation are used only for values per class.
                ``"views"``: embeddings and references are two views of the same samples, and all rows are compared with
                each other, as in SimCLR; ``"paired"``: row k of references is the positive of row k of embeddings, and
                all other references are its negatives.

        Returns:
            A scalar, or one value per anchor under ``"none"`` and ``"mean_per_anchor"``; float32 for half-precision input.
        """
        is_paired = isinstance(relation, str) and relation == "paired"
        if isinstance(relation, str):
            views = label_views(relation, embeddings, labels, references, reference_labels, current_group())
            embeddings, labels, references, reference_labels = views
            relation = None
        self.check_references(references)
        # batches of one shape on a GPU replay the same computation
        replayed = replay(self, embeddings, labels, references, reference_labels) if relation is None else None
        if replayed is not None:
            return replayed
        with full_precision(embeddings, marked=are_built_in(self, self.similarity) and not has_similarity_hook()):
            batch = self.make_batch(embeddings, labels, references, reference_labels, relation)
            return self.value(batch.index_pairs() if is_paired else batch)

    def make_batch(
        self,
        embeddings: Tensor,
        labels: Tensor | None,
        references: Tensor | None,
        reference_labels: Tensor | None,
        relation: RelationLike | None,
    ) -> PairBatch:
        """Check the arguments of a call and return them as a batch with the similarity of the loss."""
        similarity = as_similarity(self.similarity)
        if labels is None and relation is None and not self.takes_labels and isinstance(embeddings, Tensor):
            labels = torch.arange(len(embeddings) if embeddings.ndim else 0, device=embeddings.device)
        return batch_from_embeddings(
            embeddings,
            labels,
            references,
            reference_labels,
            relation,
            similarity,
            current_group(),
            levels=self.label_kind == "levels",
        )

    def from_similarity(
        self, similarities: Tensor, relation: RelationLike | Tensor, *, labels: Tensor | None = None
    ) -> Tensor:
        """Compute the loss from a similarity matrix.

        Args:
            similarities: the matrix ``(m, n)``, in the units of the loss's similarity.
            relation: the positive and negative pairs, or a miner's index tensors; or labels, if the matrix compares one
                set with itself.
            labels: the labels of the rows; needed with a relation if the loss has a value per class.
        """
        reason = self.only_from_embeddings()
        if reason is not None:
            raise TypeError(f"{type(self).__name__} cannot be computed from similarities only: {reason}")
        with full_precision(similarities):
            similarity = as_similarity(self.similarity)
            batch = batch_from_similarities(
                similarities,
                relation,
                similarity,
                current_group(),
                labels=labels,
                levels=self.label_kind == "levels",
            )
            return self.value(batch)

    def check_references(self, references: Tensor | None) -> None:
        """Raise an error if references are given to a loss on the pairs of one set."""
        if references is not None and not self.takes_references:
            raise ValueError(
                f"{type(self).__name__} is defined on the pairs of one set and takes no references; "
                "concatenate both sets into embeddings instead"
            )

    def value(self, batch: PairBatch, *, miner: Miner | None = None, declaration: Declaration | None = None) -> Tensor:
        """Compute the loss of a checked batch.

        Args:
            batch: the batch.
            miner: replaces the miner of the loss.
            declaration: replaces the result of `declare`; used by wrappers that change it.
        """
        miner = self.miner if miner is None else miner
        if batch.relation.is_graded and self.label_kind != "levels":
            raise TypeError(
                f"relation must have positive and negative pairs only for {type(self).__name__}, but it is "
                f"{type(batch.relation).__name__}, which has grades; likewise.formula.binarize makes pairs of it"
            )
        if self.ranks_itself():
            batch = batch.under(batch.relation.including_itself())
        declaration = cached_declaration(self) if declaration is None else declaration
        return evaluate_declaration(declaration, batch, self.reduction, self.backend, miner)  # type: ignore[arg-type]

    def __getstate__(self) -> dict[str, Any]:
        """The state without the cached declaration."""
        return state_without_declaration(self)

    def parameter_groups(self, lr: float | None = None) -> list[dict[str, Any]]:
        """Return the parameters as an optimizer group with a separate learning rate; empty if there are none.

        Args:
            lr: the learning rate; by default the one that the thesis states for this loss, otherwise the optimizer's.
        """
        return parameter_groups(self, self.suggested_lr if lr is None else lr)

    def extra_repr(self) -> str:
        """Return the arguments that differ from their defaults, and all hyper-parameters."""
        return describe(self)


def parameter_groups(module: nn.Module, lr: float | None) -> list[dict[str, Any]]:
    """Return a module's parameters as one optimizer group; an empty list if it has none."""
    parameters = list(module.parameters())
    return [{"params": parameters, **({} if lr is None else {"lr": lr})}] if parameters else []


def finite_number(name: str, value: object, least: float | None = 0.0) -> float:
    """Check a number that is an argument of a wrapper.

    Examples:
        >>> finite_number("gamma", 1)
        1.0
    """
    number = isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)
    if not number or (least is not None and float(value) < least):  # type: ignore[arg-type]
        raise ValueError(f"{name} must be a number{'' if least is None else f' ≥ {least:g}'}, but it is {value!r}")
    return float(value)  # type: ignore[arg-type]


def check_loss(loss: object) -> nn.Module:
    """Check the loss that a wrapper wraps."""
    if not isinstance(loss, nn.Module):
        raise TypeError(f"loss must be a loss, a torch module, but it is a {type(loss).__name__}")
    return loss


def drop_missing(**options: object) -> dict[str, Any]:
    """Return the options that are not ``None``."""
    return {name: value for name, value in options.items() if value is not None}


def collect_groups(losses: Iterable[nn.Module], lr: float | None) -> list[dict[str, Any]]:
    """Return the parameter groups of several losses, each parameter once; a module without groups becomes one group."""
    groups: list[dict[str, Any]] = []
    seen: set[int] = set()
    for loss in losses:
        make_groups = getattr(loss, "parameter_groups", None)
        for group in make_groups(lr) if make_groups is not None else parameter_groups(loss, lr):
            fresh = [p for p in group["params"] if id(p) not in seen]
            seen.update(map(id, fresh))
            if fresh:
                groups.append({**group, "params": fresh})
    return groups


make_constructor(PairLoss)
