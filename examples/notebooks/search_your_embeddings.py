# ruff: noqa: E402
# %% [markdown]
# # Search your embeddings
#
# Vectors from any model: measure them, index them, search them, and find the similarity from which two items are the same.
# This notebook makes synthetic vectors; replace the next cell with your own.

# %%
import tempfile
from pathlib import Path

import numpy as np

random = np.random.default_rng(0)
classes = np.arange(30).repeat(12)
vectors = random.normal(size=(30, 48))[classes] + 0.8 * random.normal(size=(360, 48))
names = [f"kind {label:02}" for label in classes]
years = [2018 + number % 7 for number in range(360)]

# %% [markdown]
# ## Measure
#
# Retrieval asks for ranks, verification for one threshold that holds for all pairs.

# %%
from likewise.metrics import bootstrap, retrieval, verification

values = retrieval(vectors, classes, reduce="none")["MAP@R"]
print("MAP@R, with an interval over classes:", bootstrap(values, groups=classes))
found = verification(vectors, classes, far=(0.01,))
print({name: round(found[name], 3) for name in ("AUC", "EER", "TAR@0.01", "threshold@0.01")})

# %% [markdown]
# ## Index
#
# Every item has a path, and may have a class and metadata.

# %%
from likewise.search import Index

folder = Path(tempfile.mkdtemp()) / "things.index"
index = Index.create(folder, dim=48)
index.add(vectors, paths=[f"{n}.jpg" for n in range(360)], labels=names, metadata={"year": years})
print(index)

# %% [markdown]
# ## Search
#
# A filter is applied before the search: `k` results come back if `k` items pass it.

# %%
query = vectors[100] + 0.3 * random.normal(size=48)
for where in (None, "year >= 2022", 'label != "kind 08"'):
    matches = index.search(query[None], k=3, where=where)
    print(where, [(index.item(id).label, round(score, 2)) for id, score in matches.of(0)])

# %% [markdown]
# ## Same or not
#
# Items above the threshold count as the same thing. The threshold accepts one in a hundred pairs of different things, and the
# query meets 348 of those: a few wrong matches are expected. A search in a larger collection needs a smaller rate.

# %%
threshold = found["threshold@0.01"]
accepted = [(id, score) for id, score in index.search(query[None], k=20).of(0) if score >= threshold]
print(f"{len(accepted)} of 20 neighbors are above {threshold:.2f}")
print("correct:", sum(index.item(id).label == names[100] for id, _ in accepted))

# %% [markdown]
# ## Groups
#
# Near-duplicates are groups of items that are linked by pairs above a similarity; clusters are k-means.

# %%
print("near-duplicates:", index.duplicates(0.75)[:3])
print("sizes of clusters:", np.bincount(index.clusters(30)))
