"""A folder's files kept as they were, in a repository of our own beside the user's data.

The user's repository, its index, hooks and settings are never touched; see docs/checkpoints.md.
"""
