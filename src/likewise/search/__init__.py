"""Similarity search: an index of vectors with exact and approximate search, filters, calibration, export and a server."""

from __future__ import annotations

from typing import TYPE_CHECKING

from likewise._lazy import lazy_names

if TYPE_CHECKING:
    from likewise.search.calibration import Calibration, calibrate
    from likewise.search.card import IndexCard
    from likewise.search.drafts import purge_versions, restore_version
    from likewise.search.encoder import Encoder
    from likewise.search.index import Index
    from likewise.search.matches import Item, Matches, Rerank
    from likewise.search.rerank import KReciprocal, QueryExpansion, expand, k_reciprocal
    from likewise.search.store import VectorStore
    from likewise.search.text_encoder import TextEncoder
    from likewise.search.transfer import read_embeddings, write_parquet
    from likewise.search.versions import check_index, check_version, list_versions

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
    "TextEncoder",
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
    from likewise.search.places import place_below as place_below
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
    "approximate": "INDEX_KINDS kind_for",
    "calibration": "Calibration Point calibrate",
    "card": "IndexCard",
    "contact_sheet": "Shot draw_contact_sheet",
    "drafts": "purge_versions restore_version",
    "embedding": "Embedding batch_for embed_batches pixels",
    "encoder": "Encoder",
    "export": "EXPORT_FORMATS ExportedModel export_model",
    "index": "Index Kind Storage",
    "matches": "Item Matches Rerank",
    "places": "is_url place_below split_url",
    "rerank": "KReciprocal QueryExpansion expand k_reciprocal",
    "serve.app": "make_app",
    "serve.guard": "is_loopback",
    "serve.limits": "Limits",
    "snapshots": "adopt",
    "store": "VectorStore",
    "text_encoder": "TextEncoder",
    "thumbnails": "THUMBNAIL_SIDE thumbnail",
    "transfer": "read_embeddings write_parquet",
    "vectors": "STORAGES",
    "versions": "check_index check_version is_index list_versions",
}

# no public name imports faiss, a web server or a database driver before it is used
__getattr__, __dir__ = lazy_names(__name__, _PLACES)
