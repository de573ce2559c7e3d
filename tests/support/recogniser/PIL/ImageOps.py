# ruff: noqa: N999 - Pillow's own name
"""Stands in for the part of Pillow that turns pictures."""

from __future__ import annotations

from .Image import Image


def exif_transpose(image: Image) -> Image:
    return image
