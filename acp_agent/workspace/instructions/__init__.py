"""Instruction files: AGENTS.md, and where a folder has none, the files of other agents."""
