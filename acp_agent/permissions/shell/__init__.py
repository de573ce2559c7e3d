"""Parse shell command lines into their commands, from a syntax tree; nothing is executed."""
