"""Memory across sessions: notes in Markdown, and a search over earlier sessions."""
