"""A linear map trained with any loss of likewise."""

from __future__ import annotations

import copy
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data
from torch import Tensor, nn

from likewise.formula import SquaredEuclidean
from likewise.linear.batches import PER_CLASS, ClassBatches
from likewise.linear.initial import initial_components
from likewise.linear.metric import Array, MahalanobisMixin, check_choice, check_components, check_number, components_of
from likewise.linear.projection import minimize_projected
from likewise.linear.regularizers import REGULARIZERS, regularizer_matrix
from likewise.linear.solver import check_max_iter, minimize_array
from likewise.losses import NCALoss


class LinearMetric(MahalanobisMixin):
    r"""A linear map trained with any loss: $\min_L\ \ell(XL^\top,y)+\lambda\,r(L^\top L)$.

    Eq. 2.1 and 2.10 of the thesis, with the losses of `likewise.losses` as constraints: the mapped points are the
    embeddings of the loss.  Losses that normalize embeddings learn the map up to its scale.

    Args:
        loss: a loss of `likewise.losses`; its parameters, such as proxies, are learned with the map.  ``None``:
            `NCALoss` on squared Euclidean distances that are not normalized.
        n_components: the number of rows of L (a low-rank metric); ``None``: the number of features.
        diagonal: learn one weight per feature.
        psd: how $A=L^\top L\succeq0$ is ensured: ``"factor"``, by learning L, or ``"projection"``, by projected
            gradients on A, for losses without parameters.
        regularizer: r(A): ``"frobenius"``, $\tfrac12\lVert A\rVert_F^2$; ``"trace"``, $\mathrm{tr}(AC)$; ``"logdet"``,
            $\mathrm{tr}(AP^{-1})-\log\det(AP^{-1})-d$; ``"nuclear"``, $\mathrm{tr}(A)$; or ``None``.
        regularization: λ.
        matrix: C (by default the mean of $(x_i-x_j)(x_i-x_j)^\top$ over pairs of one class) or P (the identity).
        init: L at the start: ``"auto"``, ``"pca"``, ``"lda"``, ``"identity"``, ``"random"`` or an array.
        batch_size: the number of points in a mini-batch, four per class, for Adam in float32; ``None``: L-BFGS on all
            points in float64.
        max_iter: the maximum number of iterations of L-BFGS or projected gradients, or the number of epochs with
            mini-batches.
        lr: the learning rate of Adam.
        device: where to compute, such as ``"cuda"``; ``None``: the CPU.
        random_state: seed of the batches and of ``init="random"``.

    Attributes:
        loss_: the loss with its learned parameters.
        n_iter_: the number of iterations, or of steps.

    Examples:
        >>> import numpy as np
        >>> from likewise.losses import ContrastiveLoss
        >>> points = np.array([[0.0, 0.0], [0.1, 3.0], [1.0, 0.0], [1.1, 3.0]])
        >>> learned = LinearMetric(ContrastiveLoss(), n_components=2).fit(points, [0, 0, 1, 1])
        >>> learned.components_.shape
        (2, 2)
    """

    _requires_target = True

    def __init__(
        self,
        loss: nn.Module | None = None,
        n_components: int | None = None,
        diagonal: bool = False,
        psd: str = "factor",
        regularizer: str | None = None,
        regularization: float = 0.0,
        matrix: Any = None,
        init: Any = "auto",
        batch_size: int | None = None,
        max_iter: int = 100,
        lr: float = 1e-3,
        device: Any = None,
        random_state: Any = None,
    ) -> None:
        self.loss = loss
        self.n_components = n_components
        self.diagonal = diagonal
        self.psd = psd
        self.regularizer = regularizer
        self.regularization = regularization
        self.matrix = matrix
        self.init = init
        self.batch_size = batch_size
        self.max_iter = max_iter
        self.lr = lr
        self.device = device
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Self:
        """Learn from points ``(n, d)`` and the class of each, ``(n,)``."""
        kind = np.float64 if self.batch_size is None else (np.float64, np.float32)
        points, classes = validate_data(self, X, y, dtype=kind, ensure_min_samples=2)
        check_classification_targets(classes)
        labels = np.unique(classes, return_inverse=True)[1]
        n_components = self._check(points.shape[1])
        start = initial_components(self.init, n_components, points, labels, self.random_state)
        problem = _Problem(self, points, labels)
        if self.psd == "projection":
            metric, self.n_iter_ = minimize_projected(problem.of_metric, start.T @ start, self.max_iter)
            self.components_ = components_of(metric)
        elif self.batch_size is None:
            self.components_, self.n_iter_ = problem.minimize(start, self.max_iter)
        else:
            seed = int(check_random_state(self.random_state).randint(2**31))
            batches = ClassBatches(problem.labels, int(self.batch_size), seed)
            self.components_, self.n_iter_ = problem.descend(start, batches, self.max_iter * len(points), self.lr)
        self.loss_ = problem.loss.cpu()
        return self

    def _check(self, d: int) -> int:
        """Check the arguments and return the number of rows of L."""
        if self.loss is not None and not isinstance(self.loss, nn.Module):
            raise TypeError(f"loss must be a loss of likewise.losses or None, but it is a {type(self.loss).__name__}")
        check_choice("psd", self.psd, ("factor", "projection"))
        if self.regularizer is not None:
            check_choice("regularizer", self.regularizer, tuple(REGULARIZERS))
        check_number("regularization", self.regularization, at_least=0.0)
        check_number("lr", self.lr, above=0.0)
        check_max_iter(self.max_iter)
        n_components = check_components(self.n_components, d)
        square = self.diagonal or self.psd == "projection" or self.regularizer == "logdet"
        if square and n_components != d:
            raise ValueError(
                f"n_components must be None for a diagonal or projected metric and for LogDet, but it is {n_components}"
            )
        if self.batch_size is not None and (not isinstance(self.batch_size, int) or self.batch_size < 8):
            raise ValueError(f"batch_size must be a whole number ≥ 8 or None, but it is {self.batch_size!r}")
        if self.psd == "projection" and (self.diagonal or self.batch_size is not None):
            raise ValueError("psd must be 'factor' for a diagonal metric and for mini-batches, but it is 'projection'")
        # such a loss depends on more than Z Zᵀ (see `of_metric`), and its parameters would not be learned
        learns = self.loss is not None and any(each.requires_grad for each in self.loss.parameters())
        if self.psd == "projection" and learns:
            raise ValueError(
                f"psd must be 'factor' for a loss with parameters, such as {type(self.loss).__name__}, "
                "but it is 'projection'"
            )
        return n_components


