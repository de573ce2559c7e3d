"""Records of sessions that replay offline, as a test of how the agent behaves (docs/replay.md)."""
