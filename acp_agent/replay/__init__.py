"""Records of sessions, replayed offline to test the agent's behaviour (docs/replay.md)."""
