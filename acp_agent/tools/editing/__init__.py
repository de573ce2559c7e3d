"""Edits of text: find the place that a call means, and put the new text there."""
