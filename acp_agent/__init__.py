"""A coding agent that any editor drives over the Agent Client Protocol."""

__version__ = "0.1.0"
