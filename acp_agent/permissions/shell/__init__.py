"""The shell: the commands that a line would run, read from its syntax tree, nothing executed."""
