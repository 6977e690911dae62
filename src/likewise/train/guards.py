"""Errors that stop a training run on all processes: a loss that is not finite, or collapsed embeddings."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import torch
from accelerate import Accelerator
from safetensors.torch import save_file
from torch import Tensor, nn

from likewise.files import atomic_write
from likewise.train.processes import gather_numbers


class NotFinite(RuntimeError):  # noqa: N818
    """Raised if the loss is not finite; the message names the file with the batch.

    Args:
        message: the message.
        processes: the ranks whose loss was not finite; all ranks raise the error.

    Examples:
        >>> raise NotFinite("the loss was nan at step 3")
        Traceback (most recent call last):
        likewise.train.guards.NotFinite: the loss was nan at step 3
    """

    def __init__(self, message: str, processes: Sequence[int] = (0,)) -> None:
        super().__init__(message)
        self.processes = tuple(processes)


class Collapsed(RuntimeError):  # noqa: N818
    """Raised if all embeddings have become alike.

    Examples:
        >>> issubclass(Collapsed, RuntimeError)
        True
    """


def require_finite(value: float, words: str, accelerator: Accelerator) -> None:
    """Raise `NotFinite` on every process if the value of any of them is not finite.

    Args:
        value: the value of this process.
        words: the message, with ``{value}`` for the value.
        accelerator: the processes.

    Examples:
        >>> require_finite(float("inf"), "the loss was {value}", Accelerator(cpu=True))
        Traceback (most recent call last):
        likewise.train.guards.NotFinite: the loss was inf
    """
    bad = {rank: x for rank, (x,) in enumerate(gather_numbers([value], accelerator)) if not math.isfinite(x)}
    messages: dict[str, list[int]] = {}
    for rank, each in bad.items():
        messages.setdefault(words.format(value=each), []).append(rank)
    if bad:
        raise NotFinite(
            "; ".join(text + name_processes(ranks, accelerator) for text, ranks in messages.items()), list(bad)
        )


def name_processes(ranks: Sequence[int], accelerator: Accelerator) -> str:
    """Format the ranks of processes for a message; an empty string if there is only one process.

    Examples:
        >>> name_processes([0], Accelerator(cpu=True))
        ''
    """
    if accelerator.num_processes == 1:
        return ""
    listed = ", ".join(map(str, ranks))
    return f" on process {listed} of {accelerator.num_processes}"


def save_failed_batches(
    error: NotFinite, step: str, batches: Sequence[Sequence[Tensor]], folder: Path, accelerator: Accelerator
) -> str:
    """Save the batches of each process that failed, and return the message of the error.

    Args:
        error: the error and its processes.
        step: the training step, as text.
        batches: batches of this process: images, labels and, optionally, indices.
        folder: where to save them.
        accelerator: the processes.

    Examples:
        >>> import tempfile
        >>> folder = Path(tempfile.mkdtemp())
        >>> batch = torch.zeros(2, 3), torch.tensor([0, 1])
        >>> save_failed_batches(NotFinite("the loss was nan"), "step 3", [batch], folder, Accelerator(cpu=True))
        'the loss was nan at step 3: the batch is in ...not-finite.safetensors; a lower learning rate or clip=1.0 may ...
        >>> [file.name for file in folder.iterdir()]
        ['not-finite.safetensors']
    """
    several = accelerator.num_processes > 1
    files = {rank: folder / f"not-finite{f'-{rank}' if several else ''}.safetensors" for rank in error.processes}
    if accelerator.process_index in files:
        names = ("images", "labels", "indices")
        tensors = {
            name: torch.cat([batch[place].cpu() for batch in batches]).contiguous()
            for place, name in enumerate(names)
            if all(len(batch) > place and isinstance(batch[place], Tensor) for batch in batches)
        }
        with atomic_write(files[accelerator.process_index]) as part:
            save_file(tensors, part)
    where = " and ".join(map(str, files.values()))
    return (
        f"{error} at {step}: the batch is in {where}; "
        "a lower learning rate or clip=1.0 may help, and last.safetensors is from before"
    )


def measure_spread(embeddings: Tensor, accelerator: Accelerator) -> float:
    """Measure the spread of the embeddings of all processes: one minus the squared length of their mean unit vector.

    It is 0 if all embeddings have the same direction, and at most 1.

    Examples:
        >>> measure_spread(torch.tensor([[1.0, 0.0], [-3.0, 0.0]]), Accelerator(cpu=True))
        1.0
        >>> measure_spread(torch.ones(4, 4), Accelerator(cpu=True))
        0.0
    """
    units = nn.functional.normalize(embeddings.float(), dim=1)
    # an embedding of zeros adds nothing to either term
    sums = torch.cat([units.mean(dim=0), units.square().sum(dim=1).mean()[None]])
    if accelerator.num_processes > 1:  # all have the same number of rows, and all must reach the same decision
        sums = accelerator.reduce(sums, reduction="mean")
    return max(0.0, float(sums[-1] - sums[:-1].square().sum()))
