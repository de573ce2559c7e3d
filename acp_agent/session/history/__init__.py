"""The past of a session: saved files, rewinding, forks, interrupted turns, exports."""
