"""Extensions of the agent: skills, agents, plugins, flows, workflows and MCP servers."""
