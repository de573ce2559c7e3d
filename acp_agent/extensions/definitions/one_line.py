"""Texts of files, where they are shown or said in a line."""

from __future__ import annotations


def one_line(text: str) -> str:
    """A text without anything that could end its line, or drive a terminal."""
    return " ".join("".join(one if one.isprintable() else " " for one in text).split())
