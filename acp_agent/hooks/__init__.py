"""Hooks: programs and addresses of the user's that are asked at a session's events.

The contract is that of the hooks of Anthropic's agent SDK (the types in `sdk.d.ts` of npm's
`@anthropic-ai/claude-agent-sdk`), so that a team's hooks work here as they are.
"""
