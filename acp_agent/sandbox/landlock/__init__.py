"""Confines programs with Landlock where bubblewrap does not work (docs/sandbox.md)."""
