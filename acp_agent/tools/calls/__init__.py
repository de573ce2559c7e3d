"""Calls as models write them, read as calls of our tools."""
