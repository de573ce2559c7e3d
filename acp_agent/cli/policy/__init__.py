"""`acp-agent policy` and `acp-agent audit`: permission rules, and past decisions."""
