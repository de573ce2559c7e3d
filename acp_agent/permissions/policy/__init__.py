"""The user's policy: rules that allow, ask about or refuse tool calls."""
