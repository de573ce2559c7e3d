"""Snapshots of a folder's files, stored in a separate git repository in the user's data folder.

The user's own repository, its index, hooks and settings are never touched; see
docs/checkpoints.md.
"""
