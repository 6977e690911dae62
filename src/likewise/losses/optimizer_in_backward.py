"""An optimizer step fused into the backward pass: proxies are updated in chunks, as their gradient appears."""

from __future__ import annotations

from collections.abc import Callable
from weakref import WeakSet

import torch
import torch.distributed as dist
from torch import Tensor, nn

from likewise._compat import backward_pass
from likewise.losses.proxy_base import ProxyLoss

CHUNK_BYTES = 64 * 2**20
"""Bytes of the proxies that one step of the optimizer updates."""


class OptimizerInBackward:
    """Updates the proxies of a loss inside the backward pass, in chunks, so that their whole gradient never exists.

    With ten million proxies of 512 dimensions, a dense gradient in bfloat16 takes 10 GB.  The chunked engine and the Triton
    engine compute it in chunks of proxies; this class passes each chunk to an optimizer and frees it.  The result is that
    of ``loss(embeddings, labels).backward()`` followed by ``optimizer.step()``, for optimizers that update each number
    separately: ``SGD`` with momentum, ``Adam``, ``AdamW``, ``RMSprop``, ``Adagrad``.  The technique is known as a *fused
    backward update* or *optimizer in backward*.

    The update happens in every backward pass, so gradients are not accumulated over several batches, clipped by their norm
    or scaled (float16 needs a scaler; bfloat16 does not).  Where a gradient cannot be passed on in chunks (the loss has
    several terms on its proxies, or numbers per class such as a bias; its backward pass is not computed in chunks; proxies
    are anchors on a GPU), it exists until the end of the backward pass, and the update is the same.

    Args:
        loss: a loss with proxies, on its final device and in its final dtype.  The proxies are trained by this class; other
            parameters of the loss are not.
        make_optimizer: returns the optimizer of a list of parameters, which are chunks of the proxies.

    Attributes:
        optimizer: the optimizer, for a learning-rate schedule and for checkpoints (``optimizer.state_dict()``).

    Examples:
        >>> import torch
        >>> from likewise.losses import ArcFaceLoss
        >>> loss = ArcFaceLoss(num_classes=1000, embedding_dim=4)
        >>> fused = OptimizerInBackward(loss, lambda proxies: torch.optim.SGD(proxies, lr=0.1, momentum=0.9))
        >>> before = loss.proxies.detach().clone()
        >>> loss(torch.randn(8, 4, requires_grad=True), torch.arange(8)).backward()
        >>> torch.equal(loss.proxies, before), loss.proxies.grad
        (False, None)
    """

    def __init__(self, loss: ProxyLoss, make_optimizer: Callable[[list[nn.Parameter]], torch.optim.Optimizer]) -> None:
        if not isinstance(loss, ProxyLoss):
            raise TypeError(f"loss must be a loss with proxies, but it is a {type(loss).__name__}")
        if loss.sampled is not None:
            raise ValueError(f"loss must compare with all of its proxies, but sampled is {loss.sampled!r}")
        if dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1:
            raise ValueError(
                "loss must be trained by one process, because the update needs the gradients of all of them, but there are "
                f"{dist.get_world_size()}"
            )
        proxies = self._proxies = loss.proxies
        proxies.grad = None
        row_bytes = max(1, proxies.shape[1] * proxies.element_size())
        self._height = max(1, CHUNK_BYTES // row_bytes)
        rows = range(0, len(proxies), self._height)
        self._chunks = [nn.Parameter(proxies.detach()[first : first + self._height]) for first in rows]
        self.optimizer = make_optimizer(self._chunks)
        self._uses: WeakSet[_Use] = WeakSet()
        self._buffer: Tensor | None = None
        self._backward_pass = -1  # the last one in which rows were updated in chunks
        self._hook = proxies.register_post_accumulate_grad_hook(self._take_whole)  # type: ignore[no-untyped-call]
        proxies.row_gradients = self  # type: ignore[attr-defined]

    def remove(self) -> None:
        """Stop updating: the next backward pass stores the gradient of the proxies."""
        self._hook.remove()
        del self._proxies.row_gradients  # type: ignore[attr-defined]

    def use(self) -> _Use:
        """Register a use of the proxies in a graph; see `likewise.formula.RowGradients`."""
        new = _Use(self)
        for other in self._uses:
            other.shared = new.shared = True
        self._uses.add(new)
        return new

    def take(self, rows: slice, gradient: Tensor) -> None:
        """Update some rows; a chunk is updated as soon as the gradient of its last row is known."""
        if self._chunks[0].data_ptr() != self._proxies.data_ptr():
            raise RuntimeError(
                "proxies must stay where they were when OptimizerInBackward was made, but they were moved"
            )
        first = rows.start
        while first < rows.stop:
            chunk, place = self._chunks[first // self._height], first % self._height
            end = min(rows.stop, first - place + len(chunk))
            some = gradient[first - rows.start : end - rows.start]
            if len(some) < len(chunk):
                if self._buffer is None:
                    self._buffer = torch.empty_like(self._chunks[0])
                self._buffer[place : place + len(some)] = some
                some = self._buffer[: len(chunk)]
            if end == first - place + len(chunk):
                chunk.grad = some
                self.optimizer.step()
                chunk.grad = None
            first = end

    def _take_in_chunks(self, rows: slice, gradient: Tensor) -> None:
        self._backward_pass = backward_pass()
        self.take(rows, gradient)

    def _take_whole(self, proxies: Tensor) -> None:
        """Update all rows from a gradient that torch has accumulated."""
        gradient, proxies.grad = proxies.grad, None
        if gradient is None:  # it was passed on in chunks
            return
        if self._backward_pass == backward_pass():
            raise RuntimeError(
                "proxies must be used by the loss only, because they are updated during its backward pass, but something "
                "else has a gradient by them"
            )
        self.take(slice(0, len(proxies)), gradient)


class _Use:
    """One use of the proxies in a graph."""

    def __init__(self, update: OptimizerInBackward) -> None:
        self.update, self.shared = update, False

    def is_only(self) -> bool:
        """Whether no other graph that uses the proxies was alive together with this one; the use ends with this call."""
        self.update._uses.discard(self)
        return not self.shared

    def take(self, rows: slice, gradient: Tensor) -> None:
        """Update some rows."""
        self.update._take_in_chunks(rows, gradient)
