"""Workflows: files of steps that are run in order or at the same time (docs/workflows.md)."""