class _Problem:
    """Return the objective as a function of the map or of the metric."""

    def __init__(self, options: LinearMetric, points: Array, labels: NDArray[np.int64]) -> None:
        device = torch.device("cpu" if options.device is None else options.device)
        self.dtype = torch.float64 if options.batch_size is None else torch.float32
        loss = options.loss
        if loss is None:
            loss = NCALoss(similarity=SquaredEuclidean(normalize=False))  # type: ignore[call-arg]
        self.loss = copy.deepcopy(loss).to(device=device, dtype=self.dtype)
        self.points = torch.tensor(points, device=device, dtype=self.dtype)  # a copy: points may be read-only
        self.labels = torch.as_tensor(labels).to(device)
        self.diagonal, self.weight = options.diagonal, float(options.regularization)
        self.regularizer = None if options.regularizer is None else REGULARIZERS[options.regularizer]
        matrix = regularizer_matrix(options.regularizer, options.matrix, points, labels)
        self.matrix = torch.as_tensor(matrix).to(device=device, dtype=self.dtype)

    def penalty(self, metric: Tensor) -> Tensor:
        if self.regularizer is None or self.weight == 0.0:
            return metric.new_zeros(())
        return self.weight * self.regularizer(metric, self.matrix)

    def value(self, factor: Tensor, index: Tensor | slice = slice(None)) -> Tensor:
        """The objective on some points; a diagonal map is its diagonal."""
        points = self.points[index]
        embedded = points * factor if self.diagonal else points @ factor.T
        result: Tensor = self.loss(embedded, self.labels[index])
        if self.regularizer is not None and self.weight > 0.0:
            result = result + self.penalty(torch.diag(factor.square()) if self.diagonal else factor.T @ factor)
        return result

    def start(self, components: Array) -> Tensor:
        values = np.diag(components) if self.diagonal else components
        return torch.tensor(values, device=self.points.device, dtype=self.dtype, requires_grad=True)

    def finish(self, factor: Tensor) -> Array:
        values = factor.detach().double().cpu().numpy()
        return np.diag(np.abs(values)) if self.diagonal else values

    def minimize(self, components: Array, max_iter: int) -> tuple[Array, int]:
        """L-BFGS over the map and the parameters of the loss."""
        factor = self.start(components)
        learned = [factor, *(each for each in self.loss.parameters() if each.requires_grad)]
        sizes = [each.numel() for each in learned]

        def objective(vector: Array) -> tuple[float, Array]:
            with torch.no_grad():
                for each, part in zip(learned, np.split(vector, np.cumsum(sizes)[:-1]), strict=True):
                    each.copy_(torch.as_tensor(part).reshape(each.shape))
            value = self.value(factor)
            gradients = torch.autograd.grad(value, learned, allow_unused=True, materialize_grads=True)
            return float(value.detach()), np.concatenate([each.double().cpu().numpy().ravel() for each in gradients])

        first = np.concatenate([each.detach().double().cpu().numpy().ravel() for each in learned])
        found = minimize_array(objective, first, max_iter, gtol=1e-8, ftol=2.2e-9)
        objective(found.at)  # leaves the minimizer in the map and in the parameters of the loss
        return self.finish(factor), found.n_iter

    def descend(self, components: Array, batches: ClassBatches, points: int, lr: float) -> tuple[Array, int]:
        """Run Adam on mini-batches, with a learning rate that decays to zero by a cosine schedule."""
        factor = self.start(components)
        optimizer = torch.optim.Adam([factor, *self.loss.parameters()], lr=lr)
        steps = max(1, points // (PER_CLASS * batches.classes))
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
        for _ in range(steps):
            optimizer.zero_grad(set_to_none=True)
            self.value(factor, batches.draw()).backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            schedule.step()
        return self.finish(factor), steps

    def of_metric(self, metric: Array) -> tuple[float, Array]:
        """Return the objective and its gradient by the symmetric matrix A.

        With the symmetric root S of A, the loss is computed on ``Z = X S`` and depends on it only through ``Z Zᵀ``, so
        that ``∂/∂A = ½ Xᵀ (∂/∂Z) S⁻¹``; for the inverse, eigenvalues below 1e-10 of the largest are raised to that
        value.
        """
        values, vectors = np.linalg.eigh(metric)
        values = np.maximum(values, 1e-10 * max(float(values[-1]), 1e-10))
        root = (vectors * np.sqrt(values)) @ vectors.T
        embedded = (self.points @ torch.as_tensor(root, device=self.points.device)).requires_grad_()
        value = self.loss(embedded, self.labels)
        gradient = (self.points.T @ torch.autograd.grad(value, embedded)[0]).cpu().numpy()
        gradient = 0.5 * gradient @ ((vectors / np.sqrt(values)) @ vectors.T)
        matrix = torch.as_tensor((vectors * values) @ vectors.T, device=self.points.device).requires_grad_()
        penalty = self.penalty(matrix)
        if penalty.requires_grad:
            gradient = gradient + torch.autograd.grad(penalty, matrix)[0].cpu().numpy()
        return float(value.detach()) + float(penalty.detach()), 0.5 * (gradient + gradient.T)
