"""Find look-alikes: an index of vectors, exact and approximate search, filters, and what is built on them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from likewise._lazy import lazy_names

if TYPE_CHECKING:
    from likewise.search.calibration import Calibration, calibrate
    from likewise.search.card import IndexCard
    from likewise.search.encoder import Encoder
    from likewise.search.index import Index
    from likewise.search.matches import Item, Matches, Rerank
    from likewise.search.rerank import KReciprocal, QueryExpansion, expand, k_reciprocal
    from likewise.search.store import VectorStore
    from likewise.search.transfer import read_embeddings, write_parquet
    from likewise.search.versions import check_index, check_version, list_versions, purge_versions, restore_version

__all__ = [
    "Calibration",
    "Encoder",
    "Index",
    "IndexCard",
    "Item",
    "KReciprocal",
    "Matches",
    "QueryExpansion",
    "Rerank",
    "VectorStore",
    "calibrate",
    "check_index",
    "check_version",
    "expand",
    "k_reciprocal",
    "list_versions",
    "purge_versions",
    "read_embeddings",
    "restore_version",
    "write_parquet",
]

# Used by other packages of the library, not part of the public API.
if TYPE_CHECKING:
    from likewise.search.approximate import INDEX_KINDS as INDEX_KINDS
    from likewise.search.approximate import kind_for as kind_for
    from likewise.search.calibration import Point as Point
    from likewise.search.contact_sheet import Shot as Shot
    from likewise.search.contact_sheet import draw_contact_sheet as draw_contact_sheet
    from likewise.search.embedding import Embedding as Embedding
    from likewise.search.embedding import batch_for as batch_for
    from likewise.search.embedding import embed_batches as embed_batches
    from likewise.search.embedding import pixels as pixels
    from likewise.search.export import EXPORT_FORMATS as EXPORT_FORMATS
    from likewise.search.export import ExportedModel as ExportedModel
    from likewise.search.export import export_model as export_model
    from likewise.search.index import Kind as Kind
    from likewise.search.index import Storage as Storage
    from likewise.search.places import is_url as is_url
    from likewise.search.places import split_url as split_url
    from likewise.search.serve.app import make_app as make_app
    from likewise.search.serve.guard import is_loopback as is_loopback
    from likewise.search.serve.limits import Limits as Limits
    from likewise.search.snapshots import adopt as adopt
    from likewise.search.thumbnails import THUMBNAIL_SIDE as THUMBNAIL_SIDE
    from likewise.search.thumbnails import thumbnail as thumbnail
    from likewise.search.vectors import STORAGES as STORAGES
    from likewise.search.versions import is_index as is_index

_PLACES = {
    "Calibration": "calibration",
    "Encoder": "encoder",
    "Index": "index",
    "IndexCard": "card",
    "Item": "matches",
    "KReciprocal": "rerank",
    "Matches": "matches",
    "QueryExpansion": "rerank",
    "Rerank": "matches",
    "VectorStore": "store",
    "calibrate": "calibration",
    "check_index": "versions",
    "check_version": "versions",
    "expand": "rerank",
    "k_reciprocal": "rerank",
    "list_versions": "versions",
    "purge_versions": "versions",
    "read_embeddings": "transfer",
    "restore_version": "versions",
    "write_parquet": "transfer",
    # used by other packages
    "EXPORT_FORMATS": "export",
    "Embedding": "embedding",
    "ExportedModel": "export",
    "INDEX_KINDS": "approximate",
    "Kind": "index",
    "Limits": "serve.limits",
    "Point": "calibration",
    "STORAGES": "vectors",
    "Shot": "contact_sheet",
    "Storage": "index",
    "THUMBNAIL_SIDE": "thumbnails",
    "adopt": "snapshots",
    "batch_for": "embedding",
    "draw_contact_sheet": "contact_sheet",
    "embed_batches": "embedding",
    "export_model": "export",
    "is_index": "versions",
    "is_loopback": "serve.guard",
    "is_url": "places",
    "kind_for": "approximate",
    "make_app": "serve.app",
    "pixels": "embedding",
    "split_url": "places",
    "thumbnail": "thumbnails",
}

# none of the public names needs faiss, a web server or a database before it is used
__getattr__, __dir__ = lazy_names(__name__, _PLACES)
