"""Plugins: folders with skills, agents, hooks and MCP servers, and packages of Python code."""
