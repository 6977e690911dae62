"""The shell around the declaration of a loss with proxies: learned vectors that stand for the classes."""

from __future__ import annotations

from enum import Enum
from typing import Any, ClassVar, NamedTuple, Self, dataclass_transform

import torch
import torch.distributed as dist
from torch import Tensor, nn

from likewise import engines
from likewise.distributed import SINGLE_PROCESS, ProcessGroup, RowPartition, current_group
from likewise.engines import Engine, run_on
from likewise.formula import (
    NEGATIVES,
    POSITIVES,
    REDUCTIONS,
    Declaration,
    Formula,
    Labels,
    Operand,
    PairBatch,
    Reduction,
    Relation,
    Similarity,
    Term,
    as_similarity,
    check_classes,
    check_hyperparameters,
    embeddings_of,
    full_precision,
    has_similarity_hook,
    hyper,
    labels_of,
    logsumexp,
    made_for,
    one_of,
    option,
    per_anchor,
    reduce,
    same_device,
    same_half,
    softplus,
    sort_declaration,
    unit,
    whole_number,
)
from likewise.losses.base import (
    declared,
    describe,
    make_constructor,
    parameter_groups,
    value_of,
    whole_module,
    without_declaration,
)
from likewise.losses.blocks import ProxiesAsAnchors, ProxiesAsReferences, Table, blocks
from likewise.losses.centers import nearest
from likewise.losses.graphed import graphed
from likewise.losses.sampled import draw, number_of_classes, reweighed_parts


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


SAMPLES_FIRST = (Between.SAMPLES_PROXIES, Between.SAMPLES_CLASSES)

_PROXIES = frozenset({"proxies"})


