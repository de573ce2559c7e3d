"""Fixtures that look for faults and keys after a test."""

from tests.support.hostile import opened, unharmed

__all__ = ["opened", "unharmed"]
