# ruff: noqa: N999 - Pillow's own name
"""Stands in for Pillow."""
