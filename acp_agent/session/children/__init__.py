"""Child sessions: agents that work on a task for a session, and code that starts and stops them."""
