"""Fixtures of the tests that treat the agent badly."""

from tests.support.hostile import opened, unharmed

__all__ = ["opened", "unharmed"]
