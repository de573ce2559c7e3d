"""`acp-agent plugin`: add, list, update and remove plugins."""
