"""The initial linear map: from PCA, LDA, the identity, random numbers, or an array."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_array

from likewise.linear.metric import Array, check_choice

INITS = ("auto", "pca", "lda", "identity", "random")


def initial_components(
    init: Any, n_components: int, points: Array, labels: NDArray[Any] | None, random_state: Any = None
) -> Array:
    """Return the initial linear map, ``(n_components, d)``.

    Args:
        init: ``"identity"``: the first rows of the identity; ``"pca"``: the directions of largest variance; ``"lda"``:
            those of linear discriminant analysis; ``"random"``: normal numbers; ``"auto"``: ``"lda"`` if there are
            enough classes, otherwise ``"pca"`` if it reduces the dimension, otherwise ``"identity"``; or an array.
        n_components: the number of rows.
        points: the points, ``(n, d)``.
        labels: the class of each; ``None`` for a regression.
        random_state: seed of the random numbers.

    Examples:
        >>> initial_components("auto", 2, np.eye(3), None).shape
        (2, 3)
    """
    n, d = points.shape
    if not isinstance(init, str):
        components = check_array(init, dtype=np.float64, input_name="init")
        if components.shape != (n_components, d):
            raise ValueError(f"init must have shape ({n_components}, {d}), but its shape is {components.shape}")
        return np.array(components)
    check_choice("init", init, INITS)
    classes = 0 if labels is None else len(np.unique(labels))
    if init == "auto":
        enough = n_components <= min(d, classes - 1) and n > classes
        init = "lda" if enough else "pca" if n_components < min(d, n) else "identity"
    if init == "lda":
        if labels is None or n_components > min(d, classes - 1):
            raise ValueError(
                f"init must not be 'lda' for {n_components} components of {classes} classes: LDA has at most one fewer than "
                "classes"
            )
        return np.array(LinearDiscriminantAnalysis().fit(points, labels).scalings_.T[:n_components])
    if init == "pca":
        if n_components > min(d, n):
            raise ValueError(f"init must not be 'pca' for {n_components} components of {n} points")
        return np.array(PCA(n_components, random_state=random_state).fit(points).components_)
    if init == "random":
        return np.asarray(check_random_state(random_state).standard_normal((n_components, d)))
    return np.eye(n_components, d)
