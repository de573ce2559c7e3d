"""Stands in for the package that RapidOCR needs beside it."""
