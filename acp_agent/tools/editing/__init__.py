"""Edits of text: find the matching place, and insert the new text in the form of the file."""
