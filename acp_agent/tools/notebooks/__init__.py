"""Jupyter notebooks, read and edited as the text of their cells."""
