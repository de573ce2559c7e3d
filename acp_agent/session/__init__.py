"""Sessions: their journals, settings, turns and life cycle."""
