# ruff: noqa: E402
# %% [markdown]
# # likewise in ten minutes
#
# Train an embedding on printed characters, measure it on characters that the training has not seen, and search with it.
# The data are drawn from fonts, so that nothing is downloaded.

# %%
import os
import tempfile
from pathlib import Path

import torch

from likewise.data import Glyphs, PerClassSampler

IMAGES = int(os.environ.get("LIKEWISE_EXAMPLE_IMAGES", 8))  # per character; the tests use 2
STEPS = int(os.environ.get("LIKEWISE_EXAMPLE_STEPS", 150))

train, val = (Glyphs(split, images_per_class=IMAGES) for split in ("train", "val"))
images, val_images = (part.pixels().float() / 255 for part in (train, val))
print(train, val, images.shape, sep="\n")

# %% [markdown]
# ## Model, loss, sampler
#
# A loss compares the samples of a batch with each other, so a batch needs several images of each class.

# %%
from likewise.losses import MultiSimilarityLoss
from likewise.miners import MultiSimilarityMiner
from likewise.trunks import Embedder

torch.manual_seed(0)
model = Embedder("convnet", 64)
loss = MultiSimilarityLoss(miner=MultiSimilarityMiner(epsilon=0.1))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
sampler = PerClassSampler(train.labels, classes=32, per_class=min(4, IMAGES), steps=STEPS)

# %% [markdown]
# ## Measure
#
# Every image is a query; the others are ranked by similarity. `R@1` is the fraction of queries whose nearest neighbor has the
# same class. `MAP@R` also looks at the order of the other positives.

# %%
from likewise.metrics import retrieval


@torch.no_grad()
def embed(batch: torch.Tensor) -> torch.Tensor:
    model.eval()
    return torch.cat([model(chunk) for chunk in batch.split(256)])


print("before training:", retrieval(embed(val_images), val.labels, ks=(1,))["R@1"])

# %% [markdown]
# ## Train

# %%
model.train()
for step, batch in enumerate(sampler):
    optimizer.zero_grad()
    value = loss(model(images[batch]), train.labels[batch])
    value.backward()
    optimizer.step()
    if step % 50 == 0:
        print(f"step {step}: loss {value:.3f}")

scores = retrieval(embed(val_images), val.labels, ks=(1, 10))
print("after training:", {name: round(scores[name], 3) for name in ("R@1", "R@10", "MAP@R")})

# %% [markdown]
# ## Search
#
# An index keeps vectors, paths, classes and metadata in a folder.

# %%
from likewise.search import Index

index = Index.create(Path(tempfile.mkdtemp()) / "glyphs.index", dim=64)
names = [val.class_names[label] for label in val.labels]
index.add(embed(val_images).numpy(), paths=[val.source(i) for i in range(len(val))], labels=names)
for id, score in index.search(embed(val_images[:1]).numpy(), k=5).of(0):
    print(f"{score:.3f}  {index.item(id).label}  {index.item(id).path}")
