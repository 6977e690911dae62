"""Trunks: networks that make embeddings.  So far, of class names."""

from likewise.trunks.language import class_embeddings, prompts, readable

__all__ = ["class_embeddings", "prompts", "readable"]
