"""Configuration files, environment variables and secrets."""
