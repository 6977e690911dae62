"""Validation: evaluate the model on held-out classes, save the best one, and decide on early stopping."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from accelerate import Accelerator
from accelerate.utils import broadcast_object_list
from torch import nn

from likewise.train.checkpoint import save_model
from likewise.train.description import Batches, Data
from likewise.train.embedding import RECALLS, Embedded, embed, evaluate, evaluate_both_ways
from likewise.train.run import Run
from likewise.train.settings import TrainConfig
from likewise.train.snapshot import Progress


def evaluate_batches(embedded: Embedded, batches: Batches, *, ks: Sequence[int] = RECALLS) -> dict[str, float]:
    """Compute the retrieval metrics that suit a data set.

    A data set with two ``sides``, such as a `likewise.data.PairTable`, is searched in both directions.  Other data sets are
    searched all against all, without images of the same class by the same camera where they have ``cameras``.

    Args:
        embedded: embeddings and labels of all samples, in the order of the batches.
        batches: the loader of the samples; its attribute ``images`` is the data set.
        ks: values of k for recall@k.

    Examples:
        >>> import torch
        >>> vectors = torch.tensor([[1.0, 0.0], [1.0, 0.1], [0.0, 1.0], [0.1, 1.0]])
        >>> evaluate_batches(Embedded(vectors, torch.tensor([0, 0, 1, 1])), [])["R@1"]
        1.0
    """
    images = getattr(batches, "images", None)
    sides = getattr(images, "sides", None)
    if images is not None and sides is not None:
        return evaluate_both_ways(embedded, images.is_query, sides, ks=ks)
    return evaluate(embedded, ks=ks, cameras=getattr(images, "cameras", None))


class Validation:
    """Evaluates the model of a training run, saves the best one, and decides when the run stops early.

    Args:
        model: the evaluated network: the trained one, or its moving average.
        data: the validation batches, and the class names for the card of the model.
        settings: interval, metric, patience and precision.
        run: the folder for ``best.safetensors``.
        accelerator: the processes; the main process evaluates for all.
        should_continue: the pruning callback, or ``None``.
        keep_start: whether the model before training can be the best one.
    """

    def __init__(
        self,
        model: nn.Module,
        data: Data,
        settings: TrainConfig,
        run: Run,
        accelerator: Accelerator,
        should_continue: Callable[[Mapping[str, Any]], bool] | None,
        keep_start: bool,
    ) -> None:
        self.model, self.data, self.settings = model, data, settings
        self.run, self.accelerator = run, accelerator
        self.should_continue, self.keep_start = should_continue, keep_start

    def is_due(self, epoch: int) -> bool:
        """Whether the model is evaluated after this number of epochs; 0 is the state before training."""
        every = self.settings.validate_every
        return self.data.val is not None and every > 0 and epoch % every == 0

    def evaluate(self, progress: Progress) -> dict[str, Any]:
        """Evaluate the model, save it if it is the best one so far, and update the progress.

        Returns:
            The metrics, and under ``"best"`` whether they are the best so far; empty on all but the main process.
        """
        scores: dict[str, Any] = {}
        is_best = False
        if self.accelerator.is_main_process:
            assert self.data.val is not None
            if hasattr(self.data.val, "set_epoch"):
                self.data.val.set_epoch(0)  # the same images each time
            embedded = embed(self.model, self.data.val, precision=self.settings.precision)
            metrics = evaluate_batches(embedded, self.data.val, ks=self.settings.ks or RECALLS)
            score = metrics[self.settings.metric]
            is_best = (progress.best is None or score > progress.best) and (self.keep_start or progress.step > 0)
            if is_best:
                progress.best = score
                save_model(self.model, self.run.folder / "best.safetensors", self.data.classes, metrics)
            scores = {**metrics, "best": is_best}
        if self.accelerator.num_processes > 1:
            is_best, progress.best = broadcast_object_list([is_best, progress.best])
        progress.without_better = 0 if is_best else progress.without_better + 1
        return scores

    def is_out_of_patience(self, progress: Progress) -> bool:
        """Whether the number of validations without improvement has reached the patience."""
        return self.settings.patience is not None and progress.without_better >= self.settings.patience

    def wants_pruning(self) -> bool:
        """Ask the pruning callback, on the main process, whether to stop; ``False`` on the others."""
        if self.should_continue is None or not self.accelerator.is_main_process:
            return False
        return not self.should_continue(self.run.metrics("val")[-1])
