"""A conversation: its journal, its configuration, its life cycle."""
