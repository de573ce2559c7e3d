"""The tools of the model: one module per tool, with its description for the model next to it."""
