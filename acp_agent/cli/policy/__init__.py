"""`acp-agent policy` and `acp-agent audit`: what may run, why, and what was decided."""
