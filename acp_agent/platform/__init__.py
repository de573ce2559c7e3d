"""Code that differs between operating systems."""
