"""Code that concerns the operating system and the interpreter."""
