"""Confines programs that a model or a repository can influence (docs/sandbox.md)."""
