from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from likewise.linear import RCA, load_embeddings
from likewise.trunks import Embedder, fold_metric


def test_a_metric_of_a_file_becomes_a_head(tmp_path: Path):
    """Embed, learn from the file, fold, save and load: the embeddings are the transformed ones."""
    torch.manual_seed(0)
    images = torch.rand(12, 1, 32, 32)
    for head, dim in (("none", None), ("linear", 8)):
        embedder = Embedder("convnet", dim, head=head, normalize=False).eval()
        with torch.no_grad():
            embeddings = embedder(images)
        np.savez(tmp_path / "e.npz", embeddings=embeddings.numpy(), labels=np.arange(12) // 4)
        points, labels = load_embeddings(tmp_path / "e.npz")
        learned = RCA(n_components=3).fit(points, labels)
        fold_metric(embedder, learned.components_).save(tmp_path / "m.safetensors")
        folded = Embedder.load(tmp_path / "m.safetensors").eval()
        with torch.no_grad():
            moved = folded(images)
        assert torch.allclose(
            moved, torch.as_tensor(learned.transform(points), dtype=torch.float32), rtol=1e-3, atol=1e-3
        )


def test_bad_files_and_heads(tmp_path: Path):
    (tmp_path / "text.npz").write_text("no arrays")
    with pytest.raises(ValueError, match="file must be a NumPy file"):
        load_embeddings(tmp_path / "text.npz")
    np.savez(tmp_path / "bare.npz", embeddings=np.eye(2))
    with pytest.raises(ValueError, match="has no labels"):
        load_embeddings(tmp_path / "bare.npz")
    np.savez(tmp_path / "short.npz", embeddings=np.eye(2), labels=[1])
    with pytest.raises(ValueError, match="n whole numbers as labels"):
        load_embeddings(tmp_path / "short.npz")
    with pytest.raises(ValueError, match="normalize=False"):
        fold_metric(Embedder("convnet", 4), np.eye(4))
    with pytest.raises(ValueError, match=r"components must have shape \(n_components, 4\)"):
        fold_metric(Embedder("convnet", 4, normalize=False), np.eye(3))
    with pytest.raises(ValueError, match="must have a linear head or none"):
        fold_metric(Embedder("convnet", 4, head="mlp", normalize=False), np.eye(4))
