# %% [markdown]
# # What a loss does
#
# A loss is a weighting of pairs: its gradient pulls every positive pair together and pushes every negative pair apart, each
# with a weight. Two losses with the same weights train the same model. This notebook computes the weights of some losses.

# %%
import torch

from likewise.analysis import gradient_equivalent, pair_weights, weight_formulas
from likewise.losses import ContrastiveLoss, MultiSimilarityLoss, RAWLoss, TripletLoss
from likewise.miners import MultiSimilarityMiner

torch.manual_seed(0)
labels = torch.arange(8).repeat_interleave(4)
embeddings = torch.randn(8, 16)[labels] + 0.8 * torch.randn(32, 16)
same = (labels[:, None] == labels) & ~torch.eye(32, dtype=torch.bool)
different = labels[:, None] != labels

# %% [markdown]
# ## Which pairs count
#
# The weight of pair (i, j) is the derivative of the loss by its similarity, with the sign turned for positives: above zero
# means that the pair moves in the right direction.

# %%
for loss in (ContrastiveLoss(), TripletLoss(), MultiSimilarityLoss()):
    weights = pair_weights(loss, embeddings, labels)  # (32, 32)
    for name, kind in (("positive", same), ("negative", different)):
        sizes = weights[kind].abs().sort(descending=True).values
        used = (sizes > 1e-6 * sizes[0]).float().mean()
        top = sizes[: len(sizes) // 10].sum() / sizes.sum()
        print(
            f"{type(loss).__name__:20} {name}: {used:4.0%} of pairs have weight, the heaviest tenth carries {top:.0%}"
        )

# %% [markdown]
# ## Hard pairs weigh more
#
# The contrastive loss gives every violating pair the same weight. Multi-similarity loss weighs a negative pair by how similar
# it is, relative to the other negatives of its anchor.

# %%
similarity = torch.nn.functional.normalize(embeddings)
similarity = similarity @ similarity.T
for loss in (ContrastiveLoss(), MultiSimilarityLoss()):
    weights = pair_weights(loss, embeddings, labels)[different]
    order = similarity[different].argsort(descending=True)
    print(type(loss).__name__)
    for position in (0, 10, 50, 200):
        pair = order[position]
        print(f"  similarity {similarity[different][pair]:.2f}: weight {weights[pair]:.5f}")

# %% [markdown]
# ## The weights as formulas
#
# A loss is a declaration, so that its weights can be derived in closed form.

# %%
for side, formula in weight_formulas(MultiSimilarityLoss()).items():
    print(f"{side}: {formula}")

# %% [markdown]
# ## Two losses, one gradient
#
# RAW loss and multi-similarity loss with its miner have different derivations and the same gradient.

# %%
mined = MultiSimilarityLoss(miner=MultiSimilarityMiner(epsilon=0.1))
print(gradient_equivalent(RAWLoss(margin=0.1), mined))
print(gradient_equivalent(ContrastiveLoss(), mined))
