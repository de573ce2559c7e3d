"""Run a turn: the loop of model requests and tool calls, its context and its prompts."""
