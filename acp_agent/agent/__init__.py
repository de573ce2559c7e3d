"""The turn: the loop, its context, its prompts."""
