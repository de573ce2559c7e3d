"""Workflows: files of steps that run in order or concurrently (docs/workflows.md)."""
