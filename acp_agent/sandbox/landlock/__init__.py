"""Confines programs with Landlock if bubblewrap does not work (docs/sandbox.md)."""
