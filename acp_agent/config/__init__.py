"""Configuration files, environment and secrets."""
