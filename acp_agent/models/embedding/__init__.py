"""Embeddings of texts, for comparing their meaning."""
