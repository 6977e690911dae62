"""Trunks: networks that make embeddings.  So far, of class names."""

from likewise.trunks.language import SentenceEncoder, class_embeddings, prompts, readable

__all__ = ["SentenceEncoder", "class_embeddings", "prompts", "readable"]