class Queue(NamedTuple):
    """Samples of earlier batches, the same on every process, and which of them exist.

    Examples:
        >>> import torch
        >>> queue = Queue(torch.zeros(1, 2), torch.tensor([5]), torch.tensor([False]))
        >>> queue.after(torch.ones(1, 2), torch.tensor([7]))[1:]
        (tensor([7, 5]), tensor([ True, False]))
    """

    samples: Tensor
    labels: Tensor
    valid: Tensor

    def after(self, samples: Tensor, labels: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """A batch and then the queue: samples, labels, and which of them exist."""
        there = torch.ones_like(labels, dtype=torch.bool)
        return (
            torch.cat([samples, self.samples]),
            torch.cat([labels, self.labels]),
            torch.cat([there, self.valid]),
        )


def cross_entropy(positive: Operand, negative: Operand) -> Term:
    """One unit per sample: ``−log(e^positive / (e^positive + Σ e^negative))``, which is ``softplus(LSE_N − LSE_P)``.

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

    A subclass is its hyper-parameters and one method, `declare`, which says for each matrix that the loss looks at
    (`Between`) what it does there.

    Args:
        num_classes: how many classes there are; labels must be 0 … num_classes − 1.
        embedding_dim: the embeddings' dimension.
        reduction: ``"mean"``, ``"nonzero"``, ``"sum"`` or ``"none"``, over the units that the loss is defined on.
        backend: the engine; ``"auto"`` chooses by size and device.
        sampled: in training, compare a batch with its own classes and others drawn anew for every call, so many
            together: a share up to 1, or a number above 1.  The loss is too small then, never too large
            (`likewise.losses.sampled`).  A batch must not have more classes; on a GPU, where nobody looks, samples of
            those that find no room are left out.
        corrected: let each class drawn stand for those it was drawn from, so that a softmax's expected denominator is
            the full one.
        sparse: make the proxies' gradient a sparse tensor of the rows that were compared, for optimizers that take one
            (``SGD``, ``Adagrad``, ``SparseAdam``); needs ``sampled``.
        generator: draws the classes; by default the device's own, which a checkpoint of a training holds.

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
    reduction: Reduction = option(default="mean", kw_only=True, help="mean, nonzero, sum or none")
    backend: str = option(default="auto", kw_only=True, help="the engine")
    sampled: float | None = option(default=None, kw_only=True, help="classes to compare with: a share, or a number")
    corrected: bool = option(default=False, kw_only=True, help="let a class drawn stand for those not drawn")
    sparse: bool = option(default=False, kw_only=True, help="a sparse gradient of the proxies that were compared")
    generator: torch.Generator | None = option(default=None, kw_only=True, help="draws the classes")

    similarity: ClassVar[str] = "cosine"
    """How samples and proxies are compared."""
    takes_references: ClassVar[bool] = False
    compares_all: ClassVar[str | None] = None
    """Why the loss is not defined on some of the classes, where it is not."""
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
        one_of("backend", self.backend, engines.BACKENDS)
        self._check_sampling()
        self.shard: RowPartition | None = None  # which classes have their proxies here, if others have theirs elsewhere
        self.proxies = nn.Parameter(torch.empty(self.num_classes * self.proxies_per_class, self.embedding_dim))
        with torch.no_grad():
            self.initialize(self.proxies)

    @property
    def proxies_per_class(self) -> int:
        """How many centers a class has."""
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
        """Fill the proxies for the first time, in place."""
        nn.init.xavier_uniform_(proxies)

    def declare(self) -> dict[Between, Declaration]:
        """What the loss does on each matrix that it looks at.

        It is a function of the loss's own attributes, and is asked again when one of them has changed; at every call
        where it looks at parameters.
        """
        raise NotImplementedError(f"{type(self).__name__} must define declare()")

    def declarations(self) -> list[Declaration]:
        """Everything that the loss declares, one entry for each matrix that it looks at."""
        return list(self.declare().values())

    def __getstate__(self) -> dict[str, Any]:
        """Everything but what can be declared anew."""
        return without_declaration(self)

    def pool(self, similarities: Tensor) -> Tensor:
        """The similarity of a sample to a class from those to its centers, ``(m, classes, centers) -> (m, classes)``."""
        return nearest(similarities)

    def between_proxies(self, samples: Tensor, proxies: Tensor) -> tuple[Similarity, Tensor]:
        """How proxies are compared with each other, and what stands for them there, ``(n, any)``."""
        return as_similarity(self.similarity), proxies

    def accounted(self) -> Tensor:
        """The proxies for which this process accounts in a term on proxies alone: its share, or all that it has."""
        if self.shard is not None:
            return self.proxies
        own, centers = current_group().split(self.num_classes).own, self.proxies_per_class
        return self.proxies[own.start * centers : own.stop * centers]

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
        # small batches on a GPU: the same computation, replayed
        replayed = graphed(self, embeddings, labels)
        if replayed is not None:
            return replayed
        with full_precision(embeddings):
            samples = self.samples(embeddings)
            if labels is None:
                raise TypeError("labels must be given: class indices from 0")
            labels = labels_of("labels", labels, len(samples), samples.device, "embeddings")
            check_classes(labels, self.num_classes, "proxy")
            return self.value(samples, labels, half=same_half(embeddings, self.proxies))

    def value(
        self, samples: Tensor, labels: Tensor, queue: Queue | None = None, half: torch.dtype | None = None
    ) -> Tensor:
        """The loss of samples that were checked, and of those that a memory remembers.

        Args:
            samples: in float32 at least.
            labels: class indices.
            queue: samples of earlier batches.
            half: the half precision that samples and proxies were in, if they were in the same.
        """
        terms = []
        for between, declaration in declared(self, apart_from=_PROXIES).items():
            everyone, all_labels, table, valid = self._sides(between, samples, labels, queue)
            term = self._term(between, declaration, everyone, all_labels, table, valid, half)
            if term.ndim and table.shards is not None and between in SAMPLES_FIRST:
                term = term[current_group().batch_rows(samples).own]
            terms.append(term)
        return terms[0] if len(terms) == 1 else torch.stack(terms).sum(dim=0)

    def _sides(
        self, between: Between, samples: Tensor, labels: Tensor, queue: Queue | None
    ) -> tuple[Tensor, Tensor, Table, Tensor | None]:
        """The samples and the proxies that this process compares, and which samples exist.

        Where the batch is spread over processes: its own samples with all proxies; or everybody's samples with its share
        of the proxies.
        """
        group, sharded = current_group(), self.shard is not None
        if between is Between.PROXIES_PROXIES:
            if queue is not None:
                own = group.split(len(queue.labels)).own
                samples = torch.cat([samples, queue.samples[own] * queue.valid[own, None]])
            return samples, labels, self.table(labels), None
        if between in SAMPLES_FIRST and not sharded:
            return samples, labels, self.table(labels), None
        rows = group.batch_rows(samples)
        samples, labels, valid = group.gather(samples, rows), group.gather(labels, rows), None
        if queue is not None:
            samples, labels, valid = queue.after(samples, labels)
        table = self.table(labels)
        return samples, labels, table if sharded else table.cut(group.split(len(table.classes)).own), valid

    def table(self, labels: Tensor) -> Table:
        """The proxies that a batch of these labels is compared with: all of them, or a sample."""
        if self.shard is not None:
            classes = torch.arange(self.shard.own.start, self.shard.own.stop, device=labels.device)
            positions = labels - self.shard.offset
            here = (positions >= 0) & (positions < len(classes))
            return Table(self.proxies, classes, torch.where(here, positions, -1), shards=current_group())
        if self.sampled is None or not self.training:
            return Table(self.proxies, torch.arange(self.num_classes, device=labels.device), labels, complete=True)
        if self.sparse and dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1:
            raise ValueError(
                f"{type(self).__name__}: sparse must be False where there are several processes, because "
                "DistributedDataParallel adds up sparse gradients of torch.nn.Embedding alone, but it is True"
            )
        number = number_of_classes(self.sampled, self.num_classes)
        chosen, positions, log_weights = draw(labels, self.num_classes, number, self.generator)
        center = torch.arange(self.proxies_per_class, device=labels.device)
        rows = (chosen[:, None] * self.proxies_per_class + center).flatten()  # (number · centers,)
        proxies = nn.functional.embedding(rows, self.proxies, sparse=self.sparse)
        room = number >= min(len(labels), self.num_classes)  # for whatever classes they are of
        return Table(proxies, chosen, positions, room, log_weights if self.corrected else None)

    def _term(
        self,
        between: Between,
        declaration: Declaration,
        samples: Tensor,
        labels: Tensor,
        table: Table,
        valid: Tensor | None,
        half: torch.dtype | None,
    ) -> Tensor:
        sketch = self._sketch(between, samples, labels, table, valid)
        sketch.between = between.value
        if between is not Between.PROXIES_PROXIES:
            sketch.half = half
        # a pooled similarity is none that a kernel knows
        formulas = between is not Between.SAMPLES_CLASSES and not sort_declaration(declaration)[2]
        chosen = engines.choose(sketch, self.backend, formulas=formulas)
        declaration = made_for(declaration, sketch, chosen)
        if table.log_weights is not None:
            centers = 1 if between is Between.SAMPLES_CLASSES else table.centers
            weights = table.log_weights.repeat_interleave(centers, output_size=centers * len(table.classes))
            declaration = reweighed_parts(declaration, weights)
        parts, regularizers, whole = sort_declaration(declaration)
        engine = None if whole else self._engine(between, chosen, samples, labels, table, valid)
        if engine is None:
            return value_of(declaration, self._problem(between, sketch, samples, table), self.reduction, self.backend)
        values = run_on(parts, sketch, engine, self.reduction)
        numbers = [penalty.value.to(samples.dtype) for penalty in regularizers]
        return reduce(values, numbers, self.reduction, sketch.group)

    def _engine(
        self, between: Between, chosen: str, samples: Tensor, labels: Tensor, table: Table, valid: Tensor | None
    ) -> Engine | None:
        """An engine that knows where a sample's own proxies are; ``None`` where one for any batch does as well."""
        similarity = as_similarity(self.similarity)
        if between is Between.PROXIES_SAMPLES and chosen == "chunked":
            return ProxiesAsAnchors(similarity, samples, labels, table, valid)
        # a GPU makes the whole matrix faster, and who looks on wants to see it
        general = chosen == "dense" and (samples.is_cuda or has_similarity_hook())
        if between not in SAMPLES_FIRST or chosen == "triton" or general:
            return None
        pool = self.pool if between is Between.SAMPLES_CLASSES else None
        return ProxiesAsReferences(similarity, samples, table, pool, whole=chosen == "dense")

    def samples(self, embeddings: Tensor) -> Tensor:
        """Check embeddings against the proxies' dimension and device; half precision is widened."""
        samples = embeddings_of("embeddings", embeddings)
        if samples.shape[1] != self.embedding_dim:
            raise ValueError(
                f"embeddings must have the {self.embedding_dim} dimensions of the proxies, but have {samples.shape[1]}"
            )
        same_device("embeddings", samples, self.proxies.device, "proxies")
        return samples

    def _sketch(
        self, between: Between, samples: Tensor, labels: Tensor, table: Table, valid: Tensor | None
    ) -> PairBatch:
        """Who is compared with whom; proxies in their own dtype, and not yet pooled."""
        similarity = as_similarity(self.similarity)
        group: ProcessGroup = current_group() if table.shards is None else SINGLE_PROCESS
        if between in SAMPLES_FIRST:
            owners = table.owners() if between is Between.SAMPLES_PROXIES else table.classes
            relation = Labels(labels, owners, ordered=self.sampled is None)
            return PairBatch(
                relation, similarity, anchors=samples, references=table.rows, group=group, shards=table.shards
            )
        if self.sampled is not None:
            raise ValueError(
                f"{type(self).__name__}: sampled must be None where proxies are anchors, but it is {self.sampled!r}"
            )
        if between is Between.PROXIES_SAMPLES:
            relation = Labels(table.owners(), labels, valid=valid)
            return PairBatch(relation, similarity, anchors=table.rows, references=samples, group=current_group())
        return self._among_proxies(samples, table)

    def _among_proxies(self, samples: Tensor, table: Table) -> PairBatch:
        """Each proxy against all others; a process takes its share of the proxies for anchors."""
        group, centers = current_group(), self.proxies_per_class
        share = group.split(self.num_classes) if self.shard is None else self.shard
        share = RowPartition(tuple(size * centers for size in share.sizes), share.rank)
        rows = table.rows.to(samples.dtype)
        similarity, proxies = self.between_proxies(samples, rows if self.shard is None else group.gather(rows, share))
        everyone = torch.arange(len(proxies), device=proxies.device)
        if group is SINGLE_PROCESS:
            return PairBatch(Labels(everyone), similarity, anchors=proxies)
        own = everyone[share.own]
        relation = Labels(own, everyone, own=own)
        anchors = proxies[share.own]
        return PairBatch(relation, similarity, anchors=anchors, references=proxies, group=group, local_rows=share)

    def _problem(self, between: Between, sketch: PairBatch, samples: Tensor, table: Table) -> PairBatch:
        """The same with the table widened as a whole, for engines that know nothing of proxies."""
        if between is Between.PROXIES_PROXIES:
            return sketch
        batch, proxies = sketch.under(sketch.relation), table.rows.to(samples.dtype)
        if between is Between.SAMPLES_PROXIES:
            batch.references = proxies
        elif between is Between.PROXIES_SAMPLES:
            batch.anchors = proxies
        else:
            batch.references, batch.between = proxies, Between.SAMPLES_PROXIES.value
            assert sketch.labels is not None
            batch.relation = Labels(sketch.labels, table.owners())
            pooled = self.pool(self._by_class(batch.similarities()))
            group, shards = sketch.group, sketch.shards
            batch = PairBatch(sketch.relation, similarities=pooled, group=group, shards=shards)
        return batch

    def _by_class(self, of_proxies: Tensor) -> Tensor:
        """Columns of proxies as classes and centers: ``(m, classes · centers) -> (m, classes, centers)``."""
        return of_proxies.reshape(len(of_proxies), -1, self.proxies_per_class)

    def logits(self, embeddings: Tensor) -> Tensor:
        """The similarity of each sample to each class, ``(m, num_classes)``, without margins."""
        with full_precision(embeddings):
            return self.logits_of(self.samples(embeddings), slice(0, self.num_classes))

    def logits_of(self, samples: Tensor, classes: slice) -> Tensor:
        """`logits` of samples that were checked, for some of the classes."""
        rows = slice(classes.start * self.proxies_per_class, classes.stop * self.proxies_per_class)
        similarities = as_similarity(self.similarity)(samples, self.proxies[rows].to(samples.dtype))
        return self.pool(self._by_class(similarities))

    def classify(self, embeddings: Tensor) -> Tensor:
        """The most similar class of each sample; logits are made for some classes at a time.

        Args:
            embeddings: ``(m, embedding_dim)``.

        Returns:
            Class indices, ``(m,)``.
        """
        with torch.no_grad(), full_precision(embeddings):
            samples = self.samples(embeddings)
            best = samples.new_full((len(samples),), -torch.inf)
            found = torch.zeros(len(samples), dtype=torch.int64, device=samples.device)
            for classes in blocks(self.num_classes, len(samples) * self.proxies_per_class, samples):
                value, index = self.logits_of(samples, classes).max(dim=1)
                found = torch.where(value > best, index + classes.start, found)
                best = torch.maximum(value, best)
            return found

    def parameter_groups(self, lr: float | None = None) -> list[dict[str, Any]]:
        """The proxies as a group for an optimizer, with a learning rate of their own.

        Args:
            lr: the learning rate; by default the thesis' for this loss, where it gives one, else the optimizer's.
        """
        return parameter_groups(self, self.suggested_lr if lr is None else lr)

    def extra_repr(self) -> str:
        """The constructor's arguments that differ from their defaults, and every hyper-parameter."""
        return describe(self)


make_constructor(ProxyLoss)
