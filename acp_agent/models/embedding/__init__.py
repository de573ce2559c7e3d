"""Embeddings of texts, by which they are compared in meaning."""
