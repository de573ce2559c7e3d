"""More tools for skills: a skill as a tool of another one, and writing a skill."""
