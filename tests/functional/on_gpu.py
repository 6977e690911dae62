"""Functions on a GPU: ``python -m tests.functional.on_gpu`` needs no pytest.

A module's parameters are moved to the device by the caller; a function finds the device of its tensors itself.
"""

from __future__ import annotations

import torch

from tests.functional.cases import CASES, CLASSES, DIM, Case, label


def check(case: Case, size: int = 64) -> None:
    """The function on a GPU, in float32, is the module on a CPU, in float64."""
    generator = torch.Generator().manual_seed(0)
    labels = torch.arange(size) % CLASSES
    embeddings = (
        torch.randn(size, DIM, generator=generator, dtype=torch.float64) + 2.0 * torch.eye(CLASSES, DIM)[labels]
    )
    module = case.make()
    expected = module(embeddings, labels)
    leaves = {name: each.detach().float().cuda().requires_grad_() for name, each in case.tensors(module).items()}
    on_gpu = embeddings.float().cuda().requires_grad_()
    value = case.call(on_gpu, labels.cuda(), leaves)
    torch.testing.assert_close(value.detach().cpu().double(), expected.detach(), rtol=1e-3, atol=1e-4)
    for gradient in torch.autograd.grad(value, [on_gpu, *leaves.values()]):
        assert gradient.is_cuda
        assert torch.isfinite(gradient).all()


if __name__ == "__main__":
    for each in CASES:
        check(each)
        print(label(each), "equal", flush=True)
