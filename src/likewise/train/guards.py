"""What stops a training that has gone wrong: on all of its processes at once, for none may wait for another in vain."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import torch
from accelerate import Accelerator
from safetensors.torch import save_file
from torch import Tensor, nn

from likewise.files import atomic_write
from likewise.train.processes import from_all


class NotFinite(RuntimeError):  # noqa: N818
    """The loss was not a finite number; the message says where the batch was saved.

    Args:
        message: what happened.
        processes: the ranks of those that it happened to; all of them raise it.

    Examples:
        >>> raise NotFinite("the loss was nan at step 3")
        Traceback (most recent call last):
        likewise.train.guards.NotFinite: the loss was nan at step 3
    """

    def __init__(self, message: str, processes: Sequence[int] = (0,)) -> None:
        super().__init__(message)
        self.processes = tuple(processes)


class Collapsed(RuntimeError):  # noqa: N818
    """All embeddings have become alike: there is nothing left to train.

    Examples:
        >>> issubclass(Collapsed, RuntimeError)
        True
    """


def insist_on(value: float, words: str, accelerator: Accelerator) -> None:
    """Raise `NotFinite` on every process if the value of any of them is not finite.

    Args:
        value: of this process.
        words: what to say, with ``{value}`` where it belongs.
        accelerator: knows the other processes.

    Examples:
        >>> insist_on(float("inf"), "the loss was {value}", Accelerator(cpu=True))
        Traceback (most recent call last):
        likewise.train.guards.NotFinite: the loss was inf
    """
    bad = {rank: x for rank, (x,) in enumerate(from_all([value], accelerator)) if not math.isfinite(x)}
    said: dict[str, list[int]] = {}
    for rank, each in bad.items():
        said.setdefault(words.format(value=each), []).append(rank)
    if bad:
        raise NotFinite("; ".join(text + on(ranks, accelerator) for text, ranks in said.items()), list(bad))


def on(ranks: Sequence[int], accelerator: Accelerator) -> str:
    """Which processes, in words; nothing if there is only one.

    Examples:
        >>> on([0], Accelerator(cpu=True))
        ''
    """
    if accelerator.num_processes == 1:
        return ""
    listed = ", ".join(map(str, ranks))
    return f" on process {listed} of {accelerator.num_processes}"


def keep(
    error: NotFinite, step: str, batches: Sequence[Sequence[Tensor]], folder: Path, accelerator: Accelerator
) -> str:
    """What to say of an error after each process that it happened to has saved its batches.

    Args:
        error: says what, and whose.
        step: which step of the training, in words.
        batches: of images, labels and perhaps indices, of this process.
        folder: where to save them.
        accelerator: knows this process and the others.

    Examples:
        >>> import tempfile
        >>> folder = Path(tempfile.mkdtemp())
        >>> batch = torch.zeros(2, 3), torch.tensor([0, 1])
        >>> keep(NotFinite("the loss was nan"), "step 3", [batch], folder, Accelerator(cpu=True))
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


def spread_of(embeddings: Tensor, accelerator: Accelerator) -> float:
    """How far embeddings are from being alike, those of all processes together: from 0, all alike, to 1.

    It is one less the squared length of their mean, of unit vectors.

    Examples:
        >>> spread_of(torch.tensor([[1.0, 0.0], [-3.0, 0.0]]), Accelerator(cpu=True))
        1.0
        >>> spread_of(torch.ones(4, 4), Accelerator(cpu=True))
        0.0
    """
    units = nn.functional.normalize(embeddings.float(), dim=1)
    # an embedding that is zero has no length of either kind
    sums = torch.cat([units.mean(dim=0), units.square().sum(dim=1).mean()[None]])
    if accelerator.num_processes > 1:  # each has the same share of a batch; and all must come to the same decision
        sums = accelerator.reduce(sums, reduction="mean")
    return max(0.0, float(sums[-1] - sums[:-1].square().sum()))
