"""Permission checks for tool calls: modes, policy rules, shell parsing and remembered grants."""
