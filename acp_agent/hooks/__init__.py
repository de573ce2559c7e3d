"""Hooks: programs, endpoints, models and tools that run at events of a session.

Input and output are those of the hooks of Anthropic's agent SDK (the types in `sdk.d.ts` of npm's
`@anthropic-ai/claude-agent-sdk`), so that existing hooks work without changes.
"""
