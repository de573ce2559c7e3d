"""Instruction files: AGENTS.md, or the files of other agents in a folder that has none."""
