"""Labeled image data sets, class splits, batch samplers, and loaders that decode, cache and augment images."""

from likewise.data.adapters import from_dataset
from likewise.data.augment import Augment, Normalize
from likewise.data.broken import find_broken
from likewise.data.cache import ImageCache, cached
from likewise.data.cars import Cars196
from likewise.data.color import ColorJitter
from likewise.data.crops import CenterCrop, RandomCrop, RandomResizedCrop, RandomShift
from likewise.data.cub import CUB200
from likewise.data.dataset import ImageDataset
from likewise.data.decode import Broken, BrokenImage, TooLarge, decode, to_rgb
from likewise.data.download import Archive, fetch
from likewise.data.folder import ImageFolder
from likewise.data.glyphs import Glyphs
from likewise.data.hard_samplers import HardBatchSampler, HardPairSampler, MiningSampler, SmartMiningSampler
from likewise.data.hierarchical_sampler import HierarchicalSampler
from likewise.data.image_files import ImageFiles
from likewise.data.inshop import InShop
from likewise.data.loader import BatchLoader
from likewise.data.magnet_sampler import MagnetSampler
from likewise.data.pair_loader import PairLoader, RowLoader, SampleLoader, Sides
from likewise.data.pairs import PairTable
from likewise.data.resumable_loader import Batch, ResumableLoader
from likewise.data.samplers import (
    PairSampler,
    PerClassSampler,
    RandomBatchSampler,
    ResumableSampler,
)
from likewise.data.semi_supervised import SemiSupervisedSampler
from likewise.data.sop import StanfordOnlineProducts
from likewise.data.splits import Split, contiguous_folds, fixed_validation, half_split, random_folds
from likewise.data.table import ImageTable
from likewise.data.tag_sampler import MultiLabelSampler
from likewise.data.transforms import (
    CUB128,
    CUB176,
    GLYPHS,
    REALITY_CHECK,
    REALITY_CHECK_CODE,
    THESIS,
    TRANSFORMS,
    UNIFIED_VIEW,
    Transform,
)

__all__ = [
    "CUB128",
    "CUB176",
    "CUB200",
    "GLYPHS",
    "REALITY_CHECK",
    "REALITY_CHECK_CODE",
    "THESIS",
    "TRANSFORMS",
    "UNIFIED_VIEW",
    "Archive",
    "Augment",
    "Batch",
    "BatchLoader",
    "Broken",
    "BrokenImage",
    "Cars196",
    "CenterCrop",
    "ColorJitter",
    "Glyphs",
    "HardBatchSampler",
    "HardPairSampler",
    "HierarchicalSampler",
    "ImageCache",
    "ImageDataset",
    "ImageFiles",
    "ImageFolder",
    "ImageTable",
    "InShop",
    "MagnetSampler",
    "MiningSampler",
    "MultiLabelSampler",
    "Normalize",
    "PairLoader",
    "PairSampler",
    "PairTable",
    "PerClassSampler",
    "RandomBatchSampler",
    "RandomCrop",
    "RandomResizedCrop",
    "RandomShift",
    "ResumableLoader",
    "ResumableSampler",
    "RowLoader",
    "SampleLoader",
    "SemiSupervisedSampler",
    "Sides",
    "SmartMiningSampler",
    "Split",
    "StanfordOnlineProducts",
    "TooLarge",
    "Transform",
    "cached",
    "contiguous_folds",
    "decode",
    "fetch",
    "find_broken",
    "fixed_validation",
    "from_dataset",
    "half_split",
    "random_folds",
    "to_rgb",
]

# Used by other packages of the library, not part of the public API.
from likewise.data.augment import Draw as Draw
from likewise.data.color import LUMA as LUMA
from likewise.data.folder import EXTENSIONS as EXTENSIONS
from likewise.data.folder import walk_images as walk_images
from likewise.data.glyph_shapes import font_folder as font_folder
from likewise.data.memory import free_memory as free_memory
from likewise.data.pairs import draw_text as draw_text
from likewise.data.resample import FRACTION as FRACTION
from likewise.data.shards import Shape as Shape
from likewise.data.shards import cores as cores
from likewise.data.table import TABLES as TABLES
from likewise.data.table import read_cells as read_cells
