"""What later sessions are to know: notes in Markdown, and a search over earlier sessions."""
